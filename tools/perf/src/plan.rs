//! The plan of a run: what the command line asked for, typed and checked. Made by `cli`, read by everybody else.

use crate::uri::Uri;
use model::table::Table;
use std::path::PathBuf;
use std::time::Duration;

/// Everything a run needs to know.
#[derive(Debug, Clone)]
pub struct Plan {
    /// `--id`: stands at the beginning of each line and in the client properties of each connection.
    pub id: String,
    /// The arguments as they were given, secrets in URIs replaced; for the reports.
    pub arguments: Vec<String>,
    /// `--uri`, `--uris`: at least one.
    pub uris: Vec<Uri>,
    /// `--declare-uri`: where exchange and queues are declared, if not where the others connect to.
    pub declare_uri: Option<Uri>,
    /// `--connection-allocation`: which URI a connection takes first.
    pub allocation: Allocation,
    pub connection: Connecting,
    pub exchange: Exchange,
    pub queues: Queues,
    pub routing: Routing,
    pub producing: Producing,
    pub message: MessagePlan,
    pub consuming: Consuming,
    pub stopping: Stopping,
    pub report: Reporting,
    pub exporter: Exporting,
    /// `--expected-instances` and what belongs to it.
    pub instances: Option<Instances>,
    /// `--threads`: how many threads drive the connections; at least 1.
    pub threads: usize,
    /// Without PerfTest's match: how many messages may be published and not yet consumed, over all queues.
    pub max_in_flight: Option<u64>,
    /// `--verify`: number and checksum every message, and account for each at the end.
    pub verify: bool,
}

/// `--connection-allocation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    Random,
    RoundRobin,
}

/// How connections are opened and kept.
#[derive(Debug, Clone)]
pub struct Connecting {
    /// `--framemax`, in bytes; 0: what the broker proposes.
    pub frame_max: u32,
    /// `--heartbeat`, in seconds; 0: none.
    pub heartbeat_s: u16,
    /// `--tcp-send-buffer-size`, `--tcp-receive-buffer-size`: bytes; `None`: the system's default.
    pub send_buffer: Option<usize>,
    pub receive_buffer: Option<usize>,
    /// `--tcp-no-delay`.
    pub no_delay: bool,
    /// `--use-default-ssl-context`: trust the system's certificates; otherwise every certificate is trusted, as PerfTest does.
    pub verify_peer: bool,
    /// `--server-name-indication`: names to send; the first one is used.
    pub server_names: Vec<String>,
    /// `--sasl-external`.
    pub sasl_external: bool,
    /// `--disable-connection-recovery` makes this `None`; otherwise the pause before an attempt, drawn from the range.
    pub recovery: Option<(Duration, Duration)>,
    /// `--servers-startup-timeout`: how long to wait at the start for brokers to come up.
    pub startup_timeout: Option<Duration>,
    /// `--servers-up-limit`: how many URIs must answer; `None`: all.
    pub servers_up_limit: Option<usize>,
    /// `--oauth2-…`.
    pub oauth2: Option<OAuth2>,
}

/// Where tokens come from.
#[derive(Clone)]
pub struct OAuth2 {
    pub endpoint: String,
    pub client_id: String,
    pub client_secret: String,
    pub grant_type: String,
    /// Further form parameters, in the order given.
    pub parameters: Vec<(String, String)>,
}

impl std::fmt::Debug for OAuth2 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "OAuth2 {{ endpoint: {:?}, client_id: {:?} }}",
            self.endpoint, self.client_id
        )
    }
}

/// `--exchange`, `--type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Empty: the default exchange.
    pub name: String,
    pub kind: String,
}

/// Which queues take part and how they are declared.
#[derive(Debug, Clone)]
pub struct Queues {
    pub names: QueueNames,
    /// From the flags alone; a broker from version 4.3 on gets durable queues anyway, as from PerfTest.
    pub durable: bool,
    pub auto_delete: bool,
    pub exclusive: bool,
    pub arguments: Table,
    /// `--predeclared`: what exists is used as it is, and only what is missing is declared.
    pub predeclared: bool,
    /// `--skip-binding-queues`.
    pub skip_binding: bool,
    /// `--delete-queues`: delete the queues (and the exchange, if declared and not `amq.*`) when the run is over.
    pub delete_at_end: bool,
}

