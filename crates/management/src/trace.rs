//! `/api/leveret/trace/VHOST`: the firehose of a virtual host, on, off, and looked at as it passes.
//!
//! Whoever reads messages of others is an administrator. What is looked at is a copy that a queue of its own takes for
//! as long as the answer goes on; nothing is kept afterwards.

use crate::access::Right;
use crate::call::Call;
use crate::others::{self, Question};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::telling::{Telling, TraceFilter};
use crate::text::encode;

/// How many may look at a time, over all virtual hosts: each has a queue in memory.
pub const LISTENERS: usize = 8;
/// The longest of the texts that are asked for, in bytes: that of a routing key.
const TEXT_BYTES: usize = 255;
/// How many bytes of a body are told: without a word about it, and at most.
const TRUNCATE: (usize, usize) = (1_000, 50_000);

pub const ROUTES: &[Route] = &[Route {
    path: "/leveret/trace/:vhost",
    verbs: &[
        ("GET", Right::Administrator, look),
        ("PUT", Right::Administrator, begin),
        ("DELETE", Right::Administrator, end),
    ],
}];

fn look(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhost = call.vhost()?.name.to_string();
    let text = |name: &str, otherwise: &str| {
        let text = call
            .query
            .get(name)
            .filter(|text| !text.is_empty())
            .unwrap_or(otherwise);
        match text.len() > TEXT_BYTES {
            true => Err(Refusal::bad_request(format!(
                "{name} is longer than {TEXT_BYTES} bytes"
            ))),
            false => Ok(text.to_owned()),
        }
    };
    let truncate = match call.query.get("truncate") {
        None => TRUNCATE.0,
        Some(bytes) => bytes
            .parse()
            .ok()
            .filter(|bytes| *bytes <= TRUNCATE.1)
            .ok_or_else(|| Refusal::bad_request(format!("truncate is a number from 0 to {}", TRUNCATE.1)))?,
    };
    let wanted = TraceFilter {
        vhost,
        key: text("key", "#")?,
        user: text("user", "")?,
        connection: text("connection", "")?,
        truncate,
    };
    Ok(Reply {
        events: Some(Telling::Trace(wanted)),
        ..Reply::empty(200)
    })
}

fn begin(call: &Call<'_>) -> Result<Reply, Refusal> {
    set(call, true)
}

fn end(call: &Call<'_>) -> Result<Reply, Refusal> {
    set(call, false)
}

fn set(call: &Call<'_>, on: bool) -> Result<Reply, Refusal> {
    trace(call, &call.vhost()?.name, on)?;
    Ok(Reply::empty(204))
}

/// Begins or ends tracing a virtual host on all nodes that run: its messages pass through any of them.
///
/// # Errors
/// There is no such virtual host; or a node says nothing, which may have done it.
pub fn trace(call: &Call<'_>, vhost: &str, on: bool) -> Result<(), Refusal> {
    call.api.broker.trace(vhost, on)?;
    let question = Question {
        verb: if on { "PUT" } else { "DELETE" },
        ..Question::get(format!("/api/leveret/trace/{}", encode(vhost.as_bytes())))
    };
    let nodes = others::running(call);
    let questions = nodes.iter().map(|node| (node.clone(), question.clone()));
    let answers = others::ask(call, questions.collect());
    let mut silent = nodes
        .into_iter()
        .zip(answers)
        .filter(|(_, answer)| answer.is_none());
    match silent.next() {
        Some((node, _)) => Err(Refusal::Unreachable(node)),
        None => Ok(()),
    }
}
