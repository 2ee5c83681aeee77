//! The settings of one node, typed and checked: what `rabbitmq.conf`, the environment and the command line say.
//!
//! [`Config`] holds only what some crate acts on. Keys of RabbitMQ that nothing here acts on are known to
//! [`keys`] and end as a warning or a refusal, never as a silent nothing.

pub mod advanced;
mod encrypted;
pub mod environment;
pub mod error;
mod http_listener;
mod in_force;
pub mod keys;
mod keys_identity;
mod keys_oauth2;
mod keys_pages;
mod load;
pub mod node_name;
mod plugins;
mod queries;
mod rules;
mod rules_backends;
pub mod rules_cluster;
mod rules_definitions;
mod rules_discovery;
mod rules_guards;
mod rules_identity;
mod rules_ldap;
mod rules_management;
mod rules_oauth2;
mod rules_prometheus;
mod rules_quorum;
mod rules_sign_on;
mod rules_stream;
mod rules_syslog;
mod rules_tls;
mod rules_trust;
mod rules_vhost_defaults;
pub mod sources;
pub mod syntax;
pub mod terms;
pub mod units;

use crate::logs::LogOptions;
use gateway::amqp::Mechanism;
use listener::{LoginFrom, SanType, TlsOptions};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

pub use encrypted::Decoder;
pub use environment::Environment;
pub use error::{ConfigError, Origin};
pub use http_listener::HttpListener;
pub use in_force::in_force;
pub use load::{Loaded, load};
pub use node_name::NodeName;
pub use plugins::Plugins;
pub use rules_cluster::ClusterOptions;
pub use rules_definitions::{Definitions, Hashing};
pub use rules_guards::Credentials;
pub use rules_identity::IdentityOptions;
pub use rules_sign_on::SignOnOptions;
pub use rules_stream::StreamSettings;
pub use rules_vhost_defaults::VhostDefaults;
pub use sources::Setting;

/// All settings of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `data_dir`: where everything durable lives. Relative paths count from the working directory.
    pub data_dir: PathBuf,
    /// `nodename` and `use_longname`.
    pub node_name: NodeName,
    /// `pid_file`: where the number of the process stands while the node runs.
    pub pid_file: Option<PathBuf>,
    /// `keep_pid_file_on_exit`.
    pub keeps_pid_file: bool,
    /// `listeners.tcp.NAME`; empty with `listeners.tcp = none`.
    pub listeners: BTreeMap<String, Listener>,
    /// `listeners.ssl.NAME`; empty by default and with `listeners.ssl = none`.
    pub tls_listeners: BTreeMap<String, Listener>,
    /// `stream.*`.
    pub stream: StreamSettings,
    /// `listeners.unix.*`: sockets in the file system, by name.
    pub local_listeners: BTreeMap<String, PathBuf>,
    /// `listeners.unix_mode`: who may open them.
    pub local_mode: u32,
    /// `proxy_protocol`: clients of AMQP come through load balancers that say so.
    pub proxy_protocol: bool,
    /// `proxy_protocol_trusted_sources.NAME`.
    pub proxies: listener::Proxies,
    /// `ssl_options.*`.
    pub tls: TlsOptions,
    /// `ssl_cert_login_from`.
    pub certificate_login: LoginFrom,
    /// `ssl_cert_login_san_type` and `ssl_cert_login_san_index`.
    pub certificate_san: (SanType, usize),
    /// `tcp_listen_options.*`.
    pub tcp: listener::SocketOptions,
    /// Limits that decoders and sessions consult (`frame_max`, `channel_max`, …).
    pub limits: model::Limits,
    /// `heartbeat`: the interval that the server proposes, in seconds; 0 proposes none.
    pub heartbeat_s: u16,
    /// The user, vhost and permissions that an empty data directory starts with.
    pub defaults: Defaults,
    /// `loopback_users`: who may connect from this machine only.
    pub loopback_users: Vec<String>,
    /// `auth_backends.*`, `auth_oauth2.*`.
    pub identity: IdentityOptions,
    /// `auth_mechanisms.NUMBER`; empty is all.
    pub auth_mechanisms: BTreeMap<u16, Mechanism>,
    /// `anonymous_login_user`; `None` with `none`.
    pub anonymous_user: Option<String>,
    /// `anonymous_login_pass`.
    pub anonymous_password: Secret,
    /// `event_exchange.vhost`: where the node tells what happens on it.
    pub event_vhost: Option<String>,
    /// `password_hashing_module`.
    pub password_hashing: broker::PasswordHashing,
    /// `credential_validator.*`.
    pub credentials: Credentials,
    /// `connection_max` and `channel_max_per_node`.
    pub node_limits: broker::NodeLimits,
    /// `default_limits.*`, `default_policies.*` and `default_users.*`.
    pub vhost_defaults: VhostDefaults,
    /// `message_interceptors.incoming.*`.
    pub interceptors: broker::Interceptors,
    /// `consumer_timeout`: how long deliveries may stay unacknowledged, in milliseconds; 0 is no end.
    pub consumer_timeout_ms: u64,
    /// `default_queue_type`, `queue_leader_locator` and `quorum_queue.property_equivalence.*`.
    pub queue_defaults: broker::QueueDefaults,
    /// `quorum_queue.rebalance_after_return`: leaders are spread when a node has come back.
    pub rebalances_after_return: bool,
    /// `quorum_queue.continuous_membership_reconciliation.*`.
    pub reconciliation: broker::Reconciliation,
    /// `cluster_name`, announced to clients.
    pub cluster_name: String,
    /// `cluster_formation.*`.
    pub cluster: ClusterOptions,
    /// What `enabled_plugins` lists; `None` is everything.
    pub plugins: Option<Plugins>,
    /// `vm_memory_high_watermark`: from when on publishers are blocked for lack of memory.
    pub memory_watermark: Watermark,
    /// `total_memory_available_override_value`, in bytes; `None` asks the system.
    pub total_memory: Option<u64>,
    /// `disk_free_limit`: below which free space publishers are blocked; a share counts from all memory.
    pub disk_free_limit: Watermark,
    /// `log.*`.
    pub log: LogOptions,
    /// `management.*`.
    pub management: ManagementOptions,
    /// `prometheus.*`.
    pub prometheus: PrometheusOptions,
    /// `load_definitions` and `definitions.*`: what is imported at the start.
    pub definitions: Definitions,
    /// `config_entry_decoder.*`.
    pub decoder: Decoder,
    /// The configuration files that were read.
    pub files: Vec<PathBuf>,
}

