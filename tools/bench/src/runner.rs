//! The run: visit after visit, each saved when it is done.

use crate::cli::Cores;
use crate::failure::Failure;
use crate::flags;
use crate::load::{self, Load, LoadFailure, LoadProgram};
use crate::measured::Measured;
use crate::plan::Plan;
use crate::process::ProcessTree;
use crate::progress::Progress;
use crate::results::{Results, Run, ScenarioResult};
use crate::sampler::{self, Sampler, Samples};
use crate::scenario::Scenario;
use crate::schedule::{self, Visit};
use crate::stop::Stop;
use crate::store::Store;
use crate::syncs::SyncCount;
use crate::target::TargetSpec;
use crate::window;
use charts::shown;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// A broker that used less CPU than this within a look is idle.
const IDLE_S: f64 = 0.02;
const LOOK: Duration = Duration::from_millis(250);
/// What one run leaves behind may not be the next one's cost, but a broker that never rests must not stop the run.
const SETTLE: Duration = Duration::from_secs(8);
/// A visit in which syncs are counted: strace needs a moment to attach to all threads.
const COUNTED_SECONDS: f64 = 2.0;
const REPEATS: u32 = 9;
/// A busy host is given so much more time before each repetition, so that nine of them outlast a few minutes.
const BUSY_HOST: Duration = Duration::from_secs(3);
/// Where less is stolen, a line about a visit has better things to say, in per cent.
const STOLEN_SHOWN: f64 = 1.0;
/// The shortest load there is, to see whether a broker lets us in at all.
const GREETING: &str = "[[scenario]]\nname='greeting'\ntitle='-'\nflags='--producers 1 --consumers 1 --autoack --rate 50'\nseconds=1\nwarmup=0";

/// A run under way.
#[derive(Debug)]
pub struct Runner {
    plan: Plan,
    brokers: Vec<Broker>,
    store: Store,
    results: Results,
    program: LoadProgram,
    stop: Stop,
}

/// A target and the process that was found for it.
#[derive(Debug)]
pub struct Broker {
    pub spec: TargetSpec,
    /// Of all nodes; none if they are not known.
    pub pids: Vec<u32>,
}

impl Runner {
    /// With everything that a run needs.
    pub fn new(
        plan: Plan,
        brokers: Vec<Broker>,
        store: Store,
        results: Results,
        program: LoadProgram,
        stop: Stop,
    ) -> Self {
        Self {
            plan,
            brokers,
            store,
            results,
            program,
            stop,
        }
    }

    /// Makes all visits that have no result yet and writes the reports.
    ///
    /// # Errors
    /// The user stopped it, or the results can't be saved. A visit that fails is a result.
    pub fn run(mut self) -> Result<(Results, Vec<PathBuf>), Failure> {
        let all = schedule::visits(&self.plan.scenarios, self.brokers.len(), self.plan.rounds);
        let left = schedule::remaining(&all, &self.results);
        let expected = schedule::estimate(&left, &self.plan.scenarios);
        let mut progress = Progress::new(all.len(), all.len() - left.len(), expected);
        progress.say(&format!(
            "{} visits, about {}",
            left.len(),
            schedule::shown(expected)
        ));
        for visit in left {
            let outcome = self.visit(visit, &mut progress);
            if outcome.is_err() {
                progress.clear();
                // The first reason is the one to tell.
                let _ = self.store.finish(&self.results);
            }
            outcome?;
        }
        progress.clear();
        self.results.finished_unix_s = Some(sampler::now_unix_us() / 1_000_000);
        let files = self.store.finish(&self.results)?;
        Ok((self.results, files))
    }

