//! The node as a whole: how it is, waiting for it, stopping it.

mod wait;

use super::{nodes, number, text, this_node};
use crate::ask::{APPLICATION, Ask, encode, is_stopped};
use crate::command::{
    Command, Section::Cluster, Section::Configuration, Section::Monitoring, Section::Nodes,
};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE, USAGE};
use crate::output::Output;
use crate::tool::Tool;
use serde_json::{Map, Value, json};

const BOTH: &[Tool] = &[Tool::Ctl, Tool::Diagnostics];
const DIAGNOSTICS: &[Tool] = &[Tool::Diagnostics];

pub const COMMANDS: &[Command] = &[
    Command::new(Nodes, "ping", (0, 0), "[--timeout <timeout>]", ping)
        .about("Checks that the node responds")
        .of(BOTH),
    Command::new(
        Nodes,
        "status",
        (0, 0),
        "[--unit <unit>] [--timeout <timeout>]",
        status,
    )
    .about("Shows the node's status: versions, memory, disk, alarms, listeners")
    .more("Units: bytes, mb, mib, gb, gib.")
    .options(&["unit="])
    .of(BOTH),
    Command::new(
        Nodes,
        "await_startup",
        (0, 0),
        "[--timeout <timeout>]",
        wait::await_startup,
    )
    .about("Waits until the node has started, for five minutes or as long as --timeout"),
    Command::new(
        Nodes,
        "wait",
        (0, 1),
        "[<pidfile>] [--pid|-P <pid>] [--timeout <timeout>]",
        wait::wait,
    )
    .about("Waits until the node has started; fails if its process ends")
    .options(&["pid|P="])
    .of(BOTH),
    Command::new(Nodes, "stop", (0, 1), "[--idempotent] [<pidfile>]", wait::stop)
        .about("Stops the node of this machine and waits until its process has ended")
        .options(&["idempotent"]),
    Command::new(
        Nodes,
        "shutdown",
        (0, 0),
        "[--wait] [--no-wait] [--timeout <timeout>]",
        wait::shutdown,
    )
    .about("Stops the node of this machine and waits until its process has ended")
    .options(&["wait", "no-wait"]),
    Command::new(
        Cluster,
        "cluster_status",
        (0, 0),
        "[--timeout <timeout>]",
        cluster_status,
    )
    .about("Shows the nodes of the cluster, and which of them run")
    .of(BOTH),
    Command::new(
        Cluster,
        "await_online_nodes",
        (1, 1),
        "<count> [--timeout <timeout>]",
        wait::await_online_nodes,
    )
    .about("Waits until the given number of nodes is online"),
    Command::new(
        Cluster,
        "join_cluster",
        (1, 1),
        "[--disc] <existing_cluster_member>",
        super::application::join,
    )
    .about("Has a node that stop_app stopped join another one's cluster at its next start")
    .options(&["disc"]),
    Command::new(
        Cluster,
        "forget_cluster_node",
        (1, 1),
        "[--offline] <existing_cluster_member_node>",
        forget_node,
    )
    .about("Removes a node that does not run from the cluster, with the queues that live there")
    .options(&["offline"]),
    Command::new(Cluster, "set_cluster_name", (1, 1), "<name>", set_cluster_name)
        .about("Sets the cluster name"),
    Command::new(
        Monitoring,
        "listeners",
        (0, 0),
        "[--timeout <timeout>]",
        listeners,
    )
    .about("Lists the node's listeners")
    .of(DIAGNOSTICS),
    Command::new(
        Monitoring,
        "server_version",
        (0, 0),
        "[--timeout <timeout>]",
        server_version,
    )
    .about("Shows the RabbitMQ version that the node is compatible with")
    .of(DIAGNOSTICS),
    Command::new(
        Configuration,
        "log_location",
        (0, 0),
        "[--all|-a] [--timeout <timeout>]",
        log_location,
    )
    .about("Shows the locations of the node's log files")
    .options(&["all|a"])
    .of(DIAGNOSTICS),
];

/// As [`wait::until`], for as long as `--timeout` says, or five minutes.
pub fn until<T>(
    ask: &Ask<'_>,
    what: &'static str,
    look: impl FnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    wait::until(ask, what, ask.timeout.unwrap_or(wait::TIMEOUT), look)
}

pub use wait::{is_alive, pid_of};

