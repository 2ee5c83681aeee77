//! What nodes and leaders say to each other has bytes that stay as they are: nodes of two versions are in one cluster while it is
//! upgraded.

use super::super::message::{Frame, Notice, Question, Resolved, ToLeader, ToNode, Way};
use super::Said;
use model::{Block, BlockBuilder, ConsumerId, Incarnation, Ranges, Timestamp};
use queue::{Answer, ConsumerSettings, Delivery, Disposal, Held};
use std::fmt::Debug;
use std::sync::Arc;

const CONSUMER: ConsumerId = ConsumerId(300);

/// The bytes of each, alone in a frame. They are read as what they are of, and not as those of another version.
fn written<T: Said + Clone + PartialEq + Debug>(all: Vec<T>) -> Vec<String> {
    let one = |message: T| {
        let frame = Frame {
            session: 3,
            term: 700,
            number: 5,
            seen: 4,
            asks: true,
            messages: vec![message],
        };
        let bytes = frame.encode().concat();
        assert_eq!(Frame::decode(&bytes), Some(frame.clone()));
        // What is said stands last, before its length.
        let mut later = bytes.clone();
        let (rest, length) = later.split_last_chunk_mut::<4>().unwrap();
        let head = rest.len() - u32::from_be_bytes(*length) as usize;
        rest[head] += 1;
        assert_eq!(Frame::<T>::decode(&later), None);
        bytes.escape_ascii().to_string()
    };
    all.into_iter().map(one).collect()
}

fn seqs() -> Ranges {
    let mut seqs = Ranges::one(5);
    seqs.push(7);
    seqs
}

fn block() -> Arc<Block> {
    let mut builder = BlockBuilder::new();
    builder.push(b"x", b"k", b"\x00\x00", b"body");
    builder.push(b"", b"q", b"\x00\x00", b"");
    builder.push(b"", b"q", b"\x00\x00", b"last");
    Arc::new(builder.finish(true, Timestamp(9)))
}

fn delivery() -> Delivery {
    Delivery {
        base: 5,
        seqs: seqs(),
        block: Arc::new({
            let mut builder = BlockBuilder::new();
            builder.push(b"x", b"k", b"\x00\x00", b"body");
            builder.push(b"", b"", b"", b"");
            builder.push(b"", b"q", b"\x00\x00", b"last");
            builder.finish(true, Timestamp(9))
        }),
        redelivered: true,
        returns: 3,
        failures: Some(2),
    }
}

#[test]
fn what_is_said_to_a_leader_has_the_bytes_that_it_always_had() {
    let (consumer, seqs) = (CONSUMER, seqs());
    let resolve = |consumer, way| ToLeader::Resolve {
        number: 300,
        resolved: Resolved {
            consumer,
            seqs: self::seqs(),
            way,
        },
    };
    let ask = |about| ToLeader::Ask { question: 9, about };
    let held = |consumer| Held {
        consumer,
        seqs: self::seqs(),
        returns: 2,
    };
    let node = Incarnation(1_000);
    let all = vec![
        ToLeader::Open { node, sent: 300 },
        ToLeader::Publish {
            first: 300,
            block: block(),
        },
        ToLeader::Consume {
            question: 9,
            consumer,
            settings: ConsumerSettings {
                no_ack: true,
                exclusive: false,
                prefetch: 300,
                priority: -2,
                window: 4_096,
                paused: true,
            },
            outstanding: 70_000,
        },
        ToLeader::Holds {
            held: vec![held(Some(consumer)), held(None)],
            more: true,
        },
        resolve(Some(consumer), Way::Settled(Disposal::Accepted)),
        resolve(None, Way::Settled(Disposal::Rejected)),
        resolve(None, Way::Returned { failed: false }),
        resolve(None, Way::Returned { failed: true }),
        resolve(None, Way::Requeued),
        ask(Question::Get { no_ack: true }),
        ask(Question::Cancel { consumer }),
        ask(Question::Pause { consumer }),
        ask(Question::TakeOut { seqs: seqs.clone() }),
        ask(Question::Purge),
        ask(Question::MayRetire {
            if_unused: true,
            if_empty: false,
        }),
        ask(Question::Use),
        ToLeader::Tell(Notice::Flow { consumer, bytes: 300 }),
        ToLeader::Tell(Notice::Limit {
            consumer,
            prefetch: 300,
        }),
        ToLeader::Tell(Notice::Pause { consumer }),
        ToLeader::Tell(Notice::Resume { consumer }),
        ToLeader::Tell(Notice::PutBack { seqs: seqs.clone() }),
        ToLeader::Tell(Notice::Remove { seqs }),
        ToLeader::Tell(Notice::Use),
        ToLeader::Wants,
        ToLeader::Nothing { node },
    ];
    assert_eq!(
        written(all),
        [
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x01\xe8\x07\xac\x02\x00\x00\x00\x0e",
            r"\x04\x00\x00\x00\x02\x00\x00\x00\x04\x00\x00\x00\x01x\x01k\x00\x00body\x00\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x00\x01q\x00\x00\x04\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x00\x01q\x00\x00last\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x02\xac\x02\x01\t<\x00\x00\x00\x0f",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x03\t\xac\x02\x01\x00\xac\x02\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x80 \x01\xf0\xa2\x04\x00\x00\x00!",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x04\x02\xad\x02\x02\x05\x00\x02\x00\x02\x00\x02\x05\x00\x02\x00\x02\x01\x00\x00\x00\x1b",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x05\xac\x02\xad\x02\x02\x05\x00\x02\x00\x01\x00\x00\x00\x14",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x05\xac\x02\x00\x02\x05\x00\x02\x00\x02\x00\x00\x00\x13",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x05\xac\x02\x00\x02\x05\x00\x02\x00\x03\x00\x00\x00\x13",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x05\xac\x02\x00\x02\x05\x00\x02\x00\x04\x00\x00\x00\x13",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x05\xac\x02\x00\x02\x05\x00\x02\x00\x05\x00\x00\x00\x13",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x06\t\x01\x01\x00\x00\x00\r",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x06\t\x02\xac\x02\x00\x00\x00\x0e",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x06\t\x03\xac\x02\x00\x00\x00\x0e",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x06\t\x04\x02\x05\x00\x02\x00\x00\x00\x00\x11",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x06\t\x05\x00\x00\x00\x0c",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x06\t\x06\x01\x00\x00\x00\x00\x0e",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x06\t\x07\x00\x00\x00\x0c",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x07\x01\xac\x02\xac\x02\x00\x00\x00\x0f",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x07\x02\xac\x02\xac\x02\x00\x00\x00\x0f",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x07\x03\xac\x02\x00\x00\x00\r",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x07\x04\xac\x02\x00\x00\x00\r",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x07\x05\x02\x05\x00\x02\x00\x00\x00\x00\x10",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x07\x06\x02\x05\x00\x02\x00\x00\x00\x00\x10",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x07\x07\x00\x00\x00\x0b",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\x08\x00\x00\x00\n",
            r"\x01\x01\x03\xbc\x05\x05\x04\x01\x01\t\xe8\x07\x00\x00\x00\x0c"
        ]
    );
}

