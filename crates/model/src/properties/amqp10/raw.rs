//! The types of AMQP 1.0 (part 1, section 1.6), read where they lie and written one after the other.

use std::fmt;

/// Described types inside descriptions that are refused: a message needs one.
const DESCRIBED_DEEPEST: usize = 4;

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amqp10Error {
    /// They end within a value, or a length points beyond the end.
    Truncated,
    /// There is no type of this code.
    UnknownType(u8),
    /// Descriptions of descriptions.
    TooDeep,
    /// A section, or a field of one, that is none.
    Section,
}

impl fmt::Display for Amqp10Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("it ends within a value"),
            Self::UnknownType(code) => write!(f, "there is no type {code:#04x}"),
            Self::TooDeep => f.write_str("its types are described too deeply"),
            Self::Section => f.write_str("it is not made of the sections of a message"),
        }
    }
}

impl std::error::Error for Amqp10Error {}

/// A value where it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants are the types of the specification")]
pub enum Raw<'a> {
    Null,
    Boolean(bool),
    Ubyte(u8),
    Ushort(u16),
    Uint(u32),
    Ulong(u64),
    Byte(i8),
    Short(i16),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    /// Of 32, 64 or 128 bits.
    Decimal(&'a [u8]),
    /// A code point.
    Char(u32),
    /// Milliseconds since the Unix epoch.
    Timestamp(i64),
    Uuid([u8; 16]),
    Binary(&'a [u8]),
    /// UTF-8, if the sender keeps to the rules.
    Str(&'a [u8]),
    /// ASCII, if the sender keeps to the rules.
    Symbol(&'a [u8]),
    List(Values<'a>),
    /// Keys and values in turn.
    Map(Values<'a>),
    Array(Values<'a>),
    /// A descriptor, and what it describes.
    Described(Described<'a>),
}

/// A value with a description; both are read when they are asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Described<'a> {
    descriptor: &'a [u8],
    value: &'a [u8],
}

impl<'a> Described<'a> {
    /// What describes it, mostly a number or a symbol.
    pub fn descriptor(&self) -> Raw<'a> {
        Raw::read(self.descriptor).map_or(Raw::Null, |(raw, _)| raw)
    }

    /// What is described.
    pub fn value(&self) -> Raw<'a> {
        Raw::read(self.value).map_or(Raw::Null, |(raw, _)| raw)
    }
}

/// The values of a list, a map or an array. Ends early before what cannot be read; how many there are is said by the sender, and
/// may be more than anybody wants to have: values without bytes cost nothing to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Values<'a> {
    left: u32,
    /// What an array's values have before them once and for all.
    constructor: Option<u8>,
    rest: &'a [u8],
}

impl Values<'_> {
    /// None.
    pub const EMPTY: Self = Self {
        left: 0,
        constructor: None,
        rest: &[],
    };
}

impl<'a> Iterator for Values<'a> {
    type Item = Raw<'a>;

    fn next(&mut self) -> Option<Raw<'a>> {
        self.left = self.left.checked_sub(1)?;
        let read = match self.constructor {
            Some(code) => body(code, self.rest),
            None => Raw::read(self.rest),
        };
        match read {
            Ok((raw, rest)) => {
                self.rest = rest;
                Some(raw)
            }
            Err(_) => {
                self.left = 0;
                None
            }
        }
    }
}

impl<'a> Raw<'a> {
    /// The value at the beginning of these bytes, and what follows it. What is inside lists, maps and arrays is not looked at.
    ///
    /// # Errors
    /// There is none.
    pub fn read(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Amqp10Error> {
        read(bytes, 0)
    }

    /// The bytes of a string or a symbol.
    pub fn text(self) -> Option<&'a [u8]> {
        match self {
            Self::Str(text) | Self::Symbol(text) => Some(text),
            _ => None,
        }
    }

    /// The entries of a map; none if it is something else.
    pub fn entries(self) -> impl Iterator<Item = (Raw<'a>, Raw<'a>)> {
        let mut values = match self {
            Self::Map(values) => values,
            _ => Values::EMPTY,
        };
        std::iter::from_fn(move || Some((values.next()?, values.next()?)))
    }
}

fn read(bytes: &[u8], depth: usize) -> Result<(Raw<'_>, &[u8]), Amqp10Error> {
    let (code, rest) = bytes.split_first().ok_or(Amqp10Error::Truncated)?;
    if *code != 0 {
        return body(*code, rest);
    }
    if depth == DESCRIBED_DEEPEST {
        return Err(Amqp10Error::TooDeep);
    }
    let (_, after) = read(rest, depth + 1)?;
    let (_, end) = read(after, depth + 1)?;
    let described = Described {
        descriptor: &rest[..rest.len() - after.len()],
        value: &after[..after.len() - end.len()],
    };
    Ok((Raw::Described(described), end))
}

/// The value behind its code.
fn body(code: u8, bytes: &[u8]) -> Result<(Raw<'_>, &[u8]), Amqp10Error> {
    match code >> 4 {
        0x4..=0x9 => fixed(code, bytes),
        0xa | 0xb => {
            let (length, rest) = length(code, bytes)?;
            let (bytes, rest) = rest.split_at_checked(length).ok_or(Amqp10Error::Truncated)?;
            let raw = match code & 0xf {
                0x0 => Raw::Binary(bytes),
                0x1 => Raw::Str(bytes),
                0x3 => Raw::Symbol(bytes),
                _ => return Err(Amqp10Error::UnknownType(code)),
            };
            Ok((raw, rest))
        }
        0xc..=0xf => compound(code, bytes),
        _ => Err(Amqp10Error::UnknownType(code)),
    }
}

fn fixed(code: u8, bytes: &[u8]) -> Result<(Raw<'_>, &[u8]), Amqp10Error> {
    let width = [0, 1, 2, 4, 8, 16][usize::from(code >> 4) - 4];
    let (bytes, rest) = bytes.split_at_checked(width).ok_or(Amqp10Error::Truncated)?;
    let number = bytes
        .iter()
        .take(8)
        .fold(0_u64, |n, octet| n << 8 | u64::from(*octet));
    let octet = number as u8;
    let raw = match code {
        0x40 => Raw::Null,
        0x41 => Raw::Boolean(true),
        0x42 => Raw::Boolean(false),
        0x43 => Raw::Uint(0),
        0x44 => Raw::Ulong(0),
        0x45 => Raw::List(Values::EMPTY),
        0x50 => Raw::Ubyte(octet),
        0x51 => Raw::Byte(octet as i8),
        0x52 => Raw::Uint(u32::from(octet)),
        0x53 => Raw::Ulong(number),
        0x54 => Raw::Int(i32::from(octet as i8)),
        0x55 => Raw::Long(i64::from(octet as i8)),
        0x56 => Raw::Boolean(octet != 0),
        0x60 => Raw::Ushort(number as u16),
        0x61 => Raw::Short(number as u16 as i16),
        0x70 => Raw::Uint(number as u32),
        0x71 => Raw::Int(number as u32 as i32),
        0x72 => Raw::Float(f32::from_bits(number as u32)),
        0x73 => Raw::Char(number as u32),
        0x74 | 0x84 | 0x94 => Raw::Decimal(bytes),
        0x80 => Raw::Ulong(number),
        0x81 => Raw::Long(number as i64),
        0x82 => Raw::Double(f64::from_bits(number)),
        0x83 => Raw::Timestamp(number as i64),
        0x98 => match bytes.first_chunk() {
            Some(uuid) => Raw::Uuid(*uuid),
            None => return Err(Amqp10Error::Truncated),
        },
        _ => return Err(Amqp10Error::UnknownType(code)),
    };
    Ok((raw, rest))
}

fn compound(code: u8, bytes: &[u8]) -> Result<(Raw<'_>, &[u8]), Amqp10Error> {
    let (size, rest) = length(code, bytes)?;
    let (inside, rest) = rest.split_at_checked(size).ok_or(Amqp10Error::Truncated)?;
    let (count, inside) = length(code, inside)?;
    let mut values = Values {
        left: count as u32,
        constructor: None,
        rest: inside,
    };
    let raw = match (code >> 4, code & 0xf) {
        (0xc | 0xd, 0x0) => Raw::List(values),
        (0xc | 0xd, 0x1) => Raw::Map(values),
        (0xe | 0xf, 0x0) => {
            // Of an array of described values only the values are of interest here.
            let mut constructor = inside;
            if constructor.first() == Some(&0) {
                (_, constructor) = read(&constructor[1..], 1)?;
            }
            let (code, elements) = constructor.split_first().ok_or(Amqp10Error::Truncated)?;
            (values.constructor, values.rest) = (Some(*code), elements);
            Raw::Array(values)
        }
        _ => return Err(Amqp10Error::UnknownType(code)),
    };
    Ok((raw, rest))
}

/// A length or a count of one or four bytes, as the code says, and what follows it.
fn length(code: u8, bytes: &[u8]) -> Result<(usize, &[u8]), Amqp10Error> {
    let is_short = code >> 4 & 1 == 0;
    if is_short {
        let (length, rest) = bytes.split_first().ok_or(Amqp10Error::Truncated)?;
        Ok((usize::from(*length), rest))
    } else {
        let (length, rest) = bytes.split_first_chunk().ok_or(Amqp10Error::Truncated)?;
        Ok((u32::from_be_bytes(*length) as usize, rest))
    }
}

/// Appends a null.
pub(super) fn put_null(out: &mut Vec<u8>) {
    out.push(0x40);
}

pub(super) fn put_boolean(out: &mut Vec<u8>, it: bool) {
    out.push(if it { 0x41 } else { 0x42 });
}

pub(super) fn put_uint(out: &mut Vec<u8>, it: u32) {
    match u8::try_from(it) {
        Ok(0) => out.push(0x43),
        Ok(it) => out.extend_from_slice(&[0x52, it]),
        Err(_) => put_fixed(out, 0x70, &it.to_be_bytes()),
    }
}

/// Appends a value of a type of fixed width.
pub(super) fn put_fixed(out: &mut Vec<u8>, code: u8, bytes: &[u8]) {
    out.push(code);
    out.extend_from_slice(bytes);
}

pub(super) fn put_binary(out: &mut Vec<u8>, bytes: &[u8]) {
    put_variable(out, 0xa0, bytes);
}

pub(super) fn put_str(out: &mut Vec<u8>, bytes: &[u8]) {
    put_variable(out, 0xa1, bytes);
}

pub(super) fn put_symbol(out: &mut Vec<u8>, bytes: &[u8]) {
    put_variable(out, 0xa3, bytes);
}

fn put_variable(out: &mut Vec<u8>, code: u8, bytes: &[u8]) {
    match u8::try_from(bytes.len()) {
        Ok(length) => out.extend_from_slice(&[code, length]),
        Err(_) => put_fixed(out, code | 0x10, &(bytes.len() as u32).to_be_bytes()),
    }
    out.extend_from_slice(bytes);
}

/// Appends a list of what `inside` writes, which says how many values that is.
pub(super) fn put_list(out: &mut Vec<u8>, inside: impl FnOnce(&mut Vec<u8>) -> u32) {
    put_compound(out, 0xc0, inside);
}

/// Appends a map of what `inside` writes: keys and values in turn, each of which counts.
pub(super) fn put_map(out: &mut Vec<u8>, inside: impl FnOnce(&mut Vec<u8>) -> u32) {
    put_compound(out, 0xc1, inside);
}

/// The short form is tried first, and made room in if it is not enough.
fn put_compound(out: &mut Vec<u8>, code: u8, inside: impl FnOnce(&mut Vec<u8>) -> u32) {
    let at = out.len();
    out.extend_from_slice(&[code, 0, 0]);
    let count = inside(out);
    let size = out.len() - at - 3;
    match (u8::try_from(size + 1), u8::try_from(count)) {
        (Ok(size), Ok(count)) => (out[at + 1], out[at + 2]) = (size, count),
        _ => {
            let mut head = [0; 9];
            head[0] = code | 0x10;
            head[1..5].copy_from_slice(&(size as u32 + 4).to_be_bytes());
            head[5..].copy_from_slice(&count.to_be_bytes());
            out.splice(at..at + 3, head);
        }
    }
}

/// Appends what begins a section: its value follows.
pub(super) fn put_descriptor(out: &mut Vec<u8>, descriptor: u64) {
    out.extend_from_slice(&[0x00, 0x53, descriptor as u8]);
}
