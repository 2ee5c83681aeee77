//! Why something was refused, in RabbitMQ's words. Reply codes and the name before the text (`NOT_FOUND - …`) are
//! mapped elsewhere, from [`Refusal::kind`].

mod argument;

pub use argument::{ArgumentFault, InvalidArgument};

use crate::kinds::QueueKind;
use std::fmt;

/// What kind of refusal it is; the protocols map these to their codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// There is no such thing.
    NotFound,
    /// Not for this user, or for nobody.
    AccessRefused,
    /// Somebody else has it for himself.
    ResourceLocked,
    /// It contradicts what exists, or what is possible.
    PreconditionFailed,
    /// Forbidden by a rule of the whole connection.
    NotAllowed,
    /// RabbitMQ, too, refuses this as not implemented.
    NotImplemented,
    /// The command makes no sense.
    CommandInvalid,
    /// A defect.
    Internal,
}

/// What a permission is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Create and delete.
    Configure,
    /// Send to.
    Write,
    /// Take from.
    Read,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Configure => "configure",
            Self::Write => "write",
            Self::Read => "read",
        })
    }
}

/// What kind of object a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A queue.
    Queue,
    /// An exchange.
    Exchange,
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "queue",
            Self::Exchange => "exchange",
        })
    }
}

/// A refusal. `Display` gives RabbitMQ's explanation, without the reply code's name before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No queue of this name.
    NoQueue { queue: String, vhost: String },
    /// The queue is on a node that cannot be reached.
    QueueDown {
        queue: String,
        vhost: String,
        node: String,
    },
    /// The queue is on another node, and what is asked can only be asked there.
    QueueElsewhere {
        queue: String,
        vhost: String,
        node: String,
    },
    /// No exchange of this name.
    NoExchange { exchange: String, vhost: String },
    /// No virtual host of this name (asked for by a request; at login each front end has its own text).
    NoVhost { vhost: String },
    /// No user of this name.
    NoUser { user: String },
    /// A queue name was needed, and none was given or declared before on the channel.
    NoPreviousQueue,
    /// The user lacks a permission.
    NoPermission {
        verb: Verb,
        kind: ObjectKind,
        name: String,
        vhost: String,
        user: String,
    },
    /// The exchange is internal: clients may not publish to it.
    InternalExchange { exchange: String, vhost: String },
    /// A new object's name begins with `amq.`.
    ReservedName { kind: ObjectKind, name: String },
    /// The default exchange cannot be declared, deleted or bound.
    DefaultExchange,
    /// Exchanges whose name begins with `amq.` cannot be deleted.
    SystemExchange { exchange: String, vhost: String },
    /// An exclusive consumer is there, or exclusiveness was asked for and other consumers are there.
    ExclusiveUse { queue: String, vhost: String },
    /// The queue is exclusive to another connection, or is exclusive and was redeclared as not, or the reverse.
    ResourceLocked { queue: String, vhost: String },
    /// A repeated declaration asks for something else; the text is `model`'s.
    Inequivalent { text: String },
    /// An argument of a declaration cannot be.
    InvalidArgument(InvalidArgument),
    /// Queues of its kind cannot be like that.
    InvalidProperty {
        property: &'static str,
        queue: String,
        vhost: String,
    },
    /// A queue cannot be converted to another kind.
    NotConvertible { text: String },
    /// Who gets from a queue of this kind would pass by its single active consumer.
    GetBesideActive {
        queue: String,
        vhost: String,
        kind: QueueKind,
    },
    /// Streams cannot do what was asked for.
    NotForStreams {
        /// What, up to the name of the queue.
        what: &'static str,
        queue: String,
        vhost: String,
    },
    /// Who consumes from a stream must say how many messages at a time.
    NoPrefetch { queue: String, vhost: String },
    /// The client must name queues of this kind.
    UnnamedQueue { kind: QueueKind },
    /// No such exchange type.
    UnknownExchangeType { kind: String },
    /// `if-unused`, and there are bindings.
    ExchangeInUse { exchange: String, vhost: String },
    /// `if-unused`, and there are consumers.
    QueueInUse { queue: String, vhost: String },
    /// `if-empty`, and there are messages.
    QueueNotEmpty { queue: String, vhost: String },
    /// The arguments of an exchange of its kind make no sense.
    InvalidExchange { text: String },
    /// The arguments or the key of a binding make no sense to the exchange's kind.
    InvalidBinding { text: String },
    /// A published message's properties contradict the connection, or ask for what this version does not do.
    InvalidMessage { text: String },
    /// A policy that makes no sense.
    InvalidPolicy { text: String },
    /// A limit that makes no sense.
    InvalidLimit { text: String },
    /// The virtual host has as many queues as it may have.
    QueueLimit {
        queue: String,
        vhost: String,
        limit: i64,
    },
    /// The user has as many channels as it may have.
    ChannelLimit { user: String, limit: i64 },
    /// The node has as many channels as it may have.
    NodeChannelLimit { node: String, limit: u64 },
    /// The node's configuration lets the cluster have no more objects of a kind; the text is RabbitMQ's.
    ObjectLimit { text: String },
    /// The channel has as many consumers as it may have.
    ConsumerLimit { limit: u64 },
    /// A new password is not what passwords must be like.
    WeakPassword { reason: String },
    /// The virtual host is protected from deletion.
    ProtectedVhost { vhost: String },
    /// The user lacks a permission on a routing key.
    NoTopicPermission {
        verb: Verb,
        key: String,
        exchange: String,
        vhost: String,
        user: String,
    },
    /// A permission that is no regular expression.
    InvalidPattern { pattern: String, reason: String },
    /// A name that is too long, or is made of nothing but line ends.
    InvalidName { name: String, reason: String },
    /// A defect of this broker.
    Internal { reason: String },
    /// Another node of the cluster has this name.
    NodeNameTaken { name: String },
    /// This node was a member of the cluster, and was removed from it.
    NodeForgotten { name: String },
    /// The cluster has as many nodes as it may.
    TooManyNodes { limit: usize },
    /// What another node has refused, in its words.
    Told { kind: RefusalKind, text: String },
    /// The catalog has not decided yet: to be asked again when its answer is here. No client hears of it.
    Undecided,
}

