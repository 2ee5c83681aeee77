//! What is changed at a running node: limits, the level of the log, whether clients are let in.

use super::checks::check;
use super::number;
use crate::ask::Ask;
use crate::command::{Command, Section::Configuration, Section::Monitoring, Section::Operations};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE};
use crate::output::Output;
use crate::progress::Progress;
use crate::tool::Tool;
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

/// How long a drained node's clients and leaderships are waited for, if `--timeout` says nothing else.
const LEAVES_WITHIN: Duration = Duration::from_secs(30);
/// How long a quorum and one more node is waited for, as in RabbitMQ.
const QUORUM_WITHIN: Duration = Duration::from_secs(120);
/// Between two looks at the node.
const BETWEEN: Duration = Duration::from_millis(100);

const UPGRADE: &[Tool] = &[Tool::Upgrade];
const BOTH: &[Tool] = &[Tool::Ctl, Tool::Diagnostics];

pub const COMMANDS: &[Command] = &[
    Command::new(
        Configuration,
        "set_vm_memory_high_watermark",
        (1, 2),
        "<fraction> | absolute <value>",
        set_memory,
    )
    .about("Sets the memory alarm threshold, until the next start")
    .more("A fraction of the machine's memory (0.0 to 1.0), or bytes: absolute 2GB, absolute 512MiB."),
    Command::new(
        Configuration,
        "set_disk_free_limit",
        (1, 2),
        "<disk_limit> | mem_relative <fraction>",
        set_disk,
    )
    .about("Sets the disk alarm threshold, until the next start")
    .more(
        "Bytes with or without a unit (50MB, 1GiB), or a multiple of the machine's memory: mem_relative 1.5.",
    ),
    Command::new(
        Monitoring,
        "activate_free_disk_space_monitoring",
        (0, 0),
        "",
        watch_disk,
    )
    .about("Turns monitoring of free disk space on")
    .options(&["unit="])
    .of(BOTH),
    Command::new(
        Monitoring,
        "deactivate_free_disk_space_monitoring",
        (0, 0),
        "",
        unwatch_disk,
    )
    .about("Turns monitoring of free disk space off, until the next start; the disk alarm keeps its state")
    .options(&["unit="])
    .of(BOTH),
    Command::new(
        Configuration,
        "set_log_level",
        (1, 1),
        "<log_level>",
        set_log_level,
    )
    .about("Sets the log level, until the next start: debug, info, warning, error, critical or none"),
    Command::new(
        Operations,
        "suspend_listeners",
        (0, 0),
        "[--timeout <timeout>]",
        suspend,
    )
    .about("Refuses new client connections; existing ones stay"),
    Command::new(
        Operations,
        "resume_listeners",
        (0, 0),
        "[--timeout <timeout>]",
        resume,
    )
    .about("Accepts client connections again"),
    Command::new(Operations, "drain", (0, 0), "[--timeout <timeout>]", drain)
        .about("Puts the node into maintenance mode: closes it to clients, and has other nodes lead what it leads")
        .of(UPGRADE),
    Command::new(Operations, "revive", (0, 0), "[--timeout <timeout>]", revive)
        .about("Ends maintenance")
        .of(UPGRADE),
    Command::new(
        Operations,
        "post_upgrade",
        (0, 0),
        "[--timeout <timeout>]",
        post_upgrade,
    )
    .about("Runs post-upgrade tasks; on a single node there are none")
    .of(UPGRADE),
    Command::new(
        Operations,
        "await_online_quorum_plus_one",
        (0, 0),
        "[--timeout <timeout>]",
        await_quorum,
    )
    .about("Waits until everything keeps its quorum without this node; does not apply to a single node")
    .of(UPGRADE),
    Command::new(
        Operations,
        "await_online_synchronized_mirror",
        (0, 0),
        "[--timeout <timeout>]",
        await_mirror,
    )
    .about("Waits until all mirrored queues go on without this node; does not apply to a single node")
    .of(UPGRADE),
    Command::new(
        Operations,
        "has_reached_target_cluster_size",
        (0, 0),
        "",
        target_size,
    )
    .about("Fails until the cluster has as many nodes as its configuration says")
    .of(&[Tool::Upgrade, Tool::Ctl, Tool::Diagnostics]),
    Command::new(Operations, "reset_stats_db", (0, 0), "[--all]", reset_statistics)
        .about("Deletes the samples of the HTTP API, so that rates start again; totals stay")
        .options(&["all"]),
    Command::new(
        Operations,
        "clear_auth_backend_cache",
        (0, 0),
        "",
        clear_auth_cache,
    )
    .about("Clears the cached answers of authentication backends (auth_backends.N = cache)"),
    Command::new(Operations, "force_gc", (0, 0), "[--timeout <timeout>]", force_gc)
        .about("No effect: there is no garbage collector"),
    Command::new(
        Operations,
        "node_health_check",
        (0, 0),
        "[--timeout <timeout>]",
        node_health_check,
    )
    .about("No effect, as in RabbitMQ; use the check_ commands of rabbitmq-diagnostics")
    .of(&[Tool::Ctl, Tool::Diagnostics]),
];

