//! A node's members of all groups: what a host talks to.
//!
//! Whatever comes in is given to the group that it concerns and makes it *dirty*; [`Groups::turn`] collects what comes
//! out of all dirty groups: one batch for the log, one frame for each peer. Groups that sleep are in no list. Reading
//! order: here, `slots` (where members are), `peers` (who is heard of), `gone` (closed and deleted groups), `handover`
//! (leaderships that should be elsewhere), `proofs` (rounds of proof).

mod gone;
mod handover;
mod peers;
mod proofs;
mod slots;

pub use handover::Disk;
pub use peers::Rejected;

use crate::frame::{Digest, FrameWriter, Item};
use crate::group::{Event, Group, Out, Refused};
use crate::identity::{GroupId, MemberId, NodeId};
use crate::membership::{Membership, Step};
use crate::record::{Mark, Record};
use crate::recovery::{Damage, Recovered};
use crate::settings::Settings;
use crate::trace;
use bytes::Bytes;
use peers::Peers;
use proofs::Proofs;
use slots::Slots;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use storage::GroupEntry;

/// What a turn of a node brings.
#[derive(Debug, Default)]
pub struct Turn {
    /// What [`Groups::synced`] is called with once `append` is synced. If there is nothing to append, nobody waits for it.
    pub number: u64,
    /// One batch for the node's log.
    pub append: Vec<Record>,
    /// Frames for peers. They are sent at once, before the batch is synced: what has to wait for that is in none of them.
    pub send: Vec<(NodeId, Bytes)>,
    pub committed: Vec<crate::Committed>,
    pub events: Vec<Event>,
}

/// What a member tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub me: MemberId,
    pub term: u64,
    pub leader: Option<MemberId>,
    pub last: u64,
    /// The term of the last entry.
    pub last_term: u64,
    pub committed: u64,
    pub base: Mark,
    pub awake: bool,
    /// Bytes of bodies in memory.
    pub held_bytes: usize,
    pub members: Membership,
    /// How often it was told to fetch a snapshot.
    pub snapshots: u32,
    /// It was told that it is none any more: the others do without it.
    pub is_removed: bool,
    /// It leads, and what changes its members is not applied yet: they are others in a moment.
    pub is_changing: bool,
}

/// The groups of a node.
pub struct Groups {
    node: NodeId,
    incarnation: u64,
    settings: Settings,
    slots: Slots,
    /// Groups that were deleted.
    gone: BTreeSet<GroupId>,
    /// Of which unknown groups peers have spoken since the last turn.
    strangers: BTreeSet<(GroupId, NodeId, Option<MemberId>)>,
    peers: Peers,
    proofs: Proofs,
    /// The node's log has not synced for too long.
    hangs: bool,
    /// The node is about to close.
    closing: bool,
    /// Nodes in maintenance, this one perhaps among them: they lead what nobody else can lead.
    drained: BTreeSet<NodeId>,
    /// The node's log failed: nothing comes in or goes out any more.
    failed: bool,
    turn: u64,
    /// Which groups wait for which turn to be synced.
    unsynced: VecDeque<(u64, Vec<usize>)>,
    out: Out,
}

impl Groups {
    /// A node without groups. `incarnation` is higher at each start of the node.
    pub fn new(node: NodeId, incarnation: u64, settings: Settings) -> Self {
        Self {
            node,
            incarnation,
            settings,
            slots: Slots::default(),
            gone: BTreeSet::new(),
            strangers: BTreeSet::new(),
            peers: Peers::default(),
            proofs: Proofs::new(incarnation),
            hangs: false,
            closing: false,
            drained: BTreeSet::new(),
            failed: false,
            turn: 0,
            unsynced: VecDeque::new(),
            out: Out::default(),
        }
    }

    /// Opens a member, of a new group or after a start.
    ///
    /// # Errors
    /// Its log isn't whole, it is open already, or the group was deleted.
    pub fn open(&mut self, group: GroupId, recovered: Recovered) -> Result<(), Damage> {
        if self.slots.find(group).is_some() {
            return Err(Damage::Open);
        }
        if self.gone.contains(&group) {
            return Err(Damage::Deleted);
        }
        let mut opened = Group::open(group, recovered, &self.settings)?;
        opened.lose_leader(&self.peers.reachable());
        let slot = self.slots.insert(opened);
        self.slots.touch(slot);
        Ok(())
    }

    /// Who this is.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Which start of it this is.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The latest start of a peer that was heard of, 0 if there was none; `None` if it is no peer.
    pub fn incarnation_of(&self, node: NodeId) -> Option<u64> {
        self.peers.incarnation_of(node)
    }

    /// How many turns there were.
    pub fn turns(&self) -> u64 {
        self.turn
    }

    /// How many groups are awake.
    pub fn awake(&self) -> usize {
        self.slots.awake()
    }

