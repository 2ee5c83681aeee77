//! What replicated queues cost: three nodes with real logs, in this process or each in one of its own.
#![allow(
    clippy::disallowed_methods,
    reason = "measurements of real threads and processes by a real clock"
)]

mod behind;
mod confirms;
mod figures;
mod memory;
mod node;

mod peers;
mod process;
mod publisher;
mod speed;

mod stopped;
mod trio;

use std::error::Error;

const HELP: &str = "What replicated queues cost: three nodes with real logs on this machine.

replicated speed [MESSAGES [BLOCK...]]
    Processor time of 1 kB messages that are published in blocks of so many as fast as they are confirmed, over all
    three nodes in this process; then what one message alone costs: syncs, frames, turns.
    100,000 messages in blocks of 1, 10 and 100 unless said otherwise.
replicated memory [MESSAGES [BLOCK]]
    What a member needs in memory for so many messages that went through its group's log, when the queue is empty: once with
    all three members, once while one of them is away. 10,000,000 in blocks of 100.
replicated stopped [SECONDS [IDLE]]
    Three processes, one queue at full speed beside idle ones. One process is stopped (SIGSTOP) for so many seconds:
    which queues had elections, which were awake, and which members had to fetch a snapshot. 5 seconds, 1,000 queues.
replicated behind [MEGABYTES]
    Three processes. One is stopped while so much is published, and catches up while it is published at half the rate:
    how long that takes beside a copy of a file as long, and what other queues notice. 2,000 MB.

Build it with --release. Directories are made below TMPDIR and removed at the end.";

/// A word of the command line as a number.
fn number(words: &[String], at: usize, otherwise: u64) -> Result<u64, Box<dyn Error>> {
    match words.get(at) {
        Some(word) => Ok(word.replace([',', '_'], "").parse()?),
        None => Ok(otherwise),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map_or("speed", String::as_str) {
        "speed" => {
            let blocks: Result<Vec<_>, _> = (2..words.len()).map(|at| number(&words, at, 0)).collect();
            speed::run(number(&words, 1, 100_000)?, &blocks?)
        }
        "memory" => memory::run(number(&words, 1, 10_000_000)?, number(&words, 2, 100)?),
        "stopped" => stopped::run(number(&words, 1, 5)?, number(&words, 2, 1_000)?),
        "behind" => behind::run(number(&words, 1, 2_000)?),
        // What the two above start; it takes orders from its standard input.
        "node" => process::run(&words[1..]),
        _ => {
            println!("{HELP}");
            Ok(())
        }
    }
}
