//! What is asked of a queue with lanes: each lane does its part and hands out nothing meanwhile, then what is ready is
//! handed out in the lanes' order.

use super::sorting::sort;
use super::{LaneId, Lanes, Sorting, lane_of};
use crate::fifo::deliver::OVERHEAD;
use crate::fifo::{Answer, DropReason, Effect, Ends, Fifo, FifoOutcome, Loss, Losses, Overflow, Request};
use crate::store;
use model::{Block, BlockBuilder, Machine, Ranges, Seq, Timestamp};
use std::sync::Arc;

impl<E: Ends> Lanes<E> {
    pub(super) fn handle(&mut self, now: Timestamp, request: Request<E>, outcome: &mut FifoOutcome<E>) {
        if !matches!(request, Request::Configure { .. }) {
            self.due(now, outcome);
        }
        match request {
            Request::Enqueue { block, receipt } => self.enqueue(now, block, receipt, outcome),
            Request::DeadLettered { ticket, .. } => self.ask(lane_of(ticket), now, request, outcome),
            Request::Settle {
                consumer,
                seqs,
                disposal,
            } => self.ask_parts(&seqs, now, outcome, |seqs| Request::Settle {
                consumer,
                seqs,
                disposal,
            }),
            Request::Return {
                consumer,
                seqs,
                failed,
            } => {
                self.ask_parts(&seqs, now, outcome, |seqs| Request::Return {
                    consumer,
                    seqs,
                    failed,
                });
                // As in RabbitMQ what came back is dropped again if it is too much, even if somebody waits for it.
                self.overflow(outcome);
            }
            Request::TakeOut { seqs, reply } => {
                let mut taken = Ranges::new();
                self.each_part(&seqs, outcome, |lane, seqs, _| lane.take_away(&seqs, &mut taken));
                outcome.effects.push(Effect::Reply(reply, Answer::Taken(taken)));
            }
            Request::PutBack { seqs } => {
                self.ask_parts(&seqs, now, outcome, |seqs| Request::PutBack { seqs });
            }
            Request::Remove { seqs } => {
                self.ask_parts(&seqs, now, outcome, |seqs| Request::Remove { seqs });
            }
            Request::GiveUp { seqs } => {
                self.ask_parts(&seqs, now, outcome, |seqs| Request::GiveUp { seqs });
            }
            Request::Store(request) => self.ask_store(request, now, outcome),
            Request::Purge { reply } => self.purge(reply, outcome),
            Request::Configure { settings } => {
                self.settings = (*settings).clone();
                self.ask_all(now, outcome, || Request::Configure {
                    settings: settings.clone(),
                });
            }
            // Consumers and gets are where the hand is; so is the end of the queue.
            request => {
                self.ask(self.hand, now, request, outcome);
                if self.lanes.get(&self.hand).is_some_and(|lane| lane.retired) {
                    return self.end();
                }
            }
        }
        self.go_on(now, outcome);
    }

    /// Asks the stores of the lanes.
    fn ask_store(&mut self, request: store::Request, now: Timestamp, outcome: &mut FifoOutcome<E>) {
        use store::Request::{Checkpoint, Compact, Loaded, Shrink, Stored};
        let lane = match &request {
            Loaded { first, .. } => Some(lane_of(*first)),
            Stored { .. } => self.stores.pop_front(),
            Shrink { .. } | Checkpoint { .. } | Compact { .. } => None,
        };
        match request {
            Shrink { memory } => {
                self.budget = memory;
                self.share_out(self.share(self.lanes.len()), outcome);
            }
            Checkpoint { before } => {
                self.begin_checkpoint();
                self.ask_all(now, outcome, || Request::Store(Checkpoint { before }));
            }
            Compact { segment } => self.ask_all(now, outcome, || Request::Store(Compact { segment })),
            Loaded { .. } | Stored { .. } => {
                if let Some(id) = lane {
                    self.ask(id, now, Request::Store(request), outcome);
                }
            }
        }
    }

    /// Hands out what somebody takes, then drops what nobody did and what is too much.
    fn go_on(&mut self, now: Timestamp, outcome: &mut FifoOutcome<E>) {
        self.serve(outcome);
        let before = self.ready;
        self.overflow(outcome);
        // A time to live of zero: what nobody took at once is gone.
        self.due(now, outcome);
        if self.ready < before {
            // What a consumer waited for, to be read back, may be among the gone: then others have waited behind it.
            self.serve(outcome);
        }
    }

