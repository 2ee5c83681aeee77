//! A queue whose majority is lost for good goes on with one node's copy alone, as another group; its other nodes forget what they
//! have. See decision note 60.

use super::Topology;
use super::replicas::member_id;
use crate::groups::{Found, Identity, LastCopy, handover};
use crate::queues::{Queue, Replica, Shared, group_of, queue_type};
use catalog::Member;
use cluster::Membership;
use model::QueueId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use storage::StorageError;

/// A queue that goes on with this node's copy, which is written down for its new group.
#[derive(Debug)]
pub(super) struct Refounding {
    known: Arc<catalog::Queue>,
    written: Arc<Mutex<Option<Result<Found, StorageError>>>>,
}

impl Topology {
    /// This node's member of a queue that goes on with its copy alone; `None` if that is another node's.
    pub(crate) fn sole_founder(&self, known: &catalog::Queue) -> Option<Identity> {
        let is_mine = known.epoch.is_refounded && known.founders[..] == [self.own_node()];
        let me = member_id(Member::first(self.own_node())).filter(|_| is_mine)?;
        Some(Identity {
            group: group_of(known),
            me,
            members: Membership::of(&[me]),
        })
    }

    pub(crate) fn say_refounded(&self, known: &catalog::Queue, copy: &LastCopy) {
        let (name, vhost) = (&known.name, &known.vhost);
        tracing::warn!(
            area = "groups",
            "queue '{name}' in vhost '{vhost}' goes on with this node's copy alone ({copy}); what its other members had beyond that is lost"
        );
    }

    /// A tick of the clock: the copy that this node has is of an earlier generation of the queue. True if nothing is left to do.
    pub(super) fn leaves_generation(&self, shared: &Shared, queue: &Arc<Queue>) -> bool {
        let known = &shared.known;
        let Some(identity) = self.sole_founder(known) else {
            tracing::warn!(
                area = "groups",
                "queue '{}' in vhost '{}' goes on with another node's copy alone; this node's is given up",
                known.name,
                known.vhost
            );
            self.give_up(queue);
            self.registry.change(known.id, |shared| shared.replica = None);
            // The next tick begins another one, if there is to be one.
            return known.member(self.own_node()).is_none();
        };
        let mut refounding = self.refounding();
        let Some(under_way) = refounding.get(&known.id) else {
            if let Some(begun) = self.begin_refounding(known, queue, identity) {
                refounding.insert(known.id, begun);
                return false;
            }
            drop(refounding);
            tracing::error!(
                area = "groups",
                "{queue:?} is to go on with this node's copy alone, which is not whole; restart the node to have it looked at once more"
            );
            return self.lacks_copy(known.id);
        };
        let written = under_way.written();
        let Some(written) = written else { return false };
        // It is of the generation that was written, which may be over by now as well: then that is found next.
        let written_for = under_way.known.clone();
        refounding.remove(&known.id);
        drop(refounding);
        queue.replica().into_iter().for_each(Replica::give_up);
        match written {
            Ok(found) => self.open_refounded(&written_for, found),
            Err(error) => {
                tracing::error!(
                    area = "groups",
                    "{queue:?} cannot go on with this node's copy alone: {error}; restart the node to have it tried again"
                );
                self.lacks_copy(known.id)
            }
        }
    }

    fn lacks_copy(&self, id: QueueId) -> bool {
        self.registry.change(id, |shared| {
            (shared.replica, shared.damaged) = (None, Some(0));
        });
        true
    }

    /// From now on the old member says nothing. What it has is written down on the thread on which its store's writes came to an
    /// end before.
    fn begin_refounding(
        &self,
        known: &Arc<catalog::Queue>,
        queue: &Arc<Queue>,
        identity: Identity,
    ) -> Option<Refounding> {
        let (groups, replica) = self.groups().zip(queue.replica())?;
        let old = replica.group();
        let term = groups.status(old).map_or(0, |status| status.term);
        groups.close(old);
        queue.retire();
        let copy = replica.last_copy(term)?;
        self.say_refounded(known, &copy);
        let begun = Refounding {
            known: known.clone(),
            written: Arc::default(),
        };
        let written = begun.written.clone();
        self.node.pager.write(move |files| {
            let found = copy.refound(&files.log, &identity);
            let found = found.and_then(|found| files.log.sync().map(|()| found));
            if found.is_ok() {
                files.log.forget_group(old.0);
            }
            *written.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        });
        Some(begun)
    }

    fn open_refounded(&self, known: &Arc<catalog::Queue>, found: Found) -> bool {
        let settings = self.view().settings(known);
        let starting = self.begin_replica(known, settings.clone(), found);
        let replica = queue_type(known.kind)
            .zip(starting)
            .and_then(|(made, starting)| self.open_replica(known, made, &settings, starting));
        let opened = replica.clone();
        let is_there = self.registry.change(known.id, |shared| {
            shared.damaged = replica.is_none().then_some(0);
            shared.replica = replica;
        });
        match opened {
            Some(queue) if !is_there => self.give_up(&queue),
            Some(queue) => {
                self.lead_new(known);
                // It may have been converted meanwhile.
                self.follow_kind(queue.id);
                self.led(&queue);
            }
            None => {}
        }
        true
    }

    /// A queue that was deleted while it was founded anew: what was written for it goes. True if nothing is left to do.
    pub(super) fn ends_refounding(&self, id: QueueId) -> bool {
        let mut refounding = self.refounding();
        let Some(under_way) = refounding.get(&id) else {
            return true;
        };
        let Some(written) = under_way.written() else {
            return false;
        };
        let group = group_of(&under_way.known);
        refounding.remove(&id);
        drop(refounding);
        if let (Ok(found), Some(groups)) = (written, self.groups()) {
            handover::forget(groups, group, Some(found.segments(group)));
        }
        true
    }

    fn refounding(&self) -> MutexGuard<'_, BTreeMap<QueueId, Refounding>> {
        self.refounding.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Refounding {
    /// What was written, once it is.
    fn written(&self) -> Option<Result<Found, StorageError>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
