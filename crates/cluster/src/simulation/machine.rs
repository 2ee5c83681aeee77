//! A node of the simulation: its groups, its log with what is synced of it, and the checkpoints of its groups.

use crate::mutant::Mutant;
use crate::{Disk, GroupId, Groups, Mark, MemberId, Membership, NodeId, Record, Recovered, Settings};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use storage::Kind;

/// The durable contents of a member: in the simulation, how far they go.
#[derive(Clone)]
pub struct Checkpoint {
    pub base: Mark,
    pub at: Mark,
    pub members: Membership,
}

pub struct Machine {
    pub node: NodeId,
    /// How often its disk was wiped: it is another member each time.
    pub life: u32,
    /// Ticks for which its disk hasn't synced, if it hangs.
    pub hangs: Option<u32>,
    has_failed: bool,
    /// The process stands still, and what others said waits in its mailbox.
    pub stands: bool,
    pub mail: Vec<(NodeId, Bytes)>,
    /// Entries that a failed sync lost.
    lost: Vec<(GroupId, Mark)>,
    /// `None` while it is down.
    pub groups: Option<Groups>,
    incarnation: u64,
    synced: Vec<Record>,
    unsynced: VecDeque<(u64, Vec<Record>)>,
    pub checkpoints: BTreeMap<GroupId, Checkpoint>,
    /// Groups of which it was told that it is no member.
    pub left: BTreeSet<GroupId>,
    /// All checkpoints that were ever taken here, as others may fetch them.
    pub taken: BTreeMap<(GroupId, u64), Membership>,
    /// Who the members are from which index on, since the checkpoint.
    pub members: BTreeMap<(GroupId, u64), Membership>,
    pub fetching: BTreeMap<GroupId, (MemberId, Mark, Membership)>,
}

