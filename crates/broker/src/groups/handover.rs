//! A queue's journal becomes a group's, and this node's own again. One batch of the log says both that the old journal ends
//! and with what the new one begins; bodies stay in the segments, which keep the name that they have.
//!
//! A power cut may keep any beginning of a batch, so each ends with what decides: contents that no journal has handed over
//! are void, and so is the beginning of a journal that contents don't follow. What stands behind the batch in the log is
//! durable only if the batch is.
//!
//! ```text
//! to a group       the member's segments and checkpoint, then the queue's note: handed over to the group; forget the queue
//! and back         the queue's note: begun with what the group had, and the contents; forget the group
//! note             kind u8, group u64, then
//!   1 handed over  nothing
//!   2 begun        the journal whose name the segments bear: kind u8, number u64
//! ```

use super::hosted::{Act, Hosted};
use super::member_journal::member_journal;
use super::member_record::{Head, Remembered, journal_name, journal_of};
use super::node_groups::NodeGroups;
use super::replicated::Replicated;
use super::start::{Found, Identity, NotOpened};
use crate::node::ends::Ends;
use crate::node::journal::{NodeLog, append_local, append_note};
use crate::node::promise::Promise;
use cluster::{GroupId, Mark, Membership};
use model::{Index, Mutant};
use queue::{Request, store};
use std::sync::Arc;
use storage::{JournalId, Kind, Position, StorageError};

const HANDED_OVER: u8 = 1;
const BEGUN: u8 = 2;

/// Contents that were handed over are those behind this entry, of which the group has nothing but them.
const FIRST: Index = 1;

/// What a queue's own journal says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// It has ended: this group goes on with what it had.
    HandedOver(GroupId),
    /// It has begun with what a group had.
    Begun(Begun),
}

/// With what a queue's own journal has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The group, which is over here.
    pub group: GroupId,
    /// The journal whose name the segments bear.
    pub segments: JournalId,
}

impl Note {
    /// Its bytes.
    pub fn encode(self) -> Vec<u8> {
        let (kind, group) = match self {
            Self::HandedOver(group) => (HANDED_OVER, group),
            Self::Begun(begun) => (BEGUN, begun.group),
        };
        let mut out = vec![kind];
        out.extend(group.0.to_le_bytes());
        if let Self::Begun(begun) = self {
            out.extend(journal_name(begun.segments));
        }
        out
    }

    /// Reads it; `None` if it is none that this version knows.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (group, rest) = rest.split_first_chunk()?;
        let group = GroupId(u64::from_le_bytes(*group));
        match *kind {
            HANDED_OVER if rest.is_empty() => Some(Self::HandedOver(group)),
            BEGUN => journal_of(rest).map(|segments| Self::Begun(Begun { group, segments })),
            _ => None,
        }
    }
}

/// Whose a queue is, by what its own journal has, in its order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Whose {
    has_records: bool,
    handed_over: Option<GroupId>,
    noted: Option<Begun>,
    begun: Option<Begun>,
}

/// Which journal goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InCharge {
    /// This node's. What the log has of the group is void, or over.
    Own(Option<Begun>),
    /// The group's.
    Group,
    /// There is nothing of either.
    Neither,
}

impl Whose {
    /// Of everything before nothing counts any more, or the next record says with what the journal begins.
    pub fn note(&mut self, note: Note) {
        match note {
            Note::HandedOver(group) => {
                *self = Self {
                    handed_over: Some(group),
                    ..Self::default()
                };
            }
            Note::Begun(begun) => self.noted = Some(begun),
        }
    }

    /// The journal has a record.
    pub fn record(&mut self) {
        self.has_records = true;
        if let Some(begun) = self.noted.take() {
            (self.begun, self.handed_over) = (Some(begun), None);
        }
    }

    /// The group that it was handed over to, and nothing followed.
    pub fn handed_over(&self) -> Option<GroupId> {
        self.handed_over
    }

    /// With what the journal has begun.
    pub fn begun(&self) -> Option<Begun> {
        self.begun
    }

