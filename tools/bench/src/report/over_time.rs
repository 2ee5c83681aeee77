//! Plots over time: latency, rates, depth and memory, of the median round in full and of the others thinly.

use crate::results::{Moment, Results, Run, ScenarioResult};
use crate::statistics;
use charts::axis::{Axis, Quantity, plain};
use charts::drawing::{Content, Drawing, slug};
use charts::panel::{Dot, Line, Panel, Span, Stroke};
use charts::scale::Scale;
use charts::shown;

/// A figure in words.
type Show = fn(f64) -> String;

/// What a panel shows.
struct View {
    title: &'static str,
    quantity: Quantity,
    logarithmic: bool,
    solid: fn(&Moment) -> Option<f64>,
    dashed: Option<fn(&Moment) -> Option<f64>>,
    show: Show,
}

fn views() -> [View; 4] {
    let count = |unit: &str| Quantity::Count(unit.to_owned());
    [
        View {
            title: "latency: p99 solid, p50 dashed",
            quantity: Quantity::TimeUs,
            logarithmic: true,
            solid: |m| m.p99_us,
            dashed: Some(|m| m.p50_us),
            show: shown::time_us,
        },
        View {
            title: "messages per second: out solid, in dashed",
            quantity: count("msg/s"),
            logarithmic: false,
            solid: |m| Some(m.consume_rate),
            dashed: Some(|m| Some(m.publish_rate)),
            show: |v| format!("{} msg/s", shown::number(v)),
        },
        View {
            title: "depth: messages published and not consumed",
            quantity: count("messages"),
            logarithmic: false,
            solid: |m| Some(m.depth as f64),
            dashed: None,
            show: |v| format!("{} messages", shown::number(v)),
        },
        View {
            title: "broker’s resident memory, MB",
            quantity: count("MB"),
            logarithmic: false,
            solid: |m| m.rss_bytes.map(|b| b as f64 / 1e6),
            dashed: None,
            show: |v| format!("{} MB", shown::number(v)),
        },
    ]
}

/// The plots of a scenario; none where no run was watched over time.
pub fn drawing(results: &Results, scenario: &ScenarioResult) -> Option<Drawing> {
    let end = scenario
        .runs
        .iter()
        .filter(|r| r.is_ok())
        .flat_map(|r| r.over_time.iter().map(|m| m.at_s))
        .fold(0.0, f64::max);
    if end <= 0.0 {
        return None;
    }
    let panels: Vec<Panel> = views()
        .iter()
        .filter_map(|view| panel(results, scenario, view, end))
        .collect();
    (!panels.is_empty()).then(|| Drawing {
        name: format!("{}-time", slug(&scenario.name)),
        title: format!("{} over time: {}", scenario.name, scenario.title),
        reading: "The median round of each target; its other rounds are thin.".to_owned(),
        strokes: vec![(Stroke::Thin, "other rounds")],
        content: Content::Panels(panels),
    })
}

fn panel(results: &Results, scenario: &ScenarioResult, view: &View, end: f64) -> Option<Panel> {
    let mut lines = Vec::new();
    let mut spans = Vec::new();
    for (target, broker) in results.targets.iter().enumerate() {
        let Some(main) = median_run(scenario, target) else {
            continue;
        };
        spans.extend(phases(target, &broker.name, main));
        for run in scenario.runs_of(target).filter(|r| r.round != main.round) {
            lines.extend(line(run, Stroke::Thin, view.solid, None));
        }
        let tip = (broker.name.as_str(), view.show);
        if let Some(dashed) = view.dashed {
            lines.extend(line(main, Stroke::Dashed, dashed, None));
        }
        lines.extend(line(main, Stroke::Solid, view.solid, Some(tip)));
    }
    let values = lines.iter().flat_map(|l| l.dots.iter().map(|d| d.y));
    let y = if view.logarithmic {
        Scale::log(values)
    } else {
        Scale::from_zero(values)
    };
    // A line that never leaves zero shows nothing: consumers where there are none, depth where none builds up.
    let anything = lines.iter().flat_map(|l| &l.dots).any(|d| d.y > 0.0);
    anything.then(|| Panel {
        title: view.title.to_owned(),
        x: Axis {
            label: "since the load began".to_owned(),
            quantity: Quantity::Seconds,
            scale: Scale::to_the_end([end]),
            at: Vec::new(),
        },
        y: Axis {
            label: view.title.to_owned(),
            quantity: view.quantity.clone(),
            scale: y,
            at: Vec::new(),
        },
        lines,
        asked: Vec::new(),
        spans,
        missing: Vec::new(),
    })
}

