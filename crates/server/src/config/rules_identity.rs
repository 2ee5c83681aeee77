//! The settings of whoever decides about logins beside the catalog: `auth_backends.*`, `auth_oauth2.*`; those of the others are in
//! `rules_backends`.

use super::rules::{Checked, boolean};
use super::rules_backends::BackendOptions;
use super::{Config, Setting};
use identity::oauth2::{Algorithm, Settings};
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

pub fn resource_server(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.oauth2.resource_server = given(setting)?;
    Ok(())
}

pub fn scope_prefix(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.oauth2.scope_prefix = Some(setting.value.clone());
    Ok(())
}

pub fn additional_scopes(config: &mut Config, setting: &Setting) -> Checked {
    let paths = setting.value.split_ascii_whitespace().map(str::to_owned);
    config.identity.oauth2.additional_scopes = paths.collect();
    Ok(())
}

pub fn scope_alias(config: &mut Config, setting: &Setting) -> Checked {
    let scopes = setting.value.split_ascii_whitespace().map(str::to_owned);
    let alias = setting.key.name().to_owned();
    config.identity.oauth2.aliases.insert(alias, scopes.collect());
    Ok(())
}

pub fn verify_aud(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.oauth2.verify_audience = boolean(setting)?;
    Ok(())
}

/// Those of the configuration go before RabbitMQ's `sub` and `client_id`.
pub fn username_claim(config: &mut Config, setting: &Setting) -> Checked {
    let names = &mut config.identity.oauth2.names;
    let at = names.len().saturating_sub(2);
    names.insert(at, given(setting)?);
    Ok(())
}

pub fn signing_key(config: &mut Config, setting: &Setting) -> Checked {
    let path = given(setting)?.into();
    let id = setting.key.name().to_owned();
    config.identity.oauth2.signing_keys.insert(id, path);
    Ok(())
}

pub fn default_key(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.oauth2.default_key = Some(given(setting)?);
    Ok(())
}

fn address(setting: &Setting) -> Checked<Option<String>> {
    let text = &setting.value;
    if text.starts_with("https://") || text.starts_with("http://") {
        return Ok(Some(text.clone()));
    }
    Err("an address that begins with https:// (or http://, which trusts the network)")
}

pub fn key_set(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.oauth2.key_set = address(setting)?;
    Ok(())
}

pub fn issuer(config: &mut Config, setting: &Setting) -> Checked {
    config.identity.oauth2.issuer = address(setting)?;
    Ok(())
}

pub fn algorithm(config: &mut Config, setting: &Setting) -> Checked {
    let found = Algorithm::from_name(&setting.value);
    let found = found.ok_or("RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA")?;
    config.identity.oauth2.algorithms.push(found);
    Ok(())
}
