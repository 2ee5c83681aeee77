//! The command line of `leveret perf churn`.

use super::what::What;
use crate::failure::Failure;
use crate::subcommand::{self, Request};
use clap::{ArgAction, Parser, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// The longest time that a flag may name: 100 years in seconds.
const LONGEST_S: f64 = 3_153_600_000.0;
/// Turns a second beyond which no schedule makes sense.
const HIGHEST_RATE: f64 = 10_000_000.0;

const EXAMPLES: &str = "\
Examples:
  Binds and unbinds as fast as the broker answers, on four connections, for ten seconds:
    leveret perf churn --what bind --concurrency 4 --time 10

  100,000 durable queues declared by four connections, then deleted:
    leveret perf churn --what queue --concurrency 4 --at-once 25000 --count 100000

  100 binds and 100 unbinds a second beside 100,000 other bindings while messages flow:
    leveret perf churn --what bind --rate 100 --preload 100000 --time 60 \\
      --background '--producers 4 --consumers 4 --size 700 --flag persistent --confirm 1 --rate 200'

  Does deleting a queue with 3,000 bindings hold up publishers? Compares their confirms with those before:
    leveret perf churn --delete-with-bindings 3000 --count 5 --background '--flag persistent --confirm 10 --rate 500'

  5,000 channels a second, opened and closed:
    leveret perf churn --what channel --rate 5000 --concurrency 4 --time 10

  How long 50 tasks wait for one of 3 channels, on which each publishes an event and waits for its confirm:
    leveret perf churn --what acquire --concurrency 50 --pool 3 --rate 200 --time 30

How it counts:
  A turn is a pair: bind and unbind, declare and delete. --rate and --count are in turns. With --rate the first
  operation's latency counts from the moment the turn was due, also when all connections were busy then; the second
  one is due when the first is done. Without --rate each connection goes on as soon as it is answered.
  Everything that was made is deleted at the end, also after Ctrl-C.

Exit codes: 0 all went well; 1 an operation failed or the run was cut short; 130 and 143 it was ended by a signal.
";

/// What `--keys` may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Keys {
    /// 128 random bits each, in hexadecimal.
    Random,
    /// Numbers.
    Sequential,
}

/// What was asked for.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "leveret perf churn",
    bin_name = "leveret perf churn",
    about = "How long a broker takes to make things and to take them away: bindings, queues, connections, channels, consumers.",
    after_help = EXAMPLES,
    disable_version_flag = true,
    allow_negative_numbers = true,
    max_term_width = 110,
    override_usage = "leveret perf churn --what WHAT [FLAGS]"
)]
pub struct Options {
    /// What comes and goes
    #[arg(long, value_enum, required_unless_present = "delete_with_bindings")]
    pub what: Option<What>,
    /// The broker
    #[arg(long, default_value = "amqp://localhost")]
    pub uri: String,
    /// Connections that work at the same time, each in a thread of its own
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256), value_name = "N")]
    pub concurrency: u16,
    /// Turns that a connection takes at once, with --what bind and --what queue: it binds with so many keys, then unbinds
    /// them, up to 200 of these under way. Without it each answer is waited for. With --rate they begin when the last of them
    /// is due, and the first operations count from then
    #[arg(
        long,
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=100_000),
        value_name = "N",
        conflicts_with = "delete_with_bindings",
        verbatim_doc_comment
    )]
    pub at_once: u32,
    /// Turns a second, over all connections; without it as fast as the broker answers
    #[arg(long, value_name = "TURNS/S")]
    pub rate: Option<f64>,
    /// Ends after this many seconds; without --time and --count the run goes on until Ctrl-C
    #[arg(long, value_name = "S")]
    pub time: Option<f64>,
    /// Ends after this many turns, over all connections
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// Bindings made before the clock starts, shared out among the workers' queues.
    /// With --what queue: bindings that each queue has when it is deleted
    #[arg(long, default_value_t = 0, value_name = "N", verbatim_doc_comment)]
    pub preload: u64,
    /// Short for --what queue --preload N, once if neither --count nor --time say otherwise
    #[arg(long, value_name = "N", conflicts_with_all = ["what", "preload"], value_parser = clap::value_parser!(u64).range(1..))]
    pub delete_with_bindings: Option<u64>,
    /// How routing keys are made
    #[arg(long, value_enum, default_value = "random")]
    pub keys: Keys,
    /// The exchange to bind to; made, and deleted at the end, if it isn't there
    /// [default: the background's exchange, or one of its own]
    #[arg(long, value_name = "NAME", verbatim_doc_comment)]
    pub exchange: Option<String>,
    /// The type of the exchange, if it has to be made [default: direct]
    #[arg(long, value_name = "TYPE")]
    pub exchange_type: Option<String>,
    /// Whether exchange, queues and bindings survive a restart of the broker.
    /// Queues that don't are exclusive
    #[arg(long, default_value_t = true, action = ArgAction::Set, value_name = "true|false", verbatim_doc_comment)]
    pub durable: bool,
    /// Flags of a load that runs beside, in one argument.
    /// Its rates and latencies are told apart, and compared with those from before the churn
    #[arg(
        long,
        value_name = "\"PERFTEST FLAGS\"",
        allow_hyphen_values = true,
        verbatim_doc_comment
    )]
    pub background: Option<String>,
    /// Seconds that the background runs alone first, to compare with
    #[arg(long, default_value_t = 3.0, value_name = "S")]
    pub baseline: f64,
    /// Channels in the pool of --what acquire
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=256), value_name = "N")]
    pub pool: u16,
    /// Bytes of a message of --what dispatch and --what acquire
    #[arg(long, default_value_t = 700, value_parser = clap::value_parser!(u32).range(0..=16_777_216), value_name = "BYTES")]
    pub size: u32,
    /// Seconds between lines
    #[arg(long, default_value_t = 1.0, value_name = "S")]
    pub interval: f64,
    /// Writes the results as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Stands at the beginning of each line and in the names of what is made [default: test-HHMMSS-mmm]
    #[arg(long)]
    pub id: Option<String>,
}

