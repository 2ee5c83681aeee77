//! Start-up: one pass over the log rebuilds the catalog and every durable queue.

use crate::broker::CATALOG_JOURNAL;
use crate::caches::{self, CacheJournal, cache_of, journal_of};
use crate::ends::Ends;
use crate::host::Host;
use crate::journal::{LocalJournal, entry};
use crate::node::{LogEvents, Node};
use crate::options::{OpenError, Options};
use crate::pager::{Pager, Shelves, stored_place};
use crate::promise::Promise;
use crate::queues::{Queue, QueueJournal, Registry};
use crate::topology::{Topology, queue_settings};
use catalog::Catalog;
use model::{Index, Machine, QueueId};
use queue::fifo::{Classic, QueueSettings, Record, Request};
use queue::seen::{Seen, SeenSettings};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use storage::{
    DirectoryLock, Disk, FileSystem, JournalId, Log, LogOptions, Position, SegmentOptions, Segments,
    StorageError,
};

/// What recovery gives the broker.
pub struct Recovered {
    pub node: Arc<Node>,
    pub log_events: LogEvents,
    pub queues: Arc<Registry>,
    pub topology: Topology,
    /// Held as long as the broker is open.
    pub lock: DirectoryLock,
}

/// A machine under replay.
struct Replayed<M> {
    machine: M,
    next: Index,
    positions: VecDeque<(Index, Position)>,
}

impl<M> Replayed<M> {
    fn new(machine: M) -> Self {
        Self {
            machine,
            next: 1,
            positions: VecDeque::new(),
        }
    }

    fn note(&mut self, index: Index, position: Position) {
        self.next = index + 1;
        self.positions.push_back((index, position));
    }

    fn host<J>(
        self,
        log: &Arc<Log<Promise>>,
        id: JournalId,
        journal: impl FnOnce(LocalJournal) -> J,
    ) -> (M, J) {
        (
            self.machine,
            journal(LocalJournal::new(log.clone(), id, self.next, self.positions)),
        )
    }
}

/// Everything that replay collects.
struct Replay {
    catalog: Replayed<Catalog<u64>>,
    queues: BTreeMap<QueueId, Replayed<Classic<Ends>>>,
    caches: BTreeMap<QueueId, Replayed<Seen>>,
    unreadable: Option<(JournalId, Position)>,
}

impl Replay {
    fn take(&mut self, journal: JournalId, position: Position, payload: &[u8]) {
        if self.record(journal, position, payload).is_none() && self.unreadable.is_none() {
            self.unreadable = Some((journal, position));
        }
    }

    fn record(&mut self, journal: JournalId, position: Position, payload: &[u8]) -> Option<()> {
        let (index, record) = entry(payload)?;
        if journal == CATALOG_JOURNAL {
            self.catalog
                .machine
                .apply(index, catalog::Record::decode(record)?);
            self.catalog.note(index, position);
        } else if let Some(id) = cache_of(journal) {
            let any = SeenSettings {
                size: u64::MAX,
                lifetime_ms: None,
            };
            let cache = self.caches.entry(id);
            let cache = cache.or_insert_with(|| Replayed::new(Seen::new(any)));
            cache.machine.apply(index, queue::seen::Record::decode(record)?);
            cache.note(index, position);
        } else {
            let durable = QueueSettings {
                durable: true,
                ..QueueSettings::default()
            };
            let queue = self
                .queues
                .entry(QueueId(journal.0))
                .or_insert_with(|| Replayed::new(Classic::new(durable)));
            queue.machine.apply(index, Record::decode(record)?);
            queue.note(index, position);
        }
        Some(())
    }
}

/// Opens the data directory and replays it.
pub fn recover(options: &Options) -> Result<Recovered, OpenError> {
    let fs: Arc<dyn FileSystem> = Arc::new(Disk);
    let lock = DirectoryLock::acquire(fs.as_ref(), &options.data_dir).map_err(OpenError::Storage)?;
    let mut replay = Replay {
        catalog: Replayed::new(Catalog::new()),
        queues: BTreeMap::new(),
        caches: BTreeMap::new(),
        unreadable: None,
    };
    let log_events = LogEvents::default();
    let (log, segments) = open_files(&fs, options, &log_events, &mut replay).map_err(OpenError::Storage)?;
    if let Some((journal, position)) = replay.unreadable {
        return Err(OpenError::Unreadable {
            journal: journal.0,
            position: position.0,
        });
    }
    let shelves = Shelves {
        log: log.clone(),
        segments: segments.clone(),
    };
    let node = Node::new(log, segments, Pager::start(shelves).map_err(OpenError::Thread)?);
    log_events.belong_to(&node);
    let queues = Arc::new(Registry::default());
    let Replay {
        mut catalog,
        queues: replayed,
        caches,
        ..
    } = replay;
    catalog.machine.recovered();
    let view = catalog.machine.view();
    restore_caches(&view, caches, &node);
    restore_queues(&view, replayed, &node, &queues).map_err(OpenError::Storage)?;
    if let Err(error) = node.segments.sweep() {
        tracing::warn!(
            area = "storage",
            "files that nothing needs could not be deleted: {error}"
        );
    }
    let (machine, journal) = catalog.host(&node.log, CATALOG_JOURNAL, |journal| journal);
    let topology = Topology::new(machine, journal, queues.clone(), node.clone());
    Ok(Recovered {
        node,
        log_events,
        queues,
        topology,
        lock,
    })
}

