//! Groups of readers (single active consumers) whose stream several nodes have: the node that leads knows them, and has names of
//! its own for readers of other nodes; those say who of theirs has joined.
//!
//! | Step done | Then | There afterwards |
//! |---|---|---|
//! | a reader has joined | the link breaks, or its node ends | its leader takes it out; its node tells its client so |
//! | the same | another node leads | both nodes tell their clients that it is over, who join anew |
//! | it was told that it is active | the link breaks before it hears it | as before: it never was |
//! | it was told that it is not | the link breaks | it counts as gone; until its node knows, it may read beside the next one |

use crate::groups::NodeId;
use model::ConsumerId;
use std::collections::{BTreeMap, BTreeSet};

/// Who watches without joining a group for so long where another node leads, came to publish, and is told that it cannot. In
/// milliseconds.
const JOINS_WITHIN_MS: u64 = 1_000;

/// What a node knows of readers in groups beside the groups.
#[derive(Debug, Default)]
pub(super) struct FarGroups {
    /// Where this node leads: its names for readers of others, and theirs.
    names: BTreeMap<(NodeId, ConsumerId), ConsumerId>,
    whose: BTreeMap<ConsumerId, (NodeId, ConsumerId)>,
    /// Where another one leads: this node's readers that have joined, and those that have come, with when they did.
    joined: BTreeSet<ConsumerId>,
    come: BTreeMap<ConsumerId, u64>,
}

impl FarGroups {
    /// The name for another node's reader.
    pub fn of_node(
        &mut self,
        node: NodeId,
        reader: ConsumerId,
        new: impl FnOnce() -> ConsumerId,
    ) -> ConsumerId {
        let id = *self.names.entry((node, reader)).or_insert_with(new);
        self.whose.insert(id, (node, reader));
        id
    }

    /// The same of one that has a name.
    pub fn known(&self, node: NodeId, reader: ConsumerId) -> Option<ConsumerId> {
        self.names.get(&(node, reader)).copied()
    }

    /// Whose reader has this name.
    pub fn whose(&self, id: ConsumerId) -> Option<(NodeId, ConsumerId)> {
        self.whose.get(&id).copied()
    }

    /// It reads no more. Its name.
    pub fn forget(&mut self, node: NodeId, reader: ConsumerId) -> Option<ConsumerId> {
        let id = self.names.remove(&(node, reader))?;
        self.whose.remove(&id);
        Some(id)
    }

    /// A node cannot be spoken to: the names of its readers, which are gone.
    pub fn forget_all(&mut self, node: NodeId) -> Vec<ConsumerId> {
        let of_node = self.names.keys().filter(|(it, _)| *it == node).copied();
        let of_node: Vec<(NodeId, ConsumerId)> = of_node.collect();
        let gone = of_node.into_iter();
        gone.filter_map(|(node, reader)| self.forget(node, reader))
            .collect()
    }

    /// A reader of this node has come, and says next whether it joins a group.
    pub fn comes(&mut self, reader: ConsumerId, now_ms: u64) {
        self.come.insert(reader, now_ms);
    }

    /// It joins one.
    pub fn joins(&mut self, reader: ConsumerId) {
        if self.come.remove(&reader).is_some() {
            self.joined.insert(reader);
        }
    }

    /// It reads no more. True if it was in a group.
    pub fn goes(&mut self, reader: ConsumerId) -> bool {
        self.come.remove(&reader);
        self.joined.remove(&reader)
    }

    /// Those that were in groups, and are in none any more.
    pub fn take_joined(&mut self) -> BTreeSet<ConsumerId> {
        std::mem::take(&mut self.joined)
    }

    /// Those that have not joined one in time.
    pub fn take_late(&mut self, now_ms: u64) -> BTreeSet<ConsumerId> {
        let late = self
            .come
            .iter()
            .filter(|(_, since)| **since + JOINS_WITHIN_MS <= now_ms);
        let late: BTreeSet<ConsumerId> = late.map(|(reader, _)| *reader).collect();
        self.come.retain(|reader, _| !late.contains(reader));
        late
    }

    /// When [`take_late`](Self::take_late) is to be asked, in milliseconds since the Unix epoch; `u64::MAX` for never.
    pub fn wakes_at_ms(&self) -> u64 {
        let first = self.come.values().min();
        first.map_or(u64::MAX, |since| since + JOINS_WITHIN_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NodeId = NodeId(1);
    const OTHER: NodeId = NodeId(2);

    #[test]
    fn readers_of_two_nodes_with_one_number_are_two_and_go_with_their_nodes() {
        let mut groups = FarGroups::default();
        let reader = ConsumerId(7);
        let mut name = |node, id| groups.of_node(node, reader, || ConsumerId(id));
        assert_eq!((name(ONE, 70), name(OTHER, 71)), (ConsumerId(70), ConsumerId(71)));
        assert_eq!(name(ONE, 72), ConsumerId(70), "it has one");
        assert_eq!(groups.whose(ConsumerId(71)), Some((OTHER, reader)));
        assert_eq!(groups.forget_all(ONE), [ConsumerId(70)]);
        assert_eq!(
            (groups.known(ONE, reader), groups.whose(ConsumerId(70))),
            (None, None)
        );
        assert_eq!(groups.forget(OTHER, reader), Some(ConsumerId(71)));
        assert_eq!(groups.forget(OTHER, reader), None);
    }

    #[test]
    fn whoever_comes_and_joins_no_group_is_late_after_a_second() {
        let mut groups = FarGroups::default();
        let [joins, waits, goes] = [1, 2, 3].map(ConsumerId);
        for reader in [joins, waits, goes] {
            groups.comes(reader, 5_000);
        }
        groups.joins(joins);
        assert!(!groups.goes(goes), "it was in none");
        assert_eq!(groups.wakes_at_ms(), 6_000);
        assert_eq!(groups.take_late(5_999), BTreeSet::new());
        assert_eq!(groups.take_late(6_000), BTreeSet::from([waits]));
        assert_eq!(
            (groups.take_late(9_000), groups.wakes_at_ms()),
            (BTreeSet::new(), u64::MAX)
        );
        assert_eq!(groups.take_joined(), BTreeSet::from([joins]));
        assert!(!groups.goes(joins));
    }
}
