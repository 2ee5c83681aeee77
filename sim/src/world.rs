//! The surroundings of a node under simulation: its threads make their steps when they are told to, its clock goes when
//! it is pushed.

use crate::aside;
use crate::power_cut::PowerCut;
pub use crate::power_cut::until_power_cut;
use std::fmt;
use std::io;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use storage::faulty::{FaultyFs, Random};
use storage::{FileSystem, Step, Task, Thread, World};

/// What the wall clock shows at the beginning: some day of 2026, in milliseconds since the Unix epoch.
pub const BEGINNING_MS: u64 = 1_780_000_000_000;
const DAY_MS: u64 = 86_400_000;

/// After so many steps of a thread that somebody waits for, it is clear that it has no end.
const ENDLESS: u64 = 100_000;

/// The surroundings of one life of a node.
#[derive(Debug)]
pub struct Simulated {
    myself: Weak<Simulated>,
    files: FaultyFs,
    inner: Mutex<Inner>,
}

struct Inner {
    now: Duration,
    /// What the wall clock would have shown at the beginning.
    wall_began_ms: u64,
    random: Random,
    threads: Vec<Slot>,
    /// Until then the disk answers nobody, and threads wait for it.
    hangs_until: Duration,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inner")
    }
}

/// A thread.
struct Slot {
    name: String,
    /// Not here while it makes a step.
    task: Option<Box<dyn Task>>,
    state: State,
    /// It was woken, and has not made a step since.
    woken: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    /// Until this time, or until it is woken.
    Asleep(Option<Duration>),
    /// It makes a step, or waits within one for another thread.
    Busy,
    Ended,
}

