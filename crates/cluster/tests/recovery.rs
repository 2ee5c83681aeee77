//! What a node's log has of many groups is what its members are after a start: in one pass, in the order in which it was written,
//! wherever a crash cut it off.

#![allow(clippy::unwrap_used, reason = "test code")]

use bytes::Bytes;
use cluster::{GroupId, Groups, MemberId, Membership, NodeId, Recovered, Settings};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use storage::faulty::{Fault, FaultyFs};
use storage::{
    Batch, Callbacks, GroupEntry, HardState, JournalId, Kind, Log, LogOptions, Position, StorageError, System,
};

struct Deaf;

impl Callbacks for Deaf {
    fn durable(&self, _up_to: Position) {}
    fn failed(&self, _error: &StorageError) {}
    fn reclaim(&self, _journals: Vec<JournalId>, _before: Position) {}
}

/// What a member wrote: an entry of this term and index, or a promise of this term.
#[derive(Debug, Clone, Copy)]
enum Written {
    Entry(GroupEntry),
    Promise(u64),
}

/// What was written, where, and of which group.
type History = Vec<(Position, u64, Written)>;

/// A member as it has to be: the term of each entry from index 1 on, and the latest one promised.
#[derive(Debug, Default)]
struct Member {
    terms: Vec<u64>,
    promised: u64,
}

/// What the members are, had they written no more than what stands before `end`.
fn members(history: &History, end: Position) -> BTreeMap<u64, Member> {
    let mut members: BTreeMap<u64, Member> = BTreeMap::new();
    for (_, group, written) in history.iter().take_while(|(at, _, _)| *at < end) {
        let member = members.entry(*group).or_default();
        match written {
            Written::Entry(entry) => {
                member.terms.truncate(entry.index as usize - 1);
                member.terms.push(entry.term);
            }
            Written::Promise(term) => member.promised = *term,
        }
    }
    members
}

fn options() -> LogOptions {
    LogOptions {
        file_bytes: 16 << 10,
        size_limit: 1 << 30,
        make_ahead: false,
        lazy_sync_ms: 60_000,
        retry_ms: 0,
        ..LogOptions::default()
    }
}

/// Opens a log in one pass, with what it has of each group.
fn open(fs: &FaultyFs, options: LogOptions) -> Result<(Log, BTreeMap<u64, Recovered>), StorageError> {
    let me = MemberId::first(NodeId(1));
    let mut found: BTreeMap<u64, Recovered> = BTreeMap::new();
    let mut replay = |journal: JournalId, _: Position, payload: &[u8]| {
        let other = MemberId::first(NodeId(2));
        let new = || Recovered::new_group(me, Membership::of(&[me, other]));
        let member = found.entry(journal.number).or_insert_with(new);
        match journal.kind {
            Kind::GROUP => member.entry(&Bytes::copy_from_slice(payload)).unwrap(),
            _ => member.promise(payload).unwrap(),
        }
    };
    let world = System::over(Arc::new(fs.clone()));
    let log = Log::open(world, Path::new("/log"), options, Deaf, &mut replay)?;
    Ok((log, found))
}

/// The members that were found are those that have to be there, and the log has their entries.
fn check(log: &Log, found: BTreeMap<u64, Recovered>, expected: &BTreeMap<u64, Member>) {
    assert!(found.keys().eq(expected.keys()));
    let mut groups = Groups::new(NodeId(1), 1, Settings::default());
    for (group, recovered) in found {
        let member = &expected[&group];
        groups.open(GroupId(group), recovered).unwrap();
        let status = groups.status(GroupId(group)).unwrap();
        let last_term = member.terms.last().copied().unwrap_or(0);
        assert_eq!(status.last, member.terms.len() as u64);
        assert_eq!(status.term, member.promised.max(last_term));
        let known = (1..=status.last).map(|index| groups.term_at(GroupId(group), index).unwrap());
        assert!(known.eq(member.terms.iter().copied()));
        // The log of many groups is read a hundred times for a hundred of them.
        if group % (1 + expected.len() as u64 / 100) > 0 {
            continue;
        }
        let read = log.group_entries(group, 1, status.last + 1, usize::MAX).unwrap();
        let read = read.iter().map(|payload| GroupEntry::decode(payload).unwrap().0);
        let written = (1..).zip(&member.terms);
        assert!(read.eq(written.map(|(index, term)| GroupEntry { term: *term, index })));
    }
}

/// Writes as members do: they append, now and then somebody else leads and takes the last entries back, and terms are promised.
struct Writer {
    random: fastrand::Rng,
    members: BTreeMap<u64, Member>,
    history: History,
}

