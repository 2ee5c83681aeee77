//! Who comes in: the catalog decides, or an authority that knows further users.

use crate::broker::Broker;
use crate::clients::access::{ANSWER_TIMEOUT, Answer, Attempt, Authority, LoginRefusal, User, Users};
use crate::events::Happening;
use crate::stats::host;
use catalog::{PasswordHash, PasswordHashing, User as UserView, View};
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, mpsc};

/// A client tried to log in.
pub struct LoginAttempt<'a> {
    /// As whom.
    pub user: &'a str,
    /// By which protocol, in RabbitMQ's labels: `amqp091`.
    pub protocol: &'static str,
    /// Such as `PLAIN`.
    pub mechanism: &'a str,
    /// What the connection is called.
    pub connection: &'a str,
    /// The client's end.
    pub peer: SocketAddr,
    /// The node's end.
    pub local: SocketAddr,
    /// Why it was refused, if it was.
    pub refused: Option<&'a dyn Display>,
}

impl Broker {
    /// Tells those who watch of a login.
    pub fn login_attempted(&self, attempt: &LoginAttempt<'_>) {
        let counts = self.stats().login_attempts();
        let (from, user) = (attempt.peer.ip(), attempt.user);
        counts.record(attempt.protocol, from, user, attempt.refused.is_none());
        self.happened(|| {
            let key = match attempt.refused {
                None => "user.authentication.success",
                Some(_) => "user.authentication.failure",
            };
            let happening = Happening::new(key)
                .with("name", attempt.user)
                .with("auth_mechanism", attempt.mechanism)
                .with("connection_name", attempt.connection)
                .with("connection_type", "network")
                .with("peer_host", host(attempt.peer, attempt.local))
                .with("peer_port", i64::from(attempt.peer.port()));
            match attempt.refused {
                None => happening,
                Some(refusal) => happening.with("error", refusal.to_string()),
            }
        });
    }

    /// From now on this authority decides who comes in. The first one stays.
    pub fn trust(&self, authority: Arc<dyn Authority>) {
        let _ = self.authority().set(authority);
    }

    /// Drops what is cached of the answers of other servers about logins and permissions; false if none ever are.
    pub fn clear_auth_cache(&self) -> bool {
        let authority = self.authority().get();
        authority.is_some_and(|authority| authority.clear_cache())
    }

    /// True if this login may take its time.
    pub fn takes_time(&self, attempt: &Attempt) -> bool {
        self.authority().get().is_some() || self.is_slow(attempt)
    }

    /// True if [`Broker::known`] would keep whoever asks it busy for long: it has to look at a slow hash. On a node
    /// whose new hashes are slow it also looks at one for a user that is not there, whose absence nobody shall learn
    /// from the time that it takes.
    pub fn is_slow(&self, attempt: &Attempt) -> bool {
        let Some(password) = attempt.password.as_deref() else {
            return false;
        };
        match self.view().user(&attempt.user) {
            None => self.hashes_slowly(),
            Some(user) => user
                .password()
                .is_some_and(|hash| hash.is_slow() && !self.passwords().knows(hash, password)),
        }
    }

    fn hashes_slowly(&self) -> bool {
        self.options().password_hashing == PasswordHashing::Argon2id
    }

    /// Asks whoever decides. Users who may come from this machine only do so whoever knows them.
    pub fn login(self: &Arc<Self>, attempt: Attempt, answer: Answer) {
        let peer = attempt.peer;
        let Some(authority) = self.authority().get() else {
            return match self.is_slow(&attempt) {
                true => {
                    let broker = Arc::downgrade(self);
                    let look = move || broker.upgrade().map(|broker| broker.known(&attempt));
                    self.passwords().give(look, answer);
                }
                false => answer(self.known(&attempt)),
            };
        };
        let broker = self.clone();
        let checked = move |found: Result<User, LoginRefusal>| {
            answer(found.and_then(|user| broker.check_origin(&user.name, peer).map(|()| user)));
        };
        let users: Arc<dyn Users> = self.clone();
        authority.login(&users, attempt, Box::new(checked));
    }

    /// Checks a user's password and where they come from, and waits for the answer.
    ///
    /// # Errors
    /// Refused; the text is for the log, never for the client.
    pub fn authenticate(
        self: &Arc<Self>,
        user: &str,
        password: &[u8],
        peer: IpAddr,
    ) -> Result<User, LoginRefusal> {
        let attempt = Attempt {
            user: user.to_owned(),
            password: Some(password.to_vec()),
            peer,
        };
        if !self.takes_time(&attempt) {
            return self.known(&attempt);
        }
        let (sender, receiver) = mpsc::sync_channel(1);
        self.login(
            attempt,
            Box::new(move |found| {
                // Whoever asked may have given up.
                let _ = sender.send(found);
            }),
        );
        let late = || LoginRefusal::Authority("no authentication backend answered in time".into());
        receiver
            .recv_timeout(ANSWER_TIMEOUT)
            .unwrap_or_else(|_| Err(late()))
    }

    /// What the catalog says about somebody, with their password or, if something else has proven their name, without.
    ///
    /// # Errors
    /// Refused; the text is for the log, never for the client.
    pub fn known(&self, attempt: &Attempt) -> Result<User, LoginRefusal> {
        let view = self.view();
        let found = match &attempt.password {
            Some(password) => self.recognized(&view, &attempt.user, password)?,
            None => view.user(&attempt.user).ok_or(LoginRefusal::Credentials)?.clone(),
        };
        self.check_origin(&attempt.user, attempt.peer)?;
        Ok(User {
            tags: found.tags.iter().map(ToString::to_string).collect(),
            ..User::named(attempt.user.clone())
        })
    }

    fn recognized(&self, view: &View, user: &str, password: &[u8]) -> Result<UserView, LoginRefusal> {
        let known = view.user(user);
        let slow = known.and_then(UserView::password).filter(|hash| hash.is_slow());
        if let (Some(known), Some(_)) = (known, slow.filter(|hash| self.passwords().knows(hash, password))) {
            return Ok(known.clone());
        }
        if known.is_none() && self.hashes_slowly() {
            let _ = PasswordHash::slow([0; 16], password);
        }
        let found = view.authenticate(user, password);
        if let (Ok(_), Some(hash)) = (&found, slow) {
            self.passwords().learn(hash, password);
        }
        found.map_err(|_| LoginRefusal::Credentials)
    }

    fn check_origin(&self, user: &str, peer: IpAddr) -> Result<(), LoginRefusal> {
        let bound = self.options().loopback_users.iter().any(|name| name == user);
        if bound && !peer.to_canonical().is_loopback() {
            return Err(LoginRefusal::NotLocal { user: user.into() });
        }
        Ok(())
    }
}

impl Users for Broker {
    fn known(&self, attempt: &Attempt) -> Result<User, LoginRefusal> {
        Broker::known(self, attempt)
    }

    fn is_slow(&self, attempt: &Attempt) -> bool {
        Broker::is_slow(self, attempt)
    }
}
