//! Streams of a whole node, on a disk that loses what was not synced: clients publish over AMQP and as the stream protocol does,
//! with names and without, read over both, store where they are, and policies change what segments are like and which go; the
//! node is killed, closed, loses its power or has a disk that fails now and then. What must hold: whatever was confirmed, read or
//! answered is so afterwards, offsets have no gaps, nothing of a publisher with a name is there twice, and all go on.
//!
//! `SIM_SEED=29` runs one seed again, `SIM_SEEDS=100000` runs more, `SIM_FIRST=5000` others.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test code")]

#[path = "node_streams/book.rs"]
mod book;

use book::{Book, Message, body_of, message_of};
use broker::{
    Answer, Broker, ChannelId, ConsumerSettings, DeclareQueue, Delivery, Disposal, Event, NextChunk, Outbox,
    PolicyKind, Publisher, PutPolicy, QueueQuestion, ReadChunk, Session, Stream, StreamArguments,
    StreamOffset, StreamPublisher, StreamReader, StreamStart, Subscription, User,
};
use model::chunk::{Chunk, Compression, Entry, Header, SubBatch, UNCOMPRESSED_MOST};
use model::limits::Limits;
use model::properties::{Properties, amqp10};
use model::table::Table;
use model::{ConsumerId, Message as Published, RouteBuf};
use sim::world::{Simulated, until_power_cut};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use storage::World as _;
use storage::faulty::{Fault, FaultyFs, Random};

const SEEDS: u64 = 300;
/// Nothing of the first one may be gone; segments of the second go.
const STREAMS: [&str; 2] = ["kept", "short"];
/// Each publisher has one stream.
const PUBLISHERS: [(Way, usize); 6] = [
    (Way::Named, 0),
    (Way::Named, 1),
    (Way::Nameless, 0),
    (Way::Nameless, 1),
    (Way::Amqp, 0),
    (Way::Amqp, 1),
];
const READERS: u64 = 2;
/// Channels of this one declare, consume and ask; each publisher has its own.
const CHANNEL: ChannelId = ChannelId(1);
/// So long somebody waits for what must come, in simulated time.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Named,
    Nameless,
    Amqp,
}

/// A way into a stream.
enum Sender {
    Stream(StreamPublisher),
    /// With the number of the next message.
    Amqp(Publisher, u64),
    /// A publisher with a name that has not heard yet how far it has come.
    Asks,
}

/// A publisher in one life of the node.
struct Publishing {
    sender: Sender,
    channel: ChannelId,
    /// The last number that it has sent in this life, or heard of.
    number: u64,
    /// What waits for each confirm.
    waiting: BTreeMap<u64, Vec<u64>>,
}

/// Somebody who takes chunks.
struct Reading {
    stream: usize,
    number: u64,
    reader: StreamReader,
    position: Option<u64>,
}

/// Somebody who takes messages.
struct Consuming {
    stream: usize,
    subscription: Subscription,
    position: Option<u64>,
}

/// A question, and what its answer is about.
#[derive(Clone, Copy)]
enum Asked {
    Sequence {
        publisher: usize,
        exactly: bool,
    },
    Offset {
        stream: usize,
        reader: u64,
        expected: Option<u64>,
    },
}

/// One life of the node.
struct Life<'a> {
    world: Arc<Simulated>,
    files: FaultyFs,
    broker: Arc<Broker>,
    session: Arc<Session>,
    outbox: Arc<Outbox>,
    books: &'a mut [Book; 2],
    random: &'a mut Random,
    publishing: Vec<Publishing>,
    reading: Vec<Reading>,
    consuming: BTreeMap<ConsumerId, Consuming>,
    asked: BTreeMap<QueueQuestion, Asked>,
    /// What each reader has stored last in this life.
    last_stored: BTreeMap<(usize, u64), u64>,
    next_channel: u32,
    /// The disk may refuse something while the node starts.
    is_blind: bool,
    /// The disk has refused something in some life.
    has_failed: bool,
}

