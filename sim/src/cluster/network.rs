//! The network between the nodes: frames arrive late, never, twice or out of order, and not at all where it is cut.

use broker::groups::Links;
use broker::groups::catalog::CatalogLinks;
use broker::groups::handle::{self, ToLeader, ToNode};
use bytes::Bytes;
use cluster::{GroupId, NodeId};
use model::Incarnation;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use storage::faulty::Random;

/// What nodes have sent and the network has not looked at.
type Sent = Arc<Mutex<Vec<Frame>>>;

/// What nodes say to each other.
#[derive(Debug, Clone)]
pub enum Said {
    /// Of groups.
    Entries(Bytes),
    /// Of the catalog, beside its group.
    Catalog(Bytes),
    /// Contents and bodies.
    Bulk(Bytes),
    /// A node that is this one, to who leads the queue.
    Up(GroupId, Incarnation, handle::Frame<ToLeader>),
    /// Who leads the queue, to a node that is this one.
    Down(GroupId, Incarnation, handle::Frame<ToNode>),
}

impl Said {
    /// Whether it keeps its order among its like, as long as it comes.
    fn keeps_order(&self) -> bool {
        matches!(self, Self::Catalog(_) | Self::Up(..) | Self::Down(..))
    }
}

/// Something on its way.
#[derive(Debug, Clone)]
pub struct Frame {
    pub from: u32,
    pub to: u32,
    pub said: Said,
    /// When it was sent, once the network has it.
    pub sent: Duration,
}

/// A node's way to the others.
pub struct Wire {
    from: u32,
    sent: Sent,
}

impl Wire {
    /// Sends something to a node.
    pub fn put(&self, to: u32, said: Said) {
        let from = self.from;
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.push(Frame {
            from,
            to,
            said,
            sent: Duration::ZERO,
        });
    }
}

impl Links for Wire {
    fn send(&self, to: NodeId, frame: Bytes) {
        self.put(to.0, Said::Entries(frame));
    }

    fn bulk(&self, to: NodeId, frame: Bytes) {
        self.put(to.0, Said::Bulk(frame));
    }
}

impl CatalogLinks for Wire {
    fn send(&self, to: NodeId, frame: Bytes) {
        self.put(to.0, Said::Catalog(frame));
    }
}

/// A node that was not heard of for so long is not reached.
const SILENCE: Duration = Duration::from_millis(500);

/// How bad it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weather {
    /// One frame in so many is lost; 0 for none.
    pub loses_one_in: u64,
    /// One in so many arrives twice.
    pub doubles_one_in: u64,
    /// A frame takes so long at the most, in milliseconds.
    pub delay_ms: u64,
}

/// All frames under way.
#[derive(Default)]
pub struct Network {
    sent: Sent,
    under_way: BTreeMap<(Duration, u64), Frame>,
    frames: u64,
    /// When what keeps its order arrives at the earliest.
    behind: BTreeMap<(u32, u32), Duration>,
    /// When the second heard of the first last.
    heard: BTreeMap<(u32, u32), Duration>,
    /// From the first to the second nothing gets through.
    pub cuts: BTreeSet<(u32, u32)>,
    pub weather: Weather,
}

impl Network {
    /// The way from a node.
    pub fn wire(&self, from: u32) -> Arc<Wire> {
        let sent = self.sent.clone();
        Arc::new(Wire { from, sent })
    }

    /// Takes what nodes have sent, and decides what becomes of it.
    pub fn collect(&mut self, now: Duration, random: &mut Random) {
        let sent = std::mem::take(&mut *self.sent.lock().unwrap_or_else(PoisonError::into_inner));
        let Weather {
            loses_one_in,
            doubles_one_in,
            delay_ms,
        } = self.weather;
        for frame in sent {
            let mut seldom = |one_in: u64| one_in > 0 && random.below(one_in) == 0;
            let (lost, doubled) = (seldom(loses_one_in), seldom(doubles_one_in));
            if lost || self.cuts.contains(&(frame.from, frame.to)) {
                continue;
            }
            if doubled {
                self.put(now, 1 + random.below(1 + 4 * delay_ms), frame.clone());
            }
            self.put(now, random.below(1 + delay_ms), frame);
        }
    }

    fn put(&mut self, now: Duration, delay_ms: u64, mut frame: Frame) {
        self.frames += 1;
        frame.sent = now;
        let mut due = now + Duration::from_millis(delay_ms);
        if frame.said.keeps_order() {
            let behind = self.behind.entry((frame.from, frame.to)).or_default();
            due = due.max(*behind);
            *behind = due;
        }
        self.under_way.insert((due, self.frames), frame);
    }

    /// The next frame that has arrived by now at a node that takes it.
    pub fn arrived(&mut self, now: Duration, takes: impl Fn(u32) -> bool) -> Option<Frame> {
        let arrived = self.under_way.range(..=(now, u64::MAX));
        let at = arrived
            .filter(|(_, frame)| takes(frame.to))
            .map(|(at, _)| *at)
            .next()?;
        let frame = self.under_way.remove(&at)?;
        match self.cuts.contains(&(frame.from, frame.to)) {
            true => self.arrived(now, takes),
            false => {
                self.heard.insert((frame.from, frame.to), now);
                Some(frame)
            }
        }
    }

    /// Whether `node` has heard of `other` lately.
    pub fn hears(&self, node: u32, other: u32, now: Duration) -> bool {
        let heard = self.heard.get(&(other, node));
        node == other || heard.is_some_and(|heard| *heard + SILENCE > now)
    }

    /// A node is no more: what was on its way to it is lost, what it had sent may arrive.
    pub fn ended(&mut self, node: u32) {
        self.under_way.retain(|_, frame| frame.to != node);
        self.heard.retain(|(from, to), _| *from != node && *to != node);
    }

    /// Nothing goes to these nodes from the others, nor back.
    pub fn part(&mut self, some: &[u32], others: &[u32]) {
        for one in some {
            for other in others.iter().filter(|other| !some.contains(other)) {
                self.cuts.extend([(*one, *other), (*other, *one)]);
            }
        }
    }
}
