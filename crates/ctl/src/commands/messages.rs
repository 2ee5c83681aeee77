//! Working with the messages of a queue: looking at them without consuming, moving, copying, deleting, replaying.

use super::{number, pick, text};
use crate::ask::{Ask, encode};
use crate::command::{Command, Section::Queues};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE};
use crate::output::Output;
use crate::progress::Progress;
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

/// How many filters a command takes.
const FILTERS: usize = 32;
/// How many messages a request is about.
const STEP: u64 = 100;

const FILTER_HELP: &str = "Filters: header.NAME=VALUE, property.NAME=VALUE, routing_key=…, exchange=…, body=…, \
 text=…, state=ready|unacked|waiting|leaving, redelivered=true, since=TIME, until=TIME; all of them must match. \
 With --use-regex, texts are regular expressions. A time is 15m (ago), 2026-03-01T12:30:00Z or milliseconds.";

pub const COMMANDS: &[Command] = &[
    Command::new(
        Queues,
        "browse_messages",
        (1, 1 + FILTERS),
        "[--vhost <vhost>] <queue> [--from <head | tail | position> | --index <number> | --time <time>] [--count <number>] [--truncate <bytes>] [--use-regex] [<filter> ...]",
        browse,
    )
    .about("Shows the messages of a queue, including unacknowledged ones, without consuming them")
    .more(FILTER_HELP)
    .options(&["from=", "index=", "time=", "count=", "truncate=", "use-regex"])
    .of(&[]),
    Command::new(Queues, "read_message", (2, 2), "[--vhost <vhost>] <queue> <position>", read)
        .about("Writes the body of a message to standard output")
        .more("browse_messages shows positions.")
        .of(&[]),
    Command::new(Queues, "move_messages", (1, 1 + FILTERS), TO, |ask| act(ask, "move", false))
        .about("Moves ready messages to a queue or an exchange; each one leaves its queue only after it has arrived")
        .more(FILTER_HELP)
        .options(ACTING)
        .of(&[]),
    Command::new(Queues, "copy_messages", (1, 1 + FILTERS), TO, |ask| act(ask, "copy", false))
        .about("Copies messages to a queue or an exchange")
        .more(FILTER_HELP)
        .options(ACTING)
        .of(&[]),
    Command::new(Queues, "replay_messages", (1, 1 + FILTERS), ANYWHERE, |ask| act(ask, "move", true))
        .about("Moves dead letters back to the exchange and routing key with which they were first published")
        .more(FILTER_HELP)
        .options(ACTING)
        .of(&[]),
    Command::new(Queues, "delete_messages", (1, 1 + FILTERS), ANYWHERE, |ask| act(ask, "delete", false))
        .about("Deletes ready messages: those that match filters or positions, or all")
        .more(FILTER_HELP)
        .options(ACTING)
        .of(&[]),
];

const TO: &str = "[--vhost <vhost>] <queue> --to-queue <queue> | --to-exchange <exchange> --routing-key <key> [--limit <number>] [--rate <messages a second>] [--positions <position,...>] [--preview] [--use-regex] [<filter> ...]";
const ANYWHERE: &str = "[--vhost <vhost>] <queue> [--limit <number>] [--rate <messages a second>] [--positions <position,...>] [--preview] [--use-regex] [<filter> ...]";
const ACTING: &[&str] = &[
    "to-queue=",
    "to-exchange=",
    "routing-key=",
    "limit=",
    "rate=",
    "positions=",
    "preview",
    "use-regex",
];

const COLUMNS: [(&str, &str); 9] = [
    ("position", "position"),
    ("state", "state"),
    ("redelivered", "redelivered"),
    ("received_at", "received_at"),
    ("exchange", "exchange"),
    ("routing_key", "routing_key"),
    ("properties", "properties"),
    ("payload_bytes", "payload_bytes"),
    ("payload", "payload"),
];

/// The path of the queue's messages.
fn path(ask: &Ask<'_>) -> String {
    format!(
        "/leveret/queues/{}/{}/messages",
        encode(ask.vhost()),
        encode(ask.word(0))
    )
}