impl Options {
    /// Reads the arguments behind `churn`.
    ///
    /// # Errors
    /// [`Failure::Usage`] with what to write instead.
    pub fn read(arguments: &[String]) -> Result<Request<Self>, Failure> {
        let mut options = match subcommand::read::<Self>("churn", arguments)? {
            Request::Run(options) => options,
            help @ Request::Print(_) => return Ok(help),
        };
        if let Some(bindings) = options.delete_with_bindings {
            options.what = Some(What::Queue);
            options.preload = bindings;
            if options.time.is_none() && options.count.is_none() {
                options.count = Some(1);
            }
        }
        options.check()?;
        Ok(Request::Run(options))
    }

    fn check(&self) -> Result<(), Failure> {
        let refuse = |flag: &str, value: f64, write: &str| {
            Err(Failure::Usage(format!("--{flag} is '{value}': write {write}.")))
        };
        if let Some(rate) = self.rate
            && !(rate > 0.0 && rate <= HIGHEST_RATE)
        {
            return refuse(
                "rate",
                rate,
                "turns a second above 0, or leave it away for as fast as can be",
            );
        }
        for (flag, value) in [("time", self.time.unwrap_or(1.0)), ("interval", self.interval)] {
            if !(value > 0.0 && value <= LONGEST_S) {
                return refuse(flag, value, "seconds, more than 0");
            }
        }
        if !(0.0..=LONGEST_S).contains(&self.baseline) {
            return refuse("baseline", self.baseline, "seconds, 0 or more");
        }
        let together = match self.what() {
            What::Bind => true,
            What::Queue => !self.fills_queues(),
            _ => false,
        };
        if self.at_once > 1 && !together {
            let write = "it with --what bind, or with --what queue without --preload";
            return refuse("at-once", self.at_once.into(), write);
        }
        if self.count == Some(0) {
            return refuse("count", 0.0, "turns, at least 1");
        }
        if self.exchange.as_deref() == Some("") {
            let text =
                "--exchange is empty, and nothing can be bound to the default exchange: name another one.";
            return Err(Failure::Usage(text.into()));
        }
        Ok(())
    }

    /// The kind; the parser has seen to it that there is one.
    pub fn what(&self) -> What {
        self.what.unwrap_or(What::Queue)
    }

    /// Queues get bindings before they are deleted.
    pub fn fills_queues(&self) -> bool {
        self.what() == What::Queue && self.preload > 0
    }

    /// `--time`.
    pub fn time(&self) -> Option<Duration> {
        self.time.and_then(|s| Duration::try_from_secs_f64(s).ok())
    }

    /// `--interval`.
    pub fn interval(&self) -> Duration {
        Duration::try_from_secs_f64(self.interval).unwrap_or(Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match Options::read(&words) {
            Ok(Request::Run(options)) => Ok(*options),
            Ok(Request::Print(text)) => Err(text),
            Err(failure) => Err(failure.to_string()),
        }
    }

    #[test]
    fn deleting_with_bindings_is_a_queue_churn_of_one_turn() {
        let options = read("--delete-with-bindings 3000").unwrap();
        assert_eq!(
            (options.what(), options.preload, options.count),
            (What::Queue, 3_000, Some(1))
        );
        assert!(options.fills_queues());
        assert_eq!(read("--delete-with-bindings 3000 --time 5").unwrap().count, None);
    }

    #[test]
    fn flags_of_the_background_come_through_as_they_are() {
        let words = [
            "--what",
            "bind",
            "--background",
            "--producers 4 --confirm 1",
            "--durable",
            "false",
        ];
        let Ok(Request::Run(options)) = Options::read(&words.map(str::to_owned)) else {
            panic!()
        };
        assert_eq!(options.background.as_deref(), Some("--producers 4 --confirm 1"));
        assert!(!options.durable);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_to_write() {
        for (line, says) in [
            ("", "--what"),
            ("--what bindings", "bind"),
            ("--what bind --rate 0", "above 0"),
            ("--what bind --rate nan", "above 0"),
            ("--what bind --time -1", "--time"),
            ("--what bind --time 1e300", "--time"),
            ("--what bind --interval 0", "--interval"),
            ("--what bind --count 0", "at least 1"),
            ("--what channel --at-once 5", "--what bind"),
            ("--what queue --preload 3 --at-once 5", "without --preload"),
            ("--what bind --concurrency 257", "1..=256"),
            ("--what bind --delete-with-bindings 5", "cannot be used with"),
            ("--what bind --durable maybe", "true, false"),
            ("--what bind --ratte 5", "--rate"),
        ] {
            let text = read(line).unwrap_err();
            assert!(text.contains(says), "{line}: {text}");
        }
    }

    #[test]
    fn the_help_teaches_with_examples_that_can_be_read_again() {
        let help = read("--help").unwrap_err();
        assert!(help.contains("Examples:") && help.contains("Exit codes:"));
        for line in help
            .lines()
            .filter(|line| line.trim_start().starts_with("leveret perf churn --"))
        {
            let line = line
                .trim()
                .trim_start_matches("leveret perf churn ")
                .trim_end_matches('\\');
            let flags = line.split(" --background").next().unwrap();
            read(flags).unwrap();
        }
    }
}
