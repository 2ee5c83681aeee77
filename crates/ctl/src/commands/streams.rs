//! Clients of RabbitMQ's stream protocol, and super streams. This broker has no streams, so nobody speaks that: lists are empty, and what
//! is named is not there.

use crate::ask::Ask;
use crate::columns::{self, Column};
use crate::command::{Command, Run, Section::Queues};
use crate::failure::{Failure, SOFTWARE, UNAVAILABLE};
use crate::output::{Form, Output};
use crate::tool::Tool;
use serde_json::json;

const STREAMS: &[Tool] = &[Tool::Streams];
const LISTERS: &[Tool] = &[Tool::Ctl, Tool::Diagnostics, Tool::Streams];

/// A list of what is not there.
const fn list(name: &'static str, usage: &'static str, about: &'static str, run: Run) -> Command {
    Command::new(Queues, name, (0, 32), usage, run)
        .about(about)
        .options(&["verbose|V"])
        .of(LISTERS)
}

pub const COMMANDS: &[Command] = &[
    list(
        "list_stream_connections",
        "[<column> ...]",
        "Lists connections of the stream protocol; there are none",
        connections,
    ),
    list(
        "list_stream_consumers",
        "[--vhost <vhost>] [<column> ...]",
        "Lists consumers of the stream protocol; there are none",
        consumers,
    ),
    list(
        "list_stream_publishers",
        "[--vhost <vhost>] [<column> ...]",
        "Lists publishers of the stream protocol; there are none",
        publishers,
    ),
    list(
        "list_stream_consumer_groups",
        "[--vhost <vhost>] [<column> ...]",
        "Lists stream consumer groups; there are none",
        groups,
    ),
    list(
        "list_stream_group_consumers",
        "--stream <stream> --reference <reference> [--vhost <vhost>] [<column> ...]",
        "Lists the consumers of a stream consumer group; there are none",
        group_consumers,
    )
    .options(&["verbose|V", "stream=", "reference="]),
    Command::new(
        Queues,
        "activate_stream_consumer",
        (0, 0),
        "--stream <stream> --reference <reference> [--vhost <vhost>]",
        activate,
    )
    .about("Activates a consumer of a stream consumer group; there are none")
    .options(&["stream=", "reference="])
    .of(&[Tool::Ctl, Tool::Streams]),
    Command::new(
        Queues,
        "list_stream_tracking",
        (1, 1),
        "<stream> [--all | --offset | --writer] [--vhost <vhost>]",
        tracking,
    )
    .about("Lists the offsets stored in a stream; there are none")
    .options(&["stream=", "all", "offset", "writer"])
    .of(STREAMS),
    Command::new(
        Queues,
        "reset_offset",
        (0, 0),
        "--stream <stream> --reference <reference> [--vhost <vhost>]",
        reset,
    )
    .about("Resets an offset stored in a stream; there are none")
    .options(&["stream=", "reference="])
    .of(STREAMS),
    Command::new(
        Queues,
        "add_super_stream",
        (1, 1),
        "<name> [--vhost <vhost>] [--partitions <partitions>] [--binding-keys <binding-keys>]",
        add_super,
    )
    .about("Adds a super stream; this broker has no streams")
    .options(&[
        "partitions=#",
        "binding-keys=",
        "routing-keys=",
        "max-length-bytes=",
        "max-age=",
        "stream-max-segment-size-bytes=",
        "leader-locator=",
        "initial-cluster-size=#",
    ])
    .of(STREAMS),
    Command::new(
        Queues,
        "delete_super_stream",
        (1, 1),
        "<name> [--vhost <vhost>]",
        delete_super,
    )
    .about("Deletes a super stream; this broker has no streams")
    .of(STREAMS),
];

/// Columns that RabbitMQ knows, so that a misspelt one is found.
macro_rules! columns {
    ($($name:literal)*) => { &[$(Column::same($name)),*] };
}

