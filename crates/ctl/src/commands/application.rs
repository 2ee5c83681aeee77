//! Stopping the broker without its process, starting it again, and forgetting everything in between. The node answers
//! on its admin socket all the while, and nowhere else.

use super::node;
use crate::ask::{APPLICATION, Ask};
use crate::command::{Command, Section::Nodes};
use crate::endpoint::Endpoint;
use crate::failure::{Failure, UNAVAILABLE, USAGE};
use crate::output::Output;
use serde_json::{Value, json};

pub const COMMANDS: &[Command] = &[
    Command::new(Nodes, "stop_app", (0, 0), "", stop)
        .about("Stops the broker and closes its clients; the process stays and can start it again"),
    Command::new(Nodes, "start_app", (0, 0), "", start).about("Starts the broker that stop_app stopped"),
    Command::new(Nodes, "reset", (0, 0), "", reset).about(
        "Has the cluster forget a node that stop_app stopped, and deletes all its definitions and messages",
    ),
    Command::new(Nodes, "force_reset", (0, 0), "", force_reset).about(
        "Deletes all definitions and messages of a node that stop_app stopped; the other nodes are not asked",
    ),
];

/// Has the next start ask a node to be let into its cluster.
///
/// # Errors
/// The broker runs, or it can't be.
pub fn join(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.word(0);
    ask.say(format!("Clustering node {} with {node}", ask.node()));
    if is_running(ask)? {
        return Err(Failure::plain(UNAVAILABLE, RUNS));
    }
    let answer = ask.call(
        "PUT",
        &format!("{APPLICATION}/cluster"),
        Some(&json!({ "node": node })),
    )?;
    ask.accepted(&answer)?;
    Ok(Output::Done)
}

const RUNS: &str = "Error: this command requires the 'rabbit' app to be stopped on the target node. Stop it with 'rabbitmqctl stop_app'.";

/// Whether the broker runs, and which process it is.
///
/// # Errors
/// Nobody answers.
pub fn state(ask: &Ask<'_>) -> Result<Value, Failure> {
    if !matches!(ask.endpoint, Endpoint::Socket(_)) {
        let text = "the broker is stopped and started from its own machine only";
        return Err(Failure::error(UNAVAILABLE, text));
    }
    ask.get(APPLICATION)
}

fn is_running(ask: &Ask<'_>) -> Result<bool, Failure> {
    Ok(state(ask)?["running"] == json!(true))
}

/// Tells the process what is wanted. The socket that took it closes at once, maybe before the answer is out: what is
/// asked next tells whether it was done.
fn order(ask: &Ask<'_>, running: bool) -> Result<(), Failure> {
    match ask.call("PUT", APPLICATION, Some(&json!({ "running": running }))) {
        Ok(answer) => ask.accepted(&answer).map(drop),
        Err(_) => Ok(()),
    }
}

fn stop(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Stopping rabbit application on node {} ...", ask.node()));
    if is_running(ask)? {
        order(ask, false)?;
        // Between the two sockets nobody answers.
        node::until(
            ask,
            "waiting for the broker to stop; looks",
            || match is_running(ask) {
                Ok(false) => Ok(Some(())),
                _ => Ok(None),
            },
        )?;
    }
    Ok(Output::Done)
}

fn start(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Starting node {} ...", ask.node()));
    let before = state(ask)?;
    if before["running"] == json!(true) {
        return Ok(Output::Done);
    }
    order(ask, true)?;
    let process = node::pid_of(&before["os_pid"].to_string())?;
    node::until(ask, "waiting for the broker to start; looks", || {
        match (is_running(ask), node::is_alive(process)) {
            (Ok(true), _) => Ok(Some(())),
            (_, true) => Ok(None),
            (_, false) => Err(Failure::error(
                UNAVAILABLE,
                "the node ended instead of starting; its log says why",
            )),
        }
    })?;
    Ok(Output::Done)
}

fn forget(ask: &Ask<'_>, told: &str, path: &str) -> Result<Output, Failure> {
    if is_running(ask)? {
        return Err(Failure::plain(USAGE, RUNS));
    }
    ask.say(format!("{told} node {} ...", ask.node()));
    ask.delete(path)?;
    Ok(Output::Done)
}

fn reset(ask: &Ask<'_>) -> Result<Output, Failure> {
    forget(ask, "Resetting", APPLICATION)
}

fn force_reset(ask: &Ask<'_>) -> Result<Output, Failure> {
    forget(ask, "Forcefully resetting", &format!("{APPLICATION}?force"))
}
