//! What a data directory has lost, in words for an operator: what is damaged or missing, and whose messages that concerns.

use super::replay::Replay;
use crate::node::pager::{segment_owner, stored_place};
use crate::queues::JournalOf;
use model::words::{counted, counted_are};
use std::fmt;
use storage::{Damage, Recovery, Segments, StorageError};

/// So many records of queues may be damaged without the node refusing to start.
const TOLERATED: usize = 1;

/// What is lost of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueLoss {
    pub vhost: String,
    pub name: String,
    /// Messages that are there.
    pub kept: u64,
    /// Records of its journal that are missing between others.
    pub records: u64,
    /// How many messages those brought, at most.
    pub messages: u64,
    /// Pieces of its segments that cannot be read.
    pub pieces: u64,
}

/// What a data directory has lost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses {
    /// What is damaged or missing.
    pub found: Vec<String>,
    /// Whole files are missing, or parts of which nobody knows whose they were.
    pub anybodys: bool,
    /// Records of definitions are missing.
    pub definitions: bool,
    /// Queues that lose something.
    pub queues: Vec<QueueLoss>,
    /// Messages of durable queues that are there.
    pub kept: u64,
    /// Journals that no definition names, or of a kind that this version does not know.
    pub nameless: usize,
}

impl Losses {
    /// Whether there is nothing to tell.
    pub fn is_nothing(&self) -> bool {
        self.found.is_empty() && self.queues.is_empty()
    }

    /// Puts together what replay, recovery and the segments tell. Reads everything that lies in segments.
    pub(super) fn of(replay: &Replay, recovery: &Recovery, segments: &Segments) -> Self {
        let catalogs = |damage: &&Damage| damage.journal == Some(JournalOf::Catalog.id());
        let mut losses = Self {
            found: recovery.damage.iter().map(describe).collect(),
            anybodys: recovery.damage.iter().any(|damage| damage.journal.is_none()),
            definitions: replay.catalog.missing() > 0 || recovery.damage.iter().any(|it| catalogs(&it)),
            ..Self::default()
        };
        let view = replay.catalog.machine.view();
        let mut named = 0;
        for known in view.vhosts().flat_map(|vhost| vhost.queues()) {
            let journal = JournalOf::queue(known).map(JournalOf::id);
            let Some(queue) = journal.and_then(|journal| replay.queues.get(&journal)) else {
                continue;
            };
            named += 1;
            let owner = queue.segments().unwrap_or(segment_owner(known.id));
            let read = |place| segments.read(owner, stored_place(place));
            let places = queue.places().into_iter();
            let pieces = places.filter(|place| read(*place).is_err()).count() as u64;
            let damage = recovery.damage.iter();
            let damaged = damage.filter(|damage| damage.journal == journal);
            let missing = queue.missing();
            let records = missing.records.max(damaged.count() as u64);
            let kept = queue.status().persistent;
            losses.kept += kept;
            if records > 0 || pieces > 0 {
                losses.queues.push(QueueLoss {
                    vhost: known.vhost.to_string(),
                    name: known.name.to_string(),
                    kept,
                    records,
                    messages: missing.messages,
                    pieces,
                });
            }
        }
        losses.nameless = replay.queues.len() - named + replay.unknown.len();
        losses
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for found in &self.found {
            writeln!(f, "found: {found}")?;
        }
        if self.anybodys {
            writeln!(
                f,
                "lost: whatever only the missing parts knew, of any queue and of the definitions"
            )?;
        }
        if self.definitions {
            writeln!(f, "lost: some definitions (users, queues, bindings)")?;
        }
        for queue in &self.queues {
            writeln!(f, "lost: {queue}")?;
        }
        if self.nameless > 0 {
            writeln!(
                f,
                "set aside: {} that no definition names",
                counted(self.nameless as u64, "journal")
            )?;
        }
        write!(f, "kept: {}", counted(self.kept, "persistent message"))
    }
}

impl fmt::Display for QueueLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue '{}' in vhost '{}': ", self.name, self.vhost)?;
        if self.records > 0 {
            write!(f, "{} of the log", counted(self.records, "record"))?;
            if self.messages > 0 {
                write!(f, " with up to {}", counted(self.messages, "message"))?;
            }
        }
        if self.pieces > 0 {
            let and = if self.records > 0 { ", " } else { "" };
            write!(f, "{and}{} of its segments", counted(self.pieces, "piece"))?;
        }
        write!(f, "; {} kept", counted_are(self.kept, "message"))
    }
}

/// One piece of damage as a sentence.
pub(super) fn describe(damage: &Damage) -> String {
    let file = damage.file.display();
    let Damage { offset, length, .. } = damage;
    let bytes = counted(*length, "byte");
    match damage.journal {
        None if *length == 0 => format!("{file}: {}", damage.what),
        None => format!("{file} is damaged at byte {offset} ({bytes}): {}", damage.what),
        Some(journal) if journal == JournalOf::Catalog.id() => format!(
            "{file} is damaged at byte {offset} ({bytes} of the definitions): {}",
            damage.what
        ),
        Some(journal) => format!(
            "{file} is damaged at byte {offset} ({bytes} of {journal}): {}",
            damage.what
        ),
    }
}

/// Whether the node may start with this damage: one record of one queue is skipped and told of; for more, an operator is asked.
///
/// # Errors
/// What is damaged, for the operator.
pub(super) fn accept(replay: &Replay, recovery: &Recovery) -> Result<(), StorageError> {
    let damage = &recovery.damage;
    let refused = |what: String| Err(StorageError::Refused { what });
    if let Some(damage) = damage
        .iter()
        .find(|it| it.journal == Some(JournalOf::Catalog.id()))
    {
        return refused(format!("definitions are lost: {}", describe(damage)));
    }
    let [damage] = damage.as_slice() else {
        return match damage.first() {
            Some(first) if damage.len() > TOLERATED => refused(format!(
                "{} places of the log are damaged; the first: {}",
                damage.len(),
                describe(first)
            )),
            _ => Ok(()),
        };
    };
    let queue = damage.journal.and_then(|journal| replay.queues.get(&journal));
    // The first record of what a journal has may be the list of all that it holds.
    match queue.and_then(|queue| queue.first()) {
        Some((index, position)) if index > 2 && damage.position < position => refused(format!(
            "the damaged record may be the list of all messages that a queue holds: {}",
            describe(damage)
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_of_one_is_told_in_the_singular() {
        let queue = |count| QueueLoss {
            vhost: "/".into(),
            name: "orders".into(),
            kept: count,
            records: count,
            messages: count,
            pieces: count,
        };
        let of = "queue 'orders' in vhost '/': ";
        assert_eq!(
            queue(1).to_string(),
            format!(
                "{of}1 record of the log with up to 1 message, 1 piece of its segments; 1 message is kept"
            )
        );
        assert_eq!(
            queue(2).to_string(),
            format!(
                "{of}2 records of the log with up to 2 messages, 2 pieces of its segments; 2 messages are kept"
            )
        );
    }
}
