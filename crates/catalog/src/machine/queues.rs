//! Declaring and deleting queues.

use super::{Catalog, Turn, check_length};
use crate::queue::server_name;
use crate::request::strip;
use crate::{Answer, DeclareQueue, Destination, Effect, Name, Queue, Quota, Record, Refusal, arguments};
use model::table::Table;
use model::{ConnectionId, QueueId};
use std::sync::Arc;

/// How many ids are put on record at once.
const RESERVE: u64 = 1024;

impl<R> Catalog<R> {
    pub(super) fn declare_queue(
        &mut self,
        vhost: &Name,
        wanted: DeclareQueue,
        connection: ConnectionId,
        unique: &[u8; 16],
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let mut name = strip(&wanted.name);
        if name.is_empty() && !wanted.passive {
            name = server_name(unique);
        }
        let owner = wanted.exclusive.then_some(connection);
        let wanted = DeclareQueue {
            // RabbitMQ's exclusive queues are never durable, and may be declared again either way.
            durable: wanted.durable && !wanted.exclusive,
            arguments: arguments::with_type(wanted.arguments),
            ..wanted
        };
        if let Some(queue) = self.vhost(vhost)?.queue(&name) {
            if wanted.passive {
                queue.check_owner(connection)?;
            } else if queue.owner != owner {
                // Also if the owner itself asks for it not to be exclusive.
                return Err(queue.locked());
            } else {
                arguments::check_same_queue(queue, wanted.durable, wanted.auto_delete, &wanted.arguments)?;
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
        arguments::check_queue(&wanted.arguments, &name, vhost)?;
        Ok(Answer::Queue(self.create_queue(
            vhost,
            name.into(),
            wanted,
            owner,
            turn,
        )))
    }

    fn create_queue(
        &mut self,
        vhost: &Name,
        name: Name,
        wanted: DeclareQueue,
        owner: Option<ConnectionId>,
        turn: &mut Turn<R>,
    ) -> Arc<Queue> {
        if self.next_queue >= self.reserved {
            self.record(
                Record::QueueIdsReserved {
                    below: self.next_queue + RESERVE,
                },
                turn,
            );
        }
        let queue = Arc::new(Queue {
            id: QueueId(self.next_queue),
            vhost: vhost.clone(),
            name,
            durable: wanted.durable,
            owner,
            auto_delete: wanted.auto_delete,
            arguments: Arc::new(wanted.arguments),
        });
        self.record(Record::QueueDeclared(queue.clone()), turn);
        let settings = self.view.settings(&queue);
        turn.effects
            .push(Effect::QueueCreated(queue.clone(), Box::new(settings)));
        queue
    }

    /// Makes what an exchange keeps: for the catalog a queue like any other.
    pub(super) fn create_own(
        &mut self,
        vhost: &Name,
        name: Name,
        arguments: Table,
        durable: bool,
        turn: &mut Turn<R>,
    ) {
        let wanted = DeclareQueue {
            durable,
            arguments: arguments::with_type(arguments),
            ..DeclareQueue::default()
        };
        self.create_queue(vhost, name, wanted, None, turn);
    }

    pub(super) fn delete_queue(&mut self, id: QueueId, turn: &mut Turn<R>) -> Result<Answer, Refusal> {
        if let Some((vhost, candidates)) = self.remove_queue(id, turn) {
            self.delete_unused(&vhost, candidates, turn);
        }
        Ok(Answer::Done)
    }

    /// Removes a queue. Returns the auto-delete exchanges that lost a binding by that.
    pub(super) fn remove_queue(&mut self, id: QueueId, turn: &mut Turn<R>) -> Option<(Name, Vec<Name>)> {
        let (vhost, name) = self.queues.get(&id).cloned()?;
        let durable = self.survives_restart(&vhost, &name);
        let candidates = self.auto_delete_sources(&vhost, &Destination::Queue(name.clone()));
        self.record(Record::QueueDeleted { id, durable }, turn);
        turn.effects.push(Effect::QueueDeleted {
            id,
            vhost: vhost.clone(),
            name,
        });
        Some((vhost, candidates))
    }

    pub(super) fn survives_restart(&self, vhost: &str, name: &str) -> bool {
        let queue = self.view.queue(vhost, name);
        queue.is_some_and(|queue| queue.survives_restart())
    }

    /// Deletes exclusive queues of a connection that is gone, the oldest first. Each of them and each of their bindings counts for one
    /// of `at_most`; a queue that has more bindings than that loses some of these and is deleted later.
    pub(super) fn close_connection(
        &mut self,
        connection: ConnectionId,
        at_most: usize,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let owned = self.exclusive.get(&connection).into_iter().flatten();
        let owned: Vec<QueueId> = owned.copied().take(at_most).collect();
        let mut left = at_most;
        for id in owned {
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
        let vhost_and_name = self.queues.get(&id);
        vhost_and_name.map_or(0, |(vhost, name)| {
            let destination = Destination::Queue(name.clone());
            let vhost = self.view.vhost(vhost);
            vhost.map_or(0, |vhost| vhost.incoming(&destination).take(at_most).count())
        })
    }
}
