//! What is done to queues, and what concerns their replicas.

use super::members::pattern;
use super::{number, text};
use crate::ask::{Ask, encode, reason};
use crate::command::{Command, Section::Operations, Section::Queues};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE, USAGE};
use crate::output::{Form, Output, Rows};
use crate::progress::Progress;
use crate::tool::Tool;
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

/// The time between two looks at how far something is.
const BETWEEN: Duration = Duration::from_millis(200);

pub const COMMANDS: &[Command] = &[
    Command::new(
        Queues,
        "delete_queue",
        (1, 1),
        "[--vhost <vhost>] <queue_name> [--if-empty|-e] [--if-unused|-u] [--force] [--timeout <timeout>]",
        delete,
    )
    .about("Deletes a queue and its messages")
    .options(&["if-empty|e", "if-unused|u", "force"]),
    Command::new(Queues, "purge_queue", (1, 1), "[--vhost <vhost>] <queue>", purge)
        .about("Removes all ready messages from a queue"),
    Command::new(
        Queues,
        "rebalance",
        (1, 1),
        "<all | classic | quorum | stream> [--vhost-pattern <pattern>] [--queue-pattern <pattern>]",
        rebalance,
    )
    .about("Spreads the leaders of quorum queues evenly over the nodes, and shows how many each of them has then")
    .options(&["vhost-pattern=", "queue-pattern="])
    .of(&[Tool::Queues]),
    Command::new(
        Operations,
        "check_if_node_is_quorum_critical",
        (0, 0),
        "",
        quorum_critical,
    )
    .about("Fails if queues would lose their quorum if this node stopped")
    .of(&[Tool::Queues, Tool::Diagnostics]),
    Command::new(
        Operations,
        "check_if_node_is_mirror_sync_critical",
        (0, 0),
        "",
        mirror_critical,
    )
    .about("Fails if mirrored queues would stop without the node")
    .of(&[Tool::Queues, Tool::Diagnostics]),
];

fn delete(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (queue, vhost) = (ask.word(0), ask.vhost());
    let (if_empty, if_unused) = (ask.line.has("if-empty"), ask.line.has("if-unused"));
    let conditions: Vec<&str> = [(if_empty, "if queue is empty"), (if_unused, "if queue is unused")]
        .into_iter()
        .filter_map(|(given, text)| given.then_some(text))
        .collect();
    let conditions = match conditions.is_empty() {
        true => String::new(),
        false => format!("{} ", conditions.join(" and ")),
    };
    ask.say(format!(
        "Deleting queue '{queue}' on vhost '{vhost}' {conditions}..."
    ));
    let path = format!("/queues/{}/{}", encode(vhost), encode(queue));
    let missing = || Failure::error(USAGE, "No such queue was found");
    let found = ask.find(&path)?.ok_or_else(missing)?;
    let query: Vec<&str> = [(if_empty, "if-empty=true"), (if_unused, "if-unused=true")]
        .into_iter()
        .filter_map(|(given, text)| given.then_some(text))
        .collect();
    let answer = ask.call("DELETE", &format!("{path}?{}", query.join("&")), None)?;
    match answer.status {
        404 => Err(missing()),
        400 if if_empty && number(&found, "messages") > 0 => {
            Err(Failure::error(USAGE, "The queue is not empty"))
        }
        400 if if_unused && number(&found, "consumers") > 0 => {
            Err(Failure::error(USAGE, "The queue is in use"))
        }
        _ => {
            ask.accepted(&answer)?;
            let ready = number(&found, "messages_ready");
            Ok(Output::text(format!(
                "Queue was successfully deleted with {ready} ready messages"
            )))
        }
    }
}

fn purge(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (queue, vhost) = (ask.word(0), ask.vhost());
    ask.say(format!("Purging queue '{queue}' in vhost '{vhost}' ..."));
    let path = format!("/queues/{}/{}/contents", encode(vhost), encode(queue));
    match ask.delete(&path)? {
        true => Ok(Output::Done),
        false => Err(Failure::plain(
            BAD_VALUE,
            "Object (queue, stream, exchange, etc) was not found",
        )),
    }
}

