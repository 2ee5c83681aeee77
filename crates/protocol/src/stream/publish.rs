//! What clients publish: many messages in one frame, each with a number and as it will stand in a chunk.
//!
//! An entry is a message, or a batch of messages that the client has put together and mostly compressed. A frame is looked
//! through once when it is read, so that a wrong length in its last entry is found before its first one is stored; nothing
//! looks into a batch.

use super::field::{Field, Malformed, Reader, Text};
use super::frame::HEAD;
use super::key::Key;

/// The bit that marks a batch, in the first byte of an entry.
const BATCH: u8 = 0x80;
/// How many bytes stand before a batch: kind and compression, records, uncompressed size, size.
const BATCH_HEAD: usize = 1 + 2 + 4 + 4;

/// Messages for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// The client's number for the publisher.
    pub publisher_id: u8,
    /// One after the other.
    pub entries: Entries<'a>,
}

/// The entries of a [`Publish`], where they came; they can all be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entries<'a> {
    count: u32,
    filtered: bool,
    bytes: &'a [u8],
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The publisher's number for it; a batch has the number of its last message.
    pub publishing_id: u64,
    /// What filters look for, if it was published with that; only in version 2.
    pub filter_value: Option<Text<'a>>,
    /// The entry as it will stand in a chunk: its head, and the message or the batch.
    pub bytes: &'a [u8],
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// A message.
    Message(&'a [u8]),
    /// Several.
    Batch {
        /// 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; 5 to 7 nobody knows.
        compression: u8,
        /// How many messages, as the client says.
        records: u16,
        /// How large it is without compression, as the client says, in bytes.
        uncompressed_bytes: u32,
        /// The batch.
        batch: &'a [u8],
    },
}

impl Body<'_> {
    /// Appends the entry as it will stand in a chunk.
    fn write(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Message(message) => {
                (message.len() as u32 & u32::MAX >> 1).write(out);
                out.extend_from_slice(message);
            }
            Self::Batch {
                compression,
                records,
                uncompressed_bytes,
                batch,
            } => {
                (BATCH | (compression & 7) << 4).write(out);
                records.write(out);
                uncompressed_bytes.write(out);
                (batch.len() as u32).write(out);
                out.extend_from_slice(batch);
            }
        }
    }
}

impl<'a> Publish<'a> {
    /// Reads what stands behind key and version.
    pub(super) fn read(version: u16, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let publisher_id = u8::read(reader)?;
        let count = u32::read(reader)?;
        let filtered = version >= 2;
        let whole = reader.rest();
        for _ in 0..count {
            Entry::read(filtered, reader)?;
        }
        let entries = Entries {
            count,
            filtered,
            bytes: &whole[..whole.len() - reader.rest().len()],
        };
        Ok(Self {
            publisher_id,
            entries,
        })
    }

    /// The version that it is written in.
    pub(super) fn version(&self) -> u16 {
        1 + u16::from(self.entries.filtered)
    }

    /// Appends what stands behind key and version.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        self.publisher_id.write(out);
        self.entries.count.write(out);
        out.extend_from_slice(self.entries.bytes);
    }
}

impl<'a> Entries<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// One after the other.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let (mut reader, filtered) = (Reader::new(self.bytes), self.filtered);
        // All were read before, so the end is the only one that can't be.
        std::iter::from_fn(move || Entry::read(filtered, &mut reader).ok())
    }
}

impl<'a> Entry<'a> {
    #[inline]
    fn read(filtered: bool, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let publishing_id = u64::read(reader)?;
        let filter_value = match filtered {
            true => Text::read_optional(reader)?,
            false => None,
        };
        let length = entry_length(reader.rest())?;
        Ok(Self {
            publishing_id,
            filter_value,
            bytes: reader.take(length)?,
        })
    }

    /// What the entry is.
    ///
    /// # Errors
    /// If it is not one. Those of [`Entries`] are.
    pub fn body(&self) -> Result<Body<'a>, Malformed> {
        let mut reader = Reader::new(self.bytes);
        let kind = *self.bytes.first().ok_or(Malformed)?;
        if kind & BATCH == 0 {
            let length = u32::read(&mut reader)?;
            return reader.take(length as usize).map(Body::Message);
        }
        reader.take(1)?;
        let records = u16::read(&mut reader)?;
        let uncompressed_bytes = u32::read(&mut reader)?;
        let length = u32::read(&mut reader)?;
        Ok(Body::Batch {
            compression: kind >> 4 & 7,
            records,
            uncompressed_bytes,
            batch: reader.take(length as usize)?,
        })
    }

    /// How many messages it is: those that a batch says it has.
    pub fn records(&self) -> u16 {
        match self.bytes {
            [kind, r0, r1, ..] if kind & BATCH != 0 => u16::from_be_bytes([*r0, *r1]),
            _ => 1,
        }
    }
}

