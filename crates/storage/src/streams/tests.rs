use super::*;
use crate::faulty::{Fault, FaultyFs, Random};
use proptest::prelude::*;

const OWNER: u64 = 9;

fn dir() -> PathBuf {
    PathBuf::from("/data/streams/9")
}

fn open(fs: &FaultyFs) -> Result<StreamFiles, StorageError> {
    StreamFiles::open(Arc::new(fs.clone()), &dir(), OWNER)
}

/// An entry as a test keeps it.
#[derive(Clone, Debug, PartialEq)]
struct Kept {
    first: u64,
    count: u32,
    time_ms: u64,
    starts_file: bool,
    bytes: Vec<u8>,
}

impl Kept {
    fn entry(&self) -> StreamEntry<'_> {
        StreamEntry {
            first: self.first,
            count: self.count,
            tracks: self.count == 0,
            time_ms: self.time_ms,
            term: 3,
            index: self.first,
            starts_file: self.starts_file,
            bytes: &self.bytes,
            checksum: crc32fast::hash(&self.bytes),
        }
    }
}

/// Everything from this cursor on, read in pages of so many bytes.
fn read_from(files: &StreamFiles, cursor: Option<StreamCursor>, most: usize) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    let Some(mut cursor) = cursor else {
        return all;
    };
    loop {
        let page = files.read(&mut cursor, u64::MAX, most).unwrap();
        if page.is_empty() {
            return all;
        }
        for (head, bytes) in page.entries() {
            assert_eq!(head.tracks, head.count == 0);
            assert_eq!((head.term, head.index), (3, head.first));
            all.push((head.first, bytes.to_vec()));
        }
    }
}

/// Everything that is there.
fn read_all(files: &StreamFiles, most: usize) -> Vec<(u64, Vec<u8>)> {
    let first = files.bounds().0;
    read_from(files, files.segment_start(first).unwrap(), most)
}

fn expected<'a>(kept: impl Iterator<Item = &'a Kept>) -> Vec<(u64, Vec<u8>)> {
    kept.map(|it| (it.first, it.bytes.clone())).collect()
}

#[derive(Clone, Debug)]
enum Act {
    /// Entries of so many numbers and bytes, after so many milliseconds; perhaps a new file begins with the first one.
    Append(Vec<(u32, usize, u64)>, bool),
    Sync,
    Rest,
    /// Power cut, or a kill: then it is opened again.
    Crash(u64),
    Kill,
    Find(prop::sample::Index),
    FindTime(prop::sample::Index),
    Drop(prop::sample::Index),
}

fn act() -> impl Strategy<Value = Act> {
    let size = prop_oneof![30 => 0_usize..300, 1 => 100_000_usize..300_000];
    let entries = prop::collection::vec((0_u32..4, size, 0_u64..50), 1..5);
    prop_oneof![
        6 => (entries, prop::bool::weighted(0.15)).prop_map(|(entries, starts)| Act::Append(entries, starts)),
        3 => Just(Act::Sync),
        1 => Just(Act::Rest),
        1 => any::<u64>().prop_map(Act::Crash),
        1 => Just(Act::Kill),
        2 => any::<prop::sample::Index>().prop_map(Act::Find),
        2 => any::<prop::sample::Index>().prop_map(Act::FindTime),
        1 => any::<prop::sample::Index>().prop_map(Act::Drop),
    ]
}

/// Files, and beside them a list.
struct World {
    fs: FaultyFs,
    files: StreamFiles,
    list: Vec<Kept>,
    synced: usize,
    /// What lies below may be gone.
    dropped: u64,
}

impl World {
    fn new() -> Self {
        let fs = FaultyFs::new();
        Self {
            files: open(&fs).unwrap(),
            fs,
            list: Vec::new(),
            synced: 0,
            dropped: 0,
        }
    }

    fn next(&self) -> u64 {
        self.list
            .last()
            .map_or(0, |last| last.first + u64::from(last.count))
    }

