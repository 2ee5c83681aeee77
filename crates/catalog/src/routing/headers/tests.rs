use super::*;
use proptest::prelude::*;

fn accepts(arguments: &Table, headers: &Table) -> bool {
    let mut fetch = || Some(headers.clone());
    HeaderMatch::new(arguments)
        .unwrap()
        .accepts(&Headers::new(&mut fetch).sorted())
}

#[test]
fn of_a_header_that_comes_twice_the_first_one_counts() {
    let mut headers = Table::new();
    headers.push("k", 1);
    headers.push("k", 2);
    assert!(accepts(&Table::new().with("k", 1), &headers));
    assert!(!accepts(&Table::new().with("k", 2), &headers));
}

#[test]
fn headers_are_fetched_once_and_only_when_asked_for() {
    let mut fetched = 0;
    let mut fetch = || {
        fetched += 1;
        None
    };
    let mut headers = Headers::new(&mut fetch);
    assert!(headers.sorted().is_empty());
    assert!(headers.sorted().is_empty());
    drop(headers);
    assert_eq!(fetched, 1);
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Void),
        (0..2i32).prop_map(Value::SignedInt),
        (0..2i64).prop_map(Value::Long),
        any::<bool>().prop_map(Value::Bool),
        "[01]".prop_map(|text| Value::LongStr(text.into_bytes())),
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

/// The table of RabbitMQ's documentation, written down plainly.
fn naive(mode: &str, arguments: &Table, headers: &Table) -> bool {
    let (any, with_x) = (mode.starts_with("any"), mode.ends_with("-with-x"));
    let mut verdicts = Vec::new();
    for (name, wanted) in arguments.iter() {
        if name == b"x-match" || (name.starts_with(b"x-") && !with_x) {
            continue;
        }
        let found = headers.get(name);
        verdicts.push(match (wanted, found) {
            (_, None) => false,
            (Value::Void, Some(_)) => true,
            (wanted, Some(found)) => match (wanted.as_integer(), found.as_integer()) {
                (Some(wanted), Some(found)) => wanted == found,
                _ => wanted == found,
            },
        });
    }
    if any {
        verdicts.contains(&true)
    } else {
        !verdicts.contains(&false)
    }
}

proptest! {
    #[test]
    fn headers_match_as_in_the_table(
        mode in prop::sample::select(vec!["all", "any", "all-with-x", "any-with-x"]),
        arguments in table(),
        headers in table(),
    ) {
        let with_mode = arguments.clone().with("x-match", mode);
        prop_assert_eq!(accepts(&with_mode, &headers), naive(mode, &arguments, &headers));
    }
}
