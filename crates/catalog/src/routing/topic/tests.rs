use super::*;
use model::QueueId;
use proptest::prelude::*;

/// What the specification says, word by word, in exponential time.
fn matches(pattern: &[&[u8]], key: &[&[u8]]) -> bool {
    match pattern.split_first() {
        None => key.is_empty(),
        Some((&b"#", rest)) => (0..=key.len()).any(|taken| matches(rest, &key[taken..])),
        Some((word, rest)) => key
            .split_first()
            .is_some_and(|(first, key)| (*word == b"*" || word == first) && matches(rest, key)),
    }
}

fn naive(patterns: &[String], key: &str) -> Vec<QueueId> {
    let key: Vec<&[u8]> = words(key.as_bytes()).collect();
    let hit = |pattern: &String| matches(&words(pattern.as_bytes()).collect::<Vec<_>>(), &key);
    (0..patterns.len())
        .filter(|at| hit(&patterns[*at]))
        .map(|at| QueueId(at as u64))
        .collect()
}

fn found(trie: &Trie, key: &str) -> (Vec<QueueId>, usize) {
    let mut queues = SmallVec::new();
    let visited = trie.find(
        key.as_bytes(),
        &mut Found {
            queues: &mut queues,
            exchanges: SmallVec::new(),
        },
    );
    let mut queues = queues.to_vec();
    queues.sort();
    (queues, visited)
}

fn trie(patterns: &[String]) -> Trie {
    let mut trie = Trie::default();
    for (at, pattern) in patterns.iter().enumerate() {
        trie.add(pattern.as_bytes(), &Target::Queue(QueueId(at as u64)));
    }
    trie
}

fn nodes(node: &TopicNode) -> usize {
    let words: Vec<&TopicNode> = match &node.words {
        Branches::None => Vec::new(),
        Branches::One(_, node) => vec![node],
        Branches::Many(map) => map.values().map(|node| &**node).collect(),
    };
    let others = node.star.iter().chain(&node.hash).map(|node| &**node);
    1 + words.into_iter().chain(others).map(nodes).sum::<usize>()
}

fn pattern() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec!["a", "b", "", "*", "#", "a*"]);
    prop::collection::vec(word, 0..6).prop_map(|words| words.join("."))
}

fn key() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec!["a", "b", "", "c", "a*"]);
    prop::collection::vec(word, 0..7).prop_map(|words| words.join("."))
}

proptest! {
    #[test]
    fn the_trie_finds_what_matches_and_nothing_twice(
        patterns in prop::collection::vec(pattern(), 0..12),
        keys in prop::collection::vec(key(), 1..6),
    ) {
        let trie = trie(&patterns);
        for key in &keys {
            prop_assert_eq!(found(&trie, key).0, naive(&patterns, key), "key '{}'", key);
        }
    }

    #[test]
    fn what_is_removed_is_found_no_more_and_leaves_nothing_behind(
        patterns in prop::collection::vec(pattern(), 1..12),
        key in key(),
        removed in any::<u16>(),
    ) {
        let before = trie(&patterns);
        let mut after = before.clone();
        let gone = |at: usize| removed >> at & 1 == 1;
        for (at, pattern) in patterns.iter().enumerate().filter(|(at, _)| gone(*at)) {
            after.remove(pattern.as_bytes(), &Target::Queue(QueueId(at as u64)));
        }
        let kept: Vec<QueueId> = naive(&patterns, &key).into_iter().filter(|id| !gone(id.0 as usize)).collect();
        prop_assert_eq!(found(&after, &key).0, kept);
        prop_assert_eq!(found(&before, &key).0, naive(&patterns, &key), "the older trie has changed");
        for (at, pattern) in patterns.iter().enumerate() {
            after.remove(pattern.as_bytes(), &Target::Queue(QueueId(at as u64)));
        }
        prop_assert_eq!(nodes(&after.root), 1);
    }
}

/// All patterns of up to `length` words out of `a`, `*`, `#`, with at most two `#`.
fn all_patterns(length: usize) -> Vec<String> {
    let mut all = vec![Vec::new()];
    let mut last = all.clone();
    for _ in 0..length {
        last = last
            .iter()
            .flat_map(|words: &Vec<&str>| ["a", "*", "#"].map(|word| [&words[..], &[word]].concat()))
            .filter(|words| words.iter().filter(|word| **word == "#").count() <= 2)
            .collect();
        all.extend(last.iter().cloned());
    }
    all.iter().map(|words| words.join(".")).collect()
}

#[test]
fn hostile_patterns_cost_at_most_words_times_nodes() {
    let patterns = all_patterns(7);
    let trie = trie(&patterns);
    let nodes = nodes(&trie.root);
    let key = ["a"; 128].join(".");
    let (queues, visited) = found(&trie, &key);
    assert!(!queues.is_empty());
    assert!(
        visited <= 129 * nodes,
        "{visited} visits for 128 words and {nodes} nodes"
    );
}

#[test]
fn one_hostile_pattern_costs_little() {
    // A matcher that tries again from every `#` needs 127 choose 3 steps for this one.
    let patterns = vec![format!("#.{}.#.b", ["a"; 60].join("."))];
    let (queues, visited) = found(&trie(&patterns), &["a"; 127].join("."));
    assert!(queues.is_empty());
    assert!(visited <= 128 * 65, "{visited} visits");
}
