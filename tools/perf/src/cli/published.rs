//! Command lines that people have published, and what is refused.

use super::{plan, read};
use crate::failure::Failure;
use crate::plan::{BodyPlan, ExitWhen, Format, LatencyFrom, Plan, QueueNames, Schedule, Verbose};
use crate::subcommand::Request;
use model::table::{Table, Value};
use std::time::Duration;

fn none(_: &str) -> Option<String> {
    None
}

/// Words of a line as a shell makes them, as far as quotes go.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace()
        .map(|word| word.replace('\'', ""))
        .collect()
}

fn planned(line: &str) -> Plan {
    match plan(&words(line), &none) {
        Ok(Request::Run(plan)) => *plan,
        Ok(Request::Print(text)) => panic!("{line} prints {text}"),
        Err(failure) => panic!("{line}: {failure}"),
    }
}

fn refused(line: &str) -> String {
    match plan(&words(line), &none) {
        Ok(_) => panic!("{line} is not refused"),
        Err(failure) => failure.to_string(),
    }
}

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

const LOW_LATENCY: &str = "--autoack --interval 15 --size 1000 --queue-args 'x-max-length=10000' --routing-key perf-test \
    --uri 'amqp://admin:pass@10.99.244.3:5672/%2F' --metrics-prometheus \
    --metrics-tags 'type=publisher,type=consumer,deployment=low-latency' --queue-pattern 'perf-test-%d' \
    --queue-pattern-from 0 --queue-pattern-to 0 --consumers 1 --producers 1 --rate 100";

#[test]
fn without_arguments_the_defaults_are_perftests() {
    let plan = planned("");
    assert!(
        plan.id.starts_with("test-") && plan.id.len() == "test-HHmmss-SSS".len(),
        "{}",
        plan.id
    );
    assert_eq!(
        (plan.uris[0].place().as_str(), plan.uris[0].vhost.as_str()),
        ("localhost:5672", "/")
    );
    assert_eq!(
        (plan.exchange.name.as_str(), plan.exchange.kind.as_str()),
        ("direct", "direct")
    );
    assert_eq!(plan.queues.names, QueueNames::ServerNamed);
    assert!(
        plan.queues.auto_delete
            && !plan.queues.durable
            && !plan.queues.exclusive
            && plan.queues.arguments.is_empty()
    );
    assert_eq!((plan.producing.producers, plan.producing.channels), (1, 1));
    assert_eq!((plan.consuming.consumers, plan.consuming.channels), (1, 1));
    assert_eq!(plan.producing.schedule, Schedule::Unlimited);
    assert_eq!(
        (plan.producing.confirm, plan.producing.confirm_timeout),
        (None, seconds(30))
    );
    assert!(matches!(plan.message.body, BodyPlan::Size(12)));
    assert_eq!(
        (
            plan.consuming.prefetch,
            plan.consuming.multi_ack_every,
            plan.consuming.rate
        ),
        (0, 0, None)
    );
    assert_eq!((plan.stopping.time, plan.stopping.exit_when), (None, None));
    assert_eq!(
        (plan.stopping.shutdown_timeout, plan.report.interval),
        (seconds(5), seconds(1))
    );
    assert_eq!(plan.connection.recovery, Some((seconds(5), seconds(5))));
    assert_eq!(
        (plan.report.format, plan.report.verbose),
        (Format::Default, Verbose::No)
    );
    assert_eq!(
        (plan.exporter.prefix.as_str(), &plan.exporter.prometheus),
        ("perftest_", &None)
    );
    assert_eq!(plan.producing.latency_from, LatencyFrom::Intended);
    assert!(plan.threads >= 1 && !plan.verify && plan.max_in_flight.is_none() && plan.instances.is_none());
}

#[test]
fn the_low_latency_text_reads() {
    let plan = planned(LOW_LATENCY);
    assert!(plan.consuming.auto_ack);
    assert_eq!(plan.report.interval, seconds(15));
    assert!(matches!(plan.message.body, BodyPlan::Size(1000)));
    assert_eq!(
        plan.queues.arguments,
        Table::new().with("x-max-length", 10_000_i64)
    );
    assert_eq!(plan.routing.key.as_deref(), Some("perf-test"));
    assert_eq!(
        (plan.uris[0].user.as_str(), plan.uris[0].password.as_str()),
        ("admin", "pass")
    );
    assert_eq!(plan.uris[0].vhost, "/");
    assert_eq!(plan.exporter.prometheus, Some((8080, "/metrics".to_owned())));
    assert_eq!(plan.exporter.tags[0], ("type".to_owned(), "consumer".to_owned()));
    assert_eq!(
        plan.queues.names,
        QueueNames::Sequence(vec!["perf-test-0".to_owned()])
    );
    assert_eq!(plan.producing.schedule, Schedule::Rate(100.0));
    assert!(!plan.arguments.iter().any(|argument| argument.contains("pass@")));
}

