//! Values of a configuration that a passphrase guards, in RabbitMQ's form: Base64 of a salt, an initial vector, and an
//! Erlang term in AES-CBC; the key is derived from the passphrase by PBKDF2.

use aws_lc_rs::cipher::{
    AES_128, AES_128_KEY_LEN, AES_256, AES_256_KEY_LEN, Algorithm, DecryptionContext, EncryptionContext,
    PaddedBlockDecryptingKey, PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::{pbkdf2, rand};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::num::NonZeroU32;

const SALT: usize = 16;
const VECTOR: usize = 16;

/// How the key is made, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// RabbitMQ's name: `aes_256_cbc`, `aes_128_cbc`.
    pub cipher: String,
    /// RabbitMQ's name: `sha512`, `sha384`, `sha256`, `sha`.
    pub hash: String,
    /// How often the hash is applied.
    pub iterations: u32,
}

impl Default for Scheme {
    /// RabbitMQ's, whose node and command line take these where nobody says anything (4.3.6).
    fn default() -> Self {
        Self {
            cipher: "aes_128_cbc".to_owned(),
            hash: "sha256".to_owned(),
            iterations: 1,
        }
    }
}

/// The ciphers and the hashes that are known.
pub const CIPHERS: [&str; 2] = ["aes_256_cbc", "aes_128_cbc"];
pub const HASHES: [&str; 4] = ["sha512", "sha384", "sha256", "sha"];

/// A text as an Erlang term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// `"text"`.
    List(Vec<u8>),
    /// `<<"text">>`.
    Binary(Vec<u8>),
    /// `text`.
    Atom(Vec<u8>),
}

impl Secret {
    /// The text alone.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::List(bytes) | Self::Binary(bytes) | Self::Atom(bytes) => bytes,
        }
    }

    /// In Erlang's external format.
    fn term(&self) -> Option<Vec<u8>> {
        let mut term = vec![131];
        match self {
            Self::List(bytes) if bytes.is_empty() => term.push(106),
            Self::List(bytes) => {
                term.push(107);
                term.extend(u16::try_from(bytes.len()).ok()?.to_be_bytes());
            }
            Self::Binary(bytes) => {
                term.push(109);
                term.extend(u32::try_from(bytes.len()).ok()?.to_be_bytes());
            }
            Self::Atom(bytes) => term.extend([119, u8::try_from(bytes.len()).ok()?]),
        }
        term.extend(self.bytes());
        Some(term)
    }

    fn of_term(term: &[u8]) -> Option<Self> {
        let (tag, rest) = term.strip_prefix(&[131])?.split_first()?;
        let sized = |width: usize| {
            let (size, text) = rest.split_at_checked(width)?;
            let size = size
                .iter()
                .fold(0_usize, |size, byte| size << 8 | usize::from(*byte));
            (text.len() == size).then(|| text.to_vec())
        };
        match tag {
            106 if rest.is_empty() => Some(Self::List(Vec::new())),
            107 => sized(2).map(Self::List),
            109 => sized(4).map(Self::Binary),
            115 | 119 => sized(1).map(Self::Atom),
            100 | 118 => sized(2).map(Self::Atom),
            _ => None,
        }
    }
}

impl Scheme {
    fn key(&self, passphrase: &[u8], salt: &[u8]) -> Option<UnboundCipherKey> {
        let (algorithm, length): (&Algorithm, usize) = match self.cipher.as_str() {
            "aes_256_cbc" => (&AES_256, AES_256_KEY_LEN),
            "aes_128_cbc" => (&AES_128, AES_128_KEY_LEN),
            _ => return None,
        };
        let hash = match self.hash.as_str() {
            "sha512" => pbkdf2::PBKDF2_HMAC_SHA512,
            "sha384" => pbkdf2::PBKDF2_HMAC_SHA384,
            "sha256" => pbkdf2::PBKDF2_HMAC_SHA256,
            "sha" => pbkdf2::PBKDF2_HMAC_SHA1,
            _ => return None,
        };
        let mut key = vec![0; length];
        pbkdf2::derive(
            hash,
            NonZeroU32::new(self.iterations)?,
            salt,
            passphrase,
            &mut key,
        );
        UnboundCipherKey::new(algorithm, &key).ok()
    }