/// The HTTP API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagementOptions {
    /// `management.listener`, `management.tcp.*` and `management.ssl.*`.
    pub listener: HttpListener,
    /// `management.http.max_body_size`, in bytes.
    pub body_limit: usize,
    /// `management.web_socket`: clients for messages may come by a WebSocket.
    pub web_socket: bool,
    /// `management.cors.*`.
    pub origins: management::Origins,
    /// `management.csp.policy`, `management.hsts.policy` and `management.headers.*`, by the headers that they are.
    pub headers: BTreeMap<&'static str, String>,
    /// `management.path_prefix`: empty, or it begins with a slash and doesn't end with one.
    pub path_prefix: String,
    /// `management.disable_basic_auth`.
    pub disable_basic_auth: bool,
    /// `management.oauth_*`.
    pub sign_on: SignOnOptions,
    /// `management.disable_stats`.
    pub disable_stats: bool,
    /// `management.enable_queue_totals`.
    pub enable_queue_totals: bool,
}

impl Default for ManagementOptions {
    fn default() -> Self {
        Self {
            listener: HttpListener::new(15672, "management.ssl"),
            body_limit: 10_485_760,
            origins: management::Origins::default(),
            headers: BTreeMap::new(),
            web_socket: true,
            path_prefix: String::new(),
            disable_basic_auth: false,
            sign_on: SignOnOptions::default(),
            disable_stats: false,
            enable_queue_totals: false,
        }
    }
}

/// The page for Prometheus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrometheusOptions {
    /// `prometheus.listener`, `prometheus.tcp.*` and `prometheus.ssl.*`.
    pub listener: HttpListener,
    /// `prometheus.path`: where the page is. The others are below it.
    pub path: String,
    /// `prometheus.return_per_object_metrics`.
    pub per_object: bool,
    /// `prometheus.object_limit`: so many objects of a kind are shown one by one.
    pub object_limit: usize,
}

impl Default for PrometheusOptions {
    fn default() -> Self {
        Self {
            listener: HttpListener::new(15692, "prometheus.ssl"),
            path: "/metrics".into(),
            per_object: false,
            object_limit: 10_000,
        }
    }
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// Where to listen for AMQP clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// A port on every address of this machine, IPv4 and IPv6.
    AnyAddress(u16),
    Address(SocketAddr),
}

impl Listener {
    /// Reads `5672`, `127.0.0.1:5672`, `[::1]:5672`, and RabbitMQ's own form of the last, `::1:5672`.
    pub fn parse(text: &str) -> Option<Self> {
        let port = |text| units::whole(text, 0, 65_535).and_then(|port| u16::try_from(port).ok());
        if let Some(port) = port(text) {
            return Some(Self::AnyAddress(port));
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Some(Self::Address(address));
        }
        let (address, digits) = text.rsplit_once(':')?;
        let address: IpAddr = address.parse().ok()?;
        Some(Self::Address(SocketAddr::new(address, port(digits)?)))
    }

