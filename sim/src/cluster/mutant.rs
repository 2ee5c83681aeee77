//! What surrounds nodes wrongly: each of these must be found, as what the code itself does wrong
//! (`model::Mutant`, `cluster::mutant::Mutant`).

use std::cell::Cell;

/// What is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// Disks tell that something is durable without having synced.
    DisksLie,
    /// A node whose disk was lost comes back as the member that it was.
    SameLife,
    /// A node starts with the number of the start before.
    OldIncarnation,
    /// Whoever begins to lead goes on with the settings with which its copy was opened.
    OldSettings,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::DisksLie,
        Self::SameLife,
        Self::OldIncarnation,
        Self::OldSettings,
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
