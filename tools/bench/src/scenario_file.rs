//! The file of scenarios, and the points that its sweeps expand to. The head of `scenarios.toml` explains its keys.

use crate::flags::{self, Value, Values};
use crate::results::{PlotKind, Point};
use crate::scenario::{Level, STREAM_PERF, Scenario, VISIT};
use serde::Deserialize;

/// Where the file says nothing, in seconds.
const SECONDS: f64 = 4.0;
const WARMUP: f64 = 1.0;
const TIMEOUT: f64 = 90.0;
const FILL_SECONDS: f64 = 10.0;

/// The scenarios that come with the program.
pub const EMBEDDED: &str = include_str!("../scenarios.toml");

/// A file of scenarios.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioFile {
    #[serde(default)]
    scenario: Vec<ScenarioEntry>,
}

/// `[[scenario]]`, as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ScenarioEntry {
    name: String,
    title: String,
    /// The name, if nothing is said.
    group: Option<String>,
    fill: Option<String>,
    fill_seconds: Option<f64>,
    flags: String,
    seconds: Option<f64>,
    warmup: Option<f64>,
    timeout: Option<f64>,
    rounds: Option<u32>,
    #[serde(default = "full")]
    level: Level,
    plot: Option<PlotKind>,
    /// The run ends by itself; no `--time` is added.
    #[serde(default)]
    ends_itself: bool,
    sweep: Option<Sweep>,
    /// Where it stands on its group's axis, for a scenario that is a point by itself.
    point: Option<Point>,
}

/// `[scenario.sweep]`: a point for each value.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sweep {
    /// What `{x}` takes.
    values: Vec<f64>,
    /// Added to the flags with the value behind it, where `{x}` stands nowhere.
    flag: Option<String>,
    label: String,
    #[serde(default)]
    unit: String,
    /// Values that are run at another level than the scenario.
    #[serde(default)]
    smoke: Vec<f64>,
    #[serde(default)]
    long: Vec<f64>,
    /// Which line of the plot the points are, where several scenarios share a group.
    line: Option<String>,
    /// One line of the plot for each of a second placeholder's values.
    series: Option<Series>,
}

/// `series = { name = "rate", values = [10000], label = "{rate}/s" }`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Series {
    name: String,
    values: Vec<SeriesValue>,
    label: String,
    #[serde(default)]
    long: Vec<SeriesValue>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum SeriesValue {
    Number(f64),
    Text(String),
}

impl From<&SeriesValue> for Value {
    fn from(value: &SeriesValue) -> Self {
        match value {
            SeriesValue::Number(number) => Self::Number(*number),
            SeriesValue::Text(text) => Self::Text(text.clone()),
        }
    }
}

fn full() -> Level {
    Level::Full
}

/// Reads a file of scenarios and expands its sweeps.
///
/// # Errors
/// What is wrong, with the scenario's name or the line.
pub fn read(text: &str) -> Result<Vec<Scenario>, String> {
    let file: ScenarioFile = toml::from_str(text).map_err(|e| e.to_string())?;
    let mut scenarios: Vec<Scenario> = Vec::new();
    for entry in &file.scenario {
        let expanded = entry
            .expand()
            .map_err(|e| format!("scenario {}: {e}", entry.name))?;
        for scenario in expanded {
            if scenarios.iter().any(|other| other.name == scenario.name) {
                return Err(format!("two scenarios are named {}", scenario.name));
            }
            scenarios.push(scenario);
        }
    }
    if scenarios.is_empty() {
        return Err("there is no [[scenario]] in it".to_owned());
    }
    Ok(scenarios)
}

impl ScenarioEntry {
    fn expand(&self) -> Result<Vec<Scenario>, String> {
        self.check()?;
        let Some(sweep) = &self.sweep else {
            return Ok(vec![self.scenario(
                &self.name,
                &self.title,
                self.level,
                self.point.clone(),
                &Values::new(),
            )?]);
        };
        let lines: Vec<Option<&SeriesValue>> = match &sweep.series {
            None => vec![None],
            Some(series) => series.values.iter().map(Some).collect(),
        };
        let mut scenarios = Vec::new();
        for line in lines {
            for &x in &sweep.values {
                scenarios.push(self.point(sweep, line, x)?);
            }
        }
        Ok(scenarios)
    }

    fn check(&self) -> Result<(), String> {
        let positive = |value: Option<f64>| value.is_none_or(|v| v.is_finite() && v > 0.0);
        let natural = |value: Option<f64>| value.is_none_or(|v| v.is_finite() && v >= 0.0);
        if !positive(self.seconds) || !natural(self.warmup) || !natural(self.timeout) {
            return Err("seconds must be above 0, warmup and timeout 0 or more".to_owned());
        }
        if !natural(self.fill_seconds) {
            return Err("fill-seconds must be 0 or more".to_owned());
        }
        if self.rounds == Some(0) {
            return Err("rounds must be 1 or more".to_owned());
        }
        if self.sweep.is_some() && self.point.is_some() {
            return Err("a sweep makes its points itself; take one of the two away".to_owned());
        }
        Ok(())
    }

