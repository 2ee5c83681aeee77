//! Samples of a broker's process while a load runs, with stamps of the wall clock, so that they can be laid beside the
//! load generator's intervals.

use crate::process::{ProcessTree, Usage};
use crate::processors::Processors;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Short enough that interpolating between two samples is wrong by little.
const PERIOD: Duration = Duration::from_millis(100);
/// Each time costs a read for every thread of the broker, so it isn't done at every sample.
const SWITCHES_EVERY: u32 = 5;
/// A broker may fork in the middle of a run; looking for it reads a file of every process.
const MEMBERS_EVERY: u32 = 20;
/// Of `/proc/stat`, on all of Linux's platforms.
const TICKS_A_SECOND: f64 = 100.0;
/// Times outside the samples by more than this are not answered.
const SLACK_US: u64 = 500_000;

/// What was seen at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    pub unix_us: u64,
    pub usage: Usage,
    pub switches: Option<u64>,
    /// The whole machine's.
    pub processors: Option<Processors>,
}

/// All samples of a visit, in the order of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Samples {
    pub samples: Vec<Sample>,
    /// The kernel's own peak, where it could be reset at the start.
    pub peak_bytes: Option<u64>,
    /// The process ended while it was watched.
    pub died: bool,
}

impl Samples {
    /// CPU time, user and system, between two moments.
    pub fn cpu_between(&self, from_us: u64, to_us: u64) -> Option<(f64, f64)> {
        let user = self.between(from_us, to_us, |s| Some(s.usage.user_s))?;
        let system = self.between(from_us, to_us, |s| Some(s.usage.system_s))?;
        Some((user, system))
    }

    /// Bytes written between two moments.
    pub fn written_between(&self, from_us: u64, to_us: u64) -> Option<f64> {
        self.between(from_us, to_us, |s| s.usage.written_bytes.map(|b| b as f64))
    }

    /// Context switches between two moments.
    pub fn switches_between(&self, from_us: u64, to_us: u64) -> Option<f64> {
        self.between(from_us, to_us, |s| s.switches.map(|n| n as f64))
    }

    /// Which share of the machine's processor time went to other virtual machines between two moments, in per cent.
    pub fn stolen_percent_between(&self, from_us: u64, to_us: u64) -> Option<f64> {
        let all = self.between(from_us, to_us, |s| s.processors.map(|p| p.all as f64))?;
        let stolen = self.between(from_us, to_us, |s| s.processors.map(|p| p.stolen as f64))?;
        (all > 0.0).then(|| stolen / all * 100.0)
    }

    /// Which share of the machine's processor time programs used between two moments, in per cent, beside those that used
    /// `known_s` seconds of it.
    pub fn others_percent_between(&self, from_us: u64, to_us: u64, known_s: f64) -> Option<f64> {
        let all = self.between(from_us, to_us, |s| s.processors.map(|p| p.all as f64))?;
        let used = self.between(from_us, to_us, |s| s.processors.map(|p| p.programs as f64))?;
        let known = known_s * TICKS_A_SECOND;
        (all > 0.0).then(|| (used - known).max(0.0) / all * 100.0)
    }

    /// The largest resident size that was seen or, where the kernel kept it for us, that there was.
    pub fn peak_bytes(&self) -> Option<u64> {
        let seen = self.samples.iter().map(|s| s.usage.rss_bytes).max();
        seen.max(self.peak_bytes)
    }

    /// The resident size at the last sample up to a moment.
    pub fn rss_at(&self, unix_us: u64) -> Option<u64> {
        let until = self.samples.partition_point(|s| s.unix_us <= unix_us);
        Some(self.samples.get(until.checked_sub(1)?)?.usage.rss_bytes)
    }

    fn between(&self, from_us: u64, to_us: u64, value: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        let points: Vec<(u64, f64)> = self
            .samples
            .iter()
            .filter_map(|s| Some((s.unix_us, value(s)?)))
            .collect();
        let difference = interpolate(&points, to_us)? - interpolate(&points, from_us)?;
        (difference >= 0.0).then_some(difference)
    }
}

/// The value at a moment, on the straight line between the points around it.
fn interpolate(points: &[(u64, f64)], at: u64) -> Option<f64> {
    let after = points.partition_point(|(t, _)| *t < at);
    let Some(&(t1, v1)) = points.get(after) else {
        let &(last, value) = points.last()?;
        return (at - last <= SLACK_US).then_some(value);
    };
    let Some(&(t0, v0)) = after.checked_sub(1).and_then(|i| points.get(i)) else {
        return (t1 - at <= SLACK_US).then_some(v1);
    };
    let share = (at - t0) as f64 / (t1 - t0) as f64;
    Some(v0 + (v1 - v0) * share)
}

/// A thread that takes samples until it is told to stop.
#[derive(Debug)]
pub struct Sampler {
    stop: Sender<()>,
    thread: JoinHandle<Samples>,
}

