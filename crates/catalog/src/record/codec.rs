//! A record's bytes: format, tag, fields ([`crate::codec`]).

use super::Record;
use crate::NodeId;
use crate::codec::{Reader, Writer};
use model::QueueId;

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
    pub const NODE_JOINED: u8 = 27;
    pub const NODE_FORGOTTEN: u8 = 28;
    pub const NODE_DRAINED: u8 = 29;
    pub const MEMBERS_CHANGED: u8 = 30;
    pub const QUEUE_CHANGED: u8 = 31;
    pub const QUEUE_REFOUNDED: u8 = 32;
}

pub(super) fn encode(record: &Record, out: &mut Vec<u8>) {
    let mut out = Writer(out);
    out.byte(FORMAT);
    match record {
        Record::VhostCreated { name } => out.tag(tag::VHOST_CREATED).text(name),
        Record::VhostDeleted { name } => out.tag(tag::VHOST_DELETED).text(name),
        Record::UserPut { name, password, tags } => {
            out.tag(tag::USER_PUT).user(name, password.as_ref(), tags);
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
        Record::QueueDeclared(queue) => {
            out.byte(tag::QUEUE_DECLARED);
            out.queue_with_members(queue);
        }
        Record::QueueChanged(queue) => {
            out.byte(tag::QUEUE_CHANGED);
            out.queue_with_members(queue);
        }
        Record::QueueRefounded { id, node, generation } => {
            out.tag(tag::QUEUE_REFOUNDED).number(id.0);
            out.number(node.0);
            out.number((*generation).into());
        }
        Record::MembersChanged { id, changed } => {
            out.tag(tag::MEMBERS_CHANGED).number(id.0);
            out.members(changed);
        }
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
        Record::NodeStarted {
            incarnation,
            name,
            takes_queues,
        } => {
            out.tag(tag::NODE_STARTED).incarnation(*incarnation);
            out.text(name);
            // Records of earlier builds end here.
            if !takes_queues {
                out.flags(&[false]);
            }
        }
        Record::IncarnationEnded(ended) => out.tag(tag::INCARNATION_ENDED).incarnation(*ended),
        Record::NodeJoined { node, name, joined } => {
            out.tag(tag::NODE_JOINED).number(node.0);
            out.text(name);
            out.joined(*joined);
        }
        Record::NodeForgotten { node } => out.tag(tag::NODE_FORGOTTEN).number(node.0),
        Record::NodeDrained { node, drained } => {
            out.tag(tag::NODE_DRAINED).number(node.0);
            out.flags(&[*drained]);
        }
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
            out.policy_kind(*kind);
            out.text(name);
        }
        Record::QuotaSet { of, quota } => {
            out.byte(tag::QUOTA_SET);
            out.quota(of, quota);
        }
        Record::GlobalSet { name, value } => {
            out.tag(tag::GLOBAL_SET).text(name);
            out.global(value.as_ref());
        }
        Record::VhostDescribed { vhost, metadata } => {
            out.tag(tag::VHOST_DESCRIBED).text(vhost);
            out.metadata(metadata);
        }
        Record::TopicPermissionSet(it) => {
            out.byte(tag::TOPIC_PERMISSION_SET);
            out.texts(&[&it.user, &it.vhost, &it.exchange, &it.write, &it.read]);
        }
        Record::TopicPermissionsCleared {
            user,
            vhost,
            exchange,
        } => {
            out.tag(tag::TOPIC_PERMISSIONS_CLEARED).text(user);
            out.text(vhost);
            out.optional_text(exchange.as_deref());
        }
        _ => {}
    }
}