    fn append(&mut self, entries: &[(u32, usize, u64)], starts: bool) {
        let (mut next, mut time) = (self.next(), self.list.last().map_or(0, |last| last.time_ms));
        let new = entries.iter().enumerate().map(|(at, (count, size, later))| {
            time += later;
            let kept = Kept {
                first: next,
                count: *count,
                time_ms: time,
                starts_file: starts && at == 0,
                bytes: (0..*size).map(|byte| (byte as u64 + next * 7) as u8).collect(),
            };
            next += u64::from(*count);
            kept
        });
        let new: Vec<Kept> = new.collect();
        let newest = self.files.segments().last().copied();
        let empty = newest.filter(|it| starts && it.bytes > 0 && it.next == it.first);
        if let Some(empty) = empty {
            // A file without numbers is replaced, and the new one is safe.
            let start = self.files.segment_start(empty.first).unwrap();
            let gone = read_from(&self.files, start, 5_000).len();
            self.list.truncate(self.list.len() - gone);
            self.synced = self.list.len() + 1;
        }
        let entries: Vec<_> = new.iter().map(Kept::entry).collect();
        self.files.append(&entries).unwrap();
        self.list.extend(new);
    }

    /// Opens what is left on this file system: what was synced is there, and perhaps more.
    fn reopen(&mut self, fs: FaultyFs) {
        self.fs = fs;
        self.files = open(&self.fs).unwrap();
        self.settle();
        // What was found once stays, whatever happens.
        let again = open(&self.fs.copy().crash(7)).unwrap();
        assert_eq!(again.bounds(), self.files.bounds());
        assert_eq!(read_all(&again, 5_000), self.all());
    }

    fn settle(&mut self) {
        let all = self.all();
        let kept = (0..=self.list.len()).find_map(|from| {
            let kept = from + all.len();
            let part = self.list.get(from..kept)?;
            (kept >= self.synced && all == expected(part.iter())).then_some(kept)
        });
        let kept = kept.expect("what was synced is there, and nothing that was not written");
        self.list.truncate(if all.is_empty() { 0 } else { kept });
        assert!(self.synced <= self.list.len());
        self.synced = self.list.len();
        assert!(self.files.bounds().0 <= self.dropped);
    }

    fn all(&self) -> Vec<(u64, Vec<u8>)> {
        read_all(&self.files, 1_000)
    }

