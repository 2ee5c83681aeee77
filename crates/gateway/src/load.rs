//! How much of its processor each thread uses, measured by the thread itself while it serves.

use crate::balance::{Balance, Busy, Moves, Rules, Share};
use crate::connection::{Done, Millis};
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;
use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

/// A thread that did not look for so many windows sleeps: its last share means nothing any more.
const ASLEEP: Millis = 4;

/// The shares of all threads.
#[derive(Debug)]
pub struct Loads {
    /// When connections move.
    pub rules: Rules,
    threads: Vec<Last>,
}

/// A thread's last look.
#[derive(Debug, Default)]
struct Last {
    share: AtomicU32,
    at: AtomicU64,
}

impl Loads {
    /// For so many threads.
    pub fn new(rules: Rules, threads: usize) -> Self {
        Self {
            rules,
            threads: (0..threads).map(|_| Last::default()).collect(),
        }
    }

    /// What each thread uses, as far as it is known at `now`.
    pub fn shares(&self, now: Millis) -> Vec<Share> {
        let share = |last: &Last| {
            let awake = last.at.load(Ordering::Relaxed) + ASLEEP * self.rules.window >= now;
            if awake {
                last.share.load(Ordering::Relaxed)
            } else {
                0
            }
        };
        self.threads.iter().map(share).collect()
    }

    fn note(&self, me: usize, share: Share, now: Millis) {
        self.threads[me].share.store(share, Ordering::Relaxed);
        self.threads[me].at.store(now, Ordering::Relaxed);
    }
}

/// This thread's meter.
struct Meter {
    loads: Arc<Loads>,
    me: usize,
    balance: Balance,
    /// The number of this window, and which connections had something to do in it.
    window: u32,
    busy: Busy,
    since: Millis,
    next: Millis,
    /// The processor time that this thread had used at `since`, in microseconds.
    used: u64,
    moves: Option<Moves>,
}

thread_local! {
    static METER: RefCell<Option<Meter>> = const { RefCell::new(None) };
}

/// Begins to measure this thread as number `me`. One thread alone has nothing to balance.
pub fn measure(loads: Arc<Loads>, me: usize, now: Millis) {
    if loads.threads.len() > 1 {
        METER.set(Some(Meter::new(loads, me, now, processor_time())));
    }
}

/// For a connection after its turn: where it must go on, if elsewhere. `seen` is the number of the window in which it had its
/// last turn; 0 at first. In this one it has `done` something or not.
pub fn turned(now: Millis, seen: &mut u32, done: Done) -> Option<usize> {
    METER.with_borrow_mut(|meter| meter.as_mut()?.turned(now, seen, done, processor_time))
}

/// For tests: the next connections of this thread move.
#[cfg(test)]
pub fn order(moves: Moves) {
    let mut meter = Meter::new(Arc::new(Loads::new(Rules::default(), 2)), 0, 0, 0);
    meter.next = Millis::MAX;
    meter.moves = Some(moves);
    METER.set(Some(meter));
}

impl Meter {
    fn new(loads: Arc<Loads>, me: usize, now: Millis, used: u64) -> Self {
        Self {
            next: now + loads.rules.window,
            loads,
            me,
            balance: Balance::default(),
            window: 1,
            busy: Busy::default(),
            since: now,
            used,
            moves: None,
        }
    }

    fn turned(
        &mut self,
        now: Millis,
        seen: &mut u32,
        done: Done,
        used: impl FnOnce() -> u64,
    ) -> Option<usize> {
        if *seen != self.window && done != Done::Nothing {
            *seen = self.window;
            match done {
                Done::Published => self.busy.publishers += 1,
                _ => self.busy.others += 1,
            }
        }
        if now >= self.next {
            self.look(now, used());
        }
        if done == Done::Nothing {
            return None;
        }
        let moves = self.moves.as_mut()?;
        let to = moves.to;
        moves.left -= 1;
        if moves.left == 0 {
            self.moves = None;
        }
        // It counts anew where it arrives: windows there have other numbers.
        *seen = 0;
        Some(to)
    }

    /// The end of a window.
    fn look(&mut self, now: Millis, used: u64) {
        let passed = (now - self.since).max(1);
        let share = (used - self.used) / passed;
        self.loads.note(self.me, share as Share, now);
        let shares = self.loads.shares(now);
        self.moves = self.balance.look(&self.loads.rules, self.me, &shares, self.busy);
        // 0 means that a connection is new.
        self.window = self.window.checked_add(1).unwrap_or(1);
        self.busy = Busy::default();
        self.used = used;
        self.since = now;
        self.next = now + self.loads.rules.window;
    }
}

/// How long this thread has run so far, in microseconds. Time for which it was ready and did not get a processor is not in
/// it: another thread would not help then.
fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_not_looked_lately_counts_as_idle() {
        let loads = Loads::new(Rules::default(), 2);
        loads.note(1, 700, 1000);
        assert_eq!(loads.shares(1200), [0, 700]);
        assert_eq!(loads.shares(1201), [0, 0]);
    }

    #[test]
    fn half_of_the_busy_connections_move_when_their_thread_is_full() {
        let loads = Arc::new(Loads::new(Rules::default(), 2));
        let mut meter = Meter::new(loads.clone(), 0, 0, 0);
        let mut seen = [0; 4];
        let mut turns = |now: Millis, used: u64| -> Vec<_> {
            let turned = |seen: &mut u32| meter.turned(now, seen, Done::Published, || used);
            seen.iter_mut().map(turned).collect()
        };
        assert_eq!(turns(10, 0), [None; 4]);
        assert_eq!(turns(50, 49_000), [None; 4]);
        assert_eq!(loads.shares(50), [980, 0]);
        assert_eq!(turns(60, 59_000), [None; 4]);
        assert_eq!(turns(100, 98_000), [Some(1), Some(1), None, None]);
    }

    #[test]
    fn a_thread_that_waits_for_a_processor_is_not_full() {
        let mut meter = Meter::new(Arc::new(Loads::new(Rules::default(), 2)), 0, 0, 0);
        for window in 1..20 {
            let mut seen = [0; 4];
            for seen in &mut seen {
                let done = Done::Published;
                assert_eq!(meter.turned(window * 50, seen, done, || window * 25_000), None);
            }
        }
    }

    #[test]
    fn a_connection_that_only_shows_that_it_lives_is_not_busy_and_stays() {
        let loads = Arc::new(Loads::new(Rules::default(), 2));
        let mut meter = Meter::new(loads, 0, 0, 0);
        let (mut publisher, mut link) = (0, 0);
        for window in 1..20 {
            let (now, used) = (window * 50, window * 49_000);
            assert_eq!(meter.turned(now, &mut link, Done::Nothing, || used), None);
            assert_eq!(meter.turned(now, &mut publisher, Done::Published, || used), None);
        }
        let mut other = 0;
        let moved = (20..30).find_map(|window| {
            let (now, used) = (window * 50, window * 49_000);
            let moved = meter.turned(now, &mut other, Done::Published, || used);
            assert_eq!(meter.turned(now, &mut link, Done::Nothing, || used), None);
            moved.or(meter.turned(now, &mut publisher, Done::Published, || used))
        });
        assert_eq!(moved, Some(1), "one of two publishers");
    }
}
