//! Dead letters: one thread publishes them to dead-letter exchanges, in the order in which they died, and tells their queues
//! when they have arrived safely.
//!
//! A queue of another node that cannot be reached takes nothing: a dead letter that would go there, perhaps among others, stays
//! where it died, and is published again later: as soon as another node can be reached, or after a pause that grows. Nothing of
//! it is kept here meanwhile.
//!
//! What exchanges keep goes on from here as well: messages whose delay is over, and those that other nodes have sent to a
//! deduplication exchange, for the node that remembers what has passed it. These wait here, in their order, as long as this node
//! must not believe its copy of what exists: they were published after whatever their publisher knows to be bound.
//!
//! The thread keeps a queue's turn short and cycles of queues flat: a dead letter that makes another one in its target comes
//! back here as a job. How much is on its way is bounded by what the source queues may hold in memory.

mod sent;

use crate::broker::Broker;
use crate::clients::outbox::{ChannelId, Event, Outbox};
use crate::messages::carbon_copies;
use crate::messages::x_death::{Dead, Death};
use crate::node::ends::Receipt;
use crate::node::pager::StoreFiles;
use crate::node::paging::{Found, Nearby, Paged, Unread};
use crate::queues::{DeadLetters, Handle, Queue, Request};
use crate::topology::caches::{Caches, Passed};
use crate::worker::{Mailbox, Worker};
use catalog::{Answer, Envelope, Exchange, NodeId, QueueKind, View};
use model::properties::{Properties, PropertiesBuf};
use model::table::Value;
use model::{
    BlockBuilder, COPIES_SPENT, DEAD_LETTERED, HOP, HOPS, Limits, Message, Mutant, QueueId, Ranges, RouteBuf,
    Seq, Timestamp, X_DELAY,
};
use queue::DropReason;
use queue::seen::Bearer;
use queue::store::{Bytes, Part, Piece};
use sent::Sent;
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

/// A block is handed to its queues when it is this large, in bytes.
const BLOCK_BYTES: usize = 256 * 1024;

/// Makes numbers that follow each other differ in all bits, for exchanges that choose by chance.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Of so many letters it is remembered which queues have them while others don't; beyond that they may come twice.
const REMEMBERED: usize = 100_000;

/// Among no more queues than this it is not looked which of them are gone.
const WAITING_LEAST: usize = 1000;

/// So many cycles are remembered as logged.
const LOGGED_CYCLES: usize = 1000;

enum Job {
    Publish(DeadLetters),
    /// Confirms have come.
    Look,
    /// Another node can be reached, perhaps: what has not arrived is tried again.
    TryAgain,
    /// This node may believe its copy of what exists again, or has waited for that long enough to ask once more.
    Route,
}

/// The thread, and the way to it.
#[derive(Default)]
pub struct DeadLetterPublisher {
    worker: Worker<Job>,
}

impl DeadLetterPublisher {
    /// Starts the thread. Dead letters that were sent before are published now.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(&self, broker: &Arc<Broker>, files: StoreFiles) -> std::io::Result<()> {
        let waker = Waker::from(Arc::new(Waking(self.worker.mailbox())));
        let mut publishing = Publishing {
            broker: Arc::downgrade(broker),
            files,
            outbox: Arc::new(Outbox::new()),
            waker,
            open: HashMap::new(),
            sent: Sent::new(),
            reached: HashMap::new(),
            unrouted: VecDeque::new(),
            waiting: BTreeMap::new(),
            waiting_most: WAITING_LEAST,
            tried_before: 0,
            mailbox: self.worker.mailbox(),
            next: 1,
            logged: HashSet::new(),
        };
        // The first look leaves the waker behind.
        publishing.look();
        let world = &broker.node().world;
        self.worker
            .start(world.as_ref(), "dead-letters", move |job| match job {
                Job::Publish(letters) => publishing.take(letters),
                Job::Look => publishing.look(),
                Job::TryAgain => publishing.try_again(),
                Job::Route => publishing.route(),
            })
    }

    /// Has these published. Once the node is closing nobody does: what is durable comes back at the next start.
    pub fn send(&self, letters: DeadLetters) {
        self.worker.send(Job::Publish(letters));
    }

    /// Other nodes can be reached by now, perhaps: what could not arrive is tried again at once.
    pub fn try_again(&self) {
        self.worker.send(Job::TryAgain);
    }

    /// Ends the thread.
    pub fn stop(&self) {
        self.worker.stop();
    }
}

