//! `leveret perf multi`: the loads of a specification one after the other, as PerfTest's `PerfTestMulti` runs them.
//!
//! Reading order: [`spec`] is the specification, [`properties`] how a load is described in it, [`stats`] what is measured of
//! a load, [`outcome`] the results of a scenario, [`page`] their charts.

mod outcome;
mod page;
mod properties;
mod spec;
mod stats;

use crate::cli;
use crate::failure::{Failure, complain};
use crate::plan::Plan;
use crate::report::Reports;
use crate::run::{self, Interrupt};
use crate::subcommand::{self, Request};
use clap::Parser;
use jiff::tz::TimeZone;
use outcome::{Outcome, Point};
use serde_json::{Map, Value, json};
use spec::{Kind, Scenario, Variable};
use stats::Stats;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

/// What was asked for.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "leveret perf multi",
    bin_name = "leveret perf multi",
    about = "Runs the loads of a specification of PerfTest's PerfTestMulti one after the other, and writes its results.",
    after_help = "docs/perf-multi.md describes specifications and results.",
    disable_version_flag = true,
    max_term_width = 110
)]
struct Options {
    /// The specification: a list of scenarios in JSON; single quotes and comments are allowed
    spec: PathBuf,
    /// The file for the results, in JSON
    result: PathBuf,
    /// Also writes a page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Runs `leveret perf multi` with the arguments behind its name.
pub fn main(arguments: &[String]) -> ExitCode {
    subcommand::execute(subcommand::read::<Options>("multi", arguments), |options| {
        run(&options)
    })
}

fn run(options: &Options) -> Result<ExitCode, Failure> {
    let text = fs::read_to_string(&options.spec).map_err(|error| {
        let name = options.spec.display();
        Failure::File(match error.kind() {
            io::ErrorKind::NotFound => format!("Input json file {name} could not be found"),
            _ => format!("Input json file {name} could not be read: {error}"),
        })
    })?;
    let scenarios = spec::read(&text).map_err(Failure::Usage)?;
    for scenario in &scenarios {
        check(scenario)?;
    }
    let interrupt = Interrupt::catch();
    let (mut outcomes, mut failure) = (Vec::new(), None);
    for scenario in scenarios {
        say(&format!("Running scenario '{}' ", scenario.name));
        let (outcome, ended) = measure(&scenario, &interrupt);
        say("\n");
        outcomes.push(outcome);
        if let Err(why) = ended {
            failure = Some(format!("scenario {}: {why}", scenario.name));
            break;
        }
    }
    write(&options.result, &results(&outcomes))?;
    if let Some(path) = &options.html {
        write(path, &page::page(&outcomes))?;
    }
    if let Some(signal) = interrupt.came() {
        return Ok(ExitCode::from(128 + signal));
    }
    Ok(match failure {
        Some(failure) => {
            complain(failure);
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    })
}

/// Progress, as PerfTest shows it. Whoever reads may stop reading.
fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

fn results(outcomes: &[Outcome]) -> String {
    let results: Map<String, Value> = outcomes
        .iter()
        .map(|it| (it.name.clone(), it.to_json()))
        .collect();
    format!("{:#}\n", Value::Object(results))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::File(format!("cannot write {}: {error}.", path.display())))
}

/// Refuses before the first load what would be refused later.
fn check(scenario: &Scenario) -> Result<(), Failure> {
    let variables = match &scenario.kind {
        Kind::Varying(variables) => variables.clone(),
        Kind::Simple | Kind::RateVsLatency => Vec::new(),
    };
    for values in combinations(&variables) {
        for load in &scenario.loads {
            plan(scenario, load, &values)
                .map_err(|failure| Failure::Usage(format!("scenario {}: {failure}", scenario.name)))?;
        }
    }
    Ok(())
}

/// Runs a scenario. What was measured until a failure is an outcome, too.
fn measure(scenario: &Scenario, interrupt: &Interrupt) -> (Outcome, Result<(), Failure>) {
    let mut outcome = Outcome {
        name: scenario.name.clone(),
        variables: Vec::new(),
        points: Vec::new(),
    };
    let variables = match &scenario.kind {
        Kind::Simple => Vec::new(),
        Kind::Varying(variables) => variables.clone(),
        Kind::RateVsLatency => {
            let (most, ended) = point(scenario, &[], interrupt);
            if ended.is_err() || interrupt.came().is_some() {
                return (outcome, ended);
            }
            vec![rates(most.stats.sent().midpoint(most.stats.received()))]
        }
    };
    outcome.variables = variables.iter().map(|it| it.property.clone()).collect();
    for values in combinations(&variables) {
        let (point, ended) = point(scenario, &values, interrupt);
        outcome.points.push(point);
        if ended.is_err() || interrupt.came().is_some() {
            return (outcome, ended);
        }
        if !variables.is_empty() {
            say("#");
        }
    }
    (outcome, Ok(()))
}

/// The rates of `rate-vs-latency`: far below, near and above the one that was reached.
fn rates(most: f64) -> Variable {
    const SHARES: [f64; 17] = [
        0.01, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.96, 0.97, 0.98, 0.99, 1.0, 1.01, 1.02, 1.03, 1.04, 1.05,
    ];
    let most = most.floor();
    Variable {
        property: "producerRateLimit".to_owned(),
        values: SHARES.map(|share| json!((share * most) as u64)).to_vec(),
    }
}

/// Every combination of the variables' values; the last one varies fastest.
fn combinations(variables: &[Variable]) -> Vec<Vec<(String, Value)>> {
    let mut all = vec![Vec::new()];
    for variable in variables {
        let longer = |values: &Vec<(String, Value)>| {
            let values = values.clone();
            variable.values.iter().map(move |value| {
                let mut values = values.clone();
                values.push((variable.property.clone(), value.clone()));
                values
            })
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// Runs the loads of a scenario with these values.
fn point(
    scenario: &Scenario,
    values: &[(String, Value)],
    interrupt: &Interrupt,
) -> (Point, Result<(), Failure>) {
    let stats = Arc::new(Mutex::new(Stats::default()));
    let mut ended = Ok(());
    // PerfTest knows only one load of this kind.
    let loads = match scenario.kind {
        Kind::RateVsLatency => &scenario.loads[..1],
        Kind::Simple | Kind::Varying(_) => &scenario.loads[..],
    };
    for load in loads {
        ended = plan(scenario, load, values)
            .and_then(|plan| load_once(&plan, size(load, values), &stats, interrupt));
        if ended.is_err() || interrupt.came().is_some() {
            break;
        }
    }
    let stats = stats.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let values = values.iter().map(|(_, value)| value.clone()).collect();
    (Point { values, stats }, ended)
}

fn load_once(
    plan: &Plan,
    size: f64,
    stats: &Arc<Mutex<Stats>>,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let lock = |stats: &Mutex<Stats>, then: &dyn Fn(&mut Stats)| {
        then(&mut stats.lock().unwrap_or_else(PoisonError::into_inner))
    };
    lock(stats, &|stats| stats.begin(size));
    let watched = stats.clone();
    let mut reports = Reports::to(plan, false, Box::new(io::sink()), TimeZone::UTC)?;
    reports.watch(Box::new(move |sample| lock(&watched, &|stats| stats.add(sample))));
    let measured = run::measure(plan, &mut reports, &mut None, None, interrupt, &mut |_| None)?;
    match measured.cut_short {
        Some(why) if interrupt.came().is_none() => Err(Failure::Lost(why)),
        _ => Ok(()),
    }
}

/// The plan of a load with these values in place of its own.
fn plan(scenario: &Scenario, load: &Map<String, Value>, values: &[(String, Value)]) -> Result<Plan, Failure> {
    let mut load = load.clone();
    load.extend(values.iter().cloned());
    // Bodies hold at least PerfTest's number and time.
    if size(&load, &[]) < 12.0 {
        load.remove("minMsgSize");
    }
    let mut arguments = vec![
        "--uri".to_owned(),
        scenario.uri.clone(),
        "--interval".to_owned(),
        scenario.interval_s.to_string(),
    ];
    arguments.extend(properties::flags(&load).map_err(Failure::Usage)?);
    match cli::plan(&arguments, &|_| None)? {
        Request::Run(plan) => Ok(*plan),
        Request::Print(text) => Err(Failure::Usage(text)),
    }
}

/// Bytes of a message, for rates in bytes.
fn size(load: &Map<String, Value>, values: &[(String, Value)]) -> f64 {
    let varied = values
        .iter()
        .find(|(name, _)| name == "minMsgSize")
        .map(|(_, value)| value);
    varied
        .or_else(|| load.get("minMsgSize"))
        .and_then(Value::as_f64)
        .unwrap_or_default()
}
