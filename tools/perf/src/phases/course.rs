//! One phase after the other on the same queues.

use super::options::{How, Options, PlannedPhase};
use super::outcome::{Outcome, json, table};
use super::script::Until;
use super::watch::Watch;
use crate::churn::footprint::Footprint;
use crate::churn::screen::Screen;
use crate::churn::words;
use crate::cli;
use crate::client::{self, Addresses, Client};
use crate::exporter::Exporter;
use crate::failure::{Failure, complain};
use crate::plan::{Plan, QueueNames};
use crate::report::{End, Reports};
use crate::run::{Interrupt, Measured, measure};
use crate::subcommand::Request;
use crate::topology::Topology;
use jiff::tz::TimeZone;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const CHANNEL: u16 = 1;
/// What run.rs calls the end of `--time`.
const TIME_LIMIT: &str = "Reached time limit";
/// What was published is in the queue when its depth has not changed for this long.
const SETTLED: Duration = Duration::from_millis(500);
const GLANCE: Duration = Duration::from_millis(50);

/// A phase that is ready to run.
struct Phase {
    name: String,
    plan: Plan,
    until: Until,
    how: How,
}

/// Does what was asked for; returns the exit code.
///
/// # Errors
/// If the run could not start.
pub fn run(options: &Options, arguments: &[String]) -> Result<ExitCode, Failure> {
    let environment = |name: &str| std::env::var(name).ok();
    let mut base = match cli::plan(&options.common, &environment)? {
        Request::Run(plan) => *plan,
        Request::Print(text) => {
            print!("{text}");
            return Ok(ExitCode::SUCCESS);
        }
    };
    settle(&mut base)?;
    base.arguments = vec!["phases".to_owned()];
    base.arguments
        .extend(arguments.iter().map(|it| words::masked(it)));
    let phases = options
        .phases
        .iter()
        .map(|asked| phase(asked, &base, &options.common, &environment))
        .collect::<Result<Vec<_>, _>>()?;
    let interrupt = Interrupt::catch();
    let screen = Screen::new();
    let reports = Reports::to(&base, false, Box::new(screen.clone()), TimeZone::system())?;
    let exporter = Exporter::start(&base)?;
    client::wait_for_servers(&base)?;
    let mut control = connect(&base)?;
    let footprint = Footprint::before(&base, &mut control)?;
    let topology = Arc::new(Topology::declare(&base, &mut control, CHANNEL)?);
    control.close();
    let mut course = Course {
        base: &base,
        topology,
        interrupt,
        screen,
        reports,
        exporter,
        outcomes: Vec::new(),
    };
    let ended = course.all(&phases);
    let code = course.finish(ended);
    if !options.keep {
        let deleted = connect(&base).and_then(|mut client| {
            let deleted = footprint.delete(&course.topology, &mut client, CHANNEL);
            client.close();
            deleted
        });
        if let Err(failure) = deleted {
            course.screen.line(&format!(
                "id: {}, the queues could not be deleted: {failure}",
                base.id
            ));
        }
    }
    code
}

/// What all phases have in common: queues that stay from one to the next.
fn settle(plan: &mut Plan) -> Result<(), Failure> {
    if plan.queues.exclusive {
        let text = "an exclusive queue would be gone after the first phase: leave --exclusive away.";
        return Err(Failure::Usage(text.into()));
    }
    plan.queues.auto_delete = false;
    plan.queues.delete_at_end = false;
    if plan.queues.names == QueueNames::ServerNamed {
        plan.queues.names = QueueNames::Fixed(vec![format!("perf-phases-{}", plan.id)]);
    }
    Ok(())
}

