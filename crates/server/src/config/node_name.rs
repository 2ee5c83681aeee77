//! The name of the node: `rabbit@HOST`, as RabbitMQ's nodes are called. It names; nothing that is kept depends on it,
//! so that a node that is called otherwise finds its data.

use super::rules::{Checked, boolean};
use super::{Config, Setting};
use std::fmt;
use std::fs;

/// How a node is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeName {
    /// `nodename`, as it was said.
    pub said: Option<String>,
    /// `use_longname`: the machine's name has its domain.
    pub is_long: bool,
    /// The machine's name, with its domain where that is known.
    pub host: String,
}

impl NodeName {
    /// Looks up what the machine is called.
    pub fn find_host(&mut self) {
        let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let name = name.trim();
        if name.is_empty() {
            return;
        }
        let hosts = fs::read_to_string("/etc/hosts").unwrap_or_default();
        self.host = with_domain(name, &hosts);
    }
}

impl Default for NodeName {
    fn default() -> Self {
        Self {
            said: None,
            is_long: false,
            host: "localhost".to_owned(),
        }
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.said.as_deref().unwrap_or("rabbit");
        if name.contains('@') {
            return f.write_str(name);
        }
        let host = match self.is_long {
            true => self.host.as_str(),
            false => self.host.split('.').next().unwrap_or_default(),
        };
        write!(f, "{name}@{host}")
    }
}

/// The machine's name as the first one of its line in the file of hosts, which is the one with the domain.
fn with_domain(name: &str, hosts: &str) -> String {
    if name.contains('.') {
        return name.to_owned();
    }
    let lines = hosts
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    let mut of_this = lines.filter_map(|line| {
        let mut names = line.split_ascii_whitespace().skip(1);
        let first = names.next()?;
        names.any(|other| other == name).then_some(first)
    });
    let found = of_this.find(|first| first.split('.').next() == Some(name));
    found.unwrap_or(name).to_owned()
}

pub fn said(config: &mut Config, setting: &Setting) -> Checked {
    const ALLOWED: &str =
        "a name, or a name and a host, such as rabbit@mq1, of letters, digits, dashes, underscores and dots";
    let text = setting.value.as_str();
    let (name, host) = text.split_once('@').unwrap_or((text, "host"));
    let plain = |part: &str, more: &str| {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || more.contains(letter);
        !part.is_empty() && part.chars().all(fits)
    };
    // 255 bytes are Erlang's limit, and that of AMQP's short strings.
    if text.len() > 255 || !plain(name, "-_.") || !plain(host, "-_.:") {
        return Err(ALLOWED);
    }
    config.node_name.said = Some(text.to_owned());
    Ok(())
}

pub fn is_long(config: &mut Config, setting: &Setting) -> Checked {
    config.node_name.is_long = boolean(setting)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(said: Option<&str>, is_long: bool) -> String {
        let name = NodeName {
            said: said.map(str::to_owned),
            is_long,
            host: "mq1.example.com".to_owned(),
        };
        name.to_string()
    }

    #[test]
    fn a_node_is_called_as_rabbitmqs_are() {
        assert_eq!(called(None, false), "rabbit@mq1");
        assert_eq!(called(None, true), "rabbit@mq1.example.com");
        assert_eq!(called(Some("hare"), false), "hare@mq1");
        assert_eq!(called(Some("hare"), true), "hare@mq1.example.com");
        assert_eq!(called(Some("hare@other"), true), "hare@other");
        assert_eq!(NodeName::default().to_string(), "rabbit@localhost");
    }

    #[test]
    fn the_domain_is_that_of_the_file_of_hosts() {
        let hosts =
            "127.0.0.1 localhost\n# 10.0.0.1 mq0.x mq0\n10.0.0.2\tmq1.svc.local mq1 # here\n10.0.0.3 mq2\n";
        assert_eq!(with_domain("mq1", hosts), "mq1.svc.local");
        assert_eq!(with_domain("mq0", hosts), "mq0");
        assert_eq!(with_domain("mq2", hosts), "mq2");
        assert_eq!(with_domain("mq1.own", hosts), "mq1.own");
    }
}
