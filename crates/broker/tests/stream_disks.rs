//! Streams on disks that are full, damaged or hold what a crash has left.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]
#![allow(clippy::disallowed_methods, reason = "a client outside of the broker")]

#[path = "support/client.rs"]
mod client;

use broker::{Broker, DeclareQueue, Event, NextChunk, Options, Stream, StreamStart};
use client::{CHANNEL, Client};
use model::chunk::{Chunk, Entry, Header};
use model::table::Table;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};
use storage::faulty::FaultyFs;
use storage::{Access, File, FileSystem, Locking, LogOptions, System};

fn open(files: &FaultyFs) -> Arc<Broker> {
    open_on(Arc::new(files.clone()))
}

fn open_on(files: Arc<dyn FileSystem>) -> Arc<Broker> {
    Broker::open(options(files)).unwrap()
}

fn options(files: Arc<dyn FileSystem>) -> Options {
    Options {
        world: System::over(files),
        disk_free_limit: 0,
        log: LogOptions {
            file_bytes: 256 << 10,
            make_ahead: false,
            ..LogOptions::default()
        },
        ..Options::new("/data")
    }
}

fn declare(client: &Client, name: &str) {
    let declare = DeclareQueue {
        name: name.into(),
        durable: true,
        arguments: Table::new().with("x-queue-type", "stream"),
        ..DeclareQueue::default()
    };
    let done = client.session.declare_queue(CHANNEL, declare).unwrap();
    if let Some(expected) = done.durable {
        client
            .wait(|event| matches!(event, Event::Durable { ticket, .. } if ticket == expected).then_some(()));
    }
}

fn stream(client: &Client, name: &str) -> Stream {
    client.session.stream_to_write(name, CHANNEL).unwrap()
}

/// Message number `number`, with so many bytes at least.
fn text(number: u64, bytes: usize) -> String {
    format!("{number:08} {}", "x".repeat(bytes))
}

/// Publishes these, each on its own and confirmed before the next one.
fn publish_one_by_one(client: &Client, name: &str, numbers: std::ops::Range<u64>, bytes: usize) {
    let mut publisher = stream(client, name).publish(Some(b"me"));
    for number in numbers {
        let mut entry = Vec::new();
        Entry::Message(text(number, bytes).as_bytes()).write(&mut entry);
        publisher.take(number, None, &entry).unwrap();
        let flushed = publisher.flush().unwrap();
        client.wait(|event| match event {
            Event::Confirm { numbers, .. } if numbers.contains(flushed) => Some(()),
            Event::Reject { .. } => panic!("{number} was refused"),
            _ => None,
        });
    }
}

/// The numbers of all messages that can be read, each with its offset.
fn read_all(client: &Client, name: &str) -> Vec<(u64, u64)> {
    let (_, mut reader) = stream(client, name).read(StreamStart::First, None);
    let mut all = Vec::new();
    loop {
        let chunk = match reader.read() {
            NextChunk::Here(chunk) => chunk,
            NextChunk::AskAgain => continue,
            NextChunk::Later => return all,
        };
        let mut header = Header::read(&chunk.header).unwrap();
        (header.filter_bytes, header.trailer_bytes) = (0, 0);
        let mut bytes = header.to_bytes().to_vec();
        bytes.extend_from_slice(&chunk.entries);
        let chunk = Chunk::read(&bytes).unwrap();
        for (offset, entry) in chunk.entries() {
            let Entry::Message(message) = entry else {
                panic!("nobody has published a batch");
            };
            let number = std::str::from_utf8(&message[..8]).unwrap();
            all.push((offset, number.parse().unwrap()));
        }
    }
}

/// As [`read_all`] says it if nothing is missing.
fn dense(of: std::ops::Range<u64>) -> Vec<(u64, u64)> {
    of.map(|number| (number, number)).collect()
}

#[test]
fn a_full_disk_is_waited_for_and_nothing_is_refused_or_lost() {
    let files = FaultyFs::new();
    let broker = open(&files);
    let client = Client::open(&broker);
    declare(&client, "s");
    publish_one_by_one(&client, "s", 0..10, 10);
    // Twice it has no room, for what was reserved is used up by then: with and without a reserve.
    files.set_full(4);
    publish_one_by_one(&client, "s", 10..30, 10_000);
    assert!(!files.is_full());
    assert_eq!(read_all(&client, "s"), dense(0..30));
    let after = files.crash(3);
    drop((client, broker));
    let broker = open(&after);
    let client = Client::open(&broker);
    assert_eq!(read_all(&client, "s"), dense(0..30));
    publish_one_by_one(&client, "s", 30..40, 10);
    assert_eq!(read_all(&client, "s"), dense(0..40));
    broker.close();
}

