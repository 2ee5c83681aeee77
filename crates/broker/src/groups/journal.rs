//! The journal of a machine of which several nodes have a copy.

use super::member_journal::{Kept, MemberJournal};
use super::node_groups::NodeGroups;
use super::replicated::Replicated;
use crate::node::journal::Journal;
use bytes::Bytes;
use cluster::{Committed, GroupId, Mark, Membership};
use model::{Index, Journaled, Mutant, Seq};
use queue::store::{self, LogPlace, Place, Stored};
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use storage::{JournalId, Position};

/// More than a record takes beside the block that it brings, mostly: so much that its bytes are not moved while they are written.
const BESIDE_BLOCK: usize = 256;

/// A machine's part of a group: its leader proposes what it decides, its followers apply what is committed. And what
/// this node remembers of it for itself.
pub struct ReplicatedJournal<M: Replicated> {
    own: MemberJournal,
    /// Up to here the machine has what is committed.
    applied: Mark,
    lead: Option<Lead<M::Local>>,
    /// Another checkpoint is due.
    due: bool,
    /// The log wants to use the file again that ends here, once there is a checkpoint.
    before: Option<Position>,
}

/// A checkpoint that was taken of more than is committed: it counts if all of that is.
struct Early<L> {
    /// The number of the last record that is in it.
    last: u64,
    contents: L,
    /// Where the records stand by now that bring its messages.
    placed: Vec<(Seq, LogPlace)>,
    /// What the store had remembered before it was taken.
    moved: usize,
}

/// What is decided here.
struct Lead<L> {
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
    /// The checkpoint that waits until what is in it is committed.
    early: Option<Early<L>>,
    /// One of the records that are not committed, and when it was proposed, in microseconds since the node's start.
    timed: Option<(u64, u64)>,
    /// How long the last one took that was looked at, in microseconds.
    latency_us: u64,
}

impl<L> Lead<L> {
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
            early: None,
            timed: None,
            latency_us: 0,
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

impl<M: Replicated> ReplicatedJournal<M> {
    /// The journal of a machine that has applied everything up to `applied` and goes on applying.
    pub fn new(own: MemberJournal, applied: Mark) -> Self {
        Self {
            own,
            applied,
            lead: None,
            due: false,
            before: None,
        }
    }

    /// Whose it is.
    pub fn group(&self) -> GroupId {
        self.own.group()
    }

    /// The groups of the node.
    pub fn groups(&self) -> &Arc<NodeGroups> {
        self.own.groups()
    }

    /// What its contents are made of beside entries.
    pub fn kept(&self) -> &Kept {
        self.own.kept()
    }

    /// Up to here the machine has what is committed.
    pub fn applied(&self) -> Index {
        self.applied.index
    }

    /// The same with its term.
    pub(super) fn applied_mark(&self) -> Mark {
        self.applied
    }

    /// Whether this node's member is the only one, and everything that it has decided is committed.
    pub fn is_settled_alone(&self) -> bool {
        let no_early = |lead: &Lead<M::Local>| lead.early.is_none();
        let settled = self.is_settled() && self.lead.as_ref().is_some_and(no_early);
        settled && self.members().members().count() == 1
    }

    /// Whether its machine decides, and everything that it has decided is committed.
    pub fn is_settled(&self) -> bool {
        let settled = |lead: &Lead<M::Local>| lead.committed == lead.proposed;
        self.lead.as_ref().is_some_and(settled)
    }

    /// Whether a checkpoint is written of which the group has not heard yet.
    pub fn is_letting_go(&self) -> bool {
        self.own.is_letting_go()
    }

    /// Whose name the segments bear that bodies lie in.
    pub fn segments(&self) -> JournalId {
        self.own.segments()
    }

    /// Whether its machine decides.
    pub fn leads(&self) -> bool {
        self.lead.is_some()
    }

    /// In which term its machine decides, if it does.
    pub fn term(&self) -> Option<u64> {
        self.lead.as_ref().map(|lead| lead.term)
    }

    /// How long a record took lately from its proposal until a majority had it, in microseconds; 0 if none did in this term.
    pub fn commit_latency_us(&self) -> u64 {
        self.lead.as_ref().map_or(0, |lead| lead.latency_us)
    }

    /// Its machine decides from now on, in this term.
    pub fn lead(&mut self, term: u64) {
        self.lead = Some(Lead::new(term));
    }

    /// It decides no more.
    pub fn deposed(&mut self) {
        self.lead = None;
    }

    /// These are the members from this entry on.
    pub fn joined(&mut self, index: Index, members: Membership) {
        self.own.joined(index, members);
    }

    /// The contents after this entry were fetched, and a machine was made of them: they are written down, and it goes on
    /// from there.
    pub fn install(&mut self, at: Mark, members: Membership, contents: &M::Local, needed: Option<LogPlace>) {
        self.own.joined(at.index, members);
        self.own.take_spares();
        self.own.checkpoint(at, contents, needed, usize::MAX, None);
        if Mutant::InstallsUnsynced.is_on() {
            self.own.groups().installed(self.own.group(), at.index);
        }
        (self.applied, self.lead) = (at, None);
    }

    /// These bodies were fetched for contents to come.
    pub fn spare(&mut self, spares: Vec<Stored>) {
        self.own.spare(self.applied, spares);
    }

