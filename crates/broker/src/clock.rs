//! One thread that turns queues when something in them is due: messages that expire, queues that nobody uses.
//!
//! A queue is known here by its next deadline only, and names a new one after each turn; there is no timer per message.

use crate::node::Node;
use crate::queues::Queue;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// The node's clock may be made to run a little faster while the thread waits: it looks at it at least this often while something is due later.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The thread and what it waits for.
#[derive(Default)]
pub struct Clock {
    face: Arc<Face>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Face {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// Deadlines in milliseconds since the Unix epoch, each with a number of its own.
    deadlines: BinaryHeap<Reverse<(u64, u64)>>,
    queues: BTreeMap<u64, Weak<Queue>>,
    next: u64,
    stopped: bool,
}

impl Clock {
    /// Starts the thread. What was asked for before is due from now on.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(&self, node: &Arc<Node>) -> std::io::Result<()> {
        let (face, node) = (self.face.clone(), Arc::downgrade(node));
        let thread = std::thread::Builder::new()
            .name("clock".into())
            .spawn(move || face.run(&node))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// Turns the queue at this time, in milliseconds since the Unix epoch.
    pub fn wake(&self, at_ms: u64, queue: Weak<Queue>) {
        let mut waiting = self.face.lock();
        let number = waiting.next;
        waiting.next += 1;
        let earliest = waiting
            .deadlines
            .peek()
            .is_none_or(|Reverse((first, _))| at_ms < *first);
        waiting.deadlines.push(Reverse((at_ms, number)));
        waiting.queues.insert(number, queue);
        drop(waiting);
        if earliest {
            self.face.changed.notify_one();
        }
    }

    /// Ends the thread.
    pub fn stop(&self) {
        self.face.lock().stopped = true;
        self.face.changed.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!(area = "queue", "the clock's thread ended unexpectedly (a bug)");
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Face {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, node: &Weak<Node>) {
        let mut waiting = self.lock();
        while !waiting.stopped {
            let Some(now_ms) = node.upgrade().map(|node| node.now().0) else {
                return;
            };
            let due = waiting.take_due(now_ms);
            if !due.is_empty() {
                drop(waiting);
                due.iter()
                    .filter_map(Weak::upgrade)
                    .for_each(|queue| queue.tick());
                waiting = self.lock();
                continue;
            }
            waiting = match waiting.deadlines.peek() {
                None => self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(Reverse((at_ms, _))) => {
                    let wait = Duration::from_millis(at_ms - now_ms).min(LOOK_AGAIN);
                    let waited = self.changed.wait_timeout(waiting, wait);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl Waiting {
    fn take_due(&mut self, now_ms: u64) -> Vec<Weak<Queue>> {
        let mut due = Vec::new();
        while let Some(Reverse((at_ms, number))) = self.deadlines.peek().copied()
            && at_ms <= now_ms
        {
            self.deadlines.pop();
            due.extend(self.queues.remove(&number));
        }
        due
    }
}
