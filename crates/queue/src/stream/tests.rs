use super::*;
use model::chunk::{ChunkKind, Entry};
use model::{ConsumerId, Incarnation, Journaled, Ranges};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug, PartialEq)]
struct Plain;

impl Ends for Plain {
    type Receipt = usize;
    type Reply = &'static str;
    type Outlet = ();

    fn split(receipt: &mut usize, _: &Ranges, _: usize) -> usize {
        *receipt
    }
}

/// Something that happens. Numbers choose among what there is.
#[derive(Clone, Debug)]
enum Act {
    /// A publisher, or nobody in particular, publishes messages of these numbers and lengths.
    Publish(Option<u8>, Vec<(u8, u8)>),
    StoreOffset(u8, u8),
    EndTurn,
    Sync,
    /// The node starts again; of what was not synced so much is there.
    Restart(usize),
    /// Another machine is made of what was remembered, and those who read go on.
    Replace(usize),
    Attach(u8),
    Credit(u8),
    Wait(u16),
}

fn act() -> impl Strategy<Value = Act> {
    let messages = prop::collection::vec((0_u8..30, 0_u8..40), 1..8);
    prop_oneof![
        6 => (prop::option::of(0_u8..3), messages).prop_map(|(who, what)| Act::Publish(who, what)),
        1 => (0_u8..3, any::<u8>()).prop_map(|(who, offset)| Act::StoreOffset(who, offset)),
        4 => Just(Act::EndTurn),
        3 => Just(Act::Sync),
        1 => (0_usize..4).prop_map(Act::Restart),
        1 => (0_usize..4).prop_map(Act::Replace),
        1 => (0_u8..4).prop_map(Act::Attach),
        2 => (1_u8..4).prop_map(Act::Credit),
        1 => (0_u16..2_000).prop_map(Act::Wait),
    ]
}

/// A message with the publisher and the number that it came with.
type Sent = (Vec<u8>, Option<(u8, u64)>);

struct Reader {
    position: u64,
    began: u64,
    got: Vec<Vec<u8>>,
}

/// A host with a journal that loses what was not synced, and beside it the naive model: a list of messages.
struct World {
    settings: StreamSettings,
    machine: Stream<Plain>,
    outcome: Outcome<Record, Effect<Plain>>,
    reading: Reading<Plain>,
    now: u64,
    journal: Vec<Record>,
    synced: usize,
    /// With the length of the journal that each one waits for.
    promises: VecDeque<(usize, usize)>,
    /// Of each receipt, how long the naive log was then.
    receipts: Vec<usize>,
    confirmed: usize,
    naive: Vec<Sent>,
    offsets: BTreeMap<u8, u64>,
    readers: BTreeMap<ConsumerId, Reader>,
    next_reader: u64,
}

fn reference(who: u8) -> Arc<[u8]> {
    Arc::from([b'p', who])
}

fn messages(record: &Record) -> Vec<(u64, Vec<u8>)> {
    let chunk = record.chunk();
    let entries = chunk.entries().map(|(offset, entry)| match entry {
        Entry::Message(message) => (offset, message.to_vec()),
        Entry::SubBatch(_) => unreachable!("none is published here"),
    });
    entries.collect()
}

impl World {
    fn new() -> Self {
        let settings = StreamSettings {
            max_bytes: Some(3_000),
            max_age_ms: Some(10_000),
            segment_bytes: 700,
            filter_bytes: 16,
        };
        let mut machine = Stream::new(settings.clone());
        machine.recovered(true);
        Self {
            settings,
            machine,
            outcome: Outcome::default(),
            reading: Reading::new(0),
            now: 1_000,
            journal: Vec::new(),
            synced: 0,
            promises: VecDeque::new(),
            receipts: Vec::new(),
            confirmed: 0,
            naive: Vec::new(),
            offsets: BTreeMap::new(),
            readers: BTreeMap::new(),
            next_reader: 0,
        }
    }

