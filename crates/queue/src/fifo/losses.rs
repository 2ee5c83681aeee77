//! What a queue counts of the messages that it lost.

use super::{Classic, Ends, Fifo, Loss, Losses};

impl<E: Ends> Fifo<E> {
    /// So many messages left, or did not come in.
    pub(super) fn lost(&mut self, loss: Loss, count: u64) {
        if count > 0 {
            self.losses.add(loss, count);
        }
    }
}

impl<E: Ends> Classic<E> {
    /// What was lost since the start; it never falls.
    pub fn losses(&self) -> Losses {
        match self {
            Self::Plain(fifo) => fifo.losses,
            Self::Sorted(lanes) => lanes.losses(),
        }
    }

    /// The sum of [`Classic::losses`]: whoever looks after each turn sees by it whether there is something new.
    #[inline]
    pub fn lost(&self) -> u64 {
        match self {
            Self::Plain(fifo) => fifo.losses.sum(),
            Self::Sorted(lanes) => lanes.lost(),
        }
    }
}
