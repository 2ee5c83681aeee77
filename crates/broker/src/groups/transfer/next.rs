//! The machine that is made of contents which were fetched, until it takes its predecessor's place.

use crate::groups::journal::ReplicatedJournal;
use crate::groups::member_record::{Head, Remembered};
use crate::groups::replay::replaying;
use crate::groups::replicated::Replicated;
use cluster::{Mark, Membership};
use model::{Journaled, Mutant, Ranges};
use queue::store::{self, Piece, Place, Stored};
use std::collections::HashSet;

/// How much of what only the log has is copied to segments at once, in bytes.
const COPY_BYTES: u64 = 4 << 20;

/// Contents that a peer has sent.
pub struct Contents<M> {
    at: Mark,
    members: Membership,
    machine: M,
}

impl<M: Replicated> Contents<M> {
    /// Makes a machine of them, which has no bodies. `None` if they are not what they are said to be.
    pub fn read(settings: M::Settings, memory: Option<usize>, at: Mark, said: &[u8]) -> Option<Self> {
        let (head, Remembered::Checkpoint(contents)) = Head::decode(said)? else {
            return None;
        };
        if head.at != at || head.members.voters.is_empty() {
            return None;
        }
        // Places of another node mean nothing here.
        let contents = M::without_places(M::Local::decode(contents)?)?;
        let mut machine: M = replaying(settings, memory);
        let next = machine.apply_local(contents)?;
        (next == at.index + 1).then_some(Self {
            at,
            members: head.members,
            machine,
        })
    }
}

/// A record of a checkpoint as peers are sent it: without places.
pub fn without_places<M: Replicated>(record: &[u8]) -> Option<(Mark, Vec<u8>)> {
    let (head, Remembered::Checkpoint(contents)) = Head::decode(record)? else {
        return None;
    };
    let contents = M::without_places(M::Local::decode(contents)?)?;
    let (mut bare, mut bytes) = (Vec::new(), Vec::new());
    contents.encode(&mut bare);
    head.encode(Remembered::Checkpoint(&bare), &mut bytes);
    Some((head.at, bytes))
}

/// See the module.
pub struct Next<M: Replicated> {
    pub journal: ReplicatedJournal<M>,
    contents: Contents<M>,
    /// Its predecessor, as long as some of the bodies that it has in the log only were not copied.
    before: Option<M>,
    /// What that has in segments.
    places: Vec<Place>,
    /// What may have to be copied.
    todo: Ranges,
}

impl<M: Replicated> Next<M> {
    /// Takes over what its predecessor has in segments, in these places, and what was fetched before.
    pub fn new(contents: Contents<M>, before: M, places: Vec<Place>, journal: ReplicatedJournal<M>) -> Self {
        let (stored, spares) = (before.stored(), journal.kept().spares.clone());
        let mut next = Self {
            journal,
            contents,
            before: Some(before),
            places,
            todo: Ranges::new(),
        };
        next.moved(stored);
        next.moved(spares);
        next.todo = next.missing();
        next
    }

    /// The entry by which the contents are so.
    pub fn at(&self) -> Mark {
        self.contents.at
    }

    fn moved(&mut self, pieces: Vec<Stored>) {
        if !pieces.is_empty() {
            let moved = store::Record::Moved { pieces };
            self.contents.machine.apply_local(M::Local::from(moved));
        }
    }

    /// Messages whose bodies are not here.
    pub fn missing(&self) -> Ranges {
        self.contents.machine.unreadable()
    }

    /// What is to be copied next: the log gives it up when the contents are installed.
    pub fn copy(&mut self) -> Option<Vec<Piece>> {
        let found = self.before.as_ref()?.find(&self.todo, COPY_BYTES);
        let mut looked_for = found.gone;
        looked_for.extend(&found.lost);
        for piece in &found.pieces {
            looked_for.push_span(piece.first, piece.first + u64::from(piece.count) - 1);
        }
        self.todo = self.todo.without(&looked_for);
        if found.pieces.is_empty() {
            self.before = None;
            return None;
        }
        Some(found.pieces)
    }

    /// These bodies are in segments now, synced.
    pub fn stored(&mut self, mut pieces: Vec<Stored>) {
        if Mutant::MisplacesBodies.is_on() {
            pieces.iter_mut().for_each(|piece| piece.first += 1);
        }
        self.journal.spare(pieces.clone());
        self.moved(pieces);
    }

    /// It takes its predecessor's place: in one record, and what is not needed any more is given back once that is durable.
    pub fn install(self) -> (M, ReplicatedJournal<M>) {
        let Self {
            mut journal,
            contents:
                Contents {
                    at,
                    members,
                    mut machine,
                },
            places,
            ..
        } = self;
        let spares = journal.kept().spares.iter().map(|spare| spare.place);
        let mut places: HashSet<Place> = places.into_iter().chain(spares).collect();
        let needed: HashSet<Place> = machine.places().into_iter().collect();
        places.retain(|place| !needed.contains(place) || Mutant::ReleasesFetched.is_on());
        let (contents, needed) = machine.checkpoint(at.index + 1);
        journal.install(at, members, &contents, needed);
        if !places.is_empty() {
            journal.release(places.into_iter().collect());
        }
        machine.follow();
        (machine, journal)
    }

    /// The log has it all: a machine is made of that, and these places were its predecessor's.
    pub fn abandon(self) -> (ReplicatedJournal<M>, Vec<Place>) {
        (self.journal, self.places)
    }
}
