//! A request's bytes: format, tag, fields ([`crate::codec`]). The node that decides may be another one than the node
//! that is asked.
//!
//! What a node asks of its own journal (its snapshots) is nobody else's business and has no bytes.

use super::{DeclareExchange, DeclareQueue, PutPolicy, Request, WantedBinding};
use crate::codec::{Reader, Writer};
use crate::{NodeId, QueueKind};
use model::QueueId;

/// The format that is written and read; the first byte of every request.
const FORMAT: u8 = 2;

mod tag {
    pub const CREATE_VHOST: u8 = 1;
    pub const DELETE_VHOST: u8 = 2;
    pub const PUT_USER: u8 = 3;
    pub const DELETE_USER: u8 = 4;
    pub const SET_PERMISSIONS: u8 = 5;
    pub const CLEAR_PERMISSIONS: u8 = 6;
    pub const DECLARE_EXCHANGE: u8 = 7;
    pub const DELETE_EXCHANGE: u8 = 8;
    pub const DECLARE_QUEUE: u8 = 9;
    pub const DELETE_QUEUE: u8 = 10;
    pub const BIND: u8 = 11;
    pub const UNBIND: u8 = 12;
    pub const PUT_POLICY: u8 = 13;
    pub const DELETE_POLICY: u8 = 14;
    pub const SET_LIMITS: u8 = 15;
    pub const SET_GLOBAL: u8 = 16;
    pub const DESCRIBE_VHOST: u8 = 17;
    pub const SET_TOPIC_PERMISSION: u8 = 18;
    pub const CLEAR_TOPIC_PERMISSIONS: u8 = 19;
    pub const CLOSE_CONNECTION: u8 = 20;
    pub const START_NODE: u8 = 21;
    pub const END_TRANSIENT: u8 = 22;
    pub const CLEAR_BINDINGS: u8 = 23;
    pub const JOIN_NODE: u8 = 24;
    pub const FORGET_NODE: u8 = 25;
    pub const ALL: u8 = 26;
    pub const DRAIN_NODE: u8 = 27;
    pub const CHANGE_MEMBER: u8 = 28;
    pub const ADD_MEMBER: u8 = 29;
    pub const MIRROR: u8 = 30;
    pub const UNMIRROR: u8 = 31;
    pub const REFOUND_QUEUE: u8 = 32;
    pub const CONVERT_QUEUE: u8 = 33;
    /// The declaration of a queue that was converted, with what it was declared with before.
    pub const DECLARE_CONVERTED: u8 = 34;
    pub const SAY_GROWN: u8 = 35;
}

