//! What happened in a queue.

use super::Count;

/// How many messages there were of each kind, in one queue since the start. Written by whoever turns the queue.
#[derive(Debug, Default)]
pub struct QueueCounts {
    /// Published to it.
    pub publish: Count,
    /// Delivered to consumers that acknowledge.
    pub deliver: Count,
    /// Delivered to consumers that don't.
    pub deliver_no_ack: Count,
    /// Fetched, to be acknowledged.
    pub get: Count,
    /// Fetched for good.
    pub get_no_ack: Count,
    /// Fetches that found nothing.
    pub get_empty: Count,
    /// Acknowledged. What was rejected does not count.
    pub ack: Count,
    /// Of those delivered and fetched: for another time.
    pub redeliver: Count,
}

impl QueueCounts {
    /// RabbitMQ's names and the numbers, in the order of the fields.
    pub fn named(&self) -> [(&'static str, u64); 8] {
        [
            ("publish", self.publish.get()),
            ("deliver", self.deliver.get()),
            ("deliver_no_ack", self.deliver_no_ack.get()),
            ("get", self.get.get()),
            ("get_no_ack", self.get_no_ack.get()),
            ("get_empty", self.get_empty.get()),
            ("ack", self.ack.get()),
            ("redeliver", self.redeliver.get()),
        ]
    }
}
