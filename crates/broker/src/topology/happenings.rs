//! Which events the catalog's records are: RabbitMQ's names and details.

use crate::events::Happening;
use catalog::{Destination, Name, NamedBinding, PolicyKind, Queue, Quota, QuotaOf, Record, View};
use model::table::{Table, Value};
use std::sync::Arc;

/// What a turn of the catalog has to tell.
pub struct Watch {
    /// What existed before it.
    before: Arc<View>,
    /// Which client asked, if one did.
    actor: Option<Arc<str>>,
    happened: Vec<Happening>,
}

impl Watch {
    /// For a turn in which `actor` asks.
    pub fn new(before: Arc<View>, actor: Option<Arc<str>>) -> Self {
        Self {
            before,
            actor,
            happened: Vec::new(),
        }
    }

    /// Keeps the event that a record is, if it is one.
    pub fn record(&mut self, record: &Record) {
        self.add(happening(record, &self.before));
        self.add(consequence(record, &self.before));
    }

    /// Keeps the end of a queue.
    pub fn queue_deleted(&mut self, queue: &Queue) {
        let told = named("queue.deleted", &queue.name, &queue.vhost).with("type", queue.kind.module());
        self.add(queue.kind.is_of_clients().then_some(told));
    }

    /// Everything, in the order in which it happened.
    pub fn into_happenings(self) -> Vec<Happening> {
        self.happened
    }

    fn add(&mut self, happening: Option<Happening>) {
        let by = |it: Happening| match &self.actor {
            Some(actor) => it.with("user_who_performed_action", &**actor),
            None => it,
        };
        self.happened.extend(happening.map(by));
    }
}

fn happening(record: &Record, before: &View) -> Option<Happening> {
    Some(match record {
        Record::VhostCreated { name } => Happening::new("vhost.created").with("name", &**name),
        Record::VhostDeleted { name } => Happening::new("vhost.deleted").with("name", &**name),
        Record::ExchangeDeclared(exchange) => named("exchange.created", &exchange.name, &exchange.vhost)
            .with("type", exchange.kind.name())
            .with("durable", exchange.lifetime.is_durable())
            .with("auto_delete", exchange.auto_delete)
            .with("internal", exchange.internal)
            .with("arguments", shown(&exchange.arguments)),
        Record::ExchangeDeleted { vhost, name, .. } => named("exchange.deleted", name, vhost),
        Record::QueueDeclared(queue) => declared(queue)?,
        Record::Bound(binding) => bound("binding.created", binding),
        Record::Unbound(binding) => bound("binding.deleted", binding),
        other => return ruled(other, before),
    })
}

/// What is said about users, virtual hosts, parameters and policies.
fn ruled(record: &Record, before: &View) -> Option<Happening> {
    Some(match record {
        Record::UserPut { name, password, tags } => {
            let key = match before.user(name) {
                None => "user.created",
                Some(known) if known.password() == password.as_ref() => return None,
                Some(_) if password.is_none() => "user.password.cleared",
                Some(_) => "user.password.changed",
            };
            tagged(key, name, tags)
        }
        Record::UserDeleted { name } => Happening::new("user.deleted").with("name", &**name),
        Record::VhostDescribed { vhost, metadata } => {
            let tags = metadata.tags.iter().map(|tag| Value::from(tag.as_str()));
            Happening::new("vhost.updated")
                .with("name", &**vhost)
                .with("description", metadata.description.as_str())
                .with("tags", Value::Array(tags.collect()))
        }
        Record::QuotaSet { of, quota } => limited(of, quota),
        Record::GlobalSet { name, value } => match value {
            Some(value) => Happening::new("parameter.set")
                .with("name", &**name)
                .with("value", value.clone()),
            None => Happening::new("parameter.cleared").with("name", &**name),
        },
        Record::PolicyPut(policy) => {
            let key = match policy.kind {
                PolicyKind::User => "policy.set",
                PolicyKind::Operator => "operator.policy.set",
            };
            named(key, &policy.name, &policy.vhost)
                .with("pattern", policy.pattern.source())
                .with("apply-to", policy.apply_to.name())
                .with("priority", policy.priority)
                .with("definition", shown(&policy.definition))
        }
        Record::PolicyDeleted { vhost, kind, name } => {
            let key = match kind {
                PolicyKind::User => "policy.cleared",
                PolicyKind::Operator => "operator.policy.cleared",
            };
            named(key, name, vhost)
        }
        other => return granted(other),
    })
}

