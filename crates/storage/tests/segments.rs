//! Segment files: what is appended and synced is there, what is freed gives its disk back, and faults are told.

#![allow(clippy::unwrap_used, reason = "test code")]

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use storage::faulty::{Fault, FaultyFs, Random};
use storage::{Disk, FileSystem, JournalId, Kind, Place, SegmentError, SegmentOptions, Segments};

const DIR: &str = "/data/queues";

fn small() -> SegmentOptions {
    SegmentOptions {
        segment_bytes: 4 << 10,
        open_files: 4,
    }
}

fn open(fs: &FaultyFs) -> Segments {
    Segments::open(Arc::new(fs.clone()), Path::new(DIR), small()).unwrap()
}

/// The owner of this number.
fn of(number: u64) -> JournalId {
    JournalId::new(Kind::QUEUE, number)
}

fn put(segments: &Segments, owner: u64, entry: &[u8]) -> Place {
    let mut places = Vec::new();
    segments.append(of(owner), [[entry]], &mut places).unwrap();
    places[0]
}

fn files(fs: &FaultyFs) -> Vec<PathBuf> {
    fs.files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "segment"))
        .collect()
}

#[test]
fn entries_of_several_parts_are_read_back() {
    let fs = FaultyFs::new();
    let segments = open(&fs);
    let heads: Vec<[u8; 8]> = (0..200_u64).map(u64::to_le_bytes).collect();
    let bodies: Vec<Vec<u8>> = (0..200_usize).map(|n| vec![n as u8; n * 13 % 700]).collect();
    let mut places = Vec::new();
    let entries = heads
        .iter()
        .zip(&bodies)
        .map(|(head, body)| [head.as_slice(), body.as_slice()]);
    segments.append(of(5), entries, &mut places).unwrap();
    segments.sync(of(5)).unwrap();
    assert_eq!(places.len(), 200);
    assert!(places.last().unwrap().segment > 10);
    let expected: Vec<Vec<u8>> = heads
        .iter()
        .zip(&bodies)
        .map(|(h, b)| [h.as_slice(), b].concat())
        .collect();
    for (place, entry) in places.iter().zip(&expected) {
        assert_eq!(segments.read(of(5), *place).unwrap(), *entry);
    }
}

#[test]
fn an_entry_larger_than_a_segment_gets_a_file_of_its_own() {
    let fs = FaultyFs::new();
    let segments = open(&fs);
    let before = put(&segments, 1, b"before");
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| (n >> 5) as u8).collect();
    let place = put(&segments, 1, &large);
    let after = put(&segments, 1, b"after");
    assert_eq!(segments.read(of(1), place).unwrap(), large);
    assert_eq!([before.segment, place.segment, after.segment], [1, 2, 3]);
    assert_eq!(segments.read(of(1), after).unwrap(), b"after");
}

#[test]
fn a_file_goes_with_its_last_entry() {
    let fs = FaultyFs::new();
    let segments = open(&fs);
    let places: Vec<Place> = (0..40).map(|n| put(&segments, 1, &[n; 1000])).collect();
    assert_eq!(files(&fs).len(), 10);
    let (live, disk) = segments.owner_bytes(of(1));
    assert_eq!(live, 40 * 1008);
    assert!(disk > live && disk < live + 40 * 40);
    for place in &places[..39] {
        segments.free(of(1), *place);
    }
    assert_eq!(files(&fs).len(), 1);
    assert!(matches!(
        segments.read(of(1), places[0]),
        Err(SegmentError::Gone { .. })
    ));
    assert_eq!(segments.read(of(1), places[39]).unwrap(), [39; 1000]);
}

#[test]
fn a_large_file_being_written_goes_too_once_nothing_in_it_is_needed() {
    let fs = FaultyFs::new();
    let options = SegmentOptions::default();
    let segments = Segments::open(Arc::new(fs.clone()), Path::new(DIR), options).unwrap();
    let large = vec![1; 1 << 20];
    let place = put(&segments, 1, &large);
    segments.free(of(1), place);
    assert!(files(&fs).is_empty());
    let next = put(&segments, 1, b"next");
    segments.sync(of(1)).unwrap();
    assert_eq!(segments.read(of(1), next).unwrap(), b"next");
}

