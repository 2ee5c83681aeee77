//! Clients of a replicated queue on any node, whoever leads: three nodes with a handle each, and links that break.

use super::trio::{NODES, Trio};
use crate::clients::outbox::{ChannelId, Event, Outbox, Question};
use crate::groups::handle::{
    Budget, Frame, Handle, Orders, Requests, Sessions, ToLeader, ToNode, deliver, keeps_for,
};
use crate::node::ends::{Ends, Outlet, Receipt, Reply};
use cluster::NodeId;
use model::properties::Properties;
use model::{
    BlockBuilder, ConsumerId, Incarnation, Message, QueueSettings, Ranges, RouteBuf, Seq, Timestamp,
};
use queue::{Answer, ConsumerSettings, Delivery, Disposal, Effect, Request};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

const CHANNEL: ChannelId = ChannelId(1);

/// Something under way between two nodes.
enum Said {
    Up(Incarnation, Frame<ToLeader>),
    Down(Frame<ToNode>),
}

/// A node's clients and its handle.
struct Clients {
    me: Incarnation,
    handle: Handle<Ends>,
    outbox: Arc<Outbox>,
    /// What they have: the message's number and who got it, by its number in the queue.
    held: BTreeMap<Seq, (u64, Option<ConsumerId>)>,
    cancelled: BTreeSet<ConsumerId>,
}

