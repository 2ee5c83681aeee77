//! The configuration in force, for people: each key with its value, its default, and where the value comes from.
//!
//! Values are read out of the [`Config`] that the node runs with, so what is shown is what holds, not what was written.

mod logins;

use super::encrypted;
use super::keys::{self, Rule};
use super::rules_discovery::Formation;
use super::rules_quorum::TICK_MS;
use super::{Config, Definitions, HttpListener, Listener, Setting, VhostDefaults, Watermark};
use crate::logs::{ConsoleStream, Level, LogFormat};
use gateway::cluster::ConfiguredNode;
use listener::{LoginFrom, RevocationCheck, SanType, TlsOptions, Version};
use logins::{identity, sign_on, trust};
use management::SettingInForce;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::{Debug, Display};
use std::path::PathBuf;

/// What stands for a secret, whatever it is.
const MASK: &str = "********";
const NONE: &str = "none";

/// Every key that has an effect, and those that were set without one.
pub fn in_force(config: &Config, settings: &[Setting]) -> Vec<SettingInForce> {
    let defaults: HashMap<String, String> = shown(&Config::default()).into_iter().collect();
    let shown = shown(config);
    let keys: HashSet<&str> = shown.iter().map(|(key, _)| key.as_str()).collect();
    let set = settings.iter().filter_map(|it| Some((row_of(it, &keys)?, it)));
    let set: HashMap<String, &Setting> = set.collect();
    let effective = shown.into_iter().map(|(key, value)| {
        let is_guarded = set
            .get(&key)
            .is_some_and(|setting| encrypted::is_guarded(setting));
        let value = if is_guarded { MASK.to_owned() } else { value };
        let source = match set.get(&key) {
            Some(setting) => setting.origin.to_string(),
            None => "default".to_owned(),
        };
        let default = defaults.get(&key).cloned();
        SettingInForce {
            key,
            value,
            default,
            source,
            without_effect: None,
        }
    });
    let mut rows: Vec<SettingInForce> = effective.collect();
    rows.extend(settings.iter().filter_map(without_effect));
    rows
}

fn without_effect(setting: &Setting) -> Option<SettingInForce> {
    let why = match keys::rule(&setting.key)? {
        Rule::Part(part) => format!("this version doesn't have {part}"),
        Rule::NoEffect(why) => (*why).to_owned(),
        Rule::Sets(_) | Rule::Among(..) | Rule::Only(..) => return None,
    };
    Some(SettingInForce {
        key: setting.key.to_string(),
        // What such a key holds is nobody's business here: it may be the password of a part that isn't built.
        value: MASK.to_owned(),
        default: None,
        source: setting.origin.to_string(),
        without_effect: Some(why),
    })
}

/// The key under which a setting is shown: its own, or one above it that it is a part of, as an item of a list is.
fn row_of(setting: &Setting, shown: &HashSet<&str>) -> Option<String> {
    let segments = setting.key.segments();
    let least = match keys::rule(&setting.key)? {
        Rule::Sets(_) | Rule::Among(..) => 1,
        Rule::Part(_) | Rule::NoEffect(_) | Rule::Only(..) => segments.len(),
    };
    let above = (least..=segments.len()).rev();
    above
        .map(|length| canonical(segments[..length].join(".")))
        .find(|key| shown.contains(key.as_str()))
}

/// The name that is shown of several of RabbitMQ's for the same thing.
fn canonical(key: String) -> String {
    let name = match key.as_str() {
        "config_entry_decoder.passphrase_file" => "config_entry_decoder.passphrase",
        "log.journald" => "log.console",
        "log.journald.level" => "log.console.level",
        "management_agent.disable_metrics_collector" => "management.disable_stats",
        "max_connections" => "connection_max",
        "max_channels_per_connection" => "channel_max",
        "management.load_definitions" => "load_definitions",
        "auth_oauth2.jwks_url" => "auth_oauth2.jwks_uri",
        "log.syslog.ip" => "log.syslog.host",
        "management.listener.port" => "management.tcp.port",
        "management.listener.ip" => "management.tcp.ip",
        _ => match key.strip_prefix("management.listener.ssl_opts.") {
            Some(rest) => return format!("management.ssl.{rest}"),
            None => return key,
        },
    };
    name.to_owned()
}

