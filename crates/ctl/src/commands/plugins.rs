//! RabbitMQ's plugins. What they add is part of the broker or is not; nothing is switched on or off at run time.

use super::this_node;
use crate::ask::Ask;
use crate::command::{Command, Section::Plugins};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE};
use crate::output::Output;
use crate::tool::Tool;
use serde_json::{Value, json};

const TOOLS: &[Tool] = &[Tool::Plugins];

/// Why nothing is disabled.
const NOT_OFF: &str = "are not switched off at run time; leave their listeners out of the configuration";

pub const COMMANDS: &[Command] = &[
    Command::new(
        Plugins,
        "list",
        (0, 1),
        "[pattern] [--verbose] [--minimal] [--enabled] [--implicitly-enabled]",
        list,
    )
    .about("Lists those of RabbitMQ's plugins whose features this broker has")
    .options(&["verbose|v", "minimal|m", "enabled|E", "implicitly-enabled|e"])
    .of(TOOLS),
    Command::new(
        Plugins,
        "is_enabled",
        (1, 64),
        "<plugin1> [ <plugin2>] [--offline] [--online]",
        is_enabled,
    )
    .about("Fails if this broker lacks the features of a plugin")
    .options(&["offline", "online"])
    .of(TOOLS),
    Command::new(
        Plugins,
        "enable",
        (0, 64),
        "<plugin1> [ <plugin2>] [--all] [--offline] [--online]",
        enable,
    )
    .about("Succeeds for plugins whose features this broker has, and fails for others")
    .options(&["all", "offline", "online"])
    .of(TOOLS),
    Command::new(
        Plugins,
        "set",
        (0, 64),
        "<plugin1> [ <plugin2>] [--offline] [--online]",
        set,
    )
    .about("Succeeds if the plugins are those whose features this broker has, and fails otherwise")
    .options(&["offline", "online"])
    .of(TOOLS),
    Command::new(
        Plugins,
        "directories",
        (0, 0),
        "[--offline] [--online]",
        directories,
    )
    .about("Says where plugins would be: they are part of this broker, so nowhere")
    .options(&["offline", "online"])
    .of(TOOLS),
    Command::new(
        Plugins,
        "disable",
        (0, 64),
        "<plugin1>|--all [ <plugin2>] [--offline] [--online]",
        disable,
    )
    .about("Fails: features are not switched off; their listeners can be left out of the configuration")
    .options(&["all", "offline", "online"])
    .of(TOOLS),
];

/// Only a node knows what it has: there is no file that could tell without it.
fn online(ask: &Ask<'_>) -> Result<(), Failure> {
    match (ask.line.has("offline"), ask.line.has("online")) {
        (true, true) => {
            let text = "Bad argument: Cannot set both online and offline";
            Err(Failure::argument(BAD_VALUE, text))
        }
        (true, false) => Err(Failure::error(
            UNAVAILABLE,
            "features are part of the broker, and no file lists them: ask a running node, without --offline",
        )),
        _ => Ok(()),
    }
}

/// The plugins whose features the node has.
fn enabled(ask: &Ask<'_>) -> Result<Vec<String>, Failure> {
    let node = this_node(ask)?;
    let names = node["enabled_plugins"].as_array().into_iter().flatten();
    let mut names: Vec<String> = names.filter_map(Value::as_str).map(str::to_owned).collect();
    names.sort_unstable();
    Ok(names)
}

fn list(ask: &Ask<'_>) -> Result<Output, Failure> {
    let pattern = Some(ask.word(0)).filter(|word| !word.is_empty());
    ask.say(format!(
        "Listing plugins with pattern \"{}\" ...",
        pattern.unwrap_or(".*")
    ));
    let mut names = enabled(ask)?;
    names.retain(|name| pattern.is_none_or(|pattern| pattern == ".*" || name.contains(pattern)));
    let plugins: Vec<Value> = names
        .iter()
        .map(|name| {
            json!({"name": name, "enabled": "enabled", "running": true, "version": ask.version, "running_version": ask.version})
        })
        .collect();
    let value = json!({"status": "running", "format": "normal", "plugins": plugins});
    if ask.line.has("minimal") || ask.line.has("silent") {
        return Ok(Output::Told(names.join("\n"), value));
    }
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    if !ask.line.has("quiet") {
        text = format!(
            " Configured: E = explicitly enabled; e = implicitly enabled\n | Status: * = running on {}\n |/\n",
            ask.node()
        );
    }
    for name in &names {
        text.push_str(&format!("[E*] {name:width$} {}\n", ask.version));
    }
    Ok(Output::Told(text, value))
}

