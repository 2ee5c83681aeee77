//! How TLS is spoken at a listener: RabbitMQ's `ssl_options`.

use crate::{Passphrase, Revocation, RevocationCheck};
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

/// The settings of one listener. Paths count from the working directory.
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

    /// What counts at a listener that may have these settings of its own: without a certificate here, all of the
    /// node's; with one, these, where the node's lists of revoked certificates do if there are none here.
    ///
    /// # Errors
    /// These settings look at clients, but would not count: the listener would be less guarded than it was told to be.
    pub fn or_of(&self, node: &Self) -> Result<Self, String> {
        if self.certificate.is_some() {
            let mut options = self.clone();
            if options.revocation.directories.is_empty() {
                options
                    .revocation
                    .directories
                    .clone_from(&node.revocation.directories);
            }
            return Ok(options);
        }
        let guards = [
            ("verify", self.verify_peer),
            ("fail_if_no_peer_cert", self.fail_if_no_peer_cert),
            ("crl_check", self.revocation.check != RevocationCheck::No),
        ];
        match guards.iter().find(|(_, set)| *set) {
            Some((name, _)) => Err(format!(
                "{section}.{name} needs {section}.certfile and {section}.keyfile: without its own certificate, this \
                 listener uses all of {}",
                node.section,
                section = self.section
            )),
            None => Ok(node.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(section: &'static str, directories: &[&str]) -> TlsOptions {
        let mut options = TlsOptions::new(section);
        options.certificate = Some("c.pem".into());
        options.revocation.directories = directories.iter().map(PathBuf::from).collect();
        options
    }

    #[test]
    fn a_listener_with_a_certificate_has_its_own_settings_and_its_own_lists_before_the_nodes() {
        let node = listener("ssl_options", &["/node"]);
        let own = listener("management.ssl", &["/own"]);
        assert_eq!(own.or_of(&node).unwrap(), own);
        let listless = listener("management.ssl", &[]).or_of(&node).unwrap();
        assert_eq!(listless, listener("management.ssl", &["/node"]));
    }

    #[test]
    fn a_listener_without_a_certificate_has_the_nodes_settings_and_no_guards_of_its_own() {
        let node = listener("ssl_options", &["/node"]);
        let mut own = TlsOptions::new("prometheus.ssl");
        assert_eq!(own.or_of(&node).unwrap(), node);
        own.revocation.check = RevocationCheck::Peer;
        let refused = own.or_of(&node).unwrap_err();
        assert!(
            refused.starts_with("prometheus.ssl.crl_check needs prometheus.ssl.certfile"),
            "{refused}"
        );
    }
}
