//! One file of a stream, the file of places beside it, and walking its frames.
//!
//! A file is named by the first number that is in it. It begins with [`HEADER`] bytes that say whose it is; frames follow. Beside
//! it stands the index: a row every 256 KiB (first number, time, position; 24 bytes). The index is never synced by itself and
//! may be torn: what it says is believed once the frame is there. Behind the last row a mark says how far the file was synced
//! last: the number that comes next, a checksum in place of the time, and the position.

use super::damage::StreamDamage;
use super::frame::{ENTRY_MOST, FrameHead, HEAD};
use crate::error::StorageError;
use crate::file_system::{Access, File, FileSystem, read_full_at};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a file begins with, in bytes.
pub(super) const HEADER: usize = 32;
const MAGIC: [u8; 8] = *b"LEVSTR\r\n";
const VERSION: u32 = 1;

/// A row of the index for so many bytes of frames.
pub(super) const ROW_EVERY: u64 = 256 << 10;
/// The length of a row, in bytes.
const ROW: usize = 24;
/// The same, for lengths of files.
pub(super) const ROW_BYTES: u64 = ROW as u64;
/// Frames are walked by reads of so many bytes.
const WINDOW: usize = 64 << 10;
/// The upper half of a mark's time, which no time has.
const MARK: u64 = 0xffff_ffff << 32;
/// So many numbers a byte may have at most: batches are compressed.
const NUMBERS_IN_A_BYTE: u64 = 1 << 16;
/// A mark is looked for in so many rows from the end on: behind it there are only rows of what was taken back.
const MARK_IN: u64 = 64;

/// A file of a stream. What it says of itself is published after each write, for readers on other threads.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) owner: u64,
    /// The first number that is or will be in it.
    pub(super) first: u64,
    pub(super) path: PathBuf,
    /// Where its frames end, in bytes.
    end: AtomicU64,
    /// The number behind the last one in it.
    next: AtomicU64,
    last_ms: AtomicU64,
    /// How many rows the index has.
    rows: AtomicU64,
}

/// A row of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) number: u64,
    pub(super) time_ms: u64,
    pub(super) position: u64,
}

/// What is known of a part at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) end: u64,
    pub(super) next: u64,
    pub(super) last_ms: u64,
}

impl Part {
    pub(super) fn new(dir: &Path, owner: u64, first: u64) -> Self {
        Self {
            owner,
            first,
            path: dir.join(format!("{first:020}.chunks")),
            end: AtomicU64::new(HEADER as u64),
            next: AtomicU64::new(first),
            last_ms: AtomicU64::new(0),
            rows: AtomicU64::new(0),
        }
    }

    /// The number that a file of this name begins with.
    pub(super) fn first_of(name: &str) -> Option<u64> {
        let number = name.strip_suffix(".chunks")?;
        (number.len() == 20).then_some(())?;
        number.parse().ok()
    }

    pub(super) fn index_path(&self) -> PathBuf {
        self.path.with_extension("index")
    }

    /// Where a file is made that is to take the place of this one.
    pub(super) fn draft_path(&self) -> PathBuf {
        self.path.with_extension("draft")
    }

    pub(super) fn extent(&self) -> Extent {
        // The end is read first: what is below it is described by what is read afterwards.
        let end = self.end.load(Ordering::Acquire);
        Extent {
            end,
            next: self.next.load(Ordering::Acquire),
            last_ms: self.last_ms.load(Ordering::Acquire),
        }
    }

