//! `amqp://` and `amqps://` addresses.

use crate::failure::Failure;
use std::path::PathBuf;
use std::time::Duration;

/// An address with what is needed to log in.
#[derive(Clone, PartialEq, Eq)]
pub struct Uri {
    pub tls: bool,
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    pub vhost: String,
    /// What stands behind the `?`.
    pub query: Query,
}

/// The parameters of an address that mean something here. The Java client knows the first three and ignores all others; the
/// files are named as in RabbitMQ's own client, since there is no other place to name them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// `heartbeat`, in seconds; wins over the plan's.
    pub heartbeat_s: Option<u16>,
    /// `connection_timeout`, given in milliseconds.
    pub connect_timeout: Option<Duration>,
    /// `channel_max`.
    pub channel_max: Option<u16>,
    /// `cacertfile`: PEM, trusted beside the system's certificates.
    pub authorities: Option<PathBuf>,
    /// `certfile` and `keyfile`: PEM, what the client shows of itself.
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

/// What a kind of address begins with, and its ports.
#[derive(Debug, Clone, Copy)]
pub struct Scheme {
    pub plain: &'static str,
    pub tls: &'static str,
    pub port: u16,
    pub tls_port: u16,
}

/// AMQP's addresses.
pub const AMQP: Scheme = Scheme {
    plain: "amqp",
    tls: "amqps",
    port: 5672,
    tls_port: 5671,
};

impl Uri {
    /// Reads an address as the Java client does: what is missing is `guest`, `guest`, `localhost`, the scheme's port and the
    /// virtual host `/`; a path of `/` alone names the virtual host with the empty name.
    ///
    /// # Errors
    /// [`Failure::Usage`], which does not repeat the password.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        Self::parse_as(text, &AMQP)
    }

    /// The same for another kind of address.
    ///
    /// # Errors
    /// As [`Self::parse`]'s.
    pub fn parse_as(text: &str, kind: &Scheme) -> Result<Self, Failure> {
        let Scheme {
            plain, tls: secured, ..
        } = *kind;
        let refuse = |why: String| Failure::Usage(format!("the address {} {why}", without_password(text)));
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| refuse(format!("has no scheme: write {plain}://HOST or {secured}://HOST")))?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            it if it == plain => false,
            it if it == secured => true,
            other => {
                return Err(refuse(format!(
                    "begins with {other}://: write {plain}:// or {secured}://"
                )));
            }
        };
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.find('/') {
            Some(at) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        let (user, password) = login
            .map_or(Ok(("guest".into(), "guest".into())), read_login)
            .map_err(refuse)?;
        let (host, port) = read_place(place, if tls { kind.tls_port } else { kind.port }).map_err(refuse)?;
        let vhost = match path {
            None => "/".to_owned(),
            Some(path) if path.contains('/') => {
                let why = "has more than one '/' in its path: write the virtual host with %2F for each '/' in its name";
                return Err(refuse(why.into()));
            }
            Some(path) => decode(path).map_err(refuse)?,
        };
        let query = read_query(query).map_err(refuse)?;
        Ok(Self {
            tls,
            host,
            port,
            user,
            password,
            vhost,
            query,
        })
    }

    /// Where it leads, as people write it: host and port.
    pub fn place(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl std::fmt::Debug for Uri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::fmt::Display for Uri {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.tls { "amqps" } else { "amqp" };
        write!(f, "{scheme}://{}@{}", self.user, self.place())
    }
}

/// An address in a message: what may be a password is left out, however wrong the rest is.
fn without_password(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let shown = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let login = if shown.len() < rest.len() { "…@" } else { "" };
    let colon = if text.contains("://") { "://" } else { "" };
    format!("'{scheme}{colon}{login}{shown}'")
}

/// A user without a password logs in with `guest`, since the Java client leaves its default in place.
pub(crate) fn read_login(login: &str) -> Result<(String, String), String> {
    let (user, password) = login
        .split_once(':')
        .map_or((login, None), |(user, password)| (user, Some(password)));
    if password.is_some_and(|password| password.contains(':')) {
        return Err("has a ':' too many before the '@': write %3A for a ':' in the password".into());
    }
    Ok((decode(user)?, password.map_or(Ok("guest".into()), decode)?))
}

fn read_place(place: &str, default: u16) -> Result<(String, u16), String> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("has a '[' without ']'")?;
            match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if after.is_empty() => (host, None),
                None => return Err("has something other than ':PORT' behind the ']'".into()),
            }
        }
        None => {
            match place.split_once(':') {
                Some((_, port)) if port.contains(':') => {
                    return Err("has several ':' in its host: write an IPv6 address in brackets, as in amqp://[::1]:5672".into());
                }
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            }
        }
    };
    let port = match port {
        None | Some("") => default,
        Some(port) => match port.parse::<u16>() {
            Ok(port) if port > 0 => port,
            _ => {
                return Err(format!(
                    "has the port '{port}', which is not a number from 1 to 65535"
                ));
            }
        },
    };
    let host = if host.is_empty() { "localhost" } else { host };
    Ok((host.to_owned(), port))
}

