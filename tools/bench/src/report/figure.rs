//! The figures that tables show and ratios are taken of, and why one may be missing.

use crate::results::{Latency, Results, Run, ScenarioResult};
use charts::shown;

/// A figure of a visit.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    pub heading: &'static str,
    /// In a ratio: `1/42 of the CPU`. None where a ratio says little.
    pub noun: Option<&'static str>,
    pub of: fn(&Run) -> Option<f64>,
    pub show: fn(f64) -> String,
    source: Source,
}

/// Where a figure comes from, which tells why it may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Load,
    Latency,
    Interval,
    Sending,
    Process,
    Tracing,
    Machine,
}

const fn figure(
    heading: &'static str,
    noun: Option<&'static str>,
    of: fn(&Run) -> Option<f64>,
    show: fn(f64) -> String,
    source: Source,
) -> Figure {
    Figure {
        heading,
        noun,
        of,
        show,
        source,
    }
}

pub const CPU: Figure = figure(
    "CPU per message",
    Some("CPU"),
    |run| run.cpu_us_per_message,
    shown::time_us,
    Source::Process,
);
pub const RATE: Figure = figure("rate, 1/s", Some("rate"), Run::rate, shown::number, Source::Load);
/// What goes in, or out where nothing is published: what a rate that was asked for is held against.
pub const ACHIEVED: Figure = figure(
    "rate, 1/s",
    None,
    |run| Some(run.publish_rate).filter(|r| *r > 0.0).or_else(|| run.rate()),
    shown::number,
    Source::Load,
);
pub const P50: Figure = figure("p50", None, p50, shown::time_us, Source::Latency);
pub const P99: Figure = figure("p99", Some("p99"), p99, shown::time_us, Source::Latency);

pub const RSS: Figure = figure(
    "RSS peak",
    None,
    |run| run.rss_peak_bytes.map(|b| b as f64),
    |b| shown::megabytes(b as u64),
    Source::Process,
);

/// The columns of the first table, the main figure first.
pub const MAIN: [Figure; 5] = [CPU, RATE, P50, P99, RSS];

/// Those of the second table: one with all of them would be wider than a page.
pub const FURTHER: [Figure; 8] = [
    figure(
        "p99.9",
        None,
        |r| latency(r, |l| l.p99_9),
        shown::time_us,
        Source::Latency,
    ),
    figure(
        "max",
        None,
        |r| latency(r, |l| l.max),
        shown::time_us,
        Source::Latency,
    ),
    figure(
        "p99, worst interval",
        None,
        |r| Some(r.max_interval?.p99),
        shown::time_us,
        Source::Interval,
    ),
    figure(
        "p99 from sending",
        None,
        |r| Some(r.latency_sent?.p99),
        shown::time_us,
        Source::Sending,
    ),
    figure(
        "written per message",
        None,
        |r| r.written_bytes_per_message,
        bytes,
        Source::Process,
    ),
    figure(
        "syncs per message",
        None,
        |r| r.syncs_per_message,
        syncs,
        Source::Tracing,
    ),
    figure(
        "stolen",
        None,
        |r| r.stolen_percent,
        shown::percent,
        Source::Machine,
    ),
    figure(
        "other programs",
        None,
        |r| r.others_percent,
        shown::percent,
        Source::Machine,
    ),
];

fn latency(run: &Run, of: fn(&Latency) -> f64) -> Option<f64> {
    run.main_latency().map(|l| of(&l))
}

fn p50(run: &Run) -> Option<f64> {
    latency(run, |l| l.p50)
}

fn p99(run: &Run) -> Option<f64> {
    latency(run, |l| l.p99)
}

/// Less than a tenth of a byte a message is what the broker writes anyway.
fn bytes(value: f64) -> String {
    let value = if value < 0.05 { 0.0 } else { value };
    format!("{} B", shown::number(value))
}

/// Syncs are few: `1/69` reads better than `0.0145`.
fn syncs(value: f64) -> String {
    if value > 0.0 && value < 0.5 {
        format!("1/{:.0}", 1.0 / value)
    } else {
        shown::number(value)
    }
}