#[test]
fn what_is_said_to_a_node_has_the_bytes_that_it_always_had() {
    let answer = |answer| ToNode::Answer { question: 9, answer };
    let got = Delivery {
        base: 5,
        seqs: Ranges::one(5),
        block: {
            let mut builder = BlockBuilder::new();
            builder.push(b"x", b"k", b"\x00\x00", b"body");
            Arc::new(builder.finish(true, Timestamp(9)))
        },
        failures: None,
        ..delivery()
    };
    let all = vec![
        ToNode::Opened {
            below: 300,
            refused: seqs(),
            resolved: 8,
            credit: 70_000,
        },
        ToNode::Closed,
        ToNode::Speak,
        ToNode::Confirmed(seqs()),
        ToNode::Rejected(seqs()),
        ToNode::Deliver {
            consumer: CONSUMER,
            delivery: delivery(),
        },
        answer(Answer::Consuming),
        answer(Answer::InExclusiveUse),
        answer(Answer::Cancelled),
        answer(Answer::Paused),
        answer(Answer::Stands {
            ready: 300,
            consumers: 2,
        }),
        answer(Answer::Got {
            delivery: got,
            remaining: 300,
        }),
        answer(Answer::Empty),
        answer(Answer::Taken(seqs())),
        answer(Answer::Discard(seqs())),
        answer(Answer::Recalled {
            below: 300,
            refused: seqs(),
        }),
        answer(Answer::Purged(300)),
        answer(Answer::MayRetire(300)),
        answer(Answer::InUse),
        answer(Answer::NotEmpty),
        ToNode::Cancelled { consumer: CONSUMER },
        ToNode::Resolved { number: 300 },
        ToNode::Credit { bytes: 70_000 },
    ];
    assert_eq!(
        written(all),
        [
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x01\xac\x02\x02\x05\x00\x02\x00\x08\xf0\xa2\x04\x00\x00\x00\x15",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x02\x00\x00\x00\n",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x03\x00\x00\x00\n",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x04\x02\x05\x00\x02\x00\x00\x00\x00\x0f",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x05\x02\x05\x00\x02\x00\x00\x00\x00\x0f",
            r"\x04\x00\x00\x00\x02\x00\x00\x00\x04\x00\x00\x00\x01x\x01k\x00\x00body\x04\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x00\x01q\x00\x00last\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x06\xac\x02\x01\x03\x03\x02\x05\x00\x02\x00\x01\t+\x00\x00\x00\x17",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x07\t\x01\x00\x00\x00\x0c",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x07\t\x02\x00\x00\x00\x0c",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x07\t\x03\x00\x00\x00\x0c",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x07\t\x04\x00\x00\x00\x0c",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x07\t\x05\xac\x02\x02\x00\x00\x00\x0f",
            r"\x04\x00\x00\x00\x02\x00\x00\x00\x04\x00\x00\x00\x01x\x01k\x00\x00body\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x07\t\x06\x01\x03\x00\x01\x05\x00\x01\t\x16\xac\x02\x00\x00\x00\x17",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x07\t\x07\x00\x00\x00\x0c",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x07\t\x08\x02\x05\x00\x02\x00\x00\x00\x00\x11",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x07\t\t\x02\x05\x00\x02\x00\x00\x00\x00\x11",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x07\t\n\xac\x02\x02\x05\x00\x02\x00\x00\x00\x00\x13",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x07\t\x0b\xac\x02\x00\x00\x00\x0e",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x07\t\x0c\xac\x02\x00\x00\x00\x0e",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x07\t\r\x00\x00\x00\x0c",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x07\t\x0e\x00\x00\x00\x0c",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\x08\xac\x02\x00\x00\x00\x0c",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\t\xac\x02\x00\x00\x00\x0c",
            r"\x01\x02\x03\xbc\x05\x05\x04\x01\x01\n\xf0\xa2\x04\x00\x00\x00\r"
        ]
    );
}
