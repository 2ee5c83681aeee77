//! An open connection: frames to channels.

use super::Name;
use super::departed::Departures;
use super::heartbeat::{Heartbeat, Millis};
use super::output::{BACKLOG, Output};
use crate::amqp::channel::{Channel, Context, Next, State};
use crate::amqp::refusal;
use broker::sight;
use broker::{AlarmReason, ChannelId, Outbox, Pressure, QueueRef, Reason, Session};
use model::Limits;
use protocol::amqp::handshake::{Capabilities, Tuning, unexpected_method};
use protocol::amqp::method::{Arguments, ChannelCloseOk, ChannelOpen, ChannelOpenOk, ConnectionBlocked};
use protocol::amqp::{
    Exception, Frame, Method, MethodId, Part, PublishScanner, ReplyCode, Step, encode, next_frame,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// So many replies may wait for the log before nothing more is read.
const HELD_REPLIES: usize = 512;

/// How many methods besides publishes and acknowledgements are taken in one turn. Each takes 5 to 10 µs.
const EFFORT: u32 = 32;

/// A connection that finished its handshake.
pub struct Open {
    pub(super) session: Arc<Session>,
    /// What operators see of it.
    pub(super) shown: Arc<sight::Connection>,
    /// What operators were shown last.
    held_up: (sight::State, Option<Reason>),
    pub(super) outbox: Arc<Outbox>,
    pub(super) limits: Limits,
    pub(super) tuning: Tuning,
    pub(super) capabilities: Capabilities,
    pub(super) heartbeat: Heartbeat,
    scanner: PublishScanner,
    /// Sizes of what is published and not shown yet.
    sizes: sight::SizeRun,
    /// By number. Clients count from 1, so the list is as long as there are channels.
    pub(super) channels: Vec<Option<Box<Channel>>>,
    channel_count: u16,
    lives: u32,
    /// Channels with something to flush.
    pub(super) dirty: Vec<u16>,
    /// Channels with confirms to write.
    pub(super) news: Vec<u16>,
    /// Channels with deliveries to write, in turn.
    pub(super) ready: VecDeque<u16>,
    pub(super) departures: Departures,
    /// A `basic.get` that waits for the disk. Nothing else is processed meanwhile: frames keep their order.
    pub(super) getting: Option<Box<Waiting>>,
    /// Whether rights are being asked for.
    pub(super) asking: Asking,
    pub(super) alarm: Option<AlarmReason>,
    /// It published during an alarm: nothing is read until the alarm is over.
    pub(super) blocked: bool,
    pub(super) pressure: Option<Pressure>,
    /// When it goes on without relief.
    pub(super) patient_until: Option<Millis>,
    /// When a delivery may first have stayed unacknowledged for too long; never too late.
    pub(super) late_at: Millis,
    /// How many replies wait for the log.
    pub(super) held_replies: usize,
    /// Methods since the last turn that took more than a moment.
    pub(super) effort: u32,
    /// The client closed, and since when; the answer waits behind held replies.
    pub(super) finishing: Option<Millis>,
    /// Somebody in the hall wants the connection closed, for this reason.
    pub(super) close_request: Option<Exception>,
    /// When the credentials end; mostly never.
    pub(super) ends_at: Millis,
    pub(super) now: Millis,
    /// It published since somebody asked.
    pub(super) published: bool,
}

/// Whether somebody else must say what the user may, before frames are processed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Asking {
    /// Nobody.
    #[default]
    Nobody,
    /// The next frame waits for the answer.
    Waiting,
    /// The answer is there for the next frame.
    Answered,
}

/// Who waits for the answer to a `basic.get`.
pub struct Waiting {
    pub(super) channel: ChannelId,
    pub(super) queue: QueueRef,
    pub(super) no_ack: bool,
}

/// Why a connection must be closed.
pub struct Failure {
    /// What the client is told.
    pub exception: Exception,
    /// The channel that it happened on.
    pub channel: u16,
    /// The two sides have lost step: what follows cannot be read.
    pub lost_step: bool,
}

