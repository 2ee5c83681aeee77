//! A replicated queue through any node. Clients of a node speak to its [`Handle`] of the queue, whoever leads; the handle
//! and the leader's [`Sessions`] speak to each other. Neither has a socket, a clock, a thread or a lock: requests, frames
//! and ticks come in, effects and frames go out.
//!
//! What is said in a session arrives in order and whole, or the session ends ([`session`]). Nothing that was said in one
//! counts as heard: a new session, with the same leader or another one, begins with what either side still needs from
//! the other.
//!
//! 1. The node asks ([`ToLeader::Open`]). The leader answers once it has proven that it leads: what the node sent is known up to
//!    a mark, and what it was done with up to another ([`ToNode::Opened`]).
//! 2. The node sends again what is behind the mark, names its consumers, and says what they and its gets have
//!    ([`ToLeader::Holds`]).
//! 3. The leader says what of that does not count. What it has delivered in an earlier session and the node does not name
//!    was lost on the way, and comes back.
//! 4. The node says again what its consumers were done with.

mod answers;
mod codec;
mod consumer;
mod credit;
mod events;
mod holdings;
mod message;
mod peer;
mod publishes;
mod requests;
mod session;
mod sessions;
#[cfg(test)]
mod tests;

pub use codec::{Parts, Reading, block};
pub use credit::Budget;
pub use events::deliver;
pub use message::{Frame, Notice, Question, Resolved, ToLeader, ToNode, Way};
pub use peer::Requests;
pub use sessions::{Sessions, keeps_for};

use cluster::NodeId;
use credit::FIRST_CREDIT;
use holdings::Holdings;
use model::{ConsumerId, Incarnation, QueueSettings};
use publishes::Publishes;
use queue::{Answer, ConsumerSettings, Effect, Ends, OwnConsumer};
use session::End;
use std::collections::{BTreeMap, VecDeque};

/// An unanswered question to open a session is asked again after so many ticks.
const OPENS_AGAIN_AFTER: u32 = 10;

/// A node without a leader for so many ticks, of 100 ms each, tells its publishers and those who wait for answers; and its
/// consumers, unless the queue gives them more time.
const GIVES_UP_AFTER: u32 = 50;

/// No leader has ever taken so many messages.
const MOST_MESSAGES: u64 = 1 << 62;

/// A queue as this node's clients see it, whichever node leads it.
pub struct Handle<E: Ends> {
    me: Incarnation,
    leader: Option<NodeId>,
    link: Option<Link>,
    /// Without a session, one is asked for in so many ticks; if a node that was asked does not lead, the next question is
    /// asked after so many.
    opens_in: u32,
    pause: u32,
    /// Sessions so far.
    sessions: u64,
    /// The term of the last leader that opened a session.
    term: u64,
    /// For so many ticks there was no session.
    away: u32,
    /// Publishers were told that nobody can be reached.
    given_up: bool,
    /// So were consumers, and what they had is nobody's here any more.
    let_go: bool,
    publishes: Publishes<E>,
    /// Messages with numbers were given up, and no leader has heard so since: one that knows a block of theirs in parts would
    /// take for them what has their numbers next.
    unheard: bool,
    credit: u64,
    /// More was asked for than what may be sent and not answered.
    wants: bool,
    /// The queue hears no more senders.
    deaf: bool,
    consumers: BTreeMap<ConsumerId, Consumer<E>>,
    holdings: Holdings,
    /// Something of what clients had counts no more.
    discarded: bool,
    questions: BTreeMap<u64, Waiting<E>>,
    next_question: u64,
    /// Clients' questions that wait until so many blocks have been sent, in order.
    unasked: VecDeque<(u64, u64)>,
    /// What is to be said next.
    said: Vec<ToLeader>,
    /// Frames that are ready to leave.
    frames: Vec<(NodeId, Frame<ToLeader>)>,
}

/// A session that there is, or that was asked for.
struct Link {
    with: NodeId,
    end: End,
    /// Since so many ticks it is asked for.
    opening: Option<u32>,
}

/// A consumer of this node.
struct Consumer<E: Ends> {
    outlet: E::Outlet,
    settings: ConsumerSettings,
    /// What was delivered and has not left for its client, in bytes.
    outstanding: u64,
    /// It is about to end, and whoever asked does not wait for the answer: what still comes goes back.
    leaves: bool,
}

/// Who waits for the answer to a question.
enum Waiting<E: Ends> {
    Client {
        reply: E::Reply,
        about: Question,
        /// So many blocks were published before it was asked.
        behind: u64,
    },
    Consume {
        consumer: ConsumerId,
        reply: Option<E::Reply>,
    },
    Cancel {
        consumer: ConsumerId,
        reply: Option<E::Reply>,
    },
}

