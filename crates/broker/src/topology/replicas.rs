//! Queues that several nodes have: this node's copies of them, and their handles.

use super::Topology;
use crate::groups::membership::steps_to;
use crate::groups::{Found, Identity, NodeGroups, NotOpened, Starting, handover};
use crate::node::ends::Ends;
use crate::queues::{
    Follower, Handle, Queue, QueueJournal, QueueType, Replica, Shared, group_of, queue_type,
};
use catalog::Member;
use cluster::{MemberId, Membership, NodeId};
use model::{QueueId, QueueSettings};
use queue::Request;
use queue::fifo::Classic;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

/// A member of a queue's group that is being started.
pub(crate) type StartingReplica = Starting<Classic<Ends>>;

/// The member as its group knows it.
fn member_id(member: Member) -> Option<MemberId> {
    Some(MemberId {
        node: NodeId(u32::try_from(member.node.0).ok()?),
        life: member.life,
    })
}

impl Topology {
    /// This node's groups, if it is one of several.
    pub(crate) fn groups(&self) -> Option<&Arc<NodeGroups>> {
        self.shared.get().map(|shared| shared.groups())
    }

    /// Begins to start this node's copy: of what the log has of it, or a new one. A node that is to have none any more has its
    /// own until the others do without it.
    pub(crate) fn begin_replica(
        &self,
        known: &catalog::Queue,
        settings: QueueSettings,
        found: Found,
    ) -> Option<Result<StartingReplica, NotOpened>> {
        let me = known.last_member(self.own_node());
        let me = me.filter(|me| !me.is_gone || found.has_begun());
        let (groups, me) = self.groups().zip(me)?;
        let founders = known
            .founders
            .iter()
            .filter_map(|node| member_id(Member::first(*node)));
        let founders: Vec<MemberId> = founders.collect();
        let identity = Identity {
            group: group_of(known.id),
            me: member_id(me)?,
            members: Membership::of(&founders),
        };
        Some(found.begin(groups, identity, settings))
    }

    /// A queue that several nodes have exists: the handle of it, and this node's copy, if it is to have one.
    pub(crate) fn start_shared(
        &self,
        known: &Arc<catalog::Queue>,
        settings: &QueueSettings,
        starting: Option<Result<StartingReplica, NotOpened>>,
    ) {
        let replica = queue_type(known.kind).zip(starting);
        let replica = replica.and_then(|(made, starting)| self.open_replica(known, made, settings, starting));
        let remote = self.peers.get().and_then(|peers| peers.follow());
        self.registry.insert(Handle::Shared(Arc::new(Shared {
            known: known.clone(),
            remote,
            replica: replica.clone(),
        })));
        // It may lead by now.
        if let Some((queue, peers)) = replica.zip(self.peers.get()) {
            peers.led(&queue);
        }
        self.unsettled().insert(known.id);
    }

    /// Other nodes have copies of the queue than before, as the catalog knows it: this one begins one, or waits until the
    /// others do without it.
    pub(super) fn follow_members(&self, known: &Arc<catalog::Queue>, settings: &QueueSettings) {
        let Some(Handle::Shared(shared)) = self.registry.get(known.id) else {
            return;
        };
        let mut replica = shared.replica.clone();
        let wanted = known.member(self.own_node());
        if let Some((wanted, queue)) = wanted.zip(replica.as_ref())
            && queue.replica().is_some_and(|it| it.life() != wanted.life)
        {
            self.give_up(queue);
            replica = None;
        }
        if wanted.is_some() && replica.is_none() {
            let found = match shared.replica.is_some() {
                true => Found::of_another(),
                false => Found::default(),
            };
            let starting = self.begin_replica(known, settings.clone(), found);
            let starting = queue_type(known.kind).zip(starting);
            replica =
                starting.and_then(|(made, starting)| self.open_replica(known, made, settings, starting));
        }
        self.registry.replace(Handle::Shared(Arc::new(Shared {
            known: known.clone(),
            remote: shared.remote.clone(),
            replica,
        })));
        self.unsettled().insert(known.id);
    }

    /// This node's copy is of no use any more.
    fn give_up(&self, queue: &Arc<Queue>) {
        if let Some(groups) = self.groups() {
            queue.retire();
            handover::renounce(groups, group_of(queue.id), Some(queue.segments()));
        }
    }

