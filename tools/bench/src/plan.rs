//! What a run does, fixed at its start: kept beside the results as `run.json`, so that an interrupted run goes on as it began.

use crate::cli::{Cores, Options};
use crate::failure::Failure;
use crate::scenario::{DEFAULT_ROUNDS, Level, Scenario};
use crate::scenario_file::{self, EMBEDDED};
use crate::selection;
use crate::target::{PidSpec, TargetSpec};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;

/// `--smoke` has this many rounds and windows this long, in seconds.
const SMOKE_ROUNDS: u32 = 2;
const SMOKE_SECONDS: u32 = 2;
/// The number of the format of `run.json`.
const FORMAT: u32 = 1;

/// The plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    format: u32,
    pub targets: Vec<PlannedTarget>,
    /// Expanded, with the lengths that hold for this run.
    pub scenarios: Vec<Scenario>,
    pub rounds: u32,
    pub count_syncs: bool,
    /// In per cent.
    #[serde(default)]
    pub max_stolen: Option<f64>,
    pub perf_program: Option<PathBuf>,
    pub perf_cores: Option<Vec<usize>>,
}

/// A target, so that it can be found again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTarget {
    pub name: String,
    /// As `--target` has it. Absent if it has a password, which no file of ours keeps.
    spec: Option<String>,
}

impl Plan {
    /// What the command line asks for.
    ///
    /// # Errors
    /// It can't be done: no target, two of one name, no scenario, a bad file.
    pub fn of(options: &Options) -> Result<Self, Failure> {
        check_names(&options.targets)?;
        let scenarios = chosen(options)?;
        let rounds = options.rounds.unwrap_or(if options.smoke {
            SMOKE_ROUNDS
        } else {
            DEFAULT_ROUNDS
        });
        Ok(Self {
            format: FORMAT,
            targets: options.targets.iter().map(PlannedTarget::of).collect(),
            scenarios,
            rounds,
            count_syncs: options.count_syncs,
            max_stolen: options.max_stolen,
            perf_program: options.perf_program.clone(),
            perf_cores: options.perf_cores.as_ref().map(|cores| cores.0.clone()),
        })
    }

    /// Reads what an earlier run wrote.
    ///
    /// # Errors
    /// A line that says why it isn't a plan of ours.
    pub fn read(text: &str) -> Result<Self, String> {
        let plan: Self = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if plan.format == FORMAT {
            Ok(plan)
        } else {
            Err(format!("its format is {}", plan.format))
        }
    }

    /// What a resumed run's command line changes: targets that are given again (they may have another port or process by
    /// now), and the generator. Answers the targets.
    ///
    /// # Errors
    /// A target that the run doesn't have, or one whose password wasn't kept and isn't given.
    pub fn resume(&mut self, options: &Options) -> Result<Vec<TargetSpec>, Failure> {
        for target in &options.targets {
            if !self.targets.iter().any(|planned| planned.name == target.name) {
                return Err(Failure::Usage(format!(
                    "the run to go on with has no target {}",
                    target.name
                )));
            }
        }
        if options.perf_program.is_some() {
            self.perf_program.clone_from(&options.perf_program);
        }
        if let Some(Cores(cores)) = &options.perf_cores {
            self.perf_cores = Some(cores.clone());
        }
        let find = |planned: &PlannedTarget| {
            if let Some(given) = options.targets.iter().find(|t| t.name == planned.name) {
                return Ok(given.clone());
            }
            let name = &planned.name;
            let again = || {
                Failure::Usage(format!(
                    "the password of {name} was not kept; add --target {name}=URI"
                ))
            };
            TargetSpec::parse(planned.spec.as_deref().ok_or_else(again)?).map_err(Failure::Usage)
        };
        self.targets.iter().map(find).collect()
    }
}

impl PlannedTarget {
    fn of(target: &TargetSpec) -> Self {
        let pid = match &target.pid {
            PidSpec::Listener => String::new(),
            PidSpec::Fixed(pid) => format!(",pid={pid}"),
            PidSpec::Command(command) => format!(",pid={command}"),
        };
        let mut spec = format!("{}={}", target.name, target.uri);
        let others = [
            ("declare", &target.declare),
            ("stream", &target.stream),
            ("http", &target.http),
        ];
        for (key, uri) in others {
            spec.extend(uri.as_ref().map(|uri| format!(",{key}={uri}")));
        }
        spec.push_str(&pid);
        Self {
            name: target.name.clone(),
            spec: (!target.has_secret()).then_some(spec),
        }
    }
}

fn check_names(targets: &[TargetSpec]) -> Result<(), Failure> {
    if targets.is_empty() {
        let text = "no target: add --target NAME=URI, such as --target leveret=amqp://localhost:5672";
        return Err(Failure::Usage(text.to_owned()));
    }
    for (index, target) in targets.iter().enumerate() {
        if targets.iter().take(index).any(|other| other.name == target.name) {
            return Err(Failure::Usage(format!("two targets are named {}", target.name)));
        }
    }
    Ok(())
}

