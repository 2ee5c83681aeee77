//! A session between a node and the leader of a queue: what is said in it arrives in order and whole, or the session ends.
//!
//! Links keep the order, and lose what comes last when they break. Here it is seen that something is missing, whatever a
//! link does: frames are numbered in each direction. One that comes again is passed over, and behind a gap the session is
//! over. Whoever has said something and does not hear that it came asks; an idle session says nothing.

use super::codec::Said;
use super::message::Frame;

/// Who has said something asks after so many ticks whether it came, ...
pub const ASKS_AFTER: u32 = 10;

/// ... and gives the session up after so many.
const GIVES_UP_AFTER: u32 = 40;

/// A frame that says so much is full: so many messages, ...
const MESSAGES: usize = 4096;

/// ... or so many bytes of blocks.
const BYTES: usize = 1 << 20;

/// A block of so many bytes is the only one of its frame: then it is not copied where it comes ([`super::codec`]).
const ALONE: usize = 16 * 1024;

/// One end of a session.
#[derive(Debug)]
pub struct End {
    /// Which session of the node.
    pub session: u64,
    /// The leader's term; 0 while the node does not know it.
    pub term: u64,
    sent: u64,
    /// Up to here the other end has everything.
    seen: u64,
    received: u64,
    /// For so many ticks the other end has not said that it has everything.
    unheard: u32,
    /// It is to be told how far everything came.
    answers: bool,
    asks: bool,
}

/// What a frame is to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It comes next.
    Next,
    /// It came before, or brings nothing.
    Nothing,
    /// Something is missing before it.
    Gap,
}

impl End {
    /// The end of a new session.
    pub fn new(session: u64, term: u64) -> Self {
        Self {
            session,
            term,
            sent: 0,
            seen: 0,
            received: 0,
            unheard: 0,
            answers: false,
            asks: false,
        }
    }

    /// A frame of this session has come.
    pub fn receive<T>(&mut self, frame: &Frame<T>) -> Arrival {
        self.answers |= frame.asks;
        if frame.seen > self.seen && frame.seen <= self.sent {
            self.seen = frame.seen;
            self.unheard = 0;
        }
        match frame.number {
            number if number <= self.received => Arrival::Nothing,
            number if number == self.received + 1 && !frame.messages.is_empty() => {
                self.received = number;
                Arrival::Next
            }
            _ => Arrival::Gap,
        }
    }

    /// Adds the frames that say this to `frames`, or one that says nothing if the other end waits for that.
    pub fn send<T: Said>(&mut self, messages: Vec<T>, frames: &mut Vec<Frame<T>>) {
        let (mut part, mut count, mut bytes) = (Vec::new(), 0, 0);
        for message in messages {
            let (before, brings) = (bytes, message.bytes());
            count += message.count();
            bytes += brings;
            let is_apart = before > 0 && brings > 0 && before.max(brings) >= ALONE;
            if !part.is_empty() && (count > MESSAGES || bytes > BYTES || is_apart) {
                frames.push(self.frame(std::mem::take(&mut part)));
                (count, bytes) = (message.count(), brings);
            }
            part.push(message);
        }
        if !part.is_empty() || self.answers || self.asks {
            frames.push(self.frame(part));
        }
    }

    fn frame<T>(&mut self, messages: Vec<T>) -> Frame<T> {
        self.sent += u64::from(!messages.is_empty());
        self.answers = false;
        Frame {
            session: self.session,
            term: self.term,
            number: self.sent,
            seen: self.received,
            asks: std::mem::take(&mut self.asks),
            messages,
        }
    }

    /// The other end is to say at once that it has what is sent next. Up to which frame it has everything, [`End::has`] says.
    pub fn ask(&mut self) {
        self.asks = true;
    }

    /// The number of the last frame that was sent.
    pub fn last(&self) -> u64 {
        self.sent
    }

    /// Whether the other end has this frame.
    pub fn has(&self, frame: u64) -> bool {
        self.seen >= frame
    }

    /// A tick of the clock. False if the other end does not say that it has what was sent: the session is over.
    pub fn tick(&mut self) -> bool {
        if self.seen == self.sent {
            self.unheard = 0;
            return true;
        }
        self.unheard += 1;
        self.asks |= self.unheard.is_multiple_of(ASKS_AFTER);
        self.unheard < GIVES_UP_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::super::ToNode;
    use super::*;
    use proptest::prelude::*;

    fn say(end: &mut End, numbers: Vec<u64>) -> Vec<Frame<ToNode>> {
        let mut frames = Vec::new();
        let messages = numbers.into_iter().map(|number| ToNode::Resolved { number });
        end.send(messages.collect(), &mut frames);
        frames
    }

    #[test]
    fn whoever_hears_nothing_asks_and_then_gives_up_and_who_has_said_nothing_does_neither() {
        let (mut one, mut other) = (End::new(1, 1), End::new(1, 1));
        assert!((0..1_000).all(|_| one.tick()) && say(&mut one, vec![]).is_empty());
        let lost = say(&mut one, vec![7]);
        assert_eq!(lost.len(), 1);
        assert!((0..ASKS_AFTER).all(|_| one.tick()));
        let asked = say(&mut one, vec![]);
        assert!(asked[0].asks && asked[0].messages.is_empty());
        assert_eq!(other.receive(&asked[0]), Arrival::Gap, "the lost one is missed");
        assert!(!(0..GIVES_UP_AFTER).all(|_| one.tick()));
    }

    #[test]
    fn an_answer_that_says_nothing_ends_the_asking() {
        let (mut one, mut other) = (End::new(1, 1), End::new(1, 1));
        let came = say(&mut one, vec![7]);
        assert_eq!(other.receive(&came[0]), Arrival::Next);
        assert!(say(&mut other, vec![]).is_empty(), "nobody has asked");
        assert!((0..ASKS_AFTER).all(|_| one.tick()));
        assert_eq!(other.receive(&say(&mut one, vec![])[0]), Arrival::Nothing);
        assert_eq!(one.receive(&say(&mut other, vec![])[0]), Arrival::Nothing);
        assert!((0..1_000).all(|_| one.tick()) && say(&mut one, vec![]).is_empty());
    }

    proptest! {
        #[test]
        fn what_arrives_is_what_was_said_up_to_the_gap_after_which_nothing_does(
            said in prop::collection::vec(0..5_usize, 1..20),
            fates in prop::collection::vec(0..6_u8, 20),
        ) {
            let (mut one, mut other) = (End::new(1, 1), End::new(1, 1));
            let (mut whole, mut came, mut over) = (Vec::new(), Vec::new(), false);
            for (number, (count, fate)) in said.into_iter().zip(fates).enumerate() {
                let messages = vec![number as u64; count];
                whole.extend(messages.iter().map(|number| ToNode::Resolved { number: *number }));
                for frame in say(&mut one, messages) {
                    let times = match fate { 0 => 0, 1 => 2, _ => 1 };
                    for _ in 0..times {
                        match other.receive(&frame) {
                            Arrival::Next if !over => came.extend(frame.messages.clone()),
                            Arrival::Gap => over = true,
                            _ => {}
                        }
                    }
                }
            }
            prop_assert!(whole.starts_with(&came));
            prop_assert!(over || other.received + 1 >= one.sent || came.len() < whole.len());
        }
    }
}