    fn ask(&mut self, request: Request<Plain>) {
        let lowest = self.reading.lowest();
        for request in [Request::Pinned { lowest }, request] {
            self.machine
                .handle(Timestamp(self.now), request, &mut self.outcome);
        }
        self.journal.append(&mut self.outcome.records);
        for promise in self.outcome.promises.drain(..) {
            match promise {
                Effect::Confirm(receipt) => self.promises.push_back((self.journal.len(), receipt)),
                other => panic!("{other:?}"),
            }
        }
        for effect in self.outcome.effects.drain(..) {
            assert!(matches!(effect, Effect::DropBelow { .. }), "{effect:?}");
        }
    }

    fn ask_to_read(&mut self, request: ReadRequest<Plain>) {
        let mut effects = Vec::new();
        self.reading.handle(request, &mut effects);
        self.follow(effects);
    }

    fn commit(&mut self) {
        let below = self.synced_offset();
        let mut effects = Vec::new();
        self.reading.commit(below, &mut effects);
        assert_eq!(self.reading.committed(), below);
        self.follow(effects);
    }

    fn follow(&mut self, effects: Vec<ReadEffect<Plain>>) {
        for effect in effects {
            match effect {
                ReadEffect::Read {
                    reader,
                    from,
                    below,
                    chunks,
                    ..
                } => self.read(reader, from, below, chunks),
                ReadEffect::Gone { .. } => panic!("{effect:?}"),
            }
        }
    }

    fn read(&mut self, id: ConsumerId, from: u64, below: u64, chunks: u32) {
        assert!(below <= self.synced_offset(), "only what is safe is read");
        let reader = self.readers.get_mut(&id).unwrap();
        assert!(from <= reader.position.max(reader.began) && chunks > 0);
        let (mut next, mut sent) = (from, 0);
        for record in &self.journal {
            let header = *record.chunk().header();
            if header.kind == ChunkKind::User && header.next_offset() > from && header.first_offset < below {
                if sent == chunks {
                    break;
                }
                let from = next;
                let new = messages(record).into_iter().filter(|(offset, _)| *offset >= from);
                reader.got.extend(new.map(|(_, message)| message));
                (next, sent) = (header.next_offset(), sent + 1);
            }
        }
        reader.position = next;
        assert!(sent > 0, "it was told to read where there is nothing");
        self.ask_to_read(ReadRequest::Sent {
            reader: id,
            next,
            chunks: sent,
        });
    }

    fn synced_offset(&self) -> u64 {
        let last = self.journal[..self.synced].last();
        last.map_or(0, |record| record.chunk().header().next_offset())
    }

    fn last_of(&self, who: u8) -> Option<u64> {
        let of = self.naive.iter().rev().filter_map(|(_, from)| *from);
        of.filter(|(publisher, _)| *publisher == who)
            .map(|(_, id)| id)
            .next()
    }

    fn publish(&mut self, who: Option<u8>, what: &[(u8, u8)]) {
        let mut batch = Batch::default();
        for (id, length) in what {
            let id = u64::from(*id);
            let message = vec![id as u8; usize::from(*length)];
            let mut entry = Vec::new();
            Entry::Message(&message).write(&mut entry);
            batch.push(id, None, &entry).unwrap();
            match who {
                Some(who) if self.last_of(who).is_some_and(|last| id <= last) => {}
                Some(who) => self.naive.push((message, Some((who, id)))),
                None => self.naive.push((message, None)),
            }
        }
        let receipt = self.receipts.len();
        self.receipts.push(self.naive.len());
        self.ask(Request::Publish {
            reference: who.map(reference),
            batch,
            receipt: Some(receipt),
        });
    }

    fn sync(&mut self) {
        self.synced = self.journal.len();
        while let Some((_, receipt)) = self.promises.pop_front_if(|(length, _)| *length <= self.synced) {
            assert!(
                self.receipts[receipt] as u64 <= self.synced_offset(),
                "confirmed too early"
            );
            assert!(receipt >= self.confirmed, "confirmed twice, or in another order");
            self.confirmed = receipt + 1;
        }
        self.commit();
    }

    /// The closed segments as the files show them, and the chunks of the newest one.
    fn files(&self) -> (Vec<Segment>, Vec<Record>) {
        let (mut closed, mut newest) = (Vec::new(), Vec::new());
        for record in &self.journal {
            // A file is named by its first offset, so one without a message is gone on with.
            let has_messages = newest.first().is_some_and(|first: &Record| {
                first.chunk().header().first_offset < record.chunk().header().first_offset
            });
            if record.chunk().header().kind == ChunkKind::TrackingSnapshot && has_messages {
                let segment = std::mem::take(&mut newest);
                closed.push(segment_of(&segment));
            }
            newest.push(record.clone());
        }
        let first = self.machine.segments().first_offset();
        closed.retain(|segment| segment.first >= first);
        (closed, newest)
    }

