//! What is logged, how, and where to: what the keys `log.*` of the configuration set.

use super::{Facility, Protocol, Rotation, Transport};
use identity::Trust;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How much is logged, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// `log.console`: lines go to the process's own output.
    pub console: bool,
    /// `log.console.stdio`.
    pub console_stream: ConsoleStream,
    /// `log.console.level`.
    pub console_level: Level,
    /// `log.console.formatter`.
    pub console_format: LogFormat,
    /// `log.exchange`: lines are messages too.
    pub exchange: bool,
    /// `log.exchange.level`.
    pub exchange_level: Level,
    /// `log.exchange.formatter`.
    pub exchange_format: LogFormat,
    /// `log.file`: a path, relative to `dir`; `None` logs to no file.
    pub file: Option<PathBuf>,
    /// `log.file.level`.
    pub file_level: Level,
    /// `log.file.formatter`.
    pub file_format: LogFormat,
    /// `log.file.rotation.*`.
    pub rotation: Rotation,
    /// `log.syslog.*`.
    pub syslog: SyslogOptions,
    /// `log.dir`; `None` is `logs` in the data directory.
    pub dir: Option<PathBuf>,
    /// `log.CATEGORY.level`: categories with a level of their own.
    pub categories: BTreeMap<String, Level>,
}

impl LogOptions {
    /// The level of the output that writes most.
    pub fn most_talkative(&self) -> Level {
        let outputs = [
            (self.console, self.console_level),
            (self.file.is_some(), self.file_level),
            (self.exchange, self.exchange_level),
            (self.syslog.enabled, self.syslog.level),
        ];
        let open = outputs.into_iter().filter(|(open, _)| *open);
        open.map(|(_, level)| level).min().unwrap_or(Level::None)
    }

    /// Where the log goes, for people.
    pub fn files(&self, data_dir: &Path) -> Vec<String> {
        let dir = self.dir.clone().unwrap_or_else(|| data_dir.join("logs"));
        let file = self
            .file
            .as_ref()
            .map(|file| dir.join(file).display().to_string());
        let console = self.console.then(|| match self.console_stream {
            ConsoleStream::Stdout => "<stdout>".to_owned(),
            ConsoleStream::Stderr => "<stderr>".to_owned(),
        });
        file.into_iter().chain(console).collect()
    }
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            console: true,
            console_stream: ConsoleStream::Stdout,
            console_level: Level::Info,
            console_format: LogFormat::Text,
            exchange: false,
            exchange_level: Level::Info,
            exchange_format: LogFormat::Text,
            file: None,
            file_level: Level::Info,
            file_format: LogFormat::Text,
            rotation: Rotation::default(),
            syslog: SyslogOptions::default(),
            dir: None,
            categories: BTreeMap::new(),
        }
    }
}

/// Where the console is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleStream {
    Stdout,
    Stderr,
}

/// How a line of log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// How important an event must be to be logged. RabbitMQ's `notice` is the same as `warning` here (no event of ours
/// lies between), and `critical`, `alert` and `emergency` are the same as `error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Debug,
    Info,
    Warning,
    Error,
    None,
}

/// `log.syslog.*`: where messages for a collector go, and how they look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyslogOptions {
    /// `log.syslog`.
    pub enabled: bool,
    /// `log.syslog.level`.
    pub level: Level,
    /// `log.syslog.formatter`.
    pub format: LogFormat,
    /// `log.syslog.identity`: what the program is called.
    pub identity: String,
    /// `log.syslog.facility`.
    pub facility: Facility,
    /// `log.syslog.host` and `log.syslog.ip`; a path is a socket of this machine.
    pub host: String,
    /// `log.syslog.port`.
    pub port: u16,
    /// `log.syslog.transport`.
    pub transport: Transport,
    /// `log.syslog.protocol`; what isn't said follows from the transport.
    pub protocol: Option<Protocol>,
    /// `log.syslog.ssl_options.*`.
    pub trust: Trust,
}

impl SyslogOptions {
    /// RabbitMQ: RFC 5424 with TLS, else RFC 3164.
    pub fn protocol(&self) -> Protocol {
        self.protocol.unwrap_or(match self.transport {
            Transport::Tls => Protocol::Rfc5424,
            Transport::Udp | Transport::Tcp => Protocol::Rfc3164,
        })
    }
}

impl Default for SyslogOptions {
    fn default() -> Self {
        Self {
            enabled: false,
            level: Level::Info,
            format: LogFormat::Text,
            identity: "rabbitmq".to_owned(),
            facility: Facility::DAEMON,
            host: "localhost".to_owned(),
            port: 514,
            transport: Transport::Udp,
            protocol: None,
            trust: Trust::default(),
        }
    }
}
