//! What the fifo machine alone costs per message: `cargo run --release -p leveret-queue --example fifo_speed`.

#![allow(clippy::disallowed_methods, reason = "it measures")]

use model::{Block, BlockBuilder, ConsumerId, Machine, Outcome, Ranges, Seq, Timestamp};
use queue::fifo::{
    Classic, ConsumerSettings, Delivery, Disposal, Effect, Ends, QueueSettings, Record, Request,
};
use queue::store::{self, LogPlace, Place, Read, Source, Stored};
use std::collections::VecDeque;
use std::sync::Arc;

enum Plain {}

impl Ends for Plain {
    type Receipt = u32;
    type Reply = u32;
    type Outlet = ();

    fn split(receipt: &mut u32, _: &model::Ranges, _: usize) -> u32 {
        *receipt
    }
}

type Out = Outcome<Record, Effect<Plain>>;

fn block(count: usize, size: usize, persistent: bool) -> Arc<Block> {
    let mut builder = BlockBuilder::with_capacity(count * (size + 40), count);
    let body = vec![b'x'; size];
    for _ in 0..count {
        builder.push(b"", b"queue", &[0x10, 0, 2], &body);
    }
    Arc::new(builder.finish(persistent, Timestamp(0)))
}

fn clear(out: &mut Out) {
    out.records.clear();
    out.effects.clear();
    out.promises.clear();
}

/// What a log would say of the records; nobody looks where it is.
fn append(fifo: &mut Classic<Plain>, out: &Out) {
    for record in &out.records {
        if let Record::Enqueued { first, .. } = record {
            fifo.appended(*first, LogPlace(*first));
        }
    }
}

fn consumer(fifo: &mut Classic<Plain>, id: u64, no_ack: bool, prefetch: u32, out: &mut Out) {
    let settings = ConsumerSettings {
        paused: false,
        no_ack,
        exclusive: false,
        prefetch,
        priority: 0,
        window: 1 << 20,
    };
    fifo.handle(
        Timestamp(0),
        Request::Consume {
            consumer: ConsumerId(id),
            outlet: (),
            settings,
            reply: 0,
        },
        out,
    );
    clear(out);
}

/// Time that this process spent on a processor, in ns (Linux): other processes' load does not count.
fn on_cpu() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    stat.split_whitespace()
        .next()
        .and_then(|nanos| nanos.parse().ok())
        .unwrap_or(0)
}

fn report(name: &str, messages: u64, since: u64) {
    let nanos = (on_cpu() - since) as f64 / messages as f64;
    println!("{name:<58} {nanos:>8.2} ns/message");
}

/// What goes through a queue.
struct Traffic {
    /// Of each message, in bytes.
    size: usize,
    per_block: usize,
    consumers: u64,
    /// So many messages are settled at a time; 0: consumers do not acknowledge.
    acks: usize,
    durable: bool,
}

/// Publishes blocks; gives window back and settles.
fn through(name: &str, traffic: &Traffic) {
    let Traffic {
        size,
        per_block,
        consumers,
        acks,
        durable,
    } = *traffic;
    let mut fifo: Classic<Plain> = Classic::new(QueueSettings {
        durable,
        ..QueueSettings::default()
    });
    let mut out = Out::default();
    for id in 1..=consumers {
        consumer(&mut fifo, id, acks == 0, 1000, &mut out);
    }
    let blocks: Vec<_> = (0..64).map(|_| block(per_block, size, durable)).collect();
    let rounds = if per_block > 1 { 40_000_000 } else { 4_000_000 } / per_block;
    let mut flows = Vec::new();
    let start = on_cpu();
    for round in 0..rounds {
        let block = blocks[round % blocks.len()].clone();
        let receipt = Some(1);
        fifo.handle(Timestamp(0), Request::Enqueue { block, receipt }, &mut out);
        for effect in out.effects.drain(..) {
            if let Effect::Deliver {
                consumer, delivery, ..
            } = effect
            {
                flows.push((consumer, delivery.bytes() as u32, delivery.seqs));
            }
        }
        clear(&mut out);
        for (consumer, bytes, seqs) in flows.drain(..) {
            fifo.handle(Timestamp(0), Request::Flow { consumer, bytes }, &mut out);
            if acks > 0 {
                settle(&mut fifo, consumer, &seqs, traffic, &mut out);
                clear(&mut out);
            }
        }
    }
    report(name, (rounds * per_block) as u64, start);
    assert_eq!(fifo.status().ready + fifo.status().unacked, 0);
}