fn phase(
    asked: &PlannedPhase,
    base: &Plan,
    common: &[String],
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Phase, Failure> {
    let name = asked.phase.name.clone();
    let refuse = |why: &str| Failure::Usage(format!("the phase '{name}': {why}"));
    // The first one of two flags counts.
    let arguments = [asked.phase.flags.clone(), common.to_vec()].concat();
    let mut plan = match cli::plan(&arguments, environment) {
        Ok(Request::Run(plan)) => *plan,
        Ok(Request::Print(_)) => return Err(refuse("asks for a help text, and not for a load.")),
        Err(failure) => return Err(refuse(&failure.to_string())),
    };
    let mut until = asked.phase.until;
    if plan.stopping.time != base.stopping.time {
        until.time = until.time.or(plan.stopping.time);
    }
    match asked.how {
        How::Written => {}
        How::Fill(messages) => {
            let each = (plan.producing.producers * plan.producing.channels) as u64;
            if each == 0 {
                return Err(refuse(
                    "there is no producer to fill the queues: give --producers 1 or more.",
                ));
            }
            plan.consuming.consumers = 0;
            plan.producing.messages = Some(messages.div_ceil(each));
        }
        How::Drain => {
            plan.producing.producers = 0;
            if plan.consuming.consumers == 0 {
                return Err(refuse(
                    "there is no consumer to drain the queues: give --consumers 1 or more.",
                ));
            }
        }
    }
    let bounded = until != Until::default()
        || plan.producing.messages.is_some()
        || plan.consuming.messages.is_some()
        || plan.stopping.exit_when.is_some()
        || base.stopping.time.is_some();
    if !bounded {
        return Err(refuse(
            "has no end: add 'until depth N', 'until empty' or 'for 10s' behind its flags.",
        ));
    }
    plan.id.clone_from(&base.id);
    plan.queues = base.queues.clone();
    plan.exchange = base.exchange.clone();
    plan.routing = base.routing.clone();
    plan.report = base.report.clone();
    Ok(Phase {
        name,
        plan,
        until,
        how: asked.how,
    })
}

fn connect(plan: &Plan) -> Result<Client, Failure> {
    let addresses = Addresses::new(&plan.uris, plan.allocation);
    let token = plan
        .connection
        .oauth2
        .as_ref()
        .map(crate::oauth2::Tokens::fetch)
        .transpose()?;
    let secret = token.as_ref().map(|token| token.value.as_str());
    let mut client = Client::open(
        addresses.pick(0),
        &plan.connection,
        "perf-phases-control",
        &plan.id,
        secret,
    )?;
    client.open_channel(CHANNEL)?;
    Ok(client)
}

/// A run of phases on its way.
struct Course<'a> {
    base: &'a Plan,
    topology: Arc<Topology>,
    interrupt: Interrupt,
    screen: Screen,
    reports: Reports,
    exporter: Option<Exporter>,
    outcomes: Vec<Outcome>,
}

impl Course<'_> {
    /// Runs all phases; the error is why not all came to their ends.
    fn all(&mut self, phases: &[Phase]) -> Result<(), Failure> {
        let started = Instant::now();
        self.reports.started();
        let mut depth = self.depth()?;
        for phase in phases {
            let left = self
                .base
                .stopping
                .time
                .map(|time| time.saturating_sub(started.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Failure::Lost(format!(
                    "--time was over before the phase {}",
                    phase.name
                )));
            }
            depth = self.one(phase, depth, left)?;
            if self.interrupt.came().is_some() {
                return Err(Failure::Lost("it was interrupted".into()));
            }
        }
        Ok(())
    }

    /// Runs a phase that starts at this depth; returns the depth at its end.
    fn one(&mut self, phase: &Phase, start: u64, left: Option<Duration>) -> Result<u64, Failure> {
        let mut plan = phase.plan.clone();
        plan.stopping.time = [phase.until.time, left].into_iter().flatten().min();
        let (producers, consumers) = (plan.producing.producers, plan.consuming.consumers);
        let wanted = phase
            .until
            .depth
            .map(|depth| depth.directed(producers, consumers, start));
        let id = &self.base.id;
        let what = match phase.how {
            How::Fill(messages) => format!("publish {messages} messages"),
            _ => Until {
                depth: wanted,
                ..phase.until
            }
            .to_string(),
        };
        self.screen.line(&format!(
            "id: {id}, phase {}: {producers} producers, {consumers} consumers, depth {start}, {what}",
            phase.name
        ));
        let fill = match phase.how {
            How::Fill(messages) => Some(messages),
            _ => None,
        };
        let mut watch = Watch::new(&phase.name, fill, &plan, wanted, start, self.screen.clone());
        let measured = measure(
            &plan,
            &mut self.reports,
            &mut self.exporter,
            Some(self.topology.clone()),
            &self.interrupt,
            &mut |load| watch.look(load),
        );
        watch.screen.clear();
        let measured = measured?;
        let end = if watch.met {
            watch.gauge.depth()
        } else {
            self.settled().unwrap_or(watch.gauge.depth())
        };
        let over_time = measured
            .reasons
            .first()
            .is_some_and(|(reason, _)| reason == TIME_LIMIT);
        let too_late = over_time && wanted.is_some() && phase.until.time.is_none() && !watch.met;
        let failed = failure(phase, &measured, too_late, end);
        let outcome = Outcome {
            name: phase.name.clone(),
            measured,
            depth_at_start: start,
            depth_at_end: end,
            readings: watch.gauge.readings,
        };
        self.screen.line(&outcome.line(id));
        self.outcomes.push(outcome);
        failed.map_or(Ok(end), Err)
    }

    /// How deep the queues are now.
    fn depth(&self) -> Result<u64, Failure> {
        let mut client = connect(self.base)?;
        let depth = depth(&mut client, &self.topology);
        client.close();
        depth
    }

    /// The depth once what was published is there and what was not acknowledged has come back.
    fn settled(&self) -> Result<u64, Failure> {
        let mut client = connect(self.base)?;
        let (mut last, mut since) = (depth(&mut client, &self.topology)?, Instant::now());
        while since.elapsed() < SETTLED && self.interrupt.came().is_none() {
            thread::park_timeout(GLANCE);
            let now = depth(&mut client, &self.topology)?;
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        client.close();
        Ok(last)
    }

    fn finish(&mut self, ended: Result<(), Failure>) -> Result<ExitCode, Failure> {
        let signal = self.interrupt.came();
        let cut_short = ended.err().map(|failure| failure.to_string());
        let number = signal.map_or(u8::from(cut_short.is_some()), |signal| 128 + signal);
        let reasons = if cut_short.is_none() {
            vec![("All phases are done".to_owned(), 1)]
        } else {
            Vec::new()
        };
        self.reports.phases(json(&self.outcomes));
        let verdict = self
            .outcomes
            .iter()
            .rev()
            .find_map(|outcome| outcome.measured.verdict.clone());
        let end = End {
            reasons,
            cut_short: cut_short.clone(),
            exit_code: number.into(),
            verdict,
        };
        let written = self.reports.finish(&end);
        for line in table(&self.outcomes) {
            self.screen.line(&line);
        }
        if let Some(exporter) = self.exporter.take() {
            exporter.stop();
        }
        if let Some(reason) = cut_short {
            complain(format_args!("The run was cut short: {reason}"));
        }
        written.map(|()| ExitCode::from(number))
    }
}

