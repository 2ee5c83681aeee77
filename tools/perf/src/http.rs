//! Requests over HTTP: to token servers, to Datadog, to a broker's management API.

use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// What a status of 400 and above is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusals {
    /// Answers like others, since their bodies say why.
    AreAnswers,
    AreErrors,
}

/// A client that trusts the system's certificates (`SSL_CERT_FILE` names others) and waits this long for an answer in all.
pub fn agent(timeout: Duration, refusals: Refusals) -> Agent {
    let certificates: Vec<Certificate<'static>> = rustls_native_certs::load_native_certs()
        .certs
        .iter()
        .map(|certificate| Certificate::from_der(certificate).to_owned())
        .collect();
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::from(certificates))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .build();
    Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(refusals == Refusals::AreErrors)
        .tls_config(tls)
        .build()
        .new_agent()
}

/// The value of an `authorization` header for a login (RFC 7617).
pub fn basic(user: &str, password: &str) -> String {
    use base64::Engine;
    let login = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    format!("Basic {login}")
}