    /// What a group's member tells of itself.
    pub fn status(&self, group: GroupId) -> Option<Status> {
        let group = self.slots.get(group)?;
        Some(Status {
            me: group.me,
            term: group.term(),
            leader: group.leader(),
            last: group.last(),
            last_term: group.last_term(),
            committed: group.committed(),
            base: group.base(),
            awake: group.is_awake(),
            held_bytes: group.held_bytes(),
            members: group.membership().clone(),
            snapshots: group.snapshots(),
            is_removed: group.is_removed(),
            is_changing: group.is_changing(),
        })
    }

    /// Bytes of bodies that all members have in memory.
    pub fn held_bytes(&self) -> usize {
        self.slots.groups().map(Group::held_bytes).sum()
    }

    /// The term of an entry, as long as the log goes back to it.
    pub fn term_at(&self, group: GroupId, index: u64) -> Option<u64> {
        self.slots.get(group)?.term_at(index)
    }

    #[cfg(test)]
    pub(crate) fn group(&self, group: GroupId) -> Option<&Group> {
        self.slots.get(group)
    }

    /// Appends a record to a group that is led here. The index that it will have, if this leader stays in its term.
    ///
    /// # Errors
    /// It isn't led here, or too much is uncommitted.
    pub fn propose(&mut self, group: GroupId, record: Bytes) -> Result<u64, Refused> {
        self.with(group, |group, settings, _| group.propose(record, settings))?
    }

    /// Changes the members of a group that is led here.
    ///
    /// # Errors
    /// It isn't led here, another change is under way, it can't be, or those who are left can't be reached.
    pub fn change(&mut self, group: GroupId, steps: &[Step]) -> Result<(), Refused> {
        let reachable = self.peers.reachable();
        self.with(group, |group, _, _| group.change(steps, &reachable))?
    }

    /// The group is new, and this member is to lead it first, or another one.
    pub fn begin(&mut self, group: GroupId, is_first: bool) {
        let reachable = self.peers.reachable();
        let _ = self.with(group, |group, settings, out| {
            group.begin(is_first, settings, &reachable, out);
        });
    }

    /// The host knows more than this node's member: that it is to be none of the group any more, or that `me` is to be one, which
    /// is not open yet. Members on these nodes, of whom none may know of the other, say what they know of it.
    pub fn ask_after_itself(&mut self, group: GroupId, me: MemberId, nodes: &[NodeId]) {
        let nothing = Digest {
            group,
            member: me.number(),
            term: 0,
            leader: 0,
            last: 0,
            commit: 0,
        };
        let digest = self.slots.get(group).map_or(nothing, Group::digest);
        let asked = nodes.iter().filter(|node| self.peers.is_heard(**node));
        self.out
            .send
            .extend(asked.map(|node| (*node, Item::Digest(digest))));
    }

    /// Hands the leadership of a group over.
    ///
    /// # Errors
    /// It isn't led here, a change of members is under way, or `to` can't lead.
    pub fn transfer(&mut self, group: GroupId, to: MemberId) -> Result<(), Refused> {
        self.with(group, |group, _, _| group.transfer(to))?
    }

    /// The contents at `index` are durable here: those that [`Event::Fetch`] asked for, or later ones. Whether the
    /// member goes on from what was asked for; of later contents the host is told entries that it has.
    pub fn installed(&mut self, group: GroupId, index: u64) -> bool {
        self.with(group, |group, _, _| group.installed(index))
            .unwrap_or(false)
    }

    /// This node's member of the group can't apply what is committed, so nobody would be served by it: it leads only where nobody
    /// else can, until somebody can. It votes and takes entries as before. So it is until it is opened anew.
    pub fn abstain(&mut self, group: GroupId) {
        let _ = self.with(group, |group, _, _| group.abstain());
    }

    /// If this node leads the group, its followers hear what is committed with the next entries or the next heartbeat, not by a
    /// message for each commit: for groups of which only the leader serves somebody.
    pub fn tell_commits_later(&mut self, group: GroupId) {
        if let Some(group) = self.slots.get_mut(group) {
            group.tell_commits_later();
        }
    }

    /// If this node leads the group, its followers hear at once what is committed. Nothing else is on its way to tell it.
    pub fn tell_commits(&mut self, group: GroupId) {
        let _ = self.with(group, |group, _, _| group.tell_commits());
    }

    /// The contents at `index` are durable, as a checkpoint that other members can be sent; the log is needed behind `keep` only.
    pub fn checkpointed(&mut self, group: GroupId, index: u64, keep: u64) {
        if let Some(group) = self.slots.get_mut(group) {
            group.checkpointed(index, keep);
        }
    }

    /// The first entry of a group that is led here which a member lacks, as far as is known, of those whose nodes were heard of
    /// within so many ticks. Who is being sent a snapshot lacks what is behind that.
    pub fn lacked(&self, group: GroupId, ticks: u32) -> Option<u64> {
        let counts = |node| self.peers.spoke_within(node, ticks);
        self.slots.get(group)?.lacked(counts)
    }

