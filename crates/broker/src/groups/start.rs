//! How a member starts: from what its node's log has of it.
//!
//! One pass over the log looks at all groups, and keeps of each the place of its last checkpoint and a few numbers.
//! Then the contents are made of the checkpoint and of the entries up to what is known to be committed. The bodies of
//! what is behind that are in memory; there is little of it, since the member's journal says often how far it is.

use super::host::ReplicatedHost;
use super::hosted::{Act, Hosted};
use super::member_journal::{Kept, MemberJournal, member_journal};
use super::member_record::{Head, Remembered, decode_spares};
use super::node_groups::{Member, NodeGroups};
use super::replay::Replay;
use crate::node::ends::Ends;
use crate::node::journal::NodeLog;
use crate::node::pager::stored_place;
use bytes::Bytes;
use cluster::{Damage, GroupId, Mark, MemberId, Membership, Recovered};
use model::QueueSettings;
use queue::QueueMachine;
use queue::store::Stored;
use std::sync::{Arc, Weak};
use storage::{Kind, Position, StorageError};

/// What a node's log has of a group, apart from its entries, which are found there by their indices.
#[derive(Debug, Default)]
pub struct Found {
    promise: Vec<u8>,
    /// By the highest entry that is known to be committed.
    known: Option<Head>,
    kept: Kept,
    /// Records of its own journal that can't be read.
    unreadable: u64,
}

/// Why a member isn't opened. It is damaged, and must not vote: it comes back as its node's next life, once its group has
/// changed the members.
#[derive(Debug)]
pub enum NotOpened {
    /// What it has answered for, or its contents, are not whole.
    Damaged(Damage),
    /// Something of it can't be read.
    Unreadable(StorageError),
}

/// Who a member is.
#[derive(Debug, Clone)]
pub struct Identity {
    pub group: GroupId,
    pub me: MemberId,
    /// Who the members were when the group began.
    pub members: Membership,
}

impl Found {
    /// The log has this of the group. The last record of a kind counts.
    pub fn take(&mut self, kind: Kind, position: Position, payload: &[u8]) {
        match kind {
            Kind::HARD_STATE => self.promise = payload.to_vec(),
            Kind::MEMBER => match Head::decode(payload) {
                Some((head, what)) => self.remember(position, head, what),
                None => self.unreadable += 1,
            },
            _ => {}
        }
    }

    fn remember(&mut self, position: Position, head: Head, what: Remembered<'_>) {
        if self
            .known
            .as_ref()
            .is_none_or(|known| known.at.index <= head.at.index)
        {
            self.known = Some(head.clone());
        }
        match what {
            Remembered::Known => {}
            Remembered::Store(bytes) => self.kept.moved.push(bytes.to_vec()),
            Remembered::Spare(bytes) => self.kept.spares.extend(decode_spares(bytes)),
            Remembered::Checkpoint(_) => {
                let checkpoint = Some((position, head));
                self.kept = Kept {
                    checkpoint,
                    ..Kept::default()
                };
            }
        }
    }

    /// Opens the member, which follows.
    ///
    /// # Errors
    /// It is damaged: nothing was changed, and nothing counts that it has promised.
    pub fn open<M>(
        self,
        groups: &Arc<NodeGroups>,
        identity: Identity,
        settings: QueueSettings,
        act: Act,
    ) -> Result<Arc<Hosted<M>>, NotOpened>
    where
        M: QueueMachine<Ends> + Send + 'static,
        M::Record: Send,
    {
        let group = identity.group;
        let settings = QueueSettings {
            replicated: true,
            ..settings
        };
        self.check(&groups.node().log, &identity)
            .and_then(|()| {
                let (machine, recovered, own, applied) = self.contents(groups, identity, settings.clone())?;
                let hosted = Hosted::new(
                    ReplicatedHost::new(settings, machine, own, applied),
                    groups.clone(),
                    act,
                );
                let member: Arc<dyn Member> = hosted.clone();
                let member: Weak<dyn Member> = Arc::downgrade(&member);
                groups
                    .open(group, recovered, member)
                    .map_err(NotOpened::Damaged)?;
                Ok(hosted)
            })
            .inspect_err(|why| {
                tracing::error!(
                    area = "groups",
                    "{group:?}: this node's member is damaged: {why:?}"
                )
            })
    }

