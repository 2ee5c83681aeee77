//! The queue as a whole.

use super::consumers::Consumers;
use super::dispatch::Consumer;
use super::lanes::{Lanes, lane_of};
use super::reattach::{Awaited, Reattaching};
use super::senders::Senders;
use super::settle::Back;
use super::{Effect, Ends, FifoOutcome, Holders, Losses, QueueSettings, Record, Request, Status};
use crate::store::{LogPlace, Place};
use model::{Incarnation, Index, Machine, Seq, Timestamp};
use std::sync::Arc;

/// The machine of a classic queue.
pub struct Classic<E: Ends> {
    pub(super) settings: Arc<QueueSettings>,
    pub(super) lanes: Lanes,
    pub(super) consumers: Consumers<E>,
    /// Nodes that send, and what they sent.
    pub(super) senders: Senders,
    /// Nodes that may hold something.
    pub(super) holders: Holders,
    /// What consumers hold is being asked.
    pub(super) reattaching: Option<Box<Reattaching>>,
    /// Nodes of which it is not known yet whether they have consumers, since another machine has decided before.
    pub(super) unheard: Option<Box<Awaited>>,
    /// When the queue ends if nobody uses it, in milliseconds since the Unix epoch; `u64::MAX` for never.
    pub(super) unused_at_ms: u64,
    /// The queue is deleted; nothing happens here any more.
    pub(super) retired: bool,
}

impl<E: Ends> Classic<E> {
    /// An empty queue. To bring one back, `apply` its records and then call [`Classic::recovered`].
    pub fn new(settings: QueueSettings) -> Self {
        let settings = Arc::new(settings);
        Self {
            lanes: Lanes::new(&settings),
            consumers: Consumers::new(&settings),
            senders: Senders::default(),
            holders: Holders::default(),
            reattaching: None,
            unheard: None,
            settings,
            unused_at_ms: u64::MAX,
            retired: false,
        }
    }

    /// The log is replayed from now on, until [`Classic::recovered`] or [`Classic::follow`]: applying records orders nothing.
    pub fn replay(&mut self) {
        self.lanes.replay();
    }

    /// The record that brought messages `first..` was appended to the log, and stands there.
    #[inline]
    pub fn appended(&mut self, first: Seq, at: LogPlace) {
        if let Some(lane) = self.lanes.get_mut(lane_of(first)) {
            lane.store.appended(first, at, lane.dispatch.demand());
        }
    }

    /// True if messages have numbers of their own in each of several lanes.
    #[inline]
    pub fn is_sorted(&self) -> bool {
        matches!(self.lanes, Lanes::Sorted(_))
    }

    /// The incarnations of nodes of which it knows something: what they have sent, or that they may hold messages.
    pub fn senders(&self) -> Vec<Incarnation> {
        let mut all = self.senders.all();
        all.extend(self.holders.nodes().into_iter().flatten());
        all.sort_unstable();
        all.dedup();
        all
    }

    /// All places in the queue's segments that hold messages, each once. After replay, what lies elsewhere in them is garbage.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.lanes.iter().flat_map(|lane| lane.store.places())
    }

    /// What was lost since the start; it never falls.
    pub fn losses(&self) -> Losses {
        self.lanes.losses()
    }

    /// The sum of [`Classic::losses`]: whoever looks after each turn sees by it whether there is something new.
    #[inline]
    pub fn lost(&self) -> u64 {
        self.lanes.lost_sum()
    }
}

impl<E: Ends> Machine for Classic<E> {
    type Request = Request<E>;
    type Record = Record;
    type Effect = Effect<E>;
    type Status = Status;