/// Why the phases after this one don't run.
fn failure(phase: &Phase, measured: &Measured, too_late: bool, depth: u64) -> Option<Failure> {
    if let Some(reason) = &measured.cut_short {
        return Some(Failure::Lost(format!("phase {}: {reason}", phase.name)));
    }
    too_late.then(|| {
        let name = &phase.name;
        Failure::Lost(format!(
            "phase {name}: --time was over at a depth of {depth}, before the phase came to its end"
        ))
    })
}

fn depth(client: &mut Client, topology: &Topology) -> Result<u64, Failure> {
    let mut sum = 0;
    for queue in topology.queues() {
        sum += client.queue_depth(CHANNEL, &queue)?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(line: &str) -> Result<Vec<Phase>, String> {
        let words = words::split(line).unwrap();
        let Request::Run(options) = Options::read(&words).map_err(|failure| failure.to_string())? else {
            panic!("{line}")
        };
        let Ok(Request::Run(base)) = cli::plan(&options.common, &|_| None) else {
            panic!("{line}")
        };
        let mut base = *base;
        settle(&mut base).map_err(|failure| failure.to_string())?;
        let each = |asked| phase(asked, &base, &options.common, &|_| None);
        options
            .phases
            .iter()
            .map(each)
            .collect::<Result<_, _>>()
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_fill_shares_its_messages_among_producers_and_a_drain_has_none() {
        let phases = phases("--fill 100 --drain -x 3 -X 2 -y 4").unwrap();
        let [fill, drain] = &phases[..] else { panic!() };
        assert_eq!(
            (fill.plan.producing.messages, fill.plan.consuming.consumers),
            (Some(17), 0)
        );
        assert_eq!(
            (drain.plan.producing.producers, drain.plan.consuming.consumers),
            (0, 4)
        );
    }

    #[test]
    fn a_phases_flags_win_over_the_common_ones() {
        let phases =
            phases("-x 3 --rate 5 --phase 'a: --producers 7 for 1s' --phase 'b: until depth 5'").unwrap();
        assert_eq!(
            (
                phases[0].plan.producing.producers,
                phases[1].plan.producing.producers
            ),
            (7, 3)
        );
    }

    #[test]
    fn queues_stay_the_same_in_all_phases_and_outlive_their_consumers() {
        let phases = phases("--phase 'a: for 1s' --phase 'b: for 1s'").unwrap();
        assert_eq!(phases[0].plan.queues.names, phases[1].plan.queues.names);
        assert!(matches!(phases[0].plan.queues.names, QueueNames::Fixed(_)));
        assert!(!phases[0].plan.queues.auto_delete && !phases[0].plan.queues.delete_at_end);
    }

    #[test]
    fn a_phase_that_can_not_work_is_refused_with_its_name() {
        for (line, says) in [
            ("--phase 'a: -x 1'", "'a': has no end"),
            ("--fill 5 --drain -x 0", "'fill': there is no producer"),
            ("--fill 5 --drain -y 0", "'drain': there is no consumer"),
            ("--phase 'a: --ratte 5 for 1s'", "'a': "),
            ("--phase 'a: --help for 1s'", "'a': asks for a help"),
            ("--fill 5 --drain --exclusive", "exclusive"),
        ] {
            let why = phases(line).map(|_| ()).unwrap_err();
            assert!(why.contains(says), "{line}: {why}");
        }
        assert!(phases("--time 5 --phase 'a: -x 1'").is_ok(), "--time is an end");
    }
}
