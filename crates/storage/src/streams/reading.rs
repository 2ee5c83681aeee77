//! Finding and reading entries. Takes no lock that appends hold for longer than a moment.

use super::StreamFiles;
use super::damage::StreamDamage;
use super::frame::{FrameHead, HEAD};
use super::part::{HEADER, Part, Row};
use crate::error::StorageError;
use crate::file_system::{Access, File, read_full_at};
use std::ops::Range;
use std::sync::Arc;

/// Where somebody reads. It keeps its file: that may be removed meanwhile, and is read to its end all the same.
#[derive(Debug, Clone)]
pub struct StreamCursor {
    part: Arc<Part>,
    file: Arc<dyn File>,
    position: u64,
    /// The number that the next entry begins with, or a later one.
    next: u64,
}

impl StreamCursor {
    /// The number that it stands at: what is read next begins with it, or with a later one if what was there is gone.
    pub fn next(&self) -> u64 {
        self.next
    }
}

/// Some entries in one piece of memory.
#[derive(Debug, Default)]
pub struct Page {
    bytes: Vec<u8>,
    entries: Vec<(FrameHead, Range<usize>)>,
}

impl Page {
    /// The entries in order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&FrameHead, &[u8])> {
        self.entries
            .iter()
            .map(|(head, range)| (head, &self.bytes[range.clone()]))
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The piece of memory, and where in it each entry is, in order.
    pub fn into_parts(self) -> (Vec<u8>, Vec<(FrameHead, Range<usize>)>) {
        (self.bytes, self.entries)
    }

    /// The memory that it takes, in bytes.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }
}

impl StreamFiles {
    /// Where the file begins whose first number this is; `None` if there is none.
    ///
    /// # Errors
    /// It can't be read.
    pub fn segment_start(&self, first: u64) -> Result<Option<StreamCursor>, StorageError> {
        let part = self.parts().into_iter().find(|part| part.first == first);
        let cursor = part.map(|part| {
            Ok(StreamCursor {
                file: part.open(self.fs.as_ref(), Access::Read)?,
                position: HEADER as u64,
                next: first,
                part,
            })
        });
        cursor.transpose()
    }

    /// Walks the newest file: its entries' heads, with the bytes of those that track something and of the last one. `None` of
    /// another one means that its bytes were not read, or are damaged. Returns those that are, and are not among
    /// [`damage`](Self::damage): what they track is lost.
    ///
    /// # Errors
    /// It can't be read.
    pub fn walk_newest(
        &self,
        mut visit: impl FnMut(&FrameHead, Option<&[u8]>),
    ) -> Result<Vec<StreamDamage>, StorageError> {
        let mut damage = Vec::new();
        let Some(part) = self.parts().pop() else {
            return Ok(damage);
        };
        let file = part.open(self.fs.as_ref(), Access::Read)?;
        let end = part.extent().end;
        let (mut failed, mut bodies) = (None, Vec::new());
        let each = |position: u64, head: &FrameHead| {
            let is_last = position + head.frame_bytes() == end;
            if !is_last && !head.tracks {
                visit(head, None);
                return true;
            }
            let mut bytes = vec![0; head.length as usize];
            let read = part.io(
                "read",
                read_full_at(file.as_ref(), &mut bytes, position + HEAD as u64),
            );
            match read {
                Ok(_) if head.fits(&bytes) => visit(head, Some(&bytes)),
                Ok(_) => {
                    bodies.push(part.damage_of(position, head));
                    visit(head, None);
                }
                Err(error) => failed = Some(error),
            }
            failed.is_none()
        };
        let start = (HEADER as u64, part.first);
        let gap = |it: &StreamDamage| damage.push(it.clone());
        part.walk_past(file.as_ref(), start, end, false, each, gap)?;
        damage.append(&mut bodies);
        damage.sort();
        damage.retain(|it| !self.damage().contains(it));
        failed.map_or(Ok(damage), Err)
    }

    /// Where the entry with this number begins, or the first later one. `None` if nothing is there at all; at the end if the
    /// number is behind it.
    ///
    /// # Errors
    /// A file can't be read.
    pub fn find(&self, number: u64) -> Result<Option<StreamCursor>, StorageError> {
        self.find_in(
            |parts| parts.partition_point(|part| part.first <= number).max(1) - 1,
            |row| row.number <= number,
            |head| head.next() > number,
        )
    }

    /// Where the first entry begins that was made at this time or later, in milliseconds since the Unix epoch; at the end if
    /// there is none. `None` if nothing is there at all.
    ///
    /// # Errors
    /// A file can't be read.
    pub fn find_time(&self, time_ms: u64) -> Result<Option<StreamCursor>, StorageError> {
        self.find_in(
            |parts| parts.partition_point(|part| part.extent().last_ms < time_ms),
            |row| row.time_ms < time_ms,
            |head| head.time_ms >= time_ms,
        )
    }

    /// The first entry that `is_it` in the part that `choose` names, or the last part.
    fn find_in(
        &self,
        choose: impl Fn(&[Arc<Part>]) -> usize,
        is_before: impl Fn(&Row) -> bool,
        is_it: impl Fn(&FrameHead) -> bool,
    ) -> Result<Option<StreamCursor>, StorageError> {
        loop {
            let parts = self.parts();
            let Some(part) = parts.get(choose(&parts)).or(parts.last()) else {
                return Ok(None);
            };
            let found = self.seek(part, &is_before, &is_it);
            let is_there = self.parts().iter().any(|other| Arc::ptr_eq(other, part));
            // One that was dropped just now cannot be opened any more, or another one has its name.
            if is_there {
                return found.map(Some);
            }
        }
    }

