//! Lists of what lives in virtual hosts: queues, exchanges, bindings, consumers, and of connections and channels.

use crate::ask::{Ask, encode};
use crate::columns::{self, Column};
use crate::command::{Command, Section::Monitoring};
use crate::failure::Failure;
use crate::output::{Output, Rows};
use crate::tool::Tool;
use serde_json::{Value, json};
use std::time::Duration;

/// Who lists.
const LISTERS: &[Tool] = &[Tool::Ctl, Tool::Diagnostics];

pub const COMMANDS: &[Command] = &[
    Command::new(
        Monitoring,
        "list_queues",
        (0, 64),
        "[--vhost <vhost>] [--online] [--offline] [--local] [--no-table-headers] [<column>, ...] [--timeout <timeout>]",
        queues,
    )
    .about("Lists queues and their properties")
    .more(
        "Without columns: name and messages. Columns that only other queue types or Erlang have (pid) are empty.\n\n    \
         list_queues -p shop name messages_ready consumers",
    )
    .options(&["online", "offline", "local"])
    .of(LISTERS),
    Command::new(
        Monitoring,
        "list_unresponsive_queues",
        (0, 64),
        "[--local] [--queue-timeout <milliseconds>] [<column> ...] [--no-table-headers]",
        unresponsive,
    )
    .about("Lists queues that do not respond in time; in this broker there are none")
    .options(&["local", "queue-timeout=#"])
    .of(LISTERS),
    Command::new(
        Monitoring,
        "list_exchanges",
        (0, 64),
        "[--vhost <vhost>] [--no-table-headers] [<column> ...] [--timeout <timeout>]",
        exchanges,
    )
    .about("Lists exchanges")
    .of(LISTERS),
    Command::new(
        Monitoring,
        "list_bindings",
        (0, 64),
        "[--vhost <vhost>] [--no-table-headers] [<column> ...] [--timeout <timeout>]",
        bindings,
    )
    .about("Lists all bindings of a virtual host")
    .of(LISTERS),
    Command::new(
        Monitoring,
        "list_consumers",
        (0, 64),
        "[--vhost <vhost>] [--no-table-headers] [<column> ...] [--timeout <timeout>]",
        consumers,
    )
    .about("Lists the consumers of a virtual host")
    .of(LISTERS),
    Command::new(Monitoring, "list_connections", (0, 64), "[--no-table-headers] [<column> ...] [--timeout <timeout>]", connections)
        .about("Lists connections; the column pid is the name that close_connection takes")
        .of(LISTERS),
    Command::new(Monitoring, "list_channels", (0, 64), "[--no-table-headers] [<column> ...] [--timeout <timeout>]", channels)
        .about("Lists channels")
        .of(LISTERS),
];

const QUEUES: &[Column] = &[
    Column::same("name"),
    Column::same("durable"),
    Column::same("auto_delete"),
    Column::same("arguments"),
    Column::same("policy"),
    Column::same("operator_policy"),
    Column::same("effective_policy_definition"),
    Column::of("pid", ""),
    Column::of("owner_pid", "owner_pid_details.name"),
    Column::same("exclusive"),
    Column::of("exclusive_consumer_pid", ""),
    Column::same("exclusive_consumer_tag"),
    Column::same("messages_ready"),
    Column::same("messages_unacknowledged"),
    Column::same("messages"),
    Column::same("messages_ready_ram"),
    Column::same("messages_unacknowledged_ram"),
    Column::same("messages_ram"),
    Column::same("messages_persistent"),
    Column::same("message_bytes"),
    Column::same("message_bytes_ready"),
    Column::same("message_bytes_unacknowledged"),
    Column::same("message_bytes_ram"),
    Column::same("message_bytes_persistent"),
    Column::same("head_message_timestamp"),
    Column::of("disk_reads", "message_stats.disk_reads"),
    Column::of("disk_writes", "message_stats.disk_writes"),
    Column::same("consumers"),
    Column::same("consumer_utilisation"),
    Column::same("consumer_capacity"),
    Column::same("memory"),
    Column::same("state"),
    Column::same("type"),
    Column::same("leader"),
    Column::same("members"),
    Column::same("online"),
    Column::of("slave_pids", "slave_nodes"),
    Column::of("synchronised_slave_pids", "synchronised_slave_nodes"),
];

