//! The fields that the bytes of records and requests are made of. Numbers are little-endian; texts, byte strings and
//! tables have a four-byte length before them.

mod rules;

use crate::node::{Incarnation, Joined, Lifetime, NodeConnection, NodeId};
use crate::{
    ApplyTo, DeclaredExchange, Destination, Epoch, ExchangeKind, Member, Name, NamedBinding, PasswordHash,
    Pattern, Permission, Policy, PolicyKind, Queue, QueueKind,
};
use model::table::Table;
use model::{ConnectionId, Limits, QueueId};
use std::sync::Arc;

/// Records of queues that were never converted do not say it: of these only quorum queues were founded anew, and nothing else
/// gave them another epoch.
fn is_refounded_unless_said(queue: &Queue) -> bool {
    queue.kind == QueueKind::Quorum && queue.epoch.number > 0
}

/// Writes fields behind each other.
pub(crate) struct Writer<'a>(pub(crate) &'a mut Vec<u8>);

impl Writer<'_> {
    pub fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub fn tag(&mut self, tag: u8) -> &mut Self {
        self.byte(tag);
        self
    }

    pub fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub fn texts(&mut self, texts: &[&str]) {
        texts.iter().for_each(|text| self.text(text));
    }

    pub fn flags(&mut self, flags: &[bool]) {
        flags.iter().for_each(|flag| self.byte((*flag).into()));
    }

    pub fn policy_kind(&mut self, kind: PolicyKind) {
        self.byte((kind == PolicyKind::Operator).into());
    }

    pub fn destination(&mut self, destination: &Destination) {
        self.byte(matches!(destination, Destination::Exchange(_)).into());
        self.text(destination.name());
    }

    pub fn connection(&mut self, connection: NodeConnection) {
        self.incarnation(connection.incarnation);
        self.number(connection.connection.0);
    }

    pub fn table(&mut self, table: &Table) {
        let mut encoded = Vec::new();
        table.encode(&mut encoded);
        self.bytes(&encoded);
    }

    pub fn user(&mut self, name: &str, password: Option<&PasswordHash>, tags: &[String]) {
        self.text(name);
        self.bytes(&password.map(PasswordHash::to_bytes).unwrap_or_default());
        self.number(tags.len() as u64);
        tags.iter().for_each(|tag| self.text(tag));
    }

    pub fn optional_text(&mut self, text: Option<&str>) {
        self.byte(text.is_some().into());
        self.text(text.unwrap_or_default());
    }

    pub fn permission(&mut self, permission: &Permission) {
        self.text(&permission.user);
        self.text(&permission.vhost);
        for pattern in [&permission.configure, &permission.write, &permission.read] {
            self.text(pattern.source());
        }
    }

    pub fn exchange(&mut self, exchange: &DeclaredExchange) {
        self.text(&exchange.vhost);
        self.text(&exchange.name);
        self.text(exchange.kind.name());
        self.lifetime(exchange.lifetime);
        self.byte(exchange.auto_delete.into());
        self.byte(exchange.internal.into());
        self.table(&exchange.arguments);
    }

    /// But for the members that have changed, which stand at the end of what has the queue, if there are any.
    pub fn queue(&mut self, queue: &Queue) {
        self.number(queue.id.0);
        self.byte(queue.kind.number());
        self.text(&queue.vhost);
        self.text(&queue.name);
        self.lifetime(queue.lifetime);
        self.number(queue.home.0);
        self.byte(queue.founders.len() as u8);
        queue.founders.iter().for_each(|node| self.number(node.0));
        self.byte(queue.auto_delete.into());
        self.table(&queue.arguments);
    }

    /// A queue, and what records of earlier builds did not say.
    pub fn queue_with_members(&mut self, queue: &Queue) {
        self.queue(queue);
        let other = queue.other_arguments.as_ref();
        let is_converted = other.is_some() || queue.epoch.is_refounded != is_refounded_unless_said(queue);
        let has_epoch = is_converted || queue.epoch != Epoch::default();
        if !queue.changed.is_empty() || has_epoch {
            self.members(&queue.changed);
        }
        if has_epoch {
            self.number(queue.epoch.number.into());
            self.number(queue.epoch.behind);
        }
        if is_converted {
            self.flags(&[queue.epoch.is_refounded, other.is_some()]);
            other.into_iter().for_each(|table| self.table(table));
        }
    }

    pub fn members(&mut self, members: &[Member]) {
        self.number(members.len() as u64);
        for member in members {
            self.number(member.node.0);
            self.number(member.life.into());
            self.byte(member.is_gone.into());
        }
    }

    pub fn incarnation(&mut self, incarnation: Incarnation) {
        self.number(incarnation.node.0);
        self.number(incarnation.number);
    }

    pub fn joined(&mut self, joined: Joined) {
        self.number(joined.port.into());
        self.bytes(&joined.token);
    }

    pub fn lifetime(&mut self, lifetime: Lifetime) {
        match lifetime {
            Lifetime::Durable => self.byte(0),
            Lifetime::Incarnation(incarnation) => {
                self.byte(1);
                self.incarnation(incarnation);
            }
            Lifetime::Connection(connection) => {
                self.byte(2);
                self.connection(connection);
            }
        }
    }

    pub fn policy(&mut self, policy: &Policy) {
        self.text(&policy.vhost);
        self.policy_kind(policy.kind);
        self.text(&policy.name);
        self.text(policy.pattern.source());
        self.text(policy.apply_to.name());
        self.number(policy.priority.cast_unsigned());
        self.table(&policy.definition);
    }

    pub fn binding(&mut self, binding: &NamedBinding) {
        self.text(&binding.vhost);
        self.text(&binding.source);
        self.destination(&binding.destination);
        self.bytes(&binding.routing_key);
        self.table(&binding.arguments);
        self.byte(binding.durable.into());
    }
}

