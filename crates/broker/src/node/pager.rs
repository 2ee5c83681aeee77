//! Three threads apart from the fast path: one reads what was paged out, one writes what is to be, and one waits for syncs
//! while the next is being written. So a deep queue neither slows its publishers nor waits behind them. What they do, others
//! bring along.
//!
//! What is read and written for a message store, `paging` says; what an entry in a segment looks like, `queue::store`.

use crate::node::journal::NodeLog;
use crate::node::promise::Kept;
use crate::worker::Worker;
use model::QueueId;
use queue::store::Place;
use std::sync::Arc;
use storage::{JournalId, Kind, Segments, World};

/// Something for one of the threads to do.
pub type Job = Box<dyn FnOnce(&StoreFiles) + Send>;

/// The three threads.
pub struct Pager {
    reads: Worker<Job>,
    writes: Worker<Job>,
    syncs: Worker<Job>,
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
        let start = |name| -> std::io::Result<Worker<Job>> {
            let (worker, files) = (Worker::default(), files.clone());
            let world = files.world.clone();
            worker.start(world.as_ref(), name, move |job: Job| job(&files))?;
            Ok(worker)
        };
        Ok(Self {
            reads: start("page-reader")?,
            writes: start("page-writer")?,
            syncs: start("page-syncer")?,
        })
    }

    /// Has the reading thread do this. After `stop` it is dropped: the node is closing.
    pub fn read(&self, job: impl FnOnce(&StoreFiles) + Send + 'static) {
        self.reads.send(Box::new(job));
    }

    /// The same for the writing thread: writing, deleting, and whatever else waits for the disk or takes its time.
    pub fn write(&self, job: impl FnOnce(&StoreFiles) + Send + 'static) {
        self.writes.send(Box::new(job));
    }

    /// The same for the thread that does nothing but wait for syncs of what the writing one has written. What follows from them
    /// is the writing thread's again: what it deletes and frees keeps its order with that.
    pub fn sync(&self, job: impl FnOnce(&StoreFiles) + Send + 'static) {
        self.syncs.send(Box::new(job));
    }

    /// Does what is left to be done of kept promises.
    pub fn carry_out(&self, kept: Kept) {
        kept.woken.wake();
        for (owner, places, member) in kept.freed {
            // Segments of a member that is closed are removed by this thread, before another one of their name begins.
            self.write(move |files| {
                if !member.is_some_and(|member| member.is_closed()) {
                    files.free(owner, places);
                }
            });
        }
        for segments in kept.deleted {
            self.write(move |files| files.remove(segments));
        }
        for (batches, number) in kept.batches {
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
        self.syncs.stop();
    }
}

impl StoreFiles {
    /// These entries of somebody's segments are not needed any more.
    pub fn free(&self, owner: JournalId, places: impl IntoIterator<Item = Place>) {
        for place in places {
            self.segments.free(owner, stored_place(place));
        }
    }

    /// A queue is deleted: so are its segments.
    pub fn remove(&self, segments: JournalId) {
        if let Err(error) = self.segments.remove(segments) {
            tracing::warn!(
                area = "storage",
                "segments of {segments}, which is deleted, remain: {error}"
            );
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
