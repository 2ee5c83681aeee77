//! The measured cases without sockets: bytes in, bytes out, on one thread.
//!
//! As tests they say that everything published arrives and is confirmed. `cargo xtask instructions` runs the same tests
//! under callgrind, which counts the instructions inside [`counted`] and nothing else: no client, no login, and none of the
//! threads of the log, whose pace depends on the disk. So that one run is like the other, a publisher that
//! waits for confirms has all of them before it goes on; the waiting itself is not counted.

use super::stories::{WakeCount, encode_line, opening};
use super::*;
use crate::amqp::options::Options;
use broker::{Broker, Options as BrokerOptions};
use protocol::amqp::{Method, Part, next_frame};
use std::time::{Duration, Instant};

/// What a case does.
struct Case {
    /// Said on a connection of its own before all others.
    setup: &'static [&'static str],
    publishers: usize,
    consumers: usize,
    /// One message, in the language of the stories.
    publish: &'static str,
    /// So many messages a publisher sends at once; if it waits for confirms, then for those of all of them.
    window: usize,
    confirms: bool,
    /// A consumer acknowledges so many at once; 0: the broker does it itself.
    ack: u64,
    /// How often each publisher sends a window; the first round only warms up and is not counted.
    rounds: usize,
}

/// What one read from a socket brings at most, in bytes, when the client is fast.
const READ: usize = 128 * 1024;

/// The log's disk may be slow, but not as slow as this.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Callgrind counts what happens in here. Its name is what `cargo xtask instructions` looks for.
#[inline(never)]
fn counted<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// The broker's part of a step, counted once everybody is warm.
fn step<R>(warm: bool, work: impl FnOnce() -> R) -> R {
    if warm { counted(work) } else { work() }
}

/// One connection and what its client has seen.
struct Client {
    core: AmqpConnection,
    out: Output,
    woken: Arc<WakeCount>,
    waker: Waker,
    /// From now on what it costs is counted.
    warm: bool,
    /// What the broker has written and the client has not looked at.
    unseen: Vec<u8>,
    delivered: u64,
    acknowledged: u64,
    /// All publishes up to this number are confirmed.
    confirmed: u64,
}

impl Client {
    fn open(front_end: &Arc<Amqp>) -> Self {
        let address = "127.0.0.1:1".parse().unwrap();
        let name = Name {
            peer: address,
            local: address,
        };
        let woken: Arc<WakeCount> = Arc::default();
        let mut client = Self {
            core: AmqpConnection::new(front_end.clone(), name, None, 0),
            out: Output::default(),
            waker: Waker::from(woken.clone()),
            woken,
            warm: false,
            unseen: Vec::new(),
            delivered: 0,
            acknowledged: 0,
            confirmed: 0,
        };
        client.read(&opening(true));
        client.say("1 channel.open");
        client
    }

    /// Sends a line and waits for the last frame of the answer.
    fn say(&mut self, line: &str) {
        let until = Instant::now() + TIMEOUT;
        self.unseen.clear();
        self.read(&encode_line(line, true).unwrap());
        while self.unseen.is_empty() {
            assert!(Instant::now() < until, "no answer to {line}");
            self.woken.wait(Duration::from_millis(10));
            self.turn();
        }
        self.unseen.clear();
    }

    /// One read from the socket and the turn that follows it; returns how many bytes were taken.
    fn read(&mut self, bytes: &[u8]) -> usize {
        let Self {
            core,
            out,
            waker,
            warm,
            ..
        } = self;
        let taken = step(*warm, || {
            let taken = core.input(bytes, 0, out);
            core.turn(waker, 0, out);
            taken
        });
        self.write();
        taken
    }

    /// What happens when the broker has woken the connection.
    fn turn(&mut self) {
        let Self {
            core,
            out,
            waker,
            warm,
            ..
        } = self;
        step(*warm, || core.turn(waker, 0, out));
        self.write();
    }

    fn write(&mut self) {
        while !self.out.is_empty() {
            self.unseen.extend_from_slice(self.out.unwritten());
            let Self { core, out, warm, .. } = self;
            step(*warm, || {
                out.wrote(out.len());
                core.fill(out);
            });
        }
    }

    /// Looks at what came.
    fn look(&mut self) {
        let mut bytes = &self.unseen[..];
        while let Some((frame, length)) = next_frame(bytes, 0).unwrap() {
            bytes = &bytes[length..];
            let Part::Method(id, fields) = frame.part().unwrap() else {
                continue;
            };
            match Method::decode(id, fields).unwrap() {
                Method::BasicDeliver(_) => self.delivered += 1,
                Method::BasicAck(ack) => {
                    assert!(ack.multiple || ack.delivery_tag == self.confirmed + 1);
                    self.confirmed = ack.delivery_tag;
                }
                other => panic!("unexpected: {other:?}"),
            }
        }
        assert!(bytes.is_empty(), "a frame is not whole");
        self.unseen.clear();
    }

    /// A consumer's turn: takes what is there, and acknowledges if enough came.
    fn consume(&mut self, ack: u64) {
        self.turn();
        self.look();
        while ack > 0 && self.delivered - self.acknowledged >= ack {
            self.acknowledged += ack;
            let line = format!("1 basic.ack tag={} multiple", self.acknowledged);
            let bytes = encode_line(&line, true).unwrap();
            assert_eq!(self.read(&bytes), bytes.len());
            self.look();
        }
    }

