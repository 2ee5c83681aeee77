//! Three nodes with handles, links between them, and a queue that one after the other leads.

use super::super::{Budget, Frame, Handle, Orders, Requests, Sessions, ToLeader, ToNode, deliver};
use crate::clients::outbox::{ChannelId, Event, Outbox, Question};
use crate::node::ends::{Ends, Outlet, Receipt, Reply};
use crate::node::host::Host;
use crate::node::journal::Journal;
use cluster::NodeId;
use model::properties::{Properties, PropertiesBuilder};
use model::{BlockBuilder, ConsumerId, DeliveryLimit, Incarnation, Journaled, Machine, Message, Outcome};
use model::{QueueSettings, Ranges, RouteBuf, Seq, Sorting, Timestamp};
use queue::fifo::{Classic, Record};
use queue::{Answer, ConsumerSettings, Delivery, Disposal, Effect, Request};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

const CHANNEL: ChannelId = ChannelId(1);

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Publish(usize, u64),
    Consume(usize, u32),
    Cancel(usize),
    Get(usize),
    Ack(usize, usize),
    Return(usize, usize, bool),
    Ticks(usize),
    /// So many frames from one node to the other arrive.
    Deliver(usize, usize, usize),
    /// The next frame arrives twice.
    Double(usize, usize),
    /// The next frame is lost, and the link is there all the same.
    Lose(usize, usize),
    /// The link is broken, and there at once again.
    Break(usize, usize),
    Cut(usize, usize),
    /// What the one says does not come to the other any more, and it does not see that.
    CutOneWay(usize, usize),
    Heal,
    /// So many turns of the leader are committed.
    Commit(usize),
    /// Everything arrives and is committed.
    Settle,
    /// Another node leads, and has so many of the records that were not committed.
    Succeed(usize, usize),
    /// Who led before hears of it.
    Learn,
    Crash(usize),
    /// A handle that nobody needs is let go of, and another one made.
    LetGo(usize),
}

/// What the queue is set to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kind {
    pub counts_returns: bool,
    pub single_active: bool,
    /// A block has a record for each level of its messages.
    pub sorted: bool,
}

/// Every third message has another level than the others, where the queue sorts.
fn level(number: u64) -> Option<u8> {
    number.is_multiple_of(3).then_some(9)
}

/// After so many ticks a leader forgets nodes that have nothing and say nothing.
pub const FORGOTTEN_AFTER: u32 = 100;

/// What a leader lends, in bytes.
const LENT_AT_MOST: u64 = 1 << 20;

/// Handles of a node count behind each other, so far apart.
const APART: u64 = 1 << 32;

/// The journal of a leader.
#[derive(Default)]
struct Shared {
    turn: u64,
    reached: u64,
    records: Vec<Vec<u8>>,
    open: VecDeque<(u64, Vec<Vec<u8>>)>,
}

impl Journal<Classic<Ends>> for Shared {
    fn append(&mut self, _: &mut Classic<Ends>, records: &mut Vec<Record>, _: &mut Vec<Effect<Ends>>) {
        for record in records.drain(..) {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            self.records.push(bytes);
        }
    }

    fn end_turn(&mut self, _leaves: bool) -> Option<u64> {
        self.turn += 1;
        self.open
            .push_back((self.turn, std::mem::take(&mut self.records)));
        Some(self.turn)
    }

    fn reached(&self) -> u64 {
        self.reached
    }
}

struct Leader {
    node: usize,
    host: Host<Classic<Ends>, Shared>,
    sessions: Sessions,
    budget: Arc<Budget>,
}

enum Said {
    Up(Incarnation, Frame<ToLeader>),
    Down(Frame<ToNode>),
}

impl Clone for Said {
    fn clone(&self) -> Self {
        match self {
            Self::Up(node, frame) => Self::Up(*node, frame.clone()),
            Self::Down(frame) => Self::Down(frame.clone()),
        }
    }
}

