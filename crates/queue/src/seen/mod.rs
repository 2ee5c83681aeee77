//! The machine that knows which deduplication keys have passed an exchange of the type `x-message-deduplication`.
//!
//! It holds no message, only keys: at most so many, each for so long. The oldest one gives way to a new one when there
//! is no room. What passes is answered at once and put on record later ([`Request::Write`]), when the message itself
//! must have been: after a crash in between a message may pass twice, but none is taken for a duplicate of one that was
//! lost.
//!
//! A message that lies in a queue of this node while it goes on is the *bearer* of its key: as long as it has not arrived it may
//! be sent on again, and passes again. Until then its key does not end and is not put on record, for if the node starts again the
//! message is still in its queue and has to pass once more.

mod codec;

use model::{DeduplicationKey, Index, Machine, Mutant, Outcome, QueueId, Seq, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::mem;

/// So many keys stand in one record at most.
const PART: usize = 4096;

/// So many places of keys that came again later are kept before anybody looks for them.
const FEW: usize = 64;

/// What the machine goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenSettings {
    /// So many keys are known at most; at least one.
    pub size: u64,
    /// How long a key is known if its message does not say, in milliseconds; for as long as there is room if nobody says.
    pub lifetime_ms: Option<u64>,
}

/// What somebody wants.
#[derive(Debug)]
pub enum Request {
    /// A message with this key passes, and wants it to be known for so long, in milliseconds. Answered by [`Effect::Answer`].
    See {
        key: DeduplicationKey,
        lifetime_ms: Option<u64>,
        /// The message, if it may have to pass again.
        by: Option<Bearer>,
    },
    /// The bearer of this key has arrived wherever it went.
    Arrived { key: DeduplicationKey, by: Bearer },
    /// What passed with this key, just now, was refused by those whom it would have gone to.
    Refused { key: DeduplicationKey },
    /// Puts on record what has passed before the last request of this kind.
    Write,
    /// Puts everything on record that has passed.
    WriteAll,
    /// Puts everything on record that is known, so that records before these are not needed any more.
    Restate,
}

/// A message in a queue of this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bearer {
    /// The queue.
    pub queue: QueueId,
    /// The message's number there.
    pub seq: Seq,
}

/// What is now so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// These have passed.
    Seen(Vec<SeenKey>),
    /// The same, and everything that counts of what passed before stands in this record and those that follow it.
    Restated(Vec<SeenKey>),
}

/// A key that has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenKey {
    /// Rises with each key that is new.
    pub number: u64,
    /// The key.
    pub key: DeduplicationKey,
    /// Until when it is known, in milliseconds since the Unix epoch; `u64::MAX` for as long as there is room.
    pub until_ms: u64,
}

/// What the host shall do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Tell whoever asked whether the key is new.
    Answer { new: bool },
}

/// See the [module](self).
#[derive(Debug)]
pub struct Seen {
    settings: SeenSettings,
    /// Number and end of each known key.
    known: BTreeMap<DeduplicationKey, (u64, u64)>,
    /// The keys by rising numbers; some have come again since, and stand further behind too.
    order: VecDeque<(u64, DeduplicationKey)>,
    /// Who bears known keys and has not arrived.
    bearers: BTreeMap<DeduplicationKey, Bearer>,
    /// Keys, with their numbers, whose bearers have arrived since those around them were put on record.
    late: Vec<(u64, DeduplicationKey)>,
    /// The next key's number.
    next: u64,
    /// Keys with lower numbers are on record.
    written: u64,
    /// Keys with lower numbers go on record next.
    ripe: u64,
}

impl Seen {
    /// A machine that has seen nothing.
    pub fn new(settings: SeenSettings) -> Self {
        Self {
            settings,
            known: BTreeMap::new(),
            order: VecDeque::new(),
            bearers: BTreeMap::new(),
            late: Vec::new(),
            next: 1,
            written: 1,
            ripe: 1,
        }
    }

    /// From now on these settings hold. While records are applied nothing has to give way, as nobody knows yet what is to hold.
    pub fn configure(&mut self, settings: SeenSettings) {
        self.settings = settings;
        self.sweep();
        self.make_room(0);
    }

    /// How many keys it knows; some of them may have come to their end.
    pub fn len(&self) -> u64 {
        self.known.len() as u64
    }

    /// True if it knows none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// True if something has passed that is not on record.
    pub fn has_news(&self) -> bool {
        self.written < self.next || !self.late.is_empty()
    }

