//! Three processes as one cluster: they form it, share what exists, outlive each other, and let nobody in who should stay out.

#![allow(
    clippy::unwrap_used,
    reason = "a test file; clippy sees only the test functions as tests"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take. No test depends on how long it takes.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Ports that nobody has just now.
fn free_ports(count: usize) -> Vec<u16> {
    let listeners: Vec<_> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    listeners
        .iter()
        .map(|it| it.local_addr().unwrap().port())
        .collect()
}

/// A node, running or not.
struct Node {
    name: String,
    /// Everything but `server` on its command line.
    args: Vec<String>,
    child: Option<Child>,
    lines: Receiver<String>,
    api: Option<SocketAddr>,
}

impl Node {
    /// The node of this number among those with these ports for links; with a secret.
    fn new(scratch: &TempDir, number: usize, ports: &[u16], secret: &str) -> Self {
        let name = format!("n{number}@localhost");
        let dir = scratch.path().join(format!("n{number}"));
        let mut args = vec!["--listen".to_owned(), "127.0.0.1:0".to_owned()];
        args.extend(["--data-dir".to_owned(), dir.display().to_string()]);
        let mut settings = vec![
            format!("nodename={name}"),
            "management.tcp.ip=127.0.0.1".to_owned(),
            "management.tcp.port=0".to_owned(),
            format!("cluster.secret={secret}"),
            format!("cluster.listeners.tcp.default=127.0.0.1:{}", ports[number - 1]),
        ];
        settings.extend((1..).zip(ports).map(|(number, port)| {
            format!("cluster_formation.classic_config.nodes.{number}=n{number}@localhost:{port}")
        }));
        for setting in settings {
            args.extend(["-s".to_owned(), setting]);
        }
        let (_, lines) = mpsc::channel();
        Self {
            name,
            args,
            child: None,
            lines,
            api: None,
        }
    }

    /// Starts the process.
    fn start(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leveret"));
        command.arg("server").args(&self.args).stdin(Stdio::null());
        let ours = |name: &str| name.starts_with("LEVERET_") || name.starts_with("RABBITMQ_");
        for (name, _) in std::env::vars().filter(|(name, _)| ours(name)) {
            command.env_remove(name);
        }
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::channel();
        let out = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        (self.child, self.lines, self.api) = (Some(child), lines, None);
    }

    /// Waits for a line of its log that has this text; `None` if the process ends before.
    fn says(&self, text: &str) -> Option<String> {
        let (deadline, mut said) = (Instant::now() + TIMEOUT, Vec::new());
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(text) => return Some(line),
                Ok(line) => said.push(line),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("{} never said {text:?}, but:\n{}", self.name, said.join("\n"))
                }
            }
        }
    }

    fn is_ready(&mut self) {
        let line = self.says("listening for HTTP API clients on ").unwrap();
        self.api = Some(line.split("clients on ").nth(1).unwrap().trim().parse().unwrap());
        self.says(" is ready").unwrap();
    }

    fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// The status and the body of an answer of the HTTP API.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut socket = TcpStream::connect(self.api.unwrap()).unwrap();
        let length = body.len();
        // guest:guest
        let request = format!(
            "{method} /api{path} HTTP/1.1\r\nhost: n\r\nauthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        (status, body.to_owned())
    }

    /// A change that is made.
    fn put(&self, path: &str, body: &str) {
        let (status, said) = self.ask("PUT", path, body);
        assert!(
            matches!(status, 201 | 204),
            "{}: PUT {path}: {status} {said}",
            self.name
        );
    }

    /// A change that may be asked for again while nobody leads.
    fn put_at_last(&self, path: &str, body: &str) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match self.ask("PUT", path, body) {
                (201 | 204, _) => return,
                (500, _) if Instant::now() < deadline => {}
                (status, said) => panic!("{}: PUT {path}: {status} {said}", self.name),
            }
        }
    }

    /// The names of all objects of a kind.
    fn names(&self, path: &str) -> Vec<String> {
        let (status, body) = self.ask("GET", &format!("{path}?columns=name"), "");
        assert_eq!(status, 200, "{body}");
        let mut names: Vec<String> = body
            .split("\"name\":\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }

    /// Whether the message is in the queue of this number, which lives here.
    fn has_kept(&self, number: usize) -> bool {
        let get = r#"{"count":1,"ackmode":"ack_requeue_true","encoding":"auto"}"#;
        let (status, body) = self.ask("POST", &format!("/queues/%2F/q{number}/get"), get);
        status == 200 && body.contains("\"payload\":\"kept\"")
    }

    /// How many nodes of its cluster it says run.
    fn running(&self) -> usize {
        let (_, body) = self.ask("GET", "/nodes?columns=name,running", "");
        body.matches("\"running\":true").count()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "this never comes: {what}");
        std::thread::yield_now();
    }
}

fn start(nodes: &mut [Node]) {
    nodes.iter_mut().for_each(Node::start);
    nodes.iter_mut().for_each(Node::is_ready);
}

fn three(scratch: &TempDir) -> Vec<Node> {
    let ports = free_ports(3);
    (1..=3)
        .map(|number| Node::new(scratch, number, &ports, "s3cret"))
        .collect()
}

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
