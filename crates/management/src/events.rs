//! `/api/leveret/events`: what a page shows, again and again, over one answer that does not end (server-sent events).
//!
//! A listener names the addresses below `/api` that it looks at. Each of them is asked as if the listener had asked itself, with the same
//! log-in and the same rights, and told only when its answer has changed: the cost follows what is shown, not what there is. So a
//! password that was changed or a permission that was taken ends what is told at the next turn.

use crate::access::Right;
use crate::call::Call;
use crate::overheard::{Following, Happenings};
use crate::query::Query;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::Route;
use crate::trace::Wanted;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write;
use std::hash::{Hash, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How many listeners there may be at a time. Others are refused with 503, and ask for what they want by themselves.
pub const LISTENERS: usize = 64;
/// How many addresses one of them may look at.
const WATCHES: usize = 16;
/// The longest address, in bytes.
const ADDRESS_BYTES: usize = 4096;
/// Answers that are larger are not told (in bytes): whoever wants such a one asks for it.
const ANSWER_BYTES: usize = 1 << 20;
/// How often addresses are asked: without a word about it, at the fastest and at the slowest, in seconds.
const PACES_S: (u64, u64, u64) = (5, 1, 60);

pub const ROUTES: &[Route] = &[Route {
    path: "/leveret/events",
    verbs: &[("GET", Right::Management, subscribe)],
}];

/// What an answer that goes on tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Telling {
    /// What has changed.
    Changes(Subscription),
    /// What passes through a virtual host.
    Trace(Wanted),
    /// What happens on the node.
    Happenings(Happenings),
    /// What the node logs.
    Log(Following),
}

/// What one listener wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// How long there is between two turns.
    pub every: Duration,
    /// The first turn comes after that time, not at once.
    pub later: bool,
    watches: Vec<Watch>,
}

/// An address that is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Watch {
    path: String,
    query: String,
    /// What was told last, as a hash.
    told: Option<u64>,
    /// Its answer was too large: it is asked no more.
    over: bool,
}

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
    let watches = call
        .query
        .all("watch")
        .map(Watch::of)
        .collect::<Result<Vec<_>, _>>()?;
    if !(1..=WATCHES).contains(&watches.len()) {
        return Err(Refusal::bad_request(format!(
            "the parameter watch is required, 1 to {WATCHES} times: watch=/overview"
        )));
    }
    Ok(Reply {
        events: Some(Telling::Changes(Subscription {
            every: Duration::from_secs(every),
            later: call.query.flag("later"),
            watches,
        })),
        ..Reply::empty(200)
    })
}

impl Watch {
    fn of(address: &str) -> Result<Self, Refusal> {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let here = ROUTES[0].path;
        if address.len() > ADDRESS_BYTES || !path.starts_with('/') || path.starts_with(here) {
            return Err(Refusal::bad_request(
                "watch is the address of something below /api, as /queues/%2F?page=1",
            ));
        }
        Ok(Self {
            path: format!("/api{path}"),
            query: query.to_owned(),
            told: None,
            over: false,
        })
    }

    /// The event about an answer, if it is not the one that was told last.
    fn event(&mut self, at: usize, reply: &Reply) -> Option<String> {
        let body = reply.body.as_deref().unwrap_or(b"null");
        let mut hasher = DefaultHasher::new();
        (reply.status, body).hash(&mut hasher);
        let told = Some(hasher.finish());
        if self.told == told {
            return None;
        }
        self.told = told;
        if body.len() > ANSWER_BYTES {
            self.over = true;
            return Some(event("over", &format!("{{\"watch\":{at}}}")));
        }
        // JSON has no line ends but those within its text, which are written as \n: an event's data is one line.
        let body = String::from_utf8_lossy(body);
        let head = format!("{{\"watch\":{at},\"status\":{},\"body\":", reply.status);
        Some(event("answer", &format!("{head}{body}}}")))
    }
}

impl Subscription {
    /// One turn: the events about what has changed, and one that says when it was looked. `ask` asks for an address.
    ///
    /// # Errors
    /// The listener's log-in is no longer valid, in one last event.
    pub fn turn(&mut self, ask: impl Fn(&str, Query) -> Result<Reply, Refusal>) -> Result<String, String> {
        let mut events = String::new();
        for (at, watch) in self.watches.iter_mut().enumerate() {
            if watch.over {
                continue;
            }
            let reply = match ask(&watch.path, Query::parse(&watch.query)) {
                Err(Refusal::Credentials | Refusal::Anonymous) => return Err(event("expired", "{}")),
                Ok(reply) if reply.events.is_some() => Refusal::NotFound.into(),
                outcome => outcome.unwrap_or_else(Reply::from),
            };
            events.extend(watch.event(at, &reply));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        events.push_str(&event("turn", &format!("{{\"at\":{}}}", now.as_millis())));
        Ok(events)
    }
}

/// An event of this kind with one line of JSON.
pub fn event(kind: &str, line: &str) -> String {
    let mut text = String::with_capacity(line.len() + 32);
    // Writing to a string does not fail.
    let _ = write!(text, "event: {kind}\ndata: {line}\n\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn subscription(addresses: &[&str]) -> Subscription {
        Subscription {
            every: Duration::from_secs(5),
            later: false,
            watches: addresses.iter().map(|it| Watch::of(it).unwrap()).collect(),
        }
    }

    #[test]
    fn an_answer_is_told_when_it_changes_and_each_turn_says_that_it_was() {
        let mut listener = subscription(&["/overview", "/queues/%2F/a?columns=name"]);
        let turn = |listener: &mut Subscription, ready: u64| {
            let told = listener.turn(|path, query| match path {
                "/api/overview" => Ok(Reply::json(&json!({"ready": ready}))),
                _ => {
                    assert_eq!(query.get("columns"), Some("name"));
                    Err(Refusal::NotFound)
                }
            });
            told.unwrap()
        };
        let first = turn(&mut listener, 1);
        assert!(
            first.contains("data: {\"watch\":0,\"status\":200,\"body\":{\"ready\":1}}\n\n"),
            "{first}"
        );
        assert!(first.contains("{\"watch\":1,\"status\":404,"), "{first}");
        let second = turn(&mut listener, 1);
        assert!(second.starts_with("event: turn\ndata: {\"at\":"), "{second}");
        assert_eq!(turn(&mut listener, 2).matches("event: answer").count(), 1);
    }

    #[test]
    fn a_log_in_that_ends_ends_the_events() {
        let mut listener = subscription(&["/overview"]);
        let told = listener.turn(|_, _| Err(Refusal::Credentials));
        assert_eq!(told, Err("event: expired\ndata: {}\n\n".into()));
    }

    #[test]
    fn an_answer_that_is_too_large_is_named_once_and_asked_no_more() {
        let mut listener = subscription(&["/queues"]);
        let large = |_: &str, _| Ok(Reply::json(&"x".repeat(ANSWER_BYTES).into()));
        assert!(
            listener
                .turn(large)
                .unwrap()
                .starts_with("event: over\ndata: {\"watch\":0}\n\n")
        );
        let never = |_: &str, _| unreachable!("it is asked no more");
        assert!(listener.turn(never).unwrap().starts_with("event: turn"));
    }

    #[test]
    fn only_addresses_of_the_api_are_looked_at_and_not_the_events_themselves() {
        for address in [
            "overview",
            "",
            "/leveret/events?watch=/overview",
            &format!("/{}", "x".repeat(5000)),
        ] {
            assert!(Watch::of(address).is_err(), "{address}");
        }
    }
}