    fn see(
        &mut self,
        now: Timestamp,
        key: DeduplicationKey,
        lifetime_ms: Option<u64>,
        by: Option<Bearer>,
    ) -> bool {
        if let Some(bearer) = self.bearers.get(&key) {
            return by == Some(*bearer) && !Mutant::DropsOwnDuplicate.is_on();
        }
        if self
            .known
            .get(&key)
            .is_some_and(|(_, until_ms)| *until_ms > now.0)
            && !Mutant::RemembersNoKey.is_on()
        {
            return false;
        }
        self.known.remove(&key);
        self.forget_the_late(now);
        self.make_room(1);
        let lifetime_ms = lifetime_ms.or(self.settings.lifetime_ms);
        let until_ms = lifetime_ms.map_or(u64::MAX, |it| now.0.saturating_add(it));
        self.known.insert(key, (self.next, until_ms));
        self.order.push_back((self.next, key));
        self.next += 1;
        if self.order.len() > FEW + 2 * self.known.len() {
            self.sweep();
        }
        self.bearers.extend(by.map(|bearer| (key, bearer)));
        true
    }

    /// From now on it is a key like others, as old as it was. If its number was passed over when those around it were put on
    /// record, it goes there next.
    fn arrived(&mut self, key: DeduplicationKey, by: Bearer) {
        if self.bearers.get(&key) != Some(&by) {
            return;
        }
        self.bearers.remove(&key);
        let number = self.known.get(&key).map(|(number, _)| *number);
        let late = number.filter(|number| *number < self.written);
        self.late.extend(late.map(|number| (number, key)));
    }

    /// Takes from the front what has come to its end.
    fn forget_the_late(&mut self, now: Timestamp) {
        while let Some((number, key)) = self.order.front() {
            match self.known.get(key) {
                Some((known, until_ms))
                    if known == number && (*until_ms > now.0 || self.bearers.contains_key(key)) =>
                {
                    return;
                }
                Some((known, _)) if known == number => drop(self.known.remove(key)),
                _ => {}
            }
            self.order.pop_front();
        }
    }

    /// Forgets the oldest keys until there is room for so many.
    fn make_room(&mut self, wanted: u64) {
        while self.len() + wanted > self.settings.size.max(1) {
            let Some((number, key)) = self.order.pop_front() else {
                return;
            };
            if self.known.get(&key).is_some_and(|(known, _)| *known == number) {
                self.known.remove(&key);
                self.bearers.remove(&key);
            }
        }
    }

    /// Puts the keys that are known in their order.
    fn sweep(&mut self) {
        let mut order: Vec<_> = self
            .known
            .iter()
            .map(|(key, (number, _))| (*number, *key))
            .collect();
        order.sort_unstable();
        self.order = order.into();
    }

    /// The keys with numbers from `from` to below `below` that no bearer has any more.
    fn between(&self, from: u64, below: u64) -> Vec<SeenKey> {
        let first = self.order.partition_point(|(number, _)| *number < from);
        let those = self
            .order
            .range(first..)
            .take_while(|(number, _)| *number < below);
        those.filter_map(|place| self.seen(place)).collect()
    }

    /// What goes on record of a key with this number; nothing if it has another one by now, or a bearer.
    fn seen(&self, &(number, key): &(u64, DeduplicationKey)) -> Option<SeenKey> {
        let (known, until_ms) = *self.known.get(&key)?;
        let is_borne = self.bearers.contains_key(&key) && !Mutant::WritesUnarrived.is_on();
        (known == number && !is_borne).then_some(SeenKey {
            number,
            key,
            until_ms,
        })
    }

    fn write(&mut self, below: u64, records: &mut Vec<Record>) {
        let late = mem::take(&mut self.late);
        let mut keys: Vec<SeenKey> = late.iter().filter_map(|place| self.seen(place)).collect();
        keys.extend(self.between(self.written, below));
        self.written = below;
        records.extend(keys.chunks(PART).map(|part| Record::Seen(part.to_vec())));
    }

    fn restate(&mut self, records: &mut Vec<Record>) {
        let keys = self.between(0, self.next);
        self.late.clear();
        (self.written, self.ripe) = (self.next, self.next);
        let mut parts = keys.chunks(PART).map(<[SeenKey]>::to_vec);
        records.push(Record::Restated(parts.next().unwrap_or_default()));
        records.extend(parts.map(Record::Seen));
    }
}

impl Machine for Seen {
    type Request = Request;
    type Record = Record;
    type Effect = Effect;
    /// How many keys it knows; some of them may have come to their end.
    type Status = u64;

