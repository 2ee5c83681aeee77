//! The channels of a connection, by number.

use crate::amqp::channel::Channel;
use broker::ChannelId;
use std::collections::BTreeMap;

/// What a channel is called in the broker. Its number is used again after `channel.close`; `life` is not.
pub fn id(number: u16, life: u32) -> ChannelId {
    ChannelId(u64::from(life) << 16 | u64::from(number))
}

/// The number of the channel that is called this in the broker.
#[inline]
pub fn number(id: ChannelId) -> u16 {
    id.0 as u16
}

/// Numbers below this have a place in a list: as many as RabbitMQ offers by default. Clients count from 1.
const PLACES: u16 = 2048;

/// Open channels. Any number may be given to a channel; only how many there are is limited.
#[derive(Default)]
pub struct Channels {
    /// As long as the largest number that was used.
    places: Vec<Option<Box<Channel>>>,
    /// Those with larger numbers.
    others: BTreeMap<u16, Box<Channel>>,
    count: u16,
}

impl Channels {
    /// How many there are.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// The channel of this number.
    #[inline]
    pub fn get(&self, number: u16) -> Option<&Channel> {
        if number >= PLACES {
            return self.others.get(&number).map(Box::as_ref);
        }
        self.places.get(usize::from(number))?.as_deref()
    }

    /// The channel of this number.
    #[inline]
    pub fn get_mut(&mut self, number: u16) -> Option<&mut Channel> {
        if number >= PLACES {
            return self.others.get_mut(&number).map(Box::as_mut);
        }
        self.places.get_mut(usize::from(number))?.as_deref_mut()
    }

    /// Enters a channel whose number nobody has.
    pub fn insert(&mut self, number: u16, channel: Box<Channel>) {
        let before = if number >= PLACES {
            self.others.insert(number, channel)
        } else {
            let at = usize::from(number);
            if self.places.len() <= at {
                self.places.resize_with(at + 1, || None);
            }
            self.places[at].replace(channel)
        };
        self.count += u16::from(before.is_none());
    }

    /// Takes a channel away.
    pub fn remove(&mut self, number: u16) -> Option<Box<Channel>> {
        let removed = if number >= PLACES {
            self.others.remove(&number)
        } else {
            self.places.get_mut(usize::from(number)).and_then(Option::take)
        };
        self.count -= u16::from(removed.is_some());
        removed
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = &Channel> {
        let places = self.places.iter().filter_map(Option::as_deref);
        places.chain(self.others.values().map(Box::as_ref))
    }

    /// All of them, by number.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Channel> {
        let places = self.places.iter_mut().filter_map(Option::as_deref_mut);
        places.chain(self.others.values_mut().map(Box::as_mut))
    }

    /// The numbers of those that there are now.
    pub fn numbers(&self) -> Vec<u16> {
        self.iter().map(|channel| channel.number()).collect()
    }
}
