//! What the seeds reached: each thing that happens to a node's messages and queues, shortly before each trouble and in
//! its wake. What stands nowhere in this table no seed has tried.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// So many of the last things that happened count as interrupted by a trouble.
const SHORTLY: usize = 48;

/// Something that clients, administrators or queues do; most of it makes a record in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    Declared,
    Imported,
    Deleted,
    /// Nobody used the queue for long, its last consumer left, or its connection ended.
    QueueLeft,
    Bound,
    Unbound,
    Purged,
    PolicyPut,
    PolicyDeleted,
    Reconnected,
    Consumed,
    Cancelled,
    PublishedPersistent,
    PublishedTransient,
    Confirmed,
    Refused,
    Delivered,
    Redelivered,
    DeliveredSettled,
    Accepted,
    Rejected,
    GivenBack,
    DeadLettered,
}

impl Act {
    /// All of them.
    pub const ALL: [Self; 23] = [
        Self::Declared,
        Self::Imported,
        Self::Deleted,
        Self::QueueLeft,
        Self::Bound,
        Self::Unbound,
        Self::Purged,
        Self::PolicyPut,
        Self::PolicyDeleted,
        Self::Reconnected,
        Self::Consumed,
        Self::Cancelled,
        Self::PublishedPersistent,
        Self::PublishedTransient,
        Self::Confirmed,
        Self::Refused,
        Self::Delivered,
        Self::Redelivered,
        Self::DeliveredSettled,
        Self::Accepted,
        Self::Rejected,
        Self::GivenBack,
        Self::DeadLettered,
    ];
}

/// What goes wrong, or ends a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    Closed,
    Killed,
    PowerCut,
    /// A call of the file system fails.
    Io,
    /// The disk is full for a while.
    Full,
    /// A half write or read.
    Short,
    NoDescriptor,
    /// Somebody sets the wall clock.
    WallClock,
    /// The machine sleeps for up to two hours.
    Sleep,
}

impl Trouble {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Closed,
        Self::Killed,
        Self::PowerCut,
        Self::Io,
        Self::Full,
        Self::Short,
        Self::NoDescriptor,
        Self::WallClock,
        Self::Sleep,
    ];

    fn ends_a_life(self) -> bool {
        matches!(self, Self::Closed | Self::Killed | Self::PowerCut)
    }
}

/// Where something stands to a trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Shortly before it.
    Before,
    /// In the same life after it; after the end of a life, in the next one.
    After,
}

/// A table of how often which act stood before or after which trouble.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    cells: BTreeMap<(Act, Trouble, Phase), u64>,
    recent: VecDeque<Act>,
    behind: Vec<Trouble>,
}

impl Coverage {
    /// Something has happened.
    pub fn did(&mut self, act: Act) {
        for trouble in &self.behind {
            *self.cells.entry((act, *trouble, Phase::After)).or_default() += 1;
        }
        if self.recent.len() == SHORTLY {
            self.recent.pop_front();
        }
        self.recent.push_back(act);
    }

    /// Something has gone wrong, or a life has ended.
    pub fn struck(&mut self, trouble: Trouble) {
        for act in &self.recent {
            *self.cells.entry((*act, trouble, Phase::Before)).or_default() += 1;
        }
        if trouble.ends_a_life() {
            self.behind.clear();
            self.recent.clear();
        }
        if !self.behind.contains(&trouble) {
            self.behind.push(trouble);
        }
    }

    /// Adds what another seed reached.
    pub fn add(&mut self, other: &Self) {
        for (cell, count) in &other.cells {
            *self.cells.entry(*cell).or_default() += count;
        }
    }

    fn count(&self, act: Act, trouble: Trouble, phase: Phase) -> u64 {
        self.cells.get(&(act, trouble, phase)).copied().unwrap_or(0)
    }

    /// The cells that nothing has reached.
    pub fn empty(&self) -> Vec<(Act, Trouble, Phase)> {
        let phases = [Phase::Before, Phase::After];
        let troubles = Trouble::ALL
            .iter()
            .flat_map(|trouble| phases.map(|phase| (*trouble, phase)));
        let cells = troubles.flat_map(|(trouble, phase)| Act::ALL.map(|act| (act, trouble, phase)));
        cells
            .filter(|(act, trouble, phase)| self.count(*act, *trouble, *phase) == 0)
            .collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:20}", "before/after")?;
        for trouble in Trouble::ALL {
            write!(f, "{:>16}", format!("{trouble:?}"))?;
        }
        for act in Act::ALL {
            write!(f, "\n{:20}", format!("{act:?}"))?;
            for trouble in Trouble::ALL {
                let (before, after) = (
                    self.count(act, trouble, Phase::Before),
                    self.count(act, trouble, Phase::After),
                );
                write!(f, "{:>16}", format!("{before}/{after}"))?;
            }
        }
        Ok(())
    }
}
