//! Opening a log: what is on disk, what of it is whole, what a crash cut off, what is damaged.
//!
//! Two passes. The first reads everything and learns what is damaged and which journals released what; nothing is
//! replayed before it is known that the log may be opened. The second replays.

use super::chain::{LogFile, file_name, is_leftover, read_header, sequence_of};
use super::format::FILE_HEADER;
use super::ledger::Ledger;
use super::mark::{MARKS, Mark, Released};
use super::walk::{End, Found, walk};
use super::{JournalId, LogOptions, Position};
use crate::error::StorageError;
use crate::file_system::{Access, FileSystem, create_dir_durably, read_full_at};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

/// What opening a log found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Records replayed.
    pub records: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Where a write was cut off that a crash had interrupted. Nothing behind it was ever reported durable.
    pub cut: Option<Cut>,
    /// The log had been closed in good order.
    pub clean: bool,
    /// What was durable once and cannot be read any more. A damaged journal's records are replayed up to the damage and
    /// not behind it: whoever owns it must set it aside, and not go on as if nothing had happened.
    pub damage: Vec<Damage>,
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
    fn error(&self) -> StorageError {
        StorageError::Corrupt {
            file: self.file.clone(),
            offset: self.offset,
            journal: self.journal.map(|journal| journal.0),
            what: self.what.clone(),
        }
    }
}

/// What recovery hands to the log.
pub(crate) struct Recovered {
    pub files: VecDeque<LogFile>,
    pub ledger: Ledger,
    /// Highest sequence number ever seen.
    pub sequence: u64,
    /// Where the log goes on.
    pub end: u64,
    pub report: Recovery,
}

/// What the first pass learns.
#[derive(Default)]
struct Survey {
    released: Released,
    damage: Vec<Damage>,
    ends: Vec<End>,
}

/// Reads the log in `dir` and replays it.
pub(crate) fn recover(
    fs: &dyn FileSystem,
    dir: &Path,
    options: &LogOptions,
    replay: &mut dyn FnMut(JournalId, Position, &[u8]),
) -> Result<Recovered, StorageError> {
    let mut listing = list(fs, dir)?;
    let mut survey = Survey::default();
    let mut files = open_files(fs, &mut listing, options, &mut survey)?;
    let mut buffer = Vec::new();
    for at in 0..files.len() {
        survey_file(&files, at, &mut buffer, &mut survey)?;
    }
    survey.damage.retain(|damage| {
        damage
            .journal
            .is_none_or(|j| !survey.released.covers(j, damage.position))
    });
    if let Some(damage) = survey
        .damage
        .iter()
        .find(|damage| damage.journal.is_none_or(|j| j == MARKS))
        && !options.quarantine
    {
        return Err(damage.error());
    }
    let mut ledger = Ledger::default();
    let mut report = Recovery::default();
    let holes = first_holes(&survey.damage);
    for at in 0..files.len() {
        ledger.add_file(Position(files[at].header.base));
        replay_file(
            &files,
            at,
            &mut buffer,
            &survey.released,
            &holes,
            &mut ledger,
            &mut report,
            replay,
        )?;
    }
    let end = finish(&mut files, &survey, &mut report)?;
    report.damage = survey.damage;
    Ok(Recovered {
        files,
        ledger,
        sequence: listing.sequence,
        end,
        report,
    })
}

/// The log's files by sequence number.
struct Listing {
    files: Vec<(u64, PathBuf)>,
    sequence: u64,
}

fn list(fs: &dyn FileSystem, dir: &Path) -> Result<Listing, StorageError> {
    create_dir_durably(fs, dir)?;
    let names = fs.list(dir).map_err(|e| StorageError::from_io("list", dir, e))?;
    let mut files = Vec::new();
    for name in names {
        let path = dir.join(&name);
        if is_leftover(&name) {
            fs.remove(&path)
                .map_err(|e| StorageError::from_io("remove", &path, e))?;
        } else if let Some(sequence) = sequence_of(&name) {
            files.push((sequence, path));
        }
    }
    files.sort_unstable();
    let sequence = files.last().map_or(0, |(sequence, _)| *sequence);
    Ok(Listing { files, sequence })
}

/// Opens every file and checks that the chain makes sense.
fn open_files(
    fs: &dyn FileSystem,
    listing: &mut Listing,
    options: &LogOptions,
    survey: &mut Survey,
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
                set_aside(fs, path)?;
                let position = Position(files.back().map_or(0, |file| file.header.base));
                survey.damage.push(Damage {
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
    Ok(files)
}

/// Renames a file that cannot be used, so that the next start does not stumble over it and nobody deletes it.
fn set_aside(fs: &dyn FileSystem, path: &Path) -> Result<(), StorageError> {
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

fn next_base(files: &VecDeque<LogFile>, at: usize) -> Option<u64> {
    files.get(at + 1).map(|file| file.header.base)
}

fn survey_file(
    files: &VecDeque<LogFile>,
    at: usize,
    buffer: &mut Vec<u8>,
    survey: &mut Survey,
) -> Result<(), StorageError> {
    let file = &files[at];
    load(file, buffer)?;
    let Survey {
        released,
        damage,
        ends,
    } = survey;
    let end = walk(
        buffer,
        &file.header,
        next_base(files, at),
        &mut |found| match found {
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
        },
    );
    ends.push(end);
    Ok(())
}

/// For each damaged journal, where its first hole is.
fn first_holes(damage: &[Damage]) -> HashMap<JournalId, Position> {
    let mut holes = HashMap::new();
    for damage in damage {
        if let Some(journal) = damage.journal {
            let first = holes.entry(journal).or_insert(damage.position);
            *first = damage.position.min(*first);
        }
    }
    holes
}

#[expect(
    clippy::too_many_arguments,
    reason = "the second pass uses everything the first one learned"
)]
fn replay_file(
    files: &VecDeque<LogFile>,
    at: usize,
    buffer: &mut Vec<u8>,
    released: &Released,
    holes: &HashMap<JournalId, Position>,
    ledger: &mut Ledger,
    report: &mut Recovery,
    replay: &mut dyn FnMut(JournalId, Position, &[u8]),
) -> Result<(), StorageError> {
    let file = &files[at];
    load(file, buffer)?;
    walk(buffer, &file.header, next_base(files, at), &mut |found| {
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
        if journal == MARKS || released.covers(journal, position) {
            return;
        }
        ledger.record(journal, position);
        if holes.get(&journal).is_none_or(|hole| position < *hole) {
            report.records += 1;
            report.bytes += payload.len() as u64;
            replay(journal, position, payload);
        }
    });
    Ok(())
}

/// Learns where the log ends.
fn finish(
    files: &mut VecDeque<LogFile>,
    survey: &Survey,
    report: &mut Recovery,
) -> Result<u64, StorageError> {
    let (Some(last), Some(end)) = (files.back_mut(), survey.ends.last()) else {
        return Ok(0);
    };
    report.clean = end.clean;
    if end.torn {
        report.cut = Some(Cut {
            file: last.path.clone(),
            offset: end.offset as u64,
        });
    }
    Ok(last.header.base + (end.offset - FILE_HEADER) as u64)
}
