//! Frames: what a link carries once it stands.
//!
//! ```text
//! frame       kind (1), length (4), checksum (4), so many bytes
//! ```
//!
//! The checksum (CRC-32 of kind, length and bytes) is there with TLS, too: what TCP has of the kind misses one damage in
//! 65,536, and what comes here is written to disks and given to consumers. Frames say nothing of a lane or of who sends: the
//! connection does.

use super::refusal::Refusal;
use bytes::Bytes;
use crc32fast::Hasher;

/// The bytes of a frame before what it brings.
pub const HEAD_BYTES: usize = 9;

/// A buffer for a frame is made this large at once, and grows with what comes: what one read of a client brings mostly fits.
const FIRST_BYTES: usize = 160 * 1024;

const DATA: u8 = 1;
const PING: u8 = 2;
const PONG: u8 = 3;
const GOODBYE: u8 = 4;

/// The longest bytes of a frame that is not [`DATA`].
const SMALL_LIMIT: usize = 8;

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// For whoever uses the lane.
    Data(Bytes),
    /// Is to be sent back as it is.
    Ping(u64),
    /// A ping of this end came back.
    Pong(u64),
    /// The last frame. `None` for a reason that this version does not know.
    Goodbye(Option<Refusal>),
}

/// A frame that is no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Small {
    Ping(u64),
    Pong(u64),
    Goodbye(Refusal),
}

/// What is wrong with what came. The link can't go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A frame of this length is longer than the lane allows, or than its kind can be.
    TooLong(u32),
    /// Its checksum is another one.
    Damaged,
    /// No version has such a kind.
    Kind(u8),
}

impl Fault {
    /// What the other end is told.
    pub const fn refusal(self) -> Refusal {
        match self {
            Self::TooLong(_) => Refusal::TooLong,
            Self::Damaged => Refusal::Damaged,
            Self::Kind(_) => Refusal::Rubbish,
        }
    }
}

/// The head of a frame of data that is made of these parts: they follow it. `None` if they are longer than any frame.
pub fn put_head(parts: &[Bytes], out: &mut Vec<u8>) -> Option<()> {
    let length = parts.iter().map(Bytes::len).sum::<usize>();
    put(
        DATA,
        u32::try_from(length).ok()?,
        parts.iter().map(Bytes::as_ref),
        out,
    );
    Some(())
}

/// Appends a frame that is no data.
pub fn put_small(small: Small, out: &mut Vec<u8>) {
    let (kind, stamp) = match small {
        Small::Ping(stamp) => (PING, stamp),
        Small::Pong(stamp) => (PONG, stamp),
        Small::Goodbye(why) => {
            let body = [why.number()];
            put(GOODBYE, 1, [&body[..]].into_iter(), out);
            return out.extend(body);
        }
    };
    let body = stamp.to_be_bytes();
    put(kind, body.len() as u32, [&body[..]].into_iter(), out);
    out.extend(body);
}

fn put<'a>(kind: u8, length: u32, parts: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    let mut hasher = start(kind, length);
    parts.for_each(|part| hasher.update(part));
    out.push(kind);
    out.extend(length.to_be_bytes());
    out.extend(hasher.finalize().to_be_bytes());
}

fn start(kind: u8, length: u32) -> Hasher {
    let mut hasher = Hasher::new();
    hasher.update(&[kind]);
    hasher.update(&length.to_be_bytes());
    hasher
}

/// Reads frames from a stream of bytes. Holds at most one that is not whole.
#[derive(Debug)]
pub struct FrameReader {
    limit: usize,
    /// The one that is coming in.
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    kind: u8,
    length: u32,
    checksum: u32,
    hasher: Hasher,
    bytes: Vec<u8>,
}

impl FrameReader {
    /// For frames of up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, open: None }
    }

    /// How many bytes of a frame it holds.
    pub fn held(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.bytes.len())
    }

    /// Takes what it can of `bytes`, says how many it took, and what came if a frame is whole now. All but the beginning of a
    /// frame's head is taken.
    ///
    /// # Errors
    /// See [`Fault`]. A length is refused before it costs memory.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(usize, Option<Received>), Fault> {
        let mut taken = 0;
        let mut open = match self.open.take() {
            Some(open) => open,
            None => {
                let Some(head) = bytes.first_chunk::<HEAD_BYTES>() else {
                    return Ok((0, None));
                };
                taken = HEAD_BYTES;
                self.begin(head)?
            }
        };
        let wanted = open.length as usize - open.bytes.len();
        let some = &bytes[taken..][..wanted.min(bytes.len() - taken)];
        open.make_room(some.len());
        open.hasher.update(some);
        open.bytes.extend_from_slice(some);
        taken += some.len();
        if some.len() < wanted {
            self.open = Some(open);
            return Ok((taken, None));
        }
        open.finish().map(|received| (taken, Some(received)))
    }

    fn begin(&self, head: &[u8; HEAD_BYTES]) -> Result<Open, Fault> {
        let [kind, l0, l1, l2, l3, checksum @ ..] = *head;
        let length = u32::from_be_bytes([l0, l1, l2, l3]);
        let limit = match kind {
            DATA => self.limit,
            PING..=GOODBYE => SMALL_LIMIT,
            unknown => return Err(Fault::Kind(unknown)),
        };
        if length as usize > limit {
            return Err(Fault::TooLong(length));
        }
        Ok(Open {
            kind,
            length,
            checksum: u32::from_be_bytes(checksum),
            hasher: start(kind, length),
            bytes: Vec::new(),
        })
    }
}

