//! What the broker has for an open connection, and what the connection hands on and writes at the end of a turn.

use super::channels;
use super::open::{Asking, Failure, Open, Waiting};
use crate::amqp::channel::{Asked, Next, State};
use crate::amqp::refusal;
use crate::connection::Millis;
use crate::connection::Name;
use crate::output::{Output, PIECE};
use broker::pressure::Reason;
use broker::{AlarmReason, Answer, ChannelId, Event, Pressure, QueueQuestion};
use model::ConsumerId;
use protocol::amqp::method::{ChannelCloseOk, ConnectionUnblocked};
use protocol::amqp::{Exception, MethodId, ReplyCode, encode};
use std::task::Waker;

/// How long a client that closed waits for its declarations to become durable.
const FINISH: Millis = 30_000;

impl Open {
    /// Hands on everything that was published and settled.
    pub fn flush(&mut self) {
        let mut reason = None;
        for number in std::mem::take(&mut self.dirty) {
            let Some(channel) = self.channels.get_mut(number) else {
                continue;
            };
            channel.dirty = false;
            let pressure = channel.flush();
            // Of two reasons the one without an end counts.
            if reason
                .as_ref()
                .is_none_or(|reason: &Pressure| reason.timeout().is_some())
            {
                reason = pressure.or(reason);
            }
            if channel.has_news() {
                self.news.push(number);
            }
        }
        self.slow_down(reason);
    }

    /// Stops reading if there is a reason and none before it.
    pub(super) fn slow_down(&mut self, pressure: Option<Pressure>) {
        let Some(pressure) = pressure.filter(|_| self.pressure.is_none()) else {
            return;
        };
        match pressure.timeout() {
            None => self.pressure = Some(pressure),
            Some(_) if self.consumes() && pressure.reason() != Reason::RateLimit => {}
            Some(timeout) => {
                self.held_until = Some(self.shared.now + timeout.as_millis() as Millis);
                self.pressure = Some(pressure);
            }
        }
    }

    fn consumes(&self) -> bool {
        self.channels.iter().any(|channel| channel.consumes())
    }

    /// The time is `now`: a publisher that was held to its consumers' pace has waited for long enough.
    pub fn time_out_pressure(&mut self, now: Millis) {
        if self.held_until.is_some_and(|until| now >= until) {
            self.held_until = None;
            self.pressure = None;
        }
    }

    /// Looks whether the reason to slow down is over; else `waker` is woken when it is.
    pub fn poll_pressure(&mut self, waker: &Waker) {
        if self
            .pressure
            .as_ref()
            .is_some_and(|pressure| pressure.poll(waker))
        {
            self.pressure = None;
            self.held_until = None;
        }
    }

    /// Takes what the broker sent.
    pub fn events(&mut self, events: &mut Vec<Event>, out: &mut Output) {
        for event in events.drain(..) {
            match event {
                Event::Deliver {
                    channel,
                    consumer,
                    delivery,
                } => {
                    let delivery = match self.live(channel) {
                        Some(at) => self.deliver(at, consumer, delivery),
                        None => Some(delivery),
                    };
                    if let Some(delivery) = delivery {
                        self.departures.give_back(consumer, delivery);
                    }
                }
                Event::Confirm {
                    channel,
                    queue,
                    numbers,
                } => {
                    if let Some(at) = self.live(channel)
                        && let Some(channel) = self.channels.get_mut(at)
                    {
                        channel.confirmed(queue, &numbers);
                        self.news.push(at);
                    }
                }
                Event::Reject { channel, numbers, .. } => {
                    if let Some(at) = self.live(channel)
                        && let Some(channel) = self.channels.get_mut(at)
                    {
                        channel.rejected(&numbers);
                        self.news.push(at);
                    }
                }
                Event::Durable { channel, ticket } => self.durable(channel, ticket, out),
                Event::Answer { question, answer, .. } => self.answered(question, answer, out),
                Event::ConsumerCancelled { channel, consumer } => {
                    self.consumer_cancelled(channel, consumer, out)
                }
                Event::Alarm(reason) => self.alarm(reason, out),
                Event::Close(reason) => self.close_request = Some(refusal::of_close(&reason)),
                Event::Login(found) => self.shown_again(found, out),
                // Nobody reads a stream's chunks here.
                Event::Readable { .. } | Event::Active { .. } => {}
                Event::Permitted => self.asking = Asking::Answered,
            }
        }
    }

