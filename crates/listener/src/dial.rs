//! TLS where this machine connects to another node, with the settings of the listener at which such nodes connect to it.

use crate::arrival::within;
use crate::secured::{Secured, Security};
use crate::stream::Stream;
use crate::tls::{identity, not_deeper, nothing_spoken, provider, roots, unusable, versions};
use crate::{Socket, Tls, TlsOptions};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;

impl Tls {
    /// Speaks TLS with the node that was connected to by this name. Its certificate is looked at as the listener looks at
    /// clients' (`verify_peer`), and must be of that name then; this node shows its own. Without `verify_peer` any certificate
    /// will do: who is at the other end is then to be proven by something that names [`Security::binding`].
    ///
    /// The files are read each time, so those that were renewed count.
    ///
    /// # Errors
    /// A file or a certificate is not good, the connection broke, or it took too long; the text is for the log.
    pub async fn connect(&self, stream: TcpStream, host: &str) -> io::Result<(Socket, Security)> {
        let config = configuration(self.options()).map_err(io::Error::other)?;
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let timeout = self.options().handshake_timeout;
        let shaking = Secured::connect(Stream::Tcp(stream), Arc::new(config), name);
        let (secured, security) = within(timeout, shaking).await?;
        Ok((Socket::Secured(Box::new(secured)), security))
    }
}

fn configuration(options: &TlsOptions) -> Result<ClientConfig, String> {
    let section = options.section;
    let provider = provider(options)?;
    let inner = match options.verify_peer {
        true => {
            let builder = WebPkiServerVerifier::builder_with_provider(roots(options)?, provider.clone());
            let builder = options.revocation.tell_of_servers(builder, section)?;
            Some(builder.build().map_err(|error| unusable(options, &error))?)
        }
        false => None,
    };
    let schemes = provider.signature_verification_algorithms;
    let verifier = Verifier {
        inner,
        depth: options.depth,
        schemes,
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions(options))
        .map_err(|error| nothing_spoken(section, &error))?;
    let (certificates, key) = identity(options)?;
    let mut config = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_auth_cert(certificates, key)
        .map_err(|error| format!("{section}: the certificate and its key cannot be used: {error}"))?;
    // Without it a session of TLS 1.2 has no binding that nobody else can have.
    config.require_ems = true;
    Ok(config)
}

/// Verifies as the library does and counts authorities besides, or looks at the signature alone.
#[derive(Debug)]
struct Verifier {
    inner: Option<Arc<WebPkiServerVerifier>>,
    depth: usize,
    schemes: rustls::crypto::WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        status: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.inner {
            Some(inner) => {
                not_deeper(between, self.depth)?;
                inner.verify_server_cert(own, between, name, status, now)
            }
            None => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.schemes)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.schemes)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.supported_schemes()
    }
}
