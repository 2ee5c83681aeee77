//! Start-up: one pass over the log rebuilds the catalog and every durable queue.

mod losses;
pub(crate) mod member;
mod replay;
mod replicas;
mod unknown;

pub use losses::{Losses, QueueLoss};

use crate::broker::Recovered;
use crate::groups::membership::{Clustered, Stage};
use crate::node::journal::NodeLog;
use crate::node::pager::{Pager, StoreFiles, segment_owner, stored_place};
use crate::node::replayed::Replayed;
use crate::node::streams::StreamFolder;
use crate::node::{LogEvents, Node};
use crate::options::{OpenError, Options};
use crate::queues::{JournalOf, Queue, QueueEvents, Registry, queue_type};
use crate::topology::Topology;
use crate::topology::caches::Caches;
use catalog::{Catalog, QueueKind};
use losses::{accept, describe};
use member::{Opens, RunningCluster};
use model::words::counted;
use model::{Machine, QueueId};
use queue::seen::Seen;
use replay::{Queues, Replay, durable};
use replicas::Copies;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use storage::{DirectoryLock, FileSystem, JournalId, Log, LogOptions, Segments, StorageError};
use unknown::Left;

/// The log's folder in the data directory.
pub(crate) const LOG: &str = "log";
/// The folder of streams in the data directory.
const STREAMS: &str = "streams";
/// The folder in the data directory for what is kept although nobody needs it.
pub(crate) const SET_ASIDE: &str = "set-aside";

/// Opens the data directory and replays it.
pub fn recover(
    options: &Options,
    clustered: Option<&Clustered>,
    queue_events: Arc<dyn QueueEvents>,
) -> Result<(Recovered, Option<RunningCluster>), OpenError> {
    let fs = options.world.files();
    let lock = DirectoryLock::acquire(fs.as_ref(), &options.data_dir).map_err(OpenError::Storage)?;
    let log_events = LogEvents::default();
    let must_exist = clustered.is_some_and(|clustered| clustered.file.stage == Stage::Member);
    let replay = RefCell::new(Replay::new(must_exist));
    let opened = open_files(&fs, options, must_exist, &log_events, &replay);
    let (log, segments) = opened.map_err(OpenError::Storage)?;
    let mut replay = replay.into_inner();
    if let Some((journal, position)) = replay.unreadable {
        return Err(OpenError::Unreadable {
            journal,
            position: position.0,
        });
    }
    let files = StoreFiles {
        world: options.world.clone(),
        log: log.clone(),
        segments: segments.clone(),
    };
    let node = Node::new(
        options.world.clone(),
        log,
        segments,
        Pager::start(files).map_err(OpenError::Thread)?,
        StreamFolder::new(options.world.clone(), options.data_dir.join(STREAMS)),
    );
    log_events.belong_to(&node);
    let queues = Arc::new(Registry::default());
    let (opens, found) = member::opens(&mut replay, &node, clustered)?;
    let Replay {
        mut catalog,
        queues: mut replayed,
        mut caches,
        unknown,
        groups,
        ..
    } = replay;
    let (mut given_out, mut cluster) = (QueueId(u64::MAX), None);
    if let (Opens::Member, Some(clustered)) = (opens, clustered) {
        let running = member::begin(&node, found, clustered)?;
        let (incarnation, view) = running.enter(clustered, options.takes_queues)?;
        catalog = Replayed::new(Catalog::of(view));
        cluster = Some((running, incarnation));
    } else {
        catalog.machine.recovered(node.log.recovery().clean);
        given_out = catalog.machine.next_queue();
    }
    let (machine, journal) = catalog.into_parts(&node.log, JournalOf::Catalog.id());
    let remembered = Arc::new(Caches::new(node.clone()));
    let topology = Topology::new(
        machine,
        journal,
        (queues.clone(), queue_events),
        node.clone(),
        remembered.clone(),
    );
    let cluster = match cluster {
        Some((running, incarnation)) => {
            topology.belong_to(running.catalog.clone(), incarnation);
            Some(running)
        }
        None => {
            let started = topology.start_node(&options.node_name, options.takes_queues);
            started.map_err(OpenError::Catalog)?;
            None
        }
    };
    let view = topology.view();
    let left = not_in(&view, &mut replayed, &mut caches);
    let set_aside =
        unknown::sort_out(&node, &fs, options, given_out, left, unknown).map_err(OpenError::Storage)?;
    node.set_aside(set_aside);
    restore_caches(&topology, caches, &node);
    let mut copies = Copies::of(groups);
    restore_queues(&topology, &queues, (replayed, &mut copies), &node).map_err(OpenError::Storage)?;
    replicas::restore(&topology, copies);
    sweep(&node, options);
    sweep_streams(&node, options, &queues, given_out);
    let recovered = Recovered {
        node,
        log_events,
        queues,
        caches: remembered,
        topology,
        lock,
    };
    Ok((recovered, cluster))
}

