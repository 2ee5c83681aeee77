use super::*;
use crate::binding::Target;
use crate::routing::Found;
use model::QueueId;
use model::table::equivalent;
use proptest::prelude::*;
use smallvec::SmallVec;

/// Adds each binding with a target of its own: the first leads to queue 0.
fn index(bindings: &[Table]) -> HeaderIndex {
    let mut index = HeaderIndex::default();
    for (at, arguments) in bindings.iter().enumerate() {
        index.add(&HeaderMatch::new(arguments).unwrap(), &target(at));
    }
    index
}

fn target(at: usize) -> Target {
    Target::Queue(QueueId(at as u64))
}

/// The bindings that these headers go through, each once, and how many nodes were visited.
fn found(index: &HeaderIndex, headers: &Table) -> (Vec<usize>, usize) {
    let mut bytes = Vec::new();
    headers.encode(&mut bytes);
    let mut queues = SmallVec::new();
    let walked = index.find(
        &bytes,
        &mut Found {
            queues: &mut queues,
            exchanges: SmallVec::new(),
        },
    );
    let mut all: Vec<_> = queues.iter().map(|id| id.0 as usize).collect();
    all.sort_unstable();
    all.dedup();
    (all, walked.nodes)
}

fn accepts(arguments: Table, headers: &Table) -> bool {
    found(&index(&[arguments]), headers).0 == [0]
}

#[test]
fn of_a_header_that_comes_twice_the_first_one_counts() {
    let mut headers = Table::new();
    headers.push("k", 1);
    headers.push("k", 2);
    assert!(accepts(Table::new().with("k", 1), &headers));
    assert!(!accepts(Table::new().with("k", 2), &headers));
}

#[test]
fn nothing_wanted_is_fulfilled_by_all_messages_or_by_none() {
    let any = Table::new().with("x-match", "any").with("x-only", 1);
    assert!(accepts(Table::new(), &Table::new()));
    assert!(!accepts(any, &Table::new().with("x-only", 1)));
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Void),
        (0..2i32).prop_map(Value::SignedInt),
        (-1..2i64).prop_map(Value::Long),
        (0..2u64).prop_map(Value::Timestamp),
        prop::sample::select(vec![0.0, -0.0, 1.0, f64::NAN]).prop_map(Value::Double),
        prop::sample::select(vec![0.0, 1.0, f32::NAN]).prop_map(Value::Float),
        any::<bool>().prop_map(Value::Bool),
        "[01]".prop_map(|text| Value::LongStr(text.into_bytes())),
        "[01]".prop_map(|text| Value::Binary(text.into_bytes())),
        (0..2i32).prop_map(|number| Value::Array(vec![Value::SignedInt(number)])),
    ]
}

fn table() -> impl Strategy<Value = Table> {
    let name = prop::sample::select(vec!["a", "b", "x-a", "c"]);
    prop::collection::vec((name, value()), 0..4).prop_map(|entries| {
        let mut table = Table::new();
        entries
            .into_iter()
            .for_each(|(name, value)| table.insert(name, value));
        table
    })
}

fn arguments() -> impl Strategy<Value = Table> {
    let mode = prop::sample::select(vec!["all", "any", "all-with-x", "any-with-x"]);
    (mode, table()).prop_map(|(mode, table)| table.with("x-match", mode))
}

/// The table of RabbitMQ's documentation, written down plainly.
fn naive(arguments: &Table, headers: &Table) -> bool {
    let mode = arguments.get("x-match").and_then(Value::as_str).unwrap();
    let (any, with_x) = (mode.starts_with("any"), mode.ends_with("-with-x"));
    let mut verdicts = Vec::new();
    for (name, wanted) in arguments.iter() {
        if name == b"x-match" || (name.starts_with(b"x-") && !with_x) {
            continue;
        }
        verdicts.push(match (wanted, headers.get(name)) {
            (_, None) => false,
            (Value::Void, Some(_)) => true,
            // A message's timestamp is no number to RabbitMQ.
            (wanted, Some(found @ Value::Timestamp(_))) => wanted == found,
            (wanted, Some(found)) => equivalent(wanted, found),
        });
    }
    if any {
        verdicts.contains(&true)
    } else {
        !verdicts.contains(&false)
    }
}

fn expected(bindings: &[Table], headers: &Table) -> Vec<usize> {
    (0..bindings.len())
        .filter(|at| naive(&bindings[*at], headers))
        .collect()
}

