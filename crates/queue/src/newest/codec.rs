//! Records as bytes: which, the number, and the message with its time and flags.

use super::{Contents, Local, Record};
use crate::encoding::{Input, put};
use crate::store;
use model::{Block, Journaled, Timestamp};
use std::sync::Arc;

const CAME: u8 = 1;
const WENT: u8 = 2;
const MOVED: u8 = 3;
const CHECKPOINT: u8 = 4;

fn put_block(block: &Block, out: &mut Vec<u8>) {
    out.push(u8::from(block.persistent()));
    put(out, block.received().0);
    out.extend_from_slice(block.slice(0, block.len()));
}

fn block(mut input: Input<'_>) -> Option<Arc<Block>> {
    let persistent = input.octet()? == 1;
    let received = Timestamp(input.number()?);
    let block = Block::from_bytes(input.rest.to_vec(), persistent, received)?;
    (block.len() == 1).then(|| Arc::new(block))
}

impl Journaled for Record {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Came { seq, block } => {
                out.push(CAME);
                put(out, *seq);
                put_block(block, out);
            }
            Self::Went { seq } => {
                out.push(WENT);
                put(out, *seq);
            }
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input { rest: bytes };
        let kind = input.octet()?;
        let seq = input.number()?;
        match kind {
            CAME => block(input).map(|block| Self::Came { seq, block }),
            WENT if input.rest.is_empty() => Some(Self::Went { seq }),
            _ => None,
        }
    }
}

impl Journaled for Local {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Moved => out.push(MOVED),
            Self::Checkpoint { next, contents } => {
                out.push(CHECKPOINT);
                put(out, *next);
                put(out, contents.last);
                if let Some(block) = &contents.block {
                    put_block(block, out);
                }
            }
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input { rest: bytes };
        match input.octet()? {
            MOVED if input.rest.is_empty() => Some(Self::Moved),
            CHECKPOINT => {
                let (next, last) = (input.number()?, input.number()?);
                let block = match input.rest.is_empty() {
                    true => None,
                    false => Some(block(input)?),
                };
                let contents = Contents { last, block };
                Some(Self::Checkpoint { next, contents })
            }
            _ => None,
        }
    }
}

impl From<store::Record> for Local {
    fn from(_: store::Record) -> Self {
        Self::Moved
    }
}
