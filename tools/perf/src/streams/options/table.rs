//! All flags of `leveret stream-perf`: stream-perf-test's names, defaults and meanings, in our words; ours stand at the end.

use crate::cli::flag::Takes::{Nothing, One, Optional};
use crate::cli::flag::{Flag, Group, Takes};

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

/// The groups in the order of the help, with their headings.
pub const GROUPS: [(Group, &str); 11] = [
    (Group::General, "General"),
    (Group::Connecting, "Connections"),
    (Group::Topology, "Streams"),
    (Group::Producing, "Publishing"),
    (Group::Messages, "Messages"),
    (Group::Consuming, "Consuming"),
    (Group::Stopping, "When the run ends"),
    (Group::Reporting, "Output and metrics"),
    (Group::Instances, "Several instances at once"),
    (Group::Own, "Leveret's own (stream-perf-test has none of these)"),
    (
        Group::Void,
        "Accepted for stream-perf-test's sake, without effect here",
    ),
];

const TABLES: [&[Flag]; 11] = [
    GENERAL, CONNECTING, STREAMS, PUBLISHING, MESSAGES, CONSUMING, STOPPING, REPORTING, INSTANCES, OWN, VOID,
];

/// A flag that may have `true` or `false` behind it.
const SWITCH: Takes = Optional("BOOL");

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
        row(G, "h", "help", Nothing, "", "show this text and end"),
        row(G, "v", "version", SWITCH, "", "show the version and end"),
        row(G, "env", "environment-variables", SWITCH, "", "show the flags as environment variables and end"),
    ]
};

#[rustfmt::skip]
const CONNECTING: &[Flag] = {
    const G: Group = Group::Connecting;
    &[
        row(G, "u", "uris", One("URI,URI"), "rabbitmq-stream://localhost:5552",
            "brokers to connect to: rabbitmq-stream[+tls]://USER:PASSWORD@HOST:PORT/VHOST, percent-encoded, separated by commas"),
        row(G, "lb", "load-balancer", SWITCH, "false",
            "the URIs are of a load balancer: connect to them until the node behind it is the right one"),
        row(G, "ndm", "no-dev-mode", SWITCH, "false",
            "with localhost as the only URI, connect to where the broker says that its streams are, too"),
        row(G, "rmfs", "requested-max-frame-size", One("SIZE"), "5242880", "largest frame to agree on; 0: what the broker proposes"),
        row(G, "b", "heartbeat", One("SECONDS"), "60", "heartbeat interval to agree on; 0: none"),
        row(G, "rt", "rpc-timeout", One("SECONDS"), "10", "how long an answer may take"),
        row(G, "cri", "connection-recovery-interval", One("SECONDS"), "5",
            "pause before a lost connection is opened again; 5:10 waits 5 s before the first attempt and 10 s between the others"),
        row(G, "tri", "topology-recovery-interval", One("SECONDS"), "5:1",
            "the same for a stream that the broker has moved to another node"),
        row(G, "tsbs", "tcp-send-buffer-size", One("SIZE"), "0", "send buffer of a socket; 0: the system's"),
        row(G, "trbs", "tcp-receive-buffer-size", One("SIZE"), "0", "receive buffer of a socket; 0: the system's"),
        row(G, "tnd", "tcp-no-delay", SWITCH, "true", "send small segments at once (TCP_NODELAY)"),
        row(G, "sni", "server-name-indication", One("NAME,NAME"), "", "server name to send in the TLS handshake; the first one counts"),
    ]
};

#[rustfmt::skip]
const STREAMS: &[Flag] = {
    const G: Group = Group::Topology;
    &[
        row(G, "st", "streams", One("NAME,NAME"), "stream", "streams to publish to and consume from; with --stream-count a pattern such as stream-%d"),
        row(G, "sc", "stream-count", One("N"), "1", "how many streams, numbered after --streams: 10, or a range such as 1-10"),
        row(G, "mlb", "max-length-bytes", One("SIZE"), "20gb", "largest size of a stream that is made (kb, mb, gb, tb: powers of 1000); 0: no limit"),
        row(G, "smssb", "stream-max-segment-size-bytes", One("SIZE"), "500mb", "size of its segments, at most 3gb"),
        row(G, "ma", "max-age", One("DURATION"), "", "age at which its segments go: 10m30s, PT10M30S, P5DT8H"),
        row(G, "imc", "initial-member-count", One("N"), "", "how many members it has [default: the broker's choice]"),
        row(G, "ll", "leader-locator", One("WHERE"), "balanced", "where its leader is placed: client-local, balanced, least-leaders or random"),
        row(G, "fs", "filter-size", One("BYTES"), "16", "size of the filter of each chunk, from 16 to 255"),
        row(G, "ds", "delete-streams", SWITCH, "false", "delete the streams at the end"),
        row(G, "sst", "super-streams", SWITCH, "false", "use super streams (RabbitMQ 3.13 and later)"),
        row(G, "ssp", "super-stream-partitions", One("N"), "3", "how many streams a super stream has"),
    ]
};

