//! Starts of nodes, and the end of what a run of a node takes along.

use super::{Catalog, Turn};
use crate::node::{Incarnation, Joined, Lifetime, Node, NodeId};
use crate::{Answer, Name, Queue, Record, Refusal};
use model::QueueId;

/// So many members a cluster has at the most. A group has no more.
const MOST_NODES: usize = 32;

impl<R> Catalog<R> {
    /// Begins a run of a node. Its last one has ended by that, if nobody has noticed so far.
    pub(super) fn start_node(
        &mut self,
        node: NodeId,
        name: Name,
        takes_queues: bool,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let known = self.view.nodes.get(&node);
        if known.is_some_and(Node::is_forgotten) {
            let name = name.to_string();
            return Err(Refusal::NodeForgotten { name });
        }
        let number = known.map_or(0, |known| known.started);
        if known.is_some_and(|known| known.is_running) {
            self.record(Record::IncarnationEnded(Incarnation { node, number }), turn);
        }
        let incarnation = Incarnation {
            node,
            number: number + 1,
        };
        let started = Record::NodeStarted {
            incarnation,
            name,
            takes_queues,
        };
        self.record(started, turn);
        Ok(Answer::Started(incarnation))
    }

    /// A node that is on record with its token keeps its number, and is where it says. One without a token is the node that
    /// has been alone and says so of itself.
    pub(super) fn join_node(
        &mut self,
        name: Name,
        joined: Joined,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let nodes = &self.view.nodes;
        let by_token = nodes
            .iter()
            .find(|(_, known)| known.token() == Some(joined.token));
        let by_name = nodes
            .iter()
            .find(|(_, known)| known.name == name && !known.is_forgotten());
        let node = match by_token.or(by_name) {
            Some((_, known)) if known.is_forgotten() => {
                return Err(Refusal::NodeForgotten {
                    name: name.to_string(),
                });
            }
            Some((node, known))
                if known.token().is_none_or(|token| token == joined.token) && known.name == name =>
            {
                *node
            }
            Some((_, known)) => {
                return Err(Refusal::NodeNameTaken {
                    name: known.name.to_string(),
                });
            }
            None => {
                let members = nodes.values().filter(|known| known.joined().is_some());
                if members.count() >= MOST_NODES {
                    return Err(Refusal::TooManyNodes { limit: MOST_NODES });
                }
                NodeId(nodes.get_max().map_or(0, |(node, _)| node.0) + 1)
            }
        };
        let is_known = nodes
            .get(&node)
            .is_some_and(|known| known.joined() == Some(joined));
        if !is_known {
            self.record(Record::NodeJoined { node, name, joined }, turn);
        }
        Ok(Answer::Joined(node))
    }

    pub(super) fn forget_node(&mut self, node: NodeId, turn: &mut Turn<R>) -> Result<Answer, Refusal> {
        let Some(known) = self
            .view
            .nodes
            .get(&node)
            .filter(|known| known.joined().is_some())
        else {
            return Ok(Answer::Done);
        };
        let number = known.started;
        if known.is_running {
            self.record(Record::IncarnationEnded(Incarnation { node, number }), turn);
        }
        self.record(Record::NodeForgotten { node }, turn);
        Ok(Answer::Done)
    }

    pub(super) fn drain_node(
        &mut self,
        node: NodeId,
        drained: bool,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let known = self.view.nodes.get(&node);
        if known.is_some_and(|known| known.is_drained != drained) {
            self.record(Record::NodeDrained { node, drained }, turn);
        }
        Ok(Answer::Done)
    }

    /// Deletes up to so many queues and exchanges that ended with a run of a node, or queues whose node was forgotten, and its
    /// copies of others. Their bindings go with them; an exchange that loses its last binding by that stays, as in RabbitMQ.
    /// What an exchange that lasts kept on a node that was forgotten begins anew on another one.
    pub(super) fn end_transient(&mut self, at_most: usize, turn: &mut Turn<R>) -> Result<Answer, Refusal> {
        let queues = self.ended_queues(at_most);
        let exchanges = self.ended_exchanges(at_most - queues.len());
        let left = self.left_behind(at_most - queues.len() - exchanges.len());
        let ended = queues.len() + exchanges.len() + left.len();
        for id in queues {
            if self.outlives(id, turn) {
                continue;
            }
            let kept = self
                .queues
                .get(&id)
                .filter(|queue| !queue.kind.is_of_clients())
                .cloned();
            self.remove_queue(id, turn);
            if let Some(kept) = kept {
                self.keep_elsewhere(&kept, turn);
            }
        }
        for (vhost, name) in exchanges {
            self.remove_exchange(&vhost, &name, turn);
        }
        for (queue, node) in left {
            self.leave_behind(queue, node, turn);
        }
        Ok(Answer::Cleared(ended))
    }

