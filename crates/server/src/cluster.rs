//! `leveret cluster`: several nodes on this machine as one cluster, each a process of its own, for people who want to look.
//!
//! Everything that it starts with is written down: each node has a folder with its configuration file, by which `leveret server`
//! starts the same node again. Nothing here knows what a cluster is beyond the keys that it writes.

use crate::cli::ClusterArgs;
use rustix::process::{Pid, Signal, kill_process};
use rustix::rand::{GetRandomFlags, getrandom};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::{env, path, thread};

/// What a node logs once clients are let in.
const IS_UP: &str = "Server startup complete";

/// Random bytes of the secret.
const SECRET_BYTES: usize = 32;

/// So many last lines of its log are shown of a node that ends before it serves.
const SHOWN_LINES: usize = 12;

/// One of the nodes.
struct Node {
    name: String,
    /// Has its configuration, its log and its data.
    folder: PathBuf,
    amqp: u16,
    stream: u16,
    http: u16,
    metrics: u16,
    links: u16,
}

/// What the threads tell.
enum News {
    Up(usize),
    Ended(usize, io::Result<ExitStatus>),
    Stop,
}

/// Starts the nodes, says where they are, and stops them when it is told to.
pub fn cluster(args: &ClusterArgs) -> ExitCode {
    match run(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("leveret: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all nodes served and stopped when they were told to.
fn run(args: &ClusterArgs) -> io::Result<bool> {
    let nodes = nodes(args)?;
    for port in nodes.iter().flat_map(Node::ports) {
        is_free(port)?;
    }
    let secret = secret(&args.data_dir)?;
    for node in &nodes {
        fs::create_dir_all(&node.folder)?;
        let text = configuration(node, &nodes, &secret);
        private(&node.configuration())?.write_all(text.as_bytes())?;
    }
    let (tell, told) = mpsc::channel();
    stop_on_signals(tell.clone())?;
    println!("starting {} nodes in {}", nodes.len(), args.data_dir.display());
    let mut processes = Vec::new();
    for (number, node) in nodes.iter().enumerate() {
        processes.push(spawn(node, number, &args.set, &tell)?);
    }
    let (mut serving, mut left, mut stopping, mut good) = (0, nodes.len(), false, true);
    while left > 0 {
        match told.recv() {
            Ok(News::Up(number)) => {
                println!("  {}", nodes[number].whereabouts());
                serving += 1;
                if serving == nodes.len() {
                    print!("{}", what_next(&nodes));
                }
            }
            Ok(News::Ended(number, status)) => {
                left -= 1;
                if !stopping {
                    good = false;
                    print!("{}", ended(&nodes[number], &status));
                }
            }
            Ok(News::Stop) | Err(_) => {
                if !stopping {
                    println!("stopping");
                }
                stopping = true;
                for process in &processes {
                    // One that has ended already has nothing to be told.
                    let _ = kill_process(*process, Signal::TERM);
                }
            }
        }
    }
    Ok(good)
}

impl Node {
    fn configuration(&self) -> PathBuf {
        self.folder.join("leveret.conf")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("console.log")
    }

    fn ports(&self) -> [u16; 5] {
        [self.amqp, self.stream, self.http, self.metrics, self.links]
    }

    fn whereabouts(&self) -> String {
        format!(
            "{}  amqp://guest@localhost:{}  rabbitmq-stream://guest@localhost:{}  http://localhost:{}/",
            self.name, self.amqp, self.stream, self.http
        )
    }
}

/// The nodes, with ports that follow each other.
fn nodes(args: &ClusterArgs) -> io::Result<Vec<Node>> {
    let port = |first: u16, at: u16| {
        let none = || io::Error::other(format!("there are no {} ports from {first} on", args.nodes));
        first.checked_add(at).ok_or_else(none)
    };
    let data_dir = path::absolute(&args.data_dir)?;
    let all = (0..args.nodes).map(|at| {
        Ok(Node {
            name: format!("n{}@localhost", at + 1),
            folder: data_dir.join(format!("n{}", at + 1)),
            amqp: port(args.amqp_port, at)?,
            stream: port(args.stream_port, at)?,
            http: port(args.http_port, at)?,
            metrics: port(args.metrics_port, at)?,
            links: port(args.cluster_port, at)?,
        })
    });
    all.collect()
}

/// # Errors
/// Somebody listens on the port.
fn is_free(port: u16) -> io::Result<()> {
    let taken = |error| {
        io::Error::other(format!(
            "port {port} can't be listened on ({error}): is a broker running? Other ports: --amqp-port, --stream-port, \
             --http-port, --metrics-port and --cluster-port name the first of each kind"
        ))
    };
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .map(drop)
        .map_err(taken)
}

/// What the nodes prove to each other, drawn once for the folder.
fn secret(data_dir: &Path) -> io::Result<String> {
    let path = data_dir.join("secret");
    match fs::read_to_string(&path) {
        Ok(secret) => return Ok(secret.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    fs::create_dir_all(data_dir)?;
    let mut bytes = [0; SECRET_BYTES];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    let secret: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    writeln!(private(&path)?, "{secret}")?;
    Ok(secret)
}

/// A file with nothing in it that nobody else may read: it gets a secret.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
}

/// A node's file: as somebody who sets up three nodes would write it.
fn configuration(node: &Node, nodes: &[Node], secret: &str) -> String {
    let mut lines = vec![
        "# Written anew by each start of `leveret cluster`.".to_owned(),
        format!("nodename = {}", node.name),
        format!("data_dir = {}", node.folder.join("data").display()),
        format!("listeners.tcp.default = 127.0.0.1:{}", node.amqp),
        format!("stream.listeners.tcp.default = 127.0.0.1:{}", node.stream),
        format!("management.tcp.ip = {}", Ipv4Addr::LOCALHOST),
        format!("management.tcp.port = {}", node.http),
        format!("prometheus.tcp.ip = {}", Ipv4Addr::LOCALHOST),
        format!("prometheus.tcp.port = {}", node.metrics),
        format!("cluster.listeners.tcp.default = 127.0.0.1:{}", node.links),
        format!("cluster.secret = {secret}"),
    ];
    for (number, peer) in (1..).zip(nodes) {
        lines.push(format!(
            "cluster_formation.classic_config.nodes.{number} = {}:{}",
            peer.name, peer.links
        ));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// A node's process. It is in a process group of its own: Ctrl-C is meant for this one, which stops the others once.
fn spawn(node: &Node, number: usize, settings: &[String], tell: &Sender<News>) -> io::Result<Pid> {
    let log = File::create(node.log())?;
    let mut command = Command::new(env::current_exe()?);
    command.arg("server").arg("--config").arg(node.configuration());
    for setting in settings {
        command.arg("--set").arg(setting);
    }
    let mut process = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log.try_clone()?)
        .process_group(0)
        .spawn()?;
    let pid = Pid::from_child(&process);
    let (lines, tell) = (process.stdout.take(), tell.clone());
    thread::Builder::new().name(node.name.clone()).spawn(move || {
        lines
            .into_iter()
            .for_each(|lines| keep(lines, log.try_clone(), number, &tell));
        // Nobody listens any more where all has ended.
        let _ = tell.send(News::Ended(number, process.wait()));
    })?;
    Ok(pid)
}

/// Writes down what a node logs, and tells when it serves. Its end is the end of its lines.
fn keep(lines: ChildStdout, log: io::Result<File>, number: usize, tell: &Sender<News>) {
    let mut log = log.ok();
    for line in BufReader::new(lines).split(b'\n') {
        let Ok(line) = line else { return };
        if let Some(log) = &mut log {
            // A full disk is told by the node itself.
            let _ = log.write_all(&line).and_then(|()| log.write_all(b"\n"));
        }
        if line.windows(IS_UP.len()).any(|part| part == IS_UP.as_bytes()) {
            let _ = tell.send(News::Up(number));
        }
    }
}

fn stop_on_signals(tell: Sender<News>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        for _ in signals.forever() {
            if tell.send(News::Stop).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

fn what_next(nodes: &[Node]) -> String {
    let first = nodes.first().map(|node| node.folder.join("data"));
    let first = first.unwrap_or_default();
    format!(
        "\n  see         leveret ctl --data-dir {} cluster_status\n  \
         break       kill -9 the process of a node, and start it again as its line here says\n  \
         logs        console.log in the folder of each node\n  \
         stop with   Ctrl-C\n\n",
        first.display()
    )
}

/// What a person is told of a node that has ended by itself.
fn ended(node: &Node, status: &io::Result<ExitStatus>) -> String {
    let how = match status {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    let mut text = format!("{} has ended ({how})\n", node.name);
    if matches!(status, Ok(status) if status.code().is_some()) {
        let log = fs::read_to_string(node.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        for line in &lines[lines.len().saturating_sub(SHOWN_LINES)..] {
            text.push_str(&format!("    {line}\n"));
        }
    }
    text.push_str(&format!(
        "  start it again: leveret server --config {}\n",
        node.configuration().display()
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(nodes: u16) -> ClusterArgs {
        ClusterArgs {
            nodes,
            data_dir: "/d".into(),
            amqp_port: 5672,
            stream_port: 5552,
            http_port: 15672,
            metrics_port: 15692,
            cluster_port: 25672,
            set: Vec::new(),
        }
    }

    #[test]
    fn each_node_has_ports_and_a_folder_of_its_own_and_knows_all() {
        let nodes = nodes(&args(3)).unwrap();
        let text = configuration(&nodes[1], &nodes, "s");
        for line in [
            "nodename = n2@localhost",
            "data_dir = /d/n2/data",
            "listeners.tcp.default = 127.0.0.1:5673",
            "stream.listeners.tcp.default = 127.0.0.1:5553",
            "management.tcp.port = 15673",
            "prometheus.tcp.port = 15693",
            "cluster.listeners.tcp.default = 127.0.0.1:25673",
            "cluster.secret = s",
            "cluster_formation.classic_config.nodes.1 = n1@localhost:25672",
            "cluster_formation.classic_config.nodes.3 = n3@localhost:25674",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is missing:\n{text}");
        }
        let printed = nodes[1].whereabouts();
        for port in [":5673 ", ":5553 ", ":15673/"] {
            assert!(printed.contains(port), "{port} is missing: {printed}");
        }
        let mut ports: Vec<u16> = nodes.iter().flat_map(Node::ports).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 3 * 5, "no port is used twice: {ports:?}");
    }

    #[test]
    fn ports_that_do_not_exist_are_refused() {
        let args = ClusterArgs {
            amqp_port: u16::MAX,
            ..args(2)
        };
        assert!(nodes(&args).is_err());
    }

    #[test]
    fn a_secret_is_drawn_once_for_a_folder_and_is_nobody_elses_to_read() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let drawn = secret(folder.path()).unwrap();
        assert_eq!((drawn.len(), &drawn), (64, &secret(folder.path()).unwrap()));
        let mode = fs::metadata(folder.path().join("secret"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_ne!(drawn, secret(tempfile::tempdir().unwrap().path()).unwrap());
    }
}
