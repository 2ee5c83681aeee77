//! The binary as a process: it serves, stops on a signal, and refuses to start with words and an exit code.

#![allow(
    clippy::unwrap_used,
    reason = "a test file; clippy sees only the test functions as tests"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn leveret(scratch: &TempDir, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leveret"));
    command
        .args(args)
        .current_dir(scratch.path())
        .stdin(Stdio::null());
    let ours = |name: &str| name.starts_with("LEVERET_") || name.starts_with("RABBITMQ_");
    for (name, _) in std::env::vars().filter(|(name, _)| ours(name)) {
        command.env_remove(name);
    }
    command
}

/// A node that is running; killed if a test ends early.
struct Node {
    child: Child,
    lines: Receiver<String>,
}

/// How long a node may take to say something.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The lines of a node's standard output, as a thread of their own reads them.
fn lines(out: ChildStdout) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

impl Node {
    /// Starts a node on a free port and waits until it says that it is ready. Returns its address, too.
    fn start(scratch: &TempDir, args: &[&str]) -> (Self, SocketAddr) {
        let mut all = vec!["server", "--listen", "127.0.0.1:0", "-s", "management.tcp.port=0"];
        all.extend(args);
        let mut child = leveret(scratch, &all).stdout(Stdio::piped()).spawn().unwrap();
        let lines = lines(child.stdout.take().unwrap());
        let mut node = Self { child, lines };
        let listening = node.read_until("started TCP listener on ");
        let behind = listening.split("listener on ").nth(1).unwrap();
        let address = behind.split(' ').next().unwrap().parse().unwrap();
        node.read_until(" is ready");
        (node, address)
    }

    /// The next line of standard output that has this text.
    fn read_until(&mut self, text: &str) -> String {
        let deadline = Instant::now() + TIMEOUT;
        let mut last = String::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => last = line,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("the node never said {text:?}; its last line: {last}")
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the node ended before it said {text:?}; its last line: {last}")
                }
            }
        }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", name, &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    fn exit_code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says hello and reads the beginning of `connection.start`: a method frame on channel 0.
fn greet(address: SocketAddr) -> [u8; 3] {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(b"AMQP\x00\x00\x09\x01").unwrap();
    let mut head = [0; 3];
    socket.read_exact(&mut head).unwrap();
    head
}