#[test]
fn the_variations_of_the_low_latency_text_read() {
    for more in [
        "--confirm 100",
        "-t topic",
        "-t headers",
        "-qq",
        "-f persistent -ad false",
        "-qq --confirm 1",
    ] {
        planned(&format!("{LOW_LATENCY} {more}"));
    }
    let plan = planned("-q 200 -A 100 -r 50000 -y 500 -x 5 -qp perf-test-%d -qpf 0 -qpt 9 -t fanout");
    assert_eq!(
        (plan.consuming.prefetch, plan.consuming.multi_ack_every),
        (200, 100)
    );
    assert_eq!(plan.exchange.name, "fanout");
    assert!(matches!(plan.queues.names, QueueNames::Sequence(names) if names.len() == 10));
}

#[test]
fn the_cluster_text_reads() {
    let plan = planned(
        "-y 0 -x 16 --size 200 -t direct --queue-pattern q-%d --queue-pattern-from 1 --queue-pattern-to 16 \
         --queue-args x-max-length=100",
    );
    assert_eq!((plan.consuming.consumers, plan.producing.producers), (0, 16));
    assert!(matches!(plan.queues.names, QueueNames::Sequence(names) if names[15] == "q-16"));
}

const SIZES: &str =
    "--variable-size 10:900 --variable-size 100:900 --variable-size 1000:900 --variable-size 5000:900";

#[test]
fn the_text_on_3_10_reads() {
    let fast =
        format!("--producers 2 --consumers 2 --confirm 3000 --multi-ack-every 3000 --qos 3000 {SIZES}");
    let classic = planned(&format!(
        "{fast} --auto-delete false --flag persistent --queue cq"
    ));
    assert!(classic.queues.durable && classic.producing.persistent && !classic.queues.auto_delete);
    assert_eq!(classic.producing.confirm, Some(3000));
    let BodyPlan::VariableSize(sizes) = &classic.message.body else {
        panic!("no sizes")
    };
    // 10 bytes have no room for the number and the time stamp.
    assert_eq!(
        sizes.iter().map(|(size, _)| *size).collect::<Vec<_>>(),
        [12, 100, 1000, 5000]
    );
    assert_eq!(sizes[0].1, seconds(900));

    let quorum = planned(&format!("{fast} --quorum-queue --queue qq"));
    assert!(quorum.queues.durable && quorum.producing.persistent && !quorum.queues.auto_delete);
    assert_eq!(
        quorum.queues.arguments,
        Table::new().with("x-queue-type", "quorum")
    );
    assert_eq!(quorum.queues.names, QueueNames::Fixed(vec!["qq".to_owned()]));

    let fixed = planned(&format!(
        "--rate 10000 --confirm 3000 --multi-ack-every 3000 --qos 3000 {SIZES} --quorum-queue --queue qq"
    ));
    assert_eq!(fixed.producing.schedule, Schedule::Rate(10_000.0));

    let many = planned(&format!(
        "--producers 500 --consumers 500 --publishing-interval 0.1 --confirm 10 --multi-ack-every 100 --qos 100 {SIZES} \
         --queue-pattern cq-%d --queue-pattern-from 1 --queue-pattern-to 500 --auto-delete false --flag persistent"
    ));
    assert_eq!(
        many.producing.schedule,
        Schedule::Interval(Duration::from_millis(100))
    );

    let fill = planned(
        "--producers 2 --consumers 0 --confirm 3000 --pmessages 5000000 --queue-args x-max-in-memory-length=0 \
         --quorum-queue --queue qq",
    );
    assert_eq!(fill.producing.messages, Some(5_000_000));
    assert_eq!(
        fill.queues.arguments.get("x-max-in-memory-length"),
        Some(&Value::Long(0))
    );
    let drain = planned(
        "--producers 0 --consumers 2 --multi-ack-every 3000 --qos 3000 --exit-when empty \
         --queue-args x-max-in-memory-length=0 --quorum-queue --queue qq",
    );
    assert_eq!(drain.stopping.exit_when, Some(ExitWhen::Empty));
}

