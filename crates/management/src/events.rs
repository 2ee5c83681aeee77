//! Answers that do not end (server-sent events): `/api/leveret/events`, what a page shows, again and again;
//! `/api/leveret/happenings` and `/api/leveret/logs/follow`, what happens on the node and what it logs.
//!
//! A listener of the first names the addresses below `/api` that it looks at. Each of them is asked as if the listener
//! had asked itself, with the same log-in and the same rights: a password that was changed or a permission that was
//! taken ends what is told at the next turn. Whoever listens to the others sees all virtual hosts and the audit trail,
//! so they are administrators.

use crate::access::Right;
use crate::call::Call;
use crate::log_tail::{self, LogTail};
use crate::observed::{Following, Happenings};
use crate::others;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::subscription::{PATH, Subscription};
use crate::telling::Telling;
use serde_json::{Value, json};
use std::time::Duration;

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

fn watch(call: &Call<'_>) -> Result<Reply, Refusal> {
    let pattern = call.query.get("pattern").filter(|text| !text.is_empty());
    let happenings = Happenings::of(pattern, || call.api.broker.watch())?;
    Ok(telling(Telling::Happenings(happenings)))
}

/// The lines of this node, as they come; or of another one, which is asked with each turn for those after the last.
fn follow(call: &Call<'_>) -> Result<Reply, Refusal> {
    let given = |name: &str| call.query.get(name).filter(|text| !text.is_empty());
    let (level_name, log) = (given("level"), &call.api.options.log_tail);
    let level = log_tail::level(level_name)?;
    if let Some(after) = given("after") {
        return match others::of_named_node(call)? {
            Some(told) => Ok(told),
            None => lines(log, after, level),
        };
    }
    let named = given("node").filter(|name| *name != call.api.options.node);
    let following = match named {
        None => Following::of(log, level),
        Some(name) if call.members().iter().any(|member| member.name == name) => {
            Following::of_node(name, level_name.unwrap_or_default())
        }
        Some(_) => return Err(Refusal::NotFound),
    };
    Ok(telling(Telling::Log(following)))
}

/// The lines after one of this number, or none yet (`end`), and which was the last one.
fn lines(log: &LogTail, after: &str, level: usize) -> Result<Reply, Refusal> {
    let mut after = match after {
        "end" => log.written(),
        number => number
            .parse()
            .map_err(|_| Refusal::bad_request("after is the number of a line, or end"))?,
    };
    let (mut lines, mut lost) = log.since(&mut after, level);
    // Those that came last are told.
    let mut bytes = 0;
    let fits = |line: &Value| {
        bytes += line.to_string().len();
        bytes <= others::TOLD
    };
    let told = lines.iter().rev().map(fits).take_while(|fits| *fits).count();
    let first = lines.len() - told;
    lost += lines.drain(..first).count() as u64;
    Ok(Reply::json(
        &json!({"lines": lines, "lost": lost, "after": after}),
    ))
}

fn telling(telling: Telling) -> Reply {
    Reply {
        events: Some(telling),
        ..Reply::empty(200)
    }
}
