//! Who comes in when others than the catalog decide: authorities, and the rights that they give.
//!
//! The catalog knows users, their passwords and their permissions. An authority (tokens, a service of the operator's) may know
//! further ones; it is asked by [`Broker::login`], may take its time, and hands out rights that are asked instead of the
//! catalog's permissions from then on.

use crate::broker::Broker;
use crate::session::User;
pub use catalog::{ObjectKind, Pattern, Verb};
use catalog::{PasswordHash, PasswordHashing, User as UserView, View};
use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime};

/// How long somebody who can wait does so for an authority's answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Somebody who wants to come in. Its debug form keeps the password to itself.
#[derive(Clone)]
pub struct Attempt {
    /// The name that they gave; a token may name another one.
    pub user: String,
    /// The password, or a token in its place; `None` if something else has proven the name, such as a certificate.
    pub password: Option<Vec<u8>>,
    /// Where they come from.
    pub peer: IpAddr,
}

/// What becomes of the answer; called once, on any thread.
pub type Answer = Box<dyn FnOnce(Result<User, LoginRefusal>) + Send>;

/// Decides who comes in.
pub trait Authority: Send + Sync {
    /// Gives the answer, now or later. Must not wait on the calling thread.
    fn login(&self, broker: &Arc<Broker>, attempt: Attempt, answer: Answer);

    /// Drops the answers that are cached; false if none ever are.
    fn clear_cache(&self) -> bool {
        false
    }
}

/// What becomes of asking about rights; called once, on any thread, when it is known.
pub type Known = Box<dyn FnOnce() + Send + Sync>;

/// What somebody may do, by an authority's word. Asked often; must not wait. An authority that would have to ask somebody else
/// first says no and notes the question; whoever was refused calls [`Rights::ask`] and, if that is true, tries again later.
pub trait Rights: Debug + Send + Sync {
    /// May they enter this virtual host?
    fn enter(&self, vhost: &str) -> bool;
    /// May they do this to an object of this name? The default exchange is called `amq.default`.
    fn may(&self, vhost: &str, verb: Verb, kind: ObjectKind, name: &str) -> bool;
    /// May they do this with this routing key of a topic exchange?
    fn may_with_key(&self, vhost: &str, verb: Verb, exchange: &str, key: &[u8]) -> bool;
    /// When the word ends.
    fn until(&self) -> Option<SystemTime>;

    /// Asks about what was noted. False if that was nothing: what was refused is refused, and nothing is called.
    fn ask(&self, known: Known) -> bool {
        drop(known);
        false
    }

    /// What was tried again after [`Rights::ask`] has succeeded: refusals that were met on the way are asked for again next time.
    fn settle(&self) {}
}

/// Why a login was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginRefusal {
    /// No such user, no password, or the wrong one.
    Credentials,
    /// The user may come from this machine only.
    NotLocal {
        /// Who.
        user: String,
    },
    /// An authority refused, or could not be asked; in words that repeat no secret.
    Authority(String),
}

impl std::fmt::Display for LoginRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Credentials => f.write_str("invalid credentials"),
            Self::NotLocal { user } => write!(f, "user '{user}' can only connect via localhost"),
            Self::Authority(why) => f.write_str(why),
        }
    }
}

impl Debug for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempt")
            .field("user", &self.user)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

impl User {
    /// May the user enter this virtual host, by the catalog's word or its own authority's?
    pub fn enters(&self, view: &View, vhost: &str) -> bool {
        match &self.rights {
            None => view.vhost_access(&self.name, vhost),
            Some(rights) => view.vhost(vhost).is_some() && rights.enter(vhost),
        }
    }

    /// After something was refused: true if that was only because somebody else had to be asked about rights first, who has answered
    /// now. Waits for it.
    pub fn has_asked(&self) -> bool {
        let Some(rights) = &self.rights else {
            return false;
        };
        let (sender, receiver) = mpsc::sync_channel(1);
        let known = move || {
            // Whoever asked may have lost patience.
            let _ = sender.send(());
        };
        rights.ask(Box::new(known)) && receiver.recv_timeout(PATIENCE).is_ok()
    }
}

impl Broker {
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

    /// True if [`Broker::known`] would keep whoever asks it busy for long: it has to look at a slow hash. On a node whose new hashes
    /// are slow it also looks at one for a user that is not there, whose absence nobody shall learn from the time that it takes.
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
                true => self.passwords().give(self, attempt, answer),
                false => answer(self.known(&attempt)),
            };
        };
        let broker = self.clone();
        let checked = move |found: Result<User, LoginRefusal>| {
            answer(found.and_then(|user| broker.check_origin(&user.name, peer).map(|()| user)));
        };
        authority.login(self, attempt, Box::new(checked));
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
                // Whoever asked may have lost patience.
                let _ = sender.send(found);
            }),
        );
        let late = || LoginRefusal::Authority("no authentication backend answered in time".into());
        receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| Err(late()))
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