    /// Waits until all publishes up to this number are confirmed.
    fn await_confirms(&mut self, number: u64) {
        let until = Instant::now() + TIMEOUT;
        self.look();
        while self.confirmed < number {
            assert!(Instant::now() < until, "confirmed only {}", self.confirmed);
            self.woken.wait(Duration::from_millis(100));
            self.turn();
            self.look();
        }
    }
}

impl Case {
    fn run(&self) {
        let data = tempfile::tempdir().unwrap();
        let broker = Broker::open(BrokerOptions::new(data.path())).unwrap();
        let front_end = Arc::new(Amqp::new(broker, Options::default(), Arc::default()));
        let mut owner = Client::open(&front_end);
        self.setup.iter().for_each(|line| owner.say(line));
        let open = |count| (0..count).map(|_| Client::open(&front_end)).collect::<Vec<_>>();
        let (mut publishers, mut consumers) = (open(self.publishers), open(self.consumers));
        if self.confirms {
            publishers.iter_mut().for_each(|p| p.say("1 confirm.select"));
        }
        let consume = if self.ack > 0 { "" } else { " no-ack" };
        for consumer in &mut consumers {
            consumer.say(&format!("1 basic.consume queue=q{consume}"));
        }
        let window = encode_line(&format!("{} times={}", self.publish, self.window), true).unwrap();
        for round in 0..self.rounds {
            for client in publishers.iter_mut().chain(&mut consumers) {
                client.warm = round > 0;
            }
            self.round(round, &window, &mut publishers, &mut consumers);
        }
        let published = (self.rounds * self.publishers * self.window) as u64;
        let delivered: u64 = consumers.iter().map(|consumer| consumer.delivered).sum();
        assert!(self.consumers == 0 || delivered == published);
        // `cargo xtask instructions` divides by this number.
        let messages = (self.rounds - 1) * self.publishers * self.window;
        println!("counted messages: {messages}");
    }

    /// Every publisher sends a window, in pieces that a read brings.
    fn round(&self, round: usize, window: &[u8], publishers: &mut [Client], consumers: &mut [Client]) {
        let size = window.len() / self.window;
        let mut sent = vec![0; publishers.len()];
        while sent.iter().any(|sent| *sent < window.len()) {
            for (publisher, sent) in publishers.iter_mut().zip(&mut sent) {
                let end = window.len().min(*sent + READ);
                assert!(publisher.core.wants_input(&publisher.out), "it is held back");
                *sent += publisher.read(&window[*sent..end]);
                consumers
                    .iter_mut()
                    .for_each(|consumer| consumer.consume(self.ack));
                if self.confirms {
                    publisher.await_confirms((round * self.window + *sent / size) as u64);
                }
            }
        }
    }
}

#[test]
fn l1_transient_messages_of_1000_bytes_come_one_at_a_time() {
    Case {
        setup: &[
            "1 queue.declare queue=q",
            "1 queue.bind queue=q exchange=amq.direct key=benchmark-key",
        ],
        publishers: 1,
        consumers: 1,
        publish: "1 basic.publish exchange=amq.direct key=benchmark-key size=1000",
        window: 1,
        confirms: false,
        ack: 0,
        rounds: 2001,
    }
    .run();
}

#[test]
fn t1_transient_messages_of_16_bytes_pass_without_acknowledgement() {
    Case {
        setup: &[
            "1 queue.declare queue=q",
            "1 queue.bind queue=q exchange=amq.direct key=benchmark-key",
        ],
        publishers: 1,
        consumers: 1,
        publish: "1 basic.publish exchange=amq.direct key=benchmark-key size=16",
        window: 1000,
        confirms: false,
        ack: 0,
        rounds: 21,
    }
    .run();
}

#[test]
fn t2_transient_messages_of_1000_bytes_pass_without_acknowledgement() {
    Case {
        setup: &[
            "1 queue.declare queue=q",
            "1 queue.bind queue=q exchange=amq.direct key=benchmark-key",
        ],
        publishers: 1,
        consumers: 1,
        publish: "1 basic.publish exchange=amq.direct key=benchmark-key size=1000",
        window: 100,
        confirms: false,
        ack: 0,
        rounds: 101,
    }
    .run();
}

#[test]
fn t3_a_queue_of_at_most_100_messages_takes_all_and_keeps_the_newest() {
    Case {
        setup: &[
            "1 queue.declare queue=q x-max-length:100",
            "1 queue.bind queue=q exchange=amq.direct key=benchmark-key",
        ],
        publishers: 1,
        consumers: 0,
        publish: "1 basic.publish exchange=amq.direct key=benchmark-key size=200",
        window: 400,
        confirms: false,
        ack: 0,
        rounds: 51,
    }
    .run();
}

#[test]
fn t4_persistent_messages_are_confirmed_by_the_hundred_and_acknowledged_by_ten() {
    Case {
        setup: &[
            "1 queue.declare queue=q durable",
            "1 queue.bind queue=q exchange=amq.direct key=benchmark-key",
        ],
        publishers: 1,
        consumers: 1,
        publish: "1 basic.publish exchange=amq.direct key=benchmark-key size=1000 persistent",
        window: 100,
        confirms: true,
        ack: 10,
        rounds: 51,
    }
    .run();
}

#[test]
fn t5_persistent_messages_of_two_publishers_go_to_two_consumers() {
    Case {
        setup: &[
            "1 queue.declare queue=q durable",
            "1 queue.bind queue=q exchange=amq.direct key=benchmark-key",
        ],
        publishers: 2,
        consumers: 2,
        publish: "1 basic.publish exchange=amq.direct key=benchmark-key size=1000 persistent",
        window: 3000,
        confirms: true,
        ack: 3000,
        rounds: 3,
    }
    .run();
}
