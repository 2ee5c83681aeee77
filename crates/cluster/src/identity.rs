//! The numbers of nodes, groups and members.

use std::fmt;

/// A node: a process with a data directory. Numbers begin with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A replicated journal. A number is never used twice, whatever it was of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u64);

/// A node's copy of a group.
///
/// A node that lost what it once had (its disk was wiped, or an old state of it was restored) comes back with a later
/// `life`, as a member that has promised nothing: as its old self it could vote twice in a term, and it would count for
/// entries that it no longer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId {
    pub node: NodeId,
    pub life: u32,
}

impl MemberId {
    /// The first member that a node is.
    pub const fn first(node: NodeId) -> Self {
        Self { node, life: 0 }
    }

    /// As the number that votes and messages carry; never 0, since no node is.
    pub const fn number(self) -> u64 {
        (self.life as u64) << 32 | self.node.0 as u64
    }

    /// The member of this number; `None` for 0 and other numbers of no node.
    pub const fn from_number(number: u64) -> Option<Self> {
        let node = number as u32;
        if node == 0 {
            return None;
        }
        let life = (number >> 32) as u32;
        Some(Self {
            node: NodeId(node),
            life,
        })
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.life {
            0 => write!(f, "{}", self.node.0),
            life => write!(f, "{}.{life}", self.node.0),
        }
    }
}

/// A number that looks random and is the same for the same input: what spreads elections over groups without a random source.
pub(crate) fn spread(seed: u64, number: u64) -> u64 {
    let mut mixed = seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_read_from_its_number_and_no_member_has_the_number_0() {
        let member = MemberId {
            node: NodeId(3),
            life: 2,
        };
        assert_eq!(MemberId::from_number(member.number()), Some(member));
        assert_eq!(MemberId::from_number(0), None);
        assert_eq!(MemberId::from_number(7 << 32), None);
        assert_ne!(MemberId::first(NodeId(3)).number(), member.number());
    }
}
