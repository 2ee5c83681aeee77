//! What a group has agreed on: its committed records, and what follows from them by a model that knows no more of a
//! queue than what its records say.

use cluster::Mark;
use model::{Block, Incarnation, Index, Journaled, Ranges, Seq};
use queue::fifo::{Expiry, Record, Sent};
use queue::{DropReason, NodeConsumer};
use std::collections::BTreeMap;

/// A message's name; it stands in its body.
pub type Id = u64;

/// The lane of a message of a queue that sorts: the upper bits of its number.
pub fn lane_of(seq: Seq) -> u64 {
    seq >> 48
}

/// The name of a block's message.
pub fn id_of(block: &Block, at: usize) -> Option<Id> {
    let body = block.message(at).body;
    Some(Id::from_le_bytes(body.get(..8)?.try_into().ok()?))
}

/// How a message left its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    Settled,
    Dropped(DropReason),
}

/// A message that came into the queue.
#[derive(Debug, Clone)]
pub struct Row {
    pub id: Id,
    /// The record that took it away.
    pub gone: Option<(Index, Gone)>,
    /// In which term it came.
    pub term: u64,
    /// How often it has come back, as far as that is on record.
    pub returns: u32,
    /// How often of these its consumer gave it back, which counts for no limit.
    pub given_back: u32,
    /// Whether that was so the last time.
    pub last_was_given_back: bool,
    /// When it is tried again, in milliseconds since the Unix epoch, if it had to wait the last time.
    pub until: Option<u64>,
}

impl Row {
    /// How often its consumers have failed.
    pub fn failures(&self) -> u32 {
        self.returns.saturating_sub(self.given_back)
    }
}

/// What a record says of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    Came {
        seq: Seq,
        id: Id,
    },
    Left {
        seq: Seq,
        id: Id,
        how: Gone,
    },
    /// It waits until then for its next try, if it has to.
    Returned {
        seq: Seq,
        id: Id,
        until: Option<u64>,
    },
    Activated {
        of: NodeConsumer,
    },
}

