//! A node as one of several: what it knows of itself, who the others are, and who votes about the catalog. See
//! `docs/decisions/0047`.
//!
//! To read: `cluster_file` (what a node knows of itself, on disk), `list` (the catalog's list of nodes, and how the catalog's
//! group follows it), `ticker` (what has a node's groups and its catalog look at the time).

mod admission;
mod cluster_file;
mod list;
mod store;
mod ticker;

pub use admission::{Applicant, NotAdmitted, admit};
pub use cluster_file::{ClusterFile, ClusterFileError, Stage};
pub use list::{Peer, drained, next_steps, peers};
pub use store::ClusterStore;
pub use ticker::Ticker;

use super::catalog::{CatalogLinks, SharedCatalog};
use super::member::Links;
use super::node_groups::NodeGroups;
use crate::options::OpenError;
use cluster::{GroupId, NodeId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The group that the catalog is. No other group has this number.
pub const CATALOG_GROUP: GroupId = GroupId(1);

/// How many of the objects that ended with a run of a node are deleted at a time.
pub const ENDED_PART: usize = 1000;

/// What a node of several has besides its data directory. Whoever opens it brings this.
#[derive(Clone)]
pub struct Clustered {
    /// What the node knows of itself. This start of it is counted already.
    pub file: ClusterFile,
    /// Where other nodes dial it.
    pub port: u16,
    /// The way to the others' groups.
    pub links: Arc<dyn Links>,
    /// The way to the others' catalogs.
    pub catalog_links: Arc<dyn CatalogLinks>,
    /// Who is told what becomes of the node.
    pub companion: Arc<dyn Companion>,
}

impl std::fmt::Debug for Clustered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.file)
    }
}

/// Goes with a node of several: has its links.
pub trait Companion: Send + Sync {
    /// The node's groups are there, and its catalog is one of them: what other nodes say is for these from now on. Once.
    ///
    /// # Errors
    /// There can be no links; the text says why.
    fn begin(&self, groups: &Arc<NodeGroups>, catalog: &Arc<SharedCatalog>) -> Result<(), String>;

    /// These are the members of the cluster from now on, this node among them. Called by one thread at a time.
    fn members(&self, members: &[Peer]);

    /// These nodes are in maintenance from now on, and no others. Called as [`Companion::members`] is.
    fn drained(&self, nodes: &BTreeSet<NodeId>);

    /// A tick of the clock, of which there is one each 100 ms.
    fn tick(&self);

    /// The node waits for others, for so many seconds by now.
    ///
    /// # Errors
    /// It is to give up: [`OpenError::NotAMember`] if they do not know it, otherwise [`OpenError::Clustered`].
    fn waits(&self, seconds: u64) -> Result<(), OpenError>;
}
