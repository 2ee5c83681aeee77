//! Who has a copy of which queue: members are added, removed and replaced, and leaderships handed over.

use super::coverage::Fault;
use super::exercised::Deed;
use super::invariants::members;
use super::ledger::Leadership;
use super::node::Node;
use super::nodes::Cluster;
use cluster::{GroupId, MemberId, Membership, Step};

impl Cluster {
    /// Somebody tells who the members of a group are.
    pub fn members_changed(&mut self, group: GroupId, index: u64, now: Membership) {
        let before = self.members_of(group);
        members::changed(&mut self.ledger, group, index, now.clone());
        // Who lags behind tells what was so before.
        if now == before || now != self.members_of(group) {
            return;
        }
        self.ledger
            .tell(|| format!("the members of {group:?} are {now:?} from {index} on"));
        let running = self.nodes.iter().filter_map(|node| node.running.as_ref());
        let ends = running.filter_map(|it| Some(it.alone.groups.status(group)?.last));
        let logged = ends.max().unwrap_or(0);
        if let Some(book) = self.ledger.books.get_mut(&group) {
            book.sealed_behind = logged;
        }
        for member in now.members() {
            let opening = self.opening(member.node.0, group);
            let node = &mut self.nodes[member.node.0 as usize - 1];
            if node.me(group) != member || node.groups.contains(&group) {
                continue;
            }
            match node.join(group, &opening) {
                Ok(true) => {}
                Ok(false) => self.ledger.counts.rot.found_at_start += 1,
                Err(what) => {
                    let what = format!("{group:?}, {member}: {what}");
                    self.ledger.violated("a member begins", what);
                }
            }
        }
    }

    fn members_of(&self, group: GroupId) -> Membership {
        let book = self.ledger.books.get(&group);
        let last = book.and_then(|book| book.members.last_key_value());
        last.map(|(_, members)| members.clone()).unwrap_or_default()
    }

    /// Whether a node that is told so is really no member any more: one that was added just now, and has nothing yet, is
    /// told that by members that don't know of it.
    pub fn is_removed(&self, group: GroupId, node: u32) -> bool {
        let me = self.node(node).me(group);
        !self.members_of(group).members().any(|member| member == me)
    }

    /// Some leader hands its leadership over.
    pub fn transfer_some(&mut self) {
        if let Some(by) = self.some_leader() {
            self.hand_over(by);
        }
    }

    /// This node hands over what it leads, this group rather than another one. False if it leads nothing.
    pub fn transfer_on(&mut self, node: u32, group: GroupId) -> bool {
        let by = self.leadership_on(node, group);
        by.is_some_and(|by| self.hand_over(by))
    }

    fn leadership_on(&self, node: u32, group: GroupId) -> Option<Leadership> {
        let all = self.leaderships().into_iter();
        all.filter(|by| by.node == node)
            .min_by_key(|by| by.group != group)
    }

    fn hand_over(&mut self, by: Leadership) -> bool {
        let voters = self.members_of(by.group).voters;
        if voters.is_empty() {
            return false;
        }
        let to = voters[self.random.below(voters.len() as u64) as usize];
        self.struck(Fault::Transfer, &[by.node]);
        let handed = self.node(by.node).transfer(by.group, to);
        self.ledger
            .tell(|| format!("{by:?} hands over to {to}: {handed:?}"));
        true
    }

    /// Whoever leads something.
    pub fn some_leader(&mut self) -> Option<Leadership> {
        let all = self.leaderships();
        (!all.is_empty()).then(|| all[self.random.below(all.len() as u64) as usize])
    }

    /// Somebody becomes a member, another kind of member, or is one no more, for good; the leader, too.
    pub fn change_some(&mut self) {
        if let Some(by) = self.some_leader() {
            self.change(by);
        }
    }

    /// The same with a group that this node leads, this one rather than another one. False if nothing changes.
    pub fn change_on(&mut self, node: u32, group: GroupId) -> bool {
        let by = self.leadership_on(node, group);
        by.is_some_and(|by| self.change(by))
    }

    fn change(&mut self, by: Leadership) -> bool {
        let steps = self.some_steps(by.group);
        if steps.is_empty() {
            return false;
        }
        self.struck(Fault::Change, &[by.node]);
        let changed = self.node(by.node).change(by.group, &steps);
        self.ledger
            .tell(|| format!("{by:?} is to {steps:?}: {changed:?}"));
        if changed.is_ok() {
            self.refuses_another(by);
        }
        true
    }

    /// While a change is under way, which needs others to come through, there is no second one.
    fn refuses_another(&mut self, by: Leadership) {
        let members = self.members_of(by.group);
        let other = members.voters.iter().find(|voter| voter.node.0 != by.node);
        let step = other.map(|other| Step::Remove(*other));
        let changed = step.map(|step| self.node(by.node).change(by.group, &[step]));
        if changed.is_some_and(|changed| changed.is_ok()) {
            let what = format!("{by:?} is to {step:?}, too");
            self.ledger.violated("one change of members at a time", what);
        }
    }