    /// Whether everything is there that the member has ever answered for.
    fn check(&self, log: &NodeLog, identity: &Identity) -> Result<(), NotOpened> {
        let group = identity.group.0;
        let of_group = |kind| matches!(kind, Kind::GROUP | Kind::HARD_STATE | Kind::MEMBER);
        let lost = log.recovery().damage.iter().find(|damage| {
            damage
                .journal
                .is_none_or(|it| it.number == group && of_group(it.kind))
        });
        if let Some(lost) = lost {
            return Err(NotOpened::Unreadable(StorageError::Corrupt {
                file: lost.file.clone(),
                offset: lost.offset,
                journal: lost.journal,
                what: lost.what.clone(),
            }));
        }
        if self.unreadable > 0 {
            let what = format!(
                "{} records of {}",
                self.unreadable,
                member_journal(identity.group)
            );
            return Err(NotOpened::Unreadable(StorageError::Gone { what }));
        }
        let begin = self.kept.checkpoint.as_ref().map_or(0, |(_, head)| head.at.index);
        let needed = self.known.as_ref().map_or(begin, |known| known.at.index);
        let (first, last) = log.group_span(group).unwrap_or((begin + 1, begin));
        let last = last.max(begin);
        match () {
            () if last < needed => Err(NotOpened::Damaged(Damage::LostTail { last, needed })),
            () if last > begin && first > begin + 1 => Err(NotOpened::Damaged(Damage::Gap {
                last: begin,
                next: first,
            })),
            () => Ok(()),
        }
    }

    /// The machine, what its group is opened with, its own journal, and how far it has come.
    fn contents<M: QueueMachine<Ends>>(
        mut self,
        groups: &Arc<NodeGroups>,
        identity: Identity,
        settings: QueueSettings,
    ) -> Result<(M, Recovered, MemberJournal, Mark), NotOpened> {
        let Identity { group, me, members } = identity;
        let log = &groups.node().log;
        let mut recovered = match &self.kept.checkpoint {
            Some((_, head)) => Recovered::at(me, head.at, head.at.index, head.members.clone()),
            None => Recovered::new_group(me, members.clone()),
        };
        let known = self.known.unwrap_or(Head {
            at: Mark::default(),
            members,
        });
        recovered.known(known.at.index, known.members.clone());
        if !self.promise.is_empty() {
            recovered.promise(&self.promise).map_err(NotOpened::Damaged)?;
        }
        let mut damage = None;
        let mut show = |payload: Vec<u8>| {
            recovered.entry(&Bytes::from(payload)).map_err(|it| {
                damage = Some(it);
                StorageError::Gone {
                    what: "an entry that follows the one before".to_owned(),
                }
            })
        };
        let last = log.group_span(group.0).map_or(0, |(_, last)| last);
        let replay = Replay::<M>::new(settings, group, self.kept.clone(), known.at.index);
        let machine = replay.run_to(log, last, &mut show);
        let machine =
            machine.map_err(|error| damage.map_or(NotOpened::Unreadable(error), NotOpened::Damaged))?;
        let (segments, owner) = (&groups.node().segments, member_journal(group));
        for place in machine.places() {
            if !segments.adopt(owner, stored_place(place)) {
                tracing::error!(area = "groups", "{owner}: messages in {place:?} are missing");
            }
        }
        // What is not there any more was given back, or is fetched again.
        let is_there = |spare: &Stored| segments.adopt(owner, stored_place(spare.place));
        self.kept.spares.retain(is_there);
        let own = MemberJournal::new(groups.clone(), group, self.kept, known.members, known.at.index);
        Ok((machine, recovered, own, known.at))
    }
}
