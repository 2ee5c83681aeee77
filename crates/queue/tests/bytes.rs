//! The bytes of records, checkpoints and messages, which stand in journals and segments: they stay as they are, whatever becomes
//! of the structs.

#![allow(clippy::unwrap_used)]

use model::{Block, BlockBuilder, ConsumerId, DeduplicationKey, Incarnation, Journaled, Ranges, Timestamp};
use queue::fifo::{Checkpoint, Expiry, Holders, LocalRecord, Record, SenderMark, Sent, Snapshot};
use queue::seen::{self, SeenKey};
use queue::store::{self, LogPlace, Place, Row, Source, Stored, Table};
use queue::{DropReason, NodeConsumer};
use std::fmt::Debug;
use std::sync::Arc;

/// The bytes of each of these, as text. They are read as what they are of.
fn written<R: Journaled + PartialEq + Debug>(records: Vec<R>) -> Vec<String> {
    let text = |record: R| {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        let text = bytes.escape_ascii().to_string();
        assert_eq!(R::decode(&bytes), Some(record));
        text
    };
    records.into_iter().map(text).collect()
}

fn block() -> Arc<Block> {
    let mut builder = BlockBuilder::new();
    builder.push(b"x", b"a.b", b"\x10\x00\x02", b"body");
    builder.push(b"", b"q", b"\x00\x00", b"");
    Arc::new(builder.finish(true, Timestamp(1_700_000_000_123)))
}

fn seqs() -> Ranges {
    let mut seqs = Ranges::span(5, 7);
    seqs.push(300);
    seqs
}

fn sent() -> Box<Sent> {
    Box::new(Sent {
        by: Incarnation(1_000),
        first: 3,
        numbers: seqs(),
    })
}

fn expiries() -> Vec<Expiry> {
    let expiry = |first, last, at_ms| Expiry { first, last, at_ms };
    vec![expiry(5, 6, 1_000), expiry(9, 9, 2)]
}

fn enqueued(expiries: Vec<Expiry>, keyed: bool, sent: Option<Box<Sent>>) -> Record {
    Record::Enqueued {
        first: 5,
        block: block(),
        from: 0,
        expiries,
        keyed,
        sent,
    }
}

#[test]
fn a_record_of_a_queue_has_the_bytes_that_it_always_had() {
    let dropped = |reason| Record::Dropped { seqs: seqs(), reason };
    let records = vec![
        enqueued(Vec::new(), false, None),
        enqueued(expiries(), false, None),
        enqueued(expiries(), true, None),
        enqueued(expiries(), true, Some(sent())),
        Record::HandedOut { below: 300 },
        Record::Declined {
            sent: sent(),
            refused: true,
        },
        Record::Barred {
            node: Incarnation(1_000),
            barred: true,
        },
        Record::MayHold { nodes: None },
        Record::MayHold {
            nodes: Some(vec![Incarnation(1), Incarnation(1_000)]),
        },
        Record::Activated {
            consumer: NodeConsumer {
                node: Incarnation(1_000),
                consumer: ConsumerId(2),
            },
        },
        Record::IncarnationEnded {
            incarnation: Incarnation(1_000),
        },
        Record::Settled { seqs: seqs() },
        Record::Returned {
            seqs: seqs(),
            given_back: false,
        },
        Record::Returned {
            seqs: seqs(),
            given_back: true,
        },
        Record::GivenBack { seqs: seqs() },
        Record::Retried {
            until: expiries(),
            given_back: false,
        },
        Record::Retried {
            until: expiries(),
            given_back: true,
        },
        dropped(DropReason::MaxLength),
        dropped(DropReason::Rejected),
        dropped(DropReason::Purged),
        dropped(DropReason::Unreadable),
        dropped(DropReason::Expired),
        dropped(DropReason::DeliveryLimit),
    ];
    assert_eq!(
        written(records),
        [
            r"\x01\x05{h\xe5\xcf\x8b\x01\x00\x00\x01\x04\x00\x00\x00\x03\x00\x00\x00\x06\x00\x00\x00\x01x\x03a.b\x10\x00\x02body\x00\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x00\x01q\x00\x00",
            r"\x07\x05{h\xe5\xcf\x8b\x01\x00\x00\x01\x02\x05\x01\xe8\x07\x04\x00\x02\x04\x00\x00\x00\x03\x00\x00\x00\x06\x00\x00\x00\x01x\x03a.b\x10\x00\x02body\x00\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x00\x01q\x00\x00",
            r"\x0b\x05{h\xe5\xcf\x8b\x01\x00\x00\x01\x02\x05\x01\xe8\x07\x04\x00\x02\x04\x00\x00\x00\x03\x00\x00\x00\x06\x00\x00\x00\x01x\x03a.b\x10\x00\x02body\x00\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x00\x01q\x00\x00",
            r"\x0c\x05{h\xe5\xcf\x8b\x01\x00\x00\x03\x02\x05\x01\xe8\x07\x04\x00\x02\xe8\x07\x03\x02\x02\x02\xa5\x02\x00\x04\x00\x00\x00\x03\x00\x00\x00\x06\x00\x00\x00\x01x\x03a.b\x10\x00\x02body\x00\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x00\x01q\x00\x00",
            r"\x0f\xac\x02",
            r"\r\x01\xe8\x07\x03\x02\x02\x02\xa5\x02\x00",
            r"\x10\x01\xe8\x07",
            r"\x15\x00",
            r"\x15\x01\x02\x01\xe8\x07",
            r"\x11\xe8\x07\x02",
            r"\x0e\xe8\x07",
            r"\x02\x02\x05\x02\xa5\x02\x00",
            r"\x03\x02\x05\x02\xa5\x02\x00",
            r"\x13\x02\x05\x02\xa5\x02\x00",
            r"\x12\x02\x05\x02\xa5\x02\x00",
            r"\t\x02\x05\x01\xe8\x07\x04\x00\x02",
            r"\x14\x02\x05\x01\xe8\x07\x04\x00\x02",
            r"\x04\x00\x02\x05\x02\xa5\x02\x00",
            r"\x04\x01\x02\x05\x02\xa5\x02\x00",
            r"\x04\x02\x02\x05\x02\xa5\x02\x00",
            r"\x04\x03\x02\x05\x02\xa5\x02\x00",
            r"\x04\x04\x02\x05\x02\xa5\x02\x00",
            r"\x04\x05\x02\x05\x02\xa5\x02\x00"
        ]
    );
}