/// A node and its clients.
struct Node {
    me: Incarnation,
    handle: Handle<Ends>,
    outbox: Arc<Outbox>,
    consumers: BTreeSet<ConsumerId>,
    /// What they have, by its number in the queue.
    held: BTreeMap<(Seq, Option<ConsumerId>), u64>,
    /// It counted as down in this session of its handle: until it knows, what it held may be with others.
    apart: Option<u64>,
}

pub struct World {
    settings: QueueSettings,
    nodes: Vec<Node>,
    /// The last one leads; the others don't know yet that they do not.
    leaders: Vec<Leader>,
    term: u64,
    committed: Vec<Vec<u8>>,
    network: BTreeMap<(usize, usize), VecDeque<Said>>,
    cut: BTreeSet<(usize, usize)>,
    numbers: u64,
    /// How many handles were made after others of their nodes.
    handles: u64,
    published: BTreeMap<u64, Incarnation>,
    answered: BTreeMap<u64, bool>,
    acked: BTreeSet<u64>,
    /// Acks that may have been lost.
    unsafe_acks: BTreeSet<u64>,
    seqs: BTreeMap<u64, Seq>,
    /// What came to consumers, in its order.
    pub delivered: Vec<u64>,
    /// Incarnations that are no more.
    dead: BTreeSet<Incarnation>,
    gave_up: bool,
    /// For how many ticks consumers of a node that is not heard of keep what they hold.
    keeps_for: u32,
    /// Who was served last in a queue with a single active consumer, where, and in which term.
    active: Option<(usize, ConsumerId, u64)>,
}

impl World {
    pub fn new(nodes: usize, kind: Kind, keeps_for: u32) -> Self {
        let settings = QueueSettings {
            durable: true,
            replicated: true,
            single_active: kind.single_active,
            delivery_limit: kind.counts_returns.then_some(DeliveryLimit::Unlimited),
            sorting: match kind.sorted {
                true => Sorting::Levels,
                false => Sorting::Arrival,
            },
            ..QueueSettings::default()
        };
        let mut world = Self {
            settings,
            nodes: Vec::new(),
            leaders: Vec::new(),
            term: 0,
            committed: Vec::new(),
            network: BTreeMap::new(),
            cut: BTreeSet::new(),
            numbers: 0,
            handles: 0,
            published: BTreeMap::new(),
            answered: BTreeMap::new(),
            acked: BTreeSet::new(),
            unsafe_acks: BTreeSet::new(),
            seqs: BTreeMap::new(),
            delivered: Vec::new(),
            dead: BTreeSet::new(),
            gave_up: false,
            keeps_for,
            active: None,
        };
        for _ in 0..nodes {
            let node = world.begin();
            world.nodes.push(node);
        }
        world.succeed(0, 0);
        world
    }

    fn begin(&mut self) -> Node {
        self.numbers += 1;
        let me = Incarnation(self.numbers);
        Node {
            me,
            handle: Handle::new(me, &self.settings),
            outbox: Arc::new(Outbox::new()),
            consumers: BTreeSet::new(),
            held: BTreeMap::new(),
            apart: None,
        }
    }

