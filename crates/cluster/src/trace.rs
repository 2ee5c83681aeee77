//! What becomes of entries on their way through a node, told to whoever counts it: the simulator's table of what its seeds
//! have reached. Only the simulator asks for the feature `mutants`; without it nothing is told, which the compiler knows.

use crate::identity::{GroupId, NodeId};
use crate::record::Record;
use bytes::Bytes;

/// A step on the way.
#[derive(Debug, Clone)]
pub enum Step {
    /// A host proposes these.
    Proposed {
        node: NodeId,
        group: GroupId,
        records: Vec<Bytes>,
    },
    /// This is in the batch of a turn.
    Appended { node: NodeId, turn: u64, record: Record },
    /// The entries up to this one go to another node.
    Sent { node: NodeId, group: GroupId, last: u64 },
    /// This turn, and all before it, are synced.
    Synced { node: NodeId, turn: u64 },
}

#[cfg(feature = "mutants")]
thread_local! {
    static STEPS: std::cell::RefCell<Option<Vec<Step>>> = const { std::cell::RefCell::new(None) };
}

/// Steps of this thread are told from now on.
pub fn begin() {
    #[cfg(feature = "mutants")]
    STEPS.set(Some(Vec::new()));
}

/// Something has happened.
#[inline]
pub fn tell(step: impl FnOnce() -> Step) {
    #[cfg(feature = "mutants")]
    STEPS.with_borrow_mut(|steps| {
        if let Some(steps) = steps {
            steps.push(step());
        }
    });
    #[cfg(not(feature = "mutants"))]
    drop(step);
}

/// What has happened since somebody asked.
pub fn take() -> Vec<Step> {
    #[cfg(feature = "mutants")]
    return STEPS.with_borrow_mut(|steps| steps.as_mut().map(std::mem::take).unwrap_or_default());
    #[cfg(not(feature = "mutants"))]
    Vec::new()
}
