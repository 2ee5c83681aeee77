//! Asking another server over HTTP.

use rustls::crypto::aws_lc_rs;
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
        let certificates = match &self.authorities {
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
        };
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::from(certificates))
            .unversioned_rustls_crypto_provider(Arc::new(aws_lc_rs::default_provider()))
            .build();
        let config = Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .max_redirects(0)
            .tls_config(tls)
            .build();
        Ok(Agent::new_with_config(config))
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