    /// Looks at each lifetime once, however many queues have it.
    fn ended_queues(&self, at_most: usize) -> Vec<QueueId> {
        let mut ended = Vec::new();
        let mut next = self.transient.first();
        while let Some((lifetime, _)) = next
            && ended.len() < at_most
        {
            if !self.lasts(*lifetime) {
                ended.extend(self.ending_with(*lifetime, at_most - ended.len()));
            }
            let last = (*lifetime, QueueId(u64::MAX));
            next = self.transient.range(last..).next();
        }
        if ended.len() < at_most && self.view.nodes.values().any(Node::is_forgotten) {
            let known = ended.len();
            let left = self.queues.values().filter(|queue| self.is_homeless(queue));
            let left = left.filter(|queue| !ended.contains(&queue.id));
            let left: Vec<QueueId> = left.take(at_most - known).map(|queue| queue.id).collect();
            ended.extend(left);
        }
        ended
    }

    /// Makes again what an exchange kept for itself, on another node: without it what reaches the exchange would be lost.
    fn keep_elsewhere(&mut self, gone: &Queue, turn: &mut Turn<R>) {
        let Some(exchange) = self.view.exchange(&gone.vhost, &gone.name) else {
            return;
        };
        if !self.lasts(exchange.lifetime) {
            return;
        }
        let declared = exchange.declared();
        let lasting = self.view.nodes.iter().filter(|(_, node)| !node.is_forgotten());
        let lasting: Vec<(NodeId, bool)> = lasting
            .map(|(id, node)| (*id, node.is_open_to_queues()))
            .collect();
        let homes: Vec<NodeId> = lasting
            .iter()
            .filter(|(_, is_open)| *is_open)
            .map(|(id, _)| *id)
            .collect();
        let any = lasting.first().map_or(gone.home, |(id, _)| *id);
        let home = self.home(&homes, any);
        self.create_own(&declared, gone.kind, home, turn);
    }

    /// Its node was forgotten, and no other one has its messages.
    fn is_homeless(&self, queue: &Queue) -> bool {
        !queue.is_shared() && self.view.nodes.get(&queue.home).is_some_and(Node::is_forgotten)
    }

    fn ended_exchanges(&self, at_most: usize) -> Vec<(Name, Name)> {
        let vhosts = self.view.vhosts();
        let exchanges = vhosts.flat_map(|vhost| vhost.exchanges());
        let ended = exchanges.filter(|exchange| !self.lasts(exchange.lifetime));
        let named = ended.map(|exchange| (exchange.vhost.clone(), exchange.name.clone()));
        named.take(at_most).collect()
    }

    fn lasts(&self, lifetime: Lifetime) -> bool {
        lifetime.incarnation().is_none_or(|run| self.view.runs(run))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeclareExchange, Effect, Request};
    use model::{Machine, Outcome, Timestamp};

    fn ask(catalog: &mut Catalog<u64>, request: Request) -> Result<Answer, Refusal> {
        let mut outcome = Outcome::default();
        catalog.handle(Timestamp(0), request.asked_by(7), &mut outcome);
        let given = outcome.effects.into_iter().chain(outcome.promises);
        let mut replies = given.filter_map(|effect| match effect {
            Effect::Reply(7, given) => Some(given),
            _ => None,
        });
        replies.next().unwrap()
    }

    fn join(catalog: &mut Catalog<u64>, name: &str, token: u8) -> Result<Answer, Refusal> {
        let (name, joined) = (
            name.into(),
            Joined {
                port: 25_672,
                token: [token; 16],
            },
        );
        ask(catalog, Request::JoinNode { name, joined })
    }

    fn start(catalog: &mut Catalog<u64>, node: NodeId, name: Name) -> Result<Answer, Refusal> {
        let start = Request::StartNode {
            node,
            name,
            takes_queues: true,
        };
        ask(catalog, start)
    }

    fn is(node: u64) -> Result<Answer, Refusal> {
        Ok(Answer::Joined(NodeId(node)))
    }

    /// A node that has been alone says so of itself, and two join.
    fn three() -> Catalog<u64> {
        let mut catalog = Catalog::new();
        let (node, name) = (NodeId::FIRST, "n1@a".into());
        start(&mut catalog, node, name).unwrap();
        assert_eq!(join(&mut catalog, "n1@a", 1), is(1));
        assert_eq!(join(&mut catalog, "n2@a", 2), is(2));
        assert_eq!(join(&mut catalog, "n3@a", 3), is(3));
        catalog
    }

    #[test]
    fn a_node_has_one_number_however_often_it_asks_and_no_two_have_one_name() {
        let mut catalog = three();
        assert_eq!(join(&mut catalog, "n2@a", 2), is(2));
        let taken = Err(Refusal::NodeNameTaken { name: "n2@a".into() });
        assert_eq!(join(&mut catalog, "n2@a", 9), taken, "its disk was wiped");
        assert_eq!(join(&mut catalog, "n4@a", 2), taken, "it was renamed");
        for other in 4..=32 {
            assert_eq!(
                join(&mut catalog, &format!("n{other}@a"), other),
                is(other.into())
            );
        }
        assert_eq!(
            join(&mut catalog, "n@a", 33),
            Err(Refusal::TooManyNodes { limit: 32 })
        );
    }

