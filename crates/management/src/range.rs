//! Which samples a request asks for: `lengths_age` and `lengths_incr`, and so on for each kind of number.

use crate::history::{History, SLOT_S, Slot, difference};
use crate::query::Query;
use serde_json::{Map, Value, json};

/// So many steps an age may have at most (RabbitMQ's limit).
const STEPS: i128 = 500;

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
    /// Between two of them, in seconds; not 0.
    step_s: u64,
    /// How many of them; one at least.
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
    /// Of a request. An age without a step, or the other way round, asks for nothing, as in RabbitMQ; so does what is no number.
    ///
    /// # Errors
    /// A range that RabbitMQ refuses, in its words: of nothing, or of too many samples.
    pub fn of(query: &Query) -> Result<Self, String> {
        Ok(Self {
            lengths: range(query, "lengths")?,
            messages: range(query, "msg_rates")?,
            bytes: range(query, "data_rates")?,
            node: range(query, "node_stats")?,
        })
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

fn range(query: &Query, kind: &str) -> Result<Option<Range>, String> {
    let number = |what: &str| query.get(&format!("{kind}_{what}"))?.parse::<i128>().ok();
    let (Some(age), Some(step)) = (number("age"), number("incr")) else {
        return Ok(None);
    };
    if age <= 0 || step <= 0 || age / step > STEPS {
        return Err(format!("Invalid range parameters: age {age}, incr {step}"));
    }
    Ok(Some(Range {
        step_s: u64::try_from(step).unwrap_or(u64::MAX),
        count: u64::try_from(age / step + 1).unwrap_or(1),
    }))
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
        map.insert(format!("{name}_details"), self.details(kind, value, places));
    }

    /// `value`: what the number is now. Without samples it has not changed for as long as they are kept.
    fn details(&self, kind: Kind, value: u64, places: &[usize]) -> Value {
        let at = |slot| self.history.map_or(value, |history| history.at(slot, places));
        let Some(range) = self.ranges.get(kind) else {
            let rate = self.history.map_or(0.0, |history| history.rate(self.now, places));
            return json!({ "rate": rate });
        };
        // Samples stand at multiples of their distance, the latest first.
        let now_s = self.now * SLOT_S;
        let last = now_s - now_s % range.step_s;
        let seconds = (0..range.count).map(|back| last.saturating_sub(back.saturating_mul(range.step_s)));
        let samples: Vec<(u64, u64)> = seconds.map(|second| (second, at(second / SLOT_S))).collect();
        let per_second = |(late, later): (u64, u64), (early, earlier): (u64, u64)| match late - early {
            0 => 0.0,
            seconds => difference(later, earlier) / seconds as f64,
        };
        let (first, last) = (samples[samples.len() - 1], samples[0]);
        let rate = match samples.get(1) {
            // Steps within a slot have the rate of the slot.
            _ if range.step_s < SLOT_S => self.history.map_or(0.0, |history| history.rate(self.now, places)),
            before => before.map_or(0.0, |before| per_second(last, *before)),
        };
        let sum: u128 = samples.iter().map(|(_, value)| u128::from(*value)).sum();
        let shown = samples.iter();
        json!({
            "rate": rate,
            "avg_rate": per_second(last, first),
            "avg": sum as f64 / samples.len() as f64,
            "samples": shown
                .map(|(second, value)| json!({"sample": value, "timestamp": second * 1000}))
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
        let ranges = Ranges::of(&Query::parse("msg_rates_age=60&msg_rates_incr=5&lengths_age=60")).unwrap();
        let rates = Rates {
            history: Some(&history),
            now: 1_000,
            ranges,
        };
        let details = rates.details(Kind::Messages, 20, &[0]);
        assert_eq!(details["rate"], 4.0);
        assert_eq!(details["avg_rate"], 20.0 / 60.0);
        assert_eq!(details["avg"], 20.0 / 13.0);
        let samples = details["samples"].as_array().unwrap();
        assert_eq!(samples.len(), 13);
        assert_eq!(samples[0], json!({"sample": 20, "timestamp": 5_000_000}));
        assert_eq!(samples[12], json!({"sample": 0, "timestamp": 4_940_000}));
        assert_eq!(rates.details(Kind::Lengths, 20, &[0]), json!({"rate": 4.0}));
    }

    #[test]
    fn a_number_without_samples_has_been_what_it_is() {
        let ranges = Ranges::of(&Query::parse("lengths_age=10&lengths_incr=5")).unwrap();
        let rates = Rates {
            history: None,
            now: 1_000,
            ranges,
        };
        let details = rates.details(Kind::Lengths, 900, &[0]);
        let samples = details["samples"].as_array().unwrap();
        assert!(samples.iter().all(|sample| sample["sample"] == 900), "{details}");
        assert_eq!((&details["rate"], &details["avg"]), (&json!(0.0), &json!(900.0)));
    }

    #[test]
    fn samples_stand_at_any_second_that_is_asked_for() {
        let mut history = History::new(1_000, &[0]);
        history.push(1_000, &[20], 120);
        let ranges = Ranges::of(&Query::parse("lengths_age=20&lengths_incr=3")).unwrap();
        let rates = Rates {
            history: Some(&history),
            now: 1_000,
            ranges,
        };
        let details = rates.details(Kind::Lengths, 20, &[0]);
        let samples = details["samples"].as_array().unwrap();
        let times: Vec<_> = samples
            .iter()
            .map(|sample| sample["timestamp"].as_u64().unwrap())
            .collect();
        assert_eq!(times.len(), 7);
        assert_eq!((times[0], times[6]), (4_998_000, 4_980_000));
        assert_eq!(details["rate"], 4.0);
    }

    #[test]
    fn ranges_of_nothing_and_of_too_many_samples_are_refused_in_rabbitmqs_words() {
        for (age, step) in [
            ("3600", "5"),
            ("60", "0"),
            ("-1", "5"),
            ("60", "-5"),
            ("501", "1"),
        ] {
            let query = Query::parse(&format!("msg_rates_age={age}&msg_rates_incr={step}"));
            let reason = format!("Invalid range parameters: age {age}, incr {step}");
            assert_eq!(Ranges::of(&query).unwrap_err(), reason);
        }
        for taken in [
            "lengths_age=500&lengths_incr=1",
            "lengths_age=60&lengths_incr=99999999999999999999999",
            "lengths_age=x&lengths_incr=0",
        ] {
            let ranges = Ranges::of(&Query::parse(taken)).unwrap();
            let rates = Rates {
                history: None,
                now: 3,
                ranges,
            };
            assert_eq!(rates.details(Kind::Lengths, 20, &[0])["rate"], 0.0, "{taken}");
        }
    }
}