struct World {
    trio: Trio,
    clients: BTreeMap<u32, Clients>,
    sessions: BTreeMap<u32, Sessions>,
    network: VecDeque<(u32, u32, Said)>,
    incarnations: u64,
    questions: u64,
    published: u64,
    confirmed: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    empty: u64,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            trio: Trio::new(),
            clients: BTreeMap::new(),
            sessions: BTreeMap::new(),
            network: VecDeque::new(),
            incarnations: 0,
            questions: 0,
            published: 0,
            confirmed: BTreeSet::new(),
            refused: BTreeSet::new(),
            empty: 0,
        };
        NODES.iter().for_each(|id| world.begin(*id));
        world
    }

    /// The clients of a node that has just started.
    fn begin(&mut self, id: u32) {
        self.incarnations += 1;
        let me = Incarnation(self.incarnations);
        let clients = Clients {
            me,
            handle: Handle::new(me, &QueueSettings::default()),
            outbox: Arc::new(Outbox::new()),
            held: BTreeMap::new(),
            cancelled: BTreeSet::new(),
        };
        self.clients.insert(id, clients);
    }

    fn crash(&mut self, id: u32, seed: u64) {
        self.trio.crash(id, seed);
        let gone = self.clients.remove(&id).map(|clients| clients.me);
        self.sessions.remove(&id);
        self.network.retain(|(from, to, _)| *from != id && *to != id);
        self.trio.start(id);
        self.begin(id);
        self.broken(id, None);
        for (leader, mut sessions) in std::mem::take(&mut self.sessions) {
            let mut requests = Requests::new();
            gone.iter().for_each(|gone| sessions.ended(*gone, &mut requests));
            self.turn_sessions(leader, sessions, requests);
        }
    }

    /// The links of a node to another one, or to all, are broken, and what was under way is lost.
    fn broken(&mut self, id: u32, other: Option<u32>) {
        let concerns = |from: u32, to: u32| {
            from == id && other.is_none_or(|other| to == other)
                || to == id && other.is_none_or(|other| from == other)
        };
        self.network.retain(|(from, to, _)| !concerns(*from, *to));
        let nodes: Vec<(u32, Incarnation)> = self.clients.iter().map(|(id, it)| (*id, it.me)).collect();
        for (node, me) in nodes {
            for peer in NODES.into_iter().filter(|peer| concerns(node, *peer)) {
                if let Some(clients) = self.clients.get_mut(&node) {
                    clients.handle.lost(NodeId(peer));
                }
                if let Some(sessions) = self.sessions.get_mut(&peer) {
                    sessions.lost(me);
                }
            }
        }
    }

    fn isolate(&mut self, id: u32) {
        self.trio.isolate(id);
        self.broken(id, None);
    }

    fn heal(&mut self) {
        self.trio.heal();
        for sessions in self.sessions.values_mut() {
            self.clients
                .values()
                .for_each(|clients| sessions.heard(clients.me));
        }
    }

    fn tick(&mut self) {
        self.trio.tick();
        for id in NODES {
            let mut orders = Orders::default();
            if let Some(clients) = self.clients.get_mut(&id) {
                let leader = self.trio.queue(id).leader().map(|leader| leader.node);
                clients.handle.leads(leader);
                clients.handle.tick(|| keeps_for(None), &mut orders);
            }
            self.obey(id, orders);
            if let Some(mut sessions) = self.sessions.remove(&id) {
                let mut requests = Requests::new();
                let reached = self
                    .clients
                    .iter()
                    .filter(|(to, _)| !self.trio.cut.contains(&(**to, id)));
                reached.for_each(|(_, clients)| sessions.heard(clients.me));
                sessions.tick(|| keeps_for(None), &mut requests);
                self.turn_sessions(id, sessions, requests);
            }
        }
        self.settle();
    }

    fn ticks(&mut self, count: usize) {
        (0..count).for_each(|_| self.tick());
    }

    fn settle(&mut self) {
        loop {
            self.trio.settle();
            self.look_who_leads();
            for id in NODES {
                if let Some(sessions) = self.sessions.remove(&id) {
                    self.turn_sessions(id, sessions, Requests::new());
                }
                self.say(id);
                self.look(id);
            }
            let Some((from, to, said)) = self.network.pop_front() else {
                return;
            };
            if !self.trio.cut.contains(&(from, to)) {
                self.arrive(from, to, said);
            }
        }
    }

    fn look_who_leads(&mut self) {
        for id in NODES {
            let term = self.trio.queue(id).term();
            let known = self.sessions.get(&id).map(Sessions::term);
            if term != known {
                self.sessions.remove(&id);
                if let Some(term) = term {
                    let nodes: Vec<Incarnation> = self.clients.values().map(|clients| clients.me).collect();
                    let mut requests = Requests::new();
                    let sessions = Sessions::new(term, &nodes, Budget::new(1 << 20), &mut requests);
                    self.turn_sessions(id, sessions, requests);
                }
            }
        }
    }

    fn turn_sessions(&mut self, id: u32, mut sessions: Sessions, mut requests: Requests) {
        let mut frames = Vec::new();
        let queue = self.trio.queue(id);
        let submit = |term, requests| queue.submit_in(term, Timestamp(1), requests);
        let leads = sessions.turn(submit, &mut requests, &mut frames);
        for (node, frame) in frames {
            if let Some((to, _)) = self.clients.iter().find(|(_, clients)| clients.me == node) {
                self.network.push_back((id, *to, Said::Down(frame)));
            }
        }
        if leads {
            self.sessions.insert(id, sessions);
        }
    }

    fn arrive(&mut self, from: u32, to: u32, said: Said) {
        match said {
            Said::Up(node, frame) => match self.sessions.remove(&to) {
                Some(mut sessions) => {
                    let mut requests = Requests::new();
                    sessions.receive(node, frame, &mut requests);
                    self.turn_sessions(to, sessions, requests);
                }
                None => {
                    if let Some(declined) = Sessions::decline(&frame) {
                        self.network.push_back((to, from, Said::Down(declined)));
                    }
                }
            },
            Said::Down(frame) => {
                let mut orders = Orders::default();
                if let Some(clients) = self.clients.get_mut(&to) {
                    clients.handle.receive(NodeId(from), frame, &mut orders);
                }
                self.obey(to, orders);
            }
        }
    }

    fn obey(&mut self, id: u32, orders: Orders<Ends>) {
        let refused = orders.unreached.into_iter().map(Effect::Reject);
        for effect in orders.effects.into_iter().chain(refused) {
            assert!(deliver(effect).is_ok());
        }
        orders
            .declined
            .into_iter()
            .for_each(|reply| reply.outbox.send(reply.answered(None)));
        self.say(id);
    }

    fn say(&mut self, id: u32) {
        if let Some(clients) = self.clients.get_mut(&id) {
            let mut frames = Vec::new();
            clients.handle.frames(&mut frames);
            let me = clients.me;
            let frames = frames
                .into_iter()
                .map(|(to, frame)| (id, to.0, Said::Up(me, frame)));
            self.network.extend(frames);
        }
    }

    /// Looks at what came for clients.
    fn look(&mut self, id: u32) {
        let Some(clients) = self.clients.get_mut(&id) else {
            return;
        };
        let mut events = Vec::new();
        clients.outbox.take_now(&mut events);
        for event in events {
            match event {
                Event::Confirm { numbers, .. } => {
                    for number in numbers.iter() {
                        assert!(self.confirmed.insert(number), "{number} is confirmed twice");
                    }
                }
                Event::Reject { numbers, .. } => self.refused.extend(numbers.iter()),
                Event::Deliver {
                    consumer, delivery, ..
                } => clients.receive(&delivery, Some(consumer)),
                Event::Answer {
                    answer: Some(Answer::Got { delivery, .. }),
                    ..
                } => clients.receive(&delivery, None),
                Event::Answer {
                    answer: Some(Answer::Empty),
                    ..
                } => self.empty += 1,
                Event::ConsumerCancelled { consumer, .. } => {
                    clients.cancelled.insert(consumer);
                }
                _ => {}
            }
        }
    }

    fn request(&mut self, id: u32, request: Request<Ends>) {
        let mut orders = Orders::default();
        let handle = &mut self.clients.get_mut(&id).unwrap().handle;
        assert!(handle.request(request, &mut orders).is_ok());
        self.obey(id, orders);
    }

    fn publish(&mut self, id: u32, count: u64) {
        let bodies = (1..=count).map(|at| (self.published + at).to_string().into_bytes());
        self.publish_all(id, bodies.collect());
    }

    /// A message with so many bytes.
    fn publish_bytes(&mut self, id: u32, bytes: usize) {
        self.publish_all(id, vec![vec![0; bytes]]);
    }

    fn publish_all(&mut self, id: u32, bodies: Vec<Vec<u8>>) {
        let mut block = BlockBuilder::default();
        let route = RouteBuf::new(b"", b"q");
        for body in &bodies {
            block.push_message(&Message::new(route.as_route(), Properties::amqp091(b""), body));
        }
        let first = self.published + 1;
        self.published += bodies.len() as u64;
        let numbers = Ranges::span(first, self.published);
        let receipt = Receipt {
            outbox: self.clients[&id].outbox.clone(),
            channel: CHANNEL,
            numbers,
            queue: None,
            timed: None,
        };
        let request = Request::Enqueue {
            block: Arc::new(block.finish(true, Timestamp(1))),
            receipt: Some(receipt),
        };
        self.request(id, request);
    }

    fn reply(&mut self, id: u32) -> Reply {
        self.questions += 1;
        Reply {
            outbox: self.clients[&id].outbox.clone(),
            channel: CHANNEL,
            question: Question(self.questions),
            no_ack: false,
        }
    }

    fn consume(&mut self, id: u32, consumer: u64, prefetch: u32) {
        let outlet = Outlet {
            outbox: self.clients[&id].outbox.clone(),
            channel: CHANNEL,
            no_ack: false,
        };
        let settings = ConsumerSettings {
            no_ack: false,
            exclusive: false,
            prefetch,
            priority: 0,
            window: 1 << 20,
            paused: false,
        };
        let reply = self.reply(id);
        let request = Request::Consume {
            consumer: ConsumerId(consumer),
            outlet,
            settings,
            reply,
        };
        self.request(id, request);
    }

    fn get(&mut self, id: u32) {
        let reply = self.reply(id);
        self.request(id, Request::Get { no_ack: false, reply });
    }

    /// Acks what the clients of this node have.
    fn ack_all(&mut self, id: u32) -> Vec<u64> {
        let held = std::mem::take(&mut self.clients.get_mut(&id).unwrap().held);
        let numbers = held.values().map(|(number, _)| *number).collect();
        for (seq, (_, consumer)) in held {
            let request = Request::Settle {
                consumer,
                seqs: Ranges::one(seq),
                disposal: Disposal::Accepted,
            };
            self.request(id, request);
        }
        numbers
    }

    fn held(&self, id: u32) -> Vec<u64> {
        self.clients[&id]
            .held
            .values()
            .map(|(number, _)| *number)
            .collect()
    }

    fn leader(&mut self) -> u32 {
        for _ in 0..200 {
            let leads = |id: &&u32| self.sessions.contains_key(id) && self.trio.queue(**id).leads();
            if let Some(leader) = NODES.iter().find(leads) {
                return *leader;
            }
            self.tick();
        }
        panic!("nobody leads");
    }

    /// A node that does not lead.
    fn other(&mut self) -> u32 {
        let leader = self.leader();
        NODES.into_iter().find(|id| *id != leader).unwrap()
    }
}

