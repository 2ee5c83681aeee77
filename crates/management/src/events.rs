//! Answers that do not end (server-sent events): `/api/leveret/events`, what a page shows, again and again;
//! `/api/leveret/happenings` and `/api/leveret/logs/follow`, what happens on the node and what it logs, or on another one, which
//! is asked with each turn for what came after the last one.
//!
//! A listener of the first names the addresses below `/api` that it looks at. Each of them is asked as if the listener
//! had asked itself, with the same log-in and the same rights: a password that was changed or a permission that was
//! taken ends what is told at the next turn. Whoever listens to the others sees all virtual hosts and the audit trail,
//! so they are administrators.

use crate::access::Right;
use crate::call::Call;
use crate::log_tail::{self, LogTail};
use crate::observed::{self, Following, Happenings};
use crate::observed_elsewhere::{ObservedElsewhere, Source};
use crate::others::{self, Question};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::subscription::{PATH, Subscription};
use crate::telling::Telling;
use regex::Regex;
use serde_json::{Map, Value};
use std::time::{Duration, Instant};

/// How many listeners there may be at a time. Others are refused with 503, and ask for what they want by themselves.
pub const LISTENERS: usize = 64;
/// How often addresses are asked: without a word about it, at the fastest and at the slowest, in seconds.
const PACES_S: (u64, u64, u64) = (5, 1, 60);

pub const ROUTES: &[Route] = &[
    Route {
        path: PATH,
        verbs: &[("GET", Right::Management, subscribe)],
    },
    Route {
        path: "/leveret/happenings",
        verbs: &[("GET", Right::Administrator, watch)],
    },
    Route {
        path: "/leveret/logs/follow",
        verbs: &[("GET", Right::Administrator, follow)],
    },
];

fn subscribe(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (usual, fastest, slowest) = PACES_S;
    let every = match call.query.get("every") {
        None => usual,
        Some(text) => text
            .parse()
            .ok()
            .filter(|every| (fastest..=slowest).contains(every))
            .ok_or_else(|| {
                Refusal::bad_request(format!(
                    "every is a number of seconds from {fastest} to {slowest}"
                ))
            })?,
    };
    let every = Duration::from_secs(every);
    let subscription = Subscription::of(every, call.query.flag("later"), call.query.all("watch"))?;
    Ok(telling(Telling::Changes(subscription)))
}

/// What happens on this node, or on another one.
fn watch(call: &Call<'_>) -> Result<Reply, Refusal> {
    let text = given(call, "pattern");
    let pattern = observed::pattern(text)?;
    if let Some(after) = given(call, "after") {
        return match others::of_named_node(call)? {
            Some(told) => Ok(told),
            None => happened(call, after, pattern.as_ref()),
        };
    }
    match elsewhere(call, Source::Happenings, ("pattern", text))? {
        Some(reply) => Ok(reply),
        None => {
            let happenings = Happenings::of(call.api.broker.watch(), pattern);
            Ok(telling(Telling::Happenings(happenings)))
        }
    }
}

/// The lines of this node, as they come, or of another one.
fn follow(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (name, log) = (given(call, "level"), &call.api.options.log_tail);
    let level = log_tail::level(name)?;
    if let Some(after) = given(call, "after") {
        return match others::of_named_node(call)? {
            Some(told) => Ok(told),
            None => lines(log, after, level),
        };
    }
    match elsewhere(call, Source::Log, ("level", name))? {
        Some(reply) => Ok(reply),
        None => Ok(telling(Telling::Log(Following::of(log, level)))),
    }
}

fn given<'c>(call: &'c Call<'_>, name: &str) -> Option<&'c str> {
    call.query.get(name).filter(|text| !text.is_empty())
}

/// What is told of another node, if the request names one: all from now on, which that node is asked to begin with.
fn elsewhere(
    call: &Call<'_>,
    source: Source,
    choice: (&'static str, Option<&str>),
) -> Result<Option<Reply>, Refusal> {
    let Some(node) = given(call, "node") else {
        return Ok(None);
    };
    let (name, value) = choice;
    let mut observed = ObservedElsewhere::of(&call.path, source, node, (name, value.unwrap_or_default()));
    let question = Question {
        query: observed.words(),
        ..Question::again(call)
    };
    let Some(answer) = others::said_by(call, node, question)? else {
        return Ok(None);
    };
    Ok(Some(match answer.found() {
        // Nothing has happened yet.
        Some(told) => {
            observed.turn(&told);
            telling(Telling::Elsewhere(observed))
        }
        None => answer.into(),
    }))
}

/// What happened after the event of this number, or nothing yet (`end`), and which was the last one.
fn happened(call: &Call<'_>, after: &str, pattern: Option<&Regex>) -> Result<Reply, Refusal> {
    let mut after = number(after)?;
    let broker = &call.api.broker;
    let tail = &call.api.event_tail;
    let (events, lost) = tail.since(&mut after, Instant::now(), || broker.watch());
    let events = observed::shown(&events, pattern);
    Ok(as_many_as_fit(Source::Happenings, events, lost, after))
}

/// The lines after one of this number, or none yet (`end`), and which was the last one.
fn lines(log: &LogTail, after: &str, level: usize) -> Result<Reply, Refusal> {
    let mut after = number(after)?.unwrap_or_else(|| log.written());
    let (lines, lost) = log.since(&mut after, level);
    Ok(as_many_as_fit(Source::Log, lines, lost, Some(after)))
}

/// The number after which something is asked for; `None` for what is still to come.
fn number(after: &str) -> Result<Option<u64>, Refusal> {
    match after {
        "end" => Ok(None),
        number => number
            .parse()
            .map(Some)
            .map_err(|_| Refusal::bad_request("after is a number from the last answer, or end")),
    }
}

/// An answer with those that came last, as many as another node may be told at once.
fn as_many_as_fit(source: Source, mut all: Vec<Value>, lost: u64, after: Option<u64>) -> Reply {
    let mut bytes = 0;
    let fits = |one: &Value| {
        bytes += one.to_string().len();
        bytes <= others::TOLD
    };
    let told = all.iter().rev().map(fits).take_while(|fits| *fits).count();
    let first = all.len() - told;
    all.drain(..first);
    let members = [
        (source.list(), Value::from(all)),
        ("lost", (lost + first as u64).into()),
        ("after", after.into()),
    ];
    let members = members.map(|(name, value)| (name.to_owned(), value));
    Reply::json(&Value::Object(Map::from_iter(members)))
}

fn telling(telling: Telling) -> Reply {
    Reply {
        events: Some(telling),
        ..Reply::empty(200)
    }
}
