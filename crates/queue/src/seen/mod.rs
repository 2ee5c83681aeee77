//! The machine that knows which deduplication keys have passed an exchange of the type `x-message-deduplication`.
//!
//! It holds no message, only keys: at most so many, each for so long. The oldest one gives way to a new one when there
//! is no room. What passes is answered at once and put on record later ([`Request::Write`]), when the message itself
//! must have been: after a crash in between a message may pass twice, but none is taken for a duplicate of one that was
//! lost.

mod codec;

use model::{DeduplicationKey, Index, Machine, Outcome, Timestamp};
use std::collections::{BTreeMap, VecDeque};

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
    },
    /// Puts on record what has passed before the last request of this kind.
    Write,
    /// Puts everything on record that has passed.
    WriteAll,
    /// Puts everything on record that is known, so that records before these are not needed any more.
    Restate,
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
        self.written < self.next
    }

    fn see(&mut self, now: Timestamp, key: DeduplicationKey, lifetime_ms: Option<u64>) -> bool {
        if self
            .known
            .get(&key)
            .is_some_and(|(_, until_ms)| *until_ms > now.0)
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
        true
    }

    /// Takes from the front what has come to its end.
    fn forget_the_late(&mut self, now: Timestamp) {
        while let Some((number, key)) = self.order.front() {
            match self.known.get(key) {
                Some((known, until_ms)) if known == number && *until_ms > now.0 => return,
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

    /// The keys with numbers from `from` to below `below`.
    fn between(&self, from: u64, below: u64) -> Vec<SeenKey> {
        let first = self.order.partition_point(|(number, _)| *number < from);
        let those = self
            .order
            .range(first..)
            .take_while(|(number, _)| *number < below);
        let seen = |&(number, key): &(u64, DeduplicationKey)| {
            let (known, until_ms) = *self.known.get(&key)?;
            (known == number).then_some(SeenKey {
                number,
                key,
                until_ms,
            })
        };
        those.filter_map(seen).collect()
    }

    fn write(&mut self, below: u64, records: &mut Vec<Record>) {
        let keys = self.between(self.written, below);
        self.written = below;
        records.extend(keys.chunks(PART).map(|part| Record::Seen(part.to_vec())));
    }

    fn restate(&mut self, records: &mut Vec<Record>) {
        let keys = self.between(0, self.next);
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
            Request::See { key, lifetime_ms } => {
                let new = self.see(now, key, lifetime_ms);
                outcome.effects.push(Effect::Answer { new });
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
        seen.handle(Timestamp(at_ms), Request::See { key, lifetime_ms }, &mut outcome);
        outcome.effects == [Effect::Answer { new: true }]
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
