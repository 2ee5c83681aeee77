//! Who reads, from where, and how many chunks it may be sent.

use super::Effect;
use crate::ends::Ends;
use model::ConsumerId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Where a reader begins. Times are resolved by the host, who has the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// With the first message that is there.
    First,
    /// With the last chunk.
    Last,
    /// With what comes next.
    Next,
    /// With the chunk that has this offset, or as near to it as there is something.
    Offset(u64),
}

/// Where those stand that read nothing: behind everything, so they hold up nothing either.
const NOWHERE: u64 = u64::MAX;

struct Reader<O> {
    outlet: O,
    /// The next offset that it is to be sent.
    position: u64,
    credit: u32,
    /// It was ordered to be sent something, and that has not been answered.
    is_read_for: bool,
}

pub(super) struct Readers<E: Ends> {
    readers: BTreeMap<ConsumerId, Reader<E::Outlet>>,
    /// Those who may be sent something and have all that is there.
    idle: BTreeSet<ConsumerId>,
    /// Everything below may be read.
    committed: u64,
    /// The offset at which the last committed chunk of messages begins, if there is one since the start.
    last_chunk: Option<u64>,
    /// Chunks of messages that are not committed: where each begins and ends.
    uncommitted: VecDeque<(u64, u64)>,
}

impl<E: Ends> Default for Readers<E> {
    fn default() -> Self {
        Self {
            readers: BTreeMap::new(),
            idle: BTreeSet::new(),
            committed: 0,
            last_chunk: None,
            uncommitted: VecDeque::new(),
        }
    }
}

impl<E: Ends> Readers<E> {
    pub(super) fn len(&self) -> usize {
        self.readers.values().filter(|it| it.position != NOWHERE).count()
    }

    /// Adds one that reads nothing.
    pub(super) fn watch(&mut self, reader: ConsumerId, outlet: E::Outlet) {
        self.attach(reader, outlet, NOWHERE, 0);
    }

    pub(super) fn committed(&self) -> u64 {
        self.committed
    }

    pub(super) fn last_chunk(&self) -> u64 {
        self.last_chunk.unwrap_or(self.committed)
    }

    /// A chunk of messages is on record.
    pub(super) fn wrote(&mut self, first: u64, next: u64) {
        self.uncommitted.push_back((first, next));
    }

    /// Everything below this offset may be read now, whatever was said before; it never falls.
    pub(super) fn commit(&mut self, below: u64, effects: &mut Vec<Effect<E>>) {
        if below <= self.committed {
            return;
        }
        self.committed = below;
        while let Some((first, _)) = self.uncommitted.pop_front_if(|(_, next)| *next <= below) {
            self.last_chunk = Some(first);
        }
        for reader in std::mem::take(&mut self.idle) {
            self.go_on(reader, effects);
        }
    }

    pub(super) fn attach(&mut self, reader: ConsumerId, outlet: E::Outlet, position: u64, credit: u32) {
        self.idle.remove(&reader);
        self.readers.insert(
            reader,
            Reader {
                outlet,
                position,
                credit,
                is_read_for: false,
            },
        );
    }

    pub(super) fn detach(&mut self, reader: ConsumerId) {
        self.idle.remove(&reader);
        self.readers.remove(&reader);
    }

    pub(super) fn credit(&mut self, reader: ConsumerId, chunks: u32) {
        if let Some(reader) = self.readers.get_mut(&reader) {
            reader.credit = reader.credit.saturating_add(chunks);
        }
    }

    pub(super) fn sent(&mut self, reader: ConsumerId, next: u64, chunks: u32) {
        if let Some(reader) = self.readers.get_mut(&reader) {
            reader.is_read_for = false;
            reader.position = reader.position.max(next);
            reader.credit = reader.credit.saturating_sub(chunks);
        }
    }

    /// Orders that the reader is sent what it may have, if there is something.
    pub(super) fn go_on(&mut self, id: ConsumerId, effects: &mut Vec<Effect<E>>) {
        let Some(reader) = self.readers.get_mut(&id) else {
            return;
        };
        if reader.is_read_for || reader.credit == 0 {
            self.idle.remove(&id);
        } else if reader.position >= self.committed {
            self.idle.insert(id);
        } else {
            reader.is_read_for = true;
            self.idle.remove(&id);
            effects.push(Effect::Read {
                reader: id,
                outlet: reader.outlet.clone(),
                from: reader.position,
                below: self.committed,
                chunks: reader.credit,
            });
        }
    }

    /// The offset of whoever is furthest behind.
    pub(super) fn lowest(&self) -> Option<u64> {
        self.readers.values().map(|reader| reader.position).min()
    }

    /// All are told that the stream is gone.
    pub(super) fn end(&mut self, effects: &mut Vec<Effect<E>>) {
        self.idle.clear();
        let readers = std::mem::take(&mut self.readers);
        effects.extend(readers.into_iter().map(|(reader, it)| Effect::Gone {
            reader,
            outlet: it.outlet,
        }));
    }
}
