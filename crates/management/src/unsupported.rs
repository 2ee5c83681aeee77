//! What definitions of RabbitMQ may say that this version does not have, and what can be done instead.

use crate::import_options::CONVERTED_FROM;
use crate::import_options::ImportOptions;
use crate::import_report::{Cause, Outcome, Remark};
use broker::{ExchangeKind, PasswordHashing, QueueKind, is_for_clusters, takes_argument};
use serde_json::{Map, Value};

/// An object as it is to be imported, or why it can't be.
pub enum Fit {
    /// As it is.
    Same,
    /// As another one.
    Converted(Map<String, Value>, Remark),
    /// Not at all.
    No(Remark),
}

fn no(field: &str, reason: String, instead: &str) -> Fit {
    Fit::No(
        Remark::new(Outcome::Refused, Cause::Unsupported, reason)
            .at(field)
            .instead(instead),
    )
}

fn text_at<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

/// Looks at an object of a class.
pub fn fit(class: &str, object: &Map<String, Value>, options: ImportOptions) -> Fit {
    match class {
        "users" => user(object),
        "vhosts" => vhost(object, options),
        "exchanges" => exchange(object),
        "queues" => queue(object, options),
        "policies" => policy(object),
        "parameters" => parameter(object),
        _ => Fit::Same,
    }
}

fn user(object: &Map<String, Value>) -> Fit {
    let has_hash = text_at(object, "password_hash").is_some_and(|hash| !hash.is_empty());
    match text_at(object, "hashing_algorithm").filter(|_| has_hash) {
        Some(name) if PasswordHashing::from_name(name).is_none() => no(
            "hashing_algorithm",
            format!("{name} is not known"),
            "take the hash out of the file and set a password later",
        ),
        _ => Fit::Same,
    }
}

fn vhost(object: &Map<String, Value>, options: ImportOptions) -> Fit {
    const KEY: &str = "default_queue_type";
    let metadata = object.get("metadata").and_then(Value::as_object);
    let (said, field) = match metadata {
        Some(members) => (members, "metadata.default_queue_type"),
        None => (object, KEY),
    };
    let named = text_at(said, KEY).and_then(QueueKind::from_name);
    if named != Some(QueueKind::Quorum) || !options.quorum_as_classic {
        return Fit::Same;
    }
    let reason = "quorum queues are to be classic ones".to_owned();
    let mut said = said.clone();
    said.insert(KEY.into(), CLASSIC.name().into());
    let mut object = object.clone();
    match metadata {
        Some(_) => object.insert("metadata".into(), Value::Object(said)),
        None => object.insert(KEY.into(), CLASSIC.name().into()),
    };
    let remark = Remark::new(Outcome::Converted, Cause::Unsupported, reason);
    Fit::Converted(object, remark.at(field).instead("its default is classic"))
}

/// What a quorum queue is made, if the asker wants that.
const CLASSIC: QueueKind = QueueKind::Classic;

fn exchange(object: &Map<String, Value>) -> Fit {
    match text_at(object, "type") {
        Some(kind) if ExchangeKind::from_name(kind).is_none() => no(
            "type",
            format!("exchanges of type '{kind}' are not part of this version"),
            "leave it out with its bindings: on_unsupported=skip",
        ),
        _ => Fit::Same,
    }
}

fn queue(object: &Map<String, Value>, options: ImportOptions) -> Fit {
    let arguments = object.get("arguments").and_then(Value::as_object);
    let argued = arguments.and_then(|arguments| text_at(arguments, "x-queue-type"));
    let (kind, field) = match (argued, text_at(object, "type")) {
        (Some(kind), _) => (kind, "arguments.x-queue-type"),
        (None, Some(kind)) => (kind, "type"),
        (None, None) => return Fit::Same,
    };
    match QueueKind::from_any_name(kind) {
        Some(QueueKind::Quorum) if options.quorum_as_classic => as_classic(object, field),
        Some(_) => Fit::Same,
        None => no(
            field,
            format!("queues of type '{kind}' are not part of this version"),
            "leave it out with its bindings: on_unsupported=skip",
        ),
    }
}

/// A durable classic queue in a quorum queue's place.
fn as_classic(object: &Map<String, Value>, field: &str) -> Fit {
    let mut object = object.clone();
    let mut lost = Vec::new();
    let form = object.get(CONVERTED_FROM).and_then(Value::as_object).cloned();
    let was_classic = form.is_some();
    if let Some(mut form) = form {
        // It was one: so it is declared as that again, and clients that say what it is now mean it, too.
        let now = object
            .remove("arguments")
            .unwrap_or_else(|| Value::Object(Map::new()));
        let before = form.insert("arguments".into(), now).unwrap_or_default();
        object.insert("arguments".into(), before);
        object.insert(CONVERTED_FROM.into(), Value::Object(form));
    } else if let Some(Value::Object(arguments)) = object.get_mut("arguments") {
        arguments.remove("x-queue-type");
        arguments.retain(|name, _| {
            let stays = takes_argument(CLASSIC, name);
            if !stays {
                lost.push(name.clone());
            }
            stays
        });
    }
    for (name, value) in [
        ("type", Value::from(CLASSIC.name())),
        ("durable", true.into()),
        ("auto_delete", false.into()),
    ] {
        object.insert(name.into(), value);
    }
    let mut reason = match was_classic {
        true => "a quorum queue, made as the classic queue that it was: its messages are on one node",
        false => "a quorum queue, made as a durable classic queue: its messages are on one node",
    }
    .to_owned();
    if !lost.is_empty() {
        reason = format!("{reason}; without {}", lost.join(", "));
    }
    Fit::Converted(
        object,
        Remark::new(Outcome::Converted, Cause::Unsupported, reason).at(field),
    )
}

