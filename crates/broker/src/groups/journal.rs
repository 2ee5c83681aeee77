//! The journal of a machine of which several nodes have a copy.

use super::node_groups::NodeGroups;
use crate::node::ends::Ends;
use crate::node::journal::Journal;
use bytes::Bytes;
use cluster::{Committed, GroupId};
use model::{Index, Journaled, Seq};
use queue::store::{self, LogPlace};
use queue::{Effect, QueueMachine};
use std::collections::VecDeque;
use std::sync::Arc;

/// More than a record takes beside the block that it brings, mostly: so much that its bytes are not moved while they are written.
const BESIDE_BLOCK: usize = 256;

/// A machine's part of a group: its leader proposes what it decides, its followers apply what is committed.
pub struct ReplicatedJournal {
    groups: Arc<NodeGroups>,
    group: GroupId,
    /// Up to here the machine has what is committed.
    applied: Index,
    lead: Option<Lead>,
}

/// What is decided here.
struct Lead {
    term: u64,
    /// The number of the turn that is being made.
    turn: u64,
    /// Whether it has put something on record.
    recorded: bool,
    /// How many records were proposed and how many of them are committed.
    proposed: u64,
    committed: u64,
    /// Turns of which not all records are committed, each with the number of its last one.
    open: VecDeque<(u64, u64)>,
    /// The last turn of which all records are committed.
    committed_turn: u64,
    /// Up to this turn nobody else was elected.
    proven: u64,
    /// Up to which turn the question proves it that is under way.
    asked: Option<u64>,
    /// The last turn that waits for a proof.
    wanted: u64,
    /// Records that bring messages and are not committed: their numbers, and those of the first messages.
    bodies: VecDeque<(u64, Seq)>,
}

impl Lead {
    fn new(term: u64) -> Self {
        Self {
            term,
            turn: 1,
            recorded: false,
            proposed: 0,
            committed: 0,
            open: VecDeque::new(),
            committed_turn: 0,
            proven: 0,
            asked: None,
            wanted: 0,
            bodies: VecDeque::new(),
        }
    }

    /// The last turn of which everything may leave.
    fn reached(&self) -> u64 {
        // Records that were proposed after a turn and came through prove as much as a question would.
        let led_until = self.committed_turn.max(self.proven);
        match self.open.front() {
            Some((oldest, _)) => led_until.min(oldest - 1),
            None => led_until,
        }
    }

    /// A record that was proposed here is committed.
    fn record_committed(&mut self) {
        self.committed += 1;
        while let Some((turn, last)) = self.open.front()
            && *last <= self.committed
        {
            self.committed_turn = *turn;
            self.open.pop_front();
        }
    }

    /// What is to be proven, if something is and no question is under way.
    fn question(&mut self) -> bool {
        let asks = self.asked.is_none() && self.wanted > self.committed_turn.max(self.proven);
        if asks {
            self.asked = Some(self.turn - 1);
        }
        asks
    }
}

impl ReplicatedJournal {
    /// The journal of a machine that has applied everything up to `applied` and goes on applying.
    pub fn new(groups: Arc<NodeGroups>, group: GroupId, applied: Index) -> Self {
        Self {
            groups,
            group,
            applied,
            lead: None,
        }
    }

    /// Whose it is.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// The groups of the node.
    pub fn groups(&self) -> &Arc<NodeGroups> {
        &self.groups
    }

    /// Up to here the machine has what is committed.
    pub fn applied(&self) -> Index {
        self.applied
    }

    /// Whether its machine decides.
    pub fn leads(&self) -> bool {
        self.lead.is_some()
    }

    /// Its machine decides from now on, in this term.
    pub fn lead(&mut self, term: u64) {
        self.lead = Some(Lead::new(term));
    }

    /// It decides no more.
    pub fn deposed(&mut self) {
        self.lead = None;
    }

    /// A machine that follows has applied everything up to here.
    pub fn followed(&mut self, index: Index) {
        self.applied = index;
    }

    /// What this machine had decided is committed; the log keeps the messages that it brought, at its index.
    pub fn committed<M: QueueMachine<Ends>>(&mut self, entry: &Committed, machine: &mut M) {
        self.applied = entry.at.index;
        let Some(lead) = &mut self.lead else { return };
        // What has no bytes, the group put there. Of its own term nobody but this leader proposes, and it keeps the order.
        if entry.record.is_empty() || entry.at.term != lead.term {
            return;
        }
        lead.record_committed();
        while let Some((record, first)) = lead.bodies.front()
            && *record <= lead.committed
        {
            machine.appended(*first, LogPlace(entry.at.index));
            lead.bodies.pop_front();
        }
        self.ask();
    }

    /// Nobody else was elected when it was asked.
    pub fn proven(&mut self, term: u64) {
        if let Some(lead) = self.lead.as_mut().filter(|lead| lead.term == term)
            && let Some(turn) = lead.asked.take()
        {
            lead.proven = turn;
            self.ask();
        }
    }

    fn ask(&mut self) {
        if let Some(lead) = &mut self.lead
            && lead.question()
        {
            self.groups.prove(self.group, lead.term);
        }
    }
}

impl<M: QueueMachine<Ends>> Journal<M> for ReplicatedJournal {
    fn append(&mut self, _machine: &mut M, records: &mut Vec<M::Record>, promises: &mut Vec<Effect<Ends>>) {
        // Where this node's store has moved bytes need not be remembered while the log has them all.
        promises.retain(|effect| !matches!(effect, Effect::Store(store::Effect::Remember(_))));
        let Some(lead) = &mut self.lead else { return };
        if records.is_empty() {
            return;
        }
        let mut proposed = Vec::with_capacity(records.len());
        for record in records.drain(..) {
            lead.proposed += 1;
            let mut bytes = Vec::new();
            if let Some((first, block)) = M::brings(&record) {
                lead.bodies.push_back((lead.proposed, first));
                bytes.reserve_exact(block.bytes().len() + BESIDE_BLOCK);
            }
            record.encode(&mut bytes);
            proposed.push(Bytes::from(bytes));
        }
        lead.recorded = true;
        lead.open.push_back((lead.turn, lead.proposed));
        self.groups.propose(self.group, lead.term, proposed);
    }

    fn end_turn(&mut self, leaves: bool) -> Option<u64> {
        let lead = self.lead.as_mut()?;
        let turn = lead.turn;
        lead.turn += 1;
        if !std::mem::take(&mut lead.recorded) && leaves {
            lead.wanted = turn;
            self.ask();
        }
        Some(turn)
    }

    fn reached(&self) -> u64 {
        self.lead.as_ref().map_or(0, Lead::reached)
    }
}