    pub fn step(&mut self, step: Step) {
        match step {
            Step::Publish(node, count) => self.publish(node, count),
            Step::Consume(node, prefetch) => self.consume(node, prefetch),
            Step::Cancel(node) => self.cancel(node),
            Step::Get(node) => {
                let reply = self.reply(node);
                self.request(node, Request::Get { no_ack: false, reply });
            }
            Step::Ack(node, which) => self.resolve(node, which, None),
            Step::Return(node, which, failed) => self.resolve(node, which, Some(failed)),
            Step::Ticks(count) => (0..count).for_each(|_| self.tick()),
            Step::Deliver(from, to, count) => (0..count).for_each(|_| {
                self.arrive(from, to);
            }),
            Step::Double(from, to) => {
                if let Some(frames) = self.network.get_mut(&(from, to))
                    && let Some(next) = frames.front().cloned()
                {
                    frames.push_front(next);
                }
            }
            Step::Lose(from, to) => {
                self.network.get_mut(&(from, to)).and_then(VecDeque::pop_front);
            }
            Step::Break(one, other) => self.broken(one, other),
            Step::Cut(one, other) if one != other => {
                self.broken(one, other);
                self.cut.extend([(one, other), (other, one)]);
            }
            Step::CutOneWay(from, to) if from != to => self.cut_one_way(from, to),
            Step::Cut(..) | Step::CutOneWay(..) => {}
            Step::Heal => self.cut.clear(),
            Step::Commit(turns) => self.commit(turns),
            Step::Settle => self.settle(),
            Step::Succeed(node, records) => self.succeed(node, records),
            Step::Learn => {
                let last = self.leaders.len() - 1;
                self.leaders.drain(..last);
            }
            Step::Crash(node) => self.crash(node),
            Step::LetGo(node) => self.let_go(node),
        }
    }

    fn publish(&mut self, node: usize, count: u64) {
        let mut block = BlockBuilder::default();
        let route = RouteBuf::new(b"", b"q");
        let numbers = Ranges::span(self.numbers + 1, self.numbers + count);
        for number in numbers.iter() {
            let (mut properties, body) = (PropertiesBuilder::new(), number.to_string());
            if let Some(level) = level(number) {
                properties = properties.priority(level);
            }
            let properties = properties.encode();
            let properties = Properties::amqp091(&properties);
            block.push_message(&Message::new(route.as_route(), properties, body.as_bytes()));
            self.published.insert(number, self.nodes[node].me);
        }
        self.numbers += count;
        let receipt = Receipt {
            outbox: self.nodes[node].outbox.clone(),
            channel: CHANNEL,
            numbers,
            queue: None,
            timed: None,
        };
        let request = Request::Enqueue {
            block: Arc::new(block.finish(true, Timestamp(1))),
            receipt: Some(receipt),
        };
        self.request(node, request);
    }

    fn reply(&mut self, node: usize) -> Reply {
        self.numbers += 1;
        Reply {
            outbox: self.nodes[node].outbox.clone(),
            channel: CHANNEL,
            question: Question(self.numbers),
            no_ack: false,
        }
    }

    fn consume(&mut self, node: usize, prefetch: u32) {
        let reply = self.reply(node);
        let consumer = ConsumerId(self.numbers);
        self.nodes[node].consumers.insert(consumer);
        let outlet = Outlet {
            outbox: self.nodes[node].outbox.clone(),
            channel: CHANNEL,
            no_ack: false,
        };
        let settings = ConsumerSettings {
            no_ack: false,
            exclusive: false,
            prefetch,
            priority: (consumer.0 % 3) as i64,
            window: 1 << 20,
            paused: false,
        };
        let request = Request::Consume {
            consumer,
            outlet,
            settings,
            reply,
        };
        self.request(node, request);
    }

    fn cancel(&mut self, node: usize) {
        if let Some(consumer) = self.nodes[node].consumers.pop_first() {
            let reply = Some(self.reply(node));
            self.request(node, Request::Cancel { consumer, reply });
        }
    }

    /// A client acks one of the messages that it has, or gives it back.
    fn resolve(&mut self, node: usize, which: usize, back: Option<bool>) {
        let Some(((seq, consumer), number)) = self.nodes[node]
            .held
            .iter()
            .nth(which)
            .map(|(at, number)| (*at, *number))
        else {
            return;
        };
        self.nodes[node].held.remove(&(seq, consumer));
        let seqs = Ranges::one(seq);
        let request = match back {
            Some(failed) => Request::Return {
                consumer,
                seqs,
                failed,
            },
            None => {
                // What does not count any more is passed over.
                if self.nodes[node].handle.holdings.is_held_by(consumer, seq) {
                    self.acked.insert(number);
                }
                if self.nodes[node].apart.is_some() {
                    self.unsafe_acks.insert(number);
                }
                Request::Settle {
                    consumer,
                    seqs,
                    disposal: Disposal::Accepted,
                }
            }
        };
        self.request(node, request);
    }