/// Wakes the thread when confirms are in its outbox.
struct Waking(Mailbox<Job>);

impl Wake for Waking {
    fn wake(self: Arc<Self>) {
        self.0.send(Job::Look);
    }
}

/// The thread's own.
struct Publishing {
    broker: Weak<Broker>,
    files: StoreFiles,
    outbox: Arc<Outbox>,
    waker: Waker,
    /// Rounds of dead letters that queues have not confirmed yet, by number.
    open: HashMap<u64, Open>,
    sent: Sent,
    /// The queues that have a letter which is tried again, as others of its queues don't.
    reached: HashMap<(QueueId, Seq), SmallVec<[QueueId; 2]>>,
    /// What others have sent to deduplication exchanges and must not be routed yet, in order.
    unrouted: VecDeque<DeadLetters>,
    /// The queues with letters that wait to be tried again, and in which term of theirs. In order, as they are tried again in
    /// it: a simulated seed does the same each time.
    waiting: BTreeMap<QueueId, (Weak<Queue>, u64)>,
    /// Beyond so many it is looked which of them are gone.
    waiting_most: usize,
    /// The rounds before this one began before the nodes that can be reached could be.
    tried_before: u64,
    mailbox: Mailbox<Job>,
    /// The number of the next round.
    next: u64,
    logged: HashSet<(QueueId, QueueId)>,
}

struct Open {
    queue: Arc<Queue>,
    ticket: u64,
    term: u64,
    unread: Ranges,
    /// What could not be read just now, or has not arrived as its target could not be reached: it is tried again.
    failed: Ranges,
    /// What no queue takes is tried again, too: `x-dead-letter-strategy: at-least-once`.
    keeps: bool,
    /// How many blocks are not confirmed by a queue that they went to.
    missing: usize,
    /// Letters, each with a queue that has it, if it goes to others, too.
    reached: Vec<(Seq, QueueId)>,
    /// How many letters were read.
    letters: u64,
    /// Those that deduplication exchanges let pass, and that may have to pass again until they have arrived.
    passed: Vec<(Seq, Passed)>,
}

/// Dead letters under way, and what is looked up once for all of them.
struct Round<'a> {
    broker: &'a Broker,
    view: &'a View,
    letters: &'a DeadLetters,
    number: u64,
    now: Timestamp,
    /// This node.
    at: NodeId,
    /// The messages are still in their queue, and can be handed over again. What a full queue refused is in none.
    stays: bool,
}

/// The batch that is being put together: messages for the same queues.
#[derive(Default)]
struct Batch {
    builder: BlockBuilder,
    queues: SmallVec<[QueueId; 8]>,
    persistent: bool,
    /// What its messages are in the queue that they left, in their order.
    seqs: Vec<Seq>,
}

impl Publishing {
    fn look(&mut self) {
        let mut events = Vec::new();
        self.outbox.take(&mut events, &self.waker);
        for event in events {
            // A queue that is full refuses dead letters like any message; RabbitMQ drops them too, unless the strategy is to keep
            // them.
            let (numbers, queue, refused, unreached) = match event {
                Event::Confirm { numbers, queue, .. } => (numbers, queue, false, false),
                Event::Reject {
                    numbers,
                    queue,
                    unreached,
                    ..
                } => (numbers, queue, true, unreached),
                _ => continue,
            };
            let Some(queue) = queue else { continue };
            let done = self.sent.answered(queue, &numbers, |it| {
                let unreached = unreached || Mutant::SendsArrivedAgain.is_on() && it.round.is_multiple_of(7);
                match self.open.get_mut(&it.round) {
                    Some(open) if unreached || refused && open.keeps => open.postpone(it.seq),
                    Some(open) if it.among_others => open.reached.push((it.seq, queue)),
                    _ => {}
                }
            });
            done.into_iter().for_each(|round| self.confirmed(round));
        }
    }

    fn confirmed(&mut self, number: u64) {
        let Some(open) = self.open.get_mut(&number) else {
            return;
        };
        open.missing -= 1;
        if open.missing == 0
            && let Some(open) = self.open.remove(&number)
        {
            if let Some(broker) = self.broker.upgrade() {
                broker.stats().dead_letters().arrived(open.letters);
                open.tell(broker.caches());
            }
            self.remember(&open);
            let requests = self.finish(number, &open);
            // Whoever has come to decide since has other words for its own ones, and has these again.
            open.queue.submit_in(open.term, requests);
        }
    }

