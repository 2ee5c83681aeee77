//! Certificates and keys of a listener, read when it opens and again when their files change.

use crate::{RevocationCheck, TlsOptions, Version, ciphers, passphrase};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig, SignatureScheme,
    SupportedProtocolVersion,
};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// TLS at one listener.
#[derive(Debug)]
pub struct Tls {
    options: TlsOptions,
    loaded: Mutex<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    config: Arc<ServerConfig>,
    /// The files as they were when they were last tried.
    files: Vec<Stamp>,
}

/// By what a changed file is known: its times and length.
type Stamp = Option<(SystemTime, u64)>;

impl Tls {
    /// Reads the files and checks that they belong together.
    ///
    /// # Errors
    /// A sentence that names the setting or the file.
    pub fn load(options: TlsOptions) -> Result<Arc<Self>, String> {
        let files = stamps(&options);
        let config = Arc::new(configuration(&options)?);
        Ok(Arc::new(Self {
            options,
            loaded: Mutex::new(Loaded { config, files }),
        }))
    }

    /// The settings.
    pub fn options(&self) -> &TlsOptions {
        &self.options
    }

    /// What the next handshake uses. Files that have changed since are read first; if they are wrong, what was read before
    /// stays in use, and the log says so. Looking at a file's time costs a hundredth of a handshake.
    pub fn current(&self) -> Arc<ServerConfig> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let files = stamps(&self.options);
        if files != loaded.files {
            loaded.files = files;
            self.renew(&mut loaded);
        }
        loaded.config.clone()
    }

    /// Reads the files again, changed or not.
    pub fn reload(&self) {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.files = stamps(&self.options);
        self.renew(&mut loaded);
    }

    fn renew(&self, loaded: &mut Loaded) {
        match configuration(&self.options) {
            Ok(config) => {
                loaded.config = Arc::new(config);
                tracing::info!(
                    area = "connection",
                    "the certificates of {} were read again",
                    self.options.section
                );
            }
            Err(why) => tracing::error!(
                area = "connection",
                "the new certificates of {} cannot be used, and the former ones stay in use: {why}",
                self.options.section
            ),
        }
    }
}

fn stamps(options: &TlsOptions) -> Vec<Stamp> {
    let lists = options.revocation.files(options.section).unwrap_or_default();
    [&options.certificate, &options.key, &options.authorities]
        .into_iter()
        .map(Option::as_ref)
        .chain(lists.iter().map(Some))
        .map(|path| {
            let found = std::fs::metadata(path?).ok()?;
            Some((found.modified().ok()?, found.len()))
        })
        .collect()
}

fn configuration(options: &TlsOptions) -> Result<ServerConfig, String> {
    let section = options.section;
    let provider = provider(options)?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions(options))
        .map_err(|error| nothing_spoken(section, &error))?;
    let builder = match verifier(options, provider)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let (certificates, key) = identity(options)?;
    let mut config = builder.with_single_cert(certificates, key).map_err(|error| {
        let (certificate, key) = (shown(options.certificate.as_deref()), shown(options.key.as_deref()));
        match error {
            Error::InconsistentKeys(_) => {
                format!("{section}.keyfile {key} is not the key of the certificate in {section}.certfile {certificate}")
            }
            error => format!("{section}: the certificate {certificate} with the key {key} cannot be used: {error}"),
        }
    })?;
    config.ignore_client_order = options.honor_cipher_order;
    if !options.reuse_sessions {
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

/// The cipher suites that are spoken, and what computes them.
///
/// # Errors
/// None is spoken that the settings name.
pub(crate) fn provider(options: &TlsOptions) -> Result<Arc<CryptoProvider>, String> {
    let mut provider = aws_lc_rs::default_provider();
    if !options.ciphers.is_empty() {
        provider.cipher_suites = ciphers::chosen(&options.ciphers, &provider.cipher_suites);
        if provider.cipher_suites.is_empty() {
            let (section, spoken) = (options.section, ciphers::names().join(", "));
            return Err(format!(
                "{section}.ciphers names no cipher suite that is spoken here: {spoken}"
            ));
        }
    }
    Ok(Arc::new(provider))
}

pub(crate) fn nothing_spoken(section: &str, error: &Error) -> String {
    format!("{section}.versions and {section}.ciphers leave nothing to speak: {error}")
}

pub(crate) fn versions(options: &TlsOptions) -> Vec<&'static SupportedProtocolVersion> {
    let wanted = |version| options.versions.is_empty() || options.versions.contains(&version);
    let all = [(Version::Tls13, &TLS13), (Version::Tls12, &TLS12)];
    all.into_iter()
        .filter(|(version, _)| wanted(*version))
        .map(|(_, version)| version)
        .collect()
}