/// How long the entry is that begins here, its head included, in bytes. A batch of no messages would have no offset, so it
/// is none.
#[inline]
fn entry_length(bytes: &[u8]) -> Result<usize, Malformed> {
    let head: [u8; 4] = *bytes.first_chunk().ok_or(Malformed)?;
    if head[0] & BATCH == 0 {
        return Ok(4 + u32::from_be_bytes(head) as usize);
    }
    let [_, r0, r1, .., l0, l1, l2, l3]: [u8; BATCH_HEAD] = *bytes.first_chunk().ok_or(Malformed)?;
    match u16::from_be_bytes([r0, r1]) {
        0 => Err(Malformed),
        _ => Ok(BATCH_HEAD + u32::from_be_bytes([l0, l1, l2, l3]) as usize),
    }
}

/// A [`Publish`] in the making, as a client does it.
#[derive(Clone, Debug)]
pub struct EntriesBuf {
    count: u32,
    filtered: bool,
    bytes: Vec<u8>,
}

impl EntriesBuf {
    /// An empty one, of version 2 if entries are to have filter values.
    pub fn new(filtered: bool) -> Self {
        Self {
            count: 0,
            filtered,
            bytes: Vec::new(),
        }
    }

    /// Adds an entry. A filter value counts only if there may be any. Messages of 2 GiB and more are not known.
    pub fn push(&mut self, publishing_id: u64, filter_value: Option<Text<'_>>, body: &Body<'_>) {
        self.count += 1;
        let out = &mut self.bytes;
        publishing_id.write(out);
        if self.filtered {
            Text::write_optional(filter_value, out);
        }
        body.write(out);
    }

    /// What was added.
    pub fn as_entries(&self) -> Entries<'_> {
        Entries {
            count: self.count,
            filtered: self.filtered,
            bytes: &self.bytes,
        }
    }

    /// Forgets what was added; the memory is used again.
    pub fn clear(&mut self) {
        self.count = 0;
        self.bytes.clear();
    }
}

/// A frame of messages that is made where it will be written from: nothing is copied but the messages themselves.
#[derive(Debug)]
pub struct PublishFrame<'o> {
    out: &'o mut Vec<u8>,
    at: usize,
    count: u32,
    filtered: bool,
}

impl<'o> PublishFrame<'o> {
    /// What stands before the first entry, in bytes: size, key, version, publisher, count.
    pub const HEAD: usize = HEAD + 2 + 2 + 1 + 4;
    /// What stands before a message without filter value, in bytes: number and length.
    pub const MESSAGE_HEAD: usize = 8 + 4;

    /// Begins a frame behind what is in `out`, of version 2 if entries are to have filter values.
    pub fn begin(out: &'o mut Vec<u8>, publisher_id: u8, filtered: bool) -> Self {
        let at = out.len();
        0u32.write(out);
        Key::Publish.number().write(out);
        (1 + u16::from(filtered)).write(out);
        publisher_id.write(out);
        0u32.write(out);
        Self {
            out,
            at,
            count: 0,
            filtered,
        }
    }

    /// Adds a message and gives it back, so that what differs from its template can be written where it stands. A filter value
    /// counts only if there may be any. Messages of 2 GiB and more are not known.
    #[inline]
    pub fn message(
        &mut self,
        publishing_id: u64,
        filter_value: Option<Text<'_>>,
        template: &[u8],
    ) -> &mut [u8] {
        self.entry(publishing_id, filter_value);
        (template.len() as u32 & u32::MAX >> 1).write(self.out);
        let at = self.out.len();
        self.out.extend_from_slice(template);
        &mut self.out[at..]
    }

    /// Adds a batch, or whatever else an entry may be.
    pub fn body(&mut self, publishing_id: u64, filter_value: Option<Text<'_>>, body: &Body<'_>) {
        self.entry(publishing_id, filter_value);
        body.write(self.out);
    }

    fn entry(&mut self, publishing_id: u64, filter_value: Option<Text<'_>>) {
        self.count += 1;
        publishing_id.write(self.out);
        if self.filtered {
            Text::write_optional(filter_value, self.out);
        }
    }

