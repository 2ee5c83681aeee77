//! Getting messages: from a queue, and from a stream, whose messages are looked at from an offset or a time on and stay.
//!
//! RabbitMQ gets none from a stream, and neither does this without an `offset` in the body.

use crate::access::Right;
use crate::api_session::ApiSession;
use crate::browsing::{SHOWN_BYTES, TOLD_BYTES};
use crate::call::Call;
use crate::messages::{self, GetRequest, Mode, Shown};
use crate::moment;
use crate::others::{self, Question};
use crate::queues;
use crate::refusal::{Refusal, need};
use crate::reply::Reply;
use crate::route::Route;
use crate::stream_tracking::{NOT_AVAILABLE, any_copy};
use broker::{QueueKind, Stream, StreamArguments, StreamOffset};
use model::Limits;
use model::table::{Table, Value as Argument};
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

pub const ROUTES: &[Route] = &[Route {
    path: "/queues/:vhost/:name/get",
    verbs: &[("POST", Right::Vhost, get)],
}];

/// Says where in a stream to begin.
const OFFSET: &str = "offset";

/// So long a stream is looked at: what is compressed so that nothing can be read of it costs as much as what can.
const LOOKS_FOR: Duration = Duration::from_secs(5);

/// So long for another node, which has few threads for such questions and is not waited for much longer.
const LOOKS_FOR_NODE: Duration = Duration::from_millis(500);

/// A message that takes more bytes than this in an answer to another node is told without what makes it so large.
const ROW_BYTES: usize = 3 * 1024 * 1024;

fn get(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    match body.get(OFFSET) {
        None => messages::get(call),
        Some(offset) => browse(call, offset, &body),
    }
}

fn browse(call: &Call<'_>, offset: &Value, body: &Map<String, Value>) -> Result<Reply, Refusal> {
    let queue = queues::find(call).map_err(|_| Refusal::Missing("queue_not_found".into()))?;
    if queue.kind != QueueKind::Stream {
        return Err(Refusal::bad_request(
            "offset is for streams, and this is another queue",
        ));
    }
    if body.contains_key("ackmode") && GetRequest::of(body)?.mode != Mode::Keep {
        return Err(Refusal::bad_request(
            "a stream keeps its messages: ackmode is ack_requeue_true or reject_requeue_true, or left out",
        ));
    }
    need(body, &["count", "encoding"])?;
    let shown = Shown::of(body)?;
    let session = ApiSession::open(call)?;
    let from = start(offset, session.inner().now_ms())?;
    match any_copy(call, &session)? {
        Ok(stream) => Ok(Reply::json(&Value::Array(messages_of(
            call, &stream, from, &shown,
        )?))),
        Err(node) => elsewhere(call, node, body, shown.count),
    }
}

/// Where to begin: as `x-stream-offset` of a consumer has it, or a time as browsing takes it.
///
/// # Errors
/// It is neither.
fn start(offset: &Value, now_ms: u64) -> Result<StreamOffset, Refusal> {
    let refusal = || {
        Refusal::bad_request(format!(
            "offset: {offset} is no offset of a stream: a number, first, last, next, or a time"
        ))
    };
    let argument = match offset {
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Argument::Long(number),
            (None, Some(number)) => return Ok(StreamOffset::Offset(number)),
            (None, None) => return Err(refusal()),
        },
        // As text a number is exact, whatever language has written the JSON.
        Value::String(text) => match text.parse() {
            Ok(number) => return Ok(StreamOffset::Offset(number)),
            Err(_) => Argument::LongStr(text.clone().into_bytes()),
        },
        _ => return Err(refusal()),
    };
    let asked = StreamArguments::read(&Table::new().with("x-stream-offset", argument));
    let time = || offset.as_str().and_then(|text| moment::parse(text, now_ms));
    match asked {
        Ok(asked) => Ok(asked.offset),
        Err(_) => time().map(StreamOffset::Time).ok_or_else(refusal),
    }
}

