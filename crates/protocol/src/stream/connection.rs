//! A connection, the server's side, without its socket and without a clock.
//!
//! Peer properties, `SaslHandshake`, `SaslAuthenticate`, `Tune`, `Open`, in this order; then whatever the client wants, until
//! one of the two sends `Close`. RabbitMQ's states have the same names (`rabbit_stream_reader`).
//!
//! The front end feeds what it reads to [`Connection::advance`] and writes what is appended to `out`. It is asked twice: may
//! this user log in ([`Event::Authenticate`], answered by [`Connection::accept`] or [`Connection::refuse`]), and may it use
//! this virtual host ([`Event::Open`], answered by [`Connection::open`] or [`Connection::refuse`]). The first question comes
//! again when a client that is logged in shows new credentials.
//!
//! As in RabbitMQ, a peer that errs before the virtual host is open is told nothing but the code of a refusal; after that it
//! gets a `Close` with the code, and its answer is awaited.

mod opening;

pub use opening::Offer;

use super::answer::Answer;
use super::code::ResponseCode;
use super::command::Command;
use super::frame::{Frame, FrameError, next_frame};
use super::key::Key;
use super::request::{Close, Request};
use crate::amqp::handshake::sasl::{Credentials, Mechanism};
use model::Limits;
use model::table::Table;
use std::borrow::Cow;
use std::fmt;

/// What came of the bytes that were fed.
#[derive(Debug, PartialEq)]
pub enum Event<'a> {
    /// A login, or new credentials of who is logged in: [`Connection::accept`] or [`Connection::refuse`].
    Authenticate(Credentials),
    /// A virtual host to be decided on: [`Connection::open`] or [`Connection::refuse`].
    Open {
        /// Its name.
        vhost: String,
    },
    /// A request that is not the connection's own business.
    Request {
        /// What the answer has to bear.
        correlation_id: u32,
        /// What is asked.
        request: Request<'a>,
    },
    /// The client's answer to a `ConsumerUpdate`.
    Answer {
        /// The number of the request.
        correlation_id: u32,
        /// What it says.
        answer: Answer<'a>,
    },
    /// [`Command::Publish`], [`Command::Credit`] or [`Command::StoreOffset`].
    Command(Command<'a>),
    /// It is over because of something that the client did.
    Failed(Failure),
    /// The client closed, or confirmed our close. Write what is in `out` and hang up.
    Closed,
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What a client that is told is told.
    pub code: ResponseCode,
    /// What happened, for the log.
    pub why: Cow<'static, str>,
    /// True if a `Close` is in `out`: feed on until [`Event::Closed`], but not for long; it never comes if the two sides have
    /// lost step. Else hang up.
    pub told: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.why)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    TcpConnected,
    PeerPropertiesExchanged,
    Authenticating,
    Tuning,
    Tuned,
    Open,
    /// Our `Close` is out, and its answer is awaited.
    CloseSent,
    /// The same, but the two sides have lost step: nothing that comes can be read.
    LostStep,
    Closed,
}

/// What the front end is asked, with the number that the answer has to bear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Question {
    key: Key,
    correlation_id: u32,
}

/// The server's side of a connection.
#[derive(Debug)]
pub struct Connection {
    state: State,
    offer: Offer,
    limits: Limits,
    /// What the client says of itself.
    properties: Table,
    mechanism: Option<Mechanism>,
    /// Until it has decided, nothing is read.
    asked: Option<Question>,
    frame_max: u32,
    heartbeat_s: u32,
}

/// The number that our `Close` bears, as RabbitMQ's does.
const CLOSE_CORRELATION_ID: u32 = 1;

impl Connection {
    /// For a connection that was just accepted. `limits` bounds frames before the login (`initial_frame_max`), and what a
    /// client may say of itself (`table_entries`).
    pub fn new(offer: Offer, limits: Limits) -> Self {
        Self {
            state: State::TcpConnected,
            frame_max: limits.initial_frame_max,
            heartbeat_s: offer.heartbeat_s,
            offer,
            limits,
            properties: Table::new(),
            mechanism: None,
            asked: None,
        }
    }

