//! Records of the fifo machine, and what a node remembers beside them, from hostile bytes: what decodes encodes to the
//! same record, and a machine that replays it, after honest records and before a get, a settlement and a purge, does
//! not panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{BlockBuilder, Journaled, Machine, Outcome, Ranges, Timestamp};
use queue::fifo::{Classic, Disposal, Ends, LocalRecord, QueueSettings, Record, Request};
use queue::store::{self, LogPlace};
use std::sync::Arc;

enum Plain {}

impl Ends for Plain {
    type Receipt = u32;
    type Reply = u32;
    type Outlet = ();

    fn split(receipt: &mut u32, _: &Ranges, _: usize) -> u32 {
        *receipt
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut again = Vec::new();
    if let Some(record) = Record::decode(bytes) {
        record.encode(&mut again);
        assert_eq!(Record::decode(&again).as_ref(), Some(&record));
        replay(|queue, outcome| queue.apply(3, record, outcome));
    }
    again.clear();
    if let Some(record) = LocalRecord::decode(bytes) {
        record.encode(&mut again);
        assert_eq!(LocalRecord::decode(&again).as_ref(), Some(&record));
        replay(|queue, _| queue.apply_local(record));
    }
});

type Turn = Outcome<Record, queue::fifo::Effect<Plain>>;

fn replay(hostile: impl FnOnce(&mut Classic<Plain>, &mut Turn)) {
    let mut builder = BlockBuilder::new();
    for _ in 0..90 {
        builder.push(b"", b"q", &[0, 0], b"body");
    }
    let block = Arc::new(builder.finish(true, Timestamp(0)));
    let mut outcome = Outcome::default();
    let mut fifo: Classic<Plain> = Classic::new(QueueSettings {
        durable: true,
        ..QueueSettings::default()
    });
    fifo.replay();
    fifo.apply(
        1,
        Record::Enqueued {
            first: 1,
            block,
            from: 0,
            expiries: Vec::new(),
            keyed: false,
            sent: None,
        },
        &mut outcome,
    );
    fifo.appended(1, LogPlace(1));
    fifo.apply(
        2,
        Record::Settled {
            seqs: Ranges::span(3, 5),
        },
        &mut outcome,
    );
    hostile(&mut fifo, &mut outcome);
    fifo.recovered(false);
    let requests = [
        Request::Get {
            no_ack: false,
            reply: 0,
        },
        Request::Store(store::Request::Checkpoint { before: LogPlace(9) }),
        Request::Settle {
            consumer: None,
            seqs: Ranges::span(0, 40),
            disposal: Disposal::Accepted,
        },
        Request::Return {
            consumer: None,
            seqs: Ranges::span(0, u64::MAX),
            failed: true,
        },
        Request::Purge { reply: 0 },
    ];
    for request in requests {
        fifo.handle(Timestamp(0), request, &mut outcome);
    }
}
