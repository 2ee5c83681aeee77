//! What stands first: bars of rates and costs, and each sweep in a line.

use super::figure::{self, CPU, Figure, P99, RATE};
use super::table::{Cell, Row, Table};
use super::words;
use crate::results::{Results, ScenarioResult};
use charts::bars::{Bar, BarGroup};
use charts::drawing::{Content, Drawing};
use charts::shown;

/// Bars of the rates of those scenarios that run as fast as they can.
pub fn rates(results: &Results, scenarios: &[&ScenarioResult]) -> Vec<Drawing> {
    let unlimited: Vec<&ScenarioResult> = scenarios.iter().copied().filter(|s| is_unlimited(s)).collect();
    bars(
        results,
        &unlimited,
        &RATE,
        "summary-rate",
        "Messages (or operations) per second",
        "Longer is better. Each scenario has its own scale; the bar is the median, the whisker spans all rounds.",
    )
}

/// Bars of the broker's CPU time a message.
pub fn costs(results: &Results, scenarios: &[&ScenarioResult]) -> Vec<Drawing> {
    bars(
        results,
        scenarios,
        &CPU,
        "summary-cpu",
        "The broker’s CPU time per message",
        "Shorter is better. Each scenario has its own scale; the bar is the median, the whisker spans all rounds.",
    )
}

/// Whether the load goes as fast as the broker takes it.
fn is_unlimited(scenario: &ScenarioResult) -> bool {
    let limits = ["--rate", "-r", "--publishing-interval", "-P", "--variable-rate"];
    !scenario.flags.iter().any(|flag| limits.contains(&flag.as_str()))
}

fn bars(
    results: &Results,
    scenarios: &[&ScenarioResult],
    figure: &Figure,
    name: &str,
    title: &str,
    reading: &str,
) -> Vec<Drawing> {
    // Each scenario has a scale of its own, so bars of a single target would all be as long.
    if results.targets.len() < 2 {
        return Vec::new();
    }
    let groups: Vec<BarGroup> = scenarios
        .iter()
        // A scenario without a figure of any target is told of in the tables.
        .filter(|s| s.runs.iter().any(|r| r.is_ok() && (figure.of)(r).is_some()))
        .map(|scenario| BarGroup {
            name: scenario.name.clone(),
            title: scenario.title.clone(),
            bars: (0..results.targets.len())
                .map(|target| bar(results, scenario, figure, target))
                .collect(),
        })
        .collect();
    let parts: Vec<&[BarGroup]> = groups.chunks(fitting(results.targets.len())).collect();
    let count = parts.len();
    parts
        .iter()
        .enumerate()
        .map(|(index, groups)| {
            let title = if count > 1 {
                format!("{title} ({} of {count})", index + 1)
            } else {
                title.to_owned()
            };
            Drawing {
                name: name.to_owned(),
                title,
                reading: reading.to_owned(),
                strokes: Vec::new(),
                content: Content::Bars(groups.to_vec()),
            }
        })
        .collect()
}

/// So many scenarios fit on a screen or a printed page, which cannot break a drawing.
fn fitting(targets: usize) -> usize {
    (36 / (targets + 2)).max(2)
}

fn bar(results: &Results, scenario: &ScenarioResult, figure: &Figure, target: usize) -> Bar {
    let spread = figure::spread(scenario, target, figure.of);
    let text = match spread {
        None => format!(
            "{} {}",
            shown::NONE,
            figure.why_missing(results, scenario, target)
        ),
        Some(spread) => {
            let mut text = (figure.show)(spread.median);
            if let Some(words) = ratio_words(scenario, figure, target) {
                text.push_str(&format!("  ·  {words}"));
            }
            text
        }
    };
    Bar {
        target,
        label: results
            .targets
            .get(target)
            .map_or(shown::NONE, |t| &t.name)
            .to_owned(),
        value: spread.map(|s| s.median),
        range: spread.map(|s| (s.low, s.high)),
        text,
    }
}

/// A target beside the first: `5.3 times the rate [5–6.1]`.
fn ratio_words(scenario: &ScenarioResult, figure: &Figure, target: usize) -> Option<String> {
    let noun = figure.noun.filter(|_| target > 0)?;
    let ratio = scenario.ratio(0, target, figure.of)?;
    let pairs = figure::pairs(scenario, target, figure.of);
    Some(words::ratio(ratio, pairs, noun))
}

