//! A record's bytes: format, tag, fields. Numbers are little-endian; texts, byte strings and tables have a four-byte
//! length before them.

mod rules;

use super::Record;
use crate::node::{Incarnation, Lifetime, NodeConnection, NodeId};
use crate::{
    ApplyTo, DeclaredExchange, Destination, ExchangeKind, Name, NamedBinding, PasswordHash, Pattern,
    Permission, Policy, PolicyKind, Queue, QueueKind,
};
use model::table::Table;
use model::{ConnectionId, Limits, QueueId};
use std::sync::Arc;

/// The format that is written; the first byte of every record. All formats up to this one are read.
const FORMAT: u8 = 2;

mod tag {
    pub const VHOST_CREATED: u8 = 1;
    pub const VHOST_DELETED: u8 = 2;
    pub const USER_PUT: u8 = 3;
    pub const USER_DELETED: u8 = 4;
    pub const PERMISSIONS_SET: u8 = 5;
    pub const PERMISSIONS_CLEARED: u8 = 6;
    pub const EXCHANGE_DECLARED: u8 = 7;
    pub const EXCHANGE_DELETED: u8 = 8;
    pub const QUEUE_DECLARED: u8 = 9;
    pub const QUEUE_DELETED: u8 = 10;
    pub const BOUND: u8 = 11;
    pub const UNBOUND: u8 = 12;
    pub const QUEUE_IDS_USED: u8 = 13;
    pub const SNAPSHOT_STARTED: u8 = 14;
    pub const SNAPSHOT_FINISHED: u8 = 15;
    pub const SNAPSHOTTED: u8 = 16;
    pub const POLICY_PUT: u8 = 17;
    pub const POLICY_DELETED: u8 = 18;
    pub const QUOTA_SET: u8 = 19;
    pub const GLOBAL_SET: u8 = 20;
    pub const VHOST_DESCRIBED: u8 = 21;
    pub const TOPIC_PERMISSION_SET: u8 = 22;
    pub const TOPIC_PERMISSIONS_CLEARED: u8 = 23;
    pub const QUEUE_DOOMED: u8 = 24;
    pub const NODE_STARTED: u8 = 25;
    pub const INCARNATION_ENDED: u8 = 26;
}

pub(super) fn encode(record: &Record, out: &mut Vec<u8>) {
    let mut out = Writer(out);
    out.byte(FORMAT);
    match record {
        Record::VhostCreated { name } => out.tag(tag::VHOST_CREATED).text(name),
        Record::VhostDeleted { name } => out.tag(tag::VHOST_DELETED).text(name),
        Record::UserPut { name, password, tags } => {
            out.tag(tag::USER_PUT).text(name);
            let hash = password.as_ref().map(PasswordHash::to_bytes);
            out.bytes(hash.as_deref().unwrap_or_default());
            out.number(tags.len() as u64);
            tags.iter().for_each(|tag| out.text(tag));
        }
        Record::UserDeleted { name } => out.tag(tag::USER_DELETED).text(name),
        Record::PermissionsSet(permission) => out.tag(tag::PERMISSIONS_SET).permission(permission),
        Record::PermissionsCleared { user, vhost } => {
            out.tag(tag::PERMISSIONS_CLEARED).text(user);
            out.text(vhost);
        }
        Record::ExchangeDeclared(exchange) => out.tag(tag::EXCHANGE_DECLARED).exchange(exchange),
        Record::ExchangeDeleted { vhost, name, durable } => {
            out.tag(tag::EXCHANGE_DELETED).text(vhost);
            out.text(name);
            out.byte((*durable).into());
        }
        Record::QueueDeclared(queue) => out.tag(tag::QUEUE_DECLARED).queue(queue),
        Record::QueueDoomed { id, durable } => {
            out.tag(tag::QUEUE_DOOMED).number(id.0);
            out.byte((*durable).into());
        }
        Record::QueueDeleted { id, durable } => {
            out.tag(tag::QUEUE_DELETED).number(id.0);
            out.byte((*durable).into());
        }
        Record::Bound(binding) => out.tag(tag::BOUND).binding(binding),
        Record::Unbound(binding) => out.tag(tag::UNBOUND).binding(binding),
        Record::PolicyPut(_)
        | Record::PolicyDeleted { .. }
        | Record::QuotaSet { .. }
        | Record::GlobalSet { .. }
        | Record::VhostDescribed { .. }
        | Record::TopicPermissionSet(_)
        | Record::TopicPermissionsCleared { .. } => encode_rule(record, &mut out),
        Record::NodeStarted { incarnation, name } => {
            out.tag(tag::NODE_STARTED).incarnation(*incarnation);
            out.text(name);
        }
        Record::IncarnationEnded(ended) => out.tag(tag::INCARNATION_ENDED).incarnation(*ended),
        Record::QueueIdsUsed { below } => out.tag(tag::QUEUE_IDS_USED).number(*below),
        Record::SnapshotStarted => out.byte(tag::SNAPSHOT_STARTED),
        Record::SnapshotFinished => out.byte(tag::SNAPSHOT_FINISHED),
        Record::Snapshotted(fact) => {
            out.byte(tag::SNAPSHOTTED);
            encode(fact, out.0);
        }
    }
}

