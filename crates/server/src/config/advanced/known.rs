//! What of `advanced.config` is known: applications, their keys (with blanks between those that go the same way), and what becomes of them.

/// What becomes of a value.
pub enum Becomes {
    /// A setting of the same name behind this prefix.
    Same(&'static str),
    /// The setting of this name.
    Value(&'static str),
    /// Numbered settings.
    List(&'static str),
    /// Settings below this one.
    Section(&'static str),
    /// Settings below this one that are `true`.
    Flags(&'static str),
    /// The setting of this name, with the text of the term.
    Query(&'static str),
    /// As whom to ask.
    Bind(&'static str),
    /// `auth_backends`.
    Chain,
    /// `default_permissions`.
    Permissions,
    /// `.absolute` or `.relative`.
    Amount(&'static str),
    /// Ports and addresses.
    Listeners(&'static str),
    /// Nothing, for this reason: a warning.
    Nothing(&'static str),
}

use Becomes::{
    Amount, Bind, Chain, Flags, List, Listeners, Nothing, Permissions, Query, Same, Section, Value,
};

const LDAP: &str = "rabbitmq_auth_backend_ldap";

/// The first match counts.
pub const KNOWN: &[(&str, &str, Becomes)] = &[
    (
        "rabbit",
        "heartbeat frame_max initial_frame_max channel_max max_message_size handshake_timeout default_user default_pass \
         default_vhost consumer_timeout ssl_handshake_timeout ssl_cert_login_from ssl_cert_login_san_type \
         ssl_cert_login_san_index proxy_protocol anonymous_login_user anonymous_login_pass reverse_dns_lookups \
         total_memory_available_override_value password_hashing_module cluster_name cluster_partition_handling \
         default_queue_type",
        Same(""),
    ),
    ("rabbit", "tcp_listeners", Listeners("listeners.tcp")),
    ("rabbit", "ssl_listeners", Listeners("listeners.ssl")),
    ("rabbit", "default_user_tags", Flags("default_user_tags")),
    ("rabbit", "loopback_users", Flags("loopback_users")),
    ("rabbit", "default_permissions", Permissions),
    ("rabbit", "auth_backends", Chain),
    ("rabbit", "auth_mechanisms", List("auth_mechanisms")),
    ("rabbit", "ssl_options", Section("ssl_options")),
    (
        "rabbit",
        "vm_memory_high_watermark",
        Amount("vm_memory_high_watermark"),
    ),
    ("rabbit", "disk_free_limit", Amount("disk_free_limit")),
    (
        "rabbit",
        "credit_flow_default_credit",
        Nothing("publishers are slowed down by what waits in memory, not by credit"),
    ),
    (
        LDAP,
        "port timeout use_ssl use_starttls user_dn_pattern user_bind_pattern dn_lookup_attribute dn_lookup_base \
         group_lookup_base log idle_timeout",
        Same("auth_ldap."),
    ),
    (LDAP, "servers", List("auth_ldap.servers")),
    (LDAP, "pool_size", Value("auth_ldap.connection_pool_size")),
    (LDAP, "ssl_options", Section("auth_ldap.ssl_options")),
    (
        LDAP,
        "ssl_hostname_verification",
        Value("auth_ldap.ssl_options.hostname_verification"),
    ),
    (LDAP, "dn_lookup_bind", Bind("auth_ldap.dn_lookup_bind")),
    (LDAP, "other_bind", Bind("auth_ldap.other_bind")),
    (
        LDAP,
        "vhost_access_query",
        Query("auth_ldap.queries.vhost_access"),
    ),
    (
        LDAP,
        "resource_access_query",
        Query("auth_ldap.queries.resource_access"),
    ),
    (
        LDAP,
        "topic_access_query",
        Query("auth_ldap.queries.topic_access"),
    ),
    (LDAP, "tag_queries", Query("auth_ldap.queries.tags")),
    (
        "rabbitmq_auth_backend_http",
        "http_method user_path vhost_path resource_path topic_path request_timeout connection_timeout",
        Same("auth_http."),
    ),
    (
        "rabbitmq_auth_backend_http",
        "ssl_options",
        Section("auth_http.ssl_options"),
    ),
    (
        "rabbitmq_auth_backend_cache",
        "cache_ttl cached_backend cache_refusals",
        Same("auth_cache."),
    ),
    (
        "rabbitmq_management",
        "load_definitions",
        Value("load_definitions"),
    ),
];
