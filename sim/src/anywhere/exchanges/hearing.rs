//! What clients hear of their nodes.

use super::super::node::{Asked, Held};
use super::super::wire::heard_start;
use super::Exchanges;
use broker::{Answer, Delivery, Event, QueueRef};
use model::ConsumerId;

impl Exchanges {
    /// The start of the queue's node that clients of a node hear of.
    pub(super) fn heard_start(&self, at: usize) -> u64 {
        let home = self.ledger.exchanges.homes[2];
        let starts = self.places[home.0 as usize - 1].starts;
        let node = self.places[at].node.as_ref();
        match node.filter(|_| self.places[at].id != home) {
            Some(node) => heard_start(&node.work, home, starts),
            None => starts,
        }
    }

    pub(super) fn hear(&mut self) -> Result<(), String> {
        (0..self.places.len()).try_for_each(|at| self.hear_at(at, self.heard_start(at)))
    }

    /// The client of a node hears what this start of the queue's node has said.
    pub(super) fn hear_at(&mut self, at: usize, start: u64) -> Result<(), String> {
        let mut events = Vec::new();
        if let Some(node) = &self.places[at].node {
            node.outbox.take_now(&mut events);
        }
        events
            .into_iter()
            .try_for_each(|event| self.hears(at, event, start))
    }

    fn hears(&mut self, at: usize, event: Event, start: u64) -> Result<(), String> {
        // Deliveries are told one by one.
        if !matches!(
            event,
            Event::Deliver { .. }
                | Event::Answer {
                    answer: Some(Answer::Got { .. }),
                    ..
                }
        ) {
            self.tell(|| format!("{:?} hears {event:?}", self.places[at].id));
        }
        let own = self.places[at].id.0;
        let Some(node) = &mut self.places[at].node else {
            return Ok(());
        };
        match event {
            Event::Confirm { numbers, .. } | Event::Reject { numbers, .. }
                if numbers.iter().any(|it| !node.open.contains(&it)) =>
            {
                return Err(format!(
                    "{numbers:?} of {own} are answered twice, or were never asked"
                ));
            }
            Event::Confirm { numbers, .. } => {
                node.open.retain(|it| !numbers.contains(*it));
                self.ledger.confirm(own, &numbers);
                self.note(numbers.iter().sum());
            }
            Event::Reject { numbers, .. } => {
                node.open.retain(|it| !numbers.contains(*it));
                self.ledger.refuse(own, &numbers);
                self.counts[2] += numbers.count();
                self.note(!numbers.iter().sum::<u64>());
            }
            Event::ConsumerCancelled { consumer, .. } => drop(node.consumers.remove(&consumer)),
            Event::Deliver {
                consumer, delivery, ..
            } => {
                let Some(subscription) = node.consumer(consumer) else {
                    return Err(format!("{consumer:?} of {own} has ended, and is delivered to"));
                };
                let queue = subscription.queue().clone();
                crate::world::until_power_cut(|| subscription.flow(delivery.bytes() as u32));
                self.given(at, (Some(consumer), queue), &delivery, start)?;
            }
            Event::Answer { question, answer, .. } => match (node.asked.remove(&question.0), answer) {
                (None, _) => return Err(format!("{question:?} of {own} is answered twice")),
                (Some(Asked::Getting(queue)), Some(Answer::Got { delivery, .. })) => {
                    self.given(at, (None, queue), &delivery, start)?;
                }
                (Some(Asked::Consuming(_)), Some(Answer::Consuming)) => {}
                (Some(Asked::Consuming(consumer)), _) => drop(node.consumers.remove(&consumer)),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    fn given(
        &mut self,
        at: usize,
        (consumer, queue): (Option<ConsumerId>, QueueRef),
        delivery: &Delivery,
        start: u64,
    ) -> Result<(), String> {
        for seq in delivery.seqs.iter() {
            let body = delivery.block.message((seq - delivery.base) as usize).body;
            let text = String::from_utf8_lossy(body);
            let mut words = text.split(' ').map(|word| word.parse::<u64>().unwrap_or(0));
            let id = (words.next().unwrap_or(0) as u32, words.next().unwrap_or(0));
            self.note(u64::from(id.0) << 32 | id.1);
            self.tell(|| format!("{id:?} is given, redelivered: {}", delivery.redelivered));
            if let Some(node) = &mut self.places[at].node {
                let queue = queue.clone();
                node.held.push(Held {
                    consumer,
                    queue,
                    seq,
                    id,
                });
            }
            self.ledger.given(id, delivery.redelivered, start, self.clock)?;
        }
        Ok(())
    }
}
