//! Tables, before anything decides whether they become HTML or Markdown.

use super::figure::{self, FURTHER, Figure, MAIN, Spread};
use super::verdict;
use super::words;
use crate::results::{Results, ScenarioResult};
use charts::shown;

/// A table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    pub head: Vec<String>,
    pub rows: Vec<Row>,
    /// Said below it: why there are dashes, and which columns are left out.
    pub notes: Vec<String>,
    /// Columns before this one hold text, the others numbers.
    pub numbers_from: usize,
}

/// A row, of a target where it is about one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    pub target: Option<usize>,
    /// The first row of a scenario.
    pub first: bool,
    pub cells: Vec<Cell>,
}

/// A cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cell {
    pub text: String,
    /// Small, behind the text: a range or an interval.
    pub note: Option<String>,
    /// Why there is only a dash.
    pub why: Option<String>,
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A scenario's name and title; of a sweep's point, what is special about it.
    pub fn scenario(scenario: &ScenarioResult) -> Self {
        let title = match (&scenario.point, scenario.title.split_once(": ")) {
            (Some(_), Some((_, point))) => point,
            _ => &scenario.title,
        };
        Self {
            note: Some(title.to_owned()),
            ..Self::text(&scenario.name)
        }
    }

    pub fn missing(why: String) -> Self {
        Self {
            text: shown::NONE.to_owned(),
            why: Some(why),
            ..Self::default()
        }
    }

    /// The median, and the least and the greatest round where they are not the same.
    pub fn spread(spread: Spread, show: fn(f64) -> String) -> Self {
        Self {
            text: show(spread.median),
            note: words::range(spread.low, spread.high, show),
            why: None,
        }
    }
}

impl Table {
    /// Adds a note for each distinct reason of a dash.
    pub fn explain_dashes(&mut self) {
        let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
        for row in &self.rows {
            for (cell, head) in row.cells.iter().zip(&self.head) {
                let Some(why) = &cell.why else {
                    continue;
                };
                match reasons.iter_mut().find(|(known, _)| known == why) {
                    Some((_, heads)) if heads.contains(head) => {}
                    Some((_, heads)) => heads.push(head.clone()),
                    None => reasons.push((why.clone(), vec![head.clone()])),
                }
            }
        }
        for (why, heads) in reasons {
            let columns = if heads.len() > 4 {
                "several columns".to_owned()
            } else {
                heads.join(", ")
            };
            self.notes.push(format!("{} in {columns}: {why}.", shown::NONE));
        }
    }
}

/// Whether a run has the figure at all.
fn is_known(scenarios: &[&ScenarioResult], figure: &Figure) -> bool {
    scenarios
        .iter()
        .any(|s| s.runs.iter().any(|run| run.is_ok() && (figure.of)(run).is_some()))
}

/// The main table: for each scenario a row for each target, with the main figures that any of them has.
pub fn figures(results: &Results, scenarios: &[&ScenarioResult]) -> Table {
    let mut columns: Vec<&Figure> = MAIN.iter().filter(|f| is_known(scenarios, f)).collect();
    if columns.is_empty() {
        // Where nothing was found out, the dashes still tell why.
        columns = MAIN.iter().take(4).collect();
    }
    table(results, scenarios, &columns, &MAIN)
}

/// The same with the other figures; none where nobody has any.
pub fn further(results: &Results, scenarios: &[&ScenarioResult]) -> Option<Table> {
    let columns: Vec<&Figure> = FURTHER.iter().filter(|f| is_known(scenarios, f)).collect();
    (!columns.is_empty()).then(|| table(results, scenarios, &columns, &FURTHER))
}

/// A table of some figures, with a note for each of those that could be there and are not.
fn table(results: &Results, scenarios: &[&ScenarioResult], columns: &[&Figure], all: &[Figure]) -> Table {
    let compared = results.targets.len() > 1;
    let mut table = Table {
        head: vec!["Scenario".to_owned(), "Target".to_owned()],
        numbers_from: 2,
        ..Table::default()
    };
    for figure in columns {
        table.head.push(figure.heading.to_owned());
        if let Some(noun) = figure.noun.filter(|_| compared) {
            table.head.push(format!("{noun} ×"));
        }
    }
    for scenario in scenarios {
        for target in 0..results.targets.len() {
            table.rows.push(row(results, scenario, target, columns));
        }
    }
    table.explain_dashes();
    for figure in all.iter().filter(|f| !is_known(scenarios, f)) {
        let why = scenarios
            .iter()
            .find(|s| s.runs.iter().any(crate::results::Run::is_ok));
        if let Some(scenario) = why {
            let target = scenario.runs.iter().find(|r| r.is_ok()).map_or(0, |r| r.target);
            let why = figure.why_missing(results, scenario, target);
            table
                .notes
                .push(format!("No column “{}”: {why}.", figure.heading));
        }
    }
    table
}