/// What a seed reached.
#[derive(Default)]
struct Reached {
    confirmed: u64,
    lives: u64,
    dropped: u64,
}

impl<'a> Life<'a> {
    fn begin(
        world: &Arc<Simulated>,
        files: &FaultyFs,
        books: &'a mut [Book; 2],
        random: &'a mut Random,
        (is_blind, has_failed): (bool, bool),
    ) -> Option<Self> {
        let opened = until_power_cut(|| Broker::open(sim::options(world)));
        let broker = match opened {
            Some(Ok(broker)) => broker,
            Some(Err(error)) if !files.is_off() && !is_blind => panic!("it does not start: {error}"),
            _ => return None,
        };
        let outbox = Arc::new(Outbox::new());
        let session = broker.connect(User::named("guest"), "/", outbox.clone()).unwrap();
        Some(Self {
            world: world.clone(),
            files: files.clone(),
            broker,
            session,
            outbox,
            books,
            random,
            publishing: Vec::new(),
            reading: Vec::new(),
            consuming: BTreeMap::new(),
            asked: BTreeMap::new(),
            last_stored: BTreeMap::new(),
            next_channel: 10,
            is_blind,
            has_failed,
        })
    }

    fn channel(&mut self) -> ChannelId {
        self.next_channel += 1;
        ChannelId(self.next_channel as _)
    }

    fn stream(&self, stream: usize) -> Option<Stream> {
        self.session.stream_to_write(STREAMS[stream], CHANNEL).ok()
    }

    fn is_well(&self) -> bool {
        !self.files.is_off() && self.broker.alarm().is_none()
    }

    /// Declares the streams, and looks at what is in them. False if the node did not get so far.
    fn look(&mut self) -> bool {
        for (at, name) in STREAMS.iter().enumerate() {
            let was_there = self.broker.view().queue("/", name).is_some();
            assert!(
                was_there || (self.books[at].confirmed.is_empty() && self.books[at].at.is_empty()),
                "'{name}' is gone, of which something was confirmed or read"
            );
            let declare = DeclareQueue {
                name: (*name).into(),
                durable: true,
                arguments: Table::new().with("x-queue-type", "stream"),
                ..DeclareQueue::default()
            };
            if self.session.declare_queue(CHANNEL, declare).is_err() {
                assert!(!self.is_well() || self.is_blind, "'{name}' cannot be declared");
                return false;
            }
            if !self.is_blind && !self.judge(at) {
                return false;
            }
        }
        for at in 0..PUBLISHERS.len() {
            let publishing = self.come(at);
            self.publishing.push(publishing);
            self.ask_sequence(at, !self.is_blind);
        }
        for stream in 0..STREAMS.len() {
            for reader in 0..READERS {
                self.ask_offset(stream, reader);
            }
        }
        true
    }

    fn judge(&mut self, at: usize) -> bool {
        let Some(stream) = self.stream(at) else {
            assert!(!self.is_well(), "'{}' cannot be had", STREAMS[at]);
            return false;
        };
        let (_, mut reader) = stream.read(StreamStart::First, None);
        let mut there = Vec::new();
        let mut first = None;
        loop {
            match reader.read() {
                NextChunk::Here(chunk) => {
                    let (offset, messages) = messages(&chunk);
                    let begin = *first.get_or_insert(offset);
                    let expected = begin + there.len() as u64;
                    if offset > expected && self.books[at].is_short && self.has_failed {
                        // An old file has stayed that could not be removed, and what followed it has gone.
                        first = Some(offset);
                        there.clear();
                    } else {
                        assert_eq!(offset, expected, "offsets have no gaps");
                    }
                    there.extend(messages);
                }
                NextChunk::AskAgain => {}
                NextChunk::Later => break,
            }
        }
        if !self.is_well() {
            return false;
        }
        let numbers = stream.numbers();
        let begin = first.unwrap_or(stream.resolve(StreamStart::Next));
        assert!(
            numbers.first == first || self.has_failed,
            "it begins with {first:?}, and not with {:?}",
            numbers.first
        );
        assert_eq!(
            numbers.committed,
            (begin + there.len() as u64)
                .checked_sub(1)
                .filter(|_| first.is_some())
        );
        self.books[at].judge(begin, &there);
        true
    }

