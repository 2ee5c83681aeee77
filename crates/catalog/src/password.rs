//! Hashes of passwords: RabbitMQ's, and one that takes long to guess.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD, STANDARD_NO_PAD};
use md5::Md5;
use sha2::digest::Output;
use sha2::{Digest, Sha256, Sha512};
use std::borrow::Cow;
use std::fmt;

const SALT: usize = 4;
const LONG_SALT: usize = 16;
const HASH: usize = 32;
const LONG_HASH: usize = 64;
/// What a salted hash with SHA-256 has, and with SHA-512.
const SHORT: usize = SALT + HASH;
const LONG: usize = SALT + LONG_HASH;
/// A salted hash that somebody brings along has at most so many bytes; RabbitMQ sets no limit.
const LONGEST: usize = 1_024;

/// How salted hashes are read: as Erlang does, which passes over spaces and over bits that say nothing.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// What a new Argon2 hash costs: 19 MiB of memory (in KiB), passes over it, lanes. OWASP's least for Argon2id.
const COST: (u32, u32, u32) = (19 * 1024, 2, 1);
/// What a hash that somebody brings along may cost at the most: 64 MiB, passes, lanes.
const MOST: (u32, u32, u32) = (64 * 1024, 10, 4);

/// How passwords are hashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PasswordHashing {
    /// As RabbitMQ does, which can read these hashes.
    #[default]
    Sha256,
    /// As RabbitMQ does if it is told to.
    Sha512,
    /// With Argon2id, which RabbitMQ cannot read.
    Argon2id,
    /// As RabbitMQ did up to 3.5. Only hashes that somebody brings along: they are quickly guessed.
    Md5,
}

impl PasswordHashing {
    /// The name in definitions (`hashing_algorithm`) and in the setting `password_hashing_module`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "rabbit_password_hashing_sha256",
            Self::Sha512 => "rabbit_password_hashing_sha512",
            Self::Argon2id => "leveret_password_hashing_argon2id",
            Self::Md5 => "rabbit_password_hashing_md5",
        }
    }

    /// The one of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Sha256, Self::Sha512, Self::Argon2id, Self::Md5]
            .into_iter()
            .find(|known| known.name() == name)
    }

    /// True if it is good for old hashes only.
    pub fn is_weak(self) -> bool {
        self == Self::Md5
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
    /// RabbitMQ's `rabbit_password_hashing_*`: four bytes of salt and the digest of salt and password. A hash of
    /// another length is kept as RabbitMQ keeps it, and is nobody's password.
    Salted(Salting, Box<[u8]>),
    /// The usual text: `$argon2id$v=19$m=…,t=…,p=…$salt$hash`.
    Argon2id(Box<str>),
}

/// The digest of a salted hash.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Salting {
    Sha256,
    Sha512,
    Md5,
}

impl Salting {
    const ALL: [Self; 3] = [Self::Sha256, Self::Sha512, Self::Md5];

    /// What stands before a hash whose length does not tell which digest it is of.
    fn mark(self) -> &'static [u8] {
        match self {
            Self::Sha256 => b"$sha256$",
            Self::Sha512 => b"$sha512$",
            Self::Md5 => b"$md5$",
        }
    }

    fn algorithm(self) -> PasswordHashing {
        match self {
            Self::Sha256 => PasswordHashing::Sha256,
            Self::Sha512 => PasswordHashing::Sha512,
            Self::Md5 => PasswordHashing::Md5,
        }
    }

    fn matches(self, salt: &[u8], hash: &[u8], password: &[u8]) -> bool {
        match self {
            Self::Sha256 => same(&digest::<Sha256>(salt, password), hash),
            Self::Sha512 => same(&digest::<Sha512>(salt, password), hash),
            Self::Md5 => same(&digest::<Md5>(salt, password), hash),
        }
    }
}

impl PasswordHash {
    /// The hash of a password as RabbitMQ makes it; the caller chooses the salt at random.
    pub fn new(salt: [u8; SALT], password: &[u8]) -> Self {
        let digest = digest::<Sha256>(&salt, password);
        Self(Kind::Salted(
            Salting::Sha256,
            [&salt[..], &digest].concat().into(),
        ))
    }