#[test]
fn the_drain_text_reads() {
    let plan = planned(
        "-x 3 -y 3 --rate 10000 --size 1024 --qos 100 --multi-ack-every 10 --queue-args x-max-length=2000000",
    );
    assert_eq!(
        (plan.consuming.prefetch, plan.consuming.multi_ack_every),
        (100, 10)
    );
    planned("-x 3 -y 0 -s 1024 -u q -ad false -f persistent -f mandatory");
}

#[test]
fn streams_bring_their_settings() {
    let plan = planned("-sq -u s -sco 2022-06-03T07:45:54Z -ma PT10M -ll balanced");
    let wanted = Table::new()
        .with("x-queue-type", "stream")
        .with("x-max-length-bytes", 20_000_000_000_i64)
        .with("x-stream-max-segment-size-bytes", 500_000_000_i64)
        .with("x-max-age", "600s")
        .with("x-queue-leader-locator", "balanced");
    assert_eq!(plan.queues.arguments, wanted);
    assert_eq!(plan.consuming.prefetch, 200);
    assert_eq!(
        plan.consuming.arguments.get("x-stream-offset"),
        Some(&Value::Timestamp(1_654_242_354))
    );
    let plan = planned("-sq -u s -mlb 0 -smssb 1gb -q 10");
    assert!(!plan.queues.arguments.contains("x-max-length-bytes"));
    assert_eq!(plan.consuming.prefetch, 10);
}

#[test]
fn properties_are_told_from_headers() {
    let plan = planned(
        "-mp priority=5,timestamp=2022-06-03T07:45:54Z,color=red,size=3,deliveryMode=2 -T text/plain",
    );
    let properties = plan.message.properties;
    assert_eq!(
        (properties.priority, properties.delivery_mode),
        (Some(5), Some(2))
    );
    assert_eq!(
        (properties.timestamp, properties.content_type.as_deref()),
        (Some(1_654_242_354), Some("text/plain"))
    );
    assert_eq!(
        properties.headers,
        Table::new().with("color", "red").with("size", 3_i64)
    );
}

#[test]
fn the_other_flags_reach_the_plan() {
    let plan = planned(
        "-d t1 -H amqp://a,amqps://b:99 -cal round-robin -e amq.default -r 0 -c 0 -L 500 -po -pi 20 -na -re false -ei 3 \
         -isn ns -ist 7 -cri 30-60 -sst 9 -sul 2 -o2uri https://t -o2id i -o2sec s -o2p a=1 -o2p b=2 -em expected_published=5 \
         -mda -mdk key -mds 3 -mpx p_ -mf compact --verbose-full --threads 3 --delete-queues --latency-from sent -z 5 -ms",
    );
    assert_eq!(
        (plan.id.as_str(), plan.uris.len(), plan.exchange.name.as_str()),
        ("t1", 2, "")
    );
    assert_eq!(plan.producing.schedule, Schedule::Rate(0.0));
    assert_eq!(plan.producing.confirm, Some(u32::MAX));
    assert_eq!(plan.consuming.latency[0].0, Duration::from_micros(500));
    assert_eq!(
        (plan.consuming.polling, plan.consuming.nack),
        (Some(Duration::from_millis(20)), Some(false))
    );
    let instances = plan.instances.unwrap();
    assert_eq!(
        (
            instances.expected,
            instances.namespace.as_deref(),
            instances.timeout
        ),
        (3, Some("ns"), seconds(7))
    );
    assert_eq!(plan.connection.recovery, Some((seconds(30), seconds(60))));
    assert_eq!(
        (plan.connection.startup_timeout, plan.connection.servers_up_limit),
        (Some(seconds(9)), Some(2))
    );
    assert_eq!(plan.connection.oauth2.unwrap().parameters.len(), 2);
    assert_eq!(plan.exporter.exposed, [("expected_published".to_owned(), 5.0)]);
    assert_eq!(plan.exporter.datadog.unwrap().step, seconds(3));
    assert_eq!(
        (plan.report.format, plan.report.verbose, plan.report.millis),
        (Format::Compact, Verbose::Full, true)
    );
    assert_eq!((plan.threads, plan.queues.delete_at_end), (3, true));
    assert_eq!(
        (plan.producing.latency_from, plan.stopping.time),
        (LatencyFrom::Sent, Some(seconds(5)))
    );
    assert!(planned("-dcr").connection.recovery.is_none());
    assert!(matches!(planned("--verify").message.body, BodyPlan::Size(40)));
    assert_eq!(planned("--max-in-flight 1000").max_in_flight, Some(1000));
}

