//! What a member needs in memory for the messages that went through its group's log.

use crate::figures::resident_bytes;
use crate::node::NODES;
use crate::publisher::{Moved, Publisher};
use crate::trio::Trio;
use std::error::Error;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use storage::LogOptions;

/// So that ten million of them fit onto a disk three times.
const BODY: usize = 16;

pub fn run(messages: u64, block: u64) -> Result<(), Box<dyn Error>> {
    println!("{messages} messages of {BODY} bytes in blocks of {block}; the queue is empty at the end");
    for away in [false, true] {
        // No file is wanted back: what is released is so by the checkpoints that a group makes by itself.
        let log = LogOptions {
            size_limit: u64::MAX,
            ..LogOptions::default()
        };
        let trio = Trio::start(&log)?;
        let measured = measure(&trio, messages, block, away);
        measured.map_err(|Moved| "the leader has changed: start it again")?;
    }
    Ok(())
}

fn measure(trio: &Trio, messages: u64, block: u64, away: bool) -> Result<(), Moved> {
    // What is taken once is there: threads, buffers, the largest queue.
    fill(trio, 100_000.max(messages / 100), block)?;
    let before = resident_bytes();
    if away {
        while trio.nodes[2].busy().hosted.leads() {
            let to = cluster::MemberId::first(cluster::NodeId(1));
            let _ = trio.nodes[2].alone.groups.transfer(crate::node::BUSY, to);
            thread::sleep(Duration::from_millis(200));
        }
        trio.cut.store(true, Ordering::Relaxed);
    }
    fill(trio, messages, block)?;
    // A group that has nothing to do gives back what it kept for members that were a little behind.
    thread::sleep(Duration::from_secs(3));
    let grown = resident_bytes().saturating_sub(before);
    let held: Vec<_> = trio
        .nodes
        .iter()
        .filter_map(|node| node.alone.groups.status(crate::node::BUSY))
        .map(|status| {
            format!(
                "{} entries, {} of them in the log, {} bytes of bodies",
                status.last,
                status.last - status.base.index,
                status.held_bytes
            )
        })
        .collect();
    let sizes = trio.nodes.iter().map(|node| node.alone.node.log.size() >> 20);
    println!(
        "{}: {:.1} MB more in memory, {:.1} MB a member that takes part; logs of {:?} MB; {}",
        if away {
            "one member away"
        } else {
            "all members there"
        },
        grown as f64 / 1e6,
        grown as f64 / 1e6 / if away { 2.0 } else { NODES.len() as f64 },
        sizes.collect::<Vec<_>>(),
        held.join("; "),
    );
    Ok(())
}

fn fill(trio: &Trio, messages: u64, block: u64) -> Result<(), Moved> {
    let mut publisher = Publisher::new(trio.leader(), BODY);
    publisher.publish(messages, block, None)?;
    publisher.purge()?;
    // The next publish is confirmed when the queue is empty everywhere.
    publisher.publish(1, 1, None)?;
    publisher.purge()
}