impl Open {
    /// What was agreed.
    pub fn new(
        session: Arc<Session>,
        shown: Arc<sight::Connection>,
        outbox: Arc<Outbox>,
        limits: Limits,
        tuning: Tuning,
        capabilities: Capabilities,
        now: Millis,
    ) -> Self {
        Self {
            session,
            shown,
            held_up: (sight::State::Running, None),
            outbox,
            scanner: PublishScanner::new(tuning.frame_max, limits.clone()),
            limits,
            tuning,
            capabilities,
            heartbeat: Heartbeat::new(tuning.heartbeat_s, now),
            channels: Vec::new(),
            channel_count: 0,
            lives: 0,
            dirty: Vec::new(),
            news: Vec::new(),
            ready: VecDeque::new(),
            departures: Departures::default(),
            getting: None,
            asking: Asking::Nobody,
            alarm: None,
            blocked: false,
            pressure: None,
            patient_until: None,
            late_at: Millis::MAX,
            held_replies: 0,
            effort: 0,
            finishing: None,
            close_request: None,
            ends_at: Millis::MAX,
            now,
            published: false,
            sizes: sight::SizeRun::default(),
        }
    }

    /// So many bytes came.
    pub fn received(&mut self, bytes: u64) {
        self.heartbeat.received();
        self.shown.received_bytes.add(bytes);
        self.shown.reads.add(1);
    }

    /// So many bytes left.
    pub fn sent(&mut self, bytes: u64) {
        self.heartbeat.sent();
        self.shown.sent_bytes.add(bytes);
        self.shown.writes.add(1);
    }

    /// Shows operators whether it is held up, and why.
    pub fn show(&mut self) {
        let reason = match (&self.alarm, &self.pressure) {
            (Some(_), _) if self.blocked => Some(Reason::Alarm),
            (_, Some(pressure)) => Some(pressure.reason()),
            _ => None,
        };
        let state = match (reason, &self.alarm) {
            (Some(Reason::Alarm), _) => sight::State::Blocked,
            (_, Some(_)) => sight::State::Blocking,
            (Some(_), None) => sight::State::Flow,
            (None, None) => sight::State::Running,
        };
        if (state, reason) != self.held_up {
            self.held_up = (state, reason);
            self.shown.set_state(state);
            self.shown.held().change(reason, self.session.now_ms());
        }
    }

    /// True if bytes may be fed.
    pub fn wants_input(&self, unwritten: usize) -> bool {
        !self.blocked
            && self.pressure.is_none()
            && self.getting.is_none()
            && self.asking != Asking::Waiting
            && self.finishing.is_none()
            && self.held_replies <= HELD_REPLIES
            && !self.is_tired()
            && unwritten <= BACKLOG
    }

    /// True if the other connections of the thread are next: a client that binds a thousand queues in one read must not keep
    /// them waiting for milliseconds.
    pub fn is_tired(&self) -> bool {
        self.effort >= EFFORT
    }

    /// Takes what it can of `bytes` and says how many it took. It stops before a frame that is not whole, and when
    /// something must happen first.
    pub fn input(&mut self, bytes: &[u8], out: &mut Output, name: &Name) -> (usize, Option<Failure>) {
        let mut at = 0;
        while at < bytes.len() && self.wants_input(out.len()) {
            match self.publishes(&bytes[at..], out) {
                (0, None) => {}
                (taken, None) => {
                    at += taken;
                    self.went_on();
                    continue;
                }
                (taken, Some((channel, exception))) => {
                    at += taken;
                    if self.asking == Asking::Waiting {
                        return (at, None);
                    }
                    if let Some(failure) = self.fail(channel, exception, out, name) {
                        return (at, Some(failure));
                    }
                    continue;
                }
            }
            match next_frame(&bytes[at..], self.tuning.frame_max) {
                Ok(None) => break,
                Ok(Some((frame, length))) => {
                    let failed = self.frame(&frame, out).err();
                    if failed.is_some() && self.must_ask() {
                        return (at, None);
                    }
                    at += length;
                    self.went_on();
                    let failure = failed.and_then(|exception| self.fail(frame.channel, exception, out, name));
                    if failure.is_some() {
                        return (at, failure);
                    }
                }
                Err(error) => {
                    let exception = error.exception();
                    return (
                        bytes.len(),
                        Some(Failure {
                            exception,
                            channel: 0,
                            lost_step: true,
                        }),
                    );
                }
            }
        }
        (at, None)
    }

