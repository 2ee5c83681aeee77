//! What the front end of the stream protocol asks of streams: it publishes batches to them, reads chunks of them, and keeps
//! numbers in them. A stream is read from this node's copy of it, whoever leads, and written to where it is led; where that is,
//! and who else has a copy, clients are told.

use super::consume;
use crate::clients::outbox::{ChannelId, Outbox, Question};
use crate::node::ends::{Ends, Outlet, Receipt, Reply};
use crate::queues::streams::{StreamLog, StreamReader};
use crate::queues::{Queue, StreamAddresses};
use crate::session::Session;
use catalog::{NodeId, ObjectKind, QueueKind, StreamOffset, Verb};
use model::chunk::{Batch, EntryError, Matcher};
use model::properties::Properties;
use model::table::Value;
use model::{ConsumerId, Message, Ranges};
use queue::stream::{ReadRequest, Request as Ask, Start, StreamRequest};
use queue::{Answer, Request};
use smallvec::SmallVec;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// Why a client does not get at a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoStream {
    /// The user may not.
    Access,
    /// There is none of this name, or it is another kind of queue.
    Missing,
    /// This node has no copy of it, or does not lead it and would have to; or its files cannot be read.
    Unavailable,
}

/// The nodes that have a stream, as far as this one knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamPlaces {
    /// Who leads it: whom to publish to.
    pub leader: Option<NodeId>,
    /// The others that have a copy and can be reached.
    pub replicas: Vec<NodeId>,
}

/// This node's copy of a stream, as one connection uses it.
#[derive(Clone)]
pub struct Stream {
    queue: Arc<Queue>,
    log: Arc<StreamLog>,
    outbox: Arc<Outbox>,
    channel: ChannelId,
}

/// Numbers of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamNumbers {
    /// The first offset that is there; `None` if there is no message.
    pub first: Option<u64>,
    /// Where the last chunk begins that is safe.
    pub last_chunk: Option<u64>,
    /// The last offset that is safe.
    pub committed: Option<u64>,
}

/// What a stream keeps for its clients, each in the order of references.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamTracking {
    /// The offsets that consumers have stored, by their references.
    pub offsets: Vec<(Vec<u8>, u64)>,
    /// The last numbers of publishers, by theirs.
    pub sequences: Vec<(Vec<u8>, u64)>,
}

/// A place among those who are told of a stream: that it is gone, or that it is their turn. It ends with this.
pub struct StreamWatch {
    stream: Stream,
    id: ConsumerId,
}

/// Publishes batches to a stream.
pub struct StreamPublisher {
    watch: StreamWatch,
    reference: Option<Arc<[u8]>>,
    batch: Batch,
    flushed: u64,
}

impl Session {
    /// A stream that the user may read, of which this node has a copy.
    ///
    /// # Errors
    /// [`NoStream::Access`] first of all.
    pub fn stream_to_read(&self, name: &str, channel: ChannelId) -> Result<Stream, NoStream> {
        self.stream(name, Verb::Read, channel)
    }

    /// A stream that the user may read and this node leads: for what its machine alone knows.
    ///
    /// # Errors
    /// As [`Self::stream_to_read`].
    pub fn stream_led_here(&self, name: &str, channel: ChannelId) -> Result<Stream, NoStream> {
        self.stream_to_read(name, channel)?.led()
    }

    /// A stream that the user may write to, which this node leads.
    ///
    /// # Errors
    /// [`NoStream::Access`] first of all.
    pub fn stream_to_write(&self, name: &str, channel: ChannelId) -> Result<Stream, NoStream> {
        self.stream(name, Verb::Write, channel)?.led()
    }

    /// Which nodes have a stream.
    ///
    /// # Errors
    /// [`NoStream::Missing`].
    pub fn stream_places(&self, name: &str) -> Result<StreamPlaces, NoStream> {
        let known = self.find_stream(name)?;
        Ok(self.places(&known))
    }

    fn places(&self, known: &catalog::Queue) -> StreamPlaces {
        let topology = self.broker().topology();
        let leader = match known.is_shared() {
            true => topology.leader_of(known),
            false => Some(known.home),
        };
        let others = known.places().filter(|node| Some(*node) != leader);
        StreamPlaces {
            leader,
            replicas: others.filter(|node| topology.reaches(*node)).collect(),
        }
    }

