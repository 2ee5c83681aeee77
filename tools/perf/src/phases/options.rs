//! The command line of `leveret perf phases`: a few flags of its own among PerfTest's.

use super::script::{Depth, Phase, Until, time_of, whole};
use crate::failure::Failure;
use crate::subcommand::Request;

/// Below this depth a queue under load counts as drained (as in the scenario of source 004, RabbitMQ's PR #1378).
const DRAINED_UNDER_LOAD: u64 = 1_000;

const HELP: &str = "\
Usage: leveret perf phases [FLAGS OF PHASES] [PERFTEST FLAGS]

Fills queues to a depth, drains them, and whatever else goes in phases; the queues stay from one phase to the next.
PerfTest's flags (see 'leveret perf --help') are common to all phases.

Flags of phases:
  --fill N                      first phase: the producers publish N messages, nobody consumes
  --drain                       next phase: the consumers consume, nobody publishes, until the queues are empty
  --drain-under-load            the same while the producers go on as PerfTest's flags say (without --rate as fast as
                                they can), until fewer than 1000 messages are ready
  --publish-while-draining R    the same at R messages per second and producer, or 'unlimited'
  --drain-to N                  the drain ends at this depth
  --steady TIME                 last phase: producers and consumers as PerfTest's flags say, for so long (10, 10s, 5m)
  --phase 'NAME: FLAGS END'     any phase, as often as needed and in this order; its PerfTest flags win over the common
                                ones. END: until depth N, until depth <= N, until depth >= N, until empty, for TIME;
                                two of them: whichever comes first
  --keep                        leaves the queues and the exchange there at the end; otherwise they are deleted
  -?, --help                    this text

The depth is the number of messages that are ready in all queues together. The broker is asked for it once a second, and
whenever the messages counted here say that a phase may be over. --time bounds the whole run.

Examples:
  How fast do 2,000,000 messages go in, and out again while three producers go on without a limit?
    leveret perf phases --fill 2000000 --drain-under-load --producers 3 --consumers 3 --size 1024 \\
      --qos 100 --multi-ack-every 10 --queue drained --queue-args x-max-length=2000000

  A long queue of persistent messages, in and then out:
    leveret perf phases --fill 200000 --drain --producers 2 --consumers 2 --flag persistent --confirm 3000 --qos 3000

  The same written as a script, with what comes after:
    leveret perf phases --producers 3 --consumers 3 --qos 100 --multi-ack-every 10 --queue q \\
      --phase 'fill: --consumers 0 until depth 2000000' --phase 'drain: until depth 1000' --phase 'steady: --rate 1000 for 10s'

Exit codes: 0 all phases came to their ends; 1 one did not, or could not start; 130 and 143 a signal ended the run.
";

/// What was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub phases: Vec<PlannedPhase>,
    /// PerfTest's flags for all phases.
    pub common: Vec<String>,
    pub keep: bool,
}

/// A phase, with what the short flags ask for beside a script.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedPhase {
    pub phase: Phase,
    pub how: How,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum How {
    /// As its flags say.
    Written,
    /// Producers publish so many messages, and nobody consumes.
    Fill(u64),
    /// Nobody publishes.
    Drain,
}

#[derive(Default)]
struct Short {
    fill: Option<u64>,
    drain: bool,
    under_load: bool,
    publish: Option<String>,
    drain_to: Option<u64>,
    steady: Option<Until>,
}

impl Options {
    /// Reads the arguments behind `phases`; `None`: the help was asked for.
    ///
    /// # Errors
    /// [`Failure::Usage`] with what to write instead.
    pub fn read(arguments: &[String]) -> Result<Request<Self>, Failure> {
        Ok(match read(arguments).map_err(Failure::Usage)? {
            Some(options) => Request::Run(Box::new(options)),
            None => Request::Print(HELP.to_owned()),
        })
    }
}

fn read(arguments: &[String]) -> Result<Option<Options>, String> {
    let mut short = Short::default();
    let mut options = Options {
        phases: Vec::new(),
        common: Vec::new(),
        keep: false,
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let (flag, inline) = match argument.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
            _ => (argument.as_str(), None),
        };
        let mut value = |what: &str| {
            inline
                .clone()
                .or_else(|| rest.next().cloned())
                .ok_or_else(|| format!("{flag} needs {what} behind it."))
        };
        let named = |why: String| format!("{flag}: {why}.");
        match flag {
            "--fill" => short.fill = Some(whole(&value("a number of messages")?).map_err(named)?),
            "--drain-to" => short.drain_to = Some(whole(&value("a number of messages")?).map_err(named)?),
            "--publish-while-draining" => short.publish = Some(value("a rate or 'unlimited'")?),
            "--steady" => {
                let time = time_of(&value("a time")?).map_err(named)?;
                short.steady = Some(Until {
                    depth: None,
                    time: Some(time),
                });
            }
            "--phase" => {
                let phase = Phase::parse(&value(
                    "a phase, as in 'fill: --consumers 0 until depth 100000',",
                )?)?;
                options.phases.push(PlannedPhase {
                    phase,
                    how: How::Written,
                });
            }
            "--drain" => short.drain = true,
            "--drain-under-load" => short.under_load = true,
            "--keep" => options.keep = true,
            "--help" | "-?" => return Ok(None),
            _ => options.common.push(argument.clone()),
        }
    }
    complete(&mut options, short.phases()?)?;
    Ok(Some(options))
}

