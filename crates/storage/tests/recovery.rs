//! Opening what a crash, a failing disk or a clumsy hand left behind: whole, cut, reported or refused; never wrong.

#![allow(clippy::unwrap_used, reason = "test code")]

#[path = "recovery/damage.rs"]
mod damage;
mod support;

use std::path::PathBuf;
use storage::faulty::{FaultyFs, Random};
use storage::{FileSystem, LogError, LogOptions, Position, set_journals_aside};
use support::{Op, Opened, Seen, check_prefix, journal_id, open, visible};

fn tiny() -> LogOptions {
    LogOptions {
        file_bytes: 7 << 10,
        size_limit: 1 << 20,
        spare_files: 0,
        make_ahead: false,
        lazy_sync_ms: 60_000,
        retry_ms: 1,
        quarantine: false,
        must_exist: false,
    }
}

/// A log of three files, killed: what was done to it, and the files.
fn killed_log() -> (FaultyFs, Vec<Op>) {
    log_of_three(false)
}

/// A log of three files, closed or killed.
fn log_of_three(closed: bool) -> (FaultyFs, Vec<Op>) {
    let fs = FaultyFs::new();
    let opened = open(fs.clone(), tiny()).unwrap();
    let mut ops = Vec::new();
    for number in 0..24_u64 {
        let payload: Vec<u8> = (0..(number * 37 % 600))
            .map(|at| (at * 7 + number) as u8)
            .collect();
        let journal = number % 4;
        if number == 13 {
            let before = opened.log.end();
            opened.log.release(journal_id(2), before);
            ops.push(Op::Release(journal_id(2), before));
        }
        let position = opened.put(journal, &payload);
        ops.push(Op::Record((journal_id(journal), position, payload)));
        opened.log.sync().unwrap();
    }
    if closed {
        opened.log.close().unwrap();
    }
    (fs.kill(), ops)
}

fn log_files(fs: &FaultyFs) -> Vec<PathBuf> {
    fs.files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "wal"))
        .collect()
}

/// Bytes of the last file that are not the zeros of its preallocation.
fn used_length(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1)
}

/// Everything replayed was written just so.
fn check_no_invention(ops: &[Op], replayed: &[Seen]) {
    let mut known = ops.iter();
    for seen in replayed {
        let found = known.any(|op| matches!(op, Op::Record(record) if record == seen));
        assert!(
            found,
            "replayed out of order or never written: {:?} at {:?}",
            seen.0, seen.1
        );
    }
}

/// Opens after a mishap in `hit`; what is missing must be explained. True if it could be opened.
fn check_mishap(fs: FaultyFs, ops: &[Op], hit: &PathBuf, last: &PathBuf) -> bool {
    match open(fs, tiny()) {
        Err(LogError::Corrupt { file, .. }) => {
            assert!(file <= *hit, "{} blamed for {}", file.display(), hit.display());
            false
        }
        Err(error) => panic!("{error}"),
        Ok(opened) => {
            check_no_invention(ops, &opened.replayed);
            let whole = visible(ops).into_iter().eq(&opened.replayed);
            let report = opened.log.recovery();
            // The end of the last file is the one place where damage looks like a write that never finished.
            let excused = !report.damage.is_empty() || hit == last;
            assert!(
                whole || excused,
                "records vanished silently from {}",
                hit.display()
            );
            true
        }
    }
}

#[test]
fn the_log_is_whole_after_a_kill() {
    let (fs, ops) = killed_log();
    assert_eq!(log_files(&fs).len(), 3);
    let opened = open(fs, tiny()).unwrap();
    assert_eq!(check_prefix(&ops, ops.len(), &opened.replayed), ops.len());
    assert!(opened.log.recovery().damage.is_empty() && opened.log.recovery().cut.is_none());
}

#[test]
fn the_last_file_unwritten_from_any_byte_on_yields_a_prefix() {
    let (fs, ops) = killed_log();
    let last = log_files(&fs).pop().unwrap();
    let length = used_length(&fs.bytes(&last).unwrap());
    let mut longest = 0;
    for end in 4096..=length {
        let fs = fs.copy();
        fs.corrupt(&last, |bytes| bytes[end..].fill(0));
        let opened = open(fs, tiny()).unwrap();
        let count = check_prefix(&ops, 0, &opened.replayed);
        assert!(count >= longest);
        longest = count;
    }
    assert_eq!(longest, ops.len());
}

#[test]
fn a_last_file_cut_short_at_any_byte_is_refused_however_the_log_ended() {
    for closed in [false, true] {
        let (fs, _) = log_of_three(closed);
        let last = log_files(&fs).pop().unwrap();
        for cut in 0..fs.bytes(&last).unwrap().len() {
            let fs = fs.copy();
            fs.corrupt(&last, |bytes| bytes.truncate(cut));
            match open(fs.clone(), tiny()) {
                Err(LogError::Corrupt { file, offset, .. }) => {
                    assert_eq!((&file, offset), (&last, if cut < 48 { 0 } else { cut as u64 }));
                }
                other => panic!("cut at {cut}: {:?}", other.map(|opened| opened.replayed)),
            }
        }
    }
}

