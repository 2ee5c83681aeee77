//! A queue under replay, whatever its kind.

use super::QueueJournal;
use super::host::QueueHost;
use crate::groups::handover::{Note, Whose};
use crate::node::ends::Ends;
use crate::node::host::Host;
use crate::node::journal::NodeLog;
use crate::node::replayed::Replayed;
use model::{Index, Journaled, QueueSettings};
use queue::store::{LogPlace, Place};
use queue::{QueueMachine, Status};
use std::sync::Arc;
use storage::{JournalId, Position};

/// A queue whose journal is being replayed.
pub trait Replaying {
    /// Takes over a record; `None` if the bytes are none.
    fn record(&mut self, index: Index, position: Position, bytes: &[u8]) -> Option<()>;

    /// Takes over what this node remembered beside the records; `None` if the bytes are nothing of the kind.
    fn local(&mut self, position: Position, bytes: &[u8]) -> Option<()>;

    /// Takes over what the journal says of itself; `None` if the bytes are nothing of the kind. Of what was handed over to
    /// a group, nothing is left.
    fn note(&mut self, bytes: &[u8]) -> Option<()>;

    /// Whose the queue is.
    fn whose(&self) -> Whose;

    /// Whose name the segments bear, if not the queue's.
    fn segments(&self) -> Option<JournalId> {
        self.whose().begun().map(|begun| begun.segments)
    }

    /// Where the first record lies, and its number; a checkpoint counts as the first that it does not contain.
    fn first(&self) -> Option<(Index, Position)>;

    /// What its journal lacks.
    fn missing(&self) -> Missing;

    /// Its numbers.
    fn status(&self) -> Status;

    /// All places in its segments that hold messages.
    fn places(&self) -> Vec<Place>;

    /// Everything was replayed that a group has handed over just now: the queue decides from now on, and asks what consumers
    /// hold.
    fn taken_over(self: Box<Self>, log: &Arc<NodeLog>, id: JournalId) -> Box<dyn QueueHost>;

    /// Everything was replayed: the queue decides from now on. `closed` if the log was closed in good order.
    fn recovered(self: Box<Self>, closed: bool, log: &Arc<NodeLog>, id: JournalId) -> Box<dyn QueueHost>;
}

/// What the journal of a queue lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Records between others.
    pub records: u64,
    /// How many messages those may have brought, at most.
    pub messages: u64,
}

/// A machine under replay.
pub(super) struct ReplayedQueue<M> {
    replayed: Replayed<M>,
    missing_messages: u64,
    /// Records are missing before the next ones that bring messages.
    behind_gap: bool,
    settings: QueueSettings,
    whose: Whose,
}

impl<M: QueueMachine<Ends>> ReplayedQueue<M> {
    pub(super) fn new(settings: QueueSettings) -> Self {
        let mut machine = M::new(settings.clone());
        machine.replay();
        Self {
            replayed: Replayed::new(machine),
            missing_messages: 0,
            behind_gap: false,
            settings,
            whose: Whose::default(),
        }
    }

    fn into_host(self, log: &Arc<NodeLog>, id: JournalId, end: impl FnOnce(&mut M)) -> Host<M, QueueJournal> {
        let begun = self.whose.begun();
        let (mut machine, journal) = self.replayed.into_parts(log, id);
        end(&mut machine);
        let journal = match begun {
            Some(begun) => journal.continuing(begun.segments, Note::Begun(begun).encode()),
            None => journal,
        };
        Host::new(machine, QueueJournal::Local(journal))
    }
}

impl<M: QueueMachine<Ends> + Send + 'static> Replaying for ReplayedQueue<M>
where
    M::Record: Send,
{
    fn record(&mut self, index: Index, position: Position, bytes: &[u8]) -> Option<()> {
        self.whose.record();
        let record = M::Record::decode(bytes)?;
        let first = M::brings(&record).map(|(first, _)| first);
        self.behind_gap |= self.replayed.gap(index) > 0;
        // Messages have numbers without gaps, apart from those that need no record.
        if let Some(first) = first
            && std::mem::take(&mut self.behind_gap)
        {
            self.missing_messages += first.saturating_sub(self.status().next_seq);
        }
        self.replayed.apply(index, position, record);
        if let Some(first) = first {
            self.replayed.machine.appended(first, LogPlace(position.0));
        }
        Some(())
    }

    fn local(&mut self, position: Position, bytes: &[u8]) -> Option<()> {
        self.whose.record();
        let record = M::Local::decode(bytes)?;
        if let Some(next) = self.replayed.machine.apply_local(record) {
            self.behind_gap |= self.replayed.gap(next) > 0;
            self.replayed.restated(next, position);
        }
        Some(())
    }

    fn note(&mut self, bytes: &[u8]) -> Option<()> {
        let note = Note::decode(bytes)?;
        let mut whose = self.whose;
        whose.note(note);
        if let Note::HandedOver(_) = note {
            *self = Self::new(self.settings.clone());
        }
        self.whose = whose;
        Some(())
    }

    fn whose(&self) -> Whose {
        self.whose
    }

    fn first(&self) -> Option<(Index, Position)> {
        self.replayed.first()
    }

    fn missing(&self) -> Missing {
        Missing {
            records: self.replayed.missing(),
            messages: self.missing_messages,
        }
    }

    fn status(&self) -> Status {
        self.replayed.machine.status()
    }

    fn places(&self) -> Vec<Place> {
        self.replayed.machine.places()
    }

    fn recovered(self: Box<Self>, closed: bool, log: &Arc<NodeLog>, id: JournalId) -> Box<dyn QueueHost> {
        Box::new(self.into_host(log, id, |machine| machine.recovered(closed)))
    }

    fn taken_over(self: Box<Self>, log: &Arc<NodeLog>, id: JournalId) -> Box<dyn QueueHost> {
        Box::new(self.into_host(log, id, M::taken_over))
    }
}
