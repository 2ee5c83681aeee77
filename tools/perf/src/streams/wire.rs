//! A blocking client of the stream protocol: login, set-up, single questions.
//!
//! What never happens here: a message is published or its latency measured. For that a [`Client`] that has set things up is
//! handed over, and a link goes on with its [`Opened`] connection and waits for nobody.

use super::plan::{Connection, STREAM};
use crate::client::{Transport, connect, is_timeout, write_all};
use crate::failure::Failure;
use crate::uri::Uri;
use model::chunk::ENTRIES_BYTES_MOST;
use protocol::stream::request::{
    Close, ExchangeCommandVersions, Open, PeerProperties, SaslAuthenticate, SaslHandshake,
};
use protocol::stream::{
    Answer, Command, CommandVersions, Content, Key, ListBuf, Opaque, Property, Request, ResponseCode,
    next_frame,
};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// The largest frame that is read, in bytes: brokers send chunks whole, whatever size of frames was agreed on.
pub const LARGEST_FRAME: u32 = ENTRIES_BYTES_MOST as u32 + 65_536;
/// How long the login may take; a broker to which thousands come at once takes its time.
const LOGIN: Duration = Duration::from_secs(60);
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);
/// What one read may bring, in bytes.
const READ: usize = 64 * 1024;
const MECHANISM: &str = "PLAIN";

/// What both sides agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    /// The largest frame that may be sent, in bytes; 0: no limit.
    pub frame_max: u32,
    /// How long a side may be silent, in seconds; 0: for ever.
    pub heartbeat_s: u32,
}

/// A connection that a link goes on with.
pub struct Opened {
    pub transport: Transport,
    pub agreed: Agreed,
    /// What came already: whole frames and perhaps the beginning of one.
    pub unread: Vec<u8>,
}

/// See the module.
pub struct Client {
    transport: Transport,
    agreed: Agreed,
    /// What was read and not looked at.
    inbox: Vec<u8>,
    /// Frames that answer nothing: who takes over reads them.
    early: Vec<u8>,
    correlation: u32,
    answer_within: Duration,
    place: String,
    /// Where the broker says that it is.
    pub advertised: Option<(String, u16)>,
    /// What it speaks; none if it is older than the question.
    versions: Vec<CommandVersions>,
}

impl Client {
    /// Connects, logs in and opens the virtual host.
    ///
    /// # Errors
    /// [`Failure::Connect`] if nobody is there or lets us in.
    pub fn open(uri: &Uri, plan: &Connection, name: &str) -> Result<Self, Failure> {
        let place = uri.place();
        let mut client = Self {
            transport: connect(uri, &plan.socket)?,
            // Until both have agreed.
            agreed: Agreed {
                frame_max: 8_192,
                heartbeat_s: 0,
            },
            inbox: Vec::new(),
            early: Vec::new(),
            correlation: 0,
            answer_within: LOGIN,
            place,
            advertised: None,
            versions: Vec::new(),
        };
        let version = client.introduce(name)?;
        client.log_in(uri)?;
        client.agree(plan, uri)?;
        client.enter(uri)?;
        client.answer_within = plan.answer_within;
        if at_least_3_11(&version) {
            client.exchange_versions()?;
        }
        Ok(client)
    }

    /// Tells who we are and learns the broker's version.
    fn introduce(&mut self, name: &str) -> Result<String, Failure> {
        let properties = [
            ("product", "Leveret stream-perf"),
            ("version", env!("CARGO_PKG_VERSION")),
            ("platform", std::env::consts::OS),
            ("connection_name", name),
        ];
        let properties = ListBuf::of(properties.map(|(key, value)| Property {
            key: key.into(),
            value: value.into(),
        }));
        let request = PeerProperties {
            properties: properties.as_list(),
        };
        self.ask("the greeting", request, |answer| match answer.content {
            Content::Properties(properties) => properties
                .get("version")
                .map_or_else(String::new, |it| it.to_string()),
            _ => String::new(),
        })
    }

    fn log_in(&mut self, uri: &Uri) -> Result<(), Failure> {
        let offers = self.ask("the ways to log in", SaslHandshake {}, |answer| {
            match answer.content {
                Content::Names(names) => names.iter().any(|name| name.0 == MECHANISM.as_bytes()),
                _ => false,
            }
        })?;
        if !offers {
            return Err(Failure::Connect(format!(
                "the broker at {} does not take the login PLAIN",
                self.place
            )));
        }
        let response = format!("\0{}\0{}", uri.user, uri.password);
        let request = SaslAuthenticate {
            mechanism: MECHANISM.into(),
            response: Opaque(response.as_bytes()),
        };
        let (code, ()) = self.call(request, |_| ())?;
        match code {
            ResponseCode::Ok => Ok(()),
            code => Err(Failure::Connect(format!(
                "the broker at {} does not let user '{}' in: {code}; check user and password in --uris",
                self.place, uri.user
            ))),
        }
    }

