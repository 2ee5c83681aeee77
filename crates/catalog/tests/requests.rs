//! Requests have bytes, by which a node can ask another one.

#![allow(clippy::unwrap_used)]

use catalog::{
    DeclareExchange, DeclareQueue, Destination, Incarnation, Joined, Metadata, NodeConnection, NodeId,
    PasswordHash, PolicyKind, PutPolicy, QueueKind, QuotaOf, Request, WantedBinding,
};
use model::table::{Table, Value};
use model::{ConnectionId, QueueId};
use proptest::prelude::*;

fn incarnation() -> impl Strategy<Value = Incarnation> {
    (any::<u64>(), any::<u64>()).prop_map(|(node, number)| Incarnation {
        node: NodeId(node),
        number,
    })
}

fn connection() -> impl Strategy<Value = NodeConnection> {
    (incarnation(), any::<u64>()).prop_map(|(incarnation, number)| NodeConnection {
        incarnation,
        connection: ConnectionId(number),
    })
}

fn table() -> impl Strategy<Value = Table> {
    prop::collection::vec(("[a-z-]{0,20}", any::<i64>(), ".{0,20}"), 0..4).prop_map(|entries| {
        let mut table = Table::new();
        for (at, (name, number, text)) in entries.into_iter().enumerate() {
            table.insert(format!("n{at}{name}"), number);
            table.insert(format!("t{at}{name}"), text.as_str());
        }
        table
    })
}

fn binding() -> impl Strategy<Value = WantedBinding> {
    (
        ".{0,9}",
        any::<bool>(),
        ".{0,9}",
        any::<Vec<u8>>(),
        table(),
        connection(),
    )
        .prop_map(
            |(source, to_queue, name, routing_key, arguments, by)| WantedBinding {
                source,
                destination: match to_queue {
                    true => Destination::Queue(name.into()),
                    false => Destination::Exchange(name.into()),
                },
                routing_key,
                arguments,
                by,
            },
        )
}

fn kind(operator: bool) -> PolicyKind {
    if operator {
        PolicyKind::Operator
    } else {
        PolicyKind::User
    }
}

fn of(user: bool, name: String) -> QuotaOf {
    match user {
        true => QuotaOf::User(name.into()),
        false => QuotaOf::Vhost(name.into()),
    }
}

fn homes() -> impl Strategy<Value = Vec<NodeId>> {
    proptest::collection::vec(any::<u64>().prop_map(NodeId), 0..4)
}

fn declared_queue() -> impl Strategy<Value = Request> {
    let text = || ".{0,12}";
    (
        text(),
        text(),
        any::<[bool; 4]>(),
        (table(), prop::option::of(table())),
        homes(),
        connection(),
        any::<[u8; 16]>(),
    )
        .prop_map(
            |(
                vhost,
                name,
                [passive, durable, exclusive, auto_delete],
                (arguments, other),
                homes,
                by,
                unique,
            )| {
                Request::DeclareQueue {
                    vhost: vhost.into(),
                    declare: DeclareQueue {
                        name,
                        passive,
                        durable,
                        exclusive,
                        auto_delete,
                        arguments,
                        other_arguments: other,
                        homes,
                    },
                    by,
                    unique,
                }
            },
        )
}

fn object() -> impl Strategy<Value = Request> {
    let text = || ".{0,12}";
    let flags = || any::<[bool; 4]>();
    prop_oneof![
        text().prop_map(|name| Request::CreateVhost { name: name.into() }),
        text().prop_map(|name| Request::DeleteVhost { name: name.into() }),
        (text(), text(), text(), flags(), table(), homes(), incarnation()).prop_map(
            |(vhost, name, kind, [passive, durable, auto_delete, internal], arguments, homes, by)| {
                let declare = DeclareExchange {
                    name,
                    kind,
                    passive,
                    durable,
                    auto_delete,
                    internal,
                    arguments,
                    homes,
                };
                let vhost = vhost.into();
                Request::DeclareExchange { vhost, declare, by }
            }
        ),
        (text(), text(), any::<bool>()).prop_map(|(vhost, name, if_unused)| Request::DeleteExchange {
            vhost: vhost.into(),
            name,
            if_unused,
        }),
        declared_queue(),
        any::<u64>().prop_map(|id| Request::DeleteQueue { id: QueueId(id) }),
        (text(), binding()).prop_map(|(vhost, binding)| Request::Bind {
            vhost: vhost.into(),
            binding
        }),
        (text(), binding()).prop_map(|(vhost, binding)| Request::Unbind {
            vhost: vhost.into(),
            binding
        }),
        (connection(), any::<usize>())
            .prop_map(|(connection, at_most)| Request::CloseConnection { connection, at_most }),
        (any::<u64>(), text(), any::<bool>()).prop_map(|(node, name, takes_queues)| Request::StartNode {
            node: NodeId(node),
            name: name.into(),
            takes_queues,
        }),
        (text(), any::<(u16, [u8; 16])>()).prop_map(|(name, (port, token))| Request::JoinNode {
            name: name.into(),
            joined: Joined { port, token },
        }),
        any::<u64>().prop_map(|node| Request::ForgetNode { node: NodeId(node) }),
        any::<(u64, bool)>().prop_map(|(node, drained)| Request::DrainNode {
            node: NodeId(node),
            drained,
        }),
        any::<usize>().prop_map(|at_most| Request::EndTransient { at_most }),
        any::<(u64, u64, bool)>().prop_map(|(id, node, is_member)| Request::ChangeMember {
            id: QueueId(id),
            node: NodeId(node),
            is_member,
        }),
        any::<(u64, u64, u16)>().prop_map(|(id, node, generation)| Request::RefoundQueue {
            id: QueueId(id),
            node: NodeId(node),
            generation,
        }),
        (any::<u64>(), homes(), any::<usize>()).prop_map(|(id, nodes, size)| Request::AddMember {
            id: QueueId(id),
            nodes,
            size,
        }),
        (any::<u64>(), homes(), any::<u16>()).prop_map(|(id, nodes, epoch)| Request::Mirror {
            id: QueueId(id),
            nodes,
            epoch,
        }),
        (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(id, node, behind)| Request::Unmirror {
            id: QueueId(id),
            node: NodeId(node),
            behind,
        }),
        (text(), any::<String>(), any::<bool>()).prop_map(|(vhost, name, is_quorum)| {
            let kind = if is_quorum {
                QueueKind::Quorum
            } else {
                QueueKind::Classic
            };
            let vhost = vhost.into();
            Request::ConvertQueue { vhost, name, kind }
        }),
        any::<(u64, u16)>().prop_map(|(id, epoch)| Request::SayGrown {
            id: QueueId(id),
            epoch,
        }),
        (any::<u64>(), any::<usize>()).prop_map(|(id, at_most)| Request::ClearBindings {
            id: QueueId(id),
            at_most
        }),
    ]
}

