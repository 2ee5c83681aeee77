//! What a person who has started a node wants to know: that it serves, and where to connect.

use crate::config::Config;
use crate::logs::{ConsoleStream, LogFormat};
use gateway::amqp;
use listener::{Address, Endpoint};
use management::{HTTP, PROMETHEUS};
use std::io::{self, Write};
use std::path;
use std::sync::Arc;

/// Logs where the node listens, and prints it for a person unless the console is for machines (JSON).
pub fn show(config: &Config, endpoints: &[Arc<Endpoint>]) {
    for endpoint in endpoints {
        let (secured, address) = (endpoint.is_secured(), &endpoint.address);
        match endpoint.protocol {
            HTTP => {
                let how = if secured { " with TLS" } else { "" };
                tracing::info!(area = "boot", "listening for HTTP API clients{how} on {address}");
            }
            PROMETHEUS => {
                let scheme = if secured { "https" } else { "http" };
                let address = reachable(address);
                tracing::info!(
                    area = "boot",
                    "metrics for Prometheus on {scheme}://{address}/metrics"
                );
            }
            protocol => {
                // RabbitMQ's words: Testcontainers' modules wait for them.
                let kind = if secured { "TLS (SSL)" } else { "TCP" };
                let name = protocol.name;
                tracing::info!(
                    area = "boot",
                    "started {kind} listener on {address} for {name} clients"
                );
            }
        }
    }
    let data_dir = path::absolute(&config.data_dir).unwrap_or_else(|_| config.data_dir.clone());
    tracing::info!(area = "boot", data_dir = %data_dir.display(), "Leveret {} is ready", env!("CARGO_PKG_VERSION"));
    // Scripts and Testcontainers' modules wait for this line of RabbitMQ's.
    tracing::info!(area = "boot", "Server startup complete");
    let to_person =
        config.log.console_format == LogFormat::Text && config.log.console_stream == ConsoleStream::Stdout;
    if to_person {
        let lines = text(config, endpoints);
        // Nobody may be reading; the node serves all the same.
        let _ = io::stdout().write_all(lines.as_bytes());
    }
}

fn text(config: &Config, endpoints: &[Arc<Endpoint>]) -> String {
    let of = |protocol| endpoints.iter().filter(move |it| it.protocol == protocol);
    let mut lines = String::new();
    // A socket in the file system has no address that clients take.
    for endpoint in of(amqp::PROTOCOL).filter(|it| it.address.network().is_some()) {
        let user = &config.defaults.user;
        let scheme = if endpoint.is_secured() { "amqps" } else { "amqp" };
        lines.push_str(&format!(
            "\n  connect to  {scheme}://{user}@{}\n",
            reachable(&endpoint.address)
        ));
    }
    let prefix = &config.management.path_prefix;
    for endpoint in of(HTTP) {
        let scheme = if endpoint.is_secured() { "https" } else { "http" };
        lines.push_str(&format!(
            "  web UI      {scheme}://{}{prefix}/ (the HTTP API: {prefix}/api/)\n",
            reachable(&endpoint.address)
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
fn reachable(address: &Address) -> String {
    match address {
        Address::Network(address) if address.ip().is_unspecified() => format!("localhost:{}", address.port()),
        address => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_told_where_to_connect() {
        let open = [
            (amqp::PROTOCOL, "[::]:5672"),
            (amqp::PROTOCOL, "10.0.0.1:1"),
            (HTTP, "[::]:15672"),
        ];
        let open = open.map(|(protocol, at)| Arc::new(Endpoint::plain(protocol, at.parse().unwrap())));
        let text = text(&Config::default(), &open);
        assert!(text.contains("web UI      http://localhost:15672/ ("), "{text}");
        assert!(
            text.contains("amqp://guest@localhost:5672\n") && text.contains("amqp://guest@10.0.0.1:1\n"),
            "{text}"
        );
        assert!(text.contains("guest may log in from this machine only"), "{text}");
        assert!(!text.contains("guest:guest"));
    }
}
