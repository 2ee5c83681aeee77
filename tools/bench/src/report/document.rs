//! What the report says, in order, before it becomes HTML or Markdown.

use super::conditions;
use super::confirm_window::ConfirmWindow;
use super::details;
use super::over_time;
use super::percentiles;
use super::summary;
use super::sweep::Sweep;
use super::table::{self, Table};
use crate::flags;
use crate::results::{PlotKind, Results, ScenarioResult};
use crate::scenario::STREAM_PERF;
use charts::drawing::Drawing;
use std::collections::BTreeSet;

/// A report.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub title: String,
    /// The conditions: a name and a text each.
    pub facts: Vec<(String, String)>,
    /// The targets' names.
    pub targets: Vec<String>,
    pub sections: Vec<Section>,
}

/// A part of the report.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    pub title: String,
    pub blocks: Vec<Block>,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    Text(String),
    List(Vec<String>),
    Table(Table),
    /// A table that few want to see.
    Folded(String, Table),
    Drawing(Drawing),
    /// Command lines, each behind a name.
    Commands(Vec<(String, String)>),
}

impl Document {
    pub fn of(results: &Results) -> Self {
        let groups = grouped(results);
        let mut sections = vec![summary_section(results, &groups)];
        sections.extend(details::failures(results).map(|table| Section {
            title: "Visits without figures".to_owned(),
            blocks: vec![Block::Table(table)],
        }));
        sections.extend(
            groups
                .iter()
                .filter_map(|(name, scenarios)| group_section(results, name, scenarios)),
        );
        sections.push(method_section(results));
        sections.push(command_section(results));
        tell_apart(&mut sections);
        Self {
            title: results.title.clone(),
            facts: conditions::facts(results),
            targets: results.targets.iter().map(|t| t.name.clone()).collect(),
            sections,
        }
    }

    /// All drawings, in order.
    pub fn drawings(&self) -> impl Iterator<Item = &Drawing> {
        let blocks = self.sections.iter().flat_map(|s| &s.blocks);
        blocks.filter_map(|block| match block {
            Block::Drawing(drawing) => Some(drawing),
            _ => None,
        })
    }
}

/// Gives drawings whose names became the same a number, as names are files: `A/B` and `A-B` are both `a-b`.
fn tell_apart(sections: &mut [Section]) {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for block in sections.iter_mut().flat_map(|s| &mut s.blocks) {
        if let Block::Drawing(drawing) = block {
            let name = drawing.name.clone();
            let mut number = 2;
            while !taken.insert(drawing.name.clone()) {
                drawing.name = format!("{name}-{number}");
                number += 1;
            }
        }
    }
}

type Group<'a> = (&'a str, Vec<&'a ScenarioResult>);

/// The scenarios by group, in the order in which they come up.
fn grouped(results: &Results) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for scenario in &results.scenarios {
        match groups.iter_mut().find(|(name, _)| *name == scenario.group) {
            Some((_, scenarios)) => scenarios.push(scenario),
            None => groups.push((&scenario.group, vec![scenario])),
        }
    }
    groups
}

