//! Declaring and deleting queues.

use super::{Catalog, Turn, check_length};
use crate::node::{Incarnation, Lifetime, Node, NodeConnection, NodeId};
use crate::queue::server_name;
use crate::request::strip;
use crate::{
    Answer, DeclareQueue, DeclaredExchange, Destination, Epoch, Name, Queue, QueueKind, Quota, Record,
    Refusal, arguments,
};
use model::QueueId;
use std::sync::Arc;

impl<R> Catalog<R> {
    pub(super) fn declare_queue(
        &mut self,
        vhost: &Name,
        wanted: DeclareQueue,
        by: NodeConnection,
        unique: &[u8; 16],
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let mut name = strip(&wanted.name);
        if name.is_empty() {
            name = server_name(unique);
        }
        let home = self.home(&wanted.homes, by.incarnation.node);
        // RabbitMQ's exclusive queues are never durable, and may be declared again either way. A transient one is gone with the
        // run of the node that it is on.
        let lifetime = match wanted.exclusive {
            true => Lifetime::Connection(by),
            false => Lifetime::of(wanted.durable, self.run_of(home, by.incarnation)),
        };
        let arguments = arguments::with_type(wanted.arguments);
        if let Some(queue) = self.vhost(vhost)?.queue(&name) {
            if queue.exclusive_to() != wanted.exclusive.then_some(by) {
                // Also if the connection that has it asks for it not to be exclusive.
                return Err(queue.locked());
            } else {
                arguments::check_same_queue(queue, lifetime.is_durable(), wanted.auto_delete, &arguments)?;
            }
            return Ok(Answer::Queue(queue.clone()));
        }
        check_length(&name)?;
        let at = self.vhost(vhost)?;
        if let Some(limit) = Quota::is_reached(at.quota().queues, at.queue_count() as u64) {
            return Err(Refusal::QueueLimit {
                queue: name,
                vhost: vhost.to_string(),
                limit,
            });
        }
        let kind = arguments::kind_of(&arguments);
        arguments::check_queue(kind, &arguments, &name, vhost)?;
        let flags = (wanted.durable, wanted.exclusive, wanted.auto_delete);
        arguments::check_properties(kind, flags, &name, vhost)?;
        self.check_home(home)?;
        let id = QueueId(self.next_queue);
        let size = self.vhost(vhost)?.new_size(kind, &name, &arguments);
        let members = self.new_members(kind, home, size);
        let queue = Queue {
            id,
            kind,
            vhost: vhost.clone(),
            name: name.into(),
            lifetime,
            home,
            founders: members,
            changed: Arc::default(),
            epoch: Epoch::default(),
            other_arguments: wanted.other_arguments.map(arguments::with_type).map(Arc::new),
            auto_delete: wanted.auto_delete,
            arguments: Arc::new(arguments),
        };
        queue.check_other_form()?;
        let queue = Arc::new(queue);
        self.record(Record::QueueDeclared(queue.clone()), turn);
        Ok(Answer::Queue(queue))
    }

    /// Where something new gets its home: see [`DeclareQueue::homes`]. Of nodes with equally many queues it is the one of the
    /// lowest number.
    pub(super) fn home(&self, homes: &[NodeId], asking: NodeId) -> NodeId {
        let queues = |node: &&NodeId| (self.homes.get(*node).copied().unwrap_or_default(), **node);
        let lasts = |node: &&NodeId| !self.view.nodes.get(*node).is_some_and(Node::is_forgotten);
        homes
            .iter()
            .filter(lasts)
            .min_by_key(queues)
            .copied()
            .unwrap_or(asking)
    }

    /// # Errors
    /// Nothing new has its home there: it would be gone with the node.
    pub(super) fn check_home(&self, home: NodeId) -> Result<(), Refusal> {
        match self.view.nodes.get(&home).filter(|known| known.is_forgotten()) {
            Some(gone) => Err(Refusal::NodeForgotten {
                name: gone.name.to_string(),
            }),
            None => Ok(()),
        }
    }

