//! From settings to a plan.

use super::values;
use crate::cli::settings::{Settings, parts};
use crate::cli::values::bytes;
use crate::exporter::arguments::without_secrets;
use crate::failure::Failure;
use crate::message::seal;
use crate::plan::{Connecting, Format, Instances, LatencyFrom};
use crate::streams::plan::*;
use crate::subcommand::own_id;
use crate::uri::{AMQP, Uri};
use model::chunk::Compression;
use protocol::stream::OffsetSpec;
use std::time::Duration;

/// The most producers, consumers or streams of a run.
const MANY: usize = 1_000_000;
/// RabbitMQ's largest segment of a stream, in bytes.
const LARGEST_SEGMENT: i64 = 3_000_000_000;
/// The largest body, in bytes: an entry has to fit into a frame.
const LARGEST_BODY: usize = 64 << 20;
/// How often single active consumers store their offset if nothing is said.
const STORE_OF_SINGLE_ACTIVE: u64 = 10_000;

/// Makes the plan.
///
/// # Errors
/// [`Failure::Usage`] with what to write instead.
pub fn build(settings: &Settings<'_>, arguments: &[String]) -> Result<Plan, Failure> {
    let verify = settings.switch("verify", false)?;
    let connection = connection(settings)?;
    let instances = instances(settings, &connection)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let plan = Plan {
        id: settings.text("id").unwrap_or_else(own_id),
        arguments: without_secrets(&without_passwords(arguments)),
        connection,
        streams: streams(settings)?,
        producing: producing(settings, verify)?,
        consuming: consuming(settings)?,
        time: limit(settings, "time")?.map(Duration::from_secs),
        report: reporting(settings)?,
        instances,
        verify,
        threads: settings.whole("threads", (cores / 2).max(1), 1..=1_024)?,
    };
    check(&plan)?;
    Ok(plan)
}

/// What does not go together.
fn check(plan: &Plan) -> Result<(), Failure> {
    let refuse = |text: &str| Err(Failure::Usage(text.to_owned()));
    let (producing, consuming) = (&plan.producing, &plan.consuming);
    let needs_properties = plan.streams.partitions.is_some() || !producing.filter_values.is_empty();
    if producing.codec == Codec::Simple && needs_properties {
        return refuse(
            "--codec simple has no properties, which --super-streams and --filter-value-set need: leave one of them out.",
        );
    }
    if producing.sub_entry > 1 && !producing.filter_values.is_empty() {
        return refuse(
            "--filter-value-set does not go with --sub-entry-size: an entry has one filter value, whatever is in it.",
        );
    }
    if !plan.verify {
        return Ok(());
    }
    if producing.producers == 0 || consuming.consumers == 0 {
        return refuse("--verify needs producers and consumers in the same run.");
    }
    if producing.size < seal::LENGTH + 4 {
        return refuse("--verify needs room for a number and a checksum: write --size 40 or more.");
    }
    if !consuming.filter_values.is_empty() {
        return refuse("--verify can't account for messages that are filtered: leave out --filter-values.");
    }
    if consuming.single_active && consuming.from == OffsetSpec::Next {
        return refuse(
            "--verify can't follow --single-active-consumer from the next message on, since who becomes active later misses some: write --offset first.",
        );
    }
    if consuming.messages.is_some() {
        return refuse(
            "--verify needs consumers that take everything: leave out --cmessages, and limit producers with --pmessages.",
        );
    }
    Ok(())
}

