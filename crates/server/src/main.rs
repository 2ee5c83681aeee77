//! The binary `leveret`: one subcommand a face of the product.

use server::cli::{Cli, Command};
use server::{boot, cluster};
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::command(std::env::args_os()) {
        Command::Server(args) => boot::server(&args),
        Command::Cluster(args) => cluster::cluster(&args),
        Command::Ctl(passed) => ctl::main(ctl::Tool::Leveret, &product(), passed.args),
        Command::Tool(tool, passed) => ctl::main(tool, &product(), passed.args),
        Command::Admin(passed) => ctl::admin::main(&product().version, passed.args),
        Command::Perf(passed) => perf::main(passed.args),
        Command::StreamPerf(passed) => perf::stream_main(passed.args),
        Command::Bench(passed) => bench::main(passed.args),
    }
}

/// What the command line is part of.
fn product() -> ctl::Product {
    ctl::Product {
        version: boot::compatible_version(),
        plugins: &management::BUILT_IN_PLUGINS,
    }
}
