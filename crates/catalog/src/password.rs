//! Hashes of passwords: RabbitMQ's, and one that takes long to guess.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use sha2::digest::Output;
use sha2::{Digest, Sha256, Sha512};
use std::fmt;

const SALT: usize = 4;
const LONG_SALT: usize = 16;
const HASH: usize = 32;
const LONG_HASH: usize = 64;

/// What a new Argon2 hash costs: 19 MiB of memory (in KiB), passes over it, lanes. OWASP's least for Argon2id.
const COST: (u32, u32, u32) = (19 * 1024, 2, 1);
/// What a hash that somebody brings along may cost at the most: 64 MiB, passes, lanes.
const MOST: (u32, u32, u32) = (64 * 1024, 10, 4);

/// How new passwords are hashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PasswordHashing {
    /// As RabbitMQ does, which can read these hashes.
    #[default]
    Sha256,
    /// As RabbitMQ does if it is told to.
    Sha512,
    /// With Argon2id, which RabbitMQ cannot read.
    Argon2id,
}

impl PasswordHashing {
    /// The name in definitions (`hashing_algorithm`) and in the setting `password_hashing_module`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "rabbit_password_hashing_sha256",
            Self::Sha512 => "rabbit_password_hashing_sha512",
            Self::Argon2id => "leveret_password_hashing_argon2id",
        }
    }

    /// The one of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Sha256, Self::Sha512, Self::Argon2id]
            .into_iter()
            .find(|known| known.name() == name)
    }

    /// By its name on a command line: `sha256`, `sha512` or `argon2id`.
    pub fn from_short_name(name: &str) -> Option<Self> {
        match name {
            "sha256" => Some(Self::Sha256),
            "sha512" => Some(Self::Sha512),
            "argon2id" => Some(Self::Argon2id),
            _ => None,
        }
    }
}

/// A password's hash.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(Kind);

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    /// RabbitMQ's `rabbit_password_hashing_sha256`: four bytes of salt and the SHA-256 of salt and password.
    Sha256([u8; SALT + HASH]),
    /// The same with SHA-512: `rabbit_password_hashing_sha512`.
    Sha512([u8; SALT + LONG_HASH]),
    /// The usual text: `$argon2id$v=19$m=…,t=…,p=…$salt$hash`.
    Argon2id(Box<str>),
}

impl PasswordHash {
    /// The hash of a password as RabbitMQ makes it; the caller chooses the salt at random.
    pub fn new(salt: [u8; SALT], password: &[u8]) -> Self {
        let mut bytes = [0; SALT + HASH];
        bytes[..SALT].copy_from_slice(&salt);
        bytes[SALT..].copy_from_slice(&digest::<Sha256>(&salt, password));
        Self(Kind::Sha256(bytes))
    }

    /// The same with SHA-512.
    pub fn sha512(salt: [u8; SALT], password: &[u8]) -> Self {
        let mut bytes = [0; SALT + LONG_HASH];
        bytes[..SALT].copy_from_slice(&salt);
        bytes[SALT..].copy_from_slice(&digest::<Sha512>(&salt, password));
        Self(Kind::Sha512(bytes))
    }

