//! `/api/vhosts`.

use crate::access::Right;
use crate::call::Call;
use crate::listing::{List, object};
use crate::message_stats::message_stats;
use crate::overview::totals;
use crate::range::Kind;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::Route;
use crate::samples::VHOST_BYTES;
use broker::sight::Totals;
use broker::{Permissions, Vhost};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub const ROUTES: &[Route] = &[
    Route {
        path: "/vhosts",
        verbs: &[("GET", Right::Management, list)],
    },
    Route {
        path: "/vhosts/:vhost",
        verbs: &[
            ("GET", Right::Administrator, one),
            ("PUT", Right::Administrator, put),
            ("DELETE", Right::Administrator, delete),
        ],
    },
];

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    let seen = |vhost: &&Arc<Vhost>| call.is_monitor() || call.may_enter(&vhost.name);
    let vhosts: Vec<_> = call.view.vhosts().filter(seen).collect();
    let total = vhosts.len();
    let list = List {
        name: &|vhost: &&Arc<Vhost>| &vhost.name,
        row: &|vhost: &&Arc<Vhost>| row(call, vhost),
        member: &|vhost, path| (path == "name").then(|| Value::from(&*vhost.name)),
    };
    list.reply(&call.query, vhosts.into_iter(), total)
}

fn one(call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(object(&call.query, row(call, call.vhost()?)))
}

/// Creates a virtual host; who asks may do everything in it (an operator may anyhow). Descriptions and the like are not kept by this version.
fn put(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    refuse_what_is_not_kept(&body)?;
    let name = call.part("vhost");
    let tracing = match body.get("tracing") {
        None | Some(Value::Null) => None,
        Some(Value::Bool(on)) => Some(*on),
        Some(_) => return Err(Refusal::bad_request("tracing must be true or false")),
    };
    let broker = &call.hall.broker;
    let known = call.view.vhost(name).is_some();
    if !known {
        broker.create_vhost(name)?;
        if !call.operator {
            broker.set_permissions(&call.user.name, name, Permissions::all())?;
        }
    }
    if let Some(on) = tracing {
        broker.trace(name, on)?;
    }
    Ok(Reply::empty(if known { 204 } else { 201 }))
}

/// Whoever asks for something that would silently not be so is told.
///
/// # Errors
/// The body asks for such a thing.
pub fn refuse_what_is_not_kept(body: &Map<String, Value>) -> Result<(), Refusal> {
    let nothing = |value: &Value| {
        matches!(value, Value::Null | Value::Bool(false))
            || value
                .as_str()
                .is_some_and(|text| matches!(text, "" | "classic" | "undefined"))
            || value.as_array().is_some_and(Vec::is_empty)
    };
    let kept = [
        "description",
        "tags",
        "default_queue_type",
        "protected_from_deletion",
    ];
    match kept
        .iter()
        .find(|name| body.get(**name).is_some_and(|value| !nothing(value)))
    {
        Some(name) => Err(Refusal::bad_request(format!(
            "{name} of virtual hosts is not part of this version"
        ))),
        None => Ok(()),
    }
}

fn delete(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.hall.broker.delete_vhost(&call.vhost()?.name)?;
    Ok(Reply::empty(204))
}

fn row(call: &Call<'_>, vhost: &Arc<Vhost>) -> Value {
    let mut row = match totals(call, &[vhost]) {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    let fixed = json!({
        "name": &*vhost.name,
        "description": "",
        "tags": [],
        "default_queue_type": "classic",
        "protected_from_deletion": false,
        "metadata": {"description": "", "tags": [], "default_queue_type": "classic"},
        "tracing": call.hall.broker.is_traced(&vhost.name),
        "cluster_state": {call.hall.options.node.as_str(): "running"},
    });
    if let Value::Object(fixed) = fixed {
        row.extend(fixed);
    }
    // Figures of many connections: those of the last sample.
    let samples = call.hall.sampler.samples();
    let history = samples.vhosts.get(&*vhost.name);
    let rates = call.rates(&samples, history);
    let sampled = |place| history.map_or(0, |history| history.at(samples.now, &[place]));
    rates.put(
        &mut row,
        Kind::Bytes,
        "recv_oct",
        sampled(VHOST_BYTES),
        &[VHOST_BYTES],
    );
    rates.put(
        &mut row,
        Kind::Bytes,
        "send_oct",
        sampled(VHOST_BYTES + 1),
        &[VHOST_BYTES + 1],
    );
    let counts: Vec<_> = Totals::NAMES.into_iter().zip((2..).map(sampled)).collect();
    if let Some(stats) = message_stats(&rates, &counts, 2) {
        row.insert("message_stats".into(), stats);
    }
    Value::Object(row)
}
