//! Which nodes are to have a classic queue, as its policy says and as there are nodes. See decision note 61.

use crate::arguments::new_size;
use crate::node::{Node, NodeId};
use crate::policy::mirrors::Mode;
use crate::{Queue, View};

/// A majority of two is two: where there is a third node, it has a copy, too.
const FEWEST_THAT_SURVIVE: usize = 3;

impl View {
    /// The nodes that are to have a classic queue as its policy says, of which `leader` has it now: none but that one if no
    /// policy asks for mirrors. `None` for queues that no policy mirrors: those of other kinds, and exclusive ones, as in
    /// RabbitMQ. A quorum queue that was a classic one ([`Queue::awaits_members`]) has as many as a new one. Of nodes that are as
    /// good as each other those have it that have it already, or can be reached. Who is to have it, cannot be reached and has
    /// nothing of it yet (`has_copy`) is no better than any other node: it may never come back.
    pub fn mirrors(
        &self,
        queue: &Queue,
        leader: NodeId,
        is_reached: impl Fn(NodeId) -> bool,
        has_copy: impl Fn(NodeId) -> bool,
    ) -> Option<Vec<NodeId>> {
        let definition = self.vhost(&queue.vhost)?.policies().of_queue(queue).definition();
        let mode = match queue.awaits_members() {
            true => None,
            false if !queue.is_mirrorable() => return None,
            false => definition.as_ref().and_then(Mode::of),
        };
        let mut there: Vec<(NodeId, &Node)> = self
            .nodes()
            .map(|(node, known)| (*node, known))
            .filter(|(node, known)| *node == leader || known.joined().is_some())
            .collect();
        let is_member = |node: NodeId| queue.is_shared() && queue.member(node).is_some();
        let has_it = |node: NodeId| is_member(node) && (is_reached(node) || has_copy(node));
        there.sort_by_key(|(node, known)| {
            let (is_reached, is_open) = (is_reached(*node), known.is_open_to_queues());
            (*node != leader, !has_it(*node), !is_reached, !is_open, *node)
        });
        let nodes = there.iter().map(|(node, _)| *node);
        Some(match mode {
            None if queue.awaits_members() => {
                nodes.take(new_size(queue.kind, &queue.arguments, None)).collect()
            }
            None => vec![leader],
            Some(Mode::All) => nodes.collect(),
            Some(Mode::Exactly(2)) => nodes.take(FEWEST_THAT_SURVIVE).collect(),
            Some(Mode::Exactly(count)) => nodes.take(count.max(1)).collect(),
            Some(Mode::Nodes(names)) => {
                let is_named = |known: &Node| names.iter().any(|name| *name == known.name.as_bytes());
                // The node that has it alone leaves once others have it, and stays if none of those exists.
                let none = !there.iter().any(|(_, known)| is_named(known));
                let stays = |node: NodeId| node == leader && (none || !queue.is_shared());
                let named = there
                    .iter()
                    .filter(|(node, known)| is_named(known) || stays(*node));
                named.map(|(node, _)| *node).collect()
            }
        })
    }
}
