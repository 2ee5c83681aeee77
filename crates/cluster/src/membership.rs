//! Who the members of a group are, and how that changes.
//!
//! A change is an entry of the group. One that moves a single voter takes effect at once; one that moves several goes
//! through a joint membership, in which both majorities count, and leaves it by itself.

use crate::encoding::{Malformed, Reader, put_number};
use crate::identity::MemberId;
use raft::eraftpb::{ConfChangeSingle, ConfChangeType, ConfChangeV2, ConfState};

/// The most members that a list of a membership has, and the most steps of a change.
pub(crate) const MEMBERS_LIMIT: usize = 32;

/// The members of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Membership {
    /// Whose majority decides.
    pub voters: Vec<MemberId>,
    /// Who is sent everything and decides nothing.
    pub learners: Vec<MemberId>,
    /// While a change of several voters is under way: the voters before it, whose majority has to agree, too.
    pub outgoing: Vec<MemberId>,
    /// Voters of before who will be learners once the change is through.
    pub learners_next: Vec<MemberId>,
}

/// One step of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The member becomes a voter.
    Voter(MemberId),
    /// The member becomes a learner.
    Learner(MemberId),
    Remove(MemberId),
}

impl Membership {
    /// These voters and nobody else.
    pub fn of(voters: &[MemberId]) -> Self {
        Self {
            voters: voters.to_vec(),
            ..Self::default()
        }
    }

    /// Everybody, each once.
    pub fn members(&self) -> impl Iterator<Item = MemberId> + '_ {
        let second = self.outgoing.iter().filter(|m| !self.voters.contains(m));
        self.voters.iter().chain(&self.learners).chain(second).copied()
    }

    /// Whether it is a joint one.
    pub fn is_joint(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Whether `reachable` are enough to decide.
    pub fn has_majority(&self, mut reachable: impl FnMut(MemberId) -> bool) -> bool {
        let mut most =
            |voters: &[MemberId]| voters.iter().filter(|m| reachable(**m)).count() * 2 > voters.len();
        most(&self.voters) && (self.outgoing.is_empty() || most(&self.outgoing))
    }

    /// The library stops the process at a membership that can't be, so everything that comes from outside passes here.
    pub(crate) fn is_possible(&self) -> bool {
        let unique = |list: &[MemberId]| {
            list.len() <= MEMBERS_LIMIT && list.iter().enumerate().all(|(at, m)| !list[..at].contains(m))
        };
        let votes = |m: &MemberId| self.voters.contains(m) || self.outgoing.contains(m);
        let next = |m: &MemberId| self.outgoing.contains(m) && !self.voters.contains(m);
        !self.voters.is_empty()
            && [&self.voters, &self.learners, &self.outgoing, &self.learners_next]
                .iter()
                .all(|list| unique(list))
            && !self.learners.iter().any(votes)
            && self.learners_next.iter().all(next)
    }

    /// Appends it as bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for list in [&self.voters, &self.learners, &self.outgoing, &self.learners_next] {
            put_number(out, list.len() as u64);
            for member in list {
                put_number(out, member.number());
            }
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// It is not one, or one that can't be.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let membership = Self::read(&mut reader)?;
        match reader.is_empty() {
            true => Ok(membership),
            false => Err(Malformed::Trailing),
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut list = || {
            let count = reader.count(MEMBERS_LIMIT)?;
            (0..count).map(|_| member(reader)).collect::<Result<Vec<_>, _>>()
        };
        let membership = Self {
            voters: list()?,
            learners: list()?,
            outgoing: list()?,
            learners_next: list()?,
        };
        match membership.is_possible() {
            true => Ok(membership),
            false => Err(Malformed::Membership),
        }
    }

    pub(crate) fn to_state(&self) -> ConfState {
        let numbers = |list: &[MemberId]| list.iter().map(|m| m.number()).collect::<Vec<_>>();
        let mut state = ConfState::default();
        state.set_voters(numbers(&self.voters));
        state.set_learners(numbers(&self.learners));
        state.set_voters_outgoing(numbers(&self.outgoing));
        state.set_learners_next(numbers(&self.learners_next));
        state.auto_leave = self.is_joint();
        state
    }

    pub(crate) fn from_state(state: &ConfState) -> Self {
        let members = |numbers: &[u64]| {
            let mut list: Vec<_> = numbers.iter().filter_map(|n| MemberId::from_number(*n)).collect();
            list.sort_unstable();
            list
        };
        Self {
            voters: members(state.get_voters()),
            learners: members(state.get_learners()),
            outgoing: members(state.get_voters_outgoing()),
            learners_next: members(state.get_learners_next()),
        }
    }
}