#[cfg(target_os = "linux")]
#[test]
fn a_deleted_file_is_closed_even_if_its_owner_is_never_synced() {
    let dir = std::env::temp_dir().join(format!("leveret-unsynced-{}", std::process::id()));
    let segments = Segments::open(Arc::new(Disk), &dir, small()).unwrap();
    // A backlog that runs through: something new behind, something old away in front, many files long.
    let mut waiting = std::collections::VecDeque::new();
    for _ in 0..200 {
        waiting.push_back(put(&segments, 3, &[7; 1000]));
        if waiting.len() > 20 {
            segments.free(of(3), waiting.pop_front().unwrap());
        }
    }
    let held = std::fs::read_dir("/proc/self/fd").unwrap().filter(|fd| {
        let target = fd.as_ref().ok().and_then(|fd| std::fs::read_link(fd.path()).ok());
        target.is_some_and(|it| it.starts_with(&dir) && it.to_string_lossy().ends_with("(deleted)"))
    });
    let held = held.count();
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(held, 0);
}

#[test]
fn a_sparse_segment_is_named_once_and_can_be_rewritten() {
    let fs = FaultyFs::new();
    let segments = open(&fs);
    let places: Vec<Place> = (0..100).map(|n| put(&segments, 1, &[n; 200])).collect();
    let first = places[0].segment;
    let (head, rest): (Vec<&Place>, Vec<&Place>) = places.iter().partition(|place| place.segment == first);
    let (stuck, gone) = head.split_first().unwrap();
    gone.iter().for_each(|place| segments.free(of(1), **place));
    assert_eq!(
        segments.sparse(of(1)),
        None,
        "the head of a long queue goes by itself"
    );
    let (last, gone) = rest.split_last().unwrap();
    gone.iter().for_each(|place| segments.free(of(1), **place));
    assert_eq!(segments.sparse(of(1)), Some(first));
    assert_eq!(segments.sparse(of(1)), None, "it was named");
    let moved = put(&segments, 1, &segments.read(of(1), **stuck).unwrap());
    segments.sync(of(1)).unwrap();
    segments.free(of(1), **stuck);
    assert!(segments.read(of(1), **stuck).is_err());
    assert_eq!(segments.read(of(1), moved).unwrap(), [0; 200]);
    assert_eq!(segments.read(of(1), **last).unwrap(), [99; 200]);
}

#[test]
fn many_small_files_of_many_restarts_are_worth_merging() {
    let fs = FaultyFs::new();
    let mut places = Vec::new();
    for _restart in 0..5 {
        let segments = open(&fs);
        assert!(places.iter().all(|place| segments.adopt(of(1), *place)));
        segments.sweep(&|_| None).unwrap();
        places.push(put(&segments, 1, b"little"));
        segments.sync(of(1)).unwrap();
    }
    let segments = open(&fs);
    assert!(places.iter().all(|place| segments.adopt(of(1), *place)));
    segments.sweep(&|_| None).unwrap();
    let mut rounds = 0;
    while let Some(sparse) = segments.sparse(of(1)) {
        let place = places.iter_mut().find(|place| place.segment == sparse).unwrap();
        let moved = put(&segments, 1, &segments.read(of(1), *place).unwrap());
        segments.free(of(1), *place);
        *place = moved;
        rounds += 1;
        assert!(rounds < 10);
    }
    assert!(files(&fs).len() <= 4);
    assert!(
        places
            .iter()
            .all(|place| segments.read(of(1), *place).unwrap() == b"little")
    );
}

#[test]
fn at_start_what_nobody_adopts_is_deleted() {
    let fs = FaultyFs::new();
    let segments = open(&fs);
    let kept = put(&segments, 1, &[1; 3000]);
    let dropped = put(&segments, 1, &[2; 3000]);
    put(&segments, 2, b"a whole owner");
    segments.sync(of(1)).unwrap();
    segments.sync(of(2)).unwrap();
    let fs = fs.crash(0);
    let segments = open(&fs);
    assert!(segments.adopt(of(1), kept));
    assert!(!segments.adopt(of(1), Place { length: 4000, ..kept }));
    assert!(!segments.adopt(of(3), kept));
    segments.sweep(&|_| None).unwrap();
    assert_eq!(files(&fs).len(), 1);
    assert!(!fs.list(Path::new(DIR)).unwrap().contains(&"2".to_owned()));
    assert_eq!(segments.read(of(1), kept).unwrap(), [1; 3000]);
    assert!(segments.read(of(1), dropped).is_err());
    let next = put(&segments, 1, b"next");
    assert!(next.segment > kept.segment);
    assert_eq!(segments.owner_bytes(of(2)), (0, 0));
}

