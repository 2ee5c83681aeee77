//! Queues of other nodes: how they are reached. Whoever assembles the node hands this in.

use crate::clients::alarms::AlarmReason;
use crate::clients::pressure::Pressure;
use crate::node::ends::Ends;
use crate::queues::Queue;
use catalog::NodeId;
use cluster::MemberId;
use model::{ConsumerId, Incarnation, Index, Message, QueueId, QueueSettings};
use queue::stream::GroupWord;
use queue::{NodeConsumer, OwnConsumer};
use std::fmt::Debug;
use std::sync::Arc;

/// What is asked of a queue, with the outboxes that hear of it.
pub type Request = queue::Request<Ends>;

/// The way to the queues of another node.
pub trait Remote: Debug + Send + Sync {
    /// Has the request handled by the node that turns the queue. Requests are handled in the order in which they are
    /// submitted, and what comes of them comes to the outboxes that they name, in the order in which it happened: after
    /// the answer to a cancel or to a pause there comes no delivery. Every receipt and every question is answered, by
    /// [`super::Handle::decline`] if the node can be reached no
    /// longer.
    fn submit(&self, queue: QueueId, request: Request);

    /// A reason to slow down for those who publish to the queue.
    fn pressure(&self, queue: QueueId) -> Option<Pressure>;

    /// The queue is deleted, as far as this node knows: who consumes from it here is told, and what is sent to it goes nowhere.
    fn deleted(&self, _queue: QueueId) {}
}

/// Where clients reach a node: a name or an address of at most 255 bytes, and a port.
pub type HostAndPort = (Box<str>, u16);

/// Where clients of the stream protocol reach a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamAddresses {
    /// Without TLS.
    pub plain: HostAndPort,
    /// With TLS.
    pub tls: HostAndPort,
}

/// The other nodes.
pub trait Peers: Debug + Send + Sync {
    /// The way to a node; `None` if it cannot be reached.
    fn reach(&self, node: NodeId) -> Option<Arc<dyn Remote>>;

    /// The way to queues that several nodes have, whoever leads them.
    fn follow(&self) -> Option<Arc<dyn Remote>> {
        None
    }

    /// Of a queue of which this node has a copy, another one leads than before, or none does.
    fn led(&self, _queue: &Arc<Queue>) {}

    /// Several nodes have a queue from now on that was on another node alone.
    fn shared(&self, _queue: QueueId) {}

    /// A queue that several nodes have, or have had, may have been converted: it has these settings from now on.
    fn set(&self, _queue: QueueId, _settings: QueueSettings) {}

    /// Several nodes have a queue from now on, with these settings, that was this node's own and had these clients. What is
    /// asked of it from now on is asked the way of [`Peers::follow`]. The flag says whether it may be on one node alone again.
    fn adopt(&self, _queue: QueueId, _settings: (&QueueSettings, bool), _own: Vec<OwnConsumer<Ends>>) {}

    /// This start of this node, as addresses for direct replies name it; `None` if nobody else answers its clients.
    fn own(&self) -> Option<Incarnation> {
        None
    }

    /// Whose consumer it is that a queue of this node knows by this name; `None` if it is none of another node.
    fn consumer(&self, _queue: QueueId, _consumer: ConsumerId) -> Option<NodeConsumer> {
        None
    }

    /// True if this start of another node can be spoken to.
    fn runs(&self, _whose: Incarnation) -> bool {
        false
    }

    /// This node has an alarm from now on, or none any more.
    fn alarm(&self, _reason: Option<AlarmReason>) {}

    /// Clients of the stream protocol reach this node there.
    fn serve_streams(&self, _at: &StreamAddresses) {}

    /// Where clients of the stream protocol reach another node, if it has said so since it was heard of.
    fn stream_addresses(&self, _node: NodeId) -> Option<StreamAddresses> {
        None
    }

    /// Who leads a stream of several nodes that this one has no copy of, as one of those has said that have.
    fn said_leader(&self, _stream: QueueId) -> Option<NodeId> {
        None
    }

    /// Has another node store an offset under a reference in a stream that it has. False if it cannot be spoken to; it may be
    /// lost, as the reply below.
    fn store_offset(&self, _node: NodeId, _stream: QueueId, _reference: &[u8], _offset: u64) -> bool {
        false
    }

    /// This node's copy of a stream lacks chunks from this offset on: asks another node that has one. It may be lost.
    fn ask_for_chunks(&self, _node: NodeId, _stream: QueueId, _from: u64) {}

    /// Asks the node of a member whether its copy of a stream has all chunks up to this entry. It may be lost, as the answer.
    fn ask_has_all(&self, _member: MemberId, _stream: QueueId, _upto: Index) {}

    /// A node hears this of readers that are in a group of a stream. False if it cannot be spoken to; it may be lost.
    fn say_of_group(&self, _node: NodeId, _stream: QueueId, _said: GroupWord) -> bool {
        false
    }

    /// Sends a direct reply to a client of this start of a node. It may be lost, as all of them.
    fn reply(&self, _whose: Incarnation, _vhost: &str, _address: &str, _message: &Message<'_>) {}
}
