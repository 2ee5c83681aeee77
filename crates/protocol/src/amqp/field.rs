//! How arguments of methods are read and written (AMQP 0-9-1 section 4.2.5).
//!
//! One trait for every type that an argument may have. Bits that stand next to each other share an octet, so
//! reader and writer remember where in the octet they are.

use model::Limits;
use model::table::{Entries, Table, TableError, raw};

/// Why arguments cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldError {
    /// They end too early, or a length points beyond the end.
    Truncated,
    /// A short string is not UTF-8.
    MalformedUtf8,
}

/// Reads arguments one after the other.
#[derive(Clone, Debug)]
pub struct FieldReader<'a> {
    rest: &'a [u8],
    /// The octet that bits are being taken from, and how many were.
    bits: (u8, u8),
}

impl<'a> FieldReader<'a> {
    /// `bytes` are a method's arguments: its frame's payload without class and method number.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            bits: (0, 8),
        }
    }

    /// True if nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], FieldError> {
        let (head, tail) = self.rest.split_at_checked(count).ok_or(FieldError::Truncated)?;
        self.rest = tail;
        self.bits.1 = 8;
        Ok(head)
    }

    fn take_array<const N: usize>(&mut self) -> Result<[u8; N], FieldError> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(FieldError::Truncated)?;
        self.rest = tail;
        self.bits.1 = 8;
        Ok(*head)
    }

    fn bit(&mut self) -> Result<bool, FieldError> {
        if self.bits.1 == 8 {
            let [octet] = self.take_array()?;
            self.bits = (octet, 0);
        }
        let bit = self.bits.0 >> self.bits.1 & 1;
        self.bits.1 += 1;
        Ok(bit == 1)
    }
}

/// Appends arguments one after the other.
#[derive(Debug)]
pub struct FieldWriter<'a> {
    out: &'a mut Vec<u8>,
    /// How many bits of the last octet are in use; 8 if it is not one of bits.
    bits: u8,
}

impl<'a> FieldWriter<'a> {
    /// Appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, bits: 8 }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        self.bits = 8;
    }

    fn bit(&mut self, bit: bool) {
        if self.bits == 8 {
            self.out.push(0);
            self.bits = 0;
        }
        if let Some(octet) = self.out.last_mut() {
            *octet |= u8::from(bit) << self.bits;
        }
        self.bits += 1;
    }
}

/// A type that an argument may have.
pub trait Field<'a>: Sized + Default {
    /// Reads one.
    ///
    /// # Errors
    /// If the bytes end within it, or are not one.
    fn read(reader: &mut FieldReader<'a>) -> Result<Self, FieldError>;

    /// Appends it.
    fn write(&self, writer: &mut FieldWriter<'_>);
}

macro_rules! integers {
    ($($type:ty),*) => {
        $(impl<'a> Field<'a> for $type {
            fn read(reader: &mut FieldReader<'a>) -> Result<Self, FieldError> {
                reader.take_array().map(Self::from_be_bytes)
            }

            fn write(&self, writer: &mut FieldWriter<'_>) {
                writer.put(&self.to_be_bytes());
            }
        })*
    };
}

integers!(u8, u16, u32, u64);

/// A bit.
impl<'a> Field<'a> for bool {
    fn read(reader: &mut FieldReader<'a>) -> Result<Self, FieldError> {
        reader.bit()
    }

    fn write(&self, writer: &mut FieldWriter<'_>) {
        writer.bit(*self);
    }
}

/// A short string of any bytes; longer ones are cut at 255. RabbitMQ does not look into the names of
/// `basic.publish`, and so not into those of what is delivered.
impl<'a> Field<'a> for &'a [u8] {
    fn read(reader: &mut FieldReader<'a>) -> Result<Self, FieldError> {
        let [count] = reader.take_array()?;
        reader.take(count as usize)
    }

    fn write(&self, writer: &mut FieldWriter<'_>) {
        let bytes = &self[..self.len().min(255)];
        writer.put(&[bytes.len() as u8]);
        writer.put(bytes);
    }
}

/// A short string that must be UTF-8, as RabbitMQ has it for all methods but `basic.publish`; longer ones are
/// cut at 255 bytes.
impl<'a> Field<'a> for &'a str {
    fn read(reader: &mut FieldReader<'a>) -> Result<Self, FieldError> {
        std::str::from_utf8(<&[u8]>::read(reader)?).map_err(|_| FieldError::MalformedUtf8)
    }

    fn write(&self, writer: &mut FieldWriter<'_>) {
        (&self.as_bytes()[..self.floor_char_boundary(255)]).write(writer);
    }
}

/// A long string: any bytes, with a four-byte length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongStr<'a>(pub &'a [u8]);

impl<'a> Field<'a> for LongStr<'a> {
    fn read(reader: &mut FieldReader<'a>) -> Result<Self, FieldError> {
        let count = u32::read(reader)?;
        reader.take(count as usize).map(Self)
    }

    fn write(&self, writer: &mut FieldWriter<'_>) {
        (self.0.len() as u32).write(writer);
        writer.put(self.0);
    }
}

/// A field table that is not decoded until somebody asks: its entries without the length before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawTable<'a>(pub &'a [u8]);

impl<'a> RawTable<'a> {
    /// The decoded table.
    ///
    /// # Errors
    /// If it is malformed or beyond the limits; a connection error, `SYNTAX_ERROR`.
    pub fn decode(self, limits: &Limits) -> Result<Table, TableError> {
        Table::decode(self.0, limits)
    }

    /// Checks without building.
    ///
    /// # Errors
    /// As [`RawTable::decode`].
    pub fn check(self, limits: &Limits) -> Result<(), TableError> {
        raw::check(self.0, limits)
    }

    /// Walks the entries where they lie.
    pub fn entries(self) -> Entries<'a> {
        Entries::new(self.0)
    }

    /// True if there are no entries.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> Field<'a> for RawTable<'a> {
    fn read(reader: &mut FieldReader<'a>) -> Result<Self, FieldError> {
        LongStr::read(reader).map(|bytes| Self(bytes.0))
    }

    fn write(&self, writer: &mut FieldWriter<'_>) {
        LongStr(self.0).write(writer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_bits_share_an_octet() {
        let mut out = Vec::new();
        let mut writer = FieldWriter::new(&mut out);
        for bit in [true, false, true] {
            bit.write(&mut writer);
        }
        7u8.write(&mut writer);
        for _ in 0..9 {
            true.write(&mut writer);
        }
        assert_eq!(out, [0b101, 7, 0xff, 1]);
        let mut reader = FieldReader::new(&out);
        let bits: Vec<_> = (0..3).map(|_| bool::read(&mut reader).unwrap()).collect();
        assert_eq!(bits, [true, false, true]);
        assert_eq!(u8::read(&mut reader), Ok(7));
        assert!((0..9).all(|_| bool::read(&mut reader).unwrap()));
        assert!(reader.is_empty());
    }

    #[test]
    fn short_strings_are_cut_and_checked() {
        let mut out = Vec::new();
        "é".repeat(200).as_str().write(&mut FieldWriter::new(&mut out));
        assert_eq!(out.len(), 255);
        assert_eq!(
            <&str>::read(&mut FieldReader::new(&out)),
            Ok("é".repeat(127).as_str())
        );
        assert_eq!(
            <&str>::read(&mut FieldReader::new(&[1, 0xff])),
            Err(FieldError::MalformedUtf8)
        );
        assert_eq!(
            <&[u8]>::read(&mut FieldReader::new(&[2, 0xff])),
            Err(FieldError::Truncated)
        );
    }
}