fn summary_section(results: &Results, groups: &[Group<'_>]) -> Section {
    let single: Vec<&ScenarioResult> = results.scenarios.iter().filter(|s| s.point.is_none()).collect();
    let sweeps: Vec<Group<'_>> = groups
        .iter()
        .map(|(name, all)| {
            let points = all.iter().copied().filter(|s| s.point.is_some());
            (*name, points.collect::<Vec<_>>())
        })
        .filter(|(_, points)| !points.is_empty())
        .collect();
    let mut blocks = Vec::new();
    let sentences = summary::sentences(results);
    if let Some(first) = results.targets.first().filter(|_| !sentences.is_empty()) {
        blocks.push(Block::Text(format!(
            "Each target is compared with the first, {}. Figures are medians over the rounds, with the least and the \
             greatest in brackets; ratios (×) are medians over pairs of rounds, with a bootstrap 95 % interval. Where the \
             interval includes 1, no difference is shown.",
            first.name
        )));
        blocks.push(Block::List(sentences));
    }
    blocks.extend(summary::costs(results, &single).into_iter().map(Block::Drawing));
    blocks.extend(summary::rates(results, &single).into_iter().map(Block::Drawing));
    if !single.is_empty() {
        blocks.push(Block::Table(table::figures(results, &single)));
        blocks.extend(table::further(results, &single).map(Block::Table));
        blocks.push(Block::Folded(
            "Each round".to_owned(),
            details::rounds(results, &single),
        ));
    }
    blocks.extend(summary::sweeps(results, &sweeps).map(Block::Table));
    Section {
        title: "Summary".to_owned(),
        blocks,
    }
}

/// None where the summary has said all that there is to say.
fn group_section(results: &Results, group: &str, all: &[&ScenarioResult]) -> Option<Section> {
    let points: Vec<&ScenarioResult> = all.iter().copied().filter(|s| s.point.is_some()).collect();
    let is = |kind| move |s: &&ScenarioResult| s.plot == Some(kind);
    let mut blocks = Vec::new();
    if let Some(windows) = ConfirmWindow::of(results, group, all) {
        blocks.extend(windows.drawing().map(Block::Drawing));
        blocks.extend(windows.table().map(Block::Table));
    } else if let Some(sweep) = Sweep::of(results, group, all) {
        blocks.extend(sweep.drawings().into_iter().map(Block::Drawing));
    }
    let operations: Vec<&ScenarioResult> = all
        .iter()
        .copied()
        .filter(|s| s.runs.iter().any(|r| r.churn.is_some()))
        .collect();
    blocks.extend(percentiles::of_operations(results, group, &operations).map(Block::Drawing));
    let single: Vec<&ScenarioResult> = all
        .iter()
        .copied()
        .filter(|s| s.point.is_none())
        .filter(is(PlotKind::LatencyBars))
        .collect();
    blocks.extend(percentiles::of_messages(results, group, &single).map(Block::Drawing));
    for scenario in all.iter().filter(|s| is_timed(s)) {
        blocks.extend(over_time::drawing(results, scenario).map(Block::Drawing));
    }
    blocks.extend(details::phases(results, all).map(Block::Table));
    blocks.extend(details::churn(results, &operations).map(Block::Table));
    if !points.is_empty() {
        blocks.push(Block::Table(table::figures(results, &points)));
        blocks.extend(table::further(results, &points).map(Block::Table));
        blocks.push(Block::Folded(
            "Each round".to_owned(),
            details::rounds(results, &points),
        ));
    }
    (!blocks.is_empty()).then(|| Section {
        title: section_title(group, all),
        blocks,
    })
}

fn is_timed(scenario: &ScenarioResult) -> bool {
    let timed = matches!(scenario.plot, Some(PlotKind::OverTime | PlotKind::Depth));
    scenario.point.is_none() && (timed || scenario.runs.iter().any(|r| !r.phases.is_empty()))
}

/// The group and what its scenarios have in common: of points, what stands before the colon.
fn section_title(group: &str, all: &[&ScenarioResult]) -> String {
    let mut titles: Vec<&str> = all
        .iter()
        .map(|s| match s.point {
            Some(_) => s.title.split(':').next().unwrap_or(&s.title),
            None => &s.title,
        })
        .collect();
    titles.dedup();
    match titles.as_slice() {
        [one] if !one.is_empty() => format!("{group}: {one}"),
        _ => group.to_owned(),
    }
}

fn method_section(results: &Results) -> Section {
    let mut lines = vec![
        "CPU per message is the broker’s user and system time over the measured window, divided by the messages of the \
         window. This figure applies to other machines too; where load and broker share a small machine, a rate \
         may say more about the load generator."
            .to_owned(),
        "Latencies are taken from the moment at which a message was due to be sent, so a broker that delays its publishers is \
         charged for it; “from sending” is PerfTest’s definition."
            .to_owned(),
        "“p99, worst interval” is the greatest p99 of any single interval: what older articles call Max 99th. All figures of a row are of the same messages: those of the \
         measured window.".to_owned(),
        "Targets are visited in turn within each scenario, every second round in reverse order, so that what slows the \
         machine down affects all of them."
            .to_owned(),
        "– means that there is no figure; the reason is below the table. “disturbed” marks rows during which the host of a \
         virtual machine took more than 5 % of the processors’ time, or other programs more than 10 %."
            .to_owned(),
    ];
    if results.rounds < 3 {
        lines.push(
            "With fewer than three rounds, intervals mean little: use the ratios for a first look only."
                .to_owned(),
        );
    }
    Section {
        title: "How to read it".to_owned(),
        blocks: vec![Block::List(lines)],
    }
}

fn command_section(results: &Results) -> Section {
    let mut commands = Vec::new();
    for scenario in &results.scenarios {
        let loads = [&scenario.fill, &scenario.flags];
        for words in loads.into_iter().filter(|words| !words.is_empty()) {
            commands.push((scenario.name.clone(), load(words)));
        }
    }
    Section {
        title: "How to run it again".to_owned(),
        blocks: vec![
            Block::Text("All of it (insert the passwords; add --all or --smoke if it was used):".to_owned()),
            Block::Commands(vec![(String::new(), rerun(results))]),
            Block::Text(
                "A single scenario; add --uri (--uris for stream-perf), and --json FILE for all its figures:"
                    .to_owned(),
            ),
            Block::Commands(commands),
        ],
    }
}

/// A load as a command line; its words are quoted already.
fn load(words: &[String]) -> String {
    let program = match words.first() {
        Some(first) if first == STREAM_PERF => "leveret",
        _ => "leveret perf",
    };
    format!("{program} {}", words.join(" "))
}

fn rerun(results: &Results) -> String {
    let mut words = vec!["leveret".to_owned(), "bench".to_owned()];
    for target in &results.targets {
        words.push("--target".to_owned());
        words.push(format!("{}={}", target.name, target.uri_shown));
    }
    let mut sweeps: Vec<&str> = Vec::new();
    for scenario in &results.scenarios {
        let name = scenario.name.split(['@', '/']).next().unwrap_or_default();
        if !sweeps.contains(&name) {
            sweeps.push(name);
        }
    }
    words.extend(["--rounds".to_owned(), results.rounds.to_string()]);
    words.extend(["--scenarios".to_owned(), sweeps.join(",")]);
    words
        .iter()
        .map(|w| flags::quoted(w))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::sample::results;
    use super::*;

    #[test]
    fn command_lines_can_be_pasted_into_a_shell() {
        let mut results = results();
        // The runner leaves them quoted.
        results.scenarios[0].flags = ["churn", "--background", "'--rate 1'"]
            .map(str::to_owned)
            .to_vec();
        let text = super::super::markdown(&results);
        assert!(
            text.contains("leveret perf churn --background '--rate 1'\n"),
            "{text}"
        );
        results.scenarios[0].fill = ["stream-perf", "--consumers", "0"].map(str::to_owned).to_vec();
        results.scenarios[0].flags = ["stream-perf", "--producers", "0"].map(str::to_owned).to_vec();
        let text = super::super::markdown(&results);
        let fill = text.find("leveret stream-perf --consumers 0\n");
        let load = text.find("leveret stream-perf --producers 0\n");
        assert!(fill.is_some() && fill < load, "{text}");
        let line = rerun(&results);
        assert!(
            line.starts_with("leveret bench --target 'leveret=amqp://guest:***@"),
            "{line}"
        );
        assert!(
            line.contains("--scenarios T1,T4,L1,S000-RATE,S000-CONS,"),
            "{line}"
        );
    }

    #[test]
    fn files_of_drawings_have_different_names() {
        let mut results = results();
        let mut twin = results.scenarios.last().cloned().unwrap();
        twin.name = "S004/DRAIN".to_owned();
        results.scenarios.push(twin);
        let document = Document::of(&results);
        let mut names: Vec<&str> = document.drawings().map(|d| d.name.as_str()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.contains(&"s004-drain-time-2"), "{names:?}");
    }
}
