//! What is brought to a node's groups, and whom it concerns.

use super::member::{Member, News};
use super::rejected_frames::RejectedFrames;
use super::standing::Standing;
use super::transfer;
use bytes::Bytes;
use cluster::{Committed, Disk, Event, GroupId, Groups, NodeId};
use std::collections::BTreeMap;
use std::sync::Arc;
use storage::Position;

/// What is brought to the groups.
pub enum Mail {
    Frame(NodeId, Bytes),
    Tick(Disk),
    Synced(u64),
    Suspect(NodeId),
    Propose(GroupId, u64, Vec<Bytes>),
    Prove(GroupId, u64),
    Read(GroupId, u64, Option<Vec<Bytes>>),
    Bulk(NodeId, Bytes),
    Installed(GroupId, u64),
    Checkpointed(GroupId, u64, u64),
    Reclaim(Vec<GroupId>, Position),
    LeadElsewhere(GroupId),
    Abstain(GroupId),
    TellCommits(GroupId),
}
impl Mail {
    /// Whether it says how far the durable contents go of this group's member here.
    pub fn is_of_contents(&self, group: GroupId) -> bool {
        matches!(self, Self::Installed(of, _) | Self::Checkpointed(of, ..) if *of == group)
    }
}

/// The groups, and how each of their members stands.
pub struct State {
    pub groups: Groups,
    pub standings: BTreeMap<GroupId, Standing>,
    pub rejected: Arc<RejectedFrames>,
}
impl State {
    /// Takes what was brought.
    pub fn take(&mut self, mail: Mail, concerned: &mut Concerned) {
        if let Mail::Bulk(from, frame) = mail {
            return self.take_bulk(from, &frame, concerned);
        }
        let Self {
            groups,
            standings,
            rejected,
        } = self;
        match mail {
            Mail::Frame(from, frame) => {
                if let Err(why) = groups.receive(from, &frame) {
                    rejected.tell(from, "groups", format_args!("a frame is rejected: {why:?}"));
                }
            }
            Mail::Tick(disk) => {
                groups.disk(disk);
                groups.tick();
            }
            Mail::Synced(number) => groups.synced(number),
            Mail::Suspect(peer) => groups.suspect(peer),
            Mail::Propose(group, term, records) => {
                if let Some(standing) = standings.get_mut(&group) {
                    standing.propose(group, term, records, groups);
                }
            }
            Mail::Prove(group, term) => {
                if let Some(standing) = standings.get_mut(&group) {
                    standing.prove(group, term, groups);
                }
            }
            Mail::Read(group, from, Some(payloads)) => groups.fetched(group, from, &payloads),
            Mail::Read(group, from, None) => self.unreadable(group, from, concerned),
            Mail::LeadElsewhere(group) => drop(groups.hand_over_group(group)),
            Mail::Abstain(group) => groups.abstain(group),
            Mail::TellCommits(group) => groups.tell_commits(group),
            Mail::Installed(group, index) => {
                if !groups.installed(group, index) {
                    tracing::debug!(
                        area = "groups",
                        "{group:?}: contents at {index} are not waited for"
                    );
                }
            }
            Mail::Checkpointed(group, index, keep) => groups.checkpointed(group, index, keep),
            Mail::Reclaim(of, before) => of
                .into_iter()
                .for_each(|group| concerned.tell_one(group, standings, News::Reclaim(before))),
            Mail::Bulk(..) => {}
        }
    }

    /// Entries that another member lacks are gone from the log, or damaged. The log begins behind the last checkpoint then,
    /// so that the member is sent contents; if there is no such checkpoint, one is to be taken.
    fn unreadable(&mut self, group: GroupId, from: u64, concerned: &mut Concerned) {
        self.groups.checkpointed(group, 0, u64::MAX);
        self.groups.fetched(group, from, &[]);
        let base = self.groups.status(group).map_or(0, |status| status.base.index);
        if base < from {
            concerned.tell_one(group, &self.standings, News::Checkpoint);
        }
    }

