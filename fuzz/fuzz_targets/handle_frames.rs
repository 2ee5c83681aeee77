//! What nodes and the leader of a queue say to each other. One end is real, a node's handle with its clients or the leader's
//! sessions with the queue's machine, and the input plays the other one: frames as an honest end would send them, or not, some
//! bent, some late, and bytes that never were one. Nothing may panic, what is read is what was written, a client is answered
//! once, and nobody is sent what it did not ask for.
#![no_main]

use broker::groups::handle::{
    Budget, Frame, Handle, Orders, Parts, Reading, Requests, Sessions, ToLeader, ToNode, deliver, keeps_for,
};
use broker::groups::{Ends, Outlet, Receipt, Reply};
use broker::{Answer, ChannelId, Disposal, Event, Outbox, QueueQuestion};
use cluster::NodeId;
use leveret_fuzz::Source;
use leveret_fuzz::handle_words::{Leader, Speaker, block, consumer, settings};
use libfuzzer_sys::fuzz_target;
use model::{
    ConsumerId, DeliveryLimit, Incarnation, Machine, Outcome, Overflow, QueueSettings, Ranges, Timestamp,
};
use queue::Request;
use queue::fifo::Classic;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Who leads, mostly.
const LEADER: NodeId = NodeId(9);

/// What nodes together may borrow, in bytes.
const BUDGET: u64 = 1 << 20;

/// A run has so many actions: a longer one says nothing that shorter ones don't.
const ACTIONS: usize = 64;

/// What a queue is like.
fn queue(byte: u8) -> QueueSettings {
    let limited = byte & 1 == 1;
    QueueSettings {
        durable: true,
        replicated: true,
        single_active: byte & 2 == 2,
        max_length: limited.then_some(6),
        overflow: match byte & 4 {
            0 => Overflow::default(),
            _ => Overflow::Reject,
        },
        delivery_limit: (byte & 8 == 8).then_some(DeliveryLimit::Returns(2)),
        ..QueueSettings::default()
    }
}

