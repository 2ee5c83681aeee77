//! Entries of groups are read by index, whatever lies between them, was overwritten, went, or was lost in a crash.

#![allow(clippy::unwrap_used, reason = "test code")]

mod support;

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use storage::faulty::FaultyFs;
use storage::{
    GroupEntry, HardState, JournalId, Kind, Log, LogError, LogOptions, Position, SegmentOptions, Segments,
    TailLimits,
};
use support::{Opened, Told, journal_id, open, small};

/// What happened to the entries of groups, and where it stands in the log.
#[derive(Debug, Clone)]
enum Event {
    Entry {
        group: u64,
        index: u64,
        payload: Vec<u8>,
    },
    Release {
        group: u64,
        below: u64,
    },
}

/// The entries of one group that count.
#[derive(Debug, Default, Clone)]
struct Entries {
    payloads: BTreeMap<u64, Vec<u8>>,
    /// Those below it may be gone.
    released: u64,
    /// But not those from the first of these on and before the second.
    kept: (u64, u64),
}

impl Entries {
    fn may_be_gone(&self, index: u64) -> bool {
        index < self.released && !(self.kept.0..self.kept.1).contains(&index)
    }
}

/// A naive log of groups.
#[derive(Debug, Default)]
struct Model {
    history: Vec<(Position, Event)>,
    groups: BTreeMap<u64, Entries>,
    terms: u64,
}

impl Model {
    fn note(&mut self, at: Position, event: Event) {
        self.apply(&event);
        self.history.push((at, event));
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Entry {
                group,
                index,
                payload,
            } => {
                let entries = self.groups.entry(*group).or_default();
                entries.payloads.split_off(index);
                if entries
                    .payloads
                    .last_key_value()
                    .is_some_and(|(last, _)| last + 1 < *index)
                {
                    entries.payloads.clear();
                    entries.kept = (0, 0);
                }
                entries.payloads.insert(*index, payload.clone());
                entries.released = entries.released.min(*index);
                if *index < entries.kept.1 {
                    // Members that were away lack nothing that is not committed: this does not happen.
                    entries.kept = (0, 0);
                }
            }
            Event::Release { group, below } => {
                let entries = self.groups.entry(*group).or_default();
                entries.released = entries.released.max(*below);
            }
        }
    }

    /// Nothing from `end` on was there ever.
    fn cut(&mut self, end: Position) {
        self.history.retain(|(at, _)| *at < end);
        self.groups.clear();
        for (_, event) in self.history.clone() {
            self.apply(&event);
        }
    }

    fn last(&self, group: u64) -> u64 {
        let entries = self.groups.get(&group);
        let last = entries.and_then(|entries| entries.payloads.keys().next_back());
        last.copied().unwrap_or(0)
    }

    fn append(&mut self, log: &Log, group: u64, index: u64, length: usize) {
        self.terms += 1;
        let mut payload = Vec::new();
        let term = self.terms;
        GroupEntry { term, index }.encode(&mut payload);
        payload.resize(16 + length, term as u8);
        let journal = JournalId::new(Kind::GROUP, group);
        let at = log.append(|batch| batch.record(journal, |out| out.extend_from_slice(&payload)));
        let event = Event::Entry {
            group,
            index,
            payload,
        };
        self.note(at, event);
    }

    fn release(&mut self, log: &Log, group: u64, below: u64) {
        // A block's header may lie between the end of the log and the record of the release.
        let at = log.append(|batch| {
            let end = batch.end();
            batch.release_group(group, below);
            Position(end.0 + 32)
        });
        self.note(at, Event::Release { group, below });
    }

    /// The group's first entries are needed no more, but a member that was away lacks them.
    fn keep(&mut self, log: &Log, group: u64, count: u64) {
        let Some((first, last)) = log.group_span(group) else {
            return;
        };
        let entries = self.groups.get_mut(&group).unwrap();
        let from = first.max(entries.released);
        let below = (from + count).min(last + 1);
        log.keep_tail(group, from, below).unwrap();
        entries.kept = match entries.kept.1 >= from && entries.kept.0 < entries.kept.1 {
            true => (entries.kept.0, entries.kept.1.max(below)),
            false => (from, below),
        };
        self.release(log, group, below);
    }

    /// Whatever the log must have of a group it has, and it has nothing else.
    fn check(&self, log: &Log, group: u64) {
        let Some(entries) = self.groups.get(&group) else {
            assert!(log.group_entries(group, 0, u64::MAX, 1 << 20).is_err());
            return;
        };
        for (index, payload) in &entries.payloads {
            match log.group_entries(group, *index, index + 1, 0) {
                Ok(read) => assert_eq!(
                    read,
                    std::slice::from_ref(payload),
                    "entry {index} of group {group}"
                ),
                Err(LogError::Gone { .. }) if entries.may_be_gone(*index) => {}
                Err(error) => panic!("entry {index} of group {group}: {error}"),
            }
        }
        let beyond = self.last(group) + 1;
        assert!(log.group_entries(group, beyond, beyond + 1, 1 << 20).is_err());
        if let Some(first) = entries.payloads.keys().next() {
            let (from, below) = entries.kept;
            let from = match from < below && below >= entries.released {
                true => from,
                false => entries.released,
            };
            self.check_range(log, group, from.max(*first));
        }
    }

    /// One pass over the log shows all that it must have, of all groups, and what counts of it as the order says.
    fn check_pass(&self, log: &Log) {
        let mut shown: BTreeMap<u64, BTreeMap<u64, Vec<u8>>> = BTreeMap::new();
        log.entries_since(Position(0), &mut |group, payload| {
            let (GroupEntry { index, .. }, _) = GroupEntry::decode(payload).unwrap();
            let entries = shown.entry(group).or_default();
            entries.split_off(&index);
            entries.insert(index, payload.to_vec());
        })
        .unwrap();
        for (group, entries) in &self.groups {
            let needed = entries.payloads.range(entries.released..);
            for (index, payload) in needed {
                assert_eq!(
                    shown[group].get(index),
                    Some(payload),
                    "entry {index} of group {group}"
                );
                assert!(log.group_position(*group, *index).is_some());
            }
        }
    }

    /// Reading on from where the last read ended shows all that is there.
    fn check_range(&self, log: &Log, group: u64, from: u64) {
        let (mut next, limit) = (from, 1000);
        let wanted: Vec<_> = self.groups[&group]
            .payloads
            .range(from..)
            .map(|(_, p)| p)
            .collect();
        let mut read = Vec::new();
        while next <= self.last(group) {
            let some = log.group_entries(group, next, u64::MAX, limit).unwrap();
            assert!(!some.is_empty());
            assert!(some.len() == 1 || some.iter().map(Vec::len).sum::<usize>() <= limit);
            next += some.len() as u64;
            read.extend(some);
        }
        assert!(read.iter().eq(wanted));
    }
}

