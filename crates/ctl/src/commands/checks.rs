//! Health checks: the exit code says whether all is well.

use super::node::{alarm_line, listeners_of};
use super::text;
use crate::ask::{Ask, encode};
use crate::command::{Command, Section::Monitoring};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE};
use crate::output::Output;
use crate::tool::Tool;
use serde_json::{Value, json};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Only one tool has most checks.
const CHECKS: &[Tool] = &[Tool::Diagnostics];

pub const COMMANDS: &[Command] = &[
    Command::new(
        Monitoring,
        "check_running",
        (0, 0),
        "[--timeout <timeout>]",
        running,
    )
    .about("Fails if the node is not running")
    .of(CHECKS),
    Command::new(
        Monitoring,
        "is_running",
        (0, 0),
        "[--timeout <timeout>]",
        is_running,
    )
    .about("Reports whether the node is running")
    .of(CHECKS),
    Command::new(
        Monitoring,
        "is_booting",
        (0, 0),
        "[--timeout <timeout>]",
        is_booting,
    )
    .about("Reports whether the node is still starting")
    .of(CHECKS),
    Command::new(
        Monitoring,
        "check_alarms",
        (0, 0),
        "[--timeout <timeout>]",
        check_alarms,
    )
    .about("Fails if there is a memory or disk alarm, or the write-ahead log has failed")
    .of(CHECKS),
    Command::new(
        Monitoring,
        "check_local_alarms",
        (0, 0),
        "[--timeout <timeout>]",
        check_local_alarms,
    )
    .about("Like check_alarms, for this node only")
    .of(CHECKS),
    Command::new(Monitoring, "alarms", (0, 0), "[--timeout <timeout>]", alarms)
        .about("Lists active alarms")
        .of(CHECKS),
    Command::new(
        Monitoring,
        "check_port_listener",
        (1, 1),
        "<port> [--timeout <timeout>]",
        port_listener,
    )
    .about("Fails if there is no listener on a port")
    .of(CHECKS),
    Command::new(
        Monitoring,
        "check_protocol_listener",
        (1, 1),
        "<protocol> [--timeout <timeout>]",
        protocol_listener,
    )
    .about("Fails if there is no listener for a protocol: amqp, http, or other names as in RabbitMQ")
    .of(CHECKS),
    Command::new(
        Monitoring,
        "check_port_connectivity",
        (0, 0),
        "[--timeout <timeout>] [--address <interface>]",
        port_connectivity,
    )
    .about("Connects to every port that the node listens on")
    .options(&["address|a="])
    .of(CHECKS),
    Command::new(
        Monitoring,
        "check_virtual_hosts",
        (0, 0),
        "[--timeout <timeout>]",
        virtual_hosts,
    )
    .about("Fails if a virtual host is not running; here they always run with the node")
    .of(CHECKS),
    Command::new(
        Monitoring,
        "check_certificate_expiration",
        (0, 0),
        "[--within <period>] [--unit <days | weeks | months | years>]",
        certificates,
    )
    .about("Fails if a certificate of the node expires soon")
    .options(&["within=#", "unit="])
    .of(CHECKS),
    Command::new(
        Monitoring,
        "check_if_any_deprecated_features_are_used",
        (0, 0),
        "[--timeout <timeout>]",
        deprecated,
    )
    .about("Fails if deprecated features are in use; there are none")
    .of(&[Tool::Ctl, Tool::Diagnostics]),
    Command::new(
        Monitoring,
        "check_if_metadata_store_is_initialized",
        (0, 0),
        "",
        metadata_store,
    )
    .about("Fails if the metadata store has not been initialized yet")
    .of(CHECKS),
    Command::new(
        Monitoring,
        "check_if_metadata_store_is_initialized_with_data",
        (0, 0),
        "",
        metadata_store,
    )
    .about("Fails if the metadata store has not been initialized yet")
    .of(CHECKS),
    Command::new(
        Monitoring,
        "check_for_quorum_queues_without_an_elected_leader",
        (1, 1),
        "[--vhost <vhost>] [--across-all-vhosts] <pattern>",
        quorum_queues,
    )
    .about("Fails if matching quorum queues have no leader")
    .options(&["across-all-vhosts"])
    .of(CHECKS),
];

fn told(text: String) -> Output {
    let value = json!({ "message": text });
    Output::Told(text, value)
}

/// Asks for a check of the API. It answers 200 or 503, both with a document.
pub(super) fn check(ask: &Ask<'_>, path: &str) -> Result<Result<Value, Value>, Failure> {
    let answer = ask.call("GET", &format!("/health/checks/{path}"), None)?;
    if answer.status == 503 {
        return Ok(Err(serde_json::from_slice(&answer.body).unwrap_or_default()));
    }
    ask.accepted(&answer).map(Ok)
}

