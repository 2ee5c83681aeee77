//! How long a thread that sleeps takes to run after it was asked to. Below saturation a broker's threads sleep between messages,
//! and so each step of a message waits for this; a processor that its virtual machine gave back to the host takes longest.

use crate::processors;
use crate::results::Probe;
use std::fs;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const WAKES: u32 = 2_000;
/// Between two of them: what lies between two messages of `L1`.
const REST: Duration = Duration::from_micros(100);
const HALT_POLL: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";

/// Wakes a thread on one processor from another one. `None` where there is one only, or where threads may not be pinned.
pub fn look(cores: usize) -> Option<Probe> {
    if cores < 2 {
        return None;
    }
    let (ask, asked) = mpsc::channel::<Instant>();
    let times = thread::scope(|scope| {
        let sleeper = scope.spawn(move || {
            let pinned = processors::pin(&[1]);
            let times: Vec<f64> = asked.iter().map(|at| at.elapsed().as_secs_f64() * 1e6).collect();
            pinned.ok().map(|()| times)
        });
        let waker = scope.spawn(move || {
            processors::pin(&[0]).ok()?;
            for _ in 0..WAKES {
                let due = Instant::now() + REST;
                while Instant::now() < due {}
                if ask.send(Instant::now()).is_err() {
                    break;
                }
            }
            Some(())
        });
        waker.join().ok()??;
        sleeper.join().ok()?
    });
    times.map(Probe::of)
}

/// How long an idle processor of this virtual machine looks for work before it is given back to the host, in microseconds.
/// `None` where nothing of the kind is set: on real machines, and with other drivers.
pub fn halt_poll_us() -> Option<f64> {
    let ns: f64 = fs::read_to_string(HALT_POLL).ok()?.trim().parse().ok()?;
    Some(ns / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_wakes_as_often_as_it_is_asked_to() {
        let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        if let Some(wakes) = look(cores) {
            assert_eq!(wakes.count, WAKES);
            assert!(
                wakes.p50 > 0.0 && wakes.p50 <= wakes.p99 && wakes.p99 <= wakes.max,
                "{wakes:?}"
            );
        }
        assert_eq!(look(1), None);
    }
}
