//! All flags. PerfTest's names, defaults and meanings, in our words; ours stand at the end.

use super::flag::Takes::{Many, Nothing, One, Optional};
use super::flag::{Flag, Group, Takes};

/// Every flag, group by group.
pub fn flags() -> impl Iterator<Item = &'static Flag> {
    TABLES.iter().flat_map(|table| table.iter())
}

/// The flag of this long name.
pub fn by_long(long: &str) -> Option<&'static Flag> {
    flags().find(|flag| flag.long == long)
}

/// The flag of this short name.
pub fn by_short(short: &str) -> Option<&'static Flag> {
    flags().find(|flag| !short.is_empty() && flag.short == short)
}

const TABLES: [&[Flag]; 13] = [
    GENERAL, CONNECTING, SECURITY, TOPOLOGY, PRODUCING, MESSAGES, CONSUMING, STOPPING, REPORTING, INSTANCES,
    OWN, METRICS, VOID,
];

const fn row(
    group: Group,
    short: &'static str,
    long: &'static str,
    takes: Takes,
    default: &'static str,
    text: &'static str,
) -> Flag {
    Flag {
        short,
        long,
        takes,
        default,
        text,
        group,
    }
}

#[rustfmt::skip]
const GENERAL: &[Flag] = {
    const G: Group = Group::General;
    &[
        row(G, "?", "help", Nothing, "", "show this text and end"),
        row(G, "v", "version", Nothing, "", "show the version and end"),
        row(G, "env", "environment-variables", Nothing, "",
            "show the flags as environment variables and end; with --metrics-help the metrics flags"),
        row(G, "mh", "metrics-help", Nothing, "", "show the flags about metrics and end"),
        row(G, "d", "id", One("NAME"), "test-HHmmss-SSS", "name of the run: begins each line, and each connection tells it to the broker"),
    ]
};

#[rustfmt::skip]
const CONNECTING: &[Flag] = {
    const G: Group = Group::Connecting;
    &[
        row(G, "h", "uri", One("URI"), "amqp://localhost", "the broker: amqp[s]://USER:PASSWORD@HOST:PORT/VHOST, percent-encoded"),
        row(G, "H", "uris", One("URI,URI"), "", "several brokers, separated by commas; connections are spread over them"),
        row(G, "cal", "connection-allocation", One("HOW"), "random", "how connections are spread over --uris: random or round-robin"),
        row(G, "M", "framemax", One("BYTES"), "0", "largest frame to agree on; 0: what the broker proposes"),
        row(G, "b", "heartbeat", One("SECONDS"), "0", "heartbeat interval to agree on; 0: none"),
        row(G, "tsbs", "tcp-send-buffer-size", One("BYTES"), "the system's", "send buffer of a socket"),
        row(G, "trbs", "tcp-receive-buffer-size", One("BYTES"), "the system's", "receive buffer of a socket"),
        row(G, "tnd", "tcp-no-delay", One("BOOL"), "true", "send small segments at once (TCP_NODELAY)"),
        row(G, "dcr", "disable-connection-recovery", Nothing, "", "let a lost connection end its work instead of opening it again"),
        row(G, "cri", "connection-recovery-interval", One("SECONDS"), "5", "pause before a lost connection is opened again; 30-60 draws each pause from that range"),
        row(G, "sst", "servers-startup-timeout", One("SECONDS"), "", "wait for this long for brokers that are still starting; without it the run fails at once"),
        row(G, "sul", "servers-up-limit", One("N"), "all given", "how many brokers must be up before the run starts; used with --servers-startup-timeout"),
    ]
};

#[rustfmt::skip]
const SECURITY: &[Flag] = {
    const G: Group = Group::Security;
    &[
        row(G, "udsc", "use-default-ssl-context", Nothing, "", "trust the system's certificate authorities only; without it every certificate is trusted"),
        row(G, "sni", "server-name-indication", One("NAME,NAME"), "", "server name to send in the TLS handshake; the first one counts"),
        row(G, "se", "sasl-external", Nothing, "", "log in with SASL EXTERNAL (client certificate)"),
        row(G, "o2uri", "oauth2-token-endpoint", One("URI"), "", "where to fetch OAuth 2 tokens; asks for --oauth2-client-id and --oauth2-client-secret"),
        row(G, "o2id", "oauth2-client-id", One("ID"), "", "client id for the token endpoint"),
        row(G, "o2sec", "oauth2-client-secret", One("SECRET"), "", "client secret for the token endpoint"),
        row(G, "o2gr", "oauth2-grant-type", One("TYPE"), "client_credentials", "grant type for the token endpoint"),
        row(G, "o2p", "oauth2-parameters", Many("NAME=VALUE"), "", "further parameter for the token endpoint; may come several times"),
    ]
};