/// The bytes; `None` if there are none for such a request, or too many.
pub(super) fn encode(request: &Request) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut out = Writer(&mut bytes);
    out.byte(FORMAT);
    match request {
        Request::StartSnapshot | Request::ContinueSnapshot { .. } | Request::FinishSnapshot => return None,
        Request::DeclareExchange { .. }
        | Request::DeleteExchange { .. }
        | Request::DeclareQueue { .. }
        | Request::DeleteQueue { .. }
        | Request::Bind { .. }
        | Request::Unbind { .. }
        | Request::ClearBindings { .. } => encode_object(request, &mut out),
        Request::CreateVhost { name } => out.tag(tag::CREATE_VHOST).text(name),
        Request::DeleteVhost { name } => out.tag(tag::DELETE_VHOST).text(name),
        Request::PutUser { name, password, tags } => {
            out.tag(tag::PUT_USER).user(name, password.as_ref(), tags);
        }
        Request::DeleteUser { name } => out.tag(tag::DELETE_USER).text(name),
        Request::CloseConnection { connection, at_most } => {
            out.tag(tag::CLOSE_CONNECTION).connection(*connection);
            out.number(*at_most as u64);
        }
        Request::StartNode {
            node,
            name,
            takes_queues,
        } => {
            out.tag(tag::START_NODE).number(node.0);
            out.text(name);
            out.flags(&[*takes_queues]);
        }
        Request::JoinNode { name, joined } => {
            out.tag(tag::JOIN_NODE).text(name);
            out.joined(*joined);
        }
        Request::ForgetNode { node } => out.tag(tag::FORGET_NODE).number(node.0),
        Request::DrainNode { node, drained } => {
            out.tag(tag::DRAIN_NODE).number(node.0);
            out.flags(&[*drained]);
        }
        Request::ChangeMember { id, node, is_member } => {
            out.tag(tag::CHANGE_MEMBER).number(id.0);
            out.number(node.0);
            out.flags(&[*is_member]);
        }
        Request::RefoundQueue { id, node, generation } => {
            out.tag(tag::REFOUND_QUEUE).number(id.0);
            out.number(node.0);
            out.number((*generation).into());
        }
        Request::AddMember {
            id,
            nodes: among,
            size,
        } => {
            out.tag(tag::ADD_MEMBER).number(id.0);
            nodes(&mut out, among);
            out.number(*size as u64);
        }
        Request::Mirror {
            id,
            nodes: all,
            epoch,
        } => {
            out.tag(tag::MIRROR).number(id.0);
            nodes(&mut out, all);
            out.number((*epoch).into());
        }
        Request::Unmirror { id, node, behind } => {
            out.tag(tag::UNMIRROR).number(id.0);
            out.number(node.0);
            out.number(*behind);
        }
        Request::ConvertQueue { vhost, name, kind } => {
            out.tag(tag::CONVERT_QUEUE).texts(&[vhost, name]);
            out.byte(kind.number());
        }
        Request::SayGrown { id, epoch } => {
            out.tag(tag::SAY_GROWN).number(id.0);
            out.number((*epoch).into());
        }
        Request::EndTransient { at_most } => out.tag(tag::END_TRANSIENT).number(*at_most as u64),
        Request::All { of, requests } => {
            out.tag(tag::ALL).flags(&[of.is_some()]);
            out.number(of.unwrap_or_default());
            for request in requests {
                if matches!(request, Request::All { .. }) {
                    return None;
                }
                out.bytes(&encode(request)?);
            }
        }
        rule => encode_rule(rule, &mut out),
    }
    (bytes.len() <= Request::MOST_BYTES).then_some(bytes)
}

/// Exchanges, queues and bindings.
fn encode_object(request: &Request, out: &mut Writer<'_>) {
    match request {
        Request::DeclareExchange { vhost, declare, by } => {
            out.tag(tag::DECLARE_EXCHANGE);
            out.texts(&[vhost, &declare.name, &declare.kind]);
            out.flags(&[
                declare.passive,
                declare.durable,
                declare.auto_delete,
                declare.internal,
            ]);
            out.table(&declare.arguments);
            nodes(out, &declare.homes);
            out.incarnation(*by);
        }
        Request::DeleteExchange {
            vhost,
            name,
            if_unused,
        } => {
            out.tag(tag::DELETE_EXCHANGE).texts(&[vhost, name]);
            out.flags(&[*if_unused]);
        }
        Request::DeclareQueue {
            vhost,
            declare,
            by,
            unique,
        } => {
            let other = declare.other_arguments.as_ref();
            let tag = other.map_or(tag::DECLARE_QUEUE, |_| tag::DECLARE_CONVERTED);
            out.tag(tag).texts(&[vhost, &declare.name]);
            out.flags(&[
                declare.passive,
                declare.durable,
                declare.exclusive,
                declare.auto_delete,
            ]);
            out.table(&declare.arguments);
            nodes(out, &declare.homes);
            out.connection(*by);
            out.bytes(unique);
            other.into_iter().for_each(|table| out.table(table));
        }
        Request::DeleteQueue { id } => out.tag(tag::DELETE_QUEUE).number(id.0),
        Request::Bind { vhost, binding } => wanted(out.tag(tag::BIND), vhost, binding),
        Request::Unbind { vhost, binding } => wanted(out.tag(tag::UNBIND), vhost, binding),
        Request::ClearBindings { id, at_most } => {
            out.tag(tag::CLEAR_BINDINGS).number(id.0);
            out.number(*at_most as u64);
        }
        _ => {}
    }
}

