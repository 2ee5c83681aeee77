//! `/api/parameters`, `/api/global-parameters` and `/api/cluster-name`.
//!
//! RabbitMQ keeps operators' policies and limits of virtual hosts as parameters, and plugins keep theirs there. This
//! version has no other components.

use crate::access::Right;
use crate::arguments::field;
use crate::call::Call;
use crate::json;
use crate::limits;
use crate::policies;
use crate::refusal::{Refusal, missing_keys};
use crate::reply::Reply;
use crate::route::Route;
use broker::{Administrator, Broker, CLUSTER_ID, PolicyKind, QuotaOf, Vhost, View};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The component of operators' policies.
pub const OPERATOR_POLICY: &str = "operator_policy";
/// The component of limits of virtual hosts, and the name of its one parameter.
pub const VHOST_LIMITS: (&str, &str) = ("vhost-limits", "limits");
const POLICY: &str = "policy";

pub const ROUTES: &[Route] = &[
    Route {
        path: "/parameters",
        verbs: &[("GET", Right::Policymaker, list)],
    },
    Route {
        path: "/parameters/:component",
        verbs: &[("GET", Right::Policymaker, list)],
    },
    Route {
        path: "/parameters/:component/:vhost",
        verbs: &[("GET", Right::Policymaker, list)],
    },
    Route {
        path: "/parameters/:component/:vhost/:name",
        verbs: &[
            ("GET", Right::Policymaker, one),
            ("PUT", Right::Policymaker, put),
            ("DELETE", Right::Policymaker, delete),
        ],
    },
    Route {
        path: "/global-parameters",
        verbs: &[("GET", Right::Policymaker, globals)],
    },
    Route {
        path: "/global-parameters/:name",
        verbs: &[
            ("GET", Right::Policymaker, global),
            ("PUT", Right::Policymaker, put_global),
            ("DELETE", Right::Policymaker, delete_global),
        ],
    },
    Route {
        path: "/cluster-name",
        verbs: &[
            ("GET", Right::Management, cluster_name),
            ("PUT", Right::Administrator, put_cluster_name),
        ],
    },
];

/// The parameters of a virtual host; users' policies only if somebody asks for that component.
pub fn of_vhost(vhost: &Vhost, component: Option<&str>) -> Vec<Value> {
    let asked = |name: &str| component.is_none_or(|component| component == name);
    let row = |component: &str, name: &str, value: Value| json!({"component": component, "vhost": &*vhost.name, "name": name, "value": value});
    let mut rows = Vec::new();
    for (name, kind) in [
        (OPERATOR_POLICY, PolicyKind::Operator),
        (POLICY, PolicyKind::User),
    ] {
        if asked(name) && (kind == PolicyKind::Operator || component.is_some()) {
            let all = vhost.policies().all(kind).into_iter();
            rows.extend(all.map(|policy| row(name, &policy.name, policies::value(policy).into())));
        }
    }
    if asked(VHOST_LIMITS.0) && !vhost.quota().is_empty() {
        rows.push(row(VHOST_LIMITS.0, VHOST_LIMITS.1, limits::row(vhost.quota())));
    }
    rows
}

/// Makes a parameter of a virtual host.
///
/// # Errors
/// There is no such component, or the value makes no sense to it.
pub fn make(
    by: &Administrator<'_>,
    vhost: &str,
    component: &str,
    name: &str,
    value: &Value,
) -> Result<(), Refusal> {
    let members = || {
        let members = value.as_object();
        members.ok_or_else(|| Refusal::bad_request(format!("the value of {component} is not an object")))
    };
    if component == OPERATOR_POLICY {
        policies::make(by, vhost, PolicyKind::Operator, name, members()?)
    } else if (component, name) == VHOST_LIMITS {
        put_limits(by, vhost, members()?)
    } else if component == POLICY {
        Err(Refusal::bad_request("policies may not be set using this method"))
    } else {
        Err(Refusal::bad_request(format!(
            "Validation failed\n\ncomponent {component} not found\n"
        )))
    }
}

/// Replaces the limits of a virtual host.
fn put_limits(by: &Administrator<'_>, vhost: &str, members: &Map<String, Value>) -> Result<(), Refusal> {
    let view = by.view();
    let known = view.vhost(vhost).ok_or(Refusal::NotFound)?;
    limits::replace(by, QuotaOf::Vhost(known.name.clone()), members)
}

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhosts = call.visible_vhosts()?;
    let component = call.given("component");
    let rows = vhosts.iter().flat_map(|vhost| of_vhost(vhost, component));
    Ok(Reply::json(&rows.collect()))
}