impl Machine {
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            life: 0,
            hangs: None,
            has_failed: false,
            stands: false,
            mail: Vec::new(),
            lost: Vec::new(),
            groups: None,
            incarnation: 0,
            synced: Vec::new(),
            unsynced: VecDeque::new(),
            checkpoints: BTreeMap::new(),
            left: BTreeSet::new(),
            taken: BTreeMap::new(),
            members: BTreeMap::new(),
            fetching: BTreeMap::new(),
        }
    }

    pub fn begin(&mut self, group: GroupId, base: Mark, members: Membership) {
        let at = base;
        self.checkpoints.insert(group, Checkpoint { base, at, members });
    }

    /// Starts it on what is in its log.
    pub fn start(&mut self, nodes: u32) {
        if !Mutant::OldIncarnation.is_on() || self.incarnation == 0 {
            self.incarnation += 1;
        }
        (self.hangs, self.has_failed) = (None, false);
        let settings = Settings {
            unsynced_bytes: 100,
            uncommitted_bytes: 200,
            message_bytes: 64,
            in_flight: 3,
            kept_bytes: 0,
            snapshot_again: 7,
            snapshot_timeout: 20,
            digests_a_tick: 1,
            ..Settings::default()
        };
        let mut groups = Groups::new(self.node, self.incarnation, settings);
        (1..=nodes).for_each(|node| groups.add_peer(NodeId(node)));
        let open = self
            .checkpoints
            .iter()
            .filter(|(group, _)| !self.left.contains(group));
        for (group, checkpoint) in open {
            let me = self.me();
            let Checkpoint { base, at, members } = checkpoint;
            let mut member = Recovered::at(me, *base, at.index, members.clone());
            let mut promised = false;
            for record in self.synced.iter().filter(|r| r.journal().number == group.0) {
                match record.journal().kind {
                    Kind::GROUP => member.entry(&record.payload()).unwrap(),
                    // It keeps the term, and nobody was voted for.
                    _ if Mutant::VoteNotSynced.is_on() => {
                        let mut payload = record.payload().to_vec();
                        payload[8..16].fill(0);
                        member.promise(&payload).unwrap();
                    }
                    _ if Mutant::TermNotSynced.is_on() && std::mem::replace(&mut promised, true) => {}
                    _ => member.promise(&record.payload()).unwrap(),
                }
            }
            groups.open(*group, member).unwrap();
            if group.0 % 2 == 0 {
                groups.tell_commits_later(*group);
            }
        }
        self.groups = Some(groups);
        self.members.clear();
        self.fetching.clear();
    }

    pub fn append(&mut self, turn: u64, records: Vec<Record>) {
        if !records.is_empty() {
            self.unsynced.push_back((turn, records));
        }
        if Mutant::EarlySync.is_on()
            && let Some(groups) = &mut self.groups
        {
            groups.synced(turn);
        }
    }

    /// The member that this node is of each group.
    pub fn me(&self) -> MemberId {
        let (node, life) = (self.node, self.life);
        MemberId { node, life }
    }

    /// The disk doesn't sync for a while, or does again.
    pub fn hang(&mut self, hangs: bool) {
        self.hangs = hangs.then_some(0);
        if let Some(groups) = &mut self.groups {
            groups.disk(Disk::Syncs);
        }
    }

    /// A sync fails, and what was to be synced is lost; the process lives on.
    pub fn fail(&mut self) {
        let last = self.unsynced.back().map_or(0, |(turn, _)| *turn);
        let unsynced = std::mem::take(&mut self.unsynced);
        let records = unsynced.iter().flat_map(|(_, records)| records);
        self.lost.extend(records.filter_map(place));
        self.has_failed = true;
        if let Some(groups) = &mut self.groups {
            match Mutant::FailedSyncCounts.is_on() {
                true => groups.synced(last),
                false => groups.disk(Disk::Failed),
            }
        }
    }

    /// Everything that the node ever had is lost.
    pub fn wipe(&mut self) {
        self.groups = None;
        self.synced.clear();
        self.unsynced.clear();
        self.members.clear();
        self.fetching.clear();
        self.taken.clear();
        self.left.clear();
        match Mutant::SameLife.is_on() {
            true => {
                for checkpoint in self.checkpoints.values_mut() {
                    checkpoint.base = Mark::default();
                    checkpoint.at = Mark::default();
                }
            }
            false => {
                self.checkpoints.clear();
                self.life += 1;
            }
        }
    }

    pub fn tick(&mut self) {
        let Some(groups) = &mut self.groups else { return };
        if let Some(ticks) = &mut self.hangs {
            *ticks += 1;
            groups.disk(Disk::Hangs { ticks: *ticks });
        }
        groups.tick();
    }

    /// Syncs so many batches.
    pub fn sync(&mut self, batches: usize) {
        if self.hangs.is_some() {
            return;
        }
        for _ in 0..batches.min(self.unsynced.len()) {
            let (turn, records) = self.unsynced.pop_front().unwrap();
            self.synced.extend(records);
            if let Some(groups) = &mut self.groups {
                groups.synced(turn);
            }
        }
    }

    /// The power goes: of what was not synced, the first `kept` records happen to be there all the same.
    pub fn crash(&mut self, kept: usize) -> Vec<(GroupId, Mark)> {
        let unsynced = std::mem::take(&mut self.unsynced);
        let mut records: Vec<_> = unsynced.into_iter().flat_map(|(_, records)| records).collect();
        let mut lost = std::mem::take(&mut self.lost);
        lost.extend(records.split_off(kept).iter().filter_map(place));
        self.synced.extend(records);
        self.groups = None;
        self.stands = false;
        self.mail.clear();
        lost
    }

    /// Whether an entry is in its log.
    pub fn has(&self, group: GroupId, at: Mark) -> bool {
        let unsynced = self.unsynced.iter().flat_map(|(_, records)| records);
        let mut all = self.synced.iter().chain(unsynced).filter_map(place);
        all.any(|entry| entry == (group, at))
    }

    /// Whether it lives, and its log failed.
    pub fn failed(&self) -> bool {
        self.has_failed && self.groups.is_some()
    }

    pub fn unsynced(&self) -> usize {
        self.unsynced.iter().map(|(_, records)| records.len()).sum()
    }

    /// Entries of a group's log, as they are read for somebody who lags.
    pub fn read(&self, group: GroupId, from: u64, to: u64) -> Vec<Bytes> {
        let mut log = BTreeMap::new();
        let all = self
            .synced
            .iter()
            .chain(self.unsynced.iter().flat_map(|(_, records)| records));
        for record in all {
            if let Some((_, at)) = place(record).filter(|(of, _)| *of == group) {
                log.split_off(&at.index);
                log.insert(at.index, record);
            }
        }
        log.range(from..to).map(|(_, record)| record.payload()).collect()
    }
}

/// Which entry a record is, if it is one.
pub fn place(record: &Record) -> Option<(GroupId, Mark)> {
    match record {
        Record::Entry { group, at, .. } => Some((*group, *at)),
        Record::Promise { .. } => None,
    }
}
