//! A virtual host: its exchanges, queues and bindings, and routing among them.

use crate::arguments::placing::{self, Locator};
use crate::arguments::settings::fallbacks;
use crate::arguments::{new_size, queue_settings};
use crate::binding::{Binding, ByDestination, Target};
use crate::exchange::{Own, PREDECLARED};
use crate::node::Lifetime;
use crate::routing::{Envelope, Found};
use crate::{DeclaredExchange, Destination, Exchange, Metadata, Name, Policies, Queue, QueueKind, Quota};
use imbl::{OrdMap, OrdSet};
use model::table::Table;
use model::{QueueId, QueueSettings};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A virtual host. Cloning shares everything.
#[derive(Clone, Debug)]
pub struct Vhost {
    /// Its name.
    pub name: Name,
    exchanges: OrdMap<Name, Arc<Exchange>>,
    queues: OrdMap<Name, Arc<Queue>>,
    /// What exchanges keep for themselves, by exchange.
    own: OrdMap<Name, Arc<Queue>>,
    /// All bindings, by destination; an exchange knows where to look for those that lead away from it.
    bindings: OrdSet<ByDestination>,
    policies: Arc<Policies>,
    quota: Quota,
    metadata: Arc<Metadata>,
}

impl Vhost {
    /// A virtual host with its predeclared exchanges.
    pub(crate) fn new(name: Name) -> Self {
        let mut vhost = Self {
            name,
            exchanges: OrdMap::new(),
            queues: OrdMap::new(),
            own: OrdMap::new(),
            bindings: OrdSet::new(),
            policies: Arc::default(),
            quota: Quota::default(),
            metadata: Arc::default(),
        };
        for (name, kind, internal) in PREDECLARED {
            vhost.add_exchange(Exchange::new(DeclaredExchange {
                vhost: vhost.name.clone(),
                name: name.into(),
                kind,
                lifetime: Lifetime::Durable,
                auto_delete: false,
                internal,
                arguments: Arc::default(),
            }));
        }
        vhost
    }

    /// An exchange.
    pub fn exchange(&self, name: &str) -> Option<&Exchange> {
        self.exchanges.get(name).map(|exchange| &**exchange)
    }

    /// A queue.
    pub fn queue(&self, name: &str) -> Option<&Arc<Queue>> {
        self.queues.get(name)
    }

