//! The start of a node that is one of several: its member of the catalog's group, and what exists, as the group knows it.
//!
//! The node has its start recorded by the group before anything of it is restored. That record stands behind everything that an
//! earlier start can have applied, so what exists then explains every journal in the log: one that it does not know was deleted.

use super::replay::Replay;
use crate::broker::shared_catalog::CatalogFollower;
use crate::groups::catalog::SharedCatalog;
use crate::groups::handover::InCharge;
use crate::groups::membership::{CATALOG_GROUP, Clustered, ENDED_PART, Stage, Ticker};
use crate::groups::{Found, Identity, NodeGroups, NotOpened};
use crate::node::Node;
use crate::options::OpenError;
use crate::queues::JournalOf;
use crate::topology::Question;
use catalog::{Answer, Incarnation, Joined, NodeId, Refusal, RefusalKind, Request, View};
use cluster::{Groups, MemberId, Membership, Settings};
use std::sync::Arc;
use std::time::Duration;

/// How long a node stays that was forgotten, and still votes.
const STAYS: Duration = Duration::from_secs(3);

/// How often a node looks whether it votes.
const LOOKS_EVERY: Duration = Duration::from_millis(20);

/// How often a node says that it waits.
const SAYS_EVERY: Duration = Duration::from_secs(10);

/// What a node of several runs.
pub struct RunningCluster {
    pub groups: Arc<NodeGroups>,
    pub catalog: Arc<SharedCatalog>,
    pub follower: Arc<CatalogFollower>,
    /// Ticks for as long as this is there.
    ticker: Ticker,
}

/// Which start of a node opens its data directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opens {
    /// Its own catalog decides.
    Alone,
    /// A group's does.
    Member,
}

/// Finds out by what the log has, and by what the node knows of itself.
///
/// # Errors
/// The two contradict each other.
pub(super) fn opens(
    replay: &mut Replay,
    node: &Node,
    clustered: Option<&Clustered>,
) -> Result<(Opens, Found), OpenError> {
    let found = replay.groups.remove(&CATALOG_GROUP.0);
    let (whose, journal) = (replay.catalog_whose, JournalOf::Catalog.id());
    let in_charge = whose.in_charge(journal, CATALOG_GROUP, found.as_ref(), &node.log);
    let in_charge = in_charge.map_err(|why| not_opened(&why))?;
    let stage = clustered.map(|clustered| clustered.file.stage);
    let opens = match (stage, in_charge) {
        (None, InCharge::Group) => {
            return Err(OpenError::Clustered(
                "the data directory is that of a member of a cluster, and the configuration has nothing of one: set cluster.* and \
                 cluster_formation.*, or reset the node"
                    .to_owned(),
            ));
        }
        (None | Some(Stage::Founds), InCharge::Own(_) | InCharge::Neither) => Opens::Alone,
        (Some(Stage::Joins | Stage::Member), InCharge::Own(_)) => {
            return Err(OpenError::Clustered(
                "the data directory has queues or definitions of its own, which the cluster would not know: reset the node to let it join, or \
                 take cluster_formation.* out of the configuration to run it alone"
                    .to_owned(),
            ));
        }
        (Some(_), _) => Opens::Member,
    };
    Ok((opens, found.unwrap_or_default()))
}

fn not_opened(why: &NotOpened) -> OpenError {
    let why = match why {
        NotOpened::Damaged(damage) => format!("{damage:?}"),
        NotOpened::Unreadable(error) => error.to_string(),
    };
    OpenError::Clustered(format!(
        "this node's copy of the cluster's definitions is not whole ({why}), so it must not vote any more: on another node of the cluster run \
         forget_cluster_node with this one's name, then reset this node and let it join again"
    ))
}

/// Opens the node's member of the catalog's group, and has it speak with the others.
///
/// # Errors
/// It is damaged, or there can be no links.
pub fn begin(node: &Arc<Node>, found: Found, clustered: &Clustered) -> Result<RunningCluster, OpenError> {
    let me = clustered.file.node;
    let groups = Groups::new(me, clustered.file.starts, Settings::default());
    let groups = NodeGroups::new(node.clone(), groups, clustered.links.clone());
    let peers = clustered.file.peers.iter().map(|peer| peer.node);
    peers.clone().chain([me]).for_each(|peer| groups.add_peer(peer));
    let follower = CatalogFollower::new(Some(clustered.companion.clone()));
    let links = clustered.catalog_links.clone();
    let catalog = SharedCatalog::new(groups.clone(), links, follower.clone(), peers);
    let identity = Identity {
        group: CATALOG_GROUP,
        me: MemberId::first(me),
        members: founders(),
    };
    let member = found.open(&groups, identity, (), catalog.act());
    let opened = catalog.opened(member.map_err(|why| not_opened(&why))?);
    opened.map_err(OpenError::Thread)?;
    go_along(&groups, &catalog, follower, clustered)
}

/// Whom the catalog's group began with: the node that founded the cluster.
pub fn founders() -> Membership {
    Membership::of(&[MemberId::first(cluster::NodeId(1))])
}

/// From now on others are spoken with.
///
/// # Errors
/// There can be no links, or no thread.
pub fn go_along(
    groups: &Arc<NodeGroups>,
    catalog: &Arc<SharedCatalog>,
    follower: Arc<CatalogFollower>,
    clustered: &Clustered,
) -> Result<RunningCluster, OpenError> {
    let begun = clustered.companion.begin(groups, catalog);
    begun.map_err(OpenError::Clustered)?;
    let ticker = Ticker::start(groups, catalog, &clustered.companion).map_err(OpenError::Thread)?;
    Ok(RunningCluster {
        groups: groups.clone(),
        catalog: catalog.clone(),
        follower,
        ticker,
    })
}