fn in_service(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.node();
    match check(ask, "is-in-service")? {
        Ok(_) => Ok(told(format!(
            "RabbitMQ on node {node} is fully booted and running"
        ))),
        // As in RabbitMQ: it runs, and serves nobody.
        Err(reason) if reason["is_under_maintenance"] == json!(true) => Ok(told(format!(
            "RabbitMQ on node {node} is fully booted and running"
        ))),
        Err(reason) => Err(Failure::error(
            UNAVAILABLE,
            format!(
                "RabbitMQ on node {node} is not running: {}",
                text(&reason, "reason")
            ),
        )),
    }
}

fn running(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Checking if RabbitMQ is running on node {} ...",
        ask.node()
    ));
    in_service(ask)
}

fn is_running(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Asking node {} for its status ...", ask.node()));
    in_service(ask)
}

/// Listeners open after everything else, so a node that answers does not boot any more.
fn is_booting(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.node();
    ask.say(format!("Asking node {node} for its boot status ..."));
    ask.get("/overview?columns=node")?;
    Ok(told(format!(
        "RabbitMQ on node {node} is fully booted (check with is_running), stopped or has not started booting yet"
    )))
}

/// The alarms in effect, as the API lists them.
fn raised(ask: &Ask<'_>, path: &str) -> Result<Vec<Value>, Failure> {
    let outcome = check(ask, path)?;
    let alarms = outcome.err().and_then(|reason| reason.get("alarms").cloned());
    Ok(match alarms {
        Some(Value::Array(alarms)) => alarms,
        _ => Vec::new(),
    })
}

fn alarm_lines(raised: &[Value]) -> String {
    let lines: Vec<String> = raised.iter().map(alarm_line).collect();
    lines.join("\n")
}

fn check_alarms(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.node();
    ask.say(format!(
        "Asking node {node} to report any local resource alarms ..."
    ));
    match raised(ask, "alarms")? {
        none if none.is_empty() => Ok(told(format!(
            "Node {node} reported no alarms, local or clusterwide"
        ))),
        raised => Err(Failure::error(
            UNAVAILABLE,
            format!("Node {node} reported alarms:\n\n{}", alarm_lines(&raised)),
        )),
    }
}

fn check_local_alarms(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.node();
    ask.say("This command is DEPRECATED: check_alarms tells the same.");
    match raised(ask, "local-alarms")? {
        none if none.is_empty() => Ok(told(format!("Node {node} reported no local alarms"))),
        raised => Err(Failure::error(
            UNAVAILABLE,
            format!("Node {node} reported local alarms:\n\n{}", alarm_lines(&raised)),
        )),
    }
}

fn alarms(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.node();
    ask.say(format!(
        "Asking node {node} to report any known resource alarms ..."
    ));
    let raised = raised(ask, "alarms")?;
    let shown = match raised.is_empty() {
        true => format!("Node {node} reported no alarms, local or clusterwide"),
        false => alarm_lines(&raised),
    };
    let raised: Vec<&str> = raised.iter().map(|alarm| text(alarm, "resource")).collect();
    let value = json!({"node": node, "result": "ok", "alarms": raised});
    Ok(Output::Told(shown, value))
}

fn joined(list: &Value) -> String {
    let items = list.as_array().into_iter().flatten();
    let mut items: Vec<String> = items
        .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
        .collect();
    items.dedup();
    items.join(", ")
}

fn port_listener(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (port, node) = (ask.word(0), ask.node());
    if port.parse::<u16>().is_err() {
        let text = "Bad argument: Argument must be a positive integer";
        return Err(Failure::argument(BAD_VALUE, text));
    }
    ask.say(format!(
        "Asking node {node} if there's an active listener on port {port} ..."
    ));
    match check(ask, &format!("port-listener/{port}"))? {
        Ok(_) => Ok(told(format!(
            "A listener for port {port} is running on node {node}."
        ))),
        Err(reason) => Err(Failure::plain(
            UNAVAILABLE,
            format!(
                "No listener for port {port} is active on node {node}. Found listeners that use the following ports: {}",
                joined(&reason["ports"])
            ),
        )),
    }
}

fn protocol_listener(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (protocol, node) = (ask.word(0), ask.node());
    ask.say(format!(
        "Asking node {node} if there's an active listener for protocol {protocol} ..."
    ));
    match check(ask, &format!("protocol-listener/{}", encode(protocol)))? {
        Ok(_) => Ok(told(format!(
            "A listener for protocol {protocol} is running on node {node}."
        ))),
        Err(reason) => Err(Failure::error(
            UNAVAILABLE,
            format!(
                "No listener for protocol {protocol} is active on node {node}. Found listeners for the following protocols: {}",
                joined(&reason["protocols"])
            ),
        )),
    }
}

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

