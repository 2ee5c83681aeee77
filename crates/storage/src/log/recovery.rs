//! Opening a log: what is on disk, what of it is whole, what a crash cut off, what is damaged.
//!
//! Two passes. The first reads everything and learns what is damaged and which journals released what; nothing is
//! replayed before it is known that the log may be opened. The second replays.

use super::carry::{self, CARRIED};
use super::chain::{FoundFiles, LogFile, file_name, is_leftover, read_header, sequence_of};
use super::ends::{self, Ends, EndsFile};
use super::format::FILE_HEADER;
use super::groups::GroupIndex;
use super::ledger::Ledger;
use super::mark::{MARKS, Mark, Released};
use super::walk::{End, Found, walk};
use super::{JournalId, Kind, LogOptions, Position};
use crate::error::StorageError;
use crate::file_system::{Access, FileSystem, read_full_at};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

/// What opening a log found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Records replayed.
    pub records: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Where a write was cut off that a crash had interrupted. Nothing behind it was ever reported durable.
    pub cut: Option<Cut>,
    /// The log had been closed in good order.
    pub clean: bool,
    /// Where the log ended, and goes on.
    pub end: Position,
    /// What was durable once and cannot be read any more. Everything else is replayed, what lies behind the damage too: whoever
    /// owns a damaged journal must be able to do without some of its records.
    pub damage: Vec<Damage>,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            records: 0,
            bytes: 0,
            cut: None,
            clean: false,
            end: Position(0),
            damage: Vec::new(),
        }
    }
}

/// The end of an interrupted write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    pub file: PathBuf,
    pub offset: u64,
}

/// A hole in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    pub file: PathBuf,
    pub offset: u64,
    /// Bytes that cannot be read.
    pub length: u64,
    /// Position of the first of them.
    pub position: Position,
    /// Whose record it was; `None` if not even that is readable, so that it may be anybody's.
    pub journal: Option<JournalId>,
    pub what: String,
}

impl Damage {
    /// A file that tells of all journals is lost.
    fn of_all(file: PathBuf, error: &StorageError) -> Self {
        Self {
            file,
            offset: 0,
            length: 0,
            position: Position(0),
            journal: None,
            what: error.to_string(),
        }
    }

    /// The same as the error of whoever needs what was there.
    pub fn error(&self) -> StorageError {
        StorageError::Corrupt {
            file: self.file.clone(),
            offset: self.offset,
            journal: self.journal,
            what: self.what.clone(),
        }
    }
}

/// What recovery hands to the log.
pub(crate) struct Recovered {
    pub found: FoundFiles,
    /// `None` in a new log, and in one whose list is lost.
    pub ends: Option<(EndsFile, Ends)>,
    /// Files that cannot be used.
    pub aside: Vec<PathBuf>,
    /// Files that a crash left behind and nobody needs.
    pub leftovers: Vec<PathBuf>,
    pub ledger: Ledger,
    pub groups: GroupIndex,
    /// Where the log goes on.
    pub end: u64,
    /// What is before this position is known to have been synced.
    pub synced: u64,
    pub report: Recovery,
}

/// What the first pass over the files learns.
#[derive(Default)]
struct FirstPass {
    released: Released,
    damage: Vec<Damage>,
    ends: Vec<End>,
    aside: Vec<PathBuf>,
}

