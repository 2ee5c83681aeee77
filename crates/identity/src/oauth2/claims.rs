//! The scopes that a token claims, wherever they stand in it.

use super::rich_requests;
use super::settings::ResourceServer;
use super::token::Claims;
use serde_json::Value;

/// Where a requesting party token of UMA has its scopes.
const REQUESTING_PARTY: [&str; 3] = ["authorization", "permissions", "scopes"];

/// The token's scopes for this resource server, without their prefix, each once.
pub fn scopes(claims: &Claims, server: &ResourceServer) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(scope) = claims.get("scope") {
        collect(scope, &server.id, &mut found);
    }
    let mut walk = |path: &[&str]| {
        if let Some((first, rest)) = path.split_first()
            && let Some(value) = claims.get(*first)
        {
            at(value, rest, &server.id, &mut found);
        }
    };
    walk(&REQUESTING_PARTY);
    for path in &server.additional_scopes {
        let parts: Vec<&str> = path.split('.').filter(|part| !part.is_empty()).collect();
        walk(&parts);
    }
    let stand_for = |scope: &String| server.aliases.get(scope).into_iter().flatten().cloned();
    let more: Vec<String> = found.iter().flat_map(stand_for).collect();
    found.extend(more);
    if let Some(kind) = &server.kind {
        found.extend(rich_requests::scopes(claims, kind, &server.id));
    }
    let prefix = server.scope_prefix.as_str();
    let ours = found.iter().filter_map(|scope| scope.strip_prefix(prefix));
    let mut ours: Vec<String> = ours.map(str::to_owned).collect();
    ours.sort();
    ours.dedup();
    ours
}

/// Collects what stands at the end of a path through objects, and through all objects of lists.
fn at(value: &Value, path: &[&str], id: &str, found: &mut Vec<String>) {
    match (path.split_first(), value) {
        (None, value) => collect(value, id, found),
        (Some((first, rest)), Value::Object(object)) => {
            if let Some(value) = object.get(*first) {
                at(value, rest, id, found);
            }
        }
        (Some(_), Value::Array(list)) => {
            for value in list.iter().filter(|value| value.is_object()) {
                at(value, path, id, found);
            }
        }
        _ => {}
    }
}

/// Scopes come as one text with blanks, as a list, or in an object by the name of whom they are for.
fn collect(value: &Value, id: &str, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.extend(text.split_ascii_whitespace().map(str::to_owned)),
        Value::Array(list) => found.extend(list.iter().filter_map(Value::as_str).map(str::to_owned)),
        Value::Object(by_name) => {
            let mut inner = Vec::new();
            if let Some(own @ (Value::String(_) | Value::Array(_))) = by_name.get(id) {
                collect(own, id, &mut inner);
            }
            found.extend(inner.iter().map(|scope| format!("{id}.{scope}")));
        }
        _ => {}
    }
}

/// Whether a claim has this text: by itself, among others with blanks between, or in a list.
pub fn contains(value: Option<&Value>, wanted: &str) -> bool {
    match value {
        Some(Value::String(text)) => text.split_ascii_whitespace().any(|one| one == wanted),
        Some(Value::Array(list)) => list.iter().any(|one| one.as_str() == Some(wanted)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth2::settings::{ResourceServerSettings, Settings};
    use serde_json::json;

    fn found(claims: Value, change: impl FnOnce(&mut ResourceServerSettings)) -> Vec<String> {
        let mut settings = Settings::default();
        settings.root.id = Some("rabbit".into());
        change(&mut settings.root);
        let server = settings.resource_servers().unwrap().remove(0);
        scopes(claims.as_object().unwrap(), &server)
    }

    #[test]
    fn a_requesting_party_token_has_its_scopes_in_its_permissions() {
        let claims = json!({"authorization": {"permissions": [
            {"rsid": "1", "scopes": ["rabbit.read:*/*", "rabbit.read:*/*", "other.write:*/*"]},
            {"rsid": "2", "scopes": "rabbit.write:*/*"},
            "nonsense",
            {"rsid": "3"},
        ]}});
        assert_eq!(found(claims, |_| {}), ["read:*/*", "write:*/*"]);
    }

    #[test]
    fn additional_claims_are_reached_through_objects_and_lists() {
        let claims = json!({
            "roles": [{"name": "x", "scopes": ["rabbit.read:a/*"]}, {"scopes": "rabbit.read:b/*"}],
            "resources": {"rabbit": ["read:c/*"], "other": ["read:d/*"]},
            "deep": {"deeper": {"deepest": "rabbit.read:e/*"}},
        });
        let paths = [
            "roles.scopes",
            "resources",
            "deep.deeper.deepest",
            "absent.x",
            "deep.deeper",
        ];
        let change = |root: &mut ResourceServerSettings| {
            root.additional_scopes = Some(paths.map(str::to_owned).into());
        };
        assert_eq!(
            found(claims, change),
            ["read:a/*", "read:b/*", "read:c/*", "read:e/*"]
        );
    }

    #[test]
    fn rich_requests_count_where_the_type_is_set() {
        let details = json!([{"type": "broker", "locations": ["cluster:rab*/vhost:a"], "actions": ["read"]}]);
        let claims = json!({"authorization_details": details});
        assert!(found(claims.clone(), |_| {}).is_empty());
        let scopes = found(claims, |root| root.kind = Some("broker".into()));
        assert_eq!(scopes, ["read:a/*/*"]);
    }
}