/// The run in the middle: by how long the phases took where there are phases, else by its rate.
fn median_run(scenario: &ScenarioResult, target: usize) -> Option<&Run> {
    let measure = |run: &Run| {
        let phases: f64 = run.phases.iter().map(|p| p.seconds).sum();
        if phases > 0.0 {
            phases
        } else {
            run.rate().unwrap_or_default()
        }
    };
    let runs: Vec<&Run> = scenario
        .runs_of(target)
        .filter(|r| !r.over_time.is_empty())
        .collect();
    let all: Vec<f64> = runs.iter().map(|r| measure(r)).collect();
    let median = statistics::median(&all)?;
    let distance = |run: &Run| (measure(run) - median).abs();
    runs.into_iter()
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

fn line(
    run: &Run,
    stroke: Stroke,
    of: fn(&Moment) -> Option<f64>,
    tip: Option<(&str, Show)>,
) -> Option<Line> {
    let dots: Vec<Dot> = run
        .over_time
        .iter()
        .filter_map(|moment| {
            let y = of(moment).filter(|y| y.is_finite())?;
            let tip = tip.map(|(name, show)| format!("{name}, after {} s: {}", plain(moment.at_s), show(y)));
            Some(Dot {
                x: moment.at_s,
                y,
                range: None,
                tip,
            })
        })
        .collect();
    (!dots.is_empty()).then_some(Line {
        target: run.target,
        stroke,
        dots,
    })
}

/// The phases of a run, one after the other.
fn phases(target: usize, broker: &str, run: &Run) -> Vec<Span> {
    let mut from = 0.0;
    run.phases
        .iter()
        .map(|phase| {
            let span = Span {
                target,
                name: phase.name.clone(),
                tip: format!("{broker}: {}, {} s", phase.name, plain(phase.seconds)),
                from,
                to: from + phase.seconds,
            };
            from = span.to;
            span
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample::results;
    use super::*;

    fn scenario(name: &str) -> (Results, ScenarioResult) {
        let results = results();
        let scenario = results.scenarios.iter().find(|s| s.name == name).cloned();
        (results, scenario.unwrap())
    }

    #[test]
    fn phases_of_each_target_are_shaded_with_their_own_lengths() {
        let (results, scenario) = scenario("S004-DRAIN");
        let Content::Panels(panels) = drawing(&results, &scenario).unwrap().content else {
            panic!("no panels");
        };
        let ends: Vec<(usize, f64)> = panels[0].spans.iter().map(|s| (s.target, s.to)).collect();
        assert_eq!(ends.len(), 4);
        assert!(ends[1].1 < ends[3].1, "the second target takes longer: {ends:?}");
    }

    #[test]
    fn the_median_round_stands_out_of_the_others() {
        let (results, scenario) = scenario("S004-DRAIN");
        let Content::Panels(panels) = drawing(&results, &scenario).unwrap().content else {
            panic!("no panels");
        };
        let of = |stroke| {
            let lines = panels[0].lines.iter();
            lines.filter(|l| l.target == 0 && l.stroke == stroke).count()
        };
        let rounds = scenario.runs_of(0).count();
        assert_eq!((of(Stroke::Solid), of(Stroke::Thin)), (1, rounds - 1));
    }

    #[test]
    fn a_run_that_nobody_watched_has_no_plot() {
        let (results, mut scenario) = scenario("S004-DRAIN");
        for run in &mut scenario.runs {
            run.over_time.clear();
        }
        assert_eq!(drawing(&results, &scenario), None);
    }
}