fn failed(output: &Output) -> (Option<i32>, String) {
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn a_node_serves_and_stops_on_either_signal() {
    for signal in ["TERM", "INT"] {
        let scratch = TempDir::new().unwrap();
        let (mut node, address) = Node::start(&scratch, &["--data-dir", "d"]);
        assert_eq!(greet(address), [1, 0, 0]);
        assert!(scratch.path().join("d").is_dir());
        node.signal(signal);
        node.read_until("stopped");
        assert_eq!(node.exit_code(), Some(0), "after SIG{signal}");
    }
}

#[test]
fn the_environment_says_who_the_node_is_and_where_it_listens() {
    let scratch = TempDir::new().unwrap();
    let mut child = leveret(&scratch, &["server", "-s", "management.tcp.port=0"])
        .envs([
            ("RABBITMQ_NODENAME", "hare@burrow"),
            ("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1"),
            ("RABBITMQ_NODE_PORT", "0"),
            ("RABBITMQ_MNESIA_DIR", "d"),
            ("RABBITMQ_LOG_BASE", "logs"),
            ("RABBITMQ_PID_FILE", "node.pid"),
            ("RABBITMQ_ERLANG_COOKIE", "s3cret"),
            ("RABBITMQ_NODE_IP_ADRESS", "x"),
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = lines(child.stdout.take().unwrap());
    let mut node = Node { child, lines };
    node.read_until("cluster.secret and cluster.tls.* have no effect");
    node.read_until("did you mean RABBITMQ_NODE_IP_ADDRESS?");
    node.read_until("started TCP listener on 127.0.0.1:");
    node.read_until(" is ready");
    let read = |name: &str| fs::read_to_string(scratch.path().join(name)).unwrap();
    assert_eq!(read("node.pid").trim(), node.child.id().to_string());
    assert!(scratch.path().join("d").is_dir());
    node.signal("TERM");
    assert_eq!(node.exit_code(), Some(0));
    assert!(read("logs/hare@burrow.log").contains(" is ready"));
    assert!(!scratch.path().join("node.pid").exists());
}

#[test]
fn a_collector_hears_the_whole_log() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("log");
    let collector = UnixDatagram::bind(&path).unwrap();
    let host = format!("log.syslog.host={}", path.display());
    let settings = [
        "log.console=false",
        "log.syslog=true",
        "log.syslog.protocol=rfc5424",
        &host,
    ];
    let mut line = vec!["server", "--listen", "127.0.0.1:0", "-s", "management.tcp.port=0"];
    for setting in settings {
        line.extend(["-s", setting]);
    }
    let child = leveret(&scratch, &line).stdout(Stdio::piped()).spawn().unwrap();
    let mut child = child;
    let lines = lines(child.stdout.take().unwrap());
    let mut node = Node { child, lines };
    let hear = |wanted: &str| {
        let mut buffer = [0; 10_000];
        loop {
            let count = collector.recv(&mut buffer).unwrap();
            let message = String::from_utf8(buffer[..count].to_vec()).unwrap();
            assert!(
                message.starts_with('<') && message.contains(" rabbitmq "),
                "{message}"
            );
            if message.contains(wanted) {
                return;
            }
        }
    };
    hear(" is ready");
    node.signal("TERM");
    hear("boot: stopped");
    assert_eq!(node.exit_code(), Some(0));
}

#[test]
fn the_data_directory_belongs_to_one_node() {
    let scratch = TempDir::new().unwrap();
    let (_node, _) = Node::start(&scratch, &["--data-dir", "d"]);
    let second = leveret(
        &scratch,
        &["server", "--listen", "127.0.0.1:0", "--data-dir", "d"],
    )
    .output()
    .unwrap();
    let (code, text) = failed(&second);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("lock") || text.contains("another"), "{text}");
}

#[test]
fn an_address_in_use_is_named() {
    let scratch = TempDir::new().unwrap();
    let (_node, address) = Node::start(&scratch, &["--data-dir", "a"]);
    let address = address.to_string();
    let second = leveret(&scratch, &["server", "--listen", &address, "--data-dir", "b"])
        .output()
        .unwrap();
    let (code, text) = failed(&second);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&address), "{text}");
}

#[test]
fn mistakes_in_the_configuration_are_told_before_anything_starts() {
    let scratch = TempDir::new().unwrap();
    fs::write(
        scratch.path().join("l.conf"),
        "heartbeat = 5\nhearbeat = 6\nssl_options.psk_identity = x\n",
    )
    .unwrap();
    let output = leveret(&scratch, &["server", "--config", "l.conf"])
        .output()
        .unwrap();
    let (code, text) = failed(&output);
    assert_eq!(code, Some(78), "{text}");
    assert!(
        text.contains("l.conf:2: unknown key hearbeat; did you mean heartbeat?"),
        "{text}"
    );
    assert!(
        text.contains("l.conf:3: ssl_options.psk_identity is refused: "),
        "{text}"
    );
    assert!(!scratch.path().join("var").exists());
}

#[test]
fn a_configuration_is_checked_without_a_start() {
    let scratch = TempDir::new().unwrap();
    let check = |text: &str| {
        fs::write(scratch.path().join("l.conf"), text).unwrap();
        let mut command = leveret(&scratch, &["server", "--check-config", "--config", "l.conf"]);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = check("heartbeat = 5\nmqtt.vhost = /\n");
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("warning: key mqtt.vhost") && text.contains("the configuration is good"),
        "{text}"
    );
    let (code, text) = check("hearbeat = 5\nframe_max = x\n");
    assert_eq!(code, Some(78), "{text}");
    assert!(
        text.contains("did you mean heartbeat?") && text.contains("l.conf:2: frame_max"),
        "{text}"
    );
    let (code, text) = check(
        "listeners.ssl.default = 5671\nssl_options.certfile = no.pem\nssl_options.keyfile = no.key\nload_definitions = no.json\n",
    );
    assert_eq!(code, Some(78), "{text}");
    assert!(
        text.contains("ssl_options.certfile no.pem cannot be read")
            && text.contains("load_definitions: no.json"),
        "{text}"
    );
    assert!(!scratch.path().join("var").exists(), "nothing was started");
}