    /// After a refusal: true if it is none yet, because whoever knows the user's rights is being asked. The frame is fed again then.
    #[cold]
    fn must_ask(&mut self) -> bool {
        if self.asking != Asking::Waiting {
            self.asking = match self.session.must_ask() {
                true => Asking::Waiting,
                false => Asking::Nobody,
            };
        }
        self.asking == Asking::Waiting
    }

    /// Frames were processed: an answer that was waited for has served its purpose.
    #[inline]
    fn went_on(&mut self) {
        if self.asking == Asking::Answered {
            self.asking = Asking::Nobody;
            self.session.settle();
        }
    }

    /// The hot way in: as many whole publishes on one channel as there are. Says how many bytes it took.
    fn publishes(&mut self, bytes: &[u8], out: &mut Output) -> (usize, Option<(u16, Exception)>) {
        let Some((mut publish, mut length)) = self.scanner.scan(bytes) else {
            return (0, None);
        };
        let number = publish.channel;
        let Some(Some(channel)) = self.channels.get_mut(number as usize) else {
            return (0, None);
        };
        if channel.state != State::Open || !channel.assembler.is_idle() {
            return (0, None);
        }
        self.published = true;
        if !channel.dirty {
            channel.dirty = true;
            self.dirty.push(number);
        }
        let mut cx = Context {
            session: &self.session,
            limits: &self.limits,
            frame_max: self.tuning.frame_max,
            out: out.bytes(),
            now: self.now,
        };
        let (mut taken, mut count) = (0, 0);
        loop {
            taken += length;
            if let Err(exception) = channel.publish(&publish, &mut cx) {
                channel.count_published(count);
                self.sizes.show(&self.shown.sizes);
                if self.must_ask() {
                    taken -= length;
                }
                return (taken, Some((number, exception)));
            }
            count += 1;
            self.sizes.note(publish.body.len(), &self.shown.sizes);
            // An alarm stops after the message that met it; returns count as output.
            if self.alarm.is_some() || cx.out.len() > BACKLOG {
                break;
            }
            match self.scanner.scan(&bytes[taken..]) {
                Some((next, more)) if next.channel == number => (publish, length) = (next, more),
                _ => break,
            }
        }
        channel.count_published(count);
        self.sizes.show(&self.shown.sizes);
        if let Some(reason) = self.alarm {
            self.block(reason, out);
        }
        (taken, None)
    }

    /// It published during an alarm.
    fn block(&mut self, reason: AlarmReason, out: &mut Output) {
        self.blocked = true;
        if self.capabilities.connection_blocked {
            encode::method(
                out.bytes(),
                0,
                &ConnectionBlocked {
                    reason: &reason.to_string(),
                },
            );
        }
    }

    fn frame(&mut self, frame: &Frame<'_>, out: &mut Output) -> Result<(), Exception> {
        if frame.channel == 0 {
            return self.connection_frame(frame, out);
        }
        match self.channels.get(frame.channel as usize) {
            Some(Some(channel)) => match channel.state {
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
                self.finishing = Some(self.now);
                self.flush();
                self.close_channels(out);
                Ok(())
            }
            // Answers to what we never ask; RabbitMQ lets a late one pass.
            (10, 51) => Ok(()),
            _ => Err(unexpected_method("running", id)),
        }
    }

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
        let limit = match self.tuning.channel_max {
            0 => u16::MAX,
            limit => limit,
        };
        // RabbitMQ counts channels and lets their numbers be any; a number beyond the limit would be ours to store.
        let (opened, number) = (self.channel_count, frame.channel);
        let refused = if opened >= limit {
            Some(format!(
                "number of channels opened ({opened}) has reached the negotiated channel_max ({limit})"
            ))
        } else if number > limit {
            Some(format!(
                "channel number {number} is above the negotiated channel_max ({limit})"
            ))
        } else {
            None
        };
        if let Some(text) = refused {
            return Err(Exception::new(ReplyCode::NotAllowed, text, MethodId::NONE));
        }
        let refused = |refusal| refusal::exception(&refusal, MethodId::NONE);
        self.session.open_channel().map_err(refused)?;
        self.lives = self.lives.wrapping_add(1);
        self.channel_count += 1;
        let at = frame.channel as usize;
        if self.channels.len() <= at {
            self.channels.resize_with(at + 1, || None);
        }
        let id = ChannelId {
            number: frame.channel,
            life: self.lives,
        };
        self.channels[at] = Some(Box::new(Channel::new(
            id,
            self.session.intercepts(),
            self.shown.open_channel(id.number),
        )));
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