/// Units of memory and space, as in configuration files.
const UNITS: [(&str, u64); 16] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("pib", 1 << 50),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("pb", 1_000_000_000_000_000),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("p", 1 << 50),
    ("", 1),
];

/// A number of bytes with a unit.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

fn fraction(text: &str) -> Option<f64> {
    text.parse()
        .ok()
        .filter(|part: &f64| part.is_finite() && *part >= 0.0)
}

fn bad(text: &str) -> Failure {
    Failure::argument(BAD_VALUE, text)
}

/// The limit that the words name, and how it is told.
fn memory(ask: &Ask<'_>) -> Result<(Value, String), Failure> {
    if ask.word(0) == "absolute" {
        let text = ask.word(1);
        let bytes = bytes(text).ok_or_else(|| bad("Bad argument."))?;
        return Ok((json!({"absolute": bytes}), format!("{text} bytes")));
    }
    if ask.line.words.len() > 1 {
        return Err(Failure::usage("too many arguments."));
    }
    let part = fraction(ask.word(0)).ok_or_else(|| bad("Bad argument."))?;
    if part > 1.0 {
        return Err(bad(
            "Bad argument: The threshold should be a fraction between 0.0 and 1.0",
        ));
    }
    Ok((json!({"relative": part}), ask.word(0).to_owned()))
}

fn set_memory(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (limit, told) = memory(ask)?;
    ask.say(format!(
        "Setting memory threshold on {} to {told} ...",
        ask.node()
    ));
    ask.put("/leveret/limits", &json!({"memory_high_watermark": limit}))?;
    Ok(Output::Done)
}

fn set_disk(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (limit, told) = match ask.word(0) {
        "mem_relative" => {
            let part = fraction(ask.word(1)).ok_or_else(|| bad("Bad argument."))?;
            (
                json!({"mem_relative": part}),
                format!("{} times the total RAM", ask.word(1)),
            )
        }
        text => {
            let bytes = bytes(text).ok_or_else(|| bad("Bad argument."))?;
            (json!({"absolute": bytes}), format!("{text} bytes"))
        }
    };
    ask.say(format!("Setting disk free limit on {} to {told} ...", ask.node()));
    ask.put("/leveret/limits", &json!({"disk_free_limit": limit}))?;
    Ok(Output::Done)
}

/// RabbitMQ takes a unit here and has no use for it either.
fn disk_monitoring(ask: &Ask<'_>, told: &str, watched: bool) -> Result<Output, Failure> {
    ask.say(format!(
        "{told} free disk space monitoring on node {}...",
        ask.node()
    ));
    ask.put("/leveret/limits", &json!({"disk_monitoring": watched}))?;
    Ok(Output::Told(
        String::new(),
        json!({"node": ask.node(), "result": "ok"}),
    ))
}