    fn restart(&mut self, keep: usize) {
        self.readers.clear();
        self.reading = Reading::new(0);
        self.replace(keep);
    }

    fn replace(&mut self, keep: usize) {
        let unsynced = self.journal.len() - self.synced;
        self.journal.truncate(self.synced + keep.min(unsynced));
        self.synced = self.journal.len();
        self.naive.truncate(self.synced_offset() as usize);
        self.promises.clear();
        let (closed, newest) = self.files();
        let newest_first = newest
            .first()
            .map_or(0, |record| record.chunk().header().first_offset);
        let mut machine = Stream::of_segments(self.settings.clone(), closed, newest_first);
        // Before it applies what has it drop something.
        let lowest = self.reading.lowest();
        let pinned = Request::Pinned { lowest };
        machine.handle(Timestamp(self.now), pinned, &mut self.outcome);
        for record in newest {
            let mut bytes = Vec::new();
            model::Journaled::encode(&record, &mut bytes);
            let again = <Record as model::Journaled>::decode(&bytes).unwrap();
            machine.apply(1, again, &mut self.outcome);
        }
        self.outcome.effects.clear();
        machine.recovered(false);
        let mut whole = Stream::<Plain>::new(self.settings.clone());
        for record in &self.journal {
            whole.apply(1, record.clone(), &mut Outcome::default());
        }
        assert_eq!(
            machine.tracking(),
            whole.tracking(),
            "the newest segment says all"
        );
        assert_eq!(machine.status().next_offset, whole.status().next_offset);
        self.machine = machine;
        // What was stored last may be lost.
        let tracked = self.machine.tracking();
        self.offsets
            .retain(|who, _| tracked.offset(&reference(*who)).is_some());
        for (who, offset) in &mut self.offsets {
            *offset = tracked.offset(&reference(*who)).unwrap();
        }
        self.commit();
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Publish(who, what) => self.publish(*who, what),
            Act::StoreOffset(who, offset) => {
                let offset = u64::from(*offset);
                self.offsets.insert(*who, offset);
                self.ask(Request::StoreOffset {
                    reference: reference(*who),
                    offset,
                });
            }
            Act::EndTurn => {
                self.ask(Request::EndTurn);
                self.check();
            }
            Act::Sync => {
                self.ask(Request::EndTurn);
                self.sync();
            }
            Act::Restart(keep) => {
                self.ask(Request::EndTurn);
                self.restart(*keep);
                self.check();
            }
            Act::Replace(keep) => {
                self.ask(Request::EndTurn);
                self.replace(*keep);
                self.check();
            }
            Act::Attach(from) => self.attach(*from),
            Act::Credit(chunks) => {
                if let Some(reader) = self.readers.keys().next_back().copied() {
                    self.ask_to_read(ReadRequest::Credit {
                        reader,
                        chunks: u32::from(*chunks),
                    });
                }
            }
            Act::Wait(ms) => {
                self.now += u64::from(*ms);
                self.ask(Request::Wake);
                assert!(self.machine.wakes_at_ms() > self.now);
            }
        }
    }

    fn attach(&mut self, from: u8) {
        let (first, committed) = (self.machine.status().first_offset, self.reading.committed());
        let at = match from {
            0 => first,
            1 => self.last_chunk().unwrap_or(committed).max(first),
            2 => committed,
            _ => (first + committed) / 2,
        };
        let at = at.min(committed);
        self.next_reader += 1;
        let reader = ConsumerId(self.next_reader);
        self.readers.insert(
            reader,
            Reader {
                position: at,
                began: at,
                got: Vec::new(),
            },
        );
        self.ask_to_read(ReadRequest::Attach {
            reader,
            outlet: (),
            at,
            credit: 0,
        });
    }

    /// Where the last chunk of messages begins that is safe.
    fn last_chunk(&self) -> Option<u64> {
        let headers = self.journal[..self.synced].iter().rev();
        let mut headers = headers.map(|record| *record.chunk().header());
        let last = headers.find(|header| header.records > 0)?;
        Some(last.first_offset)
    }

    /// The records are the naive log, without gaps; what is tracked is so.
    fn check(&self) {
        let mut all = Vec::new();
        for record in &self.journal {
            assert_eq!(record.chunk().header().first_offset, all.len() as u64);
            all.extend(messages(record).into_iter().map(|(_, message)| message));
        }
        let naive: Vec<_> = self.naive.iter().map(|(message, _)| message.clone()).collect();
        assert_eq!(all, naive);
        let times = self
            .journal
            .iter()
            .map(|record| record.chunk().header().timestamp);
        assert!(times.is_sorted(), "times do not fall");
        for who in 0..3 {
            let sequence = self.machine.tracking().sequence(&reference(who));
            assert_eq!(sequence, self.last_of(who));
            let offset = self.machine.tracking().offset(&reference(who));
            let expected = self.offsets.get(&who).copied();
            let is_forgotten = expected.is_some_and(|offset| offset < self.machine.status().first_offset);
            assert!(offset == expected || (offset.is_none() && is_forgotten));
        }
        let status = self.machine.status();
        assert_eq!(status.next_offset, naive.len() as u64);
        let is_within = status.bytes <= 3_000 + 700 || !self.readers.is_empty();
        assert!(is_within || status.segments < 3, "{status:?}");
    }

    /// All readers read to the end.
    fn finish(&mut self) {
        self.ask(Request::EndTurn);
        self.sync();
        self.check();
        for reader in self.readers.keys().copied().collect::<Vec<_>>() {
            self.ask_to_read(ReadRequest::Credit {
                reader,
                chunks: u32::MAX,
            });
        }
        for reader in self.readers.values() {
            let expected = self.naive[reader.began as usize..].iter();
            let expected: Vec<_> = expected.map(|(message, _)| message.clone()).collect();
            assert_eq!(reader.got, expected);
        }
        assert!(self.promises.is_empty());
    }
}

