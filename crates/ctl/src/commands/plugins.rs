//! RabbitMQ's plugins. What they add is part of the broker or is not; nothing is switched on or off at run time.

use super::this_node;
use crate::ask::Ask;
use crate::command::{Command, Section::Plugins};
use crate::failure::{BAD_VALUE, Failure, SOFTWARE, UNAVAILABLE};
use crate::output::Output;
use crate::tool::Tool;
use regex::Regex;
use serde_json::{Value, json};

const TOOLS: &[Tool] = &[Tool::Plugins];

pub const COMMANDS: &[Command] = &[
    Command::new(
        Plugins,
        "list",
        (0, 1),
        "[pattern] [--verbose] [--minimal] [--enabled] [--implicitly-enabled]",
        list,
    )
    .about("Lists RabbitMQ's plugins whose features are built in")
    .options(&["verbose|v", "minimal|m", "enabled|E", "implicitly-enabled|e"])
    .of(TOOLS),
    Command::new(
        Plugins,
        "is_enabled",
        (1, 64),
        "<plugin1> [ <plugin2>] [--offline] [--online]",
        is_enabled,
    )
    .about("Fails if a plugin's features are not built in")
    .options(&["offline", "online"])
    .of(TOOLS),
    Command::new(
        Plugins,
        "enable",
        (0, 64),
        "<plugin1> [ <plugin2>] [--all] [--offline] [--online]",
        enable,
    )
    .about("Succeeds for plugins whose features are built in, and fails for others")
    .options(&["all", "offline", "online"])
    .of(TOOLS),
    Command::new(
        Plugins,
        "set",
        (0, 64),
        "<plugin1> [ <plugin2>] [--offline] [--online]",
        set,
    )
    .about("Succeeds for plugins whose features are built in; others stay enabled")
    .options(&["offline", "online"])
    .of(TOOLS),
    Command::new(
        Plugins,
        "directories",
        (0, 0),
        "[--offline] [--online]",
        directories,
    )
    .about("Shows plugin directories; there are none, because plugins are built in")
    .options(&["offline", "online"])
    .of(TOOLS),
    Command::new(
        Plugins,
        "disable",
        (0, 64),
        "<plugin1>|--all [ <plugin2>] [--offline] [--online]",
        disable,
    )
    .about(
        "Fails: built-in features cannot be disabled; remove their listeners from the configuration instead",
    )
    .options(&["all", "offline", "online"])
    .of(TOOLS),
];

/// Plugins that are asked for beside others and add nothing here: parts of built-in ones, and what looks for other
/// nodes. A single node has none to look for, so whoever enables them gets what they had: the operator for Kubernetes
/// always does.
const NOTHING_TO_ADD: [&str; 9] = [
    "rabbitmq_amqp_client",
    "rabbitmq_management_agent",
    "rabbitmq_peer_discovery_aws",
    "rabbitmq_peer_discovery_common",
    "rabbitmq_peer_discovery_consul",
    "rabbitmq_peer_discovery_etcd",
    "rabbitmq_peer_discovery_k8s",
    "rabbitmq_prelaunch",
    "rabbitmq_web_dispatch",
];

/// A node is asked, unless somebody wants to do without one, as recipes of images do: then all that is built in counts.
fn is_offline(ask: &Ask<'_>) -> Result<bool, Failure> {
    match (ask.line.has("offline"), ask.line.has("online")) {
        (true, true) => {
            let text = "Bad argument: Cannot set both online and offline";
            Err(Failure::argument(BAD_VALUE, text))
        }
        (is_offline, _) => Ok(is_offline),
    }
}

/// The plugins whose features there are.
fn available(ask: &Ask<'_>) -> Result<Vec<String>, Failure> {
    match is_offline(ask)? {
        true => Ok(ask.plugins.iter().map(|(name, _)| (*name).to_owned()).collect()),
        false => enabled(ask),
    }
}

/// The plugins whose features the node has and its configuration has not left out.
fn enabled(ask: &Ask<'_>) -> Result<Vec<String>, Failure> {
    let node = this_node(ask)?;
    let names = node["enabled_plugins"].as_array().into_iter().flatten();
    let mut names: Vec<String> = names.filter_map(Value::as_str).map(str::to_owned).collect();
    names.sort_unstable();
    Ok(names)
}

/// Why a plugin is not there: it is left out of the configuration, or this broker has no such thing.
fn why_missing(ask: &Ask<'_>, missing: &[&str]) -> Failure {
    let is_left_out = |name: &&&str| ask.plugins.iter().any(|(known, _)| known == *name);
    let text = match missing.iter().find(is_left_out) {
        Some(name) => format!("{name} is built in, but turned off in the node's configuration"),
        None => format!("The following plugins were not found: {}", missing.join(", ")),
    };
    Failure::error(BAD_VALUE, text)
}

/// The names that a pattern finds.
fn matching(names: Vec<String>, pattern: &str) -> Result<Vec<String>, Failure> {
    let wrong = |error| {
        Failure::error(
            SOFTWARE,
            format!("{pattern:?} is not a regular expression: {error}"),
        )
    };
    let pattern = Regex::new(pattern).map_err(wrong)?;
    Ok(names.into_iter().filter(|name| pattern.is_match(name)).collect())
}