impl Refusal {
    /// What kind of refusal it is.
    pub fn kind(&self) -> RefusalKind {
        match self {
            Self::NoQueue { .. }
            | Self::QueueDown { .. }
            | Self::NoExchange { .. }
            | Self::NoVhost { .. }
            | Self::NoUser { .. }
            | Self::NoPreviousQueue => RefusalKind::NotFound,
            Self::NoPermission { .. }
            | Self::NoTopicPermission { .. }
            | Self::InternalExchange { .. }
            | Self::ReservedName { .. }
            | Self::DefaultExchange
            | Self::SystemExchange { .. }
            | Self::ExclusiveUse { .. } => RefusalKind::AccessRefused,
            Self::NotForStreams { .. } => RefusalKind::NotImplemented,
            Self::ResourceLocked { .. } | Self::GetBesideActive { .. } => RefusalKind::ResourceLocked,
            Self::QueueElsewhere { .. }
            | Self::Inequivalent { .. }
            | Self::InvalidArgument(_)
            | Self::InvalidProperty { .. }
            | Self::NotConvertible { .. }
            | Self::NoPrefetch { .. }
            | Self::UnnamedQueue { .. }
            | Self::UnknownExchangeType { .. }
            | Self::ExchangeInUse { .. }
            | Self::QueueInUse { .. }
            | Self::QueueNotEmpty { .. }
            | Self::InvalidExchange { .. }
            | Self::InvalidBinding { .. }
            | Self::InvalidMessage { .. }
            | Self::InvalidPolicy { .. }
            | Self::InvalidLimit { .. }
            | Self::QueueLimit { .. }
            | Self::ObjectLimit { .. }
            | Self::ProtectedVhost { .. }
            | Self::InvalidPattern { .. }
            | Self::InvalidName { .. } => RefusalKind::PreconditionFailed,
            Self::WeakPassword { .. } => RefusalKind::PreconditionFailed,
            Self::ChannelLimit { .. } | Self::NodeChannelLimit { .. } | Self::ConsumerLimit { .. } => {
                RefusalKind::NotAllowed
            }
            Self::Told { kind, .. } => *kind,
            Self::NodeNameTaken { .. } | Self::NodeForgotten { .. } | Self::TooManyNodes { .. } => {
                RefusalKind::NotAllowed
            }
            Self::Internal { .. } | Self::Undecided => RefusalKind::Internal,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QueueDown { queue, vhost, node } => write!(
                f,
                "home node '{node}' of durable queue '{queue}' in vhost '{vhost}' is down or inaccessible"
            ),
            Self::QueueElsewhere { queue, vhost, node } => {
                write!(
                    f,
                    "queue '{queue}' in vhost '{vhost}' is on node '{node}': ask there"
                )
            }
            Self::NoQueue { queue, vhost } => write!(f, "no queue '{queue}' in vhost '{vhost}'"),
            Self::NoExchange { exchange, vhost } => write!(f, "no exchange '{exchange}' in vhost '{vhost}'"),
            Self::NoVhost { vhost } => write!(f, "vhost '{vhost}' not found"),
            Self::NoUser { user } => write!(f, "user '{user}' not found"),
            Self::NoPreviousQueue => f.write_str("no previously declared queue"),
            Self::InternalExchange { exchange, vhost } => {
                write!(
                    f,
                    "cannot publish to internal exchange '{exchange}' in vhost '{vhost}'"
                )
            }
            Self::ReservedName { kind, name } => {
                write!(f, "{kind} name '{name}' contains reserved prefix 'amq.*'")
            }
            Self::DefaultExchange => f.write_str("operation not permitted on the default exchange"),
            Self::SystemExchange { exchange, vhost } => {
                write!(
                    f,
                    "deletion of system exchange '{exchange}' in vhost '{vhost}' not allowed"
                )
            }
            Self::ExclusiveUse { queue, vhost } => {
                write!(f, "queue '{queue}' in vhost '{vhost}' in exclusive use")
            }
            Self::ResourceLocked { queue, vhost } => write!(
                f,
                "cannot obtain exclusive access to locked queue '{queue}' in vhost '{vhost}'. It could be originally \
                 declared on another connection or the exclusive property value does not match that of the original \
                 declaration."
            ),
            Self::Inequivalent { text }
            | Self::InvalidExchange { text }
            | Self::InvalidBinding { text }
            | Self::InvalidMessage { text }
            | Self::InvalidLimit { text }
            | Self::ObjectLimit { text }
            | Self::Told { text, .. } => f.write_str(text),
            Self::InvalidArgument(argument) => argument.fmt(f),
            Self::InvalidProperty {
                property,
                queue,
                vhost,
            } => write!(
                f,
                "invalid property '{property}' for queue '{queue}' in vhost '{vhost}'"
            ),
            Self::NotConvertible { text } => f.write_str(text),
            Self::GetBesideActive { queue, vhost, kind } => write!(
                f,
                "cannot obtain access to locked queue '{queue}' in vhost '{vhost}'. basic.get operations are not supported by \
                 <<\"{}\">> queues with single active consumer",
                kind.name()
            ),
            Self::NotForStreams { what, queue, vhost } => {
                write!(f, "{what} queue '{queue}' in vhost '{vhost}'")
            }
            Self::NoPrefetch { queue, vhost } => write!(
                f,
                "consumer prefetch count is not set for stream queue '{queue}' in vhost '{vhost}'"
            ),
            Self::UnnamedQueue { kind } => write!(
                f,
                "Cannot declare a server-named queue for type {}",
                kind.module()
            ),
            // RabbitMQ says `invalid` of words that it knows, though not as a type; the empty one is among them.
            Self::UnknownExchangeType { kind } if kind.is_empty() => f.write_str("invalid exchange type ''"),
            Self::UnknownExchangeType { kind } => write!(f, "unknown exchange type '{kind}'"),
            Self::ExchangeInUse { exchange, vhost } => {
                write!(f, "exchange '{exchange}' in vhost '{vhost}' in use")
            }
            Self::QueueInUse { queue, vhost } => write!(f, "queue '{queue}' in vhost '{vhost}' in use"),
            Self::QueueNotEmpty { queue, vhost } => {
                write!(f, "queue '{queue}' in vhost '{vhost}' not empty")
            }
            Self::InvalidPolicy { text } => write!(f, "Validation failed\n\n{text}\n"),
            Self::InvalidPattern { pattern, reason } => {
                write!(f, "invalid regular expression '{pattern}': {reason}")
            }
            Self::InvalidName { name, reason } => write!(f, "invalid name '{name}': {reason}"),
            Self::Internal { reason } => f.write_str(reason),
            Self::NodeNameTaken { name } => write!(
                f,
                "another node of the cluster is called {name}: choose another nodename; or, if this is that node and has lost its data \
                 directory, remove what is on record first, with forget_cluster_node {name} on another node"
            ),
            Self::NodeForgotten { name } => write!(
                f,
                "{name} was removed from the cluster with forget_cluster_node: delete its data directory, or reset it, to let it join again"
            ),
            Self::TooManyNodes { limit } => write!(
                f,
                "the cluster has {limit} nodes, which is as many as there may be"
            ),
            Self::Undecided => f.write_str("the catalog has not decided yet"),
            Self::NoPermission { .. }
            | Self::NoTopicPermission { .. }
            | Self::QueueLimit { .. }
            | Self::ChannelLimit { .. }
            | Self::NodeChannelLimit { .. }
            | Self::ConsumerLimit { .. }
            | Self::WeakPassword { .. }
            | Self::ProtectedVhost { .. } => self.fmt_rule(f),
        }
    }
}

