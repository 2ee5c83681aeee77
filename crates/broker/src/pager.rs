//! Two threads apart from the road: one reads what was paged out, one writes what is to be. So a deep queue neither slows
//! its publishers nor waits behind them.
//!
//! What an entry in a segment looks like, `queue::store` says.

use crate::broker::Broker;
use crate::journal::{Entry, NodeLog, entry};
use crate::queues::Queue;
use crate::topology::Deletion;
use crate::worker::Worker;
use model::{Block, QueueId, Ranges, Seq};
use queue::fifo::{Record, Request};
use queue::store::{self, Bytes, EntryBuilder, Piece, Place, Read, Source, Stored, decode_entry};
use std::sync::{Arc, Weak};
use storage::{Position, Segments, World};

/// So many times as long as a part of a deletion took, those who publish and bind have the processor and the catalog to themselves.
const REST: u32 = 3;

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

/// Something for the pager to do.
pub enum Job {
    /// Read a block back; answered by `Request::Loaded`.
    Load {
        queue: Arc<Queue>,
        first: Seq,
        source: Source,
        failures: u32,
    },
    /// Write pieces to the queue's segments; answered by `Request::Stored`, in the order of the jobs.
    Store {
        queue: Arc<Queue>,
        pieces: Vec<Piece>,
        durable: bool,
    },
    /// These entries are not needed any more.
    Free { queue: QueueId, places: Vec<Place> },
    /// See whether a file of the queue is worth rewriting, after entries were freed.
    Rewrite { queue: Arc<Queue> },
    /// The queue is deleted: so are its segments.
    Remove { queue: QueueId },
    /// Delete a queue that has many bindings, or very many queues, some of these at a time. What is left when the node closes is
    /// left to the next start.
    DeleteInParts {
        broker: Weak<Broker>,
        deletion: Deletion,
    },
    /// Handle what waits in the queue's mailbox.
    Turn { queue: Arc<Queue> },
    /// Have the queue move what it needs of the log before this position, so that the log may use the file again.
    Checkpoint { queue: Arc<Queue>, before: Position },
    /// The same for the catalog.
    CheckpointCatalog { broker: Weak<Broker> },
    /// The same for what a deduplication exchange remembers.
    RestateCache { broker: Weak<Broker>, cache: QueueId },
}

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
        reads.start(world.as_ref(), "page-reader", move |job| reading.serve_read(job))?;
        writes.start(world.as_ref(), "page-writer", move |job| files.write(job))?;
        Ok(Self { reads, writes })
    }

    /// Hands over a job. After `stop` it is dropped: the node is closing.
    pub fn send(&self, job: Job) {
        let to = if matches!(job, Job::Load { .. }) {
            &self.reads
        } else {
            &self.writes
        };
        to.send(job);
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
    fn serve_read(&self, job: Job) {
        let Job::Load {
            queue,
            first,
            source,
            failures,
        } = job
        else {
            return;
        };
        let read = match self.read_for(&queue, source, failures) {
            Ok(Found { block, damaged }) => Read::Found { block, damaged },
            Err(Unread::Damaged(_)) => Read::Damaged,
            Err(Unread::Failed(_)) => Read::Failed,
        };
        queue.submit(Request::Store(store::Request::Loaded { first, read }));
    }

    fn write(&self, job: Job) {
        match job {
            Job::Store {
                queue,
                pieces,
                durable,
            } => {
                self.store(&queue, &pieces, durable);
                self.rewrite_sparse(&queue);
            }
            Job::Free { queue, places } => self.free(queue, places),
            Job::Rewrite { queue } => self.rewrite_sparse(&queue),
            Job::Remove { queue } => {
                if let Err(error) = self.segments.remove(queue.0) {
                    tracing::warn!(
                        area = "storage",
                        "segments of deleted queue {queue} remain: {error}"
                    );
                }
            }
            Job::DeleteInParts { broker, deletion } => {
                let Some(there) = broker.upgrade() else { return };
                let began = self.world.elapsed();
                if let Some(deletion) = there.topology().delete_a_part(deletion) {
                    // What else is to be written comes between two parts.
                    there.node().pager.send(Job::DeleteInParts { broker, deletion });
                    drop(there);
                    self.world.pause((self.world.elapsed() - began) * REST);
                }
            }
            Job::Turn { queue } => queue.turn_mail(),
            Job::Checkpoint { queue, before } => {
                queue.checkpoint(before);
                self.rewrite_sparse(&queue);
            }
            Job::CheckpointCatalog { broker } => {
                if let Some(broker) = broker.upgrade() {
                    broker.topology().checkpoint();
                }
            }
            Job::RestateCache { broker, cache } => {
                if let Some(broker) = broker.upgrade() {
                    broker.restate_cache(cache);
                }
            }
            // The reader's.
            Job::Load { .. } => {}
        }
    }

    /// Writes the pieces in order, one after the other, so that only one is in memory twice. What cannot be written is left out
    /// of the answer; the store keeps it where it is.
    fn store(&self, queue: &Arc<Queue>, pieces: &[Piece], durable: bool) {
        // What a queue that is deleted still wanted written would never be deleted.
        let pieces = if queue.is_retired() { &[] } else { pieces };
        let mut stored = Vec::with_capacity(pieces.len());
        let mut unreadable = Ranges::new();
        let mut places = Vec::with_capacity(1);
        let mut result = Ok(());
        for piece in pieces {
            let Some(entry) = self.entry(queue, piece, &mut unreadable) else {
                continue;
            };
            places.clear();
            result = self.segments.append(queue.id.0, [entry.parts()], &mut places);
            match (&result, places.first()) {
                (Ok(()), Some(place)) => stored.push(Stored {
                    first: piece.first,
                    count: piece.count,
                    place: store_place(*place),
                }),
                _ => break,
            }
        }
        if durable {
            result = result.and(self.segments.sync(queue.id.0).inspect_err(|_| stored.clear()));
        } else {
            self.segments.let_go(queue.id.0);
        }
        if let Err(error) = result {
            tracing::error!(area = "storage", "{queue:?} cannot be paged out: {error}");
        }
        queue.submit(Request::Store(store::Request::Stored {
            pieces: stored,
            unreadable,
        }));
    }

    fn free(&self, queue: QueueId, places: Vec<Place>) {
        for place in places {
            self.segments.free(queue.0, stored_place(place));
        }
    }

    /// Has the queue move what little is left of a file, so that the file goes: a stuck message doesn't keep its neighbours' space.
    /// Asked when the queue writes more files and when transient messages free some; and each time the log comes round, which it
    /// does for queues at rest too.
    fn rewrite_sparse(&self, queue: &Arc<Queue>) {
        if let Some(segment) = self.segments.sparse(queue.id.0) {
            queue.submit(Request::Store(store::Request::Compact { segment }));
        }
    }

    /// The bytes of an entry; `None` if a part cannot be read. What is damaged of it is added to `unreadable`.
    fn entry(&self, queue: &Queue, piece: &Piece, unreadable: &mut Ranges) -> Option<EntryBuilder> {
        let mut entry: Option<EntryBuilder> = None;
        let mut first = piece.first;
        let mut whole = true;
        for part in &piece.parts {
            let last = first + u64::from(part.count) - 1;
            let found = match &part.bytes {
                Bytes::Memory(block) => Ok(Found::intact(block.clone())),
                Bytes::Source(source) => self.read_for(queue, *source, 0),
            };
            match found {
                Ok(Found { block, damaged }) => {
                    for (seq, at) in (first..=last).zip(u64::from(part.from)..) {
                        if damaged.contains(at) || at >= block.len() as u64 {
                            unreadable.push(seq);
                            whole = false;
                        }
                    }
                    if whole {
                        entry
                            .get_or_insert_with(|| EntryBuilder::new(block.persistent(), block.received()))
                            .push(&block, part.from as usize, part.count as usize);
                    }
                }
                Err(Unread::Damaged(_)) => {
                    unreadable.push_span(first, last);
                    whole = false;
                }
                Err(Unread::Failed(_)) => whole = false,
            }
            first = last + 1;
        }
        let mut entry = entry.filter(|_| whole)?;
        entry.finish();
        Some(entry)
    }

    /// Reads a block that the queue's store asked for. If it cannot be read, why is in the log.
    fn read_for(&self, queue: &Queue, source: Source, failures: u32) -> Result<Found, Unread> {
        let read = self.read(queue.id, source);
        match &read {
            Err(Unread::Damaged(reason)) => {
                tracing::error!(
                    area = "storage",
                    "{queue:?}: what was paged out is damaged: {reason}"
                );
            }
            Err(Unread::Failed(reason)) => tracing::warn!(
                area = "storage",
                "{queue:?}: what was paged out cannot be read just now ({} times by now), it is tried again: {reason}",
                failures + 1
            ),
            Ok(_) => {}
        }
        read
    }

    /// Reads a block.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn read(&self, queue: QueueId, source: Source) -> Result<Found, Unread> {
        let read = match source {
            Source::Log(at) => self.log.read(Position(at.0)).map(|bytes| logged_block(&bytes)),
            Source::Segment(place) => self
                .segments
                .read_parts(queue.0, stored_place(place))
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

/// The block of an `Enqueued` record.
fn logged_block(payload: &[u8]) -> Option<(Arc<Block>, Ranges)> {
    let Entry::Record(_, record) = entry(payload)? else {
        return None;
    };
    match Record::decode(record)? {
        Record::Enqueued { block, .. } => Some((block, Ranges::new())),
        _ => None,
    }
}

/// The store's word for a place in segments.
fn store_place(place: storage::Place) -> Place {
    Place {
        segment: place.segment,
        offset: place.offset,
        length: place.length,
    }
}

/// The storage crate's word for it.
pub fn stored_place(place: Place) -> storage::Place {
    storage::Place {
        segment: place.segment,
        offset: place.offset,
        length: place.length,
    }
}
