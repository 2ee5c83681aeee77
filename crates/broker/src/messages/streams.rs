//! What the front end of the stream protocol asks of streams: it publishes batches to them, reads chunks of them, and keeps
//! numbers in them. All of it is for streams of this node; where others are, their clients are told.

use super::consume;
use crate::clients::outbox::{ChannelId, Outbox, Question};
use crate::node::ends::{Ends, Outlet, Receipt};
use crate::queues::streams::{StreamLog, StreamReader};
use crate::queues::{Queue, StreamAddresses};
use crate::session::Session;
use catalog::{ObjectKind, QueueKind, StreamOffset, Verb};
use model::chunk::{Batch, EntryError, Matcher};
use model::properties::Properties;
use model::table::Value;
use model::{ConsumerId, Message, QueueId, Ranges};
use queue::Request;
use queue::stream::{ReadRequest, Request as Ask, Start, StreamRequest};
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
    /// It is on another node, or its files cannot be read.
    Unavailable,
}

/// A stream of this node, as one connection uses it.
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
    /// A stream that the user may read.
    ///
    /// # Errors
    /// [`NoStream::Access`] first of all.
    pub fn stream_to_read(&self, name: &str, channel: ChannelId) -> Result<Stream, NoStream> {
        self.stream(name, Verb::Read, channel)
    }

    /// A stream that the user may write to.
    ///
    /// # Errors
    /// [`NoStream::Access`] first of all.
    pub fn stream_to_write(&self, name: &str, channel: ChannelId) -> Result<Stream, NoStream> {
        self.stream(name, Verb::Write, channel)
    }

    /// Where a stream is.
    ///
    /// # Errors
    /// [`NoStream::Missing`].
    pub fn stream_home(&self, name: &str) -> Result<catalog::NodeId, NoStream> {
        let view = self.broker().view();
        let known = view.queue(self.vhost(), name);
        let known = known.filter(|known| known.kind == QueueKind::Stream);
        known.map(|known| known.home).ok_or(NoStream::Missing)
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

    /// True if this is the node that the session is on.
    pub fn is_this_node(&self, node: catalog::NodeId) -> bool {
        self.broker().topology().incarnation().node == node
    }

    /// Where clients of the stream protocol reach a node; `None` if it has not said so since this one has heard of it.
    pub fn stream_addresses(&self, node: catalog::NodeId) -> Option<StreamAddresses> {
        self.broker().topology().stream_addresses(node)
    }

    /// Stores an offset under a reference in a stream that the user may read, on whatever node it is. As nobody is told whether
    /// it was stored, it may be lost on its way to another node; and it overtakes nothing that was sent before.
    ///
    /// # Errors
    /// As [`Self::stream_to_read`]; [`NoStream::Unavailable`] also if its node cannot be spoken to.
    pub fn store_stream_offset(&self, name: &str, reference: &[u8], offset: u64) -> Result<(), NoStream> {
        let (id, home) = self.known_stream(name, Verb::Read)?;
        if !self.is_this_node(home) {
            let topology = self.broker().topology();
            let is_sent = topology.store_offset(home, id, reference, offset);
            return is_sent.then_some(()).ok_or(NoStream::Unavailable);
        }
        let found = self.stream_to_read(name, ChannelId(0))?;
        found.store_offset(reference, offset);
        Ok(())
    }

    /// A stream's number, and the node that it is on.
    fn known_stream(&self, name: &str, verb: Verb) -> Result<(QueueId, catalog::NodeId), NoStream> {
        self.check(verb, ObjectKind::Queue, name)
            .map_err(|_| NoStream::Access)?;
        let view = self.broker().view();
        let known = view.queue(self.vhost(), name);
        let known = known.filter(|known| known.kind == QueueKind::Stream);
        known.map(|known| (known.id, known.home)).ok_or(NoStream::Missing)
    }

    fn stream(&self, name: &str, verb: Verb, channel: ChannelId) -> Result<Stream, NoStream> {
        let (id, _) = self.known_stream(name, verb)?;
        let handle = self.broker().registry().get(id).ok_or(NoStream::Missing)?;
        let queue = handle.here().cloned().ok_or(NoStream::Unavailable)?;
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

    fn question(&self, request: impl FnOnce(crate::node::ends::Reply) -> Ask<Ends>) -> Question {
        let question = Question(self.queue.node().number());
        let reply = crate::node::ends::Reply {
            outbox: self.outbox.clone(),
            channel: self.channel,
            question,
            no_ack: false,
        };
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

    /// The last publishing number under a reference: its answer is [`queue::Answer::Number`].
    pub fn sequence(&self, reference: &[u8]) -> Question {
        let reference = reference.into();
        self.question(|reply| Ask::Sequence { reference, reply })
    }

    /// The offset that was stored under a reference, in the same way.
    pub fn offset(&self, reference: &[u8]) -> Question {
        let reference = reference.into();
        self.question(|reply| Ask::Offset { reference, reply })
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

    /// Is told that the stream is gone, by [`crate::Event::ConsumerCancelled`].
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

    /// Publishes, under a reference if there is one. Confirms come as [`crate::Event::Confirm`], with the numbers that
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
