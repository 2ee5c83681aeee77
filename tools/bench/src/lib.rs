//! `leveret bench`: named scenarios against several brokers in turns, and a report that says how they compare.
//!
//! Invariants, as absences: no AMQP here, no broker linked, no load generated; the load is `leveret perf` or
//! `leveret stream-perf` in a process of its own, so that what is measured and what measures share nothing but the machine.
//!
//! Reading order: [`results`] is what comes out. `scenario` is what a visit does (`scenario_file`: where it comes from),
//! `plan` which ones a run takes, `schedule` in which order, `runner` makes them: it has `load` run the generator while
//! `sampler` watches the broker's process, and `window` makes one [`results::Run`] of both. [`statistics`] compares,
//! [`report`] tells.

mod bench;
mod cli;
mod failure;
mod flags;
mod listener;
mod load;
mod machine;
mod measured;
mod merge;
mod pauses;
mod plan;
mod process;
mod processors;
mod progress;
pub mod report;
pub mod results;
mod runner;
mod sampler;
mod scenario;
mod scenario_file;
mod schedule;
mod selection;
pub mod statistics;
mod stop;
mod store;
mod syncs;
mod table;
mod target;
mod wakes;
mod window;

use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// The command: `args` are those after the word `bench`.
///
/// Exit codes: 0 when the run came to its end, whatever it found; 1 when something outside stood in the way, such as a
/// broker that isn't there; 2 for a command line that can't be done; 130 when the user stopped it.
pub fn main(args: Vec<OsString>) -> ExitCode {
    let name = OsString::from("leveret bench");
    let options = match cli::Options::try_parse_from(std::iter::once(name).chain(args)) {
        Ok(options) => options,
        Err(refusal) => {
            // Nobody is left to tell where the terminal is gone.
            let _ = refusal.print();
            return ExitCode::from(u8::try_from(refusal.exit_code()).unwrap_or(2));
        }
    };
    match bench::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("leveret bench: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