    /// A publisher comes, or comes again.
    fn come(&mut self, at: usize) -> Publishing {
        let (way, stream) = PUBLISHERS[at];
        let channel = self.channel();
        let sent = self.books[stream].sent.get(&(at as u64)).copied().unwrap_or(0);
        let sender = match way {
            Way::Named => Sender::Asks,
            Way::Nameless => match self.session.stream_to_write(STREAMS[stream], channel) {
                Ok(stream) => Sender::Stream(stream.publish(None)),
                Err(_) => Sender::Asks,
            },
            Way::Amqp => Sender::Amqp(self.session.publisher(channel, 1), 1),
        };
        Publishing {
            sender,
            channel,
            number: sent,
            waiting: BTreeMap::new(),
        }
    }

    /// What a publisher with a name asks. What it is told is exactly what is there, if nothing was published since the start.
    fn ask_sequence(&mut self, publisher: usize, exactly: bool) {
        let (way, stream) = PUBLISHERS[publisher];
        let Some(stream) = self.stream(stream).filter(|_| way == Way::Named) else {
            return;
        };
        let question = stream.sequence(&name(publisher));
        self.asked
            .insert(question, Asked::Sequence { publisher, exactly });
    }

    fn ask_offset(&mut self, stream: usize, reader: u64) {
        let Some(its) = self.stream(stream) else { return };
        let question = its.offset(format!("reader {reader}").as_bytes());
        let expected = self.last_stored.get(&(stream, reader)).copied();
        let asked = Asked::Offset {
            stream,
            reader,
            expected,
        };
        self.asked.insert(question, asked);
    }

    fn answered(&mut self, asked: Asked, answer: Option<u64>) {
        match asked {
            Asked::Sequence { publisher, exactly } => {
                let stream = PUBLISHERS[publisher].1;
                let sequence = answer.unwrap_or(0);
                let book = &mut self.books[stream];
                book.told_sequence(publisher as u64, sequence);
                let mut all = book.at.values().rev();
                let last = all.find(|(it, _)| *it == publisher as u64);
                if let Some((_, last)) = last.filter(|_| exactly) {
                    // What came later may be gone by now.
                    assert!(
                        sequence == *last || (book.is_short && sequence > *last),
                        "publisher {publisher}: its last message is {last}, and it is told {sequence}"
                    );
                }
                let channel = self.channel();
                let Ok(stream) = self.session.stream_to_write(STREAMS[stream], channel) else {
                    return;
                };
                // It sends some again that it knows to be there.
                let again = self.random.below(8);
                self.publishing[publisher] = Publishing {
                    sender: Sender::Stream(stream.publish(Some(&name(publisher)))),
                    channel,
                    number: sequence.saturating_sub(again),
                    waiting: BTreeMap::new(),
                };
            }
            Asked::Offset {
                stream,
                reader,
                expected,
            } => {
                let first = self.stream(stream).and_then(|it| it.numbers().first);
                let first = first.unwrap_or(u64::MAX);
                if let Some(expected) = expected {
                    assert!(
                        answer.map_or(expected < first, |answer| answer >= expected),
                        "reader {reader} has stored {expected}, and is told {answer:?}"
                    );
                }
                self.books[stream].told_offset(reader, answer, first);
            }
        }
    }

