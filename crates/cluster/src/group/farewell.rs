//! Members that are none any more, and how they learn it.
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
use crate::membership::Membership;
use crate::record::Mark;
use crate::{Event, GroupId};
use raft::eraftpb::{Message, MessageType};

impl Group {
    /// What a member is told that is none as far as is known here.
    pub fn farewell(&self, member: u64) -> Option<Gone> {
        let known = self.membership().members().any(|m| m.number() == member);
        #[cfg(any(test, feature = "mutants"))]
        let known = known || crate::mutant::Mutant::NoFarewell.is_on();
        let index = self.applied();
        match self.term_at(index) {
            Some(term) if !known && index > 0 => Some(Gone::Told(Mark { index, term })),
            _ => None,
        }
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

    /// Tells those who are members no more with this entry.
    pub(super) fn say_farewell(&self, at: Mark, members: &Membership, out: &mut Out) {
        #[cfg(any(test, feature = "mutants"))]
        if crate::mutant::Mutant::NoFarewell.is_on() {
            return;
        }
        let stays = |member: &MemberId| members.members().any(|m| m == *member);
        for member in self.membership().members().filter(|m| !stays(m) && *m != self.me) {
            let (group, to, gone) = (self.id, member.number(), Gone::Told(at));
            out.send.push((member.node, Item::Gone { group, to, gone }));
        }
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
