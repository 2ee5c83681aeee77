//! What nodes and the leader of a queue say to each other: honest frames, some of them bent, late, lost or doubled, and bytes
//! that never were one. Nothing may panic, and what is read is what was written.
#![no_main]

use broker::groups::handle::{Budget, Frame, Handle, Orders, Requests, Sessions, ToLeader, ToNode, deliver};
use broker::groups::{Ends, Outlet, Receipt, Reply};
use broker::{ChannelId, Event, Outbox, QueueQuestion};
use cluster::NodeId;
use libfuzzer_sys::fuzz_target;
use model::{BlockBuilder, ConsumerId, Incarnation, Machine, Outcome, QueueSettings, Ranges, Timestamp};
use queue::fifo::Classic;
use queue::{ConsumerSettings, Disposal, Request};
use std::collections::VecDeque;
use std::sync::Arc;

const LEADER: NodeId = NodeId(9);

struct Pair {
    handle: Handle<Ends>,
    sessions: Sessions,
    machine: Classic<Ends>,
    clients: Arc<Outbox>,
    up: VecDeque<Vec<u8>>,
    down: VecDeque<Vec<u8>>,
    held: Vec<(Option<ConsumerId>, Ranges)>,
    number: u64,
}

fn me() -> Incarnation {
    Incarnation(1)
}

impl Pair {
    fn new() -> Self {
        let settings = QueueSettings {
            durable: true,
            replicated: true,
            ..QueueSettings::default()
        };
        let mut requests = Requests::new();
        let mut pair = Self {
            handle: Handle::new(me(), &settings),
            sessions: Sessions::new(1, &[me()], Budget::new(1 << 20), &mut requests),
            machine: Classic::new(settings),
            clients: Arc::new(Outbox::new()),
            up: VecDeque::new(),
            down: VecDeque::new(),
            held: Vec::new(),
            number: 0,
        };
        pair.turn(requests);
        pair.handle.leads(Some(LEADER));
        pair
    }

    fn turn(&mut self, mut requests: Requests) {
        let mut frames = Vec::new();
        let machine = &mut self.machine;
        let submit = |_, requests: Requests| {
            let mut outcome = Outcome::default();
            requests
                .into_iter()
                .for_each(|request| machine.handle(Timestamp(1), request, &mut outcome));
            outcome
                .effects
                .into_iter()
                .chain(outcome.promises)
                .for_each(|effect| drop(deliver(effect)));
            true
        };
        self.sessions.turn(submit, &mut requests, &mut frames);
        self.down
            .extend(frames.iter().map(|(_, frame)| frame.encode().concat()));
    }

    fn obey(&mut self, orders: Orders<Ends>) {
        orders
            .effects
            .into_iter()
            .for_each(|effect| drop(deliver(effect)));
        let mut frames = Vec::new();
        self.handle.frames(&mut frames);
        self.up
            .extend(frames.iter().map(|(_, frame)| frame.encode().concat()));
        let mut events = Vec::new();
        self.clients.take_now(&mut events);
        for event in events {
            if let Event::Deliver {
                consumer, delivery, ..
            } = event
            {
                self.held.push((Some(consumer), delivery.seqs));
            }
        }
    }

    fn request(&mut self, request: Request<Ends>) {
        let mut orders = Orders::default();
        let _ = self.handle.request(request, &mut orders);
        self.obey(orders);
    }

    fn arrive(&mut self, to_leader: bool, bytes: &[u8]) {
        if to_leader {
            let Some(frame) = Frame::<ToLeader>::decode(bytes) else {
                return;
            };
            let written = frame.encode().concat();
            assert_eq!(Frame::decode(&written).as_ref(), Some(&frame));
            let mut requests = Requests::new();
            self.sessions.receive(me(), frame, &mut requests);
            self.turn(requests);
        } else if let Some(frame) = Frame::<ToNode>::decode(bytes) {
            let mut orders = Orders::default();
            self.handle.receive(LEADER, frame, &mut orders);
            self.obey(orders);
        }
    }

