//! What waits until a journal has come far enough, and what becomes of it then: confirms first of all. One sync covers everyone
//! who waited for it, and every connection is woken once.

use crate::clients::outbox::{ChannelId, Event, Outbox, Ticket, Woken};
use crate::clients::pressure::Release;
use crate::node::closed::Closed;
use crate::node::ends::{Receipt, Reply};
use queue::store::{self, Place};
use queue::{Answer, Effect};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use storage::JournalId;

/// An effect that waits for durability.
#[derive(Debug)]
pub enum Promise {
    /// A queue has taken responsibility for these publishes.
    Confirm(Receipt),
    /// A node may hear what of its messages is on record.
    Recalled(Box<(Reply, Answer)>),
    /// A declaration's reply may go out.
    Durable {
        outbox: Arc<Outbox>,
        channel: ChannelId,
        ticket: Ticket,
    },
    /// Nothing in these segment entries is needed any more.
    Release {
        owner: JournalId,
        places: Vec<Place>,
        /// The member of a group that has them, if one does: once it is closed its segments are gone, and another member's may
        /// bear their name.
        member: Option<Closed>,
    },
    /// The queue is gone for good, and so may be its segments: if its deletion were lost, it would be there again without them.
    Deleted { segments: JournalId },
    /// One batch fewer is not durable yet.
    Synced(Arc<AtomicUsize>),
    /// Publishers who waited for the log to catch up may go on.
    Resume(Arc<Release>),
    /// The batch of this number is durable, and those before it.
    Batch(Arc<dyn Batches>, u64),
}

/// Who numbers its batches of the log, and is told of the last one that is durable.
pub trait Batches: std::fmt::Debug + Send + Sync {
    /// This batch is durable, and all before it. Called on the log's thread.
    fn synced(self: Arc<Self>, number: u64);
}

impl Promise {
    /// Whether an effect of a queue waits for the journal; [`Promise::of`] makes a promise of it.
    pub fn is_one(effect: &Effect<crate::node::ends::Ends>) -> bool {
        matches!(
            effect,
            Effect::Confirm(_) | Effect::Reply(..) | Effect::Store(store::Effect::Release { .. })
        )
    }

    /// The promise that an effect of a queue with these segments is; `None` if it is none.
    pub fn of(segments: JournalId, effect: Effect<crate::node::ends::Ends>) -> Option<Self> {
        match effect {
            Effect::Confirm(receipt) => Some(Self::Confirm(receipt)),
            Effect::Reply(reply, answer) => Some(Self::Recalled(Box::new((reply, answer)))),
            Effect::Store(store::Effect::Release { places }) => Some(Self::Release {
                owner: segments,
                places,
                member: None,
            }),
            _ => None,
        }
    }

    /// Keeps the promise, as far as that can be done at once. `now` is the time in microseconds.
    #[inline]
    pub fn keep(self, kept: &mut Kept, now: impl FnOnce() -> u64) {
        match self {
            Self::Confirm(receipt) => {
                receipt.note_confirmed(now);
                kept.confirmed += receipt.numbers.count();
                let (outbox, event) = receipt.into_confirm();
                kept.woken.push(outbox, event);
            }
            Self::Recalled(answered) => {
                let (reply, answer) = *answered;
                let event = reply.answered(Some(answer));
                kept.woken.push(reply.outbox, event);
            }
            Self::Durable {
                outbox,
                channel,
                ticket,
            } => {
                kept.woken.push(outbox, Event::Durable { channel, ticket });
            }
            // Deleting files takes too long for whoever keeps promises.
            Self::Release {
                owner,
                places,
                member,
            } => kept.freed.push((owner, places, member)),
            Self::Deleted { segments } => kept.deleted.push(segments),
            Self::Synced(unsynced) => {
                unsynced.fetch_sub(1, Ordering::AcqRel);
            }
            Self::Resume(release) => release.release(),
            // Who is told turns what waits for it, and appends: not while promises are kept.
            Self::Batch(batches, number) => match kept.batches.last_mut() {
                Some((last, known)) if Arc::ptr_eq(last, &batches) => *known = number,
                _ => kept.batches.push((batches, number)),
            },
        }
    }
}