#[test]
fn the_number_of_a_file_that_is_gone_is_not_given_to_another_one() {
    let fs = FaultyFs::new();
    let lost = put(&open(&fs), 1, b"lost");
    let path = files(&fs).remove(0);
    fs.remove(std::path::Path::new(&path)).unwrap();
    let segments = open(&fs);
    assert!(!segments.adopt(of(1), lost));
    segments.sweep(&|_| None).unwrap();
    let kept = put(&segments, 1, b"kept");
    segments.sync(of(1)).unwrap();
    assert_ne!(kept.segment, lost.segment);
    assert!(segments.read(of(1), lost).is_err());
    segments.free(of(1), lost);
    assert_eq!(segments.read(of(1), kept).unwrap(), b"kept");
}

#[test]
fn what_nobody_adopts_of_a_damaged_owner_is_kept_in_another_folder() {
    let fs = FaultyFs::new();
    let segments = open(&fs);
    assert!(segments.is_empty());
    for owner in [1, 2] {
        put(&segments, owner, b"entry");
        segments.sync(of(owner)).unwrap();
    }
    let segments = open(&fs);
    assert!(!segments.is_empty());
    let aside = |owner| (owner == of(1)).then(|| PathBuf::from("/data/aside/1"));
    assert_eq!(segments.sweep(&aside).unwrap(), (1, 1));
    assert_eq!(files(&fs), [PathBuf::from("/data/aside/1/1.segment")]);
    assert!(open(&fs).is_empty());
}

#[test]
fn owners_that_are_never_synced_share_a_bounded_number_of_descriptors() {
    let fs = FaultyFs::new();
    let segments = open(&fs);
    let mut places = Vec::new();
    for owner in 1..50 {
        places.push(put(&segments, owner, &[owner as u8; 100]));
        segments.let_go(of(owner));
        assert!(fs.open_files() <= 4, "{} are open", fs.open_files());
    }
    for (owner, place) in (1..50).zip(&places) {
        assert_eq!(segments.read(of(owner), *place).unwrap(), [owner as u8; 100]);
        put(&segments, owner, b"more");
        segments.sync(of(owner)).unwrap();
        assert!(fs.open_files() <= 5, "{} are open", fs.open_files());
    }
    (1..50).for_each(|owner| segments.remove(of(owner)).unwrap());
    assert_eq!(fs.open_files(), 0);
}

#[test]
fn what_somebody_is_going_to_sync_is_not_let_go_of() {
    let is_there = |awaited: bool, seed: u64| {
        let fs = FaultyFs::new();
        let segments = open(&fs);
        put(&segments, 1, b"so that there is a file");
        segments.sync(of(1)).unwrap();
        let place = put(&segments, 1, b"needed");
        if awaited {
            segments.await_sync(of(1));
        }
        put(&segments, 1, b"not needed after a start");
        segments.let_go(of(1));
        segments.sync(of(1)).unwrap();
        open(&fs.crash(seed)).read(of(1), place).is_ok()
    };
    assert!((0..50).all(|seed| is_there(true, seed)));
    assert!(!(0..50).all(|seed| is_there(false, seed)));
}

#[test]
fn without_a_descriptor_those_that_nobody_uses_are_given_back() {
    let fs = FaultyFs::new();
    let segments = open(&fs);
    let places: Vec<Place> = (1..5).map(|owner| put(&segments, owner, b"entry")).collect();
    (1..5).for_each(|owner| segments.let_go(of(owner)));
    let fs_again = fs.copy();
    let again = Segments::open(Arc::new(fs_again.clone()), Path::new(DIR), small()).unwrap();
    again.read(of(1), places[0]).unwrap();
    fs_again.fail_at(1, Fault::NoDescriptor);
    assert_eq!(again.read(of(2), places[1]).unwrap(), b"entry");
    assert_eq!(fs_again.open_files(), 1);
}

