//! Tables for the terminal: what was found, and which scenarios there are.

use crate::report::verdict;
use crate::results::{Results, Run, ScenarioResult};
use crate::scenario::{Level, Scenario};
use crate::schedule;
use crate::statistics::Ratio;
use charts::shown::{self, NONE};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use std::time::Duration;

/// What was found: a row for each scenario and target.
pub fn found(results: &Results) -> String {
    let compared = results.targets.len() > 1;
    let mut header = vec![
        "Scenario",
        "Target",
        "Messages/s",
        "p50",
        "p99",
        "CPU/msg",
        "RSS peak",
        "Load",
        "Stolen",
    ];
    if compared {
        header.extend(["Rate ×", "p99 ×", "CPU ×"]);
    }
    let mut table = empty_table(&header, 2);
    for scenario in results.scenarios.iter().filter(|s| !s.runs.is_empty()) {
        for (index, target) in results.targets.iter().enumerate() {
            let name = if index == 0 { scenario.name.as_str() } else { "" };
            let disturbed = !verdict::of_row(scenario, index).is_empty();
            let mark = if disturbed { " (disturbed)" } else { "" };
            let mut row = vec![name.to_owned(), format!("{}{mark}", target.name)];
            row.extend(figures(scenario, index));
            if compared {
                row.extend(ratios(scenario, index));
            }
            table.add_row(row);
        }
    }
    let mut text = format!(
        "{table}\nLoad is what the load generator used of a core: if it is all that it had, it was the limit.\n\
         Stolen is the processor time that the host of a virtual machine took.\n"
    );
    if verdict::is_doubtful(results) {
        text.push_str(&format!("Verdict: {}.\n", verdict::of_run(results)));
    }
    if compared {
        let first = results.targets.first().map_or(NONE, |t| t.name.as_str());
        text.push_str(&format!(
            "× is how many times {first}'s figure it is; for CPU with a 95 % interval if there are several rounds.\n"
        ));
    }
    text.push_str(&failures(results));
    text
}

/// Rate, p50, p99, CPU and memory of a target.
fn figures(scenario: &ScenarioResult, target: usize) -> Vec<String> {
    let median = |figure: fn(&Run) -> Option<f64>| scenario.median(target, figure);
    vec![
        shown::or_none(median(Run::rate).map(shown::number)),
        shown::or_none(median(|run| run.main_latency().map(|l| l.p50)).map(shown::time_us)),
        shown::or_none(median(|run| run.main_latency().map(|l| l.p99)).map(shown::time_us)),
        shown::or_none(median(|run| run.cpu_us_per_message).map(shown::time_us)),
        shown::or_none(
            median(|run| run.rss_peak_bytes.map(|b| b as f64)).map(|b| shown::megabytes(b as u64)),
        ),
        shown::or_none(median(|run| run.load_cpu_percent).map(|percent| format!("{percent:.0} %"))),
        shown::or_none(median(|run| run.stolen_percent).map(shown::percent)),
    ]
}

fn ratios(scenario: &ScenarioResult, target: usize) -> Vec<String> {
    if target == 0 {
        return vec![String::new(); 3];
    }
    let ratio = |figure: fn(&Run) -> Option<f64>| scenario.ratio(0, target, figure);
    let middle = |ratio: Option<Ratio>| shown::or_none(ratio.map(|r| shown::number(r.median)));
    // The report has all intervals; a terminal has room for the one that matters most.
    vec![
        middle(ratio(Run::rate)),
        middle(ratio(|run| run.main_latency().map(|l| l.p99))),
        shown::or_none(ratio(|run| run.cpu_us_per_message).map(with_interval)),
    ]
}

fn with_interval(ratio: Ratio) -> String {
    let median = shown::number(ratio.median);
    if ratio.low == ratio.high {
        return median;
    }
    format!(
        "{median} [{}–{}]",
        shown::number(ratio.low),
        shown::number(ratio.high)
    )
}

/// A line for each reason that visits failed or were skipped for.
fn failures(results: &Results) -> String {
    let mut lines: Vec<(String, u32)> = Vec::new();
    for scenario in &results.scenarios {
        for run in &scenario.runs {
            let Some((trouble, reason)) = run.outcome.trouble() else {
                continue;
            };
            let target = results.targets.get(run.target).map_or(NONE, |t| t.name.as_str());
            let line = format!("{trouble}: {}, {target}: {reason}", scenario.name);
            match lines.iter_mut().find(|(known, _)| *known == line) {
                Some((_, times)) => *times += 1,
                None => lines.push((line, 1)),
            }
        }
    }
    let mut text = String::new();
    for (line, times) in lines {
        let often = if times > 1 {
            format!(" ({times} times)")
        } else {
            String::new()
        };
        text.push_str(&format!("{line}{often}\n"));
    }
    text
}