    /// Has the lanes carry out what is due.
    fn due(&mut self, now: Timestamp, outcome: &mut FifoOutcome<E>) {
        if self.alarms.first().is_none_or(|(at_ms, _)| *at_ms > now.0) {
            return;
        }
        let due: Vec<LaneId> = self
            .alarms
            .iter()
            .take_while(|(at_ms, _)| *at_ms <= now.0)
            .map(|(_, id)| *id)
            .collect();
        for id in due {
            self.ask(id, now, Request::Tick, outcome);
        }
    }

    /// Messages go to their lanes; the receipt comes back once for all of them.
    fn enqueue(
        &mut self,
        now: Timestamp,
        block: Arc<Block>,
        receipt: Option<E::Receipt>,
        outcome: &mut FifoOutcome<E>,
    ) {
        if self.lanes.get(&self.hand).is_some_and(|lane| lane.retired) {
            outcome.effects.extend(receipt.map(Effect::Confirm));
            return;
        }
        if self.settings.deduplicates {
            return self.enqueue_once(now, &block, receipt, outcome);
        }
        self.enqueue_new(now, block, receipt, outcome);
    }

    pub(super) fn enqueue_new(
        &mut self,
        now: Timestamp,
        mut block: Arc<Block>,
        mut receipt: Option<E::Receipt>,
        outcome: &mut FifoOutcome<E>,
    ) {
        let refused = self.refused(&block);
        if !refused.is_empty() {
            block = self.refuse(&block, &refused, &mut receipt, outcome);
        }
        self.came += block.len() as u64;
        let recorded = outcome.records.len();
        for (id, block) in sort(&self.settings.sorting, &block) {
            self.open(id, outcome);
            let receipt = None;
            self.ask(id, now, Request::Enqueue { block, receipt }, outcome);
        }
        if let Some(receipt) = receipt {
            match outcome.records.len() > recorded {
                true => outcome.promises.push(Effect::Confirm(receipt)),
                false => outcome.effects.push(Effect::Confirm(receipt)),
            }
        }
    }

    /// Which messages of the block a queue that refuses has no room for, by their positions.
    fn refused(&self, block: &Block) -> Ranges {
        let mut refused = Ranges::new();
        if self.settings.overflow == Overflow::DropHead {
            return refused;
        }
        let (mut ready, mut bytes) = (self.ready, self.ready_bytes);
        for at in 0..block.len() {
            let size = block.message(at).body.len() as u64;
            let full = self.settings.max_length.is_some_and(|limit| ready >= limit)
                || self
                    .settings
                    .max_length_bytes
                    .is_some_and(|limit| bytes + size > limit);
            if full {
                refused.push(at as u64);
            } else {
                ready += 1;
                bytes += size;
            }
        }
        refused
    }

    /// Says which messages are refused; returns the others, and leaves the receipt for them.
    fn refuse(
        &mut self,
        block: &Arc<Block>,
        refused: &Ranges,
        receipt: &mut Option<E::Receipt>,
        outcome: &mut FifoOutcome<E>,
    ) -> Arc<Block> {
        self.losses.add(Loss::Refused, refused.count());
        if self.settings.overflow == Overflow::RejectAndDeadLetter {
            self.in_lane(self.hand, outcome, |lane, outcome| {
                lane.dead_letter_refused(block, refused, outcome);
            });
        }
        if let Some(whole) = receipt {
            let part = E::split(whole, refused, block.len());
            outcome.effects.push(Effect::Reject(part));
            if refused.count() == block.len() as u64 {
                *receipt = None;
            }
        }
        let mut builder = BlockBuilder::new();
        for at in (0..block.len()).filter(|at| !refused.contains(*at as u64)) {
            builder.push_message(&block.message(at));
        }
        Arc::new(builder.finish(block.persistent(), block.received()))
    }

