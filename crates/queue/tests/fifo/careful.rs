//! A careful bystander: it keeps its own list of what must be so, message by message, and compares after every turn.

use crate::world::{Event, Plain, World, numbers, shrink};
use model::{ConsumerId, Machine, Ranges, Seq};
use queue::fifo::{Answer, ConsumerSettings, DropReason, QueueSettings, Record, Request, Standing};
use std::collections::{BTreeMap, BTreeSet};

/// A message that must exist.
#[derive(Clone, Copy, Debug)]
struct Known {
    size: u64,
    journaled: bool,
    returned: bool,
}

struct KnownConsumer {
    settings: ConsumerSettings,
    in_flight: BTreeSet<Seq>,
    window: i64,
    choked: bool,
    paused: bool,
}

/// A world and what must be true in it.
pub struct Careful {
    pub world: World,
    settings: QueueSettings,
    known: BTreeMap<Seq, Known>,
    ready: BTreeSet<Seq>,
    /// What an operator has.
    taken: BTreeSet<Seq>,
    consumers: BTreeMap<ConsumerId, KnownConsumer>,
    /// Gets that are not answered, by reply, and whether they acknowledge.
    gets: BTreeMap<u32, bool>,
    next: Seq,
    next_reply: u32,
    /// Highest journaled message that was settled, as the journal has it.
    settled_high: Seq,
    /// Sizes may be estimates since a restart.
    estimated: bool,
    /// Turns so far.
    pub turns: u64,
}

impl Careful {
    pub fn new(settings: QueueSettings) -> Self {
        Self {
            world: World::new(settings.clone()),
            settings,
            known: BTreeMap::new(),
            ready: BTreeSet::new(),
            taken: BTreeSet::new(),
            consumers: BTreeMap::new(),
            gets: BTreeMap::new(),
            next: 1,
            next_reply: 1,
            settled_high: 0,
            estimated: false,
            turns: 0,
        }
    }

    /// The process ends and starts again: transient messages and consumers are gone, and so is who held what.
    pub fn restart(&mut self) {
        let memory = self.world.fifo.status().memory;
        self.world = World::restarted(self.settings.clone(), self.world.disk.clone());
        self.known.retain(|_, known| known.journaled);
        for (seq, known) in &mut self.known {
            known.returned |= *seq < self.settled_high;
        }
        self.ready = self.known.keys().copied().collect();
        self.consumers.clear();
        self.taken.clear();
        self.gets.clear();
        self.next = self.world.fifo.status().next_seq;
        self.estimated = true;
        self.compare();
        self.configure(self.settings.clone());
        self.simply(shrink(memory / 2));
    }

    pub fn next(&self) -> Seq {
        self.next
    }

    pub fn enqueue(&mut self, sizes: &[usize], persistent: bool) {
        let block = crate::world::block(self.next, sizes, persistent);
        for at in 0..block.len() {
            let size = block.message(at).body.len() as u64;
            let journaled = persistent && self.settings.durable;
            self.known.insert(
                self.next,
                Known {
                    size,
                    journaled,
                    returned: false,
                },
            );
            self.ready.insert(self.next);
            self.next += 1;
        }
        let receipt = Some(self.next as u32);
        let needed_journal = persistent && self.settings.durable;
        let events = self.turn(Request::Enqueue { block, receipt });
        let confirm = events.iter().find_map(|event| match event {
            Event::Confirmed {
                receipt,
                once_durable,
            } => Some((*receipt, *once_durable)),
            _ => None,
        });
        let enqueued = events
            .iter()
            .any(|event| matches!(event, Event::Recorded(Record::Enqueued { .. })));
        assert_eq!(confirm, Some((self.next as u32, enqueued)));
        assert!(needed_journal || !enqueued);
    }

    pub fn consume(&mut self, id: u64, settings: ConsumerSettings) {
        let id = ConsumerId(id);
        if self.consumers.contains_key(&id) {
            return;
        }
        let window = i64::from(settings.window);
        let consumer = KnownConsumer {
            settings,
            in_flight: BTreeSet::new(),
            window,
            choked: false,
            paused: false,
        };
        self.consumers.insert(id, consumer);
        self.turn(Request::Consume {
            consumer: id,
            outlet: (),
            settings,
            reply: 0,
        });
    }

    pub fn cancel(&mut self, id: u64) {
        self.consumers.remove(&ConsumerId(id));
        self.turn(Request::Cancel {
            consumer: ConsumerId(id),
            reply: None,
        });
    }

    pub fn get(&mut self, no_ack: bool) {
        let reply = self.next_reply;
        self.next_reply += 1;
        self.gets.insert(reply, no_ack);
        self.turn(Request::Get { no_ack, reply });
    }

