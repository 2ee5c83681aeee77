//! Users as sessions know them, and who comes in when others than the catalog decide: authorities, and the rights that they give.
//!
//! The catalog knows users, their passwords and their permissions. An authority (tokens, a service of the operator's) may know
//! further ones; it is asked when somebody logs in, may take its time, and hands out rights that are asked instead of the
//! catalog's permissions from then on.

use catalog::View;
pub use catalog::{ObjectKind, Pattern, Verb};
use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime};

/// The name under which the node itself acts (RabbitMQ's).
pub const THE_NODE: &str = "rmq-internal";

/// How long somebody who can wait does so for an authority's answer.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// What a user may do in a virtual host, as regular expressions on names of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// What may be declared and deleted.
    pub configure: String,
    /// What may be sent to.
    pub write: String,
    /// What may be taken from.
    pub read: String,
}

impl Permissions {
    /// To do everything.
    pub fn all() -> Self {
        let everything = || ".*".to_owned();
        Self {
            configure: everything(),
            write: everything(),
            read: everything(),
        }
    }
}

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

/// The users that the catalog knows, for authorities that let those in as well.
pub trait Users: Send + Sync {
    /// What the catalog says about somebody, with their password or, if something else has proven their name, without.
    ///
    /// # Errors
    /// Refused; the text is for the log, never for the client.
    fn known(&self, attempt: &Attempt) -> Result<User, LoginRefusal>;

    /// True if [`Users::known`] would keep whoever asks it busy for long: it has to look at a slow hash.
    fn is_slow(&self, attempt: &Attempt) -> bool;
}

/// Decides who comes in.
pub trait Authority: Send + Sync {
    /// Gives the answer, now or later. Must not wait on the calling thread.
    fn login(&self, users: &Arc<dyn Users>, attempt: Attempt, answer: Answer);

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

/// A user who logged in.
#[derive(Clone, Debug)]
pub struct User {
    /// The name.
    pub name: Arc<str>,
    /// Its tags, such as `administrator`.
    pub tags: Vec<String>,
    /// What it may do by its authority's word; `None` leaves it to the catalog's permissions.
    pub rights: Option<Arc<dyn Rights>>,
}

impl User {
    /// True if the catalog says what they may do, not another authority.
    pub fn is_internal(&self) -> bool {
        self.rights.is_none()
    }

    /// A user of the catalog without tags.
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            tags: Vec::new(),
            rights: None,
        }
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

    /// After something was refused: true if that was only because somebody else had to be asked about rights first, who
    /// has answered now. Waits for it.
    pub fn has_asked(&self) -> bool {
        let Some(rights) = &self.rights else {
            return false;
        };
        let (sender, receiver) = mpsc::sync_channel(1);
        let known = move || {
            // Whoever asked may have given up.
            let _ = sender.send(());
        };
        rights.ask(Box::new(known)) && receiver.recv_timeout(ANSWER_TIMEOUT).is_ok()
    }
}
