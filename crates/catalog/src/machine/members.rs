//! Which nodes have the copies of a queue.

use super::{Catalog, Turn};
use crate::node::{Incarnation, Lifetime, Node, NodeId};
use crate::{Answer, Queue, QueueKind, Record, Refusal, arguments};
use model::QueueId;
use std::sync::Arc;

fn refused(reason: &str) -> Refusal {
    Refusal::Internal {
        reason: reason.into(),
    }
}

impl<R> Catalog<R> {
    /// Who has a new queue whose first member is on this node: so many nodes, or as many as there are. Those that run and take
    /// queues come first, and of these the ones that have the fewest. Nobody, if it is not replicated.
    pub(super) fn new_members(&self, kind: QueueKind, home: NodeId, size: usize) -> Arc<[NodeId]> {
        if !kind.is_replicated() {
            return Arc::default();
        }
        let mut others: Vec<(&NodeId, &Node)> = self
            .view
            .nodes
            .iter()
            .filter(|(node, known)| **node != home && known.joined().is_some())
            .collect();
        others
            .sort_by_key(|(node, known)| (!known.is_running, !known.is_open_to_queues(), self.load(**node)));
        let others = others.into_iter().map(|(node, _)| *node);
        std::iter::once(home).chain(others).take(size).collect()
    }

    /// What nodes are compared by where something more is to go: how many queues each has, and of equals its number.
    fn load(&self, node: NodeId) -> (u64, NodeId) {
        (self.copies.get(&node).copied().unwrap_or_default(), node)
    }

    /// The queue gets a member on that one of these nodes which has the fewest queues, unless it has as many as it is to have.
    ///
    /// # Errors
    /// There is no such queue that several nodes can have.
    pub(super) fn add_member(
        &mut self,
        id: QueueId,
        nodes: &[NodeId],
        size: usize,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let queue = self.replicated_queue(id)?;
        let joined = |node: &NodeId| {
            let known = self.view.nodes.get(node);
            known.is_some_and(|known| known.joined().is_some())
        };
        let free = nodes
            .iter()
            .filter(|node| joined(node) && queue.member(**node).is_none());
        match free.min_by_key(|node| self.load(**node)).copied() {
            Some(node) if queue.members().count() < size => {
                Ok(Answer::Queue(self.set_member(&queue, node, true, turn)))
            }
            _ => Ok(Answer::Queue(queue)),
        }
    }

    pub(super) fn replicated_queue(&self, id: QueueId) -> Result<Arc<Queue>, Refusal> {
        let is_one = |queue: &&Arc<Queue>| queue.is_replicated() && !queue.is_mirrorable();
        let known = self.queues.get(&id).filter(is_one);
        if known.is_some_and(|queue| queue.stays_alone()) {
            return Err(refused(
                "the stream was declared for one node, and stays there: declare another one, of more nodes, and publish to that",
            ));
        }
        known
            .cloned()
            .ok_or_else(|| refused("there is no such queue that several nodes can have"))
    }

    /// A queue that began on one node is one that several nodes have from the first other one on.
    ///
    /// # Errors
    /// There is no such queue that several nodes can have, no such node in the cluster, nobody would have the queue, or the node
    /// has the only copy for now ([`Queue::only_copy`]).
    pub(super) fn change_member(
        &mut self,
        id: QueueId,
        node: NodeId,
        is_member: bool,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let queue = self.replicated_queue(id)?;
        if queue.member(node).is_some() == is_member {
            return Ok(Answer::Queue(queue));
        }
        let is_there = self
            .view
            .nodes
            .get(&node)
            .is_some_and(|known| known.joined().is_some());
        if is_member && !is_there {
            return Err(refused("there is no such node in the cluster"));
        }
        if !is_member && queue.members().count() == 1 {
            return Err(refused(
                "the last member of a queue cannot be removed: delete the queue",
            ));
        }
        if !is_member && queue.only_copy() == Some(node) {
            return Err(refused(
                "the node has the only copy of the queue, which it is about to hand over to the other members: try again soon",
            ));
        }
        Ok(Answer::Queue(self.set_member(&queue, node, is_member, turn)))
    }

    /// The queue goes on with this node's copy alone. `generation` is the one that whoever asks has looked at: if it was founded
    /// anew since, that may have been with another node's copy.
    ///
    /// # Errors
    /// There is no such queue that several nodes have, it is of another generation, or the node has no copy of it.
    pub(super) fn refound_queue(
        &mut self,
        id: QueueId,
        node: NodeId,
        generation: u16,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let known = self.queues.get(&id).cloned();
        let queue = known.ok_or_else(|| refused("there is no such queue"))?;
        let next = generation.checked_add(1);
        let refused = |reason: &str| {
            Err(Refusal::Internal {
                reason: reason.into(),
            })
        };
        match next {
            _ if !queue.is_shared() => refused("the queue has always been on one node alone"),
            _ if queue.epoch.number != generation => refused("the queue was founded anew meanwhile"),
            _ if queue.member(node).is_none() => refused("the node has no copy of the queue"),
            None => refused("the queue was founded anew too often: delete it"),
            Some(generation) => {
                self.record(Record::QueueRefounded { id, node, generation }, turn);
                Ok(Answer::Queue(Arc::new(queue.refounded(node, generation))))
            }
        }
    }