    /// All letters of a round have arrived where they went, but for those that are tried again.
    fn finish(&mut self, number: u64, open: &Open) -> Vec<Request> {
        let mut requests = vec![Request::FinishDeadLetters {
            ticket: open.ticket,
            unread: open.unread.clone(),
            failed: open.failed.clone(),
        }];
        let (id, term) = (open.queue.id, open.term);
        let known = self.waiting.get(&id).map(|(_, term)| *term);
        if open.failed.is_empty() {
            // Others of the queue that wait are tried again after their pause.
            self.waiting.remove(&id);
        } else if number < self.tried_before {
            requests.push(Request::HandOverAgain);
        } else if known.is_none_or(|known| known <= term) {
            self.waiting.insert(id, (Arc::downgrade(&open.queue), term));
        }
        if self.waiting.len() > self.waiting_most {
            self.waiting.retain(|_, (queue, _)| queue.strong_count() > 0);
            self.waiting_most = (2 * self.waiting.len()).max(WAITING_LEAST);
        }
        requests
    }

    fn try_again(&mut self) {
        self.tried_before = self.next;
        for (_, (queue, term)) in std::mem::take(&mut self.waiting) {
            if let Some(queue) = queue.upgrade() {
                queue.submit_in(term, vec![Request::HandOverAgain]);
            }
        }
    }

    /// What is tried again goes to no queue that has it.
    fn remember(&mut self, open: &Open) {
        let reached = open.reached.iter().filter(|(seq, _)| open.failed.contains(*seq));
        for (seq, queue) in reached {
            if self.reached.len() >= REMEMBERED {
                self.reached.clear();
            }
            self.reached
                .entry((open.queue.id, *seq))
                .or_default()
                .push(*queue);
        }
    }

    fn take(&mut self, letters: DeadLetters) {
        match letters.queue.kind() == QueueKind::Deduplication {
            true => {
                self.unrouted.push_back(letters);
                // Else the answer is under way.
                if self.unrouted.len() == 1 {
                    self.route();
                }
            }
            false => self.publish(letters),
        }
    }

    /// Publishes what waits, if it may be routed now; otherwise once it may.
    fn route(&mut self) {
        let Some(broker) = self.broker.upgrade() else {
            return;
        };
        match broker.shared_catalog().filter(|shared| !shared.is_fresh()) {
            Some(shared) => {
                let mailbox = self.mailbox.clone();
                let known = Box::new(|| Ok(Answer::Done));
                shared.read(known, Box::new(move |_| mailbox.send(Job::Route)));
            }
            None => std::mem::take(&mut self.unrouted)
                .into_iter()
                .for_each(|letters| self.publish(letters)),
        }
    }

    fn publish(&mut self, letters: DeadLetters) {
        let Some(broker) = self.broker.upgrade() else {
            return;
        };
        let number = self.next;
        self.next += 1;
        // One is missing until all are on their way.
        let open = Open {
            queue: letters.queue.clone(),
            ticket: letters.ticket,
            term: letters.term,
            unread: Ranges::new(),
            failed: Ranges::new(),
            keeps: letters.to.at_least_once && letters.stays(),
            missing: 1,
            reached: Vec::new(),
            letters: 0,
            passed: Vec::new(),
        };
        self.open.insert(number, open);
        let round = Round {
            broker: &broker,
            view: &broker.view(),
            letters: &letters,
            number,
            now: broker.node().now(),
            at: broker.topology().own_node(),
            stays: letters.stays(),
        };
        let mut batch = Batch::default();
        for (part, first) in letters.pieces.iter().flat_map(parts) {
            let found = match &part.bytes {
                Bytes::Memory(block) => Ok(Found::intact(block.clone())),
                Bytes::Source(source) => letters.queue.read(&self.files, *source, &mut Nearby::default()),
            };
            let count = u64::from(part.count);
            let Some(open) = self.open.get_mut(&number) else {
                break;
            };
            let found = match found {
                Ok(found) if found.block.len() as u64 >= u64::from(part.from) + count => found,
                Err(Unread::Failed(_)) => {
                    open.failed.push_span(first, first + count - 1);
                    continue;
                }
                Ok(_) | Err(Unread::Damaged(_)) => {
                    open.unread.push_span(first, first + count - 1);
                    continue;
                }
            };
            for (seq, at) in (first..).zip(part.from..part.from + part.count) {
                let damaged = found.damaged.contains(u64::from(at));
                let Some(open) = self.open.get_mut(&number) else {
                    break;
                };
                if damaged {
                    open.unread.push(seq);
                    continue;
                }
                open.letters += 1;
                self.letter(&round, seq, found.block.message(at as usize), &mut batch);
            }
        }
        self.post(&round, &mut batch);
        // What an exchange had kept did not die.
        if letters.queue.kind().is_of_clients() {
            let died = self.open.get(&number).map_or(0, |open| open.letters);
            broker.stats().dead_letters().died(letters.reason, died);
        } else if let Some(open) = self.open.get_mut(&number) {
            open.letters = 0;
        }
        self.confirmed(number);
    }

