//! A whole node in one thread: its log, segments, pager, clock, dead letters and monitor are turned step by step in an
//! order that a seed decides, on a disk in memory that loses what was not synced, while clients that the same seed
//! decides publish, consume, acknowledge, declare and delete. It is killed, loses its power, and is started again;
//! after each start the invariants are looked at.
//!
//! What never happens here: a real clock, a real file, two threads that run at a time, a random number that the seed does not
//! give. So a seed that fails fails again exactly.
//!
//! Reading order: [`world`] (the surroundings of the node), [`run`] (what a seed does), `faults`, `client`, [`ledger`]
//! (what the clients know), `terms` and `routes` (what queues and exchanges permit), `invariants` (what must hold),
//! `mutant` (how it is known that they see anything), [`coverage`]
//! (what the seeds reached).

pub mod anywhere;
mod aside;
pub mod brokers;
pub mod catalog;
mod changes;
mod client;
pub mod cluster;
pub mod coverage;
mod faults;
pub mod handover;
mod invariants;
pub mod ledger;
mod life;
mod mutant;
mod power_cut;
mod routes;
pub mod run;
mod terms;
pub mod world;

pub use life::options;
pub use mutant::Mutant;
pub use run::{Outcome, run, run_mutant, run_told};
