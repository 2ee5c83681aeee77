//! Of a stream of several nodes: what is committed on its way to this node's files
//! ([decision 65](../../../../../docs/decisions/0065-streams-of-several-nodes.md)).
//!
//! The writing thread takes entries as they are told, or reads them of the node's log, which keeps them until the files have
//! them, synced. What neither has any more, another node's files have: there is a [`Hole`], and they are asked. Files never go on
//! behind a hole.

use super::log::{Io, StreamLog, entry};
use super::writing::TRY_AGAIN_MS;
use crate::groups::NodeId;
use crate::queues::OtherCopies;
use bytes::Bytes;
use cluster::{GroupId, Mark, MemberId, entry_of};
use model::{Index, Mutant};
use queue::Request;
use queue::stream::{FilesHere, Record, Request as Ask, StreamRequest};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Weak};
use storage::{StorageError, StreamEntry};

/// So many bytes of entries wait in memory for the writing thread. What comes beyond is read of the log.
const TOLD_MOST: usize = 16 << 20;

/// So many bytes are written at once, and one entry more.
const ROUND_BYTES: usize = 4 << 20;

/// So many bytes are read of the log at once.
const READ_BYTES: usize = 1 << 20;

/// Files are synced once so many bytes were written to them, whoever asks for that: so much a start writes again, and so much is
/// taken back if a disk is full.
const SYNC_BYTES: usize = 16 << 20;

/// Another node is asked for chunks again if it has said nothing for so long, in milliseconds.
const ANSWERS_WITHIN_MS: u64 = 2_000;

/// Files begin anew only if all others have said so often that they don't have what comes next.
const ROUNDS: u32 = 3;

/// The log moves entries while they are read: so often they are looked for.
const ATTEMPTS: usize = 3;

/// Chunks that another node gives have so many bytes together, and one chunk more.
const PIECE_BYTES: usize = 512 << 10;

/// Chunks of one node for another one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    /// From here on they were asked for.
    pub from: u64,
    /// The first offset that the node has.
    pub first: u64,
    /// In order, each with its entry. None if the node has nothing from there on.
    pub chunks: Vec<(Mark, Bytes)>,
}

/// What this node's member of a stream's group knows of what the files are to have.
#[derive(Clone, Copy, Debug)]
pub struct Stands {
    /// Up to this entry they have everything, synced, or other nodes' files do, as its last checkpoint says.
    pub synced: Index,
    /// Up to this entry the machine has everything, which is committed.
    pub index: Index,
    /// Behind that the next message has this offset; unknown if the machine has decided more than is committed.
    pub next_offset: Option<u64>,
}

/// What is committed, between those who tell it and the writing thread.
#[derive(Default)]
pub(super) struct Feeding {
    /// It is known what the files have.
    has_begun: bool,
    /// In order.
    told: VecDeque<(Mark, Bytes)>,
    told_bytes: usize,
    /// The last entry that is known to be committed.
    upto: Index,
    /// Entries above the first one of these and up to the second one are not to be read of the log: contents that were fetched
    /// have taken their place, and what the log has of them may be another leader's.
    void: (Index, Index),
    /// Behind this entry the next message has this offset.
    stands: Option<(Index, u64)>,
    /// The chunks of all entries up to this one are in the files.
    handed: Index,
    /// All up to this one are, synced.
    synced: Index,
    /// With which offset files begin that have nothing.
    begins: u64,
    /// What was written since, in bytes.
    unsynced: usize,
    wants_sync: bool,
    hole: Option<Hole>,
    fetched: Option<(NodeId, Pieces)>,
    /// What was said of the files last.
    said: Option<FilesHere>,
}

/// Chunks that this node has neither in its files nor in its log.
#[derive(Default)]
struct Hole {
    /// From here on.
    from: u64,
    /// Below this offset.
    to: u64,
    /// How many others have been asked.
    asked: usize,
    /// Who could not help, all of whom have been asked so often before.
    unable: BTreeSet<NodeId>,
    rounds: u32,
    others: OtherCopies,
    /// The lowest offset that those have who could not help.
    begins: Option<u64>,
    /// When the next one is to be asked.
    asks_at_ms: u64,
}

