//! The bytes of records, which stand in journals: they stay as they are, whatever becomes of the structs.

#![allow(clippy::unwrap_used)]

use catalog::{
    ApplyTo, DeclaredExchange, Destination, Epoch, ExchangeKind, Incarnation, Joined, Lifetime, Member,
    Metadata, NamedBinding, NodeConnection, NodeId, PasswordHash, Pattern, Permission, Policy, PolicyKind,
    Queue, QueueKind, Quota, QuotaOf, Record, TopicPermission,
};
use model::table::{Table, Value};
use model::{ConnectionId, Journaled, QueueId};
use std::sync::Arc;

const RUN: Incarnation = Incarnation {
    node: NodeId(1),
    number: 3,
};

fn arguments() -> Table {
    Table::new().with("x-match", "any").with("size", 7_i64)
}

fn objects() -> Vec<(Record, &'static str)> {
    vec![
        (
            Record::VhostCreated { name: "/".into() },
            r"\x02\x01\x01\x00\x00\x00/",
        ),
        (
            Record::VhostDeleted { name: "/".into() },
            r"\x02\x02\x01\x00\x00\x00/",
        ),
        (
            Record::ExchangeDeclared(DeclaredExchange {
                vhost: "/".into(),
                name: "x".into(),
                kind: ExchangeKind::Topic,
                lifetime: Lifetime::Durable,
                auto_delete: false,
                internal: true,
                arguments: Arc::new(arguments()),
            }),
            r"\x02\x07\x01\x00\x00\x00/\x01\x00\x00\x00x\x05\x00\x00\x00topic\x00\x00\x01\x1e\x00\x00\x00\x07x-matchS\x00\x00\x00\x03any\x04sizel\x00\x00\x00\x00\x00\x00\x00\x07",
        ),
        (
            Record::ExchangeDeleted {
                vhost: "/".into(),
                name: "x".into(),
                durable: true,
            },
            r"\x02\x08\x01\x00\x00\x00/\x01\x00\x00\x00x\x01",
        ),
        (
            Record::QueueDeclared(Arc::new(Queue {
                id: QueueId(258),
                kind: QueueKind::Classic,
                vhost: "/".into(),
                name: "q".into(),
                lifetime: Lifetime::Durable,
                home: NodeId(1),
                founders: [NodeId(1), NodeId(2)].into(),
                changed: Arc::default(),
                epoch: Epoch::default(),
                auto_delete: true,
                arguments: Arc::new(arguments()),
                other_arguments: None,
            })),
            r"\x02\t\x02\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00/\x01\x00\x00\x00q\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01\x1e\x00\x00\x00\x07x-matchS\x00\x00\x00\x03any\x04sizel\x00\x00\x00\x00\x00\x00\x00\x07",
        ),
        (
            Record::ExchangeDeclared(DeclaredExchange {
                vhost: "/".into(),
                name: "x".into(),
                kind: ExchangeKind::Fanout,
                lifetime: Lifetime::Incarnation(RUN),
                auto_delete: true,
                internal: false,
                arguments: Arc::default(),
            }),
            r"\x02\x07\x01\x00\x00\x00/\x01\x00\x00\x00x\x06\x00\x00\x00fanout\x01\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00",
        ),
        (
            Record::QueueDeclared(Arc::new(Queue {
                id: QueueId(1),
                kind: QueueKind::Classic,
                vhost: "/".into(),
                name: "q".into(),
                lifetime: Lifetime::Connection(NodeConnection {
                    incarnation: RUN,
                    connection: ConnectionId(5),
                }),
                home: NodeId(1),
                founders: Arc::default(),
                changed: Arc::default(),
                epoch: Epoch::default(),
                auto_delete: false,
                arguments: Arc::default(),
                other_arguments: None,
            })),
            r"\x02\t\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00/\x01\x00\x00\x00q\x02\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
        ),
        (
            Record::QueueDoomed {
                id: QueueId(258),
                durable: true,
            },
            r"\x02\x18\x02\x01\x00\x00\x00\x00\x00\x00\x01",
        ),
        (
            Record::QueueDeleted {
                id: QueueId(258),
                durable: true,
            },
            r"\x02\n\x02\x01\x00\x00\x00\x00\x00\x00\x01",
        ),
    ]
}

