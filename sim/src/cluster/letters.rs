//! Dead letters: what dies in a queue is published to the queue of the dead, wherever that is led, until it has arrived.

use super::access::LETTERS;
use super::clients::{finish, put, receipt};
use super::exercised::Deed;
use super::history::{Id, id_of};
use super::ledger::{Known, Leadership};
use super::nodes::Cluster;
use super::terms::DEAD;
use crate::world::until_power_cut;
use broker::groups::{Nearby, block_at, member_journal};
use cluster::GroupId;
use model::{Block, BlockBuilder, Journaled, Ranges, Seq};
use queue::Request;
use queue::fifo::Record;
use queue::store::{Bytes, Part, Piece, Source, decode_entry};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use storage::StorageError;

/// Letters that died together.
struct Letters {
    by: Leadership,
    ticket: u64,
    /// They stay until the queue of the dead has them.
    keeps: bool,
    /// Those of which it has not said whether it has them, by the numbers under which they are published.
    missing: BTreeMap<u64, (Seq, Id)>,
    /// These are damaged.
    unread: Ranges,
    /// These could not be read, or were refused and stay.
    failed: BTreeSet<Seq>,
    /// They are under way.
    sent: bool,
}

/// All that are under way, by numbers of their own.
#[derive(Default)]
pub struct UnderWay {
    /// By the first of their numbers.
    letters: BTreeMap<u64, Letters>,
    last: u64,
}

impl UnderWay {
    /// Who has decided that they die leads no more.
    pub fn forget(&mut self, by: Leadership) {
        self.letters.retain(|_, letters| letters.by != by);
    }

    pub fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    /// Those of which this number is one, if it is not answered yet.
    fn of(&mut self, number: u64) -> Option<&mut Letters> {
        let (_, letters) = self.letters.range_mut(..=number).next_back()?;
        Some(letters).filter(|it| it.missing.contains_key(&number))
    }
}

impl Cluster {
    /// A leader has messages die.
    pub fn die(&mut self, (by, ticket): (Leadership, u64), keeps: bool, pieces: &[Piece]) {
        let mut letters = Letters {
            by,
            ticket,
            keeps,
            missing: BTreeMap::new(),
            unread: Ranges::new(),
            failed: BTreeSet::new(),
            sent: false,
        };
        let mut read = Vec::new();
        for piece in pieces {
            let mut seq = piece.first;
            for part in &piece.parts {
                self.read_part(seq, part, &mut read, &mut letters);
                seq += u64::from(part.count);
            }
        }
        let unread = &letters.unread;
        self.ledger
            .tell(|| format!("{by:?} has {read:?} die, {unread:?} are damaged, ticket {ticket}"));
        let first = self.letters.last + 1;
        self.letters.last += read.len().max(1) as u64;
        letters.missing = (first..).zip(read).collect();
        self.letters.letters.insert(first, letters);
    }

    fn read_part(&self, first: Seq, part: &Part, whole: &mut Vec<(Seq, Id)>, letters: &mut Letters) {
        let read = match &part.bytes {
            Bytes::Memory(block) => Ok((block.clone(), Ranges::new())),
            // What is not written yet is waited for, and the power may be cut meanwhile.
            Bytes::Source(source) => {
                let read = until_power_cut(|| self.read_source(letters.by, *source));
                read.unwrap_or(Err(None))
            }
        };
        let last = first + u64::from(part.count) - 1;
        match read {
            Ok((block, damaged)) => {
                for (seq, at) in (first..=last).zip(u64::from(part.from)..) {
                    let is_whole = at < block.len() as u64 && !damaged.contains(at);
                    match is_whole.then(|| id_of(&block, at as usize)).flatten() {
                        Some(id) => whole.push((seq, id)),
                        None => letters.unread.push(seq),
                    }
                }
            }
            Err(Some(error)) if error.is_damage() => letters.unread.push_span(first, last),
            Err(_) => letters.failed.extend(first..=last),
        }
    }

    /// A block, and which of its messages are damaged; without an error if the node does not run.
    fn read_source(
        &self,
        by: Leadership,
        source: Source,
    ) -> Result<(Arc<Block>, Ranges), Option<StorageError>> {
        let running = self.node(by.node).running.as_ref().ok_or(None)?;
        let node = &running.alone.node;
        match source {
            Source::Log(place) => {
                let brought = |record: &[u8]| match Record::decode(record)? {
                    Record::Enqueued { block, .. } => Some(block),
                    _ => None,
                };
                let block = block_at(&node.log, by.group, place, &mut Nearby::default(), brought)?;
                Ok((block, Ranges::new()))
            }
            Source::Segment(place) => {
                let stored = storage::Place {
                    segment: place.segment,
                    offset: place.offset,
                    length: place.length,
                };
                let entry = node.segments.read_parts(member_journal(by.group), stored)?;
                let what = format!("{place:?} holds no messages");
                let (block, damaged) =
                    decode_entry(place, entry.parts()).ok_or(StorageError::Gone { what })?;
                Ok((Arc::new(block), damaged))
            }
        }
    }