fn open_files(
    fs: &Arc<dyn FileSystem>,
    options: &Options,
    events: &LogEvents,
    replay: &mut Replay,
) -> Result<(Arc<Log<Promise>>, Arc<Segments>), StorageError> {
    let segments = Segments::open(
        fs.clone(),
        &options.data_dir.join("queues"),
        SegmentOptions::default(),
    )?;
    let log = Log::open(
        fs.clone(),
        &options.data_dir.join("log"),
        LogOptions::default(),
        events.clone(),
        &mut |journal, position, payload| replay.take(journal, position, payload),
    )?;
    report(log.recovery())?;
    Ok((Arc::new(log), Arc::new(segments)))
}

/// Tells an operator what opening found.
///
/// # Errors
/// The catalog's journal is damaged: what exists cannot be known, so the node does not start.
fn report(recovery: &storage::Recovery) -> Result<(), StorageError> {
    tracing::info!(area = "log", "replayed {} records", recovery.records);
    if let Some(cut) = &recovery.cut {
        let (file, offset) = (cut.file.display(), cut.offset);
        tracing::info!(
            area = "log",
            "{file} ends at byte {offset} in a write that a crash interrupted; nothing in it was confirmed"
        );
    }
    for damage in &recovery.damage {
        let (file, offset) = (damage.file.display(), damage.offset);
        if damage.journal == Some(CATALOG_JOURNAL) {
            return Err(StorageError::Corrupt {
                file: damage.file.clone(),
                offset,
                journal: Some(CATALOG_JOURNAL.0),
                what: format!("definitions are damaged: {}", damage.what),
            });
        }
        let whose = damage
            .journal
            .map_or("unknown".to_string(), |journal| journal.0.to_string());
        tracing::error!(
            area = "log",
            "{file} is damaged at byte {offset} ({} bytes, journal {whose}): {}",
            damage.length,
            damage.what
        );
    }
    Ok(())
}

/// Sets a damaged queue apart from its hole: what could be read moves to segments and a new snapshot, before anything new is
/// taken that a later replay would look for behind the hole.
fn set_apart(queue: &Arc<Queue>, node: &Node) -> Result<(), StorageError> {
    tracing::error!(
        area = "storage",
        "{queue:?} is damaged: messages behind the damage are lost, the others are kept"
    );
    queue.checkpoint(node.log.end());
    node.pager.wait();
    node.log.sync()
}

/// Makes hosts of all durable queues that the catalog knows. What the log has of others is forgotten.
fn restore_queues(
    view: &catalog::View,
    mut replayed: BTreeMap<QueueId, Replayed<Classic<Ends>>>,
    node: &Arc<Node>,
    registry: &Registry,
) -> Result<(), StorageError> {
    let damaged: Vec<JournalId> = node
        .log
        .recovery()
        .damage
        .iter()
        .filter_map(|damage| damage.journal)
        .collect();
    let all = view
        .vhosts()
        .flat_map(|vhost| vhost.queues().map(move |queue| (vhost, queue)));
    for (vhost, known) in all.filter(|(_, queue)| queue.seen_by_exchange().is_none()) {
        let settings = queue_settings(known, &vhost.settings(known));
        let mut queue = replayed
            .remove(&known.id)
            .unwrap_or_else(|| Replayed::new(Classic::new(settings.clone())));
        queue.machine.recovered(node.log.recovery().clean);
        for place in queue.machine.places() {
            if !node.segments.adopt(known.id.0, stored_place(place)) {
                tracing::error!(
                    area = "storage",
                    "queue '{}' in vhost '{}': a part of its segments is missing",
                    known.name,
                    known.vhost
                );
            }
        }
        let (machine, journal) = queue.host(&node.log, JournalId(known.id.0), QueueJournal::Local);
        let (vhost, name) = (known.vhost.clone(), known.name.clone());
        let queue = Queue::new(known.id, vhost, name, Host::new(machine, journal), node.clone());
        if settings.deduplicates {
            queue.compare();
        }
        queue.submit(Request::Configure {
            settings: Box::new(settings),
        });
        if damaged.contains(&JournalId(known.id.0)) {
            set_apart(&queue, node)?;
        }
        registry.insert(queue);
    }
    for id in replayed.into_keys() {
        node.log.forget(JournalId(id.0));
    }
    Ok(())
}

/// Makes hosts of what all durable deduplication exchanges remember, be it nothing. What the log has of others is forgotten.
fn restore_caches(view: &catalog::View, mut replayed: BTreeMap<QueueId, Replayed<Seen>>, node: &Arc<Node>) {
    let queues = view.vhosts().flat_map(|vhost| vhost.queues());
    for known in queues.filter(|queue| queue.seen_by_exchange().is_some()) {
        let (settings, journaled) = caches::settings(known);
        let mut cache = match journaled {
            true => replayed.remove(&known.id),
            false => None,
        }
        .unwrap_or_else(|| Replayed::new(Seen::new(settings)));
        cache.machine.recovered(settings);
        let (machine, journal) = cache.host(&node.log, journal_of(known.id), |journal| {
            CacheJournal(journaled.then_some(journal))
        });
        node.caches.insert(known.id, machine, journal);
    }
    for id in replayed.into_keys() {
        node.log.forget(journal_of(id));
    }
}

/// Free bytes on the file system of `dir`, for those who may write as this process does.
pub fn free_space(dir: &Path) -> Option<u64> {
    Disk.free_space(dir).ok()
}