/// What is said about many objects, users and virtual hosts.
fn encode_rule(record: &Record, out: &mut Writer<'_>) {
    match record {
        Record::PolicyPut(policy) => {
            out.byte(tag::POLICY_PUT);
            out.policy(policy);
        }
        Record::PolicyDeleted { vhost, kind, name } => {
            out.tag(tag::POLICY_DELETED).text(vhost);
            out.byte((*kind == PolicyKind::Operator).into());
            out.text(name);
        }
        Record::QuotaSet { of, quota } => {
            out.byte(tag::QUOTA_SET);
            rules::quota(out, of, quota);
        }
        Record::GlobalSet { name, value } => {
            out.tag(tag::GLOBAL_SET).text(name);
            out.table(&rules::global(value.as_ref()));
        }
        Record::VhostDescribed { vhost, metadata } => {
            out.tag(tag::VHOST_DESCRIBED).text(vhost);
            out.table(&rules::metadata(metadata));
        }
        Record::TopicPermissionSet(it) => {
            out.byte(tag::TOPIC_PERMISSION_SET);
            [&*it.user, &it.vhost, &it.exchange, &it.write, &it.read]
                .into_iter()
                .for_each(|text| out.text(text));
        }
        Record::TopicPermissionsCleared {
            user,
            vhost,
            exchange,
        } => {
            out.tag(tag::TOPIC_PERMISSIONS_CLEARED).text(user);
            out.text(vhost);
            out.byte(exchange.is_some().into());
            out.text(exchange.as_deref().unwrap_or_default());
        }
        _ => {}
    }
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn tag(&mut self, tag: u8) -> &mut Self {
        self.byte(tag);
        self
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn table(&mut self, table: &Table) {
        let mut encoded = Vec::new();
        table.encode(&mut encoded);
        self.bytes(&encoded);
    }

    fn permission(&mut self, permission: &Permission) {
        self.text(&permission.user);
        self.text(&permission.vhost);
        for pattern in [&permission.configure, &permission.write, &permission.read] {
            self.text(pattern.source());
        }
    }

    fn exchange(&mut self, exchange: &DeclaredExchange) {
        self.text(&exchange.vhost);
        self.text(&exchange.name);
        self.text(exchange.kind.name());
        self.lifetime(exchange.lifetime);
        self.byte(exchange.auto_delete.into());
        self.byte(exchange.internal.into());
        self.table(&exchange.arguments);
    }

    fn queue(&mut self, queue: &Queue) {
        self.number(queue.id.0);
        self.byte(queue.kind.number());
        self.text(&queue.vhost);
        self.text(&queue.name);
        self.lifetime(queue.lifetime);
        self.number(queue.home.0);
        self.byte(queue.members.len() as u8);
        queue.members.iter().for_each(|node| self.number(node.0));
        self.byte(queue.auto_delete.into());
        self.table(&queue.arguments);
    }

    fn incarnation(&mut self, incarnation: Incarnation) {
        self.number(incarnation.node.0);
        self.number(incarnation.number);
    }

    fn lifetime(&mut self, lifetime: Lifetime) {
        match lifetime {
            Lifetime::Durable => self.byte(0),
            Lifetime::Incarnation(incarnation) => {
                self.byte(1);
                self.incarnation(incarnation);
            }
            Lifetime::Connection(NodeConnection {
                incarnation,
                connection,
            }) => {
                self.byte(2);
                self.incarnation(incarnation);
                self.number(connection.0);
            }
        }
    }

    fn policy(&mut self, policy: &Policy) {
        self.text(&policy.vhost);
        self.byte((policy.kind == PolicyKind::Operator).into());
        self.text(&policy.name);
        self.text(policy.pattern.source());
        self.text(policy.apply_to.name());
        self.number(policy.priority.cast_unsigned());
        self.table(&policy.definition);
    }

    fn binding(&mut self, binding: &NamedBinding) {
        self.text(&binding.vhost);
        self.text(&binding.source);
        self.byte(matches!(binding.destination, Destination::Exchange(_)).into());
        self.text(binding.destination.name());
        self.bytes(&binding.routing_key);
        self.table(&binding.arguments);
        self.byte(binding.durable.into());
    }
}

pub(super) fn decode(bytes: &[u8]) -> Option<Record> {
    let mut reader = Reader(bytes);
    if reader.byte()? != FORMAT {
        return None;
    }
    let record = match reader.byte()? {
        tag::VHOST_CREATED => Record::VhostCreated { name: reader.name()? },
        tag::VHOST_DELETED => Record::VhostDeleted { name: reader.name()? },
        tag::USER_PUT => reader.user()?,
        tag::USER_DELETED => Record::UserDeleted { name: reader.name()? },
        tag::PERMISSIONS_SET => reader.permission()?,
        tag::PERMISSIONS_CLEARED => Record::PermissionsCleared {
            user: reader.name()?,
            vhost: reader.name()?,
        },
        tag::EXCHANGE_DECLARED => reader.exchange()?,
        tag::EXCHANGE_DELETED => Record::ExchangeDeleted {
            vhost: reader.name()?,
            name: reader.name()?,
            durable: reader.flag()?,
        },
        tag::QUEUE_DECLARED => reader.queue()?,
        tag::QUEUE_DOOMED => Record::QueueDoomed {
            id: QueueId(reader.number()?),
            durable: reader.flag()?,
        },
        tag::QUEUE_DELETED => Record::QueueDeleted {
            id: QueueId(reader.number()?),
            durable: reader.flag()?,
        },
        tag::BOUND => Record::Bound(reader.binding()?),
        tag::UNBOUND => Record::Unbound(reader.binding()?),
        tag::POLICY_PUT => reader.policy()?,
        tag::POLICY_DELETED => Record::PolicyDeleted {
            vhost: reader.name()?,
            kind: reader.policy_kind()?,
            name: reader.name()?,
        },
        tag::QUOTA_SET => rules::read_quota(&mut reader)?,
        tag::GLOBAL_SET => Record::GlobalSet {
            name: reader.name()?,
            value: rules::read_global(&reader.table()?),
        },
        tag::VHOST_DESCRIBED => Record::VhostDescribed {
            vhost: reader.name()?,
            metadata: rules::read_metadata(&reader.table()?),
        },
        tag::TOPIC_PERMISSION_SET => rules::read_topic_permission(&mut reader)?,
        tag::TOPIC_PERMISSIONS_CLEARED => Record::TopicPermissionsCleared {
            user: reader.name()?,
            vhost: reader.name()?,
            exchange: match (reader.flag()?, reader.name()?) {
                (true, name) => Some(name),
                (false, _) => None,
            },
        },
        tag::NODE_STARTED => Record::NodeStarted {
            incarnation: reader.incarnation()?,
            name: reader.name()?,
        },
        tag::INCARNATION_ENDED => Record::IncarnationEnded(reader.incarnation()?),
        tag::QUEUE_IDS_USED => Record::QueueIdsUsed {
            below: reader.number()?,
        },
        tag::SNAPSHOT_STARTED => Record::SnapshotStarted,
        tag::SNAPSHOT_FINISHED => Record::SnapshotFinished,
        tag::SNAPSHOTTED => reader.snapshotted()?,
        _ => return None,
    };
    reader.0.is_empty().then_some(record)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        Some(head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
        self.take(length as usize)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn name(&mut self) -> Option<Name> {
        self.text().map(Name::from)
    }

    fn table(&mut self) -> Option<Table> {
        // It was within limits when it was declared, perhaps wider ones; it still cannot be larger than its bytes.
        Table::decode(self.bytes()?, &Limits::STORED).ok()
    }

    fn destination(&mut self) -> Option<Destination> {
        Some(if self.flag()? {
            Destination::Exchange(self.name()?)
        } else {
            Destination::Queue(self.name()?)
        })
    }

    fn binding(&mut self) -> Option<NamedBinding> {
        Some(NamedBinding {
            vhost: self.name()?,
            source: self.name()?,
            destination: self.destination()?,
            routing_key: self.bytes()?.into(),
            arguments: self.table()?,
            durable: self.flag()?,
        })
    }

    fn policy_kind(&mut self) -> Option<PolicyKind> {
        Some(match self.flag()? {
            true => PolicyKind::Operator,
            false => PolicyKind::User,
        })
    }

    fn policy(&mut self) -> Option<Record> {
        let (vhost, kind, name) = (self.name()?, self.policy_kind()?, self.name()?);
        Some(Record::PolicyPut(Arc::new(Policy {
            vhost,
            kind,
            name,
            // It was checked when it was put; should a later version not understand it, it matches nothing.
            pattern: Pattern::of_policy(self.text()?).unwrap_or_default(),
            apply_to: ApplyTo::from_name(self.text()?)?,
            priority: self.number()?.cast_signed(),
            definition: Arc::new(self.table()?),
        })))
    }

    /// A fact within a snapshot. Snapshots have no snapshots in them, so this goes no deeper, whatever the bytes say.
    fn snapshotted(&mut self) -> Option<Record> {
        let fact = std::mem::take(&mut self.0);
        match fact.get(1)? {
            &(tag::SNAPSHOT_STARTED | tag::SNAPSHOT_FINISHED | tag::SNAPSHOTTED) => None,
            _ => decode(fact).map(|fact| Record::Snapshotted(Box::new(fact))),
        }
    }

    fn user(&mut self) -> Option<Record> {
        let name = self.name()?;
        let password = match self.bytes()? {
            b"" => None,
            bytes => Some(PasswordHash::from_bytes(bytes)?),
        };
        let count = self.number()?;
        let tags = (0..count)
            .map(|_| self.text().map(String::from))
            .collect::<Option<_>>()?;
        Some(Record::UserPut { name, password, tags })
    }

    fn permission(&mut self) -> Option<Record> {
        Some(Record::PermissionsSet(Arc::new(Permission {
            user: self.name()?,
            vhost: self.name()?,
            configure: self.pattern()?,
            write: self.pattern()?,
            read: self.pattern()?,
        })))
    }

    /// It was checked when it was set; should a later version not understand it, it permits nothing.
    fn pattern(&mut self) -> Option<Pattern> {
        Some(Pattern::new(self.text()?).unwrap_or_default())
    }

    fn exchange(&mut self) -> Option<Record> {
        Some(Record::ExchangeDeclared(DeclaredExchange {
            vhost: self.name()?,
            name: self.name()?,
            kind: ExchangeKind::from_name(self.text()?)?,
            lifetime: self.lifetime()?,
            auto_delete: self.flag()?,
            internal: self.flag()?,
            arguments: Arc::new(self.table()?),
        }))
    }

    fn queue(&mut self) -> Option<Record> {
        Some(Record::QueueDeclared(Arc::new(Queue {
            id: QueueId(self.number()?),
            kind: QueueKind::from_number(self.byte()?)?,
            vhost: self.name()?,
            name: self.name()?,
            lifetime: self.lifetime()?,
            home: NodeId(self.number()?),
            members: self.nodes()?,
            auto_delete: self.flag()?,
            arguments: Arc::new(self.table()?),
        })))
    }

    /// Members of a queue. However many are announced, there are no more than bytes for them.
    fn nodes(&mut self) -> Option<Arc<[NodeId]>> {
        let count = self.byte()?;
        (0..count).map(|_| self.number().map(NodeId)).collect()
    }

    fn incarnation(&mut self) -> Option<Incarnation> {
        Some(Incarnation {
            node: NodeId(self.number()?),
            number: self.number()?,
        })
    }

    fn lifetime(&mut self) -> Option<Lifetime> {
        Some(match self.byte()? {
            0 => Lifetime::Durable,
            1 => Lifetime::Incarnation(self.incarnation()?),
            2 => Lifetime::Connection(NodeConnection {
                incarnation: self.incarnation()?,
                connection: ConnectionId(self.number()?),
            }),
            _ => return None,
        })
    }
}