    pub(super) fn set_member(
        &mut self,
        queue: &Queue,
        node: NodeId,
        is_member: bool,
        turn: &mut Turn<R>,
    ) -> Arc<Queue> {
        let changed = queue.with_member(node, is_member);
        let record = Record::MembersChanged {
            id: queue.id,
            changed: changed.changed.clone(),
        };
        self.record(record, turn);
        Arc::new(changed)
    }

    fn mirrorable_queue(&self, id: QueueId) -> Result<Arc<Queue>, Refusal> {
        let known = self.queues.get(&id);
        let known = known.filter(|queue| queue.is_mirrorable() || queue.awaits_members());
        known
            .cloned()
            .ok_or_else(|| refused("there is no such queue that a policy mirrors"))
    }

    /// # Errors
    /// There is no such queue, it is of another epoch, or one of the nodes is not of the cluster.
    pub(super) fn mirror(
        &mut self,
        id: QueueId,
        (nodes, epoch): (&[NodeId], u16),
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let queue = self.mirrorable_queue(id)?;
        if queue.epoch.number != epoch {
            return Err(refused("the queue has become another node's own meanwhile"));
        }
        let is_there = |node: &NodeId| {
            let known = self.view.nodes.get(node);
            known.is_some_and(|known| known.joined().is_some())
        };
        if nodes.is_empty() || !nodes.iter().all(is_there) {
            return Err(refused("there is no such node in the cluster"));
        }
        let has = |node: &NodeId| queue.places().any(|it| it == *node);
        let is_so = nodes.iter().all(has) && queue.places().all(|node| nodes.contains(&node));
        if is_so && !queue.awaits_members() {
            return Ok(Answer::Queue(queue));
        }
        if !queue.is_shared() && !nodes.contains(&queue.home) {
            // First somebody else has it.
            return Err(refused("the node that the queue is on is not among them"));
        }
        let changed = Arc::new(queue.of_members(nodes));
        self.record(Record::QueueChanged(changed.clone()), turn);
        Ok(Answer::Queue(changed))
    }

    /// # Errors
    /// There is no such queue, it is of another epoch, or others have copies.
    pub(super) fn unmirror(
        &mut self,
        id: QueueId,
        node: NodeId,
        behind: u64,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let queue = self.mirrorable_queue(id)?;
        if !queue.is_shared() {
            return Ok(Answer::Queue(queue));
        }
        if queue.members().any(|member| member.node != node) {
            return Err(refused("others have copies of the queue"));
        }
        if queue.epoch.number == u16::MAX {
            return Err(refused("the queue has been of several nodes too often"));
        }
        let lifetime = match queue.lifetime {
            Lifetime::Incarnation(_) => Lifetime::Incarnation(self.run_of_node(node)),
            other => other,
        };
        let changed = Arc::new(queue.of_one(node, lifetime, behind));
        self.record(Record::QueueChanged(changed.clone()), turn);
        Ok(Answer::Queue(changed))
    }

    /// A queue becomes one of another kind. One that several nodes have stays with them, and a quorum queue gets more until it
    /// has as many as a new one gets. One that its node has alone gets them at once if it has never been of several; if it has,
    /// what it was last may not be handed back yet, so its node asks ([`Queue::awaits_members`]).
    ///
    /// # Errors
    /// There is no such queue, or it cannot be of that kind.
    pub(super) fn convert_queue(
        &mut self,
        (vhost, name): (&str, &str),
        kind: QueueKind,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let known = self.view.vhost(vhost).and_then(|vhost| vhost.queue(name));
        let known = known
            .filter(|queue| !self.view.doomed.contains(&queue.id))
            .cloned();
        let queue = known.ok_or_else(|| Refusal::NoQueue {
            queue: name.into(),
            vhost: vhost.into(),
        })?;
        if queue.kind == kind {
            return Ok(Answer::Queue(queue));
        }
        let mut changed = queue.converted(kind)?;
        match (kind.is_replicated(), queue.is_shared()) {
            (true, false) if queue.epoch.number > 0 => {}
            (true, _) => changed = self.with_enough_members(&changed),
            (false, true) => {}
            (false, false) => changed.founders = Arc::default(),
        }
        let changed = Arc::new(changed);
        self.record(Record::QueueChanged(changed.clone()), turn);
        Ok(Answer::Queue(changed))
    }

