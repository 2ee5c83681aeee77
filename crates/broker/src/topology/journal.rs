//! The catalog's journal, and the tickets of those who wait for it.

use super::Asker;
use super::happenings::Watch;
use crate::clients::outbox::Ticket;
use crate::node::Node;
use crate::node::journal::{Journal, LocalJournal};
use crate::node::promise::Promise;
use catalog::{Catalog, Effect, Record};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use storage::Position;

/// The catalog's journal: this node's log.
pub struct CatalogJournal {
    journal: LocalJournal,
    node: Arc<Node>,
    /// Who asks in the turn under way.
    asker: Option<Asker>,
    /// What the reply to that waits for.
    ticket: Option<Ticket>,
    /// What the turn under way has to tell, if anybody listens.
    pub watch: Option<Watch>,
    /// How many batches are not durable yet.
    unsynced: Arc<AtomicUsize>,
    /// Where the snapshot that is being written started.
    snapshot: Option<Position>,
}

impl CatalogJournal {
    /// On a journal that was made new or replayed.
    pub fn new(journal: LocalJournal, node: Arc<Node>) -> Self {
        Self {
            journal,
            node,
            asker: None,
            ticket: None,
            watch: None,
            unsynced: Arc::default(),
            snapshot: None,
        }
    }

    /// A turn begins in which this one asks.
    pub fn begin(&mut self, asker: Option<Asker>, watch: Option<Watch>) {
        self.asker = asker;
        self.ticket = None;
        self.watch = watch;
    }

    /// The turn ends: what its reply waits for, and what it has to tell.
    pub fn end(&mut self) -> (Option<Ticket>, Option<Watch>) {
        self.wait_for_earlier();
        self.asker = None;
        (self.ticket.take(), self.watch.take())
    }

    /// A request that changed nothing found what it asked for; if somebody's change is not durable yet, this may be what it
    /// found, and its reply waits as well.
    fn wait_for_earlier(&mut self) {
        if self.unsynced.load(Ordering::Acquire) == 0 {
            return;
        }
        if let Some(promise) = self.take_ticket() {
            self.node.log.promise(promise);
        }
    }

    /// A ticket for whoever asks and has none yet, and the promise that makes it good.
    fn take_ticket(&mut self) -> Option<Promise> {
        let Asker { outbox, channel, .. } = self.asker.take()?;
        let ticket = Ticket(self.node.number());
        self.ticket = Some(ticket);
        Some(Promise::Durable {
            outbox,
            channel,
            ticket,
        })
    }
}

impl Journal<Catalog<u64>> for CatalogJournal {
    /// Journals all records: what is not durable ends with a run of a node or a connection, and other nodes know it
    /// too. Replies are not kept back: the caller has the answer at once and, if anything durable has changed, a ticket
    /// for when it may be told to the client.
    fn append(&mut self, _: &mut Catalog<u64>, records: &mut Vec<Record>, _promises: &mut Vec<Effect<u64>>) {
        if let Some(watch) = &mut self.watch {
            records.iter().for_each(|record| watch.record(record));
        }
        let mut promises = Vec::new();
        if records.iter().any(Record::is_durable) {
            self.unsynced.fetch_add(1, Ordering::AcqRel);
            promises.push(Promise::Synced(self.unsynced.clone()));
            promises.extend(self.take_ticket());
        }
        let snapshot = &mut self.snapshot;
        self.journal.append(promises.into_iter(), |batch| {
            let mut release = None;
            for record in records.drain(..) {
                let at = batch.record(&record);
                match record {
                    Record::SnapshotStarted => *snapshot = Some(at),
                    Record::SnapshotFinished => release = snapshot.take(),
                    _ => {}
                }
            }
            if let Some(before) = release {
                batch.release(before);
            }
        });
    }
}
