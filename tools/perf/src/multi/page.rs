//! The results as a page with charts: over time for a single point, else against a variable.

use super::outcome::{Outcome, Point, shown};
use super::stats::Stats;
use charts::axis::{Axis, Quantity};
use charts::drawing::{Content, Drawing, slug};
use charts::panel::{Dot, Line, Panel, Stroke};
use charts::scale::Scale;
use charts::shown::{number, time_us};
use charts::theme::{self, escape};
use serde_json::Value;

const CSS: &str = "html{color-scheme:light dark}body{margin:0 auto;max-width:1000px;padding:1rem 1.5rem;line-height:1.5;\
    font-family:system-ui,sans-serif;background:#fff;color:#1f2328}figure{margin:1.4rem 0}figcaption span{display:block}\
    figure svg{width:100%;height:auto}\
    @media screen and (prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}}";

/// A figure of the lines of a panel.
type Figure = fn(&Stats) -> Option<f64>;

/// The page. No file beside it, nothing from a network.
pub fn page(outcomes: &[Outcome]) -> String {
    let mut body = String::new();
    let mut most = 0;
    for outcome in outcomes {
        let (drawing, names) = drawing(outcome);
        most = most.max(names.len());
        body.push_str(&format!(
            "<section><h2>{}</h2>\n<figure><figcaption>{}</figcaption>{}</figure></section>\n",
            escape(&outcome.name),
            escape(&drawing.reading),
            drawing.inline(&names)
        ));
    }
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>leveret perf multi</title>\n\
         <style>{CSS}{}</style></head>\n<body><main><h1>Results of leveret perf multi</h1>\n{body}</main></body></html>\n",
        theme::style(most)
    )
}

/// A scenario's chart, and what its lines are.
fn drawing(outcome: &Outcome) -> (Drawing, Vec<String>) {
    let (reading, panels, names) = match outcome.variables.as_slice() {
        [] => {
            let (panels, names) = over_time(outcome);
            ("Rates and latency over time.".to_owned(), panels, names)
        }
        [x] => (
            format!("Rates and mean latency against {x}."),
            against(outcome),
            vec!["sent".to_owned(), "received".to_owned()],
        ),
        [x, rest @ ..] => (
            format!(
                "Rates and mean latency against {x}; a line for each {}.",
                rest.join(", ")
            ),
            against_lines(outcome),
            lines(outcome),
        ),
    };
    let drawing = Drawing {
        name: slug(&outcome.name),
        title: outcome.name.clone(),
        reading,
        strokes: Vec::new(),
        content: Content::Panels(panels),
    };
    (drawing, names)
}

fn over_time(outcome: &Outcome) -> (Vec<Panel>, Vec<String>) {
    let intervals = outcome
        .points
        .first()
        .map_or(&[][..], |point| &point.stats.intervals);
    let line = |target, of: &dyn Fn(&super::stats::Interval) -> Option<f64>, show: fn(f64) -> String| Line {
        target,
        stroke: Stroke::Solid,
        dots: intervals
            .iter()
            .filter_map(|interval| {
                let (x, y) = (interval.elapsed.as_secs_f64(), of(interval)?);
                Some(dot(x, y, format!("after {} s: {}", number(x), show(y))))
            })
            .collect(),
    };
    let ns = |interval: &super::stats::Interval| interval.latency;
    let rates = vec![
        line(0, &|it| Some(it.sent), rate),
        line(1, &|it| Some(it.received), rate),
    ];
    let latencies = vec![
        line(2, &|it| Some(ns(it)?.mean / 1e3), time_us),
        line(3, &|it| Some(ns(it)?.max as f64 / 1e3), time_us),
    ];
    let end = intervals.last().map_or(1.0, |it| it.elapsed.as_secs_f64());
    let x = Axis {
        label: "time".to_owned(),
        quantity: Quantity::Seconds,
        scale: Scale::to_the_end([end]),
        at: Vec::new(),
    };
    let names = ["sent", "received", "mean latency", "greatest latency"];
    (panels(&x, rates, latencies), names.map(str::to_owned).to_vec())
}

/// A line for what was sent and one for what was received.
fn against(outcome: &Outcome) -> Vec<Panel> {
    let x = axis(outcome);
    let points: Vec<&Point> = outcome.points.iter().collect();
    let rates = vec![
        line(outcome, 0, &points, |stats| Some(stats.sent()), rate),
        line(outcome, 1, &points, |stats| Some(stats.received()), rate),
    ];
    panels(
        &x,
        rates,
        vec![line(outcome, 0, &points, Stats::mean_latency_us, time_us)],
    )
}

/// A line for each combination of the other variables.
fn against_lines(outcome: &Outcome) -> Vec<Panel> {
    let x = axis(outcome);
    let (mut rates, mut latencies) = (Vec::new(), Vec::new());
    for (target, name) in lines(outcome).iter().enumerate() {
        let points: Vec<&Point> = outcome
            .points
            .iter()
            .filter(|point| others(outcome, point) == *name)
            .collect();
        rates.push(line(
            outcome,
            target,
            &points,
            |stats| Some(stats.sent().midpoint(stats.received())),
            rate,
        ));
        latencies.push(line(outcome, target, &points, Stats::mean_latency_us, time_us));
    }
    panels(&x, rates, latencies)
}

