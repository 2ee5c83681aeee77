//! How a frame lies in bytes: the blocks first, then what is said of them, so that a block which is nearly all of a frame is
//! neither copied on its way out nor on its way in.
//!
//! ```text
//! bytes       blocks (as many as are said, without anything between them), said, length of what is said (4)
//! ```

use super::{Block, Input};
use bytes::Bytes;
use model::Timestamp;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A shorter part of a block is copied.
const OWN_PART: usize = 1024;

/// The bytes of the length at the end.
const LENGTH: usize = size_of::<u32>();

/// A block that is left where it came may have so many bytes of memory that it does not use: what was said of it.
const SLACK: usize = 4096;

/// The bytes of a frame on its way out.
#[derive(Debug, Default)]
pub struct Parts {
    blocks: Vec<Bytes>,
    /// Small blocks behind those.
    small: Vec<u8>,
    /// What is said.
    pub said: Vec<u8>,
}

/// A block as the owner of its bytes.
struct Whole(Arc<Block>);

impl AsRef<[u8]> for Whole {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Parts {
    /// All of it, in parts that follow each other.
    pub fn finish(mut self) -> Vec<Bytes> {
        self.end_small();
        // What is longer than that is longer than any frame, and goes nowhere.
        let length = u32::try_from(self.said.len()).unwrap_or(u32::MAX);
        self.said.extend(length.to_be_bytes());
        self.blocks.push(self.said.into());
        self.blocks
    }

    /// Bytes of a block.
    pub fn block_bytes(&mut self, block: &Arc<Block>, bytes: &[u8]) {
        if bytes.len() < OWN_PART {
            return self.small.extend_from_slice(bytes);
        }
        self.end_small();
        let whole = Bytes::from_owner(Whole(block.clone()));
        self.blocks.push(whole.slice_ref(bytes));
    }

    fn end_small(&mut self) {
        if !self.small.is_empty() {
            self.blocks.push(mem::take(&mut self.small).into());
        }
    }
}

/// The bytes of a frame that has come: what is said, and its blocks.
pub struct Reading<'a> {
    said: Input<'a>,
    blocks: Blocks,
}

/// The blocks of a frame, of which those before `at` are read.
struct Blocks {
    bytes: Vec<u8>,
    at: usize,
}

impl<'a> Reading<'a> {
    /// Has `read` read all of a frame; `None` if it does not, or if something is left.
    pub fn of<T>(mut bytes: Vec<u8>, read: impl FnOnce(&mut Reading<'_>) -> Option<T>) -> Option<T> {
        let (rest, length) = bytes.split_last_chunk::<LENGTH>()?;
        let at = rest.len().checked_sub(u32::from_be_bytes(*length) as usize)?;
        let said = rest[at..].to_vec();
        bytes.truncate(at);
        let mut reading = Reading {
            said: Input { rest: &said },
            blocks: Blocks { bytes, at: 0 },
        };
        let read = read(&mut reading)?;
        let is_over = reading.said.rest.is_empty() && reading.blocks.at == reading.blocks.bytes.len();
        is_over.then_some(read)
    }

    /// The next block, which has so many bytes and is not empty.
    pub fn block(&mut self, length: usize, persistent: bool, received: Timestamp) -> Option<Block> {
        let bytes = self.blocks.take(length)?;
        Block::from_bytes(bytes, persistent, received).filter(|block| !block.is_empty())
    }
}

impl<'a> Deref for Reading<'a> {
    type Target = Input<'a>;

    #[inline]
    fn deref(&self) -> &Input<'a> {
        &self.said
    }
}

impl DerefMut for Reading<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.said
    }
}

impl Blocks {
    /// The next so many bytes: where they are, if they are all there is.
    fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        if self.at == 0 && length == self.bytes.len() {
            let mut all = mem::take(&mut self.bytes);
            if all.capacity() - all.len() > SLACK {
                all.shrink_to_fit();
            }
            return Some(all);
        }
        let part = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(part.to_vec())
    }
}