/// Takes out what was replayed of queues that do not exist.
fn not_in(view: &catalog::View, queues: &mut Queues, caches: &mut BTreeMap<QueueId, Replayed<Seen>>) -> Left {
    let all = || view.vhosts().flat_map(|vhost| vhost.all_queues());
    let held = all().filter_map(|known| JournalOf::queue(known));
    let held: HashSet<JournalId> = held.map(JournalOf::id).collect();
    let seen = all().filter(|known| known.kind == QueueKind::Deduplication);
    let seen: HashSet<QueueId> = seen.map(|known| known.id).collect();
    let queues = queues.extract_if(.., |journal, _| !held.contains(journal));
    let caches = caches.extract_if(.., |id, _| !seen.contains(id));
    let queues = queues.map(|(journal, _)| (journal, QueueId(journal.number)));
    queues
        .chain(caches.map(|(id, _)| (JournalOf::Cache(id).id(), id)))
        .collect()
}

/// How this node's log is opened.
fn log_options(options: &Options, segments: &Segments, must_exist: bool) -> LogOptions {
    LogOptions {
        quarantine: options.set_aside.is_some(),
        // Without a log nobody would know what the segments hold, and they would be swept away.
        must_exist: must_exist || !segments.is_empty() || has_streams(options),
        ..options.log.clone()
    }
}

fn open_files(
    fs: &Arc<dyn FileSystem>,
    options: &Options,
    must_exist: bool,
    events: &LogEvents,
    replay: &RefCell<Replay>,
) -> Result<(Arc<NodeLog>, Arc<Segments>), StorageError> {
    let segments = Segments::open(
        fs.clone(),
        &options.data_dir.join("queues"),
        options.segments.clone(),
    )?;
    let repairs = options.set_aside.is_some();
    let log = Log::open_if(
        options.world.clone(),
        &options.data_dir.join(LOG),
        log_options(options, &segments, must_exist),
        events.clone(),
        &mut |journal, position, payload| replay.borrow_mut().take(journal, position, payload),
        &mut |recovery| match repairs {
            true => Ok(()),
            false => accept(&replay.borrow(), recovery),
        },
    )?;
    report(log.recovery());
    let log = NodeLog::new(log, events.promises());
    Ok((Arc::new(log), Arc::new(segments)))
}

/// What the data directory has lost; nothing in it is changed.
///
/// # Errors
/// The data directory is in use, or cannot be read.
pub fn inspect(options: &Options) -> Result<Losses, OpenError> {
    let fs = options.world.files();
    let _lock = DirectoryLock::acquire(fs.as_ref(), &options.data_dir).map_err(OpenError::Storage)?;
    let segments = Segments::open(
        fs.clone(),
        &options.data_dir.join("queues"),
        options.segments.clone(),
    )
    .map_err(OpenError::Storage)?;
    let mut replay = Replay::new(true);
    let log_options = LogOptions {
        quarantine: true,
        must_exist: !segments.is_empty() || has_streams(options),
        ..options.log.clone()
    };
    let recovery = Log::inspect(
        fs.as_ref(),
        &options.data_dir.join(LOG),
        &log_options,
        &mut |journal, position, payload| replay.take(journal, position, payload),
    )
    .map_err(OpenError::Storage)?;
    Ok(Losses::of(&replay, &recovery, &segments))
}

/// The folder for what this start keeps although nobody needs it.
fn set_aside_dir(node: &Node, options: &Options) -> PathBuf {
    let of_this_start = || {
        options
            .data_dir
            .join(SET_ASIDE)
            .join((node.run / 1000).to_string())
    };
    options.set_aside.clone().unwrap_or_else(of_this_start)
}

/// Deletes segments that no queue needs; those of a queue that lost something are kept in another folder.
fn sweep(node: &Node, options: &Options) {
    let damage = &node.log.recovery().damage;
    let lost = damage.iter().filter_map(|it| it.journal);
    let unknown = node.set_aside_journals().iter().map(|it| it.journal);
    let damaged: HashSet<JournalId> = lost.chain(unknown).collect();
    let own = set_aside_dir(node, options);
    let aside = |owner: JournalId| -> Option<PathBuf> {
        let kept = options.set_aside.is_some() || damaged.contains(&owner);
        kept.then(|| {
            own.join("queues")
                .join(format!("{}-{}", owner.kind.0, owner.number))
        })
    };
    match node.segments.sweep(&aside) {
        Ok((0, 0)) => {}
        Ok((deleted, 0)) => {
            tracing::info!(
                area = "storage",
                "{deleted} segment files that no queue needs were deleted"
            );
        }
        Ok((_, moved)) => tracing::warn!(
            area = "storage",
            "{moved} segment files that no queue knows of any more were moved to {}",
            own.display()
        ),
        Err(error) => tracing::warn!(
            area = "storage",
            "files that nothing needs could not be deleted: {error}"
        ),
    }
}

