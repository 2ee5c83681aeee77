//! Three processes as one cluster: they form it, share what exists, outlive each other, and let nobody in who should stay out.

#![allow(
    clippy::unwrap_used,
    reason = "a test file; clippy sees only the test functions as tests"
)]

mod nodes;

use nodes::{Client, Node, TIMEOUT, free_ports, start, three, wait};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::fs;
use std::process::Command;
use std::time::Instant;
use tempfile::TempDir;

#[test]
fn three_nodes_that_start_at_once_are_one_cluster_that_outlives_each_of_them() {
    let scratch = TempDir::new().unwrap();
    let mut nodes = three(&scratch);
    start(&mut nodes);
    for (number, node) in (1..).zip(&nodes) {
        node.put(&format!("/users/u{number}"), r#"{"password":"x","tags":""}"#);
        node.put(&format!("/vhosts/v{number}"), "{}");
        node.put(&format!("/queues/%2F/q{number}"), r#"{"durable":true}"#);
        let policy = r#"{"pattern":"^q","definition":{"max-length":5}}"#;
        node.put(&format!("/policies/%2F/p{number}"), policy);
        for other in &nodes {
            let has = |path: &str, name: &str| other.names(path).contains(&format!("{name}{number}"));
            let all = [
                ("/users", "u"),
                ("/vhosts", "v"),
                ("/queues", "q"),
                ("/policies", "p"),
            ];
            let missing: Vec<_> = all.iter().filter(|(path, name)| !has(path, name)).collect();
            assert!(missing.is_empty(), "{} knows nothing of {missing:?}", other.name);
        }
    }
    let definitions =
        r#"{"vhosts":[{"name":"imported"}],"users":[{"name":"imported","password":"x","tags":""}]}"#;
    let (status, said) = nodes[2].ask("POST", "/definitions", definitions);
    assert_eq!(status, 204, "{said}");
    for path in ["/vhosts", "/users"] {
        assert!(nodes[0].names(path).contains(&"imported".to_owned()));
    }
    wait("all run", || nodes.iter().all(|node| node.running() == 3));

    for dies in 0..3 {
        let key = dies + 1;
        let message = format!(
            r#"{{"properties":{{"delivery_mode":2}},"routing_key":"q{key}","payload":"kept","payload_encoding":"string"}}"#
        );
        let (status, said) = nodes[dies].ask("POST", "/exchanges/%2F/amq.default/publish", &message);
        assert!(status == 200 && said.contains("true"), "{said}");
        nodes[dies].kill();
        let survivor = (dies + 1) % 3;
        nodes[survivor].put_at_last(&format!("/queues/%2F/without{dies}"), r#"{"durable":true}"#);
        start(&mut nodes[dies..=dies]);
        let expected = nodes[survivor].names("/queues");
        assert_eq!(nodes[dies].names("/queues"), expected);
        assert!(nodes[dies].has_kept(dies + 1));
        nodes[dies].put_at_last(&format!("/queues/%2F/back{dies}"), r#"{"durable":true}"#);
    }

    let before = nodes[0].names("/queues");
    assert_eq!(before.len(), 9);
    nodes.iter_mut().for_each(Node::kill);
    start(&mut nodes);
    for (number, node) in (1..).zip(&nodes) {
        assert_eq!(node.names("/queues"), before, "{}", node.name);
        assert!(node.has_kept(number));
    }
}

#[test]
fn a_first_node_whose_disk_was_wiped_begins_no_second_cluster_and_joins_once_it_is_forgotten() {
    let scratch = TempDir::new().unwrap();
    let mut nodes = three(&scratch);
    start(&mut nodes);
    nodes[0].put("/queues/%2F/there", r#"{"durable":true}"#);
    nodes[1].put("/queues/%2F/elsewhere", r#"{"durable":true}"#);
    nodes[0].kill();
    fs::remove_dir_all(scratch.path().join("n1")).unwrap();
    nodes[0].start();
    let why = nodes[0].says("forget_cluster_node n1@localhost").unwrap();
    assert!(
        why.contains("another node of the cluster is called n1@localhost"),
        "{why}"
    );
    assert!(nodes[0].says("is ready").is_none(), "it ends");

    wait("its end is noticed", || nodes[1].running() == 2);
    let (status, said) = nodes[1].ask("DELETE", "/leveret/nodes/n1@localhost", "");
    assert_eq!(status, 204, "{said}");
    assert_eq!(
        nodes[2].names("/queues"),
        ["elsewhere"],
        "its queues went with it"
    );
    start(&mut nodes[..1]);
    assert_eq!(nodes[0].names("/queues"), ["elsewhere"]);
    wait("all run", || nodes.iter().all(|node| node.running() == 3));
    let file = fs::read_to_string(scratch.path().join("n1/cluster")).unwrap();
    assert!(file.contains("node = 4"), "{file}");
}

#[test]
fn who_has_another_secret_or_data_of_its_own_is_not_let_in_and_both_ends_say_why() {
    let scratch = TempDir::new().unwrap();
    let ports = free_ports(2);
    let mut first = Node::new(&scratch, 1, &ports[..1], "s3cret");
    start(std::slice::from_mut(&mut first));

    let mut stranger = Node::new(&scratch, 2, &ports, "another");
    stranger.start();
    let why = "the nodes do not have the same secret";
    stranger.says(why).unwrap();
    first.says(why).unwrap();
    stranger.kill();

    fs::remove_dir_all(scratch.path().join("n2")).unwrap();
    let mut second = Node::new(&scratch, 2, &ports, "s3cret");
    let of_clusters = second
        .args
        .iter()
        .position(|arg| arg.starts_with("cluster.secret"))
        .unwrap()
        - 1;
    let alone = second.args[..of_clusters].to_vec();
    let clustered = std::mem::replace(&mut second.args, alone);
    start(std::slice::from_mut(&mut second));
    second.kill();
    let alone = std::mem::replace(&mut second.args, clustered);
    second.start();
    let why = second.says("reset this node").unwrap();
    assert!(why.contains("queues or definitions of its own"), "{why}");
    assert!(second.says(" is ready").is_none(), "it ends");
    drop(second.child.take().unwrap().wait());

    fs::remove_dir_all(scratch.path().join("n2")).unwrap();
    start(std::slice::from_mut(&mut second));
    assert_eq!(first.names("/nodes").len(), 2);
    second.kill();
    second.args = alone;
    second.start();
    let why = second.says("a member of a cluster").unwrap();
    assert!(why.contains("set cluster."), "{why}");
    assert!(second.says(" is ready").is_none(), "it ends");
}

#[test]
fn a_node_that_is_reset_is_forgotten_by_the_others_though_these_are_too_few_and_joins_them_anew() {
    let scratch = TempDir::new().unwrap();
    let mut nodes = three(&scratch);
    start(&mut nodes);
    nodes[0].put("/queues/%2F/stays", r#"{"durable":true}"#);
    nodes[2].put("/queues/%2F/goes", r#"{"durable":true}"#);

    let refused = nodes[2].ctl(&["reset"]).unwrap_err();
    assert!(
        refused.contains("requires the 'rabbit' app to be stopped"),
        "{refused}"
    );
    nodes[2].ctl(&["stop_app"]).unwrap();
    nodes[2].ctl(&["reset"]).unwrap();
    assert!(!scratch.path().join("n3/cluster").exists());
    assert_eq!(nodes[0].names("/nodes").len(), 2, "it is forgotten");
    wait("its queue went with it", || {
        nodes[1].names("/queues") == ["stays"]
    });
    nodes[2].ctl(&["reset"]).unwrap();

    // Of two, neither decides alone. The first one has begun the cluster, and may lead.
    nodes[0].ctl(&["stop_app"]).unwrap();
    nodes[0].ctl(&["reset"]).unwrap();
    nodes[1].put_at_last("/queues/%2F/alone", r#"{"durable":true}"#);
    assert_eq!(nodes[1].names("/nodes"), ["n2@localhost"]);
    wait("its queue went with it", || {
        nodes[1].names("/queues") == ["alone"]
    });

    for node in [0, 2] {
        nodes[node].ctl(&["start_app"]).unwrap();
        nodes[node].is_ready();
        assert_eq!(nodes[node].names("/queues"), ["alone"]);
    }
    wait("all run", || nodes.iter().all(|node| node.running() == 3));

    // Nobody is there who could forget it.
    nodes[0].kill();
    nodes[1].kill();
    nodes[2].ctl(&["stop_app"]).unwrap();
    let refused = nodes[2].ctl(&["reset"]).unwrap_err();
    assert!(refused.contains("forget_cluster_node n3@localhost"), "{refused}");
    assert!(scratch.path().join("n3/cluster").exists());
    nodes[2].ctl(&["force_reset"]).unwrap();
    assert!(!scratch.path().join("n3/cluster").exists());
}

/// What `leveret ctl` says on this node.
fn ctl(scratch: &TempDir, number: usize, words: &[&str]) -> String {
    let dir = scratch.path().join(format!("n{number}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_leveret"));
    command.args(["ctl", "--data-dir"]).arg(dir).args(words);
    for name in ["RABBITMQ_NODENAME", "LEVERET_DATA_DIR"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What this node shows of the queues q1 to q3, a consumer on the first node and a connection to the third.
fn sees_all(node: &Node, pids: &[u32]) {
    // Figures are those of each queue's last turn.
    let says = |path: &str, expected: &str| says(node, path, expected);
    says(
        "/queues?columns=name,messages,node",
        r#"[{"messages":1,"name":"q1","node":"n1@localhost"},{"messages":2,"name":"q2","node":"n2@localhost"},{"messages":3,"name":"q3","node":"n3@localhost"}]"#,
    );
    says(
        "/queues?columns=name&sort=messages&sort_reverse=true",
        r#"[{"name":"q3"},{"name":"q2"},{"name":"q1"}]"#,
    );
    says(
        "/queues?page=2&page_size=1&columns=name,messages&sort=messages",
        r#"{"filtered_count":3,"item_count":1,"items":[{"messages":2,"name":"q2"}],"page":2,"page_count":3,"page_size":1,"total_count":3}"#,
    );
    says(
        "/queues?page=1&name=Q3&columns=messages",
        r#"{"filtered_count":1,"item_count":1,"items":[{"messages":3}],"page":1,"page_count":1,"page_size":100,"total_count":3}"#,
    );
    for path in ["/connections", "/channels"] {
        says(
            &format!("{path}?columns=node&sort=node"),
            r#"[{"node":"n1@localhost"},{"node":"n3@localhost"}]"#,
        );
        says(
            &format!("{path}?columns=node&sort=node&page=2&page_size=1"),
            r#"{"filtered_count":2,"item_count":1,"items":[{"node":"n3@localhost"}],"page":2,"page_count":2,"page_size":1,"total_count":2}"#,
        );
    }
    says("/consumers?columns=consumer_tag", r#"[{"consumer_tag":"far"}]"#);
    says(
        "/overview?columns=object_totals.connections,object_totals.consumers,queue_totals.messages",
        r#"{"object_totals":{"connections":2,"consumers":1},"queue_totals":{"messages":6}}"#,
    );
    says("/vhosts/%2F?columns=messages", r#"{"messages":6}"#);
    let (_, queue) = node.ask("GET", "/queues/%2F/q2", "");
    assert_eq!(queue.matches("\"consumer_tag\":\"far\"").count(), 1, "{queue}");
    let (_, told) = node.ask("GET", "/nodes?columns=os_pid", "");
    let expected = pids.iter().map(|pid| format!("{{\"os_pid\":\"{pid}\"}}"));
    assert_eq!(told, format!("[{}]", expected.collect::<Vec<_>>().join(",")));
    assert_eq!(node.ask("GET", "/nodes/n3@localhost/memory", "").0, 200);
    assert_eq!(node.ask("GET", "/nodes/n4@localhost/memory", "").0, 404);
    let why = node.ask("GET", "/leveret/why/queues/%2F/q3", "");
    assert!(why.0 == 200 && why.1.contains("held_by"), "{why:?}");
    let (status, messages) = node.ask("GET", "/leveret/queues/%2F/q3/messages?count=1", "");
    assert!(status == 200 && messages.contains("kept"), "{messages}");
    assert_eq!(node.ask("GET", "/health/checks/alarms", "").0, 200);
    assert_eq!(
        node.ask("GET", "/health/checks/node-is-quorum-critical", "").0,
        200
    );
}

fn alarms_are_known(nodes: &[Node], scratch: &TempDir) {
    let alarm = |on: bool| {
        nodes[1].put("/leveret/limits", &format!("{{\"memory_alarm\":{on}}}"));
        let raised = |node: &Node| {
            let (status, told) = node.ask("GET", "/health/checks/alarms", "");
            status == 503 && told.contains(r#"{"node":"n2@localhost","resource":"memory"}"#)
        };
        wait("all know the alarm", || {
            nodes.iter().all(|node| raised(node) == on)
        });
    };
    alarm(true);
    let local = |node: &Node| node.ask("GET", "/health/checks/local-alarms", "").0;
    assert_eq!([0, 1, 2].map(|at| local(&nodes[at])), [200, 503, 200]);
    let alarms = ctl(scratch, 1, &["alarms", "--quiet"]);
    assert_eq!(alarms, "Memory alarm on node n2@localhost\n");
    alarm(false);
}

fn the_command_line_tells_of_all(scratch: &TempDir) {
    let status = ctl(scratch, 2, &["cluster_status"]);
    assert!(
        status.starts_with("Cluster status of node n2@localhost"),
        "{status}"
    );
    for number in 1..=3 {
        let line = format!("Node: n{number}@localhost, interface: 127.0.0.1, port: ");
        assert!(status.contains(&line), "{status}");
        assert!(
            status.contains(&format!("Node: n{number}@localhost, available CPU cores: ")),
            "{status}"
        );
    }
    let listed = ctl(scratch, 2, &["list_queues", "name", "messages", "--quiet"]);
    assert_eq!(listed, "name\tmessages\nq1\t1\nq2\t2\nq3\t3\n");
}

#[test]
fn people_see_the_whole_cluster_from_any_node() {
    let scratch = TempDir::new().unwrap();
    let mut nodes = three(&scratch);
    start(&mut nodes);
    wait("all run", || nodes.iter().all(|node| node.running() == 3));
    for (number, node) in (1..).zip(&nodes) {
        node.put(&format!("/queues/%2F/q{number}"), r#"{"durable":true}"#);
        for _ in 0..number {
            let message = format!(
                r#"{{"properties":{{}},"routing_key":"q{number}","payload":"kept","payload_encoding":"string"}}"#
            );
            let (status, said) = node.ask("POST", "/exchanges/%2F/amq.default/publish", &message);
            assert!(status == 200 && said.contains("true"), "{said}");
        }
    }
    let mut near = Client::connect(&nodes[0]);
    near.consume("q2", "far");
    let mut closed = Client::connect(&nodes[2]);

    let pids: Vec<u32> = nodes
        .iter()
        .map(|node| node.child.as_ref().unwrap().id())
        .collect();
    nodes.iter().for_each(|node| sees_all(node, &pids));
    alarms_are_known(&nodes, &scratch);
    the_command_line_tells_of_all(&scratch);

    let (_, told) = nodes[1].ask("GET", "/connections?columns=name,node&sort=node", "");
    let name = told
        .rsplit("\"name\":\"")
        .next()
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let path = format!("/connections/{}", name.replace(' ', "%20").replace('>', "%3E"));
    assert_eq!(nodes[1].ask("GET", &path, "").0, 200);
    assert_eq!(nodes[1].ask("DELETE", &path, "").0, 204);
    let close = closed.read(10, 50);
    assert!(
        String::from_utf8_lossy(&close).contains("Closed via management plugin"),
        "{close:?}"
    );
    // Until the client has answered, the connection is there.
    closed.call(0, 10, 51, &[]);
    wait("it is closed", || nodes[1].ask("DELETE", &path, "").0 == 404);

    assert_eq!(nodes[0].ask("DELETE", "/queues/%2F/q3/contents", "").0, 204);
    wait("it is empty", || {
        nodes[1].ask("GET", "/queues/%2F/q3?columns=messages", "").1 == r#"{"messages":0}"#
    });

    nodes[2].kill();
    wait("its queue has no figures", || {
        nodes[0].ask("GET", "/queues?columns=name,messages", "").1
            == r#"[{"messages":1,"name":"q1"},{"messages":2,"name":"q2"},{"name":"q3"}]"#
    });
    wait("its end is noticed", || nodes[0].running() == 2);
    // For some seconds it may come back; then the queue is down.
    let (status, why) = nodes[0].ask("GET", "/leveret/queues/%2F/q3/messages", "");
    assert!(matches!(status, 404 | 503), "{why}");
    let (status, why) = nodes[0].ask("GET", "/health/checks/node-is-quorum-critical", "");
    assert!(status == 503 && why.contains("would lose their quorum"), "{why}");
}

/// Definitions that let the tests in, with something to look for.
const DEFINITIONS: &str = r#"{
    "users": [{"name": "guest", "password": "guest", "tags": "administrator"}],
    "vhosts": [{"name": "/"}, {"name": "shop"}],
    "permissions": [
        {"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"},
        {"user": "guest", "vhost": "shop", "configure": ".*", "write": ".*", "read": ".*"}
    ],
    "queues": [{"vhost": "shop", "name": "orders", "durable": true}]
}"#;

#[test]
fn definitions_are_imported_once_when_the_cluster_has_as_many_members_as_there_are_to_be() {
    let scratch = TempDir::new().unwrap();
    let file = scratch.path().join("definitions.json");
    fs::write(&file, DEFINITIONS).unwrap();
    let ports = free_ports(3);
    let node = |number: usize, known: usize| {
        let mut node = Node::new(&scratch, number, &ports[..known], "s3cret");
        for setting in [
            format!("load_definitions={}", file.display()),
            "cluster_formation.target_cluster_size_hint=3".to_owned(),
        ] {
            node.args.extend(["-s".to_owned(), setting]);
        }
        node
    };
    let mut nodes = vec![node(1, 2), node(2, 2)];
    nodes.iter_mut().for_each(Node::start);
    for node in &mut nodes {
        node.says("the definitions are imported once the cluster has 3 members")
            .unwrap();
        node.is_ready();
        let (status, _) = node.ask("GET", "/vhosts", "");
        assert_eq!(status, 401, "nobody is there before the definitions are");
    }
    nodes.push(node(3, 3));
    nodes[2].start();
    let ends = |node: &Node| {
        let line = node.says("definitions").unwrap();
        line.contains("definitions.json are imported")
    };
    let imported: Vec<bool> = nodes.iter().map(ends).collect();
    let count = imported.iter().filter(|imported| **imported).count();
    assert_eq!(count, 1, "one of them imports: {imported:?}");
    nodes[2].is_ready();
    for node in &nodes {
        assert_eq!(node.names("/vhosts"), ["/", "shop"]);
        assert_eq!(node.names("/queues"), ["orders"]);
    }
    let (status, said) = nodes[0].ask("DELETE", "/queues/shop/orders", "");
    assert_eq!(status, 204, "{said}");
    nodes[1].kill();
    nodes[1].start();
    nodes[1]
        .says("the definitions are those that were imported last")
        .unwrap();
    nodes[1].is_ready();
    assert_eq!(nodes[1].names("/queues"), [] as [&str; 0]);
}

#[test]
fn a_node_that_looks_others_up_begins_no_cluster_before_all_are_found() {
    let scratch = TempDir::new().unwrap();
    let ports = free_ports(1);
    let mut node = Node::new(&scratch, 1, &ports, "s3cret");
    for setting in [
        "cluster_formation.peer_discovery_backend=dns",
        "cluster_formation.dns.hostname=localhost",
        "cluster_formation.target_cluster_size_hint=9",
    ] {
        node.args.extend(["-s".to_owned(), setting.to_owned()]);
    }
    node.start();
    let line = node.says("waiting for a cluster").unwrap();
    assert!(line.contains("of 9 nodes are found: localhost has "), "{line}");
}

/// Writes an authority's certificate and one of it for this machine; the settings by which links use them.
fn certificates(dir: &std::path::Path) -> Vec<String> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    fs::write(dir.join("authority.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let own = params.signed_by(&key, &issuer).unwrap();
    fs::write(dir.join("own.pem"), own.pem()).unwrap();
    fs::write(dir.join("own.key"), key.serialize_pem()).unwrap();
    let path = |name: &str| dir.join(name).display().to_string();
    vec![
        format!("cluster.tls.certfile={}", path("own.pem")),
        format!("cluster.tls.keyfile={}", path("own.key")),
        format!("cluster.tls.cacertfile={}", path("authority.pem")),
        "cluster.tls.verify=verify_peer".to_owned(),
        "cluster.tls.fail_if_no_peer_cert=true".to_owned(),
    ]
}

#[test]
fn nodes_need_no_secret_where_both_ends_look_at_certificates() {
    let scratch = TempDir::new().unwrap();
    let settings = certificates(scratch.path());
    let ports = free_ports(2);
    let node = |number: usize, settings: &[String]| {
        let mut node = Node::new(&scratch, number, &ports, "s3cret");
        node.args.retain(|arg| arg != "cluster.secret=s3cret");
        // An option is left without its value.
        let at = (1..node.args.len()).find(|at| node.args[*at] == "-s" && node.args[at - 1] == "-s");
        node.args.remove(at.unwrap());
        for setting in settings {
            node.args.extend(["-s".to_owned(), setting.clone()]);
        }
        node
    };
    let mut nodes = vec![node(1, &settings), node(2, &settings)];
    start(&mut nodes);
    nodes[0].put("/vhosts/shop", "{}");
    assert_eq!(nodes[1].names("/vhosts"), ["/", "shop"]);

    let mut unguarded = node(1, &settings[..4]);
    unguarded.args.push("--check-config".to_owned());
    unguarded.start();
    let why = unguarded.says("error: ").unwrap();
    assert!(
        why.contains("needs a secret that all of them know") && why.contains("fail_if_no_peer_cert = true"),
        "{why}"
    );
}

/// Waits until a node answers this.
fn says(node: &Node, path: &str, expected: &str) {
    let mut said = String::new();
    let deadline = Instant::now() + TIMEOUT;
    while said != expected {
        let name = &node.name;
        assert!(
            Instant::now() < deadline,
            "{name}: {path}: {said} and not {expected}"
        );
        said = node.ask("GET", path, "").1;
    }
}

/// Publishes through a node; it is routed.
fn publish(node: &Node, exchange: &str, key: &str) {
    let message = format!(
        r#"{{"properties":{{}},"routing_key":"{key}","payload":"kept","payload_encoding":"string"}}"#
    );
    let path = format!("/exchanges/%2F/{exchange}/publish");
    let (status, said) = node.ask("POST", &path, &message);
    assert!(status == 200 && said.contains("true"), "{said}");
}

fn bind(node: &Node, exchange: &str, queue: &str, key: &str) {
    let path = format!("/bindings/%2F/e/{exchange}/q/{queue}");
    let (status, said) = node.ask("POST", &path, &format!("{{\"routing_key\":\"{key}\"}}"));
    assert_eq!(status, 201, "{said}");
}

/// What happens on any node is told to a queue of the first one, once.
fn events_are_told_once(nodes: &[Node]) {
    nodes[0].put("/queues/%2F/events", r#"{"durable":true}"#);
    for key in ["vhost.created", "vhost.deleted", "connection.created"] {
        bind(&nodes[0], "amq.rabbitmq.event", "events", key);
    }
    nodes[2].put("/vhosts/shop", "{}");
    let _client = Client::connect(&nodes[1]);
    says(
        &nodes[1],
        "/queues/%2F/events?columns=messages",
        r#"{"messages":2}"#,
    );
    // Who would have told it once more has done so before this.
    assert_eq!(nodes[1].ask("DELETE", "/vhosts/shop", "").0, 204);
    says(
        &nodes[1],
        "/queues/%2F/events?columns=messages",
        r#"{"messages":3}"#,
    );
    let get = r#"{"count":10,"ackmode":"ack_requeue_false","encoding":"auto"}"#;
    let (_, got) = nodes[2].ask("POST", "/queues/%2F/events/get", get);
    for key in ["vhost.created", "vhost.deleted", "connection.created"] {
        assert_eq!(
            got.matches(&format!("\"routing_key\":\"{key}\"")).count(),
            1,
            "{got}"
        );
    }
    assert_eq!(
        got.matches("\"user_who_performed_action\":\"guest\"").count(),
        3,
        "{got}"
    );
}

/// The firehose is turned on everywhere, and counts of an exchange are those of all nodes.
fn messages_are_seen_wherever_they_pass(nodes: &[Node]) {
    let traced = |on: bool| {
        for node in nodes {
            says(
                node,
                "/vhosts/%2F?columns=tracing",
                &format!("{{\"tracing\":{on}}}"),
            );
        }
    };
    nodes[0].put("/queues/%2F/copies", r#"{"durable":true}"#);
    bind(&nodes[0], "amq.rabbitmq.trace", "copies", "publish.amq.fanout");
    nodes[1].put("/leveret/trace/%2F", "");
    traced(true);
    nodes[1].put("/queues/%2F/all", r#"{"durable":true}"#);
    bind(&nodes[0], "amq.fanout", "all", "");
    publish(&nodes[2], "amq.fanout", "");
    says(
        &nodes[0],
        "/queues/%2F/copies?columns=messages",
        r#"{"messages":1}"#,
    );
    assert_eq!(nodes[2].ask("DELETE", "/leveret/trace/%2F", "").0, 204);
    traced(false);
    publish(&nodes[0], "amq.fanout", "");
    publish(&nodes[1], "amq.fanout", "");
    for node in nodes {
        says(
            node,
            "/exchanges/%2F/amq.fanout?columns=message_stats.publish_in",
            r#"{"message_stats":{"publish_in":3}}"#,
        );
        for list in [
            "",
            "&sort=message_stats.publish_in&sort_reverse=true&page=1",
            "&name=fan&page=1",
        ] {
            let path = format!("/exchanges/%2F?columns=name,message_stats.publish_out{list}");
            let (_, told) = node.ask("GET", &path, "");
            let expected = r#"{"message_stats":{"publish_out":3},"name":"amq.fanout"}"#;
            assert!(told.contains(expected), "{told}");
        }
    }
}

/// Messages of a queue of the first node are moved, copied and deleted through others, by who may do that.
fn messages_are_moved_through_any_node(nodes: &[Node]) {
    nodes[0].put("/queues/%2F/from", r#"{"durable":true}"#);
    nodes[1].put("/queues/%2F/to", r#"{"durable":true}"#);
    (0..130).for_each(|_| publish(&nodes[0], "amq.default", "from"));
    says(
        &nodes[2],
        "/queues/%2F/from?columns=messages",
        r#"{"messages":130}"#,
    );
    let act = |node: &Node, action: &str, count: u64| {
        let body =
            format!(r#"{{"action":"{action}","exchange":"amq.default","routing_key":"to","count":{count}}}"#);
        node.ask("POST", "/leveret/queues/%2F/from/messages", &body)
    };
    let (status, told) = act(&nodes[2], "move", 120);
    assert!(status == 200 && told.contains("\"moved\":120"), "{told}");
    assert!(
        told.contains("\"left\":10") && told.contains("\"refused\":0"),
        "{told}"
    );
    let (_, told) = act(&nodes[1], "copy", 5);
    assert!(told.contains("\"moved\":5"), "{told}");
    let (_, told) = act(&nodes[2], "delete", 1000);
    assert!(
        told.contains("\"deleted\":10") && told.contains("\"next\":null"),
        "{told}"
    );
    says(
        &nodes[2],
        "/queues/%2F/from?columns=messages",
        r#"{"messages":0}"#,
    );
    says(
        &nodes[0],
        "/queues/%2F/to?columns=messages",
        r#"{"messages":125}"#,
    );

    nodes[1].put("/users/reader", r#"{"password":"r","tags":"management"}"#);
    nodes[1].put(
        "/permissions/%2F/reader",
        r#"{"configure":"","write":"","read":".*"}"#,
    );
    publish(&nodes[0], "amq.default", "from");
    let body = r#"{"action":"move","exchange":"amq.default","routing_key":"to"}"#;
    let path = "/leveret/queues/%2F/from/messages";
    let (status, told) = nodes[2].ask_as("cmVhZGVyOnI=", "POST", path, body);
    assert!(
        status == 401 && told.contains("ACCESS_REFUSED"),
        "{status} {told}"
    );
    says(
        &nodes[2],
        "/queues/%2F/from?columns=messages",
        r#"{"messages":1}"#,
    );

    let mut reader = Client::log_in(&nodes[0], "reader", "r");
    assert_eq!(nodes[2].ask("DELETE", "/users/reader", "").0, 204);
    let close = reader.read(10, 50);
    assert!(
        String::from_utf8_lossy(&close).contains("user 'reader' is deleted"),
        "{close:?}"
    );
}

/// Of a queue with one consumer at a time each node says which of those of all nodes that is.
fn the_active_consumer_is_known(nodes: &[Node]) {
    let arguments = r#"{"durable":true,"arguments":{"x-single-active-consumer":true}}"#;
    nodes[1].put("/queues/%2F/single", arguments);
    let (mut first, mut second) = (Client::connect(&nodes[0]), Client::connect(&nodes[2]));
    first.consume("single", "first");
    second.consume("single", "second");
    for node in nodes {
        says(
            node,
            "/consumers?columns=consumer_tag,active,activity_status&sort=consumer_tag",
            r#"[{"active":true,"activity_status":"single_active","consumer_tag":"first"},{"active":false,"activity_status":"waiting","consumer_tag":"second"}]"#,
        );
        says(
            node,
            "/queues/%2F/single?columns=single_active_consumer_tag,exclusive_consumer_tag",
            r#"{"exclusive_consumer_tag":null,"single_active_consumer_tag":"first"}"#,
        );
    }
}

/// What is one node's is told by any other one.
fn one_node_is_asked_through_another(nodes: &[Node]) {
    for path in [
        "/leveret/times",
        "/leveret/logs",
        "/leveret/audit",
        "/leveret/config",
        "/leveret/message-sizes",
    ] {
        assert_eq!(
            nodes[0].ask("GET", &format!("{path}?node=n3@localhost"), "").0,
            200,
            "{path}"
        );
        assert_eq!(
            nodes[0].ask("GET", &format!("{path}?node=n4@localhost"), "").0,
            404,
            "{path}"
        );
    }
    let named = |node: &Node| node.ask("GET", "/leveret/config?node=n3@localhost", "").1;
    assert!(named(&nodes[0]).contains("\"value\":\"n3@localhost\""));
    assert_eq!(named(&nodes[0]), named(&nodes[2]));
    assert_eq!(nodes[0].ask("GET", "/nodes/n2@localhost/memory/ets", "").0, 200);
    let (_, told) = nodes[2].ask("GET", "/nodes?columns=catalog.leads,catalog.leader", "");
    assert_eq!(told.matches("\"leads\":true").count(), 1, "{told}");
    assert_eq!(told.matches("\"leader\":\"n").count(), 3, "{told}");
}

#[test]
fn what_people_do_and_look_for_is_the_same_through_any_node() {
    let scratch = TempDir::new().unwrap();
    let mut nodes = three(&scratch);
    for node in &mut nodes {
        let setting = ["-s", "event_exchange.vhost=/"];
        node.args.extend(setting.map(str::to_owned));
    }
    start(&mut nodes);
    wait("all run", || nodes.iter().all(|node| node.running() == 3));
    events_are_told_once(&nodes);
    messages_are_seen_wherever_they_pass(&nodes);
    messages_are_moved_through_any_node(&nodes);
    the_active_consumer_is_known(&nodes);
    one_node_is_asked_through_another(&nodes);
}

#[test]
fn deduplicating_exchanges_of_two_nodes_that_lead_to_each_other_pass_a_message_round_a_few_times_at_most() {
    let scratch = TempDir::new().unwrap();
    let ports = free_ports(2);
    let node = |number| Node::new(&scratch, number, &ports, "s3cret");
    let mut nodes = vec![node(1), node(2)];
    start(&mut nodes);
    // Each remembers on the node on which it was declared.
    for (node, exchange) in nodes.iter().zip(["one", "other"]) {
        let kind = r#"{"type":"x-message-deduplication","durable":true,"arguments":{"x-cache-size":100}}"#;
        node.put(&format!("/exchanges/%2F/{exchange}"), kind);
    }
    nodes[0].put("/queues/%2F/q", r#"{"durable":true}"#);
    bind(&nodes[0], "one", "q", "");
    for (source, destination) in [("one", "other"), ("other", "one")] {
        let path = format!("/bindings/%2F/e/{source}/e/{destination}");
        let (status, said) = nodes[0].ask("POST", &path, r#"{"routing_key":""}"#);
        assert_eq!(status, 201, "{said}");
    }
    // It has no key. It comes to the queue with each second hop of eight, of which the first leads to the exchange itself: not
    // all that it leads to is here.
    for expected in [4, 8] {
        publish(&nodes[0], "one", "");
        let messages = format!("{{\"messages\":{expected}}}");
        says(&nodes[0], "/queues/%2F/q?columns=messages", &messages);
    }
    let line = nodes.iter().filter_map(|node| {
        node.lines
            .try_iter()
            .find(|line| line.contains("they go no further"))
    });
    assert_eq!(line.count(), 1, "one of them says so, once");
}
