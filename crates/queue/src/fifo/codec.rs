//! Records and snapshots as bytes. The first octet of a record says which and in which version; numbers and sets as in `encoding`
//! unless said otherwise.
//!
//! ```text
//! 1 Enqueued  first, received (u64 little-endian), flags u8 (1 = persistent), the messages as a block has them
//! 2 Settled   set            3 Returned  set            4 Dropped  reason u8, set
//! 7 Enqueued  first, received, flags, count, then each expiry, the messages
//! 9 Retried   count, then each as an expiry
//! 11 Enqueued as 7, and the messages' deduplication keys count
//! 12 Enqueued first, received, flags (2 = keys count), count, then each expiry, sent, the messages
//! 13 Declined u8 (1 = refused), sent       14 IncarnationEnded  incarnation      15 HandedOut  below
//! 16 Barred  u8 (1 = barred), incarnation                17 Activated  incarnation, consumer
//! 18 GivenBack  set          19 Returned, given back  set        20 Retried, given back  as 9
//! 21 MayHold  u8 (0 = any node; 1 = these), and with 1 count, then each incarnation
//! sent        incarnation, first, set of numbers as distances from first
//! expiry      distance of first from the one before, last - first, at_ms
//! snapshot    next, settled_high, set of live messages; count, then (distance, times) of returned messages; count and each
//! expiry;
//!             count and each retry as an expiry; count and each key: distance of its message from the one before, u128
//! little-endian
//! ```

use super::record::{Expiry, Record, Sent, Snapshot};
use crate::encoding::{Input, put, put_set, put_set_from};
use crate::{DropReason, NodeConsumer};
use model::{Block, ConsumerId, DeduplicationKey, Incarnation, Journaled, Seq, Timestamp};
use std::sync::Arc;

const ENQUEUED: u8 = 1;
const SETTLED: u8 = 2;
const RETURNED: u8 = 3;
const DROPPED: u8 = 4;
const ENQUEUED_EXPIRING: u8 = 7;
const RETRIED: u8 = 9;
const ENQUEUED_KEYED: u8 = 11;
const ENQUEUED_FROM: u8 = 12;
const DECLINED: u8 = 13;
const INCARNATION_ENDED: u8 = 14;
const HANDED_OUT: u8 = 15;
const BARRED: u8 = 16;
const ACTIVATED: u8 = 17;
const GIVEN_BACK: u8 = 18;
const RETURNED_GIVEN_BACK: u8 = 19;
const RETRIED_GIVEN_BACK: u8 = 20;
const MAY_HOLD: u8 = 21;

/// Flags of an enqueued block.
const PERSISTENT: u8 = 1;
const KEYED: u8 = 2;