fn segment_of(records: &[Record]) -> Segment {
    let header = |record: &Record| *record.chunk().header();
    let (first, last) = (header(&records[0]), header(&records[records.len() - 1]));
    Segment {
        first: first.first_offset,
        next: last.next_offset(),
        bytes: records.iter().map(|record| record.bytes().len() as u64).sum(),
        last: last.timestamp,
    }
}

proptest! {
    #[test]
    fn a_stream_is_a_list_of_messages(acts in prop::collection::vec(act(), 1..120)) {
        let mut world = World::new();
        acts.iter().for_each(|act| world.act(act));
        world.finish();
    }
}

fn batch(messages: &[(u64, &[u8])]) -> Batch {
    let mut batch = Batch::default();
    for (id, message) in messages {
        let mut entry = Vec::new();
        Entry::Message(message).write(&mut entry);
        batch.push(*id, None, &entry).unwrap();
    }
    batch
}

#[test]
fn a_batch_of_several_chunks_tells_with_each_how_far_its_publisher_came() {
    let mut stream = Stream::<Plain>::new(StreamSettings::default());
    let mut outcome = Outcome::default();
    let large = vec![7; CHUNK_BYTES / 2];
    let messages: Vec<(u64, &[u8])> = (1..=5).map(|id| (id, &large[..])).collect();
    let publish = Request::Publish {
        reference: Some(reference(0)),
        batch: batch(&messages),
        receipt: Some(1),
    };
    stream.handle(Timestamp(1), publish, &mut outcome);
    assert_eq!(outcome.promises, [], "the last entry is on no record");
    stream.handle(Timestamp(1), Request::EndTurn, &mut outcome);
    assert_eq!(outcome.promises, [Effect::Confirm(1)]);
    for record in &outcome.records {
        let chunk = record.chunk();
        let tracked: Vec<_> = chunk.tracked().collect();
        let last = chunk.header().next_offset();
        let expected = model::chunk::Tracked::Sequence {
            reference: b"p\0",
            id: last,
        };
        assert_eq!(tracked, [expected]);
    }
    assert_eq!(outcome.records.len(), 5);
}

