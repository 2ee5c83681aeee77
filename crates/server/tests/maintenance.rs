//! What operators do with one node of three: they drain it, ask whether it may stop, and see what its alarms block.

#![allow(
    clippy::unwrap_used,
    reason = "a test file; clippy sees only the test functions as tests"
)]

mod nodes;

use nodes::{Client, Node, start, three, wait};
use tempfile::TempDir;

const MAINTENANCE: &str = "Node was put into maintenance mode";

/// Three nodes that all run and know of each other; with settings for all of them.
fn running(scratch: &TempDir, settings: &[&str]) -> Vec<Node> {
    let mut nodes = three(scratch);
    for node in &mut nodes {
        for setting in settings {
            node.args.extend(["-s".to_owned(), (*setting).to_owned()]);
        }
    }
    start(&mut nodes);
    wait("all run", || nodes.iter().all(|node| node.running() == 3));
    nodes
}

fn leads(node: &Node) -> bool {
    let (status, told) = node.ask("GET", "/leveret/service", "");
    assert_eq!(status, 200, "{told}");
    told.contains("\"leads\":1")
}

fn leader(nodes: &[Node]) -> usize {
    let mut found = None;
    wait("somebody leads", || {
        found = nodes.iter().position(leads);
        found.is_some()
    });
    found.unwrap()
}

fn check(node: &Node, name: &str) -> (u16, String) {
    node.ask("GET", &format!("/health/checks/{name}"), "")
}

