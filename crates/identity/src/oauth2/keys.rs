//! The keys with which tokens are signed: from files, or from the server that publishes them.

use super::Settings;
use super::token::{Algorithm, Refused};
use crate::web;
use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, UnparsedPublicKey,
    VerificationAlgorithm,
};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
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

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Key {
    /// RSA: modulus and exponent.
    Rsa(Vec<u8>, Vec<u8>),
    /// A point on a curve, uncompressed.
    Ec(Vec<u8>),
    /// Ed25519.
    Ed(Vec<u8>),
    /// Of any kind, as a file has it: `SubjectPublicKeyInfo` in DER.
    File(Vec<u8>),
}

/// All keys that are known.
#[derive(Debug)]
pub struct Keys {
    files: HashMap<String, Key>,
    published: RwLock<HashMap<String, Key>>,
    default_key: Option<String>,
    server: Option<Server>,
}

/// Who publishes keys.
#[derive(Debug)]
struct Server {
    agent: Agent,
    key_set: Option<String>,
    issuer: Option<String>,
    asked: Mutex<Option<Instant>>,
}

impl Keys {
    /// Reads those in files.
    ///
    /// # Errors
    /// A sentence that names the setting or the file.
    pub fn open(settings: &Settings) -> Result<Self, String> {
        let mut files = HashMap::new();
        for (id, path) in &settings.signing_keys {
            let key = file(path).map_err(|why| {
                format!(
                    "auth_oauth2.signing_keys.{id} {} cannot be used: {why}",
                    path.display()
                )
            })?;
            files.insert(id.clone(), key);
        }
        let server = match settings.key_set.is_some() || settings.issuer.is_some() {
            false => None,
            true => Some(Server {
                agent: web::agent(&settings.trust)
                    .map_err(|why| format!("auth_oauth2.https.cacertfile: {why}"))?,
                key_set: settings.key_set.clone(),
                issuer: settings.issuer.clone(),
                asked: Mutex::default(),
            }),
        };
        if files.is_empty() && server.is_none() {
            return Err(
                "tokens cannot be verified without keys: set auth_oauth2.jwks_uri, auth_oauth2.issuer or auth_oauth2.signing_keys"
                    .into(),
            );
        }
        Ok(Self {
            files,
            published: RwLock::default(),
            default_key: settings.default_key.clone(),
            server,
        })
    }

    /// True if the key of this id signed the message. A token that names no key is the default key's, or that of the only one.
    ///
    /// # Errors
    /// There is no key of this id.
    pub fn verify(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Result<bool, Refused> {
        let published = self.published.read().unwrap_or_else(PoisonError::into_inner);
        let mut only = self.files.values().chain(published.values());
        let key = match id.or(self.default_key.as_deref()) {
            Some(id) => self.files.get(id).or_else(|| published.get(id)),
            None => only.next().filter(|_| only.next().is_none()),
        };
        let key = key.ok_or_else(|| Refused::UnknownKey(id.unwrap_or_default().to_owned()))?;
        Ok(key.verify(algorithm, message, signature))
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
    fn fetch(&self) -> Result<HashMap<String, Key>, String> {
        let address = match (&self.key_set, &self.issuer) {
            (Some(address), _) => address.clone(),
            (None, Some(issuer)) => self.discover(issuer)?,
            (None, None) => return Err("nobody publishes keys".into()),
        };
        let document = web::get(&self.agent, &address)?;
        let set: Value = serde_json::from_str(&document).map_err(|_| format!("{address} has no JSON"))?;
        let list = set.get("keys").and_then(Value::as_array);
        let list = list.ok_or_else(|| format!("{address} has no list of keys"))?;
        Ok(list.iter().take(MOST).filter_map(published).collect())
    }

    /// OpenID Connect Discovery: a server says in a well-known place where its keys are.
    fn discover(&self, issuer: &str) -> Result<String, String> {
        let place = format!(
            "{}/.well-known/openid-configuration",
            issuer.trim_end_matches('/')
        );
        let document: Value = serde_json::from_str(&web::get(&self.agent, &place)?)
            .map_err(|_| format!("{place} has no JSON"))?;
        let address = document.get("jwks_uri").and_then(Value::as_str);
        address
            .map(str::to_owned)
            .ok_or_else(|| format!("{place} does not contain the address of the keys"))
    }
}

/// A key of a set (RFC 7517) with its id; those that we cannot use are left out.
fn published(key: &Value) -> Option<(String, Key)> {
    let text = |name: &str| key.get(name)?.as_str();
    let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?.trim_end_matches('=')).ok();
    if text("use").is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    let found = match (text("kty")?, text("crv")) {
        ("RSA", _) => Key::Rsa(bytes("n")?, bytes("e")?),
        ("EC", Some("P-256" | "P-384")) => {
            let mut point = vec![4];
            point.extend(bytes("x")?);
            point.extend(bytes("y")?);
            Key::Ec(point)
        }
        ("OKP", Some("Ed25519")) => Key::Ed(bytes("x")?),
        _ => return None,
    };
    Some((text("kid").unwrap_or_default().to_owned(), found))
}

fn file(path: &Path) -> Result<Key, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let (begin, end) = ("-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----");
    let inside = text.split_once(begin).and_then(|(_, rest)| rest.split_once(end));
    let (inside, _) = inside.ok_or("it has no PUBLIC KEY in PEM")?;
    let digits: String = inside.split_whitespace().collect();
    STANDARD
        .decode(digits)
        .map(Key::File)
        .map_err(|_| "its PEM is damaged".into())
}

impl Key {
    /// A key of another kind than the algorithm's verifies nothing.
    fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match (self, algorithm) {
            (Self::Rsa(n, e), Algorithm::Rs(_) | Algorithm::Ps(_)) => {
                let Some(parameters) = rsa(algorithm) else {
                    return false;
                };
                let key = PublicKeyComponents { n: &n[..], e: &e[..] };
                key.verify(parameters, message, signature).is_ok()
            }
            (Self::Ec(key), Algorithm::Es(_)) | (Self::Ed(key), Algorithm::EdDsa) | (Self::File(key), _) => {
                let parameters = parameters(algorithm);
                parameters.is_some_and(|parameters| {
                    UnparsedPublicKey::new(parameters, key)
                        .verify(message, signature)
                        .is_ok()
                })
            }
            _ => false,
        }
    }
}

fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        Algorithm::Rs(256) => &RSA_PKCS1_2048_8192_SHA256,
        Algorithm::Rs(384) => &RSA_PKCS1_2048_8192_SHA384,
        Algorithm::Rs(512) => &RSA_PKCS1_2048_8192_SHA512,
        Algorithm::Ps(256) => &RSA_PSS_2048_8192_SHA256,
        Algorithm::Ps(384) => &RSA_PSS_2048_8192_SHA384,
        Algorithm::Ps(512) => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

fn parameters(algorithm: Algorithm) -> Option<&'static dyn VerificationAlgorithm> {
    Some(match algorithm {
        Algorithm::Es(256) => &ECDSA_P256_SHA256_FIXED,
        Algorithm::Es(384) => &ECDSA_P384_SHA384_FIXED,
        Algorithm::EdDsa => &ED25519,
        algorithm => rsa(algorithm)?,
    })
}
