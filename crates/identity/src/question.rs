//! A question about a permission: who wants to do what.

use crate::verdict::Denied;
use broker::access::{ObjectKind, Verb};
use std::fmt;
use std::net::IpAddr;

/// Something that somebody wants to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Enter the virtual host.
    Enter,
    /// Do this to an object of this name.
    Object {
        verb: Verb,
        kind: ObjectKind,
        name: String,
    },
    /// Do this with this routing key of a topic exchange.
    Key {
        verb: Verb,
        exchange: String,
        key: Vec<u8>,
    },
}

/// What is asked: about a virtual host, and perhaps something in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccessQuestion {
    /// The virtual host.
    pub vhost: String,
    /// What they want to do there.
    pub action: Action,
}

/// Who wants to do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// Their name.
    pub name: String,
    /// Their tags.
    pub tags: Vec<String>,
    /// Where they come from.
    pub peer: IpAddr,
    /// Their place in a directory, if one is asked.
    pub directory_user: Option<DirectoryUser>,
}

/// A routing key, for servers that are asked in text.
///
/// # Errors
/// It is none.
pub fn text_of_key(key: &[u8]) -> Result<&str, Denied> {
    std::str::from_utf8(key).map_err(|_| {
        Denied::Refused("the routing key is not UTF-8, so the server cannot be asked about it".into())
    })
}

/// Answers questions; may take its time.
pub trait Authorizer: Send + Sync {
    /// May they?
    ///
    /// # Errors
    /// No, or nobody knows.
    fn may(&self, person: &Person, question: &AccessQuestion) -> Result<(), Denied>;
}

/// Somebody's place in the directory, for questions about them.
#[derive(Clone, PartialEq, Eq)]
pub struct DirectoryUser {
    /// Their name there.
    pub name: String,
    /// Their password, if the directory is asked as them.
    pub password: Option<Vec<u8>>,
}

impl fmt::Debug for DirectoryUser {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Display for AccessQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vhost = &self.vhost;
        match &self.action {
            Action::Enter => write!(f, "access to vhost '{vhost}'"),
            Action::Object { verb, kind, name } => write!(f, "{verb} on {kind} '{name}' in vhost '{vhost}'"),
            Action::Key { verb, exchange, key } => {
                let key = String::from_utf8_lossy(key);
                write!(
                    f,
                    "{verb} with key '{key}' on exchange '{exchange}' in vhost '{vhost}'"
                )
            }
        }
    }
}
