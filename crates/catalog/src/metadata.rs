//! What is said about a virtual host, and what protects it.

use crate::QueueKind;

/// What an administrator says about a virtual host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// For people.
    pub description: String,
    /// For people and tools.
    pub tags: Vec<String>,
    /// It cannot be deleted (RabbitMQ 4.0).
    pub protected: bool,
    /// What queues are that are declared without a type, if they can be; the node's default if nothing is said.
    pub default_queue_type: Option<QueueKind>,
}
