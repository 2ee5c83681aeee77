//! Publishers and consumers of the stream protocol, as operators see them. They have no channels: a connection has up to 256 of
//! each.

use super::Count;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a connection of the stream protocol has open.
#[derive(Debug, Default)]
pub(super) struct StreamClients {
    pub publishers: List<StreamPublisher>,
    pub consumers: List<StreamConsumer>,
}

/// A publisher of the stream protocol.
#[derive(Debug)]
pub struct StreamPublisher {
    /// The client's number for it; unique within its connection.
    pub id: u8,
    /// The stream's name.
    pub stream: Arc<str>,
    /// Its name for itself, by which its messages are recognised; empty if it has none.
    pub reference: Box<[u8]>,
    /// How many messages and sub-batches it has published.
    pub published: Count,
    /// How many of them were confirmed.
    pub confirmed: Count,
    /// How many of them were refused.
    pub errored: Count,
}

impl StreamPublisher {
    /// One that has published nothing.
    pub fn new(id: u8, stream: Arc<str>, reference: &[u8]) -> Self {
        Self {
            id,
            stream,
            reference: reference.into(),
            published: Count::default(),
            confirmed: Count::default(),
            errored: Count::default(),
        }
    }
}

/// A consumer of the stream protocol.
#[derive(Debug)]
pub struct StreamConsumer {
    /// The client's number for it; unique within its connection.
    pub id: u8,
    /// The stream's name.
    pub stream: Arc<str>,
    /// What the client has said of it, as far as that is not too long to be kept.
    pub properties: Box<[(String, String)]>,
    /// The group of which it is one, if those take turns (`single-active-consumer`).
    pub group: Option<StreamGroup>,
    /// How many chunks it may be sent.
    pub credits: Count,
    /// How many messages it was sent.
    pub consumed: Count,
    /// One more than the next offset that it is sent or passed over for it; 0 if it reads nothing.
    next: Count,
    active: AtomicBool,
}

/// A group of consumers of one stream of which one at a time is active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamGroup {
    /// Its name, which all of them have.
    pub name: String,
    /// The place of the stream among those of the super stream that they read, if they read one.
    pub partition: Option<u32>,
}

impl StreamConsumer {
    /// One that reads nothing yet, and is the active one unless it has a group.
    pub fn new(
        id: u8,
        stream: Arc<str>,
        properties: Vec<(String, String)>,
        group: Option<StreamGroup>,
    ) -> Self {
        Self {
            id,
            stream,
            properties: properties.into(),
            active: AtomicBool::new(group.is_none()),
            group,
            credits: Count::default(),
            consumed: Count::default(),
            next: Count::default(),
        }
    }

    /// The next offset that it is sent or passed over for it; `None` if it reads nothing.
    pub fn next(&self) -> Option<u64> {
        self.next.get().checked_sub(1)
    }

    /// It goes on with this offset, or reads nothing.
    pub fn set_next(&self, offset: Option<u64>) {
        self.next.set(offset.map_or(0, |offset| offset.saturating_add(1)));
    }

    /// Whether it is the active one of its group; always, without one.
    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    /// It is from now on, or is not.
    pub fn set_active(&self, active: bool) {
        self.active.store(active, Ordering::Relaxed);
    }
}

/// Those that a connection has, in the order in which they came.
#[derive(Debug)]
pub(super) struct List<T>(Arc<Mutex<Vec<Arc<T>>>>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> List<T> {
    pub fn all(&self) -> Vec<Arc<T>> {
        lock(&self.0).clone()
    }

    pub fn enter(&self, entry: T) -> Entered<T> {
        let entry = Arc::new(entry);
        lock(&self.0).push(entry.clone());
        let list = self.0.clone();
        Entered { list, entry }
    }
}

/// A place among those that operators see; it is free again when this is dropped.
#[derive(Debug)]
pub struct Entered<T> {
    list: Arc<Mutex<Vec<Arc<T>>>>,
    entry: Arc<T>,
}

impl<T> Deref for Entered<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.entry
    }
}

impl<T> Drop for Entered<T> {
    fn drop(&mut self) {
        lock(&self.list).retain(|known| !Arc::ptr_eq(known, &self.entry));
    }
}

fn lock<T>(list: &Mutex<Vec<Arc<T>>>) -> MutexGuard<'_, Vec<Arc<T>>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_seen_until_it_is_dropped() {
        let list = List::default();
        let (one, two) = (list.enter(1), list.enter(2));
        assert_eq!(*list.all()[0], 1);
        drop(one);
        assert_eq!(list.all().iter().map(|entry| **entry).collect::<Vec<_>>(), [2]);
        drop(two);
        assert!(list.all().is_empty());
    }

    #[test]
    fn offset_zero_is_not_the_same_as_reading_nothing() {
        let consumer = StreamConsumer::new(1, "s".into(), Vec::new(), None);
        assert_eq!((consumer.next(), consumer.is_active()), (None, true));
        consumer.set_next(Some(0));
        assert_eq!(consumer.next(), Some(0));
        consumer.set_next(None);
        assert_eq!(consumer.next(), None);
    }
}
