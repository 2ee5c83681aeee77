//! A channel, as operators see it.

use super::{ChannelCounts, Connection, Consumer, Count};
use model::ConsumerId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A channel of a connection.
#[derive(Debug)]
pub struct Channel {
    /// AMQP's channel number.
    pub number: u16,
    /// What was published, delivered and so on since it was opened.
    pub counts: ChannelCounts,
    /// The prefetch of each consumer that starts now; 0 is no limit.
    pub prefetch: Count,
    /// The prefetch of all its consumers together; 0 is no limit.
    pub global_prefetch: Count,
    /// Messages that were handed over and settled in any way, or given back.
    pub settled: Count,
    /// Messages of the transaction under way.
    pub uncommitted: Count,
    /// Acknowledgements of the transaction under way.
    pub acks_uncommitted: Count,
    /// 1 once it is in confirm mode.
    pub confirms: Count,
    /// 1 once it is transactional.
    pub transactional: Count,
    /// Publishes that will be confirmed.
    pub to_confirm: Count,
    /// Publishes that were confirmed or refused.
    pub told: Count,
    /// By id, which is the order in which they started.
    consumers: Mutex<BTreeMap<ConsumerId, Arc<Consumer>>>,
}

impl Channel {
    /// A channel that was just opened.
    pub(super) fn new(number: u16) -> Self {
        Self {
            number,
            counts: ChannelCounts::default(),
            prefetch: Count::default(),
            global_prefetch: Count::default(),
            settled: Count::default(),
            uncommitted: Count::default(),
            acks_uncommitted: Count::default(),
            confirms: Count::default(),
            transactional: Count::default(),
            to_confirm: Count::default(),
            told: Count::default(),
            consumers: Mutex::default(),
        }
    }

    /// Messages that the client has and has not settled.
    pub fn unacked(&self) -> u64 {
        let handed = self.counts.messages.deliver.get() + self.counts.messages.get.get();
        handed.saturating_sub(self.settled.get() + self.acks_uncommitted.get())
    }

    /// Publishes that the client was not told of yet.
    pub fn unconfirmed(&self) -> u64 {
        self.to_confirm.get().saturating_sub(self.told.get())
    }

    /// Its consumers, in the order in which they started.
    pub fn consumers(&self) -> Vec<Arc<Consumer>> {
        self.lock().values().cloned().collect()
    }

    /// How many consumers it has.
    pub fn consumer_count(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn add(&self, consumer: Arc<Consumer>) {
        self.lock().insert(consumer.id, consumer);
    }

    pub(super) fn remove(&self, consumer: &Arc<Consumer>) {
        self.lock().remove(&consumer.id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ConsumerId, Arc<Consumer>>> {
        self.consumers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A channel's place among those that operators see; it is free again when this is dropped.
#[derive(Debug)]
pub struct ChannelHandle {
    connection: Arc<Connection>,
    channel: Arc<Channel>,
}

impl ChannelHandle {
    pub(super) fn new(connection: Arc<Connection>, channel: Arc<Channel>) -> Self {
        Self { connection, channel }
    }

    /// The connection that it belongs to.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// The channel, to be held elsewhere.
    pub fn channel(&self) -> &Arc<Channel> {
        &self.channel
    }
}

impl std::ops::Deref for ChannelHandle {
    type Target = Channel;

    fn deref(&self) -> &Channel {
        &self.channel
    }
}

impl Drop for ChannelHandle {
    fn drop(&mut self) {
        self.connection.left(&self.channel);
    }
}
