//! The clocks: a monotonic one that other processes on the machine share, and the wall clock.

use rustix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds of the system's monotonic clock: the one that Java's `System.nanoTime` reads, so that stamps of PerfTest and
/// of other processes on the same machine can be compared.
#[inline]
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}

/// Microseconds since 1970.
pub fn unix_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Milliseconds since 1970: what `--use-millis` stamps messages with.
pub fn unix_ms() -> u64 {
    unix_us() / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_does_not_go_back() {
        let first = now();
        assert!(now() >= first);
        assert!(first > 0);
    }
}
