//! From the command line to the reports.

use crate::cli::Options;
use crate::failure::Failure;
use crate::machine;
use crate::plan::{self, Plan};
use crate::results::{FORMAT, Results, Target};
use crate::runner::{self, Broker, Runner};
use crate::sampler;
use crate::scenario::DEFAULT_ROUNDS;
use crate::schedule;
use crate::statistics;
use crate::stop::Stop;
use crate::store::{self, Store};
use crate::syncs;
use crate::table;
use crate::target::TargetSpec;
use std::path::PathBuf;

/// Does what the command line asks for.
///
/// # Errors
/// What stood in the way, with what to do.
pub fn run(options: &Options) -> Result<(), Failure> {
    if let Some(place) = &options.show {
        return show(options, &store::read_results(place)?);
    }
    if options.list {
        return list(options);
    }
    if options.count_syncs && !syncs::available() {
        return Err(Failure::Usage(
            "--count-syncs needs strace, which is not on the PATH".to_owned(),
        ));
    }
    let stop = Stop::on_signals().map_err(Failure::Run)?;
    let runner = match &options.resume {
        Some(_) => resumed(options, stop)?,
        None => begun(options, stop)?,
    };
    let (results, files) = runner.run()?;
    print!("{}", table::found(&results));
    for file in files {
        println!("{}", file.display());
    }
    Ok(())
}

fn show(options: &Options, results: &Results) -> Result<(), Failure> {
    print!("{}", table::found(results));
    if let Some(directory) = &options.output {
        for file in store::write_reports(directory, results)? {
            println!("{}", file.display());
        }
    }
    Ok(())
}

fn list(options: &Options) -> Result<(), Failure> {
    let (scenarios, _) = plan::all(options)?;
    let rounds = options.rounds.unwrap_or(DEFAULT_ROUNDS);
    let scenarios = if options.scenarios.is_empty() {
        scenarios
    } else {
        crate::selection::select(&scenarios, &options.scenarios, crate::scenario::Level::Long)
            .map_err(Failure::Usage)?
    };
    print!("{}", table::list(&scenarios, rounds));
    let targets = options.targets.len().max(1);
    let default = crate::selection::select(&scenarios, &[], plan::level(options)).map_err(Failure::Usage)?;
    let time = schedule::estimate(&schedule::visits(&default, targets, rounds), &default);
    let text = schedule::shown(time);
    println!(
        "Those of levels smoke and full take about {text} for {targets} target(s), {rounds} rounds; long ones need --all."
    );
    Ok(())
}

fn begun(options: &Options, stop: Stop) -> Result<Runner, Failure> {
    let plan = Plan::of(options)?;
    let directory = options.output.clone().unwrap_or_else(default_directory);
    for target in &options.targets {
        target.reach().map_err(Failure::Run)?;
    }
    let brokers = find(options.targets.clone())?;
    let store = Store::create(&directory, &plan)?;
    let program = runner::program(&plan, &store)?;
    let mut results = Results {
        format: FORMAT,
        title: title(&brokers),
        started_unix_s: sampler::now_unix_us() / 1_000_000,
        finished_unix_s: None,
        machine: machine::describe(&directory, options.note.as_deref()),
        targets: Vec::new(),
        rounds: plan.rounds,
        seconds: seconds(&plan),
        order: schedule::order_shown(brokers.len()),
        scenarios: plan.scenarios.iter().map(runner::unmeasured).collect(),
    };
    for broker in &brokers {
        match runner::greet(&program, &broker.spec, &stop) {
            Ok(version) => results.targets.push(described(broker, version)),
            Err(failure) => {
                store.discard();
                return Err(failure);
            }
        }
    }
    store.save(&results)?;
    Ok(Runner::new(plan, brokers, store, results, program, stop))
}

fn resumed(options: &Options, stop: Stop) -> Result<Runner, Failure> {
    let directory = options.resume.clone().unwrap_or_default();
    let (store, mut plan, mut results) = Store::open(&directory)?;
    let targets = plan.resume(options)?;
    let brokers = find(targets)?;
    let program = runner::program(&plan, &store)?;
    for (broker, target) in brokers.iter().zip(&mut results.targets) {
        let version = runner::greet(&program, &broker.spec, &stop)?;
        // Figures of two versions in one table would belong to neither.
        if version != target.version {
            let (name, old) = (&target.name, &target.version);
            return Err(Failure::Run(format!(
                "{name} was {old} and is {version} now: begin a new run"
            )));
        }
        target.pid = broker.pids.first().copied();
    }
    results.finished_unix_s = None;
    Ok(Runner::new(plan, brokers, store, results, program, stop))
}

fn find(targets: Vec<TargetSpec>) -> Result<Vec<Broker>, Failure> {
    let mut say = |line: &str| eprintln!("{line}");
    targets
        .into_iter()
        .map(|target| Broker::find(target, &mut say))
        .collect()
}

fn described(broker: &Broker, version: String) -> Target {
    Target {
        name: broker.spec.name.clone(),
        version,
        uri_shown: broker.spec.uri_shown(),
        pid: broker.pids.first().copied(),
    }
}

fn title(brokers: &[Broker]) -> String {
    let names: Vec<&str> = brokers.iter().map(|b| b.spec.name.as_str()).collect();
    match names.as_slice() {
        [only] => format!("Benchmark of {only}"),
        [first, others @ ..] => format!("Benchmark of {first} beside {}", others.join(" and ")),
        [] => "Benchmark".to_owned(),
    }
}

fn seconds(plan: &Plan) -> f64 {
    let lengths: Vec<f64> = plan
        .scenarios
        .iter()
        .filter(|s| !s.ends_itself)
        .map(|s| s.seconds)
        .collect();
    statistics::median(&lengths).unwrap_or_default()
}

fn default_directory() -> PathBuf {
    PathBuf::from(
        jiff::Zoned::now()
            .strftime("leveret-bench-%Y-%m-%d-%H%M%S")
            .to_string(),
    )
}
