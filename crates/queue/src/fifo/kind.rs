//! The classic queue as one kind among others.

use super::lanes::lane_of;
use super::{Classic, Ends, Glance, LocalRecord, Losses, Record};
use crate::store::{self, LogPlace, Place, Search, Stored, Whereabouts};
use crate::{HandOver, Inspect, OwnConsumer, QueueMachine};
use model::{Block, Incarnation, Index, QueueSettings, Ranges, Seq};
use std::sync::Arc;

impl<E: Ends> Inspect for Classic<E> {
    fn losses(&self) -> Losses {
        Self::losses(self)
    }

    fn lost(&self) -> u64 {
        Self::lost(self)
    }

    fn is_sorted(&self) -> bool {
        Self::is_sorted(self)
    }

    fn head_timestamp(&self) -> Option<u64> {
        Self::head_timestamp(self)
    }

    fn look(&self, from: Option<Seq>, skip: u64, count: u64) -> Glance {
        Self::look(self, from, skip, count)
    }

    fn back(&self, before: Option<Seq>, count: u64) -> Option<Seq> {
        Self::back(self, before, count)
    }

    fn senders(&self) -> Vec<Incarnation> {
        Self::senders(self)
    }

    fn bounds(&self) -> Option<(Seq, Seq)> {
        Self::bounds(self)
    }
}

impl<E: Ends> QueueMachine<E> for Classic<E> {
    type Local = LocalRecord;

    fn new(settings: QueueSettings) -> Self {
        Self::new(settings)
    }

    fn replay(&mut self) {
        Self::replay(self);
    }

    fn brings(record: &Record) -> Option<(Seq, &Arc<Block>)> {
        match record {
            Record::Enqueued { first, block, .. } => Some((*first, block)),
            _ => None,
        }
    }

    #[inline]
    fn appended(&mut self, first: Seq, at: LogPlace) {
        Self::appended(self, first, at);
    }

    fn checkpoint(&self, next: Index) -> (LocalRecord, Option<LogPlace>) {
        let checkpoint = Self::checkpoint(self, next);
        let needed = checkpoint.first_in_log();
        (LocalRecord::Checkpoint(checkpoint), needed)
    }

    fn complete(checkpoint: &mut LocalRecord, next: Index, placed: &[(Seq, LogPlace)]) -> Option<LogPlace> {
        let LocalRecord::Checkpoint(checkpoint) = checkpoint else {
            return None;
        };
        checkpoint.next = next;
        let tables = checkpoint.lanes.iter_mut().map(|(_, table)| table);
        tables.for_each(|table| table.complete(placed));
        checkpoint.first_in_log()
    }

    fn hand_over(&self, next: Index) -> HandOver<LocalRecord> {
        Self::hand_over(self, next).map(LocalRecord::Checkpoint)
    }

    fn own_consumers(&self) -> Vec<OwnConsumer<E>> {
        self.consumers.ring.own().collect()
    }

    fn taken_over(&mut self) {
        Self::taken_over(self);
    }

    fn apply_local(&mut self, record: LocalRecord) -> Option<Index> {
        let next = match &record {
            LocalRecord::Checkpoint(checkpoint) => Some(checkpoint.next),
            LocalRecord::Store(_) => None,
        };
        Self::apply_local(self, record);
        next
    }

    fn places(&self) -> Vec<Place> {
        Self::places(self).collect()
    }

    fn stored(&self) -> Vec<Stored> {
        self.lanes
            .iter()
            .flat_map(|lane| lane.store.in_segments())
            .collect()
    }

    fn find(&self, seqs: &Ranges, most: u64) -> Whereabouts {
        let mut search = Search::default();
        for (first, last) in seqs.spans() {
            let whole = match self.lanes.get(lane_of(first)) {
                Some(lane) => lane.store.find_bytes((first, last), most, &mut search),
                None => search.gone(first, last),
            };
            if !whole {
                break;
            }
        }
        search.finish()
    }

    fn unreadable(&self) -> Ranges {
        let mut seqs = Ranges::new();
        self.lanes
            .iter()
            .for_each(|lane| lane.store.unreadable(&mut seqs));
        seqs
    }

    fn without_places(record: LocalRecord) -> Option<LocalRecord> {
        match record {
            LocalRecord::Checkpoint(checkpoint) => Some(LocalRecord::Checkpoint(checkpoint.without_places())),
            LocalRecord::Store(_) => None,
        }
    }
}

impl From<store::Record> for LocalRecord {
    fn from(record: store::Record) -> Self {
        Self::Store(record)
    }
}