/// The scenarios that there are, a row for each sweep.
pub fn list(scenarios: &[Scenario], rounds: u32) -> String {
    let mut table = empty_table(
        &["Scenario", "Level", "Points", "Rounds", "Time a target", "What"],
        2,
    );
    let mut rest = scenarios;
    while let Some(first) = rest.first() {
        let sweep = sweep_name(first);
        let points = rest.iter().take_while(|s| sweep_name(s) == sweep).count();
        let (these, others) = rest.split_at(points);
        rest = others;
        let level = |level| these.iter().filter(move |s| s.level == level);
        for (level, shown) in [
            (Level::Smoke, "smoke"),
            (Level::Full, "full"),
            (Level::Long, "long"),
        ]
        .map(|(l, s)| (level(l), s))
        {
            let points: Vec<&Scenario> = level.collect();
            let Some(point) = points.first() else {
                continue;
            };
            let time: Duration = points
                .iter()
                .map(|s| schedule::duration(s) * s.rounds_of(rounds))
                .sum();
            let title = if point.point.is_some() {
                point.title.split(':').next().unwrap_or_default()
            } else {
                &point.title
            };
            table.add_row([
                sweep.to_owned(),
                shown.to_owned(),
                points.len().to_string(),
                point.rounds_of(rounds).to_string(),
                schedule::shown(time),
                title.to_owned(),
            ]);
        }
    }
    format!("{table}\n")
}

/// `S000-CONS` of `S000-CONS/10000@5`.
fn sweep_name(scenario: &Scenario) -> &str {
    scenario.name.split(['@', '/']).next().unwrap_or(&scenario.name)
}

/// A table whose columns after the first `left` hold numbers.
fn empty_table(header: &[&str], left: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header(header.to_vec());
    for (index, column) in table.column_iter_mut().enumerate() {
        if index >= left && header.get(index) != Some(&"What") {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Latency, Target};
    use crate::scenario::DEFAULT_ROUNDS;
    use crate::scenario_file::{self, EMBEDDED};
    use crate::store::tests::results;

    #[test]
    fn targets_are_compared_with_the_first() {
        let mut results = results();
        results.targets.push(Target {
            name: "b".to_owned(),
            ..Target::default()
        });
        let run = |target, round, cpu, p99| Run {
            consume_rate: 8_554_002.0,
            cpu_us_per_message: Some(cpu),
            latency: Some(Latency {
                count: 1,
                p50: 90.0,
                p99,
                ..Latency::default()
            }),
            rss_peak_bytes: Some(9_000_000),
            load_cpu_percent: Some(97.4),
            ..Run::empty(target, round)
        };
        results.scenarios[0].runs = vec![
            run(0, 0, 0.14, 1_000.0),
            run(1, 0, 14.0, 3_000.0),
            Run::failed(1, 1, "gone"),
            Run::failed(1, 2, "gone"),
        ];
        let text = found(&results);
        for expected in [
            "8,554,002",
            "0.14 µs",
            "90.0 µs",
            "1.00 ms",
            "9.00 MB",
            " 100 ",
            " 3.00 ",
        ] {
            assert!(text.contains(expected), "{expected} is missing in\n{text}");
        }
        assert!(text.contains("failed: T1, b: gone (2 times)"), "{text}");
    }

    #[test]
    fn one_target_alone_is_compared_with_nobody() {
        let mut results = results();
        results.scenarios[0].runs = vec![Run::empty(0, 0)];
        assert!(!found(&results).contains('×'));
    }

    #[test]
    fn every_sweep_has_a_row_for_each_of_its_levels() {
        let text = list(&scenario_file::read(EMBEDDED).unwrap(), DEFAULT_ROUNDS);
        let rows = |name: &str| text.lines().filter(|l| l.contains(&format!("│ {name} "))).count();
        assert_eq!((rows("T1"), rows("S000-CONS"), rows("S002-4-LONG")), (1, 2, 1));
    }
}