    /// Hands out what is ready as long as somebody takes it and a lane has it in memory.
    pub(super) fn serve(&mut self, outcome: &mut FifoOutcome<E>) {
        let mut stuck = 0;
        while stuck < self.backlog.len() && self.is_wanted() {
            let turn = match self.settings.sorting {
                Sorting::FairKey(_) => self.turns.next(&self.backlog),
                _ => self.backlog.last().map(|id| (*id, u64::MAX)),
            };
            let Some((id, allowance)) = turn else { break };
            let (before, bytes) = (self.ready, self.ready_bytes);
            self.in_lane(id, outcome, |lane, outcome| {
                lane.dispatch.allowance = allowance;
                lane.deliver(outcome);
                lane.dispatch.allowance = 0;
                lane.pass_on(outcome);
            });
            stuck = if self.ready < before { 0 } else { stuck + 1 };
            let went = before.saturating_sub(self.ready);
            let used = bytes.saturating_sub(self.ready_bytes) + went * OVERHEAD;
            match self.settings.sorting {
                Sorting::FairKey(_) => self.turns.used(used, stuck > 0),
                // A lower priority does not overtake one that is being read from disk.
                _ if stuck > 0 => break,
                _ => {}
            }
        }
        if self.ready == 0 {
            self.in_lane(self.hand, outcome, |lane, outcome| lane.end_waiting(outcome));
        }
    }

    /// True if somebody would take a message.
    fn is_wanted(&mut self) -> bool {
        self.lanes
            .get_mut(&self.hand)
            .is_some_and(|lane| !lane.dispatch.gets.is_empty() || lane.dispatch.ring.is_hungry())
    }

    /// Drops ready messages until the limits are kept: from the head, which like in RabbitMQ is the highest priority's; of
    /// groups the one with most bytes loses its oldest.
    fn overflow(&mut self, outcome: &mut FifoOutcome<E>) {
        // A queue that refuses new messages keeps what it took, also if it came back or the limit is a new one.
        if self.settings.overflow != Overflow::DropHead {
            return;
        }
        loop {
            let messages = self
                .settings
                .max_length
                .map_or(0, |limit| self.ready.saturating_sub(limit));
            let bytes = self
                .settings
                .max_length_bytes
                .map_or(0, |limit| self.ready_bytes.saturating_sub(limit));
            let longest = |id: &&LaneId| self.lanes.get(id).map(|lane| lane.dispatch.ready_bytes);
            let victim = match self.settings.sorting {
                Sorting::FairKey(_) => self.backlog.iter().max_by_key(longest),
                _ => self.backlog.last(),
            };
            let Some(id) = victim.copied().filter(|_| messages > 0 || bytes > 0) else {
                return;
            };
            let before = self.ready;
            let (count, size) = match messages {
                0 => (u64::MAX, bytes),
                messages => (messages, u64::MAX),
            };
            self.in_lane(id, outcome, |lane, outcome| {
                lane.drop_ready(count, size, DropReason::MaxLength, outcome);
                lane.pass_on(outcome);
            });
            if self.ready == before {
                return;
            }
        }
    }

    fn purge(&mut self, reply: E::Reply, outcome: &mut FifoOutcome<E>) {
        let mut purged = 0;
        self.each_lane(outcome, |lane, outcome| {
            lane.wait_no_more(0, Seq::MAX);
            purged += lane.drop_ready(u64::MAX, u64::MAX, DropReason::Purged, outcome);
            lane.pass_on(outcome);
        });
        outcome.effects.push(Effect::Reply(reply, Answer::Purged(purged)));
    }

    /// The lane with the hand has retired and said so; the others go without a word.
    fn end(&mut self) {
        self.losses = self.losses();
        self.lanes.retain(|id, _| *id == self.hand);
        for lane in self.lanes.values_mut() {
            lane.losses = Losses::default();
        }
        self.backlog.clear();
        (self.ready, self.ready_bytes) = (0, 0);
        self.unwritten.clear();
        self.stores.clear();
        self.alarms.clear();
        self.alarm_of.clear();
    }

    /// Makes the lane if there is none; the others have less memory then.
    fn open(&mut self, id: LaneId, outcome: &mut FifoOutcome<E>) {
        let lanes = self.lanes.len();
        let memory = self.share(lanes + 1);
        // Before the lane exists: sharing visits all lanes and drops empty ones on its way.
        if memory < self.share(lanes) && !self.lanes.contains_key(&id) {
            self.share_out(memory, outcome);
        }
        self.make(id);
    }

    fn share_out(&mut self, memory: usize, outcome: &mut FifoOutcome<E>) {
        self.each_lane(outcome, |lane, outcome| {
            lane.store.shrink(memory, lane.dispatch.demand());
            lane.pass_on(outcome);
        });
    }

