//! What a benchmark found, as `results.json` keeps it: the contract between the runner, the report and whoever reads the
//! file later. Latencies are in microseconds, rates in messages a second, times since the epoch in seconds.

use crate::statistics::{self, Ratio};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The number of the format; a reader refuses another one.
pub const FORMAT: u32 = 1;

/// What churns are about, as the load generator names it. Of deleting queues with bindings (`bind-all`) it is the deletion.
const MAIN_OPERATIONS: [&str; 8] = [
    "acquire", "bind", "connect", "consume", "declare", "dispatch", "import", "open",
];

/// All of a benchmark: one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`FORMAT`].
    pub format: u32,
    pub title: String,
    pub started_unix_s: u64,
    /// Absent while the run goes on, and when it was interrupted.
    pub finished_unix_s: Option<u64>,
    pub machine: Machine,
    /// The first is the reference that the ratios are taken against.
    pub targets: Vec<Target>,
    pub rounds: u32,
    /// The measured window of a visit if it was asked for on the command line, else each scenario's own, here the median.
    pub seconds: f64,
    /// How the targets take turns, for people: `A B B A`.
    pub order: String,
    pub scenarios: Vec<ScenarioResult>,
}

/// What the figures depend on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: u32,
    pub memory_bytes: u64,
    pub kernel: String,
    pub os: String,
    /// How long an append of 4 KiB with fdatasync takes, in microseconds: what a durable confirm waits for at least. Absent where
    /// the output directory could not be written in that way.
    pub disk_sync_us: Option<Probe>,
    /// Before the first visit. Absent in the results of older versions.
    #[serde(default)]
    pub pauses: Option<Pauses>,
    /// How long a thread that sleeps takes to run after it was asked to, in microseconds. Absent on one core, and in
    /// the results of older versions.
    #[serde(default)]
    pub wake_us: Option<Probe>,
    /// How long an idle processor of a virtual machine looks for work before it is given back to the host, in microseconds.
    /// Absent on real machines, where the driver has no such setting, and in the results of older versions.
    #[serde(default)]
    pub halt_poll_us: Option<f64>,
    /// The load average before the first visit, if it showed other work.
    #[serde(default)]
    pub load_before: Option<f64>,
    /// What the user had to say (`--note`).
    pub note: String,
}

/// How long something of which the figures are made takes on this machine, tried before the first visit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
    pub count: u32,
}

impl Probe {
    /// Of the times of all tries.
    pub fn of(mut times: Vec<f64>) -> Probe {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| {
            times
                .get((times.len() as f64 * share) as usize)
                .copied()
                .unwrap_or_default()
        };
        Probe {
            p50: at(0.5),
            p99: at(0.99),
            max: times.last().copied().unwrap_or_default(),
            count: u32::try_from(times.len()).unwrap_or(u32::MAX),
        }
    }
}

/// How long the processors stood still, half a millisecond or more each time, while threads that never rest wanted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Pauses {
    /// Of the time, the mean over the processors.
    pub percent: f64,
    pub longest_us: f64,
}

/// A broker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Target {
    pub name: String,
    /// Product and version as the broker says them, or `unknown`.
    pub version: String,
    /// Without the password.
    pub uri_shown: String,
    /// The process whose CPU time and memory are counted.
    pub pid: Option<u32>,
}

/// One scenario, or one point of a scenario's sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScenarioResult {
    pub name: String,
    pub title: String,
    /// Scenarios of one group belong together, and the points of a sweep are one.
    pub group: String,
    /// Of the load that was run to its end before, as `flags`. Empty if there was none, and in the results of older versions.
    #[serde(default)]
    pub fill: Vec<String>,
    /// Of the load generator, as a command line to copy, without the URI.
    pub flags: Vec<String>,
    pub plot: Option<PlotKind>,
    pub point: Option<Point>,
    pub runs: Vec<Run>,
}

impl ScenarioResult {
    /// The runs of a target that count.
    pub fn runs_of(&self, target: usize) -> impl Iterator<Item = &Run> {
        self.runs
            .iter()
            .filter(move |run| run.target == target && run.is_ok())
    }

    /// The median of a figure over a target's rounds.
    pub fn median(&self, target: usize, figure: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.runs_of(target).filter_map(figure).collect();
        statistics::median(&values)
    }

    /// How many times the reference's figure another target's is, over the rounds that both have.
    pub fn ratio(
        &self,
        reference: usize,
        other: usize,
        figure: impl Fn(&Run) -> Option<f64>,
    ) -> Option<Ratio> {
        let pairs = self.runs_of(reference).filter_map(|a| {
            let b = self.runs_of(other).find(|b| b.round == a.round)?;
            Some((figure(a)?, figure(b)?))
        });
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.unzip();
        statistics::ratio(&a, &b)
    }
}

