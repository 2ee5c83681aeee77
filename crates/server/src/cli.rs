//! The command line of the binary `leveret`.

use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A message broker that speaks RabbitMQ's protocols.
#[derive(Debug, Parser)]
#[command(name = "leveret", version, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the broker in the foreground, until SIGINT or SIGTERM.
    Server(ServerArgs),
    /// Run several nodes on this machine as one cluster, to look at: each a process of its own, on ports that follow each other.
    Cluster(ClusterArgs),
    /// Administer a node, with rabbitmqctl's commands. `leveret ctl help` lists them.
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Ctl(Passed),
    /// One of RabbitMQ's tools, by whose name the program was called.
    #[command(skip)]
    Tool(ctl::Tool, Passed),
    /// `rabbitmqadmin`, if the program was called so.
    #[command(skip)]
    Admin(Passed),
    /// Load-test any AMQP 0-9-1 broker, with PerfTest's options. `leveret perf --help` lists them.
    #[command(disable_help_flag = true)]
    Perf(Passed),
    /// Load-test a broker over RabbitMQ's stream protocol, with stream-perf-test's options. `leveret stream-perf --help` lists
    /// them.
    #[command(disable_help_flag = true)]
    StreamPerf(Passed),
    /// Compare brokers with named benchmark scenarios. `leveret bench --help` lists its options.
    #[command(disable_help_flag = true)]
    Bench(Passed),
}

/// Arguments that the subcommand's own crate understands.
#[derive(Clone, Debug, Default, Args)]
pub struct Passed {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub args: Vec<OsString>,
}

impl Cli {
    /// The subcommand of a command line. A program called `perf-test` or `perftest` (through a link) is `leveret perf`, and so is
    /// `runjava com.rabbitmq.perf.PerfTest`, as PerfTest's script has it; `PerfTestMulti` is `leveret perf multi`;
    /// `stream-perf-test` and `streamperftest` are `leveret stream-perf`; one called `rabbitmqctl` or like another of RabbitMQ's
    /// tools is that tool; `rabbitmq-server` is `leveret server` that finds its configuration where RabbitMQ's packages have it.
    pub fn command(line: impl IntoIterator<Item = OsString>) -> Command {
        let mut line: Vec<OsString> = line.into_iter().collect();
        let called = line.first().map(Path::new).and_then(Path::file_stem);
        let called = called.and_then(std::ffi::OsStr::to_str).map(str::to_owned);
        let called = called.as_deref();
        if let Some(args) = perf_arguments(called, &line) {
            return Command::Perf(Passed { args });
        }
        if let Some(args) = stream_perf_arguments(called, &line) {
            return Command::StreamPerf(Passed { args });
        }
        if let Some(tool) = called.and_then(ctl::Tool::called) {
            let args = line.split_off(1);
            return Command::Tool(tool, Passed { args });
        }
        if called == Some("rabbitmqadmin") {
            let args = line.split_off(1);
            return Command::Admin(Passed { args });
        }
        if called == Some("rabbitmq-server") {
            let mut args = RabbitmqServer::parse_from(line).args;
            args.as_rabbitmq = true;
            return Command::Server(args);
        }
        Self::parse_from(line).command
    }
}

/// What a command line of PerfTest means to `leveret perf`; `None` for any other.
fn perf_arguments(called: Option<&str>, line: &[OsString]) -> Option<Vec<OsString>> {
    let class = || line.get(1)?.to_str()?.strip_prefix("com.rabbitmq.perf.");
    let (name, skipped) = match called? {
        "runjava" => (class()?, 2),
        name => (name, 1),
    };
    let rest = line.get(skipped..)?.iter().cloned();
    match name {
        "perf-test" | "perftest" | "PerfTest" => Some(rest.collect()),
        "PerfTestMulti" => Some(std::iter::once("multi".into()).chain(rest).collect()),
        _ => None,
    }
}

/// What a command line of stream-perf-test means to `leveret stream-perf`; `None` for any other.
fn stream_perf_arguments(called: Option<&str>, line: &[OsString]) -> Option<Vec<OsString>> {
    let is_class = || {
        line.get(1)
            .is_some_and(|class| class == "com.rabbitmq.stream.perf.StreamPerfTest")
    };
    let skipped = match called? {
        "stream-perf-test" | "streamperftest" | "StreamPerfTest" => 1,
        "runjava" if is_class() => 2,
        _ => return None,
    };
    Some(line.get(skipped..)?.to_vec())
}

/// The command line of a program that is called `rabbitmq-server`.
#[derive(Debug, Parser)]
#[command(name = "rabbitmq-server", version)]
struct RabbitmqServer {
    #[command(flatten)]
    args: ServerArgs,
}

#[derive(Clone, Debug, Default, Args)]
pub struct ServerArgs {
    /// Configuration file, in rabbitmq.conf syntax, or a directory of such files (else LEVERET_CONFIG_FILE or
    /// RABBITMQ_CONFIG_FILE).
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// RabbitMQ's advanced.config (else LEVERET_ADVANCED_CONFIG_FILE, RABBITMQ_ADVANCED_CONFIG_FILE, or advanced.config
    /// beside the configuration file).
    #[arg(long, value_name = "FILE")]
    pub advanced_config: Option<PathBuf>,
    /// Data directory (else LEVERET_DATA_DIR, `data_dir` of the file, or ./var).
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// AMQP listener: a port or ADDRESS:PORT; may be repeated; replaces all configured listeners.
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<String>,
    /// Check the configuration, print all errors and warnings, and do not start.
    #[arg(long)]
    pub check_config: bool,
    /// Print what the data directory has lost, and do not start. Nothing is changed.
    #[arg(long)]
    pub repair: bool,
    /// With --repair: continue without what is lost. What is removed is kept in the folder `set-aside` of the data directory.
    #[arg(long, requires = "repair")]
    pub accept_loss: bool,
    /// One setting in the file's syntax, such as `-s heartbeat=30`; may be repeated; overrides the file.
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The program was called `rabbitmq-server`.
    #[arg(skip)]
    pub as_rabbitmq: bool,
}

