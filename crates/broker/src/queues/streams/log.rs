//! What the host of a stream and its readers share: the files, the newest chunks, and how far all is safe.

use super::feeding::{Asked, Feeding};
use super::writing::Writing;
use crate::node::Node;
use crate::queues::Queue;
use bytes::Bytes;
use cluster::{GroupId, MemberId};
use model::QueueId;
use model::chunk::{ChunkKind, HEADER_BYTES, Header};
use queue::Request;
use queue::stream::{Record, Start};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use storage::{Page, StorageError, StreamCursor, StreamDamage, StreamEntry, StreamFiles, TornEnd};

/// The newest chunks that readers have not taken are kept in memory up to so many bytes, so that they need no file.
const TAIL_BYTES: usize = 2 << 20;

/// So many bytes are read of a file at once.
const PAGE_BYTES: usize = 256 << 10;

/// There is no such offset.
const NONE: u64 = u64::MAX;

/// A stream's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFigures {
    /// The first offset that is there, or the next one if there is none.
    pub first_offset: u64,
    /// The next offset that readers wait for: everything below is safe.
    pub committed: u64,
    /// How many segments there are.
    pub segments: usize,
    /// How many read, over both protocols.
    pub readers: usize,
}

/// What the host of a stream and its readers share.
pub struct StreamLog {
    pub(super) id: QueueId,
    pub(super) name: Box<str>,
    pub(super) node: Arc<Node>,
    pub(super) files: StreamFiles,
    /// The group whose committed entries go to the files, if several nodes have the stream.
    pub(super) group: Option<GroupId>,
    pub(super) queue: OnceLock<Weak<Queue>>,
    committed: AtomicU64,
    last_chunk: AtomicU64,
    /// Those who take chunks or messages.
    readers: AtomicUsize,
    tail: Mutex<Tail>,
    io: Mutex<Io>,
    /// What is damaged, as far as it was come upon.
    damage: Mutex<BTreeSet<StreamDamage>>,
    /// So many messages are in it.
    lost: AtomicU64,
}

/// The newest chunks, in order.
#[derive(Default)]
struct Tail {
    chunks: VecDeque<TailChunk>,
    bytes: usize,
}

struct TailChunk {
    next: u64,
    record: Record,
    /// So many readers have taken it.
    taken: usize,
}

/// What goes to threads of the node and comes from them.
#[derive(Default)]
pub(super) struct Io {
    pub(super) writing: Writing,
    pub(super) feeding: Feeding,
    pub(super) asked: BTreeMap<MemberId, Asked>,
    loaded: Vec<Loaded>,
}

/// What was read for a consumer of messages.
pub(super) struct Loaded {
    /// Whose it is.
    pub consumer: model::ConsumerId,
    /// Where the next read goes on; `None` if the stream has nothing, or could not be read.
    pub cursor: Option<StreamCursor>,
    /// The chunks; `None` if they cannot be read.
    pub chunks: Option<VecDeque<Bytes>>,
}

/// What a stream is called in the log.
pub(super) fn name_of(known: &catalog::Queue) -> Box<str> {
    format!("stream '{}' in vhost '{}'", known.name, known.vhost).into()
}

impl StreamLog {
    /// Around opened files, of which everything is safe.
    pub(super) fn new(
        known: &catalog::Queue,
        node: Arc<Node>,
        files: StreamFiles,
        group: Option<GroupId>,
    ) -> Arc<Self> {
        let (_, next) = files.bounds();
        Arc::new(Self {
            id: known.id,
            name: name_of(known),
            node,
            files,
            group,
            queue: OnceLock::new(),
            committed: AtomicU64::new(next),
            last_chunk: AtomicU64::new(NONE),
            readers: AtomicUsize::new(0),
            tail: Mutex::default(),
            io: Mutex::new(Io {
                writing: Writing::new(next),
                feeding: Feeding::default(),
                asked: BTreeMap::new(),
                loaded: Vec::new(),
            }),
            damage: Mutex::default(),
            lost: AtomicU64::new(0),
        })
    }

