//! How a directory is asked (`auth_ldap.*`).

use super::facts::{Occasion, Variable};
use super::query::Queries;
use super::template::Template;
use crate::tls::Trust;
use std::fmt;
use std::time::Duration;

/// How a connection to the directory is secured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Secured {
    /// Not at all: passwords travel in the clear.
    #[default]
    No,
    /// `use_ssl`: from the first byte.
    FromTheStart,
    /// `use_starttls`: once both have agreed on it.
    OnceAgreed,
}

/// As whom the directory is asked.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum AsWhom {
    /// `as_user`: as the user whom the question is about.
    #[default]
    User,
    /// `anon`: as nobody.
    Nobody,
    /// `.user_dn` and `.password`.
    Named {
        /// The name in the directory.
        name: String,
        /// It is never shown.
        password: String,
    },
}

impl fmt::Debug for AsWhom {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "as_user",
            Self::Nobody => "anon",
            Self::Named { name, .. } => name,
        })
    }
}

/// How a user's name in the directory is found when it can't be made of the name that they gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// `dn_lookup_attribute`: the attribute that is the name that they gave.
    pub attribute: String,
    /// `dn_lookup_base`: where to look.
    pub base: String,
    /// `dn_lookup_bind`: as whom to look. As the user themselves is once they are in.
    pub as_whom: AsWhom,
}

/// Where the directory is, and what it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectorySettings {
    /// `servers`, in the order in which they are tried.
    pub servers: Vec<String>,
    /// `port`.
    pub port: u16,
    /// `timeout`: how long one server may take in all.
    pub timeout: Duration,
    /// `idle_timeout`: how long a connection is kept for the next question.
    pub idle: Duration,
    /// `connection_pool_size`: how many are, of all servers together.
    pub most_idle: usize,
    /// `use_ssl` and `use_starttls`.
    pub secured: Secured,
    /// `ssl_options.cacertfile`: how the directory is known.
    pub trust: Trust,
    /// `user_dn_pattern`: the name in the directory, or what is looked for; `${username}` stands for the one that they gave.
    pub pattern: Template,
    /// `user_bind_pattern`: the name to log in with, if it is another.
    pub bind_pattern: Option<Template>,
    /// `dn_lookup_*`.
    pub lookup: Option<Lookup>,
    /// `other_bind`: as whom to ask about tags and permissions.
    pub asks_as: AsWhom,
    /// `group_lookup_base`: where groups are looked for, if not where names are.
    pub group_base: Option<String>,
    /// `queries.*`.
    pub queries: Queries,
}

impl DirectorySettings {
    /// Reads a text that a user's name is put into.
    ///
    /// # Errors
    /// It has another variable than those of a user's name, or none.
    pub fn pattern(text: &str) -> Result<Template, String> {
        let template = Template::parse(text, Occasion::ForName)?;
        match template.has(Variable::Username) || template.has(Variable::AdUser) {
            true => Ok(template),
            false => Err("it must contain the user name: ${username} or ${ad_user}".into()),
        }
    }

    /// Where groups are looked for; empty if nobody said so.
    pub fn groups(&self) -> &str {
        let names = self.lookup.as_ref().map(|lookup| lookup.base.as_str());
        self.group_base.as_deref().or(names).unwrap_or_default()
    }
}

impl Default for DirectorySettings {
    /// RabbitMQ's defaults; but it waits for ever.
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            port: 389,
            timeout: Duration::from_secs(10),
            idle: Duration::from_secs(300),
            most_idle: 64,
            secured: Secured::No,
            trust: Trust::default(),
            pattern: Template::of(Variable::Username),
            bind_pattern: None,
            lookup: None,
            asks_as: AsWhom::User,
            group_base: None,
            queries: Queries::default(),
        }
    }
}
