//! What an object's numbers were: samples, in time slots of equal length, of numbers that only changed now and then.

use std::collections::VecDeque;

/// The length of a slot, in seconds (RabbitMQ's `collect_statistics_interval`).
pub const SLOT_S: u64 = 5;

/// A time slot: how many there were since the Unix epoch.
pub type Slot = u64;

/// Samples of some numbers. There is none for a slot in which nothing changed.
#[derive(Clone, Debug)]
pub struct History {
    width: usize,
    slots: VecDeque<Slot>,
    values: VecDeque<u64>,
}

impl History {
    /// Begins with what was before the first slot.
    pub fn new(slot: Slot, before: &[u64]) -> Self {
        Self {
            width: before.len(),
            slots: VecDeque::from([slot.saturating_sub(1)]),
            values: before.iter().copied().collect(),
        }
    }

    /// Adds what is so in this slot, and forgets what is older than `kept` slots; the last sample stays however old it is.
    pub fn push(&mut self, slot: Slot, values: &[u64], kept: u64) {
        debug_assert_eq!(values.len(), self.width);
        let last = self.values.len().saturating_sub(self.width);
        let same = self.values.iter().skip(last).eq(values);
        match self.slots.back() {
            Some(known) if *known >= slot => {
                self.values.truncate(last);
                self.values.extend(values);
            }
            _ if same => {}
            _ => {
                self.slots.push_back(slot);
                self.values.extend(values);
            }
        }
        // One sample before the oldest slot that is kept says what was at its beginning.
        while self.slots.get(1).is_some_and(|second| second + kept <= slot) {
            self.forget_first();
        }
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
        while self.slots.len() > count {
            self.forget_first();
        }
        self.slots.shrink_to_fit();
        self.values.shrink_to_fit();
    }

    fn forget_first(&mut self) {
        self.slots.pop_front();
        self.values.drain(..self.width);
    }

    /// How much memory the samples take, in bytes.
    pub fn bytes(&self) -> u64 {
        let numbers = self.slots.capacity() + self.values.capacity();
        (numbers * size_of::<u64>()) as u64
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// The slot of the last change.
    pub fn changed(&self) -> Slot {
        self.slots.back().copied().unwrap_or_default()
    }

    /// The sum of the numbers at these places, as it was at the end of a slot.
    pub fn at(&self, slot: Slot, places: &[usize]) -> u64 {
        // What was before the first sample is taken to be what that says.
        let row = self
            .slots
            .partition_point(|known| *known <= slot)
            .saturating_sub(1);
        let number = |place: &usize| self.values.get(row * self.width + place).copied();
        places.iter().filter_map(number).sum()
    }

    /// What a number gained a second within the slot.
    pub fn rate(&self, slot: Slot, places: &[usize]) -> f64 {
        difference(self.at(slot, places), self.at(slot.saturating_sub(1), places)) / SLOT_S as f64
    }
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
}