impl Open {
    /// Has room for so many more bytes, and for twice as many as came before, but never for more than the frame has.
    fn make_room(&mut self, more: usize) {
        let needed = self.bytes.len() + more;
        if needed > self.bytes.capacity() {
            let room = FIRST_BYTES.max(2 * self.bytes.len()).max(needed);
            let room = room.min(self.length as usize);
            self.bytes.reserve_exact(room - self.bytes.len());
        }
    }

    fn finish(self) -> Result<Received, Fault> {
        if self.hasher.finalize() != self.checksum {
            return Err(Fault::Damaged);
        }
        let stamp = || <[u8; 8]>::try_from(&self.bytes[..]).map(u64::from_be_bytes);
        let wrong = |_| Fault::TooLong(self.length);
        Ok(match self.kind {
            DATA => Received::Data(self.bytes.into()),
            PING => Received::Ping(stamp().map_err(wrong)?),
            PONG => Received::Pong(stamp().map_err(wrong)?),
            _ => Received::Goodbye(
                self.bytes
                    .first()
                    .and_then(|number| Refusal::from_number(*number)),
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn small() -> impl Strategy<Value = (Received, Vec<u8>)> {
        (0..3, any::<u64>()).prop_map(|(kind, stamp)| {
            let (small, received) = match kind {
                0 => (Small::Ping(stamp), Received::Ping(stamp)),
                1 => (Small::Pong(stamp), Received::Pong(stamp)),
                _ => (
                    Small::Goodbye(Refusal::Silent),
                    Received::Goodbye(Some(Refusal::Silent)),
                ),
            };
            let mut out = Vec::new();
            put_small(small, &mut out);
            (received, out)
        })
    }

    fn data() -> impl Strategy<Value = (Received, Vec<u8>)> {
        let parts = proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..4);
        parts.prop_map(|parts| {
            let parts: Vec<Bytes> = parts.into_iter().map(Bytes::from).collect();
            let mut out = Vec::new();
            put_head(&parts, &mut out).unwrap();
            parts.iter().for_each(|part| out.extend_from_slice(part));
            (Received::Data(parts.concat().into()), out)
        })
    }

    /// All that comes, if bytes come in pieces of such a length, and what was left.
    fn read(bytes: &[u8], piece: usize, limit: usize) -> Result<(Vec<Received>, usize), Fault> {
        let mut reader = FrameReader::new(limit);
        let (mut kept, mut come) = (Vec::new(), Vec::new());
        for piece in bytes.chunks(piece) {
            kept.extend_from_slice(piece);
            loop {
                let (taken, received) = reader.read(&kept)?;
                kept.drain(..taken);
                match received {
                    Some(received) => come.push(received),
                    None => break,
                }
            }
        }
        Ok((come, kept.len() + reader.held()))
    }

    proptest! {
        #[test]
        fn frames_come_as_they_were_sent_in_whatever_pieces(
            frames in proptest::collection::vec(prop_oneof![data(), small()], 0..6),
            piece in 1..200_usize,
        ) {
            let bytes: Vec<u8> = frames.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
            let sent: Vec<Received> = frames.into_iter().map(|(received, _)| received).collect();
            prop_assert_eq!(read(&bytes, piece, 1000), Ok((sent, 0)));
        }

        #[test]
        fn a_frame_that_was_changed_on_its_way_is_noticed(
            (received, mut bytes) in prop_oneof![data(), small()],
            at in any::<prop::sample::Index>(),
            flip in 1..=255_u8,
        ) {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            if let Ok((come, _)) = read(&bytes, 1000, 1000) {
                prop_assert!(come.is_empty(), "{come:?} for {received:?}");
            }
        }
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_a_byte_of_it_has_come() {
        let mut head = Vec::new();
        put_head(&[vec![0; 101].into()], &mut head).unwrap();
        assert_eq!(FrameReader::new(100).read(&head), Err(Fault::TooLong(101)));
        assert_eq!(FrameReader::new(101).read(&head), Ok((HEAD_BYTES, None)));
        assert_eq!(FrameReader::new(9).read(&[9; 9]), Err(Fault::Kind(9)));
        let long_ping = [PING, 0, 0, 0, 9, 0, 0, 0, 0];
        assert_eq!(FrameReader::new(100).read(&long_ping), Err(Fault::TooLong(9)));
    }

    #[test]
    fn a_long_frame_costs_memory_as_it_comes() {
        let mut head = vec![DATA];
        head.extend((1_u32 << 30).to_be_bytes());
        head.extend([0; 4]);
        let mut reader = FrameReader::new(1 << 30);
        assert_eq!(reader.read(&head), Ok((HEAD_BYTES, None)));
        assert_eq!(reader.read(&[7; 1000]), Ok((1000, None)));
        let open = reader.open.as_ref().unwrap();
        assert!(open.bytes.capacity() <= FIRST_BYTES);
    }
}