fn row(results: &Results, scenario: &ScenarioResult, target: usize, columns: &[&Figure]) -> Row {
    let compared = results.targets.len() > 1;
    let name = results.targets.get(target).map_or(shown::NONE, |t| &t.name);
    let first = if target == 0 {
        Cell::scenario(scenario)
    } else {
        Cell::default()
    };
    let doubts = verdict::of_row(scenario, target);
    let target_cell = Cell {
        note: (!doubts.is_empty()).then(|| format!("disturbed: {}", doubts.join(", "))),
        ..Cell::text(name)
    };
    let mut cells = vec![first, target_cell];
    for figure in columns {
        cells.push(match figure::spread(scenario, target, figure.of) {
            Some(spread) => Cell::spread(spread, figure.show),
            None => Cell::missing(figure.why_missing(results, scenario, target)),
        });
        if compared && figure.noun.is_some() {
            cells.push(ratio_cell(scenario, target, figure.of));
        }
    }
    Row {
        target: Some(target),
        first: target == 0,
        cells,
    }
}

/// How many times the first target's figure it is.
fn ratio_cell(scenario: &ScenarioResult, target: usize, of: fn(&crate::results::Run) -> Option<f64>) -> Cell {
    if target == 0 {
        return Cell::text("");
    }
    let Some(ratio) = scenario.ratio(0, target, of) else {
        return Cell::missing("no round in which both targets have the figure".to_owned());
    };
    let (text, note) = words::short_ratio(ratio, figure::pairs(scenario, target, of));
    Cell {
        text,
        note,
        why: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::results;
    use super::*;

    #[test]
    fn every_scenario_has_a_row_for_each_target() {
        let results = results();
        let all: Vec<&ScenarioResult> = results.scenarios.iter().collect();
        let table = figures(&results, &all);
        assert_eq!(table.rows.len(), all.len() * results.targets.len());
        for row in &table.rows {
            assert_eq!(row.cells.len(), table.head.len());
        }
    }

    #[test]
    fn dashes_and_absent_columns_are_explained_once() {
        let mut results = results();
        results.targets[1].pid = None;
        for run in results.scenarios.iter_mut().flat_map(|s| &mut s.runs) {
            run.syncs_per_message = None;
            if run.target == 1 {
                run.cpu_us_per_message = None;
            }
        }
        let all: Vec<&ScenarioResult> = results.scenarios.iter().collect();
        let notes = figures(&results, &all).notes;
        let about = |notes: &[String], text: &str| notes.iter().filter(|n| n.contains(text)).count();
        assert_eq!(
            about(&notes, "the process of rabbitmq is not known"),
            1,
            "{notes:?}"
        );
        let notes = further(&results, &all).unwrap().notes;
        assert_eq!(about(&notes, "No column “syncs per message”"), 1, "{notes:?}");
    }

    #[test]
    fn no_table_is_wider_than_a_page() {
        let results = results();
        let all: Vec<&ScenarioResult> = results.scenarios.iter().collect();
        assert!(figures(&results, &all).head.len() <= 10);
        assert!(further(&results, &all).unwrap().head.len() <= 10);
    }

    #[test]
    fn a_disturbed_visit_is_marked_beside_its_target() {
        let mut results = results();
        for run in results.scenarios[0].runs.iter_mut().filter(|r| r.target == 1) {
            run.stolen_percent = Some(31.0);
        }
        let table = figures(&results, &[&results.scenarios[0]]);
        assert_eq!(table.rows[0].cells[1].note, None);
        let note = table.rows[1].cells[1].note.as_deref().unwrap_or_default();
        assert!(
            note.starts_with("disturbed: ") && note.contains("stolen"),
            "{note}"
        );
    }
}
