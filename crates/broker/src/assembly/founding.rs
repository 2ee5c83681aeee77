//! A node becomes one of several: it begins a cluster, or goes on in one.

use crate::broker::Broker;
use crate::broker::shared_catalog::CatalogFollower;
use crate::groups::Identity;
use crate::groups::membership::CATALOG_GROUP;
use crate::options::OpenError;
use crate::recovery::member::{RunningCluster, founders, go_along};
use crate::topology::Sharing;
use cluster::{Groups, MemberId, Settings};
use std::sync::Arc;

impl Broker {
    /// Begins the cluster that this node was opened to begin: its catalog becomes that of a group, which other nodes may join
    /// from then on. Waits until it is. Does nothing on any other node.
    ///
    /// # Errors
    /// There can be no links or no thread, or the node was told to stop.
    pub fn begin_cluster(self: &Arc<Self>) -> Result<(), OpenError> {
        let Some(clustered) = self.founds(None) else {
            return Ok(());
        };
        let me = clustered.file.node;
        let groups = Groups::new(me, clustered.file.starts, Settings::default());
        let groups = self.replicate(groups, clustered.links.clone());
        groups.add_peer(me);
        let follower = CatalogFollower::new(Some(clustered.companion.clone()));
        follower.connect(self);
        let sharing = Sharing {
            groups: groups.clone(),
            links: clustered.catalog_links.clone(),
            identity: Identity {
                group: CATALOG_GROUP,
                me: MemberId::first(me),
                members: founders(),
            },
            peers: Vec::new(),
        };
        let catalog = self.topology().share(sharing, follower.clone());
        let running = go_along(&groups, &catalog, follower, &clustered)?;
        running.say_where(&clustered)?;
        tracing::info!(
            area = "cluster",
            "this node has begun a cluster, which others may join"
        );
        self.at_close(move || drop(running));
        Ok(())
    }

    /// It was opened as one of several.
    pub(super) fn runs(self: &Arc<Self>, running: &RunningCluster) {
        self.set_groups(running.groups.clone());
        running.follower.connect(self);
    }
}
