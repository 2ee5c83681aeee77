//! What the clients know: which messages they published, what they were told, what they did with them.

use crate::coverage::{Act, Coverage};
use crate::mutant::Mutant;
use crate::routes::{Colour, Exchange};
use crate::terms::{DEAD_LETTERS, Said, Terms};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Clocks count in milliseconds, and make up for small differences: something may be due so much earlier.
const EARLY: Duration = Duration::from_millis(20);

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
    /// Its priority or its tenant, in a queue that sorts by it.
    pub lane: u8,
    /// What duplicates of it have, too.
    pub key: Option<u8>,
    /// In which life of the node it was published.
    pub published_in: u32,
    /// When.
    pub published: Duration,
    /// From then on it is expired.
    pub deadline: Option<Duration>,
    /// From then on it may be, since a policy may have said so.
    pub may_expire: Option<Duration>,
    /// How often it has come back, at most.
    pub returns: u32,
    /// Why the queue may have let it go.
    pub excuse: Option<Excuse>,
    /// A consumer did not want it.
    pub rejected: bool,
    /// One did not want it, perhaps before the end of a life undid that.
    pub was_rejected: bool,
    /// A purge may have taken it, whatever was in doubt then.
    pub was_purged: bool,
    /// The only queue that it went to has refused it.
    pub is_refused: bool,
    /// The queue may be full without it.
    pub may_be_refused: bool,
    /// How often it came for the first time in this life.
    pub arrivals: u32,
}

/// Why a queue may have let a message go without a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excuse {
    Full,
    CameBackTooOften,
    /// It was never taken, since one like it was there.
    Duplicate,
    /// It was never taken: the publisher knows.
    Refused,
    /// The queue was about to go.
    Leaving,
    /// It was purged if it did not wait to be tried again, and was not on its way as a dead letter.
    Purged,
}

impl Copy {
    pub fn is_excused(&self, now: Duration) -> bool {
        self.excuse.is_some() || self.may_expire.is_some_and(|at| at <= now + EARLY)
    }

    /// Nobody can say in this life that it is not in its queue.
    fn may_be_there(&self, life: u32) -> bool {
        // What was rejected waits until it has arrived as a dead letter; the end of a life may bring it back.
        let is_kept = self.gone_for_good && !self.rejected;
        let is_gone = self.gone_at.is_some() && (is_kept || self.gone_in == life);
        // Of several queues nobody knows which one has refused it.
        !is_gone && !self.is_refused
    }

    /// It may wait until it is tried again: then it is not ready. After a crash a queue takes everything for returned.
    pub fn may_wait(&self, terms: &Terms, life: u32) -> bool {
        terms.retry_ms.is_some() && (self.returns > 0 || self.published_in < life)
    }
}

/// A queue as its clients know it.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    pub name: String,
    pub terms: Terms,
    /// The client that alone may use it.
    pub owner: Option<usize>,
    /// Dead letters of the queue without the prefix come here.
    pub has_dead_letters: bool,
    /// When somebody consumed from it last, or declared it.
    pub used: Duration,
    /// It is about to go: its last consumer has left, or its connection.
    pub leaving: bool,
    /// Somebody has consumed from it.
    pub was_used: bool,
    /// The declaration was answered.
    pub declared: bool,
    /// The deletion was asked for; it may or may not have come to pass.
    pub doomed: bool,
    /// The deletion was answered.
    pub deleted: bool,
    pub copies: BTreeMap<Id, Copy>,
    /// The consumer that had the last message, where only one is active.
    pub active: Option<u64>,
    /// Somebody consumes without acknowledgements, or did in this life: what goes there at once leaves nothing to be synced.
    pub may_send_unrecorded: bool,
    /// The consumers that have left in this life.
    pub left: BTreeSet<u64>,
    /// The last new message of each publisher that each consumer was given in this life.
    pub last_new: BTreeMap<(u64, u32, u8), Id>,
}

/// What a policy says.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub max_length: Option<u64>,
    pub ttl_ms: Option<u64>,
}

impl Rule {
    /// The names of the queues that the policy is for.
    pub const PATTERN: &'static str = "^[ab]$";

    fn is_for(name: &str) -> bool {
        matches!(name, "a" | "b")
    }
}

/// Everything.
#[derive(Debug, Default)]
pub struct Ledger {
    pub queues: BTreeMap<QueueKey, Queue>,
    /// The queue that has a name now.
    pub by_name: BTreeMap<String, QueueKey>,
    /// Which keys of the exchange lead to which queues.
    pub bindings: BTreeSet<(Exchange, Colour, QueueKey)>,
    /// The policies that may be in force.
    pub rules: Vec<Rule>,
    /// What was published to queues with dead letters: where it would come as one, and from which queue.
    pub may_die: BTreeMap<(String, Id), QueueKey>,
    /// Dead letters that somebody was done with.
    pub settled_dead: BTreeSet<(String, Id)>,
    /// What was found when queues were drained in the end.
    pub found: BTreeSet<(QueueKey, Id)>,
    /// The queues for dead letters are there for good.
    pub can_die: bool,
    /// The time, since the beginning of the simulation.
    pub now: Duration,
    /// Whatever is handed to the node gets a number.
    pub clock: u64,
    pub life: u32,
    /// What the node is made to do wrong.
    pub mutant: Option<Mutant>,
    pub violations: Vec<Violation>,
    /// What happened, in words, if somebody wants to read it.
    pub story: Option<Vec<String>>,
    /// What the seed has reached.
    pub coverage: Coverage,
    /// A sum over all that happened, to see whether a seed does the same again.
    pub digest: u64,
    /// How much happened, for whoever wonders whether anything did.
    pub confirms: u64,
    pub deliveries: u64,
    pub acks: u64,
    pub refusals: u64,
    pub dead_letters: u64,
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