    /// Entries that [`Event::Read`] asked for, as the log has them: payloads of [`storage::Kind::GROUP`]. None if they
    /// can't be read.
    pub fn fetched(&mut self, group: GroupId, from: u64, payloads: &[Bytes]) {
        let entry = |payload: &Bytes| {
            let (GroupEntry { term, index }, rest) = GroupEntry::decode(payload)?;
            crate::record::entry(Mark { index, term }, *rest.first()?, payload.slice(17..)).ok()
        };
        let entries: Option<Vec<_>> = payloads.iter().map(entry).collect();
        let _ = self.with(group, |group, _, _| {
            group.fetched(from, entries.unwrap_or_default())
        });
    }

    /// A turn, and all before it, are synced.
    pub fn synced(&mut self, turn: u64) {
        if self.failed {
            return;
        }
        let node = self.node;
        trace::tell(|| trace::Step::Synced { node, turn });
        while self.unsynced.front().is_some_and(|(number, _)| *number <= turn) {
            let Some((number, slots)) = self.unsynced.pop_front() else {
                break;
            };
            for slot in slots {
                if let Some(group) = self.slots.at_mut(slot) {
                    group.synced(number, &mut self.out);
                    self.slots.touch(slot);
                }
            }
        }
    }

    /// A tick of the node's clock.
    pub fn tick(&mut self) {
        if self.failed {
            return;
        }
        self.tick_peers();
        self.tick_handovers();
        self.proofs.tick(self.settings.election, &mut self.out);
        let reachable = self.peers.reachable();
        let (yields, settings, out) = (self.yields(), &self.settings, &mut self.out);
        let drained = &self.drained;
        self.slots
            .each_awake(|group| group.tick(settings, &reachable, (yields, drained), out));
    }

    /// Collects what all groups have to say.
    pub fn turn(&mut self) -> Turn {
        self.turn += 1;
        if self.failed {
            // Events, and the last word to peers.
            return self.carry_away();
        }
        self.ask_for_proofs();
        let mut waiting = Vec::new();
        let kept = self.settings.kept_bytes_a_node / self.slots.listed().max(1);
        let kept = kept.min(self.settings.kept_bytes);
        let (number, out) = (self.turn, &mut self.out);
        self.slots.each_dirty(|slot, group| {
            let before = out.append.len();
            group.collect(number, kept, out);
            if out.append.len() > before {
                waiting.push(slot);
            }
        });
        self.strangers.clear();
        if !waiting.is_empty() {
            self.unsynced.push_back((self.turn, waiting));
        }
        self.carry_away()
    }

    fn carry_away(&mut self) -> Turn {
        let out = std::mem::take(&mut self.out);
        let (node, turn) = (self.node, self.turn);
        for record in &out.append {
            trace::tell(|| trace::Step::Appended {
                node,
                turn,
                record: record.clone(),
            });
        }
        Turn {
            number: self.turn,
            append: out.append,
            send: self.frames(out.send),
            committed: out.committed,
            events: out.events,
        }
    }

    /// One frame a peer, or several if they would be too long; nothing for whoever isn't heard of, except to be heard by it.
    fn frames(&mut self, send: Vec<(NodeId, Item)>) -> Vec<(NodeId, Bytes)> {
        let mut open: BTreeMap<NodeId, FrameWriter> = BTreeMap::new();
        let mut frames = Vec::new();
        for (to, item) in send {
            if to == self.node || !self.peers.is_heard(to) {
                continue;
            }
            let writer = open
                .entry(to)
                .or_insert_with(|| FrameWriter::new(self.incarnation));
            writer.put(&item);
            if let Item::Raft(group, message) = &item
                && let Some(last) = message.entries.last()
            {
                let (node, group, last) = (self.node, *group, last.index);
                trace::tell(|| trace::Step::Sent { node, group, last });
            }
            if writer.is_full()
                && let Some(full) = open.remove(&to)
            {
                self.peers.said(to);
                frames.push((to, full.finish()));
            }
        }
        for (to, writer) in open {
            self.peers.said(to);
            frames.push((to, writer.finish()));
        }
        for to in self.peers.take_silent() {
            frames.push((to, FrameWriter::new(self.incarnation).finish()));
        }
        frames
    }

    fn with<T>(
        &mut self,
        group: GroupId,
        act: impl FnOnce(&mut Group, &Settings, &mut Out) -> T,
    ) -> Result<T, Refused> {
        if self.failed {
            return Err(Refused::Failed);
        }
        let slot = self.slots.find(group).ok_or(Refused::Unknown)?;
        let member = self.slots.at_mut(slot).ok_or(Refused::Unknown)?;
        let done = act(member, &self.settings, &mut self.out);
        self.slots.touch(slot);
        Ok(done)
    }
}
