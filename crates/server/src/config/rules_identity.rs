//! Which authentication backends are asked: `auth_backends.*`. Their own settings are in `rules_oauth2`, `rules_ldap` and
//! `rules_backends`.

use super::rules::Checked;
use super::rules_backends::BackendOptions;
use super::{Config, Setting};
use identity::oauth2::Settings;
use identity::{Backend, Link};
use std::collections::BTreeMap;

/// Whom to ask, and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IdentityOptions {
    /// `auth_backends.NUMBER`, `.authn` and `.authz`; empty is the catalog.
    pub chain: BTreeMap<u16, (Option<Backend>, Option<Backend>)>,
    /// `auth_http.*`, `auth_ldap.*`, `auth_cache.*`.
    pub backends: BackendOptions,
    /// `auth_oauth2.*`.
    pub oauth2: Settings,
}

impl IdentityOptions {
    /// True if this backend asks that one: it is it, or keeps its answers.
    pub fn asks(&self, backend: Backend, other: Backend) -> bool {
        let kept = backend == Backend::Cache && self.backends.cache.of == Some(other);
        backend == other || kept
    }

    /// The chain of those who decide; empty if it is the catalog alone.
    ///
    /// # Errors
    /// Two that don't go together.
    pub fn links(&self) -> Result<Vec<Link>, String> {
        let mut links = Vec::new();
        for (number, pair) in &self.chain {
            let link = match *pair {
                (Some(authenticates), Some(authorizes)) => Link {
                    authenticates,
                    authorizes,
                },
                // RabbitMQ: one of the two is not enough.
                _ => return Err(format!("auth_backends.{number}: set both .authn and .authz")),
            };
            let (by, of) = (
                link.authenticates == Backend::OAuth2,
                link.authorizes == Backend::OAuth2,
            );
            if by != of && link.authorizes != Backend::Internal {
                return Err(format!(
                    "auth_backends.{number}.authz must be internal, or the same as .authn: tokens are rights and logins at the same time"
                ));
            }
            links.push(link);
        }
        let internal = |link: &Link| [link.authenticates, link.authorizes] == [Backend::Internal; 2];
        let alone = links.iter().all(internal);
        Ok(if alone { Vec::new() } else { links })
    }
}

fn number(text: &str) -> Checked<u16> {
    text.parse().map_err(|_| "a number in the key: auth_backends.1")
}

pub fn known(setting: &Setting) -> Checked<Option<Backend>> {
    Ok(Some(match setting.value.as_str() {
        "internal" | "rabbit_auth_backend_internal" => Backend::Internal,
        "oauth2" | "oauth" | "uaa" | "rabbit_auth_backend_oauth2" => Backend::OAuth2,
        "http" | "rabbit_auth_backend_http" => Backend::Http,
        "ldap" | "rabbit_auth_backend_ldap" => Backend::Ldap,
        "cache" | "rabbit_auth_backend_cache" => Backend::Cache,
        _ => return Err("internal, oauth2, http, ldap, cache"),
    }))
}

pub fn backend(config: &mut Config, setting: &Setting) -> Checked {
    let known = known(setting)?;
    let number = number(setting.key.name())?;
    config.identity.chain.insert(number, (known, known));
    Ok(())
}

/// `auth_backends.NUMBER.authn` and `.authz`.
pub fn half_backend(config: &mut Config, setting: &Setting) -> Checked {
    let known = known(setting)?;
    let number = number(setting.key.segments().get(1).map_or("", String::as_str))?;
    let pair = config.identity.chain.entry(number).or_default();
    match setting.key.name() {
        "authn" => pair.0 = known,
        "authz" => pair.1 = known,
        _ => return Err("authn or authz as the last part of the key"),
    }
    Ok(())
}

pub fn given(setting: &Setting) -> Checked<String> {
    match setting.value.as_str() {
        "" => Err("a text that is not empty"),
        text => Ok(text.to_owned()),
    }
}
