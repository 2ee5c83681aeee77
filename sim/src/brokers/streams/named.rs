//! Publishers with a reference.

use super::super::Brokers;
use super::super::client::QUEUE;
use super::book::Message;
use crate::world::until_power_cut;
use broker::{Answer, ChannelId, QueueQuestion, StreamPublisher};
use model::chunk::Entry;
use std::collections::BTreeMap;
use std::time::Duration;

/// Numbers of publishers with a reference are above those of nodes.
pub const NAMED: u32 = 100;

/// So much of what a publisher knows to be there it sends again at the most.
const AGAIN: u64 = 6;

/// Who waits for so long for a confirm goes and comes again.
pub const GOES_AFTER: Duration = Duration::from_secs(4);

/// How a publisher with a reference stands.
pub enum Stand {
    Away,
    /// It has asked this node how far it has come.
    Asks(usize, QueueQuestion),
    /// It publishes on this node, and these wait for a confirm, each flush with its first and last number.
    Publishes {
        at: usize,
        publisher: Box<StreamPublisher>,
        channel: ChannelId,
        next: u64,
        waiting: BTreeMap<u64, (u64, u64)>,
    },
}

/// A publisher with a reference.
pub struct Named {
    pub number: u32,
    pub sent: u64,
    pub stand: Stand,
    /// Since when nothing has become of that.
    pub since: Duration,
}

impl Named {
    pub fn reference(&self) -> Vec<u8> {
        format!("publisher {}", self.number).into_bytes()
    }

    pub fn is_on(&self, node: usize) -> bool {
        match &self.stand {
            Stand::Away => false,
            Stand::Asks(at, _) | Stand::Publishes { at, .. } => *at == node,
        }
    }

    /// All that it has sent it knows to be there.
    pub fn is_answered(&self) -> bool {
        match &self.stand {
            Stand::Publishes { next, waiting, .. } => waiting.is_empty() && *next > self.sent,
            _ => false,
        }
    }
}

fn text_of((publisher, number): Message) -> String {
    let length = (u64::from(publisher) * 31 + number * 97) % 1_400;
    format!("{publisher} {number} {}", "x".repeat(length as usize))
}

impl Brokers {
    /// A publisher with a reference goes on.
    pub(super) fn publish_named(&mut self, at: usize) {
        let which = self.random.below(2) as usize;
        let (count, again, leaves) = (
            1 + self.random.below(4),
            self.random.below(AGAIN),
            self.random.below(24) == 0,
        );
        let now = self.clock;
        let named = &self.streaming().named[which];
        let is_over = now > named.since + GOES_AFTER && !named.is_answered();
        if leaves || is_over {
            self.away(which);
        }
        if matches!(self.streaming().named[which].stand, Stand::Away) {
            return self.come(at, which);
        }
        self.send_named(which, count, again);
    }

    pub(super) fn away(&mut self, which: usize) {
        let named = &mut self.streaming().named[which];
        let before = std::mem::replace(&mut named.stand, Stand::Away);
        until_power_cut(|| drop(before));
    }

    /// It asks the node how far it has come, if that leads.
    pub(super) fn come(&mut self, at: usize, which: usize) {
        let (now, channel) = (self.clock, self.streaming().channel());
        let Some(client) = self.places[at].client() else {
            return;
        };
        let Ok(stream) = client.session.stream_to_write(QUEUE, channel) else {
            return;
        };
        let reference = self.stream.as_ref().map(|it| it.named[which].reference());
        let question = until_power_cut(|| stream.sequence(&reference.unwrap_or_default()));
        let id = self.places[at].id;
        self.tell(|| format!("publisher {which} asks {id:?} how far it has come: {question:?}"));
        if let Some(question) = question {
            let named = &mut self.streaming().named[which];
            (named.stand, named.since) = (Stand::Asks(at, question), now);
        }
    }

    pub(super) fn send_named(&mut self, which: usize, count: u64, again: u64) {
        let now = self.clock;
        let streaming = self.streaming();
        let (named, book) = (&mut streaming.named[which], &mut streaming.book);
        let (number, sent) = (named.number, named.sent);
        let Stand::Publishes {
            publisher,
            next,
            waiting,
            ..
        } = &mut named.stand
        else {
            return;
        };
        // In the first flush some are sent again that are there.
        let first = match waiting.is_empty() && *next <= sent {
            true => next.saturating_sub(again).max(1),
            false => *next,
        };
        let last = *next + count - 1;
        for id in first..=last {
            let text = text_of((number, id));
            let mut entry = Vec::new();
            Entry::Message(text.as_bytes()).write(&mut entry);
            if publisher.take(id, None, &entry).is_err() {
                return;
            }
            book.sent.insert((number, id));
        }
        if waiting.is_empty() {
            named.since = now;
        }
        named.sent = sent.max(last);
        *next = last + 1;
        if let Some(Some(flushed)) = until_power_cut(|| publisher.flush()) {
            waiting.insert(flushed, (first, last));
        }
        self.tell(|| format!("publisher {which} sends {first} to {last}"));
    }

    /// Those publishers that stand so on a node go.
    pub(super) fn leaves(&mut self, at: usize, so: impl Fn(&Stand) -> bool) {
        for which in 0..self.streaming().named.len() {
            let named = &self.streaming().named[which];
            if named.is_on(at) && so(&named.stand) {
                self.tell(|| format!("publisher {which} leaves"));
                self.away(which);
            }
        }
    }

    /// A publisher hears how far it has come, and goes on there.
    pub(super) fn told(
        &mut self,
        at: usize,
        question: QueueQuestion,
        answer: Option<Answer>,
    ) -> Result<(), String> {
        let is_its =
            |named: &Named| matches!(named.stand, Stand::Asks(on, asked) if (on, asked) == (at, question));
        let Some(which) = self.streaming().named.iter().position(is_its) else {
            return Ok(());
        };
        let Some(Answer::Number(sequence)) = answer else {
            self.away(which);
            return Ok(());
        };
        let sequence = sequence.unwrap_or(0);
        self.tell(|| format!("publisher {which} hears that it has come to {sequence}"));
        self.note(sequence);
        let channel = self.streaming().channel();
        let number = self.streaming().named[which].number;
        self.streaming().book.told_sequence(number, sequence)?;
        let reference = self.streaming().named[which].reference();
        let session = self.places[at].client().map(|client| client.session.clone());
        let stream = session.and_then(|it| it.stream_to_write(QUEUE, channel).ok());
        let publisher = stream.and_then(|it| until_power_cut(|| it.publish(Some(&reference))));
        let Some(publisher) = publisher else {
            self.away(which);
            return Ok(());
        };
        let now = self.clock;
        let named = &mut self.streaming().named[which];
        named.since = now;
        named.stand = Stand::Publishes {
            at,
            publisher: Box::new(publisher),
            channel,
            next: sequence + 1,
            waiting: BTreeMap::new(),
        };
        Ok(())
    }
}
