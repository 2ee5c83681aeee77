//! The queue machine's journal: none, or this node's log.

use crate::ends::Ends;
use crate::journal::{Journal, Journaled, LocalJournal};
use crate::promise::Promise;
use model::QueueId;
use queue::fifo::{Classic, Effect, Record};

/// Where a queue's records go.
pub enum QueueJournal {
    /// Nowhere: the queue is not durable, and its machine records nothing.
    None,
    /// To this node's log.
    Local(LocalJournal),
}

impl Journal<Classic<Ends>> for QueueJournal {
    fn append(&mut self, records: &mut Vec<Record>, promises: &mut Vec<Effect<Ends>>) {
        let Self::Local(journal) = self else {
            records.clear();
            return;
        };
        let queue = QueueId(journal.id().0);
        let mut release = None;
        promises.retain(|effect| match effect {
            Effect::Forget { before } => {
                release = Some(*before);
                false
            }
            _ => true,
        });
        let waiting = promises.extract_if(.., |effect| Promise::is_one(effect));
        journal.append(
            records.drain(..),
            waiting.filter_map(|effect| Promise::of(queue, effect)),
        );
        if let Some(before) = release {
            journal.release(before);
        }
    }
}

impl Journaled for Record {
    fn encode(&self, out: &mut Vec<u8>) {
        Record::encode(self, out);
    }

    /// Bodies are read again; a snapshot's place must be known to cut the log there.
    fn place_is_kept(&self) -> bool {
        matches!(self, Record::Enqueued { .. } | Record::Snapshot(_))
    }
}
