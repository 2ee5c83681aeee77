mod access;

use super::super::{Listener, sources};
use super::*;
use std::path::Path;

fn loaded(text: &str) -> Result<Loaded, Vec<String>> {
    let settings = sources::text_of_file(text, Path::new("l.conf")).unwrap();
    load(settings).map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn config(text: &str) -> Config {
    let loaded = loaded(text).unwrap();
    assert_eq!(loaded.warnings, Vec::<String>::new(), "{text}");
    loaded.config
}

fn warnings(text: &str) -> Vec<String> {
    loaded(text).unwrap().warnings
}

fn error(text: &str) -> String {
    let mut errors = loaded(text).unwrap_err();
    assert_eq!(errors.len(), 1, "{text}: {errors:?}");
    errors.remove(0)
}

#[test]
fn nothing_said_means_the_defaults() {
    assert_eq!(config(""), Config::default());
}

#[test]
fn a_whole_file_takes_effect() {
    let config = config(
        "listeners.tcp.1 = 127.0.0.1:5673\nlisteners.tcp.2 = ::1:5673\nheartbeat = 30\nframe_max = 64KB\n\
         channel_max = 100\nmax_message_size = 1000\nmax_unfinished_size = 2GiB\nhandshake_timeout = 2000\ninitial_frame_max = 4096\n\
         default_user = jane\ndefault_pass = 'a # b'\ndefault_vhost = shop\ndefault_user_tags.monitoring = true\n\
         default_permissions.configure = ^a\ndefault_permissions.read = ^b\ndefault_permissions.write = ^c\n\
         vm_memory_high_watermark.absolute = 2GiB\ndisk_free_limit.relative = 1.5\ndata_dir = /srv/leveret\n\
         tcp_listen_options.backlog = 4096\ntcp_listen_options.nodelay = false\n\
         tcp_listen_options.sndbuf = 192KB\ntcp_listen_options.recbuf = 196608\n\
         total_memory_available_override_value = 4GB\n",
    );
    let addresses: Vec<_> = config.listeners.values().copied().collect();
    assert_eq!(
        addresses,
        [
            Listener::Address("127.0.0.1:5673".parse().unwrap()),
            Listener::Address("[::1]:5673".parse().unwrap())
        ]
    );
    assert_eq!(
        (
            config.heartbeat_s,
            config.limits.frame_max,
            config.limits.channel_max
        ),
        (30, 65_536, 100)
    );
    assert_eq!(
        (config.limits.message_bytes, config.limits.handshake_ms),
        (1_000, 2_000)
    );
    assert_eq!(config.limits.initial_frame_max, 4_096);
    assert_eq!(config.limits.unfinished_bytes, 2 << 30);
    let defaults = &config.defaults;
    assert_eq!(
        (defaults.user.as_str(), defaults.password.as_str()),
        ("jane", "a # b")
    );
    assert_eq!(
        (defaults.vhost.as_str(), defaults.tags.as_slice()),
        ("shop", &["monitoring".to_owned()][..])
    );
    assert_eq!(
        (
            defaults.configure.as_str(),
            defaults.read.as_str(),
            defaults.write.as_str()
        ),
        ("^a", "^b", "^c")
    );
    assert_eq!(config.memory_watermark, Watermark::Absolute(2 << 30));
    assert_eq!(config.disk_free_limit, Watermark::Relative(1.5));
    assert_eq!(config.data_dir, Path::new("/srv/leveret"));
    assert_eq!((config.tcp.backlog, config.tcp.nodelay), (4_096, false));
    let buffers = (config.tcp.send_buffer, config.tcp.receive_buffer);
    assert_eq!(buffers, (Some(196_608), Some(196_608)));
    assert_eq!(config.total_memory, Some(4_000_000_000));
}

#[test]
fn the_http_api_listens_where_it_is_told() {
    let said = config("management.tcp.port = 8080\nmanagement.tcp.ip = 127.0.0.1")
        .management
        .listener;
    let any = "::".parse().unwrap();
    let at = |text: &str, secured| (text.parse().unwrap(), secured);
    assert_eq!(said.addresses(any), [at("127.0.0.1:8080", false)]);
    let silent = Config::default().management.listener;
    assert_eq!(silent.addresses(any), [at("[::]:15672", false)]);
    assert_eq!(
        config("management.listener = none")
            .management
            .listener
            .addresses(any),
        []
    );
    let alone =
        config("management.ssl.port = 15671\nmanagement.ssl.ip = ::1\nmanagement.ssl.certfile = c.pem")
            .management
            .listener;
    assert_eq!(alone.addresses(any), [at("[::1]:15671", true)]);
    assert_eq!(alone.tls.certificate.as_deref(), Some(Path::new("c.pem")));
    let both = config("management.ssl.port = 15671\nmanagement.tcp.port = 15672")
        .management
        .listener;
    assert_eq!(
        both.addresses(any),
        [at("[::]:15672", false), at("[::]:15671", true)]
    );
    let older = config("management.listener.port = 8443\nmanagement.listener.ssl = true")
        .management
        .listener;
    assert_eq!(older.addresses(any), [at("[::]:8443", true)]);
}

#[test]
fn the_later_setting_counts() {
    assert_eq!(config("heartbeat = 10\nheartbeat = 20").heartbeat_s, 20);
    assert_eq!(
        error("heartbeat = 10\nheartbeat = x"),
        "l.conf:2: heartbeat can't be \"x\"; allowed: seconds, from 0 (none) to 65535"
    );
}

#[test]
fn listeners_replace_the_default_one() {
    assert_eq!(
        config("listeners.tcp.default = 1").listeners["default"],
        Listener::AnyAddress(1)
    );
    assert_eq!(config("listeners.tcp.1 = 2").listeners.len(), 1);
    let none = loaded("listeners.tcp = none\nlisteners.tcp.1 = 2").unwrap();
    assert!(none.config.listeners.is_empty());
    assert_eq!(
        none.warnings,
        ["no listener is configured: no client can connect"]
    );
    for bad in ["unix:/run/x", "70000", "localhost:5672", "127.0.0.1", "-1"] {
        assert!(
            error(&format!("listeners.tcp.local = {bad}")).contains("allowed: a port"),
            "{bad}"
        );
    }
}

#[test]
fn loopback_users_are_guest_unless_said_otherwise() {
    assert_eq!(config("loopback_users.guest = true").loopback_users, ["guest"]);
    assert_eq!(
        config("loopback_users.guest = false").loopback_users,
        Vec::<String>::new()
    );
    assert_eq!(
        config("loopback_users = none\nloopback_users.jane = true").loopback_users,
        Vec::<String>::new()
    );
    // RabbitMQ would drop guest here; that another user is restricted is no reason to let guest in from elsewhere.
    assert_eq!(
        config("loopback_users.jane = true").loopback_users,
        ["guest", "jane"]
    );
}

#[test]
fn an_absolute_amount_wins_over_a_relative_one() {
    let both =
        loaded("vm_memory_high_watermark.absolute = 1GB\nvm_memory_high_watermark.relative = 0.4").unwrap();
    assert_eq!(both.config.memory_watermark, Watermark::Absolute(1_000_000_000));
    assert_eq!(both.warnings.len(), 1);
    assert_eq!(
        config("vm_memory_high_watermark.relative = 0.4").memory_watermark,
        Watermark::Relative(0.4)
    );
    assert!(warnings("vm_memory_high_watermark.relative = 0")[0].contains("every publisher"));
}

#[test]
fn a_few_of_the_largest_messages_may_come_at_once_whatever_is_set() {
    assert_eq!(warnings("max_unfinished_size = 128MiB"), [] as [&str; 0]);
    assert_eq!(warnings("max_message_size = 536870912"), [] as [&str; 0]);
    assert_eq!(
        warnings("max_unfinished_size = 100MiB"),
        ["max_unfinished_size is less than 8 times max_message_size, which is what counts: 134217728 bytes"]
    );
}

#[test]
fn a_cluster_has_no_more_objects_and_a_channel_no_more_consumers_than_is_said() {
    let found = config(
        "vhost_max = 3\ncluster_queue_limit = 10000\ncluster_exchange_limit = 0\nconsumer_max_per_channel = 20",
    );
    let limits = found.node_limits;
    assert_eq!(
        [limits.vhosts, limits.queues, limits.exchanges, limits.consumers],
        [Some(3), Some(10_000), Some(0), Some(20)]
    );
    assert_eq!(config("vhost_max = infinity").node_limits.vhosts, None);
    assert!(loaded("consumer_max_per_channel = few").is_err());
}

#[test]
fn a_cluster_and_a_node_have_tags() {
    let cluster = config("cluster_tags.region = eu-west-1\nnode_tags.rack = r7\nnode_tags.zone = a").cluster;
    assert_eq!(cluster.tags["region"], "eu-west-1");
    assert_eq!(
        cluster.node_tags.into_iter().collect::<Vec<_>>(),
        [("rack".into(), "r7".into()), ("zone".into(), "a".into())]
    );
}

#[test]
fn the_journal_gets_the_standard_output_and_no_collector_means_no_statistics() {
    let found = config("log.console = false\nlog.journald = true\nlog.journald.level = debug");
    assert!(found.log.console);
    assert_eq!(found.log.console_level, crate::logs::Level::Debug);
    assert!(!config("log.console = false\nlog.journald = false").log.console);
    assert!(
        config("management_agent.disable_metrics_collector = true")
            .management
            .disable_stats
    );
    assert!(
        warnings("management.sample_retention_policies.global.minute = 5")[0]
            .contains("samples are kept for ten minutes")
    );
}

#[test]
fn deliveries_have_an_end_only_where_somebody_says_so() {
    assert_eq!(config("").consumer_timeout_ms, 0);
    assert_eq!(
        config("consumer_timeout = 1800000").consumer_timeout_ms,
        1_800_000
    );
    assert!(loaded("consumer_timeout = soon").is_err());
}

#[test]
fn no_limit_on_channels_is_what_the_protocol_can_number() {
    assert_eq!(config("channel_max = 0").limits.channel_max, 65_535);
    assert_eq!(config("max_channels_per_connection = 5").limits.channel_max, 5);
}

#[test]
fn keys_of_parts_that_are_not_built_warn() {
    assert_eq!(
        warnings("mqtt.vhost = /"),
        ["key mqtt.vhost has no effect: this version doesn't have MQTT"]
    );
    for key in [
        "vm_memory_high_watermark_paging_ratio = 0.5",
        "queue_index_embed_msgs_below = 4096",
        "cluster_formation.peer_discovery_backend = k8s",
        "mqtt.tcp_listen_options.backlog = 4096",
        "stream.read_ahead = true",
        "num_acceptors.tcp = 10",
        "tcp_listen_options.buffer = 32768",
        "log.file.rotation.compress = true",
    ] {
        assert_eq!(warnings(key).len(), 1, "{key}");
    }
}

#[test]
fn a_collector_gets_the_log_as_it_was_told() {
    use crate::logs::{Protocol, Transport};
    let said = config(
        "log.syslog = true\nlog.syslog.ip = 10.0.0.9\nlog.syslog.port = 6514\nlog.syslog.transport = tls\nlog.syslog.facility = local3\n\
         log.syslog.identity = mq\nlog.syslog.level = error\nlog.syslog.formatter = json\nlog.syslog.ssl_options.cacertfile = ca.pem\n\
         log.syslog.ssl_options.depth = 2\nlog.syslog.ssl_options.versions.1 = tlsv1.3",
    );
    let syslog = &said.log.syslog;
    assert_eq!(
        (syslog.host.as_str(), syslog.port, syslog.facility.name()),
        ("10.0.0.9", 6514, "local3")
    );
    assert_eq!(
        (syslog.transport, syslog.protocol()),
        (Transport::Tls, Protocol::Rfc5424)
    );
    assert_eq!((syslog.trust.depth, syslog.trust.versions.tls13), (Some(2), true));
    assert_eq!(
        config("log.syslog = true").log.syslog.protocol(),
        Protocol::Rfc3164
    );
}

#[test]
fn servers_that_are_asked_are_known_by_their_own_options() {
    let said = config(
        "auth_ldap.ssl_options.sni = ldap.example\nauth_ldap.ssl_options.depth = 3\nauth_http.ssl_options.certfile = c.pem\n\
         auth_http.ssl_options.keyfile = k.pem\nauth_http.ssl_options.versions.1 = tlsv1.2\ndefinitions.import_backend = https\n\
         definitions.https.url = https://defs.example/x.json\ndefinitions.tls.cacertfile = ca.pem",
    );
    let rows = crate::config::in_force(&said, &[]);
    let shown = |key: &str| rows.iter().find(|row| row.key == key).unwrap().value.clone();
    for (key, value) in [
        ("auth_ldap.ssl_options.sni", "ldap.example"),
        ("auth_ldap.ssl_options.depth", "3"),
        ("auth_http.ssl_options.certfile", "c.pem"),
        ("auth_http.ssl_options.versions", "tlsv1.2"),
        ("definitions.import_backend", "https"),
        ("definitions.tls.cacertfile", "ca.pem"),
    ] {
        assert_eq!(shown(key), value, "{key}");
    }
    assert_eq!(
        warnings("auth_ldap.ssl_options.fail_if_no_peer_cert = true").len(),
        1
    );
}

#[test]
fn what_browsers_are_told_is_taken() {
    let said = config("management.hsts.policy = max-age=31536000\nmanagement.headers.frame_options = DENY");
    assert_eq!(
        said.management.headers["strict-transport-security"],
        "max-age=31536000"
    );
    assert_eq!(said.management.headers["x-frame-options"], "DENY");
    assert!(error("management.csp.policy = ''").contains("printable"));
}

#[test]
fn limits_of_the_node_and_rules_for_passwords_are_taken() {
    let said = config(
        "max_connections = 5000\nchannel_max_per_node = 20000\ncredential_validator.min_length = 12\n\
         credential_validator.validation_backend = rabbit_credential_validator_min_password_length",
    );
    assert_eq!(
        (said.node_limits.connections, said.node_limits.channels),
        (Some(5_000), Some(20_000))
    );
    assert_eq!(
        said.credentials.validator(),
        Ok(broker::CredentialValidator::MinimumLength(12))
    );
    assert_eq!(config("connection_max = infinity").node_limits.connections, None);
    assert_eq!(warnings("credential_validator.min_length = 12").len(), 1);
    let backend = "credential_validator.validation_backend = rabbit_credential_validator_password_regexp";
    assert!(error(backend).contains("needs credential_validator.regexp"));
    assert!(error("credential_validator.regexp = (").contains("a regular expression"));
}

#[test]
fn what_new_virtual_hosts_get_is_put_together_by_its_id() {
    let said = config(
        "default_limits.vhosts.1.pattern = ^qa\ndefault_limits.vhosts.1.max_queues = 50\n\
         default_policies.operator.cap.vhost_pattern = ^qa\ndefault_policies.operator.cap.expires = 1h\n\
         default_policies.operator.cap.max_length_bytes = 1GB\ndefault_users.tester.password = s3cret\n\
         default_users.tester.tags = monitoring, policymaker\ndefault_users.tester.configure = ^t",
    );
    assert!(!format!("{said:?}").contains("s3cret"));
    let all = said.vhost_defaults.all();
    assert_eq!(all.limits[0].limits, [("max-queues".to_owned(), 50)]);
    let policy = &all.policies[0];
    assert_eq!(
        (policy.name.as_str(), policy.queue_pattern.as_str()),
        ("cap", ".*")
    );
    let expected = [
        ("expires".to_owned(), 3_600_000),
        ("max-length-bytes".to_owned(), 1 << 30),
    ];
    assert_eq!(policy.definition, expected);
    assert_eq!(
        (all.users[0].name.as_str(), all.users[0].tags.len()),
        ("tester", 2)
    );
    assert_eq!(
        warnings("default_policies.operator.a.classic_queues.ha_mode = all").len(),
        1
    );
}

#[test]
fn keys_without_effect_are_one_line_a_reason() {
    let text = "mqtt.vhost = /\nheartbeat = 5\nnet_ticktime = 60\nweb_mqtt.tcp.port = 1\ncluster_partition_handling = autoheal\n";
    assert_eq!(
        warnings(text),
        [
            "keys mqtt.vhost, web_mqtt.tcp.port have no effect: this version doesn't have MQTT",
            "key net_ticktime has no effect: nodes notice each other's silence within two seconds",
            "key cluster_partition_handling has no effect: the side of a partition that has the majority goes on, and the other one joins it \
             again by itself",
        ]
    );
}

#[test]
fn a_node_is_one_of_several_if_others_are_named_or_it_listens_for_them() {
    let is_wanted = |text: &str| {
        let said = loaded(text).unwrap().config;
        said.cluster.is_wanted(&said.node_name)
    };
    assert!(!is_wanted(
        "cluster.secret = s\ncluster_formation.classic_config.nodes.1 = rabbit@localhost"
    ));
    assert!(is_wanted("cluster_formation.classic_config.nodes.2 = rabbit@mq2"));
    assert!(is_wanted("cluster.listeners.tcp.default = 25672"));
    assert!(!is_wanted("cluster_formation.target_cluster_size_hint = 3"));
    let said = config("cluster_formation.classic_config.nodes.2 = rabbit@mq2:25702");
    let node = &said.cluster.formation.nodes["2"];
    assert_eq!((node.name.as_str(), node.port), ("rabbit@mq2", Some(25_702)));
    for wrong in ["mq1", "rabbit@", "rabbit@mq1:0", "rabbit@mq1:x", "rabbit@mq 1"] {
        let text = format!("cluster_formation.classic_config.nodes.1 = {wrong}");
        assert!(error(&text).contains("rabbit@mq1"), "{wrong}");
    }
    assert!(error("cluster.secret = ''").contains("secret"));
}

#[test]
fn a_node_alone_takes_queues_whatever_it_is_told() {
    let alone = contradiction("cluster.takes_queues = false");
    assert_eq!(alone.unwrap().0, "cluster.takes_queues");
    let of_several = "cluster.takes_queues = false\ncluster.listeners.tcp.default = 25672";
    assert_eq!(contradiction(of_several), None);
    assert!(loaded("cluster.takes_queues = some").is_err());
}

fn contradiction(text: &str) -> Option<(&'static str, String)> {
    let said = loaded(text).unwrap().config;
    said.cluster.contradiction(&said.node_name)
}

#[test]
fn a_node_that_should_find_others_in_a_way_that_is_not_built_does_not_pass_for_the_whole() {
    for backend in ["aws", "rabbit_peer_discovery_consul", "etcd"] {
        let backend = format!("cluster_formation.peer_discovery_backend = {backend}");
        let (key, text) = contradiction(&backend).unwrap();
        assert_eq!(key, "cluster_formation.peer_discovery_backend");
        assert!(
            text.contains("can't ask there") && text.contains("or dns or k8s"),
            "{text}"
        );
        let single = format!("{backend}\ncluster_formation.target_cluster_size_hint = 1");
        assert_eq!(contradiction(&single), None);
        assert_eq!(warnings(&single).len(), 1);
        let named = format!("{backend}\ncluster_formation.classic_config.nodes.1 = rabbit@mq2");
        assert_eq!(contradiction(&named), None);
    }
    assert!(
        error("cluster_formation.peer_discovery_backend = carrier_pigeon")
            .contains("classic_config, dns or k8s")
    );
    let classic = "cluster_formation.peer_discovery_backend = classic_config";
    assert_eq!((warnings(classic).len(), contradiction(classic)), (0, None));
    assert_eq!(
        warnings("cluster_formation.target_cluster_size_hint = 3").len(),
        1
    );
    let said = config("cluster_formation.target_cluster_size_hint = 1");
    assert_eq!(said.cluster.formation.target_size(), 1);
    assert_eq!(warnings("cluster.secret = s").len(), 1, "it has no effect");
}

#[test]
fn a_node_that_looks_others_up_is_told_how_many_there_are() {
    const DNS: &str =
        "cluster_formation.peer_discovery_backend = dns\ncluster_formation.dns.hostname = mq.example.\n";
    const THREE: &str = "cluster_formation.target_cluster_size_hint = 3\n";
    assert!(
        contradiction(DNS)
            .unwrap()
            .1
            .contains("needs cluster_formation.target_cluster_size_hint")
    );
    let three = [DNS, THREE].concat();
    assert_eq!(contradiction(&three), None);
    let said = config(&three);
    assert!(said.cluster.is_wanted(&said.node_name));
    assert_eq!(said.cluster.formation.seed_host.as_deref(), Some("mq.example"));
    assert!(error("cluster_formation.dns.hostname = a b").contains("mq.example.com"));
    let both = format!("{three}cluster_formation.classic_config.nodes.1 = rabbit@mq1");
    assert!(warnings(&both)[0].starts_with("cluster_formation.classic_config.nodes has no effect"));
}

#[test]
fn a_pod_is_called_as_the_others_look_it_up() {
    const K8S: &str = "cluster_formation.peer_discovery_backend = rabbit_peer_discovery_k8s\n";
    let called = |text: &str, pod| {
        let mut said = loaded(&format!("{K8S}{text}")).unwrap().config;
        said.node_name.host = "mq-1.x".to_owned();
        said.name_by_pod(pod);
        said.node_name.to_string()
    };
    let service = "cluster_formation.k8s.service_name = nodes\n";
    let suffix = "cluster_formation.k8s.hostname_suffix = .nodes.ns.svc.cluster.local\n";
    assert_eq!(called("", None), "rabbit@mq-1");
    assert_eq!(called(service, None), "rabbit@mq-1.nodes");
    assert_eq!(
        called(&[service, suffix].concat(), Some("mq-2")),
        "rabbit@mq-2.nodes.ns.svc.cluster.local"
    );
    assert_eq!(
        called(&format!("{service}nodename = hare@mq-3.own"), None),
        "hare@mq-3.own"
    );
    assert_eq!(
        warnings(&format!(
            "{K8S}cluster_formation.target_cluster_size_hint = 3\ncluster_formation.k8s.host = x"
        ))
        .len(),
        1
    );
}

#[test]
fn what_would_leave_the_node_less_guarded_is_refused() {
    for text in [
        "ssl_options.crl_sources.1.timeout = 5",
        "ssl_options.psk_identity = x",
        "management.ssl.crl_sources.1.timeout = 5",
        "prometheus.ssl.crl_sources.1.timeout = 5",
        "auth_backends.1 = amqp",
        "auth_backends.1.authn = dummy",
        "auth_http.ssl_options.verify = verify_none",
        "auth_ldap.ssl_options.verify = verify_none",
        "auth_cache.cached_backend = internal",
        "password_hashing_module = rabbit_password_hashing_md5",
        "runtime_parameters.limits.shovel = 10",
        "default_policies.operator.a.max_in_memory_length = 10",
        "prometheus.authentication.enabled = true",
        "http_dispatch.auth_backends.1 = http",
        "management.restrictions.operator_policy_changes.disabled = true",
        "definitions.import_backend = s3",
        "definitions.tls.verify = verify_none",
        "log.syslog.ssl_options.verify = verify_none",
        "definitions.hashing.algorithm = sha",
    ] {
        assert!(error(text).contains(" is refused: "), "{text}");
    }
    let why = error("default_queue_type = mqtt");
    assert!(why.contains("classic, quorum or stream"), "{why}");
    for text in [
        "listeners.ssl = none",
        "auth_backends.1 = internal",
        "auth_backends.2.authz = internal",
        "auth_mechanisms.1 = PLAIN",
        "default_queue_type = classic",
        "default_queue_type = rabbit_quorum_queue",
        "connection_max = infinity",
        "credential_validator.validation_backend = rabbit_credential_validator_accept_everything",
        "prometheus.authentication.enabled = false",
        "prometheus.path = /zork/",
    ] {
        config(text);
    }
}

#[test]
fn interceptors_are_set_one_by_one() {
    let chosen = config("message_interceptors.incoming.set_header_timestamp.overwrite = true");
    assert_eq!(
        (chosen.interceptors.timestamp, chosen.interceptors.routing_node),
        (Some(true), None)
    );
}

#[test]
fn bad_values_name_key_value_and_what_is_allowed() {
    for (text, allowed) in [
        ("heartbeat = -1", "seconds"),
        ("heartbeat = 65536", "seconds"),
        ("frame_max = 0", "8192"),
        ("frame_max = 8191", "8192"),
        ("initial_frame_max = 1MB", "131072"),
        ("channel_max = 65536", "65535"),
        ("max_message_size = 536870913", "536870912"),
        ("max_unfinished_size = much", "500MB"),
        ("handshake_timeout = infinity", "milliseconds"),
        ("vm_memory_high_watermark.relative = 1.5", "0.0 to 1.0"),
        ("vm_memory_high_watermark.absolute = 5 GB", "500MB"),
        ("disk_free_limit.absolute = much", "500MB"),
        ("tcp_listen_options.nodelay = yes", "true, false"),
        ("log.console.level = loud", "debug"),
        ("log.console.formatter = xml", "json"),
        ("loopback_users.guest = maybe", "true, false"),
        ("loopback_users = guest", "none"),
        ("default_vhost = ''", "1 to 255"),
    ] {
        let error = error(text);
        assert!(
            error.starts_with("l.conf:1: ") && error.contains(allowed),
            "{error}"
        );
    }
    assert!(error("classic_queue.default_version = 1").contains("is refused"));
}

#[test]
fn secrets_are_not_repeated() {
    let error = error("default_pass = encrypted:s3cret");
    assert!(
        error.contains("default_pass is encrypted") && !error.contains("s3cret"),
        "{error}"
    );
}

#[test]
fn a_file_of_mistakes_is_cut_short() {
    let text: String = (0..100).map(|i| format!("nonsense_{i} = 1\n")).collect();
    assert_eq!(loaded(&text).unwrap_err().len(), ERRORS_MOST);
}

#[test]
fn every_mistake_is_reported() {
    let errors = loaded("hearbeat = 1\nframe_max = x\n\nssl_options.psk_identity = x").unwrap_err();
    assert_eq!(errors.len(), 3);
    assert_eq!(
        errors[0],
        "l.conf:1: unknown key hearbeat; did you mean heartbeat?"
    );
    assert!(
        errors[2].starts_with("l.conf:4: ssl_options.psk_identity is refused: "),
        "{}",
        errors[2]
    );
}
