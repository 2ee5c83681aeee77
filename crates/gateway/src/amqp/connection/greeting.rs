//! From the protocol header to an open connection: who may come in.

use super::foreign;
use super::open::Open;
use crate::amqp::channel::Shared;
use crate::amqp::front_end::{Amqp, SHOWN};
use crate::amqp::refusal;
use crate::connection::Millis;
use crate::connection::Name;
use crate::incomplete::Part;
use crate::login;
use crate::output::Output;
use broker::stats::{Connection, ConnectionDetails};
use broker::{CloseReason, LoginAttempt};
use broker::{Event as BrokerEvent, LoginRefusal, Outbox, Session, User};
use listener::Security;
use model::Limits;
use model::table::Table;
use protocol::amqp::handshake::{Event, Mechanism, Offer, Tuning};
use protocol::amqp::method::{Arguments, ConnectionOpen};
use protocol::amqp::{Credentials, Exception, Handshake};
use std::sync::Arc;

/// How long a refused login waits for its answer; guessing passwords must not be quick. It costs a socket and no thread.
const DELAY: Millis = 1_000;

/// How long a refused login that is told nothing waits for the end (RabbitMQ's `SILENT_CLOSE_DELAY`).
const SILENCE: Millis = 3_000;

/// How long the client may take to answer a refusal.
const CLOSE_TIMEOUT: Millis = 3_000;

/// A connection that is not open yet.
pub struct Greeting {
    handshake: Option<Handshake>,
    limits: Limits,
    user: Option<User>,
    session: Option<Arc<Session>>,
    mechanism: Mechanism,
    /// Who wants to come in, while others decide about it.
    asked: Option<String>,
    /// The virtual host that they want, while others decide about it.
    entering: Option<String>,
    /// What came and left before it was open.
    pub(super) traffic: Traffic,
    /// How TLS secures the connection, if it does.
    security: Option<Security>,
    until: Millis,
    /// The login is refused, and the client will be told once its time is up.
    refusing: bool,
    /// Refused: only the end is waited for.
    refused: bool,
    /// Refused without a word: nothing is read any more.
    silent: bool,
    started: bool,
}

/// Bytes, and how often some came and left.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    received: (u64, u64),
    sent: (u64, u64),
}

impl Traffic {
    pub(super) fn received(&mut self, bytes: u64) {
        self.received = (self.received.0 + bytes, self.received.1 + 1);
    }

    pub(super) fn sent(&mut self, bytes: u64) {
        self.sent = (self.sent.0 + bytes, self.sent.1 + 1);
    }

    fn show(self, shown: &Connection) {
        shown.received_bytes.set(self.received.0);
        shown.reads.set(self.received.1);
        shown.sent_bytes.set(self.sent.0);
        shown.writes.set(self.sent.1);
    }
}

/// What comes after some bytes.
pub enum Step {
    /// More of the same.
    Stay,
    /// The connection stands.
    Open(Box<Open>),
    /// The client closed and was answered: it hangs up next.
    Closed,
    /// Hang up once everything is written.
    Finished,
}

impl Greeting {
    /// With RabbitMQ's offer.
    pub fn new(front_end: &Amqp, security: Option<Security>, now: Millis) -> Self {
        let limits = front_end.broker.limits().clone();
        let offer = Offer {
            server_properties: server_properties(front_end),
            mechanisms: login::mechanisms(
                &front_end.options.mechanisms,
                front_end.options.anonymous.is_some(),
                security.is_some(),
            ),
            tuning: Tuning {
                channel_max: front_end.broker.channel_max(),
                frame_max: limits.frame_max,
                heartbeat_s: front_end.options.heartbeat,
            },
        };
        Self {
            handshake: Some(Handshake::new(offer, limits.clone())),
            until: now + limits.handshake_ms,
            limits,
            user: None,
            session: None,
            mechanism: Mechanism::Plain,
            asked: None,
            entering: None,
            traffic: Traffic::default(),
            security,
            refusing: false,
            refused: false,
            silent: false,
            started: false,
        }
    }

    /// True if bytes may be fed.
    pub fn wants_input(&self) -> bool {
        !self.silent && !self.refusing && self.asked.is_none() && self.entering.is_none()
    }

    /// When it has lasted long enough.
    pub fn until(&self) -> Millis {
        self.until
    }

