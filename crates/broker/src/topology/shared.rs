//! What exists, where several nodes agree on it: this node's catalog is handed over to their group, and what they decide is taken
//! over from there.

use super::follow::Orders;
use super::happenings::Watch;
use super::{CatalogLeader, Question, Topology, no_answer};
use crate::events::Happening;
use crate::groups::catalog::{CatalogLinks, CatalogMember, Checkpoint, Follower, OwnRequest, SharedCatalog};
use crate::groups::handover::{self, Contents as Written};
use crate::groups::{Identity, NodeGroups, member_journal};
use crate::node::promise::{Batches, Promise};
use crate::queues::JournalOf;
use catalog::shared::{Contents, Happened};
use catalog::{Effect, Incarnation, Request, View};
use cluster::NodeId;
use model::{Index, Journaled};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError};

/// With whom a node shares its catalog.
pub struct Sharing {
    /// The groups of the node.
    pub groups: Arc<NodeGroups>,
    /// The way to the other nodes' catalogs.
    pub links: Arc<dyn CatalogLinks>,
    /// The group, and who this node is in it. It begins as the only member.
    pub identity: Identity,
    /// The other nodes that there are, if there are some already.
    pub peers: Vec<NodeId>,
}

/// Where the group's contents begin: nothing of the group stands before them.
const BEHIND: Index = 2;

/// The nodes that decide, as this one asks them.
struct Leader(Arc<SharedCatalog>);

impl CatalogLeader for Leader {
    fn ask(&self, user: Option<Arc<str>>, request: Vec<u8>, question: Arc<Question>) {
        let reply = move |said| question.answer(said);
        match Request::decode(&request) {
            Some(request) => self.0.ask_for(user, request, Box::new(reply)),
            None => reply(Err(no_answer())),
        }
    }
}

/// The group opens once the log says durably that it has the catalog.
struct HandedOver {
    shared: Arc<SharedCatalog>,
    groups: Arc<NodeGroups>,
    identity: Identity,
    written: OnceLock<Written>,
}

impl Batches for HandedOver {
    fn synced(self: Arc<Self>, _: u64) {
        let groups = self.groups.clone();
        groups.node().pager.write(move |_| {
            // It may be synced before whoever wrote it has said where it is.
            let written = *self.written.wait();
            let (identity, act) = (self.identity.clone(), self.shared.act());
            match handover::open::<CatalogMember>(&self.groups, identity, (), written, act) {
                Ok(member) => {
                    if let Err(error) = self.shared.opened(member) {
                        tracing::error!(
                            area = "catalog",
                            "the catalog's thread cannot be started: {error}"
                        );
                    }
                }
                Err(why) => tracing::error!(
                    area = "catalog",
                    "the catalog was handed over to a group that cannot be opened: {why:?}"
                ),
            }
        });
    }
}

impl fmt::Debug for HandedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the catalog is handed over")
    }
}

impl Topology {
    /// Hands the catalog over to a group, which this node is alone in. What is asked meanwhile waits for the group.
    /// `follower` takes over what the group decides. Nothing happens if that has been done.
    pub fn share(&self, sharing: Sharing, follower: Arc<dyn Follower>) -> Arc<SharedCatalog> {
        let Sharing {
            groups,
            links,
            identity,
            peers,
        } = sharing;
        let shared = SharedCatalog::new(groups.clone(), links, follower, peers);
        let handed = Arc::new(HandedOver {
            shared: shared.clone(),
            groups,
            identity,
            written: OnceLock::new(),
        });
        // Nobody decides here any more from the moment on in which the contents are taken.
        let host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        if self.leader.set(Arc::new(Leader(shared.clone()))).is_err() {
            return shared;
        }
        let contents = Contents::begin(host.machine.view(), host.machine.next_queue());
        let mut bytes = Vec::new();
        Checkpoint::new(BEHIND, contents).encode(&mut bytes);
        let identity = &handed.identity;
        let written = handover::hand_over(
            &self.node.log,
            JournalOf::Catalog.id(),
            (identity, 1),
            member_journal(identity.group),
            &bytes,
            Promise::Batch(handed.clone(), 0),
        );
        let _ = handed.written.set(written);
        drop(host);
        let _ = self.shared.set(shared.clone());
        shared
    }

