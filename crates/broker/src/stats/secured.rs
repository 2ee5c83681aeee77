//! How TLS secures a connection, as operators see it.

/// What a TLS handshake agreed on, in RabbitMQ's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secured {
    /// `ssl_protocol`: `tlsv1.2`, `tlsv1.3`.
    pub protocol: &'static str,
    /// `ssl_key_exchange`.
    pub key_exchange: &'static str,
    /// `ssl_cipher`.
    pub cipher: &'static str,
    /// `ssl_hash`.
    pub hash: &'static str,
    /// The client's certificate, if it showed one.
    pub certificate: Option<PeerCertificate>,
}

/// Whose certificate a client showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCertificate {
    /// `peer_cert_subject`.
    pub subject: String,
    /// `peer_cert_issuer`.
    pub issuer: String,
    /// `peer_cert_validity`: from when until when.
    pub validity: String,
    /// `peer_cert_serial_number`, in hexadecimal digits.
    pub serial_number: String,
}

impl Secured {
    /// RabbitMQ's names of all that is known.
    pub const NAMES: [&'static str; 8] = [
        "ssl_protocol",
        "ssl_key_exchange",
        "ssl_cipher",
        "ssl_hash",
        "peer_cert_subject",
        "peer_cert_issuer",
        "peer_cert_validity",
        "peer_cert_serial_number",
    ];

    /// The value of one of these names; empty for another one, and for those of the certificate without one.
    pub fn value(&self, name: &str) -> &str {
        let of = |text: fn(&PeerCertificate) -> &String| {
            self.certificate
                .as_ref()
                .map_or("", |certificate| text(certificate))
        };
        match name {
            "ssl_protocol" => self.protocol,
            "ssl_key_exchange" => self.key_exchange,
            "ssl_cipher" => self.cipher,
            "ssl_hash" => self.hash,
            "peer_cert_subject" => of(|it| &it.subject),
            "peer_cert_issuer" => of(|it| &it.issuer),
            "peer_cert_validity" => of(|it| &it.validity),
            "peer_cert_serial_number" => of(|it| &it.serial_number),
            _ => "",
        }
    }
}
