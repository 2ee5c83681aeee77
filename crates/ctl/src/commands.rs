//! All commands, by what they are about.

mod absent;
mod access;
mod application;
mod checks;
mod completions;
mod connections;
mod conversion;
mod definitions;
mod encode;
mod eval;
mod facts;
mod first;
mod flags;
pub mod help;
mod impact;
mod inspect;
mod limits;
mod lists;
mod members;
mod messages;
mod mirroring;
mod network;
mod node;
mod parameters;
mod plugins;
mod policies;
mod process;
mod queues;
mod quorum_queues;
mod rings;
mod stream_clients;
mod streams;
mod tails;
mod topics;
mod upkeep;
mod users;
mod vhosts;

use crate::ask::{Ask, encode};
use crate::command::Command;
use crate::failure::{Failure, UNAVAILABLE};
use crate::output::Rows;
use crate::tool::Tool;
use serde_json::Value;

/// Every command once.
pub const ALL: &[&[Command]] = &[
    first::COMMANDS,
    node::COMMANDS,
    impact::COMMANDS,
    application::COMMANDS,
    users::COMMANDS,
    access::COMMANDS,
    topics::COMMANDS,
    lists::COMMANDS,
    checks::COMMANDS,
    parameters::COMMANDS,
    policies::COMMANDS,
    vhosts::COMMANDS,
    limits::COMMANDS,
    definitions::COMMANDS,
    upkeep::COMMANDS,
    encode::COMMANDS,
    flags::COMMANDS,
    inspect::COMMANDS,
    facts::COMMANDS,
    process::COMMANDS,
    queues::COMMANDS,
    conversion::COMMANDS,
    rings::COMMANDS,
    mirroring::COMMANDS,
    network::COMMANDS,
    tails::COMMANDS,
    messages::COMMANDS,
    connections::COMMANDS,
    plugins::COMMANDS,
    eval::COMMANDS,
    quorum_queues::COMMANDS,
    quorum_queues::RECOVERY,
    streams::COMMANDS,
    streams::RESTART,
    stream_clients::COMMANDS,
    absent::COMMANDS,
];

/// All commands of a tool.
pub fn of_tool(tool: Tool) -> impl Iterator<Item = &'static Command> {
    let commands = ALL.iter().copied().flatten();
    commands.filter(move |command| tool == Tool::Leveret || command.tools.contains(&tool))
}

/// The command of this name among all.
#[cfg(test)]
pub fn find(name: &str) -> Option<&'static Command> {
    of_tool(Tool::Leveret).find(|command| command.name == name)
}

/// Picks members of objects as columns; what an object lacks is null.
fn pick(columns: &[(&str, &str)], list: &Value) -> Rows {
    let objects = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let row = |object: &Value| {
        let members = columns.iter();
        members.map(|(_, member)| member_of(object, member)).collect()
    };
    Rows {
        columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
        rows: objects.iter().map(row).collect(),
        ..Rows::default()
    }
}

/// A member by its path with dots.
fn member_of(object: &Value, path: &str) -> Value {
    let mut found = Some(object);
    for name in path.split('.') {
        found = found.and_then(|object| object.get(name));
    }
    found.cloned().unwrap_or(Value::Null)
}

/// JSON that the user typed.
fn json_of(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|_| {
        let shown = crate::output::term(&Value::from(text));
        Failure::error(
            UNAVAILABLE,
            format!("Could not parse JSON document: {{error,{{failed_to_decode_json,{shown}}}}}"),
        )
    })
}

/// The node's own object of the API.
fn this_node(ask: &Ask<'_>) -> Result<Value, Failure> {
    let overview = ask.get("/overview?columns=node")?;
    let found = ask.find(&format!("/nodes/{}", encode(text(&overview, "node"))))?;
    found.ok_or_else(|| Failure::error(UNAVAILABLE, "the node tells nothing about itself"))
}

/// The names of all nodes of the cluster.
fn node_names(ask: &Ask<'_>) -> Result<Vec<String>, Failure> {
    let nodes = ask.get("/nodes?columns=name")?;
    let nodes = nodes.as_array().into_iter().flatten();
    Ok(nodes.map(|node| text(node, "name").to_owned()).collect())
}

/// All nodes of the cluster.
fn nodes(ask: &Ask<'_>) -> Result<Vec<Value>, Failure> {
    match ask.get("/nodes")? {
        Value::Array(nodes) => Ok(nodes),
        _ => Err(Failure::error(
            UNAVAILABLE,
            "the node tells nothing about its cluster",
        )),
    }
}

/// A text of an object; empty if it has none.
fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    object.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// A number of an object; 0 if it has none.
fn number(object: &Value, member: &str) -> u64 {
    object.get(member).and_then(Value::as_u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{self, Takes};
    use crate::tool::TOOLS;

    /// Every command of RabbitMQ's tools with its options, recorded from 4.3.6.
    const RECORDED: &str = include_str!("../../../tests/operating/recorded/commands.txt");

    #[test]
    fn every_command_of_rabbitmqs_tools_is_known_with_all_of_its_options() {
        let mut lacking = Vec::new();
        for row in RECORDED.lines() {
            let mut words = row.split(' ').map(str::to_owned);
            let (tool, name) = (words.next().unwrap(), words.next().unwrap());
            let tool = Tool::called(&tool).unwrap();
            let Some(command) = of_tool(tool).find(|command| command.name == name) else {
                lacking.push(row.to_owned());
                continue;
            };
            // Each option by each of its names, with a value if it takes one.
            let mut given = vec![name];
            for option in words {
                let (names, kind) = option.split_once('=').unwrap_or((&option, ""));
                for name in names.split('|') {
                    given.push(name.to_owned());
                    given.extend((kind == "N").then(|| "7".to_owned()));
                    given.extend((kind == "TEXT").then(|| "text".to_owned()));
                }
            }
            let line = line::parse(&given, Some(command.takes()));
            let known = line.check(Takes {
                words: (0, 0),
                ..command.takes()
            });
            lacking.extend(known.err().map(|failure| format!("{row}: {}", failure.text)));
        }
        assert!(lacking.is_empty(), "{}", lacking.join("\n"));
        assert!(RECORDED.lines().count() > 250);
    }

    #[test]
    fn each_tool_has_a_command_once_and_each_command_is_described() {
        for tool in TOOLS {
            let names: Vec<_> = of_tool(tool).map(|command| command.name).collect();
            for (at, name) in names.iter().enumerate() {
                assert!(!names[..at].contains(name), "{tool} has {name} twice");
            }
        }
        for command in of_tool(Tool::Leveret) {
            assert!(
                !command.about.is_empty() && !command.about.ends_with('.'),
                "{}",
                command.name
            );
            assert!(command.words.0 <= command.words.1, "{}", command.name);
        }
    }
}