#[derive(Debug, Clone)]
enum Op {
    Append { group: u64, count: u64, length: usize },
    Overwrite { group: u64, back: u64 },
    Skip { group: u64 },
    Other { length: usize },
    Release { group: u64, keep: u64 },
    Keep { group: u64, count: u64 },
    Carry { group: u64 },
    Forget { group: u64 },
    Sync,
    Check { group: u64 },
    Restart,
    Crash { seed: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    let length = prop_oneof![6 => 0..500_usize, 2 => 1_000..9_000_usize, 1 => 100_000..300_000_usize];
    let group = 0..3_u64;
    prop_oneof![
        8 => (group.clone(), 1..6_u64, length.clone())
            .prop_map(|(group, count, length)| Op::Append { group, count, length }),
        2 => (group.clone(), 1..12_u64).prop_map(|(group, back)| Op::Overwrite { group, back }),
        1 => group.clone().prop_map(|group| Op::Skip { group }),
        4 => length.prop_map(|length| Op::Other { length }),
        3 => (group.clone(), 0..10_u64).prop_map(|(group, keep)| Op::Release { group, keep }),
        3 => (group.clone(), 0..10_u64).prop_map(|(group, count)| Op::Keep { group, count }),
        3 => group.clone().prop_map(|group| Op::Carry { group }),
        1 => group.clone().prop_map(|group| Op::Forget { group }),
        2 => Just(Op::Sync),
        2 => group.prop_map(|group| Op::Check { group }),
        1 => Just(Op::Restart),
        1 => any::<u64>().prop_map(|seed| Op::Crash { seed }),
    ]
}

fn options() -> LogOptions {
    LogOptions {
        retry_ms: 1,
        ..small()
    }
}

/// A start finds no tails: what is left of them goes.
fn with_tails(opened: Opened, fs: &FaultyFs) -> Opened {
    let options = SegmentOptions {
        segment_bytes: 8 << 10,
        open_files: 4,
    };
    let segments = Segments::open(Arc::new(fs.clone()), Path::new("/data/queues"), options).unwrap();
    segments.sweep(&|_| None).unwrap();
    assert!(segments.is_empty());
    opened
        .log
        .keep_tails_in(Arc::new(segments), TailLimits::default());
    opened
}

fn reopened(fs: &FaultyFs, model: &mut Model) -> Opened {
    let opened = open(fs.clone(), options()).unwrap();
    model.cut(opened.log.recovery().end);
    model.check_pass(&opened.log);
    with_tails(opened, fs)
}

fn run(ops: &[Op]) {
    let mut fs = FaultyFs::new();
    let mut model = Model::default();
    let mut opened = with_tails(open(fs.clone(), options()).unwrap(), &fs);
    for op in ops {
        let log = &opened.log;
        match *op {
            Op::Append { group, count, length } => {
                for _ in 0..count {
                    model.append(log, group, model.last(group) + 1, length);
                }
            }
            Op::Overwrite { group, back } => {
                let index = model.last(group).saturating_sub(back).max(1);
                model.append(log, group, index, 10);
            }
            Op::Skip { group } => {
                let index = model.last(group) + 10;
                model.release(log, group, index);
                model.append(log, group, index, 10);
            }
            Op::Other { length } => {
                let at =
                    log.append(|batch| batch.record(journal_id(1), |out| out.resize(out.len() + length, 7)));
                log.release(journal_id(1), at);
            }
            Op::Release { group, keep } => {
                let below = (model.last(group) + 1).saturating_sub(keep);
                model.release(log, group, below);
            }
            Op::Keep { group, count } => model.keep(log, group, count),
            Op::Carry { group } => assert!(log.carry_group(group, log.end()).unwrap()),
            Op::Forget { group } => {
                let below = u64::MAX;
                let at = Position(log.end().0 + 32);
                log.forget_group(group);
                model.note(at, Event::Release { group, below });
                model.groups.entry(group).or_default().kept = (0, 0);
            }
            Op::Sync => log.sync().unwrap(),
            Op::Check { group } => model.check(log, group),
            Op::Restart => {
                log.close().unwrap();
                drop(opened);
                fs = fs.kill();
                opened = reopened(&fs, &mut model);
            }
            Op::Crash { seed } => {
                let after = fs.crash(seed);
                drop(opened);
                fs = after;
                opened = reopened(&fs, &mut model);
            }
        }
    }
    for group in 0..3 {
        model.check(&opened.log, group);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 70, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_log_has_the_entries_that_a_naive_model_has(ops in prop::collection::vec(op(), 1..60)) {
        run(&ops);
    }
}

fn promise(log: &Log, group: u64, term: u64) {
    let journal = JournalId::new(Kind::HARD_STATE, group);
    let promise = HardState {
        term,
        ..HardState::default()
    };
    log.append(|batch| batch.record(journal, |out| promise.encode(out)));
}

/// The latest promises that replay shows.
fn promises(opened: &Opened) -> BTreeMap<u64, u64> {
    let of_groups = opened
        .replayed
        .iter()
        .filter(|seen| seen.0.kind == Kind::HARD_STATE);
    let terms =
        of_groups.map(|(journal, _, payload)| (journal.number, HardState::decode(payload).unwrap().term));
    terms.collect()
}

#[test]
fn promises_are_carried_on_while_files_come_and_go_and_nobody_is_asked_for_them() {
    let fs = FaultyFs::new();
    let opened = open(fs.clone(), options()).unwrap();
    for group in 0..300 {
        promise(&opened.log, group, group);
    }
    let asleep = JournalId::new(Kind::GROUP, 1);
    let entry = [[0; 8], 1_u64.to_le_bytes()].concat();
    opened
        .log
        .append(|batch| batch.record(asleep, |out| out.extend_from_slice(&entry)));
    let first = opened.log.begin();
    let mut asked = Vec::new();
    for round in 0..400_u64 {
        let at = opened.put(1, &[7; 2000]);
        opened.log.release(journal_id(1), at);
        promise(&opened.log, round % 3, 1000 + round);
        opened.log.sync().unwrap();
        for told in opened.told.try_iter() {
            let Told::Reclaim(journals, _) = told else {
                continue;
            };
            asked.extend(journals.iter().copied());
            if journals.contains(&asleep) {
                opened.log.release_group(1, 2);
            }
        }
    }
    assert!(opened.log.begin() > first);
    assert!(
        opened.log.size() <= 6 * options().file_bytes,
        "{}",
        opened.log.size()
    );
    assert!(asked.contains(&asleep) && asked.iter().all(|journal| journal.kind != Kind::HARD_STATE));
    let crashed = fs.crash(1);
    drop(opened);
    let mut expected: BTreeMap<u64, u64> = (0..300).map(|group| (group, group)).collect();
    expected.extend([(0, 1399), (1, 1397), (2, 1398)]);
    assert_eq!(promises(&open(crashed, options()).unwrap()), expected);
}

#[test]
fn tails_give_up_the_oldest_entries_beyond_their_limits() {
    let fs = FaultyFs::new();
    let opened = open(fs.clone(), options()).unwrap();
    let log = &opened.log;
    let segments = Segments::open(
        Arc::new(fs.clone()),
        Path::new("/data/queues"),
        SegmentOptions::default(),
    );
    let limits = TailLimits {
        group_bytes: 800 << 10,
        node_bytes: 1200 << 10,
    };
    log.keep_tails_in(Arc::new(segments.unwrap()), limits);
    let mut model = Model::default();
    for index in 1..=100 {
        (1..=3).for_each(|group| model.append(log, group, index, 10_000));
    }
    let read = |group, index| log.group_entries(group, index, index + 1, 0).is_ok();
    let first_kept = |group| (1..=100).find(|index| read(group, *index));
    let move_to_tail = |group| {
        log.keep_tail(group, 1, 101).unwrap();
        log.release_group(group, 101);
    };
    move_to_tail(1);
    assert!(log.tail_bytes() <= 800 << 10);
    let kept = first_kept(1).unwrap();
    assert!((20..60).contains(&kept), "{kept}");
    assert!((kept..=100).all(|index| read(1, index)));
    move_to_tail(2);
    assert!(log.tail_bytes() <= 1200 << 10);
    assert!(first_kept(1).unwrap() > kept, "the oldest of all groups went");
    assert_eq!(first_kept(2), Some(kept));
    log.release_tail(2, 90);
    assert!(first_kept(2).unwrap() > kept && read(2, 90));
    log.forget_group(2);
    assert_eq!(first_kept(2), None);
    // What is new begins behind a gap: whoever lacks something older could not go on.
    log.keep_tail(3, 1, 11).unwrap();
    log.keep_tail(3, 50, 61).unwrap();
    log.release_group(3, 101);
    assert_eq!(first_kept(3), Some(50));
}

#[test]
fn an_empty_tail_keeps_no_file_and_what_comes_later_is_found_in_a_new_one() {
    let fs = FaultyFs::new();
    let opened = open(fs.clone(), options()).unwrap();
    let log = &opened.log;
    let dir = Path::new("/data/queues");
    let segments = Segments::open(Arc::new(fs.clone()), dir, SegmentOptions::default());
    log.keep_tails_in(Arc::new(segments.unwrap()), TailLimits::default());
    let mut model = Model::default();
    (1..=30).for_each(|index| model.append(log, 1, index, 1_000));
    let files = || {
        let files = fs.files().into_iter();
        files.filter(|path| path.starts_with(dir)).collect::<Vec<_>>()
    };
    log.keep_tail(1, 1, 11).unwrap();
    log.release_tail(1, 10);
    let before = files();
    assert_eq!(before.len(), 1, "somebody lacks the last one");
    log.release_tail(1, 11);
    assert_eq!((log.tail_bytes(), files()), (0, Vec::new()));
    log.keep_tail(1, 11, 21).unwrap();
    log.release_group(1, 31);
    assert!((11..=20).all(|index| log.group_entries(1, index, index + 1, 0).is_ok()));
    assert_ne!(files(), before, "no place means two things");
    log.forget_group(1);
    assert_eq!(files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn entries_of_a_group_without_a_majority_hold_no_file_once_they_are_carried() {
    let fs = FaultyFs::new();
    let opened = open(fs.clone(), options()).unwrap();
    let mut model = Model::default();
    for index in 1..=20 {
        model.append(&opened.log, 1, index, 300);
    }
    model.append(&opened.log, 1, 15, 300);
    let first = opened.log.begin();
    let mut carried = 0;
    for _ in 0..100 {
        let at = opened.put(1, &[7; 2000]);
        opened.log.release(journal_id(1), at);
        opened.log.sync().unwrap();
        for told in opened.told.try_iter() {
            let Told::Reclaim(journals, before) = told else {
                continue;
            };
            if journals.contains(&JournalId::new(Kind::GROUP, 1)) {
                carried += 1;
                assert!(opened.log.carry_group(1, before).unwrap());
                assert!(
                    opened.log.carry_group(1, before).unwrap(),
                    "there is nothing left to do"
                );
            }
        }
    }
    assert!(carried > 2, "the log came round {carried} times");
    assert!(opened.log.begin() > first);
    model.check(&opened.log, 1);
    let after = fs.crash(3);
    drop(opened);
    let again = open(after, options()).unwrap();
    model.check(&again.log, 1);
    let of_group = again.replayed.iter().filter(|seen| seen.0.kind == Kind::GROUP);
    let replayed: Vec<_> = of_group.map(|seen| seen.2.clone()).collect();
    assert!(
        replayed.iter().eq(model.groups[&1].payloads.values()),
        "each once, and in order"
    );
}
