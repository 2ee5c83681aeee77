//! What `/proc` tells about this process and its machine, under the names that micrometer has for a JVM's.

use super::meter::Meter;
use crate::plan::Exporting;
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::Duration;

/// The last look, which rates are taken against.
#[derive(Debug)]
pub struct Process {
    processor: bool,
    memory: bool,
    threads: bool,
    cpus: f64,
    cpu_time: Duration,
    /// Ticks of all processors: busy and all.
    ticks: Option<(u64, u64)>,
    process_usage: f64,
    system_usage: f64,
    peak_threads: f64,
}

impl Process {
    pub fn new(exporting: &Exporting) -> Self {
        Self {
            processor: exporting.processor,
            memory: exporting.memory,
            threads: exporting.threads,
            cpus: std::thread::available_parallelism().map_or(1.0, |cpus| cpus.get() as f64),
            cpu_time: cpu_time(),
            ticks: ticks(&read("/proc/stat")),
            process_usage: 0.0,
            system_usage: 0.0,
            peak_threads: 0.0,
        }
    }

    /// Looks again after `interval`.
    pub fn update(&mut self, interval: Duration) {
        if self.processor {
            let now = cpu_time();
            let used = now.saturating_sub(self.cpu_time).as_secs_f64();
            let had = interval.as_secs_f64() * self.cpus;
            self.process_usage = if had > 0.0 {
                (used / had).clamp(0.0, 1.0)
            } else {
                0.0
            };
            self.cpu_time = now;
            let now = ticks(&read("/proc/stat"));
            if let (Some(before), Some(now)) = (self.ticks, now) {
                self.system_usage = usage(before, now);
            }
            self.ticks = now;
        }
        if self.threads {
            self.peak_threads = self.peak_threads.max(threads(&read("/proc/self/status")));
        }
    }

    /// What was asked for; what the machine does not tell is left out.
    pub fn meters(&self) -> Vec<Meter> {
        let mut meters = Vec::new();
        if self.processor {
            let cpu_ns = cpu_time().as_nanos() as f64;
            meters.extend([
                Meter::counter("process.cpu.time", cpu_ns)
                    .with_help("_ns_total", "The \"cpu time\" used by this process"),
                Meter::gauge("process.cpu.usage", self.process_usage)
                    .with_help("", "The \"recent cpu usage\" of this process"),
                Meter::gauge("system.cpu.count", self.cpus)
                    .with_help("", "The number of processors available to this process"),
                Meter::gauge("system.cpu.usage", self.system_usage).with_help(
                    "",
                    "The \"recent cpu usage\" of the system this process is running in",
                ),
            ]);
            let load = read("/proc/loadavg");
            if let Some(load) = load.split_whitespace().next().and_then(|load| load.parse().ok()) {
                meters.push(
                    Meter::gauge("system.load.average.1m", load)
                        .with_help("", "The number of runnable threads, averaged over a minute"),
                );
            }
        }
        let status = if self.memory || self.threads {
            read("/proc/self/status")
        } else {
            String::new()
        };
        if self.memory {
            for (name, key, help) in [
                (
                    "jvm.memory.used",
                    "VmRSS:",
                    "The amount of memory of this process that is resident",
                ),
                (
                    "jvm.memory.committed",
                    "VmSize:",
                    "The amount of memory that this process has mapped",
                ),
            ] {
                if let Some(kb) = field(&status, key) {
                    let meter = Meter::gauge(name, kb * 1_024.0).with_help("_bytes", help);
                    meters.push(meter.with_label("area", "heap").with_label("id", "process"));
                }
            }
        }
        if self.threads {
            let live = threads(&status);
            meters.extend([
                Meter::gauge("jvm.threads.live", live)
                    .with_help("_threads", "The current number of live threads"),
                Meter::gauge("jvm.threads.peak", self.peak_threads.max(live))
                    .with_help("_threads", "The most threads that were alive at a time"),
            ]);
        }
        meters
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs().min(999_999_999) as u32,
    )
}

fn threads(status: &str) -> f64 {
    field(status, "Threads:").unwrap_or(0.0)
}

/// The number after a key of `/proc/self/status`.
fn field(status: &str, key: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Busy and all ticks from the first line of `/proc/stat`; the fourth and fifth number are idle and waiting for disks,
/// and those from the ninth on are counted among the first two already.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let numbers: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .map_while(|number| number.parse().ok())
        .collect();
    let all: u64 = numbers.iter().sum();
    let idle: u64 = numbers.get(3..5)?.iter().sum();
    Some((all - idle, all))
}

fn usage(before: (u64, u64), now: (u64, u64)) -> f64 {
    let (busy, all) = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
    if all == 0 {
        0.0
    } else {
        (busy as f64 / all as f64).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_of_the_machine_is_the_busy_part_between_two_looks() {
        let before = ticks("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3 4").unwrap();
        let now = ticks("cpu  130 0 60 840 70 0 0 0 0 0").unwrap();
        assert_eq!((before, now), ((150, 1_000), (190, 1_100)));
        assert_eq!(usage(before, now), 0.4);
        assert_eq!(usage(now, before), 0.0);
    }

    #[test]
    fn what_the_machine_does_not_tell_is_left_out() {
        assert_eq!(ticks(""), None);
        assert_eq!(ticks("cpu  1 2 x"), None);
        assert_eq!(field("Threads:\tmany", "Threads:"), None);
        assert_eq!(field("VmRSS:\t  2048 kB\n", "VmRSS:"), Some(2_048.0));
    }

    #[test]
    fn this_process_has_memory_threads_and_a_processor() {
        let all = Exporting {
            processor: true,
            memory: true,
            threads: true,
            ..Exporting::default()
        };
        let mut process = Process::new(&all);
        process.update(Duration::from_secs(1));
        let meters = process.meters();
        for name in [
            "process.cpu.time",
            "system.cpu.count",
            "jvm.memory.used",
            "jvm.threads.live",
        ] {
            let meter = meters.iter().find(|meter| meter.name == name).unwrap();
            let (super::super::Kind::Gauge(value) | super::super::Kind::Counter(value)) = meter.kind else {
                panic!("{meter:?}")
            };
            assert!(value > 0.0, "{meter:?}");
        }
        assert_eq!(Process::new(&Exporting::default()).meters(), []);
    }
}
