//! What a node publishes to a queue that is led elsewhere: numbered, and kept until it is answered.

use super::message::ToLeader;
use model::{Block, Mutant, Ranges};
use queue::{Effect, Ends};
use std::collections::VecDeque;
use std::sync::Arc;

/// What has no answer yet, in the order in which it was published.
pub struct Publishes<E: Ends> {
    /// Those before `unsent` have numbers, each the next one after those before it.
    kept: VecDeque<Kept<E>>,
    /// Where those begin that were not sent in this session.
    unsent: usize,
    /// The number of the next message that gets one.
    next: u64,
    /// What was sent in this session and is not answered, in bytes.
    on_the_way: u64,
    /// What is kept, in bytes.
    bytes: u64,
    /// How many blocks have come.
    came: u64,
}

/// A block without an answer to all of it.
struct Kept<E: Ends> {
    /// The number of its first message; 0 as long as it has none.
    first: u64,
    block: Arc<Block>,
    receipt: Option<E::Receipt>,
    /// The messages that have no answer, by their places in the block.
    open: Ranges,
}

impl<E: Ends> Kept<E> {
    /// Takes out the part of the receipt for those between these numbers that have no answer.
    fn answer(&mut self, first: u64, last: u64) -> Option<E::Receipt> {
        let (from, to) = (first.saturating_sub(self.first), last - self.first);
        // Mostly all of it is answered at once.
        if self.open.first() >= Some(from) && self.open.last() <= Some(to) {
            self.open.clear();
            return self.receipt.take();
        }
        let count = self.open.count() as usize;
        let (mut answered, mut left) = (Ranges::new(), Ranges::new());
        for (place, at) in self.open.iter().enumerate() {
            match (from..=to).contains(&at) {
                true => answered.push(place as u64),
                false => left.push(at),
            }
        }
        if answered.is_empty() {
            return None;
        }
        self.open = left;
        if self.open.is_empty() {
            return self.receipt.take();
        }
        let receipt = self.receipt.as_mut()?;
        Some(E::split(receipt, &answered, count))
    }

    fn last(&self) -> u64 {
        self.first + self.block.len() as u64 - 1
    }

    fn bytes(&self) -> u64 {
        self.block.memory() as u64
    }
}

impl<E: Ends> Publishes<E> {
    /// Nothing yet.
    pub fn new() -> Self {
        Self {
            kept: VecDeque::new(),
            unsent: 0,
            next: 1,
            on_the_way: 0,
            bytes: 0,
            came: 0,
        }
    }

    /// How many blocks have come.
    pub fn came(&self) -> u64 {
        self.came
    }

    /// How many of them have been sent in this session, or need not be.
    pub fn passed(&self) -> u64 {
        self.came - (self.kept.len() - self.unsent) as u64
    }

    /// True if everything is answered.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// True if something that is kept has numbers.
    pub fn have_numbers(&self) -> bool {
        self.kept.front().is_some_and(|kept| kept.first > 0)
    }

    /// What is kept, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The lowest number without an answer.
    pub fn lowest(&self) -> u64 {
        match self.kept.front() {
            Some(kept) if kept.first > 0 => kept.first + kept.open.first().unwrap_or(0),
            _ => self.next,
        }
    }

    /// Takes a block, which is not empty.
    pub fn push(&mut self, block: Arc<Block>, receipt: Option<E::Receipt>) {
        let open = Ranges::span(0, block.len() as u64 - 1);
        let kept = Kept {
            first: 0,
            block,
            receipt,
            open,
        };
        self.bytes += kept.bytes();
        self.came += 1;
        self.kept.push_back(kept);
    }

    /// A session begins in which everything below `below` is known, and some of that refused. The rest is sent again.
    pub fn resume(&mut self, below: u64, refused: &Ranges, effects: &mut Vec<Effect<E>>) {
        if Mutant::SendsNothingAgain.is_on() {
            return;
        }
        self.unsent = 0;
        self.on_the_way = 0;
        if Mutant::SendsAgainAsNew.is_on() {
            self.next = below;
            self.kept.iter_mut().for_each(|kept| kept.first = 0);
            return;
        }
        let mut taken = Ranges::new();
        let mut at = self.lowest();
        for (first, last) in refused.spans() {
            taken.push_span(at, first.min(below).saturating_sub(1));
            at = at.max(last.saturating_add(1));
        }
        taken.push_span(at, below.saturating_sub(1));
        self.answered(refused, false, effects);
        self.answered(&taken, true, effects);
        // What was given up may have been taken or not; what follows goes on from there.
        if self.kept.front().is_none_or(|kept| kept.first == 0) {
            self.next = below;
        }
    }

    /// These were taken, or refused.
    pub fn answered(&mut self, numbers: &Ranges, taken: bool, effects: &mut Vec<Effect<E>>) {
        for (first, last) in numbers.spans() {
            let from = self
                .kept
                .partition_point(|kept| kept.first > 0 && kept.last() < first);
            for kept in self.kept.range_mut(from..) {
                if kept.first == 0 || kept.first > last {
                    break;
                }
                let receipt = kept.answer(first, last);
                effects.extend(receipt.map(|receipt| match taken {
                    true => Effect::Confirm(receipt),
                    false => Effect::Reject(receipt),
                }));
            }
        }
        while let Some(kept) = self.kept.pop_front_if(|kept| kept.open.is_empty()) {
            self.bytes -= kept.bytes();
            if self.unsent > 0 {
                self.unsent -= 1;
                self.on_the_way -= kept.bytes();
            }
        }
    }

    /// Says what may be said with so much credit, of the first `until` blocks. True if something is left that waits for more.
    pub fn send(&mut self, credit: u64, until: u64, said: &mut Vec<ToLeader>) -> bool {
        while self.passed() < until
            && let Some(kept) = self.kept.get_mut(self.unsent)
        {
            // One block may always be on its way, however large it is.
            if self.on_the_way > 0 && self.on_the_way + kept.bytes() > credit {
                return true;
            }
            if kept.first == 0 {
                kept.first = self.next;
                self.next += kept.block.len() as u64;
            }
            self.on_the_way += kept.bytes();
            self.unsent += 1;
            said.push(ToLeader::Publish {
                first: kept.first,
                block: kept.block.clone(),
            });
        }
        false
    }

    /// Nobody takes it: all is refused. Which of it was taken all the same is known by the next leader, from whose mark
    /// on the numbers go on.
    pub fn give_up(&mut self, unreached: &mut Vec<E::Receipt>) {
        unreached.extend(self.kept.drain(..).filter_map(|kept| kept.receipt));
        (self.unsent, self.on_the_way, self.bytes) = (0, 0, 0);
    }

    /// The queue is deleted: what is published to it went nowhere, as in RabbitMQ.
    pub fn retire(&mut self, effects: &mut Vec<Effect<E>>) {
        let receipts = self.kept.drain(..).filter_map(|kept| kept.receipt);
        effects.extend(receipts.map(Effect::Confirm));
        (self.unsent, self.on_the_way, self.bytes) = (0, 0, 0);
    }
}
