//! A connection, without its socket and without a clock: bytes in, bytes out, and what the broker has for it in between.
//!
//! The stages: [`greeting`] (from the protocol header to `connection.open-ok`), [`open`] with [`events`] (everything after),
//! [`closing`] (our own `connection.close` is out, its answer is awaited; or the client's was answered, and it hangs up
//! next). When it is over, [`departed`] still gives back what other threads were
//! delivering meanwhile.

mod channels;
mod closing;
mod credentials;
mod departed;
mod events;
mod foreign;
mod greeting;
mod incomplete;
#[cfg(test)]
mod instructions;
mod late;
mod open;
#[cfg(test)]
mod stories;

pub use open::EFFORT;

use super::front_end::Amqp;
use crate::accepted;
use crate::connection::{Connection, Done, Millis, Name};
use crate::heartbeat::Due;
use crate::output::Output;
use broker::{Event, Outbox, Pressure};
use closing::{Closing, Remains};
use greeting::Greeting;
use listener::Security;
use open::{Failure, Open};
use protocol::amqp::frame::{HEARTBEAT_FRAME, frame_length};
use protocol::amqp::method::ConnectionCloseOk;
use protocol::amqp::{ReplyCode, encode};
use std::cell::RefCell;
use std::sync::Arc;
use std::task::Waker;

enum Stage {
    Greeting(Box<Greeting>),
    Open(Box<Open>),
    Closing(Closing),
    /// The client closed, with an agreed heartbeat of so many seconds; it is answered once its very many exclusive
    /// queues are gone.
    Leaving(Option<Pressure>, u16),
    /// The client closed and was answered: what it still sends is dropped until it hangs up, or until then.
    Closed(Millis),
    /// Hang up once everything is written.
    Finished,
}

/// One connection.
pub struct AmqpConnection {
    front_end: Arc<Amqp>,
    outbox: Arc<Outbox>,
    name: Name,
    stage: Stage,
    /// What is still to be given back after the end.
    remains: Option<Box<Remains>>,
}

thread_local! {
    /// The events of one turn; their memory is used again by the next.
    static EVENTS: RefCell<Vec<Event>> = const { RefCell::new(Vec::new()) };
}

/// A list of events larger than this is not kept.
const EVENTS_KEPT: usize = 256;

impl AmqpConnection {
    /// A connection that was just accepted.
    pub fn new(front_end: Arc<Amqp>, name: Name, security: Option<Security>, now: Millis) -> Self {
        accepted::log("AMQP", &name, now);
        let greeting = Greeting::new(&front_end, security, now);
        let outbox = Arc::new(Outbox::new());
        Self {
            front_end,
            outbox,
            name,
            stage: Stage::Greeting(Box::new(greeting)),
            remains: None,
        }
    }

    /// Answers the client's `connection.close` once its exclusive queues are gone: a client that connects after that
    /// may declare them.
    fn answer_close(&mut self, waker: &Waker, now: Millis, out: &mut Output) {
        if let Stage::Leaving(clearing, heartbeat_s) = &self.stage
            && clearing.as_ref().is_none_or(|clearing| clearing.poll(waker))
        {
            self.stage = Stage::Closed(closing::hang_up_by(now, *heartbeat_s));
            encode::method(out.bytes(), 0, &ConnectionCloseOk {});
        }
    }

    fn events(&mut self, events: &mut Vec<Event>, now: Millis, out: &mut Output) {
        if matches!(self.stage, Stage::Leaving(..) | Stage::Closed(_))
            && events.iter().any(|event| matches!(event, Event::Close(_)))
        {
            // The node stops: who was answered is not waited for.
            self.stage = Stage::Finished;
        }
        match (&mut self.stage, &mut self.remains) {
            (Stage::Open(open), _) => open.events(events, out),
            (_, Some(remains)) => remains.events(events),
            (Stage::Greeting(greeting), None) => {
                let mut opened = None;
                for event in events.drain(..) {
                    match event {
                        Event::Close(reason) => greeting.close(&reason, now, out),
                        Event::Login(found) => {
                            greeting.answered(found, &self.front_end, &self.name, now, out)
                        }
                        Event::Permitted => {
                            opened = greeting.let_in(&self.front_end, &self.outbox, &self.name, now, out);
                        }
                        _ => {}
                    }
                }
                if let Some(open) = opened {
                    self.stage = Stage::Open(open);
                }
            }
            _ => events.clear(),
        }
    }

    /// Closes the connection because of an error, or because the broker wants it.
    fn close(&mut self, failure: &Failure, now: Millis, out: &mut Output) {
        let label = match &self.stage {
            Stage::Open(open) => label(&open.shared.session),
            _ => String::new(),
        };
        let text = failure.exception.reply_text();
        // A node that stops, or an operator, is no error of the client's.
        if failure.exception.code == ReplyCode::ConnectionForced {
            tracing::info!(
                area = "connection",
                "closing AMQP connection {} ({label}): {text}",
                self.name
            );
        } else {
            tracing::error!(
                area = "connection",
                "error on AMQP connection {} ({label}), channel {}: operation {} caused: {text}",
                self.name,
                failure.channel,
                failure.exception.method,
            );
        }
        let frame_max = match &self.stage {
            Stage::Open(open) => open.shared.tuning.frame_max,
            _ => 0,
        };
        self.leave(
            now,
            Stage::Closing(Closing::new(now, frame_max, failure.lost_step)),
        );
        failure.exception.encode_close(0, out.bytes());
    }