    fn publish(&mut self, at: usize) {
        let (way, stream) = PUBLISHERS[at];
        let count = 1 + self.random.below(12);
        let publishing = &mut self.publishing[at];
        let numbers: Vec<u64> = (publishing.number + 1..=publishing.number + count).collect();
        if matches!(publishing.sender, Sender::Asks) {
            return;
        }
        publishing.number += count;
        let sent = self.books[stream].sent.entry(at as u64).or_default();
        *sent = publishing.number.max(*sent);
        match &mut publishing.sender {
            Sender::Stream(publisher) => {
                let together = way == Way::Nameless && self.random.chance();
                for part in numbers.chunks(if together { 5 } else { 1 }) {
                    publisher.take(part[0], None, &entry(at, part)).unwrap();
                }
                if way == Way::Named && self.random.below(4) == 0 {
                    // Some of them once more.
                    for number in &numbers[numbers.len() / 2..] {
                        publisher.take(*number, None, &entry(at, &[*number])).unwrap();
                    }
                }
                let flushed = publisher.flush().unwrap();
                publishing.waiting.insert(flushed, numbers);
            }
            Sender::Amqp(publisher, next) => {
                let route = RouteBuf::new(b"", STREAMS[stream].as_bytes());
                for number in numbers {
                    let body = body_of((at as u64, number));
                    let properties = Properties::amqp091(&[0x10, 0x00, 2]);
                    let message = Published::new(route.as_route(), properties, &body);
                    if publisher.publish(&message, Some(*next)).is_ok() {
                        publishing.waiting.insert(*next, vec![number]);
                    }
                    *next += 1;
                }
                let _ = publisher.flush();
            }
            Sender::Asks => {}
        }
    }

    fn store(&mut self, at: usize) {
        let Some(reading) = self.reading.get(at) else {
            return;
        };
        let (stream, reader) = (reading.stream, reading.number);
        let Some(offset) = reading.position.and_then(|position| position.checked_sub(1)) else {
            return;
        };
        let stored = self.books[stream].stored.entry(reader).or_default();
        if stored.last().is_some_and(|last| *last >= offset) {
            return;
        }
        let Some(its) = self.stream(stream) else { return };
        self.books[stream]
            .stored
            .entry(reader)
            .or_default()
            .insert(offset);
        its.store_offset(format!("reader {reader}").as_bytes(), offset);
        self.last_stored.insert((stream, reader), offset);
        if self.random.chance() {
            self.ask_offset(stream, reader);
        }
    }

    fn begin_to_read(&mut self) {
        let stream = self.random.below(2) as usize;
        let Some(its) = self.stream(stream) else { return };
        let end = its.numbers().committed.map_or(0, |last| last + 1);
        let somewhere = self.random.below(end + 1);
        let (start, position) = match self.random.below(5) {
            0 => (StreamStart::First, None),
            1 => (StreamStart::Next, Some(end)),
            2 => (StreamStart::Last, None),
            _ => (StreamStart::Offset(somewhere), Some(somewhere)),
        };
        let number = self.random.below(READERS);
        let (_, reader) = its.read(start, None);
        self.reading.push(Reading {
            stream,
            number,
            reader,
            position,
        });
        if self.reading.len() > 4 {
            self.reading.remove(0);
        }
    }

    fn read(&mut self, at: usize) {
        let Some(reading) = self.reading.get_mut(at) else {
            return;
        };
        for _ in 0..8 {
            let NextChunk::Here(chunk) = reading.reader.read() else {
                return;
            };
            let (first, messages) = messages(&chunk);
            let book = &mut self.books[reading.stream];
            let next = first + messages.len() as u64;
            if let Some(position) = reading.position {
                assert!(
                    next > position && (book.is_short || first <= position),
                    "offsets {first} to {next} for a reader at {position}"
                );
            }
            reading.position = Some(next);
            (first..)
                .zip(messages)
                .for_each(|(offset, message)| book.read(offset, message));
        }
    }

