//! One run from beginning to end: start, sample, stop, tell.

use super::counted::{Counted, mean};
use super::lines::{self, Lines};
use super::load::Load;
use super::metrics::Metrics;
use super::plan::Plan;
use super::site;
use super::summary::SummaryFile;
use crate::cli;
use crate::clock;
use crate::failure::{Failure, complain};
use crate::instances;
use crate::measure::Sample;
use crate::report::End;
use crate::report::hdr::HdrLog;
use crate::report::json::{Opening, Results};
use crate::report::progress::Progress;
use crate::run::Interrupt;
use crate::subcommand::Request;
use jiff::Zoned;
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How often a run looks whether it is over.
const GLANCE: Duration = Duration::from_millis(20);
/// Between two lines.
const INTERVAL: Duration = Duration::from_secs(1);
/// With `--verify` the last messages have this long to come, counted from the last one that came.
const STRAGGLERS: Duration = Duration::from_secs(3);
/// How long confirms of the last messages may take.
const CONFIRMS: Duration = Duration::from_secs(5);

/// Does what the plan says and tells about it; returns the exit code.
///
/// # Errors
/// If the run can't start, or a result can't be written.
pub fn execute(plan: Plan) -> Result<ExitCode, Failure> {
    let plan = Arc::new(plan);
    let interrupt = Interrupt::catch();
    meet(&plan)?;
    let mut reports = Reports::open(&plan)?;
    let load = Load::start(&plan, &mut |line| reports.line(&line))?;
    reports.start();
    let course = Course {
        plan: &plan,
        load,
        reports: &mut reports,
        sampled: Instant::now(),
    };
    let (end, signal) = course.run(&interrupt);
    if plan.streams.delete_at_end {
        delete(&plan, &mut reports);
    }
    let code = match signal {
        Some(signal) => 128 + signal,
        None => end.exit_code as u8,
    };
    reports.finish(&End {
        exit_code: code.into(),
        ..end
    })?;
    Ok(ExitCode::from(code))
}

/// Waits for other instances, which meet over AMQP.
fn meet(plan: &Plan) -> Result<(), Failure> {
    let Some((expected, uri)) = &plan.instances else {
        return Ok(());
    };
    let Request::Run(mut over_amqp) = cli::plan(&[], &|_| None)? else {
        return Ok(());
    };
    over_amqp.uris = vec![uri.clone()];
    over_amqp.id.clone_from(&plan.id);
    instances::barrier(&over_amqp, expected)
}

fn delete(plan: &Plan, reports: &mut Reports) {
    match site::connect_any(plan, "stream-perf-locator") {
        Ok(mut client) => {
            site::delete(plan, &mut client, &mut |line| reports.line(&line));
            client.close();
        }
        Err(failure) => reports.line(&format!("The streams could not be deleted: {failure}")),
    }
}

/// A load on its way.
struct Course<'a> {
    plan: &'a Plan,
    load: Load,
    reports: &'a mut Reports,
    sampled: Instant,
}