/// What a member was asked that is to vote once it has all chunks.
pub(super) struct Asked {
    upto: Index,
    has_all: bool,
}

/// A round of the writing thread.
struct Round {
    handed: Index,
    void: (Index, Index),
    next: u64,
    records: Vec<(Mark, Record)>,
    bytes: usize,
    /// Where the next chunk begins that the log has, if some are missing before it.
    missing: Option<u64>,
}

impl Feeding {
    /// True if the writing thread has something to do.
    pub fn is_due(&self) -> bool {
        let is_behind = self.hole.is_none() && self.handed < self.upto;
        let stands = self
            .stands
            .is_some_and(|(index, _)| self.hole.is_none() && index <= self.handed);
        self.has_begun && (is_behind || stands || self.wants_sync || self.fetched.is_some())
    }

    /// Nothing more comes into the files.
    pub fn ends(&mut self) {
        *self = Self {
            synced: self.synced,
            void: self.void,
            said: self.said,
            ..Self::default()
        };
    }

    /// Up to which entry nothing is needed of the log: the files have it, synced, or it is not to be read of that.
    fn synced_or_void(&self) -> Index {
        let (from, to) = self.void;
        match from <= self.synced {
            true => self.synced.max(to),
            false => self.synced,
        }
    }

    /// What waits in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.told_bytes
    }

    /// What was told and follows this entry, as much as a round takes.
    fn take_told(&mut self, handed: Index) -> Vec<(Mark, Bytes)> {
        let (mut taken, mut bytes, mut next) = (Vec::new(), 0, handed + 1);
        while let Some((at, record)) = self
            .told
            .pop_front_if(|(at, _)| at.index <= next && bytes < ROUND_BYTES)
        {
            self.told_bytes -= record.len();
            if at.index == next {
                (bytes, next) = (bytes + record.len(), next + 1);
                taken.push((at, record));
            }
        }
        taken
    }

    /// Up to which entry the log is to be read: what is told behind that is in memory.
    fn read_to(&self) -> Index {
        let first = self.told.front().map(|(at, _)| at.index.saturating_sub(1));
        first.map_or(self.upto, |before| before.min(self.upto))
    }
}

impl Round {
    /// Takes the entry that comes next. False if chunks are missing before it, or it is none.
    fn take(&mut self, at: Mark, bytes: &[u8]) -> bool {
        if !bytes.is_empty() {
            let Some(record) = Record::new(bytes.to_vec()) else {
                tracing::error!(
                    area = "storage",
                    "entry {} of a stream's group is no chunk",
                    at.index
                );
                self.lacks_next();
                return false;
            };
            let header = *record.chunk().header();
            if header.first_offset > self.next {
                self.missing = Some(header.first_offset);
                return false;
            }
            // What was fetched of others may have gone further.
            if header.first_offset == self.next {
                self.next = header.next_offset();
                self.bytes += record.bytes().len();
                self.records.push((at, record));
            }
        }
        self.handed = at.index;
        true
    }

    /// Passes over what is not to be read.
    fn pass_void(&mut self) {
        let (from, to) = self.void;
        if (from..to).contains(&self.handed) {
            self.handed = to;
        }
    }

    fn is_full(&self) -> bool {
        self.bytes >= ROUND_BYTES
    }

    /// The next entry cannot be read of the log: other nodes have its chunk, or will have it.
    fn lacks_next(&mut self) {
        self.missing = Some(self.next + 1);
    }
}

impl Hole {
    /// What is missing begins here now.
    fn goes_on_at(&mut self, from: u64) {
        *self = Self {
            from,
            to: self.to,
            asked: self.asked,
            others: std::mem::take(&mut self.others),
            ..Self::default()
        };
    }