    /// Takes what is in the outbox now, between two frames.
    pub(super) fn absorb(&mut self, out: &mut Output) {
        let mut events = Vec::new();
        self.outbox.take_now(&mut events);
        self.events(&mut events, out);
    }

    /// True if the channel has a prefetch of its own.
    pub(super) fn has_channel_limit(&self, number: u16) -> bool {
        let channel = self.channels.get(number);
        channel.is_some_and(|channel| channel.has_limit())
    }

    /// Where the channel stands, unless it is another one of the same number by now.
    fn live(&self, id: ChannelId) -> Option<u16> {
        let number = channels::number(id);
        (self.channels.get(number)?.id() == id).then_some(number)
    }

    fn deliver(
        &mut self,
        at: u16,
        consumer: ConsumerId,
        delivery: broker::Delivery,
    ) -> Option<broker::Delivery> {
        let Some(channel) = self.channels.get_mut(at) else {
            return Some(delivery);
        };
        let refused = channel.deliver(consumer, delivery).err();
        self.queue_deliveries(at);
        refused
    }

    /// Puts a channel on the list of those with deliveries to write.
    fn queue_deliveries(&mut self, at: u16) {
        if let Some(channel) = self.channels.get_mut(at)
            && channel.has_deliveries()
            && !channel.queued
        {
            channel.queued = true;
            self.ready.push_back(at);
        }
    }

    fn durable(&mut self, id: ChannelId, ticket: broker::Ticket, out: &mut Output) {
        let Some(at) = self.live(id) else { return };
        let Some(channel) = self.channels.get_mut(at) else {
            return;
        };
        let waited = channel.waiting_replies();
        channel.durable(ticket, out.bytes());
        self.held_replies -= waited - channel.waiting_replies();
        self.go_on(at);
    }

    /// Replies of a channel may have left: deliveries follow, or it is gone.
    fn go_on(&mut self, at: u16) {
        let channel = self.channels.get(at);
        if channel.is_some_and(|channel| channel.is_released() && channel.state == State::Finishing) {
            self.forget_channel(at);
        } else {
            self.queue_deliveries(at);
        }
    }

    /// A queue has answered, or the catalog.
    fn answered(&mut self, question: QueueQuestion, answer: Option<Answer>, out: &mut Output) {
        self.departures.answered(question);
        if let Some(at) = self.fences.iter().position(|fence| *fence == question) {
            self.fences.remove(at);
        }
        let Some(waiting) = self.waiting.take_if(|waiting| waiting.question == question) else {
            return;
        };
        let Waiting {
            channel,
            asked,
            cancelled,
            ..
        } = *waiting;
        self.go_on_with(channel, asked, answer, out);
        for (channel, consumer) in cancelled {
            self.consumer_cancelled(channel, consumer, out);
        }
    }

    /// A method has the answer that it waited for.
    fn go_on_with(&mut self, id: ChannelId, asked: Asked, answer: Option<Answer>, out: &mut Output) {
        let live = self.live(id);
        let channel = live.and_then(|at| self.channels.get_mut(at));
        let Some(channel) = channel.filter(|channel| channel.state == State::Open) else {
            return self.departures.add(asked.abandon(answer));
        };
        let waited = channel.waiting_replies();
        let mut cx = self.shared.context(out.bytes());
        let next = channel.answered(asked, answer, &mut cx);
        self.held_replies += channel.waiting_replies() - waited;
        self.late_at = self.late_at.min(channel.next_deadline());
        match next {
            Ok(Next::Wait(question, asked)) => self.wait(id, question, asked),
            Ok(_) => {}
            Err(exception) => self.refused = Some((channel.number(), exception)),
        }
    }