    /// The slow hash of a password: some 20 ms of a processor and 19 MiB for that time. `None` if there is no such memory.
    pub fn slow(salt: [u8; LONG_SALT], password: &[u8]) -> Option<Self> {
        let (memory, passes, lanes) = COST;
        let hash = argon2id(COST, &salt, password)?;
        let (salt, hash) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash));
        let text = format!("$argon2id$v=19$m={memory},t={passes},p={lanes}${salt}${hash}");
        Some(Self(Kind::Argon2id(text.into())))
    }

    /// Reads the form of definitions files: 36 or 68 bytes in base64, or the text of an Argon2id hash. `None` if it is neither, or costs
    /// more than is bearable.
    pub fn from_text(algorithm: PasswordHashing, text: &str) -> Option<Self> {
        match algorithm {
            PasswordHashing::Sha256 => Some(Self(Kind::Sha256(bytes_of(text)?))),
            PasswordHashing::Sha512 => Some(Self(Kind::Sha512(bytes_of(text)?))),
            PasswordHashing::Argon2id => {
                parts(text)?;
                Some(Self(Kind::Argon2id(text.into())))
            }
        }
    }

    /// The form of definitions files.
    pub fn to_text(&self) -> String {
        match &self.0 {
            Kind::Sha256(bytes) => STANDARD.encode(bytes),
            Kind::Sha512(bytes) => STANDARD.encode(bytes),
            Kind::Argon2id(text) => text.to_string(),
        }
    }

    /// Which kind it is.
    pub fn algorithm(&self) -> PasswordHashing {
        match &self.0 {
            Kind::Sha256(_) => PasswordHashing::Sha256,
            Kind::Sha512(_) => PasswordHashing::Sha512,
            Kind::Argon2id(_) => PasswordHashing::Argon2id,
        }
    }

    /// Reads what [`PasswordHash::as_bytes`] wrote; `None` if it is something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if let Ok(bytes) = bytes.try_into() {
            return Some(Self(Kind::Sha256(bytes)));
        }
        if let Ok(bytes) = bytes.try_into() {
            return Some(Self(Kind::Sha512(bytes)));
        }
        Self::from_text(PasswordHashing::Argon2id, std::str::from_utf8(bytes).ok()?)
    }

    /// Salt and hash: 36 or 68 bytes, or a text, which is never that short.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Kind::Sha256(bytes) => bytes,
            Kind::Sha512(bytes) => bytes,
            Kind::Argon2id(text) => text.as_bytes(),
        }
    }

    /// True if looking takes so long that nobody should wait for it who has others to serve.
    pub fn is_slow(&self) -> bool {
        self.algorithm() == PasswordHashing::Argon2id
    }

    /// True if this is the password. Takes as long whatever the difference is.
    pub fn matches(&self, password: &[u8]) -> bool {
        match &self.0 {
            Kind::Sha256(bytes) => same(&digest::<Sha256>(&bytes[..SALT], password), &bytes[SALT..]),
            Kind::Sha512(bytes) => same(&digest::<Sha512>(&bytes[..SALT], password), &bytes[SALT..]),
            Kind::Argon2id(text) => parts(text).is_some_and(|parts| {
                let found = argon2id(parts.cost, &parts.salt, password);
                found.is_some_and(|found| same(&found, &parts.hash))
            }),
        }
    }

    /// A code of this hash and a password, under a key: whoever keeps it keeps nothing about either.
    pub fn code(&self, key: &[u8; 32], password: &[u8]) -> [u8; HASH] {
        let inner = Sha256::new()
            .chain_update(key)
            .chain_update((self.as_bytes().len() as u64).to_be_bytes())
            .chain_update(self.as_bytes())
            .chain_update(password)
            .finalize();
        Sha256::new()
            .chain_update(key)
            .chain_update(inner)
            .finalize()
            .into()
    }
}

/// Hashes stay out of logs.
impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash")
    }
}

fn digest<D: Digest>(salt: &[u8], password: &[u8]) -> Output<D> {
    D::new().chain_update(salt).chain_update(password).finalize()
}

fn bytes_of<const LENGTH: usize>(text: &str) -> Option<[u8; LENGTH]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

fn same(one: &[u8], other: &[u8]) -> bool {
    let pairs = one.iter().zip(other);
    let difference = pairs.fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && std::hint::black_box(difference) == 0
}

/// What the text of an Argon2id hash says.
struct Parts {
    cost: (u32, u32, u32),
    salt: Vec<u8>,
    hash: Vec<u8>,
}

fn parts(text: &str) -> Option<Parts> {
    let rest = text.strip_prefix("$argon2id$v=19$m=")?;
    let (memory, rest) = rest.split_once(",t=")?;
    let (passes, rest) = rest.split_once(",p=")?;
    let (lanes, rest) = rest.split_once('$')?;
    let (salt, hash) = rest.split_once('$')?;
    let cost = (memory.parse().ok()?, passes.parse().ok()?, lanes.parse().ok()?);
    let bearable = cost.0 <= MOST.0 && (1..=MOST.1).contains(&cost.1) && (1..=MOST.2).contains(&cost.2);
    let salt = STANDARD_NO_PAD.decode(salt).ok()?;
    let hash = STANDARD_NO_PAD.decode(hash).ok()?;
    let whole = (8..=64).contains(&salt.len()) && hash.len() == HASH && cost.0 >= 8 * cost.2;
    (bearable && whole).then_some(Parts { cost, salt, hash })
}