    /// This node has nothing of what comes next. With which offset the files are to begin anew, if nobody has that. If they
    /// have something (`loses_some`), which goes with that, also those count that cannot be reached now.
    fn is_unable(&mut self, node: NodeId, first: u64, loses_some: bool, now_ms: u64) -> Option<u64> {
        self.asked += 1;
        self.unable.insert(node);
        if first > self.from {
            self.begins = Some(self.begins.map_or(first, |known| known.min(first)));
        }
        let others = match loses_some {
            true => &self.others.all,
            false => &self.others.reached,
        };
        if !others.is_empty() && others.is_subset(&self.unable) {
            // Perhaps one of them is about to have it in its files.
            (self.rounds, self.unable) = (self.rounds + 1, BTreeSet::new());
            self.asks_at_ms = now_ms + TRY_AGAIN_MS;
        }
        self.begins.filter(|_| self.rounds >= ROUNDS)
    }
}

impl StreamLog {
    /// This is committed. Never waits.
    pub(crate) fn committed_here(self: &Arc<Self>, at: Mark, record: Bytes) {
        self.feed(|feeding| {
            feeding.upto = feeding.upto.max(at.index);
            if feeding.told_bytes + record.len() <= TOLD_MOST {
                feeding.told_bytes += record.len();
                feeding.told.push_back((at, record));
            }
        });
    }

    /// The files have the chunks of all entries up to `handed`, and are to have what is committed. What the last checkpoint
    /// says of what was synced the log need not have.
    pub(crate) fn begin_at(self: &Arc<Self>, handed: Index, stands: Stands) {
        let Stands {
            synced,
            index,
            next_offset,
        } = stands;
        let handed = match Mutant::StartsBehindLog.is_on() {
            true => handed.max(self.last_in_log()),
            false => handed,
        };
        self.feed(|feeding| {
            feeding.has_begun = true;
            feeding.handed = handed;
            feeding.synced = handed;
            feeding.void = (0, synced);
            feeding.upto = feeding.upto.max(index);
            feeding.stands = next_offset.map(|next| (index, next));
        });
    }

    /// A machine was made anew: everything up to this entry is committed, and behind it the next message has this offset. What
    /// was not told of that, it has by contents that were fetched.
    pub(crate) fn stands(self: &Arc<Self>, index: Index, next_offset: u64) {
        self.feed(|feeding| {
            if index > feeding.upto {
                // What is to be passed over from before is so still.
                let (from, to) = feeding.void;
                let from = if feeding.handed < to { from } else { feeding.upto };
                feeding.void = (from, index);
                feeding.upto = index;
            }
            feeding.stands = Some((index, next_offset));
            // The next machine knows nothing of the files.
            feeding.said = None;
        });
    }

    /// Has the files synced, and then said how far they go.
    pub(crate) fn sync_files(self: &Arc<Self>) {
        self.feed(|feeding| feeding.wants_sync = true);
    }

    /// Another node has given these.
    pub(crate) fn fetched(self: &Arc<Self>, by: NodeId, pieces: Pieces) {
        self.feed(|feeding| {
            let is_asked = |hole: &Hole| hole.from == pieces.from;
            if feeding.hole.as_ref().is_some_and(is_asked) {
                feeding.fetched = Some((by, pieces));
            }
        });
    }

    fn feed(self: &Arc<Self>, change: impl FnOnce(&mut Feeding)) {
        let mut io = self.io();
        if io.writing.has_failed() {
            return;
        }
        change(&mut io.feeding);
        if io.feeding.is_due() && io.writing.begins() {
            drop(io);
            self.go_on();
        }
    }

    /// Below this offset chunks are missing that were there before; 0 if none are.
    pub(super) fn end_of_hole(&self) -> u64 {
        self.io().feeding.hole.as_ref().map_or(0, |hole| hole.to)
    }

    /// Whether the files have all chunks up to this entry, and nothing is missing before them.
    pub(crate) fn has_all(&self, upto: Index) -> bool {
        let feeding = &self.io().feeding;
        let is_whole = feeding.hole.is_none() && feeding.stands.is_none();
        feeding.has_begun && is_whole && feeding.handed >= upto
    }

    /// Another member's files have all chunks up to this entry.
    pub(crate) fn member_has_all(&self, member: MemberId, upto: Index) {
        if let Some(asked) = self.io().asked.get_mut(&member)
            && asked.upto == upto
        {
            asked.has_all = true;
        }
    }

