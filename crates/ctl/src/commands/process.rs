//! What the node's process was started with, what it speaks, and whom it finds.

use crate::ask::Ask;
use crate::command::{Command, Section::Configuration, Section::Monitoring};
use crate::failure::{BAD_VALUE, Failure};
use crate::output::Output;
use crate::tool::Tool;
use serde_json::{Value, json};

const DIAGNOSTICS: &[Tool] = &[Tool::Diagnostics];

pub const COMMANDS: &[Command] = &[
    Command::new(
        Configuration,
        "os_env",
        (0, 0),
        "[--timeout <timeout>]",
        variables,
    )
    .about("Shows the environment variables that configure the node, with secrets masked")
    .of(DIAGNOSTICS),
    Command::new(
        Configuration,
        "command_line_arguments",
        (0, 0),
        "[--timeout <timeout>]",
        arguments,
    )
    .about("Shows the node's command-line arguments, with values of settings masked")
    .of(DIAGNOSTICS),
    Command::new(
        Configuration,
        "cipher_suites",
        (0, 0),
        "[--format <openssl | erlang | map>] [--all] [--timeout <timeout>]",
        suites,
    )
    .about("Lists the cipher suites that the node supports")
    .options(&["format=", "all"])
    .of(DIAGNOSTICS),
    Command::new(
        Configuration,
        "discover_peers",
        (0, 0),
        "[--timeout <timeout>]",
        peers,
    )
    .about("Shows the nodes of the cluster")
    .of(DIAGNOSTICS),
    Command::new(
        Monitoring,
        "enable_auth_attempt_source_tracking",
        (0, 0),
        "[--timeout <timeout>]",
        track,
    )
    .about("Also counts login attempts by address and user, for list_node_auth_attempt_stats --by-source")
    .of(DIAGNOSTICS),
    Command::new(
        Monitoring,
        "disable_auth_attempt_source_tracking",
        (0, 0),
        "[--timeout <timeout>]",
        track_no_more,
    )
    .about("Counts login attempts by protocol only")
    .of(DIAGNOSTICS),
];

fn variables(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Listing RabbitMQ-specific environment variables defined on node {}...",
        ask.node()
    ));
    let found = ask.get("/leveret/process")?;
    let variables = found["environment"].as_object().into_iter().flatten();
    let lines: Vec<String> = variables
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    let document = json!({"node": ask.node(), "result": "ok", "variables": found["environment"]});
    Ok(Output::Told(lines.join("\n"), document))
}

fn arguments(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Command line arguments of node {} ...", ask.node()));
    let found = ask.get("/leveret/process")?;
    let words: Vec<&str> = list(&found, "arguments").filter_map(Value::as_str).collect();
    Ok(Output::Told(words.join("\n"), found["arguments"].clone()))
}

fn suites(ask: &Ask<'_>) -> Result<Output, Failure> {
    let format = ask.line.value("format").unwrap_or("openssl").to_lowercase();
    let (name, each): (_, fn(&Value) -> String) = match format.as_str() {
        "openssl" => ("OpenSSL format", |suite| super::text(suite, "name").to_owned()),
        "erlang" => ("Erlang term format", |suite| {
            let parts = ["key_exchange", "cipher", "mac", "prf"].map(|part| super::text(suite, part));
            format!("{{{}}}", parts.join(","))
        }),
        "map" => ("map format", |suite| {
            let parts = ["cipher", "key_exchange", "mac", "prf"];
            let pairs = parts.map(|part| format!("{part} => {}", super::text(suite, part)));
            format!("#{{{}}}", pairs.join(","))
        }),
        _ => {
            let text = "Bad argument: Format should be either openssl, erlang or map";
            return Err(Failure::argument(BAD_VALUE, text));
        }
    };
    ask.say(format!("Listing available cipher suites in {name}"));
    let found = ask.get("/leveret/process")?;
    let shown: Vec<String> = list(&found, "cipher_suites").map(each).collect();
    let text = match format.as_str() {
        "openssl" => shown.join("\n"),
        _ => format!("[\n{}\n]", shown.join("\n,")),
    };
    let document = match format.as_str() {
        "openssl" => json!(shown),
        _ => found["cipher_suites"].clone(),
    };
    Ok(Output::Told(text, document))
}

fn list<'a>(found: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    found[name].as_array().into_iter().flatten()
}

fn peers(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Discovering peers nodes ...");
    let nodes = super::nodes(ask)?;
    let names: Vec<&str> = nodes.iter().map(|node| super::text(node, "name")).collect();
    let shown: Vec<String> = names.iter().map(|name| format!(":{name}")).collect();
    Ok(Output::Told(format!("[{}]", shown.join(", ")), json!(names)))
}

fn track(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Enabling authentication attempt source tracking ...");
    ask.put("/leveret/login-sources", &json!({"tracked": true}))?;
    Ok(Output::Done)
}

fn track_no_more(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Disabling authentication attempt source tracking ...");
    ask.put("/leveret/login-sources", &json!({"tracked": false}))?;
    Ok(Output::Done)
}