    /// Takes what it can of `bytes`, and answers what the handshake asks.
    pub fn input(
        &mut self,
        bytes: &[u8],
        front_end: &Amqp,
        outbox: &Arc<Outbox>,
        name: Name,
        now: Millis,
        out: &mut Output,
    ) -> (usize, Step) {
        self.started |= !bytes.is_empty();
        let mut taken = 0;
        loop {
            let Some(handshake) = &mut self.handshake else {
                return (bytes.len(), Step::Finished);
            };
            let (length, event) = handshake.advance(&bytes[taken..], out.bytes());
            taken += length;
            let Some(event) = event else {
                return (taken, Step::Stay);
            };
            match event {
                Event::Authenticate(credentials) => {
                    self.authenticate(&credentials, front_end, outbox, &name, now, out);
                }
                Event::Open { vhost } => {
                    self.entering = Some(vhost);
                    if self.must_ask(front_end, outbox) {
                        return (taken, Step::Stay);
                    }
                    if let Some(open) = self.let_in(front_end, outbox, &name, now, out) {
                        return (taken, Step::Open(open));
                    }
                }
                Event::WrongProtocol(header) => {
                    tracing::error!(
                        area = "connection",
                        "closing AMQP connection {name}: the client speaks {}; its first bytes are {:?}",
                        foreign::name(header),
                        String::from_utf8_lossy(&header)
                    );
                    return (bytes.len(), Step::Finished);
                }
                Event::Failed { exception, told } => self.failed(&exception, told, &name, now),
                Event::Closed if !self.refused => return (bytes.len(), Step::Closed),
                Event::Closed => return (bytes.len(), Step::Finished),
            }
        }
    }

    fn authenticate(
        &mut self,
        credentials: &Credentials,
        front_end: &Amqp,
        outbox: &Arc<Outbox>,
        name: &Name,
        now: Millis,
        out: &mut Output,
    ) {
        self.mechanism = credentials.mechanism;
        let attempt = login::attempt(
            credentials,
            self.security.as_ref(),
            front_end.options.anonymous.as_ref(),
            front_end.options.certificate_login,
            name.peer.ip(),
        );
        let attempt = match attempt {
            Ok(attempt) => attempt,
            Err(why) => {
                let refusal = LoginRefusal::Authority(why.to_owned());
                return self.decided("", Err(refusal), front_end, name, now, out);
            }
        };
        if front_end.broker.takes_time(&attempt) {
            self.asked = Some(attempt.user.clone());
            let outbox = outbox.clone();
            let answer = move |found| outbox.send(BrokerEvent::Login(found));
            front_end.broker.login(attempt, Box::new(answer));
        } else {
            let found = front_end.broker.known(&attempt);
            self.decided(&attempt.user, found, front_end, name, now, out);
        }
    }

    /// The answer to a login that took its time.
    pub fn answered(
        &mut self,
        found: Result<User, LoginRefusal>,
        front_end: &Amqp,
        name: &Name,
        now: Millis,
        out: &mut Output,
    ) {
        if let Some(user) = self.asked.take() {
            self.decided(&user, found, front_end, name, now, out);
        }
    }

    fn decided(
        &mut self,
        user: &str,
        found: Result<User, LoginRefusal>,
        front_end: &Amqp,
        name: &Name,
        now: Millis,
        out: &mut Output,
    ) {
        let Some(handshake) = &mut self.handshake else {
            return;
        };
        front_end.broker.login_attempted(&LoginAttempt {
            user,
            protocol: SHOWN.label,
            mechanism: self.mechanism.name(),
            connection: &name.to_string(),
            peer: name.peer,
            local: name.local,
            refused: found.as_ref().err().map(|refusal| refusal as _),
        });
        match found {
            Ok(user) => {
                self.user = Some(user);
                handshake.accept(out.bytes());
            }
            Err(refusal) => {
                tracing::error!(
                    area = "connection",
                    "error on AMQP connection {name}: {} login refused: user '{user}' - {refusal}",
                    self.mechanism.name(),
                );
                self.refused = true;
                self.refusing = true;
                self.until = now + DELAY;
            }
        }
    }

    /// True if the login is refused and the client has not been told.
    pub fn is_refusing(&self) -> bool {
        self.refusing
    }

    /// Tells the client that its login is refused, now that it has waited.
    pub fn refuse(&mut self, now: Millis, out: &mut Output) {
        self.refusing = false;
        if let Some(handshake) = &mut self.handshake
            && let Event::Failed { told, .. } = handshake.refuse(out.bytes())
        {
            self.await_end(told, now - DELAY);
        }
    }

    /// True if somebody else must say first whether the user may enter the virtual host. Then [`Event::Permitted`] comes.
    ///
    /// [`Event::Permitted`]: BrokerEvent::Permitted
    fn must_ask(&self, front_end: &Amqp, outbox: &Arc<Outbox>) -> bool {
        let (Some(user), Some(vhost)) = (&self.user, &self.entering) else {
            return false;
        };
        let Some(rights) = &user.rights else {
            return false;
        };
        let outbox = outbox.clone();
        !user.enters(&front_end.broker.view(), vhost)
            && rights.ask(Box::new(move || outbox.send(BrokerEvent::Permitted)))
    }

