//! The settings of tokens: `auth_oauth2.*`. Those of a resource server or a provider stand directly below it, or in a section of
//! their own.

use super::rules::{Checked, boolean};
use super::rules_identity::given;
use super::{Config, Setting};
use identity::oauth2::{Algorithm, ProviderSettings, ResourceServerSettings, is_accepted};

/// The resource server that a setting is about: that of `resource_servers.NAME`, or the root.
fn server<'a>(config: &'a mut Config, setting: &Setting) -> &'a mut ResourceServerSettings {
    let oauth2 = &mut config.identity.oauth2;
    match setting.key.segments() {
        [_, section, name, _, ..] if section == "resource_servers" => {
            oauth2.resource_servers.entry(name.clone()).or_default()
        }
        _ => &mut oauth2.root,
    }
}

/// The provider that a setting is about: that of `oauth_providers.NAME`, or the root.
pub fn provider<'a>(config: &'a mut Config, setting: &Setting) -> &'a mut ProviderSettings {
    let oauth2 = &mut config.identity.oauth2;
    match setting.key.segments() {
        [_, section, name, _, ..] if section == "oauth_providers" => {
            oauth2.providers.entry(name.clone()).or_default()
        }
        _ => &mut oauth2.root_provider,
    }
}

pub fn id(config: &mut Config, setting: &Setting) -> Checked {
    server(config, setting).id = Some(given(setting)?);
    Ok(())
}

pub fn scope_prefix(config: &mut Config, setting: &Setting) -> Checked {
    server(config, setting).scope_prefix = Some(setting.value.clone());
    Ok(())
}

pub fn additional_scopes(config: &mut Config, setting: &Setting) -> Checked {
    server(config, setting).additional_scopes = Some(words(setting));
    Ok(())
}

fn words(setting: &Setting) -> Vec<String> {
    let words = setting.value.split_ascii_whitespace();
    words.map(str::to_owned).collect()
}

pub fn scope_alias(config: &mut Config, setting: &Setting) -> Checked {
    let alias = setting.key.name().to_owned();
    let aliases = &mut server(config, setting).aliases;
    aliases.named.insert(alias, words(setting));
    Ok(())
}

/// `scope_aliases.NUMBER.alias` and `.scope`.
pub fn numbered_alias(config: &mut Config, setting: &Setting) -> Checked {
    let number = setting.key.segments().iter().rev().nth(1).cloned();
    let aliases = &mut server(config, setting).aliases;
    let numbered = aliases.numbered.entry(number.unwrap_or_default()).or_default();
    match setting.key.name() {
        "alias" => numbered.0 = Some(given(setting)?),
        "scope" => numbered.1 = words(setting),
        _ => return Err("alias or scope as the last part of the key"),
    }
    Ok(())
}

pub fn verify_aud(config: &mut Config, setting: &Setting) -> Checked {
    server(config, setting).verify_audience = Some(boolean(setting)?);
    Ok(())
}

pub fn require_exp(config: &mut Config, setting: &Setting) -> Checked {
    server(config, setting).require_expiry = Some(boolean(setting)?);
    Ok(())
}

pub fn kind(config: &mut Config, setting: &Setting) -> Checked {
    server(config, setting).kind = Some(given(setting)?);
    Ok(())
}

pub fn provider_of_server(config: &mut Config, setting: &Setting) -> Checked {
    server(config, setting).provider = Some(given(setting)?);
    Ok(())
}

pub fn username_claim(config: &mut Config, setting: &Setting) -> Checked {
    server(config, setting).username_claims.push(given(setting)?);
    Ok(())
}

pub fn signing_key(config: &mut Config, setting: &Setting) -> Checked {
    let path = given(setting)?.into();
    let id = setting.key.name().to_owned();
    provider(config, setting).signing_keys.insert(id, path);
    Ok(())
}

pub fn default_key(config: &mut Config, setting: &Setting) -> Checked {
    provider(config, setting).default_key = Some(given(setting)?);
    Ok(())
}

pub fn algorithm(config: &mut Config, setting: &Setting) -> Checked {
    let found: Option<Algorithm> = setting.value.parse().ok();
    let found = found.filter(|algorithm| is_accepted(*algorithm, &[]));
    let found = found.ok_or(
        "RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA (whoever can check HS256 can also sign with it)",
    )?;
    provider(config, setting).algorithms.push(found);
    Ok(())
}

/// An address of a server that is asked.
pub fn address(setting: &Setting) -> Checked<Option<String>> {
    let text = &setting.value;
    if text.starts_with("https://") || text.starts_with("http://") {
        return Ok(Some(text.clone()));
    }
    Err("an address that begins with https:// (or http://, which trusts the network)")
}

pub fn key_set(config: &mut Config, setting: &Setting) -> Checked {
    provider(config, setting).key_set = address(setting)?;
    Ok(())
}

pub fn issuer(config: &mut Config, setting: &Setting) -> Checked {
    provider(config, setting).issuer = address(setting)?;
    Ok(())
}

pub fn authorization_endpoint(config: &mut Config, setting: &Setting) -> Checked {
    provider(config, setting).authorization_endpoint = address(setting)?;
    Ok(())
}

pub fn token_endpoint(config: &mut Config, setting: &Setting) -> Checked {
    provider(config, setting).token_endpoint = address(setting)?;
    Ok(())
}

pub fn end_session_endpoint(config: &mut Config, setting: &Setting) -> Checked {
    provider(config, setting).end_session_endpoint = address(setting)?;
    Ok(())
}

pub fn discovery_path(config: &mut Config, setting: &Setting) -> Checked {
    provider(config, setting).discovery_path = Some(given(setting)?);
    Ok(())
}

pub fn discovery_param(config: &mut Config, setting: &Setting) -> Checked {
    let (name, value) = (setting.key.name().to_owned(), setting.value.clone());
    provider(config, setting).discovery_params.insert(name, value);
    Ok(())
}