#[rustfmt::skip]
const TOPOLOGY: &[Flag] = {
    const G: Group = Group::Topology;
    &[
        row(G, "t", "type", One("TYPE"), "direct", "exchange type"),
        row(G, "e", "exchange", Optional("NAME"), "the type's name", "exchange; amq.default means the default exchange"),
        row(G, "u", "queue", One("NAME,NAME"), "named by the broker", "queue, or several separated by commas; each consumer consumes from all of them; without it each has its own"),
        row(G, "qp", "queue-pattern", One("PATTERN"), "", "pattern of queue names such as perf-%d; the queues are dealt out to producers and consumers in turn"),
        row(G, "qpf", "queue-pattern-from", One("N"), "", "first number of the pattern"),
        row(G, "qpt", "queue-pattern-to", One("N"), "", "last number of the pattern, included"),
        row(G, "qf", "queue-file", One("FILE"), "", "file with a queue name a line; the queues are dealt out in turn"),
        row(G, "k", "routing-key", One("KEY"), "a random UUID", "routing key; with a queue pattern the default is the queue's name"),
        row(G, "K", "random-routing-key", Nothing, "", "a random routing key for each message"),
        row(G, "rkcs", "routing-key-cache-size", One("N"), "0", "make this many random routing keys in advance and use them in turn; 0: a new one each message"),
        row(G, "sb", "skip-binding-queues", Nothing, "", "bind nothing"),
        row(G, "p", "predeclared", Nothing, "", "use the exchange and the queues that exist, as they are; declare only what is missing"),
        row(G, "ad", "auto-delete", One("BOOL"), "true", "whether queues go away with their last consumer"),
        row(G, "E", "exclusive", Nothing, "", "exclusive queues: only the connection that declared one can use it; mostly named by the broker"),
        row(G, "qa", "queue-args", Many("KEY=VALUE,..."), "", "queue arguments; true and false become booleans, whole numbers become longs; may come several times"),
        row(G, "qq", "quorum-queue", Nothing, "", "declare quorum queues: persistent messages and no auto-delete follow"),
        row(G, "sq", "stream-queue", Nothing, "", "declare streams: persistent messages, no auto-delete, --qos 200, 20 GB of 500 MB segments follow"),
        row(G, "mlb", "max-length-bytes", One("SIZE"), "no limit", "largest size of a queue or stream, such as 50mb or 20gb (kb, mb, gb, tb: powers of 1000); 0: no limit"),
        row(G, "smssb", "stream-max-segment-size-bytes", One("SIZE"), "500mb", "size of a stream's segments, at most 3gb"),
        row(G, "ma", "max-age", One("DURATION"), "no limit", "age at which a stream's segments go, in ISO 8601: PT10M30S, P5DT8H"),
        row(G, "ll", "leader-locator", One("WHERE"), "the broker's choice", "where leaders of quorum queues and streams are placed: client-local or balanced"),
    ]
};

#[rustfmt::skip]
const PRODUCING: &[Flag] = {
    const G: Group = Group::Producing;
    &[
        row(G, "x", "producers", One("N"), "1", "connections that publish"),
        row(G, "X", "producer-channel-count", One("N"), "1", "channels on each, with a producer on each channel"),
        row(G, "r", "rate", One("RATE"), "-1", "messages per second from each producer; below 0: no limit; 0: connect and publish nothing"),
        row(G, "vr", "variable-rate", Many("RATE:SECONDS"), "", "rate and how long it holds, several in turn and for ever; wins over --rate"),
        row(G, "P", "publishing-interval", One("SECONDS"), "", "time between two messages of a producer, decimals allowed; wins over the rates"),
        row(G, "prsd", "producer-random-start-delay", One("SECONDS"), "0", "each producer waits for a random time up to this before its first message"),
        row(G, "c", "confirm", One("N"), "-1", "use publisher confirms and have at most N messages unconfirmed on a channel; 0: no limit; below 0: no confirms"),
        row(G, "ct", "confirm-timeout", One("SECONDS"), "30", "how long a producer waits for a confirm before the run fails"),
        row(G, "m", "ptxsize", One("N"), "0", "publish in transactions of N messages; 0: none; excludes --confirm"),
        row(G, "f", "flag", Many("FLAG"), "", "persistent: durable queues and messages; mandatory: unroutable messages come back; may come several times"),
    ]
};