/// Those of the words that name no feature of this broker.
fn missing<'a>(ask: &Ask<'a>, enabled: &[String]) -> Vec<&'a str> {
    let words = ask.line.words.iter().map(String::as_str);
    words
        .filter(|word| !enabled.iter().any(|name| name == word))
        .collect()
}

fn is_enabled(ask: &Ask<'_>) -> Result<Output, Failure> {
    online(ask)?;
    let (names, node) = (ask.line.words.join(", "), ask.node());
    let several = ask.line.words.len() > 1;
    let plugins = if several { "plugins" } else { "plugin" };
    ask.say(format!(
        "Asking node {node} if {plugins} {names} {} enabled...",
        if several { "are" } else { "is" }
    ));
    let enabled = enabled(ask)?;
    let missing = missing(ask, &enabled);
    if missing.is_empty() {
        let text = match several {
            true => format!("Plugins {names} are enabled on node {node}"),
            false => format!("Plugin {names} is enabled on node {node}"),
        };
        let value = Value::from(text.as_str());
        return Ok(Output::Told(text, value));
    }
    let which = match missing.as_slice() {
        [one] => format!("Plugin {one} is"),
        many => format!("Plugins {} are", many.join(", ")),
    };
    Err(Failure::error(
        UNAVAILABLE,
        format!(
            "{which} not enabled on node {node}. Enabled plugins and dependencies: {}",
            enabled.join(", ")
        ),
    ))
}

/// The plugins that are asked for are those that there are.
fn set(ask: &Ask<'_>) -> Result<Output, Failure> {
    online(ask)?;
    let words = &ask.line.words;
    ask.say(format!(
        "Enabling plugins on node {}:\n{}",
        ask.node(),
        words.join("\n")
    ));
    let enabled = enabled(ask)?;
    match missing(ask, &enabled).as_slice() {
        [] => {}
        missing => {
            let text = format!("The following plugins were not found: {}", missing.join(", "));
            return Err(Failure::error(BAD_VALUE, text));
        }
    }
    match enabled.iter().find(|name| !words.contains(name)) {
        None => Ok(Output::text("Plugin configuration unchanged.")),
        Some(other) => Err(Failure::error(
            BAD_VALUE,
            format!("the features of {other} {NOT_OFF}"),
        )),
    }
}

fn directories(ask: &Ask<'_>) -> Result<Output, Failure> {
    online(ask)?;
    ask.say(format!("Listing plugin directories used by node {}", ask.node()));
    let node = this_node(ask)?;
    let program = "part of the program";
    let value = json!({
        "plugins_dir": Value::Null, "plugins_expand_dir": Value::Null, "enabled_plugins_file": Value::Null,
        "node": node["name"],
    });
    Ok(Output::Told(
        format!(
            "Plugin archives directory: none ({program})\nPlugin expansion directory: none ({program})\nEnabled plugins file: none ({program})"
        ),
        value,
    ))
}

fn enable(ask: &Ask<'_>) -> Result<Output, Failure> {
    online(ask)?;
    if ask.line.words.is_empty() && !ask.line.has("all") {
        return Err(Failure::usage("not enough arguments."));
    }
    ask.say(format!(
        "Enabling plugins on node {}:\n{}",
        ask.node(),
        ask.line.words.join("\n")
    ));
    let enabled = enabled(ask)?;
    match missing(ask, &enabled).as_slice() {
        [] => Ok(Output::text(format!(
            "The following plugins have been configured:\n  {}\nPlugin configuration unchanged.",
            enabled.join("\n  ")
        ))),
        missing => Err(Failure::plain(
            BAD_VALUE,
            format!(
                "Error:\nThis broker has no {}: features are built in or absent",
                missing.join(", ")
            ),
        )),
    }
}

fn disable(ask: &Ask<'_>) -> Result<Output, Failure> {
    online(ask)?;
    if ask.line.words.is_empty() && !ask.line.has("all") {
        return Err(Failure::usage("not enough arguments."));
    }
    ask.say(format!(
        "Disabling plugins on node {}:\n{}",
        ask.node(),
        ask.line.words.join("\n")
    ));
    let enabled = enabled(ask)?;
    match ask.line.words.iter().find(|word| enabled.contains(word)) {
        None if !ask.line.has("all") => Ok(Output::text("Plugin configuration unchanged.")),
        _ => Err(Failure::plain(BAD_VALUE, format!("Error:\nFeatures {NOT_OFF}"))),
    }
}