    /// Publishes what died and is not under way.
    pub fn letters_go(&mut self) {
        self.letters_end();
        let is_due = |it: &Letters| !it.sent && !it.missing.is_empty() && self.node(it.by.node).goes_on();
        let due = self.letters.letters.iter().filter(|(_, it)| is_due(it));
        let due: Vec<u64> = due.map(|(number, _)| *number).collect();
        for number in due {
            let Some(letters) = self.letters.letters.get_mut(&number) else {
                continue;
            };
            letters.sent = true;
            let (source, node) = (letters.by.group, letters.by.node);
            let missing = letters.missing.clone();
            let mut block = BlockBuilder::default();
            for (_, id) in missing.values().copied() {
                let known = self
                    .ledger
                    .books
                    .get(&source)
                    .and_then(|book| book.known.get(&id));
                let known = known.cloned().unwrap_or_default();
                let mut said = known.said.clone();
                said.expiration_ms = None;
                put(&mut block, &said, id, known.length);
                let (length, publisher) = (known.length, known.publisher);
                let known = Known {
                    publisher,
                    said,
                    length,
                    ..Known::default()
                };
                self.ledger.published(DEAD, id, known);
                self.ledger.counts.dead_letters += 1;
            }
            let request = Request::Enqueue {
                block: finish(block, true, self.node(node).now()),
                receipt: Some(receipt(
                    self.outbox(node, DEAD),
                    LETTERS,
                    missing.keys().copied().collect(),
                )),
            };
            self.ask(node, DEAD, request);
        }
    }

    /// The queue of the dead has them.
    pub fn letters_arrived(&mut self, numbers: &Ranges) {
        for number in numbers.iter() {
            let Some(letters) = self.letters.of(number) else {
                continue;
            };
            let (keeps, group) = (letters.keeps, letters.by.group);
            if let Some((_, id)) = letters.missing.remove(&number).filter(|_| keeps)
                && self
                    .known_letter(group, id)
                    .is_some_and(|known| known.letter_refused)
            {
                self.ledger.exercised(Deed::LetterKept);
            }
        }
    }

    /// The queue of the dead is full: what is to arrive at least once stays where it died, and is tried again.
    pub fn letters_refused(&mut self, numbers: &Ranges) {
        for number in numbers.iter() {
            let Some(letters) = self.letters.of(number) else {
                continue;
            };
            let (keeps, group) = (letters.keeps, letters.by.group);
            let Some((seq, id)) = letters.missing.remove(&number) else {
                continue;
            };
            match keeps {
                true => drop(letters.failed.insert(seq)),
                false => self.ledger.exercised(Deed::LetterLost),
            }
            if let Some(known) = self.known_letter(group, id) {
                known.letter_refused = true;
            }
        }
    }

    fn known_letter(&mut self, group: GroupId, id: Id) -> Option<&mut Known> {
        self.ledger.books.get_mut(&group)?.known.get_mut(&id)
    }

    /// The queue of the dead could not be reached: they are sent again.
    pub fn letters_return(&mut self, numbers: &Ranges) {
        for number in numbers.iter() {
            if let Some(letters) = self.letters.of(number) {
                letters.sent = false;
            }
        }
    }

    /// Tells queues that their letters have arrived.
    fn letters_end(&mut self) {
        let goes_on = |by: Leadership| self.node(by.node).goes_on();
        let arrived = self
            .letters
            .letters
            .iter()
            .filter(|(_, it)| it.missing.is_empty() && goes_on(it.by));
        let arrived: Vec<u64> = arrived.map(|(number, _)| *number).collect();
        for number in arrived {
            let Some(letters) = self.letters.letters.remove(&number) else {
                continue;
            };
            let (by, ticket, unread) = (letters.by, letters.ticket, letters.unread);
            self.ledger
                .tell(|| format!("{by:?}: dead letters of ticket {ticket} have arrived"));
            let request = Request::FinishDeadLetters {
                ticket,
                unread,
                failed: letters.failed.into_iter().collect(),
            };
            self.submit(by, request);
        }
    }
}
