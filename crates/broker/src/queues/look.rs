//! What a browser asks a queue: a look at its machine, for a moment, without a turn.

use super::Queue;
use super::local::{Actions, BoxedHost};
use crate::node::ends::Ends;
use model::{Ranges, Seq};
use queue::{Answer, Glance, Request};
use std::sync::Arc;

impl Queue {
    /// See [`queue::Inspect::look`].
    pub fn look_at(self: &Arc<Self>, from: Option<Seq>, skip: u64, count: u64) -> Glance {
        self.glance(|host| host.inspect().look(from, skip, count))
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
