//! A replicated queue goes from node to node at any moment, also between what was decided and what was committed. Nodes
//! send again what has no answer, and say what their consumers hold. What was committed comes out once and in order, no
//! acknowledgement is undone, no number means two messages, and returns are counted right.

use crate::world::{body, number};
use model::properties::PropertiesBuilder;
use model::{
    Block, BlockBuilder, ConsumerId, Incarnation, Index, Journaled, Machine, Outcome, Ranges, Seq, Sorting,
    Timestamp,
};
use proptest::prelude::*;
use queue::fifo::{
    Answer, Classic, ConsumerSettings, Delivery, DeliveryLimit, Disposal, Effect, Ends, Held, NodeConsumer,
    Origin, Overflow, QueueSettings, Record, Request,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A message, as its publisher knows it. Rises with each.
type Id = u64;

enum Net {}

impl Ends for Net {
    /// Who sent, and by which numbers.
    type Receipt = (usize, Vec<u64>);
    /// Which node asks, and whether this ends what it says of its consumers.
    type Reply = (usize, bool);
    type Outlet = usize;

    fn split(receipt: &mut Self::Receipt, positions: &Ranges, _: usize) -> Self::Receipt {
        let (out, left) = std::mem::take(&mut receipt.1)
            .into_iter()
            .enumerate()
            .partition::<Vec<_>, _>(|(at, _)| positions.contains(*at as u64));
        receipt.1 = left.into_iter().map(|(_, number)| number).collect();
        (receipt.0, out.into_iter().map(|(_, number)| number).collect())
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A node publishes so many messages of this priority, and one more of another.
    Publish(usize, u64, u8),
    Get(usize),
    /// A client of a node is done with something that it has, or gives it back.
    Accept(usize, usize),
    Return(usize, usize),
    /// So many parts of four of what is not committed are.
    Commit(usize),
    /// Somebody else decides.
    Succeed(Change),
    /// A node says what its consumers hold.
    Speak(usize),
    /// A node that has said nothing counts as down.
    Down(usize),
}

#[derive(Clone, Copy, Debug)]
struct Change {
    /// How much of what is not committed survives.
    commit: usize,
    /// The node that starts anew.
    dead: Option<usize>,
    /// Whoever followed decides; otherwise it is a node that starts and replays.
    follower: bool,
    /// What is sent again comes in blocks of so many.
    blocks: usize,
}

fn step() -> impl Strategy<Value = Step> {
    let node = 0..NODES;
    let change = (
        0..5_usize,
        prop::option::weighted(0.3, 0..NODES),
        any::<bool>(),
        1..5_usize,
    )
        .prop_map(|(commit, dead, follower, blocks)| Change {
            commit,
            dead,
            follower,
            blocks,
        });
    prop_oneof![
        5 => (node.clone(), 1..4_u64, 0..3_u8).prop_map(|(node, count, rank)| Step::Publish(node, count, rank)),
        2 => node.clone().prop_map(Step::Get),
        5 => (node.clone(), 0..4_usize).prop_map(|(node, which)| Step::Accept(node, which)),
        3 => (node.clone(), 0..4_usize).prop_map(|(node, which)| Step::Return(node, which)),
        6 => (0..5_usize).prop_map(Step::Commit),
        2 => change.prop_map(Step::Succeed),
        6 => node.clone().prop_map(Step::Speak),
        1 => node.prop_map(Step::Down),
    ]
}

const NODES: usize = 3;

/// What a client has.
#[derive(Clone, Copy, Debug)]
struct Had {
    id: Id,
    consumer: Option<ConsumerId>,
    returns: u32,
}

/// What a client did with a message, until that is committed.
#[derive(Clone, Copy, Debug)]
struct Done {
    seq: Seq,
    had: Had,
    accepts: bool,
    /// Who was told (0: nobody yet), and how long the log was then; `usize::MAX` if nobody was, or that owner has gone before it
    /// was committed.
    term: u64,
    at: usize,
}

#[derive(Debug, Default)]
struct Node {
    incarnation: u64,
    next: u64,
    /// Sent, and without an answer: number, message, priority.
    unanswered: VecDeque<(u64, Id, u8)>,
    held: BTreeMap<Seq, Had>,
    done: Vec<Done>,
    /// It has not told the present owner what it holds.
    silent: bool,
    /// And the owner waits no longer: since the log was so long.
    down_at: Option<usize>,
    /// It has told the present owner, and does not know yet what of that counts. What its clients are done with is said after
    /// that: whatever does not count may be somebody else's by now.
    asks: bool,
}

#[derive(Debug, Default)]
struct Last {
    turn: u64,
    /// The newest message before that turn, and by now.
    before: Id,
    newest: Id,
}

struct World {
    owner: Classic<Net>,
    follower: Classic<Net>,
    settings: QueueSettings,
    term: u64,
    log: Vec<(Index, Vec<u8>)>,
    committed: usize,
    /// What leaves once the log is committed so far.
    held: VecDeque<(usize, u64, Effect<Net>)>,
    nodes: Vec<Node>,
    incarnations: u64,
    published: Id,
    accepted: BTreeSet<Id>,
    confirmed: BTreeSet<Id>,
    refused: BTreeSet<Id>,
    /// Where each message that was ever delivered stands, and the other way round.
    seq_of: BTreeMap<Id, Seq>,
    id_of: BTreeMap<Seq, Id>,
    /// What was delivered last of each publisher and priority, for the first time.
    last: BTreeMap<(u64, u8), Last>,
    /// How many turns there were, and whose effects leave. Consumers that are served in one turn have no order among them.
    turns: u64,
    leaving: u64,
    sent_by: BTreeMap<Id, (u64, u8)>,
    returned: BTreeMap<Id, u32>,
    /// The node that gave it back is gone or counts as down, and whether that was heard nobody knows.
    vague: BTreeSet<Id>,
}

impl World {
    fn new(settings: QueueSettings) -> Self {
        let mut follower = Classic::new(settings.clone());
        follower.follow();
        let mut world = Self {
            owner: Classic::new(settings.clone()),
            follower,
            settings,
            term: 1,
            log: Vec::new(),
            committed: 0,
            held: VecDeque::new(),
            nodes: Vec::new(),
            incarnations: 0,
            published: 0,
            accepted: BTreeSet::new(),
            confirmed: BTreeSet::new(),
            refused: BTreeSet::new(),
            seq_of: BTreeMap::new(),
            id_of: BTreeMap::new(),
            last: BTreeMap::new(),
            turns: 0,
            leaving: 0,
            sent_by: BTreeMap::new(),
            returned: BTreeMap::new(),
            vague: BTreeSet::new(),
        };
        world.nodes.resize_with(NODES, Node::default);
        for at in 0..NODES {
            world.start(at);
            world.attach(at);
        }
        world
    }

    /// A node starts: it has nothing, and is nobody that was there before.
    fn start(&mut self, at: usize) {
        self.incarnations += 1;
        self.nodes[at] = Node {
            incarnation: self.incarnations,
            next: 1,
            ..Node::default()
        };
    }

    fn attach(&mut self, at: usize) {
        let settings = ConsumerSettings {
            no_ack: false,
            exclusive: false,
            prefetch: 2,
            priority: 0,
            window: 1 << 20,
            paused: false,
        };
        let of = NodeConsumer {
            node: Incarnation(self.nodes[at].incarnation),
            consumer: consumer(at),
        };
        self.turn(Request::ConsumeFrom {
            of: Box::new(of),
            consumer: consumer(at),
            outlet: at,
            settings,
            reply: (at, false),
        });
    }

    fn turn(&mut self, request: Request<Net>) {
        let mut outcome = Outcome::default();
        self.owner.handle(Timestamp(1), request, &mut outcome);
        for record in outcome.records {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            let last = self.log.last().map_or(0, |(index, _)| *index);
            self.log.push((last + 1 + last % 3, bytes));
        }
        let end = self.log.len();
        let effects = outcome.effects.into_iter().chain(outcome.promises);
        self.turns += 1;
        let turn = self.turns;
        self.held.extend(effects.map(|effect| (end, turn, effect)));
        self.let_go();
    }

    fn commit(&mut self, parts: usize) {
        let open = self.log.len() - self.committed;
        let before = self.committed;
        self.committed += (open * parts).div_ceil(4).min(open);
        for (index, bytes) in &self.log[before..self.committed] {
            let record = Record::decode(bytes).unwrap();
            self.follower.apply(*index, record, &mut Outcome::default());
        }
        let (committed, accepted) = (self.committed, &mut self.accepted);
        for node in &mut self.nodes {
            node.done.retain(|done| {
                if done.at <= committed && done.accepts {
                    accepted.insert(done.had.id);
                }
                done.at > committed
            });
        }
        self.let_go();
    }

    fn let_go(&mut self) {
        while self.held.front().is_some_and(|(at, ..)| *at <= self.committed) {
            let (_, turn, effect) = self.held.pop_front().unwrap();
            self.leaving = turn;
            self.leave(effect);
        }
    }

    fn leave(&mut self, effect: Effect<Net>) {
        match effect {
            Effect::Confirm(receipt) => self.answered(receipt, true),
            Effect::Reject(receipt) => self.answered(receipt, false),
            Effect::Deliver {
                outlet,
                consumer,
                delivery,
            } => self.receive(outlet, Some(consumer), &delivery),
            Effect::Reply((at, _), Answer::Got { delivery, .. }) => self.receive(at, None, &delivery),
            Effect::Reply((at, last), Answer::Discard(seqs)) => self.discard(at, &seqs, last),
            Effect::Expects { sender, number, .. } => panic!("{sender:?} should go on with {number}"),
            _ => {}
        }
    }

    fn answered(&mut self, (at, numbers): (usize, Vec<u64>), confirmed: bool) {
        for number in numbers {
            let unanswered = &mut self.nodes[at].unanswered;
            let place = unanswered.iter().position(|(it, ..)| *it == number);
            let (_, id, _) = unanswered.remove(place.unwrap()).unwrap();
            match confirmed {
                true => self.confirmed.insert(id),
                false => self.refused.insert(id),
            };
        }
    }

    fn receive(&mut self, at: usize, consumer: Option<ConsumerId>, delivery: &Delivery) {
        let returns = delivery.returns;
        for seq in delivery.seqs.iter() {
            let id = number(delivery.block.message((seq - delivery.base) as usize));
            assert_eq!(
                *self.id_of.entry(seq).or_insert(id),
                id,
                "number {seq} means two messages"
            );
            let first = !self.seq_of.contains_key(&id);
            assert_eq!(
                *self.seq_of.entry(id).or_insert(seq),
                seq,
                "{id} was enqueued twice"
            );
            assert!(
                !self.accepted.contains(&id),
                "{id} comes again though it was settled"
            );
            assert!(!self.refused.contains(&id), "{id} comes though it was refused");
            let held = |node: &Node| node.down_at.is_none() && node.held.values().any(|had| had.id == id);
            assert!(
                !self.nodes.iter().any(held),
                "{id} is handed out while a client has it"
            );
            if first {
                let last = self.last.entry(self.sent_by[&id]).or_default();
                if last.turn != self.leaving {
                    (last.turn, last.before) = (self.leaving, last.newest);
                }
                assert!(last.before < id, "{id} comes after {last:?}");
                last.newest = last.newest.max(id);
            }
            assert!(
                first || delivery.redelivered,
                "{id} was delivered before, and that is not said"
            );
            assert!(
                self.term > 1 || first != delivery.redelivered,
                "{id} is marked without a reason"
            );
            if !self.vague.contains(&id) {
                let counted = self.returned.get(&id).copied().unwrap_or(0);
                assert_eq!(returns, counted, "{id} has come back so often");
            }
            let had = Had {
                id,
                consumer,
                returns,
            };
            self.nodes[at].held.insert(seq, had);
        }
    }

    /// The owner knows better than the node what its clients have: that is forgotten, and whatever else was not heard
    /// is said again.
    fn discard(&mut self, at: usize, seqs: &Ranges, last: bool) {
        let (node, vague) = (&mut self.nodes[at], &mut self.vague);
        node.held.retain(|seq, _| !seqs.contains(*seq));
        let term = self.term;
        node.done.retain(|done| {
            let void = done.term < term && seqs.contains(done.seq);
            if void && !done.accepts {
                vague.insert(done.had.id);
            }
            !void
        });
        if last {
            (node.down_at, node.asks) = (None, false);
            let knows = Incarnation(node.incarnation);
            let again: Vec<Done> = node.done.extract_if(.., |done| done.term < term).collect();
            self.turn(Request::Knows { node: knows });
            again.into_iter().for_each(|done| self.tell(at, done));
        }
    }

    fn tell(&mut self, at: usize, done: Done) {
        let (consumer, seqs) = (done.had.consumer, Ranges::one(done.seq));
        let request = match done.accepts {
            true => Request::Settle {
                consumer,
                seqs,
                disposal: Disposal::Accepted,
            },
            false => Request::Return {
                consumer,
                seqs,
                failed: true,
            },
        };
        // Noted first: the answer of the turn may be there at once.
        self.nodes[at].done.push(Done {
            term: self.term,
            at: self.log.len() + 1,
            ..done
        });
        self.turn(request);
    }

    fn act(&mut self, at: usize, which: usize, accepts: bool) {
        let node = &mut self.nodes[at];
        let Some((seq, had)) = node.held.iter().nth(which).map(|(seq, had)| (*seq, *had)) else {
            return;
        };
        if node.down_at.is_some() {
            return;
        }
        node.held.remove(&seq);
        if !accepts {
            *self.returned.entry(had.id).or_insert(0) += 1;
        }
        let done = Done {
            seq,
            had,
            accepts,
            term: 0,
            at: usize::MAX,
        };
        match node.asks {
            true => node.done.push(done),
            false => self.tell(at, done),
        }
    }

    fn publish(&mut self, at: usize, count: u64, rank: u8) {
        let node = &mut self.nodes[at];
        let from = node.unanswered.len();
        for more in 0..=count {
            self.published += 1;
            let rank = if more == count { rank + 1 } else { rank };
            self.sent_by.insert(self.published, (node.incarnation, rank));
            node.unanswered.push_back((node.next, self.published, rank));
            node.next += 1;
        }
        let block: Vec<_> = node.unanswered.range(from..).copied().collect();
        self.send(at, &block);
    }

    fn send(&mut self, at: usize, messages: &[(u64, Id, u8)]) {
        let Some((first, ..)) = messages.first() else {
            return;
        };
        let origin = Origin {
            sender: Incarnation(self.nodes[at].incarnation),
            first: *first,
        };
        let numbers = messages.iter().map(|(number, ..)| *number).collect();
        self.turn(Request::EnqueueFrom {
            origin: Box::new(origin),
            block: block(messages),
            receipt: Some((at, numbers)),
        });
    }

    fn speak(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if !std::mem::take(&mut node.silent) {
            return;
        }
        node.asks = true;
        let term = self.term;
        let unheard = node.done.iter().filter(|done| done.term < term);
        let unheard = unheard.map(|done| (done.seq, done.had));
        let all = node.held.iter().map(|(seq, had)| (*seq, *had)).chain(unheard);
        let mut held: Vec<Held> = all
            .map(|(seq, had)| Held {
                consumer: had.consumer,
                seqs: Ranges::one(seq),
                returns: had.returns,
            })
            .collect();
        let node = Incarnation(node.incarnation);
        let rest = held.split_off(held.len() / 2);
        for (held, more) in [(held, true), (rest, false)] {
            self.turn(Request::Holds {
                node,
                held,
                more,
                reply: (at, !more),
            });
        }
    }

    fn count_as_down(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if node.silent {
            node.down_at.get_or_insert(self.log.len() + 1);
            // What it could not say again is not counted.
            self.vague.extend(node.done.iter().map(|done| done.had.id));
            let node = Incarnation(node.incarnation);
            self.turn(Request::CountAsDown { node });
        }
    }

    fn replayed(&self) -> Classic<Net> {
        let mut machine = Classic::new(self.settings.clone());
        machine.replay();
        for (index, bytes) in &self.log[..self.committed] {
            let record = Record::decode(bytes).unwrap();
            machine.apply(*index, record, &mut Outcome::default());
        }
        machine
    }

    fn succeed(&mut self, change: Change) {
        self.commit(change.commit);
        self.log.truncate(self.committed);
        self.held.clear();
        self.term += 1;
        let replayed = self.replayed();
        let (own, other) = (replayed.checkpoint(1), self.follower.checkpoint(1));
        assert_eq!(own, other, "whoever follows has what whoever replays has");
        let mut follower = self.replayed();
        follower.follow();
        let followed = std::mem::replace(&mut self.follower, follower);
        self.owner = if change.follower { followed } else { replayed };
        self.owner.recovered(false);
        let settings = Box::new(self.settings.clone());
        self.turn(Request::Configure { settings });
        let ended = change.dead.map(|at| {
            let node = &self.nodes[at];
            let unheard = node.done.iter().map(|done| done.had.id);
            self.vague.extend(unheard.collect::<Vec<_>>());
            let ended = Incarnation(node.incarnation);
            self.start(at);
            ended
        });
        let living = self.nodes.iter().map(|node| Incarnation(node.incarnation));
        let nodes = living.chain(ended).collect();
        self.turn(Request::AwaitNodes { nodes });
        for at in 0..NODES {
            let node = &mut self.nodes[at];
            (node.silent, node.asks) = (true, false);
            node.done.iter_mut().for_each(|done| done.at = usize::MAX);
            node.down_at = node.down_at.filter(|since| *since <= self.committed);
            let unanswered: Vec<_> = self.nodes[at].unanswered.iter().copied().collect();
            for block in unanswered.chunks(change.blocks) {
                self.send(at, block);
            }
            self.attach(at);
        }
        if let Some(incarnation) = ended {
            self.turn(Request::IncarnationEnded { incarnation });
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Publish(at, count, rank) => self.publish(at, count, rank),
            Step::Get(at) => {
                let node = Incarnation(self.nodes[at].incarnation);
                self.turn(Request::MayHold { node: Some(node) });
                self.turn(Request::Get {
                    no_ack: false,
                    reply: (at, false),
                });
            }
            Step::Accept(at, which) => self.act(at, which, true),
            Step::Return(at, which) => self.act(at, which, false),
            Step::Commit(parts) => self.commit(parts),
            Step::Succeed(change) => self.succeed(change),
            Step::Speak(at) => self.speak(at),
            Step::Down(at) => self.count_as_down(at),
        }
    }

    /// At the end all is committed, and every client is done with all there is.
    fn finish(&mut self) {
        self.succeed(Change {
            commit: 4,
            dead: None,
            follower: true,
            blocks: 3,
        });
        (0..NODES).for_each(|at| self.speak(at));
        loop {
            self.commit(4);
            if self.nodes.iter().all(|node| node.held.is_empty()) {
                break;
            }
            for at in 0..NODES {
                while !self.nodes[at].held.is_empty() {
                    self.act(at, 0, true);
                }
            }
        }
        let status = self.owner.status();
        assert_eq!((status.ready, status.unacked), (0, 0), "everything came out");
        for node in &self.nodes {
            assert!(node.unanswered.is_empty(), "everything was answered: {node:?}");
        }
        let lost = self.confirmed.difference(&self.accepted).next();
        assert_eq!(lost, None, "it was confirmed and is lost");
    }
}

fn consumer(at: usize) -> ConsumerId {
    ConsumerId(at as u64 + 1)
}

fn block(messages: &[(u64, Id, u8)]) -> Arc<Block> {
    let mut builder = BlockBuilder::new();
    for (_, id, rank) in messages {
        let properties = PropertiesBuilder::new().priority(*rank).encode();
        builder.push(b"", b"q", &properties, &body(*id, 10));
    }
    // Transient: in a replicated queue that makes no difference.
    Arc::new(builder.finish(messages.len().is_multiple_of(2), Timestamp(1)))
}

fn run(settings: QueueSettings, steps: &[Step]) {
    let mut world = World::new(QueueSettings {
        durable: true,
        replicated: true,
        delivery_limit: Some(DeliveryLimit::Unlimited),
        ..settings
    });
    for step in steps {
        world.take(*step);
    }
    world.finish();
}

proptest! {
    #[test]
    fn whoever_decides_what_was_committed_comes_out_once_and_in_order(
        steps in prop::collection::vec(step(), 1..90),
    ) {
        run(QueueSettings::default(), &steps);
        run(QueueSettings { sorting: Sorting::Priority(3), ..QueueSettings::default() }, &steps);
        run(QueueSettings { max_length: Some(3), overflow: Overflow::Reject, ..QueueSettings::default() }, &steps);
    }
}
