//! Where messages go: the routes that a channel remembers, and the sets of queues they lead to.

use super::{Publisher, Target};
use crate::broker::replies::REPLY_TO;
use crate::queues::Handle;
use catalog::{Envelope, Looked, Refusal, Verb};
use model::{BlockBuilder, Message, Mutant, QueueId, Ranges};
use smallvec::SmallVec;
use std::hash::BuildHasher;

/// How many routes a channel remembers before it starts again.
const ROUTES: usize = 4096;

/// A longer property list is not kept to be compared with the next one, in bytes.
const COMPARED: usize = 1024;

/// Where a message went when the catalog's view was of this generation.
#[derive(Clone, Copy)]
pub(super) struct Found {
    target: usize,
    generation: u64,
}

impl Publisher {
    #[inline]
    pub(super) fn follow_view(&mut self) {
        if self.session.broker().generation() != self.view.generation() {
            self.view_changed();
        }
    }

    /// Every route is looked up again when it is next used; where bindings come and go all the time, most lead where they
    /// led. What is ready for a set of queues is kept until one of them may be gone: ids are not used again.
    #[cold]
    pub(super) fn view_changed(&mut self) {
        // An exchange may be another one of the same name.
        self.count_all();
        self.ledger.forget();
        let broker = self.session.broker();
        self.view = broker.view();
        self.last = None;
        self.follow_places();
    }

    /// Lets go of the handles of queues that are deleted, or in another place by now.
    pub(super) fn follow_places(&mut self) {
        let removals = self.session.broker().queues().removals();
        if removals != self.removals {
            self.removals = removals;
            self.forget_routes();
        }
    }

    /// Asks for everything again: what exists, and what the user may.
    pub fn forget_routes(&mut self) {
        self.flush_open();
        self.routes.clear();
        self.targets.clear();
        self.sets.clear();
        self.last = None;
    }

    pub(super) fn route(&mut self, message: &Message<'_>) -> Result<usize, Refusal> {
        if self.turn_to(message.exchange()) {
            // The last route is another exchange's.
            self.last = None;
        }
        let generation = self.view.generation();
        if let Some(found) = self.routes.get(message.route.as_bytes())
            && found.generation == generation
        {
            let target = found.target;
            self.remember(message, Looked::AtKey, target);
            return Ok(target);
        }
        let chance = self.chance();
        let exchange = self.session.exchange_to_publish(&self.view, message.exchange())?;
        self.session
            .check_key(Verb::Write, exchange, message.routing_key())?;
        let mut ids = SmallVec::new();
        let mut envelope = Envelope::new(message.routing_key(), message.properties)
            .with_chance(chance)
            .at(self.session.broker().topology().own_node());
        self.view.route(exchange, &mut envelope, &mut ids);
        self.steps += envelope.steps();
        if envelope.has_met_memory() && self.lead_elsewhere(&ids) {
            ids.clear();
            envelope = Envelope::new(message.routing_key(), message.properties)
                .with_chance(chance)
                .at(self.session.broker().topology().own_node())
                .to_memories();
            self.view.route(exchange, &mut envelope, &mut ids);
        }
        let at = self.target(ids);
        // Each reply address is used once or twice, and then never again.
        let lasting =
            !message.exchange().is_empty() || !message.routing_key().starts_with(REPLY_TO.as_bytes());
        if envelope.looked() == Looked::AtKey && lasting {
            let found = Found {
                target: at,
                generation,
            };
            if let Some(known) = self.routes.get_mut(message.route.as_bytes()) {
                *known = found;
            } else {
                if self.routes.len() >= ROUTES {
                    self.routes.clear();
                }
                self.routes.insert(message.route.as_bytes().into(), found);
            }
        }
        self.remember(message, envelope.looked(), at);
        Ok(at)
    }

    pub(super) fn remember(&mut self, message: &Message<'_>, looked: Looked, target: usize) {
        let by_properties = looked == Looked::AtProperties;
        self.passes = looked == Looked::AtThePast;
        if looked >= Looked::AtChance || by_properties && message.properties.len() > COMPARED {
            self.last = None;
        } else {
            let last = self.last.get_or_insert_default();
            last.remember(message, by_properties, target);
        }
    }

    /// A number that nobody can foresee, another one each time.
    pub(super) fn chance(&mut self) -> u64 {
        self.drawn += 1;
        self.sets.hasher().hash_one(self.drawn)
    }

    /// Where several keys together lead.
    pub(super) fn target_of_all(&mut self, message: &Message<'_>, keys: &[&[u8]]) -> Result<usize, Refusal> {
        let chance = self.chance();
        let caches = self.session.broker().caches().clone();
        let passing = caches.passing(None);
        let exchange = self.session.exchange_to_publish(&self.view, message.exchange())?;
        for key in keys {
            self.session.check_key(Verb::Write, exchange, key)?;
        }
        let mut ids = SmallVec::new();
        let mut envelope = Envelope::with_keys(keys, message.properties)
            .with_chance(chance)
            .at(self.session.broker().topology().own_node())
            .with_filter(&passing);
        self.view.route(exchange, &mut envelope, &mut ids);
        self.steps += envelope.steps();
        if envelope.has_met_memory() && self.lead_elsewhere(&ids) {
            passing.refused();
            ids.clear();
            let mut envelope = Envelope::with_keys(keys, message.properties)
                .with_chance(chance)
                .at(self.session.broker().topology().own_node())
                .to_memories();
            self.view.route(exchange, &mut envelope, &mut ids);
        }
        let target = self.target(ids);
        if passing.has_passed_any() && self.targets[target].queues.iter().any(Handle::is_without_owner) {
            passing.refused();
        }
        Ok(target)
    }

    /// True if what met a deduplicating exchange of this node goes on to another node, or to a queue of several. Then it goes
    /// into the exchange's own queue first, as what other nodes send: the key of a message that is safe nowhere would outlive
    /// it, and one like it would be taken for a duplicate of what is lost. Where somebody cannot be reached it is refused.
    #[cold]
    fn lead_elsewhere(&self, ids: &[QueueId]) -> bool {
        let registry = self.session.broker().queues();
        let handles: SmallVec<[Handle; 8]> = ids.iter().filter_map(|id| registry.get(*id)).collect();
        handles.iter().any(|handle| !matches!(handle, Handle::Here(_)))
            && !handles.iter().any(Handle::is_without_owner)
            && !Mutant::PassesByMemory.is_on()
    }

    /// The target for a set of queues: two routes to the same queues share it, so that their messages keep their order.
    pub(super) fn target(&mut self, ids: SmallVec<[QueueId; 8]>) -> usize {
        if let Some(at) = self.sets.get(&ids) {
            return *at;
        }
        if self.targets.len() >= ROUTES {
            self.forget_routes();
        }
        let registry = self.session.broker().queues();
        let queues: SmallVec<[Handle; 1]> = ids.iter().filter_map(|id| registry.get(*id)).collect();
        self.targets.push(Target {
            ids: ids.clone(),
            orderly: queues.iter().any(|queue| queue.compares()),
            shared: queues.len() > 1,
            queues,
            builder: BlockBuilder::new(),
            counted: 0,
            persistent: false,
            numbers: Ranges::new(),
        });
        self.sets.insert(ids, self.targets.len() - 1);
        self.targets.len() - 1
    }
}