fn argon2id((memory, passes, lanes): (u32, u32, u32), salt: &[u8], password: &[u8]) -> Option<[u8; HASH]> {
    let parameters = Params::new(memory, passes, lanes, Some(HASH)).ok()?;
    let mut hash = [0; HASH];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters)
        .hash_password_into(password, salt, &mut hash)
        .ok()?;
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_of_rabbitmqs_documentation() {
        // "Passwords" guide: salt 908D C60A, password "test12".
        let hash = PasswordHash::new([0x90, 0x8D, 0xC6, 0x0A], b"test12");
        let text = hash.to_text();
        assert_eq!(text, "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR");
        assert!(hash.matches(b"test12") && !hash.matches(b"test13") && !hash.is_slow());
        assert_eq!(
            PasswordHash::from_text(PasswordHashing::Sha256, &text),
            Some(hash)
        );
        assert_eq!(PasswordHash::from_text(PasswordHashing::Sha256, "kI3G"), None);
    }

    #[test]
    fn a_hash_with_sha512_is_the_one_that_rabbitmq_makes() {
        // The salt 1, 2, 3, 4, then what `sha512sum` says of it and the password.
        let hash = PasswordHash::sha512([1, 2, 3, 4], b"abc");
        assert!(hash.matches(b"abc") && !hash.matches(b"abd") && !hash.is_slow());
        assert_eq!(hash.as_bytes().len(), 68);
        assert_eq!(PasswordHash::from_bytes(hash.as_bytes()), Some(hash.clone()));
        let text = hash.to_text();
        assert_eq!(
            text,
            "AQIDBP7cD5lFtWkw9vpLWVefzzOOg4i/ZvkiY4mtHOqiRO5sh6QRE75jKyQ2JqGAhjwVbmN8yHwVKrxkIOJ3Lf9H65s="
        );
        assert_eq!(
            PasswordHash::from_text(PasswordHashing::Sha512, &text),
            Some(hash)
        );
        assert_eq!(PasswordHash::from_text(PasswordHashing::Sha256, &text), None);
    }

    #[test]
    fn a_slow_hash_is_the_usual_text_and_survives_being_written_down() {
        let hash = PasswordHash::slow([7; 16], b"secret").unwrap();
        assert!(hash.to_text().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(hash.is_slow() && hash.matches(b"secret") && !hash.matches(b"Secret"));
        assert_eq!(PasswordHash::from_bytes(hash.as_bytes()), Some(hash.clone()));
        let read = PasswordHash::from_text(PasswordHashing::Argon2id, &hash.to_text());
        assert_eq!(read, Some(hash));
    }

    #[test]
    fn hashes_of_others_are_read_if_they_cost_what_is_bearable() {
        // Of the reference implementation: `echo -n password | argon2 somesalt -id -t 2 -k 256 -p 1 -l 32`.
        let known = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
        let hash = PasswordHash::from_text(PasswordHashing::Argon2id, known).unwrap();
        assert!(hash.matches(b"password") && !hash.matches(b"passwore"));
        for wrong in [
            known.replace("m=256", "m=4000000"),
            known.replace("t=2", "t=0"),
            known.replace("t=2", "t=100"),
            known.replace("p=1", "p=200"),
            known.replace("m=256", "m=1"),
            known.replace("argon2id", "argon2i"),
            known.replace("c29tZXNhbHQ", "eA"),
            known[..known.len() - 4].to_owned(),
            String::new(),
        ] {
            assert_eq!(
                PasswordHash::from_text(PasswordHashing::Argon2id, &wrong),
                None,
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_code_is_of_one_key_one_hash_and_one_password() {
        let (one, other) = (PasswordHash::new([1; 4], b"x"), PasswordHash::new([2; 4], b"x"));
        let code = one.code(&[1; 32], b"x");
        assert_eq!(code, one.code(&[1; 32], b"x"));
        for different in [
            one.code(&[2; 32], b"x"),
            one.code(&[1; 32], b"y"),
            other.code(&[1; 32], b"x"),
        ] {
            assert_ne!(code, different);
        }
    }
}
