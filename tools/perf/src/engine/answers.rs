//! What a link makes of frames that are not on the straight path: answers, returns, large messages, goodbyes.

use super::consumer::Received;
use super::link::{Link, Turn};
use crate::failure::Failure;
use protocol::amqp::method::{
    BasicCancel, ChannelClose, ChannelCloseOk, ChannelFlowOk, ConnectionClose, ConnectionCloseOk,
};
use protocol::amqp::{Content, Frame, Method, Part, Step, encode};
use std::sync::atomic::Ordering::Relaxed;

impl Link {
    /// Takes any frame but a heartbeat.
    ///
    /// # Errors
    /// If it closes the connection, or can't be read.
    pub(super) fn take_frame(&mut self, frame: &Frame<'_>, turn: &mut Turn<'_>) -> Result<(), Failure> {
        if frame.channel == 0 {
            return self.of_connection(frame, turn);
        }
        let Some(slot) = self
            .assemblers
            .get_mut(usize::from(frame.channel).wrapping_sub(1))
        else {
            return Err(Failure::Lost(format!(
                "the broker sent a frame on channel {}",
                frame.channel
            )));
        };
        // Taken out for the time, because what it yields borrows from it.
        let mut assembler = std::mem::take(slot);
        let limits = self.limits.clone();
        let result = match assembler.feed(frame, &limits) {
            Ok(Step::More) => Ok(()),
            Ok(Step::Method(method)) => self.of_channel(frame.channel, &method, turn),
            Ok(Step::Content(content)) => {
                self.content(frame.channel, &content, turn);
                Ok(())
            }
            Ok(Step::Refused(exception)) | Err(exception) => Err(Failure::Lost(exception.reply_text())),
        };
        if let Some(slot) = self
            .assemblers
            .get_mut(usize::from(frame.channel).wrapping_sub(1))
        {
            *slot = assembler;
        }
        result
    }

    fn of_connection(&mut self, frame: &Frame<'_>, turn: &mut Turn<'_>) -> Result<(), Failure> {
        let Part::Method(id, fields) = frame.part().map_err(|error| Failure::Lost(error.reply_text()))?
        else {
            return Ok(());
        };
        let method =
            Method::decode(id, fields).map_err(|error| Failure::Lost(error.exception().reply_text()))?;
        match method {
            Method::ConnectionBlocked(blocked) => self.block(blocked.reason, turn),
            Method::ConnectionUnblocked(_) => self.blocked = false,
            Method::ConnectionClose(ConnectionClose {
                reply_code,
                reply_text,
                ..
            }) => {
                encode::method(self.out(), 0, &ConnectionCloseOk {});
                let text = format!("the broker closed the connection: {reply_text}");
                return Err(Failure::Refused {
                    code: reply_code,
                    text,
                });
            }
            Method::ConnectionCloseOk(_) => self.closed = true,
            _ => {}
        }
        Ok(())
    }

    /// An alarm is told once, however often the broker repeats it.
    fn block(&mut self, reason: &str, turn: &Turn<'_>) {
        if !std::mem::replace(&mut self.blocked, true) {
            turn.shared
                .tell(format!("The broker blocks connections that publish: {reason}"));
        }
    }

    fn of_channel(&mut self, channel: u16, method: &Method<'_>, turn: &mut Turn<'_>) -> Result<(), Failure> {
        match method {
            Method::BasicAck(ack) => self.settled(channel, ack.delivery_tag, ack.multiple, false, turn),
            Method::BasicNack(nack) => self.settled(channel, nack.delivery_tag, nack.multiple, true, turn),
            Method::BasicConsumeOk(_) => {
                turn.shared.consuming.fetch_add(1, Relaxed);
            }
            Method::BasicCancel(BasicCancel { consumer_tag, .. }) => {
                let mut out = std::mem::take(self.out());
                if let Some(consumer) = self.consumer(channel) {
                    consumer.cancelled(consumer_tag, &mut out, turn.shared);
                }
                *self.out() = out;
            }
            Method::BasicGetEmpty(_) => {
                if let Some(consumer) = self.consumer(channel) {
                    consumer.polled(turn.now);
                }
            }
            Method::TxCommitOk(_) => {
                if let Some(producer) = self.producer(channel) {
                    producer.committed();
                }
            }
            Method::ChannelFlow(flow) => {
                encode::method(self.out(), channel, &ChannelFlowOk { active: flow.active })
            }
            Method::ChannelClose(close) => self.channel_closed(channel, close, turn),
            _ => {}
        }
        Ok(())
    }

    fn settled(&mut self, channel: u16, tag: u64, multiple: bool, refused: bool, turn: &mut Turn<'_>) {
        if let Some(producer) = self.producer(channel) {
            producer.settled(tag, multiple, refused, turn.now, turn.recorder, turn.shared);
        }
    }

    fn content(&mut self, channel: u16, content: &Content<'_>, turn: &mut Turn<'_>) {
        let (delivery_tag, redelivered, routing_key, polled) = match content.method {
            Method::BasicDeliver(it) => (it.delivery_tag, it.redelivered, it.routing_key, false),
            Method::BasicGetOk(it) => (it.delivery_tag, it.redelivered, it.routing_key, true),
            Method::BasicReturn(_) => {
                turn.recorder.returned += 1;
                if let Some(ledger) = &turn.shared.ledger {
                    super::shared::lock(ledger).returned(content.body);
                }
                return;
            }
            _ => return,
        };
        let message = Received {
            delivery_tag,
            redelivered,
            routing_key,
            properties: content.properties,
            body: content.body,
        };
        if polled && let Some(consumer) = self.consumer(channel) {
            consumer.polled(turn.now);
        }
        self.message(channel, &message, turn);
        turn.shared.count_consumed(1);
    }

    /// A channel that the broker closes is an error of the load: what it asks for can't be done. Unlike a lost connection it
    /// would fail again in the same way, so it is not tried again.
    fn channel_closed(&mut self, channel: u16, close: &ChannelClose<'_>, turn: &mut Turn<'_>) {
        encode::method(self.out(), channel, &ChannelCloseOk {});
        let failure = Failure::Refused {
            code: close.reply_code,
            text: format!("the broker closed a channel: {}", close.reply_text),
        };
        if let Some(producer) = self.producer(channel) {
            let reason = format!("Error in producer ({failure})");
            producer.fail(&reason, failure, turn.shared);
        } else if let Some(consumer) = self.consumer(channel) {
            consumer.fail(failure, turn.shared);
        }
    }
}
