//! Doing something with messages of a queue, wherever they stand: moving or copying them to an exchange, sending dead
//! ones back to where they came from, deleting them. What is moved leaves its queue only once its new queues have
//! confirmed it: after a crash in between, or another leader of a queue of several nodes, it is in both.

use crate::access::Right;
use crate::api_session::{ApiSession, CHANNEL};
use crate::arguments::text;
use crate::browsing::{self, Scan, row};
use crate::call::Call;
use crate::exchanges::real_name;
use crate::json;
use crate::messages::told;
use crate::moving_elsewhere::{self as elsewhere, Elsewhere};
use crate::queues;
use crate::refusal::{Refusal, need};
use crate::reply::Reply;
use crate::route::Route;
use crate::selection::Selection;
use broker::{Browser, Copies, RefusalKind, Seen, Unconfirmed};
use model::properties::{Properties, PropertiesBuf};
use model::{Limits, Message, Ranges, RouteBuf, Seq};
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::time::Duration;

pub const ROUTES: &[Route] = &[
    Route {
        path: "/leveret/queues/:vhost/:name/messages",
        verbs: &[("GET", Right::Vhost, browsing::list), ("POST", Right::Vhost, act)],
    },
    Route {
        path: "/leveret/queues/:vhost/:name/move",
        verbs: &[("POST", Right::Vhost, move_first)],
    },
];

/// How many messages one request is about at the most; whoever wants more asks again, and can stop in between.
const MESSAGES: u64 = 1000;
/// How many messages wait for their confirms at a time.
const BATCH: usize = 100;
/// How many bytes of them do, and one message more.
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// How long a request looks for messages.
const SCAN_TIME: Duration = Duration::from_secs(2);
/// The same for another node, which waits no longer than a second and asks on.
const TOLD_TIME: Duration = Duration::from_millis(300);
/// How many messages a dry run shows, and how many bytes of their bodies.
const SAMPLE: (usize, usize) = (10, 1000);

/// What becomes of the messages.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    Move(Target),
    Copy(Target),
    Delete,
}

/// Where messages go.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    /// An exchange and a routing key.
    Exchange(String, String),
    /// Where each one died first.
    Origin,
}

/// What is asked for.
struct MoveRequest {
    action: Action,
    count: u64,
    dry_run: bool,
    selection: Selection,
    /// Where what is meant ends.
    end: String,
    /// Where the asker may publish to, by the word of the node that has looked; `None` where this one looks.
    permitted: Option<HashSet<(String, String)>>,
}

fn flag(body: &Map<String, Value>, name: &str) -> Result<bool, Refusal> {
    match body.get(name) {
        None => Ok(false),
        Some(Value::Bool(value)) => Ok(*value),
        Some(other) => Err(Refusal::BadRequest(json!(["not_boolean", other]))),
    }
}

impl Target {
    fn of(body: &Map<String, Value>) -> Result<Self, Refusal> {
        if flag(body, "origin")? {
            return Ok(Self::Origin);
        }
        need(body, &["exchange", "routing_key"])?;
        let word = |name| Ok::<_, Refusal>(text(body, name)?.unwrap_or_default().to_owned());
        let (exchange, key) = (word("exchange")?, word("routing_key")?);
        match key.len() > 255 {
            true => Err(Refusal::bad_request("routing_key is longer than 255 bytes")),
            false => Ok(Self::Exchange(exchange, key)),
        }
    }
}

impl Action {
    fn of(body: &Map<String, Value>) -> Result<Self, Refusal> {
        match text(body, "action")?.unwrap_or_default() {
            "move" => Ok(Self::Move(Target::of(body)?)),
            "copy" => Ok(Self::Copy(Target::of(body)?)),
            "delete" => Ok(Self::Delete),
            other => Err(Refusal::bad_request(format!(
                "action is one of move, copy, delete, not '{other}'"
            ))),
        }
    }

