//! `amqp://` and `amqps://` addresses.

/// An address with what is needed to log in.
#[derive(Clone, PartialEq, Eq)]
pub struct Uri {
    pub tls: bool,
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    pub vhost: String,
}

impl std::fmt::Debug for Uri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::fmt::Display for Uri {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.tls { "amqps" } else { "amqp" };
        write!(f, "{scheme}://{}@{}:{}", self.user, self.host, self.port)
    }
}