impl Clients {
    fn receive(&mut self, delivery: &Delivery, consumer: Option<ConsumerId>) {
        for seq in delivery.seqs.iter() {
            let message = delivery.block.message((seq - delivery.base) as usize);
            let number = std::str::from_utf8(message.body).unwrap().parse().unwrap();
            self.held.insert(seq, (number, consumer));
        }
    }
}

#[test]
fn a_node_that_does_not_lead_publishes_consumes_and_acks_as_the_leader_does() {
    let mut world = World::new();
    let node = world.other();
    world.publish(node, 3);
    world.consume(node, 7, 2);
    world.settle();
    assert_eq!(world.confirmed.len(), 3);
    assert_eq!(world.held(node), [1, 2]);
    assert_eq!(world.ack_all(node), [1, 2]);
    world.settle();
    assert_eq!(world.held(node), [3]);
    world.ack_all(node);
    world.get(node);
    world.settle();
    assert_eq!(world.empty, 1);
    world.ticks(5);
    assert!(NODES.iter().all(|id| world.trio.messages(*id) == Some(0)));
}

#[test]
fn over_a_change_of_leader_publishes_are_neither_lost_nor_doubled_and_what_is_held_stays() {
    for seed in 0..10 {
        let mut world = World::new();
        let old = world.leader();
        let (one, other) = match old {
            1 => (2, 3),
            2 => (1, 3),
            _ => (1, 2),
        };
        world.publish(one, 4);
        world.consume(one, 7, 2);
        world.settle();
        assert_eq!(world.held(one), [1, 2]);
        // These are under way when the leader goes.
        world.publish(one, 2);
        world.publish(other, 2);
        world.ack_all(one);
        world.crash(old, seed);
        world.ticks(40);
        assert_eq!(world.confirmed.len(), 8, "all are confirmed once");
        assert!(world.refused.is_empty());
        assert_eq!(world.held(one), [3, 4], "acks count, and so does the limit");
        world.ack_all(one);
        world.settle();
        let mut rest = world.held(one);
        world.ack_all(one);
        world.settle();
        rest.extend(world.held(one));
        rest.sort_unstable();
        assert_eq!(rest, [5, 6, 7, 8]);
        world.ack_all(one);
        world.ticks(5);
        assert!(NODES.iter().all(|id| world.trio.messages(*id) == Some(0)));
    }
}

