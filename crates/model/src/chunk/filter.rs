//! Which filter values are in a chunk: a Bloom filter, so that chunks which have nothing for a reader are passed over. What
//! passes is not certain to be there, and readers filter again.
//!
//! Bit 0 (the highest of the first byte) stands for entries without a value. Each value sets two others. A filter that would
//! have no bit or only the first one is left out. The hash is our own, and as stable as the format: filters lie on disk.

use crate::hash::fnv;
use std::ops::RangeInclusive;

/// The sizes that a filter may have, in bytes (RabbitMQ: `stream-filter-size-bytes`).
pub const FILTER_SIZES: RangeInclusive<u8> = 16..=255;

/// The filter of a chunk that is being made.
#[derive(Clone, Debug)]
pub struct FilterBits {
    bytes: Vec<u8>,
    /// There is a value.
    used: bool,
    /// The last value, which is mostly the next one, too.
    last: Vec<u8>,
}

impl FilterBits {
    /// A filter of this size, in bytes; the nearest size of [`FILTER_SIZES`] if it is none of them.
    pub fn new(size: u8) -> Self {
        let size = size.clamp(*FILTER_SIZES.start(), *FILTER_SIZES.end());
        Self {
            bytes: vec![0; usize::from(size)],
            used: false,
            last: Vec::new(),
        }
    }

    /// An entry has this value. An empty one is as good as none.
    pub fn add(&mut self, value: Option<&[u8]>) {
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            self.bytes[0] |= 0x80;
            return;
        };
        if self.used && value == self.last {
            return;
        }
        self.used = true;
        self.last.clear();
        self.last.extend_from_slice(value);
        for bit in bits(value, self.bytes.len()) {
            self.bytes[bit / 8] |= 0x80 >> (bit % 8);
        }
    }

    /// The filter's bytes; empty if there is no value.
    pub fn bytes(&self) -> &[u8] {
        if self.used { &self.bytes } else { &[] }
    }

    /// No entry any more.
    pub fn clear(&mut self) {
        self.bytes.fill(0);
        self.used = false;
    }
}

/// What a reader wants to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher {
    values: Vec<Vec<u8>>,
    unfiltered: bool,
}

impl Matcher {
    /// Chunks that may have one of these values; with `unfiltered` also those that have entries without one. `None` if that
    /// excludes nothing: without a value there is no filter, as in RabbitMQ.
    pub fn new(values: impl IntoIterator<Item = impl Into<Vec<u8>>>, unfiltered: bool) -> Option<Self> {
        let values: Vec<Vec<u8>> = values.into_iter().map(Into::into).collect();
        (!values.is_empty()).then_some(Self { values, unfiltered })
    }

    /// Whether a chunk with this filter may have something for the reader.
    pub fn passes(&self, filter: &[u8]) -> bool {
        let Some(first) = filter.first() else {
            return self.unfiltered;
        };
        let has = |bit: usize| filter[bit / 8] & (0x80 >> (bit % 8)) != 0;
        (self.unfiltered && first & 0x80 != 0)
            || self
                .values
                .iter()
                .any(|value| value.is_empty() && first & 0x80 != 0 || all(value, filter.len(), has))
    }
}

/// True for a value both of whose bits are set.
fn all(value: &[u8], size: usize, has: impl Fn(usize) -> bool) -> bool {
    !value.is_empty() && bits(value, size).into_iter().all(has)
}

/// The bits of a value in a filter of `size` bytes; never bit 0. Each comes from one half of a hash.
fn bits(value: &[u8], size: usize) -> [usize; 2] {
    // FNV leaves little of the first bytes in the upper half; this spreads them over all of it.
    let mut hash = fnv(value);
    hash = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^= hash >> 29;
    let most = (size * 8 - 1) as u64;
    [hash >> 32, hash & 0xffff_ffff].map(|half| (half % most) as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filter(size: u8, values: &[Option<&str>]) -> Vec<u8> {
        let mut bits = FilterBits::new(size);
        values.iter().for_each(|value| bits.add(value.map(str::as_bytes)));
        bits.bytes().to_vec()
    }

    #[test]
    fn filters_always_had_these_bits() {
        let mut bytes = [0; 16];
        for bit in bits(b"invoices", 16).into_iter().chain(bits(b"orders", 16)) {
            bytes[bit / 8] |= 0x80 >> (bit % 8);
        }
        assert_eq!(filter(16, &[Some("invoices"), Some("orders")]), bytes);
        assert_eq!(bits(b"invoices", 16), BITS_OF_INVOICES);
        assert_eq!(bits(b"invoices", 255), BITS_OF_INVOICES_255);
    }

    const BITS_OF_INVOICES: [usize; 2] = [37, 42];
    const BITS_OF_INVOICES_255: [usize; 2] = [773, 1832];

    #[test]
    fn without_values_there_is_no_filter_and_only_those_who_want_such_entries_are_passed() {
        assert_eq!(filter(16, &[]), b"");
        assert_eq!(filter(16, &[None, Some("")]), b"");
        assert!(Matcher::new(["a"], true).unwrap().passes(b""));
        assert!(!Matcher::new(["a"], false).unwrap().passes(b""));
        assert_eq!(Matcher::new([""; 0], true), None);
    }

    #[test]
    fn entries_without_a_value_have_a_bit_of_their_own() {
        let mixed = filter(16, &[None, Some("a")]);
        let only = filter(16, &[Some("a")]);
        assert!(Matcher::new(["zzz"], true).unwrap().passes(&mixed));
        assert!(!Matcher::new(["zzz"], true).unwrap().passes(&only));
        assert!(!Matcher::new(["zzz"], false).unwrap().passes(&mixed));
    }

    #[test]
    fn of_values_that_are_not_there_few_pass() {
        let there = filter(64, &["a", "b", "c", "d", "e", "f"].map(Some));
        let passed = (0..10_000)
            .filter(|n| {
                Matcher::new([format!("absent-{n}")], false)
                    .unwrap()
                    .passes(&there)
            })
            .count();
        // Twelve bits of 511, twice: about 6 of 10,000.
        assert!(passed < 50, "{passed}");
    }

    proptest! {
        #[test]
        fn what_is_there_passes(
            size in FILTER_SIZES,
            values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..20),
            wanted in any::<prop::sample::Index>(),
        ) {
            let mut bits = FilterBits::new(size);
            values.iter().for_each(|value| bits.add(Some(value)));
            let wanted = &values[wanted.index(values.len())];
            let matcher = Matcher::new([wanted.clone()], wanted.is_empty()).unwrap();
            prop_assert!(matcher.passes(bits.bytes()));
            prop_assert!(bits.bytes().is_empty() || bits.bytes().len() == usize::from(size));
        }
    }
}
