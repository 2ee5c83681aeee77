//! Declaring and deleting queues.

use super::{Catalog, Turn, check_length};
use crate::node::{Lifetime, NodeConnection, NodeId};
use crate::queue::server_name;
use crate::request::strip;
use crate::{
    Answer, DeclareQueue, DeclaredExchange, Destination, Name, Queue, QueueKind, Quota, Record, Refusal,
    arguments,
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
        if name.is_empty() && !wanted.passive {
            name = server_name(unique);
        }
        // RabbitMQ's exclusive queues are never durable, and may be declared again either way.
        let lifetime = match wanted.exclusive {
            true => Lifetime::Connection(by),
            false => Lifetime::of(wanted.durable, by.incarnation),
        };
        let arguments = arguments::with_type(wanted.arguments);
        if let Some(queue) = self.vhost(vhost)?.queue(&name) {
            if wanted.passive {
                queue.check_exclusive(by)?;
            } else if queue.exclusive_to() != wanted.exclusive.then_some(by) {
                // Also if the connection that has it asks for it not to be exclusive.
                return Err(queue.locked());
            } else {
                arguments::check_same_queue(queue, lifetime.is_durable(), wanted.auto_delete, &arguments)?;
            }
            return Ok(Answer::Queue(queue.clone()));
        }
        if wanted.passive {
            return Err(Refusal::NoQueue {
                queue: name,
                vhost: vhost.to_string(),
            });
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
        let id = QueueId(self.next_queue);
        let queue = Arc::new(Queue {
            id,
            kind,
            vhost: vhost.clone(),
            name: name.into(),
            lifetime,
            home: by.incarnation.node,
            members: Arc::default(),
            auto_delete: wanted.auto_delete,
            arguments: Arc::new(arguments),
        });
        self.record(Record::QueueDeclared(queue.clone()), turn);
        Ok(Answer::Queue(queue))
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
            members: Arc::default(),
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
