//! Streams, super streams, and clients of the stream protocol. What this version cannot tell or do fails and says so: an empty
//! list would mean that there is nothing.

use super::absent::{Answer, filled, nothing, running_member, table, tell};
use super::members::{self, Kind, members};
use super::stream_clients::tracked_for_status;
use super::text;
use crate::ask::{Ask, encode};
use crate::columns::{self, Column};
use crate::command::{Command, Section::*};
use crate::failure::{BAD_VALUE, Failure, SOFTWARE, UNAVAILABLE};
use crate::output::{Form, Output, Rows};
use crate::tool::Tool::{self, Ctl, Diagnostics, Streams};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The most streams of a super stream, as by the stream protocol.
const PARTITIONS_MOST: usize = 1_000;

/// As many streams as RabbitMQ makes if nothing is said.
const PARTITIONS: i64 = 3;

const RESTARTING: &str = "\
In RabbitMQ this stops the members of a stream and elects another leader. Here the leader hands the stream over to the preferred node,\n\
or to any other member that runs, which is all that there is to restart: its publishers are told, and readers go on. The node that\n\
leads the stream then is printed.\n\
\n\
Nothing is done if the preferred node leads the stream already. It is refused if the preferred node is no member, and if there is no\n\
other member to hand over to, as of a stream that was declared for one node.";

/// What concerns the processes of a stream.
pub const RESTART: &[Command] = &[Command::new(
    Queues,
    "restart_stream",
    (1, 1),
    "[--vhost <vhost>] <stream> [--preferred-leader-node <node>]",
    restart,
)
.about("Has another member lead a stream, or the preferred one")
.more(RESTARTING)
.options(&["preferred-leader-node="])
.of(&[Streams])];

pub const COMMANDS: &[Command] = table! {
    // Streams and their replicas.
    [Streams, Tool::Queues, Diagnostics] Queues "stream_status" 1 1 "[--vhost <vhost>] [--tracking] <stream>";
        "Shows which nodes have a stream, and how far each copy is";
        ["tracking"] status;
    [Streams] Queues "add_replica" 2 2 "[--vhost <vhost>] <stream> <node>"; "Adds a replica of a stream";
        [] |ask| {
            of_stream(ask, "Adding a replica for stream {0} on node {1}...", "add replicas to")?;
            running_member(ask, ask.word(1))?;
            members::change(ask, Kind::Stream, true)
        };
    [Streams] Queues "delete_replica" 2 2 "[--vhost <vhost>] <stream> <node>"; "Removes a replica of a stream"; [] delete_replica;
    [Streams] Queues "grow" 2 2 "<node> <all | even> [--vhost-pattern <pattern>] [--queue-pattern <pattern>] [--errors-only]";
        "Adds replicas of streams on a node";
        ["vhost-pattern=", "queue-pattern=", "errors-only"] |ask| members::grow(ask, Kind::Stream);
    [Streams] Queues "shrink" 1 1 "<node> [--errors-only]"; "Removes the replicas of streams from a node";
        ["errors-only"] |ask| members::shrink(ask, Kind::Stream);
    [Streams] Queues "transfer_leadership" 2 2 "[--vhost <vhost>] <stream> <node>"; "Moves the leader of a stream";
        [] |ask| {
            let told = "Transferring leadership of stream {0} to node {1}...";
            let stream = of_stream(ask, told, "transfer leadership of").map_err(|why| match why.code {
                // Of all these commands this one says it so in RabbitMQ.
                BAD_VALUE => Failure::plain(BAD_VALUE, filled(ask, "queue '{0}' was not found in virtual host '{vhost}'")),
                _ => why,
            })?;
            members::transfer(ask, &stream)
        };
    [Streams, Diagnostics] Queues "coordinator_status" 0 0 ""; "Shows the status of the stream coordinator; there is none";
        [] |ask| nothing(ask, "Status of stream coordinator ...");
    [Streams] Queues "set_stream_retention_policy" 2 2 "[--vhost <vhost>] <stream> <policy>";
        "Sets a stream's retention; a policy does that";
        [] |ask| {
            let missing = Failure::plain(BAD_VALUE, NO_OBJECT);
            let how = "a policy sets its retention: set_policy --apply-to streams, with max-age or max-length-bytes";
            not_yet(ask, "Setting retention policy of stream {0} ...", ask.word(0), missing, how)
        };

    // Super streams.
    [Streams] Queues "add_super_stream" 1 1
        "<name> [--vhost <vhost>] [--partitions <partitions>] [--binding-keys <binding-keys>]";
        "Adds a super stream: an exchange, and a stream for each partition";
        [
            "partitions=#", "binding-keys=", "routing-keys=", "max-length-bytes=", "max-age=", "stream-max-segment-size-bytes=",
            "leader-locator=", "initial-cluster-size=#"
        ] add_super_stream;
    [Streams] Queues "delete_super_stream" 1 1 "<name> [--vhost <vhost>]"; "Deletes a super stream with its streams";
        [] delete_super_stream;

    // Clients of the stream protocol.
    [Ctl, Diagnostics, Streams] Queues "list_stream_connections" 0 32 "[<column> ...]";
        "Lists connections of the stream protocol";
        ["verbose|V"] connections;
    [Ctl, Streams] Queues "activate_stream_consumer" 0 0 "--stream <stream> --reference <reference> [--vhost <vhost>]";
        "Activates a consumer of a stream consumer group; not in this version";
        ["stream=", "reference="] |ask| {
            let stream = named(ask)?;
            let missing = Failure::error(UNAVAILABLE, NO_GROUP);
            let told = "Activating a consumer in the group ...";
            not_yet(ask, told, stream, missing, "this version does not choose which consumer of a group is active")
        };
};

