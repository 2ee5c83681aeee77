//! Which message has which deduplication key.
//!
//! A message that is gone stays here until the next sweep, so nothing has to be looked up when messages leave: whoever asks for a
//! key looks whether its message is still there.

use model::{DeduplicationKey, Seq};
use std::collections::BTreeMap;

/// So many entries are kept before anybody looks for those that are of no use.
const FEW: u64 = 64;

/// The keys of messages; mostly none.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    known: BTreeMap<DeduplicationKey, Seq>,
}

impl Keys {
    /// The last message that came with this key.
    pub(crate) fn get(&self, key: DeduplicationKey) -> Option<Seq> {
        self.known.get(&key).copied()
    }

    /// The message has this key; a former one is forgotten.
    pub(crate) fn insert(&mut self, key: DeduplicationKey, seq: Seq) {
        self.known.insert(key, seq);
    }

    /// True if most entries must be of messages that are gone, when `live` are there.
    pub(crate) fn is_crowded(&self, live: u64) -> bool {
        self.known.len() as u64 > FEW + 2 * live
    }

    /// Keeps the entries of those messages that `lives` is true for.
    pub(crate) fn sweep(&mut self, lives: impl Fn(Seq) -> bool) {
        self.known.retain(|_, seq| lives(*seq));
    }

    /// All entries, those of messages that are gone included, in no particular order.
    pub(crate) fn list(&self) -> impl Iterator<Item = (Seq, DeduplicationKey)> + '_ {
        self.known.iter().map(|(key, seq)| (*seq, *key))
    }
}