    /// Which journal goes on: the queue's own, or the one of this group, of which the log has `found`.
    ///
    /// # Errors
    /// What would say so can't be read.
    pub fn in_charge(
        &self,
        queue: JournalId,
        group: GroupId,
        found: Option<&Found>,
        log: &NodeLog,
    ) -> Result<InCharge, NotOpened> {
        let member = found.is_some_and(Found::has_begun);
        let mut damage = log.recovery().damage.iter();
        let lost = damage.find(|it| it.journal == Some(queue)).filter(|_| member);
        if let Some(lost) = lost {
            // It may have been what hands the queue over: then the group has what is newer.
            return Err(NotOpened::Unreadable(lost.error()));
        }
        match self {
            Self {
                handed_over: Some(to),
                ..
            } if *to != group || !member => Err(NotOpened::Unreadable(StorageError::Gone {
                what: format!("{queue} was handed over to group {}, which has no contents", to.0),
            })),
            Self {
                handed_over: Some(_), ..
            } => Ok(InCharge::Group),
            Self {
                has_records: true, ..
            } => Ok(InCharge::Own(self.begun)),
            _ if member => Ok(InCharge::Group),
            _ => self.neither(group, found, log),
        }
    }

    /// There is nothing of the queue's own journal, and no contents of the group: nor may there ever have been any.
    fn neither(&self, group: GroupId, found: Option<&Found>, log: &NodeLog) -> Result<InCharge, NotOpened> {
        let mut damage = log.recovery().damage.iter();
        let of_group = |it: &JournalId| {
            it.number == group.0 && matches!(it.kind, Kind::GROUP | Kind::HARD_STATE | Kind::MEMBER)
        };
        if let Some(lost) = damage.find(|it| it.journal.as_ref().is_some_and(of_group)) {
            return Err(NotOpened::Unreadable(lost.error()));
        }
        match found.is_some_and(Found::has_answered) {
            true => Err(NotOpened::Unreadable(StorageError::Gone {
                what: format!("the contents of group {}, of which there are entries", group.0),
            })),
            false => Ok(InCharge::Neither),
        }
    }
}

/// Ends a queue's own journal, and begins the member of a group with these contents, whose bodies lie in `segments`. The terms
/// of the group go on behind the one given, from 1: whoever has known the queue takes its leader for a later one. The promise is
/// carried out when all of that is durable: not before may anybody hear of the group. Returns where the contents stand.
pub fn hand_over(
    log: &NodeLog,
    queue: JournalId,
    (identity, behind): (&Identity, u64),
    segments: JournalId,
    contents: &[u8],
    promise: Promise,
) -> Contents {
    let (group, members) = (identity.group, identity.members.clone());
    let at = Mark {
        index: FIRST,
        term: behind,
    };
    let head = Head { at, members };
    let own = member_journal(group);
    let handed = Note::HandedOver(group).encode();
    if Mutant::HandsOverBefore.is_on() {
        log.append_with(std::iter::empty(), |batch| {
            append_note(batch, queue, &handed);
            batch.forget(queue);
        });
    }
    let mut position = Position(0);
    log.append_with(std::iter::once(promise), |batch| {
        batch.record(own, |out| head.encode(Remembered::Segments(segments), out));
        position = batch.record(own, |out| head.encode(Remembered::Checkpoint(contents), out));
        if !Mutant::HandsOverLater.is_on() {
            append_note(batch, queue, &handed);
            batch.forget(queue);
        }
    });
    Contents {
        group,
        position,
        segments,
    }
}

/// Begins a queue's own journal with the contents of a group, which has no member but this node's and is forgotten. As
/// [`hand_over`] otherwise.
pub fn take_back(
    log: &NodeLog,
    queue: JournalId,
    begun: Begun,
    contents: &[u8],
    promise: Promise,
) -> Contents {
    let Begun { group, segments } = begun;
    if Mutant::ForgetsBefore.is_on() {
        log.forget_group(group.0);
    }
    let mut position = Position(0);
    log.append_with(std::iter::once(promise), |batch| {
        batch.forget(queue);
        append_note(batch, queue, &Note::Begun(begun).encode());
        position = append_local(batch, queue, contents);
        batch.forget_group(group.0);
    });
    Contents {
        group,
        position,
        segments,
    }
}

/// So often messages are moved that could not be at first.
pub const ATTEMPTS: u32 = 4;

/// Who goes on with a queue on another journal.
pub trait Successor: Send + Sync {
    /// The contents are there, durably. Called without a lock, on a thread that may wait for the disk.
    fn begin(&self, contents: Contents);

    /// The queue goes on as it is: something of it can't be stored, waits for too long, or it is deleted.
    fn given_up(&self);
}

/// Has a queue's machine move everything to segments.
pub fn move_out() -> Request<Ends> {
    Request::Store(store::Request::MoveOut)
}

/// What a queue that is handed over still does: what ends something that is under way, for which it waits, and what settings
/// it gets.
pub fn ends_something(request: &Request<Ends>) -> bool {
    matches!(
        request,
        Request::Store(_)
            | Request::FinishDeadLetters { .. }
            | Request::GiveUp { .. }
            | Request::PutBack { .. }
            | Request::Remove { .. }
            | Request::Configure { .. }
    )
}

