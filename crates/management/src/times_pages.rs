//! `/api/leveret/times`: percentiles of how long messages took, over the last ten minutes or as far back as `age` asks for.

use crate::access::Right;
use crate::call::Call;
use crate::history::Slot;
use crate::others;
use crate::queues;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::times::{LATEST, NODE_TIMES, QUEUE_TIMES, Times, moment_ms, step_ms};
use serde_json::{Map, Value};

pub const ROUTES: &[Route] = &[
    Route {
        path: "/leveret/times",
        verbs: &[("GET", Right::Monitor, node)],
    },
    Route {
        path: "/leveret/times/queues/:vhost/:name",
        verbs: &[("GET", Right::Vhost, queue)],
    },
];

fn node(call: &Call<'_>) -> Result<Reply, Refusal> {
    if let Some(told) = others::of_named_node(call)? {
        return Ok(told);
    }
    let samples = call.api.sampler.samples();
    let age_s = age_s(call)?;
    Ok(reply(
        samples.times.node.shown(&NODE_TIMES, age_s),
        samples.now,
        age_s,
    ))
}

fn queue(call: &Call<'_>) -> Result<Reply, Refusal> {
    let queue = queues::find(call)?;
    if let Some((_, answer)) = queues::from_its_node(call, queue) {
        return Ok(answer.into());
    }
    let samples = call.api.sampler.samples();
    let timed = samples.times.queues.get(&queue.id);
    let age_s = age_s(call)?;
    let shown = timed.map_or_else(
        || Times::new(0).shown(&QUEUE_TIMES, age_s),
        |timed| timed.times.shown(&QUEUE_TIMES, age_s),
    );
    Ok(reply(shown, samples.now, age_s))
}

/// How far back the request looks: ten minutes, unless it says otherwise.
fn age_s(call: &Call<'_>) -> Result<u64, Refusal> {
    match call.query.get("age") {
        None => Ok(600),
        Some(text) => text
            .parse()
            .map_err(|_| Refusal::bad_request("age is not a number of seconds")),
    }
}

/// The samples, with the moment of the latest look: who shows a value as the present one can tell whether it is.
fn reply(mut shown: Map<String, Value>, now: Slot, age_s: u64) -> Reply {
    shown.insert("now".into(), moment_ms(now).into());
    shown.insert("step_ms".into(), step_ms(age_s).into());
    shown.insert("window_ms".into(), moment_ms(LATEST).into());
    Reply::json(&shown.into())
}
