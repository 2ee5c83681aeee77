//! Reading many entries: neighbours are fetched together, so that a long backlog is read in large sequential pieces.

use super::{Place, Segments, wrong};
use crate::error::StorageError;
use crate::file_system::read_full_at;

/// Largest piece fetched at once, unless a single entry is larger.
const RUN_BYTES: u64 = 1 << 20;
/// Unneeded bytes between two entries that are fetched along rather than skipped.
const GAP_BYTES: u64 = 32 << 10;

/// Is shown each entry, or why it cannot be read, with its number.
pub type Each<'a> = &'a mut dyn FnMut(usize, Result<&[u8], StorageError>);

impl Segments {
    /// Reads entries, verified, in the given order, and shows each to `each` with its number in `places`.
    pub fn read_each(&self, owner: u64, places: &[Place], each: Each<'_>) {
        let mut buffer = Vec::new();
        let mut first = 0;
        while first < places.len() {
            let count = run_length(&places[first..]);
            let run = &places[first..first + count];
            match self.fetch(owner, run, &mut buffer) {
                Ok(()) => self.show(owner, run, &buffer, first, each),
                Err(error) => (first..first + count).for_each(|number| each(number, Err(error.clone()))),
            }
            first += count;
        }
    }

    fn fetch(&self, owner: u64, run: &[Place], buffer: &mut Vec<u8>) -> Result<(), StorageError> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return Ok(());
        };
        let file = self.descriptors.get((owner, first.segment))?;
        let io = |e| StorageError::from_io("read", &self.descriptors.path((owner, first.segment)), e);
        let end = last.end().min(file.len().map_err(io)?);
        let start = u64::from(first.offset);
        buffer.resize(end.saturating_sub(start) as usize, 0);
        let read = read_full_at(file.as_ref(), buffer, start).map_err(io)?;
        buffer.truncate(read);
        Ok(())
    }

    fn show(&self, owner: u64, run: &[Place], buffer: &[u8], first: usize, each: Each<'_>) {
        let start = u64::from(run[0].offset);
        for (number, place) in run.iter().enumerate() {
            let range = (u64::from(place.offset) - start) as usize..(place.end() - start) as usize;
            let content = buffer.get(range).and_then(|bytes| place.verify(owner, bytes));
            let path = || self.descriptors.path((owner, place.segment));
            each(first + number, content.ok_or_else(|| wrong(&path(), *place)));
        }
    }
}

/// How many of the first places lie close together in one file, in rising order.
fn run_length(places: &[Place]) -> usize {
    let Some(first) = places.first() else { return 0 };
    let mut end = first.end();
    let mut count = 1;
    for place in &places[1..] {
        let offset = u64::from(place.offset);
        let near = place.segment == first.segment && offset >= end && offset - end <= GAP_BYTES;
        if !near || place.end() - u64::from(first.offset) > RUN_BYTES {
            break;
        }
        end = place.end();
        count += 1;
    }
    count
}