    fn target(&self) -> Option<&Target> {
        match self {
            Self::Move(target) | Self::Copy(target) => Some(target),
            Self::Delete => None,
        }
    }

    /// What it is called in requests.
    fn word(&self) -> &'static str {
        match self {
            Self::Move(_) => "move",
            Self::Copy(_) => "copy",
            Self::Delete => "delete",
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Move(_) => "moved",
            Self::Copy(_) => "copied",
            Self::Delete => "deleted",
        }
    }
}

impl MoveRequest {
    fn of(body: &Map<String, Value>, action: Action, now_ms: u64) -> Result<Self, Refusal> {
        let count = match body.get("count") {
            None => MESSAGES,
            Some(count) => count
                .as_u64()
                .ok_or_else(|| Refusal::BadRequest(json!(["not_integer", count])))?,
        };
        let mut selection = Selection::of(body, now_ms)?;
        selection.only_ready();

        Ok(Self {
            action,
            count: count.min(MESSAGES),
            dry_run: flag(body, "dry_run")?,
            selection,
            end: String::new(),
            permitted: None,
        })
    }
}

/// What became of the messages of a request.
#[derive(Default)]
struct Outcome {
    /// Moved, copied or deleted; of a dry run, selected.
    done: u64,
    /// No queue took them, or one had no room.
    refused: u64,
    /// They never died.
    without_origin: u64,
    /// Somebody else got them first.
    missed: u64,
}

/// A message that was selected.
struct Picked {
    seq: Seq,
    properties: PropertiesBuf,
    body: Vec<u8>,
    /// Where it goes, unless it is deleted, or has no origin.
    target: Option<(String, String)>,
}

fn act(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    need(&body, &["action"])?;
    let action = Action::of(&body)?;
    run(call, &body, action)
}

/// The form that only moves and copies.
fn move_first(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    need(&body, &["count"])?;
    let target = Target::of(&body)?;
    let action = match flag(&body, "copy")? {
        true => Action::Copy(target),
        false => Action::Move(target),
    };
    run(call, &body, action)
}

fn run(call: &Call<'_>, body: &Map<String, Value>, action: Action) -> Result<Reply, Refusal> {
    queues::find(call).map_err(|_| Refusal::Missing("queue_not_found".into()))?;
    let session = ApiSession::open(call)?;
    let now_ms = session.inner().now_ms();
    let mut asked = MoveRequest::of(body, action, now_ms)?;
    let browser = match browsing::open(call, &session)? {
        Ok(browser) => browser,
        Err(node) => {
            let (count, word) = (asked.count, asked.action.word());
            return Elsewhere::new(call, &session, node, word).act(body, count, asked.dry_run);
        }
    };
    asked.selection.check(&browser)?;
    asked.end = asked.selection.end(&browser, now_ms);
    if call.for_node {
        asked.permitted = elsewhere::permitted(body)?;
    }
    let work = Work {
        asked: &asked,
        session: &session,
        browser: &browser,
        limits: &Limits::STORED,
        time: if call.for_node { TOLD_TIME } else { SCAN_TIME },
    };
    if call.for_node && elsewhere::asks_for_targets(body) {
        return Ok(work.targets());
    }
    if asked.dry_run {
        return Ok(work.rehearse());
    }
    let mut outcome = Outcome::default();
    let mut scan = Scan::of(u64::MAX, work.time);
    let ended = work.run(&mut outcome, &mut scan);
    tracing::info!(
        area = "management",
        user = &*call.user.name,
        vhost = call.part("vhost"),
        queue = call.part("name"),
        refused = outcome.refused,
        without_origin = outcome.without_origin,
        "messages {} by an operator: {}",
        asked.action.name(),
        outcome.done,
    );
    let next = ended?;
    let mut answer = work.reply(&outcome, &scan, next);
    if call.for_node {
        answer.insert(elsewhere::READY.into(), browser.status().ready.into());
    }
    Ok(Reply::json(&Value::Object(answer)))
}

