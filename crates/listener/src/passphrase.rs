//! Private keys that a passphrase guards (PKCS#8, RFC 5958).

use pkcs8::der::pem::PemLabel;
use pkcs8::{EncryptedPrivateKeyInfoRef, SecretDocument};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::fmt;

/// What opens a key (`ssl_options.password`). It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Passphrase(String);

impl Passphrase {
    /// This text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The key in a PEM text; `None` if the text has none that a passphrase guards.
    ///
    /// # Errors
    /// Why it can't be opened.
    pub(crate) fn open(&self, pem: &str) -> Option<Result<PrivateKeyDer<'static>, &'static str>> {
        let guarded = guarded(pem)?;
        Some(self.decrypt(guarded))
    }

    fn decrypt(&self, pem: &str) -> Result<PrivateKeyDer<'static>, &'static str> {
        let (_, sealed) = SecretDocument::from_pem(pem).map_err(|_| "it is malformed")?;
        let sealed = EncryptedPrivateKeyInfoRef::try_from(sealed.as_bytes())
            .map_err(|_| "it is malformed, or guarded in a way that is not known here (openssl pkcs8 -topk8 -v2 aes-256-cbc)")?;
        let opened = sealed
            .decrypt(&self.0)
            .map_err(|_| "the passphrase is wrong, or the key is guarded in a way that is not known here")?;
        Ok(PrivatePkcs8KeyDer::from(opened.as_bytes().to_vec()).into())
    }
}

/// The part of a PEM text that is a guarded key.
pub(crate) fn guarded(pem: &str) -> Option<&str> {
    let label = EncryptedPrivateKeyInfoRef::PEM_LABEL;
    let (begin, end) = (
        format!("-----BEGIN {label}-----"),
        format!("-----END {label}-----"),
    );
    let from = pem.find(&begin)?;
    let length = pem[from..].find(&end)? + end.len();
    Some(&pem[from..from + length])
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passphrase_is_not_shown_and_opens_no_nonsense() {
        let passphrase = Passphrase::new("s3cret");
        assert!(!format!("{passphrase:?}").contains("s3cret"));
        assert!(
            passphrase
                .open("-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n")
                .is_none()
        );
        for inside in ["", "AAAA", "not base64"] {
            let label = "ENCRYPTED PRIVATE KEY";
            let pem = format!("text before\n-----BEGIN {label}-----\n{inside}\n-----END {label}-----\n");
            assert!(passphrase.open(&pem).unwrap().is_err());
        }
    }
}
