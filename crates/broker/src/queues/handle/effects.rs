//! The end of a turn: what the machine decided goes where it belongs, and what must not happen under the host's lock is left for later.

use super::{Queue, QueueHost};
use crate::dead_letters::Letters;
use crate::ends::{Ends, Reply};
use crate::outbox::Event;
use crate::pager::{Job, Page, PartBytes, ReadAt};
use crate::pressure::Relief;
use crate::promise::{Kept, Promise};
use crate::queues::QueueJournal;
use crate::stats::Count;
use queue::fifo::{Answer, Bytes, Delivery, Effect, Part, Piece, Source};
use std::sync::{Arc, atomic::Ordering};

/// What a turn leaves to be done without the host's lock.
#[derive(Default)]
pub(in crate::queues) struct Actions {
    kept: Kept,
    /// Publishers who may go on.
    relieved: Vec<Arc<Relief>>,
    letters: Vec<Letters>,
    wakes_at_ms: Option<u64>,
    unused: bool,
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
        host: &mut QueueHost,
        actions: &mut Actions,
        answered: &mut dyn FnMut(&Reply, Answer) -> Option<Answer>,
    ) {
        host.commit(|effect, journal| self.arrange(effect, journal, actions, answered));
        self.publish_status(host, &mut actions.relieved);
        let wakes_at_ms = host.machine.wakes_at_ms();
        if wakes_at_ms < self.alarm.load(Ordering::SeqCst) {
            self.alarm.store(wakes_at_ms, Ordering::SeqCst);
            actions.wakes_at_ms = Some(wakes_at_ms);
        }
    }

    /// What the machine ordered: counts it, and notes what is to be done.
    #[inline]
    fn arrange(
        self: &Arc<Self>,
        effect: Effect<Ends>,
        journal: &QueueJournal,
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
            effect @ (Effect::Confirm(_) | Effect::Release { .. }) => {
                let frees = matches!(effect, Effect::Release { .. });
                if let Some(promise) = Promise::of(self.id, effect) {
                    promise.keep(&mut actions.kept, || self.node.micros());
                }
                if frees {
                    let queue = self.clone();
                    actions.kept.jobs.push(Job::Rewrite { queue });
                }
            }
            Effect::Reject(receipt) => {
                let (channel, numbers) = (receipt.channel, receipt.numbers);
                let event = Event::Reject { channel, numbers };
                actions.kept.woken.push(receipt.outbox, event);
            }
            Effect::DeadLetter {
                ticket,
                to,
                reason,
                pieces,
            } => actions.letters.push(Letters {
                queue: self.clone(),
                ticket,
                to,
                reason,
                pages: pages(pieces, journal),
            }),
            Effect::Reply(reply, answer) => {
                self.count_answer(&reply, &answer);
                if let Some(answer) = answered(&reply, answer) {
                    let channel = reply.channel;
                    let event = Event::Answer { channel, answer };
                    actions.kept.woken.push(reply.outbox, event);
                }
            }
            Effect::CancelConsumer { outlet, consumer } => {
                let channel = outlet.channel;
                let event = Event::ConsumerCancelled { channel, consumer };
                actions.kept.woken.push(outlet.outbox, event);
            }
            Effect::Load { first, source } => {
                let (queue, at) = (self.clone(), locate(source, journal));
                actions.kept.jobs.push(Job::Load { queue, first, at });
            }
            Effect::Store { pieces, durable } => actions.kept.jobs.push(Job::Store {
                queue: self.clone(),
                pieces: pages(pieces, journal),
                durable,
            }),
            Effect::Forget { .. } => {}
            Effect::Unused => actions.unused = true,
        }
    }

    pub(super) fn carry_out(self: &Arc<Self>, actions: Actions) {
        actions.kept.carry_out(&self.node.pager);
        for letters in actions.letters {
            self.node.dead_letters.send(letters);
        }
        if let Some(at_ms) = actions.wakes_at_ms {
            self.node.clock.wake(at_ms, Arc::downgrade(self));
        }
        if actions.unused {
            self.node.queue_unused(self.id);
        }
        for relief in actions.relieved {
            relief.relieve();
        }
    }

    /// Tells operators what the queue lost, if it is one of theirs.
    #[cold]
    fn note_losses(&self, host: &QueueHost) {
        let losses = host.machine.losses();
        self.lost.store(losses.sum(), Ordering::Relaxed);
        if !catalog::is_hidden(&self.name) {
            let gained = self.losses.get_or_init(Box::default).set(losses.numbers());
            self.node.losses.add(gained);
        }
    }

    pub(super) fn publish_status(&self, host: &QueueHost, relieved: &mut Vec<Arc<Relief>>) {
        let status = host.machine.status();
        self.holding.look(&status, || self.node.micros(), relieved);
        let before = self.status.store(&status);
        if self.lost.load(Ordering::Relaxed) != host.machine.lost() {
            self.note_losses(host);
        }
        self.probe.look(status.ready, status.unacked);
        self.node.memory_changed(before, status.memory);
        if !self.touched.load(Ordering::Relaxed) {
            self.touch();
        }
    }
}

pub(in crate::queues) fn locate(source: Source, journal: &QueueJournal) -> Option<ReadAt> {
    match (source, journal) {
        (Source::Segment(place), _) => Some(ReadAt::Segment(place)),
        (Source::Journal(index), QueueJournal::Local(journal)) => journal.position(index).map(ReadAt::Log),
        (Source::Journal(_), QueueJournal::None) => None,
    }
}

/// Says where the bytes of these pieces are, in words that the pager can do without the journal.
fn pages(pieces: Vec<Piece>, journal: &QueueJournal) -> Vec<Page> {
    pieces.into_iter().map(|piece| page(piece, journal)).collect()
}

fn page(piece: Piece, journal: &QueueJournal) -> Page {
    let part = |part: Part| {
        let bytes = match part.bytes {
            Bytes::Memory(block) => Some(PartBytes::Memory(block)),
            Bytes::Source(source) => locate(source, journal).map(PartBytes::At),
        };
        Some((bytes?, part.from, part.count))
    };
    Page {
        first: piece.first,
        count: piece.count,
        parts: piece.parts.into_iter().map(part).collect(),
    }
}
