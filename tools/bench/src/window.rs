//! From what the load generator counted and what the sampler saw to a visit's figures: both are cut to the same window.

use crate::load::Loaded;
use crate::measured::{Interval, Measured};
use crate::merge;
use crate::results::{Latency, Moment, Operation, Phase, Run};
use crate::sampler::Samples;
use crate::scenario::Scenario;

/// An interval may begin this much before the warm-up's end and still count: generators' clocks tick unevenly.
const EARLY_S: f64 = 0.2;
/// A shorter interval is what was left at the end; its rates say little.
const SHORTEST_S: f64 = 0.5;

/// The part of a run that counts.
#[derive(Debug)]
struct Window<'a> {
    from_us: u64,
    to_us: u64,
    seconds: f64,
    published: u64,
    consumed: u64,
    confirmed: u64,
    /// None where the run was too short to have intervals; then the totals have to do.
    intervals: Vec<&'a Interval>,
}

/// The figures of a visit.
pub fn figures(mut run: Run, scenario: &Scenario, loaded: &Loaded, samples: Option<&Samples>) -> Run {
    let measured = &loaded.measured;
    let whole = scenario.ends_itself || measured.churn.is_some();
    let window = if whole {
        entire(measured)
    } else {
        measured_part(scenario, measured)
    };
    run.seconds = window.seconds;
    (run.published, run.consumed, run.confirmed) = (window.published, window.consumed, window.confirmed);
    let rate = |count: u64| {
        if window.seconds > 0.0 {
            count as f64 / window.seconds
        } else {
            0.0
        }
    };
    (run.publish_rate, run.consume_rate) = (rate(window.published), rate(window.consumed));
    latencies(&mut run, &window, measured);
    run.churn = measured.churn.as_ref().map(|churn| churn.operations.clone());
    run.phases = measured
        .phases
        .iter()
        .map(|phase| Phase {
            name: phase.name.clone(),
            seconds: phase.seconds,
            publish_rate: phase.publish_rate,
            consume_rate: phase.consume_rate,
            depth_at_end: phase.depth_at_end,
        })
        .collect();
    run.over_time = over_time(measured, samples);
    run.load_cpu_percent = load_cpu_percent(&window, loaded.samples.as_ref());
    let load = loaded.samples.as_ref();
    run.stolen_percent = load.and_then(|s| s.stolen_percent_between(window.from_us, window.to_us));
    if let Some(samples) = samples {
        costs(&mut run, &window, samples);
        run.others_percent = others_percent(&window, samples, load);
    }
    run
}

/// The intervals after the warm-up, as far as the window goes; the whole run if that leaves nothing.
fn measured_part<'a>(scenario: &Scenario, measured: &'a Measured) -> Window<'a> {
    let mut seconds = 0.0;
    let mut chosen = Vec::new();
    for interval in &measured.intervals {
        let length = length_s(interval);
        let begins = interval.elapsed_s - length;
        if begins + EARLY_S < scenario.warmup
            || length < SHORTEST_S
            || seconds + SHORTEST_S > scenario.seconds
        {
            continue;
        }
        seconds += length;
        chosen.push(interval);
    }
    let (Some(first), Some(last)) = (chosen.first(), chosen.last()) else {
        return entire(measured);
    };
    Window {
        from_us: first.from_unix_us,
        to_us: last.to_unix_us,
        seconds,
        published: chosen.iter().map(|i| i.published).sum(),
        consumed: chosen.iter().map(|i| i.consumed).sum(),
        confirmed: chosen.iter().map(|i| i.confirmed).sum(),
        intervals: chosen,
    }
}