proptest! {
    #[test]
    fn the_index_finds_what_the_table_says(
        bindings in prop::collection::vec(arguments(), 0..12),
        messages in prop::collection::vec(table(), 1..6),
    ) {
        let index = index(&bindings);
        for headers in &messages {
            prop_assert_eq!(found(&index, headers).0, expected(&bindings, headers), "{:?}", headers);
        }
    }

    #[test]
    fn what_is_removed_is_found_no_more_and_leaves_nothing_behind(
        bindings in prop::collection::vec(arguments(), 1..12),
        headers in table(),
        removed in any::<u16>(),
    ) {
        let before = index(&bindings);
        let mut after = before.clone();
        let gone = |at: usize| removed >> at & 1 == 1;
        let matched = |at: usize| HeaderMatch::new(&bindings[at]).unwrap();
        for at in (0..bindings.len()).filter(|at| gone(*at)) {
            after.remove(&matched(at), &target(at));
        }
        let mut kept = expected(&bindings, &headers);
        prop_assert_eq!(&found(&before, &headers).0, &kept, "the older index has changed");
        kept.retain(|at| !gone(*at));
        prop_assert_eq!(found(&after, &headers).0, kept);
        for at in (0..bindings.len()).filter(|at| !gone(*at)) {
            after.remove(&matched(at), &target(at));
        }
        prop_assert!(after.is_empty());
    }
}

#[test]
fn a_message_visits_only_what_it_fulfils() {
    // Everybody wants the same type; one in ten thousand wants this user.
    let bindings: Vec<_> = (0..10_000)
        .map(|user| Table::new().with("type", "report").with("user", user))
        .collect();
    let index = index(&bindings);
    let headers = Table::new()
        .with("type", "report")
        .with("user", 77)
        .with("other", 1);
    let (found, visited) = found(&index, &headers);
    assert_eq!(found, [77]);
    assert!(visited <= 3, "{visited} visits");
}

#[test]
fn headers_that_fulfil_half_of_many_bindings_visit_little_more_than_what_matches() {
    // All sets of four out of twenty headers; the message has ten of these.
    let mut bindings = Vec::new();
    for set in (0..1u32 << 20).filter(|set| set.count_ones() == 4) {
        let wanted = (0..20).filter(|bit| set >> bit & 1 == 1);
        bindings.push(wanted.map(|bit| (format!("h{bit}"), 1)).collect::<Table>());
    }
    let headers: Table = (0..10).map(|bit| (format!("h{bit}"), 1)).collect();
    let (found, visited) = found(&index(&bindings), &headers);
    assert_eq!(found.len(), 210);
    assert!(visited <= 2 * 210, "{visited} visits among {}", bindings.len());
}

#[test]
fn a_long_binding_that_has_little_in_common_with_others_is_one_step() {
    // Each leaves out one of three hundred headers, and so does the message.
    let without = |left_out: usize| {
        let names = (0..300).filter(move |at| *at != left_out);
        names.map(|at| (format!("h{at}"), 1)).collect::<Table>()
    };
    let bindings: Vec<_> = (0..300).map(without).collect();
    let mut index = index(&bindings);
    assert!(index.nodes() <= 2 * bindings.len(), "{} nodes", index.nodes());
    assert_eq!(found(&index, &without(77)).0, [77]);
    // What was split is one step again once nobody branches off any more.
    for (at, arguments) in bindings.iter().enumerate().skip(1) {
        index.remove(&HeaderMatch::new(arguments).unwrap(), &target(at));
    }
    assert_eq!(index.nodes(), 1);
    assert_eq!(found(&index, &without(0)).0, [0]);
}

#[test]
fn who_fulfils_many_bindings_that_want_any_comes_to_each_queue_only_a_few_times() {
    let mut index = HeaderIndex::default();
    for at in 0..200 {
        let arguments: Table = (0..100).map(|bit| (format!("h{bit}"), 1)).collect();
        let wanted = HeaderMatch::new(&arguments.with("x-match", "any")).unwrap();
        index.add(&wanted, &target(at % 10));
    }
    let mut bytes = Vec::new();
    let headers: Table = (0..100).map(|bit| (format!("h{bit}"), 1)).collect();
    headers.encode(&mut bytes);
    // What was found elsewhere before stays.
    let mut queues = SmallVec::from_slice(&[QueueId(3), QueueId(3)]);
    let exchanges = SmallVec::new();
    let found = &mut Found {
        queues: &mut queues,
        exchanges,
    };
    index.find(&bytes, found);
    assert_eq!(&queues[..2], [QueueId(3), QueueId(3)]);
    assert!(queues.len() <= 2 + 20, "{} queues", queues.len());
    queues.sort_unstable();
    queues.dedup();
    assert_eq!(queues.len(), 10);
}

#[test]
fn what_a_message_asks_of_an_exchange_is_counted_where_it_branches() {
    let bindings: Vec<_> = (0..100)
        .map(|at| {
            [(format!("h{at:02}"), 1), ("zzz".to_owned(), at)]
                .into_iter()
                .collect()
        })
        .collect();
    let headers: Table = (0..100).map(|at| (format!("h{at:02}"), 1)).collect();
    let mut bytes = Vec::new();
    headers.encode(&mut bytes);
    let mut queues = SmallVec::new();
    let walked = index(&bindings).find(
        &bytes,
        &mut Found {
            queues: &mut queues,
            exchanges: SmallVec::new(),
        },
    );
    // A hundred conditions are fulfilled, and each is looked for once: at the root, where alone it branches.
    assert_eq!(walked.lookups, 200);
    assert!((1..=101).contains(&walked.nodes));
}
