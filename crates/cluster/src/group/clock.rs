//! A group's time: elections, sleeping and waking. A group that sleeps isn't turned at all.

use super::{Group, Offer, Out};
use crate::frame::{Digest, Item};
use crate::identity::{MemberId, NodeId};
use crate::settings::Settings;
use raft::eraftpb::Message;
use raft::{Progress, ProgressState, SnapshotStatus, StateRole};
use std::collections::BTreeSet;

/// A member that serves nobody asks for votes once nobody has led for so many times as long as others wait.
const ABSTAINS_FOR: usize = 8;

/// In so many ticks after its leader's node was lost a member asks for votes each time.
const EARLY: u32 = 4;

/// How often a member asks whether it is one before it sleeps.
const ASKS: u32 = 8;

impl Group {
    pub fn wake(&mut self) {
        if !self.awake {
            self.awake = true;
            self.quiet = 0;
            self.raw.raft.election_elapsed = 0;
        }
    }

    /// A tick of a group that is awake. `reachable` tells whether a node is heard of; `yields` whether this one should not lead,
    /// and which nodes are in maintenance.
    pub fn tick(
        &mut self,
        settings: &Settings,
        reachable: &dyn Fn(NodeId) -> bool,
        yields: (bool, &BTreeSet<NodeId>),
        out: &mut Out,
    ) {
        match self.raw.raft.state {
            StateRole::Leader => self.tick_leader(settings, reachable, out),
            _ => self.tick_follower(settings, reachable, yields, out),
        }
    }

    fn tick_leader(&mut self, settings: &Settings, reachable: &dyn Fn(NodeId) -> bool, out: &mut Out) {
        self.raw.tick();
        let joint = self.membership().is_joint() && !self.raw.raft.has_pending_conf();
        if self.leads() && joint && self.raw.raft.lead_transferee.is_none() {
            // A leader that came into office within a change ends it; the library does so only where it began it itself.
            self.propose_collected();
            let _ = self
                .raw
                .propose_conf_change(Vec::new(), raft::eraftpb::ConfChangeV2::default());
        }
        if self.abstains && self.leads() {
            let me = self.me.node;
            self.hand_over(reachable, &|node| node == me || reachable(node), &|_| true);
        }
        self.tick_offers(settings, out);
        self.repeat_farewell(reachable, out);
        if !self.is_quiet(reachable) {
            self.quiet = 0;
            return;
        }
        self.quiet += 1;
        if self.quiet > settings.heartbeat {
            self.send_to_sleep(reachable, out);
        }
    }

    /// Says again what members were offered, since a frame may be lost: whoever fetches it already passes that over. After a
    /// while another one is offered.
    fn tick_offers(&mut self, settings: &Settings, out: &mut Out) {
        for mut offer in std::mem::take(&mut self.offered) {
            let Message { term, to, .. } = offer.message;
            let index = offer.message.get_snapshot().get_metadata().index;
            let waits = |of: &Progress| of.state == ProgressState::Snapshot && of.pending_snapshot == index;
            if term != self.term() || !self.raw.raft.prs().get(to).is_some_and(waits) {
                continue;
            }
            offer.age += 1;
            if offer.age >= settings.snapshot_timeout {
                self.raw.report_snapshot(to, SnapshotStatus::Failure);
                continue;
            }
            if offer.age.is_multiple_of(settings.snapshot_again)
                && let Some(member) = MemberId::from_number(to)
            {
                let again = Item::Raft(self.id, offer.message.clone());
                out.send.push((member.node, again));
            }
            self.offered.push(offer);
        }
    }

    /// Whether all reachable members have persisted and know as committed everything that there is.
    fn is_quiet(&self, reachable: &dyn Fn(NodeId) -> bool) -> bool {
        let raft = &self.raw.raft;
        let last = self.last();
        let rest =
            self.proposed.is_empty() && raft.lead_transferee.is_none() && !self.membership().is_joint();
        #[cfg(any(test, feature = "mutants"))]
        if crate::mutant::Mutant::SleepBehind.is_on() {
            return self.leads() && rest;
        }
        self.leads()
            && rest
            && self.committed() == last
            && self.applied() == last
            && !self.is_unsynced()
            && self
                .membership()
                .members()
                .all(|member| !reachable(member.node) || self.has_all(member))
            && self
                .membership()
                .has_majority(|member| member == self.me || reachable(member.node))
    }

