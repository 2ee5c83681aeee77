//! Who wants to come in, and what becomes of it: at the beginning, and when a client shows new credentials.

use super::{Stage, StreamConnection};
use crate::connection::{Millis, Name};
use crate::login;
use crate::output::Output;
use crate::stream::front_end::{SHOWN, Stream};
use crate::stream::refusal;
use broker::{Event as BrokerEvent, LoginAttempt, LoginRefusal, Outbox, User};
use listener::Security;
use protocol::amqp::Credentials;
use protocol::amqp::handshake::Mechanism;
use protocol::stream::{Event, ResponseCode};
use std::sync::Arc;

/// How long a refused login waits for its answer; guessing passwords must not be quick. It costs a socket and no thread.
pub const DELAY: Millis = 1_000;

/// What a connection knows of its login.
pub struct Login {
    /// How TLS secures the connection, if it does.
    pub security: Option<Security>,
    /// How the client logs in.
    pub mechanism: Mechanism,
    /// Who wants to come in, while it is being decided.
    asked: Option<String>,
}

/// A login that is refused, and whose client has not been told yet.
pub struct Refusing {
    /// What it will be told.
    pub code: ResponseCode,
    /// Why, for the log.
    pub why: String,
}

impl Login {
    /// Of nobody yet.
    pub fn new(security: Option<Security>) -> Self {
        Self {
            security,
            mechanism: Mechanism::Plain,
            asked: None,
        }
    }

    /// True while others decide.
    pub fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Has it decided. What takes time comes as [`BrokerEvent::Login`].
    pub fn ask(
        &mut self,
        credentials: &Credentials,
        front_end: &Stream,
        outbox: &Arc<Outbox>,
        name: &Name,
    ) -> Option<Result<User, LoginRefusal>> {
        self.mechanism = credentials.mechanism;
        let options = &front_end.options;
        let attempt = login::attempt(
            credentials,
            self.security.as_ref(),
            options.anonymous.as_ref(),
            options.certificate_login,
            name.peer.ip(),
        );
        let attempt = match attempt {
            Ok(attempt) => attempt,
            Err(why) => {
                self.asked = Some(String::new());
                return Some(Err(LoginRefusal::Authority(why.to_owned())));
            }
        };
        self.asked = Some(attempt.user.clone());
        if !front_end.broker.takes_time(&attempt) {
            return Some(front_end.broker.known(&attempt));
        }
        let outbox = outbox.clone();
        let answer = move |found| outbox.send(BrokerEvent::Login(found));
        front_end.broker.login(attempt, Box::new(answer));
        None
    }

    /// It is decided: tells operators and the log of it. Nothing, if nobody waits for it any more.
    fn decided(
        &mut self,
        found: Result<User, LoginRefusal>,
        front_end: &Stream,
        name: &Name,
    ) -> Option<Result<User, Refusing>> {
        let user = self.asked.take()?;
        let connection = name.to_string();
        front_end.broker.login_attempted(&LoginAttempt {
            user: &user,
            protocol: SHOWN.label,
            mechanism: self.mechanism.name(),
            connection: &connection,
            peer: name.peer,
            local: name.local,
            refused: found.as_ref().err().map(|refusal| refusal as _),
        });
        Some(found.map_err(|refusal| Refusing {
            code: refusal::of_login(&refusal),
            why: format!(
                "{} login refused: user '{user}' - {refusal}",
                self.mechanism.name()
            ),
        }))
    }
}

impl StreamConnection {
    /// It is known whether the client may log in, or whether its new credentials are good.
    pub(super) fn login_decided(&mut self, found: Result<User, LoginRefusal>, now: Millis, out: &mut Output) {
        match &mut self.stage {
            Stage::Opening(opening) => match opening.login.decided(found, &self.front_end, &self.name) {
                Some(Ok(user)) => {
                    opening.user = Some(user);
                    self.machine.accept(out.bytes());
                }
                Some(Err(refusing)) => {
                    opening.refusing = Some(refusing);
                    opening.until = now + DELAY;
                }
                None => {}
            },
            Stage::Open(open) => {
                let refusing = match open.login.decided(found, &self.front_end, &self.name) {
                    Some(Ok(user)) if user.name == open.session.user().name => {
                        open.session.renew(user.rights);
                        self.machine.accept(out.bytes());
                        return open.rights_changed(out);
                    }
                    Some(Ok(user)) => Refusing {
                        code: ResponseCode::SaslCannotChangeUsername,
                        why: format!("the new credentials are those of '{}'", user.name),
                    },
                    Some(Err(refusing)) => refusing,
                    None => return,
                };
                open.refusing = Some(refusing);
                open.refuse_at = now + DELAY;
            }
            Stage::Closing(_) | Stage::Finished => {}
        }
    }

    /// Tells the client that its login is refused, now that it has waited.
    pub(super) fn refuse_login(&mut self, now: Millis, out: &mut Output) {
        let refusing = match &mut self.stage {
            Stage::Opening(opening) => opening.refusing.take(),
            Stage::Open(open) => open.refusing.take(),
            Stage::Closing(_) | Stage::Finished => None,
        };
        if let Some(refusing) = refusing {
            let event: Event<'_> = self.machine.refuse(refusing.code, refusing.why, out.bytes());
            self.event(event, now, out);
        }
    }
}
