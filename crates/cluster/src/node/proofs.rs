//! Rounds of proof: whether nobody else leads is asked of each peer once for all groups that want to know.
//!
//! A peer that has not seen a later term has voted in none, so when a majority says so after the question, nobody else
//! had been elected before it. Nothing is written for that, and a group that sleeps sleeps on.

use super::Groups;
use crate::frame::{Item, PARTS_LIMIT, Question};
use crate::group::{Event, Out, Refused};
use crate::identity::{GroupId, MemberId, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// A question for each of them fits into a frame.
const GROUPS_A_ROUND: usize = PARTS_LIMIT / 8;

#[derive(Debug)]
struct Asked {
    /// The number of the question.
    number: u64,
    group: GroupId,
    term: u64,
    /// What was committed when it was asked.
    index: u64,
    /// Who was asked; a member that came later was not.
    members: Vec<MemberId>,
    answered: Vec<MemberId>,
}

impl Asked {
    fn unproven(&self) -> Event {
        let (group, question) = (self.group, self.number);
        Event::Unproven { group, question }
    }
}

struct Round {
    number: u64,
    age: u32,
    asked: Vec<Asked>,
}

#[derive(Default)]
pub(super) struct Proofs {
    last: u64,
    questions: u64,
    wanted: Vec<Asked>,
    rounds: Vec<Round>,
}

impl Proofs {
    /// Rounds of one start of the node have other numbers than those of another: what is answered late is of no round then.
    pub fn new(incarnation: u64) -> Self {
        Self {
            last: incarnation << 32,
            ..Self::default()
        }
    }

    pub fn tick(&mut self, timeout: u32, out: &mut Out) {
        for round in &mut self.rounds {
            round.age += 1;
        }
        for late in self.rounds.extract_if(.., |round| round.age > timeout) {
            let groups = late.asked.iter().map(Asked::unproven);
            out.events.extend(groups);
        }
    }

    /// Nothing can be proven any more.
    pub fn give_up(&mut self, out: &mut Out) {
        let rounds = std::mem::take(&mut self.rounds).into_iter();
        let asked = rounds.flat_map(|round| round.asked);
        let all = asked.chain(std::mem::take(&mut self.wanted));
        out.events.extend(all.map(|asked| asked.unproven()));
    }

    /// Nobody wants to know any more.
    pub fn forget(&mut self, group: GroupId) {
        self.wanted.retain(|asked| asked.group != group);
        for round in &mut self.rounds {
            round.asked.retain(|asked| asked.group != group);
        }
    }
}

impl Groups {
    /// Asks whether this node still leads the group. [`Event::Proven`] or [`Event::Unproven`] with the number of the
    /// question is the answer.
    ///
    /// # Errors
    /// It doesn't lead it, or hasn't yet committed anything in its term.
    pub fn prove(&mut self, group: GroupId) -> Result<u64, Refused> {
        if self.failed {
            return Err(Refused::Failed);
        }
        let (term, index) = self.slots.get(group).ok_or(Refused::Unknown)?.ask()?;
        self.proofs.questions += 1;
        let number = self.proofs.questions;
        self.proofs.wanted.push(Asked {
            number,
            group,
            term,
            index,
            members: Vec::new(),
            answered: Vec::new(),
        });
        Ok(number)
    }

    /// Begins a round for what was asked since the last turn; several, where one would be too long for a frame.
    pub(super) fn ask_for_proofs(&mut self) {
        let mut wanted = std::mem::take(&mut self.proofs.wanted);
        while !wanted.is_empty() {
            let rest = wanted.split_off(wanted.len().min(GROUPS_A_ROUND));
            self.begin_round(std::mem::replace(&mut wanted, rest));
        }
    }

    fn begin_round(&mut self, mut asked: Vec<Asked>) {
        self.proofs.last += 1;
        let number = self.proofs.last;
        let mut questions: BTreeMap<NodeId, Vec<Question>> = BTreeMap::new();
        for asked in &mut asked {
            let Some(group) = self.slots.get(asked.group) else {
                continue;
            };
            asked.members = group.membership().members().filter(|m| *m != group.me).collect();
            for member in &asked.members {
                let (group, term, to) = (asked.group, asked.term, member.number());
                questions
                    .entry(member.node)
                    .or_default()
                    .push(Question { group, to, term });
            }
        }
        for (node, questions) in questions {
            let round = number;
            self.out.send.push((node, Item::Ask { round, questions }));
        }
        self.proofs.rounds.push(Round {
            number,
            age: 0,
            asked,
        });
        self.settle(number);
    }

    /// A peer asks.
    pub(super) fn answer(&mut self, from: NodeId, round: u64, questions: &[Question]) {
        let holds = |question: &&Question| {
            let group = self.slots.get(question.group);
            group.is_some_and(|g| g.me.number() == question.to && g.term() <= question.term)
        };
        let deposed = questions.iter().filter(|q| !holds(q)).map(|q| q.group).collect();
        self.out.send.push((from, Item::Answer { round, deposed }));
    }

    /// A peer answers.
    pub(super) fn answered(&mut self, from: NodeId, number: u64, deposed: &[GroupId]) {
        let Some(round) = self.proofs.rounds.iter_mut().find(|r| r.number == number) else {
            return;
        };
        let deposed: BTreeSet<_> = deposed.iter().collect();
        for asked in round
            .asked
            .iter_mut()
            .filter(|asked| !deposed.contains(&asked.group))
        {
            for member in asked.members.iter().filter(|m| m.node == from) {
                if !asked.answered.contains(member) {
                    asked.answered.push(*member);
                }
            }
        }
        self.settle(number);
    }

    /// Tells of the groups of a round for which enough was said, or that are led elsewhere by now.
    fn settle(&mut self, number: u64) {
        let Some(at) = self.proofs.rounds.iter().position(|r| r.number == number) else {
            return;
        };
        let (slots, events) = (&self.slots, &mut self.out.events);
        self.proofs.rounds[at].asked.retain(|asked| {
            let led = slots.get(asked.group);
            let Some(group) = led.filter(|g| g.leads() && g.term() == asked.term) else {
                events.push(asked.unproven());
                return false;
            };
            let said = |member| member == group.me || asked.answered.contains(&member);
            let proven = group.membership().has_majority(said);
            #[cfg(any(test, feature = "mutants"))]
            let proven = proven || crate::mutant::Mutant::NoProof.is_on();
            if proven {
                let (group, question, index) = (asked.group, asked.number, asked.index);
                events.push(Event::Proven {
                    group,
                    question,
                    index,
                });
            }
            !proven
        });
        if self.proofs.rounds[at].asked.is_empty() {
            self.proofs.rounds.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{GROUP, Trial};

    #[test]
    fn a_late_answer_to_an_earlier_start_of_the_node_is_of_no_round() {
        let round_of = |incarnation| {
            let mut trial = Trial::new(3, 3);
            trial.start(1, 3, incarnation);
            let members = [1, 2, 3].map(|node| MemberId::first(NodeId(node)));
            let new = crate::Recovered::new_group(members[0], crate::Membership::of(&members));
            trial.node(1).open(GROUP, new).unwrap();
            trial.led_by(1);
            trial.node(1).prove(GROUP).unwrap();
            trial.settle();
            let asked = trial.said.iter().find_map(|(.., item)| match item {
                Item::Ask { round, .. } => Some(*round),
                _ => None,
            });
            asked.unwrap()
        };
        assert_ne!(round_of(1), round_of(2));
    }
}
