//! The verbs.

use super::grammar::{KINDS, Kind, LISTS, Members, OVERVIEW, filled};
use super::options::Options;
use super::shown;
use crate::ask::{encode, reason};
use crate::http::{self, Answer, Request};
use serde_json::{Map, Value, json};
use std::fs;
use std::io::Read;

/// The largest payload that is read from standard input, in bytes; RabbitMQ's own limit of a message.
const PAYLOAD_MAX: u64 = 128 << 20;

/// Does what the words say, and tells it.
pub fn act(options: &Options) -> Result<String, String> {
    let words: Vec<&str> = options.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["list", what, columns @ ..] => list(options, what, columns),
        ["show", "overview", columns @ ..] => {
            let overview = call(options, "GET", "/overview", None)?;
            let columns = if columns.is_empty() { OVERVIEW } else { columns };
            shown::list(options, &[overview], &owned(columns))
        }
        ["declare", what, given @ ..] => declare(options, kind(what)?, members(given)?),
        ["delete", what, given @ ..] => delete(options, kind(what)?, members(given)?),
        ["close", "connection", given @ ..] => {
            let members = required(members(given)?, &["name"], &[])?;
            call(options, "DELETE", &filled("/connections/{name}", &members), None)?;
            done(options, "connection closed")
        }
        ["purge", "queue", given @ ..] => {
            let members = required(in_vhost(options, members(given)?), &["vhost", "name"], &[])?;
            let path = filled("/queues/{vhost}/{name}/contents", &members);
            call(options, "DELETE", &path, None)?;
            done(options, "queue purged")
        }
        ["publish", given @ ..] => publish(options, members(given)?),
        ["get", given @ ..] => get(options, members(given)?),
        ["export", file] => export(options, file),
        ["import", file] => import(options, file),
        _ => Err("ERROR: there is no such subcommand (rabbitmqadmin --help lists them)".into()),
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn done(options: &Options, told: &str) -> Result<String, String> {
    match options.has("quiet") {
        true => Ok(String::new()),
        false => Ok(format!("{told}\n")),
    }
}

fn kind(name: &str) -> Result<&'static Kind, String> {
    let found = KINDS.iter().find(|kind| kind.name == name);
    found.ok_or_else(|| format!("ERROR: {name} is nothing that is declared or deleted"))
}

/// Words of the form `name=value`.
fn members(given: &[&str]) -> Result<Members, String> {
    given
        .iter()
        .map(|word| match word.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => Err(format!("ERROR: Argument \"{word}\" not in the name=value format")),
        })
        .collect()
}

/// With the virtual host of the options, if none is given among the members.
fn in_vhost(options: &Options, mut members: Members) -> Members {
    let vhost = options.value("vhost").unwrap_or("/");
    members.entry("vhost".into()).or_insert_with(|| vhost.to_owned());
    members
}

/// Nothing is missing and nothing is there that has no meaning.
fn required(members: Members, mandatory: &[&str], optional: &[&str]) -> Result<Members, String> {
    if let Some(name) = mandatory.iter().find(|name| !members.contains_key(**name)) {
        return Err(format!("ERROR: mandatory field \"{name}\" required"));
    }
    let known = |name: &str| mandatory.contains(&name) || optional.contains(&name) || name == "vhost";
    match members.keys().find(|name| !known(name)) {
        Some(name) => Err(format!("ERROR: field \"{name}\" not recognised")),
        None => Ok(members),
    }
}

/// The letter by which paths name the kind of a binding's destination.
fn with_destination_letter(mut members: Members) -> Members {
    if let Some(letter) = members.get("destination_type").and_then(|it| it.chars().next()) {
        members.insert("destination_char".into(), letter.into());
    }
    members
}

