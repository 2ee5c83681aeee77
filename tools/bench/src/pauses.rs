//! How long the machine's processors stand still although there is work: a thread on each of them asks for the time without a
//! rest, and what lies between two answers is a pause. No latency measured here is free of them.

use crate::results::Pauses;
use std::thread;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_secs(2);
/// Shorter ones are interrupts' work.
const PAUSE: Duration = Duration::from_micros(500);

/// Looks for two seconds at so many processors.
pub fn look(cores: usize) -> Pauses {
    let seen: Vec<Pauses> = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores)
            .map(|_| scope.spawn(|| pauses_until(Instant::now() + LOOK)))
            .collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect()
    });
    let count = seen.len().max(1) as f64;
    Pauses {
        percent: seen.iter().map(|p| p.percent).sum::<f64>() / count,
        longest_us: seen.iter().map(|p| p.longest_us).fold(0.0, f64::max),
    }
}

fn pauses_until(end: Instant) -> Pauses {
    let (mut last, mut sum, mut longest) = (Instant::now(), Duration::ZERO, Duration::ZERO);
    while last < end {
        let now = Instant::now();
        let pause = now - last;
        if pause >= PAUSE {
            sum += pause;
            longest = longest.max(pause);
        }
        last = now;
    }
    Pauses {
        percent: sum.as_secs_f64() / LOOK.as_secs_f64() * 100.0,
        longest_us: longest.as_secs_f64() * 1e6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_threads_than_processors_make_each_other_wait() {
        let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let pauses = look(cores * 2);
        assert!(pauses.percent > 10.0 && pauses.percent <= 100.0, "{pauses:?}");
        assert!(pauses.longest_us >= 500.0, "{pauses:?}");
    }
}
