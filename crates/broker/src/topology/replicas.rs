//! Queues that several nodes have: this node's copies of them, and their handles.

use super::Topology;
use crate::groups::{Found, Identity, NodeGroups, NotOpened, handover, member_journal};
use crate::queues::streams::remove_closed;
use crate::queues::{
    Follower, Handle, Queue, QueueType, Replica, Shared, StartingMember, group_of, queue_type,
};
use catalog::{Member, QueueKind};
use cluster::{MemberId, Membership, NodeId, Status, Step};
use model::{Index, QueueId, QueueSettings};
use queue::Request;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

/// A member of a queue's group that is being started, or why it is not.
pub(crate) type StartingReplica = Result<StartingMember, NotOpened>;

/// The member as its group knows it.
pub(crate) fn member_id(member: Member) -> Option<MemberId> {
    Some(MemberId {
        node: NodeId(u32::try_from(member.node.0).ok()?),
        life: member.life,
    })
}

/// These members; but where one is to take the place of the only one that votes, that stays for as long as it is: nobody else
/// has what it has.
fn having_the_only_voter(wanted: &[MemberId], members: &Membership) -> Vec<MemberId> {
    let stays = |new: &MemberId| match members.voters[..] {
        [only] if only.node == new.node => only,
        _ => *new,
    };
    wanted.iter().map(stays).collect()
}

/// What is to be changed in a group so that these are its members, each of it one change, of which any may be impossible
/// just now. New members have everything before others go, so that there are never fewer copies than there are to be; but one
/// whose node cannot be reached helps nobody, and of one node there is never more than one: where one takes the place of an
/// earlier one of its node, that goes first, and nobody else goes before the new one has everything.
fn steps_to(wanted: &[MemberId], members: &Membership, is_reached: impl Fn(NodeId) -> bool) -> Vec<Step> {
    let wanted = &having_the_only_voter(wanted, members)[..];
    let is_there = |member: &MemberId| members.members().any(|it| it == *member);
    let gone = members.members().filter(|member| !wanted.contains(member));
    let (replaced, gone): (Vec<_>, Vec<_>) =
        gone.partition(|it| wanted.iter().any(|new| new.node == it.node));
    let learners = members.learners.iter().filter(|member| wanted.contains(member));
    let is_replaced = |new: &MemberId| replaced.iter().any(|it| it.node == new.node);
    let new = wanted.iter().filter(|new| !is_there(new) && !is_replaced(new));
    let all_vote = wanted.iter().all(|member| members.voters.contains(member));
    let gone = gone.into_iter().filter(|it| all_vote || !is_reached(it.node));
    let lacks_some = |new: &MemberId| !members.voters.contains(new) && !is_replaced(new);
    let first = replaced
        .iter()
        .copied()
        .filter(|_| !wanted.iter().any(lacks_some));
    first
        .map(Step::Remove)
        .chain(learners.map(|member| Step::Voter(*member)))
        .chain(new.map(|member| Step::Learner(*member)))
        .chain(gone.map(Step::Remove))
        .collect()
}

/// Whether nothing is to be changed for these to be the members.
pub(super) fn is_as_wanted(
    wanted: &[MemberId],
    members: &Membership,
    is_reached: impl Fn(NodeId) -> bool,
) -> bool {
    steps_to(wanted, members, is_reached).is_empty()
}

impl Topology {
    /// This node's groups, if it is one of several.
    pub(crate) fn groups(&self) -> Option<&Arc<NodeGroups>> {
        self.shared.get().map(|shared| shared.groups())
    }

    /// Begins to start this node's copy: of what the log has of it, or a new one; and which life of the node's it is. A node that
    /// is to have none any more, or another one, has its own until the others do without it.
    pub(crate) fn begin_replica(
        &self,
        known: &catalog::Queue,
        settings: QueueSettings,
        found: Found,
    ) -> Option<(u32, StartingReplica)> {
        let me = known.last_member(self.own_node());
        let me = me.filter(|me| !me.is_gone || found.has_begun() || found.has_answered());
        let (groups, me) = self.groups().zip(me)?;
        let id = member_id(me)?;
        let me = MemberId {
            life: found.life(id.node, id.life),
            ..id
        };
        let founders = known
            .founders
            .iter()
            .filter_map(|node| member_id(Member::first(*node)));
        let founders: Vec<MemberId> = founders.collect();
        let identity = Identity {
            group: group_of(known),
            me,
            members: Membership::of(&founders),
        };
        let settings = settings.of_several();
        let starting = match known.kind {
            QueueKind::Stream => {
                let starting = found.begin(groups, identity, settings);
                starting.map(|it| StartingMember::Stream(Box::new(it)))
            }
            _ => {
                let starting = found.begin(groups, identity, settings);
                starting.map(|it| StartingMember::Queue(Box::new(it)))
            }
        };
        Some((me.life, starting))
    }

