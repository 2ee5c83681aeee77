//! Whole runs against a broker in this process, which writes down what it is asked and can be told to err.

use super::double::{Double, Faults, Store};
use super::run::execute;
use super::trial::plan;
use crate::failure::Failure;
use serde_json::Value;

/// A run with these flags; what its JSON says.
fn run(double: &Double, flags: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("run.json");
    let line = format!(
        "{flags} -u {} --json {} --threads 2",
        double.uri(),
        json.display()
    );
    execute(plan(&line)).unwrap_or_else(|failure| panic!("{flags}: {failure}"));
    serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap()
}

fn seen<T>(double: &Double, look: impl FnOnce(&Store) -> T) -> T {
    look(&double.store.lock().unwrap())
}

fn faultless() -> Double {
    Double::start(Faults::default())
}

#[test]
fn everything_that_is_published_is_confirmed_and_consumed() {
    let double = faultless();
    let told = run(&double, "--verify -C 5000 -x 2 -y 2 -sc 2 -cl -bs 70 -ds");
    assert_eq!(told["exit_code"], 0, "{told}");
    for count in ["published", "confirmed", "consumed"] {
        assert_eq!(told["total"][count], 10_000, "{count}");
    }
    assert_eq!(told["total"]["latency"]["count"], 10_000);
    assert_eq!(told["total"]["confirm_latency"]["count"], 10_000);
    assert_eq!(told["stop_reasons"][0], "Producer reached message limit");
    assert_eq!(
        (&told["verify"]["ok"], &told["verify"]["lost"]),
        (&Value::Bool(true), &0.into())
    );
    seen(&double, |store| {
        assert!(
            store.frames.iter().all(|entries| *entries <= 70),
            "{:?}",
            store.frames
        );
        let created = "create stream-1 stream-max-segment-size-bytes=500000000 max-length-bytes=20000000000 queue-leader-locator=balanced stream-filter-size-bytes=16";
        assert_eq!(store.asked[0], created);
        for asked in [
            "publisher 0 '' stream-2",
            "subscribe stream-1 Next 10 ",
            "delete stream-1",
            "delete stream-2",
        ] {
            assert!(
                store.asked.iter().any(|it| it == asked),
                "{asked}: {:?}",
                store.asked
            );
        }
    });
}

#[test]
fn sub_batches_of_every_compression_are_read_again() {
    for compression in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let double = faultless();
        let told = run(
            &double,
            &format!("--verify -C 2000 -ses 30 -bs 5 -co {compression} -s 100"),
        );
        assert_eq!(
            (&told["exit_code"], &told["total"]["consumed"]),
            (&0.into(), &2_000.into()),
            "{compression}"
        );
        seen(&double, |store| {
            assert!(
                store.frames.iter().all(|entries| *entries <= 5),
                "{:?}",
                store.frames
            );
            assert_eq!(store.streams["stream"].next, 2_000);
        });
    }
}

#[test]
fn a_super_stream_has_its_messages_on_all_partitions() {
    let double = faultless();
    let told = run(&double, "--verify -C 3000 -sst -ssp 3 -y 2 -pbc 3 -cbc 3");
    assert_eq!(
        (&told["exit_code"], &told["verify"]["consumed"]),
        (&0.into(), &6_000.into()),
        "{told}"
    );
    seen(&double, |store| {
        assert_eq!(store.asked[0], "create super stream stream 0 1 2");
        assert!(
            store
                .streams
                .values()
                .all(|stream| (800..1_200).contains(&stream.next))
        );
        assert_eq!(
            store.streams.values().map(|stream| stream.next).sum::<u64>(),
            3_000
        );
    });
}

