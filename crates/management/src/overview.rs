//! `/api/overview`, `/api/whoami` and other words about the node as a whole.

use crate::access::Right;
use crate::call::{Api, Call};
use crate::json as tables;
use crate::listing::object;
use crate::message_stats::{add_losses, message_stats};
use crate::options::HTTP;
use crate::others::{self, Question};
use crate::range::Kind;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::samples::NODE_CHURN;

use broker::{CLUSTER_TAGS, ExchangeKind, Vhost, View};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub const ROUTES: &[Route] = &[
    Route {
        path: "/overview",
        verbs: &[("GET", Right::Management, overview)],
    },
    Route {
        path: "/whoami",
        verbs: &[("GET", Right::Management, whoami)],
    },
    Route {
        path: "/version",
        verbs: &[("GET", Right::Anyone, version)],
    },
    Route {
        path: "/extensions",
        verbs: &[("GET", Right::Management, none)],
    },
];

/// The exchange types that there are.
pub fn exchange_types() -> Value {
    ExchangeKind::all()
        .map(|kind| json!({"name": kind.name(), "description": kind.description(), "enabled": true}))
        .collect()
}

/// Pages of the API that have an address of their own.
pub fn contexts(api: &Api, with_node: bool) -> Value {
    let path = match api.options.path_prefix.as_str() {
        "" => "/",
        prefix => prefix,
    };
    let endpoints = api
        .options
        .listeners
        .iter()
        .filter(|endpoint| endpoint.protocol == HTTP);
    endpoints
        .map(|endpoint| {
            let (ip, port) = (endpoint.address.host(), endpoint.address.port().to_string());
            let mut context =
                json!({"description": "Leveret HTTP API", "path": path, "ip": ip, "port": port});
            if with_node {
                context["node"] = api.options.node.as_str().into();
                context["ssl_opts"] = json!([]);
            }
            context
        })
        .collect()
}

fn whoami(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (name, tags) = (&*call.user.name, &call.user.tags);
    Ok(Reply::json(
        &json!({"name": name, "tags": tags, "is_internal_user": call.user.is_internal()}),
    ))
}

fn version(call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::json(&call.api.options.rabbitmq_version.as_str().into()))
}

/// A list of things that this node has none of.
pub fn none(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::json(&json!([])))
}

fn overview(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.check_samples("bad_request")?;
    let options = &call.api.options;
    let version = options.rabbitmq_version.as_str();
    let mut overview = json!({
        "management_version": version,
        "rates_mode": "basic",
        "sample_retention_policies": {"global": [86400], "basic": [600], "detailed": [600]},
        "exchange_types": exchange_types(),
        "product_version": env!("CARGO_PKG_VERSION"),
        "product_name": "Leveret",
        "rabbitmq_version": version,
        "cluster_name": call.api.broker.cluster_name(),
        "cluster_tags": cluster_tags(&call.view),
        "node_tags": options.node_tags,
        "erlang_version": "",
        "erlang_full_version": "",
        "crypto_lib_version": "",
        "disable_stats": options.disable_stats || call.is_quiet(),
        "default_queue_type": call.api.broker.default_queue_type().name(),
        "is_op_policy_updating_enabled": true,
        "enable_queue_totals": options.enable_queue_totals,
        "node": options.node,
    });
    let vhosts = match call.is_monitor() {
        true => call.view.vhosts().collect(),
        false => call.visible_vhosts()?,
    };
    overview["object_totals"] = object_totals(call, &vhosts);
    if call.is_quiet() {
        add_others(call, &vhosts, &mut overview);
        return Ok(object(&call.query, overview));
    }
    overview["statistics_db_event_queue"] = 0.into();
    overview["queue_totals"] = totals(call, &vhosts);
    overview["message_stats"] = node_stats(call);
    overview["churn_rates"] = churn(call);
    if call.is_monitor() {
        overview["listeners"] = listeners(call.api);
        overview["contexts"] = contexts(call.api, true);
    }
    add_others(call, &vhosts, &mut overview);
    Ok(object(&call.query, overview))
}

/// Adds what other nodes count and where they listen.
fn add_others(call: &Call<'_>, vhosts: &[&Arc<Vhost>], overview: &mut Value) {
    let names = || vhosts.iter().map(|vhost| Value::from(&*vhost.name)).collect();
    let question = Question {
        body: json!({"vhosts": if call.is_monitor() { Value::Null } else { names() }}),
        ..Question::whole(call)
    };
    for (_, told) in others::ask_all(call, &question) {
        for counted in ["queue_totals", "message_stats", "churn_rates"] {
            if let Some(sum) = overview.get_mut(counted) {
                others::add(sum, &told[counted]);
            }
        }
        for counted in ["connections", "channels", "consumers"] {
            if let Some(sum) = overview["object_totals"].get_mut(counted) {
                others::add(sum, &told["object_totals"][counted]);
            }
        }
        for list in ["listeners", "contexts"] {
            if let (Some(Value::Array(known)), Value::Array(more)) = (overview.get_mut(list), &told[list]) {
                known.extend(more.iter().cloned());
            }
        }
    }
}

