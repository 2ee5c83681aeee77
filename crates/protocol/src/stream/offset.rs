//! Where a subscription begins.

use super::field::{Field, Malformed, Reader};

const NONE: u16 = 0;
const FIRST: u16 = 1;
const LAST: u16 = 2;
const NEXT: u16 = 3;
const OFFSET: u16 = 4;
const TIMESTAMP: u16 = 5;

/// Where a subscription begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetSpec {
    /// With the first chunk that is left.
    First,
    /// With the last chunk that is committed.
    Last,
    /// With what is published from now on.
    Next,
    /// With the chunk that has this offset, or the first one that is left if it is gone.
    Offset(u64),
    /// With the first chunk that was written at this time or later, in milliseconds since the Unix epoch.
    Timestamp(i64),
}

impl OffsetSpec {
    fn read_kind(kind: u16, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match kind {
            FIRST => Self::First,
            LAST => Self::Last,
            NEXT => Self::Next,
            OFFSET => Self::Offset(u64::read(reader)?),
            TIMESTAMP => Self::Timestamp(i64::read(reader)?),
            _ => return Err(Malformed),
        })
    }
}

impl<'a> Field<'a> for OffsetSpec {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let kind = u16::read(reader)?;
        Self::read_kind(kind, reader)
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::First => FIRST.write(out),
            Self::Last => LAST.write(out),
            Self::Next => NEXT.write(out),
            Self::Offset(offset) => {
                OFFSET.write(out);
                offset.write(out);
            }
            Self::Timestamp(timestamp_ms) => {
                TIMESTAMP.write(out);
                timestamp_ms.write(out);
            }
        }
    }
}

/// Nothing, where a client does not say where to begin: its subscription said so.
impl<'a> Field<'a> for Option<OffsetSpec> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let spec = match u16::read(reader)? {
            NONE => None,
            kind => Some(OffsetSpec::read_kind(kind, reader)?),
        };
        // Some clients write a number whatever the kind is; RabbitMQ takes no notice of it.
        if !reader.is_empty() {
            u64::read(reader)?;
        }
        Ok(spec)
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            None => NONE.write(out),
            Some(spec) => spec.write(out),
        }
    }
}

/// What a spec was resolved to: always an offset in RabbitMQ, which fills both fields whatever the answer's code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved(pub u64);

impl<'a> Field<'a> for Resolved {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        match OffsetSpec::read(reader)? {
            OffsetSpec::Offset(offset) => Ok(Self(offset)),
            _ => Err(Malformed),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        OffsetSpec::Offset(self.0).write(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_offset_and_a_timestamp_have_a_value() {
        for (spec, bytes) in [
            (OffsetSpec::First, &b"\0\x01"[..]),
            (OffsetSpec::Last, b"\0\x02"),
            (OffsetSpec::Next, b"\0\x03"),
            (OffsetSpec::Offset(258), b"\0\x04\0\0\0\0\0\0\x01\x02"),
            (
                OffsetSpec::Timestamp(-1),
                b"\0\x05\xff\xff\xff\xff\xff\xff\xff\xff",
            ),
        ] {
            let mut out = Vec::new();
            spec.write(&mut out);
            assert_eq!(out, bytes);
            let mut reader = Reader::new(bytes);
            assert_eq!(OffsetSpec::read(&mut reader), Ok(spec));
            assert!(reader.is_empty());
            assert_eq!(
                <Option<OffsetSpec>>::read(&mut Reader::new(bytes)),
                Ok(Some(spec))
            );
        }
        assert_eq!(<Option<OffsetSpec>>::read(&mut Reader::new(b"\0\0")), Ok(None));
        let with_a_number = &mut Reader::new(b"\0\x01\0\0\0\0\0\0\0\0");
        assert_eq!(
            <Option<OffsetSpec>>::read(with_a_number),
            Ok(Some(OffsetSpec::First))
        );
        for bad in [&b"\0\0"[..], b"\0\x06", b"\0\x04\0\0", b"\0"] {
            assert_eq!(OffsetSpec::read(&mut Reader::new(bad)), Err(Malformed), "{bad:?}");
        }
    }
}
