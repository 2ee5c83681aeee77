//! Members that are none any more, and how they learn it.
//!
//! A removed member goes on voting until it is told that it is none. It has to: a change of members counts once it is
//! committed, and whoever loses its power before it has written that down goes by the members before. Of two members that
//! were three, or two others, both may; nobody would be elected without the one that left. So a leader puts an entry
//! behind each change, once that is committed. Whoever has that one has written down that the change is committed
//! (`Group::promise_members`), and without a majority that has it nobody is elected: once it is committed, those who left
//! are told so.
//!
//! A removed member is sent nothing more, not even that its removal is committed. It would ask for votes for ever: so
//! whoever it asks says at which committed entry it is no member. It believes that if its own log goes no further than
//! that entry, or goes on from it without another change of members: then nothing that it has can say that it was added
//! again. Contents that it was offered say so, too: a member that was added just now is told by all who lag behind that it is
//! none. A voter that alone has the newest entries is never
//! silenced so by a peer that lags behind.

use super::{Group, Out};
use crate::frame::{Gone, Item};
use crate::identity::{MemberId, NodeId};
use crate::membership::{MEMBERS_LIMIT, Membership};
use crate::record::Mark;
use crate::{Event, GroupId};
use raft::eraftpb::{Entry, Message, MessageType};

/// Who left is told so often, once a tick.
const TOLD: u32 = 4;

impl Group {
    /// What a member is told that is none as far as is known here.
    pub fn farewell(&self, member: u64) -> Option<Gone> {
        let known = self.membership().members().any(|m| m.number() == member);
        #[cfg(any(test, feature = "mutants"))]
        let known = known || crate::mutant::Mutant::NoFarewell.is_on();
        let index = self.applied();
        match self.term_at(index) {
            Some(term) if !known && self.is_sealed() => Some(Gone::Told(Mark { index, term })),
            _ => None,
        }
    }

    /// A peer asks who is no member, and is not to be told so yet.
    pub(super) fn tell_later(&mut self, member: u64) {
        let known = |m: &MemberId| m.number() == member;
        let is_told = self.is_sealed() || self.departed.iter().any(|(m, _)| known(m));
        if is_told || self.departed.len() >= MEMBERS_LIMIT || self.membership().members().any(|m| known(&m)) {
            return;
        }
        self.departed
            .extend(MemberId::from_number(member).map(|member| (member, 0)));
    }

    /// Whether an entry is committed that was written once the last change of members was known to be. What was proposed
    /// behind the change while it was under way may be in logs that say nothing of its commit.
    fn is_sealed(&self) -> bool {
        #[cfg(any(test, feature = "mutants"))]
        if crate::mutant::Mutant::LeavesAtOnce.is_on() {
            return self.applied() > 0;
        }
        self.applied() > self.raw.store().members_since().max(self.sealed_behind)
    }

    /// What its sender is to be told, and whether the message counts.
    ///
    /// A candidate that is no member here counts if its log goes further than what is applied here: a later entry may
    /// have made it one. Otherwise it would only wake the group. And what is for a member that this node was before it
    /// lost its disk is for nobody.
    pub fn judge(&self, message: &Message) -> (Option<Gone>, bool) {
        let addressed = MemberId::from_number(message.to);
        if addressed.is_some_and(|m| m.node == self.me.node && m.life < self.me.life) {
            return (Some(Gone::Addressed(message.to)), false);
        }
        let kind = message.get_msg_type();
        if !matches!(kind, MessageType::MsgRequestVote | MessageType::MsgRequestPreVote) {
            return (None, true);
        }
        let farewell = self.farewell(message.from);
        let counts = match farewell {
            Some(Gone::Told(at)) => (message.log_term, message.index) > (at.term, at.index),
            _ => true,
        };
        (farewell, counts)
    }

    /// These are the members from an entry on. Whoever is none of them any more is told so after another entry.
    pub(super) fn departs(&mut self, members: &Membership) {
        let stays = |member: &MemberId| members.members().any(|m| m == *member);
        self.departed.retain(|(member, _)| !stays(member));
        let departed: Vec<_> = self.membership().members().filter(|m| !stays(m)).collect();
        self.departed
            .extend(departed.into_iter().map(|member| (member, 0)));
        if self.leads() && !members.is_joint() {
            self.proposed.push(Entry::default());
        }
    }

