//! Publishers, what they publish, and what is confirmed to them.

use crate::stream::refusal;
use crate::stream::streams::{Publisher, PublisherNumber, Refused};
use broker::stats::{Entered, StreamPublisher};
use protocol::stream::{Command, ListBuf, Publish, PublishingError, ResponseCode, publish_confirm};
use std::collections::BTreeMap;
use std::sync::Arc;

/// So many numbers stand in one confirm at most: 128 KiB.
const CONFIRMED_AT_ONCE: usize = 16 * 1024;

/// So many bytes of a connection may be unconfirmed before nothing more is read from it. RabbitMQ counts messages only, and a
/// message may have a megabyte.
const UNCONFIRMED_BYTES: u64 = 64 * 1024 * 1024;

/// The publishers of a connection.
pub struct Publishers {
    by_id: BTreeMap<u8, Publishing>,
    ids: BTreeMap<PublisherNumber, u8>,
    /// Those that are no more, as long as something of theirs is unconfirmed.
    departed: BTreeMap<PublisherNumber, Departed>,
    /// Those with something to hand on.
    dirty: Vec<u8>,
    unconfirmed: Unconfirmed,
}

/// A publisher with its client's number.
struct Publishing {
    number: PublisherNumber,
    /// What operators see of it: the stream, its reference, and what it has done.
    shown: Entered<StreamPublisher>,
    publisher: Box<dyn Publisher>,
    dirty: bool,
    in_flight: InFlight,
}

/// A publisher that its client has deleted, or may have no more.
struct Departed {
    stream: Arc<str>,
    /// Until it is dropped, it is told if nobody confirms anything any more.
    _publisher: Box<dyn Publisher>,
    in_flight: InFlight,
}

/// What was published and is unconfirmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct InFlight {
    messages: u64,
    /// How many bytes they have, as far as messages are equally long: of a confirmed one only its number is known.
    bytes: u64,
}

/// What a connection has published and nobody has confirmed.
struct Unconfirmed {
    in_flight: InFlight,
    most: u64,
    enough_left: u64,
    blocked: bool,
}