    fn point(&self, sweep: &Sweep, line: Option<&SeriesValue>, x: f64) -> Result<Scenario, String> {
        let mut values = Values::from([("x".to_owned(), Value::Number(x))]);
        let mut name = format!("{}@{}", self.name, Value::Number(x).shown());
        let mut series_label = sweep.line.clone().unwrap_or_default();
        let mut level = self.level;
        if sweep.smoke.contains(&x) {
            level = Level::Smoke;
        }
        if sweep.long.contains(&x) {
            level = Level::Long;
        }
        if let (Some(series), Some(value)) = (&sweep.series, line) {
            values.insert(series.name.clone(), value.into());
            name = format!(
                "{}/{}@{}",
                self.name,
                Value::from(value).shown(),
                Value::Number(x).shown()
            );
            series_label = flags::fill(&series.label, &values, &[])?;
            if series.long.contains(value) {
                level = Level::Long;
            }
        }
        let line_shown = if sweep.series.is_some() {
            series_label.as_str()
        } else {
            ""
        };
        let title = format!("{}: {}", self.title, point_title(sweep, line_shown, x));
        let point = Point {
            series: series_label,
            x,
            x_label: sweep.label.clone(),
            x_unit: sweep.unit.clone(),
        };
        let mut scenario = self.scenario(&name, &title, level, Some(point), &values)?;
        if let Some(flag) = &sweep.flag {
            scenario.flags.extend([flag.clone(), Value::Number(x).shown()]);
        }
        Ok(scenario)
    }

    fn scenario(
        &self,
        name: &str,
        title: &str,
        level: Level,
        point: Option<Point>,
        values: &Values,
    ) -> Result<Scenario, String> {
        let words = |line: &str| flags::words(&flags::fill(line, values, &[VISIT])?);
        let flags = words(&self.flags)?;
        let fill = self.fill.as_deref().map(words).transpose()?.unwrap_or_default();
        let of_streams = |words: &[String]| words.first().is_some_and(|word| word == STREAM_PERF);
        // Nothing would be left of what another load fills: it takes its queues with it.
        if self.fill.is_some() && !(of_streams(&fill) && of_streams(&flags)) {
            return Err(format!("fill and flags must both begin with {STREAM_PERF}"));
        }
        Ok(Scenario {
            name: name.to_owned(),
            title: title.to_owned(),
            group: self.group.clone().unwrap_or_else(|| self.name.clone()),
            fill_seconds: match fill.is_empty() {
                true => 0.0,
                false => self.fill_seconds.unwrap_or(FILL_SECONDS),
            },
            fill,
            flags,
            seconds: self.seconds.unwrap_or(SECONDS),
            warmup: self.warmup.unwrap_or(WARMUP),
            timeout: self.timeout.unwrap_or(TIMEOUT),
            rounds: self.rounds.unwrap_or(1),
            level,
            plot: self.plot,
            ends_itself: self.ends_itself,
            point,
        })
    }
}

