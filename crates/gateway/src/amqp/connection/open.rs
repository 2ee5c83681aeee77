//! An open connection: bytes to frames, publishes and frames to channels.

mod frames;

use super::channels::Channels;
use super::departed::Departures;
use super::incomplete::IncompleteMessages;
use crate::amqp::channel::{Asked, Shared, State};
use crate::connection::Millis;
use crate::connection::Name;
use crate::heartbeat::Heartbeat;
use crate::incomplete::Part;
use crate::output::{BACKLOG, Output};
use broker::stats;
use broker::{AlarmReason, ChannelId, Outbox, Pressure, QueueQuestion, Reason};
use model::ConsumerId;
use protocol::amqp::handshake::Capabilities;
use protocol::amqp::method::{ConnectionBlocked, ConnectionUnblocked};
use protocol::amqp::{Exception, PublishScanner, encode, next_frame};
use std::collections::VecDeque;
use std::sync::Arc;

/// So many replies may wait for the log before nothing more is read.
const HELD_REPLIES: usize = 512;

/// How many methods besides publishes and acknowledgements are taken in one turn. Each takes 5 to 10 µs.
pub const EFFORT: u32 = 32;

/// A connection that finished its handshake.
pub struct Open {
    /// What its channels stand on.
    pub(super) shared: Shared,
    /// What operators see of it.
    pub(super) shown: Arc<stats::Connection>,
    /// What operators were shown last.
    held_up: (stats::State, Option<Reason>),
    pub(super) outbox: Arc<Outbox>,
    pub(super) capabilities: Capabilities,
    pub(super) heartbeat: Heartbeat,
    scanner: PublishScanner,
    /// Sizes of what is published and not shown yet.
    sizes: stats::SizeRun,
    pub(super) channels: Channels,
    /// What its channels hold of messages that are still coming in, in bytes.
    pub(super) unfinished: usize,
    /// How much of them it may hold.
    unfinished_most: usize,
    /// Its part in what all connections hold of them.
    pub(super) incomplete: IncompleteMessages,
    lives: u32,
    /// Channels with something to flush.
    pub(super) dirty: Vec<u16>,
    /// Channels with confirms to write.
    pub(super) news: Vec<u16>,
    /// Channels with deliveries to write, in turn.
    pub(super) ready: VecDeque<u16>,
    pub(super) departures: Departures,
    /// A method that waits for an answer. Nothing else is processed meanwhile: frames keep their order.
    pub(super) waiting: Option<Box<Waiting>>,
    /// What queues were asked after whose answers no delivery comes. Nothing is processed before these are there.
    pub(super) fences: VecDeque<QueueQuestion>,
    /// A queue's answer closes this channel, for this reason.
    pub(super) refused: Option<(u16, Exception)>,
    /// Whether rights are being asked for.
    pub(super) asking: Asking,
    pub(super) alarm: Option<AlarmReason>,
    /// It published during an alarm: nothing is read until the alarm is over.
    pub(super) blocked: bool,
    pub(super) pressure: Option<Pressure>,
    /// It published to a queue of another node that has an alarm, and waits for its end; its client was told so.
    pub(super) blocked_elsewhere: bool,
    /// When it goes on although the back-pressure is not released.
    pub(super) held_until: Option<Millis>,
    /// When a delivery may first have stayed unacknowledged for too long; never too late.
    pub(super) late_at: Millis,
    /// How many replies wait for the log.
    pub(super) held_replies: usize,
    /// Methods since the last turn that took more than a moment.
    pub(super) effort: u32,
    /// The last frame was taken in part: it is to be fed again.
    pub(super) again: bool,
    /// Channels that are closed by an exception and still hold something. Nothing else is processed meanwhile.
    pub(super) failing: VecDeque<(u16, Exception)>,
    /// The client closed, and since when; the answer waits behind held replies.
    pub(super) finishing: Option<Millis>,
    /// The connection is to be closed, for this reason.
    pub(super) close_request: Option<Exception>,
    /// When the credentials end; mostly never.
    pub(super) ends_at: Millis,
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

/// Who waits for an answer.
pub struct Waiting {
    pub(super) channel: ChannelId,
    pub(super) question: QueueQuestion,
    pub(super) asked: Asked,
    /// Consumers of a queue that is deleted: who deletes it sees `queue.delete-ok` first, as in RabbitMQ.
    pub(super) cancelled: Vec<(ChannelId, ConsumerId)>,
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
        shared: Shared,
        shown: Arc<stats::Connection>,
        outbox: Arc<Outbox>,
        capabilities: Capabilities,
        part: Part,
    ) -> Self {
        Self {
            shown,
            held_up: (stats::State::Running, None),
            outbox,
            scanner: PublishScanner::new(shared.tuning.frame_max, shared.limits.clone()),
            capabilities,
            heartbeat: Heartbeat::new(shared.tuning.heartbeat_s, shared.now),
            channels: Channels::default(),
            unfinished: 0,
            unfinished_most: usize::try_from(shared.limits.unfinished_most()).unwrap_or(usize::MAX),
            incomplete: IncompleteMessages::new(part),
            lives: 0,
            dirty: Vec::new(),
            news: Vec::new(),
            ready: VecDeque::new(),
            departures: Departures::default(),
            waiting: None,
            fences: VecDeque::new(),
            refused: None,
            asking: Asking::Nobody,
            alarm: None,
            blocked: false,
            pressure: None,
            blocked_elsewhere: false,
            held_until: None,
            late_at: Millis::MAX,
            held_replies: 0,
            effort: 0,
            again: false,
            failing: VecDeque::new(),
            finishing: None,
            close_request: None,
            ends_at: Millis::MAX,
            published: false,
            sizes: stats::SizeRun::default(),
            shared,
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
            (Some(Reason::Alarm), _) => stats::State::Blocked,
            (_, Some(_)) => stats::State::Blocking,
            (Some(_), None) => stats::State::Flow,
            (None, None) => stats::State::Running,
        };
        if (state, reason) != self.held_up {
            self.held_up = (state, reason);
            self.shown.set_state(state);
            self.shown.held().change(reason, self.shared.session.now_ms());
        }
    }

