//! What the threads of a load have in common.

use super::accounts::Accounts;
use super::counted::Counted;
use super::plan::Plan;
use super::stamp::WallClock;
use crate::failure::Failure;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the module.
pub struct Shared {
    pub plan: Arc<Plan>,
    pub wall: WallClock,
    /// One for each thread, which no other busy thread locks.
    pub counted: Vec<Mutex<Counted>>,
    /// With `--verify`.
    pub accounts: Option<Mutex<Accounts>>,
    /// Producers that have not come to their end; those without an end never do.
    pub producing: AtomicUsize,
    /// The same of consumers.
    pub consuming: AtomicUsize,
    /// Producers are to publish no more.
    pub quiet: AtomicBool,
    /// Nothing that is lost is to be opened again.
    pub over: AtomicBool,
    /// Messages that were published so far, and those that were consumed.
    pub published: AtomicU64,
    pub consumed: AtomicU64,
    /// Messages that are not confirmed yet.
    pub unconfirmed: AtomicU64,
    /// Connections that are lost and not back yet.
    pub recovering: AtomicUsize,
    failure: Mutex<Option<Failure>>,
    told: Mutex<Vec<String>>,
}

impl Shared {
    pub fn new(plan: Arc<Plan>, accounts: Option<Accounts>) -> Self {
        Self {
            wall: WallClock::start(),
            counted: (0..plan.threads).map(|_| Mutex::new(Counted::new())).collect(),
            accounts: accounts.map(Mutex::new),
            producing: AtomicUsize::new(plan.producing.producers),
            consuming: AtomicUsize::new(plan.consuming.consumers),
            quiet: AtomicBool::new(false),
            over: AtomicBool::new(false),
            published: AtomicU64::new(0),
            consumed: AtomicU64::new(0),
            unconfirmed: AtomicU64::new(0),
            recovering: AtomicUsize::new(0),
            failure: Mutex::new(None),
            told: Mutex::new(Vec::new()),
            plan,
        }
    }

    /// The load can't go on; the first reason counts.
    pub fn fail(&self, failure: Failure) {
        lock(&self.failure).get_or_insert(failure);
    }

    /// Why it can't, if so.
    pub fn failure(&self) -> Option<Failure> {
        lock(&self.failure).clone()
    }

    /// A line for the user.
    pub fn tell(&self, line: String) {
        lock(&self.told).push(line);
    }

    /// The lines since the last time.
    pub fn told(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.told))
    }

    /// The ledgers, with `--verify`.
    pub fn accounts(&self) -> Option<MutexGuard<'_, Accounts>> {
        self.accounts.as_ref().map(lock)
    }

    pub fn is_quiet(&self) -> bool {
        self.quiet.load(Relaxed)
    }
}

/// A thread that panicked leaves nothing half done that matters here.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
