//! What an entry looks like in a file.
//!
//! ```text
//! magic u32 | checksum of the head u32 | checksum of the bytes u32 | their length u32 | first number u64 | count u32
//! | flags u32 | time u64 | synced u64 | term u64 | index u64 | the bytes
//! ```
//!
//! All numbers are little-endian. The head's checksum covers whose file it is and where in it the frame stands as well, so that a
//! misdirected write is noticed. `synced` says up to which byte the file was known to be synced when the frame was
//! written: whoever finds a frame after a crash knows by it what needs no second look.

/// The length of a frame's head, in bytes.
pub(super) const HEAD: usize = 64;

/// The largest entry, in bytes.
pub(super) const ENTRY_MOST: usize = 1 << 30;

const MAGIC: u32 = u32::from_le_bytes(*b"LVF\x01");
/// What the entry says is needed at the next start.
const TRACKS: u32 = 1;

/// What a frame says of its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    /// The number of the first thing in the entry, or of the next one if it has none.
    pub first: u64,
    /// How many things are in it.
    pub count: u32,
    /// It says something that is needed at a start.
    pub tracks: bool,
    /// When it was made, in milliseconds since the Unix epoch. Never falls in a stream.
    pub time_ms: u64,
    /// The term of the leader that made it; 0 if it is not a group's.
    pub term: u64,
    /// Its index in the group; 0 if it is not a group's.
    pub index: u64,
    /// Its length, in bytes.
    pub length: u32,
    pub(super) checksum: u32,
    pub(super) synced: u64,
}

impl FrameHead {
    /// The number behind the entry's last one.
    pub fn next(&self) -> u64 {
        self.first.saturating_add(u64::from(self.count))
    }

    /// The whole frame's length, in bytes.
    pub(super) fn frame_bytes(&self) -> u64 {
        HEAD as u64 + u64::from(self.length)
    }

    /// The head of a frame at this position of a file of this owner.
    pub(super) fn encode(&self, owner: u64, position: u64) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        let mut at = 0;
        let mut put = |number: &[u8]| {
            bytes[at..at + number.len()].copy_from_slice(number);
            at += number.len();
        };
        put(&MAGIC.to_le_bytes());
        put(&[0; 4]);
        put(&self.checksum.to_le_bytes());
        put(&self.length.to_le_bytes());
        put(&self.first.to_le_bytes());
        put(&self.count.to_le_bytes());
        put(&(if self.tracks { TRACKS } else { 0 }).to_le_bytes());
        for number in [self.time_ms, self.synced, self.term, self.index] {
            put(&number.to_le_bytes());
        }
        let checksum = head_checksum(&bytes, owner, position);
        bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The head at the beginning of these bytes, which stand at this position of a file of this owner. `None` if there is none.
    pub(super) fn decode(bytes: &[u8], owner: u64, position: u64) -> Option<Self> {
        let bytes: &[u8; HEAD] = bytes.first_chunk()?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if word(0) != MAGIC || word(4) != head_checksum(bytes, owner, position) {
            return None;
        }
        Some(Self {
            checksum: word(8),
            length: word(12),
            first: long(16),
            count: word(24),
            tracks: word(28) & TRACKS != 0,
            time_ms: long(32),
            synced: long(40),
            term: long(48),
            index: long(56),
        })
    }

    /// True if these are the entry's bytes.
    pub(super) fn fits(&self, bytes: &[u8]) -> bool {
        bytes.len() == self.length as usize && crc32fast::hash(bytes) == self.checksum
    }
}

fn head_checksum(bytes: &[u8; HEAD], owner: u64, position: u64) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&owner.to_le_bytes());
    hasher.update(&position.to_le_bytes());
    hasher.update(&bytes[8..]);
    hasher.finalize()
}
