//! From the protocol header to an open connection: the server's side, without a socket.
//!
//! The front end feeds what it reads to [`Handshake::advance`], writes what is appended to `out`, and is asked twice:
//! may this user log in ([`Event::Authenticate`], answered by [`Handshake::accept`] or [`Handshake::refuse`]),
//! and may it use this virtual host ([`Event::Open`], answered by [`Handshake::open`] or
//! [`Handshake::refuse_open`]). RabbitMQ's connection states have the same names (`rabbit_reader`).
//!
//! RabbitMQ says nothing to a peer that errs before it is logged in: it waits three seconds and hangs up. Here
//! the peer is told, and the front end does the waiting, if any; only a failed login of a client that does not know
//! `authentication_failure_close` stays without a word, as there.

pub mod client;
pub mod sasl;
pub mod tune;

pub use client::{Capabilities, Client};
pub use sasl::{Credentials, Mechanism};
pub use tune::Tuning;

use super::encode;
use super::field::{LongStr, RawTable};
use super::frame::{Frame, Part, next_frame};
use super::method::{
    Arguments, ConnectionCloseOk, ConnectionOpenOk, ConnectionStart, ConnectionStartOk, Method, MethodId,
};
use super::reply::{Exception, ReplyCode};
use model::Limits;
use model::table::Table;

/// What a client of this protocol begins with, and what others get as an answer.
pub const PROTOCOL_HEADER: [u8; 8] = *b"AMQP\0\0\x09\x01";
/// The header of AMQP 0-9, which RabbitMQ treats as 0-9-1.
const HEADER_0_9: [u8; 8] = *b"AMQP\x01\x01\0\x09";

/// What the server offers.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Who we are; see [`Offer::server_properties`] for the order of entries.
    pub server_properties: Table,
    /// The logins that we take, in the order in which they are offered.
    pub mechanisms: Vec<Mechanism>,
    /// Frame size, channels and heartbeat.
    pub tuning: Tuning,
}

impl Offer {
    /// The properties in RabbitMQ's order: by name, capabilities among the rest.
    pub fn server_properties(&self) -> Table {
        self.server_properties.clone().sorted()
    }
}

/// What came of the bytes that were fed.
#[derive(Debug, PartialEq)]
pub enum Event {
    /// A login to be decided on: [`Handshake::accept`] or [`Handshake::refuse`].
    Authenticate(Credentials),
    /// A virtual host to be decided on: [`Handshake::open`] or [`Handshake::refuse_open`].
    Open {
        /// Its name.
        vhost: String,
    },
    /// The bytes are another protocol's; ours is in `out`. Write it and hang up.
    WrongProtocol([u8; 8]),
    /// It is over. If `told`, a `connection.close` is in `out`; then feed on until [`Event::Closed`], but not
    /// for long.
    Failed {
        /// What went wrong.
        exception: Exception,
        /// False if the peer gets no word of it.
        told: bool,
    },
    /// The peer closed, or confirmed our close. Write what is in `out` and hang up.
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Header,
    Starting,
    /// Waiting until the front end has decided about the login.
    Authenticating,
    Tuning,
    Opening,
    /// Waiting until the front end has decided about the virtual host.
    Admitting,
    Running,
    /// Failed; waiting for `connection.close-ok`.
    Closing,
    Closed,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Header => "pre_init",
            Self::Starting => "starting",
            Self::Authenticating => "securing",
            Self::Tuning => "tuning",
            Self::Opening | Self::Admitting => "opening",
            Self::Running => "running",
            Self::Closing | Self::Closed => "closed",
        }
    }
}

/// The server's side of a connection until it is open.
#[derive(Debug)]
pub struct Handshake {
    state: State,
    offer: Offer,
    limits: Limits,
    client: Client,
    mechanism: Mechanism,
    tuned: Tuning,
}