fn port_connectivity(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.node();
    let host = ask.line.value("address").map(str::to_owned);
    let (host, how) = match host {
        Some(address) => (address.clone(), format!("using {address}")),
        None => {
            let host = node.rsplit('@').next().unwrap_or("localhost").to_owned();
            // The name of this machine may resolve to an address that the node does not listen on.
            let host = if host == crate::endpoint::host_name() {
                "localhost".into()
            } else {
                host
            };
            (host, "using node hostname resolution".to_owned())
        }
    };
    ask.say(format!(
        "Testing TCP connections to all active listeners on node {node} {} ...",
        how.replace("node hostname", "hostname")
    ));
    let overview = ask.get("/overview?columns=listeners,node")?;
    let listeners = listeners_of(&overview, text(&overview, "node"));
    let mut ports: Vec<u16> = listeners
        .filter_map(|listener| u16::try_from(listener["port"].as_u64()?).ok())
        .collect();
    ports.sort_unstable();
    ports.dedup();
    let mut failed = Vec::new();
    for port in &ports {
        ask.say(format!("Will connect to {host}:{port}"));
        let addresses = (host.as_str(), *port).to_socket_addrs();
        let reached = addresses.is_ok_and(|mut found| {
            found.any(|address| TcpStream::connect_timeout(&address, CONNECT).is_ok())
        });
        if !reached {
            failed.push(port.to_string());
        }
    }
    if !failed.is_empty() {
        let text = format!(
            "Connection to ports of the following listeners on node {node} failed: {}",
            failed.join(", ")
        );
        return Err(Failure::error(UNAVAILABLE, text));
    }
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    Ok(told(format!(
        "Successfully connected to ports {} on node {node} ({how})",
        ports.join(", ")
    )))
}

fn virtual_hosts(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.node();
    ask.say(format!("Checking if all vhosts are running on node {node} ..."));
    match check(ask, "virtual-hosts")? {
        Ok(_) => Ok(told(format!("Node {node} reported all vhosts as running"))),
        Err(reason) => Err(Failure::error(UNAVAILABLE, text(&reason, "reason"))),
    }
}

fn certificates(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (within, unit) = (
        ask.line.value("within").unwrap_or("4"),
        ask.line.value("unit").unwrap_or("weeks"),
    );
    if !["days", "weeks", "months", "years"].contains(&unit) {
        let text =
            format!("\"unit '{unit}' is not supported. Please use one of: days, weeks, months, years\"");
        return Err(Failure::usage(text));
    }
    if !within.parse::<u64>().is_ok_and(|within| within > 0) {
        let text = format!("Bad argument: within should be a positive number, not {within}");
        return Err(Failure::argument(BAD_VALUE, text));
    }
    ask.say(format!(
        "Checking certificate expiration for all certificates on node {} ...",
        ask.node()
    ));
    let unit = unit.trim_end_matches('s');
    let period = if within == "1" {
        format!("1 {unit}")
    } else {
        format!("{within} {unit}s")
    };
    match check(ask, &format!("certificate-expiration/{within}/{unit}s"))? {
        Ok(_) => Ok(told(format!("No certificates are expiring within {period}."))),
        Err(reason) => Err(Failure::error(
            UNAVAILABLE,
            format!("Certificates expire within {period}: {}", reason),
        )),
    }
}

fn deprecated(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Checking if any deprecated features are used ...");
    let used = ask.get("/deprecated-features/used")?;
    match used.as_array().is_none_or(Vec::is_empty) {
        true => Ok(told("Cluster reported no deprecated features in use".into())),
        false => Err(Failure::error(
            UNAVAILABLE,
            format!("Deprecated features in use: {used}"),
        )),
    }
}

fn metadata_store(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.node();
    ask.say(format!(
        "Checking if metadata store on node {node} has finished initializing ..."
    ));
    ask.get("/overview?columns=node")?;
    Ok(told(format!(
        "Metadata store on node {node} has completed its initialization"
    )))
}

fn quorum_queues(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Checking leader health of quorum queues in matching virtual hosts on node {} ...",
        ask.node()
    ));
    match check(ask, "quorum-queues-without-elected-leaders/all-vhosts")? {
        Ok(_) => Ok(told(
            "Node reported all quorum queue as having responsive leader replicas".into(),
        )),
        Err(reason) => Err(Failure::error(UNAVAILABLE, text(&reason, "reason"))),
    }
}