/// The filters among the words.
fn filters<'a>(ask: &Ask<'a>) -> Result<Vec<(&'a str, &'a str)>, Failure> {
    let words = ask.line.words.iter().skip(1);
    let mut pairs = words
        .map(|word| {
            word.split_once('=')
                .ok_or_else(|| Failure::usage(format!("'{word}' is not a filter: it has no '='")))
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    if ask.line.has("use-regex") {
        pairs.push(("use_regex", "true"));
    }
    Ok(pairs)
}

/// A number that an option gives.
fn given(ask: &Ask<'_>, option: &str) -> Result<Option<u64>, Failure> {
    let wrong =
        |text: &str| Failure::usage(format!("Invalid options for this command:\n--{option} : {text}"));
    let text = ask.line.value(option);
    text.map(|text| text.parse().map_err(|_| wrong(text))).transpose()
}

fn found(ask: &Ask<'_>, answer: Option<Value>) -> Result<Value, Failure> {
    answer.ok_or_else(|| {
        let (queue, vhost) = (ask.word(0), ask.vhost());
        Failure::plain(
            BAD_VALUE,
            format!("there is no queue '{queue}' in vhost '{vhost}', or no such message in it"),
        )
    })
}

/// Asks page by page until enough is found, or the queue ends.
fn browse(ask: &Ask<'_>) -> Result<Output, Failure> {
    let count = given(ask, "count")?.unwrap_or(20);
    let truncate = given(ask, "truncate")?.unwrap_or(200);
    let mut query = vec![("truncate", truncate.to_string())];
    query.extend(
        filters(ask)?
            .into_iter()
            .map(|(name, value)| (name, value.to_owned())),
    );
    let start = ["from", "index", "time"];
    let mut start: Vec<(&str, String)> = start
        .into_iter()
        .filter_map(|name| Some((name, ask.line.value(name)?.to_owned())))
        .collect();
    ask.say(format!(
        "Browsing queue '{}' in vhost '{}' ...",
        ask.word(0),
        ask.vhost()
    ));
    let mut progress = Progress::new("messages looked through", 0);
    let mut messages = Vec::new();
    loop {
        let wanted = count.saturating_sub(messages.len() as u64);
        let mut pairs: Vec<String> = query
            .iter()
            .chain(&start)
            .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
            .collect();
        pairs.push(format!("count={}", wanted.min(1000)));
        let page = found(ask, ask.find(&format!("{}?{}", path(ask), pairs.join("&")))?)?;
        progress.total(number(&page, "messages_ready") + number(&page, "messages_unacknowledged"));
        progress.add(number(&page, "scanned"));
        let shown = page.get("messages").and_then(Value::as_array);
        messages.extend(shown.into_iter().flatten().cloned());
        let next = text(&page, "next");
        if next.is_empty() || messages.len() as u64 >= count {
            progress.end();
            return Ok(Output::Rows(pick(&COLUMNS, &Value::Array(messages))));
        }
        start = vec![("from", next.to_owned())];
    }
}

fn read(ask: &Ask<'_>) -> Result<Output, Failure> {
    let answer = ask.call(
        "GET",
        &format!("{}/{}/body", path(ask), encode(ask.word(1))),
        None,
    )?;
    if answer.status == 404 {
        found(ask, None)?;
    }
    if answer.status != 200 {
        ask.accepted(&answer)?;
    }
    io::stdout()
        .write_all(&answer.body)
        .map_err(|error| Failure::error(UNAVAILABLE, format!("the body cannot be written: {error}")))?;
    Ok(Output::Done)
}

/// What every request of an action says.
fn asked(ask: &Ask<'_>, action: &str, origin: bool) -> Result<Map<String, Value>, Failure> {
    let mut body = Map::new();
    body.insert("action".into(), action.into());
    let filters = filters(ask)?.into_iter();
    let filters: Map<String, Value> = filters.map(|(name, value)| (name.into(), value.into())).collect();
    body.insert("filter".into(), filters.into());
    if let Some(positions) = ask.line.value("positions") {
        let edition = found(ask, ask.find(&format!("{}?count=1", path(ask)))?)?;
        body.insert("positions".into(), positions.split(',').map(str::trim).collect());
        body.insert("edition".into(), text(&edition, "edition").into());
    }
    let (queue, exchange) = (ask.line.value("to-queue"), ask.line.value("to-exchange"));
    match (queue, exchange) {
        _ if origin => drop(body.insert("origin".into(), true.into())),
        _ if action == "delete" => {}
        (Some(queue), None) => {
            body.insert("exchange".into(), "amq.default".into());
            body.insert("routing_key".into(), queue.into());
        }
        (None, Some(exchange)) => {
            let key = ask.line.value("routing-key").unwrap_or_default();
            body.insert("exchange".into(), exchange.into());
            body.insert("routing_key".into(), key.into());
        }
        _ => {
            return Err(Failure::usage(
                "a target is required: --to-queue, or --to-exchange with --routing-key",
            ));
        }
    }
    Ok(body)
}

/// Does something in small requests one after the other: whoever stops the command in between has done what was done.
fn act(ask: &Ask<'_>, action: &'static str, origin: bool) -> Result<Output, Failure> {
    let mut body = asked(ask, action, origin)?;
    let preview = ask.line.has("preview");
    body.insert("dry_run".into(), preview.into());
    let mut left = given(ask, "limit")?.unwrap_or(u64::MAX);
    let rate = given(ask, "rate")?.filter(|rate| *rate > 0);
    let queue = format!(
        "/queues/{}/{}?columns=messages",
        encode(ask.vhost()),
        encode(ask.word(0))
    );
    let total = number(&found(ask, ask.find(&queue)?)?, "messages");
    let mut progress = Progress::new("messages looked through", 0);
    progress.total(total);
    let mut sums: Vec<(&str, u64)> = [
        "selected",
        "moved",
        "deleted",
        "refused",
        "without_origin",
        "missed",
    ]
    .map(|name| (name, 0))
    .to_vec();
    let mut sample = Vec::new();
    loop {
        let begun = Instant::now();
        let step = rate.map_or(STEP, |rate| rate.min(STEP)).min(left);
        body.insert("count".into(), if preview { left.min(1000) } else { step }.into());
        let answer = ask.call("POST", &path(ask), Some(&Value::Object(body.clone())))?;
        let answer = ask.accepted(&answer)?;
        for (name, sum) in &mut sums {
            *sum += number(&answer, name);
        }
        if sample.is_empty() {
            sample = answer
                .get("sample")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
        }
        progress.add(number(&answer, "scanned"));
        let done = ["selected", "moved", "deleted"]
            .map(|name| number(&answer, name))
            .iter()
            .sum::<u64>();
        left = left.saturating_sub(done);
        let next = text(&answer, "next");
        if next.is_empty() || left == 0 {
            break;
        }
        body.insert("from".into(), next.into());
        // What comes meanwhile, perhaps from this very command, is not meant.
        body.insert("end".into(), text(&answer, "end").into());
        if let Some(rate) = rate.filter(|_| !preview) {
            let due = Duration::from_secs_f64(done as f64 / rate as f64);
            thread::park_timeout(due.saturating_sub(begun.elapsed()));
        }
    }
    progress.end();
    Ok(told(&sums, &sample, preview, action))
}

fn counted(messages: u64) -> String {
    match messages {
        1 => "1 message".into(),
        _ => format!("{messages} messages"),
    }
}

fn told(sums: &[(&str, u64)], sample: &[Value], preview: bool, action: &str) -> Output {
    let sum = |name: &str| {
        sums.iter()
            .find(|(known, _)| *known == name)
            .map_or(0, |(_, sum)| *sum)
    };
    let value = sums
        .iter()
        .map(|(name, sum)| ((*name).to_owned(), Value::from(*sum)))
        .collect();
    let value = Value::Object(value);
    if preview {
        let mut lines = vec![format!("{} match ({action})", counted(sum("selected")))];
        lines.extend(sample.iter().map(|message| {
            let payload = text(message, "payload");
            format!(
                "{}\t{}\t{}",
                text(message, "position"),
                text(message, "routing_key"),
                payload.escape_debug()
            )
        }));
        return Output::Told(lines.join("\n"), value);
    }
    let done = sum("moved") + sum("deleted");
    let participle = match action {
        "delete" => "deleted",
        "copy" => "copied",
        _ => "moved",
    };
    let verb = if done == 1 { "was" } else { "were" };
    let mut line = format!("{} {verb} {participle}", counted(done));
    for (name, words) in [
        ("refused", "had no route or no room"),
        ("without_origin", "never died"),
        ("missed", "went to a consumer first"),
    ] {
        if sum(name) > 0 {
            line.push_str(&format!("; {} {words}", sum(name)));
        }
    }
    Output::Told(line, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_and_what_was_not_is_told() {
        let sums = [
            ("selected", 0),
            ("moved", 5),
            ("deleted", 0),
            ("refused", 2),
            ("without_origin", 0),
            ("missed", 1),
        ];
        let Output::Told(line, value) = told(&sums, &[], false, "move") else {
            panic!("nothing is told");
        };
        assert_eq!(
            line,
            "5 messages were moved; 2 had no route or no room; 1 went to a consumer first"
        );
        assert_eq!(value["moved"], 5);
    }
}