#[test]
fn what_is_sent_again_is_confirmed_behind_what_came_first() {
    let mut stream = Stream::<Plain>::new(StreamSettings::default());
    let mut outcome = Outcome::default();
    for receipt in 1..=2 {
        let publish = Request::Publish {
            reference: Some(reference(0)),
            batch: batch(&[(1, b"a"), (2, b"b")]),
            receipt: Some(receipt),
        };
        stream.handle(Timestamp(1), publish, &mut outcome);
        stream.handle(Timestamp(1), Request::EndTurn, &mut outcome);
    }
    assert_eq!(outcome.promises, [Effect::Confirm(1), Effect::Confirm(2)]);
    assert_eq!(outcome.records.len(), 1);
    assert_eq!(stream.status().next_offset, 2);
}

#[test]
fn a_deleted_stream_refuses_what_comes() {
    let mut stream = Stream::<Plain>::new(StreamSettings::default());
    let mut outcome = Outcome::default();
    let requests = [
        Request::Publish {
            reference: None,
            batch: batch(&[(1, b"a")]),
            receipt: Some(1),
        },
        Request::Retire,
        Request::Publish {
            reference: None,
            batch: batch(&[(2, b"b")]),
            receipt: Some(2),
        },
        Request::EndTurn,
        Request::Sequence {
            reference: reference(0),
            reply: "sequence",
        },
    ];
    for request in requests {
        stream.handle(Timestamp(1), request, &mut outcome);
    }
    let expected = [
        Effect::Reject(1),
        Effect::Reject(2),
        Effect::Reply("sequence", Answer::Unknown),
    ];
    assert_eq!(outcome.effects, expected);
    assert_eq!((outcome.records.len(), outcome.promises.len()), (0, 0));
}

/// The first offset that is left after each of six messages, of which one fills a segment, if readers stand there. A machine that
/// only applies what was decided comes to the same.
fn first_offsets(lowest: Option<u64>) -> Vec<u64> {
    let settings = StreamSettings {
        max_bytes: Some(1_000),
        segment_bytes: 500,
        ..StreamSettings::default()
    };
    let mut decides = Stream::<Plain>::new(settings.clone());
    let mut follows = Stream::<Plain>::new(settings);
    let (mut outcome, now) = (Outcome::default(), Timestamp(1));
    decides.handle(now, Request::Pinned { lowest }, &mut outcome);
    follows.handle(now, Request::Pinned { lowest }, &mut outcome);
    let after = (0..6).map(|_| {
        let publish = Request::Publish {
            reference: None,
            batch: batch(&[(0, &[7; 600])]),
            receipt: None,
        };
        decides.handle(now, publish, &mut outcome);
        decides.handle(now, Request::EndTurn, &mut outcome);
        for record in outcome.records.drain(..) {
            follows.apply(1, record, &mut Outcome::default());
        }
        let first = decides.status().first_offset;
        assert_eq!(follows.status().first_offset, first);
        first
    });
    after.collect()
}

#[test]
fn what_a_reader_stands_in_is_kept_until_it_is_twice_too_much() {
    assert_eq!(first_offsets(None), [0, 0, 1, 2, 3, 4]);
    assert_eq!(first_offsets(Some(0)), [0, 0, 0, 1, 2, 3]);
    assert_eq!(first_offsets(Some(6)), [0, 0, 1, 2, 3, 4]);
}

#[test]
fn what_is_stored_in_one_turn_is_no_more_than_is_remembered() {
    let mut stream = Stream::<Plain>::new(StreamSettings::default());
    let mut outcome = Outcome::default();
    let name = |number: usize| Arc::<[u8]>::from(number.to_string().into_bytes());
    for number in 0..TRACKED_MOST + 3 {
        let store = Request::StoreOffset {
            reference: name(number),
            offset: 10 + number as u64,
        };
        stream.handle(Timestamp(1), store, &mut outcome);
        let publish = Request::Publish {
            reference: Some(name(number)),
            batch: batch(&[(1, b"a")]),
            receipt: None,
        };
        stream.handle(Timestamp(1), publish, &mut outcome);
    }
    stream.handle(Timestamp(1), Request::EndTurn, &mut outcome);
    let tracking = stream.tracking();
    assert_eq!(tracking.offsets_len(), TRACKED_MOST);
    assert_eq!(
        (tracking.offset(&name(2)), tracking.offset(&name(3))),
        (None, Some(13))
    );
    let tracked = outcome
        .records
        .iter()
        .map(|record| record.chunk().tracked().count());
    assert!(tracked.max() <= Some(2 * TRACKED_MOST));
}