#[rustfmt::skip]
const MESSAGES: &[Flag] = {
    const G: Group = Group::Messages;
    &[
        row(G, "s", "size", One("BYTES"), "12", "size of a body; at least 12, for the sequence number and the time stamp"),
        row(G, "vs", "variable-size", Many("BYTES:SECONDS"), "", "size and how long it holds, several in turn and for ever; wins over --size"),
        row(G, "B", "body", One("FILE,FILE"), "", "files to send as bodies, in turn; the time stamp goes into the header timestamp"),
        row(G, "T", "body-content-type", One("TYPE"), "", "content type of the messages"),
        row(G, "jb", "json-body", Nothing, "", "random JSON documents of about --size bytes as bodies"),
        row(G, "bfc", "body-field-count", One("N"), "1000", "how many fields and values the JSON documents are made of"),
        row(G, "bc", "body-count", One("N"), "100", "how many JSON documents are made in advance"),
        row(G, "mp", "message-properties", One("KEY=VALUE,..."), "", "properties of the messages (contentType, contentEncoding, deliveryMode, priority, correlationId, \
             replyTo, expiration, messageId, timestamp, type, userId, appId, clusterId); other names become headers"),
    ]
};

#[rustfmt::skip]
const CONSUMING: &[Flag] = {
    const G: Group = Group::Consuming;
    &[
        row(G, "y", "consumers", One("N"), "1", "connections that consume"),
        row(G, "Y", "consumer-channel-count", One("N"), "1", "channels on each, with a consumer on each channel"),
        row(G, "R", "consumer-rate", One("RATE"), "-1", "messages per second to each consumer; 0 and below: no limit"),
        row(G, "a", "autoack", Nothing, "", "messages count as acknowledged when they are sent to the consumer"),
        row(G, "A", "multi-ack-every", One("N"), "0", "acknowledge every N messages at once; not more than --qos"),
        row(G, "q", "qos", One("N"), "0", "prefetch of each consumer; 0: no limit"),
        row(G, "Q", "global-qos", One("N"), "0", "prefetch of each channel; 0: no limit"),
        row(G, "na", "nack", Nothing, "", "reject messages (basic.nack) instead of acknowledging them"),
        row(G, "re", "requeue", One("BOOL"), "true", "whether rejected messages go back to the queue"),
        row(G, "n", "ctxsize", One("N"), "0", "acknowledge in transactions of N messages; 0: none"),
        row(G, "L", "consumer-latency", One("MICROSECONDS"), "0", "time a consumer takes for a message"),
        row(G, "vl", "variable-latency", Many("MICROSECONDS:SECONDS"), "", "such a time and how long it holds, several in turn and for ever"),
        row(G, "po", "polling", Nothing, "", "fetch messages with basic.get instead of subscribing"),
        row(G, "pi", "polling-interval", One("MILLISECONDS"), "0", "pause between two basic.get"),
        row(G, "ca", "consumer-args", Many("KEY=VALUE,..."), "", "arguments of the subscription, written as for --queue-args"),
        row(G, "sco", "stream-consumer-offset", One("OFFSET"), "next", "where in a stream to begin: first, last, next, a number, or a time such as 2022-06-03T07:45:54Z"),
        row(G, "S", "slow-start", Nothing, "", "start consumers one second after the other"),
        row(G, "csd", "consumer-start-delay", One("SECONDS"), "0", "start consumers this much later"),
    ]
};

#[rustfmt::skip]
const STOPPING: &[Flag] = {
    const G: Group = Group::Stopping;
    &[
        row(G, "z", "time", One("SECONDS"), "0", "end after this time; 0: never"),
        row(G, "C", "pmessages", One("N"), "0", "messages each producer publishes; 0: no limit"),
        row(G, "D", "cmessages", One("N"), "0", "messages each consumer takes; 0: no limit"),
        row(G, "ew", "exit-when", One("STATE"), "", "empty: end when the queues are empty; idle: end when no message came for a second"),
        row(G, "st", "shutdown-timeout", One("SECONDS"), "5", "how long the end of the run may take"),
    ]
};