fn policy(object: &Map<String, Value>) -> Fit {
    let definition = object.get("definition").and_then(Value::as_object);
    let federated = definition.and_then(|keys| {
        let mut names = keys.keys();
        names.find(|name| name.starts_with("federation-") || *name == "shards-per-node")
    });
    match federated {
        Some(name) => no(
            &format!("definition.{name}"),
            match name.starts_with("federation-") {
                true => "federation is not built yet".into(),
                false => "sharded exchanges are not part of this version".into(),
            },
            "leave the policy out: on_unsupported=skip",
        ),
        None => Fit::Same,
    }
}

fn parameter(object: &Map<String, Value>) -> Fit {
    const OURS: [&str; 3] = ["operator_policy", "vhost-limits", "policy"];
    match text_at(object, "component") {
        Some(component) if !OURS.contains(&component) => {
            let reason = match component {
                "shovel" => "shovels are not built yet".into(),
                it if it.starts_with("federation-") => "federation is not built yet".into(),
                it => format!("nothing here reads parameters of '{it}'"),
            };
            no(
                "component",
                reason,
                "leave the parameter out: on_unsupported=skip",
            )
        }
        _ => Fit::Same,
    }
}

/// What of an object that is imported should be known.
pub fn note(class: &str, object: &Map<String, Value>) -> Option<Remark> {
    match class {
        "users" => {
            let hashing = text_at(object, "hashing_algorithm").and_then(PasswordHashing::from_name)?;
            let hash = text_at(object, "password_hash").filter(|hash| !hash.is_empty());
            (hashing.is_weak() && hash.is_some()).then(|| {
                Remark::new(
                    Outcome::Noted,
                    Cause::Weak,
                    "the password hash is by MD5, which is quickly guessed",
                )
                .at("hashing_algorithm")
                .instead("set the password anew")
            })
        }
        "policies" => idle(object),
        _ => None,
    }
}

fn idle(object: &Map<String, Value>) -> Option<Remark> {
    let noted =
        |field: String, reason: &str| Some(Remark::new(Outcome::Noted, Cause::Idle, reason).at(field));

    let definition = object.get("definition").and_then(Value::as_object)?;
    let key = definition.keys().find(|key| is_for_clusters(key.as_bytes()))?;
    noted(format!("definition.{key}"), "it has no effect on a single node")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(class: &str, object: Value, quorum_as_classic: bool) -> String {
        let options = ImportOptions {
            quorum_as_classic,
            ..ImportOptions::default()
        };
        match fit(class, object.as_object().unwrap(), options) {
            Fit::Same => "same".into(),
            Fit::Converted(object, remark) => format!("{} -> {}", remark.field, Value::Object(object)),
            Fit::No(remark) => format!("{}: {}", remark.field, remark.reason),
        }
    }

    #[test]
    fn what_is_not_built_is_named_with_its_field() {
        let table = [
            ("queues", json!({"type": "classic"}), "same"),
            ("queues", json!({"arguments": {"x-queue-type": "quorum"}}), "same"),
            ("queues", json!({"type": "rabbit_stream_queue"}), "same"),
            (
                "queues",
                json!({"type": "zork"}),
                "type: queues of type 'zork' are not part of this version",
            ),
            (
                "vhosts",
                json!({"name": "v", "default_queue_type": "stream"}),
                "same",
            ),
            (
                "exchanges",
                json!({"type": "x-recent-history"}),
                "type: exchanges of type 'x-recent-history' are not part of this version",
            ),
            (
                "parameters",
                json!({"component": "shovel"}),
                "component: shovels are not built yet",
            ),
            (
                "policies",
                json!({"definition": {"federation-upstream-set": "all"}}),
                "definition.federation-upstream-set: federation is not built yet",
            ),
            (
                "users",
                json!({"password_hash": "AAAA", "hashing_algorithm": "bcrypt"}),
                "hashing_algorithm: bcrypt is not known",
            ),
        ];
        for (class, object, wanted) in table {
            assert_eq!(said(class, object, false), wanted);
        }
    }

    #[test]
    fn a_quorum_queue_becomes_a_durable_classic_queue_that_keeps_what_it_can() {
        let queue = json!({"name": "q", "type": "quorum", "durable": false, "auto_delete": true,
            "arguments": {"x-queue-type": "quorum", "x-delivery-limit": 5, "x-quorum-initial-group-size": 3,
                "x-initial-cluster-size": 3}});
        assert_eq!(
            said("queues", queue, true),
            r#"arguments.x-queue-type -> {"arguments":{"x-delivery-limit":5},"auto_delete":false,"durable":true,"name":"q","type":"classic"}"#
        );
        let converted = json!({"name": "q", "type": "quorum", "durable": true, "auto_delete": false,
            "arguments": {"x-queue-type": "quorum"}, "converted_from": {"arguments": {"x-max-priority": 5}}});
        assert_eq!(
            said("queues", converted, true),
            r#"arguments.x-queue-type -> {"arguments":{"x-max-priority":5},"auto_delete":false,"converted_from":{"arguments":{"x-queue-type":"quorum"}},"durable":true,"name":"q","type":"classic"}"#
        );
        let vhost = json!({"name": "v", "metadata": {"default_queue_type": "quorum", "description": "d"}});
        assert_eq!(
            said("vhosts", vhost, true),
            r#"metadata.default_queue_type -> {"metadata":{"default_queue_type":"classic","description":"d"},"name":"v"}"#
        );
    }
}
