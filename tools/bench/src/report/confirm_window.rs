//! Durable confirms against what the disk allows: the rate for windows and publishers, beside the same load without the disk
//! and beside a bound that both make.
//!
//! A publisher with a window of unconfirmed messages gets one window through in a sync and a round trip, and no more than it
//! would without the disk: `min(transient rate, publishers × window / (sync + round trip))`. The sync is the machine's
//! (an append of 4 KiB), the round trip that of a single transient message of a single publisher.

use super::figure;
use super::table::{Cell, Row, Table};
use crate::results::{PlotKind, Results, Run, ScenarioResult};
use charts::axis::{Axis, Quantity};
use charts::drawing::{Content, Drawing, slug};
use charts::panel::{Dot, Line, Panel, Stroke};
use charts::scale::Scale;
use charts::shown;

/// The share of the bound that a broker should reach: what is missing is its processor time.
const SHARE: f64 = 0.8;

/// A rate that is this much lower than that of a smaller window is told; less is the machine's noise.
const FALL: f64 = 0.9;

/// The scenarios of a group that vary the window.
#[derive(Debug)]
pub struct ConfirmWindow<'a> {
    results: &'a Results,
    group: &'a str,
    places: Vec<PlottedScenario<'a>>,
}

/// One scenario by what its flags say.
#[derive(Debug)]
struct PlottedScenario<'a> {
    scenario: &'a ScenarioResult,
    window: f64,
    publishers: u32,
    durable: bool,
}

/// What a target did at one place of the curve.
struct Reached {
    window: f64,
    durable: f64,
    transient: f64,
    bound: f64,
    syncs_per_message: Option<f64>,
}