#[rustfmt::skip]
const REPORTING: &[Flag] = {
    const G: Group = Group::Reporting;
    &[
        row(G, "i", "interval", One("SECONDS"), "1", "time between two lines of figures"),
        row(G, "mf", "metrics-format", One("FORMAT"), "default", "form of these lines: default or compact"),
        row(G, "em", "exposed-metrics", Many("NAME=NUMBER,..."), "", "metrics that never change; expected_published and expected_consumed also give a ratio"),
        row(G, "o", "output-file", One("FILE"), "", "write the figures of each interval to this file as CSV"),
        row(G, "ms", "use-millis", Nothing, "", "take latency from the wall clock in milliseconds; for producers and consumers on different machines"),
        row(G, "", "verbose", Nothing, "", "print messages received; for low rates"),
        row(G, "", "verbose-full", Nothing, "", "the same with headers and body"),
    ]
};

#[rustfmt::skip]
const INSTANCES: &[Flag] = {
    const G: Group = Group::Instances;
    &[
        row(G, "ei", "expected-instances", One("N"), "0", "start when N instances with the same --id are ready; 0: do not wait"),
        row(G, "isn", "instance-sync-namespace", One("NAME"), "MY_POD_NAMESPACE", "keeps groups of instances with the same --id apart"),
        row(G, "ist", "instance-sync-timeout", One("SECONDS"), "600", "how long to wait for the other instances"),
    ]
};

#[rustfmt::skip]
const METRICS: &[Flag] = {
    const G: Group = Group::Metrics;
    &[
        row(G, "mt", "metrics-tags", Many("NAME=VALUE,..."), "", "labels of all metrics; a later one of the same name wins"),
        row(G, "mpx", "metrics-prefix", One("PREFIX"), "perftest_", "begins the names of the metrics"),
        row(G, "mcla", "metrics-command-line-arguments", Nothing, "", "a metric whose label is the command line"),
        row(G, "mc", "metrics-client", Nothing, "", "metrics of connections, channels and messages as the Java client keeps them"),
        row(G, "mjp", "metrics-processor", Nothing, "", "metrics about processors"),
        row(G, "mjm", "metrics-jvm-memory", Nothing, "", "metrics about memory, as far as a process without a JVM has them"),
        row(G, "mjt", "metrics-jvm-thread", Nothing, "", "metrics about threads, as far as a process without a JVM has them"),
        row(G, "mpr", "metrics-prometheus", Nothing, "", "serve metrics to Prometheus"),
        row(G, "mpe", "metrics-prometheus-endpoint", One("PATH"), "/metrics", "path they are served at"),
        row(G, "mpp", "metrics-prometheus-port", One("PORT"), "8080", "port they are served at"),
        row(G, "mda", "metrics-datadog", Nothing, "", "post metrics to Datadog; asks for --metrics-datadog-api-key"),
        row(G, "mdk", "metrics-datadog-api-key", One("KEY"), "", "Datadog's API key"),
        row(G, "mdak", "metrics-datadog-application-key", One("KEY"), "", "Datadog's application key"),
        row(G, "mds", "metrics-datadog-step-size", One("SECONDS"), "10", "time between two posts"),
        row(G, "mdh", "metrics-datadog-host-tag", One("TAG"), "", "label that becomes Datadog's host"),
        row(G, "mdd", "metrics-datadog-descriptions", Nothing, "", "send descriptions of metrics too"),
        row(G, "mdu", "metrics-datadog-uri", One("URI"), "https://app.datadoghq.com", "where to post"),
        row(G, "mcl", "metrics-class-loader", Nothing, "", "no effect: there is no JVM to load classes"),
        row(G, "mjgc", "metrics-jvm-gc", Nothing, "", "no effect: there is no garbage collector"),
        row(G, "mjx", "metrics-jmx", Nothing, "", "no effect: there is no JVM to serve JMX"),
    ]
};

#[rustfmt::skip]
const OWN: &[Flag] = {
    const G: Group = Group::Own;
    &[
        row(G, "", "latency-from", One("MOMENT"), "intended", "what latency counts from: intended, when the schedule asked for the message; sent, when it was written, as PerfTest does"),
        row(G, "", "verify", Nothing, "", "number and checksum each message and account for all of them at the end; --size at least 40, which becomes its default"),
        row(G, "", "max-in-flight", One("N"), "no limit", "have at most N messages published and not yet consumed, over all queues"),
        row(G, "", "json", One("FILE"), "", "write the whole run to this file as JSON"),
        row(G, "", "hdr", One("FILE"), "", "write the run's latency histograms to this file in HdrHistogram's log format"),
        row(G, "", "threads", One("N"), "half of the cores", "threads that drive the connections"),
        row(G, "", "declare-uri", One("URI"), "as --uri", "declare and delete the exchange and the queues there, such as on the node of a cluster that is to own them; queues that consumers declare for themselves stay theirs"),
        row(G, "", "delete-queues", Nothing, "", "delete the queues, and the exchange if it was declared, at the end"),
    ]
};

