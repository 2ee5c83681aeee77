//! A node as the leader of a queue knows it: what was asked in its name, and what its consumers and gets have.

use super::consumer::Consumer;
use super::credit::{Budget, Credit};
use super::holdings::{ranges, take_of};
use super::message::{Frame, Notice, Question, Resolved, ToLeader, ToNode, Way};
use super::session::{ASKS_AFTER, Arrival, End};
use crate::clients::outbox::{self, ChannelId, Event, Outbox};
use crate::node::Node;
use crate::node::ends::{Ends, Outlet, Receipt, Reply};
use model::{Block, ConsumerId, Incarnation, Ranges};
use queue::seq_set::SeqSet;
use queue::{ConsumerSettings, Held, NodeConsumer, Origin, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::task::Waker;

/// Requests for the machine, in order.
pub type Requests = Vec<Request<Ends>>;

/// The one channel of a node's outbox.
pub const CHANNEL: ChannelId = ChannelId(0);

/// Numbers that are unique in a leader's term.
pub enum Numbers {
    /// This was the last one.
    Own(u64),
    /// Clients of this node reach the queue without sessions, and have theirs from there.
    Shared(Arc<Node>),
}

impl Numbers {
    pub fn next(&mut self) -> u64 {
        match self {
            Self::Own(last) => {
                *last += 1;
                *last
            }
            Self::Shared(node) => node.number(),
        }
    }
}

/// How far a session has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// There is none.
    Closed,
    /// One is asked for, and waits for answers to what was claimed in the one before; the node asks from this number on.
    Waiting { sent: u64 },
    /// The queue is asked what it knows of the node, which goes on with this number or a lower one.
    Opening { sent: u64 },
    /// The node says what it has.
    Speaking,
    /// It has said everything; what of that counts is not known yet.
    Heard,
    /// That is known, and the node is told.
    Told,
    /// Everything is known.
    Open,
}

/// What a node knows of what counts of all that it has said in this term. Before it knows that, it is given nothing: what it is
/// given would count no more than what it had if somebody else led next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    Nothing,
    /// It is told by this frame of its session.
    Told(u64),
    /// It was told, and that goes on record.
    Recorded,
    Everything,
}

/// What a question to the machine was for.
#[derive(Debug)]
pub enum Asked {
    /// Whether it is on record that the node knows what counts.
    Known,
    /// How the node stands, which goes on with this number or a higher one.
    Standing { sent: u64 },
    /// What its consumers have: as the node named it.
    Holds { session: u64, held: Vec<Held> },
    /// Whether what was resolved is on record, up to this number.
    Resolved { number: u64 },
    /// The node's own question.
    Node { question: u64, keeps: Keeps },
}

/// What an answer brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    Nothing,
    /// A message that is to be settled.
    Message,
    /// Messages that an operator takes.
    Taken,
    /// A consumer that begins, or ends.
    Begins(ConsumerId),
    Ends(ConsumerId),
}

/// What somebody on the node has.
#[derive(Debug, Default)]
pub struct Given {
    /// What it was sent in this session, or has claimed in it.
    pub now: SeqSet,
    /// What it was sent before.
    pub before: SeqSet,
}

impl Given {
    fn is_some(&self) -> bool {
        !self.now.is_empty() || !self.before.is_empty()
    }
}

/// See the module.
pub struct Peer {
    pub node: Incarnation,
    pub outbox: Arc<Outbox>,
    pub end: Option<End>,
    pub phase: Phase,
    /// Ticks since its last session ended here.
    pub closed: u32,
    /// What was said last in that is not known to have come.
    pub unheard: bool,
    /// In that it was lent credit, which others may have by now.
    pub was_lent: bool,
    /// Ticks since it said something.
    pub quiet: u32,
    /// Ticks since it had something, or waited for something else than what becomes of what it sends.
    pub without: u32,
    /// It is not on record that it has nothing.
    pub may_hold: bool,
    /// Woken when something is in the outbox.
    pub waker: Waker,
    /// It may send nothing more for now.
    pub held: bool,
    /// Events that wait until everything is known.
    pub events: Vec<Event>,
    /// The last session.
    pub session: u64,
    /// What is to be said next.
    pub said: Vec<ToNode>,
    pub consumers: BTreeMap<ConsumerId, Consumer>,
    /// The node's consumers by their names here.
    pub names: BTreeMap<ConsumerId, ConsumerId>,
    pub given: BTreeMap<Option<ConsumerId>, Given>,
    pub taken: SeqSet,
    /// The machine has heard what it has, in this term.
    pub spoken: bool,
    pub knowledge: Knowledge,
    pub questions: BTreeMap<u64, Asked>,
    /// Parts of what it has that have no answer.
    pub parts: usize,
    /// The node's questions that have no answer.
    pub asked: BTreeSet<u64>,
    /// The last of what was resolved here; up to where the node was told in its session that it is on record; and whether
    /// the queue is asked for more of that.
    pub resolved: u64,
    pub recorded: u64,
    pub asks_resolved: bool,
    /// The number of the next message that it sends, or a higher one; and how much it may send.
    pub next: u64,
    pub credit: Credit,
}