    /// True if there is a queue of this name, of whatever kind, for somebody who wants to make a stream or remove it.
    ///
    /// # Errors
    /// [`NoStream::Access`].
    pub fn may_make_stream(&self, name: &str) -> Result<bool, NoStream> {
        let may = self.check(Verb::Configure, ObjectKind::Queue, name);
        may.map_err(|_| NoStream::Access)?;
        Ok(self.broker().view().queue(self.vhost(), name).is_some())
    }

    /// True if there is an exchange of this name.
    pub fn has_exchange(&self, name: &str) -> bool {
        self.broker().view().exchange(self.vhost(), name).is_some()
    }

    /// Where clients of the stream protocol reach a node; `None` if it has not said so since this one has heard of it.
    pub fn stream_addresses(&self, node: NodeId) -> Option<StreamAddresses> {
        self.broker().topology().stream_addresses(node)
    }

    /// Stores an offset under a reference in a stream that the user may read, on whatever node leads it. As nobody is told
    /// whether it was stored, it may be lost on its way to another node; and it overtakes nothing that was sent before.
    ///
    /// # Errors
    /// As [`Self::stream_to_read`]; [`NoStream::Unavailable`] if nobody leads it who can be spoken to.
    pub fn store_stream_offset(&self, name: &str, reference: &[u8], offset: u64) -> Result<(), NoStream> {
        let known = self.known_stream(name, Verb::Read)?;
        let topology = self.broker().topology();
        let leader = self.places(&known).leader.ok_or(NoStream::Unavailable)?;
        if leader != topology.own_node() {
            let is_sent = topology.store_offset(leader, known.id, reference, offset);
            return is_sent.then_some(()).ok_or(NoStream::Unavailable);
        }
        let found = self.stream_led_here(name, ChannelId(0))?;
        found.store_offset(reference, offset);
        Ok(())
    }

    /// The stream, if the user may do that with it.
    fn known_stream(&self, name: &str, verb: Verb) -> Result<Arc<catalog::Queue>, NoStream> {
        self.check(verb, ObjectKind::Queue, name)
            .map_err(|_| NoStream::Access)?;
        self.find_stream(name)
    }

    fn find_stream(&self, name: &str) -> Result<Arc<catalog::Queue>, NoStream> {
        let view = self.broker().view();
        let known = view.queue(self.vhost(), name);
        let known = known.filter(|known| known.kind == QueueKind::Stream);
        known.cloned().ok_or(NoStream::Missing)
    }

    fn stream(&self, name: &str, verb: Verb, channel: ChannelId) -> Result<Stream, NoStream> {
        let id = self.known_stream(name, verb)?.id;
        let handle = self.broker().registry().get(id).ok_or(NoStream::Missing)?;
        let queue = handle.copy().cloned().ok_or(NoStream::Unavailable)?;
        let log = queue.stream_log().cloned().ok_or(NoStream::Unavailable)?;
        Ok(Stream {
            queue,
            log,
            outbox: self.outbox().clone(),
            channel,
        })
    }

    /// The streams of a super stream, in the order that its bindings say.
    ///
    /// # Errors
    /// [`NoStream::Missing`] if there is no such exchange. As in RabbitMQ, any will do.
    pub fn super_stream(&self, name: &str) -> Result<Vec<String>, NoStream> {
        let view = self.broker().view();
        let exchange = view.exchange(self.vhost(), name).ok_or(NoStream::Missing)?;
        let order = |binding: &catalog::Binding| {
            let said = binding.arguments.get("x-stream-partition-order");
            said.and_then(Value::as_integer).unwrap_or(i64::MAX)
        };
        let bindings = view.vhost(self.vhost()).into_iter();
        let bindings = bindings.flat_map(|vhost| vhost.bindings_from(exchange));
        let is_stream = |name: &str| {
            let known = view.queue(self.vhost(), name);
            known.is_some_and(|known| known.kind == QueueKind::Stream)
        };
        let mut streams: Vec<(i64, String)> = bindings
            .filter(|binding| is_stream(binding.destination.name()))
            .map(|binding| (order(binding), binding.destination.name().to_string()))
            .collect();
        streams.sort();
        Ok(streams.into_iter().map(|(_, name)| name).collect())
    }

