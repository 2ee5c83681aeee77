//! A queue that began on one node gets members on others while clients use it. Its node hands it over to a group that it is alone
//! in; from then on it is as any other queue that several nodes have. See decision note 59.

use super::Topology;
use super::replicas::member_id;
use crate::groups::Identity;
use crate::groups::handover::{self, Contents, Successor};
use crate::node::ends::Ends;
use crate::queues::{Follower, Handle, Heir, OfQueue, Queue, Remote, Replica, Shared, group_of};
use catalog::Member;
use cluster::Membership;
use model::{Mutant, QueueId, QueueSettings};
use queue::Request;
use queue::fifo::Classic;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A queue that could not be handed over is left as it is for so many ticks, of 100 ms each: its publishers may have waited.
const TRIES_AGAIN_AFTER: u32 = 300;

/// Who goes on with a queue that is handed over.
#[derive(Debug)]
struct Growth {
    queue: QueueId,
    /// How clients reach it from then on.
    remote: Arc<dyn Remote>,
    stage: Mutex<Stage>,
}

/// A queue of this node that is to have members on others.
#[derive(Debug)]
pub(super) struct Growing {
    known: Arc<catalog::Queue>,
    queue: Arc<Queue>,
    /// It is handed over.
    growth: Option<Arc<Growth>>,
}

/// How far it has come.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Its messages are moved.
    Moves,
    /// The group has the contents, durably.
    Written(Contents),
    /// The queue goes on as it is, for so many ticks.
    Waits(u32),
}

impl Growth {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Successor for Growth {
    fn begin(&self, contents: Contents) {
        *self.stage() = Stage::Written(contents);
    }

    fn given_up(&self) {
        *self.stage() = Stage::Waits(TRIES_AGAIN_AFTER);
    }
}

impl Heir for Growth {
    fn take(&self, request: Request<Ends>) {
        // Nodes ask again, whoever leads then: what they had asked here is for nobody to answer.
        if !asks_for_node(&request) || Mutant::GrowthAsksForNodes.is_on() {
            self.remote.submit(self.queue, request);
        }
    }
}

/// Whether it is another node that hears of the answer.
fn asks_for_node(request: &Request<Ends>) -> bool {
    let outbox = match request {
        Request::EnqueueFrom { .. } | Request::ConsumeFrom { .. } | Request::Holds { .. } => return true,
        Request::Get { reply, .. }
        | Request::TakeOut { reply, .. }
        | Request::Purge { reply }
        | Request::MayRetire { reply, .. }
        | Request::Recall { reply, .. }
        | Request::Cancel {
            reply: Some(reply), ..
        }
        | Request::Pause {
            reply: Some(reply), ..
        }
        | Request::Use { reply: Some(reply) } => &reply.outbox,
        _ => return false,
    };
    outbox.is_of_node()
}

impl Topology {
    /// The queue, which is on this node alone, is to have members on others.
    pub(crate) fn grows(&self, known: &Arc<catalog::Queue>, queue: &Arc<Queue>) {
        self.note_growing(&mut self.growing(), known, queue);
        self.is_unsettled(known.id);
    }

    fn note_growing(
        &self,
        growing: &mut BTreeMap<QueueId, Growing>,
        known: &Arc<catalog::Queue>,
        queue: &Arc<Queue>,
    ) {
        let new = || Growing {
            known: known.clone(),
            queue: queue.clone(),
            growth: None,
        };
        growing.entry(known.id).or_insert_with(new).known = known.clone();
    }

    /// Other nodes have copies of the queue than before, as the catalog knows it. What follows from that the next tick does.
    pub(super) fn follow_members(&self, known: &Arc<catalog::Queue>) {
        let _reaching = self.reaching();
        // Held by whoever ends its growth.
        let mut growing = self.growing();
        match self.registry.get(known.id) {
            Some(Handle::Here(queue)) if known.is_shared() => {
                self.note_growing(&mut growing, known, &queue);
            }
            Some(Handle::Here(_)) => {}
            Some(Handle::Shared(shared)) => {
                let own = shared.replica.as_ref().filter(|queue| queue.own_term().is_some());
                if let Some(queue) = own.filter(|_| known.is_shared()) {
                    self.note_growing(&mut growing, known, queue);
                }
                self.registry.change(known.id, |shared| {
                    if shared.known.epoch != known.epoch {
                        shared.damaged = None;
                    }
                    shared.known = known.clone();
                });
            }
            Some(Handle::Elsewhere(..) | Handle::WithoutOwner(_)) if !known.is_shared() => {
                self.registry.replace(self.away(known));
            }
            Some(Handle::Elsewhere(..) | Handle::WithoutOwner(_)) => {
                let peers = self.peers.get();
                self.registry.replace(Handle::Shared(Arc::new(Shared {
                    known: known.clone(),
                    remote: peers.and_then(|peers| peers.follow()),
                    replica: None,
                    damaged: None,
                })));
                peers.into_iter().for_each(|peers| peers.shared(known.id));
            }
            None => return,
        }
        drop(growing);
        self.is_unsettled(known.id);
    }

