//! Tokens: JSON Web Tokens (RFC 7519), signed (RFC 7515).

use super::keys::Keys;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use std::fmt;

/// The longest token that is looked at, in bytes.
const LONGEST: usize = 64 * 1024;

/// How a token is signed. Signatures by a shared secret are not taken, and neither is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA with PKCS #1 and SHA-2 of so many bits.
    Rs(u16),
    /// RSA with PSS.
    Ps(u16),
    /// ECDSA on the curve P-256 or P-384.
    Es(u16),
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// All that are known.
    pub const ALL: [(&'static str, Self); 9] = [
        ("RS256", Self::Rs(256)),
        ("RS384", Self::Rs(384)),
        ("RS512", Self::Rs(512)),
        ("PS256", Self::Ps(256)),
        ("PS384", Self::Ps(384)),
        ("PS512", Self::Ps(512)),
        ("ES256", Self::Es(256)),
        ("ES384", Self::Es(384)),
        ("EdDSA", Self::EdDsa),
    ];

    /// The algorithm of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, algorithm)| *algorithm)
    }
}

/// Why a token is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is none, or something is missing.
    Malformed(&'static str),
    /// The key with which it is signed is not known.
    UnknownKey(String),
    /// It is not signed with the key that it names.
    Signature,
    /// Its time is over.
    Expired,
    /// It is for others than this server.
    Audience(String),
    /// The server that has the keys cannot be asked.
    Server(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the token is refused: ")?;
        match self {
            Self::Malformed(why) => f.write_str(why),
            Self::UnknownKey(id) => write!(f, "it is signed with the key {id:?}, which is not known"),
            Self::Signature => f.write_str("its signature is wrong"),
            Self::Expired => f.write_str("it has expired"),
            Self::Audience(name) => write!(f, "it is not for {name:?} (claim aud)"),
            Self::Server(why) => write!(f, "the keys cannot be asked for: {why}"),
        }
    }
}

/// Checks the signature, and gives what the token claims.
///
/// # Errors
/// It is no token, or not signed by anybody whom `keys` has, or in a way that is not among `algorithms` (empty is all).
pub fn verify(token: &[u8], keys: &Keys, algorithms: &[Algorithm]) -> Result<Map<String, Value>, Refused> {
    let malformed = Refused::Malformed("it is no signed JSON Web Token");
    if token.len() > LONGEST {
        return Err(Refused::Malformed("it is too long"));
    }
    let text = std::str::from_utf8(token).map_err(|_| malformed.clone())?;
    let (signed, signature) = text.rsplit_once('.').ok_or(malformed.clone())?;
    let (header, claims) = signed.split_once('.').ok_or(malformed.clone())?;
    let header = object(header).ok_or(malformed.clone())?;
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| malformed.clone())?;
    let algorithm = header
        .get("alg")
        .and_then(Value::as_str)
        .and_then(Algorithm::from_name)
        .filter(|found| algorithms.is_empty() || algorithms.contains(found))
        .ok_or(Refused::Malformed("it is signed in a way that is not taken"))?;
    let id = header.get("kid").and_then(Value::as_str);
    if !keys.verify(id, algorithm, signed.as_bytes(), &signature)? {
        return Err(Refused::Signature);
    }
    object(claims).ok_or(malformed)
}

fn object(part: &str) -> Option<Map<String, Value>> {
    match serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}
