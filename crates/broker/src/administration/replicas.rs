//! How queues stand that several nodes have, and what operators change of that.

use crate::administration::administrator::Administrator;
use crate::administration::rebalance::{Asked, Told};
use crate::broker::Broker;
use crate::groups::CopyProgress;
use crate::queues::group_of;
use crate::topology::member_id;
use catalog::{NodeId, Queue, QueueKind, Refusal, Request};
use cluster::{Refused, Status};
use model::QueueId;
use std::collections::BTreeSet;

/// How a queue that several nodes have stands, as this node knows.
#[derive(Clone, Debug, Default)]
pub struct SharedStanding {
    /// Who leads it.
    pub leader: Option<NodeId>,
    /// The nodes that are to have it, and whether they can be reached.
    pub members: Vec<(NodeId, bool)>,
    /// Those of them that count for a majority: all of them, where this node has no copy and so does not know.
    pub voters: Vec<(NodeId, bool)>,
    /// This node's copy, if it has one.
    pub own: Option<OwnCopy>,
}

/// How far a node's copy is.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnCopy {
    pub leads: bool,
    /// It counts for a majority.
    pub votes: bool,
    pub term: u64,
    /// The last entry of its log, and its term.
    pub last: u64,
    pub last_term: u64,
    pub committed: u64,
    /// Of what stands up to here the log has no more than contents.
    pub base: u64,
}

impl OwnCopy {
    fn of(status: &Status) -> Self {
        Self {
            leads: status.leader == Some(status.me),
            votes: status.members.voters.contains(&status.me),
            term: status.term,
            last: status.last,
            last_term: status.last_term,
            committed: status.committed,
            base: status.base.index,
        }
    }
}

impl Broker {
    /// How a queue stands that several nodes have; `None` for all others.
    pub fn shared_standing(&self, queue: &Queue) -> Option<SharedStanding> {
        if !queue.is_shared() {
            return None;
        }
        let known = |node| (node, self.topology().reaches(node));
        let members: Vec<_> = queue.members().map(|it| known(it.node)).collect();
        let status = self.groups().and_then(|groups| groups.status(group_of(queue)));
        let voters = status.as_ref().map(|status| {
            let voters = status.members.voters.iter();
            voters.map(|it| known(NodeId(it.node.0.into()))).collect()
        });
        Some(SharedStanding {
            leader: self.topology().leader_of(queue),
            voters: voters.unwrap_or_else(|| members.clone()),
            members,
            own: status.map(|status| OwnCopy::of(&status)),
        })
    }

    /// Whether this node decides of a queue, and the queue is where its kind and its policy want it.
    pub fn is_in_place(&self, queue: &Queue) -> bool {
        self.topology().is_in_place(queue)
    }

    /// How far what this node's copy of a queue fetches of other nodes has come, if it does.
    pub fn copy_progress(&self, queue: QueueId) -> Option<CopyProgress> {
        self.queues().copy(queue)?.replica()?.progress()
    }

    /// How many segments the messages of this node's copy of a queue lie in, and how long its records take lately until a
    /// majority has them, in microseconds.
    pub fn copy_figures(&self, queue: QueueId) -> Option<(u64, u64)> {
        let copy = self.queues().copy(queue)?;
        let replica = copy.replica()?;
        let segments = copy.node().segments.owner_files(replica.segments());
        Some((segments as u64, replica.commit_latency_us()))
    }

    /// How many files the node's log has had since it was made, and how many bytes were written to it.
    pub fn log_written(&self) -> (u64, u64) {
        let log = &self.node().log;
        (log.files_made(), log.end().0)
    }

    /// This node, as the catalog knows it.
    pub fn own_node(&self) -> NodeId {
        self.topology().own_node()
    }

    /// The node that is to be asked about a queue: whoever leads it, as far as this one knows, or where it is.
    pub fn place_of(&self, queue: &Queue) -> NodeId {
        self.topology().leader_of(queue).unwrap_or(queue.home)
    }

    /// The nodes that leaders may be on: those that run, can be reached and are not in maintenance.
    pub fn may_lead(&self) -> BTreeSet<NodeId> {
        let view = self.view();
        let up = view.nodes().filter(|(node, known)| {
            known.joined().is_some()
                && known.is_running
                && !known.is_drained
                && self.topology().reaches(**node)
        });
        up.map(|(node, _)| *node).collect()
    }

    /// Does what is asked of this node about what it leads.
    pub fn lead_elsewhere(&self, asked: &Asked) -> Told {
        let begins = |(queue, to): &(QueueId, NodeId)| {
            let copy = self.queues().copy(*queue)?;
            let to = cluster::NodeId(u32::try_from(to.0).ok()?);
            let begins = self.groups()?.hand_over_to(copy.replica()?.group(), to);
            begins.then_some(*queue)
        };
        let begun = asked.moves.iter().filter_map(begins).collect();
        let is_led = |queue: &QueueId| self.queues().here(*queue).is_some();
        let leads = match &asked.of {
            Some(of) => of.iter().copied().filter(is_led).collect(),
            None => {
                let shared = self.queues().shared().into_iter();
                let led = shared.filter(|shared| shared.leader() == Some(self.own_node()));
                led.map(|shared| shared.known.id).collect()
            }
        };
        Told { begun, leads }
    }

    /// Has another node lead the queue, which this one leads.
    ///
    /// # Errors
    /// It does not lead it, or the other one cannot.
    pub fn hand_over_queue(&self, queue: &Queue, to: NodeId) -> Result<(), Refusal> {
        let refused = |reason: &str| Refusal::Internal {
            reason: reason.into(),
        };
        let member = queue
            .member(to)
            .ok_or_else(|| refused("the node is no member of the queue"))?;
        let to = member_id(member).ok_or_else(|| refused("there is no such node"))?;
        let groups = self.groups().ok_or_else(|| refused("the node is alone"))?;
        groups.transfer(group_of(queue), to).map_err(|why| match why {
            Refused::NotLeader(_) | Refused::NotYet => refused("nobody leads the queue at the moment"),
            Refused::Unknown => refused("the node has no copy of the queue"),
            _ => refused("the leader cannot be changed at the moment"),
        })
    }
}

impl Administrator<'_> {
    /// A node is to have a copy of a queue that several nodes have, or none any more. It follows by and by.
    ///
    /// # Errors
    /// There is no such queue or no such node, or nobody would have the queue.
    pub fn change_member(&self, queue: &Queue, node: NodeId, is_member: bool) -> Result<(), Refusal> {
        let id = queue.id;
        self.change(Request::ChangeMember { id, node, is_member })
    }

    /// A queue becomes one of another kind, in its place and by its name; where it is follows by and by
    /// ([`Broker::is_in_place`]). Nothing happens to one that is of that kind.
    ///
    /// # Errors
    /// There is no such queue, or it cannot be of that kind.
    pub fn convert_queue(&self, vhost: &str, name: &str, kind: QueueKind) -> Result<(), Refusal> {
        self.change(Request::ConvertQueue {
            vhost: vhost.into(),
            name: name.into(),
            kind,
        })
    }

    /// The queue goes on with this node's copy alone, since its majority is lost for good: what the others had beyond that is
    /// lost.
    ///
    /// # Errors
    /// The node has no copy of the queue, or the queue is not as it was looked at.
    pub fn refound_queue(&self, queue: &Queue, node: NodeId) -> Result<(), Refusal> {
        self.change(Request::RefoundQueue {
            id: queue.id,
            node,
            generation: queue.epoch.number,
        })
    }
}
