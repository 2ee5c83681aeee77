//! What consumers hold when another machine has decided before. Deliveries leave no record; on record is only the
//! number below which messages may have been handed out. Whoever decides next asks the nodes: what their consumers hold
//! stays theirs, and only what nobody holds is delivered again. Until all that may hold something (`holders`) have spoken, or
//! count as down, nothing is delivered at all: what stands below that number may be with somebody, and what stands above must
//! not overtake it.
//!
//! Meanwhile all messages below count as held, so neither a limit nor a purge nor the clock takes them, and an acknowledgement
//! counts even if it comes before its node has spoken.

use super::settle::Back;
use super::{Answer, Classic, Effect, Ends, FifoOutcome, Held, Lane, Record};
use crate::seq_set::SeqSet;
use model::{Incarnation, Mutant, Ranges, Seq, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// So many numbers are reserved at a time: one record covers that many deliveries, and after the owner has gone so many
/// messages at the most are marked as delivered before though they were not.
pub(super) const RESERVED: u64 = 1024;

/// Nodes that have not said what their consumers are and hold.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// `None` before it is known whom to ask.
    nodes: Option<BTreeSet<Incarnation>>,
    /// These spoke before that.
    early: BTreeSet<Incarnation>,
}

impl Awaited {
    /// These are asked, as far as they matter.
    fn begin(&mut self, nodes: &[Incarnation], matters: impl Fn(&Incarnation) -> bool) {
        if self.nodes.is_none() {
            let early = std::mem::take(&mut self.early);
            let is_missing = |node: &&Incarnation| !early.contains(node) && matters(node);
            self.nodes = Some(nodes.iter().filter(is_missing).copied().collect());
        }
    }

    fn hears(&self, node: Incarnation) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.contains(&node))
    }

    fn has_spoken(&mut self, node: Incarnation) {
        match &mut self.nodes {
            Some(nodes) => nodes.remove(&node),
            None => self.early.insert(node),
        };
    }

    /// Nobody is missing.
    fn is_over(&self) -> bool {
        self.nodes.as_ref().is_some_and(BTreeSet::is_empty)
    }
}

/// Who must speak before anything is delivered.
#[derive(Debug, Default)]
pub(super) struct Reattaching {
    awaited: Awaited,
    /// What somebody holds, of all lanes. All of it lives, so there is no more of it than there are messages.
    claimed: SeqSet,
    /// What of that belongs to nodes that have more to say.
    unfinished: BTreeMap<Incarnation, SeqSet>,
    /// Nodes that may hold something, as far as they have been heard.
    holders: BTreeSet<Incarnation>,
    /// Nothing is in question but who is the active consumer: of nobody else but this node anything matters.
    only: Option<Incarnation>,
}

impl Reattaching {
    fn has_spoken(&mut self, node: Incarnation) {
        self.unfinished.remove(&node);
        self.awaited.has_spoken(node);
    }

    /// This node may hold something, and it is not known yet who else may.
    pub(super) fn has_heard_of(&mut self, node: Incarnation) {
        self.holders.insert(node);
    }
}

impl<E: Ends> Classic<E> {
    /// Another machine may have handed out messages that nobody has settled, and had one consumer be the active one.
    pub(super) fn begin_reattaching(&mut self) {
        let (asks, active) = (self.lanes.iter().any(Lane::is_in_question), self.senders.active());
        // Of a node that holds nothing and asks for nothing, it ended.
        let active = active.filter(|it| self.holders.may_be(it.node) && !Mutant::ForgetsActive.is_on());
        if asks || active.is_some() {
            self.reattaching = Some(Box::new(Reattaching {
                only: active.map(|it| it.node).filter(|_| !asks),
                ..Reattaching::default()
            }));
        }
    }

    /// True if there are messages of which it is not known yet whether somebody holds them.
    pub(super) fn is_in_question(&self) -> bool {
        self.reattaching.as_ref().is_some_and(|it| it.only.is_none())
    }