    fn handle(&mut self, now: Timestamp, request: Request, outcome: &mut Outcome<Record, Effect>) {
        match request {
            Request::See { key, lifetime_ms, by } => {
                let new = self.see(now, key, lifetime_ms, by);
                outcome.effects.push(Effect::Answer { new });
            }
            Request::Arrived { key, by } => self.arrived(key, by),
            Request::Refused { key } => {
                self.known.remove(&key);
                self.bearers.remove(&key);
            }
            Request::Write => {
                self.write(self.ripe, &mut outcome.records);
                self.ripe = self.next;
            }
            Request::WriteAll => {
                self.ripe = self.next;
                self.write(self.next, &mut outcome.records);
            }
            Request::Restate => self.restate(&mut outcome.records),
        }
    }

    fn apply(&mut self, _: Index, record: Record, _: &mut Outcome<Record, Effect>) {
        let (Record::Seen(keys) | Record::Restated(keys)) = record;
        for seen in keys {
            let older = |(number, _): &(u64, u64)| *number < seen.number;
            if self.known.get(&seen.key).is_none_or(older) {
                self.known.insert(seen.key, (seen.number, seen.until_ms));
            }
            self.next = self.next.max(seen.number.saturating_add(1));
        }
    }

    fn recovered(&mut self, _closed: bool) {
        (self.written, self.ripe) = (self.next, self.next);
    }

    fn follow(&mut self) {}

    fn wakes_at_ms(&self) -> u64 {
        u64::MAX
    }