impl Peer {
    /// A node that has not spoken in this term.
    pub fn new(node: Incarnation, budget: Arc<Budget>, waker: Waker) -> Self {
        let outbox = Arc::new(Outbox::of_node());
        outbox.take(&mut Vec::new(), &waker);
        Self {
            node,
            outbox,
            end: None,
            phase: Phase::Closed,
            closed: 0,
            unheard: false,
            was_lent: false,
            quiet: 0,
            without: 0,
            may_hold: true,
            waker,
            held: false,
            events: Vec::new(),
            session: 0,
            said: Vec::new(),
            consumers: BTreeMap::new(),
            names: BTreeMap::new(),
            given: BTreeMap::new(),
            taken: SeqSet::default(),
            spoken: false,
            knowledge: Knowledge::Nothing,
            questions: BTreeMap::new(),
            parts: 0,
            asked: BTreeSet::new(),
            resolved: 0,
            recorded: 0,
            asks_resolved: false,
            next: 1,
            credit: Credit::new(node, budget),
        }
    }

    /// Takes a frame that opens a session.
    pub fn open(
        &mut self,
        frame: &Frame<ToLeader>,
        sent: u64,
        term: u64,
        requests: &mut Requests,
        numbers: &mut Numbers,
    ) {
        if frame.session <= self.session {
            return;
        }
        self.session = frame.session;
        self.quiet = 0;
        (self.unheard, self.was_lent) = (false, false);
        if matches!(self.knowledge, Knowledge::Told(_)) {
            self.knowledge = Knowledge::Nothing;
        }
        let mut end = End::new(frame.session, term);
        end.receive(frame);
        self.end = Some(end);
        self.said.clear();
        for given in self.given.values_mut() {
            let now = mem::take(&mut given.now);
            now.spans()
                .for_each(|(first, last)| given.before.add(first, last));
        }
        for consumer in self.consumers.values_mut() {
            consumer.session_ends(requests);
        }
        self.put_back(requests);
        self.phase = Phase::Waiting { sent };
        self.go_on(requests, numbers);
    }

    /// Asks how the node stands, as soon as nothing is open that it claimed before.
    pub fn go_on(&mut self, requests: &mut Requests, numbers: &mut Numbers) {
        if let Phase::Waiting { sent } = self.phase
            && self.parts == 0
        {
            self.phase = Phase::Opening { sent };
            self.recall(sent, Asked::Standing { sent }, requests, numbers);
        }
    }

    /// The queue knows of the node what came below this number. A queue of one node forgets, when that starts again, what it had
    /// not put on record: then the node goes on with a higher one.
    pub fn opened(&mut self, below: u64, refused: Ranges, sent: u64) {
        self.phase = Phase::Speaking;
        self.next = below.max(sent);
        self.recorded = 0;
        self.said.push(ToNode::Opened {
            below,
            refused,
            resolved: self.resolved,
            credit: self.may_send(),
        });
    }

    /// How much it may have under way, in bytes. Nothing still leaves it one block at a time.
    fn may_send(&self) -> u64 {
        match self.held {
            true => 0,
            false => self.credit.bytes(),
        }
    }

    /// Whether it is to send nothing more for now.
    pub fn hold(&mut self, held: bool) {
        if mem::replace(&mut self.held, held) != held && self.phase >= Phase::Speaking {
            self.say_credit();
        }
    }

    /// True if it has nothing and waits for nothing.
    pub fn is_idle(&self) -> bool {
        !self.has_something() && self.events.is_empty() && self.said.is_empty() && !self.unheard
    }

