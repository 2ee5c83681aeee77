//! The keys of a provider, with which it signs tokens: from files, or from where it publishes them.

use super::settings::ProviderSettings;
use super::token::{Algorithm, AlgorithmFamily, Refused, is_accepted, verify};
use crate::web;
use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use jsonwebtoken::{DecodingKey, Header};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use ureq::Agent;

/// A server is asked again for a key that it did not have only after so long: anybody can make up ids of keys.
const PAUSE: Duration = Duration::from_secs(5);
/// No server has more keys.
const MOST: usize = 1_000;

/// All keys of a provider that are known.
#[derive(Debug)]
pub struct Keys {
    algorithms: Vec<Algorithm>,
    files: HashMap<String, DecodingKey>,
    published: RwLock<HashMap<String, DecodingKey>>,
    default_key: Option<String>,
    server: Option<Server>,
}

/// Who publishes keys.
#[derive(Debug)]
struct Server {
    agent: Agent,
    key_set: Option<String>,
    discovery: Option<String>,
    asked: Mutex<Option<Instant>>,
}

impl Keys {
    /// Reads those in files. `place` is where the settings of the provider stand.
    ///
    /// # Errors
    /// A sentence that names the setting or the file.
    pub fn open(settings: &ProviderSettings, place: &str) -> Result<Self, String> {
        let mut files = HashMap::new();
        for (id, path) in &settings.signing_keys {
            let key = file(path).map_err(|why| {
                format!(
                    "{place}.signing_keys.{id} {} cannot be used: {why}",
                    path.display()
                )
            })?;
            files.insert(id.clone(), key);
        }
        let (key_set, discovery) = (settings.key_set.clone(), settings.discovery_endpoint());
        let server = match key_set.is_some() || discovery.is_some() {
            false => None,
            true => Some(Server {
                agent: web::agent(&settings.trust).map_err(|why| format!("{place}.https: {why}"))?,
                key_set,
                discovery,
                asked: Mutex::default(),
            }),
        };
        if files.is_empty() && server.is_none() {
            return Err(format!(
                "tokens cannot be verified without keys: set {place}.jwks_uri, {place}.issuer or {place}.signing_keys"
            ));
        }
        Ok(Self {
            algorithms: settings.algorithms.clone(),
            files,
            published: RwLock::default(),
            default_key: settings.default_key.clone(),
            server,
        })
    }

    /// Checks that the key which a token's header names signed it. If it names none, the default key is meant, or the only one.
    ///
    /// # Errors
    /// There is no such key, it did not sign the token, or the kind of signature is not accepted.
    pub fn verify(&self, token: &[u8], header: &Header) -> Result<(), Refused> {
        if !is_accepted(header.alg, &self.algorithms) {
            return Err(Refused::Malformed("it is signed in a way that is not accepted"));
        }
        let published = self.published.read().unwrap_or_else(PoisonError::into_inner);
        let mut only = self.files.values().chain(published.values());
        let id = header.kid.as_ref();
        let key = match id.or(self.default_key.as_ref()) {
            Some(id) => self.files.get(id).or_else(|| published.get(id)),
            None => only.next().filter(|_| only.next().is_none()),
        };
        let key = key.ok_or_else(|| Refused::UnknownKey(id.cloned().unwrap_or_default()))?;
        verify(token, header.alg, key)
    }

    /// Asks the server for its keys, if it may have this one.
    ///
    /// # Errors
    /// It can't be asked.
    pub fn ask(&self, id: &str) -> Result<(), Refused> {
        let server = self
            .server
            .as_ref()
            .ok_or_else(|| Refused::UnknownKey(id.to_owned()))?;
        let mut asked = server.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self
            .published
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains_key(id);
        // Who waited for the lock may find that somebody else has asked meanwhile.
        if known || asked.is_some_and(|last| last.elapsed() < PAUSE) {
            return Ok(());
        }
        let fetched = server.fetch().map_err(|why| {
            tracing::error!(
                area = "connection",
                "no tokens can be verified with new keys: {why}"
            );
            Refused::Server(why)
        })?;
        tracing::info!(
            area = "connection",
            "the OAuth 2 server publishes {} keys",
            fetched.len()
        );
        *asked = Some(Instant::now());
        *self.published.write().unwrap_or_else(PoisonError::into_inner) = fetched;
        Ok(())
    }
}

impl Server {
    fn fetch(&self) -> Result<HashMap<String, DecodingKey>, String> {
        let address = match (&self.key_set, &self.discovery) {
            (Some(address), _) => address.clone(),
            (None, Some(place)) => self.discover(place)?,
            (None, None) => return Err("nobody publishes keys".into()),
        };
        let document = web::get(&self.agent, &address)?;
        let set: Value = serde_json::from_str(&document).map_err(|_| format!("{address} has no JSON"))?;
        let list = set.get("keys").and_then(Value::as_array);
        let list = list.ok_or_else(|| format!("{address} has no list of keys"))?;
        Ok(list.iter().take(MOST).filter_map(published).collect())
    }

    /// OpenID Connect Discovery: a server says in a well-known place where its keys are.
    fn discover(&self, place: &str) -> Result<String, String> {
        let document: Value = serde_json::from_str(&web::get(&self.agent, place)?)
            .map_err(|_| format!("{place} has no JSON"))?;
        let address = document.get("jwks_uri").and_then(Value::as_str);
        address
            .map(str::to_owned)
            .ok_or_else(|| format!("{place} does not contain the address of the keys"))
    }
}

/// A key of a set (RFC 7517) with its id; those that we cannot use are left out.
fn published(key: &Value) -> Option<(String, DecodingKey)> {
    let jwk: Jwk = serde_json::from_value(key.clone()).ok()?;
    let signs = matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature));
    let key = DecodingKey::from_jwk(&jwk).ok()?;
    let usable = signs && key.family() != AlgorithmFamily::Hmac;
    usable.then(|| (jwk.common.key_id.unwrap_or_default(), key))
}

/// A public key or a certificate in PEM.
fn file(path: &Path) -> Result<DecodingKey, String> {
    let pem = std::fs::read(path).map_err(|error| error.to_string())?;
    DecodingKey::from_rsa_pem(&pem)
        .or_else(|_| DecodingKey::from_ec_pem(&pem))
        .or_else(|_| DecodingKey::from_ed_pem(&pem))
        .map_err(|_| "it has no PUBLIC KEY in PEM".into())
}