/// A request under way.
struct Work<'a> {
    asked: &'a MoveRequest,
    session: &'a ApiSession,
    browser: &'a Browser,
    limits: &'a Limits,
    /// How long it looks for messages.
    time: Duration,
}

impl Work<'_> {
    /// Batch by batch; says where it goes on.
    fn run(&self, outcome: &mut Outcome, scan: &mut Scan) -> Result<Option<Seq>, Refusal> {
        let mut from = self.asked.selection.from;
        let mut seen = 0;
        loop {
            let (picked, next, full) = self.pick(from, self.asked.count - seen, scan);
            seen += picked.len() as u64;
            if picked.is_empty() {
                return Ok(next);
            }
            self.settle(&picked, outcome)?;
            if next.is_none() || !full || seen >= self.asked.count {
                return Ok(next);
            }
            from = next;
        }
    }

    /// The next messages of the selection, where those begin that come after them, and whether it was the batch that was full.
    fn pick(&self, from: Option<Seq>, most: u64, scan: &mut Scan) -> (Vec<Picked>, Option<Seq>, bool) {
        let (mut picked, mut bytes, mut full) = (Vec::new(), 0, false);
        let next = self
            .asked
            .selection
            .each(self.browser, from, scan, self.limits, &mut |seen| {
                full = picked.len() as u64 >= most || picked.len() >= BATCH || bytes >= BATCH_BYTES;
                if full {
                    return ControlFlow::Break(());
                }
                let next = self.picked(seen);
                full = !self.is_permitted(&next);
                if full {
                    return ControlFlow::Break(());
                }
                bytes += seen.message.body.len();
                picked.push(next);
                ControlFlow::Continue(())
            });
        (picked, next, full)
    }

    fn picked(&self, seen: &Seen<'_>) -> Picked {
        let target = match self.asked.action.target() {
            Some(Target::Exchange(exchange, key)) => Some((exchange.clone(), key.clone())),
            Some(Target::Origin) => origin(seen.message.properties, self.limits),
            None => None,
        };
        let mut picked = Picked {
            seq: seen.seq,
            properties: PropertiesBuf::default(),
            body: Vec::new(),
            target,
        };
        if picked.target.is_some() {
            picked.properties = seen.message.properties.into();
            picked.body = seen.message.body.to_vec();
        }
        picked
    }

    /// True unless another node has looked where the asker may publish to, and this goes elsewhere.
    fn is_permitted(&self, picked: &Picked) -> bool {
        let permitted = self.asked.permitted.as_ref();
        permitted.is_none_or(|permitted| self.routes(picked).iter().all(|route| permitted.contains(route)))
    }

    /// The exchange and the keys that a message is published with.
    fn routes(&self, picked: &Picked) -> Vec<(String, String)> {
        let Some((exchange, key)) = &picked.target else {
            return Vec::new();
        };
        let copies = Copies::named_in(picked.properties.as_properties(), self.limits);
        // What makes no sense is refused when it is published.
        let named = copies
            .ok()
            .flatten()
            .map(|copies| copies.keys)
            .unwrap_or_default();
        let named = named.iter().map(|key| String::from_utf8_lossy(key).into_owned());
        let keys = std::iter::once(key.clone()).chain(named);
        keys.map(|key| (exchange.clone(), key)).collect()
    }

    /// Where the next messages go: the node that asks looks whether the asker may publish there.
    fn targets(&self) -> Reply {
        let mut scan = Scan::of(u64::MAX, self.time);
        let (picked, ..) = self.pick(self.asked.selection.from, self.asked.count, &mut scan);
        let routes: BTreeSet<_> = picked.iter().flat_map(|it| self.routes(it)).collect();
        Reply::json(&json!(routes))
    }

    fn settle(&self, picked: &[Picked], outcome: &mut Outcome) -> Result<(), Refusal> {
        let seqs: Ranges = picked.iter().map(|it| it.seq).collect();
        if let Action::Copy(_) = self.asked.action {
            let all: Vec<&Picked> = picked.iter().collect();
            return self
                .publish(&all, outcome)
                .map(drop)
                .map_err(|(_, refusal)| refusal);
        }
        // Taken first: whatever ends this request puts them back.
        let wait = |question| self.session.answer(question).ok().flatten();
        let mut taken = self.browser.take(seqs.clone(), &wait);
        outcome.missed += seqs.count() - taken.seqs().count();
        if self.asked.action == Action::Delete {
            let all = taken.seqs().clone();
            match taken.remove(all.clone(), &wait) {
                true => outcome.done += all.count(),
                false => outcome.missed += all.count(),
            }
            return Ok(());
        }
        let here: Vec<&Picked> = picked.iter().filter(|it| taken.seqs().contains(it.seq)).collect();
        let (arrived, ended) = match self.publish(&here, outcome) {
            Ok(arrived) => (arrived, Ok(())),
            Err((arrived, refusal)) => (arrived, Err(refusal)),
        };
        if !taken.remove(arrived, &wait) {
            let (vhost, queue) = (self.session.inner().vhost(), self.browser.name());
            tracing::warn!(
                area = "management",
                "messages of queue '{queue}' in vhost '{vhost}' were moved, and may be in it as well: another node leads it by now, or \
                 none does"
            );
        }
        ended
    }
}