    fn request(&mut self, node: usize, request: Request<Ends>) {
        let mut orders = Orders::default();
        assert!(self.nodes[node].handle.request(request, &mut orders).is_ok());
        self.obey(node, orders);
    }

    fn obey(&mut self, node: usize, orders: Orders<Ends>) {
        let refused = orders.unreached.into_iter().map(Effect::Reject);
        let effects = orders.effects.into_iter().chain(refused);
        effects.for_each(|effect| assert!(deliver(effect).is_ok()));
        self.say(node);
        self.look(node);
    }

    fn say(&mut self, node: usize) {
        let mut frames = Vec::new();
        self.nodes[node].handle.frames(&mut frames);
        for (to, frame) in frames {
            let said = Said::Up(self.nodes[node].me, frame);
            self.send(node, to.0 as usize, said);
        }
    }

    fn send(&mut self, from: usize, to: usize, said: Said) {
        if !self.cut.contains(&(from, to)) {
            self.network.entry((from, to)).or_default().push_back(said);
        }
    }

    /// Looks at what came for clients.
    fn look(&mut self, node: usize) {
        let mut events = Vec::new();
        self.nodes[node].outbox.take_now(&mut events);
        for event in events {
            match event {
                Event::Confirm { numbers, .. } => self.note(&numbers, true),
                Event::Reject { numbers, .. } => self.note(&numbers, false),
                Event::Deliver {
                    consumer, delivery, ..
                } => self.got(node, &delivery, Some(consumer)),
                Event::Answer {
                    answer: Some(Answer::Got { delivery, .. }),
                    ..
                } => self.got(node, &delivery, None),
                Event::ConsumerCancelled { consumer, .. } => {
                    self.nodes[node].consumers.remove(&consumer);
                }
                _ => {}
            }
        }
    }

    fn note(&mut self, numbers: &Ranges, confirmed: bool) {
        for number in numbers.iter() {
            let before = self.answered.insert(number, confirmed);
            assert_eq!(before, None, "{number} is answered twice");
            assert!(confirmed || self.gave_up, "{number} is refused");
        }
    }

    fn got(&mut self, node: usize, delivery: &Delivery, consumer: Option<ConsumerId>) {
        if let Some(consumer) = consumer {
            self.is_served(node, consumer);
        }
        for seq in delivery.seqs.iter() {
            let message = delivery.block.message((seq - delivery.base) as usize);
            let number: u64 = std::str::from_utf8(message.body).unwrap().parse().unwrap();
            let known = *self.seqs.entry(number).or_insert(seq);
            assert_eq!(known, seq, "{number} has two numbers in the queue");
            for (other, it) in self.nodes.iter().enumerate().filter(|(other, _)| *other != node) {
                let has = it.handle.holdings.has(seq);
                assert!(
                    !has || it.apart.is_some(),
                    "{number} comes to {node} while {other} has it"
                );
            }
            let gone = self.acked.contains(&number) && !self.unsafe_acks.contains(&number);
            assert!(!gone, "{number} comes again, though it was acked");
            self.acked.remove(&number);
            self.nodes[node].held.insert((seq, consumer), number);
            self.delivered.extend(consumer.map(|_| seq));
        }
        if let Some(consumer) = consumer {
            let bytes = delivery.bytes() as u32;
            self.request(node, Request::Flow { consumer, bytes });
        }
    }

    /// As far as nodes can know, who is active stays so until it goes.
    fn is_served(&mut self, node: usize, consumer: ConsumerId) {
        let term = self.nodes[node].handle.term;
        let is_late = |(_, _, since): (usize, ConsumerId, u64)| term < since;
        let wants_it = self.nodes[node].consumers.contains(&consumer);
        if !self.settings.single_active || !wants_it || self.active.is_some_and(is_late) {
            return;
        }
        if let Some((other, before, _)) = self.active.replace((node, consumer, term)) {
            let goes_on = before == consumer || !self.nodes[other].consumers.contains(&before);
            assert!(goes_on, "{consumer:?} is served while {before:?} is active");
        }
    }