fn nodes(out: &mut Writer<'_>, nodes: &[NodeId]) {
    out.number(nodes.len() as u64);
    nodes.iter().for_each(|node| out.number(node.0));
}

/// However many are announced, there are no more than bytes for them.
fn read_nodes(reader: &mut Reader<'_>) -> Option<Vec<NodeId>> {
    let count = reader.number()?;
    (0..count).map(|_| reader.number().map(NodeId)).collect()
}

fn wanted(out: &mut Writer<'_>, vhost: &str, binding: &WantedBinding) {
    out.texts(&[vhost, &binding.source]);
    out.destination(&binding.destination);
    out.bytes(&binding.routing_key);
    out.table(&binding.arguments);
    out.connection(binding.by);
}

/// Permissions, policies, limits and parameters.
fn encode_rule(request: &Request, out: &mut Writer<'_>) {
    match request {
        Request::SetPermissions {
            user,
            vhost,
            configure,
            write,
            read,
        } => out
            .tag(tag::SET_PERMISSIONS)
            .texts(&[user, vhost, configure, write, read]),
        Request::ClearPermissions { user, vhost } => out.tag(tag::CLEAR_PERMISSIONS).texts(&[user, vhost]),
        Request::PutPolicy {
            vhost,
            kind,
            name,
            policy,
        } => {
            out.tag(tag::PUT_POLICY).policy_kind(*kind);
            out.texts(&[vhost, name, &policy.pattern, &policy.apply_to]);
            out.number(policy.priority.cast_unsigned());
            out.table(&policy.definition);
        }
        Request::DeletePolicy { vhost, kind, name } => {
            out.tag(tag::DELETE_POLICY).policy_kind(*kind);
            out.texts(&[vhost, name]);
        }
        Request::SetLimits { of, limits } => {
            out.tag(tag::SET_LIMITS).quota_of(of);
            out.number(limits.len() as u64);
            for (limit, value) in limits {
                out.text(limit);
                out.flags(&[value.is_some()]);
                out.number(value.unwrap_or_default().cast_unsigned());
            }
        }
        Request::SetGlobal { name, value } => {
            out.tag(tag::SET_GLOBAL).text(name);
            out.global(value.as_ref());
        }
        Request::DescribeVhost { vhost, metadata } => {
            out.tag(tag::DESCRIBE_VHOST).text(vhost);
            out.metadata(metadata);
        }
        Request::SetTopicPermission {
            user,
            vhost,
            exchange,
            write,
            read,
        } => out
            .tag(tag::SET_TOPIC_PERMISSION)
            .texts(&[user, vhost, exchange, write, read]),
        Request::ClearTopicPermissions {
            user,
            vhost,
            exchange,
        } => {
            out.tag(tag::CLEAR_TOPIC_PERMISSIONS).texts(&[user, vhost]);
            out.optional_text(exchange.as_deref());
        }
        _ => {}
    }
}

/// Reads a request; `None` if the bytes are no request, one of a later version, or one that is too long.
pub(super) fn decode(bytes: &[u8]) -> Option<Request> {
    if bytes.len() > Request::MOST_BYTES {
        return None;
    }
    let mut reader = Reader::new(bytes);
    if reader.byte()? != FORMAT {
        return None;
    }
    let tag = reader.byte()?;
    if tag != tag::ALL {
        return decode_one(tag, reader);
    }
    let (is_said, of) = (reader.flag()?, reader.number()?);
    let mut requests = Vec::new();
    while !reader.is_done() {
        let mut within = Reader::new(reader.bytes()?);
        if within.byte()? != FORMAT {
            return None;
        }
        // None has others in it: however deep they were announced to be, this goes one deep.
        requests.push(decode_one(within.byte()?, within)?);
    }
    let of = is_said.then_some(of);
    Some(Request::All { of, requests })
}