/// A command line, and how the refusal begins.
#[rustfmt::skip]
const REFUSED: &[(&str, &str)] = &[
    ("-m 5 -c 5", "Cannot select both producerTxSize and confirm"),
    ("-A 20 -q 10", "--multi-ack-every must be less than or equal to --qos"),
    ("-P 0", "Invalid value for --publishing-interval: Must be positive"),
    ("-P x", "Invalid value for --publishing-interval: Must be a number"),
    ("-qp q-%d -qpf 1", "Queue pattern, from, and to options should all be set or none should be set"),
    ("-qpt 3", "Queue pattern, from, and to options should all be set or none should be set"),
    ("-qp q-%d -qpf 3 -qpt 1", "'To' option should be more than or equals to 'from' option"),
    ("-qp q-%d -qpf 0 -qpt 2000000000", "--queue-pattern-to is '2000000000'"),
    ("-qq -sq", "Use quorum queues or stream queues, not both."),
    ("-smssb 4gb", "The maximum segment size cannot be more than 3 GB"),
    ("-mlb 1gb -smssb 2gb", "Max length bytes must be greather than stream max segment size"),
    ("-mlb many", "'many' is not a valid byte capacity, valid example values: 100gb, 50mb"),
    ("-ma 5", "'5' is not a valid duration, valid example values: PT15M, PT10H"),
    ("-ll here", "'here' is not a valid queue leader locator strategy. Valid values are client-local and balanced."),
    ("-sco soon", "'soon' is not a valid stream offset value."),
    ("-ew never", "--exit-when must be 'empty' or 'idle'."),
    ("-ei 2", "A test ID is mandatory when instance synchronization is activated"),
    ("-cal best", "--connection-allocation must one of random, round-robin"),
    ("-mf nice", "Unknown metrics formatter: nice. Possible values are compact, default: write one of them"),
    ("-vr 5", "Invalid variable value definition: 5. Should be [VALUE]:[DURATION]"),
    ("-o2uri http://x", "-o2id/--oauth2-client-id is mandatory when OAuth2 is used"),
    ("-o2uri http://x -o2id i", "-o2sec/--oauth2-client-secret is mandatory when OAuth2 is used"),
    ("-mda", "--metrics-datadog needs a key"),
    ("-f durable", "--flag is 'durable': write persistent or mandatory."),
    ("-x 0 -y 0", "--producers 0 and --consumers 0 leave nothing to do"),
    ("-y 0 --max-in-flight 5", "--max-in-flight waits for consumers"),
    ("-y 0 -ew idle", "--exit-when waits for consumers"),
    ("-B /no/such/file", "the message file /no/such/file cannot be read"),
    ("-qf /no/such/file", "Queue file /no/such/file does not exist or is not readable"),
    ("--latency-from birth", "--latency-from is 'birth': write intended or sent."),
    ("--threads 0", "--threads is '0'"),
    ("-h http://x", "the address"),
    ("-x -1", "--producers is '-1': write a whole number from 0 to 1000000."),
    ("-i 0", "--interval is '0'"),
    ("-q 70000", "--qos is '70000': write a whole number from 0 to 65535."),
    ("-mp priority=high", "--message-properties is 'priority=high': write a priority from 0 to 255."),
    ("-x 1 churn", "churn is a command of its own"),
];

/// The same for what `--verify` could not tell the truth about.
#[rustfmt::skip]
const UNVERIFIABLE: &[(&str, &str)] = &[
    ("--verify -s 39", "--verify writes a number and a checksum into each body: write a size of at least 40."),
    ("--verify -vs 100:1 -vs 12:1", "--verify writes a number"),
    ("--verify -jb", "--verify numbers its own bodies"),
    ("--verify -u a,b", "--verify would count each message several times"),
    ("--verify -t fanout -qp q-%d -qpf 1 -qpt 2", "--verify would count each message several times"),
    ("--verify -y 2", "--verify would count each message several times"),
    ("--verify -y 0", "--verify compares what is published"),
    ("--verify -na", "--verify never ends"),
    ("--verify -sq -u s -y 2", "--verify would count each message once for each consumer"),
];

#[test]
fn what_does_not_go_together_is_refused_with_what_to_do() {
    for (line, wanted) in REFUSED.iter().chain(UNVERIFIABLE) {
        let told = refused(line);
        assert!(told.starts_with(wanted), "{line}: {told}");
        assert!(!told.contains('\n'), "{told}");
    }
}

