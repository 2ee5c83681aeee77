//! The binary `leveret`: one subcommand a face of the product.

use clap::Parser;
use server::cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Server(args) => server::boot::server(&args),
    }
}