    /// Leaves the open stage: channels give back what they hold, then exclusive queues go. What is very much goes back
    /// in parts, one in each turn. Some: very many queues are still going.
    fn leave(&mut self, now: Millis, next: Stage) -> Option<Pressure> {
        if let Stage::Open(mut open) = std::mem::replace(&mut self.stage, next) {
            open.set_now(now);
            open.flush();
            self.remains = Some(Box::new(Remains::new(open)));
        }
        self.give_back(now)
    }

    /// What remains is over once nothing is waited for any more.
    fn forget_remains(&mut self, now: Millis) {
        if self.remains.as_ref().is_some_and(|remains| remains.is_over(now)) {
            self.remains = None;
        }
    }

    /// Goes on giving back. Some: everything is back, and exclusive queues are still going.
    fn give_back(&mut self, now: Millis) -> Option<Pressure> {
        let remains = self.remains.as_mut().filter(|remains| remains.holds())?;
        if remains.give_back(now) {
            return None;
        }
        let clearing = remains.clearing();
        if remains.until().is_none() {
            self.remains = None;
        }
        clearing
    }

    /// True if the client has nothing more to expect.
    #[cfg(test)]
    pub(super) fn is_answered(&self) -> bool {
        matches!(self.stage, Stage::Closed(_) | Stage::Finished)
    }
}

impl Connection for AmqpConnection {
    fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    fn wants_input(&self, out: &Output) -> bool {
        match &self.stage {
            Stage::Greeting(greeting) => greeting.wants_input(),
            Stage::Open(open) => open.wants_input(out.len()),
            Stage::Closing(_) | Stage::Leaving(..) | Stage::Closed(_) => true,
            Stage::Finished => false,
        }
    }

    fn is_tired(&self) -> bool {
        matches!(&self.stage, Stage::Open(open) if open.is_tired())
    }

    fn is_giving_back(&self) -> bool {
        match &self.stage {
            Stage::Open(open) => !open.failing.is_empty(),
            _ => self.remains.as_ref().is_some_and(|remains| remains.holds()),
        }
    }

    fn received(&mut self, bytes: usize) {
        match &mut self.stage {
            Stage::Open(open) => open.received(bytes as u64),
            Stage::Greeting(greeting) => greeting.traffic.received(bytes as u64),
            _ => {}
        }
    }

    fn sent(&mut self, bytes: usize) {
        match &mut self.stage {
            Stage::Open(open) => open.sent(bytes as u64),
            Stage::Greeting(greeting) => greeting.traffic.sent(bytes as u64),
            _ => {}
        }
    }

    fn take_done(&mut self) -> Done {
        let published = match &mut self.stage {
            Stage::Open(open) => std::mem::take(&mut open.published),
            _ => false,
        };
        if published { Done::Published } else { Done::Other }
    }

    fn input(&mut self, bytes: &[u8], now: Millis, out: &mut Output) -> usize {
        let mut taken = 0;
        loop {
            let rest = &bytes[taken..];
            match &mut self.stage {
                Stage::Greeting(greeting) => {
                    let (length, step) =
                        greeting.input(rest, &self.front_end, &self.outbox, self.name, now, out);
                    taken += length;
                    match step {
                        greeting::Step::Stay => return taken,
                        greeting::Step::Open(open) => self.stage = Stage::Open(open),
                        greeting::Step::Closed => self.stage = Stage::Closed(greeting.until()),
                        greeting::Step::Finished => self.stage = Stage::Finished,
                    }
                }
                Stage::Open(open) => {
                    open.set_now(now);
                    let (length, failure) = open.input(rest, out, &self.name);
                    taken += length;
                    let Some(failure) = failure else { return taken };
                    self.close(&failure, now, out);
                }
                Stage::Closing(closing) => {
                    let (length, done) = closing.input(rest, out);
                    if done {
                        self.stage = Stage::Finished;
                    }
                    return taken + length;
                }
                Stage::Leaving(..) | Stage::Closed(_) | Stage::Finished => return bytes.len(),
            }
        }
    }

    fn frame_length(&self, beginning: &[u8]) -> Option<usize> {
        frame_length(beginning)
    }