/// Keys and values as text.
struct Sheet(Vec<(String, String)>);

impl Sheet {
    fn put(&mut self, key: impl Into<String>, value: impl Display) {
        self.0.push((key.into(), value.to_string()));
    }

    fn maybe(&mut self, key: impl Into<String>, value: Option<impl Display>) {
        match value {
            Some(value) => self.put(key, value),
            None => self.put(key, NONE),
        }
    }

    fn path(&mut self, key: impl Into<String>, path: &Option<PathBuf>) {
        self.maybe(key, path.as_ref().map(|path| path.display()));
    }

    fn list<T: Display>(&mut self, key: impl Into<String>, items: impl IntoIterator<Item = T>, empty: &str) {
        let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
        match items.is_empty() {
            true => self.put(key, empty),
            false => self.put(key, items.join(", ")),
        }
    }
}

fn definitions(sheet: &mut Sheet, definitions: &Definitions) {
    sheet.path("load_definitions", &definitions.file);
    let backend = match (definitions.is_local, definitions.is_remote) {
        (true, _) => Some("local_filesystem"),
        (false, true) => Some("https"),
        (false, false) => None,
    };
    sheet.maybe("definitions.import_backend", backend);
    let url = definitions.url.as_deref().map(without_password);
    sheet.maybe("definitions.https.url", url);
    trust(sheet, "definitions.tls", &definitions.trust);
    sheet.path("definitions.local.path", &definitions.local);
    sheet.put("definitions.skip_if_unchanged", definitions.skip_if_unchanged);
    sheet.put("definitions.hashing.algorithm", definitions.hashing);
    let word = |is_so: bool, word| if is_so { word } else { "refuse" };
    let options = definitions.options;
    sheet.put(
        "definitions.on_unsupported",
        word(options.skip_unsupported, "skip"),
    );
    sheet.put(
        "definitions.quorum_as",
        word(options.quorum_as_classic, "classic"),
    );
    let kind = |is_quorum: bool, usual: &str| {
        if is_quorum {
            "quorum".to_owned()
        } else {
            usual.to_owned()
        }
    };
    sheet.put(
        "definitions.mirrored_as",
        kind(options.mirrored_as_quorum, "mirrored"),
    );
    sheet.put(
        "definitions.classic_as",
        kind(options.classic_as_quorum, "classic"),
    );
}

fn shown(config: &Config) -> Vec<(String, String)> {
    let mut sheet = Sheet(Vec::new());
    sheet.put("data_dir", config.data_dir.display());
    sheet.put("nodename", &config.node_name);
    sheet.put("use_longname", config.node_name.is_long);
    sheet.path("pid_file", &config.pid_file);
    sheet.put("keep_pid_file_on_exit", config.keeps_pid_file);
    sheet.maybe(
        "config_entry_decoder.passphrase",
        config.decoder.passphrase.as_ref().map(|_| MASK),
    );
    sheet.put("config_entry_decoder.cipher", &config.decoder.scheme.cipher);
    sheet.put("config_entry_decoder.hash", &config.decoder.scheme.hash);
    sheet.put(
        "config_entry_decoder.iterations",
        config.decoder.scheme.iterations,
    );
    definitions(&mut sheet, &config.definitions);
    sheet.put("cluster_name", &config.cluster_name);
    let tags = [
        ("cluster_tags", &config.cluster.tags),
        ("node_tags", &config.cluster.node_tags),
    ];
    for (group, tags) in tags {
        for (name, value) in tags {
            sheet.put(format!("{group}.{name}"), value);
        }
    }
    let of_node = |node: &ConfiguredNode| match node.port {
        Some(port) => format!("{}:{port}", node.name),
        None => node.name.clone(),
    };
    let nodes: Vec<String> = config.cluster.formation.nodes.values().map(of_node).collect();
    sheet.list("cluster_formation.classic_config.nodes", nodes.iter(), NONE);
    listed(&mut sheet, "cluster.listeners.tcp", &config.cluster.listeners);
    sheet.maybe("cluster.secret", config.cluster.secret.as_ref().map(|_| MASK));
    sheet.put("cluster.takes_queues", config.cluster.takes_queues);
    tls(&mut sheet, "cluster.tls", &config.cluster.tls);
    formation(&mut sheet, &config.cluster.formation);
    listeners(&mut sheet, config);
    streams(&mut sheet, config);
    amqp(&mut sheet, config);
    users(&mut sheet, config);
    identity(&mut sheet, &config.identity);
    tls(&mut sheet, "ssl_options", &config.tls);
    resources(&mut sheet, config);
    logs(&mut sheet, config);
    pages(&mut sheet, config);
    sheet.0
}

