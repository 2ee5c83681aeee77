//! Replicas of quorum queues, as `rabbitmq-queues` speaks of them. On a node alone each queue has one, which leads; what would
//! need another one says what RabbitMQ says there.

use super::absent::{
    Answer, filled, here, is_positive, known_columns, member, membership, nothing, strategy, table,
};
use super::text;
use crate::ask::{Ask, encode};
use crate::columns::{self, Column};
use crate::command::{Command, Section::*};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE};
use crate::output::{Form, Output, Rows};
use crate::tool::Tool::{self, Diagnostics};
use regex::Regex;
use serde_json::{Value, json};

/// So much of a body is shown, in bytes.
const SHOWN: u64 = 64;

pub const COMMANDS: &[Command] = table! {
    [Tool::Queues] Queues "add_member" 2 2 "[--vhost <vhost>] <queue> <node> [--membership <promotable|voter>]";
        "Adds a replica of a quorum queue";
        ["membership="] |ask| {
            membership(ask)?;
            member(ask, ask.word(1))?;
            of_quorum_queue(ask, "Adding a member for queue {0} on node {1}...").map(|_| Output::Done)
        };
    [Tool::Queues] Queues "delete_member" 2 2 "[--vhost <vhost>] <queue> <node>"; "Removes a replica of a quorum queue";
        [] delete_member;
    [Tool::Queues] Queues "grow" 2 2
        "<node> <all | even> [--vhost-pattern <pattern>] [--queue-pattern <pattern>] [--membership <promotable|voter>]";
        "Adds replicas of quorum queues on a node";
        ["vhost-pattern=", "queue-pattern=", "membership=", "errors-only"] |ask| {
            strategy(ask)?;
            membership(ask)?;
            member(ask, ask.word(0))?;
            nothing(ask, "Growing {1} queues on {0}...")
        };
    [Tool::Queues] Queues "grow_to_count" 2 2
        "<node_count> <all | even> [--vhost-pattern <pattern>] [--queue-pattern <pattern>] [--membership <promotable|voter>]";
        "Adds replicas of quorum queues up to the given number";
        ["vhost-pattern=", "queue-pattern=", "membership=", "errors-only"] |ask| {
            let wrong = |count: &str| format!("node count '{count}' must be greater than 0.");
            is_positive(ask.word(0), wrong)?;
            strategy(ask)?;
            membership(ask)?;
            nothing(ask, "Growing {1} quorum queues on {0} nodes...")
        };
    [Tool::Queues] Queues "shrink" 1 1 "<node> [--errors-only]"; "Removes the replicas of quorum queues from a node";
        ["errors-only"] shrink;
    [Tool::Queues] Queues "force_checkpoint" 0 0 "[--vhost-pattern <pattern>] [--queue-pattern <pattern>]";
        "Makes quorum queues write checkpoints";
        ["vhost-pattern=", "queue-pattern=", "errors-only"] checkpoint;
    [Tool::Queues, Diagnostics] Queues "quorum_status" 1 1 "[--vhost <vhost>] <queue>"; "Shows the replicas of a quorum queue";
        [] status;
    [Tool::Queues, Diagnostics] Queues "reclaim_quorum_memory" 1 1 "[--vhost <vhost>] <quorum queue>";
        "Runs garbage collection for a quorum queue";
        [] |ask| target(ask, "Will garbage collect quorum queue {0} ...").map(|()| Output::Done);
    [Tool::Queues] Queues "peek" 2 2 "[--vhost <vhost>] <queue> <position>";
        "Shows a message of a quorum queue; for classic queues use browse_messages";
        [] |ask| {
            is_positive(ask.word(1), |_| "position value must be a positive integer".into())?;
            target(ask, "Peeking at quorum queue {0} at position {1} on node {node} ...")?;
            peek(ask)
        };
    [Tool::Queues] Queues "transfer_leadership" 2 2 "[--vhost <vhost>] <queue> <node>"; "Moves the leader of a quorum queue";
        [] transfer;
    [Tool::Queues, Diagnostics] Operations "check_if_new_quorum_queue_replicas_have_finished_initial_sync" 0 0 "";
        "Fails while this node has promotable replicas of quorum queues; it has none";
        [] |ask| {
            nothing(ask, "Checking if node {node} runs promotable replicas of any queues ...")?;
            Ok(Output::text(filled(ask, "Node {node} reported no queues with promotable replicas")))
        };
};

const STATUS: &[Column] = known_columns!(
    "Node Name" "Raft State" "Membership" "Last Log Index" "Last Written" "Last Applied" "Commit Index" "Snapshot Index" "Term"
    "Machine Version"
);

fn path(ask: &Ask<'_>) -> String {
    format!("{}/{}", encode(ask.vhost()), encode(ask.word(0)))
}

/// Tells what is done with a queue, and finds what that is.
fn found(ask: &Ask<'_>, told: &str) -> Result<Option<Value>, Failure> {
    ask.say(filled(ask, told));
    ask.find(&format!("/queues/{}?columns=type,leader", path(ask)))
}

