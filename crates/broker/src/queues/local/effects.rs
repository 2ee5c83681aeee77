//! The end of a turn: what the machine decided goes where it belongs, and what must not happen under the host's lock is
//! left for later.

use super::{BoxedHost, Paging, Queue};
use crate::clients::outbox::Event;
use crate::clients::pressure::Release;
use crate::node::ends::{Ends, Reply};
use crate::node::promise::{Kept, Promise};
use crate::queues::host::Turned;
use crate::queues::{DeadLetters, Replica};
use crate::stats::Count;
use model::Ranges;
use model::words::counted_are;
use queue::store;
use queue::{Answer, Delivery, Effect, Inspect, Request};
use std::sync::{Arc, Weak, atomic::Ordering};

/// What a turn leaves to be done without the host's lock.
#[derive(Default)]
pub(in crate::queues) struct Actions {
    kept: Kept,
    /// What the pager is to do.
    paging: Vec<Paging>,
    /// Publishers who may go on.
    released: Vec<Arc<Release>>,
    wakes_at_ms: Option<u64>,
    unused: bool,
    /// Who has cancelled its last consumer, and is answered when an unused queue is gone.
    leaving: Vec<Reply>,
    /// Messages that cannot be read on this node.
    unreadable: Vec<Ranges>,
}

impl Actions {
    /// A question has no answer.
    pub(in crate::queues) fn decline(&mut self, reply: Reply) {
        let event = reply.answered(None);
        self.kept.woken.push(reply.outbox, event);
    }
}

impl Queue {
    /// Something leaves the queue for a client; `counts` are those of what is acknowledged and of what is not.
    fn count_handed(&self, delivery: &Delivery, no_ack: bool, counts: [&Count; 2]) {
        let count = delivery.seqs.count();
        counts[usize::from(no_ack)].add(count);
        if self
            .probe
            .delivered(&delivery.seqs, no_ack, || self.node.micros())
        {
            self.measure(delivery, no_ack);
        }
        if delivery.redelivered {
            self.counts.redeliver.add(count);
        }
    }

    /// How old messages are that leave the queue for the first time.
    #[cold]
    fn measure(&self, delivery: &Delivery, no_ack: bool) {
        if delivery.redelivered {
            return;
        }
        let age_ms = self.node.now().0.saturating_sub(delivery.block.received().0);
        let seq = delivery.seqs.first().filter(|_| !no_ack);
        self.probe.handed(seq, age_ms, self.node.micros());
    }

    /// A get has its answer.
    fn count_answer(&self, reply: &Reply, answer: &Answer) {
        let counts = &self.counts;
        match answer {
            Answer::Got { delivery, .. } => {
                self.count_handed(delivery, reply.no_ack, [&counts.get, &counts.get_no_ack]);
            }
            Answer::Empty => counts.get_empty.add(1),
            _ => {}
        }
    }

    /// Ends the turn. `answered` may keep an answer for itself.
    pub(super) fn commit(
        self: &Arc<Self>,
        host: &mut BoxedHost,
        actions: &mut Actions,
        answered: &mut dyn FnMut(&Reply, Answer) -> Option<Answer>,
    ) {
        let turned = host.commit(&mut |effect| self.arrange(effect, actions, answered));
        // What a member turns is not the host's any more; but a stream's numbers are those of this node's copy.
        if self.replica().is_none() || self.is_copy_of_stream() {
            self.note_turn(host.inspect(), &turned, actions);
        }
    }

    /// A turn has ended: publishes the numbers, and notes what is to be done for them.
    pub(in crate::queues) fn note_turn(&self, inspect: &dyn Inspect, turned: &Turned, actions: &mut Actions) {
        self.publish_status(inspect, turned, &mut actions.released);
        let wakes_at_ms = turned.wakes_at_ms;
        if wakes_at_ms < self.alarm.load(Ordering::SeqCst) {
            self.alarm.store(wakes_at_ms, Ordering::SeqCst);
            actions.wakes_at_ms = Some(wakes_at_ms);
        }
    }

