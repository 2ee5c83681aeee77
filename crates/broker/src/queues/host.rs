//! What a queue needs of its host, whatever the kind of its machine: chosen once for a queue, and called for batches of messages.

use super::streams::StreamLog;
use super::{Queue, QueueJournal};
use crate::node::ends::Ends;
use crate::node::host::Host;
use model::{Journaled, Timestamp};
use queue::{Effect, HandOver, Inspect, OwnConsumer, QueueMachine, Request, Status};
use std::sync::Arc;
use storage::JournalId;

/// The host of a queue's machine.
pub trait QueueHost: Send {
    /// See [`Host::handle`].
    fn handle(&mut self, now: Timestamp, request: Request<Ends>);

    /// See [`Host::commit`].
    fn commit(&mut self, act: &mut dyn FnMut(Effect<Ends>)) -> Turned;

    /// The numbers as they are.
    fn turned(&self) -> Turned;

    /// The machine between two turns.
    fn inspect(&self) -> &dyn Inspect;

    /// What it has for a group that takes over from its journal, in bytes.
    fn hand_over(&self) -> HandOver<Vec<u8>>;

    /// Whose name the segments bear that its bodies lie in, if not the queue's.
    fn segments(&self) -> Option<JournalId>;

    /// The consumers of this node's clients.
    fn own_consumers(&self) -> Vec<OwnConsumer<Ends>>;

    /// The host itself, if this is one around it that has given up what it was for.
    fn plain(self: Box<Self>) -> Box<dyn QueueHost>;

    /// What it waits for may come on other threads, and is to turn this queue.
    fn belongs_to(&self, _: &Arc<Queue>) {}

    /// A member of a group turns the queue from now on, and this is what is beside it.
    fn follows(&mut self) {}

    /// What it shares with its readers, if it is a stream whose files could be opened.
    fn stream_log(&self) -> Option<&Arc<StreamLog>> {
        None
    }

    /// It was handed over, for good: what waited for that goes on elsewhere.
    fn handed_over(&mut self) {}
}

/// How a machine is after a turn.
pub struct Turned {
    /// Its numbers.
    pub status: Status,
    /// The sum of what it lost since the start.
    pub lost: u64,
    /// When it wants to be turned, in milliseconds since the Unix epoch; `u64::MAX` for never.
    pub wakes_at_ms: u64,
}

impl<M: QueueMachine<Ends> + Send + 'static> QueueHost for Host<M, QueueJournal>
where
    M::Record: Send,
{
    fn plain(self: Box<Self>) -> Box<dyn QueueHost> {
        self
    }

    fn handle(&mut self, now: Timestamp, request: Request<Ends>) {
        Self::handle(self, now, request);
    }

    fn commit(&mut self, act: &mut dyn FnMut(Effect<Ends>)) -> Turned {
        Self::commit(self, |effect, _| act(effect));
        self.turned()
    }

    fn turned(&self) -> Turned {
        Turned {
            status: self.machine.status(),
            lost: self.machine.lost(),
            wakes_at_ms: self.machine.wakes_at_ms(),
        }
    }

    fn inspect(&self) -> &dyn Inspect {
        &self.machine
    }

    fn hand_over(&self) -> HandOver<Vec<u8>> {
        // The group's first entry stands for all that is in it.
        self.machine.hand_over(2).map(|contents| {
            let mut bytes = Vec::new();
            contents.encode(&mut bytes);
            bytes
        })
    }

    fn own_consumers(&self) -> Vec<OwnConsumer<Ends>> {
        self.machine.own_consumers()
    }

    fn segments(&self) -> Option<JournalId> {
        match &self.journal {
            QueueJournal::Local(journal) => Some(journal.segments()),
            QueueJournal::None => None,
        }
    }
}
