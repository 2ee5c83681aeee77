//! Starts of nodes, and the end of what a run of a node takes along.

use super::{Catalog, Turn};
use crate::node::{Incarnation, Lifetime, NodeId};
use crate::{Answer, Name, Record, Refusal};
use model::QueueId;

impl<R> Catalog<R> {
    /// Begins a run of a node. Its last one has ended by that, if nobody has noticed so far.
    pub(super) fn start_node(
        &mut self,
        node: NodeId,
        name: Name,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let known = self.view.nodes.get(&node);
        let number = known.map_or(0, |known| known.started);
        if known.is_some_and(|known| known.is_running) {
            self.record(Record::IncarnationEnded(Incarnation { node, number }), turn);
        }
        let incarnation = Incarnation {
            node,
            number: number + 1,
        };
        self.record(Record::NodeStarted { incarnation, name }, turn);
        Ok(Answer::Started(incarnation))
    }

    /// Deletes up to so many queues and exchanges that ended with a run of a node. Their bindings go with them; an exchange that
    /// loses its last binding by that stays, as in RabbitMQ.
    pub(super) fn end_transient(&mut self, at_most: usize, turn: &mut Turn<R>) -> Result<Answer, Refusal> {
        let queues = self.ended_queues(at_most);
        let exchanges = self.ended_exchanges(at_most - queues.len());
        let ended = queues.len() + exchanges.len();
        for id in queues {
            self.remove_queue(id, turn);
        }
        for (vhost, name) in exchanges {
            self.remove_exchange(&vhost, &name, turn);
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
        ended
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