/// Reads a request of this tag that has no others in it, to the end.
fn decode_one(tag: u8, mut reader: Reader<'_>) -> Option<Request> {
    let request = match tag {
        tag::DECLARE_EXCHANGE..=tag::UNBIND | tag::CLEAR_BINDINGS | tag::DECLARE_CONVERTED => {
            decode_object(tag, &mut reader)?
        }
        tag::SET_PERMISSIONS | tag::CLEAR_PERMISSIONS | tag::PUT_POLICY..=tag::CLEAR_TOPIC_PERMISSIONS => {
            decode_rule(tag, &mut reader)?
        }
        tag::CREATE_VHOST => Request::CreateVhost { name: reader.name()? },
        tag::DELETE_VHOST => Request::DeleteVhost { name: reader.name()? },
        tag::PUT_USER => {
            let (name, password, tags) = reader.user()?;
            Request::PutUser { name, password, tags }
        }
        tag::DELETE_USER => Request::DeleteUser { name: reader.name()? },
        tag::CLOSE_CONNECTION => Request::CloseConnection {
            connection: reader.connection()?,
            at_most: reader.count()?,
        },
        tag::START_NODE => Request::StartNode {
            node: NodeId(reader.number()?),
            name: reader.name()?,
            takes_queues: reader.flag()?,
        },
        tag::JOIN_NODE => Request::JoinNode {
            name: reader.name()?,
            joined: reader.joined()?,
        },
        tag::FORGET_NODE => Request::ForgetNode {
            node: NodeId(reader.number()?),
        },
        tag::DRAIN_NODE => Request::DrainNode {
            node: NodeId(reader.number()?),
            drained: reader.flag()?,
        },
        tag::CHANGE_MEMBER => Request::ChangeMember {
            id: QueueId(reader.number()?),
            node: NodeId(reader.number()?),
            is_member: reader.flag()?,
        },
        tag::REFOUND_QUEUE => Request::RefoundQueue {
            id: QueueId(reader.number()?),
            node: NodeId(reader.number()?),
            generation: reader.number()?.try_into().ok()?,
        },
        tag::ADD_MEMBER => Request::AddMember {
            id: QueueId(reader.number()?),
            nodes: read_nodes(&mut reader)?,
            size: reader.count()?,
        },
        tag::MIRROR => Request::Mirror {
            id: QueueId(reader.number()?),
            nodes: read_nodes(&mut reader)?,
            epoch: reader.number()?.try_into().ok()?,
        },
        tag::UNMIRROR => Request::Unmirror {
            id: QueueId(reader.number()?),
            node: NodeId(reader.number()?),
            behind: reader.number()?,
        },
        tag::CONVERT_QUEUE => Request::ConvertQueue {
            vhost: reader.name()?,
            name: reader.string()?,
            kind: QueueKind::from_number(reader.byte()?)?,
        },
        tag::SAY_GROWN => Request::SayGrown {
            id: QueueId(reader.number()?),
            epoch: reader.number()?.try_into().ok()?,
        },
        tag::END_TRANSIENT => Request::EndTransient {
            at_most: reader.count()?,
        },
        _ => return None,
    };
    reader.is_done().then_some(request)
}

fn decode_object(tag: u8, reader: &mut Reader<'_>) -> Option<Request> {
    Some(match tag {
        tag::DECLARE_EXCHANGE => Request::DeclareExchange {
            vhost: reader.name()?,
            declare: DeclareExchange {
                name: reader.string()?,
                kind: reader.string()?,
                passive: reader.flag()?,
                durable: reader.flag()?,
                auto_delete: reader.flag()?,
                internal: reader.flag()?,
                arguments: reader.table()?,
                homes: read_nodes(reader)?,
            },
            by: reader.incarnation()?,
        },
        tag::DELETE_EXCHANGE => Request::DeleteExchange {
            vhost: reader.name()?,
            name: reader.string()?,
            if_unused: reader.flag()?,
        },
        tag::DECLARE_QUEUE | tag::DECLARE_CONVERTED => read_declared(tag, reader)?,
        tag::DELETE_QUEUE => Request::DeleteQueue {
            id: QueueId(reader.number()?),
        },
        tag::BIND => Request::Bind {
            vhost: reader.name()?,
            binding: read_wanted(reader)?,
        },
        tag::UNBIND => Request::Unbind {
            vhost: reader.name()?,
            binding: read_wanted(reader)?,
        },
        tag::CLEAR_BINDINGS => Request::ClearBindings {
            id: QueueId(reader.number()?),
            at_most: reader.count()?,
        },
        _ => return None,
    })
}