/// Names of queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueNames {
    /// The broker makes up one name.
    ServerNamed,
    /// `--queue`, `--queue-file`: every consumer consumes from all of them, as PerfTest's do.
    Fixed(Vec<String>),
    /// `--queue-pattern`: shared out among producers and consumers, one after the other; the routing key of a queue is its name.
    Sequence(Vec<String>),
}

/// `--routing-key`, `--random-routing-key`, `--routing-key-cache-size`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routing {
    /// `None`: a random UUID (or the queue's name for a sequence).
    pub key: Option<String>,
    pub random: bool,
    /// How many random keys are made in advance and used in turn; 0: a new one each message.
    pub cache: usize,
}

/// What producers do.
#[derive(Debug, Clone)]
pub struct Producing {
    /// Connections.
    pub producers: usize,
    /// Channels a connection, a producer on each.
    pub channels: usize,
    pub schedule: Schedule,
    /// `--producer-random-start-delay`: the first message waits for up to this long.
    pub random_start_delay: Duration,
    /// `--confirm`: messages that may be unconfirmed on a channel at a time.
    pub confirm: Option<u32>,
    /// `--confirm-timeout`.
    pub confirm_timeout: Duration,
    /// `--ptxsize`: messages a transaction; 0: none.
    pub transaction: u32,
    pub mandatory: bool,
    pub persistent: bool,
    /// `--pmessages`: messages a producer (channel).
    pub messages: Option<u64>,
    /// Which moment a message's latency counts from.
    pub latency_from: LatencyFrom,
}

/// `--latency-from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyFrom {
    /// When the schedule asked for the message.
    Intended,
    /// When it was written, as PerfTest does.
    Sent,
}

/// When messages are due.
#[derive(Debug, Clone, PartialEq)]
pub enum Schedule {
    /// As fast as can be.
    Unlimited,
    /// `--rate`: messages a second and producer (channel). 0: connect and never publish.
    Rate(f64),
    /// `--publishing-interval`: time between messages.
    Interval(Duration),
    /// `--variable-rate`: rates with how long they hold, for ever in turn; below 0: unlimited.
    Variable(Vec<(f64, Duration)>),
}

/// What a message consists of.
#[derive(Debug, Clone)]
pub struct MessagePlan {
    pub body: BodyPlan,
    /// `--body-content-type` or what `--message-properties` say.
    pub properties: Properties,
}

/// Where bodies come from.
#[derive(Debug, Clone)]
pub enum BodyPlan {
    /// `--size`, in bytes; less than 12 becomes 12.
    Size(usize),
    /// `--variable-size`: sizes with how long they hold, for ever in turn.
    VariableSize(Vec<(usize, Duration)>),
    /// `--body`: files, in turn; the time stamp goes into a header.
    Files(Vec<PathBuf>),
    /// `--json-body` of about this many bytes; the time stamp goes into a header.
    Json {
        size: usize,
        fields: usize,
        bodies: usize,
    },
}

/// `--message-properties` and `--body-content-type`.
#[derive(Debug, Clone, Default)]
pub struct Properties {
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    /// Wins over the persistent flag, as in PerfTest.
    pub delivery_mode: Option<u8>,
    pub priority: Option<u8>,
    pub correlation_id: Option<String>,
    pub reply_to: Option<String>,
    pub expiration: Option<String>,
    pub message_id: Option<String>,
    /// Seconds since 1970.
    pub timestamp: Option<u64>,
    pub kind: Option<String>,
    pub user_id: Option<String>,
    pub app_id: Option<String>,
    pub cluster_id: Option<String>,
    pub headers: Table,
}