impl Work<'_> {
    /// Publishes messages and waits for their confirms. Returns which have arrived; also if one was refused for a reason that
    /// holds for all.
    fn publish(&self, messages: &[&Picked], outcome: &mut Outcome) -> Result<Ranges, (Ranges, Refusal)> {
        let session = self.session.inner();
        session
            .may_route(CHANNEL)
            .map_err(|refusal| (Ranges::default(), told(&refusal)))?;
        let mut publisher = session.publisher(CHANNEL, 1);
        let mut awaited = Unconfirmed::default();
        // By confirm number less one.
        let mut arrived: Vec<bool> = Vec::new();
        let mut ended = None;
        for message in messages {
            let Some((exchange, key)) = &message.target else {
                outcome.without_origin += 1;
                awaited.published(0);
                arrived.push(false);
                continue;
            };
            let route = RouteBuf::new(real_name(exchange).as_bytes(), key.as_bytes());
            let copy = Message::new(
                route.as_route(),
                message.properties.as_properties(),
                &message.body,
            );
            match publisher.publish(&copy, Some(awaited.next())) {
                Ok(taken) => {
                    outcome.refused += u64::from(taken.is_lost());
                    awaited.published(taken.queues);
                    arrived.push(taken.queues == 0 && !taken.is_lost());
                }
                Err(refusal) if self.is_for_all(refusal.kind()) => {
                    ended = Some(told(&refusal));
                    break;
                }
                // This one can't go where it is to go: another can.
                Err(_) => {
                    outcome.refused += 1;
                    awaited.published(0);
                    arrived.push(false);
                }
            }
        }
        publisher.flush();
        let waited = self.session.await_confirms(&mut awaited, |number, safe| {
            if let Some(arrived) = arrived.get_mut(number as usize - 1) {
                *arrived = safe;
            }
            outcome.refused += u64::from(!safe);
        });
        let arrived = messages.iter().zip(arrived).filter(|(_, arrived)| *arrived);
        let arrived: Ranges = arrived.map(|(message, _)| message.seq).collect();
        outcome.done += arrived.count();
        match ended.or(waited.err()) {
            Some(refusal) => Err((arrived, refusal)),
            None => Ok(arrived),
        }
    }

    /// True if no further message will fare better.
    fn is_for_all(&self, kind: RefusalKind) -> bool {
        let one_target = matches!(self.asked.action.target(), Some(Target::Exchange(..)));
        kind == RefusalKind::AccessRefused || (one_target && kind == RefusalKind::NotFound)
    }

    fn reply(&self, outcome: &Outcome, scan: &Scan, next: Option<Seq>) -> Map<String, Value> {
        let action = &self.asked.action;
        let status = self.browser.status();
        let mut answer = Map::new();
        answer.insert(elsewhere::done(action.word()).into(), outcome.done.into());
        answer.insert("refused".into(), outcome.refused.into());
        answer.insert("without_origin".into(), outcome.without_origin.into());
        answer.insert("missed".into(), outcome.missed.into());
        answer.insert("scanned".into(), scan.messages.into());
        answer.insert("next".into(), next.map(|seq| seq.to_string()).into());
        answer.insert("end".into(), self.asked.end.as_str().into());
        answer.insert("edition".into(), self.browser.edition().into());
        if self.asked.selection.is_head() {
            // Behind the last one that was looked at; those before it have stayed.
            let stayed = scan.messages.saturating_sub(match action {
                Action::Copy(_) => 0,
                _ => outcome.done,
            });
            answer.insert("left".into(), status.ready.saturating_sub(stayed).into());
        }
        answer
    }

    /// What would be done: how many messages, and some of them.
    fn rehearse(&self) -> Reply {
        let (mut selected, mut without_origin, mut sample) = (0, 0, Vec::new());
        let mut scan = Scan::of(u64::MAX, self.time);
        let selection = &self.asked.selection;
        let next = selection.each(
            self.browser,
            selection.from,
            &mut scan,
            self.limits,
            &mut |seen| {
                if selected == self.asked.count {
                    return ControlFlow::Break(());
                }
                selected += 1;
                if sample.len() < SAMPLE.0 {
                    sample.push(row(seen, false, SAMPLE.1, self.limits));
                }
                if self.asked.action.target() == Some(&Target::Origin) {
                    without_origin += u64::from(origin(seen.message.properties, self.limits).is_none());
                }
                ControlFlow::Continue(())
            },
        );
        Reply::json(&json!({
            "dry_run": true,
            "selected": selected,
            "without_origin": without_origin,
            "sample": sample,
            "scanned": scan.messages,
            "next": next.map(|seq| seq.to_string()),
            "end": self.asked.end,
            "edition": self.browser.edition(),
        }))
    }
}

