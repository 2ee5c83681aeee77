//! What the seeds have reached: each kind of record, at each point of its way through a node, when something went wrong
//! there. What stands nowhere in this table no seed has tried.

use super::node::Node;
use cluster::trace::{self, Step};
use cluster::{GroupId, NodeId, Record};
use model::Journaled;
use queue::fifo;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// So many of the last records that a node has applied count as just applied.
const SHORTLY: usize = 12;

/// So many of its records are looked at.
const MOST: usize = 64;

/// What a record of a group says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A term or a vote. It goes no further than to the node's own log.
    Promise,
    /// The first entry of a leader's term.
    TermBegan,
    /// Who the members are.
    Members,
    Enqueued,
    Declined,
    HandedOut,
    Settled,
    Returned,
    Retried,
    Dropped,
    Barred,
    MayHold,
    SenderEnded,
    Activated,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Promise,
        Self::TermBegan,
        Self::Members,
        Self::Enqueued,
        Self::Declined,
        Self::HandedOut,
        Self::Settled,
        Self::Returned,
        Self::Retried,
        Self::Dropped,
        Self::Barred,
        Self::MayHold,
        Self::SenderEnded,
        Self::Activated,
    ];

    fn of_queue(record: &[u8]) -> Option<Self> {
        Some(match fifo::Record::decode(record)? {
            fifo::Record::Enqueued { .. } => Self::Enqueued,
            fifo::Record::HandedOut { .. } => Self::HandedOut,
            fifo::Record::Declined { .. } => Self::Declined,
            fifo::Record::Barred { .. } => Self::Barred,
            fifo::Record::MayHold { .. } => Self::MayHold,
            fifo::Record::IncarnationEnded { .. } => Self::SenderEnded,
            fifo::Record::Activated { .. } => Self::Activated,
            fifo::Record::Settled { .. } => Self::Settled,
            fifo::Record::Returned { .. } | fifo::Record::GivenBack { .. } => Self::Returned,
            fifo::Record::Retried { .. } => Self::Retried,
            fifo::Record::Dropped { .. } => Self::Dropped,
        })
    }
}

/// What goes wrong, or changes, around a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    Killed,
    PowerCut,
    /// A majority or all nodes lose their power at once.
    Blackout,
    /// Some ways between nodes are cut.
    Cut,
    Paused,
    ClockJump,
    /// A write or a sync of the log fails.
    DiskFails,
    DiskFull,
    DiskHangs,
    DiskLost,
    /// A change of members is asked for.
    Change,
    /// A leadership is to be handed over.
    Transfer,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Killed,
        Self::PowerCut,
        Self::Blackout,
        Self::Cut,
        Self::Paused,
        Self::ClockJump,
        Self::DiskFails,
        Self::DiskFull,
        Self::DiskHangs,
        Self::DiskLost,
        Self::Change,
        Self::Transfer,
    ];
}

/// How far a record has come on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The leader's host has decided it, and it is in no batch for the log yet.
    Decided,
    /// It is in the log, which is not synced.
    Appended,
    /// It is under way to another node, and not synced here.
    Sent,
    /// It is synced here, and nobody knows that it is committed.
    Synced,
    /// It is committed, and not applied here.
    Committed,
    /// It was just applied here.
    Applied,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Decided,
        Self::Appended,
        Self::Sent,
        Self::Synced,
        Self::Committed,
        Self::Applied,
    ];
}

/// Something that the seeds reach or not.
pub type Cell = (Kind, Phase, Fault);

/// How often the seeds have reached what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage(BTreeMap<Cell, u64>);

impl Coverage {
    /// Adds what another seed has reached.
    pub fn add(&mut self, other: &Self) {
        for (cell, count) in &other.0 {
            *self.0.entry(*cell).or_default() += count;
        }
    }

    /// How often the seeds have reached it.
    pub fn count(&self, cell: Cell) -> u64 {
        self.0.get(&cell).copied().unwrap_or(0)
    }

    /// What the seeds have reached less often than so, though it can be, and how often.
    pub fn below(&self, times: u64) -> Vec<(u64, Cell)> {
        let mut counted: Vec<(u64, Cell)> = cells().map(|cell| (self.count(cell), cell)).collect();
        counted.retain(|(count, _)| *count < times);
        counted.sort_unstable();
        counted
    }
}

