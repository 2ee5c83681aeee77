//! One run from beginning to end: start, sample, stop, tell.

use crate::client;
use crate::clock;
use crate::engine::Load;
use crate::exporter::Exporter;
use crate::failure::{Failure, complain};
use crate::instances;
use crate::measure::{Recorder, Sample};
use crate::plan::{ExitWhen, Plan};
use crate::report::{End, Reports};
use crate::topology::Topology;
use crate::verify::Verdict;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// How often a run looks whether it is over.
const GLANCE: Duration = Duration::from_millis(20);
/// PerfTest's measure of an idle consumer.
const IDLE: Duration = Duration::from_secs(1);
/// With `--verify` the last messages have this long to come, counted from the last one that came.
const STRAGGLERS: Duration = Duration::from_secs(3);

/// A signal that asks the program to end, once one came.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Catches SIGINT and SIGTERM from now on. A second one ends the program at once.
    pub fn catch() -> Self {
        let caught = Self::default();
        let flag = caught.0.clone();
        let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else {
            return caught;
        };
        let wait = move || {
            for signal in signals.forever() {
                if flag.swap(signal as usize, Relaxed) != 0 {
                    std::process::exit(128 + signal);
                }
            }
        };
        // Without the thread a signal ends the program in the ordinary way.
        let _ = thread::Builder::new().name("signals".into()).spawn(wait);
        caught
    }

    /// The signal's number.
    pub fn came(&self) -> Option<u8> {
        match self.0.load(Relaxed) {
            0 => None,
            signal => Some(signal as u8),
        }
    }
}

/// What a load did, once it is over.
#[derive(Debug)]
pub struct Measured {
    pub all: Recorder,
    pub seconds: f64,
    pub reasons: Vec<(String, usize)>,
    pub cut_short: Option<String>,
    pub verdict: Option<Verdict>,
    /// The signal that ended it.
    pub signal: Option<u8>,
}

/// Does what the plan says and tells about it; returns the exit code: 0 if all went well, 1 if not, 128 and the signal
/// if one came.
pub fn execute(plan: &Plan) -> ExitCode {
    let mut reports = match Reports::new(plan, std::io::stderr().is_terminal()) {
        Ok(reports) => reports,
        Err(failure) => {
            complain(&failure);
            return ExitCode::FAILURE;
        }
    };
    match attempt(plan, &mut reports) {
        Ok(code) => code,
        Err(failure) => {
            complain(&failure);
            ExitCode::FAILURE
        }
    }
}

fn attempt(plan: &Plan, reports: &mut Reports) -> Result<ExitCode, Failure> {
    let interrupt = Interrupt::catch();
    let mut exporter = Exporter::start(plan)?;
    client::wait_for_servers(plan)?;
    if let Some(expected) = &plan.instances {
        instances::barrier(plan, expected)?;
    }
    reports.started();
    let measured = measure(plan, reports, &mut exporter, None, &interrupt, &mut |_| None)?;
    let lost = measured.verdict.as_ref().is_some_and(|verdict| !verdict.ok);
    let exit_code = match measured.signal {
        Some(signal) => 128 + signal,
        None => u8::from(measured.cut_short.is_some() || lost),
    };
    if let Some(reason) = &measured.cut_short {
        complain(format_args!("The run was cut short: {reason}"));
    }
    let told = reports.finish(&End {
        reasons: measured.reasons,
        cut_short: measured.cut_short,
        verdict: measured.verdict,
        exit_code: i32::from(exit_code),
    });
    if let Some(exporter) = exporter {
        exporter.stop();
    }
    told?;
    Ok(ExitCode::from(exit_code))
}

/// Runs one load until the plan's conditions, `until` (asked many times a second; a reason ends the load) or a signal end it.
///
/// # Errors
/// If the load can't start. What goes wrong later is told in the result, with what was measured up to then.
pub fn measure(
    plan: &Plan,
    reports: &mut Reports,
    exporter: &mut Option<Exporter>,
    topology: Option<Arc<Topology>>,
    interrupt: &Interrupt,
    until: &mut dyn FnMut(&mut Load) -> Option<String>,
) -> Result<Measured, Failure> {
    let mut lines = |line: String| reports.line(&line);
    let load = Load::start(plan, topology, &mut lines)?;
    let (product, version) = load.server();
    reports.server(product, version);
    let mut course = Course::new(plan, load, reports, exporter);
    let ended = course.go_on_until(interrupt, until);
    Ok(course.end(ended, interrupt.came()))
}

/// Why a load ended.
enum Ended {
    TimeLimit,
    /// Producers and consumers came to their ends, or failed.
    Themselves,
    /// The caller's condition holds.
    Until(String),
    Signal,
}

/// A load on its way.
struct Course<'a> {
    plan: &'a Plan,
    load: Load,
    reports: &'a mut Reports,
    exporter: &'a mut Option<Exporter>,
    started: Instant,
    all: Recorder,
    sampled: Instant,
    sampled_unix_us: u64,
    next_sample: Instant,
    consumed: u64,
    active: Instant,
    consumers_ended: bool,
    next_look: Instant,
}

