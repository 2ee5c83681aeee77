//! What exists at one moment.

use crate::arguments::queue_settings;
use crate::node::{Incarnation, Node, NodeConnection, NodeId};
use crate::routing::Envelope;
use crate::{
    AuthRefusal, Binding, Exchange, Name, Permission, Queue, Quota, Refusal, TopicPermission, User, Verb,
    Vhost,
};
use imbl::{OrdMap, OrdSet};
use model::table::Value;
use model::{QueueId, QueueSettings};
use smallvec::SmallVec;
use std::sync::Arc;

/// An immutable snapshot of the catalog. Cloning shares everything.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub(crate) generation: u64,
    pub(crate) vhosts: OrdMap<Name, Arc<Vhost>>,
    pub(crate) users: OrdMap<Name, Arc<User>>,
    /// By user and virtual host.
    pub(crate) permissions: OrdMap<(Name, Name), Arc<Permission>>,
    /// By user, virtual host and exchange.
    pub(crate) topic_permissions: OrdMap<(Name, Name, Name), Arc<TopicPermission>>,
    /// Limits of users that have some.
    pub(crate) user_quotas: OrdMap<Name, Quota>,
    pub(crate) globals: OrdMap<Name, Value>,
    /// Queues that are being deleted, some of their bindings at a time.
    pub(crate) doomed: OrdSet<QueueId>,
    pub(crate) nodes: OrdMap<NodeId, Node>,
}

impl View {
    /// Rises with every change. What was found out on a view holds for every view of the same generation.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// All nodes that there have been.
    pub fn nodes(&self) -> impl Iterator<Item = (&NodeId, &Node)> {
        self.nodes.iter()
    }

    /// What is known of a node.
    pub fn node(&self, node: NodeId) -> Option<&Node> {
        self.nodes.get(&node)
    }

    /// What a node is called; empty if it has never been there.
    pub fn node_name(&self, node: NodeId) -> &str {
        self.nodes.get(&node).map_or("", |node| &node.name)
    }

    /// True if this run of a node has not ended, as far as anybody knows.
    pub fn runs(&self, incarnation: Incarnation) -> bool {
        let node = self.nodes.get(&incarnation.node);
        node.is_some_and(|node| node.runs(incarnation.number))
    }

    /// A virtual host.
    pub fn vhost(&self, name: &str) -> Option<&Arc<Vhost>> {
        self.vhosts.get(name)
    }

    /// All virtual hosts, by name.
    pub fn vhosts(&self) -> impl Iterator<Item = &Arc<Vhost>> {
        self.vhosts.values()
    }

    /// An exchange.
    pub fn exchange(&self, vhost: &str, name: &str) -> Option<&Exchange> {
        self.vhost(vhost)?.exchange(name)
    }

    /// A queue.
    pub fn queue(&self, vhost: &str, name: &str) -> Option<&Arc<Queue>> {
        self.vhost(vhost)?.queue(name)
    }

    /// What `queue.declare` answers this connection if it is passive.
    pub(crate) fn find_queue(
        &self,
        vhost: &Name,
        name: &str,
        by: NodeConnection,
    ) -> Result<&Arc<Queue>, Refusal> {
        let queue = self.find_vhost(vhost)?.queue(name);
        let queue = queue.ok_or_else(|| Refusal::NoQueue {
            queue: name.to_owned(),
            vhost: vhost.to_string(),
        })?;
        queue.check_exclusive(by)?;
        Ok(queue)
    }

    /// What `exchange.declare` answers if it is passive.
    pub(crate) fn find_exchange(&self, vhost: &Name, name: &str) -> Result<(), Refusal> {
        match self.find_vhost(vhost)?.exchange(name) {
            Some(_) => Ok(()),
            None => Err(Refusal::NoExchange {
                exchange: name.to_owned(),
                vhost: vhost.to_string(),
            }),
        }
    }

    pub(crate) fn find_vhost(&self, name: &str) -> Result<&Arc<Vhost>, Refusal> {
        self.vhost(name)
            .ok_or_else(|| Refusal::NoVhost { vhost: name.into() })
    }

    /// All exchanges of a virtual host, by name.
    pub fn exchanges(&self, vhost: &str) -> impl Iterator<Item = &Exchange> {
        self.vhost(vhost).into_iter().flat_map(|vhost| vhost.exchanges())
    }

    /// All queues of a virtual host, by name.
    pub fn queues(&self, vhost: &str) -> impl Iterator<Item = &Arc<Queue>> {
        self.vhost(vhost).into_iter().flat_map(|vhost| vhost.queues())
    }

    /// Queues whose deletion has begun and is to be finished, by id: a node that ended in between must not serve them again.
    pub fn doomed_queues(&self) -> impl Iterator<Item = QueueId> {
        self.doomed.iter().copied()
    }

    /// All bindings of a virtual host, by destination. The bindings of the default exchange, which follow from the
    /// queues' names, are not among them.
    pub fn bindings(&self, vhost: &str) -> impl Iterator<Item = &Binding> {
        self.vhost(vhost).into_iter().flat_map(|vhost| vhost.bindings())
    }

    /// What a queue's arguments and policies mean together. See [`Vhost::settings`].
    pub fn settings(&self, queue: &Queue) -> QueueSettings {
        match self.vhost(&queue.vhost) {
            Some(vhost) => vhost.settings(queue),
            None => queue_settings(queue, None),
        }
    }

