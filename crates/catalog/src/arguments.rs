//! What a declaration's arguments may say.
//!
//! Texts and order are RabbitMQ 4.3's. What it knows and this broker does not do yet is refused, never ignored;
//! arguments that RabbitMQ does not know either are kept and mean nothing, as there.

use crate::policy::definition::lower_limit;
use crate::refusal::{ArgumentFault, InvalidArgument};
use crate::retry_delay::retry_delay;
use crate::{Exchange, ExchangeKind, ObjectKind, Overflow, Queue, QueueSettings, Refusal};
use model::table::{Table, Value, inequivalent_arg, inequivalent_field};

/// What an argument must be.
enum Rule {
    /// An integer from the given least value on.
    Number(i64),
    /// Milliseconds: an integer from the given least value up to ten years.
    Time(i64),
    /// Any text.
    Text,
    /// One of these words.
    Word(&'static [&'static str], Complaint),
    /// A classic queue version: 1 or 2.
    Version,
    /// Classic, or nothing.
    Type,
    /// An integer from 0 to this.
    AtMost(i64),
    /// An integer from -1 on.
    Limit,
    /// See [`crate::retry_delay`].
    Retry,
    /// The name of a header: text that is not empty.
    Name,
    /// True or false.
    Bool,
    /// An argument of quorum queues or streams, which RabbitMQ refuses for classic queues.
    Foreign,
}