/// For each target but the first and each figure: how its ratios range over all scenarios.
pub fn sentences(results: &Results) -> Vec<String> {
    let Some(first) = results.targets.first() else {
        return Vec::new();
    };
    let mut sentences = Vec::new();
    for (target, broker) in results.targets.iter().enumerate().skip(1) {
        for figure in [CPU, RATE, P99] {
            let ratios: Vec<f64> = results
                .scenarios
                .iter()
                // The rate of a load with a limit says nothing of the broker's.
                .filter(|s| figure.noun != RATE.noun || is_unlimited(s))
                .filter_map(|s| Some(s.ratio(0, target, figure.of)?.median))
                .collect();
            let (Some(noun), Some(spread)) = (figure.noun, figure::spread_of(&ratios)) else {
                continue;
            };
            let what = if noun == "CPU" { "CPU per message" } else { noun };
            let range = match spread.rounds {
                1 => " in one scenario".to_owned(),
                count => format!(
                    " in the median over {count} scenarios; from {} to {}",
                    words::factor(spread.low),
                    words::factor(spread.high)
                ),
            };
            let times = words::multiple(spread.median);
            sentences.push(format!(
                "{}, {what}: {times} {}’s{range}.",
                broker.name, first.name
            ));
        }
    }
    sentences
}

/// Each sweep in a line: how the ratios of its points range.
pub fn sweeps(results: &Results, groups: &[(&str, Vec<&ScenarioResult>)]) -> Option<Table> {
    if results.targets.len() < 2 {
        return None;
    }
    let mut table = Table {
        head: ["Sweep", "Target", "points", "CPU ×", "rate ×", "p99 ×"]
            .map(str::to_owned)
            .to_vec(),
        numbers_from: 2,
        ..Table::default()
    };
    for (group, scenarios) in groups {
        for (target, broker) in results.targets.iter().enumerate().skip(1) {
            let mut cells = vec![
                Cell::text(if target == 1 { *group } else { "" }),
                Cell::text(&broker.name),
                Cell::text(scenarios.len().to_string()),
            ];
            for figure in [CPU, RATE, P99] {
                cells.push(ratio_range(scenarios, target, &figure));
            }
            table.rows.push(Row {
                target: Some(target),
                first: target == 1,
                cells,
            });
        }
    }
    table.explain_dashes();
    (!table.rows.is_empty()).then_some(table)
}

fn ratio_range(scenarios: &[&ScenarioResult], target: usize, figure: &Figure) -> Cell {
    let ratios: Vec<f64> = scenarios
        .iter()
        .filter_map(|s| Some(s.ratio(0, target, figure.of)?.median))
        .collect();
    match figure::spread_of(&ratios) {
        None => Cell::missing("no point at which both targets have the figure".to_owned()),
        Some(spread) => Cell::spread(spread, words::factor),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::results;
    use super::*;

    #[test]
    fn each_scenario_without_a_limit_has_its_bars() {
        let results = results();
        let all: Vec<&ScenarioResult> = results.scenarios.iter().filter(|s| s.point.is_none()).collect();
        let Content::Bars(groups) = rates(&results, &all).remove(0).content else {
            panic!("no bars");
        };
        let names: Vec<&str> = groups.iter().map(|g| g.name.as_str()).collect();
        assert!(names.contains(&"T1") && !names.contains(&"L1"), "{names:?}");
        let bars = &groups[0].bars;
        assert_eq!(bars.len(), 2);
        assert!(bars[1].text.contains("of the rate ["), "{}", bars[1].text);
        assert!(!bars[0].text.contains('·'), "the reference has no ratio");
    }

    #[test]
    fn one_target_alone_has_no_bars() {
        let mut results = results();
        results.targets.truncate(1);
        let all: Vec<&ScenarioResult> = results.scenarios.iter().collect();
        assert!(rates(&results, &all).is_empty() && costs(&results, &all).is_empty());
    }

    #[test]
    fn many_scenarios_are_drawn_in_parts() {
        let results = results();
        let t1 = results.scenarios.iter().find(|s| s.name == "T1").unwrap();
        let parts = costs(&results, &[t1; 20]);
        assert_eq!(parts.len(), 3);
        assert!(parts[2].title.ends_with("(3 of 3)"), "{}", parts[2].title);
    }

    #[test]
    fn a_failed_target_keeps_its_place_among_the_bars() {
        let results = results();
        let failed = results.scenarios.iter().find(|s| s.name == "T4").unwrap();
        let Content::Bars(groups) = rates(&results, &[failed]).remove(0).content else {
            panic!("no bars");
        };
        assert!(groups[0].bars[1].text.starts_with("– failed: "), "{groups:?}");
    }

    #[test]
    fn sweeps_are_told_in_a_line_each() {
        let results = results();
        let points: Vec<&ScenarioResult> = results
            .scenarios
            .iter()
            .filter(|s| s.group == "S000-RATE")
            .collect();
        let table = sweeps(&results, &[("S000-RATE", points)]).unwrap();
        assert_eq!(table.rows.len(), 1);
        assert!(table.rows[0].cells[3].note.is_some(), "{table:?}");
    }
}