/// `5 consumers, 10,000/s`.
fn point_title(sweep: &Sweep, series: &str, x: f64) -> String {
    let x = Value::Number(x).shown();
    let mut title = if sweep.unit.is_empty() {
        format!("{} {x}", sweep.label)
    } else {
        format!("{} {x} {}", sweep.label, sweep.unit)
    };
    if !series.is_empty() {
        title = format!("{series}, {title}");
    }
    title
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWEPT: &str = r#"
        [[scenario]]
        name = "S"
        title = "Consumers"
        group = "G"
        flags = "-y {x} -r {rate/x} --queue q-{visit}"
        plot = "latency-bars"
        [scenario.sweep]
        values = [1, 5, 500]
        long = [500]
        label = "consumers"
        series = { name = "rate", values = [1000, 2000], label = "{rate}/s", long = [2000] }
    "#;

    #[test]
    fn a_sweep_becomes_a_scenario_for_each_value_and_line() {
        let scenarios = read(SWEPT).unwrap();
        let names: Vec<&str> = scenarios.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "S/1000@1",
                "S/1000@5",
                "S/1000@500",
                "S/2000@1",
                "S/2000@5",
                "S/2000@500"
            ]
        );
        let second = &scenarios[1];
        assert_eq!(second.flags, ["-y", "5", "-r", "200", "--queue", "q-{visit}"]);
        assert_eq!(second.title, "Consumers: 1000/s, consumers 5");
        let point = second.point.as_ref().unwrap();
        assert_eq!((point.series.as_str(), point.x), ("1000/s", 5.0));
        let levels: Vec<Level> = scenarios.iter().map(|s| s.level).collect();
        assert_eq!(levels[..3], [Level::Full, Level::Full, Level::Long]);
        assert_eq!(levels[3..], [Level::Long; 3]);
    }

    #[test]
    fn a_flag_without_a_placeholder_is_added_with_its_value() {
        let text = r#"
            [[scenario]]
            name = "R"
            title = "Rates"
            flags = "-x 1"
            sweep = { flag = "--rate", values = [100, 1000], smoke = [1000], label = "rate", unit = "msg/s" }
        "#;
        let scenarios = read(text).unwrap();
        assert_eq!(scenarios[1].flags, ["-x", "1", "--rate", "1000"]);
        assert_eq!(scenarios[1].level, Level::Smoke);
        assert_eq!(scenarios[1].title, "Rates: rate 1000 msg/s");
        assert_eq!(scenarios[1].group, "R");
    }

    fn embedded() -> Vec<Scenario> {
        read(EMBEDDED).unwrap()
    }

    fn has(scenario: &Scenario, word: &str) -> bool {
        scenario.flags.iter().any(|w| w == word)
    }

    #[test]
    fn embedded_scenarios_with_durable_queues_find_nothing_from_an_earlier_visit() {
        let loads = embedded().into_iter().filter(|s| !has(s, "churn"));
        for scenario in loads.filter(Scenario::is_durable) {
            let named = scenario.flags.iter().any(|word| word.contains("{visit}"));
            assert!(
                named,
                "{} has durable queues without {{visit}} in their names",
                scenario.name
            );
        }
    }

    #[test]
    fn embedded_scenarios_without_consumers_name_the_queue_that_takes_their_messages() {
        for scenario in embedded() {
            let consumers = scenario.flags.iter().position(|word| word == "--consumers");
            if consumers.is_some_and(|i| scenario.flags[i + 1] == "0") {
                let named = ["--queue", "--queue-pattern", "--streams"].map(|word| has(&scenario, word));
                assert!(named.contains(&true), "{}", scenario.name);
            }
        }
    }

    #[test]
    fn embedded_scenarios_leave_time_and_cleaning_up_to_the_runner() {
        for scenario in embedded() {
            for ours in [
                "--time",
                "--uri",
                "--json",
                "--delete-queues",
                "--uris",
                "--delete-streams",
                "--interval",
                "--id",
            ] {
                let bounded = ours == "--time" && has(&scenario, "phases");
                assert!(bounded || !has(&scenario, ours), "{}: {ours}", scenario.name);
            }
            let ends = ["phases", "import", "--count", "--cmessages"]
                .iter()
                .any(|word| has(&scenario, word));
            assert_eq!(scenario.ends_itself, ends, "{}", scenario.name);
        }
    }

    #[test]
    fn embedded_scenarios_that_read_what_was_there_before_have_it_filled_into_the_same_stream() {
        let stream = |words: &[String]| {
            let at = words.iter().position(|word| word == "--streams");
            at.map(|at| words[at + 1].clone())
        };
        let readers: Vec<Scenario> = embedded().into_iter().filter(|s| has(s, "first")).collect();
        assert!(!readers.is_empty());
        for scenario in readers {
            assert!(stream(&scenario.fill).is_some(), "{}", scenario.name);
            assert_eq!(
                stream(&scenario.fill),
                stream(&scenario.flags),
                "{}",
                scenario.name
            );
            let bounded = scenario.fill.iter().any(|word| word == "--pmessages");
            assert!(bounded && scenario.fill_seconds > 0.0, "{}", scenario.name);
        }
    }

    #[test]
    fn mistakes_in_a_file_are_told_with_their_scenario() {
        let said = |body: &str| read(&format!("[[scenario]]\nname='A'\ntitle='t'\n{body}")).unwrap_err();
        assert!(said("flags='-x {y}'").contains("scenario A"));
        assert!(said("flags=\"-x 'open\"").contains("never closed"));
        assert!(said("flags=''\nseconds=0").contains("seconds"));
        assert!(said("flags=''\nrounds=0").contains("rounds"));
        assert!(said("flags='stream-perf'\nfill='-x 1'").contains("must both begin with stream-perf"));
        assert!(said("flags='-x 1'\nfill='stream-perf'").contains("must both begin with stream-perf"));
        assert!(said("flags=''\nfill-seconds=-1").contains("fill-seconds"));
        assert!(said("flags=''\nspeed=3").contains("speed"));
        assert!(said("flags=''\n[[scenario]]\nname='A'\ntitle='t'\nflags=''").contains("two scenarios"));
        assert!(read("").unwrap_err().contains("[[scenario]]"));
    }
}
