//! What connections and channels did that are gone, by virtual host: without it, totals would fall when somebody leaves.

use super::{Channel, ChannelCounts, Connection, KINDS, SizeCounts};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A virtual host's numbers since the start of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// In the order of [`ChannelCounts::NAMES`].
    pub messages: [u64; KINDS],
    /// Publishes that were to be confirmed.
    pub to_confirm: u64,
    /// Bytes that came.
    pub received_bytes: u64,
    /// How large published messages were.
    pub sizes: SizeCounts,
    /// Bytes that left.
    pub sent_bytes: u64,
}

impl Totals {
    /// RabbitMQ's names and the numbers.
    pub fn named(&self) -> [(&'static str, u64); KINDS] {
        std::array::from_fn(|at| (ChannelCounts::NAMES[at], self.messages[at]))
    }

    /// Adds a message that came by no connection: an operator's, which is confirmed unless a queue refused it, and
    /// given back if no queue got it.
    pub fn add_publish(&mut self, bytes: usize, lost: bool, refused: bool) {
        let kinds = [
            ("publish", true),
            ("return_unroutable", lost),
            ("confirm", !refused),
        ];
        self.add_kinds(kinds);
        self.to_confirm += 1;
        self.sizes.add_one(bytes);
    }

    /// Adds a get that came by no connection. `found` is a message, and whether it had been delivered before.
    pub fn add_get(&mut self, no_ack: bool, found: Option<bool>) {
        self.add_kinds([
            ("get", found.is_some() && !no_ack),
            ("get_no_ack", found.is_some() && no_ack),
            ("get_empty", found.is_none()),
            ("redeliver", found == Some(true)),
        ]);
    }

    fn add_kinds<const N: usize>(&mut self, kinds: [(&str, bool); N]) {
        for (name, _) in kinds.into_iter().filter(|(_, happened)| *happened) {
            if let Some(at) = ChannelCounts::NAMES.iter().position(|known| *known == name) {
                self.messages[at] += 1;
            }
        }
    }

    /// Adds a channel's.
    pub fn add_channel(&mut self, channel: &Channel) {
        for (sum, count) in self.messages.iter_mut().zip(channel.counts.numbers()) {
            *sum += count;
        }
        self.to_confirm += channel.to_confirm.get();
    }

    /// Adds a connection's, without its channels.
    pub fn add_connection(&mut self, connection: &Connection) {
        self.received_bytes += connection.received_bytes.get();
        self.sizes.add(&connection.sizes.counts());
        self.sent_bytes += connection.sent_bytes.get();
    }

    /// Adds another virtual host's.
    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.messages.iter_mut().zip(other.messages) {
            *sum += count;
        }
        self.to_confirm += other.to_confirm;
        self.received_bytes += other.received_bytes;
        self.sizes.add(&other.sizes);
        self.sent_bytes += other.sent_bytes;
    }
}

/// What was done by those who are gone.
#[derive(Debug, Default)]
pub(super) struct Gone {
    vhosts: Mutex<HashMap<Arc<str>, Totals>>,
}

impl Gone {
    pub(super) fn change(&self, vhost: &Arc<str>, change: impl FnOnce(&mut Totals)) {
        let mut vhosts = self.vhosts.lock().unwrap_or_else(PoisonError::into_inner);
        change(vhosts.entry(vhost.clone()).or_default());
    }

    pub(super) fn all(&self) -> HashMap<Arc<str>, Totals> {
        self.vhosts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
