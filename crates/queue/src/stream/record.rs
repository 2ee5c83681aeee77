//! What a stream remembers: its chunks, each as it is read.

use model::Journaled;
use model::chunk::Chunk;
use std::sync::Arc;

/// A chunk that is so. Its first byte is the format's magic number and version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record(Arc<Vec<u8>>);

impl Record {
    /// Takes over a chunk; `None` if it is none, or something stands behind it.
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let is_whole = Chunk::read(&bytes).is_ok_and(|chunk| chunk.bytes().len() == bytes.len());
        is_whole.then(|| Self(Arc::new(bytes)))
    }

    /// One that was made just now, which needs no check.
    pub(super) fn made(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
    }

    /// The whole chunk.
    pub fn bytes(&self) -> &Arc<Vec<u8>> {
        &self.0
    }

    /// The chunk, which was checked.
    pub fn chunk(&self) -> Chunk<'_> {
        match Chunk::trusted(&self.0) {
            Some(chunk) => chunk,
            None => unreachable!("records are only made of whole chunks"),
        }
    }
}

impl Journaled for Record {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Self::new(bytes.to_vec())
    }
}