    /// Nothing more is taken before the question is answered.
    pub(super) fn wait(&mut self, channel: ChannelId, question: QueueQuestion, asked: Asked) {
        self.waiting = Some(Box::new(Waiting {
            channel,
            question,
            asked,
            cancelled: Vec::new(),
        }));
    }

    fn consumer_cancelled(&mut self, id: ChannelId, consumer: ConsumerId, out: &mut Output) {
        if let Some(waiting) = &mut self.waiting
            && matches!(waiting.asked, Asked::Delete { .. })
        {
            return waiting.cancelled.push((id, consumer));
        }
        let Some(at) = self.live(id) else { return };
        let tell = self.capabilities.consumer_cancel_notify;
        if let Some(channel) = self.channels.get_mut(at) {
            // Whatever was delivered to it came before.
            channel.consumer_cancelled(consumer, tell, out.bytes());
        }
    }

    fn alarm(&mut self, reason: Option<AlarmReason>, out: &mut Output) {
        self.alarm = reason;
        if let Some(failed @ AlarmReason::LogFailed) = reason
            && self.held_replies > 0
        {
            // What they wait for never becomes durable: an answer that says so is better than none.
            let exception = Exception::new(ReplyCode::InternalError, failed.to_string(), MethodId::NONE);
            self.close_request = Some(exception);
        }
        let ends = reason.is_none() && std::mem::take(&mut self.blocked) && !self.blocked_elsewhere;
        if ends && self.capabilities.connection_blocked {
            encode::method(out.bytes(), 0, &ConnectionUnblocked {});
        }
    }

    /// Ends a consumer in its queue and takes what was delivered to it until then. False if more may come.
    pub(super) fn cancel_subscription(&mut self, number: u16, tag: &str, out: &mut Output) -> bool {
        let channel = self.channels.get_mut(number);
        if let Some(departed) = channel.and_then(|channel| channel.cancel_subscription(tag)) {
            self.fences.push_back(departed.question);
            self.departures.add(Some(departed));
            self.absorb(out);
        }
        self.fences.is_empty()
    }

    /// The client closes a channel. False if that is not done yet: the frame is fed again.
    pub(super) fn finish_channel(&mut self, number: u16, out: &mut Output) -> bool {
        if !self.release_channel(number, State::Finishing, true, out) {
            return false;
        }
        let Some(channel) = self.channels.get_mut(number) else {
            // What it waited for became durable meanwhile, and nothing of it is left but the answer.
            encode::method(out.bytes(), number, &ChannelCloseOk {});
            return true;
        };
        channel.write(out.bytes(), &ChannelCloseOk {});
        if channel.is_released() {
            self.forget_channel(number);
        }
        true
    }

    /// Goes a part of the way to the end of a channel; true if that was the last one. With `wait` nothing is given back before
    /// everything is there that was delivered.
    fn release_channel(&mut self, number: u16, state: State, wait: bool, out: &mut Output) -> bool {
        self.flush();
        let Some(channel) = self.channels.get_mut(number) else {
            return true;
        };
        let held = channel.hold_part(&mut self.fences);
        if channel.consumes() {
            self.absorb(out);
        }
        if !held || wait && !self.fences.is_empty() {
            return false;
        }
        let Some(channel) = self.channels.get_mut(number) else {
            return true;
        };
        let unfinished = channel.assembler.unfinished();
        let done = channel.release_part();
        let departed = std::mem::take(&mut channel.departed);
        if done {
            self.unfinished -= unfinished;
        }
        if !departed.is_empty() {
            // A queue that ends with its last consumer is gone before the client hears that its consumers are.
            if wait {
                let ending = departed.iter().filter(|it| it.queue.is_auto_delete());
                self.fences.extend(ending.map(|it| it.question));
            }
            self.departures.add(departed);
            self.absorb(out);
        }
        if !done || wait && !self.fences.is_empty() {
            return false;
        }
        if let Some(channel) = self.channels.get_mut(number) {
            channel.state = state;
        }
        true
    }

