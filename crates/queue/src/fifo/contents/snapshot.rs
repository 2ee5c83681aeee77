//! Contents as one value, and back.

use super::{Contents, push_span, push_time};
use crate::fifo::record::{Expiry, Snapshot};
use crate::store::Store;
use model::Seq;

impl Contents {
    /// Everything that the journal knows of.
    pub(crate) fn snapshot(&self, store: &Store) -> Snapshot {
        let journaled = |seq: &Seq| store.is_journaled(*seq);
        let mut snapshot = Snapshot {
            next: store.next(),
            settled_high: self.settled_high,
            live: store.journaled(),
            ..Snapshot::default()
        };
        for Expiry { first, last, at_ms } in self.expiries.list() {
            store.live_spans(first, last, |run, from, to| {
                if run.journaled {
                    push_span(&mut snapshot.expiries, from, to, at_ms);
                }
            });
        }
        for (seq, at_ms) in self.retries.list().filter(|(seq, _)| journaled(seq)) {
            push_time(&mut snapshot.retries, seq, at_ms);
        }
        let known = self.keys.list().filter(|(seq, _)| journaled(seq));
        snapshot.keys.extend(known);
        snapshot.keys.sort_unstable();
        snapshot
            .returned
            .extend(self.marks().filter(|(seq, _)| journaled(seq)));
        let given_back = self.given_back.iter().map(|(seq, times)| (*seq, *times));
        snapshot
            .given_back
            .extend(given_back.filter(|(seq, _)| journaled(seq)));
        snapshot
    }

    /// Becomes what the snapshot says of the messages that are here; what was known before is forgotten.
    pub(crate) fn restore(&mut self, store: &Store, snapshot: Snapshot) {
        *self = Self {
            settled_high: snapshot.settled_high,
            ..Self::default()
        };
        self.expire_at(store, &snapshot.expiries);
        for (seq, times) in snapshot.returned {
            if store.lives(seq) {
                self.marks.insert(seq, times);
            }
        }
        for (seq, times) in snapshot.given_back {
            if store.lives(seq) {
                self.given_back.insert(seq, times);
            }
        }
        self.retry_at(store, &snapshot.retries);
        for (seq, key) in snapshot.keys {
            self.keys.insert(key, seq);
        }
    }
}
