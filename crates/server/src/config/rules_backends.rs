//! The settings of whoever is asked about passwords and permissions: `auth_http.*`, `auth_cache.*`; those of a directory are in
//! `rules_ldap`.

use super::rules::{Checked, boolean, number};
use super::rules_identity::known;
use super::rules_ldap::LdapOptions;
use super::{Config, Setting};
use identity::{CacheSettings, HttpSettings};
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
    /// `auth_ldap.*`.
    pub ldap: LdapOptions,
}

pub(super) fn duration(setting: &Setting) -> Checked<Duration> {
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

pub fn address(setting: &Setting) -> Checked<String> {
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
    config.identity.backends.http.request_timeout = duration(setting)?;
    Ok(())
}

pub fn connection_timeout(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.backends.http.connection_timeout = duration(setting)?;
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
