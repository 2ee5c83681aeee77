//! The page that Prometheus reads, under RabbitMQ's names.

mod bindings;
mod collect;
mod door;
mod family;
mod memory;
mod node;
mod ours;
mod page;
mod pages;

pub use collect::Identity;
pub use door::{Metrics, MetricsOptions};
