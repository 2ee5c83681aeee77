//! The little of ASN.1's basic encoding that a bind and a search need: values with a tag and a length.

use std::io::{Error, ErrorKind, Read, Result};

/// No message from a directory is longer, in bytes.
const LONGEST: usize = 64 * 1024;

pub const INTEGER: u8 = 0x02;
pub const OCTETS: u8 = 0x04;
pub const ENUMERATED: u8 = 0x0a;
pub const SEQUENCE: u8 = 0x30;

/// A value: its tag, its length, its content.
pub fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    let length = content.len();
    if length < 0x80 {
        bytes.push(length as u8);
    } else {
        let digits = length.to_be_bytes();
        let digits = &digits[digits.iter().take_while(|digit| **digit == 0).count()..];
        bytes.push(0x80 | digits.len() as u8);
        bytes.extend_from_slice(digits);
    }
    bytes.extend_from_slice(content);
    bytes
}

/// A value made of others.
pub fn composed(tag: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    value(tag, &parts.concat())
}

/// A number from 0 to 127.
pub fn small(tag: u8, number: u8) -> Vec<u8> {
    value(tag, &[number & 0x7f])
}

/// Takes the value at the front: its tag and content.
///
/// # Errors
/// There is no whole one.
pub fn take<'a>(bytes: &mut &'a [u8]) -> Result<(u8, &'a [u8])> {
    let mut rest = *bytes;
    let (tag, length) = head(&mut rest)?;
    if rest.len() < length {
        return Err(malformed());
    }
    let (content, after) = rest.split_at(length);
    *bytes = after;
    Ok((tag, content))
}

/// Reads one whole value: its tag and content.
///
/// # Errors
/// It is malformed or too long, or the connection failed.
pub fn read(from: &mut impl Read) -> Result<(u8, Vec<u8>)> {
    let (tag, length) = head(from)?;
    let mut content = vec![0; length];
    from.read_exact(&mut content)?;
    Ok((tag, content))
}

fn head(from: &mut impl Read) -> Result<(u8, usize)> {
    let [tag, first] = bytes(from)?;
    let length = match first {
        0..=0x7f => usize::from(first),
        0x81 => usize::from(bytes::<1>(from)?[0]),
        0x82 => usize::from(u16::from_be_bytes(bytes(from)?)),
        0x83 => {
            let [high, middle, low] = bytes(from)?;
            u32::from_be_bytes([0, high, middle, low]) as usize
        }
        0x84 => u32::from_be_bytes(bytes(from)?) as usize,
        _ => return Err(malformed()),
    };
    match length > LONGEST {
        true => Err(Error::new(ErrorKind::InvalidData, "its answer is too long")),
        false => Ok((tag, length)),
    }
}

fn bytes<const N: usize>(from: &mut impl Read) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// What came is no answer of a directory.
pub fn malformed() -> Error {
    Error::new(ErrorKind::InvalidData, "its answer is malformed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_are_written_short_or_with_their_own_length() {
        assert_eq!(value(OCTETS, b"ab"), [4, 2, b'a', b'b']);
        assert_eq!(value(OCTETS, &[0; 200])[..3], [4, 0x81, 200]);
        assert_eq!(value(OCTETS, &[0; 300])[..4], [4, 0x82, 1, 44]);
        assert_eq!(small(INTEGER, 3), [2, 1, 3]);
    }

    #[test]
    fn what_is_too_long_is_refused_before_memory_is_taken() {
        let claim = [0x30, 0x84, 0x7f, 0xff, 0xff, 0xff];
        assert!(read(&mut claim.as_slice()).is_err());
        assert!(take(&mut claim.as_slice()).is_err());
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(content in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let written = value(SEQUENCE, &content);
            prop_assert_eq!(read(&mut written.as_slice()).unwrap(), (SEQUENCE, content.clone()));
            let mut left = written.as_slice();
            prop_assert_eq!(take(&mut left).unwrap(), (SEQUENCE, content.as_slice()));
            prop_assert!(left.is_empty());
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = read(&mut bytes.as_slice());
            let _ = take(&mut bytes.as_slice());
        }
    }
}