    fn reply(&mut self) -> Reply {
        self.number += 1;
        let (outbox, channel, question) = (self.clients.clone(), ChannelId(1), QueueQuestion(self.number));
        Reply {
            outbox,
            channel,
            question,
            no_ack: false,
        }
    }

    fn act(&mut self, [kind, which, value]: [u8; 3], rest: &mut &[u8]) {
        let to_leader = which & 1 == 0;
        match kind % 12 {
            0 => {
                let mut block = BlockBuilder::default();
                (0..which % 5).for_each(|_| block.push(b"", b"q", b"\0\0", &vec![7; usize::from(value)]));
                let numbers = Ranges::span(1, block.len() as u64);
                let block = Arc::new(block.finish(true, Timestamp(1)));
                let (outbox, channel) = (self.clients.clone(), ChannelId(1));
                let receipt = Receipt {
                    outbox,
                    channel,
                    numbers,
                    queue: None,
                    timed: None,
                };
                self.request(Request::Enqueue {
                    block,
                    receipt: Some(receipt),
                });
            }
            1 => {
                let reply = self.reply();
                let outlet = Outlet {
                    outbox: self.clients.clone(),
                    channel: ChannelId(1),
                    no_ack: false,
                };
                let settings = ConsumerSettings {
                    no_ack: which & 2 == 2,
                    exclusive: which & 4 == 4,
                    prefetch: u32::from(value % 4),
                    priority: 0,
                    window: 10_000,
                    paused: false,
                };
                let consumer = ConsumerId(u64::from(value) % 8);
                self.request(Request::Consume {
                    consumer,
                    outlet,
                    settings,
                    reply,
                });
            }
            2 => {
                let reply = self.reply();
                self.request(Request::Get {
                    no_ack: to_leader,
                    reply,
                });
            }
            3 if !self.held.is_empty() => {
                let (consumer, seqs) = self.held.swap_remove(usize::from(value) % self.held.len());
                self.request(match which & 1 {
                    0 => Request::Settle {
                        consumer,
                        seqs,
                        disposal: Disposal::Accepted,
                    },
                    _ => Request::Return {
                        consumer,
                        seqs,
                        failed: which & 2 == 2,
                    },
                });
            }
            4 => {
                let reply = Some(self.reply());
                self.request(Request::Cancel {
                    consumer: ConsumerId(u64::from(value) % 8),
                    reply,
                });
            }
            5 => {
                for _ in 0..=value % 30 {
                    let mut orders = Orders::default();
                    self.handle.tick(&mut orders);
                    self.obey(orders);
                    let mut requests = Requests::new();
                    self.sessions.tick(&mut requests);
                    self.turn(requests);
                }
            }
            6 => {
                self.handle.lost(LEADER);
                self.sessions.lost(me());
            }
            // Bytes that never were a frame, behind a header that is one.
            7 => {
                let (raw, left) = rest.split_at(rest.len().min(usize::from(value)));
                *rest = left;
                let mut bytes = vec![1, 1 + (which & 1), which >> 4, 1, value % 16, 0, 0];
                bytes.extend_from_slice(raw);
                self.arrive(to_leader, &bytes);
            }
            8 | 9 => {
                let queue = if to_leader { &mut self.up } else { &mut self.down };
                if let Some(mut frame) = queue.pop_front() {
                    let place = usize::from(which) % frame.len();
                    frame[place] = frame[place].wrapping_add(value);
                    self.arrive(to_leader, &frame);
                }
            }
            10 => drop(self.up.pop_front().or_else(|| self.down.pop_front())),
            _ => self.carry(usize::from(value) % 8),
        }
    }

    fn carry(&mut self, frames: usize) {
        for _ in 0..frames {
            if let Some(frame) = self.up.pop_front() {
                self.arrive(true, &frame);
            }
            if let Some(frame) = self.down.pop_front() {
                self.arrive(false, &frame);
            }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let mut pair = Pair::new();
    // The session is open when it begins.
    pair.obey(Orders::default());
    pair.carry(8);
    let mut rest = input;
    while let Some((action, left)) = rest.split_first_chunk::<3>() {
        rest = left;
        pair.act(*action, &mut rest);
    }
});
