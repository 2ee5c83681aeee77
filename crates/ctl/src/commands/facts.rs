//! What a node tells of itself: the configuration in force, logins, sizes of messages, what its memory is used for.

use super::this_node;
use crate::ask::{Ask, encode};
use crate::command::{Command, Section::Configuration, Section::Monitoring};
use crate::failure::Failure;
use crate::output::{Form, Output, Rows};
use crate::tool::Tool;
use serde_json::{Map, Value, json};

const DIAGNOSTICS: &[Tool] = &[Tool::Diagnostics];

pub const COMMANDS: &[Command] = &[
    Command::new(
        Configuration,
        "environment",
        (0, 0),
        "[--timeout <timeout>]",
        environment,
    )
    .about("Shows the effective configuration, including defaults")
    .of(&[Tool::Ctl, Tool::Diagnostics]),
    Command::new(
        Monitoring,
        "list_node_auth_attempt_stats",
        (0, 0),
        "[--by-source] [--timeout <timeout>]",
        attempts,
    )
    .about("Shows the number of login attempts by protocol")
    .options(&["by-source"])
    .of(&[Tool::Ctl, Tool::Diagnostics]),
    Command::new(
        Configuration,
        "reset_node_auth_attempt_metrics",
        (0, 0),
        "[--timeout <timeout>]",
        reset_attempts,
    )
    .about("Resets the counters of login attempts")
    .of(DIAGNOSTICS),
    Command::new(
        Monitoring,
        "message_size_stats",
        (0, 0),
        "[--timeout <timeout>]",
        sizes,
    )
    .about("Shows the sizes of messages published since the start")
    .of(DIAGNOSTICS),
    Command::new(
        Monitoring,
        "memory_breakdown",
        (0, 0),
        "[--unit <unit>] [--timeout <timeout>]",
        memory,
    )
    .about("Shows memory usage by category, largest first")
    .options(&["unit="])
    .of(DIAGNOSTICS),
];

fn environment(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Application environment of node {} ...", ask.node()));
    let settings = ask.get("/leveret/config")?;
    let settings = settings.as_array().map(Vec::as_slice).unwrap_or_default();
    let pairs = settings
        .iter()
        .map(|setting| (super::text(setting, "key"), super::text(setting, "value")));
    let lines: Vec<String> = pairs
        .clone()
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    let document: Map<String, Value> = pairs.map(|(key, value)| (key.into(), value.into())).collect();
    Ok(Output::Told(lines.join("\n"), document.into()))
}

/// The path of this node below another one.
fn here(ask: &Ask<'_>, path: &str) -> Result<String, Failure> {
    let node = this_node(ask)?;
    Ok(path.replace("NODE", &encode(super::text(&node, "name"))))
}

fn attempts(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Listing authentication\n attempts for node \"{}\" ...",
        ask.node()
    ));
    let (path, columns) = match ask.line.has("by-source") {
        true => ("/auth/attempts/NODE/source", &["remote_address", "username"][..]),
        false => ("/auth/attempts/NODE", &[][..]),
    };
    let counts = [
        "protocol",
        "auth_attempts",
        "auth_attempts_failed",
        "auth_attempts_succeeded",
    ];
    let columns: Vec<(&str, &str)> = columns.iter().chain(&counts).map(|name| (*name, *name)).collect();
    Ok(Output::Rows(super::pick(&columns, &ask.get(&here(ask, path)?)?)))
}

fn reset_attempts(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Reset auth attempt metrics on node {} ...", ask.node()));
    ask.delete(&here(ask, "/auth/attempts/NODE")?)?;
    Ok(Output::Done)
}

fn sizes(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Gathering message size statistics across the cluster using node {} ...",
        ask.node()
    ));
    let columns = [
        ("Message Size", "message_size"),
        ("Count", "count"),
        ("Percentage", "percentage"),
    ];
    Ok(Output::Rows(Rows {
        form: Form::Pretty,
        ..super::pick(&columns, &ask.get("/leveret/message-sizes")?)
    }))
}

fn memory(ask: &Ask<'_>) -> Result<Output, Failure> {
    let unit = ask.line.value("unit").unwrap_or("gb");
    if super::node::in_unit(0, unit).is_none() {
        let text = "is not supported. Please use one of: bytes, mb, gb";
        return Err(Failure::usage(format!("\"unit '{unit}' {text}\"")));
    }
    ask.say(format!("Reporting memory breakdown on node {}...", ask.node()));
    let found = ask.get(&here(ask, "/nodes/NODE/memory")?)?;
    let total = found["memory"]["total"]["rss"].as_u64().unwrap_or(0).max(1);
    let parts = found["memory"].as_object().into_iter().flatten();
    let mut parts: Vec<(&str, u64)> = parts
        .filter_map(|(name, bytes)| Some((name.as_str(), bytes.as_u64()?)))
        .collect();
    parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let share = |bytes: u64| (bytes as f64 / total as f64 * 10_000.0).round() / 100.0;
    let line = |(name, bytes): &(&str, u64)| {
        let text = super::node::in_unit(*bytes, unit).unwrap_or_default();
        format!("{name}: {text} ({:?}%)", share(*bytes))
    };
    let lines: Vec<String> = parts.iter().map(line).collect();
    let document: Map<String, Value> = parts
        .iter()
        .map(|(name, bytes)| {
            (
                (*name).to_owned(),
                json!({"bytes": bytes, "percentage": share(*bytes)}),
            )
        })
        .collect();
    Ok(Output::Told(lines.join("\n"), document.into()))
}
