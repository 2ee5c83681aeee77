//! File descriptors. Every connection takes one, and so do the files of the log: clients must not use up what those need.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// How many are kept for files: 256 segments, the log's files, and what is opened for a moment.
const RESERVE: u64 = 384;
/// At most this part of a low limit is kept.
const RESERVE_PART: u64 = 2;
/// How often it is told that connections are refused.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Raises the process's limit as far as the system lets it. Returns what it was and what it is.
///
/// # Errors
/// The system does not allow it; the limit is what it was.
pub fn raise() -> io::Result<(u64, u64)> {
    let limit = getrlimit(Resource::Nofile);
    let before = limit.current.unwrap_or(u64::MAX);
    let most = limit.maximum.unwrap_or(u64::MAX);
    if before < most {
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: limit.maximum,
                ..limit
            },
        )?;
    }
    Ok((before, most))
}

/// Descriptors that clients may use: as the system gives out the lowest number that is free, a connection with this number or a
/// higher one would reach into the reserve.
pub(crate) fn for_clients() -> u64 {
    of(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
}

fn of(limit: u64) -> u64 {
    limit - RESERVE.min(limit / RESERVE_PART)
}

/// Tells of what happens often now and then, with how often it happened.
#[derive(Debug, Default)]
pub(crate) struct NowAndThen {
    told: Mutex<(Option<Instant>, u64)>,
}

impl NowAndThen {
    /// It happened. If it is time to tell, how often since the last time.
    pub(crate) fn again(&self, now: Instant) -> Option<u64> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, times) = &mut *told;
        *times += 1;
        if last.is_some_and(|last| now.saturating_duration_since(last) < TELL_EVERY) {
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_any_limit_is_kept_from_clients() {
        assert_eq!([0, 100, 1024, 1 << 20].map(of), [0, 50, 640, (1 << 20) - 384]);
    }

    #[test]
    fn the_limit_is_raised_as_far_as_it_goes() {
        let (before, now) = raise().unwrap();
        assert!(before <= now);
        assert_eq!(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), now);
    }

    #[test]
    fn what_happens_often_is_told_with_how_often() {
        let (told, start) = (NowAndThen::default(), Instant::now());
        assert_eq!(told.again(start), Some(1));
        assert_eq!(told.again(start + Duration::from_secs(1)), None);
        assert_eq!(told.again(start + Duration::from_secs(11)), Some(2));
    }
}
