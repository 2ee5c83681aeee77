//! The bytes of requests, which nodes ask each other: they stay as they are, for nodes of two versions are in one cluster while
//! it is upgraded.

#![allow(clippy::unwrap_used)]

use catalog::{
    DeclareExchange, DeclareQueue, Destination, Incarnation, Joined, Metadata, NodeConnection, NodeId,
    PasswordHash, PolicyKind, PutPolicy, QuotaOf, Request, WantedBinding,
};
use model::table::{Table, Value};
use model::{ConnectionId, QueueId};

const RUN: Incarnation = Incarnation {
    node: NodeId(1),
    number: 3,
};

const CLIENT: NodeConnection = NodeConnection {
    incarnation: RUN,
    connection: ConnectionId(5),
};

const ID: QueueId = QueueId(258);

/// The bytes of each. They are read as what they are of, and not as those of another format.
fn written(requests: Vec<Request>) -> Vec<String> {
    let one = |request: Request| {
        let mut bytes = request.encode().unwrap();
        let text = bytes.escape_ascii().to_string();
        assert_eq!(Request::decode(&bytes), Some(request));
        bytes[0] += 1;
        assert_eq!(Request::decode(&bytes), None);
        text
    };
    requests.into_iter().map(one).collect()
}

fn table() -> Table {
    Table::new().with("n", 7_i64)
}

fn binding(destination: Destination) -> WantedBinding {
    WantedBinding {
        source: "x".into(),
        destination,
        routing_key: b"k".to_vec(),
        arguments: table(),
        by: CLIENT,
    }
}

#[test]
fn a_request_about_objects_has_the_bytes_that_it_always_had() {
    let vhost = || "/".into();
    let requests = vec![
        Request::CreateVhost { name: vhost() },
        Request::DeleteVhost { name: vhost() },
        Request::DeclareExchange {
            vhost: vhost(),
            declare: DeclareExchange {
                name: "x".into(),
                kind: "topic".into(),
                passive: true,
                durable: false,
                auto_delete: true,
                internal: false,
                arguments: table(),
                homes: vec![NodeId(2)],
            },
            by: RUN,
        },
        Request::DeleteExchange {
            vhost: vhost(),
            name: "x".into(),
            if_unused: true,
        },
        Request::DeclareQueue {
            vhost: vhost(),
            declare: DeclareQueue {
                name: "q".into(),
                passive: true,
                durable: false,
                exclusive: true,
                auto_delete: false,
                arguments: table(),
                other_arguments: None,
                homes: vec![NodeId(2), NodeId(3)],
            },
            by: CLIENT,
            unique: [9; 16],
        },
        Request::DeleteQueue { id: ID },
        Request::Bind {
            vhost: vhost(),
            binding: binding(Destination::Queue("q".into())),
        },
        Request::Unbind {
            vhost: vhost(),
            binding: binding(Destination::Exchange("y".into())),
        },
        Request::ClearBindings { id: ID, at_most: 300 },
    ];
    assert_eq!(
        written(requests),
        [
            r"\x02\x01\x01\x00\x00\x00/",
            r"\x02\x02\x01\x00\x00\x00/",
            r"\x02\x07\x01\x00\x00\x00/\x01\x00\x00\x00x\x05\x00\x00\x00topic\x01\x00\x01\x00\x0b\x00\x00\x00\x01nl\x00\x00\x00\x00\x00\x00\x00\x07\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00",
            r"\x02\x08\x01\x00\x00\x00/\x01\x00\x00\x00x\x01",
            r"\x02\t\x01\x00\x00\x00/\x01\x00\x00\x00q\x01\x00\x01\x00\x0b\x00\x00\x00\x01nl\x00\x00\x00\x00\x00\x00\x00\x07\x02\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t",
            r"\x02\n\x02\x01\x00\x00\x00\x00\x00\x00",
            r"\x02\x0b\x01\x00\x00\x00/\x01\x00\x00\x00x\x00\x01\x00\x00\x00q\x01\x00\x00\x00k\x0b\x00\x00\x00\x01nl\x00\x00\x00\x00\x00\x00\x00\x07\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00",
            r"\x02\x0c\x01\x00\x00\x00/\x01\x00\x00\x00x\x01\x01\x00\x00\x00y\x01\x00\x00\x00k\x0b\x00\x00\x00\x01nl\x00\x00\x00\x00\x00\x00\x00\x07\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00",
            r"\x02\x17\x02\x01\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00"
        ]
    );
}

