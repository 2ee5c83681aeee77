//! Records as bytes. The first octet says which record and in which version; numbers are variable-length (7 bits an octet,
//! lowest first) unless said otherwise; sets of numbers are distances, so that what is close together stays short.
//!
//! ```text
//! 1 Enqueued  first, received (u64 little-endian), flags u8 (1 = persistent), the messages as a block has them
//! 2 Settled   set            3 Returned  set            4 Dropped  reason u8, set
//! 5 Moved     count, then first, count, place
//! 7 Enqueued  first, received, flags, count, then each expiry, the messages
//! 8 Snapshot  as 6, then count and each expiry
//! 9 Retried   count, then each as an expiry
//! 10 Snapshot as 8, then count and each retry as an expiry
//! 11 Enqueued as 7, and the messages' deduplication keys count
//! 12 Snapshot as 10, then count and each key: distance of its message from the one before, u128 little-endian
//! expiry      distance of first from the one before, last - first, at_ms
//! 6 Snapshot  since, next, settled_high, count, then each kept piece; count, then (distance, times) of returned messages
//! set         count of spans, then (distance from the end of the span before, length - 1) each
//! place       segment, offset, length
//! ```

use super::Place;
use super::record::{DropReason, Expiry, Kept, Record, Rest, Snapshot, Stored};
use model::{Block, DeduplicationKey, Ranges, Seq, Timestamp};
use std::sync::Arc;

const ENQUEUED: u8 = 1;
const SETTLED: u8 = 2;
const RETURNED: u8 = 3;
const DROPPED: u8 = 4;
const MOVED: u8 = 5;
const SNAPSHOT: u8 = 6;
const ENQUEUED_EXPIRING: u8 = 7;
const SNAPSHOT_EXPIRING: u8 = 8;
const RETRIED: u8 = 9;
const SNAPSHOT_RETRYING: u8 = 10;
const ENQUEUED_KEYED: u8 = 11;
const SNAPSHOT_KEYED: u8 = 12;

impl Record {
    /// Appends the record's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Enqueued {
                first,
                block,
                from,
                expiries,
                keyed,
            } => {
                let from = *from as usize;
                let messages = block.slice(from, block.len().saturating_sub(from));
                out.reserve(messages.len() + 20);
                let kind = match (keyed, expiries.is_empty()) {
                    (true, _) => ENQUEUED_KEYED,
                    (false, false) => ENQUEUED_EXPIRING,
                    (false, true) => ENQUEUED,
                };
                out.push(kind);
                put(out, *first);
                out.extend_from_slice(&block.received().0.to_le_bytes());
                out.push(u8::from(block.persistent()));
                if kind != ENQUEUED {
                    put_expiries(out, expiries);
                }
                out.extend_from_slice(messages);
            }
            Self::Settled { seqs } => {
                out.push(SETTLED);
                put_set(out, seqs);
            }
            Self::Returned { seqs } => {
                out.push(RETURNED);
                put_set(out, seqs);
            }
            Self::Retried { until } => {
                out.push(RETRIED);
                put_expiries(out, until);
            }
            Self::Dropped { seqs, reason } => {
                out.extend_from_slice(&[DROPPED, reason_code(*reason)]);
                put_set(out, seqs);
            }
            Self::Moved { pieces } => {
                out.push(MOVED);
                put(out, pieces.len() as u64);
                for piece in pieces {
                    put(out, piece.first);
                    put(out, u64::from(piece.count));
                    put_place(out, piece.place);
                }
            }
            Self::Snapshot(snapshot) => put_snapshot(out, snapshot),
        }
    }

    /// Reads back what [`Record::encode`] wrote; of an `Enqueued`, what stood from `from` on. `None` if the bytes are not a
    /// record of a known version. Everything is checked, and nothing is allocated for what is not there.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let mut input = Input { rest };
        let record = match *kind {
            ENQUEUED | ENQUEUED_EXPIRING | ENQUEUED_KEYED => return enqueued(input, *kind),
            SETTLED => Self::Settled { seqs: input.set()? },
            RETURNED => Self::Returned { seqs: input.set()? },
            DROPPED => {
                let reason = reason(input.octet()?)?;
                Self::Dropped {
                    seqs: input.set()?,
                    reason,
                }
            }
            MOVED => Self::Moved {
                pieces: input.list(5, Input::stored)?,
            },
            RETRIED => Self::Retried {
                until: input.expiries()?,
            },
            SNAPSHOT | SNAPSHOT_EXPIRING | SNAPSHOT_RETRYING | SNAPSHOT_KEYED => {
                Self::Snapshot(input.snapshot(*kind)?)
            }
            _ => return None,
        };
        input.rest.is_empty().then_some(record)
    }
}