/// Reads the log in `dir` and replays it. Changes nothing.
pub(crate) fn recover(
    fs: &dyn FileSystem,
    dir: &Path,
    options: &LogOptions,
    replay: &mut dyn FnMut(JournalId, Position, &[u8]),
) -> Result<Recovered, StorageError> {
    let mut first_pass = FirstPass::default();
    let mut listing = list(fs, dir, options, &mut first_pass)?;
    let files = open_files(fs, &listing, options, &mut first_pass)?;
    listing.check(dir, &files, options, &mut first_pass)?;
    let mut chain = FilesRead {
        files,
        ends: listing.ends.as_ref().map(|(_, ends)| *ends),
        buffer: Vec::new(),
    };
    for at in 0..chain.files.len() {
        chain.first_pass(at, &mut first_pass)?;
    }
    first_pass.damage.retain(|damage| {
        damage
            .journal
            .is_none_or(|j| !first_pass.released.covers(j, damage.position))
    });
    if let Some(damage) = first_pass
        .damage
        .iter()
        .find(|damage| damage.journal.is_none_or(|j| j.kind == Kind::LOG))
        && !options.quarantine
    {
        return Err(damage.error());
    }
    let (mut ledger, mut groups) = (Ledger::default(), GroupIndex::default());
    let mut report = Recovery::default();
    let belonging = chain.belonging(&first_pass);
    for at in 0..chain.files.len() {
        if at < belonging {
            ledger.add_file(Position(chain.files[at].header.base));
        }
        chain.replay(
            at,
            &first_pass.released,
            &mut ledger,
            &mut groups,
            &mut report,
            replay,
        )?;
    }
    let end = chain.finish(&first_pass, &mut report);
    groups.part(Position(end));
    // The empty block at the end is not enough: the sync of the process that wrote it may have failed. What says that
    // the log was closed is written after that sync.
    let closed = chain.ends.is_some_and(|ends| ends.clean && ends.end == end);
    let synced = match closed {
        true => end,
        false => first_pass.ends.last().map_or(end, |last| last.synced),
    };
    report.damage = first_pass.damage;
    report.end = Position(end);
    for unnamed in chain.files.split_off(belonging) {
        listing.sequence = listing.sequence.min(unnamed.header.sequence - 1);
        listing.leftovers.push(unnamed.path);
    }
    Ok(Recovered {
        found: FoundFiles {
            files: chain.files,
            sequence: listing.sequence,
        },
        ends: listing.ends.take(),
        aside: first_pass.aside,
        leftovers: listing.leftovers,
        ledger,
        groups,
        end,
        synced,
        report,
    })
}

/// The ends of a chain that nobody has written down yet.
pub(crate) fn ends_of(found: &FoundFiles, end: u64) -> Ends {
    let oldest = found.files.front().map(|file| file.header.sequence);
    Ends {
        oldest: oldest.unwrap_or(found.sequence + 1),
        newest: found.sequence,
        end,
        clean: false,
    }
}

/// What lies in the log's directory.
struct Listing {
    /// The log's files by sequence number.
    files: Vec<(u64, PathBuf)>,
    leftovers: Vec<PathBuf>,
    ends: Option<(EndsFile, Ends)>,
    /// The highest sequence number ever used.
    sequence: u64,
}

fn list(
    fs: &dyn FileSystem,
    dir: &Path,
    options: &LogOptions,
    first_pass: &mut FirstPass,
) -> Result<Listing, StorageError> {
    let names = match fs.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        names => names.map_err(|e| StorageError::from_io("list", dir, e))?,
    };
    let ends = match EndsFile::open(fs, dir) {
        Err(error @ StorageError::Corrupt { .. }) if options.quarantine => {
            first_pass
                .damage
                .push(Damage::of_all(dir.join(ends::NAME), &error));
            None
        }
        ends => ends?,
    };
    let known = ends.as_ref().map(|(_, ends)| *ends);
    let mut files = Vec::new();
    let mut leftovers = Vec::new();
    for name in names {
        let path = dir.join(&name);
        match sequence_of(&name) {
            // The crash came after it was taken out of the log and before it went.
            Some(sequence) if known.is_some_and(|ends| sequence < ends.oldest) => leftovers.push(path),
            Some(sequence) => files.push((sequence, path)),
            None if is_leftover(&name) => leftovers.push(path),
            None => {}
        }
    }
    files.sort_unstable();
    let highest = files.last().map_or(0, |(sequence, _)| *sequence);
    Ok(Listing {
        files,
        leftovers,
        ends,
        sequence: highest.max(known.map_or(0, |ends| ends.newest)),
    })
}