    /// The entry up to which a member is to be asked whether it has all chunks, which this one is now unless it was asked
    /// before. None if it has said that it has.
    pub(crate) fn asks_has_all(&self, member: MemberId, committed: Index) -> Option<Index> {
        let mut io = self.io();
        let asked = io.asked.entry(member).or_insert(Asked {
            upto: committed,
            has_all: false,
        });
        (!asked.has_all).then_some(asked.upto)
    }

    /// From which offset on chunks are to be asked for of another node now, and of the how manieth one; none if nothing is
    /// missing, or one was asked just now.
    pub(super) fn lacks(&self, now_ms: u64) -> Option<(u64, usize)> {
        let mut io = self.io();
        let hole = io.feeding.hole.as_mut()?;
        if hole.asks_at_ms > now_ms {
            return None;
        }
        if hole.asks_at_ms > 0 {
            // The last one has said nothing.
            hole.asked += 1;
        }
        hole.asks_at_ms = now_ms + ANSWERS_WITHIN_MS;
        Some((hole.from, hole.asked))
    }

    /// These have a copy, too.
    pub(super) fn may_ask(&self, others: OtherCopies) {
        if let Some(hole) = &mut self.io().feeding.hole {
            hole.others = others;
        }
    }

    /// When [`lacks`](Self::lacks) is to be asked, in milliseconds since the Unix epoch; `u64::MAX` for never.
    pub(super) fn asks_at_ms(&self) -> u64 {
        let io = self.io();
        io.feeding.hole.as_ref().map_or(u64::MAX, |hole| hole.asks_at_ms)
    }

    /// Reads chunks for another node, on a thread that may wait, and hands them on.
    pub(crate) fn give(self: &Arc<Self>, from: u64, hand_on: impl FnOnce(Pieces) + Send + 'static) {
        let log = self.clone();
        self.node.streams.read(self.id, move || {
            let mut pieces = Pieces {
                from,
                first: log.first_offset(),
                chunks: Vec::new(),
            };
            if pieces.first <= from
                && let Err(error) = log.read_pieces(&mut pieces)
            {
                log.complain(&error);
            }
            hand_on(pieces);
        });
    }

    fn read_pieces(&self, pieces: &mut Pieces) -> Result<(), StorageError> {
        let below = self.committed();
        // What a file begins with has no number, and the other's file is to begin with it, too.
        let cursor = match self.files().segment_start(pieces.from)? {
            Some(cursor) => Some(cursor),
            None => self.files().find(pieces.from)?,
        };
        let Some(mut cursor) = cursor else {
            return Ok(());
        };
        let mut bytes = 0;
        while bytes < PIECE_BYTES {
            let page = self.files().read(&mut cursor, below, PIECE_BYTES)?;
            if page.is_empty() {
                break;
            }
            for (head, chunk) in page.entries() {
                let at = Mark {
                    index: head.index,
                    term: head.term,
                };
                bytes += chunk.len();
                pieces.chunks.push((at, Bytes::copy_from_slice(chunk)));
            }
        }
        Ok(())
    }

    /// A round of the writing thread, of the stream's group.
    pub(super) fn feed_round(self: &Arc<Self>, group: GroupId) {
        let (void, handed, fetched, drop_below, has_hole) = {
            let mut io = self.io();
            let feeding = &mut io.feeding;
            let (void, handed, fetched) = (feeding.void, feeding.handed, feeding.fetched.take());
            let has_hole = feeding.hole.is_some();
            (void, handed, fetched, io.writing.take_drop_below(), has_hole)
        };
        let mut round = Round {
            handed,
            void,
            next: self.next_in_files(),
            records: Vec::new(),
            bytes: 0,
            missing: None,
        };
        let taken = match (has_hole, fetched) {
            (true, Some((by, pieces))) => self.take_fetched(by, pieces, &mut round).map(|()| true),
            (true, None) => Ok(false),
            (false, _) => self.take_committed(group, &mut round).map(|()| true),
        };
        let outcome = taken.and_then(|has_taken| match has_taken {
            true => self.write_committed(&round),
            false => Ok(()),
        });
        let outcome = outcome.and_then(|()| self.sync_if_wanted(&round));
        let kept = self.remove_old(drop_below, outcome.is_ok());
        self.end_round(outcome, &round, kept);
    }