impl RunningCluster {
    /// Has the group know where this node is.
    ///
    /// # Errors
    /// The node is no member, or was told to give up.
    pub fn say_where(&self, clustered: &Clustered) -> Result<(), OpenError> {
        let joined = Joined {
            port: clustered.port,
            token: clustered.file.token,
        };
        let name = clustered.file.name.as_str().into();
        let answer = self.decide(clustered, &Request::JoinNode { name, joined });
        match answer.inspect_err(|_| self.leave(clustered))? {
            Answer::Joined(node) if node.0 == u64::from(clustered.file.node.0) => Ok(()),
            other => Err(OpenError::Clustered(format!(
                "this is node {} of its cluster by its own file, and the cluster answers {other:?}: reset the node, and let it join again",
                clustered.file.node.0
            ))),
        }
    }

    /// Has the group record this start of the node, and delete what ended with the last one. What exists then.
    ///
    /// # Errors
    /// The node is no member any more, or was told to give up.
    pub fn enter(&self, clustered: &Clustered, takes_queues: bool) -> Result<(Incarnation, View), OpenError> {
        self.say_where(clustered)?;
        let node = NodeId(clustered.file.node.0.into());
        let name = clustered.file.name.as_str().into();
        let start = Request::StartNode {
            node,
            name,
            takes_queues,
        };
        let started = self.decide(clustered, &start)?;
        let Answer::Started(incarnation) = started else {
            return Err(OpenError::Clustered(
                "the cluster does not take the node's start".to_owned(),
            ));
        };
        let at_most = ENDED_PART;
        while self.decide(clustered, &Request::EndTransient { at_most })? == Answer::Cleared(at_most) {}
        self.vote(clustered)?;
        // It was told before the first answer came.
        let view = self.follower.view().unwrap_or_default();
        Ok((incarnation, view))
    }

    /// The node is no member any more: it stays for a moment, since the others may need it to decide that.
    fn leave(&self, clustered: &Clustered) {
        let world = &self.groups.node().world;
        let (me, until) = (MemberId::first(clustered.file.node), world.elapsed() + STAYS);
        let votes = || {
            let status = self.groups.status(CATALOG_GROUP);
            status.is_some_and(|status| status.members.members().any(|member| member == me))
        };
        while votes() && world.elapsed() < until && clustered.companion.waits(0).is_ok() {
            world.pause(LOOKS_EVERY);
        }
    }

    /// Waits until this node's copy counts: whoever has seen it ready may take another node away.
    fn vote(&self, clustered: &Clustered) -> Result<(), OpenError> {
        let me = MemberId::first(clustered.file.node);
        let mut waiting = Waiting::new(self, clustered);
        loop {
            let status = self.groups.status(CATALOG_GROUP);
            if status.is_some_and(|status| status.members.voters.contains(&me)) {
                return Ok(());
            }
            self.groups.node().world.pause(LOOKS_EVERY);
            waiting.goes_on()?;
        }
    }

    /// Asks until there is an answer.
    fn decide(&self, clustered: &Clustered, request: &Request) -> Result<Answer, OpenError> {
        let mut waiting = Waiting::new(self, clustered);
        loop {
            let question = Arc::<Question>::default();
            let asked = question.clone();
            let reply = Box::new(move |said| asked.answer(said));
            self.catalog.ask(request.clone(), reply);
            // Whoever turns the threads has to do so meanwhile, and the other nodes' ones.
            while self.ticker.is_turned() && question.is_open() {
                self.groups.node().world.pause(LOOKS_EVERY);
            }
            match question.wait() {
                Ok(done) => return Ok(done.value),
                Err(refusal) if refusal.kind() != RefusalKind::Internal => return Err(refused(&refusal)),
                Err(_) => {}
            }
            waiting.goes_on()?;
        }
    }

    /// What the node waits for, in words.
    fn standing(&self) -> String {
        let status = self.groups.status(CATALOG_GROUP);
        match status {
            Some(status) if status.leader.is_some() => {
                "the cluster has a leader, and does not answer: this node's copy of the definitions may still be on its way".to_owned()
            }
            Some(status) if status.members.voters.len() > 1 => format!(
                "no majority of the {} nodes that vote can be reached: start the others, or look at the lines about links with them",
                status.members.voters.len()
            ),
            _ => "no node of the cluster can be reached".to_owned(),
        }
    }
}

/// A node that waits for others.
struct Waiting<'a> {
    running: &'a RunningCluster,
    clustered: &'a Clustered,
    begun: Duration,
    said: Duration,
}

impl<'a> Waiting<'a> {
    fn new(running: &'a RunningCluster, clustered: &'a Clustered) -> Self {
        let now = running.groups.node().world.elapsed();
        Self {
            running,
            clustered,
            begun: now,
            said: now,
        }
    }

    /// Says now and then that it waits.
    fn goes_on(&mut self) -> Result<(), OpenError> {
        let now = self.running.groups.node().world.elapsed();
        let seconds = (now - self.begun).as_secs();
        self.clustered.companion.waits(seconds)?;
        if now - self.said >= SAYS_EVERY {
            self.said = now;
            tracing::warn!(
                area = "cluster",
                "waiting for {seconds} s: {}",
                self.running.standing()
            );
        }
        Ok(())
    }
}

fn refused(refusal: &Refusal) -> OpenError {
    let text = format!("the cluster does not take this node: {refusal}");
    match refusal.kind() {
        RefusalKind::NotAllowed => OpenError::NotAMember(text),
        _ => OpenError::Clustered(text),
    }
}