#[test]
fn a_removed_owner_leaves_nothing() {
    let fs = FaultyFs::new();
    let segments = open(&fs);
    let place = put(&segments, 1, &[1; 3000]);
    put(&segments, 1, &[1; 3000]);
    let other = put(&segments, 2, b"other");
    segments.remove(of(1)).unwrap();
    assert_eq!(files(&fs).len(), 1);
    assert!(segments.read(of(1), place).is_err());
    assert_eq!(segments.read(of(2), other).unwrap(), b"other");
    let anew = put(&segments, 1, b"anew");
    segments.sync(of(1)).unwrap();
    assert_eq!(segments.read(of(1), anew).unwrap(), b"anew");
}

#[test]
fn more_owners_than_open_files() {
    let fs = FaultyFs::new();
    let segments = open(&fs);
    let mut places = Vec::new();
    for round in 0..3_u8 {
        for owner in 0..20_u64 {
            places.push((owner, round, put(&segments, owner, &[round; 100])));
        }
    }
    for owner in 0..20 {
        segments.sync(of(owner)).unwrap();
    }
    for (owner, round, place) in &places {
        assert_eq!(segments.read(of(*owner), *place).unwrap(), [*round; 100]);
    }
    let fs = fs.crash(9);
    let segments = open(&fs);
    for (owner, round, place) in &places {
        assert!(segments.adopt(of(*owner), *place));
        assert_eq!(segments.read(of(*owner), *place).unwrap(), [*round; 100]);
    }
}

#[test]
fn a_flipped_bit_or_a_wrong_place_is_never_served() {
    let fs = FaultyFs::new();
    let segments = open(&fs);
    let places: Vec<Place> = (0..3).map(|n| put(&segments, 1, &[n; 50])).collect();
    segments.sync(of(1)).unwrap();
    let stranger = put(&segments, 2, &[0; 50]);
    assert_eq!(stranger, places[0]);
    let file = Path::new(DIR).join("2-1/1.segment");
    let length = fs.bytes(&file).unwrap().len();
    for at in 0..length {
        let fs = fs.copy();
        fs.corrupt(&file, |bytes| bytes[at] ^= 1 << (at % 8));
        let segments = open(&fs);
        for (number, place) in places.iter().enumerate() {
            let hit = (place.offset as usize..place.end_for_test()).contains(&at);
            match segments.read(of(1), *place) {
                Ok(entry) => assert!(!hit && entry == [number as u8; 50]),
                Err(SegmentError::Corrupt { .. }) => assert!(hit),
                Err(error) => panic!("{error}"),
            }
        }
    }
    for wrong in [
        Place {
            offset: places[0].offset + 1,
            ..places[0]
        },
        Place {
            length: 49,
            ..places[0]
        },
        Place {
            length: u32::MAX,
            ..places[0]
        },
        Place {
            offset: u32::MAX,
            ..places[0]
        },
        Place {
            segment: 77,
            ..places[0]
        },
    ] {
        assert!(segments.read(of(1), wrong).is_err());
    }
    // Another owner's file under this owner's name.
    let bytes = fs.bytes(&Path::new(DIR).join("2-2/1.segment")).unwrap();
    fs.corrupt(&file, |old| *old = bytes);
    assert!(matches!(
        open(&fs).read(of(1), places[0]),
        Err(SegmentError::Corrupt { .. })
    ));
}

