//! Two threads apart from the road: one reads what was paged out, one writes what is to be. So a deep queue neither slows
//! its publishers nor waits behind them.
//!
//! An entry in a segment is one octet (1 if persistent), the time of receipt (8 octets), then messages as a block has
//! them.

use crate::broker::Broker;
use crate::journal::{NodeLog, entry};
use crate::queues::Queue;
use crate::topology::Deletion;
use crate::worker::{Jobs, Worker};
use model::{Block, QueueId, Seq, Timestamp};
use queue::fifo::{Place, Record, Request, Stored};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};
use storage::{Position, Segments, StorageError};

/// So many times as long as a part of a deletion took, those who publish and bind have the processor and the catalog to themselves.
const REST: u32 = 3;

/// How long a read that found no descriptor waits for one.
const READ_AGAIN: Duration = Duration::from_millis(100);

/// Where bytes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAt {
    /// An `Enqueued` record in the node's log.
    Log(Position),
    /// An entry of the queue's segments.
    Segment(Place),
}

/// Something for the pager to do.
pub enum Job {
    /// Read a block back; answered by `Request::Loaded`.
    Load {
        queue: Arc<Queue>,
        first: Seq,
        at: Option<ReadAt>,
    },
    /// Write pieces to the queue's segments; answered by `Request::Stored`, in the order of the jobs.
    Store {
        queue: Arc<Queue>,
        pieces: Vec<Page>,
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
    /// Tell when everything sent before is done.
    Report { done: Sender<()> },
    /// The same for the catalog.
    CheckpointCatalog { broker: Weak<Broker> },
    /// The same for what a deduplication exchange remembers.
    RestateCache { broker: Weak<Broker>, cache: QueueId },
}

/// A contiguous piece of a queue, to be stored as one entry.
pub struct Page {
    /// Its first message.
    pub first: Seq,
    /// How many messages.
    pub count: u32,
    /// Its bytes, in order: where, from which message, how many; `None` if the journal does not know the place.
    pub parts: Option<Vec<(PartBytes, u32, u32)>>,
}

/// Where a block is.
pub enum PartBytes {
    /// Here.
    Memory(Arc<Block>),
    /// On disk.
    At(ReadAt),
}

/// The two threads.
pub struct Pager {
    reads: Worker<Job>,
    writes: Worker<Job>,
}

/// What the threads work on.
#[derive(Clone)]
pub struct Shelves {
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
    pub fn start(shelves: Shelves) -> std::io::Result<Self> {
        let (reads, writes) = (Worker::default(), Worker::default());
        let reading = shelves.clone();
        reads.start("page-reader", move |jobs| reading.read(jobs))?;
        writes.start("page-writer", move |jobs| shelves.write(jobs))?;
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
        let (done, waiting) = channel();
        self.send(Job::Report { done });
        // An error means that the thread has ended: then there is nothing to wait for.
        let _ = waiting.recv();
    }

    /// Has the threads finish what was sent before, and waits for them.
    pub fn stop(&self) {
        self.reads.stop();
        self.writes.stop();
    }
}

impl Shelves {
    fn read(&self, jobs: Jobs<Job>) {
        for job in jobs {
            let Job::Load { queue, first, at } = job else {
                continue;
            };
            let block = at.and_then(|at| self.patient_block(&queue, at));
            queue.submit(Request::Loaded { first, block });
        }
    }

    fn write(&self, jobs: Jobs<Job>) {
        for job in jobs {
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
                    let Some(there) = broker.upgrade() else { continue };
                    let began = Instant::now();
                    if let Some(deletion) = there.topology().delete_a_part(deletion) {
                        // What else is to be written comes between two parts.
                        there.node().pager.send(Job::DeleteInParts { broker, deletion });
                        drop(there);
                        thread::park_timeout(began.elapsed() * REST);
                    }
                }
                Job::Turn { queue } => queue.turn_mail(),
                Job::Report { done } => drop(done.send(())),
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
    }