impl Listing {
    /// Misses files that belong to the log.
    fn check(
        &self,
        dir: &Path,
        files: &VecDeque<LogFile>,
        options: &LogOptions,
        first_pass: &mut FirstPass,
    ) -> Result<(), StorageError> {
        let mut complaints = Vec::new();
        let mut expected = match &self.ends {
            Some((_, ends)) => ends.oldest,
            None => self.files.first().map_or(1, |(sequence, _)| *sequence),
        };
        for (sequence, _) in &self.files {
            if *sequence > expected {
                complaints.push(gap(expected, *sequence - 1, "before that one"));
            }
            expected = sequence + 1;
        }
        if expected <= self.sequence {
            complaints.push(gap(expected, self.sequence, "the newest of all"));
        }
        if self.files.is_empty() && complaints.is_empty() && options.must_exist {
            complaints.push("it has no file at all, but messages were stored beside it".to_owned());
        }
        if self.ends.is_none() && !files.is_empty() && first_pass.damage.is_empty() {
            complaints.push(format!(
                "the file '{}' is missing, which says what belongs to the log",
                ends::NAME
            ));
        }
        let Some(what) = complaints.first() else {
            return Ok(());
        };
        if !options.quarantine {
            return Err(StorageError::Incomplete {
                dir: dir.to_owned(),
                what: what.clone(),
            });
        }
        first_pass
            .damage
            .extend(complaints.into_iter().map(|what| Damage {
                file: dir.to_owned(),
                offset: 0,
                length: 0,
                position: Position(0),
                journal: None,
                what,
            }));
        Ok(())
    }
}

/// Says which files are missing.
fn gap(first: u64, last: u64, which: &str) -> String {
    match first == last {
        true => format!("{} is missing ({which})", file_name(first)),
        false => format!(
            "{} to {} are missing ({which})",
            file_name(first),
            file_name(last)
        ),
    }
}

/// Opens every file and checks that the chain makes sense.
fn open_files(
    fs: &dyn FileSystem,
    listing: &Listing,
    options: &LogOptions,
    first_pass: &mut FirstPass,
) -> Result<VecDeque<LogFile>, StorageError> {
    let mut files: VecDeque<LogFile> = VecDeque::new();
    for (sequence, path) in &listing.files {
        let io = |action| move |e| StorageError::from_io(action, path, e);
        let file = fs.open(path, Access::Write).map_err(io("open"))?;
        let size = file.len().map_err(io("ask the length of"))?;
        let header = read_header(file.as_ref(), path).and_then(|header| {
            let previous = files.back().map_or(0, |file| file.header.base);
            if header.sequence == *sequence && header.base >= previous {
                Ok(header)
            } else {
                let what = format!("this is file {}, under a wrong name", file_name(header.sequence));
                Err(StorageError::corrupt(path, 0, what))
            }
        });
        match header {
            Ok(header) => files.push_back(LogFile {
                path: path.clone(),
                header,
                file,
                size,
            }),
            Err(StorageError::Corrupt {
                file, offset, what, ..
            }) if options.quarantine => {
                first_pass.aside.push(path.clone());
                let position = Position(files.back().map_or(0, |file| file.header.base));
                first_pass.damage.push(Damage {
                    file,
                    offset,
                    length: size,
                    position,
                    journal: None,
                    what,
                });
            }
            Err(error) => return Err(error),
        }
    }
    if let Some(last) = files.back().filter(|last| last.size < last.header.size) {
        // It got its whole size before it got its name, so this is no crash's doing.
        first_pass.damage.push(Damage {
            file: last.path.clone(),
            offset: last.size,
            length: last.header.size - last.size,
            position: Position(last.header.base + last.size.saturating_sub(FILE_HEADER as u64)),
            journal: None,
            what: format!("it was cut short, its size was {} bytes", last.header.size),
        });
    }
    Ok(files)
}

/// Renames a file that cannot be used, so that the next start does not stumble over it and nobody deletes it.
pub(crate) fn set_aside(fs: &dyn FileSystem, path: &Path) -> Result<(), StorageError> {
    let aside = path.with_extension("wal.damaged");
    fs.rename(path, &aside)
        .map_err(|e| StorageError::from_io("rename", path, e))
}

fn load(file: &LogFile, buffer: &mut Vec<u8>) -> Result<(), StorageError> {
    let size = usize::try_from(file.size).unwrap_or(usize::MAX);
    buffer.resize(size, 0);
    let read = read_full_at(file.file.as_ref(), buffer, 0)
        .map_err(|e| StorageError::from_io("read", &file.path, e))?;
    buffer.truncate(read);
    Ok(())
}

/// The files while they are read.
struct FilesRead {
    files: VecDeque<LogFile>,
    ends: Option<Ends>,
    buffer: Vec<u8>,
}