    /// Encrypts a value; Base64 comes out. `None` if the scheme is not known or the value too long.
    pub fn encode(&self, secret: &Secret, passphrase: &[u8]) -> Option<String> {
        let mut salt = [0; SALT];
        rand::fill(&mut salt).ok()?;
        let mut text = secret.term()?;
        let key = PaddedBlockEncryptingKey::cbc_pkcs7(self.key(passphrase, &salt)?).ok()?;
        let mut vector = [0; VECTOR];
        rand::fill(&mut vector).ok()?;
        key.less_safe_encrypt(&mut text, EncryptionContext::Iv128(FixedLength::from(&vector)))
            .ok()?;
        let whole = [salt.as_slice(), &vector, &text].concat();
        Some(BASE64_STANDARD.encode(whole))
    }

    /// Decrypts what [`Scheme::encode`] or RabbitMQ gave. `None` if the text is no such value, or if
    /// another passphrase or scheme made it.
    pub fn decode(&self, text: &str, passphrase: &[u8]) -> Option<Secret> {
        let whole = BASE64_STANDARD.decode(text.trim()).ok()?;
        let (salt, rest) = whole.split_at_checked(SALT)?;
        let (vector, text) = rest.split_at_checked(VECTOR)?;
        let mut text = text.to_vec();
        let vector: [u8; VECTOR] = vector.try_into().ok()?;
        let key = PaddedBlockDecryptingKey::cbc_pkcs7(self.key(passphrase, salt)?).ok()?;
        let context = DecryptionContext::Iv128(FixedLength::from(&vector));
        Secret::of_term(key.decrypt(&mut text, context).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `rabbitmqctl encode '"s3cret"' bunnies` and `rabbitmqctl encode s3cret bunnies` of RabbitMQ 4.3.6.
    const OF_RABBITMQ: [&str; 2] = [
        "JzvMNmrsNOnPdqnUyB40MGoq/SKvqv55USLGh4a92ayb8pvTeBwAxehXdpzKqwan",
        "w9Gyo0CGA/v2wsIV/vFgG5bfzyr7MbN7SAFNkoNF7DlWZW8u8iAthYRdjWTbao2q",
    ];

    #[test]
    fn what_rabbitmq_has_encoded_is_understood() {
        for text in OF_RABBITMQ {
            let found = Scheme::default().decode(text, b"bunnies").unwrap();
            assert_eq!(found.bytes(), b"s3cret", "{found:?}");
            assert_eq!(Scheme::default().decode(text, b"hares"), None);
        }
    }

    #[test]
    fn what_was_encoded_comes_back_by_the_same_scheme_and_passphrase() {
        let secrets = [
            Secret::List(b"s3cret".to_vec()),
            Secret::List(Vec::new()),
            Secret::Binary(vec![0; 1_000]),
            Secret::Atom(b"true".to_vec()),
        ];
        for (at, secret) in secrets.iter().enumerate() {
            let scheme = Scheme {
                cipher: CIPHERS[at % 2].to_owned(),
                hash: HASHES[at].to_owned(),
                iterations: 1 + at as u32,
            };
            let text = scheme.encode(secret, b"bunnies").unwrap();
            assert_eq!(scheme.decode(&text, b"bunnies").as_ref(), Some(secret));
            assert_ne!(Scheme::default().decode(&text, b"bunnies").as_ref(), Some(secret));
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in ["", "!", "AAAA", OF_RABBITMQ[0].trim_end_matches("wan")] {
            assert_eq!(Scheme::default().decode(text, b"bunnies"), None, "{text}");
        }
        let unknown = Scheme {
            cipher: "rc4".to_owned(),
            ..Scheme::default()
        };
        assert_eq!(unknown.encode(&Secret::Atom(b"a".to_vec()), b"p"), None);
    }
}