fn entire(measured: &Measured) -> Window<'_> {
    let total = &measured.total;
    let from_us = measured
        .intervals
        .first()
        .map_or(measured.started_unix_us, |i| i.from_unix_us);
    let to_us = measured
        .intervals
        .last()
        .map_or(measured.finished_unix_us, |i| i.to_unix_us);
    let stamped_s = to_us.saturating_sub(from_us) as f64 / 1e6;
    Window {
        from_us,
        to_us,
        seconds: if total.seconds > 0.0 {
            total.seconds
        } else {
            stamped_s
        },
        published: total.published,
        consumed: total.consumed,
        confirmed: total.confirmed,
        intervals: Vec::new(),
    }
}

fn latencies(run: &mut Run, window: &Window<'_>, measured: &Measured) {
    let total = &measured.total;
    let of = |intervals: &[&Interval], latency: fn(&Interval) -> Option<Latency>| -> Vec<Latency> {
        intervals
            .iter()
            .filter_map(|interval| latency(interval))
            .collect()
    };
    // One row, one set of messages: the totals count where all of the run does, and nowhere beside intervals.
    if window.intervals.is_empty() {
        (run.latency, run.latency_sent) = (total.latency, total.latency_sent);
        run.confirm_latency = total.confirm_latency;
    } else {
        run.latency = merge::merged(&of(&window.intervals, |i| i.latency));
        run.latency_sent = merge::merged(&of(&window.intervals, |i| i.latency_sent));
        run.confirm_latency = merge::merged(&of(&window.intervals, |i| i.confirm_latency));
    }
    // Operations of a churn have no intervals, and those of its background are other messages.
    if measured.churn.is_some() {
        return;
    }
    let all: Vec<&Interval> = measured.intervals.iter().collect();
    let intervals = if window.intervals.is_empty() {
        &all
    } else {
        &window.intervals
    };
    // Of confirms where nobody consumes: the sources' tables are of the latency that the load has.
    run.max_interval = merge::worst(&of(intervals, |i| i.latency))
        .or_else(|| merge::worst(&of(intervals, |i| i.confirm_latency)));
}

/// What the broker spent in the window.
fn costs(run: &mut Run, window: &Window<'_>, samples: &Samples) {
    run.rss_peak_bytes = samples.peak_bytes();
    let (from, to) = (window.from_us, window.to_us);
    let Some((user, system)) = samples.cpu_between(from, to) else {
        return;
    };
    (run.cpu_user_s, run.cpu_system_s) = (Some(user), Some(system));
    let Some(messages) = messages(window, run.churn.as_ref().map(|c| c.values())) else {
        return;
    };
    let each = |sum: f64| sum / messages;
    run.cpu_us_per_message = Some(each((user + system) * 1e6));
    run.written_bytes_per_message = samples.written_between(from, to).map(each);
    run.switches_per_message = samples.switches_between(from, to).map(each);
}

/// What the load generator used in the window, of one core.
fn load_cpu_percent(window: &Window<'_>, samples: Option<&Samples>) -> Option<f64> {
    let (user, system) = samples?.cpu_between(window.from_us, window.to_us)?;
    let seconds = window.to_us.saturating_sub(window.from_us) as f64 / 1e6;
    (seconds > 0.0).then(|| (user + system) / seconds * 100.0)
}

/// What programs other than the broker and the load generator used of the machine in the window.
fn others_percent(window: &Window<'_>, broker: &Samples, load: Option<&Samples>) -> Option<f64> {
    let (from, to) = (window.from_us, window.to_us);
    let used = |samples: &Samples| samples.cpu_between(from, to).map(|(user, system)| user + system);
    broker.others_percent_between(from, to, used(broker)? + used(load?)?)
}

/// What the costs are shared out to: the mean of what was published and what was consumed; one of them where the other
/// isn't done; operations where there are no messages. A churn beside messages has no common measure.
fn messages<'a>(window: &Window<'_>, operations: Option<impl Iterator<Item = &'a Operation>>) -> Option<f64> {
    let (published, consumed) = (window.published as f64, window.consumed as f64);
    let messages = match (published > 0.0, consumed > 0.0) {
        (true, true) => f64::midpoint(published, consumed),
        _ => published + consumed,
    };
    let Some(operations) = operations else {
        return (messages > 0.0).then_some(messages);
    };
    let done: u64 = operations.map(|o| o.count).sum();
    (done > 0 && messages == 0.0).then_some(done as f64)
}