    /// Whether the leader knows of nothing that this member lacks and could be given.
    fn has_all(&self, member: MemberId) -> bool {
        let number = member.number();
        let last = self.last();
        let has = |of: &Progress| of.matched == last && of.committed_index == last;
        member == self.me || self.lost.contains(&number) || self.raw.raft.prs().get(number).is_some_and(has)
    }

    /// The peer is heard of anew. A leader that fell asleep without it is awake until its member there has everything: that may
    /// not be open yet, and know of nobody then whom it could ask, so it is spoken to until it answers.
    pub fn miss(&mut self, node: NodeId) {
        let lacks_some = |member: MemberId| member.node == node && !self.has_all(member);
        if self.leads() && self.membership().members().any(lacks_some) {
            self.wake();
        }
    }

    fn send_to_sleep(&mut self, reachable: &dyn Fn(NodeId) -> bool, out: &mut Out) {
        let mut message = Message {
            from: self.me.number(),
            term: self.term(),
            index: self.last(),
            commit: self.committed(),
            ..Message::default()
        };
        for member in self.membership().members() {
            if member != self.me && reachable(member.node) {
                message.to = member.number();
                out.send
                    .push((member.node, Item::Sleep(self.id, message.clone())));
            }
        }
        self.sleep(out);
    }

    /// The leader says that everybody stands here and that it sleeps now.
    pub fn may_sleep(&mut self, message: &Message, out: &mut Out) {
        let here = (self.term(), self.last(), self.committed());
        let same = here == (message.term, message.index, message.commit);
        #[cfg(any(test, feature = "mutants"))]
        let same = same || crate::mutant::Mutant::SleepBehind.is_on();
        let leader = self.raw.raft.leader_id == message.from && message.to == self.me.number();
        // The heartbeat before it may have come in the same turn: what that says to be committed is not handed out yet.
        let applied = self.applied() == self.last();
        #[cfg(any(test, feature = "mutants"))]
        let applied = applied || crate::mutant::Mutant::SleepUnapplied.is_on();
        if same && leader && applied && !self.leads() && !self.is_unsynced() && self.installing.is_none() {
            self.sleep(out);
        }
    }

    /// It isn't turned any more until something wakes it.
    pub(super) fn rest(&mut self) {
        self.awake = false;
        self.campaign_in = None;
        self.attempts = 0;
    }

    /// Everything that there is has been applied: no body is needed any more.
    fn sleep(&mut self, out: &mut Out) {
        self.rest();
        self.raw.raft.election_elapsed = 0;
        self.raw.raft.maybe_free_inflight_buffers();
        let last = self.last();
        self.raw.mut_store().release(last, 0);
        self.uncommitted.shrink_to_fit();
        self.proposed.shrink_to_fit();
        self.unsynced.shrink_to_fit();
        self.raw.raft.msgs.shrink_to_fit();
        // After a start nobody has to be woken to learn that nothing has changed.
        if self.written.commit < last {
            self.write_promise(last, out);
        }
    }

    fn tick_follower(
        &mut self,
        settings: &Settings,
        reachable: &dyn Fn(NodeId) -> bool,
        yields: (bool, &BTreeSet<NodeId>),
        out: &mut Out,
    ) {
        let votes = self.has_a_vote();
        let chance = self.has_a_chance(reachable);
        self.raw.raft.election_elapsed += 1;
        let heard = self.raw.raft.election_elapsed < settings.election as usize;
        if !votes || !chance {
            if !heard && self.leader().is_some() {
                // A member that may not vote by what it knows may have to by what others know: a new voter that was
                // told nothing yet. It must not hold on to a leader of which it hears nothing, or it would refuse its
                // vote for ever.
                let term = self.term();
                self.raw.raft.become_follower(term, 0);
            }
            // Whoever could change that wakes it: a leader's message, or the peer that is heard again.
            self.campaign_in = None;
            self.quiet += 1;
            let silence = 2 * settings.election;
            let asks = self.is_lost(chance);
            let patient = self.quiet <= if asks { ASKS * silence } else { silence };
            self.awake = patient || self.is_unsynced() || self.installing.is_some();
            if asks && self.quiet.is_multiple_of(silence) {
                self.ask_after_itself(reachable, out);
            }
            return;
        }
        if heard && self.leader().is_some() {
            self.campaign_in = None;
        }
        match self.campaign_in {
            Some(0) if self.leaves_it_to_others(settings, reachable, yields) => {
                self.campaign_in = Some(settings.election)
            }
            // Others have answered that they would vote, and are asked to.
            Some(0) if self.early > 0 && self.raw.raft.state == StateRole::Candidate => {
                self.early = 0;
                self.campaign_in = Some(settings.election / 2 + self.pause(settings));
            }
            Some(0) if self.early > 0 => self.campaign_early(self.early - 1, settings),
            Some(0) => self.campaign(settings),
            Some(ticks) => self.campaign_in = Some(ticks - 1),
            None if self.raw.raft.election_elapsed >= settings.election as usize => {
                self.campaign_in = Some(self.pause(settings));
            }
            None => {}
        }
    }

