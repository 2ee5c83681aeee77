//! What may be said of queues and exchanges: by those who declare them, by policies, and by those who consume.
//!
//! Texts and order are RabbitMQ 4.3's. What it knows and this broker does not do yet is refused, never ignored;
//! arguments that RabbitMQ does not know either are kept and mean nothing, as there.
//!
//! [`table`] says which arguments there are, for which kinds, what they must be (`rule`; `policy_key` for policies),
//! and what they set; [`settings`] puts a queue's settings together. A new argument of queues is a line in the table, a
//! field of `model::QueueSettings`, and the place in the queue that acts on it.

pub mod placing;
pub(crate) mod policy_key;
pub mod retry_delay;
mod rule;
pub mod settings;
pub mod stream;
pub(crate) mod table;

use crate::exchange::Exchange;
use crate::exchange_kinds::ExchangeKind;
use crate::kinds::QueueKind;
use crate::queue::Queue;
use crate::refusal::{ArgumentFault, InvalidArgument, ObjectKind, Refusal};
use model::table::{Table, Value, inequivalent_arg, inequivalent_field};
use rule::{integer, number};
use stream::StreamArguments;
use table::{ARGUMENTS, Argument, Beside, CLUSTER_SIZE, CONSUMER_ARGUMENTS, GROUP_SIZE};

pub(crate) use table::DEAD_LETTER_EXCHANGE;

pub use settings::queue_settings;

/// The argument that says which kind of queue is wanted.
pub(crate) const QUEUE_TYPE: &str = "x-queue-type";

/// What a consumer's arguments ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerArguments {
    /// `x-priority`: the highest is served first.
    pub priority: i64,
    /// `x-consumer-timeout`: how long a delivery may stay unacknowledged, in milliseconds; 0 for as long as it likes.
    pub timeout_ms: Option<u64>,
    /// What is asked of a stream; `None` of a queue of another kind.
    pub stream: Option<Box<StreamArguments>>,
}

/// Checks the arguments of a new queue.
///
/// # Errors
/// What is wrong with the first bad one.
pub fn check_queue(kind: QueueKind, arguments: &Table, queue: &str, vhost: &str) -> Result<(), Refusal> {
    check_each(kind, arguments)
        .map_err(|(argument, fault)| invalid(argument, ObjectKind::Queue, queue, vhost, fault))
}

/// Checks that a queue of this kind can be durable, exclusive and deleted automatically, or not, as it is to be.
///
/// # Errors
/// The first property that it cannot have, in RabbitMQ's order.
pub fn check_properties(
    kind: QueueKind,
    (durable, exclusive, auto_delete): (bool, bool, bool),
    queue: &str,
    vhost: &str,
) -> Result<(), Refusal> {
    let property = match (durable, exclusive, auto_delete) {
        _ if kind.is_compatible(durable, exclusive, auto_delete) => return Ok(()),
        (_, _, true) => "auto-delete",
        (_, true, _) => "exclusive-owner",
        _ => "non-durable",
    };
    Err(Refusal::InvalidProperty {
        property,
        queue: queue.into(),
        vhost: vhost.into(),
    })
}

fn invalid(argument: &str, kind: ObjectKind, name: &str, vhost: &str, fault: ArgumentFault) -> Refusal {
    Refusal::InvalidArgument(InvalidArgument {
        argument: argument.into(),
        kind,
        name: name.into(),
        vhost: vhost.into(),
        fault,
    })
}

fn check_each(kind: QueueKind, arguments: &Table) -> Result<(), (&'static str, ArgumentFault)> {
    // RabbitMQ looks at this one first of all, for the permission to write there, and in other words.
    if let Some(value) = arguments.get(DEAD_LETTER_EXCHANGE)
        && value.as_bytes().is_none()
    {
        return Err((DEAD_LETTER_EXCHANGE, ArgumentFault::Type(value.type_name())));
    }
    // Whatever the kind, it may be named.
    let is_own = |argument: &Argument| argument.name == QUEUE_TYPE || argument.kinds.contains(&kind);
    for argument in ARGUMENTS.iter().filter(|argument| is_own(argument)) {
        let name = argument.name;
        let Some(value) = arguments.get(name) else {
            continue;
        };
        let beside = argument.beside.as_ref();
        let fails = |it: &&Beside| arguments.contains(it.other) != it.is_needed;
        let beside = beside.filter(fails).map_or(Ok(()), |it| Err(it.complaint.into()));
        let checked = argument.rule.check(value).and(beside);
        checked.map_err(|reason| (name, ArgumentFault::Value(reason)))?;
    }
    let mut foreign = ARGUMENTS.iter().filter(|argument| !is_own(argument));
    match foreign.find(|argument| arguments.contains(argument.name)) {
        Some(argument) => Err((argument.name, ArgumentFault::Foreign(kind))),
        None if kind == QueueKind::Stream => stream::check_sizes(arguments),
        None => Ok(()),
    }
}

