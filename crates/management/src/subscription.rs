//! What one listener looks at: addresses below `/api`, each of which is told only when its answer has changed, so that
//! the cost follows what is shown, not what there is.

use crate::query::Query;
use crate::refusal::Refusal;
use crate::text::event;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where subscriptions are made: nobody may look at that.
pub const PATH: &str = "/leveret/events";
/// How many addresses one of them may look at.
const WATCHES: usize = 16;
/// The longest address, in bytes.
const ADDRESS_BYTES: usize = 4096;
/// Answers that are larger are not told (in bytes): whoever wants such a one asks for it.
const ANSWER_BYTES: usize = 1 << 20;

/// A status of HTTP, and a body, if there is one.
pub type Answer = (u16, Option<Vec<u8>>);

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

impl Watch {
    fn of(address: &str) -> Result<Self, Refusal> {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        if address.len() > ADDRESS_BYTES || !path.starts_with('/') || path.starts_with(PATH) {
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
    fn event(&mut self, at: usize, status: u16, body: &[u8]) -> Option<String> {
        let mut hasher = DefaultHasher::new();
        (status, body).hash(&mut hasher);
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
        let head = format!("{{\"watch\":{at},\"status\":{status},\"body\":");
        Some(event("answer", &format!("{head}{body}}}")))
    }
}

impl Subscription {
    /// To these addresses, which are looked at so often.
    ///
    /// # Errors
    /// There are none or too many, or one can't be looked at.
    pub fn of<'q>(
        every: Duration,
        later: bool,
        addresses: impl Iterator<Item = &'q str>,
    ) -> Result<Self, Refusal> {
        let watches = addresses.map(Watch::of).collect::<Result<Vec<_>, _>>()?;
        if !(1..=WATCHES).contains(&watches.len()) {
            return Err(Refusal::bad_request(format!(
                "the parameter watch is required, 1 to {WATCHES} times: watch=/overview"
            )));
        }
        Ok(Self {
            every,
            later,
            watches,
        })
    }

    /// One turn: the events about what has changed, and one that says when it was looked. `ask` asks for an address.
    ///
    /// # Errors
    /// The listener's log-in is no longer valid, in one last event.
    pub fn turn(&mut self, ask: impl Fn(&str, Query) -> Result<Answer, Refusal>) -> Result<String, String> {
        let mut events = String::new();
        for (at, watch) in self.watches.iter_mut().enumerate() {
            if watch.over {
                continue;
            }
            let (status, answer) = match ask(&watch.path, Query::parse(&watch.query)) {
                Err(Refusal::Credentials | Refusal::Anonymous) => return Err(event("expired", "{}")),
                Err(refusal) => {
                    let body = refusal.body().map(|body| body.to_string().into_bytes());
                    (refusal.status(), body)
                }
                Ok(answer) => answer,
            };
            let answer = answer.as_deref().unwrap_or(b"null");
            events.extend(watch.event(at, status, answer));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        events.push_str(&event("turn", &format!("{{\"at\":{}}}", now.as_millis())));
        Ok(events)
    }
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
                "/api/overview" => Ok((200, Some(json!({"ready": ready}).to_string().into_bytes()))),
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
        let large = |_: &str, _| Ok((200, Some(vec![b'x'; ANSWER_BYTES + 1])));
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
