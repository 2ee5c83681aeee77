//! What a broken group would do: each of these must be found by the simulation or by a scenario, or its invariants see nothing.
//!
//! What a host does wrong is done in the simulation's machine; what only the code itself can do wrong is asked for
//! where it would happen, in tests alone and where the simulator of whole nodes asks for the feature `mutants`.

use std::cell::Cell;

/// What is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// A vote is forgotten in a crash.
    VoteNotSynced,
    /// The term is forgotten with it.
    TermNotSynced,
    /// What was appended counts as synced at once.
    EarlySync,
    /// What a failed sync lost counts as synced.
    FailedSyncCounts,
    /// Whether another one leads is not asked of anybody.
    NoProof,
    /// A checkpoint is taken of what isn't committed.
    CheckpointAboveCommit,
    /// After a start the members are those of the beginning: who was removed counts.
    RemovedCounts,
    /// A change of members is begun while another one is under way.
    TwoChanges,
    /// A change of members is written without what is known to be committed before it.
    ChangeBeforeCommit,
    /// A node starts with the number of the start before.
    OldIncarnation,
    /// A node whose disk was wiped comes back as the member that it was.
    SameLife,
    /// Messages that can't be true are believed.
    NoGuard,
    /// Proposals during a transfer of leadership are dropped.
    TransferDrops,
    /// A group falls asleep though members lack entries.
    SleepBehind,
    /// A member falls asleep, and gives up its bodies, before what is committed was handed out.
    SleepUnapplied,
    /// A leader's own copy counts before it is synced.
    UnsyncedLeader,
    /// A removed member isn't told.
    NoFarewell,
    /// A removed member is told before those that stay have written down that it may leave.
    LeavesAtOnce,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::VoteNotSynced,
        Self::TermNotSynced,
        Self::EarlySync,
        Self::FailedSyncCounts,
        Self::NoProof,
        Self::CheckpointAboveCommit,
        Self::RemovedCounts,
        Self::TwoChanges,
        Self::ChangeBeforeCommit,
        Self::OldIncarnation,
        Self::SameLife,
        Self::NoGuard,
        Self::TransferDrops,
        Self::SleepBehind,
        Self::SleepUnapplied,
        Self::UnsyncedLeader,
        Self::NoFarewell,
        Self::LeavesAtOnce,
    ];

    /// Those that the code itself does, whatever its host.
    pub const IN_CODE: [Self; 10] = [
        Self::NoProof,
        Self::TwoChanges,
        Self::ChangeBeforeCommit,
        Self::NoGuard,
        Self::TransferDrops,
        Self::SleepBehind,
        Self::SleepUnapplied,
        Self::UnsyncedLeader,
        Self::NoFarewell,
        Self::LeavesAtOnce,
    ];

    /// Whether this is done wrong in this thread.
    pub fn is_on(self) -> bool {
        NOW.get() == Some(self)
    }

    /// What is done wrong in this thread from now on.
    pub fn turn_on(mutant: Option<Self>) {
        NOW.set(mutant);
    }
}

thread_local! {
    static NOW: Cell<Option<Mutant>> = const { Cell::new(None) };
}