    /// Into which of its streams something with this key goes.
    ///
    /// # Errors
    /// As [`Self::super_stream`].
    pub fn super_stream_route(&self, name: &str, key: &str) -> Result<Vec<String>, NoStream> {
        let view = self.broker().view();
        let exchange = view.exchange(self.vhost(), name).ok_or(NoStream::Missing)?;
        let mut envelope = catalog::Envelope::new(key.as_bytes(), Properties::amqp091(b""));
        let mut ids = SmallVec::new();
        view.route(exchange, &mut envelope, &mut ids);
        let queues = view.queues(self.vhost());
        let routed = queues.filter(|queue| ids.contains(&queue.id));
        Ok(routed.map(|queue| queue.name.to_string()).collect())
    }
}

impl Stream {
    fn submit(&self, request: StreamRequest<Ends>) {
        self.queue.submit(Request::Stream(Box::new(request)));
    }

    fn ask(&self, request: Ask<Ends>) {
        self.submit(StreamRequest::Machine(request));
    }

    /// The same stream, if this node leads it.
    fn led(self) -> Result<Self, NoStream> {
        match self.queue.is_led_here() {
            true => Ok(self),
            false => Err(NoStream::Unavailable),
        }
    }

    fn reply(&self) -> Reply {
        Reply {
            outbox: self.outbox.clone(),
            channel: self.channel,
            question: Question(self.queue.node().number()),
            no_ack: false,
        }
    }

    fn question(&self, request: impl FnOnce(Reply) -> Ask<Ends>) -> Question {
        let reply = self.reply();
        let question = reply.question;
        self.ask(request(reply));
        question
    }

    fn outlet(&self) -> Outlet {
        Outlet {
            outbox: self.outbox.clone(),
            channel: self.channel,
            no_ack: false,
        }
    }

    /// The last publishing number under a reference: its answer is [`Answer::Number`]. Only the node that leads knows it, for
    /// what it has not made a chunk of yet stands in none.
    pub fn sequence(&self, reference: &[u8]) -> Question {
        let reference = reference.into();
        self.question(|reply| Ask::Sequence { reference, reply })
    }

    /// The offset that was stored under a reference, in the same way. Where another node leads, this node's copy answers, which
    /// may know a moment later what was stored.
    pub fn offset(&self, reference: &[u8]) -> Question {
        if self.queue.is_led_here() {
            let reference = reference.into();
            return self.question(|reply| Ask::Offset { reference, reply });
        }
        let reply = self.reply();
        let tracking = self.queue.tracking();
        let stored = tracking.map(|tracking| Answer::Number(tracking.offset(reference)));
        reply.outbox.send(reply.answered(stored));
        reply.question
    }

    /// Stores an offset under a reference.
    pub fn store_offset(&self, reference: &[u8], offset: u64) {
        let reference = reference.into();
        self.ask(Ask::StoreOffset { reference, offset });
    }

    /// What it keeps for its clients, as far as it is on record.
    pub fn tracking(&self) -> StreamTracking {
        let tracking = self.queue.tracking().unwrap_or_default();
        let owned = |(reference, number): (&[u8], u64)| (reference.to_vec(), number);
        // Under references with a zero other nodes send: that is nobody's business.
        let of_clients = |(reference, _): &(&[u8], u64)| !reference.contains(&0);
        StreamTracking {
            offsets: tracking.offsets().map(owned).collect(),
            sequences: tracking.sequences().filter(of_clients).map(owned).collect(),
        }
    }

    /// Its numbers.
    pub fn numbers(&self) -> StreamNumbers {
        let (first, committed) = (self.log.first_offset(), self.log.committed());
        let is_empty = first >= committed;
        StreamNumbers {
            first: (!is_empty).then_some(first),
            last_chunk: self.log.last_chunk().filter(|_| !is_empty),
            committed: committed.checked_sub(1).filter(|_| !is_empty),
        }
    }

    /// The first offset of the chunk with which somebody begins who asks for this, or of the first one that will be there.
    pub fn resolve(&self, from: Start) -> u64 {
        self.log.resolve(from)
    }