impl Refusal {
    /// What an administrator has ruled: permissions, limits and protection.
    fn fmt_rule(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPermission {
                verb,
                kind,
                name,
                vhost,
                user,
            } => {
                // RabbitMQ checks the default exchange under this name, and shows it.
                let name = if name.is_empty() && *kind == ObjectKind::Exchange {
                    "amq.default"
                } else {
                    name
                };
                write!(
                    f,
                    "{verb} access to {kind} '{name}' in vhost '{vhost}' refused for user '{user}'"
                )
            }
            Self::QueueLimit { queue, vhost, limit } => write!(
                f,
                "cannot declare queue '{queue}': queue limit in vhost '{vhost}' ({limit}) is reached"
            ),
            Self::ChannelLimit { user, limit } => write!(
                f,
                "number of channels opened for user '{user}' has reached the maximum allowed user limit of {limit}"
            ),
            Self::NodeChannelLimit { node, limit } => write!(
                f,
                "number of channels opened on node '{node}' has reached the maximum allowed limit of {limit}"
            ),
            Self::ConsumerLimit { limit } => {
                write!(f, "reached maximum ({limit}) of consumers per channel")
            }
            Self::WeakPassword { reason } => f.write_str(reason),
            Self::ProtectedVhost { vhost } => write!(
                f,
                "Refusing to delete virtual host '{vhost}' because it is protected from deletion"
            ),
            Self::NoTopicPermission {
                verb,
                key,
                exchange,
                vhost,
                user,
            } => write!(
                f,
                "{verb} access to topic '{key}' in exchange '{exchange}' in vhost '{vhost}' refused for user '{user}'"
            ),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Read off RabbitMQ 4.3.6; what declarations and bindings are told is in the stories.
    #[test]
    fn what_other_operations_are_told_is_rabbitmqs_text() {
        let (queue, exchange, vhost, user) = (
            "q".to_string(),
            "x".to_string(),
            "/".to_string(),
            "bob".to_string(),
        );
        let at = |text: &str| format!("{text} in vhost '/'");
        let no_permission = |verb, kind, name: &str| Refusal::NoPermission {
            verb,
            kind,
            name: name.into(),
            vhost: vhost.clone(),
            user: user.clone(),
        };
        let told = [
            (
                no_permission(Verb::Configure, ObjectKind::Queue, "q"),
                "configure access to queue 'q' in vhost '/' refused for user 'bob'".into(),
            ),
            (
                no_permission(Verb::Write, ObjectKind::Exchange, ""),
                "write access to exchange 'amq.default' in vhost '/' refused for user 'bob'".into(),
            ),
            (
                Refusal::InternalExchange {
                    exchange: exchange.clone(),
                    vhost: vhost.clone(),
                },
                at("cannot publish to internal exchange 'x'"),
            ),
            (
                Refusal::ExclusiveUse {
                    queue: queue.clone(),
                    vhost: vhost.clone(),
                },
                at("queue 'q'") + " in exclusive use",
            ),
            (
                Refusal::QueueInUse {
                    queue: queue.clone(),
                    vhost: vhost.clone(),
                },
                at("queue 'q'") + " in use",
            ),
            (
                Refusal::QueueNotEmpty {
                    queue,
                    vhost: vhost.clone(),
                },
                at("queue 'q'") + " not empty",
            ),
            (Refusal::NoPreviousQueue, "no previously declared queue".into()),
        ];
        for (refusal, text) in told {
            assert_eq!(refusal.to_string(), text);
        }
    }
}
