//! Looking through the messages of a queue without consuming them, from any place, with or without a filter; and one
//! message whole.
//!
//! An answer is one bounded piece of work. It says how far it came, and whoever asked goes on from there or stops: so they can
//! show how far they are and are never waited for.

use crate::access::Right;
use crate::api_session::ApiSession;
use crate::call::Call;
use crate::filter::{Filter, state};
use crate::messages::{described, told};
use crate::moment;
use crate::others::{self, Answer, Question};
use crate::queues;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use broker::{Browser, Seen, Start};
use model::{Limits, Seq, Timestamp};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

pub const ROUTES: &[Route] = &[Route {
    path: "/leveret/queues/:vhost/:name/messages/:position/body",
    verbs: &[("GET", Right::Vhost, body)],
}];

/// How many messages an answer shows unless told otherwise, and at the most.
const SHOWN: (u64, u64) = (50, 1000);
/// How many bytes of a body are shown unless told otherwise, and at the most.
const TRUNCATE: (usize, usize) = (50_000, 1024 * 1024);
/// How many bytes of bodies an answer shows at the most, and one message more.
pub const SHOWN_BYTES: usize = 8 * 1024 * 1024;
/// The same for an answer to another node.
pub const TOLD_BYTES: usize = 512 * 1024;
/// How many messages an answer looks through at the most.
const SCANNED: u64 = 100_000;
/// How many bytes of them, and one message more.
const SCANNED_BYTES: u64 = 64 * 1024 * 1024;
/// How long it looks.
const SCAN_TIME: Duration = Duration::from_millis(500);

/// How far a search may go before it answers, and how far it has come.
#[derive(Debug)]
pub struct Scan {
    /// Messages looked at.
    pub messages: u64,
    bytes: u64,
    most: u64,
    until: Instant,
}

impl Scan {
    /// At most so many messages, and at most so long.
    pub fn of(most: u64, time: Duration) -> Self {
        Self {
            messages: 0,
            bytes: 0,
            most: most.min(SCANNED),
            until: Instant::now() + time,
        }
    }

    /// Counts a message; false if the search has gone far enough without it. One message is always looked at, so that every
    /// answer goes on.
    pub fn take(&mut self, seen: &Seen<'_>) -> bool {
        let late = self.messages.is_multiple_of(16) && Instant::now() >= self.until;
        if self.messages > 0 && (self.messages >= self.most || self.bytes >= SCANNED_BYTES || late) {
            return false;
        }
        self.messages += 1;
        self.bytes += seen.message.body.len() as u64;
        true
    }

    /// The message that was counted last is looked at another time.
    pub fn leave(&mut self) {
        self.messages -= 1;
    }
}

/// A browser for the queue of the path, in the asker's name, or what the node answers that has its messages.
///
/// # Errors
/// The asker may not, there is no such queue, or that node says nothing.
fn open_or_ask(call: &Call<'_>, session: &ApiSession) -> Result<Result<Browser, Answer>, Refusal> {
    Ok(match open(call, session)? {
        Ok(browser) => Ok(browser),
        Err(node) => {
            let answer = others::ask_one(call, &node, Question::again(call));
            Err(answer.ok_or(Refusal::Unreachable(node))?)
        }
    })
}

/// A browser for the queue of the path, in the asker's name, or the name of the node that has its messages.
///
/// # Errors
/// The asker may not, or there is no such queue.
pub fn open(call: &Call<'_>, session: &ApiSession) -> Result<Result<Browser, String>, Refusal> {
    match session.inner().browse(call.part("name")) {
        Ok(browser) => Ok(Ok(browser)),
        Err(broker::Refusal::QueueElsewhere { node, .. }) if !call.for_node => Ok(Err(node)),
        Err(refusal) => Err(told(&refusal)),
    }
}

/// A message's number in an address or a body. It is text in JSON, whose numbers are not exact.
pub fn position(text: &str) -> Result<Seq, Refusal> {
    text.parse()
        .map_err(|_| Refusal::bad_request(format!("'{text}' is not the position of a message")))
}

fn number(call: &Call<'_>, name: &str) -> Result<Option<u64>, Refusal> {
    let parse = |text: &str| {
        text.parse()
            .map_err(|_| Refusal::BadRequest(json!(["not_integer", text])))
    };
    call.query.get(name).map(parse).transpose()
}

fn start(call: &Call<'_>, count: u64, now_ms: u64) -> Result<Start, Refusal> {
    if let Some(index) = number(call, "index")? {
        return Ok(Start::Index(index));
    }
    if let Some(time) = call.query.get("time") {
        let refusal = || Refusal::bad_request(format!("time: '{time}' is not a time"));
        return Ok(Start::Time(Timestamp(
            moment::parse(time, now_ms).ok_or_else(refusal)?,
        )));
    }
    if let Some(before) = call.query.get("before") {
        return Ok(Start::Before(Some(position(before)?), count));
    }
    Ok(match call.query.get("from") {
        None | Some("head") => Start::Head,
        Some("tail") => Start::Before(None, count),
        Some(text) => Start::At(position(text)?),
    })
}

