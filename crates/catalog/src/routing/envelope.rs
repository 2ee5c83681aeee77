//! What routing looks at.

use super::hash_on::mix;
use crate::node::NodeId;
use model::properties::Properties;
use model::{DeduplicationKey, QueueId, cache_ttl_ms, delay_ms};
use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;
use std::fmt;

/// The outside of a message: its routing key (or several, with those that its headers `CC` and `BCC` name), and its
/// properties if an exchange on the way asks for them.
///
/// It notes what was looked at, so that a route can be remembered for messages that are alike in this.
#[derive(Debug)]
pub struct Envelope<'a> {
    routing_keys: SmallVec<[&'a [u8]; 1]>,
    properties: Properties<'a>,
    chance: u64,
    /// Its delay, if it has one, is over.
    waited: bool,
    looked: Looked,
    /// How many steps its routing took.
    steps: usize,
    /// The node that routes it, if there are others.
    at: Option<NodeId>,
    /// It goes to the memory of each deduplication exchange, also to one on this node.
    to_memories: bool,
    /// It came to a deduplication exchange whose memory is on this node.
    met_memory: bool,
    /// Knows what has passed; without it nothing counts as passed.
    filter: Option<&'a dyn DeduplicationFilter>,
}

/// Knows which messages have passed deduplication exchanges.
pub trait DeduplicationFilter: fmt::Debug {
    /// Notes that a message with this key passes, and wants that to be known for so long, in milliseconds. True if one
    /// like it has passed before. `seen` is the id by which the exchange keeps its keys.
    fn has_passed(&self, seen: QueueId, key: DeduplicationKey, lifetime_ms: Option<u64>) -> bool;
}

/// How much of a message decided its route. Each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Looked {
    /// The routing key.
    AtKey,
    /// Its properties too, headers among them.
    AtProperties,
    /// Chance: the next message like this one may go elsewhere.
    AtChance,
    /// What has passed before: if there was no [`DeduplicationFilter`] to ask, another look with one is needed.
    AtThePast,
}

impl<'a> Envelope<'a> {
    /// A message with this routing key and these properties.
    pub fn new(routing_key: &'a [u8], properties: Properties<'a>) -> Self {
        Self {
            routing_keys: smallvec![routing_key],
            properties,
            chance: 0,
            waited: false,
            looked: Looked::AtKey,
            steps: 0,
            at: None,
            to_memories: false,
            met_memory: false,
            filter: None,
        }
    }

    /// A message with several routing keys, its own first: a binding that any of them matches takes it.
    pub fn with_keys(routing_keys: &[&'a [u8]], properties: Properties<'a>) -> Self {
        Self {
            routing_keys: routing_keys.into(),
            ..Self::new(b"", properties)
        }
    }

    /// Any number that is another one for the next message: exchanges that choose by chance go by it.
    #[must_use]
    pub fn with_chance(mut self, chance: u64) -> Self {
        self.chance = chance;
        self
    }

    /// A message that has waited for its time: delayed exchanges let it pass.
    #[must_use]
    pub fn that_waited(mut self) -> Self {
        self.waited = true;
        self
    }

    /// The node that routes it. What reaches a deduplication exchange that another node remembers for goes there as it is, under
    /// the id by which the exchange keeps its keys.
    #[must_use]
    pub fn at(mut self, node: NodeId) -> Self {
        self.at = Some(node);
        self
    }

    /// What reaches a deduplication exchange goes to where that remembers as it is, also if that is on this node: from there it
    /// goes on as what other nodes send.
    #[must_use]
    pub fn to_memories(mut self) -> Self {
        self.to_memories = true;
        self
    }

    /// True if it came to a deduplication exchange whose memory is on this node, whether it has a key or not.
    pub fn has_met_memory(&self) -> bool {
        self.met_memory
    }

    /// The filter that deduplication exchanges ask. Only for a message that is really routed, and not only looked at: a filter
    /// remembers what it is asked about.
    #[must_use]
    pub fn with_filter(mut self, filter: &'a dyn DeduplicationFilter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// How much has been looked at so far.
    pub fn looked(&self) -> Looked {
        self.looked
    }

    /// How many steps have been taken to route it: nodes that topic and headers exchanges visited, conditions that they
    /// looked for, and bindings that lead to queues, some ten nanoseconds each.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// An exchange needed so many steps.
    pub(crate) fn took(&mut self, steps: usize) {
        self.steps += steps;
    }

    /// All keys.
    pub(crate) fn routing_keys(&self) -> &[&'a [u8]] {
        &self.routing_keys
    }

    /// The message's own key.
    pub(crate) fn routing_key(&self) -> &'a [u8] {
        self.routing_keys.first().copied().unwrap_or_default()
    }

    pub(crate) fn properties(&mut self) -> Properties<'a> {
        self.looked = self.looked.max(Looked::AtProperties);
        self.properties
    }

    /// The encoded headers; empty if there are none.
    pub(crate) fn headers(&mut self) -> Cow<'a, [u8]> {
        self.properties().headers().unwrap_or_default()
    }

    /// True if a delayed exchange keeps it for some time.
    pub(crate) fn must_wait(&mut self) -> bool {
        !self.waited && delay_ms(self.properties()) > 0
    }

    /// True if it goes to the memory of a deduplication exchange of this node as it is.
    pub(crate) fn is_away_from(&self, home: NodeId) -> bool {
        self.to_memories || self.at.is_some_and(|at| at != home)
    }

    /// True if a message like this one has passed the exchange that keeps its keys by this id.
    pub(crate) fn has_passed(&mut self, seen: QueueId) -> bool {
        self.met_memory = true;
        let properties = self.properties();
        if !DeduplicationKey::is_in(properties) {
            return false;
        }
        self.looked = Looked::AtThePast;
        // The digest costs the most, and only a filter needs it.
        let Some(filter) = self.filter else {
            return false;
        };
        DeduplicationKey::of(properties)
            .is_some_and(|key| filter.has_passed(seen, key, cache_ttl_ms(properties)))
    }

    /// A number by chance, for each exchange on the way another one.
    pub(crate) fn chance(&mut self) -> u64 {
        self.looked = self.looked.max(Looked::AtChance);
        self.chance = mix(self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15));
        self.chance
    }
}