/// What consumers do.
#[derive(Debug, Clone)]
pub struct Consuming {
    /// Connections.
    pub consumers: usize,
    /// Channels a connection, a consumer on each.
    pub channels: usize,
    /// `--consumer-rate`: messages a second and consumer.
    pub rate: Option<f64>,
    pub auto_ack: bool,
    /// `--multi-ack-every`: 0: each alone.
    pub multi_ack_every: u32,
    /// `--qos`: prefetch of a consumer; 0: none.
    pub prefetch: u16,
    /// `--global-qos`: prefetch of a channel; 0: none.
    pub channel_prefetch: u16,
    /// `--nack` with `--requeue`: `Some(requeue)`.
    pub nack: Option<bool>,
    /// `--ctxsize`: messages a transaction; 0: none.
    pub transaction: u32,
    /// `--consumer-latency`, `--variable-latency`: time a message takes, with how long it holds, for ever in turn. Empty: none.
    pub latency: Vec<(Duration, Duration)>,
    /// `--polling` with `--polling-interval`: `basic.get` instead of `basic.consume`.
    pub polling: Option<Duration>,
    /// `--consumer-args`.
    pub arguments: Table,
    /// `--cmessages`: messages a consumer (channel).
    pub messages: Option<u64>,
    /// `--slow-start`: a second between consumers.
    pub slow_start: bool,
    /// `--consumer-start-delay`.
    pub start_delay: Duration,
}

/// When a run is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopping {
    /// `--time`.
    pub time: Option<Duration>,
    /// `--exit-when`.
    pub exit_when: Option<ExitWhen>,
    /// `--shutdown-timeout`.
    pub shutdown_timeout: Duration,
}

/// `--exit-when`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitWhen {
    /// The queues are empty (a passive declare says so).
    Empty,
    /// No message came for a second.
    Idle,
}

/// What is told while the run goes on and at its end.
#[derive(Debug, Clone)]
pub struct Reporting {
    /// `--interval`.
    pub interval: Duration,
    /// `--metrics-format`.
    pub format: Format,
    /// `--output-file`: CSV.
    pub csv: Option<PathBuf>,
    /// `--json`.
    pub json: Option<PathBuf>,
    /// `--hdr`: the whole run's histograms in HdrHistogram's log format.
    pub hdr: Option<PathBuf>,
    /// `--use-millis`: the wall clock in milliseconds instead of the monotonic one in nanoseconds.
    pub millis: bool,
    pub verbose: Verbose,
}

/// `--metrics-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Default,
    Compact,
}

/// `--verbose`, `--verbose-full`: print the messages received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbose {
    No,
    /// The first message of each interval.
    Sampled,
    Full,
}

/// Metrics for others to collect.
#[derive(Debug, Clone, Default)]
pub struct Exporting {
    /// `--metrics-tags`: labels, a later one of the same name winning.
    pub tags: Vec<(String, String)>,
    /// `--metrics-prefix`.
    pub prefix: String,
    /// `--metrics-command-line-arguments`.
    pub arguments: bool,
    /// `--metrics-client`.
    pub client: bool,
    /// `--metrics-processor`, `--metrics-jvm-memory`, `--metrics-jvm-thread`: what a process without a JVM can tell of these.
    pub processor: bool,
    pub memory: bool,
    pub threads: bool,
    /// `--exposed-metrics`: gauges that never change.
    pub exposed: Vec<(String, f64)>,
    /// `--metrics-prometheus`: port and path.
    pub prometheus: Option<(u16, String)>,
    pub datadog: Option<Datadog>,
}

/// `--metrics-datadog…`.
#[derive(Clone)]
pub struct Datadog {
    pub api_key: String,
    pub application_key: Option<String>,
    pub step: Duration,
    pub host_tag: Option<String>,
    pub descriptions: bool,
    pub uri: String,
}

impl std::fmt::Debug for Datadog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Datadog {{ uri: {:?}, step: {:?} }}", self.uri, self.step)
    }
}

/// `--expected-instances`, `--instance-sync-namespace`, `--instance-sync-timeout`; the group is named by the plan's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instances {
    pub expected: usize,
    pub namespace: Option<String>,
    pub timeout: Duration,
}
