//! Replicas of quorum queues, as `rabbitmq-queues` speaks of them.

use super::absent::{
    Answer, filled, is_positive, known_columns, membership, running_member, strategy, table,
};
use super::members::{self, Kind::Quorum, change, changed, each, members, path, sized, why};
use super::{text, this_node};
use crate::ask::{Ask, encode};
use crate::columns::{self, Column};
use crate::command::{Command, Section::*};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE};
use crate::http;
use crate::output::{Form, Output, Rows};
use crate::tool::Tool::{self, Diagnostics};
use serde_json::{Value, json};

/// So much of a body is shown, in bytes.
const SHOWN: u64 = 64;

pub const COMMANDS: &[Command] = table! {
    [Tool::Queues] Queues "add_member" 2 2 "[--vhost <vhost>] <queue> <node> [--membership <promotable|voter>]";
        "Adds a replica of a quorum queue";
        ["membership="] add_member;
    [Tool::Queues] Queues "delete_member" 2 2 "[--vhost <vhost>] <queue> <node>"; "Removes a replica of a quorum queue";
        [] delete_member;
    [Tool::Queues] Queues "grow" 2 2
        "<node> <all | even> [--vhost-pattern <pattern>] [--queue-pattern <pattern>] [--membership <promotable|voter>]";
        "Adds replicas of quorum queues on a node";
        ["vhost-pattern=", "queue-pattern=", "membership=", "errors-only"] |ask| {
            membership(ask)?;
            members::grow(ask, Quorum)
        };
    [Tool::Queues] Queues "grow_to_count" 2 2
        "<node_count> <all | even> [--vhost-pattern <pattern>] [--queue-pattern <pattern>] [--membership <promotable|voter>]";
        "Adds replicas of quorum queues up to the given number";
        ["vhost-pattern=", "queue-pattern=", "membership=", "errors-only"] grow_to_count;
    [Tool::Queues] Queues "shrink" 1 1 "<node> [--errors-only]"; "Removes the replicas of quorum queues from a node";
        ["errors-only"] |ask| members::shrink(ask, Quorum);
    [Tool::Queues] Queues "force_checkpoint" 0 0 "[--vhost-pattern <pattern>] [--queue-pattern <pattern>]";
        "Makes quorum queues write checkpoints";
        ["vhost-pattern=", "queue-pattern=", "errors-only"] checkpoint;
    [Tool::Queues, Diagnostics] Queues "quorum_status" 1 1 "[--vhost <vhost>] <queue>"; "Shows the replicas of a quorum queue";
        [] status;
    [Tool::Queues, Diagnostics] Queues "reclaim_quorum_memory" 1 1 "[--vhost <vhost>] <quorum queue>";
        "Runs garbage collection for a quorum queue";
        [] |ask| {
            target(
                ask,
                "Will garbage collect quorum queue {0} ...",
                "This operation is not applicable to classic queues",
            )
            .map(|()| Output::Done)
        };
    [Tool::Queues] Queues "peek" 2 2 "[--vhost <vhost>] <queue> <position>";
        "Shows a message of a quorum queue; for classic queues use browse_messages";
        [] |ask| {
            is_positive(ask.word(1), |_| "position value must be a positive integer".into())?;
            target(
                ask,
                "Peeking at quorum queue {0} at position {1} on node {node} ...",
                "Cannot peek into a classic queue",
            )?;
            peek(ask)
        };
    [Tool::Queues] Queues "transfer_leadership" 2 2 "[--vhost <vhost>] <queue> <node>"; "Moves the leader of a quorum queue";
        [] |ask| {
            let told = "Transferring leadership of quorum queue {0} to node {1}...";
            let queue = of_quorum_queue(ask, told, "Cannot transfer leadership of a non-quorum queue")?;
            members::transfer(ask, &queue)
        };
    [Tool::Queues, Diagnostics] Operations "check_if_new_quorum_queue_replicas_have_finished_initial_sync" 0 0 "";
        "Fails while this node has promotable replicas of quorum queues";
        [] finished_sync;
};

