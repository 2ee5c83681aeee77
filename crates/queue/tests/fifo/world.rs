//! A host made of lists: a journal, segments, and a disk that answers when it is told to.

use model::properties::PropertiesBuilder;
use model::table::Table;
use model::{
    Block, BlockBuilder, ConsumerId, Index, Journaled, Machine, Message, Outcome, Ranges, Seq, Timestamp,
    X_DEDUPLICATION_HEADER,
};
use queue::fifo::{
    Answer, Checkpoint, Classic, ConsumerSettings, Delivery, DropReason, Effect, Ends, Glimpse, LocalRecord,
    QueueSettings, Record, Request, Sorting, Standing,
};
use queue::store::{self, Bytes, LogPlace, Piece, Place, Read, Source, Stored};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Ends that are plain numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plain {}

impl Ends for Plain {
    type Receipt = u32;
    type Reply = u32;
    type Outlet = ();

    fn split(receipt: &mut u32, _: &Ranges, _: usize) -> u32 {
        *receipt
    }
}

/// What came out of a turn, in order, as far as clients and the journal can tell.
#[derive(Debug)]
pub enum Event {
    Recorded(Record),
    Delivered(ConsumerId, Delivery),
    Confirmed {
        receipt: u32,
        once_durable: bool,
    },
    Rejected {
        receipt: u32,
        once_durable: bool,
    },
    /// Nothing was taken from this sender, of whom that number is expected next.
    Expected {
        sender: u64,
        number: u64,
    },
    /// Why, and which messages.
    DeadLettered(DropReason, Vec<Seq>),
    Answered(u32, Answer),
    Cancelled(ConsumerId),
    Load(Seq, Source),
    Store(Vec<(Seq, u32)>, bool),
    Released {
        places: Vec<Place>,
        once_durable: bool,
    },
    /// What the store has the node remember.
    Remembered(store::Record),
    /// A checkpoint, and where the log begins from now on.
    Checkpoint(Checkpoint, LogPlace),
    Unreadable(Ranges),
    Unused,
}

/// What survives a crash.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    pub log: BTreeMap<LogPlace, Logged>,
    /// Where the log goes on.
    end: u64,
    pub segments: BTreeMap<(u32, u32), Arc<Block>>,
    next_offset: u32,
    next_segment: u32,
}

/// An entry of the log.
#[derive(Clone, Debug)]
pub enum Logged {
    /// The machine's, by its number.
    Record(Index, Vec<u8>),
    /// This node's own.
    Local(Vec<u8>),
}

impl Disk {
    /// Where the next entry of the log will stand.
    pub fn log_end(&self) -> LogPlace {
        LogPlace(self.end)
    }

    fn append(&mut self, entry: Logged) -> LogPlace {
        let place = self.log_end();
        self.log.insert(place, entry);
        self.end += 1;
        place
    }
}

/// A machine and its host.
pub struct World {
    pub fifo: Classic<Plain>,
    /// Numbers say in which lane messages are, not which ones they are.
    pub sorted: bool,
    pub disk: Disk,
    /// The number of the machine's next record.
    pub next_index: Index,
    /// Everything that was ever in the log.
    pub whole: BTreeMap<LogPlace, Logged>,
    pub loads: VecDeque<(Seq, Source)>,
    pub stores: VecDeque<(Vec<Piece>, bool)>,
    /// Dead letters that have not arrived yet.
    pub dead_letters: VecDeque<(u64, DropReason, Vec<Seq>)>,
    /// What the clock shows.
    pub now: Timestamp,
    /// The disk as it was before the last turn's records and promises reached it, but after its effects did.
    pub crashed: Disk,
}

/// The body of the message that was published as number `seq`.
pub fn body(seq: Seq, size: usize) -> Vec<u8> {
    let mut body = format!("m{seq}.").into_bytes();
    body.resize(size.max(body.len()), b'x');
    body
}

/// Messages `first..first + count` as a block.
pub fn block(first: Seq, sizes: &[usize], persistent: bool) -> Arc<Block> {
    expiring_block(first, sizes, persistent, None)
}

