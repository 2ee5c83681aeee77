//! Who logs in, whatever protocol they speak: what a SASL response, a certificate or neither says, and how a connection is
//! secured.

use broker::access::Attempt;
use broker::stats::{PeerCertificate, Secured};
use listener::{LoginFrom, Security};
use protocol::amqp::Credentials;
use protocol::amqp::handshake::Mechanism;
use std::net::IpAddr;

/// The user as whom nobody in particular logs in. Its debug form keeps the password to itself.
#[derive(Clone, PartialEq, Eq)]
pub struct AnonymousLogin {
    /// The name.
    pub user: String,
    /// The user's password; if the user has another one by now, nobody gets in.
    pub password: String,
}

impl Default for AnonymousLogin {
    /// RabbitMQ's: `guest`, who may come from this machine only.
    fn default() -> Self {
        Self {
            user: "guest".into(),
            password: "guest".into(),
        }
    }
}

impl std::fmt::Debug for AnonymousLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnonymousLogin")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// How a connection is secured, for operators.
pub fn shown(security: Security) -> Secured {
    let suite = security.cipher;
    Secured {
        protocol: security.protocol,
        key_exchange: suite.key_exchange,
        cipher: suite.cipher,
        hash: suite.hash,
        certificate: security.certificate.map(|certificate| PeerCertificate {
            subject: certificate.subject,
            issuer: certificate.issuer,
            validity: certificate.validity,
            serial_number: certificate.serial_number,
        }),
    }
}

/// Who wants to come in; the reason why nobody can be meant is for the log.
pub fn attempt(
    credentials: &Credentials,
    security: Option<&Security>,
    anonymous: Option<&AnonymousLogin>,
    certificate_login: LoginFrom,
    peer: IpAddr,
) -> Result<Attempt, &'static str> {
    let (user, password) = match (credentials.mechanism, anonymous) {
        (Mechanism::External, _) => (certified(security, certificate_login)?, None),
        (Mechanism::Anonymous, Some(login)) => {
            (login.user.clone(), Some(login.password.clone().into_bytes()))
        }
        _ => (credentials.user.clone(), Some(credentials.password.clone())),
    };
    Ok(Attempt { user, password, peer })
}

/// The user whom the client's certificate names.
fn certified(security: Option<&Security>, from: LoginFrom) -> Result<String, &'static str> {
    let security = security.ok_or("not a TLS-enabled connection")?;
    let certificate = security
        .certificate
        .as_ref()
        .ok_or("connection peer presented no TLS (x.509) certificate")?;
    certificate.login(from).ok_or("no name found")
}

/// The mechanisms that are offered: anonymous logins only if there is a user for them, certificates only where there are any.
/// A client that has none is offered them all the same, as in RabbitMQ: the log then says what was missing.
pub fn mechanisms(configured: &[Mechanism], anonymous: bool, secured: bool) -> Vec<Mechanism> {
    let offered = |mechanism: &Mechanism| match mechanism {
        Mechanism::Anonymous => anonymous,
        Mechanism::External => secured,
        Mechanism::Plain | Mechanism::AmqPlain => true,
    };
    configured.iter().copied().filter(offered).collect()
}