    /// Takes the broker's offer of frame size and heartbeat, as far as the plan agrees.
    fn agree(&mut self, plan: &Connection, uri: &Uri) -> Result<(), Failure> {
        let deadline = Instant::now() + self.answer_within;
        let offer = loop {
            let found = self.frame(deadline, &mut |command| match command {
                Command::Tune {
                    frame_max,
                    heartbeat_s,
                } => Some((*frame_max, *heartbeat_s)),
                _ => None,
            })?;
            if let Some(offer) = found {
                break offer;
            }
        };
        let smaller = |ours: u32, theirs: u32| match (ours, theirs) {
            (0, it) | (it, 0) => it,
            (ours, theirs) => ours.min(theirs),
        };
        let heartbeat_s = u32::from(uri.query.heartbeat_s.unwrap_or(plan.socket.heartbeat_s));
        self.agreed = Agreed {
            frame_max: smaller(plan.socket.frame_max, offer.0),
            // Who wants none gets none, as from the Java client.
            heartbeat_s: if heartbeat_s == 0 {
                0
            } else {
                smaller(heartbeat_s, offer.1)
            },
        };
        let Agreed {
            frame_max,
            heartbeat_s,
        } = self.agreed;
        self.say(&Command::Tune {
            frame_max,
            heartbeat_s,
        })
    }

    fn enter(&mut self, uri: &Uri) -> Result<(), Failure> {
        let request = Open {
            virtual_host: uri.vhost.as_str().into(),
        };
        let (code, advertised) = self.call(request, |answer| match answer.content {
            Content::Properties(properties) => {
                let text = |key| properties.get(key).map(|it| it.to_string());
                text("advertised_host").zip(text("advertised_port").and_then(|port| port.parse().ok()))
            }
            _ => None,
        })?;
        if code != ResponseCode::Ok {
            let (vhost, place) = (&uri.vhost, &self.place);
            let text = format!(
                "the broker at {place} does not open the virtual host '{vhost}': {code}; check --uris"
            );
            return Err(Failure::Connect(text));
        }
        self.advertised = advertised;
        Ok(())
    }

    fn exchange_versions(&mut self) -> Result<(), Failure> {
        let ours = ListBuf::of(Key::ALL.iter().map(|key| CommandVersions::of(*key)));
        let request = ExchangeCommandVersions {
            versions: ours.as_list(),
        };
        let (_, versions) = self.call(request, |answer| match answer.content {
            Content::Versions(versions) => versions.iter().collect(),
            _ => Vec::new(),
        })?;
        self.versions = versions;
        Ok(())
    }

    /// True if the broker said that it speaks this version of this command.
    pub fn speaks(&self, key: Key, version: u16) -> bool {
        self.versions.iter().any(|it| it.speaks(key, version))
    }

    /// What was agreed on.
    pub fn agreed(&self) -> Agreed {
        self.agreed
    }

    /// Asks something that must be done.
    ///
    /// # Errors
    /// [`Failure::Refused`] with the broker's words if it is not; [`Failure::Lost`] if it does not answer.
    pub fn ask<'r, T>(
        &mut self,
        what: &str,
        request: impl Into<Request<'r>>,
        read: impl FnOnce(&Answer<'_>) -> T,
    ) -> Result<T, Failure> {
        match self.call(request, read)? {
            (ResponseCode::Ok, read) => Ok(read),
            (code, _) => Err(refused(what, code)),
        }
    }

    /// Asks something and gives the code of the answer with what `read` made of it.
    ///
    /// # Errors
    /// [`Failure::Lost`] if there is no answer in time.
    pub fn call<'r, T>(
        &mut self,
        request: impl Into<Request<'r>>,
        read: impl FnOnce(&Answer<'_>) -> T,
    ) -> Result<(ResponseCode, T), Failure> {
        self.correlation += 1;
        let wanted = self.correlation;
        self.say(&Command::Request {
            correlation_id: wanted,
            request: request.into(),
        })?;
        let deadline = Instant::now() + self.answer_within;
        let mut read = Some(read);
        loop {
            let found = self.frame(deadline, &mut |command| match command {
                Command::Answer {
                    correlation_id,
                    answer,
                } if *correlation_id == wanted => read.take().map(|read| (answer.code, read(answer))),
                _ => None,
            })?;
            if let Some(found) = found {
                return Ok(found);
            }
        }
    }