fn connection(settings: &Settings<'_>) -> Result<Connection, Failure> {
    let uris = settings
        .text("uris")
        .unwrap_or_else(|| "rabbitmq-stream://localhost:5552".into());
    let uris: Result<Vec<Uri>, Failure> = parts(&uris)
        .iter()
        .map(|uri| Uri::parse_as(uri, &STREAM))
        .collect();
    let uris = uris?;
    if uris.is_empty() {
        return Err(settings.refuse("uris", "", "an address such as rabbitmq-stream://localhost:5552"));
    }
    let buffer =
        |long: &str| size(settings, long, 0).map(|bytes| usize::try_from(bytes).ok().filter(|it| *it > 0));
    let frame_max = size(settings, "requested-max-frame-size", 5_242_880)?;
    let pauses = |long: &str, default: &str| {
        values::pauses(long, &settings.text(long).unwrap_or_else(|| default.into()))
    };
    Ok(Connection {
        uris,
        load_balancer: settings.switch("load-balancer", false)?,
        development: !settings.switch("no-dev-mode", false)?,
        socket: Connecting {
            frame_max: u32::try_from(frame_max).unwrap_or(u32::MAX),
            heartbeat_s: settings.whole("heartbeat", 60, 0..=u16::MAX)?,
            send_buffer: buffer("tcp-send-buffer-size")?,
            receive_buffer: buffer("tcp-receive-buffer-size")?,
            no_delay: settings.switch("tcp-no-delay", true)?,
            verify_peer: false,
            server_names: parts(&settings.text("server-name-indication").unwrap_or_default()),
            sasl_external: false,
            recovery: None,
            startup_timeout: None,
            servers_up_limit: None,
            oauth2: None,
        },
        answer_within: Duration::from_secs(settings.whole("rpc-timeout", 10, 1..=86_400)?),
        recovery: pauses("connection-recovery-interval", "5")?,
        relocation: pauses("topology-recovery-interval", "5:1")?,
    })
}

fn streams(settings: &Settings<'_>) -> Result<Streams, Failure> {
    let names = parts(&settings.text("streams").unwrap_or_else(|| "stream".into()));
    let count = values::range(
        "stream-count",
        &settings.text("stream-count").unwrap_or_else(|| "1".into()),
    )?;
    if count.1 as usize > MANY {
        return Err(settings.refuse("stream-count", &count.1.to_string(), "a number up to 1000000"));
    }
    let names = values::numbered(&names, count)?;
    if names.is_empty() {
        return Err(settings.refuse("streams", "", "a name"));
    }
    let mut arguments = Vec::new();
    let segment = size(settings, "stream-max-segment-size-bytes", 500_000_000)?;
    if !(1..=LARGEST_SEGMENT).contains(&segment) {
        return Err(settings.refuse(
            "stream-max-segment-size-bytes",
            &segment.to_string(),
            "a size from 1 to 3gb",
        ));
    }
    arguments.push(("stream-max-segment-size-bytes", segment.to_string()));
    let length = size(settings, "max-length-bytes", 20_000_000_000)?;
    if length > 0 {
        arguments.push(("max-length-bytes", length.to_string()));
    }
    if let Some(age) = settings.text("max-age") {
        let age = values::duration("max-age", &age)?;
        if age.as_secs() == 0 {
            return Err(settings.refuse("max-age", &format!("{age:?}"), "a time of at least a second"));
        }
        arguments.push(("max-age", format!("{}s", age.as_secs())));
    }
    let members: u32 = settings.whole("initial-member-count", 0, 0..=1_000)?;
    if members > 0 {
        arguments.push(("initial-cluster-size", members.to_string()));
    }
    let locator = settings
        .text("leader-locator")
        .unwrap_or_else(|| "balanced".into());
    if !["client-local", "balanced", "least-leaders", "random"].contains(&locator.as_str()) {
        return Err(settings.refuse(
            "leader-locator",
            &locator,
            "client-local, balanced, least-leaders or random",
        ));
    }
    arguments.push(("queue-leader-locator", locator));
    let filter: u16 = settings.whole("filter-size", 16, 16..=255)?;
    arguments.push(("stream-filter-size-bytes", filter.to_string()));
    let partitions = settings.whole("super-stream-partitions", 3, 1..=10_000)?;
    Ok(Streams {
        names,
        partitions: settings.switch("super-streams", false)?.then_some(partitions),
        arguments,
        delete_at_end: settings.switch("delete-streams", false)?,
    })
}

