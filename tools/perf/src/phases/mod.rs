//! `leveret perf phases`: loads one after the other on the same queues, such as fill, then drain under load.
//!
//! What never happens here: a queue vanishes between phases, a phase ends by counters alone when a depth was asked for (the
//! broker has the last word on its depth).
//!
//! Reading order: [`options`] is the command line, [`script`] the language of a phase; [`course`] runs them, with a [`watch`] that reads a
//! [`gauge`] for the depth; [`outcome`] is what is told of each.

mod course;
mod gauge;
mod options;
mod outcome;
mod script;
mod watch;

use crate::failure::complain;
use options::{HELP, Options};
use std::io::Write;
use std::process::ExitCode;

/// Runs `leveret perf phases` with the arguments behind its name.
pub fn main(arguments: Vec<String>) -> ExitCode {
    let done = match Options::read(&arguments) {
        Ok(Some(options)) => course::run(&options, &arguments),
        Ok(None) => {
            // Whoever reads may stop reading.
            let _ = std::io::stdout().write_all(HELP.as_bytes());
            return ExitCode::SUCCESS;
        }
        Err(failure) => Err(failure),
    };
    done.unwrap_or_else(|failure| {
        complain(&failure);
        ExitCode::FAILURE
    })
}
