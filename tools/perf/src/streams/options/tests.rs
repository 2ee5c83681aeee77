use super::*;
use crate::plan::Format;
use crate::streams::plan::{Codec, Names};
use model::chunk::Compression;
use protocol::stream::OffsetSpec;
use std::time::Duration;

fn with(line: &str, variables: &[(&str, &str)]) -> Result<(Plan, Vec<String>), String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let environment = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    match read(&words, &environment) {
        Ok((Request::Run(plan), notes)) => Ok((*plan, notes)),
        Ok((Request::Print(text), _)) => Err(text),
        Err(failure) => Err(failure.to_string()),
    }
}

fn plan(line: &str) -> Plan {
    with(line, &[]).unwrap_or_else(|told| panic!("{line}: {told}")).0
}

#[test]
fn without_flags_it_is_what_stream_perf_test_does() {
    let plan = plan("");
    assert_eq!(plan.connection.uris[0].to_string(), "amqp://guest@localhost:5552");
    assert_eq!(plan.streams.names, ["stream"]);
    assert_eq!(
        plan.streams
            .arguments
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>(),
        [
            "stream-max-segment-size-bytes=500000000",
            "max-length-bytes=20000000000",
            "queue-leader-locator=balanced",
            "stream-filter-size-bytes=16"
        ]
    );
    let producing = &plan.producing;
    assert_eq!(
        (
            producing.producers,
            producing.size,
            producing.batch,
            producing.confirms
        ),
        (1, 10, 100, 10_000)
    );
    assert_eq!(
        (producing.rate, producing.gather, producing.sub_entry),
        (None, None, 1)
    );
    assert_eq!(
        (producing.codec, producing.compression),
        (Codec::Amqp, Compression::None)
    );
    let consuming = &plan.consuming;
    assert_eq!(
        (consuming.from, consuming.credits, consuming.store_every),
        (OffsetSpec::Next, (10, 1), None)
    );
    assert_eq!(consuming.names, Names::Pattern("%s-%d".into()));
    assert_eq!((plan.time, plan.report.format), (None, Format::Default));
    assert_eq!(plan.connection.socket.frame_max, 5_242_880);
    assert_eq!(
        plan.connection.relocation,
        (Duration::from_secs(5), Duration::from_secs(1))
    );
}

#[test]
fn every_flag_reaches_the_plan() {
    let seconds = Duration::from_secs;
    let plan = plan(
        "-u rabbitmq-stream://u:p@h:1/v,rabbitmq-stream+tls://h -lb -rmfs 1mb -b 7 -rt 3 -cri 2:4 -tri 9 -tsbs 1kb -trbs 2kb \
         -tnd false -sni a,b -st s-%d -sc 2-3 -mlb 0 -smssb 1gb -ma 1h -imc 3 -ll random -fs 32 -ds -x 4 -r 50 -c 9 -bs 5 -dbs \
         false -bpd 20 -ses 6 -co LZ4 -pn uuid -pbc 7 -s 200 -cc qpid -y 8 -R 70 -L 5ms -o first --credits 10-5 -se 11 \
         -cn %s/%d -cbc 2 -sac -fv a,b -frfc -z 60 -C 100 -D 200 -cl -nl -mbr -bsm -mr -mf compact -sf --prometheus -mp 9 -mt \
         k=v -mcla --id me -ei 2 -ist 5 -isn ns -au amqp://h:9 --json j --hdr h --threads 2",
    );
    let connection = &plan.connection;
    assert_eq!(
        (
            connection.uris.len(),
            connection.uris[1].port,
            connection.load_balancer
        ),
        (2, 5551, true)
    );
    let socket = &connection.socket;
    assert_eq!(
        (socket.frame_max, socket.heartbeat_s, socket.no_delay),
        (1_000_000, 7, false)
    );
    assert_eq!(
        (
            socket.send_buffer,
            socket.receive_buffer,
            &socket.server_names[0][..]
        ),
        (Some(1_000), Some(2_000), "a")
    );
    assert_eq!(
        (
            connection.answer_within,
            connection.recovery,
            connection.relocation
        ),
        (seconds(3), (seconds(2), seconds(4)), (seconds(9), seconds(9)))
    );
    assert_eq!(plan.streams.names, ["s-2", "s-3"]);
    let arguments: Vec<_> = plan
        .streams
        .arguments
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    assert_eq!(
        arguments.join(" "),
        "stream-max-segment-size-bytes=1000000000 max-age=3600s initial-cluster-size=3 queue-leader-locator=random stream-filter-size-bytes=32"
    );
    let it = &plan.producing;
    assert_eq!(
        (it.producers, it.by_connection, it.rate, it.confirms, it.batch),
        (4, 7, Some(50.0), 9, 5)
    );
    assert_eq!(
        (it.gather, it.sub_entry, it.compression, it.messages),
        (Some(Duration::from_millis(20)), 6, Compression::Lz4, Some(100))
    );
    assert_eq!((&it.names, it.size), (&Some(Names::Random), 200));
    let it = &plan.consuming;
    assert_eq!(
        (it.consumers, it.by_connection, it.rate, it.latency),
        (8, 2, Some(70.0), Duration::from_millis(5))
    );
    assert_eq!(
        (it.from, it.credits, it.store_every, it.messages),
        (OffsetSpec::First, (10, 5), Some(11), Some(200))
    );
    assert_eq!(
        (it.names.of("s", 3), it.single_active, it.force_replica),
        ("s/3".into(), true, true)
    );
    assert_eq!(
        (it.filter_values.join("+"), plan.time, plan.threads),
        ("a+b".into(), Some(seconds(60)), 2)
    );
    let it = &plan.report;
    assert!(
        it.confirm_latency
            && !it.latency
            && it.byte_rates
            && it.batch_size
            && it.memory
            && it.summary_file
            && it.arguments
    );
    assert_eq!(
        (it.format, it.prometheus, it.tags.len()),
        (Format::Compact, Some(9), 1)
    );
    let (instances, uri) = plan.instances.as_ref().unwrap();
    assert_eq!(
        (
            instances.expected,
            instances.namespace.as_deref(),
            instances.timeout,
            uri.port
        ),
        (2, Some("ns"), seconds(5), 9)
    );
    assert!(
        plan.arguments
            .contains(&"rabbitmq-stream://u:***@h:1/v,rabbitmq-stream+tls://h".to_owned())
    );
}

