//! RabbitMQ's `message_stats`: how many messages there were of each kind, and how many a second.

use crate::range::{Kind, Rates};
use broker::stats::LossCounts;
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

/// What kinds of losses are told together, by what their names begin with.
const SUMS: [&str; 2] = ["dropped", "dead_lettered"];

/// The places of a kind of loss, or of those that are told together.
pub fn loss_places(name: &str) -> Vec<usize> {
    let is_sum = SUMS.contains(&name);
    let names = LossCounts::NAMES.iter().enumerate();
    let named = names.filter(|(_, known)| **known == name || (is_sum && known.starts_with(name)));
    named.map(|(at, _)| at).collect()
}

/// Adds what was lost to an object's `message_stats`, where RabbitMQ has no names for it: each kind of which there was
/// something, and sums.
pub fn add_losses(stats: &mut Option<Value>, rates: &Rates<'_>, counts: [u64; LossCounts::KINDS]) {
    if counts.iter().all(|count| *count == 0) {
        return;
    }
    let stats = stats.get_or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(map) = stats else { return };
    for name in SUMS.iter().chain(&LossCounts::NAMES) {
        let places = loss_places(name);
        let sum: u64 = places.iter().map(|at| counts[*at]).sum();
        if sum > 0 {
            rates.put(map, Kind::Messages, name, sum, &places);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::Ranges;
    use serde_json::json;

    #[test]
    fn losses_are_told_by_kind_and_summed_up_and_only_where_there_are_some() {
        let rates = Rates {
            history: None,
            now: 1,
            ranges: Ranges::default(),
        };
        let mut counts = [0; LossCounts::KINDS];
        let mut stats = None;
        add_losses(&mut stats, &rates, counts);
        assert_eq!(stats, None);
        for (name, count) in [
            ("dropped_maxlen", 7),
            ("dropped_purged", 2),
            ("refused_duplicate", 1),
        ] {
            counts[loss_places(name)[0]] = count;
        }
        add_losses(&mut stats, &rates, counts);
        let none = json!({"rate": 0.0});
        assert_eq!(
            stats.unwrap(),
            json!({"dropped": 9, "dropped_details": none, "dropped_maxlen": 7, "dropped_maxlen_details": none,
                "dropped_purged": 2, "dropped_purged_details": none, "refused_duplicate": 1, "refused_duplicate_details": none})
        );
    }

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
