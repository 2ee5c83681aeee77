//! What the pager does for a message store, whoever's it is: reads and writes its segments.

use crate::node::journal::NodeLog;
use crate::node::pager::{StoreFiles, stored_place};
use model::{Block, Ranges, Seq};
use queue::store::{
    Bytes, EntryBuilder, LogPlace, Piece, Place, Read, Request, Source, Stored, decode_entry,
};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use storage::{JournalId, StorageError};

/// Entries are gathered up to so many bytes before they are written.
const GATHERED_BYTES: usize = 512 << 10;

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

/// What was read of a group's log beside what was asked for: entries that follow each other. Pieces of an order are mostly read
/// in the log's order, and single entries are small beside what has to be read to find one.
///
/// It is for one order: the log may have something else at these indices afterwards.
#[derive(Debug, Default)]
pub struct Nearby {
    /// The index of the first.
    first: u64,
    payloads: VecDeque<Vec<u8>>,
}

impl Nearby {
    /// The payload of the entry of this index, and of those behind if `read` has to be asked, which reads them from there on.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn entry(
        &mut self,
        index: u64,
        read: impl FnOnce() -> Result<VecDeque<Vec<u8>>, StorageError>,
    ) -> Result<Option<&[u8]>, StorageError> {
        let at = |first: u64| usize::try_from(index.checked_sub(first)?).ok();
        if at(self.first).is_none_or(|at| at >= self.payloads.len()) {
            (self.first, self.payloads) = (index, read()?);
        }
        let payload = at(self.first).and_then(|at| self.payloads.get(at));
        Ok(payload.map(Vec::as_slice))
    }
}

/// Whose message store it is.
pub trait Paged: fmt::Debug + Send {
    /// Whose the segments are.
    fn owner(&self) -> JournalId;

    /// The block that the record brought which stands here in the log; `None` if it brought none. What is read beside it may be
    /// left in `nearby`, and is not read again.
    ///
    /// # Errors
    /// The log can't be read there.
    fn logged(
        &self,
        log: &NodeLog,
        at: LogPlace,
        nearby: &mut Nearby,
    ) -> Result<Option<Arc<Block>>, StorageError>;

    /// It is deleted: what it still wanted written would never be.
    fn is_retired(&self) -> bool;

    /// Has the store take what became of its orders.
    fn answer(&self, files: &StoreFiles, request: Request);

    /// Reads a block that the store wants back.
    fn load(&self, files: &StoreFiles, first: Seq, source: Source, failures: u32) {
        let read = match self.read_for(files, source, failures, &mut Nearby::default()) {
            Ok(Found { block, damaged }) => Read::Found { block, damaged },
            Err(Unread::Damaged(_)) => Read::Damaged,
            Err(Unread::Failed(_)) => Read::Failed,
        };
        self.answer(files, Request::FinishLoad { first, read });
    }

    /// Writes the pieces in order. What cannot be written is left out of the answer; the store keeps it where it is.
    fn store(&self, files: &StoreFiles, pieces: &[Piece], durable: bool) {
        let pieces = if self.is_retired() { &[] } else { pieces };
        let (mut unreadable, mut nearby) = (Ranges::new(), Nearby::default());
        let mut entries = pieces.iter().filter_map(|piece| {
            Some((
                piece.first,
                piece.count,
                self.entry(files, piece, &mut nearby, &mut unreadable)?,
            ))
        });
        let pieces = self.write(files, &mut entries, durable, "its messages cannot be paged out");
        self.answer(files, Request::FinishStore { pieces, unreadable });
        self.rewrite_sparse(files);
    }

    /// Appends entries to the segments, up to the first that cannot be written; `durable`: they are synced. Returns where they
    /// are. `failure` is what the log says if something went wrong.
    fn write(
        &self,
        files: &StoreFiles,
        entries: &mut dyn Iterator<Item = (Seq, u32, EntryBuilder)>,
        durable: bool,
        failure: &str,
    ) -> Vec<Stored> {
        let mut stored = self.append(files, entries, failure);
        if !durable {
            files.segments.let_go(self.owner());
        } else if !self.sync(files, failure) {
            stored.clear();
        }
        stored
    }