#[test]
fn a_service_manager_hears_that_the_node_serves_and_a_hangup_reopens_the_log() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    let line = [
        "server",
        "--listen",
        "127.0.0.1:0",
        "-s",
        "management.tcp.port=0",
        "-s",
        "log.file=l.log",
    ];
    let mut child = leveret(&scratch, &line)
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", "20000")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let heard = || {
        let mut buffer = [0; 100];
        let count = manager.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..count].to_vec()).unwrap()
    };
    assert!(heard().starts_with("READY=1"));
    assert_eq!(heard(), "WATCHDOG=1");
    let log = scratch.path().join("var/logs/l.log");
    fs::rename(&log, scratch.path().join("moved")).unwrap();
    let signal = |name: &str| {
        let sent = Command::new("kill")
            .args([name, &child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    };
    signal("-HUP");
    while !log.exists() {
        assert_eq!(heard(), "WATCHDOG=1");
    }
    signal("-TERM");
    while !heard().starts_with("STOPPING=1") {}
    assert!(child.wait().unwrap().success());
    assert!(fs::read_to_string(&log).unwrap().contains("stopped"));
}

#[test]
fn keys_of_parts_to_come_warn_and_the_node_starts() {
    let scratch = TempDir::new().unwrap();
    let args = [
        "-s",
        "net_ticktime=60",
        "-s",
        "log.console.formatter=json",
        "--data-dir",
        "d",
    ];
    let mut all = vec!["server", "--listen", "127.0.0.1:0", "-s", "management.tcp.port=0"];
    all.extend(args);
    let mut child = leveret(&scratch, &all).stdout(Stdio::piped()).spawn().unwrap();
    let lines = lines(child.stdout.take().unwrap());
    let mut node = Node { child, lines };
    let warning = node.read_until("net_ticktime");
    assert!(
        warning.starts_with("{\"time\":\"") && warning.contains("\"level\":\"warning\""),
        "{warning}"
    );
    node.read_until("is ready");
}

#[test]
fn the_version_is_that_of_the_package() {
    let scratch = TempDir::new().unwrap();
    let output = leveret(&scratch, &["--version"]).output().unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        format!("leveret {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn a_node_without_an_http_port_answers_on_its_admin_socket() {
    let scratch = TempDir::new().unwrap();
    let (node, _) = Node::start(&scratch, &["-s", "management.listener=none"]);
    let mut socket = UnixStream::connect(scratch.path().join("var/admin/socket")).unwrap();
    socket
        .write_all(b"PUT /api/users/jane HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 11\r\n\r\n{\"tags\":\"\"}")
        .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    // Who names a user is that user.
    let mut socket = UnixStream::connect(scratch.path().join("var/admin/socket")).unwrap();
    socket
        .write_all(b"GET /api/whoami HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Basic amFuZTp4\r\n\r\n")
        .unwrap();
    answer.clear();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    drop(node);
}

#[test]
fn the_command_line_administers_the_node_of_its_data_directory_and_stops_it() {
    let scratch = TempDir::new().unwrap();
    let (mut node, _) = Node::start(&scratch, &["-s", "management.listener=none"]);
    let ctl = |line: &str| {
        let words: Vec<&str> = std::iter::once("ctl").chain(line.split(' ')).collect();
        let output = leveret(&scratch, &words).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    assert_eq!(ctl("await_startup"), (Some(0), String::new(), String::new()));
    assert_eq!(ctl("-q add_vhost shop"), (Some(0), String::new(), String::new()));
    let (code, out, _) = ctl("list_vhosts");
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "Listing vhosts ...\nname\n/\nshop\n")
    );
    let (code, _, err) = ctl("set_permissions -p shop jane a b c");
    assert_eq!(
        (code, err.as_str()),
        (Some(67), "Error:\nUser jane does not exist\n")
    );
    assert_eq!(ctl("add_user jane x").0, Some(0));
    assert_eq!(ctl("add_user jane x").0, Some(70));
    let (code, _, err) = ctl("--data-dir nowhere status");
    assert!(code == Some(69) && err.contains("nowhere/admin/socket"), "{err}");
    assert_eq!(ctl("-q stop"), (Some(0), String::new(), String::new()));
    assert_eq!(node.exit_code(), Some(0));
}
