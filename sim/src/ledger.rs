//! What the clients know: which messages they published, what they were told, what they did with them.

use crate::mutant::Mutant;
use std::collections::{BTreeMap, BTreeSet};

/// A message's name; it stands in its body.
pub type Id = u64;

/// A queue, from one declaration to its deletion. Names are used again, these are not.
pub type QueueKey = u64;

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which invariant.
    pub invariant: &'static str,
    pub what: String,
}

/// A copy of a message in a queue, as far as its clients know.
#[derive(Debug, Clone, Default)]
pub struct Copy {
    /// Who published it.
    pub publisher: u32,
    pub persistent: bool,
    /// The queue has taken responsibility for it.
    pub confirmed: bool,
    /// When it was handed to the node, in the order of all that was.
    pub published_at: u64,
    /// Somebody has seen it.
    pub delivered: bool,
    /// A consumer holds it.
    pub held: bool,
    /// When a consumer was done with it, or a purge took it.
    pub gone_at: Option<u64>,
    /// In which life of the node.
    pub gone_in: u32,
    /// That is durable.
    pub gone_for_good: bool,
}

impl Copy {
    /// It may be gone or not: its queue was to be deleted when the node ended, and is there.
    pub fn doubt(&mut self) {
        self.gone_at = self.gone_at.or(Some(0));
    }
}

/// A queue as its clients know it.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    pub name: String,
    pub durable: bool,
    /// The declaration was answered.
    pub declared: bool,
    /// The deletion was asked for; it may or may not have come to pass.
    pub doomed: bool,
    /// The deletion was answered.
    pub deleted: bool,
    pub copies: BTreeMap<Id, Copy>,
    /// The last new message of each publisher that each consumer was given in this life.
    pub last_new: BTreeMap<(u64, u32), Id>,
}

/// Everything.
#[derive(Debug, Default)]
pub struct Ledger {
    pub queues: BTreeMap<QueueKey, Queue>,
    /// The queue that has a name now.
    pub by_name: BTreeMap<String, QueueKey>,
    /// Which keys of the exchange lead to which queues.
    pub bindings: BTreeSet<(String, QueueKey)>,
    /// Whatever is handed to the node gets a number.
    pub clock: u64,
    pub life: u32,
    /// What the node is made to do wrong.
    pub mutant: Option<Mutant>,
    pub violations: Vec<Violation>,
    /// A sum over all that happened, to see whether a seed does the same again.
    pub digest: u64,
    /// How much happened, for whoever wonders whether anything did.
    pub confirms: u64,
    pub deliveries: u64,
    pub acks: u64,
    /// The last key that was given out.
    pub last_key: QueueKey,
}

impl Ledger {
    /// Whether the node is made to do this wrong.
    pub fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// Something is handed to the node.
    pub fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Mixes something that happened into the digest.
    pub fn note(&mut self, what: u64) {
        self.digest = (self.digest.rotate_left(5) ^ what).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    pub fn violated(&mut self, invariant: &'static str, what: String) {
        self.violations.push(Violation { invariant, what });
    }

    /// Somebody is done with a message, or it was purged.
    pub fn gone(&mut self, key: QueueKey, id: Id) {
        let (at, life) = (self.tick(), self.life);
        let copy = self
            .queues
            .get_mut(&key)
            .and_then(|queue| queue.copies.get_mut(&id));
        if let Some(copy) = copy {
            (copy.held, copy.gone_at, copy.gone_in) = (false, Some(at), life);
        }
    }

    /// A queue is about to be declared.
    pub fn declare(&mut self, name: &str, durable: bool) -> QueueKey {
        self.last_key += 1;
        let queue = Queue {
            name: name.to_owned(),
            durable,
            ..Queue::default()
        };
        self.queues.insert(self.last_key, queue);
        self.by_name.insert(name.to_owned(), self.last_key);
        self.last_key
    }

    /// The queue of this name.
    pub fn named(&self, name: &str) -> Option<QueueKey> {
        self.by_name.get(name).copied()
    }

    /// Where a message with this key goes through the exchange.
    pub fn routed(&self, key: &str) -> Vec<QueueKey> {
        let bound = self.bindings.iter().filter(|(of, _)| of == key);
        bound.map(|(_, queue)| *queue).collect()
    }

    /// A queue has confirmed a message: everything that was handed to the node before that message is durable, if the message is.
    pub fn confirmed(&mut self, id: Id, to: &[QueueKey]) {
        self.confirms += 1;
        let mut durable_until = 0;
        for key in to {
            let Some(queue) = self.queues.get_mut(key) else {
                continue;
            };
            let durable = queue.durable;
            if let Some(copy) = queue.copies.get_mut(&id) {
                copy.confirmed = true;
                if durable && copy.persistent {
                    durable_until = durable_until.max(copy.published_at);
                }
            }
        }
        self.durable_until(durable_until);
    }

    /// What was handed to the node in this life until then is durable. What was handed to it in an earlier life is
    /// durable or lost: the end of that life has decided it.
    pub fn durable_until(&mut self, until: u64) {
        let life = self.life;
        for copy in self.queues.values_mut().flat_map(|it| it.copies.values_mut()) {
            copy.gone_for_good |= copy.gone_in == life && copy.gone_at.is_some_and(|at| at < until);
        }
    }

    /// The node has ended; in good order if `closed`.
    pub fn ended(&mut self, closed: bool) {
        if closed {
            self.durable_until(u64::MAX);
        }
        self.life += 1;
        let durable: BTreeSet<QueueKey> = (self.queues.iter())
            .filter(|(_, queue)| queue.durable && !queue.deleted)
            .map(|(key, _)| *key)
            .collect();
        self.by_name.retain(|_, key| durable.contains(key));
        self.bindings.retain(|(_, key)| durable.contains(key));
        self.queues.retain(|key, _| durable.contains(key));
        for queue in self.queues.values_mut() {
            queue.last_new.clear();
            // What is not persistent does not outlive a restart.
            queue.copies.retain(|_, copy| copy.persistent);
            for copy in queue.copies.values_mut() {
                copy.held = false;
            }
        }
    }
}