    /// Writes a command.
    ///
    /// # Errors
    /// [`Failure::Lost`] if the broker does not take it.
    pub fn say(&mut self, command: &Command<'_>) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        command.encode(&mut bytes);
        write_all(&mut self.transport, &bytes).map_err(|error| self.lost(&error))
    }

    /// Looks at the next frame. What `wanted` has no use for is kept for who takes over, but for signs of life and goodbyes.
    fn frame<T>(
        &mut self,
        deadline: Instant,
        wanted: &mut dyn FnMut(&Command<'_>) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        loop {
            let taken = match next_frame(&self.inbox, LARGEST_FRAME) {
                Ok(taken) => taken,
                Err(error) => {
                    return Err(Failure::Lost(format!(
                        "{} does not speak the stream protocol: {error}",
                        self.place
                    )));
                }
            };
            if let Some((frame, length)) = taken {
                let command = Command::decode(&frame).map_err(|_| {
                    Failure::Lost(format!(
                        "the broker at {} sent a frame with key {} that can't be read",
                        self.place, frame.key
                    ))
                })?;
                let found = wanted(&command);
                if found.is_none() {
                    match &command {
                        Command::Heartbeat | Command::Tune { .. } => {}
                        Command::Request {
                            request: Request::Close(close),
                            ..
                        } => {
                            return Err(Failure::Lost(format!(
                                "the broker at {} closed the connection: {} {}",
                                self.place, close.code, close.reason
                            )));
                        }
                        _ => self.early.extend_from_slice(&self.inbox[..length]),
                    }
                }
                self.inbox.drain(..length);
                return Ok(found);
            }
            self.read(deadline)?;
        }
    }

    fn read(&mut self, deadline: Instant) -> Result<(), Failure> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failure::Lost(format!(
                "the broker at {} did not answer in time (--rpc-timeout)",
                self.place
            )));
        }
        let filled = self.inbox.len();
        self.inbox.resize(filled + READ, 0);
        let prepared = self.transport.set_read_timeout(left);
        let read = prepared.and_then(|()| self.transport.read(&mut self.inbox[filled..]));
        self.inbox
            .truncate(filled + read.as_ref().map_or(0, |read| *read));
        match read {
            Ok(0) => Err(self.lost(&ErrorKind::UnexpectedEof.into())),
            Err(error) if !is_timeout(&error) => Err(self.lost(&error)),
            _ => Ok(()),
        }
    }

    fn lost(&self, error: &std::io::Error) -> Failure {
        let advice = match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => {
                format!(
                    "; does it speak the stream protocol there (port {}, {} with TLS)?",
                    STREAM.port, STREAM.tls_port
                )
            }
            _ => String::new(),
        };
        Failure::Lost(format!(
            "the connection to {} was lost: {error}{advice}",
            self.place
        ))
    }

    /// Hands the connection over, which does not block from now on.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn hand_over(mut self) -> Result<Opened, Failure> {
        self.transport
            .set_nonblocking(true)
            .map_err(|error| self.lost(&error))?;
        self.early.append(&mut self.inbox);
        Ok(Opened {
            transport: self.transport,
            agreed: self.agreed,
            unread: self.early,
        })
    }

    /// Says goodbye. Whether the broker answers does not matter any more.
    pub fn close(mut self) {
        self.answer_within = GOODBYE;
        let _ = self.call(Close::because(ResponseCode::Ok), |_| ());
    }
}

/// What the broker refused, in its words and ours.
pub fn refused(what: &str, code: ResponseCode) -> Failure {
    let advice = match code {
        ResponseCode::AccessRefused => "; the user may not do this: see `rabbitmqctl set_permissions`",
        ResponseCode::StreamNotAvailable => {
            "; the broker that has it is not there, or it has just been made: try again"
        }
        ResponseCode::SubscriptionIdAlreadyExists | ResponseCode::PublisherDoesNotExist => "; this is a bug",
        _ => "",
    };
    Failure::Refused {
        code: code.number(),
        text: format!("{what}: {}{advice}", code.text()),
    }
}

/// RabbitMQ closes a connection that asks for versions and is older; other brokers have no such number.
fn at_least_3_11(version: &str) -> bool {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= (3, 11),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_asked_for_from_3_11_on() {
        assert!(["3.11.0", "4.0", "4.3.6", "10.1"].into_iter().all(at_least_3_11));
        assert!(!["3.10.9", "2.0", "", "main"].into_iter().any(at_least_3_11));
    }
}