fn formation(sheet: &mut Sheet, formation: &Formation) {
    let of = |key: &str| format!("cluster_formation.{key}");
    sheet.put(of("peer_discovery_backend"), formation.backend.name());
    sheet.put(of("target_cluster_size_hint"), formation.target_size());
    sheet.maybe(of("dns.hostname"), formation.seed_host.as_ref());
    sheet.put(of("k8s.ordinal_start"), formation.first_ordinal);
    sheet.maybe(of("k8s.seed_node"), formation.seed_node.as_ref());
    sheet.maybe(of("k8s.hostname_suffix"), formation.suffix.as_ref());
    sheet.maybe(of("k8s.service_name"), formation.service.as_ref());
}

fn streams(sheet: &mut Sheet, config: &Config) {
    let stream = &config.stream;
    both(
        sheet,
        "stream.listeners",
        &stream.listeners,
        &stream.tls_listeners,
    );
    sheet.put("stream.proxy_protocol", stream.proxy_protocol);
    sheet.put("stream.frame_max", stream.frame_max);
    sheet.put("stream.heartbeat", stream.heartbeat_s);
    sheet.put("stream.initial_credits", stream.initial_credits);
    sheet.put("stream.credits_required_for_unblocking", stream.credits_required);
    let (tcp, tls) = (&stream.advertised, &stream.advertised_tls);
    for (key, host, secured) in [("", &tcp.0, false), ("tls_", &tls.0, true)] {
        let host = host.as_ref().unwrap_or(&config.node_name.host);
        sheet.put(format!("stream.advertised_{key}host"), host);
        sheet.put(
            format!("stream.advertised_{key}port"),
            stream.advertised_port(secured),
        );
    }
}

fn listeners(sheet: &mut Sheet, config: &Config) {
    both(sheet, "listeners", &config.listeners, &config.tls_listeners);
    for (name, path) in &config.local_listeners {
        sheet.put(format!("listeners.unix.{name}"), path.display());
    }
    sheet.put("listeners.unix_mode", format!("{:o}", config.local_mode));
    sheet.put("proxy_protocol", config.proxy_protocol);
    sheet.list(
        "proxy_protocol_trusted_sources",
        config.proxies.trusted.iter().map(debug),
        NONE,
    );
    sheet.put("tcp_listen_options.backlog", config.tcp.backlog);
    sheet.put("tcp_listen_options.nodelay", config.tcp.nodelay);
    sheet.maybe("tcp_listen_options.sndbuf", config.tcp.send_buffer);
    sheet.maybe("tcp_listen_options.recbuf", config.tcp.receive_buffer);
    sheet.put("handshake_timeout", config.limits.handshake_ms);
    sheet.put("ssl_handshake_timeout", config.tls.handshake_timeout.as_millis());
    let from = match config.certificate_login {
        LoginFrom::DistinguishedName => "distinguished_name",
        LoginFrom::CommonName => "common_name",
        LoginFrom::AlternativeName(..) => "subject_alternative_name",
    };
    sheet.put("ssl_cert_login_from", from);
    let kind = match config.certificate_san.0 {
        SanType::Dns => "dns",
        SanType::Ip => "ip",
        SanType::Email => "email",
        SanType::Uri => "uri",
        SanType::OtherName => "other_name",
    };
    sheet.put("ssl_cert_login_san_type", kind);
    sheet.put("ssl_cert_login_san_index", config.certificate_san.1);
}

