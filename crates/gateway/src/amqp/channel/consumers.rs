//! A channel's consumers, found by their ids.

use super::consumer::Consumer;
use model::ConsumerId;

/// Consumers in the order of their ids, which rise. One that goes leaves a gap, so that the others need not move up for each that
/// goes; once most slots are gaps, all move up at once.
#[derive(Debug)]
pub struct Consumers<C = Consumer> {
    slots: Vec<ConsumerSlot<C>>,
    gaps: usize,
}

#[derive(Debug)]
struct ConsumerSlot<C> {
    id: ConsumerId,
    /// `None` is a gap.
    consumer: Option<C>,
}

impl<C> Default for Consumers<C> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            gaps: 0,
        }
    }
}

impl<C> Consumers<C> {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.slots.len() - self.gaps
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Adds one whose id is larger than all others'.
    pub fn push(&mut self, id: ConsumerId, consumer: C) {
        self.slots.push(ConsumerSlot {
            id,
            consumer: Some(consumer),
        });
    }

    /// The consumer of this id.
    #[inline]
    pub fn get(&self, id: ConsumerId) -> Option<&C> {
        let at = self.slot_of(id)?;
        self.slots[at].consumer.as_ref()
    }

    /// The consumer of this id.
    #[inline]
    pub fn get_mut(&mut self, id: ConsumerId) -> Option<&mut C> {
        let at = self.slot_of(id)?;
        self.slots[at].consumer.as_mut()
    }

    #[inline]
    fn slot_of(&self, id: ConsumerId) -> Option<usize> {
        self.slots.binary_search_by_key(&id, |slot| slot.id).ok()
    }

    /// All of them, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &C> {
        self.slots.iter().filter_map(|slot| slot.consumer.as_ref())
    }

    /// All of them, in the order of their ids.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut C> {
        self.slots.iter_mut().filter_map(|slot| slot.consumer.as_mut())
    }

    /// How many slots there are, gaps and all.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Those at so many slots from this one on.
    pub fn part(&self, from: usize, slots: usize) -> impl Iterator<Item = &C> {
        let part = self.slots.iter().skip(from).take(slots);
        part.filter_map(|slot| slot.consumer.as_ref())
    }

    /// Takes out the consumer of this id.
    pub fn remove(&mut self, id: ConsumerId) -> Option<C> {
        let at = self.slot_of(id)?;
        let consumer = self.slots[at].consumer.take()?;
        self.gaps += 1;
        self.close_gaps();
        Some(consumer)
    }

    /// Takes out the one that came last.
    pub fn pop(&mut self) -> Option<C> {
        while let Some(slot) = self.slots.pop() {
            match slot.consumer {
                Some(consumer) => return Some(consumer),
                None => self.gaps -= 1,
            }
        }
        None
    }

    /// Moves all up if most slots are gaps: each that stays pays for one that went.
    fn close_gaps(&mut self) {
        if 2 * self.gaps <= self.slots.len() {
            return;
        }
        self.slots.retain(|slot| slot.consumer.is_some());
        self.gaps = 0;
        if self.slots.capacity() > 4 * self.slots.len() {
            self.slots.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(count: u64) -> Consumers<u64> {
        let mut consumers = Consumers::default();
        (1..=count).for_each(|id| consumers.push(ConsumerId(id), id));
        consumers
    }

    #[test]
    fn those_that_stay_are_found_in_their_order() {
        let mut consumers = with(5);
        assert_eq!(consumers.remove(ConsumerId(2)), Some(2));
        assert_eq!(consumers.remove(ConsumerId(2)), None);
        assert_eq!(consumers.get(ConsumerId(2)), None);
        assert_eq!(consumers.get_mut(ConsumerId(3)), Some(&mut 3));
        consumers.push(ConsumerId(9), 9);
        assert_eq!(consumers.remove(ConsumerId(1)), Some(1));
        assert_eq!(consumers.iter().copied().collect::<Vec<_>>(), [3, 4, 5, 9]);
        assert_eq!(consumers.remove(ConsumerId(4)), Some(4));
        assert_eq!(consumers.remove(ConsumerId(5)), Some(5));
        assert_eq!(consumers.iter().copied().collect::<Vec<_>>(), [3, 9]);
        assert_eq!(
            (consumers.count(), consumers.pop(), consumers.pop()),
            (2, Some(9), Some(3))
        );
        assert!(consumers.is_empty() && consumers.pop().is_none());
    }

    #[test]
    fn cancelling_very_many_one_by_one_moves_no_more_of_them_than_there_were() {
        const MANY: u64 = 50_000;
        let orders: [Box<dyn Iterator<Item = u64>>; 3] = [
            Box::new(1..=MANY),
            Box::new((1..=MANY).rev()),
            Box::new((1..=MANY).map(|at| at * 7_919 % MANY + 1)),
        ];
        for order in orders {
            let mut consumers = with(MANY);
            let mut moved = 0;
            for id in order {
                let before = consumers.slots();
                assert_eq!(consumers.remove(ConsumerId(id)), Some(id));
                if consumers.slots() < before {
                    moved += consumers.slots();
                }
            }
            assert!(consumers.is_empty() && moved <= MANY as usize, "{moved}");
        }
    }
}
