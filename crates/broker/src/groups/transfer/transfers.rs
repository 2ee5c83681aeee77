//! What a member fetches and what it answers. Decides what is asked, read and stored next; whoever has the host's lock
//! carries the orders out after letting go of it.

use super::answer::{Answers, Standing, Task};
use super::fetch::{Brought, Fetch};
use super::frame::{Bulk, Entry, Said};
use super::progress::{CopyPhase, CopyProgress};
use crate::groups::node_groups::NodeGroups;
use cluster::{GroupId, NodeId};
use model::{Index, Ranges};
use queue::store::{Piece, Whereabouts};
use std::sync::Arc;
use storage::Position;

/// While bodies of so many bytes wait to be stored, no more are asked for. At most so much, and an answer, waits, and as much is
/// being written.
const ARRIVED_BYTES: usize = 8 << 20;
/// So many stores are under way at most: one is being written while the one before is being synced.
const STORES: usize = 2;
/// Ticks before contents are asked for again that could not be used.
const HOLD: u32 = 50;
/// Ticks before bodies are asked for again that could not be stored.
const PAUSE: u32 = 10;
/// Ticks before bodies are looked for again that nobody could give.
const REST: u32 = 600;

/// Something for a disk or a link to do.
#[derive(Debug)]
pub enum Order {
    Say(NodeId, Said),
    /// Read the checkpoint that stands here in the log, for a peer.
    ReadContents(NodeId, Position),
    /// Read these bodies for a peer.
    ReadBodies(NodeId, Whereabouts),
    /// Copy these bodies to segments.
    Copy(Vec<Piece>),
    /// Store these bodies in segments.
    Store(Vec<Entry>),
}

/// What is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Nothing,
    /// Contents.
    Contents,
    /// Nothing yet: what of the contents' bodies is in the log is copied before.
    Copies,
    /// The bodies of contents that are here.
    Bodies,
    /// Bodies that this node can't read.
    Lacking,
}

/// See the module.
#[derive(Debug)]
pub struct Transfers {
    group: GroupId,
    groups: Arc<NodeGroups>,
    pub fetch: Fetch,
    pub answers: Answers,
    pub purpose: Purpose,
    /// Contents at this index or behind it are wanted, of these nodes.
    pub wanted: Option<(Index, Vec<NodeId>)>,
    /// Messages that can't be read here.
    pub lacking: Ranges,
    /// Those of which every other member said that it can't read them either.
    pub nowhere: Ranges,
    pub orders: Vec<Order>,
    /// Bodies that have come while stores were under way: the next one stores all of them, with one sync. Until then they are
    /// here in memory only, and nothing counts them as held.
    pub arrived: Vec<Entry>,
    /// Stores and copies that are under way.
    pub storing: usize,
    /// It is one of the few of the node that may fetch.
    may: bool,
    ticks: bool,
    closed: bool,
    /// Ticks until it begins anew, or goes on.
    hold: u32,
}

impl Transfers {
    pub fn new(group: GroupId, groups: Arc<NodeGroups>) -> Self {
        Self {
            group,
            fetch: Fetch::new(groups.me().1),
            groups,
            answers: Answers::default(),
            purpose: Purpose::Nothing,
            wanted: None,
            lacking: Ranges::new(),
            nowhere: Ranges::new(),
            orders: Vec::new(),
            arrived: Vec::new(),
            storing: 0,
            may: false,
            ticks: false,
            closed: false,
            hold: 0,
        }
    }

    /// The groups of the node.
    pub fn groups(&self) -> &Arc<NodeGroups> {
        &self.groups
    }

    /// Whether it may begin to fetch.
    pub fn may_begin(&mut self) -> bool {
        self.hold == 0 && self.may_fetch()
    }

    fn may_fetch(&mut self) -> bool {
        self.may = self.may || self.groups.may_fetch(self.group);
        self.may
    }

    /// Nothing is fetched any more; others may.
    pub fn end(&mut self) {
        self.fetch.give_up();
        self.purpose = Purpose::Nothing;
        self.arrived.clear();
        self.storing = 0;
        self.leave();
    }

    /// What was fetched could not be used: it begins anew, of another node and later.
    pub fn begin_anew(&mut self) {
        if let Some((_, nodes)) = &mut self.wanted {
            nodes.rotate_left(1);
        }
        self.hold = HOLD;
        self.end();
    }

