//! From a fresh socket to an open virtual host.

use super::client::{Agreed, Client};
use super::connect;
use super::inbox::{Event, Inbox};
use super::refusal::{self, Who};
use super::tls;
use super::transport::Transport;
use crate::failure::Failure;
use crate::plan::Connecting;
use crate::uri::Uri;
use model::Limits;
use model::table::Table;
use protocol::amqp::handshake::PROTOCOL_HEADER;
use protocol::amqp::handshake::tune::FRAME_MIN_SIZE;
use protocol::amqp::method::{ConnectionOpen, ConnectionStartOk, ConnectionTune, ConnectionTuneOk};
use protocol::amqp::{Arguments, LongStr, Method, RawTable, encode};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// How long it all may take. RabbitMQ gives up after 10 s; when thousands log in at once, its queue in front counts too.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(60);
/// The highest channel number that the Java client asks for.
const CHANNEL_MAX: u16 = 2047;

/// A connection on its way up.
struct Login<'a> {
    transport: Transport,
    inbox: Inbox,
    place: String,
    tls: bool,
    who: Who<'a>,
    deadline: Instant,
    step: Step,
    /// What was agreed on, once it was; in bytes.
    frame_max: u32,
}

/// How far it has come, since the same silence means different things.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Greeting,
    Authentication,
    VirtualHost,
}

/// Logs in and opens the virtual host; see [`Client::open`].
pub fn open(
    transport: Transport,
    uri: &Uri,
    how: &Connecting,
    name: &str,
    id: &str,
    token: Option<&str>,
) -> Result<Client, Failure> {
    let who = match (how.sasl_external, token) {
        (true, _) => Who::Certificate,
        (_, Some(_)) => Who::Token,
        _ => Who::User(&uri.user),
    };
    let limits = Limits::default();
    let mut login = Login {
        transport,
        // Nothing larger may come before a frame size is agreed; server properties are not much.
        inbox: Inbox::new(limits.frame_max),
        place: uri.place(),
        tls: uri.tls,
        who,
        deadline: Instant::now() + LOGIN_TIMEOUT,
        step: Step::Greeting,
        frame_max: 0,
    };
    login.write(&PROTOCOL_HEADER)?;
    let (server, mechanisms) = login.await_method("connection.start", |method| match method {
        Method::ConnectionStart(start) => {
            let mechanisms = String::from_utf8_lossy(start.mechanisms.0).into_owned();
            Some((start.server_properties.decode(&limits), mechanisms))
        }
        _ => None,
    })?;
    let server = server.map_err(|error| {
        Failure::Connect(format!(
            "the broker at {} describes itself in a way that can't be read: {error}",
            login.place
        ))
    })?;
    login.start_ok(&mechanisms, uri, name, id, token)?;
    login.step = Step::Authentication;
    let tune = login.await_method("connection.tune", |method| match method {
        Method::ConnectionTune(tune) => Some(*tune),
        _ => None,
    })?;
    let agreed = agree(&tune, how, uri);
    login.frame_max = agreed.frame_max;
    login.send(&ConnectionTuneOk {
        channel_max: agreed.channel_max,
        frame_max: agreed.frame_max,
        heartbeat: agreed.heartbeat_s,
    })?;
    login.step = Step::VirtualHost;
    login.send(&ConnectionOpen {
        virtual_host: &uri.vhost,
    })?;
    login.await_open(&uri.vhost)?;
    Ok(Client::logged_in(
        login.transport,
        login.inbox,
        agreed,
        server,
        login.place,
    ))
}

/// What both sides keep to: 0 is no limit, and the smaller limit counts. As the Java client has it, but for a heartbeat of 0,
/// which means none here.
fn agree(tune: &ConnectionTune, how: &Connecting, uri: &Uri) -> Agreed {
    fn smaller<T: Ord + Copy + Default>(ours: T, theirs: T) -> T {
        if ours == T::default() || theirs == T::default() {
            ours.max(theirs)
        } else {
            ours.min(theirs)
        }
    }
    let heartbeat = uri.query.heartbeat_s.unwrap_or(how.heartbeat_s);
    Agreed {
        frame_max: smaller(how.frame_max, tune.frame_max),
        channel_max: smaller(uri.query.channel_max.unwrap_or(CHANNEL_MAX), tune.channel_max),
        heartbeat_s: if heartbeat == 0 {
            0
        } else {
            smaller(heartbeat, tune.heartbeat)
        },
    }
}

/// What the broker's lists show of a connection; the capabilities are those of PerfTest's client library.
fn properties(name: &str, id: &str) -> Table {
    let capabilities = [
        "publisher_confirms",
        "exchange_exchange_bindings",
        "basic.nack",
        "consumer_cancel_notify",
        "connection.blocked",
        "authentication_failure_close",
    ];
    let capabilities = capabilities
        .iter()
        .fold(Table::new(), |table, name| table.with(*name, true));
    Table::new()
        .with("product", "leveret perf")
        .with("version", env!("CARGO_PKG_VERSION"))
        .with("platform", "Rust")
        .with("capabilities", capabilities)
        .with("connection_name", name)
        .with("id", id)
}

