//! What a disk does for transfers: bodies are read for peers, and what peers sent is put into segments.

use super::frame::{Entry, Head, PIECE_BYTES};
use crate::node::pager::StoreFiles;
use crate::node::paging::{Found, Nearby, Paged, Unread};
use model::{Mutant, Ranges, Seq};
use queue::store::{Bytes, EntryBuilder, Piece, Stored, Whereabouts};

/// What the log says when bodies that were asked for cannot be kept.
const UNSTORED: &str = "bodies of other nodes cannot be stored";

/// Bodies for a peer.
#[derive(Default)]
struct Reading {
    entries: Vec<Entry>,
    /// Of the entry that is being put together.
    open: Vec<u8>,
    bytes: usize,
    lost: Ranges,
}

/// Reads for a peer as much as fits a frame, or one message: the entries, and what can't be read, now or later. What
/// can't be read just now is left out.
pub fn read_entries(store: &impl Paged, files: &StoreFiles, found: &Whereabouts) -> (Vec<Entry>, Ranges) {
    let (mut reading, mut nearby) = (Reading::default(), Nearby::default());
    for piece in &found.pieces {
        if !reading.piece(store, files, piece, &mut nearby) {
            break;
        }
    }
    (reading.entries, reading.lost)
}

impl Reading {
    /// Whether there is space for more.
    fn piece(&mut self, store: &impl Paged, files: &StoreFiles, piece: &Piece, nearby: &mut Nearby) -> bool {
        let mut first = piece.first;
        for part in &piece.parts {
            let last = first + u64::from(part.count) - 1;
            let found = match &part.bytes {
                Bytes::Memory(block) => Ok(Found::intact(block.clone())),
                Bytes::Source(source) => store.read(files, *source, nearby),
            };
            match found {
                Ok(found) => {
                    if !self.part(&found, first..=last, part.from as usize) {
                        return false;
                    }
                }
                Err(Unread::Damaged(_)) => self.lost.push_span(first, last),
                Err(Unread::Failed(_)) => {}
            }
            first = last + 1;
        }
        true
    }

    fn part(&mut self, found: &Found, seqs: std::ops::RangeInclusive<Seq>, from: usize) -> bool {
        let Found { block, damaged } = found;
        let mut head: Option<Head> = None;
        let room = PIECE_BYTES.saturating_sub(self.bytes);
        let count = (seqs.end() - seqs.start() + 1) as usize;
        self.open.reserve(block.slice(from, count).len().min(room));
        for (seq, at) in seqs.zip(from..) {
            if damaged.contains(at as u64) || at >= block.len() {
                self.lost.push(seq);
                self.close(&mut head);
                continue;
            }
            let bytes = block.slice(at, 1);
            if self.bytes > 0 && self.bytes + bytes.len() > PIECE_BYTES {
                self.close(&mut head);
                return false;
            }
            self.bytes += bytes.len();
            self.open.extend_from_slice(bytes);
            match &mut head {
                Some(head) => head.count += 1,
                None => {
                    head = Some(Head {
                        first: seq,
                        count: 1,
                        persistent: block.persistent(),
                        received: block.received(),
                    });
                }
            }
        }
        self.close(&mut head);
        true
    }

    fn close(&mut self, head: &mut Option<Head>) {
        let bytes = std::mem::take(&mut self.open);
        if let Some(head) = head.take() {
            let bytes = bytes.into();
            self.entries.push(Entry { head, bytes });
        }
    }
}

/// Bodies that were put into segments, and are to be synced.
pub struct Written {
    stored: Vec<Stored>,
    /// What was to be put there, if somebody asks for it again that could not be.
    wanted: Ranges,
}

impl Written {
    fn write(
        store: &impl Paged,
        files: &StoreFiles,
        wanted: Ranges,
        entries: &mut dyn Iterator<Item = (Seq, u32, EntryBuilder)>,
    ) -> Self {
        let stored = store.append(files, entries, UNSTORED);
        files.segments.await_sync(store.owner());
        Self { stored, wanted }
    }

    /// Bodies of other nodes. What follows the first that can't be written is not looked at any more.
    pub fn entries(store: &impl Paged, files: &StoreFiles, entries: &[Entry]) -> Self {
        let mut wanted = Ranges::new();
        let heads = entries.iter().map(|entry| entry.head);
        heads.for_each(|head| wanted.push_span(head.first, head.last()));
        let mut built = entries.iter().filter_map(|entry| {
            let Head {
                first,
                count,
                persistent,
                received,
            } = entry.head;
            let block = entry.block()?;
            let mut built = EntryBuilder::new(persistent, received);
            built.push(&block, 0, block.len());
            built.finish();
            Some((first, count, built))
        });
        Self::write(store, files, wanted, &mut built)
    }

    /// Copies of bodies that are here, as far as they can be read.
    pub fn copies(store: &impl Paged, files: &StoreFiles, pieces: &[Piece]) -> Self {
        let mut nearby = Nearby::default();
        let mut built = pieces.iter().filter_map(|piece| {
            let built = store.entry(files, piece, &mut nearby, &mut Ranges::new())?;
            Some((piece.first, piece.count, built))
        });
        Self::write(store, files, Ranges::new(), &mut built)
    }

    /// Has them synced, which may be long after they were written. Where they are, and what was not stored.
    pub fn sync(self, store: &impl Paged, files: &StoreFiles) -> (Vec<Stored>, Ranges) {
        let Self { mut stored, wanted } = self;
        if !Mutant::KeepsUnsynced.is_on() && !store.sync(files, UNSTORED) {
            stored.clear();
        }
        let failed = wanted.without(&Stored::seqs(&stored));
        (stored, failed)
    }
}
