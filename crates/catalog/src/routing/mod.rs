//! How routing keys and headers find destinations.
//!
//! [`envelope`] is what they are found in. [`key`] is a byte string that is found fast, [`targets`] a counted set of
//! destinations, [`branches`] the nodes of a trie behind another, [`topic`] the trie of patterns, [`headers`] the index
//! of conditions, [`spread`] the choice of one destination by a hash ([`hash_on`]) or by chance.

pub(crate) mod branches;
pub mod envelope;
pub(crate) mod hash_on;
pub(crate) mod headers;
pub(crate) mod key;
pub(crate) mod spread;
pub(crate) mod targets;
pub(crate) mod topic;

pub use envelope::{DeduplicationFilter, Envelope, Looked};
pub(crate) use hash_on::HashOn;
use headers::{HeaderIndex, HeaderMatch};
pub(crate) use key::{Key, Sought};
pub(crate) use spread::Spread;
pub(crate) use targets::Targets;
pub(crate) use topic::Trie;

use crate::Name;
use crate::binding::Binding;
use imbl::OrdMap;
use model::QueueId;
use smallvec::SmallVec;
use std::sync::Arc;

/// An exchange's bindings in the form that suits its kind.
#[derive(Clone, Debug)]
pub(crate) enum Routes {
    Direct(OrdMap<Key, Targets>),
    Fanout(Targets),
    Topic(Trie),
    Headers(HeaderIndex),
    Spread(Spread),
}

impl Routes {
    pub(crate) fn direct() -> Self {
        Self::Direct(OrdMap::new())
    }

    pub(crate) fn fanout() -> Self {
        Self::Fanout(Targets::default())
    }

    pub(crate) fn topic() -> Self {
        Self::Topic(Trie::default())
    }

    pub(crate) fn headers() -> Self {
        Self::Headers(HeaderIndex::default())
    }

    /// Adds a binding that was not there.
    pub(crate) fn add(&mut self, binding: &Binding) {
        match self {
            Self::Direct(keys) => match keys.get_mut(&Sought::new(&binding.routing_key)) {
                Some(targets) => targets.add(&binding.target),
                None => {
                    let mut targets = Targets::default();
                    targets.add(&binding.target);
                    keys.insert(Key::new(&binding.routing_key), targets);
                }
            },
            Self::Fanout(targets) => targets.add(&binding.target),
            Self::Topic(trie) => trie.add(&binding.routing_key, &binding.target),
            Self::Headers(index) => index.add(&HeaderMatch::of(binding), &binding.target),
            Self::Spread(spread) => spread.add(&binding.routing_key, &binding.target),
        }
    }

    /// Takes out a binding that was there.
    pub(crate) fn remove(&mut self, binding: &Binding) {
        match self {
            Self::Direct(keys) => {
                let key = Sought::new(&binding.routing_key);
                let Some(targets) = keys.get_mut(&key) else {
                    return;
                };
                targets.remove(&binding.target);
                if targets.is_empty() {
                    keys.remove(&key);
                }
            }
            Self::Fanout(targets) => targets.remove(&binding.target),
            Self::Topic(trie) => trie.remove(&binding.routing_key, &binding.target),
            Self::Headers(index) => index.remove(&HeaderMatch::of(binding), &binding.target),
            Self::Spread(spread) => spread.remove(&binding.routing_key, &binding.target),
        }
    }

    /// Gives everything that a message goes to from here, perhaps more than once.
    pub(crate) fn find(&self, envelope: &mut Envelope<'_>, found: &mut Found<'_>) {
        match self {
            Self::Direct(keys) => {
                for key in envelope.routing_keys() {
                    if let Some(targets) = keys.get(&Sought::new(key)) {
                        targets.give(found);
                    }
                }
            }
            Self::Fanout(targets) => targets.give(found),
            Self::Topic(trie) => {
                let keys = envelope.routing_keys().iter();
                let visited = keys.map(|key| trie.find(key, found)).sum();
                envelope.took(visited);
            }
            Self::Headers(index) => {
                let walked = index.find(&envelope.headers(), found);
                envelope.took(walked.steps());
            }
            Self::Spread(spread) => spread.find(envelope, found),
        }
    }
}

impl Routes {
    /// The ring of an exchange that hashes consistently; `None` for others.
    pub(crate) fn buckets(&self) -> Option<Arc<spread::Ring>> {
        match self {
            Self::Spread(spread) => spread.buckets(),
            _ => None,
        }
    }
}

/// What routing has found so far.
pub(crate) struct Found<'a> {
    /// Queues, perhaps repeated.
    pub(crate) queues: &'a mut SmallVec<[QueueId; 8]>,
    /// Exchanges that are still to be asked, perhaps repeated.
    pub(crate) exchanges: SmallVec<[Name; 4]>,
}

impl Found<'_> {
    /// How much has been found by now.
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.queues.len(), self.exchanges.len())
    }

    /// How much has been found since, repetitions counted.
    pub(crate) fn since(&self, (queues, exchanges): (usize, usize)) -> usize {
        self.queues.len() - queues + self.exchanges.len() - exchanges
    }

    /// Drops repetitions of what has been found since, and says how much is left.
    pub(crate) fn distinct_since(&mut self, begin: (usize, usize)) -> usize {
        distinct_from(self.queues, begin.0);
        distinct_from(&mut self.exchanges, begin.1);
        self.since(begin)
    }

    fn add(&mut self, target: &crate::binding::Target) {
        match target {
            crate::binding::Target::Queue(id) => self.queues.push(*id),
            crate::binding::Target::Exchange(name) => self.exchanges.push(name.clone()),
        }
    }
}

/// Each of those from `begin` on once.
fn distinct_from<A: smallvec::Array>(list: &mut SmallVec<A>, begin: usize)
where
    A::Item: Ord,
{
    let mut rest: Vec<_> = list.drain(begin..).collect();
    rest.sort_unstable();
    rest.dedup();
    list.extend(rest);
}
