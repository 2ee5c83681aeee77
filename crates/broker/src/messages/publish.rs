//! From a channel's publishes to batches in queues' mailboxes: permission, route, batch.
//!
//! Routing is done once per (exchange, routing key) and channel and kept while the catalog's view stands. What one socket
//! read brings for one set of queues travels as one block.

mod routes;

use crate::broker::replies::{REPLY_TO, Requester};
use crate::clients::outbox::ChannelId;
use crate::clients::pressure::Pressure;
use crate::events::firehose::{self, Party};
use crate::messages::carbon_copies::{self, Copies};
use crate::node::ends::Receipt;
use crate::queues::Handle;
use crate::session::Session;
use crate::stats::Ledger;
use catalog::{Refusal, View};
use model::properties::{Properties, PropertiesBuf};
use model::{BlockBuilder, Message, QueueId, Ranges};
use queue::Request;
use routes::Found;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// A block is handed on when it is this large, in bytes, even if the read brought more.
const BLOCK_BYTES: usize = 256 * 1024;

/// Who takes a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// How many queues, each of which will confirm it.
    pub queues: u32,
    /// How many channels that wait for direct replies; they have it already.
    pub replies: u32,
}

impl Taken {
    /// True if nobody takes it.
    pub fn is_lost(self) -> bool {
        self == Self::default()
    }
}

/// Where a message goes that is published later: what a transaction keeps of it. RabbitMQ routes when the message comes.
#[derive(Debug)]
pub struct Prepared {
    queues: SmallVec<[QueueId; 8]>,
    askers: SmallVec<[Arc<Requester>; 1]>,
    /// The properties without what nobody else may see, if they had such.
    pub properties: Option<PropertiesBuf>,
}

impl Prepared {
    /// True if there is nobody to take it.
    pub fn is_lost(&self) -> bool {
        self.queues.is_empty() && self.askers.is_empty()
    }
}

/// A channel's way into the broker for messages.
pub struct Publisher {
    session: Arc<Session>,
    channel: ChannelId,
    /// The channel's number for those who trace messages.
    number: u16,
    view: Arc<View>,
    /// How many handles had been taken out when this was last looked at.
    removals: u64,
    routes: HashMap<Box<[u8]>, Found, foldhash::fast::RandomState>,
    last: Option<Last>,
    /// What was published by exchange, for operators.
    ledger: Ledger,
    /// How often chance was asked.
    drawn: u64,
    /// How many steps routing has taken since somebody asked.
    steps: usize,
    targets: Vec<Target>,
    sets: HashMap<SmallVec<[QueueId; 8]>, usize, foldhash::fast::RandomState>,
    /// Targets that hold messages, in the order in which they got the first.
    open: SmallVec<[usize; 4]>,
    /// Something of what is on its way must not overtake acknowledgements.
    orderly: bool,
    /// The route that was found last leads through a deduplication exchange, which has not been asked yet whether it
    /// has seen the message.
    passes: bool,
    /// Messages and bytes that count against limits on rates and are not charged yet.
    charged: (u64, u64),
}

/// A set of queues that some route leads to, and what is on its way there.
struct Target {
    ids: SmallVec<[QueueId; 8]>,
    queues: SmallVec<[Handle; 1]>,
    builder: BlockBuilder,
    /// How many of the builder's messages were counted.
    counted: usize,
    persistent: bool,
    /// One of the queues compares what comes with what is there.
    orderly: bool,
    /// Its messages go to several queues, here or because a message goes on in two parts.
    shared: bool,
    numbers: Ranges,
}

impl Session {
    /// A channel's way into the broker for messages. Those who trace messages see `number` as the channel's.
    pub fn publisher(self: &Arc<Self>, channel: ChannelId, number: u16) -> Publisher {
        Publisher::new(self.clone(), channel, number)
    }
}

impl Publisher {
    pub(crate) fn new(session: Arc<Session>, channel: ChannelId, number: u16) -> Self {
        let view = session.broker().view();
        Self {
            removals: session.broker().queues().removals(),
            session,
            channel,
            number,
            view,
            routes: HashMap::default(),
            last: None,
            ledger: Ledger::default(),
            drawn: 0,
            steps: 0,
            targets: Vec::new(),
            sets: HashMap::default(),
            open: SmallVec::new(),
            orderly: false,
            passes: false,
            charged: (0, 0),
        }
    }

    /// True if what was taken since the last [`Publisher::flush`] must reach its queues in order with the channel's
    /// acknowledgements.
    pub fn is_orderly(&self) -> bool {
        self.orderly
    }

