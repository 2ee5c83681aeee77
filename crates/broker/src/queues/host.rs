//! What a queue needs of its host, whatever the kind of its machine: chosen once for a queue, and called for batches of messages.

use super::QueueJournal;
use crate::node::ends::Ends;
use crate::node::host::Host;
use model::Timestamp;
use queue::{Effect, Inspect, QueueMachine, Request, Status};

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

impl<M: QueueMachine<Ends> + Send> QueueHost for Host<M, QueueJournal>
where
    M::Record: Send,
{
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
}