    /// A peer of which an earlier start than this is known is gone, and what it says counts no more.
    fn take_bulk(&mut self, from: NodeId, frame: &Bytes, concerned: &mut Concerned) {
        let Some((group, bulk)) = transfer::read_header(from, frame) else {
            let line = format_args!("what it sends of contents can't be read");
            return self.rejected.tell(from, "groups", line);
        };
        match self.groups.incarnation_of(from) {
            Some(known) if bulk.incarnation >= known => {
                concerned.tell_one(group, &self.standings, News::Bulk(bulk))
            }
            known => tracing::warn!(
                area = "groups",
                "node {} of start {} speaks of contents; known is {known:?}",
                from.0,
                bulk.incarnation
            ),
        }
    }

    /// Tells the members what a turn brought. Whether that made the groups have something to say.
    pub fn hand_out(
        &mut self,
        committed: Vec<Committed>,
        events: Vec<Event>,
        concerned: &mut Concerned,
        read: &mut dyn FnMut(GroupId, u64, u64),
    ) -> bool {
        let mut more = false;
        // First who leads: what is committed under another leader than the one that decided it, is not for the latter to let go.
        for event in &events {
            self.tell_first(event, concerned);
        }
        let Self {
            groups, standings, ..
        } = self;
        let mut committed = committed.into_iter().peekable();
        while let Some(group) = committed.peek().map(|first| first.group) {
            let of_group = std::iter::from_fn(|| committed.next_if(|next| next.group == group));
            match standings.get_mut(&group) {
                Some(standing) => {
                    let news = standing.committed(of_group);
                    concerned.tell(group, standing, news);
                    more |= standing.go_on(group, groups);
                }
                None => of_group.for_each(drop),
            }
        }
        for event in events {
            more |= self.tell_last(event, concerned, read);
        }
        more
    }

    /// Who leads and who the members are.
    fn tell_first(&mut self, event: &Event, concerned: &mut Concerned) {
        let Self {
            groups, standings, ..
        } = self;
        match event {
            Event::Leader { group, term, leader } => {
                if let Some(standing) = standings.get_mut(group) {
                    let here = groups.status(*group).map(|status| status.me);
                    let news = standing.led(*term, *leader, here);
                    concerned.tell(*group, standing, news);
                }
            }
            Event::Members {
                group,
                index,
                members,
            } => {
                let (index, members) = (*index, members.clone());
                concerned.tell_one(*group, standings, News::Members { index, members });
            }
            _ => {}
        }
    }

    /// Everything else that happened beside what is committed. Whether that made the groups have something to say.
    fn tell_last(
        &mut self,
        event: Event,
        concerned: &mut Concerned,
        read: &mut dyn FnMut(GroupId, u64, u64),
    ) -> bool {
        let Self {
            groups, standings, ..
        } = self;
        match event {
            Event::Read { group, from, to } => read(group, from, to),
            Event::Proven { group, question, .. } => {
                if let Some(standing) = standings.get_mut(&group) {
                    let news = standing.proven(question);
                    concerned.tell(group, standing, news);
                }
            }
            Event::Unproven { group, question } => {
                if let Some(standing) = standings.get_mut(&group) {
                    return standing.unproven(group, question, groups);
                }
            }
            Event::Checkpoint(group) => concerned.tell_one(group, standings, News::Checkpoint),
            Event::Removed(group) => concerned.tell_one(group, standings, News::Removed),
            Event::Fetch {
                group,
                from,
                at,
                members,
            } => concerned.tell_one(group, standings, News::Fetch { from, at, members }),
            Event::Lost { .. }
            | Event::Gone { .. }
            | Event::Unknown { .. }
            | Event::Suspected(_)
            | Event::Heard(_) => concerned.observed.push(event),
            // What was not taken is dropped with the machine that decided it: its member has been told by now.
            Event::Leader { .. } | Event::Members { .. } | Event::Returned { .. } => {}
        }
        false
    }
}

/// Whom a turn concerns: members, each once, and what the observer is told.
#[derive(Default)]
pub struct Concerned {
    pub members: BTreeMap<GroupId, Arc<dyn Member>>,
    pub observed: Vec<Event>,
}

impl Concerned {
    fn tell(&mut self, group: GroupId, standing: &Standing, news: Vec<News>) {
        if !news.is_empty()
            && let Some(member) = standing.member.upgrade()
        {
            member.tell(news);
            self.members.insert(group, member);
        }
    }

    /// One member is told one thing.
    pub fn tell_one(&mut self, group: GroupId, standings: &BTreeMap<GroupId, Standing>, news: News) {
        if let Some(standing) = standings.get(&group) {
            self.tell(group, standing, vec![news]);
        }
    }
}
