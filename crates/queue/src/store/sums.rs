//! What a queue's runs hold, added up as they come and go: asking costs nothing.

use super::Run;

/// Numbers and bodies of live messages, the latter in bytes; after a restart from a snapshot as exact as the runs' sizes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Live messages.
    pub live: u64,
    /// Their bodies.
    pub bytes: u64,
    /// Those of them that the journal knows.
    pub journaled: u64,
    /// Their bodies.
    pub journaled_bytes: u64,
    /// Those of them whose bytes are not in memory.
    pub paged: u64,
    /// Their bodies.
    pub paged_bytes: u64,
}

impl Sums {
    /// A run came. Looks at all of it.
    pub(crate) fn add(&mut self, run: &Run) {
        self.add_part(run, u64::from(run.live), run.live_bytes());
    }

    /// A run goes. Looks at all of it.
    pub(crate) fn remove(&mut self, run: &Run) {
        self.remove_part(run, u64::from(run.live), run.live_bytes());
    }

    /// So many messages of the run came, with so much in their bodies.
    #[inline]
    pub(crate) fn add_part(&mut self, run: &Run, count: u64, bytes: u64) {
        self.live += count;
        self.bytes += bytes;
        if run.journaled {
            self.journaled += count;
            self.journaled_bytes += bytes;
        }
        if run.memory.is_none() {
            self.paged += count;
            self.paged_bytes += bytes;
        }
    }

    /// So many messages of the run are gone, with so much in their bodies.
    #[inline]
    pub(crate) fn remove_part(&mut self, run: &Run, count: u64, bytes: u64) {
        self.live -= count;
        self.bytes = self.bytes.saturating_sub(bytes);
        if run.journaled {
            self.journaled -= count;
            self.journaled_bytes = self.journaled_bytes.saturating_sub(bytes);
        }
        if run.memory.is_none() {
            self.paged -= count;
            self.paged_bytes = self.paged_bytes.saturating_sub(bytes);
        }
    }
}