    /// What there still is.
    fn there(&self) -> impl Iterator<Item = &Kept> {
        let first = self.files.bounds().0;
        let (mut start, mut file) = (0, 0);
        for (at, it) in self.list.iter().enumerate() {
            if it.starts_file && it.first > file && file < first {
                (start, file) = (at, it.first);
            }
        }
        self.list[start..].iter()
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Append(entries, starts) => self.append(entries, *starts),
            Act::Sync => {
                self.files.sync().unwrap();
                self.synced = self.list.len();
            }
            Act::Rest => {
                self.files.rest().unwrap();
                self.synced = self.list.len();
            }
            Act::Crash(seed) => self.reopen(self.fs.crash(*seed)),
            Act::Kill => {
                let before = self.list.len();
                self.reopen(self.fs.kill());
                assert_eq!(self.list.len(), before, "a kill loses nothing that was written");
            }
            Act::Find(index) => {
                let number = index.index(self.next() as usize + 2) as u64;
                let found = self.files.find(number).unwrap();
                let there = self
                    .there()
                    .skip_while(|it| it.first + u64::from(it.count) <= number);
                assert_eq!(read_from(&self.files, found, 700), expected(there));
            }
            Act::FindTime(index) => {
                let last = self.list.last().map_or(0, |last| last.time_ms);
                let time_ms = index.index(last as usize + 2) as u64;
                let found = self.files.find_time(time_ms).unwrap();
                let there = self.there().skip_while(|it| it.time_ms < time_ms);
                assert_eq!(read_from(&self.files, found, 700), expected(there));
            }
            Act::Drop(index) => self.drop_some(index.index(self.next() as usize + 1) as u64),
        }
        let (first, next) = self.files.bounds();
        let segments = self.files.segments();
        assert_eq!(next, self.next().max(first));
        assert!(
            segments
                .windows(2)
                .all(|pair| pair[0].next == pair[1].first && pair[0].last_ms <= pair[1].last_ms)
        );
    }

    fn drop_some(&mut self, number: u64) {
        let old = self.files.segment_start(self.files.bounds().0).unwrap();
        let before: Vec<_> = expected(self.there());
        self.files.drop_below(number).unwrap();
        self.dropped = self.dropped.max(number);
        let first = self.files.bounds().0;
        assert!(first <= self.dropped);
        let segments = self.files.segments();
        assert!(segments.len() <= 1 || segments[0].next > number);
        // Whoever stood in a file reads it to its end, and goes on with the next one.
        if let Some(old) = old {
            let end = read_from(&self.files, Some(old), 700);
            assert!(before.starts_with(&end[..end.len().min(1)]));
            assert_eq!(end.last(), before.last());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn files_are_a_list_that_loses_nothing_that_was_synced(acts in prop::collection::vec(act(), 1..50)) {
        let mut world = World::new();
        acts.iter().for_each(|act| world.act(act));
        let there = expected(world.there());
        prop_assert_eq!(world.all(), there);
    }
}

/// Three files with some entries each, all synced.
fn some() -> (FaultyFs, Vec<Kept>) {
    let mut world = World::new();
    for round in 0..3 {
        world.append(&[(2, 50, 1), (1, 0, 0), (0, 20, 1)], round > 0);
        world.files.sync().unwrap();
    }
    (world.fs, world.list)
}

#[test]
fn a_file_that_is_cut_at_any_byte_ends_before_that() {
    let (fs, list) = some();
    let path = fs
        .files()
        .into_iter()
        .rfind(|path| path.extension().is_some_and(|it| it == "chunks"));
    let path = path.unwrap();
    let end = fs
        .bytes(&path)
        .unwrap()
        .iter()
        .rposition(|byte| *byte != 0)
        .unwrap()
        + 1;
    for cut in 0..end {
        let fs = fs.copy();
        // Without the index, nothing says that there was more.
        fs.corrupt(&path.with_extension("index"), |bytes| bytes.clear());
        fs.corrupt(&path, |bytes| bytes.truncate(cut));
        let files = open(&fs).unwrap();
        assert_eq!(files.damage(), []);
        let all = read_all(&files, 1_000);
        assert!(
            all.len() >= 6 && all.len() < list.len(),
            "cut at {cut}: {}",
            all.len()
        );
        assert_eq!(all, expected(list[..all.len()].iter()), "cut at {cut}");
    }
}

#[test]
fn a_file_that_lost_its_end_has_its_numbers_all_the_same() {
    let (fs, list) = some();
    let path = newest(&fs);
    fs.corrupt(&path, |bytes| bytes.truncate(HEADER + 20));
    let files = open(&fs).unwrap();
    // The mark in the index says how far it was synced.
    assert_eq!(files.bounds(), (0, 9));
    let [damage] = files.damage() else {
        panic!("{:?}", files.damage());
    };
    assert_eq!((damage.first, damage.next, damage.offset), (6, 9, HEADER as u64));
    assert_eq!(read_on(&files), expected(list[..6].iter()));
    let more = numbered(9..10);
    let entry = StreamEntry {
        term: 3,
        time_ms: 99,
        ..more[0].entry()
    };
    files.append(&[entry]).unwrap();
    files.sync().unwrap();
    for files in [files, open(&fs.copy().crash(3)).unwrap()] {
        let mut expected = expected(list[..6].iter());
        expected.push((9, vec![9; 40]));
        assert_eq!(read_on(&files), expected);
    }
}

/// The newest file of chunks.
fn newest(fs: &FaultyFs) -> PathBuf {
    let is_it = |path: &PathBuf| path.extension().is_some_and(|it| it == "chunks");
    fs.files().into_iter().rfind(is_it).unwrap()
}

/// Everything that can be read, past what is damaged.
fn read_on(files: &StreamFiles) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    let mut cursor = files.find(0).unwrap().unwrap();
    loop {
        match files.read(&mut cursor, u64::MAX, 1_000) {
            Ok(page) if page.is_empty() => return all,
            Ok(page) => all.extend(page.entries().map(|(head, bytes)| (head.first, bytes.to_vec()))),
            Err(StorageError::Corrupt { .. }) => {
                let damage = files.skip(&mut cursor).unwrap();
                assert!(damage.bytes > 0);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn damage_in_the_newest_file_costs_what_is_damaged_and_no_number_is_given_out_again() {
    for has_index in [true, false] {
        let mut world = World::new();
        for round in 0..6 {
            world.append(&[(2, 30, 1), (0, 10, 0)], round == 3);
            world.files.sync().unwrap();
        }
        let path = newest(&world.fs);
        if !has_index {
            world
                .fs
                .corrupt(&path.with_extension("index"), |bytes| bytes.clear());
        }
        let end = HEADER + 3 * (2 * 64 + 40);
        for at in 0..end {
            let fs = world.fs.copy();
            fs.corrupt(&path, |bytes| bytes[at] ^= 0x40);
            let files = open(&fs).unwrap();
            // Without the index nothing says that the last two entries, of one write, were safe.
            let is_torn = !has_index && at >= end - 2 * 64 - 40;
            let has_first = !is_torn || at >= end - 64 - 10;
            assert_eq!(files.bounds().1, if has_first { 12 } else { 10 }, "byte {at}");
            let all = read_on(&files);
            let whole = expected(world.list.iter());
            assert!(all.iter().all(|it| whole.contains(it)), "byte {at}");
            let lost = whole.len() - all.len();
            match at < HEADER {
                true => assert_eq!(lost, 0, "byte {at}"),
                false => assert_eq!(lost, if has_first { 1 } else { 2 }, "byte {at}"),
            }
            assert_eq!(files.torn().is_some(), is_torn, "byte {at}");
            // A head's damage is seen at the start, a body's when it is read.
            let mut passed = files.damage().to_vec();
            passed.extend(files.walk_newest(|_, _| {}).unwrap());
            assert!(
                passed
                    .iter()
                    .all(|it| it.file == path && it.offset >= HEADER as u64)
            );
            assert!(passed.iter().map(StreamDamage::count).sum::<u64>() <= 2);
            // It goes on behind, and the next start finds the same.
            let next = files.bounds().1;
            let more = numbered(next..next + 1);
            let entry = StreamEntry {
                term: 3,
                time_ms: 99,
                ..more[0].entry()
            };
            files.append(&[entry]).unwrap();
            files.sync().unwrap();
            let again = open(&fs.crash(at as u64)).unwrap();
            assert_eq!(again.bounds().1, next + 1, "byte {at}");
            let mut expected = all;
            expected.push((next, vec![next as u8; 40]));
            assert_eq!(read_on(&again), expected, "byte {at}");
        }
    }
}

#[test]
fn holes_in_what_was_not_synced_are_the_end_and_no_damage() {
    let mut world = World::new();
    world.append(&[(2, 30, 1)], false);
    world.files.sync().unwrap();
    world.append(&[(2, 900, 1), (2, 900, 1), (2, 900, 1)], false);
    let path = newest(&world.fs);
    let hole = HEADER + 64 + 30 + 500;
    world.fs.corrupt(&path, |bytes| bytes[hole..hole + 10].fill(0));
    let files = open(&world.fs.copy().kill()).unwrap();
    // What comes behind the hole is whole, but its publishers were told nothing, and others would miss what is in the hole.
    assert_eq!(files.bounds(), (0, 2));
    assert_eq!(files.damage(), []);
    assert!(files.torn().is_some());
}

#[test]
fn damage_is_found_and_passed_over_and_nothing_else_is_lost() {
    let (fs, list) = some();
    let paths = fs.files().into_iter();
    let chunks: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "chunks"))
        .collect();
    assert_eq!(chunks.len(), 3);
    let length = fs.bytes(&chunks[0]).unwrap().len();
    for at in 0..length {
        let fs = fs.copy();
        fs.corrupt(&chunks[0], |bytes| bytes[at] ^= 0x40);
        let files = match open(&fs) {
            Ok(files) => files,
            Err(StorageError::Version { .. }) => unreachable!("its header has a checksum"),
            Err(error) => panic!("{error}"),
        };
        let all = read_on(&files);
        let whole = expected(list.iter());
        assert!(all.iter().all(|it| whole.contains(it)), "byte {at}");
        assert!(
            all.len() + 1 >= whole.len(),
            "byte {at}: {} of {}",
            all.len(),
            whole.len()
        );
        assert!(at >= HEADER || all == whole, "byte {at}");
    }
}

/// Entries of one number each, of which every fourth begins a file.
fn numbered(numbers: std::ops::Range<u64>) -> Vec<Kept> {
    let one = |first: u64| Kept {
        first,
        count: 1,
        time_ms: first,
        starts_file: first % 4 == 3,
        bytes: vec![first as u8; 40],
    };
    numbers.map(one).collect()
}

/// Appends and syncs all of these that are not safe yet.
fn write_rest(files: &StreamFiles, all: &[Kept]) -> Result<(), StorageError> {
    let rest: Vec<_> = all[files.safe_entries() as usize..]
        .iter()
        .map(|it| StreamEntry {
            term: 3,
            ..it.entry()
        })
        .collect();
    files.append(&rest)?;
    files.sync()
}

#[test]
fn what_fails_is_final_or_is_written_again_and_what_was_synced_stays() {
    let mut random = Random(5);
    let faults = [
        Fault::Io,
        Fault::Full,
        Fault::ShortThenFull,
        Fault::NoDescriptor,
        Fault::PowerCut,
        Fault::Short,
    ];
    for (call, fault) in (1..45).flat_map(|call| faults.map(|fault| (call, fault))) {
        let fs = FaultyFs::new();
        let files = open(&fs).unwrap();
        fs.fail_at(call, fault);
        let (mut synced, mut failed) = (0, false);
        for round in 1..46_u64 {
            let done = write_rest(&files, &numbered(0..round));
            assert!(!failed || done.is_err(), "{fault:?} at {call}: it went on");
            failed |= files.has_failed();
            if done.is_ok() {
                assert_eq!(files.safe_entries(), round);
            }
            assert!(files.safe_entries() >= synced);
            synced = files.safe_entries();
        }
        if matches!(fault, Fault::Full | Fault::ShortThenFull | Fault::Short) {
            assert!(!failed && synced == 45, "{fault:?} at {call}: {synced}");
            assert_eq!(read_from_any(&files).len(), 45);
        }
        let after = open(&fs.crash(random.bits())).unwrap();
        let (first, end) = after.bounds();
        assert!(
            first == 0 && end >= synced,
            "{fault:?} at {call}: {end} of {synced}"
        );
        let all = read_from_any(&after);
        assert!(all.iter().enumerate().all(|(at, bytes)| *bytes == [at as u8; 40]));
        assert_eq!(all.len() as u64, end);
    }
}

/// Entries without numbers, of which every fourth begins a file.
fn tracking(count: u64) -> Vec<Kept> {
    let one = |at: u64| Kept {
        first: 0,
        count: 0,
        time_ms: at,
        starts_file: at % 4 == 3,
        bytes: vec![at as u8; 40],
    };
    (0..count).map(one).collect()
}

/// Of [`tracking`] these files have all from the beginning of a file on, up to what was safe at least.
fn has_tracked(fs: &FaultyFs, safe: u64, what: &str) {
    let all = read_all(&open(fs).unwrap(), 99);
    let firsts: Vec<u64> = all.iter().map(|(_, bytes)| u64::from(bytes[0])).collect();
    assert!(
        firsts.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "{what}: {firsts:?}"
    );
    assert!(firsts.first().is_none_or(|first| *first == 0 || first % 4 == 3));
    assert!(
        firsts.last().map_or(0, |last| last + 1) >= safe,
        "{what}: {firsts:?} of {safe}"
    );
    let is_draft = |path: &PathBuf| path.extension().is_some_and(|it| it == "draft");
    assert!(!fs.files().iter().any(is_draft));
}

#[test]
fn a_file_without_numbers_is_replaced_whatever_fails() {
    let mut random = Random(6);
    let faults = [
        Fault::Io,
        Fault::Full,
        Fault::ShortThenFull,
        Fault::PowerCut,
        Fault::NoDescriptor,
    ];
    for (call, fault) in (1..40).flat_map(|call| faults.map(|fault| (call, fault))) {
        let what = format!("{fault:?} at {call}");
        let fs = FaultyFs::new();
        let files = open(&fs).unwrap();
        fs.fail_at(call, fault);
        for round in 1..40_u64 {
            if write_rest(&files, &tracking(round)).is_err() && !fs.is_off() && !files.has_failed() {
                // It ends just there, before another attempt.
                let safe = files.safe_entries();
                has_tracked(&fs.copy(), safe, &what);
                has_tracked(&fs.copy().crash(random.bits()), safe, &what);
            }
        }
        let safe = files.safe_entries();
        if fault == Fault::Full {
            assert!(!files.has_failed() && safe == 39, "{what}: {safe}");
            // What came before the last file is gone.
            assert_eq!(read_all(&files, 99).len(), 4);
        }
        has_tracked(&fs.copy(), safe, &what);
        has_tracked(&fs.crash(random.bits()), safe, &what);
    }
}

#[test]
fn who_reads_a_file_that_is_replaced_goes_on_in_the_new_one() {
    let fs = FaultyFs::new();
    let files = open(&fs).unwrap();
    write_rest(&files, &tracking(3)).unwrap();
    let mut cursors = [files.find(0), files.find(0), files.find_time(99)].map(|it| it.unwrap().unwrap());
    files.read(&mut cursors[1], u64::MAX, 1).unwrap();
    let mut all = tracking(5);
    all.extend((0..2).map(|number| Kept {
        first: number,
        count: 1,
        ..numbered(0..1)[0].clone()
    }));
    all[5..].iter_mut().for_each(|it| it.time_ms = 9);
    write_rest(&files, &all).unwrap();
    for mut cursor in cursors {
        let mut firsts = Vec::new();
        loop {
            let page = files.read(&mut cursor, 2, 100).unwrap();
            if page.is_empty() {
                break;
            }
            let new = page.entries().filter(|(head, _)| head.count > 0);
            firsts.extend(new.map(|(head, _)| head.first));
        }
        assert_eq!(firsts, [0, 1]);
    }
}

#[test]
fn a_sync_that_fails_is_never_tried_again_unless_the_disk_is_full() {
    for (fault, goes_on) in [(Fault::Io, false), (Fault::Full, true)] {
        let fs = FaultyFs::new();
        let files = open(&fs).unwrap();
        write_rest(&files, &numbered(0..2)).unwrap();
        let entry = numbered(2..3);
        files.append(&[entry[0].entry()]).unwrap();
        fs.fail_at(1, fault);
        assert!(files.sync().is_err());
        assert_eq!(files.has_failed(), !goes_on);
        assert_eq!((files.safe_entries(), files.bounds().1), (2, 2));
        assert_eq!(write_rest(&files, &numbered(0..3)).is_ok(), goes_on);
        // Nothing is lost of what the second sync says to be safe, although the first one had lost it.
        for seed in 0..20 {
            let after = open(&fs.copy().crash(seed)).unwrap();
            assert!(read_from_any(&after).len() as u64 >= files.safe_entries());
        }
    }
}

#[test]
fn a_full_disk_is_waited_for_and_less_room_is_reserved_on_one_that_is_nearly_full() {
    let fs = FaultyFs::new();
    let files = open(&fs).unwrap();
    write_rest(&files, &numbered(0..3)).unwrap();
    fs.set_full(20);
    let mut refusals = 0;
    while let Err(refused) = write_rest(&files, &numbered(0..9)) {
        assert!(matches!(refused, StorageError::Full { .. }), "{refused:?}");
        assert_eq!((files.safe_entries(), files.has_failed()), (3, false));
        assert_eq!(read_from_any(&files).len(), 3);
        refusals += 1;
    }
    assert!(refusals > 2 && !fs.is_full());
    assert_eq!(read_from_any(&files).len(), 9);
    fs.set_free_space(1_000);
    write_rest(&files, &numbered(0..12)).unwrap();
    fs.set_free_space(0);
    assert!(write_rest(&files, &numbered(0..30)).is_err());
    fs.set_free_space(1 << 20);
    write_rest(&files, &numbered(0..30)).unwrap();
    assert_eq!(read_from_any(&open(&fs.crash(1)).unwrap()).len(), 30);
}

fn read_from_any(files: &StreamFiles) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let Some(mut cursor) = files.find(0).unwrap() else {
        return all;
    };
    loop {
        let page = files.read(&mut cursor, u64::MAX, 100).unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page.entries().map(|(_, bytes)| bytes.to_vec()));
    }
}

