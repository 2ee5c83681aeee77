//! What the HTTP API is started with.

use crate::configuration::SettingInForce;
use crate::log_tail::LogTail;
use crate::origins::Origins;
use crate::sign_on::SignOn;
use listener::{Door, Guest, Opened, Parked, Place, Tls};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// How the door for people is set up, and what it tells about its node.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen for HTTP, if at all, and whether TLS is spoken there.
    pub doors: Vec<Door>,
    /// The node's admin socket, if there is to be one.
    pub admin_socket: Option<PathBuf>,
    /// The largest body of a request, in bytes (RabbitMQ: 10,485,760).
    pub body_limit: usize,
    /// The sites whose pages may use the API.
    pub origins: Origins,
    /// Headers that every answer has, in place of those of the same name that it would have: what an operator tells browsers.
    pub headers: Vec<(&'static str, String)>,
    /// Who takes in the clients that come for messages, by a WebSocket, if anybody does.
    pub web_clients: Option<WebClients>,
    /// What stands before every path on the network, as `/mq`; nothing, if nothing does.
    pub path_prefix: String,
    /// The ways to log in by AMQP.
    pub mechanisms: Vec<&'static str>,
    /// The node's name, as `rabbit@host`.
    pub node: String,
    /// The plugins that are shown as enabled, of those that are built in; `None` is all of them.
    pub plugins: Option<BTreeSet<String>>,
    /// So many nodes the cluster should have; this one is alone.
    pub target_cluster_size: u32,
    /// What operators say about the node: names and values (`node_tags`).
    pub node_tags: BTreeMap<String, String>,
    /// The version of RabbitMQ whose behaviour clients may expect.
    pub rabbitmq_version: String,
    /// The other doors that are open.
    pub listeners: Vec<Listener>,
    /// The configuration files that were read.
    pub config_files: Vec<PathBuf>,
    /// Where the data lies.
    pub data_dir: PathBuf,
    /// Where the log goes.
    pub log_files: Vec<String>,
    /// Nobody comes in by a password on a network; tokens do (`management.disable_basic_auth`).
    pub disable_basic_auth: bool,
    /// How people log in to the web UI by OAuth 2.
    pub sign_on: SignOn,
    /// How `/api/overview` should answer when it is asked for nothing special: without counts of messages.
    pub disable_stats: bool,
    /// Lists of queues have their counts even so.
    pub enable_queue_totals: bool,
    /// The memory that limits are parts of, in bytes.
    pub total_memory: u64,
    /// Changes how much is logged, by RabbitMQ's names of levels; false if there is none of this name.
    pub set_log_level: fn(&str) -> bool,
    /// The last lines of the log.
    pub log_tail: Arc<LogTail>,
    /// The configuration in force.
    pub settings: Arc<[SettingInForce]>,
    /// Stops the broker and leaves the process answering, if that can be done.
    pub stop_application: Option<StopApplication>,
}

/// Asks the process to stop the broker; it does so when it has answered.
#[derive(Clone)]
pub struct StopApplication(pub Arc<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for StopApplication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StopApplication")
    }
}

/// Takes in clients for messages, whose WebSocket is open.
#[derive(Clone)]
pub struct WebClients(pub Arc<dyn Fn(Guest<Parked>) + Send + Sync>);

impl std::fmt::Debug for WebClients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebClients")
    }
}

/// One open door, as health checks name it.
#[derive(Clone, Debug)]
pub struct Listener {
    /// `amqp`, `amqp/ssl`, `http`, `https`, `http/prometheus`, `https/prometheus`.
    pub protocol: &'static str,
    /// Where it listens.
    pub place: Place,
    /// TLS, if it is spoken there.
    pub tls: Option<Arc<Tls>>,
}

impl Listener {
    /// A door of the protocol that has these names, in the clear and with TLS.
    pub fn new(names: [&'static str; 2], door: &Opened) -> Self {
        Self {
            protocol: names[usize::from(door.is_secured())],
            place: door.place.clone(),
            tls: door.tls.clone(),
        }
    }
}

impl Options {
    /// RabbitMQ's defaults for these doors.
    pub fn new(doors: Vec<Door>) -> Self {
        Self {
            doors,
            admin_socket: None,
            body_limit: 10_485_760,
            origins: Origins::default(),
            headers: Vec::new(),
            web_clients: None,
            path_prefix: String::new(),
            mechanisms: vec!["PLAIN", "AMQPLAIN", "ANONYMOUS"],
            node: "rabbit@localhost".into(),
            plugins: None,
            target_cluster_size: 1,
            node_tags: BTreeMap::new(),
            rabbitmq_version: "4.2.0".into(),
            listeners: Vec::new(),
            config_files: Vec::new(),
            data_dir: PathBuf::new(),
            log_files: Vec::new(),
            disable_basic_auth: false,
            sign_on: SignOn::default(),
            disable_stats: false,
            enable_queue_totals: false,
            total_memory: u64::MAX,
            set_log_level: |_| false,
            log_tail: Arc::default(),
            settings: Arc::default(),
            stop_application: None,
        }
    }
}