#[test]
fn a_question_is_answered_while_the_disk_is_full() {
    let files = FaultyFs::new();
    let broker = open(&files);
    let client = Client::open(&broker);
    declare(&client, "s");
    publish_one_by_one(&client, "s", 1..3, 10);
    files.set_full(u64::MAX);
    let mut publisher = stream(&client, "s").publish(Some(b"me"));
    let mut entry = Vec::new();
    Entry::Message(&[7; 200_000]).write(&mut entry);
    publisher.take(3, None, &entry).unwrap();
    let flushed = publisher.flush().unwrap();
    // What is known is not safe, so it is not said.
    let question = stream(&client, "s").sequence(b"me");
    assert_eq!(client.answer(question), Some(broker::Answer::Empty));
    let another = stream(&client, "s").sequence(b"me");
    assert_eq!(client.answer(another), Some(broker::Answer::Empty));
    files.set_full(0);
    client.wait(|event| {
        matches!(event, Event::Confirm { numbers, .. } if numbers.contains(flushed)).then_some(())
    });
    let question = stream(&client, "s").sequence(b"me");
    assert_eq!(client.answer(question), Some(broker::Answer::Number(Some(3))));
    broker.close();
}

/// The files of the first stream that was declared.
fn chunks(files: &FaultyFs) -> Vec<PathBuf> {
    let is_one = |path: &PathBuf| path.extension().is_some_and(|it| it == "chunks");
    files.files().into_iter().filter(is_one).collect()
}

/// Where in a file these bytes are.
fn place_of(files: &FaultyFs, path: &Path, bytes: &[u8]) -> usize {
    let all = files.bytes(path).unwrap();
    all.windows(bytes.len()).position(|it| it == bytes).unwrap()
}

#[test]
fn what_is_damaged_is_passed_over_and_its_offsets_are_not_given_out_again() {
    let files = FaultyFs::new();
    let broker = open(&files);
    let client = Client::open(&broker);
    declare(&client, "s");
    publish_one_by_one(&client, "s", 0..10, 50);
    client.session.close();
    broker.close();
    drop((client, broker));
    let path = chunks(&files).remove(0);
    // The body of 3, the head of 6's frame, and the last one as a whole.
    let bodies = [3, 6, 9].map(|number| place_of(&files, &path, text(number, 50).as_bytes()));
    let heads = files.bytes(&path).unwrap();
    let head = heads[..bodies[1]]
        .windows(4)
        .rposition(|it| it == b"LVF\x01")
        .unwrap();
    for whole in [false, true] {
        let files = files.copy();
        files.corrupt(&path, |bytes| {
            bytes[bodies[0]] ^= 1;
            bytes[head + 5] ^= 1;
            if whole {
                bytes.truncate(bodies[2] - 60);
            }
        });
        let broker = open(&files);
        let client = Client::open(&broker);
        let end = if whole { 9 } else { 10 };
        let is_left = |(offset, _): &(u64, u64)| ![3, 6].contains(offset) && *offset < end;
        let mut expected: Vec<_> = dense(0..10).into_iter().filter(is_left).collect();
        assert_eq!(read_all(&client, "s"), expected);
        publish_one_by_one(&client, "s", 10..12, 50);
        expected.extend(dense(10..12));
        assert_eq!(read_all(&client, "s"), expected);
        broker.close();
        drop((client, broker));
        let broker = open(&files);
        assert_eq!(read_all(&Client::open(&broker), "s"), expected);
        broker.close();
    }
}

#[test]
fn what_an_interrupted_deletion_left_goes_and_nobody_adopts_it() {
    let files = FaultyFs::new();
    let broker = open(&files);
    let client = Client::open(&broker);
    for name in ["gone", "stays"] {
        declare(&client, name);
        publish_one_by_one(&client, name, 0..3, 10);
    }
    let left = chunks(&files).remove(0);
    let bytes = files.bytes(&left).unwrap();
    client.delete("gone", false, false);
    broker.close();
    drop((client, broker));
    assert!(!chunks(&files).contains(&left));
    // As if the node had been killed before it was removed. A number that was not given out yet is not known to be deleted.
    files.plant(&left, bytes.clone());
    files.plant(Path::new("/data/streams/900/00000000000000000000.chunks"), bytes);
    let broker = open(&files);
    let client = Client::open(&broker);
    assert!(!files.files().contains(&left));
    let kept = |path: &PathBuf| {
        path.starts_with("/data/set-aside") && path.ends_with("900/00000000000000000000.chunks")
    };
    assert_eq!(files.files().iter().filter(|path| kept(path)).count(), 1);
    declare(&client, "gone");
    assert_eq!(read_all(&client, "gone"), []);
    assert_eq!(read_all(&client, "stays"), dense(0..3));
    // Whatever lies under the next number is not taken for a new stream's.
    let numbers = |path: &PathBuf| {
        path.strip_prefix("/data/streams")
            .ok()?
            .iter()
            .next()?
            .to_str()?
            .parse()
            .ok()
    };
    publish_one_by_one(&client, "gone", 0..1, 10);
    let last: u64 = files.files().iter().filter_map(numbers).max().unwrap();
    let next = PathBuf::from(format!("/data/streams/{}/00000000000000000000.chunks", last + 1));
    files.plant(&next, vec![1; 100]);
    declare(&client, "another");
    assert!(client.session.stream_to_write("another", CHANNEL).is_err());
    assert_eq!(files.bytes(&next), Some(vec![1; 100]));
    broker.close();
}

