//! Kinds of queue: the one table that says which machine each has, and in which journals it is remembered.
//!
//! What clients may declare is the catalog's table of kinds. A kind more is a line there, a machine in the crate
//! `queue`, and a line here.

use super::host::QueueHost;
use super::replay::{ReplayedQueue, Replaying};
use super::streams::OfFiles;
use super::{QueueJournal, Unused};
use crate::node::Node;
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

    /// A queue that keeps its messages in files of its own, new or as they are; `None` if they are in a journal.
    fn open(
        &self,
        _known: &catalog::Queue,
        _settings: &QueueSettings,
        _node: &Arc<Node>,
    ) -> Option<Box<dyn QueueHost>> {
        None
    }

    /// What there is of a queue beside the member of its group, on a node that has a copy.
    fn beside_member(
        &self,
        known: &catalog::Queue,
        settings: &QueueSettings,
        node: &Arc<Node>,
    ) -> Box<dyn QueueHost>;

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

    fn beside_member(&self, known: &catalog::Queue, _: &QueueSettings, _: &Arc<Node>) -> Box<dyn QueueHost> {
        let made = queue_type(known.kind).unwrap_or(&CLASSIC);
        Box::new(Unused::new(made))
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
#[cfg(any(test, feature = "second-kind"))]
static NEWEST: Of<queue::newest::Newest<Ends>> = Of::in_journals(Kind(u8::MAX));

/// Kinds with machines that hold messages. Kinds that share a machine share its journals.
const KINDS: &[(QueueKind, &'static dyn QueueType)] = &[
    (QueueKind::Classic, &CLASSIC),
    // Of one node alone the majority is its disk; a queue that several have is turned by their group.
    (QueueKind::Quorum, &CLASSIC),
    (QueueKind::Stream, &OfFiles),
    (QueueKind::Delayed, &CLASSIC),
    (QueueKind::Deduplication, &CLASSIC),
    #[cfg(any(test, feature = "second-kind"))]
    (QueueKind::Newest, &NEWEST),
];

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

#[cfg(test)]
mod tests {
    use crate::{Broker, ChannelId, DeclareQueue, Options, Outbox, Session};
    use model::properties::{Properties, PropertiesBuilder};
    use model::table::Table;
    use model::{Message, RouteBuf};
    use queue::store::Bytes;
    use std::path::Path;
    use std::sync::Arc;

    const CHANNEL: ChannelId = ChannelId(1);

    fn open(dir: &Path) -> (Arc<Broker>, Arc<Session>) {
        let broker = Broker::open(Options::new(dir)).unwrap();
        let local = "127.0.0.1".parse().unwrap();
        let user = broker.authenticate("guest", b"guest", local).unwrap();
        let session = broker.connect(user, "/", Arc::new(Outbox::new())).unwrap();
        (broker, session)
    }

    fn publish(session: &Arc<Session>, body: &str) {
        let mut publisher = session.publisher(CHANNEL, 0);
        let properties = PropertiesBuilder::new().delivery_mode(2).encode();
        let (route, properties) = (RouteBuf::new(b"", b"q"), Properties::amqp091(&properties));
        let message = Message::new(route.as_route(), properties, body.as_bytes());
        publisher.publish(&message, None).unwrap();
        publisher.flush();
    }

    fn bodies(broker: &Broker) -> Vec<String> {
        let id = broker.view().queue("/", "q").unwrap().id;
        let queue = broker.queues().here(id).unwrap();
        let spans = queue.look_at(None, 0, 10).spans;
        let body = |span: queue::Glimpse| match span.bytes.unwrap() {
            Bytes::Memory(block) => String::from_utf8_lossy(block.message(0).body).into_owned(),
            Bytes::Source(_) => String::new(),
        };
        spans.into_iter().map(body).collect()
    }

    #[test]
    fn a_queue_of_a_second_kind_comes_back_from_its_journal_and_from_a_checkpoint() {
        let dir = tempfile::tempdir().unwrap();
        let (broker, session) = open(dir.path());
        let declared = DeclareQueue {
            name: "q".into(),
            durable: true,
            arguments: Table::new().with("x-queue-type", "newest"),
            ..DeclareQueue::default()
        };
        session.declare_queue(CHANNEL, declared).unwrap();
        publish(&session, "old");
        publish(&session, "new");
        session.close();
        broker.close();
        drop((session, broker));
        let (broker, session) = open(dir.path());
        assert_eq!(bodies(&broker), ["new"]);
        publish(&session, "newer");
        let id = broker.view().queue("/", "q").unwrap().id;
        let queue = broker.queues().here(id).unwrap();
        queue.checkpoint(queue.node().log.end());
        drop(queue);
        session.close();
        broker.close();
        drop((session, broker));
        let (broker, session) = open(dir.path());
        assert_eq!(bodies(&broker), ["newer"]);
        session.close();
        broker.close();
    }
}