fn rule() -> impl Strategy<Value = Request> {
    let text = || ".{0,12}";
    let texts = || any::<[String; 5]>();
    prop_oneof![
        (text(), any::<bool>(), prop::collection::vec(".{0,9}", 0..3)).prop_map(|(name, has_one, tags)| {
            let password = has_one.then(|| PasswordHash::new([9; 4], b"secret"));
            let name = name.into();
            Request::PutUser { name, password, tags }
        }),
        text().prop_map(|name| Request::DeleteUser { name: name.into() }),
        texts().prop_map(|[user, vhost, configure, write, read]| Request::SetPermissions {
            user: user.into(),
            vhost: vhost.into(),
            configure,
            write,
            read,
        }),
        (text(), text()).prop_map(|(user, vhost)| Request::ClearPermissions {
            user: user.into(),
            vhost: vhost.into(),
        }),
        (texts(), any::<bool>(), any::<i64>(), table()).prop_map(
            |([vhost, name, pattern, apply_to, _], operator, priority, definition)| Request::PutPolicy {
                vhost: vhost.into(),
                kind: kind(operator),
                name: name.into(),
                policy: PutPolicy {
                    pattern,
                    apply_to,
                    priority,
                    definition,
                },
            }
        ),
        (text(), any::<bool>(), text()).prop_map(|(vhost, operator, name)| Request::DeletePolicy {
            vhost: vhost.into(),
            kind: kind(operator),
            name: name.into(),
        }),
        (
            any::<bool>(),
            text(),
            prop::collection::vec((".{0,9}", any::<Option<i64>>()), 0..3)
        )
            .prop_map(|(user, name, limits)| Request::SetLimits {
                of: of(user, name),
                limits
            }),
        (text(), any::<Option<i64>>()).prop_map(|(name, value)| Request::SetGlobal {
            name: name.into(),
            value: value.map(Value::from),
        }),
        (
            text(),
            text(),
            prop::collection::vec(".{0,9}", 0..3),
            any::<bool>(),
            any::<bool>()
        )
            .prop_map(
                |(vhost, description, tags, protected, quorum)| Request::DescribeVhost {
                    vhost: vhost.into(),
                    metadata: Metadata {
                        description,
                        tags,
                        protected,
                        default_queue_type: quorum.then_some(catalog::QueueKind::Quorum),
                    },
                }
            ),
        texts().prop_map(
            |[user, vhost, exchange, write, read]| Request::SetTopicPermission {
                user: user.into(),
                vhost: vhost.into(),
                exchange: exchange.into(),
                write,
                read,
            }
        ),
        (text(), text(), any::<Option<String>>()).prop_map(|(user, vhost, exchange)| {
            Request::ClearTopicPermissions {
                user: user.into(),
                vhost: vhost.into(),
                exchange: exchange.map(Into::into),
            }
        }),
    ]
}

proptest! {
    #[test]
    fn a_request_is_read_as_it_was_written_and_no_part_of_it_is_one(request in prop_oneof![object(), rule()]) {
        let mut bytes = request.encode().unwrap();
        prop_assert_eq!(Request::decode(&bytes), Some(request));
        for cut in 0..bytes.len() {
            prop_assert_eq!(Request::decode(&bytes[..cut]), None);
        }
        bytes.push(0);
        prop_assert_eq!(Request::decode(&bytes), None);
    }

    #[test]
    fn bytes_that_are_no_request_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..64), tag in 0..25u8) {
        let _ = Request::decode(&bytes);
        let _ = Request::decode(&[&[1, tag], &bytes[..]].concat());
    }
}

#[test]
fn what_a_node_asks_of_its_own_journal_has_no_bytes() {
    let facts = Vec::new();
    for request in [
        Request::StartSnapshot,
        Request::ContinueSnapshot { facts },
        Request::FinishSnapshot,
    ] {
        assert_eq!(request.encode(), None);
    }
}

#[test]
fn a_request_beyond_the_limit_has_no_bytes_and_is_not_read() {
    let delete = |length| Request::DeleteVhost {
        name: "x".repeat(length).into(),
    };
    // A format, a tag and a length stand before the name.
    let longest = Request::MOST_BYTES - 6;
    let mut bytes = delete(longest).encode().unwrap();
    assert_eq!(Request::decode(&bytes), Some(delete(longest)));
    assert_eq!(delete(longest + 1).encode(), None);
    bytes.push(0);
    bytes[2..6].copy_from_slice(&(longest as u32 + 1).to_le_bytes());
    assert_eq!(Request::decode(&bytes), None);
}
