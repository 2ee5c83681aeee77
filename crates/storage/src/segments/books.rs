//! How much of each of an owner's files is still needed. A few numbers per file, nothing per entry.

use super::Place;
use std::collections::BTreeMap;

/// A sealed segment of which less than this part is needed is worth rewriting.
const SPARSE_PART: u64 = 8;
/// A sealed segment smaller than this part of a full one is small.
const SMALL_PART: u64 = 4;
/// So many small segments are worth merging.
const MANY_SMALL: usize = 4;

#[derive(Debug, Clone, Copy, Default)]
struct Segment {
    live: u64,
    size: u64,
    sealed: bool,
    /// It was named as worth rewriting. That is done once: what is left then cannot be moved.
    named: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Books {
    segments: BTreeMap<u32, Segment>,
    /// Highest number seen in this run.
    highest: u32,
    /// An entry is needed of a file that is not there.
    lacks_files: bool,
}

impl Books {
    /// A file of an earlier run.
    pub(crate) fn found(&mut self, segment: u32, size: u64) {
        self.highest = self.highest.max(segment);
        self.segments.insert(
            segment,
            Segment {
                live: 0,
                size,
                sealed: true,
                named: false,
            },
        );
    }

    /// A new file is being written.
    pub(crate) fn begin(&mut self, segment: u32) {
        self.highest = self.highest.max(segment);
        self.segments.insert(segment, Segment::default());
    }

    /// Number for the next file: never one used before, so that nothing written before a crash is written over, and a
    /// reader with an outdated place never meets another entry there.
    pub(crate) fn next(&self) -> u32 {
        self.highest.saturating_add(1)
    }

    pub(crate) fn grow(&mut self, segment: u32, size: u64) {
        if let Some(segment) = self.segments.get_mut(&segment) {
            segment.size = segment.size.max(size);
        }
    }

    pub(crate) fn seal(&mut self, segment: u32) {
        if let Some(segment) = self.segments.get_mut(&segment) {
            segment.sealed = true;
        }
    }

    /// An entry is needed. False if there is no such entry. The number of a file that is gone is not given to another one either:
    /// what is still known of it would be taken for that one's.
    pub(crate) fn add(&mut self, place: Place) -> bool {
        self.highest = self.highest.max(place.segment);
        self.lacks_files |= !self.segments.contains_key(&place.segment);
        match self.segments.get_mut(&place.segment) {
            Some(segment) if place.end() <= segment.size => {
                segment.live += place.disk_bytes();
                true
            }
            _ => false,
        }
    }

    /// An entry is needed no more. True if nothing of its file is.
    pub(crate) fn subtract(&mut self, place: Place) -> bool {
        let Some(segment) = self.segments.get_mut(&place.segment) else {
            return false;
        };
        segment.live = segment.live.saturating_sub(place.disk_bytes());
        segment.live == 0
    }

    /// Takes the file out if it is sealed and nothing of it is needed.
    pub(crate) fn take_if_dead(&mut self, segment: u32) -> bool {
        let dead = self
            .segments
            .get(&segment)
            .is_some_and(|s| s.sealed && s.live == 0);
        if dead {
            self.segments.remove(&segment);
        }
        dead
    }

    /// Live bytes of a file and its size.
    pub(crate) fn of(&self, segment: u32) -> (u64, u64) {
        self.segments.get(&segment).map_or((0, 0), |s| (s.live, s.size))
    }

    /// Takes out all sealed files of which nothing is needed.
    pub(crate) fn take_dead(&mut self) -> Vec<u32> {
        let dead: Vec<u32> = self
            .segments
            .iter()
            .filter(|(_, s)| s.sealed && s.live == 0)
            .map(|(number, _)| *number)
            .collect();
        self.segments.retain(|number, _| !dead.contains(number));
        dead
    }

    pub(crate) fn take_all(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.segments).into_keys().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// True if it must be remembered which numbers were used, though no file may be left.
    pub(crate) fn lacks_files(&self) -> bool {
        self.lacks_files
    }

    /// A file worth rewriting, each once. Either little of it is needed, and the files together hold more that isn't needed
    /// than what is: a queue that is read from its head has one such file at a time, which is about to go by itself. Or it is one
    /// of many small ones.
    pub(crate) fn sparse(&mut self, full: u64) -> Option<u32> {
        let (live, size) = self.totals();
        let sealed = || self.segments.iter().filter(|(_, s)| s.sealed && !s.named);
        let little = |(_, s): &(&u32, &Segment)| s.live * SPARSE_PART < s.size;
        let sparse = sealed().find(little).filter(|_| size > 2 * live);
        let small = || sealed().filter(|(_, s)| s.size < full / SMALL_PART);
        let merged = || small().next().filter(|_| small().count() >= MANY_SMALL);
        let number = *sparse.or_else(merged)?.0;
        self.segments.get_mut(&number)?.named = true;
        Some(number)
    }

    /// Bytes needed, and bytes of all files.
    pub(crate) fn count(&self) -> usize {
        self.segments.len()
    }

    pub(crate) fn totals(&self) -> (u64, u64) {
        self.segments
            .values()
            .fold((0, 0), |(live, size), s| (live + s.live, size + s.size))
    }
}
