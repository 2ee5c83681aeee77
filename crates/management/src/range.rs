//! Which samples a request asks for: `lengths_age` and `lengths_incr`, and so on for each kind of number.

use crate::history::{History, SLOT_S, Slot, difference};
use crate::query::Query;
use serde_json::{Map, Value, json};

/// So many samples are shown of a number at most.
const SAMPLES: u64 = 5_000;

/// A kind of number, as requests name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// How many messages lie in queues.
    Lengths,
    /// What happened to messages.
    Messages,
    /// Bytes of connections.
    Bytes,
    /// Numbers of the node.
    Node,
}

/// The samples that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    /// Between two of them, in slots.
    step: Slot,
    /// How many of them.
    count: u64,
}

/// What a request asks for of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ranges {
    lengths: Option<Range>,
    messages: Option<Range>,
    bytes: Option<Range>,
    node: Option<Range>,
}

impl Ranges {
    /// Of a request. An age without a step, or the other way round, asks for nothing, as in RabbitMQ.
    pub fn of(query: &Query) -> Self {
        let range = |kind: &str| {
            let number = |what: &str| query.get(&format!("{kind}_{what}"))?.parse::<u64>().ok();
            let (age, step) = (number("age")?, number("incr")?);
            let step = (step / SLOT_S).max(1);
            Some(Range {
                step,
                count: (age / SLOT_S / step + 1).min(SAMPLES),
            })
        };
        Self {
            lengths: range("lengths"),
            messages: range("msg_rates"),
            bytes: range("data_rates"),
            node: range("node_stats"),
        }
    }

    fn get(&self, kind: Kind) -> Option<Range> {
        match kind {
            Kind::Lengths => self.lengths,
            Kind::Messages => self.messages,
            Kind::Bytes => self.bytes,
            Kind::Node => self.node,
        }
    }
}

/// An object's samples, and which of them are shown with its numbers.
#[derive(Clone, Copy, Debug)]
pub struct Rates<'a> {
    /// What there is.
    pub history: Option<&'a History>,
    /// The slot that was sampled last.
    pub now: Slot,
    /// What the request asks for.
    pub ranges: Ranges,
}

impl Rates<'_> {
    /// Adds a number and, as RabbitMQ does, `NAME_details` about how it changed. `places` are those in the history that it is
    /// the sum of.
    pub fn put(&self, map: &mut Map<String, Value>, kind: Kind, name: &str, value: u64, places: &[usize]) {
        map.insert(name.into(), value.into());
        map.insert(format!("{name}_details"), self.details(kind, places));
    }

    fn details(&self, kind: Kind, places: &[usize]) -> Value {
        let at = |slot| self.history.map_or(0, |history| history.at(slot, places));
        let Some(range) = self.ranges.get(kind) else {
            let rate = self.history.map_or(0.0, |history| history.rate(self.now, places));
            return json!({ "rate": rate });
        };
        // Samples stand at multiples of their distance, the latest first.
        let last = self.now - self.now % range.step;
        let slots = (0..range.count).map(|back| last.saturating_sub(back * range.step));
        let samples: Vec<(Slot, u64)> = slots.map(|slot| (slot, at(slot))).collect();
        let per_second = |(late, later): (Slot, u64), (early, earlier): (Slot, u64)| match late - early {
            0 => 0.0,
            slots => difference(later, earlier) / (slots * SLOT_S) as f64,
        };
        let (first, last) = (samples[samples.len() - 1], samples[0]);
        let rate = samples.get(1).map_or(0.0, |before| per_second(last, *before));
        let sum: u128 = samples.iter().map(|(_, value)| u128::from(*value)).sum();
        let shown = samples.iter();
        json!({
            "rate": rate,
            "avg_rate": per_second(last, first),
            "avg": sum as f64 / samples.len() as f64,
            "samples": shown
                .map(|(slot, value)| json!({"sample": value, "timestamp": slot * SLOT_S * 1000}))
                .collect::<Value>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_rates_and_averages_are_rabbitmqs() {
        let mut history = History::new(1_000, &[0]);
        history.push(1_000, &[20], 120);
        let ranges = Ranges::of(&Query::parse("msg_rates_age=60&msg_rates_incr=5&lengths_age=60"));
        let rates = Rates {
            history: Some(&history),
            now: 1_000,
            ranges,
        };
        let details = rates.details(Kind::Messages, &[0]);
        assert_eq!(details["rate"], 4.0);
        assert_eq!(details["avg_rate"], 20.0 / 60.0);
        assert_eq!(details["avg"], 20.0 / 13.0);
        let samples = details["samples"].as_array().unwrap();
        assert_eq!(samples.len(), 13);
        assert_eq!(samples[0], json!({"sample": 20, "timestamp": 5_000_000}));
        assert_eq!(samples[12], json!({"sample": 0, "timestamp": 4_940_000}));
        assert_eq!(rates.details(Kind::Lengths, &[0]), json!({"rate": 4.0}));
    }

    #[test]
    fn a_request_for_a_million_samples_gets_a_bounded_number() {
        let ranges = Ranges::of(&Query::parse("lengths_age=99999999999&lengths_incr=1"));
        let rates = Rates {
            history: None,
            now: 3,
            ranges,
        };
        let details = rates.details(Kind::Lengths, &[0]);
        assert_eq!(details["samples"].as_array().unwrap().len(), SAMPLES as usize);
        assert_eq!(details["rate"], 0.0);
    }
}
