//! Tables of what only some scenarios have: operations, phases, and visits that failed.

use super::figure::{self, Spread, spread_of};
use super::percentiles::operations;
use super::table::{Cell, Row, Table};
use super::words;
use crate::results::{Latency, Operation, Phase, Results, Run, ScenarioResult};
use crate::statistics;
use charts::shown;

/// The operations of churn scenarios: a row for each operation and target.
pub fn churn(results: &Results, scenarios: &[&ScenarioResult]) -> Option<Table> {
    let mut table = with_head(&["Scenario", "Operation", "Target", "rate, 1/s"], 3);
    for name in ["p50", "p95", "p99", "p99.9", "max"] {
        table.head.push(name.to_owned());
    }
    let compared = results.targets.len() > 1;
    if compared {
        table.head.push("p99 ×".to_owned());
    }
    for scenario in scenarios {
        for (index, name) in operations(scenario).into_iter().enumerate() {
            for (target, broker) in results.targets.iter().enumerate() {
                let first = index == 0 && target == 0;
                let mut cells = vec![
                    scenario_cell(scenario, first),
                    Cell::text(if target == 0 { name } else { "" }),
                    Cell::text(&broker.name),
                ];
                cells.extend(operation_cells(scenario, target, name));
                if compared {
                    cells.push(operation_ratio(scenario, target, name));
                }
                table.rows.push(Row {
                    target: Some(target),
                    first,
                    cells,
                });
            }
        }
    }
    table.explain_dashes();
    (!table.rows.is_empty()).then_some(table)
}

fn operation<'a>(run: &'a Run, name: &str) -> Option<&'a Operation> {
    run.churn.as_ref()?.get(name)
}

fn operation_cells(scenario: &ScenarioResult, target: usize, name: &str) -> Vec<Cell> {
    let missing = || {
        let why = figure::no_visit(scenario, target);
        Cell::missing(why.unwrap_or_else(|| "no such operation was done".to_owned()))
    };
    let cell = |spread: Option<Spread>, show| spread.map_or_else(missing, |s| Cell::spread(s, show));
    let rate = figure::spread(scenario, target, |run| Some(operation(run, name)?.rate));
    let mut cells = vec![cell(rate, shown::number)];
    let places: [fn(&Latency) -> f64; 5] = [|l| l.p50, |l| l.p95, |l| l.p99, |l| l.p99_9, |l| l.max];
    for of in places {
        let spread = figure::spread(scenario, target, |run| Some(of(&operation(run, name)?.latency?)));
        cells.push(cell(spread, shown::time_us));
    }
    cells
}

fn operation_ratio(scenario: &ScenarioResult, target: usize, name: &str) -> Cell {
    if target == 0 {
        return Cell::text("");
    }
    let p99 = |run: &Run| Some(operation(run, name)?.latency?.p99);
    let pairs = scenario
        .runs_of(0)
        .filter(|a| scenario.runs_of(target).any(|b| b.round == a.round))
        .count();
    match scenario.ratio(0, target, p99) {
        None => Cell::missing("no round in which both targets did the operation".to_owned()),
        Some(ratio) => {
            let (text, note) = words::short_ratio(ratio, pairs);
            Cell {
                text,
                note,
                why: None,
            }
        }
    }
}

/// The phases of scenarios that have them: a row for each phase and target.
pub fn phases(results: &Results, scenarios: &[&ScenarioResult]) -> Option<Table> {
    let head = [
        "Scenario",
        "Phase",
        "Target",
        "time",
        "in, 1/s",
        "out, 1/s",
        "depth at its end",
    ];
    let mut table = with_head(&head, 3);
    let compared = results.targets.len() > 1;
    if compared {
        table.head.push("time ×".to_owned());
    }
    for scenario in scenarios {
        for (index, name) in phase_names(scenario).into_iter().enumerate() {
            let mut reference = None;
            for (target, broker) in results.targets.iter().enumerate() {
                let of = |measure: fn(&Phase) -> f64| {
                    figure::spread(scenario, target, |run| phase(run, name).map(measure))
                };
                let first = index == 0 && target == 0;
                let cell = |spread: Option<Spread>, show: fn(f64) -> String| match spread {
                    Some(spread) => Cell::spread(spread, show),
                    None => {
                        let why = figure::no_visit(scenario, target);
                        Cell::missing(why.unwrap_or_else(|| "there was no such phase".to_owned()))
                    }
                };
                let seconds = of(|p| p.seconds);
                let mut cells = vec![
                    scenario_cell(scenario, first),
                    Cell::text(if target == 0 { name } else { "" }),
                    Cell::text(&broker.name),
                    cell(seconds, |s| shown::time_us(s * 1e6)),
                    cell(of(|p| p.publish_rate), shown::number),
                    cell(of(|p| p.consume_rate), shown::number),
                    cell(of(|p| p.depth_at_end as f64), shown::number),
                ];
                if target == 0 {
                    reference = paired(scenario, 0, name);
                }
                if compared {
                    cells.push(time_ratio(scenario, target, name, reference.as_deref()));
                }
                table.rows.push(Row {
                    target: Some(target),
                    first,
                    cells,
                });
            }
        }
    }
    table.explain_dashes();
    (!table.rows.is_empty()).then_some(table)
}

fn phase<'a>(run: &'a Run, name: &str) -> Option<&'a Phase> {
    run.phases.iter().find(|p| p.name == name)
}

/// The length of a phase in each round.
fn paired(scenario: &ScenarioResult, target: usize, name: &str) -> Option<Vec<(u32, f64)>> {
    let lengths: Vec<(u32, f64)> = scenario
        .runs_of(target)
        .filter_map(|run| Some((run.round, phase(run, name)?.seconds)))
        .collect();
    (!lengths.is_empty()).then_some(lengths)
}

