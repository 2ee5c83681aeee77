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
      sets the process id where it cannot be found; for a broker on another machine there are no CPU and memory figures
  leveret bench --scenarios S001-SCALE --target \"owner=amqp://localhost:5672,pid=pgrep -f '[l]everet server'\" \\
      --target \"other=amqp://localhost:5673,declare=amqp://localhost:5672,pid=pgrep -f '[l]everet server'\"
      a cluster: the loads once through the node that has the queues and once through another one, with the processor time of all nodes
  leveret bench --resume leveret-bench-2026-11-21-0930
      continues an interrupted run
  leveret bench --show leveret-bench-2026-11-21-0930
      the table of an earlier run; with --output DIR its reports are written again

The other targets are compared with the first one. Results go to results.json, report.md, report.html and
plots/*.svg in the output directory. See docs/bench.md for what is measured and how.";

/// Runs named scenarios against several brokers in turn and compares them.
#[derive(Debug, Clone, Parser)]
#[command(name = "leveret bench", version, after_help = EXAMPLES, next_line_help = true)]
pub struct Options {
    /// A broker: NAME=URI, NAME=URI,pid=PID or NAME=URI,pid=COMMAND (which prints the id, or those
    /// of all nodes of a cluster, whose times and sizes are added up). With declare=URI queues are
    /// declared through that node of the cluster, and everything else goes through the first one.
    /// Repeat it for each broker; the others are compared with the first. For a broker on this
    /// machine the process is found by its port. A management API that is not on the port 10,000
    /// higher than AMQP's is given as NAME=URI,http=URI; likewise, a stream protocol that is not on
    /// the port 120 lower as NAME=URI,stream=rabbitmq-stream://HOST:PORT.
    #[arg(verbatim_doc_comment, long = "target", value_name = "NAME=URI[,declare=URI][,stream=URI][,http=URI][,pid=PID]", value_parser = TargetSpec::parse)]
    pub targets: Vec<TargetSpec>,
    /// Scenarios to run: names, groups or patterns such as T1,S000-*.
    #[arg(verbatim_doc_comment, long, value_name = "NAME,…", value_delimiter = ',')]
    pub scenarios: Vec<String>,
    /// List the scenarios and how long they take.
    #[arg(verbatim_doc_comment, long)]
    pub list: bool,
    /// Your own scenarios, in the format of the built-in file (see docs/bench.md). They replace
    /// the built-in ones, except those named by --scenarios.
    #[arg(verbatim_doc_comment, long, value_name = "FILE")]
    pub scenario_file: Option<PathBuf>,
    /// Rounds of the most important scenarios; others run a part of them. Every second round
    /// visits the targets in reverse order. Default: 5, with --smoke 2.
    #[arg(verbatim_doc_comment, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Length of the measured window of a visit, in whole seconds, instead of each scenario's own.
    #[arg(verbatim_doc_comment, long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: Option<u32>,
    /// Length of the warm-up before the window, in seconds, instead of each scenario's own (mostly 1).
    #[arg(verbatim_doc_comment, long, value_name = "S", value_parser = clap::value_parser!(u32).range(0..=3_600))]
    pub warmup: Option<u32>,
    /// A quick run: few scenarios, short windows, under three minutes for up to three targets.
    #[arg(verbatim_doc_comment, long, conflicts_with = "all")]
    pub smoke: bool,
    /// Also the long scenarios: queues with millions of messages, a million bindings.
    #[arg(verbatim_doc_comment, long)]
    pub all: bool,
    /// Output directory. Default: leveret-bench-DATE in the current directory.
    #[arg(verbatim_doc_comment, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Continue an interrupted run; failed visits are repeated.
    #[arg(verbatim_doc_comment, long, value_name = "DIR", conflicts_with_all = ["scenarios", "scenario_file", "rounds", "seconds", "warmup", "smoke", "all", "output", "note", "count_syncs", "max_stolen"])]
    pub resume: Option<PathBuf>,
    /// A note for the report.
    #[arg(verbatim_doc_comment, long, value_name = "TEXT")]
    pub note: Option<String>,
    /// Show the table of an earlier run: its directory or its results.json. With --output, write
    /// its reports again there.
    #[arg(verbatim_doc_comment, long, value_name = "DIR|FILE", conflicts_with_all = ["resume", "targets"])]
    pub show: Option<PathBuf>,
    /// Cores for the load generator, such as 1 or 2,3 or 2-5; use others than the brokers'.
    #[arg(verbatim_doc_comment, long, value_name = "CORES", value_parser = cores)]
    pub perf_cores: Option<Cores>,
    /// Also count the brokers' disk syncs with strace, in separate short visits that are not
    /// timed. Needs strace and permission to trace the brokers.
    #[arg(verbatim_doc_comment, long)]
    pub count_syncs: bool,
    /// On a virtual machine: repeat a visit, up to nine times and after growing pauses, if the
    /// host took more than this percentage of the processors' time during its window. The least
    /// disturbed one counts.
    #[arg(verbatim_doc_comment, long, value_name = "PERCENT", value_parser = percent)]
    pub max_stolen: Option<f64>,
    /// The program whose subcommands `perf` and `stream-perf` are the load generators. Default: this one.
    #[arg(verbatim_doc_comment, long, value_name = "PATH")]
    pub perf_program: Option<PathBuf>,
}

/// Reads a share.
fn percent(text: &str) -> Result<f64, String> {
    let percent: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
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
            .map_err(|_| format!("{part:?} is not the number of a core"))?;
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