    fn run_of(&self, home: NodeId, asking: Incarnation) -> Incarnation {
        let known = self.view.nodes.get(&home).filter(|_| home != asking.node);
        known.map_or(asking, |known| Incarnation {
            node: home,
            number: known.started,
        })
    }

    /// Makes what an exchange keeps for itself: it has the exchange's name, arguments and lifetime.
    pub(super) fn create_own(
        &mut self,
        exchange: &DeclaredExchange,
        kind: QueueKind,
        home: NodeId,
        turn: &mut Turn<R>,
    ) {
        let id = QueueId(self.next_queue);
        let queue = Queue {
            id,
            kind,
            vhost: exchange.vhost.clone(),
            name: exchange.name.clone(),
            lifetime: exchange.lifetime,
            home,
            founders: Arc::default(),
            changed: Arc::default(),
            epoch: Epoch::default(),
            other_arguments: None,
            auto_delete: false,
            arguments: exchange.arguments.clone(),
        };
        self.record(Record::QueueDeclared(Arc::new(queue)), turn);
    }

    pub(super) fn delete_queue(&mut self, id: QueueId, turn: &mut Turn<R>) -> Result<Answer, Refusal> {
        if let Some((vhost, candidates)) = self.remove_queue(id, turn) {
            self.delete_unused(&vhost, candidates, turn);
        }
        Ok(Answer::Done)
    }

    /// Removes a queue. Returns the auto-delete exchanges that lost a binding by that.
    pub(super) fn remove_queue(&mut self, id: QueueId, turn: &mut Turn<R>) -> Option<(Name, Vec<Name>)> {
        let queue = self.queues.get(&id).cloned()?;
        let candidates = match queue.kind.is_of_clients() {
            true => self.auto_delete_sources(&queue.vhost, &Destination::Queue(queue.name.clone())),
            false => Vec::new(),
        };
        let durable = queue.is_durable();
        self.record(Record::QueueDeleted { id, durable }, turn);
        Some((queue.vhost.clone(), candidates))
    }

    /// Deletes exclusive queues of a connection that is gone, the oldest first. Each of them and each of their bindings
    /// counts for one of `at_most`; a queue that has more bindings than that loses some of these and is deleted later.
    pub(super) fn close_connection(
        &mut self,
        connection: NodeConnection,
        at_most: usize,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let mut left = at_most;
        for id in self.ending_with(Lifetime::Connection(connection), at_most) {
            if left == 0 {
                break;
            }
            let bindings = self.count_bindings(id, left);
            if bindings == left {
                self.clear_bindings(id, left, turn)?;
                return Ok(Answer::Cleared(at_most));
            }
            self.delete_queue(id, turn)?;
            left -= bindings + 1;
        }
        Ok(Answer::Cleared(at_most - left))
    }

    /// How many bindings a queue has, or `at_most`.
    fn count_bindings(&self, id: QueueId, at_most: usize) -> usize {
        let queue = self.queues.get(&id);
        queue.map_or(0, |queue| {
            let destination = Destination::Queue(queue.name.clone());
            let vhost = self.view.vhost(&queue.vhost);
            vhost.map_or(0, |vhost| vhost.incoming(&destination).take(at_most).count())
        })
    }