    /// How many steps routing has taken since [`Publisher::take_steps`], some ten nanoseconds each.
    #[inline]
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// The same, and counts from nothing again.
    pub fn take_steps(&mut self) -> usize {
        std::mem::take(&mut self.steps)
    }

    /// Takes a message. `number` is its confirm number if the channel is in confirm mode. Returns who took it.
    ///
    /// # Errors
    /// No such exchange, an internal exchange, no write permission, or properties that are refused: nothing was taken.
    pub fn publish(&mut self, message: &Message<'_>, number: Option<u64>) -> Result<Taken, Refusal> {
        let target = self.usual_target(message)?;
        if message.properties.has_what_is_checked() {
            let copies = self.look_closer(message)?;
            if copies.is_some() || self.passes {
                return self.publish_copies(message, copies.as_ref(), number);
            }
        }
        let queues = self.add(target, message, number);
        let replies = match queues {
            0 => self.answer_directly(message),
            _ => 0,
        };
        Ok(Taken { queues, replies })
    }

    /// Checks and routes a message as [`Publisher::publish`] does, and takes nothing.
    ///
    /// # Errors
    /// As there.
    pub fn prepare(&mut self, message: &Message<'_>) -> Result<Prepared, Refusal> {
        let target = self.usual_target(message)?;
        let asks = message.properties.has_what_is_checked();
        let copies = match asks {
            true => self.look_closer(message)?,
            false => None,
        };
        let keys = keys(message, copies.as_ref());
        let target = match copies.is_some() || asks && self.passes {
            true => self.target_of_all(message, &keys)?,
            false => target,
        };
        let queues = self.targets[target].ids.clone();
        let askers = self.askers(message, &keys);
        drop(keys);
        let shown = copies.and_then(|copies| copies.properties);
        let all_wait = shown.is_some() && self.split_waiting(target).1.is_empty();
        Ok(Prepared {
            queues,
            askers,
            properties: shown.filter(|_| !all_wait),
        })
    }

    /// Takes a message that was prepared. Queues that were deleted meanwhile take nothing.
    pub fn publish_prepared(&mut self, prepared: &Prepared, message: &Message<'_>, number: u64) -> Taken {
        self.follow_view();
        let target = self.target(prepared.queues.clone());
        if self.turn_to(message.exchange()) {
            self.last = None;
        }
        let queues = self.add(target, message, Some(number));
        let replies = prepared
            .askers
            .iter()
            .map(|asker| answer(Some(asker), message))
            .sum();
        Taken { queues, replies }
    }

    /// Where the routing key alone leads. Part of the hot way in, however many others use it, as is [`Self::add`].
    #[inline(always)]
    fn usual_target(&mut self, message: &Message<'_>) -> Result<usize, Refusal> {
        self.follow_view();
        match &self.last {
            Some(last) if last.is_good_for(message) => Ok(last.target),
            _ => self.route(message),
        }
    }

    /// Adds a message to what is on its way to a target; returns how many queues that are.
    #[inline(always)]
    fn add(&mut self, target: usize, message: &Message<'_>, number: Option<u64>) -> u32 {
        if self.session.traced().is_on() {
            let queues = self.targets[target].queues.iter().map(|queue| &**queue.name());
            let broker = self.session.broker();
            let connection = self.session.shown();
            let from = Party {
                node: broker.node_name(),
                vhost: self.session.vhost_name(),
                user: &self.session.user().name,
                connection: connection.map_or("", |connection| connection.name.as_str()),
                channel: self.number,
            };
            firehose::published(&broker.events().notices, &from, message, queues);
        }
        let queues = self.targets[target].queues.len();
        if queues == 0 {
            self.ledger.note(1, 0);
            return 0;
        }
        let persistent = message.properties.persistent();
        self.open_target(target, persistent);
        let target = &mut self.targets[target];
        target.builder.push_message(message);
        if let Some(number) = number {
            target.numbers.push(number);
        }
        if target.builder.bytes() >= BLOCK_BYTES {
            self.flush_open();
        }
        queues as u32
    }

    /// A message that no queue takes may be a direct reply.
    #[cold]
    fn answer_directly(&self, message: &Message<'_>) -> u32 {
        if !message.exchange().is_empty() || !message.routing_key().starts_with(REPLY_TO.as_bytes()) {
            return 0;
        }
        let asker = self.asker(message.routing_key());
        answer(asker.as_deref(), message)
    }