    /// Adds one dead letter to the batch of the queues that it goes to.
    fn letter(&mut self, round: &Round<'_>, seq: Seq, message: Message<'_>, batch: &mut Batch) {
        let Round {
            broker,
            view,
            letters,
            now,
            ..
        } = *round;
        let Some(exchange) = view.exchange(&letters.queue.vhost, &letters.to.exchange) else {
            return self.went_nowhere(round, seq);
        };
        if !letters.queue.kind().is_of_clients() {
            return self.kept(round, exchange, (seq, message), batch);
        }
        let keys = routing_keys(message, &Limits::STORED);
        let death = Death {
            queue: &letters.queue.name,
            reason: letters.reason,
            now,
            routing_keys: &keys,
        };
        let Some(dead) = Dead::bury(message, death, &Limits::STORED) else {
            return self.went_nowhere(round, seq);
        };
        let (keys, spent) = match &letters.to.routing_key {
            Some(key) => (vec![key.clone()], COPIES_SPENT),
            None => (keys, message.flags & COPIES_SPENT),
        };
        let mut queues = SmallVec::new();
        let among: SmallVec<[&[u8]; 2]> = keys.iter().map(Vec::as_slice).collect();
        let chance = broker.node().number().wrapping_mul(SPREAD);
        let passing = broker.caches().passing(round.bearer(seq));
        let mut envelope = Envelope::with_keys(&among, dead.properties.as_properties())
            .with_chance(chance)
            .at(round.at)
            .with_filter(&passing);
        view.route(exchange, &mut envelope, &mut queues);
        self.note_passed(round, seq, passing.passed());
        if letters.reason != DropReason::Rejected {
            self.drop_cycles(broker, &dead, &letters.queue, &mut queues);
        }
        if queues.is_empty() {
            return self.went_nowhere(round, seq);
        }
        let persistent = dead.properties.as_properties().persistent();
        if !self.open_batch(round, batch, queues, persistent, seq) {
            return;
        }
        let key = keys.first().map_or(&[][..], Vec::as_slice);
        batch.builder.push_message(&Message {
            route: RouteBuf::new(letters.to.exchange.as_bytes(), key).as_route(),
            properties: dead.properties.as_properties(),
            body: message.body,
            flags: DEAD_LETTERED | spent,
        });
    }

    /// A dead letter has come to no queue.
    fn went_nowhere(&mut self, round: &Round<'_>, seq: Seq) {
        if let Some(open) = self.open.get_mut(&round.number).filter(|open| open.keeps) {
            open.postpone(seq);
        }
    }

    /// Makes the batch one for these queues. False if it goes to none now. If one of them cannot be reached the letter waits
    /// where it died, for if it went to the others now, it would come to them once more with each try; but not for a queue
    /// that is gone with its node's run.
    fn open_batch(
        &mut self,
        round: &Round<'_>,
        batch: &mut Batch,
        mut queues: SmallVec<[QueueId; 8]>,
        persistent: bool,
        seq: Seq,
    ) -> bool {
        let reached = self.reached_before(round, seq);
        queues.retain(|id| {
            let handle = round.broker.queues().get(*id);
            let is_lost = handle.is_some_and(|handle| handle.is_lost_for_good(round.view));
            !is_lost && !reached.contains(id)
        });
        if queues.is_empty() {
            if reached.is_empty() {
                self.went_nowhere(round, seq);
            }
            return false;
        }
        let is_lost = |id: &QueueId| {
            let handle = round.broker.queues().get(*id);
            handle.is_some_and(|handle| handle.is_without_owner())
        };
        let waits = Mutant::LetsOthersPass.is_on() && round.number.is_multiple_of(7);
        if round.stays && (waits || queues.iter().any(is_lost)) {
            if let Some(open) = self.open.get_mut(&round.number) {
                open.postpone(seq);
            }
            return false;
        }
        let same = batch.queues == queues && batch.persistent == persistent;
        if !same || batch.builder.bytes() >= BLOCK_BYTES {
            self.post(round, batch);
            batch.queues = queues;
            batch.persistent = persistent;
        }
        batch.seqs.push(seq);
        true
    }