/// The same with an expiration, in milliseconds.
pub fn expiring_block(first: Seq, sizes: &[usize], persistent: bool, expiration: Option<u64>) -> Arc<Block> {
    let mut builder = BlockBuilder::new();
    let properties = match expiration {
        None => vec![0, 0],
        Some(ms) => PropertiesBuilder::new().expiration(ms.to_string()).encode(),
    };
    for (seq, size) in (first..).zip(sizes) {
        builder.push(b"", b"q", &properties, &body(seq, *size));
    }
    Arc::new(builder.finish(persistent, Timestamp(1)))
}

/// The same with deduplication keys; an empty one is none.
pub fn keyed_block(first: Seq, sizes: &[usize], persistent: bool, keys: &[&str]) -> Arc<Block> {
    let mut builder = BlockBuilder::new();
    for ((seq, size), key) in (first..).zip(sizes).zip(keys) {
        let headers = Table::new().with(X_DEDUPLICATION_HEADER, *key);
        let properties = match key.is_empty() {
            true => vec![0, 0],
            false => PropertiesBuilder::new().headers(&headers).encode(),
        };
        builder.push(b"", b"q", &properties, &body(seq, *size));
    }
    Arc::new(builder.finish(persistent, Timestamp(1)))
}

/// The message's number, told from its body.
pub fn number(message: Message<'_>) -> Seq {
    let digits = message.body.iter().skip(1).take_while(|byte| **byte != b'.');
    digits.fold(0, |number, digit| number * 10 + Seq::from(digit - b'0'))
}

/// The numbers of a delivery, each checked against its body.
pub fn numbers(delivery: &Delivery) -> Vec<Seq> {
    let check = |seq| {
        let message = delivery.block.message((seq - delivery.base) as usize);
        assert_eq!(number(message), seq, "a wrong body was delivered");
        seq
    };
    delivery.seqs.iter().map(check).collect()
}

/// A request to consume, with a window that is never used up.
pub fn consume(id: u64, no_ack: bool, prefetch: u32, priority: i64) -> Request<Plain> {
    let settings = ConsumerSettings {
        paused: false,
        no_ack,
        exclusive: false,
        prefetch,
        priority,
        window: 1 << 20,
    };
    Request::Consume {
        consumer: ConsumerId(id),
        outlet: (),
        settings,
        reply: 0,
    }
}

/// A request to take no more memory for bodies.
pub fn shrink(memory: usize) -> Request<Plain> {
    Request::Store(store::Request::Shrink { memory })
}

/// A request to empty a segment.
pub fn compact(segment: u32) -> Request<Plain> {
    Request::Store(store::Request::Compact { segment })
}

impl World {
    pub fn new(settings: QueueSettings) -> Self {
        Self {
            sorted: settings.sorting.sorts_always(),
            fifo: Classic::new(settings),
            disk: Disk {
                next_segment: 1,
                end: 1,
                ..Disk::default()
            },
            next_index: 1,
            whole: BTreeMap::new(),
            loads: VecDeque::new(),
            stores: VecDeque::new(),
            dead_letters: VecDeque::new(),
            now: Timestamp(1),
            crashed: Disk::default(),
        }
    }

    /// A machine that replayed what the disk holds, after a stop in good order.
    pub fn restarted(settings: QueueSettings, disk: Disk) -> Self {
        Self::replayed(settings, disk, true)
    }

    /// A machine that replayed what the disk holds.
    pub fn replayed(settings: QueueSettings, disk: Disk, closed: bool) -> Self {
        let mut world = Self {
            disk,
            ..Self::new(QueueSettings {
                // A host learns how a queue sorts after it has replayed the journal.
                sorting: Sorting::Arrival,
                ..settings.clone()
            })
        };
        world.sorted = settings.sorting.sorts_always();
        world.replay();
        world.fifo.recovered(closed);
        let places: Vec<Place> = world.fifo.places().collect();
        world.disk.segments.retain(|(segment, offset), _| {
            places
                .iter()
                .any(|place| (place.segment, place.offset) == (*segment, *offset))
        });
        if world.sorted {
            world.handle(Request::Configure {
                settings: Box::new(settings),
            });
        }
        world
    }

