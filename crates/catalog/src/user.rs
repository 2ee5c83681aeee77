//! Users and their permissions.

use crate::password::PasswordHash;
use crate::{Name, Pattern};
use std::fmt;

/// A user as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// `administrator`, `monitoring`, `policymaker`, `management`, `impersonator`, or anything else.
    pub tags: Vec<String>,
    pub(crate) password: Option<PasswordHash>,
}

impl User {
    /// True if the user has this tag.
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|known| known == tag)
    }

    /// The password's hash; `None` for a user that cannot log in by password.
    pub fn password(&self) -> Option<&PasswordHash> {
        self.password.as_ref()
    }
}

/// Why a login was refused. The difference is for the log; the client is told nothing but that it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthRefusal {
    /// There is no such user.
    NoSuchUser,
    /// The user has no password.
    NoPassword,
    /// It is another one.
    WrongPassword,
}

impl fmt::Display for AuthRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSuchUser => "no such user",
            Self::NoPassword => "the user has no password",
            Self::WrongPassword => "invalid credentials",
        })
    }
}

impl std::error::Error for AuthRefusal {}

/// What a user may do in one virtual host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The user.
    pub user: Name,
    /// The virtual host.
    pub vhost: Name,
    /// Names of objects that it may declare and delete.
    pub configure: Pattern,
    /// Names of objects that it may send to.
    pub write: Pattern,
    /// Names of objects that it may take from.
    pub read: Pattern,
}
