//! Other nodes as publishers of a stream: each start of a node has a reference, under which the stream keeps how far what it has
//! sent is on record. A node that has no answer sends again, so what was taken is doubled if the reference is forgotten
//! meanwhile. There is one start of each node at a time, so these are few.

use model::Incarnation;
use model::chunk::Tracking;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What references of nodes begin with. Clients' references have no zeros.
const OF_NODES: &[u8] = b"\0node";

/// Under which reference a node's numbers are kept.
pub fn reference_of(sender: Incarnation) -> Arc<[u8]> {
    [OF_NODES, &sender.0.to_be_bytes()].concat().into()
}

/// The node whose numbers are kept under this reference, if it is one of a node.
pub fn sender_of(reference: &[u8]) -> Option<Incarnation> {
    let bytes = reference.strip_prefix(OF_NODES)?;
    Some(Incarnation(u64::from_be_bytes(bytes.try_into().ok()?)))
}

/// What a publisher is worth that is tracked: those go first that are worth less.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// A node that has sent something in a later start. In this one it sends nothing any more.
    Ended,
    Client,
    Node,
}

/// There are too many publishers. By what is on record alone, so wherever the same is on record the same one goes.
pub(super) fn forget_one(tracking: &mut Tracking) {
    let mut latest = BTreeMap::new();
    for sender in tracking
        .sequences()
        .filter_map(|(reference, _)| sender_of(reference))
    {
        let known = latest.entry(sender.node()).or_insert(sender);
        *known = sender.max(*known);
    }
    tracking.forget_oldest_sequence(|reference| match sender_of(reference) {
        None => Worth::Client,
        Some(sender) if latest.get(&sender.node()) == Some(&sender) => Worth::Node,
        Some(_) => Worth::Ended,
    });
}