    /// True if it was given something, or may be without asking again. What it sends meanwhile has nothing to do with that.
    fn has_something(&self) -> bool {
        self.given.values().any(Given::is_some)
            || !self.consumers.is_empty()
            || !self.taken.is_empty()
            || !self.questions.is_empty()
    }

    /// True, once, if it has had nothing for so many ticks though it goes on sending, and everything is known that it had before.
    pub fn has_become_a_sender(&mut self, ticks: u32) -> bool {
        let holds_nothing = self.phase == Phase::Open && self.without >= ticks;
        holds_nothing && mem::take(&mut self.may_hold)
    }

    /// A tick of the clock. False if the session is over by it.
    pub fn tick(&mut self) -> bool {
        self.closed = self.closed.wrapping_add(1);
        self.quiet = self.quiet.saturating_add(1);
        self.without = match self.has_something() {
            true => 0,
            false => self.without.saturating_add(1),
        };
        let lives = self.end.as_mut().is_none_or(End::tick);
        if self.credit.tick() && self.phase >= Phase::Speaking {
            self.say_credit();
        }
        lives
    }

    fn say_credit(&mut self) {
        let bytes = self.may_send();
        self.said.push(ToNode::Credit { bytes });
    }

    /// Nothing more comes in the session that there is.
    pub fn close(&mut self) {
        let end = self.end.take();
        self.unheard |= end.is_some_and(|end| !end.has(end.last())) || !self.said.is_empty();
        self.said.clear();
        self.was_lent |= self.credit.give_back();
        self.phase = Phase::Closed;
        self.closed = 0;
    }

    /// Whether the node is to hear that its session is over. If it has nothing to say it may believe in it for ever: what it was
    /// sent last would never come back, and it would go by credit that is lent no more. Once a second, since a frame may be
    /// lost.
    pub fn is_missed(&self) -> bool {
        let waits = !self.asked.is_empty() || !self.events.is_empty();
        let has_something = !self.consumers.is_empty() || self.given.values().any(Given::is_some);
        let is_concerned = waits || has_something || self.unheard || self.was_lent;
        self.phase == Phase::Closed && self.closed.is_multiple_of(ASKS_AFTER) && is_concerned
    }

    /// Takes a frame of the session. False if it ends the session.
    pub fn receive(
        &mut self,
        frame: Frame<ToLeader>,
        requests: &mut Requests,
        numbers: &mut Numbers,
    ) -> bool {
        let Some(end) = self.end.as_mut().filter(|end| end.session == frame.session) else {
            return false;
        };
        if frame.term != end.term {
            return frame.term == 0;
        }
        self.quiet = 0;
        let arrival = end.receive(&frame);
        if let Knowledge::Told(by) = self.knowledge
            && end.has(by)
        {
            self.knowledge = Knowledge::Recorded;
            requests.push(Request::Knows { node: self.node });
            self.recall(u64::MAX, Asked::Known, requests, numbers);
        }
        match arrival {
            Arrival::Nothing => true,
            Arrival::Gap => false,
            Arrival::Next => {
                let mut messages = frame.messages.into_iter();
                let sound = messages.all(|message| self.take(message, requests, numbers).is_some());
                self.ask_resolved(requests, numbers);
                sound
            }
        }
    }

    /// Takes one message; `None` if it makes no sense.
    fn take(&mut self, message: ToLeader, requests: &mut Requests, numbers: &mut Numbers) -> Option<()> {
        match message {
            _ if self.phase < Phase::Speaking => return None,
            ToLeader::Publish { first, block } => self.publish(first, block, requests)?,
            ToLeader::Consume {
                question,
                consumer,
                settings,
                outstanding,
            } => self.consume(question, consumer, settings, outstanding, requests, numbers),
            ToLeader::Holds { held, more } if self.phase == Phase::Speaking => {
                self.hear(held, more, requests, numbers);
            }
            ToLeader::Resolve { number, resolved } => self.resolve(number, resolved, requests),
            ToLeader::Ask { question, about } => self.ask(question, about, requests, numbers),
            ToLeader::Tell(notice) => self.told(notice, requests),
            ToLeader::Wants => {
                // Who is held hears of its credit when it is held no longer.
                if !self.held && self.credit.more() {
                    self.say_credit();
                }
            }
            ToLeader::Holds { .. } | ToLeader::Open { .. } | ToLeader::Nothing { .. } => return None,
        }
        Some(())
    }

