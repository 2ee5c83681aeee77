//! Tests of the fifo machine: stories that a RabbitMQ user can read, and properties against naive models.

#![allow(
    clippy::unwrap_used,
    reason = "a test that finds nothing where something must be has failed"
)]

mod careful;
mod duplicates;
mod elsewhere;
mod handover;
mod heads;
mod lane_limits;
mod lanes;
mod mixed;
mod mortality;
mod properties;
mod replicated;
mod stories;
mod succession;
mod world;
