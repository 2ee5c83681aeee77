//! A lean load generator for AMQP 0-9-1, made to cost so little itself that the broker is what is measured.
//!
//! One blocking thread a connection. Publishers write blocks of messages that were encoded once; consumers skip
//! over frames by their lengths. A bound on what is published but not consumed keeps the broker from storing a backlog, which
//! would be another measurement. Reading order: `options`, `run`, `publisher`, `consumer`, `gate`, `connection`,
//! `process`.

mod connection;
mod consumer;
mod gate;
mod options;
mod process;
mod publisher;
mod run;

use options::{Options, USAGE};
use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "--help") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprint!("loader: {error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run::run(&options) {
        Ok(outcome) => {
            println!("{}", outcome.json());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("loader: {error}");
            ExitCode::FAILURE
        }
    }
}