#[test]
fn texts_are_printed_instead_of_a_run() {
    for (line, part) in [
        ("--help", "--producers N"),
        ("-?", "--producers N"),
        ("-mh", "--metrics-prometheus-port PORT"),
        ("-env", "QUEUE_PATTERN_FROM"),
        ("-env -mh", "METRICS_PREFIX"),
        ("-v", "leveret perf "),
        ("-x 2 -ew wrong --version", "leveret perf "),
    ] {
        match plan(&words(line), &none) {
            Ok(Request::Print(text)) => assert!(text.contains(part), "{line}: {text}"),
            other => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn variables_take_the_place_of_flags() {
    let environment = |name: &str| match name {
        "PRODUCERS" => Some("7".to_owned()),
        "VARIABLE_RATE" => Some("100:60,1000:10".to_owned()),
        "QUORUM_QUEUE" => Some("true".to_owned()),
        _ => None,
    };
    let Ok(Request::Run(plan)) = plan(&words("-x 2"), &environment) else {
        panic!("no run")
    };
    assert_eq!(plan.producing.producers, 7);
    assert_eq!(
        plan.producing.schedule,
        Schedule::Variable(vec![(100.0, seconds(60)), (1000.0, seconds(10))])
    );
    assert!(plan.queues.durable);
}

#[test]
fn flags_of_the_jvm_and_strays_are_told_once() {
    let (_, notes) = read(&words("-niot 4 -hst 2 -nty -l -mjx stray"), &none).unwrap();
    assert_eq!(notes.len(), 2, "{notes:?}");
    for long in [
        "--nio-threads",
        "--heartbeat-sender-threads",
        "--netty",
        "--legacy-metrics",
        "--metrics-jmx",
    ] {
        assert!(notes[0].contains(long), "{}", notes[0]);
    }
    assert!(notes[0].contains("no effect") && notes[1].contains("'stray'"));
    assert!(read(&words("-x 1"), &none).unwrap().1.is_empty());
    let (asked, notes) = read(&words("-P 1 -r 5 -o2id me"), &none).unwrap();
    assert!(matches!(asked, Request::Run(plan) if plan.producing.schedule == Schedule::Interval(seconds(1))));
    assert_eq!(
        notes[0],
        "--oauth2-client-id has no effect without --oauth2-token-endpoint."
    );
    assert_eq!(notes[1], "--rate has no effect beside --publishing-interval.");
    let (_, notes) = read(&words("-isn ns -ist 5 -udsc -sni a"), &none).unwrap();
    for (note, long) in notes.iter().zip([
        "--instance-sync-namespace",
        "--instance-sync-timeout",
        "--use-default-ssl-context",
        "--server-name-indication",
    ]) {
        assert!(
            note.starts_with(&format!("{long} has no effect without ")),
            "{note}"
        );
    }
    assert_eq!(notes.len(), 4, "{notes:?}");
    let (_, notes) = read(&words("-d t -isn ns -ei 2 -udsc -h amqps://a"), &none).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn a_queue_is_not_reached_through_the_default_exchange_by_a_random_key() {
    let refused = read(&words("-e amq.default -u q"), &none);
    assert!(matches!(refused, Err(Failure::Usage(text)) if text.contains("--routing-key")));
    for line in [
        "-e amq.default -u q -k q",
        "-e amq.default -u q -x 0 -y 1",
        "-u q",
    ] {
        assert!(read(&words(line), &none).is_ok(), "{line}");
    }
}

/// Arguments as people and accidents make them: known flags with values of every kind.
fn arguments() -> impl proptest::strategy::Strategy<Value = Vec<String>> {
    use proptest::prelude::*;
    let names: Vec<String> = super::table::flags()
        .map(|flag| format!("--{}", flag.long))
        .collect();
    let words = [
        "-1",
        "0",
        "5",
        "1e9",
        "99999999999999999999",
        "a=b",
        "10:5",
        "true",
        "%d",
        "5-9",
        "P1D",
        "idle",
        "NaN",
    ];
    let word = prop_oneof![
        4 => proptest::sample::select(names),
        4 => proptest::sample::select(words.map(str::to_owned).to_vec()),
        1 => "\\PC{0,10}",
    ];
    proptest::collection::vec(word, 0..8)
}

proptest::proptest! {
    #[test]
    fn no_command_line_makes_it_panic(arguments in arguments()) {
        let _ = plan(&arguments, &none);
    }
}
