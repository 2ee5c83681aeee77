//! The command line of `leveret perf import`.

use crate::failure::Failure;
use crate::subcommand::{self, Request};
use clap::Parser;
use std::path::PathBuf;
use std::time::Duration;

/// No file of definitions that people have is larger.
const MOST: i64 = 1_000_000;

/// What was asked for.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "leveret perf import",
    bin_name = "leveret perf import",
    about = "How long a broker takes to import a file of definitions: POST /api/definitions of a management API.",
    after_help = "Names begin with perf-import- and the id. All that was imported is deleted afterwards, which is not timed.",
    disable_version_flag = true,
    max_term_width = 110
)]
pub struct Options {
    /// The broker
    #[arg(long, default_value = "amqp://localhost")]
    pub uri: String,
    /// Its management API
    /// [default: http://, the URI's login and host, and a port that is 10,000 higher]
    #[arg(long, value_name = "URI", verbatim_doc_comment)]
    pub http: Option<String>,
    /// Virtual hosts, over which everything else is spread
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST))]
    pub vhosts: u32,
    /// Users with a password and permissions on one virtual host
    #[arg(long, default_value_t = 500, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=MOST))]
    pub users: u32,
    /// Topic exchanges; at least one in each virtual host
    #[arg(long, default_value_t = 500, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=MOST))]
    pub exchanges: u32,
    /// Durable queues, some of them with arguments
    #[arg(long, default_value_t = 3_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST))]
    pub queues: u32,
    /// Bindings between exchanges and queues
    #[arg(long, default_value_t = 6_000, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=MOST))]
    pub bindings: u32,
    /// Policies
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=MOST))]
    pub policies: u32,
    /// Seconds after which an answer is no longer waited for
    #[arg(long, default_value_t = 600, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=MOST))]
    pub timeout: u32,
    /// Writes the results as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Stands in the names of what is imported [default: test-HHMMSS-mmm]
    #[arg(long)]
    pub id: Option<String>,
    /// Accepted like the other kinds of run; an import has no intervals
    #[arg(long, value_name = "S", hide = true)]
    pub interval: Option<f64>,
}

impl Options {
    /// Reads the arguments behind `import`.
    ///
    /// # Errors
    /// [`Failure::Usage`] with what to write instead.
    pub fn read(arguments: &[String]) -> Result<Request<Self>, Failure> {
        subcommand::read("import", arguments)
    }

    /// `--timeout`.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout.into())
    }
}