fn member(reader: &mut Reader<'_>) -> Result<MemberId, Malformed> {
    MemberId::from_number(reader.number()?).ok_or(Malformed::Membership)
}

/// A change as the bytes of its entry. No steps are the end of a joint membership, which has no bytes.
pub(crate) fn encode_change(steps: &[Step]) -> Vec<u8> {
    let mut out = Vec::new();
    for step in steps {
        let (kind, member) = match step {
            Step::Voter(member) => (0, member),
            Step::Learner(member) => (1, member),
            Step::Remove(member) => (2, member),
        };
        out.push(kind);
        put_number(&mut out, member.number());
    }
    out
}

/// Reads a change.
pub(crate) fn decode_change(bytes: &[u8]) -> Result<Vec<Step>, Malformed> {
    let mut reader = Reader::new(bytes);
    let mut steps = Vec::new();
    while !reader.is_empty() {
        if steps.len() == MEMBERS_LIMIT {
            return Err(Malformed::Limit);
        }
        let kind = reader.byte()?;
        let member = member(&mut reader)?;
        steps.push(match kind {
            0 => Step::Voter(member),
            1 => Step::Learner(member),
            2 => Step::Remove(member),
            _ => return Err(Malformed::Unknown),
        });
    }
    Ok(steps)
}

/// A change in the library's words.
pub(crate) fn to_library(steps: &[Step]) -> ConfChangeV2 {
    let single = |step: &Step| {
        let (kind, member) = match step {
            Step::Voter(member) => (ConfChangeType::AddNode, member),
            Step::Learner(member) => (ConfChangeType::AddLearnerNode, member),
            Step::Remove(member) => (ConfChangeType::RemoveNode, member),
        };
        let mut single = ConfChangeSingle::default();
        single.set_change_type(kind);
        single.node_id = member.number();
        single
    };
    let mut change = ConfChangeV2::default();
    change.set_changes(steps.iter().map(single).collect::<Vec<_>>().into());
    change
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::NodeId;

    fn m(node: u32) -> MemberId {
        MemberId::first(NodeId(node))
    }

    #[test]
    fn memberships_and_changes_are_read_as_they_were_written() {
        let joint = Membership {
            voters: vec![m(1), m(2), m(4)],
            learners: vec![m(5)],
            outgoing: vec![m(1), m(2), m(3)],
            learners_next: vec![m(3)],
        };
        let mut bytes = Vec::new();
        joint.encode(&mut bytes);
        assert_eq!(Membership::decode(&bytes).as_ref(), Ok(&joint));
        assert_eq!(Membership::from_state(&joint.to_state()), joint);
        assert_eq!(joint.members().count(), 5);
        let steps = [Step::Voter(m(1)), Step::Learner(m(2)), Step::Remove(m(3))];
        assert_eq!(decode_change(&encode_change(&steps)).as_deref(), Ok(&steps[..]));
    }

    #[test]
    fn a_membership_that_cannot_be_is_refused() {
        let learner_who_votes = Membership {
            learners: vec![m(1)],
            ..Membership::of(&[m(1)])
        };
        let promised_but_never_voted = Membership {
            learners_next: vec![m(3)],
            ..Membership::of(&[m(1)])
        };
        for bad in [
            Membership::of(&[]),
            Membership::of(&[m(1), m(1)]),
            learner_who_votes,
            promised_but_never_voted,
        ] {
            let mut bytes = Vec::new();
            bad.encode(&mut bytes);
            assert_eq!(Membership::decode(&bytes), Err(Malformed::Membership), "{bad:?}");
        }
    }

    #[test]
    fn two_of_two_are_needed_and_a_joint_membership_needs_both_majorities() {
        let two = Membership::of(&[m(1), m(2)]);
        assert!(!two.has_majority(|one| one == m(1)));
        assert!(two.has_majority(|_| true));
        let joint = Membership {
            outgoing: vec![m(1), m(2), m(3)],
            ..Membership::of(&[m(1), m(4), m(5)])
        };
        assert!(!joint.has_majority(|one| one != m(2) && one != m(3)));
        assert!(joint.has_majority(|one| one != m(5) && one != m(3)));
    }
}