/// Reads fields behind each other; what is left is its content.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// True if nothing is left.
    pub fn is_done(&self) -> bool {
        self.0.is_empty()
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        Some(head)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// A number of things in memory.
    pub fn count(&mut self) -> Option<usize> {
        self.number()?.try_into().ok()
    }

    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
        self.take(length as usize)
    }

    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    pub fn name(&mut self) -> Option<Name> {
        self.text().map(Name::from)
    }

    pub fn string(&mut self) -> Option<String> {
        self.text().map(String::from)
    }

    pub fn optional_name(&mut self) -> Option<Option<Name>> {
        let (is_there, name) = (self.flag()?, self.name()?);
        Some(is_there.then_some(name))
    }

    pub fn table(&mut self) -> Option<Table> {
        // It was within limits when it was declared, perhaps wider ones; it still cannot be larger than its bytes.
        Table::decode(self.bytes()?, &Limits::STORED).ok()
    }

    pub fn destination(&mut self) -> Option<Destination> {
        Some(if self.flag()? {
            Destination::Exchange(self.name()?)
        } else {
            Destination::Queue(self.name()?)
        })
    }

    pub fn binding(&mut self) -> Option<NamedBinding> {
        Some(NamedBinding {
            vhost: self.name()?,
            source: self.name()?,
            destination: self.destination()?,
            routing_key: self.bytes()?.into(),
            arguments: self.table()?,
            durable: self.flag()?,
        })
    }

    pub fn policy_kind(&mut self) -> Option<PolicyKind> {
        Some(match self.flag()? {
            true => PolicyKind::Operator,
            false => PolicyKind::User,
        })
    }

    pub fn policy(&mut self) -> Option<Arc<Policy>> {
        let (vhost, kind, name) = (self.name()?, self.policy_kind()?, self.name()?);
        Some(Arc::new(Policy {
            vhost,
            kind,
            name,
            // It was checked when it was put; should a later version not understand it, it matches nothing.
            pattern: Pattern::of_policy(self.text()?).unwrap_or_default(),
            apply_to: ApplyTo::from_name(self.text()?)?,
            priority: self.number()?.cast_signed(),
            definition: Arc::new(self.table()?),
        }))
    }

    pub fn user(&mut self) -> Option<(Name, Option<PasswordHash>, Vec<String>)> {
        let name = self.name()?;
        let password = match self.bytes()? {
            b"" => None,
            bytes => Some(PasswordHash::from_bytes(bytes)?),
        };
        let count = self.number()?;
        let tags = (0..count).map(|_| self.string()).collect::<Option<_>>()?;
        Some((name, password, tags))
    }

    pub fn permission(&mut self) -> Option<Arc<Permission>> {
        Some(Arc::new(Permission {
            user: self.name()?,
            vhost: self.name()?,
            configure: self.pattern()?,
            write: self.pattern()?,
            read: self.pattern()?,
        }))
    }

    /// It was checked when it was set; should a later version not understand it, it permits nothing.
    pub fn pattern(&mut self) -> Option<Pattern> {
        Some(Pattern::new(self.text()?).unwrap_or_default())
    }

    pub fn exchange(&mut self) -> Option<DeclaredExchange> {
        Some(DeclaredExchange {
            vhost: self.name()?,
            name: self.name()?,
            kind: ExchangeKind::from_name(self.text()?)?,
            lifetime: self.lifetime()?,
            auto_delete: self.flag()?,
            internal: self.flag()?,
            arguments: Arc::new(self.table()?),
        })
    }

    /// The same with the members that have changed, and its generation, which end what is read.
    pub fn queue_with_members(&mut self) -> Option<Arc<Queue>> {
        let queue = self.queue()?;
        if self.is_done() {
            return Some(queue);
        }
        let changed = self.members()?;
        let epoch = match self.is_done() {
            true => Epoch::default(),
            false => Epoch {
                number: self.number()?.try_into().ok()?,
                behind: self.number()?,
                is_refounded: false,
            },
        };
        let mut queue = Queue {
            changed,
            epoch,
            ..(*queue).clone()
        };
        queue.epoch.is_refounded = is_refounded_unless_said(&queue);
        if !self.is_done() {
            queue.epoch.is_refounded = self.flag()?;
            queue.other_arguments = match self.flag()? {
                true => Some(Arc::new(self.table()?)),
                false => None,
            };
        }
        Some(Arc::new(queue))
    }

    pub fn queue(&mut self) -> Option<Arc<Queue>> {
        Some(Arc::new(Queue {
            id: QueueId(self.number()?),
            kind: QueueKind::from_number(self.byte()?)?,
            vhost: self.name()?,
            name: self.name()?,
            lifetime: self.lifetime()?,
            home: NodeId(self.number()?),
            founders: self.nodes()?,
            auto_delete: self.flag()?,
            arguments: Arc::new(self.table()?),
            changed: Arc::default(),
            epoch: Epoch::default(),
            other_arguments: None,
        }))
    }

    /// However many are announced, there are no more than bytes for them.
    pub fn members(&mut self) -> Option<Arc<[Member]>> {
        let count = self.number()?;
        let member = |_| {
            Some(Member {
                node: NodeId(self.number()?),
                life: self.number()?.try_into().ok()?,
                is_gone: self.flag()?,
            })
        };
        (0..count).map(member).collect()
    }

    /// Members of a queue. However many are announced, there are no more than bytes for them.
    pub fn nodes(&mut self) -> Option<Arc<[NodeId]>> {
        let count = self.byte()?;
        (0..count).map(|_| self.number().map(NodeId)).collect()
    }

    pub fn incarnation(&mut self) -> Option<Incarnation> {
        Some(Incarnation {
            node: NodeId(self.number()?),
            number: self.number()?,
        })
    }

    pub fn joined(&mut self) -> Option<Joined> {
        Some(Joined {
            port: self.number()?.try_into().ok()?,
            token: self.bytes()?.try_into().ok()?,
        })
    }

    pub fn connection(&mut self) -> Option<NodeConnection> {
        Some(NodeConnection {
            incarnation: self.incarnation()?,
            connection: ConnectionId(self.number()?),
        })
    }

    pub fn lifetime(&mut self) -> Option<Lifetime> {
        Some(match self.byte()? {
            0 => Lifetime::Durable,
            1 => Lifetime::Incarnation(self.incarnation()?),
            2 => Lifetime::Connection(self.connection()?),
            _ => return None,
        })
    }
}
