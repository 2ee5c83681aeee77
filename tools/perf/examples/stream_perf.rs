//! `leveret stream-perf` without the rest of the binary, to try it quickly:
//! `cargo run --release -p leveret-perf --example stream_perf -- --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    perf::stream_main(std::env::args_os().skip(1).collect())
}