/// Acknowledges what one delivery brought, some at a time.
fn settle(fifo: &mut Classic<Plain>, consumer: ConsumerId, seqs: &Ranges, traffic: &Traffic, out: &mut Out) {
    let acks = traffic.acks;
    let mut settle = |seqs| {
        let request = Request::Settle {
            consumer: Some(consumer),
            seqs,
            disposal: Disposal::Accepted,
        };
        fifo.handle(Timestamp(0), request, out);
    };
    if traffic.consumers > 1 {
        let list: Vec<Seq> = seqs.iter().collect();
        list.chunks(acks)
            .for_each(|chunk| settle(chunk.iter().copied().collect()));
    } else if let (Some(first), Some(last)) = (seqs.first(), seqs.last()) {
        let spans = (first..=last)
            .step_by(acks)
            .map(|at| Ranges::span(at, last.min(at + acks as u64 - 1)));
        spans.for_each(&mut settle);
    }
}

fn drop_head() {
    let mut fifo: Classic<Plain> = Classic::new(QueueSettings {
        max_length: Some(100),
        ..QueueSettings::default()
    });
    let mut out = Out::default();
    let blocks: Vec<_> = (0..64).map(|_| block(300, 200, false)).collect();
    let rounds = 20_000;
    let start = on_cpu();
    for round in 0..rounds {
        let block = blocks[round % blocks.len()].clone();
        fifo.handle(Timestamp(0), Request::Enqueue { block, receipt: None }, &mut out);
        clear(&mut out);
    }
    report(
        "T3: publish only 200 B into x-max-length=100, blocks of 300",
        rounds as u64 * 300,
        start,
    );
}

/// A disk that answers at once and costs nothing.
struct Disk {
    offset: u32,
    /// What was asked for and has not been read yet.
    loads: VecDeque<(Seq, Source)>,
    /// What is read. Any block that is long enough will do, as nobody looks into the bodies here: a stored piece has up to 1 MiB.
    journaled: Arc<Block>,
    stored: Arc<Block>,
}

impl Disk {
    /// Stores what is to be stored and notes what is to be read; returns what went to the consumer.
    fn answer(&mut self, fifo: &mut Classic<Plain>, out: &mut Out) -> Vec<Delivery> {
        let mut delivered = Vec::new();
        let mut stores = Vec::new();
        for effect in out.effects.drain(..) {
            match effect {
                Effect::Store(store::Effect::Store { pieces, .. }) => stores.push(pieces),
                Effect::Store(store::Effect::Load { first, source, .. }) => {
                    self.loads.push_back((first, source))
                }
                Effect::Deliver { delivery, .. } => delivered.push(delivery),
                _ => {}
            }
        }
        clear(out);
        for pieces in stores {
            let stored = pieces.iter().map(|piece| {
                self.offset += 1;
                let place = Place {
                    segment: 0,
                    offset: self.offset,
                    length: piece.count * 130,
                };
                Stored {
                    first: piece.first,
                    count: piece.count,
                    place,
                }
            });
            let stored = store::Request::FinishStore {
                pieces: stored.collect(),
                unreadable: Ranges::new(),
            };
            fifo.handle(Timestamp(0), Request::Store(stored), out);
        }
        delivered
    }

    /// Reads what was asked for first. False if nothing was.
    fn load_one(&mut self, fifo: &mut Classic<Plain>, out: &mut Out) -> bool {
        let Some((first, source)) = self.loads.pop_front() else {
            return false;
        };
        let block = match source {
            Source::Log(_) => &self.journaled,
            _ => &self.stored,
        };
        let read = Read::intact(block.clone());
        fifo.handle(
            Timestamp(0),
            Request::Store(store::Request::FinishLoad { first, read }),
            out,
        );
        true
    }
}