    fn publish(&mut self, first: u64, block: Arc<Block>, requests: &mut Requests) -> Option<()> {
        let end = first.checked_add(block.len() as u64)?;
        if block.is_empty() || first == 0 || first > self.next {
            return None;
        }
        self.next = self.next.max(end);
        self.credit.used();
        let receipt = Receipt {
            outbox: self.outbox.clone(),
            channel: CHANNEL,
            numbers: Ranges::span(first, end - 1),
            queue: None,
            timed: None,
        };
        let origin = Origin {
            sender: self.node,
            first,
        };
        requests.push(Request::EnqueueFrom {
            origin: Box::new(origin),
            block,
            receipt: Some(receipt),
        });
        Some(())
    }

    fn consume(
        &mut self,
        question: u64,
        consumer: ConsumerId,
        settings: ConsumerSettings,
        outstanding: u64,
        requests: &mut Requests,
        numbers: &mut Numbers,
    ) {
        if let Some(it) = self.consumers.get_mut(&consumer) {
            it.named_again(settings, outstanding, requests);
            if !self.asked.contains(&question) {
                let answer = queue::Answer::Consuming;
                self.said.push(ToNode::Answer { question, answer });
            }
            return;
        }
        if !self.asked.insert(question) {
            return;
        }
        self.may_hold = true;
        let id = ConsumerId(numbers.next());
        let keeps = Keeps::Begins(consumer);
        let reply = self.reply(Asked::Node { question, keeps }, false, numbers);
        let outlet = Outlet {
            outbox: self.outbox.clone(),
            channel: CHANNEL,
            no_ack: settings.no_ack,
        };
        let it = Consumer::new(id, settings, outstanding);
        let paused = it.waits();
        let of = NodeConsumer {
            node: self.node,
            consumer,
        };
        requests.push(Request::ConsumeFrom {
            of: Box::new(of),
            consumer: id,
            outlet,
            settings: ConsumerSettings { paused, ..settings },
            reply,
        });
        self.names.insert(id, consumer);
        self.consumers.insert(consumer, it);
    }

    /// The node says what its consumers have. What it was sent before and still has stays its own, and is not the
    /// machine's business; nor is the rest once the machine has heard everything that the node had under another leader.
    pub fn hear(&mut self, held: Vec<Held>, more: bool, requests: &mut Requests, numbers: &mut Numbers) {
        self.may_hold |= !held.is_empty();
        let mut others = Vec::new();
        let mut discard = Ranges::new();
        for mut part in held {
            let given = self.given.entry(part.consumer).or_default();
            let kept = take_of(&mut given.before, &part.seqs);
            kept.spans().for_each(|(first, last)| given.now.add(first, last));
            part.seqs = part.seqs.without(&kept);
            discard.extend(&part.seqs);
            others.push(part);
        }
        if self.spoken {
            let answer = queue::Answer::Discard(discard);
            self.said.push(ToNode::Answer { question: 0, answer });
        } else {
            let named = |part: &Held| Held {
                consumer: part
                    .consumer
                    .and_then(|id| self.consumers.get(&id))
                    .map(|it| it.id),
                ..part.clone()
            };
            let held = others.iter().map(named).collect();
            let asked = Asked::Holds {
                session: self.session,
                held: others,
            };
            let reply = self.reply(asked, false, numbers);
            let node = self.node;
            self.parts += 1;
            requests.push(Request::Holds {
                node,
                held,
                more,
                reply,
            });
        }
        if !more {
            self.spoken = true;
            self.phase = Phase::Heard;
            self.counted_all();
            self.reconcile(requests);
        }
    }

    /// If it is known what counts of everything that was said, the node is told, and is to say that it knows.
    pub fn counted_all(&mut self) {
        if self.phase == Phase::Heard && self.parts == 0 {
            self.phase = match self.knowledge {
                Knowledge::Everything => Phase::Open,
                _ => Phase::Told,
            };
            if let Some(end) = self.end.as_mut().filter(|_| self.phase == Phase::Told) {
                end.ask();
            }
        }
    }

