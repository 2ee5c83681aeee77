//! Groups of readers ([`Groups`]) of a stream that several nodes have: the node that leads decides who is active, and has names
//! of its own for readers of others.
//!
//! Nothing of it is on record. Each side says the whole of what it knows of a group, with a number, until the other one has
//! said that it heard that: whatever word is lost, the next one makes up for it. Every word names the leader's term, and what
//! is of an earlier term than was ever heard of does not count.
//!
//! - A node that follows says which of its readers are in a group, and which of them read (`joined`); so it does every
//!   [`SAID_AGAIN_MS`], and sooner what was not heard. Readers of which nothing is heard for [`ANSWERED_WITHIN_MS`] are ended:
//!   their clients look again.
//! - The node that leads answers which one of them is active (`far`). Readers of a node that says nothing for [`SILENT_MS`]
//!   are gone, those of one that cannot be spoken to after [`DOWN_MS`].
//! - With its first reader in a term it asks all others whether anybody reads by an earlier leader's word, and nobody is active
//!   before they have said that nobody does, or count as down ([`DOWN_MS`]; [`SILENT_MS`] if they could be spoken to). Who is
//!   asked ends those that read first, if it has not heard of that term before.
//!
//! | Step done | Then | There afterwards |
//! |---|---|---|
//! | a reader has joined, and its node says so | that is lost | it says so again |
//! | the leader knows it | another one leads | all nodes end their readers as soon as they know; the next leader waits for them |
//! | the same | the same one leads again, in another term | the same: it asks, and names that |
//! | the same | its node does not hear of the leader for a moment, and ends its readers | it says who is in the group now |
//! | the same | the link breaks | its node ends its readers; until it has said so, or counts as down, the leader counts on them |
//! | the same | its node starts again | the same |
//! | the same | its node has no copy any more | it says that nobody is in the group; if that is lost, it is silent |
//! | the leader has another one be active | its word is lost | the node's next word is answered |
//! | it has told the one before to step down | its word, or the answer, is lost | the same; the next one waits |
//! | the same | an answer is late, from before that word | it does not show the word's number, and does not count |
//! | a word is under way | another one leads | it names an earlier term |
//! | another one leads | the one before does not know | if it cannot be asked, it has no majority, and steps down in time |
//! | the same | a node still follows the one before | it is asked, ends who reads, and hears the one before no more |

mod far;
mod joined;
#[cfg(test)]
mod tests;

use super::asked::GroupWord;
use super::groups::{Groups, Update};
use far::Far;
use joined::Joined;
use model::ConsumerId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What was not heard is said again after so long, in milliseconds.
const AGAIN_MS: u64 = 500;

/// A node says who is in its groups each time so long has passed, in milliseconds: whatever the leader believes of it is put
/// right by that.
pub const SAID_AGAIN_MS: u64 = 5_000;

/// A node ends readers of a group of which the leader says nothing for so long, in milliseconds.
pub const ANSWERED_WITHIN_MS: u64 = 12_000;

/// A leader waits so long for a node that can be spoken to and says nothing, in milliseconds. Then its readers are gone: their
/// node has ended them before.
pub const SILENT_MS: u64 = 20_000;

/// A node that cannot be spoken to counts as down after so long, in milliseconds: by then it has seen itself that it is cut off
/// from the leader, or that it leads no more.
pub const DOWN_MS: u64 = 2_000;

/// So many readers of a group a node has at most that it says something of; others wait until some of these leave.
pub const READERS_MOST: usize = 10_000;

/// What is to be done on this node.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GroupOrders {
    /// Tell these, some of which are the leader's names for readers of other nodes.
    pub updates: Vec<Update>,
    /// These are in no group any more, and are told that it is over.
    pub ended: BTreeSet<ConsumerId>,
    /// So are all, and those who publish: another node leads, and this one does not know yet.
    pub all_end: bool,
}

/// The other nodes, for whoever has something to say.
pub trait Others {
    /// Those that have a copy of the stream.
    fn nodes(&mut self) -> Vec<u32>;

    /// One of them hears this, if it is not lost. False if it cannot be spoken to.
    fn say(&mut self, node: u32, word: GroupWord) -> bool;

    /// A name that no reader has.
    fn name(&mut self) -> ConsumerId;
}

/// What one node knows of groups, beside [`Groups`], which are of use where it leads. Times are in milliseconds.
#[derive(Debug, Default)]
pub struct SharedGroups {
    /// The node that leads, if it is known and another one.
    leader: Option<u32>,
    /// The term in which this one leads.
    leads: Option<u64>,
    /// The latest term of which a leader was heard, or this node was it.
    term: u64,
    /// Whose word that was, if this node has followed it since who leads was last another one. If nobody's, no reader here is
    /// active.
    followed: Option<u32>,
    joined: Joined,
    far: Far,
}

impl SharedGroups {
    /// Who leads is another one, or in another term: `leads` is that of this node, if it does. All readers here were ended, and
    /// `groups` are nobody's any more.
    pub fn led(&mut self, leader: Option<u32>, leads: Option<u64>, groups: &mut Groups, now_ms: u64) {
        *groups = Groups::held();
        (self.leader, self.leads, self.followed) = (leader, leads, None);
        self.far.begin(now_ms);
        self.joined.end_all(now_ms);
        if let Some(term) = leads {
            self.term = self.term.max(term);
            self.joined.forget();
        }
    }

