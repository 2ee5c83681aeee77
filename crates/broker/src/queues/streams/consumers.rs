//! Those who take messages from a stream: what is read for each, and how far that has come.

use super::log::{Loaded, StreamLog, parts};
use super::messages;
use crate::node::ends::{Ends, Outlet};
use bytes::Bytes;
use model::ConsumerId;
use model::chunk::Matcher;
use queue::{ConsumerSettings, Effect, Subscriber};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use storage::StreamCursor;

/// Those who take messages from a stream.
#[derive(Default)]
pub struct Consumers {
    all: BTreeMap<ConsumerId, Consumer>,
}

struct Consumer {
    subscriber: Subscriber<Ends>,
    filter: Option<Matcher>,
    /// It takes no message below.
    from: u64,
    /// What is to be read next.
    next: u64,
    /// As far as the machine said; nothing is to be read, if it did not.
    below: Option<u64>,
    /// A chunk that is being taken apart, and the offset from which on it was not.
    open: Option<(Bytes, u64)>,
    /// Chunks that were read and not taken apart yet.
    chunks: VecDeque<Bytes>,
    cursor: Option<StreamCursor>,
    is_loading: bool,
}

impl Consumers {
    /// What they hold unacknowledged.
    pub fn unacked(&self) -> u64 {
        self.all.values().map(|it| it.subscriber.unacked()).sum()
    }

    /// True if it is one of these.
    pub fn has(&self, consumer: ConsumerId) -> bool {
        self.all.contains_key(&consumer)
    }

    /// Adds one that reads from an offset on, and takes no message below another one.
    pub fn add(
        &mut self,
        consumer: ConsumerId,
        outlet: Outlet,
        settings: ConsumerSettings,
        (at, from): (u64, u64),
        filter: Option<Matcher>,
    ) {
        self.all.insert(
            consumer,
            Consumer {
                subscriber: Subscriber::new(outlet, settings),
                filter,
                from,
                next: at,
                below: None,
                open: None,
                chunks: VecDeque::new(),
                cursor: None,
                is_loading: false,
            },
        );
    }

    /// One less; false if there is none of this name.
    pub fn remove(&mut self, consumer: ConsumerId) -> bool {
        self.all.remove(&consumer).is_some()
    }

    /// Something else is so of one of them.
    pub fn change(&mut self, consumer: ConsumerId, change: impl FnOnce(&mut Subscriber<Ends>)) {
        if let Some(it) = self.all.get_mut(&consumer) {
            change(&mut it.subscriber);
        }
    }

    /// The machine says that it may read so far.
    pub fn may_read(&mut self, consumer: ConsumerId, from: u64, below: u64) {
        if let Some(it) = self.all.get_mut(&consumer) {
            it.next = it.next.max(from);
            it.below = Some(below);
        }
    }

    /// This was read for one of them of files that end before `end`. If it could not be read, returns where its deliveries
    /// went: it ends.
    pub fn loaded(&mut self, loaded: Loaded, end: u64) -> Option<Outlet> {
        let it = self.all.get_mut(&loaded.consumer)?;
        it.is_loading = false;
        it.cursor = loaded.cursor;
        let Some(chunks) = loaded.chunks else {
            return Some(it.subscriber.outlet().clone());
        };
        if chunks.is_empty() {
            // What is below was dropped meanwhile: it goes on where there is something again.
            it.next = it.next.max(it.below.map_or(0, |below| below.min(end)));
            it.cursor = None;
        }
        it.chunks.extend(chunks);
        None
    }

    /// Delivers to one what it may have, and has read what it then wants. Returns where it stands if it has all that the machine
    /// let it read.
    pub fn go_on(
        &mut self,
        id: ConsumerId,
        log: &Arc<StreamLog>,
        stream: &str,
        effects: &mut Vec<Effect<Ends>>,
    ) -> Option<u64> {
        let it = self.all.get_mut(&id)?;
        loop {
            it.subscriber.deliver(id, effects);
            if !it.subscriber.wants() {
                return None;
            }
            if it.take_more(stream) {
                continue;
            }
            if let Some(chunk) = it.chunks.pop_front() {
                it.take(chunk, stream);
                continue;
            }
            // What a full disk has taken back comes again.
            let below = it.below?;
            if it.next < below && it.next >= log.committed() {
                return None;
            }
            if it.next >= below {
                it.below = None;
                // A file that is dropped is not held open for somebody who needs nothing of it.
                it.cursor = None;
                return Some(it.next);
            }
            if let Some(chunk) = log.newest(it.next) {
                it.take(chunk, stream);
                continue;
            }
            if !std::mem::replace(&mut it.is_loading, true) {
                log.load(id, it.cursor.take(), it.next, below.min(log.committed()));
            }
            return None;
        }
    }

    /// Those who are there.
    pub fn ids(&self) -> Vec<ConsumerId> {
        self.all.keys().copied().collect()
    }
}

impl Consumer {
    /// Takes a chunk apart, if it may have something that is wanted.
    fn take(&mut self, bytes: Bytes, stream: &str) {
        let Some((header, filter, _)) = parts(&bytes) else {
            return;
        };
        if header.next_offset() <= self.next {
            return;
        }
        self.next = header.next_offset();
        let passes = |filter_of: &Matcher| filter_of.passes(&bytes[filter.clone()]);
        if self.filter.as_ref().is_none_or(passes) {
            self.open = Some((bytes, self.from));
            self.take_more(stream);
        }
    }

    /// Takes some more out of the chunk that was begun; false if there is none.
    fn take_more(&mut self, stream: &str) -> bool {
        let Some((bytes, from)) = self.open.take() else {
            return false;
        };
        let (block, rest) = messages::some(&bytes, from, stream);
        self.subscriber.put(block);
        self.open = rest.map(|from| (bytes, from));
        true
    }
}
