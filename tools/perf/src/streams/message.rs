//! What messages look like: templates to publish, and the parts of what comes that matter here.
//!
//! A message is sections of AMQP 1.0 (its specification, 3.2): properties, where a super stream or a filter needs them, and
//! data. Clients of RabbitMQ's streams understand it, whatever language they are in. With `--codec simple` it is the bare body.

use super::plan::{Codec, Plan};
use super::stamp::{self, Stamp};
use crate::message::seal;

/// The constructor of a described type, and the small ulong behind it.
const DESCRIBED: [u8; 2] = [0x00, 0x53];
const PROPERTIES: u8 = 0x73;
const DATA: u8 = 0x75;
const NULL: u8 = 0x40;
const ULONG: u8 = 0x80;
const LIST32: u8 = 0xd0;
const STRING8: u8 = 0xa1;
const STRING32: u8 = 0xb1;
const BINARY8: u8 = 0xa0;
const BINARY32: u8 = 0xb0;

/// A message that is copied and then filled in.
#[derive(Debug, Clone)]
pub struct Template {
    bytes: Vec<u8>,
    /// Where its id is, with a super stream.
    id_at: Option<usize>,
    body_at: usize,
    /// Of what follows the seal, with `--verify`.
    filler: Option<u32>,
    /// What filters look for, and where it is to be found in the message.
    pub filter_value: Option<String>,
}

/// Who numbers a message and which number it gets, with `--verify`.
#[derive(Debug, Clone, Copy)]
pub struct Numbered {
    pub publisher: u32,
    pub sequence: u64,
}

impl Template {
    /// A template for each filter value, or the one that there is without.
    pub fn all(plan: &Plan) -> Vec<Self> {
        let values = &plan.producing.filter_values;
        match values.is_empty() {
            true => vec![Self::new(plan, None)],
            false => values.iter().map(|value| Self::new(plan, Some(value))).collect(),
        }
    }

    fn new(plan: &Plan, filter_value: Option<&str>) -> Self {
        let mut bytes = Vec::new();
        let has_id = plan.streams.partitions.is_some();
        let has_properties = has_id || filter_value.is_some();
        let id_at = has_properties.then(|| put_properties(&mut bytes, has_id, filter_value));
        let id_at = id_at.filter(|_| has_id);
        let size = plan.producing.size;
        if plan.producing.codec == Codec::Amqp {
            bytes.extend([DESCRIBED[0], DESCRIBED[1], DATA]);
            match u8::try_from(size) {
                Ok(size) => bytes.extend([BINARY8, size]),
                Err(_) => {
                    bytes.push(BINARY32);
                    bytes.extend((size as u32).to_be_bytes());
                }
            }
        }
        let body_at = bytes.len();
        bytes.resize(body_at + size, 0);
        let filler = plan.verify.then(|| seal::filler_crc(&bytes[body_at..]));
        Self {
            bytes,
            id_at,
            body_at,
            filler,
            filter_value: filter_value.map(str::to_owned),
        }
    }

    /// The bytes to copy.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Fills in a copy.
    #[inline]
    pub fn fill(&self, copy: &mut [u8], stamp: Stamp, id: u64, numbered: Option<Numbered>) {
        if let Some(at) = self.id_at {
            copy[at..at + 8].copy_from_slice(&id.to_be_bytes());
        }
        let body = &mut copy[self.body_at..];
        stamp::write(body, stamp);
        if let (Some(filler), Some(it)) = (self.filler, numbered) {
            seal::write(&mut body[..seal::LENGTH], it.publisher, it.sequence, filler);
        }
    }
}

/// Appends the section with what is needed of message-id, user-id and to; says where the id is.
fn put_properties(out: &mut Vec<u8>, has_id: bool, to: Option<&str>) -> usize {
    out.extend([DESCRIBED[0], DESCRIBED[1], PROPERTIES, LIST32]);
    let size_at = out.len();
    out.extend([0; 4]);
    out.extend(if to.is_some() { 3u32 } else { 1 }.to_be_bytes());
    let mut id_at = 0;
    if has_id {
        out.push(ULONG);
        id_at = out.len();
        out.extend([0; 8]);
    } else {
        out.push(NULL);
    }
    if let Some(to) = to {
        out.push(NULL);
        match u8::try_from(to.len()) {
            Ok(length) => out.extend([STRING8, length]),
            Err(_) => {
                out.push(STRING32);
                out.extend((to.len() as u32).to_be_bytes());
            }
        }
        out.extend(to.as_bytes());
    }
    let size = (out.len() - size_at - 4) as u32;
    out[size_at..size_at + 4].copy_from_slice(&size.to_be_bytes());
    id_at
}