/// The quorum queue of this name.
fn of_quorum_queue(ask: &Ask<'_>, told: &str) -> Result<Value, Failure> {
    let text = match found(ask, told)? {
        Some(queue) if text(&queue, "type") == "quorum" => return Ok(queue),
        Some(_) => "queue '{0}' in virtual host '{vhost}' is not a quorum queue",
        None => "queue '{0}' was not found in virtual host '{vhost}'",
    };
    Err(Failure::plain(BAD_VALUE, filled(ask, text)))
}

/// The same, in other words.
fn target(ask: &Ask<'_>, told: &str) -> Result<(), Failure> {
    let text = match found(ask, told)? {
        Some(queue) if text(&queue, "type") == "quorum" => return Ok(()),
        Some(_) => "queue '{0}' in virtual host '{vhost}' is not a quorum queue",
        None => "Target queue was not found in virtual host '{vhost}'",
    };
    Err(Failure::error(UNAVAILABLE, filled(ask, text)))
}

fn status(ask: &Ask<'_>) -> Answer {
    of_quorum_queue(ask, "Status of queue {0} on node {node} ...")?;
    let members = ask.get(&format!("/queues/quorum/{}/status", path(ask)))?;
    let mut rows = columns::rows(STATUS, &members);
    rows.form = Form::Pretty;
    Ok(Output::Rows(rows))
}

fn delete_member(ask: &Ask<'_>) -> Answer {
    of_quorum_queue(ask, "Removing a replica of queue {0} on node {1}...")?;
    match here(ask, ask.word(1))? {
        true => Err(Failure::error(UNAVAILABLE, "last_node")),
        // It has none there, which is what was asked for.
        false => Ok(Output::Done),
    }
}

fn transfer(ask: &Ask<'_>) -> Answer {
    of_quorum_queue(ask, "Transferring leadership of quorum queue {0} to node {1}...")?;
    let text = match here(ask, ask.word(1))? {
        true => "The target node is already the leader of this queue",
        false => "unknown_member",
    };
    Err(Failure::error(UNAVAILABLE, text))
}

/// The queue's message at a position that counts from 1.
fn peek(ask: &Ask<'_>) -> Answer {
    let index = ask.word(1).parse::<u64>().unwrap_or(1) - 1;
    let query = format!("index={index}&count=1&state=ready&truncate={SHOWN}");
    let page = ask.get(&format!("/leveret/queues/{}/messages?{query}", path(ask)))?;
    let Some(message) = page["messages"].get(0) else {
        let text = "Target queue does not have a message at that position";
        return Err(Failure::error(UNAVAILABLE, text));
    };
    let mut pairs = vec![
        ("routing_keys".to_owned(), message["routing_key"].clone()),
        ("exchange".to_owned(), message["exchange"].clone()),
        (format!("payload (max {SHOWN} bytes)"), message["payload"].clone()),
        ("header.x-delivery-count".to_owned(), message["returns"].clone()),
    ];
    let headers = message["properties"]["headers"].as_object();
    let headers = headers.into_iter().flatten();
    pairs.extend(headers.map(|(name, value)| (format!("header.{name}"), value.clone())));
    Ok(Output::Rows(Rows {
        columns: vec!["keys".into(), "values".into()],
        rows: pairs
            .into_iter()
            .map(|(name, value)| vec![json!(name), value])
            .collect(),
        form: Form::Pretty,
    }))
}

/// A pattern that an option says; without it everything matches.
fn pattern(ask: &Ask<'_>, option: &str) -> Result<Regex, Failure> {
    let said = ask.line.value(option).unwrap_or(".*");
    Regex::new(said).map_err(|error| Failure::usage(format!("--{option}: {error}")))
}

/// A row for each quorum queue that patterns of the line match.
fn each(ask: &Ask<'_>, names: &[&str], row: impl Fn(&Value) -> Vec<Value>) -> Answer {
    let queues = ask.get("/queues?columns=vhost,name,type,members")?;
    let queues = queues.as_array().into_iter().flatten();
    let (vhosts, names_of) = (pattern(ask, "vhost-pattern")?, pattern(ask, "queue-pattern")?);
    let quorum = queues.filter(|queue| {
        text(queue, "type") == "quorum"
            && vhosts.is_match(text(queue, "vhost"))
            && names_of.is_match(text(queue, "name"))
    });
    let row = |queue: &Value| [vec![queue["vhost"].clone(), queue["name"].clone()], row(queue)].concat();
    Ok(Output::Rows(Rows {
        columns: ["vhost", "name"]
            .iter()
            .chain(names)
            .map(|name| (*name).to_owned())
            .collect(),
        rows: quorum.map(row).collect(),
        form: Form::default(),
    }))
}

/// Checkpoints are written whenever they are due: there is nothing to be forced.
fn checkpoint(ask: &Ask<'_>) -> Answer {
    ask.say("Forcing checkpoint for all matching quorum queues...");
    each(ask, &["result"], |_| vec!["{ok}".into()])
}

fn shrink(ask: &Ask<'_>) -> Answer {
    let node = ask.word(0);
    ask.say(format!("Shrinking queues on {node}..."));
    if !here(ask, node)? {
        let text = format!("{{:node_not_running, :{node}}}");
        return Err(Failure::error(UNAVAILABLE, text));
    }
    each(ask, &["size", "result"], |queue| {
        let size = queue["members"].as_array().map_or(0, Vec::len);
        vec![size.into(), "error: the last node cannot be removed".into()]
    })
}
