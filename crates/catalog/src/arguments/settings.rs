//! What arguments and policies mean together: the one place where a queue's settings in force come from.
//!
//! Each line of the table says what its argument sets; here is how it reads what was said.

use super::table::{ARGUMENTS, Argument};
use crate::kinds::QueueKind;
use crate::queue::Queue;
use model::table::{Table, Value};
use model::{DeadLetterTo, DeliveryLimit, Overflow, QueueSettings, Sorting};
use std::sync::Arc;

/// How often a message of a quorum queue may come back if nothing is said (RabbitMQ 4.0).
const QUORUM_DELIVERY_LIMIT: u32 = 20;

const OVERFLOW: &str = "x-overflow";

/// The lower of two limits, of which a negative one is none.
pub(crate) fn lower_limit(a: i64, b: i64) -> i64 {
    if a < 0 || b < 0 { a.max(b) } else { a.min(b) }
}

/// The settings of a queue with checked arguments and a checked policy. Of numbers the lower counts, of the rest the argument
/// (RabbitMQ's rule for classic queues; lines of the table say where it has another one for quorum queues).
pub fn queue_settings(queue: &Queue, policy: Option<&Table>) -> QueueSettings {
    let mut settings = QueueSettings {
        durable: queue.is_durable(),
        ..QueueSettings::default()
    };
    if !queue.kind.is_of_clients() {
        // What an exchange keeps, or other nodes have sent it, goes there again, and nothing else may be said of it.
        match queue.kind {
            QueueKind::Delayed => settings.delays = true,
            _ => settings.message_ttl_ms = Some(0),
        }
        settings.dead_letter = Some(Arc::new(DeadLetterTo {
            exchange: queue.name.to_string(),
            routing_key: None,
            at_least_once: false,
        }));
        return settings;
    }
    settings.auto_delete = queue.auto_delete;
    if queue.kind == QueueKind::Quorum {
        be_quorum(&mut settings);
        if queue.other_arguments.is_some() {
            be_converted(&mut settings);
        }
    }
    for argument in ARGUMENTS {
        let said = Said {
            kind: queue.kind,
            of: argument,
            arguments: &queue.arguments,
            policy,
        };
        if let (Some(set), Some(_)) = (argument.sets, said.first()) {
            set(&mut settings, &said);
        }
    }
    if settings.overflow != Overflow::Reject
        && let Some(to) = settings.dead_letter.as_mut().filter(|to| to.at_least_once)
    {
        // What waits for another queue to have room must not be what this one drops for lack of it, says RabbitMQ.
        Arc::make_mut(to).at_least_once = false;
    }
    settings
}

/// What is said of a quorum queue and cannot be so, with what is done instead; texts are RabbitMQ's.
pub fn fallbacks(queue: &Queue, policy: Option<&Table>) -> Vec<String> {
    let word = |name| {
        let mut known = ARGUMENTS.iter();
        let of = known.find(|argument| argument.name == name)?;
        let said = Said {
            kind: queue.kind,
            of,
            arguments: &queue.arguments,
            policy,
        };
        if name == OVERFLOW {
            said.ruled_text()
        } else {
            said.text()
        }
    };
    let named = format!("queue '{}' in vhost '{}'", queue.name, queue.vhost);
    let overflow = word(OVERFLOW);
    let mut told = Vec::new();
    if queue.kind != QueueKind::Quorum {
        return told;
    }
    if overflow == Some("reject-publish-dlx") {
        told.push(format!(
            "Invalid overflow strategy reject-publish-dlx for quorum {named}: it is drop-head"
        ));
    }
    if word("x-dead-letter-strategy") == Some("at-least-once") && overflow != Some("reject-publish") {
        let effective = "drop-head";
        told.push(format!(
            "Falling back to dead-letter-strategy at-most-once for {named} because configured dead-letter-strategy at-least-once is \
             incompatible with effective overflow strategy {effective}. To enable dead-letter-strategy at-least-once, set overflow strategy \
             to reject-publish."
        ));
    }
    told
}

/// What a quorum queue is unless something else is said, as in RabbitMQ 4.3.
fn be_quorum(settings: &mut QueueSettings) {
    settings.keeps_transient = true;
    settings.active_by_priority = true;
    settings.counts_failures = true;
    settings.sorting = Sorting::Levels;
    settings.delivery_limit = Some(DeliveryLimit::Returns(QUORUM_DELIVERY_LIMIT));
}

/// What a quorum queue is not if it was converted. Before, its messages came back as often as they liked, and none leaves because
/// of that now; nor are they counted, as what consumers hold was not when they got it, and would not be recognised. And whatever
/// priority publishers gave them (many clients say 0 where they mean none) they left in the order in which they came, and those
/// that are there are not to be overtaken.
fn be_converted(settings: &mut QueueSettings) {
    settings.delivery_limit = None;
    settings.counts_failures = false;
    settings.sorting = Sorting::Arrival;
}

