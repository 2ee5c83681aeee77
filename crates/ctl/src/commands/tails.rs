//! What goes on at a node, as it goes on: events, lines of the log, and the firehose of a virtual host. Each ends after
//! its duration, with the node, or when nobody reads any more.

use crate::ask::{Ask, Heard, encode};
use crate::command::{Command, Section::Monitoring};
use crate::failure::{Failure, UNAVAILABLE};
use crate::output::Output;
use crate::tool::Tool;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::time::{Duration, Instant};

const DIAGNOSTICS: &[Tool] = &[Tool::Diagnostics];

pub const COMMANDS: &[Command] = &[
    Command::new(
        Monitoring,
        "consume_event_stream",
        (0, 0),
        "[--duration|-d <seconds>] [--pattern <pattern>]",
        events,
    )
    .about("Prints events as they happen, one JSON document per line")
    .more("The pattern is a regular expression for event names: --pattern '^queue\\.'")
    .options(&["duration|d=#", "pattern="])
    .of(DIAGNOSTICS),
    Command::new(
        Monitoring,
        "log_tail_stream",
        (0, 0),
        "[--duration|-d <seconds>]",
        log,
    )
    .about("Prints new lines of the node's log")
    .options(&["duration|d=#"])
    .of(DIAGNOSTICS),
    Command::new(
        Monitoring,
        "trace_tail",
        (0, 0),
        "[--vhost <vhost>] [--key <pattern>] [--user <user>] [--connection <text>] [--truncate <bytes>] [--duration|-d <seconds>]",
        trace,
    )
    .about("Prints messages that pass through a virtual host with tracing on, one JSON document per line")
    .more(
        "The key is a topic pattern for publish.EXCHANGE and deliver.QUEUE: --key 'deliver.#'. Turn tracing on with \
         trace_on and off with trace_off. At most 200 messages per second are shown; standard error says how many \
         were skipped.",
    )
    .options(&["key=", "user=", "connection=", "truncate=#", "duration|d=#"])
    .of(&[]),
];

/// When a stream ends, and what was said of it.
struct Tail {
    ends: Option<(Instant, Duration)>,
}

impl Tail {
    fn new(ask: &Ask<'_>) -> Result<Self, Failure> {
        let ends = match ask.line.number("duration") {
            None => None,
            Some(seconds) => {
                let seconds = u64::try_from(seconds).map_err(|_| {
                    Failure::usage(format!(
                        "Invalid options for this command:\n--duration : {seconds}"
                    ))
                })?;
                Some((Instant::now(), Duration::from_secs(seconds)))
            }
        };
        Ok(Self { ends })
    }

    /// How RabbitMQ says how long it will be.
    fn say(&self, ask: &Ask<'_>) {
        let how_long = match self.ends {
            None => String::new(),
            Some((_, duration)) => format!(" for {} seconds", duration.as_secs()),
        };
        ask.say(format!("Streaming logs from node {}{how_long} ...", ask.node()));
    }

    /// Listens to the end. `show` tells what an event says, line by line.
    fn run(
        &self,
        ask: &Ask<'_>,
        path: &str,
        mut show: impl FnMut(&str, &Value, &mut dyn Write) -> io::Result<()>,
    ) -> Result<Output, Failure> {
        let mut out = io::stdout();
        let mut refused = None;
        ask.listen(path, &mut |kind, told| {
            match kind {
                "turn" => {
                    let lost = super::number(&told, "lost");
                    if lost > 0 {
                        let _ = writeln!(io::stderr(), "{lost} were skipped: too many at a time");
                    }
                    let over = |(began, duration): (Instant, Duration)| began.elapsed() >= duration;
                    if self.ends.is_some_and(over) {
                        return Heard::Enough;
                    }
                }
                "expired" => refused = Some("the user no longer has the permission".to_owned()),
                "refused" => refused = Some(crate::ask::reason(&told)),
                _ => {}
            }
            // Whoever read has seen enough.
            match show(kind, &told, &mut out).and_then(|()| out.flush()) {
                Ok(()) => Heard::GoOn,
                Err(_) => Heard::Enough,
            }
        })?;
        match refused {
            None => Ok(Output::Done),
            Some(reason) => Err(Failure::error(UNAVAILABLE, format!("the node refuses: {reason}"))),
        }
    }
}

/// The node whose events or lines are meant, as a query has it: nothing for the one that is asked. A name that the cluster does
/// not have names this machine, as in all commands.
fn of_node(ask: &Ask<'_>) -> Result<String, Failure> {
    let given = ask.line.value("node").filter(|name| !name.contains("://"));
    if given.is_none() {
        return Ok(String::new());
    }
    let (name, nodes) = (ask.node(), super::node_names(ask)?);
    Ok(match nodes.contains(&name) {
        true => encode(&name),
        false => String::new(),
    })
}

fn events(ask: &Ask<'_>) -> Result<Output, Failure> {
    let tail = Tail::new(ask)?;
    let pattern = encode(ask.line.value("pattern").unwrap_or_default());
    let path = format!("/leveret/happenings?pattern={pattern}&node={}", of_node(ask)?);
    tail.run(ask, &path, |kind, told, out| match kind {
        "happened" => writeln!(out, "{told}"),
        _ => Ok(()),
    })
}

fn log(ask: &Ask<'_>) -> Result<Output, Failure> {
    let tail = Tail::new(ask)?;
    tail.say(ask);
    let path = format!("/leveret/logs/follow?node={}", of_node(ask)?);
    let for_program = matches!(ask.line.value("formatter"), Some("json" | "json_stream"));
    tail.run(ask, &path, |kind, told, out| match kind {
        "line" if for_program => writeln!(out, "{told}"),
        "line" => {
            let [time, level, area, text] =
                ["time", "level", "area", "text"].map(|name| super::text(told, name));
            writeln!(out, "{time} [{level}] {area}: {text}")
        }
        _ => Ok(()),
    })
}

fn trace(ask: &Ask<'_>) -> Result<Output, Failure> {
    let tail = Tail::new(ask)?;
    let mut query: Vec<String> = ["key", "user", "connection", "truncate"]
        .into_iter()
        .filter_map(|name| Some(format!("{name}={}", encode(ask.line.value(name)?))))
        .collect();
    query.sort_unstable();
    let path = format!("/leveret/trace/{}?{}", encode(ask.vhost()), query.join("&"));
    ask.vhost_exists()?;
    let mut warned = false;
    tail.run(ask, &path, |kind, told, out| match kind {
        "trace" => {
            let messages = told["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
            for message in messages {
                writeln!(out, "{message}")?;
            }
            let passed = super::number(told, "passed");
            if told["full"] == json!(true) {
                writeln!(
                    io::stderr(),
                    "messages that passed: {passed}; shown: {}",
                    messages.len()
                )?;
            }
            Ok(())
        }
        "turn" if told["tracing"] == json!(false) && !warned => {
            warned = true;
            let vhost = ask.vhost();
            writeln!(
                io::stderr(),
                "tracing is off in virtual host '{vhost}': turn it on with trace_on"
            )
        }
        _ => Ok(()),
    })
}
