//! Whole runs with a load generator that only pretends, against listeners that never answer.

#![allow(clippy::unwrap_used)]

use bench::results::{Outcome, Results};
use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Ten intervals of a second, with the scenario's flags going to a log.
const GENERATOR: &str = r#"#!/bin/sh
folder=$(dirname "$0")
echo "$@" >> "$folder/calls"
json=; uri=; last=
for a in "$@"; do
  [ "$last" = --json ] && json=$a
  [ "$last" = --uri ] && uri=$a
  [ "$last" = --uris ] && uri=$a
  last=$a
done
if [ -e "$folder/broken" ] && grep -qF "${uri##*:}" "$folder/broken"; then
  case "$*" in *--rate\ 50*) ;; *) echo "connection refused by $uri" >&2; exit 1 ;; esac
fi
now=$(date +%s)000000
l='{"count":100,"min":1,"mean":5,"p50":5,"p75":6,"p90":7,"p95":8,"p99":9,"p99_9":10,"p99_99":11,"max":12}'
intervals=
for i in 0 1 2 3 4 5 6 7 8 9; do
  from=$((now + i * 1000000)); to=$((from + 1000000))
  intervals="$intervals${intervals:+,}{\"from_unix_us\":$from,\"to_unix_us\":$to,\"elapsed_s\":$((i + 1)),\"published\":1000,\"consumed\":1000,\"latency\":$l}"
done
printf '{"format":1,"server":{"product":"Pretender","version":"9"},"started_unix_us":%s,"intervals":[%s],"total":{"seconds":10,"published":10000,"consumed":10000,"latency":%s}}' "$now" "$intervals" "$l" > "$json"
"#;

struct World {
    folder: tempfile::TempDir,
    brokers: [TcpListener; 2],
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let generator = folder.path().join("generator");
        fs::write(&generator, GENERATOR).unwrap();
        fs::set_permissions(&generator, fs::Permissions::from_mode(0o755)).unwrap();
        let brokers = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        Self { folder, brokers }
    }

    fn port(&self, broker: usize) -> u16 {
        self.brokers[broker].local_addr().unwrap().port()
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// Runs `leveret bench` with these words and the pretending generator.
    fn bench(&self, line: &str) -> ExitCode {
        let mut args: Vec<OsString> = line.split_ascii_whitespace().map(OsString::from).collect();
        args.push("--perf-program".into());
        args.push(self.folder.path().join("generator").into());
        bench::main(args)
    }

    fn begin(&self, more: &str) -> ExitCode {
        let (a, b, out) = (self.port(0), self.port(1), self.output());
        let out = out.display();
        self.bench(&format!(
            "--target a=amqp://127.0.0.1:{a} --target b=amqp://127.0.0.1:{b} --output {out} {more}"
        ))
    }

    fn results(&self) -> Results {
        serde_json::from_str(&fs::read_to_string(self.output().join("results.json")).unwrap()).unwrap()
    }

    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn break_broker(&self, broker: usize) {
        fs::write(self.folder.path().join("broken"), self.port(broker).to_string()).unwrap();
    }
}

fn exists(folder: &Path, name: &str) -> bool {
    folder.join(name).exists()
}

#[test]
fn a_run_visits_the_targets_in_turns_and_writes_its_reports() {
    let world = World::new();
    assert_eq!(
        world.begin("--scenarios T1 --rounds 2 --note hello"),
        ExitCode::SUCCESS
    );
    let results = world.results();
    assert_eq!(results.targets[1].version, "Pretender 9");
    assert!(results.machine.note.starts_with("hello"));
    assert!(results.finished_unix_s.is_some());
    let runs = &results.scenarios[0].runs;
    let order: Vec<(u32, usize)> = runs.iter().map(|run| (run.round, run.target)).collect();
    assert_eq!(order, [(0, 0), (0, 1), (1, 0), (1, 1)]);
    // The window of four seconds after one of warm-up.
    assert!(
        runs.iter()
            .all(|run| run.seconds == 4.0 && run.published == 4_000 && run.publish_rate == 1_000.0)
    );
    assert_eq!(runs[0].latency.unwrap().p99, 9.0);
    assert!(
        runs[0].rss_peak_bytes.is_some(),
        "the listener is this process, which can be watched"
    );
    for file in ["results.json", "report.md", "report.html", "plots"] {
        assert!(exists(&world.output(), file), "{file}");
    }
    assert!(!exists(&world.output(), "scratch"));
    // Two greetings, then A B B A.
    let ports = [world.port(0), world.port(1)].map(|port| format!(":{port} "));
    let calls = world.calls();
    let visited: Vec<usize> = calls
        .iter()
        .map(|call| usize::from(call.contains(&ports[1])))
        .collect();
    assert_eq!(visited, [0, 1, 0, 1, 1, 0]);
    assert!(
        calls[2].contains("--size 16") && calls[2].contains("--time 5"),
        "{}",
        calls[2]
    );
}