#[test]
fn a_node_that_has_streams_and_has_lost_its_log_does_not_start_as_a_new_one() {
    let files = FaultyFs::new();
    let broker = open(&files);
    let client = Client::open(&broker);
    declare(&client, "s");
    publish_one_by_one(&client, "s", 0..3, 10);
    client.session.close();
    broker.close();
    drop((client, broker));
    for path in files.files() {
        if path.starts_with("/data/log") {
            files.remove(&path).unwrap();
        }
    }
    let before = chunks(&files);
    assert!(Broker::open(options(Arc::new(files.clone()))).is_err());
    assert_eq!(chunks(&files), before);
}

/// Files of which those of streams cannot be opened for a while.
#[derive(Debug, Default)]
struct Hindered {
    files: FaultyFs,
    /// The first one cannot be made, for a panic.
    panics: AtomicBool,
    /// The system's number of what hinders those whose names end like this; 0 if nothing does.
    error: AtomicI32,
    of: &'static str,
}

fn is_of(path: &Path, end: &str) -> bool {
    path.to_str().is_some_and(|path| path.ends_with(end))
}

impl FileSystem for Hindered {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let is_it = access == Access::Create && path.ends_with("00000000000000000000.chunks");
        assert!(!is_it || !self.panics.swap(false, Ordering::SeqCst), "on purpose");
        match self.error.load(Ordering::SeqCst) {
            error if error > 0 && path.starts_with("/data/streams") && is_of(path, self.of) => {
                Err(io::Error::from_raw_os_error(error))
            }
            _ => self.files.open(path, access),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(path)
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.files.create_dir(dir)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.files.remove_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.files.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.files.sync_dir(dir)
    }

    fn free_space(&self, dir: &Path) -> io::Result<u64> {
        self.files.free_space(dir)
    }

    fn lock(&self, path: &Path, holder: &str) -> io::Result<Locking> {
        self.files.lock(path, holder)
    }
}

#[test]
fn a_panic_while_a_stream_is_written_ends_that_stream_and_no_other() {
    let files = Arc::new(Hindered::default());
    let broker = open_on(files.clone());
    let client = Client::open(&broker);
    // Some of them have the same thread.
    let names = ["first", "b", "c", "d", "e", "f", "g", "h", "i"];
    names.iter().for_each(|name| declare(&client, name));
    files.panics.store(true, Ordering::SeqCst);
    let mut publisher = stream(&client, "first").publish(None);
    for round in 0..3 {
        let mut entry = Vec::new();
        Entry::Message(b"one").write(&mut entry);
        publisher.take(round, None, &entry).unwrap();
        let flushed = publisher.flush().unwrap();
        client.wait(|event| match event {
            Event::Reject { numbers, .. } if numbers.contains(flushed) => Some(()),
            Event::Confirm { .. } => panic!("it was not written"),
            _ => None,
        });
    }
    for name in &names[1..] {
        publish_one_by_one(&client, name, 0..3, 10);
        assert_eq!(read_all(&client, name), dense(0..3));
    }
    broker.close();
}

#[test]
fn a_stream_that_cannot_be_opened_for_want_of_descriptors_or_room_is_opened_once_it_can_be() {
    // EMFILE, ENOSPC. The index says that what is missing at the end is no torn write.
    for (error, of) in [(24, "chunks"), (28, "chunks"), (24, "index")] {
        let files = FaultyFs::new();
        let broker = open(&files);
        let client = Client::open(&broker);
        declare(&client, "s");
        publish_one_by_one(&client, "s", 0..5, 10);
        client.session.close();
        broker.close();
        drop((client, broker));
        let path = chunks(&files).remove(0);
        let cut = place_of(&files, &path, text(3, 10).as_bytes());
        files.corrupt(&path, |bytes| bytes.truncate(cut));
        let hindered = Arc::new(Hindered {
            files,
            error: AtomicI32::new(error),
            of,
            ..Hindered::default()
        });
        let broker = open_on(hindered.clone());
        let client = Client::open(&broker);
        assert!(client.session.stream_to_write("s", CHANNEL).is_err());
        let mut publisher = client.session.publisher(CHANNEL, 1);
        client.publish(&mut publisher, "s", b"\0\0", b"refused", Some(1));
        publisher.flush();
        client.wait(|event| match event {
            Event::Reject { numbers, .. } if numbers.contains(1) => Some(()),
            Event::Confirm { .. } => panic!("there is no file to write it to"),
            _ => None,
        });
        hindered.error.store(0, Ordering::SeqCst);
        let until = Instant::now() + Duration::from_secs(20);
        while client.session.stream_to_write("s", CHANNEL).is_err() {
            assert!(Instant::now() < until, "it is not opened");
            std::thread::yield_now();
        }
        let mut expected = dense(0..3);
        assert_eq!(read_all(&client, "s"), expected);
        let question = stream(&client, "s").sequence(b"me");
        assert_eq!(client.answer(question), Some(broker::Answer::Number(Some(2))));
        publish_one_by_one(&client, "s", 5..8, 10);
        expected.extend(dense(5..8));
        assert_eq!(read_all(&client, "s"), expected);
        broker.close();
    }
}