fn read_query(query: &str) -> Result<Query, String> {
    let mut known = Query::default();
    for parameter in query.split('&').filter(|it| !it.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = decode(value)?;
        let wrong = || format!("has {name}={value}, which is not a number that fits");
        match name {
            "heartbeat" => known.heartbeat_s = Some(value.parse().map_err(|_| wrong())?),
            "channel_max" => known.channel_max = Some(value.parse().map_err(|_| wrong())?),
            "connection_timeout" => {
                known.connect_timeout = Some(Duration::from_millis(value.parse().map_err(|_| wrong())?));
            }
            "cacertfile" => known.authorities = Some(value.into()),
            "certfile" => known.certificate = Some(value.into()),
            "keyfile" => known.key = Some(value.into()),
            _ => {}
        }
    }
    if known.certificate.is_some() != known.key.is_some() {
        return Err("has one of certfile and keyfile: a certificate needs its key, so give both".into());
    }
    Ok(known)
}

/// Percent-decoding; a `+` stays a `+`, as in the Java client.
fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digit = |at: usize| rest.get(at).and_then(|it| char::from(*it).to_digit(16));
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            return Err("has a '%' without two hexadecimal digits behind it: write %25 for a '%'".into());
        };
        bytes.push((high * 16 + low) as u8);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| "has percent-encoded bytes that are not UTF-8".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parts<'a> = (bool, &'a str, u16, &'a str, &'a str, &'a str);

    fn parts(uri: &Uri) -> Parts<'_> {
        (uri.tls, &uri.host, uri.port, &uri.user, &uri.password, &uri.vhost)
    }

    #[test]
    fn addresses_read_as_by_the_java_client() {
        let table: &[(&str, Parts<'_>)] = &[
            (
                "amqp://localhost",
                (false, "localhost", 5672, "guest", "guest", "/"),
            ),
            ("amqp://", (false, "localhost", 5672, "guest", "guest", "/")),
            ("AMQPS://h", (true, "h", 5671, "guest", "guest", "/")),
            ("amqp://h:1", (false, "h", 1, "guest", "guest", "/")),
            ("amqp://h/", (false, "h", 5672, "guest", "guest", "")),
            ("amqp://h/%2F", (false, "h", 5672, "guest", "guest", "/")),
            ("amqp://h/%2f", (false, "h", 5672, "guest", "guest", "/")),
            ("amqp://h/v%20w", (false, "h", 5672, "guest", "guest", "v w")),
            ("amqp://h/a+b", (false, "h", 5672, "guest", "guest", "a+b")),
            ("amqp://u@h", (false, "h", 5672, "u", "guest", "/")),
            ("amqp://u:@h", (false, "h", 5672, "u", "", "/")),
            (
                "amqp://u:p%40%3A%25@h:5673/v",
                (false, "h", 5673, "u", "p@:%", "v"),
            ),
            ("amqp://u%2Fx:p+q@h", (false, "h", 5672, "u/x", "p+q", "/")),
            ("amqp://[::1]", (false, "::1", 5672, "guest", "guest", "/")),
            ("amqps://u:p@[fe80::1]:99/v", (true, "fe80::1", 99, "u", "p", "v")),
            ("amqp://h?heartbeat=5", (false, "h", 5672, "guest", "guest", "/")),
            ("amqp://h/v?x=/y", (false, "h", 5672, "guest", "guest", "v")),
        ];
        for (text, wanted) in table {
            let uri = Uri::parse(text).unwrap_or_else(|failure| panic!("{text}: {failure}"));
            assert_eq!(parts(&uri), *wanted, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_to_do() {
        let table = [
            ("localhost", "no scheme"),
            ("http://h", "write amqp://"),
            ("amqp://h:0", "not a number from 1"),
            ("amqp://h:99999", "not a number from 1"),
            ("amqp://h:x", "not a number from 1"),
            ("amqp://::1", "in brackets"),
            ("amqp://[::1", "without ']'"),
            ("amqp://[::1]x", "behind the ']'"),
            ("amqp://h/a/b", "%2F"),
            ("amqp://h/%2", "%25"),
            ("amqp://h/%ff", "UTF-8"),
            ("amqp://u:p:q@h", "%3A"),
            ("amqp://h?heartbeat=x", "heartbeat=x"),
            ("amqps://h?certfile=a.pem", "give both"),
        ];
        for (text, wanted) in table {
            let failure = Uri::parse(text).unwrap_err();
            assert!(matches!(failure, Failure::Usage(_)));
            assert!(failure.to_string().contains(wanted), "{text}: {failure}");
        }
    }

    #[test]
    fn no_message_and_no_debug_form_tells_the_password() {
        for text in [
            "amqp://u:s3cret@h:x",
            "amqp://u:s3cret:more@h",
            "amq://u:s3cret@h",
            "u:s3cret@h",
        ] {
            let failure = Uri::parse(text).unwrap_err().to_string();
            assert!(!failure.contains("s3cret"), "{failure}");
        }
        let uri = Uri::parse("amqps://u:s3cret@h/v").unwrap();
        assert_eq!(format!("{uri} {uri:?}"), "amqps://u@h:5671 amqps://u@h:5671");
    }

    #[test]
    fn parameters_of_the_java_client_count_and_unknown_ones_do_not() {
        let uri = Uri::parse(
            "amqp://h?heartbeat=7&connection_timeout=1500&channel_max=9&x=y&cacertfile=%2Fa%2Fb.pem",
        )
        .unwrap();
        assert_eq!(uri.query.heartbeat_s, Some(7));
        assert_eq!(uri.query.connect_timeout, Some(Duration::from_millis(1500)));
        assert_eq!(uri.query.channel_max, Some(9));
        assert_eq!(uri.query.authorities, Some("/a/b.pem".into()));
    }
}
