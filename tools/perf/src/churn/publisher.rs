//! A connection with one channel, in confirm mode, that publishes events.

use super::worker::CHANNEL;
use crate::client::Client;
use crate::failure::Failure;
use protocol::amqp::Method;
use std::time::{Duration, Instant};

/// How long a confirm may take.
const CONFIRM: Duration = Duration::from_secs(60);
/// The flag of the delivery mode alone, and 2: persistent.
const PERSISTENT: &[u8] = &[0x10, 0x00, 2];

/// See the module.
pub struct Publisher {
    pub client: Client,
    /// Messages published on the channel so far; the broker numbers its confirms the same way.
    published: u64,
    body: Vec<u8>,
}

impl Publisher {
    /// Opens the channel; in confirm mode if it is to publish.
    ///
    /// # Errors
    /// If the broker refuses.
    pub fn new(mut client: Client, publishes: bool) -> Result<Self, Failure> {
        client.open_channel(CHANNEL)?;
        if publishes {
            client.confirm_select(CHANNEL)?;
        }
        Ok(Self {
            client,
            published: 0,
            body: Vec::new(),
        })
    }

    /// Publishes a persistent message with each of the keys and waits until the broker has confirmed them.
    ///
    /// # Errors
    /// If it does not, or not within a minute.
    pub fn dispatch(&mut self, exchange: &str, keys: &[String; 2], size: u32) -> Result<(), Failure> {
        self.body.resize(size as usize, b'x');
        for key in keys {
            self.client
                .publish(CHANNEL, exchange, key, PERSISTENT, &self.body)?;
        }
        let mut open = Unconfirmed {
            first: self.published + 1,
            second: self.published + 2,
        };
        self.published += 2;
        let deadline = Instant::now() + CONFIRM;
        while !open.is_empty() {
            let answer = self.client.wait(CHANNEL, deadline, |method| match method {
                Method::BasicAck(ack) => Some((true, ack.delivery_tag, ack.multiple)),
                Method::BasicNack(nack) => Some((false, nack.delivery_tag, nack.multiple)),
                _ => None,
            })?;
            match answer {
                Some((true, tag, multiple)) => open.settle(tag, multiple),
                Some((false, ..)) => {
                    let text = "the broker did not take a message (basic.nack): its log may tell why";
                    return Err(Failure::Lost(text.into()));
                }
                None => {
                    let text =
                        "the broker did not confirm a message within 60 s: it may be overloaded or in alarm";
                    return Err(Failure::Lost(text.into()));
                }
            }
        }
        Ok(())
    }
}

/// Two messages one after the other; 0: confirmed.
struct Unconfirmed {
    first: u64,
    second: u64,
}

impl Unconfirmed {
    fn settle(&mut self, tag: u64, multiple: bool) {
        for open in [&mut self.first, &mut self.second] {
            if *open == tag || (multiple && *open <= tag) {
                *open = 0;
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.first == 0 && self.second == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_messages_have_to_be_confirmed_in_whatever_order() {
        for (confirms, done) in [
            (&[(8, true)][..], true),
            (&[(8, false)], false),
            (&[(8, false), (7, false)], true),
            (&[(7, true)], false),
            (&[(6, true)], false),
            (&[(7, false), (8, false)], true),
        ] {
            let mut open = Unconfirmed { first: 7, second: 8 };
            for &(tag, multiple) in confirms {
                open.settle(tag, multiple);
            }
            assert_eq!(open.is_empty(), done, "{confirms:?}");
        }
    }
}
