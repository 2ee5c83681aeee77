//! The queue machine's journal: none, or this node's log.

use crate::node::ends::Ends;
use crate::node::journal::{Journal, Journaled, LocalJournal};
use crate::node::promise::Promise;
use model::QueueId;
use queue::Effect;
use queue::fifo::{Classic, LocalRecord, Record};
use queue::store::{self, LogPlace};
use storage::Position;

/// Where a queue's records go.
pub enum QueueJournal {
    /// Nowhere: the queue is not durable, and its machine records nothing.
    None,
    /// To this node's log.
    Local(LocalJournal),
}

impl Journal<Classic<Ends>> for QueueJournal {
    fn append(
        &mut self,
        machine: &mut Classic<Ends>,
        records: &mut Vec<Record>,
        promises: &mut Vec<Effect<Ends>>,
    ) {
        let Self::Local(journal) = self else {
            records.clear();
            return;
        };
        let queue = QueueId(journal.id().number);
        let local = promises.extract_if(.., |effect| {
            matches!(
                effect,
                Effect::Store(store::Effect::Remember(_) | store::Effect::Checkpoint)
            )
        });
        let local: Vec<Effect<Ends>> = local.collect();
        if !records.is_empty() || !local.is_empty() {
            let waiting = promises.extract_if(.., |effect| Promise::is_one(effect));
            let waiting = waiting.filter_map(|effect| Promise::of(queue, effect));
            journal.append(waiting, |batch| {
                for record in records.drain(..) {
                    let at = batch.record(&record);
                    if let Record::Enqueued { first, .. } = record {
                        machine.appended(first, LogPlace(at.0));
                    }
                }
                for effect in &local {
                    if let Effect::Store(store::Effect::Remember(record)) = effect {
                        batch.local(&LocalRecord::Store(record.clone()));
                    }
                }
            });
        }
        let checkpoint = |effect: &Effect<Ends>| matches!(effect, Effect::Store(store::Effect::Checkpoint));
        if local.iter().any(checkpoint) {
            write_checkpoint(journal, machine);
        }
    }
}

/// Writes down everything that is there, so that the log may forget what is older.
fn write_checkpoint(journal: &mut LocalJournal, machine: &Classic<Ends>) {
    let checkpoint = machine.checkpoint(journal.next_index());
    let needed = checkpoint.first_in_log();
    let record = LocalRecord::Checkpoint(checkpoint);
    journal.append(std::iter::empty(), |batch| {
        let own = batch.local(&record);
        batch.release(needed.map_or(own, |place| Position(place.0)));
    });
}

impl Journaled for Record {
    fn encode(&self, out: &mut Vec<u8>) {
        Record::encode(self, out);
    }
}

impl Journaled for LocalRecord {
    fn encode(&self, out: &mut Vec<u8>) {
        LocalRecord::encode(self, out);
    }
}
