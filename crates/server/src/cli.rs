//! The command line of the binary `leveret`.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

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
}

#[derive(Clone, Debug, Default, Args)]
pub struct ServerArgs {
    /// Configuration file, in rabbitmq.conf syntax (else LEVERET_CONFIG_FILE or RABBITMQ_CONFIG_FILE).
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Directory of everything durable (else LEVERET_DATA_DIR, `data_dir` of the file, or ./var).
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where to listen for AMQP 0-9-1: a port or ADDRESS:PORT; may be given again; replaces all other listeners.
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<String>,
    /// One setting in the file's syntax, such as `-s heartbeat=30`; may be given again; wins over the file.
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_option_is_read() {
        let line = "leveret server --config f --data-dir d --listen 1 --listen [::1]:2 -s a=1 --set b=2";
        let Command::Server(args) = Cli::try_parse_from(line.split(' ')).unwrap().command;
        assert_eq!((args.config, args.data_dir), (Some("f".into()), Some("d".into())));
        assert_eq!(
            (args.listen, args.set),
            (
                vec!["1".into(), "[::1]:2".into()],
                vec!["a=1".into(), "b=2".into()]
            )
        );
    }
}
