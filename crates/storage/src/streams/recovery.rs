//! What is there after a start: which files, and where the last one ends.

use super::damage::{StreamDamage, TornEnd};
use super::frame::FrameHead;
use super::part::{Extent, HEADER, Part, rows_in};
use crate::error::StorageError;
use crate::file_system::{Access, File, FileSystem, read_full_at, write_all_at};
use std::path::Path;

/// What a start has found out.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What is damaged in the newest file. What is in others is found when it is read.
    pub(super) damage: Vec<StreamDamage>,
    /// A torn end that was cut off.
    pub(super) torn: Option<TornEnd>,
}

/// The parts of a stream, in order, each with what it has. The last one is cut where it is torn.
pub(super) fn parts(
    fs: &dyn FileSystem,
    dir: &Path,
    owner: u64,
    found: &mut Found,
) -> Result<Vec<Part>, StorageError> {
    let names = fs.list(dir).map_err(|e| StorageError::from_io("list", dir, e))?;
    let firsts = names.iter().filter_map(|name| Part::first_of(name));
    let mut parts: Vec<Part> = firsts.map(|first| Part::new(dir, owner, first)).collect();
    // A file whose beginning was not synced: nothing in it was promised. It was made once the one before was synced.
    while let Some(last) = parts.pop() {
        if newest(fs, &last, found)? {
            parts.push(last);
            break;
        }
        remove(fs, &last)?;
        fs.sync_dir(dir)
            .map_err(|e| StorageError::from_io("sync the directory", dir, e))?;
    }
    for at in (0..parts.len().saturating_sub(1)).rev() {
        closed(fs, &parts[at], &parts[at + 1])?;
    }
    if !parts.is_empty() {
        // What was found is built upon, so it has to stay, its name included.
        fs.sync_dir(dir)
            .map_err(|e| StorageError::from_io("sync the directory", dir, e))?;
    }
    for name in names {
        let first = name.strip_suffix(".index").map(|name| format!("{name}.chunks"));
        let is_orphan = first.is_some_and(|name| !parts.iter().any(|part| part.path.ends_with(&name)));
        if is_orphan || name.ends_with(".draft") {
            // It stayed when its file was removed, or never got its name. If it stays again, it does no harm.
            let _ = fs.remove(&dir.join(name));
        }
    }
    Ok(parts)
}

