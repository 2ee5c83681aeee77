//! The consumers, and whose turn it is: one message each among those of the highest priority that may get one.

use super::{Consumer, Lines};
use crate::fifo::{Delivery, Effect, Ends};
use crate::{ConsumerSettings, NodeConsumer, OwnConsumer};
use model::{Block, ConsumerId, Incarnation, Mutant, Ranges, Seq};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All consumers of a queue. Those who may get a message stand in line, one line for each priority; who got one goes to the
/// end of it, as does who may get some again.
///
/// Who is gone stays in line until its turn comes, or until there are as many of those as others: to look for one in a line of
/// thousands, each time that one of thousands goes, would take too long.
///
/// In a queue with a single active consumer only that one ever stands in line.
pub(crate) struct Ring<E: Ends> {
    slots: Vec<Option<Consumer<E>>>,
    vacant: Vec<u32>,
    index: BTreeMap<ConsumerId, u32>,
    /// Slots in line. Who may not get anything any more leaves when its turn comes.
    lines: Lines,
    /// How many stand in line who are gone. Their slots are not vacant yet.
    gone: usize,
    /// How many places in lines were looked at to find those who are gone.
    looked: usize,
    /// How many in line acknowledge.
    acking: usize,
    /// Only one consumer is active, and this one if any is; the others wait for it to go.
    single: bool,
    /// One of a higher priority takes the place of the active one.
    by_priority: bool,
    active: Option<u32>,
    /// Who is the next active one: the highest priority first, then who came first.
    ranks: BTreeSet<(Reverse<i64>, ConsumerId)>,
    /// Slots with a batch, in order of their first message.
    dealt: Vec<u32>,
}

/// So many who are gone may stand in line in any case.
const FEW: usize = 16;

/// A span of a block that is to be dealt out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'a> {
    pub first: Seq,
    pub last: Seq,
    pub block: &'a Arc<Block>,
    pub base: Seq,
    pub redelivered: bool,
    pub returns: u32,
    pub failures: Option<u32>,
}

impl<E: Ends> Default for Ring<E> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            vacant: Vec::new(),
            index: BTreeMap::new(),
            lines: Lines::default(),
            gone: 0,
            looked: 0,
            acking: 0,
            single: false,
            by_priority: false,
            active: None,
            ranks: BTreeSet::new(),
            dealt: Vec::new(),
        }
    }
}

impl<E: Ends> Ring<E> {
    /// Whether one of them is this node's.
    pub(crate) fn has_one_of(&self, node: Incarnation) -> bool {
        let mut consumers = self.slots.iter().flatten();
        consumers.any(|it| it.of.is_some_and(|of| of.node == node))
    }