const FORCING: &str = "\
For queues whose majority is lost for good: nodes that never come back with their disks. The queue goes on with the copy of the node\n\
that the command is run on, or that --node names; its other members are removed, and forget what they have when they come back. What\n\
they had confirmed and this copy lacks is lost. add_member or grow give the queue other members again.\n\
\n\
Before:  why_unavailable <queue>   says which copy has most, and what is lost with it.\n\
After:   add_member <queue> <node>\n\
\n\
It is refused if the queue has a leader or a majority that will elect one, if another copy that is reached has more, or if this one is\n\
still being filled. --force does it all the same, and then loses what was confirmed though others have it. RabbitMQ has this as a\n\
function of rabbit_quorum_queue, to be called by eval.";

/// What brings queues back whose majority is lost.
pub const RECOVERY: &[Command] = &[
    Command::new(Queues, "why_unavailable", (1, 1), "[--vhost <vhost>] <queue>", why_unavailable)
        .about("Says why a quorum or mirrored queue is unavailable, who would have to come back, and what going on without them loses")
        .of(&[Tool::Queues, Diagnostics]),
    Command::new(
        Queues,
        "force_shrink_member_to_current_member",
        (1, 1),
        "[--vhost <vhost>] <queue> [--force]",
        force_shrink,
    )
    .about("Has a quorum or mirrored queue whose majority is lost for good go on with this node's copy alone")
    .more(FORCING)
    .options(&["force"])
    .of(&[Tool::Queues]),
    Command::new(
        Queues,
        "force_all_queues_shrink_member_to_current_member",
        (0, 0),
        "[--vhost-pattern <pattern>] [--queue-pattern <pattern>] [--errors-only] [--force]",
        force_shrink_all,
    )
    .about("Does the same for all quorum queues that have no leader and a copy on this node")
    .more(FORCING)
    .options(&["vhost-pattern=", "queue-pattern=", "errors-only", "force"])
    .of(&[Tool::Queues]),
];

const STATUS: &[Column] = known_columns!(
    "Node Name" "Raft State" "Membership" "Last Log Index" "Last Written" "Last Applied" "Commit Index" "Snapshot Index" "Term"
    "Machine Version"
);

/// The same while a member is being made of what others have.
const STATUS_AND_TRANSFER: &[Column] = known_columns!(
    "Node Name" "Raft State" "Membership" "Last Log Index" "Last Written" "Last Applied" "Commit Index" "Snapshot Index" "Term"
    "Machine Version" "Transfer"
);

/// Tells what is done with a queue, and finds what that is.
fn found(ask: &Ask<'_>, told: &str) -> Result<Option<Value>, Failure> {
    ask.say(filled(ask, told));
    ask.find(&format!(
        "/queues/{}?columns=type,leader,members,slave_nodes",
        path(ask)
    ))
}

/// RabbitMQ says here the name of the module that classic queues are.
const CLASSIC: &str = "queue '{0}' in virtual host '{vhost}' is not a quorum queue";

/// The quorum queue of this name; of another one this is said.
fn of_quorum_queue(ask: &Ask<'_>, told: &str, other: &str) -> Result<Value, Failure> {
    let queue = found(ask, told)?;
    described(ask, queue, other)
}

fn described(ask: &Ask<'_>, queue: Option<Value>, other: &str) -> Result<Value, Failure> {
    match queue {
        Some(queue) if text(&queue, "type") == "quorum" => Ok(queue),
        Some(_) => Err(Failure::error(UNAVAILABLE, filled(ask, other))),
        None => {
            let text = "queue '{0}' was not found in virtual host '{vhost}'";
            Err(Failure::plain(BAD_VALUE, filled(ask, text)))
        }
    }
}

/// The same of a quorum queue or a mirrored one.
fn of_replicated_queue(ask: &Ask<'_>, told: &str, other: &str) -> Result<(), Failure> {
    match found(ask, told)? {
        Some(queue) if text(&queue, "type") == "quorum" || queue.get("slave_nodes").is_some() => Ok(()),
        queue => described(ask, queue, other).map(drop),
    }
}

