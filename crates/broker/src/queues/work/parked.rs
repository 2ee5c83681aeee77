//! What nodes say of queues that this node does not know yet: it waits until this node has applied what they had applied.

use super::frame::Envelope;
use crate::groups::NodeId;
use std::collections::VecDeque;

/// So much may wait, in bytes, but for one frame, which may always. Nodes ask again for sessions that did not begin.
const MOST_BYTES: usize = 4 << 20;

/// After so many ticks, of 100 ms each, a frame waits no more: by then its sender has asked again.
const WAITS_FOR: u32 = 20;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Parked {
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    from: NodeId,
    envelope: Envelope,
    bytes: usize,
    ticks: u32,
}

impl Parked {
    /// This waits, unless too much does.
    pub fn park(&mut self, from: NodeId, envelope: Envelope, bytes: usize) {
        if self.bytes + bytes > MOST_BYTES && !self.waiting.is_empty() {
            return;
        }
        self.bytes += bytes;
        self.waiting.push_back(Waiting {
            from,
            envelope,
            bytes,
            ticks: 0,
        });
    }

    /// What was under way from this node is lost.
    pub fn forget(&mut self, from: NodeId) {
        self.waiting.retain(|it| it.from != from);
        self.bytes = self.waiting.iter().map(|it| it.bytes).sum();
    }

    /// A tick of the clock; this node has applied what the catalog decided up to `version`. Returns what waits no more, in the
    /// order in which it came.
    pub fn due(&mut self, version: u64) -> Vec<(NodeId, Envelope)> {
        let mut due = Vec::new();
        for mut it in std::mem::take(&mut self.waiting) {
            it.ticks += 1;
            match &it.envelope {
                Envelope::Up { version: needs, .. } if *needs > version && it.ticks < WAITS_FOR => {
                    self.waiting.push_back(it);
                }
                _ => {
                    self.bytes -= it.bytes;
                    due.push((it.from, it.envelope));
                }
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::handle::{Frame, ToLeader};
    use model::{Incarnation, QueueId};

    fn frame(version: u64) -> Envelope {
        Envelope::Up {
            queue: QueueId(1),
            version,
            frame: Frame {
                session: version,
                term: 0,
                number: 1,
                seen: 0,
                asks: false,
                messages: vec![ToLeader::Nothing { node: Incarnation(1) }],
            },
        }
    }

    #[test]
    fn frames_wait_for_what_their_sender_knew_or_until_it_has_asked_again() {
        let mut parked = Parked::default();
        [5, 7, 6]
            .into_iter()
            .for_each(|version| parked.park(NodeId(1), frame(version), 100));
        assert_eq!(parked.due(6), [(NodeId(1), frame(5)), (NodeId(1), frame(6))]);
        let late = (1..).find(|_| !parked.due(6).is_empty());
        assert_eq!((late, parked.bytes), (Some(WAITS_FOR - 1), 0));
    }

    #[test]
    fn what_waits_is_bounded_and_goes_with_its_link() {
        let mut parked = Parked::default();
        (0..100).for_each(|_| parked.park(NodeId(1), frame(9), MOST_BYTES / 10));
        assert_eq!(parked.waiting.len(), 10);
        parked.forget(NodeId(1));
        parked.park(NodeId(2), frame(9), 2 * MOST_BYTES);
        parked.park(NodeId(1), frame(9), 1);
        assert_eq!(parked.due(9).len(), 1, "one may always wait");
        assert_eq!(parked.bytes, 0);
    }
}
