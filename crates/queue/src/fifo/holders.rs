//! Which nodes may hold something of a replicated queue: those that had a consumer, or asked for a message. It is on record
//! before they are given the first one, so whoever decides next waits for these alone, and for no node that went down with
//! nothing of the queue. One that counts as down stays one of them: it may have been given something before it knew, and is to
//! hear that this does not count before somebody else is given the same.

use super::{Classic, Ends, FifoOutcome, Record};
use model::{Incarnation, Mutant};

/// By rising incarnation; `None` if it may be any node. Part of the contents: records make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holders(Option<Vec<Incarnation>>);

impl Default for Holders {
    /// Nobody was given anything.
    fn default() -> Self {
        Self(Some(Vec::new()))
    }
}

impl Holders {
    /// What a record or a checkpoint says.
    pub fn of(nodes: Option<Vec<Incarnation>>) -> Self {
        Self(nodes)
    }

    /// What a record or a checkpoint is to say.
    pub(super) fn nodes(&self) -> Option<&[Incarnation]> {
        self.0.as_deref()
    }

    /// Whether this node may hold something.
    pub(super) fn may_be(&self, node: Incarnation) -> bool {
        self.0.as_ref().is_none_or(|nodes| nodes.contains(&node))
    }

    /// Messages were handed out. If nobody is known to whom, the build that did so had no record of that.
    pub(super) fn are_given(&mut self) {
        if self.0.as_ref().is_some_and(Vec::is_empty) && !Mutant::ForgetsHolders.is_on() {
            self.0 = None;
        }
    }

    /// This node holds nothing. True if it was known that it may.
    pub(super) fn forget(&mut self, node: Incarnation) -> bool {
        let Some(nodes) = &mut self.0 else { return false };
        let before = nodes.len();
        nodes.retain(|it| *it != node);
        nodes.len() < before
    }

    fn is_known(&self) -> bool {
        self.0.is_some()
    }

    fn insert(&mut self, node: Incarnation) {
        let nodes = self.0.get_or_insert_default();
        if let Err(at) = nodes.binary_search(&node) {
            nodes.insert(at, node);
        }
    }
}

impl<E: Ends> Classic<E> {
    /// This node may hold something from now on; `None` if nobody says which one.
    pub(super) fn may_hold(&mut self, node: Option<Incarnation>, outcome: &mut FifoOutcome<E>) {
        if !self.settings.replicated {
            return;
        }
        match (node, &mut self.reattaching) {
            (Some(node), _) if self.holders.is_known() && self.holders.may_be(node) => return,
            // Nobody knows yet who else does.
            (Some(node), Some(it)) if !self.holders.is_known() => {
                it.has_heard_of(node);
                return;
            }
            (Some(node), _) => self.holders.insert(node),
            (None, _) if self.holders.is_known() => self.holders = Holders::of(None),
            (None, _) => return,
        }
        self.record_holders(outcome);
    }

    /// Whether nobody who asks for a message now is given one.
    pub(super) fn has_nothing_to_give(&self) -> bool {
        self.reattaching.is_none() && self.lanes.ready() == 0
    }

    /// A message is asked for, without saying from which node: by whoever was named before, or by nobody that is known.
    pub(super) fn may_be_held(&mut self, outcome: &mut FifoOutcome<E>) {
        if self.has_nothing_to_give() {
            return;
        }
        let is_nobody = self.holders.nodes().is_some_and(<[Incarnation]>::is_empty);
        if is_nobody && self.reattaching.is_none() {
            self.may_hold(None, outcome);
        }
    }

    /// This node has nothing and asks for nothing.
    pub(super) fn holds_nothing(&mut self, node: Incarnation, outcome: &mut FifoOutcome<E>) {
        let consumes = self.consumers.ring.has_one_of(node);
        if self.settings.replicated && !consumes && self.holders.forget(node) {
            self.record_holders(outcome);
        }
    }

    /// All have said what they hold: these do, if that is not on record.
    pub(super) fn holders_are(
        &mut self,
        nodes: impl IntoIterator<Item = Incarnation>,
        outcome: &mut FifoOutcome<E>,
    ) {
        if self.settings.replicated && !self.holders.is_known() {
            self.holders = Holders::default();
            nodes.into_iter().for_each(|node| self.holders.insert(node));
            self.record_holders(outcome);
        }
    }

    fn record_holders(&self, outcome: &mut FifoOutcome<E>) {
        if !Mutant::ForgetsHolders.is_on() {
            let nodes = self.holders.nodes().map(Vec::from);
            outcome.records.push(Record::MayHold { nodes });
        }
    }
}
