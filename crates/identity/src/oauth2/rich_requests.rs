//! Rich authorization requests (RFC 9396): permissions of a token as objects instead of scopes, in RabbitMQ's terms.

use super::scopes::Wildcard;
use super::token::Claims;
use serde_json::Value;

const TAGS: [&str; 4] = ["monitoring", "administrator", "management", "policymaker"];
const VERBS: [&str; 3] = ["read", "write", "configure"];

/// The scopes that a token's `authorization_details` of this type stand for, with the resource server's id before each.
pub fn scopes(claims: &Claims, kind: &str, id: &str) -> Vec<String> {
    let mut found = Vec::new();
    let details = claims.get("authorization_details").and_then(Value::as_array);
    for permission in details.into_iter().flatten() {
        if permission.get("type").and_then(Value::as_str) != Some(kind) {
            continue;
        }
        let places: Vec<String> = texts(permission.get("locations"))
            .filter_map(|location| place(location, id))
            .collect();
        if places.is_empty() {
            continue;
        }
        for action in texts(permission.get("actions")) {
            if TAGS.contains(&action) {
                found.push(format!("{id}.tag:{action}"));
            } else if VERBS.contains(&action) {
                found.extend(places.iter().map(|place| format!("{id}.{action}:{place}")));
            }
        }
    }
    found
}

/// A text, or those of a list.
fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let list = match value {
        Some(Value::Array(list)) => &list[..],
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    list.iter().filter_map(Value::as_str)
}

/// What a scope has behind its colon for a location such as `cluster:rabbit/vhost:v/queue:q/routing-key:k`. `None` if
/// it is not in this resource server, or names a queue and an exchange that differ.
fn place(location: &str, id: &str) -> Option<String> {
    let part = |wanted: &str| {
        // The last one of a name counts.
        location.rsplit('/').find_map(|part| {
            let mut parts = part.split(':').filter(|piece| !piece.is_empty());
            (parts.next()? == wanted).then(|| parts.next()).flatten()
        })
    };
    if !Wildcard::parse(part("cluster")?)?.matches(id.as_bytes()) {
        return None;
    }
    let (queue, exchange) = (part("queue"), part("exchange"));
    if queue.is_some() && exchange.is_some() && queue != exchange {
        return None;
    }
    let name = queue.or(exchange).unwrap_or("*");
    let (vhost, key) = (part("vhost").unwrap_or("*"), part("routing-key").unwrap_or("*"));
    Some(format!("{vhost}/{name}/{key}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(details: Value) -> Vec<String> {
        let claims = json!({"authorization_details": details});
        scopes(claims.as_object().unwrap(), "broker", "prod")
    }

    #[test]
    fn locations_and_actions_become_scopes() {
        let permission = json!({
            "type": "broker",
            "locations": ["cluster:prod/vhost:v/queue:q", "cluster:p*/vhost:v/exchange:x/routing-key:k.*", "cluster:test"],
            "actions": ["read", "write", "administrator", "zork"],
        });
        assert_eq!(
            of(json!([permission])),
            [
                "prod.read:v/q/*",
                "prod.read:v/x/k.*",
                "prod.write:v/q/*",
                "prod.write:v/x/k.*",
                "prod.tag:administrator"
            ]
        );
        let short = json!([{"type": "broker", "locations": "cluster:prod", "actions": "configure"}]);
        assert_eq!(of(short), ["prod.configure:*/*/*"]);
    }

    #[test]
    fn what_is_not_for_this_resource_server_gives_nothing() {
        for details in [
            json!("nonsense"),
            json!([1, null, {}]),
            json!([{"type": "other", "locations": "cluster:prod", "actions": "read"}]),
            json!([{"type": "broker", "actions": "administrator"}]),
            json!([{"type": "broker", "locations": "vhost:v", "actions": "read"}]),
            json!([{"type": "broker", "locations": "cluster:test", "actions": "administrator"}]),
            json!([{"type": "broker", "locations": "cluster:prod/queue:a/exchange:b", "actions": "read"}]),
        ] {
            assert!(of(details.clone()).is_empty(), "{details}");
        }
    }
}