fn ping(ask: &Ask<'_>) -> Result<Output, Failure> {
    let limit = ask.timeout.map_or(60_000, |timeout| timeout.as_millis());
    ask.say(format!(
        "Will ping {}. This only checks that its process responds. Timeout: {limit} ms.",
        ask.node()
    ));
    // A process whose broker is stopped answers, too.
    let answer = ask.call("GET", "/overview?columns=node", None)?;
    if !is_stopped(&answer) {
        ask.accepted(&answer)?;
    }
    Ok(Output::text("Ping succeeded"))
}

/// A listener in RabbitMQ's words.
pub fn listener(object: &Value) -> Value {
    let protocol = text(object, "protocol");
    let purpose = match protocol {
        "amqp" => "AMQP 0-9-1",
        "amqp/ssl" => "AMQP 0-9-1 over TLS",
        "http" => "HTTP API",
        "https" => "HTTP API over TLS",
        "http/prometheus" => "Prometheus exporter API over HTTP",
        other => other,
    };
    let address = text(object, "ip_address");
    let interface = if address.contains(':') {
        format!("[{address}]")
    } else {
        address.to_owned()
    };
    json!({
        "node": object["node"], "protocol": protocol, "interface": interface, "port": object["port"], "purpose": purpose,
    })
}

/// The listeners of a node among those of all, which an overview has.
pub fn listeners_of<'a>(overview: &'a Value, node: &'a str) -> impl Iterator<Item = &'a Value> {
    let listeners = overview["listeners"].as_array().into_iter().flatten();
    listeners.filter(move |listener| text(listener, "node") == node)
}

/// Those of the node that is asked, in RabbitMQ's words.
fn own_listeners(overview: &Value) -> Vec<Value> {
    listeners_of(overview, text(overview, "node"))
        .map(listener)
        .collect()
}

fn listener_line(listener: &Value) -> String {
    format!(
        "Interface: {}, port: {}, protocol: {}, purpose: {}",
        text(listener, "interface"),
        listener["port"],
        text(listener, "protocol"),
        text(listener, "purpose")
    )
}

fn listeners(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Asking node {} to report its protocol listeners ...",
        ask.node()
    ));
    let found = own_listeners(&ask.get("/overview?columns=listeners,node")?);
    let lines: Vec<String> = found.iter().map(listener_line).collect();
    let value = json!({"node": ask.node(), "result": "ok", "listeners": found});
    Ok(Output::Told(lines.join("\n"), value))
}

fn server_version(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Asking node {} for its RabbitMQ version...", ask.node()));
    let overview = ask.get("/overview?columns=rabbitmq_version")?;
    let version = text(&overview, "rabbitmq_version").to_owned();
    let value = json!({"result": "ok", "value": version});
    Ok(Output::Told(version, value))
}

