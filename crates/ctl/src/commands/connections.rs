//! Closing connections.

use super::text;
use crate::ask::{Ask, encode};
use crate::command::{Command, Section::Operations};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE};
use crate::output::Output;
use crate::progress::Progress;
use serde_json::Value;
use std::thread;
use std::time::Duration;

pub const COMMANDS: &[Command] = &[
    Command::new(Operations, "close_connection", (2, 2), "<connection pid> <explanation>", close)
        .about("Closes a connection; the client receives the explanation")
        .more("Name the connection as in the columns pid and name of list_connections: '127.0.0.1:40000 -> \
         127.0.0.1:5672'."),
    Command::new(
        Operations,
        "close_all_connections",
        (1, 1),
        "[--vhost <vhost> --limit <limit>] [-n <node> --global] [--per-connection-delay <delay>] <explanation>",
        close_all,
    )
    .about("Closes the connections of a virtual host, or all; clients receive the explanation")
    .more("--per-connection-delay is in milliseconds and avoids that all clients reconnect at once.")
    .options(&["limit=#", "global", "per-connection-delay=#"]),
    Command::new(Operations, "close_all_user_connections", (2, 2), "<username> <explanation>", close_of_user)
        .about("Closes a user's connections; clients receive the explanation"),
];

fn close_one(ask: &Ask<'_>, name: &str, reason: &str) -> Result<bool, Failure> {
    let credentials = ask
        .credentials
        .as_ref()
        .map(|(user, password)| (user.as_str(), password.as_str()));
    let path = format!("/connections/{}", encode(name));
    let answer = ask.call_as("DELETE", &path, None, credentials, Some(reason))?;
    match answer.status {
        404 => Ok(false),
        _ => ask.accepted(&answer).map(|_| true),
    }
}

fn close(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (name, reason) = (ask.word(0), ask.word(1));
    ask.say(format!("Closing connection {name}, reason: {reason}..."));
    match close_one(ask, name, reason)? {
        true => Ok(Output::Done),
        false => Err(Failure::error(
            UNAVAILABLE,
            format!("there is no connection {name:?}; list_connections shows their names in the column pid"),
        )),
    }
}

/// A number that an option gives.
fn given(ask: &Ask<'_>, option: &str, usual: u64) -> Result<u64, Failure> {
    match ask.line.value(option) {
        None => Ok(usual),
        Some(text) => text
            .parse()
            .map_err(|_| Failure::usage(format!("Invalid options for this command:\n--{option} : {text}"))),
    }
}

fn close_all(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (reason, vhost) = (ask.word(0), ask.vhost());
    let (limit, delay) = (given(ask, "limit", 0)?, given(ask, "per-connection-delay", 0)?);
    let global = ask.line.has("global");
    if global && ask.line.has("vhost") {
        return Err(Failure::argument(
            BAD_VALUE,
            "Bad argument: '--vhost' and '--global' are mutually exclusive",
        ));
    }
    let path = match global {
        true => {
            let node = ask.node();
            ask.say(format!(
                "Closing all connections to node {node} (across all vhosts), reason: {reason}..."
            ));
            "/connections?columns=name".to_owned()
        }
        false => {
            ask.say(format!(
                "Closing all connections in vhost {vhost}, reason: {reason}..."
            ));
            format!("/vhosts/{}/connections?columns=name", encode(vhost))
        }
    };
    let found = ask.find(&path)?.unwrap_or_default();
    let found = found.as_array().map(Vec::as_slice).unwrap_or_default();
    let most = if limit == 0 {
        found.len()
    } else {
        usize::try_from(limit).unwrap_or(usize::MAX)
    };
    let mut closed = 0;
    let mut progress = Progress::new("closing connections", found.len().min(most));
    for connection in found.iter().take(most) {
        if delay > 0 && closed > 0 {
            thread::park_timeout(Duration::from_millis(delay));
        }
        closed += usize::from(close_one(ask, text(connection, "name"), reason)?);
        progress.step();
    }
    progress.end();
    let value = Value::from(closed);
    Ok(Output::Told(format!("Closed {closed} connections"), value))
}

fn close_of_user(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (user, reason) = (ask.word(0), ask.word(1));
    ask.say(format!("Closing connections of user {user}, reason: {reason}..."));
    let credentials = ask
        .credentials
        .as_ref()
        .map(|(user, password)| (user.as_str(), password.as_str()));
    let path = format!("/connections/username/{}", encode(user));
    let answer = ask.call_as("DELETE", &path, None, credentials, Some(reason))?;
    match answer.status {
        404 => Ok(Output::Done),
        _ => ask.accepted(&answer).map(|_| Output::Done),
    }
}