/// What matters of a message that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts<'a> {
    /// The first section of data; empty if there is none.
    pub body: &'a [u8],
    /// The property `to`, in which stream-perf-test repeats the filter value.
    pub to: Option<&'a [u8]>,
}

/// Takes a message apart. What is no message of AMQP 1.0 is a body as a whole.
#[inline]
pub fn parts(message: &[u8], codec: Codec) -> Parts<'_> {
    if codec == Codec::Amqp {
        // Nearly all: a section of data alone.
        if let [0x00, 0x53, DATA, BINARY8, length, body @ ..] = message
            && body.len() == usize::from(*length)
        {
            return Parts { body, to: None };
        }
        if let Some(parts) = sections(message) {
            return parts;
        }
    }
    Parts {
        body: message,
        to: None,
    }
}

fn sections(mut rest: &[u8]) -> Option<Parts<'_>> {
    let mut parts = Parts::default();
    while !rest.is_empty() {
        let (kind, after) = descriptor(rest)?;
        let (value, next) = value(after)?;
        match kind {
            PROPERTIES => parts.to = to_of(after, value),
            DATA => {
                parts.body = value;
                return Some(parts);
            }
            _ => {}
        }
        rest = next;
    }
    Some(parts)
}

/// The kind of the section that begins here: its descriptor is a ulong, in the short form or the long one.
fn descriptor(bytes: &[u8]) -> Option<(u8, &[u8])> {
    match bytes {
        [0x00, 0x53, kind, rest @ ..] | [0x00, ULONG, 0, 0, 0, 0, 0, 0, 0, kind, rest @ ..] => {
            Some((*kind, rest))
        }
        _ => None,
    }
}

/// The content of the value that begins here, and what follows it (AMQP 1.0, 1.2: the upper half of a constructor tells how
/// long its value is).
/// None is described by what is described itself.
fn value(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    match bytes.split_first()? {
        (0x00, descriptor) => plain(plain(descriptor)?.1),
        _ => plain(bytes),
    }
}

