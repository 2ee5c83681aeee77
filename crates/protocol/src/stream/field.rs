//! How what commands carry is read and written: numbers, strings, bytes and arrays, all in network order.
//!
//! Nothing is copied and nothing is allocated when something is read: strings and arrays lie where they came. The elements of
//! an array are looked at once when it is read, so that a count which promises more than there is costs nothing.

use std::fmt;
use std::marker::PhantomData;

/// The bytes are not what they should be. After that nothing can be said about the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Reads one field after the other.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// `bytes` are what stands behind a command's head.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// True if nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next so many bytes.
    ///
    /// # Errors
    /// If there are fewer.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.rest.split_at_checked(count).ok_or(Malformed)?;
        self.rest = tail;
        Ok(head)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// If there are fewer.
    #[inline]
    pub fn take_array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(Malformed)?;
        self.rest = tail;
        Ok(*head)
    }
}

/// A type that a field may have.
pub trait Field<'a>: Sized {
    /// Reads one.
    ///
    /// # Errors
    /// If the bytes end within it, or are not one.
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed>;

    /// Appends it.
    fn write(&self, out: &mut Vec<u8>);
}

macro_rules! integers {
    ($($type:ty),*) => {
        $(impl<'a> Field<'a> for $type {
            #[inline]
            fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
                reader.take_array().map(Self::from_be_bytes)
            }

            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }
        })*
    };
}

integers!(u8, u16, u32, u64, i64);

/// One byte: 0 or 1, and nothing else.
impl<'a> Field<'a> for bool {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        match u8::read(reader)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        u8::from(*self).write(out);
    }
}

/// The length of a string that is not there.
const NO_TEXT: u16 = u16::MAX;

/// A string. RabbitMQ does not look into it, so it may be any bytes; one that is not there reads as an empty one.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Text<'a>(pub &'a [u8]);

impl<'a> Text<'a> {
    /// The longest that can be written, in bytes; longer ones are cut.
    pub const LONGEST: usize = NO_TEXT as usize - 1;

    /// As text; `None` if it is not UTF-8.
    pub fn as_str(self) -> Option<&'a str> {
        std::str::from_utf8(self.0).ok()
    }

    /// Reads one that may be missing (a length of −1).
    #[inline]
    pub(super) fn read_optional(reader: &mut Reader<'a>) -> Result<Option<Self>, Malformed> {
        match u16::read(reader)? {
            NO_TEXT => Ok(None),
            length => reader.take(length.into()).map(|bytes| Some(Self(bytes))),
        }
    }

    /// Appends one, or that there is none.
    pub(super) fn write_optional(text: Option<Self>, out: &mut Vec<u8>) {
        match text {
            Some(text) => text.write(out),
            None => NO_TEXT.write(out),
        }
    }
}

impl<'a> Field<'a> for Text<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Self::read_optional(reader).map(Option::unwrap_or_default)
    }

    fn write(&self, out: &mut Vec<u8>) {
        let bytes = &self.0[..self.0.len().min(Self::LONGEST)];
        (bytes.len() as u16).write(out);
        out.extend_from_slice(bytes);
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(text.as_bytes())
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.0))
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.0))
    }
}

/// Bytes with a length of four bytes; a length of −1 reads as none. It may be a password, so it has no debug form.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Opaque<'a>(pub &'a [u8]);

impl<'a> Field<'a> for Opaque<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        match u32::read(reader)? {
            u32::MAX => Ok(Self::default()),
            length => reader.take(length as usize).map(Self),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        (self.0.len() as u32).write(out);
        out.extend_from_slice(self.0);
    }
}

impl fmt::Debug for Opaque<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} bytes)", self.0.len())
    }
}

/// A name with a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Property<'a> {
    /// The name.
    pub key: Text<'a>,
    /// The value.
    pub value: Text<'a>,
}

impl<'a> Field<'a> for Property<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            key: Text::read(reader)?,
            value: Text::read(reader)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.key.write(out);
        self.value.write(out);
    }
}

/// An array whose elements lie where they came; they can all be read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct List<'a, T> {
    count: u32,
    bytes: &'a [u8],
    of: PhantomData<fn() -> T>,
}

impl<'a, T: Field<'a>> List<'a, T> {
    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = T> + use<'a, T> {
        let mut reader = Reader::new(self.bytes);
        // All were read before, so the end is the only one that can't be.
        std::iter::from_fn(move || T::read(&mut reader).ok())
    }
}

impl<T> Default for List<'_, T> {
    fn default() -> Self {
        Self {
            count: 0,
            bytes: &[],
            of: PhantomData,
        }
    }
}

