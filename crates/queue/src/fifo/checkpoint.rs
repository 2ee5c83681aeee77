//! What a node remembers beside the queue's records, in its own log only: where its store has moved bytes, and
//! checkpoints, which are the contents after a record together with the store's places. With a checkpoint everything
//! older may be forgotten.
//!
//! ```text
//! 1 what the store remembers       2 checkpoint: next index, count, then each lane's snapshot and table
//! ```

use super::record::Snapshot;
use crate::encoding::{Input, put};
use crate::store::{self, LogPlace, Table};
use model::{Index, Journaled};

const STORE: u8 = 1;
const CHECKPOINT: u8 = 2;

/// A record of this node alone. It has no number among the machine's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalRecord {
    /// The store's.
    Store(store::Record),
    /// Everything that is there.
    Checkpoint(Checkpoint),
}

/// All that is there at one moment: what replay met before is forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// The number of the first record that it does not contain.
    pub next: Index,
    /// The contents, and where the bytes are; of a queue that sorts its messages, lane by lane.
    pub lanes: Vec<(Snapshot, Table)>,
}

impl Checkpoint {
    /// The earliest place in the log that something in it needs.
    pub fn first_in_log(&self) -> Option<LogPlace> {
        self.lanes
            .iter()
            .filter_map(|(_, table)| table.first_in_log())
            .min()
    }
}

impl Journaled for LocalRecord {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Store(record) => {
                out.push(STORE);
                record.put(out);
            }
            Self::Checkpoint(checkpoint) => {
                out.push(CHECKPOINT);
                put(out, checkpoint.next);
                put(out, checkpoint.lanes.len() as u64);
                for (snapshot, table) in &checkpoint.lanes {
                    snapshot.put(out);
                    table.put(out);
                }
            }
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let mut input = Input { rest };
        let record = match *kind {
            STORE => Self::Store(store::Record::get(&mut input)?),
            CHECKPOINT => Self::Checkpoint(Checkpoint {
                next: input.number()?,
                lanes: input.list(8, |input| Some((Snapshot::get(input)?, Table::get(input)?)))?,
            }),
            _ => return None,
        };
        input.rest.is_empty().then_some(record)
    }
}
