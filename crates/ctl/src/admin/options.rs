//! The command line and the file of options, `~/.rabbitmqadmin.conf`: sections of `key = value`.

use crate::endpoint::{Endpoint, Scheme};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::time::Duration;

/// Options: the long name, the short one, the name in the file, and whether a value follows.
const KNOWN: &[(&str, &str, &str, bool)] = &[
    ("config", "c", "", true),
    ("node", "N", "", true),
    ("host", "H", "hostname", true),
    ("port", "P", "port", true),
    ("path-prefix", "", "path_prefix", true),
    ("vhost", "V", "vhost", true),
    ("username", "u", "username", true),
    ("password", "p", "password", true),
    ("base-uri", "U", "base_uri", true),
    ("quiet", "q", "quiet", false),
    ("ssl", "s", "ssl", false),
    ("ssl-ca-cert-file", "", "ssl_ca_cert_file", true),
    ("request-timeout", "t", "request_timeout", true),
    ("format", "f", "format", true),
    ("sort", "S", "sort", true),
    ("sort-reverse", "R", "sort_reverse", false),
    ("depth", "d", "depth", true),
    ("version", "", "", false),
    ("help", "?", "", false),
];

/// Options that other clients of this name have, and why they are refused.
const REFUSED: &[(&str, &str)] = &[
    (
        "ssl-insecure",
        "certificates are always checked; trust one with --ssl-ca-cert-file",
    ),
    (
        "k",
        "certificates are always checked; trust one with --ssl-ca-cert-file",
    ),
    (
        "ssl-disable-hostname-verification",
        "the name in a certificate is always checked",
    ),
    (
        "ssl-key-file",
        "the HTTP API asks for no certificate of a client; give a user and a password",
    ),
    (
        "ssl-cert-file",
        "the HTTP API asks for no certificate of a client; give a user and a password",
    ),
];

const DEFAULT_TIMEOUT_SECONDS: u64 = 120;

/// What a command line says, the file's options included.
#[derive(Debug, Default)]
pub struct Options {
    pub words: Vec<String>,
    values: BTreeMap<&'static str, String>,
}

