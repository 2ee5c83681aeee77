//! What streams have for a connection: confirms, answers, news. Filled from any thread, emptied by the connection's turn.

use super::streams::{Answer, PublisherNumber, Question, ReaderNumber, Refused};
use broker::Outbox;
use std::sync::{Arc, Mutex, PoisonError};

/// Something for a connection to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The answer to a question.
    Answer {
        /// Which one.
        question: Question,
        /// What came of it.
        answer: Result<Answer, Refused>,
    },
    /// These messages are safe.
    Confirmed {
        /// Whose.
        publisher: PublisherNumber,
        /// The publisher's numbers for them.
        ids: Vec<u64>,
    },
    /// These messages were not taken, and never will be.
    Rejected {
        /// Whose.
        publisher: PublisherNumber,
        /// The publisher's numbers for them.
        ids: Vec<u64>,
        /// Why.
        why: Refused,
    },
    /// It is worth asking the reader again.
    Readable(ReaderNumber),
    /// A stream is deleted, or led by another node from now on: its publishers here have ended, and with them its readers, since
    /// clients take whatever they have of it for ended. What is unconfirmed may be there or not; nobody confirms it.
    Gone {
        /// Which one.
        stream: Arc<str>,
    },
    /// One of the single active consumers is the active one from now on, or is not any more.
    Active {
        /// Which one.
        reader: ReaderNumber,
        /// Whether it is.
        active: bool,
    },
}

/// Where it is put. Bounded by what the connection has asked for and published.
#[derive(Debug)]
pub struct Inbox {
    told: Mutex<Vec<Told>>,
    outbox: Arc<Outbox>,
}

impl Inbox {
    /// An empty one of the connection with this outbox, whose waker it shares.
    pub fn new(outbox: Arc<Outbox>) -> Self {
        let told = Mutex::default();
        Self { told, outbox }
    }

    /// Puts something in, and wakes the connection. Confirms of one publisher become one.
    pub fn tell(&self, told: Told) {
        self.put(told);
        self.outbox.wake();
    }

    /// Has the connection take another turn.
    pub fn wake(&self) {
        self.outbox.wake();
    }

    /// Puts something in for a turn that is under way. Confirms of one publisher become one.
    pub fn put(&self, told: Told) {
        let mut all = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match (&told, all.last_mut()) {
            (
                Told::Confirmed { publisher, ids },
                Some(Told::Confirmed {
                    publisher: last,
                    ids: earlier,
                }),
            ) if publisher == last => earlier.extend_from_slice(ids),
            (Told::Readable(reader), Some(Told::Readable(last))) if reader == last => {}
            _ => all.push(told),
        }
    }

    /// Takes everything, into what should be empty; its memory is used again.
    pub fn take(&self, into: &mut Vec<Told>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *told, into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confirms_of_one_publisher_flow_together_and_news_keep_their_order() {
        let inbox = Inbox::new(Arc::default());
        let confirmed = |number, ids: &[u64]| Told::Confirmed {
            publisher: PublisherNumber(number),
            ids: ids.to_vec(),
        };
        for told in [
            confirmed(1, &[1]),
            confirmed(1, &[3, 2]),
            confirmed(2, &[4]),
            Told::Readable(ReaderNumber(1)),
            Told::Readable(ReaderNumber(1)),
            confirmed(1, &[5]),
        ] {
            inbox.tell(told);
        }
        let mut told = Vec::new();
        inbox.take(&mut told);
        let expected = [
            confirmed(1, &[1, 3, 2]),
            confirmed(2, &[4]),
            Told::Readable(ReaderNumber(1)),
            confirmed(1, &[5]),
        ];
        assert_eq!(told, expected);
        told.clear();
        inbox.take(&mut told);
        assert!(told.is_empty());
    }
}