    /// A message that names further keys, or goes on only if none like it has passed before.
    #[cold]
    fn publish_copies(
        &mut self,
        message: &Message<'_>,
        copies: Option<&Copies>,
        number: Option<u64>,
    ) -> Result<Taken, Refusal> {
        let keys = keys(message, copies);
        let target = self.target_of_all(message, &keys)?;
        let without = copies.and_then(|copies| copies.properties.as_ref());
        let shown = Message {
            properties: message.properties.replaced_by(without),
            ..*message
        };
        let (waits, others) = match without {
            None => (SmallVec::new(), SmallVec::new()),
            Some(_) => self.split_waiting(target),
        };
        let queues = if waits.is_empty() {
            self.add(target, &shown, number)
        } else {
            let shared = !others.is_empty();
            let waits = self.target(waits);
            self.targets[waits].shared |= shared;
            let waiting = self.add(waits, message, number);
            // It came once, however many parts it goes on in.
            self.ledger.came_once();
            // Only now: when there are too many targets, finding one more forgets all others.
            let others = self.target(others);
            self.targets[others].shared |= shared;
            waiting + self.add(others, &shown, number)
        };
        let askers = self.askers(message, &keys);
        let replies = askers.iter().map(|asker| answer(Some(asker), &shown)).sum();
        Ok(Taken { queues, replies })
    }

    /// Those of a target's queues in which messages wait for their time, or go on to the node that routes them, and the others.
    /// What waits is routed later, and needs its `BCC` until then.
    fn split_waiting(&self, target: usize) -> (SmallVec<[QueueId; 8]>, SmallVec<[QueueId; 8]>) {
        let registry = self.session.broker().queues();
        let waits = |id: &QueueId| {
            let queue = registry.get(*id);
            queue.is_some_and(|queue| !queue.kind().is_of_clients())
        };
        self.targets[target].ids.iter().copied().partition(waits)
    }

    /// Checks what few messages carry: the sender's name must be the user's (unless the user may impersonate others), an
    /// expiration a time. Returns the further keys that it names.
    fn look_closer(&self, message: &Message<'_>) -> Result<Option<Copies>, Refusal> {
        let refuse = |text: String| Err(Refusal::InvalidMessage { text });
        let properties = message.properties;
        let user = self.session.user();
        if let Some(claimed) = properties.user_id()
            && claimed != user.name.as_bytes()
            && !user.tags.iter().any(|tag| tag == "impersonator")
        {
            let claimed = String::from_utf8_lossy(claimed);
            return refuse(format!(
                "user_id property set to '{claimed}' but authenticated user was '{}'",
                user.name
            ));
        }
        if let Some(Err(invalid)) = properties.expiration_ms() {
            let shown = String::from_utf8_lossy(invalid.text);
            return refuse(format!("invalid expiration '{shown}': {}", invalid.error));
        }
        Copies::named_in(message.properties, self.session.broker().limits())
    }

    /// What a returned message shows of its properties, if that differs from what was sent.
    pub fn as_shown(&self, properties: Properties<'_>) -> Option<PropertiesBuf> {
        match properties.has_what_is_checked() {
            true => carbon_copies::as_shown(properties, self.session.broker().limits()),
            false => None,
        }
    }

    fn askers(&self, message: &Message<'_>, keys: &[&[u8]]) -> SmallVec<[Arc<Requester>; 1]> {
        let keys = if message.exchange().is_empty() { keys } else { &[] };
        keys.iter().filter_map(|key| self.asker(key)).collect()
    }

    fn asker(&self, key: &[u8]) -> Option<Arc<Requester>> {
        self.session.broker().replies().find(self.session.vhost(), key)
    }

    /// Hands everything taken so far to the queues. If there is a reason to slow down, the connection is not read from
    /// until it is released.
    pub fn flush(&mut self) -> Option<Pressure> {
        let pressure = self.flush_targets();
        self.follow_places();
        self.ledger.tell();
        pressure
    }

    fn flush_targets(&mut self) -> Option<Pressure> {
        if self.open.is_empty() && self.charged.0 == 0 {
            return None;
        }
        self.orderly = false;
        let mut pressure = None;
        let mut persistent = false;
        for at in std::mem::take(&mut self.open) {
            persistent |= self.targets[at].persistent;
            self.hand_over(at);
            let queues = &self.targets[at].queues;
            pressure = pressure.or_else(|| queues.iter().find_map(|queue| queue.pressure()));
        }
        if persistent {
            pressure = pressure.or_else(|| self.session.broker().node().log_pressure());
        }
        let (messages, bytes) = self.charged;
        if messages > 0 {
            self.charged = (0, 0);
            // Where nothing is full, the limit on rates counts before the pace of consumers.
            let full = pressure.as_ref().is_some_and(|reason| reason.timeout().is_none());
            let wait = self.session.charge(messages, bytes);
            pressure = if full { pressure } else { wait.or(pressure) };
        }
        pressure
    }