#[test]
fn the_long_form_and_the_environment_say_the_same() {
    let (long, _) = with(
        "--producers 3 --sub-entry-size 5 --super-streams true --super-stream-partitions 12 --offset 7",
        &[],
    )
    .unwrap();
    let variables = [
        ("RABBITMQ_STREAM_PERF_TEST_ENV_PREFIX", "SPT"),
        ("SPT_PRODUCERS", "3"),
        ("SPT_SUB_ENTRY_SIZE", "5"),
        ("SPT_SUPER_STREAMS", "true"),
        ("SPT_SUPER_STREAM_PARTITIONS", "12"),
        ("SPT_OFFSET", "7"),
        ("OFFSET", "first"),
    ];
    let (environment, _) = with("-x 9", &variables).unwrap();
    for plan in [&long, &environment] {
        assert_eq!((plan.producing.producers, plan.producing.sub_entry), (3, 5));
        assert_eq!(plan.consuming.from, OffsetSpec::Offset(7));
        assert_eq!(plan.partitions_of("s")[..2], ["s-00", "s-01"]);
        assert_eq!(plan.partitions_of("s").len(), 12);
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_write() {
    for (line, says) in [
        ("-u amqp://h", "rabbitmq-stream://"),
        ("-x -1", "from 0 to"),
        ("-pbc 256", "from 1 to 255"),
        ("-co brotli", "none, gzip, snappy, lz4 or zstd"),
        ("-cc com.example.Codec", "internal, qpid or simple"),
        ("-cc simple -fvs 1..3", "--codec simple has no properties"),
        ("-cc simple -sst", "--codec simple has no properties"),
        ("-ll leader", "client-local"),
        ("-fs 15", "from 16 to 255"),
        ("-smssb 4gb", "3gb"),
        ("-mlb 5xb", "valid example values: 100gb"),
        ("-sc 3 -st a,b", "only 1 stream"),
        ("-pn %x", "%s for the stream"),
        ("-mf json", "default or compact"),
        ("-ei 2", "give --id"),
        ("--verify -x 0", "producers and consumers"),
        ("--verify -s 20", "--size 40"),
        ("--verify -fv a", "--filter-values"),
        ("--verify -D 5", "--cmessages"),
        ("--verify -sac", "--offset first"),
        ("-ses 2 -fvs a,b", "an entry has one filter value"),
        ("--latency-from when", "intended or sent"),
        ("-tnd maybe", "Unmatched argument"),
    ] {
        let told = with(line, &[]).unwrap_err();
        assert!(told.contains(says), "{line}: {told}");
    }
    assert_eq!(plan("--verify").producing.size, 40);
    assert_eq!(plan("-s 3").producing.size, 8);
    assert_eq!(plan("-ses 500 -c 10").producing.confirms, 500);
}

#[test]
fn what_has_no_effect_is_told() {
    for (line, says) in [
        (
            "-ne -ccbc 5",
            "--tracking-consumers-by-connection (offsets are stored",
        ),
        ("--monitoring", "no threads of a JVM"),
        ("-au amqp://h", "super streams are made over the stream protocol"),
        ("-co gzip", "--compression has no effect without --sub-entry-size"),
        ("-cn uuid", "--consumer-names has no effect"),
        ("-bpd 5", "--batch-publishing-delay has no effect"),
        (
            "-ic 5 --credits 4-2",
            "--initial-credits has no effect beside --credits",
        ),
        ("--latency-from sent", "without --rate"),
    ] {
        let (_, notes) = with(line, &[]).unwrap();
        assert!(notes.iter().any(|note| note.contains(says)), "{line}: {notes:?}");
    }
    let (_, notes) = with(
        "-r 5 --latency-from sent -ses 2 -co gzip -se 1 -cn uuid -dbs false -bpd 5",
        &[],
    )
    .unwrap();
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn help_version_and_environment_are_texts_whose_examples_can_be_read() {
    let help = with("--help", &[]).unwrap_err();
    let examples: Vec<_> = help
        .lines()
        .filter(|line| line.trim_start().starts_with("leveret stream-perf --"))
        .collect();
    assert!(examples.len() >= 5);
    for line in examples {
        plan(line.trim().trim_start_matches("leveret stream-perf "));
    }
    assert!(with("-v", &[]).unwrap_err().starts_with("leveret stream-perf "));
    assert!(with("-env", &[]).unwrap_err().contains("SUMMARY_FILE"));
}
