//! What a message store is told and asked by its host, what it has remembered, and what it orders. None of it leaves the node:
//! another node has its own store, with the same messages in other places.

use model::{Block, Ranges, Seq};
use smallvec::SmallVec;
use std::sync::Arc;

/// Rows without places are put together up to so many bytes: what a message takes of a row is an estimate.
const BARE_ROW: u64 = 64 * 1024;

/// Where a record stands in the node's log. Later records stand higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPlace(pub u64);

impl LogPlace {
    /// Of a record that is not committed: it stands nowhere yet.
    pub const NONE: Self = Self(u64::MAX);
}

/// Where an entry lies in the segments (the storage crate's words, carried as plain numbers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Number of the segment file.
    pub segment: u32,
    /// Byte offset in it.
    pub offset: u32,
    /// Length in bytes.
    pub length: u32,
}

/// Where bytes are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The block of the record that stands here in the log.
    Log(LogPlace),
    /// An entry of the segments.
    Segment(Place),
}

/// A request to the store.
#[derive(Debug)]
pub enum Request {
    /// Bodies may take this many bytes of memory from now on; the rest is paged out.
    Shrink { memory: usize },
    /// Take what `Effect::Load` has brought.
    FinishLoad { first: Seq, read: Read },
    /// Take what became of `Effect::Store`: these pieces are now in segments (synced, if they were to be). Pieces that
    /// could not be written are missing; `unreadable` are the messages of which the bytes were not where they should
    /// be, or damaged. Each `Store` is answered once, in order.
    FinishStore { pieces: Vec<Stored>, unreadable: Ranges },
    /// The log wants to forget what stands before `before`: move what the store needs of it to segments, then write everything
    /// down.
    Checkpoint { before: LogPlace },
    /// This segment is mostly empty: move what is left of it to another.
    Compact { segment: u32 },
    /// The queue's journal is about to be another one: move to segments, synced, whatever else holds, be it the log or memory
    /// alone. From then on all messages count as journaled.
    MoveOut,
    /// What `Effect::FindElsewhere` asked for was found, and lies in segments now (synced).
    Found { pieces: Vec<Stored> },
}

/// What came of reading a block back.
#[derive(Clone, Debug)]
pub enum Read {
    /// The whole block that was found there. The messages at the `damaged` positions are not what was written: something else
    /// stands in their places, which nobody is to see.
    Found { block: Arc<Block>, damaged: Ranges },
    /// Nothing of it can be read, now or later: it is not there, or damaged.
    Damaged,
    /// It could not be read just now, which says nothing about what is there.
    Failed,
}

impl Read {
    /// An intact block.
    pub fn intact(block: Arc<Block>) -> Self {
        let damaged = Ranges::new();
        Self::Found { block, damaged }
    }
}

/// An order to the host.
#[derive(Debug)]
pub enum Effect {
    /// Read back the block at `source`, which message `first` lies in; answered by `Request::FinishLoad` with the same `first`
    /// and the whole block found there.
    Load {
        first: Seq,
        source: Source,
        /// How often it could not be read before.
        failures: u32,
    },
    /// Write these pieces to segments, in order; answered by `Request::FinishStore`, one answer for each `Store`
    /// and in the order of the `Store`s. `durable` pieces must be synced before the answer.
    Store { pieces: Vec<Piece>, durable: bool },
    /// Nothing in these entries is needed any more.
    Release { places: Vec<Place> },
    /// Remember this beside the machine's records, in the log of this node only.
    Remember(Record),
    /// Remember the machine's contents and the store's places together, as they are at the end of this turn.
    Checkpoint,
    /// Find these messages elsewhere: they cannot be read here, now or later. Their machine keeps them until it is told
    /// to give them up.
    FindElsewhere { seqs: Ranges },
}

/// A fact about where bytes lie on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// These now lie in segments.
    Moved { pieces: Vec<Stored> },
}

/// A contiguous piece of the queue in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its first message.
    pub first: Seq,
    /// How many messages, without gaps.
    pub count: u32,
    /// Where.
    pub place: Place,
}

