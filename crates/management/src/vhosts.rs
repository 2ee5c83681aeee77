//! `/api/vhosts`.

use crate::access::Right;
use crate::arguments::{boolean, text};
use crate::call::{BAD_RANGE, Call};
use crate::listing::{List, object};
use crate::message_stats::message_stats;
use crate::others::{self, Question};
use crate::overview::totals;
use crate::range::Kind;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::samples::VHOST_BYTES;
use crate::trace;
use crate::users;
use broker::stats::ChannelCounts;
use broker::{Metadata, Permissions, QueueKind, Vhost};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
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
    Route {
        path: "/vhosts/:vhost/deletion/protection",
        verbs: &[
            ("POST", Right::Administrator, protect),
            ("DELETE", Right::Administrator, release),
        ],
    },
];

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.check_samples(BAD_RANGE)?;
    let vhosts = call.watched_vhosts()?;
    let total = vhosts.len();
    // Others do not know what the asker may see: tokens and other backends say so.
    let names: Vec<&str> = vhosts.iter().map(|vhost| &*vhost.name).collect();
    let told = told(call, json!({"vhosts": names})).into_iter();
    let told: Vec<BTreeMap<String, Value>> = told.map(by_name).collect();
    let list = List {
        name: &|vhost: &&Arc<Vhost>| &vhost.name,
        row: &|vhost: &&Arc<Vhost>| {
            let mut row = row(call, vhost);
            let others = told.iter().filter_map(|told| told.get(&*vhost.name));
            others.for_each(|other| others::add(&mut row, other));
            row
        },
        member: &|vhost, path| (path == "name").then(|| Value::from(&*vhost.name)),
    };
    list.reply(&call.query, call.cut, vhosts.into_iter(), total)
}

fn one(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhost = call.vhost()?;
    call.check_samples("bad_request")?;
    let mut row = row(call, vhost);
    let told = told(call, Value::Null);
    told.iter().for_each(|other| others::add(&mut row, other));
    Ok(object(&call.query, row))
}

/// What other nodes count in the virtual hosts that the request is about.
fn told(call: &Call<'_>, body: Value) -> Vec<Value> {
    let question = Question::again(call);
    // Of each virtual host they tell what they count alone.
    let query = question.query.into_iter();
    let query = query.filter(|(name, _)| !["columns", "page", "page_size", "sort"].contains(&name.as_str()));
    let columns = ("columns".to_owned(), FIGURES.to_owned());
    let question = Question {
        query: query.chain([columns]).collect(),
        body,
        ..question
    };
    let told = others::ask_all(call, &question).into_iter();
    told.map(|(_, told)| told).collect()
}

fn by_name(told: Value) -> BTreeMap<String, Value> {
    let rows = match told {
        Value::Array(rows) => rows,
        _ => Vec::new(),
    };
    let named = rows.into_iter();
    named
        .filter_map(|row| Some((row.get("name")?.as_str()?.to_owned(), row)))
        .collect()
}

/// What each node counts in a virtual host, or says of it for itself.
const FIGURES: &str = "name,cluster_state,messages,messages_details,messages_ready,messages_ready_details,messages_unacknowledged,\
                       messages_unacknowledged_details,recv_oct,recv_oct_details,send_oct,send_oct_details,message_stats";

/// Creates a virtual host, or says anew what it is for; who makes one may do everything in it (an operator may anyhow).
fn put(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let name = call.part("vhost");
    let tracing = match body.get("tracing") {
        None | Some(Value::Null) => None,
        // Also as a word, which rabbitmqadmin sends.
        Some(_) => Some(boolean(&body, "tracing")?),
    };
    let known = call.view.vhost(name);
    let metadata = metadata(&body, known.is_some_and(|vhost| vhost.metadata().protected))?;
    let by = call.administrator();
    if known.is_none() {
        by.create_vhost(name)?;
        if !call.operator {
            by.set_permissions(&call.user.name, name, Permissions::all())?;
        }
    }
    by.describe_vhost(name, metadata)?;
    if let Some(on) = tracing {
        trace::trace(call, name, on)?;
    }
    Ok(Reply::empty(if known.is_some() { 204 } else { 201 }))
}

