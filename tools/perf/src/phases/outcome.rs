//! What a phase did, and how it is told.

use crate::churn::lines::rate;
use crate::measure::Latency;
use crate::report::json as report;
use crate::run::Measured;
use serde_json::{Value, json};
use std::time::Duration;

/// A phase that is over.
pub struct Outcome {
    pub name: String,
    pub measured: Measured,
    pub depth_at_start: u64,
    pub depth_at_end: u64,
    /// What the broker said of the depth, with the time since the phase began.
    pub readings: Vec<(Duration, u64)>,
}

impl Outcome {
    fn per_second(&self, count: u64) -> f64 {
        if self.measured.seconds > 0.0 {
            count as f64 / self.measured.seconds
        } else {
            0.0
        }
    }

    /// The line at the end of the phase.
    pub fn line(&self, id: &str) -> String {
        let all = &self.measured.all;
        let reasons: Vec<&str> = self
            .measured
            .reasons
            .iter()
            .map(|(reason, _)| reason.as_str())
            .collect();
        let mut line = format!(
            "id: {id}, phase {} ended after {:.3} s at depth {} ({}): sent {} msg/s, received {} msg/s",
            self.name,
            self.measured.seconds,
            self.depth_at_end,
            self.measured
                .cut_short
                .clone()
                .unwrap_or_else(|| reasons.join(", ")),
            rate(self.per_second(all.published)),
            rate(self.per_second(all.consumed)),
        );
        let latency = Latency::of(&all.latency);
        if latency.count > 0 {
            let [min, p50, p99] =
                [latency.min, latency.p50, latency.p99].map(|ns| ns.saturating_add(500) / 1_000);
            line += &format!(", min/median/99th consumer latency: {min}/{p50}/{p99} µs");
        }
        line
    }

    fn json(&self) -> Value {
        let (all, latency) = (&self.measured.all, &self.measured.all.latency);
        let thousandths = |number: f64| (number * 1_000.0).round() / 1_000.0;
        let depth: Vec<Value> = self
            .readings
            .iter()
            .map(|(at, depth)| json!({"at_s": thousandths(at.as_secs_f64()), "depth": depth}))
            .collect();
        json!({
            "name": self.name, "seconds": thousandths(self.measured.seconds),
            "published": all.published, "consumed": all.consumed,
            "publish_rate": thousandths(self.per_second(all.published)),
            "consume_rate": thousandths(self.per_second(all.consumed)),
            "latency": report::latency(latency), "confirm_latency": report::latency(&all.confirm_latency),
            "depth_at_start": self.depth_at_start, "depth_at_end": self.depth_at_end, "depth": depth,
        })
    }
}

/// The part `phases` of the JSON.
pub fn json(outcomes: &[Outcome]) -> Value {
    outcomes.iter().map(Outcome::json).collect()
}

/// The table at the end.
pub fn table(outcomes: &[Outcome]) -> Vec<String> {
    let width = outcomes
        .iter()
        .map(|outcome| outcome.name.chars().count())
        .max()
        .unwrap_or(0)
        .max(5);
    let heads = [
        "seconds",
        "sent",
        "received",
        "sent/s",
        "received/s",
        "p50 ms",
        "p99 ms",
        "depth",
    ];
    let mut lines = vec![format!("{:<width$}", "phase")];
    lines.extend(outcomes.iter().map(|outcome| format!("{:<width$}", outcome.name)));
    for (at, head) in heads.iter().enumerate() {
        lines[0] += &format!("{head:>12}");
        for (line, outcome) in lines[1..].iter_mut().zip(outcomes) {
            *line += &format!("{:>12}", cell(outcome, at));
        }
    }
    lines
}

fn cell(outcome: &Outcome, column: usize) -> String {
    let all = &outcome.measured.all;
    let latency = |choose: fn(&Latency) -> u64| {
        let latency = Latency::of(&all.latency);
        if latency.count == 0 {
            "-".to_owned()
        } else {
            format!("{:.3}", choose(&latency) as f64 / 1e6)
        }
    };
    match column {
        0 => format!("{:.3}", outcome.measured.seconds),
        1 => all.published.to_string(),
        2 => all.consumed.to_string(),
        3 => rate(outcome.per_second(all.published)),
        4 => rate(outcome.per_second(all.consumed)),
        5 => latency(|latency| latency.p50),
        6 => latency(|latency| latency.p99),
        _ => outcome.depth_at_end.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Recorder;

    fn outcome() -> Outcome {
        let mut all = Recorder::new();
        (all.published, all.consumed) = (1_000, 500);
        all.latency_n(2_000_000, 500);
        let reasons = vec![("Reached depth 500".to_owned(), 1)];
        let measured = Measured {
            all,
            seconds: 2.0,
            reasons,
            cut_short: None,
            verdict: None,
            signal: None,
        };
        let readings = vec![(Duration::ZERO, 0), (Duration::from_millis(1_500), 400)];
        Outcome {
            name: "fill".into(),
            measured,
            depth_at_start: 0,
            depth_at_end: 500,
            readings,
        }
    }

    #[test]
    fn a_phase_is_told_with_rates_latencies_and_depth() {
        assert_eq!(
            outcome().line("p"),
            "id: p, phase fill ended after 2.000 s at depth 500 (Reached depth 500): sent 500 msg/s, \
             received 250 msg/s, min/median/99th consumer latency: 2000/2000/2000 µs"
        );
        let table = table(&[outcome()]);
        assert_eq!(table[0].len(), table[1].len());
        let cells: Vec<&str> = table[1].split_whitespace().collect();
        assert_eq!(
            cells,
            [
                "fill", "2.000", "1000", "500", "500", "250", "2.000", "2.000", "500"
            ]
        );
    }

    #[test]
    fn the_json_has_the_depth_over_time() {
        let json = json(&[outcome()]);
        assert_eq!(
            (&json[0]["name"], &json[0]["publish_rate"]),
            (&"fill".into(), &500.0.into())
        );
        assert_eq!(json[0]["depth"][1]["at_s"], 1.5);
        assert_eq!(
            (&json[0]["depth_at_end"], &json[0]["latency"]["count"]),
            (&500.into(), &500.into())
        );
    }
}