    fn consume(&mut self) {
        let stream = self.random.below(2) as usize;
        let Some(its) = self.stream(stream) else { return };
        let end = its.numbers().committed.map_or(0, |last| last + 1);
        let position = self.random.below(end + 1);
        let settings = ConsumerSettings {
            paused: false,
            no_ack: false,
            exclusive: false,
            prefetch: 1 + self.random.below(20) as u32,
            priority: 0,
            window: 1 << 20,
        };
        let asked = StreamArguments {
            offset: StreamOffset::Offset(position),
            ..StreamArguments::default()
        };
        let consuming = self
            .session
            .consume(CHANNEL, STREAMS[stream], settings, Some(&asked));
        if let Ok(subscription) = consuming {
            let id = subscription.consumer();
            let position = Some(position);
            self.consuming.insert(
                id,
                Consuming {
                    stream,
                    subscription,
                    position,
                },
            );
        }
        if self.consuming.len() > 2 {
            self.consuming.pop_first();
        }
    }

    fn delivered(&mut self, consumer: ConsumerId, delivery: Delivery) {
        let Some(consuming) = self.consuming.get_mut(&consumer) else {
            return;
        };
        let book = &mut self.books[consuming.stream];
        for seq in delivery.seqs.iter() {
            let message = delivery.block.message((seq - delivery.base) as usize);
            let headers = message.properties.headers_table(&Limits::default()).unwrap();
            let offset = headers
                .get("x-stream-offset")
                .and_then(|it| it.as_integer())
                .unwrap() as u64;
            let position = consuming.position.replace(offset + 1);
            assert!(
                position.is_none_or(|it| it == offset || (book.is_short && it < offset)),
                "offset {offset} for a consumer at {position:?}"
            );
            book.read(offset, message_of(message.body).expect("somebody published it"));
        }
        consuming.subscription.flow(delivery.bytes() as u32);
        let queue = consuming.subscription.queue();
        queue.settle(Some(consumer), delivery.seqs, Disposal::Accepted);
    }

    /// Takes in what the node has for its clients.
    fn take(&mut self) -> bool {
        let mut events = Vec::new();
        self.outbox.take(&mut events, Waker::noop());
        let some = !events.is_empty();
        for event in events {
            match event {
                Event::Confirm { channel, numbers, .. } => {
                    let Some(at) = self.publishing.iter().position(|it| it.channel == channel) else {
                        continue;
                    };
                    for flushed in numbers.iter() {
                        let confirmed = self.publishing[at].waiting.remove(&flushed).unwrap_or_default();
                        let confirmed = confirmed.into_iter().map(|number| (at as u64, number));
                        self.books[PUBLISHERS[at].1].confirmed.extend(confirmed);
                    }
                }
                Event::Reject { channel, numbers, .. } => {
                    let Some(at) = self.publishing.iter().position(|it| it.channel == channel) else {
                        continue;
                    };
                    let publishing = &mut self.publishing[at];
                    numbers.iter().for_each(|flushed| {
                        publishing.waiting.remove(&flushed);
                    });
                    self.books[PUBLISHERS[at].1].without_holes.remove(&(at as u64));
                    if PUBLISHERS[at].0 == Way::Named {
                        publishing.sender = Sender::Asks;
                        self.ask_sequence(at, false);
                    }
                }
                Event::Answer { question, answer, .. } => {
                    let Some(asked) = self.asked.remove(&question) else {
                        continue;
                    };
                    if let Some(Answer::Number(answer)) = answer {
                        self.answered(asked, answer);
                    }
                }
                Event::Deliver {
                    consumer, delivery, ..
                } => self.delivered(consumer, delivery),
                Event::ConsumerCancelled { consumer, .. } => {
                    self.consuming.remove(&consumer);
                }
                _ => {}
            }
        }
        some
    }

    /// Somebody changes how long segments are, and which of the one stream go.
    fn rule(&mut self) {
        let at = self.random.below(2) as usize;
        let mut definition = Table::new().with(
            "stream-max-segment-size-bytes",
            (500 + self.random.below(6_000)) as i64,
        );
        if at == 1 {
            definition.insert("max-length-bytes", (1_000 + self.random.below(20_000)) as i64);
            if self.random.chance() {
                definition.insert("max-age", format!("{}s", 1 + self.random.below(20)).as_str());
            }
        }
        let policy = PutPolicy {
            pattern: format!("^{}$", STREAMS[at]),
            apply_to: "streams".to_owned(),
            priority: 0,
            definition,
        };
        let administrator = self.broker.administrator("guest");
        let put = administrator.put_policy("/", PolicyKind::User, STREAMS[at], policy);
        assert!(put.is_ok() || !self.is_well(), "{put:?}");
    }

