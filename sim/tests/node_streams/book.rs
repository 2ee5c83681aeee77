//! What clients know of a stream, and how what stands in it after a start is held against that.

use std::collections::{BTreeMap, BTreeSet};

/// Who published it, and under which number.
pub type Message = (u64, u64);

/// What was published under this name.
pub fn body_of((publisher, number): Message) -> Vec<u8> {
    let mut body = format!("{publisher} {number} ").into_bytes();
    let length = if number.is_multiple_of(97) {
        3_000
    } else {
        12 + number % 60
    };
    body.resize(body.len() + length as usize, b'.');
    body
}

/// Which message this is; `None` if nobody published it.
pub fn message_of(body: &[u8]) -> Option<Message> {
    let text = std::str::from_utf8(body).ok()?;
    let mut words = text.split(' ').map(|word| word.parse().ok());
    let message = (words.next()??, words.next()??);
    (body_of(message) == body).then_some(message)
}

/// What is known of a stream.
#[derive(Default)]
pub struct Book {
    /// Old segments may go.
    pub is_short: bool,
    /// Where it began when it was looked at last.
    pub first: u64,
    /// What stands at which offset, by all that was looked at or read. It stays so.
    pub at: BTreeMap<u64, Message>,
    /// The last number of each publisher that was sent.
    pub sent: BTreeMap<u64, u64>,
    /// What they were told of.
    pub confirmed: BTreeSet<Message>,
    /// Publishers whose numbers have no holes: they have names, and nothing of theirs was refused.
    pub without_holes: BTreeSet<u64>,
    /// Where readers have stored that they are.
    pub stored: BTreeMap<u64, BTreeSet<u64>>,
    /// What they were told of that.
    pub safe: BTreeMap<u64, u64>,
}

impl Book {
    /// Somebody has read this.
    pub fn read(&mut self, offset: u64, message: Message) {
        let (publisher, number) = message;
        let sent = self.sent.get(&publisher).copied().unwrap_or(0);
        assert!((1..=sent).contains(&number), "{message:?} was never sent");
        let known = *self.at.entry(offset).or_insert(message);
        assert_eq!(known, message, "offset {offset} became something else");
    }

    /// A publisher was told its last number, which is safe.
    pub fn told_sequence(&mut self, publisher: u64, sequence: u64) {
        let safe = self.last_confirmed(publisher);
        let sent = self.sent.get(&publisher).copied().unwrap_or(0);
        assert!(
            (safe..=sent).contains(&sequence),
            "publisher {publisher} hears of {sequence}; {safe} is safe, {sent} was sent"
        );
        if sequence > 0 {
            self.confirmed.insert((publisher, sequence));
        }
    }

    fn last_confirmed(&self, publisher: u64) -> u64 {
        let mut of_it = self.confirmed.range((publisher, 0)..=(publisher, u64::MAX));
        of_it.next_back().map_or(0, |(_, number)| *number)
    }

    /// A reader was told where it was; the stream begins at `first`.
    pub fn told_offset(&mut self, reader: u64, offset: Option<u64>, first: u64) {
        let safe = self.safe.get(&reader).copied();
        let Some(offset) = offset else {
            // It is forgotten below the first message.
            assert!(
                safe.is_none_or(|safe| safe < first),
                "the offset of {reader} is gone; {safe:?} was safe"
            );
            self.safe.remove(&reader);
            return;
        };
        let stored = self.stored.get(&reader).is_some_and(|it| it.contains(&offset));
        assert!(
            stored && safe.is_none_or(|safe| safe <= offset),
            "the offset of {reader} is {offset}; {safe:?} was safe"
        );
        self.safe.insert(reader, offset);
    }

    /// Holds what stands in the stream from `first` on against all that is known.
    pub fn judge(&mut self, first: u64, there: &[Message]) {
        assert!(self.is_short || first == 0, "it begins at {first}");
        let next = first + there.len() as u64;
        for (offset, message) in (first..).zip(there) {
            self.read(offset, *message);
        }
        if let Some((offset, message)) = self.at.last_key_value() {
            assert!(
                *offset < next,
                "{message:?} was read at {offset}; it ends at {next}"
            );
        }
        // Those that have been seen and have gone since count, too; `whole` is where the last ones have gone that nobody saw.
        let (mut last, mut whole, mut expected) = (BTreeMap::new(), 0, 0);
        for (offset, (publisher, number)) in &self.at {
            if *offset != expected {
                whole = *offset;
            }
            expected = offset + 1;
            let before = last.insert(*publisher, (*offset, *number));
            let (at, before) = before.unwrap_or((0, 0));
            assert!(
                before < *number,
                "number {number} of {publisher} at {offset} stands behind {before}"
            );
            assert!(
                before + 1 == *number || at < whole || !self.without_holes.contains(publisher),
                "number {number} of {publisher} at {offset} follows {before}"
            );
        }
        self.first = first;
        let is_there: BTreeSet<Message> = self.at.values().copied().collect();
        for (publisher, number) in &self.confirmed {
            let may_be_gone = self.is_short
                && there
                    .iter()
                    .all(|(other, later)| other != publisher || number < later);
            assert!(
                is_there.contains(&(*publisher, *number)) || (may_be_gone && first > 0),
                "number {number} of {publisher} was confirmed and is lost"
            );
        }
    }
}