impl Options {
    /// Reads a command line, then the file for what it leaves open.
    pub fn read(given: &[String], home: Option<&str>) -> Result<Self, String> {
        let mut options = Self::of_line(given)?;
        let named = options.value("config").map(str::to_owned);
        let usual = home.map(|home| format!("{home}/.rabbitmqadmin.conf"));
        let Some(file) = named.clone().or(usual) else {
            return Ok(options);
        };
        match fs::read_to_string(&file) {
            Ok(text) => options.add_file(&text, &file)?,
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("Could not read config file '{file}': {error}")),
        }
        Ok(options)
    }

    fn of_line(given: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut rest = given.iter();
        while let Some(word) = rest.next() {
            let Some(dashed) = word.strip_prefix('-').filter(|name| !name.is_empty()) else {
                options.words.push(word.clone());
                continue;
            };
            let (name, value) = match dashed.strip_prefix('-') {
                Some(long) => match long.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (long, None),
                },
                // A value may stand right behind the letter.
                None => {
                    let end = dashed.chars().next().map_or(0, char::len_utf8);
                    let (letter, value) = dashed.split_at(end);
                    (letter, Some(value.to_owned()).filter(|value| !value.is_empty()))
                }
            };
            let known = KNOWN
                .iter()
                .find(|(long, short, ..)| name == *long || (name == *short && !short.is_empty()));
            let Some((long, _, _, takes_value)) = known else {
                let reason = REFUSED.iter().find(|(refused, _)| *refused == name);
                return Err(match reason {
                    Some((_, reason)) => format!("ERROR: {word}: {reason}"),
                    None => format!("ERROR: no such option: {word} (rabbitmqadmin --help lists them)"),
                });
            };
            let value = match (takes_value, value) {
                (true, None) => rest
                    .next()
                    .cloned()
                    .ok_or_else(|| format!("ERROR: {word} requires an argument"))?,
                (true, Some(value)) => value,
                (false, None) => "true".to_owned(),
                (false, Some(_)) => return Err(format!("ERROR: {word} takes no value")),
            };
            options.values.insert(long, value);
        }
        Ok(options)
    }

    fn add_file(&mut self, text: &str, file: &str) -> Result<(), String> {
        let wanted = self.value("node").unwrap_or("default").to_owned();
        let mut is_wanted = false;
        let mut found = false;
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(section) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
                is_wanted = section == wanted;
                found |= is_wanted;
                continue;
            }
            let Some((key, value)) = line.split_once(['=', ':']).filter(|_| is_wanted) else {
                continue;
            };
            let (key, value) = (key.trim(), value.trim());
            let key = if key == "declare_vhost" { "vhost" } else { key };
            let known = KNOWN
                .iter()
                .find(|(_, _, name, _)| *name == key && !name.is_empty());
            let Some((long, _, _, takes_value)) = known else {
                return Err(format!("ERROR: {file}: {key} is not known"));
            };
            let is_off = !takes_value && matches!(value.to_ascii_lowercase().as_str(), "false" | "no" | "0");
            if !is_off {
                self.values.entry(long).or_insert_with(|| value.to_owned());
            }
        }
        // A section that was asked for by name must be there.
        match found || (self.value("node").is_none() && self.value("config").is_none()) {
            true => Ok(()),
            false => Err(format!("Could not find section [{wanted}] in {file}")),
        }
    }

    pub fn has(&self, option: &str) -> bool {
        self.values.contains_key(option)
    }

    pub fn value(&self, option: &str) -> Option<&str> {
        self.values.get(option).map(String::as_str)
    }

    /// Who asks.
    pub fn credentials(&self) -> (&str, &str) {
        (
            self.value("username").unwrap_or("guest"),
            self.value("password").unwrap_or("guest"),
        )
    }

    /// Whom to ask.
    pub fn endpoint(&self) -> Result<Endpoint, String> {
        let ca = self.value("ssl-ca-cert-file").map(str::to_owned);
        if let Some(uri) = self.value("base-uri") {
            return Endpoint::of_url(uri, ca)
                .ok_or_else(|| format!("ERROR: {uri} is not an address such as http://host:15672"));
        }
        let (scheme, usual) = match self.has("ssl") {
            true => (Scheme::Https { ca }, "15671"),
            false => (Scheme::Http, "15672"),
        };
        let port = self.value("port").unwrap_or(usual);
        let host = self.value("host").unwrap_or("localhost");
        Ok(Endpoint::Web {
            scheme,
            host: match host.contains(':') && !host.starts_with('[') {
                true => format!("[{host}]"),
                false => host.to_owned(),
            },
            port: port.parse().map_err(|_| format!("ERROR: {port} is not a port"))?,
            prefix: self
                .value("path-prefix")
                .unwrap_or_default()
                .trim_end_matches('/')
                .to_owned(),
        })
    }

    pub fn timeout(&self) -> Result<Duration, String> {
        let seconds = match self.value("request-timeout") {
            None => Some(DEFAULT_TIMEOUT_SECONDS),
            Some(text) => text.parse().ok().filter(|seconds| (1..=86_400).contains(seconds)),
        };
        let seconds = seconds.ok_or("ERROR: --request-timeout takes seconds, 1 to 86400")?;
        Ok(Duration::from_secs(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<Options, String> {
        let given: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Options::of_line(&given)
    }

    #[test]
    fn options_stand_anywhere_and_values_in_any_of_three_ways() {
        let options = line("-u jane --vhost=shop declare queue -pdoe name=q --port 7").unwrap();
        assert_eq!(options.words, ["declare", "queue", "name=q"]);
        assert_eq!(options.credentials(), ("jane", "doe"));
        assert_eq!(
            (options.value("vhost"), options.value("port")),
            (Some("shop"), Some("7"))
        );
        assert!(line("--zork").unwrap_err().contains("no such option"));
        assert!(line("-k list queues").unwrap_err().contains("--ssl-ca-cert-file"));
        assert!(line("list -P").unwrap_err().contains("requires an argument"));
    }

    #[test]
    fn the_file_says_what_the_command_line_leaves_open() {
        let text = "# ours\n[default]\nhostname = h\nport = 1\n[other]\nhostname: o\nssl = True\ndeclare_vhost = v\n";
        let mut options = line("-H mine list queues").unwrap();
        options.add_file(text, "f").unwrap();
        assert_eq!(
            (options.value("host"), options.value("port")),
            (Some("mine"), Some("1"))
        );
        let mut other = line("-N other list queues").unwrap();
        other.add_file(text, "f").unwrap();
        assert_eq!(
            (other.value("host"), other.value("vhost"), other.has("ssl")),
            (Some("o"), Some("v"), true)
        );
        assert!(
            line("-N none")
                .unwrap()
                .add_file(text, "f")
                .unwrap_err()
                .contains("[none]")
        );
        assert!(
            line("x")
                .unwrap()
                .add_file("[default]\nzork = 1", "f")
                .unwrap_err()
                .contains("zork")
        );
    }
}