fn producing(settings: &Settings<'_>, verify: bool) -> Result<Producing, Failure> {
    let gather = settings.whole("batch-publishing-delay", 100, 0..=86_400_000)?;
    let names = settings
        .text("producer-names")
        .filter(|text| !text.trim().is_empty());
    let compression = settings.text("compression").unwrap_or_else(|| "none".into());
    let codec = settings.text("codec").unwrap_or_else(|| "internal".into());
    let from = settings.text("latency-from").unwrap_or_else(|| "intended".into());
    let default_size = if verify { seal::LENGTH + 4 } else { 10 };
    let sub_entry = settings.whole("sub-entry-size", 1, 1..=u16::MAX)?;
    let confirms: u64 = settings.whole("confirms", 10_000, 1..=1_000_000_000)?;
    Ok(Producing {
        producers: settings.whole("producers", 1, 0..=MANY)?,
        by_connection: settings.whole("producers-by-connection", 1, 1..=255)?,
        rate: rate(settings, "rate")?,
        // A sub-batch is confirmed as a whole.
        confirms: confirms.max(sub_entry.into()),
        batch: settings.whole("batch-size", 100, 1..=1_000_000)?,
        gather: (!settings.switch("dynamic-batch-size", true)? && gather > 0)
            .then(|| Duration::from_millis(gather)),
        sub_entry,
        compression: match compression.to_ascii_lowercase().as_str() {
            "none" => Compression::None,
            "gzip" => Compression::Gzip,
            "snappy" => Compression::Snappy,
            "lz4" => Compression::Lz4,
            "zstd" => Compression::Zstd,
            _ => return Err(settings.refuse("compression", &compression, "none, gzip, snappy, lz4 or zstd")),
        },
        names: names
            .map(|text| Names::parse("producer-names", &text))
            .transpose()?,
        messages: limit(settings, "pmessages")?,
        filter_values: values::filter_values(&settings.text("filter-value-set").unwrap_or_default())?,
        size: settings.whole("size", default_size, 0..=LARGEST_BODY)?.max(8),
        codec: match codec.as_str() {
            "internal" | "qpid" => Codec::Amqp,
            "simple" => Codec::Simple,
            _ => {
                return Err(settings.refuse(
                    "codec",
                    &codec,
                    "internal, qpid or simple: other classes are Java's",
                ));
            }
        },
        latency_from: match from.as_str() {
            "intended" => LatencyFrom::Intended,
            "sent" => LatencyFrom::Sent,
            _ => return Err(settings.refuse("latency-from", &from, "intended or sent")),
        },
    })
}

fn consuming(settings: &Settings<'_>) -> Result<Consuming, Failure> {
    let single_active = settings.switch("single-active-consumer", false)?;
    let names = settings.text("consumer-names").unwrap_or_else(|| "%s-%d".into());
    let store_every = limit(settings, "store-every")?;
    let initial = settings.whole("initial-credits", 10, 1..=u16::MAX)?;
    Ok(Consuming {
        consumers: settings.whole("consumers", 1, 0..=MANY)?,
        by_connection: settings.whole("consumers-by-connection", 1, 1..=255)?,
        rate: rate(settings, "consumer-rate")?,
        latency: values::duration(
            "consumer-latency",
            &settings.text("consumer-latency").unwrap_or_else(|| "0".into()),
        )?,
        from: values::offset(&settings.text("offset").unwrap_or_else(|| "next".into()))?,
        credits: match settings.text("credits") {
            Some(text) => values::credits(&text)?,
            None => (initial, 1),
        },
        store_every: store_every.or(single_active.then_some(STORE_OF_SINGLE_ACTIVE)),
        names: Names::parse("consumer-names", &names)?,
        single_active,
        filter_values: parts(&settings.text("filter-values").unwrap_or_default()),
        messages: limit(settings, "cmessages")?,
        force_replica: settings.switch("force-replica-for-consumers", false)?,
    })
}