pub(super) const NO_OBJECT: &str = "Object (queue, stream, exchange, etc) was not found";
pub(super) const NO_GROUP: &str = "The group does not exist";

/// `subscriptions` are not told by the API.
const CONNECTIONS: &[Column] = &[
    Column::same("auth_mechanism"),
    Column::same("client_properties"),
    Column::of("conn_name", "name"),
    Column::same("connected_at"),
    Column::of("connection_state", "state"),
    Column::same("frame_max"),
    Column::of("heartbeat", "timeout"),
    Column::same("host"),
    Column::same("node"),
    Column::same("peer_cert_issuer"),
    Column::same("peer_cert_serial_number"),
    Column::same("peer_cert_subject"),
    Column::same("peer_cert_validity"),
    Column::same("peer_host"),
    Column::same("peer_port"),
    // What close_connection takes.
    Column::of("pid", "name"),
    Column::same("port"),
    Column::same("ssl"),
    Column::same("ssl_cipher"),
    Column::same("ssl_hash"),
    Column::same("ssl_key_exchange"),
    Column::same("ssl_protocol"),
    Column::of("subscriptions", ""),
    Column::same("user"),
    Column::same("vhost"),
];

/// Both a stream and a reference are named: the stream.
pub(super) fn named<'a>(ask: &Ask<'a>) -> Result<&'a str, Failure> {
    match (ask.line.value("stream"), ask.line.value("reference")) {
        (Some(stream), Some(_)) => Ok(stream),
        _ => Err(Failure::usage("not enough arguments.")),
    }
}

/// What the API says of a queue of any kind.
fn queue(ask: &Ask<'_>, name: &str) -> Result<Option<Value>, Failure> {
    ask.find(&path(ask, "queues", name))
}

fn path(ask: &Ask<'_>, kind: &str, name: &str) -> String {
    format!("/{kind}/{}/{}", encode(ask.vhost()), encode(name))
}

/// What the API says of a stream.
fn stream(ask: &Ask<'_>, name: &str) -> Result<Option<Value>, Failure> {
    Ok(queue(ask, name)?.filter(|found| text(found, "type") == "stream"))
}

/// Something that cannot be done with a stream, if there is one.
fn not_yet(ask: &Ask<'_>, told: &str, name: &str, missing: Failure, why: &str) -> Answer {
    tell(ask, told)?;
    Err(match stream(ask, name)? {
        Some(_) => Failure::error(
            UNAVAILABLE,
            format!("stream '{name}' in vhost '{}': {why}", ask.vhost()),
        ),
        None => missing,
    })
}

