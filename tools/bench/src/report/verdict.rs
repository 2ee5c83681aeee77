//! What speaks against believing figures: what else the machine and its host did meanwhile, and too few rounds.

use crate::results::{Results, Run, ScenarioResult};
use charts::shown;

/// More of the processors' time than this for the host's other guests, in percent, and a visit says more about them.
const MOST_STOLEN: f64 = 5.0;
/// The same for other programs on this machine.
const MOST_OTHERS: f64 = 10.0;
/// The same for processors that stood still before the first visit.
const MOST_PAUSES: f64 = 2.0;
/// With fewer rounds there is no interval worth the name.
const FEWEST_ROUNDS: u32 = 3;

/// What disturbed a target's visits of a scenario; the median over its rounds, as the figures beside it.
pub fn of_row(scenario: &ScenarioResult, target: usize) -> Vec<String> {
    let above = |of: fn(&Run) -> Option<f64>, most: f64| scenario.median(target, of).filter(|p| *p > most);
    let stolen = above(|run| run.stolen_percent, MOST_STOLEN);
    let others = above(|run| run.others_percent, MOST_OTHERS);
    let stolen = stolen.map(|percent| format!("{} stolen by the host", shown::percent(percent)));
    let others = others.map(|percent| format!("{} used by other programs", shown::percent(percent)));
    stolen.into_iter().chain(others).collect()
}

/// Whether a run can be trusted, in a sentence for its head.
pub fn of_run(results: &Results) -> String {
    let mut doubts = of_all(results);
    let rows = of_rows(results);
    let head = if doubts.is_empty() {
        "do not rely on the marked rows"
    } else {
        "do not rely on these figures"
    };
    doubts.extend(rows);
    if doubts.is_empty() {
        "nothing was noticed that disturbed this run".to_owned()
    } else {
        format!("{head}: {}", doubts.join("; "))
    }
}

/// Whether something speaks against the run.
pub fn is_doubtful(results: &Results) -> bool {
    !of_all(results).is_empty() || of_rows(results).is_some()
}

/// What speaks against all of its figures.
fn of_all(results: &Results) -> Vec<String> {
    let mut doubts = Vec::new();
    let machine = &results.machine;
    if let Some(pauses) = machine.pauses.filter(|pauses| pauses.percent > MOST_PAUSES) {
        let share = shown::percent(pauses.percent);
        doubts.push(format!(
            "the processors stood still for {share} of the time before the first visit"
        ));
    }
    if let Some(load) = machine.load_before {
        doubts.push(format!(
            "the load average was {load:.1} before the first visit, so other programs were running"
        ));
    }
    if results.rounds < FEWEST_ROUNDS {
        let rounds = if results.rounds == 1 { "round" } else { "rounds" };
        doubts.push(format!(
            "only {} {rounds}, so differences may be chance",
            results.rounds
        ));
    }
    doubts
}

/// How many rows were disturbed, if any was.
fn of_rows(results: &Results) -> Option<String> {
    let (mut all, mut disturbed) = (0_usize, 0_usize);
    for scenario in &results.scenarios {
        for target in 0..results.targets.len() {
            if scenario.runs_of(target).next().is_some() {
                all += 1;
                disturbed += usize::from(!of_row(scenario, target).is_empty());
            }
        }
    }
    let were = if disturbed == 1 { "was" } else { "were" };
    (disturbed > 0).then(|| format!("{disturbed} of {all} {were} disturbed, as the tables say"))
}

#[cfg(test)]
mod tests {
    use super::super::sample::results;
    use super::*;
    use crate::results::Pauses;

    /// A run with nothing against it.
    fn quiet() -> Results {
        let mut results = results();
        results.rounds = 5;
        results.machine.pauses = None;
        results.machine.load_before = None;
        for run in results.scenarios.iter_mut().flat_map(|s| &mut s.runs) {
            run.stolen_percent = Some(0.4);
            run.others_percent = Some(1.0);
        }
        results
    }

    #[test]
    fn a_quiet_run_is_not_doubted() {
        assert!(!is_doubtful(&quiet()), "{}", of_run(&quiet()));
        assert!(of_run(&quiet()).starts_with("nothing was noticed"));
    }

    #[test]
    fn processors_that_stand_still_are_named() {
        let mut results = quiet();
        results.machine.pauses = Some(Pauses {
            percent: 81.9,
            longest_us: 1e5,
        });
        assert!(
            of_run(&results).contains("stood still for 81.9 %"),
            "{}",
            of_run(&results)
        );
    }

    #[test]
    fn stolen_time_and_other_programs_are_named_beside_their_row() {
        let mut results = quiet();
        for run in results.scenarios[0].runs.iter_mut().filter(|r| r.target == 1) {
            run.stolen_percent = Some(28.0);
            run.others_percent = Some(40.0);
        }
        assert_eq!(of_row(&results.scenarios[0], 0), Vec::<String>::new());
        let doubts = of_row(&results.scenarios[0], 1).join(", ");
        assert!(
            doubts.contains("stolen by the host") && doubts.contains("other programs"),
            "{doubts}"
        );
        let verdict = of_run(&results);
        assert!(
            verdict.starts_with("do not rely on the marked rows: 1 of "),
            "{verdict}"
        );
    }

    #[test]
    fn two_rounds_and_a_busy_machine_are_too_little() {
        let mut results = quiet();
        results.rounds = 2;
        results.machine.load_before = Some(3.5);
        let verdict = of_run(&results);
        assert!(
            verdict.contains("only 2 rounds") && verdict.contains("3.5"),
            "{verdict}"
        );
    }
}