    /// Counts what a target got since it was counted last: all of it came to the exchange that is published to now.
    fn count(&mut self, at: usize) {
        let target = &mut self.targets[at];
        let fresh = target.builder.len() - target.counted;
        target.counted += fresh;
        self.ledger
            .note(fresh as u64, (fresh * target.queues.len()) as u64);
    }

    fn count_all(&mut self) {
        for at in self.open.clone() {
            self.count(at);
        }
    }

    /// What is published from now on comes to this exchange. True if it came to another one before.
    fn turn_to(&mut self, exchange: &[u8]) -> bool {
        if self.ledger.is_at(exchange) {
            return false;
        }
        self.count_all();
        let exchanges = self.session.broker().stats().exchanges();
        self.ledger
            .turn_to(exchange, self.session.vhost_name(), exchanges);
        true
    }

    fn flush_open(&mut self) {
        for at in std::mem::take(&mut self.open) {
            self.hand_over(at);
        }
    }

    /// Makes `target` the place where a message may be added so that no queue sees two messages of this channel in the wrong
    /// order: sets of several queues may overlap with others, and a block has one persistence.
    #[inline(always)]
    fn open_target(&mut self, target: usize, persistent: bool) {
        let is_open = !self.targets[target].builder.is_empty();
        if is_open && self.targets[target].persistent != persistent {
            self.flush_open();
        } else if !is_open && !self.open.is_empty() {
            let alone = self.targets[target].queues.len() == 1
                && self.open.iter().all(|at| self.targets[*at].queues.len() == 1);
            if !alone {
                self.flush_open();
            }
        }
        if self.targets[target].builder.is_empty() {
            self.targets[target].persistent = persistent;
            self.orderly |= self.targets[target].orderly;
            self.open.push(target);
        }
    }

    fn hand_over(&mut self, at: usize) {
        self.count(at);
        let target = &mut self.targets[at];
        target.counted = 0;
        let now = self.session.broker().node().now();
        let block = Arc::new(target.builder.finish(target.persistent, now));
        if self.session.is_metered() {
            self.charged.0 += block.len() as u64;
            self.charged.1 += block.body_bytes();
        }
        let numbers = std::mem::take(&mut target.numbers);
        for queue in &target.queues {
            let receipt = (!numbers.is_empty()).then(|| Receipt {
                outbox: self.session.outbox().clone(),
                channel: self.channel,
                numbers: numbers.clone(),
                queue: target.shared.then(|| queue.id()),
                timed: None,
            });
            queue.submit(Request::Enqueue {
                block: block.clone(),
                receipt,
            });
        }
    }
}

/// All routing keys of a message.
fn keys<'p>(message: &Message<'p>, copies: Option<&'p Copies>) -> SmallVec<[&'p [u8]; 4]> {
    let named = copies.map_or(&[][..], |copies| &copies.keys);
    std::iter::once(message.routing_key())
        .chain(named.iter().map(Vec::as_slice))
        .collect()
}

/// Hands an answer to whoever waits for it; returns how many did.
fn answer(asker: Option<&Requester>, message: &Message<'_>) -> u32 {
    let Some(asker) = asker else { return 0 };
    asker.answer(message);
    1
}

/// The last route that a channel found, and the messages that it is good for: the next one is often like the last.
#[derive(Default)]
struct Last {
    route: Vec<u8>,
    /// The properties, if the route depends on them.
    properties: Option<PropertiesBuf>,
    target: usize,
}

impl Last {
    fn is_good_for(&self, message: &Message<'_>) -> bool {
        let same = |known: &PropertiesBuf| known.as_properties() == message.properties;
        self.route == message.route.as_bytes() && self.properties.as_ref().is_none_or(same)
    }

    /// Remembers where this message went, and whether that depended on its properties.
    fn remember(&mut self, message: &Message<'_>, by_properties: bool, target: usize) {
        self.route.clear();
        self.route.extend_from_slice(message.route.as_bytes());
        self.properties = by_properties.then(|| {
            let mut kept = self.properties.take().unwrap_or_default();
            kept.copy_from(message.properties);
            kept
        });
        self.target = target;
    }
}
