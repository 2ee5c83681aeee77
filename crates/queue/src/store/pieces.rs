//! Collecting runs into pieces: to be stored, or to be handed on.

use super::{Part, Piece, Run};
use model::Seq;
use smallvec::smallvec;

/// A stored piece is not made larger than this by putting runs together, in bytes.
pub(super) const PIECE_BYTES: u64 = 1024 * 1024;
/// So many messages in a row that are gone are left out of what is moved; fewer are moved with it, because every piece
/// costs an entry.
const GAP: u64 = 16;

/// Collects runs into pieces to be stored.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    pieces: Vec<Piece>,
    /// What they weigh in all, in bytes.
    pub(crate) bytes: u64,
    /// What the last one weighs.
    last_bytes: u64,
    last_kind: Option<(bool, Option<bool>)>,
}

impl Pieces {
    /// Adds messages `first..end` of a run. They join the last piece if they follow it without a gap, are of the same
    /// kind, and do not make it too large.
    pub(crate) fn add(&mut self, run: &Run, first: Seq, end: Seq) {
        let count = (end - first) as u32;
        let Some((bytes, base)) = run.bytes() else {
            return;
        };
        let part = Part {
            bytes,
            from: (first - base) as u32,
            count,
        };
        let weight = run.weight * u64::from(count) / run.length().max(1) as u64;
        let kind = (
            run.journaled,
            run.memory.as_ref().map(|memory| memory.block.persistent()),
        );
        self.bytes += weight;
        // What is journaled is persistent; of what is not, a piece must not mix both kinds.
        let alike =
            self.last_kind == Some(kind) || (run.journaled && self.last_kind.is_some_and(|last| last.0));
        if let Some(last) = self.pieces.last_mut()
            && last.first + u64::from(last.count) == first
            && self.last_bytes + weight <= PIECE_BYTES
            && alike
            && (run.journaled || kind.1.is_some())
        {
            last.count += count;
            last.parts.push(part);
            self.last_bytes += weight;
            return;
        }
        self.pieces.push(Piece {
            first,
            count,
            parts: smallvec![part],
        });
        self.last_bytes = weight;
        self.last_kind = Some(kind);
    }

    /// Adds the live messages of a run, without long gaps.
    pub(crate) fn add_live(&mut self, run: &Run) {
        let Some((mut first, mut last)) = run.live_span(0, Seq::MAX) else {
            return;
        };
        while let Some((from, to)) = run.live_span(last + 1, Seq::MAX) {
            if from - last > GAP {
                self.add(run, first, last + 1);
                first = from;
            }
            last = to;
        }
        self.add(run, first, last + 1);
    }

    /// The pieces so far.
    pub(crate) fn take(&mut self) -> Vec<Piece> {
        std::mem::take(self).pieces
    }

    /// True if there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}
