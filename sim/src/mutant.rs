//! What a broken node would look like from outside: each of these must be found, or the invariants see nothing.
//!
//! What a node does wrong with its clients is done in their calls; what it does wrong with its files is done to the
//! files between two lives.

use crate::terms::{Said, Terms};
use std::path::{Path, PathBuf};
use storage::FileSystem;
use storage::faulty::FaultyFs;

/// What is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// The log tells that it is durable without having synced.
    NoSync,
    /// A message is confirmed as soon as it is published.
    EarlyConfirm,
    /// Acknowledgements go nowhere.
    LostSettle,
    /// Messages that were delivered before are not marked.
    Unmarked,
    /// A queue is declared to the client and to nobody else.
    LostDeclaration,
    /// A queue is deleted for the client and for nobody else.
    LostDeletion,
    /// A binding is made for the client and for nobody else.
    LostBinding,
    /// A purge goes nowhere.
    LostPurge,
    /// A message is put into the queue twice.
    Doubled,
    /// A message is there twice after a restart.
    DoubledByRestart,
    /// Messages that are delivered together come in the wrong order.
    Disordered,
    /// What a consumer holds is given to the next one, too.
    GivenTwice,
    /// A message that is not persistent outlives a restart.
    Outlives,
    /// A byte of a message is another one.
    OtherBody,
    /// The end of the log is cut off when the node starts.
    LogCut,
    /// Something in the middle of the log was not written.
    LogHole,
    /// A file of the log is used again though it is still needed.
    LogFileGone,
    /// A segment is deleted though messages in it are still needed.
    SegmentGone,
    /// Messages do not expire.
    ForgottenExpiration,
    /// The queue knows no times to live.
    ForgottenTtl,
    /// The queue knows no limit.
    ForgottenLimit,
    /// All messages have the same priority.
    ForgottenPriority,
    /// What dies is just gone.
    ForgottenDeadLetters,
    /// What a consumer does not want is taken for done with.
    LostRejection,
    /// Duplicates are taken.
    ForgottenDuplicates,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 25] = [
        Self::NoSync,
        Self::EarlyConfirm,
        Self::LostSettle,
        Self::Unmarked,
        Self::LostDeclaration,
        Self::LostDeletion,
        Self::LostBinding,
        Self::LostPurge,
        Self::Doubled,
        Self::DoubledByRestart,
        Self::Disordered,
        Self::GivenTwice,
        Self::Outlives,
        Self::OtherBody,
        Self::LogCut,
        Self::LogHole,
        Self::LogFileGone,
        Self::SegmentGone,
        Self::ForgottenExpiration,
        Self::ForgottenTtl,
        Self::ForgottenLimit,
        Self::ForgottenPriority,
        Self::ForgottenDeadLetters,
        Self::LostRejection,
        Self::ForgottenDuplicates,
    ];

    /// What the node overhears of a message.
    pub fn says(self, said: &mut Said) {
        match self {
            Self::ForgottenExpiration => said.expiration_ms = None,
            Self::ForgottenPriority => said.priority = None,
            Self::Outlives => said.persistent = true,
            _ => {}
        }
    }

    /// What the node makes of a declaration.
    pub fn declares(self, terms: &mut Terms) {
        match self {
            Self::ForgottenTtl => terms.ttl_ms = None,
            Self::ForgottenLimit => terms.max_length = None,
            Self::ForgottenDeadLetters => terms.dead_letters = false,
            Self::ForgottenDuplicates => terms.deduplicates = false,
            _ => {}
        }
    }

    /// Does to the files of a node that does not run what this one would have done wrong with them.
    pub fn spoil(self, files: &FaultyFs) {
        let log = files_below(files, "/data/log", |name| {
            name.ends_with(".wal") && !name.starts_with("spare")
        });
        match self {
            Self::LogCut => wipe(files, log.last(), |length| length.saturating_sub(4_096)..length),
            Self::LogHole => wipe(files, log.last(), |length| length / 2..length / 2 + 512),
            Self::LogFileGone => remove(files, log.first()),
            Self::SegmentGone => remove(files, files_below(files, "/data/queues", |_| true).first()),
            _ => {}
        }
    }
}

/// The files in a directory and those below it that have such a name, in order.
fn files_below(files: &FaultyFs, dir: &str, is_meant: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let named = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        path.starts_with(dir) && name.is_some_and(|name| is_meant(&name))
    };
    files.files().into_iter().filter(named).collect()
}

/// Overwrites a part of what was written to a file with zeros.
fn wipe(files: &FaultyFs, path: Option<&PathBuf>, part: impl FnOnce(usize) -> std::ops::Range<usize>) {
    let Some(path) = path else { return };
    files.corrupt(Path::new(path), |bytes| {
        let written = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        let part = part(written);
        let end = part.end.min(written);
        bytes[part.start.min(end)..end].fill(0);
    });
}

fn remove(files: &FaultyFs, path: Option<&PathBuf>) {
    if let Some(path) = path {
        // A disk without faults removes a file that is there.
        let _ = files.remove(path);
    }
}