    /// Tells the client, once, that another node's alarm blocks it, or does no more.
    pub fn tell_of_alarm_elsewhere(&mut self, out: &mut Output) {
        let alarm = self.pressure.as_ref().and_then(Pressure::alarm);
        if alarm.is_some() == self.blocked_elsewhere {
            return;
        }
        self.blocked_elsewhere = alarm.is_some();
        self.shown.set_alarm_elsewhere(alarm.cloned());
        // Of the two alarms that may block it the client hears as of one.
        if !self.capabilities.connection_blocked || self.blocked {
            return;
        }
        match alarm {
            Some(reason) => encode::method(out.bytes(), 0, &ConnectionBlocked { reason }),
            None => encode::method(out.bytes(), 0, &ConnectionUnblocked {}),
        }
    }

    /// True if bytes may be fed.
    pub fn wants_input(&self, unwritten: usize) -> bool {
        !self.blocked
            && self.pressure.is_none()
            && self.waiting.is_none()
            && self.fences.is_empty()
            && self.refused.is_none()
            && self.asking != Asking::Waiting
            && self.finishing.is_none()
            && self.failing.is_empty()
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
            match next_frame(&bytes[at..], self.shared.tuning.frame_max) {
                Ok(None) => break,
                Ok(Some((frame, length))) => {
                    let failed = self.frame(&frame, out).err();
                    if failed.is_some() && self.must_ask() || std::mem::take(&mut self.again) {
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

    /// After a refusal: true if it is none yet, because whoever knows the user's rights is being asked. The frame is
    /// fed again then.
    #[cold]
    fn must_ask(&mut self) -> bool {
        if self.asking != Asking::Waiting {
            self.asking = match self.shared.session.must_ask() {
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
            self.shared.session.settle();
        }
    }

    /// The hot way in: as many whole publishes on one channel as there are. Says how many bytes it took.
    ///
    /// Not during an alarm: of the message that meets it no more than the method is taken, frame by frame, and the rest
    /// waits for the alarm's end, as in RabbitMQ. Nor while it is not known where they go: then they wait one by one.
    fn publishes(&mut self, bytes: &[u8], out: &mut Output) -> (usize, Option<(u16, Exception)>) {
        if self.alarm.is_some() || self.must_ask_for_routes() {
            return (0, None);
        }
        let Some((mut publish, mut length)) = self.scanner.scan(bytes) else {
            return (0, None);
        };
        let number = publish.channel;
        let Some(channel) = self.channels.get_mut(number) else {
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
        let mut cx = self.shared.context(out.bytes());
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
            self.sizes.note(publish.message.body.len(), &self.shown.sizes);
            // Returns count as output.
            if cx.out.len() > BACKLOG || channel.is_strained() {
                break;
            }
            match self.scanner.scan(&bytes[taken..]) {
                Some((next, more)) if next.channel == number => (publish, length) = (next, more),
                _ => break,
            }
        }
        channel.count_published(count);
        self.effort = self.effort.saturating_add(channel.take_effort());
        self.sizes.show(&self.shown.sizes);
        (taken, None)
    }

    /// Messages may have to wait before they are routed, or have waited.
    #[inline]
    pub(super) fn must_ask_for_routes(&self) -> bool {
        self.asking == Asking::Answered || self.shared.session.is_stale()
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

    /// The channel is no more.
    pub(super) fn forget_channel(&mut self, number: u16) {
        if let Some(channel) = self.channels.remove(number) {
            // A client that confirms a close which it has not been sent yet waits for nothing any more.
            self.held_replies -= channel.waiting_replies();
            self.shared.session.close_channel();
        }
    }
}
