//! How routing keys and headers find destinations.
//!
//! [`key`] is a byte string that is found fast, [`targets`] a counted set of destinations, [`topic`] the trie of patterns, [`headers`] the comparison of headers.

pub(crate) mod headers;
pub(crate) mod key;
pub(crate) mod targets;
pub(crate) mod topic;

pub(crate) use headers::{HeaderMatch, Headers};
pub(crate) use key::{Key, Sought};
pub(crate) use targets::Targets;
pub(crate) use topic::Trie;

use crate::binding::{Binding, BySource};
use crate::{ExchangeKind, Name};
use imbl::{OrdMap, OrdSet};
use model::QueueId;
use smallvec::SmallVec;

/// An exchange's bindings in the form that suits its kind. A headers exchange has to look at all of them anyway.
#[derive(Clone, Debug)]
pub(crate) enum Routes {
    Direct(OrdMap<Key, Targets>),
    Fanout(Targets),
    Topic(Trie),
    Headers,
}

impl Routes {
    pub(crate) fn new(kind: ExchangeKind) -> Self {
        match kind {
            ExchangeKind::Direct => Self::Direct(OrdMap::new()),
            ExchangeKind::Fanout => Self::Fanout(Targets::default()),
            ExchangeKind::Topic => Self::Topic(Trie::default()),
            ExchangeKind::Headers => Self::Headers,
        }
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
            Self::Headers => {}
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
            Self::Headers => {}
        }
    }

    /// Gives everything that a message goes to from here, perhaps more than once.
    pub(crate) fn find(
        &self,
        outgoing: &OrdSet<BySource>,
        routing_key: &[u8],
        headers: &mut Headers<'_>,
        found: &mut Found<'_>,
    ) {
        match self {
            Self::Direct(keys) => {
                if let Some(targets) = keys.get(&Sought::new(routing_key)) {
                    targets.give(found);
                }
            }
            Self::Fanout(targets) => targets.give(found),
            Self::Topic(trie) => {
                trie.find(routing_key, found);
            }
            Self::Headers => {
                if outgoing.is_empty() {
                    return;
                }
                let headers = headers.sorted();
                for BySource(binding) in outgoing {
                    if binding
                        .headers
                        .as_ref()
                        .is_some_and(|wanted| wanted.accepts(&headers))
                    {
                        found.add(&binding.target);
                    }
                }
            }
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
    fn add(&mut self, target: &crate::binding::Target) {
        match target {
            crate::binding::Target::Queue(id) => self.queues.push(*id),
            crate::binding::Target::Exchange(name) => self.exchanges.push(name.clone()),
        }
    }
}