#[rustfmt::skip]
const VOID: &[Flag] = {
    const G: Group = Group::Void;
    &[
        row(G, "l", "legacy-metrics", Nothing, "", "PerfTest itself dropped these lines in 2.19"),
        row(G, "hst", "heartbeat-sender-threads", One("N"), "", "heartbeats need no threads here"),
        row(G, "ctp", "consumers-thread-pools", One("N"), "", "consumers need no thread pools here"),
        row(G, "pst", "producer-scheduler-threads", One("N"), "", "producers need no scheduler threads here"),
        row(G, "niot", "nio-threads", One("N"), "", "see --threads"),
        row(G, "niotp", "nio-thread-pool", One("N"), "", "see --threads"),
        row(G, "nty", "netty", Nothing, "", "connections never block a thread here"),
        row(G, "ntyt", "netty-threads", One("N"), "", "see --threads"),
        row(G, "ntyep", "netty-epoll", Nothing, "", "epoll is always used on Linux"),
        row(G, "ntykq", "netty-kqueue", Nothing, "", "kqueue is always used on macOS"),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 11a of the features, written down by hand: short and long name of each row, also of those that share a row.
    const PERFTEST: &[(&str, &[&str])] = &[
        (
            "General",
            &[
                "? help",
                "v version",
                "env environment-variables",
                "mh metrics-help",
                "d id",
            ],
        ),
        (
            "Connections",
            &[
                "h uri",
                "H uris",
                "cal connection-allocation",
                "M framemax",
                "b heartbeat",
            ],
        ),
        (
            "Exchange",
            &[
                "t type",
                "e exchange",
                "u queue",
                "qp queue-pattern",
                "qpf queue-pattern-from",
            ],
        ),
        (
            "Queues",
            &[
                "qpt queue-pattern-to",
                "qf queue-file",
                "k routing-key",
                "K random-routing-key",
            ],
        ),
        (
            "Keys",
            &[
                "rkcs routing-key-cache-size",
                "sb skip-binding-queues",
                "p predeclared",
                "ad auto-delete",
            ],
        ),
        (
            "Kinds",
            &[
                "E exclusive",
                "qa queue-args",
                "qq quorum-queue",
                "sq stream-queue",
                "mlb max-length-bytes",
            ],
        ),
        (
            "Streams",
            &[
                "smssb stream-max-segment-size-bytes",
                "ma max-age",
                "ll leader-locator",
            ],
        ),
        ("Offsets", &["sco stream-consumer-offset"]),
        (
            "Counts",
            &[
                "x producers",
                "y consumers",
                "X producer-channel-count",
                "Y consumer-channel-count",
            ],
        ),
        (
            "Rates",
            &[
                "r rate",
                "R consumer-rate",
                "P publishing-interval",
                "prsd producer-random-start-delay",
            ],
        ),
        (
            "Starts",
            &[
                "pst producer-scheduler-threads",
                "S slow-start",
                "csd consumer-start-delay",
            ],
        ),
        (
            "Variable",
            &["vr variable-rate", "vs variable-size", "vl variable-latency"],
        ),
        (
            "Bodies",
            &[
                "s size",
                "B body",
                "T body-content-type",
                "jb json-body",
                "bfc body-field-count",
            ],
        ),
        ("Messages", &["bc body-count", "f flag", "mp message-properties"]),
        (
            "Confirms",
            &[
                "c confirm",
                "ct confirm-timeout",
                "m ptxsize",
                "n ctxsize",
                "a autoack",
            ],
        ),
        (
            "Acks",
            &[
                "A multi-ack-every",
                "q qos",
                "Q global-qos",
                "na nack",
                "re requeue",
            ],
        ),
        (
            "Consumers",
            &[
                "L consumer-latency",
                "po polling",
                "pi polling-interval",
                "ca consumer-args",
            ],
        ),
        (
            "Stops",
            &[
                "z time",
                "C pmessages",
                "D cmessages",
                "ew exit-when",
                "st shutdown-timeout",
            ],
        ),
        (
            "Output",
            &[
                "i interval",
                "o output-file",
                "ms use-millis",
                "mf metrics-format",
                "l legacy-metrics",
            ],
        ),
        ("Verbose", &[" verbose", " verbose-full"]),
        (
            "Threads",
            &[
                "hst heartbeat-sender-threads",
                "ctp consumers-thread-pools",
                "niot nio-threads",
            ],
        ),
        (
            "Netty",
            &[
                "niotp nio-thread-pool",
                "nty netty",
                "ntyt netty-threads",
                "ntyep netty-epoll",
            ],
        ),
        (
            "Sockets",
            &[
                "ntykq netty-kqueue",
                "tsbs tcp-send-buffer-size",
                "trbs tcp-receive-buffer-size",
            ],
        ),
        (
            "TLS",
            &[
                "tnd tcp-no-delay",
                "udsc use-default-ssl-context",
                "se sasl-external",
                "sni server-name-indication",
            ],
        ),
        (
            "OAuth",
            &[
                "o2uri oauth2-token-endpoint",
                "o2id oauth2-client-id",
                "o2sec oauth2-client-secret",
            ],
        ),
        ("Grants", &["o2gr oauth2-grant-type", "o2p oauth2-parameters"]),
        (
            "Recovery",
            &[
                "dcr disable-connection-recovery",
                "cri connection-recovery-interval",
            ],
        ),
        (
            "Starting",
            &["sst servers-startup-timeout", "sul servers-up-limit"],
        ),
        (
            "Instances",
            &[
                "ei expected-instances",
                "isn instance-sync-namespace",
                "ist instance-sync-timeout",
            ],
        ),
        (
            "Common",
            &["em exposed-metrics", "mt metrics-tags", "mpx metrics-prefix"],
        ),
        (
            "Arguments",
            &[
                "mcla metrics-command-line-arguments",
                "mc metrics-client",
                "mcl metrics-class-loader",
            ],
        ),
        (
            "JVM",
            &[
                "mjm metrics-jvm-memory",
                "mjgc metrics-jvm-gc",
                "mjp metrics-processor",
                "mjt metrics-jvm-thread",
            ],
        ),
        (
            "Prometheus",
            &[
                "mpr metrics-prometheus",
                "mpe metrics-prometheus-endpoint",
                "mpp metrics-prometheus-port",
            ],
        ),
        (
            "Datadog",
            &[
                "mda metrics-datadog",
                "mdk metrics-datadog-api-key",
                "mdak metrics-datadog-application-key",
            ],
        ),
        (
            "More",
            &[
                "mds metrics-datadog-step-size",
                "mdh metrics-datadog-host-tag",
                "mdd metrics-datadog-descriptions",
            ],
        ),
        ("Rest", &["mdu metrics-datadog-uri", "mjx metrics-jmx"]),
    ];
    const OURS: [&str; 8] = [
        "latency-from",
        "verify",
        "max-in-flight",
        "json",
        "hdr",
        "threads",
        "declare-uri",
        "delete-queues",
    ];

    #[test]
    fn every_flag_of_perftest_is_there_and_no_other_than_ours() {
        let mut wanted: Vec<(&str, &str)> = PERFTEST
            .iter()
            .flat_map(|(_, rows)| rows.iter())
            .filter_map(|row| row.split_once(' '))
            .collect();
        wanted.extend(OURS.iter().map(|long| ("", *long)));
        for (short, long) in &wanted {
            let flag = by_long(long).unwrap_or_else(|| panic!("--{long} is missing"));
            assert_eq!(flag.short, *short, "--{long}");
        }
        let extra: Vec<_> = flags()
            .filter(|flag| !wanted.iter().any(|(_, long)| *long == flag.long))
            .collect();
        assert!(extra.is_empty(), "{extra:?}");
    }

    #[test]
    fn no_name_comes_twice() {
        let mut longs: Vec<_> = flags().map(|flag| flag.long).collect();
        let mut shorts: Vec<_> = flags()
            .map(|flag| flag.short)
            .filter(|it| !it.is_empty())
            .collect();
        longs.sort_unstable();
        shorts.sort_unstable();
        assert!(longs.windows(2).all(|two| two[0] != two[1]));
        assert!(shorts.windows(2).all(|two| two[0] != two[1]));
    }
}
