//! What replay makes of the log: the machines, and what their journals miss.

use crate::node::ends::Ends;
use crate::node::journal::{Entry, JournalOf, LocalJournal, NodeLog, entry};
use catalog::Catalog;
use model::{Index, Machine, Outcome, QueueId};
use queue::fifo::{Classic, LocalRecord, QueueSettings, Record};
use queue::seen::{Seen, SeenSettings};
use queue::store::LogPlace;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use storage::{JournalId, Position};

/// A machine under replay.
pub(super) struct Replayed<M> {
    pub machine: M,
    next: Index,
    /// The number and the position of the first record.
    first: Option<(Index, Position)>,
    /// How many records are missing between those that were found.
    pub missing: u64,
    /// How many messages those may have brought, at most.
    pub missing_messages: u64,
    /// Records are missing before the next ones that bring messages.
    behind_gap: bool,
}

impl<M> Replayed<M> {
    pub(super) fn new(machine: M) -> Self {
        Self {
            machine,
            next: 1,
            first: None,
            missing: 0,
            missing_messages: 0,
            behind_gap: false,
        }
    }

    /// The record of this number comes next.
    fn arrives(&mut self, index: Index) {
        // What lies before the first one was released, or the first one is the journal's very first.
        if self.first.is_some() && index > self.next {
            self.missing += index - self.next;
            self.behind_gap = true;
        }
    }

    fn note(&mut self, index: Index, position: Position) {
        self.next = index + 1;
        self.first.get_or_insert((index, position));
    }

    /// Where the first record lies, and its number; a checkpoint counts as the first that it does not contain.
    pub(super) fn first(&self) -> Option<(Index, Position)> {
        self.first
    }

    pub(super) fn host<J>(
        self,
        log: &Arc<NodeLog>,
        id: JournalId,
        journal: impl FnOnce(LocalJournal) -> J,
    ) -> (M, J) {
        (
            self.machine,
            journal(LocalJournal::new(log.clone(), id, self.next)),
        )
    }
}

impl Replayed<Classic<Ends>> {
    /// Nothing is ordered before the replay is over.
    fn apply(&mut self, index: Index, position: Position, record: Record) {
        let first = match &record {
            Record::Enqueued { first, .. } => Some(*first),
            _ => None,
        };
        self.machine.apply(index, record, &mut Outcome::default());
        if let Some(first) = first {
            self.machine.appended(first, LogPlace(position.0));
        }
    }

    /// Messages have numbers without gaps, apart from those that need no record.
    fn count_missing_messages(&mut self, record: &Record) {
        if let Record::Enqueued { first, .. } = record
            && std::mem::take(&mut self.behind_gap)
        {
            self.missing_messages += first.saturating_sub(self.machine.status().next_seq);
        }
    }
}

/// Everything that replay collects.
pub(super) struct Replay {
    pub catalog: Replayed<Catalog<u64>>,
    pub queues: BTreeMap<QueueId, Replayed<Classic<Ends>>>,
    pub caches: BTreeMap<QueueId, Replayed<Seen>>,
    /// Journals of kinds that this version does not know.
    pub unknown: BTreeSet<JournalId>,
    pub unreadable: Option<(JournalId, Position)>,
}

impl Replay {
    pub(super) fn new() -> Self {
        Self {
            catalog: Replayed::new(Catalog::new()),
            queues: BTreeMap::new(),
            caches: BTreeMap::new(),
            unknown: BTreeSet::new(),
            unreadable: None,
        }
    }

    pub(super) fn take(&mut self, journal: JournalId, position: Position, payload: &[u8]) {
        if self.record(journal, position, payload).is_none() && self.unreadable.is_none() {
            self.unreadable = Some((journal, position));
        }
    }

    fn record(&mut self, journal: JournalId, position: Position, payload: &[u8]) -> Option<()> {
        let Some(of) = JournalOf::known(journal) else {
            self.unknown.insert(journal);
            return Some(());
        };
        let (index, record) = match (entry(payload)?, of) {
            (Entry::Record(index, record), _) => (index, record),
            (Entry::Local(record), JournalOf::Queue(id)) => return self.local(id, position, record),
            (Entry::Local(_), _) => return None,
        };
        match of {
            JournalOf::Catalog => {
                let record = catalog::Record::decode(record)?;
                self.catalog.arrives(index);
                self.catalog.machine.apply(index, record, &mut Outcome::default());
                self.catalog.note(index, position);
            }
            JournalOf::Cache(id) => {
                let any = SeenSettings {
                    size: u64::MAX,
                    lifetime_ms: None,
                };
                let cache = self.caches.entry(id);
                let cache = cache.or_insert_with(|| Replayed::new(Seen::new(any)));
                let record = queue::seen::Record::decode(record)?;
                cache.machine.apply(index, record, &mut Outcome::default());
                cache.note(index, position);
            }
            JournalOf::Queue(id) => {
                let queue = self.queue(id);
                let record = Record::decode(record)?;
                queue.arrives(index);
                queue.count_missing_messages(&record);
                queue.apply(index, position, record);
                queue.note(index, position);
            }
        }
        Some(())
    }

    /// What this node remembered beside a queue's records.
    fn local(&mut self, id: QueueId, position: Position, record: &[u8]) -> Option<()> {
        let queue = self.queue(id);
        let record = LocalRecord::decode(record)?;
        if let LocalRecord::Checkpoint(checkpoint) = &record {
            queue.arrives(checkpoint.next);
            queue.next = checkpoint.next;
            queue.first.get_or_insert((checkpoint.next, position));
        }
        queue.machine.apply_local(record);
        Some(())
    }

    fn queue(&mut self, id: QueueId) -> &mut Replayed<Classic<Ends>> {
        self.queues.entry(id).or_insert_with(|| {
            let mut machine = Classic::new(durable());
            machine.replay();
            Replayed::new(machine)
        })
    }
}

fn durable() -> QueueSettings {
    QueueSettings {
        durable: true,
        ..QueueSettings::default()
    }
}
