//! A node that is stopped for a while, beside others at full speed and with many idle queues.

use crate::process::{FULL, Processes};
use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

/// So long a node may take to catch up.
const LIMIT: Duration = Duration::from_secs(120);

pub fn run(seconds: u64, idle: u64) -> Result<(), Box<dyn Error>> {
    let mut processes = Processes::start(idle)?;
    let leader = processes.leader()?;
    processes.spread()?;
    let led: Vec<_> = (0..3)
        .map(|node| processes.status(node).map(|s| s.of("led")))
        .collect::<Result<_, _>>()?;
    let stopped = (leader + 1) % processes.0.len();
    let others: Vec<_> = (0..processes.0.len()).filter(|node| *node != stopped).collect();
    processes.rate(FULL)?;
    thread::sleep(Duration::from_secs(2));
    let before = processes.status(leader)?;
    println!(
        "{idle} idle queues, {} of them awake, and a busy one; a node is stopped for {seconds} s that leads {}",
        before.of("awake").saturating_sub(1),
        led[stopped],
    );
    let at_first = processes.status(stopped)?;
    processes.0[stopped].signal("STOP")?;
    let while_stopped = watch(&mut processes, &others, Duration::from_secs(seconds))?;
    processes.0[stopped].signal("CONT")?;
    let mut all = others;
    all.push(stopped);
    let afterwards = watch(&mut processes, &all, Duration::from_secs(5))?;
    println!("{:>32} {:>14} {:>14}", "", "while stopped", "5 s after it");
    let rate = |watched: &Watched, seconds: u64| watched.published / seconds.max(1);
    row(
        "messages a second",
        rate(&while_stopped, seconds),
        rate(&afterwards, 5),
    );
    row(
        "elections of idle queues",
        while_stopped.elections,
        afterwards.elections,
    );
    row(
        "idle queues awake, at the most",
        while_stopped.awake,
        afterwards.awake,
    );
    processes.rate(0)?;
    let began = Instant::now();
    while processes.status(stopped)?.of("applied") < processes.status(leader)?.of("last") {
        thread::sleep(Duration::from_millis(20));
        if began.elapsed() > LIMIT {
            return Err("the node that was stopped does not catch up".into());
        }
    }
    processes.leader()?;
    let quiet = began.elapsed();
    let (after, there) = (processes.status(leader)?, processes.status(stopped)?);
    println!(
        "snapshots on the node that was stopped: {} of idle queues, {} of the busy one; it lacked {} entries of that",
        there.of("snapshots") - at_first.of("snapshots"),
        there.of("busy_snapshots") - at_first.of("busy_snapshots"),
        while_stopped.entries,
    );
    println!(
        "publishing ended, {:.1} s later it has everything and all queues sleep; logs of {} and {} MB",
        quiet.as_secs_f64(),
        after.of("log") >> 20,
        there.of("log") >> 20,
    );
    Ok(())
}

fn row(name: &str, stopped: u64, afterwards: u64) {
    println!("{name:>32} {stopped:>14} {afterwards:>14}");
}

#[derive(Default)]
struct Watched {
    published: u64,
    entries: u64,
    elections: u64,
    awake: u64,
}

/// What became different on these nodes in that time.
fn watch(processes: &mut Processes, nodes: &[usize], time: Duration) -> Result<Watched, Box<dyn Error>> {
    let mut watched = Watched::default();
    let mut before = Vec::new();
    for &node in nodes {
        before.push(processes.status(node)?);
    }
    let began = Instant::now();
    while began.elapsed() < time {
        thread::sleep(Duration::from_millis(50));
        for &node in nodes {
            let awake = processes.status(node)?.of("awake");
            watched.awake = watched.awake.max(awake.saturating_sub(1));
        }
    }
    for (&node, before) in nodes.iter().zip(&before) {
        let now = processes.status(node)?;
        let grown = |name| now.of(name) - before.of(name);
        watched.published += grown("published");
        watched.entries = watched.entries.max(grown("last"));
        watched.elections = watched.elections.max(grown("terms"));
    }
    Ok(watched)
}
