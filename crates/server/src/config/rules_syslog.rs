//! `log.syslog.*`: the log as messages for a collector.

use super::rules::{Checked, boolean, formatter, level, number};
use super::{Config, Setting};
use crate::logs::{Facility, Protocol, SyslogOptions, Transport};

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