fn log_location(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Log file location(s) on node {} ...", ask.node()));
    let node = this_node(ask)?;
    let files: Vec<&str> = node["log_files"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let shown = if ask.line.has("all") {
        &files[..]
    } else {
        &files[..files.len().min(1)]
    };
    Ok(Output::Told(shown.join("\n"), json!(shown)))
}

fn set_cluster_name(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Setting cluster name to {} ...", ask.word(0)));
    ask.put("/cluster-name", &json!({"name": ask.word(0)}))?;
    Ok(Output::Done)
}

/// A number of bytes in the unit that the user wants.
pub fn in_unit(bytes: u64, unit: &str) -> Option<String> {
    let (divisor, name) = match unit {
        "bytes" => return Some(format!("{bytes} bytes")),
        "mb" => (1e6, "mb"),
        "mib" => (1_048_576.0, "mib"),
        "gb" => (1e9, "gb"),
        "gib" => (1_073_741_824.0, "gib"),
        _ => return None,
    };
    // As many digits as anybody reads.
    let rounded = (bytes as f64 / divisor * 10_000.0).round() / 10_000.0;
    Some(format!("{rounded:?} {name}"))
}

/// What both the text and the document of `status` are made of.
fn gathered(ask: &Ask<'_>) -> Result<Value, Failure> {
    let overview = ask.get("/overview")?;
    let node = this_node(ask)?;
    let vhosts = ask.get("/vhosts?columns=name")?;
    let alarms: Vec<Value> = alarms_of(&node)
        .map(|resource| json!({"node": node["name"], "resource": resource}))
        .collect();
    let pid: Value = text(&node, "os_pid")
        .parse::<u64>()
        .map_or(Value::Null, Value::from);
    let mut status = json!({
        "node": node["name"],
        "pid": pid,
        "os": "Linux",
        "uptime": number(&node, "uptime") / 1000,
        "is_under_maintenance": node["being_drained"],
        "product_name": text(&overview, "product_name"),
        "product_version": text(&overview, "product_version"),
        "rabbitmq_version": text(&overview, "rabbitmq_version"),
        "erlang_version": text(&overview, "erlang_full_version"),
        "crypto_lib_version": text(&overview, "crypto_lib_version"),
        "processes": {"used": node["proc_used"], "limit": node["proc_total"]},
        "run_queue": number(&node, "run_queue"),
        "net_ticktime": number(&node, "net_ticktime"),
        "active_plugins": node["enabled_plugins"],
        "data_directory": node["db_dir"],
        "config_files": node["config_files"],
        "log_files": node["log_files"],
        "alarms": alarms,
        "tags": [],
        "memory": {"total": {"rss": node["mem_used"]}, "strategy": "rss"},
        "vm_memory_calculation_strategy": "rss",
        "vm_memory_high_watermark_limit": node["mem_limit"],
        "disk_free_limit": node["disk_free_limit"],
        "disk_free": node["disk_free"],
        "file_descriptors": {"total_used": node["fd_used"], "total_limit": node["fd_total"]},
        "totals": {
            "connection_count": overview["object_totals"]["connections"],
            "queue_count": overview["object_totals"]["queues"],
            "virtual_host_count": vhosts.as_array().map_or(0, Vec::len),
        },
        "listeners": own_listeners(&overview),
    });
    if node["journals_set_aside"].is_array() {
        status["journals_set_aside"] = node["journals_set_aside"].clone();
    }
    Ok(status)
}

/// A part of the text: its heading, and lines under it.
fn part(heading: &str, lines: &[String]) -> String {
    let lines = match lines.is_empty() {
        true => "(none)".to_owned(),
        false => lines.join("\n"),
    };
    format!("{heading}\n\n{lines}\n")
}

fn items(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(|text| format!(" * {text}")).collect()
}

/// A line for each file with what the log had of queues that nobody defined.
fn set_aside(status: &Value) -> impl Iterator<Item = String> {
    let files = items(&status["journals_set_aside"]).into_iter();
    files.map(|file| format!("Kept aside, of no queue that is defined: {file}"))
}

/// The text of `status`, with bytes in a unit.
fn status_text(status: &Value, unit: &str) -> Option<String> {
    let bytes = |member: &str| in_unit(number(status, member), unit);
    let runtime = [
        format!("OS PID: {}", status["pid"]),
        format!("OS: {}", text(status, "os")),
        format!("Uptime (seconds): {}", status["uptime"]),
        format!("Is under maintenance?: {}", status["is_under_maintenance"]),
        format!("RabbitMQ version: {}", text(status, "rabbitmq_version")),
        format!(
            "Product: {} {}",
            text(status, "product_name"),
            text(status, "product_version")
        ),
        format!("Node name: {}", text(status, "node")),
    ];
    let memory = [
        format!(
            "Total memory used: {}",
            in_unit(number(&status["memory"]["total"], "rss"), unit)?
        ),
        "Calculation strategy: rss".to_owned(),
        format!(
            "Memory high watermark setting: computed to: {}",
            bytes("vm_memory_high_watermark_limit")?
        ),
    ];
    let disk = [
        format!("Low free disk space watermark: {}", bytes("disk_free_limit")?),
        format!("Free disk space: {}", bytes("disk_free")?),
    ];
    let totals = &status["totals"];
    let totals = [
        format!("Connection count: {}", totals["connection_count"]),
        format!("Queue count: {}", totals["queue_count"]),
        format!("Virtual host count: {}", totals["virtual_host_count"]),
    ];
    let files = &status["file_descriptors"];
    let files = [
        format!("Total: {}", files["total_used"]),
        format!("Limit: {}", files["total_limit"]),
    ];
    let alarms = status["alarms"].as_array().into_iter().flatten();
    let alarms: Vec<String> = alarms
        .map(|alarm| format!(" * {}", text(alarm, "resource")))
        .collect();
    let listeners = status["listeners"].as_array().into_iter().flatten();
    let listeners: Vec<String> = listeners.map(listener_line).collect();
    let mut data = vec![format!("Node data directory: {}", text(status, "data_directory"))];
    data.extend(set_aside(status));
    Some(
        [
            part("Runtime", &runtime),
            part("Plugins", &items(&status["active_plugins"])),
            part("Data directory", &data),
            part("Config files", &items(&status["config_files"])),
            part("Log file(s)", &items(&status["log_files"])),
            part("Alarms", &alarms),
            part("Memory", &memory),
            part("File Descriptors", &files),
            part("Free Disk Space", &disk),
            part("Totals", &totals),
            part("Listeners", &listeners),
        ]
        .join("\n"),
    )
}

fn status(ask: &Ask<'_>) -> Result<Output, Failure> {
    let unit = ask.line.value("unit").unwrap_or("gb");
    if in_unit(0, unit).is_none() {
        let text = format!(
            "Bad argument: unit '{unit}' is not supported. Please use one of: bytes, mb, mib, gb, gib"
        );
        return Err(Failure::argument(BAD_VALUE, text));
    }
    ask.say(format!("Status of node {} ...", ask.node()));
    match gathered(ask) {
        Ok(status) => {
            let shown = status_text(&status, unit).unwrap_or_default();
            Ok(Output::Told(shown, status))
        }
        // The process of a broker that is stopped (`stop_app`) has a status too, as in RabbitMQ.
        Err(failure) => stopped_status(ask).ok_or(failure),
    }
}

/// What is known of a node whose broker is stopped; `None` if it isn't.
fn stopped_status(ask: &Ask<'_>) -> Option<Output> {
    let state = ask.get(APPLICATION).ok()?;
    (state["running"] == json!(false)).then(|| {
        let runtime = [
            format!("OS PID: {}", state["os_pid"]),
            "The broker is stopped; start_app starts it".to_owned(),
            format!("Node name: {}", text(&state, "node")),
        ];
        let parts = [part("Runtime", &runtime), part("Listeners", &[])];
        let status = json!({
            "pid": state["os_pid"], "node": state["node"], "running": false, "is_under_maintenance": false,
            "listeners": [], "alarms": [], "active_plugins": [],
        });
        Output::Told(parts.join("\n"), status)
    })
}

/// A line for each tag.
fn tag_lines(tags: &Value) -> Vec<String> {
    let tags = tags.as_object().into_iter().flatten();
    let line = |(name, value): (&String, &Value)| match value.as_str() {
        Some(text) => format!("{name}: {text}"),
        None => format!("{name}: {value}"),
    };
    tags.map(line).collect()
}

/// What all nodes that run say of themselves, each by its name.
fn of_running(nodes: &[Value], what: impl Fn(&str, &Value) -> Value) -> Map<String, Value> {
    let running = nodes.iter().filter(|node| node["running"] == json!(true));
    running
        .map(|node| (text(node, "name").to_owned(), what(text(node, "name"), node)))
        .collect()
}

/// The resources whose alarms a node says it has.
fn alarms_of(node: &Value) -> impl Iterator<Item = &'static str> {
    let known = [("mem_alarm", "memory"), ("disk_free_alarm", "disk")];
    let raised = known
        .into_iter()
        .filter(|(member, _)| node[*member] == json!(true));
    raised.map(|(_, resource)| resource)
}

