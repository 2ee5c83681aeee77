//! A consumer as its channel has it: where its deliveries come from and what they begin with.

use super::unacked::HolderId;
use broker::{Delivery, Subscription};
use model::{ConsumerId, Seq};
use protocol::amqp::DeliverTemplate;

/// How many bytes of deliveries may be on their way from a queue to a consumer's socket.
pub const WINDOW: u32 = 1024 * 1024;

/// One consumer.
#[derive(Debug)]
pub struct Consumer {
    /// Unique within the channel.
    pub tag: String,
    /// Its end in the broker.
    pub subscription: Subscription,
    /// Deliveries count as settled.
    pub no_ack: bool,
    /// The prefetch that held for new consumers when it started; 0 is no limit.
    pub own_prefetch: u16,
    /// The prefetch that its queue knows, which the channel's own may have lowered.
    pub asked_prefetch: u32,
    /// Under which number its unsettled messages are kept.
    pub holder: HolderId,
    /// Its deliveries may not stay unsettled for ever.
    pub timed: bool,
    /// What all its deliveries begin with.
    pub template: DeliverTemplate,
    /// Bytes that were written and not yet given back to its window; 0 at first.
    pub owed: u64,
    /// Its queue was asked to end it.
    pub ended: bool,
}

impl Consumer {
    /// So many bytes were written. They go back to the window in large steps: each costs a turn of the queue.
    pub fn written(&mut self, bytes: u64) {
        self.owed += bytes;
        if self.owed >= u64::from(WINDOW / 2) {
            self.subscription
                .flow(u32::try_from(self.owed).unwrap_or(u32::MAX));
            self.owed = 0;
        }
    }
}

/// A delivery that waits to be written. It has no tags yet: tags rise in the order of writing.
#[derive(Debug)]
pub struct Pending {
    /// Whom it is for.
    pub consumer: ConsumerId,
    /// What is to be delivered.
    pub delivery: Delivery,
    /// The first message that was not written yet.
    pub next: Seq,
}

impl Pending {
    /// All of it waits.
    pub fn new(consumer: ConsumerId, delivery: Delivery) -> Self {
        Self {
            consumer,
            delivery,
            next: 0,
        }
    }

    /// The spans that were not written yet.
    pub fn spans(&self) -> impl Iterator<Item = (Seq, Seq)> + '_ {
        let next = self.next;
        self.delivery
            .seqs
            .spans()
            .filter(move |(_, last)| *last >= next)
            .map(move |(first, last)| (first.max(next), last))
    }
}
