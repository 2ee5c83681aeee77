//! What the system says of this process, and what is made of many figures.

use std::fs;
use std::time::Duration;

/// What this process has used of the processors, of all its threads, also of those that have ended: to a hundredth of a second.
pub fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let used = after_name
        .split(' ')
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse().unwrap_or(0));
    Duration::from_millis(used.sum::<u64>() * 10)
}

/// The memory that this process has in use, in bytes, without what its files have in the system's cache.
pub fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}

/// The one below which so many of a hundred are. Zero if there are none.
pub fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(at).copied().unwrap_or_default()
}

/// Thousandths of a second, as they are printed.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
