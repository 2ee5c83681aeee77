//! What may be asked of a queue. Imperative.

use super::{Ends, Sorting};
use crate::store;
use model::{Block, ConsumerId, Ranges, RetryDelay};
use std::sync::Arc;

/// A request to the queue.
#[derive(Debug)]
pub enum Request<E: Ends> {
    /// Take these messages, in order. The receipt comes back as `Confirm` when they are safe: at once if nothing
    /// needs the journal (transient, or already handed to a consumer that does not acknowledge), else as a promise.
    Enqueue {
        block: Arc<Block>,
        receipt: Option<E::Receipt>,
    },
    /// Add a consumer. Answered with `Answer::Consuming`, or `Answer::InExclusiveUse`.
    Consume {
        consumer: ConsumerId,
        outlet: E::Outlet,
        settings: ConsumerSettings,
        reply: E::Reply,
    },
    /// Remove a consumer. What it holds unacknowledged stays its channel's business. Answered with `Answer::Cancelled`.
    Cancel {
        consumer: ConsumerId,
        reply: Option<E::Reply>,
    },
    /// Hand out one message (`basic.get`). Answered with `Answer::Got` or `Answer::Empty`, perhaps after a load.
    Get { no_ack: bool, reply: E::Reply },
    /// These delivered messages are done with. `consumer` is who held them, `None` after a get.
    Settle {
        consumer: Option<ConsumerId>,
        seqs: Ranges,
        disposal: Disposal,
    },
    /// These delivered messages go back to where they stood. `failed` is false if nobody can have seen them.
    Return {
        consumer: Option<ConsumerId>,
        seqs: Ranges,
        failed: bool,
    },
    /// Hand these, as far as they are ready, to an operator. Answered with `Answer::Taken`.
    TakeOut { seqs: Ranges, reply: E::Reply },
    /// The operator gives these back to where they stood.
    PutBack { seqs: Ranges },
    /// These, which the operator has, are to be gone.
    Remove { seqs: Ranges },
    /// The consumer's door has written so many bytes to its socket (counted as [`super::Delivery::bytes`] does): as many
    /// more may be delivered to it.
    Flow { consumer: ConsumerId, bytes: u32 },
    /// From now on this consumer may hold so many unacknowledged messages; 0 is no limit.
    Limit { consumer: ConsumerId, prefetch: u32 },
    /// Deliver nothing to this consumer until `Resume` (its channel's global prefetch is used up, by itself or by others).
    Pause { consumer: ConsumerId },
    /// Undo `Pause`.
    Resume { consumer: ConsumerId },
    /// Drop everything that is ready. Answered with `Answer::Purged`.
    Purge { reply: E::Reply },
    /// The queue is about to be deleted. Answered with `Answer::Retired`, `InUse` or `NotEmpty`; once retired, consumers
    /// are cancelled and everything later is ignored (receipts are confirmed: the message went nowhere, as in RabbitMQ).
    Retire {
        if_unused: bool,
        if_empty: bool,
        reply: E::Reply,
    },
    /// Somebody uses the queue other than by consuming or getting (a repeated declaration): see `QueueSettings::expires_ms`.
    Use,
    /// The time that `Fifo::wakes_at_ms` named has come.
    Tick,
    /// Answer to `Effect::DeadLetter`: all queues that the messages went to have them safely, or they went nowhere. `unread`
    /// could not be read where the effect said: they were moved meanwhile, or are damaged. `failed` could not be read just now,
    /// which says nothing about what is there.
    DeadLettered {
        ticket: u64,
        unread: Ranges,
        failed: Ranges,
    },
    /// New settings (limits) are in force. They are boxed because a request is as large as its largest kind.
    Configure { settings: Box<QueueSettings> },
    /// Nobody can read these messages any more, on whatever node. Those that no consumer holds are dropped with
    /// `DropReason::Unreadable`.
    GiveUp { seqs: Ranges },
    /// Something is asked of the message store, or an order of it was carried out.
    Store(store::Request),
}

/// What a consumer asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerSettings {
    /// Messages count as settled when delivered.
    pub no_ack: bool,
    /// Nobody else may consume.
    pub exclusive: bool,
    /// How many unacknowledged messages it may hold; 0 is no limit. Ignored with `no_ack`.
    pub prefetch: u32,
    /// `x-priority`: those of a higher one are served first, as long as they may get messages.
    pub priority: i64,
    /// How many bytes may be on their way to its socket: the window that `Request::Flow` replenishes. Once used up it must
    /// be open again by a quarter before anything is delivered. With 0 nothing ever is.
    pub window: u32,
    /// It begins as after `Request::Pause`.
    pub paused: bool,
}

/// How a consumer settled messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposal {
    /// `basic.ack`.
    Accepted,
    /// `basic.reject` or `basic.nack` without requeue.
    Rejected,
}

/// A queue's settings in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// Records go to a journal: persistent messages survive a restart.
    pub durable: bool,
    /// Retire when the last consumer is gone.
    pub auto_delete: bool,
    /// `x-single-active-consumer`: one consumer gets everything until it is gone.
    pub single_active: bool,
    /// `x-max-priority`, `x-fair-key`: which messages leave first.
    pub sorting: Sorting,
    /// `x-max-length`: at most so many ready messages; the oldest are dropped.
    pub max_length: Option<u64>,
    /// `x-max-length-bytes`: at most so many bytes of ready bodies.
    pub max_length_bytes: Option<u64>,
    /// `x-overflow`: what happens at these limits.
    pub overflow: Overflow,
    /// `x-message-ttl`: how long messages may be ready, in milliseconds.
    pub message_ttl_ms: Option<u64>,
    /// `x-delivery-limit`: a message that came back more often than this leaves.
    pub delivery_limit: Option<DeliveryLimit>,
    /// `x-retry-delay`: messages that came back wait before they are delivered again.
    pub retry_delay: Option<RetryDelay>,
    /// Messages wait here as long as their header `x-delay` says, and then go to `dead_letter`; their own expiration counts
    /// afterwards.
    pub delays: bool,
    /// `x-message-deduplication`: a message is taken only if none with the same header `x-deduplication-header` is there.
    pub deduplicates: bool,
    /// `x-expires`: how long nobody may use the queue (by consuming, getting or declaring it again) before it is deleted, in
    /// milliseconds.
    pub expires_ms: Option<u64>,
    /// `x-dead-letter-exchange`: where messages go that are rejected, expire or have no room.
    pub dead_letter: Option<Arc<DeadLetterTo>>,
}

/// How often a message may come back. Wherever it is counted, deliveries say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryLimit {
    /// As often as it likes.
    Unlimited,
    /// So often.
    Returns(u32),
}

/// What happens to messages beyond a queue's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The oldest ready messages are dropped.
    #[default]
    DropHead,
    /// New messages are refused.
    Reject,
    /// New messages are refused and go to the dead-letter exchange.
    RejectAndDeadLetter,
}

/// Where dead letters go. The machine hands it on and does not look into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterTo {
    /// The exchange's name, in the queue's virtual host; empty for the default exchange.
    pub exchange: String,
    /// The routing key instead of the message's own ones.
    pub routing_key: Option<Vec<u8>>,
}
