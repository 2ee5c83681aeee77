//! Curves of latency over percentiles, which tell more about the slow ones than any single figure.

use super::figure::{Spread, spread_of};
use super::words;
use crate::results::{Latency, Results, Run, ScenarioResult};
use charts::axis::{Axis, Quantity};
use charts::drawing::{Content, Drawing, slug};
use charts::panel::{Dot, Line, Panel, Stroke};
use charts::scale::Scale;
use charts::shown;

/// A percentile's name, and how it is taken out of a latency.
type Percentile = (&'static str, fn(&Latency) -> f64);

/// The places of the curve, from the middle to the worst.
const PERCENTILES: [Percentile; 8] = [
    ("p50", |l| l.p50),
    ("p75", |l| l.p75),
    ("p90", |l| l.p90),
    ("p95", |l| l.p95),
    ("p99", |l| l.p99),
    ("p99.9", |l| l.p99_9),
    ("p99.99", |l| l.p99_99),
    ("max", |l| l.max),
];

/// The latency of each scenario.
pub fn of_messages(results: &Results, group: &str, scenarios: &[&ScenarioResult]) -> Option<Drawing> {
    let panels = scenarios
        .iter()
        .filter_map(|s| {
            let title = format!("{}: {}", s.name, s.title);
            panel(results, s, title, |run| run.latency.or(run.confirm_latency))
        })
        .collect();
    drawing(group, "latency", panels)
}

/// The latency of each operation of churn scenarios.
pub fn of_operations(results: &Results, group: &str, scenarios: &[&ScenarioResult]) -> Option<Drawing> {
    let mut panels = Vec::new();
    for scenario in scenarios {
        for name in operations(scenario) {
            let title = format!("{}: {name}", scenario.name);
            panels.extend(panel(results, scenario, title, |run| {
                run.churn.as_ref()?.get(name)?.latency
            }));
        }
    }
    drawing(group, "operations", panels)
}

/// The operations that any run of a scenario has, in order.
pub fn operations(scenario: &ScenarioResult) -> Vec<&str> {
    let mut names: Vec<&str> = scenario
        .runs
        .iter()
        .filter_map(|run| run.churn.as_ref())
        .flat_map(|churn| churn.keys().map(String::as_str))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn drawing(group: &str, what: &str, panels: Vec<Panel>) -> Option<Drawing> {
    (!panels.is_empty()).then(|| Drawing {
        name: format!("{}-{what}-percentiles", slug(group)),
        title: format!("{group}: {what} over percentiles"),
        reading: "To the right are the slowest: a flat line is a steady broker. Whiskers span all rounds; the axis is logarithmic."
            .to_owned(),
        strokes: Vec::new(),
        content: Content::Panels(panels),
    })
}

fn panel(
    results: &Results,
    scenario: &ScenarioResult,
    title: String,
    latency: impl Fn(&Run) -> Option<Latency>,
) -> Option<Panel> {
    let mut lines = Vec::new();
    for (target, broker) in results.targets.iter().enumerate() {
        let all: Vec<Latency> = scenario
            .runs_of(target)
            .filter_map(&latency)
            .filter(|l| l.count > 0)
            .collect();
        let dots: Vec<Dot> = PERCENTILES
            .iter()
            .enumerate()
            .filter_map(|(index, (name, of))| {
                let values: Vec<f64> = all.iter().map(of).filter(|v| *v > 0.0).collect();
                let spread = spread_of(&values)?;
                Some(dot(index, name, &broker.name, spread))
            })
            .collect();
        if !dots.is_empty() {
            lines.push(Line {
                target,
                stroke: Stroke::Solid,
                dots,
            });
        }
    }
    let values = lines
        .iter()
        .flat_map(|l| &l.dots)
        .flat_map(|d| [Some(d.y), d.range.map(|r| r.0), d.range.map(|r| r.1)])
        .flatten();
    let y = Scale::log(values);
    (!lines.is_empty()).then(|| Panel {
        title,
        x: Axis {
            label: "share of the messages or operations that are faster".to_owned(),
            quantity: Quantity::Names(PERCENTILES.iter().map(|(name, _)| (*name).to_owned()).collect()),
            scale: Scale::Ordinal((0..PERCENTILES.len()).map(|i| i as f64).collect()),
            at: Vec::new(),
        },
        y: Axis {
            label: "latency".to_owned(),
            quantity: Quantity::TimeUs,
            scale: y,
            at: Vec::new(),
        },
        lines,
        asked: Vec::new(),
        spans: Vec::new(),
        missing: Vec::new(),
    })
}

fn dot(index: usize, percentile: &str, broker: &str, spread: Spread) -> Dot {
    let range = words::range(spread.low, spread.high, shown::time_us)
        .map_or_else(String::new, |range| format!(" {range}, {} rounds", spread.rounds));
    Dot {
        x: index as f64,
        y: spread.median,
        range: Some((spread.low, spread.high)),
        tip: Some(format!(
            "{broker}, {percentile}: {}{range}",
            shown::time_us(spread.median)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::results;
    use super::*;

    #[test]
    fn each_operation_has_a_panel_with_a_line_for_each_target() {
        let results = results();
        let churn: Vec<&ScenarioResult> = results
            .scenarios
            .iter()
            .filter(|s| s.group == "S003-BIND")
            .collect();
        let drawing = of_operations(&results, "S003-BIND", &churn).unwrap();
        let Content::Panels(panels) = drawing.content else {
            panic!("no panels");
        };
        let titles: Vec<&str> = panels.iter().map(|p| p.title.as_str()).collect();
        assert_eq!(titles, ["S003-BIND: bind", "S003-BIND: unbind"]);
        assert_eq!(panels[0].lines.len(), 2);
        assert_eq!(panels[0].lines[0].dots.len(), PERCENTILES.len());
    }

    #[test]
    fn a_scenario_without_latencies_has_no_curve() {
        let mut results = results();
        results.scenarios.truncate(1);
        for run in &mut results.scenarios[0].runs {
            (run.latency, run.confirm_latency) = (None, None);
        }
        let scenarios: Vec<&ScenarioResult> = results.scenarios.iter().collect();
        assert_eq!(of_messages(&results, "COST", &scenarios), None);
    }
}
