//! Walking an encoded table where it lies: nothing is copied and nothing is allocated.
//!
//! A single walk costs time in the number of entries of that level only; nested tables are skipped by their
//! length and come out as byte slices.

use crate::limits::Limits;
use std::fmt;

/// Nesting that is refused whatever the limits say, since building, comparing and dropping a value recurse.
const DEEPEST: usize = 256;

/// Why bytes are not an acceptable table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableError {
    /// They end within an entry, or a length points beyond the end.
    Truncated,
    /// There is no field type of this letter.
    UnknownType(u8),
    /// It nests deeper than the limit given here.
    TooDeep(usize),
    /// It has more entries, nested ones counted, than the limit given here.
    TooManyEntries(usize),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => write!(f, "table ends within an entry"),
            Self::UnknownType(tag) => write!(f, "unknown table field type {tag}"),
            Self::TooDeep(limit) => write!(f, "table nests deeper than {limit}"),
            Self::TooManyEntries(limit) => write!(f, "table has more than {limit} entries"),
        }
    }
}

impl std::error::Error for TableError {}

/// A value that lies in an encoded table; see [`super::Value`] for the types.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants are those of Value")]
pub enum RawValue<'a> {
    Bool(bool),
    Byte(i8),
    UnsignedByte(u8),
    Short(i16),
    UnsignedShort(u16),
    SignedInt(i32),
    UnsignedInt(u32),
    Long(i64),
    Float(f32),
    Double(f64),
    Decimal {
        scale: u8,
        value: u32,
    },
    LongStr(&'a [u8]),
    /// Encoded items, for [`Items`].
    Array(&'a [u8]),
    Timestamp(u64),
    /// Encoded entries, for [`Entries`].
    Table(&'a [u8]),
    Void,
    Binary(&'a [u8]),
}

/// The entries of an encoded table, in order; ends after the first error.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Entries<'a> {
    /// `bytes` are the entries without the four-byte length before them.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The first value of this name; `None` if there is none before the first error.
    pub fn find(self, name: &[u8]) -> Option<RawValue<'a>> {
        self.map_while(Result::ok)
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<(&'a [u8], RawValue<'a>), TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let mut rest = std::mem::take(&mut self.rest);
        let entry = take_short(&mut rest).and_then(|name| Ok((name, take_value(&mut rest)?)));
        if entry.is_ok() {
            self.rest = rest;
        }
        Some(entry)
    }
}

/// The items of an encoded array, in order; ends after the first error.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    rest: &'a [u8],
}

impl<'a> Items<'a> {
    /// `bytes` are the items without the four-byte length before them.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<RawValue<'a>, TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let mut rest = std::mem::take(&mut self.rest);
        let value = take_value(&mut rest);
        if value.is_ok() {
            self.rest = rest;
        }
        Some(value)
    }
}

/// Checks a whole encoded table, nested ones included, without allocating.
///
/// # Errors
/// As [`super::Table::decode`]: what passes here decodes, and the other way round.
pub fn check(bytes: &[u8], limits: &Limits) -> Result<(), TableError> {
    check_table(bytes, &mut Budget::new(limits), 1)
}

fn check_table(bytes: &[u8], budget: &mut Budget, depth: usize) -> Result<(), TableError> {
    budget.enter(depth)?;
    for entry in Entries::new(bytes) {
        let (_, value) = entry?;
        budget.spend()?;
        check_value(value, budget, depth)?;
    }
    Ok(())
}

fn check_value(value: RawValue<'_>, budget: &mut Budget, depth: usize) -> Result<(), TableError> {
    match value {
        RawValue::Table(bytes) => check_table(bytes, budget, depth + 1),
        RawValue::Array(bytes) => {
            budget.enter(depth + 1)?;
            for value in Items::new(bytes) {
                let value = value?;
                budget.spend()?;
                check_value(value, budget, depth + 1)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// What is left of the limits while a table is read.
pub(super) struct Budget {
    depth: usize,
    entries: usize,
    left: usize,
}

impl Budget {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            depth: limits.table_depth.min(DEEPEST),
            entries: limits.table_entries,
            left: limits.table_entries,
        }
    }

    /// A table or array begins at this depth; the outermost table has depth 1.
    pub(super) fn enter(&self, depth: usize) -> Result<(), TableError> {
        if depth > self.depth {
            Err(TableError::TooDeep(self.depth))
        } else {
            Ok(())
        }
    }

    /// An entry was read.
    pub(super) fn spend(&mut self) -> Result<(), TableError> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or(TableError::TooManyEntries(self.entries))?;
        Ok(())
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], TableError> {
    let (head, tail) = rest.split_at_checked(count).ok_or(TableError::Truncated)?;
    *rest = tail;
    Ok(head)
}

fn take_array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], TableError> {
    let (head, tail) = rest.split_first_chunk::<N>().ok_or(TableError::Truncated)?;
    *rest = tail;
    Ok(*head)
}

fn take_short<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], TableError> {
    let [count] = take_array::<1>(rest)?;
    take(rest, count as usize)
}

fn take_long<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], TableError> {
    let count = u32::from_be_bytes(take_array(rest)?);
    take(rest, count as usize)
}

fn take_value<'a>(rest: &mut &'a [u8]) -> Result<RawValue<'a>, TableError> {
    let [tag] = take_array::<1>(rest)?;
    Ok(match tag {
        b't' => RawValue::Bool(take_array::<1>(rest)? != [0]),
        b'b' => RawValue::Byte(i8::from_be_bytes(take_array(rest)?)),
        b'B' => RawValue::UnsignedByte(u8::from_be_bytes(take_array(rest)?)),
        b's' => RawValue::Short(i16::from_be_bytes(take_array(rest)?)),
        b'u' => RawValue::UnsignedShort(u16::from_be_bytes(take_array(rest)?)),
        b'I' => RawValue::SignedInt(i32::from_be_bytes(take_array(rest)?)),
        b'i' => RawValue::UnsignedInt(u32::from_be_bytes(take_array(rest)?)),
        b'l' | b'L' => RawValue::Long(i64::from_be_bytes(take_array(rest)?)),
        b'f' => RawValue::Float(f32::from_be_bytes(take_array(rest)?)),
        b'd' => RawValue::Double(f64::from_be_bytes(take_array(rest)?)),
        b'D' => {
            let [scale] = take_array::<1>(rest)?;
            RawValue::Decimal {
                scale,
                value: u32::from_be_bytes(take_array(rest)?),
            }
        }
        b'S' => RawValue::LongStr(take_long(rest)?),
        b'A' => RawValue::Array(take_long(rest)?),
        b'T' => RawValue::Timestamp(u64::from_be_bytes(take_array(rest)?)),
        b'F' => RawValue::Table(take_long(rest)?),
        b'V' => RawValue::Void,
        b'x' => RawValue::Binary(take_long(rest)?),
        tag => return Err(TableError::UnknownType(tag)),
    })
}

/// Writes what `write` appends with its four-byte length before it. What is written is far below 4 GiB: it
/// came through a frame, or was built in code.
pub(super) fn with_length(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}
