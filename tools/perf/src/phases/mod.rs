//! `leveret perf phases`: loads one after the other on the same queues, such as fill, then drain under load.
//!
//! What never happens here: a queue vanishes between phases, a phase ends by counters alone when a depth was asked for (the
//! broker has the last word on its depth).
//!
//! Reading order: [`options`] is the command line, [`script`] the language of a phase; [`course`] runs them, with a
//! [`watch`] that reads a [`gauge`] for the depth; [`outcome`] is what is told of each.

mod course;
mod gauge;
mod options;
mod outcome;
mod script;
mod watch;

use crate::subcommand;
use options::Options;
use std::process::ExitCode;

/// Runs `leveret perf phases` with the arguments behind its name.
pub fn main(arguments: &[String]) -> ExitCode {
    subcommand::execute(Options::read(arguments), |options| {
        course::run(&options, arguments)
    })
}
