//! What an object's numbers were: samples, in time slots of equal length, of numbers that only changed now and then.

use std::collections::VecDeque;

/// The length of a slot, in seconds (RabbitMQ's `collect_statistics_interval`).
pub const SLOT_S: u64 = 5;

/// A time slot: how many there were since the Unix epoch.
pub type Slot = u64;

/// What is kept of samples that are older than the first ones: the last of so many slots, for so many slots.
struct Thinned {
    every: u64,
    kept: u64,
}

/// One a minute for an hour, then one in five minutes for a day.
const THINNED: [Thinned; 2] = [
    Thinned {
        every: 60 / SLOT_S,
        kept: 3_600 / SLOT_S,
    },
    Thinned {
        every: 300 / SLOT_S,
        kept: 86_400 / SLOT_S,
    },
];
/// How old a sample may be at all, in slots.
pub const OLDEST: u64 = THINNED[1].kept;

/// Rows of numbers, the oldest first.
#[derive(Clone, Debug, Default)]
struct Rows {
    slots: VecDeque<Slot>,
    values: VecDeque<u64>,
}

impl Rows {
    fn push(&mut self, slot: Slot, values: &[u64]) {
        self.slots.push_back(slot);
        self.values.extend(values);
    }

    fn take_first(&mut self, width: usize) -> Option<(Slot, Vec<u64>)> {
        let slot = self.slots.pop_front()?;
        Some((slot, self.values.drain(..width).collect()))
    }

    fn bytes(&self) -> usize {
        (self.slots.capacity() + self.values.capacity()) * size_of::<u64>()
    }
}

/// Samples of some numbers. There is none for a slot in which nothing changed.
#[derive(Clone, Debug)]
pub struct History {
    width: usize,
    recent: Rows,
    /// What has left the recent ones, thinned out; only with those who want it.
    older: Option<Box<[Rows; THINNED.len()]>>,
}

impl History {
    /// Begins with what was before the first slot.
    pub fn new(slot: Slot, before: &[u64]) -> Self {
        let mut recent = Rows::default();
        recent.push(slot.saturating_sub(1), before);
        Self {
            width: before.len(),
            recent,
            older: None,
        }
    }

    /// Adds what is so in this slot, and forgets what is older than `kept` slots; the last sample stays however old it is.
    pub fn push(&mut self, slot: Slot, values: &[u64], kept: u64) {
        self.add(slot, values);
        // One sample before the oldest slot that is kept says what was at its beginning.
        while self.is_out(slot, kept) {
            self.recent.take_first(self.width);
        }
    }

    /// Adds what is so in this slot. What is older than `kept` slots is thinned out, until it is a day old.
    pub fn push_lasting(&mut self, slot: Slot, values: &[u64], kept: u64) {
        self.add(slot, values);
        self.age(slot, kept);
    }

    fn add(&mut self, slot: Slot, values: &[u64]) {
        debug_assert_eq!(values.len(), self.width);
        let Rows { slots, values: known } = &mut self.recent;
        let last = known.len().saturating_sub(self.width);
        let same = known.iter().skip(last).eq(values);
        match slots.back() {
            Some(back) if *back >= slot => {
                known.truncate(last);
                known.extend(values);
            }
            _ if same => {}
            _ => self.recent.push(slot, values),
        }
    }

    fn is_out(&self, now: Slot, kept: u64) -> bool {
        let second = self.recent.slots.get(1);
        second.is_some_and(|second| second + kept <= now)
    }

    /// Thins out what is older than `kept` slots.
    pub fn age(&mut self, now: Slot, kept: u64) {
        while self.is_out(now, kept) {
            if let Some((slot, values)) = self.recent.take_first(self.width) {
                let older = self.older.get_or_insert_default();
                add_thinned(&mut older[0], &THINNED[0], self.width, slot, &values);
            }
        }
        let Some(older) = &mut self.older else { return };
        let [minutes, fives] = &mut **older;
        let out = |rows: &Rows, thinned: &Thinned| {
            rows.slots
                .front()
                .is_some_and(|first| first + thinned.kept <= now)
        };
        while out(minutes, &THINNED[0]) {
            if let Some((slot, values)) = minutes.take_first(self.width) {
                add_thinned(fives, &THINNED[1], self.width, slot, &values);
            }
        }
        while out(fives, &THINNED[1]) {
            fives.take_first(self.width);
        }
        if minutes.slots.is_empty() && fives.slots.is_empty() {
            self.older = None;
        }
    }

    /// Forgets what was thinned out.
    pub fn forget_older(&mut self) {
        self.older = None;
    }

    /// Keeps the last two samples only: enough for a rate.
    pub fn shorten(&mut self) {
        self.keep(2);
    }

    /// Keeps the last sample only: nothing has changed since.
    pub fn restart(&mut self) {
        self.keep(1);
    }

    fn keep(&mut self, count: usize) {
        self.older = None;
        while self.recent.slots.len() > count {
            self.recent.take_first(self.width);
        }
        self.recent.slots.shrink_to_fit();
        self.recent.values.shrink_to_fit();
    }