fn cluster_status(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Cluster status of node {} ...", ask.node()));
    let overview = ask.get("/overview")?;
    let nodes = nodes(ask)?;
    let names = |runs: bool| -> Vec<String> {
        let wanted = nodes
            .iter()
            .filter(|node| !runs || node["running"] == json!(true));
        wanted.map(|node| text(node, "name").to_owned()).collect()
    };
    let (disk_nodes, running_nodes) = (names(false), names(true));
    let cores = of_running(&nodes, |_, node| node["processors"].clone());
    let product = |node: &Value, member: &str| {
        let mut products = node["applications"].as_array().into_iter().flatten();
        products.next().map_or(Value::Null, |it| it[member].clone())
    };
    let versions = of_running(
        &nodes,
        |_, node| json!({"rabbitmq_name": product(node, "description"), "rabbitmq_version": node["rabbitmq_version"], "erlang_version": ""}),
    );
    let products = of_running(&nodes, |_, node| product(node, "version"));
    let maintenance = of_running(&nodes, |_, node| match node["being_drained"].as_bool() {
        Some(true) => "marked for maintenance".into(),
        Some(false) => "not under maintenance".into(),
        None => "unknown".into(),
    });
    let alarms: Vec<Value> = nodes
        .iter()
        .flat_map(|node| alarms_of(node).map(|it| json!({"node": node["name"], "resource": it})))
        .collect();
    let listeners = of_running(&nodes, |name, _| {
        listeners_of(&overview, name).map(listener).collect()
    });
    let tags = tag_lines(&overview["cluster_tags"]);
    let told = cluster_text(&ClusterTold {
        overview: &overview,
        tags: &tags,
        disk_nodes: &disk_nodes,
        running_nodes: &running_nodes,
        cores: &cores,
        versions: &versions,
        products: &products,
        maintenance: &maintenance,
        alarms: &alarms,
        listeners: &listeners,
    });
    let value = json!({
        "alarms": alarms, "cluster_tags": if tags.is_empty() { json!([]) } else { overview["cluster_tags"].clone() },
        "cluster_name": overview["cluster_name"], "cpu_cores": cores, "disk_nodes": disk_nodes, "running_nodes": running_nodes,
        "partitions": {}, "listeners": listeners, "versions": versions, "maintenance_status": maintenance, "feature_flags": [],
    });
    Ok(Output::Told(told, value))
}

