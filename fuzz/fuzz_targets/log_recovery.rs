//! Opening a log that a failing disk, or an enemy, has been at: no panic, whatever the bytes; and after damage of the
//! kinds that disks do, nothing is replayed that was not written; nor is any of it read by a group's index.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use storage::faulty::FaultyFs;
use storage::{
    Callbacks, GroupEntry, HardState, JournalId, Kind, Log, LogError, LogOptions, Position, System,
};

struct Deaf;

impl Callbacks for Deaf {
    fn durable(&self, _up_to: Position) {}
    fn failed(&self, _error: &LogError) {}
    fn reclaim(&self, _journals: Vec<JournalId>, _before: Position) {}
}

type Records = HashMap<Position, (JournalId, Vec<u8>)>;

fn options(quarantine: bool) -> LogOptions {
    LogOptions {
        file_bytes: 6 << 10,
        size_limit: 1 << 20,
        quarantine,
        ..LogOptions::default()
    }
}

/// What replay shows, without opening the log for good.
fn read(fs: &FaultyFs, quarantine: bool) -> Option<Records> {
    let mut records = Records::new();
    let mut replay = |journal, position, payload: &[u8]| {
        records.insert(position, (journal, payload.to_vec()));
    };
    Log::inspect(fs, Path::new("/log"), &options(quarantine), &mut replay).ok()?;
    Some(records)
}

fn open(fs: &FaultyFs, quarantine: bool) -> Option<(Log, Records)> {
    let mut records = Records::new();
    let mut replay = |journal, position, payload: &[u8]| {
        records.insert(position, (journal, payload.to_vec()));
    };
    let log = Log::open(
        System::over(Arc::new(fs.clone())),
        Path::new("/log"),
        options(quarantine),
        Deaf,
        &mut replay,
    );
    match log {
        Ok(log) => Some((log, records)),
        Err(error) => {
            assert!(
                !quarantine || matches!(error, LogError::Version { .. }),
                "{error}"
            );
            None
        }
    }
}

/// What is appended at once: something of a queue, an entry of a group, and now and then a promise. Entries are overwritten:
/// their indices go back.
fn records(number: u8) -> Vec<(JournalId, Vec<u8>)> {
    let body = vec![number; usize::from(number) * 9];
    let (group, round) = (u64::from(number % 2) + 1, u64::from(number / 2));
    let (term, index) = (1 + round / 5, 1 + round % 5 + round / 5 * 2);
    let mut entry = Vec::new();
    GroupEntry { term, index }.encode(&mut entry);
    entry.extend_from_slice(&body);
    let mut promise = Vec::new();
    HardState {
        term,
        ..HardState::default()
    }
    .encode(&mut promise);
    let mut records = vec![
        (JournalId::new(Kind::QUEUE, u64::from(number % 3)), body),
        (JournalId::new(Kind::GROUP, group), entry),
    ];
    if round % 5 == 0 {
        records.push((JournalId::new(Kind::HARD_STATE, group), promise));
    }
    records
}

/// Reads what the log has of groups, by index; and checks, if `written` says what was written, that it is of that.
fn read_groups(log: &Log, groups: &BTreeSet<u64>, written: Option<&Records>) {
    for group in groups {
        let Some((first, last)) = log.group_span(*group) else {
            continue;
        };
        let journal = JournalId::new(Kind::GROUP, *group);
        let mut next = first;
        // Some were invented, perhaps: indices without end, in a record that looks sound.
        for _ in 0..100 {
            let Ok(read) = log.group_entries(*group, next, last, 1000) else {
                next = next.saturating_add(1);
                continue;
            };
            for payload in &read {
                let index = GroupEntry::decode(payload).map(|(entry, _)| entry.index);
                assert_eq!(index, Some(next), "entries follow each other");
                next = next.saturating_add(1);
                if let Some(written) = written {
                    assert!(written.values().any(|known| known == &(journal, payload.clone())));
                }
            }
        }
    }
}

/// A sound log of three files, all that was ever written to it, and the files' names.
fn sound() -> &'static (FaultyFs, Records, Vec<PathBuf>) {
    static SOUND: OnceLock<(FaultyFs, Records, Vec<PathBuf>)> = OnceLock::new();
    SOUND.get_or_init(|| {
        let fs = FaultyFs::new();
        let (log, _) = open(&fs, false).expect("a new log");
        let mut written = Records::new();
        for number in 0..30_u8 {
            log.append(|batch| {
                for (journal, payload) in records(number) {
                    let position = batch.record(journal, |out| out.extend_from_slice(&payload));
                    written.insert(position, (journal, payload));
                }
                if number == 20 {
                    batch.release(JournalId::new(Kind::QUEUE, 1), batch.end());
                    batch.release_group(2, 4);
                }
            });
            log.sync().expect("a sync in memory");
        }
        let fs = fs.kill();
        drop(log);
        let files = fs.files();
        (fs, written, files)
    })
}

/// Damages as disks do, at most three times, as the input says.
fn damage(bytes: &mut Vec<u8>, edit: &[u8; 5]) {
    if bytes.is_empty() {
        return;
    }
    let at = usize::from(u16::from_le_bytes([edit[1], edit[2]])) % bytes.len();
    let from = usize::from(u16::from_le_bytes([edit[3], edit[4]])) % bytes.len();
    let length = 512.min(bytes.len() - at).min(bytes.len() - from);
    match edit[0] % 5 {
        0 => bytes[at] ^= edit[3],
        1 => bytes[at..at + length].fill(0),
        2 => bytes.copy_within(from..from + length, at),
        3 => bytes.truncate(at),
        _ => bytes[at..at + length].fill(edit[3]),
    }
}

fuzz_target!(|input: &[u8]| {
    let (fs, written, files) = sound();
    let Some((mode, rest)) = input.split_first() else {
        return;
    };
    let fs = fs.copy();
    let file = &files[usize::from(mode >> 4) % files.len()];
    match mode % 3 {
        // Anything at all, as a file.
        0 => {
            fs.corrupt(file, |bytes| *bytes = rest.to_vec());
        }
        // Anything at all, behind a sound header.
        1 => {
            fs.corrupt(file, |bytes| {
                bytes.splice(4096.., rest.iter().copied()).for_each(drop)
            });
        }
        _ => {
            for edit in rest.as_chunks::<5>().0.iter().take(3) {
                let file = &files[usize::from(edit[0] >> 4) % files.len()];
                fs.corrupt(file, |bytes| damage(bytes, edit));
            }
        }
    }
    let quarantine = mode & 8 != 0;
    let records = read(&fs, quarantine);
    if let Some(records) = &records
        && mode % 3 == 2
    {
        assert!(
            records
                .iter()
                .all(|(position, record)| written.get(position) == Some(record))
        );
    }
    // Opening for good starts a thread and makes files, which costs a hundred times as much.
    if rest.len() % 64 == 0 {
        let opened = open(&fs, quarantine);
        assert_eq!(opened.is_some(), records.is_some());
        if let Some((log, records)) = opened {
            for (position, (_, payload)) in &records {
                assert_eq!(
                    log.read(*position).expect("what was replayed can be read"),
                    *payload
                );
            }
            let groups = records
                .values()
                .filter(|(journal, _)| journal.kind == Kind::GROUP);
            let groups = groups.map(|(journal, _)| journal.number).collect();
            read_groups(&log, &groups, Some(written).filter(|_| mode % 3 == 2));
        }
    }
});