    /// Nothing is fetched any more, and what was is given back.
    pub fn drop_spares(&mut self) {
        let places: Vec<Place> = self.own.take_spares().into_iter().map(|it| it.place).collect();
        if !places.is_empty() {
            self.release(places);
        }
    }

    /// Who the members are by what it has applied.
    pub fn members(&self) -> Membership {
        self.own.members(self.applied)
    }

    /// The next checkpoint lets the log use the file again that ends here.
    pub fn reclaim(&mut self, before: Position) {
        self.before = self.before.max(Some(before));
    }

    /// Whether a checkpoint is due; once.
    pub fn take_due(&mut self) -> bool {
        mem::take(&mut self.due)
    }

    /// Nobody needs these places any more.
    pub fn release(&mut self, places: Vec<Place>) {
        self.own.release(self.applied, places);
    }

    /// A machine that follows has applied everything up to here.
    pub fn followed(&mut self, entry: &Committed) {
        self.reach(entry);
    }

    fn reach(&mut self, entry: &Committed) {
        self.applied = entry.at;
        self.due |= self.own.applied(entry.at, entry.record.len());
    }

    /// What this machine had decided is committed; the log keeps the messages that it brought, at its index.
    pub fn committed(&mut self, entry: &Committed, machine: &mut M) {
        self.reach(entry);
        let Some(lead) = &mut self.lead else { return };
        // What has no bytes, the group put there. Of its own term nobody but this leader proposes, and it keeps the order.
        if entry.record.is_empty() || entry.at.term != lead.term {
            return;
        }
        lead.record_committed();
        machine.record_committed(entry.at.index);
        if let Some((_, since)) = lead.timed.take_if(|(record, _)| *record <= lead.committed) {
            lead.latency_us = self.own.groups().node().micros().saturating_sub(since);
        }
        while let Some((record, first)) = lead.bodies.front()
            && *record <= lead.committed
        {
            let (record, first, at) = (*record, *first, LogPlace(entry.at.index));
            if let Some(early) = lead.early.as_mut().filter(|early| record <= early.last) {
                early.placed.push((first, at));
            }
            machine.appended(first, at);
            lead.bodies.pop_front();
        }
        if let Some(early) = lead.early.take_if(|early| early.last <= lead.committed) {
            self.write_checkpoint(early);
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
            self.own.groups().prove(self.own.group(), lead.term);
        }
    }

    fn propose(&mut self, records: &mut Vec<M::Record>) {
        let Some(lead) = self.lead.as_mut().filter(|_| !records.is_empty()) else {
            return;
        };
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
        if lead.timed.is_none() {
            lead.timed = Some((lead.proposed, self.own.groups().node().micros()));
        }
        lead.recorded = true;
        lead.open.push_back((lead.turn, lead.proposed));
        self.own.groups().propose(self.own.group(), lead.term, proposed);
    }

    /// The contents as they are now. If not all of that is committed, they wait for it; while some do, others are not taken:
    /// who wants them asks again.
    fn take_checkpoint(&mut self, machine: &M) {
        let early = |last| Early {
            last,
            contents: machine.checkpoint(0).0,
            placed: Vec::new(),
            moved: self.own.moved(),
        };
        match &mut self.lead {
            Some(lead) if lead.early.is_some() => {}
            Some(lead) if lead.committed < lead.proposed && !Mutant::ChecksWhatIsUndecided.is_on() => {
                lead.early = Some(early(lead.proposed))
            }
            _ => {
                let early = early(0);
                self.write_checkpoint(early);
            }
        }
    }

    fn write_checkpoint(&mut self, mut early: Early<M::Local>) {
        early.placed.sort_unstable_by_key(|(first, _)| *first);
        let needed = M::complete(&mut early.contents, self.applied.index + 1, &early.placed);
        let before = self.before.take();
        self.own
            .checkpoint(self.applied, &early.contents, needed, early.moved, before);
    }
}

impl<M: Replicated> Journal<M> for ReplicatedJournal<M> {
    fn append(&mut self, machine: &mut M, records: &mut Vec<M::Record>, promises: &mut Vec<M::Effect>) {
        let (mut moved, mut checkpoint) = (Vec::new(), false);
        promises.retain(|effect| match M::ordered_by_store(effect) {
            Some(store::Effect::Remember(record)) => {
                let mut bytes = Vec::new();
                M::Local::from(record.clone()).encode(&mut bytes);
                moved.push(bytes);
                false
            }
            Some(store::Effect::Checkpoint) => {
                checkpoint = true;
                false
            }
            _ => true,
        });
        if !moved.is_empty() {
            self.own.remember(self.applied, moved);
        }
        self.propose(records);
        if checkpoint {
            self.take_checkpoint(machine);
        }
    }

    fn end_turn(&mut self, leaves: bool) -> Option<u64> {
        let lead = self.lead.as_mut()?;
        let turn = lead.turn;
        lead.turn += 1;
        if !mem::take(&mut lead.recorded) && leaves {
            lead.wanted = turn;
            if Mutant::LeavesWithoutProof.is_on() {
                lead.proven = turn;
            }
            self.ask();
        }
        Some(turn)
    }

    /// What the message store orders, this node's disk does.
    fn holds(&self, effect: &M::Effect) -> bool {
        M::ordered_by_store(effect).is_none()
    }

    fn reached(&self) -> u64 {
        match Mutant::LeavesBeforeCommit.is_on() {
            true => u64::MAX,
            false => self.lead.as_ref().map_or(0, Lead::reached),
        }
    }
}
