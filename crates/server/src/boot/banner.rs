//! What a person who has started a node wants to know: that it serves, and where to connect.

use crate::config::{Config, ConsoleStream, LogFormat};
use listener::{Opened, Place};
use std::io::{self, Write};
use std::path;

/// Logs where the node listens, and prints it for a person unless the console is for machines (JSON).
pub fn show(config: &Config, doors: &[Opened], http: &[Opened], metrics: &[Opened]) {
    for door in doors {
        // RabbitMQ's words: Testcontainers' modules wait for them.
        let kind = if door.is_secured() { "TLS (SSL)" } else { "TCP" };
        tracing::info!(
            area = "boot",
            "started {kind} listener on {} for AMQP 0-9-1 clients",
            door.place
        );
    }
    for door in http {
        let how = if door.is_secured() { " with TLS" } else { "" };
        tracing::info!(
            area = "boot",
            "listening for HTTP API clients{how} on {}",
            door.place
        );
    }
    for door in metrics {
        let scheme = if door.is_secured() { "https" } else { "http" };
        tracing::info!(
            area = "boot",
            "metrics for Prometheus on {scheme}://{}/metrics",
            reachable(&door.place)
        );
    }
    let data_dir = path::absolute(&config.data_dir).unwrap_or_else(|_| config.data_dir.clone());
    tracing::info!(area = "boot", data_dir = %data_dir.display(), "Leveret {} is ready", env!("CARGO_PKG_VERSION"));
    // Scripts and Testcontainers' modules wait for this line of RabbitMQ's.
    tracing::info!(area = "boot", "Server startup complete");
    let to_person =
        config.log.console_format == LogFormat::Text && config.log.console_stream == ConsoleStream::Stdout;
    if to_person {
        let lines = text(config, doors, http);
        // Nobody may be reading; the node serves all the same.
        let _ = io::stdout().write_all(lines.as_bytes());
    }
}

fn text(config: &Config, doors: &[Opened], http: &[Opened]) -> String {
    let mut lines = String::new();
    // A socket in the file system has no address that clients take.
    for door in doors.iter().filter(|door| door.place.address().is_some()) {
        let user = &config.defaults.user;
        let scheme = if door.is_secured() { "amqps" } else { "amqp" };
        lines.push_str(&format!(
            "\n  connect to  {scheme}://{user}@{}\n",
            reachable(&door.place)
        ));
    }
    let prefix = &config.management.path_prefix;
    for door in http {
        let scheme = if door.is_secured() { "https" } else { "http" };
        lines.push_str(&format!(
            "  web UI      {scheme}://{}{prefix}/ (the HTTP API: {prefix}/api/)\n",
            reachable(&door.place)
        ));
    }
    if config.loopback_users.contains(&config.defaults.user) {
        lines.push_str(&format!(
            "  {} may log in from this machine only\n",
            config.defaults.user
        ));
    }
    lines.push_str("  stop with   Ctrl-C\n\n");
    lines
}

/// The address as a client on this machine would write it.
fn reachable(place: &Place) -> String {
    match place {
        Place::Network(address) if address.ip().is_unspecified() => format!("localhost:{}", address.port()),
        place => place.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(address: &str) -> Opened {
        let place = Place::Network(address.parse().unwrap());
        Opened { place, tls: None }
    }

    #[test]
    fn a_person_is_told_where_to_connect() {
        let text = text(
            &Config::default(),
            &[opened("[::]:5672"), opened("10.0.0.1:1")],
            &[opened("[::]:15672")],
        );
        assert!(text.contains("web UI      http://localhost:15672/ ("), "{text}");
        assert!(
            text.contains("amqp://guest@localhost:5672\n") && text.contains("amqp://guest@10.0.0.1:1\n"),
            "{text}"
        );
        assert!(text.contains("guest may log in from this machine only"), "{text}");
        assert!(!text.contains("guest:guest"));
    }
}
