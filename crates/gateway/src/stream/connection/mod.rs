//! A connection, without its socket and without a clock: bytes in, bytes out, and what broker and streams have for it in
//! between.
//!
//! The stages: [`opening`] with [`login`] (until the virtual host is open), [`open`] with [`requests`], [`publishing`] and
//! [`reading`] (everything after), then the end: our `Close` is out and its answer is awaited, or the client's was answered and
//! it hangs up next.

mod login;
mod open;
mod opening;
mod publishing;
mod reading;
mod requests;

use super::front_end::Stream;
use super::refusal;
use crate::accepted;
use crate::connection::{Connection, Done, Millis, Name};
use crate::heartbeat::Due;
use crate::output::{BACKLOG, Output};
use broker::{CloseReason, Event as BrokerEvent, Outbox};
use listener::Security;
use open::Open;
use opening::Opening;
use protocol::stream::connection::Failure;
use protocol::stream::frame::{HEARTBEAT_FRAME, frame_length};
use protocol::stream::request::Close;
use protocol::stream::{Connection as Machine, Event, Offer};
use std::sync::Arc;
use std::task::Waker;

/// How long the answer to our `Close` is waited for, and a client that closed may take to hang up.
const CLOSING_TIMEOUT: Millis = 10_000;

enum Stage {
    Opening(Box<Opening>),
    Open(Box<Open>),
    /// Both know that it is over; until then at the latest.
    Closing(Millis),
    /// Hang up once everything is written.
    Finished,
}

/// A connection of a client of the stream protocol.
pub struct StreamConnection {
    front_end: Arc<Stream>,
    outbox: Arc<Outbox>,
    name: Name,
    machine: Machine,
    stage: Stage,
}

impl StreamConnection {
    /// A connection that was just accepted.
    pub fn new(front_end: Arc<Stream>, name: Name, security: Option<Security>, now: Millis) -> Self {
        accepted::log(super::PROTOCOL.name, &name, now);
        let limits = front_end.broker.limits().clone();
        let until = now + limits.handshake_ms;
        let offer = Offer {
            properties: opening::server_properties(&front_end),
            mechanisms: opening::mechanisms(&front_end.options, security.is_some()),
            frame_max: front_end.options.frame_max,
            heartbeat_s: front_end.options.heartbeat_s,
        };
        Self {
            machine: Machine::new(offer, limits),
            stage: Stage::Opening(Box::new(Opening::new(security, until))),
            outbox: Arc::default(),
            front_end,
            name,
        }
    }

    /// True if it knows of an alarm.
    #[cfg(test)]
    pub fn is_alarmed(&self) -> bool {
        matches!(&self.stage, Stage::Open(open) if open.alarm)
    }

    fn event(&mut self, event: Event<'_>, now: Millis, out: &mut Output) {
        match (event, &mut self.stage) {
            (Event::Failed(failure), _) => self.failed(&failure, now),
            (Event::Closed, _) => {
                self.leave();
                self.stage = Stage::Closing(now + CLOSING_TIMEOUT);
            }
            (Event::Authenticate(credentials), Stage::Opening(opening)) => {
                let found = opening
                    .login
                    .ask(&credentials, &self.front_end, &self.outbox, &self.name);
                if let Some(found) = found {
                    self.login_decided(found, now, out);
                }
            }
            (Event::Authenticate(credentials), Stage::Open(open)) => {
                let found = open
                    .login
                    .ask(&credentials, &self.front_end, &self.outbox, &self.name);
                if let Some(found) = found {
                    self.login_decided(found, now, out);
                }
            }
            (Event::Open { vhost }, Stage::Opening(opening)) => {
                opening.entering = Some(vhost);
                if !opening.must_ask(&self.front_end, &self.outbox) {
                    self.enter(now, out);
                }
            }
            (
                Event::Request {
                    correlation_id,
                    request,
                },
                Stage::Open(open),
            ) => open.request(correlation_id, &request, out),
            (
                Event::Answer {
                    correlation_id,
                    answer,
                },
                Stage::Open(open),
            ) => open.updated(correlation_id, &answer),
            (Event::Command(command), Stage::Open(open)) => open.command(&command, out),
            _ => {}
        }
    }

    fn failed(&mut self, failure: &Failure, now: Millis) {
        tracing::error!(
            area = "connection",
            "error on stream connection {}: {failure}",
            self.name
        );
        self.leave();
        self.stage = match failure.told {
            true => Stage::Closing(now + CLOSING_TIMEOUT),
            false => Stage::Finished,
        };
    }

    /// Closes from our side, with a reason that is no error of the client's.
    fn close(&mut self, reason: &CloseReason, now: Millis, out: &mut Output) {
        let text = reason.to_string();
        tracing::info!(
            area = "connection",
            "closing stream connection {}: {text}",
            self.name
        );
        if matches!(reason, CloseReason::Shutdown | CloseReason::Maintenance) {
            // As RabbitMQ: clients take a word for a farewell that they wanted, and do not come back after it.
            self.leave();
            self.stage = Stage::Finished;
            return;
        }
        let close = Close {
            code: refusal::of_close(reason).number(),
            reason: text.as_str().into(),
        };
        self.leave();
        self.stage = match self.machine.close(&close, out.bytes()) {
            true => Stage::Closing(now + CLOSING_TIMEOUT),
            false => Stage::Finished,
        };
    }