    /// The queues that have a letter from earlier tries.
    fn reached_before(&mut self, round: &Round<'_>, seq: Seq) -> SmallVec<[QueueId; 2]> {
        let source = round.letters.queue.id;
        let reached = self.reached.remove(&(source, seq)).unwrap_or_default();
        if let Some(open) = self.open.get_mut(&round.number) {
            open.reached.extend(reached.iter().map(|queue| (seq, *queue)));
        }
        reached
    }

    /// What deduplication exchanges let pass has arrived with everything else of its round.
    fn note_passed(&mut self, round: &Round<'_>, seq: Seq, passed: Passed) {
        if let Some(open) = self.open.get_mut(&round.number).filter(|_| !passed.is_empty()) {
            open.passed.push((seq, passed));
        }
    }

    /// What an exchange had kept, because of a delay or as another node had sent it here, is no dead letter: it goes on from its
    /// exchange as it came.
    fn kept(
        &mut self,
        round: &Round<'_>,
        from: &Exchange,
        (seq, message): (Seq, Message<'_>),
        batch: &mut Batch,
    ) {
        let broker = round.broker;
        let mut keys = routing_keys(message, &Limits::STORED);
        if message.flags & COPIES_SPENT == 0 {
            keys.extend(copied(message, "BCC", &Limits::STORED));
        }
        let among: SmallVec<[&[u8]; 2]> = keys.iter().map(Vec::as_slice).collect();
        let has_waited = round.letters.queue.kind() == QueueKind::Delayed;
        let properties = match has_waited {
            true => waited(message.properties, &Limits::STORED),
            false => None,
        };
        let properties = message.properties.replaced_by(properties.as_ref());
        let shown = carbon_copies::as_shown(properties, &Limits::STORED);
        let properties = properties.replaced_by(shown.as_ref());
        let chance = broker.node().number().wrapping_mul(SPREAD);
        let passing = broker.caches().passing(round.bearer(seq));
        let mut envelope = Envelope::with_keys(&among, properties)
            .with_chance(chance)
            .at(round.at)
            .with_filter(&passing);
        if has_waited {
            envelope = envelope.that_waited();
        }
        let mut queues = SmallVec::new();
        round.view.route(from, &mut envelope, &mut queues);
        self.note_passed(round, seq, passing.passed());
        let mut flags = message.flags;
        if round.letters.queue.kind() == QueueKind::Deduplication {
            match flags & HOPS {
                HOPS => self.end_hops(broker, &round.letters.queue, &mut queues),
                _ => flags += HOP,
            }
        }
        if queues.is_empty() {
            return;
        }
        let persistent = properties.persistent();
        if !self.open_batch(round, batch, queues, persistent, seq) {
            return;
        }
        batch.builder.push_message(&Message {
            properties,
            flags,
            ..message
        });
    }

    /// A message that has been on so many nodes goes on to no other one: deduplicating exchanges whose homes are on different
    /// nodes may lead to each other, and a pass over exchanges knows only where it has been itself.
    fn end_hops(&mut self, broker: &Broker, source: &Queue, queues: &mut SmallVec<[QueueId; 8]>) {
        queues.retain(|id| {
            let target = broker.queues().get(*id);
            let Some(target) = target.filter(|it| it.kind() == QueueKind::Deduplication) else {
                return true;
            };
            if self.logged.len() < LOGGED_CYCLES && self.logged.insert((source.id, *id)) {
                tracing::warn!(
                    area = "exchange",
                    "messages of the exchange {} come by way of {} to where they were before, on other nodes; they go no further",
                    source.name,
                    target.name()
                );
            }
            false
        });
    }

    /// Takes out the queues that the message would come back to without anybody having rejected it.
    fn drop_cycles(
        &mut self,
        broker: &Broker,
        dead: &Dead,
        source: &Queue,
        queues: &mut SmallVec<[QueueId; 8]>,
    ) {
        queues.retain(|id| {
            let Some(target) = broker.queues().get(*id) else {
                return false;
            };
            if !dead.goes_round(target.name()) {
                return true;
            }
            if self.logged.len() < LOGGED_CYCLES && self.logged.insert((source.id, *id)) {
                tracing::warn!(
                    area = "queue",
                    "{source:?} dead-letters messages that come back to {target:?} without being rejected; they are dropped"
                );
            }
            false
        });
    }

    /// Hands the batch to its queues.
    fn post(&mut self, round: &Round<'_>, batch: &mut Batch) {
        let Round {
            broker, number, now, ..
        } = *round;
        if batch.builder.is_empty() {
            return;
        }
        let block = Arc::new(batch.builder.finish(batch.persistent, now));
        let seqs: Arc<[Seq]> = std::mem::take(&mut batch.seqs).into();
        let numbers = self.sent.numbers(seqs.len());
        // What is in no queue is not tried again.
        let among_others = round.stays && batch.queues.len() > 1;
        let queues = batch.queues.iter().filter_map(|id| broker.queues().get(*id));
        let queues: SmallVec<[Handle; 2]> = queues.collect();
        if queues.is_empty() {
            // They were deleted just now.
            seqs.iter().for_each(|seq| self.went_nowhere(round, *seq));
        }
        for queue in queues {
            if let Some(open) = self.open.get_mut(&number) {
                open.missing += 1;
            }
            self.sent.add(queue.id(), number, &numbers, &seqs, among_others);
            let receipt = Receipt {
                outbox: self.outbox.clone(),
                channel: ChannelId(0),
                numbers: numbers.clone(),
                queue: Some(queue.id()),
                timed: None,
            };
            queue.submit(Request::Enqueue {
                block: block.clone(),
                receipt: Some(receipt),
            });
        }
    }
}

impl Open {
    /// This one does not arrive now.
    fn postpone(&mut self, seq: Seq) {
        if !self.failed.contains(seq) {
            self.failed.push(seq);
            // What a delayed exchange had kept was not counted.
            self.letters = self.letters.saturating_sub(1);
        }
    }