#[test]
fn a_node_that_is_cut_off_gives_up_after_five_seconds_and_what_it_held_is_delivered_elsewhere_after_two() {
    let mut world = World::new();
    let leader = world.leader();
    let node = world.other();
    world.publish(leader, 2);
    world.consume(node, 7, 0);
    world.settle();
    assert_eq!(world.held(node), [1, 2]);
    world.isolate(node);
    world.consume(leader, 8, 0);
    world.publish(node, 1);
    world.ticks(30);
    assert_eq!(world.held(leader), [1, 2]);
    assert!(world.refused.is_empty());
    world.ticks(30);
    assert_eq!(world.refused.len(), 1);
    assert!(world.clients[&node].cancelled.contains(&ConsumerId(7)));
    world.ack_all(node);
    world.heal();
    world.ticks(30);
    assert_eq!(
        world.trio.messages(leader),
        Some(2),
        "acks of what is somebody else's are passed over"
    );
    world.publish(node, 1);
    world.ticks(5);
    assert_eq!(world.confirmed.len(), 3);
    assert_eq!(world.held(leader).len(), 3);
}

#[test]
fn a_broken_link_costs_nothing_that_is_held_and_what_was_lost_on_it_comes_again() {
    let mut world = World::new();
    let leader = world.leader();
    let node = world.other();
    world.publish(leader, 2);
    world.consume(node, 7, 0);
    world.settle();
    assert_eq!(world.held(node), [1, 2]);
    world.publish(leader, 2);
    while world
        .network
        .iter()
        .all(|(from, to, _)| (*from, *to) != (leader, node))
    {
        world.trio.settle();
        world.look_who_leads();
        if let Some(sessions) = world.sessions.remove(&leader) {
            world.turn_sessions(leader, sessions, Requests::new());
        }
        world.say(leader);
        if let Some((from, to, said)) = world.network.pop_front() {
            world.arrive(from, to, said);
        }
    }
    world.publish(node, 1);
    world.ack_all(node);
    world.broken(node, Some(leader));
    world.ticks(10);
    assert_eq!(world.held(node), [3, 4, 5]);
    assert_eq!(world.confirmed.len(), 5);
    assert_eq!(world.trio.messages(leader), Some(3));
}

#[test]
fn a_publisher_at_full_speed_is_lent_more_and_gives_it_back_when_it_is_quiet() {
    let mut world = World::new();
    let node = world.other();
    world.tick();
    let first = world.clients[&node].handle.credit();
    for _ in 0..100 {
        world.publish_bytes(node, 10_000);
    }
    assert!(world.clients[&node].handle.is_full(), "its publishers wait");
    world.settle();
    assert_eq!(world.confirmed.len(), 100);
    let lent = world.clients[&node].handle.credit();
    assert!(lent >= 4 * first, "{lent}");
    assert!(!world.clients[&node].handle.is_full());
    world.ticks(60);
    assert_eq!(world.clients[&node].handle.credit(), first);
}