/// What a handle orders.
pub struct Orders<E: Ends> {
    /// What clients are told, as if the queue were here.
    pub effects: Vec<Effect<E>>,
    /// Publishes that nobody takes, as the leader cannot be reached, though some may have been taken.
    pub unreached: Vec<E::Receipt>,
    /// Questions that nobody answers, as the leader cannot be reached.
    pub declined: Vec<E::Reply>,
}

impl<E: Ends> Default for Orders<E> {
    fn default() -> Self {
        Self {
            effects: Vec::new(),
            unreached: Vec::new(),
            declined: Vec::new(),
        }
    }
}

impl<E: Ends> Handle<E> {
    /// The handle of a queue with these settings, on a node that is this one.
    pub fn new(me: Incarnation, settings: &QueueSettings) -> Self {
        Self {
            me,
            leader: None,
            link: None,
            opens_in: 0,
            pause: 1,
            sessions: 0,
            term: 0,
            away: 0,
            given_up: false,
            let_go: false,
            publishes: Publishes::new(),
            unheard: false,
            credit: FIRST_CREDIT,
            wants: false,
            deaf: false,
            consumers: BTreeMap::new(),
            holdings: Holdings::new(settings.counts_returns()),
            discarded: false,
            questions: BTreeMap::new(),
            next_question: 1,
            unasked: VecDeque::new(),
            said: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// The same, after others of this node and queue that were idle and were let go: it counts on behind all that they may have
    /// counted.
    #[must_use]
    pub fn after(mut self, counted: u64) -> Self {
        self.sessions = counted;
        self.next_question = counted + 1;
        self.holdings.count_from(counted + 1);
        self
    }

    /// A consumer that the queue served itself before there was this handle: it is as if it had begun here. What was delivered
    /// to it is not known, so it comes back.
    pub fn adopt(&mut self, own: OwnConsumer<E>) {
        let OwnConsumer {
            consumer,
            outlet,
            settings,
            outstanding,
        } = own;
        let adopted = Consumer {
            outlet,
            settings,
            outstanding,
            leaves: false,
        };
        self.consumers.insert(consumer, adopted);
    }

    /// The queue is one of several nodes from now on, with these settings.
    pub fn is_of_several(&mut self, settings: &QueueSettings) {
        self.holdings.counts_returns(settings.counts_returns());
    }

    /// The term of the last leader that opened a session; 0 if none has.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// True if nobody needs it: no client waits for anything or has anything, and no leader is to hear anything.
    pub fn is_idle(&self) -> bool {
        self.publishes.is_empty()
            && !self.unheard
            && self.consumers.is_empty()
            && self.questions.is_empty()
            && self.holdings.is_empty()
    }

    /// True if publishers are to wait: so much of what they sent has no answer that the queue takes no more of it.
    pub fn is_full(&self) -> bool {
        !self.given_up && self.publishes.bytes() >= self.credit
    }

    /// True if clients may have something that counts no more, and don't know it.
    pub fn has_discarded(&self) -> bool {
        self.discarded
    }

    /// A session has begun, and numbers of before mean nothing to clients any more: whatever of what they have counts for whoever
    /// leads goes back.
    pub fn held_is_void(&mut self) {
        self.discarded |= !self.holdings.is_empty();
        self.holdings.are_void();
    }

    /// What may be published and not answered, in bytes.
    pub fn credit(&self) -> u64 {
        self.credit
    }

    /// True if there is a session.
    pub fn is_open(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.opening.is_none())
    }

    /// True if a session is asked for.
    pub fn is_opening(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.opening.is_some())
    }

    /// True if the leader knows what everybody here has.
    #[cfg(test)]
    fn is_settled(&self) -> bool {
        self.is_open() && self.holdings.all_counts()
    }

    /// True if there is a consumer without a limit.
    #[cfg(test)]
    fn wants_all(&self) -> bool {
        self.consumers.values().any(|it| it.settings.prefetch == 0)
    }

    /// True if there is a consumer with a limit.
    #[cfg(test)]
    fn limits_some(&self) -> bool {
        self.consumers.values().any(|it| it.settings.prefetch > 0)
    }

    /// The node that is known to lead.
    pub fn leader(&self) -> Option<NodeId> {
        self.leader
    }

    /// This node is known to lead, or none is.
    pub fn leads(&mut self, leader: Option<NodeId>) {
        if self.leader == leader {
            return;
        }
        self.leader = leader;
        if let Some(leader) = leader
            && self.link.as_ref().is_none_or(|link| link.with != leader)
        {
            self.open(leader);
        }
    }

    /// The leader can be spoken to again: clients who ask from now on wait for a session as long as if there had always been one.
    pub fn waits_again(&mut self) {
        (self.away, self.given_up, self.let_go) = (0, false, false);
    }

