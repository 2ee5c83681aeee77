//! What a machine must be of which several nodes have a copy: a queue of whatever kind, or the catalog.

use super::handover;
use crate::node::ends::Ends;
use cluster::Committed;
use model::{Block, Index, Journaled, Machine, QueueSettings, Ranges, Seq};
use queue::store::{self, LogPlace, Place, Stored, Whereabouts};
use queue::{Effect, HandOver, QueueMachine, Request};
use std::sync::Arc;

/// A machine as its replicated host, its journal and transfers of its contents know it. Every [`QueueMachine`] is one. A machine
/// whose records bring no messages has no message store, as is assumed here: it orders checkpoints when it is asked for them, and
/// nothing else of it.
pub trait Replicated: Machine<Request: Send, Record: Send, Effect: Send> + Send + Sized + 'static {
    /// With what it is made.
    type Settings: Clone + Send;
    /// What a node remembers beside the records: checkpoints, and where its message store has moved bytes.
    type Local: Journaled + From<store::Record> + Send;

    /// An empty one.
    fn new(settings: Self::Settings) -> Self;

    /// See [`QueueMachine::replay`].
    fn replay(&mut self) {}

    /// See [`QueueMachine::brings`].
    fn brings(_record: &Self::Record) -> Option<(Seq, &Arc<Block>)> {
        None
    }

    /// See [`QueueMachine::appended`].
    fn appended(&mut self, _first: Seq, _at: LogPlace) {}

    /// See [`QueueMachine::checkpoint`].
    fn checkpoint(&self, next: Index) -> (Self::Local, Option<LogPlace>);

    /// See [`QueueMachine::complete`].
    fn complete(checkpoint: &mut Self::Local, next: Index, placed: &[(Seq, LogPlace)]) -> Option<LogPlace>;

    /// See [`QueueMachine::hand_over`].
    fn hand_over(&self, next: Index) -> HandOver<Self::Local>;

    /// See [`QueueMachine::apply_local`].
    fn apply_local(&mut self, record: Self::Local) -> Option<Index>;

    /// See [`QueueMachine::places`].
    fn places(&self) -> Vec<Place> {
        Vec::new()
    }

    /// See [`QueueMachine::stored`].
    fn stored(&self) -> Vec<Stored> {
        Vec::new()
    }

    /// See [`QueueMachine::find`].
    fn find(&self, _seqs: &Ranges, _most: u64) -> Whereabouts {
        Whereabouts::default()
    }

    /// See [`QueueMachine::unreadable`].
    fn unreadable(&self) -> Ranges {
        Ranges::new()
    }

    /// See [`QueueMachine::without_places`].
    fn without_places(record: Self::Local) -> Option<Self::Local>;

    /// Something that concerns its message store, as a request to it.
    fn ask_store(request: store::Request) -> Self::Request;

    /// What a request has to say to its message store, if it is for that.
    fn of_store(request: &Self::Request) -> Option<&store::Request>;

    /// What its message store orders, if that is what the effect is.
    fn ordered_by_store(effect: &Self::Effect) -> Option<&store::Effect>;

    /// The same by value.
    ///
    /// # Errors
    /// It is another effect: here it is back.
    #[allow(
        clippy::result_large_err,
        reason = "the caller has made it, and carries it out"
    )]
    fn into_store(effect: Self::Effect) -> Result<store::Effect, Self::Effect>;

    /// Has it give up messages that can be read on no node.
    fn give_up(seqs: Ranges) -> Self::Request;

    /// Whether a request ends something that is under way, for which a machine waits that is handed over.
    fn ends_something(request: &Self::Request) -> bool;

    /// What this node does for itself with an entry that is committed, in the order of the entries and as soon as it is told,
    /// whoever has decided it. What is committed when the member is opened is not told.
    fn committed_here(_entry: &Committed) -> Option<Self::Effect> {
        None
    }

    /// Whether also nodes that follow serve what is committed, so that they have to hear of it soon.
    fn is_read_anywhere() -> bool {
        false
    }

    /// Whether a request is about what this node has for itself: then also a machine that follows takes it.
    fn is_of_this_node(request: &Self::Request) -> bool {
        Self::of_store(request).is_some()
    }

    /// The record that it has decided first of those that were not, is committed, as the entry of this index.
    fn record_committed(&mut self, _index: Index) {}

    /// This waited for what it has decided, and is given up with it or with its group. What is done in its place, for those
    /// who ask nobody else and would wait for ever.
    fn given_up(_held: Self::Effect) -> Option<Self::Effect> {
        None
    }

    /// What it is to be asked at the end of a turn in which it decides.
    fn ends_turn(&self) -> Option<Self::Request> {
        None
    }

    /// It has taken the place of another machine, of which effects may be lost: what whoever follows it has to be told.
    fn resumed(&self) -> Option<Self::Effect> {
        None
    }
}

impl<M> Replicated for M
where
    M: QueueMachine<Ends> + Send + 'static,
    M::Record: Send,
{
    type Settings = QueueSettings;
    type Local = <M as QueueMachine<Ends>>::Local;

    fn new(settings: QueueSettings) -> Self {
        QueueMachine::new(QueueSettings {
            replicated: true,
            ..settings
        })
    }

    fn replay(&mut self) {
        QueueMachine::replay(self);
    }

    fn brings(record: &Self::Record) -> Option<(Seq, &Arc<Block>)> {
        <M as QueueMachine<Ends>>::brings(record)
    }

    fn appended(&mut self, first: Seq, at: LogPlace) {
        QueueMachine::appended(self, first, at);
    }

    fn checkpoint(&self, next: Index) -> (Self::Local, Option<LogPlace>) {
        QueueMachine::checkpoint(self, next)
    }

    fn complete(checkpoint: &mut Self::Local, next: Index, placed: &[(Seq, LogPlace)]) -> Option<LogPlace> {
        <M as QueueMachine<Ends>>::complete(checkpoint, next, placed)
    }

    fn hand_over(&self, next: Index) -> HandOver<Self::Local> {
        QueueMachine::hand_over(self, next)
    }

    fn apply_local(&mut self, record: Self::Local) -> Option<Index> {
        QueueMachine::apply_local(self, record)
    }

    fn places(&self) -> Vec<Place> {
        QueueMachine::places(self)
    }

    fn stored(&self) -> Vec<Stored> {
        QueueMachine::stored(self)
    }

    fn find(&self, seqs: &Ranges, most: u64) -> Whereabouts {
        QueueMachine::find(self, seqs, most)
    }

    fn unreadable(&self) -> Ranges {
        QueueMachine::unreadable(self)
    }

    fn without_places(record: Self::Local) -> Option<Self::Local> {
        <M as QueueMachine<Ends>>::without_places(record)
    }

    fn ask_store(request: store::Request) -> Request<Ends> {
        Request::Store(request)
    }

    fn of_store(request: &Request<Ends>) -> Option<&store::Request> {
        match request {
            Request::Store(request) => Some(request),
            _ => None,
        }
    }

    fn ordered_by_store(effect: &Effect<Ends>) -> Option<&store::Effect> {
        match effect {
            Effect::Store(effect) => Some(effect),
            _ => None,
        }
    }

    fn into_store(effect: Effect<Ends>) -> Result<store::Effect, Effect<Ends>> {
        match effect {
            Effect::Store(effect) => Ok(effect),
            other => Err(other),
        }
    }

    fn give_up(seqs: Ranges) -> Request<Ends> {
        Request::GiveUp { seqs }
    }

    fn ends_something(request: &Request<Ends>) -> bool {
        handover::ends_something(request)
    }
}
