//! What a browser asks a queue: a look at its machine, for a moment, without a turn.

use super::Queue;
use super::local::Actions;
use crate::node::ends::Ends;
use model::chunk::Tracking;
use model::{Ranges, Seq};
use queue::{Answer, Glance, Inspect, Request};
use std::sync::Arc;

impl Queue {
    /// See [`queue::Inspect::look`].
    pub fn look_at(self: &Arc<Self>, from: Option<Seq>, skip: u64, count: u64) -> Glance {
        self.glance(|machine| machine.look(from, skip, count))
            .unwrap_or_default()
    }

    /// Lends the machine for a moment, if there is one. Whoever asked something of the queue meanwhile is served afterwards, as
    /// after a turn.
    fn glance<T>(self: &Arc<Self>, look: impl FnOnce(&dyn Inspect) -> T) -> Option<T> {
        if let Some(replica) = self.replica() {
            return replica.look(look);
        }
        let host = self.lock();
        let found = look(host.inspect());
        self.finish(host, Actions::default());
        Some(found)
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
        self.glance(|machine| machine.back(before, count)).flatten()
    }

    /// See [`queue::Inspect::bounds`].
    pub fn bounds(self: &Arc<Self>) -> Option<(Seq, Seq)> {
        self.glance(|machine| machine.bounds()).flatten()
    }

    /// See [`queue::Inspect::tracking`].
    pub fn tracking(self: &Arc<Self>) -> Option<Tracking> {
        self.glance(|machine| machine.tracking()).flatten()
    }
}