/// Something that must not be: which invariant, and what.
pub type Wrong = (&'static str, String);

const NUMBERS: &str = "a number means one message, for ever";
const PREFIXES: &str = "all members have the same records";
const SENDERS: &str = "of each sender everything is taken or declined once, in order";

/// The committed records of a group.
#[derive(Debug, Default)]
pub struct History {
    entries: Vec<(u64, Vec<u8>)>,
    /// All messages that ever came.
    pub rows: BTreeMap<Seq, Row>,
    /// The numbers under which a message came.
    pub by_id: BTreeMap<Id, Vec<Seq>>,
    /// Of each lane, the number below which messages may have been handed out.
    pub handed_below: BTreeMap<u64, Seq>,
    /// How many messages there were after each record.
    live: Vec<u64>,
    next: BTreeMap<u64, Seq>,
    /// Everything below was taken or declined, by sender.
    senders: BTreeMap<Incarnation, u64>,
}

impl History {
    /// The last record that anybody told of.
    pub fn last(&self) -> Index {
        self.entries.len() as Index
    }

    /// How many messages there are after a record.
    pub fn live_at(&self, index: Index) -> Option<u64> {
        match index {
            0 => Some(0),
            _ => self.live.get(index as usize - 1).copied(),
        }
    }

    /// The messages that are there, with their numbers.
    pub fn live(&self) -> impl Iterator<Item = (Seq, Id)> + '_ {
        let live = self.rows.iter().filter(|(_, row)| row.gone.is_none());
        live.map(|(seq, row)| (*seq, row.id))
    }

    /// Some node tells that this is committed.
    ///
    /// # Errors
    /// It contradicts what others told, or what was told before.
    pub fn learn(&mut self, at: Mark, record: &[u8]) -> Result<Vec<Fact>, Wrong> {
        let known = self.last();
        if at.index <= known {
            let (term, bytes) = &self.entries[at.index as usize - 1];
            return match *term == at.term && bytes == record {
                true => Ok(Vec::new()),
                false => Err((PREFIXES, format!("at {at:?} another one had term {term}"))),
            };
        }
        if at.index > known + 1 {
            return Err((PREFIXES, format!("{at:?} follows record {known}")));
        }
        if self.entries.last().is_some_and(|(term, _)| *term > at.term) {
            return Err((PREFIXES, format!("terms go back at {at:?}")));
        }
        self.entries.push((at.term, record.to_vec()));
        let mut facts = Vec::new();
        let applied = match record.is_empty() {
            true => Ok(()),
            false => self.apply(at, record, &mut facts),
        };
        let before = self.live.last().copied().unwrap_or(0);
        let change = facts.iter().map(|fact| match fact {
            Fact::Came { .. } => 1,
            Fact::Left { .. } => -1,
            Fact::Returned { .. } | Fact::Activated { .. } => 0,
        });
        self.live.push(before.wrapping_add_signed(change.sum()));
        applied.map(|()| facts)
    }

    fn apply(&mut self, at: Mark, record: &[u8], facts: &mut Vec<Fact>) -> Result<(), Wrong> {
        let index = at.index;
        let Some(record) = Record::decode(record) else {
            return Err((PREFIXES, format!("record {index} cannot be read")));
        };
        match record {
            Record::Enqueued {
                first, block, sent, ..
            } => {
                if let Some(sent) = sent {
                    self.sent(index, &sent)?;
                }
                self.came(at, first, &block, facts)
            }
            Record::Declined { sent, .. } => self.sent(index, &sent),
            Record::IncarnationEnded { incarnation } => {
                self.senders.remove(&incarnation);
                Ok(())
            }
            Record::Settled { seqs } => self.left(index, &seqs, Gone::Settled, facts),
            Record::Dropped { seqs, reason } => self.left(index, &seqs, Gone::Dropped(reason), facts),
            Record::Returned { seqs, given_back } => {
                self.returned(index, seqs.iter().map(|seq| (seq, None)), facts)?;
                match given_back {
                    true => self.given_back(index, &seqs),
                    false => Ok(()),
                }
            }
            Record::Retried { until, given_back } => {
                let each = |it: &Expiry| {
                    let at_ms = it.at_ms;
                    (it.first..=it.last).map(move |seq| (seq, Some(at_ms)))
                };
                self.returned(index, until.iter().flat_map(each), facts)?;
                match given_back {
                    true => {
                        let seqs: Ranges = until.iter().flat_map(|it| it.first..=it.last).collect();
                        self.given_back(index, &seqs)
                    }
                    false => Ok(()),
                }
            }
            Record::GivenBack { seqs } => self.given_back(index, &seqs),
            Record::HandedOut { below } => {
                let mark = self.handed_below.entry(lane_of(below - 1)).or_default();
                *mark = below.max(*mark);
                Ok(())
            }
            Record::Barred { .. } | Record::MayHold { .. } => Ok(()),
            Record::Activated { consumer: of } => {
                facts.push(Fact::Activated { of });
                Ok(())
            }
        }
    }

    fn came(&mut self, at: Mark, first: Seq, block: &Block, facts: &mut Vec<Fact>) -> Result<(), Wrong> {
        let (index, term) = (at.index, at.term);
        let next = self.next.entry(lane_of(first)).or_insert(first);
        if first < *next {
            return Err((NUMBERS, format!("record {index} gives {first} out again")));
        }
        *next = first + block.len() as u64;
        for at in 0..block.len() {
            let seq = first + at as u64;
            let Some(id) = id_of(block, at) else {
                return Err((NUMBERS, format!("message {seq} has no name")));
            };
            let row = Row {
                id,
                gone: None,
                term,
                returns: 0,
                given_back: 0,
                last_was_given_back: false,
                until: None,
            };
            self.rows.insert(seq, row);
            self.by_id.entry(id).or_default().push(seq);
            facts.push(Fact::Came { seq, id });
        }
        Ok(())
    }

    fn sent(&mut self, index: Index, sent: &Sent) -> Result<(), Wrong> {
        let below = self.senders.entry(sent.by).or_insert(1);
        // A block of a queue that sorts has a record for each lane, and each of them says where the block begins.
        let (first, last) = (
            sent.numbers.first().unwrap_or(0),
            sent.numbers.last().unwrap_or(0),
        );
        if sent.first > *below || first < sent.first {
            let what = format!("record {index}: {sent:?}, {below} is next");
            return Err((SENDERS, what));
        }
        *below = (*below).max(last + 1);
        Ok(())
    }

    fn left(&mut self, index: Index, seqs: &Ranges, how: Gone, facts: &mut Vec<Fact>) -> Result<(), Wrong> {
        for seq in seqs.iter() {
            let Some(row) = self.rows.get_mut(&seq) else {
                return Err((
                    NUMBERS,
                    format!("record {index}: {how:?} {seq}, which never came"),
                ));
            };
            if let Some(before) = row.gone {
                let what = format!("record {index}: {how:?} {seq}, gone by {before:?}");
                return Err(("what is settled stays settled", what));
            }
            row.gone = Some((index, how));
            facts.push(Fact::Left { seq, id: row.id, how });
        }
        Ok(())
    }

    fn returned(
        &mut self,
        index: Index,
        seqs: impl Iterator<Item = (Seq, Option<u64>)>,
        facts: &mut Vec<Fact>,
    ) -> Result<(), Wrong> {
        for (seq, until) in seqs {
            match self.rows.get_mut(&seq) {
                Some(row) if row.gone.is_none() => {
                    row.returns += 1;
                    (row.until, row.last_was_given_back) = (until, false);
                    let id = row.id;
                    facts.push(Fact::Returned { seq, id, until });
                }
                row => {
                    let what = format!("record {index}: {seq} comes back, {row:?}");
                    return Err(("what is settled stays settled", what));
                }
            }
        }
        Ok(())
    }

    fn given_back(&mut self, index: Index, seqs: &Ranges) -> Result<(), Wrong> {
        for seq in seqs.iter() {
            let row = self.rows.get_mut(&seq).filter(|row| row.given_back < row.returns);
            let Some(row) = row else {
                let what = format!("record {index}: {seq} was given back, and did not come back");
                return Err(("each return counts once", what));
            };
            row.given_back += 1;
            row.last_was_given_back = true;
        }
        Ok(())
    }
}
