//! What is known of the file that is written to, and how far everything in it is safe.

use super::StreamEntry;
use super::frame::FrameHead;
use super::part::{Extent, HEADER, Part};
use crate::error::StorageError;
use crate::file_system::{File, write_all_at};
use std::sync::Arc;

/// Of the newest file.
#[derive(Debug)]
pub(super) struct Writer {
    /// The file and its index, while it is written to.
    pub(super) open: Option<Open>,
    /// As far as it is synced.
    pub(super) safe: Mark,
    /// The length up to which room is reserved.
    pub(super) reserved: u64,
    /// Where the last row of the index points to.
    pub(super) row: Option<u64>,
    /// Entries that were appended since it was opened, without those that were taken back.
    pub(super) entries: u64,
    /// How often something was taken back.
    pub(super) taken_back: u64,
    /// A new file whose name is not known to be safe: it is removed before another attempt, which would find it there otherwise,
    /// and its name would seem to be safe.
    pub(super) unnamed: Option<Arc<Part>>,
    /// A write or a sync has failed: nothing is written any more.
    pub(super) failed: Option<StorageError>,
    /// Frames of one append, one behind the other, without the bytes of large entries.
    pub(super) buffer: Vec<u8>,
}

/// Entries of so many bytes are written from where they are: a call more costs less than a copy of them.
const LARGE: usize = 64 << 10;

/// Large entries of one append, each with the length of the buffer that goes before it.
pub(super) type Large<'a> = Vec<(usize, &'a [u8])>;

#[derive(Debug)]
pub(super) struct Open {
    pub(super) file: Arc<dyn File>,
    /// `None` if there is none: then it is done without.
    pub(super) index: Option<Arc<dyn File>>,
}

/// How far the newest file was written at some moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) extent: Extent,
    rows: u64,
    row: Option<u64>,
    pub(super) entries: u64,
}

impl Writer {
    /// Before anything is appended: all that this part has is safe, or there is none.
    pub(super) fn new(part: Option<&Part>) -> Self {
        let extent = part.map_or(
            Extent {
                end: HEADER as u64,
                next: 0,
                last_ms: 0,
            },
            Part::extent,
        );
        Self {
            open: None,
            safe: Mark {
                extent,
                rows: part.map_or(0, Part::rows),
                row: None,
                entries: 0,
            },
            reserved: extent.end,
            row: None,
            entries: 0,
            taken_back: 0,
            unnamed: None,
            failed: None,
            buffer: Vec::new(),
        }
    }

    /// There is no part any more.
    pub(super) fn clear(&mut self) {
        let entries = self.entries;
        let taken_back = self.taken_back + 1;
        *self = Self::new(None);
        (self.entries, self.safe.entries, self.taken_back) = (entries, entries, taken_back);
    }

    /// As far as the newest part is written now.
    pub(super) fn mark(&self, part: &Part) -> Mark {
        Mark {
            extent: part.extent(),
            rows: part.rows(),
            row: self.row,
            entries: self.entries,
        }
    }

    /// A new part was begun, in which there is nothing yet. All before it is safe.
    pub(super) fn begin(&mut self, part: &Part, open: Open) {
        self.open = Some(open);
        self.row = None;
        self.safe = self.mark(part);
        self.reserved = HEADER as u64;
    }

    /// What is not known to be safe is as if it had not been appended: it is to be written again, all of it, since after a
    /// failed sync nobody knows what of it is on the disk.
    pub(super) fn take_back(&mut self, part: Option<&Part>) {
        if let Some(part) = part {
            part.publish(self.safe.extent);
            part.set_rows(self.safe.rows);
        }
        self.row = self.safe.row;
        self.entries = self.safe.entries;
        self.reserved = self.safe.extent.end;
        self.taken_back += 1;
    }

    /// A part took the place of the last one, with one entry, and is safe. So is all that was before it.
    pub(super) fn replace(&mut self, part: &Part, open: Open) {
        self.open = Some(open);
        self.row = None;
        self.entries += 1;
        self.safe = self.mark(part);
        self.reserved = self.safe.extent.end;
    }

    /// Adds an entry's frame to the buffer, and says where that ends. Its bytes are among the large ones if they are. What is
    /// below `synced` is safe.
    pub(super) fn put<'a>(
        &mut self,
        (owner, position): (u64, u64),
        synced: u64,
        entry: &StreamEntry<'a>,
        large: &mut Large<'a>,
    ) -> Extent {
        let head = FrameHead {
            first: entry.first,
            count: entry.count,
            tracks: entry.tracks,
            time_ms: entry.time_ms,
            term: entry.term,
            index: entry.index,
            length: entry.bytes.len() as u32,
            checksum: entry.checksum,
            synced,
        };
        self.buffer.extend_from_slice(&head.encode(owner, position));
        match entry.bytes.len() < LARGE {
            true => self.buffer.extend_from_slice(entry.bytes),
            false => large.push((self.buffer.len(), entry.bytes)),
        }
        Extent {
            end: position + head.frame_bytes(),
            next: head.next(),
            last_ms: head.time_ms,
        }
    }

    /// Writes what was put, from there on.
    pub(super) fn write(&self, file: &dyn File, at: u64, large: &Large<'_>) -> std::io::Result<()> {
        let (mut at, mut from) = (at, 0);
        for (before, bytes) in large {
            let head = &self.buffer[from..*before];
            write_all_at(file, head, at)?;
            write_all_at(file, bytes, at + head.len() as u64)?;
            at += (head.len() + bytes.len()) as u64;
            from = *before;
        }
        write_all_at(file, &self.buffer[from..], at)
    }

    pub(super) fn check(&self) -> Result<(), StorageError> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// A write or a sync that failed is final: after a sync that did, the next one may succeed without having written anything.
    /// Not if the disk is full: then what is not safe is written again from memory, once there is room.
    pub(super) fn note<T>(&mut self, outcome: Result<T, StorageError>) -> Result<T, StorageError> {
        match &outcome {
            Ok(_) | Err(StorageError::Full { .. }) => {}
            Err(error) => self.failed = Some(error.clone()),
        }
        outcome
    }
}
