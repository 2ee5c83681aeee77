//! A node that has groups and nothing else: for tests and measurements.

use super::node_groups::{Links, NodeGroups};
use crate::node::journal::NodeLog;
use crate::node::pager::{Pager, StoreFiles};
use crate::node::{LogEvents, Node};
use crate::options::OpenError;
use bytes::Bytes;
use cluster::{Groups, NodeId, Settings};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use storage::{Kind, Log, LogOptions, SegmentOptions, Segments, World};

/// A node that has groups and nothing else.
pub struct Alone {
    /// Its log, and what else hosts share.
    pub node: Arc<Node>,
    /// Its groups; none of them is open.
    pub groups: Arc<NodeGroups>,
    /// What its log has of groups, by their numbers.
    pub found: BTreeMap<u64, Vec<Found>>,
}

/// A record that the log has of a group.
pub enum Found {
    /// An entry.
    Entry(Bytes),
    /// What the member promised.
    Promise(Vec<u8>),
}

/// Opens the node `id` in `dir`.
///
/// # Errors
/// The files can't be opened, or a thread cannot be started.
pub fn open(
    world: Arc<dyn World>,
    dir: &Path,
    options: LogOptions,
    id: NodeId,
    incarnation: u64,
    settings: Settings,
    links: Arc<dyn Links>,
) -> Result<Alone, OpenError> {
    let events = LogEvents::default();
    let mut found: BTreeMap<u64, Vec<Found>> = BTreeMap::new();
    let log_dir = dir.join("log");
    let log = Log::open(
        world.clone(),
        &log_dir,
        options,
        events.clone(),
        &mut |journal, _, payload| {
            let record = match journal.kind {
                Kind::GROUP => Found::Entry(Bytes::copy_from_slice(payload)),
                _ => Found::Promise(payload.to_vec()),
            };
            found.entry(journal.number).or_default().push(record);
        },
    )
    .map_err(OpenError::Storage)?;
    let log = Arc::new(NodeLog::new(log, events.promises()));
    let segments = Segments::open(world.files(), &dir.join("segments"), SegmentOptions::default());
    let segments = Arc::new(segments.map_err(OpenError::Storage)?);
    let files = StoreFiles {
        world: world.clone(),
        log: log.clone(),
        segments: segments.clone(),
    };
    let pager = Pager::start(files).map_err(OpenError::Thread)?;
    let node = Node::new(world, log, segments, pager);
    events.belong_to(&node);
    let groups = NodeGroups::new(node.clone(), Groups::new(id, incarnation, settings), links);
    Ok(Alone { node, groups, found })
}
