//! A stream's machine as its files have it: closed segments by what is known of them, the newest one chunk by chunk, of which
//! only those are read that track something.

use super::log::StreamLog;
use crate::node::ends::Ends;
use model::{Index, Machine, Outcome, Timestamp};
use queue::stream::{Record, Segment, Stream, StreamSettings};
use storage::{StorageError, StreamSegment};

/// Makes the machine.
///
/// What is damaged is passed over and told; so is what it tracked.
///
/// # Errors
/// The newest file cannot be read.
pub fn machine(log: &StreamLog, settings: StreamSettings) -> Result<Stream<Ends>, StorageError> {
    let segments = log.files().segments();
    let Some((newest, closed)) = segments.split_last() else {
        return Ok(Stream::new(settings));
    };
    let mut machine = Stream::of_segments(settings, closed.iter().map(segment), newest.first);
    let mut outcome = Outcome::default();
    tell_found(log);
    let files = log.files();
    let damaged = files.walk_newest(|head, bytes| {
        if head.first > machine.status().next_offset {
            // What is missing was given out.
            machine.pass_over(head.first, 0, Timestamp(head.time_ms));
        }
        let record = bytes.and_then(|bytes| Record::new(bytes.to_vec()));
        match record {
            Some(record) => machine.apply(0, record, &mut outcome),
            None => machine.pass_over(head.next(), head.length.into(), Timestamp(head.time_ms)),
        }
    })?;
    damaged.iter().for_each(|it| log.is_damaged(it));
    let (_, next) = files.bounds();
    if next > machine.status().next_offset {
        machine.pass_over(next, 0, Timestamp(0));
    }
    machine.recovered(false);
    Ok(machine)
}

/// Up to which entry the files of a stream of several nodes have its chunks; 0 if they have none.
///
/// # Errors
/// The newest file cannot be read.
pub fn last_index(log: &StreamLog) -> Result<Index, StorageError> {
    tell_found(log);
    let mut last = 0;
    let damaged = log.files().walk_newest(|head, _| last = head.index)?;
    damaged.iter().for_each(|it| log.is_damaged(it));
    Ok(last)
}

/// A file as the segment that it is.
pub fn segment(file: &StreamSegment) -> Segment {
    Segment {
        first: file.first,
        next: file.next,
        bytes: file.bytes,
        last: Timestamp(file.last_ms),
    }
}

/// What opening the files has found.
fn tell_found(log: &StreamLog) {
    let files = log.files();
    if let Some(torn) = files.torn() {
        log.is_torn(torn);
    }
    files.damage().iter().for_each(|it| log.is_damaged(it));
}