    /// Tells those who are members no more.
    pub(super) fn say_farewell(&self, out: &mut Out) {
        self.say_farewell_to(|member| member != self.me, out);
    }

    /// The peer is heard of anew. Whoever left from there while nothing was heard of it may sleep, and follow a leader that
    /// sleeps.
    pub fn greet(&self, node: NodeId, out: &mut Out) {
        self.say_farewell_to(|member| member.node == node, out);
    }

    fn say_farewell_to(&self, is_meant: impl Fn(MemberId) -> bool, out: &mut Out) {
        if !self.leads() || !self.is_sealed() {
            return;
        }
        for (member, _) in self.departed.iter().filter(|(member, _)| is_meant(*member)) {
            let (group, to) = (self.id, member.number());
            if let Some(gone) = self.farewell(to) {
                out.send.push((member.node, Item::Gone { group, to, gone }));
            }
        }
    }

    /// Tells them again, since a frame may be lost.
    pub(super) fn repeat_farewell(&mut self, reachable: &dyn Fn(NodeId) -> bool, out: &mut Out) {
        if self.departed.is_empty() || !self.is_sealed() {
            return;
        }
        self.say_farewell(out);
        for (member, times) in &mut self.departed {
            *times += u32::from(reachable(member.node));
        }
        self.departed.retain(|(_, times)| *times < TOLD);
    }

    /// Tells the followers of a leader that is closed. Those who sleep would follow it for ever.
    pub fn say_closed(&self, out: &mut Out) {
        let (group, gone) = (self.id, Gone::Leader(self.me.number()));
        for member in self.membership().members() {
            if self.leads() && member != self.me {
                let to = member.number();
                out.send.push((member.node, Item::Gone { group, to, gone }));
            }
        }
    }

    /// A peer says that something is no more.
    pub fn told(
        &mut self,
        by: NodeId,
        to: u64,
        gone: Gone,
        reachable: &dyn Fn(NodeId) -> bool,
        out: &mut Out,
    ) {
        if to != self.me.number() {
            return;
        }
        let group: GroupId = self.id;
        match gone {
            Gone::Group => {
                out.events.push(Event::Gone { group, by });
                if !self.leads() && !self.is_unsynced() && self.installing.is_none() {
                    self.rest();
                }
            }
            // Said again when a later entry says it: what came before may have been from somebody who lags behind.
            Gone::Told(at) if self.is_after_all(at) && at.index > self.removed_at => {
                self.removed = true;
                self.removed_at = at.index;
                self.campaign_in = None;
                let term = self.term();
                self.raw.raft.become_follower(term, 0);
                out.events.push(Event::Removed(group));
            }
            Gone::Told(_) => {}
            Gone::Leader(number) => {
                if self
                    .leader()
                    .is_some_and(|l| l.node == by && l.number() == number)
                {
                    self.lose_leader(reachable);
                }
            }
            Gone::Addressed(number) => {
                let lost = self.membership().members().find(|m| m.number() == number);
                if let Some(member) = lost
                    && member.node == by
                    && self.leads()
                    && !self.lost.contains(&number)
                {
                    self.lost.push(number);
                    out.events.push(Event::Lost { group, member });
                }
            }
        }
    }

    /// Whether nothing in this log, and nothing that was offered in its place, can be a change of members after the entry.
    fn is_after_all(&self, at: Mark) -> bool {
        if self
            .wanted_snapshot()
            .is_some_and(|(_, offered, _)| offered.index >= at.index)
        {
            return false;
        }
        let last = self.last();
        let last_term = self.term_at(last).unwrap_or(u64::MAX);
        let has = self.term_at(at.index) == Some(at.term);
        at.index > 0
            && ((at.term, at.index) >= (last_term, last) || has && !self.raw.store().changes_after(at.index))
    }
}
