//! SASL as AMQP has it: mechanisms, and who a response says it is.

use model::Limits;
use model::table::{Entries, RawValue, raw};
use std::fmt;

/// A way to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// RFC 4616: name and password, each after a zero byte.
    Plain,
    /// A field table with `LOGIN` and `PASSWORD`.
    AmqPlain,
    /// RFC 4505: whoever it is; the server has a user for that.
    Anonymous,
    /// RFC 4422, appendix A: whoever the client's certificate says.
    External,
}

impl Mechanism {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::AmqPlain => "AMQPLAIN",
            Self::Anonymous => "ANONYMOUS",
            Self::External => "EXTERNAL",
        }
    }

    /// The mechanism of this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Plain, Self::AmqPlain, Self::Anonymous, Self::External]
            .into_iter()
            .find(|mechanism| mechanism.name() == name)
    }
}

/// A name and a password that nobody has looked up yet; both are empty for [`Mechanism::Anonymous`] and
/// [`Mechanism::External`]. Its debug form keeps the password to itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The way in which they were sent.
    pub mechanism: Mechanism,
    /// The user's name.
    pub user: String,
    /// Any bytes.
    pub password: Vec<u8>,
}

impl Credentials {
    /// Reads a SASL response.
    ///
    /// # Errors
    /// The explanation of a `SYNTAX_ERROR`; unlike RabbitMQ's it does not repeat the response.
    pub fn parse(mechanism: Mechanism, response: &[u8], limits: &Limits) -> Result<Self, String> {
        let (user, password) = match mechanism {
            Mechanism::Plain => plain(response).ok_or("PLAIN response invalid")?,
            Mechanism::AmqPlain => {
                raw::check(response, limits)
                    .map_err(|error| format!("AMQPLAIN response invalid: {error}"))?;
                amqplain(response).ok_or("AMQPLAIN auth info is missing LOGIN or PASSWORD field")?
            }
            // The response is a trace for logs, which anybody may make up.
            Mechanism::Anonymous => (&[][..], &[][..]),
            // RabbitMQ doesn't read the response: another identity than the certificate's cannot be asked for.
            Mechanism::External => (&[][..], &[][..]),
        };
        let user = std::str::from_utf8(user)
            .map_err(|_| "user name is not UTF-8")?
            .to_owned();
        Ok(Self {
            mechanism,
            user,
            password: password.to_vec(),
        })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("mechanism", &self.mechanism)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// RabbitMQ takes no authorisation identity, so the response begins with a zero byte, and there are two of them.
fn plain(response: &[u8]) -> Option<(&[u8], &[u8])> {
    let (user, password) = split_at_zero(response.strip_prefix(&[0])?)?;
    if password.contains(&0) {
        None
    } else {
        Some((user, password))
    }
}

fn split_at_zero(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == 0)?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

/// The table comes without the length that tables have elsewhere.
fn amqplain(response: &[u8]) -> Option<(&[u8], &[u8])> {
    let string = |name: &[u8]| match Entries::new(response).find(name)? {
        RawValue::LongStr(bytes) => Some(bytes),
        _ => None,
    };
    Some((string(b"LOGIN")?, string(b"PASSWORD")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::table::Table;

    fn parse(mechanism: Mechanism, response: &[u8]) -> Result<(String, Vec<u8>), String> {
        let credentials = Credentials::parse(mechanism, response, &Limits::default())?;
        Ok((credentials.user, credentials.password))
    }

    #[test]
    fn plain_takes_a_name_and_a_password() {
        assert_eq!(
            parse(Mechanism::Plain, b"\0guest\0secret"),
            Ok(("guest".into(), b"secret".to_vec()))
        );
        assert_eq!(
            parse(Mechanism::Plain, b"\0guest\0"),
            Ok(("guest".into(), Vec::new()))
        );
        for bad in [
            &b""[..],
            b"guest",
            b"\0guest",
            b"who\0guest\0secret",
            b"\0a\0b\0c",
            b"\0\xff\0b",
        ] {
            assert!(parse(Mechanism::Plain, bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn amqplain_takes_a_table() {
        let mut response = Vec::new();
        Table::new()
            .with("LOGIN", "guest")
            .with("PASSWORD", "secret")
            .encode(&mut response);
        assert_eq!(
            parse(Mechanism::AmqPlain, &response),
            Ok(("guest".into(), b"secret".to_vec()))
        );
        response.clear();
        Table::new()
            .with("LOGIN", "guest")
            .with("PASSWORD", 1)
            .encode(&mut response);
        assert!(
            parse(Mechanism::AmqPlain, &response)
                .unwrap_err()
                .contains("missing LOGIN or PASSWORD")
        );
        assert!(parse(Mechanism::AmqPlain, b"xx").is_err());
        assert!(parse(Mechanism::AmqPlain, b"").is_err());
    }

    #[test]
    fn anonymous_takes_anything_for_nobody() {
        assert_eq!(
            parse(Mechanism::Anonymous, b"\xff trace"),
            Ok((String::new(), Vec::new()))
        );
        assert_eq!(Mechanism::from_name("ANONYMOUS"), Some(Mechanism::Anonymous));
        assert_eq!(Mechanism::from_name("SCRAM-SHA-256"), None);
    }

    #[test]
    fn the_password_is_not_shown() {
        let credentials =
            Credentials::parse(Mechanism::Plain, b"\0guest\0secret", &Limits::default()).unwrap();
        let shown = format!("{credentials:?}");
        assert!(shown.contains("guest") && !shown.contains("secret"), "{shown}");
    }
}
