//! The binary `leveret`: one subcommand a face of the product.

use server::cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::command(std::env::args_os()) {
        Command::Server(args) => server::boot::server(&args),
        Command::Perf(passed) => perf::main(passed.args),
        Command::Bench(passed) => bench::main(passed.args),
    }
}
