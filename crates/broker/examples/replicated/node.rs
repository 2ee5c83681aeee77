//! A node with members of replicated queues, wherever it runs.

use crate::confirms::Confirms;
use broker::groups::alone::{self, Alone};
use broker::groups::{Ends, Hosted, Identity, Links};
use cluster::{GroupId, MemberId, Membership, NodeId, Settings};
use model::QueueSettings;
use queue::Effect;
use queue::fifo::Classic;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use storage::{LogOptions, System};

/// Whose numbers are those of the three.
pub const NODES: [u32; 3] = [1, 2, 3];
/// The queue that is busy; idle ones have the numbers behind it.
pub const BUSY: GroupId = GroupId(1);

/// A queue's member on a node.
pub struct Queue {
    pub group: GroupId,
    pub hosted: Arc<Hosted<Classic<Ends>>>,
    pub confirms: Arc<Confirms>,
}

pub struct Node {
    pub alone: Alone,
    pub queues: Vec<Queue>,
}

impl Node {
    /// A new node in `dir`, with a log of this kind, the busy queue, and so many idle ones.
    pub fn start(
        id: NodeId,
        dir: &Path,
        links: Arc<dyn Links>,
        idle: u64,
        log: LogOptions,
    ) -> Result<Self, Box<dyn Error>> {
        let (world, settings) = (System::real(), Settings::default());
        let alone = alone::open(world, dir, log, id, 1, settings, links);
        let mut node = Self {
            alone: alone.map_err(|error| format!("{error:?}"))?,
            queues: Vec::new(),
        };
        NODES
            .iter()
            .for_each(|peer| node.alone.groups.add_peer(NodeId(*peer)));
        for number in BUSY.0..=BUSY.0 + idle {
            node.open(id, GroupId(number))?;
        }
        Ok(node)
    }

    fn open(&mut self, id: NodeId, group: GroupId) -> Result<(), Box<dyn Error>> {
        let settings = QueueSettings {
            durable: true,
            ..QueueSettings::default()
        };
        let confirms = Arc::new(Confirms::default());
        let confirmed = confirms.clone();
        let act = Box::new(move |effect: Effect<Ends>| {
            if let Effect::Confirm(receipt) = effect {
                confirmed.reached(receipt.numbers.last().unwrap_or(0));
            }
        });
        let identity = Identity {
            group,
            me: MemberId::first(id),
            members: Membership::of(&NODES.map(|node| MemberId::first(NodeId(node)))),
        };
        let hosted = self.alone.member(identity, settings, act);
        let hosted = hosted.map_err(|why| format!("{why:?}"))?;
        self.queues.push(Queue {
            group,
            hosted,
            confirms,
        });
        Ok(())
    }

    /// The member of the busy queue.
    pub fn busy(&self) -> &Queue {
        &self.queues[0]
    }
}