    /// What the machine ordered: counts it, and notes what is to be done.
    #[inline]
    pub(in crate::queues) fn arrange(
        self: &Arc<Self>,
        effect: Effect<Ends>,
        actions: &mut Actions,
        answered: &mut dyn FnMut(&Reply, Answer) -> Option<Answer>,
    ) {
        match effect {
            Effect::Deliver {
                outlet,
                consumer,
                delivery,
            } => {
                let counts = [&self.counts.deliver, &self.counts.deliver_no_ack];
                self.count_handed(&delivery, outlet.no_ack, counts);
                let event = Event::Deliver {
                    channel: outlet.channel,
                    consumer,
                    delivery,
                };
                actions.kept.woken.push(outlet.outbox, event);
            }
            Effect::Confirm(receipt) => {
                Promise::Confirm(receipt).keep(&mut actions.kept, || self.node.micros());
            }
            // A node that goes on beyond what came of it lies; its session says what it may send.
            Effect::Expects { receipt: None, .. } => {}
            Effect::Reject(receipt)
            | Effect::Expects {
                receipt: Some(receipt),
                ..
            } => {
                let (outbox, event) = receipt.into_reject();
                actions.kept.woken.push(outbox, event);
            }
            Effect::DeadLetter {
                ticket,
                to,
                reason,
                pieces,
            } => {
                // Under the host's lock, for the next turn's letters must not overtake these.
                self.events.dead_letters(DeadLetters {
                    queue: self.clone(),
                    ticket,
                    term: self.replica().and_then(Replica::term).unwrap_or(0),
                    to,
                    reason,
                    pieces,
                });
            }
            Effect::Reply(reply, Answer::Cancelled) if actions.unused => actions.leaving.push(reply),
            Effect::Reply(reply, answer) => {
                self.count_answer(&reply, &answer);
                if let Some(answer) = answered(&reply, answer) {
                    let event = reply.answered(Some(answer));
                    actions.kept.woken.push(reply.outbox, event);
                }
            }
            Effect::CancelConsumer { outlet, consumer } => {
                let channel = outlet.channel;
                let event = Event::ConsumerCancelled { channel, consumer };
                actions.kept.woken.push(outlet.outbox, event);
            }
            Effect::Readable { outlet, consumer } => {
                let channel = outlet.channel;
                let event = Event::Readable { channel, consumer };
                actions.kept.woken.push(outlet.outbox, event);
            }
            Effect::Active {
                outlet,
                consumer,
                active,
            } => {
                let event = Event::Active {
                    channel: outlet.channel,
                    consumer,
                    active,
                };
                actions.kept.woken.push(outlet.outbox, event);
            }
            Effect::Store(effect) => self.arrange_for_store(effect, actions),
            Effect::DeleteQueue => actions.unused = true,
        }
    }

    /// What the message store ordered.
    #[cold]
    fn arrange_for_store(self: &Arc<Self>, effect: store::Effect, actions: &mut Actions) {
        let queue = self.clone();
        match effect {
            store::Effect::Load {
                first,
                source,
                failures,
            } => actions.paging.push(Paging::Load {
                queue,
                first,
                source,
                failures,
            }),
            store::Effect::Store { pieces, durable } => actions.paging.push(Paging::Store {
                queue,
                pieces,
                durable,
            }),
            store::Effect::Release { places } => actions.paging.push(Paging::Free { queue, places }),
            store::Effect::FindElsewhere { seqs } => actions.unreadable.push(seqs),
            // The journal's; a queue without one has nothing to remember.
            store::Effect::Remember(_) | store::Effect::Checkpoint => {}
        }
    }

    /// Nobody else has the messages of a queue of this node: what cannot be read here is given up.
    #[cold]
    fn give_up(self: &Arc<Self>, seqs: Ranges) {
        tracing::error!(
            area = "storage",
            "{self:?}: {} lost, as reading from disk failed",
            counted_are(seqs.count(), "message")
        );
        self.submit(Request::GiveUp { seqs });
    }