#[rustfmt::skip]
const PUBLISHING: &[Flag] = {
    const G: Group = Group::Producing;
    &[
        row(G, "x", "producers", One("N"), "1", "producers"),
        row(G, "r", "rate", One("RATE"), "-1", "messages per second from each producer; 0 and below: no limit"),
        row(G, "c", "confirms", One("N"), "10000", "have at most N messages of a producer unconfirmed"),
        row(G, "bs", "batch-size", One("N"), "100", "messages (or sub-batches) in a frame, at most"),
        row(G, "dbs", "dynamic-batch-size", SWITCH, "true", "send what there is at once; false waits for full batches"),
        row(G, "bpd", "batch-publishing-delay", One("MILLISECONDS"), "100", "how long messages wait for a full batch with --dynamic-batch-size false; 0: not at all"),
        row(G, "ses", "sub-entry-size", One("N"), "1", "put N messages into one entry (a sub-batch)"),
        row(G, "co", "compression", One("HOW"), "none", "compress sub-batches: none, gzip, snappy, lz4 or zstd"),
        row(G, "pn", "producer-names", One("PATTERN"), "", "name producers, so that the broker recognises what they send again: uuid, or a pattern such as %s-%d of stream and number"),
        row(G, "pbc", "producers-by-connection", One("N"), "1", "producers on a connection, from 1 to 255"),
        row(G, "fvs", "filter-value-set", One("VALUES"), "", "publish with filter values: a,b,c or a range such as 1..15"),
    ]
};

#[rustfmt::skip]
const MESSAGES: &[Flag] = {
    const G: Group = Group::Messages;
    &[
        row(G, "s", "size", One("BYTES"), "10", "size of a body; at least 8, for the time stamp"),
        row(G, "cc", "codec", One("CODEC"), "internal", "how messages are encoded: internal or qpid (AMQP 1.0, which is the same here), or simple (the bare body)"),
    ]
};

#[rustfmt::skip]
const CONSUMING: &[Flag] = {
    const G: Group = Group::Consuming;
    &[
        row(G, "y", "consumers", One("N"), "1", "consumers"),
        row(G, "R", "consumer-rate", One("RATE"), "-1", "messages per second to each consumer; 0 and below: no limit"),
        row(G, "L", "consumer-latency", One("DURATION"), "0", "time a consumer takes for a message: 5ms, 200us, 1s"),
        row(G, "o", "offset", One("OFFSET"), "next", "where in a stream to begin: first, last, next, a number, or a time such as 2022-06-03T07:45:54Z"),
        row(G, "ic", "initial-credits", One("N"), "10", "chunks a consumer may be sent at first; each one that comes is asked for again"),
        row(G, "", "credits", One("N-M"), "", "the same with one request for every M chunks, such as 10-5; N alone: half of it"),
        row(G, "se", "store-every", One("N"), "0", "store the offset after every N messages; 0: never"),
        row(G, "cn", "consumer-names", One("PATTERN"), "%s-%d", "names under which offsets are stored: uuid, or a pattern of stream and number"),
        row(G, "cbc", "consumers-by-connection", One("N"), "1", "consumers on a connection, from 1 to 255"),
        row(G, "sac", "single-active-consumer", SWITCH, "false", "of consumers with the same name one is active; stores offsets, every 10,000 messages by default"),
        row(G, "fv", "filter-values", One("VALUE,VALUE"), "", "be sent messages with these filter values only"),
        row(G, "frfc", "force-replica-for-consumers", SWITCH, "false", "connect consumers to replicas, never to a leader"),
    ]
};

#[rustfmt::skip]
const STOPPING: &[Flag] = {
    const G: Group = Group::Stopping;
    &[
        row(G, "z", "time", One("SECONDS"), "0", "end after this time; 0: never"),
        row(G, "C", "pmessages", One("N"), "0", "messages each producer publishes; 0: no limit"),
        row(G, "D", "cmessages", One("N"), "0", "messages each consumer takes; 0: no limit"),
    ]
};

#[rustfmt::skip]
const REPORTING: &[Flag] = {
    const G: Group = Group::Reporting;
    &[
        row(G, "cl", "confirm-latency", SWITCH, "false", "measure how long confirms take"),
        row(G, "nl", "no-latency", SWITCH, "false", "do not measure latency"),
        row(G, "mbr", "metrics-byte-rates", SWITCH, "false", "show bytes written and read"),
        row(G, "bsm", "batch-size-metric", SWITCH, "false", "show how many messages were published at once"),
        row(G, "mr", "memory-report", SWITCH, "false", "show the memory that this process uses"),
        row(G, "mf", "metrics-format", One("FORMAT"), "default", "form of the lines: default or compact"),
        row(G, "sf", "summary-file", SWITCH, "false", "write the figures to stream-perf-test-current.txt, which gets the time as its name at the end"),
        row(G, "", "prometheus", SWITCH, "false", "serve metrics for Prometheus at /metrics"),
        row(G, "mp", "monitoring-port", One("PORT"), "8080", "the port of that"),
        row(G, "mt", "metrics-tags", One("KEY=VALUE,..."), "", "labels of all metrics"),
        row(G, "mcla", "metrics-command-line-arguments", SWITCH, "false", "add a metric with the command line"),
    ]
};