    /// Something that the report of the coverage names has happened.
    pub fn did(&mut self, act: Act) {
        self.coverage.did(act);
    }

    /// Mixes something that happened into the digest.
    pub fn note(&mut self, what: u64) {
        self.digest = (self.digest.rotate_left(5) ^ what).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// Writes down what happens.
    pub fn tell(&mut self, what: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(format!("{:?} {}", self.now, what()));
        }
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
            copy.rejected = false;
        }
    }

    /// A message is about to be published to a queue.
    pub fn published(&mut self, key: QueueKey, id: Id, publisher: u32, said: &Said) {
        self.did(match said.persistent {
            true => Act::PublishedPersistent,
            false => Act::PublishedTransient,
        });
        let rules = self.rules.clone();
        let (now, life) = (self.now, self.life);
        let Some(queue) = self.queues.get_mut(&key) else {
            return;
        };
        let terms = &queue.terms;
        let after = |ms: Option<u64>| ms.map(|ms| now + Duration::from_millis(ms));
        let deadline = after(terms.ttl_ms)
            .into_iter()
            .chain(after(said.expiration_ms))
            .min();
        let lane = match (terms.max_priority, terms.is_fair) {
            (0, true) => said.tenant.map_or(0, |tenant| tenant + 1),
            (0, false) => 0,
            (most, _) => said.priority.unwrap_or(0).min(most),
        };
        let mut copy = Copy {
            publisher,
            persistent: said.persistent,
            published_at: id,
            published_in: life,
            published: now,
            deadline,
            may_expire: deadline,
            lane,
            key: said.key,
            ..Copy::default()
        };
        let like = |other: &Copy| other.key == said.key && other.may_be_there(life);
        if terms.deduplicates && said.key.is_some() && queue.copies.values().any(like) {
            copy.excuse = Some(Excuse::Duplicate);
        }
        if queue.may_leave(now) {
            copy.excuse = Some(Excuse::Leaving);
        }
        if terms.dead_letters {
            self.may_die
                .insert((format!("{DEAD_LETTERS}{}", queue.name), id), key);
        }
        queue.copies.insert(id, copy);
        queue.follow(&rules, life);
    }

    /// Whatever the policies that may be in force permit, the queues may have done.
    pub fn follow_rules(&mut self) {
        let (rules, life) = (self.rules.clone(), self.life);
        let queues = self.queues.values_mut();
        queues.for_each(|queue| queue.follow(&rules, life));
    }

    /// The queue may have let the message go, for one reason or the other.
    pub fn is_excused(&self, copy: &Copy) -> bool {
        copy.is_excused(self.now)
    }

    /// A message has come back to its queue.
    pub fn returned(&mut self, key: QueueKey, id: Id) {
        if let Some(queue) = self.queues.get_mut(&key) {
            queue.returned(id);
        }
    }

    /// A queue has refused a message.
    pub fn refused(&mut self, id: Id, to: &[QueueKey]) {
        let mut wrong = None;
        for key in to {
            let Some(queue) = self.queues.get_mut(key) else {
                continue;
            };
            if let Some(copy) = queue.copies.get_mut(&id) {
                if to.len() == 1 && !copy.may_be_refused {
                    wrong = Some(queue.name.clone());
                }
                copy.is_refused = to.len() == 1;
                copy.excuse = Some(Excuse::Refused);
            }
        }
        if let Some(name) = wrong {
            self.violated(
                "what fits is taken",
                format!("queue {name} has refused message {id}"),
            );
        }
    }

    /// The queue is gone, or may be.
    pub fn forget(&mut self, key: QueueKey) {
        self.did(Act::QueueLeft);
        self.by_name.retain(|_, known| *known != key);
        self.bindings.retain(|(_, _, of)| *of != key);
        if let Some(queue) = self.queues.get_mut(&key) {
            queue.doomed = true;
        }
    }

    /// A queue is about to be declared.
    pub fn declare(&mut self, name: &str, terms: Terms, client: usize) -> QueueKey {
        self.last_key += 1;
        let queue = Queue {
            name: name.to_owned(),
            owner: terms.exclusive.then_some(client),
            terms,
            used: self.now,
            ..Queue::default()
        };
        self.queues.insert(self.last_key, queue);
        self.by_name.insert(name.to_owned(), self.last_key);
        let queue = &self.queues[&self.last_key];
        let told = format!("{name} is declared by {client}: {:?}", queue.terms);
        self.tell(|| told);
        self.last_key
    }

    /// The queue of this name.
    pub fn named(&self, name: &str) -> Option<QueueKey> {
        self.by_name.get(name).copied()
    }

    /// Where a message of these colours goes through the exchange.
    pub fn routed(&self, exchange: Exchange, first: Colour, second: Colour) -> Vec<QueueKey> {
        let bound = self
            .bindings
            .iter()
            .filter(|(of, colour, _)| *of == exchange && exchange.takes(colour, first, second));
        let queues: BTreeSet<QueueKey> = bound.map(|(_, _, queue)| *queue).collect();
        queues.into_iter().collect()
    }

    /// A queue has confirmed a message: everything that was handed to the node before that message is durable, if the message is.
    pub fn confirmed(&mut self, id: Id, to: &[QueueKey]) {
        self.confirms += 1;
        self.did(Act::Confirmed);
        let mut durable_until = 0;
        let now = self.now;
        for key in to {
            let Some(queue) = self.queues.get_mut(key) else {
                continue;
            };
            let durable = queue.terms.survives() && !queue.may_send_unrecorded;
            if let Some(copy) = queue.copies.get_mut(&id) {
                copy.confirmed = true;
                // What was dropped at once left nothing to be synced.
                if durable && copy.persistent && !copy.is_excused(now) {
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
        let life = self.life;
        self.tell(|| format!("life {life} has ended, in good order: {closed}"));
        if closed {
            self.durable_until(u64::MAX);
        }
        self.life += 1;
        for queue in self.queues.values_mut() {
            queue.leaving |= queue.terms.auto_delete && queue.was_used;
        }
        let durable: BTreeSet<QueueKey> = (self.queues.iter())
            .filter(|(_, queue)| queue.terms.survives() && !queue.deleted)
            .map(|(key, _)| *key)
            .collect();
        self.by_name.retain(|_, key| durable.contains(key));
        self.bindings.retain(|(_, _, key)| durable.contains(key));
        self.queues.retain(|key, _| durable.contains(key));
        for queue in self.queues.values_mut() {
            queue.last_new.clear();
            queue.left.clear();
            queue.may_send_unrecorded = false;
            queue.active = None;
            // What is not persistent does not outlive a restart.
            queue.copies.retain(|_, copy| copy.persistent);
            let held: Vec<Id> = (queue.copies.iter())
                .filter(|(_, copy)| copy.held)
                .map(|(id, _)| *id)
                .collect();
            held.into_iter().for_each(|id| queue.returned(id));
            queue.copies.values_mut().for_each(|copy| copy.arrivals = 0);
        }
    }
}

impl Queue {
    /// Nobody has to keep it: its time is over, or who kept it has left.
    pub fn may_leave(&self, now: Duration) -> bool {
        let unused_until = |ms| self.used + Duration::from_millis(ms);
        let expires = self.terms.expires_ms.map(unused_until);
        self.leaving || expires.is_some_and(|at| at <= now + EARLY)
    }

    /// How many messages may be ready, if that is limited.
    fn limit(&self, rules: &[Rule]) -> Option<u64> {
        let ruled = rules.iter().filter(|_| Rule::is_for(&self.name));
        let limits = ruled.filter_map(|rule| rule.max_length);
        limits.chain(self.terms.max_length).min()
    }

    /// Notes what the queue may do by itself, as it is now.
    fn follow(&mut self, rules: &[Rule], life: u32) {
        for ttl_ms in rules.iter().filter_map(|rule| rule.ttl_ms) {
            if Rule::is_for(&self.name) {
                for copy in self.copies.values_mut() {
                    let at = copy.published + Duration::from_millis(ttl_ms);
                    copy.may_expire = Some(copy.may_expire.map_or(at, |known| known.min(at)));
                }
            }
        }
        let Some(limit) = self.limit(rules) else {
            return;
        };
        let refuses = self.terms.refuses;
        let there = self.copies.values_mut().filter(|copy| copy.may_be_there(life));
        let mut newest_first: Vec<&mut Copy> = there.rev().collect();
        let is_over = newest_first.len() as u64 > limit;
        if refuses {
            if let Some(newest) = newest_first.first_mut() {
                newest.may_be_refused |= is_over;
            }
            return;
        }
        // A queue that sorts drops whatever is at its head.
        let kept = if self.terms.sorts() && is_over { 0 } else { limit };
        for copy in newest_first.into_iter().skip(kept as usize) {
            copy.excuse.get_or_insert(Excuse::Full);
        }
    }

    fn returned(&mut self, id: Id) {
        let limit = self.terms.returns;
        if let Some(copy) = self.copies.get_mut(&id) {
            copy.held = false;
            copy.returns += 1;
            if limit.is_some_and(|limit| copy.returns > limit) {
                copy.excuse.get_or_insert(Excuse::CameBackTooOften);
            }
        }
    }
}
