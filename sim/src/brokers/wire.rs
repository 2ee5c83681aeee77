//! The links between the brokers: each pair has one, with lanes that keep their order each by itself. A frame takes its time,
//! and is lost with its link.

use broker::groups::catalog::CatalogLinks;
use broker::groups::{Links, NodeId};
use broker::queues::WorkLinks;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use storage::faulty::Random;

/// What is said in a frame, and in which order it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    Entries,
    Bulk,
    Catalog,
    Work,
}

/// Something on its way.
#[derive(Debug)]
pub struct Frame {
    pub from: NodeId,
    pub to: NodeId,
    pub lane: Lane,
    pub bytes: Bytes,
}

/// A node's end of all its links.
#[derive(Debug, Clone)]
pub struct End {
    own: NodeId,
    sent: Arc<Mutex<Vec<Frame>>>,
}

impl End {
    fn put(&self, to: NodeId, lane: Lane, bytes: Bytes) {
        let from = self.own;
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.push(Frame {
            from,
            to,
            lane,
            bytes,
        });
    }
}

impl Links for End {
    fn send(&self, to: NodeId, frame: Bytes) {
        self.put(to, Lane::Entries, frame);
    }

    fn bulk(&self, to: NodeId, frame: Bytes) {
        self.put(to, Lane::Bulk, frame);
    }
}

impl CatalogLinks for End {
    fn send(&self, to: NodeId, frame: Bytes) {
        self.put(to, Lane::Catalog, frame);
    }
}

impl WorkLinks for End {
    fn work(&self, to: NodeId, parts: Vec<Bytes>) {
        self.put(to, Lane::Work, parts.concat().into());
    }
}

/// Two nodes, the lower one first.
pub type Pair = (u32, u32);

/// The link of these two.
pub fn pair(one: NodeId, other: NodeId) -> Pair {
    (one.0.min(other.0), one.0.max(other.0))
}

/// All links and what is on its way.
#[derive(Default)]
pub struct Wire {
    sent: Arc<Mutex<Vec<Frame>>>,
    under_way: BTreeMap<(Duration, u64), Frame>,
    frames: u64,
    /// When the next frame of a lane arrives at the earliest.
    behind: BTreeMap<(NodeId, NodeId, Lane), Duration>,
    /// The pairs that have a link.
    pub up: BTreeSet<Pair>,
    /// A frame takes so long at the most, in milliseconds.
    pub delay_ms: u64,
}

impl Wire {
    pub fn end(&self, own: NodeId) -> End {
        let sent = self.sent.clone();
        End { own, sent }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Frame>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was sent since the last time is on its way, if there is a link.
    pub fn collect(&mut self, now: Duration, random: &mut Random) {
        let sent = std::mem::take(&mut *self.lock());
        for frame in sent {
            if !self.up.contains(&pair(frame.from, frame.to)) {
                continue;
            }
            let lane = (frame.from, frame.to, frame.lane);
            let behind = self.behind.entry(lane).or_default();
            let due = (now + Duration::from_millis(random.below(1 + self.delay_ms))).max(*behind);
            *behind = due;
            self.frames += 1;
            self.under_way.insert((due, self.frames), frame);
        }
    }

    /// The next frame that has arrived at a node that goes on.
    pub fn arrived(&mut self, now: Duration, goes_on: impl Fn(NodeId) -> bool) -> Option<Frame> {
        let mut arrived = self.under_way.range(..=(now, u64::MAX));
        let at = arrived.find(|(_, frame)| goes_on(frame.to)).map(|(at, _)| *at)?;
        self.under_way.remove(&at)
    }

    /// There is no such link any more, and what was under way by it is lost.
    pub fn cut(&mut self, ends: Pair) {
        self.up.remove(&ends);
        let is_by_it = |frame: &Frame| pair(frame.from, frame.to) == ends;
        self.under_way.retain(|_, frame| !is_by_it(frame));
        self.lock().retain(|frame| !is_by_it(frame));
    }
}