    /// The address to bind. `any` is what "every address" is on this machine: `::`, or `0.0.0.0` without IPv6.
    pub fn bind_address(self, any: IpAddr) -> SocketAddr {
        match self {
            Self::AnyAddress(port) => SocketAddr::new(any, port),
            Self::Address(address) => address,
        }
    }
}

/// What an empty data directory starts with; a node that has data ignores it.
#[derive(Clone, PartialEq, Eq)]
pub struct Defaults {
    pub user: String,
    pub password: String,
    pub vhost: String,
    pub tags: Vec<String>,
    /// Regular expressions: configure, write, read.
    pub configure: String,
    pub write: String,
    pub read: String,
}

impl Default for Defaults {
    /// RabbitMQ's.
    fn default() -> Self {
        Self {
            user: "guest".to_owned(),
            password: "guest".to_owned(),
            vhost: "/".to_owned(),
            tags: vec!["administrator".to_owned()],
            configure: ".*".to_owned(),
            write: ".*".to_owned(),
            read: ".*".to_owned(),
        }
    }
}

impl std::fmt::Debug for Defaults {
    /// Everything but the password, which must never reach a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Defaults")
            .field("user", &self.user)
            .field("vhost", &self.vhost)
            .finish_non_exhaustive()
    }
}

/// An amount of memory or disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Watermark {
    /// A share of the memory this process may use.
    Relative(f64),
    /// In bytes.
    Absolute(u64),
}

impl Watermark {
    /// The amount in bytes, where `total` is the memory this process may use.
    pub fn bytes(self, total: u64) -> u64 {
        match self {
            // Exact to 2^53 bytes, 8 PiB; `as` saturates.
            Self::Relative(share) => (total as f64 * share) as u64,
            Self::Absolute(bytes) => bytes,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("var"),
            node_name: NodeName::default(),
            pid_file: None,
            keeps_pid_file: false,
            listeners: BTreeMap::from([("default".to_owned(), Listener::AnyAddress(5672))]),
            tls_listeners: BTreeMap::new(),
            stream: StreamSettings::default(),
            local_listeners: BTreeMap::new(),
            local_mode: 0o660,
            proxy_protocol: false,
            proxies: listener::Proxies::default(),
            tls: TlsOptions::new("ssl_options"),
            certificate_login: LoginFrom::default(),
            certificate_san: (SanType::Dns, 0),
            tcp: listener::SocketOptions::default(),
            limits: model::Limits::default(),
            heartbeat_s: 60,
            defaults: Defaults::default(),
            loopback_users: vec!["guest".to_owned()],
            identity: IdentityOptions::default(),
            auth_mechanisms: BTreeMap::new(),
            anonymous_user: Some("guest".to_owned()),
            anonymous_password: Secret("guest".to_owned()),
            event_vhost: None,
            password_hashing: broker::PasswordHashing::default(),
            credentials: Credentials::default(),
            node_limits: broker::NodeLimits::default(),
            vhost_defaults: VhostDefaults::default(),
            interceptors: broker::Interceptors::default(),
            consumer_timeout_ms: 0,
            queue_defaults: broker::QueueDefaults::default(),
            reconciliation: broker::Reconciliation::default(),
            rebalances_after_return: false,
            cluster_name: "leveret".to_owned(),
            cluster: ClusterOptions::default(),
            plugins: None,
            memory_watermark: Watermark::Relative(0.6),
            total_memory: None,
            disk_free_limit: Watermark::Absolute(broker::DISK_FREE_LIMIT),
            log: LogOptions::default(),
            management: ManagementOptions::default(),
            prometheus: PrometheusOptions::default(),
            definitions: Definitions::default(),
            decoder: Decoder::default(),
            files: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_not_printed() {
        let mut config = Config::default();
        config.defaults.password = "s3cret".to_owned();
        assert!(!format!("{config:?}").contains("s3cret"));
    }

    #[test]
    fn watermarks_in_bytes() {
        assert_eq!(Watermark::Relative(0.5).bytes(1000), 500);
        assert_eq!(Watermark::Absolute(7).bytes(1000), 7);
        assert_eq!(Watermark::Relative(1.0).bytes(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_bare_port_means_every_address() {
        let any: IpAddr = "::".parse().unwrap();
        assert_eq!(
            Listener::AnyAddress(1).bind_address(any),
            "[::]:1".parse().unwrap()
        );
        let here: SocketAddr = "127.0.0.1:2".parse().unwrap();
        assert_eq!(Listener::Address(here).bind_address(any), here);
    }
}
