//! `--prometheus`: a page with what was counted, under stream-perf-test's names.

use super::counted::Counted;
use super::options;
use super::plan::Plan;
use super::shared::lock;
use crate::exporter::prometheus::{Page, text};
use crate::exporter::{Meter, Summary};
use crate::failure::Failure;
use crate::measure::Latency;
use hdrhistogram::Histogram;
use std::sync::{Arc, Mutex};

/// The page, and what it shows.
pub struct Metrics {
    page: Page,
    board: Arc<Mutex<Board>>,
}

/// Everything since the start, and the last interval, which latencies are of.
struct Board {
    all: Counted,
    last: Counted,
    tags: Vec<(String, String)>,
    arguments: Option<String>,
    confirm_latency: bool,
    producers: f64,
    consumers: f64,
}

impl Metrics {
    /// Serves the page, if the plan asks for it.
    ///
    /// # Errors
    /// [`Failure::File`] if the port is not free.
    pub fn start(plan: &Plan) -> Result<Option<Self>, Failure> {
        let Some(port) = plan.report.prometheus else {
            return Ok(None);
        };
        let board = Arc::new(Mutex::new(Board {
            all: Counted::new(),
            last: Counted::new(),
            tags: plan.report.tags.clone(),
            arguments: plan.report.arguments.then(|| options::shown(&plan.arguments)),
            confirm_latency: plan.report.confirm_latency,
            producers: plan.producing.producers as f64,
            consumers: plan.consuming.consumers as f64,
        }));
        let there = board.clone();
        let page = Page::start(
            port,
            "/metrics",
            "--monitoring-port",
            Arc::new(move || lock(&there).page()),
        )?;
        Ok(Some(Self { page, board }))
    }

    /// Shows an interval from now on.
    pub fn update(&self, last: &Counted) {
        let mut board = lock(&self.board);
        board.all.add(last);
        board.last = last.clone();
    }

    /// Closes the port.
    pub fn stop(self) {
        self.page.stop();
    }
}

impl Board {
    fn page(&self) -> String {
        let (all, recorder) = (&self.all, &self.all.recorder);
        let counter =
            |name: &str, count: u64| Meter::counter(format!("rabbitmq.stream.{name}"), count as f64);
        let mut meters = vec![
            counter("published", recorder.published),
            counter("confirmed", recorder.confirmed),
            counter("producer_confirmed", recorder.confirmed),
            counter("errored", recorder.nacked),
            counter("consumed", recorder.consumed),
            counter("written_bytes", all.written),
            counter("read_bytes", all.read),
            Meter::gauge("rabbitmq.stream.producers", self.producers),
            Meter::gauge("rabbitmq.stream.consumers", self.consumers),
            Meter::summary(
                "rabbitmq.stream.latency",
                "message latency",
                latency(&self.last.recorder.latency, &recorder.latency),
            ),
        ];
        for (name, sum, count) in [
            ("chunk_size", all.entries, all.chunks),
            ("publish_batch_size", all.batched, all.batches),
        ] {
            meters.push(counter(&format!("{name}_sum"), sum).with_help("", ""));
            meters.push(counter(&format!("{name}_count"), count).with_help("", ""));
        }
        if self.confirm_latency {
            let summary = latency(&self.last.recorder.confirm_latency, &recorder.confirm_latency);
            meters.push(Meter::summary(
                "rabbitmq.stream.confirm_latency",
                "publish confirm latency",
                summary,
            ));
        }
        if let Some(line) = &self.arguments {
            meters.push(Meter::gauge("rabbitmq.stream.args", 1.0).with_label("command_line", line));
        }
        text(&meters, &self.tags)
    }
}

/// Points of the last interval; count and sum of the whole run.
fn latency(last: &Histogram<u64>, all: &Histogram<u64>) -> Summary {
    let (last, all) = (Latency::of(last), Latency::of(all));
    let seconds = |ns: u64| ns as f64 / 1e9;
    Summary {
        points: [last.p50, last.p75, last.p95, last.p99].map(seconds),
        max: seconds(last.max),
        count: all.count,
        sum: all.mean * all.count as f64 / 1e9,
        time: true,
    }
}
