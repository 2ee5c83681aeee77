//! Deliveries, from the outbox to the socket.

use super::Channel;
use super::consumer::{Consumer, Pending};
use super::fitting::fitted;
use crate::connection::Millis;
use broker::Delivery;
use broker::stats::ChannelHandle;
use model::properties::{BasicProperties, Format, Properties};
use model::table::Value;
use model::{ConsumerId, Limits, Message, Ranges, Seq};
use protocol::amqp::method::BasicCancel;
use std::borrow::Cow;

impl Channel {
    /// Takes a delivery for one of the consumers. `Err` gives it back: there is no such consumer any more.
    pub fn deliver(&mut self, consumer: ConsumerId, delivery: Delivery) -> Result<(), Delivery> {
        let Some(known) = self.consumers.get(consumer) else {
            if self.takes_replies(consumer) {
                self.pending.push_back(Pending::new(consumer, delivery));
                return Ok(());
            }
            return Err(delivery);
        };
        if known.no_ack {
            self.pending.push_back(Pending::new(consumer, delivery));
            return Ok(());
        }
        let (kept, pause) = self.prefetch.admit(known, delivery);
        if let Some(delivery) = kept {
            self.pending.push_back(Pending::new(consumer, delivery));
        }
        if pause {
            self.pause_consumers();
        }
        Ok(())
    }

    /// Pauses everyone: the channel's own prefetch is used up. Whoever does not acknowledge never counts for it, and
    /// waits all the same (RabbitMQ's limiter).
    pub(super) fn pause_consumers(&self) {
        for consumer in self.consumers.iter() {
            consumer.subscription.pause();
        }
    }

    /// True if there are deliveries that may be written now.
    pub fn has_deliveries(&self) -> bool {
        !self.pending.is_empty() && self.held.is_none()
    }

    /// Writes deliveries until `out` is `limit` bytes long. True if there are more.
    pub fn write_deliveries(&mut self, out: &mut Vec<u8>, limit: usize, now: Millis) -> bool {
        while self.has_deliveries() && out.len() < limit {
            let Some(mut pending) = self.pending.pop_front() else {
                break;
            };
            if !self.write_pending(&mut pending, out, limit, now) {
                self.pending.push_front(pending);
            }
        }
        self.has_deliveries()
    }

    /// Writes as much of one delivery as `limit` allows; one message may go beyond it. True if that was all.
    fn write_pending(&mut self, pending: &mut Pending, out: &mut Vec<u8>, limit: usize, now: Millis) -> bool {
        let Some(consumer) = self.consumers.get_mut(pending.consumer) else {
            self.write_reply(pending, out);
            return true;
        };
        let (mut upto, mut written): (Seq, u64) = (0, 0);
        for (first, last) in pending.spans() {
            let tag = self.next_tag;
            let end = write_span(
                consumer,
                &pending.delivery,
                (first, last),
                &mut self.next_tag,
                out,
                limit,
            );
            let count = end + 1 - first;
            if self.shown.connection().is_traced() {
                trace(&self.shown, consumer, &pending.delivery, (first, end));
            }
            if !consumer.no_ack {
                self.unacked.push(tag, consumer.holder, first, count);
                self.holders.add(consumer.holder, count);
                if consumer.timed
                    && let Some(deadlines) = &mut self.deadlines
                {
                    deadlines.delivered(consumer.holder, tag, now);
                }
            }
            written += count;
            consumer.written(pending.delivery.bytes_of(first, end));
            upto = end;
            if out.len() >= limit {
                break;
            }
        }
        let counts = &self.shown.counts.messages;
        match consumer.no_ack {
            true => counts.deliver_no_ack.add(written),
            false => counts.deliver.add(written),
        }
        if pending.delivery.redelivered {
            counts.redeliver.add(written);
        }
        pending.next = upto + 1;
        pending.delivery.seqs.last().is_none_or(|last| last <= upto)
    }

    /// Gives back what was not written of a delivery, as if it had never been delivered. What goes to consumers that do
    /// not acknowledge cannot be given back.
    pub(super) fn return_pending(&mut self, pending: &Pending) {
        let consumer = self.consumers.get(pending.consumer);
        let Some(consumer) = consumer.filter(|consumer| !consumer.no_ack) else {
            return;
        };
        let mut seqs = Ranges::new();
        pending
            .spans()
            .for_each(|(first, last)| seqs.push_span(first, last));
        self.prefetch.released(seqs.count());
        consumer
            .subscription
            .queue()
            .give_back(Some(pending.consumer), seqs, false);
    }