impl Sampler {
    /// Begins to watch a process, or several as one.
    ///
    /// # Errors
    /// There is no such process, or no thread could be started.
    pub fn start(pids: &[u32]) -> Result<Self, String> {
        let tree = ProcessTree::new(pids)?;
        let (stop, stopped) = mpsc::channel();
        let watch = move || {
            watch(tree, |period| {
                stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout)
            })
        };
        let thread = thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(watch)
            .map_err(|e| format!("no thread for the sampler: {e}"))?;
        Ok(Self { stop, thread })
    }

    /// Ends it and takes what it saw.
    pub fn finish(self) -> Samples {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

/// Takes samples for as long as `wait` says to go on.
fn watch(mut tree: ProcessTree, wait: impl Fn(Duration) -> bool) -> Samples {
    let resettable = tree.reset_peak();
    let mut found = Samples::default();
    for turn in 0_u32.. {
        if turn % MEMBERS_EVERY == MEMBERS_EVERY - 1 {
            tree.find_members();
        }
        let Some(usage) = tree.usage() else {
            found.died = true;
            break;
        };
        let switches = turn
            .is_multiple_of(SWITCHES_EVERY)
            .then(|| tree.switches())
            .flatten();
        found.samples.push(Sample {
            unix_us: now_unix_us(),
            usage,
            switches,
            processors: Processors::now(),
        });
        if !wait(PERIOD) {
            break;
        }
    }
    if resettable {
        found.peak_bytes = tree.peak_bytes();
    }
    found
}

/// The wall clock, which the load generator stamps its intervals with too.
pub fn now_unix_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(unix_us: u64, user_s: f64, written: u64) -> Sample {
        Sample {
            unix_us,
            usage: Usage {
                user_s,
                system_s: user_s / 2.0,
                rss_bytes: written,
                written_bytes: Some(written),
            },
            switches: None,
            processors: Some(Processors {
                all: unix_us / 5_000,
                programs: unix_us / 8_000,
                stolen: (user_s * 10.0) as u64,
            }),
        }
    }

    fn made_up() -> Samples {
        Samples {
            samples: vec![
                sample(1_000_000, 1.0, 100),
                sample(2_000_000, 2.0, 300),
                sample(3_000_000, 4.0, 200),
            ],
            ..Samples::default()
        }
    }

    #[test]
    fn cpu_time_is_interpolated_at_the_borders_of_a_window() {
        let (user, system) = made_up().cpu_between(1_500_000, 2_250_000).unwrap();
        assert!((user - 1.0).abs() < 1e-9, "{user}");
        assert!((system - 0.5).abs() < 1e-9, "{system}");
    }

    #[test]
    fn a_window_far_outside_the_samples_has_no_answer() {
        assert!(made_up().cpu_between(900_000, 3_100_000).is_some());
        assert_eq!(made_up().cpu_between(100_000, 2_000_000), None);
        assert_eq!(made_up().cpu_between(1_000_000, 4_000_000), None);
        assert_eq!(Samples::default().cpu_between(1, 2), None);
    }

    #[test]
    fn a_counter_that_falls_has_no_answer() {
        assert_eq!(made_up().written_between(2_000_000, 3_000_000), None);
        assert_eq!(made_up().written_between(1_000_000, 2_000_000), Some(200.0));
        assert_eq!(made_up().switches_between(1_000_000, 2_000_000), None);
    }

    #[test]
    fn what_was_stolen_is_a_share_of_all_processors_time() {
        // 200 ticks a second; 10 of them are stolen in the first second, 20 in the next.
        let percent = |from, to| made_up().stolen_percent_between(from, to);
        assert_eq!(percent(1_000_000, 2_000_000), Some(5.0));
        assert_eq!(percent(2_000_000, 3_000_000), Some(10.0));
        assert_eq!(percent(100_000, 3_000_000), None);
    }

    #[test]
    fn what_other_programs_used_is_what_nobody_known_did() {
        // Programs use 125 of 200 ticks a second; one processor second is known to be the broker's.
        let percent = |known_s| made_up().others_percent_between(1_000_000, 2_000_000, known_s);
        assert_eq!(percent(1.0), Some(12.5));
        assert_eq!(percent(2.0), Some(0.0), "never less than nothing");
    }

    #[test]
    fn resident_memory_is_that_of_the_last_sample_before() {
        assert_eq!(made_up().rss_at(2_999_999), Some(300));
        assert_eq!(made_up().rss_at(999_999), None);
        assert_eq!(made_up().peak_bytes(), Some(300));
    }

    #[test]
    fn our_own_process_is_sampled_until_the_sampler_is_stopped() {
        let found = Sampler::start(&[std::process::id()]).unwrap().finish();
        assert!(!found.samples.is_empty());
        assert!(!found.died);
        assert!(found.peak_bytes().unwrap() > 0);
    }
}