fn enqueued(mut input: Input<'_>, kind: u8) -> Option<Record> {
    let first = input.number().filter(|first| *first > 0)?;
    let received = Timestamp(u64::from_le_bytes(*input.take::<8>()?));
    let flags = input.octet().filter(|flags| *flags <= 1)?;
    let expiries = input.expiries_if(kind != ENQUEUED)?;
    let block = Block::from_bytes(input.rest.to_vec(), flags == 1, received)?;
    let count = block.len() as u64;
    (count > 0 && first.checked_add(count).is_some()).then(|| Record::Enqueued {
        first,
        block: Arc::new(block),
        from: 0,
        expiries,
        keyed: kind == ENQUEUED_KEYED,
    })
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

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_set(out: &mut Vec<u8>, set: &Ranges) {
    put(out, set.spans().count() as u64);
    let mut at = 0;
    for (first, last) in set.spans() {
        put(out, first - at);
        put(out, last - first);
        at = last;
    }
}

fn put_place(out: &mut Vec<u8>, place: Place) {
    put(out, u64::from(place.segment));
    put(out, u64::from(place.offset));
    put(out, u64::from(place.length));
}

fn put_snapshot(out: &mut Vec<u8>, snapshot: &Snapshot) {
    let keyed = !snapshot.keys.is_empty();
    let kind = match (snapshot.retries.is_empty(), snapshot.expiries.is_empty()) {
        _ if keyed => SNAPSHOT_KEYED,
        (true, true) => SNAPSHOT,
        (true, false) => SNAPSHOT_EXPIRING,
        (false, _) => SNAPSHOT_RETRYING,
    };
    out.push(kind);
    put(out, snapshot.since);
    put(out, snapshot.next);
    put(out, snapshot.settled_high);
    put(out, snapshot.kept.len() as u64);
    for kept in &snapshot.kept {
        put(out, kept.first);
        put(out, u64::from(kept.count));
        match kept.rest {
            Rest::Journal(index) => {
                out.push(0);
                put(out, index);
            }
            Rest::Segment(place) => {
                out.push(1);
                put_place(out, place);
            }
        }
        put(out, kept.first.saturating_sub(kept.base));
        put_set(out, &kept.gone);
        put(out, kept.body_bytes);
        put(out, kept.weight);
    }
    put(out, snapshot.returned.len() as u64);
    let mut at = 0;
    for (seq, times) in &snapshot.returned {
        put(out, seq - at);
        put(out, u64::from(*times));
        at = *seq;
    }
    if kind != SNAPSHOT {
        put_expiries(out, &snapshot.expiries);
    }
    if kind == SNAPSHOT_RETRYING || keyed {
        put_expiries(out, &snapshot.retries);
    }
    if keyed {
        put(out, snapshot.keys.len() as u64);
        let mut at = 0;
        for (seq, key) in &snapshot.keys {
            put(out, seq.saturating_sub(at));
            out.extend_from_slice(&key.0.to_le_bytes());
            at = *seq;
        }
    }
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

struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(taken)
    }

    fn octet(&mut self) -> Option<u8> {
        self.take::<1>().map(|octet| octet[0])
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let octet = self.octet()?;
            let bits = u64::from(octet & 0x7F);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if octet < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn short(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// A count and so many things, each of which takes at least `least` bytes.
    fn list<T>(&mut self, least: usize, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = usize::try_from(self.number()?).ok()?;
        if count > self.rest.len() / least {
            return None;
        }
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            list.push(one(self)?);
        }
        Some(list)
    }

    fn set(&mut self) -> Option<Ranges> {
        let mut at: Seq = 0;
        let mut set = Ranges::new();
        self.list(2, |input| {
            let first = at.checked_add(input.number()?)?;
            let last = first.checked_add(input.number()?)?;
            if !set.is_empty() && first <= at {
                return None;
            }
            set.push_span(first, last);
            at = last;
            Some(())
        })?;
        Some(set)
    }

    fn place(&mut self) -> Option<Place> {
        Some(Place {
            segment: self.short()?,
            offset: self.short()?,
            length: self.short()?,
        })
    }

    fn stored(&mut self) -> Option<Stored> {
        let stored = Stored {
            first: self.number()?,
            count: self.short()?,
            place: self.place()?,
        };
        (stored.first > 0 && stored.count > 0).then_some(stored)
    }

    fn kept(&mut self) -> Option<Kept> {
        let first = self.number()?;
        let count = self.short()?;
        let rest = match self.octet()? {
            0 => Rest::Journal(self.number()?),
            1 => Rest::Segment(self.place()?),
            _ => return None,
        };
        let base = first.checked_sub(self.number()?)?;
        Some(Kept {
            first,
            count,
            rest,
            base,
            gone: self.set()?,
            body_bytes: self.number()?,
            weight: self.number()?,
        })
    }

    fn expiries_if(&mut self, there: bool) -> Option<Vec<Expiry>> {
        match there {
            true => self.expiries(),
            false => Some(Vec::new()),
        }
    }

    fn keys_if(&mut self, there: bool) -> Option<Vec<(Seq, DeduplicationKey)>> {
        if !there {
            return Some(Vec::new());
        }
        let mut at: Seq = 0;
        self.list(17, |input| {
            at = at.checked_add(input.number()?)?;
            Some((at, DeduplicationKey(u128::from_le_bytes(*input.take::<16>()?))))
        })
    }

    fn expiries(&mut self) -> Option<Vec<Expiry>> {
        let mut at: Seq = 0;
        self.list(3, |input| {
            let first = at.checked_add(input.number()?)?;
            let last = first.checked_add(input.number()?)?;
            at = first;
            let at_ms = input.number()?;
            Some(Expiry { first, last, at_ms })
        })
    }

    fn snapshot(&mut self, kind: u8) -> Option<Snapshot> {
        let (since, next, settled_high) = (self.number()?, self.number()?, self.number()?);
        let kept = self.list(8, Self::kept)?;
        let mut at: Seq = 0;
        let returned = self.list(2, |input| {
            at = at.checked_add(input.number()?)?;
            Some((at, input.short()?))
        })?;
        Some(Snapshot {
            since,
            next,
            settled_high,
            kept,
            returned,
            expiries: self.expiries_if(kind != SNAPSHOT)?,
            retries: self.expiries_if(kind == SNAPSHOT_RETRYING || kind == SNAPSHOT_KEYED)?,
            keys: self.keys_if(kind == SNAPSHOT_KEYED)?,
        })
    }
}
