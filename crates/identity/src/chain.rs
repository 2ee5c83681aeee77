//! Whom to ask, in which order: RabbitMQ's `auth_backends`.

use crate::oauth2::{OAuth2, Refused};
use crate::workers::Workers;
use broker::access::{Answer, Attempt, Authority};
use broker::{Broker, LoginRefusal, User};
use std::sync::Arc;

/// Somebody who can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The catalog: `internal`.
    Internal,
    /// Tokens: `oauth2`.
    OAuth2,
}

/// One step of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Who checks passwords.
    pub authenticates: Backend,
    /// Who says what the user may do; the same, or the catalog.
    pub authorizes: Backend,
}

/// The whole chain. The first link that lets somebody in decides; if none does, nobody comes in.
pub struct Chain {
    asked: Arc<Asked>,
    workers: Workers,
}

struct Asked {
    links: Vec<Link>,
    oauth2: Option<OAuth2>,
}

/// What came of asking without waiting.
enum Found {
    Decided(Result<User, LoginRefusal>),
    /// Another server must be asked first.
    MustWait,
}

impl Chain {
    /// A chain of these links.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(links: Vec<Link>, oauth2: Option<OAuth2>) -> std::io::Result<Self> {
        Ok(Self {
            asked: Arc::new(Asked { links, oauth2 }),
            workers: Workers::start()?,
        })
    }
}

impl Authority for Chain {
    fn login(&self, broker: &Arc<Broker>, attempt: Attempt, answer: Answer) {
        if let Found::Decided(found) = self.asked.ask(broker, &attempt, false) {
            return answer(found);
        }
        let (asked, broker) = (self.asked.clone(), broker.clone());
        let work = move || {
            let found = asked.ask(&broker, &attempt, true);
            answer(match found {
                Found::Decided(found) => found,
                Found::MustWait => Err(LoginRefusal::Authority("nobody could be asked".into())),
            });
        };
        if self.workers.give(Box::new(work)).is_err() {
            // The answer went with the work: whoever waits for it gives up in time.
            tracing::error!(
                area = "connection",
                "too many logins wait for other servers; one was dropped"
            );
        }
    }
}

impl Asked {
    fn ask(&self, broker: &Arc<Broker>, attempt: &Attempt, may_wait: bool) -> Found {
        let mut last = LoginRefusal::Credentials;
        for link in &self.links {
            let found = match link.authenticates {
                Backend::Internal => broker.known(attempt),
                Backend::OAuth2 => match self.token(attempt, may_wait) {
                    Err(Refused::UnknownKey(_)) if !may_wait => return Found::MustWait,
                    Err(refused) => Err(LoginRefusal::Authority(refused.to_string())),
                    Ok(user) => authorized(broker, link, user, attempt),
                },
            };
            match found {
                Ok(user) => return Found::Decided(Ok(user)),
                Err(refusal) => last = refusal,
            }
        }
        Found::Decided(Err(last))
    }

    fn token(&self, attempt: &Attempt, may_wait: bool) -> Result<User, Refused> {
        let oauth2 = self
            .oauth2
            .as_ref()
            .ok_or(Refused::Malformed("there are no settings for tokens"))?;
        let token = attempt
            .password
            .as_deref()
            .ok_or(Refused::Malformed("there is no token"))?;
        oauth2.user(token, may_wait)
    }
}

/// A user of another's, with the rights that the link gives. If the catalog has them, it must know the user.
fn authorized(
    broker: &Arc<Broker>,
    link: &Link,
    user: User,
    attempt: &Attempt,
) -> Result<User, LoginRefusal> {
    if link.authorizes != Backend::Internal {
        return Ok(user);
    }
    let named = Attempt {
        user: user.name,
        password: None,
        peer: attempt.peer,
    };
    broker.known(&named)
}
