//! From a channel's publishes to batches in queues' mailboxes: permission, route, batch.
//!
//! Routing is done once per (exchange, routing key) and channel and kept while the catalog's view stands. What one socket
//! read brings for one set of queues travels as one block.

mod last;

use crate::ends::Receipt;
use crate::outbox::ChannelId;
use crate::pressure::Pressure;
use crate::queues::Queue;
use crate::session::Session;
use catalog::{Envelope, Looked, Refusal, View};
use last::Last;
use model::properties::Properties;
use model::table::{Entries, Value};
use model::{BlockBuilder, QueueId, Ranges};
use queue::fifo::Request;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

/// A block is handed on when it is this large, in bytes, even if the read brought more.
const BLOCK_BYTES: usize = 256 * 1024;

/// How many routes a channel remembers before it starts again.
const ROUTES: usize = 4096;

/// A longer property list is not kept to be compared with the next one, in bytes.
const COMPARED: usize = 1024;

/// One message as it came.
#[derive(Clone, Copy, Debug)]
pub struct Publish<'a> {
    /// The exchange's name; empty for the default exchange.
    pub exchange: &'a [u8],
    /// The routing key.
    pub routing_key: &'a [u8],
    /// Property flags and list of the content header.
    pub properties: &'a [u8],
    /// The body.
    pub body: &'a [u8],
}

/// A channel's way into the hall for messages.
pub struct Publisher {
    session: Arc<Session>,
    channel: ChannelId,
    view: Arc<View>,
    /// How many queues had been deleted when this was last looked at.
    removals: u64,
    routes: HashMap<Box<[u8]>, Route, foldhash::fast::RandomState>,
    last: Option<Last>,
    /// How often chance was asked.
    drawn: u64,
    targets: Vec<Target>,
    sets: HashMap<SmallVec<[QueueId; 8]>, usize, foldhash::fast::RandomState>,
    /// Targets that hold messages, in the order in which they got the first.
    open: SmallVec<[usize; 4]>,
    scratch: Vec<u8>,
}

/// Where a message went when the catalog's view was of this generation.
#[derive(Clone, Copy)]
struct Route {
    target: usize,
    generation: u64,
}

/// A set of queues that some route leads to, and what is on its way there.
struct Target {
    queues: SmallVec<[Arc<Queue>; 1]>,
    builder: BlockBuilder,
    persistent: bool,
    numbers: Ranges,
}

impl Publisher {
    pub(crate) fn new(session: Arc<Session>, channel: ChannelId) -> Self {
        let view = session.broker().view();
        Self {
            removals: session.broker().queues().removals(),
            session,
            channel,
            view,
            routes: HashMap::default(),
            last: None,
            drawn: 0,
            targets: Vec::new(),
            sets: HashMap::default(),
            open: SmallVec::new(),
            scratch: Vec::new(),
        }
    }

    /// Takes a message. `number` is its confirm number if the channel is in confirm mode. Returns how many queues took it, each
    /// of which will confirm the number; 0 means that no queue did.
    ///
    /// # Errors
    /// No such exchange, an internal exchange, or no write permission: nothing was taken.
    pub fn publish(&mut self, publish: &Publish<'_>, number: Option<u64>) -> Result<u32, Refusal> {
        if self.session.broker().generation() != self.view.generation() {
            self.routes_changed();
        }
        let target = match &self.last {
            Some(last) if last.is_good_for(publish) => last.target,
            _ => self.route(publish)?,
        };
        if asks_for_more(publish.properties) {
            self.check_properties(publish)?;
        }
        let queues = self.targets[target].queues.len();
        if queues == 0 {
            return Ok(0);
        }
        let persistent = Properties::new(publish.properties).persistent();
        self.open_target(target, persistent);
        let target = &mut self.targets[target];
        target.builder.push(
            publish.exchange,
            publish.routing_key,
            publish.properties,
            publish.body,
        );
        if let Some(number) = number {
            target.numbers.push(number);
        }
        if target.builder.bytes() >= BLOCK_BYTES {
            self.flush_open();
        }
        Ok(queues as u32)
    }