/// How a scenario is best drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    LatencyVsRate,
    Throughput,
    OverTime,
    Depth,
    LatencyBars,
    Churn,
    /// Confirmed rates against windows and publishers, durable beside transient, with their bound.
    ConfirmWindow,
}

/// Where a scenario stands in its sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Which line of the plot, where a group has several a target; may be empty.
    pub series: String,
    pub x: f64,
    pub x_label: String,
    pub x_unit: String,
}

/// One visit of a scenario to a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// From 0.
    pub round: u32,
    pub outcome: Outcome,
    /// Length of the measured window.
    pub seconds: f64,
    /// Messages in the window, as the three after it.
    pub published: u64,
    pub consumed: u64,
    pub confirmed: u64,
    pub publish_rate: f64,
    pub consume_rate: f64,
    /// From the intended send time unless the scenario's flags say otherwise.
    pub latency: Option<Latency>,
    /// PerfTest's definition: from the moment the message was handed to the socket.
    pub latency_sent: Option<Latency>,
    pub confirm_latency: Option<Latency>,
    /// The sources' "Max 99th": the maximum over the intervals of that interval's percentile.
    pub max_interval: Option<MaxInterval>,
    /// The broker's, user and system, a message of the window.
    pub cpu_us_per_message: Option<f64>,
    pub cpu_user_s: Option<f64>,
    pub cpu_system_s: Option<f64>,
    pub rss_peak_bytes: Option<u64>,
    pub written_bytes_per_message: Option<f64>,
    pub syncs_per_message: Option<f64>,
    /// Context switches of the broker's threads.
    #[serde(default)]
    pub switches_per_message: Option<f64>,
    /// What the load generator used in the window, of one core: near its cores' sum, it was the limit and not the broker.
    #[serde(default)]
    pub load_cpu_percent: Option<f64>,
    /// Of the machine's processor time in the window, what its host gave to other virtual machines: much of it, and the visit
    /// measured those.
    #[serde(default)]
    pub stolen_percent: Option<f64>,
    /// Of the machine's processor time in the window, what programs other than the broker and the load generator used.
    #[serde(default)]
    pub others_percent: Option<f64>,
    /// How often the visit was made before because too much was stolen (`--max-stolen`).
    #[serde(default)]
    pub repeated: u32,
    pub over_time: Vec<Moment>,
    /// By the name of the operation.
    pub churn: Option<BTreeMap<String, Operation>>,
    pub phases: Vec<Phase>,
}

impl Run {
    /// A visit that brought nothing, with a line that says why.
    pub fn failed(target: usize, round: u32, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self {
            outcome: Outcome::Failed { reason },
            ..Self::empty(target, round)
        }
    }

    /// A visit that was not made, with a line that says what the target lacks.
    pub fn skipped(target: usize, round: u32, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self {
            outcome: Outcome::Skipped { reason },
            ..Self::empty(target, round)
        }
    }

    /// A visit without any figure yet.
    pub fn empty(target: usize, round: u32) -> Self {
        Self {
            target,
            round,
            outcome: Outcome::Ok,
            seconds: 0.0,
            published: 0,
            consumed: 0,
            confirmed: 0,
            publish_rate: 0.0,
            consume_rate: 0.0,
            latency: None,
            latency_sent: None,
            confirm_latency: None,
            max_interval: None,
            cpu_us_per_message: None,
            cpu_user_s: None,
            cpu_system_s: None,
            rss_peak_bytes: None,
            written_bytes_per_message: None,
            syncs_per_message: None,
            switches_per_message: None,
            load_cpu_percent: None,
            stolen_percent: None,
            others_percent: None,
            repeated: 0,
            over_time: Vec::new(),
            churn: None,
            phases: Vec::new(),
        }
    }

    /// What the load is about: of a churn, pairs of operations a second, else messages a second, in or out.
    pub fn rate(&self) -> Option<f64> {
        let messages = if self.consume_rate > 0.0 {
            self.consume_rate
        } else {
            self.publish_rate
        };
        let operation = self.main_operation().map(|operation| operation.rate);
        operation.or(Some(messages)).filter(|rate| *rate > 0.0)
    }

    /// The latency that the load is about: of a churn, its operation's, else until the consumer has the message, else until
    /// it is confirmed.
    pub fn main_latency(&self) -> Option<Latency> {
        let operation = self.main_operation().and_then(|operation| operation.latency);
        operation.or(self.latency).or(self.confirm_latency)
    }