    #[test]
    fn a_run_of_a_node_is_in_maintenance_until_it_is_revived_or_over_and_snapshots_say_so() {
        let mut catalog = three();
        let (node, name) = (NodeId(2), "n2@a");
        start(&mut catalog, node, name.into()).unwrap();
        let is_drained = |catalog: &Catalog<u64>| {
            let again = Catalog::<u64>::of(catalog.view());
            assert!(again.view().nodes().eq(catalog.view().nodes()));
            let view = catalog.view();
            let known = view.node(node).unwrap();
            assert_eq!(known.is_open_to_queues(), !known.is_drained);
            known.is_drained
        };
        let drain =
            |catalog: &mut Catalog<u64>, node, drained| ask(catalog, Request::DrainNode { node, drained });
        assert!(!is_drained(&catalog));
        for drained in [true, true, false, true] {
            assert_eq!(drain(&mut catalog, node, drained), Ok(Answer::Done));
            assert_eq!(is_drained(&catalog), drained);
        }
        assert_eq!(join(&mut catalog, name, 2), is(2));
        assert!(is_drained(&catalog), "it is one of several as before");
        start(&mut catalog, node, name.into()).unwrap();
        assert!(!is_drained(&catalog), "a start ends it");
        assert_eq!(drain(&mut catalog, NodeId(9), true), Ok(Answer::Done));
        assert_eq!(catalog.view().nodes().count(), 3);
    }

    #[test]
    fn what_an_exchange_kept_on_a_node_that_was_forgotten_is_kept_by_another_one() {
        let mut catalog = three();
        for node in [NodeId(2), NodeId(3)] {
            start(&mut catalog, node, format!("n{}@a", node.0).into()).unwrap();
        }
        ask(&mut catalog, Request::CreateVhost { name: "/".into() }).unwrap();
        let declare = DeclareExchange {
            name: "once".into(),
            kind: "x-message-deduplication".into(),
            durable: true,
            arguments: model::table::Table::new().with("x-cache-size", 10),
            ..DeclareExchange::default()
        };
        let by = Incarnation {
            node: NodeId(3),
            number: 1,
        };
        let vhost = Name::from("/");
        ask(&mut catalog, Request::DeclareExchange { vhost, declare, by }).unwrap();
        let route = |catalog: &Catalog<u64>| {
            let view = catalog.view();
            let exchange = view.exchange("/", "once").unwrap();
            let mut found = smallvec::SmallVec::new();
            let properties = model::properties::Properties::amqp091(b"\0\0");
            let mut envelope = crate::Envelope::new(b"", properties).at(NodeId(3));
            view.route(exchange, &mut envelope, &mut found);
            (exchange.seen().unwrap(), found.to_vec())
        };
        let (first, found) = route(&catalog);
        assert!(found.is_empty(), "it is here, and nothing is bound");
        ask(&mut catalog, Request::ForgetNode { node: NodeId(3) }).unwrap();
        assert_eq!(
            ask(&mut catalog, Request::EndTransient { at_most: 10 }),
            Ok(Answer::Cleared(1))
        );
        let (next, found) = route(&catalog);
        assert!(next != first && found == [next]);
        let kept: Vec<_> = catalog
            .view()
            .vhost("/")
            .unwrap()
            .all_queues()
            .map(|queue| (queue.id, queue.home))
            .collect();
        assert_eq!(kept, [(next, NodeId(1))]);
        assert_eq!(
            ask(&mut catalog, Request::EndTransient { at_most: 10 }),
            Ok(Answer::Cleared(0))
        );
    }

    #[test]
    fn a_node_that_was_forgotten_is_told_so_and_its_number_stays_its_own() {
        let mut catalog = three();
        let node = NodeId(3);
        start(&mut catalog, node, "n3@a".into()).unwrap();
        for _ in 0..2 {
            assert_eq!(ask(&mut catalog, Request::ForgetNode { node }), Ok(Answer::Done));
        }
        let forgotten = Err(Refusal::NodeForgotten { name: "n3@a".into() });
        assert_eq!(join(&mut catalog, "n3@a", 3), forgotten);
        assert_eq!(start(&mut catalog, node, "n3@a".into()), forgotten);
        assert_eq!(
            join(&mut catalog, "n3@a", 4),
            is(4),
            "its disk was wiped meanwhile"
        );
        let again = Catalog::<u64>::of(catalog.view());
        assert!(again.view().nodes().eq(catalog.view().nodes()));
        assert!(again.view().facts().eq(catalog.view().facts()));
    }
}