    /// Everything that was to be said is sent.
    pub fn has_said(&mut self) {
        if self.phase == Phase::Told
            && self.knowledge == Knowledge::Nothing
            && let Some(end) = &self.end
        {
            self.knowledge = Knowledge::Told(end.last());
        }
    }

    /// What the node does not name was lost on its way. It must not come behind what the queue had for the same consumer since:
    /// that goes back with it, and nothing came meanwhile, since the consumer was halted before the node was answered.
    fn reconcile(&mut self, requests: &mut Requests) {
        for (consumer, given) in &mut self.given {
            let lost = mem::take(&mut given.before);
            let id = consumer.and_then(|id| self.consumers.get(&id)).map(|it| it.id);
            if let Some(it) = consumer.and_then(|id| self.consumers.get_mut(&id))
                && !lost.is_empty()
            {
                take_back(&mut self.events, it, requests);
            }
            give_back(lost, id, false, requests);
        }
        let asked = |id: &ConsumerId| {
            self.questions
                .values()
                .any(|asked| matches!(asked, Asked::Node { keeps: Keeps::Ends(it), .. } if it == id))
        };
        let gone = self.consumers.iter().filter(|(id, it)| !it.named && !asked(id));
        let gone: Vec<ConsumerId> = gone.map(|(id, _)| *id).collect();
        for id in gone {
            self.cancel(id, requests);
        }
        self.given.retain(|_, given| !given.now.is_empty());
        let consumers = self.consumers.values_mut();
        consumers.for_each(|it| it.goes_on(requests));
    }

    /// It is not heard of for long, and keeps what it has: its consumers get nothing more, and what the queue has for them
    /// meanwhile goes back.
    pub fn is_away(&mut self, requests: &mut Requests) {
        for it in self.consumers.values_mut() {
            it.halt(requests);
            take_back(&mut self.events, it, requests);
        }
    }

    fn cancel(&mut self, consumer: ConsumerId, requests: &mut Requests) {
        if let Some(it) = self.consumers.remove(&consumer) {
            self.names.remove(&it.id);
            let (consumer, reply) = (it.id, None);
            requests.push(Request::Cancel { consumer, reply });
        }
    }

    /// Only what it has counts: the rest may be somebody else's by now.
    fn resolve(&mut self, number: u64, resolved: Resolved, requests: &mut Requests) {
        if number <= self.resolved {
            return;
        }
        self.resolved = number;
        let Some(given) = self.given.get_mut(&resolved.consumer) else {
            return;
        };
        let seqs = take_of(&mut given.now, &resolved.seqs);
        if given.now.is_empty() && given.before.is_empty() {
            self.given.remove(&resolved.consumer);
        }
        if seqs.is_empty() {
            return;
        }
        let consumer = resolved.consumer.and_then(|id| self.consumers.get(&id));
        let consumer = consumer.map(|it| it.id);
        requests.push(match resolved.way {
            Way::Settled(disposal) => Request::Settle {
                consumer,
                seqs,
                disposal,
            },
            Way::Returned { failed } => Request::Return {
                consumer,
                seqs,
                failed,
            },
            Way::Requeued => Request::Requeue { consumer, seqs },
        });
    }

    /// Asks when what was resolved is on record, if that is not asked already.
    pub fn ask_resolved(&mut self, requests: &mut Requests, numbers: &mut Numbers) {
        if !self.asks_resolved && self.resolved > self.recorded {
            self.asks_resolved = true;
            let number = self.resolved;
            self.recall(u64::MAX, Asked::Resolved { number }, requests, numbers);
        }
    }

    fn ask(&mut self, question: u64, about: Question, requests: &mut Requests, numbers: &mut Numbers) {
        if !self.asked.insert(question) {
            return;
        }
        let keeps = match &about {
            Question::Get { no_ack: false } => Keeps::Message,
            Question::TakeOut { .. } => Keeps::Taken,
            Question::Cancel { consumer } => Keeps::Ends(*consumer),
            _ => Keeps::Nothing,
        };
        self.may_hold |= matches!(about, Question::Get { .. });
        let no_ack = about == Question::Get { no_ack: true };
        let reply = self.reply(Asked::Node { question, keeps }, no_ack, numbers);
        // A consumer that is not known ends at once: no number here is its own.
        let id = |id: &ConsumerId| self.consumers.get(id).map_or(ConsumerId(0), |it| it.id);
        let request = match about {
            Question::Get { no_ack } => {
                let node = Some(self.node);
                requests.push(Request::MayHold { node });
                Request::Get { no_ack, reply }
            }
            Question::Cancel { consumer } => Request::Cancel {
                consumer: id(&consumer),
                reply: Some(reply),
            },
            Question::Pause { consumer } => {
                let id = id(&consumer);
                if let Some(it) = self.consumers.get_mut(&consumer) {
                    it.is_paused();
                }
                Request::Pause {
                    consumer: id,
                    reply: Some(reply),
                }
            }
            Question::TakeOut { seqs } => Request::TakeOut { seqs, reply },
            Question::Purge => Request::Purge { reply },
            Question::MayRetire { if_unused, if_empty } => Request::MayRetire {
                if_unused,
                if_empty,
                reply,
            },
            Question::Use => Request::Use { reply: Some(reply) },
        };
        requests.push(request);
    }

