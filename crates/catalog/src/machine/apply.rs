//! Records become contents. No decision is made here, and applying a record again changes nothing.

use super::Catalog;
use crate::binding::{Binding, Target};
use crate::node::{Incarnation, Joined, Membership, Node, NodeId};
use crate::{
    DeclaredExchange, Destination, Effect, Exchange, Name, NamedBinding, Permission, Queue, Quota, QuotaOf,
    Record, TopicPermission, User, Vhost,
};
use model::QueueId;
use std::sync::Arc;

impl<R> Catalog<R> {
    /// Takes a fact over. What the host has to start, stop or set for that, it is ordered here and nowhere else: so it
    /// is the same whether this node decided the fact, replays it, or is told of it by another.
    pub(super) fn take(&mut self, record: &Record, effects: &mut Vec<Effect<R>>) {
        self.view.generation += 1;
        match record {
            Record::VhostCreated { name } => {
                if !self.view.vhosts.contains_key(name) {
                    self.view
                        .vhosts
                        .insert(name.clone(), Arc::new(Vhost::new(name.clone())));
                }
            }
            Record::VhostDeleted { name } => self.take_vhost_deleted(name, effects),
            Record::UserPut { name, password, tags } => {
                let user = User {
                    name: name.to_string(),
                    tags: tags.clone(),
                    password: password.clone(),
                };
                self.view.users.insert(name.clone(), Arc::new(user));
            }
            Record::UserDeleted { name } => {
                self.view.users.remove(name);
                self.forget_permissions(|permission| permission.user == *name);
                self.forget_topic_permissions(|it| it.user == *name);
                self.view.user_quotas.remove(name);
            }
            Record::PermissionsSet(permission) => {
                let key = (permission.user.clone(), permission.vhost.clone());
                self.view.permissions.insert(key, permission.clone());
            }
            Record::PermissionsCleared { user, vhost } => {
                self.view.permissions.remove(&(user.clone(), vhost.clone()));
            }
            Record::ExchangeDeclared(declared) => {
                if let Some(vhost) = self.vhost_mut(&declared.vhost) {
                    // Its name is shared by all that is in it.
                    vhost.add_exchange(Exchange::new(DeclaredExchange {
                        vhost: vhost.name.clone(),
                        ..declared.clone()
                    }));
                }
            }
            Record::ExchangeDeleted { vhost, name, .. } => {
                if let Some(vhost) = self.vhost_mut(vhost) {
                    vhost.remove_exchange(name);
                }
            }
            Record::QueueDeclared(queue) => self.take_queue(queue, effects),
            Record::MembersChanged { id, changed } => {
                if let Some(known) = self.queues.get(id) {
                    let changed = changed.clone();
                    let queue = Queue {
                        changed,
                        ..(**known).clone()
                    };
                    self.take_changed(&Arc::new(queue), effects);
                }
            }
            Record::QueueChanged(queue) => self.take_changed(queue, effects),
            Record::QueueRefounded { id, node, generation } => {
                self.take_refounded(*id, *node, *generation, effects);
            }
            Record::QueueDoomed { id, .. } => {
                self.view.doomed.insert(*id);
            }
            Record::QueueDeleted { id, .. } => self.take_queue_deleted(*id, effects),
            Record::Bound(named) => {
                if let (Some(binding), Some(vhost)) = (self.binding(named), self.vhost_mut(&named.vhost)) {
                    vhost.add_binding(binding);
                }
            }
            Record::Unbound(named) => {
                if let (Some(binding), Some(vhost)) = (self.binding(named), self.vhost_mut(&named.vhost)) {
                    vhost.remove_binding(binding);
                }
            }
            Record::NodeStarted {
                incarnation,
                name,
                takes_queues,
            } => self.take_node_started(*incarnation, name, *takes_queues),
            Record::NodeJoined { node, name, joined } => self.take_node_joined(*node, name, *joined),
            Record::NodeForgotten { node } => self.take_node_forgotten(*node),
            Record::NodeDrained { node, drained } => {
                if let Some(known) = self.view.nodes.get_mut(node) {
                    known.is_drained = *drained;
                }
            }
            Record::IncarnationEnded(ended) => self.take_incarnation_ended(*ended),
            Record::QueueIdsUsed { below } => self.next_queue = self.next_queue.max(*below),
            Record::SnapshotStarted | Record::Snapshotted(_) | Record::SnapshotFinished => {}
            rule => self.take_rule(rule, effects),
        }
    }