    /// The last entry that the node's log has, committed or not: [`Mutant`]s ask for it.
    fn last_in_log(&self) -> Index {
        let span = self.group.and_then(|group| self.node.log.group_span(group.0));
        span.map_or(0, |(_, last)| last)
    }

    /// The offset of the next chunk.
    pub(super) fn next_in_files(&self) -> u64 {
        match self.files().segment_count() {
            0 => self.io().feeding.begins,
            _ => self.files().bounds().1,
        }
    }

    /// Takes what was told, as far as nothing is missing before it, and then what the log has.
    fn take_committed(&self, group: GroupId, round: &mut Round) -> Result<(), StorageError> {
        round.pass_void();
        let (told, upto) = {
            let feeding = &mut self.io().feeding;
            (feeding.take_told(round.handed), feeding.read_to())
        };
        for (at, record) in told {
            if !round.take(at, &record) {
                return Ok(());
            }
        }
        let upto = match Mutant::FilesTakeUncommitted.is_on() {
            true => upto.max(self.last_in_log()),
            false => upto,
        };
        while round.handed < upto && !round.is_full() {
            round.pass_void();
            let end = match round.void.0 > round.handed {
                true => upto.min(round.void.0) + 1,
                false => upto + 1,
            };
            if round.handed + 1 >= end {
                continue;
            }
            let (first, payloads) = self.logged(group, round.handed + 1, end)?;
            if payloads.is_empty() && first == round.handed + 1 {
                round.lacks_next();
                return Ok(());
            }
            // What it has let go of the files had, or another node's have: the next chunk says so.
            round.handed = round.handed.max(upto.min(first - 1));
            for payload in &payloads {
                let is_taken = entry_of(payload).is_some_and(|(at, record)| round.take(at, record));
                if !is_taken {
                    if round.missing.is_none() {
                        round.lacks_next();
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Entries of the log from this one on, or from the first one that it has of those behind, with the index of the first one.
    /// None if the next one cannot be read: it is damaged, or not there.
    fn logged(&self, group: GroupId, from: Index, end: Index) -> Result<(Index, Vec<Vec<u8>>), StorageError> {
        let log = &self.node.log;
        let mut why = None;
        for _ in 0..ATTEMPTS {
            match log.group_entries(group.0, from, end, READ_BYTES) {
                Ok(payloads) => return Ok((from, payloads)),
                Err(error) if error.is_damage() => why = Some(error),
                Err(error) => return Err(error),
            }
            match log.group_span(group.0) {
                // It has moved meanwhile, or is damaged.
                Some((first, _)) if first <= from => {}
                Some((first, _)) => return Ok((first, Vec::new())),
                None => return Ok((end, Vec::new())),
            }
        }
        if let Some(why) = why {
            tracing::error!(
                area = "storage",
                "{}: a chunk cannot be read of this node's log, and is fetched of another node: {why}",
                self.name
            );
        }
        Ok((from, Vec::new()))
    }

    /// Takes what another node has given. If nobody has what comes next any more, the files begin anew with what there is.
    fn take_fetched(&self, by: NodeId, pieces: Pieces, round: &mut Round) -> Result<(), StorageError> {
        for (at, chunk) in &pieces.chunks {
            if !round.take(*at, chunk) {
                // It is no chunk, or does not follow: the rest is asked for again.
                round.missing = None;
                break;
            }
        }
        let now_ms = self.node.now().0;
        let loses_some = self.files().segment_count() > 0;
        let begins = {
            let mut io = self.io();
            let Some(hole) = &mut io.feeding.hole else {
                return Ok(());
            };
            hole.asks_at_ms = 0;
            if round.next > hole.from {
                hole.goes_on_at(round.next);
                return Ok(());
            }
            hole.is_unable(by, pieces.first, loses_some, now_ms)
        };
        match begins {
            Some(begins) => self.begin_anew(begins, round),
            None => Ok(()),
        }
    }

    /// Nobody has what the files have to go on with: they begin anew where others begin.
    fn begin_anew(&self, begins: u64, round: &mut Round) -> Result<(), StorageError> {
        tracing::warn!(
            area = "storage",
            "{}: this node's copy begins anew at offset {begins}: no other node has what came before any more",
            self.name
        );
        self.io().feeding.begins = begins;
        self.files().clear()?;
        round.next = begins;
        if let Some(hole) = &mut self.io().feeding.hole {
            hole.goes_on_at(begins);
        }
        self.is_committed(begins);
        Ok(())
    }

    fn write_committed(&self, round: &Round) -> Result<(), StorageError> {
        if round.records.is_empty() {
            return Ok(());
        }
        let entries: Vec<StreamEntry<'_>> = round
            .records
            .iter()
            .map(|(at, record)| StreamEntry {
                term: at.term,
                index: at.index,
                ..entry(record)
            })
            .collect();
        self.files().append(&entries)?;
        drop(entries);
        self.keep_newest(round.records.iter().map(|(_, record)| record));
        self.is_committed(round.next);
        let mut io = self.io();
        io.feeding.handed = round.handed;
        io.feeding.unsynced += round.bytes;
        Ok(())
    }

    fn sync_if_wanted(&self, round: &Round) -> Result<(), StorageError> {
        let is_due = {
            let feeding = &self.io().feeding;
            feeding.wants_sync || feeding.unsynced >= SYNC_BYTES
        };
        if !is_due {
            return Ok(());
        }
        if !Mutant::CountsUnsyncedFiles.is_on() {
            self.files().sync()?;
        }
        let mut io = self.io();
        io.feeding.synced = round.handed;
        (io.feeding.unsynced, io.feeding.said) = (0, None);
        io.feeding.wants_sync = false;
        Ok(())
    }

    /// What was not synced was taken back, and the files end at this offset: it is read of the log again, or fetched.
    pub(super) fn take_back(&self, io: &mut Io, next: u64) {
        io.feeding.handed = io.feeding.synced;
        io.feeding.unsynced = 0;
        if let Some(hole) = &mut io.feeding.hole {
            hole.goes_on_at(next);
        }
        self.is_taken_back(next);
    }

    fn end_round(self: &Arc<Self>, outcome: Result<(), StorageError>, round: &Round, kept: Option<u64>) {
        let next = self.next_in_files();
        let mut io = self.io();
        match outcome {
            // The sync before a removal had no room.
            Ok(()) if next < round.next => self.take_back(&mut io, next),
            Ok(()) => {
                let feeding = &mut io.feeding;
                feeding.handed = feeding.handed.max(round.handed);
                if feeding.hole.as_ref().is_some_and(|hole| hole.to <= round.next) {
                    feeding.hole = None;
                }
                let short = feeding
                    .stands
                    .take_if(|(index, _)| *index <= round.handed)
                    .map(|(_, next)| next);
                let lacks = round.missing.or(short).filter(|to| *to > round.next);
                if let Some(to) = lacks {
                    feeding.hole.get_or_insert(Hole {
                        from: round.next,
                        to,
                        ..Hole::default()
                    });
                }
                io.writing.succeeded(&self.name);
            }
            // What was not synced is taken back, and is read of the log again.
            Err(error) if error.may_pass() && !self.files().has_failed() => {
                self.take_back(&mut io, next);
                self.stalls(&mut io.writing, &error);
            }
            Err(error) => self.fail(&mut io, &error.to_string()),
        }
        let kept = kept.filter(|_| !io.writing.has_failed());
        let is_due = io.feeding.is_due();
        let goes_on = io.writing.ends_round(kept, is_due);
        let files = FilesHere {
            first: self.first_offset(),
            synced: io.feeding.synced_or_void(),
        };
        let says = (io.feeding.said != Some(files)).then_some(files);
        io.feeding.said = Some(files);
        drop(io);
        self.wrote_round();
        if let Some(files) = says
            && let Some(queue) = self.queue.get().and_then(Weak::upgrade)
        {
            let ask = StreamRequest::Machine(Ask::HasFiles(files));
            queue.submit(Request::Stream(Box::new(ask)));
        }
        if goes_on {
            self.go_on();
        }
        self.turn();
    }
}
