//! Asking another server over HTTP.

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// How long a server may take in all.
const PATIENCE: Duration = Duration::from_secs(10);
/// No answer is longer, in bytes.
const LARGEST: u64 = 1024 * 1024;

/// Which servers are who they say they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// The authorities that are trusted, in PEM; `None` is those of the system.
    pub authorities: Option<PathBuf>,
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
            .unversioned_rustls_crypto_provider(Arc::new(aws_lc_rs::default_provider()))
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
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
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
