//! What a connection asks of the streams of its virtual host.
//!
//! Every call returns at once. What has to wait for a disk or for other nodes comes later, into the connection's
//! [`Inbox`]. Whether the user may do something, whether it exists and whether arguments make sense is decided behind these
//! traits; what is in a message or a chunk nobody looks at on this side.

use super::inbox::Inbox;
use broker::{Event, NextChunk, Session};
use protocol::stream::{Entry, OffsetSpec};
use std::sync::Arc;

/// A node's streams.
pub trait Source: Send + Sync {
    /// Those of the virtual host that the session has opened, for the connection with this inbox.
    /// `secured` if it came by TLS.
    fn open(&self, session: &Arc<Session>, inbox: Arc<Inbox>, secured: bool) -> Box<dyn Streams>;
}

/// Names a question of a connection; never used twice on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question(pub u64);

/// Names a publisher of a connection; never used twice on it, unlike the client's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublisherNumber(pub u64);

/// Names a reader of a connection; never used twice on it, unlike the client's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReaderNumber(pub u64);

/// The streams of the virtual host that a connection has opened.
///
/// Dropped when the connection is gone: its readers and publishers were dropped before, its single active consumers have left
/// with it, and what was not confirmed by then is confirmed to nobody.
pub trait Streams: Send {
    /// The broker has something for the connection that is none of its own affairs.
    fn event(&mut self, event: Event);

    /// Makes a stream. The arguments are as the client has them: names without `x-`, all values strings.
    fn create(&mut self, question: Question, stream: &str, arguments: &[(&str, &str)]);

    /// Removes a stream.
    fn delete(&mut self, question: Question, stream: &str);

    /// Makes a super stream: an exchange, its streams and a binding for each. All of it or nothing.
    fn create_super_stream(&mut self, question: Question, super_stream: &NewSuperStream<'_>);

    /// Removes a super stream and its streams.
    fn delete_super_stream(&mut self, question: Question, super_stream: &str);

    /// Who has a stream, as this node knows it. If nobody is known to lead it, its replicas are told all the same, as in
    /// RabbitMQ: readers go on there.
    ///
    /// # Errors
    /// [`Refused::NoStream`].
    fn locate(&self, stream: &str) -> Result<Located, Refused>;

    /// The streams of a super stream in their order, as this node knows them.
    ///
    /// # Errors
    /// [`Refused::NoStream`] if there is no such exchange.
    fn partitions(&self, super_stream: &str) -> Result<Vec<String>, Refused>;

    /// Into which of them something with this key goes: none, one or several.
    ///
    /// # Errors
    /// As [`Streams::partitions`].
    fn route(&self, super_stream: &str, key: &str) -> Result<Vec<String>, Refused>;

    /// Something that publishes to a stream.
    ///
    /// # Errors
    /// No such stream, this node does not lead it, or the user may not write to it.
    fn publisher(
        &mut self,
        number: PublisherNumber,
        stream: &str,
        reference: Option<&[u8]>,
    ) -> Result<Box<dyn Publisher>, Refused>;

    /// The last publishing number that was stored under a reference: [`Answer::Number`], 0 if there is none. Only the node that
    /// leads the stream knows it.
    fn sequence(&mut self, question: Question, stream: &str, reference: &[u8]);

    /// The offset that was stored under a reference, as far as this node's copy of the stream has it: [`Answer::Number`] or
    /// [`Refused::NoOffset`].
    fn offset(&mut self, question: Question, stream: &str, reference: &[u8]);

    /// Stores an offset under a reference, with the next flush. Nothing is answered; why it was not done is logged.
    fn store_offset(&mut self, stream: &str, reference: &[u8], offset: u64);

    /// Hands on the offsets that are to be stored.
    fn flush(&mut self);

    /// Figures about a stream: [`Answer::Stats`].
    fn stats(&mut self, question: Question, stream: &str);

    /// The first offset of the chunk with which a reader would begin: [`Answer::Number`], or [`Refused::NoOffset`] if the
    /// stream is empty.
    fn resolve(&mut self, question: Question, stream: &str, from: OffsetSpec, filter: Option<Filter>);

    /// Something that reads a stream from this node's copy of it.
    ///
    /// # Errors
    /// No such stream, this node has no copy of it, or the user may not read it.
    fn reader(
        &mut self,
        number: ReaderNumber,
        stream: &str,
        from: OffsetSpec,
        filter: Option<Filter>,
    ) -> Result<Box<dyn Reader>, Refused>;

    /// Joins the single active consumers of this name. [`Told::Active`](super::inbox::Told::Active) says that this one is the
    /// active one from now on, or is not any more. Says at which place the stream is in its super stream, if one is named.
    ///
    /// # Errors
    /// As [`Streams::reader`], this node does not lead the stream, or it is none of the super stream.
    fn join(
        &mut self,
        number: ReaderNumber,
        stream: &str,
        group: &str,
        super_stream: Option<&str>,
    ) -> Result<Option<u32>, Refused>;

    /// The client knows that this one is not active any more: the next one may be.
    fn stepped_down(&mut self, number: ReaderNumber);

    /// This one is gone.
    fn leave(&mut self, number: ReaderNumber);

    /// Whether the user may write to a stream, and then whether this node leads it.
    ///
    /// # Errors
    /// [`Refused::Access`] first of all, then as [`Streams::publisher`].
    fn writable(&self, stream: &str) -> Result<(), Refused>;

    /// Whether the user may read a stream, and then whether this node has a copy of it.
    ///
    /// # Errors
    /// [`Refused::Access`] first of all, then as [`Streams::reader`].
    fn readable(&self, stream: &str) -> Result<(), Refused>;
}

/// A super stream to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewSuperStream<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its streams.
    pub partitions: &'a [&'a str],
    /// The key of each stream. Another number of them than of streams is [`Refused::Precondition`].
    pub keys: &'a [&'a str],
    /// The arguments of each stream.
    pub arguments: &'a [(&'a str, &'a str)],
}