/// Listeners without TLS, and with it.
fn both(
    sheet: &mut Sheet,
    section: &str,
    plain: &BTreeMap<String, Listener>,
    secured: &BTreeMap<String, Listener>,
) {
    for (kind, listeners) in [("tcp", plain), ("ssl", secured)] {
        let key = format!("{section}.{kind}");
        sheet.list(&key, listeners.keys(), NONE);
        listed(sheet, &key, listeners);
    }
}

fn listed(sheet: &mut Sheet, kind: &str, listeners: &BTreeMap<String, Listener>) {
    for (name, listener) in listeners {
        let address = match listener {
            Listener::AnyAddress(port) => port.to_string(),
            Listener::Address(address) => address.to_string(),
        };
        sheet.put(format!("{kind}.{name}"), address);
    }
}

fn amqp(sheet: &mut Sheet, config: &Config) {
    sheet.put("heartbeat", config.heartbeat_s);
    sheet.put("frame_max", config.limits.frame_max);
    sheet.put("initial_frame_max", config.limits.initial_frame_max);
    sheet.put("channel_max", config.limits.channel_max);
    sheet.put("max_message_size", config.limits.message_bytes);
    sheet.put("max_unfinished_size", config.limits.unfinished_most());
    let limit = |limit: Option<u64>| limit.map_or("infinity".to_owned(), |it| it.to_string());
    sheet.put("connection_max", limit(config.node_limits.connections));
    sheet.put("channel_max_per_node", limit(config.node_limits.channels));
    sheet.put("consumer_max_per_channel", limit(config.node_limits.consumers));
    sheet.put("cluster_queue_limit", limit(config.node_limits.queues));
    sheet.put("cluster_exchange_limit", limit(config.node_limits.exchanges));
    sheet.put("vhost_max", limit(config.node_limits.vhosts));
    sheet.put("consumer_timeout", config.consumer_timeout_ms);
    sheet.put("default_queue_type", config.queue_defaults.kind.name());
    sheet.put(
        "quorum_queue.property_equivalence.relaxed_checks_on_redeclaration",
        config.queue_defaults.relaxed,
    );
    sheet.put("queue_leader_locator", config.queue_defaults.locator.name());
    reconciliation(sheet, config);
    let incoming = "message_interceptors.incoming";
    sheet.maybe(
        format!("{incoming}.set_header_timestamp.overwrite"),
        config.interceptors.timestamp,
    );
    sheet.maybe(
        format!("{incoming}.set_header_routing_node.overwrite"),
        config.interceptors.routing_node,
    );
    sheet.maybe("event_exchange.vhost", config.event_vhost.as_ref());
}

fn reconciliation(sheet: &mut Sheet, config: &Config) {
    sheet.put(
        "quorum_queue.rebalance_after_return",
        config.rebalances_after_return,
    );
    let reconciliation = config.reconciliation;
    let key = |name: &str| format!("quorum_queue.continuous_membership_reconciliation.{name}");
    sheet.put(key("enabled"), reconciliation.is_enabled);
    let target = Some(reconciliation.target_size).filter(|size| *size > 0);
    sheet.maybe(key("target_group_size"), target);
    sheet.put(
        key("interval"),
        u64::from(reconciliation.interval_ticks) * TICK_MS,
    );
    sheet.put(
        key("trigger_interval"),
        u64::from(reconciliation.trigger_ticks) * TICK_MS,
    );
}

