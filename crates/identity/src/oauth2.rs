//! OAuth 2: a token in the place of the password says who somebody is and what they may do.

pub mod keys;
pub mod scopes;
pub mod token;

use crate::tls::Trust;
use broker::User;
use keys::Keys;
use scopes::Scopes;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
pub use token::{Algorithm, Refused};

/// RabbitMQ's limit on what one token may hold.
const SCOPES_MOST: usize = 2_048;

/// How tokens are read (`auth_oauth2.*`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `resource_server_id`: our name among those that tokens are for.
    pub resource_server: String,
    /// `scope_prefix`: what our scopes begin with; `None` is the name and a dot.
    pub scope_prefix: Option<String>,
    /// `additional_scopes_key`: further claims with scopes; dots go into objects.
    pub additional_scopes: Vec<String>,
    /// `scope_aliases`: scopes that stand for others.
    pub aliases: BTreeMap<String, Vec<String>>,
    /// `preferred_username_claims`: the first of these that a token has is the user's name.
    pub names: Vec<String>,
    /// `verify_aud`: tokens must be for us.
    pub verify_audience: bool,
    /// `algorithms`: the signatures that are taken; empty is all.
    pub algorithms: Vec<Algorithm>,
    /// `signing_keys`: public keys in PEM by their ids.
    pub signing_keys: BTreeMap<String, PathBuf>,
    /// `default_key`: the id of the key of tokens that name none.
    pub default_key: Option<String>,
    /// `jwks_uri`: where the server publishes its keys.
    pub key_set: Option<String>,
    /// `issuer`: the server, which says itself where its keys are, and whose name tokens must have.
    pub issuer: Option<String>,
    /// `https.*`: how the server is known.
    pub trust: Trust,
}

impl Default for Settings {
    /// RabbitMQ's defaults.
    fn default() -> Self {
        Self {
            resource_server: String::new(),
            scope_prefix: None,
            additional_scopes: Vec::new(),
            aliases: BTreeMap::new(),
            names: vec!["sub".into(), "client_id".into()],
            verify_audience: true,
            algorithms: Vec::new(),
            signing_keys: BTreeMap::new(),
            default_key: None,
            key_set: None,
            issuer: None,
            trust: Trust::default(),
        }
    }
}

/// Reads tokens.
#[derive(Debug)]
pub struct OAuth2 {
    settings: Settings,
    keys: Keys,
}

impl OAuth2 {
    /// Reads the keys that lie in files. Those of a server are asked for when the first token names one.
    ///
    /// # Errors
    /// A sentence that names the setting or the file.
    pub fn open(settings: Settings) -> Result<Self, String> {
        if settings.resource_server.is_empty() {
            return Err(
                "auth_oauth2.resource_server_id must be set: tokens name it as their audience".into(),
            );
        }
        let keys = Keys::open(&settings)?;
        Ok(Self { settings, keys })
    }

    /// The user that a token names, with its tags and rights. Without `may_wait`, keys that are not there are not asked for.
    ///
    /// # Errors
    /// The token is not good; nothing of it but names is repeated.
    pub fn user(&self, token: &[u8], may_wait: bool) -> Result<User, Refused> {
        let claims = match token::verify(token, &self.keys, &self.settings.algorithms) {
            Err(Refused::UnknownKey(id)) if may_wait => {
                self.keys.ask(&id)?;
                token::verify(token, &self.keys, &self.settings.algorithms)?
            }
            verified => verified?,
        };
        self.read(&claims, SystemTime::now())
    }

    fn read(&self, claims: &Map<String, Value>, now: SystemTime) -> Result<User, Refused> {
        let settings = &self.settings;
        let until = claims
            .get("exp")
            .and_then(Value::as_f64)
            .ok_or(Refused::Malformed("it does not say until when it is good"))?;
        let until = UNIX_EPOCH + Duration::from_secs(until.max(0.0) as u64);
        if until <= now {
            return Err(Refused::Expired);
        }
        let begins = claims.get("nbf").and_then(Value::as_f64);
        if begins.is_some_and(|from| UNIX_EPOCH + Duration::from_secs(from.max(0.0) as u64) > now) {
            return Err(Refused::Malformed("it is not good yet"));
        }
        if settings.verify_audience && !contains(claims.get("aud"), &settings.resource_server) {
            return Err(Refused::Audience(settings.resource_server.clone()));
        }
        if let Some(issuer) = &settings.issuer
            && claims.get("iss").and_then(Value::as_str) != Some(issuer)
        {
            return Err(Refused::Malformed("it is another issuer's"));
        }
        let name = settings
            .names
            .iter()
            .find_map(|claim| claims.get(claim)?.as_str())
            .unwrap_or("unknown");
        let scopes = self.scopes(claims);
        if scopes.len() > SCOPES_MOST {
            return Err(Refused::Malformed("it has too many scopes"));
        }
        let scopes = Scopes::parse(&scopes, until);
        Ok(User {
            tags: scopes.tags().to_vec(),
            rights: Some(Arc::new(scopes)),
            ..User::named(name)
        })
    }

    /// The token's scopes that are ours, without the prefix.
    fn scopes(&self, claims: &Map<String, Value>) -> Vec<String> {
        let settings = &self.settings;
        let mut found = Vec::new();
        collect(claims.get("scope"), &settings.resource_server, &mut found);
        for path in &settings.additional_scopes {
            let mut parts = path.split('.');
            let first = parts.next().and_then(|part| claims.get(part));
            let value = parts.fold(first, |value, part| value?.get(part));
            collect(value, &settings.resource_server, &mut found);
        }
        let stand_for = |scope: &String| settings.aliases.get(scope).into_iter().flatten().cloned();
        let more: Vec<String> = found.iter().flat_map(stand_for).collect();
        found.extend(more);
        let prefix = settings
            .scope_prefix
            .clone()
            .unwrap_or_else(|| format!("{}.", settings.resource_server));
        let ours = found
            .iter()
            .filter_map(|scope| scope.strip_prefix(&prefix).map(str::to_owned));
        ours.collect()
    }
}

/// Scopes come as one text with blanks, as a list, or in an object by the name of whom they are for.
fn collect(value: Option<&Value>, resource_server: &str, found: &mut Vec<String>) {
    match value {
        Some(Value::String(text)) => found.extend(text.split_ascii_whitespace().map(str::to_owned)),
        Some(Value::Array(list)) => found.extend(list.iter().filter_map(Value::as_str).map(str::to_owned)),
        Some(Value::Object(by_name)) => {
            let mut inner = Vec::new();
            collect(by_name.get(resource_server), "", &mut inner);
            found.extend(inner.iter().map(|scope| format!("{resource_server}.{scope}")));
        }
        _ => {}
    }
}

fn contains(value: Option<&Value>, wanted: &str) -> bool {
    match value {
        Some(Value::String(text)) => text.split_ascii_whitespace().any(|one| one == wanted),
        Some(Value::Array(list)) => list.iter().any(|one| one.as_str() == Some(wanted)),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
