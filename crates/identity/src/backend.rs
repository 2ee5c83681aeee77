//! The backends that decide about logins and permissions, and how two of them make a link of the chain.

/// An authentication backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The catalog: `internal`.
    Internal,
    /// Tokens: `oauth2`.
    OAuth2,
    /// A service asked over HTTP: `http`. It checks passwords and knows permissions.
    Http,
    /// A directory: `ldap`. It checks passwords and knows permissions.
    Ldap,
    /// One of these two, with answers that are kept for a while: `cache`.
    Cache,
}

/// One step of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Checks logins.
    pub authenticates: Backend,
    /// Knows the permissions.
    pub authorizes: Backend,
}
