//! A queue that began on one node alone, which others are to have: when that node may leave it.

use super::{Catalog, Turn};
use crate::{Answer, Refusal};
use model::QueueId;

impl<R> Catalog<R> {
    /// That the node which it began on is a member is on record from then on, as it is of any later one.
    ///
    /// # Errors
    /// There is no such queue that several nodes can have.
    pub(super) fn say_grown(
        &mut self,
        id: QueueId,
        epoch: u16,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let queue = self.replicated_queue(id)?;
        let is_meant = queue.is_shared() && queue.epoch.number == epoch;
        match queue.only_copy().filter(|_| is_meant) {
            Some(home) => Ok(Answer::Queue(self.set_member(&queue, home, true, turn))),
            None => Ok(Answer::Queue(queue)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::members::tests::{change, cluster, declare, nodes, now, say_grown};
    use crate::NodeId;
    use crate::queue::Member;

    #[test]
    fn the_node_that_has_the_only_copy_of_a_queue_stays_until_the_queue_is_said_to_be_its_members() {
        let mut catalog = cluster(4);
        declare(&mut catalog, "q", 3, Some(1));
        // Nobody else is to have it: there is nothing to be said.
        say_grown(&mut catalog, "q", 0);
        assert!(!now(&catalog, "q").is_shared());
        for node in [1, 2] {
            change(&mut catalog, "q", node, true).unwrap();
        }
        assert!(change(&mut catalog, "q", 3, false).is_err());
        // Nor is it so for having been added once more, or by what was said of another group.
        change(&mut catalog, "q", 3, true).unwrap();
        say_grown(&mut catalog, "q", 1);
        assert!(change(&mut catalog, "q", 3, false).is_err());
        change(&mut catalog, "q", 1, false).unwrap();
        let before = now(&catalog, "q");
        for _ in 0..2 {
            say_grown(&mut catalog, "q", 0);
        }
        let said = now(&catalog, "q");
        assert_eq!((nodes(&said), nodes(&before)), (vec![3, 2], vec![3, 2]));
        assert_eq!(
            (said.member(NodeId(3)), said.only_copy()),
            (Some(Member::first(NodeId(3))), None)
        );
        change(&mut catalog, "q", 3, false).unwrap();
        assert_eq!(nodes(&now(&catalog, "q")), [2]);
    }
}
