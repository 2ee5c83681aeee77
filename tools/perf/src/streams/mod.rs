//! `leveret stream-perf`: load over RabbitMQ's stream protocol, as a drop-in for stream-perf-test.
//!
//! What never happens here: a message is published before it is due, or counted from later than that; an allocation for each
//! message; a thread for each connection.
//!
//! Reading order: [`options`] makes a [`plan`] of the command line, [`run`] does it. It starts a [`load`]: the streams are made
//! and found on the [`site`] through a blocking client, [`wire`], and an [`opener`] connects everybody. Then each thread's
//! [`driver`] turns its [`link`]s, lets every [`producer`] publish what is due and every [`consumer`] take what came.
//! [`message`] and [`stamp`] are what messages look like, [`in_flight`] what is not confirmed, [`accounts`] whether all came.
//! [`counted`] is told of by [`lines`], the [`summary`] file and the page of [`metrics`].

mod accounts;
mod consumer;
mod counted;
#[cfg(test)]
mod double;
mod driver;
mod in_flight;
mod lines;
mod link;
mod load;
mod message;
mod metrics;
mod opener;
mod options;
mod plan;
mod producer;
mod run;
mod shared;
mod site;
mod stamp;
#[cfg(test)]
mod stories;
mod summary;
#[cfg(test)]
mod trial;
mod wire;

use crate::failure::{Failure, complain};
use crate::subcommand;
use std::process::ExitCode;

/// What picocli ends with if a command line can't be followed.
const WRONG_USAGE: u8 = 2;

/// Runs `leveret stream-perf` with the arguments behind its name.
pub fn main(arguments: &[String]) -> ExitCode {
    let read = options::read(arguments, &|name| std::env::var(name).ok());
    match read {
        Ok((request, notes)) => {
            notes.into_iter().for_each(complain);
            subcommand::execute(Ok(request), run::execute)
        }
        Err(failure) => {
            complain(&failure);
            let is_usage = matches!(failure, Failure::Usage(_));
            if is_usage {
                ExitCode::from(WRONG_USAGE)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}
