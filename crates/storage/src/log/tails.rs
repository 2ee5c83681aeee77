//! Tails: entries that members of groups still lack when the log gives up the file that has them.
//!
//! A member that was away for a moment catches up from the log. If the log comes round meanwhile, what it lacks is moved to
//! segments, as long as there is room; then it is read from there as if it still were in the log. A tail is nothing that the node
//! itself needs: what is in it is in a checkpoint. So nothing of it is synced, and a start begins without tails: whoever lacks
//! something then is sent a checkpoint.

use super::ledger::NumberHasher;
use super::stretch::Entries;
use super::{JournalId, Kind, Log};
use crate::error::StorageError;
use crate::segments::{Place, Segments};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So much is moved at once, in bytes; of an entry that is larger, all.
const PIECE: usize = 256 << 10;

/// How much is kept for members that were away, in bytes of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailLimits {
    /// Of one group.
    pub group_bytes: u64,
    /// Of all groups together.
    pub node_bytes: u64,
}

impl Default for TailLimits {
    fn default() -> Self {
        Self {
            group_bytes: 64 << 20,
            node_bytes: 1 << 30,
        }
    }
}

/// Consecutive entries, in one entry of the segments.
#[derive(Debug, Clone, Copy)]
struct Piece {
    from: u64,
    /// The first index behind.
    below: u64,
    place: Place,
    /// When it came, among all pieces.
    stamp: u64,
}

/// What a group has: pieces without a gap.
#[derive(Debug, Default)]
struct Tail {
    pieces: VecDeque<Piece>,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Books {
    tails: HashMap<u64, Tail, BuildHasherDefault<NumberHasher>>,
    /// The groups of all pieces, in the order in which these came.
    ages: BTreeMap<u64, u64>,
    bytes: u64,
    stamp: u64,
}

/// All tails of a node.
#[derive(Debug)]
pub(crate) struct Tails {
    segments: Arc<Segments>,
    limits: TailLimits,
    books: Mutex<Books>,
    /// Held while entries are moved: one after the other, or the pieces of a group would not be in order.
    moving: Mutex<()>,
}

impl Books {
    fn add(&mut self, group: u64, from: u64, below: u64, place: Place) {
        self.stamp += 1;
        let stamp = self.stamp;
        let tail = self.tails.entry(group).or_default();
        tail.pieces.push_back(Piece {
            from,
            below,
            place,
            stamp,
        });
        tail.bytes += place.disk_bytes();
        self.bytes += place.disk_bytes();
        self.ages.insert(stamp, group);
    }

    /// Takes out a group's oldest piece.
    fn take_first(&mut self, group: u64) -> Option<Place> {
        let tail = self.tails.get_mut(&group)?;
        let piece = tail.pieces.pop_front()?;
        let bytes = piece.place.disk_bytes();
        tail.bytes -= bytes;
        if tail.pieces.is_empty() {
            self.tails.remove(&group);
        }
        self.bytes -= bytes;
        self.ages.remove(&piece.stamp);
        Some(piece.place)
    }

    /// Takes out a group's oldest piece if nothing in it is of this index or above.
    fn take_below(&mut self, group: u64, below: u64) -> Option<Place> {
        let first = self.tails.get(&group)?.pieces.front()?;
        (first.below <= below).then(|| self.take_first(group)).flatten()
    }

    /// Takes out what there is no room for.
    fn take_excess(&mut self, group: u64, limits: TailLimits) -> Option<(u64, Place)> {
        let of_group = self.tails.get(&group).map_or(0, |tail| tail.bytes);
        let oldest = match self.bytes > limits.node_bytes {
            true => self.ages.first_key_value().map(|(_, group)| *group)?,
            false => group,
        };
        let excess = of_group > limits.group_bytes || self.bytes > limits.node_bytes;
        excess.then(|| Some((oldest, self.take_first(oldest)?))).flatten()
    }

