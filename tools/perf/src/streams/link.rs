//! One connection while a load runs: frames in, frames out, and nobody waits.

use super::consumer::{Consumer, Subscription};
use super::opener::{Group, Publishing, Ready};
use super::producer::{Producer, Turn};
use super::wire::{Agreed, LARGEST_FRAME, Opened};
use crate::client::Transport;
use crate::clock;
use crate::failure::Failure;
use protocol::stream::frame::HEARTBEAT_FRAME;
use protocol::stream::request::{Close, QueryOffset};
use protocol::stream::{Answer, Command, Content, Key, OffsetSpec, Request, ResponseCode, next_frame};
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, RawFd};

/// What one read may bring, in bytes.
const READ: usize = 256 * 1024;
/// Who has nothing to read keeps no more than this, in bytes.
const KEPT: usize = 16 * 1024;
const NS_A_SECOND: u64 = 1_000_000_000;

/// Producers and consumers of a thread.
pub struct Parties {
    pub producers: Vec<Producer>,
    pub consumers: Vec<Consumer>,
    /// Producers that may go on, and consumers that have something to take.
    pub woken: Vec<Party>,
}

/// One of them, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    Producer(usize),
    Consumer(usize),
}

/// How a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Open,
    /// We have said goodbye.
    Closing,
    /// It is over.
    Closed,
    /// It is being opened again.
    Lost,
}

/// A single active consumer that became active, and asks how far the one before it was.
struct Question {
    ours: u32,
    subscription: u8,
    /// The number of the broker's request.
    theirs: u32,
}

/// See the module.
pub struct Link {
    number: usize,
    name: String,
    /// None while it is being opened again.
    transport: Option<Transport>,
    agreed: Agreed,
    /// The beginning of a frame.
    left: Vec<u8>,
    /// What is to be written.
    pub out: Vec<u8>,
    written: usize,
    pub readable: bool,
    pub writable: bool,
    pub state: State,
    /// The broker has moved a stream.
    pub moved: bool,
    /// Who publishes under each number: a producer and which of its streams it is.
    publishers: Vec<(usize, usize, Publishing)>,
    subscriptions: Vec<Subscription>,
    questions: Vec<Question>,
    correlation: u32,
    /// When something was read and written last.
    heard: u64,
    said: u64,
}

impl Link {
    /// A link for what was opened; `publishers` says for each number which producer it is, and which of its streams.
    pub fn new(
        number: usize,
        name: String,
        ready: Ready,
        publishers: Vec<(usize, usize, Publishing)>,
        now: u64,
    ) -> Self {
        let Opened {
            transport,
            agreed,
            unread,
        } = ready.opened;
        Self {
            number,
            name,
            transport: Some(transport),
            agreed,
            left: unread,
            out: Vec::new(),
            written: 0,
            readable: true,
            writable: true,
            state: State::Open,
            moved: false,
            publishers,
            subscriptions: ready.subscriptions,
            questions: Vec::new(),
            // Above all that set-up has used.
            correlation: 1 << 16,
            heard: now,
            said: now,
        }
    }

