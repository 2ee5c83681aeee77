//! `/api/policies` and `/api/operator-policies`.

use crate::access::Right;
use crate::arguments;
use crate::call::Call;
use crate::json;
use crate::listing::{List, object};
use crate::refusal::{Refusal, need};
use crate::reply::Reply;
use crate::route::Route;
use broker::{Administrator, Applied, Policy, PolicyKind, PutPolicy, View, is_for_clusters, term};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub const ROUTES: &[Route] = &[
    Route {
        path: "/policies",
        verbs: &[("GET", Right::Management, |call| list(call, PolicyKind::User))],
    },
    Route {
        path: "/policies/:vhost",
        verbs: &[("GET", Right::Vhost, |call| list(call, PolicyKind::User))],
    },
    Route {
        path: "/policies/:vhost/:name",
        verbs: &[
            ("GET", Right::Policymaker, |call| one(call, PolicyKind::User)),
            ("PUT", Right::Policymaker, |call| put(call, PolicyKind::User)),
            ("DELETE", Right::Policymaker, |call| {
                delete(call, PolicyKind::User)
            }),
        ],
    },
    Route {
        path: "/operator-policies",
        verbs: &[("GET", Right::Management, |call| list(call, PolicyKind::Operator))],
    },
    Route {
        path: "/operator-policies/:vhost",
        verbs: &[("GET", Right::Vhost, |call| list(call, PolicyKind::Operator))],
    },
    Route {
        path: "/operator-policies/:vhost/:name",
        verbs: &[
            ("GET", Right::Administrator, |call| {
                one(call, PolicyKind::Operator)
            }),
            ("PUT", Right::Administrator, |call| {
                put(call, PolicyKind::Operator)
            }),
            ("DELETE", Right::Administrator, |call| {
                delete(call, PolicyKind::Operator)
            }),
        ],
    },
];

fn list(call: &Call<'_>, kind: PolicyKind) -> Result<Reply, Refusal> {
    let vhosts = call.visible_vhosts()?;
    let all: Vec<&Arc<Policy>> = vhosts
        .iter()
        .flat_map(|vhost| vhost.policies().all(kind))
        .collect();
    let total = all.len();
    let list = List {
        name: &|policy: &&Arc<Policy>| &policy.name,
        row: &|policy: &&Arc<Policy>| with_notes(call, policy),
        member: &|_, _| None,
    };
    list.reply(&call.query, call.cut, all.into_iter(), total)
}

fn one(call: &Call<'_>, kind: PolicyKind) -> Result<Reply, Refusal> {
    let policy = call.vhost()?.policies().get(kind, call.part("name"));
    Ok(object(
        &call.query,
        with_notes(call, policy.ok_or(Refusal::NotFound)?),
    ))
}

fn put(call: &Call<'_>, kind: PolicyKind) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let vhost = call.target_vhost()?;
    need(&body, &["pattern", "definition"])?;
    let name = call.part("name");
    let known = vhost.policies().get(kind, name).is_some();
    make(&call.administrator(), &vhost.name, kind, name, &body)?;
    Ok(Reply::empty(if known { 204 } else { 201 }))
}

fn delete(call: &Call<'_>, kind: PolicyKind) -> Result<Reply, Refusal> {
    let (vhost, name) = (call.vhost()?, call.part("name"));
    vhost.policies().get(kind, name).ok_or(Refusal::NotFound)?;
    call.administrator().delete_policy(&vhost.name, kind, name)?;
    Ok(Reply::empty(204))
}

/// Puts the policy that an object of JSON describes.
///
/// # Errors
/// It describes none, in RabbitMQ's words.
pub fn make(
    by: &Administrator<'_>,
    vhost: &str,
    kind: PolicyKind,
    name: &str,
    body: &Map<String, Value>,
) -> Result<(), Refusal> {
    let wrong = |text: String| Refusal::bad_request(format!("Validation failed\n\n{text}\n"));
    let shown = |value: &Value| term(&arguments::field(value));
    let word = |name: &str, default: &str| match body.get(name) {
        None => Ok(default.to_owned()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(wrong(format!(
            "{name} should be a binary but was {}",
            shown(other)
        ))),
    };
    let priority = body.get("priority").map_or(Ok(0), |given| {
        let text = || format!("priority should be a number, actually was {}", shown(given));
        given.as_i64().ok_or_else(|| wrong(text()))
    })?;
    let policy = PutPolicy {
        pattern: word("pattern", "")?,
        apply_to: word("apply-to", "all")?,
        priority,
        definition: arguments::table(body, "definition", by.broker().limits())?,
    };
    by.put_policy(vhost, kind, name, policy)?;
    let keys = body
        .get("definition")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let idle: Vec<&str> = keys
        .map(|(key, _)| key.as_str())
        .filter(|key| is_for_clusters(key.as_bytes()))
        .collect();
    if !idle.is_empty() && is_alone(&by.broker().view()) {
        let idle = idle.join(", ");
        tracing::warn!(
            area = "management",
            "policy '{name}' in virtual host '{vhost}': no effect on a single node: {idle}"
        );
    }
    Ok(())
}

/// A policy as definitions have it.
pub fn row(policy: &Policy) -> Map<String, Value> {
    let mut row = Map::new();
    row.insert("vhost".into(), (&*policy.vhost).into());
    row.insert("name".into(), (&*policy.name).into());
    row.extend(value(policy));
    row
}

/// What a policy says, apart from where it stands.
pub fn value(policy: &Policy) -> Map<String, Value> {
    let value = json!({
        "pattern": policy.pattern.source(),
        "apply-to": policy.apply_to.name(),
        "definition": json::table(&policy.definition),
        "priority": policy.priority,
    });
    value.as_object().cloned().unwrap_or_default()
}

/// A queue can have no mirrors: there is one node.
fn is_alone(view: &View) -> bool {
    view.nodes().filter(|(_, node)| node.joined().is_some()).count() < 2
}

/// A policy as lists have it: keys that do nothing on this node alone are named, so that nobody relies on them.
fn with_notes(call: &Call<'_>, policy: &Arc<Policy>) -> Value {
    let mut row = row(policy);
    let alone = is_alone(&call.view);
    let idle = policy.definition.iter();
    let idle = idle.filter(|(key, _)| alone && is_for_clusters(key));
    let idle: Vec<Value> = idle.map(|(key, _)| json::text(key).into()).collect();
    if !idle.is_empty() {
        row.insert("takes_effect_in_a_cluster".into(), idle.into());
    }
    Value::Object(row)
}

/// The members of a queue that tell of its policies.
pub fn of_queue(map: &mut Map<String, Value>, applied: &Applied<'_>) {
    let name = |policy: Option<&Arc<Policy>>| policy.map(|policy| Value::from(&*policy.name));
    map.insert("policy".into(), name(applied.user).unwrap_or_default());
    map.insert(
        "operator_policy".into(),
        name(applied.operator).unwrap_or_default(),
    );
    let definition = applied.definition();
    let definition = definition.map_or_else(|| json!({}), |definition| json::table(&definition));
    map.insert("effective_policy_definition".into(), definition);
}