    /// The same, without a word on when they are synced. Small entries are gathered and written together; so not much more than
    /// [`GATHERED_BYTES`] or one entry is in memory twice. What could not be written together with others is not there either.
    fn append(
        &self,
        files: &StoreFiles,
        entries: &mut dyn Iterator<Item = (Seq, u32, EntryBuilder)>,
        failure: &str,
    ) -> Vec<Stored> {
        let (mut stored, mut gathered, mut places) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let mut bytes = 0;
            while bytes < GATHERED_BYTES
                && let Some(entry) = entries.next()
            {
                bytes += entry.2.bytes();
                gathered.push(entry);
            }
            if gathered.is_empty() {
                return stored;
            }
            let parts = gathered.iter().map(|(.., entry)| entry.parts());
            if let Err(error) = files.segments.append(self.owner(), parts, &mut places) {
                tracing::error!(area = "storage", "{self:?}: {failure}: {error}");
                return stored;
            }
            for ((first, count, _), place) in gathered.drain(..).zip(places.drain(..)) {
                let place = store_place(place);
                stored.push(Stored { first, count, place });
            }
        }
    }

    /// Makes what was appended durable. Whether it is.
    fn sync(&self, files: &StoreFiles, failure: &str) -> bool {
        let synced = files.segments.sync(self.owner());
        if let Err(error) = &synced {
            tracing::error!(area = "storage", "{self:?}: {failure}: {error}");
        }
        synced.is_ok()
    }

    /// Has the store move what little is left of a file, so that the file goes: a stuck message doesn't keep its neighbours'
    /// space. Asked when more files are written and when transient messages free some; and each time the log comes
    /// round, which it does for queues at rest too.
    fn rewrite_sparse(&self, files: &StoreFiles) {
        if let Some(segment) = files.segments.sparse(self.owner()) {
            self.answer(files, Request::Compact { segment });
        }
    }

    /// The bytes of an entry; `None` if a part cannot be read. What is damaged of it is added to `unreadable`.
    fn entry(
        &self,
        files: &StoreFiles,
        piece: &Piece,
        nearby: &mut Nearby,
        unreadable: &mut Ranges,
    ) -> Option<EntryBuilder> {
        let mut entry: Option<EntryBuilder> = None;
        let mut first = piece.first;
        let mut whole = true;
        for part in &piece.parts {
            let last = first + u64::from(part.count) - 1;
            let found = match &part.bytes {
                Bytes::Memory(block) => Ok(Found::intact(block.clone())),
                Bytes::Source(source) => self.read_for(files, *source, 0, nearby),
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

    /// Reads a block of its messages.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self, files: &StoreFiles, source: Source, nearby: &mut Nearby) -> Result<Found, Unread> {
        let read = match source {
            Source::Log(at) => {
                let block = self.logged(&files.log, at, nearby);
                block.map(|block| block.map(Found::intact))
            }
            Source::Segment(place) => {
                files
                    .segments
                    .read_parts(self.owner(), stored_place(place))
                    .map(|entry| {
                        let (block, damaged) = decode_entry(place, entry.parts())?;
                        let block = Arc::new(block);
                        Some(Found { block, damaged })
                    })
            }
        };
        match read {
            Ok(Some(found)) => {
                if !found.damaged.is_empty() {
                    let count = found.damaged.count();
                    tracing::error!(
                        area = "storage",
                        "{self:?}: {count} of the messages in {source:?} are damaged"
                    );
                }
                Ok(found)
            }
            Ok(None) => Err(Unread::Damaged(format!("{source:?} holds no messages"))),
            Err(error) if error.is_damage() => Err(Unread::Damaged(error.to_string())),
            Err(error) => Err(Unread::Failed(error.to_string())),
        }
    }

    /// Reads a block that the store asked for. If it cannot be read, why is in the log.
    fn read_for(
        &self,
        files: &StoreFiles,
        source: Source,
        failures: u32,
        nearby: &mut Nearby,
    ) -> Result<Found, Unread> {
        let read = self.read(files, source, nearby);
        match &read {
            Err(Unread::Damaged(reason)) => {
                tracing::error!(
                    area = "storage",
                    "{self:?}: what was paged out is damaged: {reason}"
                );
            }
            Err(Unread::Failed(reason)) => tracing::warn!(
                area = "storage",
                "{self:?}: what was paged out cannot be read just now ({} times by now), it is tried again: {reason}",
                failures + 1
            ),
            Ok(_) => {}
        }
        read
    }
}

/// The store's word for a place in segments.
pub fn store_place(place: storage::Place) -> Place {
    Place {
        segment: place.segment,
        offset: place.offset,
        length: place.length,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_were_read_with_one_before_are_not_read_again() {
        let mut reads = Vec::new();
        let mut nearby = Nearby::default();
        let mut entry = |index: u64| {
            let read = || {
                reads.push(index);
                Ok((index..index + 3).map(|index| vec![index as u8]).collect())
            };
            nearby.entry(index, read).unwrap().unwrap()[0]
        };
        let found = [5, 6, 7, 8, 12, 13, 11].map(&mut entry);
        assert_eq!(found, [5, 6, 7, 8, 12, 13, 11]);
        assert_eq!(reads, [5, 8, 12, 11], "what lies before or behind them is");
    }

    #[test]
    fn after_a_failure_what_was_read_before_is_still_there() {
        let mut nearby = Nearby::default();
        let read = || Ok(VecDeque::from([vec![1], vec![2]]));
        assert_eq!(nearby.entry(1, read).unwrap(), Some(&[1][..]));
        let gone = || {
            let what = "it".into();
            Err(StorageError::Gone { what })
        };
        assert!(nearby.entry(3, gone).is_err());
        let read = || unreachable!("it is there");
        assert_eq!(nearby.entry(2, read).unwrap(), Some(&[2][..]));
    }
}