    /// What a node's clients had counts no more, and acks of it may be lost.
    fn part(&mut self, node: usize) {
        self.active.take_if(|(at, ..)| *at == node);
        let lost = self.under_way(node);
        self.unsafe_acks.extend(lost);
        self.nodes[node].apart = Some(self.nodes[node].handle.sessions);
    }

    /// Acks of a node of which it does not know that they are on record.
    fn under_way(&self, node: usize) -> Vec<u64> {
        let handle = &self.nodes[node].handle;
        let has = |number: &&u64| self.seqs.get(number).is_some_and(|seq| handle.holdings.has(*seq));
        self.acked.iter().filter(has).copied().collect()
    }

    fn tick(&mut self) {
        let leader = self.leaders.last().unwrap().node;
        for node in 0..self.nodes.len() {
            let mut orders = Orders::default();
            if !self.cut.contains(&(leader, node)) {
                self.nodes[node].handle.leads(Some(NodeId(leader as u32)));
            }
            let acks = self.under_way(node);
            self.nodes[node].handle.tick(|| self.keeps_for, &mut orders);
            self.gave_up |= self.nodes[node].handle.given_up;
            if self.nodes[node].handle.let_go {
                self.unsafe_acks.extend(acks);
            }
            self.obey(node, orders);
        }
        for at in 0..self.leaders.len() {
            let Leader { node, sessions, .. } = &mut self.leaders[at];
            let heard = (0..self.nodes.len()).filter(|from| !self.cut.contains(&(*from, *node)));
            heard.for_each(|from| sessions.heard(self.nodes[from].me));
            let mut requests = Requests::new();
            sessions.tick(|| self.keeps_for, &mut requests);
            sessions.forget_the_quiet(FORGOTTEN_AFTER, &mut requests);
            self.turn(at, requests);
        }
    }

    /// Whether something was under way.
    fn arrive(&mut self, from: usize, to: usize) -> bool {
        let frames = self.network.get_mut(&(from, to));
        let Some(said) = frames.and_then(VecDeque::pop_front) else {
            return false;
        };
        match said {
            Said::Up(node, frame) => match self.leaders.iter().rposition(|leader| leader.node == to) {
                Some(at) => {
                    let mut requests = Requests::new();
                    self.leaders[at].sessions.receive(node, frame, &mut requests);
                    self.turn(at, requests);
                }
                None => {
                    if let Some(declined) = Sessions::decline(&frame) {
                        self.send(to, from, Said::Down(declined));
                    }
                }
            },
            Said::Down(frame) => {
                let mut orders = Orders::default();
                let from = NodeId(from as u32);
                self.nodes[to].handle.receive(from, frame, &mut orders);
                let handle = &self.nodes[to].handle;
                let knows = handle.is_settled() && handle.term == self.term;
                let since = handle.sessions;
                self.nodes[to].apart.take_if(|before| knows && since > *before);
                self.obey(to, orders);
            }
        }
        true
    }

    fn turn(&mut self, at: usize, mut requests: Requests) {
        let down = requests.iter().filter_map(|request| match request {
            Request::CountAsDown { node } => Some(*node),
            _ => None,
        });
        let down: Vec<Incarnation> = down.collect();
        for node in 0..self.nodes.len() {
            if down.contains(&self.nodes[node].me) {
                self.part(node);
            }
        }
        let Leader {
            node, host, sessions, ..
        } = &mut self.leaders[at];
        let from = *node;
        let submit = |_, requests: Requests| {
            requests
                .into_iter()
                .for_each(|request| host.handle(Timestamp(1), request));
            host.commit(|effect, _| drop(deliver(effect)));
            true
        };
        let mut frames = Vec::new();
        assert!(sessions.turn(submit, &mut requests, &mut frames));
        for (node, frame) in frames {
            if let Some(to) = self.nodes.iter().position(|it| it.me == node) {
                self.send(from, to, Said::Down(frame));
            }
        }
    }

