//! From the first frame to an open virtual host, and new credentials later on.

use super::{Connection, Event, Failure, Question, State, answer};
use crate::amqp::handshake::sasl::{Credentials, Mechanism};
use crate::stream::answer::{Answer, Content};
use crate::stream::code::ResponseCode;
use crate::stream::command::Command;
use crate::stream::field::{ListBuf, Properties, Property, Text};
use crate::stream::frame::Frame;
use crate::stream::key::Key;
use crate::stream::request::{Request, SaslAuthenticate};

/// What the server offers.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Who we are.
    pub properties: Vec<(String, String)>,
    /// The logins that we take, in the order in which they are offered.
    pub mechanisms: Vec<Mechanism>,
    /// The largest frame, in bytes, without the four of its size; 0 is no limit (RabbitMQ's `stream.frame_max`: 1 MiB).
    pub frame_max: u32,
    /// How long a side may be silent, in seconds; 0 is for ever (RabbitMQ's `stream.heartbeat`: 60).
    pub heartbeat_s: u32,
}

impl Connection {
    pub(super) fn opening(
        &mut self,
        frame: &Frame<'_>,
        command: &Command<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'static>> {
        use State::{Authenticating, PeerPropertiesExchanged, TcpConnected, Tuned, Tuning};
        let (correlation_id, request) = match command {
            Command::Request {
                correlation_id,
                request,
            } => (*correlation_id, request),
            Command::Tune {
                frame_max,
                heartbeat_s,
            } if matches!(self.state, Tuning | Tuned) => {
                self.tune(*frame_max, *heartbeat_s);
                return None;
            }
            _ => return Some(self.unknown(frame, out)),
        };
        match (self.state, request) {
            (TcpConnected | PeerPropertiesExchanged, Request::PeerProperties(peer)) => {
                self.peer_properties(correlation_id, &peer.properties, out)
            }
            (PeerPropertiesExchanged | Authenticating, Request::SaslHandshake(_)) => {
                self.state = Authenticating;
                let names = self.offer.mechanisms.iter().map(|it| Text::from(it.name()));
                let names = ListBuf::of(names);
                let names = Content::Names(names.as_list());
                answer(Answer::ok(Key::SaslHandshake, names), correlation_id, out);
                None
            }
            (Authenticating, Request::SaslAuthenticate(login)) => {
                Some(self.login(correlation_id, login, out))
            }
            // RabbitMQ waits for no answer to its offer.
            (Tuning | Tuned, Request::Open(open)) => Some(self.entry(correlation_id, open.virtual_host, out)),
            _ => Some(self.unknown(frame, out)),
        }
    }

    fn peer_properties(
        &mut self,
        correlation_id: u32,
        client: &Properties<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'static>> {
        if client.len() > self.limits.table_entries {
            let why = format!("{} properties are more than anybody has", client.len());
            return Some(self.fail(ResponseCode::UnknownFrame, why.into(), out));
        }
        self.state = State::PeerPropertiesExchanged;
        let client = client.iter().map(|it| (it.key.to_string(), it.value.to_string()));
        self.properties = client.collect();
        let server = self.offer.properties.iter();
        let server = ListBuf::of(server.map(|(key, value)| property(key, value)));
        let server = Content::Properties(server.as_list());
        answer(Answer::ok(Key::PeerProperties, server), correlation_id, out);
        None
    }

