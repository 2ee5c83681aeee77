//! Reads one file of the log: what is in it, where it ends, what is damaged. Pure; works on bytes.

use super::format::RECORD_HEADER;
use super::format::{
    BLOCK_HEADER, FILE_HEADER, FileHeader, block_header, next_block_candidate, record_header,
};
use super::{JournalId, Position};

/// Something found in a file, in order.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    Record {
        journal: JournalId,
        position: Position,
        payload: &'a [u8],
    },
    /// Bytes that were once durable cannot be read. All of `offset..resume` is lost; it belonged to `journal`, if known.
    Damage {
        offset: usize,
        resume: usize,
        journal: Option<JournalId>,
        what: &'static str,
    },
}

/// How a file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    /// Offset of the first byte that is not part of the log.
    pub offset: usize,
    /// Something unfinished was cut off there: a write that a crash interrupted.
    pub torn: bool,
    /// The last block is empty: the log was closed in good order.
    pub clean: bool,
}

/// A file under examination.
struct Walk<'a> {
    bytes: &'a [u8],
    header: FileHeader,
    /// Where the next file takes over; everything before is known to have been durable. `None` for the last file.
    until: Option<usize>,
    offset: usize,
    /// Valid blocks after the first bad spot: (offset, synced). Looked for once, when needed.
    later: Option<Vec<(usize, u64)>>,
}

/// Goes through a file. `next_base` is the following file's base.
pub(crate) fn walk<'a>(
    bytes: &'a [u8],
    header: &FileHeader,
    next_base: Option<u64>,
    found: &mut dyn FnMut(Found<'a>),
) -> End {
    let until = next_base.map(|next| {
        usize::try_from(next.saturating_sub(header.base))
            .unwrap_or(usize::MAX)
            .saturating_add(FILE_HEADER)
    });
    let mut walk = Walk {
        bytes,
        header: *header,
        until,
        offset: FILE_HEADER,
        later: None,
    };
    let (torn, clean) = walk.run(found);
    End {
        offset: walk.offset,
        torn,
        clean,
    }
}

impl<'a> Walk<'a> {
    fn run(&mut self, found: &mut dyn FnMut(Found<'a>)) -> (bool, bool) {
        let mut clean = false;
        loop {
            if self.ended() {
                return (false, clean);
            }
            match self.block() {
                Some(length) => {
                    clean = length == 0;
                    if !self.records(length, found) {
                        return (true, false);
                    }
                }
                None => {
                    let unfinished = self.until.is_none() && self.later().is_empty();
                    if unfinished {
                        return (false, clean);
                    }
                    if !self.bad_spot(None, self.offset, "no valid block where one must be", found) {
                        return (true, false);
                    }
                }
            }
        }
    }

    fn ended(&self) -> bool {
        self.until.is_some_and(|until| self.offset >= until)
    }

    fn position(&self, offset: usize) -> u64 {
        self.header.base.saturating_add((offset - FILE_HEADER) as u64)
    }

    /// Length of the block that begins here.
    fn block(&self) -> Option<usize> {
        let rest = self.bytes.get(self.offset..)?;
        Some(block_header(rest, self.header.salt, self.position(self.offset))?.length as usize)
    }

    /// Goes through a block's records. False: the log ends within.
    fn records(&mut self, length: usize, found: &mut dyn FnMut(Found<'a>)) -> bool {
        self.offset += BLOCK_HEADER;
        let end = self.offset + length;
        while self.offset < end && !self.ended() {
            let at = self.offset;
            let position = self.position(at);
            let limit = end.min(self.bytes.len());
            let record = self
                .bytes
                .get(at..limit)
                .and_then(|rest| record_header(rest, self.header.salt, position))
                .filter(|record| record.length <= end - at - RECORD_HEADER);
            let Some(record) = record else {
                // Nothing tells where the next record begins: go on at the next block.
                return self.bad_spot(None, at, "a record's header does not match its checksum", found);
            };
            let begin = at + RECORD_HEADER;
            let next = begin + record.length;
            match self.bytes.get(begin..next) {
                Some(payload) if record.matches(payload) => {
                    self.offset = next;
                    found(Found::Record {
                        journal: record.journal,
                        position: Position(position),
                        payload,
                    });
                }
                _ => {
                    let owner = Some((record.journal, next));
                    if !self.bad_spot(owner, at, "a record's content does not match its checksum", found) {
                        return false;
                    }
                    if self.offset != next {
                        return true;
                    }
                }
            }
        }
        true
    }

    /// Something at `at` is not as written. True: it was durable once, so it is damage; it has been reported, and the
    /// walk goes on behind it. False: nothing shows that it ever was durable, so it is the torn tail.
    fn bad_spot(
        &mut self,
        owner: Option<(JournalId, usize)>,
        at: usize,
        what: &'static str,
        found: &mut dyn FnMut(Found<'a>),
    ) -> bool {
        let position = self.position(at);
        let until = self.until;
        let length = self.bytes.len();
        let later = self.later();
        let durable = until.is_some_and(|until| at < until)
            || later
                .iter()
                .any(|(offset, synced)| *offset > at && *synced > position);
        if !durable {
            self.offset = at;
            return false;
        }
        let next_block = later
            .iter()
            .map(|(offset, _)| *offset)
            .find(|offset| *offset > at);
        let (journal, resume) = match owner {
            Some((journal, next)) if next <= length && until.is_none_or(|until| next <= until) => {
                (Some(journal), next)
            }
            // If not even the record's end is there, what is missing behind it may be anybody's.
            _ => (None, next_block.or(until).unwrap_or(length)),
        };
        let resume = until.map_or(resume, |until| resume.min(until));
        self.offset = resume;
        found(Found::Damage {
            offset: at,
            resume,
            journal,
            what,
        });
        true
    }

    fn later(&mut self) -> &[(usize, u64)] {
        let from = self.offset;
        let Walk {
            bytes, header, later, ..
        } = self;
        later.get_or_insert_with(|| later_blocks(bytes, header, from))
    }
}

/// All valid block headers behind `from`, wherever they begin.
fn later_blocks(bytes: &[u8], header: &FileHeader, from: usize) -> Vec<(usize, u64)> {
    let mut blocks = Vec::new();
    let mut at = from;
    while let Some(candidate) = next_block_candidate(bytes, at) {
        let position = header.base.saturating_add((candidate - FILE_HEADER) as u64);
        if let Some(block) = block_header(&bytes[candidate..], header.salt, position) {
            blocks.push((candidate, block.synced));
        }
        at = candidate + 1;
    }
    blocks
}
