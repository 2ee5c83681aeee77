//! A member that is being started: its checkpoint is there, and the entries behind it come, in one pass over the log for
//! many groups, or read by their indices.

use super::host::ReplicatedHost;
use super::hosted::{Act, Hosted};
use super::member::Member;
use super::member_journal::{Kept, MemberJournal, member_journal};
use super::member_record::Head;
use super::node_groups::NodeGroups;
use super::replay::ReplayedMember;
use super::replicated::Replicated;
use super::start::{Found, Identity, NotOpened, Terms};
use crate::node::journal::NodeLog;
use crate::node::pager::stored_place;
use bytes::Bytes;
use cluster::{GroupId, Recovered};
use model::Index;
use queue::store::Stored;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use storage::{GroupEntry, StorageError};

/// A member whose entries come.
pub struct Starting<M: Replicated> {
    pub(super) groups: Arc<NodeGroups>,
    pub(super) group: GroupId,
    pub(super) settings: M::Settings,
    pub(super) replayed: ReplayedMember<M>,
    pub(super) recovered: Recovered,
    /// How far the contents go.
    pub(super) known: Head,
    pub(super) kept: Kept,
    pub(super) terms: Terms,
    /// The node starts, and the segments don't know yet what is needed of them.
    pub(super) at_start: bool,
}

/// A member to which what the log has of its group is shown.
pub trait Showing {
    /// Its group.
    fn group(&self) -> GroupId;

    /// The index of the entry that comes next.
    fn next(&self) -> Index;

    /// The log has this of the group; it is taken if it is the entry that comes next.
    ///
    /// # Errors
    /// It is damaged.
    fn show(&mut self, payload: &[u8]) -> Result<(), NotOpened>;
}

impl<M: Replicated> Showing for Starting<M> {
    fn group(&self) -> GroupId {
        self.group
    }

    fn next(&self) -> Index {
        self.replayed.next()
    }

    fn show(&mut self, payload: &[u8]) -> Result<(), NotOpened> {
        match GroupEntry::decode(payload) {
            Some((entry, _)) if entry.index == self.replayed.next() && self.terms.has(entry) => {
                self.replayed.entry(payload).map_err(NotOpened::Unreadable)?;
                let payload = Bytes::copy_from_slice(payload);
                self.recovered.entry(&payload).map_err(NotOpened::Damaged)
            }
            _ => Ok(()),
        }
    }
}

impl<M: Replicated> Starting<M> {
    /// Reads by their indices what has not come of the entries.
    fn read_rest(&mut self) -> Result<(), NotOpened> {
        let log = self.groups.node().log.clone();
        let last = log.group_span(self.group.0).map_or(0, |(_, last)| last);
        let end = last.max(self.known.at.index) + 1;
        let (recovered, mut damage) = (&mut self.recovered, None);
        let mut show = |payload: Vec<u8>| {
            recovered.entry(&Bytes::from(payload)).map_err(|it| {
                damage = Some(it);
                StorageError::Gone {
                    what: "an entry that follows the one before".to_owned(),
                }
            })
        };
        let read = self.replayed.rest(&log, end, &mut show);
        read.map_err(|error| damage.map_or(NotOpened::Unreadable(error), NotOpened::Damaged))
    }

    /// All entries have come that a pass has shown: the member opens, and follows.
    ///
    /// # Errors
    /// It is damaged.
    pub fn finish(mut self, act: Act<M::Effect>) -> Result<Arc<Hosted<M>>, NotOpened> {
        self.read_rest()?;
        let Self {
            groups,
            group,
            known,
            mut kept,
            at_start,
            ..
        } = self;
        let machine = self.replayed.finish();
        let (segments, owner) = (&groups.node().segments, kept.segments);
        let owner = owner.unwrap_or(member_journal(group));
        for place in machine.places().into_iter().filter(|_| at_start) {
            if !segments.adopt(owner, stored_place(place)) {
                tracing::error!(area = "groups", "{owner}: messages in {place:?} are missing");
            }
        }
        // What is not there any more was given back, or is fetched again.
        let is_there = |spare: &Stored| segments.adopt(owner, stored_place(spare.place));
        kept.spares.retain(is_there);
        let own = MemberJournal::new(groups.clone(), group, kept, known.members, known.at.index);
        let host = ReplicatedHost::new(self.settings, machine, own, known.at);
        let hosted = Hosted::new(host, groups.clone(), act);
        let member: Arc<dyn Member> = hosted.clone();
        let member: Weak<dyn Member> = Arc::downgrade(&member);
        let opened = groups.open(group, self.recovered, member);
        opened.map_err(NotOpened::Damaged).map(|()| hosted)
    }
}

impl Found {
    /// Opens the member of which the log has this, or a new one. For several, [`read_together`] reads the log once.
    ///
    /// # Errors
    /// It is damaged.
    pub fn open<M: Replicated>(
        self,
        groups: &Arc<NodeGroups>,
        identity: Identity,
        settings: M::Settings,
        act: Act<M::Effect>,
    ) -> Result<Arc<Hosted<M>>, NotOpened> {
        let mut starting = [self.begin(groups, identity, settings)];
        read_together(&groups.node().log, &mut starting);
        let [starting] = starting;
        starting.and_then(|starting| starting.finish(act))
    }
}

/// Shows what the log has of these members' groups to each of them, in one pass. What the pass can't read, each reads by itself
/// afterwards.
pub fn read_together<S: Showing>(log: &NodeLog, members: &mut [Result<S, NotOpened>]) {
    let mut by_group: BTreeMap<u64, &mut Result<S, NotOpened>> = BTreeMap::new();
    let mut begin = None;
    for member in members {
        if let Ok(starting) = member {
            let (group, next) = (starting.group().0, starting.next());
            if let Some(position) = log.group_position(group, next) {
                begin = Some(begin.map_or(position, |known| position.min(known)));
                by_group.insert(group, member);
            }
        }
    }
    let Some(begin) = begin else { return };
    let read = log.entries_since(begin, &mut |group, payload| {
        if let Some(member) = by_group.get_mut(&group)
            && let Ok(starting) = member
            && let Err(why) = starting.show(payload)
        {
            **member = Err(why);
        }
    });
    if let Err(error) = read {
        tracing::warn!(area = "groups", "groups are read one by one: {error}");
    }
}
