//! A load that runs beside the churn, and what it tells about it.

use super::footprint::Footprint;
use super::words;
use crate::cli;
use crate::client::Client;
use crate::engine::Load;
use crate::failure::Failure;
use crate::measure::Recorder;
use crate::plan::Plan;
use crate::report::json;
use crate::subcommand::Request;
use crate::topology::Topology;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Reads the flags of a background. What the churn says holds for it, too: address, id, and when it ends.
///
/// # Errors
/// [`Failure::Usage`] with what to write instead.
pub fn plan(flags: &str, uri: &str, id: &str) -> Result<Plan, Failure> {
    let mut arguments = words::split(flags).map_err(|why| Failure::Usage(format!("--background: {why}")))?;
    arguments.extend([
        "--uri".to_owned(),
        uri.to_owned(),
        "--id".to_owned(),
        id.to_owned(),
    ]);
    let nothing = |_: &str| None;
    let mut plan = match cli::plan(&arguments, &nothing) {
        Ok(Request::Run(plan)) => *plan,
        Ok(Request::Print(_)) => {
            let text = "--background asks for a help text: ask 'leveret perf' itself for it.";
            return Err(Failure::Usage(text.into()));
        }
        Err(failure) => return Err(Failure::Usage(format!("--background: {failure}"))),
    };
    if plan.producing.producers == 0 {
        let text = "--background publishes nothing: give it at least --producers 1.";
        return Err(Failure::Usage(text.into()));
    }
    plan.stopping.time = None;
    plan.stopping.exit_when = None;
    plan.queues.delete_at_end = false;
    (plan.report.csv, plan.report.json, plan.report.hdr) = (None, None, None);
    Ok(plan)
}

/// A load that runs.
pub struct Background {
    load: Load,
    topology: Arc<Topology>,
    footprint: Footprint,
}

impl Background {
    /// Declares what the load needs and starts it.
    ///
    /// # Errors
    /// If the broker refuses, or can't be reached.
    pub fn start(plan: &Plan, client: &mut Client, channel: u16) -> Result<Self, Failure> {
        let footprint = Footprint::before(plan, client)?;
        let topology = Arc::new(Topology::declare(plan, client, channel)?);
        match Load::start(plan, Some(topology.clone()), &mut |_| {}) {
            Ok(load) => Ok(Self {
                load,
                topology,
                footprint,
            }),
            Err(failure) => {
                // What did not start is the worse news.
                let _ = footprint.delete(&topology, client, channel);
                Err(failure)
            }
        }
    }

    /// What it did since the last time.
    pub fn take(&self) -> Recorder {
        self.load.take()
    }

    /// What a user should read.
    pub fn told(&self) -> Vec<String> {
        self.load.told()
    }

    /// Why it can't go on, if so.
    pub fn failure(&self) -> Option<Failure> {
        self.load.failure()
    }

    /// Ends it and deletes what it made.
    ///
    /// # Errors
    /// If something can't be deleted.
    pub fn stop(self, client: &mut Client, channel: u16) -> Result<(), Failure> {
        drop(self.load.stop());
        self.footprint.delete(&self.topology, client, channel)
    }
}

/// What the load did in a span of time.
pub struct Span {
    /// What happened in it.
    pub recorder: Recorder,
    /// How long it was, all its parts together.
    pub time: Duration,
}

impl Span {
    /// None yet.
    pub fn new() -> Self {
        Self {
            recorder: Recorder::new(),
            time: Duration::ZERO,
        }
    }

    /// One part more.
    pub fn add(&mut self, recorder: &Recorder, time: Duration) {
        self.recorder.merge(recorder);
        self.time += time;
    }

    /// In the words of the JSON's `total`.
    pub fn json(&self) -> Value {
        let recorder = &self.recorder;
        let per_second = |count: u64| {
            let seconds = self.time.as_secs_f64();
            if seconds > 0.0 {
                (count as f64 / seconds * 1_000.0).round() / 1_000.0
            } else {
                0.0
            }
        };
        serde_json::json!({
            "seconds": self.time.as_secs_f64(),
            "published": recorder.published, "confirmed": recorder.confirmed, "consumed": recorder.consumed,
            "publish_rate": per_second(recorder.published), "consume_rate": per_second(recorder.consumed),
            "latency": json::latency(&recorder.latency), "confirm_latency": json::latency(&recorder.confirm_latency),
        })
    }
}

/// The load before the churn, during it, and around deletions of queues with bindings.
pub struct Spans {
    pub before: Span,
    pub during: Span,
    pub deletions: Option<Span>,
}

impl Spans {
    /// None yet; `deletions` says whether queues with bindings will be deleted.
    pub fn new(deletions: bool) -> Self {
        Self {
            before: Span::new(),
            during: Span::new(),
            deletions: deletions.then(Span::new),
        }
    }

    /// In the words of the JSON's `background`.
    pub fn json(&self) -> Value {
        serde_json::json!({
            "baseline": self.before.json(), "during": self.during.json(),
            "during_deletes": self.deletions.as_ref().map(Span::json),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backgrounds_flags_are_perftests_and_its_end_is_the_churns() {
        let plan = plan("-x 4 -y 4 --confirm 1 --rate 200 --time 5", "amqp://here", "me").unwrap();
        assert_eq!((plan.producing.producers, plan.stopping.time), (4, None));
        assert_eq!((plan.id.as_str(), plan.uris[0].host.as_str()), ("me", "here"));
    }

    #[test]
    fn what_can_be_no_background_is_refused_with_the_flags_name() {
        for flags in ["--ratte 5", "--producers 0", "--help", "--queue 'a"] {
            let failure = plan(flags, "amqp://localhost", "x").unwrap_err();
            assert!(failure.to_string().starts_with("--background"), "{failure}");
        }
    }
}
