//! Output of a channel that waits for the log.
//!
//! The reply to a durable declaration must not leave before the declaration is synced, and what the channel writes after
//! it must not overtake it. The connection's other channels go on meanwhile.

use broker::Ticket;
use std::collections::VecDeque;

/// Output that waits. Exists only while there is some.
#[derive(Debug, Default)]
pub struct Held {
    bytes: Vec<u8>,
    /// What is waited for, in order: bytes from `from` on wait for the ticket.
    marks: VecDeque<Mark>,
}

#[derive(Debug)]
struct Mark {
    ticket: Ticket,
    from: usize,
    durable: bool,
}

impl Held {
    /// What is written from now on waits for this ticket too.
    pub fn wait_for(&mut self, ticket: Ticket) {
        self.marks.push_back(Mark {
            ticket,
            from: self.bytes.len(),
            durable: false,
        });
    }

    /// Where to write.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// How many tickets are waited for.
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// Writes where the wait for this ticket begins: the answer, now that it is known.
    pub fn fill(&mut self, ticket: Ticket, answer: &[u8]) {
        let Some(at) = self.marks.iter().position(|mark| mark.ticket == ticket) else {
            return;
        };
        let from = self.marks[at].from;
        self.bytes.splice(from..from, answer.iter().copied());
        for mark in self.marks.iter_mut().skip(at + 1) {
            mark.from += answer.len();
        }
    }

    /// Drops what waits for this ticket and all that was written after it. True if nothing waits any more.
    pub fn cut(&mut self, ticket: Ticket) -> bool {
        if let Some(at) = self.marks.iter().position(|mark| mark.ticket == ticket) {
            self.bytes.truncate(self.marks[at].from);
            self.marks.truncate(at);
        }
        self.marks.is_empty()
    }

    /// The ticket's promise is durable: moves what waits no longer to `out`. True if nothing waits any more.
    pub fn durable(&mut self, ticket: Ticket, out: &mut Vec<u8>) -> bool {
        if let Some(mark) = self.marks.iter_mut().find(|mark| mark.ticket == ticket) {
            mark.durable = true;
        }
        while self.marks.front().is_some_and(|mark| mark.durable) {
            self.marks.pop_front();
        }
        let free = self.marks.front().map_or(self.bytes.len(), |mark| mark.from);
        out.extend_from_slice(&self.bytes[..free]);
        self.bytes.drain(..free);
        for mark in &mut self.marks {
            mark.from -= free;
        }
        self.marks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_leaves_in_order_however_the_tickets_come() {
        let (mut held, mut out) = (Held::default(), Vec::new());
        held.wait_for(Ticket(1));
        held.bytes().extend_from_slice(b"one ");
        held.wait_for(Ticket(2));
        held.bytes().extend_from_slice(b"two ");
        held.wait_for(Ticket(3));
        held.bytes().extend_from_slice(b"three");
        assert!(!held.durable(Ticket(2), &mut out));
        assert_eq!(out, b"");
        assert!(!held.durable(Ticket(1), &mut out));
        assert_eq!(out, b"one two ");
        assert!(!held.durable(Ticket(9), &mut out));
        assert!(held.durable(Ticket(3), &mut out));
        assert_eq!(out, b"one two three");
    }

    #[test]
    fn an_answer_goes_where_it_was_waited_for_and_a_failure_drops_what_follows() {
        let (mut held, mut out) = (Held::default(), Vec::new());
        held.wait_for(Ticket(1));
        held.wait_for(Ticket(2));
        held.bytes().extend_from_slice(b"after ");
        held.wait_for(Ticket(3));
        held.bytes().extend_from_slice(b"last");
        held.fill(Ticket(2), b"two ");
        held.fill(Ticket(1), b"one ");
        assert!(!held.durable(Ticket(1), &mut out));
        assert_eq!(out, b"one ");
        assert!(!held.durable(Ticket(2), &mut out));
        assert_eq!(out, b"one two after ");
        assert!(held.cut(Ticket(3)));
        assert!(held.bytes().is_empty());
    }
}
