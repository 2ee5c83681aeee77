//! `leveret bench`: named scenarios against several brokers in turns, and a report that says how they compare.
//!
//! Invariants, as absences: no AMQP here, no broker linked, no load generated; the load is `leveret perf` in a process of
//! its own, so that what is measured and what measures share nothing but the machine.

mod flags;
mod listener;
mod measured;
mod merge;
mod process;
pub mod report;
pub mod results;
mod sampler;
mod scenario;
mod schedule;
mod selection;
pub mod statistics;
mod target;
mod window;
