//! Routing keys and words as keys of a map.
//!
//! They are ordered by a hash first, which stands in the map's own nodes: finding one among a million visits the bytes of
//! one key only. The map is still a tree, so keys that were made to collide cost no more than comparing their bytes.

use equivalent::{Comparable, Equivalent};
use foldhash::fast::FixedState;
use std::cmp::Ordering;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

/// A byte string in a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    hash: u64,
    bytes: Arc<[u8]>,
}

impl Key {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self {
            hash: hash(bytes),
            bytes: bytes.into(),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same, to be looked for.
    pub(crate) fn sought(&self) -> Sought<'_> {
        Sought {
            hash: self.hash,
            bytes: &self.bytes,
        }
    }
}

/// A byte string that is looked for in a map of [`Key`]s; ordered like these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sought<'a> {
    hash: u64,
    bytes: &'a [u8],
}

impl<'a> Sought<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            hash: hash(bytes),
            bytes,
        }
    }

    /// True if this is the key.
    pub(crate) fn is(&self, key: &Key) -> bool {
        self.hash == key.hash && *self.bytes == *key.bytes
    }
}

impl Equivalent<Key> for Sought<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.is(key)
    }
}

impl Comparable<Key> for Sought<'_> {
    fn compare(&self, key: &Key) -> Ordering {
        self.hash.cmp(&key.hash).then_with(|| self.bytes.cmp(&key.bytes))
    }
}

/// The same in every run; nothing depends on the order that it gives.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    hasher.write(bytes);
    hasher.finish()
}