impl<'a, T: Field<'a> + fmt::Debug> fmt::Debug for List<'a, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Field<'a>> Field<'a> for List<'a, T> {
    /// The count must be right. RabbitMQ passes over most of them; no client of its makers sends a wrong one.
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let count = u32::read(reader)?;
        let whole = reader.rest();
        for _ in 0..count {
            T::read(reader)?;
        }
        let length = whole.len() - reader.rest().len();
        Ok(Self {
            count,
            bytes: &whole[..length],
            of: PhantomData,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.count.write(out);
        out.extend_from_slice(self.bytes);
    }
}

/// An array that is being made, to be written.
#[derive(Clone, Debug, Default)]
pub struct ListBuf {
    count: u32,
    bytes: Vec<u8>,
}

impl ListBuf {
    /// An array of these.
    pub fn of<'a, T: Field<'a>>(elements: impl IntoIterator<Item = T>) -> Self {
        let mut list = Self::default();
        for element in elements {
            list.count += 1;
            element.write(&mut list.bytes);
        }
        list
    }

    /// The array. `T` is what it was made of.
    pub fn as_list<'a, T: Field<'a>>(&'a self) -> List<'a, T> {
        List {
            count: self.count,
            bytes: &self.bytes,
            of: PhantomData,
        }
    }
}

/// Properties. If a name comes twice, the later one counts, as in RabbitMQ.
pub type Properties<'a> = List<'a, Property<'a>>;

impl<'a> Properties<'a> {
    /// The value of this name.
    pub fn get(&self, key: &str) -> Option<Text<'a>> {
        let found = self.iter().filter(|property| property.key.0 == key.as_bytes());
        found.last().map(|property| property.value)
    }
}

/// Properties at the end of a command that need not be there at all: older clients and servers leave them out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trailing<'a>(pub Properties<'a>);

impl<'a> Field<'a> for Trailing<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        match reader.is_empty() {
            true => Ok(Self::default()),
            false => Properties::read(reader).map(Self),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        if !self.0.is_empty() {
            self.0.write(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a, T: Field<'a>>(bytes: &'a [u8]) -> Result<T, Malformed> {
        let mut reader = Reader::new(bytes);
        T::read(&mut reader).and_then(|field| {
            if reader.is_empty() {
                Ok(field)
            } else {
                Err(Malformed)
            }
        })
    }

    #[test]
    fn strings_are_any_bytes_and_may_be_missing() {
        assert_eq!(read(b"\0\x02\xffa"), Ok(Text(b"\xffa")));
        assert_eq!(read(b"\xff\xff"), Ok(Text(b"")));
        assert_eq!(read::<Text<'_>>(b"\0\x03ab"), Err(Malformed));
        let long = "a".repeat(70_000);
        let mut out = Vec::new();
        Text::from(long.as_str()).write(&mut out);
        assert_eq!(read::<Text<'_>>(&out).map(|text| text.0.len()), Ok(Text::LONGEST));
        assert_eq!(Text(b"\xff").as_str(), None);
    }

    #[test]
    fn what_may_be_a_password_is_not_shown() {
        assert_eq!(format!("{:?}", Opaque(b"\0guest\0secret")), "(13 bytes)");
        assert_eq!(read(b"\xff\xff\xff\xff"), Ok(Opaque(b"")));
        assert_eq!(read::<Opaque<'_>>(b"\x7f\xff\xff\xffa"), Err(Malformed));
    }

    #[test]
    fn an_array_has_as_many_elements_as_it_says() {
        let names: List<'_, Text<'_>> = read(b"\0\0\0\x02\0\x01a\0\x02bc").unwrap();
        assert_eq!(names.len(), 2);
        assert_eq!(names.iter().collect::<Vec<_>>(), [Text(b"a"), Text(b"bc")]);
        for lying in [
            &b"\0\0\0\x03\0\x01a\0\x02bc"[..],
            b"\0\0\0\x01\0\x01a\0\x02bc",
            b"\xff\xff\xff\xff\0\x01a\0\x02bc",
        ] {
            assert!(read::<List<'_, Text<'_>>>(lying).is_err(), "{lying:?}");
        }
    }

    #[test]
    fn the_later_of_two_values_counts() {
        let pairs = [("a", "1"), ("b", "2"), ("a", "3")].map(|(key, value)| Property {
            key: key.into(),
            value: value.into(),
        });
        let list = ListBuf::of(pairs);
        let properties: Properties<'_> = list.as_list();
        assert_eq!(properties.get("a"), Some("3".into()));
        assert_eq!(properties.get("c"), None);
        let mut out = Vec::new();
        Trailing(properties).write(&mut out);
        assert_eq!(read(&out), Ok(Trailing(properties)));
        assert_eq!(read(b""), Ok(Trailing::default()));
        assert!(read::<Properties<'_>>(b"").is_err());
    }
}