    fn replay(&mut self) {
        self.fifo.replay();
        self.whole = self.disk.log.clone();
        for (place, entry) in &self.disk.log {
            match entry {
                Logged::Record(index, bytes) => {
                    let mut outcome = Outcome::default();
                    let record = Record::decode(bytes).unwrap();
                    let first = match &record {
                        Record::Enqueued { first, .. } => Some(*first),
                        _ => None,
                    };
                    self.fifo.apply(*index, record, &mut outcome);
                    if let Some(first) = first {
                        self.fifo.appended(first, *place);
                    }
                    self.next_index = index + 1;
                    let quiet = outcome.effects.is_empty() && outcome.records.is_empty();
                    assert!(quiet && outcome.promises.is_empty(), "a replay orders nothing");
                }
                Logged::Local(bytes) => {
                    let record = LocalRecord::decode(bytes).unwrap();
                    if let LocalRecord::Checkpoint(checkpoint) = &record {
                        self.next_index = checkpoint.next;
                    }
                    self.fifo.apply_local(record);
                }
            }
        }
    }

    fn log(&mut self, entry: Logged) -> LogPlace {
        self.whole.insert(self.disk.log_end(), entry.clone());
        self.disk.append(entry)
    }

    fn log_local(&mut self, record: &LocalRecord) -> LogPlace {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        assert_eq!(LocalRecord::decode(&bytes).as_ref(), Some(record));
        self.log(Logged::Local(bytes))
    }

    /// One turn. What cannot be read here nobody else has.
    pub fn handle(&mut self, request: Request<Plain>) -> Vec<Event> {
        let mut outcome = Outcome::default();
        let first_place = self.disk.log_end();
        self.fifo.handle(self.now, request, &mut outcome);
        let mut events = Vec::new();
        for record in outcome.records {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            let mut again = Vec::new();
            Record::decode(&bytes).unwrap().encode(&mut again);
            assert_eq!(bytes, again);
            let place = self.log(Logged::Record(self.next_index, bytes));
            // Numbers rise, and some are not there: a journal of several nodes has entries of its own.
            self.next_index += 1 + self.next_index % 3;
            if let Record::Enqueued { first, .. } = &record {
                self.fifo.appended(*first, place);
            }
            events.push(Event::Recorded(record));
        }
        let mut waits = !events.is_empty();
        let mut unreadable = Ranges::new();
        for effect in outcome.effects {
            events.push(self.carry_out(effect, false));
            if let Some(Event::Unreadable(seqs)) = events.last() {
                seqs.spans()
                    .for_each(|(first, last)| unreadable.push_span(first, last));
            }
        }
        self.crashed = self.disk.clone();
        self.crashed.log.retain(|place, _| *place < first_place);
        for effect in outcome.promises {
            let local = matches!(
                effect,
                Effect::Store(store::Effect::Remember(_) | store::Effect::Checkpoint)
            );
            waits |= local;
            events.push(self.carry_out(effect, waits));
        }
        if !unreadable.is_empty() {
            let crashed = self.crashed.clone();
            events.extend(self.handle(Request::GiveUp { seqs: unreadable }));
            self.crashed = crashed;
        }
        events
    }

    fn carry_out(&mut self, effect: Effect<Plain>, once_durable: bool) -> Event {
        match effect {
            Effect::Deliver {
                consumer, delivery, ..
            } => Event::Delivered(consumer, delivery),
            Effect::Confirm(receipt) => Event::Confirmed {
                receipt,
                once_durable,
            },
            Effect::Reject(receipt) => Event::Rejected {
                receipt,
                once_durable,
            },
            Effect::Expects { sender, number, .. } => Event::Expected {
                sender: sender.0,
                number,
            },
            Effect::DeadLetter {
                ticket,
                to: _,
                reason,
                pieces,
            } => {
                let blocks = pieces.iter().map(|piece| self.read_piece(piece).unwrap());
                let seqs = blocks.flat_map(|block| (0..block.len()).map(move |at| number(block.message(at))));
                let seqs: Vec<Seq> = seqs.collect();
                self.dead_letters.push_back((ticket, reason, seqs.clone()));
                Event::DeadLettered(reason, seqs)
            }
            Effect::Reply(reply, answer) => Event::Answered(reply, answer),
            Effect::CancelConsumer { consumer, .. } => Event::Cancelled(consumer),
            Effect::Store(effect) => self.serve_store(effect, once_durable),
            Effect::DeleteQueue => Event::Unused,
            Effect::Readable { .. } | Effect::Active { .. } => unreachable!("only streams have readers"),
        }
    }

