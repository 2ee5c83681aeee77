//! `basic.qos`: the prefetch of later consumers, and the channel's own limit over all its consumers.
//!
//! Queues know the prefetch of each consumer. The limit of a whole channel is kept here: what comes beyond it goes back at
//! once, as if it had never been delivered, and the consumers are paused until acknowledgements make room.

use super::consumer::Consumer;
use super::consumers::Consumers;
use broker::Delivery;
use model::Ranges;

/// Prefetch of a channel.
#[derive(Debug, Default)]
pub struct Prefetch {
    /// For consumers that start from now on; 0 is no limit.
    pub each: u16,
    /// For all consumers of the channel together; 0 is no limit.
    pub all: u16,
    /// Messages that consumers of this channel hold: waiting to be written, or unsettled.
    held: u64,
    paused: bool,
    /// Whose turn it is to be resumed first.
    turn: usize,
}

impl Prefetch {
    /// What a consumer whose own prefetch is `each` asks its queue for. The channel's limit would hold without that, but
    /// only by giving back most of what comes.
    pub fn to_ask(&self, each: u16) -> u32 {
        match (each, self.all) {
            (0, all) => all.into(),
            (each, 0) => each.into(),
            (each, all) => each.min(all).into(),
        }
    }

    /// Takes what has room of a delivery, and gives the rest back to `consumer`'s queue. Returns what is left of the
    /// delivery and whether the consumers must be paused now.
    pub fn admit(&mut self, consumer: &Consumer, mut delivery: Delivery) -> (Option<Delivery>, bool) {
        let count = delivery.seqs.count();
        if self.all == 0 {
            self.held += count;
            return (Some(delivery), false);
        }
        let room = u64::from(self.all).saturating_sub(self.held);
        if count > room {
            let (kept, rest) = split(&delivery.seqs, room);
            let subscription = &consumer.subscription;
            subscription
                .queue()
                .give_back(Some(subscription.consumer()), rest, false);
            delivery.seqs = kept;
        }
        self.held += count.min(room);
        let pause = !self.paused && self.held >= u64::from(self.all);
        self.paused |= pause;
        ((!delivery.seqs.is_empty()).then_some(delivery), pause)
    }

    /// True if a consumer that starts now must wait for room first.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// So many messages were settled or given back.
    pub fn released(&mut self, count: u64) {
        self.held = self.held.saturating_sub(count);
    }

    /// Lets the consumers go on if there is room, another one first each time.
    pub fn resume(&mut self, consumers: &Consumers) {
        if !self.paused || (self.all > 0 && self.held >= u64::from(self.all)) {
            return;
        }
        self.paused = false;
        let count = consumers.count();
        if count == 0 {
            return;
        }
        self.turn = (self.turn + 1) % count;
        let (first, later) = (consumers.iter().skip(self.turn), consumers.iter().take(self.turn));
        for consumer in first.chain(later) {
            consumer.subscription.resume();
        }
    }

    /// `basic.qos` with `global`. Returns whether the consumers must be paused now.
    pub fn limit_channel(&mut self, limit: u16) -> bool {
        self.all = limit;
        let pause = !self.paused && limit > 0 && self.held >= u64::from(limit);
        self.paused |= pause;
        pause
    }
}

/// The lowest `count` numbers, and the rest.
fn split(seqs: &Ranges, count: u64) -> (Ranges, Ranges) {
    let (mut kept, mut rest) = (Ranges::new(), Ranges::new());
    let mut room = count;
    for (first, last) in seqs.spans() {
        let here = room.min(last + 1 - first);
        if here > 0 {
            kept.push_span(first, first + here - 1);
        }
        rest.push_span(first + here, last);
        room -= here;
    }
    (kept, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_numbers_are_kept() {
        let seqs: Ranges = [1, 2, 3, 7, 8].into_iter().collect();
        let (kept, rest) = split(&seqs, 4);
        assert_eq!(kept.iter().collect::<Vec<_>>(), [1, 2, 3, 7]);
        assert_eq!(rest.iter().collect::<Vec<_>>(), [8]);
        assert_eq!(split(&seqs, 0), (Ranges::new(), seqs.clone()));
        assert_eq!(split(&seqs, 9), (seqs, Ranges::new()));
    }

    #[test]
    fn a_consumer_asks_for_the_smaller_limit() {
        let prefetch = |each, all| {
            Prefetch {
                all,
                ..Prefetch::default()
            }
            .to_ask(each)
        };
        assert_eq!(
            [
                prefetch(0, 0),
                prefetch(3, 0),
                prefetch(0, 5),
                prefetch(3, 5),
                prefetch(9, 5)
            ],
            [0, 3, 5, 3, 5]
        );
    }
}
