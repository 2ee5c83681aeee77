//! What a load makes on the broker and what was there before.

use super::site::{exchange_exists, queue_exists};
use crate::client::Client;
use crate::failure::Failure;
use crate::plan::{Plan, QueueNames};
use crate::topology::Topology;

/// See the module.
pub struct Footprint {
    /// The exchange, if it was not there.
    exchange: Option<String>,
    /// Queues of the plan that were there.
    kept: Vec<String>,
}

impl Footprint {
    /// Looks before the plan's topology is declared.
    ///
    /// # Errors
    /// If the broker can't be asked.
    pub fn before(plan: &Plan, client: &mut Client) -> Result<Self, Failure> {
        let exchange = &plan.exchange.name;
        let exchange = (!exchange_exists(client, exchange)?).then(|| exchange.clone());
        let mut kept = Vec::new();
        if let QueueNames::Fixed(names) | QueueNames::Sequence(names) = &plan.queues.names {
            for name in names {
                if plan.queues.predeclared || queue_exists(client, name)? {
                    kept.push(name.clone());
                }
            }
        }
        Ok(Self { exchange, kept })
    }

    /// Deletes what was not there before.
    ///
    /// # Errors
    /// The first refusal; all others were tried.
    pub fn delete(&self, topology: &Topology, client: &mut Client, channel: u16) -> Result<(), Failure> {
        let mut result = Ok(());
        for queue in topology.queues() {
            if self.kept.contains(&queue) {
                continue;
            }
            let deleted = client.delete_queue(channel, &queue);
            result = result.and(deleted);
            if !client.is_open(channel) {
                client.open_channel(channel)?;
            }
        }
        if let Some(exchange) = &self.exchange {
            result = result.and(client.delete_exchange(channel, exchange));
        }
        result
    }
}