    /// The first entry of a part that `is_it`; somewhere behind the last row that `is_before`.
    fn seek(
        &self,
        part: &Arc<Part>,
        is_before: impl Fn(&Row) -> bool,
        is_it: impl Fn(&FrameHead) -> bool,
    ) -> Result<StreamCursor, StorageError> {
        let file = part.open(self.fs.as_ref(), Access::Read)?;
        let extent = part.extent();
        let is_before = |row: &Row| row.position < extent.end && is_before(row);
        let row = part.row_before(self.fs.as_ref(), file.as_ref(), part.rows(), is_before)?;
        let start = row.map_or((HEADER as u64, part.first), |(_, row, _)| {
            (row.position, row.number)
        });
        let (mut found, mut next) = (None, start.1);
        let visit = |position: u64, head: &FrameHead| {
            if is_it(head) {
                found = Some((position, head.first));
            } else {
                next = head.next();
            }
            found.is_none()
        };
        let end = part.walk_past(file.as_ref(), start, extent.end, false, visit, |_| {})?;
        // What is damaged up to the end is for whoever reads there.
        let rest = if end < extent.end {
            (end, next)
        } else {
            (extent.end, extent.next)
        };
        let (position, next) = found.unwrap_or(rest);
        Ok(StreamCursor {
            part: part.clone(),
            file,
            position,
            next,
        })
    }

    /// Reads entries from there on, none that begins at number `below` or later: as many as fit into `most` bytes, but one at
    /// least, if there is one. The cursor moves behind them.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] if the first one does not read as it was written: [`skip`](Self::skip) passes it over.
    pub fn read(&self, cursor: &mut StreamCursor, below: u64, most: usize) -> Result<Page, StorageError> {
        let mut page = Page::default();
        if cursor.next >= below {
            return Ok(page);
        }
        let mut extent = cursor.part.extent();
        while cursor.position >= extent.end {
            if !self.to_next_part(cursor)? {
                return Ok(page);
            }
            extent = cursor.part.extent();
        }
        let part = cursor.part.clone();
        let rest = usize::try_from(extent.end - cursor.position).unwrap_or(usize::MAX);
        self.fill(cursor, &mut page, rest.min(most.max(HEAD)))?;
        let head = FrameHead::decode(&page.bytes, part.owner, cursor.position)
            .ok_or_else(|| part.damaged(cursor.position, "an entry's head does not match its checksum"))?;
        if head.first >= below {
            page.bytes.clear();
            return Ok(page);
        }
        let whole = head.frame_bytes() as usize;
        if whole > page.bytes.len() && whole <= rest {
            self.fill(cursor, &mut page, whole)?;
        }
        let mut at = 0;
        while let Some(head) = FrameHead::decode(&page.bytes[at..], part.owner, cursor.position) {
            let range = at + HEAD..at + head.frame_bytes() as usize;
            let bytes = page.bytes.get(range.clone());
            if head.first >= below || bytes.is_none_or(|bytes| !head.fits(bytes)) {
                break;
            }
            at = range.end;
            page.entries.push((head, range));
            cursor.position += head.frame_bytes();
            cursor.next = head.next();
        }
        if page.is_empty() {
            return Err(part.damaged(cursor.position, "an entry does not match its checksum"));
        }
        Ok(page)
    }

    fn fill(&self, cursor: &StreamCursor, page: &mut Page, length: usize) -> Result<(), StorageError> {
        page.bytes.resize(length, 0);
        let read = read_full_at(cursor.file.as_ref(), &mut page.bytes, cursor.position);
        let read = cursor.part.io("read", read)?;
        page.bytes.truncate(read);
        Ok(())
    }

    /// Moves to the beginning of the part behind the cursor's; false if there is none.
    fn to_next_part(&self, cursor: &mut StreamCursor) -> Result<bool, StorageError> {
        let first = cursor.part.first;
        let (next, file) = loop {
            let parts = self.parts();
            // One that took the place of the cursor's has the same first number.
            let is_behind = |part: &Arc<Part>| {
                part.first > first || part.first == first && !Arc::ptr_eq(part, &cursor.part)
            };
            let Some(next) = parts.into_iter().find(is_behind) else {
                return Ok(false);
            };
            let opened = next.open(self.fs.as_ref(), Access::Read);
            let is_there = self.parts().iter().any(|other| Arc::ptr_eq(other, &next));
            // One that was dropped just now cannot be opened any more, or another one has its name.
            if is_there {
                break (next, opened?);
            }
        };
        cursor.file = file;
        (cursor.position, cursor.next) = (HEADER as u64, cursor.next.max(next.first));
        cursor.part = next;
        Ok(true)
    }

    /// Passes over what does not read as it was written, up to the next entry that does, or the rest of the file. Returns what it
    /// was.
    ///
    /// # Errors
    /// A file can't be read.
    pub fn skip(&self, cursor: &mut StreamCursor) -> Result<StreamDamage, StorageError> {
        let (part, at) = (cursor.part.clone(), cursor.position);
        let extent = part.extent();
        let first = cursor.next.min(extent.next);
        let damage = part.damage_at(cursor.file.as_ref(), at, first, extent.end)?;
        let damage = damage.unwrap_or_else(|| StreamDamage {
            file: part.path.clone(),
            offset: at,
            bytes: extent.end.saturating_sub(at),
            first,
            next: extent.next,
        });
        cursor.position = damage.end();
        cursor.next = cursor.next.max(damage.next);
        Ok(damage)
    }
}