    /// Asks something of one lane.
    fn ask(&mut self, id: LaneId, now: Timestamp, request: Request<E>, outcome: &mut FifoOutcome<E>) {
        self.in_lane(id, outcome, |lane, outcome| lane.handle(now, request, outcome));
    }

    /// Asks something of all lanes.
    fn ask_all(&mut self, now: Timestamp, outcome: &mut FifoOutcome<E>, request: impl Fn() -> Request<E>) {
        self.each_lane(outcome, |lane, outcome| lane.handle(now, request(), outcome));
    }

    /// Asks something of each lane for its part of the numbers.
    fn ask_parts(
        &mut self,
        seqs: &Ranges,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
        request: impl Fn(Ranges) -> Request<E>,
    ) {
        self.each_part(seqs, outcome, |lane, seqs, outcome| {
            lane.handle(now, request(seqs), outcome);
        });
    }

    /// Gives each lane its part of the numbers.
    fn each_part(
        &mut self,
        seqs: &Ranges,
        outcome: &mut FifoOutcome<E>,
        mut then: impl FnMut(&mut Fifo<E>, Ranges, &mut FifoOutcome<E>),
    ) {
        let mut parts: Vec<(LaneId, Ranges)> = Vec::new();
        for (first, last) in seqs.spans() {
            match parts.last_mut().filter(|(id, _)| *id == lane_of(first)) {
                Some((_, part)) => part.push_span(first, last),
                None => parts.push((lane_of(first), Ranges::span(first, last))),
            }
        }
        for (id, part) in parts {
            self.in_lane(id, outcome, |lane, outcome| then(lane, part, outcome));
        }
    }

    fn each_lane(
        &mut self,
        outcome: &mut FifoOutcome<E>,
        mut then: impl FnMut(&mut Fifo<E>, &mut FifoOutcome<E>),
    ) {
        let ids: Vec<LaneId> = self.lanes.keys().copied().collect();
        for id in ids {
            self.in_lane(id, outcome, &mut then);
        }
    }

    /// Does something in one lane, with the consumers at hand. Nothing happens if there is no such lane: then what is asked
    /// is about messages that are gone.
    pub(super) fn in_lane(
        &mut self,
        id: LaneId,
        outcome: &mut FifoOutcome<E>,
        then: impl FnOnce(&mut Fifo<E>, &mut FifoOutcome<E>),
    ) {
        if !self.take_hand(id) {
            return;
        }
        let Some(lane) = self.lanes.get_mut(&id) else {
            return;
        };
        let (ready, bytes) = (lane.dispatch.ready, lane.dispatch.ready_bytes);
        lane.dispatch.elsewhere = self.ready - ready;
        let (effects, promises) = (outcome.effects.len(), outcome.promises.len());
        then(lane, outcome);
        self.ready = self.ready - ready + lane.dispatch.ready;
        self.ready_bytes = self.ready_bytes.saturating_sub(bytes) + lane.dispatch.ready_bytes;
        if lane.dispatch.ready == 0 {
            self.backlog.remove(&id);
        } else if self.backlog.insert(id) {
            self.turns.join(id);
        }
        self.note_stores(id, &outcome.effects[effects..]);
        self.note_alarm(id);
        self.collect_checkpoints(id, promises, outcome);
    }

    /// Moves the consumers to the lane. False if there is no such lane.
    fn take_hand(&mut self, id: LaneId) -> bool {
        if id == self.hand || !self.lanes.contains_key(&id) {
            return id == self.hand;
        }
        let Some(old) = self.lanes.get_mut(&self.hand) else {
            return false;
        };
        let ring = std::mem::take(&mut old.dispatch.ring);
        let gets = std::mem::take(&mut old.dispatch.gets);
        // Whether the queue is used is known where its consumers are.
        let unused_at_ms = std::mem::replace(&mut old.unused_at_ms, u64::MAX);
        if let Some(new) = self.lanes.get_mut(&id) {
            (new.dispatch.ring, new.dispatch.gets) = (ring, gets);
            new.unused_at_ms = unused_at_ms;
        }
        let left = std::mem::replace(&mut self.hand, id);
        self.note_alarm(left);
        self.drop_if_idle(left);
        true
    }
}
