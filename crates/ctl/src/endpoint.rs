//! Where the node is: its admin socket on this machine, or its HTTP API.

use crate::failure::{Failure, USAGE};
use crate::line::CommandLine;
use std::path::{Path, PathBuf};

/// The port of the HTTP API.
const HTTP_PORT: u16 = 15672;
/// Where packages keep the data.
const PACKAGED: &str = "/var/lib/leveret";

/// A way to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Its admin socket.
    Socket(PathBuf),
    /// Its HTTP API.
    Web {
        /// In clear text or not.
        scheme: Scheme,
        /// A name or an address; IPv6 in brackets.
        host: String,
        /// The port.
        port: u16,
        /// What stands before `/api`.
        prefix: String,
    },
}

/// How the HTTP API is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// In clear text.
    Http,
    /// Encrypted; `ca` is a file of certificates that are trusted instead of the system's.
    Https { ca: Option<String> },
}

impl Endpoint {
    /// Finds the node: `--url`, a node name of another machine, a data directory; LEVERET_URL and LEVERET_DATA_DIR
    /// stand in for the options, RABBITMQ_NODENAME for `--node`.
    ///
    /// # Errors
    /// What was given as an address cannot be read as one.
    pub fn find(line: &CommandLine, variable: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let url = line.value("url").map(str::to_owned);
        let node = line.value("node").map(str::to_owned);
        // Tools of a script may pass an address as the node.
        let (url, node) = match node {
            Some(node) if node.contains("://") => (Some(node), None),
            node => (url, node),
        };
        let ca = line.value("ca-certificate").map(str::to_owned);
        if let Some(url) = url.or_else(|| variable("LEVERET_URL").filter(|_| node.is_none())) {
            // Command lines are seen by others, and an address stands in error messages.
            if url.contains('@') {
                let text = "Error: the URL must not contain a user or a password: use --username and --password, or \
                 LEVERET_USERNAME and LEVERET_PASSWORD";
                return Err(Failure::plain(USAGE, text));
            }
            return Self::of_url(&url, ca).ok_or_else(|| {
                Failure::plain(
                    USAGE,
                    format!("Error: {url:?} is not a URL such as http://host:15672"),
                )
            });
        }
        let node = node.or_else(|| variable("RABBITMQ_NODENAME"));
        if let Some(host) = node.as_deref().and_then(elsewhere) {
            return Ok(Self::Web {
                scheme: Scheme::Http,
                host,
                port: HTTP_PORT,
                prefix: String::new(),
            });
        }
        let dir = line.value("data-dir").map(str::to_owned);
        let dir = dir.or_else(|| variable("LEVERET_DATA_DIR")).map(PathBuf::from);
        Ok(Self::Socket(socket(&dir.unwrap_or_else(default_dir))))
    }

    /// An address of the HTTP API; `None` if the text is no such address.
    pub fn of_url(url: &str, ca: Option<String>) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (scheme, port) = match scheme {
            "http" => (Scheme::Http, HTTP_PORT),
            "https" => (Scheme::Https { ca }, 15671),
            _ => return None,
        };
        let (authority, prefix) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, digits)) if !digits.contains(']') => (host, digits.parse().ok()?),
            _ => (authority, port),
        };
        let prefix = prefix.trim_end_matches('/');
        Some(Self::Web {
            scheme,
            host: Some(host).filter(|host| !host.is_empty())?.to_owned(),
            port,
            prefix: prefix.strip_suffix("/api").unwrap_or(prefix).to_owned(),
        })
    }
}

/// The host of a node name, if it is another machine than this.
fn elsewhere(node: &str) -> Option<String> {
    let (_, host) = node.split_once('@')?;
    let short = host.split('.').next().unwrap_or(host);
    let here = ["localhost", "127", "::1"].contains(&short) || short == host_name();
    (!here).then(|| host.to_owned())
}

/// This machine's name without its domain.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim().split('.').next() {
        None | Some("") => "localhost".into(),
        Some(short) => short.into(),
    }
}

/// Where a node with this data directory answers.
pub fn socket(data_dir: &Path) -> PathBuf {
    data_dir.join("admin").join("socket")
}

/// The data directory of a package, or `./var` as of a node that was started without one. The folder counts, not the
/// socket in it: that goes with its node, and whoever means a node that is down must not meet another.
fn default_dir() -> PathBuf {
    let near = Path::new("var");
    let has_node = |data_dir| socket(data_dir).parent().is_some_and(Path::exists);
    match has_node(near) || !has_node(Path::new(PACKAGED)) {
        true => near.into(),
        false => PACKAGED.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line;

    fn found(options: &str, variables: &[(&str, &str)]) -> Result<Endpoint, Failure> {
        let given: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
        Endpoint::find(&line::parse(&given, None), |name| {
            let mut variables = variables.iter();
            variables
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    fn http(host: &str, port: u16, prefix: &str) -> Endpoint {
        Endpoint::Web {
            scheme: Scheme::Http,
            host: host.into(),
            port,
            prefix: prefix.into(),
        }
    }

    #[test]
    fn the_nearest_node_is_asked_unless_another_is_named() {
        let socket = |dir: &str| Ok(Endpoint::Socket(socket(Path::new(dir))));
        assert_eq!(
            found("--data-dir /d", &[("LEVERET_DATA_DIR", "/e")]),
            socket("/d")
        );
        assert_eq!(
            found("-n rabbit@localhost", &[("LEVERET_DATA_DIR", "/e")]),
            socket("/e")
        );
        assert_eq!(
            found("-n rabbit@db7.example", &[]),
            Ok(http("db7.example", 15672, ""))
        );
        assert_eq!(
            found("", &[("LEVERET_URL", "http://a:1/pre/api/")]),
            Ok(http("a", 1, "/pre"))
        );
        assert_eq!(found("--node http://[::1]:1", &[]), Ok(http("[::1]", 1, "")));
        assert_eq!(found("--url http://[::1]", &[]), Ok(http("[::1]", 15672, "")));
    }

    #[test]
    fn an_address_with_a_password_is_refused_and_not_repeated() {
        let refused = found("--url http://me:secret@host:15672", &[]).unwrap_err();
        assert_eq!(refused.code, 64);
        assert!(!format!("{refused:?}").contains("secret"));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for wrong in ["ftp://a", "http://", "http://a:port", "a:1"] {
            assert_eq!(
                found(&format!("--url {wrong}"), &[]).unwrap_err().code,
                64,
                "{wrong}"
            );
        }
    }
}