/// What `cluster_status` shows. Maps are by the names of nodes that run.
struct ClusterTold<'a> {
    overview: &'a Value,
    tags: &'a [String],
    disk_nodes: &'a [String],
    running_nodes: &'a [String],
    cores: &'a Map<String, Value>,
    versions: &'a Map<String, Value>,
    products: &'a Map<String, Value>,
    maintenance: &'a Map<String, Value>,
    alarms: &'a [Value],
    listeners: &'a Map<String, Value>,
}

fn cluster_text(told: &ClusterTold<'_>) -> String {
    let lines = |of: &Map<String, Value>, line: &dyn Fn(&str, &Value) -> String| -> Vec<String> {
        of.iter().map(|(name, value)| line(name, value)).collect()
    };
    let all_cores: u64 = told.cores.values().filter_map(Value::as_u64).sum();
    let basics = [
        format!("Cluster name: {}", text(told.overview, "cluster_name")),
        format!("Total CPU cores available cluster-wide: {all_cores}"),
    ];
    let versions = lines(told.versions, &|name, it| {
        let version = told.products[name].as_str().unwrap_or_default();
        format!("{name}: {} {version}", text(it, "rabbitmq_name"))
    });
    let cores = lines(told.cores, &|name, it| {
        format!("Node: {name}, available CPU cores: {it}")
    });
    let maintenance = lines(told.maintenance, &|name, it| {
        format!("Node: {name}, status: {}", it.as_str().unwrap_or_default())
    });
    let alarms: Vec<String> = told.alarms.iter().map(alarm_line).collect();
    let listeners = told.listeners.iter().flat_map(|(name, list)| {
        let list = list.as_array().into_iter().flatten();
        list.map(move |it| format!("Node: {name}, {}", listener_line(it).replacen('I', "i", 1)))
    });
    let listeners: Vec<String> = listeners.collect();
    let basics = match told.tags {
        [] => part("Basics", &basics),
        tags => format!("{}\n{}", part("Basics", &basics), part("Cluster Tags", tags)),
    };
    [
        basics,
        part("Disk Nodes", told.disk_nodes),
        part("Running Nodes", told.running_nodes),
        part("Versions", &versions),
        part("CPU Cores", &cores),
        part("Maintenance status", &maintenance),
        part("Alarms", &alarms),
        part("Network Partitions", &[]),
        part("Listeners", &listeners),
    ]
    .join("\n")
}

/// An alarm in RabbitMQ's words.
pub fn alarm_line(alarm: &Value) -> String {
    let node = text(alarm, "node");
    match text(alarm, "resource") {
        "memory" => format!("Memory alarm on node {node}"),
        "disk" => format!("Free disk space alarm on node {node}"),
        other => format!("Alarm of the {other} on node {node}"),
    }
}

fn forget_node(ask: &Ask<'_>) -> Result<Output, Failure> {
    if ask.line.has("offline") {
        let text = "Error: this command requires the target node to be stopped.";
        return Err(Failure::plain(USAGE, text));
    }
    let name = ask.word(0);
    ask.say(format!("Removing node {name} from the cluster"));
    if !nodes(ask)?.iter().any(|node| text(node, "name") == name) {
        let reason = "{:not_a_cluster_node, ~c\"The node selected is not in the cluster.\"}";
        return Err(Failure::error(UNAVAILABLE, reason));
    }
    ask.delete(&format!("/leveret/nodes/{}", encode(name)))?;
    Ok(Output::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_any_unit() {
        assert_eq!(in_unit(50_000_000, "mb").unwrap(), "50.0 mb");
        assert_eq!(in_unit(149_901_300, "gb").unwrap(), "0.1499 gb");
        assert_eq!(in_unit(1024, "bytes").unwrap(), "1024 bytes");
        assert_eq!(in_unit(1_048_576, "mib").unwrap(), "1.0 mib");
        assert_eq!(in_unit(1, "kb"), None);
    }
}