    /// Tells deduplication exchanges of those that have arrived.
    fn tell(&self, caches: &Caches) {
        let queue = self.queue.id;
        for (seq, passed) in &self.passed {
            if self.failed.contains(*seq) {
                continue;
            }
            for (seen, key) in passed {
                caches.arrived(*seen, *key, Bearer { queue, seq: *seq });
            }
        }
    }
}

impl Round<'_> {
    /// A letter as deduplication exchanges know it, if it may have to pass them again.
    fn bearer(&self, seq: Seq) -> Option<Bearer> {
        let queue = self.letters.queue.id;
        self.stays.then_some(Bearer { queue, seq })
    }
}

/// The parts of a piece, each with the number of its first message.
fn parts(piece: &Piece) -> impl Iterator<Item = (&Part, Seq)> {
    let mut first = piece.first;
    piece.parts.iter().map(move |part| {
        let start = first;
        first += u64::from(part.count);
        (part, start)
    })
}

/// The properties of a message that has waited: its delay is negative now, as RabbitMQ's plugin leaves it.
fn waited(properties: Properties<'_>, limits: &Limits) -> Option<PropertiesBuf> {
    let mut headers = properties.headers_table(limits).ok()?;
    let delay = headers.get(X_DELAY).and_then(Value::as_integer)?;
    let negative = match headers.get(X_DELAY)? {
        Value::SignedInt(it) => Value::SignedInt(it.checked_neg()?),
        _ => Value::Long(delay.checked_neg()?),
    };
    headers.insert(X_DELAY, negative);
    properties.with_headers(&headers)
}

/// The keys that a message was routed by: its own, and those of `CC` unless other keys have taken their place since.
fn routing_keys(message: Message<'_>, limits: &Limits) -> Vec<Vec<u8>> {
    let mut keys = vec![message.routing_key().to_vec()];
    if message.flags & COPIES_SPENT == 0 {
        keys.extend(copied(message, "CC", limits));
    }
    keys
}

/// The keys that one of a message's headers names.
fn copied(message: Message<'_>, header: &str, limits: &Limits) -> Vec<Vec<u8>> {
    if message
        .properties
        .headers()
        .is_none_or(|headers| headers.is_empty())
    {
        return Vec::new();
    }
    let headers = message.properties.headers_table(limits).unwrap_or_default();
    let Some(Value::Array(copies)) = headers.get(header) else {
        return Vec::new();
    };
    let keys = copies.iter().filter_map(Value::as_bytes);
    keys.map(<[u8]>::to_vec).collect()
}
