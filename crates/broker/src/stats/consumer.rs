//! A consumer, as operators see it.

use super::{Channel, ChannelHandle, Connection};
use model::ConsumerId;
use model::table::Table;
use std::sync::Arc;

/// What a consumer's front end knows of it.
#[derive(Clone, Debug)]
pub struct ConsumerDetails<'a> {
    /// Unique within its channel.
    pub tag: &'a str,
    /// As given at the start.
    pub arguments: Table,
    /// How many unsettled messages it may hold; 0 is no limit.
    pub prefetch: u16,
    /// How long it may hold one, in milliseconds; 0 is no limit.
    pub timeout_ms: u64,
    /// Its channel.
    pub channel: &'a ChannelHandle,
}

/// A consumer of a queue.
#[derive(Debug)]
pub struct Consumer {
    /// Unique within the broker.
    pub id: ConsumerId,
    /// Unique within its channel.
    pub tag: String,
    /// The queue's name.
    pub queue: Arc<str>,
    /// The virtual host.
    pub vhost: Arc<str>,
    /// Deliveries count as settled.
    pub no_ack: bool,
    /// Nobody else may consume from the queue.
    pub exclusive: bool,
    /// How many unsettled messages it may hold; 0 is no limit.
    pub prefetch: u16,
    /// How long it may hold one, in milliseconds; 0 is no limit.
    pub timeout_ms: u64,
    /// As given at the start.
    pub arguments: Table,
    /// The connection.
    pub connection: Arc<Connection>,
    /// AMQP's channel number.
    pub channel: u16,
}

impl Consumer {
    /// Enters the consumer in its channel.
    pub(crate) fn enter(self, channel: &ChannelHandle) -> (Arc<Self>, Arc<Channel>) {
        let consumer = Arc::new(self);
        channel.add(consumer.clone());
        consumer.connection.happened(|| consumer.started());
        (consumer, channel.channel().clone())
    }

    /// Takes it out again.
    pub(crate) fn leave(self: &Arc<Self>, channel: &Channel) {
        channel.remove(self);
        self.connection.happened(|| self.ended());
    }
}
