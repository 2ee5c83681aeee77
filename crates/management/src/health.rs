//! `/api/health/checks`: 200 if all is well, 503 if not, with the reason.

use crate::access::Right;
use crate::call::Call;
use crate::copies;
use crate::others::{self, Question};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::stop_impact::decide_without;
use broker::QueueView;
use listener::expiry::ending_within;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

pub const ROUTES: &[Route] = &[
    Route {
        path: "/health/checks/alarms",
        verbs: &[("GET", Right::Management, alarms)],
    },
    Route {
        path: "/health/checks/local-alarms",
        verbs: &[("GET", Right::Management, local_alarms)],
    },
    Route {
        path: "/health/checks/virtual-hosts",
        verbs: &[("GET", Right::Management, well)],
    },
    Route {
        path: "/health/checks/node-is-quorum-critical",
        verbs: &[("GET", Right::Management, quorum_critical)],
    },
    Route {
        path: "/health/checks/node-is-mirror-sync-critical",
        verbs: &[("GET", Right::Management, mirror_critical)],
    },
    Route {
        path: "/health/checks/port-listener/:port",
        verbs: &[("GET", Right::Management, port_listener)],
    },
    Route {
        path: "/health/checks/protocol-listener/:protocols",
        verbs: &[("GET", Right::Management, protocol_listener)],
    },
    Route {
        path: "/health/checks/certificate-expiration/:within/:unit",
        verbs: &[("GET", Right::Management, certificates)],
    },
    Route {
        path: "/health/checks/metadata-store/initialized",
        verbs: &[("GET", Right::Management, well)],
    },
    Route {
        path: "/health/checks/metadata-store/initialized/with-data",
        verbs: &[("GET", Right::Management, well)],
    },
    Route {
        path: "/health/checks/quorum-queues-without-elected-leaders/all-vhosts",
        verbs: &[("GET", Right::Management, well)],
    },
    Route {
        path: "/health/checks/quorum-queues-without-elected-leaders/vhost/:vhost",
        verbs: &[("GET", Right::VhostOrMonitor, well)],
    },
    Route {
        path: "/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/:pattern",
        verbs: &[("GET", Right::Management, well)],
    },
    Route {
        path: "/health/checks/quorum-queues-without-elected-leaders/vhost/:vhost/pattern/:pattern",
        verbs: &[("GET", Right::VhostOrMonitor, well)],
    },
    Route {
        path: "/health/checks/is-in-service",
        verbs: &[("GET", Right::Anyone, in_service)],
    },
    Route {
        path: "/health/checks/below-node-connection-limit",
        verbs: &[("GET", Right::Anyone, below_connection_limit)],
    },
    Route {
        path: "/health/checks/ready-to-serve-clients",
        verbs: &[("GET", Right::Anyone, ready_to_serve)],
    },
    Route {
        path: "/health/checks/reached-target-cluster-size",
        verbs: &[("GET", Right::Anyone, has_target_size)],
    },
    Route {
        path: "/aliveness-test/:vhost",
        verbs: &[("GET", Right::Vhost, alive)],
    },
    Route {
        path: "/healthchecks/node",
        verbs: &[("GET", Right::Management, well)],
    },
    Route {
        path: "/healthchecks/node/:node",
        verbs: &[("GET", Right::Management, this_node)],
    },
];

fn ok() -> Reply {
    Reply::json(&json!({"status": "ok"}))
}

fn failed(mut body: Value) -> Reply {
    body["status"] = "failed".into();
    Reply::with_status(503, &body)
}

fn well(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(ok())
}

fn has_target_size(call: &Call<'_>) -> Result<Reply, Refusal> {
    let target = call.api.options.target_cluster_size;
    let members = call.members();
    let online = members.iter().filter(|member| member.is_running).count();
    Ok(match online >= target as usize {
        true => ok(),
        false => failed(json!({
            "reason": format!("target cluster size not reached: {online} of {target} nodes are online"),
            "target": target,
            "online": online,
        })),
    })
}

fn this_node(call: &Call<'_>) -> Result<Reply, Refusal> {
    match *call.part("node") == *call.api.options.node {
        true => Ok(ok()),
        false => Err(Refusal::NotFound),
    }
}

fn alive(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhost = call.vhost()?;
    // RabbitMQ's test goes through the virtual host as the asker, whatever their tags are.
    match call.operator || call.user.enters(&call.view, &vhost.name) {
        true => Ok(ok()),
        false => Err(Refusal::not_authorised("Access refused.")),
    }
}