impl FilesRead {
    /// Where file `at` ended, if that is known: where the next one took over, or where the log was closed.
    fn until(&self, at: usize) -> Option<u64> {
        let header = &self.files.get(at)?.header;
        let next = self.files.get(at + 1).map(|file| &file.header);
        let closed = self
            .ends
            .filter(|ends| ends.newest == header.sequence && ends.clean);
        match next {
            Some(next) => (next.sequence == header.sequence + 1).then_some(next.base),
            None => closed.map(|ends| ends.end),
        }
    }

    fn first_pass(&mut self, at: usize, first_pass: &mut FirstPass) -> Result<(), StorageError> {
        let until = self.until(at);
        let file = &self.files[at];
        load(file, &mut self.buffer)?;
        let FirstPass {
            released,
            damage,
            ends,
            ..
        } = first_pass;
        let end = walk(&self.buffer, &file.header, until, &mut |found| match found {
            Found::Record {
                journal: MARKS,
                position,
                payload,
            } => {
                if let Some(mark) = Mark::decode(payload, position) {
                    released.add(mark);
                }
            }
            Found::Record { .. } => {}
            Found::Damage {
                offset,
                resume,
                journal,
                what,
            } => damage.push(Damage {
                file: file.path.clone(),
                offset: offset as u64,
                length: (resume - offset) as u64,
                position: Position(file.header.base + (offset - FILE_HEADER) as u64),
                journal,
                what: what.to_owned(),
            }),
        });
        ends.push(end);
        Ok(())
    }

    fn replay(
        &mut self,
        at: usize,
        released: &Released,
        ledger: &mut Ledger,
        groups: &mut GroupIndex,
        report: &mut Recovery,
        replay: &mut dyn FnMut(JournalId, Position, &[u8]),
    ) -> Result<(), StorageError> {
        let until = self.until(at);
        let file = &self.files[at];
        load(file, &mut self.buffer)?;
        groups.part(Position(file.header.base));
        walk(&self.buffer, &file.header, until, &mut |found| {
            if let Found::Damage { resume, .. } = found {
                groups.part(Position(file.header.base + (resume - FILE_HEADER) as u64));
            }
            let (journal, position, payload) = match found {
                Found::Record {
                    journal,
                    position,
                    payload,
                } => (journal, position, payload),
                Found::Damage {
                    offset,
                    journal: Some(journal),
                    ..
                } => {
                    // Damage pins its file until the journal is released: a second start must not find it healed.
                    let position = Position(file.header.base + (offset - FILE_HEADER) as u64);
                    if !released.covers(journal, position) {
                        ledger.record(journal, position);
                    }
                    return;
                }
                Found::Damage { .. } => return,
            };
            let mut show = |journal, payload: &[u8]| {
                ledger.record(journal, position);
                report.records += 1;
                report.bytes += payload.len() as u64;
                replay(journal, position, payload);
            };
            match journal {
                MARKS => {}
                CARRIED => {
                    let group = carry::group_of(payload).filter(|group| !released.covers(*group, position));
                    let Some(group) = group else { return };
                    groups.carried(group.number, position, carry::entries(payload));
                    carry::entries(payload).for_each(|entry| show(group, entry));
                }
                _ if released.covers(journal, position) => {}
                _ => {
                    groups.note(journal, position, payload);
                    show(journal, payload);
                }
            }
        });
        Ok(())
    }

    /// How many files belong to the log. The ones behind them were being made when the process ended: the list does not
    /// name them, and nothing was written to them. Their names may never become durable, whatever is synced: a sync of
    /// the directory may have failed.
    fn belonging(&self, first_pass: &FirstPass) -> usize {
        let Some(ends) = self.ends else {
            return self.files.len();
        };
        let read = self.files.iter().zip(&first_pass.ends).rev();
        let unnamed = read.take_while(|(file, end)| {
            file.header.sequence > ends.newest && end.offset == FILE_HEADER && !end.torn
        });
        self.files.len() - unnamed.count()
    }

    /// Learns where the log ends.
    fn finish(&self, first_pass: &FirstPass, report: &mut Recovery) -> u64 {
        let known = self.ends.map_or(0, |ends| ends.end);
        let (Some(last), Some(end)) = (self.files.back(), first_pass.ends.last()) else {
            return known;
        };
        report.clean = end.clean;
        if end.torn {
            report.cut = Some(Cut {
                file: last.path.clone(),
                offset: end.offset as u64,
            });
        }
        known.max(last.header.base + (end.offset - FILE_HEADER) as u64)
    }
}
