//! The command line of `leveret bench`.

use crate::target::TargetSpec;
use clap::Parser;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  leveret bench --list
      the scenarios, what they do and how long they take
  leveret bench --smoke --target leveret=amqp://localhost:5672
      a first look: five scenarios, under three minutes
  leveret bench --target leveret=amqp://localhost:5672 --target rabbitmq=amqp://localhost:5673
      the full comparison of two brokers on this machine, about half an hour
  leveret bench --scenarios 'T*,S000-RATE' --rounds 10 --target A=amqp://localhost:5672 --target B=amqp://localhost:5673
      some of it, with narrower intervals
  leveret bench --target here=amqp://localhost,pid=1234 --target there=amqp://user:secret@10.0.0.7/vhost
      a process id where it can't be found; a broker on another machine has no CPU and memory figures
  leveret bench --resume leveret-bench-2026-11-21-0930
      goes on where a run was interrupted
  leveret bench --show leveret-bench-2026-11-21-0930
      the table of an earlier run; with --output DIR its reports are written anew

The first target is the reference that the others are compared with. Results go to results.json, report.md, report.html and
plots/*.svg in the output directory. The page docs/bench.md says what is measured and how.";

/// Runs named scenarios against brokers in turns and reports how they compare.
#[derive(Debug, Clone, Parser)]
#[command(name = "leveret bench", version, after_help = EXAMPLES, next_line_help = true)]
pub struct Options {
    /// A broker: NAME=URI, NAME=URI,pid=PID or NAME=URI,pid=COMMAND (which prints the id). Once for
    /// each; the first is the reference. For a broker on this machine the process is found by its
    /// port.
    #[arg(verbatim_doc_comment, long = "target", value_name = "NAME=URI[,pid=PID]", value_parser = TargetSpec::parse)]
    pub targets: Vec<TargetSpec>,
    /// Scenarios to run: names, groups or patterns such as T1,S000-*.
    #[arg(verbatim_doc_comment, long, value_name = "NAME,…", value_delimiter = ',')]
    pub scenarios: Vec<String>,
    /// Show the scenarios and how long they take, and run nothing.
    #[arg(verbatim_doc_comment, long)]
    pub list: bool,
    /// Your own scenarios, in the form of the built-in file (see docs/bench.md). They are run
    /// instead of the built-in ones, or with those of them that --scenarios names.
    #[arg(verbatim_doc_comment, long, value_name = "FILE")]
    pub scenario_file: Option<PathBuf>,
    /// Rounds of the most important scenarios; the others have a part of it. Every second round
    /// takes the targets backwards. Default: 5, with --smoke 2.
    #[arg(verbatim_doc_comment, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Length of the measured window of a visit, in whole seconds, instead of each scenario's own.
    #[arg(verbatim_doc_comment, long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: Option<u32>,
    /// Seconds before the window that don't count, instead of each scenario's own (mostly 1).
    #[arg(verbatim_doc_comment, long, value_name = "S", value_parser = clap::value_parser!(u32).range(0..=3_600))]
    pub warmup: Option<u32>,
    /// A first look: few scenarios, short windows, under three minutes for up to three targets.
    #[arg(verbatim_doc_comment, long, conflicts_with = "all")]
    pub smoke: bool,
    /// The long scenarios too: queues of millions, a hundred thousand bindings.
    #[arg(verbatim_doc_comment, long)]
    pub all: bool,
    /// Where results go. Default: leveret-bench-DATE here.
    #[arg(verbatim_doc_comment, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Go on with an interrupted run: what was measured is kept, what failed is tried again.
    #[arg(verbatim_doc_comment, long, value_name = "DIR", conflicts_with_all = ["scenarios", "scenario_file", "rounds", "seconds", "warmup", "smoke", "all", "output", "note", "count_syncs", "max_stolen"])]
    pub resume: Option<PathBuf>,
    /// A line for the report: what is special about this run.
    #[arg(verbatim_doc_comment, long, value_name = "TEXT")]
    pub note: Option<String>,
    /// Show the table of an earlier run: its directory or its results.json. With --output, write
    /// its reports anew there.
    #[arg(verbatim_doc_comment, long, value_name = "DIR|FILE", conflicts_with_all = ["resume", "targets"])]
    pub show: Option<PathBuf>,
    /// Cores that the load generator may use, such as 1 or 2,3 or 2-5: away from those a broker is
    /// pinned to.
    #[arg(verbatim_doc_comment, long, value_name = "CORES", value_parser = cores)]
    pub perf_cores: Option<Cores>,
    /// Count the brokers' disk syncs too, with strace, in short visits of their own that are not
    /// timed. Needs strace and the right to trace the brokers.
    #[arg(verbatim_doc_comment, long)]
    pub count_syncs: bool,
    /// On a virtual machine: make a visit again, up to nine times and after growing pauses, in
    /// whose window the host gave more than this part of the processors' time to others. The
    /// least disturbed one counts.
    #[arg(verbatim_doc_comment, long, value_name = "PERCENT", value_parser = percent)]
    pub max_stolen: Option<f64>,
    /// The program whose `perf` subcommand is the load generator. Default: this one.
    #[arg(verbatim_doc_comment, long, value_name = "PATH")]
    pub perf_program: Option<PathBuf>,
}

/// Reads a share.
fn percent(text: &str) -> Result<f64, String> {
    let percent: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    if (0.0..100.0).contains(&percent) {
        Ok(percent)
    } else {
        Err("it must be from 0 to below 100".to_owned())
    }
}

/// Numbers of cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores(pub Vec<usize>);

/// As many as the kernel's own set has room for.
const MOST_CORES: usize = 1024;

/// Reads `0,2-5`, as taskset does.
fn cores(text: &str) -> Result<Cores, String> {
    let number = |part: &str| {
        let core = part
            .trim()
            .parse::<usize>()
            .map_err(|_| format!("{part:?} is no number of a core"))?;
        if core < MOST_CORES {
            Ok(core)
        } else {
            Err(format!("core {core} is beyond {MOST_CORES}"))
        }
    };
    let mut cores = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            None => cores.push(number(part)?),
            Some((first, last)) => cores.extend(number(first)?..=number(last)?),
        }
    }
    if cores.is_empty() {
        Err(format!("{text:?} has no core"))
    } else {
        Ok(Cores(cores))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Options, clap::Error> {
        Options::try_parse_from(line.split_ascii_whitespace())
    }

    #[test]
    fn the_command_line_is_well_formed_and_teaches() {
        Options::command().debug_assert();
        let help = Options::command().render_long_help().to_string();
        assert!(help.contains("Examples:") && help.contains("--resume"));
    }

    #[test]
    fn targets_and_scenarios_are_lists() {
        let options =
            parse("bench --target a=amqp://h --target b=amqp://h:1,pid=7 --scenarios T1,S000-*").unwrap();
        assert_eq!(options.targets.len(), 2);
        assert_eq!(options.scenarios, ["T1", "S000-*"]);
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        assert!(parse("bench --smoke --all").is_err());
        assert!(parse("bench --resume d --rounds 3").is_err());
        assert!(parse("bench --rounds 0").is_err());
        assert!(parse("bench --max-stolen 100").is_err() && parse("bench --max-stolen x").is_err());
        assert!(parse("bench --target nonsense").is_err());
    }

    #[test]
    fn cores_are_numbers_and_ranges() {
        assert_eq!(cores("1"), Ok(Cores(vec![1])));
        assert_eq!(cores("0,2-4"), Ok(Cores(vec![0, 2, 3, 4])));
        assert!(cores("x").is_err() && cores("").is_err() && cores("4-2").is_err() && cores("9999").is_err());
    }
}