fn read_declared(tag: u8, reader: &mut Reader<'_>) -> Option<Request> {
    let vhost = reader.name()?;
    let mut declare = DeclareQueue {
        name: reader.string()?,
        passive: reader.flag()?,
        durable: reader.flag()?,
        exclusive: reader.flag()?,
        auto_delete: reader.flag()?,
        arguments: reader.table()?,
        other_arguments: None,
        homes: read_nodes(reader)?,
    };
    let by = reader.connection()?;
    let unique = reader.bytes()?.try_into().ok()?;
    if tag == tag::DECLARE_CONVERTED {
        declare.other_arguments = Some(reader.table()?);
    }
    Some(Request::DeclareQueue {
        vhost,
        declare,
        by,
        unique,
    })
}

fn read_wanted(reader: &mut Reader<'_>) -> Option<WantedBinding> {
    Some(WantedBinding {
        source: reader.string()?,
        destination: reader.destination()?,
        routing_key: reader.bytes()?.into(),
        arguments: reader.table()?,
        by: reader.connection()?,
    })
}

fn decode_rule(tag: u8, reader: &mut Reader<'_>) -> Option<Request> {
    Some(match tag {
        tag::SET_PERMISSIONS => Request::SetPermissions {
            user: reader.name()?,
            vhost: reader.name()?,
            configure: reader.string()?,
            write: reader.string()?,
            read: reader.string()?,
        },
        tag::CLEAR_PERMISSIONS => Request::ClearPermissions {
            user: reader.name()?,
            vhost: reader.name()?,
        },
        tag::PUT_POLICY => Request::PutPolicy {
            kind: reader.policy_kind()?,
            vhost: reader.name()?,
            name: reader.name()?,
            policy: PutPolicy {
                pattern: reader.string()?,
                apply_to: reader.string()?,
                priority: reader.number()?.cast_signed(),
                definition: reader.table()?,
            },
        },
        tag::DELETE_POLICY => Request::DeletePolicy {
            kind: reader.policy_kind()?,
            vhost: reader.name()?,
            name: reader.name()?,
        },
        tag::SET_LIMITS => {
            let of = reader.quota_of()?;
            // However many are announced, there are no more than bytes for them.
            let count = reader.number()?;
            let limits = (0..count).map(|_| limit(reader)).collect::<Option<_>>()?;
            Request::SetLimits { of, limits }
        }
        tag::SET_GLOBAL => Request::SetGlobal {
            name: reader.name()?,
            value: reader.global()?,
        },
        tag::DESCRIBE_VHOST => Request::DescribeVhost {
            vhost: reader.name()?,
            metadata: reader.metadata()?,
        },
        tag::SET_TOPIC_PERMISSION => Request::SetTopicPermission {
            user: reader.name()?,
            vhost: reader.name()?,
            exchange: reader.name()?,
            write: reader.string()?,
            read: reader.string()?,
        },
        tag::CLEAR_TOPIC_PERMISSIONS => Request::ClearTopicPermissions {
            user: reader.name()?,
            vhost: reader.name()?,
            exchange: reader.optional_name()?,
        },
        _ => return None,
    })
}

fn limit(reader: &mut Reader<'_>) -> Option<(String, Option<i64>)> {
    let (name, is_set, value) = (reader.string()?, reader.flag()?, reader.number()?);
    Some((name, is_set.then_some(value.cast_signed())))
}
