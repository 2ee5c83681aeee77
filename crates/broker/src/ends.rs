//! What the hall ties to requests: whom to confirm to, whom to answer, where deliveries go.

use crate::outbox::{ChannelId, Outbox};
use model::Ranges;
use std::sync::Arc;

/// The hall's ends for the queue machine.
#[derive(Debug)]
pub enum Ends {}

impl queue::fifo::Ends for Ends {
    type Receipt = Receipt;
    type Reply = Reply;
    type Outlet = Outlet;
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
}

/// Who asked. Most questions are answered within the asker's own call; `question` tells the asker's from others'.
#[derive(Debug)]
pub struct Reply {
    /// The asker's connection, for late answers.
    pub outbox: Arc<Outbox>,
    /// Its channel.
    pub channel: ChannelId,
    /// Unique for the run of the process.
    pub question: u64,
}

/// Where a consumer's deliveries go.
#[derive(Clone, Debug)]
pub struct Outlet {
    /// The consumer's connection.
    pub outbox: Arc<Outbox>,
    /// Its channel.
    pub channel: ChannelId,
}