fn plain(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (constructor, rest) = bytes.split_first()?;
    let (length, rest) = match constructor >> 4 {
        0x4 => (0, rest),
        0x5 => (1, rest),
        0x6 => (2, rest),
        0x7 => (4, rest),
        0x8 => (8, rest),
        0x9 => (16, rest),
        0xa | 0xc | 0xe => {
            let (length, rest) = rest.split_first()?;
            (usize::from(*length), rest)
        }
        0xb | 0xd | 0xf => {
            let (length, rest) = rest.split_first_chunk::<4>()?;
            (u32::from_be_bytes(*length) as usize, rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// The third field of the properties in this list.
fn to_of<'a>(list: &[u8], content: &'a [u8]) -> Option<&'a [u8]> {
    let count = match list.first()? >> 4 {
        0xc => 1,
        0xd => 4,
        _ => return None,
    };
    let mut fields = content.get(count..)?;
    for _ in 0..2 {
        (_, fields) = value(fields)?;
    }
    let is_string = matches!(fields.first()?, &STRING8 | &STRING32);
    value(fields).filter(|_| is_string).map(|(to, _)| to)
}

/// The partition of a super stream that a message with this id belongs to: the Java client's hash of its decimal digits, so
/// that both tools send the same to the same one.
pub fn partition(id: u64, partitions: usize) -> usize {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = id;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    murmur3(&digits[at..], JAVA_SEED) as usize % partitions.max(1)
}

/// The seed of RabbitMQ's clients.
const JAVA_SEED: u32 = 104_729;

/// MurmurHash3, the 32-bit variant.
fn murmur3(bytes: &[u8], seed: u32) -> u32 {
    let mix = |word: u32| {
        word.wrapping_mul(0xcc9e_2d51)
            .rotate_left(15)
            .wrapping_mul(0x1b87_3593)
    };
    let mut hash = seed;
    let (words, tail) = bytes.as_chunks::<4>();
    for word in words {
        hash = (hash ^ mix(u32::from_le_bytes(*word)))
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64);
    }
    let last = tail
        .iter()
        .rev()
        .fold(0, |word, byte| word << 8 | u32::from(*byte));
    if !tail.is_empty() {
        hash ^= mix(last);
    }
    hash ^= bytes.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::trial::plan;
    use proptest::prelude::*;

    const STAMP: Stamp = Stamp {
        at: 1_700_000_000_000_000_000,
        lag_us: 3,
    };

    fn filled(template: &Template, id: u64, numbered: Option<Numbered>) -> Vec<u8> {
        let mut copy = template.bytes().to_vec();
        template.fill(&mut copy, STAMP, id, numbered);
        copy
    }

    #[test]
    fn a_plain_message_is_a_section_of_data() {
        let template = &Template::all(&plan("-s 12"))[0];
        let message = filled(template, 5, None);
        assert_eq!(message[..5], [0x00, 0x53, 0x75, 0xa0, 12]);
        let read = parts(&message, Codec::Amqp);
        assert_eq!((read.body.len(), read.to), (12, None));
        assert_eq!(stamp::read(read.body).map(|it| it.at), Some(STAMP.at));
        let large = filled(&Template::all(&plan("-s 300"))[0], 5, None);
        assert_eq!(large[..8], [0x00, 0x53, 0x75, 0xb0, 0, 0, 1, 44]);
        assert_eq!(parts(&large, Codec::Amqp).body.len(), 300);
        let simple = filled(&Template::all(&plan("-s 12 -cc simple"))[0], 5, None);
        assert_eq!((simple.len(), parts(&simple, Codec::Simple).body.len()), (12, 12));
        assert_eq!(stamp::read(&simple).map(|it| it.at), Some(STAMP.at));
    }

    #[test]
    fn ids_and_filter_values_are_properties() {
        let templates = Template::all(&plan("-sst -fvs a,bb"));
        let message = filled(&templates[1], 258, None);
        let golden =
            b"\x00\x53\x73\xd0\0\0\0\x12\0\0\0\x03\x80\0\0\0\0\0\0\x01\x02\x40\xa1\x02bb\x00\x53\x75\xa0\x0a";
        assert_eq!(message[..golden.len()], golden[..]);
        let read = parts(&message, Codec::Amqp);
        assert_eq!((read.to, read.body.len()), (Some(&b"bb"[..]), 10));
        let without_id = filled(&Template::all(&plan("-fvs a"))[0], 0, None);
        assert_eq!(parts(&without_id, Codec::Amqp).to, Some(&b"a"[..]));
        let without_value = filled(&Template::all(&plan("-sst"))[0], 9, None);
        assert_eq!(parts(&without_value, Codec::Amqp).to, None);
    }

    #[test]
    fn a_verified_message_has_a_seal_behind_its_stamp() {
        let template = &Template::all(&plan("--verify -s 64"))[0];
        let message = filled(
            template,
            0,
            Some(Numbered {
                publisher: 4,
                sequence: 99,
            }),
        );
        let sealed = seal::read(parts(&message, Codec::Amqp).body).unwrap();
        assert_eq!((sealed.ours, sealed.producer, sealed.sequence), (true, 4, 99));
    }

    #[test]
    fn sections_of_other_clients_are_passed_over() {
        // A header, annotations, properties as a short list with a binary id, and data with a long descriptor.
        let message = b"\x00\x53\x70\xc0\x02\x01\x41\x00\x53\x72\xc1\x05\x02\xa3\x01x\x41\
            \x00\x53\x73\xc0\x09\x03\xa0\x01i\x40\xa1\x02to\x00\x80\0\0\0\0\0\0\0\x75\xa0\x02hi";
        assert_eq!(
            parts(message, Codec::Amqp),
            Parts {
                body: b"hi",
                to: Some(b"to")
            }
        );
        let value_only = b"\x00\x53\x77\xa1\x02hi";
        assert_eq!(parts(value_only, Codec::Amqp).body, b"");
        assert_eq!(parts(b"bare", Codec::Amqp).body, b"bare");
    }

    #[test]
    fn the_hash_is_murmur3() {
        // From the reference implementation.
        assert_eq!(murmur3(b"", 0), 0);
        assert_eq!(murmur3(b"", 1), 0x514e_28b7);
        assert_eq!(murmur3(b"test", 0), 0xba6b_d213);
        assert_eq!(murmur3(b"Hello, world!", 0), 0xc036_3e43);
        assert_eq!(murmur3(b"Hello, world!", 0x9747_b28c), 0x2488_4cba);
        let mut hits = [0; 3];
        (0..3_000).for_each(|id| hits[partition(id, 3)] += 1);
        assert!(hits.iter().all(|it| (900..1_100).contains(it)), "{hits:?}");
    }

    proptest! {
        #[test]
        fn no_message_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut message = vec![0x00, 0x53, 0x73];
            message.extend(&bytes);
            parts(&message, Codec::Amqp);
            parts(&bytes, Codec::Amqp);
        }
    }
}
