//! `leveret perf churn`: how long single operations take, which no load of messages can express.
//!
//! What never happens here: a latency that leaves out waiting. A turn that was due while all workers were busy counts from
//! the moment it was due.
//!
//! Reading order: [`options`] is what was asked for, [`what`] the kinds of churn. A [`course`] runs from beginning to end: each
//! [`worker`] has a thread and a connection, takes its [`turns`], one by one or as a [`group`], makes and deletes
//! things on the [`site`] and counts in a [`results`]; a [`background`] publishes beside. [`lines`] is how it is told,
//! [`screen`] where.

mod background;
mod course;
pub(crate) mod footprint;
mod group;
pub(crate) mod lines;
mod options;
mod pool;
mod publisher;
mod results;
pub(crate) mod screen;
mod site;
mod turns;
mod what;
pub(crate) mod words;
mod worker;

use crate::subcommand;
use options::Options;
use std::process::ExitCode;

/// Runs `leveret perf churn` with the arguments behind its name.
pub fn main(arguments: &[String]) -> ExitCode {
    subcommand::execute(Options::read(arguments), |options| {
        course::run(options, arguments)
    })
}
