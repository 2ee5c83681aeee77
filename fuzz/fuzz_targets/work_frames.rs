//! What nodes say to each other about classic queues: an envelope with a frame of a handle or of the sessions. It is read as it
//! was written, or not at all; bytes that never were one, or were bent, cost no panic.
#![no_main]

use broker::groups::handle::{ToLeader, ToNode};
use broker::queues::Envelope;
use leveret_fuzz::Source;
use leveret_fuzz::handle_words::{Leader, Speaker};
use libfuzzer_sys::fuzz_target;
use model::{Incarnation, QueueId};

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
});
