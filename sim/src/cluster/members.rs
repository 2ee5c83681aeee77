//! Who has a copy of which queue: members are added, removed and replaced, and leaderships handed over.

use super::invariants::members;
use super::ledger::Leadership;
use super::nodes::Cluster;
use cluster::{GroupId, MemberId, Membership, NodeId, Step};

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
        let terms = self.terms[&group].clone();
        for member in now.members() {
            let node = &mut self.nodes[member.node.0 as usize - 1];
            if node.me() != member || node.groups.contains(&group) {
                continue;
            }
            if let Err(what) = node.join(group, &terms) {
                let what = format!("{group:?}, {member}: {what}");
                self.ledger.violated("a member begins", what);
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
        let me = self.node(node).me();
        !self.members_of(group).members().any(|member| member == me)
    }

    /// Some leader hands its leadership over.
    pub fn transfer_some(&mut self) {
        let Some(by) = self.some_leader() else { return };
        let voters = self.members_of(by.group).voters;
        if !voters.is_empty() {
            let to = voters[self.random.below(voters.len() as u64) as usize];
            let handed = self.node(by.node).transfer(by.group, to);
            self.ledger
                .tell(|| format!("{by:?} hands over to {to}: {handed:?}"));
        }
    }

    /// Whoever leads something.
    pub fn some_leader(&mut self) -> Option<Leadership> {
        let all = self.leaderships();
        (!all.is_empty()).then(|| all[self.random.below(all.len() as u64) as usize])
    }

    /// A node becomes a member, or is one no more, for good.
    pub fn change_some(&mut self) {
        let Some(by) = self.some_leader() else { return };
        let members = self.members_of(by.group);
        let node = NodeId(1 + self.random.below(self.nodes.len() as u64) as u32);
        let is_member = |member: MemberId| member.node == node;
        let was_member = self.ledger.books.get(&by.group).is_some_and(|book| {
            let mut all = book.members.values().flat_map(|members| members.members());
            all.any(is_member)
        });
        let step = match members.members().find(|member| is_member(*member)) {
            Some(member) if members.voters.len() > 3 => Step::Remove(member),
            None if !was_member => Step::Voter(self.node(node.0).me()),
            _ => return,
        };
        let changed = self.node(by.node).change(by.group, &[step]);
        self.ledger.tell(|| format!("{by:?} is to {step:?}: {changed:?}"));
        let other = members.voters.iter().find(|voter| voter.node != node);
        if let (Ok(()), Some(other)) = (changed, other) {
            self.refuses_another(by, Step::Remove(*other));
        }
    }

    /// While a change is under way, which needs others to come through, there is no second one.
    fn refuses_another(&mut self, by: Leadership, step: Step) {
        let changed = self.node(by.node).change(by.group, &[step]);
        if changed.is_ok() {
            let what = format!("{by:?} is to {step:?}, too");
            self.ledger.violated("one change of members at a time", what);
        }
    }

    /// Whoever leads replaces members whose disks are lost.
    pub fn replace_lost(&mut self) {
        for by in self.leaderships() {
            let members = self.members_of(by.group);
            let is_lost = |member: &MemberId| self.node(member.node.0).me() != *member;
            let lost = members.members().find(is_lost);
            if let Some(lost) = lost {
                let new = self.node(lost.node.0).me();
                let steps = [Step::Remove(lost), Step::Voter(new)];
                let changed = self.node(by.node).change(by.group, &steps);
                self.ledger
                    .tell(|| format!("{by:?} is to have {new} for {lost}: {changed:?}"));
            }
        }
    }

    /// The disk of a node is lost, where the others have everything: no other one is missing, and no change is under way.
    pub fn wipe(&mut self, id: u32) {
        let groups: Vec<GroupId> = self.terms.keys().copied().collect();
        let is_whole = |group: &GroupId| {
            let now = self.members_of(*group);
            let knows = |member: MemberId| {
                let node = self.node(member.node.0);
                let running = node.running.as_ref();
                let status = running.and_then(|it| it.alone.groups.status(*group));
                let agrees = status.is_some_and(|status| status.members == now);
                node.me() == member && (node.id == id || agrees)
            };
            !now.is_joint() && now.voters.len() >= 3 && now.members().all(knows)
        };
        if groups.iter().all(is_whole) {
            self.end(id, true);
            self.ledger.tell(|| format!("the disk of node {id} is lost"));
            self.node_mut(id).wipe();
        }
    }
}
