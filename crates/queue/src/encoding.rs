//! Numbers and sets as bytes: variable-length numbers (7 bits an octet, lowest first), and sets of numbers as distances, so that
//! what is close together stays short.
//!
//! ```text
//! set         count of spans, then (distance from the end of the span before, length - 1) each
//! ```

use model::{Ranges, Seq};

/// Appends a number.
pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a set.
pub fn put_set(out: &mut Vec<u8>, set: &Ranges) {
    put_set_from(out, 0, set);
}

/// Appends a set of numbers none of which is below `start`.
pub fn put_set_from(out: &mut Vec<u8>, start: u64, set: &Ranges) {
    put(out, set.spans().count() as u64);
    let mut at = start;
    for (first, last) in set.spans() {
        put(out, first.saturating_sub(at));
        put(out, last - first);
        at = last;
    }
}

/// Bytes that are being read. Everything is checked, and nothing is allocated for what is not there.
pub struct Input<'a> {
    /// What is left.
    pub rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(taken)
    }

    pub fn octet(&mut self) -> Option<u8> {
        self.take::<1>().map(|octet| octet[0])
    }

    pub fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let octet = self.octet()?;
            let bits = u64::from(octet & 0x7F);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if octet < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub fn short(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// A count and so many things, each of which takes at least `least` bytes.
    pub fn list<T>(&mut self, least: usize, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = usize::try_from(self.number()?).ok()?;
        if count > self.rest.len() / least {
            return None;
        }
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            list.push(one(self)?);
        }
        Some(list)
    }

    pub fn set(&mut self) -> Option<Ranges> {
        self.set_from(0)
    }

    /// A set of numbers none of which is below `start`, and each of which has a next one.
    pub fn numbers_from(&mut self, start: u64) -> Option<Ranges> {
        self.set_from(start)
            .filter(|set| set.last().unwrap_or(start) < u64::MAX)
    }

    fn set_from(&mut self, start: u64) -> Option<Ranges> {
        let mut at: Seq = start;
        let mut set = Ranges::new();
        self.list(2, |input| {
            let first = at.checked_add(input.number()?)?;
            let last = first.checked_add(input.number()?)?;
            if !set.is_empty() && first <= at {
                return None;
            }
            set.push_span(first, last);
            at = last;
            Some(())
        })?;
        Some(set)
    }
}