    /// The operation that a churn is about; the others undo it or come with it.
    fn main_operation(&self) -> Option<&Operation> {
        let churn = self.churn.as_ref()?;
        if churn.contains_key("bind-all") {
            return churn.get("delete");
        }
        let main = MAIN_OPERATIONS.iter().find_map(|name| churn.get(*name));
        main.or_else(|| churn.values().next())
    }

    /// Whether its figures count.
    pub fn is_ok(&self) -> bool {
        self.outcome == Outcome::Ok
    }
}

/// How a visit ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Ok,
    Failed {
        reason: String,
    },
    /// The target has not what the scenario is about; nothing was tried.
    Skipped {
        reason: String,
    },
}

impl Outcome {
    /// Where there are no figures: what became of the visit, in a word, and why.
    pub fn trouble(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Ok => None,
            Self::Failed { reason } => Some(("failed", reason)),
            Self::Skipped { reason } => Some(("skipped", reason)),
        }
    }
}

/// The percentiles that the load generator reports, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    pub count: u64,
    pub min: f64,
    pub mean: f64,
    pub p50: f64,
    pub p75: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub p99_99: f64,
    pub max: f64,
}

/// The worst interval's percentiles, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct MaxInterval {
    pub p75: f64,
    pub p95: f64,
    pub p99: f64,
}

/// One interval of a visit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Seconds since the load began, at the interval's end.
    pub at_s: f64,
    pub publish_rate: f64,
    pub consume_rate: f64,
    /// What was published and not consumed so far, as the load generator counts it.
    pub depth: u64,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    /// Of one core.
    pub cpu_percent: Option<f64>,
    pub rss_bytes: Option<u64>,
}

/// One kind of operation of a churn run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    pub count: u64,
    pub rate: f64,
    pub latency: Option<Latency>,
}

/// One phase of a run in phases.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    pub name: String,
    pub seconds: f64,
    pub publish_rate: f64,
    pub consume_rate: f64,
    pub depth_at_end: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_visit_is_read_back_as_it_was_written() {
        let run = Run::failed(1, 2, "the broker is gone");
        let text = serde_json::to_string(&run).unwrap();
        assert!(text.contains(r#""outcome":{"failed":{"reason":"the broker is gone"}}"#));
        assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), run);
        assert!(!run.is_ok());
    }

    #[test]
    fn only_rounds_that_both_targets_have_are_compared() {
        let run = |target, round, cpu| Run {
            cpu_us_per_message: Some(cpu),
            ..Run::empty(target, round)
        };
        let scenario = ScenarioResult {
            name: "T1".to_owned(),
            title: String::new(),
            group: String::new(),
            fill: Vec::new(),
            flags: Vec::new(),
            plot: None,
            point: None,
            runs: vec![
                run(0, 0, 1.0),
                run(1, 0, 4.0),
                run(1, 1, 90.0),
                Run::failed(0, 1, "gone"),
                run(0, 2, 3.0),
            ],
        };
        let cpu = |run: &Run| run.cpu_us_per_message;
        assert_eq!(scenario.ratio(0, 1, cpu).map(|r| r.median), Some(4.0));
        assert_eq!(scenario.median(0, cpu), Some(2.0));
        assert_eq!(scenario.ratio(0, 2, cpu), None);
    }

    #[test]
    fn a_churn_is_about_what_is_made_and_not_what_undoes_it() {
        let operation = |rate| Operation {
            count: 10,
            rate,
            latency: None,
        };
        let churn = |names: [(&str, f64); 2]| Run {
            churn: Some(
                names
                    .map(|(name, rate)| (name.to_owned(), operation(rate)))
                    .into(),
            ),
            ..Run::empty(0, 0)
        };
        assert_eq!(churn([("close", 1.0), ("open", 2.0)]).rate(), Some(2.0));
        assert_eq!(churn([("bind", 3.0), ("unbind", 4.0)]).rate(), Some(3.0));
        assert_eq!(churn([("other", 5.0), ("unknown", 6.0)]).rate(), Some(5.0));
        let filled = churn([("bind-all", 1.0), ("delete", 7.0)]);
        assert_eq!(filled.rate(), Some(7.0));
    }

    #[test]
    fn kinds_of_plots_are_written_with_hyphens() {
        let text = serde_json::to_string(&PlotKind::LatencyVsRate).unwrap();
        assert_eq!(text, r#""latency-vs-rate""#);
    }
}
