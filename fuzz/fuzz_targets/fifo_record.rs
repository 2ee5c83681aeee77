//! Records of the fifo machine from hostile bytes: what decodes encodes to the same record, and a machine that replays it,
//! after honest records and before a get, a settlement and a purge, does not panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{BlockBuilder, Machine, Outcome, Ranges, Timestamp};
use queue::fifo::{Disposal, Ends, Fifo, QueueSettings, Record, Request};
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
    let Some(record) = Record::decode(bytes) else {
        return;
    };
    let mut again = Vec::new();
    record.encode(&mut again);
    assert_eq!(Record::decode(&again).as_ref(), Some(&record));
    let mut builder = BlockBuilder::new();
    for _ in 0..90 {
        builder.push(b"", b"q", &[0, 0], b"body");
    }
    let block = Arc::new(builder.finish(true, Timestamp(0)));
    let mut fifo: Fifo<Plain> = Fifo::new(QueueSettings {
        durable: true,
        ..QueueSettings::default()
    });
    fifo.apply(
        1,
        Record::Enqueued {
            first: 1,
            block,
            from: 0,
            expiries: Vec::new(),
            keyed: false,
        },
    );
    fifo.apply(
        2,
        Record::Settled {
            seqs: Ranges::span(3, 5),
        },
    );
    fifo.apply(3, record);
    fifo.recovered(false);
    let mut outcome = Outcome::default();
    let requests = [
        Request::Get {
            no_ack: false,
            reply: 0,
        },
        Request::Checkpoint { before: 9 },
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
});
