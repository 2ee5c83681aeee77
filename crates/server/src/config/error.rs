//! What can be wrong with a configuration, in words that tell where and what would be right.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Where a setting was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A configuration file and a line in it, from 1.
    File(PathBuf, usize),
    /// An environment variable, by name.
    Environment(String),
    /// An option of the command line, as written.
    CommandLine(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::CommandLine(option) => write!(f, "command line, {option}"),
        }
    }
}

/// Why a node doesn't start with this configuration. The operator repairs the named place.
#[derive(Debug)]
pub enum ConfigError {
    /// The configuration file can't be read.
    Read { path: PathBuf, source: io::Error },
    /// The configuration file is larger than any sensible one.
    TooLarge { path: PathBuf, most: u64 },
    /// A line that isn't `key = value`.
    Syntax { origin: Origin, what: &'static str },
    /// A key that neither RabbitMQ nor Leveret has.
    UnknownKey {
        origin: Origin,
        key: String,
        nearest: Option<String>,
    },
    /// A value that the key can't have. `value` is `None` for secrets.
    BadValue {
        origin: Origin,
        key: String,
        value: Option<String>,
        allowed: &'static str,
    },
    /// A query, or another Erlang term, that cannot be read; with its place and why.
    Query { origin: Origin, what: String },
    /// A known key that this version must not pass over, because the node would be weaker than it says.
    Refused {
        origin: Origin,
        key: String,
        why: &'static str,
    },
}

impl ConfigError {
    /// The same without the value, which is a secret.
    pub fn without_value(self) -> Self {
        match self {
            Self::BadValue {
                origin, key, allowed, ..
            } => Self::BadValue {
                origin,
                key,
                value: None,
                allowed,
            },
            other => other,
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, source } => write!(f, "can't read {}: {source}", path.display()),
            Self::TooLarge { path, most } => {
                write!(
                    f,
                    "{} is larger than {most} bytes; is it a configuration file?",
                    path.display()
                )
            }
            Self::Syntax { origin, what } => write!(f, "{origin}: {what}"),
            Self::UnknownKey {
                origin,
                key,
                nearest: Some(nearest),
            } => {
                write!(f, "{origin}: unknown key {key}; did you mean {nearest}?")
            }
            Self::UnknownKey {
                origin,
                key,
                nearest: None,
            } => write!(f, "{origin}: unknown key {key}"),
            Self::BadValue {
                origin,
                key,
                value: Some(value),
                allowed,
            } => {
                write!(f, "{origin}: {key} can't be {value:?}; allowed: {allowed}")
            }
            Self::BadValue {
                origin,
                key,
                value: None,
                allowed,
            } => {
                write!(
                    f,
                    "{origin}: the value of {key} can't be used; allowed: {allowed}"
                )
            }
            Self::Query { origin, what } => write!(f, "{origin}: {what}"),
            Self::Refused { origin, key, why } => write!(f, "{origin}: {key} is refused: {why}"),
        }
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            _ => None,
        }
    }
}