/// Messages of this node's copy of a stream, as many as are wanted and may be told at once.
///
/// # Errors
/// The stream's files cannot be read.
fn messages_of(
    call: &Call<'_>,
    stream: &Stream,
    from: StreamOffset,
    shown: &Shown,
) -> Result<Vec<Value>, Refusal> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    if shown.count == 0 {
        return Ok(rows);
    }
    let next = stream
        .numbers()
        .committed
        .map_or(0, |last| last.saturating_add(1));
    // A node tells another one no more than goes into one answer, with all that JSON adds to it.
    let (most, truncate, within) = match call.for_node {
        true => (TOLD_BYTES, shown.truncate.min(TOLD_BYTES), LOOKS_FOR_NODE),
        false => (SHOWN_BYTES, shown.truncate, LOOKS_FOR),
    };
    let browsed = stream.browse(from, within, |message| {
        let mut row = messages::described(message, shown.base64, truncate, &Limits::STORED);
        let offset = offset_of(&row);
        let remaining = offset.map_or(0, |offset| next.saturating_sub(offset + 1));
        row.insert("redelivered".into(), false.into());
        row.insert("message_count".into(), remaining.into());
        let mut row = Value::Object(row);
        bytes += match call.for_node {
            true => told_bytes(&mut row, offset),
            false => message.body.len() + message.properties.to_amqp091().len(),
        };
        rows.push(row);
        match (rows.len() as u64) < shown.count && bytes < most {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    match browsed {
        Ok(true) => Ok(rows),
        Ok(false) => Err(Refusal::Unavailable(
            "nothing could be read of the stream in time from there on: the log says what cannot be read",
        )),
        Err(_) => Err(NOT_AVAILABLE),
    }
}

/// How many bytes a message takes that another node is told, at its offset. One that would not fit into an answer goes without
/// payload and headers: its size is there.
fn told_bytes(row: &mut Value, offset: Option<u64>) -> usize {
    let bytes = row.to_string().len();
    if bytes <= ROW_BYTES {
        return bytes;
    }
    row["payload"] = "".into();
    row["properties"] = json!({"headers": {"x-stream-offset": offset}});
    row.to_string().len()
}

/// The offset of a message that is shown.
fn offset_of(row: &Map<String, Value>) -> Option<u64> {
    row.get("properties")?
        .pointer("/headers/x-stream-offset")?
        .as_u64()
}

/// The same of a stream of another node, which is asked until it has told what is wanted: it tells a little at a time.
///
/// # Errors
/// It says nothing.
fn elsewhere(call: &Call<'_>, node: String, body: &Map<String, Value>, count: u64) -> Result<Reply, Refusal> {
    let (mut body, mut rows, mut bytes) = (body.clone(), Vec::new(), 0);
    let began = Instant::now();
    while (rows.len() as u64) < count && bytes < SHOWN_BYTES && began.elapsed() < LOOKS_FOR {
        body.insert("count".into(), json!(count - rows.len() as u64));
        let question = Question {
            verb: "POST",
            body: Value::Object(body.clone()),
            ..Question::again(call)
        };
        let Some(answer) = others::ask_one(call, &node, question) else {
            return Err(Refusal::Unreachable(node));
        };
        let Some(Value::Array(told)) = answer.found() else {
            return Ok(answer.into());
        };
        let last = told.last().and_then(Value::as_object);
        // What came since the first question is for the next look.
        let is_end = last.is_some_and(|last| last.get("message_count") == Some(&json!(0)));
        let last = last.and_then(offset_of).filter(|_| !is_end);
        bytes += answer.body.len();
        rows.extend(told);
        match last {
            Some(last) => body.insert(OFFSET.into(), json!(last + 1)),
            None => break,
        };
    }
    Ok(Reply::json(&Value::Array(rows)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_where_a_consumer_would_or_at_a_time() {
        let now_ms = 1_800_000_000_000;
        for (offset, meant) in [
            (json!("first"), StreamOffset::First),
            (json!("last"), StreamOffset::Last),
            (json!("next"), StreamOffset::Next),
            (json!(17), StreamOffset::Offset(17)),
            (json!("17"), StreamOffset::Offset(17)),
            (json!(-1), StreamOffset::Offset(0)),
            (json!(u64::MAX), StreamOffset::Offset(u64::MAX)),
            (json!("1h"), StreamOffset::Ago(3_600_000)),
            (json!("7d"), StreamOffset::Time(now_ms - 7 * 86_400_000)),
            (
                json!("2023-11-14T22:13:20Z"),
                StreamOffset::Time(1_700_000_000_000),
            ),
        ] {
            assert_eq!(start(&offset, now_ms), Ok(meant), "{offset}");
        }
        for offset in [
            json!("yesterday"),
            json!(""),
            json!(1.5),
            json!(null),
            json!(["first"]),
            json!(true),
        ] {
            assert!(
                matches!(start(&offset, now_ms), Err(Refusal::BadRequest(_))),
                "{offset}"
            );
        }
    }
}
