//! What can be declared, deleted, closed, purged and listed, with the members of each and its place in the API.

use crate::ask::encode;
use std::collections::BTreeMap;

/// Members of an object, as `name=value` words gave them.
pub type Members = BTreeMap<String, String>;

/// A kind of object that is declared.
#[derive(Debug)]
pub struct Kind {
    pub name: &'static str,
    /// Where the API has it; members in braces are filled in.
    pub path: &'static str,
    /// Members that must be given.
    pub mandatory: &'static [&'static str],
    /// Members that may be given, with what they are otherwise; an empty one is left out.
    pub optional: &'static [(&'static str, &'static str)],
    /// Members that are JSON.
    pub json: &'static [&'static str],
    /// What names it when it is deleted, and the path of that if it is another one; nothing if it is not deleted.
    pub deleted_by: &'static [&'static str],
    pub delete_path: &'static str,
}

pub const KINDS: &[Kind] = &[
    Kind {
        name: "exchange",
        path: "/exchanges/{vhost}/{name}",
        mandatory: &["name", "type"],
        optional: &[
            ("auto_delete", "false"),
            ("durable", "true"),
            ("internal", "false"),
            ("arguments", "{}"),
        ],
        json: &["arguments"],
        deleted_by: &["name"],
        delete_path: "",
    },
    Kind {
        name: "queue",
        path: "/queues/{vhost}/{name}",
        mandatory: &["name"],
        optional: &[
            ("auto_delete", "false"),
            ("durable", "true"),
            ("arguments", "{}"),
            ("node", ""),
            ("queue_type", ""),
        ],
        json: &["arguments"],
        deleted_by: &["name"],
        delete_path: "",
    },
    Kind {
        name: "binding",
        path: "/bindings/{vhost}/e/{source}/{destination_char}/{destination}",
        mandatory: &["source", "destination"],
        optional: &[
            ("destination_type", "queue"),
            ("routing_key", ""),
            ("arguments", "{}"),
        ],
        json: &["arguments"],
        deleted_by: &["source", "destination_type", "destination", "properties_key"],
        delete_path: "/bindings/{vhost}/e/{source}/{destination_char}/{destination}/{properties_key}",
    },
    Kind {
        name: "vhost",
        path: "/vhosts/{name}",
        mandatory: &["name"],
        optional: &[("tracing", "")],
        json: &[],
        deleted_by: &["name"],
        delete_path: "",
    },
    Kind {
        name: "user",
        path: "/users/{name}",
        mandatory: &["name", "tags"],
        optional: &[("password", ""), ("password_hash", ""), ("hashing_algorithm", "")],
        json: &[],
        deleted_by: &["name"],
        delete_path: "",
    },
    Kind {
        name: "permission",
        path: "/permissions/{vhost}/{user}",
        mandatory: &["vhost", "user", "configure", "write", "read"],
        optional: &[],
        json: &[],
        deleted_by: &["vhost", "user"],
        delete_path: "",
    },
    Kind {
        name: "parameter",
        path: "/parameters/{component}/{vhost}/{name}",
        mandatory: &["component", "name", "value"],
        optional: &[],
        json: &["value"],
        deleted_by: &["component", "name"],
        delete_path: "",
    },
    Kind {
        name: "policy",
        path: "/policies/{vhost}/{name}",
        mandatory: &["name", "pattern", "definition"],
        optional: &[("priority", "0"), ("apply-to", "")],
        json: &["definition", "priority"],
        deleted_by: &["name"],
        delete_path: "",
    },
    Kind {
        name: "operator_policy",
        path: "/operator-policies/{vhost}/{name}",
        mandatory: &["name", "pattern", "definition"],
        optional: &[("priority", "0"), ("apply-to", "")],
        json: &["definition", "priority"],
        deleted_by: &["name"],
        delete_path: "",
    },
    Kind {
        name: "vhost_limit",
        path: "/vhost-limits/{vhost}/{name}",
        mandatory: &["vhost", "name", "value"],
        optional: &[],
        json: &["value"],
        deleted_by: &["vhost", "name"],
        delete_path: "",
    },
];

/// A kind of list: its name, its path, whether it is of one virtual host on demand, and its usual columns (none: all).
pub const LISTS: &[(&str, &str, bool, &[&str])] = &[
    ("users", "/users", false, &[]),
    ("vhosts", "/vhosts", false, &["name", "messages"]),
    (
        "connections",
        "/connections",
        false,
        &["name", "user", "channels"],
    ),
    ("exchanges", "/exchanges", true, &["name", "type"]),
    (
        "bindings",
        "/bindings",
        true,
        &["source", "destination", "routing_key"],
    ),
    ("permissions", "/permissions", false, &[]),
    ("channels", "/channels", false, &["name", "user"]),
    ("parameters", "/parameters", false, &[]),
    ("consumers", "/consumers", true, &[]),
    ("queues", "/queues", true, &["name", "messages"]),
    ("policies", "/policies", true, &[]),
    ("operator_policies", "/operator-policies", true, &[]),
    ("vhost_limits", "/vhost-limits", true, &[]),
    ("nodes", "/nodes", false, &["name", "type", "mem_used"]),
];

/// The columns of `show overview`.
pub const OVERVIEW: &[&str] = &[
    "rabbitmq_version",
    "cluster_name",
    "queue_totals.messages",
    "object_totals.queues",
];

/// A path with members in the place of their names.
pub fn filled(path: &str, members: &Members) -> String {
    let mut filled = String::new();
    for segment in path.split('/').skip(1) {
        filled.push('/');
        match segment.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
            Some(name) => filled.push_str(&encode(members.get(name).map_or("", String::as_str))),
            None => filled.push_str(segment),
        }
    }
    filled
}

/// A line for each verb and what it takes.
pub fn usage() -> Vec<String> {
    let lists = LISTS
        .iter()
        .map(|(name, ..)| format!("list {name} [<column>...]"));
    let declared = KINDS.iter().map(|kind| {
        let must = kind.mandatory.iter().map(|name| format!("{name}=..."));
        let may = kind.optional.iter().map(|(name, _)| format!("[{name}=...]"));
        format!(
            "declare {} {}",
            kind.name,
            must.chain(may).collect::<Vec<_>>().join(" ")
        )
    });
    let deleted = KINDS.iter().map(|kind| {
        let must: Vec<String> = kind.deleted_by.iter().map(|name| format!("{name}=...")).collect();
        format!("delete {} {}", kind.name, must.join(" "))
    });
    let others = [
        "show overview [<column>...]",
        "close connection name=...",
        "purge queue name=...",
        "publish routing_key=... [payload=...] [exchange=...] [payload_encoding=...] [properties=...]",
        "get queue=... [count=...] [ackmode=...] [payload_file=...] [encoding=...]",
        "export <file>",
        "import <file>",
    ];
    lists
        .chain(declared)
        .chain(deleted)
        .chain(others.map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_filled_with_encoded_names() {
        let members = [("vhost", "/"), ("name", "a b")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(
            filled("/queues/{vhost}/{name}", &members.into()),
            "/queues/%2F/a%20b"
        );
    }
}