    fn commit(&mut self, turns: usize) {
        let at = self.leaders.len() - 1;
        let journal = &mut self.leaders[at].host.journal;
        for _ in 0..turns {
            if let Some((turn, records)) = journal.open.pop_front() {
                self.committed.extend(records);
                journal.reached = turn;
            }
        }
        self.leaders[at].host.let_go(|effect, _| drop(deliver(effect)));
        self.turn(at, Requests::new());
    }

    fn settle(&mut self) {
        loop {
            let mut some = false;
            for from in 0..self.nodes.len() {
                for to in 0..self.nodes.len() {
                    while self.arrive(from, to) {
                        some = true;
                    }
                }
            }
            some |= !self.leaders.last().unwrap().host.journal.open.is_empty();
            if !some {
                return;
            }
            self.commit(1_000);
        }
    }

    fn broken(&mut self, one: usize, other: usize) {
        if one == other {
            return;
        }
        for (from, to) in [(one, other), (other, one)] {
            self.network.remove(&(from, to));
            self.nodes[from].handle.lost(NodeId(to as u32));
            let me = self.nodes[from].me;
            let leaders = self.leaders.iter_mut().filter(|leader| leader.node == to);
            leaders.for_each(|leader| leader.sessions.lost(me));
            self.say(from);
        }
    }

    fn cut_one_way(&mut self, from: usize, to: usize) {
        self.network.remove(&(from, to));
        self.cut.insert((from, to));
        let me = self.nodes[from].me;
        let leaders = self.leaders.iter_mut().filter(|leader| leader.node == to);
        leaders.for_each(|leader| leader.sessions.lost(me));
    }

    /// Whether it is on record that a node may hold something.
    pub fn may_hold(&self, node: usize) -> bool {
        let records = self.committed.iter().rev();
        let holders = records.filter_map(|bytes| match Record::decode(bytes) {
            Some(Record::MayHold { nodes }) => Some(nodes),
            _ => None,
        });
        let me = self.nodes[node].me;
        let last = holders.into_iter().next();
        last.is_some_and(|nodes| nodes.is_none_or(|nodes| nodes.contains(&me)))
    }

    /// What a node may send without an answer, and what of it who leads has lent to all nodes, in bytes.
    pub fn credit(&self, node: usize) -> (u64, u64) {
        let lent = LENT_AT_MOST - self.leaders.last().unwrap().budget.left();
        (self.nodes[node].handle.credit(), lent)
    }

    fn succeed(&mut self, node: usize, records: usize) {
        if let Some(old) = self.leaders.last_mut() {
            let open = old
                .host
                .journal
                .open
                .iter()
                .flat_map(|(_, records)| records.iter().cloned());
            self.committed.extend(open.take(records));
            // It can't lead twice at once: what it was before is gone with the machine.
            self.leaders.retain(|leader| leader.node != node);
        }
        self.term += 1;
        let mut machine = Classic::<Ends>::new(self.settings.clone());
        machine.replay();
        for (index, bytes) in self.committed.iter().enumerate() {
            let record = Record::decode(bytes).unwrap();
            machine.apply(index as u64 + 1, record, &mut Outcome::default());
        }
        machine.recovered(false);
        let nodes: Vec<Incarnation> = self.nodes.iter().map(|node| node.me).collect();
        let mut requests = Requests::new();
        let budget = Budget::new(LENT_AT_MOST);
        let sessions = Sessions::new(self.term, &nodes, budget.clone(), &mut requests);
        self.leaders.push(Leader {
            node,
            host: Host::new(machine, Shared::default()),
            sessions,
            budget,
        });
        self.turn(self.leaders.len() - 1, requests);
    }