    /// Opens the virtual host, now that it is known whether the user may enter it.
    pub fn let_in(
        &mut self,
        front_end: &Amqp,
        outbox: &Arc<Outbox>,
        name: &Name,
        now: Millis,
        out: &mut Output,
    ) -> Option<Box<Open>> {
        let vhost = self.entering.take()?;
        self.admit(&vhost, front_end, outbox, name, now, out);
        let mut open = self.opened(front_end, outbox, name, now)?;
        open.alarm = front_end.broker.alarm();
        Some(Box::new(open))
    }

    fn admit(
        &mut self,
        vhost: &str,
        front_end: &Amqp,
        outbox: &Arc<Outbox>,
        name: &Name,
        now: Millis,
        out: &mut Output,
    ) {
        let (Some(handshake), Some(user)) = (&mut self.handshake, self.user.take()) else {
            return;
        };
        match front_end.broker.connect(user, vhost, outbox.clone()) {
            Ok(session) => {
                handshake.open(out.bytes());
                tracing::info!(
                    area = "connection",
                    "connection {name}{}: user '{}' authenticated and granted access to vhost '{vhost}'",
                    handshake
                        .client()
                        .connection_name()
                        .map(|name| format!(" - {name}"))
                        .unwrap_or_default(),
                    session.user().name,
                );
                self.session = Some(session);
            }
            Err(refused) => {
                let exception = refusal::of_vhost(&refused, ConnectionOpen::ID);
                if let Event::Failed { exception, told } = handshake.refuse_open(exception, out.bytes()) {
                    self.failed(&exception, told, name, now);
                }
            }
        }
    }

    fn opened(&mut self, front_end: &Amqp, outbox: &Arc<Outbox>, name: &Name, now: Millis) -> Option<Open> {
        let session = self.session.take()?;
        let (client, tuning) = self.handshake.take()?.finish();
        let shown = session.introduce(ConnectionDetails {
            name: name.to_string(),
            peer: name.peer,
            local: name.local,
            protocol: SHOWN,
            mechanism: self.mechanism.name(),
            client_properties: client.properties,
            agreed: vec![
                ("channel_max", tuning.channel_max.into()),
                ("frame_max", tuning.frame_max),
                ("timeout", tuning.heartbeat_s.into()),
            ],
            security: self.security.take().map(login::shown),
        });
        self.traffic.show(&shown);
        let remaining = session.remaining();
        let shared = Shared {
            session,
            limits: self.limits.clone(),
            tuning,
            now,
        };
        let part = Part::new(front_end.incomplete.clone());
        let mut open = Open::new(shared, shown, outbox.clone(), client.capabilities, part);
        open.watch_credentials(remaining);
        Some(open)
    }

    fn failed(&mut self, exception: &Exception, told: bool, name: &Name, now: Millis) {
        tracing::error!(
            area = "connection",
            "error on AMQP connection {name}: {}",
            exception.reply_text()
        );
        self.await_end(told, now);
    }

    fn await_end(&mut self, told: bool, now: Millis) {
        self.refused = true;
        self.silent = !told;
        self.until = now + if told { CLOSE_TIMEOUT } else { SILENCE };
    }

    /// The node wants it closed.
    pub fn close(&mut self, reason: &CloseReason, now: Millis, out: &mut Output) {
        let Some(handshake) = &mut self.handshake else {
            return;
        };
        if let Event::Failed { told, .. } = handshake.fail(refusal::of_close(reason), out.bytes()) {
            self.refusing = false;
            self.refused = true;
            self.silent = !told;
            self.until = if told { now + CLOSE_TIMEOUT } else { now };
        }
    }

    /// It has lasted too long.
    pub fn overdue(&self, name: &Name) {
        if !self.refused {
            tracing::error!(
                area = "connection",
                "closing AMQP connection {name}: the handshake took too long"
            );
        }
    }

    /// The socket is gone. Health checks connect and hang up without a byte; they are not worth a warning.
    pub fn hung_up(&self, name: &Name, why: &str) {
        if self.started && !self.refused {
            tracing::warn!(
                area = "connection",
                "closing AMQP connection {name} during its handshake: {why}"
            );
        }
    }
}

/// What the server says about itself. A capability is named once it is true.
fn server_properties(front_end: &Amqp) -> Table {
    let capabilities: Table = [
        "publisher_confirms",
        "exchange_exchange_bindings",
        "basic.nack",
        "consumer_cancel_notify",
        "connection.blocked",
        "consumer_priorities",
        "authentication_failure_close",
        "per_consumer_qos",
        "direct_reply_to",
    ]
    .into_iter()
    .map(|name| (name, true))
    .collect();
    let options = &front_end.options;
    Table::new()
        .with("capabilities", capabilities)
        .with("cluster_name", front_end.broker.cluster_name())
        .with("copyright", "Copyright the Leveret authors")
        .with("information", "Licensed under the Apache License 2.0")
        .with("leveret_version", options.leveret_version.as_str())
        .with("platform", "Rust")
        .with("product", options.product.as_str())
        .with("version", options.version.as_str())
}