    /// Whatever the consumer holds in the span, and some that it does not hold.
    pub fn settle(&mut self, id: Option<u64>, first: Seq, last: Seq, accepted: bool) {
        let mine = self.held(id, first, last);
        for seq in &mine {
            self.known.remove(seq);
        }
        let disposal = if accepted {
            queue::fifo::Disposal::Accepted
        } else {
            queue::fifo::Disposal::Rejected
        };
        self.turn(Request::Settle {
            consumer: id.map(ConsumerId),
            seqs: mine.into_iter().collect(),
            disposal,
        });
    }

    pub fn give_back(&mut self, id: Option<u64>, first: Seq, last: Seq, failed: bool) {
        let mine = self.held(id, first, last);
        for seq in &mine {
            self.ready.insert(*seq);
            if let Some(known) = self.known.get_mut(seq) {
                known.returned |= failed;
            }
        }
        self.turn(Request::Return {
            consumer: id.map(ConsumerId),
            seqs: mine.into_iter().collect(),
            failed,
        });
    }

    /// Numbers that nobody holds, or that never were: nothing may happen.
    pub fn settle_nonsense(&mut self, first: Seq, last: Seq) {
        let held: BTreeSet<Seq> = self.unacked().difference(&self.taken).copied().collect();
        let seqs: Ranges = (first..=last).filter(|seq| !held.contains(seq)).collect();
        let before = self.world.fifo.status();
        self.turn(Request::Settle {
            consumer: None,
            seqs: seqs.clone(),
            disposal: queue::fifo::Disposal::Accepted,
        });
        self.turn(Request::Return {
            consumer: None,
            seqs,
            failed: true,
        });
        let after = self.world.fifo.status();
        assert_eq!((before.ready, before.unacked), (after.ready, after.unacked));
    }

    /// An operator takes what is ready in the span.
    pub fn take_out(&mut self, first: Seq, last: Seq) {
        let mine: BTreeSet<Seq> = self.ready.range(first..=last).copied().collect();
        self.ready.retain(|seq| !mine.contains(seq));
        self.taken.extend(&mine);
        let seqs = Ranges::span(first, last);
        let events = self.turn(Request::TakeOut { seqs, reply: 0 });
        let mine: Ranges = mine.into_iter().collect();
        let told =
            |event: &Event| matches!(event, Event::Answered(0, Answer::Taken(taken)) if *taken == mine);
        assert!(events.iter().any(told), "{events:?} should tell of {mine:?}");
    }

    /// The operator gives back what it has of the span, or has it gone.
    pub fn end_taking(&mut self, first: Seq, last: Seq, removes: bool) {
        let mine: Vec<Seq> = self.taken.range(first..=last).copied().collect();
        for seq in mine {
            self.taken.remove(&seq);
            match removes {
                true => drop(self.known.remove(&seq)),
                false => drop(self.ready.insert(seq)),
            }
        }
        let seqs = Ranges::span(first, last);
        self.turn(match removes {
            true => Request::Remove { seqs },
            false => Request::PutBack { seqs },
        });
    }

    pub fn flow(&mut self, id: u64, bytes: u32) {
        if let Some(consumer) = self.consumers.get_mut(&ConsumerId(id)) {
            consumer.window = (consumer.window + i64::from(bytes)).min(i64::from(consumer.settings.window));
            consumer.choked &= consumer.window <= i64::from(consumer.settings.window) / 4;
        }
        self.turn(Request::Flow {
            consumer: ConsumerId(id),
            bytes,
        });
    }

    pub fn pause(&mut self, id: u64, paused: bool) {
        let consumer = ConsumerId(id);
        if let Some(known) = self.consumers.get_mut(&consumer) {
            known.paused = paused;
        }
        self.turn(if paused {
            Request::Pause {
                consumer,
                reply: None,
            }
        } else {
            Request::Resume { consumer }
        });
    }

    pub fn purge(&mut self) {
        let ready = std::mem::take(&mut self.ready);
        for seq in &ready {
            self.known.remove(seq);
        }
        let events = self.turn(Request::Purge { reply: 0 });
        let purged = events.iter().any(|event| {
            matches!(event, Event::Answered(0, Answer::Purged(count)) if *count == ready.len() as u64)
        });
        assert!(purged, "{events:?} should tell of {} messages", ready.len());
    }

    pub fn configure(&mut self, settings: QueueSettings) {
        self.settings = QueueSettings {
            durable: self.settings.durable,
            ..settings
        };
        self.turn(Request::Configure {
            settings: Box::new(self.settings.clone()),
        });
    }

