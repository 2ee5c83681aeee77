//! RabbitMQ's plugins whose features are part of this broker.

use crate::call::Api;
use crate::options::PROMETHEUS;

/// Their names, and what they are here. All are there from the start; two depend on the configuration.
pub const BUILT_IN: [(&str, &str); 12] = [
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
    (
        "rabbitmq_consistent_hash_exchange",
        "The exchange type x-consistent-hash",
    ),
    (
        "rabbitmq_delayed_message_exchange",
        "The exchange type x-delayed-message",
    ),
    (EVENTS, "The exchange amq.rabbitmq.event"),
    ("rabbitmq_management", "The HTTP API and the web UI"),
    (
        "rabbitmq_message_deduplication",
        "Queues and exchanges that take a message once",
    ),
    (METRICS, "Metrics for Prometheus"),
    ("rabbitmq_random_exchange", "The exchange type x-random"),
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