/// Reads the arguments of a consumer of a queue of this kind. RabbitMQ ignores what it does not know, and refuses what belongs to
/// other kinds.
///
/// # Errors
/// What is wrong with the first bad one.
pub fn check_consumer(
    kind: QueueKind,
    arguments: &Table,
    queue: &str,
    vhost: &str,
) -> Result<ConsumerArguments, Refusal> {
    let refused = |name: &str, fault| invalid(name, ObjectKind::Queue, queue, vhost, fault);
    let mut foreign = CONSUMER_ARGUMENTS.iter();
    let foreign = foreign.find(|(name, kinds)| arguments.contains(name) && !kinds.contains(&kind));
    if let Some((name, _)) = foreign {
        return Err(refused(name, ArgumentFault::Foreign(kind)));
    }
    let read = |name: &str, read: &dyn Fn(&Value) -> Result<i64, String>| {
        let value = arguments.get(name).map(read).transpose();
        value.map_err(|reason| refused(name, ArgumentFault::Value(reason)))
    };
    // Quorum queues' in RabbitMQ 4.3.
    let timeout = |value: &Value| number(value, 0);
    let stream = (kind == QueueKind::Stream).then(|| StreamArguments::read(arguments));
    let stream = stream.transpose().map_err(|(name, fault)| refused(name, fault))?;
    Ok(ConsumerArguments {
        stream: stream.map(Box::new),
        priority: read("x-priority", &integer)?.unwrap_or(0),
        timeout_ms: read("x-consumer-timeout", &timeout)?.map(i64::cast_unsigned),
    })
}

/// The arguments of a queue as RabbitMQ 4.3 keeps, compares and shows them: with its type, even if nobody named it.
pub fn with_type(mut arguments: Table) -> Table {
    if !arguments.contains(QUEUE_TYPE) {
        arguments.push(QUEUE_TYPE, QueueKind::default().name());
    }
    arguments
}

/// The kind that a declaration asks for. What is no kind is refused with the other arguments.
pub fn kind_of(arguments: &Table) -> QueueKind {
    let named = arguments.get(QUEUE_TYPE).and_then(Value::as_str);
    named.and_then(QueueKind::from_name).unwrap_or_default()
}

/// So many nodes have a new quorum queue if nobody says anything else, as far as there are so many (RabbitMQ's
/// `quorum_cluster_size`).
const USUAL_SIZE: usize = 3;

/// How many nodes are to have a new queue of this kind that is declared with these, under this policy, as far as there are so
/// many: three a quorum queue, and all of them a stream, as in RabbitMQ. Of streams the policy counts, whatever the argument
/// says.
pub fn new_size(kind: QueueKind, arguments: &Table, policy: Option<&Table>) -> usize {
    let number = |table: &Table, name| table.get(name).and_then(Value::as_integer);
    let (named, usual) = match kind {
        QueueKind::Stream => {
            let by_policy = policy.and_then(|policy| number(policy, CLUSTER_SIZE.1));
            (
                by_policy.or_else(|| number(arguments, CLUSTER_SIZE.0)),
                usize::MAX,
            )
        }
        _ => (number(arguments, GROUP_SIZE), USUAL_SIZE),
    };
    let named = named.and_then(|named| usize::try_from(named).ok());
    named.unwrap_or(usual).max(1)
}

/// True for an argument of queues that this kind takes, or of which nobody knows.
pub fn takes(kind: QueueKind, argument: &str) -> bool {
    let mut arguments = ARGUMENTS.iter();
    let known = arguments.find(|known| known.name == argument);
    known.is_none_or(|known| known.kinds.contains(&kind))
}

/// True for an argument of queues that changes what becomes of their messages; false for what says where they are, or nothing.
pub(crate) fn has_effect(argument: &str) -> bool {
    let mut arguments = ARGUMENTS.iter();
    arguments.any(|known| known.name == argument && known.sets.is_some())
}

/// Checks the arguments of a new exchange.
///
/// # Errors
/// An alternate exchange that is no string.
pub fn check_exchange(arguments: &Table, exchange: &str, vhost: &str) -> Result<(), Refusal> {
    match arguments.get("alternate-exchange") {
        None | Some(Value::LongStr(_)) => Ok(()),
        Some(other) => {
            let fault = ArgumentFault::Type(other.type_name());
            let (argument, kind) = ("alternate-exchange", ObjectKind::Exchange);
            Err(invalid(argument, kind, exchange, vhost, fault))
        }
    }
}

