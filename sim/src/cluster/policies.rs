//! Policies change while queues work. Nodes hear of it one after the other, as their catalogs do, and whoever leads next is given
//! what its own node knows before it decides anything.

use super::exercised::Deed;
use super::mutant::Mutant;
use super::nodes::Cluster;
use cluster::{GroupId, Membership};
use model::QueueSettings;
use queue::Request;

/// With what a node opens its member of a group: the settings that it knows, and who the members are at the beginning.
pub type Opening = (QueueSettings, Membership);

/// A node hears of a new policy in one round of so many.
const HEARS_ONE_IN: u64 = 30;

impl Cluster {
    /// The policy of some queue becomes another one.
    pub fn change_policy(&mut self) {
        let several = self.terms.iter().filter(|(_, terms)| terms.policies() > 1);
        let groups: Vec<GroupId> = several.map(|(group, _)| *group).collect();
        if groups.is_empty() {
            return;
        }
        let group = groups[self.random.below(groups.len() as u64) as usize];
        let version = self.random.below(self.terms[&group].policies() as u64) as usize;
        self.put_policy(group, version);
    }

    fn put_policy(&mut self, group: GroupId, version: usize) {
        let Some(terms) = self.terms.get_mut(&group).filter(|it| it.now() != version) else {
            return;
        };
        terms.begin(version);
        if let Some(book) = self.ledger.books.get_mut(&group) {
            book.terms.begin(version);
        }
        self.ledger
            .tell(|| format!("{group:?} is under its policy {version}"));
    }

    /// Nodes hear of policies that they do not know yet.
    pub fn hear_policies(&mut self) {
        for group in self.terms.keys().copied().collect::<Vec<_>>() {
            let now = self.terms[&group].now();
            for node in self.ids() {
                if self.known_version(node, group) != now
                    && self.node(node).goes_on()
                    && self.random.below(HEARS_ONE_IN) == 0
                {
                    self.know_policy(node, group, now);
                }
            }
        }
    }

    /// All nodes know all policies. The queue of the dead is full no more.
    pub fn know_all_policies(&mut self) {
        for group in self.terms.keys().copied().collect::<Vec<_>>() {
            if group == super::terms::DEAD {
                self.put_policy(group, self.terms[&group].policies() - 1);
            }
            let now = self.terms[&group].now();
            for node in self.ids() {
                if self.known_version(node, group) != now {
                    self.know_policy(node, group, now);
                }
            }
        }
    }

    fn known_version(&self, node: u32, group: GroupId) -> usize {
        self.known_policies.get(&(node, group)).copied().unwrap_or(0)
    }

    fn know_policy(&mut self, node: u32, group: GroupId, version: usize) {
        self.known_policies.insert((node, group), version);
        let settings = self.known_settings(node, group);
        let of_node = &self.nodes[node as usize - 1];
        if of_node.configure(group, settings) {
            self.ledger.exercised(Deed::PolicyChanged);
        }
    }

    /// What a node knows to be in force.
    pub fn known_settings(&self, node: u32, group: GroupId) -> QueueSettings {
        let version = self.known_version(node, group);
        self.terms[&group].version(version).clone()
    }

    /// With what a node opens a member.
    pub fn opening(&self, node: u32, group: GroupId) -> Opening {
        (self.known_settings(node, group), self.terms[&group].members())
    }

    /// A node has begun to lead: what its machine was made with may be long ago.
    pub fn set_before_all(&self, node: u32, group: GroupId, term: u64) {
        if Mutant::OldSettings.is_on() {
            return;
        }
        let settings = Box::new(self.known_settings(node, group));
        self.node(node)
            .submit_in(group, term, vec![Request::Configure { settings }]);
    }
}