/// What operators say about the cluster; nothing if that has no names.
fn cluster_tags(view: &View) -> Value {
    let tags = view.global(CLUSTER_TAGS).map(tables::value);
    tags.filter(Value::is_object).unwrap_or_else(|| json!({}))
}

fn object_totals(call: &Call<'_>, vhosts: &[&Arc<Vhost>]) -> Value {
    let sum = |count: fn(&Vhost) -> usize| vhosts.iter().map(|vhost| count(vhost)).sum::<usize>();
    let mut totals = json!({
        "exchanges": sum(Vhost::exchange_count),
        "queues": sum(Vhost::queue_count),
    });
    let connections = crate::connections::visible(call);
    totals["connections"] = connections.len().into();
    if call.is_quiet() {
        return totals;
    }
    let channels = connections.iter().map(|connection| connection.channel_count());
    totals["channels"] = channels.sum::<usize>().into();
    totals["consumers"] = consumers(call, vhosts).into();
    totals
}

fn consumers(call: &Call<'_>, vhosts: &[&Arc<Vhost>]) -> u64 {
    let broker = &call.api.broker;
    if vhosts.len() == call.view.vhosts().count() {
        return broker.queue_totals().consumers;
    }
    let queues = vhosts.iter().flat_map(|vhost| vhost.queues());
    queues
        .filter_map(|queue| broker.queues().here(queue.id))
        .map(|queue| queue.status().consumers)
        .sum()
}

/// The messages in these virtual hosts. What the whole node holds is counted as it changes; a part of it is added up.
pub fn totals(call: &Call<'_>, vhosts: &[&Arc<Vhost>]) -> Value {
    let broker = &call.api.broker;
    let (ready, unacked) = if vhosts.len() == call.view.vhosts().count() {
        let all = broker.queue_totals();
        (all.ready, all.unacked)
    } else {
        let queues = vhosts.iter().flat_map(|vhost| vhost.queues());
        queues
            .filter_map(|queue| broker.queues().here(queue.id))
            .map(|queue| queue.status())
            .fold((0, 0), |(ready, unacked), status| {
                (ready + status.ready, unacked + status.unacked)
            })
    };
    let samples = call.api.sampler.samples();
    let history = match vhosts {
        [vhost] => samples.vhosts.get(&*vhost.name),
        _ => samples.node.as_ref(),
    };
    let rates = call.rates(&samples, history);
    let mut map = Map::new();
    for (name, value, places) in [
        ("messages", ready + unacked, &[0, 1][..]),
        ("messages_ready", ready, &[0]),
        ("messages_unacknowledged", unacked, &[1]),
    ] {
        rates.put(&mut map, Kind::Lengths, name, value, places);
    }
    Value::Object(map)
}

/// What happened to messages on the whole node.
fn node_stats(call: &Call<'_>) -> Value {
    let samples = call.api.sampler.samples();
    let rates = call.rates(&samples, samples.node.as_ref());
    let total = call.api.broker.stats().total();
    let mut stats = message_stats(&rates, &total.named(), 2);
    let rates = call.rates(&samples, samples.node_losses.as_ref());
    add_losses(&mut stats, &rates, call.api.broker.losses().numbers());
    stats.unwrap_or_else(|| json!({}))
}

/// As in RabbitMQ its samples are those that `lengths_age` asks for.
fn churn(call: &Call<'_>) -> Value {
    let samples = call.api.sampler.samples();
    let rates = call.rates(&samples, samples.node.as_ref());
    let mut map = Map::new();
    for (at, (name, count)) in call.api.broker.stats().churn().named().into_iter().enumerate() {
        rates.put(&mut map, Kind::Lengths, name, count, &[NODE_CHURN + at]);
    }
    Value::Object(map)
}

fn listeners(api: &Api) -> Value {
    let endpoints = api.options.listeners.iter();
    endpoints
        .map(|endpoint| {
            json!({
                "node": api.options.node,
                "protocol": endpoint.listed_protocol(),
                "ip_address": endpoint.address.host(),
                "port": endpoint.address.port(),
                "socket_opts": {},
                "tls": endpoint.tls.is_some(),
            })
        })
        .collect()
}