const EXCHANGES: &[Column] = &[
    Column::same("name"),
    Column::same("type"),
    Column::same("durable"),
    Column::same("auto_delete"),
    Column::same("internal"),
    Column::same("arguments"),
    Column::same("policy"),
];

const BINDINGS: &[Column] = &[
    Column::of("source_name", "source"),
    Column::of("source_kind", "source_kind"),
    Column::of("destination_name", "destination"),
    Column::of("destination_kind", "destination_type"),
    Column::same("routing_key"),
    Column::same("arguments"),
];

const CONSUMERS: &[Column] = &[
    Column::of("queue_name", "queue.name"),
    Column::of("channel_pid", "channel_details.name"),
    Column::same("consumer_tag"),
    Column::same("ack_required"),
    Column::same("prefetch_count"),
    Column::same("active"),
    Column::same("activity_status"),
    Column::same("arguments"),
];

const CONNECTIONS: &[Column] = &[
    Column::of("pid", "name"),
    Column::same("name"),
    Column::same("port"),
    Column::same("host"),
    Column::same("peer_port"),
    Column::same("peer_host"),
    Column::same("ssl"),
    Column::same("ssl_protocol"),
    Column::same("ssl_key_exchange"),
    Column::same("ssl_cipher"),
    Column::same("ssl_hash"),
    Column::same("peer_cert_subject"),
    Column::same("peer_cert_issuer"),
    Column::same("peer_cert_serial_number"),
    Column::same("peer_cert_validity"),
    Column::same("state"),
    Column::same("channels"),
    Column::same("protocol"),
    Column::same("auth_mechanism"),
    Column::same("user"),
    Column::same("vhost"),
    Column::same("container_id"),
    Column::same("timeout"),
    Column::same("frame_max"),
    Column::same("channel_max"),
    Column::same("client_properties"),
    Column::same("recv_oct"),
    Column::same("recv_cnt"),
    Column::same("send_oct"),
    Column::same("send_cnt"),
    Column::same("send_pend"),
    Column::same("connected_at"),
];

const CHANNELS: &[Column] = &[
    Column::of("pid", "name"),
    Column::of("connection", "connection_details.name"),
    Column::same("name"),
    Column::same("number"),
    Column::same("user"),
    Column::same("vhost"),
    Column::same("transactional"),
    Column::same("confirm"),
    Column::same("consumer_count"),
    Column::same("messages_unacknowledged"),
    Column::same("messages_uncommitted"),
    Column::same("acks_uncommitted"),
    Column::same("messages_unconfirmed"),
    Column::same("prefetch_count"),
    Column::same("global_prefetch_count"),
];

/// The columns of each list, for shell completion.
pub fn columns_of(command: &str) -> impl Iterator<Item = &'static str> {
    let columns = match command {
        "list_queues" | "list_unresponsive_queues" => QUEUES,
        "list_exchanges" => EXCHANGES,
        "list_bindings" => BINDINGS,
        "list_consumers" => CONSUMERS,
        "list_connections" => CONNECTIONS,
        "list_channels" => CHANNELS,
        _ => &[],
    };
    columns.iter().map(|column| column.name)
}

fn queues(ask: &Ask<'_>) -> Result<Output, Failure> {
    let chosen = columns::chosen(ask, QUEUES, &["name", "messages"])?;
    // RabbitMQ asks every queue, and says how long it waits; its limit is a minute unless the user sets another.
    let seconds = ask.timeout.map_or(60.0, |timeout| timeout.as_secs_f64());
    ask.say(format!("Timeout: {seconds:.1} seconds ..."));
    ask.say(format!("Listing queues for vhost {} ...", ask.vhost()));
    let path = format!(
        "/queues/{}?columns={},node,state,type",
        encode(ask.vhost()),
        columns::wanted(&chosen)
    );
    let limited = Ask {
        timeout: Some(Duration::from_secs_f64(seconds)),
        credentials: ask.credentials.clone(),
        endpoint: ask.endpoint.clone(),
        ..*ask
    };
    // Where there is no such virtual host, there are no queues.
    let mut found = limited.find(&path)?.unwrap_or_default();
    if let Some(queues) = found.as_array_mut() {
        queues.retain(|queue| is_listed(ask, queue));
        queues.iter_mut().for_each(tell_home);
    }
    Ok(Output::Rows(columns::rows(&chosen, &found)))
}