/// Where contents stand that were handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The group that has them, or had.
    pub group: GroupId,
    /// In the log.
    pub position: Position,
    /// The journal whose name the segments bear that the bodies lie in.
    pub segments: JournalId,
}

/// Opens the member of a group to which a queue of this node was handed over just now.
///
/// # Errors
/// The contents can't be read.
pub fn open<M>(
    groups: &Arc<NodeGroups>,
    identity: Identity,
    settings: M::Settings,
    contents: Contents,
    act: Act<M::Effect>,
) -> Result<Arc<Hosted<M>>, NotOpened>
where
    M: Replicated,
{
    let log = &groups.node().log;
    let record = log.read(contents.position).map_err(NotOpened::Unreadable)?;
    let mut found = Found::of_another();
    found.lie_in(contents.segments);
    found.take(Kind::MEMBER, contents.position, &record);
    let mut starting = found.begin(groups, identity, settings)?;
    starting.at_start = false;
    starting.finish(act)
}

/// This node's member of the group is damaged: nothing counts of what this node has of it, and the log forgets it, as do the
/// segments of this name. They need not wait until that is durable: as long as the log has anything of the group, the damage is
/// found again. What this node opens of the group later ([`Found::of_another`]) is another member of it, under a number that it
/// never had.
pub fn renounce(groups: &NodeGroups, group: GroupId, segments: Option<JournalId>) {
    groups.close(group);
    let node = groups.node();
    node.log.forget_group(group.0);
    if let Some(segments) = segments {
        node.pager.write(move |files| files.remove(segments));
    }
}

/// This node begins a member of the group in the place of others that it had before: from now on the log says which one it is.
pub fn begins_anew(groups: &NodeGroups, group: GroupId, life: u32) {
    let head = Head {
        at: Mark::default(),
        members: Membership::default(),
    };
    groups.node().log.append_with(std::iter::empty(), |batch| {
        batch.record(member_journal(group), |out| {
            head.encode(Remembered::Life(life), out);
        });
    });
}

/// This node has no member of the group any more, or never had one that counts: the log and the segments forget it. Of a group
/// whose segments bear the name of a queue that goes on with them, only the log does.
pub fn forget(groups: &NodeGroups, group: GroupId, segments: Option<JournalId>) {
    groups.close(group);
    let node = groups.node();
    node.log.forget_group(group.0);
    if let Some(segments) = segments {
        node.log.promise(Promise::Deleted { segments });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_were_written_and_no_cut_one_is_taken_for_another() {
        let begun = Begun {
            group: GroupId(7),
            segments: JournalId::new(Kind::QUEUE, 17),
        };
        for note in [Note::HandedOver(GroupId(7)), Note::Begun(begun)] {
            let bytes = note.encode();
            assert_eq!(Note::decode(&bytes), Some(note));
            (0..bytes.len()).for_each(|cut| assert_eq!(Note::decode(&bytes[..cut]), None));
            assert_eq!(Note::decode(&[bytes, vec![0]].concat()), None);
        }
    }

    #[test]
    fn a_journal_goes_on_from_its_last_beginning_if_contents_follow_it() {
        let (group, segments) = (GroupId(7), JournalId::new(Kind::QUEUE, 17));
        let begun = Begun { group, segments };
        let mut whose = Whose::default();
        whose.record();
        assert!(whose.has_records && whose.begun().is_none());
        whose.note(Note::HandedOver(group));
        assert!(!whose.has_records && whose.handed_over == Some(group));
        whose.note(Note::Begun(begun));
        assert_eq!(whose.handed_over, Some(group), "the contents are missing");
        whose.record();
        assert_eq!((whose.handed_over, whose.begun()), (None, Some(begun)));
    }

    #[test]
    fn notes_have_the_bytes_that_they_always_had() {
        let begun = Begun {
            group: GroupId(300),
            segments: JournalId::new(Kind::QUEUE, 17),
        };
        let notes = [Note::HandedOver(GroupId(300)), Note::Begun(begun)];
        let written = notes.map(|note| note.encode().escape_ascii().to_string());
        assert_eq!(
            written.to_vec(),
            [
                r"\x01,\x01\x00\x00\x00\x00\x00\x00",
                r"\x02,\x01\x00\x00\x00\x00\x00\x00\x02\x11\x00\x00\x00\x00\x00\x00\x00"
            ]
        );
    }
}