/// The same, in other words.
fn target(ask: &Ask<'_>, told: &str, other: &str) -> Result<(), Failure> {
    let text = match found(ask, told)? {
        Some(queue) if text(&queue, "type") == "quorum" => return Ok(()),
        Some(_) => other,
        None => "Target queue was not found in virtual host '{vhost}'",
    };
    Err(Failure::error(UNAVAILABLE, filled(ask, text)))
}

fn status(ask: &Ask<'_>) -> Answer {
    of_quorum_queue(ask, "Status of queue {0} on node {node} ...", CLASSIC)?;
    let mut members = ask.get(&format!("/queues/quorum/{}/status", path(ask)))?;
    let mut columns = STATUS;
    for member in members.as_array_mut().into_iter().flatten() {
        if let Some(told) = member.get("transfer").map(in_words) {
            member["Transfer"] = told.into();
            columns = STATUS_AND_TRANSFER;
        }
    }
    let mut rows = columns::rows(columns, &members);
    rows.form = Form::Pretty;
    Ok(Output::Rows(rows))
}

/// How far a copy is, in words: `messages 63% (1200 of 1900, 45000 bytes)`.
fn in_words(told: &Value) -> String {
    let number = |name: &str| told[name].as_u64();
    let (phase, bytes) = (text(told, "phase"), number("bytes").unwrap_or(0));
    let of = match (number("messages"), number("messages_left"), number("bytes_left")) {
        (Some(done), Some(left), _) => format!("{done} of {}, {bytes} bytes", done + left),
        (.., Some(left)) => format!("{bytes} of {} bytes", bytes + left),
        _ => return phase.to_owned(),
    };
    format!("{phase} {}% ({of})", number("percent").unwrap_or(0))
}

fn why_unavailable(ask: &Ask<'_>) -> Answer {
    of_replicated_queue(
        ask,
        "Availability of queue {0} in virtual host {vhost} ...",
        CLASSIC,
    )?;
    let told = ask.get(&format!("/leveret/availability/queues/{}", path(ask)))?;
    let says = told["says"].as_array().into_iter().flatten();
    let lines: Vec<&str> = says.filter_map(Value::as_str).collect();
    Ok(Output::Told(lines.join("\n"), told))
}

/// Has a queue go on with the copy of the node that is asked.
fn forced(ask: &Ask<'_>, path: &str) -> Result<http::Answer, Failure> {
    let body = json!({"force": ask.line.has("force")});
    ask.call(
        "POST",
        &format!("/queues/quorum/{path}/replicas/force-shrink"),
        Some(&body),
    )
}

fn force_shrink(ask: &Ask<'_>) -> Answer {
    of_replicated_queue(
        ask,
        "Shrinking queue {0} to the copy of node {node} alone...",
        CLASSIC,
    )?;
    let answer = forced(ask, &path(ask))?;
    if answer.status == 503 {
        return Err(Failure::error(UNAVAILABLE, why(&answer)));
    }
    ask.accepted(&answer)?;
    let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let says = told["says"].as_array().into_iter().flatten();
    let mut lines = vec![format!(
        "The queue goes on with the copy of {} alone.",
        text(&told, "node")
    )];
    lines.extend(says.filter_map(|it| it.as_str().map(str::to_owned)));
    Ok(Output::Told(lines.join("\n"), told))
}

fn force_shrink_all(ask: &Ask<'_>) -> Answer {
    let here = this_node(ask)?;
    let node = text(&here, "name");
    ask.say(format!(
        "Shrinking quorum queues without a leader to the copies of node {node} alone..."
    ));
    each(ask, Quorum, &["result"], |queue| {
        let is_led = !text(queue, "leader").is_empty() && !ask.line.has("force");
        if is_led || !members(queue).contains(&node) {
            return Ok(None);
        }
        let [vhost, name] = ["vhost", "name"].map(|it| encode(text(queue, it)));
        let answer = forced(ask, &format!("{vhost}/{name}"))?;
        let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let result = match answer.status {
            200..=299 => format!("ok: {}", text(&told, "loses")),
            _ => format!("error: {}", why(&answer)),
        };
        Ok(Some(vec![result.into()]))
    })
}

