//! Why the broker closes connections.

use std::fmt;

/// Why a client's connection is closed that has done nothing wrong. Each protocol has codes of its own for these; the text is
/// what RabbitMQ shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The node stops.
    Shutdown,
    /// The node goes into maintenance: clients are to go to another one.
    Maintenance,
    /// The virtual host of this name is deleted.
    VhostDeleted(String),
    /// The user of this name is deleted.
    UserDeleted(String),
    /// The user's credentials, which were good for some time, have ended.
    CredentialsExpired,
    /// An operator closes it and says why.
    Operator(String),
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shutdown => f.write_str("broker forced connection closure with reason 'shutdown'"),
            Self::Maintenance => f.write_str("Node was put into maintenance mode"),
            Self::VhostDeleted(vhost) => write!(f, "vhost '{vhost}' is deleted"),
            Self::UserDeleted(user) => write!(f, "user '{user}' is deleted"),
            Self::CredentialsExpired => f.write_str("the credentials have expired"),
            Self::Operator(reason) => f.write_str(reason),
        }
    }
}