    pub(super) fn publish(&self, extent: Extent) {
        self.last_ms.store(extent.last_ms, Ordering::Release);
        self.next.store(extent.next, Ordering::Release);
        self.end.store(extent.end, Ordering::Release);
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Acquire)
    }

    pub(super) fn set_rows(&self, rows: u64) {
        self.rows.store(rows, Ordering::Release);
    }

    pub(super) fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..20].copy_from_slice(&self.owner.to_le_bytes());
        header[20..28].copy_from_slice(&self.first.to_le_bytes());
        let crc = crc32fast::hash(&header[..28]);
        header[28..].copy_from_slice(&crc.to_le_bytes());
        header
    }

    /// True if the file has the header that it should have.
    ///
    /// # Errors
    /// It cannot be read, or another version has written it.
    pub(super) fn has_header(&self, file: &dyn File) -> Result<bool, StorageError> {
        let mut header = [0; HEADER];
        let read = self.io("read", read_full_at(file, &mut header, 0))?;
        let found = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        let crc = crc32fast::hash(&header[..28]).to_le_bytes();
        if read == HEADER && header[..8] == MAGIC && header[28..] == crc && found != VERSION {
            return Err(StorageError::Version {
                file: self.path.clone(),
                found,
                supported: VERSION,
            });
        }
        Ok(read == HEADER && header == self.header())
    }

    pub(super) fn open(&self, fs: &dyn FileSystem, access: Access) -> Result<Arc<dyn File>, StorageError> {
        self.io("open", fs.open(&self.path, access))
    }

    pub(super) fn io<T>(&self, action: &'static str, outcome: std::io::Result<T>) -> Result<T, StorageError> {
        outcome.map_err(|error| StorageError::from_io(action, &self.path, error))
    }

    pub(super) fn damaged(&self, position: u64, what: &'static str) -> StorageError {
        StorageError::corrupt(&self.path, position, what)
    }

    /// The head of the frame at this position; `None` if there is none.
    pub(super) fn head_at(&self, file: &dyn File, position: u64) -> Result<Option<FrameHead>, StorageError> {
        let mut bytes = [0; HEAD];
        let read = self.io("read", read_full_at(file, &mut bytes, position))?;
        Ok(FrameHead::decode(&bytes[..read], self.owner, position))
    }

    /// The last row, from row `rows` back, of which `wanted` says that it is not too far and whose frame is there.
    pub(super) fn row_before(
        &self,
        fs: &dyn FileSystem,
        file: &dyn File,
        rows: u64,
        wanted: impl Fn(&Row) -> bool,
    ) -> Result<Option<(u64, Row, FrameHead)>, StorageError> {
        let Ok(index) = fs.open(&self.index_path(), Access::Read) else {
            // Without it, frames are walked from the first one on.
            return Ok(None);
        };
        let (mut low, mut high) = (0, rows);
        while low < high {
            let middle = low + (high - low) / 2;
            if row_at(index.as_ref(), middle).is_some_and(|row| wanted(&row)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        while let Some(at) = low.checked_sub(1) {
            low = at;
            if let Some(row) = row_at(index.as_ref(), at).filter(&wanted)
                && let Some(head) = self.head_at(file, row.position)?
                && (head.first, head.time_ms) == (row.number, row.time_ms)
            {
                return Ok(Some((at, row, head)));
            }
        }
        Ok(None)
    }

    /// Says that what is below this extent's end is synced.
    pub(super) fn write_mark(&self, index: &dyn File, extent: Extent) -> std::io::Result<()> {
        let row = Row {
            number: extent.next,
            time_ms: self.mark_of(extent.next, extent.end),
            position: extent.end,
        };
        write_row(index, self.rows(), row)
    }

    fn mark_of(&self, next: u64, end: u64) -> u64 {
        let mut hasher = crc32fast::Hasher::new();
        for number in [self.owner, self.first, next, end] {
            hasher.update(&number.to_le_bytes());
        }
        MARK | u64::from(hasher.finalize())
    }

    /// Up to which byte the file was synced when the last mark was written, and the number that came next. A mark that did not
    /// reach the disk leaves an older one, or none.
    ///
    /// # Errors
    /// The index cannot be opened just now: without the mark, damage at the end would be taken for what a crash has torn.
    pub(super) fn marked(&self, fs: &dyn FileSystem) -> Result<Option<(u64, u64)>, StorageError> {
        let path = self.index_path();
        let opened = fs.open(&path, Access::Read);
        let index = match opened.map_err(|error| StorageError::from_io("open", &path, error)) {
            Err(error) if error.may_pass() => return Err(error),
            opened => opened.ok(),
        };
        let Some(index) = index else { return Ok(None) };
        let rows = index.len().map_or(0, |length| length / ROW as u64);
        let last = (rows.saturating_sub(MARK_IN)..rows).rev();
        let rows = last.filter_map(|at| row_at(index.as_ref(), at));
        let marks = rows.filter(|row| row.time_ms == self.mark_of(row.number, row.position));
        Ok(marks.map(|row| (row.position, row.number)).max())
    }

    /// Walks frames from this position on, where one begins, until `end`, the first one that is none, or `visit` says that it is
    /// enough. With `whole` also the bytes are checked. Returns where it ended.
    pub(super) fn walk(
        &self,
        file: &dyn File,
        mut position: u64,
        end: u64,
        whole: bool,
        mut visit: impl FnMut(u64, &FrameHead) -> bool,
    ) -> Result<u64, StorageError> {
        let mut window = Window::default();
        while position < end {
            let bytes = window.get(self, file, position, HEAD)?;
            let Some(head) = FrameHead::decode(bytes, self.owner, position) else {
                break;
            };
            let next = position + head.frame_bytes();
            if next > end || head.length as usize > ENTRY_MOST {
                break;
            }
            if whole {
                let bytes = window.get(self, file, position, head.frame_bytes() as usize)?;
                if bytes.len() < HEAD || !head.fits(&bytes[HEAD..]) {
                    break;
                }
            }
            if !visit(position, &head) {
                break;
            }
            position = next;
        }
        Ok(position)
    }

    /// Walks frames as [`walk`](Self::walk) does, the first of which has this number, and passes over what is damaged: `gap` is
    /// told. Returns where it ended: before `end` only if `visit` said so, or nothing that can be read comes behind.
    pub(super) fn walk_past(
        &self,
        file: &dyn File,
        (mut position, mut next): (u64, u64),
        end: u64,
        whole: bool,
        mut visit: impl FnMut(u64, &FrameHead) -> bool,
        mut gap: impl FnMut(&StreamDamage),
    ) -> Result<u64, StorageError> {
        loop {
            let mut is_enough = false;
            position = self.walk(file, position, end, whole, |at, head| {
                is_enough = !visit(at, head);
                if !is_enough {
                    next = head.next();
                }
                !is_enough
            })?;
            if is_enough || position >= end {
                return Ok(position);
            }
            let Some(damage) = self.damage_at(file, position, next, end)? else {
                return Ok(position);
            };
            gap(&damage);
            (position, next) = (damage.end(), damage.next);
        }
    }

    /// This frame's bytes are damaged.
    pub(super) fn damage_of(&self, position: u64, head: &FrameHead) -> StreamDamage {
        StreamDamage {
            file: self.path.clone(),
            offset: position,
            bytes: head.frame_bytes(),
            first: head.first,
            next: head.next(),
        }
    }

    /// What is damaged from this position on, where the frame of this number should be: until the next one that can be read and
    /// ends at `end` or before. `None` if there is none.
    pub(super) fn damage_at(
        &self,
        file: &dyn File,
        position: u64,
        number: u64,
        end: u64,
    ) -> Result<Option<StreamDamage>, StorageError> {
        if let Some(head) = self.head_at(file, position)?
            && head.first >= number
            && position + head.frame_bytes() <= end
        {
            return Ok(Some(self.damage_of(position, &head)));
        }
        let behind = self.frame_behind(file, position + 1, end, number)?;
        Ok(behind.map(|(to, head)| StreamDamage {
            file: self.path.clone(),
            offset: position,
            bytes: to - position,
            first: number,
            next: head.first,
        }))
    }

    /// The first whole frame from this position on, wherever in a frame that is, which ends at `end` or before and has this
    /// number or a later one.
    fn frame_behind(
        &self,
        file: &dyn File,
        from: u64,
        end: u64,
        number: u64,
    ) -> Result<Option<(u64, FrameHead)>, StorageError> {
        let (mut window, mut bodies) = (Window::default(), Window::default());
        let mut start = from;
        loop {
            let length = end.saturating_sub(start).min(WINDOW as u64) as usize;
            let bytes = window.get(self, file, start, length)?;
            if bytes.len() < HEAD {
                return Ok(None);
            }
            // Room that was only reserved is passed over quickly.
            let starts = if bytes.iter().all(|byte| *byte == 0) {
                0
            } else {
                bytes.len() - HEAD + 1
            };
            for at in 0..starts {
                let position = start + at as u64;
                let Some(head) = FrameHead::decode(&bytes[at..], self.owner, position) else {
                    continue;
                };
                // Somebody may have published what looks like a frame: it cannot claim more than has room there.
                let room = (position - from + 1).saturating_mul(NUMBERS_IN_A_BYTE);
                let is_possible = head.first.checked_sub(number).is_some_and(|more| more <= room)
                    && head.synced <= position
                    && head.length as usize <= ENTRY_MOST
                    && position + head.frame_bytes() <= end;
                if is_possible {
                    let frame = bodies.get(self, file, position, head.frame_bytes() as usize)?;
                    if frame.len() >= HEAD && head.fits(&frame[HEAD..]) {
                        return Ok(Some((position, head)));
                    }
                }
            }
            start += (bytes.len() - HEAD + 1) as u64;
        }
    }
}

/// A piece of a file in memory.
#[derive(Default)]
struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// The bytes from this position on; fewer than `length` only where the file ends.
    fn get(
        &mut self,
        part: &Part,
        file: &dyn File,
        position: u64,
        length: usize,
    ) -> Result<&[u8], StorageError> {
        let is_in =
            position >= self.start && position + length as u64 <= self.start + self.bytes.len() as u64;
        if !is_in {
            self.bytes.resize(length.max(WINDOW), 0);
            let read = part.io("read", read_full_at(file, &mut self.bytes, position))?;
            self.bytes.truncate(read);
            self.start = position;
        }
        let from = (position - self.start) as usize;
        let to = (from + length).min(self.bytes.len());
        Ok(&self.bytes[from..to])
    }
}

/// A row of an index; `None` if it can't be read. Then the index is no help, and is done without.
fn row_at(index: &dyn File, at: u64) -> Option<Row> {
    let mut bytes = [0; ROW];
    let read = read_full_at(index, &mut bytes, at * ROW as u64).ok()?;
    let long = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let row = Row {
        number: long(0)?,
        time_ms: long(8)?,
        position: long(16)?,
    };
    (read == ROW).then_some(row)
}

/// Puts a row at its place.
pub(super) fn write_row(index: &dyn File, at: u64, row: Row) -> std::io::Result<()> {
    let mut bytes = [0; ROW];
    bytes[..8].copy_from_slice(&row.number.to_le_bytes());
    bytes[8..16].copy_from_slice(&row.time_ms.to_le_bytes());
    bytes[16..].copy_from_slice(&row.position.to_le_bytes());
    crate::file_system::write_all_at(index, &bytes, at * ROW as u64)
}

/// How many rows a file has room for.
pub(super) fn rows_in(fs: &dyn FileSystem, part: &Part) -> u64 {
    let index = fs.open(&part.index_path(), Access::Read);
    index.and_then(|index| index.len()).unwrap_or(0) / ROW as u64
}