    fn unsettled(&self) -> MutexGuard<'_, BTreeSet<QueueId>> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tick of the clock: groups of queues get the members that they are to have, one change after the other.
    pub(crate) fn settle(&self) {
        let due = std::mem::take(&mut *self.unsettled());
        let left = due.into_iter().filter(|id| !self.is_settled(*id));
        let left: Vec<QueueId> = left.collect();
        self.unsettled().extend(left);
    }

    /// Does what this node can do now for a queue to have the members that it is to have. True if nothing is left to do here.
    fn is_settled(&self, id: QueueId) -> bool {
        let (Some(Handle::Shared(shared)), Some(groups)) = (self.registry.get(id), self.groups()) else {
            return true;
        };
        let Some(queue) = &shared.replica else { return true };
        let (known, status) = (&shared.known, groups.status(group_of(id)));
        let stays = known.member(self.own_node()).is_some();
        if !stays && status.as_ref().is_none_or(|status| status.is_removed) {
            self.give_up(queue);
            self.registry.replace(Handle::Shared(Arc::new(Shared {
                known: known.clone(),
                remote: shared.remote.clone(),
                replica: None,
            })));
            return true;
        }
        let Some(status) = status.filter(|_| queue.is_led_here()) else {
            return stays;
        };
        let wanted: Vec<MemberId> = known.members().filter_map(member_id).collect();
        let steps = steps_to(&wanted, &status.members);
        for step in &steps {
            if groups.change(group_of(id), &[*step]).is_ok() {
                tracing::info!(area = "groups", "{queue:?}: members of its group: {step:?}");
                break;
            }
        }
        steps.is_empty() && stays
    }

    fn open_replica(
        &self,
        known: &Arc<catalog::Queue>,
        made: &'static dyn QueueType,
        settings: &QueueSettings,
        starting: Result<StartingReplica, NotOpened>,
    ) -> Option<Arc<Queue>> {
        let nothing = made.start(QueueSettings::default(), QueueJournal::None);
        let queue = Queue::new(known, made, nothing, self.node.clone(), self.queue_events.clone());
        if settings.deduplicates {
            queue.compare();
        }
        let follower = Follower::of(&queue);
        let opened = starting.and_then(|starting| starting.finish(follower.act()));
        let opened = opened.inspect_err(|why| {
            tracing::error!(
                area = "groups",
                "{queue:?}: this node's copy is damaged, and takes part in nothing: {why:?}"
            );
        });
        let me = known.last_member(self.own_node())?;
        queue.follow(Replica::new(opened.ok()?, follower, me.life));
        let memory = self.queue_memory.load(Ordering::Relaxed);
        if memory > 0 {
            queue.submit(Request::Store(queue::store::Request::Shrink { memory }));
        }
        Some(queue)
    }

    /// A new queue is led where it was declared.
    pub(super) fn lead_new(&self, known: &catalog::Queue) {
        if let Some(groups) = self.groups() {
            groups.begin(group_of(known.id), known.home == self.own_node());
        }
    }

    /// The queue is deleted: those who use it here are told, and this node's copy goes.
    pub(super) fn stop_shared(&self, shared: &Shared) {
        if let Some(remote) = &shared.remote {
            remote.deleted(shared.known.id);
        }
        if let Some((queue, groups)) = shared.replica.as_ref().zip(self.groups()) {
            queue.retire();
            handover::forget(groups, group_of(queue.id), Some(queue.segments()));
        }
    }

    /// This node has joined the others: queues that several nodes have are reached by them from now on.
    pub(super) fn reach_shared(&self) {
        let Some(peers) = self.peers.get() else { return };
        for shared in self.registry.shared() {
            self.registry.replace(Handle::Shared(Arc::new(Shared {
                known: shared.known.clone(),
                remote: peers.follow(),
                replica: shared.replica.clone(),
            })));
        }
        for queue in self.registry.copies() {
            peers.led(&queue);
        }
    }

    /// Of a queue of which this node has a copy, another one leads than before, or none does.
    pub(crate) fn led(&self, queue: &Arc<Queue>) {
        self.unsettled().insert(queue.id);
        if let Some(peers) = self.peers.get() {
            peers.led(queue);
        }
    }
}