fn watch_disk(ask: &Ask<'_>) -> Result<Output, Failure> {
    disk_monitoring(ask, "[Re-]activating", true)
}

fn unwatch_disk(ask: &Ask<'_>) -> Result<Output, Failure> {
    disk_monitoring(ask, "Deactivating", false)
}

fn set_log_level(ask: &Ask<'_>) -> Result<Output, Failure> {
    let level = ask.word(0);
    if !["debug", "info", "warning", "error", "critical", "none"].contains(&level) {
        let text =
            format!("level {level} is not supported. Try one of debug, info, warning, error, critical, none");
        return Err(Failure::error(UNAVAILABLE, text));
    }
    ask.say(format!("Setting log level to \"{level}\" ..."));
    ask.put("/leveret/log-level", &json!({"level": level}))?;
    Ok(Output::Done)
}

fn service(ask: &Ask<'_>, told: &str, change: &Value) -> Result<Output, Failure> {
    ask.say(told);
    ask.put("/leveret/service", change)?;
    Ok(Output::Done)
}

fn suspend(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.node();
    let told = format!(
        "Will suspend client connection listeners on node {node}. The node will no longer accept client connections!"
    );
    service(ask, &told, &json!({"suspended": true}))
}

fn resume(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.node();
    let told = format!(
        "Will resume client connection listeners on node {node}. The node will now accept client connections"
    );
    service(ask, &told, &json!({"suspended": false}))
}

fn drain(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.node();
    let told = format!(
        "Will put node {node} into maintenance mode. The node will no longer serve any client traffic!"
    );
    service(ask, &told, &json!({"drained": true}))?;
    for stays in left(ask)? {
        ask.note(stays);
    }
    Ok(Output::Done)
}

/// Waits until the node's clients are gone and other nodes lead what it has led, and tells what stays all the same.
fn left(ask: &Ask<'_>) -> Result<Vec<String>, Failure> {
    let until = Instant::now() + ask.timeout.unwrap_or(LEAVES_WITHIN);
    let mut progress = None;
    loop {
        let state = ask.get("/leveret/service")?;
        let (connections, leads) = (number(&state, "connections"), number(&state, "leads"));
        let left = connections + leads;
        let (shown, before) = progress
            .get_or_insert_with(|| (Progress::new("clients and leaderships gone", left as usize), left));
        shown.add(before.saturating_sub(left));
        *before = left.min(*before);
        let has_heir = state["has_heir"] == json!(true);
        if connections == 0 && (leads == 0 || !has_heir) || Instant::now() >= until {
            if let Some((progress, _)) = progress {
                progress.end();
            }
            return Ok(staying(connections, leads, has_heir));
        }
        thread::park_timeout(BETWEEN);
    }
}

/// A line for each kind of thing that a drained node still has.
fn staying(connections: u64, leads: u64, has_heir: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if connections > 0 {
        lines.push(format!(
            "{connections} client connections are still open: their clients have not answered yet"
        ));
    }
    if leads > 0 {
        let why = match has_heir {
            true => "no other node could take over in time",
            false => "no other node runs that is not under maintenance",
        };
        lines.push(format!("{leads} leaderships stay here: {why}"));
    }
    lines
}

fn revive(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.node();
    let told = format!(
        "Will put node {node} back into regular operating mode. The node will again serve client traffic and host primary queue replicas."
    );
    service(ask, &told, &json!({"drained": false}))
}

/// Commands whose answer is known as soon as the node answers.
fn alive(ask: &Ask<'_>) -> Result<(), Failure> {
    ask.get("/overview?columns=node").map(drop)
}

fn post_upgrade(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Executing post upgrade tasks...");
    alive(ask)?;
    Ok(Output::text("Rebalancing queue masters..."))
}

