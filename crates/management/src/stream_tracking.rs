//! What a stream keeps for its clients: the offsets that consumers have stored and the last numbers of publishers. The stream's
//! node answers.

use crate::access::Right;
use crate::api_session::{ApiSession, CHANNEL};
use crate::call::Call;
use crate::others::{self, Question};
use crate::queues;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use broker::{Answer, NoStream, Stream};
use serde_json::{Map, Value};

pub const ROUTES: &[Route] = &[
    Route {
        path: "/stream/:vhost/:name/tracking",
        verbs: &[("GET", Right::Vhost, tracking)],
    },
    Route {
        path: "/leveret/streams/:vhost/:name/offsets/:reference",
        verbs: &[("DELETE", Right::Vhost, reset_offset)],
    },
];

/// RabbitMQ's words, also for queues of other kinds.
pub const NOT_AVAILABLE: Refusal = Refusal::Unavailable("The stream leader is not available");

/// The stream of the path, if it is on this node, or the name of the node that it is on. The asker must have the permission to
/// read it, as a client that asks for an offset or stores one.
///
/// # Errors
/// There is no such queue, it is no stream or its files cannot be read, or the asker may not read it.
pub fn stream_of(call: &Call<'_>, session: &ApiSession) -> Result<Result<Stream, String>, Refusal> {
    let queue = queues::find(call)?;
    match session.inner().stream_to_read(&queue.name, CHANNEL) {
        Ok(stream) => Ok(Ok(stream)),
        Err(NoStream::Access) => Err(Refusal::not_authorised("Access refused.")),
        Err(NoStream::Unavailable) if !call.for_node && !session.inner().is_this_node(queue.home) => {
            Ok(Err(call.view.node_name(queue.home).to_owned()))
        }
        Err(NoStream::Missing | NoStream::Unavailable) => Err(NOT_AVAILABLE),
    }
}

/// Has the stream of the path answer, on this node or another one.
///
/// # Errors
/// As [`stream_of`], or its node says nothing.
fn of_stream(
    call: &Call<'_>,
    verb: &'static str,
    answer: impl FnOnce(&ApiSession, &Stream) -> Result<Reply, Refusal>,
) -> Result<Reply, Refusal> {
    queues::find(call)?;
    let session = ApiSession::open(call)?;
    match stream_of(call, &session)? {
        Ok(stream) => answer(&session, &stream),
        Err(node) => {
            let question = Question {
                verb,
                ..Question::again(call)
            };
            let told = others::ask_one(call, &node, question);
            told.map(Reply::from).ok_or(Refusal::Unreachable(node))
        }
    }
}

fn tracking(call: &Call<'_>) -> Result<Reply, Refusal> {
    let kind = call.query.get("type");
    of_stream(call, "GET", |_, stream| {
        let tracking = stream.tracking();
        let mut shown = Map::new();
        if kind != Some("writer") {
            shown.insert("offsets".into(), numbers(tracking.offsets));
        }
        if kind != Some("offset") {
            shown.insert("writers".into(), numbers(tracking.sequences));
        }
        Ok(Reply::json(&Value::Object(shown)))
    })
}

/// By reference.
fn numbers(tracked: Vec<(Vec<u8>, u64)>) -> Value {
    let all = tracked.into_iter();
    let all =
        all.map(|(reference, number)| (String::from_utf8_lossy(&reference).into_owned(), number.into()));
    Value::Object(all.collect())
}

/// As RabbitMQ's `reset_offset`: 0 is stored, if anything is.
fn reset_offset(call: &Call<'_>) -> Result<Reply, Refusal> {
    let reference = call.part("reference").as_bytes();
    of_stream(call, "DELETE", |session, stream| {
        match session.answer(stream.offset(reference))? {
            Some(Answer::Number(Some(_))) => {}
            Some(Answer::Number(None)) => return Err(Refusal::Missing("offset_not_found".into())),
            _ => return Err(NOT_AVAILABLE),
        }
        stream.store_offset(reference, 0);
        // This answer comes when what was stored is safe.
        match session.answer(stream.offset(reference))? {
            Some(Answer::Number(_)) => {
                tracing::info!(
                    area = "management",
                    "user '{}' resets the offset '{}' of stream '{}' in vhost '{}'",
                    call.user.name,
                    call.part("reference"),
                    call.part("name"),
                    call.part("vhost")
                );
                Ok(Reply::empty(204))
            }
            _ => Err(NOT_AVAILABLE),
        }
    })
}