    /// These are the nodes to be heard.
    pub(super) fn await_nodes(
        &mut self,
        nodes: Vec<Incarnation>,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        if let Some(it) = &mut self.reattaching {
            let (only, holders) = (it.only, &self.holders);
            let matters = |node: &Incarnation| only.map_or_else(|| holders.may_be(*node), |it| it == *node);
            it.awaited.begin(&nodes, matters);
        }
        if let Some(unheard) = &mut self.unheard {
            unheard.begin(&nodes, |_| true);
        }
        self.end_reattaching(now, outcome);
    }

    /// A node says what its consumers hold. Tells it which of that does not count: what is settled, what somebody else
    /// holds, what came back since it was delivered to them; and everything, if the node counted as down.
    pub(super) fn hear(
        &mut self,
        node: Incarnation,
        held: &[Held],
        more: bool,
        reply: E::Reply,
        now: Timestamp,
        outcome: &mut FifoOutcome<E>,
    ) {
        let mut it = self.reattaching.take();
        let barred = self.senders.is_barred(node);
        let mut heard = it.as_deref_mut().filter(|it| !barred && it.awaited.hears(node));
        let (mut discard, mut any_counts) = (Ranges::new(), false);
        for Held {
            consumer,
            seqs,
            returns,
        } in held
        {
            let mut counted = SeqSet::default();
            if let Some(it) = heard.as_deref_mut() {
                self.lanes.each_part(seqs, outcome, |lane, seqs, _| {
                    lane.claim(seqs, *returns, &mut it.claimed, &mut counted);
                });
                any_counts |= !counted.is_empty();
                let (count, node) = (counted.count(), it.unfinished.entry(node).or_default());
                counted.spans().for_each(|(first, last)| node.insert(first, last));
                consumer.map(|id| self.consumers.ring.change(id, |it| it.in_flight += count));
            }
            for (first, last) in seqs.spans() {
                counted.others(first, last, |from, to| discard.push_span(from, to));
            }
        }
        self.reattaching = it;
        if any_counts {
            self.may_hold(Some(node), outcome);
        }
        outcome
            .effects
            .push(Effect::Reply(reply, Answer::Discard(discard)));
        if !more {
            self.has_spoken(node, now, outcome);
        }
    }

    /// A node counts as down: what its consumers held is delivered again.
    pub(super) fn count_as_down(&mut self, node: Incarnation, now: Timestamp, outcome: &mut FifoOutcome<E>) {
        if self.settings.replicated && !self.senders.is_barred(node) {
            self.bar(node, true, outcome);
        }
        self.expect_no_more(node, now, outcome);
    }

    /// A node knows what does not count. Before, an owner that goes may take the answer with it, and the node would say the same
    /// to the next one.
    pub(super) fn knows(&mut self, node: Incarnation, outcome: &mut FifoOutcome<E>) {
        if self.senders.is_barred(node) {
            self.bar(node, false, outcome);
        }
    }

    /// Nothing more comes from this node. What it has said so far of what its consumers hold is not the whole, and void.
    pub(super) fn expect_no_more(&mut self, node: Incarnation, now: Timestamp, outcome: &mut FifoOutcome<E>) {
        if let Some(it) = &mut self.reattaching
            && let Some(claimed) = it.unfinished.remove(&node)
        {
            let spans = claimed.spans();
            spans.for_each(|(first, last)| it.claimed.remove(first, last));
        }
        self.has_spoken(node, now, outcome);
    }

    /// That must outlive whoever decides now: the node does not know, and might be believed by the next one while
    /// somebody else has what it held.
    fn bar(&mut self, node: Incarnation, barred: bool, outcome: &mut FifoOutcome<E>) {
        self.senders.bar(node, barred);
        if !Mutant::ForgetsDown.is_on() {
            outcome.records.push(Record::Barred { node, barred });
        }
    }

    /// Nobody waits for this node any more.
    fn has_spoken(&mut self, node: Incarnation, now: Timestamp, outcome: &mut FifoOutcome<E>) {
        if let Some(it) = &mut self.reattaching {
            it.has_spoken(node);
        }
        if let Some(unheard) = &mut self.unheard {
            unheard.has_spoken(node);
        }
        self.end_reattaching(now, outcome);
    }