    fn handle(&mut self, now: Timestamp, request: Request<E>, outcome: &mut FifoOutcome<E>) {
        if self.retired {
            return self.handle_retired(request, outcome);
        }
        if self.wakes_at_ms() <= now.0 && !matches!(request, Request::Configure { .. }) {
            self.due(now, outcome);
        }
        match request {
            Request::Enqueue { block, receipt } => self.publish(block, receipt, None, now, outcome),
            Request::EnqueueFrom {
                origin,
                block,
                receipt,
            } => self.publish_sent(*origin, &block, receipt, now, outcome),
            Request::Recall { sender, from, reply } => self.recall(sender, from, reply, outcome),
            Request::AwaitNodes { nodes } => self.await_nodes(nodes, now, outcome),
            Request::Holds {
                node,
                held,
                more,
                reply,
            } => self.hear(node, &held, more, reply, now, outcome),
            Request::CountAsDown { node } => self.count_as_down(node, now, outcome),
            Request::Knows { node } => self.knows(node, outcome),
            // A get that follows finds nothing.
            Request::MayHold { node: Some(_) } if self.has_nothing_to_give() => {}
            Request::MayHold { node } => self.may_hold(node, outcome),
            Request::HoldsNothing { node } => self.holds_nothing(node, outcome),
            Request::IncarnationEnded { incarnation } => {
                self.end_incarnation(incarnation, now, outcome);
            }
            Request::Consume {
                consumer,
                outlet,
                settings,
                reply,
            } => self.consume(Consumer::new(consumer, outlet, settings), reply, now, outcome),
            Request::ConsumeFrom {
                of,
                consumer,
                outlet,
                settings,
                reply,
            } => {
                let mut consumer = Consumer::new(consumer, outlet, settings);
                consumer.of = Some(*of);
                self.consume(consumer, reply, now, outcome);
            }
            Request::Cancel { consumer, reply } => self.cancel(consumer, reply, now, outcome),
            Request::Get { no_ack, reply } => self.get(no_ack, reply, now, outcome),
            Request::Settle {
                consumer,
                seqs,
                disposal,
            } => self.settle(consumer, &seqs, disposal, outcome),
            Request::Return {
                consumer,
                seqs,
                failed,
            } => {
                let back = if failed { Back::Failed } else { Back::Unseen };
                self.take_back(consumer, &seqs, back, now, outcome);
            }
            Request::Requeue { consumer, seqs } => {
                self.take_back(consumer, &seqs, Back::Given, now, outcome);
            }
            Request::TakeOut { seqs, reply } => self.take_away(&seqs, reply, outcome),
            Request::PutBack { seqs } => self.put_back(&seqs, outcome),
            Request::Remove { seqs } => self.remove_taken(&seqs, outcome),
            Request::Flow { consumer, bytes } => self.change(consumer, outcome, |it| it.refill(bytes)),
            Request::Limit { consumer, prefetch } => {
                self.change(consumer, outcome, |it| it.settings.prefetch = prefetch);
            }
            Request::Pause { consumer, reply } => self.pause(consumer, reply, outcome),
            Request::Resume { consumer } => self.change(consumer, outcome, |it| it.paused = false),
            Request::Purge { reply } => self.purge(reply, outcome),
            Request::MayRetire {
                if_unused,
                if_empty,
                reply,
            } => {
                let answer = self.may_retire(if_unused, if_empty);
                outcome.effects.push(Effect::Reply(reply, answer));
            }
            Request::Retire => self.retire(outcome),
            Request::Configure { settings } => self.configure(*settings, now, outcome),
            Request::Use { reply } => self.declared(reply, now, outcome),
            Request::Wake | Request::Stream(_) => {}
            Request::FinishDeadLetters {
                ticket,
                unread,
                failed,
            } => self.dead_lettered(ticket, &unread, &failed, now, outcome),
            Request::HandOverAgain => self.hand_over_all_again(outcome),
            Request::GiveUp { seqs } => self.give_up(&seqs, outcome),
            Request::Store(request) => self.handle_store(request, now, outcome),
        }
        self.lanes.pass_on(outcome);
    }

    fn apply(&mut self, _: Index, record: Record, outcome: &mut FifoOutcome<E>) {
        match record {
            Record::Declined { sent, refused } => self.senders.note(&sent, refused),
            Record::Barred { node, barred } => self.senders.bar(node, barred),
            Record::MayHold { nodes } => self.holders = Holders::of(nodes),
            Record::Activated { consumer } => self.senders.activate(consumer),
            Record::IncarnationEnded { incarnation } => {
                self.forget(incarnation);
            }
            record => {
                match &record {
                    Record::Enqueued { sent: Some(sent), .. } => self.senders.note(sent, false),
                    Record::HandedOut { .. } => self.holders.are_given(),
                    _ => {}
                }
                self.lanes.apply(record, outcome);
            }
        }
    }

    /// Everything that exists is ready; of a replicated queue whose owner is gone what nobody holds, once that is known
    /// (`Request::AwaitNodes`). Limits are enforced by the next request that looks at them (a publish,
    /// a return, `Configure`).
    ///
    /// Deliveries leave no record, so who was given a message before the restart is not known. If the log was closed in
    /// good order (`closed`), a message is marked as perhaps delivered before if it was returned once, as what consumers
    /// held is when their connections end, or if a later message was settled. After a crash every message is: as in
    /// RabbitMQ, a message that is not marked was never delivered.
    fn recovered(&mut self, closed: bool) {
        self.lanes.recovered(closed);
        match self.settings.replicated {
            true => {
                self.begin_reattaching();
                self.unheard = Some(Box::default());
            }
            false => self.senders.are_uncertain(),
        }
    }

    /// From now on its store pages out, and frees what is gone.
    fn follow(&mut self) {
        self.lanes.follow();
    }

    #[inline]
    fn wakes_at_ms(&self) -> u64 {
        self.lanes.wakes_at_ms().min(self.unused_at_ms)
    }

    fn status(&self) -> Status {
        Status {
            consumers: self.consumers.ring.len(),
            active: self.consumers.ring.active(),
            ..self.lanes.status()
        }
    }
}

impl<E: Ends> std::fmt::Debug for Classic<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Classic")
            .field("settings", &self.settings)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
