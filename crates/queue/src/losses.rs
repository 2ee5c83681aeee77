//! How many messages a queue has lost, so to say: those that left other than to a consumer, and those that never came in.

/// Why messages were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// `x-max-length` or `x-max-length-bytes`.
    MaxLength,
    /// Rejected by a consumer without requeue.
    Rejected,
    /// `x-message-ttl` or the message's own `expiration`.
    Expired,
    /// Returned more often than `x-delivery-limit` permits.
    DeliveryLimit,
    /// `queue.purge`, or an operator removed or moved them.
    Purged,
    /// Nobody can read them: the stored bytes are damaged.
    Unreadable,
}

/// What became of messages that no consumer had, or that one rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// They are gone.
    Dropped(DropReason),
    /// They were handed to the dead-letter exchange.
    DeadLettered(DropReason),
    /// They were not taken, because the queue was full (`x-overflow`).
    Refused,
    /// They were not taken, because the queue had them already.
    Duplicate,
}

/// How many ways there are.
pub const LOSSES: usize = 12;

impl Loss {
    /// All of them, in the order of [`Losses::numbers`].
    pub const ALL: [Self; LOSSES] = [
        Self::Dropped(DropReason::MaxLength),
        Self::Dropped(DropReason::Expired),
        Self::Dropped(DropReason::Rejected),
        Self::Dropped(DropReason::DeliveryLimit),
        Self::Dropped(DropReason::Purged),
        Self::Dropped(DropReason::Unreadable),
        Self::DeadLettered(DropReason::MaxLength),
        Self::DeadLettered(DropReason::Expired),
        Self::DeadLettered(DropReason::Rejected),
        Self::DeadLettered(DropReason::DeliveryLimit),
        Self::Refused,
        Self::Duplicate,
    ];
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    numbers: [u64; LOSSES],
    sum: u64,
}

impl Losses {
    /// So many in one way, and none in others.
    pub fn of(loss: Loss, count: u64) -> Self {
        let mut losses = Self::default();
        losses.add(loss, count);
        losses
    }

    pub(crate) fn add(&mut self, loss: Loss, count: u64) {
        if let Some(at) = Loss::ALL.iter().position(|known| *known == loss) {
            self.numbers[at] += count;
            self.sum += count;
        }
    }

    /// Adds another's.
    pub(crate) fn add_all(&mut self, other: &Self) {
        let pairs = self.numbers.iter_mut().zip(other.numbers);
        pairs.for_each(|(sum, more)| *sum += more);
        self.sum += other.sum;
    }

    /// The numbers, in the order of [`Loss::ALL`].
    pub fn numbers(&self) -> [u64; LOSSES] {
        self.numbers
    }

    /// All together.
    pub fn sum(&self) -> u64 {
        self.sum
    }
}
