//! What queues tell those above them.

use super::Queue;
use crate::groups::NodeId;
use model::DeadLetterTo;
use model::QueueId;
use queue::DropReason;
use queue::store::Piece;
use queue::stream::GroupWord;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The other nodes that have a copy of a stream.
#[derive(Clone, Debug, Default)]
pub struct OtherCopies {
    /// All of them.
    pub all: BTreeSet<NodeId>,
    /// Those that can be reached now.
    pub reached: BTreeSet<NodeId>,
}

/// Messages that leave a queue together.
pub struct DeadLetters {
    /// The queue that they died in.
    pub queue: Arc<Queue>,
    /// The queue's word for them, which means these for as long as the same node decides.
    pub ticket: u64,
    /// In which term that is, if several nodes have the queue.
    pub term: u64,
    /// Where they go.
    pub to: Arc<DeadLetterTo>,
    /// Why they died.
    pub reason: DropReason,
    /// Where their bytes are.
    pub pieces: Vec<Piece>,
}

impl DeadLetters {
    /// True if they are still in their queue, and can be handed over again. What a full queue refused is in none.
    pub fn stays(&self) -> bool {
        self.pieces.iter().all(|piece| piece.first > 0)
    }
}

/// Who is told of what queues cannot do themselves; handed in where queues are made.
pub trait QueueEvents: Send + Sync {
    /// Messages died, or their delay is over. Called in the order in which they did, under the lock of the queue's
    /// host: it must not wait.
    fn dead_letters(&self, letters: DeadLetters);

    /// An auto-delete queue lost its last consumer, or nobody has used one for its time. Once it is gone, or nobody can have it
    /// deleted for now, `then` is to be called.
    fn unused(&self, queue: QueueId, then: Box<dyn FnOnce() + Send>);

    /// Another node can be reached again.
    fn reached(&self) {}

    /// This node's copy of a stream lacks chunks from this offset on: another node that has one is asked for them, and with each
    /// number of `asked` another one. It must not wait.
    fn lacks_chunks(&self, _stream: &Arc<Queue>, _from: u64, _asked: usize) -> OtherCopies {
        OtherCopies::default()
    }

    /// Another node hears this of readers that are in a group of the stream, if it is not lost. False if it cannot be spoken
    /// to. It must not wait.
    fn say_of_group(&self, _stream: QueueId, _node: NodeId, _said: GroupWord) -> bool {
        false
    }

    /// The other nodes that have a copy of the stream. It must not wait.
    fn others_of_stream(&self, _stream: QueueId) -> Vec<NodeId> {
        Vec::new()
    }

    /// Of a queue that several nodes have, another one leads than before, or none does. Called without the lock of its host.
    fn led(&self, _queue: &Arc<Queue>) {}
}