    /// Takes a consumer from the list. Its unwritten deliveries are written if they would be lost otherwise, else given
    /// back.
    pub(super) fn remove_consumer(&mut self, id: ConsumerId, out: &mut Vec<u8>) -> Option<Consumer> {
        let no_ack = self.consumers.get(id)?.no_ack;
        if self.pending.iter().any(|pending| pending.consumer == id) {
            for mut pending in std::mem::take(&mut self.pending) {
                if pending.consumer != id {
                    self.pending.push_back(pending);
                } else if no_ack {
                    self.write_unbounded(&mut pending, out);
                } else {
                    self.return_pending(&pending);
                }
            }
        }
        let consumer = self.consumers.remove(id)?;
        self.tags.remove(&consumer.tag);
        self.holders.cancelled(consumer.holder);
        Some(consumer)
    }

    /// Bounded by the consumer's window.
    fn write_unbounded(&mut self, pending: &mut Pending, out: &mut Vec<u8>) {
        let mut bytes = Vec::new();
        // Nothing of a consumer that doesn't acknowledge can be late.
        self.write_pending(pending, &mut bytes, usize::MAX, 0);
        self.target(out).append(&mut bytes);
    }

    /// The consumer's queue is gone, or the consumer held something for too long. The client is told if it understands that.
    pub fn consumer_cancelled(&mut self, consumer: ConsumerId, tell: bool, out: &mut Vec<u8>) {
        let Some(gone) = self.remove_consumer(consumer, out) else {
            return;
        };
        if tell {
            self.write(
                out,
                &BasicCancel {
                    consumer_tag: &gone.tag,
                    no_wait: true,
                },
            );
        }
        self.prefetch.resume(&self.consumers);
    }
}

/// The properties that the client sees: the message's own in AMQP's form, with how often it came back, and with a history that it
/// has room for.
#[inline]
pub(super) fn shown_properties<'m>(delivery: &Delivery, message: &Message<'m>, most: usize) -> Cow<'m, [u8]> {
    let own = message.properties.to_amqp091();
    let counted = delivery_count(delivery, &own).map_or(own, Cow::Owned);
    match counted.len() > most {
        true => fitted(message, &counted, most).map_or(counted, Cow::Owned),
        false => counted,
    }
}

/// The message's properties with the header `x-delivery-count`, if its queue tells how often it came back, from the first time
/// on. Quorum queues say in it how often that was a failure, and in `x-acquired-count` how often it was (RabbitMQ 4.3).
#[inline]
fn delivery_count(delivery: &Delivery, properties: &[u8]) -> Option<Vec<u8>> {
    match (delivery.returns, delivery.failures) {
        (0, _) => None,
        (returns, None) => with_counts(properties, 0, returns),
        (returns, Some(failures)) => with_counts(properties, returns, failures),
    }
}

#[cold]
fn with_counts(properties: &[u8], acquired: u32, failures: u32) -> Option<Vec<u8>> {
    let known = BasicProperties::new(properties);
    let mut headers = known.headers_table(&Limits::STORED).ok()?;
    for (name, count) in [("x-acquired-count", acquired), ("x-delivery-count", failures)] {
        if count > 0 {
            headers.insert(name, Value::Long(count.into()));
        }
    }
    known.with_headers(&headers)
}

/// Shows messages `first..=last`, which were written, to those who trace the virtual host.
#[cold]
fn trace(shown: &ChannelHandle, consumer: &Consumer, delivery: &Delivery, (first, last): (Seq, Seq)) {
    for seq in first..=last {
        let message = delivery.block.message((seq - delivery.base) as usize);
        let queue = consumer.subscription.queue().name();
        shown
            .connection()
            .trace(shown.number, queue, delivery.redelivered, message);
    }
}

/// Writes messages `first..=last` until `out` is `limit` bytes long; returns the last one written.
#[inline]
fn write_span(
    consumer: &mut Consumer,
    delivery: &Delivery,
    (first, last): (Seq, Seq),
    next_tag: &mut u64,
    out: &mut Vec<u8>,
    limit: usize,
) -> Seq {
    let mut seq = first;
    loop {
        let message = delivery.block.message((seq - delivery.base) as usize);
        if delivery.returns > 0 || !fits(message.properties, consumer.template.properties_most()) {
            write_changed(consumer, delivery, message, *next_tag, out);
        } else {
            consumer
                .template
                .deliver(out, *next_tag, delivery.redelivered, &message);
        }
        *next_tag += 1;
        if seq == last || out.len() >= limit {
            return seq;
        }
        seq += 1;
    }
}

/// True if properties go out as they are stored.
#[inline]
fn fits(properties: Properties<'_>, most: usize) -> bool {
    properties.format() == Format::Amqp091 && properties.len() <= most
}

/// Writes a message that came back before, or by another protocol, or whose history is too long for the client.
#[cold]
fn write_changed(
    consumer: &mut Consumer,
    delivery: &Delivery,
    message: Message<'_>,
    tag: u64,
    out: &mut Vec<u8>,
) {
    let shown = shown_properties(delivery, &message, consumer.template.properties_most());
    let message = Message {
        properties: Properties::amqp091(&shown),
        ..message
    };
    consumer
        .template
        .deliver(out, tag, delivery.redelivered, &message);
}