#[derive(Clone, Debug, Args)]
pub struct ClusterArgs {
    /// How many nodes: three go on when one is lost, five when two are.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=9))]
    pub nodes: u16,
    /// Where each node has a folder with its configuration, its log and its data.
    #[arg(long, value_name = "DIR", default_value = "var/cluster")]
    pub data_dir: PathBuf,
    /// AMQP port of the first node.
    #[arg(long, value_name = "PORT", default_value_t = 5672)]
    pub amqp_port: u16,
    /// Port of the first node for the stream protocol.
    #[arg(long, value_name = "PORT", default_value_t = 5552)]
    pub stream_port: u16,
    /// Port of the first node's web UI and HTTP API.
    #[arg(long, value_name = "PORT", default_value_t = 15672)]
    pub http_port: u16,
    /// Port of the first node's metrics.
    #[arg(long, value_name = "PORT", default_value_t = 15692)]
    pub metrics_port: u16,
    /// Port at which the other nodes reach the first one.
    #[arg(long, value_name = "PORT", default_value_t = 25672)]
    pub cluster_port: u16,
    /// One setting of all nodes in the file's syntax, such as `-s heartbeat=30`; may be repeated.
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as CommandFactory>::command().debug_assert();
    }

    #[test]
    fn every_option_is_read() {
        let line = "leveret server --config f --advanced-config a --data-dir d --listen 1 --listen [::1]:2 -s a=1 --set b=2 --check-config";
        let Command::Server(args) = Cli::try_parse_from(line.split(' ')).unwrap().command else {
            panic!("another command");
        };
        assert!(args.check_config);
        assert_eq!((args.config, args.data_dir), (Some("f".into()), Some("d".into())));
        assert_eq!(args.advanced_config, Some("a".into()));
        assert_eq!(
            (args.listen, args.set),
            (
                vec!["1".into(), "[::1]:2".into()],
                vec!["a=1".into(), "b=2".into()]
            )
        );
    }

    #[test]
    fn rabbitmqs_tools_are_known_by_the_name_of_the_program() {
        let line = ["/usr/sbin/rabbitmq-diagnostics", "-q", "ping"].map(OsString::from);
        let Command::Tool(tool, passed) = Cli::command(line) else {
            panic!("another command");
        };
        assert_eq!(
            (tool, passed.args),
            (ctl::Tool::Diagnostics, vec!["-q".into(), "ping".into()])
        );
        let line = ["leveret", "ctl", "list_queues", "--help", "-p", "v"].map(OsString::from);
        let Command::Ctl(passed) = Cli::command(line) else {
            panic!("another command");
        };
        assert_eq!(passed.args, ["list_queues", "--help", "-p", "v"]);
    }

    #[test]
    fn rabbitmqs_server_is_ours_with_the_places_of_rabbitmqs_packages() {
        let line = |text: &str| Cli::command(text.split(' ').map(OsString::from));
        let Command::Server(args) = line("/opt/rabbitmq/sbin/rabbitmq-server -s heartbeat=30") else {
            panic!("another command");
        };
        assert!(args.as_rabbitmq);
        assert_eq!(args.set, ["heartbeat=30"]);
        let Command::Server(args) = line("leveret server") else {
            panic!("another command");
        };
        assert!(!args.as_rabbitmq);
    }

    #[test]
    fn the_load_generator_gets_its_flags_as_they_are() {
        for line in [
            "leveret perf -x 1 --help -qpf 3",
            "/bin/perf-test -x 1 --help -qpf 3",
            "perftest -x 1 --help -qpf 3",
            "runjava com.rabbitmq.perf.PerfTest -x 1 --help -qpf 3",
        ] {
            let Command::Perf(passed) = Cli::command(line.split(' ').map(OsString::from)) else {
                panic!("{line}: another command");
            };
            assert_eq!(passed.args, ["-x", "1", "--help", "-qpf", "3"], "{line}");
        }
        for line in [
            "leveret stream-perf -x 1 --help -sst",
            "/bin/stream-perf-test -x 1 --help -sst",
            "streamperftest -x 1 --help -sst",
            "runjava com.rabbitmq.stream.perf.StreamPerfTest -x 1 --help -sst",
        ] {
            let Command::StreamPerf(passed) = Cli::command(line.split(' ').map(OsString::from)) else {
                panic!("{line}: another command");
            };
            assert_eq!(passed.args, ["-x", "1", "--help", "-sst"], "{line}");
        }
        for line in [
            "PerfTestMulti a b",
            "bin/runjava com.rabbitmq.perf.PerfTestMulti a b",
        ] {
            let Command::Perf(passed) = Cli::command(line.split(' ').map(OsString::from)) else {
                panic!("{line}: another command");
            };
            assert_eq!(passed.args, ["multi", "a", "b"], "{line}");
        }
    }
}
