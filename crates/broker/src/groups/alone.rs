//! A node that has groups and nothing else: for tests and measurements.

use super::handover;
use super::hosted::{Act, Hosted};
use super::member::Links;
use super::node_groups::NodeGroups;
use super::refounding::last_of;
use super::replicated::Replicated;
use super::start::{Found, Identity, NotOpened};
use super::starting::read_together;
use crate::node::journal::NodeLog;
use crate::node::pager::{Pager, StoreFiles};
use crate::node::streams::StreamFolder;
use crate::node::{LogEvents, LogFollower, Node};
use crate::options::OpenError;
use cluster::{Damage, GroupId, Groups, NodeId, Settings};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Weak};
use storage::{JournalId, Kind, Log, LogOptions, Position, SegmentOptions, Segments, StorageError, World};

/// A node that has groups and nothing else.
pub struct Alone {
    /// Its log, and what else hosts share.
    pub node: Arc<Node>,
    /// Its groups.
    pub groups: Arc<NodeGroups>,
    /// What its log has of groups that are not open, by their numbers.
    found: BTreeMap<u64, Found>,
    /// Groups of which the log has forgotten what it had.
    forgotten: BTreeSet<u64>,
    /// What it has of queues that are this node's alone: whose, where, and the record.
    pub queues: Vec<(JournalId, Position, Vec<u8>)>,
}

/// Opens the node `id` in `dir`. Next its members are opened, each with [`Alone::member`], and then [`Alone::sweep`] is called.
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
    let mut found: BTreeMap<u64, Found> = BTreeMap::new();
    let mut queues = Vec::new();
    let log_dir = dir.join("log");
    let log = Log::open(
        world.clone(),
        &log_dir,
        options,
        events.clone(),
        &mut |journal, position, payload| match journal.kind {
            Kind::QUEUE => queues.push((journal, position, payload.to_vec())),
            kind => {
                let of_group = found.entry(journal.number).or_default();
                of_group.take(kind, position, payload);
            }
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
    let streams = StreamFolder::new(world.clone(), dir.join("streams"));
    let node = Node::new(world, log, segments, pager, streams);
    events.belong_to(&node);
    let groups = NodeGroups::new(node.clone(), Groups::new(id, incarnation, settings), links);
    let follower: Arc<dyn LogFollower> = groups.clone();
    let follower: Weak<dyn LogFollower> = Arc::downgrade(&follower);
    node.is_followed_by(follower);
    Ok(Alone {
        node,
        groups,
        found,
        forgotten: BTreeSet::new(),
        queues,
    })
}

impl Alone {
    /// Opens a member, new or as the log has it. For several, [`Alone::members`] reads the log once.
    ///
    /// # Errors
    /// It is damaged.
    pub fn member<M>(
        &mut self,
        identity: Identity,
        settings: M::Settings,
        act: Act<M::Effect>,
    ) -> Result<Arc<Hosted<M>>, NotOpened>
    where
        M: Replicated,
    {
        let opened = self.members(vec![(identity, settings, act)]).pop();
        opened.unwrap_or(Err(NotOpened::Damaged(Damage::Open)))
    }

    /// Opens members, in their order: for all of them the log is read once. Those that are damaged are not opened.
    pub fn members<M>(
        &mut self,
        members: Vec<(Identity, M::Settings, Act<M::Effect>)>,
    ) -> Vec<Result<Arc<Hosted<M>>, NotOpened>>
    where
        M: Replicated,
    {
        let (mut starting, mut acts) = (Vec::new(), Vec::new());
        for (identity, settings, act) in members {
            let group = identity.group;
            let found = match self.forgotten.contains(&group.0) {
                true => Found::of_another(),
                false => self.found.remove(&group.0).unwrap_or_default(),
            };
            starting.push(found.begin(&self.groups, identity, settings));
            acts.push((group, act));
        }
        read_together(&self.node.log, &mut starting);
        let opened = starting.into_iter().zip(acts).map(|(starting, (group, act))| {
            let opened = starting.and_then(|starting| starting.finish(act));
            opened.inspect_err(|why| {
                tracing::error!(
                    area = "groups",
                    "{group:?}: this node's member is damaged: {why:?}"
                );
            })
        });
        opened.collect()
    }

    /// The group goes on as this one, with what this node has of it alone: see [`last_of`].
    ///
    /// # Errors
    /// What it has is damaged.
    pub fn refound(&mut self, from: GroupId, identity: &Identity) -> Result<(), NotOpened> {
        let numbers = [from.0, identity.group.0];
        let found = numbers
            .iter()
            .filter_map(|it| Some((*it, self.found.remove(it)?)));
        let mut found: BTreeMap<u64, Found> = found.collect();
        let (begun, _) = last_of(&self.node.log, identity, &mut found)?;
        found
            .into_keys()
            .for_each(|it| handover::forget(&self.groups, GroupId(it), None));
        self.found.insert(identity.group.0, begun);
        Ok(())
    }

    /// The log has this of a group by now.
    pub fn found_now(&mut self, group: GroupId, found: Found) {
        self.found.insert(group.0, found);
    }

    /// What the log has of a group that is not open.
    pub fn found(&self, group: GroupId) -> Option<&Found> {
        self.found.get(&group.0)
    }

    /// The log forgets what it has of a group: this node has no member of it. Its segments go with [`Alone::sweep`]. If it
    /// becomes one later, it is another one than before.
    pub fn forget(&mut self, group: GroupId) {
        if self.found.remove(&group.0).is_some() {
            self.forgotten.insert(group.0);
            handover::forget(&self.groups, group, None);
        }
    }

    /// The member of a group is damaged ([`NotOpened`], [`Hosted::is_damaged`]) and given up, see [`handover::renounce`]. What is
    /// opened next is another member. The segments of a member that was not opened go with [`Alone::sweep`].
    pub fn renounce(&mut self, group: GroupId, segments: Option<JournalId>) {
        self.found.remove(&group.0);
        self.forgotten.insert(group.0);
        handover::renounce(&self.groups, group, segments);
    }

    /// The numbers of groups that the log has and that are not open.
    pub fn unopened(&self) -> impl Iterator<Item = u64> {
        self.found.keys().copied()
    }

    /// All members are open: what else the segments hold is needed no more.
    ///
    /// # Errors
    /// A file can't be deleted.
    pub fn sweep(&self) -> Result<(), StorageError> {
        self.node.segments.sweep(&|_| None).map(drop)
    }
}

impl LogFollower for NodeGroups {
    /// A tick sees that.
    fn log_failed(&self) {}

    fn log_stalled(&self, _: bool) {}

    fn checkpoint(self: Arc<Self>, journals: Vec<JournalId>, before: Position) {
        self.reclaim(&journals, before);
    }
}