    /// This cannot be read any more: it is told once, and never delivered.
    pub(super) fn is_damaged(&self, damage: &StreamDamage) {
        let mut known = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.insert(damage.clone()) {
            return;
        }
        let count = damage.count();
        self.lost.fetch_add(count, Ordering::Relaxed);
        tracing::error!(
            area = "storage",
            "{}: {damage}: {} from offset {} on lost, and what is tracked with that; it is left as it is and passed over, and all \
             else is kept",
            self.name,
            match count {
                1 => "1 message is".to_owned(),
                count => format!("{count} messages are"),
            },
            damage.first
        );
    }

    /// What a crash has left of a write was cut off.
    pub(super) fn is_torn(&self, torn: &TornEnd) {
        tracing::info!(
            area = "storage",
            "{}: {} ends at byte {} in a write that a crash interrupted; nothing in it was confirmed",
            self.name,
            torn.file.display(),
            torn.offset
        );
    }

    /// So many messages are known to be lost because files are damaged.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// This queue is turned when something was written or read. Once.
    pub(super) fn belongs_to(&self, queue: &Arc<Queue>) {
        let _ = self.queue.set(Arc::downgrade(queue));
    }

    /// The files.
    pub(super) fn files(&self) -> &StreamFiles {
        &self.files
    }

