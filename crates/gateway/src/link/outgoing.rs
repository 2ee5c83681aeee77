//! What a link has to write: frames as they were given, in pieces, and small ones between them. Large parts are written from
//! where they are.

use crate::output::{Output, PIECE};
use bytes::{Buf, Bytes};
use protocol::link::{Small, put_head, put_small};
use std::collections::VecDeque;

/// A part of a frame that is this long is not copied into the buffer, in bytes.
const LARGE: usize = 16 * 1024;

/// Frames on their way into a buffer.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// What belongs to no frame, or is whole: it is written before the next frame begins.
    between: Vec<u8>,
    frames: VecDeque<Vec<Bytes>>,
    /// What is left of the frame that is being written.
    open: VecDeque<Bytes>,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    pub frames: usize,
    pub bytes: usize,
}

impl Outgoing {
    /// Where frames are added.
    pub fn frames(&mut self) -> &mut VecDeque<Vec<Bytes>> {
        &mut self.frames
    }

    /// Where bytes are added that come before all frames.
    pub fn between(&mut self) -> &mut Vec<u8> {
        &mut self.between
    }

    /// How many bytes wait that come before all frames.
    pub fn waiting_between(&self) -> usize {
        self.between.len()
    }

    /// Adds a frame that overtakes all others.
    pub fn put(&mut self, small: Small) {
        put_small(small, &mut self.between);
    }

    /// What is written next, behind the buffer, from where it is.
    pub fn behind(&self) -> &[u8] {
        let next = self.open.front().filter(|part| part.len() >= LARGE);
        next.map_or(&[], |part| part)
    }

    /// So much of that has left.
    pub fn wrote_behind(&mut self, bytes: usize) {
        if let Some(part) = self.open.front_mut() {
            part.advance(bytes);
        }
    }

    /// Writes as long as there is room and up to the next large part, and says which frames have begun: their bytes don't wait
    /// any more.
    pub fn fill(&mut self, out: &mut Output) -> Written {
        let mut written = Written::default();
        loop {
            while let Some(part) = self.open.front_mut() {
                if part.len() >= LARGE {
                    return written;
                }
                let some = part.len().min(PIECE.saturating_sub(out.len()));
                out.bytes().extend_from_slice(&part[..some]);
                part.advance(some);
                if part.has_remaining() {
                    return written;
                }
                self.open.pop_front();
            }
            // Nor do these grow beyond what the peer reads: whoever adds them looks how many wait.
            if out.len() >= PIECE {
                return written;
            }
            out.bytes().append(&mut self.between);
            let Some(parts) = self.frames.pop_front() else {
                return written;
            };
            written.frames += 1;
            written.bytes += parts.iter().map(Bytes::len).sum::<usize>();
            if put_head(&parts, out.bytes()).is_some() {
                self.open = parts.into();
            }
        }
    }

    /// Forgets all frames; what comes between them is written if none has begun.
    pub fn end(&mut self, out: &mut Output) {
        self.frames.clear();
        if self.open.is_empty() {
            out.bytes().append(&mut self.between);
        }
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::link::{FrameReader, Received};

    /// Everything that is written, in pieces of so many bytes.
    fn drain(outgoing: &mut Outgoing, piece: usize, mut between: impl FnMut(&mut Outgoing)) -> Vec<Received> {
        let (mut out, mut bytes) = (Output::default(), Vec::new());
        loop {
            outgoing.fill(&mut out);
            assert!(out.len() < PIECE + 100, "a piece is no longer than it is to be");
            let behind = piece.saturating_sub(out.len()).min(outgoing.behind().len());
            if out.is_empty() && behind == 0 {
                break;
            }
            let count = piece.min(out.len());
            bytes.extend_from_slice(&out.unwritten()[..count]);
            out.wrote(count);
            bytes.extend_from_slice(&outgoing.behind()[..behind]);
            outgoing.wrote_behind(behind);
            between(outgoing);
        }
        let mut reader = FrameReader::new(1 << 20);
        let (mut at, mut come) = (0, Vec::new());
        while at < bytes.len() {
            let (taken, received) = reader.read(&bytes[at..]).unwrap();
            at += taken;
            come.extend(received);
        }
        come
    }

    #[test]
    fn small_frames_overtake_large_ones_but_cut_none_in_two() {
        let mut outgoing = Outgoing::default();
        let large: Bytes = (0..5 * PIECE)
            .map(|n| (n % 251) as u8)
            .collect::<Vec<u8>>()
            .into();
        for _ in 0..2 {
            let parts = vec![large.slice(..10), Bytes::new(), large.slice(10..)];
            outgoing.frames().push_back(parts);
        }
        let mut stamp = 0;
        let come = drain(&mut outgoing, PIECE, |outgoing| {
            stamp += 1;
            if stamp <= 3 {
                outgoing.put(Small::Ping(stamp));
            }
        });
        let data = Received::Data(large);
        let pings = [1, 2, 3].map(Received::Ping);
        assert_eq!(
            come,
            [
                std::slice::from_ref(&data),
                &pings[..],
                std::slice::from_ref(&data)
            ]
            .concat()
        );
    }

    #[test]
    fn a_goodbye_is_said_between_frames_only() {
        for (bytes, said) in [(10, true), (2 * PIECE, false)] {
            let (mut outgoing, mut out) = (Outgoing::default(), Output::default());
            outgoing
                .frames()
                .extend([vec![vec![7; bytes].into()], vec![vec![8; 20].into()]]);
            if said {
                outgoing.frames().truncate(1);
            }
            outgoing.fill(&mut out);
            let before = out.len();
            outgoing.put(Small::Goodbye(protocol::link::Refusal::Stopping));
            outgoing.end(&mut out);
            assert_eq!(out.len() > before, said);
            outgoing.fill(&mut out);
            assert_eq!(out.len() > before, said, "nothing else is left");
        }
    }
}