    /// The link to this node is broken, or the node is not heard of. What was said to it lately may not have come.
    pub fn lost(&mut self, node: NodeId) {
        if self.link.as_ref().is_some_and(|link| link.with == node) {
            self.close();
        }
    }

    /// A tick of the clock, of which there is one each 100 ms. Whoever leads lets consumers of a node that it does not hear of
    /// keep what they hold for as many ticks as `keeps_for` says.
    pub fn tick(&mut self, keeps_for: impl FnOnce() -> u32, orders: &mut Orders<E>) {
        let lives = match &mut self.link {
            Some(Link {
                opening: Some(since), ..
            }) => {
                *since += 1;
                *since < OPENS_AGAIN_AFTER
            }
            Some(link) => link.end.tick(),
            None => {
                self.opens_in = self.opens_in.saturating_sub(1);
                true
            }
        };
        if !lives {
            self.close();
        }
        if self.is_open() {
            return;
        }
        self.away = self.away.saturating_add(1);
        if self.away >= GIVES_UP_AFTER {
            if !self.given_up {
                self.give_up(orders);
            }
            if !self.let_go && self.away >= keeps_for() {
                self.let_go(orders);
            }
        }
        if let (None, 0, Some(leader)) = (&self.link, self.opens_in, self.leader) {
            self.open(leader);
        }
    }

    /// What is to be sent, and to whom.
    pub fn frames(&mut self, frames: &mut Vec<(NodeId, Frame<ToLeader>)>) {
        frames.append(&mut self.frames);
        if !self.is_open() {
            return;
        }
        if let Some(Link { with, end, .. }) = &mut self.link {
            let mut own = Vec::new();
            end.send(std::mem::take(&mut self.said), &mut own);
            frames.extend(own.into_iter().map(|frame| (*with, frame)));
        }
    }

    fn open(&mut self, with: NodeId) {
        self.close();
        self.sessions += 1;
        let mut end = End::new(self.sessions, 0);
        let (node, sent) = (self.me, self.publishes.lowest());
        let mut own = Vec::new();
        end.send(vec![ToLeader::Open { node, sent }], &mut own);
        self.frames.extend(own.into_iter().map(|frame| (with, frame)));
        let opening = Some(0);
        self.link = Some(Link { with, end, opening });
    }

    /// What was said in the session may have come or not.
    fn close(&mut self) {
        self.said.clear();
        self.unasked.clear();
        self.holdings.pause();
        // Whoever has held it answers for that no longer, and who has lent it more has that back.
        self.credit = FIRST_CREDIT;
        self.link = None;
        self.opens_in = 1;
    }

    /// Nobody leads whom this node could reach. Its publishers are refused, and its questions declined.
    fn give_up(&mut self, orders: &mut Orders<E>) {
        self.given_up = true;
        // A session that is being asked for was asked for while what is given up here was to be sent again: whoever leads would
        // keep its numbers for it, and take what gets them next for it.
        if !self.is_open() {
            self.close();
        }
        self.unheard |= self.publishes.have_numbers();
        self.publishes.give_up(&mut orders.unreached);
        for (_, waiting) in std::mem::take(&mut self.questions) {
            match waiting {
                Waiting::Client { reply, .. } => orders.declined.push(reply),
                Waiting::Consume { consumer, reply } => {
                    if let Some(reply) = reply {
                        self.consumers.remove(&consumer);
                        orders.declined.push(reply);
                    }
                }
                Waiting::Cancel { consumer, reply } => {
                    self.consumers.remove(&consumer);
                    let cancelled = |reply| Effect::Reply(reply, Answer::Cancelled);
                    orders.effects.extend(reply.map(cancelled));
                }
            }
        }
    }

    /// Nor will anybody let its consumers keep what they have: they are cancelled, and that is delivered to others.
    fn let_go(&mut self, orders: &mut Orders<E>) {
        self.let_go = true;
        self.discarded |= !self.holdings.is_empty();
        self.holdings.return_all();
        self.cancel_all(orders);
    }

    /// The queue is deleted. What is published to it went nowhere, as in RabbitMQ.
    pub fn retire(&mut self, orders: &mut Orders<E>) {
        self.publishes.retire(&mut orders.effects);
        self.give_up(orders);
        self.let_go(orders);
        self.unheard = false;
        self.holdings.forget();
    }

    fn cancel_all(&mut self, orders: &mut Orders<E>) {
        let consumers = std::mem::take(&mut self.consumers);
        let cancelled = consumers.into_iter().filter(|(_, it)| !it.leaves);
        orders
            .effects
            .extend(cancelled.map(|(consumer, it)| Effect::CancelConsumer {
                outlet: it.outlet,
                consumer,
            }));
    }

    fn question(&mut self, waiting: Waiting<E>) -> u64 {
        let question = self.next_question;
        self.next_question += 1;
        self.questions.insert(question, waiting);
        question
    }
}