    fn go(&mut self) {
        let steps = 40 + self.random.below(160);
        for _ in 0..steps {
            if !self.is_well() {
                return;
            }
            let which = self.random.below(4) as usize;
            match self.random.below(24) {
                0..10 => {
                    let at = self.random.below(PUBLISHERS.len() as u64) as usize;
                    self.publish(at);
                }
                10..12 => self.begin_to_read(),
                12..15 => self.read(which),
                15..17 => self.store(which),
                17 => self.consume(),
                18 => self.rule(),
                19 => {
                    // A publisher goes and comes again, without having heard of everything.
                    let at = self.random.below(PUBLISHERS.len() as u64) as usize;
                    self.publishing[at] = self.come(at);
                    self.ask_sequence(at, false);
                }
                _ => {}
            }
            for _ in 0..self.random.below(8) {
                self.world.step();
            }
            if self.random.below(4) == 0 {
                self.world
                    .advance(Duration::from_millis(self.random.below(2_000)));
            }
            self.take();
        }
    }

    /// Everything that was published is confirmed, and somebody else can publish, too.
    fn finish(&mut self) {
        for at in 0..PUBLISHERS.len() {
            self.rest(|life| !matches!(life.publishing[at].sender, Sender::Asks));
            self.publish(at);
        }
        self.rest(|life| life.publishing.iter().all(|it| it.waiting.is_empty()) && life.asked.is_empty());
        for at in 0..STREAMS.len() {
            assert!(self.judge(at));
        }
    }

    /// Lets the node do what it has to do until this is so.
    fn rest(&mut self, is_so: impl Fn(&Self) -> bool) {
        let until = self.world.elapsed() + TIMEOUT;
        loop {
            self.take();
            if is_so(self) {
                return;
            }
            assert!(self.is_well());
            if self.world.step() {
                continue;
            }
            let next = self.world.next_deadline().unwrap_or(Duration::from_millis(1));
            self.world.advance(next.max(Duration::from_micros(1)));
            assert!(self.world.elapsed() < until, "nothing more comes");
        }
    }
}

fn name(publisher: usize) -> Vec<u8> {
    format!("publisher {publisher}").into_bytes()
}

/// Messages as an entry of a chunk: one, or several together.
fn entry(publisher: usize, numbers: &[u64]) -> Vec<u8> {
    let (mut all, mut together) = (Vec::new(), Vec::new());
    for number in numbers {
        Entry::Message(&body_of((publisher as u64, *number))).write(&mut together);
    }
    let batch = SubBatch {
        compression: Compression::None,
        records: numbers.len() as u16,
        uncompressed_bytes: together.len() as u32,
        body: &together,
    };
    if numbers.len() == 1 {
        return together;
    }
    Entry::SubBatch(batch).write(&mut all);
    all
}

/// The offset of a chunk as it is sent, and its messages.
fn messages(chunk: &ReadChunk) -> (u64, Vec<Message>) {
    let mut header = Header::read(&chunk.header).unwrap();
    (header.filter_bytes, header.trailer_bytes) = (0, 0);
    let mut bytes = header.to_bytes().to_vec();
    bytes.extend_from_slice(&chunk.entries);
    let chunk = Chunk::read(&bytes).expect("a chunk is whole");
    let mut all = Vec::new();
    let mut room = Vec::new();
    let limits = Limits::default();
    for (offset, entry) in chunk.entries() {
        let mut note = |message: &[u8]| {
            let read = amqp10::read(message, offset, &limits);
            all.push(message_of(&read.body).expect("somebody published it"));
        };
        match entry {
            Entry::Message(message) => note(message),
            Entry::SubBatch(batch) => batch
                .messages(&mut room, UNCOMPRESSED_MOST)
                .unwrap()
                .for_each(note),
        }
    }
    (chunk.header().first_offset, all)
}