impl Simulated {
    /// Surroundings with these files, at this time since the beginning of the simulation.
    pub fn new(files: FaultyFs, now: Duration, seed: u64) -> Arc<Self> {
        Arc::new_cyclic(|myself| Self {
            myself: myself.clone(),
            files,
            inner: Mutex::new(Inner {
                now,
                wall_began_ms: BEGINNING_MS,
                random: Random(seed),
                threads: Vec::new(),
                hangs_until: Duration::ZERO,
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets time pass.
    pub fn advance(&self, time: Duration) {
        self.lock().now += time;
    }

    /// The disk answers nobody for so long from now on; no thread makes a step, but for one that somebody waits for.
    pub fn hang(&self, time: Duration) {
        let mut inner = self.lock();
        inner.hangs_until = inner.now + time;
    }

    /// Somebody sets the wall clock: as if the simulation had begun so long after a day before its beginning.
    pub fn set_wall(&self, after_ms: u64) {
        self.lock().wall_began_ms = BEGINNING_MS - DAY_MS + after_ms;
    }

    /// Makes a step of some thread that has something to do. False if none has.
    pub fn step(&self) -> bool {
        let mut inner = self.lock();
        let now = inner.now;
        if now < inner.hangs_until {
            return false;
        }
        let due = |slot: &Slot| match slot.state {
            State::Ready => true,
            State::Asleep(until) => slot.woken || until.is_some_and(|until| until <= now),
            State::Busy | State::Ended => false,
        };
        let ready: Vec<usize> = (0..inner.threads.len())
            .filter(|at| due(&inner.threads[*at]))
            .collect();
        if ready.is_empty() {
            return false;
        }
        let chosen = ready[inner.random.below(ready.len() as u64) as usize];
        drop(inner);
        self.turn(chosen);
        true
    }

    /// When the first thread wants to go on that sleeps, if one does.
    pub fn next_deadline(&self) -> Option<Duration> {
        let inner = self.lock();
        let untils = inner.threads.iter().filter_map(|slot| match slot.state {
            State::Asleep(until) => until,
            _ => None,
        });
        untils.min().map(|until| until.saturating_sub(inner.now))
    }

    /// Makes a step of this thread. Time passes until it wants to go on.
    fn turn(&self, number: usize) {
        let mut inner = self.lock();
        let now = inner.now;
        let slot = &mut inner.threads[number];
        let until = match slot.state {
            State::Ended => return,
            State::Busy => panic!("deadlock: '{}' waits for itself", slot.name),
            State::Asleep(None) if !slot.woken => {
                panic!(
                    "deadlock: somebody waits for '{}', which waits for nothing",
                    slot.name
                )
            }
            State::Asleep(Some(until)) if !slot.woken => until,
            State::Asleep(_) | State::Ready => now,
        };
        slot.woken = false;
        slot.state = State::Busy;
        let task = slot.task.take();
        inner.now = now.max(until);
        drop(inner);
        let Some(mut task) = task else { return };
        let next = task.step();
        let mut inner = self.lock();
        let now = inner.now;
        let slot = &mut inner.threads[number];
        if slot.state == State::Ended {
            drop(inner);
            return;
        }
        slot.state = match next {
            Step::Again => State::Ready,
            Step::Sleep(time) => State::Asleep(time.map(|time| now + time)),
            Step::End => State::Ended,
        };
        if next != Step::End {
            slot.task = Some(task);
            return;
        }
        drop(inner);
        drop(task);
    }

    /// The process is killed: no thread goes on.
    pub fn abandon(&self) {
        let mut inner = self.lock();
        let tasks: Vec<_> = inner
            .threads
            .iter_mut()
            .filter_map(|slot| {
                slot.state = State::Ended;
                slot.task.take()
            })
            .collect();
        drop(inner);
        drop(tasks);
    }
}

impl World for Simulated {
    fn files(&self) -> Arc<dyn FileSystem> {
        Arc::new(self.files.clone())
    }

    fn elapsed(&self) -> Duration {
        self.lock().now
    }

    fn wall_ms(&self) -> u64 {
        let inner = self.lock();
        inner.wall_began_ms + inner.now.as_millis() as u64
    }

    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        let mut inner = self.lock();
        for part in bytes.chunks_mut(8) {
            let bits = inner.random.bits().to_le_bytes();
            part.copy_from_slice(&bits[..part.len()]);
        }
        Ok(())
    }

    fn start(&self, name: &str, task: Box<dyn Task>) -> io::Result<Arc<dyn Thread>> {
        let mut inner = self.lock();
        inner.threads.push(Slot {
            name: name.to_owned(),
            task: Some(task),
            state: State::Ready,
            woken: false,
        });
        Ok(Arc::new(Turned {
            world: self.myself.clone(),
            number: inner.threads.len() - 1,
        }))
    }

    fn pause(&self, time: Duration) {
        let until = self.elapsed() + time;
        while self.elapsed() < until {
            // Whoever has begun this lets time pass.
            if !aside::gives_way() {
                self.advance(time);
            }
        }
    }
}

/// A thread that makes its steps in whoever turns it.
#[derive(Debug)]
struct Turned {
    world: Weak<Simulated>,
    number: usize,
}

impl Thread for Turned {
    fn wake(&self) {
        if let Some(world) = self.world.upgrade() {
            world.lock().threads[self.number].woken = true;
        }
    }

    fn join(&self) -> bool {
        let Some(world) = self.world.upgrade() else {
            return true;
        };
        for _ in 0..ENDLESS {
            let state = world.lock().threads[self.number].state;
            if matches!(state, State::Ended | State::Busy) {
                return true;
            }
            world.turn(self.number);
        }
        let name = world.lock().threads[self.number].name.clone();
        panic!("'{name}' does not come to its end");
    }

    fn is_turned(&self) -> bool {
        true
    }

    fn turn(&self) {
        let Some(world) = self.world.upgrade() else {
            return;
        };
        // Nobody waits for anything on a machine without power.
        if world.files.is_off() && !std::thread::panicking() {
            resume_unwind(Box::new(PowerCut));
        }
        world.turn(self.number);
    }
}
