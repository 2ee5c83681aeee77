//! What clients and administrators change: queues, bindings, policies.

use crate::client::{CHANNEL, Wish};
use crate::coverage::Act;
use crate::ledger::{Excuse, Ledger, Queue, QueueKey, Rule};
use crate::life::{Life, NAMES};
use crate::mutant::Mutant;
use crate::routes::{COLOURS, Colour, Exchange};
use crate::terms::{DEAD_LETTERS, Terms};
use broker::{Binding, Destination, PolicyKind, PutPolicy};
use model::table::Table;
use storage::World;
use storage::faulty::Random;

/// The one policy.
const POLICY: &str = "p";

impl Life {
    /// A client declares a queue.
    pub fn declare(&mut self, ledger: &mut Ledger, client: usize, name: &str, mut terms: Terms) {
        // A queue with dead letters needs a queue for them.
        terms.dead_letters &= ledger.can_die;
        if ledger.is(Mutant::LostDeclaration) && ledger.tick().is_multiple_of(3) {
            let key = ledger.declare(name, terms, client);
            ledger.by_name.remove(name);
            if let Some(queue) = ledger.queues.get_mut(&key) {
                queue.declared = true;
            }
            return;
        }
        let mut told = terms.clone();
        if let Some(mutant) = ledger.mutant {
            mutant.declares(&mut told);
        }
        let declared = self.clients[client]
            .session
            .declare_queue(CHANNEL, told.declaration(name));
        match declared {
            Ok(done) => {
                ledger.did(Act::Declared);
                let key = ledger.declare(name, terms, client);
                if self.await_durable(ledger, client, done.durable)
                    && let Some(queue) = ledger.queues.get_mut(&key)
                {
                    queue.declared = true;
                }
            }
            Err(refusal) if self.is_well() => {
                ledger.violated("queues can be declared", format!("{name}: {refusal:?}"));
            }
            Err(_) => {}
        }
    }

    /// An administrator imports a queue with its bindings; all is durable, or the node is not well.
    pub fn import(&mut self, ledger: &mut Ledger, random: &mut Random, name: &str) {
        let mut terms = Terms::choose(random);
        terms.exclusive = false;
        terms.dead_letters &= ledger.can_die;
        let mut told = terms.clone();
        if let Some(mutant) = ledger.mutant {
            mutant.declares(&mut told);
        }
        let administrator = self.broker.administrator("guest").in_bulk();
        ledger.did(Act::Imported);
        let mut imported = administrator.install_queue("/", told.declaration(name));
        let key = ledger.declare(name, terms, 0);
        for colour in COLOURS {
            let exchange = Exchange::choose(random);
            let (routing_key, arguments) = exchange.binding(colour);
            let to = Destination::Queue(name.into());
            let bind =
                || administrator.install_binding("/", exchange.name(), to, routing_key.as_bytes(), arguments);
            imported = imported.and_then(|()| bind());
            ledger.bindings.insert((exchange, colour, key));
        }
        match imported {
            Ok(()) => {
                if self.broker.make_durable().is_ok()
                    && let Some(queue) = ledger.queues.get_mut(&key)
                {
                    queue.declared = true;
                }
            }
            Err(refusal) if self.is_well() => {
                ledger.violated("queues can be imported", format!("{name}: {refusal:?}"));
            }
            Err(_) => {}
        }
    }

    /// Where dead letters go.
    pub fn import_dead_letter_queues(&mut self, ledger: &mut Ledger) {
        let administrator = self.broker.administrator("guest").in_bulk();
        for name in NAMES {
            let name = format!("{DEAD_LETTERS}{name}");
            if let Err(refusal) = administrator.install_queue("/", Terms::plain().declaration(&name)) {
                if self.is_well() {
                    ledger.violated("queues can be imported", format!("{name}: {refusal:?}"));
                }
                return;
            }
            if ledger.named(&name).is_none() {
                let key = ledger.declare(&name, Terms::plain(), 0);
                if let Some(queue) = ledger.queues.get_mut(&key) {
                    queue.has_dead_letters = true;
                }
            }
        }
        ledger.can_die = self.broker.make_durable().is_ok();
        if ledger.can_die {
            let queues = ledger.queues.values_mut().filter(|queue| queue.has_dead_letters);
            queues.for_each(|queue| queue.declared = true);
        }
    }

    /// A client looks after dead letters.
    pub fn consume_dead_letters(&mut self, ledger: &mut Ledger, client: usize, name: &str) {
        if let Some(dead_queue) = ledger.named(&format!("{DEAD_LETTERS}{name}")) {
            let wish = Wish {
                prefetch: 10,
                ..Wish::default()
            };
            self.clients[client].consume(ledger, dead_queue, wish);
        }
    }