    fn status(&self) -> u64 {
        self.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(size: u64, lifetime_ms: Option<u64>) -> Seen {
        Seen::new(SeenSettings { size, lifetime_ms })
    }

    fn ask(seen: &mut Seen, request: Request) -> Vec<Record> {
        let mut outcome = Outcome::default();
        seen.handle(Timestamp(0), request, &mut outcome);
        outcome.records
    }

    fn passes(seen: &mut Seen, at_ms: u64, key: u128, lifetime_ms: Option<u64>) -> bool {
        let mut outcome = Outcome::default();
        let key = DeduplicationKey(key);
        let by = None;
        let see = Request::See { key, lifetime_ms, by };
        seen.handle(Timestamp(at_ms), see, &mut outcome);
        outcome.effects == [Effect::Answer { new: true }]
    }

    fn passes_on(seen: &mut Seen, at_ms: u64, key: u128, seq: Seq) -> bool {
        let mut outcome = Outcome::default();
        let see = Request::See {
            key: DeduplicationKey(key),
            lifetime_ms: None,
            by: Some(bearer(seq)),
        };
        seen.handle(Timestamp(at_ms), see, &mut outcome);
        outcome.effects == [Effect::Answer { new: true }]
    }

    fn bearer(seq: Seq) -> Bearer {
        let queue = QueueId(9);
        Bearer { queue, seq }
    }

    fn replayed(records: Vec<Record>, settings: SeenSettings) -> Seen {
        let mut replayed = Seen::new(settings);
        (1..)
            .zip(records)
            .for_each(|(index, it)| replayed.apply(index, it, &mut Outcome::default()));
        replayed.recovered(true);
        replayed.configure(settings);
        replayed
    }

    #[test]
    fn a_message_that_is_sent_on_again_passes_again_until_it_has_arrived_and_nobody_else_does() {
        let mut seen = seen(10, Some(100));
        assert!(passes_on(&mut seen, 0, 1, 5) && passes_on(&mut seen, 50, 1, 5));
        assert!(!passes_on(&mut seen, 50, 1, 6) && !passes(&mut seen, 50, 1, None));
        // However long that takes.
        assert!(!passes(&mut seen, 500, 1, None) && passes(&mut seen, 500, 2, None));
        assert!(passes_on(&mut seen, 500, 1, 5));
        let key = DeduplicationKey(1);
        let by = bearer(6);
        assert!(ask(&mut seen, Request::Arrived { key, by }).is_empty());
        assert!(!passes(&mut seen, 500, 1, None), "that was another one");
        let by = bearer(5);
        ask(&mut seen, Request::Arrived { key, by });
        assert!(!passes_on(&mut seen, 99, 1, 5), "it is a key like others");
        assert!(passes(&mut seen, 500, 1, None));
    }

    #[test]
    fn the_key_of_a_message_that_has_not_arrived_is_not_on_record_and_is_once_it_has() {
        let mut live = seen(10, None);
        assert!(passes(&mut live, 0, 1, None) && passes_on(&mut live, 0, 2, 5));
        let records = ask(&mut live, Request::WriteAll);
        let mut again = replayed(records.clone(), live.settings);
        assert!(!passes(&mut again, 0, 1, None) && passes_on(&mut again, 0, 2, 5));
        let restated = ask(&mut live, Request::Restate);
        assert!(passes(&mut replayed(restated, live.settings), 0, 2, None));
        let (key, by) = (DeduplicationKey(2), bearer(5));
        ask(&mut live, Request::Arrived { key, by });
        assert!(live.has_news());
        let mut records = records;
        records.extend(ask(&mut live, Request::WriteAll));
        let mut again = replayed(records, live.settings);
        assert!(!passes(&mut again, 0, 1, None) && !passes(&mut again, 0, 2, None));
    }

    #[test]
    fn what_was_refused_is_not_known_and_what_gives_way_has_no_bearer() {
        let mut seen = seen(1, None);
        assert!(passes(&mut seen, 0, 1, None));
        let key = DeduplicationKey(1);
        ask(&mut seen, Request::Refused { key });
        assert!(passes_on(&mut seen, 0, 1, 5));
        assert!(passes(&mut seen, 0, 2, None), "there is room for one");
        assert!(seen.bearers.is_empty() && seen.len() == 1);
    }

    #[test]
    fn a_key_passes_once_and_again_when_its_time_is_over() {
        let mut seen = seen(10, Some(100));
        assert!(passes(&mut seen, 0, 1, None));
        assert!(!passes(&mut seen, 99, 1, None));
        assert!(passes(&mut seen, 100, 1, Some(1_000)));
        assert!(!passes(&mut seen, 1_000, 1, None));
        assert!(passes(&mut seen, 1_100, 1, None));
    }

    #[test]
    fn the_oldest_key_gives_way_when_there_is_no_room() {
        let mut seen = seen(2, None);
        assert!(passes(&mut seen, 0, 1, None));
        assert!(passes(&mut seen, 0, 2, None));
        assert!(passes(&mut seen, 0, 3, None));
        assert!(!passes(&mut seen, 0, 2, None));
        assert!(passes(&mut seen, 0, 1, None));
        assert_eq!(seen.len(), 2);
    }

    #[test]
    fn the_oldest_key_gives_way_also_if_its_message_arrived_after_the_next_one_had_come() {
        let mut seen = seen(2, None);
        assert!(passes_on(&mut seen, 0, 1, 5) && passes_on(&mut seen, 0, 2, 6));
        let (key, by) = (DeduplicationKey(1), bearer(5));
        ask(&mut seen, Request::Arrived { key, by });
        assert!(passes(&mut seen, 0, 3, None));
        assert!(!passes(&mut seen, 0, 2, None) && passes(&mut seen, 0, 1, None));
    }

    #[test]
    fn keys_that_come_again_and_again_take_no_more_room_behind_one_that_stays() {
        let mut seen = seen(1_000_000, None);
        assert!(passes(&mut seen, 0, 1, None));
        for at in 1..10_000 {
            assert!(passes(&mut seen, at, 2, Some(1)));
        }
        assert_eq!(seen.len(), 2);
        assert!(seen.order.len() <= FEW + 5);
    }

    #[test]
    fn what_passed_goes_on_record_one_turn_later_and_is_known_after_a_replay() {
        let mut live = seen(3, None);
        assert!(passes(&mut live, 0, 1, None));
        assert!(ask(&mut live, Request::Write).is_empty());
        assert!(passes(&mut live, 0, 2, None));
        let mut records = ask(&mut live, Request::Write);
        let passed = SeenKey {
            number: 1,
            key: DeduplicationKey(1),
            until_ms: u64::MAX,
        };
        assert_eq!(records, [Record::Seen(vec![passed])]);
        assert!(live.has_news());
        records.extend(ask(&mut live, Request::WriteAll));
        assert!(!live.has_news());
        let mut replayed = seen(1, None);
        (1..)
            .zip(records)
            .for_each(|(index, it)| replayed.apply(index, it, &mut Outcome::default()));
        replayed.recovered(true);
        replayed.configure(live.settings);
        assert!(!passes(&mut replayed, 0, 1, None) && !passes(&mut replayed, 0, 2, None));
        assert!(!replayed.has_news());
    }

    #[test]
    fn a_restatement_replaces_all_records_before_it() {
        let mut live = seen(5_000, None);
        for key in 0..6_000 {
            assert!(passes(&mut live, 0, key, None));
        }
        let records = ask(&mut live, Request::Restate);
        assert!(matches!(records[0], Record::Restated(_)) && records.len() == 2);
        let mut replayed = seen(1, None);
        (1..)
            .zip(records)
            .for_each(|(index, it)| replayed.apply(index, it, &mut Outcome::default()));
        replayed.recovered(true);
        replayed.configure(live.settings);
        assert_eq!((replayed.known, replayed.next), (live.known, live.next));
        assert_eq!(replayed.order, live.order);
    }
}
