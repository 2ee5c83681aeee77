//! A queue of a node that has groups and nothing else: for tests.

use super::handover::taken_back;
use super::{DeadLetters, JournalOf, Queue, QueueEvents, QueueHost, QueueType, Replaying, queue_type};
use crate::groups::alone::Alone;
use crate::groups::handover::Contents;
use crate::node::Node;
use crate::node::journal::{Entry, entry};
use crate::node::pager::{segment_owner, stored_place};
use catalog::{Epoch, Lifetime, NodeId, QueueKind};
use model::table::Table;
use model::{QueueId, QueueSettings};
use std::sync::Arc;
use storage::{JournalId, StorageError};

fn settings() -> QueueSettings {
    QueueSettings {
        durable: true,
        ..QueueSettings::default()
    }
}

/// Its dead letters go nowhere.
struct Unheard;

impl QueueEvents for Unheard {
    fn dead_letters(&self, _: DeadLetters) {}

    fn unused(&self, _: QueueId, then: Box<dyn FnOnce() + Send>) {
        then();
    }
}

/// Queues of this kind, and the name of one's journal.
fn classic(id: QueueId) -> Option<(&'static dyn QueueType, JournalId)> {
    let made = queue_type(QueueKind::Classic)?;
    Some((made, JournalOf::Queue(made, id).id()))
}

/// What the log has of a durable queue; `None` if it can't be read.
pub fn replay(alone: &Alone, id: QueueId) -> Option<Box<dyn Replaying>> {
    let (made, journal) = classic(id)?;
    let mut replaying = made.replay(settings());
    for (_, position, payload) in alone.queues.iter().filter(|(of, ..)| *of == journal) {
        match entry(payload)? {
            Entry::Record(index, record) => replaying.record(index, *position, record)?,
            Entry::Local(record) => replaying.local(*position, record)?,
            Entry::Note(note) => replaying.note(note)?,
        }
    }
    Some(replaying)
}

/// A queue whose own journal goes on, at the node's start.
pub fn start(node: &Arc<Node>, id: QueueId, replaying: Box<dyn Replaying>) -> Option<Arc<Queue>> {
    let (made, journal) = classic(id)?;
    let segments = replaying.segments().unwrap_or(segment_owner(id));
    for place in replaying.places() {
        if !node.segments.adopt(segments, stored_place(place)) {
            tracing::error!(area = "storage", "{segments}: messages in {place:?} are missing");
        }
    }
    let clean = node.log.recovery().clean;
    Some(queue(
        node,
        id,
        made,
        replaying.recovered(clean, &node.log, journal),
    ))
}

/// A queue that a group has handed back just now.
///
/// # Errors
/// The contents can't be read.
pub fn take_back(
    node: &Arc<Node>,
    id: QueueId,
    contents: Contents,
) -> Result<Option<Arc<Queue>>, StorageError> {
    let Some((made, journal)) = classic(id) else {
        return Ok(None);
    };
    let host = taken_back(made, settings(), &node.log, journal, contents)?;
    Ok(Some(queue(node, id, made, host)))
}

fn queue(
    node: &Arc<Node>,
    id: QueueId,
    made: &'static dyn QueueType,
    host: Box<dyn QueueHost>,
) -> Arc<Queue> {
    let known = catalog::Queue {
        id,
        kind: QueueKind::Classic,
        vhost: "/".into(),
        name: "q".into(),
        lifetime: Lifetime::Durable,
        home: NodeId(1),
        founders: Arc::new([]),
        changed: Arc::new([]),
        epoch: Epoch::default(),
        other_arguments: None,
        auto_delete: false,
        arguments: Arc::new(Table::new()),
    };
    Queue::new(&known, made, host, node.clone(), Arc::new(Unheard))
}
