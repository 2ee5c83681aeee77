//! How many messages there were of each kind; RabbitMQ's `message_stats`.

use super::Count;

/// How many kinds a queue counts.
const OF_QUEUES: usize = 8;

/// How many kinds of messages a channel counts.
pub const KINDS: usize = OF_QUEUES + 3;

/// What a queue counts since the start of the node, and a channel since it was opened. Written by whoever turns the queue, or
/// serves the channel.
#[derive(Debug, Default)]
pub struct MessageCounts {
    /// Published, by a channel whether or not anybody took them.
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

impl MessageCounts {
    /// RabbitMQ's names, in the order of the fields.
    const NAMES: [&'static str; OF_QUEUES] = [
        "publish",
        "deliver",
        "deliver_no_ack",
        "get",
        "get_no_ack",
        "get_empty",
        "ack",
        "redeliver",
    ];

    /// The numbers, in the order of the fields.
    pub fn numbers(&self) -> [u64; OF_QUEUES] {
        [
            &self.publish,
            &self.deliver,
            &self.deliver_no_ack,
            &self.get,
            &self.get_no_ack,
            &self.get_empty,
            &self.ack,
            &self.redeliver,
        ]
        .map(Count::get)
    }

    /// RabbitMQ's names and the numbers, in the order of the fields.
    pub fn named(&self) -> [(&'static str, u64); OF_QUEUES] {
        let numbers = self.numbers();
        std::array::from_fn(|at| (Self::NAMES[at], numbers[at]))
    }
}

/// What a channel counts: also what becomes of messages before a queue has them.
#[derive(Debug, Default)]
pub struct ChannelCounts {
    /// What queues count as well.
    pub messages: MessageCounts,
    /// Confirmed to the publisher.
    pub confirm: Count,
    /// Sent back, because they were mandatory and nobody took them.
    pub return_unroutable: Count,
    /// Dropped, because nobody took them.
    pub drop_unroutable: Count,
}

impl ChannelCounts {
    /// RabbitMQ's names, in the order of [`ChannelCounts::numbers`].
    pub const NAMES: [&'static str; KINDS] = after_publish(
        MessageCounts::NAMES,
        ["confirm", "return_unroutable", "drop_unroutable"],
    );

    /// The numbers: what concerns publishers, then what concerns consumers.
    pub fn numbers(&self) -> [u64; KINDS] {
        let own = [&self.confirm, &self.return_unroutable, &self.drop_unroutable];
        after_publish(self.messages.numbers(), own.map(Count::get))
    }

    /// RabbitMQ's names and the numbers.
    pub fn named(&self) -> [(&'static str, u64); KINDS] {
        let numbers = self.numbers();
        std::array::from_fn(|at| (Self::NAMES[at], numbers[at]))
    }
}

/// A channel's own kinds stand behind what was published.
const fn after_publish<T: Copy>(of_queues: [T; OF_QUEUES], own: [T; 3]) -> [T; KINDS] {
    let [
        publish,
        deliver,
        deliver_no_ack,
        get,
        get_no_ack,
        get_empty,
        ack,
        redeliver,
    ] = of_queues;
    let [confirm, return_unroutable, drop_unroutable] = own;
    [
        publish,
        confirm,
        return_unroutable,
        drop_unroutable,
        deliver,
        deliver_no_ack,
        get,
        get_no_ack,
        get_empty,
        ack,
        redeliver,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_a_channel_has_its_name() {
        let counts = ChannelCounts::default();
        counts.messages.publish.set(1);
        counts.drop_unroutable.set(2);
        counts.messages.get_empty.set(3);
        counts.messages.redeliver.set(4);
        let named = counts.named();
        let told: Vec<_> = named.into_iter().filter(|(_, count)| *count > 0).collect();
        let meant = [
            ("publish", 1),
            ("drop_unroutable", 2),
            ("get_empty", 3),
            ("redeliver", 4),
        ];
        assert_eq!(told, meant);
    }
}
