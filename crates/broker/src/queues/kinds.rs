//! Kinds of queue: the one table that says which machine each has, and in which journals it is remembered.
//!
//! What clients may declare is the catalog's table of kinds. A kind more is a line there, a machine in the crate `queue`, and a line here.

use super::QueueJournal;
use super::host::QueueHost;
use super::replay::{ReplayedQueue, Replaying};
use crate::node::ends::Ends;
use crate::node::host::Host;
use catalog::QueueKind;
use model::{Block, Journaled, QueueId, QueueSettings};
use queue::QueueMachine;
use queue::fifo::Classic;
use std::marker::PhantomData;
use std::sync::Arc;
use storage::{JournalId, Kind};

/// How the queues of a kind are made.
pub trait QueueType: Sync {
    /// The kind of its journals.
    fn journal(&self) -> Kind;

    /// A new queue.
    fn start(&self, settings: QueueSettings, journal: QueueJournal) -> Box<dyn QueueHost>;

    /// A queue whose journal is about to be replayed.
    fn replay(&self, settings: QueueSettings) -> Box<dyn Replaying>;

    /// The messages that a record brings.
    fn block(&self, record: &[u8]) -> Option<Arc<Block>>;
}

/// Queues with this machine.
struct Of<M> {
    journal: Kind,
    machine: PhantomData<fn() -> M>,
}

impl<M> Of<M> {
    const fn in_journals(journal: Kind) -> Self {
        let machine = PhantomData;
        Self { journal, machine }
    }
}

impl<M: QueueMachine<Ends> + Send + 'static> QueueType for Of<M>
where
    M::Record: Send,
{
    fn journal(&self) -> Kind {
        self.journal
    }

    fn start(&self, settings: QueueSettings, journal: QueueJournal) -> Box<dyn QueueHost> {
        Box::new(Host::new(M::new(settings), journal))
    }

    fn replay(&self, settings: QueueSettings) -> Box<dyn Replaying> {
        Box::new(ReplayedQueue::<M>::new(settings))
    }

    fn block(&self, record: &[u8]) -> Option<Arc<Block>> {
        let record = M::Record::decode(record)?;
        M::brings(&record).map(|(_, block)| block.clone())
    }
}

static CLASSIC: Of<Classic<Ends>> = Of::in_journals(Kind::QUEUE);

/// Kinds with machines that hold messages. Kinds that share a machine share its journals.
const KINDS: &[(QueueKind, &'static dyn QueueType)] =
    &[(QueueKind::Classic, &CLASSIC), (QueueKind::Delayed, &CLASSIC)];

/// How queues of this kind are made; `None` if this version cannot, or if nothing of the kind holds messages.
pub fn queue_type(kind: QueueKind) -> Option<&'static dyn QueueType> {
    let mut kinds = KINDS.iter();
    kinds.find(|(it, _)| *it == kind).map(|(_, made)| *made)
}

/// What a journal of this node's log is of. Journals have numbers of their own: nobody takes one for a queue's.
#[derive(Clone, Copy)]
pub enum JournalOf {
    /// What exists.
    Catalog,
    /// A queue.
    Queue(&'static dyn QueueType, QueueId),
    /// What a deduplication exchange remembers.
    Cache(QueueId),
}

impl JournalOf {
    /// What the journal is of; `None` if this version knows no such journals.
    pub fn known(journal: JournalId) -> Option<Self> {
        let id = QueueId(journal.number);
        match journal.kind {
            Kind::CATALOG if journal.number == 0 => Some(Self::Catalog),
            Kind::CACHE => Some(Self::Cache(id)),
            kind => {
                let mut kinds = KINDS.iter();
                let (_, made) = kinds.find(|(_, made)| made.journal() == kind)?;
                Some(Self::Queue(*made, id))
            }
        }
    }

    /// Its name in the log.
    pub fn id(self) -> JournalId {
        match self {
            Self::Catalog => JournalId::new(Kind::CATALOG, 0),
            Self::Queue(made, id) => JournalId::new(made.journal(), id.0),
            Self::Cache(id) => JournalId::new(Kind::CACHE, id.0),
        }
    }

    /// The journal of a queue that the catalog knows; `None` as for [`queue_type`].
    pub fn queue(known: &catalog::Queue) -> Option<Self> {
        queue_type(known.kind).map(|made| Self::Queue(made, known.id))
    }
}