fn users(sheet: &mut Sheet, config: &Config) {
    let defaults = &config.defaults;
    sheet.put("default_user", &defaults.user);
    sheet.put("default_pass", MASK);
    sheet.put("default_vhost", &defaults.vhost);
    sheet.list("default_user_tags", &defaults.tags, NONE);
    sheet.put("default_permissions.configure", &defaults.configure);
    sheet.put("default_permissions.write", &defaults.write);
    sheet.put("default_permissions.read", &defaults.read);
    sheet.list("loopback_users", &config.loopback_users, NONE);
    sheet.list(
        "auth_mechanisms",
        config.auth_mechanisms.values().map(debug),
        "all",
    );
    sheet.maybe("anonymous_login_user", config.anonymous_user.as_ref());
    sheet.put("anonymous_login_pass", MASK);
    let credentials = &config.credentials;
    sheet.put(
        "credential_validator.validation_backend",
        credentials.backend.name(),
    );
    sheet.maybe("credential_validator.min_length", credentials.min_length);
    sheet.maybe("credential_validator.regexp", credentials.regexp.as_ref());
    vhost_defaults(sheet, &config.vhost_defaults);
    sheet.put("password_hashing_module", config.password_hashing.name());
}

fn vhost_defaults(sheet: &mut Sheet, defaults: &VhostDefaults) {
    for (id, it) in &defaults.limits {
        let key = |name: &str| format!("default_limits.vhosts.{id}.{name}");
        sheet.put(key("pattern"), &it.pattern);
        for (name, limit) in &it.limits {
            sheet.put(key(&name.replace('-', "_")), limit);
        }
    }
    for (id, it) in &defaults.policies {
        let key = |name: &str| format!("default_policies.operator.{id}.{name}");
        sheet.put(key("vhost_pattern"), &it.vhost_pattern);
        sheet.put(key("queue_pattern"), &it.queue_pattern);
        sheet.put(key("apply_to"), &it.apply_to);
        for (name, value) in &it.definition {
            sheet.put(key(&name.replace('-', "_")), value);
        }
    }
    for (id, it) in &defaults.users {
        let key = |name: &str| format!("default_users.{id}.{name}");
        sheet.put(key("vhost_pattern"), &it.vhost_pattern);
        sheet.put(key("password"), MASK);
        sheet.list(key("tags"), &it.tags, NONE);
        sheet.put(key("configure"), &it.permissions.configure);
        sheet.put(key("write"), &it.permissions.write);
        sheet.put(key("read"), &it.permissions.read);
    }
}

/// An address without the name and password that may stand before its host.
fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return MASK.to_owned();
    };
    let host = rest.split('/').next().unwrap_or_default();
    match host.rsplit_once('@') {
        Some((login, _)) => format!("{scheme}://{MASK}{}", &rest[login.len()..]),
        None => address.to_owned(),
    }
}

fn tls(sheet: &mut Sheet, section: &str, options: &TlsOptions) {
    let key = |name: &str| format!("{section}.{name}");
    sheet.path(key("certfile"), &options.certificate);
    sheet.path(key("keyfile"), &options.key);
    sheet.maybe(key("password"), options.passphrase.as_ref().map(|_| MASK));
    sheet.path(key("cacertfile"), &options.authorities);
    sheet.put(
        key("verify"),
        if options.verify_peer {
            "verify_peer"
        } else {
            "verify_none"
        },
    );
    sheet.put(key("fail_if_no_peer_cert"), options.fail_if_no_peer_cert);
    sheet.put(key("depth"), options.depth);
    let check = match options.revocation.check {
        RevocationCheck::No => "false",
        RevocationCheck::Chain => "true",
        RevocationCheck::Peer => "peer",
        RevocationCheck::BestEffort => "best_effort",
    };
    sheet.put(key("crl_check"), check);
    let paths = options.revocation.directories.iter().map(|path| path.display());
    sheet.list(key("crl_sources"), paths, NONE);
    let versions = options.versions.iter().map(|version| match version {
        Version::Tls12 => "tlsv1.2",
        Version::Tls13 => "tlsv1.3",
    });
    sheet.list(key("versions"), versions, "all");
    sheet.list(key("ciphers"), &options.ciphers, "all");
    sheet.put(key("honor_cipher_order"), options.honor_cipher_order);
    sheet.put(key("reuse_sessions"), options.reuse_sessions);
}