    /// Writes the pieces in order, one after the other, so that only one is in memory twice. What cannot be written is left out
    /// of the answer; the machine keeps it where it is.
    fn store(&self, queue: &Arc<Queue>, pieces: &[Page], durable: bool) {
        // What a queue that is deleted still wanted written would never be deleted.
        let pieces = if queue.is_retired() { &[] } else { pieces };
        let mut stored = Vec::with_capacity(pieces.len());
        let mut places = Vec::with_capacity(1);
        let mut result = Ok(());
        for piece in pieces {
            let Some(bytes) = self.entry(queue, piece) else {
                continue;
            };
            places.clear();
            result = self
                .segments
                .append(queue.id.0, [[bytes.as_slice()]], &mut places);
            match (&result, places.first()) {
                (Ok(()), Some(place)) => {
                    let place = Place {
                        segment: place.segment,
                        offset: place.offset,
                        length: place.length,
                    };
                    stored.push(Stored {
                        first: piece.first,
                        count: piece.count,
                        place,
                    });
                }
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
        queue.submit(Request::Stored { pieces: stored });
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
            queue.submit(Request::Compact { segment });
        }
    }

    /// The bytes of an entry; `None` if a part cannot be read.
    fn entry(&self, queue: &Queue, piece: &Page) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        for (part, from, count) in piece.parts.as_ref()? {
            let block = match part {
                PartBytes::Memory(block) => block.clone(),
                PartBytes::At(at) => self.block(queue, *at)?,
            };
            if bytes.is_empty() {
                bytes.push(u8::from(block.persistent()));
                bytes.extend_from_slice(&block.received().0.to_le_bytes());
            }
            bytes.extend_from_slice(block.slice(*from as usize, *count as usize));
        }
        Some(bytes)
    }

    /// Reads a block for delivery. Messages that are there must not be given up because the process has no descriptor at the moment:
    /// it is tried again until there is one.
    fn patient_block(&self, queue: &Queue, at: ReadAt) -> Option<Arc<Block>> {
        let mut told = false;
        loop {
            match self.fetch(queue.id, at) {
                Err(error) if error.passes() && !queue.is_retired() => {
                    if !std::mem::replace(&mut told, true) {
                        tracing::warn!(area = "storage", "{queue:?}: reading is retried: {error}");
                    }
                    thread::park_timeout(READ_AGAIN);
                }
                read => {
                    return told_of(
                        queue,
                        read.map_err(|error| error.to_string())
                            .and_then(|it| decode(at, it)),
                    );
                }
            }
        }
    }

    /// Reads a block; `None` if it cannot be read, and why is in the log.
    pub(crate) fn block(&self, queue: &Queue, at: ReadAt) -> Option<Arc<Block>> {
        told_of(queue, self.read_block(queue.id, at))
    }

    /// Reads a block.
    ///
    /// # Errors
    /// It cannot be read, in words: what was moved or settled since somebody was told the place is gone from there.
    pub(crate) fn read_block(&self, queue: QueueId, at: ReadAt) -> Result<Arc<Block>, String> {
        let bytes = self.fetch(queue, at).map_err(|error| error.to_string())?;
        decode(at, bytes)
    }

    fn fetch(&self, queue: QueueId, at: ReadAt) -> Result<Vec<u8>, StorageError> {
        match at {
            ReadAt::Log(position) => self.log.read(position),
            ReadAt::Segment(place) => self.segments.read(queue.0, stored_place(place)),
        }
    }
}

/// A block that was read, or a line of log.
fn told_of(queue: &Queue, read: Result<Arc<Block>, String>) -> Option<Arc<Block>> {
    read.inspect_err(|reason| {
        tracing::error!(
            area = "storage",
            "{queue:?}: messages are lost, they cannot be read back: {reason}"
        )
    })
    .ok()
}

fn decode(at: ReadAt, bytes: Vec<u8>) -> Result<Arc<Block>, String> {
    match at {
        ReadAt::Log(_) => match entry(&bytes).and_then(|(_, record)| Record::decode(record)) {
            Some(Record::Enqueued { block, .. }) => Ok(block),
            _ => Err("the log entry is not the messages that were expected".to_string()),
        },
        ReadAt::Segment(_) => decode_entry(bytes).ok_or("the segment entry holds no messages".to_string()),
    }
}

fn decode_entry(mut bytes: Vec<u8>) -> Option<Arc<Block>> {
    let persistent = *bytes.first()? == 1;
    let received = Timestamp(u64::from_le_bytes(bytes.get(1..9)?.try_into().ok()?));
    bytes.drain(..9);
    Block::from_bytes(bytes, persistent, received).map(Arc::new)
}

/// The storage room's word for a place.
pub fn stored_place(place: Place) -> storage::Place {
    storage::Place {
        segment: place.segment,
        offset: place.offset,
        length: place.length,
    }
}
