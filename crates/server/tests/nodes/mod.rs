//! Nodes as processes, and a client of AMQP, for the tests of clusters.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "a part of several test files, each of which uses some of it"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take. No test depends on how long it takes.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// Ports that nobody has just now.
pub fn free_ports(count: usize) -> Vec<u16> {
    let listeners: Vec<_> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    listeners
        .iter()
        .map(|it| it.local_addr().unwrap().port())
        .collect()
}

/// A node, running or not.
pub struct Node {
    pub name: String,
    /// Everything but `server` on its command line.
    pub args: Vec<String>,
    pub child: Option<Child>,
    pub lines: Receiver<String>,
    pub api: Option<SocketAddr>,
}

impl Node {
    /// The node of this number among those with these ports for links; with a secret.
    pub fn new(scratch: &TempDir, number: usize, ports: &[u16], secret: &str) -> Self {
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
    pub fn start(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leveret"));
        command.arg("server").args(&self.args).stdin(Stdio::null());
        let ours = |name: &str| name.starts_with("LEVERET_") || name.starts_with("RABBITMQ_");
        for (name, _) in std::env::vars().filter(|(name, _)| ours(name)) {
            command.env_remove(name);
        }
        // Its home may have a cookie.
        let home = self.args.iter().skip_while(|arg| *arg != "--data-dir").nth(1);
        let mut child = command
            .env("HOME", home.unwrap())
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
    pub fn says(&self, text: &str) -> Option<String> {
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

    pub fn is_ready(&mut self) {
        let line = self.says("listening for HTTP API clients on ").unwrap();
        self.api = Some(line.split("clients on ").nth(1).unwrap().trim().parse().unwrap());
        self.says(" is ready").unwrap();
    }

    pub fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// The status and the body of an answer of the HTTP API.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        // guest:guest
        self.ask_as("Z3Vlc3Q6Z3Vlc3Q=", method, path, body)
    }

    /// The same for somebody with these credentials.
    pub fn ask_as(&self, credentials: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut socket = TcpStream::connect(self.api.unwrap()).unwrap();
        let length = body.len();
        let request = format!(
            "{method} /api{path} HTTP/1.1\r\nhost: n\r\nauthorization: Basic {credentials}\r\nconnection: close\r\n\
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
    pub fn put(&self, path: &str, body: &str) {
        let (status, said) = self.ask("PUT", path, body);
        assert!(
            matches!(status, 201 | 204),
            "{}: PUT {path}: {status} {said}",
            self.name
        );
    }

    /// A change that may be asked for again while nobody leads.
    pub fn put_at_last(&self, path: &str, body: &str) {
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
    pub fn names(&self, path: &str) -> Vec<String> {
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
    pub fn has_kept(&self, number: usize) -> bool {
        let get = r#"{"count":1,"ackmode":"ack_requeue_true","encoding":"auto"}"#;
        let (status, body) = self.ask("POST", &format!("/queues/%2F/q{number}/get"), get);
        status == 200 && body.contains("\"payload\":\"kept\"")
    }

    /// What a command of `leveret ctl` says; whether it did what it was told.
    pub fn ctl(&self, words: &[&str]) -> Result<String, String> {
        let at = self.args.iter().position(|arg| arg == "--data-dir").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_leveret"));
        command.arg("ctl").args(words).args(&self.args[at..at + 2]);
        let done = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap();
        match done.status.success() {
            true => Ok(said),
            false => Err(said),
        }
    }

    /// How many nodes of its cluster it says run.
    pub fn running(&self) -> usize {
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

pub fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "this never comes: {what}");
        std::thread::yield_now();
    }
}

pub fn start(nodes: &mut [Node]) {
    nodes.iter_mut().for_each(Node::start);
    nodes.iter_mut().for_each(Node::is_ready);
}

pub fn three(scratch: &TempDir) -> Vec<Node> {
    let ports = free_ports(3);
    (1..=3)
        .map(|number| Node::new(scratch, number, &ports, "s3cret"))
        .collect()
}

/// A client of AMQP, as far as it has to be one: it is connected, and may consume.
pub struct Client(pub TcpStream);

impl Client {
    /// Logs in at a node and opens a channel.
    pub fn connect(node: &Node) -> Self {
        Self::log_in(node, "guest", "guest")
    }

    /// The same as this user.
    pub fn log_in(node: &Node, user: &str, password: &str) -> Self {
        Self::connect_as(node, (user, password), b"")
    }

    /// The same, and hears of alarms.
    pub fn connect_hearing(node: &Node) -> Self {
        Self::connect_as(
            node,
            ("guest", "guest"),
            b"\x0ccapabilitiesF\0\0\0\x15\x12connection.blockedt\x01",
        )
    }

    /// As this user, with these properties of the client.
    fn connect_as(node: &Node, (user, password): (&str, &str), properties: &[u8]) -> Self {
        let (_, overview) = node.ask("GET", "/overview?columns=listeners", "");
        let own = format!("\"node\":\"{}\",\"port\":", node.name);
        let mut ports = overview.split(&own).skip(1);
        let amqp = ports.find(|rest| rest.contains(",\"protocol\":\"amqp\""));
        let port: u16 = amqp.unwrap().split(',').next().unwrap().parse().unwrap();
        let mut client = Self(TcpStream::connect(("127.0.0.1", port)).unwrap());
        client.0.write_all(b"AMQP\x00\x00\x09\x01").unwrap();
        client.read(10, 10);
        let mut start_ok = (properties.len() as u32).to_be_bytes().to_vec();
        start_ok.extend_from_slice(properties);
        let response = format!("\0{user}\0{password}");
        start_ok.extend_from_slice(b"\x05PLAIN\0\0\0");
        start_ok.push(response.len() as u8);
        start_ok.extend_from_slice(response.as_bytes());
        start_ok.extend_from_slice(b"\x05en_US");
        client.call(0, 10, 11, &start_ok);
        client.read(10, 30);
        client.call(0, 10, 31, &[0x07, 0xff, 0, 2, 0, 0, 0, 0]);
        client.call(0, 10, 40, b"\x01/\0\0");
        client.read(10, 41);
        client.call(1, 20, 10, b"\0");
        client.read(20, 11);
        client
    }

    pub fn consume(&mut self, queue: &str, tag: &str) {
        let mut arguments = vec![0, 0, queue.len() as u8];
        arguments.extend_from_slice(queue.as_bytes());
        arguments.push(tag.len() as u8);
        arguments.extend_from_slice(tag.as_bytes());
        arguments.extend_from_slice(&[0, 0, 0, 0, 0]);
        self.call(1, 60, 20, &arguments);
        self.read(60, 21);
    }

    /// Has its publishes confirmed from now on.
    pub fn confirm(&mut self) {
        self.call(1, 85, 10, b"\0");
        self.read(85, 11);
    }

    /// Publishes a body of four bytes to a queue.
    pub fn publish(&mut self, queue: &str) {
        let mut arguments = vec![0, 0, 0, queue.len() as u8];
        arguments.extend_from_slice(queue.as_bytes());
        arguments.push(0);
        self.call(1, 60, 40, &arguments);
        let header = [
            &[2, 0, 1, 0, 0, 0, 14, 0, 60, 0, 0][..],
            &4_u64.to_be_bytes(),
            &[0, 0, 0xce],
        ]
        .concat();
        self.0.write_all(&header).unwrap();
        self.0.write_all(b"\x03\0\x01\0\0\0\x04body\xce").unwrap();
    }

    pub fn call(&mut self, channel: u16, class: u16, method: u16, arguments: &[u8]) {
        let mut frame = vec![1];
        frame.extend_from_slice(&channel.to_be_bytes());
        frame.extend_from_slice(&(arguments.len() as u32 + 4).to_be_bytes());
        frame.extend_from_slice(&class.to_be_bytes());
        frame.extend_from_slice(&method.to_be_bytes());
        frame.extend_from_slice(arguments);
        frame.push(0xce);
        self.0.write_all(&frame).unwrap();
    }

    /// The arguments of the next call of this method; everything else is passed over.
    pub fn read(&mut self, class: u16, method: u16) -> Vec<u8> {
        self.0.set_read_timeout(Some(TIMEOUT)).unwrap();
        loop {
            let mut head = [0; 7];
            self.0.read_exact(&mut head).unwrap();
            let size = u32::from_be_bytes(head[3..].try_into().unwrap()) as usize;
            let mut payload = vec![0; size + 1];
            self.0.read_exact(&mut payload).unwrap();
            let wanted = [class.to_be_bytes(), method.to_be_bytes()].concat();
            if head[0] == 1 && payload.starts_with(&wanted) {
                return payload[4..].to_vec();
            }
        }
    }
}