/// All scenarios that there are: the built-in ones, behind those of the user's file, which win where names are the same.
///
/// # Errors
/// The file can't be read or understood.
pub fn all(options: &Options) -> Result<(Vec<Scenario>, usize), Failure> {
    let embedded = scenario_file::read(EMBEDDED).map_err(Failure::Run)?;
    let Some(path) = &options.scenario_file else {
        return Ok((embedded, 0));
    };
    let bad = |e: String| Failure::Usage(format!("{}: {e}", path.display()));
    let text = fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
    let mut scenarios = scenario_file::read(&text).map_err(bad)?;
    let own = scenarios.len();
    let others = embedded
        .into_iter()
        .filter(|s| !scenarios.iter().any(|o| o.name == s.name));
    let others: Vec<Scenario> = others.collect();
    scenarios.extend(others);
    Ok((scenarios, own))
}

fn chosen(options: &Options) -> Result<Vec<Scenario>, Failure> {
    let (mut scenarios, own) = all(options)?;
    if own > 0 && options.scenarios.is_empty() {
        scenarios.truncate(own);
    }
    let level = level(options);
    let mut chosen = selection::select(&scenarios, &options.scenarios, level).map_err(Failure::Usage)?;
    if chosen.is_empty() {
        return Err(Failure::Usage(
            "no scenario of this level; add --all, or leave --smoke out".to_owned(),
        ));
    }
    let seconds = options.seconds.or(options.smoke.then_some(SMOKE_SECONDS));
    for scenario in &mut chosen {
        if let (Some(seconds), false) = (seconds, scenario.ends_itself) {
            scenario.seconds = f64::from(seconds);
        }
        if let Some(warmup) = options.warmup {
            scenario.warmup = f64::from(warmup);
        }
    }
    Ok(chosen)
}

/// How far the command line goes.
pub fn level(options: &Options) -> Level {
    match (options.smoke, options.all) {
        (true, _) => Level::Smoke,
        (_, true) => Level::Long,
        _ => Level::Full,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule;
    use clap::Parser;

    fn options(line: &str) -> Options {
        Options::try_parse_from(format!("bench {line}").split_ascii_whitespace()).unwrap()
    }

    #[test]
    fn a_smoke_run_of_three_targets_takes_less_than_three_minutes() {
        let options = options("--smoke --target a=amqp://h --target b=amqp://h --target c=amqp://h");
        let plan = Plan::of(&options).unwrap();
        let visits = schedule::visits(&plan.scenarios, 3, plan.rounds);
        // Finding the brokers, the disk's probe and the reports take a few seconds more.
        let time = schedule::estimate(&visits, &plan.scenarios);
        assert!(time.as_secs() < 165, "{}", schedule::shown(time));
        assert!(plan.scenarios.iter().all(|s| s.seconds == 2.0));
    }

    #[test]
    fn lengths_of_the_command_line_win_except_where_a_run_ends_itself() {
        let plan = Plan::of(&options(
            "--target a=amqp://h --scenarios T1,S002-4 --seconds 9 --warmup 2",
        ))
        .unwrap();
        let lengths: Vec<(f64, f64)> = plan.scenarios.iter().map(|s| (s.seconds, s.warmup)).collect();
        assert_eq!(lengths, [(9.0, 2.0), (14.0, 2.0)]);
    }

    #[test]
    fn names_must_be_there_and_differ() {
        let said = |line: &str| Plan::of(&options(line)).unwrap_err().to_string();
        assert!(said("").contains("add --target"));
        assert!(said("--target a=amqp://h --target a=amqp://i").contains("two targets are named a"));
    }

    #[test]
    fn a_file_of_ones_own_is_run_alone_unless_others_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.toml");
        fs::write(&path, "[[scenario]]\nname='MINE'\ntitle='t'\nflags='-x 1'\n").unwrap();
        let run = |more: &str| {
            let line = format!("--target a=amqp://h --scenario-file {} {more}", path.display());
            let plan = Plan::of(&options(&line)).unwrap();
            plan.scenarios.into_iter().map(|s| s.name).collect::<Vec<_>>()
        };
        assert_eq!(run(""), ["MINE"]);
        assert_eq!(run("--scenarios MINE,T1"), ["MINE", "T1"]);
        fs::write(&path, "[[scenario]]\nname=").unwrap();
        let line = format!("--target a=amqp://h --scenario-file {}", path.display());
        assert!(
            Plan::of(&options(&line))
                .unwrap_err()
                .to_string()
                .contains("own.toml")
        );
    }

    #[test]
    fn a_plan_is_read_back_without_passwords() {
        let line = "--scenarios T1 --target a=amqp://guest:guest@h,declare=amqp://i,stream=rabbitmq-stream://h:9,http=http://h,pid=7 --target b=amqp://me:secret@h";
        let plan = Plan::of(&options(line)).unwrap();
        let text = serde_json::to_string(&plan).unwrap();
        assert!(!text.contains("secret"));
        let mut read = Plan::read(&text).unwrap();
        assert_eq!(read, plan);
        let said = read.resume(&options("--resume d")).unwrap_err().to_string();
        assert!(said.contains("add --target b=URI"), "{said}");
        let targets = read
            .resume(&options("--resume d --target b=amqp://me:secret@h:99"))
            .unwrap();
        assert_eq!((targets[0].pid.clone(), targets[1].port), (PidSpec::Fixed(7), 99));
        let others = [&targets[0].declare, &targets[0].stream, &targets[0].http].map(Option::as_deref);
        let expected = ["amqp://i", "rabbitmq-stream://h:9", "http://h"].map(Some);
        assert_eq!(others, expected);
        assert!(read.resume(&options("--resume d --target c=amqp://h")).is_err());
        assert!(Plan::read("{}").is_err());
    }
}