    /// The session ends; what it had open goes with it.
    fn leave(&mut self) {
        if let Stage::Open(mut open) = std::mem::replace(&mut self.stage, Stage::Finished) {
            // What came with the end is published.
            open.flush();
            let session = open.session.clone();
            drop(open);
            session.close();
        }
    }

    fn broker_event(&mut self, event: BrokerEvent, now: Millis, out: &mut Output) {
        match (event, &mut self.stage) {
            (BrokerEvent::Close(reason), Stage::Opening(_) | Stage::Open(_)) => self.close(&reason, now, out),
            // The node stops: who was answered is not waited for.
            (BrokerEvent::Close(_), _) => self.stage = Stage::Finished,
            (BrokerEvent::Login(found), Stage::Opening(_) | Stage::Open(_)) => {
                self.login_decided(found, now, out);
            }
            (BrokerEvent::Permitted, Stage::Opening(_)) => self.enter(now, out),
            (BrokerEvent::Alarm(alarm), Stage::Open(open)) => open.alarm = alarm.is_some(),
            (event, Stage::Open(open)) => open.streams.event(event),
            _ => {}
        }
    }
}

impl Connection for StreamConnection {
    fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    fn wants_input(&self, out: &Output) -> bool {
        out.len() <= BACKLOG
            && match &self.stage {
                Stage::Opening(opening) => opening.wants_input(),
                Stage::Open(open) => open.wants_input(),
                Stage::Closing(_) => true,
                Stage::Finished => false,
            }
    }

    fn is_tired(&self) -> bool {
        false
    }

    fn is_giving_back(&self) -> bool {
        false
    }

    fn received(&mut self, bytes: usize) {
        if let Stage::Open(open) = &mut self.stage {
            open.received(bytes as u64);
        }
    }

    fn sent(&mut self, bytes: usize) {
        if let Stage::Open(open) = &mut self.stage {
            open.sent(bytes as u64);
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
        while self.wants_input(out) {
            if let Stage::Open(open) = &mut self.stage {
                open.now = now;
            }
            let (length, event) = self.machine.advance(&bytes[taken..], out.bytes());
            taken += length;
            match event {
                Some(event) => self.event(event, now, out),
                None => break,
            }
        }
        if matches!(self.stage, Stage::Finished) {
            return bytes.len();
        }
        taken
    }

    fn frame_length(&self, beginning: &[u8]) -> Option<usize> {
        frame_length(beginning)
    }

    fn turn(&mut self, waker: &Waker, now: Millis, out: &mut Output) {
        if let Stage::Open(open) = &mut self.stage {
            open.now = now;
            open.flush();
        }
        let mut events = Vec::new();
        self.outbox.take(&mut events, waker);
        for event in events {
            self.broker_event(event, now, out);
        }
        if let Stage::Open(open) = &mut self.stage {
            open.take_told(out);
            open.show();
            open.fill(out);
        }
    }

    fn fill(&mut self, out: &mut Output) {
        if let Stage::Open(open) = &mut self.stage {
            open.fill(out);
        }
    }

    fn next_tick(&self) -> Option<Millis> {
        match &self.stage {
            Stage::Opening(opening) => Some(opening.until),
            Stage::Open(open) => open.next_tick(),
            Stage::Closing(until) => Some(*until),
            Stage::Finished => None,
        }
    }

    fn tick(&mut self, now: Millis, out: &mut Output) {
        match &mut self.stage {
            Stage::Opening(opening) if now >= opening.until => self.opening_over(now, out),
            Stage::Open(open) => {
                open.now = now;
                if open.refusing.is_some() && now >= open.refuse_at {
                    return self.refuse_login(now, out);
                }
                if now >= open.ends_at {
                    return self.close(&CloseReason::CredentialsExpired, now, out);
                }
                if open.is_unanswered() {
                    return self.hung_up("the client does not answer a request", now, out);
                }
                let deaf = out.len() > BACKLOG || !open.wants_input();
                match open.heartbeat.due(now, deaf) {
                    // What cannot be written now is written later; one heartbeat in the queue is enough.
                    Due::Send if out.is_empty() => out.bytes().extend_from_slice(&HEARTBEAT_FRAME),
                    Due::Send | Due::Nothing => {}
                    Due::Dead => self.hung_up("missed heartbeats from client", now, out),
                }
            }
            Stage::Closing(until) if now >= *until => self.stage = Stage::Finished,
            _ => {}
        }
    }

    fn hung_up(&mut self, why: &str, _: Millis, out: &mut Output) {
        if matches!(self.stage, Stage::Open(_)) {
            tracing::warn!(
                area = "connection",
                "closing stream connection {}: {why}",
                self.name
            );
        }
        self.leave();
        self.stage = Stage::Finished;
        out.clear();
    }

    fn is_finished(&self) -> bool {
        matches!(self.stage, Stage::Finished)
    }

    fn is_over(&self) -> bool {
        self.is_finished()
    }
}

impl Drop for StreamConnection {
    fn drop(&mut self) {
        self.leave();
    }
}