/// The other variables' values of a point, in words.
fn others(outcome: &Outcome, point: &Point) -> String {
    let pairs = outcome.variables.iter().zip(&point.values).skip(1);
    pairs
        .map(|(name, value)| format!("{name} {}", shown(value)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn lines(outcome: &Outcome) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in outcome.points.iter().map(|point| others(outcome, point)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Where a point stands on the axis of the first variable: at its value, or, among values that are no numbers, in turn.
fn place(outcome: &Outcome, point: &Point) -> f64 {
    let first = point.values.first();
    let number = |value: Option<&Value>| value.and_then(Value::as_f64);
    if outcome
        .points
        .iter()
        .all(|point| number(point.values.first()).is_some())
    {
        return number(first).unwrap_or_default();
    }
    let mut seen: Vec<&Value> = Vec::new();
    for value in outcome.points.iter().filter_map(|point| point.values.first()) {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen.iter()
        .position(|value| Some(*value) == first)
        .unwrap_or_default() as f64
}

fn axis(outcome: &Outcome) -> Axis {
    let mut places: Vec<f64> = outcome.points.iter().map(|point| place(outcome, point)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let numbers = outcome
        .points
        .iter()
        .all(|point| point.values.first().is_some_and(Value::is_number));
    let name_at = |place: &f64| {
        let at = outcome
            .points
            .iter()
            .find(|point| self::place(outcome, point) == *place);
        at.and_then(|point| point.values.first())
            .map(shown)
            .unwrap_or_default()
    };
    Axis {
        label: outcome.variables.first().cloned().unwrap_or_default(),
        quantity: match numbers {
            true => Quantity::Count(String::new()),
            false => Quantity::Names(places.iter().map(name_at).collect()),
        },
        scale: match numbers {
            true => Scale::of_sweep(&places),
            false => Scale::Ordinal(places.clone()),
        },
        at: places,
    }
}

fn line(outcome: &Outcome, target: usize, points: &[&Point], of: Figure, show: fn(f64) -> String) -> Line {
    let mut dots: Vec<Dot> = points
        .iter()
        .filter_map(|point| {
            let y = of(&point.stats)?;
            let values: Vec<String> = point.values.iter().map(shown).collect();
            Some(dot(
                place(outcome, point),
                y,
                format!("{}: {}", values.join(", "), show(y)),
            ))
        })
        .collect();
    dots.sort_by(|a, b| a.x.total_cmp(&b.x));
    Line {
        target,
        stroke: Stroke::Solid,
        dots,
    }
}

fn dot(x: f64, y: f64, tip: String) -> Dot {
    Dot {
        x,
        y,
        range: None,
        tip: Some(tip),
    }
}

fn rate(rate: f64) -> String {
    format!("{} msg/s", number(rate))
}

/// Rates at the left, latencies at the right, as far as there are any.
fn panels(x: &Axis, rates: Vec<Line>, latencies: Vec<Line>) -> Vec<Panel> {
    let panel = |title: &str, quantity: Quantity, lines: Vec<Line>| Panel {
        title: title.to_owned(),
        x: x.clone(),
        y: Axis {
            label: title.to_owned(),
            quantity,
            scale: Scale::from_zero(lines.iter().flat_map(|line| line.dots.iter().map(|dot| dot.y))),
            at: Vec::new(),
        },
        lines,
        asked: Vec::new(),
        spans: Vec::new(),
        missing: Vec::new(),
    };
    let all = [
        panel("messages per second", Quantity::Count("msg/s".to_owned()), rates),
        panel("latency", Quantity::TimeUs, latencies),
    ];
    all.into_iter()
        .filter(|panel| panel.lines.iter().any(|line| !line.dots.is_empty()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Recorder, Sample};
    use serde_json::json;
    use std::time::Duration;

    fn point(values: &[Value]) -> Point {
        let mut stats = Stats::default();
        stats.begin(1.0);
        for second in 1..=4 {
            let mut recorder = Recorder::new();
            (recorder.published, recorder.consumed) = (100 * second, 90 * second);
            recorder.latency_both(50_000, 50_000);
            stats.add(&Sample {
                elapsed: Duration::from_secs(second),
                interval: Duration::from_secs(1),
                recorder,
                ..Sample::default()
            });
        }
        Point {
            values: values.to_vec(),
            stats,
        }
    }

    #[test]
    fn every_kind_of_scenario_has_its_chart() {
        let outcome = |name: &str, variables: &[&str], points: Vec<Point>| Outcome {
            name: name.to_owned(),
            variables: variables.iter().map(|it| (*it).to_owned()).collect(),
            points,
        };
        let sized = |size: f64, count: f64| point(&[json!(size), json!(count)]);
        let outcomes = [
            outcome("a <simple>", &[], vec![point(&[])]),
            outcome(
                "rates",
                &["producerRateLimit"],
                vec![point(&[json!(10)]), point(&[json!(2_000)])],
            ),
            outcome(
                "kinds",
                &["exchangeType"],
                vec![point(&[json!("direct")]), point(&[json!("topic")])],
            ),
            outcome(
                "both",
                &["minMsgSize", "producerCount"],
                vec![sized(0.0, 1.0), sized(0.0, 2.0), sized(9.0, 1.0)],
            ),
            outcome("nothing", &[], Vec::new()),
        ];
        let page = page(&outcomes);
        for expected in [
            "a &lt;simple&gt;",
            "after 2.00 s: 200 msg/s",
            "2000: 400 msg/s",
            "\ndirect\n",
            "producerCount 2.0",
            "9.0, 1.0: 50.0 µs",
        ] {
            assert!(page.contains(expected), "{expected} is missing in {page}");
        }
        assert!(!page.contains("NaN") && !page.contains("://"), "{page}");
    }
}
