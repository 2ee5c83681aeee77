//! The ways to other nodes: their links, and detours through third nodes where there are none. See `detours`.

use super::detours::{Detours, Order};
use super::passed::{OfDetours, Passed, Step};
use super::{Work, WorkLinks};
use crate::groups::NodeId;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

type Through = BTreeMap<NodeId, (NodeId, Bytes)>;

/// What sends go by.
pub(super) struct Ways {
    links: Arc<dyn WorkLinks>,
    /// Held while everybody above is told of a change of ways, and what comes on a detour: so they are told in order. Who sends
    /// does not take it.
    detours: Mutex<Detours>,
    /// The nodes that are reached through another one: which, and what stands behind each frame.
    through: RwLock<Through>,
    /// There are some.
    any: AtomicBool,
}

impl Ways {
    pub fn new(me: NodeId, start: u64, links: Arc<dyn WorkLinks>) -> Self {
        Self {
            links,
            detours: Mutex::new(Detours::new(me, start)),
            through: RwLock::default(),
            any: AtomicBool::new(false),
        }
    }

    /// See [`WorkLinks::work`].
    pub fn work(&self, to: NodeId, parts: Vec<Bytes>) {
        let (to, parts) = self.on_the_way(to, parts);
        self.links.work(to, parts);
    }

    /// See [`WorkLinks::spare`].
    pub fn spare(&self, to: NodeId, parts: Vec<Bytes>) {
        let (to, parts) = self.on_the_way(to, parts);
        self.links.spare(to, parts);
    }

    fn on_the_way(&self, to: NodeId, mut parts: Vec<Bytes>) -> (NodeId, Vec<Bytes>) {
        if !self.any.load(Ordering::Acquire) {
            return (to, parts);
        }
        match self.through().get(&to) {
            Some((via, said)) => {
                parts.push(said.clone());
                (*via, parts)
            }
            None => (to, parts),
        }
    }

    fn through(&self) -> RwLockReadGuard<'_, Through> {
        self.through.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn detours(&self) -> MutexGuard<'_, Detours> {
        self.detours.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends go by these from now on.
    fn follow(&self, me: NodeId, detours: &Detours) {
        let said = |(node, via, name)| {
            let step = Step::Frame;
            let (to, from) = (node, me);
            (node, (via, Bytes::from(Passed { to, from, name, step }.encode())))
        };
        let mut through = self.through.write().unwrap_or_else(PoisonError::into_inner);
        *through = detours.through().map(said).collect();
        self.any.store(!through.is_empty(), Ordering::Release);
    }
}

impl Work {
    /// The nodes that are reached through another one, each with that.
    pub fn detours(&self) -> Vec<(NodeId, NodeId)> {
        let through = self.here.ways.through();
        through.iter().map(|(node, (via, _))| (*node, *via)).collect()
    }

    /// Something happens to the ways to other nodes.
    pub(super) fn change(&self, act: impl FnOnce(&mut Detours, &mut Vec<Order>)) {
        let mut detours = self.here.ways.detours();
        let mut orders = Vec::new();
        act(&mut detours, &mut orders);
        self.obey(&detours, orders);
    }

    /// A frame that has to do with detours, as it came over a link.
    pub(super) fn receive_on_detour(&self, link: NodeId, bytes: Vec<u8>) {
        let read = OfDetours::decode(&bytes);
        let mut detours = self.here.ways.detours();
        let mut orders = Vec::new();
        match read {
            Some((OfDetours::Reaches(said), _)) => {
                detours.hears(link, said, &mut orders);
                self.obey(&detours, orders);
            }
            Some((OfDetours::Passed(passed), before)) => {
                let frame = detours.receive(link, &passed, (bytes, before), &mut orders);
                self.obey(&detours, orders);
                if let Some(frame) = frame.filter(|frame| !OfDetours::is(frame)) {
                    self.receive_from(passed.from, frame);
                }
            }
            None => self.rejected.tell(
                link,
                "cluster",
                format_args!("what it sends about ways through other nodes can't be read"),
            ),
        }
    }

    fn obey(&self, detours: &Detours, orders: Vec<Order>) {
        for order in orders {
            // What stands before the first of these is sent before anybody follows a new way.
            if matches!(order, Order::Up { .. } | Order::Down { .. }) {
                self.here.ways.follow(self.here.node(), detours);
            }
            match order {
                Order::Send { to, frame } => self.here.ways.links.work(to, vec![frame.into()]),
                // It has a part of the room that this node's own has, so that it is in nobody's way.
                Order::PassOn { to, frame } => self.here.ways.links.spare(to, vec![frame.into()]),
                Order::Up { node, start } => self.reached(node, start),
                Order::Down { node } => self.lost(node),
            }
        }
    }
}