    /// A user.
    pub fn user(&self, name: &str) -> Option<&User> {
        self.users.get(name).map(|user| &**user)
    }

    /// All users, by name.
    pub fn users(&self) -> impl Iterator<Item = &User> {
        self.users.values().map(|user| &**user)
    }

    /// All permissions, by user and virtual host.
    pub fn permissions(&self) -> impl Iterator<Item = &Permission> {
        self.permissions.values().map(|permission| &**permission)
    }

    /// A user's limits.
    pub fn user_quota(&self, name: &str) -> Quota {
        self.user_quotas.get(name).copied().unwrap_or_default()
    }

    /// A global parameter.
    pub fn global(&self, name: &str) -> Option<&Value> {
        self.globals.get(name)
    }

    /// All global parameters, by name.
    pub fn globals(&self) -> impl Iterator<Item = (&Name, &Value)> {
        self.globals.iter()
    }

    /// All topic permissions, by user, virtual host and exchange.
    pub fn topic_permissions(&self) -> impl Iterator<Item = &TopicPermission> {
        self.topic_permissions.values().map(|permission| &**permission)
    }

    /// A user's topic permissions in a virtual host.
    pub fn topic_permissions_of(&self, user: &str, vhost: &str) -> impl Iterator<Item = &TopicPermission> {
        self.topic_permissions()
            .filter(move |it| *it.user == *user && *it.vhost == *vhost)
    }

    /// May the user publish with this routing key to a topic exchange (`Write`), or bind it (`Read`)? Who has no topic
    /// permission there may. Asked beside [`View::may`].
    pub fn may_topic(&self, user: &str, exchange: &Exchange, verb: Verb, key: &[u8]) -> bool {
        if self.topic_permissions.is_empty() || !exchange.kind.has_topic_permissions() {
            return true;
        }
        let key = String::from_utf8_lossy(key);
        let place = (Name::from(user), exchange.vhost.clone(), exchange.name.clone());
        self.topic_permissions
            .get(&place)
            .is_none_or(|permission| permission.permits(verb, &key))
    }

    /// Finds the queues that a message to `exchange` goes to and appends them to `out`, each once, by rising id.
    /// Exchanges with an alternate one pass on to that what goes nowhere.
    ///
    /// The envelope notes what the route depends on. Exchanges bound to exchanges are followed, each once, so cycles do no
    /// harm. The work is bounded by the bindings that match, for topic exchanges by words of the key × patterns, for
    /// headers exchanges by the message's headers × the bindings of which it fulfils at least a part.
    pub fn route(&self, exchange: &Exchange, envelope: &mut Envelope<'_>, out: &mut SmallVec<[QueueId; 8]>) {
        if let Some(vhost) = self.vhost(&exchange.vhost) {
            vhost.route(exchange, envelope, out);
        }
    }

    /// May the user do this to an object of this name? The one access decision of the broker.
    ///
    /// RabbitMQ's rules: no permission entry in the virtual host means no; patterns match anywhere in the name; the
    /// default exchange (the empty name) is asked for as `amq.default`.
    pub fn may(&self, user: &str, vhost: &str, verb: Verb, name: &str) -> bool {
        let Some(permission) = self.permission(user, vhost) else {
            return false;
        };
        let pattern = match verb {
            Verb::Configure => &permission.configure,
            Verb::Write => &permission.write,
            Verb::Read => &permission.read,
        };
        pattern.matches(if name.is_empty() { "amq.default" } else { name })
    }

    /// True if the user may enter the virtual host: it exists and has a permission entry for the user, be it for nothing.
    pub fn vhost_access(&self, user: &str, vhost: &str) -> bool {
        self.vhosts.contains_key(vhost) && self.permission(user, vhost).is_some()
    }

    /// A user's permissions in a virtual host.
    pub fn permission(&self, user: &str, vhost: &str) -> Option<&Permission> {
        let user = self.users.get_key_value(user)?.0;
        let vhost = self.vhosts.get_key_value(vhost)?.0;
        self.permissions
            .get(&(user.clone(), vhost.clone()))
            .map(|permission| &**permission)
    }

    /// Checks name and password. Where the user may connect from is the broker's question.
    ///
    /// # Errors
    /// Why not; see [`AuthRefusal`]. An unknown name takes as long as a wrong password.
    pub fn authenticate(&self, user: &str, password: &[u8]) -> Result<User, AuthRefusal> {
        let Some(found) = self.user(user) else {
            let _ = crate::PasswordHash::new([0; 4], password);
            return Err(AuthRefusal::NoSuchUser);
        };
        let hash = found.password.as_ref().ok_or(AuthRefusal::NoPassword)?;
        if password.is_empty() {
            // RabbitMQ refuses blank passwords whatever the hash says.
            return Err(AuthRefusal::WrongPassword);
        }
        if hash.matches(password) {
            Ok(found.clone())
        } else {
            Err(AuthRefusal::WrongPassword)
        }
    }
}

/// Views of one catalog are the same if they are of one generation.
impl PartialEq for View {
    fn eq(&self, other: &Self) -> bool {
        self.generation == other.generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_may_be_shared_by_threads() {
        fn shared<T: Send + Sync + 'static>(_: &T) {}
        shared(&View::default());
    }
}