#[test]
fn a_flipped_bit_costs_the_parts_that_it_hits_and_no_others() {
    let fs = FaultyFs::new();
    let segments = open(&fs);
    let contents: Vec<Vec<u8>> = (0..5).map(|n| vec![n; 20 + usize::from(n)]).collect();
    let parts: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
    let mut places = Vec::new();
    segments.append(of(1), [&parts], &mut places).unwrap();
    segments.sync(of(1)).unwrap();
    let file = Path::new(DIR).join("2-1/1.segment");
    let mut worst = 0;
    for at in 0..places[0].length as usize {
        let fs = fs.copy();
        fs.corrupt(&file, |bytes| bytes[32 + at] ^= 1 << (at % 8));
        let entry = open(&fs).read_parts(of(1), places[0]).unwrap();
        let read: Vec<Option<&[u8]>> = entry.parts().collect();
        assert_eq!(read.len(), 5, "byte {at}");
        let right = read
            .iter()
            .zip(&parts)
            .filter(|(read, part)| **read == Some(part));
        let damaged = read.iter().filter(|part| part.is_none()).count();
        assert_eq!(right.count() + damaged, 5);
        // Where a part ends the next one begins.
        worst = worst.max(damaged);
        assert!((1..=2).contains(&damaged), "byte {at}: {damaged} are lost");
    }
    assert_eq!(worst, 2);
}

#[test]
fn files_of_another_version_are_refused_at_the_start() {
    let fs = FaultyFs::new();
    put(&open(&fs), 1, b"entry");
    fs.corrupt(&Path::new(DIR).join("2-1/1.segment"), |bytes| {
        bytes[8] = 1;
        let crc = crc32fast::hash(&bytes[..28]).to_le_bytes();
        bytes[28..32].copy_from_slice(&crc);
    });
    let opened = || Segments::open(Arc::new(fs.clone()), Path::new(DIR), small());
    assert!(matches!(opened(), Err(SegmentError::Version { found: 1, .. })));
    // Version 2 had owners without a kind.
    let (file, former) = (Path::new(DIR).join("2-1/1.segment"), Path::new(DIR).join("1"));
    fs.corrupt(&file, |bytes| {
        bytes[8] = 2;
        let crc = crc32fast::hash(&bytes[..28]).to_le_bytes();
        bytes[28..32].copy_from_slice(&crc);
    });
    fs.create_dir(&former).unwrap();
    fs.rename(&file, &former.join("1.segment")).unwrap();
    assert!(matches!(opened(), Err(SegmentError::Version { found: 2, .. })));
}

#[test]
fn a_queue_and_a_group_of_one_number_are_two_owners() {
    let fs = FaultyFs::new();
    let segments = open(&fs);
    let group = JournalId::new(Kind::GROUP, 1);
    let (of_queue, mut places) = (put(&segments, 1, b"queue's"), Vec::new());
    segments
        .append(group, [[b"group's".as_slice()]], &mut places)
        .unwrap();
    segments.sync(of(1)).unwrap();
    segments.sync(group).unwrap();
    assert_eq!(of_queue, places[0]);
    let segments = open(&fs);
    assert!(segments.adopt(of(1), of_queue) && segments.adopt(group, of_queue));
    assert_eq!(segments.read(of(1), of_queue).unwrap(), b"queue's");
    assert_eq!(segments.read(group, of_queue).unwrap(), b"group's");
    segments.remove(of(1)).unwrap();
    assert_eq!(segments.read(group, of_queue).unwrap(), b"group's");
    let (from, to) = (
        Path::new(DIR).join("4-1/1.segment"),
        Path::new(DIR).join("2-1/1.segment"),
    );
    fs.create_dir(to.parent().unwrap()).unwrap();
    fs.rename(&from, &to).unwrap();
    assert!(matches!(
        open(&fs).read(of(1), of_queue),
        Err(SegmentError::Corrupt { .. })
    ));
}

trait EndForTest {
    fn end_for_test(&self) -> usize;
}

impl EndForTest for Place {
    fn end_for_test(&self) -> usize {
        self.offset as usize + self.length as usize
    }
}

/// Appends and syncs until the first error; returns what was synced.
fn script(fs: &FaultyFs) -> Vec<(u64, Place, Vec<u8>)> {
    let mut synced = Vec::new();
    let Ok(segments) = Segments::open(Arc::new(fs.clone()), Path::new(DIR), small()) else {
        return synced;
    };
    for round in 0..12_u64 {
        let owner = round % 2;
        let mut places = Vec::new();
        let entries: Vec<Vec<u8>> = (0..5)
            .map(|n| vec![round as u8; (n * 371 % 1300) as usize])
            .collect();
        let appended = segments.append(of(owner), entries.iter().map(|e| [e.as_slice()]), &mut places);
        if appended.is_err() {
            assert!(places.is_empty());
            continue;
        }
        if segments.sync(of(owner)).is_ok() {
            synced.extend(
                places
                    .into_iter()
                    .zip(entries)
                    .map(|(place, entry)| (owner, place, entry)),
            );
        } else {
            assert!(segments.sync(of(owner)).is_err(), "a failed sync is final");
            assert!(
                segments
                    .append(of(owner), [[b"x".as_slice()]], &mut places)
                    .is_err()
            );
        }
    }
    synced
}