    /// The same queue, which as many nodes have as have a new one, those first that have it already.
    fn with_enough_members(&self, queue: &Queue) -> Queue {
        let mut nodes: Vec<NodeId> = queue.places().collect();
        let size = arguments::new_size(queue.kind, &queue.arguments, None);
        let first = nodes.first().copied().unwrap_or(queue.home);
        for node in self.new_members(queue.kind, first, usize::MAX).iter() {
            if nodes.len() < size && !nodes.contains(node) {
                nodes.push(*node);
            }
        }
        queue.of_members(&nodes)
    }

    fn run_of_node(&self, node: NodeId) -> Incarnation {
        let known = self.view.nodes.get(&node);
        let number = known.map_or(0, |known| known.started);
        Incarnation { node, number }
    }

    /// The queue of several nodes ended with a run of a node, and another one that runs has a copy: it ends with that one's run
    /// instead. False if there is none.
    pub(super) fn outlives(&mut self, id: QueueId, turn: &mut Turn<R>) -> bool {
        let Some(queue) = self
            .queues
            .get(&id)
            .filter(|queue| queue.is_shared() && !queue.is_exclusive())
        else {
            return false;
        };
        let runs = |node: &NodeId| self.view.nodes.get(node).is_some_and(|known| known.is_running);
        // What it had in its memory is gone, though it may have begun anew.
        let ended = queue.lifetime.incarnation().map(|run| run.node);
        let others = queue.members().map(|member| member.node);
        let Some(node) = others.filter(|node| Some(*node) != ended).find(runs) else {
            return false;
        };
        let lifetime = Lifetime::Incarnation(self.run_of_node(node));
        let changed = Queue {
            lifetime,
            ..(**queue).clone()
        };
        self.record(Record::QueueChanged(Arc::new(changed)), turn);
        true
    }

    /// Up to so many queues of which a node that was forgotten still has a copy, and that node.
    pub(super) fn left_behind(&self, at_most: usize) -> Vec<(QueueId, NodeId)> {
        let forgotten = |node: NodeId| self.view.nodes.get(&node).is_some_and(Node::is_forgotten);
        if !self.view.nodes.values().any(Node::is_forgotten) {
            return Vec::new();
        }
        let shared = self.queues.values().filter(|queue| queue.is_shared());
        let left = shared.flat_map(|queue| {
            let gone = queue.members().map(|it| it.node).filter(|node| forgotten(*node));
            gone.map(|node| (queue.id, node))
        });
        left.take(at_most).collect()
    }

