//! Producers and consumers without a socket: what they write, what they count, what they wait for.

use super::consumer::{Consumer, Next, Received};
use super::producer::{Producer, Wants};
use super::shared::{Shared, lock};
use crate::cli::plan;
use crate::measure::Recorder;
use crate::plan::Plan;
use crate::subcommand::Request;
use crate::topology::Route;
use model::Limits;
use protocol::amqp::method::{BasicAck, BasicNack};
use protocol::amqp::{Assembler, Method, Step, next_frame};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const SECOND: u64 = 1_000_000_000;

/// The plan of a command line.
fn of(line: &str) -> Plan {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match plan(&arguments, &|_| None) {
        Ok(Request::Run(plan)) => *plan,
        Ok(Request::Print(text)) => panic!("{line}: {text}"),
        Err(failure) => panic!("{line}: {failure}"),
    }
}

/// A producer on a clock that only the story moves.
struct World {
    shared: Shared,
    producer: Producer,
    recorder: Recorder,
    out: Vec<u8>,
}

impl World {
    fn new(line: &str) -> Self {
        let plan = of(line);
        let route = Route {
            exchange: "direct".into(),
            routing_key: Some("key".into()),
        };
        let mut producer = Producer::new(&plan, 0, 1, &route, 131_072, 0).unwrap();
        producer.start(SECOND);
        Self {
            shared: Shared::new(Arc::new(plan), 1),
            producer,
            recorder: Recorder::new(),
            out: Vec::new(),
        }
    }

    fn publish(&mut self, now: u64) -> (u64, Wants) {
        let before = self.recorder.published;
        let wants = self
            .producer
            .publish(&mut self.out, now, &mut self.recorder, &self.shared);
        (self.recorder.published - before, wants)
    }

    fn confirm(&mut self, tag: u64, multiple: bool, now: u64) {
        let (recorder, shared) = (&mut self.recorder, &self.shared);
        self.producer.settled(tag, multiple, false, now, recorder, shared);
    }
}

/// The names of the methods in a buffer of frames.
fn methods(bytes: &[u8]) -> Vec<String> {
    let (mut at, mut assembler, mut names) = (0, Assembler::new(), Vec::new());
    while let Some((frame, used)) = next_frame(&bytes[at..], 0).unwrap() {
        match assembler.feed(&frame, &Limits::default()).unwrap() {
            Step::Method(method) => names.push(method.id().to_string()),
            Step::Content(content) => names.push(content.method.id().to_string()),
            Step::More => {}
            Step::Refused(exception) => panic!("{}", exception.reply_text()),
        }
        at += used;
    }
    assert_eq!(at, bytes.len());
    names
}

#[test]
fn a_confirm_window_holds_the_producer_until_the_broker_answers() {
    let mut world = World::new("--confirm 2 --consumers 0");
    assert_eq!(world.publish(SECOND), (2, Wants::Turn));
    assert_eq!(world.publish(SECOND), (0, Wants::Broker));
    world.confirm(1, false, SECOND + 5_000);
    assert_eq!(world.publish(SECOND + 5_000), (1, Wants::Turn));
    world.confirm(3, true, SECOND + 9_000);
    assert_eq!(world.recorder.confirmed, 3);
    assert_eq!(world.recorder.confirm_latency.len(), 3);
    assert_eq!(methods(&world.out).len(), 3);
}

#[test]
fn confirms_that_stay_away_are_noticed_after_the_timeout() {
    let mut world = World::new("--confirm 1 --confirm-timeout 3 --consumers 0");
    world.publish(SECOND);
    world.publish(2 * SECOND);
    assert!(!world.producer.is_stuck(4 * SECOND, 3 * SECOND));
    assert!(world.producer.is_stuck(6 * SECOND, 3 * SECOND));
    world.confirm(1, false, 6 * SECOND);
    assert!(!world.producer.is_stuck(7 * SECOND, 3 * SECOND));
}

#[test]
fn the_last_message_ends_a_producer_once_it_is_confirmed() {
    let mut world = World::new("--pmessages 3 --confirm 10 --consumers 0");
    assert_eq!(world.publish(SECOND).0, 3);
    assert_eq!(world.publish(SECOND), (0, Wants::Broker));
    assert_eq!(world.shared.ended().0, 0);
    world.confirm(3, true, SECOND);
    assert_eq!(world.publish(SECOND), (0, Wants::Nothing));
    assert_eq!(world.publish(SECOND), (0, Wants::Nothing));
    let reasons = world.shared.reasons();
    assert_eq!(reasons, [("Producer reached message limit".to_owned(), 1)]);
}

#[test]
fn a_rate_publishes_what_is_due_and_waits_for_the_next_moment() {
    let mut world = World::new("--rate 1000 --consumers 0");
    assert_eq!(world.publish(SECOND), (1, Wants::Turn));
    assert_eq!(world.publish(SECOND), (0, Wants::Moment(SECOND + 1_000_000)));
    // A quarter of a second late: all arrears go out at once, and their latency counts from when they were due.
    assert_eq!(world.publish(SECOND + 250_000_000).0, 250);
}

#[test]
fn the_window_of_unconsumed_messages_opens_when_a_quarter_is_free() {
    let mut world = World::new("--max-in-flight 8");
    assert_eq!(world.publish(SECOND), (8, Wants::Turn));
    assert_eq!(world.publish(SECOND), (0, Wants::Window));
    world.shared.count_consumed(1);
    assert_eq!(world.publish(SECOND), (0, Wants::Window));
    world.shared.count_consumed(1);
    assert_eq!(world.publish(SECOND), (2, Wants::Turn));
}

