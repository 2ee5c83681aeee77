//! What a publisher hands over at once: entries as they will stand in a chunk, and beside them what is asked of each one.

use super::builder::EntryError;
use super::entries::Entry;
use super::{ChunkError, ENTRIES_BYTES_MOST};

/// An empty batch begins with room for no more than so many bytes.
const ROOM_MOST: usize = 256 << 10;

/// Entries of one publisher on their way to a stream. All were checked, and are copied into a chunk many at once.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// As in a chunk, one behind the other.
    bytes: Vec<u8>,
    /// Their filter values, one behind the other.
    values: Vec<u8>,
    places: Vec<Place>,
    records: u32,
    /// How many bytes there is room for from the first entry on: what grows step by step is copied at each.
    room: usize,
}

/// Where an entry of a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    id: u64,
    end: u32,
    value_end: u32,
    records: u16,
}

/// An entry of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publication<'a> {
    /// The publisher's number for it.
    pub id: u64,
    /// Its filter value, if it has one.
    pub value: Option<&'a [u8]>,
    /// As in a chunk.
    pub entry: &'a [u8],
    /// How many messages it is.
    pub records: u16,
}

impl Batch {
    /// Takes what is there. What comes next begins with room for as much.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let next = Self {
            room: self.bytes.len().min(ROOM_MOST),
            ..Self::default()
        };
        std::mem::replace(self, next)
    }

    /// Appends an entry as the stream protocol has it: a message with its length, or a sub-batch. An empty value is none.
    ///
    /// # Errors
    /// [`EntryError::Invalid`] if it is more or less than one entry, or a sub-batch that is not what it says; what is
    /// compressed is not looked into. [`EntryError::Full`] if the batch cannot take more.
    pub fn push(&mut self, id: u64, value: Option<&[u8]>, entry: &[u8]) -> Result<(), EntryError> {
        let (read, rest) = Entry::read(entry).map_err(EntryError::Invalid)?;
        if !rest.is_empty() {
            return Err(EntryError::Invalid(ChunkError::Entry));
        }
        if let Entry::SubBatch(batch) = &read {
            batch.check().map_err(EntryError::Invalid)?;
        }
        if entry.len() > ENTRIES_BYTES_MOST {
            return Err(EntryError::TooLarge);
        }
        let value = value.unwrap_or_default();
        let (end, value_end) = (self.bytes.len() + entry.len(), self.values.len() + value.len());
        let records = self.records.checked_add(read.records());
        let (Ok(end), Ok(value_end), Some(records)) = (u32::try_from(end), u32::try_from(value_end), records)
        else {
            return Err(EntryError::Full);
        };
        if self.places.is_empty() {
            self.bytes.reserve(self.room);
        }
        self.bytes.extend_from_slice(entry);
        self.values.extend_from_slice(value);
        self.records = records;
        self.places.push(Place {
            id,
            end,
            value_end,
            records: read.records() as u16,
        });
        Ok(())
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many messages they are.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// The length of the entries, in bytes.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// True if an entry has a filter value.
    pub fn has_values(&self) -> bool {
        !self.values.is_empty()
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = Publication<'_>> {
        (0..self.len()).map(|at| self.get(at))
    }

    fn get(&self, at: usize) -> Publication<'_> {
        let place = self.places[at];
        let (start, value_start) = self.start(at);
        let value = &self.values[value_start..place.value_end as usize];
        Publication {
            id: place.id,
            value: (!value.is_empty()).then_some(value),
            entry: &self.bytes[start..place.end as usize],
            records: place.records,
        }
    }

    /// Entries `from..to` as they lie.
    pub(super) fn section(&self, from: usize, to: usize) -> &[u8] {
        &self.bytes[self.start(from).0..self.start(to).0]
    }

    /// How many messages entries `from..to` are.
    pub(super) fn records_of(&self, from: usize, to: usize) -> u32 {
        if to - from == self.len() {
            return self.records;
        }
        self.places[from..to]
            .iter()
            .map(|place| u32::from(place.records))
            .sum()
    }

    fn start(&self, at: usize) -> (usize, usize) {
        match at.checked_sub(1) {
            Some(before) => {
                let before = self.places[before];
                (before.end as usize, before.value_end as usize)
            }
            None => (0, 0),
        }
    }

    /// From `from` on, up to which entry they have not more than `most` bytes together, and are not more than `count`.
    pub(super) fn fitting(&self, from: usize, most: usize, count: usize) -> usize {
        let start = self.start(from).0;
        let to = self.len().min(from + count);
        from + self.places[from..to].partition_point(|place| place.end as usize - start <= most)
    }

    /// The number of the entry before entry `at`; `None` before the first one.
    pub fn id_before(&self, at: usize) -> Option<u64> {
        Some(self.places.get(at.checked_sub(1)?)?.id)
    }

    /// True if the numbers rise from entry to entry and all are above `last`.
    pub fn rises_above(&self, last: Option<u64>) -> bool {
        let mut last = last;
        self.places.iter().all(|place| {
            let rises = last.is_none_or(|last| place.id > last);
            last = Some(place.id);
            rises
        })
    }
}