/// How RabbitMQ complains about a word.
enum Complaint {
    Term(&'static str),
    /// Text, with the word at the end.
    Text(&'static str),
}

const LOCATORS: &[&str] = &[
    "client-local",
    "balanced",
    "random",
    "least-leaders",
    "min-masters",
];

/// The arguments of classic queues, in the order in which RabbitMQ checks them.
const QUEUE_RULES: &[(&str, Rule)] = &[
    ("x-expires", Rule::Time(1)),
    ("x-message-ttl", Rule::Time(0)),
    ("x-dead-letter-exchange", Rule::Text),
    ("x-dead-letter-routing-key", Rule::Text),
    ("x-dead-letter-strategy", Rule::Foreign),
    ("x-max-length", Rule::Number(0)),
    ("x-max-length-bytes", Rule::Number(0)),
    // Quorum queues' in RabbitMQ 3.10, without effect there too; clients that set them on all queues are let in.
    ("x-max-in-memory-length", Rule::Number(0)),
    ("x-max-in-memory-bytes", Rule::Number(0)),
    ("x-max-priority", Rule::AtMost(255)),
    (
        "x-overflow",
        Rule::Word(
            &["drop-head", "reject-publish", "reject-publish-dlx"],
            Complaint::Term("invalid_overflow"),
        ),
    ),
    // All our queues page by themselves: accepted without effect. RabbitMQ 3.10's check; 4.3 has none.
    (
        "x-queue-mode",
        Rule::Word(&["default", "lazy"], Complaint::Text("unsupported queue mode")),
    ),
    ("x-queue-version", Rule::Version),
    ("x-single-active-consumer", Rule::Bool),
    // Ours; RabbitMQ would keep it without a meaning.
    ("x-fair-key", Rule::Name),
    // Of RabbitMQ's plugin of that name.
    ("x-message-deduplication", Rule::Bool),
    ("x-queue-type", Rule::Type),
    ("x-quorum-initial-group-size", Rule::Foreign),
    ("x-quorum-target-group-size", Rule::Foreign),
    // Quorum queues' in RabbitMQ, which takes anything there.
    ("x-delivery-limit", Rule::Limit),
    // Ours.
    ("x-retry-delay", Rule::Retry),
    // Quorum queues' in RabbitMQ 4.3.
    ("x-consumer-timeout", Rule::Number(0)),
    ("x-consumer-disconnected-timeout", Rule::Foreign),
    ("x-delayed-retry-type", Rule::Foreign),
    ("x-delayed-retry-min", Rule::Foreign),
    ("x-delayed-retry-max", Rule::Foreign),
    ("x-max-age", Rule::Foreign),
    ("x-stream-max-segment-size-bytes", Rule::Foreign),
    ("x-stream-filter-size-bytes", Rule::Foreign),
    ("x-initial-cluster-size", Rule::Foreign),
    (
        "x-queue-leader-locator",
        Rule::Word(LOCATORS, Complaint::Term("invalid_queue_locator_arg")),
    ),
    (
        "x-queue-master-locator",
        Rule::Word(LOCATORS, Complaint::Term("invalid_queue_locator_arg")),
    ),
];

/// The arguments that a repeated declaration must repeat, in the order in which RabbitMQ compares them.
const COMPARED: &[&str] = &[
    "x-expires",
    "x-message-ttl",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-overflow",
    "x-queue-mode",
    "x-queue-version",
    "x-single-active-consumer",
    "x-fair-key",
    "x-message-deduplication",
    "x-delivery-limit",
    "x-retry-delay",
    "x-consumer-timeout",
    "x-queue-type",
    "x-queue-leader-locator",
    "x-queue-master-locator",
];

/// Checks the arguments of a new queue.
///
/// # Errors
/// What is wrong with the first bad one.
pub fn check_queue(arguments: &Table, queue: &str, vhost: &str) -> Result<(), Refusal> {
    check_each(arguments).map_err(|(argument, fault)| {
        Refusal::InvalidArgument(InvalidArgument {
            argument: argument.into(),
            kind: ObjectKind::Queue,
            name: queue.into(),
            vhost: vhost.into(),
            fault,
        })
    })
}

fn check_each(arguments: &Table) -> Result<(), (&'static str, ArgumentFault)> {
    // RabbitMQ looks at this one first of all, for the permission to write there, and in other words.
    let exchange = "x-dead-letter-exchange";
    if let Some(value) = arguments.get(exchange)
        && value.as_bytes().is_none()
    {
        return Err((exchange, ArgumentFault::Type(value.type_name())));
    }
    for (name, rule) in QUEUE_RULES {
        let Some(value) = arguments.get(name) else {
            continue;
        };
        if matches!(rule, Rule::Foreign) {
            return Err((name, ArgumentFault::Foreign));
        }
        let alone = *name == "x-dead-letter-routing-key" && !arguments.contains(exchange);
        let lonely = || alone.then(|| "routing_key_but_no_dlx_defined".to_string());
        let checked = rule.check(value).and_then(|()| lonely().map_or(Ok(()), Err));
        checked.map_err(|reason| (*name, ArgumentFault::Value(reason)))?;
    }
    // Priorities and groups are two answers to one question.
    if arguments.contains("x-fair-key") && arguments.contains("x-max-priority") {
        let reason = "fair_key_and_max_priority_defined".into();
        return Err(("x-fair-key", ArgumentFault::Value(reason)));
    }
    Ok(())
}

/// The arguments of a queue as RabbitMQ 4.3 keeps, compares and shows them: with its type, even if nobody named it.
pub fn with_type(mut arguments: Table) -> Table {
    if !arguments.contains("x-queue-type") {
        arguments.push("x-queue-type", "classic");
    }
    arguments
}

/// What checked arguments and a checked policy mean: the one place where a queue's effective settings come from. Of numbers
/// the lower counts, of the rest the argument (RabbitMQ's rule for classic queues).
pub fn queue_settings(arguments: &Table, policy: Option<&Table>) -> QueueSettings {
    let argument = |name: &str| arguments.get(name);
    let policy = |name: &str| policy?.get(name.strip_prefix("x-")?);
    let least = |name: &str, most: u64| {
        let number = |value: &Value| u64::try_from(value.as_integer()?).ok();
        let both = [argument(name), policy(name)];
        let least = both.into_iter().flatten().filter_map(number).min();
        least.map(|it| it.min(most))
    };
    let first = |name: &str| argument(name).or_else(|| policy(name));
    let limits = [argument("x-delivery-limit"), policy("x-delivery-limit")];
    let limits = limits.into_iter().flatten().filter_map(Value::as_integer);
    QueueSettings {
        single_active: argument("x-single-active-consumer") == Some(&Value::Bool(true)),
        max_priority: least("x-max-priority", 255).map_or(0, |it| it as u8),
        fair_key: argument("x-fair-key").and_then(Value::as_str).map(Into::into),
        max_length: least("x-max-length", u64::MAX),
        max_length_bytes: least("x-max-length-bytes", u64::MAX),
        overflow: match first("x-overflow").and_then(Value::as_str) {
            Some("reject-publish") => Overflow::RejectPublish,
            Some("reject-publish-dlx") => Overflow::RejectPublishDeadLetter,
            _ => Overflow::DropHead,
        },
        delivery_limit: limits.reduce(lower_limit),
        retry_delay: first("x-retry-delay").and_then(|it| retry_delay(it).ok()),
        deduplicates: argument("x-message-deduplication") == Some(&Value::Bool(true)),
        consumer_timeout_ms: least("x-consumer-timeout", model::LONGEST_MS),
        // RabbitMQ lets policies ask for longer times than arguments.
        message_ttl_ms: least("x-message-ttl", model::LONGEST_MS),
        expires_ms: least("x-expires", model::LONGEST_MS),
        dead_letter_exchange: first("x-dead-letter-exchange")
            .and_then(Value::as_bytes)
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
        dead_letter_routing_key: first("x-dead-letter-routing-key")
            .and_then(Value::as_bytes)
            .map(<[u8]>::to_vec),
    }
}

/// Checks the arguments of a new exchange.
///
/// # Errors
/// An alternate exchange that is no string.
pub fn check_exchange(arguments: &Table, exchange: &str, vhost: &str) -> Result<(), Refusal> {
    match arguments.get("alternate-exchange") {
        None | Some(Value::LongStr(_)) => Ok(()),
        Some(other) => Err(Refusal::InvalidArgument(InvalidArgument {
            argument: "alternate-exchange".into(),
            kind: ObjectKind::Exchange,
            name: exchange.into(),
            vhost: vhost.into(),
            fault: ArgumentFault::Type(other.type_name()),
        })),
    }
}

/// Checks that a repeated declaration asks for the queue that is there. Exclusiveness is checked before.
///
/// # Errors
/// [`Refusal::Inequivalent`] naming the first difference.
pub fn check_same_queue(
    queue: &Queue,
    durable: bool,
    auto_delete: bool,
    arguments: &Table,
) -> Result<(), Refusal> {
    let resource = format!("queue '{}' in vhost '{}'", queue.name, queue.vhost);
    same_field(&resource, "durable", durable, queue.durable)?;
    same_field(&resource, "auto_delete", auto_delete, queue.auto_delete)?;
    COMPARED
        .iter()
        .try_for_each(|name| same_argument(&resource, name, arguments, &queue.arguments))
}

/// Checks that a repeated declaration asks for the exchange that is there.
///
/// # Errors
/// [`Refusal::Inequivalent`] naming the first difference.
pub fn check_same_exchange(
    exchange: &Exchange,
    kind: ExchangeKind,
    durable: bool,
    auto_delete: bool,
    internal: bool,
    arguments: &Table,
) -> Result<(), Refusal> {
    let resource = format!("exchange '{}' in vhost '{}'", exchange.name, exchange.vhost);
    if kind != exchange.kind {
        return Err(Refusal::Inequivalent {
            text: inequivalent_field(&resource, "type", &kind, &exchange.kind),
        });
    }
    same_field(&resource, "durable", durable, exchange.durable)?;
    same_field(&resource, "auto_delete", auto_delete, exchange.auto_delete)?;
    same_field(&resource, "internal", internal, exchange.internal)?;
    same_argument(&resource, "alternate-exchange", arguments, &exchange.arguments)
}

fn same_field(resource: &str, field: &str, received: bool, current: bool) -> Result<(), Refusal> {
    if received == current {
        return Ok(());
    }
    Err(Refusal::Inequivalent {
        text: inequivalent_field(&resource, field, &received, &current),
    })
}

fn same_argument(resource: &str, name: &str, received: &Table, current: &Table) -> Result<(), Refusal> {
    match inequivalent_arg(&resource, name, received.get(name), current.get(name)) {
        Some(text) => Err(Refusal::Inequivalent { text }),
        None => Ok(()),
    }
}

impl Rule {
    /// The complaint if the value breaks the rule: an Erlang term, as RabbitMQ prints it.
    fn check(&self, value: &Value) -> Result<(), String> {
        match self {
            Self::Number(least) => number(value, *least).map(drop),
            Self::Time(least) => match number(value, *least)? {
                ms if ms.cast_unsigned() > model::LONGEST_MS => Err(format!("{{value_too_large,{ms}}}")),
                _ => Ok(()),
            },
            Self::Text => text(value).map(drop),
            Self::Word(words, complaint) => one_of(text(value)?, words, complaint),
            Self::Version => match number(value, 0)? {
                // RabbitMQ before 4.0 had both; here neither makes a difference.
                1 | 2 => Ok(()),
                other => Err(format!("\"unsupported queue version '{other}'\"")),
            },
            Self::Type => match text(value)? {
                "" | "classic" => Ok(()),
                other => Err(format!("\"unsupported queue type '{other}'\"")),
            },
            // Not for its value, but at all: see `check_queue`.
            Self::Foreign => Ok(()),
            Self::AtMost(most) => match number(value, 0)? {
                it if it > *most => Err(format!("{{max_value_exceeded,{it}}}")),
                _ => Ok(()),
            },
            Self::Limit => match value.as_integer() {
                None => number(value, 0).map(drop),
                Some(it) if it < -1 => Err(format!("{{value_negative,{it}}}")),
                Some(_) => Ok(()),
            },
            Self::Retry => retry_delay(value).map(drop),
            Self::Name => match text(value)? {
                "" => Err("empty_name".into()),
                _ => Ok(()),
            },
            Self::Bool => match value {
                Value::Bool(_) => Ok(()),
                other => Err(format!("{{unacceptable_type,{}}}", other.type_name())),
            },
        }
    }
}

fn number(value: &Value, least: i64) -> Result<i64, String> {
    match value.as_integer() {
        None => Err(format!("\"expected integer, got {}\"", value.type_name())),
        Some(it) if it < 0 => Err(format!("{{value_negative,{it}}}")),
        Some(it) if it < least => Err(format!("{{value_zero,{it}}}")),
        Some(it) => Ok(it),
    }
}

fn text(value: &Value) -> Result<&str, String> {
    match value {
        Value::LongStr(_) => Ok(value.as_str().unwrap_or("not UTF-8")),
        other => Err(format!("{{unacceptable_type,{}}}", other.type_name())),
    }
}

fn one_of(word: &str, words: &[&str], complaint: &Complaint) -> Result<(), String> {
    if words.contains(&word) {
        return Ok(());
    }
    Err(match complaint {
        Complaint::Term(term) => term.to_string(),
        Complaint::Text(text) => format!("\"{text} '{word}'\""),
    })
}