fn rebalance(ask: &Ask<'_>) -> Result<Output, Failure> {
    let kind = ask.word(0);
    if !["all", "classic", "quorum", "stream"].contains(&kind) {
        let text = format!("type {kind} is not supported. Try one of all, quorum, stream.");
        return Err(Failure::error(UNAVAILABLE, text));
    }
    ask.say(format!("Re-balancing leaders of {kind} queues..."));
    let (vhosts, names) = (pattern(ask, "vhost-pattern")?, pattern(ask, "queue-pattern")?);
    let wanted = json!({"type": kind, "vhost_pattern": vhosts.as_str(), "queue_pattern": names.as_str()});
    let answer = ask.call("POST", "/leveret/rebalance", Some(&wanted))?;
    let why = reason(&serde_json::from_slice(&answer.body).unwrap_or_default());
    if answer.status == 503 && why == "rebalance_in_progress" {
        let text = "a rebalance is under way: wait until it has ended";
        return Err(Failure::error(UNAVAILABLE, text));
    }
    ask.accepted(&answer)?;
    let came = await_end(ask)?;
    if kind == "classic" {
        ask.note("Nothing was moved: classic queues stay where they are.");
    }
    if number(&came, "failed") > 0 {
        ask.note(format!(
            "{} leaders were moved, {} could not be: the other node was not up to date, or the queue was led by another one by then.",
            number(&came, "moved"),
            number(&came, "failed")
        ));
    }
    let queues = ask.get("/queues?columns=vhost,name,type,leader")?;
    let queues = queues.as_array().into_iter().flatten();
    let meant = queues
        .filter(|queue| kind == "all" || text(queue, "type") == kind)
        .filter(|queue| vhosts.is_match(text(queue, "vhost")) && names.is_match(text(queue, "name")));
    let leaders: Vec<(&str, &str)> = meant
        .map(|queue| (text(queue, "type"), text(queue, "leader")))
        .collect();
    Ok(Output::Rows(balance(
        &super::nodes(ask)?,
        &leaders,
        kind == "stream",
    )))
}

/// Waits until it has ended, as long as the line allows. What came of it.
fn await_end(ask: &Ask<'_>) -> Result<Value, Failure> {
    let until = ask.timeout.map(|timeout| Instant::now() + timeout);
    let mut progress = Progress::new("leaders are moved; looks", 0);
    loop {
        let found = ask.get("/leveret/rebalance")?;
        if found["running"] != json!(true) {
            progress.end();
            return Ok(found);
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            progress.end();
            let text = "time is up; leaders are moved all the same";
            return Err(Failure::error(UNAVAILABLE, text));
        }
        progress.step();
        thread::park_timeout(BETWEEN);
    }
}

/// How many queues each node that takes part leads, of those of these kinds with these leaders: RabbitMQ's table, which counts
/// streams apart if there are any.
fn balance(nodes: &[Value], leaders: &[(&str, &str)], only_streams: bool) -> Rows {
    let has_streams = only_streams || leaders.iter().any(|(kind, _)| *kind == "stream");
    let counted = [
        (!only_streams, "quorum", "Number of quorum queues"),
        (has_streams, "stream", "Number of streams"),
    ];
    let counted = || counted.iter().filter(|(is_shown, ..)| *is_shown);
    let leads = |node: &Value, kind: &str| -> Value {
        let led = |it: &&(&str, &str)| it.0 == kind && node["name"] == *it.1;
        leaders.iter().filter(led).count().into()
    };
    let take_part = |node: &&Value| node["running"] == json!(true) && node["being_drained"] != json!(true);
    let row = |node: &Value| {
        let counts = counted().map(|(_, kind, _)| leads(node, kind));
        [node["name"].clone()].into_iter().chain(counts).collect()
    };
    let columns = ["Node name"]
        .into_iter()
        .chain(counted().map(|(.., column)| *column));
    Rows {
        columns: columns.map(str::to_owned).collect(),
        rows: nodes.iter().filter(take_part).map(row).collect(),
        form: Form::Pretty,
    }
}

