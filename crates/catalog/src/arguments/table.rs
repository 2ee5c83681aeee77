//! The one table of what declarations, policies and consumers may say of a queue, for which kinds it is, and what it sets.

use super::policy_key::{KeyRule, PolicyKey, bound, key};
use super::retry_delay::{delayed_retry, retry_delay};
use super::rule::{Complaint, Rule};
use super::settings::Said;
use super::stream::{SEGMENT_MOST, age_ms};
use crate::kinds::QueueKind;
use model::{DeadLetterTo, DeliveryLimit, LONGEST_MS, Overflow, QueueSettings, Sorting};
use std::sync::Arc;

/// A line of the table.
pub(crate) struct Argument {
    pub(super) name: &'static str,
    pub(super) rule: Rule,
    /// Queues of all others are refused with it.
    pub(super) kinds: &'static [QueueKind],
    /// A repeated declaration must repeat it.
    pub(super) is_compared: bool,
    /// The key under which policies say it.
    pub(crate) policy: Option<PolicyKey>,
    /// Another argument that must be there, or must not, and the complaint.
    pub(super) beside: Option<Beside>,
    /// What it changes in a queue's settings, if it is said.
    pub(super) sets: Option<Sets>,
}

/// Sets what an argument means. Arguments of the lines above have done so.
type Sets = fn(&mut QueueSettings, &Said<'_>);

/// What an argument asks of another one.
pub(super) struct Beside {
    pub(super) other: &'static str,
    /// True if the other one must be there.
    pub(super) is_needed: bool,
    pub(super) complaint: &'static str,
}

impl Argument {
    const fn policy(self, policy: PolicyKey) -> Self {
        Self {
            policy: Some(policy),
            ..self
        }
    }

    const fn sets(self, sets: Sets) -> Self {
        Self {
            sets: Some(sets),
            ..self
        }
    }

    const fn beside(self, other: &'static str, is_needed: bool, complaint: &'static str) -> Self {
        let beside = Beside {
            other,
            is_needed,
            complaint,
        };
        Self {
            beside: Some(beside),
            ..self
        }
    }
}

/// One that declarations must repeat.
const fn argument(name: &'static str, rule: Rule, kinds: &'static [QueueKind]) -> Argument {
    Argument {
        is_compared: true,
        ..free(name, rule, kinds)
    }
}

/// One that declarations need not repeat.
const fn free(name: &'static str, rule: Rule, kinds: &'static [QueueKind]) -> Argument {
    Argument {
        name,
        rule,
        kinds,
        is_compared: false,
        policy: None,
        beside: None,
        sets: None,
    }
}

use QueueKind::{Classic, Quorum, Stream};

const QUEUES: &[QueueKind] = &[Classic, Quorum];
const CLASSIC: &[QueueKind] = &[Classic];
const QUORUM: &[QueueKind] = &[Quorum];
const STREAM: &[QueueKind] = &[Stream];
const ALL: &[QueueKind] = &[Classic, Quorum, Stream];

/// How many nodes are to have a new queue.
pub(super) const GROUP_SIZE: &str = "x-quorum-initial-group-size";
/// How many nodes have a new stream, by argument and policy.
pub(super) const CLUSTER_SIZE: (&str, &str) = ("x-initial-cluster-size", "initial-cluster-size");

/// How many nodes are to have a queue in the long run, and where it is to be led first: the argument and the policy's key.
pub(super) const TARGET_SIZE: (&str, &str) = ("x-quorum-target-group-size", "target-group-size");
pub(super) const LEADER_LOCATOR: (&str, &str) = ("x-queue-leader-locator", "queue-leader-locator");

/// Named twice: for permission to write there, a declaration is asked for it first.
pub(crate) const DEAD_LETTER_EXCHANGE: &str = "x-dead-letter-exchange";

const OVERFLOWS: &[&str] = &["drop-head", "reject-publish", "reject-publish-dlx"];
const STRATEGIES: &[&str] = &["at-most-once", "at-least-once"];
const RETRY_TYPES: &[&str] = &["disabled", "all", "failed", "returned"];
const MODES: &[&str] = &["default", "lazy"];
const LOCATORS: &[&str] = &[
    "client-local",
    "balanced",
    "random",
    "least-leaders",
    "min-masters",
];
/// Policies of RabbitMQ 4.3 know those of it alone.
const POLICY_LOCATORS: &[&str] = &["client-local", "balanced", "random", "least-leaders"];

/// In the order in which RabbitMQ checks and compares them.
pub(crate) const ARGUMENTS: &[Argument] = &[
    // RabbitMQ lets policies ask for longer times than arguments.
    argument("x-expires", Rule::Time(1), QUEUES)
        .policy(bound("expires", KeyRule::From(1), "queue expiry"))
        .sets(|settings, said| settings.expires_ms = said.least(LONGEST_MS)),
    argument("x-message-ttl", Rule::Time(0), QUEUES)
        .policy(bound("message-ttl", KeyRule::From(0), "message TTL"))
        .sets(|settings, said| settings.message_ttl_ms = said.least(LONGEST_MS)),
    argument(DEAD_LETTER_EXCHANGE, Rule::Text, QUEUES)
        .policy(key(
            "dead-letter-exchange",
            KeyRule::Text,
            "dead letter exchange name",
        ))
        .sets(|settings, said| {
            settings.dead_letter = said.bytes().map(|exchange| {
                Arc::new(DeadLetterTo {
                    exchange: String::from_utf8_lossy(exchange).into_owned(),
                    routing_key: None,
                    at_least_once: false,
                })
            });
        }),
    argument("x-dead-letter-routing-key", Rule::Text, QUEUES)
        .policy(key(
            "dead-letter-routing-key",
            KeyRule::Text,
            "dead letter routing key",
        ))
        .beside(DEAD_LETTER_EXCHANGE, true, "routing_key_but_no_dlx_defined")
        .sets(|settings, said| {
            if let Some(to) = &mut settings.dead_letter {
                Arc::make_mut(to).routing_key = said.bytes().map(<[u8]>::to_vec);
            }
        }),
    argument(
        "x-dead-letter-strategy",
        Rule::Word(STRATEGIES, Complaint::Term("invalid_dlx_strategy")),
        QUORUM,
    )
    .policy(key(
        "dead-letter-strategy",
        KeyRule::Word(STRATEGIES),
        "dead letter strategy",
    ))
    .sets(|settings, said| {
        if let Some(to) = &mut settings.dead_letter {
            Arc::make_mut(to).at_least_once = said.text() == Some("at-least-once");
        }
    }),
    argument("x-max-length", Rule::Number(0), QUEUES)
        .policy(bound("max-length", KeyRule::From(0), "maximum length"))
        .sets(|settings, said| settings.max_length = said.least(u64::MAX)),
    argument("x-max-length-bytes", Rule::Number(0), ALL)
        .policy(bound(
            "max-length-bytes",
            KeyRule::From(0),
            "maximum length in bytes",
        ))
        .sets(|settings, said| {
            // Of streams the policy counts, as with the rest of what is said of them.
            let is_stream = said.kind == Stream;
            let most = u64::MAX;
            settings.max_length_bytes = if is_stream {
                said.ruled(most)
            } else {
                said.least(most)
            };
        }),
    // Quorum queues' in RabbitMQ 3.10, without effect there too; clients that set them on all queues are let in.
    argument("x-max-in-memory-length", Rule::Number(0), QUEUES).policy(bound(
        "max-in-memory-length",
        KeyRule::From(0),
        "maximum memory in bytes",
    )),
    argument("x-max-in-memory-bytes", Rule::Number(0), QUEUES).policy(bound(
        "max-in-memory-bytes",
        KeyRule::From(0),
        "maximum memory in bytes",
    )),
    argument("x-max-priority", Rule::AtMost(255), CLASSIC).sets(|settings, said| {
        settings.sorting = match said.least(255) {
            // One priority is none, as in RabbitMQ.
            None | Some(0) => Sorting::Arrival,
            Some(highest) => Sorting::Priority(highest as u8),
        };
    }),
    argument(
        "x-overflow",
        Rule::Word(OVERFLOWS, Complaint::Term("invalid_overflow")),
        QUEUES,
    )
    .policy(bound("overflow", KeyRule::Word(OVERFLOWS), "overflow value"))
    .sets(|settings, said| {
        // RabbitMQ has a quorum queue's policy decide, and no refused messages go to its dead-letter exchange.
        let is_quorum = said.kind == Quorum;
        let word = if is_quorum { said.ruled_text() } else { said.text() };
        settings.overflow = match word {
            Some("reject-publish") => Overflow::Reject,
            Some("reject-publish-dlx") if !is_quorum => Overflow::RejectAndDeadLetter,
            _ => Overflow::DropHead,
        };
    }),
    // All our queues page by themselves: accepted without effect. RabbitMQ 3.10's check; 4.3 has none.
    argument(
        "x-queue-mode",
        Rule::Word(MODES, Complaint::Text("unsupported queue mode")),
        CLASSIC,
    )
    .policy(key("queue-mode", KeyRule::Word(MODES), "queue-mode value")),
    argument("x-queue-version", Rule::Version, CLASSIC).policy(bound(
        "queue-version",
        KeyRule::Version,
        "queue-version value",
    )),
    argument("x-single-active-consumer", Rule::Bool, QUEUES)
        .sets(|settings, said| settings.single_active = said.is_true()),
    // Ours; RabbitMQ would keep it without a meaning. Priorities and groups are two answers to one question.
    argument("x-fair-key", Rule::Name, CLASSIC)
        .beside("x-max-priority", false, "fair_key_and_max_priority_defined")
        .sets(|settings, said| {
            if let Some(header) = said.text() {
                settings.sorting = Sorting::FairKey(header.into());
            }
        }),
    // Of RabbitMQ's plugin of that name.
    argument("x-message-deduplication", Rule::Bool, CLASSIC)
        .sets(|settings, said| settings.deduplicates = said.is_true()),
    // Quorum queues' in RabbitMQ, which takes anything there.
    argument("x-delivery-limit", Rule::Limit, QUEUES)
        .policy(bound("delivery-limit", KeyRule::Limit, "delivery limit"))
        .sets(|settings, said| {
            settings.delivery_limit = said.limit().map(|limit| match limit {
                ..0 => DeliveryLimit::Unlimited,
                limit => DeliveryLimit::Returns(u32::try_from(limit).unwrap_or(u32::MAX)),
            });
        }),
    // Ours.
    argument("x-retry-delay", Rule::Retry, QUEUES)
        .policy(key("retry-delay", KeyRule::Retry, "retry delay"))
        .sets(|settings, said| settings.retry_delay = said.first().and_then(|it| retry_delay(it).ok())),
    // Quorum queues' in RabbitMQ 4.3.
    argument("x-consumer-timeout", Rule::Number(0), QUEUES)
        .policy(key("consumer-timeout", KeyRule::From(0), "consumer timeout"))
        .sets(|settings, said| settings.consumer_timeout_ms = said.least(LONGEST_MS)),
    argument("x-queue-type", Rule::Kind, ALL),
    // As many as there are, if there are fewer.
    argument(GROUP_SIZE, Rule::Number(1), QUORUM),
    // RabbitMQ takes it everywhere, and never compares it.
    free(TARGET_SIZE.0, Rule::Number(1), ALL).policy(bound(
        TARGET_SIZE.1,
        KeyRule::AtLeast(1),
        "qq target count value",
    )),
    argument("x-consumer-disconnected-timeout", Rule::Number(0), QUORUM)
        .policy(key(
            "consumer-disconnected-timeout",
            KeyRule::From(0),
            "consumer disconnected timeout",
        ))
        .sets(|settings, said| settings.consumer_disconnected_ms = said.least(LONGEST_MS)),
    argument(
        "x-delayed-retry-type",
        Rule::Word(RETRY_TYPES, Complaint::Text("unsupported delayed retry type")),
        QUORUM,
    )
    .policy(bound(
        "delayed-retry-type",
        KeyRule::Word(RETRY_TYPES),
        "delayed retry type. Must be one of: all, failed, returned, disabled",
    ))
    .sets(|settings, said| settings.delayed_retry = delayed_retry(said)),
    argument("x-delayed-retry-min", Rule::Number(1), QUORUM).policy(bound(
        "delayed-retry-min",
        KeyRule::AtLeast(1),
        "delayed retry minimum delay. Must be a positive integer",
    )),
    argument("x-delayed-retry-max", Rule::Number(1), QUORUM).policy(bound(
        "delayed-retry-max",
        KeyRule::From(1),
        "delayed retry maximum delay. Must be a positive integer",
    )),
    // Of streams the policy counts, whatever the argument says.
    argument("x-max-age", Rule::Age, STREAM)
        .policy(key("max-age", KeyRule::Age, "max age"))
        .sets(|settings, said| settings.max_age_ms = said.ruled_text().and_then(age_ms)),
    argument("x-stream-max-segment-size-bytes", Rule::Number(0), STREAM)
        .policy(key(
            "stream-max-segment-size-bytes",
            KeyRule::From(0),
            "stream max segment size",
        ))
        .sets(|settings, said| settings.segment_bytes = said.ruled(SEGMENT_MOST as u64)),
    argument("x-stream-filter-size-bytes", Rule::Number(0), STREAM)
        .policy(key(
            "stream-filter-size-bytes",
            KeyRule::Between(16, 255),
            "filter size. Valid range is 16-255",
        ))
        .sets(|settings, said| settings.filter_bytes = said.ruled(255).map(|it| it as u8)),
    // As many as there are, if there are fewer.
    argument(CLUSTER_SIZE.0, Rule::Number(1), STREAM).policy(key(
        CLUSTER_SIZE.1,
        KeyRule::From(1),
        "initial cluster size",
    )),
    argument(
        LEADER_LOCATOR.0,
        Rule::Word(LOCATORS, Complaint::Term("invalid_queue_locator_arg")),
        ALL,
    )
    .policy(key(
        LEADER_LOCATOR.1,
        KeyRule::Word(POLICY_LOCATORS),
        "queue leader locator value",
    )),
    argument(
        "x-queue-master-locator",
        Rule::Word(LOCATORS, Complaint::Term("invalid_queue_locator_arg")),
        CLASSIC,
    ),
];

/// What consumers may say to queues of some kinds only. Of the rest RabbitMQ ignores what it does not know.
pub(super) const CONSUMER_ARGUMENTS: &[(&str, &[QueueKind])] = &[
    ("x-priority", QUEUES),
    ("x-consumer-timeout", QUEUES),
    ("x-stream-offset", STREAM),
    ("x-stream-filter", STREAM),
    ("x-stream-match-unfiltered", STREAM),
];
