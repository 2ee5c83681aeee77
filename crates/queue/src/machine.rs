//! What a kind of queue is made of: a machine that answers [`Request`]s and orders [`Effect`]s, whatever its records are.

use crate::store::{self, LogPlace, Place, Stored, Whereabouts};
use crate::{ConsumerSettings, Effect, Ends, Glance, Losses, Request, Status};
use model::chunk::Tracking;
use model::{Block, ConsumerId, Incarnation, Index, Journaled, Machine, QueueSettings, Ranges, Seq};
use std::sync::Arc;

/// What can be seen of a queue's machine between two turns. Nothing is changed by it, which the type says. One that hands out no
/// messages by their numbers shows none, as is assumed here.
pub trait Inspect {
    /// What was lost since the start; it never falls.
    fn losses(&self) -> Losses;

    /// The sum of [`Inspect::losses`]: whoever looks after each turn sees by it whether there is something new.
    fn lost(&self) -> u64;

    /// Messages are handed out in another order than that of their numbers, which don't rise with each message either.
    fn is_sorted(&self) -> bool {
        false
    }

    /// What the publisher wrote as the time of the first message, in seconds since the Unix epoch: RabbitMQ's
    /// `head_message_timestamp`. `None` if it wrote nothing, or the message is not in memory.
    fn head_timestamp(&self) -> Option<u64> {
        None
    }

    /// Which messages are there, in the order of delivery, from `from` on or from the head: `skip` are passed over, at
    /// most `count` shown.
    fn look(&self, _from: Option<Seq>, _skip: u64, _count: u64) -> Glance {
        Glance::default()
    }

    /// Where a look begins that shall end before message `before`, or at the end of the queue, and show `count` messages.
    fn back(&self, _before: Option<Seq>, _count: u64) -> Option<Seq> {
        None
    }

    /// The incarnations of nodes of which it knows what they have sent.
    fn senders(&self) -> Vec<Incarnation>;

    /// The numbers between which its messages lie, the second one excluded; `None` if a later message may have a lower number.
    fn bounds(&self) -> Option<(Seq, Seq)>;

    /// What a stream keeps for its publishers and consumers, as far as it is on record. Other kinds of queue keep nothing.
    fn tracking(&self) -> Option<Tracking> {
        None
    }
}

/// Whether the contents can be handed over to another journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandOver<L> {
    /// Here they are.
    Contents(L),
    /// Something is on its way that has to come back first: to the disk, to a dead-letter exchange, or to an operator.
    Waits,
    /// Not all messages lie in segments, synced: that is to be asked for (again) with [`store::Request::MoveOut`].
    Elsewhere,
}

impl<L> HandOver<L> {
    /// The contents as something else, if they are there.
    pub fn map<T>(self, of: impl FnOnce(L) -> T) -> HandOver<T> {
        match self {
            Self::Contents(contents) => HandOver::Contents(of(contents)),
            Self::Waits => HandOver::Waits,
            Self::Elsewhere => HandOver::Elsewhere,
        }
    }
}

/// A consumer of the node that a queue is on.
pub struct OwnConsumer<E: Ends> {
    pub consumer: ConsumerId,
    pub outlet: E::Outlet,
    pub settings: ConsumerSettings,
    /// What was delivered to it and has not left for its client, in bytes.
    pub outstanding: u64,
}

/// The machine of a kind of queue. The host that turns it, the journal that it writes to and the replay at the start
/// know no more of it.
pub trait QueueMachine<E: Ends>:
    Machine<Request = Request<E>, Effect = Effect<E>, Status = Status> + Inspect + Sized
{
    /// What a node remembers beside the records, in its own log only: where its message store has moved bytes, and checkpoints.
    type Local: Journaled + From<store::Record> + Send;

    /// An empty queue.
    fn new(settings: QueueSettings) -> Self;

    /// The journal is replayed from now on, until [`Machine::recovered`] or [`Machine::follow`]: applying records orders nothing.
    fn replay(&mut self);

    /// The messages that a record brings, and the number of the first one.
    fn brings(record: &Self::Record) -> Option<(Seq, &Arc<Block>)>;

    /// The record that brought messages `first..` was appended to the log, and stands there.
    fn appended(&mut self, first: Seq, at: LogPlace);

    /// Everything that is there before the record `next`, so that the log may forget what is older; and the earliest
    /// place in the log that something in it needs.
    fn checkpoint(&self, next: Index) -> (Self::Local, Option<LogPlace>);

    /// A checkpoint was taken while its last records were not committed. Now they are: it is one before the record `next`, and
    /// `placed` says where the records stand that brought messages since, by the first one of each, which rise. Returns
    /// the earliest place in the log that something in it needs.
    fn complete(checkpoint: &mut Self::Local, next: Index, placed: &[(Seq, LogPlace)]) -> Option<LogPlace>;

    /// What it has for a journal that takes over from its own: a checkpoint before the record `next`. What consumers hold is not
    /// in it: there the machine asks what was handed out, and to whom.
    fn hand_over(&self, next: Index) -> HandOver<Self::Local>;

    /// The consumers that no other node names, with so many bytes of each that have not left for its client: whoever has handed
    /// the contents over takes them along.
    fn own_consumers(&self) -> Vec<OwnConsumer<E>>;

    /// Everything that another journal has handed over was replayed, and this machine decides from now on, alone. As
    /// [`Machine::recovered`], but it asks what consumers hold.
    fn taken_over(&mut self);

    /// Takes over what this node remembered. Of a checkpoint returns the number of the first record that it does not contain.
    fn apply_local(&mut self, record: Self::Local) -> Option<Index>;

    /// All places in the queue's segments that hold messages, each once. After replay, what lies elsewhere in them is garbage.
    fn places(&self) -> Vec<Place>;

    /// What lies in the queue's segments, each place once: from the first message that is found there to the last one
    /// that is there.
    fn stored(&self) -> Vec<Stored>;

    /// Where these messages are, ascending: as far as there are less than `most` bytes to be read, but one message at least.
    /// What the answer does not speak of was not looked for.
    fn find(&self, seqs: &Ranges, most: u64) -> Whereabouts;

    /// The messages that are there and of which the bytes cannot be read here.
    fn unreadable(&self) -> Ranges;

    /// A checkpoint as another node may be sent it: without the places of this one. `None` if it is none.
    fn without_places(record: Self::Local) -> Option<Self::Local>;
}
