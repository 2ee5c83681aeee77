//! The plan of a run over the stream protocol: what the command line asked for, typed and checked.

use crate::failure::Failure;
use crate::plan::{Connecting, Format, Instances, LatencyFrom};
use crate::uri::{Scheme, Uri};
use model::chunk::Compression;
use protocol::stream::OffsetSpec;
use std::path::PathBuf;
use std::time::Duration;

/// Addresses of brokers that speak the stream protocol.
pub const STREAM: Scheme = Scheme {
    plain: "rabbitmq-stream",
    tls: "rabbitmq-stream+tls",
    port: 5552,
    tls_port: 5551,
};

/// Everything a run needs to know.
#[derive(Debug, Clone)]
pub struct Plan {
    /// `--id`, or the time of the start.
    pub id: String,
    /// The arguments as they were given, passwords in addresses replaced.
    pub arguments: Vec<String>,
    pub connection: Connection,
    pub streams: Streams,
    pub producing: Producing,
    pub consuming: Consuming,
    /// `--time`.
    pub time: Option<Duration>,
    pub report: Reporting,
    /// `--expected-instances` with the address where they meet.
    pub instances: Option<(Instances, Uri)>,
    /// `--verify`: number and checksum every message, and account for each at the end.
    pub verify: bool,
    /// `--threads`: at least 1.
    pub threads: usize,
}

/// How connections are opened and kept.
#[derive(Debug, Clone)]
pub struct Connection {
    /// `--uris`: at least one.
    pub uris: Vec<Uri>,
    /// `--load-balancer`.
    pub load_balancer: bool,
    /// False with `--no-dev-mode`: otherwise, if the only address is localhost, all connections go there.
    pub development: bool,
    /// Sockets and TLS. Its frame size is in bytes, 0: what the broker proposes; its heartbeat in seconds, 0: none.
    pub socket: Connecting,
    /// `--rpc-timeout`.
    pub answer_within: Duration,
    /// `--connection-recovery-interval`: the pause before the first attempt and before the others.
    pub recovery: (Duration, Duration),
    /// `--topology-recovery-interval`: the same where the broker has moved a stream.
    pub relocation: (Duration, Duration),
}

/// Which streams take part and how they are made.
#[derive(Debug, Clone)]
pub struct Streams {
    /// At least one.
    pub names: Vec<String>,
    /// `--super-streams` with `--super-stream-partitions`.
    pub partitions: Option<usize>,
    /// What a stream is made with.
    pub arguments: Vec<(&'static str, String)>,
    /// `--delete-streams`.
    pub delete_at_end: bool,
}

/// What producers do.
#[derive(Debug, Clone)]
pub struct Producing {
    pub producers: usize,
    /// `--producers-by-connection`.
    pub by_connection: usize,
    /// `--rate`: messages a second and producer.
    pub rate: Option<f64>,
    /// `--confirms`: messages of a producer that may be unconfirmed; at least 1.
    pub confirms: u64,
    /// `--batch-size`: entries in a frame.
    pub batch: usize,
    /// `--batch-publishing-delay`, if `--dynamic-batch-size` is false.
    pub gather: Option<Duration>,
    /// `--sub-entry-size`: messages in an entry.
    pub sub_entry: u16,
    pub compression: Compression,
    /// `--producer-names`.
    pub names: Option<Names>,
    /// `--pmessages`: messages of a producer.
    pub messages: Option<u64>,
    /// `--filter-value-set`.
    pub filter_values: Vec<String>,
    /// `--size`, in bytes; at least 8.
    pub size: usize,
    pub codec: Codec,
    pub latency_from: LatencyFrom,
}

/// `--codec`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Sections of AMQP 1.0.
    Amqp,
    /// The body as it is.
    Simple,
}

/// `--producer-names`, `--consumer-names`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Names {
    /// A random one each.
    Random,
    /// `%s` is the stream, `%d` the number, from 1 on.
    Pattern(String),
}

/// What consumers do.
#[derive(Debug, Clone)]
pub struct Consuming {
    pub consumers: usize,
    /// `--consumers-by-connection`.
    pub by_connection: usize,
    /// `--consumer-rate`: messages a second and consumer.
    pub rate: Option<f64>,
    /// `--consumer-latency`: time a message takes.
    pub latency: Duration,
    pub from: OffsetSpec,
    /// `--credits`, `--initial-credits`: chunks at first, and after how many of them as many are asked for.
    pub credits: (u16, u16),
    /// `--store-every`: messages.
    pub store_every: Option<u64>,
    pub names: Names,
    /// `--single-active-consumer`.
    pub single_active: bool,
    /// `--filter-values`.
    pub filter_values: Vec<String>,
    /// `--cmessages`: messages of a consumer.
    pub messages: Option<u64>,
    /// `--force-replica-for-consumers`.
    pub force_replica: bool,
}

/// What is told while the run goes on and at its end.
#[derive(Debug, Clone)]
pub struct Reporting {
    pub confirm_latency: bool,
    /// False with `--no-latency`.
    pub latency: bool,
    pub byte_rates: bool,
    pub batch_size: bool,
    pub memory: bool,
    pub format: Format,
    pub summary_file: bool,
    pub json: Option<PathBuf>,
    pub hdr: Option<PathBuf>,
    /// `--prometheus` with `--monitoring-port`.
    pub prometheus: Option<u16>,
    /// `--metrics-tags`.
    pub tags: Vec<(String, String)>,
    /// `--metrics-command-line-arguments`.
    pub arguments: bool,
}

impl Plan {
    /// The streams that are published to and read: those of a super stream by its name in front, as the Java client names them.
    pub fn partitions_of(&self, name: &str) -> Vec<String> {
        match self.streams.partitions {
            None => vec![name.to_owned()],
            Some(count) => {
                let digits = (count.saturating_sub(1)).to_string().len();
                (0..count).map(|at| format!("{name}-{at:0digits$}")).collect()
            }
        }
    }
}

impl Names {
    /// The name of number `index`, from 1 on.
    pub fn of(&self, stream: &str, index: usize) -> String {
        match self {
            Self::Random => {
                let random = fastrand::u128(..);
                format!(
                    "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                    random >> 96,
                    random >> 80 & 0xffff,
                    random >> 64 & 0xffff,
                    random >> 48 & 0xffff,
                    random & 0xffff_ffff_ffff
                )
            }
            Self::Pattern(pattern) => pattern
                .replace("%s", stream)
                .replace("%d", &index.to_string())
                .replace("%%", "%"),
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// For a pattern that has anything but `%s`, `%d` and `%%` in it.
    pub fn parse(long: &str, text: &str) -> Result<Self, Failure> {
        if text == "uuid" {
            return Ok(Self::Random);
        }
        let rest = text.replace("%%", "").replace("%s", "").replace("%d", "");
        if rest.contains('%') {
            let text = format!(
                "--{long} is '{text}': write uuid, or a pattern with %s for the stream and %d for the number."
            );
            return Err(Failure::Usage(text));
        }
        Ok(Self::Pattern(text.to_owned()))
    }
}