    /// Takes over what is said about many objects, users and virtual hosts.
    fn take_rule(&mut self, record: &Record, effects: &mut Vec<Effect<R>>) {
        match record {
            Record::PolicyPut(policy) => {
                if let Some(vhost) = self.vhost_mut(&policy.vhost) {
                    vhost.policies_mut().put(policy.clone());
                    effects.push(Effect::FollowPolicies(policy.vhost.clone()));
                }
            }
            Record::PolicyDeleted { vhost, kind, name } => {
                if let Some(at) = self.vhost_mut(vhost) {
                    at.policies_mut().delete(*kind, name);
                    effects.push(Effect::FollowPolicies(vhost.clone()));
                }
            }
            Record::QuotaSet { of, quota } => self.take_quota(of, quota),
            Record::GlobalSet { name, value } => {
                match value {
                    Some(value) => self.view.globals.insert(name.clone(), value.clone()),
                    None => self.view.globals.remove(name),
                };
            }
            Record::VhostDescribed { vhost, metadata } => {
                if let Some(vhost) = self.vhost_mut(vhost) {
                    vhost.describe(metadata.clone());
                }
            }
            Record::TopicPermissionSet(it) => {
                let place = (it.user.clone(), it.vhost.clone(), it.exchange.clone());
                self.view.topic_permissions.insert(place, it.clone());
            }
            Record::TopicPermissionsCleared {
                user,
                vhost,
                exchange,
            } => self.forget_topic_permissions(|it| {
                it.user == *user
                    && it.vhost == *vhost
                    && exchange.as_ref().is_none_or(|exchange| *exchange == it.exchange)
            }),
            _ => {}
        }
    }

    fn vhost_mut(&mut self, name: &str) -> Option<&mut Vhost> {
        self.view.vhosts.get_mut(name).map(Arc::make_mut)
    }

    fn forget_permissions(&mut self, gone: impl Fn(&Permission) -> bool) {
        let keys: Vec<(Name, Name)> = self
            .view
            .permissions
            .iter()
            .filter(|(_, permission)| gone(permission))
            .map(|(key, _)| key.clone())
            .collect();
        for key in &keys {
            self.view.permissions.remove(key);
        }
    }

    fn forget_topic_permissions(&mut self, gone: impl Fn(&TopicPermission) -> bool) {
        let going = self.view.topic_permissions.iter().filter(|(_, it)| gone(it));
        let going: Vec<_> = going.map(|(place, _)| place.clone()).collect();
        for place in &going {
            self.view.topic_permissions.remove(place);
        }
    }

    fn take_quota(&mut self, of: &QuotaOf, quota: &Quota) {
        match of {
            QuotaOf::Vhost(name) => {
                if let Some(vhost) = self.vhost_mut(name) {
                    vhost.set_quota(*quota);
                }
            }
            QuotaOf::User(name) if quota.is_empty() => {
                self.view.user_quotas.remove(name);
            }
            QuotaOf::User(name) => {
                self.view.user_quotas.insert(name.clone(), *quota);
            }
        }
    }

    fn take_vhost_deleted(&mut self, name: &Name, effects: &mut Vec<Effect<R>>) {
        let Some(vhost) = self.view.vhosts.remove(name) else {
            return;
        };
        for queue in vhost.all_queues() {
            self.forget_queue(queue, effects);
        }
        self.forget_permissions(|permission| permission.vhost == *name);
        self.forget_topic_permissions(|it| it.vhost == *name);
    }

    fn take_queue(&mut self, queue: &Arc<Queue>, effects: &mut Vec<Effect<R>>) {
        self.next_queue = self.next_queue.max(queue.id.0 + 1);
        let Some(vhost) = self.vhost_mut(&queue.vhost) else {
            return;
        };
        if !vhost.add_queue(queue.clone()) {
            return;
        }
        self.queues.insert(queue.id, queue.clone());
        self.index(queue);
        effects.push(Effect::StartQueue(queue.clone()));
    }

    /// Notes where a queue is, and with what one of a client ends; what an exchange keeps ends with the exchange.
    pub(super) fn index(&mut self, queue: &Queue) {
        *self.homes.entry(queue.home).or_default() += 1;
        self.count_copies(queue);
        if !queue.is_durable() && queue.kind.is_of_clients() {
            self.transient.insert((queue.lifetime, queue.id));
        }
    }

