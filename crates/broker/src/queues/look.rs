//! What a browser asks a queue: a look at its machine, for a moment, without a turn.

use super::Queue;
use super::local::{Actions, BoxedHost};
use crate::node::ends::Ends;
use model::{Ranges, Seq};
use queue::store::Bytes;
use queue::{Answer, Glimpse, Request, Standing};
use std::sync::Arc;

/// One span of a look.
#[derive(Debug)]
pub struct Spot {
    pub first: Seq,
    pub last: Seq,
    pub standing: Standing,
    pub redelivered: bool,
    pub returns: u32,
    /// Where the block is; `None` if it cannot be read here.
    pub bytes: Option<Bytes>,
    /// The number that the block's first message has, or would have.
    pub base: Seq,
}

/// What a look has found.
pub struct Looked {
    /// The messages, in the queue's order.
    pub spots: Vec<Spot>,
    /// Where the next look goes on; `None` at the end of the queue.
    pub next: Option<Seq>,
    /// How many messages were passed over.
    pub skipped: u64,
}

impl Queue {
    /// See [`queue::Inspect::look`].
    pub fn look_at(self: &Arc<Self>, from: Option<Seq>, skip: u64, count: u64) -> Looked {
        self.glance(|host| {
            let glance = host.inspect().look(from, skip, count);
            let spot = |span: Glimpse| Spot {
                first: span.first,
                last: span.last,
                standing: span.standing,
                redelivered: span.redelivered,
                returns: span.returns,
                bytes: span.bytes,
                base: span.base,
            };
            Looked {
                spots: glance.spans.into_iter().map(spot).collect(),
                next: glance.next,
                skipped: glance.skipped,
            }
        })
    }

    /// Lends the host for a moment. Whoever asked something of the queue meanwhile is served afterwards, as after a turn.
    fn glance<T>(self: &Arc<Self>, look: impl FnOnce(&BoxedHost) -> T) -> T {
        let host = self.lock();
        let found = look(&host);
        self.finish(host, Actions::default());
        found
    }

    /// Takes these out, as far as they are ready: see [`Request::TakeOut`].
    pub fn take_out(self: &Arc<Self>, seqs: Ranges) -> Ranges {
        let (question, reply) = self.question_of_nobody();
        match self.ask_now(question, Request::TakeOut { seqs, reply }) {
            Some(Answer::Taken(taken)) => taken,
            _ => Ranges::new(),
        }
    }

    /// Does with taken messages what is asked, before it returns: whoever looks next sees it.
    pub fn end_taking(self: &Arc<Self>, request: Request<Ends>) {
        let (question, _) = self.question_of_nobody();
        self.ask_now(question, request);
    }

    /// See [`queue::Inspect::back`].
    pub fn back(self: &Arc<Self>, before: Option<Seq>, count: u64) -> Option<Seq> {
        self.glance(|host| host.inspect().back(before, count))
    }

    /// See [`queue::Inspect::bounds`].
    pub fn bounds(self: &Arc<Self>) -> Option<(Seq, Seq)> {
        self.glance(|host| host.inspect().bounds())
    }
}