impl Login<'_> {
    fn start_ok(
        &mut self,
        mechanisms: &str,
        uri: &Uri,
        name: &str,
        id: &str,
        token: Option<&str>,
    ) -> Result<(), Failure> {
        let (mechanism, response) = match (self.who, token) {
            (Who::Certificate, _) => ("EXTERNAL", Vec::new()),
            (_, Some(token)) => ("PLAIN", plain("", token)),
            _ => ("PLAIN", plain(&uri.user, &uri.password)),
        };
        if !mechanisms.split(' ').any(|offered| offered == mechanism) {
            let advice = if mechanism == "EXTERNAL" {
                "enable it there (for RabbitMQ: the plugin rabbitmq_auth_mechanism_ssl), or leave out --sasl-external"
            } else {
                "enable it there, or use --sasl-external"
            };
            return Err(Failure::Connect(format!(
                "the broker at {} takes logins by {mechanisms}, not by {mechanism}: {advice}",
                self.place
            )));
        }
        let mut table = Vec::new();
        properties(name, id).encode(&mut table);
        self.send(&ConnectionStartOk {
            client_properties: RawTable(&table),
            mechanism,
            response: LongStr(&response),
            locale: "en_US",
        })
    }

    fn send<'b, A: Arguments<'b>>(&mut self, arguments: &A) -> Result<(), Failure> {
        let mut frame = Vec::new();
        encode::method(&mut frame, 0, arguments);
        self.write(&frame)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Err(error) = connect::write_all(&mut self.transport, bytes) else {
            return Ok(());
        };
        if connect::is_timeout(&error) {
            return Err(self.slow());
        }
        match error.kind() {
            // What it said before it hung up is still to be read, and says more.
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => Ok(()),
            _ => Err(self.broke(&error)),
        }
    }

    fn await_open(&mut self, vhost: &str) -> Result<(), Failure> {
        let opened = self.await_event("connection.open-ok", |method| {
            matches!(method, Method::ConnectionOpenOk(_)).then_some(())
        })?;
        opened.map_err(|(code, text)| {
            Failure::Connect(refusal::at_vhost(&self.place, self.who, vhost, code, &text))
        })
    }

    fn await_method<T>(
        &mut self,
        name: &str,
        pick: impl FnMut(&Method<'_>) -> Option<T>,
    ) -> Result<T, Failure> {
        let got = self.await_event(name, pick)?;
        got.map_err(|(code, text)| Failure::Connect(refusal::at_login(&self.place, self.who, code, &text)))
    }

    /// Waits for a method, or for the broker's refusal.
    fn await_event<T>(
        &mut self,
        name: &str,
        mut pick: impl FnMut(&Method<'_>) -> Option<T>,
    ) -> Result<Result<T, (u16, String)>, Failure> {
        loop {
            if self.step == Step::Greeting
                && let Some(strange) = refusal::strange_greeting(&self.place, self.inbox.unread())
            {
                return Err(Failure::Connect(strange));
            }
            let event = self.inbox.next(0, &mut pick, &self.place);
            match event.map_err(|failure| Failure::Connect(failure.to_string()))? {
                Some(Event::Picked(picked)) => return Ok(Ok(picked)),
                Some(Event::ConnectionClosed(code, text, _)) => return Ok(Err((code, text))),
                Some(Event::Passed | Event::Blocked(_)) => {}
                Some(_) => {
                    let place = &self.place;
                    return Err(Failure::Connect(format!(
                        "the broker at {place} spoke of channels instead of {name}"
                    )));
                }
                None => self.fill()?,
            }
        }
    }

    fn fill(&mut self) -> Result<(), Failure> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.slow());
        }
        match self.inbox.fill(&mut self.transport, left) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.hung_up()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Err(self.hung_up()),
            Err(error) if connect::is_timeout(&error) => Ok(()),
            Err(error) => Err(self.broke(&error)),
        }
    }

    fn broke(&self, error: &std::io::Error) -> Failure {
        if self.tls && error.kind() == ErrorKind::InvalidData {
            return Failure::Connect(tls::failed(&self.place, error));
        }
        Failure::Connect(format!(
            "the connection to {} broke during login: {error}",
            self.place
        ))
    }

    fn slow(&self) -> Failure {
        Failure::Connect(format!(
            "the server at {} did not let us in within {} s: it may be overloaded, stopped, or no AMQP broker",
            self.place,
            LOGIN_TIMEOUT.as_secs()
        ))
    }

    /// The broker closed the connection without a word. RabbitMQ does so after a wrong login of clients that do not know
    /// better, and other brokers do so always.
    fn hung_up(&self) -> Failure {
        let place = &self.place;
        Failure::Connect(match (self.step, self.who) {
            (Step::Greeting, _) if self.tls => {
                format!("the server at {place} hung up before it said anything: is it a broker's TLS port?")
            }
            (Step::Greeting, _) => format!(
                "the server at {place} hung up before it said anything: it may be a TLS port (use amqps://), no AMQP port at all, or a broker that is starting or full"
            ),
            (Step::Authentication, Who::User(user)) => format!(
                "the broker at {place} hung up at the login of the user '{user}': check name and password in --uri amqp://NAME:PASSWORD@HOST (guest may log in from the broker's own machine only), or whether the broker is just stopping"
            ),
            (Step::Authentication, _) => {
                format!("the broker at {place} hung up at the login: its log tells why")
            }
            // RabbitMQ does not say that a frame size is too small, it hangs up.
            (Step::VirtualHost, _) if self.frame_max != 0 && self.frame_max < FRAME_MIN_SIZE => format!(
                "the broker at {place} hung up after a frame size of {} bytes was asked for: use --framemax {FRAME_MIN_SIZE} or more, or 0 for the broker's own",
                self.frame_max
            ),
            (Step::VirtualHost, _) => {
                format!("the broker at {place} hung up when the virtual host was opened: its log tells why")
            }
        })
    }
}

/// RFC 4616, without an authorisation identity.
fn plain(user: &str, password: &str) -> Vec<u8> {
    [b"\0", user.as_bytes(), b"\0", password.as_bytes()].concat()
}
