//! What of `advanced.config` is known: applications, their keys (with blanks between those that go the same way), and
//! what becomes of them.

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
    /// Options of sockets, some of them without a value.
    Sockets(&'static str),
    /// `log`, a tree of outputs and categories.
    Log,
    /// Levels by category.
    LogLevels,
    /// The nodes of a cluster, with their kind.
    Nodes,
    /// What decrypts values.
    Decoder,
    /// Nothing, for this reason: a warning.
    Nothing(&'static str),
}

use Becomes::{
    Amount, Bind, Chain, Decoder, Flags, List, Listeners, Log, LogLevels, Nodes, Nothing, Permissions, Query,
    Same, Section, Sockets, Value,
};

const ERLANG: &str = "it tunes the Erlang runtime, which Leveret doesn't have";
const LDAP: &str = "rabbitmq_auth_backend_ldap";

/// The first match counts.
pub const KNOWN: &[(&str, &str, Becomes)] = &[
    (
        "rabbit",
        "heartbeat frame_max initial_frame_max channel_max max_message_size handshake_timeout default_user default_pass \
         default_vhost consumer_timeout ssl_handshake_timeout ssl_cert_login_from ssl_cert_login_san_type \
         ssl_cert_login_san_index proxy_protocol anonymous_login_user anonymous_login_pass reverse_dns_lookups \
         total_memory_available_override_value password_hashing_module cluster_name cluster_partition_handling \
         default_queue_type collect_statistics collect_statistics_interval vm_memory_high_watermark_paging_ratio \
         vm_memory_calculation_strategy memory_monitor_interval queue_index_embed_msgs_below hipe_compile \
         mirroring_sync_batch_size mirroring_sync_max_throughput queue_master_locator queue_leader_locator \
         background_gc_enabled background_gc_target_interval cluster_keepalive_interval mnesia_table_loading_retry_limit \
         mnesia_table_loading_retry_timeout connection_max channel_max_per_node consumer_max_per_channel \
         ranch_connection_max vhost_max cluster_queue_limit cluster_exchange_limit delegate_count vhost_restart_strategy load_definitions ssl_allow_poodle_attack",
        Same(""),
    ),
    ("rabbit", "tcp_listen_options", Sockets("tcp_listen_options")),
    ("rabbit", "log", Log),
    ("rabbit", "log_levels", LogLevels),
    ("rabbit", "cluster_nodes", Nodes),
    ("rabbit", "config_entry_decoder", Decoder),
    ("rabbit", "credential_validator", Section("credential_validator")),
    (
        "rabbit",
        "server_properties",
        Nothing("clients are told this node's own properties"),
    ),
    (
        "rabbit",
        "default_consumer_prefetch",
        Nothing("consumers without a prefetch have no limit"),
    ),
    (
        "rabbit",
        "msg_store_credit_disc_bound msg_store_file_size_limit msg_store_index_module backing_queue_module \
         queue_index_max_journal_entries lazy_queue_explicit_gc_run_operation_threshold \
         queue_explicit_gc_run_operation_threshold fhc_read_buffering fhc_write_buffering",
        Nothing("Leveret's own storage decides this"),
    ),
    (
        "rabbit",
        "channel_operation_timeout permission_cache_can_expire tracking_execution_timeout halt_on_upgrade_failure \
         quorum_commands_soft_limit quorum_cluster_size stream_messages_soft_limit \
         dead_letter_worker_consumer_prefetch dead_letter_worker_publisher_confirm_timeout",
        Nothing("it tunes parts of RabbitMQ that are built otherwise here"),
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
    ("rabbitmq_management", "listener", Section("management.listener")),
    ("rabbitmq_management", "tcp_config", Section("management.tcp")),
    ("rabbitmq_management", "ssl_config", Section("management.ssl")),
    (
        "rabbitmq_management",
        "cors_allow_origins",
        List("management.cors.allow_origins"),
    ),
    (
        "rabbitmq_management",
        "cors_max_age",
        Value("management.cors.max_age"),
    ),
    (
        "rabbitmq_management",
        "path_prefix rates_mode http_log_dir disable_stats enable_queue_totals disable_basic_auth",
        Same("management."),
    ),
    (
        "rabbitmq_management",
        "sample_retention_policies process_stats_gc_timeout",
        Nothing("samples are kept for ten minutes, those of the whole node for a day"),
    ),
    (
        "rabbitmq_management_agent",
        "rates_mode disable_metrics_collector",
        Same("management_agent."),
    ),
    (
        "rabbitmq_management_agent",
        "sample_retention_policies",
        Nothing("samples are kept for ten minutes, those of the whole node for a day"),
    ),
    ("rabbitmq_prometheus", "tcp_config", Section("prometheus.tcp")),
    ("rabbitmq_prometheus", "ssl_config", Section("prometheus.ssl")),
    (
        "rabbitmq_prometheus",
        "return_per_object_metrics path",
        Same("prometheus."),
    ),
    (
        "rabbitmq_auth_backend_oauth2",
        "resource_server_id scope_prefix additional_scopes_key verify_aud require_exp resource_server_type default_oauth_provider \
         issuer jwks_uri token_endpoint authorization_endpoint end_session_endpoint discovery_endpoint_path",
        Same("auth_oauth2."),
    ),
    ("kernel", "net_ticktime", Value("net_ticktime")),
    ("kernel", "*", Nothing(ERLANG)),
    ("sasl", "*", Nothing(ERLANG)),
    ("mnesia", "*", Nothing(ERLANG)),
    ("os_mon", "*", Nothing(ERLANG)),
    ("ssl", "*", Nothing(ERLANG)),
    ("inets", "*", Nothing(ERLANG)),
    ("lager", "*", Nothing(ERLANG)),
    ("ra", "*", Nothing(ERLANG)),
    ("osiris", "*", Nothing(ERLANG)),
    ("aten", "*", Nothing(ERLANG)),
    ("khepri", "*", Nothing(ERLANG)),
    ("sysmon_handler", "*", Nothing(ERLANG)),
    (
        "rabbitmq_shovel",
        "*",
        Nothing("this version doesn't have shovels"),
    ),
    (
        "rabbitmq_federation",
        "*",
        Nothing("this version doesn't have federation"),
    ),
    ("rabbitmq_mqtt", "*", Nothing("this version doesn't have MQTT")),
    (
        "rabbitmq_web_mqtt",
        "*",
        Nothing("this version doesn't have MQTT"),
    ),
    ("rabbitmq_stomp", "*", Nothing("this version doesn't have STOMP")),
    (
        "rabbitmq_web_stomp",
        "*",
        Nothing("this version doesn't have STOMP"),
    ),
    (
        "rabbitmq_stream",
        "tcp_listeners",
        Listeners("stream.listeners.tcp"),
    ),
    (
        "rabbitmq_stream",
        "ssl_listeners",
        Listeners("stream.listeners.ssl"),
    ),
    (
        "rabbitmq_stream",
        "proxy_protocol frame_max heartbeat initial_credits credits_required_for_unblocking advertised_host \
         advertised_port advertised_tls_host advertised_tls_port",
        Same("stream."),
    ),
    (
        "rabbitmq_stream",
        "tcp_listen_options",
        Nothing("tcp_listen_options counts for all listeners of clients"),
    ),
    (
        "rabbitmq_stream",
        "*",
        Nothing("this version doesn't have what this key asks of streams"),
    ),
    (
        "rabbitmq_amqp1_0",
        "*",
        Nothing("this version doesn't have AMQP 1.0"),
    ),
];
