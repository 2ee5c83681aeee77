//! The streams that this node has copies of, as the broker has them: what a connection asks becomes what the broker knows, and
//! its events become what the connection is told.

use super::catalog_steps::{Step, Steps};
use super::inbox::{Inbox, Told};
use super::streams::*;
use broker::Answer as QueueAnswer;
use broker::{
    ChannelId, Event, Matcher, NextChunk, NoStream, QueueQuestion, Session, Stream, StreamPublisher,
    StreamReader, StreamStart, StreamWatch,
};
use model::ConsumerId;
use protocol::stream::{Entry, OffsetSpec};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The streams of a node.
pub struct NodeStreams;

impl Source for NodeStreams {
    fn open(&self, session: &Arc<Session>, inbox: Arc<Inbox>, secured: bool) -> Box<dyn Streams> {
        Box::new(Opened {
            session: session.clone(),
            inbox,
            secured,
            known: Known::default(),
            sent: BTreeMap::new(),
            offsets: BTreeMap::new(),
            members: BTreeMap::new(),
            asked: BTreeMap::new(),
            steps: None,
        })
    }
}

/// The channel of what is asked of the catalog, and of streams that nobody publishes to.
const CHANNEL: ChannelId = ChannelId(0);

/// So many offsets are kept until they are flushed.
const OFFSETS_AT_ONCE: usize = 1_024;

/// What is asked of a queue.
#[derive(Clone, Copy)]
enum Asked {
    Sequence,
    Offset,
}

struct Opened {
    session: Arc<Session>,
    inbox: Arc<Inbox>,
    /// The client has come by TLS.
    secured: bool,
    known: Known,
    /// What publishers have handed on and nobody has confirmed. It goes with them.
    sent: BTreeMap<PublisherNumber, Weak<Sent>>,
    /// What is to be stored with the next flush: of several offsets under one reference the last one.
    offsets: BTreeMap<(String, Vec<u8>), u64>,
    /// Single active consumers.
    members: BTreeMap<ReaderNumber, (StreamWatch, Registered)>,
    asked: BTreeMap<QueueQuestion, (Question, Asked)>,
    /// What is asked of the catalog, one thing at a time: the connection takes nothing more meanwhile.
    steps: Option<(Question, Steps)>,
}

/// The flushes of a publisher in order, each with the client's numbers of what is in it.
type Sent = Mutex<VecDeque<(u64, Vec<u64>)>>;

/// Whom events of the broker are for.
#[derive(Clone, Default)]
struct Known(Arc<Mutex<BTreeMap<ConsumerId, Whose>>>);

#[derive(Clone)]
struct Whose {
    stream: Arc<str>,
    reader: Option<ReaderNumber>,
}

/// An entry there, until it is dropped.
struct Registered(Known, ConsumerId);

