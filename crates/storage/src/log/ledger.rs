//! Which journals still need which file. One small entry per journal that needs anything; none for the others.

use super::{JournalId, Kind, Position};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Journals number themselves from a counter, so a multiplication spreads them well enough, and a lookup per record
/// stays cheap.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// The stretch of the log that a journal needs.
#[derive(Debug, Clone, Copy)]
struct Need {
    /// It needs nothing before this.
    first: Position,
    /// Its last record so far.
    last: Position,
}

/// How many journals have their `first` in a file.
#[derive(Debug, Clone, Copy)]
struct FileNeed {
    base: Position,
    journals: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    journals: HashMap<JournalId, Need, BuildHasherDefault<NumberHasher>>,
    files: VecDeque<FileNeed>,
}

impl Ledger {
    /// A new file begins at `base`, behind all others.
    pub(crate) fn add_file(&mut self, base: Position) {
        self.files.push_back(FileNeed { base, journals: 0 });
    }

    /// How many of the oldest files nobody needs; the newest one does not count.
    pub(crate) fn free_files(&self) -> usize {
        let older = self.files.len().saturating_sub(1);
        let free = self
            .files
            .iter()
            .take(older)
            .take_while(|file| file.journals == 0);
        free.count()
    }

    /// The oldest file is gone.
    pub(crate) fn drop_oldest(&mut self) {
        self.files.pop_front();
    }

    /// A record was written.
    pub(crate) fn record(&mut self, journal: JournalId, position: Position) {
        let need = self.journals.entry(journal).or_insert_with(|| {
            if let Some(file) = file_of(&mut self.files, position) {
                file.journals += 1;
            }
            Need {
                first: position,
                last: position,
            }
        });
        need.last = position;
        if journal.kind == Kind::HARD_STATE {
            // The latest counts, and nothing before it.
            self.release(journal, position);
        }
    }

    /// The journal needs nothing before `before` any more.
    pub(crate) fn release(&mut self, journal: JournalId, before: Position) {
        let Some(need) = self.journals.get_mut(&journal) else {
            return;
        };
        let old = need.first;
        if before <= old {
            return;
        }
        let gone = need.last < before;
        need.first = before;
        if gone {
            self.journals.remove(&journal);
        } else if let Some(file) = file_of(&mut self.files, before) {
            file.journals += 1;
        }
        if let Some(file) = file_of(&mut self.files, old) {
            file.journals -= 1;
        }
    }

    /// Everybody who needs the oldest file, in order of their numbers.
    pub(crate) fn holders_of_oldest(&self) -> Vec<JournalId> {
        let Some(next) = self.files.get(1) else {
            return Vec::new();
        };
        let mut holders: Vec<JournalId> = self
            .journals
            .iter()
            .filter(|(_, need)| need.first < next.base)
            .map(|(journal, _)| *journal)
            .collect();
        holders.sort_unstable();
        holders
    }

    /// How many journals need anything.
    #[cfg(test)]
    pub(crate) fn journals(&self) -> usize {
        self.journals.len()
    }
}

/// The file that holds `position`; the oldest for what lies before it.
fn file_of(files: &mut VecDeque<FileNeed>, position: Position) -> Option<&mut FileNeed> {
    let after = files.partition_point(|file| file.base <= position);
    files.get_mut(after.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(number: u64) -> JournalId {
        JournalId::new(Kind::QUEUE, number)
    }

    #[test]
    fn a_file_is_free_once_every_journal_has_moved_on() {
        let mut ledger = Ledger::default();
        ledger.add_file(Position(0));
        ledger.record(journal(1), Position(32));
        ledger.record(journal(2), Position(60));
        ledger.add_file(Position(100));
        assert_eq!(ledger.holders_of_oldest(), [journal(1), journal(2)]);
        ledger.release(journal(1), Position(61));
        assert_eq!(ledger.holders_of_oldest(), [journal(2)]);
        assert_eq!(ledger.free_files(), 0);
        ledger.record(journal(2), Position(132));
        ledger.release(journal(2), Position(132));
        assert_eq!(ledger.free_files(), 1);
        assert_eq!(ledger.journals(), 1);
        ledger.drop_oldest();
        ledger.release(journal(2), Position(133));
        assert_eq!(ledger.journals(), 0);
        assert_eq!(ledger.free_files(), 0, "the newest file stays");
    }

    #[test]
    fn of_promises_only_the_latest_is_needed() {
        let mut ledger = Ledger::default();
        let votes = JournalId::new(Kind::HARD_STATE, 3);
        ledger.add_file(Position(0));
        ledger.record(votes, Position(32));
        ledger.record(votes, Position(60));
        ledger.add_file(Position(100));
        assert_eq!(ledger.free_files(), 0);
        ledger.record(votes, Position(132));
        assert_eq!(ledger.free_files(), 1);
        assert_eq!(ledger.journals(), 1);
    }

    #[test]
    fn releasing_backwards_or_for_strangers_changes_nothing() {
        let mut ledger = Ledger::default();
        ledger.add_file(Position(0));
        ledger.record(journal(1), Position(32));
        ledger.release(journal(1), Position(10));
        ledger.release(journal(9), Position(1000));
        ledger.add_file(Position(100));
        assert_eq!(ledger.free_files(), 0);
        assert_eq!(ledger.journals(), 1);
    }
}
