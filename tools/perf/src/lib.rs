//! The load generator: a drop-in for PerfTest that tells the truth about latency, and what PerfTest cannot express.
//!
//! What this crate never does: link the broker, decide anything about brokers, keep a message. It speaks `protocol`.
//!
//! Reading order: [`plan`] is what a run is asked to do ([`cli`] makes it from the command line); [`run`] does it: it
//! declares the [`topology`] through a [`client`], starts the [`engine`], samples what was [`measure`]d and hands it to
//! [`report`] and [`exporter`]. [`pace`] says when a message is due, [`message`] what it looks like, [`verify`] whether all
//! came. [`churn`], [`phases`], [`import`] and [`multi`] are other kinds of run, and `streams` is
//! the load over the stream protocol; [`command`] chooses.

pub mod churn;
pub mod cli;
pub mod client;
pub mod clock;
mod command;
pub mod engine;
pub mod exporter;
pub mod failure;
mod http;
mod import;
pub mod instances;
pub mod measure;
pub mod message;
mod multi;
pub mod oauth2;
pub mod pace;
pub mod phases;
pub mod plan;
pub mod report;
pub mod run;
mod streams;
mod subcommand;
pub mod topology;
pub mod uri;
pub mod verify;

pub use command::{main, stream_main};
pub use subcommand::Request;
