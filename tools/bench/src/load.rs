//! Runs the load generator: `leveret perf` as a process of its own.

use crate::cli::Cores;
use crate::measured::Measured;
use crate::processors;
use crate::sampler::{Sampler, Samples};
use crate::scenario::{STREAM_PERF, Scenario, VISIT};
use crate::stop::Stop;
use crate::target::{TargetSpec, without_password};
use rustix::process::{Pid, Signal};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How often the progress is moved on, and Ctrl-C looked for.
const TICK: Duration = Duration::from_millis(100);
/// What a generator that was asked to end has for its results.
const GRACE: Duration = Duration::from_secs(10);
/// A thousand connections have a thousand lines; what went wrong stands at the end.
const LINES_KEPT: usize = 30;
/// A load may take so many times its own time beside its timeout: a slow broker fills a queue slowly.
const ALLOWANCE: u32 = 6;

/// The load generator.
#[derive(Debug, Clone)]
pub struct LoadProgram {
    pub program: PathBuf,
    pub cores: Option<Cores>,
    /// For what a run writes before it is read here.
    pub scratch: PathBuf,
}

/// One run of it.
#[derive(Debug, Clone)]
pub struct Load {
    pub uri: String,
    /// Where queues are declared, if not there.
    pub declare: Option<String>,
    /// Of the management API; only imports use it.
    pub http: Option<String>,
    pub id: String,
    /// As a user would type them behind `perf`, without the URI; or all of them, if they begin with `stream-perf`.
    pub words: Vec<String>,
    /// What it is expected to take.
    pub expected: Duration,
    /// What connecting, filling and deleting may take beside.
    pub timeout: Duration,
}

/// What a run brought.
#[derive(Debug)]
pub struct Loaded {
    pub measured: Measured,
    /// The generator's own process: whether it was the limit.
    pub samples: Option<Samples>,
}

/// Why there are no figures.
#[derive(Debug, PartialEq, Eq)]
pub enum LoadFailure {
    /// The user stopped the run.
    Interrupted,
    /// The target has not what the load is about. One line.
    Skipped(String),
    /// One line.
    Failed(String),
}

impl Load {
    /// A visit's load.
    pub fn of(scenario: &Scenario, target: &TargetSpec, visit: &str) -> Self {
        Self {
            uri: match scenario.is_of_streams() {
                true => target.stream_uri(),
                false => target.uri.clone(),
            },
            declare: target.declare.clone(),
            http: target.http.clone(),
            id: format!("bench-{visit}"),
            words: words(scenario, visit),
            expected: Duration::from_secs_f64(scenario.load_seconds()),
            timeout: Duration::from_secs_f64(scenario.timeout),
        }
    }

    /// What a visit's load finds, made by a load of its own; `None` where it finds nothing.
    pub fn before(scenario: &Scenario, target: &TargetSpec, visit: &str) -> Option<Self> {
        (!scenario.fill.is_empty()).then(|| Self {
            words: named(&scenario.fill, visit),
            expected: Duration::from_secs_f64(scenario.fill_seconds),
            ..Self::of(scenario, target, visit)
        })
    }

    fn is_of_streams(&self) -> bool {
        subcommand(&self.words) == Some(STREAM_PERF)
    }
}

/// A scenario's flags with all that belongs to them, for a visit of this name.
pub fn words(scenario: &Scenario, visit: &str) -> Vec<String> {
    let mut words = named(&scenario.flags, visit);
    if !scenario.ends_itself {
        words.extend(["--time".to_owned(), format!("{}", scenario.load_seconds().ceil())]);
    }
    // The other subcommands clear up by themselves.
    match subcommand(&words) {
        None => words.push("--delete-queues".to_owned()),
        Some(STREAM_PERF) => words.push("--delete-streams".to_owned()),
        Some(_) => {}
    }
    words
}

/// Flags with the visit's name in its place.
pub fn named(flags: &[String], visit: &str) -> Vec<String> {
    let placeholder = format!("{{{VISIT}}}");
    flags
        .iter()
        .map(|word| word.replace(&placeholder, visit))
        .collect()
}