fn declare(options: &Options, kind: &Kind, given: Members) -> Result<String, String> {
    let may: Vec<&str> = kind.optional.iter().map(|(name, _)| *name).collect();
    let given = match kind.path.contains("{vhost}") && !kind.mandatory.contains(&"vhost") {
        true => in_vhost(options, given),
        false => given,
    };
    let mut given = required(given, kind.mandatory, &may)?;
    if kind.name == "user" && !given.contains_key("password") && !given.contains_key("password_hash") {
        return Err("ERROR: mandatory field \"password\" or \"password_hash\" required".into());
    }
    for (name, usual) in kind.optional.iter().filter(|(_, usual)| !usual.is_empty()) {
        given.entry((*name).into()).or_insert_with(|| (*usual).into());
    }
    let mut body = Map::new();
    for (name, value) in &given {
        let value = match kind.json.contains(&name.as_str()) {
            true => serde_json::from_str(value)
                .map_err(|error| format!("ERROR: Could not parse JSON:\n  {value}\n{name}: {error}"))?,
            false => Value::from(value.as_str()),
        };
        body.insert(name.clone(), value);
    }
    // A binding is posted to the two that it ties.
    let method = if kind.name == "binding" { "POST" } else { "PUT" };
    let path = filled(kind.path, &with_destination_letter(given));
    call(options, method, &path, Some(&body.into()))?;
    done(options, &format!("{} declared", kind.name))
}

fn delete(options: &Options, kind: &Kind, given: Members) -> Result<String, String> {
    let given = match kind.path.contains("{vhost}") && !kind.deleted_by.contains(&"vhost") {
        true => in_vhost(options, given),
        false => given,
    };
    let given = with_destination_letter(required(given, kind.deleted_by, &[])?);
    let path = if kind.delete_path.is_empty() {
        kind.path
    } else {
        kind.delete_path
    };
    call(options, "DELETE", &filled(path, &given), None)?;
    done(options, &format!("{} deleted", kind.name))
}

fn list(options: &Options, what: &str, columns: &[&str]) -> Result<String, String> {
    let found = LISTS.iter().find(|(name, ..)| *name == what);
    let (_, path, has_vhosts, usual) =
        found.ok_or_else(|| format!("ERROR: {what} is nothing that is listed"))?;
    let mut path = (*path).to_owned();
    if let Some(vhost) = options.value("vhost").filter(|_| *has_vhosts) {
        path.push_str(&format!("/{}", encode(vhost)));
    }
    let columns = if columns.is_empty() { usual } else { columns };
    if !columns.is_empty() {
        let names: Vec<String> = columns.iter().map(|name| encode(name)).collect();
        path.push_str(&format!("?columns={}", names.join(",")));
    }
    match call(options, "GET", &path, None)? {
        Value::Array(objects) => shown::list(options, &objects, &owned(columns)),
        _ => Err("the node answers with something else than a list".into()),
    }
}

fn publish(options: &Options, given: Members) -> Result<String, String> {
    let may = ["payload", "exchange", "payload_encoding", "properties"];
    let mut given = in_vhost(options, required(given, &["routing_key"], &may)?);
    given
        .entry("exchange".into())
        .or_insert_with(|| "amq.default".into());
    let properties = given.get("properties").map_or("{}", String::as_str);
    let properties: Value = serde_json::from_str(properties)
        .map_err(|error| format!("ERROR: Could not parse JSON:\n  {properties}\n{error}"))?;
    let payload = match given.get("payload") {
        Some(payload) => payload.clone(),
        None => {
            let mut text = String::new();
            let mut input = std::io::stdin().take(PAYLOAD_MAX);
            input
                .read_to_string(&mut text)
                .map_err(|error| format!("ERROR: the payload: {error}"))?;
            text
        }
    };
    let body = json!({
        "routing_key": given.get("routing_key"),
        "payload": payload,
        "payload_encoding": given.get("payload_encoding").map_or("string", String::as_str),
        "properties": properties,
    });
    let path = filled("/exchanges/{vhost}/{exchange}/publish", &given);
    let answer = call(options, "POST", &path, Some(&body))?;
    match answer.get("routed") {
        Some(Value::Bool(true)) => done(options, "Message published"),
        _ => done(options, "Message published but NOT routed"),
    }
}