#[test]
fn readers_are_given_nothing_from_where_they_may_not_read() {
    let mut world = World::new();
    world.append(&[(2, 10, 1), (2, 10, 1), (2, 10, 1)], false);
    let mut cursor = world.files.find(0).unwrap().unwrap();
    let firsts = |page: Page| page.entries().map(|(head, _)| head.first).collect::<Vec<_>>();
    assert_eq!(firsts(world.files.read(&mut cursor, 0, 9_999).unwrap()), []);
    assert_eq!(firsts(world.files.read(&mut cursor, 4, 9_999).unwrap()), [0, 2]);
    assert_eq!(firsts(world.files.read(&mut cursor, 4, 9_999).unwrap()), []);
    assert_eq!(firsts(world.files.read(&mut cursor, 6, 9_999).unwrap()), [4]);
    world.append(&[(1, 10, 1)], true);
    assert_eq!(firsts(world.files.read(&mut cursor, 7, 1).unwrap()), [6]);
}

#[test]
fn what_does_not_follow_is_refused_and_files_of_others_are_not_read() {
    let mut world = World::new();
    world.append(&[(2, 10, 5)], false);
    world.files.sync().unwrap();
    let entry = |first, time_ms| StreamEntry {
        first,
        count: 1,
        tracks: false,
        time_ms,
        term: 0,
        index: 0,
        starts_file: false,
        bytes: b"x",
        checksum: crc32fast::hash(b"x"),
    };
    for (first, time_ms) in [(1, 5), (3, 5), (2, 4)] {
        let refused = world.files.append(&[entry(first, time_ms)]);
        assert!(matches!(refused, Err(StorageError::Misuse { .. })));
    }
    world.files.append(&[entry(2, 5)]).unwrap();
    let other = StreamFiles::open(Arc::new(world.fs.copy()), &dir(), OWNER + 1).unwrap();
    assert_eq!(other.segments(), []);
}