    fn piece(&self, group: u64, index: u64) -> Option<Piece> {
        let pieces = &self.tails.get(&group)?.pieces;
        let piece = pieces.get(pieces.partition_point(|piece| piece.below <= index))?;
        (piece.from <= index).then_some(*piece)
    }
}

fn owner(group: u64) -> JournalId {
    JournalId::new(Kind::GROUP, group)
}

impl Tails {
    pub(crate) fn new(segments: Arc<Segments>, limits: TailLimits) -> Self {
        Self {
            segments,
            limits,
            books: Mutex::default(),
            moving: Mutex::default(),
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves what the log has of these entries.
    fn keep(&self, log: &Log, group: u64, from: u64, below: u64) -> Result<(), StorageError> {
        let _moving = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = |tail: &Tail| tail.pieces.back().map(|piece| piece.below);
        let known = self.books().tails.get(&group).and_then(ends);
        let counts = log.shared.lock().groups.tail_end(group);
        let mut next = from;
        match known {
            Some(known) if known >= from && counts.is_some_and(|end| end >= known) => next = known,
            // Nobody who lacks what is in it could go on behind it; or it has what never was committed.
            Some(_) => self.release(log, group, u64::MAX),
            None => {}
        }
        // From here on it is known if something that is being moved is overwritten.
        log.shared.lock().groups.set_tail(group, Some(below.max(next)));
        while next < below {
            let payloads = log.entries_in_log(group, next, below, PIECE)?;
            let parts: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
            let mut places = Vec::with_capacity(1);
            self.segments.append(owner(group), [parts], &mut places)?;
            self.segments.let_go(owner(group));
            let first = next;
            next += payloads.len() as u64;
            let mut books = self.books();
            for place in places {
                books.add(group, first, next, place);
            }
            while let Some((group, place)) = books.take_excess(group, self.limits) {
                self.segments.free(owner(group), place);
            }
        }
        Ok(())
    }

    /// Entries below this index are not kept any longer.
    fn release(&self, log: &Log, group: u64, below: u64) {
        let mut books = self.books();
        while let Some(place) = books.take_below(group, below) {
            self.segments.free(owner(group), place);
        }
        if !books.tails.contains_key(&group) {
            log.shared.lock().groups.set_tail(group, None);
            drop(books);
            // Perhaps nobody lags for a long time.
            self.segments.rest(owner(group));
        }
    }

    /// The entries from `index` on to the end of its piece; `None` if there is none.
    pub(crate) fn entries(&self, group: u64, index: u64) -> Result<Option<Entries>, StorageError> {
        let Some(piece) = self.books().piece(group, index) else {
            return Ok(None);
        };
        let read = self.segments.read_parts(owner(group), piece.place)?;
        let parts = (piece.from..piece.below).zip(read.parts());
        let parts = parts.filter(|(found, _)| *found >= index);
        // What follows a part that is damaged is of no use.
        let intact = parts.map_while(|(found, part)| Some((found, part?.to_vec())));
        let entries: Entries = intact.collect();
        match entries.is_empty() {
            true => Err(StorageError::Gone {
                what: format!("entry {index} of {} cannot be read any more", owner(group)),
            }),
            false => Ok(Some(entries)),
        }
    }
}

impl Log {
    /// From now on [`keep_tail`](Self::keep_tail) has a place: these segments, for owners of the kind of groups. Once.
    pub fn keep_tails_in(&self, segments: Arc<Segments>, limits: TailLimits) {
        let _ = self.tails.set(Tails::new(segments, limits));
    }

    /// Before a group's entries are released: members that were away still lack those from `from` on and before `below`. They go
    /// to the group's tail, and [`group_entries`](Self::group_entries) finds them there. What there is no room for is given up,
    /// oldest first: who lacks it needs a checkpoint. Reads and writes files, so it is for a thread that may wait.
    ///
    /// # Errors
    /// The entries cannot be read, or not be written. What is in the tail stays there.
    pub fn keep_tail(&self, group: u64, from: u64, below: u64) -> Result<(), StorageError> {
        match self.tails.get() {
            Some(tails) => tails.keep(self, group, from, below),
            None => Ok(()),
        }
    }

    /// Nobody lacks what a group's tail has below this index, or it is not waited for any longer.
    pub fn release_tail(&self, group: u64, below: u64) {
        if let Some(tails) = self.tails.get() {
            tails.release(self, group, below);
        }
    }

    /// Bytes that all tails have together.
    pub fn tail_bytes(&self) -> u64 {
        self.tails.get().map_or(0, |tails| tails.books().bytes)
    }

    /// A group has no member here any more: its entries, its promises, its contents and its tail are not needed.
    pub fn forget_group(&self, group: u64) {
        self.append(|batch| batch.forget_group(group));
        self.release_tail(group, u64::MAX);
    }
}
