//! Answers that do not end (server-sent events): `/api/leveret/events`, what a page shows, again and again;
//! `/api/leveret/happenings` and `/api/leveret/logs/follow`, what happens on the node and what it logs.
//!
//! A listener of the first names the addresses below `/api` that it looks at. Each of them is asked as if the listener
//! had asked itself, with the same log-in and the same rights: a password that was changed or a permission that was
//! taken ends what is told at the next turn. Whoever listens to the others sees all virtual hosts and the audit trail,
//! so they are administrators.

use crate::access::Right;
use crate::call::Call;
use crate::log_tail;
use crate::observed::{Following, Happenings};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::subscription::{PATH, Subscription};
use crate::telling::Telling;
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

fn follow(call: &Call<'_>) -> Result<Reply, Refusal> {
    let level = log_tail::level(call.query.get("level").filter(|text| !text.is_empty()))?;
    let following = Following::of(&call.api.options.log_tail, level);
    Ok(telling(Telling::Log(following)))
}

fn telling(telling: Telling) -> Reply {
    Reply {
        events: Some(telling),
        ..Reply::empty(200)
    }
}