/// The certificate and its key.
pub(crate) fn identity(
    options: &TlsOptions,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
    let section = options.section;
    let missing = |what: &str| format!("{section}.{what} must be set for TLS");
    let certificate = options
        .certificate
        .as_deref()
        .ok_or_else(|| missing("certfile"))?;
    let key = options.key.as_deref().ok_or_else(|| missing("keyfile"))?;
    let certificates = certificates(certificate, section, "certfile")?;
    Ok((certificates, private_key(key, options)?))
}

fn private_key(path: &Path, options: &TlsOptions) -> Result<PrivateKeyDer<'static>, String> {
    let section = options.section;
    let wrong = |why: &str| format!("{section}.keyfile {} {why}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, section, "keyfile", &error))?;
    match &options.passphrase {
        Some(passphrase) => {
            if let Some(opened) = passphrase.open(&text) {
                return opened
                    .map_err(|why| wrong(&format!("cannot be opened with {section}.password: {why}")));
            }
        }
        None if passphrase::guarded(&text).is_some() => {
            return Err(wrong(&format!(
                "is guarded by a passphrase: set {section}.password"
            )));
        }
        None => {}
    }
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| match error {
        rustls::pki_types::pem::Error::NoItemsFound => wrong(
            "has no private key in PEM that can be used; one with a passphrase must be in PKCS#8 (openssl pkcs8 -topk8)",
        ),
        error => unreadable(path, section, "keyfile", &error),
    })
}

fn certificates(path: &Path, section: &str, name: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|error| unreadable(path, section, name, &error))?;
    if certificates.is_empty() {
        return Err(format!(
            "{section}.{name} {} has no certificate in PEM",
            path.display()
        ));
    }
    Ok(certificates)
}

fn unreadable(path: &Path, section: &str, name: &str, error: &dyn std::fmt::Display) -> String {
    format!("{section}.{name} {} cannot be read: {error}", path.display())
}

fn shown(path: Option<&Path>) -> String {
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

fn verifier(
    options: &TlsOptions,
    provider: Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, String> {
    let section = options.section;
    if !options.verify_peer {
        if options.fail_if_no_peer_cert {
            // Erlang refuses this combination too: a certificate that nobody looks at proves nothing.
            return Err(format!(
                "{section}.fail_if_no_peer_cert = true needs {section}.verify = verify_peer"
            ));
        }
        if options.revocation.check != RevocationCheck::No {
            return Err(format!(
                "{section}.crl_check needs {section}.verify = verify_peer"
            ));
        }
        return Ok(None);
    }
    let roots = roots(options)?;
    let builder = WebPkiClientVerifier::builder_with_provider(roots, provider);
    let mut builder = options.revocation.tell(builder, section)?;
    if !options.fail_if_no_peer_cert {
        builder = builder.allow_unauthenticated();
    }
    let inner = builder.build().map_err(|error| unusable(options, &error))?;
    Ok(Some(Arc::new(Shallow {
        inner,
        depth: options.depth,
    })))
}

/// The authorities that are trusted.
///
/// # Errors
/// A sentence that names the setting or the file.
pub(crate) fn roots(options: &TlsOptions) -> Result<Arc<RootCertStore>, String> {
    let section = options.section;
    let path = options.authorities.as_deref().ok_or_else(|| {
        format!(
            "{section}.verify = verify_peer needs {section}.cacertfile, the authorities whose clients are trusted"
        )
    })?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, section, "cacertfile")? {
        roots
            .add(certificate)
            .map_err(|error| unreadable(path, section, "cacertfile", &error))?;
    }
    Ok(Arc::new(roots))
}

/// Why nobody can be verified with the authorities and lists of these settings.
pub(crate) fn unusable(options: &TlsOptions, error: &VerifierBuilderError) -> String {
    let section = options.section;
    match error {
        VerifierBuilderError::InvalidCrl(why) => format!(
            "{section}.crl_sources: a list of revoked certificates cannot be used: {why:?} (it must be of version 2, with a number)"
        ),
        error => format!(
            "{section}.cacertfile {} cannot be read: {error}",
            shown(options.authorities.as_deref())
        ),
    }
}

/// Not so many authorities may stand between a certificate and the root.
///
/// # Errors
/// They do.
pub(crate) fn not_deeper(intermediates: &[CertificateDer<'_>], depth: usize) -> Result<(), Error> {
    let between = intermediates
        .iter()
        .filter(|certificate| {
            crate::Certificate::parse(certificate).is_none_or(|found| found.subject != found.issuer)
        })
        .count();
    match between > depth {
        true => Err(Error::General(format!(
            "the peer's chain has {between} authorities between it and the root, and {depth} may be"
        ))),
        false => Ok(()),
    }
}

/// Verifies as the library does, but not through more than `depth` authorities between the client and the root.
#[derive(Debug)]
struct Shallow {
    inner: Arc<dyn ClientCertVerifier>,
    depth: usize,
}

impl ClientCertVerifier for Shallow {
    fn offer_client_auth(&self) -> bool {
        self.inner.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.inner.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        not_deeper(intermediates, self.depth)?;
        self.inner.verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
