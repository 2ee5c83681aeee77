//! The order of a run: which scenario visits which target when, and how long that takes.

use crate::results::Results;
use crate::scenario::Scenario;
use std::time::Duration;

/// Connecting, declaring, deleting, settling: what a visit takes beside its load, until it has been measured.
const VISIT_OVERHEAD: Duration = Duration::from_millis(1_300);

/// One visit of a scenario to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    /// Index of the scenario.
    pub scenario: usize,
    /// Index of the target.
    pub target: usize,
    pub round: u32,
}

/// All visits. A scenario has all its rounds before the next one begins, and every second round takes the targets
/// backwards (A B, B A, …): what drifts, such as the machine's other work, then hits all of them alike.
pub fn visits(scenarios: &[Scenario], targets: usize, rounds: u32) -> Vec<Visit> {
    let mut visits = Vec::new();
    for (scenario, its) in scenarios.iter().enumerate() {
        for round in 0..its.rounds_of(rounds) {
            let order: Vec<usize> = if round % 2 == 0 {
                (0..targets).collect()
            } else {
                (0..targets).rev().collect()
            };
            visits.extend(order.into_iter().map(|target| Visit {
                scenario,
                target,
                round,
            }));
        }
    }
    visits
}

/// The visits that have no result yet; those that failed or were skipped are tried again.
pub fn remaining(visits: &[Visit], results: &Results) -> Vec<Visit> {
    let done = |visit: &Visit| {
        let runs = results
            .scenarios
            .get(visit.scenario)
            .map(|s| s.runs.as_slice())
            .unwrap_or_default();
        runs.iter()
            .any(|run| run.target == visit.target && run.round == visit.round && run.is_ok())
    };
    visits.iter().filter(|visit| !done(visit)).copied().collect()
}

/// What one visit of a scenario is expected to take.
pub fn duration(scenario: &Scenario) -> Duration {
    Duration::from_secs_f64(scenario.fill_seconds + scenario.load_seconds()) + VISIT_OVERHEAD
}

/// What visits are expected to take together.
pub fn estimate(visits: &[Visit], scenarios: &[Scenario]) -> Duration {
    visits
        .iter()
        .filter_map(|visit| scenarios.get(visit.scenario))
        .map(duration)
        .sum()
}

/// `A B B A`, for the report, with as many letters as there are targets.
pub fn order_shown(targets: usize) -> String {
    let letters: Vec<String> = ('A'..='Z').take(targets).map(String::from).collect();
    let back = letters.iter().rev();
    letters.iter().chain(back).cloned().collect::<Vec<_>>().join(" ")
}

/// A time for people: `45 s`, `3 min`, `1 h 5 min`.
pub fn shown(time: Duration) -> String {
    let minutes = (time.as_secs() + 30) / 60;
    match (time.as_secs(), minutes) {
        (seconds, _) if seconds < 100 => format!("{seconds} s"),
        (_, minutes) if minutes < 60 => format!("{minutes} min"),
        (_, minutes) => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Machine, Outcome, Run, ScenarioResult};
    use crate::scenario::{DEFAULT_ROUNDS, Level};
    use crate::scenario_file::{self, EMBEDDED};
    use crate::selection;

    fn embedded(level: Level) -> Vec<Scenario> {
        selection::select(&scenario_file::read(EMBEDDED).unwrap(), &[], level).unwrap()
    }

    fn one_with_rounds(rounds: u32) -> Vec<Scenario> {
        let mut scenarios = embedded(Level::Smoke);
        scenarios.truncate(1);
        scenarios[0].rounds = rounds;
        scenarios
    }

    #[test]
    fn every_second_round_goes_backwards() {
        let order: Vec<(u32, usize)> = visits(&one_with_rounds(5), 2, 3)
            .iter()
            .map(|v| (v.round, v.target))
            .collect();
        assert_eq!(order, [(0, 0), (0, 1), (1, 1), (1, 0), (2, 0), (2, 1)]);
        assert_eq!(order_shown(2), "A B B A");
        assert_eq!(order_shown(3), "A B C C B A");
    }

    #[test]
    fn a_resumed_run_visits_what_is_missing_and_what_failed() {
        let scenarios = one_with_rounds(5);
        let all = visits(&scenarios, 2, 2);
        let mut runs: Vec<Run> = vec![Run::empty(0, 0), Run::failed(1, 0, "gone")];
        runs.push(Run::empty(1, 1));
        let results = Results {
            format: 1,
            title: String::new(),
            started_unix_s: 0,
            finished_unix_s: None,
            machine: Machine::default(),
            targets: Vec::new(),
            rounds: 2,
            seconds: 4.0,
            order: String::new(),
            scenarios: vec![ScenarioResult {
                name: scenarios[0].name.clone(),
                title: String::new(),
                group: String::new(),
                fill: Vec::new(),
                flags: Vec::new(),
                plot: None,
                point: None,
                runs,
            }],
        };
        let left: Vec<(u32, usize)> = remaining(&all, &results)
            .iter()
            .map(|v| (v.round, v.target))
            .collect();
        assert_eq!(left, [(0, 1), (1, 0)]);
        assert_eq!(results.scenarios[0].runs[0].outcome, Outcome::Ok);
    }

    #[test]
    fn a_full_run_of_three_targets_takes_between_35_and_60_minutes() {
        let scenarios = embedded(Level::Full);
        let time = estimate(&visits(&scenarios, 3, DEFAULT_ROUNDS), &scenarios);
        assert!((35 * 60..=60 * 60).contains(&time.as_secs()), "{}", shown(time));
    }

    #[test]
    fn times_are_rounded_for_people() {
        assert_eq!(shown(Duration::from_secs(45)), "45 s");
        assert_eq!(shown(Duration::from_secs(170)), "3 min");
        assert_eq!(shown(Duration::from_secs(3_890)), "1 h 5 min");
    }
}