impl Course<'_> {
    /// Goes on until something ends it; says how it ended, and the signal if it was one.
    fn run(mut self, interrupt: &Interrupt) -> (End, Option<u8>) {
        let started = Instant::now();
        let mut next = started + INTERVAL;
        let mut reasons = Vec::new();
        let mut cut_short = None;
        loop {
            let now = Instant::now();
            if now >= next {
                self.sample(true);
                next += INTERVAL;
            }
            self.load.told().iter().for_each(|line| self.reports.line(line));
            if self.plan.time.is_some_and(|time| now >= started + time) {
                reasons.push(("Reached time limit".to_owned(), 1));
                break;
            }
            if interrupt.came().is_some() {
                cut_short = Some("it was interrupted".to_owned());
                break;
            }
            if self.load.is_over() {
                if self.plan.producing.messages.is_some() {
                    reasons.push((
                        "Producer reached message limit".to_owned(),
                        self.plan.producing.producers,
                    ));
                }
                if self.plan.consuming.messages.is_some() {
                    reasons.push((
                        "Consumer reached message limit".to_owned(),
                        self.plan.consuming.consumers,
                    ));
                }
                break;
            }
            let end = self.plan.time.map_or(next, |time| next.min(started + time));
            thread::park_timeout(end.saturating_duration_since(now).min(GLANCE));
        }
        self.reports.worked = started.elapsed();
        let signal = interrupt.came();
        self.stop(
            End {
                reasons,
                cut_short,
                ..End::default()
            },
            signal,
        )
    }

    fn stop(mut self, mut end: End, signal: Option<u8>) -> (End, Option<u8>) {
        self.load.stop_producers();
        if self.plan.verify {
            self.await_stragglers();
        }
        if self.load.recovering() > 0 && end.cut_short.is_none() {
            end.cut_short = Some(format!(
                "{} connections were lost and not back yet; is the broker running?",
                self.load.recovering()
            ));
        }
        let complete = end.cut_short.is_none() && self.load.failure().is_none();
        end.verdict = self.load.verdict(complete);
        self.load.told().iter().for_each(|line| self.reports.line(line));
        self.sample(false);
        let failure = self.load.close();
        end.cut_short = failure.map(|it| it.to_string()).or(end.cut_short);
        let lost = end.verdict.as_ref().is_some_and(|verdict| !verdict.ok);
        end.exit_code = i32::from(end.cut_short.is_some() || lost);
        (end, signal)
    }

    /// Lets what was published be confirmed and consumed.
    fn await_stragglers(&self) {
        let begun = Instant::now();
        let mut last = (self.load.totals(), Instant::now());
        while last.1.elapsed() < STRAGGLERS {
            let (_, _, unconfirmed) = last.0;
            let is_settled = unconfirmed == 0 || begun.elapsed() > CONFIRMS;
            if is_settled && self.load.verdict(true).is_none_or(|verdict| verdict.lost == 0) {
                break;
            }
            thread::park_timeout(GLANCE);
            let totals = self.load.totals();
            if totals != last.0 {
                last = (totals, Instant::now());
            }
        }
        // Duplicates may still be on their way.
        thread::park_timeout(GLANCE * 10);
    }

    /// Takes what was counted; a line is told of whole intervals only.
    fn sample(&mut self, whole: bool) {
        let now = Instant::now();
        let counted = self.load.take();
        self.reports.interval(counted, now - self.sampled, whole);
        self.sampled = now;
    }
}

/// Everything that a run tells.
struct Reports {
    lines: Lines,
    progress: Option<Progress>,
    json: Option<Results>,
    hdr: Option<HdrLog>,
    summary: Option<SummaryFile>,
    metrics: Option<Metrics>,
    memory: bool,
    all: Counted,
    started: Instant,
    started_unix_us: u64,
    sampled_unix_us: u64,
    /// How long producers and consumers worked.
    worked: Duration,
    number: u64,
    /// The first file that could not be written to the end.
    broken: Option<Failure>,
}

impl Reports {
    fn open(plan: &Plan) -> Result<Self, Failure> {
        let opening = Opening {
            id: &plan.id,
            arguments: &plan.arguments,
            latency_from: plan.producing.latency_from,
            wall_clock: true,
        };
        let report = &plan.report;
        let messages = plan
            .producing
            .messages
            .map(|each| each.saturating_mul(plan.producing.producers as u64));
        let progress = Progress::over(plan.time, messages, plan.consuming.consumers > 0);
        Ok(Self {
            lines: Lines::of(plan),
            progress: progress.filter(|_| std::io::stderr().is_terminal()),
            json: report
                .json
                .clone()
                .map(|path| Results::begin(path, &opening))
                .transpose()?,
            hdr: report.hdr.as_deref().map(HdrLog::create).transpose()?,
            summary: match report.summary_file {
                true => Some(SummaryFile::create(plan, Path::new("."), &Zoned::now())?),
                false => None,
            },
            metrics: Metrics::start(plan)?,
            memory: report.memory,
            all: Counted::new(),
            started: Instant::now(),
            started_unix_us: clock::unix_us(),
            sampled_unix_us: clock::unix_us(),
            worked: Duration::ZERO,
            number: 0,
            broken: None,
        })
    }

