//! What is under way between nodes.

use broker::groups::NodeId;
use broker::queues::{Peers, Work, WorkLinks};
use bytes::Bytes;
use model::Incarnation;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All frames that have left and not arrived, in order.
#[derive(Debug, Default)]
pub struct Wire(Mutex<VecDeque<(NodeId, NodeId, Bytes)>>);

impl Wire {
    pub fn lock(&self) -> MutexGuard<'_, VecDeque<(NodeId, NodeId, Bytes)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The two nodes have no link any more, and what was under way between them is lost.
    pub fn cut(&self, one: NodeId, other: NodeId) {
        let ends = [one, other];
        self.lock()
            .retain(|(from, to, _)| !ends.contains(from) || !ends.contains(to));
    }
}

/// One node's end of it.
#[derive(Debug)]
pub struct End(pub NodeId, pub Arc<Wire>);

impl WorkLinks for End {
    fn work(&self, to: NodeId, parts: Vec<Bytes>) {
        self.1.lock().push_back((self.0, to, parts.concat().into()));
    }
}

/// The start of a node that another one knows of, of so many. What an earlier one has said may still be on its way through a
/// third node when the next one runs.
pub fn heard_start(work: &Work, of: NodeId, starts: u64) -> u64 {
    let runs = |start: &u64| work.runs(Incarnation(start << 16 | u64::from(of.0)));
    (1..=starts).rev().find(runs).unwrap_or(starts)
}