fn find(call: &Call<'_>, vhost: &Arc<Vhost>) -> Option<Value> {
    let mut rows = of_vhost(vhost, Some(call.part("component"))).into_iter();
    rows.find(|row| row["name"] == *call.part("name"))
}

fn one(call: &Call<'_>) -> Result<Reply, Refusal> {
    let found = find(call, call.vhost()?);
    Ok(Reply::json(&found.ok_or(Refusal::NotFound)?))
}

fn put(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhost = call.target_vhost()?;
    let body = call.json()?;
    let value = needed(&body, "value")?;
    may_change(call)?;
    let known = find(call, vhost).is_some();
    let (component, name) = (call.part("component"), call.part("name"));
    make(&call.administrator(), &vhost.name, component, name, value)?;
    Ok(Reply::empty(if known { 204 } else { 201 }))
}

/// Operators' policies bind those who make policies, so these may not change them here either. RabbitMQ lets them.
fn may_change(call: &Call<'_>) -> Result<(), Refusal> {
    match call.part("component") == OPERATOR_POLICY && !call.has_tag("administrator") {
        true => Err(Refusal::not_authorised("Not administrator user")),
        false => Ok(()),
    }
}

fn delete(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhost = call.vhost()?;
    find(call, vhost).ok_or(Refusal::NotFound)?;
    may_change(call)?;
    let (by, name) = (call.administrator(), call.part("name"));
    match call.part("component") {
        OPERATOR_POLICY => by.delete_policy(&vhost.name, PolicyKind::Operator, name)?,
        POLICY => by.delete_policy(&vhost.name, PolicyKind::User, name)?,
        _ => put_limits(&by, &vhost.name, &Map::new())?,
    }
    Ok(Reply::empty(204))
}

fn needed<'a>(body: &'a Map<String, Value>, name: &str) -> Result<&'a Value, Refusal> {
    body.get(name)
        .ok_or_else(|| Refusal::bad_request(missing_keys(&[name])))
}

/// Global parameters that were set, but for the cluster's id, which is no definition.
pub fn set_globals(view: &View) -> Vec<Value> {
    let mut rows = every_global(view);
    rows.retain(|row| row["name"] != CLUSTER_ID);
    rows
}

fn every_global(view: &View) -> Vec<Value> {
    let rows = view.globals();
    rows.map(|(name, value)| json!({"name": &**name, "value": json::value(value)}))
        .collect()
}

/// The same with the cluster's name, wherever that comes from.
fn all_globals(broker: &Broker) -> Vec<Value> {
    let view = broker.view();
    let mut rows = every_global(&view);
    if view.global("cluster_name").is_none() {
        rows.push(json!({"name": "cluster_name", "value": broker.cluster_name()}));
    }
    rows
}

fn globals(call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::json(&all_globals(&call.api.broker).into()))
}

fn global(call: &Call<'_>) -> Result<Reply, Refusal> {
    let mut all = all_globals(&call.api.broker).into_iter();
    let found = all.find(|row| row["name"] == *call.part("name"));
    Ok(Reply::json(&found.ok_or(Refusal::NotFound)?))
}

fn put_global(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (body, name) = (call.json()?, call.part("name"));
    let known = call.view.global(name).is_some();
    make_global(&call.administrator(), name, needed(&body, "value")?)?;
    Ok(Reply::empty(if known { 204 } else { 201 }))
}

/// Sets a global parameter.
///
/// # Errors
/// The value is deeper or larger than tables may be, or none for the cluster's name.
pub fn make_global(by: &Administrator<'_>, name: &str, value: &Value) -> Result<(), Refusal> {
    if name == "cluster_name" && !value.is_string() {
        return Err(Refusal::bad_request("the name of a cluster is text"));
    }
    let mut wrapped = Map::new();
    wrapped.insert("value".into(), value.clone());
    let mut within = Map::new();
    within.insert("value".into(), Value::Object(wrapped));
    crate::arguments::table(&within, "value", by.broker().limits())?;
    Ok(by.set_global(name, Some(field(value)))?)
}

fn delete_global(call: &Call<'_>) -> Result<Reply, Refusal> {
    let name = call.part("name");
    call.view.global(name).ok_or(Refusal::NotFound)?;
    call.administrator().set_global(name, None)?;
    Ok(Reply::empty(204))
}

fn cluster_name(call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::json(&json!({"name": call.api.broker.cluster_name()})))
}

fn put_cluster_name(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    make_global(&call.administrator(), "cluster_name", needed(&body, "name")?)?;
    Ok(Reply::empty(204))
}
