//! What a message costs all three nodes, and what one alone costs each.

use crate::figures::{milliseconds, processor_time};
use crate::publisher::{Moved, Publisher, WINDOW};
use crate::trio::Trio;
use std::error::Error;
use std::time::Instant;
use storage::LogOptions;

const BODY: usize = 1_000;
/// So many messages wait for the confirm of the one before, each.
const ALONE: u64 = 500;

pub fn run(messages: u64, blocks: &[u64]) -> Result<(), Box<dyn Error>> {
    let trio = Trio::start(&LogOptions::default())?;
    let blocks = if blocks.is_empty() { &[1, 10, 100] } else { blocks };
    measure(&trio, messages, blocks).map_err(|Moved| "the leader has changed: start it again".into())
}

fn measure(trio: &Trio, messages: u64, blocks: &[u64]) -> Result<(), Moved> {
    // The logs have their files then, which are used again: a node that was up for a while makes none.
    publish(trio, 1_000_000.min(messages * 3), 100)?;
    println!("{messages} messages of {BODY} bytes, {WINDOW} unconfirmed, three nodes in one process");
    println!(
        "{:>10} {:>14} {:>20} {:>18} {:>18} {:>18}",
        "a block",
        "messages/s",
        "µs of a processor",
        "messages a sync",
        "frames a message",
        "turns a message"
    );
    for &block in blocks {
        let (syncs, frames, turns) = (trio.syncs(), trio.frames(), trio.turns());
        let (began, before) = (Instant::now(), processor_time());
        publish(trio, messages, block)?;
        let (wall, used) = (began.elapsed(), processor_time() - before);
        let synced = difference(&trio.syncs(), &syncs);
        println!(
            "{block:>10} {:>14.0} {:>20.2} {:>18.1} {:>18.3} {:>18.3}",
            messages as f64 / wall.as_secs_f64(),
            used.as_secs_f64() * 1e6 / messages as f64,
            messages as f64 * 3.0 / synced as f64,
            (trio.frames() - frames) as f64 / messages as f64,
            difference(&trio.turns(), &turns) as f64 / messages as f64,
        );
    }
    one_at_a_time(trio)
}

/// How much all together have grown.
fn difference(now: &[u64], then: &[u64]) -> u64 {
    now.iter().sum::<u64>() - then.iter().sum::<u64>()
}

fn publish(trio: &Trio, messages: u64, block: u64) -> Result<(), Moved> {
    let mut publisher = Publisher::new(trio.leader(), BODY);
    let mut left = messages;
    while left > 0 {
        let some = left.min(50_000);
        publisher.publish(some, block, None)?;
        publisher.purge()?;
        left -= some;
    }
    Ok(())
}

/// Each message waits for the confirm of the one before it.
fn one_at_a_time(trio: &Trio) -> Result<(), Moved> {
    let mut publisher = Publisher::new(trio.leader(), BODY);
    let (syncs, frames, turns) = (trio.syncs(), trio.frames(), trio.turns());
    let (began, before) = (Instant::now(), processor_time());
    for _ in 0..ALONE {
        publisher.publish(1, 1, None)?;
    }
    let (wall, used) = (began.elapsed(), processor_time() - before);
    println!(
        "one alone: {:.2} ms until confirmed, {:.0} µs of a processor, {} syncs and {} turns on each node, {:.1} frames",
        milliseconds(wall) / ALONE as f64,
        used.as_secs_f64() * 1e6 / ALONE as f64,
        of_one(&trio.syncs(), &syncs),
        of_one(&trio.turns(), &turns),
        (trio.frames() - frames) as f64 / ALONE as f64,
    );
    Ok(())
}

/// How much each has grown for one message alone.
fn of_one(now: &[u64], then: &[u64]) -> String {
    let grown = now
        .iter()
        .zip(then)
        .map(|(now, then)| (now - then) as f64 / ALONE as f64);
    grown
        .map(|of_one| format!("{of_one:.2}"))
        .collect::<Vec<_>>()
        .join(", ")
}
