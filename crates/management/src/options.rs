//! What the HTTP API is started with.

use crate::log_tail::LogTail;
use crate::origins::Origins;
use crate::sign_on::SignOn;
use hyper::body::Bytes;
use listener::{ClientConnection, Endpoint, Parked, Protocol};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// What listeners for the HTTP API name.
pub const HTTP: Protocol = Protocol {
    name: "HTTP API",
    plain: "http",
    secured: "https",
};

/// What listeners for Prometheus name.
pub const PROMETHEUS: Protocol = Protocol {
    name: "Prometheus",
    plain: "http/prometheus",
    secured: "https/prometheus",
};

/// One key of the configuration. Secrets are masked before they come here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingInForce {
    /// As in `rabbitmq.conf`.
    pub key: String,
    /// What is in force; what was written, if it has no effect.
    pub value: String,
    /// What is in force where nobody says anything; `None` if there is no such thing.
    pub default: Option<String>,
    /// `default`, or the file and line, the variable, the option that it comes from.
    pub source: String,
    /// Why it has no effect, if it has none.
    pub without_effect: Option<String>,
}

/// How the HTTP API is set up, and what it says about its node.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen for HTTP, if at all, and whether TLS is spoken there.
    pub endpoints: Vec<Endpoint>,
    /// The node's admin socket, if there is to be one.
    pub admin_socket: Option<PathBuf>,
    /// The largest body of a request, in bytes (RabbitMQ: 10,485,760).
    pub body_limit: usize,
    /// The sites whose pages may use the API.
    pub origins: Origins,
    /// Headers that every answer has, in place of those of the same name that it would have: what an operator tells browsers.
    pub headers: Vec<(&'static str, String)>,
    /// What serves clients that come for messages by a WebSocket, if anything does.
    pub web_clients: Option<WebClients>,
    /// What stands before every path on the network, as `/mq`; nothing, if nothing does.
    pub path_prefix: String,
    /// The ways to log in by AMQP.
    pub mechanisms: Vec<&'static str>,
    /// The node's name, as `rabbit@host`.
    pub node: String,
    /// The plugins that are shown as enabled, of those that are built in; `None` is all of them.
    pub plugins: Option<BTreeSet<String>>,
    /// So many nodes the cluster should have.
    pub target_cluster_size: u32,
    /// Leaders of quorum queues are spread when a node has come back.
    pub spreads_after_return: bool,
    /// Who is of the node's cluster, if it is one of several.
    pub members: Option<Members>,
    /// What operators say about the node: names and values (`node_tags`).
    pub node_tags: BTreeMap<String, String>,
    /// The version of RabbitMQ whose behaviour clients may expect.
    pub rabbitmq_version: String,
    /// The other listeners that are open.
    pub listeners: Vec<Arc<Endpoint>>,
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

/// A node of the cluster that this node is one of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// It is this node, or there is a link with it, or a way through another node.
    pub is_running: bool,
    /// The links with it; `None` for this node itself.
    pub links: Option<LinkFigures>,
}

/// The links between this node and another one, added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkFigures {
    /// Where the other one is dialled: a name of the network or an address.
    pub host: String,
    /// And the port there.
    pub port: u16,
    /// Bytes of frames since the other one is known.
    pub sent_bytes: u64,
    /// The same for what came.
    pub received_bytes: u64,
    /// Frames that found no room, or no link.
    pub dropped_frames: u64,
    /// Bytes that wait to be sent.
    pub backlog_bytes: u64,
    /// From the last heartbeat of the lane for work, in microseconds.
    pub round_trip_us: Option<u32>,
    /// The name of the node that passes on clients' work for it, as there is no link.
    pub through: Option<String>,
}

/// Asks nodes by name, each a question, and waits for their answers, for a second at the most; `None` for who says nothing.
pub type AskNodes = dyn Fn(Vec<(String, Vec<u8>)>) -> Vec<Option<Bytes>> + Send + Sync;

/// The cluster that this node is one of.
#[derive(Clone)]
pub struct Members {
    /// Tells all members, this node among them, by name.
    pub list: Arc<dyn Fn() -> Vec<Member> + Send + Sync>,
    /// Asks other members what [`Management::answerer`](crate::Management::answerer) answers there.
    pub ask: Arc<AskNodes>,
    /// Tells what this node leads, of what nodes decide together.
    pub leads: Arc<dyn Fn() -> Leads + Send + Sync>,
}

/// What a node leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leads {
    /// So many groups of nodes, of which the definitions are one.
    pub groups: usize,
    /// Another node runs that could lead them, and is not in maintenance.
    pub has_heir: bool,
}

impl std::fmt::Debug for Members {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Members")
    }
}

/// Asks the process to stop the broker; it does so when it has answered.
#[derive(Clone)]
pub struct StopApplication(pub Arc<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for StopApplication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StopApplication")
    }
}

/// What serves clients whose WebSocket is open.
#[derive(Clone)]
pub struct WebClients {
    /// What is spoken inside.
    pub protocol: Protocol,
    /// Takes a client over.
    pub accept: Arc<dyn Fn(ClientConnection<Parked>) + Send + Sync>,
}

impl std::fmt::Debug for WebClients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebClients")
    }
}

impl Options {
    /// RabbitMQ's defaults for these listeners.
    pub fn new(endpoints: Vec<Endpoint>) -> Self {
        Self {
            endpoints,
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
            spreads_after_return: false,
            members: None,
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
