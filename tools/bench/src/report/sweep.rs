//! Plots of a sweep: latency, rate and cost against what is varied, a line for each target.

use super::figure::{self, Figure, P50, P99, Spread};
use super::words;
use crate::results::{PlotKind, Point, Results, Run, ScenarioResult};
use charts::axis::{Axis, Quantity};
use charts::drawing::{Content, Drawing, slug};
use charts::panel::{Dot, Line, Missing, Panel, Stroke};
use charts::scale::Scale;
use charts::shown;

/// What differs by more than this share from what was asked for gets a plot of its own.
const MISSED_SHARE: f64 = 0.02;

/// Of a group of scenarios, those that are points.
#[derive(Debug)]
pub struct Sweep<'a> {
    results: &'a Results,
    group: &'a str,
    points: Vec<(&'a ScenarioResult, &'a Point)>,
}

/// What a plot shows: up to two figures as lines.
struct View<'a> {
    name: &'a str,
    title: &'a str,
    reading: String,
    quantity: Quantity,
    lines: Vec<(Figure, Stroke)>,
    strokes: Vec<(Stroke, &'static str)>,
    logarithmic: bool,
    asked: bool,
}

impl<'a> Sweep<'a> {
    /// None where there are fewer than two points: one has nothing to be against.
    pub fn of(results: &'a Results, group: &'a str, scenarios: &[&'a ScenarioResult]) -> Option<Self> {
        let points: Vec<_> = scenarios
            .iter()
            .filter_map(|s| Some((*s, s.point.as_ref()?)))
            .collect();
        (points.len() > 1).then_some(Self {
            results,
            group,
            points,
        })
    }

    /// The plots, those that there are figures for.
    pub fn drawings(&self) -> Vec<Drawing> {
        let missed = self.misses_what_was_asked();
        let throughput = self
            .points
            .iter()
            .any(|(s, _)| s.plot == Some(PlotKind::Throughput));
        let mut views = vec![View {
            name: "latency",
            title: "latency",
            reading: "The whiskers span all rounds, the line joins their medians; the axis of latency is logarithmic."
                .to_owned(),
            quantity: Quantity::TimeUs,
            lines: vec![(P50, Stroke::Dashed), (P99, Stroke::Solid)],
            strokes: vec![(Stroke::Solid, "p99"), (Stroke::Dashed, "p50")],
            logarithmic: true,
            asked: false,
        }];
        if throughput || missed {
            let dashed = if missed {
                "; dashed is what was asked for"
            } else {
                ""
            };
            views.push(View {
                name: "rate",
                title: "messages per second",
                reading: format!("The whiskers span all rounds, the line joins their medians{dashed}."),
                quantity: Quantity::Count("msg/s".to_owned()),
                lines: vec![(figure::ACHIEVED, Stroke::Solid)],
                strokes: if missed {
                    vec![(Stroke::Solid, "achieved"), (Stroke::Dashed, "asked for")]
                } else {
                    Vec::new()
                },
                logarithmic: self.wide(figure::ACHIEVED.of),
                asked: missed,
            });
        }
        views.push(View {
            name: "cpu",
            title: "broker’s CPU time per message",
            reading: "The whiskers span all rounds, the line joins their medians; the axis is logarithmic."
                .to_owned(),
            quantity: Quantity::TimeUs,
            lines: vec![(figure::CPU, Stroke::Solid)],
            strokes: Vec::new(),
            logarithmic: true,
            asked: false,
        });
        if !self.knows(figure::RATE.of) {
            // A load that carries nothing, such as idle connections, is about memory.
            views.push(View {
                name: "memory",
                title: "broker’s peak memory",
                reading: "The whiskers span all rounds, the line joins their medians.".to_owned(),
                quantity: Quantity::Bytes,
                lines: vec![(figure::RSS, Stroke::Solid)],
                strokes: Vec::new(),
                logarithmic: false,
                asked: false,
            });
        }
        views.into_iter().filter_map(|view| self.drawing(view)).collect()
    }

    fn drawing(&self, view: View<'_>) -> Option<Drawing> {
        let values: Vec<f64> = self
            .points
            .iter()
            .flat_map(|(s, _)| s.runs.iter().filter(|r| r.is_ok()))
            .flat_map(|run| view.lines.iter().filter_map(|(f, _)| (f.of)(run)))
            .collect();
        if values.is_empty() {
            return None;
        }
        let asked = self
            .points
            .iter()
            .filter(|_| view.asked)
            .filter_map(|(s, _)| asked(s));
        let values = values.iter().copied().chain(asked);
        let scale = if view.logarithmic {
            Scale::log(values)
        } else {
            Scale::from_zero(values)
        };
        let mut series: Vec<&str> = Vec::new();
        for (_, point) in &self.points {
            if !series.contains(&point.series.as_str()) {
                series.push(&point.series);
            }
        }
        let panels = series
            .iter()
            .map(|name| self.panel(&view, name, scale.clone()))
            .collect();
        let label = self.points.first().map_or("", |(_, p)| p.x_label.as_str());
        Some(Drawing {
            name: format!("{}-{}", slug(self.group), view.name),
            title: format!("{}: {} against {label}", self.group, view.title),
            reading: view.reading,
            strokes: view.strokes,
            content: Content::Panels(panels),
        })
    }

    fn panel(&self, view: &View<'_>, series: &str, scale: Scale) -> Panel {
        let points: Vec<_> = self.points.iter().filter(|(_, p)| p.series == series).collect();
        let xs: Vec<f64> = self.points.iter().map(|(_, p)| p.x).collect();
        let mut panel = Panel {
            title: [series, view.title]
                .into_iter()
                .filter(|t| !t.is_empty())
                .collect::<Vec<_>>()
                .join(": "),
            x: Axis {
                label: points.first().map_or("", |(_, p)| p.x_label.as_str()).to_owned(),
                quantity: Quantity::Count(points.first().map_or("", |(_, p)| p.x_unit.as_str()).to_owned()),
                scale: Scale::of_sweep(&xs),
                at: points.iter().map(|(_, p)| p.x).collect(),
            },
            y: Axis {
                label: view.title.to_owned(),
                quantity: view.quantity.clone(),
                scale,
                at: Vec::new(),
            },
            lines: Vec::new(),
            asked: Vec::new(),
            spans: Vec::new(),
            missing: Vec::new(),
        };
        if view.asked {
            panel.asked = points
                .iter()
                .filter_map(|(s, p)| Some((p.x, asked(s)?)))
                .collect();
            panel.asked.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        for target in 0..self.results.targets.len() {
            for (figure, stroke) in &view.lines {
                panel.lines.extend(self.line(&points, target, figure, *stroke));
            }
            panel.missing.extend(self.missing(&points, target));
        }
        panel
    }

    fn line(
        &self,
        points: &[&(&ScenarioResult, &Point)],
        target: usize,
        figure: &Figure,
        stroke: Stroke,
    ) -> Option<Line> {
        let mut dots: Vec<Dot> = points
            .iter()
            .filter_map(|(scenario, point)| {
                let spread = figure::spread(scenario, target, figure.of)?;
                Some(Dot {
                    x: point.x,
                    y: spread.median,
                    range: Some((spread.low, spread.high)),
                    tip: Some(self.tip(point, target, figure, spread)),
                })
            })
            .collect();
        dots.sort_by(|a, b| a.x.total_cmp(&b.x));
        (!dots.is_empty()).then_some(Line { target, stroke, dots })
    }

    fn tip(&self, point: &Point, target: usize, figure: &Figure, spread: Spread) -> String {
        let name = self.results.targets.get(target).map_or(shown::NONE, |t| &t.name);
        let range = words::range(spread.low, spread.high, figure.show)
            .map_or_else(String::new, |range| format!(" {range}, {} rounds", spread.rounds));
        format!(
            "{name}, {} {}{}: {} {}{range}",
            point.x_label,
            charts::axis::plain(point.x),
            unit(&point.x_unit),
            figure.heading,
            (figure.show)(spread.median),
        )
    }

    fn missing(&self, points: &[&(&ScenarioResult, &Point)], target: usize) -> Vec<Missing> {
        let name = self.results.targets.get(target).map_or(shown::NONE, |t| &t.name);
        let mut missing = Vec::new();
        for (scenario, point) in points {
            let failed = scenario.runs.iter().filter(|r| r.target == target);
            for run in failed {
                if let Some((trouble, reason)) = run.outcome.trouble() {
                    missing.push(Missing {
                        target,
                        x: point.x,
                        tip: format!(
                            "{name}, {}, round {}: {trouble}: {reason}",
                            scenario.name,
                            run.round + 1
                        ),
                    });
                }
            }
        }
        missing
    }

    fn knows(&self, of: fn(&Run) -> Option<f64>) -> bool {
        let mut runs = self.points.iter().flat_map(|(s, _)| s.runs.iter());
        runs.any(|run| run.is_ok() && of(run).is_some())
    }

    fn misses_what_was_asked(&self) -> bool {
        self.points.iter().any(|(scenario, _)| {
            let Some(asked) = asked(scenario) else {
                return false;
            };
            let mut runs = scenario.runs.iter().filter(|r| r.is_ok());
            runs.any(|run| (run.publish_rate / asked - 1.0).abs() > MISSED_SHARE)
        })
    }

    /// Whether a linear axis would press the slower ones to the ground.
    fn wide(&self, of: fn(&Run) -> Option<f64>) -> bool {
        let runs = || self.points.iter().flat_map(|(s, _)| s.runs.iter());
        let values: Vec<f64> = runs().filter(|r| r.is_ok()).filter_map(of).collect();
        let least = charts::scale::least(values.iter().copied().filter(|v| *v > 0.0));
        let greatest = charts::scale::greatest(values.iter().copied());
        matches!((least, greatest), (Some(low), Some(high)) if high / low > 30.0)
    }
}

fn unit(unit: &str) -> String {
    if unit.is_empty() {
        String::new()
    } else {
        format!(" {unit}")
    }
}

/// The rate that the load generator's flags ask for: `--rate` is each producer's.
fn asked(scenario: &ScenarioResult) -> Option<f64> {
    if scenario
        .flags
        .first()
        .is_some_and(|f| f == "churn" || f == "phases")
    {
        return None;
    }
    let value = |names: [&str; 2]| {
        let at = scenario.flags.iter().position(|f| names.contains(&f.as_str()))?;
        scenario.flags.get(at + 1)?.parse::<f64>().ok()
    };
    let rate = value(["--rate", "-r"]).filter(|r| *r > 0.0)?;
    Some(rate * value(["--producers", "-x"]).unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::super::sample::results;
    use super::*;

    fn drawings(group: &str) -> Vec<Drawing> {
        let results = results();
        let scenarios: Vec<&ScenarioResult> = results.scenarios.iter().filter(|s| s.group == group).collect();
        Sweep::of(&results, group, &scenarios).unwrap().drawings()
    }

    #[test]
    fn a_sweep_has_a_line_for_each_target_and_percentile() {
        let all = drawings("S000-RATE");
        let Content::Panels(panels) = &all[0].content else {
            panic!("no panels");
        };
        assert_eq!(all[0].name, "s000-rate-latency");
        assert_eq!((panels.len(), panels[0].lines.len()), (1, 4));
        assert_eq!(panels[0].missing.len(), 1, "the failed visit is marked");
    }

    #[test]
    fn rates_are_drawn_beside_what_was_asked_where_a_target_missed_it() {
        let rate = drawings("S000-RATE")
            .into_iter()
            .find(|d| d.name == "s000-rate-rate")
            .unwrap();
        let Content::Panels(panels) = rate.content else {
            panic!("no panels");
        };
        assert!(
            panels[0].asked.contains(&(60_000.0, 60_000.0)),
            "{:?}",
            panels[0].asked
        );
    }

    #[test]
    fn a_sweep_that_carries_nothing_is_about_memory() {
        let mut results = results();
        results.scenarios.retain(|s| s.group == "S000-RATE");
        for run in results.scenarios.iter_mut().flat_map(|s| &mut s.runs) {
            (run.publish_rate, run.consume_rate) = (0.0, 0.0);
            (run.latency, run.cpu_us_per_message) = (None, None);
        }
        let scenarios: Vec<&ScenarioResult> = results.scenarios.iter().collect();
        let all = Sweep::of(&results, "S000-RATE", &scenarios).unwrap().drawings();
        assert!(all.iter().any(|d| d.name == "s000-rate-memory"), "{all:?}");
    }

    #[test]
    fn series_of_a_group_get_a_panel_each() {
        let Content::Panels(panels) = &drawings("S000-CONS")[0].content else {
            panic!("no panels");
        };
        let titles: Vec<&str> = panels.iter().map(|p| p.title.as_str()).collect();
        assert_eq!(titles, ["10000 msg/s: latency", "50000 msg/s: latency"]);
    }

    #[test]
    fn the_rate_asked_for_is_that_of_all_producers() {
        let mut scenario = results().scenarios[0].clone();
        scenario.flags = ["-x", "10", "--rate", "50"].map(str::to_owned).to_vec();
        assert_eq!(asked(&scenario), Some(500.0));
        scenario.flags = vec!["--rate".to_owned()];
        assert_eq!(asked(&scenario), None);
    }
}
