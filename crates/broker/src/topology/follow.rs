//! What exists follows from what was applied: starting, stopping and setting queues, whether a client declared them, a policy
//! changed, or the node has just come up.

use super::{CatalogJournal, Topology};
use crate::groups::Found;
use crate::node::journal::LocalJournal;
use crate::node::promise::Promise;
use crate::queues::{Handle, JournalOf, Queue, QueueHost, QueueJournal, QueueType, queue_type};
use crate::stats::Churn;
use crate::topology::caches::{self, CacheJournal};
use catalog::{Effect, Name, QueueKind, Vhost, View};
use model::{Machine, QueueId, QueueSettings};
use queue::Request as QueueRequest;
use queue::seen::Seen;
use std::collections::BTreeSet;
use std::sync::{Arc, atomic::AtomicU64};

/// What a turn of the catalog orders of queues: carried out at its end, when their settings are certain.
#[derive(Default)]
pub(super) struct Orders {
    /// In the order in which the records were made.
    queues: Vec<Order>,
    /// Queues that are of another kind than before, perhaps.
    converted: Vec<QueueId>,
    /// Virtual hosts with other policies than before.
    vhosts: BTreeSet<Name>,
    /// New queues that others are to have, too.
    mirrored: Vec<QueueId>,
}

enum Order {
    Start(Arc<catalog::Queue>),
    /// Other nodes have copies than before.
    Follow(Arc<catalog::Queue>),
    Stop(Arc<catalog::Queue>),
}

impl Orders {
    /// Notes what the catalog orders. Answers are somebody else's.
    pub(super) fn note(&mut self, effect: Effect<u64>, journal: &mut CatalogJournal) {
        if let (Effect::StopQueue(queue), Some(watch)) = (&effect, &mut journal.watch) {
            watch.queue_deleted(queue);
        }
        self.take(effect);
    }

    /// The same where nobody watches.
    pub(super) fn take<R>(&mut self, effect: Effect<R>) {
        match effect {
            Effect::Reply(..) => {}
            Effect::StartQueue(queue) => self.queues.push(Order::Start(queue)),
            Effect::FollowMembers(queue) => self.queues.push(Order::Follow(queue)),
            Effect::StopQueue(queue) => self.queues.push(Order::Stop(queue)),
            Effect::FollowPolicies(vhost) => {
                self.vhosts.insert(vhost);
            }
        }
    }
}

/// Tells operators what a queue was declared with, or is to be by policy, and cannot be.
pub(super) fn warn_of_fallbacks(vhost: &Vhost, known: &catalog::Queue) {
    for told in vhost.fallbacks(known) {
        tracing::warn!(area = "queue", "{told}");
    }
}

impl Topology {
    /// Starts and stops queues. Returns the handles of those that end, which is to happen once the catalog is free again.
    pub(super) fn carry_out(&self, orders: &mut Orders, view: &View) -> Vec<Handle> {
        let mut gone = Vec::new();
        for order in orders.queues.drain(..) {
            match order {
                Order::Start(known) => {
                    if known.kind == QueueKind::Deduplication && self.is_here(&known) {
                        self.start_cache(&known, None);
                    }
                    self.count(&known, |churn| &churn.queues_created);
                    if known.is_shared() {
                        let settings = view.settings(&known);
                        let starting = self.begin_replica(&known, settings.clone(), Found::of_another());
                        self.start_shared(&known, &settings, starting);
                        self.lead_new(&known);
                        continue;
                    }
                    match queue_type(known.kind).filter(|_| self.is_here(&known)) {
                        Some(made) => {
                            view.vhost(&known.vhost)
                                .into_iter()
                                .for_each(|vhost| warn_of_fallbacks(vhost, &known));
                            drop(self.start_queue(&known, made, view.settings(&known), None));
                            if self.groups().is_some() && self.is_mirrored(view, &known) {
                                orders.mirrored.push(known.id);
                            }
                        }
                        None => {
                            let _reaching = self.reaching();
                            self.registry.insert(self.away(&known));
                        }
                    }
                }
                Order::Follow(known) => {
                    self.follow_members(&known);
                    orders.converted.push(known.id);
                }
                Order::Stop(known) => {
                    if self.caches.remove(known.id) {
                        self.node.log.forget(JournalOf::Cache(known.id).id());
                    }
                    self.count(&known, |churn| &churn.queues_deleted);
                    gone.extend(self.registry.remove(known.id));
                }
            }
        }
        gone
    }

