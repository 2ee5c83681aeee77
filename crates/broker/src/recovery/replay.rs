//! What replay makes of the log: the machines, and what their journals miss.

use crate::groups::Found;
use crate::groups::handover::{Note, Whose};
use crate::node::journal::{Entry, entry};
use crate::node::replayed::Replayed;
use crate::queues::{JournalOf, Replaying};
use catalog::Catalog;
use model::{QueueId, QueueSettings};
use queue::seen::{Seen, SeenSettings};
use std::collections::{BTreeMap, BTreeSet};
use storage::{JournalId, Kind, Position};

/// Queues under replay, by their journals.
pub(super) type Queues = BTreeMap<JournalId, Box<dyn Replaying>>;

/// Everything that replay collects.
pub(super) struct Replay {
    pub catalog: Replayed<Catalog<u64>>,
    /// Whose the catalog is: this node's, or a group's.
    pub catalog_whose: Whose,
    /// What there is of groups, by their numbers.
    pub groups: BTreeMap<u64, Found>,
    pub queues: Queues,
    pub caches: BTreeMap<QueueId, Replayed<Seen>>,
    /// Journals of kinds that this version does not know.
    pub unknown: BTreeSet<JournalId>,
    pub unreadable: Option<(JournalId, Position)>,
    /// The node is a member of a cluster.
    opens_groups: bool,
}

impl Replay {
    pub(super) fn new(opens_groups: bool) -> Self {
        Self {
            opens_groups,
            catalog: Replayed::new(Catalog::new()),
            catalog_whose: Whose::default(),
            groups: BTreeMap::new(),
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
        if let Kind::GROUP | Kind::HARD_STATE | Kind::MEMBER = journal.kind {
            let found = self.groups.entry(journal.number).or_default();
            found.take(journal.kind, position, payload);
            return Some(());
        }
        let Some(of) = JournalOf::known(journal) else {
            self.unknown.insert(journal);
            return Some(());
        };
        match (entry(payload)?, of) {
            (Entry::Record(index, record), JournalOf::Catalog) => {
                self.catalog_whose.record();
                self.catalog.record(index, position, record)
            }
            (Entry::Note(note), JournalOf::Catalog) => {
                self.catalog_whose.note(Note::decode(note)?);
                // Of what was handed over to a group, nothing is left.
                self.catalog = Replayed::new(Catalog::new());
                Some(())
            }
            (Entry::Record(index, record), JournalOf::Cache(id)) => {
                let any = SeenSettings {
                    size: u64::MAX,
                    lifetime_ms: None,
                };
                let cache = self.caches.entry(id);
                let cache = cache.or_insert_with(|| Replayed::new(Seen::new(any)));
                cache.record(index, position, record)
            }
            (Entry::Local(_), JournalOf::Catalog) => None,
            (Entry::Local(_) | Entry::Note(_), JournalOf::Cache(_)) => None,
            (entry, JournalOf::Queue(made, _)) => {
                let queue = self.queues.entry(journal);
                let queue = queue.or_insert_with(|| made.replay(durable()));
                match entry {
                    Entry::Record(index, record) => queue.record(index, position, record),
                    Entry::Local(record) => queue.local(position, record),
                    Entry::Note(note) => {
                        queue.note(note)?;
                        // On a node alone no group is opened: what this one has would be missing.
                        (self.opens_groups || queue.whose().handed_over().is_none()).then_some(())
                    }
                }
            }
        }
    }
}

/// What a queue is taken for until its settings are known.
pub(super) fn durable() -> QueueSettings {
    QueueSettings {
        durable: true,
        ..QueueSettings::default()
    }
}