    /// A queue that several nodes have exists: the handle of it, and this node's copy, if it is to have one.
    pub(crate) fn start_shared(
        &self,
        known: &Arc<catalog::Queue>,
        settings: &QueueSettings,
        starting: Option<(u32, StartingReplica)>,
    ) {
        let life = starting.as_ref().map(|(life, _)| *life);
        let replica = queue_type(known.kind).zip(starting);
        let replica = replica.and_then(|(made, starting)| self.open_replica(known, made, settings, starting));
        self.registry.insert(Handle::Shared(Arc::new(Shared {
            known: known.clone(),
            remote: None,
            damaged: life.filter(|_| replica.is_none()),
            replica: replica.clone(),
        })));
        // Whoever joins the others looks for what was there before.
        if let Some(peers) = self.peers.get() {
            let remote = peers.follow();
            self.registry.change(known.id, |shared| shared.remote = remote);
            // It may lead by now.
            replica.iter().for_each(|queue| peers.led(queue));
        }
        self.unsettled().insert(known.id);
    }

    /// Begins the copy that this node is to have and has not. Nothing counts of what it may have of an earlier life; one that is
    /// damaged is never opened again, for it would have promised what it does not know any more.
    fn begin_copy(&self, shared: &Shared, life: u32) {
        let known = &shared.known;
        let view = self.view();
        if let (Some(groups), true) = (self.groups(), life > 0) {
            let group = group_of(known);
            handover::renounce(groups, group, Some(member_journal(group)));
            handover::begins_anew(groups, group, life);
        }
        let settings = view.settings(known);
        let starting = self.begin_replica(known, settings.clone(), Found::of_life(life));
        let starting = queue_type(known.kind).zip(starting);
        let replica =
            starting.and_then(|(made, starting)| self.open_replica(known, made, &settings, starting));
        let opened = replica.clone();
        let is_there = self.registry.change(known.id, |shared| {
            shared.damaged = replica.is_none().then_some(life);
            shared.replica = replica;
        });
        match opened {
            Some(queue) if !is_there => self.give_up(&queue),
            Some(queue) => {
                // It may have been converted while its copy was opened.
                self.follow_kind(queue.id);
                self.led(&queue);
            }
            None => {}
        }
    }

    /// This node's copy is of no use any more.
    pub(super) fn give_up(&self, queue: &Arc<Queue>) {
        if let Some((groups, replica)) = self.groups().zip(queue.replica()) {
            queue.retire();
            handover::renounce(groups, replica.group(), Some(queue.segments()));
            replica.give_up();
            queue.forget_files();
        }
    }

    /// This node's copy can't be made anew of what it has: it takes part in nothing any more, as one that was found so at a
    /// start.
    pub(crate) fn copy_is_damaged(&self, id: QueueId) {
        let is_damaged = |queue: &mut Arc<Queue>| queue.replica().is_some_and(Replica::is_damaged);
        let mut copy = None;
        self.registry.change(id, |shared| {
            copy = shared.replica.take_if(is_damaged);
            let life = copy.as_ref().and_then(|queue| queue.replica()).map(Replica::life);
            shared.damaged = life.or(shared.damaged);
        });
        if let Some(queue) = copy {
            queue.retire();
        }
        self.is_unsettled(id);
    }

    /// The queue's group speaks to the member of this life that this node is to have and has not: so it does without an earlier
    /// one, of which what this node has can't be read. Before that it might have been the only copy.
    pub(crate) fn copy_is_awaited(&self, id: QueueId, life: u32) {
        let Some(Handle::Shared(shared)) = self.registry.get(id) else {
            return;
        };
        let is_wanted = shared
            .known
            .member(self.own_node())
            .is_some_and(|it| it.life == life);
        if is_wanted && shared.damaged.is_some_and(|damaged| damaged != life) {
            self.registry.change(id, |shared| shared.damaged = None);
            self.is_unsettled(id);
        }
    }