/// What an object of JSON says about a virtual host. What it doesn't name is empty, as in RabbitMQ.
///
/// # Errors
/// A member has another form.
pub fn metadata(object: &Map<String, Value>, protected: bool) -> Result<Metadata, Refusal> {
    Ok(Metadata {
        description: text(object, "description")?.unwrap_or_default().to_owned(),
        tags: match object.get("tags") {
            None | Some(Value::Null) => Vec::new(),
            Some(tags) => users::tags(tags)?,
        },
        protected,
        default_queue_type: default_queue_type(object)?,
    })
}

/// What queues are by default; nothing if that is left to the node.
///
/// # Errors
/// There are no such queues, or not in this version: whoever asks for something that would silently not be so is told.
fn default_queue_type(body: &Map<String, Value>) -> Result<Option<QueueKind>, Refusal> {
    match text(body, "default_queue_type")? {
        None | Some("undefined") => Ok(None),
        Some("") => Err(Refusal::bad_request(
            "default_queue_type must not be an empty string",
        )),
        Some(named) => match QueueKind::from_name(named) {
            Some(kind) => Ok(Some(kind)),

            None => Err(Refusal::bad_request(format!("{named} is not a valid queue type"))),
        },
    }
}

fn delete(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.administrator().delete_vhost(&call.vhost()?.name)?;
    Ok(Reply::empty(204))
}

fn protect(call: &Call<'_>) -> Result<Reply, Refusal> {
    set_protection(call, true)
}

fn release(call: &Call<'_>) -> Result<Reply, Refusal> {
    set_protection(call, false)
}

fn set_protection(call: &Call<'_>, protected: bool) -> Result<Reply, Refusal> {
    let vhost = call.vhost()?;
    let metadata = Metadata {
        protected,
        ..vhost.metadata().clone()
    };
    call.administrator().describe_vhost(&vhost.name, metadata)?;
    Ok(Reply::empty(204))
}

/// What queues are that are declared without a type: where the virtual host says nothing, what the node does.
fn kind_in_force(vhost: &Vhost, default: QueueKind) -> QueueKind {
    vhost.metadata().default_queue_type.unwrap_or(default)
}

/// What is said about a virtual host, as RabbitMQ's member `metadata` has it.
pub fn metadata_row(vhost: &Vhost, default: QueueKind) -> Value {
    let said = vhost.metadata();
    let kind = kind_in_force(vhost, default);
    let mut row =
        json!({"description": said.description, "tags": said.tags, "default_queue_type": kind.name()});
    if said.protected {
        row["protected_from_deletion"] = true.into();
    }
    row
}

fn row(call: &Call<'_>, vhost: &Arc<Vhost>) -> Value {
    let default = call.api.broker.default_queue_type();
    let declared = json!({
        "name": &*vhost.name,
        "description": vhost.metadata().description,
        "tags": vhost.metadata().tags,
        "default_queue_type": kind_in_force(vhost, default).name(),
        "protected_from_deletion": vhost.metadata().protected,
        "metadata": metadata_row(vhost, default),
        "tracing": call.api.broker.is_traced(&vhost.name),
        "cluster_state": {call.api.options.node.as_str(): "running"},
    });
    let mut row = match totals(call, &[vhost]) {
        _ if call.is_quiet() => return declared,
        Value::Object(map) => map,
        _ => Map::new(),
    };
    if let Value::Object(declared) = declared {
        row.extend(declared);
    }
    // Figures of many connections: those of the last sample.
    let samples = call.api.sampler.samples();
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
    let counts: Vec<_> = ChannelCounts::NAMES.into_iter().zip((2..).map(sampled)).collect();
    if let Some(stats) = message_stats(&rates, &counts, 2) {
        row.insert("message_stats".into(), stats);
    }
    Value::Object(row)
}
