//! What is known of a stream: by those who have published to it, and by those who have read it, on any node and at any time.

use std::collections::{BTreeMap, BTreeSet};

/// Who has published it, and its number there: a node's clients over AMQP have the node's number.
pub type Message = (u32, u64);

/// See the module.
#[derive(Debug, Default)]
pub struct Book {
    /// Old segments go.
    pub drops: bool,
    pub sent: BTreeSet<Message>,
    pub confirmed: BTreeSet<Message>,
    /// What was read, on whatever node: an offset means the same for ever.
    at: BTreeMap<u64, Message>,
    places: BTreeMap<Message, u64>,
}

/// What a node's copy has, from its first offset on.
#[derive(Debug)]
pub struct Copy {
    pub first: u64,
    pub messages: Vec<Message>,
}

impl Copy {
    /// The offset of the next message.
    pub fn next(&self) -> u64 {
        self.first + self.messages.len() as u64
    }
}

impl Book {
    /// Of a stream of which old segments go, or of one that keeps all.
    pub fn new(drops: bool) -> Self {
        Self {
            drops,
            ..Self::default()
        }
    }

    /// Somebody has read this.
    ///
    /// # Errors
    /// Nobody has sent it, or there or elsewhere stands something else by what was read before.
    pub fn read(&mut self, offset: u64, message: Message) -> Result<(), String> {
        if !self.sent.contains(&message) {
            return Err(format!("{message:?} at {offset} was never sent"));
        }
        let known = *self.at.entry(offset).or_insert(message);
        if known != message {
            return Err(format!("offset {offset} was {known:?}, and is {message:?}"));
        }
        let place = *self.places.entry(message).or_insert(offset);
        match place == offset {
            true => Ok(()),
            false => Err(format!("{message:?} stands at {place} and at {offset}")),
        }
    }

    /// Everything that this publisher has sent up to this number is safe: it was told so.
    ///
    /// # Errors
    /// More than that was told before, or it has not sent so much.
    pub fn told_sequence(&mut self, publisher: u32, sequence: u64) -> Result<(), String> {
        let of_it = (publisher, 0)..=(publisher, u64::MAX);
        let last = |all: &BTreeSet<Message>| all.range(of_it.clone()).next_back().map_or(0, |it| it.1);
        let (safe, sent) = (last(&self.confirmed), last(&self.sent));
        if !(safe..=sent).contains(&sequence) {
            return Err(format!(
                "{publisher} is told {sequence}; {safe} was confirmed, {sent} was sent"
            ));
        }
        self.confirmed
            .extend((1..=sequence).map(|number| (publisher, number)));
        Ok(())
    }

    /// Holds what all copies have once everything has healed against all that is known.
    ///
    /// # Errors
    /// Copies end differently; something is missing that was confirmed or read; or a publisher's messages have changed places.
    pub fn judge(&self, copies: &[Copy]) -> Result<(), String> {
        let next = copies.first().map_or(0, Copy::next);
        let bounds: Vec<_> = copies.iter().map(|it| (it.first, it.next())).collect();
        if bounds.iter().any(|it| it.1 != next || it.0 > 0 && !self.drops) {
            return Err(format!("copies have {bounds:?}"));
        }
        if let Some((offset, message)) = self.at.last_key_value().filter(|(offset, _)| **offset >= next) {
            return Err(format!("{message:?} was read at {offset}; copies end at {next}"));
        }
        // Those that nobody has read before they went.
        let unseen = next - self.at.len() as u64;
        let missing = self.confirmed.iter().filter(|it| !self.places.contains_key(*it));
        let missing: Vec<_> = missing.collect();
        if missing.len() as u64 > unseen || unseen > 0 && !self.drops {
            return Err(format!(
                "{missing:?} were confirmed and are lost; {unseen} were never read"
            ));
        }
        let mut last = BTreeMap::new();
        for (offset, (publisher, number)) in &self.at {
            let before = last.insert(*publisher, *number).unwrap_or(0);
            if before >= *number {
                return Err(format!(
                    "{before} of {publisher} stands before {number} at {offset}"
                ));
            }
        }
        Ok(())
    }
}
