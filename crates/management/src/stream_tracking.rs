//! What a stream keeps for its clients: the offsets that consumers have stored and the last numbers of publishers. The node
//! answers that leads the stream: others hear of these a moment later.

use crate::access::Right;
use crate::api_session::{ApiSession, CHANNEL};
use crate::call::Call;
use crate::others::{self, Question};
use crate::queues;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use broker::{Answer, NoStream, NodeId, Stream};
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

/// A stream, if this node can answer for it, or the name of a node that can.
type Found = Result<Stream, String>;

/// The stream of the path, if this node has a copy of it, or the name of a node that has one. The asker must have the permission
/// to read it, as a client that does.
///
/// # Errors
/// There is no such queue, it is no stream or its files cannot be read, or the asker may not read it.
pub fn any_copy(call: &Call<'_>, session: &ApiSession) -> Result<Found, Refusal> {
    let name = &queues::find(call)?.name;
    let here = session.inner().stream_to_read(name, CHANNEL);
    here_or_on(call, here, || {
        let places = session.inner().stream_places(name).ok()?;
        let all = places.leader.into_iter().chain(places.replicas);
        let mut others = all.filter(|node| *node != call.api.broker.own_node()).peekable();
        let first = others.peek().copied();
        let running = others::running(call);
        let is_running = |node: &NodeId| running.iter().any(|name| name == call.view.node_name(*node));
        others.find(is_running).or(first)
    })
}

/// The stream of the path, if this node leads it, or the name of the node that does. The asker must have the permission to read
/// it, as a client that asks for an offset or stores one.
///
/// # Errors
/// As [`any_copy`], or nobody leads it.
fn led(call: &Call<'_>, session: &ApiSession) -> Result<Found, Refusal> {
    let name = &queues::find(call)?.name;
    let here = session.inner().stream_led_here(name, CHANNEL);
    here_or_on(call, here, || {
        let leader = session.inner().stream_places(name).ok()?.leader;
        leader.filter(|node| *node != call.api.broker.own_node())
    })
}

fn here_or_on(
    call: &Call<'_>,
    here: Result<Stream, NoStream>,
    on: impl FnOnce() -> Option<NodeId>,
) -> Result<Found, Refusal> {
    match here {
        Ok(stream) => Ok(Ok(stream)),
        Err(NoStream::Access) => Err(Refusal::not_authorised("Access refused.")),
        Err(NoStream::Unavailable) if !call.for_node => {
            let node = on().ok_or(NOT_AVAILABLE)?;
            Ok(Err(call.view.node_name(node).to_owned()))
        }
        Err(NoStream::Missing | NoStream::Unavailable) => Err(NOT_AVAILABLE),
    }
}

/// Has whoever leads the stream of the path answer, this node or another one.
///
/// # Errors
/// As [`led`], or that node says nothing.
fn of_stream(
    call: &Call<'_>,
    verb: &'static str,
    answer: impl FnOnce(&ApiSession, &Stream) -> Result<Reply, Refusal>,
) -> Result<Reply, Refusal> {
    queues::find(call)?;
    let session = ApiSession::open(call)?;
    match led(call, &session)? {
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