/// What is said under one argument, in both places.
pub(super) struct Said<'a> {
    /// What the queue is.
    pub(super) kind: QueueKind,
    of: &'static Argument,
    arguments: &'a Table,
    policy: Option<&'a Table>,
}

impl<'a> Said<'a> {
    /// What the argument and the policy say, in this order.
    fn both(&self) -> impl Iterator<Item = &'a Value> {
        let argument = self.arguments.get(self.of.name);
        let policy = || self.policy?.get(self.of.policy.as_ref()?.name);
        argument.into_iter().chain(policy())
    }

    pub(super) fn first(&self) -> Option<&'a Value> {
        self.both().next()
    }

    /// As [`Said::text`], but what the policy says comes first.
    pub(super) fn ruled_text(&self) -> Option<&'a str> {
        self.both().last().and_then(Value::as_str)
    }

    /// What is said under another argument.
    pub(super) fn of(&self, name: &str) -> Option<Self> {
        let mut others = ARGUMENTS.iter();
        let of = others.find(|argument| argument.name == name)?;
        Some(Self { of, ..*self })
    }

    /// The lower number, and at most `most`.
    pub(super) fn least(&self, most: u64) -> Option<u64> {
        let number = |value: &Value| u64::try_from(value.as_integer()?).ok();
        let least = self.both().filter_map(number).min();
        least.map(|it| it.min(most))
    }

    /// The policy's number, or else the argument's, and at most `most`.
    pub(super) fn ruled(&self, most: u64) -> Option<u64> {
        let number = |value: &Value| u64::try_from(value.as_integer()?).ok();
        let ruled = self.both().filter_map(number).last();
        ruled.map(|it| it.min(most))
    }

    /// The lower limit; a negative one is none.
    pub(super) fn limit(&self) -> Option<i64> {
        self.both().filter_map(Value::as_integer).reduce(lower_limit)
    }

    pub(super) fn is_true(&self) -> bool {
        self.first() == Some(&Value::Bool(true))
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        self.first().and_then(Value::as_str)
    }

    pub(super) fn bytes(&self) -> Option<&'a [u8]> {
        self.first().and_then(Value::as_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Lifetime, NodeId};
    use crate::queue::Epoch;
    use model::QueueId;

    fn settings(arguments: Table, policy: Table) -> QueueSettings {
        let queue = Queue {
            id: QueueId(1),
            kind: QueueKind::Classic,
            vhost: "/".into(),
            name: "q".into(),
            lifetime: Lifetime::Durable,
            home: NodeId::FIRST,
            founders: Arc::default(),
            changed: Arc::default(),
            epoch: Epoch::default(),
            other_arguments: None,
            auto_delete: false,
            arguments: Arc::new(arguments),
        };
        queue_settings(&queue, Some(&policy))
    }

    #[test]
    fn of_numbers_the_lower_counts_and_of_the_rest_the_argument() {
        let said = Table::new()
            .with("x-max-length", 7)
            .with("x-delivery-limit", -1)
            .with("x-overflow", "reject-publish")
            .with("x-dead-letter-exchange", "mine");
        let policy = Table::new()
            .with("max-length", 9)
            .with("max-length-bytes", 5)
            .with("delivery-limit", 3)
            .with("overflow", "drop-head")
            .with("dead-letter-exchange", "theirs")
            .with("dead-letter-routing-key", "key");
        let found = settings(said, policy);
        assert_eq!((found.max_length, found.max_length_bytes), (Some(7), Some(5)));
        assert_eq!(found.delivery_limit, Some(DeliveryLimit::Returns(3)));
        assert_eq!(found.overflow, Overflow::Reject);
        let to = found.dead_letter.unwrap();
        assert_eq!(to.exchange, "mine");
        assert_eq!(to.routing_key.as_deref(), Some(&b"key"[..]));
    }

    #[test]
    fn policies_say_nothing_under_names_that_are_for_arguments_alone() {
        let policy = Table::new()
            .with("max-priority", 5)
            .with("single-active-consumer", true)
            .with("dead-letter-routing-key", "no exchange");
        let plain = QueueSettings {
            durable: true,
            ..QueueSettings::default()
        };
        assert_eq!(settings(Table::new(), policy), plain);
        let sorting = |arguments| settings(arguments, Table::new()).sorting;
        assert_eq!(sorting(Table::new().with("x-max-priority", 0)), Sorting::Arrival);
        assert_eq!(
            sorting(Table::new().with("x-max-priority", 3)),
            Sorting::Priority(3)
        );
    }
}