/// Bytes as they go over a link: what an end says, or bent.
fn sent<T>(frame: &Frame<T>, source: &mut Source<'_>) -> Vec<u8>
where
    Frame<T>: Travels,
{
    let mut bytes = frame.written();
    if source.byte() > 240 {
        let place = usize::from(source.byte()) % bytes.len();
        bytes[place] = bytes[place].wrapping_add(source.byte());
    }
    bytes
}

/// Both directions.
trait Travels: Sized {
    fn written(&self) -> Vec<u8>;
    fn read(bytes: &[u8]) -> Option<Self>;
}

impl Travels for Frame<ToLeader> {
    fn written(&self) -> Vec<u8> {
        let mut parts = Parts::default();
        self.put(&mut parts);
        parts.finish().concat()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Reading::of(bytes.to_vec(), Self::get)
    }
}

impl Travels for Frame<ToNode> {
    fn written(&self) -> Vec<u8> {
        let mut parts = Parts::default();
        self.put(&mut parts);
        parts.finish().concat()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Reading::of(bytes.to_vec(), Self::get)
    }
}

/// What was read is what is written of it then.
fn read<F: Travels>(bytes: &[u8]) -> Option<F> {
    let frame = F::read(bytes)?;
    is_read(&frame);
    Some(frame)
}

/// What is written can be read, and is written again as it was. Of a delivery only those messages travel that it is of, in one
/// piece or in several.
fn is_read<F: Travels>(frame: &F) {
    let bytes = frame.written();
    let read = F::read(&bytes).expect("a frame that was written");
    assert_eq!(read.written(), bytes);
}

/// Bytes that never were a frame, behind a header that is one.
fn raw(direction: u8, session: u64, source: &mut Source<'_>) -> Vec<u8> {
    let what = source.byte();
    let mut bytes = vec![1, direction, session.min(127) as u8, what & 15, what >> 4, 0, 0];
    bytes.extend_from_slice(source.bytes());
    bytes
}

/// A real handle with its clients, and leaders that the input plays.
struct Clients {
    handle: Handle<Ends>,
    leader: Leader,
    outbox: Arc<Outbox>,
    held: Vec<(Option<ConsumerId>, Ranges)>,
    number: u64,
    /// What was published and has no answer.
    unanswered: BTreeSet<u64>,
    published: u64,
    late: Vec<Vec<u8>>,
}

impl Clients {
    fn new(byte: u8) -> Self {
        let mut leader = Leader::default();
        leader.said.term = 1;
        Self {
            handle: Handle::new(Incarnation(1), &queue(byte)),
            leader,
            outbox: Arc::new(Outbox::new()),
            held: Vec::new(),
            number: 0,
            unanswered: BTreeSet::new(),
            published: 0,
            late: Vec::new(),
        }
    }

    fn reply(&mut self) -> Reply {
        self.number += 1;
        Reply {
            outbox: self.outbox.clone(),
            channel: ChannelId(1),
            question: QueueQuestion(self.number),
            no_ack: false,
        }
    }

    fn obey(&mut self, orders: Orders<Ends>) {
        orders
            .effects
            .into_iter()
            .for_each(|effect| drop(deliver(effect)));
        let mut frames = Vec::new();
        self.handle.frames(&mut frames);
        for (_, frame) in &frames {
            is_read(frame);
            self.leader.hears(frame);
        }
        let mut events = Vec::new();
        self.outbox.take_now(&mut events);
        for event in events {
            match event {
                Event::Deliver {
                    consumer, delivery, ..
                } => self.held.push((Some(consumer), delivery.seqs)),
                Event::Answer {
                    answer: Some(Answer::Got { delivery, .. }),
                    ..
                } => self.held.push((None, delivery.seqs)),
                Event::Confirm { numbers, .. } | Event::Reject { numbers, .. } => {
                    for number in numbers.iter() {
                        assert!(self.unanswered.remove(&number), "{number} is answered twice");
                    }
                }
                _ => {}
            }
        }
    }

    fn request(&mut self, request: Request<Ends>) {
        let mut orders = Orders::default();
        let _ = self.handle.request(request, &mut orders);
        self.obey(orders);
    }

    fn arrive(&mut self, from: NodeId, bytes: Vec<u8>) {
        if let Some(frame) = read(&bytes) {
            let mut orders = Orders::default();
            self.handle.receive(from, frame, &mut orders);
            self.obey(orders);
            self.late.push(bytes);
        }
    }

    /// A leader is known, and the session with it begins.
    fn open(&mut self, source: &mut Source<'_>) {
        self.handle.leads(Some(LEADER));
        self.obey(Orders::default());
        let opened = self.leader.opens();
        let frame = self.leader.said.frame(source, vec![opened]);
        self.arrive(LEADER, frame.written());
    }

    /// The link breaks, and a session begins in which the leader has answered to what clients hold, perhaps in a later term.
    fn open_anew(&mut self, which: u8, source: &mut Source<'_>) {
        self.handle.lost(LEADER);
        self.leader.said.term += u64::from(which & 1);
        for _ in 0..2 {
            let mut orders = Orders::default();
            self.handle.tick(|| keeps_for(None), &mut orders);
            self.obey(orders);
        }
        self.open(source);
        while which & 2 == 0 && self.leader.parts > 0 {
            let answer = self.leader.discards(source);
            let frame = self.leader.said.frame(source, vec![answer]);
            self.arrive(LEADER, frame.written());
        }
    }

    fn act(&mut self, source: &mut Source<'_>) {
        let [kind, which] = [source.byte(), source.byte()];
        match kind % 32 {
            0 | 1 => self.publish(source),
            2 | 3 => {
                let reply = self.reply();
                let settings = settings(source.byte());
                let outlet = Outlet {
                    outbox: self.outbox.clone(),
                    channel: ChannelId(1),
                    no_ack: settings.no_ack,
                };
                self.request(Request::Consume {
                    consumer: consumer(which),
                    outlet,
                    settings,
                    reply,
                });
            }
            4 | 5 if !self.held.is_empty() => self.resolve(which),
            6 => self.ask(which),
            7 => {
                let node = NodeId(9 - u32::from(which & 1));
                match which >> 1 & 3 {
                    0 => self.handle.leads(None),
                    1 | 2 => self.handle.leads(Some(node)),
                    _ => self.handle.lost(node),
                }
                self.leader.said.term += u64::from(which >> 3 & 1);
                self.obey(Orders::default());
            }
            8 => {
                for _ in 0..which % 64 {
                    let mut orders = Orders::default();
                    self.handle.tick(|| keeps_for(None), &mut orders);
                    self.obey(orders);
                }
            }
            9 if which > 240 => {
                let mut orders = Orders::default();
                self.handle.retire(&mut orders);
                self.obey(orders);
            }
            9 => self.open(source),
            10 => self.open_anew(which, source),
            11 => {
                let bytes = raw(2, self.leader.said.session, source);
                self.arrive(LEADER, bytes);
            }
            12 if !self.late.is_empty() => {
                let bytes = self.late[usize::from(which) % self.late.len()].clone();
                self.arrive(LEADER, bytes);
            }
            _ => {
                let messages = (0..=which % 3).map(|_| self.leader.says(source)).collect();
                let frame = self.leader.said.frame(source, messages);
                let from = if which > 250 { NodeId(8) } else { LEADER };
                self.arrive(from, sent(&frame, source));
            }
        }
    }

    fn publish(&mut self, source: &mut Source<'_>) {
        let block = block(source, 0);
        let (first, count) = (self.published + 1, block.len() as u64);
        self.published += count;
        self.unanswered.extend(first..first + count);
        let numbers = match count {
            0 => Ranges::new(),
            count => Ranges::span(first, first + count - 1),
        };
        let receipt = Some(Receipt {
            outbox: self.outbox.clone(),
            channel: ChannelId(1),
            numbers,
            queue: None,
            timed: None,
        });
        self.request(Request::Enqueue { block, receipt });
    }

    fn resolve(&mut self, which: u8) {
        let (consumer, seqs) = self.held.swap_remove(usize::from(which) % self.held.len());
        self.request(match which >> 6 {
            0 | 1 => Request::Settle {
                consumer,
                seqs,
                disposal: Disposal::Accepted,
            },
            failed => Request::Return {
                consumer,
                seqs,
                failed: failed == 2,
            },
        });
    }

    fn ask(&mut self, which: u8) {
        let consumer = consumer(which >> 4);
        let seqs = Ranges::span(1, 1 + u64::from(which >> 4));
        let reply = self.reply();
        self.request(match which & 15 {
            0..=2 => Request::Get {
                no_ack: which & 16 == 16,
                reply,
            },
            3 | 4 => Request::Cancel {
                consumer,
                reply: (which & 128 == 0).then_some(reply),
            },
            5 => Request::Pause {
                consumer,
                reply: (which & 128 == 0).then_some(reply),
            },
            6 => Request::Resume { consumer },
            7 => Request::Limit {
                consumer,
                prefetch: 2,
            },
            8 | 9 => Request::Flow {
                consumer,
                bytes: u32::from(which) * 16,
            },
            10 => Request::TakeOut { seqs, reply },
            11 => Request::PutBack { seqs },
            12 => Request::Remove { seqs },
            13 => Request::Purge { reply },
            14 => Request::MayRetire {
                if_unused: which & 16 == 16,
                if_empty: which & 32 == 32,
                reply,
            },
            _ => Request::Use {
                reply: (which & 128 == 0).then_some(reply),
            },
        });
    }
}

/// Real sessions with the queue's machine, and nodes that the input plays.
struct Queue {
    sessions: Sessions,
    machine: Classic<Ends>,
    budget: Arc<Budget>,
    nodes: [Speaker; 2],
    /// Consumers that somebody has named.
    named: BTreeSet<ConsumerId>,
    late: Vec<(Incarnation, Vec<u8>)>,
    now: u64,
}

impl Queue {
    fn new(byte: u8) -> Self {
        let nodes = [Incarnation(1), Incarnation(2)];
        let budget = Budget::new(BUDGET);
        let mut requests = Requests::new();
        let mut queue = Self {
            sessions: Sessions::new(1, &nodes, budget.clone(), &mut requests),
            machine: Classic::new(queue(byte)),
            budget,
            nodes: nodes.map(Speaker::new),
            named: BTreeSet::new(),
            late: Vec::new(),
            now: 1,
        };
        queue.turn(requests);
        queue
    }

    fn turn(&mut self, mut requests: Requests) {
        let (machine, now) = (&mut self.machine, Timestamp(self.now));
        let submit = |_, requests: Requests| {
            let mut outcome = Outcome::default();
            for request in requests {
                machine.handle(now, request, &mut outcome);
            }
            let effects = outcome.effects.into_iter().chain(outcome.promises);
            effects.for_each(|effect| drop(deliver(effect)));
            true
        };
        let mut frames = Vec::new();
        self.sessions.turn(submit, &mut requests, &mut frames);
        for (node, frame) in frames {
            is_read(&frame);
            for message in &frame.messages {
                if let ToNode::Deliver { consumer, .. } | ToNode::Cancelled { consumer } = message {
                    assert!(self.named.contains(consumer), "{consumer:?} is nobody's");
                }
            }
            if let Some(speaker) = self.nodes.iter_mut().find(|speaker| speaker.node == node) {
                speaker.hears(&frame);
            }
        }
        assert!(self.budget.left() <= BUDGET);
    }

    fn arrive(&mut self, from: Incarnation, bytes: Vec<u8>) {
        let Some(frame) = read::<Frame<ToLeader>>(&bytes) else {
            return;
        };
        for message in &frame.messages {
            if let ToLeader::Consume { consumer, .. } = message {
                self.named.insert(*consumer);
            }
        }
        let mut requests = Requests::new();
        self.sessions.receive(from, frame, &mut requests);
        self.turn(requests);
        self.late.push((from, bytes));
    }

    fn says(&mut self, at: usize, messages: Vec<ToLeader>, source: &mut Source<'_>) {
        let speaker = &mut self.nodes[at];
        let (node, frame) = (speaker.node, speaker.said.frame(source, messages));
        self.arrive(node, sent(&frame, source));
    }

    /// A node begins a session, names a consumer, perhaps, and says what everybody there has.
    fn open(&mut self, at: usize, which: u8, source: &mut Source<'_>) {
        let open = self.nodes[at].opens();
        self.says(at, vec![open], source);
        if which & 2 == 2 {
            let consumes = self.nodes[at].consumes(which >> 2, source);
            self.says(at, vec![consumes], source);
        }
        let holds = self.nodes[at].holds(usize::from(which >> 4), false);
        self.says(at, vec![holds], source);
    }

    fn act(&mut self, source: &mut Source<'_>) {
        let [kind, which] = [source.byte(), source.byte()];
        let at = usize::from(which & 1);
        let node = self.nodes[at].node;
        match kind % 32 {
            0 => {
                for _ in 0..which >> 1 {
                    let mut requests = Requests::new();
                    self.sessions.tick(|| keeps_for(None), &mut requests);
                    self.turn(requests);
                }
            }
            1 => self.sessions.lost(node),
            2 => self.sessions.heard(node),
            3 if which > 240 => {
                let mut requests = Requests::new();
                self.sessions.ended(node, &mut requests);
                self.turn(requests);
            }
            3 | 4 => self.open(at, which, source),
            5 => {
                let open = self.nodes[at].opens();
                self.says(at, vec![open], source);
            }
            6 => {
                let bytes = raw(1, self.nodes[at].said.session, source);
                self.arrive(node, bytes);
            }
            7 if !self.late.is_empty() => {
                let (mut from, bytes) = self.late[usize::from(which) % self.late.len()].clone();
                if which > 250 {
                    from = Incarnation(3);
                }
                self.arrive(from, bytes);
            }
            8 => {
                self.now += u64::from(which) * 100;
                let requests = Requests::from([Request::Wake]);
                self.turn(requests);
            }
            _ => {
                let messages = (0..=which >> 1 & 3)
                    .map(|_| self.nodes[at].says(source))
                    .collect();
                self.says(at, messages, source);
            }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let mut source = Source::new(input);
    let first = source.byte();
    // Which end is real, what the queue is like, and whether there is a session when it begins.
    let (what, opens) = (first >> 2, first & 2 == 0);
    let mut quiet = Source::new(&[]);
    if first & 1 == 0 {
        let mut clients = Clients::new(what);
        if opens {
            clients.open(&mut quiet);
        }
        for _ in 0..ACTIONS {
            if source.is_empty() {
                break;
            }
            clients.act(&mut source);
        }
        return;
    }
    let mut queue = Queue::new(what);
    if opens {
        (0..2).for_each(|node| queue.open(node, 0, &mut quiet));
    }
    for _ in 0..ACTIONS {
        if source.is_empty() {
            break;
        }
        queue.act(&mut source);
    }
});
