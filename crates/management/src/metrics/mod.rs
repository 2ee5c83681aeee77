//! The page that Prometheus reads, under RabbitMQ's names.

mod bindings;
mod cluster;
mod collect;
mod family;
mod links;
mod listening;
mod memory;
mod node;
mod objects;
mod ours;
mod page;
mod pages;
mod raft;
mod sums;

pub use collect::Identity;
pub use listening::{Metrics, MetricsOptions};