    fn visit(&mut self, visit: Visit, progress: &mut Progress) -> Result<(), Failure> {
        let Some(scenario) = self.plan.scenarios.get(visit.scenario).cloned() else {
            return Ok(());
        };
        let Some(broker) = self.brokers.get_mut(visit.target) else {
            return Ok(());
        };
        let spec = broker.spec.clone();
        let text = format!("{} round {}, {}", scenario.name, visit.round + 1, spec.name);
        progress.begin(&text, schedule::duration(&scenario));
        broker.find_again();
        let run = match self.undisturbed(&scenario, visit, &text, progress) {
            Ok(run) => run,
            Err(LoadFailure::Interrupted) => {
                return Err(Failure::Interrupted(self.store.directory().to_owned()));
            }
            Err(LoadFailure::Skipped(reason)) => Run::skipped(visit.target, visit.round, reason),
            Err(LoadFailure::Failed(reason)) => {
                let reason = spec.hide_secret(&reason);
                let printed = spec.hide_secret(&self.program.printed());
                self.store.keep_failure(&format!("{text}: {reason}"), &printed);
                Run::failed(visit.target, visit.round, reason)
            }
        };
        progress.end(&format!("{text}: {}", line(&run)));
        if let Some(result) = self.results.scenarios.get_mut(visit.scenario) {
            result
                .runs
                .retain(|old| (old.target, old.round) != (visit.target, visit.round));
            result.runs.push(run);
            result.runs.sort_by_key(|run| (run.round, run.target));
        }
        self.store.save(&self.results)
    }

    /// Makes a visit, again while more than was asked for is stolen in it; no result decides that. Answers the least
    /// disturbed one.
    fn undisturbed(
        &self,
        scenario: &Scenario,
        visit: Visit,
        text: &str,
        progress: &Progress,
    ) -> Result<Run, LoadFailure> {
        let Some(broker) = self.brokers.get(visit.target) else {
            return Err(LoadFailure::Failed("there is no such target".to_owned()));
        };
        let mut tick = || progress.tick();
        let mut run = self.measure(scenario, broker, visit, &mut tick)?;
        let mut best = run.clone();
        while let Some(stolen) = self.too_much_stolen(&run) {
            progress.say(&format!(
                "    {text}: {} stolen, once more",
                shown::percent(stolen)
            ));
            let repeated = run.repeated + 1;
            self.rest(BUSY_HOST * repeated, &mut tick);
            run = self.measure(scenario, broker, visit, &mut tick)?;
            run.repeated = repeated;
            if run.stolen_percent <= best.stolen_percent {
                best = run.clone();
            }
            best.repeated = repeated;
        }
        if self.plan.count_syncs && visit.round == 0 && scenario.is_durable() {
            best.syncs_per_message = self.count_syncs(scenario, broker, &mut tick)?;
        }
        Ok(best)
    }

    fn rest(&self, time: Duration, tick: &mut dyn FnMut()) {
        let end = Instant::now() + time;
        while Instant::now() < end && !self.stop.is_asked() {
            thread::park_timeout(LOOK);
            tick();
        }
    }

    fn too_much_stolen(&self, run: &Run) -> Option<f64> {
        let (most, stolen) = (self.plan.max_stolen?, run.stolen_percent?);
        (stolen > most && run.repeated < REPEATS).then_some(stolen)
    }

    fn measure(
        &self,
        scenario: &Scenario,
        broker: &Broker,
        visit: Visit,
        tick: &mut dyn FnMut(),
    ) -> Result<Run, LoadFailure> {
        broker.spec.reach().map_err(LoadFailure::Failed)?;
        if scenario.is_of_streams() {
            broker.spec.reach_streams().map_err(LoadFailure::Skipped)?;
        }
        broker.settle(&self.stop, tick);
        let name = unique(visit);
        self.fill(scenario, broker, &name, tick)?;
        let run = Run::empty(visit.target, visit.round);
        // Where the process can't be watched there are no costs, but rates and latencies all the same.
        let sampler = broker.known().and_then(|pids| Sampler::start(pids).ok());
        let load = Load::of(scenario, &broker.spec, &name);
        let loaded = self.program.run(&load, &self.stop, tick);
        let samples = sampler.map(Sampler::finish);
        let loaded = loaded.map_err(|failure| with_death(failure, samples.as_ref()))?;
        Ok(window::figures(run, scenario, &loaded, samples.as_ref()))
    }