/// `churn`, `import`, `phases` or `stream-perf`, which come before all flags.
fn subcommand(words: &[String]) -> Option<&str> {
    words
        .first()
        .map(String::as_str)
        .filter(|word| !word.starts_with('-'))
}

impl LoadProgram {
    /// Runs a load to its end; `tick` is called now and then meanwhile.
    ///
    /// # Errors
    /// It did not come to its end, or what it found is not to be believed.
    pub fn run(&self, load: &Load, stop: &Stop, tick: &mut dyn FnMut()) -> Result<Loaded, LoadFailure> {
        let failed = |e: std::io::Error| LoadFailure::Failed(format!("the load generator's files: {e}"));
        fs::create_dir_all(&self.scratch).map_err(failed)?;
        let json = self.scratch.join("perf.json");
        let _ = fs::remove_file(&json);
        let (stdout, stderr) = (self.scratch.join("stdout"), self.scratch.join("stderr"));
        let mut command = Command::new(&self.program);
        command
            .args(self.arguments(load, &json))
            .stdin(Stdio::null())
            .stdout(File::create(&stdout).map_err(failed)?)
            .stderr(File::create(&stderr).map_err(failed)?)
            // Ctrl-C is for us; we tell the generator ourselves.
            .process_group(0);
        let child = self.spawn(command)?;
        let sampler = Sampler::start(&[child.id()]).ok();
        let status = wait(child, load, stop, tick);
        let samples = sampler.map(Sampler::finish);
        let status = status?;
        let measured = Measured::read(&json);
        if !status.success() {
            let reason = measured
                .ok()
                .and_then(|m| m.cut_short)
                .or_else(|| last_line(&stderr));
            let reason = reason.unwrap_or_else(|| format!("the load generator ended with {status}"));
            return Err(LoadFailure::Failed(without_password(&reason)));
        }
        let measured = measured.map_err(LoadFailure::Failed)?;
        match measured.objection() {
            Some(reason) => Err(LoadFailure::Failed(without_password(&reason))),
            None => Ok(Loaded { measured, samples }),
        }
    }

    /// The end of what the last run printed, for a file of failures.
    pub fn printed(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.scratch.join(name)).unwrap_or_default();
        let text = format!("{}{}", read("stdout"), read("stderr"));
        let lines: Vec<&str> = text.lines().collect();
        lines
            .iter()
            .skip(lines.len().saturating_sub(LINES_KEPT))
            .map(|line| format!("{line}\n"))
            .collect()
    }

    fn arguments(&self, load: &Load, json: &Path) -> Vec<String> {
        if load.is_of_streams() {
            let ours = [STREAM_PERF, "--uris", &load.uri, "--id", &load.id, "--json"];
            let mut arguments = ours.map(str::to_owned).to_vec();
            arguments.push(json.display().to_string());
            arguments.extend(load.words.iter().skip(1).cloned());
            return arguments;
        }
        let mut arguments = vec!["perf".to_owned()];
        let behind = usize::from(subcommand(&load.words).is_some());
        arguments.extend(load.words.iter().take(behind).cloned());
        let ours = ["--uri", &load.uri, "--id", &load.id, "--interval", "1", "--json"];
        arguments.extend(ours.map(str::to_owned));
        arguments.push(json.display().to_string());
        if let (None, Some(declare)) = (subcommand(&load.words), &load.declare) {
            arguments.extend(["--declare-uri".to_owned(), declare.clone()]);
        }
        if let Some(http) = load
            .http
            .as_ref()
            .filter(|_| subcommand(&load.words) == Some("import"))
        {
            arguments.extend(["--http".to_owned(), http.clone()]);
        }
        arguments.extend(load.words.iter().skip(behind).cloned());
        arguments
    }

    /// Starts it on its cores. A thread's set of cores is inherited by what it starts, so that the generator is never
    /// elsewhere, and ours is left alone.
    fn spawn(&self, mut command: Command) -> Result<Child, LoadFailure> {
        let name = self.program.display().to_string();
        let start = move || {
            if let Some(Cores(cores)) = &self.cores {
                processors::pin(cores)?;
            }
            command.spawn()
        };
        let started = thread::scope(|scope| scope.spawn(start).join());
        let started = started.map_err(|_| LoadFailure::Failed(format!("{name} could not be started")))?;
        started.map_err(|e| LoadFailure::Failed(format!("{name} could not be started: {e}")))
    }
}