    /// The next tick looks at it.
    pub(super) fn is_unsettled(&self, queue: QueueId) {
        self.unsettled().insert(queue);
    }

    fn unsettled(&self) -> MutexGuard<'_, BTreeSet<QueueId>> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tick of the clock: this node begins and gives up copies as it is to have them, and groups that it leads get the members
    /// that they are to have, one change after the other. Nobody else does any of that.
    pub(crate) fn settle(&self) {
        self.look_for_mirrors();
        let due = std::mem::take(&mut *self.unsettled());
        let left = due.into_iter().filter(|id| !self.is_settled(*id));
        let left: Vec<QueueId> = left.collect();
        self.unsettled().extend(left);
    }

    /// Has those who are to be members say what they know of this one.
    fn ask_after(&self, shared: &Shared, me: MemberId) {
        let members = shared.known.members().filter_map(member_id).map(|it| it.node);
        let others: Vec<NodeId> = members.filter(|node| *node != me.node).collect();
        if let Some(groups) = self.groups() {
            groups.ask_after_itself(group_of(&shared.known), me, &others);
        }
    }

    /// Does what this node can do now for a queue to have the members that it is to have. True if nothing is left to do here.
    fn is_settled(&self, id: QueueId) -> bool {
        let has_mirrors = self.has_mirrors(id);
        self.has_members(id) && has_mirrors
    }

    fn has_members(&self, id: QueueId) -> bool {
        let (Some(Handle::Shared(shared)), Some(groups)) = (self.registry.get(id), self.groups()) else {
            return self.ends_refounding(id) && self.has_grown(id);
        };
        let is_own = |queue: &Arc<Queue>| queue.own_term().is_some();
        if shared.replica.as_ref().is_some_and(is_own) {
            return self.has_grown(id);
        }
        // Of a group that is over, the queue's home is who has everything.
        let is_over = |queue: &Arc<Queue>| {
            let group = queue.replica().map(Replica::group);
            group.is_some_and(|group| group != group_of(&shared.known))
        };
        let over = shared.replica.as_ref().filter(|queue| is_over(queue));
        if let Some(queue) = over.filter(|_| shared.known.epoch.is_refounded) {
            return self.leaves_generation(&shared, queue);
        }
        let is_over = over.is_some();
        if is_over && self.is_here(&shared.known) {
            return self.has_retreated(&shared);
        }
        let wanted = shared.known.member(self.own_node());
        let Some(queue) = &shared.replica else {
            return match (wanted, shared.damaged) {
                (None, _) => true,
                (Some(wanted), None) => {
                    self.begin_copy(&shared, wanted.life);
                    true
                }
                (Some(wanted), Some(damaged)) if wanted.life == damaged => true,
                // Until the others do without the one that can't be read, it may be the only one.
                (Some(wanted), Some(_)) => {
                    let me = member_id(wanted);
                    me.into_iter().for_each(|me| self.ask_after(&shared, me));
                    false
                }
            };
        };
        let Some((group, life)) = queue.replica().map(|it| (it.group(), it.life())) else {
            return true;
        };
        let status = groups.status(group);
        // Who was to have a copy, and is to have none before anybody has told it anything, is never told that it has none.
        // Founders are asked for their votes.
        let has_nothing = |status: &Status| {
            let is_founder = status.members.members().any(|member| member == status.me);
            status.term == 0 && status.last == 0 && !is_founder && wanted.is_none()
        };
        let is_removed = |status: &Status| status.is_removed || has_nothing(status);
        let is_gone = is_over || status.as_ref().is_none_or(is_removed);
        let is_wanted = !is_over && wanted.is_some_and(|it| it.life == life);
        // Until the others do without it, it may be the one that has what they lack.
        if is_gone && !is_wanted {
            self.give_up(queue);
            self.registry.change(id, |shared| shared.replica = None);
            // The next tick begins another one, if there is to be one.
            return wanted.is_none();
        }
        if let Some(status) = status.as_ref().filter(|it| !is_wanted && it.leader.is_none()) {
            // Those whom its member knows may all have left by now.
            self.ask_after(&shared, status.me);
        }
        let Some(status) = status.filter(|_| queue.is_led_here()) else {
            return is_wanted;
        };
        let members: Vec<MemberId> = shared.known.members().filter_map(member_id).collect();
        let is_reached = |node: NodeId| self.reaches(catalog::NodeId(node.0.into()));
        let steps = steps_to(&members, &status.members, is_reached);
        // Whoever votes counts as having what is committed, chunks in files included.
        let may_be = |step: &&Step| match step {
            Step::Voter(member) => self.has_all_chunks(queue, *member, status.committed),
            Step::Learner(_) | Step::Remove(_) => true,
        };
        for step in steps.iter().filter(may_be) {
            if groups.change(group, &[*step]).is_ok() {
                tracing::info!(area = "groups", "{queue:?}: members of its group: {step:?}");
                break;
            }
        }
        // Of those whom a change that is under way makes members, some may be wanted no more.
        steps.is_empty() && is_wanted && !status.is_changing
    }