    /// Has what the load of a visit is to find.
    fn fill(
        &self,
        scenario: &Scenario,
        broker: &Broker,
        name: &str,
        tick: &mut dyn FnMut(),
    ) -> Result<(), LoadFailure> {
        if let Some(load) = Load::before(scenario, &broker.spec, name) {
            self.program.run(&load, &self.stop, tick)?;
            broker.settle(&self.stop, tick);
        }
        Ok(())
    }

    /// Syncs a message, in a visit of its own.
    fn count_syncs(
        &self,
        scenario: &Scenario,
        broker: &Broker,
        tick: &mut dyn FnMut(),
    ) -> Result<Option<f64>, LoadFailure> {
        let Some(pids) = broker.known() else {
            return Ok(None);
        };
        let mut short = scenario.clone();
        short.seconds = short.seconds.min(COUNTED_SECONDS);
        let name = format!(
            "{}s",
            unique(Visit {
                scenario: 0,
                target: 0,
                round: 0
            })
        );
        self.fill(&short, broker, &name, tick)?;
        let count = SyncCount::start(pids, &self.program.scratch).map_err(LoadFailure::Failed)?;
        let load = Load::of(&short, &broker.spec, &name);
        let measured = self.program.run(&load, &self.stop, tick);
        let syncs = count.finish();
        let messages = messages(&measured?.measured);
        Ok(syncs
            .filter(|_| messages > 0.0)
            .map(|syncs| syncs as f64 / messages))
    }
}

/// What syncs are shared out to: published messages, or operations.
fn messages(measured: &Measured) -> f64 {
    let operations = measured
        .churn
        .as_ref()
        .map(|churn| churn.operations.values().map(|o| o.count).sum::<u64>());
    operations
        .unwrap_or_default()
        .max(measured.total.published)
        .max(measured.total.consumed) as f64
}

/// A name that no earlier visit had, whichever run it was of.
fn unique(visit: Visit) -> String {
    let now = sampler::now_unix_us() / 1_000;
    format!("{now:x}-{}-{}-{}", visit.scenario, visit.round, visit.target)
}

/// A broker that died says more than what its client noticed of it.
fn with_death(failure: LoadFailure, samples: Option<&Samples>) -> LoadFailure {
    match failure {
        LoadFailure::Failed(reason) if samples.is_some_and(|s| s.died) => {
            LoadFailure::Failed(format!("the broker's process ended: {reason}"))
        }
        other => other,
    }
}

/// A visit in a line.
fn line(run: &Run) -> String {
    if let Some((trouble, reason)) = run.outcome.trouble() {
        return format!("{trouble}: {reason}");
    }
    let mut parts = Vec::new();
    parts.extend(run.rate().map(|rate| format!("{}/s", shown::number(rate))));
    parts.extend(
        run.main_latency()
            .map(|l| format!("p50 {}, p99 {}", shown::time_us(l.p50), shown::time_us(l.p99))),
    );
    parts.extend(
        run.cpu_us_per_message
            .map(|cpu| format!("{} CPU each", shown::time_us(cpu))),
    );
    parts.extend(run.rss_peak_bytes.map(shown::megabytes));
    let stolen = run.stolen_percent.filter(|stolen| *stolen >= STOLEN_SHOWN);
    parts.extend(stolen.map(|stolen| format!("{} stolen", shown::percent(stolen))));
    parts.join(", ")
}

impl Broker {
    /// Finds a target's process. Where it can't be found there are no costs, which is a line to say and no reason to stop;
    /// a command that was given for it must work.
    ///
    /// # Errors
    /// The command didn't tell an id, or there is no process of that id.
    pub fn find(spec: TargetSpec, say: &mut dyn FnMut(&str)) -> Result<Self, Failure> {
        let pids = match (spec.find_pids(), &spec.pid) {
            (Ok(pids), _) => pids,
            (Err(why), crate::target::PidSpec::Listener) => {
                say(&format!(
                    "{}: {why}; without a process there are no CPU and memory figures (add ,pid=PID)",
                    spec.name
                ));
                Vec::new()
            }
            (Err(why), _) => return Err(Failure::Usage(format!("target {}: {why}", spec.name))),
        };
        let broker = Self { spec, pids };
        if let Some(pids) = broker.known() {
            ProcessTree::new(pids)
                .map_err(|e| Failure::Usage(format!("target {}: {e}", broker.spec.name)))?;
        }
        Ok(broker)
    }