#[test]
fn a_request_about_users_and_rules_has_the_bytes_that_it_always_had() {
    let (vhost, user) = (|| "/".into(), || "u".into());
    let of_user = |value| Request::SetLimits {
        of: QuotaOf::User("u".into()),
        limits: vec![("max-channels".into(), value)],
    };
    let requests = vec![
        Request::PutUser {
            name: user(),
            password: Some(PasswordHash::new([9; 4], b"secret")),
            tags: vec!["administrator".into()],
        },
        Request::DeleteUser { name: user() },
        Request::SetPermissions {
            user: user(),
            vhost: vhost(),
            configure: "c".into(),
            write: "w".into(),
            read: "r".into(),
        },
        Request::ClearPermissions {
            user: user(),
            vhost: vhost(),
        },
        Request::PutPolicy {
            vhost: vhost(),
            kind: PolicyKind::Operator,
            name: "p".into(),
            policy: PutPolicy {
                pattern: "^q".into(),
                apply_to: "queues".into(),
                priority: -1,
                definition: table(),
            },
        },
        Request::DeletePolicy {
            vhost: vhost(),
            kind: PolicyKind::User,
            name: "p".into(),
        },
        of_user(Some(5)),
        of_user(None),
        Request::SetGlobal {
            name: "g".into(),
            value: Some(Value::from("v")),
        },
        Request::SetGlobal {
            name: "g".into(),
            value: None,
        },
        Request::DescribeVhost {
            vhost: vhost(),
            metadata: Metadata {
                description: "d".into(),
                tags: vec!["t".into()],
                protected: true,
                default_queue_type: Some(catalog::QueueKind::Quorum),
            },
        },
        Request::SetTopicPermission {
            user: user(),
            vhost: vhost(),
            exchange: "x".into(),
            write: "w".into(),
            read: "r".into(),
        },
        Request::ClearTopicPermissions {
            user: user(),
            vhost: vhost(),
            exchange: Some("x".into()),
        },
    ];
    assert_eq!(
        written(requests),
        [
            r"\x02\x03\x01\x00\x00\x00u$\x00\x00\x00\t\t\t\t\x8bw:4\x13D\xb3\xad:#\xc5p\x92\x8a*4Q\x9c\x81\x04\xa3N\xbeWi\xef\x05\n\xf9\x7f\xabO\x01\x00\x00\x00\x00\x00\x00\x00\r\x00\x00\x00administrator",
            r"\x02\x04\x01\x00\x00\x00u",
            r"\x02\x05\x01\x00\x00\x00u\x01\x00\x00\x00/\x01\x00\x00\x00c\x01\x00\x00\x00w\x01\x00\x00\x00r",
            r"\x02\x06\x01\x00\x00\x00u\x01\x00\x00\x00/",
            r"\x02\r\x01\x01\x00\x00\x00/\x01\x00\x00\x00p\x02\x00\x00\x00^q\x06\x00\x00\x00queues\xff\xff\xff\xff\xff\xff\xff\xff\x0b\x00\x00\x00\x01nl\x00\x00\x00\x00\x00\x00\x00\x07",
            r"\x02\x0e\x00\x01\x00\x00\x00/\x01\x00\x00\x00p",
            r"\x02\x0f\x01\x01\x00\x00\x00u\x01\x00\x00\x00\x00\x00\x00\x00\x0c\x00\x00\x00max-channels\x01\x05\x00\x00\x00\x00\x00\x00\x00",
            r"\x02\x0f\x01\x01\x00\x00\x00u\x01\x00\x00\x00\x00\x00\x00\x00\x0c\x00\x00\x00max-channels\x00\x00\x00\x00\x00\x00\x00\x00\x00",
            r"\x02\x10\x01\x00\x00\x00g\x0c\x00\x00\x00\x05valueS\x00\x00\x00\x01v",
            r"\x02\x10\x01\x00\x00\x00g\x00\x00\x00\x00",
            r"\x02\x11\x01\x00\x00\x00/L\x00\x00\x00\x0bdescriptionS\x00\x00\x00\x01d\x04tagsA\x00\x00\x00\x06S\x00\x00\x00\x01t\tprotectedt\x01\x12default_queue_typeS\x00\x00\x00\x06quorum",
            r"\x02\x12\x01\x00\x00\x00u\x01\x00\x00\x00/\x01\x00\x00\x00x\x01\x00\x00\x00w\x01\x00\x00\x00r",
            r"\x02\x13\x01\x00\x00\x00u\x01\x00\x00\x00/\x01\x01\x00\x00\x00x"
        ]
    );
}

#[test]
fn a_request_of_a_node_has_the_bytes_that_it_always_had() {
    let (node, name) = (NodeId(2), || "rabbit@n2".into());
    let all = |of| Request::All {
        of,
        requests: vec![Request::DeleteQueue { id: ID }, Request::ForgetNode { node }],
    };
    let requests = vec![
        Request::CloseConnection {
            connection: CLIENT,
            at_most: 300,
        },
        Request::StartNode {
            node,
            name: name(),
            takes_queues: true,
        },
        Request::JoinNode {
            name: name(),
            joined: Joined {
                port: 25_672,
                token: [7; 16],
            },
        },
        Request::ForgetNode { node },
        Request::DrainNode { node, drained: true },
        Request::EndTransient { at_most: 300 },
        Request::ChangeMember {
            id: ID,
            node,
            is_member: true,
        },
        Request::AddMember {
            id: ID,
            nodes: vec![node, NodeId(3)],
            size: 3,
        },
        Request::SayGrown { id: ID, epoch: 258 },
        all(None),
        all(Some(2)),
    ];
    assert_eq!(
        written(requests),
        [
            r"\x02\x14\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00",
            r"\x02\x15\x02\x00\x00\x00\x00\x00\x00\x00\t\x00\x00\x00rabbit@n2\x01",
            r"\x02\x18\t\x00\x00\x00rabbit@n2Hd\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07",
            r"\x02\x19\x02\x00\x00\x00\x00\x00\x00\x00",
            r"\x02\x1b\x02\x00\x00\x00\x00\x00\x00\x00\x01",
            r"\x02\x16,\x01\x00\x00\x00\x00\x00\x00",
            r"\x02\x1c\x02\x01\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01",
            r"\x02\x1d\x02\x01\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00",
            r"\x02#\x02\x01\x00\x00\x00\x00\x00\x00\x02\x01\x00\x00\x00\x00\x00\x00",
            r"\x02\x1a\x00\x00\x00\x00\x00\x00\x00\x00\x00\n\x00\x00\x00\x02\n\x02\x01\x00\x00\x00\x00\x00\x00\n\x00\x00\x00\x02\x19\x02\x00\x00\x00\x00\x00\x00\x00",
            r"\x02\x1a\x01\x02\x00\x00\x00\x00\x00\x00\x00\n\x00\x00\x00\x02\n\x02\x01\x00\x00\x00\x00\x00\x00\n\x00\x00\x00\x02\x19\x02\x00\x00\x00\x00\x00\x00\x00"
        ]
    );
}
