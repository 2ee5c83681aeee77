//! Definitions of a cluster: they are imported by one of its nodes, once it has as many members as there are to be.
//!
//! Every node that has definitions tries, when it starts or when the cluster has grown. An import leaves its mark with what it
//! made, in one change, so the second one finds that there is nothing to do. What is too long for one change is made in parts,
//! and the mark is the last thing: if the node dies in between, the next one that starts imports all of it again.

use super::definitions::load;
use crate::config::Config;
use broker::Broker;
use gateway::cluster::Cluster;
use std::error::Error;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// An import that waits for more members.
pub struct Awaited(JoinHandle<()>);

impl Awaited {
    /// Waits until it is over, which it is soon after the cluster was stopped.
    pub fn end(self) {
        if self.0.join().is_err() {
            tracing::error!(area = "boot", "the import of definitions ended unexpectedly");
        }
    }
}

/// Has the node's definitions imported: now, or as soon as the cluster has enough members. In that case the node starts without.
///
/// # Errors
/// They can't be imported, and the cluster has none yet.
pub fn import(
    config: &Config,
    broker: &Arc<Broker>,
    cluster: &Arc<Cluster>,
) -> Result<Option<Awaited>, Box<dyn Error>> {
    if config.definitions.is_empty() {
        return Ok(None);
    }
    let wanted = config.cluster.formation.target_size() as usize;
    let there = cluster.members().len();
    if there >= wanted {
        let imported = now(config, broker);
        let has_some = management::imported_mark(&broker.view()).is_some();
        return match imported {
            // A cluster that serves does not do with a node less because somebody has broken a file.
            Err(error) if has_some => {
                let text = "the definitions are not imported, and what was imported before stays";
                tracing::error!(area = "boot", "{text}: {error}");
                Ok(None)
            }
            imported => imported.map(|()| None),
        };
    }
    tracing::info!(
        area = "boot",
        "the definitions are imported once the cluster has {wanted} members (cluster_formation.target_cluster_size_hint); it has {there}"
    );
    let (config, broker, cluster) = (config.clone(), broker.clone(), cluster.clone());
    let waiting = move || {
        if !cluster.reaches(wanted) {
            return;
        }
        if let Err(error) = now(&config, &broker) {
            tracing::error!(
                area = "boot",
                "the definitions are not imported; correct that and start this node again: {error}"
            );
        }
    };
    let thread = thread::Builder::new().name("definitions".to_owned());
    Ok(Some(Awaited(thread.spawn(waiting)?)))
}

/// Imports them, and makes what a new broker has and they do not.
fn now(config: &Config, broker: &Broker) -> Result<(), Box<dyn Error>> {
    load(broker, &config.definitions)?;
    broker.create_defaults()?;
    broker.declare_event_exchange()?;
    if config.log.exchange {
        broker.declare_log_exchange()?;
    }
    Ok(())
}
