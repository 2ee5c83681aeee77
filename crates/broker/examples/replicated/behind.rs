//! A node that catches up while others publish.

use crate::figures::milliseconds;
use crate::process::{BODY, FULL, Processes};
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

/// Queues that nobody publishes to but who measures how long that takes.
const OTHERS: u64 = 20;
/// So many messages of them are measured, one each ten milliseconds.
const MEASURED: u64 = 300;

pub fn run(megabytes: u64) -> Result<(), Box<dyn Error>> {
    let mut processes = Processes::start(OTHERS)?;
    let leader = processes.leader()?;
    processes.spread()?;
    let late = (leader + 1) % processes.0.len();
    let other = (leader + 2) % processes.0.len();
    // What is published stays in the queue: all of it is lacked by who was away.
    processes.0[leader].ask(&format!("kept {FULL}"))?;
    let copied = copy(megabytes << 20)?;
    processes.0[late].signal("STOP")?;
    thread::sleep(Duration::from_secs(1));
    let (began, from) = (Instant::now(), processes.status(leader)?.of("published"));
    processes.0[leader].ask(&format!("rate {FULL}"))?;
    let wanted = (megabytes << 20) / BODY as u64;
    let full = loop {
        thread::sleep(Duration::from_millis(100));
        let published = processes.status(leader)?.of("published") - from;
        if published >= wanted {
            break published as f64 / began.elapsed().as_secs_f64();
        }
    };
    let half = (full / 2.0) as u64;
    processes.0[leader].ask(&format!("rate {half}"))?;
    let usual = processes.0[other].ask(&format!("latency {MEASURED}"))?;
    processes.0[other].tell(&format!("latency {MEASURED}"))?;
    let began = Instant::now();
    processes.0[late].signal("CONT")?;
    // A second's worth of entries is what anybody lacks who is said to keep up.
    let there = loop {
        let (last, status) = (processes.status(leader)?.of("last"), processes.status(late)?);
        if status.of("applied") + half / 10 >= last {
            break status;
        }
        if began.elapsed() > Duration::from_secs(600) {
            return Err("it does not catch up within ten minutes".into());
        }
        thread::sleep(Duration::from_millis(20));
    };
    let took = began.elapsed();
    let beside = processes.0[other].answer()?;
    println!(
        "{megabytes} MB published while a node was stopped, {full:.0} messages of {BODY} bytes a second"
    );
    println!(
        "it caught up in {:.1} s beside {half} messages a second, by {}; a copy of a file as long, synced: {:.1} s; {:.1} times that",
        took.as_secs_f64(),
        match there.of("busy_snapshots") {
            0 => "its leader's log".to_owned(),
            count => format!("{count} snapshots and the log behind them"),
        },
        copied.as_secs_f64(),
        took.as_secs_f64() / copied.as_secs_f64(),
    );
    println!(
        "single messages of other queues: p50 {:.2} ms and p99 {:.2} ms before, {:.2} and {:.2} ms meanwhile",
        milliseconds(Duration::from_micros(usual.of("p50"))),
        milliseconds(Duration::from_micros(usual.of("p99"))),
        milliseconds(Duration::from_micros(beside.of("p50"))),
        milliseconds(Duration::from_micros(beside.of("p99"))),
    );
    Ok(())
}

/// How long it takes to write a file of that length and to sync it.
fn copy(bytes: u64) -> Result<Duration, Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let (piece, began) = (vec![b'x'; 1 << 20], Instant::now());
    let mut file = File::create(dir.path().join("copy"))?;
    for _ in 0..bytes >> 20 {
        file.write_all(&piece)?;
    }
    file.sync_all()?;
    Ok(began.elapsed())
}