impl Stored {
    /// Its last message. The count of what comes from elsewhere may lie.
    pub fn last(&self) -> Seq {
        self.first.saturating_add(u64::from(self.count).saturating_sub(1))
    }

    /// All of their messages.
    pub fn seqs(these: &[Self]) -> Ranges {
        let mut seqs = Ranges::new();
        these.iter().for_each(|it| seqs.push_span(it.first, it.last()));
        seqs
    }
}

/// Where everything is that survives a restart, at one moment. Which of the messages still exist, the machine knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Ascending.
    pub rows: Vec<Row>,
}

impl Table {
    /// The earliest place in the log that something in it needs.
    pub fn first_in_log(&self) -> Option<LogPlace> {
        let places = self.rows.iter().filter_map(|row| match row.source {
            Some(Source::Log(place)) => Some(place),
            Some(Source::Segment(_)) | None => None,
        });
        places.min()
    }

    /// The same for a node that has the bytes of none of the messages: what it is told of each row is how large it is.
    /// Neighbours become one row.
    pub(crate) fn without_places(self) -> Self {
        let mut rows: Vec<Row> = Vec::new();
        for row in self.rows {
            let bare = Row {
                source: None,
                base: row.first,
                ..row
            };
            match rows.last_mut().and_then(|last| last.with(&bare)) {
                Some(both) => {
                    rows.pop();
                    rows.push(both);
                }
                None => rows.push(bare),
            }
        }
        Self { rows }
    }

    /// The records that brought messages since stand there, by the first message of each, which rise. Rows of others are left
    /// out.
    pub fn complete(&mut self, placed: &[(Seq, LogPlace)]) {
        self.rows.retain_mut(|row| {
            let Some(Source::Log(place @ LogPlace::NONE)) = &mut row.source else {
                return true;
            };
            let known = placed.binary_search_by_key(&row.base, |(first, _)| *first);
            *place = known.map_or(LogPlace::NONE, |at| placed[at].1);
            known.is_ok()
        });
    }
}

/// Messages that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The first of them.
    pub first: Seq,
    /// How many numbers they span, those of messages that are gone included.
    pub count: u32,
    /// Where their bytes are; `None` if they cannot be read here.
    pub source: Option<Source>,
    /// The number of the first message that is found there.
    pub base: Seq,
    /// The sum of their body lengths, gone ones included, in bytes.
    pub body_bytes: u64,
    /// How much there is to read, in bytes, roughly.
    pub weight: u64,
}

impl Row {
    /// This one and the next as one, if they are neighbours and small.
    fn with(&self, next: &Self) -> Option<Self> {
        let weight = self.weight.checked_add(next.weight)?;
        let neighbours = self.first.checked_add(u64::from(self.count)) == Some(next.first);
        (neighbours && weight <= BARE_ROW).then_some(Self {
            count: self.count.checked_add(next.count)?,
            body_bytes: self.body_bytes.checked_add(next.body_bytes)?,
            weight,
            ..*self
        })
    }
}

/// What a store knows of messages that somebody looks for.
#[derive(Debug, Default)]
pub struct Whereabouts {
    /// What can be read here.
    pub pieces: Vec<Piece>,
    /// What it would be to read, in bytes, roughly.
    pub bytes: u64,
    /// Messages that are not there any more, or never were.
    pub gone: Ranges,
    /// Messages that are there and cannot be read here.
    pub lost: Ranges,
}

/// A contiguous piece of the queue that is to be stored as one entry: the messages of its parts one behind the other.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Its first message.
    pub first: Seq,
    /// How many messages, without gaps; the sum over its parts.
    pub count: u32,
    /// What it is made of, in order; at least one. The entry's persistence and time of receipt are those of the first.
    pub parts: SmallVec<[Part; 1]>,
}

/// Messages of one block.
#[derive(Clone, Debug)]
pub struct Part {
    /// Where the block is.
    pub bytes: Bytes,
    /// Which of the block's messages is the first.
    pub from: u32,
    /// How many messages.
    pub count: u32,
}

/// Where a block is.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// Here.
    Memory(Arc<Block>),
    /// To be read.
    Source(Source),
}