fn reporting(settings: &Settings<'_>) -> Result<Reporting, Failure> {
    let format = settings
        .text("metrics-format")
        .unwrap_or_else(|| "default".into());
    let port = settings.whole("monitoring-port", 8_080, 0..=u16::MAX)?;
    let tags = settings.list("metrics-tags");
    Ok(Reporting {
        confirm_latency: settings.switch("confirm-latency", false)?,
        latency: !settings.switch("no-latency", false)?,
        byte_rates: settings.switch("metrics-byte-rates", false)?,
        batch_size: settings.switch("batch-size-metric", false)?,
        memory: settings.switch("memory-report", false)?,
        format: match format.to_ascii_lowercase().as_str() {
            "default" => Format::Default,
            "compact" => Format::Compact,
            _ => return Err(settings.refuse("metrics-format", &format, "default or compact")),
        },
        summary_file: settings.switch("summary-file", false)?,
        json: settings.text("json").map(Into::into),
        hdr: settings.text("hdr").map(Into::into),
        prometheus: settings.switch("prometheus", false)?.then_some(port),
        tags: crate::cli::values::texts("metrics-tags", &tags)?,
        arguments: settings.switch("metrics-command-line-arguments", false)?,
    })
}

fn instances(settings: &Settings<'_>, connection: &Connection) -> Result<Option<(Instances, Uri)>, Failure> {
    let expected = settings.whole("expected-instances", 0, 0..=100_000)?;
    let timeout = settings.whole("instance-sync-timeout", 600, 1..=86_400 * 365)?;
    if expected == 0 {
        return Ok(None);
    }
    if settings.text("id").is_none() {
        let text = "--expected-instances needs a name that all instances have: give --id.";
        return Err(Failure::Usage(text.into()));
    }
    let namespace = settings
        .text("instance-sync-namespace")
        .filter(|it| !it.trim().is_empty());
    let namespace = namespace.or_else(|| settings.variable("MY_POD_NAMESPACE"));
    let uri = match settings.text("amqp-uri") {
        Some(text) => Uri::parse(&text)?,
        None => {
            let stream = &connection.uris[0];
            let port = if stream.tls { AMQP.tls_port } else { AMQP.port };
            Uri {
                port,
                ..stream.clone()
            }
        }
    };
    let instances = Instances {
        expected,
        namespace,
        timeout: Duration::from_secs(timeout),
    };
    Ok(Some((instances, uri)))
}

/// A limit of which 0 means none.
fn limit(settings: &Settings<'_>, long: &str) -> Result<Option<u64>, Failure> {
    let number = settings.whole(long, 0, 0..=i64::MAX as u64)?;
    Ok((number > 0).then_some(number))
}

/// A rate of which 0 and less mean none.
fn rate(settings: &Settings<'_>, long: &str) -> Result<Option<f64>, Failure> {
    Ok(settings.decimal(long)?.filter(|rate| *rate > 0.0))
}

fn size(settings: &Settings<'_>, long: &str, default: i64) -> Result<i64, Failure> {
    settings.text(long).map_or(Ok(default), |text| bytes(&text))
}

/// The arguments with `***` for passwords in addresses.
fn without_passwords(arguments: &[String]) -> Vec<String> {
    let hidden = |uri: &str| match uri.split_once("://").zip(uri.rsplit_once('@')) {
        Some(((scheme, rest), (_, place))) => match rest.split_once(':') {
            Some((user, _)) if !user.contains('@') => format!("{scheme}://{user}:***@{place}"),
            _ => uri.to_owned(),
        },
        None => uri.to_owned(),
    };
    arguments
        .iter()
        .map(|argument| argument.split(',').map(hidden).collect::<Vec<_>>().join(","))
        .collect()
}
