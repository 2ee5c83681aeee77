//! A node of the simulation: its groups, its log with what is synced of it, and the checkpoints of its groups.

use crate::{GroupId, Groups, Mark, MemberId, Membership, NodeId, Record, Recovered, Settings};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use storage::{GroupEntry, Kind};

/// The durable contents of a member: in the simulation, how far they go.
#[derive(Clone)]
pub struct Checkpoint {
    pub base: Mark,
    pub at: Mark,
    pub members: Membership,
}

pub struct Machine {
    pub node: NodeId,
    /// `None` while it is down.
    pub groups: Option<Groups>,
    incarnation: u64,
    synced: Vec<Record>,
    unsynced: VecDeque<(u64, Vec<Record>)>,
    pub checkpoints: BTreeMap<GroupId, Checkpoint>,
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
            groups: None,
            incarnation: 0,
            synced: Vec::new(),
            unsynced: VecDeque::new(),
            checkpoints: BTreeMap::new(),
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
        self.incarnation += 1;
        let settings = Settings {
            uncommitted_bytes: 200,
            message_bytes: 64,
            in_flight: 3,
            kept_bytes: 0,
            snapshot_timeout: 20,
            digests_a_tick: 1,
            ..Settings::default()
        };
        let mut groups = Groups::new(self.node, self.incarnation, settings);
        (1..=nodes).for_each(|node| groups.add_peer(NodeId(node)));
        for (group, checkpoint) in &self.checkpoints {
            let me = MemberId::first(self.node);
            let Checkpoint { base, at, members } = checkpoint;
            let mut member = Recovered::at(me, *base, at.index, members.clone());
            for record in self.synced.iter().filter(|r| r.journal.number == group.0) {
                match record.journal.kind {
                    Kind::GROUP => member.entry(&Bytes::from(record.payload.clone())).unwrap(),
                    _ => member.promise(&record.payload).unwrap(),
                }
            }
            groups.open(*group, member).unwrap();
        }
        self.groups = Some(groups);
        self.members.clear();
        self.fetching.clear();
    }

    pub fn append(&mut self, turn: u64, records: Vec<Record>) {
        if !records.is_empty() {
            self.unsynced.push_back((turn, records));
        }
    }

    /// Syncs so many batches.
    pub fn sync(&mut self, batches: usize) {
        for _ in 0..batches.min(self.unsynced.len()) {
            let (turn, records) = self.unsynced.pop_front().unwrap();
            self.synced.extend(records);
            if let Some(groups) = &mut self.groups {
                groups.synced(turn);
            }
        }
    }

    /// The power goes: of what was not synced, the first `kept` records happen to be there all the same.
    pub fn crash(&mut self, kept: usize) {
        let unsynced = std::mem::take(&mut self.unsynced);
        let records = unsynced.into_iter().flat_map(|(_, records)| records);
        self.synced.extend(records.take(kept));
        self.groups = None;
    }

    pub fn unsynced(&self) -> usize {
        self.unsynced.iter().map(|(_, records)| records.len()).sum()
    }

    /// Entries of a group's log, as they are read for somebody who lags.
    pub fn read(&self, group: GroupId, from: u64, to: u64) -> Vec<Bytes> {
        let mut log: BTreeMap<u64, &Vec<u8>> = BTreeMap::new();
        let all = self
            .synced
            .iter()
            .chain(self.unsynced.iter().flat_map(|(_, records)| records));
        for record in all.filter(|r| r.journal.kind == Kind::GROUP && r.journal.number == group.0) {
            let (head, _) = GroupEntry::decode(&record.payload).unwrap();
            log.split_off(&head.index);
            log.insert(head.index, &record.payload);
        }
        log.range(from..to)
            .map(|(_, payload)| Bytes::from((*payload).clone()))
            .collect()
    }
}