fn get(options: &Options, given: Members) -> Result<String, String> {
    let may = ["count", "ackmode", "payload_file", "encoding"];
    let given = in_vhost(options, required(given, &["queue"], &may)?);
    let member = |name: &str, usual: &'static str| given.get(name).map_or(usual, String::as_str);
    let count = member("count", "1");
    let count: u64 = count
        .parse()
        .map_err(|_| format!("ERROR: count {count} is not a number"))?;
    if given.contains_key("payload_file") && count != 1 {
        return Err("ERROR: Cannot save multiple messages using payload_file".into());
    }
    let body = json!({
        "count": count,
        "ackmode": member("ackmode", "ack_requeue_true"),
        "encoding": member("encoding", "auto"),
    });
    let path = filled("/queues/{vhost}/{queue}/get", &given);
    let Value::Array(messages) = call(options, "POST", &path, Some(&body))? else {
        return Err("the node answers with something else than messages".into());
    };
    if let (Some(file), Some(message)) = (given.get("payload_file"), messages.first()) {
        let payload = message["payload"].as_str().unwrap_or_default();
        fs::write(file, payload).map_err(|error| format!("ERROR: {file}: {error}"))?;
    }
    let columns = [
        "routing_key",
        "exchange",
        "message_count",
        "payload",
        "payload_bytes",
        "payload_encoding",
        "redelivered",
    ];
    shown::list(options, &messages, &owned(&columns))
}

/// Where definitions are: of all, or of one virtual host.
fn definitions(options: &Options) -> String {
    match options.value("vhost") {
        Some(vhost) => format!("/definitions/{}", encode(vhost)),
        None => "/definitions".into(),
    }
}

fn export(options: &Options, file: &str) -> Result<String, String> {
    let document = call(options, "GET", &definitions(options), None)?;
    fs::write(file, document.to_string()).map_err(|error| format!("ERROR: {file}: {error}"))?;
    let host = options.value("host").unwrap_or("localhost");
    done(options, &format!("Exported definitions for {host} to \"{file}\""))
}

fn import(options: &Options, file: &str) -> Result<String, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("Could not import {file}: {error}"))?;
    let document =
        serde_json::from_str(&text).map_err(|error| format!("ERROR: {file} is not JSON: {error}"))?;
    call(options, "POST", &definitions(options), Some(&document))?;
    let host = options.value("host").unwrap_or("localhost");
    done(
        options,
        &format!("Uploaded definitions from \"{host}\" to {file}"),
    )
}

fn call(options: &Options, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
    let body = body.map(|body| body.to_string().into_bytes());
    let whole = format!("/api{path}");
    let request = Request {
        method,
        path: &whole,
        body: body.as_deref(),
        credentials: Some(options.credentials()),
        reason: None,
    };
    let sent = http::send(&options.endpoint()?, &request, Some(options.timeout()?));
    accepted(
        &sent.map_err(|error| format!("Could not connect: {error}"))?,
        &whole,
    )
}

/// The JSON of an answer that is no refusal.
fn accepted(answer: &Answer, path: &str) -> Result<Value, String> {
    let json: Value = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
    match answer.status {
        200..300 => Ok(json),
        401 => Err(format!("Access refused: {path}")),
        404 => Err(format!("Not found: {path}")),
        400 => Err(reason(&json)),
        status => Err(format!(
            "Received response {status} for resource {path}\n{}",
            reason(&json)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_means_nothing_is_named() {
        let of = |words: &[&str]| {
            let given: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            act(&Options::read(&given, None).unwrap()).unwrap_err()
        };
        assert_eq!(
            of(&["declare", "exchange", "name=x"]),
            "ERROR: mandatory field \"type\" required"
        );
        assert_eq!(
            of(&["declare", "queue", "name=x", "zork=1"]),
            "ERROR: field \"zork\" not recognised"
        );
        assert!(of(&["declare", "queue", "x"]).contains("name=value"));
        assert!(of(&["declare", "queue", "name=x", "arguments={"]).contains("Could not parse JSON"));
        assert!(of(&["declare", "zork"]).contains("zork"));
        assert!(of(&["dance"]).contains("no such subcommand"));
    }
}