    /// How much memory the samples take, in bytes.
    pub fn bytes(&self) -> u64 {
        let older = self.older.iter().flat_map(|older| older.iter());
        let bytes: usize = older.chain([&self.recent]).map(Rows::bytes).sum();
        bytes as u64
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        let older = self.older.iter().flat_map(|older| older.iter());
        older.chain([&self.recent]).map(|rows| rows.slots.len()).sum()
    }

    /// The slot of the last change.
    pub fn changed(&self) -> Slot {
        self.recent.slots.back().copied().unwrap_or_default()
    }

    /// The sum of the numbers at these places, as it was at the end of a slot.
    pub fn at(&self, slot: Slot, places: &[usize]) -> u64 {
        let reaches = |rows: &&Rows| rows.slots.front().is_some_and(|first| *first <= slot);
        let all = || {
            [&self.recent]
                .into_iter()
                .chain(self.older.iter().flat_map(|older| older.iter()))
        };
        // What was before the first sample is taken to be what that says.
        let oldest = || all().rfind(|rows| !rows.slots.is_empty());
        let Some(rows) = all().find(reaches).or_else(oldest) else {
            return 0;
        };
        let row = rows
            .slots
            .partition_point(|known| *known <= slot)
            .saturating_sub(1);
        let number = |place: &usize| rows.values.get(row * self.width + place).copied();
        places.iter().filter_map(number).sum()
    }

    /// What a number gained a second within the slot.
    pub fn rate(&self, slot: Slot, places: &[usize]) -> f64 {
        difference(self.at(slot, places), self.at(slot.saturating_sub(1), places)) / SLOT_S as f64
    }
}

/// Takes a sample in; of those that came within the same so many slots only the last one stays.
fn add_thinned(rows: &mut Rows, thinned: &Thinned, width: usize, slot: Slot, values: &[u64]) {
    if rows
        .slots
        .back()
        .is_some_and(|back| back / thinned.every == slot / thinned.every)
    {
        rows.slots.pop_back();
        rows.values.truncate(rows.values.len().saturating_sub(width));
    }
    rows.push(slot, values);
}

/// How much `later` is above `earlier`.
pub fn difference(later: u64, earlier: u64) -> f64 {
    if later >= earlier {
        (later - earlier) as f64
    } else {
        -((earlier - later) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_the_gain_of_the_last_slot_even_after_a_long_rest() {
        let mut history = History::new(100, &[0, 0]);
        history.push(100, &[50, 5], 120);
        assert_eq!(
            (history.rate(100, &[0]), history.rate(100, &[0, 1])),
            (10.0, 11.0)
        );
        history.push(101, &[50, 5], 120);
        assert_eq!((history.len(), history.rate(101, &[0])), (2, 0.0));
        history.push(150, &[60, 4], 120);
        assert_eq!((history.rate(150, &[0]), history.rate(150, &[1])), (2.0, -0.2));
        assert_eq!(history.at(149, &[0]), 50);
        assert_eq!(history.at(1, &[0]), 0);
    }

    #[test]
    fn old_samples_are_forgotten_but_what_was_at_the_beginning_stays_known() {
        let mut history = History::new(1, &[0]);
        (1..=100).for_each(|slot| history.push(slot, &[slot * 10], 20));
        assert_eq!(history.len(), 21);
        assert_eq!(history.at(80, &[0]), 800);
        history.shorten();
        assert_eq!((history.len(), history.rate(100, &[0])), (2, 2.0));
        history.restart();
        assert_eq!((history.at(100, &[0]), history.rate(100, &[0])), (1_000, 0.0));
    }

    #[test]
    fn a_lasting_history_is_thinned_out_as_it_ages_and_forgets_after_a_day() {
        let mut history = History::new(1, &[0]);
        (1..=20_000).for_each(|slot| history.push_lasting(slot, &[slot * 10], 120));
        // Five seconds apart for ten minutes, a minute for an hour, five minutes for a day.
        assert!((440..=470).contains(&history.len()), "{}", history.len());
        assert_eq!(history.at(19_990, &[0]), 199_900);
        // At each full minute, and each full five of them, what was just before it is known.
        assert_eq!(history.at(19_560, &[0]), 195_590);
        assert_eq!(history.at(12_000, &[0]), 119_990);
        // What is older than all is taken to be what the oldest sample says.
        assert_eq!(history.at(5, &[0]), history.at(2_760, &[0]));
        assert!(history.at(5, &[0]) >= 26_000);
        history.forget_older();
        assert_eq!((history.len(), history.rate(20_000, &[0])), (121, 2.0));
    }

    #[test]
    fn a_history_that_rests_ages_as_well() {
        let mut history = History::new(1, &[0]);
        (1..=120).for_each(|slot| history.push_lasting(slot, &[slot], 120));
        history.age(700, 120);
        assert_eq!(
            (history.len(), history.at(700, &[0]), history.at(60, &[0])),
            (11, 120, 59)
        );
        history.age(30_000, 120);
        assert_eq!((history.len(), history.at(60, &[0])), (1, 120));
    }
}