    /// An administrator puts a policy or deletes it. When that returns it is durable, unless the node is not well.
    pub fn rule(&mut self, ledger: &mut Ledger, random: &mut Random) {
        if random.chance() {
            return self.clear_rules(ledger);
        }
        let rule = Rule {
            max_length: random.chance().then(|| 1 + random.below(30)),
            ttl_ms: random.chance().then(|| 50 + random.below(3_000)),
        };
        let mut definition = Table::new().with("delivery-limit", -1_i64);
        if let Some(length) = rule.max_length {
            definition.insert("max-length", length as i64);
        }
        if let Some(ttl_ms) = rule.ttl_ms {
            definition.insert("message-ttl", ttl_ms as i64);
        }
        let policy = PutPolicy {
            pattern: Rule::PATTERN.to_owned(),
            apply_to: "queues".to_owned(),
            priority: 0,
            definition,
        };
        ledger.did(Act::PolicyPut);
        ledger.rules.push(rule);
        ledger.follow_rules();
        let put = self
            .broker
            .administrator("guest")
            .put_policy("/", PolicyKind::User, POLICY, policy);
        ledger.now = self.world.elapsed();
        ledger.follow_rules();
        match put {
            Ok(()) => ledger.rules = vec![rule],
            Err(refusal) if self.is_well() => {
                ledger.violated("policies can be put", format!("{refusal:?}"));
            }
            Err(_) => {}
        }
    }

    fn clear_rules(&mut self, ledger: &mut Ledger) {
        ledger.did(Act::PolicyDeleted);
        let cleared = self
            .broker
            .administrator("guest")
            .delete_policy("/", PolicyKind::User, POLICY);
        ledger.now = self.world.elapsed();
        ledger.follow_rules();
        match cleared {
            Ok(()) => ledger.rules.clear(),
            Err(refusal) if self.is_well() => {
                ledger.violated("policies can be deleted", format!("{refusal:?}"));
            }
            Err(_) => {}
        }
    }

    /// Notes which queues are gone that may be: nobody has used them for long, or who kept them has left.
    pub fn look_who_left(&mut self, ledger: &mut Ledger) {
        self.note_use(ledger);
        // More may leave while somebody waits.
        while let Some((key, name)) = self.one_that_left(ledger) {
            let may_leave = |queue: &Queue| queue.may_leave(ledger.now);
            if !ledger.queues.get(&key).is_some_and(may_leave) {
                ledger.violated("queues stay", name);
            }
            ledger.forget(key);
            if self.broker.make_durable().is_ok()
                && let Some(queue) = ledger.queues.get_mut(&key)
            {
                queue.deleted = true;
            }
            self.note_use(ledger);
        }
    }

    fn note_use(&self, ledger: &mut Ledger) {
        ledger.now = self.world.elapsed();
        let used: Vec<QueueKey> = (self.clients.iter())
            .flat_map(|client| client.consumers.iter().map(|consumer| consumer.key))
            .collect();
        for (key, queue) in &mut ledger.queues {
            let is_used = used.contains(key);
            if is_used {
                queue.used = ledger.now;
            }
            queue.leaving |= queue.terms.auto_delete && queue.was_used && !is_used;
        }
    }

    fn one_that_left(&self, ledger: &Ledger) -> Option<(QueueKey, String)> {
        let view = self.broker.view();
        let gone = (ledger.by_name.iter()).find(|(name, _)| view.queue("/", name).is_none());
        gone.map(|(name, key)| (*key, name.clone()))
    }

    /// A client binds a queue, or ends that.
    pub fn bind(
        &mut self,
        ledger: &mut Ledger,
        client: usize,
        binding: (Exchange, Colour, QueueKey),
        bound: bool,
    ) {
        let (exchange, colour, queue) = binding;
        let Some(name) = ledger.queues.get(&queue).map(|known| known.name.clone()) else {
            return;
        };
        let (routing_key, arguments) = exchange.binding(colour);
        let wanted = Binding {
            source: exchange.name(),
            destination: &name,
            routing_key: routing_key.as_bytes(),
            arguments,
        };
        if bound && ledger.is(Mutant::LostBinding) {
            ledger.bindings.insert(binding);
            return;
        }
        let session = &self.clients[client].session;
        let done = match bound {
            true => session.bind_queue(CHANNEL, wanted),
            false => session.unbind_queue(CHANNEL, wanted),
        };
        ledger.did(match bound {
            true => Act::Bound,
            false => Act::Unbound,
        });
        match bound {
            true => ledger.bindings.insert(binding),
            false => ledger.bindings.remove(&binding),
        };
        match done {
            Ok(done) => {
                self.await_durable(ledger, client, done.durable);
            }
            Err(refusal) if self.is_well() => {
                ledger.violated("queues can be bound", format!("{name}: {refusal:?}"));
            }
            Err(_) => {}
        }
    }

