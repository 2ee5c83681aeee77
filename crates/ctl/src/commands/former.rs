//! Commands of RabbitMQ 3.10 that 4.x no longer has, and those of plugins whose features are not part of this broker: a single node
//! mirrors nothing and has no links to others, so lists are empty.

use crate::ask::{Ask, encode};
use crate::command::{Command, Section::Cluster, Section::Monitoring, Section::Operations, Section::Queues};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE, USAGE};
use crate::output::{Output, Rows};
use crate::tool::Tool;

const BOTH: &[Tool] = &[Tool::Ctl, Tool::Diagnostics];

pub const COMMANDS: &[Command] = &[
    Command::new(Queues, "sync_queue", (1, 1), "[--vhost <vhost>] <queue>", sync)
        .about("Fails: no queue is mirrored, so there is nothing to synchronise"),
    Command::new(
        Queues,
        "cancel_sync_queue",
        (1, 1),
        "[--vhost <vhost>] <queue>",
        cancel,
    )
    .about("Fails: no queue is mirrored, so nothing is being synchronised"),
    Command::new(
        Cluster,
        "change_cluster_node_type",
        (1, 1),
        "<disc | ram>",
        node_type,
    )
    .about("Fails: a single node keeps everything on disk"),
    Command::new(
        Operations,
        "await_online_synchronized_mirror",
        (0, 0),
        "[--timeout <timeout>]",
        await_mirror,
    )
    .about("Waits for mirrors of queues; a single node has none, so it returns at once")
    .of(&[Tool::Upgrade]),
    Command::new(
        Monitoring,
        "shovel_status",
        (0, 0),
        "[--timeout <timeout>]",
        shovels,
    )
    .about("Lists shovels; there are none in this version")
    .of(BOTH),
    Command::new(Monitoring, "federation_status", (0, 0), "[--only-down]", links)
        .about("Lists federation links; there are none in this version")
        .options(&["only-down"])
        .of(BOTH),
    Command::new(
        Monitoring,
        "list_mqtt_connections",
        (0, 64),
        "[--verbose] [<column> ...]",
        mqtt,
    )
    .about("Lists MQTT connections; there are none in this version")
    .options(&["verbose"])
    .of(BOTH),
];

/// The queue is there, and is no mirrored one.
fn not_mirrored(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (queue, vhost) = (ask.word(0), ask.vhost());
    let path = format!("/queues/{}/{}?columns=name", encode(vhost), encode(queue));
    match ask.find(&path)? {
        Some(_) => Err(Failure::error(UNAVAILABLE, ":not_mirrored")),
        None => Err(Failure::error(UNAVAILABLE, ":not_found")),
    }
}

fn sync(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Synchronising queue '{}' in vhost '{}' ...",
        ask.word(0),
        ask.vhost()
    ));
    not_mirrored(ask)
}

fn cancel(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Stopping synchronising queue '{}' in vhost '{}' ...",
        ask.word(0),
        ask.vhost()
    ));
    not_mirrored(ask)
}

fn node_type(ask: &Ask<'_>) -> Result<Output, Failure> {
    match ask.word(0) {
        "disc" | "disk" | "ram" => {
            let text = "Error: change_cluster_node_type is for clusters; this version runs a single node, which keeps everything on disk";
            Err(Failure::plain(USAGE, text))
        }
        other => {
            let text = format!("Bad argument: The node type must be either disc or ram, not {other}");
            Err(Failure::argument(BAD_VALUE, text))
        }
    }
}

fn await_mirror(ask: &Ask<'_>) -> Result<Output, Failure> {
    let seconds = ask.patience.map_or(120, |patience| patience.as_secs());
    ask.say(format!(
        "Will wait for a synchronised mirror be online for all classic mirrored queues for {seconds} seconds..."
    ));
    ask.get("/overview?columns=node")?;
    Ok(Output::text(
        "Target node seems to be the only one in a single node cluster, the command does not apply",
    ))
}

fn empty(ask: &Ask<'_>, told: String) -> Result<Output, Failure> {
    ask.say(told);
    ask.get("/overview?columns=node")?;
    Ok(Output::Rows(Rows::default()))
}

fn shovels(ask: &Ask<'_>) -> Result<Output, Failure> {
    empty(ask, format!("Shovel status on node {}", ask.node()))
}

fn links(ask: &Ask<'_>) -> Result<Output, Failure> {
    empty(ask, format!("Listing federation links on node {}...", ask.node()))
}

fn mqtt(ask: &Ask<'_>) -> Result<Output, Failure> {
    empty(ask, "Listing MQTT connections ...".into())
}