/// All intervals, the warm-up's too: a curve should show how it began.
fn over_time(measured: &Measured, samples: Option<&Samples>) -> Vec<Moment> {
    let (mut published, mut consumed) = (0, 0);
    // By the stamps: a load of several phases counts the seconds of each from its own beginning.
    let began_us = measured.intervals.first().map_or(0, |first| first.from_unix_us);
    let moment = |interval: &Interval| {
        let length = length_s(interval);
        if length <= 0.0 {
            return None;
        }
        published += interval.published;
        consumed += interval.consumed;
        let cpu = samples.and_then(|s| s.cpu_between(interval.from_unix_us, interval.to_unix_us));
        Some(Moment {
            at_s: interval.to_unix_us.saturating_sub(began_us) as f64 / 1e6,
            publish_rate: interval.published as f64 / length,
            consume_rate: interval.consumed as f64 / length,
            depth: u64::saturating_sub(published, consumed),
            p50_us: interval.latency.map(|l| l.p50),
            p99_us: interval.latency.map(|l| l.p99),
            cpu_percent: cpu.map(|(user, system)| (user + system) / length * 100.0),
            rss_bytes: samples.and_then(|s| s.rss_at(interval.to_unix_us)),
        })
    };
    measured.intervals.iter().filter_map(moment).collect()
}

