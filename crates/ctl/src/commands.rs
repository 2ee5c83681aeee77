//! All commands, by what they are about.

mod access;
mod application;
mod checks;
mod connections;
mod definitions;
mod encode;
mod erlang;
mod eval;
mod facts;
mod first;
mod flags;
mod former;
mod inspect;
mod interceptors;
mod limits;
mod lists;
mod messages;
mod mirroring;
mod network;
mod node;
mod parameters;
mod plugins;
mod policies;
mod process;
mod queues;
mod replicas;
mod rings;
mod streams;
mod tails;
mod topics;
mod upkeep;
mod users;
mod vhosts;

pub use lists::columns_of;

use crate::ask::Ask;
use crate::command::Command;
use crate::failure::{Failure, UNAVAILABLE};
use crate::output::Rows;
use serde_json::Value;

/// Every command once.
pub const ALL: &[&[Command]] = &[
    first::COMMANDS,
    node::COMMANDS,
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
    replicas::COMMANDS,
    rings::COMMANDS,
    streams::COMMANDS,
    mirroring::COMMANDS,
    network::COMMANDS,
    interceptors::COMMANDS,
    tails::COMMANDS,
    messages::COMMANDS,
    connections::COMMANDS,
    plugins::COMMANDS,
    eval::COMMANDS,
    former::COMMANDS,
    erlang::COMMANDS,
];

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
    match ask.get("/nodes")? {
        Value::Array(mut nodes) if !nodes.is_empty() => Ok(nodes.swap_remove(0)),
        _ => Err(Failure::error(UNAVAILABLE, "the node tells nothing about itself")),
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