    pub(super) fn forget_channel(&mut self, number: u16) {
        if let Some(slot) = self.channels.get_mut(number as usize)
            && slot.take().is_some()
        {
            self.channel_count -= 1;
            self.session.close_channel();
        }
    }

    fn channel_frame(&mut self, frame: &Frame<'_>, out: &mut Output) -> Result<(), Exception> {
        let number = frame.channel;
        let Some(Some(channel)) = self.channels.get_mut(number as usize) else {
            return Ok(());
        };
        let mut assembler = std::mem::take(&mut channel.assembler);
        let mut whole = false;
        let result = match assembler.feed(frame, &self.limits) {
            Ok(Step::More) => Ok(()),
            Ok(Step::Method(method)) => self.channel_method(number, &method, out),
            Ok(Step::Content(content)) => match content.method {
                Method::BasicPublish(it) => {
                    whole = true;
                    let publish = protocol::amqp::Publish {
                        channel: number,
                        exchange: it.exchange,
                        routing_key: it.routing_key,
                        mandatory: it.mandatory,
                        immediate: it.immediate,
                        properties: content.properties,
                        body: content.body,
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
        if whole && result.is_err() && self.must_ask() {
            assembler.take_back();
        }
        if let Some(Some(channel)) = self.channels.get_mut(number as usize)
            && channel.state == State::Open
        {
            channel.assembler = assembler;
        }
        result
    }

    /// The general way in for a message.
    fn publish(&mut self, publish: &protocol::amqp::Publish<'_>, out: &mut Output) -> Result<(), Exception> {
        let Some(Some(channel)) = self.channels.get_mut(publish.channel as usize) else {
            return Ok(());
        };
        if !channel.dirty {
            channel.dirty = true;
            self.dirty.push(publish.channel);
        }
        let mut cx = Context {
            session: &self.session,
            limits: &self.limits,
            frame_max: self.tuning.frame_max,
            out: out.bytes(),
            now: self.now,
        };
        channel.publish(publish, &mut cx)?;
        channel.count_published(1);
        self.sizes.note(publish.body.len(), &self.shown.sizes);
        self.sizes.show(&self.shown.sizes);
        if let Some(reason) = self.alarm {
            self.block(reason, out);
        }
        Ok(())
    }

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
        if let Method::BasicCancel(it) = method {
            self.cancel_subscription(number, it.consumer_tag, out);
        }
        let Some(Some(channel)) = self.channels.get_mut(number as usize) else {
            return Ok(());
        };
        if !channel.dirty {
            channel.dirty = true;
            self.dirty.push(number);
        }
        let mut cx = Context {
            session: &self.session,
            limits: &self.limits,
            frame_max: self.tuning.frame_max,
            out: out.bytes(),
            now: self.now,
        };
        let waiting = channel.waiting_replies();
        if !Channel::is_settling(method) {
            self.effort += 1;
        }
        let next = channel.method(method, &mut cx)?;
        self.held_replies += channel.waiting_replies() - waiting;
        self.late_at = self.late_at.min(channel.next_deadline());
        if !channel.departed.is_empty() {
            self.departures
                .add(self.now, std::mem::take(&mut channel.departed));
        }
        match next {
            Next::Go => {}
            Next::Close => self.finish_channel(number, out),
            Next::Pause(pause) => {
                self.pressure = Some(pause);
                self.patient_until = None;
            }
            Next::WaitForGet { queue, no_ack } => {
                let channel = channel.id();
                self.getting = Some(Box::new(Waiting {
                    channel,
                    queue,
                    no_ack,
                }));
            }
        }
        Ok(())
    }
}
