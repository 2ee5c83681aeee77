//! What making and reading a message costs, in nanoseconds: `cargo run --release -p leveret-perf --example speed`.
//!
//! The load generator may not be what is measured, so these are watched. Figures are the best of several rounds.

#![allow(clippy::unwrap_used, reason = "a measurement that can't begin has failed")]

use model::properties::Properties;
use model::{Message, RouteBuf};
use perf::Request;
use perf::cli::plan;
use perf::message::Messages;
use perf::pace::Pacer;
use perf::plan::Schedule;
use perf::topology::Route;
use perf::verify::Ledger;
use protocol::amqp::{DeliverTemplate, scan_deliver};
use std::hint::black_box;
use std::time::Instant;

const BATCH: u64 = 1000;
const BATCHES: u64 = 500;
const ROUNDS: usize = 15;

/// Runs a batch many times over and prints the best round's nanoseconds a message.
fn measure(name: &str, mut batch: impl FnMut()) {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        (0..BATCHES).for_each(|_| batch());
        best = best.min(begun.elapsed().as_nanos() as f64 / (BATCH * BATCHES) as f64);
    }
    println!("{best:7.1} ns  {name}");
}

fn messages(line: &str, key: Option<&str>) -> Messages {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let Ok(Request::Run(plan)) = plan(&arguments, &|_| None) else {
        panic!("no plan: {line}")
    };
    let route = Route {
        exchange: "direct".to_owned(),
        routing_key: key.map(str::to_owned),
    };
    Messages::new(&plan, 0, 1, &route, 131_072, 0).unwrap()
}

fn making(line: &str, key: Option<&str>, lag: u64) {
    let mut it = messages(line, key);
    let mut out = Vec::new();
    let mut now = 1_000_000_000;
    measure(
        &format!("append {line}, {} late", if lag == 0 { "not" } else { "a bit" }),
        || {
            out.clear();
            now += 200_000;
            for _ in 0..BATCH {
                it.append(black_box(&mut out), now, now - lag);
            }
        },
    );
}

fn reading(body: usize) {
    let mut template = DeliverTemplate::new(1, "consumer-0-0", 131_072);
    let mut bytes = Vec::new();
    let route = RouteBuf::new(b"direct", b"key1");
    let body = vec![0; body];
    let message = Message::new(route.as_route(), Properties::amqp091(&[0, 0]), &body);
    for tag in 0..BATCH {
        template.deliver(&mut bytes, tag, false, &message);
    }
    measure(&format!("scan_deliver of {} bytes", body.len()), || {
        let mut at = 0;
        while let Some((delivery, used)) = scan_deliver(black_box(&bytes[at..])) {
            black_box(delivery);
            at += used;
        }
    });
}

fn main() {
    making("--size 16", Some("key1"), 0);
    making("--size 16", Some("key1"), 5_000_000);
    making("--size 1000", Some("key1"), 0);
    making(
        "--size 16 --random-routing-key --routing-key-cache-size 1000",
        None,
        0,
    );
    making("--size 16 --random-routing-key", None, 0);
    making("--size 40 --verify", Some("key1"), 0);
    making("--json-body --size 1000", Some("key1"), 0);
    reading(16);
    reading(1000);
    let mut pacer = Pacer::new(&Schedule::Rate(1e6), 0, 0, 1);
    let mut now = 0;
    measure("Pacer::take at a rate", || {
        now += 1_000_000;
        for _ in 0..pacer.due(now) {
            black_box(pacer.take(now));
        }
    });
    let mut it = messages("--size 40 --verify", Some("key1"));
    let mut ledger = Ledger::new(1, true, true);
    let mut out = Vec::new();
    measure("Ledger: published, confirmed and consumed", || {
        for _ in 0..BATCH {
            out.clear();
            let sequence = it.sequence();
            it.append(&mut out, 1, 1);
            ledger.published(0, sequence);
            ledger.confirmed(0, sequence);
            ledger.consumed(&out[out.len() - 41..out.len() - 1], false);
        }
    });
    assert!(ledger.report(true).ok);
}