const CONNECTIONS: &[Column] = columns!(
    "auth_mechanism" "client_properties" "conn_name" "connected_at" "connection_state" "frame_max" "heartbeat" "host" "node"
    "peer_cert_issuer" "peer_cert_serial_number" "peer_cert_subject" "peer_cert_validity" "peer_host" "peer_port" "pid" "port" "ssl"
    "ssl_cipher" "ssl_hash" "ssl_key_exchange" "ssl_protocol" "subscriptions" "user" "vhost"
);
const CONSUMERS: &[Column] = columns!(
    "active" "activity_status" "connection_pid" "credits" "messages_consumed" "node" "offset" "offset_lag" "properties" "stream"
    "subscription_id"
);
const PUBLISHERS: &[Column] = columns!(
    "connection_pid" "messages_confirmed" "messages_errored" "messages_published" "node" "publisher_id" "reference" "stream"
);
const GROUPS: &[Column] = columns!("consumers" "partition_index" "reference" "stream");
const GROUP_CONSUMERS: &[Column] = columns!("connection_name" "state" "subscription_id");

fn empty(ask: &Ask<'_>, known: &'static [Column], told: &str) -> Result<Output, Failure> {
    let chosen = columns::chosen(ask, known, &[])?;
    ask.say(told);
    super::this_node(ask)?;
    let mut rows = columns::rows(&chosen, &json!([]));
    rows.form = Form::Pretty;
    Ok(Output::Rows(rows))
}

fn connections(ask: &Ask<'_>) -> Result<Output, Failure> {
    empty(ask, CONNECTIONS, "Listing stream connections ...")
}

fn consumers(ask: &Ask<'_>) -> Result<Output, Failure> {
    empty(ask, CONSUMERS, "Listing stream consumers ...")
}

fn publishers(ask: &Ask<'_>) -> Result<Output, Failure> {
    empty(ask, PUBLISHERS, "Listing stream publishers ...")
}

fn groups(ask: &Ask<'_>) -> Result<Output, Failure> {
    empty(ask, GROUPS, "Listing stream consumer groups ...")
}

/// Both a stream and a reference are named.
fn named(ask: &Ask<'_>) -> Result<(), Failure> {
    match ask.line.has("stream") && ask.line.has("reference") {
        true => Ok(()),
        false => Err(Failure::usage("not enough arguments.")),
    }
}

fn group_consumers(ask: &Ask<'_>) -> Result<Output, Failure> {
    named(ask)?;
    empty(ask, GROUP_CONSUMERS, "Listing group consumers ...")?;
    Err(Failure::error(UNAVAILABLE, "The group does not exist"))
}

/// Something is not there, as the node would say if it had streams.
fn missing(ask: &Ask<'_>, told: &str, text: &str) -> Result<Output, Failure> {
    ask.say(told);
    super::this_node(ask)?;
    Err(Failure::error(UNAVAILABLE, text))
}

fn activate(ask: &Ask<'_>) -> Result<Output, Failure> {
    named(ask)?;
    missing(
        ask,
        "Activating a consumer in the group ...",
        "The group does not exist",
    )
}

fn tracking(ask: &Ask<'_>) -> Result<Output, Failure> {
    let kinds = ["all", "offset", "writer"].map(|kind| ask.line.has(kind));
    if kinds.iter().filter(|given| **given).count() > 1 {
        return Err(Failure::usage("Specify only one of --all, --offset, --writer."));
    }
    let told = format!("Listing tracking information for stream {} ...", ask.word(0));
    missing(ask, &told, "The stream does not exist.")
}

fn reset(ask: &Ask<'_>) -> Result<Output, Failure> {
    named(ask)?;
    missing(ask, "Resetting stored offset ...", "The stream does not exist")
}

fn add_super(ask: &Ask<'_>) -> Result<Output, Failure> {
    missing(
        ask,
        "Adding a super stream...",
        "This broker has no streams, so super streams cannot be added",
    )
}

fn delete_super(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Deleting a super stream...");
    super::this_node(ask)?;
    Err(Failure::error(SOFTWARE, "stream_not_found"))
}
