//! A directory that knows passwords (LDAP), asked by logging in to it as the user: RabbitMQ's `rabbitmq_auth_backend_ldap`, as far as
//! who somebody is goes. What they may do the catalog says.

mod talk;

use crate::denied::Denied;
use crate::web::Trust;
use broker::access::Attempt;
use rasn_ldap::ResultCode;
use rustls::ClientConfig;
use std::io::{Error, Result};
use std::sync::Arc;
use std::time::Duration;
use talk::Talk;

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

/// How a user's name in the directory is found when it can't be made of the name that they gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// `dn_lookup_attribute`: the attribute that is the name that they gave.
    pub attribute: String,
    /// `dn_lookup_base`: where to look.
    pub base: String,
    /// `dn_lookup_bind`: as whom to look; `None` is as nobody.
    pub as_whom: Option<(String, String)>,
}

/// How the directory is asked (`auth_ldap.*`).
#[derive(Clone, PartialEq, Eq)]
pub struct DirectorySettings {
    /// `servers`, in the order in which they are tried.
    pub servers: Vec<String>,
    /// `port`.
    pub port: u16,
    /// `timeout`: how long one server may take in all.
    pub timeout: Duration,
    /// `use_ssl` and `use_starttls`.
    pub secured: Secured,
    /// `ssl_options.cacertfile`: how the directory is known.
    pub trust: Trust,
    /// `user_dn_pattern`: the name in the directory; `${username}` stands for the one that they gave.
    pub pattern: String,
    /// `dn_lookup_*`.
    pub lookup: Option<Lookup>,
}

impl Default for DirectorySettings {
    /// RabbitMQ's defaults; but it waits for ever.
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            port: 389,
            timeout: Duration::from_secs(10),
            secured: Secured::No,
            trust: Trust::default(),
            pattern: "${username}".into(),
            lookup: None,
        }
    }
}

impl std::fmt::Debug for DirectorySettings {
    /// Without the password of the lookup.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectorySettings")
            .field("servers", &self.servers)
            .field("port", &self.port)
            .field("secured", &self.secured)
            .field("pattern", &self.pattern)
            .finish_non_exhaustive()
    }
}

/// The directory.
pub struct Directory {
    settings: DirectorySettings,
    tls: Option<Arc<ClientConfig>>,
}

impl Directory {
    /// Reads the authorities by which the directory is known. It is asked when somebody logs in.
    ///
    /// # Errors
    /// A sentence that names the setting or the file.
    pub fn open(settings: DirectorySettings) -> std::result::Result<Self, String> {
        if settings.servers.is_empty() {
            return Err("auth_ldap.servers.1 must be set: it is the directory that is asked".into());
        }
        let tls = match settings.secured {
            Secured::No => None,
            _ => Some(Arc::new(settings.trust.client()?)),
        };
        Ok(Self { settings, tls })
    }

    /// Lets a user in whom the directory lets in. It gives no tags. Takes its time.
    ///
    /// # Errors
    /// It doesn't, or no server of it answers; the password is in no text.
    pub fn login(&self, attempt: &Attempt) -> std::result::Result<Vec<String>, Denied> {
        let refused = |why: &str| Err(Denied::Refused(why.to_owned()));
        let password = match attempt.password.as_deref() {
            None => return refused("a directory is asked with a password only"),
            // A bind without a password succeeds as nobody.
            Some([]) => return refused("the password is empty"),
            Some(password) => password,
        };
        if attempt.user.is_empty() {
            return refused("the name is empty");
        }
        let mut last = String::new();
        for server in &self.settings.servers {
            match self.ask(server, &attempt.user, password) {
                Ok(true) => return Ok(Vec::new()),
                Ok(false) => return refused("the directory refuses the name or the password"),
                Err(error) => last = format!("{server}:{} can't be asked: {error}", self.settings.port),
            }
        }
        Err(Denied::Unanswered(format!(
            "{last}; nobody logs in by the directory until it answers (auth_ldap.servers)"
        )))
    }

    fn ask(&self, server: &str, user: &str, password: &[u8]) -> Result<bool> {
        let settings = &self.settings;
        let mut talk = Talk::open(server, settings.port, settings.timeout)?;
        if let Some(tls) = &self.tls {
            if settings.secured == Secured::OnceAgreed {
                talk.start_tls()?;
            }
            talk = talk.secure(server, tls)?;
        }
        let name = match &settings.lookup {
            None => settings.pattern.replace("${username}", &escaped(user)),
            Some(lookup) => match found(&mut talk, lookup, user)? {
                Some(name) => name,
                None => return Ok(false),
            },
        };
        match talk.bind(&name, password)? {
            ResultCode::Success => Ok(true),
            ResultCode::InvalidCredentials | ResultCode::NoSuchObject => Ok(false),
            other => Err(Error::other(format!("it answers a login with {other:?}"))),
        }
    }
}

/// The name of the one object that is the user; `None` if there is none, or more than one.
fn found(talk: &mut Talk, lookup: &Lookup, user: &str) -> Result<Option<String>> {
    if let Some((name, password)) = &lookup.as_whom {
        match talk.bind(name, password.as_bytes())? {
            ResultCode::Success => {}
            other => {
                let text = format!("it refuses auth_ldap.dn_lookup_bind ({other:?})");
                return Err(Error::other(text));
            }
        }
    }
    let mut found = talk.search(&lookup.base, &lookup.attribute, user)?;
    let name = found.pop();
    Ok(name.filter(|name| found.is_empty() && !name.is_empty()))
}

/// A user's name within a name of the directory: what would end its part there is escaped (RFC 4514).
fn escaped(user: &str) -> String {
    let mut escaped = String::new();
    let last = user.chars().count() - 1;
    for (at, c) in user.chars().enumerate() {
        match c {
            '\0' => escaped.push_str("\\00"),
            ' ' if at == 0 || at == last => escaped.push_str("\\ "),
            '#' if at == 0 => escaped.push_str("\\#"),
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' | '=' => escaped.extend(['\\', c]),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_within_its_part_of_a_directory_name() {
        assert_eq!(escaped("jane"), "jane");
        assert_eq!(escaped("jane,dc=evil"), "jane\\,dc\\=evil");
        assert_eq!(escaped(" #a\\b "), "\\ #a\\\\b\\ ");
        assert_eq!(escaped("#x"), "\\#x");
        assert_eq!(escaped("ja\0ne"), "ja\\00ne");
    }

    #[test]
    fn nobody_is_let_in_without_a_name_and_a_password_and_nobody_is_asked_then() {
        let settings = DirectorySettings {
            servers: vec!["directory.invalid".into()],
            ..DirectorySettings::default()
        };
        let directory = Directory::open(settings).unwrap();
        let attempt = |user: &str, password: Option<&[u8]>| Attempt {
            user: user.into(),
            password: password.map(<[u8]>::to_vec),
            peer: [127, 0, 0, 1].into(),
        };
        for denied in [
            attempt("jane", Some(b"")),
            attempt("jane", None),
            attempt("", Some(b"x")),
        ] {
            assert!(matches!(directory.login(&denied), Err(Denied::Refused(_))));
        }
    }

    #[test]
    fn settings_show_no_password() {
        let settings = DirectorySettings {
            lookup: Some(Lookup {
                attribute: "uid".into(),
                base: "dc=example".into(),
                as_whom: Some(("cn=reader".into(), "s3cret".into())),
            }),
            ..DirectorySettings::default()
        };
        assert!(!format!("{settings:?}").contains("s3cret"));
        assert!(Directory::open(settings).is_err(), "no servers");
    }
}