/// Tells what is done with a stream, and finds what that is. Of another queue that is said, and what cannot be done with it.
fn of_stream(ask: &Ask<'_>, told: &str, what: &str) -> Result<Value, Failure> {
    ask.say(filled(ask, told));
    let path = format!(
        "/queues/{}?columns=type,leader,members,online",
        members::path(ask)
    );
    let found = ask.find(&path)?;
    let found = found.ok_or_else(|| Failure::plain(BAD_VALUE, NO_OBJECT))?;
    match text(&found, "type") {
        "stream" => Ok(found),
        kind => {
            let text = format!("Cannot {what} a {kind} queue");
            Err(Failure::error(UNAVAILABLE, text))
        }
    }
}

fn delete_replica(ask: &Ask<'_>) -> Answer {
    let told = "Removing a replica of queue {0} on node {1}...";
    let stream = of_stream(ask, told, "delete replicas from")?;
    if members(&stream).len() < 2 {
        let text = "Cannot delete the last member of a stream";
        return Err(Failure::error(UNAVAILABLE, text));
    }
    members::change(ask, Kind::Stream, false)
}

fn restart(ask: &Ask<'_>) -> Answer {
    let stream = of_stream(ask, "Restarting stream {0}...", "restart")?;
    let leader = text(&stream, "leader");
    let heirs = match ask.line.value("preferred-leader-node") {
        Some(preferred) if !members(&stream).contains(&preferred) => {
            return Err(Failure::error(UNAVAILABLE, "unknown_member"));
        }
        Some(preferred) if preferred == leader => {
            ask.note("It leads the stream already: nothing is done.");
            return Ok(Output::text(leader));
        }
        Some(preferred) => vec![preferred.to_owned()],
        None => heirs(&stream, &super::nodes(ask)?),
    };
    let text = "no other member of the stream can lead it: there is nothing to restart";
    let mut failure = Failure::error(UNAVAILABLE, text);
    for heir in heirs {
        match members::hand_over(ask, &heir) {
            Ok(()) => return members::leader_afterwards(ask, &heir).map(Output::text),
            // It may have no copy yet that is up to date.
            Err(why) => failure = why,
        }
    }
    Err(failure)
}

/// The members that could lead a stream and don't: they run, can be reached, and are not in maintenance.
fn heirs(stream: &Value, nodes: &[Value]) -> Vec<String> {
    let online = stream["online"].as_array().into_iter().flatten();
    let is_free = |name: &&str| {
        let mut known = nodes.iter().filter(|node| text(node, "name") == *name);
        *name != text(stream, "leader") && known.any(|node| node["being_drained"] != json!(true))
    };
    let free = online.filter_map(Value::as_str).filter(is_free);
    free.map(str::to_owned).collect()
}

fn status(ask: &Ask<'_>) -> Answer {
    tell(ask, "Status of stream {0} on node {node} ...")?;
    if ask.line.has("tracking") {
        return tracked_for_status(ask);
    }
    let path = format!("/leveret{}/replicas", path(ask, "streams", ask.word(0)));
    let found = ask.find(&path)?;
    let found = found.ok_or_else(|| Failure::plain(BAD_VALUE, NO_OBJECT))?;
    Ok(Output::Rows(status_of(&found)))
}

/// RabbitMQ's columns. A node that says nothing has no row, as there.
fn status_of(found: &Value) -> Rows {
    let columns = [
        "role",
        "node",
        "epoch",
        "offset",
        "committed_offset",
        "first_offset",
        "readers",
        "segments",
    ];
    let copies = found.as_array().into_iter().flatten();
    let row = |copy: &Value| columns.map(|column| copy[column].clone()).into();
    Rows {
        columns: columns.map(str::to_owned).into(),
        rows: copies.map(row).collect(),
        form: Form::Pretty,
    }
}

fn connections(ask: &Ask<'_>) -> Answer {
    let mut chosen = columns::chosen(ask, CONNECTIONS, &["conn_name"])?;
    if ask.line.has("verbose") {
        chosen = CONNECTIONS.to_vec();
    }
    ask.say("Listing stream connections ...");
    let wanted = columns::wanted(&chosen);
    let all = ask.get(&format!("/connections?columns=protocol,{wanted}"))?;
    Ok(Output::Rows(connections_among(&chosen, all)))
}

fn connections_among(chosen: &[Column], mut all: Value) -> Rows {
    if let Value::Array(all) = &mut all {
        all.retain(|connection| text(connection, "protocol") == "stream");
    }
    Rows {
        form: Form::Pretty,
        ..columns::rows(chosen, &all)
    }
}

