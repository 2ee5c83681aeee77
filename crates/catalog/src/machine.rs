//! The machine: requests in, records and effects out.
//!
//! `apply` changes contents, everything else decides. Reading order: this file, then `machine/apply.rs`, and one file
//! for each kind of object.

mod apply;
mod bindings;
mod exchanges;
mod growth;
mod members;
mod nodes;
mod policies;
mod queues;
mod snapshot;
mod together;
mod users;
mod vhosts;

use crate::node::{Lifetime, NodeId};
use crate::{
    Answer, Asked, Destination, Effect, Name, Queue, Record, Refusal, Request, TopicPermission, Vhost, View,
};
use model::{Index, Machine, Outcome, QueueId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::Arc;

/// What one turn brings forth.
type Turn<R> = Outcome<Record, Effect<R>>;

/// The catalog. `R` is the host's handle for answers.
pub struct Catalog<R> {
    view: View,
    /// All queues, what exchanges keep for themselves among them.
    queues: BTreeMap<QueueId, Arc<Queue>>,
    /// Clients' queues that are not durable, by what they end with.
    transient: BTreeSet<(Lifetime, QueueId)>,
    /// How many queues have their home on each node, what exchanges keep among them.
    homes: BTreeMap<NodeId, u64>,
    /// How many queues each node has, alone or with others.
    copies: BTreeMap<NodeId, u64>,
    /// The next queue gets this id.
    pub(crate) next_queue: u64,
    /// During replay between a snapshot's start and its end: what was changed meanwhile.
    deferred: Option<Vec<Record>>,
    replies: PhantomData<fn(R)>,
}

impl<R> Default for Catalog<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> Catalog<R> {
    /// An empty one: not even a virtual host.
    pub fn new() -> Self {
        Self {
            view: View::default(),
            queues: BTreeMap::new(),
            transient: BTreeSet::new(),
            homes: BTreeMap::new(),
            copies: BTreeMap::new(),
            next_queue: 1,
            deferred: None,
            replies: PhantomData,
        }
    }

    /// One in which this exists already: a copy, to try requests on.
    pub fn of(view: View) -> Self {
        let mut copy = Self::new();
        for queue in view.vhosts().flat_map(|vhost| vhost.all_queues()) {
            copy.queues.insert(queue.id, queue.clone());
            copy.index(queue);
            copy.next_queue = copy.next_queue.max(queue.id.0 + 1);
        }
        copy.view = view;
        copy
    }

    /// What exists now; shares everything with the machine until that changes.
    pub fn view(&self) -> View {
        self.view.clone()
    }

    /// A queue, be it a client's or what an exchange keeps for itself.
    pub fn queue(&self, id: QueueId) -> Option<&Arc<Queue>> {
        self.queues.get(&id)
    }

    /// The id that the next queue gets. One with a smaller id that does not exist was deleted.
    pub fn next_queue(&self) -> QueueId {
        QueueId(self.next_queue)
    }

    /// Makes a fact so and writes it down.
    fn record(&mut self, record: Record, turn: &mut Turn<R>) {
        self.take(&record, &mut turn.effects);
        turn.records.push(record);
    }

    fn vhost(&self, name: &str) -> Result<&Arc<Vhost>, Refusal> {
        self.view.find_vhost(name)
    }

    /// The sources of bindings to `destination` that would go with their last binding.
    fn auto_delete_sources(&self, vhost: &str, destination: &Destination) -> Vec<Name> {
        let Some(vhost) = self.view.vhost(vhost) else {
            return Vec::new();
        };
        let mut sources: Vec<Name> = Vec::new();
        for binding in vhost.bindings_to(destination) {
            // Those of one source stand side by side.
            if sources.last() != Some(&binding.source) {
                sources.push(binding.source.clone());
            }
        }
        sources.retain(|name| vhost.exchange(name).is_some_and(|exchange| exchange.auto_delete));
        sources
    }

    /// Deletes those of `candidates` that have just lost their last binding, and what that leaves without any.
    fn delete_unused(&mut self, vhost: &Name, mut candidates: Vec<Name>, turn: &mut Turn<R>) {
        while let Some(name) = candidates.pop() {
            let exchange = self.view.exchange(vhost, &name);
            if exchange.is_some_and(|exchange| exchange.auto_delete && exchange.binding_count() == 0) {
                candidates.extend(self.remove_exchange(vhost, &name, turn));
            }
        }
    }
}

impl<R> Machine for Catalog<R> {
    type Request = Asked<R>;
    type Record = Record;
    type Effect = Effect<R>;
    /// What exists.
    type Status = View;

    fn handle(&mut self, _now: Timestamp, asked: Asked<R>, turn: &mut Turn<R>) {
        let before = turn.records.len();
        let Asked { reply, request } = asked;
        let answer = request.check().and_then(|()| self.decide(request, turn));
        let reply = Effect::Reply(reply, answer);
        if turn.records[before..].iter().any(Record::is_durable) {
            turn.promises.push(reply);
        } else {
            turn.effects.push(reply);
        }
    }

    fn apply(&mut self, _index: Index, record: Record, turn: &mut Turn<R>) {
        match record {
            Record::SnapshotStarted => {
                self.take_deferred(&mut turn.effects);
                self.deferred = Some(Vec::new());
            }
            Record::SnapshotFinished => self.take_deferred(&mut turn.effects),
            Record::Snapshotted(fact) => self.take(&fact, &mut turn.effects),
            record => match &mut self.deferred {
                Some(deferred) => deferred.push(record),
                None => self.take(&record, &mut turn.effects),
            },
        }
    }

    /// Nothing is put off any longer. Everything there is is started once that is so.
    fn recovered(&mut self, _closed: bool) {
        self.take_deferred(&mut Vec::new());
    }

    /// Only a whole snapshot counts: what has begun is waited for.
    fn follow(&mut self) {}

    fn wakes_at_ms(&self) -> u64 {
        u64::MAX
    }

    fn status(&self) -> View {
        self.view()
    }
}

impl<R> Catalog<R> {
    fn decide(&mut self, request: Request, turn: &mut Turn<R>) -> Result<Answer, Refusal> {
        if let Some(known) = request.look(&self.view) {
            return known;
        }
        match request {
            Request::CreateVhost { name } => self.create_vhost(name, turn),
            Request::DeleteVhost { name } => self.delete_vhost(name, turn),
            Request::DescribeVhost { vhost, metadata } => self.describe_vhost(vhost, metadata, turn),
            Request::PutUser { name, password, tags } => {
                self.fact(Record::UserPut { name, password, tags }, turn)
            }
            Request::DeleteUser { name } => self.delete_user(name, turn),
            Request::SetPermissions {
                user,
                vhost,
                configure,
                write,
                read,
            } => self.set_permissions(user, vhost, [&configure, &write, &read], turn),
            Request::ClearPermissions { user, vhost } => self.clear_permissions(user, vhost, turn),
            Request::SetTopicPermission {
                user,
                vhost,
                exchange,
                write,
                read,
            } => {
                let wanted = TopicPermission::new(user, vhost, exchange, write, read);
                wanted.and_then(|it| self.set_topic_permission(it, turn))
            }
            Request::ClearTopicPermissions {
                user,
                vhost,
                exchange,
            } => self.clear_topic_permissions(user, vhost, exchange, turn),
            Request::PutPolicy {
                vhost,
                kind,
                name,
                policy,
            } => self.put_policy(vhost, kind, name, policy, turn),
            Request::DeletePolicy { vhost, kind, name } => self.delete_policy(vhost, kind, name, turn),
            Request::SetLimits { of, limits } => self.set_limits(of, &limits, turn),
            Request::SetGlobal { name, value } => self.set_global(name, value, turn),
            Request::DeclareExchange { vhost, declare, by } => {
                self.declare_exchange(&vhost, declare, by, turn)
            }
            Request::DeleteExchange {
                vhost,
                name,
                if_unused,
            } => self.delete_exchange(&vhost, &name, if_unused, turn),
            Request::DeclareQueue {
                vhost,
                declare,
                by,
                unique,
            } => self.declare_queue(&vhost, declare, by, &unique, turn),
            Request::DeleteQueue { id } => self.delete_queue(id, turn),
            Request::ClearBindings { id, at_most } => self.clear_bindings(id, at_most, turn),
            Request::Bind { vhost, binding } => self.bind(&vhost, binding, turn),
            Request::Unbind { vhost, binding } => self.unbind(&vhost, binding, turn),
            Request::CloseConnection { connection, at_most } => {
                self.close_connection(connection, at_most, turn)
            }
            Request::StartNode {
                node,
                name,
                takes_queues,
            } => self.start_node(node, name, takes_queues, turn),
            Request::JoinNode { name, joined } => self.join_node(name, joined, turn),
            Request::ForgetNode { node } => self.forget_node(node, turn),
            Request::ChangeMember { id, node, is_member } => self.change_member(id, node, is_member, turn),
            Request::RefoundQueue { id, node, generation } => self.refound_queue(id, node, generation, turn),
            Request::AddMember { id, nodes, size } => self.add_member(id, &nodes, size, turn),
            Request::Mirror { id, nodes, epoch } => self.mirror(id, (&nodes, epoch), turn),
            Request::Unmirror { id, node, behind } => self.unmirror(id, node, behind, turn),
            Request::ConvertQueue { vhost, name, kind } => self.convert_queue((&vhost, &name), kind, turn),
            Request::SayGrown { id, epoch } => self.say_grown(id, epoch, turn),
            Request::DrainNode { node, drained } => self.drain_node(node, drained, turn),
            Request::EndTransient { at_most } => self.end_transient(at_most, turn),
            Request::All { of, requests } => self.all(of, requests, turn),
            Request::StartSnapshot => self.start_snapshot(turn),
            Request::ContinueSnapshot { facts } => Self::continue_snapshot(facts, turn),
            Request::FinishSnapshot => Self::finish_snapshot(turn),
        }
    }

    /// Records something that needs no decision.
    fn fact(&mut self, record: Record, turn: &mut Turn<R>) -> Result<Answer, Refusal> {
        self.record(record, turn);
        Ok(Answer::Done)
    }
}

/// The longest name, in bytes: an AMQP short string.
const NAME_BYTES: usize = 255;

fn check_length(name: &str) -> Result<(), Refusal> {
    if name.len() <= NAME_BYTES {
        return Ok(());
    }
    Err(Refusal::InvalidName {
        name: name.into(),
        reason: format!("longer than {NAME_BYTES} bytes"),
    })
}