    /// Everything below this offset may be read.
    pub fn committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }

    /// Everything below this offset may be read from now on.
    pub(super) fn is_committed(&self, below: u64) {
        self.committed.store(below, Ordering::Release);
    }

    /// What is behind this offset was taken back, and comes again.
    pub(super) fn is_taken_back(&self, below: u64) {
        self.is_committed(below);
        let mut tail = self.tail();
        let before = tail.bytes;
        tail.end_at(below);
        self.node.streams.keeps(before, tail.bytes);
    }

    /// The first offset that is there, or the next one if there is none.
    pub fn first_offset(&self) -> u64 {
        match self.files.segment_count() {
            // A copy that begins anew.
            0 => self.committed(),
            _ => self.files.bounds().0,
        }
    }

    /// The offset behind what the files have, of which some may be taken back if a disk is full.
    pub(super) fn end(&self) -> u64 {
        match self.files.segment_count() {
            0 => self.committed(),
            _ => self.files.bounds().1,
        }
    }

    /// What operators want to know.
    pub fn figures(&self) -> StreamFigures {
        StreamFigures {
            first_offset: self.first_offset(),
            committed: self.committed(),
            segments: self.files.segment_count(),
            readers: self.readers.load(Ordering::Acquire),
        }
    }

    /// Where the last chunk that may be read begins; `None` if there is none.
    pub fn last_chunk(&self) -> Option<u64> {
        let known = self.last_chunk.load(Ordering::Acquire);
        if known != NONE {
            return Some(known);
        }
        let last = self.committed().checked_sub(1)?;
        self.chunk_at(last)
    }

    /// The first offset of the chunk that has this one.
    fn chunk_at(&self, offset: u64) -> Option<u64> {
        match self.files.find(offset) {
            Ok(cursor) => cursor.map(|cursor| cursor.next()),
            Err(error) => {
                self.complain(&error);
                None
            }
        }
    }

    /// With which offset somebody begins who asks for this.
    pub fn begin(&self, from: Start) -> u64 {
        let (first, committed) = (self.first_offset(), self.committed());
        let within = |offset: u64| offset.max(first).min(committed);
        match from {
            Start::First => first,
            // A copy that lags lacks what has been there before.
            Start::Next => committed.max(self.end_of_hole()),
            Start::Offset(offset) => within(offset),
            Start::Last => self.last_chunk().map_or(committed, within),
            Start::Time(ms) => match self.files.find_time(ms) {
                Ok(cursor) => cursor.map_or(committed, |cursor| within(cursor.next())),
                Err(error) => {
                    self.complain(&error);
                    committed
                }
            },
        }
    }

    /// The first offset of the chunk with which somebody begins who asks for this, or of the first one that will be there.
    pub fn resolve(&self, from: Start) -> u64 {
        let at = self.begin(from);
        let is_there = at < self.committed();
        is_there.then(|| self.chunk_at(at)).flatten().unwrap_or(at)
    }

    pub(crate) fn complain(&self, error: &StorageError) {
        tracing::error!(area = "storage", "{}: {error}", self.name);
    }

    pub(super) fn attach(&self) {
        self.readers.fetch_add(1, Ordering::AcqRel);
    }

    /// The last one that leaves takes what is kept for readers along.
    pub(super) fn detach(&self) {
        if self.readers.fetch_sub(1, Ordering::AcqRel) == 1 {
            let gone = std::mem::take(&mut *self.tail());
            self.node.streams.keeps(gone.bytes, 0);
        }
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn io(&self) -> MutexGuard<'_, Io> {
        self.io.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The chunk of messages with this offset, if it is among the newest ones. Whoever takes it counts as having read it.
    pub(super) fn newest(&self, offset: u64) -> Option<Bytes> {
        let mut tail = self.tail();
        let chunk = tail.with(offset)?;
        chunk.taken += 1;
        let record = chunk.record.clone();
        let before = tail.bytes;
        tail.shrink(self.readers.load(Ordering::Acquire));
        self.node.streams.keeps(before, tail.bytes);
        Some(Bytes::from_owner(Owned(record)))
    }

    /// Reads chunks from a file, from this offset on. The cursor is where an earlier read has ended, if that was there.
    ///
    /// # Errors
    /// The file cannot be read. What is damaged is passed over.
    pub(super) fn read(
        &self,
        cursor: &mut Option<StreamCursor>,
        offset: u64,
        below: u64,
    ) -> Result<VecDeque<Bytes>, StorageError> {
        if cursor.as_ref().is_none_or(|cursor| cursor.next() != offset) {
            *cursor = self.files.find(offset)?;
        }
        let Some(cursor) = cursor else {
            return Ok(VecDeque::new());
        };
        loop {
            match self.files.read(cursor, below, PAGE_BYTES) {
                Err(StorageError::Corrupt { .. }) => {
                    let damage = self.files.skip(cursor)?;
                    self.is_damaged(&damage);
                }
                Ok(page) if page.is_empty() || cursor.next() > offset => return Ok(chunks(page)),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Has a page read for a consumer of messages; the queue is turned with it.
    pub(super) fn load(
        self: &Arc<Self>,
        consumer: model::ConsumerId,
        mut cursor: Option<StreamCursor>,
        offset: u64,
        below: u64,
    ) {
        let log = self.clone();
        self.node.streams.read(self.id, move || {
            // After a panic it is as if it could not be read: the consumer ends, and others go on.
            let read = catch_unwind(AssertUnwindSafe(|| log.read(&mut cursor, offset, below)));
            let chunks = read
                .ok()
                .and_then(|read| read.inspect_err(|error| log.complain(error)).ok());
            log.io().loaded.push(Loaded {
                consumer,
                cursor,
                chunks,
            });
            log.turn();
        });
    }

    /// What was read since this was asked.
    pub(super) fn take_loaded(&self) -> Vec<Loaded> {
        std::mem::take(&mut self.io().loaded)
    }

    /// What is in memory, in bytes.
    pub(super) fn memory(&self) -> usize {
        let io = self.io();
        let waits = io.writing.pending_bytes + io.feeding.bytes();
        drop(io);
        waits + self.tail().bytes
    }

    /// Keeps chunks for readers, if there are some, and the node has memory for that.
    pub(super) fn keep_newest<'a>(&self, records: impl Iterator<Item = &'a Record>) {
        let may_keep = self.node.streams.may_keep();
        let readers = if may_keep {
            self.readers.load(Ordering::Acquire)
        } else {
            0
        };
        let mut tail = self.tail();
        let before = tail.bytes;
        for record in records {
            let header = *record.chunk().header();
            if header.records == 0 {
                continue;
            }
            self.last_chunk.store(header.first_offset, Ordering::Release);
            tail.bytes += record.bytes().len();
            tail.chunks.push_back(TailChunk {
                next: header.next_offset(),
                record: record.clone(),
                taken: 0,
            });
        }
        tail.shrink(readers);
        self.node.streams.keeps(before, tail.bytes);
    }

    pub(super) fn turn(&self) {
        if let Some(queue) = self.queue.get().and_then(Weak::upgrade) {
            queue.submit(Request::Wake);
        }
    }
}

impl Tail {
    /// Lets go of what is behind this offset.
    fn end_at(&mut self, below: u64) {
        while let Some(newest) = self.chunks.pop_back_if(|chunk| chunk.next > below) {
            self.bytes -= newest.record.bytes().len();
        }
    }

    /// The chunk with this offset. Some are missing before one that was kept: those of a round that failed in the middle.
    fn with(&mut self, offset: u64) -> Option<&mut TailChunk> {
        let at = self.chunks.partition_point(|chunk| chunk.next <= offset);
        let chunk = self.chunks.get_mut(at)?;
        (chunk.record.chunk().header().first_offset <= offset).then_some(chunk)
    }

    /// Lets go of what all have taken, and of the oldest beyond the limit.
    fn shrink(&mut self, readers: usize) {
        while let Some(oldest) = self.chunks.front()
            && (oldest.taken >= readers || self.bytes > TAIL_BYTES)
        {
            self.bytes -= oldest.record.bytes().len();
            self.chunks.pop_front();
        }
    }
}

impl Drop for StreamLog {
    fn drop(&mut self) {
        self.node.streams.keeps(self.tail().bytes, 0);
    }
}

/// A record's bytes, for as long as somebody needs them.
struct Owned(Record);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// The chunks of a page, which share its memory.
fn chunks(page: Page) -> VecDeque<Bytes> {
    let (bytes, entries) = page.into_parts();
    let bytes = Bytes::from(bytes);
    entries.into_iter().map(|(_, at)| bytes.slice(at)).collect()
}

/// A record as the files take it.
pub(super) fn entry(record: &Record) -> StreamEntry<'_> {
    let chunk = record.chunk();
    let header = *chunk.header();
    StreamEntry {
        first: header.first_offset,
        count: header.records,
        tracks: header.kind != ChunkKind::User || header.trailer_bytes > 0,
        time_ms: header.timestamp.0,
        term: 0,
        index: 0,
        starts_file: header.kind == ChunkKind::TrackingSnapshot,
        bytes: record.bytes(),
        checksum: chunk.whole_checksum(),
    }
}

/// What a chunk says of itself, and where in it its filter and its entries are, if it has messages.
pub(super) fn parts(bytes: &[u8]) -> Option<(Header, std::ops::Range<usize>, std::ops::Range<usize>)> {
    let header = Header::read(bytes).ok()?;
    let (at, length) = (header.entries_at(), header.entries_bytes as usize);
    let whole = header.records > 0 && at.checked_add(length)? <= bytes.len();
    whole.then_some((
        header,
        HEADER_BYTES..HEADER_BYTES + usize::from(header.filter_bytes),
        at..at + length,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Timestamp;
    use model::chunk::{Entry, checksum};

    fn chunk(first_offset: u64, records: u16) -> TailChunk {
        let mut entries = Vec::new();
        (0..records).for_each(|_| Entry::Message(b"x").write(&mut entries));
        let header = Header {
            kind: ChunkKind::User,
            entries: records,
            records: records.into(),
            timestamp: Timestamp(1),
            epoch: 1,
            first_offset,
            crc: checksum(&entries),
            entries_bytes: entries.len() as u32,
            trailer_bytes: 0,
            filter_bytes: 0,
        };
        let mut bytes = header.to_bytes().to_vec();
        bytes.extend_from_slice(&entries);
        TailChunk {
            next: header.next_offset(),
            record: Record::new(bytes).expect("a chunk"),
            taken: 0,
        }
    }

    #[test]
    fn what_is_missing_among_the_newest_chunks_is_not_passed_over() {
        let mut tail = Tail {
            // What comes between these was written by a round of which the rest failed.
            chunks: [chunk(10, 3), chunk(15, 2), chunk(17, 4)].into(),
            bytes: 0,
        };
        let mut first_with = |offset| {
            let chunk = tail.with(offset)?;
            Some(chunk.record.chunk().header().first_offset)
        };
        let found: Vec<_> = (9..22).filter_map(|at| Some((at, first_with(at)?))).collect();
        let expected = [10, 10, 10, 15, 15, 17, 17, 17, 17];
        let offsets = (10..13).chain(15..21);
        assert_eq!(found, offsets.zip(expected).collect::<Vec<_>>());
    }
}
