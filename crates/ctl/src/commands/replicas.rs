//! Replicas of quorum queues and streams. A single node has neither, so these commands answer as RabbitMQ does about what is not there.

use crate::ask::{Ask, encode};
use crate::command::{Command, Run, Section::Operations, Section::Queues};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE, USAGE};
use crate::output::{Output, Rows};
use crate::tool::Tool;

const QUEUES: &[Tool] = &[Tool::Queues];
const STREAMS: &[Tool] = &[Tool::Streams];
const WATCHERS: &[Tool] = &[Tool::Queues, Tool::Diagnostics];

/// The options of commands for all queues whose names match.
const MATCHING: &[&str] = &["vhost-pattern=", "queue-pattern=", "errors-only"];
const GROWING: &[&str] = &["vhost-pattern=", "queue-pattern=", "membership=", "errors-only"];

/// A command about replicas.
const fn replicas(
    tools: &'static [Tool],
    name: &'static str,
    words: usize,
    usage: &'static str,
    about: &'static str,
    run: Run,
) -> Command {
    Command::new(Queues, name, (words, words), usage, run)
        .about(about)
        .of(tools)
}

pub const COMMANDS: &[Command] = &[
    replicas(QUEUES, "add_member", 2, "[--vhost <vhost>] <queue> <node> [--membership <promotable|voter>]", "Adds a replica of a quorum queue", add_member)
        .options(&["membership="]),
    replicas(QUEUES, "delete_member", 2, "[--vhost <vhost>] <queue> <node>", "Removes a replica of a quorum queue", delete_member),
    replicas(QUEUES, "grow", 2, "<node> <all | even> [--vhost-pattern <pattern>] [--queue-pattern <pattern>] [--membership <promotable|voter>]", "Adds replicas of quorum queues on a node", grow)
        .options(GROWING),
    replicas(QUEUES, "grow_to_count", 2, "<node_count> <all | even> [--vhost-pattern <pattern>] [--queue-pattern <pattern>] [--membership <promotable|voter>]", "Adds \
     replicas of quorum queues up to the given number", grow_to_count)
        .options(GROWING),
    replicas(QUEUES, "shrink", 1, "<node> [--errors-only]", "Removes the replicas of quorum queues from a node", shrink).options(&["errors-only"]),
    replicas(QUEUES, "force_checkpoint", 0, "[--vhost-pattern <pattern>] [--queue-pattern <pattern>]", "Makes \
     quorum queues write checkpoints", force_checkpoint)
        .options(MATCHING),
    replicas(WATCHERS, "quorum_status", 1, "[--vhost <vhost>] <queue>", "Shows the replicas of a quorum queue", quorum_status),
    replicas(WATCHERS, "reclaim_quorum_memory", 1, "[--vhost <vhost>] <quorum queue>", "Runs garbage collection for \
     a quorum queue", reclaim),
    replicas(QUEUES, "peek", 2, "[--vhost <vhost>] <queue> <position>", "Shows a message of a quorum queue; for \
     classic queues use browse_messages", peek),
    replicas(QUEUES, "transfer_leadership", 2, "[--vhost <vhost>] <queue> <node>", "Moves the leader of a quorum queue", transfer_queue),
    Command::new(
        Operations,
        "check_if_new_quorum_queue_replicas_have_finished_initial_sync",
        (0, 0),
        "",
        synced,
    )
    .about("Fails while this node has promotable replicas of quorum queues; it has none")
    .of(WATCHERS),
    replicas(&[Tool::Streams, Tool::Queues, Tool::Diagnostics], "stream_status", 1, "[--vhost <vhost>] [--tracking] <stream>", "Shows the replicas of a stream", stream_status)
        .options(&["tracking"]),
    replicas(STREAMS, "restart_stream", 1, "[--vhost <vhost>] <stream> [--preferred-leader-node <node>]", "Restarts a stream", restart_stream)
        .options(&["preferred-leader-node="]),
    replicas(STREAMS, "add_replica", 2, "[--vhost <vhost>] <stream> <node>", "Adds a replica of a stream", add_replica),
    replicas(STREAMS, "delete_replica", 2, "[--vhost <vhost>] <queue> <node>", "Removes a replica of a stream", delete_replica),
    replicas(STREAMS, "grow", 2, "<node> <all | even> [--vhost-pattern <pattern>] [--queue-pattern <pattern>] [--errors-only]", "Adds replicas of streams on a node", grow_streams)
        .options(MATCHING),
    replicas(STREAMS, "shrink", 1, "<node> [--errors-only]", "Removes the replicas of streams from a node", shrink_streams).options(&["errors-only"]),
    replicas(STREAMS, "transfer_leadership", 2, "[--vhost <vhost>] <stream> <node>", "Moves the leader of a stream", transfer_stream),
    replicas(&[Tool::Streams, Tool::Diagnostics], "coordinator_status", 0, "", "Shows the status of the stream \
     coordinator", coordinator),
];