    fn login(
        &mut self,
        correlation_id: u32,
        login: &SaslAuthenticate<'_>,
        out: &mut Vec<u8>,
    ) -> Event<'static> {
        let offered = self.offer.mechanisms.iter().copied();
        let mechanism = offered
            .into_iter()
            .find(|it| it.name().as_bytes() == login.mechanism.0);
        let Some(mechanism) = mechanism else {
            let why = format!("nobody logs in by {} here", login.mechanism);
            return self.end(correlation_id, ResponseCode::SaslMechanismNotSupported, why, out);
        };
        self.mechanism = Some(mechanism);
        self.credentials(correlation_id, mechanism, login, out)
    }

    /// New credentials of who is logged in: by the same mechanism, and of the same user, which the front end sees to.
    pub(super) fn renewal(
        &mut self,
        correlation_id: u32,
        login: &SaslAuthenticate<'_>,
        out: &mut Vec<u8>,
    ) -> Event<'static> {
        let mechanism = self
            .mechanism
            .filter(|it| it.name().as_bytes() == login.mechanism.0);
        match mechanism {
            Some(mechanism) => self.credentials(correlation_id, mechanism, login, out),
            None => {
                let why = format!("{} is not the mechanism of the login", login.mechanism);
                self.end(correlation_id, ResponseCode::SaslCannotChangeMechanism, why, out)
            }
        }
    }

    fn credentials(
        &mut self,
        correlation_id: u32,
        mechanism: Mechanism,
        login: &SaslAuthenticate<'_>,
        out: &mut Vec<u8>,
    ) -> Event<'static> {
        match Credentials::parse(mechanism, login.response.0, &self.limits) {
            Ok(credentials) => {
                self.asked = Some(Question {
                    key: Key::SaslAuthenticate,
                    correlation_id,
                });
                Event::Authenticate(credentials)
            }
            Err(why) => self.end(correlation_id, ResponseCode::SaslError, why, out),
        }
    }

    fn entry(&mut self, correlation_id: u32, vhost: Text<'_>, out: &mut Vec<u8>) -> Event<'static> {
        self.asked = Some(Question {
            key: Key::Open,
            correlation_id,
        });
        match vhost.as_str() {
            Some(vhost) => Event::Open {
                vhost: vhost.to_owned(),
            },
            None => {
                let why = format!("no virtual host has the name {vhost}");
                self.refuse(ResponseCode::VirtualHostAccessFailure, why, out)
            }
        }
    }

    /// Of the two frame sizes the smaller one counts, as in RabbitMQ; the heartbeat is the client's.
    fn tune(&mut self, frame_max: u32, heartbeat_s: u32) {
        self.state = State::Tuned;
        self.frame_max = match (frame_max, self.offer.frame_max) {
            (0, agreed) | (agreed, 0) => agreed,
            (client, server) => client.min(server),
        };
        self.heartbeat_s = heartbeat_s;
    }

    /// The login is good, or the new credentials are.
    pub fn accept(&mut self, out: &mut Vec<u8>) {
        let Some(question) = self.asked.take_if(|asked| asked.key == Key::SaslAuthenticate) else {
            return;
        };
        let ok = Answer::code(Key::SaslAuthenticate, ResponseCode::Ok);
        answer(ok, question.correlation_id, out);
        if self.state == State::Authenticating {
            self.state = State::Tuning;
            self.frame_max = self.offer.frame_max;
            let (frame_max, heartbeat_s) = (self.offer.frame_max, self.offer.heartbeat_s);
            Command::Tune {
                frame_max,
                heartbeat_s,
            }
            .encode(out);
        }
    }

    /// The virtual host is open to the user: the connection stands. `properties` say by which address the client reaches this
    /// node: `advertised_host` and `advertised_port`.
    pub fn open(&mut self, properties: &[(&str, &str)], out: &mut Vec<u8>) {
        let Some(question) = self.asked.take_if(|asked| asked.key == Key::Open) else {
            return;
        };
        self.state = State::Open;
        let properties = ListBuf::of(properties.iter().map(|(key, value)| property(key, value)));
        let properties = Content::Properties(properties.as_list());
        answer(Answer::ok(Key::Open, properties), question.correlation_id, out);
    }

    /// No to what was asked last, with this code. That ends the connection, too; `why` is for the log.
    pub fn refuse(
        &mut self,
        code: ResponseCode,
        why: impl Into<String>,
        out: &mut Vec<u8>,
    ) -> Event<'static> {
        if let Some(question) = self.asked.take() {
            answer(Answer::code(question.key, code), question.correlation_id, out);
        }
        self.state = State::Closed;
        Event::Failed(Failure {
            code,
            why: why.into().into(),
            told: false,
        })
    }

    fn end(
        &mut self,
        correlation_id: u32,
        code: ResponseCode,
        why: String,
        out: &mut Vec<u8>,
    ) -> Event<'static> {
        self.asked = Some(Question {
            key: Key::SaslAuthenticate,
            correlation_id,
        });
        self.refuse(code, why, out)
    }
}

fn property<'a>(key: &'a str, value: &'a str) -> Property<'a> {
    Property {
        key: key.into(),
        value: value.into(),
    }
}