/// Whether what a majority decides goes on without this node: definitions, and queues that several nodes have. RabbitMQ names
/// its store of them in the list of queues that would not.
fn quorum_critical(call: &Call<'_>) -> Result<Reply, Refusal> {
    let members = call.members();
    if members.len() == 1 {
        return Ok(Reply::json(
            &json!({"status": "ok", "reason": "single node cluster"}),
        ));
    }
    let own = call.api.broker.own_node();
    let lost = copies::lost_without(call, own).into_iter().map(named);
    let definitions = json!({
        "name": "rabbitmq_metadata", "readable_name": "rabbitmq_metadata",
        "virtual_host": "(not applicable)", "type": "process",
    });
    let definitions = (!decide_without(&members, &call.api.options.node)).then_some(definitions);
    let lost: Vec<Value> = lost.chain(definitions).collect();
    Ok(match lost.is_empty() {
        true => ok(),
        false => failed(json!({
            "reason": "There are quorum queues that would lose their quorum if the target node is shut down",
            "queues": lost,
        })),
    })
}

/// RabbitMQ 3's check: whether mirrored queues would stop without this node. Here those do that a majority of their members is
/// needed for, and those that have no mirrors, though a policy is for them.
fn mirror_critical(call: &Call<'_>) -> Result<Reply, Refusal> {
    if call.members().len() == 1 {
        return Ok(Reply::json(
            &json!({"status": "ok", "reason": "single node cluster"}),
        ));
    }
    let own = call.api.broker.own_node();
    let lost = copies::lost_without(call, own).into_iter();
    let lost = lost.filter(|queue| queue.is_mirrorable());
    let lost: Vec<Value> = lost.chain(copies::unmirrored(call, own)).map(named).collect();
    Ok(match lost.is_empty() {
        true => ok(),
        false => failed(json!({
            "reason": "There are classic mirrored queues without online synchronised mirrors",
            "queues": lost,
        })),
    })
}

fn named(queue: &Arc<QueueView>) -> Value {
    json!({
        "name": queue.name.to_string(),
        "readable_name": format!("queue '{}' in vhost '{}'", queue.name, queue.vhost),
        "virtual_host": queue.vhost.to_string(), "type": queue.kind.module(),
    })
}

fn below_connection_limit(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (connections, limit) = call.api.broker.node_connections();
    Ok(match limit.filter(|limit| connections >= *limit) {
        None => ok(),
        Some(limit) => failed(json!({
            "reason": "node connection limit is reached", "limit": limit, "connections": connections,
        })),
    })
}

/// A failed log is as good as no node: nothing can be made durable. One in maintenance takes nobody, and one without a majority
/// lets nobody publish.
fn in_service(call: &Call<'_>) -> Result<Reply, Refusal> {
    let closed = "this rabbit node is not currently available to serve";
    Ok(match out_of_service(call, closed) {
        None => ok(),
        Some(reason) => {
            // Ours: such a node runs.
            let is_drained = reason == closed && call.api.broker.is_drained();
            failed(json!({"reason": reason, "is_under_maintenance": is_drained}))
        }
    })
}

/// Why the node serves nobody; `closed` if it is to be so.
fn out_of_service(call: &Call<'_>, closed: &'static str) -> Option<&'static str> {
    let broker = &call.api.broker;
    if broker.status().log_failed {
        Some("the write-ahead log failed")
    } else if broker.is_drained() || !broker.takes_clients() {
        Some(closed)
    } else if broker.is_cut_off() {
        Some(
            "this node reaches no majority of the cluster's nodes: nothing can be published or declared through it",
        )
    } else {
        None
    }
}

/// It is in service, listens for clients of AMQP, and lets further ones in.
fn ready_to_serve(call: &Call<'_>) -> Result<Reply, Refusal> {
    let listeners = &call.api.options.listeners;
    if let Some(reason) = out_of_service(call, "the rabbit node is not currently available to serve") {
        return Ok(failed(json!({"reason": reason})));
    }
    if !listeners
        .iter()
        .any(|it| matches!(it.listed_protocol(), "amqp" | "amqp/ssl"))
    {
        return Ok(failed(json!({"reason": "no active listeners for AMQP/AMQPS"})));
    }
    let (connections, limit) = call.api.broker.node_connections();
    Ok(match limit.is_some_and(|limit| connections >= limit) {
        false => ok(),
        true => failed(json!({"reason": "node connection limit is reached", "connections": connections})),
    })
}

