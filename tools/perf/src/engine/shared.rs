//! What the threads of a load share: counters, the window of unconsumed messages, and why the load should end.

use crate::failure::Failure;
use crate::measure::Recorder;
use crate::plan::Plan;
use crate::verify::Ledger;
use mio::Waker;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Locks; a thread that panicked while it held the lock left counters behind that are still good to read.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// See the module.
pub struct Shared {
    pub plan: Arc<Plan>,
    /// One for each thread, so that nobody waits for another one's.
    pub recorders: Vec<Mutex<Recorder>>,
    pub published: AtomicU64,
    pub consumed: AtomicU64,
    /// Consumers that the broker has acknowledged, of all channels.
    pub consuming: AtomicUsize,
    /// Links that are open.
    pub open: AtomicUsize,
    /// How many threads have producers that wait for the window.
    pub waiting: AtomicUsize,
    pub wakers: Mutex<Vec<Arc<Waker>>>,
    /// Producers publish nothing any more; what was published is still consumed.
    pub producers_stop: AtomicBool,
    pub ledger: Option<Mutex<Ledger>>,
    ends: Mutex<Ends>,
    lines: Mutex<Vec<String>>,
}

#[derive(Default)]
struct Ends {
    reasons: Vec<(String, usize)>,
    count: usize,
    failure: Option<Failure>,
}

impl Shared {
    pub fn new(plan: Arc<Plan>, threads: usize) -> Self {
        let producers = plan.producing.producers * plan.producing.channels;
        let confirms = plan.producing.confirm.is_some();
        let ordered = plan.consuming.consumers * plan.consuming.channels == 1;
        let ledger = plan
            .verify
            .then(|| Mutex::new(Ledger::new(producers, confirms, ordered)));
        Self {
            recorders: (0..threads).map(|_| Mutex::new(Recorder::new())).collect(),
            published: AtomicU64::new(0),
            consumed: AtomicU64::new(0),
            consuming: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            wakers: Mutex::new(Vec::new()),
            producers_stop: AtomicBool::new(false),
            ledger,
            ends: Mutex::new(Ends::default()),
            lines: Mutex::new(Vec::new()),
            plan,
        }
    }

    /// How many messages may be published now: what the window leaves, or as many as wanted without one.
    ///
    /// Once the window was full it opens again when a quarter of it is free, so that messages still go out in batches.
    #[inline]
    pub fn room(&self, was_full: bool) -> u64 {
        let Some(limit) = self.plan.max_in_flight else {
            return u64::MAX;
        };
        let in_flight = self
            .published
            .load(Relaxed)
            .saturating_sub(self.consumed.load(Relaxed));
        let room = limit.saturating_sub(in_flight);
        if was_full && room < limit.div_ceil(4) {
            0
        } else {
            room
        }
    }

    /// Counts what was consumed and wakes those who wait for the window.
    pub fn count_consumed(&self, messages: u64) {
        self.consumed.fetch_add(messages, Relaxed);
        if self.waiting.load(Relaxed) > 0 && self.room(true) > 0 {
            self.wake_all();
        }
    }

    /// Wakes every thread.
    pub fn wake_all(&self) {
        for waker in lock(&self.wakers).iter() {
            // A thread that can't be woken looks around by itself twice a second.
            let _ = waker.wake();
        }
    }

    /// A producer or consumer has come to its end.
    pub fn count_down(&self, reason: &str) {
        let mut ends = lock(&self.ends);
        ends.count += 1;
        match ends.reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, times)) => *times += 1,
            None => ends.reasons.push((reason.to_owned(), 1)),
        }
    }

    /// A producer or consumer can't go on.
    pub fn fail(&self, reason: &str, failure: Failure) {
        let mut ends = lock(&self.ends);
        ends.failure.get_or_insert(failure);
        drop(ends);
        self.count_down(reason);
    }

    /// How many have come to their end, and the first failure.
    pub fn ended(&self) -> (usize, Option<Failure>) {
        let ends = lock(&self.ends);
        (ends.count, ends.failure.clone())
    }

    /// Why they ended, with how many did.
    pub fn reasons(&self) -> Vec<(String, usize)> {
        lock(&self.ends).reasons.clone()
    }

    /// Something that a user should read when it happens.
    pub fn tell(&self, line: String) {
        lock(&self.lines).push(line);
    }

    /// What was told since the last time.
    pub fn told(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.lines))
    }
}
