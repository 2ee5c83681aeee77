//! Asking another server over HTTP.

use crate::depth::Depth;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

/// How long a server may take in all.
const PATIENCE: Duration = Duration::from_secs(10);
/// No answer is longer, in bytes.
const LARGEST: u64 = 1024 * 1024;

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
    /// What can ask. Redirections are not followed: what was configured is asked, and nobody else.
    ///
    /// # Errors
    /// The authorities cannot be read; the sentence names the file.
    pub fn agent(&self) -> Result<Agent, String> {
        self.agent_within(PATIENCE, PATIENCE)
    }

    /// The same with so much time for an answer in all, and for a connection.
    ///
    /// # Errors
    /// The authorities cannot be read; the sentence names the file.
    pub fn agent_within(&self, request: Duration, connection: Duration) -> Result<Agent, String> {
        let certificates = self.certificates()?;
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::from(certificates))
            .client_cert(self.shown_to_http()?)
            .unversioned_rustls_crypto_provider(Arc::new(self.versions.provider()))
            .build();
        let config = Agent::config_builder()
            .timeout_global(Some(request))
            .timeout_connect(Some(connection))
            .http_status_as_error(false)
            .max_redirects(0)
            .tls_config(tls)
            .build();
        Ok(Agent::new_with_config(config))
    }

    /// What speaks TLS with such servers without HTTP.
    ///
    /// # Errors
    /// The authorities cannot be read; the sentence names the file.
    pub fn client(&self) -> Result<ClientConfig, String> {
        let mut roots = RootCertStore::empty();
        let certificates = self.certificates()?;
        roots.add_parsable_certificates(
            certificates
                .iter()
                .map(|certificate| CertificateDer::from(certificate.der().to_vec())),
        );
        let provider = Arc::new(self.versions.provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let verifier = Depth {
            verifier: verifier.build().map_err(|error| error.to_string())?,
            most: self.depth.map_or(usize::MAX, usize::from),
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
        let unreadable = |path: &Path, why: &dyn Display| format!("{} cannot be read: {why}", path.display());
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| unreadable(certificate, &error))?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
        Ok(Some((chain, key)))
    }

    fn shown_to_http(&self) -> Result<Option<ClientCert>, String> {
        let (Some((chain, _)), Some(key)) = (self.shown()?, &self.key) else {
            return Ok(None);
        };
        let chain = chain.iter().map(|it| Certificate::from_der(it).to_owned());
        let unreadable = |why: &dyn Display| format!("{} cannot be read: {why}", key.display());
        let pem = std::fs::read(key).map_err(|error| unreadable(&error))?;
        let key = PrivateKey::from_pem(&pem).map_err(|error| unreadable(&error))?;
        Ok(Some(ClientCert::new_with_certs(&chain.collect::<Vec<_>>(), key)))
    }

    fn certificates(&self) -> Result<Vec<Certificate<'static>>, String> {
        Ok(match &self.authorities {
            None => rustls_native_certs::load_native_certs()
                .certs
                .iter()
                .map(|certificate| Certificate::from_der(certificate).to_owned())
                .collect(),
            Some(path) => {
                let unreadable =
                    |why: &dyn std::fmt::Display| format!("{} cannot be read: {why}", path.display());
                let pem = std::fs::read(path).map_err(|error| unreadable(&error))?;
                let found: Vec<Certificate<'static>> = parse_pem(&pem)
                    .filter_map(|item| match item {
                        Ok(PemItem::Certificate(certificate)) => Some(certificate),
                        _ => None,
                    })
                    .collect();
                if found.is_empty() {
                    return Err(unreadable(&"it has no certificate in PEM"));
                }
                found
            }
        })
    }
}

/// What went wrong, without the address: what was asked may be a secret.
pub fn said(error: &ureq::Error) -> String {
    match error {
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => "the address is malformed".into(),
        other => other.to_string(),
    }
}

/// Gets a document of another server that may be as long as `most` bytes.
///
/// # Errors
/// There is none; the sentence names the address, without what may be secret in it.
pub fn fetch(trust: &Trust, address: &str, most: u64) -> Result<Vec<u8>, String> {
    let shown = address.split_once('@').map_or(address, |(_, host)| host);
    let shown = shown.split('?').next().unwrap_or_default();
    let failed = |error: ureq::Error| format!("{shown} cannot be read: {}", said(&error));
    let mut answer = trust.agent()?.get(address).call().map_err(failed)?;
    let status = answer.status().as_u16();
    if status != 200 {
        return Err(format!("{shown} answers with status {status}"));
    }
    answer
        .body_mut()
        .with_config()
        .limit(most)
        .read_to_vec()
        .map_err(failed)
}

/// Gets a document.
///
/// # Errors
/// There is none; the sentence names the address.
pub fn get(agent: &Agent, address: &str) -> Result<String, String> {
    let failed = |error: ureq::Error| format!("{address} cannot be read: {error}");
    let mut answer = agent.get(address).call().map_err(failed)?;
    let status = answer.status().as_u16();
    if status != 200 {
        return Err(format!("{address} answers with status {status}"));
    }
    let body = answer.body_mut().with_config().limit(LARGEST);
    body.read_to_string().map_err(failed)
}
