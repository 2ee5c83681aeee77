//! `/api/leveret`: what RabbitMQ's command line changes at a running node by other means than its HTTP API.

use crate::access::Right;
use crate::call::Call;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use serde_json::{Map, Value, json};

pub const ROUTES: &[Route] = &[
    Route {
        path: "/leveret/limits",
        verbs: &[
            ("GET", Right::Administrator, show_limits),
            ("PUT", Right::Administrator, limits),
        ],
    },
    Route {
        path: "/leveret/log-level",
        verbs: &[("PUT", Right::Administrator, log_level)],
    },
    Route {
        path: "/leveret/auth-backend-cache",
        verbs: &[("DELETE", Right::Administrator, clear_auth_cache)],
    },
    Route {
        path: "/leveret/service",
        verbs: &[
            ("GET", Right::Administrator, show_service),
            ("PUT", Right::Administrator, service),
        ],
    },
];

/// Bytes, as `{"absolute": n}` or as a part of all memory under another name.
fn bytes(call: &Call<'_>, member: &Value, relative: &str) -> Result<u64, Refusal> {
    if let Some(bytes) = member.get("absolute").and_then(Value::as_u64) {
        return Ok(bytes);
    }
    match member.get(relative).and_then(Value::as_f64) {
        Some(part) if (0.0..=100.0).contains(&part) => {
            Ok((call.api.options.total_memory as f64 * part) as u64)
        }
        _ => Err(Refusal::bad_request(format!(
            "a limit is {{\"absolute\": bytes}} or {{\"{relative}\": part of the memory}}"
        ))),
    }
}

/// The body, whose members are all known.
fn body(call: &Call<'_>, known: &[&str]) -> Result<Map<String, Value>, Refusal> {
    let body = call.json()?;
    match body.keys().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => Err(Refusal::bad_request(format!("{unknown} cannot be set here"))),
        None => Ok(body),
    }
}

fn clear_auth_cache(call: &Call<'_>) -> Result<Reply, Refusal> {
    match call.api.broker.clear_auth_cache() {
        true => Ok(Reply::empty(204)),
        false => Err(Refusal::bad_request(
            "no answers are cached on this node: none of its auth_backends is cache",
        )),
    }
}

fn limits(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = body(
        call,
        &[
            "memory_high_watermark",
            "disk_free_limit",
            "disk_monitoring",
            "memory_alarm",
            "disk_alarm",
            "channel_max",
        ],
    )?;
    set_by_hand(call, &body)?;
    let memory = body
        .get("memory_high_watermark")
        .map(|limit| bytes(call, limit, "relative"));
    let disk = body
        .get("disk_free_limit")
        .map(|limit| bytes(call, limit, "mem_relative"));
    let (memory, disk) = (memory.transpose()?, disk.transpose()?);
    let watched = flag(&body, "disk_monitoring")?;
    let broker = &call.api.broker;
    if let Some(bytes) = memory {
        broker.set_memory_high_watermark(bytes);
        tracing::info!(
            area = "management",
            "memory high watermark set to {bytes} bytes by {}",
            call.user.name
        );
    }
    if let Some(bytes) = disk {
        broker.set_disk_free_limit(bytes);
        tracing::info!(
            area = "management",
            "disk free limit set to {bytes} bytes by {}",
            call.user.name
        );
    }
    if let Some(watched) = watched {
        broker.watch_disk(watched);
        let is = if watched { "looked at" } else { "not looked at" };
        tracing::info!(
            area = "management",
            "free disk space is {is} from now on, by {}",
            call.user.name
        );
    }
    Ok(Reply::empty(204))
}

/// Alarms that are on whatever there is of memory and disk, and the channels that a connection is offered.
fn set_by_hand(call: &Call<'_>, body: &Map<String, Value>) -> Result<(), Refusal> {
    let (memory, disk) = (flag(body, "memory_alarm")?, flag(body, "disk_alarm")?);
    let channels = match body.get("channel_max") {
        None => None,
        Some(number) => match number.as_u64().and_then(|number| u16::try_from(number).ok()) {
            Some(number) => Some(number),
            None => return Err(Refusal::bad_request("channel_max is a number, 0 to 65535")),
        },
    };
    let broker = &call.api.broker;
    for (name, wanted) in [("memory", memory), ("disk", disk)] {
        if let Some(wanted) = wanted {
            let verb = if wanted { "raised" } else { "cleared" };
            let by = &call.user.name;
            tracing::warn!(area = "management", "{name} alarm {verb} by hand, by {by}");
        }
    }
    if memory.is_some() || disk.is_some() {
        broker.want_alarms(memory, disk);
    }
    if let Some(channels) = channels {
        broker.set_channel_max(channels);
    }
    Ok(())
}

fn show_limits(call: &Call<'_>) -> Result<Reply, Refusal> {
    let broker = &call.api.broker;
    let status = broker.status();
    Ok(Reply::json(&json!({
        "memory_high_watermark": status.memory_limit,
        "disk_free_limit": status.disk_free_limit,
        "memory_alarm": status.memory_alarm,
        "disk_alarm": status.disk_alarm,
        "channel_max": broker.channel_max(),
    })))
}

/// A member that is true or false, if it is there.
fn flag(body: &Map<String, Value>, name: &str) -> Result<Option<bool>, Refusal> {
    match body.get(name) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(Refusal::bad_request(format!("{name} is true or false"))),
    }
}

fn log_level(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = body(call, &["level"])?;
    let level = body.get("level").and_then(Value::as_str).unwrap_or_default();
    match (call.api.options.set_log_level)(level) {
        true => Ok(Reply::empty(204)),
        false => Err(Refusal::bad_request(format!(
            "level {level} is not supported. Try one of debug, info, warning, error, critical, none"
        ))),
    }
}

/// What is so although the cluster could not be told.
fn not_told(drained: bool, refusal: &broker::Refusal) -> Refusal {
    let is = match drained {
        true => {
            "the node takes no clients any more, but the other nodes don't know that it is in maintenance"
        }
        false => {
            "the node stays in maintenance until the other nodes know that it is not, or it is started again"
        }
    };
    Refusal::Internal(format!("{is}: {refusal}"))
}

/// Whether the node takes clients, and what is left on it of what has to be elsewhere before it may stop unnoticed.
fn show_service(call: &Call<'_>) -> Result<Reply, Refusal> {
    let broker = &call.api.broker;
    let leads = call.api.options.members.as_ref().map(|members| (members.leads)());
    let leads = leads.unwrap_or_default();
    let (connections, _) = broker.node_connections();
    Ok(Reply::json(&json!({
        "suspended": !broker.takes_clients(),
        "drained": broker.is_drained(),
        "connections": connections,
        "leads": leads.groups,
        "has_heir": leads.has_heir,
    })))
}

fn service(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = body(call, &["suspended", "drained"])?;
    let (suspended, drained) = (flag(&body, "suspended")?, flag(&body, "drained")?);
    let broker = &call.api.broker;
    if let Some(suspended) = suspended {
        broker.suspend_clients(suspended);
        tracing::info!(
            area = "management",
            "listeners suspended: {suspended}, by {}",
            call.user.name
        );
    }
    if let Some(drained) = drained {
        tracing::info!(
            area = "management",
            "maintenance mode: {drained}, by {}",
            call.user.name
        );
        broker
            .drain(drained)
            .map_err(|refusal| not_told(drained, &refusal))?;
    }
    Ok(Reply::empty(204))
}
