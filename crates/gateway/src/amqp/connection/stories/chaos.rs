//! Clients that say anything at any time, in pieces of any size, sometimes damaged: nothing panics, what they get are frames,
//! a connection's books are right, and in the end nobody holds anything.

use super::{Stage, World, encode_line};
use crate::amqp::channel::State;
use model::Limits;
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// `#` stands for a small number.
const LINES: &[&str] = &[
    "channel.close",
    "channel.flow active",
    "queue.declare queue=q#",
    "queue.declare queue=q# durable",
    "queue.declare queue=one x-single-active-consumer:true",
    "queue.declare queue=few x-max-length:# x-overflow:reject-publish",
    "queue.declare queue=few x-max-length:# x-overflow:reject-publish",
    "queue.declare queue=mine exclusive",
    "queue.declare queue=",
    "queue.delete queue=q#",
    "queue.purge queue=q#",
    "queue.bind queue=q# exchange=amq.fanout key=k",
    "exchange.declare exchange=x# type=topic",
    "exchange.delete exchange=x#",
    "exchange.bind from=x# to=amq.fanout key=#",
    "basic.publish key=q# body=hello",
    "basic.publish key=q# body=hello persistent mandatory",
    "basic.publish key=few size=20# times=5",
    "basic.publish exchange=amq.fanout key=k size=50#",
    "basic.publish key=q# size=999 unfinished",
    "basic.publish key=q# size=999 unfinished",
    "basic.publish key=q# size=999 unfinished",
    "basic.publish key=q# size=1001",
    "basic.publish exchange=nowhere key=k",
    "basic.consume queue=q# consumer=c#",
    "basic.consume queue=q# no-ack",
    "basic.consume queue=one consumer=d#",
    "basic.consume queue=few x-consumer-timeout:200",
    "basic.consume queue=amq.rabbitmq.reply-to no-ack",
    "basic.publish key=q# reply-to=amq.rabbitmq.reply-to body=ask",
    "basic.cancel consumer=c#",
    "basic.get queue=q#",
    "basic.get queue=few no-ack",
    "basic.ack tag=#",
    "basic.ack tag=# multiple",
    "basic.ack tag=0 multiple",
    "basic.nack tag=# requeue multiple",
    "basic.reject tag=#",
    "basic.qos count=#",
    "basic.qos count=# global",
    "basic.recover requeue",
    "confirm.select",
    "tx.select",
    "tx.commit",
    "tx.rollback",
];

/// What costs a connection at most times.
const RUDE: &[&str] = &[
    "channel.open",
    "channel.close-ok",
    "channel.flow-ok active",
    "connection.close",
    "connection.close-ok",
    "connection.open vhost=/",
    "basic.publish key=k immediate body=x",
];

#[derive(Clone, Debug)]
enum Step {
    /// A client says a line, in pieces of so many bytes, and opens the channel first if it is not.
    Say(Line, usize),
    /// It says one of [`RUDE`].
    Rude(u8, u16, usize),
    /// A line with one bit that is another.
    Damaged(Line, usize, u8),
    /// The last byte of a message that was left unfinished.
    Finish(u8, u16),
    /// Milliseconds pass.
    Wait(u64),
    HangUp(u8),
}

#[derive(Clone, Debug)]
struct Line {
    client: u8,
    channel: u16,
    line: usize,
    number: u8,
}

impl Line {
    fn bytes(&self) -> Vec<u8> {
        let text = LINES[self.line].replace('#', &self.number.to_string());
        encode_line(&format!("{} {text}", self.channel), true).unwrap()
    }
}

fn step() -> impl Strategy<Value = Step> {
    let client = 0..3_u8;
    let channel = prop_oneof![6 => 1..3_u16, 2 => 3..11_u16];
    let line = (client.clone(), channel.clone(), 0..LINES.len(), 0..6_u8).prop_map(
        |(client, channel, line, number)| Line {
            client,
            channel,
            line,
            number,
        },
    );
    let pieces = prop_oneof![Just(usize::MAX), 1..40_usize];
    prop_oneof![
        60 => (line.clone(), pieces).prop_map(|(line, piece)| Step::Say(line, piece)),
        10 => (client.clone(), channel).prop_map(|(client, channel)| Step::Finish(client, channel)),
        2 => (client.clone(), 0..4_u16, 0..RUDE.len())
            .prop_map(|(client, channel, rude)| Step::Rude(client, channel, rude)),
        1 => (line, any::<usize>(), 0..8_u8).prop_map(|(line, at, bit)| Step::Damaged(line, at, bit)),
        3 => (0..300_u64).prop_map(Step::Wait),
        1 => client.prop_map(Step::HangUp),
    ]
}