/// A piece of the queue.
pub fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    queues::find(call).map_err(|_| Refusal::Missing("queue_not_found".into()))?;
    let count = number(call, "count")?.unwrap_or(SHOWN.0).clamp(1, SHOWN.1);
    let truncate = number(call, "truncate")?.map_or(TRUNCATE.0, |bytes| bytes as usize);
    // A node tells another one no more than goes into one answer, with all that JSON adds to it.
    let truncate = truncate.min(if call.for_node { TOLD_BYTES } else { TRUNCATE.1 });
    let session = ApiSession::open(call)?;
    let now_ms = session.inner().now_ms();
    let start = start(call, count, now_ms)?;
    let mut filter = Filter::of(call.query.pairs(), now_ms, false)?;
    if let Start::Time(time) = start {
        // A queue that sorts its messages begins at the head.
        filter.since(time);
    }
    let mut scan = Scan::of(number(call, "scan")?.unwrap_or(SCANNED), SCAN_TIME);
    let browser = match open_or_ask(call, &session)? {
        Ok(browser) => browser,
        Err(answer) => return Ok(answer.into()),
    };
    let most = if call.for_node { TOLD_BYTES } else { SHOWN_BYTES };
    let limits = &Limits::STORED;
    let end = match start {
        Start::Before(before, _) => before,
        _ => None,
    };
    let (mut shown, mut bytes) = (Vec::new(), 0);
    let base64 = call.query.get("encoding") == Some("base64");
    let browsed = browser.each(browser.place(start), |seen| {
        let full = shown.len() as u64 >= count || bytes >= most || end == Some(seen.seq);
        if full || !scan.take(seen) {
            return ControlFlow::Break(());
        }
        if filter.passes(seen, limits) {
            let row = row(seen, base64, truncate, limits);
            bytes += match call.for_node {
                true => row.to_string().len(),
                false => seen.message.body.len().min(truncate),
            };
            shown.push(row);
        }
        ControlFlow::Continue(())
    });
    let status = browser.status();
    Ok(Reply::json(&json!({
        "messages": shown,
        "next": browsed.next.map(|seq| seq.to_string()),
        "edition": browser.edition(),
        "scanned": scan.messages,
        "unreadable": browsed.unreadable,
        "messages_ready": status.ready,
        "messages_unacknowledged": status.unacked,
    })))
}

/// A message as answers show it.
pub fn row(seen: &Seen<'_>, base64: bool, truncate: usize, limits: &Limits) -> Value {
    let cut = boundary(seen.message.body, truncate);
    let mut row = described(&seen.message, base64, cut, limits);
    row.insert("position".into(), seen.seq.to_string().into());
    row.insert("state".into(), state(seen.standing).into());
    row.insert("redelivered".into(), seen.redelivered.into());
    row.insert("returns".into(), seen.returns.into());
    row.insert("received_at".into(), seen.received.0.into());
    row.insert("persistent".into(), seen.persistent.into());
    Value::Object(row)
}

/// Text is not cut within a character, because half of one is no text.
fn boundary(body: &[u8], at: usize) -> usize {
    let continues = |at: usize| body.get(at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
    (at.saturating_sub(3)..=at)
        .rev()
        .find(|at| !continues(*at))
        .unwrap_or(at)
}

/// The body of one message as it is, to be stored in a file.
fn body(call: &Call<'_>) -> Result<Reply, Refusal> {
    queues::find(call).map_err(|_| Refusal::Missing("queue_not_found".into()))?;
    let wanted = position(call.part("position"))?;
    let session = ApiSession::open(call)?;
    let name = format!("message-{wanted}.bin");
    let browser = match open_or_ask(call, &session)? {
        Ok(browser) => browser,
        Err(answer) if answer.status == 200 => return Ok(Reply::octets(answer.body.to_vec(), name)),
        Err(answer) => return Ok(answer.into()),
    };
    if call
        .query
        .get("edition")
        .is_some_and(|edition| edition != browser.edition())
    {
        return Err(Refusal::Gone("the message is no longer there".into()));
    }
    let mut found = None;
    browser.each(Some(wanted), |seen| {
        found = (seen.seq == wanted).then(|| seen.message.body.to_vec());
        ControlFlow::Break(())
    });
    match found {
        Some(bytes) if call.for_node && bytes.len() > others::LONGEST => Err(Refusal::bad_request(format!(
            "the message has {} bytes, which is more than nodes tell each other: ask node '{}'",
            bytes.len(),
            call.api.options.node
        ))),
        Some(bytes) => Ok(Reply::octets(bytes, name)),
        None => Err(Refusal::Gone("the message is no longer there".into())),
    }
}
