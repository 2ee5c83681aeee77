//! `/api/health/checks`: 200 if all is well, 503 if not, with the reason.

use crate::access::Right;
use crate::call::Call;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::Route;
use serde_json::{Value, json};

pub const ROUTES: &[Route] = &[
    Route {
        path: "/health/checks/alarms",
        verbs: &[("GET", Right::Management, alarms)],
    },
    Route {
        path: "/health/checks/local-alarms",
        verbs: &[("GET", Right::Management, alarms)],
    },
    Route {
        path: "/health/checks/virtual-hosts",
        verbs: &[("GET", Right::Management, well)],
    },
    Route {
        path: "/health/checks/node-is-quorum-critical",
        verbs: &[("GET", Right::Management, single_node)],
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
        verbs: &[("GET", Right::Management, well)],
    },
    Route {
        path: "/health/checks/is-in-service",
        verbs: &[("GET", Right::Management, in_service)],
    },
    Route {
        path: "/health/checks/below-node-connection-limit",
        verbs: &[("GET", Right::Management, well)],
    },
    Route {
        path: "/health/checks/ready-to-serve-clients",
        verbs: &[("GET", Right::Management, in_service)],
    },
    Route {
        path: "/health/checks/reached-target-cluster-size",
        verbs: &[("GET", Right::Management, well)],
    },
    Route {
        path: "/aliveness-test/:vhost",
        verbs: &[("GET", Right::Vhost, alive)],
    },
    Route {
        path: "/healthchecks/node",
        verbs: &[("GET", Right::Management, well)],
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

fn alive(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.vhost().map(|_| ok())
}

fn single_node(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::json(
        &json!({"status": "ok", "reason": "single node cluster"}),
    ))
}

/// A failed log is as good as no node: nothing can be made durable. One in maintenance takes nobody.
fn in_service(call: &Call<'_>) -> Result<Reply, Refusal> {
    let broker = &call.hall.broker;
    Ok(match (broker.status().log_failed, broker.takes_clients()) {
        (true, _) => failed(json!({"reason": "the write-ahead log failed"})),
        (false, false) => {
            failed(json!({"reason": "the node is in maintenance or its listeners are suspended"}))
        }
        (false, true) => ok(),
    })
}

fn alarms(call: &Call<'_>) -> Result<Reply, Refusal> {
    let status = call.hall.broker.status();
    let node = call.hall.options.node.as_str();
    let raised: Vec<Value> = [
        (status.memory_alarm, "memory"),
        (status.disk_alarm, "disk"),
        (status.log_failed, "log"),
    ]
    .into_iter()
    .filter(|(on, _)| *on)
    .map(|(_, resource)| json!({"node": node, "resource": resource}))
    .collect();
    Ok(match raised.is_empty() {
        true => ok(),
        false => failed(json!({"reason": "There are alarms in effect in the cluster", "alarms": raised})),
    })
}

fn port_listener(call: &Call<'_>) -> Result<Reply, Refusal> {
    let port: u16 = call
        .part("port")
        .parse()
        .map_err(|_| Refusal::bad_request("Invalid port"))?;
    let open: Vec<u16> = call
        .hall
        .options
        .listeners
        .iter()
        .map(|door| door.address.port())
        .collect();
    Ok(match open.contains(&port) {
        true => Reply::json(&json!({"status": "ok", "port": port})),
        false => failed(json!({"reason": "No active listener", "missing": port, "ports": open})),
    })
}

fn protocol_listener(call: &Call<'_>) -> Result<Reply, Refusal> {
    let mut open: Vec<&str> = call
        .hall
        .options
        .listeners
        .iter()
        .map(|door| door.protocol)
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

/// There is no certificate that could expire.
fn certificates(call: &Call<'_>) -> Result<Reply, Refusal> {
    if !["days", "weeks", "months", "years"].contains(&call.part("unit")) {
        return Err(Refusal::bad_request(
            "Time unit not recognised. Supported units: days, weeks, months, years.",
        ));
    }
    match call.part("within").parse::<u64>() {
        Ok(_) => Ok(ok()),
        Err(_) => Err(Refusal::bad_request("Invalid expiration value.")),
    }
}
