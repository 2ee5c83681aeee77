//! `/api/leveret/times`: percentiles of how long messages took, over the last ten minutes.

use crate::access::Right;
use crate::call::Call;
use crate::queues;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::Route;
use crate::times::{NODE_TIMES, QUEUE_TIMES, Times};
use broker::sight::Buckets;

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
    Ok(Reply::json(&samples.times.node.shown(&NODE_TIMES)))
}

fn queue(call: &Call<'_>) -> Result<Reply, Refusal> {
    let queue = queues::find(call)?;
    let samples = call.hall.sampler.samples();
    let none = || Times::after(0, <[Buckets; QUEUE_TIMES.len()]>::default()).shown(&QUEUE_TIMES);
    let times = samples.times.queues.get(&queue.id);
    Ok(Reply::json(
        &times.map_or_else(none, |times| times.shown(&QUEUE_TIMES)),
    ))
}