/// A super stream that is to be made.
#[derive(Debug, PartialEq)]
struct Wanted {
    /// Its streams, each with the key that leads to it.
    partitions: Vec<(String, String)>,
    /// What each stream is declared with.
    arguments: Map<String, Value>,
}

fn wanted(ask: &Ask<'_>) -> Result<Wanted, Failure> {
    let (name, line) = (ask.word(0), ask.line);
    let (partitions, routing) = (line.number("partitions"), line.value("routing-keys"));
    let keys = line.value("binding-keys").or(routing);
    if line.has("binding-keys") && routing.is_some() {
        return Err(Failure::usage("Specify --binding-keys only."));
    }
    let keys: Vec<String> = match (partitions, keys) {
        (Some(_), Some(_)) => {
            return Err(Failure::usage(
                "Specify --partitions or --binding-keys, not both.",
            ));
        }
        (None, Some(keys)) => {
            let keys = keys.split(',').map(str::trim).filter(|key| !key.is_empty());
            keys.map(str::to_owned).collect()
        }
        (count, None) => {
            let count = count.unwrap_or(PARTITIONS);
            if count < 1 {
                return Err(Failure::usage("The partition number must be greater than 0"));
            }
            // One more than there may be is enough to be refused.
            let count = usize::try_from(count)
                .unwrap_or(usize::MAX)
                .min(PARTITIONS_MOST + 1);
            (0..count).map(|number| number.to_string()).collect()
        }
    };
    let arguments = arguments(ask)?;
    if keys.is_empty() || keys.len() > PARTITIONS_MOST {
        return Err(Failure::usage(format!(
            "A super stream has 1 to {PARTITIONS_MOST} partitions"
        )));
    }
    check_name(name)?;
    if keys.iter().collect::<BTreeSet<_>>().len() < keys.len() {
        return Err(Failure::error(SOFTWARE, "Duplicate partition names found"));
    }
    let partitions = keys.into_iter().map(|key| (format!("{name}-{key}"), key));
    Ok(Wanted {
        partitions: partitions.collect(),
        arguments,
    })
}

/// Names that RabbitMQ does not take for super streams.
fn check_name(name: &str) -> Result<(), Failure> {
    match name.is_empty() || name.starts_with("amq.") || name.contains(['\n', '\r']) {
        true => {
            let text = format!("{name} is not a correct name for a super stream");
            Err(Failure::error(SOFTWARE, text))
        }
        false => Ok(()),
    }
}

fn arguments(ask: &Ask<'_>) -> Result<Map<String, Value>, Failure> {
    let line = ask.line;
    let mut arguments = Map::new();
    arguments.insert("x-queue-type".into(), "stream".into());
    for option in ["max-length-bytes", "stream-max-segment-size-bytes"] {
        let Some(given) = line.value(option) else { continue };
        let bytes = bytes(given).ok_or_else(|| {
            Failure::usage(format!(
                "Invalid value for --{option}, valid example values: 100gb, 50mb"
            ))
        })?;
        arguments.insert(format!("x-{option}"), bytes.into());
    }
    if let Some(given) = line.value("max-age") {
        let seconds = seconds(given).ok_or_else(|| {
            Failure::usage(
                "Invalid value for --max-age, the value must a ISO 8601 duration, e.g. e.g. PT10M30S for 10 minutes 30 seconds, \
                 P5DT8H for 5 days 8 hours.",
            )
        })?;
        arguments.insert("x-max-age".into(), format!("{seconds}s").into());
    }
    if let Some(given) = line.value("leader-locator") {
        if !["client-local", "balanced", "random", "least-leaders"].contains(&given) {
            let text = "Invalid value for --leader-locator, valid values are client-local, balanced.";
            return Err(Failure::usage(text));
        }
        arguments.insert("x-queue-leader-locator".into(), given.into());
    }
    if let Some(size) = line.number("initial-cluster-size") {
        if size < 1 {
            let text = "Invalid value for --initial-cluster-size, the value must be positive.";
            return Err(Failure::usage(text));
        }
        arguments.insert("x-initial-cluster-size".into(), size.into());
    }
    Ok(arguments)
}

