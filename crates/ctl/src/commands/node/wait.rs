//! Waiting for the node, and for its end.

use crate::ask::Ask;
use crate::commands::{application, nodes};
use crate::endpoint::Endpoint;
use crate::failure::{BAD_VALUE, Failure, SOFTWARE, TIMED_OUT, UNAVAILABLE};
use crate::output::Output;
use crate::progress::Progress;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// How long is waited for a node that starts, and for one that ends: it may have much to write.
pub const TIMEOUT: Duration = Duration::from_secs(300);
/// Between two looks. A node that is not there yet tells nobody when it will be.
const BETWEEN: Duration = Duration::from_millis(100);

/// Looks again and again until something is found.
///
/// # Errors
/// It took too long.
pub fn until<T>(
    ask: &Ask<'_>,
    what: &'static str,
    timeout: Duration,
    mut look: impl FnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let started = Instant::now();
    let mut progress = Progress::new(what, 0);
    loop {
        if let Some(found) = look()? {
            progress.end();
            return Ok(found);
        }
        if started.elapsed() >= timeout {
            progress.end();
            let text = format!(
                "Error: operation on node {} timed out. Timeout value used: {}",
                ask.node(),
                timeout.as_millis()
            );
            return Err(Failure::plain(TIMED_OUT, text));
        }
        progress.step();
        thread::park_timeout(BETWEEN);
    }
}

/// True if the node answers; a node that can't be reached is not up yet.
fn is_up(ask: &Ask<'_>) -> Option<()> {
    ask.get("/overview?columns=node").ok().map(drop)
}

pub fn await_startup(ask: &Ask<'_>) -> Result<Output, Failure> {
    until(
        ask,
        "waiting for the node; looks",
        ask.timeout.unwrap_or(TIMEOUT),
        || Ok(is_up(ask)),
    )?;
    Ok(Output::Done)
}

pub fn await_online_nodes(ask: &Ask<'_>) -> Result<Output, Failure> {
    let count: u32 = ask
        .word(0)
        .parse()
        .map_err(|_| Failure::argument(BAD_VALUE, "Bad argument: the count of nodes is a positive number"))?;
    let timeout = ask.timeout.unwrap_or(TIMEOUT);
    let node = ask.node();
    ask.say(format!(
        "Will wait for at least {count} nodes to join the cluster of {node}. Timeout: {} seconds.",
        timeout.as_secs()
    ));
    let outcome = until(ask, "waiting for nodes; looks", timeout, || {
        if is_up(ask).is_none() {
            return Ok(None);
        }
        let nodes = nodes(ask).unwrap_or_default();
        let online = nodes.iter().filter(|node| node["running"] == json!(true));
        Ok((online.count() >= count as usize).then_some(()))
    });
    match outcome {
        Ok(()) => Ok(Output::Done),
        Err(_) => Err(Failure::error(
            SOFTWARE,
            format!("Error: timed out while waiting. Not enough nodes joined {node}'s cluster."),
        )),
    }
}

pub fn pid_of(text: &str) -> Result<Pid, Failure> {
    let pid = text.trim().parse().ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| Failure::argument(BAD_VALUE, format!("Bad argument: {text:?} is not a process id")))
}

pub fn is_alive(pid: Pid) -> bool {
    if test_kill_process(pid) == Err(Errno::SRCH) {
        return false;
    }
    // A process that ended stays in the system's list until its parent has looked; the letter behind its name says so.
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    !state.starts_with(['Z', 'X'])
}

pub fn wait(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (file, timeout) = (ask.word(0), ask.timeout.unwrap_or(TIMEOUT));
    if file.is_empty() && !ask.line.has("pid") {
        return Err(Failure::usage("not enough arguments."));
    }
    if !file.is_empty() && ask.line.has("pid") {
        return Err(Failure::usage("Cannot specify both pid and pidfile"));
    }
    let pid = match ask.line.value("pid") {
        Some(pid) => pid_of(pid)?,
        None => {
            ask.say(format!("Waiting for pid file '{file}' to appear"));
            let text = until(ask, "waiting for the file; looks", timeout, || {
                Ok(fs::read_to_string(file).ok())
            })?;
            pid_of(&text)?
        }
    };
    let node = ask.node();
    let raw = pid.as_raw_nonzero();
    ask.say(format!(
        "Waiting for node '{node}' while OS process '{raw}' is running"
    ));
    until(ask, "waiting for the node; looks", timeout, || {
        match is_alive(pid) {
            true => Ok(is_up(ask)),
            false => Err(Failure::error(
                UNAVAILABLE,
                format!("process {raw} is not running"),
            )),
        }
    })?;
    Ok(Output::text(format!(
        "Applications 'rabbit_and_plugins' are running on node '{node}'"
    )))
}

/// Asks the process to end, as a service manager would, and waits for that.
fn end(ask: &Ask<'_>, pid: Pid, is_awaited: bool) -> Result<(), Failure> {
    kill_process(pid, Signal::TERM).map_err(|error| {
        Failure::error(
            UNAVAILABLE,
            format!(
                "process {} cannot be signalled to stop: {error}",
                pid.as_raw_nonzero()
            ),
        )
    })?;
    if !is_awaited {
        return Ok(());
    }
    until(
        ask,
        "waiting for the end; looks",
        ask.timeout.unwrap_or(TIMEOUT),
        || Ok((!is_alive(pid)).then_some(())),
    )
}

/// The process that answers on the admin socket.
fn local_process(ask: &Ask<'_>) -> Result<Pid, Failure> {
    if !matches!(ask.endpoint, Endpoint::Socket(_)) {
        return Err(Failure::error(
            UNAVAILABLE,
            "a node can be stopped from its own machine only",
        ));
    }
    let state = application::state(ask)?;
    pid_of(&state["os_pid"].to_string())
}

pub fn stop(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.node();
    ask.say(format!("Stopping and halting node {node} ..."));
    let pid = match local_process(ask) {
        Ok(pid) => pid,
        Err(failure) if failure.code == UNAVAILABLE && ask.line.has("idempotent") => {
            return Ok(Output::text(format!("Node {node} is no longer running")));
        }
        Err(failure) => return Err(failure),
    };
    end(ask, pid, true)?;
    Ok(Output::Done)
}

pub fn shutdown(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.node();
    let pid = local_process(ask)?;
    let raw = pid.as_raw_nonzero();
    let is_awaited = !ask.line.has("no-wait");
    ask.say(match is_awaited {
        true => format!("Shutting down RabbitMQ node {node} running at PID {raw}"),
        false => format!("Asking node {node} to stop"),
    });
    end(ask, pid, is_awaited)?;
    Ok(match is_awaited {
        true => Output::text(format!("PID {raw} was successfully terminated")),
        false => Output::Done,
    })
}