/// What is said about permissions.
fn granted(record: &Record) -> Option<Happening> {
    Some(match record {
        Record::PermissionsSet(permission) => Happening::new("permission.created")
            .with("user", &*permission.user)
            .with("vhost", &*permission.vhost)
            .with("configure", permission.configure.source())
            .with("write", permission.write.source())
            .with("read", permission.read.source()),
        Record::PermissionsCleared { user, vhost } => Happening::new("permission.deleted")
            .with("user", &**user)
            .with("vhost", &**vhost),
        Record::TopicPermissionSet(topic) => Happening::new("topic.permission.created")
            .with("user", &*topic.user)
            .with("vhost", &*topic.vhost)
            .with("exchange", &*topic.exchange)
            .with("write", topic.write.as_str())
            .with("read", topic.read.as_str()),
        Record::TopicPermissionsCleared {
            user,
            vhost,
            exchange,
        } => {
            let happening = Happening::new("topic.permission.deleted")
                .with("user", &**user)
                .with("vhost", &**vhost);
            match exchange {
                Some(exchange) => happening.with("exchange", &**exchange),
                None => happening,
            }
        }
        _ => return None,
    })
}

/// What else a record means: RabbitMQ tells of a user's tags apart.
fn consequence(record: &Record, before: &View) -> Option<Happening> {
    match record {
        Record::UserPut { name, tags, .. } => {
            let known = before.user(name);
            let is_new = known.map_or(!tags.is_empty(), |known| known.tags != *tags);
            is_new.then(|| tagged("user.tags.set", name, tags))
        }
        _ => None,
    }
}

fn tagged(key: &'static str, user: &Name, tags: &[String]) -> Happening {
    let tags = tags.iter().map(|tag| Value::from(tag.as_str())).collect();
    Happening::new(key)
        .with("name", &**user)
        .with("tags", Value::Array(tags))
}

/// Limits stand beside the other headers, under their own names; RabbitMQ's have the name `limits`.
fn limited(of: &QuotaOf, quota: &Quota) -> Happening {
    let (set, cleared, whose, name) = match of {
        QuotaOf::Vhost(name) => ("vhost.limits.set", "vhost.limits.cleared", "vhost", name),
        QuotaOf::User(name) => ("user.limits.set", "user.limits.cleared", "username", name),
    };
    let key = if quota.is_empty() { cleared } else { set };
    let happening = Happening::new(key).with("name", "limits").with(whose, &**name);
    let members = quota.iter();
    members.fold(happening, |happening, (limit, value)| {
        happening.with(limit, value)
    })
}

fn named(key: &'static str, name: &Name, vhost: &Name) -> Happening {
    Happening::new(key).with("name", &**name).with("vhost", &**vhost)
}

fn declared(queue: &Queue) -> Option<Happening> {
    if !queue.kind.is_of_clients() {
        return None;
    }
    Some(
        named("queue.created", &queue.name, &queue.vhost)
            .with("type", queue.kind.module())
            .with("durable", queue.is_durable())
            .with("auto_delete", queue.auto_delete)
            .with("exclusive", queue.is_exclusive())
            .with("arguments", shown(&queue.arguments)),
    )
}

fn bound(key: &'static str, binding: &NamedBinding) -> Happening {
    let kind = match binding.destination {
        Destination::Queue(_) => "queue",
        Destination::Exchange(_) => "exchange",
    };
    Happening::new(key)
        .with("source_name", &*binding.source)
        .with("source_kind", "exchange")
        .with("destination_name", &**binding.destination.name())
        .with("destination_kind", kind)
        .with("routing_key", Value::LongStr(binding.routing_key.to_vec()))
        .with("arguments", shown(&binding.arguments))
        .with("vhost", &*binding.vhost)
}

/// Arguments as a table, which programs can read; RabbitMQ writes them as Erlang's terms.
fn shown(arguments: &Table) -> Value {
    Value::Table(arguments.clone())
}
