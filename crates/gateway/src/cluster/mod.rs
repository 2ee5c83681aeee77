//! This node as one of several: how it comes to its cluster, and what other nodes say to it.
//!
//! To read: `admission` (what a node asks that is no member, and what it is answered), `discovery` (who is to be in the cluster),
//! `forming` (the first start: the node begins a cluster or is let into one), [`Cluster`] (from then on), `questions` (what
//! operators ask one node about all). What may go wrong between two steps stands in `docs/decisions/0047` and `0052`.

mod admission;
mod discovery;
mod forming;
mod node;
mod questions;

pub use admission::{Answer, Question, Welcome};
pub use discovery::{Discovery, Found, Resolver, SeedName, SystemResolver};
pub use forming::{Forming, form};
pub use node::Cluster;
pub use questions::Answerer;

pub use crate::link::host_of;

/// A node that the configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredNode {
    /// Its name, such as `rabbit@n1`.
    pub name: String,
    /// Where it is dialled, at the host that its name ends with, if the configuration says so.
    pub port: Option<u16>,
}

/// Where nodes are dialled for which nothing else is said, as RabbitMQ's.
pub const DEFAULT_PORT: u16 = 25_672;
