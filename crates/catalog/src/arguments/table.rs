//! The one table of what declarations, policies and consumers may say of a queue, and for which kinds it is.

use super::policy_key::{KeyRule, PolicyKey, bound, key};
use super::rule::{Complaint, Rule};
use crate::kinds::QueueKind;

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
}

impl Argument {
    const fn policy(self, policy: PolicyKey) -> Self {
        Self {
            policy: Some(policy),
            ..self
        }
    }

    /// True if this version has a kind that takes it.
    pub(crate) fn is_here(&self) -> bool {
        self.kinds.iter().any(|kind| kind.is_here())
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
    }
}

/// One that no kind of this version takes. Policies have it under a key of this name.
const fn later(name: &'static str, kinds: &'static [QueueKind], policy: Option<&'static str>) -> Argument {
    match policy {
        Some(name_there) => free(name, Rule::Unasked, kinds).policy(key(name_there, KeyRule::Anything, "")),
        None => free(name, Rule::Unasked, kinds),
    }
}

use QueueKind::{Classic, Mirrored, Quorum, Stream};

const QUEUES: &[QueueKind] = &[Classic, Mirrored, Quorum];
const CLASSIC: &[QueueKind] = &[Classic, Mirrored];
const QUORUM: &[QueueKind] = &[Quorum];
const STREAM: &[QueueKind] = &[Stream];
const REPLICATED: &[QueueKind] = &[Quorum, Stream];
const ALL: &[QueueKind] = &[Classic, Mirrored, Quorum, Stream];

const OVERFLOWS: &[&str] = &["drop-head", "reject-publish", "reject-publish-dlx"];
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
    argument("x-expires", Rule::Time(1), QUEUES).policy(bound("expires", KeyRule::From(1), "queue expiry")),
    argument("x-message-ttl", Rule::Time(0), QUEUES).policy(bound(
        "message-ttl",
        KeyRule::From(0),
        "message TTL",
    )),
    argument("x-dead-letter-exchange", Rule::Text, QUEUES).policy(key(
        "dead-letter-exchange",
        KeyRule::Text,
        "dead letter exchange name",
    )),
    argument("x-dead-letter-routing-key", Rule::Text, QUEUES).policy(key(
        "dead-letter-routing-key",
        KeyRule::Text,
        "dead letter routing key",
    )),
    later("x-dead-letter-strategy", QUORUM, Some("dead-letter-strategy")),
    argument("x-max-length", Rule::Number(0), QUEUES).policy(bound(
        "max-length",
        KeyRule::From(0),
        "maximum length",
    )),
    argument("x-max-length-bytes", Rule::Number(0), ALL).policy(bound(
        "max-length-bytes",
        KeyRule::From(0),
        "maximum length in bytes",
    )),
    // Quorum queues' in RabbitMQ 3.10, without effect there too; clients that set them on all queues are let in.
    free("x-max-in-memory-length", Rule::Number(0), QUEUES).policy(bound(
        "max-in-memory-length",
        KeyRule::From(0),
        "maximum memory in bytes",
    )),
    free("x-max-in-memory-bytes", Rule::Number(0), QUEUES).policy(bound(
        "max-in-memory-bytes",
        KeyRule::From(0),
        "maximum memory in bytes",
    )),
    argument("x-max-priority", Rule::AtMost(255), CLASSIC),
    argument(
        "x-overflow",
        Rule::Word(OVERFLOWS, Complaint::Term("invalid_overflow")),
        QUEUES,
    )
    .policy(bound("overflow", KeyRule::Word(OVERFLOWS), "overflow value")),
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
    argument("x-single-active-consumer", Rule::Bool, QUEUES),
    // Ours; RabbitMQ would keep it without a meaning.
    argument("x-fair-key", Rule::Name, CLASSIC),
    // Of RabbitMQ's plugin of that name.
    argument("x-message-deduplication", Rule::Bool, CLASSIC),
    // Quorum queues' in RabbitMQ, which takes anything there.
    argument("x-delivery-limit", Rule::Limit, QUEUES).policy(bound(
        "delivery-limit",
        KeyRule::Whole,
        "delivery limit",
    )),
    // Ours.
    argument("x-retry-delay", Rule::Retry, QUEUES).policy(key("retry-delay", KeyRule::Retry, "retry delay")),
    // Quorum queues' in RabbitMQ 4.3.
    argument("x-consumer-timeout", Rule::Number(0), QUEUES).policy(key(
        "consumer-timeout",
        KeyRule::From(0),
        "consumer timeout",
    )),
    argument("x-queue-type", Rule::Kind, ALL),
    later("x-quorum-initial-group-size", QUORUM, None),
    later("x-quorum-target-group-size", QUORUM, Some("target-group-size")),
    later(
        "x-consumer-disconnected-timeout",
        QUORUM,
        Some("consumer-disconnected-timeout"),
    ),
    later("x-delayed-retry-type", QUORUM, Some("delayed-retry-type")),
    later("x-delayed-retry-min", QUORUM, Some("delayed-retry-min")),
    later("x-delayed-retry-max", QUORUM, Some("delayed-retry-max")),
    later("x-max-age", STREAM, Some("max-age")),
    later(
        "x-stream-max-segment-size-bytes",
        STREAM,
        Some("stream-max-segment-size-bytes"),
    ),
    later(
        "x-stream-filter-size-bytes",
        STREAM,
        Some("stream-filter-size-bytes"),
    ),
    later("x-initial-cluster-size", REPLICATED, Some("initial-cluster-size")),
    argument(
        "x-queue-leader-locator",
        Rule::Word(LOCATORS, Complaint::Term("invalid_queue_locator_arg")),
        ALL,
    )
    .policy(key(
        "queue-leader-locator",
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
    ("x-stream-offset", STREAM),
    ("x-stream-filter", STREAM),
    ("x-stream-match-unfiltered", STREAM),
];