impl Journaled for Record {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Enqueued {
                first,
                block,
                from,
                expiries,
                keyed,
                sent,
            } => {
                let from = *from as usize;
                let messages = block.slice(from, block.len().saturating_sub(from));
                out.reserve(messages.len() + 20);
                let kind = match (keyed, expiries.is_empty()) {
                    _ if sent.is_some() => ENQUEUED_FROM,
                    (true, _) => ENQUEUED_KEYED,
                    (false, false) => ENQUEUED_EXPIRING,
                    (false, true) => ENQUEUED,
                };
                out.push(kind);
                put(out, *first);
                out.extend_from_slice(&block.received().0.to_le_bytes());
                let keyed = if kind == ENQUEUED_FROM && *keyed { KEYED } else { 0 };
                out.push(u8::from(block.persistent()) | keyed);
                if kind != ENQUEUED {
                    put_expiries(out, expiries);
                }
                if let Some(sent) = sent {
                    sent.put(out);
                }
                out.extend_from_slice(messages);
            }
            Self::Declined { sent, refused } => {
                out.extend_from_slice(&[DECLINED, u8::from(*refused)]);
                sent.put(out);
            }
            Self::Barred { node, barred } => {
                out.extend_from_slice(&[BARRED, u8::from(*barred)]);
                put(out, node.0);
            }
            Self::MayHold { nodes } => {
                out.push(MAY_HOLD);
                put_holders(out, nodes.as_deref());
            }
            Self::Activated { consumer } => {
                out.push(ACTIVATED);
                put(out, consumer.node.0);
                put(out, consumer.consumer.0);
            }
            Self::IncarnationEnded { incarnation } => {
                out.push(INCARNATION_ENDED);
                put(out, incarnation.0);
            }
            Self::HandedOut { below } => {
                out.push(HANDED_OUT);
                put(out, *below);
            }
            Self::Settled { seqs } => {
                out.push(SETTLED);
                put_set(out, seqs);
            }
            Self::Returned { seqs, given_back } => {
                out.push(if *given_back {
                    RETURNED_GIVEN_BACK
                } else {
                    RETURNED
                });
                put_set(out, seqs);
            }
            Self::GivenBack { seqs } => {
                out.push(GIVEN_BACK);
                put_set(out, seqs);
            }
            Self::Retried { until, given_back } => {
                out.push(if *given_back { RETRIED_GIVEN_BACK } else { RETRIED });
                put_expiries(out, until);
            }
            Self::Dropped { seqs, reason } => {
                out.extend_from_slice(&[DROPPED, reason_code(*reason)]);
                put_set(out, seqs);
            }
        }
    }

    /// Of an `Enqueued`, what stood from `from` on comes back.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let mut input = Input { rest };
        let record = match *kind {
            ENQUEUED | ENQUEUED_EXPIRING | ENQUEUED_KEYED | ENQUEUED_FROM => return enqueued(input, *kind),
            HANDED_OUT => Self::HandedOut {
                below: input.number()?,
            },
            DECLINED => Self::Declined {
                refused: input.octet().filter(|refused| *refused <= 1)? == 1,
                sent: Box::new(Sent::get(&mut input)?),
            },
            BARRED => Self::Barred {
                barred: input.octet().filter(|barred| *barred <= 1)? == 1,
                node: Incarnation(input.number()?),
            },
            MAY_HOLD => Self::MayHold {
                nodes: holders(&mut input)?,
            },
            ACTIVATED => Self::Activated {
                consumer: NodeConsumer {
                    node: Incarnation(input.number()?),
                    consumer: ConsumerId(input.number()?),
                },
            },
            INCARNATION_ENDED => Self::IncarnationEnded {
                incarnation: Incarnation(input.number()?),
            },
            SETTLED => Self::Settled { seqs: input.set()? },
            RETURNED | RETURNED_GIVEN_BACK => Self::Returned {
                seqs: input.set()?,
                given_back: *kind == RETURNED_GIVEN_BACK,
            },
            GIVEN_BACK => Self::GivenBack { seqs: input.set()? },
            DROPPED => {
                let reason = reason(input.octet()?)?;
                Self::Dropped {
                    seqs: input.set()?,
                    reason,
                }
            }
            RETRIED | RETRIED_GIVEN_BACK => Self::Retried {
                until: expiries(&mut input)?,
                given_back: *kind == RETRIED_GIVEN_BACK,
            },
            _ => return None,
        };
        input.rest.is_empty().then_some(record)
    }
}

fn enqueued(mut input: Input<'_>, kind: u8) -> Option<Record> {
    let first = input.number().filter(|first| *first > 0)?;
    let received = Timestamp(u64::from_le_bytes(*input.take::<8>()?));
    let known = match kind {
        ENQUEUED_FROM => PERSISTENT | KEYED,
        _ => PERSISTENT,
    };
    let flags = input.octet().filter(|flags| *flags & !known == 0)?;
    let expiries = match kind {
        ENQUEUED => Vec::new(),
        _ => expiries(&mut input)?,
    };
    let sent = match kind {
        ENQUEUED_FROM => Some(Box::new(Sent::get(&mut input)?)),
        _ => None,
    };
    let block = Block::from_bytes(input.rest.to_vec(), flags & PERSISTENT > 0, received)?;
    let count = block.len() as u64;
    (count > 0 && first.checked_add(count).is_some()).then(|| Record::Enqueued {
        first,
        block: Arc::new(block),
        from: 0,
        expiries,
        keyed: kind == ENQUEUED_KEYED || flags & KEYED > 0,
        sent,
    })
}

impl Sent {
    fn put(&self, out: &mut Vec<u8>) {
        put(out, self.by.0);
        put(out, self.first);
        put_set_from(out, self.first, &self.numbers);
    }