    fn crash(&mut self, node: usize) {
        self.part(node);
        let gone = self.nodes[node].me;
        self.dead.insert(gone);
        let led = self.leaders.last().is_some_and(|leader| leader.node == node);
        if led {
            self.succeed((node + 1) % self.nodes.len(), 0);
        }
        self.leaders.retain(|leader| leader.node != node);
        self.network.retain(|(from, to), _| *from != node && *to != node);
        self.nodes[node] = self.begin();
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            self.nodes[other].handle.lost(NodeId(node as u32));
        }
        for at in 0..self.leaders.len() {
            let mut requests = Requests::new();
            self.leaders[at].sessions.ended(gone, &mut requests);
            self.turn(at, requests);
        }
    }

    fn let_go(&mut self, node: usize) {
        if self.nodes[node].handle.is_idle() {
            self.handles += 1;
            let new = Handle::new(self.nodes[node].me, &self.settings);
            self.nodes[node].handle = new.after(self.handles * APART);
        }
    }

    pub fn judge(mut self) {
        self.cut.clear();
        let last = self.leaders.len() - 1;
        self.leaders.drain(..last);
        for _ in 0..150 {
            self.tick();
            self.settle();
        }
        for (number, by) in &self.published {
            let answered = self.answered.contains_key(number) || self.dead.contains(by);
            assert!(answered, "{number} has no answer");
        }
        let mut handles = self.nodes.iter().map(|node| &node.handle);
        assert!(
            handles.all(|it| it.questions.is_empty()),
            "somebody is asked in vain"
        );
        let contents = self.contents();
        let there: BTreeSet<u64> = contents.iter().map(|(_, number, _)| *number).collect();
        assert_eq!(there.len(), contents.len(), "something is there twice");
        for (number, confirmed) in &self.answered {
            let acked = self.acked.contains(number);
            let kept = there.contains(number);
            assert!(!confirmed || kept || acked, "{number} was confirmed and is lost");
            let safe = acked && !self.unsafe_acks.contains(number);
            assert!(!safe || !kept, "{number} was acked and is there");
        }
        let mut last: BTreeMap<(Incarnation, Option<u8>), u64> = BTreeMap::new();
        for (seq, number, held) in &contents {
            let level = level(*number).filter(|_| self.settings.sorting == Sorting::Levels);
            let before = last.insert((self.published[number], level), *number);
            assert!(before < Some(*number), "{number} stands behind what came later");
            let has = self.nodes.iter().any(|node| node.handle.holdings.has(*seq));
            assert_eq!(*held, has, "{number} is held by somebody who knows of it");
        }
        let mut nodes = self.nodes.iter();
        let status = self.leaders[0].host.machine.status();
        let wanted = match self.settings.single_active {
            true => {
                let some = nodes.any(|node| !node.handle.consumers.is_empty());
                assert_eq!(
                    status.active.is_some(),
                    some,
                    "somebody is active if there is anybody"
                );
                some && !self.nodes.iter().any(|node| node.handle.limits_some())
            }
            false => nodes.any(|node| node.handle.wants_all()),
        };
        let ready = contents.iter().filter(|(_, _, held)| !held).count();
        assert!(
            !wanted || ready == 0,
            "{ready} are not delivered though somebody wants them"
        );
    }

    /// What the queue has: numbers in the queue, the messages, and whether somebody has them.
    fn contents(&self) -> Vec<(Seq, u64, bool)> {
        use queue::{Standing, store::Bytes};
        let glance = self.leaders.last().unwrap().host.machine.look(None, 0, u64::MAX);
        let mut contents = Vec::new();
        for span in glance.spans {
            let Some(Bytes::Memory(block)) = &span.bytes else {
                panic!("everything is in memory");
            };
            for seq in span.first..=span.last {
                let message = block.message((seq - span.base) as usize);
                let number = std::str::from_utf8(message.body).unwrap().parse().unwrap();
                contents.push((seq, number, span.standing != Standing::Ready));
            }
        }
        contents
    }
}