    /// How many consumers there are.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// True if one of them consumes alone.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.index.len() == 1
            && self
                .slots
                .iter()
                .flatten()
                .any(|consumer| consumer.settings.exclusive)
    }

    /// Says whether only one consumer may be active, and whether one of a higher priority takes its place. A queue is declared
    /// so; a recovered one learns it before anybody consumes.
    pub(crate) fn set_single(&mut self, single: bool, by_priority: bool) {
        self.single = single;
        self.by_priority = by_priority;
    }

    /// True if only one consumer may be active.
    pub(crate) fn is_single(&self) -> bool {
        self.single
    }

    /// The consumer that is served, where only one may be.
    pub(crate) fn active(&self) -> Option<ConsumerId> {
        let consumer = self.slots.get(self.active? as usize)?.as_ref()?;
        Some(consumer.id)
    }

    /// Those that no other node names, as they stand now.
    pub(crate) fn own(&self) -> impl Iterator<Item = OwnConsumer<E>> + '_ {
        let own = self.slots.iter().flatten().filter(|it| it.of.is_none());
        own.map(|it| OwnConsumer {
            consumer: it.id,
            outlet: it.outlet.clone(),
            settings: ConsumerSettings {
                paused: it.paused,
                ..it.settings
            },
            outstanding: u64::try_from(i64::from(it.settings.window) - it.window).unwrap_or(0),
        })
    }

    /// Adds a consumer at the end of its priority's line. Whether it takes the place of the active single one is asked by
    /// [`Ring::make_room`].
    pub(crate) fn add(&mut self, consumer: Consumer<E>) {
        let (id, priority) = (consumer.id, consumer.settings.priority);
        let consumer = Some(consumer);
        let slot = match self.vacant.pop() {
            Some(slot) => {
                self.slots[slot as usize] = consumer;
                slot
            }
            None => {
                self.slots.push(consumer);
                (self.slots.len() - 1) as u32
            }
        };
        self.index.insert(id, slot);
        self.ranks.insert((Reverse(priority), id));
        self.line_up(slot);
    }

    /// Removes a consumer.
    pub(crate) fn remove(&mut self, id: ConsumerId) -> Option<Consumer<E>> {
        let slot = self.index.remove(&id)?;
        let consumer = self.slots[slot as usize].take()?;
        self.ranks.remove(&(Reverse(consumer.settings.priority), id));
        if consumer.in_turn {
            self.acking -= usize::from(!consumer.settings.no_ack);
            self.gone += 1;
            self.forget_the_gone();
        } else {
            self.vacant.push(slot);
        }
        self.active.take_if(|active| *active == slot);
        Some(consumer)
    }

    /// Takes those out of their lines who are gone, once they are as many as those who are not.
    fn forget_the_gone(&mut self) {
        if self.gone < FEW || self.gone < self.index.len() {
            return;
        }
        let (slots, vacant) = (&self.slots, &mut self.vacant);
        self.looked += self.lines.retain(|slot| {
            let stays = slots[slot as usize].is_some();
            if !stays {
                vacant.push(slot);
            }
            stays
        });
        self.gone = 0;
    }

    /// In queues where priority decides, the active consumer makes room for one of a higher priority once it holds nothing, and
    /// gets nothing more until then (RabbitMQ's quorum queues; its classic queues keep the active one). True if none is active
    /// now.
    pub(crate) fn make_room(&mut self) -> bool {
        let Some(slot) = self.active else { return true };
        if !self.by_priority || Mutant::YieldsNever.is_on() {
            return false;
        }
        let highest = self.ranks.first().map(|(Reverse(priority), _)| *priority);
        let Some(active) = &mut self.slots[slot as usize] else {
            return true;
        };
        active.yields = highest.is_some_and(|it| it > active.settings.priority);
        if !active.yields {
            self.line_up(slot);
            return false;
        }
        if active.in_flight == 0 || Mutant::YieldsAtOnce.is_on() {
            self.active = None;
        }
        self.active.is_none()
    }

    /// Has a consumer become the active one where none is: the one that a node calls so, else the one of the highest priority
    /// that came first.
    pub(crate) fn activate(&mut self, of: Option<NodeConsumer>) -> Option<&Consumer<E>> {
        let is_called_so = |it: &Option<Consumer<E>>| it.as_ref().is_some_and(|it| it.of == of);
        let known = of.and_then(|_| self.slots.iter().position(is_called_so));
        let first = || self.ranks.first().and_then(|(_, id)| self.index.get(id));
        let slot = known.map(|at| at as u32).or_else(|| first().copied())?;
        self.active = Some(slot);
        if let Some(active) = &mut self.slots[slot as usize] {
            active.yields = false;
        }
        self.line_up(slot);
        self.slots[slot as usize].as_ref()
    }

    /// Removes all, in the order of their ids.
    pub(crate) fn clear(&mut self) -> Vec<Consumer<E>> {
        let ids: Vec<ConsumerId> = self.index.keys().copied().collect();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    /// Changes a consumer; if it may get messages now it lines up. False if there is no such consumer.
    pub(crate) fn change(&mut self, id: ConsumerId, change: impl FnOnce(&mut Consumer<E>)) -> bool {
        let Some(slot) = self.index.get(&id).copied() else {
            return false;
        };
        if let Some(consumer) = &mut self.slots[slot as usize] {
            change(consumer);
        }
        self.line_up(slot);
        true
    }

    /// True if somebody may get a message.
    pub(crate) fn is_hungry(&mut self) -> bool {
        self.front().is_some()
    }

    /// True if somebody may get a message and all who stand in line do not acknowledge.
    pub(crate) fn is_straight(&mut self) -> bool {
        self.acking == 0 && self.is_hungry()
    }

    /// Deals out the span's messages from the first on as far as consumers may get them, one delivery for each consumer.
    /// What went to consumers that do not acknowledge is added to `settled`. Returns how many messages went.
    pub(crate) fn deal(&mut self, span: Span<'_>, settled: &mut Ranges, effects: &mut Vec<Effect<E>>) -> u64 {
        let mut seq = span.first;
        while seq <= span.last {
            let Some((line, slot)) = self.front() else { break };
            let alone = self.lines.length(line) == 1;
            let Some(consumer) = &mut self.slots[slot as usize] else {
                break;
            };
            let from = (seq - span.base) as usize;
            let count = if alone {
                consumer.room(span.block, from, span.last + 1 - seq)
            } else {
                1
            };
            if consumer.batch.is_empty() {
                self.dealt.push(slot);
            }
            consumer.batch.push_span(seq, seq + count - 1);
            consumer.charge(span.block, from, count);
            if consumer.settings.no_ack {
                settled.push_span(seq, seq + count - 1);
            }
            seq += count;
            if !alone {
                self.lines.rotate(line);
            }
        }
        for slot in self.dealt.drain(..) {
            let Some(consumer) = &mut self.slots[slot as usize] else {
                continue;
            };
            effects.push(Effect::Deliver {
                outlet: consumer.outlet.clone(),
                consumer: consumer.id,
                delivery: Delivery {
                    seqs: std::mem::take(&mut consumer.batch),
                    block: span.block.clone(),
                    base: span.base,
                    redelivered: span.redelivered,
                    returns: span.returns,
                    failures: span.failures,
                },
            });
        }
        seq - span.first
    }

    /// Whose turn it is, and in which line. Those who may not get anything leave theirs.
    fn front(&mut self) -> Option<(usize, u32)> {
        loop {
            let (line, slot) = self.lines.front()?;
            let Some(consumer) = &mut self.slots[slot as usize] else {
                self.lines.leave(line);
                self.vacant.push(slot);
                self.gone -= 1;
                continue;
            };
            if consumer.is_eligible() {
                return Some((line, slot));
            }
            consumer.in_turn = false;
            self.acking -= usize::from(!consumer.settings.no_ack);
            self.lines.leave(line);
        }
    }

    fn line_up(&mut self, slot: u32) {
        if self.single && self.active != Some(slot) {
            return;
        }
        let Some(consumer) = &mut self.slots[slot as usize] else {
            return;
        };
        if !consumer.in_turn && consumer.is_eligible() {
            consumer.in_turn = true;
            self.acking += usize::from(!consumer.settings.no_ack);
            self.lines.join(consumer.settings.priority, slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fifo::ConsumerSettings;

    enum Numbers {}

    impl Ends for Numbers {
        type Receipt = u32;
        type Reply = u32;
        type Outlet = ();

        fn split(receipt: &mut u32, _: &Ranges, _: usize) -> u32 {
            *receipt
        }
    }

    fn settings(priority: i64) -> ConsumerSettings {
        ConsumerSettings {
            no_ack: false,
            paused: false,
            exclusive: false,
            prefetch: 1,
            priority,
            window: 1_000,
        }
    }

    fn consumer(id: u64, priority: i64) -> Consumer<Numbers> {
        Consumer::new(ConsumerId(id), (), settings(priority))
    }

    #[test]
    fn many_consumers_go_at_a_cost_that_grows_with_their_number_only() {
        let mut ring = Ring::<Numbers>::default();
        let many = 10_000;
        (1..=many).for_each(|id| ring.add(consumer(id, 0)));
        for id in 1..=many {
            assert!(ring.remove(ConsumerId(id)).is_some());
        }
        assert!(
            ring.looked <= 3 * many as usize,
            "{} places were looked at",
            ring.looked
        );
        assert!(!ring.is_hungry() && ring.len() == 0 && ring.acking == 0);
        // Slots are used again, and a queue to which consumers come and go without an end does not grow.
        let slots = ring.slots.len();
        for id in 1..=many {
            ring.add(consumer(many + id, id as i64 % 3));
            ring.remove(ConsumerId(many + id));
        }
        assert_eq!(ring.slots.len(), slots);
    }

    #[test]
    fn who_stays_among_many_who_go_keeps_its_turn() {
        let mut ring = Ring::<Numbers>::default();
        (1..=100).for_each(|id| ring.add(consumer(id, 0)));
        for id in (1..=100).filter(|id| id % 10 != 0) {
            ring.remove(ConsumerId(id));
        }
        let mut turns = Vec::new();
        while let Some((line, slot)) = ring.front() {
            turns.extend(ring.slots[slot as usize].as_ref().map(|it| it.id.0));
            ring.lines.leave(line);
        }
        assert_eq!(turns, (1..=10).map(|ten| ten * 10).collect::<Vec<u64>>());
    }

    #[test]
    fn the_next_active_one_is_the_first_of_the_highest_priority() {
        let mut ring = Ring::<Numbers>::default();
        ring.set_single(true, false);
        for (id, priority) in [(1, 0), (2, 0), (3, 5), (4, 5)] {
            ring.add(consumer(id, priority));
        }
        let mut order = Vec::new();
        while let Some(active) = ring.activate(None).map(|it| it.id) {
            order.push(active.0);
            ring.remove(active);
        }
        assert_eq!(order, [3, 4, 1, 2]);
    }
}