    /// If all have spoken, what nobody holds is ready, and the active consumer goes on if it is still there. If none of them has
    /// a consumer, the queue is unused from now on: since when it was, whoever decided before has not put on record.
    fn end_reattaching(&mut self, now: Timestamp, outcome: &mut FifoOutcome<E>) {
        if self.unheard.take_if(|it| it.is_over()).is_some() {
            self.used(now);
        }
        let is_over = |it: &mut Box<Reattaching>| it.awaited.is_over();
        let Some(it) = self.reattaching.take_if(is_over) else {
            return;
        };
        self.holders_are(it.holders, outcome);
        self.lanes.each(outcome, |lane, outcome| {
            lane.bring_back(&it.claimed, now, outcome);
        });
        self.activate(outcome);
        self.deliver(outcome);
        self.overflow(outcome);
    }
}

impl Lane {
    /// Message `last` is handed out, for which there must be a record.
    #[cold]
    pub(super) fn reserve<E: Ends>(&mut self, last: Seq, outcome: &mut FifoOutcome<E>) {
        let below = last + RESERVED;
        self.reserved_below = below;
        self.handed_below = self.handed_below.max(below);
        if !Mutant::ForgetsHandedOut.is_on() {
            outcome.records.push(Record::HandedOut { below });
        }
    }

    /// Ends replay, or following, where another machine has decided before: what it may have handed out is held by
    /// whoever says so.
    pub(super) fn take_over(&mut self) {
        self.store.replayed();
        self.dispatch.cursor = self.handed_below.min(self.store.next()).max(1);
        self.dispatch.suspect_below = self.dispatch.cursor;
        let (mut ready, mut bytes) = (0, 0);
        self.store
            .live_spans(self.dispatch.cursor, Seq::MAX, |run, first, last| {
                ready += last + 1 - first;
                bytes += run.body_bytes(first, last);
            });
        (self.dispatch.ready, self.dispatch.ready_bytes) = (ready, bytes);
        self.recover_retries();
        self.dispatch.asking = self.is_in_question();
    }

    /// True if there are messages that somebody may hold. What waits for its next try may have waited long enough.
    fn is_in_question(&self) -> bool {
        let unready = self.store.live() - self.dispatch.ready;
        unready > self.dispatch.leaving.count() || self.contents.retries.len() > 0
    }

    /// Those of the messages that somebody may hold and nobody claimed yet, and that came back `returns` times, are
    /// added to `claimed` and to `counted`.
    fn claim(&mut self, seqs: &Ranges, returns: u32, claimed: &mut SeqSet, counted: &mut SeqSet) {
        self.waited(seqs, returns);
        let mut spans = Vec::new();
        for (first, last) in seqs.spans() {
            self.dispatch.held_within(first, last, |first, last| {
                self.store.live_spans(first, last, |_, from, to| {
                    claimed.others(from, to, |from, to| spans.push((from, to)));
                });
            });
        }
        for (first, last) in spans {
            let mut from = first;
            while from <= last {
                let (to, times) = match self.counts_returns() {
                    true => self.contents.returned_alike(from, last),
                    false => (last, returns),
                };
                if times == returns || Mutant::BelievesOldClaims.is_on() {
                    claimed.insert(from, to);
                    counted.insert(from, to);
                }
                from = to + 1;
            }
        }
    }

    /// What is not claimed stands again where it stood.
    fn bring_back<E: Ends>(&mut self, claimed: &SeqSet, now: Timestamp, outcome: &mut FifoOutcome<E>) {
        self.dispatch.asking = false;
        let mut back = Ranges::new();
        let held = self.dispatch.cursor.saturating_sub(1);
        claimed.others(self.store.low(), held, |first, last| back.push_span(first, last));
        self.take_back(&back, Back::Unseen, now, outcome);
        self.drop_spent(outcome);
    }
}