    pub(in crate::queues) fn carry_out(self: &Arc<Self>, actions: Actions) {
        self.node.pager.carry_out(actions.kept);
        for paging in actions.paging {
            paging.send(&self.node.pager);
        }
        if let Some(at_ms) = actions.wakes_at_ms {
            let queue: Weak<Queue> = Arc::downgrade(self);
            self.node.timers.wake(at_ms, queue);
        }
        if actions.unused {
            let leaving = actions.leaving;
            let answer = move || {
                for reply in leaving {
                    reply.outbox.send(reply.answered(Some(Answer::Cancelled)));
                }
            };
            self.events.unused(self.id, Box::new(answer));
        }
        for release in actions.released {
            release.release();
        }
        for seqs in actions.unreadable {
            self.give_up(seqs);
        }
    }

    /// Tells operators what the queue lost, if it is one of theirs.
    #[cold]
    fn note_losses(&self, inspect: &dyn Inspect) {
        let losses = inspect.losses();
        self.lost.store(losses.sum(), Ordering::Relaxed);
        if self.kind().is_of_clients() {
            let gained = self.losses.get_or_init(Box::default).set(losses.numbers());
            self.node.losses.add(gained);
        }
    }

    pub(super) fn publish_status(
        &self,
        inspect: &dyn Inspect,
        turned: &Turned,
        released: &mut Vec<Arc<Release>>,
    ) {
        let status = &turned.status;
        self.holding.look(status, || self.node.micros(), released);
        let before = self.status.store(status);
        if self.lost.load(Ordering::Relaxed) != turned.lost {
            self.note_losses(inspect);
        }
        self.probe.look(status.ready, status.unacked);
        self.node.memory_changed(before, status.memory);
        if !self.touched.load(Ordering::Relaxed) {
            self.touch();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queues::{QueueEvents, QueueJournal, queue_type};
    use crate::{Broker, ChannelId, DeclareQueue, Options, Outbox};
    use catalog::QueueKind;
    use model::properties::Properties;
    use model::{BlockBuilder, DeadLetterTo, Message, QueueId, QueueSettings, RouteBuf};
    use std::sync::Mutex;

    /// Follows one queue, which has its next turn while it is told of the dead letters of the last one.
    #[derive(Default)]
    struct Interrupted {
        told: Mutex<Vec<u64>>,
    }

    impl QueueEvents for Interrupted {
        fn dead_letters(&self, letters: DeadLetters) {
            if letters.ticket < 3 {
                enqueue(&letters.queue, letters.queue.node().now());
            }
            self.told.lock().unwrap().push(letters.ticket);
        }

        fn unused(&self, _queue: QueueId, _then: Box<dyn FnOnce() + Send>) {}
    }

    fn enqueue(queue: &Arc<Queue>, now: model::Timestamp) {
        let mut block = BlockBuilder::default();
        let (route, properties) = (RouteBuf::new(b"", b"q"), Properties::amqp091(b""));
        block.push_message(&Message::new(route.as_route(), properties, b"body"));
        queue.submit(Request::Enqueue {
            block: Arc::new(block.finish(false, now)),
            receipt: None,
        });
    }

    #[test]
    fn dead_letters_are_told_in_the_order_of_the_turns_in_which_they_died() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        let user = broker.authenticate("guest", b"guest", "127.0.0.1".parse().unwrap());
        let session = broker
            .connect(user.unwrap(), "/", Arc::new(Outbox::new()))
            .unwrap();
        let declared = DeclareQueue {
            name: "q".into(),
            ..DeclareQueue::default()
        };
        session.declare_queue(ChannelId(1), declared).unwrap();
        let view = broker.view();
        let made = queue_type(QueueKind::Classic).unwrap();
        let settings = QueueSettings {
            max_length: Some(0),
            dead_letter: Some(Arc::new(DeadLetterTo {
                exchange: "".into(),
                routing_key: None,
                at_least_once: false,
            })),
            ..QueueSettings::default()
        };
        let follower = Arc::<Interrupted>::default();
        let queue = Queue::new(
            view.queue("/", "q").unwrap(),
            made,
            made.start(settings, QueueJournal::None),
            broker.node().clone(),
            follower.clone(),
        );
        enqueue(&queue, queue.node().now());
        assert_eq!(*follower.told.lock().unwrap(), [1, 2, 3]);
        session.close();
        broker.close();
    }
}