/// Removes a part's files, as far as they are there.
pub(super) fn remove(fs: &dyn FileSystem, part: &Part) -> Result<(), StorageError> {
    for path in [&part.path, &part.index_path()] {
        match fs.remove(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StorageError::from_io("remove", path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Finds out where the newest part ends. False if there is nothing in it.
fn newest(fs: &dyn FileSystem, part: &Part, found: &mut Found) -> Result<bool, StorageError> {
    let file = part.open(fs, Access::Write)?;
    part.has_header(file.as_ref())?;
    let length = part.io("ask the length of", file.len())?;
    let row = part.row_before(fs, file.as_ref(), rows_in(fs, part), |row| {
        (HEADER as u64..length).contains(&row.position)
    })?;
    let rows = row.map_or(0, |(at, _, _)| at + 1);
    // What was synced when that frame was written is as it was, but for damage. How far that goes in numbers is seen by the
    // frames before it.
    let vouched = row.map_or(HEADER as u64, |(_, row, head)| {
        head.synced.clamp(HEADER as u64, row.position)
    });
    let marked = part.marked(fs)?;
    let trusted = marked.map_or(vouched, |(position, _)| position.max(vouched));
    let before = part.row_before(fs, file.as_ref(), rows, |row| row.position < trusted)?;
    let mut walk = Walk {
        part,
        file: file.as_ref(),
        length,
        extent: Extent {
            end: before.map_or(HEADER as u64, |(_, row, _)| row.position),
            next: before.map_or(part.first, |(_, row, _)| row.number),
            last_ms: 0,
        },
        synced: trusted,
        damage: Vec::new(),
    };
    walk.past(trusted, marked, false)?;
    let is_torn = walk.tail()?;
    let Walk {
        extent,
        synced,
        damage,
        ..
    } = walk;
    let end = extent.end;
    if is_torn {
        found.torn = Some(TornEnd {
            file: part.path.clone(),
            offset: end,
        });
    }
    if end == HEADER as u64 {
        return Ok(false);
    }
    found.damage = damage;
    if is_torn {
        // What is left of torn frames could look like whole ones once others stand in front of them.
        part.io("cut", file.set_len(end))?;
    }
    part.io("write", write_all_at(file.as_ref(), &part.header(), 0))?;
    write_again(part, file.as_ref(), synced, end)?;
    part.io("sync", file.sync_data())?;
    part.publish(extent);
    // Rows of frames that were torn off are written over.
    let kept = part.row_before(fs, file.as_ref(), rows, |row| row.position < end)?;
    part.set_rows(kept.map_or(0, |(at, _, _)| at + 1));
    Ok(true)
}

/// Walking the newest file. What does not read as it was written is damage if it was safe, and is passed over; otherwise it is
/// what a crash has left of a write, and the file ends there. It was safe if a frame behind it says so, or a mark. That whole
/// frames come behind it says nothing: those of one write reach the disk in any order, and none of them was confirmed.
struct Walk<'a> {
    part: &'a Part,
    file: &'a dyn File,
    length: u64,
    /// What is in the file up to where it was walked.
    extent: Extent,
    /// What is below was synced.
    synced: u64,
    damage: Vec<StreamDamage>,
}

impl Walk<'_> {
    /// Goes on until `end`, or the first frame that is none or does not follow. With `whole` also the bytes are checked.
    fn frames(&mut self, end: u64, whole: bool) -> Result<(), StorageError> {
        let (extent, synced) = (&mut self.extent, &mut self.synced);
        let visit = |position: u64, head: &FrameHead| {
            let follows = head.first == extent.next;
            if follows {
                (extent.next, extent.last_ms) = (head.next(), head.time_ms);
                *synced = (*synced).max(head.synced.min(position));
            }
            follows
        };
        let from = extent.end;
        let end = self.part.walk(self.file, from, end, whole, visit)?;
        self.extent.end = end;
        Ok(())
    }

    /// Goes on until `trusted`, up to which all was safe, past what is damaged.
    fn past(&mut self, trusted: u64, marked: Option<(u64, u64)>, whole: bool) -> Result<(), StorageError> {
        loop {
            self.frames(trusted, whole)?;
            let (at, next) = (self.extent.end, self.extent.next);
            if at >= trusted {
                return Ok(());
            }
            let damage = self.part.damage_at(self.file, at, next, self.length)?;
            let damage = match (damage, marked) {
                (Some(damage), Some((position, _))) if position == trusted && damage.end() > trusted => None,
                (damage, _) => damage,
            };
            let damage = match (damage, marked) {
                (Some(damage), _) => damage,
                (None, Some((position, number))) if position == trusted && number >= next => StreamDamage {
                    file: self.part.path.clone(),
                    offset: at,
                    bytes: position - at,
                    first: next,
                    next: number,
                },
                _ => {
                    let what = "what was synced does not read as it was written";
                    return Err(self.part.damaged(at, what));
                }
            };
            (self.extent.end, self.extent.next) = (damage.end(), damage.next);
            self.damage.push(damage);
        }
    }

    /// Goes on behind what was known to be safe, until what is torn. True if there is such.
    fn tail(&mut self) -> Result<bool, StorageError> {
        loop {
            self.frames(self.length, true)?;
            if !is_anything_behind(self.part, self.file, self.extent.end, self.length)? {
                return Ok(false);
            }
            // What is found behind may say that what is damaged here was safe.
            let (at, mut vouched) = ((self.extent.end, self.extent.next), 0);
            let visit = |position: u64, head: &FrameHead| {
                vouched = vouched.max(head.synced.min(position));
                true
            };
            self.part
                .walk_past(self.file, at, self.length, true, visit, |_| {})?;
            if vouched <= at.0 {
                return Ok(true);
            }
            self.past(vouched, None, true)?;
        }
    }
}

/// After a kill the last frames may be in the page cache only, and publishers will be told that they are there. Where a sync has
/// failed before, the next one succeeds without having written anything, so what is not known to be synced is written once more.
fn write_again(part: &Part, file: &dyn File, from: u64, end: u64) -> Result<(), StorageError> {
    let mut position = from;
    let mut bytes = vec![0; 1 << 20];
    while position < end {
        let length = bytes.len().min((end - position) as usize);
        let read = part.io("read", read_full_at(file, &mut bytes[..length], position))?;
        if read == 0 {
            break;
        }
        part.io("write", write_all_at(file, &bytes[..read], position))?;
        position += read as u64;
    }
    Ok(())
}

/// True if there is something from this position on, other than room that was only reserved.
fn is_anything_behind(
    part: &Part,
    file: &dyn File,
    mut position: u64,
    length: u64,
) -> Result<bool, StorageError> {
    let mut bytes = vec![0; 64 << 10];
    while position < length {
        let read = part.io("read", read_full_at(file, &mut bytes, position))?;
        if read == 0 {
            break;
        }
        if bytes[..read].iter().any(|byte| *byte != 0) {
            return Ok(true);
        }
        position += read as u64;
    }
    Ok(false)
}

/// Finds out what a part has that is written no more, and was synced before the next one was made.
fn closed(fs: &dyn FileSystem, part: &Part, next: &Part) -> Result<(), StorageError> {
    let file = part.open(fs, Access::Read)?;
    let length = part.io("ask the length of", file.len())?;
    let rows = rows_in(fs, part);
    let row = part.row_before(fs, file.as_ref(), rows, |row| row.position < length)?;
    let from = row.map_or(HEADER as u64, |(_, row, _)| row.position);
    let mut last_ms = None;
    part.walk(file.as_ref(), from, length, false, |_, head| {
        last_ms = Some(head.time_ms);
        true
    })?;
    part.set_rows(row.map_or(0, |(at, _, _)| at + 1));
    // It was cut to its length when it was closed.
    part.publish(Extent {
        end: length.max(HEADER as u64),
        next: next.first,
        // Where nothing of it can be read it is as young as it may be: its age is no reason to remove it.
        last_ms: last_ms.unwrap_or(next.extent().last_ms),
    });
    Ok(())
}