    /// The node is a member no more; a queue that nobody else has is deleted.
    pub(super) fn leave_behind(&mut self, id: QueueId, node: NodeId, turn: &mut Turn<R>) {
        let Some(queue) = self.queues.get(&id).cloned() else {
            return;
        };
        match queue.members().count() {
            ..=1 => drop(self.remove_queue(id, turn)),
            _ => drop(self.set_member(&queue, node, false, turn)),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::node::{Joined, NodeConnection};
    use crate::queue::Member;
    use crate::{DeclareQueue, Effect, Request};
    use model::table::Table;
    use model::{Journaled, Machine, Outcome, Timestamp};

    fn ask(catalog: &mut Catalog<u64>, request: Request) -> Result<Answer, Refusal> {
        let mut outcome = Outcome::default();
        catalog.handle(Timestamp(0), request.asked_by(7), &mut outcome);
        for record in &outcome.records {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert_eq!(Record::decode(&bytes).as_ref(), Some(record));
        }
        let mut given = outcome.effects.into_iter().chain(outcome.promises);
        let reply = given.find_map(|effect| match effect {
            Effect::Reply(7, given) => Some(given),
            _ => None,
        });
        reply.unwrap()
    }

    /// So many nodes of a cluster, all of which run.
    pub fn cluster(nodes: u64) -> Catalog<u64> {
        let mut catalog = Catalog::new();
        ask(&mut catalog, Request::CreateVhost { name: "/".into() }).unwrap();
        for node in 1..=nodes {
            let name: crate::Name = format!("n{node}@a").into();
            let joined = Joined {
                port: 25_672,
                token: [node as u8; 16],
            };
            let join = Request::JoinNode {
                name: name.clone(),
                joined,
            };
            ask(&mut catalog, join).unwrap();
            let start = Request::StartNode {
                node: NodeId(node),
                name,
                takes_queues: true,
            };
            ask(&mut catalog, start).unwrap();
        }
        catalog
    }

    pub fn declare(catalog: &mut Catalog<u64>, name: &str, by: u64, size: Option<i64>) -> Arc<Queue> {
        let mut arguments = Table::new().with("x-queue-type", "quorum");
        if let Some(size) = size {
            arguments = arguments.with("x-quorum-initial-group-size", size);
        }
        let request = Request::DeclareQueue {
            vhost: "/".into(),
            declare: DeclareQueue {
                name: name.into(),
                durable: true,
                arguments,
                ..DeclareQueue::default()
            },
            by: NodeConnection::of_node(Incarnation {
                node: NodeId(by),
                number: 1,
            }),
            unique: [0; 16],
        };
        match ask(catalog, request) {
            Ok(Answer::Queue(queue)) => queue,
            other => panic!("{other:?}"),
        }
    }

    pub fn nodes(queue: &Queue) -> Vec<u64> {
        queue.members().map(|it| it.node.0).collect()
    }

    pub fn now(catalog: &Catalog<u64>, name: &str) -> Arc<Queue> {
        catalog.view().queue("/", name).unwrap().clone()
    }

    pub fn change(
        catalog: &mut Catalog<u64>,
        name: &str,
        node: u64,
        is_member: bool,
    ) -> Result<Answer, Refusal> {
        let id = now(catalog, name).id;
        let node = NodeId(node);
        ask(catalog, Request::ChangeMember { id, node, is_member })
    }

    #[test]
    fn a_queue_has_the_node_that_declares_it_and_as_many_others_as_are_wanted_and_there() {
        let mut five = cluster(5);
        assert_eq!(nodes(&declare(&mut five, "a", 4, None)), [4, 1, 2]);
        assert_eq!(nodes(&declare(&mut five, "b", 2, Some(5))), [2, 3, 5, 1, 4]);
        assert_eq!(nodes(&declare(&mut five, "c", 2, Some(9))).len(), 5);
        let alone = declare(&mut five, "d", 3, Some(1));
        assert!(!alone.is_shared() && alone.home == NodeId(3));
        let two = declare(&mut cluster(2), "e", 2, None);
        assert_eq!((nodes(&two), two.is_shared()), (vec![2, 1], true));
        assert!(!declare(&mut cluster(1), "f", 1, None).is_shared());
    }

    #[test]
    fn members_are_spread_however_many_queues_one_node_declares() {
        let mut five = cluster(5);
        for number in 0..20 {
            declare(&mut five, &format!("q{number}"), 1, None);
        }
        let had = |catalog: &Catalog<u64>, node: u64| {
            let view = catalog.view();
            let vhost = view.vhost("/").unwrap();
            let had = vhost
                .queues()
                .filter(|queue| queue.member(NodeId(node)).is_some());
            had.count()
        };
        let counts = |catalog: &Catalog<u64>| [1, 2, 3, 4, 5].map(|node| had(catalog, node));
        assert_eq!(counts(&five), [20, 10, 10, 10, 10]);
        // What goes, and where members come and go, counts as well.
        for number in 0..5 {
            let id = now(&five, &format!("q{number}")).id;
            ask(&mut five, Request::DeleteQueue { id }).unwrap();
        }
        let id = now(&five, "q19").id;
        let nodes: Vec<NodeId> = (1..=5).map(NodeId).collect();
        for size in [4, 5, 5] {
            let nodes = nodes.clone();
            ask(&mut five, Request::AddMember { id, nodes, size }).unwrap();
        }
        assert_eq!(now(&five, "q19").members().count(), 5);
        for number in 20..40 {
            declare(&mut five, &format!("q{number}"), 1, None);
        }
        let [_, others @ ..] = counts(&five);
        let (least, most) = (others.iter().min().unwrap(), others.iter().max().unwrap());
        assert!(most - least <= 1, "{others:?}");
        let again = Catalog::<u64>::of(five.view());
        assert_eq!(again.copies, five.copies);
    }

    #[test]
    fn a_member_is_added_where_there_is_one_to_be_and_the_fewest_queues_are() {
        let mut catalog = cluster(5);
        declare(&mut catalog, "q", 1, None);
        declare(&mut catalog, "other", 4, Some(2));
        let id = now(&catalog, "q").id;
        let mut add = |nodes: &[u64], size| {
            let nodes = nodes.iter().map(|node| NodeId(*node)).collect();
            match ask(&mut catalog, Request::AddMember { id, nodes, size }) {
                Ok(Answer::Queue(queue)) => super::tests::nodes(&queue),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(add(&[4, 5], 3), [1, 2, 3], "it has as many");
        assert_eq!(add(&[2, 9], 5), [1, 2, 3], "none of these can have it");
        assert_eq!(add(&[4, 5], 5).len(), 4);
        let all = add(&[4, 5], 5);
        assert_eq!(all.len(), 5);
        assert_eq!(add(&[1, 2, 3, 4, 5], 9), all);
        let id = model::QueueId(77);
        assert!(
            ask(
                &mut catalog,
                Request::AddMember {
                    id,
                    nodes: Vec::new(),
                    size: 3
                }
            )
            .is_err()
        );
    }

    #[test]
    fn a_node_that_becomes_a_member_again_is_another_one_and_the_last_member_stays() {
        let mut catalog = cluster(4);
        declare(&mut catalog, "q", 1, None);
        change(&mut catalog, "q", 4, true).unwrap();
        change(&mut catalog, "q", 2, false).unwrap();
        assert_eq!(nodes(&now(&catalog, "q")), [1, 3, 4]);
        change(&mut catalog, "q", 2, true).unwrap();
        let again = Member {
            life: 1,
            ..Member::first(NodeId(2))
        };
        assert_eq!(now(&catalog, "q").member(NodeId(2)), Some(again));
        assert!(
            change(&mut catalog, "q", 9, true).is_err(),
            "there is no such node"
        );
        for node in [1, 2, 3] {
            change(&mut catalog, "q", node, false).unwrap();
        }
        assert!(
            change(&mut catalog, "q", 4, false).is_err(),
            "nobody would have it"
        );
        let copy = Catalog::<u64>::of(catalog.view());
        assert_eq!(now(&copy, "q"), now(&catalog, "q"));
        assert!(now(&catalog, "q").is_shared(), "it is as it was begun");
    }

    #[test]
    fn a_queue_is_founded_anew_with_one_copy_and_none_of_its_members_of_before_is_one_of_the_new_ones() {
        let mut catalog = cluster(5);
        declare(&mut catalog, "q", 1, None);
        change(&mut catalog, "q", 2, false).unwrap();
        change(&mut catalog, "q", 2, true).unwrap();
        let id = now(&catalog, "q").id;
        let mut refound = |node, generation| {
            let node = NodeId(node);
            ask(&mut catalog, Request::RefoundQueue { id, node, generation })
        };
        assert!(refound(4, 0).is_err(), "it has no copy");
        assert!(refound(2, 1).is_err(), "there is no such generation yet");
        assert!(matches!(refound(2, 0), Ok(Answer::Queue(queue)) if nodes(&queue) == [2]));
        assert!(refound(3, 0).is_err(), "it was another one's meanwhile");
        assert!(refound(3, 1).is_err(), "its copy of before is none of this one");
        let queue = now(&catalog, "q");
        assert_eq!(
            (queue.epoch.number, queue.home, queue.is_shared()),
            (1, NodeId(2), true)
        );
        assert_eq!(queue.last_member(NodeId(3)), None);
        change(&mut catalog, "q", 3, true).unwrap();
        let again = Catalog::<u64>::of(catalog.view());
        assert_eq!(now(&again, "q"), now(&catalog, "q"));
        assert_eq!(nodes(&now(&again, "q")), [2, 3]);
        let counted = |catalog: &Catalog<u64>| {
            let had = |node| {
                (
                    catalog.copies.get(&node).copied(),
                    catalog.homes.get(&node).copied(),
                )
            };
            [2, 3].map(|node| had(NodeId(node)))
        };
        assert_eq!(counted(&again), counted(&catalog));
        // A record that is applied again undoes nothing.
        let record = Record::QueueRefounded {
            id,
            node: NodeId(2),
            generation: 1,
        };
        catalog.apply(0, record, &mut Outcome::default());
        assert_eq!(nodes(&now(&catalog, "q")), [2, 3]);
        declare(&mut catalog, "alone", 1, Some(1));
        let id = now(&catalog, "alone").id;
        let node = NodeId(1);
        assert!(
            ask(
                &mut catalog,
                Request::RefoundQueue {
                    id,
                    node,
                    generation: 0
                }
            )
            .is_err()
        );
    }

    pub fn say_grown(catalog: &mut Catalog<u64>, name: &str, epoch: u16) {
        let id = now(catalog, name).id;
        ask(catalog, Request::SayGrown { id, epoch }).unwrap();
    }

    #[test]
    fn a_queue_that_began_on_one_node_is_shared_from_the_first_other_member_on_for_good() {
        let mut catalog = cluster(3);
        declare(&mut catalog, "q", 3, Some(1));
        assert!(
            change(&mut catalog, "q", 3, false).is_err(),
            "nobody would have it"
        );
        change(&mut catalog, "q", 1, true).unwrap();
        assert_eq!(
            (nodes(&now(&catalog, "q")), now(&catalog, "q").is_shared()),
            (vec![3, 1], true)
        );
        say_grown(&mut catalog, "q", 0);
        change(&mut catalog, "q", 3, false).unwrap();
        assert_eq!(
            (nodes(&now(&catalog, "q")), now(&catalog, "q").is_shared()),
            (vec![1], true)
        );
        let again = Catalog::<u64>::of(catalog.view());
        let had = |catalog: &Catalog<u64>| {
            [1, 2, 3].map(|node| catalog.copies.get(&NodeId(node)).copied().unwrap_or_default())
        };
        assert_eq!((had(&again), had(&catalog)), ([1, 0, 0], [1, 0, 0]));
        let classic = Request::DeclareQueue {
            vhost: "/".into(),
            declare: DeclareQueue {
                name: "c".into(),
                durable: true,
                ..DeclareQueue::default()
            },
            by: NodeConnection::of_node(Incarnation {
                node: NodeId(1),
                number: 1,
            }),
            unique: [0; 16],
        };
        ask(&mut catalog, classic).unwrap();
        assert!(
            change(&mut catalog, "c", 2, true).is_err(),
            "one node has a classic queue"
        );
    }

    #[test]
    fn what_a_forgotten_node_had_others_go_on_with_and_what_it_had_alone_is_gone() {
        let mut catalog = cluster(4);
        for name in ["a", "b"] {
            declare(&mut catalog, name, 1, Some(4));
        }
        declare(&mut catalog, "c", 4, Some(2));
        for node in [1, 2, 4] {
            ask(&mut catalog, Request::ForgetNode { node: NodeId(node) }).unwrap();
        }
        while ask(&mut catalog, Request::EndTransient { at_most: 2 }) == Ok(Answer::Cleared(2)) {}
        assert_eq!(nodes(&now(&catalog, "a")), [3]);
        assert_eq!(nodes(&now(&catalog, "b")), [3]);
        assert!(
            catalog.view().queue("/", "c").is_none(),
            "both of its nodes are gone"
        );
    }

    fn classic(catalog: &mut Catalog<u64>, name: &str, by: u64, durable: bool) -> QueueId {
        let declare = Request::DeclareQueue {
            vhost: "/".into(),
            declare: DeclareQueue {
                name: name.into(),
                durable,
                ..DeclareQueue::default()
            },
            by: NodeConnection::of_node(Incarnation {
                node: NodeId(by),
                number: 1,
            }),
            unique: [0; 16],
        };
        match ask(catalog, declare) {
            Ok(Answer::Queue(queue)) => queue.id,
            other => panic!("{other:?}"),
        }
    }

    fn policy(catalog: &mut Catalog<u64>, definition: Table) {
        let put = Request::PutPolicy {
            vhost: "/".into(),
            kind: crate::PolicyKind::User,
            name: "ha".into(),
            policy: crate::PutPolicy {
                pattern: "^q".into(),
                apply_to: "all".into(),
                priority: 0,
                definition,
            },
        };
        ask(catalog, put).unwrap();
    }

    #[test]
    fn a_policy_says_which_nodes_are_to_have_a_classic_queue() {
        let mut catalog = cluster(5);
        let id = classic(&mut catalog, "q", 3, true);
        let wanted_with = |catalog: &Catalog<u64>, has_copy: fn(NodeId) -> bool| {
            let (view, queue) = (catalog.view(), now(catalog, "q"));
            let nodes = view.mirrors(&queue, NodeId(3), |node| node.0 != 1, has_copy);
            nodes.unwrap().iter().map(|node| node.0).collect::<Vec<_>>()
        };
        let wanted = |catalog: &Catalog<u64>| wanted_with(catalog, |_| true);
        assert_eq!(wanted(&catalog), [3], "no policy");
        let mode = |mode: &str| Table::new().with("ha-mode", mode);
        policy(&mut catalog, mode("all"));
        assert_eq!(wanted(&catalog), [3, 2, 4, 5, 1]);
        policy(&mut catalog, mode("exactly").with("ha-params", 2));
        assert_eq!(wanted(&catalog), [3, 2, 4], "two survive nothing");
        policy(&mut catalog, mode("exactly").with("ha-params", 1));
        assert_eq!(wanted(&catalog), [3]);
        policy(&mut catalog, mode("exactly").with("ha-params", 4));
        let nodes = [3, 5, 1].map(NodeId).to_vec();
        ask(&mut catalog, Request::Mirror { id, nodes, epoch: 0 }).unwrap();
        assert_eq!(wanted(&catalog), [3, 5, 1, 2], "who has it keeps it");
        let others = wanted_with(&catalog, |node| node.0 != 1);
        assert_eq!(others, [3, 5, 2, 4], "who died with nothing of it does not");
        let named = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).into()).collect();
            mode("nodes").with("ha-params", model::table::Value::Array(names))
        };
        policy(&mut catalog, named(&["n2@a", "n4@a", "n9@a"]));
        assert_eq!(wanted(&catalog), [2, 4]);
        ask(
            &mut catalog,
            Request::Mirror {
                id,
                nodes: vec![NodeId(3)],
                epoch: 0,
            },
        )
        .unwrap();
        ask(
            &mut catalog,
            Request::Unmirror {
                id,
                node: NodeId(3),
                behind: 7,
            },
        )
        .unwrap();
        assert_eq!(wanted(&catalog), [3, 2, 4], "it leaves once others have it");
        policy(&mut catalog, named(&["n9@a"]));
        assert_eq!(wanted(&catalog), [3], "there is none of them");
        let quorum = declare(&mut catalog, "quorum", 1, None);
        assert_eq!(
            catalog.view().mirrors(&quorum, NodeId(1), |_| true, |_| true),
            None
        );
    }

    #[test]
    fn a_classic_queue_becomes_one_of_several_nodes_and_one_nodes_own_again() {
        let mut catalog = cluster(3);
        let id = classic(&mut catalog, "q", 1, true);
        let mirror = |catalog: &mut Catalog<u64>, nodes: &[u64]| {
            let nodes = nodes.iter().map(|node| NodeId(*node)).collect();
            let epoch = now(catalog, "q").epoch.number;
            ask(catalog, Request::Mirror { id, nodes, epoch })
        };
        let unmirror = |catalog: &mut Catalog<u64>, node, behind| {
            ask(
                catalog,
                Request::Unmirror {
                    id,
                    node: NodeId(node),
                    behind,
                },
            )
        };
        assert!(mirror(&mut catalog, &[2, 3]).is_err(), "its node has it alone");
        assert!(mirror(&mut catalog, &[1, 9]).is_err() && mirror(&mut catalog, &[]).is_err());
        mirror(&mut catalog, &[1, 2, 3]).unwrap();
        let queue = now(&catalog, "q");
        assert_eq!((nodes(&queue), queue.is_shared()), (vec![1, 2, 3], true));
        assert_eq!(queue.founders[..], [NodeId(1)]);
        assert!(unmirror(&mut catalog, 2, 5).is_err(), "others have it");
        mirror(&mut catalog, &[2]).unwrap();
        assert_eq!(nodes(&now(&catalog, "q")), [2]);
        unmirror(&mut catalog, 2, 5).unwrap();
        let queue = now(&catalog, "q");
        assert_eq!((queue.home, queue.is_shared()), (NodeId(2), false));
        assert_eq!(
            queue.epoch,
            crate::Epoch {
                number: 1,
                behind: 5,
                is_refounded: false
            }
        );
        let again = Catalog::<u64>::of(catalog.view());
        let counted = |catalog: &Catalog<u64>| {
            let count = |node| {
                let node = NodeId(node);
                let copies = catalog.copies.get(&node).copied().unwrap_or_default();
                (copies, catalog.homes.get(&node).copied().unwrap_or_default())
            };
            [1, 2, 3].map(count)
        };
        assert_eq!(counted(&again), counted(&catalog));
        assert_eq!(counted(&again), [(0, 0), (1, 1), (0, 0)]);
        let seen_before = Request::Mirror {
            id,
            nodes: vec![NodeId(2), NodeId(1)],
            epoch: 0,
        };
        assert!(
            ask(&mut catalog, seen_before).is_err(),
            "it is not handed back yet"
        );
        mirror(&mut catalog, &[2, 1]).unwrap();
        assert_eq!(
            now(&catalog, "q").last_member(NodeId(1)),
            Some(Member::first(NodeId(1)))
        );
    }

    #[test]
    fn a_transient_queue_that_is_mirrored_ends_with_the_last_node_that_has_it() {
        let mut catalog = cluster(3);
        let id = classic(&mut catalog, "q", 1, false);
        let alone = classic(&mut catalog, "alone", 1, false);
        ask(
            &mut catalog,
            Request::Mirror {
                id,
                nodes: vec![NodeId(1), NodeId(2)],
                epoch: 0,
            },
        )
        .unwrap();
        ask(&mut catalog, Request::ForgetNode { node: NodeId(1) }).unwrap();
        while ask(&mut catalog, Request::EndTransient { at_most: 1 }) == Ok(Answer::Cleared(1)) {}
        assert!(!catalog.queues.contains_key(&alone));
        let queue = now(&catalog, "q");
        let lifetime = Lifetime::Incarnation(Incarnation {
            node: NodeId(2),
            number: 1,
        });
        assert_eq!((nodes(&queue), queue.lifetime), (vec![2], lifetime));
        ask(&mut catalog, Request::ForgetNode { node: NodeId(2) }).unwrap();
        while ask(&mut catalog, Request::EndTransient { at_most: 1 }) == Ok(Answer::Cleared(1)) {}
        assert!(!catalog.queues.contains_key(&id));
    }

    #[test]
    fn a_transient_queue_that_was_mirrored_ends_with_the_run_of_the_only_node_that_has_it() {
        let mut catalog = cluster(3);
        let id = classic(&mut catalog, "q", 1, false);
        for nodes in [vec![NodeId(1), NodeId(2)], vec![NodeId(1)]] {
            let epoch = now(&catalog, "q").epoch.number;
            ask(&mut catalog, Request::Mirror { id, nodes, epoch }).unwrap();
        }
        let start = Request::StartNode {
            node: NodeId(1),
            name: "n1@a".into(),
            takes_queues: true,
        };
        ask(&mut catalog, start).unwrap();
        while ask(&mut catalog, Request::EndTransient { at_most: 1 }) == Ok(Answer::Cleared(1)) {}
        assert!(!catalog.queues.contains_key(&id));
    }

    fn convert(catalog: &mut Catalog<u64>, name: &str, kind: QueueKind) -> Result<Arc<Queue>, Refusal> {
        let request = Request::ConvertQueue {
            vhost: "/".into(),
            name: name.into(),
            kind,
        };
        let answer = ask(catalog, request)?;
        let queue = now(catalog, name);
        assert_eq!(answer, Answer::Queue(queue.clone()));
        // What is written down again is the same.
        let again = Catalog::<u64>::of(catalog.view());
        let counted = |catalog: &Catalog<u64>| {
            let counts = [&catalog.copies, &catalog.homes];
            counts.map(|counts| {
                counts
                    .iter()
                    .filter(|it| *it.1 > 0)
                    .map(|it| (*it.0, *it.1))
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(counted(&again), counted(catalog));
        Ok(queue)
    }

    #[test]
    fn a_queue_becomes_one_of_another_kind_with_as_many_members_as_a_new_one() {
        let mut catalog = cluster(5);
        classic(&mut catalog, "q", 2, true);
        let queue = convert(&mut catalog, "q", QueueKind::Quorum).unwrap();
        assert_eq!((queue.kind, queue.is_shared()), (QueueKind::Quorum, true));
        assert_eq!(
            queue.founders[..],
            [NodeId(2)],
            "its journal is that node's until it grows"
        );
        assert_eq!(nodes(&queue), [2, 1, 3]);
        assert_eq!(
            convert(&mut catalog, "q", QueueKind::Quorum).unwrap(),
            queue,
            "nothing happens to one that is one"
        );
        // Members go by and by, as of one that a policy mirrors no more.
        let queue = convert(&mut catalog, "q", QueueKind::Classic).unwrap();
        assert_eq!((nodes(&queue), queue.is_mirrorable()), (vec![2, 1, 3], true));
        let nobody = convert(&mut catalog, "nobody", QueueKind::Quorum);
        assert!(matches!(nobody, Err(Refusal::NoQueue { .. })));
    }

    #[test]
    fn on_a_node_alone_a_queue_is_that_nodes_own_whatever_its_kind() {
        let mut catalog = cluster(1);
        classic(&mut catalog, "q", 1, true);
        let before = now(&catalog, "q");
        let quorum = convert(&mut catalog, "q", QueueKind::Quorum).unwrap();
        assert_eq!((quorum.is_shared(), nodes(&quorum)), (false, vec![1]));
        let classic = convert(&mut catalog, "q", QueueKind::Classic).unwrap();
        assert_eq!(
            (&classic.founders, &classic.arguments),
            (&before.founders, &before.arguments)
        );
    }

    #[test]
    fn a_queue_that_may_not_be_handed_back_yet_gets_members_when_its_node_asks() {
        let mut catalog = cluster(3);
        let id = classic(&mut catalog, "q", 1, true);
        let mirror = |catalog: &mut Catalog<u64>, nodes: &[u64], epoch| {
            let nodes = nodes.iter().map(|node| NodeId(*node)).collect();
            ask(catalog, Request::Mirror { id, nodes, epoch })
        };
        mirror(&mut catalog, &[1, 2], 0).unwrap();
        mirror(&mut catalog, &[1], 0).unwrap();
        let node = NodeId(1);
        ask(&mut catalog, Request::Unmirror { id, node, behind: 4 }).unwrap();
        let queue = convert(&mut catalog, "q", QueueKind::Quorum).unwrap();
        assert!(queue.awaits_members() && !queue.is_shared());
        let view = catalog.view();
        let wanted = view.mirrors(&queue, node, |_| true, |_| true);
        assert_eq!(wanted, Some(vec![NodeId(1), NodeId(2), NodeId(3)]));
        assert!(
            mirror(&mut catalog, &[1, 2, 3], 0).is_err(),
            "of the epoch before"
        );
        mirror(&mut catalog, &[1, 2, 3], 1).unwrap();
        let queue = now(&catalog, "q");
        assert!(!queue.awaits_members() && queue.is_shared() && !queue.epoch.is_refounded);
        assert_eq!(nodes(&queue), [1, 2, 3]);
        // Of another number of nodes it is by commands from now on, as any quorum queue.
        assert!(mirror(&mut catalog, &[1, 2], 1).is_err());
        assert_eq!(catalog.view().mirrors(&queue, node, |_| true, |_| true), None);
    }

    #[test]
    fn a_mirrored_queue_keeps_its_members_and_one_that_was_founded_anew_stays_so() {
        let mut catalog = cluster(3);
        let id = classic(&mut catalog, "q", 1, true);
        let all = [1, 2].map(NodeId).to_vec();
        ask(
            &mut catalog,
            Request::Mirror {
                id,
                nodes: all,
                epoch: 0,
            },
        )
        .unwrap();
        let queue = convert(&mut catalog, "q", QueueKind::Quorum).unwrap();
        assert_eq!(nodes(&queue), [1, 2, 3]);
        let node = NodeId(2);
        let refound = Request::RefoundQueue {
            id,
            node,
            generation: 0,
        };
        ask(&mut catalog, refound).unwrap();
        let queue = convert(&mut catalog, "q", QueueKind::Classic).unwrap();
        assert!(queue.epoch.is_refounded && nodes(&queue) == [2]);
        ask(&mut catalog, Request::Unmirror { id, node, behind: 9 }).unwrap();
        assert!(!now(&catalog, "q").epoch.is_refounded);
    }
}