    /// The socket, to be watched.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.transport.as_ref().map(|it| it.as_fd().as_raw_fd())
    }

    /// What is to be written, in bytes.
    pub fn backlog(&self) -> usize {
        self.out.len() - self.written
    }

    /// The largest frame that may be sent, in bytes without those of its size.
    pub fn frame_max(&self) -> usize {
        match self.agreed.frame_max {
            0 => LARGEST_FRAME as usize,
            size => size as usize,
        }
    }

    /// A subscription with the place where it writes.
    pub fn subscription(&mut self, id: u8) -> Option<(&mut Subscription, &mut Vec<u8>)> {
        let it = self.subscriptions.get_mut(usize::from(id))?;
        Some((it, &mut self.out))
    }

    /// Reads once and does what came.
    ///
    /// # Errors
    /// If the connection is gone.
    pub fn receive(
        &mut self,
        scratch: &mut Vec<u8>,
        parties: &mut Parties,
        turn: &mut Turn<'_>,
    ) -> Result<(), Failure> {
        let Some(transport) = &mut self.transport else {
            return Ok(());
        };
        let left = self.left.len();
        if scratch.len() < left + READ {
            scratch.resize(left + READ, 0);
        }
        scratch[..left].copy_from_slice(&self.left);
        let read = match transport.read(&mut scratch[left..]) {
            Ok(0) => {
                return Err(Failure::Lost(format!(
                    "the broker closed the connection {}",
                    self.name
                )));
            }
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.readable = false;
                0
            }
            Err(error) => return Err(self.lost(&error)),
        };
        if read > 0 {
            turn.counted.read += read as u64;
            // What came may have been sent since the turn began.
            turn.now = clock::now();
            self.heard = turn.now;
        }
        let mut bytes = &scratch[..left + read];
        while let Some((frame, length)) =
            next_frame(bytes, LARGEST_FRAME).map_err(|error| Failure::Lost(error.to_string()))?
        {
            let command = Command::decode(&frame).map_err(|_| {
                Failure::Lost(format!(
                    "the broker sent a frame with key {:#x} that can't be read",
                    frame.key
                ))
            })?;
            self.obey(&command, parties, turn)?;
            bytes = &bytes[length..];
        }
        self.left.clear();
        self.left.extend_from_slice(bytes);
        if bytes.is_empty() && self.left.capacity() > KEPT {
            self.left = Vec::new();
        }
        Ok(())
    }

    fn obey(
        &mut self,
        command: &Command<'_>,
        parties: &mut Parties,
        turn: &mut Turn<'_>,
    ) -> Result<(), Failure> {
        match command {
            Command::PublishConfirm {
                publisher_id,
                publishing_ids,
            } => {
                if let Some((producer, route, _)) = self.publishers.get(usize::from(*publisher_id)) {
                    parties.producers[*producer].confirmed(*route, publishing_ids.iter(), turn);
                    parties.woken.push(Party::Producer(*producer));
                }
            }
            Command::PublishError { publisher_id, errors } => {
                if let Some((producer, route, _)) = self.publishers.get(usize::from(*publisher_id)) {
                    parties.producers[*producer].refused(*route, errors.iter(), turn);
                    parties.woken.push(Party::Producer(*producer));
                }
            }
            Command::Deliver {
                subscription_id,
                chunk,
                ..
            } => {
                let number = self.number;
                let Some((it, out)) = self.subscription(*subscription_id) else {
                    return Ok(());
                };
                let consumer = it.consumer;
                let taken = parties.consumers[consumer].chunk(chunk, number, it, out, turn);
                parties.woken.push(Party::Consumer(consumer));
                if let Err(error) = taken {
                    return Err(Failure::Lost(format!(
                        "the broker sent a chunk that is damaged: {error}"
                    )));
                }
            }
            Command::MetadataUpdate { code, stream } => {
                self.moved = true;
                return Err(Failure::Lost(format!(
                    "the stream '{stream}' is not where it was: {}",
                    code.text()
                )));
            }
            Command::CreditError { code, .. } => {
                turn.shared.tell(format!(
                    "The broker refused a credit on {}: {}",
                    self.name,
                    code.text()
                ));
            }
            Command::Request {
                correlation_id,
                request,
            } => return self.asked(*correlation_id, request),
            Command::Answer {
                correlation_id,
                answer,
            } => self.answered(*correlation_id, answer, turn),
            Command::Heartbeat | Command::Tune { .. } => {}
            // Only clients say these.
            Command::Publish(_) | Command::Credit { .. } | Command::StoreOffset { .. } => {}
        }
        Ok(())
    }

    /// The broker asks something.
    fn asked(&mut self, theirs: u32, request: &Request<'_>) -> Result<(), Failure> {
        match request {
            Request::Close(close) => {
                let answer = Answer::code(Key::Close, ResponseCode::Ok);
                Command::Answer {
                    correlation_id: theirs,
                    answer,
                }
                .encode(&mut self.out);
                Err(Failure::Lost(format!(
                    "the broker closed the connection {}: {} {}",
                    self.name, close.code, close.reason
                )))
            }
            Request::ConsumerUpdate(update) => {
                self.activity(theirs, update.subscription_id, update.active);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A single active consumer becomes the active one, or is it no more.
    fn activity(&mut self, theirs: u32, id: u8, active: bool) {
        let Some(it) = self.subscriptions.get_mut(usize::from(id)) else {
            return;
        };
        match &it.name {
            Some(name) if active => {
                self.correlation += 1;
                let request = QueryOffset {
                    reference: name.as_str().into(),
                    stream: it.stream.as_str().into(),
                };
                Command::Request {
                    correlation_id: self.correlation,
                    request: request.into(),
                }
                .encode(&mut self.out);
                self.questions.push(Question {
                    ours: self.correlation,
                    subscription: id,
                    theirs,
                });
            }
            _ => {
                it.store(&mut self.out);
                self.begin_at(theirs, active.then_some(id));
            }
        }
    }

    /// Answers a change of activity: with where to begin, if this subscription is active.
    fn begin_at(&mut self, theirs: u32, active: Option<u8>) {
        let from: Option<OffsetSpec> = active
            .and_then(|id| self.subscriptions.get(usize::from(id)))
            .map(|it| it.from);
        let answer = Answer::ok(Key::ConsumerUpdate, Content::From(from));
        Command::Answer {
            correlation_id: theirs,
            answer,
        }
        .encode(&mut self.out);
    }

    fn answered(&mut self, correlation: u32, answer: &Answer<'_>, turn: &mut Turn<'_>) {
        if answer.key == Key::Close && self.state == State::Closing {
            self.state = State::Closed;
        }
        let Some(at) = self
            .questions
            .iter()
            .position(|question| question.ours == correlation)
        else {
            return;
        };
        let Question {
            subscription, theirs, ..
        } = self.questions.swap_remove(at);
        if let Some(it) = self.subscriptions.get_mut(usize::from(subscription)) {
            if let (ResponseCode::Ok, Content::Number(stored)) = (answer.code, answer.content) {
                it.resume_at(stored.saturating_add(1));
            }
            if let Some(mut accounts) = turn.shared.accounts() {
                accounts.may_repeat(it.reader);
            }
        }
        self.begin_at(theirs, Some(subscription));
    }

    /// Writes as much as goes.
    ///
    /// # Errors
    /// If the connection is gone.
    pub fn flush(&mut self, turn: &mut Turn<'_>) -> Result<(), Failure> {
        while self.writable && self.backlog() > 0 {
            let Some(transport) = &mut self.transport else {
                break;
            };
            match transport.write(&self.out[self.written..]) {
                Ok(0) => return Err(self.lost(&ErrorKind::WriteZero.into())),
                Ok(written) => {
                    self.written += written;
                    self.said = turn.now;
                    turn.counted.written += written as u64;
                }
                Err(error) => self.not_written(&error)?,
            }
        }
        while let Some(transport) = self
            .transport
            .as_mut()
            .filter(|it| self.writable && it.wants_write())
        {
            if let Err(error) = transport.flush() {
                self.not_written(&error)?;
            }
        }
        if self.backlog() == 0 {
            self.out.clear();
            self.written = 0;
            if self.out.capacity() > KEPT && self.publishers.is_empty() {
                self.out = Vec::new();
            }
        }
        Ok(())
    }

    fn not_written(&mut self, error: &std::io::Error) -> Result<(), Failure> {
        match error.kind() {
            ErrorKind::Interrupted => Ok(()),
            ErrorKind::WouldBlock => {
                self.writable = false;
                Ok(())
            }
            _ => Err(self.lost(error)),
        }
    }

    fn lost(&self, error: &std::io::Error) -> Failure {
        Failure::Lost(format!("the connection {} was lost: {error}", self.name))
    }

    /// Signs of life.
    ///
    /// # Errors
    /// If the broker has given none for too long.
    pub fn tick(&mut self, now: u64) -> Result<(), Failure> {
        let heartbeat = u64::from(self.agreed.heartbeat_s) * NS_A_SECOND;
        if heartbeat == 0 || self.state != State::Open {
            return Ok(());
        }
        if now.saturating_sub(self.heard) > heartbeat * 5 / 2 {
            return Err(Failure::Lost(format!(
                "the broker gave no sign of life on {} for {} s",
                self.name,
                self.agreed.heartbeat_s * 5 / 2
            )));
        }
        if now.saturating_sub(self.said) > heartbeat && self.backlog() == 0 {
            self.out.extend_from_slice(&HEARTBEAT_FRAME);
        }
        Ok(())
    }

    /// Stores offsets and says goodbye.
    pub fn say_goodbye(&mut self) {
        if self.state != State::Open {
            return;
        }
        for it in &mut self.subscriptions {
            it.store(&mut self.out);
        }
        self.correlation += 1;
        let request = Close::because(ResponseCode::Ok);
        Command::Request {
            correlation_id: self.correlation,
            request: request.into(),
        }
        .encode(&mut self.out);
        self.state = State::Closing;
    }

    /// The connection is gone: who publishes and consumes on it is told. What has to be opened again is given back.
    pub fn give_up(&mut self, parties: &mut Parties, turn: &mut Turn<'_>) -> Group {
        self.state = State::Lost;
        self.transport = None;
        (self.readable, self.writable) = (false, false);
        self.left.clear();
        self.out.clear();
        self.written = 0;
        self.questions.clear();
        for (producer, route, _) in &self.publishers {
            parties.producers[*producer].lost(*route, turn.shared);
        }
        for it in &self.subscriptions {
            parties.consumers[it.consumer].forget(self.number);
        }
        Group {
            name: self.name.clone(),
            publishers: self
                .publishers
                .iter()
                .map(|(_, _, publishing)| publishing.clone())
                .collect(),
            subscriptions: self.subscriptions.clone(),
        }
    }

    /// The connection is back.
    pub fn revive(&mut self, ready: Ready, parties: &mut Parties, now: u64) {
        let Opened {
            transport,
            agreed,
            unread,
        } = ready.opened;
        (self.transport, self.agreed, self.left) = (Some(transport), agreed, unread);
        self.subscriptions = ready.subscriptions;
        self.state = State::Open;
        self.moved = false;
        (self.readable, self.writable) = (true, true);
        (self.heard, self.said) = (now, now);
        for (producer, route, _) in &self.publishers {
            let it = &mut parties.producers[*producer];
            it.routes[*route].open = true;
            parties.woken.push(Party::Producer(*producer));
        }
    }
}
