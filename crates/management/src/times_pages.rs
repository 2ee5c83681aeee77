//! `/api/leveret/times`: percentiles of how long messages took, over the last ten minutes.

use crate::access::Right;
use crate::call::Call;
use crate::history::Slot;
use crate::queues;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::Route;
use crate::times::{LATEST, NODE_TIMES, QUEUE_TIMES, Times, moment_ms};
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
    let samples = call.hall.sampler.samples();
    Ok(reply(samples.times.node.shown(&NODE_TIMES), samples.now))
}

fn queue(call: &Call<'_>) -> Result<Reply, Refusal> {
    let queue = queues::find(call)?;
    let samples = call.hall.sampler.samples();
    let timed = samples.times.queues.get(&queue.id);
    let shown = timed.map_or_else(
        || Times::new(0).shown(&QUEUE_TIMES),
        |timed| timed.times.shown(&QUEUE_TIMES),
    );
    Ok(reply(shown, samples.now))
}

/// The samples, with the moment of the latest look: who shows a value as the present one can tell whether it is.
fn reply(mut shown: Map<String, Value>, now: Slot) -> Reply {
    shown.insert("now".into(), moment_ms(now).into());
    shown.insert("window_ms".into(), moment_ms(LATEST).into());
    Reply::json(&shown.into())
}