    fn take_refounded(&mut self, id: QueueId, node: NodeId, generation: u16, effects: &mut Vec<Effect<R>>) {
        // What is applied again changes nothing: members may have come since.
        let known = self.queues.get(&id);
        if let Some(known) = known.filter(|known| known.epoch.number < generation) {
            let queue = known.refounded(node, generation);
            self.take_changed(&Arc::new(queue), effects);
        }
    }

    fn take_changed(&mut self, queue: &Arc<Queue>, effects: &mut Vec<Effect<R>>) {
        let Some(known) = self.queues.get(&queue.id).cloned() else {
            return;
        };
        self.forget_index(&known);
        self.index(queue);
        self.queues.insert(queue.id, queue.clone());
        if let Some(vhost) = self.vhost_mut(&queue.vhost) {
            vhost.replace_queue(queue.clone());
        }
        effects.push(Effect::FollowMembers(queue.clone()));
    }

    fn take_queue_deleted(&mut self, id: QueueId, effects: &mut Vec<Effect<R>>) {
        let Some(queue) = self.queues.get(&id).cloned() else {
            return;
        };
        self.forget_queue(&queue, effects);
        if let Some(vhost) = self.vhost_mut(&queue.vhost) {
            vhost.remove_queue(&queue);
        }
    }

    fn count_copies(&mut self, queue: &Queue) {
        for node in queue.places() {
            *self.copies.entry(node).or_default() += 1;
        }
    }

    /// The opposite of [`Catalog::index`].
    fn forget_index(&mut self, queue: &Queue) {
        if let Some(count) = self.homes.get_mut(&queue.home) {
            *count -= 1;
        }
        self.transient.remove(&(queue.lifetime, queue.id));
        for node in queue.places() {
            if let Some(count) = self.copies.get_mut(&node) {
                *count -= 1;
            }
        }
    }

    fn forget_queue(&mut self, queue: &Arc<Queue>, effects: &mut Vec<Effect<R>>) {
        if let Some(known) = self.queues.remove(&queue.id) {
            self.forget_index(&known);
        }
        self.view.doomed.remove(&queue.id);
        effects.push(Effect::StopQueue(queue.clone()));
    }

    fn take_node_started(&mut self, incarnation: Incarnation, name: &Name, takes_queues: bool) {
        let known = self.view.nodes.get(&incarnation.node);
        let node = Node {
            name: name.clone(),
            started: incarnation.number,
            is_running: true,
            takes_queues,
            is_drained: false,
            membership: known.map(|known| known.membership).unwrap_or_default(),
        };
        self.view.nodes.insert(incarnation.node, node);
    }

    fn take_node_joined(&mut self, node: NodeId, name: &Name, joined: Joined) {
        let known = self.view.nodes.get(&node);
        let node_is = Node {
            name: name.clone(),
            started: known.map_or(0, |known| known.started),
            is_running: known.is_some_and(|known| known.is_running),
            takes_queues: known.is_none_or(|known| known.takes_queues),
            is_drained: known.is_some_and(|known| known.is_drained),
            membership: Membership::Joined(joined),
        };
        self.view.nodes.insert(node, node_is);
    }

    fn take_node_forgotten(&mut self, node: NodeId) {
        if let Some(known) = self.view.nodes.get_mut(&node)
            && let Some(token) = known.token()
        {
            known.membership = Membership::Forgotten { token };
        }
    }

    fn take_incarnation_ended(&mut self, ended: Incarnation) {
        let node = self.view.nodes.get_mut(&ended.node);
        if let Some(node) = node.filter(|node| node.runs(ended.number)) {
            node.is_running = false;
        }
    }

    /// The binding of these names, if both ends exist.
    pub(super) fn binding(&self, named: &NamedBinding) -> Option<Arc<Binding>> {
        let vhost = self.view.vhost(&named.vhost)?;
        let source = vhost.exchange(&named.source)?;
        // The names of what exists are shared by all its bindings.
        let (destination, target) = match &named.destination {
            Destination::Queue(name) => {
                let queue = vhost.queue(name)?;
                (Destination::Queue(queue.name.clone()), Target::Queue(queue.id))
            }
            Destination::Exchange(name) => {
                let name = &vhost.exchange(name)?.name;
                (
                    Destination::Exchange(name.clone()),
                    Target::Exchange(name.clone()),
                )
            }
        };
        Some(Arc::new(Binding::new(
            source.name.clone(),
            destination,
            target,
            &named.routing_key,
            &named.arguments,
            named.durable,
        )))
    }
}