/// Deletes the files of streams whose deletion was interrupted; those of which nobody knows that they were deleted are kept in
/// another folder. `next` is the id that the next queue gets.
fn sweep_streams(node: &Node, options: &Options, queues: &Registry, next: QueueId) {
    // Where definitions are lost, nobody knows what was deleted.
    let lost = |damage: &storage::Damage| damage.journal.is_none_or(|it| it.kind == storage::Kind::CATALOG);
    let is_complete = options.set_aside.is_none() && !node.log.recovery().damage.iter().any(lost);
    let own = set_aside_dir(node, options);
    node.streams.sweep(
        |stream| match queues.get(stream) {
            // Its copy was given up when the node ended.
            Some(crate::queues::Handle::Shared(shared)) => {
                shared.replica.is_some() || shared.damaged.is_some()
            }
            handle => handle.is_some(),
        },
        |stream| {
            let is_kept = !is_complete || stream >= next;
            is_kept.then(|| own.join("streams").join(stream.0.to_string()))
        },
    );
}

/// The log knows which streams there are: without it, their files would be taken for what deleted ones have left.
fn has_streams(options: &Options) -> bool {
    let names = options.world.files().list(&options.data_dir.join(STREAMS));
    names.is_ok_and(|names| !names.is_empty())
}

/// Tells an operator what opening found.
fn report(recovery: &storage::Recovery) {
    tracing::info!(area = "log", "replayed {}", counted(recovery.records, "record"));
    if let Some(cut) = &recovery.cut {
        let (file, offset) = (cut.file.display(), cut.offset);
        tracing::info!(
            area = "log",
            "{file} ends at byte {offset} in a write that a crash interrupted; nothing in it was confirmed"
        );
    }
    for damage in &recovery.damage {
        tracing::error!(area = "log", "{}", describe(damage));
    }
}

/// Sets a damaged queue apart from its hole: what could be read moves to segments and a new snapshot, so that the next start
/// finds nothing damaged.
fn set_apart(queue: &Arc<Queue>, missing_messages: u64, node: &Node) -> Result<(), StorageError> {
    tracing::error!(
        area = "storage",
        "{queue:?}: damaged records of the log were left out: up to {} of it may be lost, or messages that had \
         been acknowledged come again; all others are kept",
        counted(missing_messages, "message")
    );
    queue.checkpoint(node.log.end());
    node.pager.wait();
    node.log.sync()
}

/// Makes hosts of all durable queues that the catalog knows.
fn restore_queues(
    topology: &Topology,
    queues: &Registry,
    (mut replayed, copies): (Queues, &mut Copies),
    node: &Arc<Node>,
) -> Result<(), StorageError> {
    let damaged: Vec<JournalId> = node
        .log
        .recovery()
        .damage
        .iter()
        .filter_map(|damage| damage.journal)
        .collect();
    let view = topology.view();
    let all = view.vhosts().flat_map(|vhost| vhost.all_queues());
    for known in all {
        if copies.returns(topology, known, &replayed)
            || known.is_shared() && !copies.has_own(topology, known, &replayed)
        {
            continue;
        }
        let Some(made) = queue_type(known.kind).filter(|_| topology.is_here(known)) else {
            queues.insert(topology.away(known));
            continue;
        };
        let id = JournalOf::Queue(made, known.id).id();
        let queue = replayed.remove(&id).unwrap_or_else(|| made.replay(durable()));
        let missing = queue.missing();
        let (places, segments) = (queue.places(), queue.segments());
        let segments = segments.unwrap_or(segment_owner(known.id));
        let host = queue.recovered(node.log.recovery().clean, &node.log, id);
        for place in places {
            if !node.segments.adopt(segments, stored_place(place)) {
                tracing::error!(
                    area = "storage",
                    "queue '{}' in vhost '{}': a part of its segments is missing",
                    known.name,
                    known.vhost
                );
            }
        }
        let queue = topology.start_queue(known, made, view.settings(known), Some(host));
        if known.is_shared() {
            topology.grows(known, &queue);
        }
        if damaged.contains(&id) {
            set_apart(&queue, missing.messages, node)?;
        }
    }
    Ok(())
}

/// Makes hosts of what all durable deduplication exchanges of this node remember, be it nothing.
fn restore_caches(topology: &Topology, mut replayed: BTreeMap<QueueId, Replayed<Seen>>, node: &Node) {
    let view = topology.view();
    let queues = view.vhosts().flat_map(|vhost| vhost.all_queues());
    for known in queues.filter(|queue| queue.kind == QueueKind::Deduplication) {
        let id = JournalOf::Cache(known.id).id();
        let replayed = replayed.remove(&known.id);
        if !topology.is_here(known) {
            // Another node's, of which this one remembered things of its own once.
            replayed.is_some().then(|| node.log.forget(id));
            continue;
        }
        let replayed = replayed.map(|cache| cache.into_parts(&node.log, id));
        topology.start_cache(known, replayed);
    }
}
