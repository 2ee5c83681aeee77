//! Reading DER (X.690), as far as certificates need it: tags of one byte, definite lengths.

/// Values one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Der<'a>(pub(crate) &'a [u8]);

/// `SEQUENCE`.
pub(crate) const SEQUENCE: u8 = 0x30;
/// `SET`.
pub(crate) const SET: u8 = 0x31;
/// `INTEGER`.
pub(crate) const INTEGER: u8 = 0x02;
/// `OCTET STRING`.
pub(crate) const OCTETS: u8 = 0x04;
/// `OBJECT IDENTIFIER`.
pub(crate) const OID: u8 = 0x06;
/// `BOOLEAN`.
pub(crate) const BOOLEAN: u8 = 0x01;

impl<'a> Der<'a> {
    /// The next value's tag and contents. `None` at the end, or where the bytes are no DER.
    pub(crate) fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let length = if first < 0x80 {
            usize::from(first)
        } else {
            let digits = usize::from(first & 0x7f);
            if digits == 0 || digits > 4 {
                return None;
            }
            let (bytes, behind) = rest.split_at_checked(digits)?;
            rest = behind;
            bytes
                .iter()
                .fold(0, |length, byte| length << 8 | usize::from(*byte))
        };
        let (contents, behind) = rest.split_at_checked(length)?;
        self.0 = behind;
        Some((tag, contents))
    }

    /// The contents of the next value if it has this tag.
    pub(crate) fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, contents) = self.next()?;
        (found == tag).then_some(contents)
    }

    /// The same if it has this tag; else it is left where it is.
    pub(crate) fn optional(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let contents = ahead.expect(tag)?;
        *self = ahead;
        Some(contents)
    }
}

/// An object identifier's numbers, with dots.
pub(crate) fn dotted(oid: &[u8]) -> String {
    let mut numbers = Vec::new();
    let mut number: u64 = 0;
    for byte in oid {
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            numbers.push(number);
            number = 0;
        }
    }
    // The first two numbers share a place.
    if let Some(first) = numbers.first().copied() {
        let top = (first / 40).min(2);
        numbers.splice(..1, [top, first - 40 * top]);
    }
    let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
    texts.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_read_one_by_one() {
        let mut der = Der(&[0x02, 1, 5, 0x04, 0x81, 2, 8, 9, 0x30, 0]);
        assert_eq!(der.optional(OCTETS), None);
        assert_eq!(der.expect(INTEGER), Some(&[5][..]));
        assert_eq!(der.next(), Some((OCTETS, &[8, 9][..])));
        assert_eq!(der.expect(SEQUENCE), Some(&[][..]));
        assert_eq!(der.next(), None);
    }

    #[test]
    fn what_says_it_is_longer_than_it_is_ends_there() {
        for bytes in [
            &[0x30][..],
            &[0x30, 1],
            &[0x30, 0x80],
            &[0x30, 0x85, 0, 0, 0, 0, 1, 1],
            &[4, 0x84, 255, 255, 255, 255],
        ] {
            assert_eq!(Der(bytes).next(), None, "{bytes:?}");
        }
    }

    #[test]
    fn object_identifiers_have_dots() {
        assert_eq!(dotted(&[0x55, 4, 3]), "2.5.4.3");
        assert_eq!(
            dotted(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1]),
            "1.2.840.113549.1.9.1"
        );
        assert_eq!(
            dotted(&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1]),
            "0.9.2342.19200300.100.1.1"
        );
        assert_eq!(dotted(&[]), "");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes: Vec<u8>) {
            let mut der = Der(&bytes);
            while let Some((_, contents)) = der.next() {
                prop_assert!(contents.len() < bytes.len());
            }
            let _ = dotted(&bytes);
        }
    }
}