/// Everything that can be reached.
pub fn cells() -> impl Iterator<Item = Cell> {
    let points = Kind::ALL
        .into_iter()
        .flat_map(|kind| Phase::ALL.map(|phase| (kind, phase)));
    let cells = points.flat_map(|(kind, phase)| Fault::ALL.map(|fault| (kind, phase, fault)));
    cells.filter(|cell| is_possible(*cell))
}

/// Whether this fault can find a record of this kind at this point.
fn is_possible((kind, phase, fault): Cell) -> bool {
    match kind {
        // A disk is lost where all others go by the same members: as long as a change of members is not known to be committed,
        // whoever is to agree to it may be the one whose disk is lost, and of two such nobody could go on.
        Kind::Members if fault == Fault::DiskLost => matches!(phase, Phase::Committed | Phase::Applied),
        // Other nodes have promises of their own.
        Kind::Promise => matches!(phase, Phase::Appended | Phase::Synced),
        // The group itself makes these, in the turn that appends them.
        Kind::TermBegan | Kind::Members => phase != Phase::Decided,
        _ => true,
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:24}", "")?;
        Fault::ALL
            .iter()
            .try_for_each(|fault| write!(f, "{:>10}", format!("{fault:?}")))?;
        for kind in Kind::ALL {
            let comes_to = |phase: &Phase| Fault::ALL.iter().any(|fault| is_possible((kind, *phase, *fault)));
            for phase in Phase::ALL.into_iter().filter(comes_to) {
                write!(f, "\n{:24}", format!("{kind:?} {phase:?}"))?;
                Fault::ALL
                    .iter()
                    .try_for_each(|fault| write!(f, "{:>10}", self.count((kind, phase, *fault))))?;
            }
        }
        Ok(())
    }
}

/// A record in the log of a node.
struct Logged {
    kind: Kind,
    /// 0 for a promise.
    index: u64,
    turn: u64,
    sent: bool,
    synced: bool,
}

/// What one node has of one group.
#[derive(Default)]
struct Way {
    decided: VecDeque<Kind>,
    logged: VecDeque<Logged>,
    term: u64,
}

impl Way {
    fn append(&mut self, turn: u64, record: &Record) {
        let (kind, index) = match record {
            Record::Promise { .. } => (Some(Kind::Promise), 0),
            Record::Entry { at, kind, bytes, .. } => {
                if at.term != self.term {
                    self.term = at.term;
                    self.decided.clear();
                }
                self.logged.retain(|it| it.index < at.index);
                (kind_of(*kind, bytes), at.index)
            }
        };
        let Some(kind) = kind else { return };
        // Who follows has decided nothing.
        if let Some(at) = self.decided.iter().position(|decided| *decided == kind) {
            self.decided.drain(..=at);
        }
        let (sent, synced) = (false, false);
        if self.logged.len() > MOST {
            self.logged.pop_front();
        }
        self.logged.push_back(Logged {
            kind,
            index,
            turn,
            sent,
            synced,
        });
    }

    /// Whether it may have a record of this kind at this point.
    fn has(&self, kind: Kind, phase: Phase) -> bool {
        match phase {
            Phase::Decided => self.decided.contains(&kind),
            Phase::Appended | Phase::Sent => self.logged.iter().any(|it| it.kind == kind && !it.synced),
            _ => self.logged.iter().any(|it| it.kind == kind),
        }
    }

    /// Of what is done only the last counts as just done.
    fn forget_old(&mut self, reached: Reached) {
        let done = |it: &Logged| match it.index {
            0 => it.synced,
            index => index <= reached.applied,
        };
        while self.logged.iter().filter(|it| done(it)).count() > SHORTLY {
            let oldest = self.logged.iter().position(&done);
            oldest.map(|at| self.logged.remove(at));
        }
    }

    /// How far each of its records has come.
    fn phases(&self, reached: Reached) -> impl Iterator<Item = (Kind, Phase)> + '_ {
        let decided = self.decided.iter().map(|kind| (*kind, Phase::Decided));
        let logged = self.logged.iter().map(move |it| {
            let phase = match it {
                it if it.index > 0 && it.index <= reached.applied => Phase::Applied,
                it if it.index > 0 && it.index <= reached.agreed => Phase::Committed,
                it if it.synced => Phase::Synced,
                it if it.sent => Phase::Sent,
                _ => Phase::Appended,
            };
            (it.kind, phase)
        });
        decided.chain(logged)
    }
}