    /// True if this node decides.
    pub fn leads(&self) -> bool {
        self.leads == Some(self.term)
    }

    /// Who is told what readers here want; `None` if this node leads, or nobody knows.
    pub fn leader(&self) -> Option<u32> {
        match self.leads {
            Some(term) if term == self.term => None,
            Some(_) => self.followed,
            None => self.leader,
        }
    }

    /// A reader here joins a group, and this node does not lead.
    pub fn join(&mut self, reader: ConsumerId, group: &Arc<[u8]>, partition: Option<u32>, now_ms: u64) {
        self.joined.join(reader, group, partition, now_ms);
    }

    /// A reader here reads no more.
    pub fn leave(&mut self, reader: ConsumerId, now_ms: u64) {
        self.joined.leave(reader, now_ms);
    }

    /// It has heard that it is not active any more, and this node does not lead.
    pub fn stepped_down(&mut self, reader: ConsumerId, now_ms: u64) {
        self.joined.stepped_down(reader, now_ms);
    }

    /// This node has no copy any more: what is to be said once.
    pub fn retire(&mut self, others: &mut dyn Others, now_ms: u64) {
        self.joined.end_all(now_ms);
        if let Some(leader) = self.leader() {
            self.joined.say(self.term_of(leader), now_ms, &mut |word| {
                others.say(leader, word);
            });
        }
        *self = Self::default();
    }

    /// The term that this node follows this one in; 0 if it has not said so.
    fn term_of(&self, leader: u32) -> u64 {
        match self.followed == Some(leader) {
            true => self.term,
            false => 0,
        }
    }

    /// Another node says something.
    pub fn hear(
        &mut self,
        node: u32,
        word: GroupWord,
        now_ms: u64,
        groups: &mut Groups,
        others: &mut dyn Others,
        orders: &mut GroupOrders,
    ) {
        match word {
            GroupWord::Leads { term } => {
                if self.follows(node, term, now_ms, groups, orders) {
                    others.say(node, GroupWord::Follows { term });
                }
            }
            GroupWord::Active {
                term,
                group,
                number,
                heard,
                reader,
            } => {
                if term == self.term && self.followed == Some(node) {
                    let said = (number, heard, reader);
                    self.joined.hear(&group, said, now_ms, &mut orders.updates);
                }
            }
            GroupWord::Lost => {
                self.far.lost(node, now_ms);
                if self.leader() == Some(node) || self.followed == Some(node) {
                    orders.ended.append(&mut self.joined.end_all(now_ms));
                    self.followed = None;
                }
            }
            GroupWord::Follows { term } | GroupWord::Members { term, .. }
                if !self.leads() || term != self.term =>
            {
                if self.leads() {
                    let term = self.term;
                    others.say(node, GroupWord::Leads { term });
                }
            }
            GroupWord::Follows { .. } => self.far.follows(node),
            GroupWord::Members {
                group,
                partition,
                number,
                heard,
                readers,
                ..
            } => {
                self.far.follows(node);
                let said = far::Said {
                    partition,
                    number,
                    heard,
                    readers: &readers,
                };
                let updates = &mut orders.updates;
                self.far
                    .hear((node, group), &said, now_ms, groups, others, updates);
            }
        }
    }

    /// A node says that it leads in this term: true if this one follows it.
    fn follows(
        &mut self,
        node: u32,
        term: u64,
        now_ms: u64,
        groups: &mut Groups,
        orders: &mut GroupOrders,
    ) -> bool {
        if term < self.term || self.leads == Some(term) {
            return false;
        }
        if term == self.term && self.followed.is_some() {
            return self.followed == Some(node);
        }
        if self.leads() {
            // Not any more, though it does not know yet.
            *groups = Groups::held();
            self.far.begin(now_ms);
            orders.all_end = true;
        } else if self.followed.is_some() {
            orders.ended.append(&mut self.joined.end_reading(now_ms));
        }
        (self.term, self.followed) = (term, Some(node));
        self.joined.begin();
        true
    }

    /// Who leads has these told next, so far as they are of other nodes.
    pub fn tell(&mut self, updates: &[Update]) {
        self.far.tell(updates);
    }

    /// What is due by now. What comes of it for readers of other nodes is to be [told](Self::tell), and then [said](Self::say).
    pub fn settle(
        &mut self,
        now_ms: u64,
        groups: &mut Groups,
        others: &mut dyn Others,
        orders: &mut GroupOrders,
    ) {
        if self.leads() {
            self.far
                .settle(self.term, now_ms, groups, others, &mut orders.updates);
        } else if self.leader().is_some() {
            orders.ended.append(&mut self.joined.take_unanswered(now_ms));
        }
    }

    /// Says what is to be said by now.
    pub fn say(&mut self, now_ms: u64, groups: &Groups, others: &mut dyn Others) {
        if self.leads() {
            self.far.say(self.term, groups, others);
        } else if let Some(leader) = self.leader() {
            let term = self.term_of(leader);
            self.joined.say(term, now_ms, &mut |word| {
                others.say(leader, word);
            });
        }
    }

    /// When [`settle`](Self::settle) and [`say`](Self::say) are to be called; `u64::MAX` for never, 0 for now.
    pub fn wakes_at_ms(&self, groups: &Groups) -> u64 {
        if self.leads() {
            self.far.wakes_at_ms(groups)
        } else if self.leader().is_some() {
            self.joined.wakes_at_ms()
        } else {
            u64::MAX
        }
    }
}
