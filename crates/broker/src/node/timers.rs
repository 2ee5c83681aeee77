//! One thread that turns queues when something in them is due: messages that expire, queues that nobody uses.
//!
//! A queue is known here by its next deadline only, and names a new one after each turn; there is no timer per message.

use crate::node::clock::Clock;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use storage::{Step, Task, Thread, World};

/// The node's clock may be made to run a little faster while the thread waits: it looks at it at least this often while
/// something is due later.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What something can be due in.
pub trait Due: Send + Sync {
    /// The time that was named has come.
    fn tick(self: Arc<Self>);
}

/// The thread and what it waits for.
#[derive(Default)]
pub struct Timers {
    face: Arc<Face>,
    thread: OnceLock<Arc<dyn Thread>>,
}

#[derive(Default)]
struct Face {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// Deadlines in milliseconds since the Unix epoch, each with a number of its own.
    deadlines: BinaryHeap<Reverse<(u64, u64)>>,
    waiting: BTreeMap<u64, Weak<dyn Due>>,
    next: u64,
    stopped: bool,
}

impl Timers {
    /// Starts the thread. What was asked for before is due from now on.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(&self, world: &dyn World, time: Arc<Clock>) -> std::io::Result<()> {
        let ticking = Ticking {
            face: self.face.clone(),
            time,
        };
        let thread = world.start("clock", Box::new(ticking))?;
        // What was asked for before anybody could be woken.
        self.thread.get_or_init(|| thread).wake();
        Ok(())
    }

    /// Tells this one when the time has come, in milliseconds since the Unix epoch.
    pub fn wake(&self, at_ms: u64, due: Weak<dyn Due>) {
        let mut waiting = self.face.lock();
        let number = waiting.next;
        waiting.next += 1;
        let earliest = waiting
            .deadlines
            .peek()
            .is_none_or(|Reverse((first, _))| at_ms < *first);
        waiting.deadlines.push(Reverse((at_ms, number)));
        waiting.waiting.insert(number, due);
        drop(waiting);
        if earliest && let Some(thread) = self.thread.get() {
            thread.wake();
        }
    }

    /// Ends the thread.
    pub fn stop(&self) {
        self.face.lock().stopped = true;
        let Some(thread) = self.thread.get() else {
            return;
        };
        thread.wake();
        if !thread.join() {
            tracing::error!(area = "queue", "the clock's thread ended unexpectedly (a bug)");
        }
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Face {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the thread does.
struct Ticking {
    face: Arc<Face>,
    time: Arc<Clock>,
}

impl Task for Ticking {
    fn step(&mut self) -> Step {
        let now_ms = self.time.now().0;
        let mut waiting = self.face.lock();
        if waiting.stopped {
            return Step::End;
        }
        let due = waiting.take_due(now_ms);
        if !due.is_empty() {
            drop(waiting);
            due.iter().filter_map(Weak::upgrade).for_each(|due| due.tick());
            return Step::Again;
        }
        let next = waiting.deadlines.peek().copied();
        let wait = |Reverse((at_ms, _))| Duration::from_millis(at_ms - now_ms).min(LOOK_AGAIN);
        Step::Sleep(next.map(wait))
    }
}

impl Waiting {
    fn take_due(&mut self, now_ms: u64) -> Vec<Weak<dyn Due>> {
        let mut due = Vec::new();
        while let Some(Reverse((at_ms, number))) = self.deadlines.peek().copied()
            && at_ms <= now_ms
        {
            self.deadlines.pop();
            due.extend(self.waiting.remove(&number));
        }
        due
    }
}