#[test]
fn a_visit_that_fails_is_recorded_and_tried_again_when_the_run_goes_on() {
    let world = World::new();
    world.break_broker(1);
    assert_eq!(world.begin("--scenarios T1,T2 --rounds 1"), ExitCode::SUCCESS);
    let failed = &world.results().scenarios[0].runs[1];
    let Outcome::Failed { reason } = &failed.outcome else {
        panic!("{failed:?}");
    };
    assert!(reason.contains("connection refused"), "{reason}");
    assert!(exists(&world.output(), "failures.log"));
    let before = world.calls().len();
    fs::remove_file(world.folder.path().join("broken")).unwrap();
    assert_eq!(
        world.bench(&format!("--resume {}", world.output().display())),
        ExitCode::SUCCESS
    );
    // Two greetings and the two visits that had failed.
    assert_eq!(world.calls().len() - before, 4);
    let results = world.results();
    assert!(
        results
            .scenarios
            .iter()
            .flat_map(|s| &s.runs)
            .all(|run| run.outcome == Outcome::Ok)
    );
    assert_eq!(results.scenarios[1].runs.len(), 2);
    assert_eq!(
        world.bench(&format!("--resume {}", world.output().display())),
        ExitCode::SUCCESS
    );
}

#[test]
fn a_target_that_is_not_there_is_refused_before_anything_is_written() {
    let world = World::new();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = gone.local_addr().unwrap().port();
    drop(gone);
    let line = format!(
        "--target x=amqp://127.0.0.1:{port} --output {}",
        world.output().display()
    );
    assert_eq!(world.bench(&line), ExitCode::from(1));
    assert!(!world.output().exists());
}

#[test]
fn a_command_line_that_cannot_be_done_ends_with_2() {
    let world = World::new();
    assert_eq!(world.bench("--scenarios T1"), ExitCode::from(2));
    assert_eq!(world.begin("--scenarios NOTHING"), ExitCode::from(2));
    assert_eq!(world.bench("--no-such-flag"), ExitCode::from(2));
    assert_eq!(world.bench("--show /nowhere"), ExitCode::from(2));
    assert_eq!(world.bench("--list"), ExitCode::SUCCESS);
}

#[test]
fn results_are_not_written_over_and_can_be_shown_again() {
    let world = World::new();
    assert_eq!(world.begin("--scenarios T1 --rounds 1"), ExitCode::SUCCESS);
    assert_eq!(world.begin("--scenarios T1 --rounds 1"), ExitCode::from(2));
    let again = world.folder.path().join("again");
    let line = format!("--show {} --output {}", world.output().display(), again.display());
    assert_eq!(world.bench(&line), ExitCode::SUCCESS);
    assert!(exists(&again, "report.html") && !exists(&again, "results.json"));
}

#[test]
fn a_scenario_of_streams_fills_its_stream_first_and_is_skipped_where_nobody_listens_for_them() {
    let world = World::new();
    let streams = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let ports = [&streams, &gone].map(|listener| listener.local_addr().unwrap().port());
    drop(gone);
    let (a, b, out) = (world.port(0), world.port(1), world.output());
    let line = format!(
        "--target a=amqp://127.0.0.1:{a},stream=rabbitmq-stream://127.0.0.1:{} \
         --target b=amqp://127.0.0.1:{b},stream=rabbitmq-stream://127.0.0.1:{} \
         --output {} --scenarios X-STREAM-READERS@10 --rounds 1",
        ports[0],
        ports[1],
        out.display()
    );
    assert_eq!(world.bench(&line), ExitCode::SUCCESS);
    let runs = &world.results().scenarios[0].runs;
    assert_eq!((&runs[0].outcome, runs[0].published), (&Outcome::Ok, 4_000));
    let Outcome::Skipped { reason } = &runs[1].outcome else {
        panic!("{:?}", runs[1]);
    };
    assert!(
        reason.contains(&ports[1].to_string()) && reason.contains("stream=URI"),
        "{reason}"
    );
    let report = fs::read_to_string(out.join("report.md")).unwrap();
    assert!(
        report.contains("skipped: nobody listens for the stream protocol"),
        "{report}"
    );
    assert!(!exists(&out, "failures.log"));
    // Two greetings, what is filled, and the load, which goes to the same stream and takes it away.
    let calls = world.calls();
    assert_eq!(calls.len(), 4);
    let stream = |call: &str| {
        let mut words = call.split(' ').skip_while(|word| *word != "--streams");
        words.nth(1).map(str::to_owned)
    };
    assert!(
        calls[2].starts_with("stream-perf ") && calls[2].contains("--pmessages"),
        "{}",
        calls[2]
    );
    assert!(!calls[2].contains("--delete-streams") && calls[3].ends_with("--delete-streams"));
    assert_eq!(stream(&calls[2]), stream(&calls[3]));
}