/// Checks that a repeated declaration asks for the queue that is there. Exclusiveness is checked before. Of a queue that was
/// converted those ask for it, too, who declare it as before.
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
    same_field(&resource, "durable", durable, queue.is_durable())?;
    same_field(&resource, "auto_delete", auto_delete, queue.auto_delete)?;
    let before = queue.other_arguments.as_ref();
    if before.is_some_and(|before| same_arguments(&resource, arguments, before).is_ok()) {
        return Ok(());
    }
    same_arguments(&resource, arguments, &queue.arguments)
}

fn same_arguments(resource: &str, received: &Table, current: &Table) -> Result<(), Refusal> {
    // As in RabbitMQ: what a queue is comes before what it is like.
    same_argument(resource, "x-queue-type", received, current)?;
    let mut compared = ARGUMENTS.iter().filter(|argument| argument.is_compared);
    compared.try_for_each(|argument| same_argument(resource, argument.name, received, current))
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
    same_field(&resource, "durable", durable, exchange.is_durable())?;
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
    let (received, current) = (received.get(name), current.get(name));
    // Ages are compared as what they mean.
    let ms = |value: &Value| {
        let ms = value
            .as_str()
            .and_then(stream::age_ms)
            .filter(|_| name == "x-max-age");
        ms.map(|ms| Value::LongStr(ms.to_string().into_bytes()))
    };
    let (received_ms, current_ms) = (received.and_then(ms), current.and_then(ms));
    let (received, current) = (received_ms.as_ref().or(received), current_ms.as_ref().or(current));
    match inequivalent_arg(&resource, name, received, current) {
        Some(text) => Err(Refusal::Inequivalent { text }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consumers_arguments_are_those_of_its_queues_kind() {
        let read = |kind, table: Table| check_consumer(kind, &table, "q", "/").map_err(|it| it.to_string());
        let classic = |table: Table| read(QueueKind::Classic, table);
        let asked = |priority, timeout_ms| {
            Ok(ConsumerArguments {
                priority,
                timeout_ms,
                stream: None,
            })
        };
        assert_eq!(classic(Table::new().with("x-anything", 1)), asked(0, None));
        assert_eq!(
            classic(Table::new().with("x-cancel-on-ha-failover", true)),
            asked(0, None)
        );
        assert_eq!(classic(Table::new().with("x-priority", -5)), asked(-5, None));
        let timeout = |value: i64| classic(Table::new().with("x-consumer-timeout", value));
        assert_eq!(timeout(5), asked(0, Some(5)));
        assert_eq!(
            timeout(-5).unwrap_err(),
            "invalid arg 'x-consumer-timeout' for queue 'q' in vhost '/': {value_negative,-5}"
        );
        for (name, kinds) in CONSUMER_ARGUMENTS {
            let said = || Table::new().with(*name, 5);
            let text = format!("invalid arg '{name}' for queue 'q' in vhost '/' of queue type ");
            for kind in [QueueKind::Classic, QueueKind::Quorum, QueueKind::Stream] {
                let foreign = format!("{text}{}", kind.module());
                let is_foreign = read(kind, said()).is_err_and(|told| told == foreign);
                assert_eq!(is_foreign, !kinds.contains(&kind), "{name}");
            }
        }
        let stream = read(QueueKind::Stream, Table::new().with("x-stream-offset", 5));
        let offset = stream.map(|asked| asked.stream.map(|it| it.offset));
        assert_eq!(offset, Ok(Some(stream::StreamOffset::Offset(5))));
        assert_eq!(
            classic(Table::new().with("x-priority", true)).unwrap_err(),
            "invalid arg 'x-priority' for queue 'q' in vhost '/': \"expected integer, got bool\""
        );
    }

    #[test]
    fn a_quorum_queue_lasts() {
        let refused = |flags| {
            let checked = check_properties(QueueKind::Quorum, flags, "q", "/");
            checked.map_err(|refusal| refusal.to_string())
        };
        let text = |property| {
            Err(format!(
                "invalid property '{property}' for queue 'q' in vhost '/'"
            ))
        };
        assert_eq!(refused((true, false, false)), Ok(()));
        assert_eq!(refused((false, false, false)), text("non-durable"));
        assert_eq!(refused((false, true, false)), text("exclusive-owner"));
        assert_eq!(refused((true, true, true)), text("auto-delete"));
        assert!(check_properties(QueueKind::Classic, (false, true, true), "q", "/").is_ok());
    }

    #[test]
    fn every_argument_stands_in_the_table_once() {
        for (at, argument) in ARGUMENTS.iter().enumerate() {
            let again = ARGUMENTS[at + 1..]
                .iter()
                .any(|other| other.name == argument.name);
            assert!(!again && !argument.kinds.is_empty(), "{}", argument.name);
        }
    }
}
