//! What clients hear of their nodes.

use super::client::{Asked, Held};
use super::{Brokers, Kind};
use crate::world::until_power_cut;
use broker::{Answer, Delivery, Event, QueueRef};
use model::ConsumerId;

impl Brokers {
    pub(super) fn hear(&mut self, at: usize) -> Result<(), String> {
        let mut events = Vec::new();
        if let Some(client) = self.places[at].client() {
            client.outbox.take_now(&mut events);
        }
        events.into_iter().try_for_each(|event| self.hears(at, event))
    }

    fn hears(&mut self, at: usize, event: Event) -> Result<(), String> {
        let own = self.places[at].id.0;
        let is_told = matches!(
            event,
            Event::Confirm { .. } | Event::Reject { .. } | Event::ConsumerCancelled { .. }
        );
        if is_told {
            self.tell(|| format!("{own} hears {event:?}"));
        }
        if self.kind == Kind::Stream {
            return self.hears_of_stream(at, event);
        }
        let Some(client) = self.places[at].client_mut() else {
            return Ok(());
        };
        match event {
            Event::Confirm { numbers, .. } | Event::Reject { numbers, .. }
                if numbers.iter().any(|it| !client.open.contains(&it)) =>
            {
                return Err(format!(
                    "{numbers:?} of {own} are answered twice, or were never asked"
                ));
            }
            Event::Confirm { numbers, .. } => {
                client.open.retain(|it| !numbers.contains(*it));
                self.ledger.confirm(own, &numbers);
                self.counts[5] += numbers.count();
                self.note(numbers.iter().sum());
            }
            Event::Reject { numbers, .. } => {
                client.open.retain(|it| !numbers.contains(*it));
                self.ledger.refuse(own, &numbers);
                self.counts[6] += numbers.count();
                self.note(!numbers.iter().sum::<u64>());
            }
            Event::ConsumerCancelled { consumer, .. } => drop(client.consumers.remove(&consumer)),
            Event::Deliver {
                consumer, delivery, ..
            } => {
                let Some(subscription) = client.consumer(consumer) else {
                    return Err(format!("{consumer:?} of {own} has ended, and is delivered to"));
                };
                let queue = subscription.queue().clone();
                until_power_cut(|| subscription.flow(delivery.bytes() as u32));
                self.given(at, (Some(consumer), queue), &delivery)?;
            }
            Event::Answer { question, answer, .. } => match (client.asked.remove(&question.0), answer) {
                (Some(Asked::Getting(queue)), Some(Answer::Got { delivery, .. })) => {
                    self.given(at, (None, queue), &delivery)?;
                }
                (Some(Asked::Consuming(_)), Some(Answer::Consuming)) => {}
                (Some(Asked::Consuming(consumer)), _) => drop(client.consumers.remove(&consumer)),
                // What a declaration asks is one of these.
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
    ) -> Result<(), String> {
        for seq in delivery.seqs.iter() {
            let body = delivery.block.message((seq - delivery.base) as usize).body;
            let text = String::from_utf8_lossy(body);
            let mut words = text.split(' ').map(|word| word.parse::<u64>().unwrap_or(0));
            let id = (words.next().unwrap_or(0) as u32, words.next().unwrap_or(0));
            self.note(u64::from(id.0) << 32 | id.1);
            self.counts[7] += 1;
            let own = self.places[at].id;
            self.tell(|| {
                format!(
                    "{own:?} is given {id:?} as {seq}, redelivered: {}",
                    delivery.redelivered
                )
            });
            let (before, since) = (self.ledger.now(), self.clock);
            if let Some(client) = self.places[at].client_mut() {
                let queue = queue.clone();
                client.held.push(Held {
                    before,
                    since,
                    consumer,
                    queue,
                    seq,
                    id,
                });
            }
            self.ledger.given(id, delivery.redelivered)?;
        }
        Ok(())
    }
}