/// Alarms of all nodes that answer.
fn alarms(call: &Call<'_>) -> Result<Reply, Refusal> {
    let mut raised = raised(call);
    let question = Question::get("/api/health/checks/local-alarms");
    let nodes = others::running(call);
    let questions = nodes.into_iter().map(|node| (node, question.clone()));
    for answer in others::ask(call, questions.collect()).into_iter().flatten() {
        let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        raised.extend(told["alarms"].as_array().into_iter().flatten().cloned());
    }
    Ok(match raised.is_empty() {
        true => ok(),
        false => failed(json!({"reason": "There are alarms in effect in the cluster", "alarms": raised})),
    })
}

fn local_alarms(call: &Call<'_>) -> Result<Reply, Refusal> {
    let raised = raised(call);
    Ok(match raised.is_empty() {
        true => ok(),
        false => failed(json!({"reason": "There are alarms in effect on the node", "alarms": raised})),
    })
}

fn raised(call: &Call<'_>) -> Vec<Value> {
    let status = call.api.broker.status();
    let node = call.api.options.node.as_str();
    [
        (status.memory_alarm, "memory"),
        (status.disk_alarm, "disk"),
        (status.log_failed || status.log_stalled, "log"),
    ]
    .into_iter()
    .filter(|(on, _)| *on)
    .map(|(_, resource)| json!({"node": node, "resource": resource}))
    .collect()
}

fn port_listener(call: &Call<'_>) -> Result<Reply, Refusal> {
    let port: u16 = call
        .part("port")
        .parse()
        .map_err(|_| Refusal::bad_request("Invalid port"))?;
    let open: Vec<u16> = call
        .api
        .options
        .listeners
        .iter()
        .filter_map(|endpoint| endpoint.address.network())
        .map(|address| address.port())
        .collect();
    Ok(match open.contains(&port) {
        true => Reply::json(&json!({"status": "ok", "port": port})),
        false => failed(json!({"reason": "No active listener", "missing": port, "ports": open})),
    })
}

fn protocol_listener(call: &Call<'_>) -> Result<Reply, Refusal> {
    let mut open: Vec<&str> = call
        .api
        .options
        .listeners
        .iter()
        .map(|endpoint| endpoint.listed_protocol())
        .collect();
    open.sort_unstable();
    open.dedup();
    // RabbitMQ takes AMQP 0-9-1 and 1.0 under one name and several for it.
    let real = |name: &str| match name {
        "amqp091" | "amqp0.9.1" | "amqp" => "amqp".to_owned(),
        other => other.to_owned(),
    };
    let missing: Vec<&str> = call
        .part("protocols")
        .split(',')
        .filter(|name| !open.contains(&real(name).as_str()))
        .collect();
    Ok(match missing.is_empty() {
        true => Reply::json(&json!({"status": "ok", "protocols": open})),
        false => failed(json!({"reason": "No active listener", "missing": missing, "protocols": open})),
    })
}

/// How many seconds a unit has, as RabbitMQ counts: a month is a twelfth of 365 days.
fn seconds(unit: &str) -> Option<u64> {
    const DAY: u64 = 86_400;
    match unit {
        "days" => Some(DAY),
        "weeks" => Some(7 * DAY),
        "months" => Some(365 * DAY / 12),
        "years" => Some(365 * DAY),
        _ => None,
    }
}

/// Looks at the files that the open listeners took their certificates from, as they are now.
fn certificates(call: &Call<'_>) -> Result<Reply, Refusal> {
    let within = call.part("within").parse::<u64>();
    let within = within.map_err(|_| Refusal::bad_request("Invalid expiration value."))?;
    let unit = seconds(&call.part("unit").to_lowercase()).ok_or_else(|| {
        Refusal::bad_request("Time unit not recognised. Supported units: days, weeks, months, years.")
    })?;
    let within = Duration::from_secs(within.saturating_mul(unit));
    let endpoints = call.api.options.listeners.iter();
    let expired: Vec<Value> = endpoints
        .filter_map(|endpoint| {
            let options = endpoint.tls.as_ref()?.options();
            let files = [&options.certificate, &options.authorities];
            let ending = files.map(|file| match file {
                Some(path) => ending_within(path, within),
                None => Vec::new(),
            });
            let [own, authorities] = &ending;
            let shown = files.map(|file| file.as_ref().map(|path| path.display().to_string()));
            (ending.iter().any(|ends| !ends.is_empty())).then(|| {
                json!({
                    "node": call.api.options.node,
                    "protocol": endpoint.listed_protocol(),
                    "interface": endpoint.address.host(),
                    "port": endpoint.address.port(),
                    "certfile": shown[0],
                    "cacertfile": shown[1],
                    "certfile_expires_on": own,
                    "cacertfile_expires_on": authorities,
                })
            })
        })
        .collect();
    Ok(match expired.is_empty() {
        true => ok(),
        false => failed(json!({"reason": "Certificates expiring", "expired": expired})),
    })
}
