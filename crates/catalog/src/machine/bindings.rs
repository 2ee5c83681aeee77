//! Binding and unbinding.

use super::{Catalog, Turn};
use crate::binding::Binding;
use crate::request::strip;
use crate::{Answer, Destination, Name, NamedBinding, Record, Refusal, WantedBinding};
use model::QueueId;
use std::sync::Arc;

impl<R> Catalog<R> {
    /// Checks in RabbitMQ's order: default exchange, source, destination, the binding itself, exclusive queue.
    pub(super) fn bind(
        &mut self,
        vhost: &Name,
        wanted: WantedBinding,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let connection = wanted.by;
        let mut wanted = wanted.named(vhost)?;
        let at = self.vhost(vhost)?;
        let no_exchange = |name: &str| Refusal::NoExchange {
            exchange: name.into(),
            vhost: vhost.to_string(),
        };
        let exchange = at
            .exchange(&wanted.source)
            .ok_or_else(|| no_exchange(&wanted.source))?;
        let (durable, queue) = match &wanted.destination {
            Destination::Queue(name) => {
                let no_queue = || Refusal::NoQueue {
                    queue: name.to_string(),
                    vhost: vhost.to_string(),
                };
                let queue = at.queue(name).ok_or_else(no_queue)?;
                (queue.is_durable(), Some(queue))
            }
            Destination::Exchange(name) => (
                at.exchange(name).ok_or_else(|| no_exchange(name))?.is_durable(),
                None,
            ),
        };
        let checked = exchange.choice().check_binding(&wanted);
        checked.map_err(|text| Refusal::InvalidBinding { text })?;
        queue.map_or(Ok(()), |queue| queue.check_exclusive(connection))?;
        wanted.durable = durable && exchange.is_durable();
        let Some(binding) = self.binding(&wanted) else {
            return Err(Refusal::Internal {
                reason: "the ends of a binding were there and are not".into(),
            });
        };
        if at.known(&binding).is_some() {
            return Ok(Answer::Done);
        }
        self.fact(Record::Bound(binding.named(vhost)), turn)
    }

    /// Whatever does not exist is not bound: only the default exchange and other connections' queues are refused.
    pub(super) fn unbind(
        &mut self,
        vhost: &Name,
        wanted: WantedBinding,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let connection = wanted.by;
        let wanted = wanted.named(vhost)?;
        let at = self.vhost(vhost)?;
        let binding = self.binding(&wanted);
        let Some(binding) = binding.and_then(|binding| at.known(&binding).cloned()) else {
            return Ok(Answer::Done);
        };
        if let Destination::Queue(name) = &wanted.destination {
            at.queue(name)
                .map_or(Ok(()), |queue| queue.check_exclusive(connection))?;
        }
        self.record(Record::Unbound(binding.named(vhost)), turn);
        self.delete_unused(vhost, vec![binding.source.clone()], turn);
        Ok(Answer::Done)
    }

    /// Begins the deletion of a queue, or goes on with it: takes away up to so many of its bindings; nothing if there is no such
    /// queue. That the queue is doomed is journaled, which bindings are gone already is not: the queue's end takes along all
    /// that a replay still finds.
    pub(super) fn clear_bindings(
        &mut self,
        id: QueueId,
        at_most: usize,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let Some(queue) = self.queues.get(&id).cloned() else {
            return Ok(Answer::Cleared(0));
        };
        let vhost = &queue.vhost;
        if !self.view.doomed.contains(&id) {
            let durable = queue.is_durable();
            self.record(Record::QueueDoomed { id, durable }, turn);
        }
        let destination = Destination::Queue(queue.name.clone());
        let some = self.vhost(vhost)?.incoming(&destination).take(at_most);
        let some: Vec<Arc<Binding>> = some.cloned().collect();
        let mut sources: Vec<Name> = some.iter().map(|binding| binding.source.clone()).collect();
        // Those of one source stand side by side.
        sources.dedup();
        for binding in &some {
            let unbound = NamedBinding {
                durable: false,
                ..binding.named(vhost)
            };
            self.record(Record::Unbound(unbound), turn);
        }
        self.delete_unused(vhost, sources, turn);
        Ok(Answer::Cleared(some.len()))
    }
}

impl WantedBinding {
    /// Its names as they count, unless one end is the default exchange. It is not durable before somebody says so.
    fn named(self, vhost: &Name) -> Result<NamedBinding, Refusal> {
        let source = strip(&self.source);
        let destination = match &self.destination {
            Destination::Queue(name) => Destination::Queue(strip(name).into()),
            Destination::Exchange(name) => Destination::Exchange(strip(name).into()),
        };
        let to_default = matches!(&destination, Destination::Exchange(name) if name.is_empty());
        if source.is_empty() || to_default {
            return Err(Refusal::DefaultExchange);
        }
        Ok(NamedBinding {
            vhost: vhost.clone(),
            source: source.into(),
            destination,
            routing_key: self.routing_key.into(),
            arguments: self.arguments,
            durable: false,
        })
    }
}