/// The disk refuses something soon.
fn fail(files: &FaultyFs, random: &mut Random) {
    let faults = [
        Fault::Io,
        Fault::Full,
        Fault::Short,
        Fault::ShortThenFull,
        Fault::NoDescriptor,
    ];
    let fault = faults[random.below(5) as usize];
    files.fail_at(1 + random.below(800), fault);
}

fn run(seed: u64, is_lying: bool) -> Reached {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut files = FaultyFs::new();
    if is_lying {
        files.set_lying();
    }
    let mut now = Duration::from_secs(1);
    let mut books = [Book::default(), Book::default()];
    books[1].is_short = true;
    for (at, (_, stream)) in (0..).zip(PUBLISHERS).filter(|(_, (way, _))| *way == Way::Named) {
        books[stream].without_holes.insert(at);
    }
    let mut reached = Reached::default();
    let mut has_failed = false;
    for left in (0..2 + random.below(4)).rev() {
        let ending = if left == 0 { 0 } else { random.below(5) };
        if ending > 2 {
            let soon = 1 + random.below(1_500);
            files.fail_at(1 + random.below(soon), Fault::PowerCut);
        }
        let fails = left > 0 && random.below(4) == 0;
        has_failed |= fails;
        // Perhaps while the node starts: then nobody looks what is there, for it may not be able to say.
        let is_blind = fails && random.below(3) == 0;
        if is_blind {
            fail(&files, &mut random);
        }
        let world = Simulated::new(files.clone(), now, random.bits());
        let life = Life::begin(&world, &files, &mut books, &mut random, (is_blind, has_failed));
        if let Some(mut life) = life {
            let lived = until_power_cut(|| {
                if !life.look() {
                    return;
                }
                if fails {
                    fail(&life.files, life.random);
                }
                life.go();
                if left == 0 {
                    life.finish();
                }
            });
            // What has arrived was told.
            until_power_cut(|| life.take());
            if lived.is_some() && ending == 0 && life.is_well() {
                (life.reading, life.consuming) = (Vec::new(), BTreeMap::new());
                life.publishing.clear();
                life.session.close();
                until_power_cut(|| life.broker.close());
            }
        }
        world.abandon();
        files = match ending {
            0..3 if !files.is_off() => files.kill(),
            _ => files.crash(random.bits()),
        };
        now = world.elapsed() + Duration::from_secs(1);
        reached.lives += 1;
    }
    reached.confirmed = books.iter().map(|book| book.confirmed.len() as u64).sum();
    reached.dropped = books[1].first;
    reached
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn streams_of_a_node_keep_what_they_have_told() {
    let only = number("SIM_SEED");
    let first = only.or(number("SIM_FIRST")).unwrap_or(1);
    let count = only.map_or(number("SIM_SEEDS").unwrap_or(SEEDS), |_| 1);
    let mut all = Reached::default();
    for seed in first..first + count {
        let run = std::panic::catch_unwind(|| run(seed, false));
        let reached = run.unwrap_or_else(|_| panic!("seed {seed} (SIM_SEED={seed} runs it alone)"));
        all.confirmed += reached.confirmed;
        all.lives += reached.lives;
        all.dropped += reached.dropped;
    }
    println!(
        "{count} seeds from {first} on: {} confirmed in {} lives, {} let go",
        all.confirmed, all.lives, all.dropped
    );
    // Something must have happened, or nothing was shown.
    assert!(only.is_some() || (all.confirmed > 100 * count && all.lives > 2 * count && all.dropped > count));
}

/// A disk that syncs nothing loses something that was told.
#[test]
fn syncs_that_are_left_out_are_found() {
    let found = (1..=50).find(|seed| std::panic::catch_unwind(|| run(*seed, true)).is_err());
    assert!(found.is_some());
}
