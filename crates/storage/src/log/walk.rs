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
    /// The position up to which a block says that the log was synced.
    pub synced: u64,
}

/// A file under examination.
struct Walk<'a> {
    bytes: &'a [u8],
    header: FileHeader,
    /// Where the next file takes over; everything before is known to have been durable. `None` for the last file.
    until: Option<usize>,
    offset: usize,
    synced: u64,
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
        synced: 0,
        later: None,
    };
    let (torn, clean) = walk.run(found);
    End {
        offset: walk.offset,
        torn,
        clean,
        synced: walk.synced,
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
                    let here = self.offset;
                    let nothing_follows = !self.later().iter().any(|(offset, _)| *offset > here);
                    if self.until.is_none() && nothing_follows {
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
    fn block(&mut self) -> Option<usize> {
        let rest = self.bytes.get(self.offset..)?;
        let block = block_header(rest, self.header.salt, self.position(self.offset))?;
        self.synced = self.synced.max(block.synced);
        Some(block.length as usize)
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

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::super::format::{begin_block, begin_record, end_record, seal_block};
    use super::*;

    const HEADER: FileHeader = FileHeader {
        sequence: 1,
        base: 500,
        salt: 0xa11ce,
        size: 0,
    };

    /// A block with one record, as it stands at `position`.
    fn block(payload: &[u8], salt: u64, position: u64, synced: u64) -> Vec<u8> {
        let mut block = Vec::new();
        begin_block(&mut block);
        let at = begin_record(&mut block, JournalId::new(Kind::QUEUE, 1));
        block.extend_from_slice(payload);
        end_record(&mut block, at);
        seal_block(&mut block, salt, position, synced, |_, _, _| {});
        block
    }

    /// What a file of these blocks, one of them damaged at the start of its payload, is found to hold.
    fn read(blocks: &[Vec<u8>], damaged: usize) -> (End, usize, usize) {
        let mut bytes = HEADER.encode();
        for (number, block) in blocks.iter().enumerate() {
            let begin = bytes.len();
            bytes.extend_from_slice(block);
            if number == damaged {
                bytes[begin + BLOCK_HEADER + RECORD_HEADER] ^= 1;
            }
        }
        let (mut records, mut damage) = (0, 0);
        let end = walk(&bytes, &HEADER, None, &mut |found| match found {
            Found::Record { .. } => records += 1,
            Found::Damage { .. } => damage += 1,
        });
        (end, records, damage)
    }

    #[test]
    fn what_a_later_block_vouches_for_is_damage_and_everything_else_is_torn() {
        let first = block(b"first", HEADER.salt, 500, 500);
        let behind = 500 + first.len() as u64;
        let vouching = block(b"second", HEADER.salt, behind, behind);
        let (end, records, damage) = read(&[first.clone(), vouching], 0);
        assert_eq!((end.torn, records, damage), (false, 1, 1));
        let silent = block(b"second", HEADER.salt, behind, 500);
        let (end, records, damage) = read(&[first, silent], 0);
        assert_eq!(
            (end.torn, end.offset, records, damage),
            (true, FILE_HEADER + BLOCK_HEADER, 0, 0)
        );
    }

    #[test]
    fn a_message_that_imitates_a_block_vouches_for_nothing() {
        let inside = 500 + (BLOCK_HEADER + RECORD_HEADER) as u64 + 1;
        for (salt, believed) in [(HEADER.salt, 1), (0, 0)] {
            let forged = block(b"forged", salt, inside, u64::MAX);
            let payload = [b"x".as_slice(), &forged].concat();
            let (end, _, damage) = read(&[block(&payload, HEADER.salt, 500, 500)], 0);
            assert_eq!(
                damage, believed,
                "whoever knows the salt could do it, so nobody must"
            );
            assert_eq!(end.torn, believed == 0);
        }
    }
}