fn resources(sheet: &mut Sheet, config: &Config) {
    let amount = |watermark: Watermark| match watermark {
        Watermark::Relative(share) => format!("{share} of the memory"),
        Watermark::Absolute(bytes) => format!("{bytes} bytes"),
    };
    sheet.put("vm_memory_high_watermark", amount(config.memory_watermark));
    sheet.put("disk_free_limit", amount(config.disk_free_limit));
    sheet.maybe("total_memory_available_override_value", config.total_memory);
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
        Level::None => NONE,
    }
}

fn logs(sheet: &mut Sheet, config: &Config) {
    let log = &config.log;
    let format = |format| match format {
        LogFormat::Text => "plaintext",
        LogFormat::Json => "json",
    };
    sheet.put("log.console", log.console);
    let stream = match log.console_stream {
        ConsoleStream::Stdout => "stdout",
        ConsoleStream::Stderr => "stderr",
    };
    sheet.put("log.console.stdio", stream);
    sheet.put("log.console.level", level(log.console_level));
    sheet.put("log.console.formatter", format(log.console_format));
    match &log.file {
        Some(file) => sheet.put("log.file", file.display()),
        None => sheet.put("log.file", false),
    }
    sheet.put("log.file.level", level(log.file_level));
    sheet.put("log.file.formatter", format(log.file_format));
    sheet.maybe("log.file.rotation.date", log.rotation.date.as_ref().map(debug));
    sheet.put("log.file.rotation.size", log.rotation.size.unwrap_or(0));
    sheet.put("log.file.rotation.count", log.rotation.count);
    sheet.path("log.dir", &log.dir);
    let syslog = &log.syslog;
    sheet.put("log.syslog", syslog.enabled);
    sheet.put("log.syslog.level", level(syslog.level));
    sheet.put("log.syslog.formatter", format(syslog.format));
    sheet.put("log.syslog.identity", &syslog.identity);
    sheet.put("log.syslog.facility", syslog.facility.name());
    sheet.put("log.syslog.host", &syslog.host);
    sheet.put("log.syslog.port", syslog.port);
    sheet.put("log.syslog.transport", syslog.transport.name());
    sheet.put("log.syslog.protocol", debug_lower(syslog.protocol()));
    trust(sheet, "log.syslog.ssl_options", &syslog.trust);
    sheet.put("log.exchange", log.exchange);
    sheet.put("log.exchange.level", level(log.exchange_level));
    sheet.put("log.exchange.formatter", format(log.exchange_format));
    for category in ["default", "connection", "channel", "queue", "user"] {
        let own = log.categories.get(category);
        sheet.put(
            format!("log.{category}.level"),
            own.map_or("as the output", |it| level(*it)),
        );
    }
}

fn pages(sheet: &mut Sheet, config: &Config) {
    let management = &config.management;
    http(sheet, "management", &management.listener);
    sheet.put("management.listener.ssl", management.listener.port_is_secured);
    tls(sheet, "management.ssl", &management.listener.tls);
    sheet.put("management.http.max_body_size", management.body_limit);
    sheet.put("management.path_prefix", &management.path_prefix);
    sheet.put("management.disable_basic_auth", management.disable_basic_auth);
    for (key, name) in super::rules_management::HEADERS {
        sheet.maybe(key, management.headers.get(name));
    }
    sign_on(sheet, &management.sign_on);
    sheet.put("management.disable_stats", management.disable_stats);
    sheet.put("management.enable_queue_totals", management.enable_queue_totals);
    sheet.list("management.cors.allow_origins", &management.origins.allowed, NONE);
    sheet.put("management.cors.max_age", management.origins.max_age_s);
    sheet.put("management.web_socket", management.web_socket);
    let prometheus = &config.prometheus;
    http(sheet, "prometheus", &prometheus.listener);
    tls(sheet, "prometheus.ssl", &prometheus.listener.tls);
    sheet.put("prometheus.path", &prometheus.path);
    sheet.put("prometheus.return_per_object_metrics", prometheus.per_object);
    sheet.put("prometheus.object_limit", prometheus.object_limit);
}

fn http(sheet: &mut Sheet, section: &str, http: &HttpListener) {
    let key = |name: &str| format!("{section}.{name}");
    sheet.put(key("listener"), if http.enabled { "on" } else { NONE });
    sheet.put(key("tcp.port"), http.port);
    sheet.maybe(key("tcp.ip"), http.ip);
    sheet.maybe(key("ssl.port"), http.tls_port);
    sheet.maybe(key("ssl.ip"), http.tls_ip);
}