    pub fn simply(&mut self, request: Request<Plain>) {
        self.turn(request);
    }

    pub fn load_one(&mut self) {
        if let Some(events) = self.world.load_one() {
            self.look_at(events);
        }
    }

    pub fn store_one(&mut self, fails: impl Fn(usize) -> bool) {
        if let Some(events) = self.world.store_one(fails) {
            self.look_at(events);
        }
    }

    /// The disk answers until nobody asks any more.
    pub fn settle_disk(&mut self) {
        while !self.world.loads.is_empty() || !self.world.stores.is_empty() {
            self.load_one();
            self.store_one(|_| false);
        }
    }

    /// A machine that replays the journal holds what must survive, every body of it can be read, in order.
    pub fn check_restart(&self) {
        let mut again = World::restarted(self.settings.clone(), self.world.disk.clone());
        let survive: Vec<Seq> = self.journaled().into_iter().collect();
        assert_eq!(again.fifo.status().ready, survive.len() as u64);
        assert_eq!(again.drain(), survive);
        assert_eq!(again.disk.segments.len(), 0, "places were not released");
    }

    fn journaled(&self) -> BTreeSet<Seq> {
        self.known
            .iter()
            .filter(|(_, known)| known.journaled)
            .map(|(seq, _)| *seq)
            .collect()
    }

    fn unacked(&self) -> BTreeSet<Seq> {
        self.known
            .keys()
            .filter(|seq| !self.ready.contains(seq))
            .copied()
            .collect()
    }

    /// Takes what the consumer (or nobody, for gets and cancelled consumers) holds in the span.
    fn held(&mut self, id: Option<u64>, first: Seq, last: Seq) -> BTreeSet<Seq> {
        let span = |set: &BTreeSet<Seq>| {
            set.range(first..=last.max(first))
                .copied()
                .collect::<BTreeSet<_>>()
        };
        match id {
            Some(id) => {
                let Some(consumer) = self.consumers.get_mut(&ConsumerId(id)) else {
                    return BTreeSet::new();
                };
                let mine = span(&consumer.in_flight);
                consumer.in_flight.retain(|seq| !mine.contains(seq));
                mine
            }
            None => {
                let others: BTreeSet<Seq> = self
                    .consumers
                    .values()
                    .flat_map(|consumer| consumer.in_flight.iter().copied())
                    .chain(self.taken.iter().copied())
                    .collect();
                span(&self.unacked().difference(&others).copied().collect())
            }
        }
    }

    fn turn(&mut self, request: Request<Plain>) -> Vec<Event> {
        let events = self.world.handle(request);
        self.look_at(events)
    }

    /// Checks what came out of a turn against what must be so.
    fn look_at(&mut self, events: Vec<Event>) -> Vec<Event> {
        self.turns += 1;
        let mut went: BTreeMap<Seq, bool> = BTreeMap::new();
        let mut choked = Vec::new();
        for event in &events {
            match event {
                Event::Delivered(id, delivery) => {
                    let cost = delivery.bytes() as i64;
                    let consumer = self.consumers.get_mut(id).unwrap();
                    assert!(consumer.window > 0 && !consumer.choked && !consumer.paused);
                    consumer.window -= cost;
                    choked.extend((consumer.window <= 0).then_some(*id));
                    for seq in numbers(delivery) {
                        assert_eq!(
                            delivery.redelivered, self.known[&seq].returned,
                            "redelivered flag of {seq}"
                        );
                        assert!(went.insert(seq, consumer.settings.no_ack).is_none());
                        if !consumer.settings.no_ack {
                            consumer.in_flight.insert(seq);
                        }
                    }
                    let limit = consumer.settings.prefetch as usize;
                    assert!(consumer.settings.no_ack || limit == 0 || consumer.in_flight.len() <= limit);
                }
                Event::Answered(reply, Answer::Got { delivery, .. }) => {
                    let no_ack = self.gets.remove(reply).unwrap();
                    for seq in numbers(delivery) {
                        assert_eq!(delivery.redelivered, self.known[&seq].returned);
                        assert!(went.insert(seq, no_ack).is_none());
                    }
                }
                Event::Answered(reply, Answer::Empty) => {
                    self.gets.remove(reply).unwrap();
                }
                Event::Recorded(Record::Settled { seqs }) => {
                    self.settled_high = self.settled_high.max(seqs.last().unwrap());
                }
                Event::Recorded(Record::Dropped { reason, .. }) => {
                    assert_ne!(*reason, DropReason::Unreadable);
                }
                _ => {}
            }
        }
        for id in choked {
            self.consumers.get_mut(&id).unwrap().choked = true;
        }
        // What went are the oldest that were ready; once some had to be dropped, the oldest that were left.
        while let Some((seq, no_ack)) = went.first_key_value().map(|(seq, no_ack)| (*seq, *no_ack)) {
            if self.ready.first() != Some(&seq) {
                self.overflow();
                assert_eq!(self.ready.first(), Some(&seq));
            }
            went.remove(&seq);
            self.ready.remove(&seq);
            if no_ack {
                self.known.remove(&seq);
            }
        }
        self.overflow();
        self.compare();
        events
    }

