//! Waiting for sockets, for a moment and for other threads, all at once and to the microsecond.

use crate::clock;
use mio::{Events, Interest, Poll, Registry, Token, Waker};
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

/// The token of the waker; links have their index.
const WAKER: Token = Token(usize::MAX);
/// The token of the timer.
const TIMER: Token = Token(usize::MAX - 1);
/// Nobody sleeps longer, in nanoseconds: heartbeats and timeouts are looked after this often.
pub const LONGEST: u64 = 500_000_000;

/// What a thread sleeps on.
pub struct Waiting {
    poll: Poll,
    events: Events,
    waker: Arc<Waker>,
    timer: Timer,
}

/// What happened to a link's socket.
#[derive(Debug, Clone, Copy)]
pub struct Ready {
    pub link: usize,
    pub readable: bool,
    pub writable: bool,
}

impl Waiting {
    /// # Errors
    /// If the system has no more descriptors.
    pub fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let timer = Timer::new(poll.registry())?;
        Ok(Self {
            poll,
            events: Events::with_capacity(1024),
            waker,
            timer,
        })
    }

    /// Wakes the thread from elsewhere.
    pub fn waker(&self) -> Arc<Waker> {
        self.waker.clone()
    }

    /// Watches a socket, for reading and writing, until it is closed.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn watch(&self, descriptor: RawFd, link: usize) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll
            .registry()
            .register(&mut mio::unix::SourceFd(&descriptor), Token(link), interest)
    }

    /// Sleeps until something happens, at the latest until `deadline` (nanoseconds of [`clock::now`]); 0 does not sleep.
    ///
    /// # Errors
    /// If the system refuses, which it does not.
    pub fn wait(&mut self, deadline: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        let timeout = if deadline == 0 {
            Duration::ZERO
        } else {
            self.timer.arm(deadline)?
        };
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        for event in &self.events {
            match event.token() {
                WAKER => {}
                TIMER => self.timer.expired(),
                Token(link) => ready.push(Ready {
                    link,
                    readable: event.is_readable() || event.is_read_closed() || event.is_error(),
                    writable: event.is_writable() || event.is_write_closed(),
                }),
            }
        }
        Ok(())
    }
}

/// A timer of the kernel: `epoll_wait` counts in milliseconds, which is too coarse for 10,000 messages a second.
#[cfg(target_os = "linux")]
struct Timer {
    descriptor: std::os::fd::OwnedFd,
    armed_for: u64,
}

#[cfg(target_os = "linux")]
impl Timer {
    fn new(registry: &Registry) -> io::Result<Self> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        use std::os::fd::AsRawFd;
        let descriptor = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        registry.register(
            &mut mio::unix::SourceFd(&descriptor.as_raw_fd()),
            TIMER,
            Interest::READABLE,
        )?;
        Ok(Self {
            descriptor,
            armed_for: 0,
        })
    }

    /// Arms the timer and tells how long to wait beside it.
    fn arm(&mut self, deadline: u64) -> io::Result<Duration> {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        if deadline != self.armed_for {
            let at = Timespec {
                tv_sec: (deadline / 1_000_000_000) as i64,
                tv_nsec: (deadline % 1_000_000_000) as i64,
            };
            let never_again = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            timerfd_settime(
                &self.descriptor,
                TimerfdTimerFlags::ABSTIME,
                &Itimerspec {
                    it_interval: never_again,
                    it_value: at,
                },
            )?;
            self.armed_for = deadline;
        }
        Ok(Duration::from_nanos(LONGEST))
    }

    /// The next deadline is armed anew, which also forgets that this one went off.
    fn expired(&mut self) {
        self.armed_for = 0;
    }
}

/// Elsewhere than on Linux a wait is as exact as the system's poll.
#[cfg(not(target_os = "linux"))]
struct Timer;

#[cfg(not(target_os = "linux"))]
impl Timer {
    fn new(_registry: &Registry) -> io::Result<Self> {
        Ok(Self)
    }

    fn arm(&mut self, deadline: u64) -> io::Result<Duration> {
        Ok(Duration::from_nanos(
            deadline.saturating_sub(clock::now()).min(LONGEST),
        ))
    }

    fn expired(&mut self) {}
}

/// The later of now and `deadline`, as something to sleep until, at most [`LONGEST`] away.
pub fn bounded(deadline: Option<u64>) -> u64 {
    let latest = clock::now() + LONGEST;
    deadline.map_or(latest, |at| at.clamp(1, latest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_at_its_deadline_and_not_before() {
        let mut waiting = Waiting::new().unwrap();
        let mut ready = Vec::new();
        for pause in [200_000, 1_300_000, 50_000] {
            let deadline = clock::now() + pause;
            while clock::now() < deadline {
                waiting.wait(deadline, &mut ready).unwrap();
            }
        }
        assert!(ready.is_empty());
    }

    #[test]
    fn another_thread_wakes_a_sleeper() {
        let mut waiting = Waiting::new().unwrap();
        let waker = waiting.waker();
        let thread = std::thread::spawn(move || waker.wake());
        let before = clock::now();
        waiting.wait(before + 30_000_000_000, &mut Vec::new()).unwrap();
        thread.join().unwrap().unwrap();
    }
}