fn quorum_critical(ask: &Ask<'_>) -> Result<Output, Failure> {
    let named = (
        "quorum of any queues/streams",
        "queues/streams with minimum quorum",
    );
    is_critical(ask, "node-is-quorum-critical", named)
}

/// RabbitMQ 3's words; its later versions say that there is nothing to check any more.
fn mirror_critical(ask: &Ask<'_>) -> Result<Output, Failure> {
    let named = (
        "data safety of any classic mirrored queues",
        "classic mirrored queues without online synchronised mirrors",
    );
    is_critical(ask, "node-is-mirror-sync-critical", named)
}

/// What the node may be critical for, and what there would be then.
fn is_critical(ask: &Ask<'_>, check: &str, (what, found_then): (&str, &str)) -> Result<Output, Failure> {
    let node = ask.node();
    ask.say(format!("Checking if node {node} is critical for {what} ..."));
    let text = match super::checks::check(ask, check)? {
        Err(found) => return Err(critical(&node, &found)),
        Ok(found) if found["reason"].is_string() => {
            format!("Node {node} seems to be the only one in a single node cluster, the check does not apply")
        }
        Ok(_) if super::this_node(ask)?["being_drained"] == json!(true) => {
            format!("Node {node} seems to be in maintenance mode, the check does not apply")
        }
        Ok(_) => format!("Node {node} reported no {found_then}"),
    };
    Ok(Output::Told(
        text.clone(),
        json!({"result": "ok", "message": text}),
    ))
}

/// A line for everything that would lose its quorum with the node.
fn critical(node: &str, found: &Value) -> Failure {
    let queues = found["queues"].as_array().into_iter().flatten();
    let lines: Vec<String> = queues
        .map(|queue| {
            let name = super::text(queue, "readable_name");
            format!("{name} will become unavailable if node {node} stops")
        })
        .collect();
    Failure::plain(UNAVAILABLE, lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rebalance_lists_the_nodes_that_take_part_and_what_they_lead() {
        let nodes = [
            json!({"name": "rabbit@a", "running": true, "being_drained": false}),
            json!({"name": "rabbit@b", "running": true, "being_drained": true}),
            json!({"name": "rabbit@c", "running": false}),
        ];
        let of = |leaders: &[(&str, &str)], only_streams| {
            let rows = balance(&nodes, leaders, only_streams);
            assert_eq!(rows.columns.len(), rows.rows[0].len());
            (rows.columns[1..].to_vec(), rows.rows)
        };
        let quorum = [
            ("quorum", "rabbit@a"),
            ("quorum", "rabbit@b"),
            ("quorum", ""),
            ("classic", ""),
        ];
        let streams = [
            ("quorum", "rabbit@a"),
            ("stream", "rabbit@a"),
            ("stream", "rabbit@a"),
        ];
        let (queues_column, streams_column) = (
            "Number of quorum queues".to_owned(),
            "Number of streams".to_owned(),
        );
        let row = |counts: &[u64]| {
            let counts = counts.iter().map(|count| json!(count));
            vec![[json!("rabbit@a")].into_iter().chain(counts).collect::<Vec<_>>()]
        };
        assert_eq!(of(&quorum, false), (vec![queues_column.clone()], row(&[1])));
        assert_eq!(
            of(&streams, false),
            (vec![queues_column, streams_column.clone()], row(&[1, 2]))
        );
        assert_eq!(of(&streams[1..], true), (vec![streams_column.clone()], row(&[2])));
        assert_eq!(of(&[], true), (vec![streams_column], row(&[0])));
    }

    #[test]
    fn what_would_lose_its_quorum_has_a_line_each() {
        let found = json!({"queues": [{"readable_name": "rabbitmq_metadata"}, {"readable_name": "queue 'q' in vhost '/'"}]});
        let failure = critical("rabbit@a", &found);
        assert_eq!(failure.code, UNAVAILABLE);
        let expected = "rabbitmq_metadata will become unavailable if node rabbit@a stops\n\
                        queue 'q' in vhost '/' will become unavailable if node rabbit@a stops";
        assert_eq!(failure.text, expected);
    }
}
