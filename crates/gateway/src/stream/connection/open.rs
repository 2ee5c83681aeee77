//! A connection whose virtual host is open.

use super::login::{Login, Refusing};
use super::publishing::Publishers;
use super::reading::Subscriptions;
use super::requests::{Update, Waiting};
use crate::connection::Millis;
use crate::heartbeat::Heartbeat;
use crate::output::Output;
use crate::stream::inbox::{Inbox, Told};
use crate::stream::options::Options;
use crate::stream::streams::Streams;
use broker::{Reason, Session, stats};
use protocol::stream::{Command, ResponseCode};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A connection whose virtual host is open. The streams are dropped last.
pub struct Open {
    pub(super) publishers: Publishers,
    pub(super) subscriptions: Subscriptions,
    pub(super) streams: Box<dyn Streams>,
    pub(super) session: Arc<Session>,
    pub(super) shown: Arc<stats::Connection>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) login: Login,
    pub(super) heartbeat: Heartbeat,
    /// The largest frame that the client takes, in bytes; 0 is no limit.
    pub(super) frame_max: u32,
    /// New credentials are refused, and the client will be told at this time.
    pub(super) refusing: Option<Refusing>,
    pub(super) refuse_at: Millis,
    /// When the credentials end; mostly never.
    pub(super) ends_at: Millis,
    /// A request that waits for its answer. Nothing else is taken meanwhile: what a client asks later may rest on it.
    pub(super) waiting: Option<Waiting>,
    /// What clients were asked, by the number of the request.
    pub(super) updates: BTreeMap<u32, Update>,
    pub(super) next_update: u32,
    pub(super) request_timeout_ms: Millis,
    /// The client takes the second version of deliveries.
    pub(super) says_committed: bool,
    /// Streams that are gone, while the client waits to hear that it has deleted them itself.
    gone: Vec<Arc<str>>,
    /// Memory or disk are short: nobody may publish.
    pub(super) alarm: bool,
    /// What operators were shown last.
    held_up: (stats::State, Option<Reason>),
    /// It published since somebody asked.
    pub(super) published: bool,
    pub(super) now: Millis,
    told: Vec<Told>,
    number: u64,
}

impl Open {
    /// With nothing open in it.
    #[allow(
        clippy::too_many_arguments,
        reason = "each is a different thing, made elsewhere"
    )]
    pub fn new(
        session: Arc<Session>,
        shown: Arc<stats::Connection>,
        streams: Box<dyn Streams>,
        inbox: Arc<Inbox>,
        login: Login,
        options: &Options,
        heartbeat_s: u32,
        now: Millis,
    ) -> Self {
        let heartbeat_s = u16::try_from(heartbeat_s).unwrap_or(u16::MAX);
        let mut open = Self {
            publishers: Publishers::new(options.initial_credits, options.credits_required_for_unblocking),
            subscriptions: Subscriptions::default(),
            streams,
            session,
            shown,
            inbox,
            login,
            heartbeat: Heartbeat::new(heartbeat_s, now),
            frame_max: 0,
            refusing: None,
            refuse_at: 0,
            ends_at: Millis::MAX,
            waiting: None,
            updates: BTreeMap::new(),
            next_update: 0,
            request_timeout_ms: options.request_timeout_ms,
            says_committed: false,
            gone: Vec::new(),
            alarm: false,
            held_up: (stats::State::Running, None),
            published: false,
            now,
            told: Vec::new(),
            number: 0,
        };
        open.watch_credentials();
        open
    }

    /// A number that nothing of this connection had before.
    pub(super) fn number(&mut self) -> u64 {
        self.number += 1;
        self.number
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

    /// True if bytes may be fed. Not while too much is unconfirmed, nor, if it publishes, during an alarm.
    pub fn wants_input(&self) -> bool {
        self.waiting.is_none()
            && self.refusing.is_none()
            && !self.login.is_asked()
            && !self.publishers.is_blocked()
            && !self.is_held_by_alarm()
    }

    fn is_held_by_alarm(&self) -> bool {
        self.alarm && !self.publishers.is_empty()
    }

    /// Shows operators whether it is held up, and why.
    pub fn show(&mut self) {
        let held_up = match (self.is_held_by_alarm(), self.publishers.is_blocked()) {
            (true, _) => (stats::State::Blocked, Some(Reason::Alarm)),
            (false, true) => (stats::State::Flow, Some(Reason::Sync)),
            (false, false) => (stats::State::Running, None),
        };
        if held_up != self.held_up {
            self.held_up = held_up;
            self.shown.set_state(held_up.0);
            self.shown.held().change(held_up.1, self.session.now_ms());
        }
    }

    /// Hands on what was published.
    pub fn flush(&mut self) {
        self.publishers.flush();
        self.streams.flush();
    }

    /// Does what the streams have for it.
    pub fn take_told(&mut self, out: &mut Output) {
        let mut all = std::mem::take(&mut self.told);
        self.inbox.take(&mut all);
        for told in all.drain(..) {
            match told {
                Told::Answer { question, answer } => self.answered(question, answer, out),
                Told::Confirmed { publisher, ids } => {
                    self.publishers
                        .confirmed(publisher, &ids, self.frame_max, out.bytes());
                }
                Told::Rejected { publisher, ids, why } => {
                    self.publishers.rejected(publisher, &ids, why, out.bytes());
                }
                Told::Readable(reader) => self.subscriptions.readable(reader),
                Told::Gone { stream } => self.gone.push(stream),
                Told::Active { reader, active } => self.activate(reader, active, out),
            }
        }
        self.told = all;
        if self.waiting.is_none() {
            for stream in std::mem::take(&mut self.gone) {
                self.stream_is_gone(&stream, out);
                self.publishers.give_up(&stream);
            }
        }
    }

    /// Whoever published to the stream or read it, does so no more, and is told.
    pub(super) fn stream_is_gone(&mut self, stream: &str, out: &mut Output) {
        let published = self.publishers.forget_stream(stream);
        let read = self.subscriptions.forget_stream(stream, &mut *self.streams);
        if published || read {
            Command::MetadataUpdate {
                code: ResponseCode::StreamNotAvailable,
                stream: stream.into(),
            }
            .encode(out.bytes());
        }
    }

    /// The user has shown new credentials: what they do not permit any more ends.
    pub fn rights_changed(&mut self, out: &mut Output) {
        self.watch_credentials();
        let mut lost = self.publishers.streams();
        lost.retain(|stream| self.streams.writable(stream).is_err());
        let mut read = self.subscriptions.streams();
        read.retain(|stream| self.streams.readable(stream).is_err());
        lost.extend(read);
        lost.sort();
        lost.dedup();
        for stream in lost {
            self.stream_is_gone(&stream, out);
        }
    }

    fn watch_credentials(&mut self) {
        let remaining = self.session.remaining();
        self.ends_at = remaining.map_or(Millis::MAX, |left| self.now + left.as_millis() as Millis);
    }

    /// When there is something to be done.
    pub fn next_tick(&self) -> Option<Millis> {
        let asked = self.updates.values().map(|update| update.until).min();
        let ends = (self.ends_at < Millis::MAX).then_some(self.ends_at);
        let refuse = self.refusing.as_ref().map(|_| self.refuse_at);
        let all = [self.heartbeat.next(), asked, ends, refuse];
        all.into_iter().flatten().min()
    }
}