/// A size such as `500`, `50mb` or `2GiB`: RabbitMQ's information units, in any case of letters.
fn bytes(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = text.get(digits.len()..)?.to_ascii_lowercase();
    let prefix = unit.strip_suffix('b').unwrap_or(&unit);
    let (letter, base) = match prefix.strip_suffix('i') {
        Some(letter) => (letter, 1_024_i64),
        None => (prefix, 1_000),
    };
    let power = match letter {
        "" if unit.is_empty() => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    number(digits)?.checked_mul(base.pow(power))
}

/// A duration by ISO 8601 such as `P5DT8H`. A year has 365 days, and a month 30.
fn seconds(text: &str) -> Option<i64> {
    let rest = text.strip_prefix('P')?;
    let (date, time) = match rest.split_once('T') {
        Some((date, time)) if !time.is_empty() => (date, time),
        Some(_) => return None,
        None => (rest, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let date = total(date, &[('Y', 365 * 86_400), ('M', 30 * 86_400), ('D', 86_400)])?;
    date.checked_add(total(time, &[('H', 3_600), ('M', 60), ('S', 1)])?)
}

/// Numbers, each with its unit behind it, in the order of the units.
fn total(mut text: &str, units: &[(char, i64)]) -> Option<i64> {
    let mut total = 0_i64;
    for (unit, seconds) in units {
        let digits = text.find(|letter: char| !letter.is_ascii_digit());
        let at = digits.filter(|at| text[*at..].starts_with(*unit));
        if let Some(at) = at {
            total = total.checked_add(number(&text[..at])?.checked_mul(*seconds)?)?;
            text = &text[at + 1..];
        }
    }
    text.is_empty().then_some(total)
}

/// Digits, without a sign.
fn number(digits: &str) -> Option<i64> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

fn add_super_stream(ask: &Ask<'_>) -> Answer {
    let (name, wanted) = (ask.word(0), wanted(ask)?);
    ask.say("Adding a super stream...");
    ask.vhost_exists()?;
    let exists =
        |what: &str, name: &str| Failure::error(SOFTWARE, format!("there is already {what} named {name}"));
    if ask.find(&path(ask, "exchanges", name))?.is_some() {
        return Err(exists("an exchange", name));
    }
    for (stream, _) in &wanted.partitions {
        if queue(ask, stream)?.is_some() {
            return Err(exists("a queue", stream));
        }
    }
    let mut made = Vec::new();
    if let Err(failure) = make(ask, &wanted, &mut made) {
        // The last thing first. What cannot be taken back is told: it is in the way of the next attempt.
        for path in made.iter().rev() {
            if let Err(left) = ask.delete(path) {
                ask.note(format!("{path} is left: {}", left.text));
            }
        }
        return Err(failure);
    }
    Ok(Output::text(format!("Super stream {name} has been created")))
}

/// Makes the exchange, the streams and the bindings. `made` has the paths of what was not there before.
fn make(ask: &Ask<'_>, wanted: &Wanted, made: &mut Vec<String>) -> Result<(), Failure> {
    let name = ask.word(0);
    let exchange = json!({"type": "direct", "durable": true, "arguments": {"x-super-stream": true}});
    declare(ask, path(ask, "exchanges", name), &exchange, made)?;
    let declaration = json!({"durable": true, "arguments": wanted.arguments});
    for (stream, _) in &wanted.partitions {
        declare(ask, path(ask, "queues", stream), &declaration, made)?;
    }
    for (order, (stream, key)) in wanted.partitions.iter().enumerate() {
        let (vhost, name, stream) = (encode(ask.vhost()), encode(name), encode(stream));
        let binding = json!({"routing_key": key, "arguments": {"x-stream-partition-order": order}});
        let path = format!("/bindings/{vhost}/e/{name}/q/{stream}");
        let answer = ask.call("POST", &path, Some(&binding))?;
        ask.accepted(&answer)?;
    }
    Ok(())
}

fn declare(ask: &Ask<'_>, path: String, what: &Value, made: &mut Vec<String>) -> Result<(), Failure> {
    let answer = ask.call("PUT", &path, Some(what))?;
    ask.accepted(&answer)?;
    // Anything but 201 was made by somebody else in the meantime, and is left alone.
    if answer.status == 201 {
        made.push(path);
    }
    Ok(())
}

fn delete_super_stream(ask: &Ask<'_>) -> Answer {
    let name = ask.word(0);
    // Streams that are bound to an exchange which cannot be deleted stay.
    check_name(name)?;
    ask.say("Deleting a super stream...");
    ask.vhost_exists()?;
    let exchange = path(ask, "exchanges", name);
    // The bindings of an exchange that is not there are an empty list.
    if ask.find(&exchange)?.is_none() {
        return Err(Failure::error(SOFTWARE, "stream_not_found"));
    }
    let bindings = ask.get(&format!("{exchange}/bindings/source"))?;
    // The exchange last: what was not carried out to its end can be asked for again.
    for partition in bound_queues(&bindings) {
        if stream(ask, partition)?.is_some() {
            ask.delete(&path(ask, "queues", partition))?;
        }
    }
    ask.delete(&exchange)?;
    Ok(Output::text(format!("Super stream {name} has been deleted")))
}

/// The names of queues that an exchange's bindings lead to, each once.
fn bound_queues(bindings: &Value) -> BTreeSet<&str> {
    let bindings = bindings.as_array().into_iter().flatten();
    let to_queues = bindings.filter(|binding| text(binding, "destination_type") == "queue");
    to_queues.map(|binding| text(binding, "destination")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Endpoint;
    use crate::line;

    /// What a line wants; the failure's text if it makes no sense.
    fn wanted_of(text: &str) -> Result<Wanted, String> {
        let given: Vec<String> = text.split(' ').map(str::to_owned).collect();
        let command = COMMANDS.iter().find(|command| command.name == "add_super_stream");
        let line = line::parse(&given, Some(command.unwrap().takes()));
        let ask = Ask {
            line: &line,
            tool: Streams,
            version: "4.3.6",
            plugins: &[],
            endpoint: Endpoint::Socket("nowhere".into()),
            credentials: None,
            timeout: None,
        };
        wanted(&ask).map_err(|failure| failure.text)
    }

    #[test]
    fn a_super_stream_has_a_stream_for_each_number_or_key() {
        let streams = |text: &str| {
            let wanted = wanted_of(text).unwrap();
            let pairs = wanted.partitions.iter();
            pairs
                .map(|(stream, key)| format!("{stream}={key}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(streams("add_super_stream s"), "s-0=0 s-1=1 s-2=2");
        assert_eq!(streams("add_super_stream s --partitions 1"), "s-0=0");
        assert_eq!(
            streams("add_super_stream s --binding-keys emea,,apac"),
            "s-emea=emea s-apac=apac"
        );
        assert_eq!(streams("add_super_stream s --routing-keys a"), "s-a=a");
        assert_eq!(
            wanted_of("add_super_stream s --partitions 1000")
                .unwrap()
                .partitions
                .len(),
            1_000
        );
    }

    #[test]
    fn what_streams_are_declared_with_is_checked_and_passed_on() {
        let text = "add_super_stream s --max-length-bytes 20gb --max-age P5DT8H --stream-max-segment-size-bytes 50MiB \
                    --leader-locator balanced --initial-cluster-size 2";
        let expected = json!({
            "x-queue-type": "stream", "x-max-length-bytes": 20_000_000_000_i64, "x-max-age": "460800s",
            "x-stream-max-segment-size-bytes": 52_428_800, "x-queue-leader-locator": "balanced", "x-initial-cluster-size": 2,
        });
        assert_eq!(Value::Object(wanted_of(text).unwrap().arguments), expected);
    }

    #[test]
    fn lines_that_make_no_sense_are_refused_in_rabbitmqs_words() {
        for (options, expected) in [
            (
                "--partitions 2 --binding-keys a",
                "Specify --partitions or --binding-keys, not both.",
            ),
            (
                "--partitions 2 --routing-keys a",
                "Specify --partitions or --binding-keys, not both.",
            ),
            (
                "--binding-keys a --routing-keys a",
                "Specify --binding-keys only.",
            ),
            ("--partitions 0", "The partition number must be greater than 0"),
            ("--partitions 1001", "A super stream has 1 to 1000 partitions"),
            (
                "--partitions 9223372036854775807",
                "A super stream has 1 to 1000 partitions",
            ),
            ("--binding-keys ,", "A super stream has 1 to 1000 partitions"),
            ("--binding-keys a,b,a", "Duplicate partition names found"),
            ("--max-length-bytes 1zb", "valid example values: 100gb, 50mb"),
            ("--max-age 7D", "ISO 8601 duration"),
            (
                "--leader-locator zork",
                "valid values are client-local, balanced.",
            ),
            ("--initial-cluster-size 0", "the value must be positive."),
        ] {
            let text = wanted_of(&format!("add_super_stream s {options}")).unwrap_err();
            assert!(text.contains(expected), "{options}: {text}");
        }
        let text = wanted_of("add_super_stream amq.s").unwrap_err();
        assert!(
            text.contains("amq.s is not a correct name for a super stream"),
            "{text}"
        );
    }

    #[test]
    fn sizes_have_units_and_durations_are_those_of_iso_8601() {
        for (text, expected) in [
            ("500", Some(500)),
            ("5k", Some(5_000)),
            ("5kB", Some(5_000)),
            ("5Kib", Some(5_120)),
            ("5gi", Some(5_368_709_120)),
            ("1PB", Some(1_000_000_000_000_000)),
            ("5b", None),
            ("5i", None),
            ("5kk", None),
            ("5km", None),
            ("5kbb", None),
            ("5kiib", None),
            ("gb", None),
            ("-5", None),
            ("5 mb", None),
            ("99999999999PB", None),
            ("", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
        for (text, expected) in [
            ("PT10M30S", Some(630)),
            ("P1Y1M1D", Some(396 * 86_400)),
            ("P1M", Some(30 * 86_400)),
            ("PT1M", Some(60)),
            ("P", None),
            ("PT", None),
            ("P1", None),
            ("P1H", None),
            ("PT1S1M", None),
            ("PTS", None),
            ("P99999999999999999Y", None),
            ("7D", None),
            ("PüD", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn only_connections_of_the_stream_protocol_are_listed() {
        let all = json!([
            {"name": "a", "protocol": "AMQP 0-9-1", "timeout": 60},
            {"name": "b", "protocol": "stream", "timeout": 30},
        ]);
        let chosen: Vec<Column> = CONNECTIONS
            .iter()
            .filter(|column| ["conn_name", "heartbeat"].contains(&column.name))
            .copied()
            .collect();
        assert_eq!(connections_among(&chosen, all).rows, [[json!("b"), json!(30)]]);
    }

    #[test]
    fn whoever_runs_and_is_not_in_maintenance_may_lead_a_stream_next() {
        let stream = json!({"leader": "rabbit@b", "online": ["rabbit@a", "rabbit@b", "rabbit@c"], "members": ["rabbit@d"]});
        let nodes = [
            json!({"name": "rabbit@a", "being_drained": true}),
            json!({"name": "rabbit@b", "being_drained": false}),
            json!({"name": "rabbit@c", "being_drained": false}),
            json!({"name": "rabbit@d", "being_drained": false}),
        ];
        assert_eq!(heirs(&stream, &nodes), ["rabbit@c"]);
        assert!(heirs(&json!({"leader": "rabbit@a", "online": ["rabbit@a"]}), &nodes).is_empty());
    }

    #[test]
    fn the_status_of_a_stream_has_a_row_for_each_copy() {
        let copy = |role: &str, node: &str, readers: u64| {
            json!({
                "role": role, "node": node, "epoch": 3, "offset": 9, "committed_offset": 9, "first_offset": -1, "readers": readers,
                "segments": 1,
            })
        };
        let rows = status_of(&json!([
            copy("writer", "rabbit@a", 2),
            copy("replica", "rabbit@b", 0)
        ]));
        let offsets = [json!(3), json!(9), json!(9), json!(-1)];
        assert_eq!(rows.rows[0][..2], [json!("writer"), json!("rabbit@a")]);
        assert_eq!(rows.rows[0][2..6], offsets);
        assert_eq!(rows.rows[0][6..], [json!(2), json!(1)]);
        assert_eq!(rows.rows[1][..2], [json!("replica"), json!("rabbit@b")]);
        assert_eq!((rows.rows.len(), rows.columns.len()), (2, 8));
    }

    #[test]
    fn a_super_streams_queues_are_found_once_each_and_exchanges_are_none() {
        let bindings = json!([
            {"destination": "s-0", "destination_type": "queue"},
            {"destination": "s-0", "destination_type": "queue"},
            {"destination": "e", "destination_type": "exchange"},
        ]);
        assert_eq!(bound_queues(&bindings).into_iter().collect::<Vec<_>>(), ["s-0"]);
    }
}