    fn serve_store(&mut self, effect: store::Effect, once_durable: bool) -> Event {
        match effect {
            store::Effect::Load { first, source, .. } => {
                self.loads.push_back((first, source));
                Event::Load(first, source)
            }
            store::Effect::Store { pieces, durable } => {
                let named = pieces.iter().map(|piece| (piece.first, piece.count)).collect();
                self.stores.push_back((pieces, durable));
                Event::Store(named, durable)
            }
            store::Effect::Release { places } => {
                for place in &places {
                    let gone = self.disk.segments.remove(&(place.segment, place.offset));
                    assert!(gone.is_some(), "{place:?} was released twice");
                }
                Event::Released { places, once_durable }
            }
            store::Effect::Remember(record) => {
                self.log_local(&LocalRecord::Store(record.clone()));
                Event::Remembered(record)
            }
            store::Effect::Checkpoint => {
                let checkpoint = self.fifo.checkpoint(self.next_index);
                let own = self.log_local(&LocalRecord::Checkpoint(checkpoint.clone()));
                let before = checkpoint.first_in_log().unwrap_or(own);
                self.disk.log.retain(|place, _| *place >= before);
                Event::Checkpoint(checkpoint, before)
            }
            store::Effect::FindElsewhere { seqs } => Event::Unreadable(seqs),
        }
    }

    pub fn read(&self, source: Source) -> Option<Arc<Block>> {
        match source {
            Source::Segment(place) => self.disk.segments.get(&(place.segment, place.offset)).cloned(),
            Source::Log(place) => match self.disk.log.get(&place)? {
                Logged::Record(_, bytes) => match Record::decode(bytes)? {
                    Record::Enqueued { block, .. } => Some(block),
                    _ => None,
                },
                Logged::Local(_) => None,
            },
        }
    }

    /// Looks at the whole queue, so many messages at a time, and reads every body: each message's number in the queue, the
    /// number that its body tells, whose it is, and whether it may have been delivered before.
    pub fn seen(&self, step: u64) -> Vec<(Seq, Seq, Standing, bool)> {
        let mut all = Vec::new();
        let mut from = None;
        loop {
            let glance = self.fifo.look(from, 0, step);
            for span in &glance.spans {
                all.extend((span.first..=span.last).map(|seq| self.see(span, seq)));
            }
            from = glance.next;
            if from.is_none() {
                return all;
            }
        }
    }

    fn see(&self, span: &Glimpse, seq: Seq) -> (Seq, Seq, Standing, bool) {
        let block = match &span.bytes {
            Some(Bytes::Memory(block)) => block.clone(),
            Some(Bytes::Source(source)) => self.read(*source).unwrap(),
            None => panic!("{seq} cannot be read"),
        };
        let message = block.message((seq - span.base) as usize);
        (seq, number(message), span.standing, span.redelivered)
    }

    /// The disk answers the oldest load.
    pub fn load_one(&mut self) -> Option<Vec<Event>> {
        let (first, source) = self.loads.pop_front()?;
        let read = self.read(source).map_or(Read::Damaged, Read::intact);
        Some(self.answer_load(first, read))
    }

    /// The disk answers a load.
    pub fn answer_load(&mut self, first: Seq, read: Read) -> Vec<Event> {
        self.handle(Request::Store(store::Request::FinishLoad { first, read }))
    }