impl<'a> Course<'a> {
    fn new(plan: &'a Plan, load: Load, reports: &'a mut Reports, exporter: &'a mut Option<Exporter>) -> Self {
        let now = Instant::now();
        Self {
            plan,
            load,
            reports,
            exporter,
            started: now,
            all: Recorder::new(),
            sampled: now,
            sampled_unix_us: clock::unix_us(),
            next_sample: now + plan.report.interval,
            consumed: 0,
            active: now,
            consumers_ended: false,
            next_look: now + IDLE,
        }
    }

    fn go_on_until(
        &mut self,
        interrupt: &Interrupt,
        until: &mut dyn FnMut(&mut Load) -> Option<String>,
    ) -> Ended {
        loop {
            let now = Instant::now();
            if now >= self.next_sample {
                self.sample(true);
                self.next_sample += self.plan.report.interval;
            }
            if let Some(time) = self.plan.stopping.time
                && now >= self.started + time
            {
                return Ended::TimeLimit;
            }
            if interrupt.came().is_some() {
                return Ended::Signal;
            }
            if self.load.is_over() {
                return Ended::Themselves;
            }
            if let Some(reason) = until(&mut self.load) {
                return Ended::Until(reason);
            }
            self.look(now);
            thread::park_timeout(self.pause(now));
        }
    }

    /// Until the next event that is known.
    fn pause(&self, now: Instant) -> Duration {
        let mut next = self.next_sample;
        if let Some(time) = self.plan.stopping.time {
            next = next.min(self.started + time);
        }
        next.saturating_duration_since(now).min(GLANCE)
    }

    /// Messages for the user, tokens, idle consumers and empty queues.
    fn look(&mut self, now: Instant) {
        for line in self.load.told() {
            self.reports.line(&line);
        }
        let (_, consumed) = self.load.totals();
        if consumed != self.consumed {
            self.consumed = consumed;
            self.active = now;
        }
        let Some(when) = self.plan.stopping.exit_when.filter(|_| !self.consumers_ended) else {
            return self.refresh(now);
        };
        match when {
            ExitWhen::Idle => self.consumers_ended = now - self.active > IDLE,
            // An unanswered question is asked again a second later.
            ExitWhen::Empty if now >= self.next_look => {
                self.consumers_ended = matches!(self.load.ready_messages(), Ok(0));
            }
            ExitWhen::Empty => {}
        }
        if self.consumers_ended {
            self.load.consumers_end(when);
        }
        self.refresh(now);
    }

    fn refresh(&mut self, now: Instant) {
        if now < self.next_look {
            return;
        }
        self.next_look = now + IDLE;
        if let Err(failure) = self.load.refresh_token() {
            self.reports
                .line(&format!("The token could not be renewed: {failure}"));
        }
    }

    /// Takes what was counted; a line is told of whole intervals only, as PerfTest does.
    fn sample(&mut self, whole: bool) {
        let recorder = self.load.take();
        self.record(recorder, whole);
    }

    fn record(&mut self, recorder: Recorder, whole: bool) {
        let (now, unix_us) = (Instant::now(), clock::unix_us());
        self.all.merge(&recorder);
        let sample = Sample {
            from_unix_us: self.sampled_unix_us,
            to_unix_us: unix_us,
            elapsed: now - self.started,
            interval: now - self.sampled,
            recorder,
        };
        (self.sampled, self.sampled_unix_us) = (now, unix_us);
        if whole {
            self.reports.interval(&sample);
            if let Some(exporter) = self.exporter {
                exporter.update(&sample);
            }
        } else {
            self.reports.remainder(&sample);
        }
    }

    /// With `--verify`: lets what was published be consumed.
    fn await_stragglers(&mut self) {
        self.load.stop_producers();
        let mut last = (self.load.totals(), Instant::now());
        while last.1.elapsed() < STRAGGLERS && self.load.depth_estimate() > 0 {
            thread::park_timeout(GLANCE);
            let totals = self.load.totals();
            if totals != last.0 {
                last = (totals, Instant::now());
            }
        }
        // Duplicates and confirms may still be on their way.
        thread::park_timeout(GLANCE * 10);
    }

    fn end(mut self, ended: Ended, signal: Option<u8>) -> Measured {
        let seconds = self.started.elapsed().as_secs_f64();
        if self.plan.verify {
            self.await_stragglers();
        }
        let mut reasons = self.load.reasons();
        let mut cut_short = self.load.failure().map(|failure| failure.to_string());
        match ended {
            Ended::TimeLimit => reasons.insert(0, ("Reached time limit".to_owned(), 1)),
            Ended::Until(reason) => reasons.insert(0, (reason, 1)),
            Ended::Themselves => {}
            Ended::Signal => {
                cut_short.get_or_insert_with(|| "it was interrupted".to_owned());
            }
        }
        if self.load.recovering() > 0 && cut_short.is_none() {
            let lost = self.load.recovering();
            cut_short = Some(format!(
                "{lost} connections were lost and not back yet; is the broker running?"
            ));
        }
        let verdict = self.load.verdict(cut_short.is_none());
        for line in self.load.told() {
            self.reports.line(&line);
        }
        self.sample(false);
        // What comes while the connections are being closed belongs to no interval.
        drop(self.load.stop());
        Measured {
            all: self.all,
            seconds,
            reasons,
            cut_short,
            verdict,
            signal,
        }
    }
}
