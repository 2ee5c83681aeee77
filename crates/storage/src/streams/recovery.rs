//! What is there after a start: which files, and where the last one ends.

use super::frame::FrameHead;
use super::part::{Extent, HEADER, Part, rows_in};
use crate::error::StorageError;
use crate::file_system::{Access, File, FileSystem, read_full_at, write_all_at};
use std::path::Path;

/// The parts of a stream, in order, each with what it has. The last one is cut where it is torn.
pub(super) fn parts(fs: &dyn FileSystem, dir: &Path, owner: u64) -> Result<Vec<Part>, StorageError> {
    let names = fs.list(dir).map_err(|e| StorageError::from_io("list", dir, e))?;
    let firsts = names.iter().filter_map(|name| Part::first_of(name));
    let mut parts: Vec<Part> = firsts.map(|first| Part::new(dir, owner, first)).collect();
    // A file whose beginning was not synced: nothing in it was promised. It was made once the one before was synced.
    while let Some(last) = parts.pop() {
        if newest(fs, &last)? {
            parts.push(last);
            break;
        }
        remove(fs, &last)?;
        fs.sync_dir(dir)
            .map_err(|e| StorageError::from_io("sync the directory", dir, e))?;
    }
    for at in 0..parts.len().saturating_sub(1) {
        closed(fs, &parts[at], parts[at + 1].first)?;
    }
    if !parts.is_empty() {
        // What was found is built upon, so it has to stay, its name included.
        fs.sync_dir(dir)
            .map_err(|e| StorageError::from_io("sync the directory", dir, e))?;
    }
    for name in names {
        let first = name.strip_suffix(".index").map(|name| format!("{name}.chunks"));
        if first.is_some_and(|name| !parts.iter().any(|part| part.path.ends_with(&name))) {
            // It stayed when its file was removed. If it stays again, it does no harm.
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
fn newest(fs: &dyn FileSystem, part: &Part) -> Result<bool, StorageError> {
    let file = part.open(fs, Access::Write)?;
    let has_header = part.has_header(file.as_ref())?;
    let length = part.io("ask the length of", file.len())?;
    let row = part.row_before(fs, file.as_ref(), rows_in(fs, part), |row| {
        (HEADER as u64..length).contains(&row.position)
    })?;
    if !has_header && row.is_none() {
        return Ok(false);
    }
    let rows = row.map_or(0, |(at, _, _)| at + 1);
    // What was synced when that frame was written is as it was. How far that goes in numbers is seen by the frames before it.
    let trusted = row.map_or(HEADER as u64, |(_, row, head)| {
        head.synced.clamp(HEADER as u64, row.position)
    });
    let before = part.row_before(fs, file.as_ref(), rows, |row| row.position < trusted)?;
    let from = before.map_or(HEADER as u64, |(_, row, _)| row.position);
    let mut extent = Extent {
        end: from,
        next: before.map_or(part.first, |(_, row, _)| row.number),
        last_ms: 0,
    };
    let mut synced = trusted;
    let mut follows = |position: u64, head: &FrameHead| {
        let follows = head.first == extent.next;
        if follows {
            (extent.next, extent.last_ms) = (head.next(), head.time_ms);
            synced = synced.max(head.synced.min(position));
        }
        follows
    };
    let reached = part.walk(file.as_ref(), from, trusted, false, &mut follows)?;
    if reached != trusted {
        return Err(part.damaged(reached, "what was synced does not read as it was written"));
    }
    let end = part.walk(file.as_ref(), trusted, length, true, follows)?;
    extent.end = end;
    if end == HEADER as u64 {
        return Ok(false);
    }
    cut(part, file.as_ref(), end, length)?;
    part.io("write", write_all_at(file.as_ref(), &part.header(), 0))?;
    write_again(part, file.as_ref(), synced, end)?;
    part.io("sync", file.sync_data())?;
    part.publish(extent);
    // Rows of frames that were torn off are written over.
    let kept = part.row_before(fs, file.as_ref(), rows, |row| row.position < end)?;
    part.set_rows(kept.map_or(0, |(at, _, _)| at + 1));
    Ok(true)
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

/// Behind the last frame there shall be nothing: what is left of torn ones could look like whole ones once others stand in front
/// of them. Room that was only reserved is left. The caller syncs.
fn cut(part: &Part, file: &dyn File, end: u64, length: u64) -> Result<(), StorageError> {
    let mut position = end;
    let mut bytes = vec![0; 64 << 10];
    while position < length {
        let read = part.io("read", read_full_at(file, &mut bytes, position))?;
        if read == 0 {
            break;
        }
        if bytes[..read].iter().any(|byte| *byte != 0) {
            return part.io("cut", file.set_len(end));
        }
        position += read as u64;
    }
    Ok(())
}

/// Finds out what a part has that is written no more, and was synced before the next one was made.
fn closed(fs: &dyn FileSystem, part: &Part, next: u64) -> Result<(), StorageError> {
    let file = part.open(fs, Access::Read)?;
    let length = part.io("ask the length of", file.len())?;
    let rows = rows_in(fs, part);
    let row = part.row_before(fs, file.as_ref(), rows, |row| row.position < length)?;
    let from = row.map_or(HEADER as u64, |(_, row, _)| row.position);
    let mut last_ms = 0;
    part.walk(file.as_ref(), from, length, false, |_, head| {
        last_ms = head.time_ms;
        true
    })?;
    part.set_rows(row.map_or(0, |(at, _, _)| at + 1));
    // It was cut to its length when it was closed.
    part.publish(Extent {
        end: length,
        next,
        last_ms,
    });
    Ok(())
}
