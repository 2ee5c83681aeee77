//! RabbitMQ's plugins whose features are part of this broker.

use crate::call::Api;
use crate::options::PROMETHEUS;
use broker::ExchangeKind;
use std::sync::LazyLock;

/// Their names, in order, and what they are here. All are there from the start; two depend on the configuration.
pub static BUILT_IN: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let exchanges = ExchangeKind::all().filter_map(ExchangeKind::plugin);
    let mut all: Vec<(&str, &str)> = OTHERS.into_iter().chain(exchanges).collect();
    all.sort_unstable();
    all
});

/// Those that bring no exchange type.
const OTHERS: [(&str, &str); 8] = [
    (
        "rabbitmq_auth_backend_cache",
        "A cache of what authorities answered",
    ),
    (
        "rabbitmq_auth_backend_http",
        "Logins and permissions by an HTTP service",
    ),
    (
        "rabbitmq_auth_backend_ldap",
        "Logins and permissions by a directory (LDAP)",
    ),
    (
        "rabbitmq_auth_backend_oauth2",
        "Logins and permissions by tokens (OAuth 2)",
    ),
    (
        "rabbitmq_auth_mechanism_ssl",
        "Logins by a client's certificate (EXTERNAL)",
    ),
    (EVENTS, "The exchange amq.rabbitmq.event"),
    ("rabbitmq_management", "The HTTP API and the web UI"),
    (METRICS, "Metrics for Prometheus"),
];

const EVENTS: &str = "rabbitmq_event_exchange";
const METRICS: &str = "rabbitmq_prometheus";

/// Those that this node's configuration and its list of plugins have not left out.
pub fn enabled(api: &Api) -> Vec<&'static str> {
    let has_events = api.broker.has_event_exchange();
    let mut endpoints = api.options.listeners.iter();
    let has_metrics = endpoints.any(|endpoint| endpoint.protocol == PROMETHEUS);
    let listed = api.options.plugins.as_ref();
    let is_listed = |name: &str| listed.is_none_or(|names| names.contains(name));
    BUILT_IN
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| {
            is_listed(name) && (has_events || *name != EVENTS) && (has_metrics || *name != METRICS)
        })
        .collect()
}