#[test]
fn only_so_many_publishers_and_consumers_are_remembered() {
    let mut stream = Stream::<Plain>::new(StreamSettings::default());
    let mut outcome = Outcome::default();
    let name = |number: usize| Arc::<[u8]>::from(number.to_string().into_bytes());
    for number in 0..TRACKED_MOST + 2 {
        let publish = Request::Publish {
            reference: Some(name(number)),
            batch: batch(&[(1, b"a")]),
            receipt: None,
        };
        let now = Timestamp(number as u64);
        stream.handle(now, publish, &mut outcome);
        let store = Request::StoreOffset {
            reference: name(number),
            offset: number as u64,
        };
        stream.handle(now, store, &mut outcome);
        stream.handle(now, Request::EndTurn, &mut outcome);
    }
    let known = |number| {
        let tracking = stream.tracking();
        (tracking.sequence(&name(number)), tracking.offset(&name(number)))
    };
    assert_eq!(known(0), (None, None));
    assert_eq!(known(1), (None, None));
    assert_eq!(known(2), (Some(1), Some(2)));
    let long: Arc<[u8]> = Arc::from(vec![b'x'; 256]);
    let store = Request::StoreOffset {
        reference: long.clone(),
        offset: 1,
    };
    stream.handle(Timestamp(1), store, &mut outcome);
    stream.handle(Timestamp(1), Request::EndTurn, &mut outcome);
    assert_eq!(stream.tracking().offset(&long), None);
}

#[test]
fn nodes_are_forgotten_behind_clients_and_their_earlier_starts_before_them() {
    let mut stream = Stream::<Plain>::new(StreamSettings::default());
    let mut outcome = Outcome::default();
    let mut now = 0;
    let mut publish = |stream: &mut Stream<Plain>, reference: Arc<[u8]>| {
        now += 1;
        let publish = Request::Publish {
            reference: Some(reference),
            batch: batch(&[(7, b"a")]),
            receipt: None,
        };
        stream.handle(Timestamp(now), publish, &mut outcome);
        stream.handle(Timestamp(now), Request::EndTurn, &mut outcome);
    };
    let name = |number: usize| Arc::<[u8]>::from(number.to_string().into_bytes());
    let node = |node, start| senders::reference_of(Incarnation::of(node, start));
    publish(&mut stream, node(1, 2));
    for number in 0..TRACKED_MOST - 2 {
        publish(&mut stream, name(number));
    }
    publish(&mut stream, node(2, 3));
    // It has started again, and there are too many.
    publish(&mut stream, node(2, 4));
    let has = |stream: &Stream<Plain>, reference: &[u8]| stream.sequence(reference).is_some();
    assert!(!has(&stream, &node(2, 3)) && has(&stream, &node(2, 4)));
    assert!(has(&stream, &name(0)));
    for number in TRACKED_MOST..TRACKED_MOST + 500 {
        publish(&mut stream, name(number));
    }
    assert!(has(&stream, &node(1, 2)) && has(&stream, &node(2, 4)));
    assert!(!has(&stream, &name(0)) && has(&stream, &name(TRACKED_MOST + 499)));
    assert_eq!(stream.tracking().sequences_len(), TRACKED_MOST);
    let of_nodes = stream
        .tracking()
        .sequences()
        .filter_map(|(it, _)| senders::sender_of(it));
    assert_eq!(of_nodes.count(), 2);
}