#[test]
fn what_a_clean_stop_left_is_no_torn_tail_when_it_is_gone() {
    let (fs, ops) = log_of_three(true);
    let last = log_files(&fs).pop().unwrap();
    let length = used_length(&fs.bytes(&last).unwrap());
    let opened = open(fs.copy(), tiny()).unwrap();
    assert!(opened.log.recovery().clean);
    check_prefix(&ops, ops.len(), &opened.replayed);
    for end in 4096..length {
        let fs = fs.copy();
        fs.corrupt(&last, |bytes| bytes[end..].fill(0));
        match open(fs, tiny()) {
            Err(LogError::Corrupt { file, .. }) => assert_eq!(file, last),
            Err(error) => panic!("{error}"),
            // Only one journal's payload is damaged.
            Ok(opened) => assert!(!opened.log.recovery().damage.is_empty(), "from {end} on"),
        }
    }
}

/// The sentence with which a log is refused.
fn refusal(fs: &FaultyFs, options: LogOptions) -> String {
    let before = fs.files();
    match open(fs.clone(), options) {
        Err(error @ LogError::Incomplete { .. }) => {
            assert_eq!(fs.files(), before, "nothing is touched");
            error.to_string()
        }
        Err(error) => panic!("{error}"),
        Ok(opened) => panic!("opened with {} records", opened.replayed.len()),
    }
}

#[test]
fn a_missing_file_is_named_wherever_it_stood() {
    for closed in [false, true] {
        let (fs, _) = log_of_three(closed);
        let files = log_files(&fs);
        for missing in &files {
            let fs = fs.copy();
            fs.remove(missing).unwrap();
            let name = missing.file_name().unwrap().to_str().unwrap();
            let refusal = refusal(&fs, tiny());
            assert!(refusal.contains(&format!("{name} is missing")), "{refusal}");
        }
        files.iter().for_each(|file| fs.remove(file).unwrap());
        let refusal = refusal(&fs, tiny());
        assert!(
            refusal.contains("0000000000000001.wal to 0000000000000003.wal are missing"),
            "{refusal}"
        );
    }
}

#[test]
fn files_of_a_log_without_their_list_are_refused() {
    let (fs, _) = killed_log();
    fs.remove(&support::dir().join("chain")).unwrap();
    assert!(refusal(&fs, tiny()).contains("the file 'chain' is missing"));
}

#[test]
fn a_log_that_must_exist_is_not_begun_anew() {
    let fs = FaultyFs::new();
    fs.create_dir(&support::dir()).unwrap();
    let options = LogOptions {
        must_exist: true,
        ..tiny()
    };
    assert!(refusal(&fs, options.clone()).contains("no file at all"));
    drop(open(fs.clone(), tiny()).unwrap());
    open(fs, options).unwrap();
}

#[test]
fn a_log_of_an_older_version_is_refused_in_words() {
    let (fs, _) = killed_log();
    for file in log_files(&fs) {
        fs.corrupt(&file, |bytes| {
            for at in [0, 2048] {
                let copy = &mut bytes[at..at + 48];
                copy[8] = 2;
                copy[12..16].fill(0);
                let crc = crc32fast::hash(copy);
                copy[12..16].copy_from_slice(&crc.to_le_bytes());
            }
        });
    }
    let refused = open(fs, tiny()).err().unwrap().to_string();
    assert!(
        refused.contains("format version 2, which this program does not read (it writes version 3)"),
        "{refused}"
    );
}

#[test]
fn journals_set_aside_are_whole_and_the_log_stays_as_it_is() {
    let (fs, ops) = killed_log();
    let to = PathBuf::from("/data/aside");
    let told =
        set_journals_aside(&fs, &support::dir(), &tiny(), &|journal| journal.number == 3, &to).unwrap();
    let records = ops
        .iter()
        .filter(|op| matches!(op, Op::Record((journal, ..)) if journal.number == 3));
    assert_eq!((told.len(), told[0].records), (1, records.count() as u64));
    let kept = fs.bytes(&told[0].file).unwrap();
    for op in &ops {
        if let Op::Record((journal, _, payload)) = op
            && journal.number == 3
        {
            assert!(payload.is_empty() || kept.windows(payload.len()).any(|window| window == payload));
        }
    }
    check_prefix(&ops, ops.len(), &open(fs, tiny()).unwrap().replayed);
}

#[test]
fn a_log_opened_without_its_newest_file_is_whole_once_nobody_needs_the_older_ones() {
    let (fs, ops) = killed_log();
    fs.remove(&log_files(&fs)[2]).unwrap();
    let options = LogOptions {
        quarantine: true,
        ..tiny()
    };
    let opened = open(fs.clone(), options.clone()).unwrap();
    check_no_invention(&ops, &opened.replayed);
    assert_eq!(opened.log.recovery().damage.len(), 1);
    drop(opened);
    assert!(refusal(&fs, tiny()).contains("0000000000000003.wal is missing"));
    let opened = open(fs.clone(), options).unwrap();
    let end = opened.log.end();
    (0..4).for_each(|journal| opened.log.forget(journal_id(journal)));
    opened.log.sync().unwrap();
    opened.log.sync().unwrap();
    opened.log.close().unwrap();
    assert!(opened.log.begin() >= end);
    assert!(open(fs, tiny()).unwrap().replayed.is_empty());
}
