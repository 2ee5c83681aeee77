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
#[derive(Clone, Debug)]
pub(crate) struct Key {
    hash: u64,
    bytes: Bytes,
}

/// Short ones stand in the map's nodes too: a node that is copied, because a view shares it, would count a reference
/// more for each key elsewhere in memory.
#[derive(Clone, Debug)]
enum Bytes {
    Short(u8, [u8; SHORT]),
    Long(Arc<[u8]>),
}

/// What fits without making the key larger than one that lies elsewhere.
const SHORT: usize = 22;

impl Key {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let mut short = [0; SHORT];
        let kept = match short.get_mut(..bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                Bytes::Short(bytes.len() as u8, short)
            }
            None => Bytes::Long(bytes.into()),
        };
        Self {
            hash: hash(bytes),
            bytes: kept,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Short(length, bytes) => &bytes[..usize::from(*length)],
            Bytes::Long(bytes) => bytes,
        }
    }

    /// The same, to be looked for.
    pub(crate) fn sought(&self) -> Sought<'_> {
        Sought {
            hash: self.hash,
            bytes: self.bytes(),
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sought().compare(other)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.sought().is(other)
    }
}

impl Eq for Key {}

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
        self.hash == key.hash && self.bytes == key.bytes()
    }
}

impl Equivalent<Key> for Sought<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.is(key)
    }
}

impl Comparable<Key> for Sought<'_> {
    fn compare(&self, key: &Key) -> Ordering {
        self.hash.cmp(&key.hash).then_with(|| self.bytes.cmp(key.bytes()))
    }
}

/// The same in every run; nothing depends on the order that it gives.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_bytes_however_long_it_is() {
        for length in [0, 1, SHORT, SHORT + 1, 255] {
            let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let key = Key::new(&bytes);
            assert_eq!(key.bytes(), bytes);
            assert!(Sought::new(&bytes).is(&key) && key == key.clone());
            assert!(!Sought::new(b"other").is(&key));
        }
        assert!(size_of::<Key>() <= 32);
    }
}