    /// Whether a member's files of a stream have all that was there when that was asked first. Of other queues contents say so.
    fn has_all_chunks(&self, queue: &Queue, member: MemberId, committed: Index) -> bool {
        let Some(log) = queue.stream_log() else {
            return queue.kind() != QueueKind::Stream;
        };
        let Some(upto) = log.asks_has_all(member, committed) else {
            return true;
        };
        if let Some(peers) = self.peers.get() {
            peers.ask_has_all(member, queue.id, upto);
        }
        false
    }

    pub(super) fn open_replica(
        &self,
        known: &Arc<catalog::Queue>,
        made: &'static dyn QueueType,
        settings: &QueueSettings,
        (life, starting): (u32, StartingReplica),
    ) -> Option<Arc<Queue>> {
        let beside = made.beside_member(known, settings, &self.node);
        let queue = Queue::new(known, made, beside, self.node.clone(), self.queue_events.clone());
        if settings.deduplicates {
            queue.compare();
        }
        let follower = Follower::of(&queue);
        let opened = starting.and_then(|starting| starting.open(&follower, life));
        let opened = opened.inspect_err(|why| {
            tracing::error!(
                area = "groups",
                "{queue:?}: this node's copy is damaged, and takes part in nothing: {why:?}"
            );
        });
        queue.follow(opened.ok()?);
        self.share_memory(&queue);
        Some(queue)
    }

    /// A new machine has as much of the memory as all others.
    pub(super) fn share_memory(&self, queue: &Arc<Queue>) {
        let memory = self.queue_memory.load(Ordering::Relaxed);
        if memory > 0 {
            queue.submit(Request::Store(queue::store::Request::Shrink { memory }));
        }
    }

    /// A new queue is led where it was declared.
    pub(super) fn lead_new(&self, known: &catalog::Queue) {
        if let Some(groups) = self.groups() {
            groups.begin(group_of(known), known.home == self.own_node());
        }
    }

    /// The queue is deleted: those who use it here are told, and this node's copy goes.
    pub(super) fn stop_shared(&self, shared: &Shared) {
        if let Some(remote) = &shared.remote {
            remote.deleted(shared.known.id);
        }
        self.retreats_no_more(shared.known.id);
        if let Some(queue) = shared.replica.as_ref().filter(|queue| queue.own_term().is_some()) {
            return self.stop_queue(queue);
        }
        if let (Some(queue), Some(groups)) = (&shared.replica, self.groups()) {
            queue.retire();
            if let Some(replica) = queue.replica() {
                handover::forget(groups, replica.group(), Some(queue.segments()));
            }
            queue.forget_files();
        } else if let (Some(_), Some(groups)) = (shared.damaged, self.groups()) {
            let group = group_of(&shared.known);
            handover::forget(groups, group, Some(member_journal(group)));
            if shared.known.kind == QueueKind::Stream {
                remove_closed(&self.node, shared.known.id);
            }
        }
        // What this node was about to go on with alone goes as well.
        self.is_unsettled(shared.known.id);
    }