    /// A crash may have come into a change of the bindings: from now on they are what the ledger says.
    pub fn bind_again(&mut self, ledger: &mut Ledger) {
        let administrator = self.broker.administrator("guest").in_bulk();
        for (exchange, colour, key) in ledger.bindings.clone() {
            let Some(name) = ledger.queues.get(&key).map(|queue| queue.name.clone()) else {
                continue;
            };
            let (routing_key, arguments) = exchange.binding(colour);
            let to = Destination::Queue(name.as_str().into());
            let bound =
                administrator.install_binding("/", exchange.name(), to, routing_key.as_bytes(), arguments);
            if let Err(refusal) = bound
                && self.is_well()
            {
                ledger.violated("queues can be bound", format!("{name}: {refusal:?}"));
            }
        }
        for exchange in [
            Exchange::Direct,
            Exchange::Fanout,
            Exchange::Topic,
            Exchange::Headers,
        ] {
            let queues: Vec<QueueKey> = ledger.by_name.values().copied().collect();
            for (colour, key) in
                (COLOURS.iter()).flat_map(|colour| queues.iter().map(move |key| (colour, key)))
            {
                let binding = (exchange, *colour, *key);
                if !ledger.bindings.contains(&binding) && self.is_bound(ledger, binding) {
                    self.bind(ledger, 0, binding, false);
                }
            }
        }
        let _ = self.broker.make_durable();
    }

    fn is_bound(&self, ledger: &Ledger, (exchange, colour, queue): (Exchange, Colour, QueueKey)) -> bool {
        let Some(name) = ledger.queues.get(&queue).map(|queue| queue.name.as_str()) else {
            return false;
        };
        let (key, _) = exchange.binding(colour);
        let view = self.broker.view();
        let to = Destination::Queue(name.into());
        let mut bindings = (view.vhost("/").into_iter()).flat_map(|vhost| vhost.bindings_to(&to));
        bindings.any(|binding| *binding.source == *exchange.name() && *binding.routing_key == *key.as_bytes())
    }

    /// A client purges a queue.
    pub fn purge(&mut self, ledger: &mut Ledger, client: usize, key: QueueKey) {
        let Some(name) = ledger.queues.get(&key).map(|known| known.name.clone()) else {
            return;
        };
        ledger.tell(|| format!("queue {key} is purged"));
        ledger.did(Act::Purged);
        // What is on its way to a client is not purged.
        self.take_all(ledger);
        if !ledger.is(Mutant::LostPurge)
            && let Err(refusal) = self.clients[client].session.purge_queue(CHANNEL, &name)
        {
            ledger.violated("queues can be purged", format!("{name}: {refusal:?}"));
        }
        let (life, now) = (ledger.life, ledger.now);
        let Some(queue) = ledger.queues.get_mut(&key) else {
            return;
        };
        // What is on its way as a dead letter is not purged, either, and the end of a life may bring it back.
        let dies = queue.terms.dead_letters;
        let mut purged = Vec::new();
        for (id, copy) in queue.copies.iter_mut().filter(|(_, copy)| !copy.held) {
            copy.was_purged = true;
            if copy.may_wait(&queue.terms, life) || dies && copy.is_excused(now) {
                copy.excuse.get_or_insert(Excuse::Purged);
            } else if copy.gone_at.is_none() {
                purged.push(*id);
            }
        }
        purged.into_iter().for_each(|id| ledger.gone(key, id));
    }

    /// A client deletes a queue.
    pub fn delete(&mut self, ledger: &mut Ledger, client: usize, key: QueueKey) {
        let Some(queue) = ledger.queues.get_mut(&key) else {
            return;
        };
        queue.doomed = true;
        let name = queue.name.clone();
        ledger.tell(|| format!("queue {key} is deleted"));
        ledger.did(Act::Deleted);
        self.take_all(ledger);
        if ledger.is(Mutant::LostDeletion) {
            ledger.by_name.remove(&name);
            ledger.bindings.retain(|(_, _, of)| *of != key);
            ledger.queues.remove(&key);
            return;
        }
        match self.clients[client].delete_queue(ledger, &name) {
            Ok(deleted) => {
                ledger.by_name.remove(&name);
                ledger.bindings.retain(|(_, _, of)| *of != key);
                if self.await_durable(ledger, client, deleted.durable)
                    && let Some(queue) = ledger.queues.get_mut(&key)
                {
                    queue.deleted = true;
                }
            }
            Err(refusal) => ledger.violated("queues can be deleted", format!("{name}: {refusal:?}")),
        }
        self.take_all(ledger);
        for client in &mut self.clients {
            client.consumers.retain(|consumer| consumer.key != key);
        }
    }
}