impl<'a> ConfirmWindow<'a> {
    /// None if the group is about something else.
    pub fn of(results: &'a Results, group: &'a str, scenarios: &[&'a ScenarioResult]) -> Option<Self> {
        let places: Vec<_> = scenarios.iter().copied().filter_map(place).collect();
        (!places.is_empty()).then_some(Self {
            results,
            group,
            places,
        })
    }

    /// The curves, a panel for each number of publishers. None without a sync time or a round trip.
    pub fn drawing(&self) -> Option<Drawing> {
        let mut values = Vec::new();
        let mut panels = Vec::new();
        for publishers in self.publishers() {
            let mut lines = Vec::new();
            for target in 0..self.results.targets.len() {
                let reached = self.reached(target, publishers);
                for (stroke, rate) in STROKES {
                    let dots: Vec<Dot> = reached
                        .iter()
                        .map(|at| self.dot(target, at, rate(at), stroke))
                        .collect();
                    values.extend(dots.iter().map(|dot| dot.y));
                    if !dots.is_empty() {
                        lines.push(Line { target, stroke, dots });
                    }
                }
            }
            if !lines.is_empty() {
                panels.push((publishers, lines));
            }
        }
        if panels.is_empty() {
            return None;
        }
        let scale = Scale::log(values);
        let panels = panels
            .into_iter()
            .map(|(publishers, lines)| self.panel(publishers, lines, scale.clone()))
            .collect();
        Some(Drawing {
            name: format!("{}-rate", slug(self.group)),
            title: format!("{}: confirmed messages per second against the window", self.group),
            reading: "Solid: persistent messages, each confirmed after its sync; dashed: transient ones; thin: the bound, \
                      the window divided by sync and round trip, but no more than the transient rate."
                .to_owned(),
            strokes: vec![
                (Stroke::Solid, "durable"),
                (Stroke::Dashed, "transient"),
                (Stroke::Thin, "bound"),
            ],
            content: Content::Panels(panels),
        })
    }

    /// Every place with its share of the bound.
    pub fn table(&self) -> Option<Table> {
        let mut table = Table {
            head: [
                "publishers",
                "window",
                "broker",
                "durable, 1/s",
                "transient, 1/s",
                "bound, 1/s",
                "share of the bound",
                "messages a sync",
                "syncs a window",
            ]
            .map(str::to_owned)
            .to_vec(),
            numbers_from: 3,
            ..Table::default()
        };
        for (target, name) in self.results.targets.iter().map(|t| &t.name).enumerate() {
            let (mut places, mut near, mut falls) = (0, 0, Vec::new());
            for publishers in self.publishers() {
                let reached = self.reached(target, publishers);
                let mut best: f64 = 0.0;
                for at in &reached {
                    places += 1;
                    near += usize::from(at.durable >= SHARE * at.bound);
                    if at.durable < FALL * best {
                        falls.push(format!("{publishers}×{}", at.window));
                    }
                    best = best.max(at.durable);
                    table.rows.push(row(target, name, publishers, at));
                }
            }
            if places > 0 {
                let falls = match falls.as_slice() {
                    [] => "nowhere".to_owned(),
                    some => format!("at {}", some.join(", ")),
                };
                table.notes.push(format!(
                    "{name}: {near} of {places} reach {SHARE} of the bound; slower by a tenth than with a smaller window: \
                     {falls} (publishers × window)."
                ));
            }
        }
        (!table.rows.is_empty()).then_some(table)
    }

    fn publishers(&self) -> Vec<u32> {
        let mut publishers: Vec<u32> = self.places.iter().map(|place| place.publishers).collect();
        publishers.sort_unstable();
        publishers.dedup();
        publishers
    }

    /// What is known of a target and a number of publishers, by window.
    fn reached(&self, target: usize, publishers: u32) -> Vec<Reached> {
        let Some(turn_us) = self.sync_us().zip(self.round_trip_us(target)).map(|(a, b)| a + b) else {
            return Vec::new();
        };
        let here = self
            .places
            .iter()
            .filter(|p| p.durable && p.publishers == publishers);
        let mut reached: Vec<Reached> = here
            .filter_map(|place| {
                let transient = self.transient(target, publishers, place.window)?;
                Some(Reached {
                    window: place.window,
                    durable: place.scenario.median(target, confirmed)?,
                    transient,
                    bound: transient.min(f64::from(publishers) * place.window * 1e6 / turn_us),
                    syncs_per_message: place.scenario.median(target, |run| run.syncs_per_message),
                })
            })
            .collect();
        reached.sort_by(|a, b| a.window.total_cmp(&b.window));
        reached
    }

    fn sync_us(&self) -> Option<f64> {
        Some(self.results.machine.disk_sync_us?.p50)
    }

    fn round_trip_us(&self, target: usize) -> Option<f64> {
        self.transient(target, 1, 1.0).map(|rate| 1e6 / rate)
    }

    fn transient(&self, target: usize, publishers: u32, window: f64) -> Option<f64> {
        let place = self
            .places
            .iter()
            .find(|p| !p.durable && p.publishers == publishers && p.window == window)?;
        place
            .scenario
            .median(target, confirmed)
            .filter(|rate| *rate > 0.0)
    }

    fn dot(&self, target: usize, at: &Reached, rate: f64, stroke: Stroke) -> Dot {
        let name = self.results.targets.get(target).map_or(shown::NONE, |t| &t.name);
        // Only what was measured has a marker, and only the line that this is about.
        let tip = (stroke == Stroke::Solid).then(|| {
            format!(
                "{name}, window {}: {}/s, {:.2} of the bound",
                at.window,
                shown::number(rate),
                at.durable / at.bound
            )
        });
        Dot {
            x: at.window,
            y: rate,
            range: None,
            tip,
        }
    }

    fn panel(&self, publishers: u32, lines: Vec<Line>, scale: Scale) -> Panel {
        let windows: Vec<f64> = self.places.iter().map(|place| place.window).collect();
        Panel {
            title: format!("{publishers} publishers: confirmed per second"),
            x: Axis {
                label: "unconfirmed at most".to_owned(),
                quantity: Quantity::Count(String::new()),
                scale: Scale::of_sweep(&windows),
                at: windows,
            },
            y: Axis {
                label: "confirmed per second".to_owned(),
                quantity: Quantity::Count("msg/s".to_owned()),
                scale,
                at: Vec::new(),
            },
            lines,
            asked: Vec::new(),
            spans: Vec::new(),
            missing: Vec::new(),
        }
    }
}

/// The strokes of a target's lines, and what each is about.
type Stroked = (Stroke, fn(&Reached) -> f64);
const STROKES: [Stroked; 3] = [
    (Stroke::Thin, |at| at.bound),
    (Stroke::Dashed, |at| at.transient),
    (Stroke::Solid, |at| at.durable),
];

fn row(target: usize, name: &str, publishers: u32, at: &Reached) -> Row {
    let counted = |of: fn(f64, f64) -> f64| match at.syncs_per_message {
        Some(syncs) if syncs > 0.0 => Cell::text(format!("{:.2}", of(syncs, at.window))),
        _ => Cell::missing("syncs were not counted (--count-syncs counts them)".to_owned()),
    };
    Row {
        target: Some(target),
        first: true,
        cells: vec![
            Cell::text(publishers.to_string()),
            Cell::text(at.window.to_string()),
            Cell::text(name),
            Cell::text(shown::number(at.durable)),
            Cell::text(shown::number(at.transient)),
            Cell::text(shown::number(at.bound)),
            Cell::text(format!("{:.2}", at.durable / at.bound)),
            counted(|syncs, _| 1.0 / syncs),
            counted(|syncs, window| syncs * window),
        ],
    }
}

/// What was confirmed per second: without a consumer's pace in it.
fn confirmed(run: &Run) -> Option<f64> {
    (figure::ACHIEVED.of)(run).map(|published| match run.seconds > 0.0 && run.confirmed > 0 {
        true => run.confirmed as f64 / run.seconds,
        false => published,
    })
}

fn place(scenario: &ScenarioResult) -> Option<PlottedScenario<'_>> {
    let value = |name: &str| {
        let at = scenario.flags.iter().position(|flag| flag == name)?;
        scenario.flags.get(at + 1)?.parse::<f64>().ok()
    };
    if scenario.plot != Some(PlotKind::ConfirmWindow) {
        return None;
    }
    Some(PlottedScenario {
        scenario,
        window: value("--confirm").filter(|window| *window > 0.0)?,
        publishers: value("--producers").map_or(1, |count| count as u32),
        durable: scenario.flags.iter().any(|flag| flag == "persistent"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::results;
    use super::*;

    /// The rates of windows 1 and 100 with and without the disk, on a machine that syncs in 251 µs and turns round in 49.
    fn measured(durable: [f64; 2]) -> Results {
        let mut results = results();
        results.targets.truncate(1);
        let pattern = results.scenarios[0].clone();
        results.scenarios.clear();
        let transient = [1e6 / 49.0, 400_000.0];
        for (persistent, rates) in [(true, durable), (false, transient)] {
            for (window, rate) in ["1", "100"].into_iter().zip(rates) {
                let mut scenario = pattern.clone();
                scenario.plot = Some(PlotKind::ConfirmWindow);
                scenario.flags = ["--producers", "1", "--confirm", window]
                    .map(str::to_owned)
                    .to_vec();
                if persistent {
                    scenario.flags.extend(["--flag", "persistent"].map(str::to_owned));
                }
                scenario.runs.retain(|run| run.target == 0);
                for run in &mut scenario.runs {
                    (run.seconds, run.confirmed) = (1.0, rate as u64);
                    run.syncs_per_message = persistent.then_some(0.02);
                }
                results.scenarios.push(scenario);
            }
        }
        results
    }

    fn table(results: &Results) -> Table {
        let all: Vec<&ScenarioResult> = results.scenarios.iter().collect();
        ConfirmWindow::of(results, "X-WINDOW", &all)
            .unwrap()
            .table()
            .unwrap()
    }

    #[test]
    fn the_bound_is_a_window_in_a_sync_and_a_round_trip_but_no_more_than_without_the_disk() {
        let results = measured([3_000.0, 200_000.0]);
        let table = table(&results);
        let texts = |row: usize| {
            table.rows[row]
                .cells
                .iter()
                .map(|c| c.text.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            texts(0)[3..],
            ["3,000", "20,408", "3,333", "0.90", "50.00", "0.02"]
        );
        assert_eq!(
            texts(1)[3..],
            ["200,000", "400,000", "333,333", "0.60", "50.00", "2.00"]
        );
        assert_eq!(
            table.notes,
            [
                "leveret: 1 of 2 reach 0.8 of the bound; slower by a tenth than with a smaller window: nowhere \
              (publishers × window)."
            ]
        );
    }

    #[test]
    fn a_rate_that_falls_with_the_window_is_told() {
        let table = table(&measured([3_000.0, 2_000.0]));
        assert!(
            table.notes[0].contains("at 1×100 (publishers × window)"),
            "{:?}",
            table.notes
        );
    }

    #[test]
    fn each_number_of_publishers_has_a_panel_with_three_lines() {
        let results = measured([3_000.0, 200_000.0]);
        let all: Vec<&ScenarioResult> = results.scenarios.iter().collect();
        let drawing = ConfirmWindow::of(&results, "X-WINDOW", &all)
            .unwrap()
            .drawing()
            .unwrap();
        let Content::Panels(panels) = drawing.content else {
            panic!("no panels");
        };
        assert_eq!((panels.len(), panels[0].lines.len()), (1, 3));
    }

    #[test]
    fn without_the_time_of_a_sync_there_is_no_bound() {
        let mut results = measured([3_000.0, 200_000.0]);
        results.machine.disk_sync_us = None;
        let all: Vec<&ScenarioResult> = results.scenarios.iter().collect();
        let windows = ConfirmWindow::of(&results, "X-WINDOW", &all).unwrap();
        assert!(windows.drawing().is_none() && windows.table().is_none());
    }
}