    /// The same with SHA-512.
    pub fn sha512(salt: [u8; SALT], password: &[u8]) -> Self {
        let digest = digest::<Sha512>(&salt, password);
        Self(Kind::Salted(
            Salting::Sha512,
            [&salt[..], &digest].concat().into(),
        ))
    }

    /// The slow hash of a password: some 20 ms of a processor and 19 MiB for that time. `None` if there is no such memory.
    pub fn slow(salt: [u8; LONG_SALT], password: &[u8]) -> Option<Self> {
        let (memory, passes, lanes) = COST;
        let hash = argon2id(COST, &salt, password)?;
        let (salt, hash) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash));
        let text = format!("$argon2id$v=19$m={memory},t={passes},p={lanes}${salt}${hash}");
        Some(Self(Kind::Argon2id(text.into())))
    }

    /// Reads the form of definitions files: bytes in base64, of any length as in RabbitMQ, or the text of an Argon2id
    /// hash. `None` if it is neither, is longer than 1,024 bytes, or costs more than is bearable.
    pub fn from_text(algorithm: PasswordHashing, text: &str) -> Option<Self> {
        let salting = Salting::ALL.into_iter().find(|it| it.algorithm() == algorithm);
        let Some(salting) = salting else {
            parts(text)?;
            return Some(Self(Kind::Argon2id(text.into())));
        };
        let text: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        if text.len() > LONGEST.div_ceil(3) * 4 {
            return None;
        }
        let bytes = LENIENT.decode(text).ok()?;
        (1..=LONGEST)
            .contains(&bytes.len())
            .then(|| Self(Kind::Salted(salting, bytes.into())))
    }

    /// The form of definitions files.
    pub fn to_text(&self) -> String {
        match &self.0 {
            Kind::Salted(_, bytes) => STANDARD.encode(bytes),
            Kind::Argon2id(text) => text.to_string(),
        }
    }

    /// Which kind it is.
    pub fn algorithm(&self) -> PasswordHashing {
        match &self.0 {
            Kind::Salted(salting, _) => salting.algorithm(),
            Kind::Argon2id(_) => PasswordHashing::Argon2id,
        }
    }

    /// Reads what [`PasswordHash::to_bytes`] wrote; `None` if it is something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let salted = |salting, bytes: &[u8]| Some(Self(Kind::Salted(salting, bytes.into())));
        match bytes.len() {
            SHORT => return salted(Salting::Sha256, bytes),
            LONG => return salted(Salting::Sha512, bytes),
            _ => {}
        }
        for salting in Salting::ALL {
            if let Some(text) = bytes.strip_prefix(salting.mark()) {
                let text = text.strip_suffix(b"$").unwrap_or(text);
                return salted(salting, &STANDARD.decode(text).ok()?);
            }
        }
        Self::from_text(PasswordHashing::Argon2id, std::str::from_utf8(bytes).ok()?)
    }

    /// Salt and hash, 36 or 68 bytes; or a text, which is never that long: of Argon2id, or of a hash whose length does
    /// not tell its digest.
    pub fn to_bytes(&self) -> Cow<'_, [u8]> {
        match &self.0 {
            Kind::Salted(Salting::Sha256, bytes) if bytes.len() == SHORT => Cow::Borrowed(bytes),
            Kind::Salted(Salting::Sha512, bytes) if bytes.len() == LONG => Cow::Borrowed(bytes),
            Kind::Salted(salting, bytes) => {
                let mut text = salting.mark().to_vec();
                text.extend(STANDARD.encode(bytes).into_bytes());
                if [SHORT, LONG].contains(&text.len()) {
                    text.push(b'$');
                }
                Cow::Owned(text)
            }
            Kind::Argon2id(text) => Cow::Borrowed(text.as_bytes()),
        }
    }

    /// True if looking takes so long that nobody should wait for it who has others to serve.
    pub fn is_slow(&self) -> bool {
        self.algorithm() == PasswordHashing::Argon2id
    }

    /// True if this is the password. Takes as long whatever the difference is.
    pub fn matches(&self, password: &[u8]) -> bool {
        match &self.0 {
            Kind::Salted(salting, bytes) => {
                let split = bytes.split_at_checked(SALT);
                split.is_some_and(|(salt, hash)| salting.matches(salt, hash, password))
            }
            Kind::Argon2id(text) => parts(text).is_some_and(|parts| {
                let found = argon2id(parts.cost, &parts.salt, password);
                found.is_some_and(|found| same(&found, &parts.hash))
            }),
        }
    }

    /// A code of this hash and a password, under a key: whoever keeps it keeps nothing about either.
    pub fn code(&self, key: &[u8; 32], password: &[u8]) -> [u8; HASH] {
        let bytes = self.to_bytes();
        let inner = Sha256::new()
            .chain_update(key)
            .chain_update((bytes.len() as u64).to_be_bytes())
            .chain_update(&bytes)
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
    }

    #[test]
    fn a_hash_with_sha512_is_the_one_that_rabbitmq_makes() {
        // The salt 1, 2, 3, 4, then what `sha512sum` says of it and the password.
        let hash = PasswordHash::sha512([1, 2, 3, 4], b"abc");
        assert!(hash.matches(b"abc") && !hash.matches(b"abd") && !hash.is_slow());
        assert_eq!(hash.to_bytes().len(), 68);
        assert_eq!(PasswordHash::from_bytes(&hash.to_bytes()), Some(hash.clone()));
        let text = hash.to_text();
        assert_eq!(
            text,
            "AQIDBP7cD5lFtWkw9vpLWVefzzOOg4i/ZvkiY4mtHOqiRO5sh6QRE75jKyQ2JqGAhjwVbmN8yHwVKrxkIOJ3Lf9H65s="
        );
        assert_eq!(
            PasswordHash::from_text(PasswordHashing::Sha512, &text),
            Some(hash)
        );
    }

    #[test]
    fn an_old_hash_with_md5_lets_its_password_in() {
        // The salt 1, 2, 3, 4, then what `md5sum` says of it and the password.
        let text = "AQIDBOFG5Jp6HsY0oucNG8c+zaE=";
        let hash = PasswordHash::from_text(PasswordHashing::Md5, text).unwrap();
        assert!(hash.matches(b"abc") && !hash.matches(b"abd") && !hash.is_slow());
        assert_eq!(
            (hash.to_text().as_str(), hash.algorithm()),
            (text, PasswordHashing::Md5)
        );
        assert!(hash.algorithm().is_weak() && !PasswordHashing::default().is_weak());
    }

    #[test]
    fn a_hash_of_any_length_is_kept_as_it_is_and_is_nobodys_password() {
        for algorithm in [
            PasswordHashing::Sha256,
            PasswordHashing::Sha512,
            PasswordHashing::Md5,
        ] {
            for length in 1..=LONGEST {
                let text = STANDARD.encode(vec![7; length]);
                let hash = PasswordHash::from_text(algorithm, &text).unwrap();
                let read = PasswordHash::from_bytes(&hash.to_bytes()).unwrap();
                assert!(read == hash && !read.matches(b""), "{length}");
                assert_eq!((read.to_text(), read.algorithm()), (text, algorithm), "{length}");
            }
        }
        let read = |text: &str| PasswordHash::from_text(PasswordHashing::Sha256, text);
        assert_eq!(read(" A A\nAA"), read("AAAA"));
        assert_eq!(read("AAB="), read("AAA="));
        for wrong in ["", " ", "AA", "AAA!", &STANDARD.encode([7; LONGEST + 1])] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_slow_hash_is_the_usual_text_and_survives_being_written_down() {
        let hash = PasswordHash::slow([7; 16], b"secret").unwrap();
        assert!(hash.to_text().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(hash.is_slow() && hash.matches(b"secret") && !hash.matches(b"Secret"));
        assert_eq!(PasswordHash::from_bytes(&hash.to_bytes()), Some(hash.clone()));
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