    /// Its processes, where they can be watched.
    fn known(&self) -> Option<&[u32]> {
        (!self.pids.is_empty()).then_some(self.pids.as_slice())
    }

    /// A broker that was started anew has another process.
    fn find_again(&mut self) {
        if self.known().is_some_and(|pids| ProcessTree::new(pids).is_err()) {
            self.pids = self.spec.find_pids().unwrap_or_default();
        }
    }

    /// Waits until the broker has nothing to do any more.
    fn settle(&self, stop: &Stop, tick: &mut dyn FnMut()) {
        let Some(tree) = self.known().and_then(|pids| ProcessTree::new(pids).ok()) else {
            return;
        };
        let cpu = || tree.usage().map(|usage| usage.user_s + usage.system_s);
        let deadline = Instant::now() + SETTLE;
        while Instant::now() < deadline && !stop.is_asked() {
            let before = cpu();
            thread::park_timeout(LOOK);
            tick();
            match (before, cpu()) {
                (Some(before), Some(after)) if after - before > IDLE_S => {}
                _ => return,
            }
        }
    }
}

/// Sees with a load of a second whether a broker lets us in, and what it says that it is.
///
/// # Errors
/// It doesn't, or the user stopped it.
pub fn greet(program: &LoadProgram, spec: &TargetSpec, stop: &Stop) -> Result<String, Failure> {
    spec.reach().map_err(Failure::Run)?;
    let scenarios = crate::scenario_file::read(GREETING).map_err(Failure::Run)?;
    let scenario = scenarios
        .first()
        .ok_or_else(|| Failure::Run("there is no greeting".to_owned()))?;
    let visit = Visit {
        scenario: 0,
        target: 0,
        round: 0,
    };
    let measured = program.run(&Load::of(scenario, spec, &unique(visit)), stop, &mut || ());
    match measured {
        Ok(loaded) => Ok(match loaded.measured.server {
            Some(server) => format!("{} {}", server.product, server.version).trim().to_owned(),
            None => "unknown".to_owned(),
        }),
        Err(LoadFailure::Failed(reason) | LoadFailure::Skipped(reason)) => Err(Failure::Run(format!(
            "target {}: {}",
            spec.name,
            spec.hide_secret(&reason)
        ))),
        Err(LoadFailure::Interrupted) => Err(Failure::Run("stopped before the first visit".to_owned())),
    }
}

/// A scenario without runs, as the results begin with.
pub fn unmeasured(scenario: &Scenario) -> ScenarioResult {
    let copied = |words: Vec<String>| words.iter().map(|word| flags::quoted(word)).collect();
    ScenarioResult {
        name: scenario.name.clone(),
        title: scenario.title.clone(),
        group: scenario.group.clone(),
        // A line to copy; a name that differs at each visit would only puzzle.
        fill: copied(load::named(&scenario.fill, "1")),
        flags: copied(load::words(scenario, "1")),
        plot: scenario.plot,
        point: scenario.point.clone(),
        runs: Vec::new(),
    }
}

/// The generator that a plan names, or this program.
///
/// # Errors
/// This program's own file can't be found.
pub fn program(plan: &Plan, store: &Store) -> Result<LoadProgram, Failure> {
    let program = match &plan.perf_program {
        Some(program) => program.clone(),
        None => std::env::current_exe().map_err(|e| Failure::Run(format!("this program's file: {e}")))?,
    };
    Ok(LoadProgram {
        program,
        cores: plan.perf_cores.clone().map(Cores),
        scratch: store.scratch(),
    })
}