/// Waits for the end, tells the generator when the user wants it, and ends it when it takes far too long.
fn wait(
    mut child: Child,
    load: &Load,
    stop: &Stop,
    tick: &mut dyn FnMut(),
) -> Result<ExitStatus, LoadFailure> {
    let pid = Pid::from_child(&child);
    let (done, ended) = mpsc::channel();
    let waiter = move || drop(done.send(child.wait()));
    thread::Builder::new()
        .name("load".to_owned())
        .spawn(waiter)
        .map_err(|e| LoadFailure::Failed(format!("no thread to wait for the load generator: {e}")))?;
    let limit = load.expected * (1 + ALLOWANCE) + load.timeout;
    let deadline = Instant::now() + limit;
    loop {
        match ended.recv_timeout(TICK) {
            Ok(status) => {
                return status.map_err(|e| LoadFailure::Failed(format!("the load generator is lost: {e}")));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(LoadFailure::Failed("the load generator is lost".to_owned()));
            }
            Err(RecvTimeoutError::Timeout) => tick(),
        }
        let failure = if stop.is_asked() {
            LoadFailure::Interrupted
        } else if Instant::now() > deadline {
            let limit = crate::schedule::shown(limit);
            LoadFailure::Failed(format!(
                "the load did not come to its end within {limit} and was ended"
            ))
        } else {
            continue;
        };
        // An error means that it has just ended by itself.
        let _ = rustix::process::kill_process(pid, Signal::INT);
        if ended.recv_timeout(GRACE).is_err() {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            let _ = ended.recv_timeout(GRACE);
        }
        return Err(failure);
    }
}