/// What needs a quorum goes on without this node from then on, or that has not come in time.
fn await_quorum(ask: &Ask<'_>) -> Result<Output, Failure> {
    let wanted = (
        "node-is-quorum-critical",
        "a quorum + 1 of nodes to be online for all quorum queues and streams",
    );
    let late =
        "time is up, no quorum + 1 online replicas came online for at least some quorum queues or streams";
    await_check(ask, wanted, late)
}

/// The same of mirrored queues, as RabbitMQ 3 had it.
fn await_mirror(ask: &Ask<'_>) -> Result<Output, Failure> {
    let wanted = (
        "node-is-mirror-sync-critical",
        "a synchronised mirror be online for all classic mirrored queues",
    );
    let late = "time is up, no synchronised mirror came online for at least some classic mirrored queues";
    await_check(ask, wanted, late)
}

fn await_check(ask: &Ask<'_>, (name, wanted): (&str, &str), late: &'static str) -> Result<Output, Failure> {
    let timeout = ask.timeout.unwrap_or(QUORUM_WITHIN);
    let seconds = timeout.as_secs();
    ask.say(format!("Will wait for {wanted} for {seconds} seconds..."));
    let until = Instant::now() + timeout;
    let mut progress = Progress::new("waiting; looks", 0);
    loop {
        let found = check(ask, name)?;
        let is_over = found.is_ok() || Instant::now() >= until;
        if !is_over {
            progress.step();
            thread::park_timeout(BETWEEN);
            continue;
        }
        progress.end();
        return match found {
            Ok(found) if found["reason"].is_string() => Ok(Output::text(
                "Target node seems to be the only one in a single node cluster, the command does not apply",
            )),
            Ok(_) => Ok(Output::Done),
            Err(_) => Err(Failure::error(UNAVAILABLE, late)),
        };
    }
}

fn target_size(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.node();
    ask.say(format!(
        "Checking if target cluster size has been reached on node {node} ..."
    ));
    match check(ask, "reached-target-cluster-size")? {
        Ok(_) => Ok(Output::text(format!(
            "Target cluster size has been reached on node {node}"
        ))),
        Err(reason) => Err(Failure::error(
            UNAVAILABLE,
            format!(
                "Target cluster size has not been reached on node {node}: {}",
                super::text(&reason, "reason")
            ),
        )),
    }
}

fn reset_statistics(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(match ask.line.has("all") {
        true => "Resetting statistics database in all nodes".to_owned(),
        false => format!("Resetting statistics database on node {}", ask.node()),
    });
    ask.delete("/reset")?;
    Ok(Output::Done)
}

fn clear_auth_cache(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Will clear rabbitmq_auth_backend_cache plugin's cache on the target node...");
    ask.delete("/leveret/auth-backend-cache")?;
    Ok(Output::Done)
}

fn force_gc(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Will ask all processes on node {} to schedule a full sweep GC",
        ask.node()
    ));
    alive(ask)?;
    Ok(Output::Done)
}

fn node_health_check(ask: &Ask<'_>) -> Result<Output, Failure> {
    alive(ask)?;
    Ok(Output::text(
        "This command is DEPRECATED and is a no-op. It will be removed in a future version.\n\
         Use one of the options covered in https://www.rabbitmq.com/monitoring.html#health-checks instead.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_on_a_drained_node_is_told_with_the_reason() {
        assert!(staying(0, 0, true).is_empty());
        let lines = staying(2, 1, false);
        assert!(lines[0].starts_with("2 client connections are still open"));
        assert_eq!(
            lines[1],
            "1 leaderships stay here: no other node runs that is not under maintenance"
        );
        assert!(staying(0, 1, true)[0].ends_with("no other node could take over in time"));
    }

    #[test]
    fn bytes_have_the_units_of_configuration_files() {
        let table = [
            ("50MB", Some(50_000_000)),
            ("1GiB", Some(1 << 30)),
            ("512m", Some(512 << 20)),
            ("1024", Some(1024)),
            ("8 GB", Some(8_000_000_000)),
            ("", None),
            ("x", None),
            ("-1", None),
            ("99999999999PB", None),
        ];
        for (text, expected) in table {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