fn changed_queues() -> Vec<(Record, &'static str)> {
    vec![
        (
            Record::QueueChanged(Arc::new(Queue {
                id: QueueId(1),
                kind: QueueKind::Classic,
                vhost: "/".into(),
                name: "q".into(),
                lifetime: Lifetime::Durable,
                home: NodeId(1),
                founders: [NodeId(1)].into(),
                changed: [Member {
                    node: NodeId(2),
                    life: 3,
                    is_gone: true,
                }]
                .into(),
                epoch: Epoch {
                    number: 4,
                    behind: 5,
                    is_refounded: false,
                },
                auto_delete: false,
                arguments: Arc::default(),
                other_arguments: None,
            })),
            r"\x02\x1f\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00/\x01\x00\x00\x00q\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01\x04\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00",
        ),
        (
            Record::QueueChanged(Arc::new(Queue {
                id: QueueId(1),
                kind: QueueKind::Quorum,
                vhost: "/".into(),
                name: "q".into(),
                lifetime: Lifetime::Durable,
                home: NodeId(1),
                founders: [NodeId(1)].into(),
                changed: Arc::default(),
                epoch: Epoch::default(),
                auto_delete: false,
                arguments: Arc::default(),
                other_arguments: Some(Arc::new(arguments())),
            })),
            r"\x02\x1f\x01\x00\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00/\x01\x00\x00\x00q\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x1e\x00\x00\x00\x07x-matchS\x00\x00\x00\x03any\x04sizel\x00\x00\x00\x00\x00\x00\x00\x07",
        ),
    ]
}

fn bindings() -> Vec<(Record, &'static str)> {
    vec![
        (
            Record::Bound(NamedBinding {
                vhost: "/".into(),
                source: "x".into(),
                destination: Destination::Queue("q".into()),
                routing_key: b"key\xff"[..].into(),
                arguments: arguments(),
                durable: true,
            }),
            r"\x02\x0b\x01\x00\x00\x00/\x01\x00\x00\x00x\x00\x01\x00\x00\x00q\x04\x00\x00\x00key\xff\x1e\x00\x00\x00\x07x-matchS\x00\x00\x00\x03any\x04sizel\x00\x00\x00\x00\x00\x00\x00\x07\x01",
        ),
        (
            Record::Unbound(NamedBinding {
                vhost: "/".into(),
                source: "x".into(),
                destination: Destination::Exchange("y".into()),
                routing_key: Box::default(),
                arguments: Table::new(),
                durable: false,
            }),
            r"\x02\x0c\x01\x00\x00\x00/\x01\x00\x00\x00x\x01\x01\x00\x00\x00y\x00\x00\x00\x00\x00\x00\x00\x00\x00",
        ),
    ]
}

fn of_the_journal() -> Vec<(Record, &'static str)> {
    vec![
        (
            Record::NodeStarted {
                incarnation: RUN,
                name: "n".into(),
                takes_queues: true,
            },
            r"\x02\x19\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00n",
        ),
        (
            Record::NodeStarted {
                incarnation: RUN,
                name: "n".into(),
                takes_queues: false,
            },
            r"\x02\x19\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00n\x00",
        ),
        (
            Record::IncarnationEnded(RUN),
            r"\x02\x1a\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00",
        ),
        (
            Record::NodeJoined {
                node: NodeId(2),
                name: "n".into(),
                joined: Joined {
                    port: 25_672,
                    token: [7; 16],
                },
            },
            r"\x02\x1b\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00nHd\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07",
        ),
        (
            Record::NodeForgotten { node: NodeId(2) },
            r"\x02\x1c\x02\x00\x00\x00\x00\x00\x00\x00",
        ),
        (
            Record::NodeDrained {
                node: NodeId(2),
                drained: true,
            },
            r"\x02\x1d\x02\x00\x00\x00\x00\x00\x00\x00\x01",
        ),
        (
            Record::QueueIdsUsed { below: 1025 },
            r"\x02\r\x01\x04\x00\x00\x00\x00\x00\x00",
        ),
        (Record::SnapshotStarted, r"\x02\x0e"),
        (
            Record::Snapshotted(Box::new(Record::VhostCreated { name: "/".into() })),
            r"\x02\x10\x02\x01\x01\x00\x00\x00/",
        ),
        (Record::SnapshotFinished, r"\x02\x0f"),
    ]
}