fn time_ratio(
    scenario: &ScenarioResult,
    target: usize,
    name: &str,
    reference: Option<&[(u32, f64)]>,
) -> Cell {
    if target == 0 {
        return Cell::text("");
    }
    let other = paired(scenario, target, name).unwrap_or_default();
    let (a, b): (Vec<f64>, Vec<f64>) = reference
        .unwrap_or_default()
        .iter()
        .filter_map(|(round, a)| Some((*a, other.iter().find(|(r, _)| r == round)?.1)))
        .unzip();
    match statistics::ratio(&a, &b) {
        None => Cell::missing("no round in which both targets have the phase".to_owned()),
        Some(ratio) => {
            let (text, note) = words::short_ratio(ratio, a.len());
            Cell {
                text,
                note,
                why: None,
            }
        }
    }
}

/// In the order in which they follow each other.
fn phase_names(scenario: &ScenarioResult) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for phase in scenario.runs.iter().flat_map(|r| &r.phases) {
        if !names.contains(&phase.name.as_str()) {
            names.push(&phase.name);
        }
    }
    names
}

/// The visits that failed or were skipped, one row each.
pub fn failures(results: &Results) -> Option<Table> {
    let mut table = with_head(&["Scenario", "Target", "Round", "Reason"], 4);
    for scenario in &results.scenarios {
        for run in &scenario.runs {
            let Some((trouble, reason)) = run.outcome.trouble() else {
                continue;
            };
            let name = results.targets.get(run.target).map_or(shown::NONE, |t| &t.name);
            table.rows.push(Row {
                target: Some(run.target),
                first: true,
                cells: vec![
                    Cell::text(&scenario.name),
                    Cell::text(name),
                    Cell::text((run.round + 1).to_string()),
                    Cell::text(format!("{trouble}: {reason}")),
                ],
            });
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// What was measured in each round, for those who want to see the spread themselves.
pub fn rounds(results: &Results, scenarios: &[&ScenarioResult]) -> Table {
    let head = [
        "Scenario",
        "Target",
        "Round",
        "rate, 1/s",
        "CPU per message",
        "p50",
        "p99",
        "max",
    ];
    let mut table = with_head(&head, 2);
    for scenario in scenarios {
        for run in scenario.runs.iter().filter(|r| r.is_ok()) {
            let name = results.targets.get(run.target).map_or(shown::NONE, |t| &t.name);
            let latency = run.main_latency();
            let time = |us: Option<f64>| Cell::text(shown::or_none(us.map(shown::time_us)));
            table.rows.push(Row {
                target: Some(run.target),
                first: false,
                cells: vec![
                    Cell::text(&scenario.name),
                    Cell::text(name),
                    Cell::text((run.round + 1).to_string()),
                    Cell::text(shown::or_none(run.rate().map(shown::number))),
                    time(run.cpu_us_per_message),
                    time(latency.map(|l| l.p50)),
                    time(latency.map(|l| l.p99)),
                    time(latency.map(|l| l.max)),
                ],
            });
        }
    }
    table
}

fn with_head(head: &[&str], numbers_from: usize) -> Table {
    Table {
        head: head.iter().map(|h| (*h).to_owned()).collect(),
        numbers_from,
        ..Table::default()
    }
}

fn scenario_cell(scenario: &ScenarioResult, first: bool) -> Cell {
    if first {
        Cell::scenario(scenario)
    } else {
        Cell::default()
    }
}

/// The longest of all measured windows and the shortest, for the line that says how long they were.
pub fn windows(results: &Results) -> Option<Spread> {
    let all: Vec<f64> = results
        .scenarios
        .iter()
        .flat_map(|s| s.runs.iter().filter(|r| r.is_ok()).map(|r| r.seconds))
        .collect();
    spread_of(&all)
}

#[cfg(test)]
mod tests {
    use super::super::sample::results;
    use super::*;

    fn texts(table: &Table) -> Vec<Vec<&str>> {
        let row = |row: &'_ Row| row.cells.len();
        assert!(table.rows.iter().all(|r| row(r) == table.head.len()));
        table
            .rows
            .iter()
            .map(|r| r.cells.iter().map(|c| c.text.as_str()).collect())
            .collect()
    }

    #[test]
    fn operations_are_told_for_each_target() {
        let results = results();
        let all: Vec<&ScenarioResult> = results.scenarios.iter().collect();
        let table = churn(&results, &all).unwrap();
        let rows = texts(&table);
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[0][..3], ["S003-BIND", "bind", "leveret"]);
        assert_eq!(rows[2][1], "unbind");
    }

    #[test]
    fn phases_are_told_with_the_ratio_of_their_times() {
        let results = results();
        let all: Vec<&ScenarioResult> = results.scenarios.iter().collect();
        let table = phases(&results, &all).unwrap();
        let rows = texts(&table);
        assert_eq!(rows.len(), 4);
        assert_eq!((rows[0][1], rows[2][1]), ("fill", "drain"));
        assert!(!rows[1][7].is_empty() && rows[0][7].is_empty());
    }

    #[test]
    fn no_failed_visit_is_dropped() {
        let results = results();
        let table = failures(&results).unwrap();
        let failed = results.scenarios.iter().flat_map(|s| &s.runs);
        assert_eq!(table.rows.len(), failed.filter(|r| !r.is_ok()).count());
        assert!(texts(&table).iter().all(|row| !row[3].is_empty()));
    }
}