/// Adds the phases of the short flags, and refuses what does not go together.
fn complete(options: &mut Options, shorts: Vec<PlannedPhase>) -> Result<(), String> {
    if !shorts.is_empty() && !options.phases.is_empty() {
        return Err(
            "--fill, --drain and --steady don't go with --phase: write all of them as --phase.".into(),
        );
    }
    options.phases.extend(shorts);
    if options.phases.is_empty() {
        return Err(
            "there are no phases: write --fill 100000 --drain, or --phase; see 'leveret perf phases --help'."
                .into(),
        );
    }
    let mut names: Vec<&str> = options
        .phases
        .iter()
        .map(|asked| asked.phase.name.as_str())
        .collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!(
            "two phases are named '{}': give each a name of its own.",
            twice[0]
        ));
    }
    Ok(())
}

impl Short {
    fn phases(self) -> Result<Vec<PlannedPhase>, String> {
        let mut phases = Vec::new();
        let mut add = |name: &str, flags: Vec<String>, until: Until, how: How| {
            phases.push(PlannedPhase {
                phase: Phase {
                    name: name.to_owned(),
                    flags,
                    until,
                },
                how,
            });
        };
        if let Some(messages) = self.fill {
            if messages == 0 {
                return Err("--fill is '0': write how many messages, at least 1.".into());
            }
            add("fill", Vec::new(), Until::default(), How::Fill(messages));
        }
        let under_load = self.under_load || self.publish.is_some();
        if self.drain || under_load {
            let to = self
                .drain_to
                .unwrap_or(if under_load { DRAINED_UNDER_LOAD - 1 } else { 0 });
            let until = Until {
                depth: Some(Depth::AtMost(to)),
                time: None,
            };
            let flags = match self.publish.as_deref() {
                None => Vec::new(),
                Some("unlimited") => vec!["--rate".to_owned(), "-1".to_owned()],
                Some(rate) => match rate.parse::<f64>() {
                    Ok(number) if number > 0.0 && number.is_finite() => {
                        vec!["--rate".to_owned(), rate.to_owned()]
                    }
                    _ => {
                        return Err(format!(
                            "--publish-while-draining is '{rate}': write messages per second and producer, or 'unlimited'."
                        ));
                    }
                },
            };
            add(
                "drain",
                flags,
                until,
                if under_load { How::Written } else { How::Drain },
            );
        } else if self.drain_to.is_some() {
            return Err("--drain-to says when a drain ends: add --drain or --drain-under-load.".into());
        }
        if let Some(until) = self.steady {
            add("steady", Vec::new(), until, How::Written);
        }
        Ok(phases)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, String> {
        let words = crate::churn::words::split(line).unwrap();
        super::read(&words).map(|options| options.unwrap())
    }

    fn shown(options: &Options) -> Vec<String> {
        let show = |asked: &PlannedPhase| {
            format!(
                "{}: {} {} {:?}",
                asked.phase.name,
                asked.phase.flags.join(" "),
                asked.phase.until,
                asked.how
            )
        };
        options.phases.iter().map(show).collect()
    }

    #[test]
    fn the_short_flags_are_phases_and_all_others_are_perftests() {
        let options = read("--fill 200,000 --drain --producers 2 --flag=persistent -y 2 --keep").unwrap();
        assert_eq!(
            options.common,
            ["--producers", "2", "--flag=persistent", "-y", "2"]
        );
        assert_eq!(
            shown(&options),
            ["fill:   Fill(200000)", "drain:  until empty Drain"]
        );
        assert!(options.keep);
    }

    #[test]
    fn a_drain_under_load_ends_below_a_thousand() {
        for (line, drain) in [
            (
                "--fill=5 --drain-under-load",
                "drain:  until depth <= 999 Written",
            ),
            (
                "--fill 5 --publish-while-draining unlimited",
                "drain: --rate -1 until depth <= 999 Written",
            ),
            (
                "--fill 5 --drain --publish-while-draining 50 --drain-to 7",
                "drain: --rate 50 until depth <= 7 Written",
            ),
        ] {
            let options = read(&format!("{line} --steady 5m")).unwrap();
            assert_eq!(
                shown(&options)[1..],
                [drain, "steady:  for 300 s Written"],
                "{line}"
            );
        }
    }

    #[test]
    fn phases_stay_in_the_order_they_were_written() {
        let options = read("-x 3 --phase 'fill: -y 0 until depth 9' --phase='steady: for 1s'").unwrap();
        assert_eq!(
            shown(&options),
            ["fill: -y 0 until depth 9 Written", "steady:  for 1 s Written"]
        );
    }

    #[test]
    fn a_mistake_is_told_with_what_to_write() {
        for (line, says) in [
            ("-x 3", "there are no phases"),
            ("--fill", "needs a number"),
            ("--fill many", "whole number"),
            ("--fill 0", "at least 1"),
            ("--fill 5 --phase 'a: for 1s'", "write all of them as --phase"),
            ("--phase 'a: for 1s' --phase 'a: for 2s'", "named 'a'"),
            ("--fill 5 --drain-to 3", "add --drain"),
            ("--fill 5 --publish-while-draining -3", "'unlimited'"),
            ("--steady ever", "not a time"),
            ("--phase nonsense", "a name and a colon"),
        ] {
            let why = read(line).unwrap_err();
            assert!(why.contains(says), "{line}: {why}");
        }
    }

    #[test]
    fn the_help_is_asked_for_as_perftests_is() {
        for flag in ["--help", "-?"] {
            assert_eq!(super::read(&[flag.to_owned()]), Ok(None));
        }
        assert!(HELP.lines().all(|line| line.chars().count() <= 130));
    }
}
