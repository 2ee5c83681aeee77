//! One connection that publishes as fast as its windows allow.

use crate::connection::{CHANNEL, Connection, STUCK_AFTER, first_method};
use crate::gate::Gate;
use crate::options::Options;
use protocol::amqp::method::{BasicPublish, ConfirmSelect, QueueDeclare};
use protocol::amqp::{Method, encode};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Instant;

/// Size of one write, in bytes, if the windows leave that much room.
const BLOCK: usize = 64 * 1024;
/// Flags and list of a message without properties.
const NO_PROPERTIES: &[u8] = &[0, 0];
/// Flags and list of a message that has only its delivery mode, 2.
const PERSISTENT: &[u8] = &[0x10, 0, 2];

/// A publisher and its block of messages, encoded once.
pub struct Publisher {
    connection: Connection,
    queue: String,
    block: Vec<u8>,
    /// Bytes of one message in the block.
    length: usize,
    /// Messages in the block.
    count: u64,
    confirms: Option<Confirms>,
}

/// What is confirmed and what not yet.
struct Confirms {
    window: u64,
    sent: u64,
    /// All messages up to here are confirmed.
    below: u64,
    /// Confirmed ones above.
    above: BTreeSet<u64>,
}

impl Confirms {
    /// Notes an acknowledgement; tells how many messages it newly confirms.
    ///
    /// # Errors
    /// If it names a message that was not sent, or again one that was confirmed.
    fn note(&mut self, tag: u64, multiple: bool) -> Result<u64, String> {
        let tag = if tag == 0 && multiple { self.sent } else { tag };
        if tag > self.sent || tag <= self.below || (!multiple && self.above.contains(&tag)) {
            return Err(format!(
                "confirm of {tag}, which is not outstanding ({} sent)",
                self.sent
            ));
        }
        let before = self.below + self.above.len() as u64;
        if multiple {
            self.below = tag;
            self.above = self.above.split_off(&(tag + 1));
        } else {
            self.above.insert(tag);
        }
        while self.above.first() == Some(&(self.below + 1)) {
            self.above.pop_first();
            self.below += 1;
        }
        Ok(self.below + self.above.len() as u64 - before)
    }

    fn outstanding(&self) -> u64 {
        self.sent - self.below - self.above.len() as u64
    }
}

impl Publisher {
    /// Connects, and selects confirms if they are wanted.
    ///
    /// # Errors
    /// If the broker refuses.
    pub fn open(options: &Options, queue: &str) -> Result<Self, String> {
        let mut connection = Connection::open(options)?;
        let mut confirms = None;
        if options.confirm > 0 {
            connection.send(CHANNEL, &ConfirmSelect { no_wait: false })?;
            connection.await_method(|m| matches!(m, Method::ConfirmSelectOk(_)).then_some(()))?;
            confirms = Some(Confirms {
                window: options.confirm,
                sent: 0,
                below: 0,
                above: BTreeSet::new(),
            });
        }
        let mut message = Vec::new();
        let publish = BasicPublish {
            exchange: b"",
            routing_key: queue.as_bytes(),
            ..BasicPublish::default()
        };
        let properties = if options.persistent {
            PERSISTENT
        } else {
            NO_PROPERTIES
        };
        let body = vec![b'x'; options.size];
        encode::content(
            &mut message,
            CHANNEL,
            &publish,
            properties,
            &body,
            connection.frame_max,
        );
        let mut count = (BLOCK / message.len()).max(1);
        if options.in_flight > 0 && options.consumers > 0 {
            // Two publishers may not lock each other out of a small window.
            count = count.min((options.in_flight as usize / 2 / options.publishers).max(1));
        }
        let (block, length) = (message.repeat(count), message.len());
        Ok(Self {
            connection,
            queue: queue.to_owned(),
            block,
            length,
            count: count as u64,
            confirms,
        })
    }

    /// Publishes until `stop`, then waits until the broker has taken all of it. `confirmed` grows with the confirms.
    ///
    /// # Errors
    /// If the broker closes, refuses a message or is stuck.
    pub fn run(mut self, gate: &Gate, stop: &AtomicBool, confirmed: &AtomicU64) -> Result<(), String> {
        loop {
            let room = self
                .confirms
                .as_ref()
                .map_or(u64::MAX, |c| c.window - c.outstanding());
            if room == 0 {
                self.read_confirms(confirmed)?;
                continue;
            }
            let messages = room.min(self.count);
            if !gate.enter(messages, stop) {
                break;
            }
            self.connection
                .write(&self.block[..messages as usize * self.length])?;
            if let Some(confirms) = &mut self.confirms {
                confirms.sent += messages;
            }
        }
        while self.confirms.as_ref().is_some_and(|c| c.outstanding() > 0) {
            self.read_confirms(confirmed)?;
        }
        // The answer to this comes after everything before it on the channel was handled.
        let declare = QueueDeclare {
            queue: &self.queue,
            passive: true,
            ..QueueDeclare::default()
        };
        self.connection.send(CHANNEL, &declare)?;
        self.connection
            .await_method(|m| matches!(m, Method::QueueDeclareOk(_)).then_some(()))?;
        self.connection.close();
        Ok(())
    }

    /// Blocks until at least one confirm came.
    fn read_confirms(&mut self, confirmed: &AtomicU64) -> Result<(), String> {
        let Some(confirms) = &mut self.confirms else {
            return Ok(());
        };
        let deadline = Instant::now() + STUCK_AFTER;
        while !self.connection.fill()? {
            if Instant::now() > deadline {
                return Err(format!("{} messages are not confirmed", confirms.outstanding()));
            }
        }
        let (mut fresh, mut used) = (0, 0);
        let ack = &mut |m: &Method<'_>| match m {
            Method::BasicAck(ack) => Some(*ack),
            _ => None,
        };
        while let Some((length, ack)) = first_method(&self.connection.unread()[used..], ack)? {
            used += length;
            if let Some(ack) = ack {
                fresh += confirms.note(ack.delivery_tag, ack.multiple)?;
            }
        }
        self.connection.used(used);
        confirmed.fetch_add(fresh, SeqCst);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confirms_come_in_any_order() {
        let mut confirms = Confirms {
            window: 10,
            sent: 10,
            below: 0,
            above: BTreeSet::new(),
        };
        assert_eq!(confirms.note(3, false), Ok(1));
        assert_eq!(confirms.note(1, false), Ok(1));
        assert_eq!(confirms.outstanding(), 8);
        assert_eq!(confirms.note(2, false), Ok(1));
        assert_eq!(confirms.below, 3);
        assert_eq!(confirms.note(6, false), Ok(1));
        assert_eq!(confirms.note(7, true), Ok(3));
        assert_eq!(confirms.outstanding(), 3);
        assert!(confirms.note(7, false).is_err());
        assert!(confirms.note(11, true).is_err());
        assert_eq!(confirms.note(0, true), Ok(3));
    }
}