#[rustfmt::skip]
const INSTANCES: &[Flag] = {
    const G: Group = Group::Instances;
    &[
        row(G, "", "id", One("NAME"), "", "name of the run, the same for all instances"),
        row(G, "ei", "expected-instances", One("N"), "0", "start when N instances with the same --id are ready; 0: do not wait"),
        row(G, "ist", "instance-sync-timeout", One("SECONDS"), "600", "how long to wait for the other instances"),
        row(G, "isn", "instance-sync-namespace", One("NAME"), "MY_POD_NAMESPACE", "keeps groups of instances with the same --id apart"),
        row(G, "au", "amqp-uri", One("URI"), "", "where instances find each other [default: the first of --uris, on AMQP's port]"),
    ]
};

#[rustfmt::skip]
const OWN: &[Flag] = {
    const G: Group = Group::Own;
    &[
        row(G, "", "latency-from", One("MOMENT"), "intended",
            "what latency counts from: intended, when --rate asked for the message; sent, when it was written, as stream-perf-test does"),
        row(G, "", "verify", SWITCH, "false",
            "number and checksum each message and account for all of them at the end; --size at least 40, which becomes its default"),
        row(G, "", "json", One("FILE"), "", "write the whole run to this file as JSON"),
        row(G, "", "hdr", One("FILE"), "", "write the run's latency histograms to this file in HdrHistogram's log format"),
        row(G, "", "threads", One("N"), "half of the cores", "threads that drive the connections"),
    ]
};

#[rustfmt::skip]
const VOID: &[Flag] = {
    const G: Group = Group::Void;
    &[
        row(G, "ccbc", "tracking-consumers-by-connection", One("N"), "50", "no effect: offsets are stored over the connection of the consumer"),
        row(G, "ne", "native-epoll", SWITCH, "", "no effect: epoll is always used on Linux"),
        row(G, "niu", "native-io-uring", SWITCH, "", "no effect: epoll is always used on Linux"),
        row(G, "ttc", "tls-tcnative", SWITCH, "", "no effect: TLS never passes through a JVM here"),
        row(G, "", "monitoring", SWITCH, "", "no effect: there are no threads of a JVM to dump; see --prometheus"),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    /// stream-perf-test 1.9's own names, short and long.
    const PUBLISHED: &str = "u uris,x producers,y consumers,s size,c confirms,sc stream-count,st streams,ds delete-streams,o offset,\
        r rate,R consumer-rate,bs batch-size,bpd batch-publishing-delay,ses sub-entry-size,co compression,cc codec,\
        mlb max-length-bytes,ma max-age,imc initial-member-count,ll leader-locator,se store-every,v version,sf summary-file,\
        pbc producers-by-connection,pn producer-names,ccbc tracking-consumers-by-connection,cbc consumers-by-connection,\
        lb load-balancer,cn consumer-names,mbr metrics-byte-rates,mr memory-report,sni server-name-indication,\
        mp monitoring-port,env environment-variables,rt rpc-timeout,cl confirm-latency,nl no-latency,sst super-streams,\
        ssp super-stream-partitions,sac single-active-consumer,au amqp-uri,z time,C pmessages,D cmessages,mt metrics-tags,\
        mcla metrics-command-line-arguments,rmfs requested-max-frame-size,ne native-epoll,niu native-io-uring,ttc tls-tcnative,\
        fvs filter-value-set,fv filter-values,fs filter-size,frfc force-replica-for-consumers,ndm no-dev-mode,\
        dbs dynamic-batch-size,bsm batch-size-metric,ei expected-instances,ist instance-sync-timeout,\
        isn instance-sync-namespace,ic initial-credits,b heartbeat,cri connection-recovery-interval,\
        tri topology-recovery-interval,tsbs tcp-send-buffer-size,trbs tcp-receive-buffer-size,tnd tcp-no-delay,\
        L consumer-latency,smssb stream-max-segment-size-bytes,mf metrics-format,h help, id, credits, prometheus, monitoring";
    const OURS: [&str; 5] = ["latency-from", "verify", "json", "hdr", "threads"];

    #[test]
    fn every_flag_of_stream_perf_test_is_there_and_no_other_than_ours() {
        let published = PUBLISHED.split(',').filter_map(|it| it.split_once(' '));
        let mut wanted: Vec<(&str, &str)> = published.map(|(short, long)| (short.trim(), long)).collect();
        wanted.extend(OURS.map(|long| ("", long)));
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
        assert!(
            longs
                .windows(2)
                .chain(shorts.windows(2))
                .all(|two| two[0] != two[1])
        );
    }
}