/// Where a message died first: the exchange and the key by which it came into that queue.
fn origin(properties: Properties<'_>, limits: &Limits) -> Option<(String, String)> {
    let headers = properties.headers_table(limits).ok()?;
    let headers = json::table(&headers);
    // The oldest death is the last of the list.
    let death = headers.get("x-death")?.as_array()?.last()?;
    let key = death.get("routing-keys")?.get(0)?.as_str()?;
    Some((death.get("exchange")?.as_str()?.to_owned(), key.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<MoveRequest, Refusal> {
        let value: Value = serde_json::from_str(text).unwrap();
        let body = value.as_object().unwrap();
        MoveRequest::of(body, Action::of(body)?, 0)
    }

    #[test]
    fn an_action_needs_what_it_does_and_where_to() {
        let asked = read(r#"{"action": "move", "count": 5000, "origin": true, "dry_run": true}"#).unwrap();
        assert_eq!(
            (asked.action, asked.count, asked.dry_run),
            (Action::Move(Target::Origin), MESSAGES, true)
        );
        let asked = read(r#"{"action": "copy", "exchange": "e", "routing_key": ""}"#).unwrap();
        assert_eq!(
            asked.action,
            Action::Copy(Target::Exchange("e".into(), String::new()))
        );
        assert_eq!(read(r#"{"action": "delete", "count": 3}"#).unwrap().count, 3);
        for wrong in [
            r#"{}"#,
            r#"{"action": "zork"}"#,
            r#"{"action": "move"}"#,
            r#"{"action": "move", "exchange": "e"}"#,
            r#"{"action": "move", "origin": 1}"#,
            r#"{"action": "delete", "count": "x"}"#,
            r#"{"action": "delete", "dry_run": "yes"}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