#[test]
fn a_transaction_waits_for_its_commit() {
    let mut world = World::new("--ptxsize 2 --consumers 0");
    assert_eq!(world.publish(SECOND), (2, Wants::Broker));
    assert_eq!(world.publish(SECOND), (0, Wants::Broker));
    assert_eq!(
        methods(&world.out),
        ["basic.publish", "basic.publish", "tx.commit"]
    );
    world.producer.committed();
    assert_eq!(world.publish(SECOND), (2, Wants::Broker));
}

#[test]
fn a_new_connection_starts_its_delivery_tags_anew() {
    let mut world = World::new("--confirm 2 --consumers 0");
    world.publish(SECOND);
    world.producer.reconnected(&world.shared);
    assert_eq!(world.publish(SECOND).0, 2);
    world.confirm(2, true, SECOND);
    assert_eq!(world.recorder.confirmed, 2);
}

/// Gives a consumer `count` messages and returns what it answers.
fn consume(
    consumer: &mut Consumer,
    shared: &Shared,
    recorder: &mut Recorder,
    tags: std::ops::Range<u64>,
) -> Vec<u8> {
    let mut out = Vec::new();
    for delivery_tag in tags {
        let message = Received {
            delivery_tag,
            redelivered: false,
            routing_key: b"key",
            properties: &[0, 0],
            body: &[0; 12],
        };
        let next = consumer.received(&message, SECOND, &mut out, recorder, shared);
        assert_eq!(next, Next::Message);
    }
    out
}

fn consumer(line: &str) -> (Consumer, Shared) {
    let plan = of(line);
    let consumer = Consumer::new(&plan, 0, 1, vec!["q".into()], Arc::new(AtomicU64::new(0)));
    (consumer, Shared::new(Arc::new(plan), 1))
}

#[test]
fn a_multiple_ack_settles_every_so_many_messages() {
    let (mut it, shared) = consumer("--qos 10 --multi-ack-every 3");
    let mut recorder = Recorder::new();
    let out = consume(&mut it, &shared, &mut recorder, 1..8);
    let mut acks = Vec::new();
    let mut at = 0;
    while let Some((frame, used)) = next_frame(&out[at..], 0).unwrap() {
        if let Step::Method(Method::BasicAck(BasicAck {
            delivery_tag,
            multiple,
        })) = Assembler::new().feed(&frame, &Limits::default()).unwrap()
        {
            acks.push((delivery_tag, multiple));
        }
        at += used;
    }
    assert_eq!(acks, [(3, true), (6, true)]);
    assert_eq!(recorder.consumed, 7);
}

#[test]
fn a_nack_says_whether_to_requeue() {
    let (mut it, shared) = consumer("--nack --requeue false");
    let out = consume(&mut it, &shared, &mut Recorder::new(), 1..2);
    let (frame, _) = next_frame(&out, 0).unwrap().unwrap();
    let expected = BasicNack {
        delivery_tag: 1,
        multiple: false,
        requeue: false,
    };
    let mut assembler = Assembler::new();
    let step = assembler.feed(&frame, &Limits::default()).unwrap();
    assert_eq!(step, Step::Method(Method::BasicNack(expected)));
}

#[test]
fn what_comes_after_the_limit_is_neither_counted_nor_acknowledged() {
    let (mut it, shared) = consumer("--cmessages 2");
    let mut recorder = Recorder::new();
    let out = consume(&mut it, &shared, &mut recorder, 1..6);
    assert_eq!((recorder.consumed, methods(&out).len()), (2, 2));
    assert_eq!(
        shared.reasons(),
        [("Consumer reached message limit".to_owned(), 1)]
    );
}

#[test]
fn a_consumer_with_a_rate_is_busy_until_its_next_message() {
    let (mut it, shared) = consumer("--autoack --consumer-rate 10");
    let message = Received {
        delivery_tag: 1,
        redelivered: false,
        routing_key: b"key",
        properties: &[0, 0],
        body: &[0; 12],
    };
    let mut recorder = Recorder::new();
    let mut busy = Vec::new();
    for _ in 0..3 {
        if let Next::Pause(until) = it.received(&message, SECOND, &mut Vec::new(), &mut recorder, &shared) {
            busy.push(until - SECOND);
        }
    }
    // The first tenth of a second is free, as arrears.
    assert_eq!(busy, [100_000_000, 200_000_000]);
}

#[test]
fn messages_that_come_before_they_were_sent_are_counted_apart() {
    let (mut it, shared) = consumer("--autoack");
    let mut recorder = Recorder::new();
    let mut body = [0; 12];
    body[4..].copy_from_slice(&(2 * SECOND).to_be_bytes());
    let message = Received {
        delivery_tag: 1,
        redelivered: false,
        routing_key: b"key",
        properties: &[0, 0],
        body: &body,
    };
    it.received(&message, SECOND, &mut Vec::new(), &mut recorder, &shared);
    it.flush(SECOND, &mut recorder);
    assert_eq!((recorder.early, recorder.latency.len()), (1, 0));
    assert!(lock(&shared.recorders[0]).is_idle());
    assert_eq!(shared.published.load(Relaxed), 0);
}
