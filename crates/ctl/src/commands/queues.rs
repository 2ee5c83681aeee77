//! What is done to queues, and what concerns their replicas.

use super::number;
use crate::ask::{Ask, encode};
use crate::command::{Command, Section::Operations, Section::Queues};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE, USAGE};
use crate::output::{Form, Output, Rows};
use crate::tool::Tool;
use serde_json::Value;

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
        "<all | quorum | stream> [--vhost-pattern <pattern>] [--queue-pattern <pattern>]",
        rebalance,
    )
    .about("Rebalances the leaders of replicated queues; no effect on a single node")
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
    .about("No effect: there are no mirrored queues to wait for")
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
    if !["all", "quorum", "stream"].contains(&kind) {
        let text = format!("type {kind} is not supported. Try one of all, quorum, stream.");
        return Err(Failure::error(UNAVAILABLE, text));
    }
    ask.say(format!("Re-balancing leaders of {kind} queues..."));
    let answer = ask.call("POST", "/rebalance/queues", None)?;
    ask.accepted(&answer)?;
    Ok(Output::Rows(Rows {
        columns: vec!["Node name".into(), "Number of quorum queues".into()],
        rows: vec![vec![ask.node().into(), Value::from(0)]],
        form: Form::Pretty,
    }))
}

fn quorum_critical(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.node();
    ask.say(format!(
        "Checking if node {node} is critical for quorum of any queues/streams ..."
    ));
    ask.get("/health/checks/node-is-quorum-critical")?;
    Ok(Output::text(format!(
        "Node {node} seems to be the only one in a single node cluster, the check does not apply"
    )))
}

fn mirror_critical(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.get("/overview?columns=node")?;
    Ok(Output::text(
        "This command is DEPRECATED and is a no-op. It will be removed in a future version.",
    ))
}
