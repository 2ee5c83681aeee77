//! A stream's machine on its files, on a disk that loses what was not synced: publishers with names send again what was not
//! confirmed, readers follow, segments go, the node is killed, loses its power or has a disk that fails. What must hold:
//! nothing that was confirmed or read is lost or becomes something else, offsets have no gaps, nothing is there twice.
//!
//! `SIM_SEED=29` runs one seed again, `SIM_SEEDS=100000` runs more, `SIM_FIRST=5000` others.

#![allow(clippy::expect_used, reason = "test code")]

use model::chunk::{Batch, Chunk, ChunkKind, Entry};
use model::{ConsumerId, Machine, Outcome, Ranges, Timestamp};
use queue::Ends;
use queue::stream::{
    Effect, ReadEffect, ReadRequest, Reading, Record, Request, Segment, Stream, StreamSettings,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use storage::faulty::{Fault, FaultyFs, Random};
use storage::{StorageError, StreamEntry, StreamFiles};

const SEEDS: u64 = 200;
const STEPS: u64 = 150;
const PUBLISHERS: u64 = 3;

#[derive(Debug)]
struct Plain;

impl Ends for Plain {
    type Receipt = Vec<Message>;
    type Reply = ();
    type Outlet = ();

    fn split(receipt: &mut Vec<Message>, _: &Ranges, _: usize) -> Vec<Message> {
        std::mem::take(receipt)
    }
}

/// Who published it, and under which number.
type Message = (u64, u64);

fn bytes_of((publisher, id): Message) -> Vec<u8> {
    let mut bytes = format!("{publisher} {id} ").into_bytes();
    bytes.resize(20 + (id % 60) as usize, b'.');
    bytes
}

fn message_of(bytes: &[u8]) -> Message {
    let text = std::str::from_utf8(bytes).expect("what was published");
    let mut words = text.split(' ').map(|word| word.parse().ok());
    match (words.next().flatten(), words.next().flatten()) {
        (Some(publisher), Some(id)) => (publisher, id),
        _ => panic!("{text}"),
    }
}

fn settings() -> StreamSettings {
    StreamSettings {
        max_bytes: Some(12_000),
        max_age_ms: Some(60_000),
        segment_bytes: 2_500,
        filter_bytes: 16,
    }
}

/// A publisher, which outlives the node.
#[derive(Default)]
struct Publisher {
    next: u64,
    unconfirmed: BTreeSet<u64>,
}

struct World {
    random: Random,
    fs: FaultyFs,
    files: StreamFiles,
    machine: Stream<Plain>,
    outcome: Outcome<Record, Effect<Plain>>,
    reading: Reading<Plain>,
    /// Promises of turns that are not synced.
    promises: Vec<Effect<Plain>>,
    /// Where each message is, as the machine has decided since the start.
    offsets: BTreeMap<Message, u64>,
    now: u64,
    publishers: Vec<Publisher>,
    /// What publishers were told, with its offset.
    confirmed: BTreeMap<Message, u64>,
    /// What readers have seen.
    seen: BTreeMap<u64, Message>,
    lives: u64,
}

fn open(fs: &FaultyFs) -> Result<(StreamFiles, Stream<Plain>), StorageError> {
    let files = StreamFiles::open(Arc::new(fs.clone()), Path::new("/streams/1"), 1)?;
    let segments = files.segments();
    let Some((newest, closed)) = segments.split_last() else {
        return Ok((files, Stream::new(settings())));
    };
    let closed = closed.iter().map(|it| Segment {
        first: it.first,
        next: it.next,
        bytes: it.bytes,
        last: Timestamp(it.last_ms),
    });
    let mut machine = Stream::of_segments(settings(), closed, newest.first);
    let mut outcome = Outcome::default();
    let Some(mut cursor) = files.segment_start(newest.first)? else {
        unreachable!("it was listed just now");
    };
    loop {
        let page = files.read(&mut cursor, u64::MAX, 3_000)?;
        if page.is_empty() {
            break;
        }
        for (_, bytes) in page.entries() {
            let record = Record::new(bytes.to_vec()).expect("what was written is a chunk");
            machine.apply(0, record, &mut outcome);
        }
    }
    machine.recovered(false);
    assert_eq!(machine.status().next_offset, newest.next);
    Ok((files, machine))
}

impl World {
    fn new(seed: u64) -> Self {
        let fs = FaultyFs::new();
        let (files, machine) = open(&fs).expect("an empty disk");
        Self {
            random: Random(seed),
            fs,
            files,
            machine,
            outcome: Outcome::default(),
            reading: Reading::new(0),
            promises: Vec::new(),
            offsets: BTreeMap::new(),
            now: 1_000,
            publishers: (0..PUBLISHERS).map(|_| Publisher::default()).collect(),
            confirmed: BTreeMap::new(),
            seen: BTreeMap::new(),
            lives: 1,
        }
    }

    fn ask(&mut self, request: Request<Plain>) {
        let lowest = self.reading.lowest();
        for request in [Request::Pinned { lowest }, request] {
            self.machine
                .handle(Timestamp(self.now), request, &mut self.outcome);
        }
    }

    fn ask_to_read(&mut self, request: ReadRequest<Plain>) -> Result<(), StorageError> {
        let mut effects = Vec::new();
        self.reading.handle(request, &mut effects);
        self.follow(effects)
    }

    /// Everything that was decided is safe.
    fn commit(&mut self) -> Result<(), StorageError> {
        let mut effects = Vec::new();
        let below = self.machine.status().next_offset;
        self.reading.commit(below, &mut effects);
        self.follow(effects)
    }

    fn follow(&mut self, effects: Vec<ReadEffect<Plain>>) -> Result<(), StorageError> {
        for effect in effects {
            if let ReadEffect::Read {
                reader,
                from,
                below,
                chunks,
                ..
            } = effect
            {
                self.read(reader, from, below, chunks)?;
            }
        }
        Ok(())
    }

    /// A publisher sends some new messages, and perhaps some again.
    fn publish(&mut self) {
        let number = self.random.below(PUBLISHERS);
        let again = self.random.chance();
        let publisher = &mut self.publishers[number as usize];
        let mut ids: Vec<u64> = Vec::new();
        if again {
            ids.extend(&publisher.unconfirmed);
        }
        for _ in 0..self.random.below(6) {
            publisher.next += 1;
            publisher.unconfirmed.insert(publisher.next);
            ids.push(publisher.next);
        }
        self.send(number, ids);
    }

    fn send(&mut self, number: u64, ids: Vec<u64>) {
        let mut batch = Batch::default();
        for id in &ids {
            let mut entry = Vec::new();
            Entry::Message(&bytes_of((number, *id))).write(&mut entry);
            batch.push(*id, None, &entry).expect("a small message");
        }
        let receipt = ids.into_iter().map(|id| (number, id)).collect();
        self.ask(Request::Publish {
            reference: Some(Arc::from(number.to_string().into_bytes())),
            batch,
            receipt: Some(receipt),
        });
    }

    fn end_turn(&mut self) -> Result<(), StorageError> {
        self.ask(Request::EndTurn);
        let records = std::mem::take(&mut self.outcome.records);
        self.promises.append(&mut self.outcome.promises);
        let mut entries = Vec::new();
        for record in &records {
            let chunk = record.chunk();
            let header = chunk.header();
            for (offset, entry) in chunk.entries() {
                if let Entry::Message(bytes) = entry {
                    self.offsets.insert(message_of(bytes), offset);
                }
            }
            entries.push(StreamEntry {
                first: header.first_offset,
                count: header.records,
                tracks: header.kind != ChunkKind::User || header.trailer_bytes > 0,
                time_ms: header.timestamp.0,
                term: 0,
                index: 0,
                starts_file: header.kind == ChunkKind::TrackingSnapshot,
                bytes: record.bytes(),
                checksum: chunk.whole_checksum(),
            });
        }
        self.files.append(&entries)?;
        self.carry_out()
    }

    fn sync(&mut self) -> Result<(), StorageError> {
        self.end_turn()?;
        self.files.sync()?;
        for promise in std::mem::take(&mut self.promises) {
            if let Effect::Confirm(messages) = promise {
                for message in messages {
                    self.publishers[message.0 as usize].unconfirmed.remove(&message.1);
                    let offset = self.offsets.get(&message);
                    let known = self.confirmed.get(&message);
                    let offset = *offset.or(known).expect("it has an offset");
                    self.confirmed.insert(message, offset);
                }
            }
        }
        self.commit()
    }

    fn carry_out(&mut self) -> Result<(), StorageError> {
        for effect in std::mem::take(&mut self.outcome.effects) {
            if let Effect::DropBelow { offset } = effect {
                self.files.drop_below(offset)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, reader: ConsumerId, from: u64, below: u64, chunks: u32) -> Result<(), StorageError> {
        let Some(mut cursor) = self.files.find(from)? else {
            panic!("it was told to read where there is nothing");
        };
        let (mut next, mut sent) = (from, 0);
        'pages: loop {
            let page = self.files.read(&mut cursor, below, 500)?;
            if page.is_empty() {
                break;
            }
            for (_, bytes) in page.entries() {
                let chunk = Chunk::read(bytes).expect("what was written is a chunk");
                if chunk.header().kind != ChunkKind::User {
                    continue;
                }
                if sent == chunks {
                    break 'pages;
                }
                note(&chunk, &mut self.seen);
                (next, sent) = (chunk.header().next_offset(), sent + 1);
            }
        }
        self.ask_to_read(ReadRequest::Sent {
            reader,
            next: next.max(from),
            chunks: sent,
        })
    }

    /// Where the last chunk begins that is safe.
    fn last_chunk(&self) -> Result<u64, StorageError> {
        let committed = self.reading.committed();
        let last = committed.saturating_sub(1);
        let chunk = self.files.find(last)?;
        Ok(chunk.map_or(committed, |cursor| cursor.next()))
    }

    /// The node is gone, and comes back.
    fn restart(&mut self) {
        self.fs = if self.random.chance() {
            self.fs.crash(self.random.bits())
        } else {
            self.fs.kill()
        };
        self.outcome = Outcome::default();
        self.promises.clear();
        (self.files, self.machine) = open(&self.fs).expect("what was synced is there");
        self.lives += 1;
        self.reading = Reading::new(self.machine.status().next_offset);
        self.check();
        // Publishers send again what they have no answer to, as clients do.
        for number in 0..PUBLISHERS {
            let unconfirmed = &self.publishers[number as usize].unconfirmed;
            self.send(number, unconfirmed.iter().copied().collect());
        }
        self.sync().expect("nothing fails now");
        assert!(self.publishers.iter().all(|it| it.unconfirmed.is_empty()));
        self.check();
    }

    /// Reads all that is there, and holds it against what was told.
    fn check(&mut self) {
        let (first, next) = self.files.bounds();
        let mut there = BTreeMap::new();
        if let Some(mut cursor) = self.files.segment_start(first).expect("it can be read") {
            let mut expected = first;
            loop {
                let page = self.files.read(&mut cursor, u64::MAX, 4_000);
                let page = page.expect("it can be read");
                if page.is_empty() {
                    break;
                }
                for (head, bytes) in page.entries() {
                    assert_eq!(head.first, expected, "offsets have no gaps");
                    expected = head.next();
                    note(&Chunk::read(bytes).expect("it is a chunk"), &mut there);
                }
            }
            assert_eq!(expected, next);
        }
        self.offsets = there
            .iter()
            .map(|(offset, message)| (*message, *offset))
            .collect();
        let mut last = BTreeMap::new();
        for (publisher, id) in there.values() {
            let before = last.insert(*publisher, *id);
            assert!(
                before.is_none_or(|before| before < *id),
                "twice, or in another order"
            );
        }
        for (message, offset) in &self.confirmed {
            let is_there = there.get(offset) == Some(message);
            assert!(
                is_there || *offset < first,
                "{message:?} at {offset} was confirmed and is lost"
            );
        }
        for (offset, message) in self.seen.range(first..) {
            assert_eq!(
                there.get(offset),
                Some(message),
                "offset {offset} became something else"
            );
        }
        assert!(
            self.seen
                .last_key_value()
                .is_none_or(|(offset, _)| *offset < next)
        );
    }

    fn step(&mut self) -> Result<(), StorageError> {
        self.now += self.random.below(500);
        match self.random.below(20) {
            0..8 => self.publish(),
            8..11 => self.end_turn()?,
            11..15 => self.sync()?,
            15 => {
                let reader = ConsumerId(self.random.below(3));
                let at = match self.random.below(3) {
                    0 => self.machine.status().first_offset,
                    1 => self.reading.committed(),
                    _ => self.last_chunk()?,
                };
                self.ask_to_read(ReadRequest::Attach {
                    reader,
                    outlet: (),
                    at,
                    credit: 2,
                })?;
            }
            16 => {
                let reader = ConsumerId(self.random.below(3));
                self.ask_to_read(ReadRequest::Credit { reader, chunks: 3 })?;
            }
            17 => {
                self.ask(Request::Wake);
                self.end_turn()?;
                self.files.rest()?;
            }
            18 if self.random.below(3) == 0 => {
                let faults = [Fault::Io, Fault::Full, Fault::PowerCut, Fault::ShortThenFull];
                let fault = faults[self.random.below(4) as usize];
                self.fs.fail_at(1 + self.random.below(20), fault);
            }
            19 if self.random.chance() => self.restart(),
            _ => {}
        }
        Ok(())
    }
}

fn note(chunk: &Chunk<'_>, to: &mut BTreeMap<u64, Message>) {
    for (offset, entry) in chunk.entries() {
        if let Entry::Message(bytes) = entry {
            let known = to.insert(offset, message_of(bytes));
            assert!(known.is_none_or(|known| known == message_of(bytes)));
        }
    }
}

/// Runs a seed; returns how many messages were confirmed, how often the node was started, and the first offset that is left.
fn run(seed: u64) -> (usize, u64, u64) {
    let mut world = World::new(seed);
    for _ in 0..STEPS {
        if world.step().is_err() {
            // A failure is final for its files: the node does not go on with them.
            world.restart();
        }
    }
    world.restart();
    (world.confirmed.len(), world.lives, world.files.bounds().0)
}

#[test]
fn a_stream_keeps_what_it_has_confirmed() {
    let number = |name| {
        std::env::var(name)
            .ok()
            .and_then(|it: String| it.parse::<u64>().ok())
    };
    let only = number("SIM_SEED");
    let first = only.or(number("SIM_FIRST")).unwrap_or(0);
    let count = only.map_or(number("SIM_SEEDS").unwrap_or(SEEDS), |_| 1);
    let seeds = first..first + count;
    let (mut confirmed, mut lives, mut dropped) = (0, 0, 0);
    for seed in seeds.clone() {
        let run = std::panic::catch_unwind(|| run(seed));
        let Ok(run) = run else {
            panic!("seed {seed}");
        };
        confirmed += run.0;
        lives += run.1;
        dropped += run.2;
    }
    println!("{seeds:?}: {confirmed} confirmed in {lives} lives, {dropped} let go");
    // That something happens at all.
    assert!(confirmed as u64 > 50 * count && lives > 2 * count);
    assert!(only.is_some() || dropped > count);
}
