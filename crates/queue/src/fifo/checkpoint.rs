//! What a node remembers beside the queue's records, in its own log only: where its store has moved bytes, and
//! checkpoints, which are the contents after a record together with the store's places. With a checkpoint everything
//! older may be forgotten.
//!
//! ```text
//! 1 what the store remembers       2 checkpoint: next index, count, then each lane's snapshot and table
//! 3 checkpoint: next index, floor, count, then each sender, count, then each lane's handed_below, snapshot and table
//! 4 checkpoint: as 3, and behind each lane's snapshot count, then (distance, times) of messages that consumers gave back
//! 5 checkpoint: as 4, and before the count of lanes which nodes may hold something, as in a record (codec)
//! sender      incarnation, below, set of numbers beyond as distances from below, forgotten, set of refused numbers,
//!             flags u8 (1 = barred, 2 = one of its consumers is the active one), and with 2 that consumer
//! ```

use super::Holders;
use super::codec::{holders, put_holders, put_times, times};
use super::lanes::LANE_SHIFT;
use super::record::Snapshot;
use super::senders::SenderMark;
use crate::encoding::{Input, put};
use crate::store::{self, LogPlace, Table};
use model::{Index, Journaled, Seq};

const STORE: u8 = 1;
const CHECKPOINT: u8 = 2;
const CHECKPOINT_WITH_SENDERS: u8 = 3;
const CHECKPOINT_WITH_GIVEN_BACK: u8 = 4;
const CHECKPOINT_WITH_HOLDERS: u8 = 5;
/// A lane has no more numbers than this.
const FLOORS: Seq = 1 << LANE_SHIFT;

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
    /// Of a queue that sorts its messages: lanes that hold nothing any more have used the numbers below.
    pub floor: Seq,
    /// What is known of nodes that send.
    pub senders: Vec<SenderMark>,
    /// Which nodes may hold something.
    pub holders: Holders,
    /// The contents, and where the bytes are; of a queue that sorts its messages, lane by lane.
    pub lanes: Vec<(Snapshot, Table)>,
}

impl Checkpoint {
    /// True if it says nothing that only replicated queues have, or such that other nodes send to.
    fn is_plain(&self) -> bool {
        let handed = |(snapshot, _): &(Snapshot, Table)| snapshot.handed_below > 0;
        self.floor == 0 && self.senders.is_empty() && !self.lanes.iter().any(handed)
    }

    /// True if consumers gave messages back that are counted apart.
    fn has_given_back(&self) -> bool {
        self.lanes
            .iter()
            .any(|(snapshot, _)| !snapshot.given_back.is_empty())
    }

    /// Who may hold something if it does not say so. Builds that did not know had handed out what is marked so to anybody.
    fn implied_holders(lanes: &[(Snapshot, Table)]) -> Holders {
        let none_is_given = lanes.iter().all(|(snapshot, _)| snapshot.handed_below == 0);
        Holders::of(none_is_given.then(Vec::new))
    }

    fn code(&self) -> u8 {
        match (self.has_given_back(), self.is_plain()) {
            _ if self.holders != Self::implied_holders(&self.lanes) => CHECKPOINT_WITH_HOLDERS,
            (true, _) => CHECKPOINT_WITH_GIVEN_BACK,
            (false, true) => CHECKPOINT,
            (false, false) => CHECKPOINT_WITH_SENDERS,
        }
    }

    /// The same for a node that has the bytes of none of its messages.
    pub(super) fn without_places(self) -> Self {
        let bare = |(snapshot, table): (Snapshot, Table)| (snapshot, table.without_places());
        Self {
            lanes: self.lanes.into_iter().map(bare).collect(),
            ..self
        }
    }

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
                let code = checkpoint.code();
                out.push(code);
                put(out, checkpoint.next);
                if code != CHECKPOINT {
                    put(out, checkpoint.floor);
                    put(out, checkpoint.senders.len() as u64);
                    checkpoint.senders.iter().for_each(|sender| sender.put(out));
                }
                if code == CHECKPOINT_WITH_HOLDERS {
                    put_holders(out, checkpoint.holders.nodes());
                }
                put(out, checkpoint.lanes.len() as u64);
                for (snapshot, table) in &checkpoint.lanes {
                    if code != CHECKPOINT {
                        put(out, snapshot.handed_below);
                    }
                    snapshot.put(out);
                    if code >= CHECKPOINT_WITH_GIVEN_BACK {
                        put_times(out, &snapshot.given_back);
                    }
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
            CHECKPOINT..=CHECKPOINT_WITH_HOLDERS => Self::Checkpoint(checkpoint(&mut input, *kind)?),
            _ => return None,
        };
        input.rest.is_empty().then_some(record)
    }
}

fn checkpoint(input: &mut Input<'_>, kind: u8) -> Option<Checkpoint> {
    let next = input.number()?;
    let (mut floor, mut senders, mut said) = (0, Vec::new(), None);
    if kind != CHECKPOINT {
        floor = input.number().filter(|floor| *floor < FLOORS)?;
        senders = input.list(6, SenderMark::get)?;
    }
    if kind == CHECKPOINT_WITH_HOLDERS {
        said = Some(Holders::of(holders(input)?));
    }
    let lanes = input.list(8, |input| {
        let handed_below = match kind {
            CHECKPOINT => 0,
            _ => input.number()?,
        };
        let mut snapshot = Snapshot::get(input)?;
        snapshot.handed_below = handed_below;
        if kind >= CHECKPOINT_WITH_GIVEN_BACK {
            snapshot.given_back = times(input)?;
        }
        Some((snapshot, Table::get(input)?))
    })?;
    Some(Checkpoint {
        next,
        floor,
        senders,
        holders: said.unwrap_or_else(|| Checkpoint::implied_holders(&lanes)),
        lanes,
    })
}