    /// A tick of the clock. True if nothing is left to do for the queue to be one of several nodes.
    pub(super) fn has_grown(&self, id: QueueId) -> bool {
        let growing = self.growing();
        let Some(Growing { known, queue, growth }) = growing.get(&id) else {
            return true;
        };
        let (known, queue, growth) = (known.clone(), queue.clone(), growth.clone());
        drop(growing);
        let is_deleted = self.registry.get(id).is_none();
        let Some(growth) = growth else {
            match is_deleted {
                true => drop(self.growing().remove(&id)),
                false => self.begin_growth(&known, &queue),
            }
            return is_deleted;
        };
        let stage = *growth.stage();
        match stage {
            // Those who wait are looked at, whether or not somebody asks for something.
            Stage::Moves => queue.submit(Request::Wake),
            Stage::Waits(_) if is_deleted => drop(self.growing().remove(&id)),
            Stage::Waits(0) => {
                let mut growing = self.growing();
                growing.get_mut(&id).into_iter().for_each(|it| it.growth = None);
            }
            Stage::Waits(ticks) => *growth.stage() = Stage::Waits(ticks - 1),
            Stage::Written(contents) => self.end_growth(&known, &queue, (&growth, contents)),
        }
        !self.growing().contains_key(&id)
    }

    /// True if the queue is about to be one of several nodes.
    pub(super) fn is_growing_up(&self, id: QueueId) -> bool {
        self.growing().contains_key(&id)
    }

    fn growing(&self) -> MutexGuard<'_, BTreeMap<QueueId, Growing>> {
        self.growing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn alone_in_group(&self, known: &catalog::Queue) -> Option<Identity> {
        let me = member_id(Member::first(self.own_node()))?;
        Some(Identity {
            group: group_of(known),
            me,
            members: Membership::of(&[me]),
        })
    }

    fn begin_growth(&self, known: &Arc<catalog::Queue>, queue: &Arc<Queue>) {
        let remote = self.peers.get().and_then(|peers| peers.follow());
        let Some((remote, identity)) = remote.zip(self.alone_in_group(known)) else {
            return;
        };
        tracing::info!(
            area = "groups",
            "{queue:?} is to have members on other nodes: it is handed over to a group"
        );
        let growth = Arc::new(Growth {
            queue: queue.id,
            remote,
            stage: Mutex::new(Stage::Moves),
        });
        let mut growing = self.growing();
        let Some(it) = growing.get_mut(&queue.id) else {
            return;
        };
        it.growth = Some(growth.clone());
        drop(growing);
        // Its sessions had this one, which other nodes have seen.
        let behind = match Mutant::GrowsInOldTerms.is_on() {
            true => 0,
            false => self.home_term(known),
        };
        queue.hand_over(identity, behind, growth);
    }

    /// The group has the contents: this node's member begins, and takes what clients have asked meanwhile.
    fn end_growth(
        &self,
        known: &Arc<catalog::Queue>,
        queue: &Arc<Queue>,
        (growth, contents): (&Arc<Growth>, Contents),
    ) {
        let settings = self.view().settings(known);
        if let Some(peers) = self.peers.get() {
            peers.adopt(queue.id, (&settings, true), queue.own_consumers());
        }
        let is_open = match self.open_grown(known, queue, &settings, contents) {
            Ok(replica) => {
                queue.follow(replica);
                self.share_memory(queue);
                true
            }
            Err(why) => {
                tracing::error!(
                    area = "groups",
                    "{queue:?} was handed over to a group that cannot be opened: {why}"
                );
                false
            }
        };
        let heir: Arc<dyn Heir> = growth.clone();
        queue.hand_on(&heir);
        let mut growing = self.growing();
        let Some(Growing { known, .. }) = growing.remove(&queue.id) else {
            return;
        };
        self.registry.replace(Handle::Shared(Arc::new(Shared {
            known: known.clone(),
            remote: Some(growth.remote.clone()),
            damaged: (!is_open).then_some(0),
            replica: is_open.then(|| queue.clone()),
        })));
        drop(growing);
        if self.registry.get(queue.id).is_none() {
            return self.ends_grown(&known, queue, growth);
        }
        self.lead_new(&known);
        if is_open {
            self.led(queue);
        }
        // It may have been converted while its member was opened.
        self.follow_kind(queue.id);
        self.is_unsettled(queue.id);
    }

    fn open_grown(
        &self,
        known: &catalog::Queue,
        queue: &Arc<Queue>,
        settings: &QueueSettings,
        contents: Contents,
    ) -> Result<Replica, String> {
        let groups = self.groups().zip(self.alone_in_group(known));
        let (groups, identity) = groups.ok_or("the node has no groups")?;
        let follower = Follower::of(queue);
        let opened = handover::open::<Classic<Ends>>(
            groups,
            identity,
            settings.clone().of_several(),
            contents,
            Classic::act(follower.clone()),
        );
        let member = opened.map_err(|why| format!("{why:?}"))?;
        Ok(Replica::new(member, follower, 0))
    }

    /// The queue was deleted meanwhile: those who use it here are told, and this node's copy goes.
    fn ends_grown(&self, known: &catalog::Queue, queue: &Arc<Queue>, growth: &Growth) {
        growth.remote.deleted(queue.id);
        if let Some(groups) = self.groups() {
            handover::forget(groups, group_of(known), Some(queue.segments()));
        }
    }
}