    /// One step, or two in one change: somebody takes another one's place.
    fn some_steps(&mut self, group: GroupId) -> Vec<Step> {
        let members = self.members_of(group);
        let some = |cluster: &mut Self| 1 + cluster.random.below(cluster.nodes.len() as u64) as u32;
        let (one, other) = (some(self), some(self));
        let member_on = |node: u32| members.members().find(|member| member.node.0 == node);
        let was_member = |node: u32| {
            let book = &self.ledger.books[&group];
            let mut all = book.members.values().flat_map(|members| members.members());
            all.any(|member| member.node.0 == node)
        };
        let is_new = |node: u32| !was_member(node);
        // Where members change without a pause, one that has nothing yet may be the one that the others need.
        let has_begun = |member: &MemberId| {
            let status = self.node(member.node.0).running.as_ref();
            let status = status.and_then(|running| running.alone.groups.status(group));
            status.is_some_and(|status| status.last > 0)
        };
        if self.aim.is_some() && !members.voters.iter().all(has_begun) {
            return Vec::new();
        }
        let voters = members.voters.len();
        match (member_on(one), member_on(other)) {
            (Some(old), None) if is_new(other) && voters > 2 => {
                vec![Step::Remove(old), Step::Learner(self.node(other).me(group))]
            }
            (Some(old), Some(learner)) if old != learner && members.learners.contains(&learner) => {
                vec![Step::Remove(old), Step::Voter(learner)]
            }
            (Some(learner), _) if members.learners.contains(&learner) => vec![Step::Voter(learner)],
            (Some(voter), _) if voters > 3 && one < other => vec![Step::Learner(voter)],
            (Some(voter), _) if voters > 2 => vec![Step::Remove(voter)],
            (None, _) if is_new(one) => vec![Step::Learner(self.node(one).me(group))],
            (None, _) if !self.node(one).groups.contains(&group) && !self.loses_disks => {
                self.again(one, group)
            }
            _ => Vec::new(),
        }
    }

    /// A node was removed from the group, knows it, and is to be a member again: another one.
    fn again(&mut self, node: u32, group: GroupId) -> Vec<Step> {
        let me = self.node(node).me(group);
        let known = self.ledger.books[&group].members.values();
        let was_member = known
            .flat_map(|members| members.members())
            .any(|member| member == me);
        let next = match was_member {
            true => self.node_mut(node).comes_again(group),
            // Nobody has agreed to that yet.
            false => me,
        };
        self.ledger.exercised(Deed::MemberAgain);
        vec![Step::Learner(next)]
    }

    /// Whoever leads replaces members whose disks are lost.
    pub fn replace_lost(&mut self) {
        for by in self.leaderships() {
            let members = self.members_of(by.group);
            let is_lost = |member: &MemberId| self.node(member.node.0).me(by.group) != *member;
            let lost = members.members().find(is_lost);
            // Who takes the place of somebody else votes once it has what it needs.
            let takes_over = |member: &&MemberId| member.life > 0;
            let steps = match (lost, members.learners.iter().find(takes_over)) {
                (Some(lost), _) => {
                    let next = self.node(lost.node.0).me(by.group);
                    vec![Step::Remove(lost), Step::Learner(next)]
                }
                (None, Some(new)) => vec![Step::Voter(*new)],
                (None, None) => continue,
            };
            let changed = self.node(by.node).change(by.group, &steps);
            self.ledger
                .tell(|| format!("{by:?} is to {steps:?} for what was lost: {changed:?}"));
        }
    }

    /// The disk of a node is lost, where those of all other members are there and no change of members is under way, nor hardly
    /// over. False if it is not so.
    pub fn wipe(&mut self, id: u32) -> bool {
        let is_whole = self.is_whole_without(id);
        if is_whole {
            self.struck(Fault::DiskLost, &[id]);
            self.end(id, true);
            self.ledger.tell(|| format!("the disk of node {id} is lost"));
            self.node_mut(id).wipe();
        }
        is_whole
    }

    /// Whether all other members of all groups have what they ever had, so that a majority of the voters stays, whatever
    /// becomes of their processes. Who was lost before was replaced.
    pub fn is_whole_without(&self, id: u32) -> bool {
        let is_rotten = |node: &Node| node.id != id && node.is_rotten();
        if self.nodes.iter().any(is_rotten) {
            return false;
        }
        let is_whole = |group: &GroupId| {
            let is_there = |member: MemberId| self.node(member.node.0).me(*group) == member;
            let (now, book) = (self.members_of(*group), &self.ledger.books[group]);
            // Until then it may be the leader alone that knows of the change, and where there were two voters before it, the
            // other one needs the leader.
            let is_sealed = book.history.last() > book.sealed_behind;
            !now.is_joint() && is_sealed && now.voters.len() >= 3 && now.members().all(is_there)
        };
        self.terms.keys().all(is_whole)
    }
}
