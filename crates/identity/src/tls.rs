//! TLS where the node is the client: which servers are who they say they are, and what is shown to them.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which servers are who they say they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// The authorities that are trusted, in PEM; `None` is those of the system.
    pub authorities: Option<PathBuf>,
    /// The certificate that we show, in PEM, with those between it and its authority.
    pub certificate: Option<PathBuf>,
    /// Its private key, in PEM.
    pub key: Option<PathBuf>,
    /// Whom the server's certificate must name; `None` is the host that is asked.
    pub server_name: Option<String>,
    /// So many certificates may stand between that of the server and its authority; `None` is any number.
    pub depth: Option<u8>,
    /// The versions of TLS that are spoken.
    pub versions: Versions,
}

/// Versions of TLS; none is all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// TLS 1.2.
    pub tls12: bool,
    /// TLS 1.3.
    pub tls13: bool,
}

impl Versions {
    /// The cipher suites of these versions.
    fn provider(self) -> CryptoProvider {
        let mut provider = aws_lc_rs::default_provider();
        if self.tls12 != self.tls13 {
            provider
                .cipher_suites
                .retain(|suite| suite.tls13().is_some() == self.tls13);
        }
        provider
    }
}

impl Trust {
    /// What speaks TLS with such servers.
    ///
    /// # Errors
    /// The authorities cannot be read; the sentence names the file.
    pub fn client(&self) -> Result<ClientConfig, String> {
        let mut roots = RootCertStore::empty();
        let authorities = self.authorities()?;
        roots.add_parsable_certificates(authorities.iter().cloned());
        let provider = Arc::new(self.versions.provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let verifier = LimitedDepth {
            verifier: verifier.build().map_err(|error| error.to_string())?,
            most: self.depth.map_or(usize::MAX, usize::from),
            roots: authorities,
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        // It verifies as `rustls` itself does, and counts besides.
        let config = config
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        Ok(match self.shown()? {
            None => config.with_no_client_auth(),
            Some((chain, key)) => config
                .with_client_auth_cert(chain, key)
                .map_err(|error| format!("the certificate and the key of this node: {error}"))?,
        })
    }

    /// Whom a certificate must name when this host is asked.
    pub fn name_of<'a>(&'a self, host: &'a str) -> &'a str {
        self.server_name.as_deref().unwrap_or(host)
    }

    /// What we show of ourselves.
    fn shown(&self) -> Result<Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>, String> {
        let (certificate, key) = match (&self.certificate, &self.key) {
            (None, None) => return Ok(None),
            (Some(certificate), Some(key)) => (certificate, key),
            _ => return Err("certfile and keyfile must be set together".into()),
        };
        let chain = certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
        Ok(Some((chain, key)))
    }

    fn authorities(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        let Some(path) = &self.authorities else {
            return Ok(rustls_native_certs::load_native_certs().certs);
        };
        let found = certificates(path)?;
        match found.is_empty() {
            true => Err(unreadable(path, &"it has no certificate in PEM")),
            false => Ok(found),
        }
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, why: &dyn Display) -> String {
    format!("{} cannot be read: {why}", path.display())
}

/// Verifies as `rustls` does, and counts besides: a chain can be made of what comes along, but for the authorities themselves.
#[derive(Debug)]
struct LimitedDepth {
    verifier: Arc<WebPkiServerVerifier>,
    most: usize,
    roots: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for LimitedDepth {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        status: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let counts = |certificate: &&CertificateDer<'_>| !self.roots.contains(*certificate);
        if between.len() > self.most && between.iter().filter(counts).count() > self.most {
            return Err(Error::InvalidCertificate(CertificateError::UnknownIssuer));
        }
        self.verifier.verify_server_cert(own, between, name, status, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
