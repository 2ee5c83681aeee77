//! Frame by frame: what concerns the connection, channels that open and close, and methods on them.

use super::{EFFORT, Open};
use crate::amqp::channel::{Channel, Next, State};
use crate::amqp::connection::channels;
use crate::amqp::refusal;
use crate::output::Output;
use broker::Refusal;
use model::properties::Properties;
use model::{Message, RouteBuf};
use protocol::amqp::handshake::unexpected_method;
use protocol::amqp::method::{Arguments, BasicPublish, ChannelCloseOk, ChannelOpen, ChannelOpenOk};
use protocol::amqp::{Exception, Frame, Method, MethodId, Part, ReplyCode, Step, encode};

impl Open {
    /// One frame that is no publish on the hot way.
    pub(super) fn frame(&mut self, frame: &Frame<'_>, out: &mut Output) -> Result<(), Exception> {
        if frame.channel == 0 {
            return self.connection_frame(frame, out);
        }
        match self.channels.get(frame.channel) {
            Some(channel) => match channel.state {
                State::Open => self.channel_frame(frame, out),
                State::Closing | State::Finishing => self.closing_channel_frame(frame, out),
            },
            _ => self.unopened_channel_frame(frame, out),
        }
    }

    /// Channel 0: what concerns the connection.
    fn connection_frame(&mut self, frame: &Frame<'_>, out: &mut Output) -> Result<(), Exception> {
        let id = match frame.part()? {
            Part::Heartbeat => return Ok(()),
            Part::Method(id, fields) => {
                let method = Method::decode(id, fields).map_err(|error| error.exception())?;
                if let Method::ConnectionUpdateSecret(update) = &method {
                    self.update_secret(update, out);
                    return Ok(());
                }
                method.id()
            }
            _ => return Err(frame.unexpected()),
        };
        match (id.class, id.method) {
            (10, 50) => {
                self.flush();
                if self.close_channels(true, out) {
                    self.finishing = Some(self.shared.now);
                } else {
                    self.feed_again();
                }
                Ok(())
            }
            // An answer to our own close never comes here: it is awaited elsewhere.
            _ => Err(unexpected_method("running", id)),
        }
    }

    /// A channel that is not open can only be opened.
    fn unopened_channel_frame(&mut self, frame: &Frame<'_>, out: &mut Output) -> Result<(), Exception> {
        let (id, fields) = match frame.part()? {
            Part::Method(id, fields) => (id, fields),
            Part::Heartbeat => return Err(frame.unexpected()),
            _ => (MethodId::NONE, &[][..]),
        };
        if id != ChannelOpen::ID {
            return Err(Exception::new(
                ReplyCode::ChannelError,
                "expected 'channel.open'",
                id,
            ));
        }
        ChannelOpen::decode(fields).map_err(|error| error.exception())?;
        let limit = match self.shared.tuning.channel_max {
            0 => u16::MAX,
            limit => limit,
        };
        // As in RabbitMQ the limit is one of how many there are; their numbers may be any.
        let opened = self.channels.count();
        if opened >= limit {
            let text = format!(
                "number of channels opened ({opened}) has reached the negotiated channel_max ({limit})"
            );
            return Err(Exception::new(ReplyCode::NotAllowed, text, MethodId::NONE));
        }
        let refused = |refusal| refusal::exception(&refusal, MethodId::NONE);
        self.shared.session.open_channel().map_err(refused)?;
        self.lives = self.lives.wrapping_add(1);
        let number = frame.channel;
        let channel = Channel::new(
            number,
            channels::id(number, self.lives),
            self.shared.session.intercepts(),
            self.shown.open_channel(number),
        );
        self.channels.insert(number, Box::new(channel));
        encode::method(out.bytes(), frame.channel, &ChannelOpenOk {});
        Ok(())
    }

    /// After a channel's close only the answer to it counts (or the client's own close, if the two crossed).
    fn closing_channel_frame(&mut self, frame: &Frame<'_>, out: &mut Output) -> Result<(), Exception> {
        if let Part::Method(id, _) = frame.part()? {
            match (id.class, id.method) {
                (20, 41) => self.forget_channel(frame.channel),
                (20, 40) => encode::method(out.bytes(), frame.channel, &ChannelCloseOk {}),
                _ => {}
            }
        }
        Ok(())
    }