    /// Checks what few messages carry: the sender's name must be the user's (unless the user may impersonate others), and what
    /// this version does not do is refused rather than ignored.
    fn check_properties(&self, publish: &Publish<'_>) -> Result<(), Refusal> {
        let refuse = |text: String| Err(Refusal::InvalidMessage { text });
        let properties = Properties::new(publish.properties);
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
        if let Some(expiration) = properties.expiration()
            && let Err(complaint) = model::expiration_ms(expiration)
        {
            let shown = String::from_utf8_lossy(expiration);
            return refuse(format!("invalid expiration '{shown}': {complaint}"));
        }
        let sender_selected = ["CC", "BCC"].into_iter().filter(|name| {
            properties
                .headers()
                .is_some_and(|raw| Entries::new(raw).find(name.as_bytes()).is_some())
        });
        for name in sender_selected {
            let headers = properties
                .headers_table(self.session.broker().limits())
                .unwrap_or_default();
            match headers.get(name) {
                None => {}
                Some(Value::Array(_)) => {
                    return refuse(format!("the header '{name}' is not supported by this version"));
                }
                Some(value) => {
                    let kind = value.type_name();
                    return refuse(format!(
                        "invalid message: {{unacceptable_type_in_header,\"{name}\",{kind}}}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Hands everything taken so far to the queues. If there is a reason to slow down, the connection is not read from
    /// until there is relief.
    pub fn flush(&mut self) -> Option<Pressure> {
        if self.open.is_empty() {
            return None;
        }
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
        pressure
    }

    fn flush_open(&mut self) {
        for at in std::mem::take(&mut self.open) {
            self.hand_over(at);
        }
    }

    /// Makes `target` the place where a message may be added so that no queue sees two messages of this channel in the wrong
    /// order: sets of several queues may overlap with others, and a block has one persistence.
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
            self.open.push(target);
        }
    }

    fn hand_over(&mut self, at: usize) {
        let target = &mut self.targets[at];
        let now = self.session.broker().node().now();
        let block = Arc::new(target.builder.finish(target.persistent, now));
        let numbers = std::mem::take(&mut target.numbers);
        for queue in &target.queues {
            let receipt = (!numbers.is_empty()).then(|| Receipt {
                outbox: self.session.outbox().clone(),
                channel: self.channel,
                numbers: numbers.clone(),
            });
            queue.submit(Request::Enqueue {
                block: block.clone(),
                receipt,
            });
        }
    }

    /// Every route is looked up again when it is next used; where bindings come and go all the time, most lead where they
    /// led. What is ready for a set of queues is kept until one of them may be gone: ids are not used again.
    fn routes_changed(&mut self) {
        let broker = self.session.broker();
        self.view = broker.view();
        self.last = None;
        let removals = broker.queues().removals();
        if removals != self.removals {
            self.removals = removals;
            self.forget_routes();
        }
    }

    fn forget_routes(&mut self) {
        self.flush_open();
        self.routes.clear();
        self.targets.clear();
        self.sets.clear();
        self.last = None;
    }

    fn route(&mut self, publish: &Publish<'_>) -> Result<usize, Refusal> {
        self.scratch.clear();
        self.scratch.push(publish.exchange.len() as u8);
        self.scratch.extend_from_slice(publish.exchange);
        self.scratch.extend_from_slice(publish.routing_key);
        let generation = self.view.generation();
        if let Some(route) = self.routes.get(&self.scratch[..])
            && route.generation == generation
        {
            let target = route.target;
            self.remember(publish, Looked::AtKey, target);
            return Ok(target);
        }
        let chance = self.chance();
        let exchange = self.session.exchange_to_publish(&self.view, publish.exchange)?;
        let mut ids = SmallVec::new();
        let mut envelope = Envelope::new(publish.routing_key, publish.properties).with_chance(chance);
        self.view.route(exchange, &mut envelope, &mut ids);
        if self.targets.len() >= ROUTES {
            self.forget_routes();
        }
        let at = self.target(ids);
        if envelope.looked() == Looked::AtKey {
            let route = Route {
                target: at,
                generation,
            };
            if let Some(known) = self.routes.get_mut(&self.scratch[..]) {
                *known = route;
            } else {
                if self.routes.len() >= ROUTES {
                    self.routes.clear();
                }
                self.routes.insert(self.scratch.clone().into_boxed_slice(), route);
            }
        }
        self.remember(publish, envelope.looked(), at);
        Ok(at)
    }

    fn remember(&mut self, publish: &Publish<'_>, looked: Looked, target: usize) {
        let by_properties = looked == Looked::AtProperties;
        if looked == Looked::AtChance || by_properties && publish.properties.len() > COMPARED {
            self.last = None;
        } else {
            let last = self.last.get_or_insert_default();
            last.remember(publish, by_properties, target);
        }
    }

    /// A number that nobody can foresee, another one each time.
    fn chance(&mut self) -> u64 {
        self.drawn += 1;
        self.sets.hasher().hash_one(self.drawn)
    }

    /// The target for a set of queues: two routes to the same queues share it, so that their messages keep their order.
    fn target(&mut self, ids: SmallVec<[QueueId; 8]>) -> usize {
        if let Some(at) = self.sets.get(&ids) {
            return *at;
        }
        let registry = self.session.broker().queues();
        self.targets.push(Target {
            queues: ids.iter().filter_map(|id| registry.get(*id)).collect(),
            builder: BlockBuilder::new(),
            persistent: false,
            numbers: Ranges::new(),
        });
        self.sets.insert(ids, self.targets.len() - 1);
        self.targets.len() - 1
    }
}

/// True if a message has headers, an expiration or a user id: property flags that need a closer look.
fn asks_for_more(properties: &[u8]) -> bool {
    const HEADERS_IN_FIRST: u8 = 0x20;
    const EXPIRATION_IN_FIRST: u8 = 0x01;
    const USER_ID_IN_SECOND: u8 = 0x10;
    matches!(properties, [first, second, ..]
        if first & (HEADERS_IN_FIRST | EXPIRATION_IN_FIRST) != 0 || second & USER_ID_IN_SECOND != 0)
}