fn last_line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario_file;
    use std::os::unix::fs::PermissionsExt;

    /// A program that does what the shell lines say, with `$json` as the file that it should write.
    fn program(folder: &Path, lines: &str) -> LoadProgram {
        let path = folder.join("fake");
        let find_json = "json=; last=; for a in \"$@\"; do [ \"$last\" = --json ] && json=$a; last=$a; done";
        fs::write(&path, format!("#!/bin/sh\n{find_json}\n{lines}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        LoadProgram {
            program: path,
            cores: None,
            scratch: folder.join("scratch"),
        }
    }

    fn load(flags: &str) -> Load {
        let text = format!("[[scenario]]\nname='A'\ntitle='a'\nflags='{flags}'\nseconds=2");
        let target = TargetSpec::parse("t=amqp://u:secret@h,http=http://h:1").unwrap();
        Load::of(&scenario_file::read(&text).unwrap()[0], &target, "v1")
    }

    fn run(lines: &str) -> LoadFailure {
        let folder = tempfile::tempdir().unwrap();
        program(folder.path(), lines)
            .run(&load("-x 1"), &Stop::default(), &mut || ())
            .unwrap_err()
    }

    #[test]
    fn the_generator_gets_its_arguments_and_its_results_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let lines = "echo \"$@\"; echo '{\"format\":1,\"total\":{\"published\":42}}' > \"$json\"";
        let program = program(folder.path(), lines);
        let loaded = program
            .run(&load("-x 1 --queue q-{visit}"), &Stop::default(), &mut || ())
            .unwrap();
        assert_eq!(loaded.measured.total.published, 42);
        let printed = program.printed();
        let expected = "perf --uri amqp://u:secret@h --id bench-v1 --interval 1 --json";
        assert!(printed.starts_with(expected), "{printed}");
        assert!(
            printed
                .trim_end()
                .ends_with("-x 1 --queue q-v1 --time 3 --delete-queues"),
            "{printed}"
        );
    }

    #[test]
    fn a_subcommand_stands_before_all_flags() {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path(), "echo \"$@\"; echo '{\"format\":1}' > \"$json\"");
        program
            .run(&load("churn --what bind"), &Stop::default(), &mut || ())
            .unwrap();
        let printed = program.printed();
        assert!(printed.starts_with("perf churn --uri "), "{printed}");
        assert!(printed.trim_end().ends_with("--what bind --time 3"), "{printed}");
        assert!(!printed.contains("--http"), "{printed}");
        program
            .run(&load("import --vhosts 3"), &Stop::default(), &mut || ())
            .unwrap();
        assert!(program.printed().contains("--http http://h:1 --vhosts 3"));
    }

    #[test]
    fn a_load_on_streams_goes_to_their_port_and_takes_them_away() {
        let folder = tempfile::tempdir().unwrap();
        let program = program(folder.path(), "echo \"$@\"; echo '{\"format\":1}' > \"$json\"");
        let text = "[[scenario]]\nname='A'\ntitle='a'\nfill='stream-perf -C 9 -st s-{visit}'\nflags='stream-perf -x 0 -st s-{visit}'";
        let scenario = scenario_file::read(text).unwrap().remove(0);
        let target = TargetSpec::parse("t=amqp://u:secret@h,declare=amqp://i").unwrap();
        let printed = |load: &Load| {
            program.run(load, &Stop::default(), &mut || ()).unwrap();
            program.printed().trim_end().to_owned()
        };
        let ours = "stream-perf --uris rabbitmq-stream://u:secret@h:5552 --id bench-v1 --json ";
        let line = printed(&Load::of(&scenario, &target, "v1"));
        assert!(
            line.starts_with(ours) && line.ends_with("-x 0 -st s-v1 --time 5 --delete-streams"),
            "{line}"
        );
        let line = printed(&Load::before(&scenario, &target, "v1").unwrap());
        assert!(
            line.starts_with(ours) && line.ends_with("-C 9 -st s-v1"),
            "{line}"
        );
        assert!(!line.contains("declare"), "{line}");
    }

    #[test]
    fn a_failure_is_the_last_line_on_stderr_without_the_password() {
        let failed = run("echo first >&2; echo 'amqp://u:secret@h refused' >&2; exit 1");
        assert_eq!(failed, LoadFailure::Failed("amqp://u:***@h refused".to_owned()));
        let failed = run("echo '{\"format\":1,\"cut_short\":\"it died\"}' > \"$json\"; exit 1");
        assert_eq!(failed, LoadFailure::Failed("it died".to_owned()));
        let LoadFailure::Failed(silent) = run("exit 3") else {
            panic!("not interrupted");
        };
        assert!(silent.contains("exit status: 3"), "{silent}");
    }

    #[test]
    fn a_run_without_results_has_failed() {
        let LoadFailure::Failed(reason) = run("exit 0") else {
            panic!("not interrupted");
        };
        assert!(reason.contains("wrote no results"), "{reason}");
    }

    #[test]
    fn a_run_is_ended_when_the_user_wants_it() {
        let folder = tempfile::tempdir().unwrap();
        // It waits for a writer that never comes, until it is told to end.
        let program = program(
            folder.path(),
            "cd \"$(dirname \"$json\")\"; mkfifo fifo; trap 'exit 0' INT; read x < fifo",
        );
        let stop = Stop::default();
        let asking = stop.clone();
        let ended = program.run(&load("-x 1"), &stop, &mut || asking.ask());
        assert_eq!(ended.unwrap_err(), LoadFailure::Interrupted);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut program = program(folder.path(), "exit 0");
        program.program = folder.path().join("nowhere");
        let LoadFailure::Failed(reason) = program.run(&load(""), &Stop::default(), &mut || ()).unwrap_err()
        else {
            panic!("not interrupted");
        };
        assert!(reason.contains("nowhere could not be started"), "{reason}");
    }
}
