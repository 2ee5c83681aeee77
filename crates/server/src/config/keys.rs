//! Every key that may stand in a configuration, and what becomes of it.
//!
//! A key of RabbitMQ for a part that isn't built is accepted with a warning, so that an existing `rabbitmq.conf`
//! starts a node. Where ignoring it would leave the node less guarded than its operator believes (TLS,
//! authentication backends, limits), it is refused.

mod search;

pub use search::{nearest, rule};

use super::encrypted;
use super::keys_identity::{ALWAYS_SHOWN, VERIFIED};
use super::node_name;
use super::rules::{self, Checked};
use super::rules_cluster;
use super::rules_definitions as definitions;
use super::rules_discovery;
use super::rules_guards as guards;
use super::rules_quorum as quorum;
use super::rules_stream as stream;
use super::rules_syslog as syslog;
use super::rules_tls as tls;
use super::rules_trust as trust;
use super::rules_vhost_defaults as vhosts;
use super::{Config, Setting};

/// What becomes of a setting.
pub enum Rule {
    /// It is checked and takes effect.
    Sets(fn(&mut Config, &Setting) -> Checked),
    /// It belongs to this part of RabbitMQ, which isn't built: a warning.
    Part(&'static str),
    /// It has no effect for this reason: a warning.
    NoEffect(&'static str),
    /// These values are checked and take effect; every other one is refused for this reason.
    Among(
        &'static [&'static str],
        fn(&mut Config, &Setting) -> Checked,
        &'static str,
    ),
    /// These values ask for nothing that we don't do; every other one is refused for this reason.
    Only(&'static [&'static str], &'static str),
}

use Rule::{Among, NoEffect, Only, Part, Sets};

pub(super) const TLS: &str = "this option of TLS is not part of this version, and a node must not be less guarded than it was told to be";
pub(super) const GUARD: &str =
    "this guard is not part of this version, and a node must not be less guarded than it was told to be";
const UNLIMITED: &str =
    "this limit is not part of this version, and a node must not be less guarded than it was told to be";
pub(super) const CURVES: &str = "the curves are ours to choose, and are all good ones";
pub(super) const RENEGOTIATION: &str = "no session is ever renegotiated";
pub(super) const DIFFIE: &str = "no suite with Diffie-Hellman over finite fields is spoken";
const PEM_CACHE: &str = "files are read again as soon as they change";
const TLS_LOG: &str = "failed handshakes are logged with their reason at the level of errors";
const MAJORITY: &str =
    "the side of a partition that has the majority goes on, and the other one joins it again by itself";
const SILENCE: &str = "nodes notice each other's silence within two seconds";
const ASKS_ON: &str = "a node asks for its cluster until it has found it";
const ORDINALS: &str =
    "pods are found by the numbers in their names, as in RabbitMQ 4.1, and nothing else is asked";
const STAYS: &str = "a node stays a member until forget_cluster_node";
const OTHER_BACKENDS: &str = "finding nodes by AWS, Consul or etcd";
const ERLANG: &str = "it tunes the Erlang runtime, which Leveret does not have";
const ONE_FILE: &str = "all categories share one log file";
/// What of quorum queues is for those on several nodes.
const GROUPS: &str = "Leveret's own log and groups decide this";
const STORE: &str = "Leveret's own storage decides this";

/// Keys by pattern; `*` stands for one segment, `**` for one or more. The first match counts.
pub const KEYS: &[(&str, Rule)] = &[
    ("data_dir", Sets(rules::data_dir)),
    ("nodename", Sets(node_name::said)),
    ("use_longname", Sets(node_name::is_long)),
    ("pid_file", Sets(rules::pid_file)),
    ("keep_pid_file_on_exit", Sets(rules::keeps_pid_file)),
    ("config_entry_decoder.passphrase", Sets(encrypted::passphrase)),
    (
        "config_entry_decoder.passphrase_file",
        Sets(encrypted::passphrase_file),
    ),
    ("config_entry_decoder.cipher", Sets(encrypted::cipher)),
    ("config_entry_decoder.hash", Sets(encrypted::hash)),
    ("config_entry_decoder.iterations", Sets(encrypted::iterations)),
    // Listeners and sockets
    ("listeners.tcp", Sets(rules::no_listeners)),
    ("listeners.tcp.*", Sets(rules::listener)),
    ("listeners.unix.*", Sets(rules::local_listener)),
    ("listeners.unix_mode", Sets(rules::local_mode)),
    ("listeners.ssl", Sets(tls::no_listeners)),
    ("listeners.ssl.*", Sets(tls::listener)),
    (
        "listeners.startup_delay",
        NoEffect("listeners open when the node is ready to serve"),
    ),
    (
        "num_acceptors.tcp",
        NoEffect("the number of acceptors follows from the cores"),
    ),
    (
        "num_acceptors.ssl",
        NoEffect("the number of acceptors follows from the cores"),
    ),
    ("tcp_listen_options", Only(&["none"], "`none` is its only value")),
    ("tcp_listen_options.backlog", Sets(rules::backlog)),
    ("tcp_listen_options.nodelay", Sets(rules::nodelay)),
    ("tcp_listen_options.sndbuf", Sets(rules::sndbuf)),
    ("tcp_listen_options.recbuf", Sets(rules::recbuf)),
    (
        "tcp_listen_options.buffer",
        NoEffect("the size of reads follows from what clients send"),
    ),
    (
        "tcp_listen_options.linger.*",
        NoEffect("sockets are closed in order"),
    ),
    (
        "tcp_listen_options.keepalive",
        NoEffect("AMQP's heartbeats find dead connections"),
    ),
    ("tcp_listen_options.*", NoEffect(ERLANG)),
    ("handshake_timeout", Sets(rules::handshake_timeout)),
    ("reverse_dns_lookups", NoEffect("peers are named by address")),
    ("proxy_protocol", Sets(rules::proxy_protocol)),
    ("proxy_protocol_trusted_sources.*", Sets(rules::proxy_trusted)),
    ("ranch_connection_max", Only(&["infinity"], UNLIMITED)),
    ("max_connections", Sets(guards::connection_max)),
    ("connection_max", Sets(guards::connection_max)),
    ("socket_writer.gc_threshold", NoEffect(ERLANG)),
    // AMQP 0-9-1
    ("heartbeat", Sets(rules::heartbeat)),
    ("frame_max", Sets(rules::frame_max)),
    ("initial_frame_max", Sets(rules::initial_frame_max)),
    ("channel_max", Sets(rules::channel_max)),
    ("max_channels_per_connection", Sets(rules::channel_max)),
    ("max_message_size", Sets(rules::max_message_size)),
    ("max_unfinished_size", Sets(rules::max_unfinished_size)),
    ("channel_max_per_node", Sets(guards::channel_max_per_node)),
    ("consumer_max_per_channel", Sets(guards::consumer_max_per_channel)),
    ("channel_tx_message_max", Part("transactions")),
    ("session_max_per_connection", Part("AMQP 1.0")),
    ("link_max_per_session", Part("AMQP 1.0")),
    ("channel_interceptor.priorities.*", Part("channel interceptors")),
    (
        "message_interceptors.incoming.set_header_timestamp.overwrite",
        Sets(rules::intercept_timestamp),
    ),
    (
        "message_interceptors.incoming.set_header_routing_node.overwrite",
        Sets(rules::intercept_routing_node),
    ),
    ("message_interceptors.**", Part("message interceptors")),
    // The first user
    ("default_user", Sets(rules::default_user)),
    ("default_pass", Sets(rules::default_pass)),
    ("default_vhost", Sets(rules::default_vhost)),
    ("default_user_tags.*", Sets(rules::default_user_tag)),
    ("default_permissions.configure", Sets(rules::default_configure)),
    ("default_permissions.write", Sets(rules::default_write)),
    ("default_permissions.read", Sets(rules::default_read)),
    ("default_users.*.vhost_pattern", Sets(vhosts::user_vhosts)),
    ("default_users.*.password", Sets(vhosts::user_password)),
    ("default_users.*.tags", Sets(vhosts::user_tags)),
    ("default_users.*.configure", Sets(vhosts::user_configure)),
    ("default_users.*.write", Sets(vhosts::user_write)),
    ("default_users.*.read", Sets(vhosts::user_read)),
    ("default_limits.vhosts.*.pattern", Sets(vhosts::limits_pattern)),
    ("default_limits.vhosts.*.max_connections", Sets(vhosts::limit)),
    ("default_limits.vhosts.*.max_queues", Sets(vhosts::limit)),
    (
        "default_policies.operator.*.vhost_pattern",
        Sets(vhosts::policy_vhosts),
    ),
    (
        "default_policies.operator.*.queue_pattern",
        Sets(vhosts::policy_queues),
    ),
    (
        "default_policies.operator.*.apply_to",
        Sets(vhosts::policy_applies),
    ),
    (
        "default_policies.operator.*.expires",
        Sets(vhosts::policy_duration),
    ),
    (
        "default_policies.operator.*.message_ttl",
        Sets(vhosts::policy_duration),
    ),
    (
        "default_policies.operator.*.max_length",
        Sets(vhosts::policy_number),
    ),
    (
        "default_policies.operator.*.max_length_bytes",
        Sets(vhosts::policy_bytes),
    ),
    (
        "default_policies.operator.*.delivery_limit",
        Sets(vhosts::policy_number),
    ),
    (
        "default_policies.operator.*.classic_queues.queue_version",
        Only(&["2"], "version 2 is the only one, as in RabbitMQ 4.3"),
    ),
    (
        "default_policies.operator.*.classic_queues.*",
        NoEffect("mirrored queues do not exist, as in RabbitMQ 4"),
    ),
    ("default_policies.operator.**", Only(&[], GUARD)),
    ("load_definitions", Sets(definitions::file)),
    ("management.load_definitions", Sets(definitions::file)),
    (
        "definitions.skip_if_unchanged",
        Sets(definitions::skip_if_unchanged),
    ),
    // Ours: what is done about what this version does not have.
    (
        "definitions.on_unsupported",
        Among(
            &["refuse", "skip"],
            definitions::on_unsupported,
            "what this version does not have is refused, or skipped with what needs it",
        ),
    ),
    (
        "definitions.quorum_as",
        Among(
            &["refuse", "classic"],
            definitions::quorum_as,
            "quorum queues are refused, or made as classic ones, in this version",
        ),
    ),
    (
        "definitions.mirrored_as",
        Among(
            &["mirrored", "quorum"],
            definitions::mirrored_as,
            "classic queues that a policy mirrors stay so, or become quorum queues",
        ),
    ),
    (
        "definitions.classic_as",
        Among(
            &["classic", "quorum"],
            definitions::classic_as,
            "classic queues stay so, or become quorum queues",
        ),
    ),
    (
        "definitions.hashing.algorithm",
        Among(
            &["sha224", "sha256", "sha384", "sha512"],
            definitions::hashing,
            "definitions are told apart by sha224, sha256, sha384 or sha512 in this version",
        ),
    ),
    (
        "definitions.import_backend",
        Among(
            &["local_filesystem", "https", "rabbit_definitions_import_https"],
            definitions::backend,
            "definitions are imported from local_filesystem and https in this version, and a node must not start without what it was told to import",
        ),
    ),
    ("definitions.local.path", Sets(definitions::local)),
    ("definitions.https.url", Sets(definitions::url)),
    ("definitions.tls.cacertfile", Sets(trust::authorities)),
    ("definitions.tls.certfile", Sets(trust::certificate)),
    ("definitions.tls.keyfile", Sets(trust::key)),
    ("definitions.tls.versions.*", Sets(trust::version)),
    ("definitions.tls.verify", Only(&["verify_peer"], VERIFIED)),
    ("definitions.tls.depth", Sets(trust::depth)),
    ("definitions.tls.fail_if_no_peer_cert", NoEffect(ALWAYS_SHOWN)),
    ("definitions.tls.log_level", NoEffect(TLS_LOG)),
    ("definitions.tls.log_alert", NoEffect(TLS_LOG)),
    (
        "definitions.**",
        Only(
            &[],
            "this source of definitions is not part of this version, and a node must not start without what it was told to import",
        ),
    ),
    // Access
    ("loopback_users", Sets(rules::no_loopback_users)),
    ("loopback_users.*", Sets(rules::loopback_user)),
    (
        "auth_mechanisms.*",
        Among(
            &["PLAIN", "AMQPLAIN", "EXTERNAL", "ANONYMOUS"],
            rules::auth_mechanism,
            "PLAIN, AMQPLAIN, EXTERNAL and ANONYMOUS are the mechanisms of this version",
        ),
    ),
    ("anonymous_login_user", Sets(rules::anonymous_user)),
    ("anonymous_login_pass", Sets(rules::anonymous_pass)),
    (
        "password_hashing_module",
        Among(
            &[
                "rabbit_password_hashing_sha256",
                "rabbit_password_hashing_sha512",
                "leveret_password_hashing_argon2id",
            ],
            rules::password_hashing,
            "passwords are hashed with salted SHA-256 or SHA-512 or with Argon2id in this version",
        ),
    ),
    ("credential_validator.validation_backend", Sets(guards::validator)),
    ("credential_validator.min_length", Sets(guards::min_length)),
    ("credential_validator.regexp", Sets(guards::regexp)),
    ("credentials_obfuscation.*", NoEffect(ERLANG)),
    ("ssl_options", Only(&["none"], "`none` is its only value")),
    ("ssl_options.certfile", Sets(tls::certificate)),
    ("ssl_options.keyfile", Sets(tls::key)),
    ("ssl_options.cacertfile", Sets(tls::authorities)),
    ("ssl_options.verify", Sets(tls::verify)),
    (
        "ssl_options.fail_if_no_peer_cert",
        Sets(tls::fail_if_no_peer_cert),
    ),
    ("ssl_options.depth", Sets(tls::depth)),
    ("ssl_options.versions.*", Sets(tls::version)),
    ("ssl_options.ciphers.*", Sets(tls::cipher)),
    ("ssl_options.honor_cipher_order", Sets(tls::honor_cipher_order)),
    ("ssl_options.honor_ecc_order", NoEffect(CURVES)),
    ("ssl_options.reuse_sessions", Sets(tls::reuse_sessions)),
    ("ssl_options.client_renegotiation", NoEffect(RENEGOTIATION)),
    ("ssl_options.secure_renegotiate", NoEffect(RENEGOTIATION)),
    ("ssl_options.dhfile", NoEffect(DIFFIE)),
    ("ssl_options.dh", NoEffect(DIFFIE)),
    ("ssl_options.bypass_pem_cache", NoEffect(PEM_CACHE)),
    ("ssl_options.log_alert", NoEffect(TLS_LOG)),
    ("ssl_options.log_level", NoEffect(TLS_LOG)),
    ("ssl_options.password", Sets(tls::password)),
    ("ssl_options.crl_check", Sets(tls::crl_check)),
    ("ssl_options.crl_sources.*", Sets(tls::crl_source)),
    ("ssl_options.crl_sources.*.path", Sets(tls::crl_path)),
    ("ssl_options.**", Only(&[], TLS)),
    (
        "ssl_allow_poodle_attack",
        Only(&["false"], "SSL 3.0 is not spoken"),
    ),
    ("ssl_handshake_timeout", Sets(tls::handshake_timeout)),
    ("ssl_cert_login_from", Sets(tls::login_from)),
    ("ssl_cert_login_san_type", Sets(tls::san_type)),
    ("ssl_cert_login_san_index", Sets(tls::san_index)),
    ("trust_store.**", Part("the trust store")),
    // Memory and disk
    ("vm_memory_high_watermark.relative", Sets(rules::memory_relative)),
    ("vm_memory_high_watermark.absolute", Sets(rules::memory_absolute)),
    ("total_memory_available_override_value", Sets(rules::total_memory)),
    (
        "vm_memory_high_watermark_paging_ratio",
        NoEffect("queues page by themselves"),
    ),
    (
        "vm_memory_calculation_strategy",
        NoEffect("the resident memory of the process counts (rss)"),
    ),
    (
        "memory_monitor_interval",
        NoEffect("memory is watched all the time"),
    ),
    ("disk_free_limit.relative", Sets(rules::disk_relative)),
    ("disk_free_limit.absolute", Sets(rules::disk_absolute)),
    ("background_gc_enabled", NoEffect(ERLANG)),
    ("background_gc_target_interval", NoEffect(ERLANG)),
    // Queues
    (
        "classic_queue.default_version",
        Only(&["2"], "version 2 is the only one, as in RabbitMQ 4.3"),
    ),
    ("default_queue_type", Sets(rules::default_queue_type)),
    (
        "quorum_queue.property_equivalence.relaxed_checks_on_redeclaration",
        Sets(rules::relaxed_checks),
    ),
    (
        "queue_types.*.enabled",
        NoEffect("queue types cannot be switched off"),
    ),
    (
        "exchange_types.local_random.enabled",
        Only(
            &["true"],
            "exchanges of the type x-local-random cannot be switched off",
        ),
    ),
    ("consumer_timeout", Sets(rules::consumer_timeout)),
    (
        "consumer_disconnected_timeout",
        NoEffect("a policy consumer-disconnected-timeout for all queues says the same"),
    ),
    ("queue_index_embed_msgs_below", NoEffect(STORE)),
    ("message_store_shutdown_timeout", NoEffect(STORE)),
    (
        "queue_master_locator",
        NoEffect("queue_leader_locator is what counts, as in RabbitMQ 4"),
    ),
    ("queue_leader_locator", Sets(quorum::leader_locator)),
    (
        "mirroring_sync_batch_size",
        NoEffect("mirrored queues do not exist, as in RabbitMQ 4"),
    ),
    (
        "mirroring_sync_max_throughput",
        NoEffect("mirrored queues do not exist, as in RabbitMQ 4"),
    ),
    (
        "quorum_queue.continuous_membership_reconciliation.enabled",
        Sets(quorum::reconciles),
    ),
    (
        "quorum_queue.continuous_membership_reconciliation.target_group_size",
        Sets(quorum::target_size),
    ),
    (
        "quorum_queue.continuous_membership_reconciliation.interval",
        Sets(quorum::interval),
    ),
    (
        "quorum_queue.continuous_membership_reconciliation.trigger_interval",
        Sets(quorum::trigger_interval),
    ),
    (
        "quorum_queue.continuous_membership_reconciliation.auto_remove",
        NoEffect("members of a node always go when it is forgotten"),
    ),
    (
        "quorum_queue.rebalance_after_return",
        Sets(quorum::rebalance_after_return),
    ),
    (
        "quorum_queue.initial_cluster_size",
        NoEffect("three nodes have a queue, or as many as x-quorum-initial-group-size says"),
    ),
    ("quorum_queue.**", NoEffect(GROUPS)),
    ("raft.**", NoEffect(GROUPS)),
    (
        "deprecated_features.permit.*",
        NoEffect("everything that RabbitMQ 4.2 permits is permitted"),
    ),
    ("vhost_max", Sets(guards::vhost_max)),
    ("vhost_restart_strategy", NoEffect(ERLANG)),
    ("cluster_queue_limit", Sets(guards::cluster_queue_limit)),
    ("cluster_exchange_limit", Sets(guards::cluster_exchange_limit)),
    ("runtime_parameters.limits.*", Only(&["infinity"], UNLIMITED)),
    // Logs
    ("log.console", Sets(rules::log_console)),
    ("log.console.stdio", Sets(rules::log_console_stdio)),
    ("log.console.level", Sets(rules::log_console_level)),
    ("log.console.formatter", Sets(rules::log_console_formatter)),
    ("log.console.**", NoEffect("the form of a log line is fixed")),
    ("log.file", Sets(rules::log_file)),
    ("log.file.level", Sets(rules::log_file_level)),
    ("log.file.formatter", Sets(rules::log_file_formatter)),
    (
        "log.file.formatter.**",
        NoEffect("the form of a log line is fixed"),
    ),
    ("log.file.rotation.date", Sets(rules::rotation_date)),
    ("log.file.rotation.size", Sets(rules::rotation_size)),
    ("log.file.rotation.count", Sets(rules::rotation_count)),
    (
        "log.file.rotation.compress",
        NoEffect("old log files are kept as they are"),
    ),
    ("log.dir", Sets(rules::log_dir)),
    ("log.default.level", Sets(rules::log_category_level)),
    ("log.connection.level", Sets(rules::log_category_level)),
    ("log.channel.level", Sets(rules::log_category_level)),
    ("log.queue.level", Sets(rules::log_category_level)),
    ("log.user.level", Sets(rules::log_category_level)),
    ("log.exchange", Sets(rules::log_exchange)),
    ("log.exchange.level", Sets(rules::log_exchange_level)),
    ("log.exchange.formatter", Sets(rules::log_exchange_formatter)),
    ("log.exchange.**", NoEffect("the form of a log line is fixed")),
    ("log.syslog", Sets(syslog::enabled)),
    ("log.syslog.level", Sets(syslog::set_level)),
    ("log.syslog.formatter", Sets(syslog::set_formatter)),
    (
        "log.syslog.formatter.**",
        NoEffect("the form of a log line is fixed"),
    ),
    ("log.syslog.identity", Sets(syslog::identity)),
    ("log.syslog.facility", Sets(syslog::facility)),
    ("log.syslog.host", Sets(syslog::host)),
    ("log.syslog.ip", Sets(syslog::host)),
    ("log.syslog.port", Sets(syslog::port)),
    ("log.syslog.transport", Sets(syslog::transport)),
    ("log.syslog.protocol", Sets(syslog::protocol)),
    (
        "log.syslog.multiline_mode",
        NoEffect("a message of the log is one line"),
    ),
    ("log.syslog.ssl_options.cacertfile", Sets(trust::authorities)),
    ("log.syslog.ssl_options.certfile", Sets(trust::certificate)),
    ("log.syslog.ssl_options.keyfile", Sets(trust::key)),
    ("log.syslog.ssl_options.depth", Sets(trust::depth)),
    ("log.syslog.ssl_options.versions.*", Sets(trust::version)),
    ("log.syslog.ssl_options.verify", Only(&["verify_peer"], VERIFIED)),
    (
        "log.syslog.ssl_options.fail_if_no_peer_cert",
        NoEffect(ALWAYS_SHOWN),
    ),
    ("log.syslog.ssl_options.**", Only(&[], TLS)),
    ("log.journald", Sets(rules::log_journald)),
    ("log.journald.level", Sets(rules::log_console_level)),
    (
        "log.journald.**",
        NoEffect(
            "the journal of systemd takes the lines of the standard output, and its fields from systemd",
        ),
    ),
    ("log.default.**", NoEffect(ONE_FILE)),
    ("log.connection.**", NoEffect(ONE_FILE)),
    ("log.channel.**", NoEffect(ONE_FILE)),
    ("log.queue.**", NoEffect(ONE_FILE)),
    ("log.user.**", NoEffect(ONE_FILE)),
    ("log.mirroring.**", NoEffect("nothing logs in this category")),
    ("log.federation.**", NoEffect("nothing logs in this category")),
    ("log.upgrade.**", NoEffect("nothing logs in this category")),
    ("log.ra.**", NoEffect("nothing logs in this category")),
    ("log.error_logger_format_depth", NoEffect(ERLANG)),
    ("log.summarize_process_state", NoEffect(ERLANG)),
    // Clusters
    ("cluster_name", Sets(rules::cluster_name)),
    ("cluster_tags.*", Sets(rules_cluster::tag)),
    ("node_tags.*", Sets(rules_cluster::node_tag)),
    ("cluster.listeners.tcp.*", Sets(rules_cluster::listener)),
    ("cluster.secret", Sets(rules_cluster::secret)),
    ("cluster.takes_queues", Sets(rules_cluster::takes_queues)),
    ("cluster.tls.certfile", Sets(tls::certificate)),
    ("cluster.tls.keyfile", Sets(tls::key)),
    ("cluster.tls.cacertfile", Sets(tls::authorities)),
    ("cluster.tls.verify", Sets(tls::verify)),
    (
        "cluster.tls.fail_if_no_peer_cert",
        Sets(tls::fail_if_no_peer_cert),
    ),
    ("cluster.tls.depth", Sets(tls::depth)),
    ("cluster.tls.versions.*", Sets(tls::version)),
    ("cluster.tls.password", Sets(tls::password)),
    ("cluster_partition_handling", NoEffect(MAJORITY)),
    ("cluster_partition_handling.**", NoEffect(MAJORITY)),
    ("cluster_keepalive_interval", NoEffect(SILENCE)),
    (
        "cluster_formation.peer_discovery_backend",
        Sets(rules_discovery::backend),
    ),
    ("cluster_formation.discovery_retry_limit", NoEffect(ASKS_ON)),
    ("cluster_formation.discovery_retry_interval", NoEffect(ASKS_ON)),
    ("cluster_formation.internal_lock_retries", NoEffect(ASKS_ON)),
    ("cluster_formation.lock_retry_limit", NoEffect(ASKS_ON)),
    ("cluster_formation.lock_retry_timeout", NoEffect(ASKS_ON)),
    (
        "cluster_formation.classic_config.nodes.*",
        Sets(rules_discovery::node),
    ),
    (
        "cluster_formation.target_cluster_size_hint",
        Sets(rules_discovery::size_hint),
    ),
    ("cluster_formation.dns.hostname", Sets(rules_discovery::seed_host)),
    (
        "cluster_formation.k8s.ordinal_start",
        Sets(rules_discovery::first_ordinal),
    ),
    (
        "cluster_formation.k8s.seed_node",
        Sets(rules_discovery::seed_node),
    ),
    (
        "cluster_formation.k8s.hostname_suffix",
        Sets(rules_discovery::suffix),
    ),
    (
        "cluster_formation.k8s.service_name",
        Sets(rules_discovery::service),
    ),
    ("cluster_formation.k8s.**", NoEffect(ORDINALS)),
    ("cluster_formation.node_cleanup.**", NoEffect(STAYS)),
    (
        "cluster_formation.randomized_startup_delay_range.*",
        NoEffect(ASKS_ON),
    ),
    ("cluster_formation.**", Part(OTHER_BACKENDS)),
    (
        "distribution.listener.**",
        NoEffect("cluster.listeners.tcp says where other nodes connect"),
    ),
    ("net_ticktime", NoEffect(SILENCE)),
    ("metadata_store.**", NoEffect("definitions are kept otherwise")),
    ("mnesia_table_loading_retry_limit", NoEffect(ASKS_ON)),
    ("mnesia_table_loading_retry_timeout", NoEffect(ASKS_ON)),
    (
        "prevent_startup_if_node_was_reset",
        NoEffect("a node that was reset is never taken for the one that it was"),
    ),
    ("aws.prefer_imdsv2", Part(OTHER_BACKENDS)),
    // Other protocols, plugins
    ("stream.listeners.tcp", Sets(stream::no_listeners)),
    ("stream.listeners.tcp.*", Sets(stream::listener)),
    ("stream.listeners.ssl", Sets(stream::no_tls_listeners)),
    ("stream.listeners.ssl.*", Sets(stream::tls_listener)),
    ("stream.proxy_protocol", Sets(stream::proxy_protocol)),
    ("stream.frame_max", Sets(stream::frame_max)),
    ("stream.heartbeat", Sets(stream::heartbeat)),
    ("stream.initial_credits", Sets(stream::initial_credits)),
    (
        "stream.credits_required_for_unblocking",
        Sets(stream::credits_required),
    ),
    ("stream.advertised_host", Sets(stream::advertised_host)),
    ("stream.advertised_port", Sets(stream::advertised_port)),
    ("stream.advertised_tls_host", Sets(stream::advertised_tls_host)),
    ("stream.advertised_tls_port", Sets(stream::advertised_tls_port)),
    (
        "stream.tcp_listen_options.**",
        NoEffect("tcp_listen_options counts for all listeners of clients"),
    ),
    (
        "stream.num_acceptors.*",
        NoEffect("the number of acceptors follows from the cores"),
    ),
    ("stream.read_ahead", NoEffect(STORE)),
    ("stream.read_ahead_limit", NoEffect(STORE)),
    (
        "stream.replication.**",
        NoEffect("a stream is on one node in this version, and nodes have one port for each other"),
    ),
    ("stream.**", Part("what this key asks of streams")),
    ("mqtt.**", Part("MQTT")),
    ("web_mqtt.**", Part("MQTT")),
    ("stomp.**", Part("STOMP")),
    ("web_stomp.**", Part("STOMP")),
    ("shovel.**", Part("shovels")),
    ("federation.**", Part("federation")),
    ("tracing.**", Part("message tracing")),
    ("event_exchange.vhost", Sets(rules::event_vhost)),
    ("event_exchange.**", Part("events in other protocols")),
    ("amqp_client.**", Part("connections to other brokers")),
    ("amqp10_client.**", Part("connections to other brokers")),
    // Erlang and the looks of RabbitMQ
    ("delegate_count", NoEffect(ERLANG)),
    ("default_worker_pool_size", NoEffect(ERLANG)),
    ("erlang.K", NoEffect(ERLANG)),
    ("hipe_compile", NoEffect(ERLANG)),
    ("sysmon_handler.**", NoEffect(ERLANG)),
    ("motd_file", NoEffect("the banner is Leveret's")),
    ("product.*", NoEffect("the product is Leveret")),
];