impl Writer {
    fn new(seed: u64) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            members: BTreeMap::new(),
            history: History::new(),
        }
    }

    fn write(&mut self, batch: &mut Batch<'_>, group: u64, length: usize) {
        let member = self.members.entry(group).or_default();
        let last_term = member.terms.last().copied().unwrap_or(1);
        let mut term = last_term.max(member.promised);
        if self.random.u8(..) < 60 {
            term += 1;
            let promise = HardState {
                term,
                ..HardState::default()
            };
            let journal = JournalId::new(Kind::HARD_STATE, group);
            let at = batch.record(journal, |out| promise.encode(out));
            self.history.push((at, group, Written::Promise(term)));
            member.promised = term;
            let kept = member.terms.len().saturating_sub(self.random.usize(..4));
            member.terms.truncate(kept);
        }
        let index = member.terms.len() as u64 + 1;
        let entry = GroupEntry { term, index };
        let at = batch.record(JournalId::new(Kind::GROUP, group), |out| {
            entry.encode(out);
            out.resize(out.len() + 1 + length, 0);
        });
        self.history.push((at, group, Written::Entry(entry)));
        member.terms.push(term);
    }

    /// Some entries of three groups, in one batch.
    fn write_some(&mut self, log: &Log, count: usize, length: usize) {
        log.append(|batch| {
            for _ in 0..count {
                let (group, length) = (self.random.u64(..3), self.random.usize(..length));
                self.write(batch, group, length);
            }
        });
    }
}

#[test]
fn ten_thousand_groups_are_recovered_in_one_pass() {
    let fs = FaultyFs::new();
    let large = LogOptions {
        file_bytes: 1 << 20,
        ..options()
    };
    let (log, _) = open(&fs, large.clone()).unwrap();
    let mut writer = Writer::new(1);
    for round in 0..60_000_u64 {
        // Everybody writes, in no order; some write much more than others.
        let any = writer.random.u64(..10_000).min(writer.random.u64(..10_000));
        let group = if round < 10_000 { round * 7 % 10_000 } else { any };
        let length = writer.random.usize(..60);
        log.append(|batch| writer.write(batch, group, length));
    }
    log.sync().unwrap();
    let after = fs.crash(1);
    drop(log);
    let (log, found) = open(&after, large).unwrap();
    let expected = members(&writer.history, log.recovery().end);
    assert_eq!(expected.len(), 10_000);
    check(&log, found, &expected);
}

/// A log that nobody knows to be synced, what was written to it, and its only file.
fn unsynced() -> (FaultyFs, History, PathBuf) {
    let fs = FaultyFs::new();
    let (log, _) = open(&fs, options()).unwrap();
    let mut writer = Writer::new(2);
    (0..30).for_each(|_| writer.write_some(&log, 3, 30));
    log.sync().unwrap();
    let fs = fs.kill();
    drop(log);
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "wal");
    let file = fs.files().into_iter().find(is_log).unwrap();
    (fs, writer.history, file)
}

#[test]
fn wherever_the_end_of_the_log_is_torn_members_are_what_they_were_then() {
    let (fs, history, file) = unsynced();
    let bytes = fs.bytes(&file).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let mut counts = Vec::new();
    for cut in 4096..=used {
        let fs = fs.copy();
        fs.corrupt(&file, |bytes| bytes[cut..].fill(0));
        let (log, found) = open(&fs, options()).unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        let expected = members(&history, log.recovery().end);
        check(&log, found, &expected);
        counts.push(expected.values().map(|member| member.terms.len()).sum::<usize>());
    }
    assert_eq!(counts.first(), Some(&0));
    counts.dedup();
    assert!(counts.len() > 60, "entries came and were taken back: {counts:?}");
}

/// Appends and syncs until the first failure. How much of what was written was synced before.
fn script(fs: &FaultyFs, writer: &mut Writer) -> usize {
    let mut synced = 0;
    let Ok((log, _)) = open(fs, options()) else {
        return synced;
    };
    for _ in 0..12 {
        writer.write_some(&log, 8, 600);
        if log.sync().is_err() {
            return synced;
        }
        synced = writer.history.len();
    }
    synced
}

#[test]
fn a_fault_at_any_operation_costs_members_nothing_that_was_synced() {
    let sound = FaultyFs::new();
    script(&sound, &mut Writer::new(3));
    let calls = sound.calls();
    assert!(calls > 40, "{calls} calls");
    for fault in [Fault::PowerCut, Fault::Io, Fault::Short] {
        for call in 1..=calls {
            let fs = FaultyFs::new();
            fs.fail_at(call, fault);
            let mut writer = Writer::new(3);
            let synced = script(&fs, &mut writer);
            let (log, found) = open(&fs.crash(call), options()).unwrap();
            let end = log.recovery().end;
            let durable = writer.history.iter().take_while(|(at, _, _)| *at < end);
            let durable = durable.count();
            assert!(
                durable >= synced,
                "{fault:?} at call {call}: {durable} of {synced}"
            );
            check(&log, found, &members(&writer.history, end));
        }
    }
}