/// What a list of replicas is when there are none.
fn none() -> Output {
    Output::Rows(Rows::default())
}

/// RabbitMQ shows these words in quotes.
fn wrong(text: String) -> Failure {
    Failure::usage(format!("\"{text}\""))
}

fn membership(ask: &Ask<'_>) -> Result<(), Failure> {
    match ask.line.value("membership") {
        None | Some("promotable" | "voter" | "non_voter") => Ok(()),
        Some(other) => Err(wrong(format!("voter status '{other}' is not recognised."))),
    }
}

fn strategy(ask: &Ask<'_>) -> Result<(), Failure> {
    match ask.word(1) {
        "all" | "even" => Ok(()),
        other => Err(wrong(format!("strategy '{other}' is not recognised."))),
    }
}

/// The node that is named is this one.
fn here(ask: &Ask<'_>, node: &str) -> Result<bool, Failure> {
    let this = super::this_node(ask)?;
    Ok(super::text(&this, "name") == node || ask.node() == node)
}

fn member(ask: &Ask<'_>, node: &str) -> Result<(), Failure> {
    match here(ask, node)? {
        true => Ok(()),
        false => Err(Failure {
            with_usage: true,
            ..Failure::plain(
                USAGE,
                format!("Error: node {node} is not a member of the cluster"),
            )
        }),
    }
}

/// The failure of what is for quorum queues: the queue is another one, or not there.
fn no_quorum_queue(ask: &Ask<'_>) -> Failure {
    match other_queue(ask) {
        Err(failure) => failure,
        Ok(Some(text)) => Failure::plain(BAD_VALUE, text),
        Ok(None) => {
            let (queue, vhost) = (ask.word(0), ask.vhost());
            Failure::plain(
                BAD_VALUE,
                format!("queue '{queue}' was not found in virtual host '{vhost}'"),
            )
        }
    }
}

/// What is to be said of a queue that is there.
fn other_queue(ask: &Ask<'_>) -> Result<Option<String>, Failure> {
    let (queue, vhost) = (ask.word(0), ask.vhost());
    let path = format!("/queues/{}/{}?columns=name", encode(vhost), encode(queue));
    let is_there = ask.find(&path)?.is_some();
    Ok(is_there.then(|| format!("queue '{queue}' in virtual host '{vhost}' is not a quorum queue")))
}

fn add_member(ask: &Ask<'_>) -> Result<Output, Failure> {
    membership(ask)?;
    member(ask, ask.word(1))?;
    ask.say(format!(
        "Adding a member for queue {} on node {}...",
        ask.word(0),
        ask.word(1)
    ));
    Err(no_quorum_queue(ask))
}

fn delete_member(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Removing a replica of queue {} on node {}...",
        ask.word(0),
        ask.word(1)
    ));
    Err(no_quorum_queue(ask))
}

fn grow(ask: &Ask<'_>) -> Result<Output, Failure> {
    strategy(ask)?;
    membership(ask)?;
    member(ask, ask.word(0))?;
    ask.say(format!("Growing {} queues on {}...", ask.word(1), ask.word(0)));
    Ok(none())
}

fn grow_to_count(ask: &Ask<'_>) -> Result<Output, Failure> {
    let count = ask.word(0);
    if !count.parse::<u64>().is_ok_and(|count| count > 0) {
        return Err(wrong(format!("node count '{count}' must be greater than 0.")));
    }
    strategy(ask)?;
    membership(ask)?;
    super::this_node(ask)?;
    ask.say(format!(
        "Growing {} quorum queues on {count} nodes...",
        ask.word(1)
    ));
    Ok(none())
}