    fn has_a_vote(&self) -> bool {
        self.raw.raft.promotable() && !self.removed
    }

    /// Whether a majority can be reached.
    fn has_a_chance(&self, reachable: &dyn Fn(NodeId) -> bool) -> bool {
        self.membership()
            .has_majority(|m| m == self.me || reachable(m.node))
    }

    /// Whether it does not ask for votes, since others can lead: its node should not, serves nobody, or is in maintenance.
    fn leaves_it_to_others(
        &self,
        settings: &Settings,
        reachable: &dyn Fn(NodeId) -> bool,
        (yields, drained): (bool, &BTreeSet<NodeId>),
    ) -> bool {
        let others = |m: MemberId| m != self.me && reachable(m.node);
        // Whoever serves nobody or is in maintenance waits until the others have asked in vain.
        yields && self.membership().has_majority(others)
            || (self.abstains || self.is_spared(reachable, drained))
                && self.raw.raft.election_elapsed < ABSTAINS_FOR * settings.election as usize
    }

    /// Its node is in maintenance, and another voter's is not.
    fn is_spared(&self, reachable: &dyn Fn(NodeId) -> bool, drained: &BTreeSet<NodeId>) -> bool {
        let serves = |m: &MemberId| reachable(m.node) && !drained.contains(&m.node);
        drained.contains(&self.me.node)
            && self
                .membership()
                .voters
                .iter()
                .any(|m| *m != self.me && serves(m))
    }

    /// It knows nobody who leads it, and nobody will come by himself to tell. It knows of no membership with itself: it was
    /// added, or removed, and what told it so may be lost. Or it has no vote to ask for, though there may be a leader
    /// (`chance`): a message that came late woke it, and its leader sleeps.
    fn is_lost(&self, chance: bool) -> bool {
        let mut members = self.membership().members();
        !self.removed && self.leader().is_none() && (chance || members.all(|m| m != self.me))
    }

    /// The members hear where it stands.
    fn ask_after_itself(&self, reachable: &dyn Fn(NodeId) -> bool, out: &mut Out) {
        for member in self.membership().members().filter(|m| reachable(m.node)) {
            out.send.push((member.node, Item::Digest(self.digest())));
        }
    }

    /// It asks for votes soon. Whoever asks for some, or has deposed it by a later term, lacks what it has and may never be
    /// elected. If he is all the same, that is known before: a tick is longer than messages take.
    pub(super) fn hasten(&mut self) {
        self.attempts = 0;
        let soon = 1 + self.late();
        self.campaign_in = Some(self.campaign_in.map_or(soon, |ticks| ticks.min(soon)));
    }

    /// The group is new. The first one to lead asks for votes at once, and again when another member says that it is there, since
    /// whoever has not opened the group yet gives none. The others do so only if nothing is heard of that one.
    pub fn begin(
        &mut self,
        is_first: bool,
        settings: &Settings,
        reachable: &dyn Fn(NodeId) -> bool,
        out: &mut Out,
    ) {
        if self.term() != 0 {
            return;
        }
        self.wake();
        self.begins = is_first;
        if is_first {
            self.campaign(settings);
            return;
        }
        self.campaign_in = Some(settings.election / 2 + self.late());
        self.ask_after_itself(reachable, out);
    }

    /// Another member of a new group, which this one is to lead first, is there.
    fn asks_again(&self) -> bool {
        let state = self.raw.raft.state;
        self.begins
            && self.leader().is_none()
            && matches!(state, StateRole::Follower | StateRole::PreCandidate)
    }

    /// Spread over four ticks, so that ten thousand groups don't ask at once.
    fn late(&self) -> u32 {
        (self.spread(1) % 4) as u32
    }

    /// How long it waits before it asks for votes, more after each time in vain.
    fn pause(&self, settings: &Settings) -> u32 {
        let range = settings.election << self.attempts.min(4);
        let mine = self.spread(self.attempts ^ (self.me.node.0 << 8));
        (mine % u64::from(range.max(1))) as u32
    }