pub(super) fn decode(bytes: &[u8]) -> Option<Record> {
    let mut reader = Reader::new(bytes);
    if reader.byte()? != FORMAT {
        return None;
    }
    let record = match reader.byte()? {
        tag::VHOST_CREATED => Record::VhostCreated { name: reader.name()? },
        tag::VHOST_DELETED => Record::VhostDeleted { name: reader.name()? },
        tag::USER_PUT => {
            let (name, password, tags) = reader.user()?;
            Record::UserPut { name, password, tags }
        }
        tag::USER_DELETED => Record::UserDeleted { name: reader.name()? },
        tag::PERMISSIONS_SET => Record::PermissionsSet(reader.permission()?),
        tag::PERMISSIONS_CLEARED => Record::PermissionsCleared {
            user: reader.name()?,
            vhost: reader.name()?,
        },
        tag::EXCHANGE_DECLARED => Record::ExchangeDeclared(reader.exchange()?),
        tag::EXCHANGE_DELETED => Record::ExchangeDeleted {
            vhost: reader.name()?,
            name: reader.name()?,
            durable: reader.flag()?,
        },
        tag::QUEUE_DECLARED => Record::QueueDeclared(reader.queue_with_members()?),
        tag::QUEUE_CHANGED => Record::QueueChanged(reader.queue_with_members()?),
        tag::MEMBERS_CHANGED => Record::MembersChanged {
            id: QueueId(reader.number()?),
            changed: reader.members()?,
        },
        tag::QUEUE_REFOUNDED => Record::QueueRefounded {
            id: QueueId(reader.number()?),
            node: NodeId(reader.number()?),
            generation: reader.number()?.try_into().ok()?,
        },
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
        tag::POLICY_PUT => Record::PolicyPut(reader.policy()?),
        tag::POLICY_DELETED => Record::PolicyDeleted {
            vhost: reader.name()?,
            kind: reader.policy_kind()?,
            name: reader.name()?,
        },
        tag::QUOTA_SET => {
            let (of, quota) = reader.quota()?;
            Record::QuotaSet { of, quota }
        }
        tag::GLOBAL_SET => Record::GlobalSet {
            name: reader.name()?,
            value: reader.global()?,
        },
        tag::VHOST_DESCRIBED => Record::VhostDescribed {
            vhost: reader.name()?,
            metadata: reader.metadata()?,
        },
        tag::TOPIC_PERMISSION_SET => Record::TopicPermissionSet(reader.topic_permission()?),
        tag::TOPIC_PERMISSIONS_CLEARED => Record::TopicPermissionsCleared {
            user: reader.name()?,
            vhost: reader.name()?,
            exchange: reader.optional_name()?,
        },
        tag::NODE_STARTED => Record::NodeStarted {
            incarnation: reader.incarnation()?,
            name: reader.name()?,
            takes_queues: reader.is_done() || reader.flag()?,
        },
        tag::INCARNATION_ENDED => Record::IncarnationEnded(reader.incarnation()?),
        tag::NODE_JOINED => Record::NodeJoined {
            node: NodeId(reader.number()?),
            name: reader.name()?,
            joined: reader.joined()?,
        },
        tag::NODE_FORGOTTEN => Record::NodeForgotten {
            node: NodeId(reader.number()?),
        },
        tag::NODE_DRAINED => Record::NodeDrained {
            node: NodeId(reader.number()?),
            drained: reader.flag()?,
        },
        tag::QUEUE_IDS_USED => Record::QueueIdsUsed {
            below: reader.number()?,
        },
        tag::SNAPSHOT_STARTED => Record::SnapshotStarted,
        tag::SNAPSHOT_FINISHED => Record::SnapshotFinished,
        tag::SNAPSHOTTED => snapshotted(&mut reader)?,
        _ => return None,
    };
    reader.is_done().then_some(record)
}

/// A fact within a snapshot. Snapshots have no snapshots in them, so this goes no deeper, whatever the bytes say.
fn snapshotted(reader: &mut Reader<'_>) -> Option<Record> {
    let fact = reader.rest();
    match fact.get(1)? {
        &(tag::SNAPSHOT_STARTED | tag::SNAPSHOT_FINISHED | tag::SNAPSHOTTED) => None,
        _ => decode(fact).map(|fact| Record::Snapshotted(Box::new(fact))),
    }
}