/// How far a group has come.
#[derive(Debug, Clone, Copy)]
struct Reached {
    /// On one node.
    applied: u64,
    /// Anybody knows that its records up to here are committed.
    agreed: u64,
}

impl Reached {
    fn of(group: GroupId, node: &Node, agreed: impl Fn(GroupId) -> u64) -> Self {
        let applied = node.copy(group).and_then(|copy| copy.queue().applied());
        Self {
            applied: applied.unwrap_or(0),
            agreed: agreed(group),
        }
    }
}

/// What an entry is, by the byte that says whether it is the group's own.
fn kind_of(kind: u8, bytes: &[u8]) -> Option<Kind> {
    match (kind, bytes) {
        (0, []) => Some(Kind::TermBegan),
        (0, record) => Kind::of_queue(record),
        _ => Some(Kind::Members),
    }
}

/// Where the last records of all groups are on all nodes.
#[derive(Default)]
pub struct Ways(BTreeMap<(NodeId, GroupId), Way>);

impl Ways {
    /// What happens in this thread is told from now on.
    pub fn begin() -> Self {
        trace::begin();
        Self::default()
    }

    /// Looks at what has happened.
    pub fn look(&mut self) {
        for step in trace::take() {
            match step {
                Step::Proposed { node, group, records } => {
                    let way = self.0.entry((node, group)).or_default();
                    let kinds = records.iter().filter_map(|record| Kind::of_queue(record));
                    way.decided.extend(kinds);
                }
                Step::Appended { node, turn, record } => {
                    let group = GroupId(record.journal().number);
                    self.0.entry((node, group)).or_default().append(turn, &record);
                }
                Step::Sent { node, group, last } => {
                    let way = self.0.entry((node, group)).or_default();
                    let sent = way.logged.iter_mut().filter(|it| it.index <= last);
                    sent.for_each(|it| it.sent = true);
                }
                Step::Synced { node, turn } => {
                    let of_node = self.0.iter_mut().filter(|((of, _), _)| *of == node);
                    let logged = of_node.flat_map(|(_, way)| way.logged.iter_mut());
                    logged
                        .filter(|it| it.turn <= turn)
                        .for_each(|it| it.synced = true);
                }
            }
        }
    }

    /// Something goes wrong with a node. `agreed` says up to where anybody knows that a group's records are committed.
    pub fn struck(
        &mut self,
        fault: Fault,
        node: &Node,
        agreed: impl Fn(GroupId) -> u64,
        coverage: &mut Coverage,
    ) {
        self.look();
        let of_node = |(of, _): &(NodeId, GroupId)| *of == NodeId(node.id);
        let ways = self.0.iter_mut().filter(|(at, _)| of_node(at));
        for ((_, group), way) in ways {
            let reached = Reached::of(*group, node, &agreed);
            way.forget_old(reached);
            for (kind, phase) in way.phases(reached) {
                *coverage.0.entry((kind, phase, fault)).or_default() += 1;
            }
        }
    }

    /// Where a record of this kind is at this point of its way, on a node that goes on.
    pub fn find(
        &mut self,
        kind: Kind,
        phase: Phase,
        nodes: &[Node],
        agreed: impl Fn(GroupId) -> u64,
    ) -> Option<(u32, GroupId)> {
        self.look();
        let there = self.0.iter_mut().filter(|(_, way)| way.has(kind, phase));
        for ((node, group), way) in there {
            let node = nodes.get(node.0 as usize - 1).filter(|node| node.goes_on());
            let Some(node) = node else { continue };
            let reached = Reached::of(*group, node, &agreed);
            way.forget_old(reached);
            if way.phases(reached).any(|it| it == (kind, phase)) {
                return Some((node.id, *group));
            }
        }
        None
    }

    /// A process is no more: what it had in memory is gone with it.
    pub fn ended(&mut self, node: u32) {
        self.look();
        self.0.retain(|(of, _), _| *of != NodeId(node));
    }
}