#[test]
fn offsets_alone_do_not_make_a_stream_longer_and_longer() {
    let mut world = World::new();
    world.settings.max_bytes = None;
    world.ask(Request::Configure {
        settings: StreamSettings {
            max_bytes: None,
            max_age_ms: None,
            segment_bytes: 1 << 20,
            filter_bytes: 16,
        },
    });
    world.publish(None, &[(1, 5), (2, 5)]);
    world.ask(Request::EndTurn);
    let name = |who: u32| -> Arc<[u8]> { [&[b'c'; 200][..], &who.to_be_bytes()].concat().into() };
    let (mut most, mut snapshots) = (0, 0);
    for round in 0..200_u64 {
        for who in 0..1_000 {
            let reference = name(who);
            world.ask(Request::StoreOffset {
                reference,
                offset: round,
            });
        }
        let before = world.journal.len();
        world.ask(Request::EndTurn);
        let new = &world.journal[before..];
        let is_snapshot = |it: &&Record| it.chunk().header().kind == ChunkKind::TrackingSnapshot;
        snapshots += new.iter().filter(is_snapshot).count();
        most = most.max(world.machine.status().bytes);
        // What the files have is what the machine counts.
        let at = world.journal.iter().rposition(|it| is_snapshot(&it));
        let active = &world.journal[at.unwrap_or(0)..];
        let bytes: usize = active.iter().map(|it| it.bytes().len()).sum();
        assert_eq!(world.machine.segments().active().bytes, bytes as u64);
        // The same once more is not written.
        let before = world.journal.len();
        world.ask(Request::StoreOffset {
            reference: name(7),
            offset: round,
        });
        world.ask(Request::EndTurn);
        assert_eq!(world.journal.len(), before);
    }
    assert!((2..10).contains(&snapshots), "{snapshots}");
    assert!(most < 2 * TRACKING_BYTES, "{most}");
    assert_eq!(world.machine.status().segments, 2);
    assert_eq!(world.machine.tracking().offset(&name(999)), Some(199));
}

/// What a machine of several nodes decides when this happens to it.
fn decided(acts: &[Act]) -> (Stream<Plain>, Vec<Record>) {
    let settings = StreamSettings {
        segment_bytes: 700,
        ..StreamSettings::default()
    };
    let mut machine = Stream::of_several(settings);
    machine.lead(0);
    let (mut outcome, mut now, mut ids) = (Outcome::default(), 1_000, BTreeMap::<u8, u64>::new());
    for act in acts {
        let request = match act {
            Act::Publish(who, what) => {
                let mut sent = Batch::default();
                for (number, length) in what {
                    let id = who.map_or(0, |who| {
                        let id = ids.entry(who).or_default();
                        *id += 1 + u64::from(*number);
                        *id
                    });
                    let message = vec![*number; usize::from(*length)];
                    let mut entry = Vec::new();
                    Entry::Message(&message).write(&mut entry);
                    sent.push(id, None, &entry).unwrap();
                }
                Request::Publish {
                    reference: who.map(reference),
                    batch: sent,
                    receipt: None,
                }
            }
            Act::StoreOffset(who, offset) => Request::StoreOffset {
                reference: reference(*who),
                offset: u64::from(*offset),
            },
            Act::Wait(ms) => {
                now += u64::from(*ms);
                continue;
            }
            _ => Request::EndTurn,
        };
        machine.handle(Timestamp(now), request, &mut outcome);
    }
    machine.handle(Timestamp(now), Request::EndTurn, &mut outcome);
    (machine, outcome.records)
}

proptest! {
    #[test]
    fn a_machine_that_is_made_of_contents_goes_on_as_the_one_that_had_them(
        acts in prop::collection::vec(act(), 1..120),
        cut in 0_usize..100,
    ) {
        let (leader, records) = decided(&acts);
        if records.is_empty() {
            return Ok(());
        }
        let (before, behind) = records.split_at(cut * records.len() / 100);
        let apply = |machine: &mut Stream<Plain>, records: &[Record]| {
            for record in records {
                machine.apply(0, record.clone(), &mut Outcome::default());
            }
        };
        let mut follower = Stream::of_several(StreamSettings::default());
        apply(&mut follower, before);
        let mut bytes = Vec::new();
        follower.contents().encode(&mut bytes);
        for cut in 0..bytes.len() {
            prop_assert_eq!(Contents::decode(&bytes[..cut]), None);
        }
        let mut made = Stream::of_several(StreamSettings::default());
        made.restore(Contents::decode(&bytes).unwrap());
        prop_assert_eq!(made.contents(), follower.contents());
        for machine in [&mut follower, &mut made] {
            apply(machine, behind);
            prop_assert_eq!(machine.contents(), leader.contents());
            prop_assert_eq!(machine.status(), leader.status());
        }
    }
}
