//! Policies with keys of mirrored queues (`ha-mode` and so on), which RabbitMQ 3 had and which mean something in a cluster only.

use crate::ask::{Ask, encode};
use crate::command::{Command, Section::Monitoring, Section::Operations};
use crate::failure::{Failure, UNAVAILABLE};
use crate::output::{Output, Rows};
use crate::tool::Tool;
use serde_json::{Map, Value};

const WATCHERS: &[Tool] = &[Tool::Queues, Tool::Diagnostics];

/// Where the API has policies, and what one of them and several are called.
const KINDS: [(&str, &str, &str); 2] = [
    ("policies", "policy", "policies"),
    ("operator-policies", "operator policy", "operator policies"),
];

pub const COMMANDS: &[Command] = &[
    Command::new(
        Monitoring,
        "list_policies_with_classic_queue_mirroring",
        (0, 0),
        "[--no-table-headers]",
        list,
    )
    .about("Lists policies that enable classic queue mirroring, in all virtual hosts")
    .of(WATCHERS),
    Command::new(
        Monitoring,
        "list_operator_policies_with_classic_queue_mirroring",
        (0, 0),
        "[--no-table-headers]",
        list_operator,
    )
    .about("Lists operator policies that enable classic queue mirroring, in all virtual hosts")
    .of(WATCHERS),
    Command::new(
        Monitoring,
        "check_if_cluster_has_classic_queue_mirroring_policy",
        (0, 0),
        "",
        check,
    )
    .about("Fails if a policy enables classic queue mirroring")
    .of(WATCHERS),
    Command::new(
        Operations,
        "remove_classic_queue_mirroring_from_policies",
        (0, 0),
        "",
        remove,
    )
    .about("Removes mirroring keys from all policies, and deletes policies that have no other keys"),
];

fn is_of_mirrors(key: &str) -> bool {
    key.starts_with("ha-")
}

/// The policies of a kind that ask for mirrored queues.
fn mirroring(ask: &Ask<'_>, kind: &str) -> Result<Vec<Value>, Failure> {
    let Value::Array(mut policies) = ask.get(&format!("/{kind}"))? else {
        return Ok(Vec::new());
    };
    policies.retain(|policy| {
        let definition = policy["definition"].as_object();
        definition.is_some_and(|keys| keys.keys().any(|key| is_of_mirrors(key)))
    });
    Ok(policies)
}

fn rows(ask: &Ask<'_>, (kind, _, several): (&str, &str, &str)) -> Result<Output, Failure> {
    ask.say(format!("Listing {several} with classic queue mirroring ..."));
    Ok(Output::Rows(super::policies::rows(&mirroring(ask, kind)?.into())))
}

fn list(ask: &Ask<'_>) -> Result<Output, Failure> {
    rows(ask, KINDS[0])
}

fn list_operator(ask: &Ask<'_>) -> Result<Output, Failure> {
    rows(ask, KINDS[1])
}

fn check(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Checking if cluster has any classic queue mirroring policy ...");
    let mut lines = Vec::new();
    for (kind, one, _) in KINDS {
        let found = mirroring(ask, kind)?;
        let names = found.iter().map(|policy| {
            let (vhost, name) = (super::text(policy, "vhost"), super::text(policy, "name"));
            format!("{one} '{name}' in virtual host '{vhost}'")
        });
        lines.extend(names);
    }
    match lines.is_empty() {
        true => Ok(Output::text(
            "Cluster reported no policies that enable classic queue mirroring",
        )),
        false => Err(Failure::error(
            UNAVAILABLE,
            format!(
                "Cluster reported policies that enable classic queue mirroring:\n{}",
                lines.join("\n")
            ),
        )),
    }
}

/// A definition without the keys of mirrored queues.
fn without_mirrors(policy: &Value) -> Map<String, Value> {
    let keys = policy["definition"].as_object().into_iter().flatten();
    keys.filter(|(key, _)| !is_of_mirrors(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn remove(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Will remove keys that enable classic queue mirroring from all regular and operator policies");
    let mut changed = Rows {
        columns: ["vhost", "name", "kind", "outcome"].map(str::to_owned).to_vec(),
        ..Rows::default()
    };
    for (kind, one, _) in KINDS {
        for policy in mirroring(ask, kind)? {
            let (vhost, name) = (super::text(&policy, "vhost"), super::text(&policy, "name"));
            let path = format!("/{kind}/{}/{}", encode(vhost), encode(name));
            let rest = without_mirrors(&policy);
            let outcome = match rest.is_empty() {
                true => {
                    ask.delete(&path)?;
                    "deleted: it had no other keys"
                }
                false => {
                    let mut policy = policy.clone();
                    policy["definition"] = rest.into();
                    ask.put(&path, &policy)?;
                    "changed"
                }
            };
            let row = [vhost, name, one, outcome].map(Value::from);
            changed.rows.push(row.to_vec());
        }
    }
    Ok(Output::Rows(changed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_keys_of_mirrored_queues_go() {
        let policy = json!({"definition": {"ha-mode": "all", "ha-sync-mode": "automatic", "max-length": 5}});
        assert_eq!(Value::from(without_mirrors(&policy)), json!({"max-length": 5}));
    }
}