    /// Nothing of what came could be stored: the disk is full, or a sync has failed, which only another start mends. What comes
    /// next would come in vain as well, so it is asked for later, and meanwhile other groups may fetch.
    pub fn pause(&mut self) {
        self.hold = PAUSE;
        self.leave();
    }

    /// Nobody could give what is lacking.
    pub fn rest(&mut self) {
        self.hold = REST;
        self.end();
    }

    fn leave(&mut self) {
        if std::mem::take(&mut self.may) {
            self.groups.fetched(self.group);
        }
    }

    /// Stores what has come, if not too much is being stored.
    pub fn store(&mut self) {
        if self.storing < STORES && !self.arrived.is_empty() {
            self.storing += 1;
            let arrived = std::mem::take(&mut self.arrived);
            self.orders.push(Order::Store(arrived));
        }
    }

    /// How far it is, if something is fetched or is to be.
    pub fn progress(&self) -> Option<CopyProgress> {
        let phase = match self.purpose {
            Purpose::Nothing if self.wanted.is_none() && self.lacking.is_empty() => return None,
            Purpose::Nothing => CopyPhase::Waits,
            Purpose::Contents => CopyPhase::Contents,
            Purpose::Copies => CopyPhase::Copies,
            Purpose::Bodies => CopyPhase::Bodies,
            Purpose::Lacking => CopyPhase::Lacking,
        };
        let come = self.fetch.come().map(|(bytes, total, left)| CopyProgress {
            phase,
            bytes,
            total,
            left,
        });
        Some(come.unwrap_or(CopyProgress::begins(phase)))
    }

    /// Whether everything that has come is stored, or is known not to be.
    pub fn is_stored(&self) -> bool {
        self.storing == 0 && self.arrived.is_empty()
    }

    /// Asks what is to be asked next, if the disk keeps up.
    pub fn ask(&mut self) {
        let arrived: usize = self.arrived.iter().map(|entry| entry.bytes.len()).sum();
        if self.fetch.is_busy()
            && self.hold == 0
            && arrived < ARRIVED_BYTES
            && self.may_fetch()
            && let Some((to, said)) = self.fetch.ask()
        {
            self.orders.push(Order::Say(to, said));
        }
    }

    /// So much time has passed.
    pub fn tick(&mut self) {
        self.hold = self.hold.saturating_sub(1);
        self.answers.tick();
        if let Some((to, said)) = self.fetch.tick() {
            self.orders.push(Order::Say(to, said));
        }
        if self.fetch.is_in_vain() {
            self.leave();
        }
    }

    /// The member is given up: what it has fetched is of no use, and another one of the group may ask for ticks from now on.
    pub fn close(&mut self) {
        if !std::mem::replace(&mut self.closed, true) {
            self.leave();
            self.groups.ticks(self.group, false);
        }
    }

    /// Has itself told of ticks as long as it needs to be.
    pub fn heed_ticks(&mut self) {
        let wants = self.fetch.is_busy()
            || self.wanted.is_some()
            || !self.lacking.is_empty()
            || !self.answers.is_idle();
        if self.ticks != wants && !self.closed {
            self.ticks = wants;
            self.groups.ticks(self.group, wants);
        }
    }

    /// What a peer has said: an answer, or a question that is answered at once or has to be read for.
    pub fn hear(&mut self, bulk: &Bulk, here: Standing) -> (Brought, Task) {
        let from = bulk.from;
        let Some(said) = Said::decode(&bulk.said) else {
            let line = format_args!("what it sends of {:?} can't be read", self.group);
            self.groups.rejected().tell(from, "groups", line);
            return (Brought::Nothing, Task::Nothing);
        };
        if matches!(said, Said::WantsContents { .. } | Said::WantsBodies { .. }) {
            let task = self.answers.asked(from, bulk.incarnation, said, here);
            return (Brought::Nothing, task);
        }
        let brought = self.fetch.hear(from, said).unwrap_or_else(|lie| {
            let line = format_args!(
                "what it answers of {:?} can't be ({lie:?}); another one is asked",
                self.group
            );
            self.groups.rejected().tell(from, "groups", line);
            Brought::Nothing
        });
        (brought, Task::Nothing)
    }
}

impl Drop for Transfers {
    fn drop(&mut self) {
        self.close();
    }
}