    /// A request for a checkpoint of all but the last entries of the log.
    pub fn checkpoint(&self, back: u64) -> Request<Plain> {
        let before = LogPlace(self.disk.end.saturating_sub(back));
        Request::Store(store::Request::Checkpoint { before })
    }

    /// The disk answers the oldest store; every piece for which `fails` holds is not written.
    pub fn store_one(&mut self, fails: impl Fn(usize) -> bool) -> Option<Vec<Event>> {
        let (pieces, _) = self.stores.pop_front()?;
        let mut stored = Vec::new();
        for (at, piece) in pieces.iter().enumerate() {
            if fails(at) {
                continue;
            }
            if let Some(place) = self.write(piece) {
                stored.push(Stored {
                    first: piece.first,
                    count: piece.count,
                    place,
                });
            }
        }
        Some(self.handle(Request::Store(store::Request::FinishStore {
            pieces: stored,
            unreadable: Ranges::new(),
        })))
    }

    /// The oldest dead letters have arrived.
    pub fn dead_letter_one(&mut self) -> Option<Vec<Event>> {
        let (ticket, ..) = self.dead_letters.pop_front()?;
        Some(self.handle(Request::FinishDeadLetters {
            ticket,
            unread: Ranges::new(),
            failed: Ranges::new(),
        }))
    }

    pub fn read_piece(&self, piece: &Piece) -> Option<Block> {
        let mut builder = BlockBuilder::new();
        for part in &piece.parts {
            let block = match &part.bytes {
                Bytes::Memory(block) => block.clone(),
                Bytes::Source(source) => self.read(*source)?,
            };
            for at in part.from..part.from + part.count {
                builder.push_message(&block.message(at as usize));
            }
        }
        assert_eq!(builder.len(), piece.count as usize);
        Some(builder.finish(true, Timestamp(1)))
    }

    fn write(&mut self, piece: &Piece) -> Option<Place> {
        let block = self.read_piece(piece)?;
        Some(self.write_block(piece.first, block))
    }

    /// Puts messages `first..` into a segment.
    pub fn write_block(&mut self, first: Seq, block: Block) -> Place {
        for (seq, at) in (first..).zip(0..block.len()) {
            let right = self.sorted || number(block.message(at)) == seq;
            assert!(right, "a wrong body was stored");
        }
        self.disk.next_offset += 1;
        if self.disk.next_offset.is_multiple_of(4) {
            self.disk.next_segment += 1;
        }
        let place = Place {
            segment: self.disk.next_segment,
            offset: self.disk.next_offset,
            length: block.bytes().len() as u32,
        };
        self.disk
            .segments
            .insert((place.segment, place.offset), Arc::new(block));
        place
    }

    /// The disk answers until nobody asks any more.
    pub fn settle_disk(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(more) = self.load_one().or_else(|| self.store_one(|_| false)) {
            events.extend(more);
        }
        events
    }

    /// Takes everything that is ready, and checks every body.
    pub fn drain(&mut self) -> Vec<Seq> {
        let mut all = Vec::new();
        loop {
            let mut events = self.handle(Request::Get {
                no_ack: true,
                reply: 0,
            });
            events.extend(self.settle_disk());
            let got = events.into_iter().find_map(|event| match event {
                Event::Answered(_, Answer::Got { delivery, .. }) => Some(numbers(&delivery)),
                _ => None,
            });
            match got {
                Some(numbers) => all.extend(numbers),
                None => return all,
            }
        }
    }

    /// Takes everything that is ready: the numbers that the bodies tell.
    pub fn drain_numbers(&mut self) -> Vec<u64> {
        let mut all = Vec::new();
        loop {
            let mut events = self.handle(Request::Get {
                no_ack: true,
                reply: 1,
            });
            events.extend(self.settle_disk());
            let got = events.into_iter().find_map(|event| match event {
                Event::Answered(_, Answer::Got { delivery, .. }) => {
                    let seq = delivery.seqs.first()?;
                    Some(number(delivery.block.message((seq - delivery.base) as usize)))
                }
                _ => None,
            });
            match got {
                Some(number) => all.push(number),
                None => return all,
            }
        }
    }
}
