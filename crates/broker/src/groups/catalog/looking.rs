//! Who looks at the catalog when: whoever has turned its member, and a thread of its own for everything else.

use super::{SharedCatalog, State, Told};
use crate::groups::member::{Member, News};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, TryLockError, Weak};
use std::time::Duration;
use storage::{Step, Task};

/// So many queues to start or stop are nothing for a thread of links.
const MUCH: usize = 64;

/// The thread: it ends with the catalog.
struct Looking(Weak<SharedCatalog>);

impl Task for Looking {
    fn step(&mut self) -> Step {
        let shared = self.0.upgrade().filter(|it| !it.stopped.load(Ordering::SeqCst));
        shared.map_or(Step::End, |shared| shared.step())
    }
}

impl SharedCatalog {
    /// Starts the thread.
    pub(super) fn start(&self) -> io::Result<()> {
        let world = &self.groups.node().world;
        let thread = world.start("catalog", Box::new(Looking(self.myself.clone())))?;
        let _ = self.thread.set(thread);
        Ok(())
    }

    /// Ends the catalog's thread, and waits for it: the node is about to close.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.wake();
        if let Some(thread) = self.thread.get() {
            thread.join();
        }
    }

    pub(super) fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.wake();
        }
    }

    fn is_telling(&self) -> bool {
        matches!(self.telling.try_lock(), Err(TryLockError::WouldBlock))
    }

    fn step(&self) -> Step {
        self.turn();
        let now_us = self.now_us();
        let mut state = self.state();
        state.looks_at = state.due_at(now_us);
        match state.looks_at {
            u64::MAX => Step::Sleep(None),
            at => Step::Sleep(Some(Duration::from_micros(at.saturating_sub(now_us)))),
        }
    }

    /// Has somebody look at what has come: without the host's lock, under which this is called.
    pub(super) fn call(&self) {
        let is_called = self.called.swap(true, Ordering::SeqCst);
        // Whoever attends looks afterwards, and finds what was put there before this.
        if !is_called && self.attending.load(Ordering::SeqCst) == 0 {
            self.wake();
        }
    }
}

impl State {
    /// Whether who follows has much to do with what is committed and was not told.
    fn brings_much(&self) -> bool {
        let orders = self.inbox.iter().map(|told| match told {
            Told::Happened(happened) => happened.orders.len(),
            Told::Resumed(_) => MUCH,
        });
        orders.sum::<usize>() >= MUCH
    }

    /// When something becomes due by itself, in microseconds; [`u64::MAX`] if nothing does but with a tick.
    fn due_at(&self, now_us: u64) -> u64 {
        let new = self.leader.and_then(|_| self.requests.waits_until(now_us));
        let grants = self.grants.as_ref();
        let lease = grants.and_then(|grants| grants.runs_out(self.version, now_us / 1_000));
        let lease_us = lease.map(|ms| ms * 1_000);
        new.into_iter().chain(lease_us).min().unwrap_or(u64::MAX)
    }

    /// Whether something becomes due before the thread looks; it is to be woken then.
    pub(super) fn is_early(&mut self, now_us: u64) -> bool {
        let due = self.due_at(now_us);
        let is_early = due < self.looks_at;
        self.looks_at = self.looks_at.min(due);
        is_early
    }
}

impl Member for SharedCatalog {
    fn tell(&self, news: Vec<News>) {
        if let Some(hosted) = self.hosted.get() {
            hosted.tell(news);
        }
    }

    fn turn(self: Arc<Self>) {
        let Some(hosted) = self.hosted.get() else { return };
        self.attending.fetch_add(1, Ordering::SeqCst);
        hosted.clone().turn();
        self.attending.fetch_sub(1, Ordering::SeqCst);
        // Links have their threads for what nodes say to each other, which must not wait long. And whoever tells who follows may
        // have turned the groups for that, with locks that answers need.
        let is_left = self.is_telling() || self.state().brings_much();
        match is_left {
            true => self.wake(),
            false => self.look(),
        }
    }

    /// Who follows may take its time, and wait for the disk.
    fn turn_shortly(self: Arc<Self>) {
        if let Some(hosted) = self.hosted.get() {
            hosted.clone().turn_shortly();
        }
    }
}

impl Drop for SharedCatalog {
    /// So that the thread ends.
    fn drop(&mut self) {
        self.wake();
    }
}