    fn turn(&mut self, waker: &Waker, now: Millis, out: &mut Output) {
        if let Stage::Open(open) = &mut self.stage {
            open.set_now(now);
            open.flush();
            open.incomplete.count(open.unfinished);
            open.effort = 0;
        }
        EVENTS.with_borrow_mut(|events| {
            self.outbox.take(events, waker);
            self.events(events, now, out);
            if events.capacity() > EVENTS_KEPT {
                *events = Vec::new();
            }
        });
        if self.remains.is_some() {
            self.give_back(now);
            self.forget_remains(now);
        }
        if matches!(self.stage, Stage::Leaving(..)) {
            self.answer_close(waker, now, out);
        }
        let Stage::Open(open) = &mut self.stage else {
            return;
        };
        // Whether there is something is asked first, here and below: taking nothing costs as much as taking an exception.
        if open.refused.is_some()
            && let Some((number, exception)) = open.refused.take()
            && let Some(failure) = open.fail(number, exception, out, &self.name)
        {
            return self.close(&failure, now, out);
        }
        open.flush();
        open.poll_pressure(waker);
        open.show();
        open.tell_of_alarm_elsewhere(out);
        if !open.failing.is_empty() {
            open.close_failing(out);
        }
        open.tell(out, &self.name);
        open.fill(out);
        if open.close_request.is_some()
            && let Some(exception) = open.close_request.take()
        {
            self.close(
                &Failure {
                    exception,
                    channel: 0,
                    lost_step: false,
                },
                now,
                out,
            );
        } else if open.is_finished() {
            tracing::info!(
                area = "connection",
                "closing AMQP connection {} ({})",
                self.name,
                label(&open.shared.session)
            );
            let heartbeat_s = open.shared.tuning.heartbeat_s;
            let clearing = self.leave(now, Stage::Finished);
            self.stage = Stage::Leaving(clearing, heartbeat_s);
            self.answer_close(waker, now, out);
        }
    }

    fn fill(&mut self, out: &mut Output) {
        if let Stage::Open(open) = &mut self.stage {
            open.fill(out);
        }
    }

    fn next_tick(&self) -> Option<Millis> {
        let stage = match &self.stage {
            Stage::Greeting(greeting) => Some(greeting.until()),
            Stage::Open(open) => open
                .heartbeat
                .next()
                .into_iter()
                .chain(open.finish_by())
                .chain(open.held_until)
                .chain((open.late_at < Millis::MAX).then_some(open.late_at))
                .chain(open.incomplete.look_at())
                .chain((open.ends_at < Millis::MAX).then_some(open.ends_at))
                .min(),
            Stage::Closing(closing) => Some(closing.until()),
            Stage::Leaving(..) => None,
            Stage::Closed(until) => Some(*until),
            Stage::Finished => None,
        };
        let remains = self.remains.as_ref().filter(|remains| !remains.holds());
        let remains = remains.and_then(|remains| remains.until());
        stage.into_iter().chain(remains).min()
    }

    fn tick(&mut self, now: Millis, out: &mut Output) {
        self.forget_remains(now);
        match &mut self.stage {
            Stage::Greeting(greeting) if now >= greeting.until() && greeting.is_refusing() => {
                greeting.refuse(now, out);
            }
            Stage::Greeting(greeting) if now >= greeting.until() => {
                greeting.overdue(&self.name);
                self.stage = Stage::Finished;
            }
            Stage::Open(open) if open.finish_by().is_some_and(|until| now >= until) => {
                self.hung_up(
                    "what the client declared did not become durable in time",
                    now,
                    out,
                );
            }
            Stage::Open(open) => {
                open.time_out_pressure(now);
                open.set_now(now);
                open.take_back_late(out, &self.name);
                open.end_with_credentials();
                open.end_incomplete();
                let deaf = !open.wants_input(out.len());
                match open.heartbeat.due(now, deaf) {
                    Due::Nothing => {}
                    // What cannot be written now is written later; one heartbeat in the queue is enough.
                    Due::Send if out.is_empty() => out.bytes().extend_from_slice(&HEARTBEAT_FRAME),
                    Due::Send => {}
                    Due::Dead => {
                        let interval = open.shared.tuning.heartbeat_s;
                        self.hung_up(
                            &format!("missed heartbeats from client, timeout: {interval}s"),
                            now,
                            out,
                        );
                    }
                }
            }
            Stage::Closing(closing) if now >= closing.until() => self.stage = Stage::Finished,
            Stage::Closed(until) if now >= *until => self.stage = Stage::Finished,
            _ => {}
        }
    }

    fn hung_up(&mut self, why: &str, now: Millis, out: &mut Output) {
        match &self.stage {
            Stage::Open(open) => {
                tracing::warn!(
                    area = "connection",
                    "closing AMQP connection {} ({}): {why}",
                    self.name,
                    label(&open.shared.session)
                );
                self.leave(now, Stage::Finished);
            }
            Stage::Greeting(greeting) => greeting.hung_up(&self.name, why),
            Stage::Closing(_) | Stage::Leaving(..) | Stage::Closed(_) | Stage::Finished => {}
        }
        self.stage = Stage::Finished;
        out.clear();
    }

    fn is_finished(&self) -> bool {
        matches!(self.stage, Stage::Finished)
    }

    fn is_over(&self) -> bool {
        self.is_finished() && self.remains.is_none()
    }
}

impl Drop for AmqpConnection {
    fn drop(&mut self) {
        self.leave(0, Stage::Finished);
        while self.is_giving_back() {
            self.give_back(0);
        }
    }
}

/// Whose connection it is, for logs.
fn label(session: &broker::Session) -> String {
    format!("vhost: '{}', user: '{}'", session.vhost(), session.user().name)
}