/// Where a queue lives that is declared through this node.
fn home(node: &Node, queue: &str) -> String {
    let path = format!("/queues/%2F/{queue}");
    node.put(&path, r#"{"durable":true}"#);
    node.ask("GET", &format!("{path}?columns=node"), "").1
}

fn all_know(nodes: &[Node], of: usize, drained: bool) {
    let path = format!("/nodes/{}?columns=being_drained", nodes[of].name);
    let expected = format!("{{\"being_drained\":{drained}}}");
    wait("all know whether it is drained", || {
        nodes.iter().all(|node| node.ask("GET", &path, "").1 == expected)
    });
}

#[test]
fn a_drained_node_has_no_clients_and_leads_nothing_until_it_is_revived_or_started_again() {
    let scratch = TempDir::new().unwrap();
    let mut nodes = running(&scratch, &[]);
    let at = leader(&nodes);
    let mut client = Client::connect(&nodes[at]);
    let drained = &nodes[at];
    std::thread::scope(|scope| {
        let goes = scope.spawn(|| {
            let close = client.read(10, 50);
            assert!(String::from_utf8_lossy(&close).contains(MAINTENANCE), "{close:?}");
            client.call(0, 10, 51, &[]);
        });
        let said = drained.ctl(&["drain"]).unwrap();
        assert!(said.contains("into maintenance mode"), "{said}");
        assert!(
            !said.contains("still open") && !said.contains("stay here"),
            "{said}"
        );
        goes.join().unwrap();
    });
    assert!(!leads(drained), "that is what was waited for");
    all_know(&nodes, at, true);
    let status = nodes[(at + 1) % 3].ctl(&["cluster_status"]).unwrap();
    let line = format!("Node: {}, status: marked for maintenance", drained.name);
    assert!(status.contains(&line), "{status}");
    for name in ["is-in-service", "ready-to-serve-clients"] {
        let (status, said) = check(drained, name);
        assert!(
            status == 503 && said.contains("not currently available to serve"),
            "{said}"
        );
        assert_eq!(check(&nodes[(at + 1) % 3], name).0, 200);
    }
    assert!(drained.ctl(&["check_running"]).is_ok(), "it runs");
    assert!(!home(drained, "elsewhere").contains(&drained.name));
    assert!(drained.ctl(&["await_online_quorum_plus_one"]).is_ok());
    let said = drained.ctl(&["check_if_node_is_quorum_critical"]).unwrap();
    assert!(said.contains("seems to be in maintenance mode"), "{said}");

    drained.ctl(&["revive"]).unwrap();
    all_know(&nodes, at, false);
    assert_eq!(check(drained, "ready-to-serve-clients").0, 200);
    assert!(home(drained, "here").contains(&drained.name));
    drop(Client::connect(drained));

    drained.ctl(&["drain"]).unwrap();
    all_know(&nodes, at, true);
    nodes[at].kill();
    start(&mut nodes[at..=at]);
    all_know(&nodes, at, false);
    drop(Client::connect(&nodes[at]));
}

#[test]
fn the_last_node_that_is_not_drained_cannot_hand_over_and_says_so() {
    let scratch = TempDir::new().unwrap();
    let nodes = running(&scratch, &[]);
    let last = leader(&nodes);
    for (number, node) in nodes.iter().enumerate() {
        if number != last {
            node.ctl(&["drain"]).unwrap();
        }
    }
    let said = nodes[last].ctl(&["drain"]).unwrap();
    assert!(
        said.contains("1 leaderships stay here: no other node runs"),
        "{said}"
    );
    assert!(
        home(&nodes[last], "q").contains(&nodes[last].name),
        "there is nowhere else"
    );
    nodes[(last + 1) % 3].ctl(&["revive"]).unwrap();
    wait("it is handed over", || leads(&nodes[(last + 1) % 3]));
}

#[test]
fn operators_are_told_whether_a_node_may_stop_and_what_would_be_missing() {
    let scratch = TempDir::new().unwrap();
    let hint = "cluster_formation.target_cluster_size_hint=3";
    let mut nodes = running(&scratch, &[hint, "connection_max=1"]);
    let quorum = "node-is-quorum-critical";
    for node in &nodes {
        assert_eq!(check(node, quorum), (200, r#"{"status":"ok"}"#.to_owned()));
        assert_eq!(check(node, "reached-target-cluster-size").0, 200);
        assert_eq!(
            check(node, "below-node-connection-limit"),
            (200, r#"{"status":"ok"}"#.to_owned())
        );
        let said = node.ctl(&["check_if_node_is_quorum_critical"]).unwrap();
        assert!(
            said.contains("reported no queues/streams with minimum quorum"),
            "{said}"
        );
    }
    let client = Client::connect(&nodes[0]);
    for name in ["below-node-connection-limit", "ready-to-serve-clients"] {
        let (status, said) = check(&nodes[0], name);
        assert!(
            status == 503 && said.contains("node connection limit is reached"),
            "{said}"
        );
        assert_eq!(check(&nodes[1], name).0, 200);
    }
    nodes[2].put("/queues/%2F/kept", r#"{"durable":true}"#);
    nodes[2].put("/queues/%2F/lost", r#"{"durable":false}"#);
    let path = "/leveret/nodes/n3@localhost/stop-impact";
    let counted = format!(
        "{path}?columns=durable_queues,transient_queues,definitions_can_be_changed,connections,running"
    );
    let expected = r#"{"connections":0,"definitions_can_be_changed":true,"durable_queues":1,"running":true,"transient_queues":1}"#;
    assert_eq!(nodes[0].ask("GET", &counted, "").1, expected);
    let said = nodes[0].ctl(&["stop_impact", "n3@localhost"]).unwrap();
    assert!(said.contains("1 durable queues would be unavailable"), "{said}");
    assert_eq!(
        nodes[0]
            .ask("GET", "/leveret/nodes/n9@localhost/stop-impact", "")
            .0,
        404
    );
    let said = nodes[0].ctl(&["rebalance", "classic"]).unwrap();
    assert!(said.contains("Number of quorum queues"), "{said}");
    assert_eq!(nodes[0].ask("POST", "/rebalance/queues", "").0, 204);

    nodes[2].kill();
    wait("its end is noticed", || nodes[0].running() == 2);
    let (status, said) = check(&nodes[0], quorum);
    assert!(
        status == 503 && said.contains(r#""readable_name":"rabbitmq_metadata""#),
        "{said}"
    );
    let critical = nodes[0].ctl(&["check_if_node_is_quorum_critical"]).unwrap_err();
    let line = "rabbitmq_metadata will become unavailable if node n1@localhost stops";
    assert!(critical.contains(line), "{critical}");
    let late = nodes[0]
        .ctl(&["await_online_quorum_plus_one", "--timeout", "1"])
        .unwrap_err();
    assert!(
        late.contains("time is up, no quorum + 1 online replicas"),
        "{late}"
    );
    let (status, said) = check(&nodes[0], "reached-target-cluster-size");
    assert!(
        status == 503 && said.contains("2 of 3 nodes are online"),
        "{said}"
    );
    assert!(nodes[0].ask("GET", path, "").1.contains(r#""running":false"#));
    let impact = nodes[0]
        .ask("GET", "/leveret/nodes/n1@localhost/stop-impact", "")
        .1;
    assert!(
        impact.contains(r#""definitions_can_be_changed":false"#),
        "{impact}"
    );
    start(&mut nodes[2..]);
    nodes[0].ctl(&["await_online_quorum_plus_one"]).unwrap();
    drop(client);
}

/// Raises an alarm on a node, or ends it, and waits until another one knows.
fn alarm(on: &Node, raised: bool, known_by: &Node) {
    on.put("/leveret/limits", &format!("{{\"memory_alarm\":{raised}}}"));
    let line = match raised {
        true => format!(
            "publishers to queues on node {} are blocked: low on memory",
            on.name
        ),
        false => format!("blocks publishers no more: low on memory (node {})", on.name),
    };
    known_by.says(&line).unwrap();
}

#[test]
fn an_alarm_blocks_clients_of_other_nodes_that_publish_to_queues_there_and_nobody_else() {
    let scratch = TempDir::new().unwrap();
    let mut nodes = running(&scratch, &[]);
    nodes[0].put("/queues/%2F/near", r#"{"durable":true}"#);
    nodes[1].put("/queues/%2F/far", r#"{"durable":true}"#);
    let mut there = Client::connect_hearing(&nodes[0]);
    let mut here = Client::connect_hearing(&nodes[0]);
    here.confirm();
    alarm(&nodes[1], true, &nodes[0]);
    there.publish("far");
    let blocked = there.read(10, 60);
    assert_eq!(
        String::from_utf8_lossy(&blocked[1..blocked.len() - 1]),
        "low on memory (node n2@localhost)"
    );
    for _ in 0..3 {
        here.publish("near");
        here.read(60, 80);
    }
    let states = || nodes[2].ask("GET", "/connections?columns=state&sort=state", "").1;
    wait("operators see it", || {
        states() == r#"[{"state":"blocked"},{"state":"running"}]"#
    });
    let (_, told) = nodes[0].ask("GET", "/connections?columns=name&sort=state", "");
    let name = told
        .split("\"name\":\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let path = format!(
        "/leveret/why/connections/{}",
        name.replace(' ', "%20").replace('>', "%3E")
    );
    let (_, why) = nodes[2].ask("GET", &path, "");
    assert!(
        why.contains(r#""held_by":"alarm_elsewhere""#) && why.contains("n2@localhost"),
        "{why}"
    );

    alarm(&nodes[1], false, &nodes[0]);
    there.read(10, 61);
    wait("what was published is there", || {
        nodes[0].ask("GET", "/queues/%2F/far?columns=messages", "").1 == r#"{"messages":1}"#
    });

    // A node that is gone blocks nobody, and one that comes to know of it later does.
    alarm(&nodes[1], true, &nodes[0]);
    there.publish("far");
    there.read(10, 60);
    nodes[0].kill();
    start(&mut nodes[..1]);
    let mut there = Client::connect_hearing(&nodes[0]);
    wait("it comes to know", || {
        there.publish("far");
        nodes[0].ask("GET", "/connections?columns=state", "").1 == r#"[{"state":"blocked"}]"#
    });
    there.read(10, 60);
    nodes[1].kill();
    there.read(10, 61);
}

#[test]
fn copies_of_a_stream_come_and_go_and_lead_as_operators_say() {
    let scratch = TempDir::new().unwrap();
    let nodes = running(&scratch, &[]);
    let first = "n1@localhost";
    let ctl = |words: &[&str]| nodes[0].ctl(&[&["--script-name", "rabbitmq-streams"][..], words].concat());
    let stream = |name: &str, size: u32| {
        let arguments = format!(r#"{{"x-queue-type":"stream","x-initial-cluster-size":{size}}}"#);
        let path = format!("/queues/%2F/{name}");
        nodes[0].put(&path, &format!(r#"{{"durable":true,"arguments":{arguments}}}"#));
    };
    let becomes = |what: &str, name: &str, columns: &str, expected: &str| {
        let path = format!("/queues/%2F/{name}?columns={columns}");
        wait(what, || nodes[2].ask("GET", &path, "").1 == expected);
    };
    stream("several", 2);
    stream("alone", 1);
    nodes[0].put("/queues/%2F/classic", r#"{"durable":true}"#);
    let led_by = |name: &str| format!(r#"{{"leader":"{name}"}}"#);
    becomes("it is led", "several", "leader", &led_by(first));
    // Whichever of both had joined first.
    let (_, members) = nodes[2].ask("GET", "/queues/%2F/several?columns=members", "");
    let [second, third] = match members.contains("n2@localhost") {
        true => ["n2@localhost", "n3@localhost"],
        false => ["n3@localhost", "n2@localhost"],
    };

    let refused = ctl(&["add_replica", "alone", second]).unwrap_err();
    assert!(refused.contains("was declared for one node"), "{refused}");
    let refused = ctl(&["delete_replica", "alone", first]).unwrap_err();
    assert!(
        refused.contains("Cannot delete the last member of a stream"),
        "{refused}"
    );
    let refused = ctl(&["add_replica", "classic", second]).unwrap_err();
    assert!(
        refused.contains("Cannot add replicas to a classic queue"),
        "{refused}"
    );
    let refused = ctl(&["restart_stream", "alone"]).unwrap_err();
    assert!(refused.contains("there is nothing to restart"), "{refused}");

    let shrunk = ctl(&["shrink", second]).unwrap();
    assert!(shrunk.contains("several\t1\tok"), "{shrunk}");
    let grown = ctl(&["grow", third, "all"]).unwrap();
    assert!(grown.contains("several\t2\tok"), "{grown}");
    assert!(
        grown.contains("alone\t1\terror: the stream was declared for one node"),
        "{grown}"
    );
    ctl(&["add_replica", "several", second]).unwrap();
    let all = format!(
        r#"{{"members":["{first}","{second}","{third}"],"online":["{first}","{second}","{third}"]}}"#
    );
    becomes("all have it", "several", "members,online", &all);
    let refused = ctl(&["transfer_leadership", "several", "n9@localhost"]).unwrap_err();
    assert!(refused.contains("unknown_member"), "{refused}");
    let leader = || nodes[2].ask("GET", "/queues/%2F/several?columns=leader", "").1;
    wait("the new copy is up to date, and leads", || {
        // Refused until it is up to date, and once it leads.
        let _ = ctl(&["transfer_leadership", "several", third]);
        leader() == led_by(third)
    });
    wait("the preferred one leads", || {
        let words = ["restart_stream", "several", "--preferred-leader-node", second];
        ctl(&words).is_ok_and(|said| said.contains(second))
    });
    ctl(&["restart_stream", "several"]).unwrap();
    wait("another one leads", || {
        leader() == led_by(first) || leader() == led_by(third)
    });
    ctl(&["delete_replica", "several", second]).unwrap();
    let two = format!(r#"{{"members":["{first}","{third}"]}}"#);
    becomes("it is gone", "several", "members", &two);

    // The group does without the second one a moment after that is on record.
    wait("both need the first one", || {
        let critical = nodes[0].ctl(&["check_if_node_is_quorum_critical"]);
        let critical = critical.err().unwrap_or_default();
        ["several", "alone"].iter().all(|name| {
            let line = format!("queue '{name}' in vhost '/' will become unavailable if node {first} stops");
            critical.contains(&line)
        })
    });
    let balanced = nodes[0].ctl(&["rebalance", "stream"]).unwrap();
    assert!(balanced.contains("Number of streams"), "{balanced}");
}
