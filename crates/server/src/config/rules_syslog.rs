//! `log.syslog.*`: the log as messages for a collector.

use super::rules::{Checked, boolean, formatter, level, number};
use super::{Config, Level, LogFormat, Setting};
use crate::logs::{Facility, Protocol, Transport};
use identity::Trust;

/// Where messages go, and how they look.
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

fn options(config: &mut Config) -> &mut SyslogOptions {
    &mut config.log.syslog
}

pub fn enabled(config: &mut Config, setting: &Setting) -> Checked {
    options(config).enabled = boolean(setting)?;
    Ok(())
}

pub fn set_level(config: &mut Config, setting: &Setting) -> Checked {
    options(config).level = level(setting)?;
    Ok(())
}

pub fn set_formatter(config: &mut Config, setting: &Setting) -> Checked {
    options(config).format = formatter(setting)?;
    Ok(())
}

pub fn identity(config: &mut Config, setting: &Setting) -> Checked {
    let fits = !setting.value.is_empty() && setting.value.len() <= 48;
    if !fits || !setting.value.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a name of 1 to 48 ASCII characters without blanks");
    }
    options(config).identity.clone_from(&setting.value);
    Ok(())
}

pub fn facility(config: &mut Config, setting: &Setting) -> Checked {
    let facility = Facility::from_name(&setting.value);
    options(config).facility = facility.ok_or(
        "kern, user, mail, daemon, auth, syslog, lpr, news, uucp, cron, authpriv, ftp, ntp, audit, alert, clock, local0 to local7",
    )?;
    Ok(())
}

pub fn host(config: &mut Config, setting: &Setting) -> Checked {
    if setting.value.is_empty() {
        return Err("the name or the address of a collector, or the path of its socket");
    }
    options(config).host.clone_from(&setting.value);
    Ok(())
}

pub fn port(config: &mut Config, setting: &Setting) -> Checked {
    options(config).port = number(setting, 1, 65_535).ok_or("a port, from 1 to 65535")?;
    Ok(())
}

pub fn transport(config: &mut Config, setting: &Setting) -> Checked {
    options(config).transport = match setting.value.as_str() {
        "udp" => Transport::Udp,
        "tcp" => Transport::Tcp,
        "tls" | "ssl" => Transport::Tls,
        _ => return Err("udp, tcp, tls"),
    };
    Ok(())
}

pub fn protocol(config: &mut Config, setting: &Setting) -> Checked {
    options(config).protocol = Some(match setting.value.as_str() {
        "rfc3164" => Protocol::Rfc3164,
        "rfc5424" => Protocol::Rfc5424,
        _ => return Err("rfc3164, rfc5424"),
    });
    Ok(())
}
