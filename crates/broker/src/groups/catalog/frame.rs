//! What nodes say to each other about the catalog, beside its journal. Numbers are little-endian.
//!
//! ```text
//! frame        version u8, kind u8, then
//!   1 ask      start, number, below u64, the request's bytes
//!   2 lease    start, round, applied u64; round 0 only says what is applied
//!   3 granted  start, round, least, everywhere u64
//!   4 reached  everywhere u64
//! ```

use bytes::Bytes;

/// The version that is written and read.
const VERSION: u8 = 1;

const ASK: u8 = 1;
const LEASE: u8 = 2;
const GRANTED: u8 = 3;
const REACHED: u8 = 4;

/// The longest frame, in bytes.
pub const FRAME_LIMIT: usize = catalog::Request::MOST_BYTES + 26;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A request of this start of a node.
    Ask {
        start: u64,
        number: u64,
        below: u64,
        request: Bytes,
    },
    /// This is applied; and a lease is wanted, unless the round is 0.
    Lease { start: u64, round: u64, applied: u64 },
    /// A lease, which counts from the version `least` on.
    Granted {
        start: u64,
        round: u64,
        least: u64,
        everywhere: u64,
    },
    /// Changes up to this version are everywhere.
    Reached { everywhere: u64 },
}

impl Frame {
    /// Its bytes.
    pub fn encode(&self) -> Bytes {
        let (kind, numbers, rest): (u8, &[u64], &[u8]) = match self {
            Self::Ask {
                start,
                number,
                below,
                request,
            } => (ASK, &[*start, *number, *below], request),
            Self::Lease {
                start,
                round,
                applied,
            } => (LEASE, &[*start, *round, *applied], &[]),
            Self::Granted {
                start,
                round,
                least,
                everywhere,
            } => (GRANTED, &[*start, *round, *least, *everywhere], &[]),
            Self::Reached { everywhere } => (REACHED, &[*everywhere], &[]),
        };
        let mut out = Vec::with_capacity(2 + 8 * numbers.len() + rest.len());
        out.extend([VERSION, kind]);
        numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
        out.extend(rest);
        out.into()
    }

    /// Reads it; `None` if it is none that this version knows, or too long.
    pub fn decode(frame: &Bytes) -> Option<Self> {
        let [version, kind, ..] = **frame else { return None };
        if version != VERSION || frame.len() > FRAME_LIMIT {
            return None;
        }
        let number = |at: usize| {
            let bytes = frame.get(2 + 8 * at..)?.first_chunk()?;
            Some(u64::from_le_bytes(*bytes))
        };
        let ends_behind = |count: usize| (frame.len() == 2 + 8 * count).then_some(());
        Some(match kind {
            ASK => Self::Ask {
                start: number(0)?,
                number: number(1)?,
                below: number(2)?,
                request: frame.slice(26..),
            },
            LEASE => {
                ends_behind(3)?;
                Self::Lease {
                    start: number(0)?,
                    round: number(1)?,
                    applied: number(2)?,
                }
            }
            GRANTED => {
                ends_behind(4)?;
                Self::Granted {
                    start: number(0)?,
                    round: number(1)?,
                    least: number(2)?,
                    everywhere: number(3)?,
                }
            }
            REACHED => {
                ends_behind(1)?;
                Self::Reached {
                    everywhere: number(0)?,
                }
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written_and_cut_ones_are_not() {
        let request = Bytes::from_static(b"request");
        let (start, round, number, below) = (1, 2, 3, 1);
        let (applied, least, everywhere) = (4, 5, 6);
        let frames = [
            Frame::Lease {
                start,
                round,
                applied,
            },
            Frame::Granted {
                start,
                round,
                least,
                everywhere,
            },
            Frame::Reached { everywhere },
        ];
        for frame in frames {
            let bytes = frame.encode();
            assert_eq!(Frame::decode(&bytes), Some(frame));
            (0..bytes.len()).for_each(|cut| assert_eq!(Frame::decode(&bytes.slice(..cut)), None));
        }
        let ask = Frame::Ask {
            start,
            number,
            below,
            request,
        };
        let bytes = ask.encode();
        assert_eq!(Frame::decode(&bytes), Some(ask));
        (0..26).for_each(|cut| assert_eq!(Frame::decode(&bytes.slice(..cut)), None));
        assert_eq!(Frame::decode(&vec![1; FRAME_LIMIT + 1].into()), None);
    }

    #[test]
    fn frames_have_the_bytes_that_they_always_had_and_nobody_reads_another_version() {
        let request = Bytes::from_static(b"request");
        let (start, round, number, below) = (1, 2, 300, 1);
        let (applied, least, everywhere) = (4, 5, 6);
        let frames = [
            Frame::Ask {
                start,
                number,
                below,
                request,
            },
            Frame::Lease {
                start,
                round,
                applied,
            },
            Frame::Granted {
                start,
                round,
                least,
                everywhere,
            },
            Frame::Reached { everywhere },
        ];
        for frame in &frames {
            let mut later = frame.encode().to_vec();
            later[0] += 1;
            assert_eq!(Frame::decode(&later.into()), None);
        }
        let written = frames.map(|frame| frame.encode().escape_ascii().to_string());
        assert_eq!(
            written.to_vec(),
            [
                r"\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00request",
                r"\x01\x02\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00",
                r"\x01\x03\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00",
                r"\x01\x04\x06\x00\x00\x00\x00\x00\x00\x00"
            ]
        );
    }
}