    /// This node has joined the others: queues that several nodes have are reached by them from now on.
    pub(super) fn reach_shared(&self) {
        let Some(peers) = self.peers.get() else { return };
        for shared in self.registry.shared() {
            let remote = peers.follow();
            self.registry
                .change(shared.known.id, |shared| shared.remote = remote);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn id(node: u32, life: u32) -> MemberId {
        MemberId {
            node: NodeId(node),
            life,
        }
    }

    /// Takes one step after the other, as a leader does, until there are none. What it did, and the fewest voters meanwhile.
    fn all_steps(wanted: &[MemberId], members: &mut Membership, cut_off: &[u32]) -> (Vec<Step>, usize) {
        let (mut taken, mut fewest) = (Vec::new(), members.voters.len());
        let next = |members: &Membership| {
            let steps = steps_to(wanted, members, |node| !cut_off.contains(&node.0));
            steps.first().copied()
        };
        while let Some(step) = next(members) {
            match step {
                Step::Learner(member) => members.learners.push(member),
                Step::Voter(member) => {
                    assert!(members.learners.contains(&member), "{member:?} votes at once");
                    members.learners.retain(|it| *it != member);
                    members.voters.push(member);
                    members.voters.sort();
                }
                Step::Remove(member) => {
                    members.learners.retain(|it| *it != member);
                    members.voters.retain(|it| *it != member);
                }
            }
            fewest = fewest.min(members.voters.len());
            taken.push(step);
            assert!(taken.len() < 20, "it comes to no end: {taken:?}");
        }
        (taken, fewest)
    }

    fn of(voters: &[MemberId]) -> Membership {
        Membership {
            voters: voters.to_vec(),
            ..Membership::default()
        }
    }

    #[test]
    fn a_new_member_votes_before_the_one_in_whose_place_it_comes_goes() {
        let mut members = of(&[id(1, 0), id(2, 0), id(3, 0)]);
        let wanted = [id(1, 0), id(2, 0), id(4, 0)];
        let (taken, fewest) = all_steps(&wanted, &mut members, &[]);
        let expected = [
            Step::Learner(id(4, 0)),
            Step::Voter(id(4, 0)),
            Step::Remove(id(3, 0)),
        ];
        assert_eq!((taken, fewest), (expected.to_vec(), 3));
        assert_eq!(members, of(&wanted));
    }

    #[test]
    fn the_only_one_that_votes_is_replaced_once_another_one_does() {
        let mut members = of(&[id(3, 0)]);
        members.learners = vec![id(2, 0)];
        // It was removed and added again before the group knew of it.
        let (taken, _) = all_steps(&[id(3, 1)], &mut members, &[]);
        assert_eq!(
            (taken, &members),
            (vec![Step::Remove(id(2, 0))], &of(&[id(3, 0)]))
        );
        let wanted = [id(3, 1), id(1, 0)];
        let (_, fewest) = all_steps(&wanted, &mut members, &[]);
        assert_eq!((fewest, members), (1, of(&[id(1, 0), id(3, 1)])));
    }

    #[test]
    fn a_member_that_cannot_be_reached_may_go_though_the_new_one_cannot_come() {
        let mut members = of(&[id(1, 0), id(2, 0), id(3, 0)]);
        let steps = steps_to(&[id(1, 0), id(2, 0), id(4, 0)], &members, |node| node.0 != 3);
        assert!(steps.contains(&Step::Remove(id(3, 0))), "{steps:?}");
        all_steps(&[id(1, 0), id(2, 0), id(4, 0)], &mut members, &[3]);
        assert_eq!(members, of(&[id(1, 0), id(2, 0), id(4, 0)]));
    }

    #[test]
    fn members_that_are_replaced_together_go_one_after_the_other_and_no_copy_is_lost() {
        let mut members = of(&[id(1, 0), id(2, 0), id(3, 0)]);
        let wanted = [id(1, 1), id(2, 1), id(3, 1)];
        let (taken, fewest) = all_steps(&wanted, &mut members, &[]);
        assert_eq!((taken.len(), fewest), (9, 2));
        assert_eq!(members, of(&wanted));
        // The first new one cannot be reached: the others keep what they have.
        let mut members = of(&[id(2, 0), id(3, 0)]);
        let steps = steps_to(&wanted, &members, |node| node.0 != 1);
        assert_eq!(steps, [Step::Learner(id(1, 1))]);
        members.learners.push(id(1, 1));
        let steps = steps_to(&wanted, &members, |node| node.0 != 1);
        assert_eq!(steps, [Step::Voter(id(1, 1))]);
    }

    #[test]
    fn of_a_node_there_is_never_more_than_one_member() {
        let mut members = of(&[id(1, 0), id(2, 0), id(3, 0)]);
        let wanted = [id(1, 0), id(2, 0), id(3, 1)];
        let (taken, _) = all_steps(&wanted, &mut members, &[]);
        let expected = [
            Step::Remove(id(3, 0)),
            Step::Learner(id(3, 1)),
            Step::Voter(id(3, 1)),
        ];
        assert_eq!(taken, expected);
        assert_eq!(members, of(&wanted));
    }
}
