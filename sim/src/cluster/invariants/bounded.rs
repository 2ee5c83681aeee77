//! What is over is given back: once everything has healed and all queues are empty, nodes have no more on their disks and in
//! their memory than what an idle queue costs.

use crate::cluster::access::Access;
use crate::cluster::node::Node;
use cluster::GroupId;

/// Copies are written down so often at the most, and what a checkpoint lets go of is gone after so many ticks. A node gives back
/// what it has borrowed after five seconds.
pub const CHECKPOINTS: usize = 4;
pub const TICKS: u32 = 60;

/// What a node may send to a queue without borrowing, in bytes.
const FIRST_CREDIT: u64 = 64 << 10;

/// What of this node is still too much, if something is.
pub fn excess(node: &Node, groups: &[GroupId]) -> Option<String> {
    let running = node.running.as_ref()?;
    let log = &running.alone.node.log;
    let tails = log.tail_bytes();
    if tails > 0 {
        return Some(format!("{tails} bytes of tails"));
    }
    // Files are let go of when the next one begins; what could not be let go of before all healed may be some times the limit.
    let most = 4 * running.log_bytes + (2 + groups.len() as u64) * running.log_file_bytes;
    let size = log.size();
    if size > most {
        return Some(format!("{size} bytes of log, {most} are allowed"));
    }
    for group in groups {
        let is_member = running.copies.contains_key(group);
        let status = running.alone.groups.status(*group);
        match status {
            Some(status) if status.awake || status.held_bytes > 0 => return Some(format!("{status:?}")),
            Some(status) if !is_member => return Some(format!("it is no member: {status:?}")),
            _ => {}
        }
    }
    None
}

/// The same of a node's way to a queue.
pub fn excess_of_access(access: &Access) -> Option<String> {
    let (idle, credit, lent) = (access.is_idle(), access.credit(), access.lent());
    let is_much = !idle || credit > FIRST_CREDIT || lent > 0;
    is_much.then(|| format!("idle: {idle}, credit for {credit} bytes, {lent} bytes are lent"))
}