    /// The frame's length so far, without the four bytes of its size.
    pub fn size(&self) -> usize {
        self.out.len() - self.at - HEAD
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// True if it has none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Completes the frame; one without entries is taken back.
    pub fn finish(self) {
        if self.count == 0 {
            return self.out.truncate(self.at);
        }
        let size = self.size() as u32;
        self.out[self.at..self.at + HEAD].copy_from_slice(&size.to_be_bytes());
        let count = self.at + Self::HEAD - 4;
        self.out[count..count + 4].copy_from_slice(&self.count.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_made_in_place_is_the_same_as_one_that_is_encoded() {
        for filtered in [false, true] {
            let mut entries = EntriesBuf::new(filtered);
            entries.push(7, Some("lost".into()), &Body::Message(b"hello"));
            entries.push(9, None, &BATCH_OF_TWO);
            let mut wanted = b"before".to_vec();
            crate::stream::Command::Publish(Publish {
                publisher_id: 3,
                entries: entries.as_entries(),
            })
            .encode(&mut wanted);
            let mut out = b"before".to_vec();
            PublishFrame::begin(&mut out, 3, filtered).finish();
            let mut frame = PublishFrame::begin(&mut out, 3, filtered);
            frame
                .message(7, Some("lost".into()), b"hallo")
                .copy_from_slice(b"hello");
            frame.body(9, None, &BATCH_OF_TWO);
            assert_eq!((frame.len(), frame.size()), (2, wanted.len() - 10));
            frame.finish();
            assert_eq!(out, wanted);
        }
    }

    const BATCH_OF_TWO: Body<'_> = Body::Batch {
        compression: 4,
        records: 2,
        uncompressed_bytes: 300,
        batch: b"zzz",
    };

    fn read(version: u16, bytes: &[u8]) -> Result<Publish<'_>, Malformed> {
        let mut reader = Reader::new(bytes);
        Publish::read(version, &mut reader)
            .and_then(|it| if reader.is_empty() { Ok(it) } else { Err(Malformed) })
    }

    #[test]
    fn messages_and_batches_are_what_they_will_be_in_a_chunk() {
        let mut entries = EntriesBuf::new(false);
        entries.push(7, Some("lost".into()), &Body::Message(b"hello"));
        entries.push(9, None, &BATCH_OF_TWO);
        let publish = Publish {
            publisher_id: 3,
            entries: entries.as_entries(),
        };
        let mut out = Vec::new();
        publish.write(&mut out);
        let golden = b"\x03\0\0\0\x02\0\0\0\0\0\0\0\x07\0\0\0\x05hello\
            \0\0\0\0\0\0\0\x09\xc0\0\x02\0\0\x01\x2c\0\0\0\x03zzz";
        assert_eq!(out, golden);
        let read = read(1, golden).unwrap();
        assert_eq!(read, publish);
        let [first, second] = read.entries.iter().collect::<Vec<_>>()[..] else {
            panic!("two entries")
        };
        assert_eq!((first.publishing_id, first.filter_value), (7, None));
        assert_eq!((first.bytes, first.records()), (&b"\0\0\0\x05hello"[..], 1));
        assert_eq!(first.body(), Ok(Body::Message(b"hello")));
        assert_eq!((second.body(), second.records()), (Ok(BATCH_OF_TWO), 2));
    }

    #[test]
    fn the_second_version_has_filter_values() {
        let mut entries = EntriesBuf::new(true);
        entries.push(1, Some("blue".into()), &Body::Message(b"a"));
        entries.push(2, Some("".into()), &Body::Message(b"b"));
        entries.push(3, None, &BATCH_OF_TWO);
        let publish = Publish {
            publisher_id: 0,
            entries: entries.as_entries(),
        };
        assert_eq!(publish.version(), 2);
        let mut out = Vec::new();
        publish.write(&mut out);
        let values: Vec<_> = read(2, &out)
            .unwrap()
            .entries
            .iter()
            .map(|it| it.filter_value)
            .collect();
        assert_eq!(values, [Some("blue".into()), Some("".into()), None]);
        assert!(read(1, &out).is_err(), "the first version has none");
    }

    #[test]
    fn lengths_and_counts_must_be_right_to_the_last_entry() {
        let golden = &b"\0\0\0\0\x02\0\0\0\0\0\0\0\x01\0\0\0\x01a\0\0\0\0\0\0\0\x02\0\0\0\x01b"[..];
        assert!(read(1, golden).is_ok());
        for end in 0..golden.len() {
            assert!(read(1, &golden[..end]).is_err(), "{end}");
        }
        for (at, wrong) in [
            (4, 1),
            (4, 3),
            (1, 0xff),
            (16, 2),
            (16, 0xff),
            (29, 2),
            (26, 0x7f),
        ] {
            let mut lying = golden.to_vec();
            lying[at] = wrong;
            assert!(read(1, &lying).is_err(), "{at} {wrong}");
        }
        let of_none = b"\0\0\0\0\x01\0\0\0\0\0\0\0\x01\x80\0\0\0\0\0\0\0\0\0\0";
        assert!(read(1, of_none).is_err());
    }
}