    /// Takes what it can of `bytes`, until something has come of it, and says how many it took. Without an event it needs
    /// more bytes, or the front end's answer to a question; bytes that were not taken must be fed again, with more behind
    /// them.
    pub fn advance<'a>(&mut self, bytes: &'a [u8], out: &mut Vec<u8>) -> (usize, Option<Event<'a>>) {
        let mut taken = 0;
        loop {
            if matches!(self.state, State::LostStep | State::Closed) {
                return (bytes.len(), None);
            }
            if self.asked.is_some() {
                return (taken, None);
            }
            let event = match next_frame(&bytes[taken..], self.frame_max) {
                Ok(None) => return (taken, None),
                Ok(Some((frame, length))) => {
                    taken += length;
                    self.frame(&frame, out)
                }
                // The two sides have lost step, so nothing that follows can be read.
                Err(error) => {
                    taken = bytes.len();
                    Some(self.lost_step(error, out))
                }
            };
            if event.is_some() {
                return (taken, event);
            }
        }
    }

    fn frame<'a>(&mut self, frame: &Frame<'a>, out: &mut Vec<u8>) -> Option<Event<'a>> {
        match (self.state, Command::decode(frame)) {
            (_, Ok(Command::Heartbeat)) => None,
            (State::CloseSent, command) => self.while_closing(command.ok()),
            (_, Err(_)) => Some(self.unknown(frame, out)),
            (State::Open, Ok(command)) => self.while_open(frame, command, out),
            (_, Ok(command)) => self.opening(frame, &command, out),
        }
    }

    fn while_open<'a>(
        &mut self,
        frame: &Frame<'a>,
        command: Command<'a>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'a>> {
        let event = match command {
            Command::Publish(_) | Command::Credit { .. } | Command::StoreOffset { .. } => {
                Event::Command(command)
            }
            Command::Answer {
                correlation_id,
                answer,
            } if answer.key == Key::ConsumerUpdate => Event::Answer {
                correlation_id,
                answer,
            },
            Command::Request {
                correlation_id,
                request,
            } => match request {
                Request::Close(_) => {
                    self.state = State::Closed;
                    answer(Answer::code(Key::Close, ResponseCode::Ok), correlation_id, out);
                    Event::Closed
                }
                Request::SaslAuthenticate(login) => self.renewal(correlation_id, &login, out),
                // What belongs to the opening comes too late, and only servers ask this.
                Request::PeerProperties(_)
                | Request::SaslHandshake(_)
                | Request::Open(_)
                | Request::ConsumerUpdate(_) => self.unknown(frame, out),
                _ => Event::Request {
                    correlation_id,
                    request,
                },
            },
            _ => self.unknown(frame, out),
        };
        Some(event)
    }

    /// Whatever still comes, only the answer to our `Close` means anything.
    fn while_closing(&mut self, command: Option<Command<'_>>) -> Option<Event<'static>> {
        match command {
            Some(Command::Answer { answer, .. }) if answer.key == Key::Close => {
                self.state = State::Closed;
                Some(Event::Closed)
            }
            _ => None,
        }
    }

    fn unknown(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) -> Event<'static> {
        let why = format!(
            "a frame of {} bytes with key {:#06x}, version {}, means nothing in state {}",
            frame.payload.len() + 4,
            frame.key,
            frame.version,
            self.state_name()
        );
        self.fail(ResponseCode::UnknownFrame, why.into(), out)
    }

    fn lost_step(&mut self, error: FrameError, out: &mut Vec<u8>) -> Event<'static> {
        if self.state == State::CloseSent {
            self.state = State::Closed;
            return Event::Closed;
        }
        let code = match error {
            FrameError::TooLarge { .. } => ResponseCode::FrameTooLarge,
            FrameError::TooSmall { .. } => ResponseCode::UnknownFrame,
        };
        let failed = self.fail(code, error.to_string().into(), out);
        if self.state == State::CloseSent {
            self.state = State::LostStep;
        }
        failed
    }

    fn fail(&mut self, code: ResponseCode, why: Cow<'static, str>, out: &mut Vec<u8>) -> Event<'static> {
        let told = self.close(&Close::because(code), out);
        Event::Failed(Failure { code, why, told })
    }

    /// Closes from our side. True if a `Close` is in `out`, and its answer is to be awaited, but not for long; else the
    /// connection is not open, and nothing is said.
    pub fn close(&mut self, close: &Close<'_>, out: &mut Vec<u8>) -> bool {
        let told = self.state == State::Open;
        self.asked = None;
        if !told {
            self.state = State::Closed;
            return false;
        }
        self.state = State::CloseSent;
        let request = Request::Close(*close);
        Command::Request {
            correlation_id: CLOSE_CORRELATION_ID,
            request,
        }
        .encode(out);
        true
    }

    /// True once the virtual host is open, until one of the two closes.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// What the client says of itself; empty before it has.
    pub fn properties(&self) -> &Table {
        &self.properties
    }

    /// By which mechanism the client logged in, or tries to.
    pub fn mechanism(&self) -> Option<Mechanism> {
        self.mechanism
    }

    /// The largest frame that is taken, in bytes, without the four of its size; 0 is no limit.
    pub fn frame_max(&self) -> u32 {
        self.frame_max
    }

    /// How long a side may be silent before the other takes it for dead, in seconds; 0 is for ever.
    pub fn heartbeat_s(&self) -> u32 {
        self.heartbeat_s
    }

    /// RabbitMQ's name of the state, for logs.
    pub fn state_name(&self) -> &'static str {
        match self.state {
            State::TcpConnected => "tcp_connected",
            State::PeerPropertiesExchanged => "peer_properties_exchanged",
            State::Authenticating => "authenticating",
            State::Tuning => "tuning",
            State::Tuned => "tuned",
            State::Open => "open",
            State::CloseSent | State::LostStep => "close_sent",
            State::Closed => "closing_done",
        }
    }
}

fn answer(answer: Answer<'_>, correlation_id: u32, out: &mut Vec<u8>) {
    Command::Answer {
        correlation_id,
        answer,
    }
    .encode(out);
}

#[cfg(test)]
mod tests;