impl Handshake {
    /// For a connection that was just accepted. `limits` bounds frames before the login
    /// (`initial_frame_max`) and tables.
    pub fn new(offer: Offer, limits: Limits) -> Self {
        let tuned = offer.tuning;
        let client = Client::default();
        Self {
            state: State::Header,
            offer,
            limits,
            client,
            mechanism: Mechanism::Plain,
            tuned,
        }
    }

    /// Takes what it can of `bytes` and says how many it took. Without an event it needs more bytes, or the
    /// front end's answer to the last event; bytes that were not taken must be fed again, with more behind them.
    pub fn advance(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> (usize, Option<Event>) {
        let mut taken = 0;
        loop {
            let (more, event) = self.step(&bytes[taken..], out);
            taken += more;
            if more == 0 || event.is_some() {
                return (taken, event);
            }
        }
    }

    fn step(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> (usize, Option<Event>) {
        match self.state {
            State::Header => self.protocol_header(bytes, out),
            State::Authenticating | State::Admitting | State::Running | State::Closed => (0, None),
            _ => match next_frame(bytes, self.frame_max()) {
                Ok(None) => (0, None),
                Ok(Some((frame, length))) => (length, self.frame(&frame, out)),
                // The two sides have lost step, so nothing that follows can be read.
                Err(_) if self.state == State::Closing => {
                    self.state = State::Closed;
                    (bytes.len(), Some(Event::Closed))
                }
                Err(error) => (bytes.len(), Some(self.fail(error.exception(), out))),
            },
        }
    }

    fn frame_max(&self) -> u32 {
        match self.state {
            State::Opening => self.tuned.frame_max,
            _ => self.limits.initial_frame_max,
        }
    }

    fn protocol_header(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> (usize, Option<Event>) {
        let Some(&header) = bytes.first_chunk::<8>() else {
            return (0, None);
        };
        if header != PROTOCOL_HEADER && header != HEADER_0_9 {
            out.extend_from_slice(&PROTOCOL_HEADER);
            self.state = State::Closed;
            return (bytes.len(), Some(Event::WrongProtocol(header)));
        }
        let mut properties = Vec::new();
        self.offer.server_properties().encode(&mut properties);
        let names: Vec<_> = self.offer.mechanisms.iter().map(|it| it.name()).collect();
        let names = names.join(" ");
        let start = ConnectionStart {
            version_major: 0,
            version_minor: 9,
            server_properties: RawTable(&properties),
            mechanisms: LongStr(names.as_bytes()),
            locales: LongStr(b"en_US"),
        };
        encode::method(out, 0, &start);
        self.state = State::Starting;
        (8, None)
    }

    fn frame(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) -> Option<Event> {
        if self.state == State::Closing {
            return self.frame_while_closing(frame, out);
        }
        let step = match frame.part() {
            Err(exception) => Err(exception),
            Ok(Part::Heartbeat) if frame.channel == 0 => Ok(None),
            Ok(Part::Method(id, fields)) if frame.channel == 0 => Method::decode(id, fields)
                .map_err(|error| error.exception())
                .and_then(|method| self.method(&method, out)),
            Ok(_) => Err(frame.unexpected()),
        };
        step.unwrap_or_else(|exception| Some(self.fail(exception, out)))
    }

    fn frame_while_closing(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) -> Option<Event> {
        match frame.part() {
            Ok(Part::Method(id, _)) if frame.channel == 0 && id.class == 10 && id.method == 50 => {
                encode::method(out, 0, &ConnectionCloseOk {});
                None
            }
            Ok(Part::Method(id, _)) if frame.channel == 0 && id.class == 10 && id.method == 51 => {
                self.state = State::Closed;
                Some(Event::Closed)
            }
            _ => None,
        }
    }

    fn method(&mut self, method: &Method<'_>, out: &mut Vec<u8>) -> Result<Option<Event>, Exception> {
        match (self.state, method) {
            (State::Starting, Method::ConnectionStartOk(start_ok)) => self.start_ok(start_ok).map(Some),
            (State::Tuning, Method::ConnectionTuneOk(tune_ok)) => {
                self.tuned = self.offer.tuning.negotiate(tune_ok)?;
                self.state = State::Opening;
                Ok(None)
            }
            (State::Opening, Method::ConnectionOpen(open)) => {
                self.state = State::Admitting;
                Ok(Some(Event::Open {
                    vhost: open.virtual_host.to_owned(),
                }))
            }
            (_, Method::ConnectionClose(_)) => {
                encode::method(out, 0, &ConnectionCloseOk {});
                self.state = State::Closed;
                Ok(Some(Event::Closed))
            }
            _ => Err(unexpected_method(self.state.name(), method.id())),
        }
    }

    fn start_ok(&mut self, start_ok: &ConnectionStartOk<'_>) -> Result<Event, Exception> {
        let id = ConnectionStartOk::ID;
        let properties = start_ok
            .client_properties
            .decode(&self.limits)
            .map_err(|error| Exception::new(ReplyCode::SyntaxError, error.to_string(), id))?;
        self.client = Client::new(properties);
        self.mechanism = self
            .offer
            .mechanisms
            .iter()
            .copied()
            .find(|mechanism| mechanism.name() == start_ok.mechanism)
            .ok_or_else(|| {
                let text = format!("unknown authentication mechanism '{}'", start_ok.mechanism);
                Exception::new(ReplyCode::CommandInvalid, text, id)
            })?;
        let credentials = Credentials::parse(self.mechanism, start_ok.response.0, &self.limits)
            .map_err(|text| Exception::new(ReplyCode::SyntaxError, text, id))?;
        self.state = State::Authenticating;
        Ok(Event::Authenticate(credentials))
    }

    /// The login is good: goes on to tuning.
    pub fn accept(&mut self, out: &mut Vec<u8>) {
        if self.state == State::Authenticating {
            encode::method(out, 0, &self.offer.tuning.tune());
            self.state = State::Tuning;
        }
    }

    /// The login is wrong, or not allowed from there. The text does not say why: that is for the broker's log.
    pub fn refuse(&mut self, out: &mut Vec<u8>) -> Event {
        let text = format!(
            "Login was refused using authentication mechanism {}. For details see the broker logfile.",
            self.mechanism.name()
        );
        let exception = Exception::new(ReplyCode::AccessRefused, text, MethodId::NONE);
        if self.client.capabilities.authentication_failure_close {
            return self.fail(exception, out);
        }
        self.state = State::Closed;
        Event::Failed {
            exception,
            told: false,
        }
    }

    /// The virtual host is open to the user: the connection stands.
    pub fn open(&mut self, out: &mut Vec<u8>) {
        if self.state == State::Admitting {
            encode::method(out, 0, &ConnectionOpenOk {});
            self.state = State::Running;
        }
    }

    /// The virtual host is not open to the user, for a reason that is mostly a 530.
    pub fn refuse_open(&mut self, exception: Exception, out: &mut Vec<u8>) -> Event {
        self.fail(exception, out)
    }

    /// Closes from our side while the handshake goes on (it took too long, the node shuts down).
    pub fn fail(&mut self, exception: Exception, out: &mut Vec<u8>) -> Event {
        // Before connection.start the peer may not even speak the protocol.
        let told = !matches!(self.state, State::Header | State::Closing | State::Closed);
        self.state = if told { State::Closing } else { State::Closed };
        if told {
            exception.encode_close(0, out);
        }
        Event::Failed { exception, told }
    }

    /// True once the connection stands.
    pub fn is_running(&self) -> bool {
        self.state == State::Running
    }

    /// Who the client says it is; empty before `connection.start-ok`.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The client's own words and the agreement, once the connection stands (or for a log line before).
    pub fn finish(self) -> (Client, Tuning) {
        (self.client, self.tuned)
    }
}

/// The 504 for a method on channel 0 that the connection's state (`running`, after the handshake) has no use
/// for.
pub fn unexpected_method(state: &str, method: MethodId) -> Exception {
    let text = format!("unexpected method in connection state {state}");
    Exception::new(ReplyCode::ChannelError, text, method)
}

#[cfg(test)]
mod tests;
