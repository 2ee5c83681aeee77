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

mod message;
mod options;
mod plan;
mod site;
mod stamp;
#[cfg(test)]
mod trial;
mod wire;
