//! What arguments and policies mean together: the one place where a queue's settings in force come from.

use super::retry_delay::retry_delay;
use crate::kinds::QueueKind;
use crate::queue::Queue;
use model::table::{Table, Value};
use model::{DeadLetterTo, DeliveryLimit, Overflow, QueueSettings, Sorting};
use std::sync::Arc;

/// The lower of two delivery limits, of which a negative one is none.
pub(crate) fn lower_limit(a: i64, b: i64) -> i64 {
    if a < 0 || b < 0 { a.max(b) } else { a.min(b) }
}

/// The settings of a queue with checked arguments and a checked policy. Of numbers the lower counts, of the rest the argument
/// (RabbitMQ's rule for classic queues).
pub fn queue_settings(queue: &Queue, policy: Option<&Table>) -> QueueSettings {
    if queue.kind == QueueKind::Delayed {
        return waiting(queue);
    }
    let said = Said {
        arguments: &queue.arguments,
        policy,
    };
    QueueSettings {
        durable: queue.is_durable(),
        auto_delete: queue.auto_delete,
        single_active: said.is("x-single-active-consumer"),
        sorting: said.sorting(),
        max_length: said.least("x-max-length", u64::MAX),
        max_length_bytes: said.least("x-max-length-bytes", u64::MAX),
        overflow: match said.first("x-overflow").and_then(Value::as_str) {
            Some("reject-publish") => Overflow::Reject,
            Some("reject-publish-dlx") => Overflow::RejectAndDeadLetter,
            _ => Overflow::DropHead,
        },
        delivery_limit: said.delivery_limit(),
        retry_delay: said.first("x-retry-delay").and_then(|it| retry_delay(it).ok()),
        delays: false,
        deduplicates: said.is("x-message-deduplication"),
        consumer_timeout_ms: said.least("x-consumer-timeout", model::LONGEST_MS),
        // RabbitMQ lets policies ask for longer times than arguments.
        message_ttl_ms: said.least("x-message-ttl", model::LONGEST_MS),
        expires_ms: said.least("x-expires", model::LONGEST_MS),
        dead_letter: said.dead_letter(),
    }
}

/// The settings of what waits for a delayed exchange, and then goes there again.
fn waiting(queue: &Queue) -> QueueSettings {
    QueueSettings {
        durable: queue.is_durable(),
        delays: true,
        dead_letter: Some(Arc::new(DeadLetterTo {
            exchange: queue.name.to_string(),
            routing_key: None,
        })),
        ..QueueSettings::default()
    }
}

/// What is said of a queue in both places.
struct Said<'a> {
    arguments: &'a Table,
    policy: Option<&'a Table>,
}

impl<'a> Said<'a> {
    /// What the argument and the policy say, in this order.
    fn both(&self, name: &str) -> impl Iterator<Item = &'a Value> {
        let argument = self.arguments.get(name);
        let policy = || self.policy?.get(name.strip_prefix("x-")?);
        argument.into_iter().chain(policy())
    }

    fn first(&self, name: &str) -> Option<&'a Value> {
        self.both(name).next()
    }

    fn least(&self, name: &str, most: u64) -> Option<u64> {
        let number = |value: &Value| u64::try_from(value.as_integer()?).ok();
        let least = self.both(name).filter_map(number).min();
        least.map(|it| it.min(most))
    }

    /// A flag, of which policies say nothing.
    fn is(&self, name: &str) -> bool {
        self.arguments.get(name) == Some(&Value::Bool(true))
    }

    /// A priority queue with one priority is none, as in RabbitMQ.
    fn sorting(&self) -> Sorting {
        let fair_key = self.arguments.get("x-fair-key").and_then(Value::as_str);
        match (fair_key, self.least("x-max-priority", 255).unwrap_or(0)) {
            (Some(key), _) => Sorting::FairKey(key.into()),
            (None, 0) => Sorting::Arrival,
            (None, highest) => Sorting::Priority(highest as u8),
        }
    }

    fn delivery_limit(&self) -> Option<DeliveryLimit> {
        let limits = self.both("x-delivery-limit").filter_map(Value::as_integer);
        limits.reduce(lower_limit).map(|limit| match limit {
            ..0 => DeliveryLimit::Unlimited,
            limit => DeliveryLimit::Returns(u32::try_from(limit).unwrap_or(u32::MAX)),
        })
    }

    fn dead_letter(&self) -> Option<Arc<DeadLetterTo>> {
        let bytes = |name: &str| self.first(name).and_then(Value::as_bytes);
        let exchange = bytes("x-dead-letter-exchange")?;
        Some(Arc::new(DeadLetterTo {
            exchange: String::from_utf8_lossy(exchange).into_owned(),
            routing_key: bytes("x-dead-letter-routing-key").map(<[u8]>::to_vec),
        }))
    }
}
