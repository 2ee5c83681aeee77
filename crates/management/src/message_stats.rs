//! RabbitMQ's `message_stats`: how many messages there were of each kind, and how many a second.

use crate::range::{Kind, Rates};
use serde_json::{Map, Value};

/// What is told of publishers, and of consumers: if there was something of a sort, all of it is told.
const SORTS: [&[&str]; 3] = [
    &["publish", "confirm", "return_unroutable", "drop_unroutable"],
    &[
        "deliver",
        "deliver_no_ack",
        "get",
        "get_no_ack",
        "get_empty",
        "ack",
        "redeliver",
    ],
    &["publish_in", "publish_out"],
];

/// What `deliver_get` is the sum of.
const HANDED: [&str; 4] = ["deliver", "deliver_no_ack", "get", "get_no_ack"];

/// An object's `message_stats`; `None` if nothing happened. The counts stand in the history from place `base` on.
pub fn message_stats(rates: &Rates<'_>, counts: &[(&str, u64)], base: usize) -> Option<Value> {
    let find = |name: &str| counts.iter().position(|(known, _)| *known == name);
    let mut map = Map::new();
    for sort in SORTS {
        let known = || sort.iter().filter_map(|name| Some((*name, find(name)?)));
        if known().all(|(_, at)| counts[at].1 == 0) {
            continue;
        }
        for (name, at) in known() {
            rates.put(&mut map, Kind::Messages, name, counts[at].1, &[base + at]);
        }
        if sort.contains(&HANDED[0]) {
            let handed: Vec<usize> = HANDED.iter().filter_map(|name| find(name)).collect();
            let sum = handed.iter().map(|at| counts[*at].1).sum();
            let places: Vec<usize> = handed.iter().map(|at| base + at).collect();
            rates.put(&mut map, Kind::Messages, "deliver_get", sum, &places);
        }
    }
    (!map.is_empty()).then_some(Value::Object(map))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::Ranges;
    use serde_json::json;

    #[test]
    fn a_sort_of_which_nothing_happened_is_left_out() {
        let rates = Rates {
            history: None,
            now: 1,
            ranges: Ranges::default(),
        };
        let stats = |counts: &[(&str, u64)]| message_stats(&rates, counts, 0);
        assert_eq!(stats(&[("publish", 0), ("deliver", 0)]), None);
        let none = json!({"rate": 0.0});
        assert_eq!(
            stats(&[("publish", 0), ("deliver", 2), ("get", 1)]).unwrap(),
            json!({"deliver": 2, "deliver_details": none, "get": 1, "get_details": none, "deliver_get": 3, "deliver_get_details": none})
        );
    }
}
