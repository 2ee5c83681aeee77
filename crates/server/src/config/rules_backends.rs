//! The settings of whoever is asked about passwords: `auth_http.*`, `auth_ldap.*`, `auth_cache.*`.

use super::rules::{Checked, boolean, number};
use super::rules_identity::{given, known};
use super::{Config, Setting};
use identity::{CacheSettings, DirectorySettings, HttpSettings, Lookup, Secured};
use std::collections::BTreeMap;
use std::time::Duration;

/// Longer than a client waits for its login.
const LONGEST_MS: u64 = 60_000;

/// Whoever may be asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackendOptions {
    /// `auth_http.*`.
    pub http: HttpSettings,
    /// `auth_cache.*`.
    pub cache: CacheSettings,
    pub(super) servers: BTreeMap<u16, String>,
    pub(super) ldap: DirectorySettings,
    pub(super) use_ssl: bool,
    pub(super) use_starttls: bool,
    pub(super) attribute: Option<String>,
    pub(super) base: Option<String>,
    pub(super) name: Option<String>,
    password: Option<Password>,
}

/// It is not shown.
#[derive(Clone, PartialEq)]
struct Password(String);

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password")
    }
}

impl BackendOptions {
    /// The directory, of all its settings.
    ///
    /// # Errors
    /// Two of them don't go together.
    pub fn directory(&self) -> Result<DirectorySettings, String> {
        let secured = match (self.use_ssl, self.use_starttls) {
            (false, false) => Secured::No,
            (true, false) => Secured::FromTheStart,
            (false, true) => Secured::OnceAgreed,
            (true, true) => {
                return Err("auth_ldap.use_ssl and auth_ldap.use_starttls: one of both must be false".into());
            }
        };
        let as_whom = match (&self.name, &self.password) {
            (None, None) => None,
            (Some(name), Some(password)) => Some((name.clone(), password.0.clone())),
            _ => {
                return Err("auth_ldap.dn_lookup_bind: set both .user_dn and .password".into());
            }
        };
        let lookup = match (&self.attribute, &self.base) {
            (None, None) if as_whom.is_none() => None,
            (Some(attribute), Some(base)) => Some(Lookup {
                attribute: attribute.clone(),
                base: base.clone(),
                as_whom,
            }),
            _ => {
                return Err(
                    "auth_ldap.dn_lookup_attribute and auth_ldap.dn_lookup_base must be set together".into(),
                );
            }
        };
        Ok(DirectorySettings {
            servers: self.servers.values().cloned().collect(),
            secured,
            lookup,
            ..self.ldap.clone()
        })
    }
}

fn patience(setting: &Setting) -> Checked<Duration> {
    let ms = number(setting, 1, LONGEST_MS).ok_or("milliseconds, from 1 to 60000: a login ends some time")?;
    Ok(Duration::from_millis(ms))
}

pub fn method(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.http.posts = match setting.value.as_str() {
        "get" => false,
        "post" => true,
        _ => return Err("get or post"),
    };
    Ok(())
}

fn address(setting: &Setting) -> Checked<String> {
    let address = &setting.value;
    if !address.starts_with("https://") && !address.starts_with("http://") {
        return Err("an address that begins with https:// (or http://, which trusts the network)");
    }
    Ok(address.clone())
}

pub fn user_path(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.http.user_path = address(setting)?;
    Ok(())
}

pub fn vhost_path(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.http.vhost_path = address(setting)?;
    Ok(())
}

pub fn resource_path(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.http.resource_path = address(setting)?;
    Ok(())
}

pub fn topic_path(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.http.topic_path = address(setting)?;
    Ok(())
}

pub fn request_timeout(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.http.request_timeout = patience(setting)?;
    Ok(())
}

pub fn connection_timeout(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.http.connection_timeout = patience(setting)?;
    Ok(())
}

pub fn http_authorities(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.http.trust.authorities = Some(given(setting)?.into());
    Ok(())
}

pub fn server(config: &mut Config, setting: &Setting) -> Checked {
    let place = setting.key.name().parse();
    let place = place.map_err(|_| "a number in the key: auth_ldap.servers.1")?;
    let name = given(setting)?;
    config.identity.backends.servers.insert(place, name);
    Ok(())
}

pub fn port(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.ldap.port = number(setting, 1, 65_535).ok_or("a port, from 1 to 65535")?;
    Ok(())
}

pub fn timeout(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.ldap.timeout = patience(setting)?;
    Ok(())
}

pub fn use_ssl(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.use_ssl = boolean(setting)?;
    Ok(())
}

pub fn use_starttls(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.use_starttls = boolean(setting)?;
    Ok(())
}

pub fn pattern(config: &mut Config, setting: &Setting) -> Checked {
    if !setting.value.contains("${username}") {
        return Err("a text with ${username} in it, such as cn=${username},dc=example,dc=com");
    }
    config.identity.backends.ldap.pattern = setting.value.clone();
    Ok(())
}

pub fn lookup_attribute(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.attribute = (setting.value != "none").then(|| setting.value.clone());
    Ok(())
}

pub fn lookup_base(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.base = (setting.value != "none").then(|| setting.value.clone());
    Ok(())
}

pub fn lookup_name(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.name = Some(given(setting)?);
    Ok(())
}

pub fn lookup_password(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.password = Some(Password(given(setting)?));
    Ok(())
}

pub fn ldap_authorities(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.ldap.trust.authorities = Some(given(setting)?.into());
    Ok(())
}

pub fn cached(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.cache.of = known(setting)?;
    Ok(())
}

pub fn cache_ttl(config: &mut Config, setting: &Setting) -> Checked {
    let ms = number(setting, 1, 86_400_000).ok_or("milliseconds, from 1 to 86400000")?;
    config.identity.backends.cache.ttl = Duration::from_millis(ms);
    Ok(())
}

pub fn cache_refusals(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.cache.refusals = boolean(setting)?;
    Ok(())
}