fn place() -> Place {
    Place {
        segment: 3,
        offset: 4_096,
        length: 200,
    }
}

fn table() -> Table {
    let row = |first, source| Row {
        first,
        count: 2,
        source,
        base: first - 1,
        body_bytes: 1_000,
        weight: 1_100,
    };
    Table {
        rows: vec![
            row(5, Some(Source::Log(LogPlace(70_000)))),
            row(7, Some(Source::Segment(place()))),
            row(9, None),
        ],
    }
}

fn snapshot() -> Snapshot {
    Snapshot {
        next: 400,
        handed_below: 0,
        settled_high: 4,
        live: seqs(),
        returned: vec![(5, 1), (300, 2)],
        given_back: Vec::new(),
        expiries: expiries(),
        retries: expiries(),
        keys: vec![(6, DeduplicationKey(1 << 100))],
    }
}

fn sender(active: Option<ConsumerId>) -> SenderMark {
    SenderMark {
        sender: Incarnation(1_000),
        below: 3,
        beyond: Ranges::span(5, 6),
        forgotten: 1,
        refused: Ranges::one(2),
        barred: true,
        active,
    }
}

#[test]
fn what_a_node_remembers_of_a_queue_has_the_bytes_that_it_always_had() {
    let moved = store::Record::Moved {
        pieces: vec![Stored {
            first: 5,
            count: 3,
            place: place(),
        }],
    };
    let plain = Checkpoint {
        next: 17,
        lanes: vec![(snapshot(), table())],
        ..Checkpoint::default()
    };
    let handed = Snapshot {
        handed_below: 301,
        ..snapshot()
    };
    let with_senders = Checkpoint {
        floor: 2,
        senders: vec![sender(None), sender(Some(ConsumerId(9)))],
        holders: Holders::of(None),
        lanes: vec![(handed.clone(), table()), (snapshot(), Table::default())],
        ..plain.clone()
    };
    let given_back = Snapshot {
        given_back: vec![(6, 4)],
        ..handed
    };
    let with_given_back = Checkpoint {
        lanes: vec![(given_back, table())],
        ..with_senders.clone()
    };
    let with_holders = Checkpoint {
        holders: Holders::of(Some(vec![Incarnation(1), Incarnation(1_000)])),
        ..with_given_back.clone()
    };
    let without_messages = Checkpoint {
        next: 17,
        holders: Holders::of(None),
        ..Checkpoint::default()
    };
    let checkpoints = [
        plain,
        with_senders,
        with_given_back,
        with_holders,
        without_messages,
    ];
    let checkpoints = checkpoints.map(LocalRecord::Checkpoint);
    let all = [LocalRecord::Store(moved)].into_iter().chain(checkpoints);
    assert_eq!(
        written(all.collect()),
        [
            r"\x01\x01\x05\x03\x03\x80 \xc8\x01",
            r"\x02\x11\x01\x90\x03\x04\x02\x05\x02\xa5\x02\x00\x02\x05\x01\xa7\x02\x02\x02\x05\x01\xe8\x07\x04\x00\x02\x02\x05\x01\xe8\x07\x04\x00\x02\x01\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x03\x05\x02\x00\xf0\xa2\x04\x01\xe8\x07\xcc\x08\x07\x02\x01\x03\x80 \xc8\x01\x01\xe8\x07\xcc\x08\t\x02\x02\x01\xe8\x07\xcc\x08",
            r"\x03\x11\x02\x02\xe8\x07\x03\x01\x02\x01\x01\x01\x02\x00\x01\xe8\x07\x03\x01\x02\x01\x01\x01\x02\x00\x03\t\x02\xad\x02\x90\x03\x04\x02\x05\x02\xa5\x02\x00\x02\x05\x01\xa7\x02\x02\x02\x05\x01\xe8\x07\x04\x00\x02\x02\x05\x01\xe8\x07\x04\x00\x02\x01\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x03\x05\x02\x00\xf0\xa2\x04\x01\xe8\x07\xcc\x08\x07\x02\x01\x03\x80 \xc8\x01\x01\xe8\x07\xcc\x08\t\x02\x02\x01\xe8\x07\xcc\x08\x00\x90\x03\x04\x02\x05\x02\xa5\x02\x00\x02\x05\x01\xa7\x02\x02\x02\x05\x01\xe8\x07\x04\x00\x02\x02\x05\x01\xe8\x07\x04\x00\x02\x01\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00",
            r"\x04\x11\x02\x02\xe8\x07\x03\x01\x02\x01\x01\x01\x02\x00\x01\xe8\x07\x03\x01\x02\x01\x01\x01\x02\x00\x03\t\x01\xad\x02\x90\x03\x04\x02\x05\x02\xa5\x02\x00\x02\x05\x01\xa7\x02\x02\x02\x05\x01\xe8\x07\x04\x00\x02\x02\x05\x01\xe8\x07\x04\x00\x02\x01\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x01\x06\x04\x03\x05\x02\x00\xf0\xa2\x04\x01\xe8\x07\xcc\x08\x07\x02\x01\x03\x80 \xc8\x01\x01\xe8\x07\xcc\x08\t\x02\x02\x01\xe8\x07\xcc\x08",
            r"\x05\x11\x02\x02\xe8\x07\x03\x01\x02\x01\x01\x01\x02\x00\x01\xe8\x07\x03\x01\x02\x01\x01\x01\x02\x00\x03\t\x01\x02\x01\xe8\x07\x01\xad\x02\x90\x03\x04\x02\x05\x02\xa5\x02\x00\x02\x05\x01\xa7\x02\x02\x02\x05\x01\xe8\x07\x04\x00\x02\x02\x05\x01\xe8\x07\x04\x00\x02\x01\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x01\x06\x04\x03\x05\x02\x00\xf0\xa2\x04\x01\xe8\x07\xcc\x08\x07\x02\x01\x03\x80 \xc8\x01\x01\xe8\x07\xcc\x08\t\x02\x02\x01\xe8\x07\xcc\x08",
            r"\x05\x11\x00\x00\x00\x00"
        ]
    );
}

#[test]
fn a_record_of_a_deduplicating_exchange_has_the_bytes_that_it_always_had() {
    let key = SeenKey {
        number: 7,
        key: DeduplicationKey(1 << 100),
        until_ms: 1_700_000_000_123,
    };
    let records = vec![seen::Record::Seen(vec![key]), seen::Record::Restated(vec![key])];
    assert_eq!(
        written(records),
        [
            r"\x01\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00{h\xe5\xcf\x8b\x01\x00\x00",
            r"\x02\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00{h\xe5\xcf\x8b\x01\x00\x00"
        ]
    );
}

#[test]
fn a_record_of_another_version_is_none() {
    for first in [0, 5, 19, u8::MAX] {
        assert_eq!(Record::decode(&[first, 0, 0]), None);
        assert_eq!(LocalRecord::decode(&[first, 0, 0]), None);
        assert_eq!(seen::Record::decode(&[first]), None);
    }
}