fn shrink(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.word(0);
    ask.say(format!("Shrinking queues on {node}..."));
    match here(ask, node)? {
        true => Ok(none()),
        false => Err(Failure::error(
            UNAVAILABLE,
            format!("{{:node_not_running, :{node}}}"),
        )),
    }
}

fn force_checkpoint(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Forcing checkpoint for all matching quorum queues...");
    super::this_node(ask)?;
    Ok(none())
}

fn quorum_status(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Status of queue {} on node {} ...",
        ask.word(0),
        ask.node()
    ));
    Err(no_quorum_queue(ask))
}

fn no_target(ask: &Ask<'_>) -> Failure {
    match other_queue(ask) {
        Err(failure) => failure,
        Ok(Some(text)) => Failure::error(UNAVAILABLE, text),
        Ok(None) => Failure::error(
            UNAVAILABLE,
            format!("Target queue was not found in virtual host '{}'", ask.vhost()),
        ),
    }
}

fn reclaim(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Will garbage collect quorum queue {} ...", ask.word(0)));
    Err(no_target(ask))
}

fn peek(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (queue, position) = (ask.word(0), ask.word(1));
    if !position.parse::<u64>().is_ok_and(|position| position > 0) {
        return Err(wrong("position value must be a positive integer".into()));
    }
    ask.say(format!(
        "Peeking at quorum queue {queue} at position {position} on node {} ...",
        ask.node()
    ));
    Err(no_target(ask))
}

fn transfer_queue(ask: &Ask<'_>) -> Result<Output, Failure> {
    transfer(ask, "quorum queue")
}

fn transfer_stream(ask: &Ask<'_>) -> Result<Output, Failure> {
    transfer(ask, "stream")
}

fn transfer(ask: &Ask<'_>, kind: &str) -> Result<Output, Failure> {
    ask.say(format!(
        "Transferring leadership of {kind} {} to node {}...",
        ask.word(0),
        ask.word(1)
    ));
    Err(no_quorum_queue(ask))
}

fn synced(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.node();
    ask.say(format!(
        "Checking if node {node} runs promotable replicas of any queues ..."
    ));
    super::this_node(ask)?;
    Ok(Output::text(format!(
        "Node {node} reported no queues with promotable replicas"
    )))
}

fn no_stream(ask: &Ask<'_>, told: String) -> Result<Output, Failure> {
    ask.say(told);
    super::this_node(ask)?;
    Err(Failure::plain(
        BAD_VALUE,
        "Object (queue, stream, exchange, etc) was not found",
    ))
}

fn stream_status(ask: &Ask<'_>) -> Result<Output, Failure> {
    no_stream(
        ask,
        format!("Status of stream {} on node {} ...", ask.word(0), ask.node()),
    )
}

fn restart_stream(ask: &Ask<'_>) -> Result<Output, Failure> {
    no_stream(ask, format!("Restarting stream {}...", ask.word(0)))
}

fn add_replica(ask: &Ask<'_>) -> Result<Output, Failure> {
    no_stream(
        ask,
        format!(
            "Adding a replica for stream {} on node {}...",
            ask.word(0),
            ask.word(1)
        ),
    )
}

fn delete_replica(ask: &Ask<'_>) -> Result<Output, Failure> {
    no_stream(
        ask,
        format!(
            "Removing a replica of queue {} on node {}...",
            ask.word(0),
            ask.word(1)
        ),
    )
}

fn grow_streams(ask: &Ask<'_>) -> Result<Output, Failure> {
    strategy(ask)?;
    member(ask, ask.word(0))?;
    ask.say(format!("Growing {} streams on {}...", ask.word(1), ask.word(0)));
    Ok(none())
}

fn shrink_streams(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Shrinking streams on {}...", ask.word(0)));
    super::this_node(ask)?;
    Ok(none())
}

/// Where there are no streams nobody coordinates them.
fn coordinator(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Status of stream coordinator ...");
    super::this_node(ask)?;
    Ok(none())
}