    /// Up to so many of the queues that end with this.
    pub(super) fn ending_with(&self, lifetime: Lifetime, at_most: usize) -> Vec<QueueId> {
        let all = self
            .transient
            .range((lifetime, QueueId(0))..=(lifetime, QueueId(u64::MAX)));
        all.take(at_most).map(|(_, id)| *id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Effect, Request};
    use model::{Machine, Outcome, Timestamp};

    fn ask(catalog: &mut Catalog<u64>, request: Request) -> Answer {
        let mut outcome = Outcome::default();
        catalog.handle(Timestamp(0), request.asked_by(7), &mut outcome);
        let given = outcome.effects.into_iter().chain(outcome.promises);
        let mut replies = given.filter_map(|effect| match effect {
            Effect::Reply(7, given) => Some(given),
            _ => None,
        });
        replies.next().unwrap().unwrap()
    }

    /// Three nodes, of which the third has been started twice.
    fn three() -> Catalog<u64> {
        let mut catalog = Catalog::new();
        ask(&mut catalog, Request::CreateVhost { name: "/".into() });
        for node in [1, 2, 3, 3] {
            let start = Request::StartNode {
                node: NodeId(node),
                name: format!("n{node}@a").into(),
                takes_queues: node != 1,
            };
            ask(&mut catalog, start);
        }
        catalog
    }

    fn declare(catalog: &mut Catalog<u64>, name: &str, exclusive: bool, homes: &[u64]) -> Arc<Queue> {
        let declare = DeclareQueue {
            name: name.into(),
            exclusive,
            homes: homes.iter().map(|node| NodeId(*node)).collect(),
            ..DeclareQueue::default()
        };
        let by = NodeConnection {
            incarnation: Incarnation {
                node: NodeId(1),
                number: 1,
            },
            connection: model::ConnectionId(5),
        };
        let request = Request::DeclareQueue {
            vhost: "/".into(),
            declare,
            by,
            unique: [0; 16],
        };
        match ask(catalog, request) {
            Answer::Queue(queue) => queue,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_node_that_was_forgotten_is_no_home_of_anything_new() {
        let mut catalog = three();
        let node = NodeId(3);
        let join = Request::JoinNode {
            name: "n3@a".into(),
            joined: crate::node::Joined {
                port: 25_672,
                token: [3; 16],
            },
        };
        ask(&mut catalog, join);
        ask(&mut catalog, Request::ForgetNode { node });
        assert_eq!(declare(&mut catalog, "a", false, &[2]).home, NodeId(2));
        assert_eq!(
            declare(&mut catalog, "b", false, &[3, 2]).home,
            NodeId(2),
            "though it has the fewest"
        );
        assert!(catalog.check_home(node).is_err());
        assert!(catalog.check_home(NodeId(2)).is_ok());
    }

    #[test]
    fn a_new_queue_gets_its_home_where_the_fewest_are_also_after_some_are_deleted_and_in_a_copy() {
        let mut catalog = three();
        let homes: Vec<u64> = ["a", "b", "c", "d"]
            .map(|name| declare(&mut catalog, name, false, &[3, 2]).home.0)
            .into();
        assert_eq!(homes, [2, 3, 2, 3]);
        assert_eq!(
            declare(&mut catalog, "e", false, &[]).home,
            NodeId(1),
            "where it is declared"
        );
        assert_eq!(
            declare(&mut catalog, "a", false, &[3]).home,
            NodeId(2),
            "where it is"
        );
        for name in ["b", "d"] {
            let id = catalog.view().queue("/", name).unwrap().id;
            ask(&mut catalog, Request::DeleteQueue { id });
        }
        let mut copy = Catalog::of(catalog.view());
        for catalog in [&mut catalog, &mut copy] {
            assert_eq!(declare(catalog, "f", false, &[2, 3]).home, NodeId(3));
            assert_eq!(declare(catalog, "g", false, &[2, 3]).home, NodeId(3));
            assert_eq!(declare(catalog, "h", false, &[2, 3]).home, NodeId(2));
        }
    }

    #[test]
    fn a_transient_queue_ends_with_the_node_that_it_is_on_and_an_exclusive_one_with_its_connection() {
        let mut catalog = three();
        let transient = declare(&mut catalog, "t", false, &[3]);
        let exclusive = declare(&mut catalog, "x", true, &[3]);
        assert!(!transient.is_durable() && exclusive.is_exclusive());
        let restart = |catalog: &mut Catalog<u64>, node| {
            let start = Request::StartNode {
                node: NodeId(node),
                name: format!("n{node}@a").into(),
                takes_queues: true,
            };
            ask(catalog, start);
            ask(catalog, Request::EndTransient { at_most: 9 })
        };
        assert_eq!(restart(&mut catalog, 2), Answer::Cleared(0));
        assert_eq!(restart(&mut catalog, 3), Answer::Cleared(1));
        assert!(catalog.view().queue("/", "t").is_none());
        assert!(catalog.view().queue("/", "x").is_some());
        assert_eq!(restart(&mut catalog, 1), Answer::Cleared(1));
        assert!(catalog.view().queue("/", "x").is_none());
    }
}
