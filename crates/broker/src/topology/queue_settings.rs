//! What the catalog knows of a queue, in the words of the machine that holds its messages.

use queue::fifo::{DeadLetterTo, DeliveryLimit, Overflow, QueueSettings, Sorting};
use std::sync::Arc;

/// The queue machine's settings from what the catalog keeps and makes of it.
pub fn queue_settings(known: &catalog::Queue, effective: &catalog::QueueSettings) -> QueueSettings {
    QueueSettings {
        durable: known.survives_restart(),
        auto_delete: known.auto_delete,
        single_active: effective.single_active,
        sorting: sorting(effective),
        max_length: effective.max_length,
        max_length_bytes: effective.max_length_bytes,
        overflow: match effective.overflow {
            catalog::Overflow::DropHead => Overflow::DropHead,
            catalog::Overflow::RejectPublish => Overflow::Reject,
            catalog::Overflow::RejectPublishDeadLetter => Overflow::RejectAndDeadLetter,
        },
        delivery_limit: effective.delivery_limit.map(|limit| match limit {
            ..0 => DeliveryLimit::Unlimited,
            limit => DeliveryLimit::Returns(u32::try_from(limit).unwrap_or(u32::MAX)),
        }),
        retry_delay: effective.retry_delay,
        deduplicates: effective.deduplicates,
        message_ttl_ms: effective.message_ttl_ms,
        expires_ms: effective.expires_ms,
        delays: known.delayed_exchange().is_some(),
        dead_letter: leads_to(known, effective),
    }
}

/// A priority queue with one priority is none, as in RabbitMQ.
fn sorting(settings: &catalog::QueueSettings) -> Sorting {
    match (&settings.fair_key, settings.max_priority) {
        (Some(key), _) => Sorting::FairKey(key.clone()),
        (None, 0) => Sorting::Arrival,
        (None, highest) => Sorting::Priority(highest),
    }
}

/// Where messages go that leave the queue otherwise than to consumers.
fn leads_to(known: &catalog::Queue, effective: &catalog::QueueSettings) -> Option<Arc<DeadLetterTo>> {
    if let Some(exchange) = known.delayed_exchange() {
        return Some(Arc::new(DeadLetterTo {
            exchange: exchange.into(),
            routing_key: None,
        }));
    }
    effective.dead_letter_exchange.as_ref().map(|exchange| {
        Arc::new(DeadLetterTo {
            exchange: exchange.clone(),
            routing_key: effective.dead_letter_routing_key.clone(),
        })
    })
}
