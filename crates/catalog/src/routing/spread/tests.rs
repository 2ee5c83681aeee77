use super::*;
use model::QueueId;
use model::properties::{Properties, PropertiesBuilder};
use smallvec::SmallVec;

fn target(id: u64) -> Target {
    Target::Queue(QueueId(id))
}

fn bound(mut spread: Spread, queues: &[(u64, &str)]) -> Spread {
    for (id, key) in queues {
        spread.add(key.as_bytes(), &target(*id));
    }
    spread
}

fn consistent(queues: &[(u64, &str)]) -> Spread {
    bound(Spread::consistent(&Table::new()), queues)
}

fn find(spread: &Spread, envelope: &mut Envelope<'_>) -> u64 {
    let mut queues = SmallVec::new();
    spread.find(
        envelope,
        &mut Found {
            queues: &mut queues,
            exchanges: SmallVec::new(),
        },
    );
    assert_eq!(queues.len(), 1);
    queues[0].0
}

/// Where each of ten thousand keys goes.
fn all(spread: &Spread) -> Vec<u64> {
    (0..10_000)
        .map(|at| {
            find(
                spread,
                &mut Envelope::new(format!("key.{at}").as_bytes(), Properties::amqp091(&[0, 0])),
            )
        })
        .collect()
}

fn share(found: &[u64], id: u64) -> f64 {
    found.iter().filter(|found| **found == id).count() as f64 / found.len() as f64
}

#[test]
fn a_ring_shows_which_buckets_lead_where() {
    let found = consistent(&[(2, "2"), (1, "1"), (3, "7")]).buckets();
    let shares = [(1, target(1)), (3, target(2)), (10, target(3))];
    assert_eq!(found.as_deref(), Some(&Vec::from(shares)));
    let other = bound(Spread::modulus(), &[(1, "k")]);
    assert_eq!(other.buckets(), None);
}

#[test]
fn queues_get_messages_by_weight() {
    let found = all(&consistent(&[(1, "1"), (2, "2"), (3, "7")]));
    for (id, expected) in [(1, 0.1), (2, 0.2), (3, 0.7)] {
        assert!(
            (share(&found, id) - expected).abs() < 0.02,
            "{}",
            share(&found, id)
        );
    }
}

#[test]
fn a_new_queue_takes_its_share_and_nothing_moves_between_the_others() {
    let before = all(&consistent(&[(1, "1"), (2, "1"), (3, "1")]));
    let after = all(&consistent(&[(1, "1"), (2, "1"), (3, "1"), (4, "1")]));
    assert!(
        before
            .iter()
            .zip(&after)
            .all(|(before, after)| after == before || *after == 4)
    );
    assert!((share(&after, 4) - 0.25).abs() < 0.02);
}

#[test]
fn the_order_of_bindings_does_not_matter() {
    let one = consistent(&[(1, "1"), (2, "5"), (3, "2")]);
    let other = consistent(&[(3, "2"), (1, "1"), (2, "5")]);
    assert_eq!(all(&one), all(&other));
}

#[test]
fn a_queue_bound_twice_counts_once_with_its_greatest_weight() {
    let mut twice = consistent(&[(1, "1"), (2, "3"), (2, "1")]);
    assert_eq!(all(&twice), all(&consistent(&[(1, "1"), (2, "3")])));
    twice.remove(b"3", &target(2));
    assert_eq!(all(&twice), all(&consistent(&[(1, "1"), (2, "1")])));
    twice.remove(b"1", &target(2));
    assert_eq!(share(&all(&twice), 1), 1.0);
}

#[test]
fn an_exchange_without_bindings_leads_nowhere() {
    let empty = consistent(&[]);
    let mut queues = SmallVec::new();
    let mut found = Found {
        queues: &mut queues,
        exchanges: SmallVec::new(),
    };
    empty.find(&mut Envelope::new(b"k", Properties::amqp091(&[0, 0])), &mut found);
    assert!(queues.is_empty());
}

#[test]
fn the_header_or_property_is_hashed_and_not_the_key() {
    let queues: Vec<(u64, String)> = (0..16).map(|id| (id, "1".to_owned())).collect();
    let queues: Vec<(u64, &str)> = queues.iter().map(|(id, key)| (*id, key.as_str())).collect();
    let by_header = bound(
        Spread::consistent(&Table::new().with("hash-header", "user")),
        &queues,
    );
    let by_message = bound(
        Spread::consistent(&Table::new().with("hash-property", "message_id")),
        &queues,
    );
    let go = |spread: &Spread, key: &str, user: i32, message: &str| {
        let properties = PropertiesBuilder::new()
            .headers(&Table::new().with("user", user))
            .message_id(message)
            .encode();
        find(
            spread,
            &mut Envelope::new(key.as_bytes(), Properties::amqp091(&properties)),
        )
    };
    assert_eq!(go(&by_header, "a", 7, "x"), go(&by_header, "b", 7, "y"));
    assert_eq!(go(&by_message, "a", 7, "x"), go(&by_message, "b", 8, "x"));
    assert!((0..100).any(|user| go(&by_header, "a", user, "x") != go(&by_header, "a", 7, "x")));
    assert!((0..100).any(|at| go(&by_message, "a", 7, &at.to_string()) != go(&by_message, "a", 7, "x")));
}

#[test]
fn the_modulus_of_the_key_is_always_the_same_queue() {
    let modulus = bound(Spread::modulus(), &[(1, "a"), (2, ""), (3, "c")]);
    let found = all(&modulus);
    assert_eq!(found, all(&modulus));
    for id in 1..=3 {
        assert!((share(&found, id) - 1.0 / 3.0).abs() < 0.03);
    }
}

#[test]
fn chance_comes_with_the_envelope_and_decides() {
    let random = bound(Spread::by_chance(), &[(1, "a"), (2, ""), (2, "b"), (3, "c")]);
    let found: Vec<u64> = (0..10_000)
        .map(|at| {
            find(
                &random,
                &mut Envelope::new(b"same", Properties::amqp091(&[0, 0])).with_chance(at),
            )
        })
        .collect();
    for id in 1..=3 {
        assert!((share(&found, id) - 1.0 / 3.0).abs() < 0.03);
    }
    let mut envelope = Envelope::new(b"same", Properties::amqp091(&[0, 0])).with_chance(1);
    find(&random, &mut envelope);
    assert_eq!(envelope.looked(), crate::Looked::AtChance);
}

#[test]
fn weights_are_numbers_from_one_to_ten_thousand() {
    assert_eq!(weight(b"10000"), Ok(10_000));
    assert_eq!(weight(b"+2"), Ok(2));
    assert_eq!(
        weight(b"0").unwrap_err(),
        "The binding key must be greater than 0"
    );
    assert_eq!(
        weight(b"-3").unwrap_err(),
        "The binding key must be greater than 0"
    );
    for none in ["", "x", "1.5", " 1", "+"] {
        assert_eq!(
            weight(none.as_bytes()).unwrap_err(),
            format!("The binding key must be an integer: <<\"{none}\">>")
        );
    }
    assert!(weight(b"10001").is_err() && weight(&[b'9'; 200]).is_err());
}