#[test]
fn whatever_call_fails_what_was_synced_is_there_after_a_crash() {
    let whole = FaultyFs::new();
    script(&whole);
    let calls = whole.calls();
    assert!(calls > 50);
    for fault in [
        Fault::Io,
        Fault::Full,
        Fault::Short,
        Fault::ShortThenFull,
        Fault::PowerCut,
    ] {
        for k in 1..=calls {
            let fs = FaultyFs::new();
            fs.fail_at(k, fault);
            let synced = script(&fs);
            let segments = open(&fs.crash(k));
            for (owner, place, entry) in &synced {
                assert!(segments.adopt(of(*owner), *place), "{fault:?} at call {k}");
                assert_eq!(
                    segments.read(of(*owner), *place).unwrap(),
                    *entry,
                    "{fault:?} at call {k}"
                );
            }
            segments.sweep(&|_| None).unwrap();
            assert!(
                synced
                    .iter()
                    .all(|(owner, place, _)| segments.read(of(*owner), *place).is_ok())
            );
        }
    }
}

#[test]
fn readers_do_not_wait_for_a_writer_and_see_only_whole_entries() {
    let dir = std::env::temp_dir().join(format!("leveret-segments-{}", std::process::id()));
    let segments = Segments::open(Arc::new(Disk), &dir, small()).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let writer = &segments;
        scope.spawn(move || {
            for number in 0..500_u32 {
                let entry = vec![number as u8; (number * 7 % 900) as usize];
                sender.send((put(writer, 1, &entry), entry)).unwrap();
                if number % 100 == 0 {
                    writer.sync(of(1)).unwrap();
                }
            }
        });
        for (place, entry) in receiver {
            assert_eq!(segments.read(of(1), place).unwrap(), entry);
            segments.free(of(1), place);
        }
    });
    assert!(segments.owner_bytes(of(1)).0 == 0 && segments.owner_bytes(of(1)).1 <= 4 << 10);
    segments.remove(of(1)).unwrap();
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
    std::fs::remove_dir_all(&dir).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_appending_freeing_and_restarting_keeps_what_is_live(seed in any::<u64>()) {
        let random = &mut Random(seed);
        let mut fs = FaultyFs::new();
        let mut segments = open(&fs);
        let mut live: BTreeMap<(u64, Place), Vec<u8>> = BTreeMap::new();
        for number in 0..150_u64 {
            let owner = random.below(3);
            match random.below(12) {
                0 => {
                    (0..3).for_each(|owner| segments.sync(of(owner)).unwrap());
                    fs = fs.crash(random.bits());
                    segments = open(&fs);
                    for (owner, place) in live.keys() {
                        prop_assert!(segments.adopt(of(*owner), *place));
                    }
                    segments.sweep(&|_| None).unwrap();
                }
                1..=5 => {
                    if let Some(key) = live.keys().nth(random.below(live.len() as u64) as usize).copied() {
                        live.remove(&key);
                        segments.free(of(key.0), key.1);
                    }
                }
                _ => {
                    let entry = vec![number as u8; random.below(1500) as usize];
                    live.insert((owner, put(&segments, owner, &entry)), entry);
                }
            }
            for owner in 0..3 {
                let bytes: u64 = live.iter().filter(|(key, _)| key.0 == owner).map(|(_, e)| e.len() as u64 + 8).sum();
                prop_assert_eq!(segments.owner_bytes(of(owner)).0, bytes);
            }
        }
        for ((owner, place), entry) in &live {
            prop_assert_eq!(&segments.read(of(*owner), *place).unwrap(), entry);
        }
    }
}