/// What is left to be done of kept promises, and of whatever else a turn sends to connections.
#[derive(Default)]
pub struct Kept {
    /// Connections with news.
    pub(crate) woken: Woken,
    /// Segment entries that nobody needs any more, and the member that had them if it is one's.
    pub freed: Vec<(JournalId, Vec<Place>, Option<Closed>)>,
    /// Segments of deleted queues, which may go.
    pub deleted: Vec<JournalId>,
    /// How many publishes were confirmed.
    pub confirmed: u64,
    /// Numbered batches, and whose they are: mostly the last one of each.
    pub batches: Vec<(Arc<dyn Batches>, u64)>,
}

/// Promises by the position in the journal up to which they wait. One lock for a batch, and no memory is taken anew.
#[derive(Default)]
pub struct Promises {
    waiting: Mutex<Waiting>,
    /// The vector that due ones are taken into; of one thread at a time.
    due: Mutex<Vec<Promise>>,
}

#[derive(Default)]
struct Waiting {
    /// Positions never fall.
    promises: VecDeque<(u64, Promise)>,
    /// The journal comes no further.
    ended: bool,
}

impl Promises {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These wait until the journal has come up to `position`, which is no lower than any named before.
    pub fn add(&self, position: u64, promises: impl Iterator<Item = Promise>) {
        let mut waiting = self.lock();
        if waiting.ended {
            drop(waiting);
            return promises.for_each(drop);
        }
        waiting
            .promises
            .extend(promises.map(|promise| (position, promise)));
    }

    /// The journal has come up to `position`: keeps what waited for that, in order, and returns what is left to be
    /// done. `now` is the time in microseconds.
    pub fn keep(&self, position: u64, now: &dyn Fn() -> u64) -> Kept {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        self.take_due(position, &mut due);
        let mut kept = Kept::default();
        for promise in due.drain(..) {
            promise.keep(&mut kept, now);
        }
        kept
    }

    fn take_due(&self, position: u64, due: &mut Vec<Promise>) {
        let mut waiting = self.lock();
        let count = waiting.promises.partition_point(|(until, _)| *until <= position);
        due.extend(waiting.promises.drain(..count).map(|(_, promise)| promise));
    }

    /// The journal comes no further: what waits is dropped, now and from now on.
    pub fn end(&self) {
        let mut waiting = self.lock();
        waiting.ended = true;
        let dropped = std::mem::take(&mut waiting.promises);
        drop(waiting);
        drop(dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise(counter: &Arc<AtomicUsize>) -> Promise {
        counter.fetch_add(1, Ordering::Relaxed);
        Promise::Synced(counter.clone())
    }

    fn kept(promises: &Promises, position: u64) -> usize {
        let mut due = Vec::new();
        promises.take_due(position, &mut due);
        due.len()
    }

    #[test]
    fn a_promise_comes_due_once_the_journal_has_come_up_to_it_and_only_once() {
        let (promises, counter) = (Promises::default(), Arc::default());
        promises.add(10, [promise(&counter), promise(&counter)].into_iter());
        promises.add(10, [promise(&counter)].into_iter());
        promises.add(25, [promise(&counter)].into_iter());
        assert_eq!(kept(&promises, 9), 0);
        assert_eq!(kept(&promises, 24), 3);
        assert_eq!(kept(&promises, 24), 0);
        assert_eq!(kept(&promises, 25), 1);
    }

    #[test]
    fn nothing_is_kept_after_the_journal_has_ended() {
        let (promises, counter) = (Promises::default(), Arc::default());
        promises.add(10, [promise(&counter)].into_iter());
        promises.end();
        promises.add(20, [promise(&counter)].into_iter());
        assert_eq!(kept(&promises, 100), 0);
        assert_eq!(Arc::strong_count(&counter), 1, "nothing is held on to");
    }
}
