//! Cipher suites by the names that OpenSSL and RabbitMQ's configuration give them.

use rustls::{CipherSuite, SupportedCipherSuite};

/// A suite's parts, as RabbitMQ shows them for a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// `ssl_key_exchange`; TLS 1.3 negotiates it apart from the suite.
    pub key_exchange: &'static str,
    /// `ssl_cipher`.
    pub cipher: &'static str,
    /// `ssl_hash`: every suite that is spoken here authenticates what it encrypts.
    pub hash: &'static str,
}

/// OpenSSL's name, key exchange, cipher, and the suite.
type Row = (&'static str, &'static str, &'static str, CipherSuite);

const SUITES: [Row; 9] = [
    (
        "TLS_AES_256_GCM_SHA384",
        "any",
        "aes_256_gcm",
        CipherSuite::TLS13_AES_256_GCM_SHA384,
    ),
    (
        "TLS_AES_128_GCM_SHA256",
        "any",
        "aes_128_gcm",
        CipherSuite::TLS13_AES_128_GCM_SHA256,
    ),
    (
        "TLS_CHACHA20_POLY1305_SHA256",
        "any",
        "chacha20_poly1305",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    ),
    (
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ecdhe_ecdsa",
        "aes_256_gcm",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "ecdhe_ecdsa",
        "aes_128_gcm",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "ecdhe_ecdsa",
        "chacha20_poly1305",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    (
        "ECDHE-RSA-AES256-GCM-SHA384",
        "ecdhe_rsa",
        "aes_256_gcm",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ecdhe_rsa",
        "aes_128_gcm",
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "ECDHE-RSA-CHACHA20-POLY1305",
        "ecdhe_rsa",
        "chacha20_poly1305",
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
];

/// Whether a suite of this name is spoken here. Others have no forward secrecy, or no authenticated encryption.
pub fn is_spoken(name: &str) -> bool {
    SUITES.iter().any(|(known, ..)| *known == name)
}

/// The names of all suites that are spoken.
pub fn names() -> Vec<&'static str> {
    SUITES.iter().map(|(name, ..)| *name).collect()
}

/// All suites that are spoken: names and parts.
pub fn suites() -> impl Iterator<Item = (&'static str, Parts)> {
    SUITES.iter().map(|row| (row.0, parts_of(row)))
}

/// Those of `all` that `names` allow, in the order of `names`.
pub(crate) fn chosen(names: &[String], all: &[SupportedCipherSuite]) -> Vec<SupportedCipherSuite> {
    let named = |name: &String| {
        let (.., suite) = SUITES.iter().find(|(known, ..)| known == name)?;
        all.iter().copied().find(|candidate| candidate.suite() == *suite)
    };
    names.iter().filter_map(named).collect()
}

/// The parts of a suite that was agreed on.
pub(crate) fn parts(suite: SupportedCipherSuite) -> Parts {
    let known = SUITES.iter().find(|(.., known)| *known == suite.suite());
    known.map_or_else(Parts::default, parts_of)
}

fn parts_of((_, key_exchange, cipher, _): &Row) -> Parts {
    Parts {
        key_exchange,
        cipher,
        hash: "aead",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES;

    #[test]
    fn every_suite_of_the_library_has_its_name() {
        let names: Vec<String> = names().into_iter().map(str::to_owned).collect();
        assert_eq!(chosen(&names, ALL_CIPHER_SUITES).len(), ALL_CIPHER_SUITES.len());
        for suite in ALL_CIPHER_SUITES {
            assert_ne!(parts(*suite), Parts::default(), "{suite:?}");
        }
    }

    #[test]
    fn the_order_of_the_names_counts_and_others_are_left_out() {
        let names = [
            "DHE-RSA-AES256-SHA",
            "ECDHE-RSA-AES128-GCM-SHA256",
            "TLS_AES_128_GCM_SHA256",
        ];
        let names = names.map(str::to_owned);
        let found: Vec<_> = chosen(&names, ALL_CIPHER_SUITES)
            .into_iter()
            .map(|suite| suite.suite())
            .collect();
        assert_eq!(
            found,
            [
                CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
                CipherSuite::TLS13_AES_128_GCM_SHA256
            ]
        );
        assert!(!is_spoken("DHE-RSA-AES256-SHA"));
    }
}
