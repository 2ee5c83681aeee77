//! What the broker ties to requests: whom to confirm to, whom to answer, where deliveries go.

use crate::clients::outbox::{ChannelId, Event, Outbox, Question};
use crate::stats::Latencies;
use model::{QueueId, Ranges};
use queue::Answer;
use std::sync::Arc;

/// The broker's types for the queue machine.
#[derive(Debug)]
pub enum Ends {}

impl queue::Ends for Ends {
    type Receipt = Receipt;
    type Reply = Reply;
    type Outlet = Outlet;

    fn split(receipt: &mut Receipt, positions: &Ranges, count: usize) -> Receipt {
        // If confirms were switched on in the middle of the batch, only its last messages have numbers.
        let unnumbered = (count as u64).saturating_sub(receipt.numbers.count());
        let (mut taken, mut kept) = (Ranges::new(), Ranges::new());
        for (position, number) in (unnumbered..).zip(receipt.numbers.iter()) {
            match positions.contains(position) {
                true => taken.push(number),
                false => kept.push(number),
            }
        }
        receipt.numbers = kept;
        Receipt {
            outbox: receipt.outbox.clone(),
            channel: receipt.channel,
            numbers: taken,
            queue: receipt.queue,
            timed: None,
        }
    }
}

/// Who waits for the confirm of which publishes.
#[derive(Debug)]
pub struct Receipt {
    /// The publisher's connection.
    pub outbox: Arc<Outbox>,
    /// Its channel.
    pub channel: ChannelId,
    /// Its confirm numbers.
    pub numbers: Ranges,
    /// The queue that this goes to, if others may have to confirm the same numbers.
    pub queue: Option<QueueId>,
    /// The time to the confirm is to be noted here; since when it counts, in microseconds.
    pub timed: Option<(Arc<Latencies>, u64)>,
}

impl Receipt {
    /// The queue has taken responsibility: what to say to whom.
    pub fn into_confirm(self) -> (Arc<Outbox>, Event) {
        let event = Event::Confirm {
            channel: self.channel,
            queue: self.queue,
            numbers: self.numbers,
        };
        (self.outbox, event)
    }

    /// The queue has refused: what to say to whom.
    pub fn into_reject(self) -> (Arc<Outbox>, Event) {
        self.refused(false)
    }

    /// Nobody who has the queue's messages could be reached: what to say to whom.
    pub fn into_unreached(self) -> (Arc<Outbox>, Event) {
        self.refused(true)
    }

    fn refused(self, unreached: bool) -> (Arc<Outbox>, Event) {
        let event = Event::Reject {
            channel: self.channel,
            queue: self.queue,
            numbers: self.numbers,
            unreached,
        };
        (self.outbox, event)
    }

    /// The confirm is on its way.
    #[inline]
    pub fn note_confirmed(&self, now: impl FnOnce() -> u64) {
        if let Some((latencies, since)) = &self.timed {
            latencies.confirm.record(now().saturating_sub(*since));
        }
    }
}

/// Who asked.
#[derive(Debug)]
pub struct Reply {
    /// The asker's connection.
    pub outbox: Arc<Outbox>,
    /// Its channel.
    pub channel: ChannelId,
    /// What the answer is called.
    pub question: Question,
    /// What it brings counts as settled; for the counts of operators.
    pub no_ack: bool,
}

impl Reply {
    /// What to say to the asker.
    pub fn answered(&self, answer: Option<Answer>) -> Event {
        Event::Answer {
            channel: self.channel,
            question: self.question,
            answer,
        }
    }
}

/// Where a consumer's deliveries go.
#[derive(Clone, Debug)]
pub struct Outlet {
    /// The consumer's connection.
    pub outbox: Arc<Outbox>,
    /// Its channel.
    pub channel: ChannelId,
    /// What it gets counts as settled; for the counts of operators.
    pub no_ack: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use queue::Ends as _;

    #[test]
    fn a_receipt_splits_by_the_places_of_messages_in_their_batch() {
        let mut receipt = Receipt {
            outbox: Arc::new(Outbox::new()),
            channel: ChannelId(1),
            numbers: Ranges::span(11, 14),
            queue: None,
            timed: None,
        };
        let taken = Ends::split(&mut receipt, &[0, 2, 5].into_iter().collect(), 6);
        assert_eq!(taken.numbers, [11, 14].into_iter().collect());
        assert_eq!(receipt.numbers, Ranges::span(12, 13));
    }
}