/// Whether the options ask for a queue: with several of them any will do, as in RabbitMQ.
fn is_listed(ask: &Ask<'_>, queue: &Value) -> bool {
    let is_down = queue["state"] == "down";
    let [local, online, offline] = ["local", "online", "offline"].map(|option| ask.line.has(option));
    let is_any = !(local || online || offline);
    is_any || online && !is_down || offline && is_down || local && queue["node"] == *ask.node()
}

/// A classic queue is its node's, which RabbitMQ's tools call its leader and its only member.
fn tell_home(queue: &mut Value) {
    if queue["type"] == "classic" {
        queue["leader"] = queue["node"].clone();
        queue["members"] = json!([queue["node"]]);
    }
}

fn unresponsive(ask: &Ask<'_>) -> Result<Output, Failure> {
    let chosen = columns::chosen(ask, QUEUES, &["name"])?;
    ask.say(format!(
        "Listing unresponsive queues for vhost {} ...",
        ask.vhost()
    ));
    // That the node answers is what the list can tell.
    ask.get("/overview?columns=node")?;
    Ok(Output::Rows(columns::rows(&chosen, &Value::Null)))
}

fn exchanges(ask: &Ask<'_>) -> Result<Output, Failure> {
    let chosen = columns::chosen(ask, EXCHANGES, &["name", "type"])?;
    ask.say(format!("Listing exchanges for vhost {} ...", ask.vhost()));
    of_vhost(ask, "exchanges", &chosen).map(Output::Rows)
}

fn bindings(ask: &Ask<'_>) -> Result<Output, Failure> {
    let usual = [
        "source_name",
        "source_kind",
        "destination_name",
        "destination_kind",
        "routing_key",
        "arguments",
    ];
    let chosen = columns::chosen(ask, BINDINGS, &usual)?;
    ask.say(format!("Listing bindings for vhost {}...", ask.vhost()));
    let mut rows = of_vhost(ask, "bindings", &chosen)?;
    // Only exchanges have anything bound to them, so the API does not say it.
    if let Some(at) = chosen.iter().position(|column| column.name == "source_kind") {
        for row in &mut rows.rows {
            row[at] = "exchange".into();
        }
    }
    Ok(Output::Rows(rows))
}

fn consumers(ask: &Ask<'_>) -> Result<Output, Failure> {
    let usual = [
        "queue_name",
        "channel_pid",
        "consumer_tag",
        "ack_required",
        "prefetch_count",
        "active",
        "arguments",
    ];
    let chosen = columns::chosen(ask, CONSUMERS, &usual)?;
    ask.say(format!("Listing consumers in vhost {} ...", ask.vhost()));
    of_vhost(ask, "consumers", &chosen).map(Output::Rows)
}

fn of_vhost(ask: &Ask<'_>, kind: &str, chosen: &[Column]) -> Result<Rows, Failure> {
    let path = format!(
        "/{kind}/{}?columns={}",
        encode(ask.vhost()),
        columns::wanted(chosen)
    );
    // Where there is no such virtual host, nothing is in it.
    let found = ask.find(&path)?.unwrap_or_default();
    Ok(columns::rows(chosen, &found))
}

fn connections(ask: &Ask<'_>) -> Result<Output, Failure> {
    let chosen = columns::chosen(ask, CONNECTIONS, &["user", "peer_host", "peer_port", "state"])?;
    ask.say("Listing connections ...");
    let found = ask.get(&format!("/connections?columns={}", columns::wanted(&chosen)))?;
    Ok(Output::Rows(columns::rows(&chosen, &found)))
}

fn channels(ask: &Ask<'_>) -> Result<Output, Failure> {
    let usual = ["pid", "user", "consumer_count", "messages_unacknowledged"];
    let chosen = columns::chosen(ask, CHANNELS, &usual)?;
    ask.say("Listing channels ...");
    let found = ask.get(&format!("/channels?columns={}", columns::wanted(&chosen)))?;
    Ok(Output::Rows(columns::rows(&chosen, &found)))
}