#[test]
fn names_filters_and_stored_offsets_reach_the_broker() {
    let double = faultless();
    run(
        &double,
        "-C 3000 -D 3000 -pn %s-p%d -se 500 -cn reader-%d -fvs a,b,c,d -s 30",
    );
    seen(&double, |store| {
        assert!(
            store.asked.contains(&"publisher 0 'stream-p1' stream".to_owned()),
            "{:?}",
            store.asked
        );
        assert_eq!(store.filter_values.len(), 3_000);
        assert_eq!(
            store.offsets[&("reader-1".to_owned(), "stream".to_owned())],
            2_999,
            "stored at the end"
        );
    });
    // The next run goes on behind what is stored, and takes what has one of its filter values.
    let told = run(
        &double,
        "-C 1000 -se 500 -cn reader-%d -fvs a,b,c,d -fv b -o first -z 1 -s 30 --credits 6-3",
    );
    let asked = "subscribe stream Offset(3000) 6 name=reader-1 filter.0=b match-unfiltered=false";
    seen(&double, |store| {
        assert!(store.asked.contains(&asked.to_owned()), "{:?}", store.asked)
    });
    let of_b = seen(&double, |store| {
        store.filter_values[3_000..]
            .iter()
            .filter(|it| *it == "b")
            .count()
    });
    assert_eq!(told["total"]["consumed"], of_b);
}

#[test]
fn a_slow_consumer_takes_its_time_and_a_rate_is_kept() {
    let double = faultless();
    let told = run(&double, "--verify -r 2000 -C 1000 -R 2500 -nl");
    assert_eq!(
        (&told["exit_code"], &told["total"]["consumed"]),
        (&0.into(), &1_000.into()),
        "{told}"
    );
    assert!(told["total"]["latency"].is_null());
    let seconds = told["total"]["seconds"].as_f64().unwrap();
    assert!(seconds > 0.45, "{seconds}");
}

#[test]
fn what_the_broker_loses_or_doubles_is_found() {
    let loses = Double::start(Faults {
        loses: Some(500),
        ..Faults::default()
    });
    let told = run(&loses, "--verify -C 2000");
    assert_eq!(
        (
            &told["exit_code"],
            &told["verify"]["lost"],
            &told["verify"]["duplicates"]
        ),
        (&1.into(), &1.into(), &0.into()),
        "{told}"
    );
    let doubles = Double::start(Faults {
        doubles: Some(500),
        ..Faults::default()
    });
    let told = run(&doubles, "--verify -C 2000 -bs 10");
    assert_eq!(
        (
            &told["exit_code"],
            &told["verify"]["lost"],
            &told["verify"]["duplicates"]
        ),
        (&1.into(), &0.into(), &10.into()),
        "{told}"
    );
}

#[test]
fn a_lost_connection_is_opened_again_and_what_was_under_way_told_apart() {
    let cuts = Double::start(Faults {
        cuts: Some(500),
        ..Faults::default()
    });
    let told = run(&cuts, "--verify -C 3000 -c 100 -cri 1 -pn mine");
    assert_eq!(
        (
            &told["exit_code"],
            &told["verify"]["lost"],
            &told["total"]["published"]
        ),
        (&0.into(), &0.into(), &3_000.into()),
        "{told}"
    );
    let missing = told["verify"]["unconfirmed_missing"].as_u64().unwrap();
    assert!((1..=100).contains(&missing), "{told}");
    assert_eq!(told["total"]["consumed"].as_u64().unwrap() + missing, 3_000);
    let declared = seen(&cuts, |store| {
        store
            .asked
            .iter()
            .filter(|it| it.starts_with("publisher 0 'mine'"))
            .count()
    });
    assert_eq!(declared, 2);
}

#[test]
fn a_reader_that_is_lost_before_anything_came_misses_nothing() {
    let drops = Double::start(Faults {
        drops: true,
        ..Faults::default()
    });
    let told = run(&drops, "--verify -C 500 -cri 1");
    assert_eq!(
        (&told["exit_code"], &told["total"]["consumed"]),
        (&0.into(), &500.into()),
        "{told}"
    );
    let again = "subscribe stream Offset(0) 10 ".to_owned();
    seen(&drops, |store| {
        assert!(store.asked.contains(&again), "{:?}", store.asked)
    });
}

#[test]
fn who_is_not_there_and_what_does_not_fit_is_told_before_the_run() {
    let double = faultless();
    let refused = execute(plan(&format!("-s 70000 -u {}", double.uri()))).unwrap_err();
    assert!(
        matches!(&refused, Failure::Usage(text) if text.contains("65536 bytes")),
        "{refused}"
    );
    let nobody = execute(plan("-u rabbitmq-stream://127.0.0.1:1")).unwrap_err();
    assert!(
        matches!(&nobody, Failure::Connect(text) if text.contains("127.0.0.1:1")),
        "{nobody}"
    );
}