/// Ten million messages in, ten million out.
fn backlog(per_block: usize, durable: bool) {
    let name = format!(
        "backlog 10 M x 100 B, blocks of {per_block}, {}",
        if durable { "durable" } else { "transient" }
    );
    let mut fifo: Classic<Plain> = Classic::new(QueueSettings {
        durable,
        ..QueueSettings::default()
    });
    let mut out = Out::default();
    let one = block(per_block, 100, durable);
    let mut disk = Disk {
        offset: 0,
        loads: VecDeque::new(),
        journaled: one.clone(),
        stored: block(1 << 14, 100, durable),
    };
    let rounds = 10_000_000 / per_block;
    let start = on_cpu();
    for _ in 0..rounds {
        let (block, receipt) = (one.clone(), None);
        fifo.handle(Timestamp(0), Request::Enqueue { block, receipt }, &mut out);
        append(&mut fifo, &out);
        disk.answer(&mut fifo, &mut out);
        disk.answer(&mut fifo, &mut out);
    }
    report(&format!("{name}: in"), 10_000_000, start);
    println!("    {:?}", fifo.status());
    let start = on_cpu();
    let total = drain(&mut fifo, &mut disk, &mut out);
    report(&format!("{name}: out"), total, start);
    assert_eq!(total, rounds as u64 * per_block as u64);
}

/// Consumes and acknowledges all that is there; returns how many messages that were.
fn drain(fifo: &mut Classic<Plain>, disk: &mut Disk, out: &mut Out) -> u64 {
    consumer_with_backlog(fifo, out);
    let mut total = 0;
    loop {
        let mut idle = true;
        for delivery in disk.answer(fifo, out) {
            idle = false;
            total += delivery.seqs.count();
            let bytes = delivery.bytes() as u32;
            let consumer = ConsumerId(1);
            let settle = Request::Settle {
                consumer: Some(consumer),
                seqs: delivery.seqs,
                disposal: Disposal::Accepted,
            };
            fifo.handle(Timestamp(0), settle, out);
            fifo.handle(Timestamp(0), Request::Flow { consumer, bytes }, out);
        }
        if !disk.load_one(fifo, out) && idle {
            return total;
        }
    }
}

fn consumer_with_backlog(fifo: &mut Classic<Plain>, out: &mut Out) {
    let settings = ConsumerSettings {
        paused: false,
        no_ack: false,
        exclusive: false,
        prefetch: 3000,
        priority: 0,
        window: 1 << 18,
    };
    let request = Request::Consume {
        consumer: ConsumerId(1),
        outlet: (),
        settings,
        reply: 0,
    };
    fifo.handle(Timestamp(0), request, out);
}

fn main() {
    // Bytes, messages of a block, consumers, messages of a settlement; durable.
    let all = [
        (
            "T1: 16 B, blocks of 500, 1 consumer, no ack",
            [16, 500, 1, 0],
            false,
        ),
        (
            "    16 B, blocks of 500, 3 consumers, no ack",
            [16, 500, 3, 0],
            false,
        ),
        (
            "T2: 1,000 B, blocks of 60, 1 consumer, no ack",
            [1000, 60, 1, 0],
            false,
        ),
        (
            "    1,000 B, single messages, 1 consumer, no ack",
            [1000, 1, 1, 0],
            false,
        ),
        (
            "    1,000 B, blocks of 100, acks of 10, transient",
            [1000, 100, 1, 10],
            false,
        ),
        (
            "T4: 1,000 B, blocks of 100, acks of 10, durable",
            [1000, 100, 1, 10],
            true,
        ),
        (
            "    1,000 B, blocks of 100, acks of 10, durable, 2 consumers",
            [1000, 100, 2, 10],
            true,
        ),
        (
            "    1,000 B, single messages, acks of 1, durable",
            [1000, 1, 1, 1],
            true,
        ),
    ];
    for (name, [size, per_block, consumers, acks], durable) in all {
        let traffic = Traffic {
            size,
            per_block,
            consumers: consumers as u64,
            acks,
            durable,
        };
        through(name, &traffic);
    }
    drop_head();
    backlog(500, true);
    backlog(500, false);
    backlog(1, true);
    backlog(1, false);
}