    /// Shows messages from there on, as they are over AMQP 0-9-1, until `visit` breaks, it has seen all that were safe at the
    /// start, or so much time has passed: false if it has shown none until then. Where a consumer would begin with a chunk, so
    /// does this. It reads files on the thread that asks, is no reader, and leaves none.
    ///
    /// # Errors
    /// [`NoStream::Unavailable`]: the files cannot be read; the log says why.
    pub fn browse(
        &self,
        from: StreamOffset,
        within: Duration,
        visit: impl FnMut(&Message<'_>) -> ControlFlow<()>,
    ) -> Result<bool, NoStream> {
        let from = consume::start(from, self.queue.node().now());
        let browsed = self
            .log
            .browse(self.log.begin(from), &self.queue.name, within, visit);
        browsed.map_err(|error| {
            self.log.complain(&error);
            NoStream::Unavailable
        })
    }

    /// Reads from there on: [`crate::Event::Readable`] of this consumer says that there is something.
    pub fn read(&self, from: Start, filter: Option<Matcher>) -> (ConsumerId, StreamReader) {
        let id = ConsumerId(self.queue.node().number());
        let at = self.log.begin(from);
        let at_queue = (self.queue.clone(), self.log.clone());
        let reader = StreamReader::new(at_queue, id, self.outlet(), at, filter);
        self.submit(StreamRequest::Read(ReadRequest::Attach {
            reader: id,
            outlet: self.outlet(),
            at,
            credit: u32::MAX,
        }));
        (id, reader)
    }

    /// Is told that the stream is gone, or led by another node from now on, by [`crate::Event::ConsumerCancelled`].
    pub fn watch(&self) -> StreamWatch {
        let id = ConsumerId(self.queue.node().number());
        self.submit(StreamRequest::Read(ReadRequest::Watch {
            reader: id,
            outlet: self.outlet(),
        }));
        StreamWatch {
            stream: self.clone(),
            id,
        }
    }

    /// Publishes to a stream that this node leads, under a reference if there is one. Confirms come as
    /// [`crate::Event::Confirm`], with the numbers that
    /// [`StreamPublisher::flush`] gave.
    pub fn publish(&self, reference: Option<&[u8]>) -> StreamPublisher {
        StreamPublisher {
            watch: self.watch(),
            reference: reference.map(Into::into),
            batch: Batch::default(),
            flushed: 0,
        }
    }
}

impl StreamWatch {
    /// What events call it.
    pub fn id(&self) -> ConsumerId {
        self.id
    }

    /// Joins a group of readers of which one at a time is the active one: [`crate::Event::Active`] says so. `partition` is the
    /// place of the stream among those of a super stream.
    pub fn join(&self, group: &str, partition: Option<u32>) {
        self.stream.submit(StreamRequest::Join {
            reader: self.id,
            group: group.as_bytes().into(),
            partition,
        });
    }

    /// It knows that it is not the active one any more.
    pub fn stepped_down(&self) {
        let reader = self.id;
        self.stream.submit(StreamRequest::SteppedDown { reader });
    }
}

impl Drop for StreamWatch {
    fn drop(&mut self) {
        let detach = ReadRequest::Detach { reader: self.id };
        self.stream.submit(StreamRequest::Read(detach));
    }
}

impl StreamPublisher {
    /// What events call it.
    pub fn id(&self) -> ConsumerId {
        self.watch.id
    }

    /// Takes a message or a sub-batch, as it will stand in a chunk.
    ///
    /// # Errors
    /// Nobody could read it.
    pub fn take(&mut self, id: u64, value: Option<&[u8]>, entry: &[u8]) -> Result<(), EntryError> {
        self.batch.push(id, value, entry)
    }

    /// Hands on what was taken, under the next number; they begin with 1. `None` if there is nothing.
    pub fn flush(&mut self) -> Option<u64> {
        if self.batch.is_empty() {
            return None;
        }
        self.flushed += 1;
        let stream = &self.watch.stream;
        stream.ask(Ask::Publish {
            reference: self.reference.clone(),
            batch: self.batch.take(),
            receipt: Some(Receipt {
                outbox: stream.outbox.clone(),
                channel: stream.channel,
                numbers: Ranges::one(self.flushed),
                queue: None,
                timed: None,
            }),
        });
        Some(self.flushed)
    }
}
