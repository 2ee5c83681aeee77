//! What a new virtual host gets besides its name: limits, operator policies, and users with permissions in it, each for
//! the names that a pattern matches (RabbitMQ's `default_limits`, `default_policies` and `default_users`).

use crate::clients::access::Permissions;

/// What new virtual hosts get.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VhostDefaults {
    pub limits: Vec<DefaultLimits>,
    pub policies: Vec<DefaultPolicy>,
    pub users: Vec<DefaultUser>,
}

/// Limits of virtual hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct DefaultLimits {
    /// Which ones: a regular expression.
    pub pattern: String,
    /// By RabbitMQ's names, such as `max-queues`.
    pub limits: Vec<(String, i64)>,
}

/// An operator policy in virtual hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct DefaultPolicy {
    /// Which virtual hosts: a regular expression.
    pub vhost_pattern: String,
    pub name: String,
    /// Which queues: a regular expression.
    pub queue_pattern: String,
    pub apply_to: String,
    /// Keys as in policies, such as `max-length`.
    pub definition: Vec<(String, i64)>,
}

/// A user who may enter virtual hosts.
#[derive(Clone, PartialEq)]
pub struct DefaultUser {
    /// Which virtual hosts: a regular expression.
    pub vhost_pattern: String,
    pub name: String,
    /// Without one nobody logs in by password as this user.
    pub password: Option<String>,
    pub tags: Vec<String>,
    pub permissions: Permissions,
}

impl std::fmt::Debug for DefaultUser {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {}", self.name, self.vhost_pattern)
    }
}
