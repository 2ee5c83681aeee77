//! What is said about the cluster: its tags; and about clusters of several nodes, which this version doesn't have: a
//! node that should be one of several must not pass for the whole.

use super::rules::{Checked, number};
use super::{Config, NodeName, Setting};
use std::collections::BTreeMap;

/// The cluster that a node should be part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterOptions {
    /// `cluster_formation.classic_config.nodes.NUMBER`.
    pub nodes: BTreeMap<String, String>,
    /// `cluster_formation.target_cluster_size_hint`.
    pub target_size: u32,
    /// `cluster_tags.NAME`.
    pub tags: BTreeMap<String, String>,
    /// `node_tags.NAME`.
    pub node_tags: BTreeMap<String, String>,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            nodes: BTreeMap::new(),
            target_size: 1,
            tags: BTreeMap::new(),
            node_tags: BTreeMap::new(),
        }
    }
}

impl ClusterOptions {
    /// What is wrong for a node of this name, if other nodes are named.
    pub fn other_nodes(&self, own: &NodeName) -> Option<String> {
        let own = own.to_string();
        let others: Vec<&str> = self
            .nodes
            .values()
            .map(String::as_str)
            .filter(|name| *name != own)
            .collect();
        let names = others.join(", ");
        (!others.is_empty()).then(|| {
            format!(
                "cluster_formation.classic_config.nodes names other nodes than this one, {own}: {names}; nodes do not join to clusters in this \
                 version, and each would start alone: leave the keys out (or set nodename) to run a single node"
            )
        })
    }
}

pub fn node(config: &mut Config, setting: &Setting) -> Checked {
    let name = match setting.value.contains('@') {
        true => setting.value.clone(),
        false => return Err("the name of a node, such as rabbit@mq1"),
    };
    config.cluster.nodes.insert(setting.key.name().to_owned(), name);
    Ok(())
}

pub fn tag(config: &mut Config, setting: &Setting) -> Checked {
    let (name, value) = (setting.key.name().to_owned(), setting.value.clone());
    config.cluster.tags.insert(name, value);
    Ok(())
}

pub fn node_tag(config: &mut Config, setting: &Setting) -> Checked {
    let (name, value) = (setting.key.name().to_owned(), setting.value.clone());
    config.cluster.node_tags.insert(name, value);
    Ok(())
}

pub fn target_size(config: &mut Config, setting: &Setting) -> Checked {
    config.cluster.target_size = number(setting, 1, 65_535).ok_or("a number from 1 to 65535")?;
    Ok(())
}