    /// What takes its time, without the catalog: ends queues, and gives others the settings of their new policies.
    pub(super) fn finish(&self, orders: Orders, gone: Vec<Handle>) {
        // Whoever looked at them before could not find them.
        orders.mirrored.iter().for_each(|id| self.is_unsettled(*id));
        for handle in &gone {
            match handle {
                Handle::Here(queue) => self.stop_queue(queue),
                Handle::Elsewhere(known, remote) => remote.deleted(known.id),
                Handle::WithoutOwner(_) => {}
                Handle::Shared(shared) => self.stop_shared(shared),
            }
        }
        orders.converted.iter().for_each(|id| self.follow_kind(*id));
        orders.vhosts.iter().for_each(|vhost| self.follow_policies(vhost));
    }

    /// Starts what holds a queue's messages: with what was replayed of it, or empty.
    pub(crate) fn start_queue(
        &self,
        known: &catalog::Queue,
        made: &'static dyn QueueType,
        settings: QueueSettings,
        replayed: Option<Box<dyn QueueHost>>,
    ) -> Arc<Queue> {
        let replayed = made.open(known, &settings, &self.node).or(replayed);
        let is_new = replayed.is_none();
        let new = || made.start(settings.clone(), self.new_journal(known, made));
        let queue = Queue::new(
            known,
            made,
            replayed.unwrap_or_else(new),
            self.node.clone(),
            self.queue_events.clone(),
        );
        if settings.deduplicates {
            queue.compare();
        }
        self.share_memory(&queue);
        if known.epoch.behind > 0 {
            queue.decides_in(self.own_term(known, false));
        }
        match is_new {
            true if settings.expires_ms.is_some() => queue.submit(QueueRequest::Use { reply: None }),
            true => {}
            false => {
                let settings = Box::new(settings);
                queue.submit(QueueRequest::Configure { settings });
            }
        }
        self.registry.insert(queue.clone().into());
        queue
    }

    fn new_journal(&self, known: &catalog::Queue, made: &'static dyn QueueType) -> QueueJournal {
        if !known.is_durable() {
            return QueueJournal::None;
        }
        let (log, id) = (self.node.log.clone(), JournalOf::Queue(made, known.id).id());
        QueueJournal::Local(LocalJournal::new(log, id, 1))
    }

    /// Starts what a deduplication exchange remembers: with what was replayed of it, or empty. One that keeps nothing
    /// on disk any more begins anew.
    pub(crate) fn start_cache(&self, known: &catalog::Queue, replayed: Option<(Seen, LocalJournal)>) {
        let (settings, journaled) = caches::settings(known);
        let id = JournalOf::Cache(known.id).id();
        if replayed.is_some() && !journaled {
            self.node.log.forget(id);
        }
        let new = || {
            (
                Seen::new(settings),
                LocalJournal::new(self.node.log.clone(), id, 1),
            )
        };
        let (mut machine, journal) = replayed.filter(|_| journaled).unwrap_or_else(new);
        machine.recovered(self.node.log.recovery().clean);
        machine.configure(settings);
        let journal = CacheJournal(journaled.then_some(journal));
        self.caches.insert(known.id, machine, journal);
    }

    /// Ends a queue that the catalog no longer knows: consumers are cancelled, its journal and segments go.
    pub(super) fn stop_queue(&self, queue: &Arc<Queue>) {
        queue.retire();
        let segments = queue.segments();
        if !queue.durable {
            // It does not come back, whatever becomes of its deletion: nothing is waited for, and nothing synced.
            return self.node.pager.write(move |files| files.remove(segments));
        }
        let deleted = Promise::Deleted { segments };
        let forget = |batch: &mut storage::Batch<'_>| batch.forget(queue.journal());
        self.node.log.append_with(std::iter::once(deleted), forget);
    }

    /// Counts what became of a queue on the node where it lives, and not once more on each other one.
    fn count(&self, known: &catalog::Queue, which: impl FnOnce(&Churn) -> &AtomicU64) {
        let counts = known.kind.is_of_clients() && self.is_here(known);
        if let Some(told) = self.told.get().filter(|_| counts) {
            Churn::more(which(told.stats.churn()));
        }
    }
}