fn debug(value: impl Debug) -> String {
    format!("{value:?}")
}

fn debug_lower(value: impl Debug) -> String {
    debug(value).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::super::{load, sources};
    use super::*;
    use std::path::Path;

    fn of(text: &str) -> Vec<SettingInForce> {
        let settings = sources::text_of_file(text, Path::new("a.conf")).unwrap();
        let loaded = load(settings).unwrap();
        in_force(&loaded.config, &loaded.settings)
    }

    fn row<'a>(rows: &'a [SettingInForce], key: &str) -> &'a SettingInForce {
        rows.iter()
            .find(|row| row.key == key)
            .unwrap_or_else(|| panic!("{key} is missing"))
    }

    #[test]
    fn each_key_that_has_an_effect_is_shown() {
        let shown = of("");
        let keys: HashSet<&str> = shown.iter().map(|row| row.key.as_str()).collect();
        for (pattern, rule) in keys::KEYS {
            if pattern.contains('*') || !matches!(rule, Rule::Sets(_)) {
                continue;
            }
            let amount = pattern
                .strip_suffix(".absolute")
                .or(pattern.strip_suffix(".relative"));
            let key = canonical(amount.unwrap_or(pattern).to_owned());
            assert!(keys.contains(key.as_str()), "{pattern} is not shown");
        }
        assert!(
            shown
                .iter()
                .all(|row| row.source == "default" && row.default.as_ref() == Some(&row.value))
        );
    }

    #[test]
    fn a_value_has_its_default_and_its_place_beside_it() {
        let rows = of(
            "heartbeat = 20\nvm_memory_high_watermark.absolute = 1GB\nssl_options.versions.1 = tlsv1.3\nlisteners.tcp.own = 5999\nlog.queue.level = debug\n\
             auth_ldap.servers.1 = ldap.example\nmanagement.listener.ssl_opts.crl_sources.1 = dir\nmanagement.listener.ssl_opts.crl_sources.1.path = /crl",
        );
        let heartbeat = row(&rows, "heartbeat");
        assert_eq!(
            (
                heartbeat.value.as_str(),
                heartbeat.default.as_deref(),
                heartbeat.source.as_str()
            ),
            ("20", Some("60"), "a.conf:1")
        );
        assert_eq!(row(&rows, "vm_memory_high_watermark").source, "a.conf:2");
        assert_eq!(row(&rows, "ssl_options.versions").value, "tlsv1.3");
        assert_eq!(row(&rows, "listeners.tcp.own").value, "5999");
        assert_eq!(row(&rows, "log.queue.level").value, "debug");
        assert_eq!(row(&rows, "auth_ldap.servers").source, "a.conf:6");
        assert_eq!(row(&rows, "management.ssl.crl_sources").source, "a.conf:8");
        assert_eq!(row(&rows, "frame_max").source, "default");
        let rows = of("max_unfinished_size = 1KiB\nmax_message_size = 1000");
        assert_eq!(row(&rows, "max_unfinished_size").value, "8000");
    }

    #[test]
    fn secrets_are_masked_and_keys_without_effect_say_so() {
        let rows = of(
            "default_pass = s3cret\nanonymous_login_pass = s3cret\nauth_ldap.dn_lookup_bind.password = s3cret\nauth_oauth2.issuer = https://me:s3cret@id.example/x",
        );
        let all = format!("{rows:?}");
        assert!(!all.contains("s3cret"), "{all}");
        assert_eq!(row(&rows, "default_pass").source, "a.conf:1");
        assert_eq!(
            row(&rows, "auth_oauth2.issuer").value,
            "https://********@id.example/x"
        );
        assert_eq!(row(&rows, "auth_ldap.dn_lookup_bind.password").value, MASK);
        let rows = of("mqtt.vhost = x");
        assert!(row(&rows, "mqtt.vhost").without_effect.is_some());
    }
}