impl Publishers {
    /// None. So many messages may be unconfirmed, and so many of these must be left for going on.
    pub fn new(credits: u32, required_for_unblocking: u32) -> Self {
        Self {
            by_id: BTreeMap::new(),
            ids: BTreeMap::new(),
            departed: BTreeMap::new(),
            dirty: Vec::new(),
            unconfirmed: Unconfirmed {
                in_flight: InFlight::default(),
                most: credits.into(),
                enough_left: required_for_unblocking.min(credits.saturating_sub(1)).into(),
                blocked: false,
            },
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// True if there are too many messages unconfirmed. Without publishers nobody is blocked, as in RabbitMQ.
    pub fn is_blocked(&self) -> bool {
        self.unconfirmed.blocked && !self.by_id.is_empty()
    }

    /// True if the client has used this number, or this reference for this stream.
    pub fn has(&self, id: u8, stream: &str, reference: &[u8]) -> bool {
        let same = |it: &Publishing| *it.shown.stream == *stream && *it.shown.reference == *reference;
        self.by_id.contains_key(&id) || (!reference.is_empty() && self.by_id.values().any(same))
    }

    /// One more.
    pub fn add(
        &mut self,
        number: PublisherNumber,
        shown: Entered<StreamPublisher>,
        publisher: Box<dyn Publisher>,
    ) {
        let id = shown.id;
        self.ids.insert(number, id);
        let publishing = Publishing {
            number,
            shown,
            publisher,
            dirty: false,
            in_flight: InFlight::default(),
        };
        self.by_id.insert(id, publishing);
    }

    /// One less: what it took goes on its way first. False if there is none of this number.
    pub fn remove(&mut self, id: u8) -> bool {
        let Some(mut gone) = self.by_id.remove(&id) else {
            return false;
        };
        if gone.dirty {
            gone.publisher.flush();
        }
        self.dirty.retain(|it| *it != id);
        self.ids.remove(&gone.number);
        if gone.in_flight.messages > 0 {
            let departed = Departed {
                stream: gone.shown.stream.clone(),
                _publisher: gone.publisher,
                in_flight: gone.in_flight,
            };
            self.departed.insert(gone.number, departed);
        }
        true
    }

    /// The streams that are published to.
    pub fn streams(&self) -> Vec<Arc<str>> {
        self.by_id.values().map(|it| it.shown.stream.clone()).collect()
    }

    /// Nobody publishes to this stream any more. True if somebody did.
    pub fn forget_stream(&mut self, stream: &str) -> bool {
        let of_stream = self.by_id.iter().filter(|(_, it)| *it.shown.stream == *stream);
        let ids: Vec<u8> = of_stream.map(|(id, _)| *id).collect();
        for id in &ids {
            self.remove(*id);
        }
        !ids.is_empty()
    }

    /// Nobody confirms to publishers that are no more what they have published to this stream: it counts no more, whatever became
    /// of it.
    pub fn give_up(&mut self, stream: &str) {
        let unconfirmed = &mut self.unconfirmed;
        self.departed.retain(|_, departed| {
            let stays = *departed.stream != *stream;
            if !stays {
                unconfirmed.remove(departed.in_flight);
            }
            stays
        });
    }

    /// Takes messages. If there is no such publisher, each is refused.
    pub fn publish(&mut self, publish: &Publish<'_>, out: &mut Vec<u8>) {
        let id = publish.publisher_id;
        let Some(publishing) = self.by_id.get_mut(&id) else {
            let errors = publish.entries.iter().map(|entry| PublishingError {
                publishing_id: entry.publishing_id,
                code: ResponseCode::PublisherDoesNotExist,
            });
            return Command::PublishError {
                publisher_id: id,
                errors: ListBuf::of(errors).as_list(),
            }
            .encode(out);
        };
        if !std::mem::replace(&mut publishing.dirty, true) {
            self.dirty.push(id);
        }
        let (mut taken, mut bytes) = (0, 0);
        let mut refused = Vec::new();
        for entry in publish.entries.iter() {
            match publishing.publisher.take(&entry) {
                Ok(()) => {
                    taken += 1;
                    bytes += entry.bytes.len() as u64;
                }
                Err(why) => refused.push(PublishingError {
                    publishing_id: entry.publishing_id,
                    code: refusal::code(why),
                }),
            }
        }
        let taken_now = InFlight {
            messages: taken,
            bytes,
        };
        publishing.in_flight.add(taken_now);
        self.unconfirmed.add(taken_now);
        let errored = refused.len() as u64;
        publishing.shown.published.add(taken + errored);
        if !refused.is_empty() {
            publishing.shown.errored.add(errored);
            Command::PublishError {
                publisher_id: id,
                errors: ListBuf::of(refused).as_list(),
            }
            .encode(out);
        }
    }

    /// Hands on what was taken.
    pub fn flush(&mut self) {
        for id in self.dirty.drain(..) {
            if let Some(publishing) = self.by_id.get_mut(&id) {
                publishing.dirty = false;
                publishing.publisher.flush();
            }
        }
    }

    /// So many messages of a publisher are unconfirmed no more. Which one it is, if it is still there.
    fn settled(&mut self, number: PublisherNumber, messages: u64) -> Option<(u8, &Publishing)> {
        if let Some(id) = self.ids.get(&number) {
            let publishing = self.by_id.get_mut(id)?;
            self.unconfirmed.remove(publishing.in_flight.take(messages));
            return Some((*id, &*publishing));
        }
        // What counts no more does not count again.
        let departed = self.departed.get_mut(&number)?;
        self.unconfirmed.remove(departed.in_flight.take(messages));
        if departed.in_flight.messages == 0 {
            self.departed.remove(&number);
        }
        None
    }

    /// Confirms messages, in frames that the client takes.
    pub fn confirmed(&mut self, number: PublisherNumber, ids: &[u64], frame_max: u32, out: &mut Vec<u8>) {
        let Some((id, publishing)) = self.settled(number, ids.len() as u64) else {
            return;
        };
        publishing.shown.confirmed.add(ids.len() as u64);
        let most = match frame_max {
            0 => CONFIRMED_AT_ONCE,
            bytes => (bytes.saturating_sub(9) as usize / 8).clamp(1, CONFIRMED_AT_ONCE),
        };
        for ids in ids.chunks(most) {
            publish_confirm(out, id, ids);
        }
    }

    /// Tells a publisher what was not taken.
    pub fn rejected(&mut self, number: PublisherNumber, ids: &[u64], why: Refused, out: &mut Vec<u8>) {
        let Some((id, publishing)) = self.settled(number, ids.len() as u64) else {
            return;
        };
        publishing.shown.errored.add(ids.len() as u64);
        let code = refusal::code(why);
        let errors = ids.iter().map(|id| PublishingError {
            publishing_id: *id,
            code,
        });
        Command::PublishError {
            publisher_id: id,
            errors: ListBuf::of(errors).as_list(),
        }
        .encode(out);
    }
}

impl InFlight {
    fn add(&mut self, more: Self) {
        self.messages += more.messages;
        self.bytes += more.bytes;
    }

    /// So many messages of it, or all if it has fewer.
    fn take(&mut self, messages: u64) -> Self {
        let left = self.messages.saturating_sub(messages);
        // In 128 bits, because both may be large.
        let bytes = u128::from(self.bytes) * u128::from(left) / u128::from(self.messages.max(1));
        let rest = Self {
            messages: left,
            bytes: bytes as u64,
        };
        let taken = Self {
            messages: self.messages - rest.messages,
            bytes: self.bytes - rest.bytes,
        };
        *self = rest;
        taken
    }
}

impl Unconfirmed {
    fn add(&mut self, more: InFlight) {
        self.in_flight.add(more);
        self.blocked |= self.in_flight.messages >= self.most || self.in_flight.bytes >= UNCONFIRMED_BYTES;
    }

    /// It is the sum of all publishers', so there is as much as goes.
    fn remove(&mut self, gone: InFlight) {
        let left = &mut self.in_flight;
        left.messages = left.messages.saturating_sub(gone.messages);
        left.bytes = left.bytes.saturating_sub(gone.bytes);
        if left.messages + self.enough_left < self.most && left.bytes < UNCONFIRMED_BYTES {
            self.blocked = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(messages: u64, bytes: u64) -> InFlight {
        InFlight { messages, bytes }
    }

    #[test]
    fn a_connection_with_too_much_unconfirmed_waits_until_a_quarter_is_free() {
        let mut unconfirmed = Publishers::new(50_000, 12_500).unconfirmed;
        unconfirmed.add(some(49_999, 499_990));
        assert!(!unconfirmed.blocked);
        unconfirmed.add(some(1, 10));
        assert!(unconfirmed.blocked);
        unconfirmed.remove(some(12_500, 125_000));
        assert!(unconfirmed.blocked);
        unconfirmed.remove(some(1, 10));
        assert!(!unconfirmed.blocked);
        assert_eq!(unconfirmed.in_flight, some(37_499, 374_990));
    }

    #[test]
    fn of_a_confirmed_message_the_average_counts_and_of_the_last_ones_all_that_is_left() {
        let mut three = some(3, 10);
        assert_eq!(three.take(1), some(1, 4));
        assert_eq!(three.take(7), some(2, 6));
        assert_eq!((three.take(1), three), (some(0, 0), some(0, 0)));
    }

    #[test]
    fn large_messages_are_counted_by_their_bytes() {
        let mut unconfirmed = Publishers::new(50_000, 12_500).unconfirmed;
        unconfirmed.add(some(64, UNCONFIRMED_BYTES));
        assert!(unconfirmed.blocked);
        unconfirmed.remove(some(1, UNCONFIRMED_BYTES / 64));
        assert!(!unconfirmed.blocked);
    }

    #[test]
    fn with_the_smallest_settings_it_still_goes_on() {
        let mut unconfirmed = Publishers::new(1, 100).unconfirmed;
        unconfirmed.add(some(1, 1));
        assert!(unconfirmed.blocked);
        unconfirmed.remove(some(1, 1));
        assert!(!unconfirmed.blocked);
    }
}
