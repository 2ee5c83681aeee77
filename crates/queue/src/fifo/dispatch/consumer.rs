//! One consumer: where its deliveries go and how many more it may get.

use crate::NodeConsumer;
use crate::effect::delivery_bytes;
use crate::fifo::{ConsumerSettings, Ends};
use model::{Block, ConsumerId, Ranges};

/// A consumer of the queue.
pub(crate) struct Consumer<E: Ends> {
    pub id: ConsumerId,
    /// What its node calls it, if another machine may have known it.
    pub of: Option<NodeConsumer>,
    pub outlet: E::Outlet,
    pub settings: ConsumerSettings,
    /// Unacknowledged messages it holds.
    pub in_flight: u64,
    /// Bytes it may still be sent; a delivery that begins above zero may end below.
    pub window: i64,
    /// The window was used up and is not open again by a quarter: a window that opens byte by byte would have deliveries
    /// come message by message for ever after.
    choked: bool,
    pub paused: bool,
    /// Another one is, or is about to be, the active one in its place: it gets nothing more.
    pub yields: bool,
    /// It stands in the ring, so it gets its turn.
    pub in_turn: bool,
    /// What it gets of the span that is being dealt out.
    pub batch: Ranges,
}

impl<E: Ends> Consumer<E> {
    pub(crate) fn new(id: ConsumerId, outlet: E::Outlet, settings: ConsumerSettings) -> Self {
        Self {
            id,
            of: None,
            outlet,
            settings,
            in_flight: 0,
            window: i64::from(settings.window),
            choked: settings.window == 0,
            paused: settings.paused,
            yields: false,
            in_turn: false,
            batch: Ranges::new(),
        }
    }

    /// How many more messages its prefetch allows.
    fn prefetch_room(&self) -> u64 {
        match self.settings.prefetch {
            _ if self.settings.no_ack => u64::MAX,
            0 => u64::MAX,
            prefetch => u64::from(prefetch).saturating_sub(self.in_flight),
        }
    }

    /// True if it may get a message.
    pub(crate) fn is_eligible(&self) -> bool {
        !self.paused && !self.yields && !self.choked && self.prefetch_room() > 0
    }

    /// How many of messages `from..from + count` of the block it may get; at least one if it is eligible.
    pub(crate) fn room(&self, block: &Block, from: usize, count: u64) -> u64 {
        let count = count.min(self.prefetch_room());
        let window = self.window.max(0) as u64;
        if delivery_bytes(block, from, count as usize) <= window {
            return count;
        }
        // The smallest number whose cost uses the window up: the last message may overshoot it, so that one larger than
        // the whole window still passes.
        let (mut low, mut high) = (1, count);
        while low < high {
            let middle = (low + high) / 2;
            match delivery_bytes(block, from, middle as usize) >= window {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }

    /// Charges messages `from..from + count` of the block.
    pub(crate) fn charge(&mut self, block: &Block, from: usize, count: u64) {
        self.window -= delivery_bytes(block, from, count as usize) as i64;
        self.choked = self.window <= 0;
        if !self.settings.no_ack {
            self.in_flight += count;
        }
    }

    /// Gives back window, never more than there was at first.
    pub(crate) fn refill(&mut self, bytes: u32) {
        let whole = i64::from(self.settings.window);
        self.window = (self.window + i64::from(bytes)).min(whole);
        self.choked &= self.window <= whole / 4;
    }
}