fn letter(client: u8) -> char {
    char::from(b'A' + client)
}

/// Lets a client in that is not there (any more).
fn let_in(world: &mut World, client: u8) {
    let letter = letter(client);
    let there = world.clients.get(&letter);
    if !there.is_some_and(|client| matches!(client.core.stage, Stage::Open(_))) {
        world.clients.remove(&letter);
        world.open(letter, client != 1);
    }
}

/// Opens a channel that is closed, also by the broker.
fn open(world: &mut World, client: u8, channel: u16) {
    let_in(world, client);
    let Stage::Open(open) = &world.clients[&letter(client)].core.stage else {
        return;
    };
    let found = open.channels.get(channel);
    let steps: &[&str] = match found.map(|channel| channel.state) {
        None => &["channel.open"],
        Some(State::Closing) => &["channel.close-ok", "channel.open"],
        Some(State::Open | State::Finishing) => &[],
    };
    for step in steps {
        let bytes = encode_line(&format!("{channel} {step}"), true).unwrap();
        say(world, client, &bytes, usize::MAX);
    }
}

/// Has a client say this.
fn say(world: &mut World, client: u8, bytes: &[u8], piece: usize) {
    for piece in bytes.chunks(piece.min(bytes.len()).max(1)) {
        world.send(letter(client), piece);
        audit(world);
    }
}

/// What a connection counts is what its channels have.
fn audit(world: &mut World) {
    for client in world.clients.values_mut() {
        client.seen.clear();
        let Stage::Open(open) = &client.core.stage else {
            continue;
        };
        let channels = || open.channels.iter();
        let unfinished: usize = channels().map(|channel| channel.assembler.unfinished()).sum();
        assert_eq!(open.unfinished, unfinished);
        let most = open.shared.limits.unfinished_most() as usize;
        assert!(unfinished <= most);
        let held: usize = channels().map(|channel| channel.waiting_replies()).sum();
        assert_eq!(open.held_replies, held);
    }
}

/// A second of it; `CHAOS=2600` in the environment asks for some three minutes.
fn long() -> ProptestConfig {
    ProptestConfig {
        cases: std::env::var("CHAOS").map_or(16, |cases| cases.parse().expect("a number")),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(long())]

    #[test]
    fn whatever_clients_say_the_books_are_right(steps in prop::collection::vec(step(), 0..250)) {
        let mut world = World::with(|options| {
            options.limits = Limits {
                message_bytes: 1_000,
                unfinished_bytes: 1,
                ..Limits::default()
            };
        });
        for step in steps {
            match step {
                Step::Say(line, piece) => {
                    open(&mut world, line.client, line.channel);
                    say(&mut world, line.client, &line.bytes(), piece);
                }
                Step::Rude(client, channel, rude) => {
                    let_in(&mut world, client);
                    let bytes = encode_line(&format!("{channel} {}", RUDE[rude]), true).unwrap();
                    say(&mut world, client, &bytes, usize::MAX);
                }
                Step::Damaged(line, at, bit) => {
                    open(&mut world, line.client, line.channel);
                    let mut bytes = line.bytes();
                    let at = at % bytes.len();
                    bytes[at] ^= 1 << bit;
                    say(&mut world, line.client, &bytes, usize::MAX);
                }
                Step::Finish(client, channel) => {
                    let [high, low] = channel.to_be_bytes();
                    open(&mut world, client, channel);
                    say(&mut world, client, &[3, high, low, 0, 0, 0, 1, b'x', 0xce], usize::MAX);
                }
                Step::Wait(ms) => {
                    world.now += ms;
                    world.turn();
                    audit(&mut world);
                }
                Step::HangUp(client) => {
                    world.clients.remove(&letter(client));
                }
            }
        }
        world.clients.clear();
        let until = Instant::now() + Duration::from_secs(5);
        loop {
            let totals = world.front_end.broker.queue_totals();
            if (totals.unacked, totals.consumers) == (0, 0) {
                break;
            }
            prop_assert!(Instant::now() < until, "somebody who is gone still holds something: {totals:?}");
            world.woken.wait(Duration::from_millis(1));
        }
        // Its threads would keep files and their room on the disk for as long as the tests run.
        world.front_end.broker.close();
    }
}