    /// A method, or a piece of a content.
    fn channel_frame(&mut self, frame: &Frame<'_>, out: &mut Output) -> Result<(), Exception> {
        let number = frame.channel;
        let Some(channel) = self.channels.get_mut(number) else {
            return Ok(());
        };
        let mut assembler = std::mem::take(&mut channel.assembler);
        let before = assembler.unfinished();
        let mut whole = false;
        let result = match assembler.feed(frame, &self.shared.limits) {
            Ok(Step::More) => self.collected(assembler.unfinished() - before, out),
            Ok(Step::Method(method)) => self.channel_method(number, &method, out),
            Ok(Step::Content(content)) => match content.method {
                Method::BasicPublish(it) => {
                    whole = true;
                    let route = RouteBuf::new(it.exchange, it.routing_key);
                    let properties = Properties::amqp091(content.properties);
                    let publish = protocol::amqp::Publish {
                        channel: number,
                        mandatory: it.mandatory,
                        immediate: it.immediate,
                        message: Message::new(route.as_route(), properties, content.body),
                    };
                    self.publish(&publish, out)
                }
                other => Err(Exception::new(
                    ReplyCode::CommandInvalid,
                    "unimplemented method",
                    other.id(),
                )),
            },
            Ok(Step::Refused(exception)) | Err(exception) => Err(exception),
        };
        if whole {
            if result.is_err() && self.must_ask() {
                assembler.take_back();
            } else {
                assembler.finish();
                self.unfinished -= before;
            }
        }
        if let Some(channel) = self.channels.get_mut(number)
            && channel.state == State::Open
        {
            channel.assembler = assembler;
        }
        result
    }

    /// So many bytes more of a message are there. What the channels hold together has an end, and an alarm does not wait for the
    /// message's last byte: as in RabbitMQ, who sends a part of one publishes.
    fn collected(&mut self, bytes: usize, out: &mut Output) -> Result<(), Exception> {
        self.unfinished += bytes;
        if self.unfinished > self.unfinished_most {
            let text = format!(
                "messages that are still incomplete on this connection take more than {} bytes (max_unfinished_size)",
                self.unfinished_most
            );
            return Err(Exception::new(ReplyCode::ResourceError, text, BasicPublish::ID));
        }
        if bytes > 0 {
            self.grow_incomplete()?;
        }
        if let Some(reason) = self.alarm {
            self.block(reason, out);
        }
        Ok(())
    }

    /// The general way in for a message.
    fn publish(&mut self, publish: &protocol::amqp::Publish<'_>, out: &mut Output) -> Result<(), Exception> {
        let asks = self.must_ask_for_routes();
        let Some(channel) = self.channels.get_mut(publish.channel) else {
            return Ok(());
        };
        if asks && let Err(refusal) = self.shared.session.may_route(channel.id()) {
            // A publisher that waits for confirms hears that it has none, and may try another node.
            if refusal != Refusal::Undecided && channel.refuse_publish() {
                self.news.push(publish.channel);
                return Ok(());
            }
            return Err(refusal::exception(&refusal, BasicPublish::ID));
        }
        if !channel.dirty {
            channel.dirty = true;
            self.dirty.push(publish.channel);
        }
        let mut cx = self.shared.context(out.bytes());
        channel.publish(publish, &mut cx)?;
        channel.count_published(1);
        self.effort = self.effort.saturating_add(channel.take_effort());
        self.sizes.note(publish.message.body.len(), &self.shown.sizes);
        self.sizes.show(&self.shown.sizes);
        if let Some(reason) = self.alarm {
            self.block(reason, out);
        }
        Ok(())
    }

    /// The frame was taken in part: the others are next, and then its next part.
    fn feed_again(&mut self) {
        self.again = true;
        self.effort = EFFORT;
    }

    /// A method without a content.
    fn channel_method(
        &mut self,
        number: u16,
        method: &Method<'_>,
        out: &mut Output,
    ) -> Result<(), Exception> {
        if !Channel::is_settling(method) {
            // What the method asks about must know everything that came before it.
            self.flush();
            if self.has_channel_limit(number) {
                // What came beyond the channel's prefetch is ready again before anybody asks.
                self.absorb(out);
            }
        }
        if let Method::BasicCancel(it) = method
            && !self.cancel_subscription(number, it.consumer_tag, out)
        {
            self.feed_again();
            return Ok(());
        }
        let Some(channel) = self.channels.get_mut(number) else {
            return Ok(());
        };
        if !channel.dirty {
            channel.dirty = true;
            self.dirty.push(number);
        }
        let mut cx = self.shared.context(out.bytes());
        let waiting = channel.waiting_replies();
        if !Channel::is_settling(method) {
            self.effort += 1;
        }
        let next = channel.method(method, &mut cx)?;
        self.held_replies += channel.waiting_replies() - waiting;
        self.late_at = self.late_at.min(channel.next_deadline());
        self.departures.add(channel.departed.drain(..));
        let asked_on = channel.id();
        match next {
            Next::Go => {}
            Next::Again => self.feed_again(),
            Next::Close if self.finish_channel(number, out) => {}
            Next::Close => self.feed_again(),
            Next::Wait(question, asked) => {
                self.wait(asked_on, question, asked);
                self.absorb(out);
                if let Some((_, exception)) = self.refused.take() {
                    return Err(exception);
                }
            }
        }
        Ok(())
    }
}
