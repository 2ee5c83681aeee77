//! Two threads apart from the fast path: one reads what was paged out, one writes what is to be. So a deep queue neither slows
//! its publishers nor waits behind them. What they do, others bring along.
//!
//! What an entry in a segment looks like, `queue::store` says.

use crate::node::journal::{Entry, NodeLog, entry};
use crate::node::promise::Kept;
use crate::worker::Worker;
use model::{Block, QueueId, Ranges};
use queue::store::{Place, Source, decode_entry};
use std::sync::Arc;
use storage::{JournalId, Kind, Position, Segments, World};

/// A block that was read.
#[derive(Clone, Debug)]
pub struct Found {
    pub block: Arc<Block>,
    /// At these positions of the block something stands that is not what was written.
    pub damaged: Ranges,
}

impl Found {
    /// Nothing of it is damaged.
    pub fn intact(block: Arc<Block>) -> Self {
        let damaged = Ranges::new();
        Self { block, damaged }
    }
}

/// Why a block was not read, in words.
#[derive(Clone, Debug)]
pub enum Unread {
    /// What is there is not what was written, or nothing is there: what was moved or settled since somebody was told the place is
    /// gone from there.
    Damaged(String),
    /// That says nothing about what is there; it may work later.
    Failed(String),
}

/// Something for one of the threads to do.
pub type Job = Box<dyn FnOnce(&StoreFiles) + Send>;

/// The two threads.
pub struct Pager {
    reads: Worker<Job>,
    writes: Worker<Job>,
}

/// What the threads work on.
#[derive(Clone)]
pub struct StoreFiles {
    /// Where the threads run.
    pub world: Arc<dyn World>,
    /// The node's log.
    pub log: Arc<NodeLog>,
    /// The segments.
    pub segments: Arc<Segments>,
}

impl Pager {
    /// Starts the threads.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(files: StoreFiles) -> std::io::Result<Self> {
        let (reads, writes) = (Worker::default(), Worker::default());
        let reading = files.clone();
        let world = files.world.clone();
        reads.start(world.as_ref(), "page-reader", move |job: Job| job(&reading))?;
        writes.start(world.as_ref(), "page-writer", move |job: Job| job(&files))?;
        Ok(Self { reads, writes })
    }

    /// Has the reading thread do this. After `stop` it is dropped: the node is closing.
    pub fn read(&self, job: impl FnOnce(&StoreFiles) + Send + 'static) {
        self.reads.send(Box::new(job));
    }

    /// The same for the writing thread: writing, deleting, and whatever else waits for the disk or takes its time.
    pub fn write(&self, job: impl FnOnce(&StoreFiles) + Send + 'static) {
        self.writes.send(Box::new(job));
    }

    /// Does what is left to be done of kept promises.
    pub fn carry_out(&self, kept: Kept) {
        kept.woken.wake();
        for (queue, places) in kept.freed {
            self.write(move |files| files.free(queue, places));
        }
        for queue in kept.deleted {
            self.write(move |files| files.remove(queue));
        }
        if let Some((batches, number)) = kept.batch {
            batches.synced(number);
        }
    }

    /// Waits until everything is written that was sent before.
    pub fn wait(&self) {
        self.writes.wait();
    }

    /// Has the threads finish what was sent before, and waits for them.
    pub fn stop(&self) {
        self.reads.stop();
        self.writes.stop();
    }
}

impl StoreFiles {
    /// These entries of a queue are not needed any more.
    pub fn free(&self, queue: QueueId, places: Vec<Place>) {
        for place in places {
            self.segments.free(segment_owner(queue), stored_place(place));
        }
    }

    /// The queue is deleted: so are its segments.
    pub fn remove(&self, queue: QueueId) {
        if let Err(error) = self.segments.remove(segment_owner(queue)) {
            tracing::warn!(
                area = "storage",
                "segments of deleted queue {queue} remain: {error}"
            );
        }
    }

    /// Reads a block of a queue whose records bring what `block` says.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn read(
        &self,
        queue: QueueId,
        source: Source,
        block: impl FnOnce(&[u8]) -> Option<Arc<Block>>,
    ) -> Result<Found, Unread> {
        let logged = |payload: &[u8]| match entry(payload)? {
            Entry::Record(_, record) => Some((block(record)?, Ranges::new())),
            Entry::Local(_) => None,
        };
        let read = match source {
            Source::Log(at) => self.log.read(Position(at.0)).map(|bytes| logged(&bytes)),
            Source::Segment(place) => self
                .segments
                .read_parts(segment_owner(queue), stored_place(place))
                .map(|entry| {
                    let (block, damaged) = decode_entry(place, entry.parts())?;
                    Some((Arc::new(block), damaged))
                }),
        };
        match read {
            Ok(Some((block, damaged))) => {
                if !damaged.is_empty() {
                    let count = damaged.count();
                    tracing::error!(
                        area = "storage",
                        "queue {queue}: {count} of the messages in {source:?} are damaged"
                    );
                }
                Ok(Found { block, damaged })
            }
            Ok(None) => Err(Unread::Damaged(format!("{source:?} holds no messages"))),
            Err(error) if error.is_damage() => Err(Unread::Damaged(error.to_string())),
            Err(error) => Err(Unread::Failed(error.to_string())),
        }
    }
}

/// Whose the segments of a queue are.
pub fn segment_owner(queue: QueueId) -> JournalId {
    JournalId::new(Kind::QUEUE, queue.0)
}

/// The storage crate's word for it.
pub fn stored_place(place: Place) -> storage::Place {
    storage::Place {
        segment: place.segment,
        offset: place.offset,
        length: place.length,
    }
}