    /// All exchanges, by name.
    pub fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.exchanges.values().map(|exchange| &**exchange)
    }

    /// All queues of clients, by name.
    pub fn queues(&self) -> impl Iterator<Item = &Arc<Queue>> {
        self.queues.values()
    }

    /// The same, and then what exchanges keep for themselves.
    pub fn all_queues(&self) -> impl Iterator<Item = &Arc<Queue>> {
        self.queues().chain(self.own.values())
    }

    /// All bindings, by destination.
    pub fn bindings(&self) -> impl Iterator<Item = &Binding> {
        self.bindings.iter().map(|binding| &*binding.0)
    }

    /// The bindings that lead away from an exchange of it, by destination.
    pub fn bindings_from(&self, exchange: &Exchange) -> impl Iterator<Item = &Binding> {
        self.outgoing(exchange).map(|binding| &**binding)
    }

    /// The bindings that lead to one queue or exchange.
    pub fn bindings_to(&self, destination: &Destination) -> impl Iterator<Item = &Binding> {
        self.incoming(destination).map(|binding| &**binding)
    }

    /// The ring of an exchange that hashes consistently: its destinations in order, each with the bucket that its share ends
    /// before (the next one's begins there). `None` for exchanges of other types.
    pub fn ring(&self, exchange: &Exchange) -> Option<Vec<(u64, &Destination)>> {
        let buckets = exchange.routes.buckets()?;
        let names: BTreeMap<&Target, &Destination> = self
            .bindings_from(exchange)
            .map(|binding| (&binding.target, &binding.destination))
            .collect();
        let named = |(end, target): &(u64, Target)| Some((*end, *names.get(target)?));
        Some(buckets.iter().filter_map(named).collect())
    }

    /// All policies.
    pub fn policies(&self) -> &Arc<Policies> {
        &self.policies
    }

    /// Its limits.
    pub fn quota(&self) -> &Quota {
        &self.quota
    }

    pub(crate) fn set_quota(&mut self, quota: Quota) {
        self.quota = quota;
    }

    /// What is said about it.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    pub(crate) fn describe(&mut self, metadata: Metadata) {
        self.metadata = Arc::new(metadata);
    }

    pub(crate) fn policies_mut(&mut self) -> &mut Policies {
        Arc::make_mut(&mut self.policies)
    }

    /// What a queue's arguments and policies mean together.
    pub fn settings(&self, queue: &Queue) -> QueueSettings {
        queue_settings(queue, self.policies.of_queue(queue).definition().as_ref())
    }

    /// Where a new queue of this kind and name is to be led first, as arguments and policies say, if they do.
    pub fn locator(&self, kind: QueueKind, name: &str, arguments: &Table) -> Option<Locator> {
        placing::locator(arguments, self.policies.of_new(kind, name).definition().as_ref())
    }

    /// How many nodes are to have a new queue of this kind and name, as far as there are so many.
    pub fn new_size(&self, kind: QueueKind, name: &str, arguments: &Table) -> usize {
        let policy = self.policies.of_new(kind, name).definition();
        new_size(kind, arguments, policy.as_ref())
    }

    /// How many members a queue is to have in the long run, if anybody says so.
    pub fn target_size(&self, queue: &Queue) -> Option<usize> {
        let policy = self.policies.of_queue(queue).definition();
        placing::target_size(queue.kind, &queue.arguments, policy.as_ref())
    }

    /// What arguments and policies say of a queue that cannot be so, with what is done instead.
    pub fn fallbacks(&self, queue: &Queue) -> Vec<String> {
        fallbacks(queue, self.policies.of_queue(queue).definition().as_ref())
    }

    /// How many exchanges there are.
    pub fn exchange_count(&self) -> usize {
        self.exchanges.len()
    }

    /// How many queues clients have.
    pub fn queue_count(&self) -> usize {
        self.queues.len()
    }

    /// How many bindings there are, those of the default exchange not counted.
    pub fn binding_count(&self) -> usize {
        self.bindings.len()
    }

    pub(crate) fn incoming(&self, destination: &Destination) -> impl Iterator<Item = &Arc<Binding>> {
        self.leading_to("".into(), destination)
    }

    fn outgoing(&self, exchange: &Exchange) -> impl Iterator<Item = &Arc<Binding>> {
        let lead_to = |destination| {
            self.leading_to(exchange.name.clone(), destination)
                .take_while(|binding| binding.source == exchange.name)
        };
        exchange.destinations().flat_map(lead_to)
    }

    /// The bindings that lead to a destination, from those of `source` on.
    fn leading_to(&self, source: Name, destination: &Destination) -> impl Iterator<Item = &Arc<Binding>> {
        self.bindings
            .range(ByDestination::least(source, destination.clone())..)
            .map(|binding| &binding.0)
            .take_while(move |binding| binding.destination == *destination)
    }

    /// A binding as it is kept, if it exists.
    pub(crate) fn known(&self, binding: &Arc<Binding>) -> Option<&Arc<Binding>> {
        self.bindings
            .get(&ByDestination(binding.clone()))
            .map(|known| &known.0)
    }

    /// See [`crate::View::route`].
    pub(crate) fn route(
        &self,
        exchange: &Exchange,
        envelope: &mut Envelope<'_>,
        out: &mut SmallVec<[QueueId; 8]>,
    ) {
        if exchange.is_default() {
            let named = |key: &&[u8]| self.queue(std::str::from_utf8(key).ok()?);
            let queues = envelope.routing_keys().iter().filter_map(named);
            out.extend(queues.map(|queue| queue.id));
        } else {
            let mut found = Found {
                queues: out,
                exchanges: SmallVec::new(),
            };
            self.leave(exchange, envelope, &mut found);
            if !found.exchanges.is_empty() {
                self.route_on(exchange, envelope, &mut found);
            }
        }
        if out.len() > 1 {
            out.sort_unstable();
            out.dedup();
        }
    }

    /// Follows exchanges bound to exchanges, each once.
    fn route_on(&self, from: &Exchange, envelope: &mut Envelope<'_>, found: &mut Found<'_>) {
        let mut visited = OrdSet::unit(from.name.clone());
        while let Some(name) = found.exchanges.pop() {
            if visited.insert(name.clone()).is_some() {
                continue;
            }
            if let Some(exchange) = self.exchange(&name) {
                self.leave(exchange, envelope, found);
            }
        }
    }

    /// Adds an exchange of it, unless it exists.
    pub(crate) fn add_exchange(&mut self, exchange: Exchange) {
        if !self.exchanges.contains_key(&exchange.name) {
            self.exchanges.insert(exchange.name.clone(), Arc::new(exchange));
        }
    }

    /// Removes an exchange and all bindings from and to it.
    pub(crate) fn remove_exchange(&mut self, name: &str) {
        self.remove_incoming(&Destination::Exchange(name.into()));
        let Some(exchange) = self.exchanges.remove(name) else {
            return;
        };
        let outgoing: Vec<Arc<Binding>> = self.outgoing(&exchange).cloned().collect();
        for binding in outgoing {
            self.bindings.remove(&ByDestination(binding));
        }
    }

    /// Adds a queue. False if its name is taken, or there is no exchange that would keep it.
    pub(crate) fn add_queue(&mut self, queue: Arc<Queue>) -> bool {
        let own = match queue.kind {
            QueueKind::Delayed => Own::Delays(queue.id),
            QueueKind::Deduplication => Own::Seen(queue.id, queue.home),
            _ => return insert_new(&mut self.queues, queue),
        };
        let Some(exchange) = self.exchanges.get_mut(&queue.name) else {
            return false;
        };
        Arc::make_mut(exchange).own = Some(own);
        insert_new(&mut self.own, queue)
    }

    /// A client's queue is the same one as before, with something else to say of it.
    pub(crate) fn replace_queue(&mut self, queue: Arc<Queue>) {
        if self.queues.contains_key(&queue.name) {
            self.queues.insert(queue.name.clone(), queue);
        }
    }

    /// Removes a queue and all bindings to it.
    pub(crate) fn remove_queue(&mut self, queue: &Queue) {
        if queue.kind.is_of_clients() {
            self.remove_incoming(&Destination::Queue(queue.name.clone()));
            self.queues.remove(&queue.name);
        } else {
            self.own.remove(&queue.name);
        }
    }

    fn remove_incoming(&mut self, destination: &Destination) {
        let incoming: Vec<Arc<Binding>> = self.incoming(destination).cloned().collect();
        incoming
            .into_iter()
            .for_each(|binding| self.remove_binding(binding));
    }

    /// Adds a binding, unless it exists. Its source must.
    pub(crate) fn add_binding(&mut self, binding: Arc<Binding>) {
        let Some(exchange) = self.exchanges.get_mut(&binding.source) else {
            return;
        };
        if self.bindings.insert(ByDestination(binding.clone())).is_none() {
            Arc::make_mut(exchange).bind(&binding);
        }
    }

    /// Removes a binding, if it exists.
    pub(crate) fn remove_binding(&mut self, binding: Arc<Binding>) {
        let Some(ByDestination(known)) = self.bindings.remove(&ByDestination(binding)) else {
            return;
        };
        if let Some(exchange) = self.exchanges.get_mut(&known.source) {
            Arc::make_mut(exchange).unbind(&known);
        }
    }

    /// Finds where a message goes from one exchange. What goes nowhere at all, not even to another exchange,
    /// goes to the alternate one: RabbitMQ asks that of each exchange on the way.
    fn leave(&self, exchange: &Exchange, envelope: &mut Envelope<'_>, found: &mut Found<'_>) {
        let before = (found.queues.len(), found.exchanges.len());
        match exchange.own {
            Some(Own::Delays(delays)) if envelope.must_wait() => return found.queues.push(delays),
            // Who remembers decides, and routes: all goes there, be it a duplicate or none, so it keeps its order.
            Some(Own::Seen(seen, home)) if envelope.is_away_from(home) => return found.queues.push(seen),
            // To RabbitMQ's plugin, too, a duplicate is what goes nowhere.
            Some(Own::Seen(seen, _)) if envelope.has_passed(seen) => {}
            _ => exchange.routes.find(envelope, found),
        }
        // Many bindings may lead to the same queue, and each is a step.
        envelope.took(found.queues.len() - before.0);
        if before == (found.queues.len(), found.exchanges.len()) {
            let argument = exchange.alternate.clone();
            let alternate = argument.or_else(|| self.policies.alternate(exchange));
            found.exchanges.extend(alternate);
        }
    }
}

/// Adds a queue to those of its sort, unless there is one of its name.
fn insert_new(queues: &mut OrdMap<Name, Arc<Queue>>, queue: Arc<Queue>) -> bool {
    let is_new = !queues.contains_key(&queue.name);
    if is_new {
        queues.insert(queue.name.clone(), queue);
    }
    is_new
}