/// Publishes to a stream. It is dropped once all that it took is confirmed or refused, or the stream is
/// [gone](super::inbox::Told::Gone): then nobody is told what became of the rest.
pub trait Publisher: Send {
    /// Takes a message or a batch of them.
    ///
    /// # Errors
    /// [`Refused::Precondition`] if nobody could read the batch. What else comes with it is taken all the same.
    fn take(&mut self, entry: &Entry<'_>) -> Result<(), Refused>;

    /// Hands on what was taken. [`Told::Confirmed`](super::inbox::Told::Confirmed) comes for all of it, in any grouping, also
    /// for what was recognised as stored before.
    fn flush(&mut self);
}

/// Reads a stream.
pub trait Reader: Send {
    /// The next chunk of messages that is committed and that the filter lets pass.
    fn next(&mut self) -> NextChunk;

    /// The first offset of the last chunk that is committed.
    fn committed_chunk(&self) -> u64;

    /// The next offset that it looks at.
    fn position(&self) -> u64;
}

/// What a reader wants to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Chunks that may have something with one of these values.
    pub values: Vec<Vec<u8>>,
    /// Also chunks that have something without a value.
    pub unfiltered: bool,
}

/// Who has a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Whom to publish to, if anybody.
    pub leader: Option<Address>,
    /// The others.
    pub replicas: Vec<Address>,
}

/// A node, where clients reach its streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The advertised host.
    pub host: String,
    /// The advertised port.
    pub port: u32,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// An offset, or a publishing number.
    Number(u64),
    /// Figures; −1 where there is nothing.
    Stats(Vec<(&'static str, i64)>),
}

/// Why something was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no such stream, or what has the name is none.
    NoStream,
    /// The stream cannot be reached.
    NotAvailable,
    /// There is one of this name.
    Exists,
    /// The user may not do it.
    Access,
    /// Arguments make no sense, or a limit is reached.
    Precondition,
    /// Nothing was stored.
    NoOffset,
    /// It went wrong here.
    Internal,
}