impl Known {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ConsumerId, Whose>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self, id: ConsumerId, stream: &str, reader: Option<ReaderNumber>) -> Registered {
        let stream = stream.into();
        self.lock().insert(id, Whose { stream, reader });
        Registered(self.clone(), id)
    }

    fn of(&self, id: ConsumerId) -> Option<Whose> {
        self.lock().get(&id).cloned()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

impl From<NoStream> for Refused {
    fn from(no: NoStream) -> Self {
        match no {
            NoStream::Access => Self::Access,
            NoStream::Missing => Self::NoStream,
            NoStream::Unavailable => Self::NotAvailable,
        }
    }
}

impl Opened {
    fn answer(&self, question: Question, answer: Result<Answer, Refused>) {
        self.inbox.tell(Told::Answer { question, answer });
    }

    fn to_read(&self, stream: &str) -> Result<Stream, Refused> {
        Ok(self.session.stream_to_read(stream, CHANNEL)?)
    }

    fn begin(&mut self, question: Question, steps: Result<Steps, Refused>) {
        match steps {
            Ok(steps) => {
                self.steps = Some((question, steps));
                self.go_on();
            }
            Err(refused) => self.answer(question, Err(refused)),
        }
    }

    /// Takes the next steps, until one has to wait.
    fn go_on(&mut self) {
        let Some((question, steps)) = &mut self.steps else {
            return;
        };
        if let Some(outcome) = steps.go_on(&self.session, CHANNEL) {
            let question = *question;
            self.steps = None;
            self.answer(question, outcome.map(|()| Answer::Done));
        }
    }

    /// The client's numbers of what was in these flushes.
    fn ids(&self, publisher: PublisherNumber, flushes: &model::Ranges) -> Vec<u64> {
        let Some(sent) = self.sent.get(&publisher).and_then(Weak::upgrade) else {
            return Vec::new();
        };
        let mut all = sent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ids = Vec::new();
        // Mostly those in front, and all of them.
        while let Some(at) = all.iter().position(|(flush, _)| flushes.contains(*flush)) {
            let some = all.remove(at).map(|(_, some)| some).unwrap_or_default();
            match ids.is_empty() {
                true => ids = some,
                false => ids.extend(some),
            }
        }
        ids
    }

    fn answered(&mut self, question: QueueQuestion, answer: Option<QueueAnswer>) {
        let Some((ours, what)) = self.asked.remove(&question) else {
            if let Some((_, steps)) = &mut self.steps
                && steps.answered(&self.session, CHANNEL, question, answer)
            {
                self.go_on();
            }
            return;
        };
        let found = match (answer, what) {
            (Some(QueueAnswer::Number(Some(number))), _) => Ok(Answer::Number(number)),
            (Some(QueueAnswer::Number(None)), Asked::Sequence) => Ok(Answer::Number(0)),
            (Some(QueueAnswer::Number(None)), Asked::Offset) => Err(Refused::NoOffset),
            _ => Err(Refused::NotAvailable),
        };
        self.answer(ours, found);
    }
}

impl Streams for Opened {
    fn event(&mut self, event: Event) {
        match event {
            Event::Confirm { channel, numbers, .. } => {
                let publisher = PublisherNumber(channel.0);
                let ids = self.ids(publisher, &numbers);
                self.inbox.put(Told::Confirmed { publisher, ids });
            }
            Event::Reject { channel, numbers, .. } => {
                let publisher = PublisherNumber(channel.0);
                let (ids, why) = (self.ids(publisher, &numbers), Refused::NotAvailable);
                self.inbox.put(Told::Rejected { publisher, ids, why });
            }
            Event::Readable { consumer, .. } => {
                let reader = self.known.of(consumer).and_then(|whose| whose.reader);
                if let Some(reader) = reader {
                    self.inbox.put(Told::Readable(reader));
                }
            }
            Event::Active { consumer, active, .. } => {
                let reader = self.known.of(consumer).and_then(|whose| whose.reader);
                if let Some(reader) = reader {
                    self.inbox.put(Told::Active { reader, active });
                }
            }
            Event::ConsumerCancelled { consumer, .. } => {
                if let Some(whose) = self.known.of(consumer) {
                    let stream = whose.stream;
                    self.inbox.put(Told::Gone { stream });
                }
            }
            Event::Answer { question, answer, .. } => self.answered(question, answer),
            Event::Permitted => self.go_on(),
            Event::Durable { ticket, .. } => {
                if let Some((_, steps)) = &mut self.steps {
                    steps.durable(ticket);
                    self.go_on();
                }
            }
            _ => {}
        }
    }

    fn create(&mut self, question: Question, stream: &str, arguments: &[(&str, &str)]) {
        let steps = Steps::create(&self.session, stream, arguments);
        self.begin(question, steps);
    }

    fn delete(&mut self, question: Question, stream: &str) {
        let known = self.session.stream_places(stream).map_err(Refused::from);
        let steps = known.map(|_| Steps::of([Step::DeleteQueue(stream.into())]));
        let may = self.session.may_make_stream(stream).map_err(Refused::from);
        self.begin(question, may.and(steps));
    }

    fn create_super_stream(&mut self, question: Question, super_stream: &NewSuperStream<'_>) {
        let steps = Steps::create_super_stream(&self.session, super_stream);
        self.begin(question, steps);
    }

    fn delete_super_stream(&mut self, question: Question, super_stream: &str) {
        let may = self.session.may_make_stream(super_stream).map_err(Refused::from);
        let partitions = may.and_then(|_| self.partitions(super_stream));
        let steps = partitions.map(|partitions| {
            let all = partitions.into_iter().map(Step::DeleteQueue);
            Steps::of(all.chain([Step::DeleteExchange(super_stream.into())]))
        });
        self.begin(question, steps);
    }

    fn locate(&self, stream: &str) -> Result<Located, Refused> {
        let places = self.session.stream_places(stream)?;
        let address = |node| {
            let at = self.session.stream_addresses(node)?;
            let (host, port) = if self.secured { at.tls } else { at.plain };
            Some(Address {
                host: host.into(),
                port: port.into(),
            })
        };
        Ok(Located {
            leader: places.leader.and_then(address),
            replicas: places.replicas.into_iter().filter_map(address).collect(),
        })
    }

    fn partitions(&self, super_stream: &str) -> Result<Vec<String>, Refused> {
        Ok(self.session.super_stream(super_stream)?)
    }

    fn route(&self, super_stream: &str, key: &str) -> Result<Vec<String>, Refused> {
        Ok(self.session.super_stream_route(super_stream, key)?)
    }

    fn publisher(
        &mut self,
        number: PublisherNumber,
        stream: &str,
        reference: Option<&[u8]>,
    ) -> Result<Box<dyn Publisher>, Refused> {
        if reference.is_some_and(|reference| reference.contains(&0)) {
            // Under such references other nodes send.
            return Err(Refused::Precondition);
        }
        let found = self.session.stream_to_write(stream, ChannelId(number.0))?;
        let publisher = found.publish(reference);
        self.sent.retain(|_, sent| sent.strong_count() > 0);
        let sent = Arc::<Sent>::default();
        self.sent.insert(number, Arc::downgrade(&sent));
        Ok(Box::new(Publishing {
            _registered: self.known.register(publisher.id(), stream, None),
            publisher,
            sent,
            ids: Vec::new(),
        }))
    }

    fn sequence(&mut self, question: Question, stream: &str, reference: &[u8]) {
        match self.session.stream_to_write(stream, CHANNEL) {
            Ok(found) => {
                let asked = found.sequence(reference);
                self.asked.insert(asked, (question, Asked::Sequence));
            }
            Err(no) => self.answer(question, Err(no.into())),
        }
    }

    fn offset(&mut self, question: Question, stream: &str, reference: &[u8]) {
        match self.to_read(stream) {
            Ok(found) => {
                let asked = found.offset(reference);
                self.asked.insert(asked, (question, Asked::Offset));
            }
            Err(refused) => self.answer(question, Err(refused)),
        }
    }

    fn store_offset(&mut self, stream: &str, reference: &[u8], offset: u64) {
        if self.offsets.len() >= OFFSETS_AT_ONCE {
            self.flush();
        }
        let of = (stream.to_owned(), reference.to_vec());
        self.offsets.insert(of, offset);
    }

    fn flush(&mut self) {
        for ((stream, reference), offset) in std::mem::take(&mut self.offsets) {
            let stored = self.session.store_stream_offset(&stream, &reference, offset);
            if let Err(refused) = stored {
                tracing::warn!(
                    area = "connection",
                    "an offset in stream '{stream}' is not stored: {refused:?}"
                );
            }
        }
    }

    fn stats(&mut self, question: Question, stream: &str) {
        let stats = self.to_read(stream).map(|found| {
            let numbers = found.numbers();
            let shown = |number: Option<u64>| number.map_or(-1, |it| i64::try_from(it).unwrap_or(i64::MAX));
            Answer::Stats(vec![
                ("first_chunk_id", shown(numbers.first)),
                ("last_chunk_id", shown(numbers.last_chunk)),
                ("committed_chunk_id", shown(numbers.last_chunk)),
                ("committed_offset", shown(numbers.committed)),
            ])
        });
        self.answer(question, stats);
    }

    fn resolve(&mut self, question: Question, stream: &str, from: OffsetSpec, _: Option<Filter>) {
        let found = self.to_read(stream);
        self.answer(
            question,
            found.map(|found| Answer::Number(found.resolve(start(from)))),
        );
    }

    fn reader(
        &mut self,
        number: ReaderNumber,
        stream: &str,
        from: OffsetSpec,
        filter: Option<Filter>,
    ) -> Result<Box<dyn Reader>, Refused> {
        let found = self.to_read(stream)?;
        let matcher = filter.and_then(|filter| Matcher::new(filter.values, filter.unfiltered));
        // What it is told meanwhile is looked at in the connection's next turn.
        let (id, reader) = found.read(start(from), matcher);
        Ok(Box::new(Reading {
            _registered: self.known.register(id, stream, Some(number)),
            reader,
        }))
    }

    fn join(
        &mut self,
        number: ReaderNumber,
        stream: &str,
        group: &str,
        super_stream: Option<&str>,
    ) -> Result<Option<u32>, Refused> {
        let found = self.session.stream_to_read(stream, CHANNEL)?;
        let partition = match super_stream {
            None => None,
            Some(of) => {
                let partitions = self.partitions(of)?;
                let place = partitions.iter().position(|it| it == stream);
                Some(place.ok_or(Refused::Precondition)? as u32)
            }
        };
        let watch = found.watch();
        let registered = self.known.register(watch.id(), stream, Some(number));
        watch.join(group, partition);
        self.members.insert(number, (watch, registered));
        Ok(partition)
    }

    fn stepped_down(&mut self, number: ReaderNumber) {
        if let Some((watch, _)) = self.members.get(&number) {
            watch.stepped_down();
        }
    }

    fn leave(&mut self, number: ReaderNumber) {
        self.members.remove(&number);
    }

    fn writable(&self, stream: &str) -> Result<(), Refused> {
        Ok(self.session.stream_to_write(stream, CHANNEL).map(drop)?)
    }

    fn readable(&self, stream: &str) -> Result<(), Refused> {
        self.to_read(stream).map(drop)
    }
}

fn start(from: OffsetSpec) -> StreamStart {
    match from {
        OffsetSpec::First => StreamStart::First,
        OffsetSpec::Last => StreamStart::Last,
        OffsetSpec::Next => StreamStart::Next,
        OffsetSpec::Offset(offset) => StreamStart::Offset(offset),
        OffsetSpec::Timestamp(ms) => StreamStart::Time(u64::try_from(ms).unwrap_or(0)),
    }
}

struct Publishing {
    _registered: Registered,
    publisher: StreamPublisher,
    sent: Arc<Sent>,
    ids: Vec<u64>,
}

impl Publisher for Publishing {
    fn take(&mut self, entry: &Entry<'_>) -> Result<(), Refused> {
        let id = entry.publishing_id;
        let taken = self
            .publisher
            .take(id, entry.filter_value.map(|it| it.0), entry.bytes);
        taken.map_err(|_| Refused::Precondition)?;
        self.ids.push(id);
        Ok(())
    }

    fn flush(&mut self) {
        // The confirm may be there before this returns.
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flush) = self.publisher.flush() {
            sent.push_back((flush, std::mem::take(&mut self.ids)));
        }
    }
}

struct Reading {
    _registered: Registered,
    reader: StreamReader,
}

impl Reader for Reading {
    fn next(&mut self) -> NextChunk {
        self.reader.read()
    }

    fn committed_chunk(&self) -> u64 {
        self.reader.committed_chunk()
    }

    fn position(&self) -> u64 {
        self.reader.position()
    }
}
