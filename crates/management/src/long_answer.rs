//! An answer that is made in pieces: the next one is made when the one before has gone, so that an answer of any length takes the
//! memory of a few pieces.

use crate::access::Asker;
use crate::call::Api;
use crate::errand::Errand;
use crate::gzip::Squeezer;
use crate::pieces::{Cut, PIECE};
use crate::reply::Reply;
use crate::snapshot::Snapshot;
use hyper::HeaderMap;
use hyper::body::Bytes;
use std::sync::Arc;

/// So many pieces are there at a time: one waits to be sent, one to wait in its place, and one is with the connection.
const AT_A_TIME: usize = 3;

/// What is left of an answer after its first piece.
pub struct LongAnswer {
    /// What was asked for, by whom, with which headers.
    errand: Errand,
    asker: Asker,
    headers: HeaderMap,
    /// What existed then.
    snapshot: Snapshot,
    api: Arc<Api>,
    /// Makes the pieces smaller, if the asker takes them so.
    squeezer: Option<Squeezer>,
    next: usize,
}

impl LongAnswer {
    /// What follows the answer's first piece, which is made ready for the asker.
    pub fn after(
        reply: &mut Reply,
        errand: Errand,
        asker: Asker,
        headers: HeaderMap,
        snapshot: Snapshot,
        api: Arc<Api>,
    ) -> Self {
        let mut answer = Self {
            squeezer: Squeezer::of(&headers),
            next: reply.rest.unwrap_or_default(),
            errand,
            asker,
            headers,
            snapshot,
            api,
        };
        reply.squeezed = answer.squeezer.is_some();
        let piece = reply.body.take().unwrap_or_default();
        reply.body = answer.squeeze(piece, false);
        answer
    }

    /// How many bytes it takes until it is read.
    pub fn bytes(&self) -> usize {
        AT_A_TIME * PIECE + self.snapshot.bytes()
    }

    /// The next piece, and whether it is the last; `None` if it can't be made, and the answer has no end.
    pub fn piece(&mut self) -> Option<(Vec<u8>, bool)> {
        self.errand.cut = Cut::From(self.next);
        let made = self.errand.run(
            &self.api,
            &self.snapshot,
            self.asker.clone(),
            &self.headers,
            &Bytes::new(),
        );
        let reply = made.ok()?;
        self.next = reply.rest.unwrap_or_default();
        let is_last = reply.rest.is_none();
        let piece = self.squeeze(reply.body?, is_last)?;
        Some((piece, is_last))
    }

    fn squeeze(&mut self, piece: Vec<u8>, is_last: bool) -> Option<Vec<u8>> {
        match &mut self.squeezer {
            None => Some(piece),
            Some(squeezer) => squeezer.piece(&piece, is_last).ok(),
        }
    }
}
