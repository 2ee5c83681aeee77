//! The catalog's list of nodes, and how the members of its group follow from it.

use catalog::View;
use cluster::{MemberId, Membership, NodeId, Step};
use std::collections::BTreeSet;

/// A member of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub node: NodeId,
    /// Its name, such as `rabbit@n1`.
    pub name: String,
    /// Where it is dialled, at the host that its name ends with.
    pub port: u16,
}

impl Peer {
    /// The host that its name ends with.
    pub fn host(&self) -> &str {
        self.name.split_once('@').map_or(&self.name, |(_, host)| host)
    }
}

/// The members of the cluster, as the catalog has them.
pub fn peers(view: &View) -> Vec<Peer> {
    let joined = view.nodes().filter_map(|(node, known)| {
        Some(Peer {
            node: NodeId(node.0.try_into().ok()?),
            name: known.name.to_string(),
            port: known.joined()?.port,
        })
    });
    joined.collect()
}

/// The nodes that are in maintenance, as the catalog has them.
pub fn drained(view: &View) -> BTreeSet<NodeId> {
    let drained = view.nodes().filter(|(_, known)| known.is_drained);
    drained
        .filter_map(|(node, _)| Some(NodeId(node.0.try_into().ok()?)))
        .collect()
}

/// What is to be changed in the catalog's group, so that its members become those nodes that the catalog knows. Each is one
/// change, of which any may be impossible just now; the first that is possible is to be made. A node is a learner before it
/// votes.
pub fn next_steps(view: &View, members: &Membership) -> Vec<Step> {
    let known = view.nodes().filter(|(_, known)| !known.is_forgotten());
    let wanted: Vec<MemberId> = known
        .filter_map(|(node, _)| Some(MemberId::first(NodeId(node.0.try_into().ok()?))))
        .collect();
    let is_there = |member: &MemberId| members.members().any(|it| it == *member);
    let gone = members.members().filter(|member| !wanted.contains(member));
    let new = wanted.iter().filter(|member| !is_there(member));
    let learners = members.learners.iter().filter(|member| wanted.contains(member));
    gone.map(Step::Remove)
        .chain(learners.map(|member| Step::Voter(*member)))
        .chain(new.map(|member| Step::Learner(*member)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalog::{Catalog, Joined, NodeId as Number, Record};
    use model::{Machine, Outcome};

    /// So many nodes, of which these were forgotten.
    fn view(nodes: u64, forgotten: &[u64]) -> View {
        let mut catalog = Catalog::<()>::new();
        let mut apply = |record| catalog.apply(0, record, &mut Outcome::default());
        for node in 1..=nodes {
            let joined = Joined {
                port: 25_672,
                token: [node as u8; 16],
            };
            apply(Record::NodeJoined {
                node: Number(node),
                name: format!("rabbit@n{node}").into(),
                joined,
            });
        }
        for node in forgotten {
            apply(Record::NodeForgotten { node: Number(*node) });
        }
        catalog.view()
    }

    fn members(voters: &[u32], learners: &[u32]) -> Membership {
        let all = |nodes: &[u32]| nodes.iter().map(|node| member(*node)).collect();
        Membership {
            voters: all(voters),
            learners: all(learners),
            ..Membership::default()
        }
    }

    fn member(node: u32) -> MemberId {
        MemberId::first(NodeId(node))
    }

    #[test]
    fn a_node_learns_before_it_votes_and_one_that_is_forgotten_goes() {
        let three = view(3, &[]);
        let steps = next_steps(&three, &members(&[1], &[]));
        assert_eq!(steps, [Step::Learner(member(2)), Step::Learner(member(3))]);
        let steps = next_steps(&three, &members(&[1], &[2]));
        assert_eq!(steps, [Step::Voter(member(2)), Step::Learner(member(3))]);
        assert!(next_steps(&three, &members(&[1, 2, 3], &[])).is_empty());
        let steps = next_steps(&view(3, &[1]), &members(&[1, 2], &[3]));
        assert_eq!(steps, [Step::Remove(member(1)), Step::Voter(member(3))]);
        assert!(next_steps(&view(3, &[3]), &members(&[1, 2], &[])).is_empty());
    }

    #[test]
    fn members_are_those_that_are_not_forgotten_at_the_hosts_of_their_names() {
        let listed = peers(&view(2, &[1]));
        assert_eq!(listed.len(), 1);
        assert_eq!((listed[0].node, listed[0].host()), (NodeId(2), "n2"));
    }
}
