//! Consumers that take messages one by one, as AMQP has it, from a stream, which knows chunks: what was read for one waits here
//! until its prefetch and its window let it through. Acknowledging is credit and nothing else: nothing leaves a stream.

use crate::effect::delivery_bytes;
use crate::{ConsumerSettings, Delivery, Effect, Ends};
use model::{Block, ConsumerId, Ranges, Seq};
use std::collections::VecDeque;
use std::sync::Arc;

/// Messages that were read and have not been delivered.
struct Page {
    block: Arc<Block>,
    /// The number of its first message.
    base: Seq,
    /// So many of it were delivered.
    taken: usize,
}

/// A consumer of messages. Its deliveries are numbered from 1 on, each of its own.
pub struct Subscriber<E: Ends> {
    outlet: E::Outlet,
    settings: ConsumerSettings,
    pages: VecDeque<Page>,
    next_seq: Seq,
    unacked: u64,
    /// What is left of its window, in bytes.
    window: u64,
    /// The window was used up and is not open again by a quarter.
    is_shut: bool,
}

impl<E: Ends> Subscriber<E> {
    /// One that has nothing.
    pub fn new(outlet: E::Outlet, settings: ConsumerSettings) -> Self {
        Self {
            outlet,
            window: settings.window.into(),
            is_shut: settings.window == 0,
            settings,
            pages: VecDeque::new(),
            next_seq: 1,
            unacked: 0,
        }
    }

    /// What it asked for.
    pub fn settings(&self) -> &ConsumerSettings {
        &self.settings
    }

    /// Where its deliveries go.
    pub fn outlet(&self) -> &E::Outlet {
        &self.outlet
    }

    /// What it holds unacknowledged.
    pub fn unacked(&self) -> u64 {
        self.unacked
    }

    /// True if more is to be read for it.
    pub fn wants(&self) -> bool {
        self.pages.is_empty() && self.may_take() > 0
    }

    fn may_take(&self) -> u64 {
        let credit = match u64::from(self.settings.prefetch) {
            0 => u64::MAX,
            prefetch => prefetch.saturating_sub(self.unacked),
        };
        if self.settings.paused || self.is_shut {
            0
        } else {
            credit
        }
    }

    /// These were read for it.
    pub fn put(&mut self, block: Arc<Block>) {
        if block.is_empty() {
            return;
        }
        let base = self.next_seq;
        self.next_seq += block.len() as u64;
        self.pages.push_back(Page {
            block,
            base,
            taken: 0,
        });
    }

    /// Delivers what it may have of what was read.
    pub fn deliver(&mut self, consumer: ConsumerId, effects: &mut Vec<Effect<E>>) {
        loop {
            let most = self.may_take();
            let Some(page) = self.pages.front_mut() else {
                return;
            };
            let left = (page.block.len() - page.taken) as u64;
            let most = usize::try_from(most.min(left)).unwrap_or(usize::MAX);
            if most == 0 {
                return;
            }
            let mut count = 0;
            while count < most && self.window > 0 {
                let bytes = delivery_bytes(&page.block, page.taken + count, 1);
                self.window = self.window.saturating_sub(bytes);
                count += 1;
            }
            self.is_shut = self.window == 0;
            let first = page.base + page.taken as u64;
            page.taken += count;
            self.unacked += count as u64;
            let (block, base) = (page.block.clone(), page.base);
            if page.taken == page.block.len() {
                self.pages.pop_front();
            }
            effects.push(Effect::Deliver {
                outlet: self.outlet.clone(),
                consumer,
                delivery: Delivery {
                    seqs: Ranges::span(first, first + count as u64 - 1),
                    block,
                    base,
                    redelivered: false,
                    returns: 0,
                    failures: None,
                },
            });
        }
    }

    /// It is done with so many, however.
    pub fn settle(&mut self, count: u64) {
        self.unacked = self.unacked.saturating_sub(count);
    }

    /// So many bytes of its deliveries have left for its client.
    pub fn flow(&mut self, bytes: u32) {
        let whole = u64::from(self.settings.window);
        self.window = (self.window + u64::from(bytes)).min(whole);
        self.is_shut = self.is_shut && self.window < whole / 4;
    }

    /// From now on it may hold so many; 0 is no limit.
    pub fn limit(&mut self, prefetch: u32) {
        self.settings.prefetch = prefetch;
    }

    /// From now on it is delivered nothing, or something again.
    pub fn pause(&mut self, paused: bool) {
        self.settings.paused = paused;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{BlockBuilder, Message, RouteBuf, Timestamp, properties::Properties};

    #[derive(Debug)]
    struct Plain;

    impl Ends for Plain {
        type Receipt = ();
        type Reply = ();
        type Outlet = ();

        fn split((): &mut (), _: &Ranges, _: usize) {}
    }

    fn block(messages: usize) -> Arc<Block> {
        let mut block = BlockBuilder::new();
        let route = RouteBuf::new(b"", b"s");
        for _ in 0..messages {
            block.push_message(&Message::new(route.as_route(), Properties::amqp091(b""), b"body"));
        }
        Arc::new(block.finish(true, Timestamp(1)))
    }

    fn subscriber(prefetch: u32, window: u32) -> Subscriber<Plain> {
        let settings = ConsumerSettings {
            no_ack: false,
            exclusive: false,
            prefetch,
            priority: 0,
            window,
            paused: false,
        };
        Subscriber::new((), settings)
    }

    fn delivered(subscriber: &mut Subscriber<Plain>) -> Vec<(Seq, Seq)> {
        let mut effects = Vec::new();
        subscriber.deliver(ConsumerId(1), &mut effects);
        let span = |effect: Effect<Plain>| match effect {
            Effect::Deliver { delivery, .. } => {
                let seqs = delivery.seqs;
                (seqs.first().unwrap(), seqs.last().unwrap())
            }
            other => panic!("{other:?}"),
        };
        effects.into_iter().map(span).collect()
    }

    #[test]
    fn acknowledging_is_credit() {
        let mut it = subscriber(3, 1 << 20);
        assert!(it.wants());
        it.put(block(5));
        it.put(block(0));
        assert_eq!(delivered(&mut it), [(1, 3)]);
        assert!(!it.wants());
        it.settle(2);
        assert_eq!(delivered(&mut it), [(4, 5)]);
        assert!(!it.wants(), "its prefetch is used up");
        it.settle(9);
        assert!(it.wants());
        it.pause(true);
        assert!(!it.wants());
    }

    #[test]
    fn a_window_that_is_used_up_opens_again_by_a_quarter() {
        let mut it = subscriber(0, 100);
        it.put(block(9));
        let first = delivered(&mut it);
        assert_eq!(first.len(), 1);
        assert!(first[0].1 < 9, "{first:?}");
        it.flow(24);
        assert_eq!(delivered(&mut it), []);
        it.flow(1);
        assert_eq!(delivered(&mut it).len(), 1);
    }
}
