//! The journal of a queue's machine: none, or this node's log.

use crate::node::ends::Ends;
use crate::node::journal::{Journal, LocalJournal};
use crate::node::promise::Promise;
use queue::store::{self, LogPlace};
use queue::{Effect, QueueMachine};
use storage::Position;

/// Where a queue's records go.
pub enum QueueJournal {
    /// Nowhere: the queue is not durable, and its machine records nothing.
    None,
    /// To this node's log.
    Local(LocalJournal),
}

impl<M: QueueMachine<Ends>> Journal<M> for QueueJournal {
    fn append(&mut self, machine: &mut M, records: &mut Vec<M::Record>, promises: &mut Vec<Effect<Ends>>) {
        let Self::Local(journal) = self else {
            records.clear();
            return;
        };
        let segments = journal.segments();
        let local = promises.extract_if(.., |effect| {
            matches!(
                effect,
                Effect::Store(store::Effect::Remember(_) | store::Effect::Checkpoint)
            )
        });
        let local: Vec<Effect<Ends>> = local.collect();
        let recalls = || promises.iter().any(|effect| matches!(effect, Effect::Reply(..)));
        if !records.is_empty() || !local.is_empty() || recalls() {
            let waiting = promises.extract_if(.., |effect| Promise::is_one(effect));
            let waiting = waiting.filter_map(|effect| Promise::of(segments, effect));
            journal.append(waiting, |batch| {
                for record in records.drain(..) {
                    let at = batch.record(&record);
                    if let Some((first, _)) = M::brings(&record) {
                        machine.appended(first, LogPlace(at.0));
                    }
                }
                for effect in &local {
                    if let Effect::Store(store::Effect::Remember(record)) = effect {
                        batch.local(&M::Local::from(record.clone()));
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
fn write_checkpoint<M: QueueMachine<Ends>>(journal: &mut LocalJournal, machine: &M) {
    let (checkpoint, needed) = machine.checkpoint(journal.next_index());
    journal.append(std::iter::empty(), |batch| {
        let own = batch.checkpoint(&checkpoint);
        batch.release(needed.map_or(own, |place| Position(place.0)));
    });
}
