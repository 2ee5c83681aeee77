//! The two forms of a message: RFC 3164, which collectors of old take, and RFC 5424.

use crate::logs::SyslogOptions;
use jiff::Timestamp;
use jiff::tz::Offset;
use std::time::SystemTime;
use tracing::Level;

/// `log.syslog.protocol`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Rfc3164,
    Rfc5424,
}

/// `log.syslog.facility`: what kind of program speaks, by the number of RFC 5424, section 6.2.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facility(u8);

const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
    "ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6",
    "local7",
];

impl Facility {
    pub const DAEMON: Self = Self(3);

    pub fn from_name(name: &str) -> Option<Self> {
        let name = if name == "kernel" { "kern" } else { name };
        let place = FACILITIES.iter().position(|known| *known == name)?;
        u8::try_from(place).ok().map(Self)
    }

    pub fn name(self) -> &'static str {
        FACILITIES.get(usize::from(self.0)).copied().unwrap_or_default()
    }
}

/// The longest text of a message, in bytes: more than that does not fit into a datagram of many collectors.
const TEXT_MOST: usize = 8_192;

/// What stands before the text of every message.
pub struct Form {
    protocol: Protocol,
    facility: Facility,
    host: String,
    identity: String,
    process: u32,
}

impl Form {
    pub fn new(options: &SyslogOptions, host: &str) -> Self {
        Self {
            protocol: options.protocol(),
            facility: options.facility,
            host: word(host, 255),
            identity: word(&options.identity, 48),
            process: std::process::id(),
        }
    }

    /// A message without an end of line; the text has none inside either.
    pub fn message(&self, level: Level, at: SystemTime, text: &str) -> String {
        let priority = self.facility.0 * 8 + severity(level);
        let text = &text[..text.floor_char_boundary(TEXT_MOST)];
        // A clock that is beyond the calendar shows as 1970.
        let time = Timestamp::try_from(at).unwrap_or(Timestamp::UNIX_EPOCH);
        let Self {
            host,
            identity,
            process,
            ..
        } = self;
        match self.protocol {
            Protocol::Rfc5424 => {
                let time = time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ");
                format!("<{priority}>1 {time} {host} {identity} {process} - - {text}")
            }
            Protocol::Rfc3164 => {
                let time = Offset::UTC
                    .to_datetime(time)
                    .strftime("%b %e %H:%M:%S")
                    .to_string();
                format!("<{priority}>{time} {host} {identity}[{process}]: {text}")
            }
        }
    }
}

/// The numbers of RFC 5424, section 6.2.1.
fn severity(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

/// A text as a field of the head, which has no blanks and is ASCII; `-` for none.
fn word(text: &str, most: usize) -> String {
    let fits = text.chars().filter(char::is_ascii_graphic);
    match fits.take(most).collect::<String>() {
        word if word.is_empty() => "-".to_owned(),
        word => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn message(protocol: Protocol, text: &str) -> String {
        let options = SyslogOptions {
            protocol: Some(protocol),
            facility: Facility::from_name("local0").unwrap(),
            ..SyslogOptions::default()
        };
        let form = Form::new(&options, "mq 1");
        let at = SystemTime::UNIX_EPOCH + Duration::from_micros(951_782_400_000_001);
        let text = form.message(Level::WARN, at, text);
        text.replace(&std::process::id().to_string(), "PID")
    }

    #[test]
    fn both_forms_have_their_fields() {
        assert_eq!(
            message(Protocol::Rfc5424, "alarm: on"),
            "<132>1 2000-02-29T00:00:00.000001Z mq1 rabbitmq PID - - alarm: on"
        );
        assert_eq!(
            message(Protocol::Rfc3164, "alarm: on"),
            "<132>Feb 29 00:00:00 mq1 rabbitmq[PID]: alarm: on"
        );
    }

    #[test]
    fn facilities_are_those_of_rabbitmq() {
        assert_eq!(Facility::from_name("daemon"), Some(Facility::DAEMON));
        assert_eq!(Facility::from_name("kernel").unwrap().name(), "kern");
        assert_eq!(Facility::from_name("local7").unwrap().0, 23);
        assert_eq!(Facility::from_name("local8"), None);
    }

    #[test]
    fn a_message_ends_somewhere() {
        let long = "ä".repeat(TEXT_MOST);
        assert!(message(Protocol::Rfc5424, &long).len() < TEXT_MOST + 200);
    }
}