/// The least, the median and the greatest of a target's rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    pub rounds: usize,
}

/// A figure over a target's rounds.
pub fn spread(scenario: &ScenarioResult, target: usize, of: impl Fn(&Run) -> Option<f64>) -> Option<Spread> {
    let values: Vec<f64> = scenario
        .runs_of(target)
        .filter_map(of)
        .filter(|v| v.is_finite())
        .collect();
    spread_of(&values)
}

/// The same of values that are at hand.
pub fn spread_of(values: &[f64]) -> Option<Spread> {
    Some(Spread {
        median: crate::statistics::median(values)?,
        low: charts::scale::least(values.iter().copied())?,
        high: charts::scale::greatest(values.iter().copied())?,
        rounds: values.len(),
    })
}

/// How many rounds both targets have the figure of.
pub fn pairs(scenario: &ScenarioResult, other: usize, of: fn(&Run) -> Option<f64>) -> usize {
    scenario
        .runs_of(0)
        .filter(|a| of(a).is_some())
        .filter(|a| {
            scenario
                .runs_of(other)
                .any(|b| b.round == a.round && of(b).is_some())
        })
        .count()
}

impl Figure {
    /// Why a target has no such figure in a scenario.
    pub fn why_missing(&self, results: &Results, scenario: &ScenarioResult, target: usize) -> String {
        if let Some(reason) = no_visit(scenario, target) {
            return reason;
        }
        let broker = results.targets.get(target);
        match self.source {
            Source::Load => "the load carried nothing".to_owned(),
            Source::Latency => "no latency was measured".to_owned(),
            Source::Interval => "operations are timed over the whole visit, not by interval".to_owned(),
            Source::Sending => {
                "there is no rate, nobody consumes, or bodies of less than 16 B have no room for it"
                    .to_owned()
            }
            Source::Process if broker.is_none_or(|t| t.pid.is_none()) => {
                let name = broker.map_or(shown::NONE, |t| t.name.as_str());
                format!("the process of {name} is not known")
            }
            Source::Process => "the kernel did not tell, or there were no messages to divide by".to_owned(),
            Source::Tracing => "syncs were not counted (--count-syncs counts them)".to_owned(),
            Source::Machine => "the kernel did not tell".to_owned(),
        }
    }
}

/// Why a target has no figure at all.
pub fn no_visit(scenario: &ScenarioResult, target: usize) -> Option<String> {
    let mut runs = scenario.runs.iter().filter(|r| r.target == target).peekable();
    if runs.peek().is_none() {
        return Some("not run".to_owned());
    }
    let mut reason = None;
    for run in runs {
        let (trouble, why) = run.outcome.trouble()?;
        reason = Some(format!("{trouble}: {why}"));
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::super::sample::results;
    use super::*;

    #[test]
    fn a_missing_figure_has_its_reason() {
        let mut results = results();
        results.targets[1].pid = None;
        let scenario = results.scenarios[0].clone();
        let syncs = FURTHER.iter().find(|f| f.source == Source::Tracing).unwrap();
        assert!(
            syncs
                .why_missing(&results, &scenario, 0)
                .contains("--count-syncs")
        );
        assert_eq!(
            CPU.why_missing(&results, &scenario, 1),
            "the process of rabbitmq is not known"
        );
        let mut failed = scenario.clone();
        failed.runs = vec![Run::failed(1, 0, "refused")];
        assert_eq!(CPU.why_missing(&results, &failed, 1), "failed: refused");
        assert_eq!(CPU.why_missing(&results, &failed, 0), "not run");
        failed.runs = vec![Run::skipped(1, 0, "it has no streams")];
        assert_eq!(
            CPU.why_missing(&results, &failed, 1),
            "skipped: it has no streams"
        );
    }

    #[test]
    fn few_syncs_are_shown_as_a_fraction() {
        assert_eq!(syncs(1.0 / 69.0), "1/69");
        assert_eq!(syncs(2.0), "2.00");
        assert_eq!(syncs(0.0), "0");
    }
}