    fn told(&mut self, notice: Notice, requests: &mut Requests) {
        match notice {
            Notice::PutBack { seqs } => {
                let seqs = take_of(&mut self.taken, &seqs);
                requests.push(Request::PutBack { seqs });
            }
            Notice::Remove { seqs } => {
                let seqs = take_of(&mut self.taken, &seqs);
                requests.push(Request::Remove { seqs });
            }
            Notice::Use => requests.push(Request::Use { reply: None }),
            Notice::Flow { consumer, .. }
            | Notice::Limit { consumer, .. }
            | Notice::Pause { consumer }
            | Notice::Resume { consumer } => {
                if let Some(it) = self.consumers.get_mut(&consumer) {
                    it.told(notice, requests);
                }
            }
        }
    }

    /// What the operator of the session before had taken stands again where it stood.
    fn put_back(&mut self, requests: &mut Requests) {
        if !self.taken.is_empty() {
            let seqs = ranges(&mem::take(&mut self.taken));
            requests.push(Request::PutBack { seqs });
        }
    }

    /// The node is gone, or counts as that: what it was sent goes back. What comes for it later has to go back, too, until
    /// the question is answered that is returned.
    pub fn end(&mut self, requests: &mut Requests, numbers: &mut Numbers) -> u64 {
        self.put_back(requests);
        for (consumer, given) in mem::take(&mut self.given) {
            let id = consumer.and_then(|id| self.consumers.get(&id)).map(|it| it.id);
            give_back(given.before, id, true, requests);
            give_back(given.now, id, true, requests);
        }
        let consumers: Vec<ConsumerId> = self.consumers.keys().copied().collect();
        consumers.into_iter().for_each(|id| self.cancel(id, requests));
        self.close();
        self.recall(u64::MAX, Asked::Resolved { number: 0 }, requests, numbers)
    }

    /// Asks the machine how the node stands: the answer comes when everything before it is on record. Which question it is.
    fn recall(&mut self, from: u64, asked: Asked, requests: &mut Requests, numbers: &mut Numbers) -> u64 {
        let reply = self.reply(asked, false, numbers);
        let (sender, outbox::Question(question)) = (self.node, reply.question);
        requests.push(Request::Recall { sender, from, reply });
        question
    }

    fn reply(&mut self, asked: Asked, no_ack: bool, numbers: &mut Numbers) -> Reply {
        let question = numbers.next();
        self.questions.insert(question, asked);
        Reply {
            outbox: self.outbox.clone(),
            channel: CHANNEL,
            question: outbox::Question(question),
            no_ack,
        }
    }
}

/// What the queue had for a consumer, and it was not sent, stands again where it stood.
fn take_back(events: &mut Vec<Event>, of: &mut Consumer, requests: &mut Requests) {
    if of.no_ack() {
        return;
    }
    events.retain(|event| match event {
        Event::Deliver {
            consumer, delivery, ..
        } if *consumer == of.id => {
            requests.push(Request::Return {
                consumer: Some(of.id),
                seqs: delivery.seqs.clone(),
                failed: false,
            });
            of.not_sent(delivery.bytes(), requests);
            false
        }
        _ => true,
    });
}

/// These stand again where they stood.
fn give_back(seqs: SeqSet, consumer: Option<ConsumerId>, failed: bool, requests: &mut Requests) {
    if !seqs.is_empty() {
        requests.push(Request::Return {
            consumer,
            seqs: ranges(&seqs),
            failed,
        });
    }
}