    /// What exists is decided by several nodes from the start on, and this is the run of this node that they know of. Once,
    /// before anything is asked.
    pub fn belong_to(&self, shared: Arc<SharedCatalog>, incarnation: Incarnation) {
        let _ = self.leader.set(Arc::new(Leader(shared.clone())));
        let _ = self.shared.set(shared);
        self.incarnation.get_or_init(|| incarnation);
    }

    /// The catalog of several nodes, if this one is of them.
    pub fn shared(&self) -> Option<&Arc<SharedCatalog>> {
        self.shared.get()
    }

    /// See [`crate::Broker::is_stale`].
    pub fn is_stale(&self) -> bool {
        self.shared.get().is_some_and(|shared| !shared.is_fresh())
    }

    /// Takes over what several nodes have decided: what exists now, and what follows from it. What this node has asked for is
    /// told here, to those who watch, and nowhere else.
    pub fn take_over(&self, happened: &[Happened], own: &[Option<OwnRequest>]) {
        let Some(last) = happened.last() else { return };
        let mut orders = Orders::default();
        let all = happened.iter().flat_map(|it| &it.orders);
        all.for_each(|effect| orders.take(effect.clone()));
        let watched = self.watched();
        let told = watched.map(|_| to_tell(&self.view(), happened, own));
        let gone = self.carry_out(&mut orders, &last.view);
        drop(self.publish(last.view.clone()));
        if let Some((events, told)) = watched.zip(told) {
            told.into_iter().for_each(|it| events.happened(|| it));
        }
        self.finish(orders, gone);
    }

    /// Takes over what exists where it is not known what led to it.
    pub fn reconcile(&self, now: &View) {
        let before = self.view();
        let all = |view: &View| -> BTreeSet<_> {
            let vhosts = view.vhosts();
            vhosts
                .flat_map(|vhost| vhost.all_queues().map(|queue| queue.id))
                .collect()
        };
        let (gone, known) = (all(now), all(&before));
        let is_as_before = |queue: &Arc<catalog::Queue>| {
            let before = before.queue(&queue.vhost, &queue.name);
            before.is_none_or(|before| Arc::ptr_eq(before, queue) || before == queue)
        };
        let mut orders = Orders::default();
        for queue in before.vhosts().flat_map(|vhost| vhost.all_queues()) {
            if !gone.contains(&queue.id) {
                orders.take(Effect::<()>::StopQueue(queue.clone()));
            }
        }
        for queue in now.vhosts().flat_map(|vhost| vhost.all_queues()) {
            match known.contains(&queue.id) {
                false => orders.take(Effect::<()>::StartQueue(queue.clone())),
                true if queue.is_shared() || !is_as_before(queue) => {
                    orders.take(Effect::<()>::FollowMembers(queue.clone()))
                }
                true => {}
            }
        }
        for vhost in now.vhosts().chain(before.vhosts()) {
            orders.take(Effect::<()>::FollowPolicies(vhost.name.clone()));
        }
        self.go_on_with(orders, now.clone());
    }

    fn go_on_with(&self, mut orders: Orders, view: View) {
        let gone = self.carry_out(&mut orders, &view);
        drop(self.publish(view));
        self.finish(orders, gone);
    }
}

/// What happened by this node's requests; `before` existed when the first one was decided.
fn to_tell(before: &Arc<View>, happened: &[Happened], own: &[Option<OwnRequest>]) -> Vec<Happening> {
    let mut told = Vec::new();
    let views = happened.iter().map(|it| Arc::new(it.view.clone()));
    let before = std::iter::once(before.clone()).chain(views);
    for ((it, own), before) in happened.iter().zip(own).zip(before) {
        let Some(own) = own.as_ref().filter(|_| !it.records.is_empty()) else {
            continue;
        };
        let mut watch = Watch::new(before, own.actor.clone());
        it.records.iter().for_each(|record| watch.record(record));
        for order in &it.orders {
            if let Effect::StopQueue(queue) = order {
                watch.queue_deleted(queue);
            }
        }
        told.extend(watch.into_happenings());
    }
    told
}