    fn overflow(&mut self) {
        let bytes = |it: &Self| it.ready.iter().map(|seq| it.known[seq].size).sum::<u64>();
        while self
            .settings
            .max_length
            .is_some_and(|limit| self.ready.len() as u64 > limit)
            || self
                .settings
                .max_length_bytes
                .is_some_and(|limit| bytes(self) > limit)
        {
            let oldest = self.ready.pop_first().unwrap();
            self.known.remove(&oldest);
        }
    }

    fn compare(&self) {
        let status = self.world.fifo.status();
        assert_eq!(status.ready, self.ready.len() as u64);
        assert_eq!(status.unacked, (self.known.len() - self.ready.len()) as u64);
        let exact = !self.estimated || self.ready.is_empty();
        let size = |of: &dyn Fn(&Seq, &Known) -> bool| {
            let these = self.known.iter().filter(|(seq, known)| of(seq, known));
            these.map(|(_, known)| known.size).sum::<u64>()
        };
        assert!(!exact || status.ready_bytes == size(&|seq, _| self.ready.contains(seq)));
        let journaled = self.known.values().filter(|known| known.journaled).count();
        assert_eq!(status.persistent, journaled as u64);
        if !self.estimated || self.known.is_empty() {
            assert_eq!(status.unacked_bytes, size(&|seq, _| !self.ready.contains(seq)));
            assert_eq!(status.persistent_bytes, size(&|_, known| known.journaled));
            assert!(status.paged_bytes <= size(&|_, _| true));
        }
        assert_eq!(status.next_seq, self.next);
        assert_eq!(status.consumers, self.consumers.len());
        assert!(status.paged <= self.known.len() as u64);
        if self.known.is_empty() {
            assert_eq!((status.memory, status.paged), (0, 0));
        }
        if self.ready.is_empty() {
            assert!(self.gets.is_empty(), "gets wait for nothing");
        } else if self.world.loads.is_empty() {
            assert!(self.gets.is_empty(), "a get waits although nothing is being read");
            for (id, it) in &self.consumers {
                let prefetch = it.settings.prefetch as usize;
                let room = it.settings.no_ack || prefetch == 0 || it.in_flight.len() < prefetch;
                assert!(
                    it.paused || it.choked || !room,
                    "{id:?} could get messages and gets none"
                );
            }
        }
    }

    /// A look sees every message with its body, and whose it is, in pieces of any size and from any place.
    pub fn check_look(&self, step: u64) {
        let standing = |seq: &Seq| match self.ready.contains(seq) {
            true => Standing::Ready,
            false => Standing::Held,
        };
        let all = self.known.iter();
        let all: Vec<_> = all
            .map(|(seq, known)| (*seq, *seq, standing(seq), known.returned))
            .collect();
        assert_eq!(self.world.seen(step), all);
        let fifo = &self.world.fifo;
        for index in [0, all.len() / 2, all.len().saturating_sub(1)] {
            let Some((seq, ..)) = all.get(index) else { break };
            let glance = fifo.look(None, index as u64, 1);
            assert_eq!((glance.spans[0].first, glance.skipped), (*seq, index as u64));
            let start = all[index.saturating_sub(step as usize)].0;
            assert_eq!(first_seen(&self.world, fifo.back(Some(*seq), step)), Some(start));
        }
        let tail = all.len().saturating_sub(step as usize);
        let tail = all.get(tail).map(|(seq, ..)| *seq);
        assert_eq!(first_seen(&self.world, fifo.back(None, step)), tail);
    }

    /// As [`Careful::check_restart`] after a crash before the last turn's records were durable; `before` is what had to
    /// survive then.
    pub fn check_crash(&self, before: &BTreeSet<Seq>) {
        let mut again = World::restarted(self.settings.clone(), self.world.crashed.clone());
        assert_eq!(again.drain().into_iter().collect::<BTreeSet<_>>(), *before);
    }

    /// What must survive now.
    pub fn survivors(&self) -> BTreeSet<Seq> {
        self.journaled()
    }
}

fn first_seen(world: &World, from: Option<Seq>) -> Option<Seq> {
    let glance = world.fifo.look(from, 0, 1);
    glance.spans.first().map(|span| span.first)
}
