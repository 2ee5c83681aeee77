//! What the pager does for a queue of this node.

use super::Queue;
use crate::node::journal::{Entry, NodeLog, entry};
use crate::node::pager::{Pager, StoreFiles};
use crate::node::paging::{Nearby, Paged};
use model::{Block, Seq};
use queue::Request;
use queue::store::{self, LogPlace, Piece, Place, Source};
use std::sync::Arc;
use storage::{JournalId, Position, StorageError};

/// Something that the pager is to do.
pub enum Paging {
    /// Read a block back; answered by `Request::FinishLoad`.
    Load {
        queue: Arc<Queue>,
        first: Seq,
        source: Source,
        failures: u32,
    },
    /// Write pieces to the queue's segments; answered by `Request::FinishStore`, in the order of the jobs.
    Store {
        queue: Arc<Queue>,
        pieces: Vec<Piece>,
        durable: bool,
    },
    /// These entries are not needed any more; a file of the queue may be worth rewriting then.
    Free { queue: Arc<Queue>, places: Vec<Place> },
    /// Handle what waits in the queue's mailbox.
    Turn { queue: Arc<Queue> },
    /// Have the queue move what it needs of the log before this position, so that the log may use the file again.
    Checkpoint { queue: Arc<Queue>, before: Position },
}

impl Paging {
    /// Has the pager do it.
    pub fn send(self, pager: &Pager) {
        match self {
            Self::Load { .. } => pager.read(move |files| self.carry_out(files)),
            _ => pager.write(move |files| self.carry_out(files)),
        }
    }

    fn carry_out(self, files: &StoreFiles) {
        match self {
            Self::Load {
                queue,
                first,
                source,
                failures,
            } => queue.load(files, first, source, failures),
            Self::Store {
                queue,
                pieces,
                durable,
            } => queue.store(files, &pieces, durable),
            Self::Free { queue, places } => {
                files.free(queue.owner(), places);
                queue.rewrite_sparse(files);
            }
            Self::Turn { queue } => queue.turn_mail(),
            Self::Checkpoint { queue, before } => {
                queue.checkpoint(before);
                queue.rewrite_sparse(files);
            }
        }
    }
}

impl Paged for Arc<Queue> {
    fn owner(&self) -> JournalId {
        self.segments()
    }

    fn logged(
        &self,
        log: &NodeLog,
        at: LogPlace,
        nearby: &mut Nearby,
    ) -> Result<Option<Arc<Block>>, StorageError> {
        if let Some(replica) = self.replica() {
            return replica.logged(log, at, nearby);
        }
        let payload = log.read(Position(at.0))?;
        Ok(match entry(&payload) {
            Some(Entry::Record(_, record)) => self.made().block(record),
            _ => None,
        })
    }

    fn is_retired(&self) -> bool {
        Queue::is_retired(self)
    }

    fn answer(&self, _: &StoreFiles, request: store::Request) {
        self.submit(Request::Store(request));
    }
}
