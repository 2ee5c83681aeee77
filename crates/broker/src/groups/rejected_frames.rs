//! Frames of peers that are of no use. A peer of another version, or one that is broken, sends as many as the network carries:
//! the log has one line for them now and then.

use cluster::NodeId;
use std::collections::BTreeMap;
use std::fmt::Arguments;
use std::sync::{Mutex, PoisonError};

/// A peer's frames have one line of log in so many ticks of 100 ms: ten seconds.
const TICKS_APART: u64 = 100;

/// So many peers are remembered at the most; then all are forgotten. There are fewer members.
const PEERS: usize = 256;

/// Which peers the log has told of lately. It is one for everything that peers send to a node: definitions, groups and queues.
/// Its lock is taken under any other one, and none under it.
#[derive(Debug, Default)]
pub struct RejectedFrames(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    ticks: u64,
    peers: BTreeMap<NodeId, Lately>,
}

/// The last line about a peer.
#[derive(Debug)]
struct Lately {
    at_tick: u64,
    /// What was rejected since, and has no line.
    untold: u64,
}

impl RejectedFrames {
    /// Counts a frame of this peer, and logs why it is of no use, unless it had a line in the last ten seconds. The next
    /// line says how many had none. `line` is not formatted if nobody is to read it.
    pub fn tell(&self, from: NodeId, area: &'static str, line: Arguments<'_>) {
        match self.count(from) {
            None => {}
            Some(0) => tracing::error!(area, "node {}: {line}", from.0),
            Some(untold) => tracing::error!(
                area,
                "node {}: {line}; {untold} other frames were rejected since the last line about it",
                from.0
            ),
        }
    }

    /// A tick of the clock, of which there is one each 100 ms.
    pub fn tick(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).ticks += 1;
    }

    /// How many frames had no line since the last one about this peer; `None` if it never had one.
    #[cfg(test)]
    pub fn untold(&self, from: NodeId) -> Option<u64> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.peers.get(&from).map(|lately| lately.untold)
    }

    /// How many frames had no line before this one, if this one is to have one.
    fn count(&self, from: NodeId) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at_tick = state.ticks;
        let known = state.peers.get_mut(&from);
        if let Some(lately) = known {
            if at_tick - lately.at_tick < TICKS_APART {
                lately.untold += 1;
                return None;
            }
            let untold = lately.untold;
            *lately = Lately { at_tick, untold: 0 };
            return Some(untold);
        }
        if state.peers.len() >= PEERS {
            state.peers.clear();
        }
        state.peers.insert(from, Lately { at_tick, untold: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_one_line_in_ten_seconds_that_counts_those_without() {
        let (frames, one, other) = (RejectedFrames::default(), NodeId(2), NodeId(3));
        assert_eq!(frames.count(one), Some(0));
        for _ in 0..1_000 {
            assert_eq!(frames.count(one), None);
        }
        assert_eq!(frames.count(other), Some(0));
        (1..TICKS_APART).for_each(|_| frames.tick());
        assert_eq!(frames.count(one), None);
        frames.tick();
        assert_eq!(frames.count(one), Some(1_001));
        assert_eq!(frames.count(one), None);
        assert_eq!(frames.count(other), Some(0));
    }

    #[test]
    fn no_more_peers_are_remembered_than_its_limit() {
        let frames = RejectedFrames::default();
        for node in 0..3 * PEERS as u32 {
            assert_eq!(frames.count(NodeId(node)), Some(0));
            assert!(frames.0.lock().unwrap().peers.len() <= PEERS);
        }
    }
}