    fn get(input: &mut Input<'_>) -> Option<Self> {
        let by = Incarnation(input.number()?);
        let first = input.number()?;
        let numbers = input.numbers_from(first)?;
        Some(Self { by, first, numbers })
    }
}

/// Which nodes may hold something; `None` for any.
pub(super) fn put_holders(out: &mut Vec<u8>, nodes: Option<&[Incarnation]>) {
    out.push(u8::from(nodes.is_some()));
    if let Some(nodes) = nodes {
        put(out, nodes.len() as u64);
        nodes.iter().for_each(|node| put(out, node.0));
    }
}

pub(super) fn holders(input: &mut Input<'_>) -> Option<Option<Vec<Incarnation>>> {
    match input.octet()? {
        0 => Some(None),
        1 => input.list(1, |input| input.number().map(Incarnation)).map(Some),
        _ => None,
    }
}

fn reason_code(reason: DropReason) -> u8 {
    match reason {
        DropReason::MaxLength => 0,
        DropReason::Rejected => 1,
        DropReason::Purged => 2,
        DropReason::Unreadable => 3,
        DropReason::Expired => 4,
        DropReason::DeliveryLimit => 5,
    }
}

fn reason(code: u8) -> Option<DropReason> {
    [
        DropReason::MaxLength,
        DropReason::Rejected,
        DropReason::Purged,
        DropReason::Unreadable,
        DropReason::Expired,
        DropReason::DeliveryLimit,
    ]
    .into_iter()
    .find(|reason| reason_code(*reason) == code)
}

impl Snapshot {
    /// Appends the snapshot's bytes, but for what only queues with senders have, and queues that count what is given back.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put(out, self.next);
        put(out, self.settled_high);
        put_set(out, &self.live);
        put_times(out, &self.returned);
        put_expiries(out, &self.expiries);
        put_expiries(out, &self.retries);
        put(out, self.keys.len() as u64);
        let mut at = 0;
        for (seq, key) in &self.keys {
            put(out, seq.saturating_sub(at));
            out.extend_from_slice(&key.0.to_le_bytes());
            at = *seq;
        }
    }

    /// Reads a snapshot back.
    pub(super) fn get(input: &mut Input<'_>) -> Option<Self> {
        Some(Self {
            next: input.number().filter(|next| *next > 0)?,
            handed_below: 0,
            settled_high: input.number()?,
            live: input.set()?,
            returned: times(input)?,
            given_back: Vec::new(),
            expiries: expiries(input)?,
            retries: expiries(input)?,
            keys: {
                let mut at: Seq = 0;
                input.list(17, |input| {
                    at = at.checked_add(input.number()?)?;
                    Some((at, DeduplicationKey(u128::from_le_bytes(*input.take::<16>()?))))
                })?
            },
        })
    }
}

/// How often something befell messages.
pub(super) fn put_times(out: &mut Vec<u8>, times: &[(Seq, u32)]) {
    put(out, times.len() as u64);
    let mut at = 0;
    for (seq, times) in times {
        put(out, seq.saturating_sub(at));
        put(out, u64::from(*times));
        at = *seq;
    }
}

pub(super) fn times(input: &mut Input<'_>) -> Option<Vec<(Seq, u32)>> {
    let mut at: Seq = 0;
    input.list(2, |input| {
        at = at.checked_add(input.number()?)?;
        Some((at, input.short()?))
    })
}

fn put_expiries(out: &mut Vec<u8>, expiries: &[Expiry]) {
    put(out, expiries.len() as u64);
    let mut at = 0;
    for expiry in expiries {
        put(out, expiry.first.saturating_sub(at));
        put(out, expiry.last.saturating_sub(expiry.first));
        put(out, expiry.at_ms);
        at = expiry.first;
    }
}

fn expiries(input: &mut Input<'_>) -> Option<Vec<Expiry>> {
    let mut at: Seq = 0;
    input.list(3, |input| {
        let first = at.checked_add(input.number()?)?;
        let last = first.checked_add(input.number()?)?;
        at = first;
        let at_ms = input.number()?;
        Some(Expiry { first, last, at_ms })
    })
}
