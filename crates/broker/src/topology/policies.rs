//! Queues follow their policies.

use super::Topology;
use super::follow::warn_of_fallbacks;
use crate::queues::{Handle, Queue};
use catalog::{Name, Policies, PolicyKind, Vhost, View};
use model::QueueId;
use queue::Request as QueueRequest;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

/// The policies of each virtual host that has some.
pub fn of(view: &View) -> HashMap<Name, Arc<Policies>> {
    let vhosts = view.vhosts().filter(|vhost| !vhost.policies().is_empty());
    vhosts
        .map(|vhost| (vhost.name.clone(), vhost.policies().clone()))
        .collect()
}

/// The queues for which other policies apply than before.
pub(crate) fn ruled_anew<'a>(
    vhost: &'a Vhost,
    before: &'a Policies,
) -> impl Iterator<Item = &'a Arc<catalog::Queue>> {
    let now = vhost.policies();
    vhost
        .queues()
        .filter(move |queue| before.of_queue(queue) != now.of_queue(queue))
}

fn warn_of_given_up(vhost: &str, policies: &Policies) -> usize {
    let told = policies.just_given_up().map(|policy| {
        let kind = match policy.kind {
            PolicyKind::User => "policy",
            PolicyKind::Operator => "operator policy",
        };
        tracing::warn!(
            area = "catalog",
            "{kind} '{}' in vhost '{vhost}' applies to no further names: its pattern '{}' took too many steps on many of them; \
             write it without back references and nested repetitions",
            policy.name,
            policy.pattern.source()
        );
    });
    told.count()
}

/// Gives a queue the settings that are in force.
fn configure(vhost: &Vhost, known: &catalog::Queue, queue: &Arc<Queue>) {
    warn_of_fallbacks(vhost, known);
    let settings = vhost.settings(known);
    if settings.deduplicates {
        queue.compare();
    }
    match queue.replica() {
        Some(replica) => replica.configure(queue, settings),
        None => queue.submit(QueueRequest::Configure {
            settings: Box::new(settings),
        }),
    }
}

impl Topology {
    /// Gives the queues of a virtual host the settings of its policies, those whose policies are others than before. Takes some
    /// microseconds for each queue there is; nobody who publishes, declares or lists is held up, and of several who call this the
    /// last one leaves the settings of the last view.
    pub(super) fn follow_policies(&self, vhost: &str) {
        let mut applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        let view = self.view();
        let before = applied.remove(vhost).unwrap_or_default();
        // If it is gone, one of the same name starts without policies.
        let Some(vhost) = view.vhost(vhost) else { return };
        for known in ruled_anew(vhost, &before) {
            if known.is_mirrorable() && self.groups().is_some() {
                self.is_unsettled(known.id);
            }
            // Those of other nodes follow there.
            if let Some(queue) = self.registry.copy(known.id) {
                configure(vhost, known, &queue);
            }
        }
        let now = vhost.policies();
        if !now.is_empty() {
            applied.insert(vhost.name.clone(), now.clone());
        }
        warn_of_given_up(&vhost.name, now);
    }

    /// Gives what this node has of a queue the settings of its kind, if it is of another kind than before. As policies are, they
    /// are those of the last view.
    pub(super) fn follow_kind(&self, id: QueueId) {
        let applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        let view = self.view();
        let Some(handle) = self.registry.get(id) else {
            return;
        };
        let known = view.queue(handle.vhost(), handle.name()).filter(|it| it.id == id);
        let Some((known, vhost)) = known.zip(view.vhost(handle.vhost())) else {
            return;
        };
        if let Some(queue) = handle.copy().filter(|queue| queue.kind() != known.kind) {
            let (from, to) = (queue.kind().name(), known.kind.name());
            tracing::info!(
                area = "queue",
                "{queue:?} was a {from} queue, and is a {to} queue from now on"
            );
            queue.becomes(known.kind);
            configure(vhost, known, queue);
        }
        drop(applied);
        if let (Handle::Shared(_), Some(peers)) = (&handle, self.peers.get()) {
            peers.set(id, vhost.settings(known));
        }
    }

    /// Tells operators of policies that have ceased to apply to new names of a virtual host, because their patterns took too many
    /// steps: each is told of once. Returns how many.
    pub fn warn_of_slow_policies(&self, vhost: &str) -> usize {
        let view = self.view();
        let vhost = view.vhost(vhost);
        vhost.map_or(0, |vhost| warn_of_given_up(&vhost.name, vhost.policies()))
    }
}