/// All are enabled explicitly, so that `--enabled` and `--implicitly-enabled` leave none out.
fn list(ask: &Ask<'_>) -> Result<Output, Failure> {
    let is_minimal = ask.line.has("minimal");
    if is_minimal && ask.line.has("verbose") {
        let text = "Bad argument: Cannot set both verbose and minimal";
        return Err(Failure::argument(BAD_VALUE, text));
    }
    let pattern = Some(ask.word(0)).filter(|word| !word.is_empty()).unwrap_or(".*");
    ask.say(format!("Listing plugins with pattern \"{pattern}\" ..."));
    let names = matching(enabled(ask)?, pattern)?;
    let plugins: Vec<Value> = names
        .iter()
        .map(|name| {
            json!({"name": name, "enabled": "enabled", "running": true, "version": ask.version, "running_version": ask.version})
        })
        .collect();
    let value = json!({"status": "running", "format": "normal", "plugins": plugins});
    if is_minimal || ask.line.has("silent") {
        return Ok(Output::Told(names.join("\n"), value));
    }
    let mut text = String::new();
    if !ask.line.has("quiet") {
        text = format!(
            " Configured: E = explicitly enabled; e = implicitly enabled\n | Status: * = running on {}\n |/\n",
            ask.node()
        );
    }
    let width = names.iter().map(String::len).max().unwrap_or(0);
    for name in &names {
        text.push_str(&match ask.line.has("verbose") {
            false => format!("[E*] {name:width$} {}\n", ask.version),
            true => {
                let about = ask.plugins.iter().find(|(known, _)| known == name);
                let about = about.map_or("", |(_, about)| about);
                format!(
                    "[E*] {name}\n     Version:     \t{}\n     Dependencies:\t[]\n     Description: \t{about}\n",
                    ask.version
                )
            }
        });
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
    let names = ask.line.words.join(", ");
    let (noun, verb) = match ask.line.words.len() {
        1 => ("plugin", "is"),
        _ => ("plugins", "are"),
    };
    let place = match is_offline(ask)? {
        true => {
            ask.say(format!(
                "Inferring if {noun} {names} {verb} from local environment..."
            ));
            String::new()
        }
        false => {
            ask.say(format!(
                "Asking node {} if {noun} {names} {verb} enabled...",
                ask.node()
            ));
            format!(" on node {}", ask.node())
        }
    };
    let available = available(ask)?;
    let missing = missing(ask, &available);
    if missing.is_empty() {
        let noun = noun.replacen('p', "P", 1);
        return Ok(Output::text(format!("{noun} {names} {verb} enabled{place}")));
    }
    let which = match missing.as_slice() {
        [one] => format!("Plugin {one} is"),
        many => format!("Plugins {} are", many.join(", ")),
    };
    let text = format!(
        "{which} not enabled{place}. Enabled plugins and dependencies: {}",
        available.join(", ")
    );
    Err(Failure::error(UNAVAILABLE, text))
}

/// Every plugin that is asked for is there.
fn require(ask: &Ask<'_>) -> Result<Vec<String>, Failure> {
    let offline = is_offline(ask)?;
    let words = ask.line.words.join("\n");
    ask.say(match offline {
        true => format!("Enabling plugins:\n{words}"),
        false => format!("Enabling plugins on node {}:\n{words}", ask.node()),
    });
    let available = available(ask)?;
    let (idle, missing): (Vec<&str>, Vec<&str>) = missing(ask, &available)
        .into_iter()
        .partition(|name| NOTHING_TO_ADD.contains(name));
    if !missing.is_empty() {
        return Err(why_missing(ask, &missing));
    }
    if !idle.is_empty() {
        let text = format!("No effect on this node: {}", idle.join(", "));
        ask.say(text);
    }
    Ok(available)
}

fn configured(available: &[String]) -> Output {
    Output::text(format!(
        "The following plugins have been configured:\n  {}\nPlugin configuration unchanged.",
        available.join("\n  ")
    ))
}

fn enable(ask: &Ask<'_>) -> Result<Output, Failure> {
    if ask.line.words.is_empty() && !ask.line.has("all") {
        return Err(Failure::usage("not enough arguments."));
    }
    Ok(configured(&require(ask)?))
}

/// What is not named stays, as it is part of the program; the answer lists all.
fn set(ask: &Ask<'_>) -> Result<Output, Failure> {
    Ok(configured(&require(ask)?))
}

fn disable(ask: &Ask<'_>) -> Result<Output, Failure> {
    let offline = is_offline(ask)?;
    if ask.line.words.is_empty() && !ask.line.has("all") {
        return Err(Failure::usage("not enough arguments."));
    }
    let words = ask.line.words.join("\n");
    ask.say(match offline {
        true => format!("Disabling plugins:\n{words}"),
        false => format!("Disabling plugins on node {}:\n{words}", ask.node()),
    });
    let available = available(ask)?;
    match ask.line.words.iter().find(|word| available.contains(word)) {
        None if !ask.line.has("all") => Ok(Output::text("Plugin configuration unchanged.")),
        _ => Err(Failure::error(
            BAD_VALUE,
            "Built-in features cannot be disabled; remove their listeners from the configuration instead",
        )),
    }
}

fn directories(ask: &Ask<'_>) -> Result<Output, Failure> {
    match is_offline(ask)? {
        true => ask.say("Listing plugin directories inferred from local environment..."),
        false => {
            ask.say(format!("Listing plugin directories used by node {}", ask.node()));
            this_node(ask)?;
        }
    }
    let none = "none (part of the program)";
    let text = format!(
        "Plugin archives directory: {none}\nPlugin expansion directory: {none}\nEnabled plugins file: {none}"
    );
    let value = json!({"plugins_dir": Value::Null, "plugins_expand_dir": Value::Null, "enabled_plugins_file": Value::Null});
    Ok(Output::Told(text, value))
}