#[test]
fn many_idle_streams_keep_no_file_open() {
    let mut world = World::new();
    world.append(&[(2, 10, 5)], false);
    assert_eq!(world.fs.open_files(), 2);
    world.files.rest().unwrap();
    assert_eq!(world.fs.open_files(), 0);
    let length = world.fs.bytes(&world.fs.files()[0]).unwrap().len();
    assert_eq!(length, HEADER + 64 + 10, "room is given back");
    world.append(&[(2, 10, 5)], false);
    world.files.sync().unwrap();
    assert_eq!(world.all().len(), 2);
    world.files.remove().unwrap();
    world.files.rest().unwrap();
}

#[test]
fn large_entries_stand_between_small_ones_as_they_were_appended() {
    let mut world = World::new();
    let large = 70_000;
    world.append(
        &[
            (1, 10, 1),
            (1, large, 1),
            (1, large, 1),
            (1, 10, 1),
            (1, large, 1),
        ],
        false,
    );
    world.append(&[(1, large, 1)], true);
    world.files.sync().unwrap();
    assert_eq!(read_all(&world.files, 5_000), expected(world.list.iter()));
}

#[test]
fn a_file_that_cannot_be_removed_goes_before_those_behind_it_whatever_fails() {
    for call in 0..12 {
        let mut world = World::new();
        for round in 0..4 {
            world.append(&[(2, 10, 1)], round > 0);
        }
        world.files.sync().unwrap();
        world.fs.fail_at(world.fs.calls() + call, Fault::Io);
        let first_try = world.files.drop_below(7);
        let after = open(&world.fs.copy().kill()).unwrap();
        let left = read_all(&after, 5_000);
        assert_eq!(
            left,
            expected(world.list[4 - left.len()..].iter()),
            "call {call}: no hole"
        );
        if world.files.has_failed() {
            continue;
        }
        world.files.drop_below(7).unwrap();
        let after = open(&world.fs.copy().kill()).unwrap();
        assert_eq!(
            read_all(&after, 5_000).len(),
            1,
            "call {call}, at first {first_try:?}"
        );
    }
}

#[test]
fn retention_leaves_the_file_before_one_in_which_nothing_is_yet() {
    let mut world = World::new();
    for round in 0..3 {
        world.append(&[(2, 10, 1)], round > 0);
    }
    world.files.sync().unwrap();
    let entry = |starts_file| StreamEntry {
        first: 6,
        count: 1,
        tracks: false,
        time_ms: 100,
        term: 0,
        index: 0,
        starts_file,
        bytes: b"x",
        checksum: crc32fast::hash(b"x"),
    };
    // The file is made, and there is no room for what it is to begin with.
    world.fs.set_free_space(0);
    assert!(matches!(
        world.files.append(&[entry(true)]),
        Err(StorageError::Full { .. })
    ));
    world.files.drop_below(6).unwrap();
    assert_eq!(open(&world.fs.copy().kill()).unwrap().bounds(), (4, 6));
    world.fs.set_free_space(1 << 30);
    world.files.append(&[entry(true)]).unwrap();
    world.files.sync().unwrap();
    world.files.drop_below(6).unwrap();
    assert_eq!(open(&world.fs.copy().kill()).unwrap().bounds(), (6, 7));
}