    /// Producers and consumers have begun.
    fn start(&mut self) {
        self.started = Instant::now();
        self.started_unix_us = clock::unix_us();
        self.sampled_unix_us = self.started_unix_us;
        if let Some(header) = self.lines.header() {
            self.line(&header);
        }
        if let Some(progress) = &self.progress {
            progress.start();
        }
    }

    /// A line on standard output, above the bar if there is one.
    fn line(&self, line: &str) {
        // Whoever reads may stop reading.
        let print = || drop(writeln!(std::io::stdout(), "{line}"));
        match &self.progress {
            Some(progress) => progress.above(print),
            None => print(),
        }
    }

    fn interval(&mut self, counted: Counted, span: Duration, whole: bool) {
        self.all.add(&counted);
        let elapsed = self.started.elapsed();
        let now = Zoned::now();
        self.number += u64::from(whole);
        if whole && counted.recorder.published + counted.recorder.consumed > 0 {
            self.line(&self.lines.interval(self.number, &counted, span, &now));
            if let Some(memory) = lines::memory().filter(|_| self.memory) {
                self.line(&memory);
            }
        }
        if let Some(file) = &mut self.summary
            && let Err(failure) = file.add(&self.all, span, elapsed, &now)
        {
            self.broken.get_or_insert(failure);
        }
        if let Some(metrics) = &self.metrics {
            metrics.update(&counted);
        }
        let to_unix_us = clock::unix_us();
        let sample = Sample {
            from_unix_us: self.sampled_unix_us,
            to_unix_us,
            elapsed,
            interval: span,
            recorder: counted.recorder,
        };
        self.sampled_unix_us = to_unix_us;
        if let Some(json) = &mut self.json {
            json.interval(&sample);
        }
        if let Some(hdr) = &mut self.hdr
            && let Err(error) = hdr.add(&sample)
        {
            let text = format!("cannot write {}: {error}", hdr.path().display());
            self.broken.get_or_insert(Failure::File(text));
        }
        if let Some(progress) = &self.progress {
            progress.advance(&sample, self.all.recorder.published);
        }
    }

    fn finish(mut self, end: &End) -> Result<(), Failure> {
        if let Some(progress) = self.progress.take() {
            progress.clear();
        }
        if let Some(reason) = &end.cut_short {
            complain(format_args!("The run was cut short: {reason}"));
        }
        let early = self.all.recorder.early;
        if early > 0 {
            complain(format_args!(
                "{early} messages came before they were sent, and have no latency: the clocks of the machines differ."
            ));
        }
        self.line("");
        self.line(&self.lines.summary(&self.all, self.worked));
        for line in end.verdict.iter().flat_map(crate::verify::Verdict::text) {
            self.line(&line);
        }
        let mut failed = self.broken.take();
        if let Some(file) = self.summary.take()
            && let Err(failure) = file.finish()
        {
            failed.get_or_insert(failure);
        }
        if let Some(mut json) = self.json.take() {
            let all = &self.all;
            let streams = json!({
                "chunks": all.chunks, "entries": all.entries, "chunk_size": mean(all.entries, all.chunks),
                "publish_frames": all.batches, "publish_batch_size": mean(all.batched, all.batches),
                "written_bytes": all.written, "read_bytes": all.read,
            });
            json.section("streams", streams);
            let path = json.path().to_owned();
            let times = (self.started_unix_us, clock::unix_us());
            if let Err(error) = json.finish(end, times, &all.recorder, self.worked) {
                failed.get_or_insert(Failure::File(format!("cannot write {}: {error}", path.display())));
            }
        }
        if let Some(metrics) = self.metrics.take() {
            metrics.stop();
        }
        failed.map_or(Ok(()), Err)
    }
}
