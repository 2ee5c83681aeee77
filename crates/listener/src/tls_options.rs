//! How TLS is spoken at a door: RabbitMQ's `ssl_options`.

use crate::{Passphrase, Revocation};
use std::path::PathBuf;
use std::time::Duration;

/// A version of TLS. Older ones are broken, and the TLS library doesn't have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `tlsv1.2`
    Tls12,
    /// `tlsv1.3`
    Tls13,
}

/// The settings of one door. Paths count from the working directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// The key in the configuration that these settings stand under, for messages: `ssl_options`.
    pub section: &'static str,
    /// The node's certificate, followed by those of the authorities between it and the root, in PEM.
    pub certificate: Option<PathBuf>,
    /// Its private key, in PEM.
    pub key: Option<PathBuf>,
    /// What opens the key, if something guards it.
    pub passphrase: Option<Passphrase>,
    /// The authorities whose clients are trusted, in PEM.
    pub authorities: Option<PathBuf>,
    /// Clients are asked for a certificate, and a wrong one is refused (`verify_peer`).
    pub verify_peer: bool,
    /// Clients without a certificate are refused.
    pub fail_if_no_peer_cert: bool,
    /// Which of their certificates count no more.
    pub revocation: Revocation,
    /// How many authorities may stand between a client's certificate and the root.
    pub depth: usize,
    /// The versions that are spoken; empty is all.
    pub versions: Vec<Version>,
    /// OpenSSL's names of the suites that are spoken, best first; empty is all. Names that are not spoken are left out.
    pub ciphers: Vec<String>,
    /// Our order of suites counts, not the client's.
    pub honor_cipher_order: bool,
    /// Clients that come again may go on with their last session.
    pub reuse_sessions: bool,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
}

impl TlsOptions {
    /// RabbitMQ's defaults.
    pub fn new(section: &'static str) -> Self {
        Self {
            section,
            certificate: None,
            key: None,
            passphrase: None,
            authorities: None,
            verify_peer: false,
            fail_if_no_peer_cert: false,
            revocation: Revocation::default(),
            // Erlang's default since its version 26, which RabbitMQ 4 runs on.
            depth: 10,
            versions: Vec::new(),
            ciphers: Vec::new(),
            honor_cipher_order: false,
            reuse_sessions: true,
            handshake_timeout: Duration::from_secs(5),
        }
    }
}