    /// Gives back what the connection holds, a part of it at a time; true if that was the last one. Replies that wait for the log
    /// still wait. With `wait` nothing is given back before everything is there that was delivered.
    pub fn close_channels(&mut self, wait: bool, out: &mut Output) -> bool {
        for number in self.channels.numbers() {
            if !self.release_channel(number, State::Finishing, wait, out) {
                return false;
            }
            if let Some(channel) = self.channels.get(number)
                && channel.is_released()
            {
                self.forget_channel(number);
            }
        }
        true
    }

    /// True if the client's `connection.close` may be answered.
    pub fn is_finished(&self) -> bool {
        self.finishing.is_some() && self.held_replies == 0
    }

    /// When the answer to `connection.close` is not waited for any longer.
    pub fn finish_by(&self) -> Option<Millis> {
        self.finishing.map(|since| since + FINISH)
    }

    /// An exception: closes its channel, or says that the connection must be closed.
    pub(super) fn fail(
        &mut self,
        number: u16,
        exception: Exception,
        out: &mut Output,
        name: &Name,
    ) -> Option<Failure> {
        if exception.closes_connection(number) {
            return Some(Failure {
                exception,
                channel: number,
                lost_step: false,
            });
        }
        if self.failing.iter().any(|(known, _)| *known == number) {
            return None;
        }
        tracing::error!(
            area = "channel",
            "channel error on connection {name} (vhost: '{}', user: '{}'), channel {number}: operation {} caused: {}",
            self.shared.session.vhost(),
            self.shared.session.user().name,
            exception.method,
            exception.reply_text(),
        );
        self.failing.push_back((number, exception));
        self.close_failing(out);
        None
    }

    /// Goes a part of the way to the end of channels that are closed by an exception, which is told at that end.
    pub fn close_failing(&mut self, out: &mut Output) {
        while let Some((number, exception)) = self.failing.pop_front() {
            if !self.release_channel(number, State::Closing, false, out) {
                self.failing.push_front((number, exception));
                return;
            }
            if let Some(channel) = self.channels.get_mut(number) {
                exception.encode_close(number, channel.target(out.bytes()));
            }
        }
    }

    /// Writes the confirms and answers to commits that are due.
    pub fn tell(&mut self, out: &mut Output, name: &Name) {
        for number in std::mem::take(&mut self.news) {
            let Some(channel) = self.channels.get_mut(number) else {
                continue;
            };
            let waited = channel.waiting_replies();
            let told = channel.tell(out.bytes());
            let released = waited - channel.waiting_replies();
            self.held_replies -= released;
            match told {
                // What befalls a transaction closes no connection.
                Err(exception) => drop(self.fail(number, exception, out, name)),
                Ok(()) if released > 0 => self.go_on(number),
                Ok(()) => {}
            }
        }
    }

    /// Writes deliveries until the output has a piece's length, channels in turn.
    pub fn fill(&mut self, out: &mut Output) {
        let limit = out.limit();
        while out.len() < PIECE
            && let Some(number) = self.ready.pop_front()
        {
            let Some(channel) = self.channels.get_mut(number) else {
                continue;
            };
            let more = channel.write_deliveries(out.bytes(), limit, self.shared.now);
            self.late_at = self.late_at.min(channel.next_deadline());
            if more {
                self.ready.push_back(number);
            } else {
                channel.queued = false;
            }
        }
    }

    /// The time, for what is noted with it.
    pub fn set_now(&mut self, now: Millis) {
        self.shared.now = now;
    }
}
