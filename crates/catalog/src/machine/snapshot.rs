//! Writing everything durable down again, and reading it back.
//!
//! With a million bindings this takes seconds, so it is done in parts, and other requests are decided in between. What the
//! parts say is what was so at the start; replay puts off what was changed meanwhile until it has seen the last part. Were
//! it not put off, a part could bring back what was deleted before it was written.

use super::{Catalog, Turn};
use crate::exchange::is_predeclared;
use crate::node::{Incarnation, Joined, Membership, Node, NodeId};
use crate::{Answer, Effect, Metadata, PolicyKind, QuotaOf, Record, Refusal, Vhost, View};

impl<R> Catalog<R> {
    /// The records of a snapshot change nothing here, so they are not applied; replayed after what came before they change
    /// nothing either, and replayed alone they are everything.
    pub(super) fn start_snapshot(&mut self, turn: &mut Turn<R>) -> Result<Answer, Refusal> {
        turn.records.push(Record::SnapshotStarted);
        let below = self.next_queue;
        turn.records
            .push(Record::Snapshotted(Box::new(Record::QueueIdsUsed { below })));
        Ok(Answer::Snapshot(self.view()))
    }

    pub(super) fn continue_snapshot(facts: Vec<Record>, turn: &mut Turn<R>) -> Result<Answer, Refusal> {
        let facts = facts.into_iter().map(|fact| Record::Snapshotted(Box::new(fact)));
        turn.records.extend(facts);
        Ok(Answer::Done)
    }

    pub(super) fn finish_snapshot(turn: &mut Turn<R>) -> Result<Answer, Refusal> {
        turn.records.push(Record::SnapshotFinished);
        Ok(Answer::Done)
    }

    pub(super) fn take_deferred(&mut self, effects: &mut Vec<Effect<R>>) {
        for record in self.deferred.take().into_iter().flatten() {
            self.take(&record, effects);
        }
    }
}

impl View {
    /// Everything that exists, as records: what a snapshot says.
    pub fn facts(&self) -> impl Iterator<Item = Record> {
        let users = self.users().map(|user| Record::UserPut {
            name: user.name.as_str().into(),
            password: user.password.clone(),
            tags: user.tags.clone(),
        });
        let permissions = self.permissions.values();
        let permissions = permissions.map(|it| Record::PermissionsSet(it.clone()));
        let vhosts = self.vhosts().flat_map(|vhost| facts_of(vhost));
        let topics = self.topic_permissions.values();
        let topics = topics.map(|it| Record::TopicPermissionSet(it.clone()));
        let quotas = self.user_quotas.iter().map(|(name, quota)| Record::QuotaSet {
            of: QuotaOf::User(name.clone()),
            quota: *quota,
        });
        let doomed = self.vhosts().flat_map(|vhost| vhost.queues());
        let doomed = doomed.filter(|queue| self.doomed.contains(&queue.id));
        let doomed = doomed.map(|queue| Record::QueueDoomed {
            id: queue.id,
            durable: queue.is_durable(),
        });
        let globals = self.globals().map(|(name, value)| Record::GlobalSet {
            name: name.clone(),
            value: Some(value.clone()),
        });
        let nodes = self
            .nodes
            .iter()
            .flat_map(|(node, known)| facts_of_node(*node, known));
        nodes
            .chain(users)
            .chain(quotas)
            .chain(globals)
            .chain(vhosts)
            .chain(permissions)
            .chain(topics)
            .chain(doomed)
    }
}

/// That a node started, that this run has ended if it has or is in maintenance, and whether it is one of several.
fn facts_of_node(node: NodeId, known: &Node) -> impl Iterator<Item = Record> {
    let (name, number) = (known.name.clone(), known.started);
    let incarnation = Incarnation { node, number };
    let ended = (!known.is_running).then_some(Record::IncarnationEnded(incarnation));
    let joined = match known.membership {
        Membership::Alone => None,
        Membership::Joined(joined) => Some(joined),
        Membership::Forgotten { token } => Some(Joined { port: 0, token }),
    };
    let joined = joined.map(|joined| Record::NodeJoined {
        node,
        name: name.clone(),
        joined,
    });
    let forgotten = known.is_forgotten().then_some(Record::NodeForgotten { node });
    let drained = known
        .is_drained
        .then_some(Record::NodeDrained { node, drained: true });
    let started = Record::NodeStarted {
        incarnation,
        name,
        takes_queues: known.takes_queues,
    };
    std::iter::once(started)
        .chain(ended)
        .chain(joined)
        .chain(forgotten)
        .chain(drained)
}

fn facts_of(vhost: &Vhost) -> impl Iterator<Item = Record> {
    let created = Record::VhostCreated {
        name: vhost.name.clone(),
    };
    let exchanges = vhost
        .exchanges()
        .filter(|exchange| !is_predeclared(&exchange.name))
        .map(|exchange| Record::ExchangeDeclared(exchange.declared()));
    let queues = vhost
        .all_queues()
        .map(|queue| Record::QueueDeclared(queue.clone()));
    let bindings = vhost
        .bindings()
        .map(|binding| Record::Bound(binding.named(&vhost.name)));
    let policies = [PolicyKind::User, PolicyKind::Operator]
        .into_iter()
        .flat_map(|kind| vhost.policies().all(kind))
        .map(|policy| Record::PolicyPut(policy.clone()));
    let of = QuotaOf::Vhost(vhost.name.clone());
    let quota = *vhost.quota();
    let quota = (!quota.is_empty()).then_some(Record::QuotaSet { of, quota });
    let metadata = vhost.metadata().clone();
    let described = (metadata != Metadata::default()).then(|| Record::VhostDescribed {
        vhost: vhost.name.clone(),
        metadata,
    });
    std::iter::once(created)
        .chain(described)
        .chain(quota)
        .chain(policies)
        .chain(exchanges)
        .chain(queues)
        .chain(bindings)
}
