//! Users, their password hashes, and their permissions.

use crate::{Name, Pattern};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::fmt;

const SALT: usize = 4;
const HASH: usize = 32;

/// A user as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// `administrator`, `monitoring`, `policymaker`, `management`, `impersonator`, or anything else.
    pub tags: Vec<String>,
    pub(crate) password: Option<PasswordHash>,
}

impl User {
    /// True if the user has this tag.
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|known| known == tag)
    }

    /// The password's hash; `None` for a user that cannot log in by password.
    pub fn password(&self) -> Option<&PasswordHash> {
        self.password.as_ref()
    }
}

/// Why a login was refused. The difference is for the log; the client is told nothing but that it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthRefusal {
    /// There is no such user.
    NoSuchUser,
    /// The user has no password.
    NoPassword,
    /// It is another one.
    WrongPassword,
}

impl fmt::Display for AuthRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSuchUser => "no such user",
            Self::NoPassword => "the user has no password",
            Self::WrongPassword => "invalid credentials",
        })
    }
}

impl std::error::Error for AuthRefusal {}

/// RabbitMQ's `rabbit_password_hashing_sha256`: four bytes of salt and the SHA-256 of salt and password.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash {
    bytes: [u8; SALT + HASH],
}

impl PasswordHash {
    /// The hash of a password; the caller chooses the salt at random.
    pub fn new(salt: [u8; SALT], password: &[u8]) -> Self {
        let mut bytes = [0; SALT + HASH];
        bytes[..SALT].copy_from_slice(&salt);
        bytes[SALT..].copy_from_slice(&digest(&salt, password));
        Self { bytes }
    }

    /// Reads RabbitMQ's form, as in definitions files; `None` if it is not 36 bytes in base64.
    pub fn from_base64(text: &str) -> Option<Self> {
        Self::from_bytes(&STANDARD.decode(text).ok()?)
    }

    /// RabbitMQ's form.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.bytes)
    }

    /// Salt and hash; `None` if it is not 36 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            bytes: bytes.try_into().ok()?,
        })
    }

    /// Salt and hash.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// True if this is the password. Takes as long whatever the difference is.
    pub fn matches(&self, password: &[u8]) -> bool {
        let found = digest(&self.bytes[..SALT], password);
        let difference = found
            .iter()
            .zip(&self.bytes[SALT..])
            .fold(0, |all, (a, b)| all | (a ^ b));
        std::hint::black_box(difference) == 0
    }
}

/// Hashes stay out of logs.
impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash")
    }
}

fn digest(salt: &[u8], password: &[u8]) -> [u8; HASH] {
    Sha256::new()
        .chain_update(salt)
        .chain_update(password)
        .finalize()
        .into()
}

/// What a user may do in one virtual host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The user.
    pub user: Name,
    /// The virtual host.
    pub vhost: Name,
    /// Names of objects that it may declare and delete.
    pub configure: Pattern,
    /// Names of objects that it may send to.
    pub write: Pattern,
    /// Names of objects that it may take from.
    pub read: Pattern,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_of_rabbitmqs_documentation() {
        // "Passwords" guide: salt 908D C60A, password "test12".
        let hash = PasswordHash::new([0x90, 0x8D, 0xC6, 0x0A], b"test12");
        assert_eq!(
            hash.to_base64(),
            "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
        );
        assert!(hash.matches(b"test12"));
        assert!(!hash.matches(b"test13"));
        assert_eq!(PasswordHash::from_base64(&hash.to_base64()), Some(hash));
        assert_eq!(PasswordHash::from_base64("kI3G"), None);
    }
}
