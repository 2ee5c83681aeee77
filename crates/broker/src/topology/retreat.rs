//! A queue that no policy mirrors any more, and whose mirrors are gone, is its node's own again: the group hands it back to the
//! queue's own journal. The opposite of [`super::growth`]; see decision note 61.

use super::Topology;
use crate::groups::handover::{Contents, Successor, move_out};
use crate::node::Node;
use crate::queues::{JournalOf, OwnTerm, Queue, QueueType, Shared, queue_type, taken_back};
use cluster::NodeId;
use model::{Mutant, QueueId};
use queue::Request;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use storage::JournalId;

/// A queue that could not be handed back is left as it is for so many ticks, of 100 ms each: its publishers may have waited.
const TRIES_AGAIN_AFTER: u32 = 300;

/// So many ticks the queue goes on while what its log and its memory alone hold is moved: then those who use it wait for less.
const MOVES_AHEAD: u32 = 2;

/// Who goes on with a queue that is handed back.
pub(super) struct Retreat {
    node: Arc<Node>,
    journal: JournalId,
    made: &'static dyn QueueType,
    stage: Mutex<Stage>,
}

/// How far it has come.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Its messages are moved, and it goes on, for so many ticks.
    Ahead(u32),
    /// It is handed back.
    Back,
    /// Its own journal has the contents, durably.
    Written(Contents),
    /// It goes on as it is, for so many ticks.
    Waits(u32),
    /// The queue is deleted.
    Deleted,
}

impl Retreat {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Successor for Retreat {
    fn begin(&self, contents: Contents) {
        let mut stage = self.stage();
        match *stage {
            Stage::Deleted => self.node.log.forget(self.journal),
            _ => *stage = Stage::Written(contents),
        }
    }

    fn given_up(&self) {
        let mut stage = self.stage();
        if !matches!(*stage, Stage::Deleted) {
            *stage = Stage::Waits(TRIES_AGAIN_AFTER);
        }
    }
}

impl Topology {
    fn retreating(&self) -> MutexGuard<'_, BTreeMap<QueueId, Arc<Retreat>>> {
        self.retreating.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the queue is about to be this node's own again.
    pub(super) fn retreats(&self, id: QueueId) -> bool {
        self.retreating().contains_key(&id)
    }

    /// In which term this node decides of a queue that it has alone: each of its starts is one.
    pub(super) fn home_term(&self, known: &catalog::Queue) -> u64 {
        let behind = match Mutant::RetreatsInOldTerms.is_on() {
            true => 0,
            false => known.epoch.behind,
        };
        behind + self.groups().map_or(1, |groups| groups.me().1)
    }

    pub(super) fn own_term(&self, known: &catalog::Queue, is_handed_back: bool) -> OwnTerm {
        OwnTerm {
            term: self.home_term(known),
            node: NodeId(u32::try_from(self.own_node().0).unwrap_or(u32::MAX)),
            is_handed_back,
        }
    }

    /// A tick of the clock. True if nothing is left to do here for the queue to be one node's own.
    pub(super) fn has_retreated(&self, shared: &Shared) -> bool {
        let id = shared.known.id;
        let Some(copy) = &shared.replica else { return true };
        let Some(replica) = copy.replica() else {
            return true;
        };
        let begun = self.retreating().get(&id).cloned();
        let Some(retreat) = begun else {
            // Whoever leads has everything, and by what the catalog says that is this node.
            if copy.is_led_here()
                && let Some(made) = queue_type(shared.known.kind)
            {
                let retreat = Arc::new(Retreat {
                    node: self.node.clone(),
                    journal: JournalOf::Queue(made, id).id(),
                    made,
                    stage: Mutex::new(Stage::Ahead(MOVES_AHEAD)),
                });
                self.retreating().insert(id, retreat);
                copy.submit(move_out());
            }
            return false;
        };
        let mut stage = retreat.stage();
        match *stage {
            Stage::Ahead(0) if copy.is_led_here() => {
                *stage = Stage::Back;
                drop(stage);
                replica.hand_back(retreat.journal, retreat.clone());
            }
            Stage::Waits(0) | Stage::Ahead(0) => {
                drop(stage);
                self.retreating().remove(&id);
            }
            Stage::Ahead(ticks) => *stage = Stage::Ahead(ticks - 1),
            Stage::Waits(ticks) => *stage = Stage::Waits(ticks - 1),
            // Those who wait are looked at, whether or not somebody asks for something.
            Stage::Back => {
                drop(stage);
                copy.submit(Request::Wake);
            }
            Stage::Deleted => {}
            Stage::Written(contents) => {
                drop(stage);
                self.end_retreat(shared, copy, (&retreat, contents));
            }
        }
        false
    }

    /// The queue is deleted while it is handed back: what its own journal has of it by then is forgotten.
    pub(super) fn retreats_no_more(&self, id: QueueId) {
        let Some(retreat) = self.retreating().remove(&id) else {
            return;
        };
        let mut stage = retreat.stage();
        if let Stage::Written(_) = *stage {
            self.node.log.forget(retreat.journal);
        }
        *stage = Stage::Deleted;
    }

    fn end_retreat(&self, shared: &Shared, before: &Arc<Queue>, (retreat, contents): (&Retreat, Contents)) {
        let known = &shared.known;
        let settings = self.view().settings(known);
        let host = taken_back(
            retreat.made,
            settings.clone(),
            &self.node.log,
            retreat.journal,
            contents,
        );
        let queue = match host {
            Ok(host) => before.succeeded_by(known, host),
            Err(why) => {
                *retreat.stage() = Stage::Waits(TRIES_AGAIN_AFTER);
                return tracing::error!(
                    area = "groups",
                    "{before:?} was handed back to this node, and what it has cannot be read: {why}; start the node again"
                );
            }
        };
        queue.decides_in(self.own_term(known, true));
        self.share_memory(&queue);
        before.replica().into_iter().for_each(|replica| replica.give_up());
        // Nodes are asked what they have before anybody else can ask the queue.
        if let Some(peers) = self.peers.get() {
            peers.led(&queue);
        }
        let is_there = self.registry.change(known.id, |shared| {
            shared.replica = Some(queue.clone());
            shared.damaged = None;
        });
        self.retreating().remove(&known.id);
        if !is_there {
            return self.stop_queue(&queue);
        }
        let now = self.view().settings(known);
        if now != settings {
            // Its policy has changed while others still had the copy before.
            queue.submit(Request::Configure {
                settings: Box::new(now),
            });
        }
        tracing::info!(area = "groups", "{queue:?} is this node's own again");
        // It may have been converted meanwhile.
        self.follow_kind(known.id);
        if let Some(known) = self
            .view()
            .queue(&queue.vhost, &queue.name)
            .filter(|it| it.is_shared())
        {
            self.grows(known, &queue);
        }
    }
}
