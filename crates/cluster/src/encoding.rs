//! How numbers and lists stand in bytes, and how bytes that nobody vouches for are read.

/// Why bytes are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// They end too early, or a length says more than there is.
    Short,
    /// A number takes more than 64 bits.
    Number,
    /// A kind, flag or version that nobody gave out.
    Unknown,
    /// More of something than its limit.
    Limit,
    /// A member, membership or change that can't be.
    Membership,
    /// Something behind the end.
    Trailing,
}

/// Appends a number, seven bits a byte, the lowest first.
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads bytes from their beginning.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            length: bytes.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many bytes were read.
    pub fn position(&self) -> usize {
        self.length - self.rest.len()
    }

    pub fn byte(&mut self) -> Result<u8, Malformed> {
        let (&first, rest) = self.rest.split_first().ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(first)
    }

    pub fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Malformed::Number);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed::Number)
    }

    /// A count of things of which each takes at least one byte, so that the count says nothing about more than is there.
    pub fn count(&mut self, limit: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.number()?).map_err(|_| Malformed::Limit)?;
        if count > limit {
            return Err(Malformed::Limit);
        }
        if count > self.rest.len() {
            return Err(Malformed::Short);
        }
        Ok(count)
    }

    /// The next bytes.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written_and_a_longer_one_is_refused() {
        for number in [0, 1, 127, 128, 1 << 32, u64::MAX] {
            let mut out = Vec::new();
            put_number(&mut out, number);
            assert_eq!(Reader::new(&out).number(), Ok(number));
        }
        assert_eq!(Reader::new(&[0xff; 9]).number(), Err(Malformed::Short));
        assert_eq!(Reader::new(&[0xff; 10]).number(), Err(Malformed::Number));
    }

    #[test]
    fn a_count_of_more_than_there_can_be_is_refused_before_it_costs_memory() {
        assert_eq!(Reader::new(&[5, 0]).count(10), Err(Malformed::Short));
        assert_eq!(Reader::new(&[5, 0, 0, 0, 0, 0]).count(4), Err(Malformed::Limit));
        assert_eq!(Reader::new(&[5, 0, 0, 0, 0, 0]).count(5), Ok(5));
    }
}