fn length_s(interval: &Interval) -> f64 {
    interval.to_unix_us.saturating_sub(interval.from_unix_us) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::{Churn, Total};
    use crate::process::Usage;
    use crate::sampler::Sample;
    use crate::scenario_file;

    fn scenario() -> Scenario {
        let text = "[[scenario]]\nname='A'\ntitle='a'\nflags=''\nseconds=3\nwarmup=1";
        scenario_file::read(text).unwrap().remove(0)
    }

    /// Intervals of a second from 1,000 s on: the first publishes 7, the others 100 and consume 50.
    fn loaded(count: u64) -> Loaded {
        let interval = |n: u64| Interval {
            from_unix_us: (1_000 + n) * 1_000_000,
            to_unix_us: (1_001 + n) * 1_000_000,
            elapsed_s: (n + 1) as f64,
            published: if n == 0 { 7 } else { 100 },
            consumed: if n == 0 { 0 } else { 50 },
            ..Interval::default()
        };
        let measured = Measured {
            intervals: (0..count).map(interval).collect(),
            total: Total {
                seconds: count as f64,
                published: 1_000,
                ..Total::default()
            },
            ..Measured::default()
        };
        Loaded {
            measured,
            samples: None,
        }
    }

    /// CPU time runs at half a core, bytes at 1,000 a second.
    fn samples() -> Samples {
        let sample = |n: u64| Sample {
            unix_us: 999_950_000 + n * 100_000,
            usage: Usage {
                user_s: 0.03 * n as f64,
                system_s: 0.02 * n as f64,
                rss_bytes: 1 << 20,
                written_bytes: Some(100 * n),
            },
            switches: None,
            processors: None,
        };
        Samples {
            samples: (0..70).map(sample).collect(),
            ..Samples::default()
        }
    }

    #[test]
    fn the_time_of_a_second_phase_goes_on_after_the_first() {
        let mut loaded = loaded(4);
        for (interval, elapsed_s) in loaded.measured.intervals.iter_mut().zip([1.0, 2.0, 1.0, 2.0]) {
            interval.elapsed_s = elapsed_s;
        }
        let times: Vec<f64> = over_time(&loaded.measured, None).iter().map(|m| m.at_s).collect();
        assert_eq!(times, [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn the_window_leaves_out_the_warm_up_and_what_comes_after() {
        let run = figures(Run::empty(0, 0), &scenario(), &loaded(6), None);
        assert_eq!((run.seconds, run.published, run.consumed), (3.0, 300, 150));
        assert_eq!((run.publish_rate, run.consume_rate), (100.0, 50.0));
        assert_eq!(run.over_time.len(), 6);
        assert_eq!(run.over_time[2].depth, 7 + 100);
        assert_eq!(run.over_time[2].at_s, 3.0);
        assert_eq!(run.cpu_us_per_message, None);
    }

    #[test]
    fn all_latencies_of_a_row_are_of_the_same_messages() {
        let of = |count| {
            Some(Latency {
                count,
                min: 7.0,
                max: 7.0,
                ..Latency::default()
            })
        };
        let mut loaded = loaded(6);
        for interval in &mut loaded.measured.intervals {
            (interval.latency, interval.latency_sent) = (of(50), of(50));
        }
        let total = &mut loaded.measured.total;
        (total.latency, total.latency_sent) = (of(307), of(307));
        let run = figures(Run::empty(0, 0), &scenario(), &loaded, None);
        assert_eq!(run.latency.unwrap().count, 150);
        assert_eq!(run.latency_sent.unwrap().count, 150);
    }

    #[test]
    fn a_run_that_counts_as_a_whole_has_a_worst_interval_too() {
        let mut loaded = loaded(1);
        loaded.measured.intervals[0].latency = Some(Latency {
            count: 9,
            p99: 40.0,
            ..Latency::default()
        });
        let run = figures(Run::empty(0, 0), &scenario(), &loaded, None);
        assert_eq!(run.max_interval.unwrap().p99, 40.0);
    }

    #[test]
    fn a_run_too_short_for_a_window_counts_as_a_whole() {
        let run = figures(Run::empty(0, 0), &scenario(), &loaded(1), None);
        assert_eq!((run.seconds, run.published), (1.0, 1_000));
    }

    #[test]
    fn cpu_time_and_bytes_are_shared_out_to_the_windows_messages() {
        let run = figures(Run::empty(0, 0), &scenario(), &loaded(6), Some(&samples()));
        // 3 s at half a core for the mean of 300 and 150 messages.
        let cpu = run.cpu_us_per_message.unwrap();
        assert!((cpu - 1_500_000.0 / 225.0).abs() < 0.01, "{cpu}");
        let written = run.written_bytes_per_message.unwrap();
        assert!((written - 3_000.0 / 225.0).abs() < 0.01, "{written}");
        assert_eq!(run.rss_peak_bytes, Some(1 << 20));
        let percent = run.over_time[1].cpu_percent.unwrap();
        assert!((percent - 50.0).abs() < 0.01, "{percent}");
        let mut loaded = loaded(6);
        loaded.samples = Some(samples());
        let generator = figures(Run::empty(0, 0), &scenario(), &loaded, None)
            .load_cpu_percent
            .unwrap();
        assert!((generator - 50.0).abs() < 0.01, "{generator}");
    }

    #[test]
    fn churn_costs_are_by_operation_unless_messages_flow_beside_it() {
        let mut churned = loaded(4);
        churned.measured.total.published = 0;
        let operation = Operation {
            count: 1_000,
            rate: 250.0,
            latency: None,
        };
        churned.measured.churn = Some(Churn {
            operations: [("bind".to_owned(), operation)].into(),
            ..Churn::default()
        });
        let run = figures(Run::empty(0, 0), &scenario(), &churned, Some(&samples()));
        let cpu = run.cpu_us_per_message.unwrap();
        assert!((cpu - 2_000.0).abs() < 1.0, "{cpu}");
        churned.measured.total.published = 5;
        let run = figures(Run::empty(0, 0), &scenario(), &churned, Some(&samples()));
        assert_eq!(run.cpu_us_per_message, None);
        assert!(run.cpu_user_s.is_some());
    }
}
