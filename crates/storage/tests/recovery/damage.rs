//! Files that are cut, overwritten or missing in the middle of a log.

use super::*;

#[test]
fn an_earlier_file_cut_anywhere_is_noticed() {
    let (fs, ops) = killed_log();
    let files = log_files(&fs);
    for file in &files[..2] {
        let length = fs.bytes(file).unwrap().len();
        for cut in (0..length).step_by(97) {
            let fs = fs.copy();
            fs.corrupt(file, |bytes| bytes.truncate(cut));
            check_mishap(fs, &ops, file, &files[2]);
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_is_noticed() {
    let (fs, ops) = killed_log();
    let files = log_files(&fs);
    let mut opened = 0;
    for file in &files {
        let length = used_length(&fs.bytes(file).unwrap());
        for at in (0..length).step_by(5) {
            let fs = fs.copy();
            fs.corrupt(file, |bytes| bytes[at] ^= 1 << (at % 8));
            opened += u32::from(check_mishap(fs, &ops, file, &files[2]));
        }
    }
    assert!(
        opened > 1000,
        "most flips hit payloads, which concern one journal only: {opened}"
    );
}

#[test]
fn a_zeroed_or_misplaced_sector_is_noticed() {
    let (fs, ops) = killed_log();
    let files = log_files(&fs);
    for file in &files {
        let length = fs.bytes(file).unwrap().len();
        for at in (0..length - 512).step_by(512) {
            let zeroed = fs.copy();
            zeroed.corrupt(file, |bytes| bytes[at..at + 512].fill(0));
            check_mishap(zeroed, &ops, file, &files[2]);
            for from in (0..length - 512).step_by(1536) {
                let misplaced = fs.copy();
                misplaced.corrupt(file, |bytes| bytes.copy_within(from..from + 512, at));
                check_mishap(misplaced, &ops, file, &files[2]);
            }
        }
    }
}

#[test]
fn a_file_put_in_the_place_of_another_is_refused() {
    let (fs, ops) = killed_log();
    let files = log_files(&fs);
    for from in &files {
        for to in files.iter().filter(|to| *to != from) {
            let fs = fs.copy();
            let bytes = fs.bytes(from).unwrap();
            fs.corrupt(to, |old| *old = bytes);
            assert!(!check_mishap(fs, &ops, to, &files[2]));
        }
    }
}

#[test]
fn a_missing_file_in_the_middle_is_refused() {
    let (fs, _) = killed_log();
    let files = log_files(&fs);
    let bytes: Vec<_> = files.iter().map(|file| fs.bytes(file).unwrap()).collect();
    let gap = FaultyFs::new();
    gap.plant(&files[0], bytes[0].clone());
    gap.plant(&files[2], bytes[2].clone());
    assert!(refusal(&gap, tiny()).contains("0000000000000002.wal is missing"));
}

/// The offset of a needle in the last file.
fn find(fs: &FaultyFs, needle: &[u8]) -> (PathBuf, usize) {
    for file in log_files(fs) {
        let bytes = fs.bytes(&file).unwrap();
        if let Some(at) = bytes.windows(needle.len()).position(|window| window == needle) {
            return (file, at);
        }
    }
    panic!("not found");
}

/// Four records, each synced before the next, all in one file.
fn four_records() -> (FaultyFs, Opened) {
    let fs = FaultyFs::new();
    let opened = open(fs.clone(), tiny()).unwrap();
    for (journal, payload) in [
        (1, "first of one"),
        (2, "only of two"),
        (1, "second of one"),
        (3, "last of all"),
    ] {
        assert!(opened.keep(journal, payload.as_bytes(), journal));
    }
    (fs, opened)
}

#[test]
fn damage_to_a_payload_concerns_its_journal_only() {
    let (fs, opened) = four_records();
    opened.log.sync().unwrap();
    let fs = fs.kill();
    let (file, at) = find(&fs, b"only of two");
    fs.corrupt(&file, |bytes| bytes[at] ^= 1);
    for _start in 0..2 {
        let opened = open(fs.clone(), tiny()).unwrap();
        let damage = &opened.log.recovery().damage;
        assert_eq!(damage.len(), 1);
        assert_eq!((&damage[0].file, damage[0].journal), (&file, Some(journal_id(2))));
        assert_eq!(damage[0].offset as usize, at - 24);
        assert_eq!(opened.payloads(1).len(), 2);
        assert_eq!(opened.payloads(2).len(), 0);
        assert_eq!(opened.payloads(3).len(), 1);
        assert!(matches!(
            opened.log.read(damage[0].position),
            Err(LogError::Corrupt { journal: Some(journal), .. }) if journal == journal_id(2)
        ));
        opened.log.close().unwrap();
    }
    // Once the queue is given up, the damage is nobody's any more.
    let opened = open(fs.clone(), tiny()).unwrap();
    opened.log.forget(journal_id(2));
    opened.log.close().unwrap();
    assert!(open(fs, tiny()).unwrap().log.recovery().damage.is_empty());
}

#[test]
fn damage_does_not_heal_when_its_file_is_needed_by_nobody_else() {
    let (fs, opened) = four_records();
    opened.log.forget(journal_id(1));
    opened.log.forget(journal_id(3));
    opened.log.close().unwrap();
    let (file, at) = find(&fs, b"only of two");
    fs.corrupt(&file, |bytes| bytes[at] ^= 1);
    for _start in 0..3 {
        let opened = open(fs.clone(), tiny()).unwrap();
        assert_eq!(opened.log.recovery().damage.len(), 1);
        assert!(opened.replayed.is_empty());
        opened.log.close().unwrap();
    }
}

#[test]
fn what_lies_behind_the_damage_is_replayed() {
    let (fs, opened) = four_records();
    opened.log.sync().unwrap();
    let fs = fs.kill();
    let (file, at) = find(&fs, b"first of one");
    fs.corrupt(&file, |bytes| bytes[at + 3] ^= 1);
    let opened = open(fs, tiny()).unwrap();
    assert_eq!(opened.log.recovery().damage.len(), 1);
    assert_eq!(opened.payloads(1), [b"second of one".to_vec()]);
    assert_eq!(opened.payloads(2).len(), 1);
}

#[test]
fn nothing_is_changed_for_a_caller_who_does_not_accept_what_was_found() {
    let (fs, opened) = four_records();
    opened.log.close().unwrap();
    let (before, mut seen) = (fs.files(), 0);
    let refused = support::open_if(fs.clone(), tiny(), &mut |recovery| {
        seen = recovery.records;
        Err(LogError::Refused {
            what: "no".to_owned(),
        })
    });
    assert!(matches!(refused, Err(LogError::Refused { .. })));
    assert_eq!((seen, fs.files()), (4, before));
}

#[test]
fn damage_to_a_record_header_may_be_anybodys_and_is_refused() {
    let (fs, opened) = four_records();
    drop(opened);
    let (file, at) = find(&fs, b"only of two");
    fs.corrupt(&file, |bytes| bytes[at - 1] ^= 1);
    let error = open(fs.clone(), tiny()).err().unwrap();
    match &error {
        LogError::Corrupt {
            file: blamed,
            offset,
            journal: None,
            ..
        } => {
            assert_eq!((blamed, *offset as usize), (&file, at - 24));
        }
        other => panic!("{other}"),
    }
    assert!(
        error
            .to_string()
            .contains(&format!("damaged at byte {}", at - 24))
    );
    let opened = open(
        fs,
        LogOptions {
            quarantine: true,
            ..tiny()
        },
    )
    .unwrap();
    assert_eq!(opened.log.recovery().damage.len(), 1);
    assert_eq!(opened.log.recovery().damage[0].journal, None);
    assert_eq!(
        (
            opened.payloads(1).len(),
            opened.payloads(2).len(),
            opened.payloads(3).len()
        ),
        (2, 0, 1)
    );
}

#[test]
fn a_clean_end_vouches_for_the_last_record() {
    let (fs, opened) = four_records();
    opened.log.close().unwrap();
    let (file, at) = find(&fs, b"last of all");
    fs.corrupt(&file, |bytes| bytes[at] ^= 1);
    let opened = open(fs, tiny()).unwrap();
    assert_eq!(opened.log.recovery().damage[0].journal, Some(journal_id(3)));
}

#[test]
fn what_was_never_synced_is_cut_even_if_something_behind_it_survived() {
    let fs = FaultyFs::new();
    let opened = open(
        fs.clone(),
        LogOptions {
            file_bytes: 16 << 20,
            ..tiny()
        },
    )
    .unwrap();
    assert!(opened.keep(1, b"synced", 1));
    // Each is a block of its own, written at once because of its size, and not synced.
    let large = vec![0x55; 1 << 20];
    let places: Vec<Position> = (0..3).map(|_| opened.put(1, &large)).collect();
    while opened.log.pending_bytes() > 0 {
        std::thread::yield_now();
    }
    let fs = fs.kill();
    let (file, _) = find(&fs, b"synced");
    let offset = places[1].0 as usize + 4096 + 24 + 1000;
    fs.corrupt(&file, |bytes| bytes[offset] ^= 1);
    let opened = open(fs.clone(), tiny()).unwrap();
    assert_eq!(opened.payloads(1), [b"synced".to_vec(), large]);
    let cut = opened.log.recovery().cut.clone().unwrap();
    assert_eq!((&cut.file, cut.offset), (&file, places[1].0 + 4096));
    assert!(opened.log.recovery().damage.is_empty());
    // What lies behind the cut stays cut.
    assert!(opened.keep(1, b"new", 1));
    let again = open(fs.kill(), tiny()).unwrap();
    assert_eq!(again.payloads(1).last().unwrap(), b"new");
    assert_eq!(again.payloads(1).len(), 3);
}

#[test]
fn an_unreadable_file_is_set_aside_in_quarantine() {
    let (fs, ops) = killed_log();
    let files = log_files(&fs);
    fs.corrupt(&files[1], |bytes| bytes[..4096].fill(0));
    assert!(matches!(open(fs.clone(), tiny()), Err(LogError::Corrupt { .. })));
    let opened = open(
        fs.clone(),
        LogOptions {
            quarantine: true,
            ..tiny()
        },
    )
    .unwrap();
    check_no_invention(&ops, &opened.replayed);
    assert!(!opened.replayed.is_empty());
    assert!(
        fs.files()
            .iter()
            .any(|path| path.to_string_lossy().ends_with(".damaged"))
    );
    assert!(opened.keep(1, b"and it goes on", 1));
}

#[test]
fn junk_in_the_directory_is_left_alone() {
    let (fs, ops) = killed_log();
    for name in [
        "notes.txt",
        "0000000000000001.wal.damaged",
        "12.wal",
        "zzzzzzzzzzzzzzzz.wal",
    ] {
        fs.plant(&support::dir().join(name), b"junk".to_vec());
    }
    let opened = open(fs.clone(), tiny()).unwrap();
    check_prefix(&ops, ops.len(), &opened.replayed);
    assert_eq!(fs.bytes(&support::dir().join("notes.txt")).unwrap(), b"junk");
}

#[test]
fn random_damage_never_invents_anything() {
    let (fs, ops) = killed_log();
    let files = log_files(&fs);
    for seed in 0..300 {
        let random = &mut Random(seed);
        let fs = fs.copy();
        for _ in 0..=random.below(6) {
            let file = &files[random.below(3) as usize];
            fs.corrupt(file, |bytes| damage(bytes, random));
        }
        for quarantine in [false, true] {
            if let Ok(opened) = open(fs.copy(), LogOptions { quarantine, ..tiny() }) {
                check_no_invention(&ops, &opened.replayed);
                for (_, position, payload) in &opened.replayed {
                    assert_eq!(opened.log.read(*position).unwrap(), *payload);
                }
            } else {
                assert!(!quarantine, "seed {seed}: quarantine must open anything");
            }
        }
    }
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let at = random.below(bytes.len() as u64) as usize;
    let end = (at + 1 + random.below(700) as usize).min(bytes.len());
    match random.below(6) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at..end].fill(0),
        2 => bytes[at..end]
            .iter_mut()
            .for_each(|byte| *byte = random.bits() as u8),
        3 => bytes.truncate(at),
        4 => bytes.extend_from_within(at..end),
        _ => {
            let from = random.below((bytes.len() - (end - at) + 1) as u64) as usize;
            bytes.copy_within(from..from + (end - at), at);
        }
    }
}