fn add_member(ask: &Ask<'_>) -> Answer {
    membership(ask)?;
    running_member(ask, ask.word(1))?;
    of_quorum_queue(ask, "Adding a member for queue {0} on node {1}...", CLASSIC)?;
    change(ask, Quorum, true)
}

fn delete_member(ask: &Ask<'_>) -> Answer {
    of_quorum_queue(ask, "Removing a replica of queue {0} on node {1}...", CLASSIC)?;
    change(ask, Quorum, false)
}

fn finished_sync(ask: &Ask<'_>) -> Answer {
    let node = ask.node();
    ask.say(filled(
        ask,
        "Checking if node {node} runs promotable replicas of any queues ...",
    ));
    let queues =
        ask.get("/queues?columns=type,vhost,name,members&disable_stats=true&enable_queue_totals=true")?;
    let queues = queues.as_array().into_iter().flatten();
    let here = queues.filter(|queue| {
        let members = queue["members"].as_array();
        text(queue, "type") == "quorum" && members.is_some_and(|them| them.iter().any(|it| it == &*node))
    });
    let mut lines = Vec::new();
    for queue in here {
        let (vhost, name) = (text(queue, "vhost"), text(queue, "name"));
        let path = format!("/queues/quorum/{}/{}/status", encode(vhost), encode(name));
        let rows = ask.get(&path)?;
        let own = rows.as_array().into_iter().flatten();
        let mut own = own.filter(|row| text(row, "Node Name") == node);
        if own.any(|row| text(row, "Membership") == "promotable") {
            lines.push(format!(
                "queue '{name}' in virtual host '{vhost}' has a promotable replica on node {node}"
            ));
        }
    }
    match lines.is_empty() {
        true => {
            let text = "Node {node} reported no queues with promotable replicas";
            Ok(Output::text(filled(ask, text)))
        }
        false => Err(Failure::error(UNAVAILABLE, lines.join("\n"))),
    }
}

fn grow_to_count(ask: &Ask<'_>) -> Answer {
    let wrong = |count: &str| format!("node count '{count}' must be greater than 0.");
    is_positive(ask.word(0), wrong)?;
    strategy(ask)?;
    membership(ask)?;
    ask.say(format!(
        "Growing {} quorum queues on {} nodes...",
        ask.word(1),
        ask.word(0)
    ));
    let (count, only_even) = (ask.word(0).parse().unwrap_or(0), ask.word(1) == "even");
    let nodes = super::nodes(ask)?;
    let running = nodes.iter().filter(|node| node["running"] == json!(true));
    let running: Vec<&str> = running.map(|node| text(node, "name")).collect();
    each(ask, Quorum, &["size", "result"], |queue| {
        let members = members(queue);
        if members.len() >= count || only_even && members.len() % 2 == 1 {
            return Ok(None);
        }
        let others = running.iter().filter(|node| !members.contains(node));
        let mut size = members.len();
        for node in others.take(count - members.len()) {
            let result = changed(ask, Quorum, queue, node, true)?;
            if result != json!("ok") {
                return Ok(Some(sized(size, result)));
            }
            size += 1;
        }
        Ok(Some(sized(size, json!("ok"))))
    })
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
    let properties = message["properties"].as_object().into_iter().flatten();
    let properties = properties.filter(|(name, _)| *name != "headers");
    pairs.extend(properties.map(|(name, value)| (name.clone(), value.clone())));
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

/// Checkpoints are written whenever they are due: there is nothing to be forced.
fn checkpoint(ask: &Ask<'_>) -> Answer {
    ask.say("Forcing checkpoint for all matching quorum queues...");
    each(ask, Quorum, &["result"], |_| Ok(Some(vec!["{ok}".into()])))
}
