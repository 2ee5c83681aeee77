//! From the first frame to an open virtual host: who may come in.

use super::login::{Login, Refusing};
use super::open::Open;
use super::{Stage, StreamConnection};
use crate::connection::Millis;
use crate::login;
use crate::output::Output;
use crate::stream::front_end::{SHOWN, Stream};
use crate::stream::inbox::Inbox;
use crate::stream::options::Options;
use broker::stats::ConnectionDetails;
use broker::{Event as BrokerEvent, Outbox, User};
use listener::Security;
use protocol::amqp::handshake::Mechanism;
use protocol::stream::ResponseCode;
use std::sync::Arc;

/// A connection that is not open yet.
pub struct Opening {
    pub(super) login: Login,
    pub(super) user: Option<User>,
    /// The virtual host that they want, while others decide about it.
    pub(super) entering: Option<String>,
    /// The login is refused, and the client will be told once its time is up.
    pub(super) refusing: Option<Refusing>,
    /// When it has lasted long enough.
    pub(super) until: Millis,
}

impl Opening {
    /// Of nobody yet.
    pub fn new(security: Option<Security>, until: Millis) -> Self {
        Self {
            login: Login::new(security),
            user: None,
            entering: None,
            refusing: None,
            until,
        }
    }

    /// True if bytes may be fed.
    pub fn wants_input(&self) -> bool {
        self.refusing.is_none() && self.entering.is_none() && !self.login.is_asked()
    }

    /// True if somebody else must say first whether the user may enter the virtual host. Then [`BrokerEvent::Permitted`] comes.
    pub fn must_ask(&self, front_end: &Stream, outbox: &Arc<Outbox>) -> bool {
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
}

impl StreamConnection {
    /// Opens the virtual host, now that it is known whether the user may enter it.
    pub(super) fn enter(&mut self, now: Millis, out: &mut Output) {
        let Stage::Opening(opening) = &mut self.stage else {
            return;
        };
        let (Some(vhost), Some(user)) = (opening.entering.take(), opening.user.take()) else {
            return;
        };
        let front_end = self.front_end.clone();
        let session = match front_end.broker.connect(user, &vhost, self.outbox.clone()) {
            Ok(session) => session,
            Err(refusal) => {
                let code = ResponseCode::VirtualHostAccessFailure;
                let event = self.machine.refuse(code, refusal.to_string(), out.bytes());
                return self.event(event, now, out);
            }
        };
        let advertised = match opening.login.security {
            Some(_) => &front_end.options.advertised_tls,
            None => &front_end.options.advertised,
        };
        let port = advertised.port.to_string();
        let properties = [
            ("advertised_host", &advertised.host[..]),
            ("advertised_port", &port[..]),
        ];
        self.machine.open(&properties, out.bytes());
        tracing::info!(
            area = "connection",
            "stream connection {}: user '{}' authenticated and granted access to vhost '{vhost}'",
            self.name,
            session.user().name,
        );
        let shown = session.introduce(ConnectionDetails {
            name: self.name.to_string(),
            peer: self.name.peer,
            local: self.name.local,
            protocol: SHOWN,
            mechanism: opening.login.mechanism.name(),
            client_properties: self.machine.properties().clone(),
            agreed: vec![
                ("frame_max", self.machine.frame_max()),
                ("timeout", self.machine.heartbeat_s()),
            ],
            security: opening.login.security.clone().map(login::shown),
        });
        let login = std::mem::replace(&mut opening.login, Login::new(None));
        let inbox = Arc::new(Inbox::new(self.outbox.clone()));
        let streams = front_end
            .source
            .open(&session, inbox.clone(), login.security.is_some());
        let mut open = Open::new(
            session,
            shown,
            streams,
            inbox,
            login,
            &front_end.options,
            self.machine.heartbeat_s(),
            now,
        );
        open.frame_max = self.machine.frame_max();
        open.alarm = front_end.broker.alarm().is_some();
        self.stage = Stage::Open(Box::new(open));
    }

    /// It has lasted too long, or the client has waited long enough for its refusal.
    pub(super) fn opening_over(&mut self, now: Millis, out: &mut Output) {
        if matches!(&self.stage, Stage::Opening(opening) if opening.refusing.is_some()) {
            return self.refuse_login(now, out);
        }
        tracing::warn!(
            area = "connection",
            "closing stream connection {}: it took too long in state '{}'",
            self.name,
            self.machine.state_name()
        );
        self.stage = Stage::Finished;
    }
}

/// The mechanisms that are offered.
pub fn mechanisms(options: &Options, secured: bool) -> Vec<Mechanism> {
    login::mechanisms(&options.mechanisms, options.anonymous.is_some(), secured)
}

/// What the server says about itself.
pub fn server_properties(front_end: &Stream) -> Vec<(String, String)> {
    let options = &front_end.options;
    let cluster = front_end.broker.cluster_name();
    let properties: [(&str, &str); 7] = [
        ("cluster_name", &cluster),
        ("copyright", "Copyright the Leveret authors"),
        ("information", "Licensed under the Apache License 2.0"),
        ("leveret_version", &options.leveret_version),
        ("platform", "Rust"),
        ("product", &options.product),
        ("version", &options.version),
    ];
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    properties.into_iter().map(owned).collect()
}
