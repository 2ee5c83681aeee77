//! Tokens: JSON Web Tokens (RFC 7519), signed (RFC 7515).

use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::errors::ErrorKind;
pub use jsonwebtoken::{Algorithm, AlgorithmFamily};
use jsonwebtoken::{DecodingKey, Header, Validation, decode, decode_header};
use serde_json::{Map, Value};
use std::fmt;

/// The longest token that is looked at, in bytes.
const LONGEST: usize = 64 * 1024;

/// What a token claims.
pub type Claims = Map<String, Value>;

/// Why a token is refused.
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
    /// It is for others than these.
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
            Self::Audience(names) => write!(f, "it is not for {names} (claim aud)"),
            Self::Server(why) => write!(f, "the keys cannot be asked for: {why}"),
        }
    }
}

const NO_TOKEN: Refused = Refused::Malformed("it is not a signed JSON Web Token");

/// Signatures by a secret that both sides share are never accepted: whoever can check them can make them.
pub fn is_accepted(algorithm: Algorithm, algorithms: &[Algorithm]) -> bool {
    algorithm.family() != AlgorithmFamily::Hmac && (algorithms.is_empty() || algorithms.contains(&algorithm))
}

/// What a token says about its signature and, not verified yet, about everything else.
///
/// # Errors
/// It is no token.
pub fn read(token: &[u8]) -> Result<(Header, Claims), Refused> {
    if token.len() > LONGEST {
        return Err(Refused::Malformed("it is too long"));
    }
    let unsupported = Refused::Malformed("it is signed in a way that is not accepted");
    let header = decode_header(token).map_err(|error| match error.kind() {
        // An algorithm that is not known fails as JSON that does not fit.
        ErrorKind::Json(_) if token.iter().filter(|byte| **byte == b'.').count() == 2 => unsupported.clone(),
        _ => NO_TOKEN,
    })?;
    // What must be understood is not (RFC 7515, 4.1.11).
    if header.crit.is_some() {
        return Err(unsupported);
    }
    let claims = insecure_decode_claims(token).map_err(|_| NO_TOKEN)?;
    Ok((header, claims))
}

/// Checks that this key signed the token. What the token claims is for others to judge.
///
/// # Errors
/// It did not.
pub fn verify(token: &[u8], algorithm: Algorithm, key: &DecodingKey) -> Result<(), Refused> {
    if key.family() != algorithm.family() {
        return Err(Refused::Signature);
    }
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    (validation.validate_exp, validation.validate_aud) = (false, false);
    decode::<Claims>(token, key, &validation)
        .map(drop)
        .map_err(|_| Refused::Signature)
}