    fn campaign(&mut self, settings: &Settings) {
        if self.is_unsynced() {
            // A lone voter would win before its log is synced.
            return;
        }
        self.attempts += 1;
        self.early = 0;
        let _ = self.raw.campaign();
        // In vain unless a leader is known before: then it is asked for again.
        self.campaign_in = Some(settings.election / 2 + self.pause(settings));
    }

    /// Asks at once. Whoever has not noticed yet that the leader is lost does not answer: then it asks again in each of the
    /// next ticks.
    fn campaign_early(&mut self, ticks: u32, settings: &Settings) {
        self.attempts = 0;
        self.campaign(settings);
        self.early = ticks;
        if ticks > 0 {
            self.campaign_in = Some(0);
        }
    }

    /// The peer is heard of anew: what was offered to it before may never have reached it. Whether anything was.
    pub fn offer_again(&mut self, node: NodeId) -> bool {
        let of_node = |offer: &mut Offer| offer.message.to as u32 == node.0;
        let lost: Vec<_> = self.offered.extract_if(.., of_node).collect();
        for offer in &lost {
            self.raw
                .report_snapshot(offer.message.to, SnapshotStatus::Failure);
        }
        !lost.is_empty()
    }

    /// The peer is suspected. Whoever was led from there has no leader from now on, or nobody would get a vote. For what is
    /// given see [`tick`](Self::tick); votes are asked for in `late` ticks, or at once.
    pub fn suspect(
        &mut self,
        node: NodeId,
        settings: &Settings,
        reachable: &dyn Fn(NodeId) -> bool,
        yields: (bool, &BTreeSet<NodeId>),
        late: u32,
    ) {
        for member in self
            .membership()
            .members()
            .filter(|m| m.node == node)
            .collect::<Vec<_>>()
        {
            self.raw.report_unreachable(member.number());
        }
        if self.leads() {
            if !self.has_a_chance(reachable) {
                self.wake();
            }
            return;
        }
        if self.leader().is_some_and(|leader| leader.node == node) {
            self.look_for_leader(reachable, late);
            let may = self.has_a_vote() && self.has_a_chance(reachable);
            let now = self.campaign_in == Some(0);
            if now && may && !self.leaves_it_to_others(settings, reachable, yields) {
                self.campaign_early(EARLY, settings);
            }
        }
    }

    /// There is no leader: one of the voters that are left asks soon, the others only if that comes to nothing.
    pub fn lose_leader(&mut self, reachable: &dyn Fn(NodeId) -> bool) {
        if !self.leads() {
            self.look_for_leader(reachable, self.late());
        }
    }

    fn look_for_leader(&mut self, reachable: &dyn Fn(NodeId) -> bool, late: u32) {
        let term = self.term();
        self.raw.raft.become_follower(term, 0);
        self.wake();
        let mut voters: Vec<MemberId> = self.membership().voters.clone();
        voters.retain(|m| *m == self.me || reachable(m.node));
        voters.sort_unstable();
        let Some(at) = voters.iter().position(|m| *m == self.me) else {
            return;
        };
        let first = self.spread(0) as usize % voters.len();
        let rank = (at + voters.len() - first) % voters.len();
        self.attempts = 0;
        self.campaign_in = Some(rank as u32 * 5 + late);
    }

    pub fn digest(&self) -> Digest {
        Digest {
            group: self.id,
            member: self.me.number(),
            term: self.term(),
            leader: self.raw.raft.leader_id,
            last: self.last(),
            commit: self.committed(),
        }
    }

    /// A peer stands elsewhere: what is missing is found out by being awake. Whether it leads there and has to be told, since it
    /// may sleep: whoever has no vote can't wake it by asking for some.
    pub fn compare(&mut self, digest: &Digest, settings: &Settings) -> bool {
        let member = digest.member;
        self.tell_later(member);
        if self.asks_again() {
            self.campaign(settings);
        }
        // Who is no member here and knows of nothing that is missing here disturbs nobody.
        let stranger = self.farewell(member).is_some() && digest.commit <= self.committed();
        if self.removed
            || stranger
            || *digest
                == (Digest {
                    member,
                    ..self.digest()
                })
        {
            return false;
        }
        self.wake();
        self.raw.ping();
        digest.leader == member && !self.leads()
    }

    /// Whether nobody leads, and it does not ask for votes soon: after many times in vain it would wait for long.
    pub fn lacks_leader(&self, settings: &Settings) -> bool {
        let is_soon = self.campaign_in.is_some_and(|ticks| ticks <= settings.election);
        !self.removed && self.raw.raft.leader_id == 0 && !is_soon
    }
}
