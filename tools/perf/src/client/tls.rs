//! What TLS connections trust and show.

use crate::failure::Failure;
use crate::plan::Connecting;
use crate::uri::Uri;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What a configuration depends on: whether certificates are verified, and the files.
type Key = (bool, Option<PathBuf>, Option<PathBuf>);

/// Configurations that were made. Thousands of connections share a few of them, and reading the system's certificates for
/// each would take seconds.
static MADE: Mutex<Vec<(Key, Arc<ClientConfig>)>> = Mutex::new(Vec::new());

/// A session for one connection to `uri`.
///
/// # Errors
/// [`Failure::File`] for certificates that can't be read, [`Failure::Usage`] for a server name that is none.
pub fn session(uri: &Uri, how: &Connecting) -> Result<ClientConnection, Failure> {
    let config = config(uri, how)?;
    let name = how.server_names.first().unwrap_or(&uri.host);
    let server = ServerName::try_from(name.clone()).map_err(|_| {
        Failure::Usage(format!(
            "'{name}' can't be the name of a TLS server: check --server-name-indication or --uri"
        ))
    })?;
    ClientConnection::new(config, server)
        .map_err(|error| Failure::Connect(format!("TLS can't be set up: {error}")))
}

fn config(uri: &Uri, how: &Connecting) -> Result<Arc<ClientConfig>, Failure> {
    let key = (
        how.verify_peer,
        uri.query.authorities.clone(),
        uri.query.certificate.clone(),
    );
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, config)) = made.iter().find(|(known, _)| *known == key) {
        return Ok(config.clone());
    }
    let config = Arc::new(make(uri, how)?);
    made.push((key, config.clone()));
    Ok(config)
}

fn make(uri: &Uri, how: &Connecting) -> Result<ClientConfig, Failure> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let wrong = |error: Error| Failure::Connect(format!("TLS can't be set up: {error}"));
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(wrong)?;
    let builder = if how.verify_peer {
        builder.with_root_certificates(roots(uri.query.authorities.as_deref())?)
    } else {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TrustsEveryCertificate(provider)))
    };
    match (&uri.query.certificate, &uri.query.key) {
        (Some(certificate), Some(key)) => {
            let chain = certificates(certificate)?;
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
            builder.with_client_auth_cert(chain, key).map_err(wrong)
        }
        _ => Ok(builder.with_no_client_auth()),
    }
}

/// The system's certificates (`SSL_CERT_FILE` names others) and those of `further`.
fn roots(further: Option<&Path>) -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    // Systems ship a few that nobody can read; the others are good all the same.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = further {
        roots.add_parsable_certificates(certificates(path)?);
    }
    if roots.is_empty() {
        let text = "--use-default-ssl-context: this system has no trusted certificates; name a file of them with SSL_CERT_FILE, or with cacertfile= in --uri";
        return Err(Failure::File(text.into()));
    }
    Ok(roots)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|error| unreadable(path, &error))?;
    if certificates.is_empty() {
        return Err(Failure::File(format!(
            "{} has no certificate in it: it must be a PEM file",
            path.display()
        )));
    }
    Ok(certificates)
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::File(format!("{} can't be read as PEM: {error}", path.display()))
}

/// What users are told when the handshake fails.
pub fn failed(place: &str, error: &std::io::Error) -> String {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match tls {
        Some(Error::InvalidMessage(_)) => {
            format!(
                "the server at {place} does not speak TLS there: use amqp:// in --uri, or the broker's TLS port (5671)"
            )
        }
        Some(Error::InvalidCertificate(why)) => format!(
            "the certificate of {place} is not trusted ({why}): name its authority with SSL_CERT_FILE or cacertfile= in --uri, or leave out --use-default-ssl-context"
        ),
        Some(Error::AlertReceived(alert)) => format!(
            "the broker at {place} ended the TLS handshake ({alert:?}): it may ask for a client certificate (certfile= and keyfile= in --uri) or another --server-name-indication"
        ),
        _ => format!("TLS with {place} failed: {error}"),
    }
}

/// Trusts whatever certificate a server shows, as PerfTest does unless it is told otherwise. The traffic is encrypted; who
/// reads it at the other end is not known.
#[derive(Debug)]
struct TrustsEveryCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for TrustsEveryCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
