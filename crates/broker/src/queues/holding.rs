//! Who waits before publishing more into a queue, and until when.

use super::throttle::{Counts, Micros, Ruling, Throttle};
use crate::clients::pressure::{Pressure, Reason, Release};
use queue::Status;
use std::collections::VecDeque;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};
use std::time::Duration;

/// Bodies in memory of one queue above which its publishers wait until some are paged out, in bytes.
const PRESSURE_BYTES: usize = 32 * 1024 * 1024;

/// A publisher that is held to the consumers' pace goes on after this time at the latest: consumers who stop altogether
/// turn no queue, and would hold it for ever.
const TIMEOUT: Duration = Duration::from_millis(50);

/// A queue's publishers: whether they may go on, and those who wait.
#[derive(Debug, Default)]
pub struct Holding {
    /// There is a reason to wait. All that a publisher looks at while there is none.
    held: AtomicBool,
    /// There is something to look at after a turn even if the queue is empty then.
    watched: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Bodies take too much memory.
    full: bool,
    /// What those wait for who found the memory full.
    room: Option<Arc<Release>>,
    pace: Throttle,
    /// Publishers are held to the consumers' pace.
    paced: bool,
    /// Those who wait for their turn, first come, first served.
    turns: VecDeque<Arc<Release>>,
}

impl Holding {
    /// A reason to wait for somebody who published, if there is one.
    pub fn pressure(&self) -> Option<Pressure> {
        if !self.held.load(Ordering::Relaxed) {
            return None;
        }
        let mut inner = self.lock();
        if inner.full {
            return Some(Pressure::until_release(
                Reason::Memory,
                inner.room.get_or_insert_default().clone(),
            ));
        }
        inner.paced.then(|| {
            inner.pass_over_the_gone();
            let turn = Arc::new(Release::default());
            inner.turns.push_back(turn.clone());
            Pressure::with_timeout(Reason::Consumers, turn, TIMEOUT)
        })
    }

    /// Why publishers wait, if they do; for operators.
    pub fn reason(&self) -> Option<Reason> {
        if !self.held.load(Ordering::Relaxed) {
            return None;
        }
        match self.lock().full {
            true => Some(Reason::Memory),
            false => Some(Reason::Consumers),
        }
    }

    /// Looks at the queue after a turn, under its lock, and adds to `released` who may go on. An empty queue costs two
    /// branches and no look at the clock.
    pub fn look(&self, status: &Status, now: impl FnOnce() -> Micros, released: &mut Vec<Arc<Release>>) {
        let full = status.memory >= PRESSURE_BYTES;
        let standing = status.ready > 0 && status.consumers > 0 && !status.keeps;
        if !full && !standing && !self.watched.load(Ordering::Relaxed) {
            return;
        }
        let mut inner = self.lock();
        inner.full = full;
        if !full {
            released.extend(inner.room.take());
        }
        let ruling = match standing {
            true => {
                let counts = Counts {
                    ready: status.ready,
                    ready_bytes: status.ready_bytes,
                    handed: status.handed,
                    taken: status.next_seq,
                };
                inner.pace.look(now(), counts)
            }
            false => {
                inner.pace.rest();
                Ruling::Free
            }
        };
        inner.paced = ruling == Ruling::Hold;
        let admitted = match ruling {
            Ruling::Free => usize::MAX,
            Ruling::Admit(count) => count,
            Ruling::Hold => 0,
        };
        inner.admit(admitted, released);
        self.held.store(full || inner.paced, Ordering::Relaxed);
        self.watched
            .store(full || standing || !inner.turns.is_empty(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// So many of those who wait may go on. Who is gone, or gave up, is passed over.
    fn admit(&mut self, count: usize, released: &mut Vec<Arc<Release>>) {
        let mut admitted = 0;
        while admitted < count
            && let Some(turn) = self.turns.pop_front()
        {
            if is_awaited(&turn) {
                released.push(turn);
                admitted += 1;
            }
        }
    }

    /// Removes turns from both ends of the line whose publishers wait no more: those that gave up are in front, those
    /// that would not wait at the end. So the line gets no longer than there are publishers, even if nobody is let in
    /// for long.
    fn pass_over_the_gone(&mut self) {
        while self.turns.front().is_some_and(|turn| !is_awaited(turn)) {
            self.turns.pop_front();
        }
        while self.turns.back().is_some_and(|turn| !is_awaited(turn)) {
            self.turns.pop_back();
        }
    }
}

fn is_awaited(turn: &Arc<Release>) -> bool {
    Arc::strong_count(turn) > 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    fn status(ready: u64, consumers: usize, memory: usize) -> Status {
        Status {
            ready,
            consumers,
            memory,
            ..Status::default()
        }
    }

    fn release(released: &mut Vec<Arc<Release>>) {
        released.drain(..).for_each(|release| release.release());
    }

    #[test]
    fn a_full_memory_holds_everybody_until_there_is_room() {
        let holding = Holding::default();
        let mut released = Vec::new();
        holding.look(&status(1, 0, PRESSURE_BYTES), || 0, &mut released);
        let pressure = holding.pressure().unwrap();
        assert!(!pressure.poll(Waker::noop()) && pressure.timeout().is_none());
        holding.look(&status(1, 0, 0), || 0, &mut released);
        release(&mut released);
        assert!(pressure.poll(Waker::noop()) && holding.pressure().is_none());
    }

    #[test]
    fn who_waits_for_its_turn_goes_on_when_the_consumers_leave_and_the_dead_are_passed_over() {
        let holding = Holding::default();
        let mut released = Vec::new();
        for step in 0..20 {
            let mut quick = status(10_000, 1, 0);
            quick.handed = step * 1_000;
            quick.next_seq = 10_000 + step * 1_000;
            holding.look(&quick, || step * 1_000, &mut released);
        }
        let gone = holding.pressure().unwrap();
        let waiting = holding.pressure().unwrap();
        assert!(!waiting.poll(Waker::noop()) && waiting.timeout() == Some(TIMEOUT));
        drop(gone);
        holding.look(&status(10_000, 0, 0), || 30_000, &mut released);
        assert_eq!(released.len(), 1);
        release(&mut released);
        assert!(waiting.poll(Waker::noop()) && holding.pressure().is_none());
    }
}