fn users() -> Vec<(Record, &'static str)> {
    vec![
        (
            Record::UserPut {
                name: "u".into(),
                password: Some(PasswordHash::new([1, 2, 3, 4], b"secret")),
                tags: vec!["administrator".into(), "t".into()],
            },
            r"\x02\x03\x01\x00\x00\x00u$\x00\x00\x00\x01\x02\x03\x040}\x90\xcd\xb5\x88E37YY\xfb\xa5Qx+\x1d6\xa4\xb4\xb0D]\x01\x04\xdcc\xa5\xec\xdc\xf33\x02\x00\x00\x00\x00\x00\x00\x00\r\x00\x00\x00administrator\x01\x00\x00\x00t",
        ),
        (
            Record::UserPut {
                name: "u".into(),
                password: None,
                tags: Vec::new(),
            },
            r"\x02\x03\x01\x00\x00\x00u\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
        ),
        (
            Record::UserDeleted { name: "u".into() },
            r"\x02\x04\x01\x00\x00\x00u",
        ),
        (
            Record::PermissionsSet(Arc::new(Permission {
                user: "u".into(),
                vhost: "/".into(),
                configure: Pattern::new("c").unwrap(),
                write: Pattern::new("w").unwrap(),
                read: Pattern::default(),
            })),
            r"\x02\x05\x01\x00\x00\x00u\x01\x00\x00\x00/\x01\x00\x00\x00c\x01\x00\x00\x00w\x00\x00\x00\x00",
        ),
        (
            Record::PermissionsCleared {
                user: "u".into(),
                vhost: "/".into(),
            },
            r"\x02\x06\x01\x00\x00\x00u\x01\x00\x00\x00/",
        ),
        (
            Record::TopicPermissionSet(Arc::new(
                TopicPermission::new("u".into(), "/".into(), "x".into(), "w".into(), "r".into()).unwrap(),
            )),
            r"\x02\x16\x01\x00\x00\x00u\x01\x00\x00\x00/\x01\x00\x00\x00x\x01\x00\x00\x00w\x01\x00\x00\x00r",
        ),
        (
            Record::TopicPermissionsCleared {
                user: "u".into(),
                vhost: "/".into(),
                exchange: Some("x".into()),
            },
            r"\x02\x17\x01\x00\x00\x00u\x01\x00\x00\x00/\x01\x01\x00\x00\x00x",
        ),
        (
            Record::TopicPermissionsCleared {
                user: "u".into(),
                vhost: "/".into(),
                exchange: None,
            },
            r"\x02\x17\x01\x00\x00\x00u\x01\x00\x00\x00/\x00\x00\x00\x00\x00",
        ),
    ]
}

fn rules() -> Vec<(Record, &'static str)> {
    vec![
        (
            Record::PolicyPut(Arc::new(Policy {
                vhost: "/".into(),
                kind: PolicyKind::Operator,
                name: "p".into(),
                pattern: Pattern::of_policy("^q").unwrap(),
                apply_to: ApplyTo::Queues,
                priority: -1,
                definition: Arc::new(Table::new().with("max-length", 3_i64)),
            })),
            r"\x02\x11\x01\x00\x00\x00/\x01\x01\x00\x00\x00p\x02\x00\x00\x00^q\x06\x00\x00\x00queues\xff\xff\xff\xff\xff\xff\xff\xff\x14\x00\x00\x00\nmax-lengthl\x00\x00\x00\x00\x00\x00\x00\x03",
        ),
        (
            Record::PolicyDeleted {
                vhost: "/".into(),
                kind: PolicyKind::User,
                name: "p".into(),
            },
            r"\x02\x12\x01\x00\x00\x00/\x00\x01\x00\x00\x00p",
        ),
        (
            Record::QuotaSet {
                of: QuotaOf::Vhost("/".into()),
                quota: Quota {
                    connections: Some(5),
                    queues: Some(0),
                    ..Quota::default()
                },
            },
            r"\x02\x13\x00\x01\x00\x00\x00/-\x00\x00\x00\x0fmax-connectionsl\x00\x00\x00\x00\x00\x00\x00\x05\nmax-queuesl\x00\x00\x00\x00\x00\x00\x00\x00",
        ),
        (
            Record::QuotaSet {
                of: QuotaOf::User("u".into()),
                quota: Quota::default(),
            },
            r"\x02\x13\x01\x01\x00\x00\x00u\x00\x00\x00\x00",
        ),
        (
            Record::GlobalSet {
                name: "g".into(),
                value: Some(Value::from("v")),
            },
            r"\x02\x14\x01\x00\x00\x00g\x0c\x00\x00\x00\x05valueS\x00\x00\x00\x01v",
        ),
        (
            Record::GlobalSet {
                name: "g".into(),
                value: None,
            },
            r"\x02\x14\x01\x00\x00\x00g\x00\x00\x00\x00",
        ),
        (
            Record::VhostDescribed {
                vhost: "/".into(),
                metadata: Metadata {
                    description: "d".into(),
                    tags: vec!["t".into()],
                    protected: true,
                    default_queue_type: None,
                },
            },
            r"\x02\x15\x01\x00\x00\x00/.\x00\x00\x00\x0bdescriptionS\x00\x00\x00\x01d\x04tagsA\x00\x00\x00\x06S\x00\x00\x00\x01t\tprotectedt\x01",
        ),
    ]
}

#[test]
fn a_record_has_the_bytes_that_it_always_had_and_they_are_read() {
    let all = [
        objects(),
        changed_queues(),
        bindings(),
        users(),
        rules(),
        of_the_journal(),
    ];
    for (record, expected) in all.into_iter().flatten() {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        assert_eq!(bytes.escape_ascii().to_string(), expected, "{record:?}");
        assert_eq!(Record::decode(&bytes), Some(record));
    }
}
