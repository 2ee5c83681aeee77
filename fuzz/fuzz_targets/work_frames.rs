//! What nodes say to each other about classic queues: an envelope with a frame of a handle or of the sessions. It is read as it
//! was written, or not at all; bytes that never were one, or were bent, cost no panic. A node that has links with others takes
//! them, too, with what is said of ways through a third node around them.
#![no_main]

use broker::groups::NodeId;
use broker::groups::handle::{ToLeader, ToNode};
use broker::queues::{Envelope, Existing, Queue, Work, WorkLinks};
use bytes::Bytes;
use leveret_fuzz::Source;
use leveret_fuzz::handle_words::{Leader, Speaker};
use libfuzzer_sys::fuzz_target;
use model::{Incarnation, QueueId};
use queue::encoding::put;
use std::sync::{Arc, Weak};

/// The most messages of a frame here.
const MESSAGES: u8 = 8;

/// What is read is written, and read again, as it is.
fn is_read(bytes: &[u8]) -> Option<Envelope> {
    let read = Envelope::decode(bytes.to_vec())?;
    let written = read.encode().concat();
    assert_eq!(Envelope::decode(written).as_ref(), Some(&read));
    Some(read)
}

/// A number of any length.
fn number(source: &mut Source<'_>) -> u64 {
    let number = u64::from(source.byte()) << 8 | u64::from(source.byte());
    number << (source.byte() % 49)
}

fn up(source: &mut Source<'_>) -> Envelope {
    let mut node = Speaker::new(Incarnation(number(source)));
    let opened = node.opens();
    let count = source.byte() % MESSAGES;
    let others = (0..count).map(|_| node.says(source));
    let messages: Vec<ToLeader> = std::iter::once(opened).chain(others).collect();
    Envelope::Up {
        queue: QueueId(number(source)),
        version: number(source),
        frame: node.said.frame(source, messages),
    }
}

fn down(source: &mut Source<'_>) -> Envelope {
    let mut home = Leader::default();
    let opened = home.opens();
    let count = source.byte() % MESSAGES;
    let others = (0..count).map(|_| home.says(source));
    let messages: Vec<ToNode> = std::iter::once(opened).chain(others).collect();
    Envelope::Down {
        queue: QueueId(number(source)),
        frame: home.said.frame(source, messages),
    }
}

#[derive(Debug)]
struct Nowhere;

impl WorkLinks for Nowhere {
    fn work(&self, _: NodeId, _: Vec<Bytes>) {}
}

/// A node without queues.
struct Nothing;

impl Existing for Nothing {
    fn here(&self, _: QueueId) -> Option<Arc<Queue>> {
        None
    }

    fn version(&self) -> u64 {
        1
    }

    fn moved(&self) {}
}

/// What another node says on a way through a third one: a frame, or nothing, and what the way has to do with it.
fn on_a_way(source: &mut Source<'_>, mut frame: Vec<u8>) -> Vec<u8> {
    let mut said = vec![1, 5 + u8::from(source.byte() > 240)];
    // Two nodes, the way's name, a step, and a start.
    (0..4).for_each(|_| put(&mut said, u64::from(source.byte() % 4)));
    said.push(source.byte() % 6);
    if source.byte() % 2 == 0 {
        put(&mut said, u64::from(source.byte()));
    }
    let length = said.len() as u32;
    frame.extend(said);
    frame.extend(length.to_be_bytes());
    frame
}

/// A node takes all of this of two others, with one of which it loses its link now and then.
fn is_taken(source: &mut Source<'_>, bytes: &[u8]) {
    let existing: Arc<dyn Existing> = Arc::new(Nothing);
    let weak: Weak<dyn Existing> = Arc::downgrade(&existing);
    let work = Work::new(NodeId(3), 1, Arc::new(Nowhere), weak, Arc::default());
    work.up(NodeId(2), 1);
    for _ in 0..source.byte() % 32 {
        let link = NodeId(1 + u32::from(source.byte() % 4 > 0));
        match source.byte() % 8 {
            0 => work.up(NodeId(1), 1 + u64::from(source.byte() % 3)),
            1 => work.down(NodeId(1)),
            2 => (0..source.byte() % 64).for_each(|_| work.tick()),
            3 => work.receive(link, bytes.to_vec()),
            4 => work.receive(link, on_a_way(source, bytes.to_vec())),
            _ => work.receive(link, on_a_way(source, Vec::new())),
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let _ = is_read(input);
    let mut source = Source::new(input);
    let kind = source.byte();
    let said = match kind & 1 {
        0 => up(&mut source),
        _ => down(&mut source),
    };
    let mut bytes = said.encode().concat();
    // Some of what these words say is a lie that no frame may have.
    let _ = is_read(&bytes);
    source.spoil(&mut bytes);
    let _ = is_read(&bytes);
    is_taken(&mut Source::new(input), &bytes);
});
