//! What is said about the cluster: its tags, and which nodes it has.

use super::rules::{Checked, boolean, number};
use super::{Config, Listener, NodeName, Secret, Setting};
use gateway::cluster::ConfiguredNode;
use listener::TlsOptions;
use std::collections::BTreeMap;

/// The names of the one way to find other nodes that there is.
const BACKENDS: [&str; 2] = ["classic_config", "rabbit_peer_discovery_classic_config"];

/// The cluster that a node should be part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterOptions {
    /// `cluster.listeners.tcp.NAME`: where other nodes dial this one.
    pub listeners: BTreeMap<String, Listener>,
    /// `cluster.secret`: what all nodes know.
    pub secret: Option<Secret>,
    /// `cluster.tls.*`: of links in both directions, if there is a certificate.
    pub tls: TlsOptions,
    /// `cluster_formation.classic_config.nodes.NUMBER`.
    pub nodes: BTreeMap<String, ConfiguredNode>,
    /// `cluster_formation.peer_discovery_backend`, if it is one that is not built.
    pub other_backend: Option<String>,
    /// `cluster_formation.target_cluster_size_hint`.
    pub target_size: u32,
    /// `cluster.takes_queues`: new queues get their home here, too.
    pub takes_queues: bool,
    /// `cluster_tags.NAME`.
    pub tags: BTreeMap<String, String>,
    /// `node_tags.NAME`.
    pub node_tags: BTreeMap<String, String>,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            listeners: BTreeMap::new(),
            secret: None,
            tls: TlsOptions::new("cluster.tls"),
            nodes: BTreeMap::new(),
            other_backend: None,
            target_size: 1,
            takes_queues: true,
            tags: BTreeMap::new(),
            node_tags: BTreeMap::new(),
        }
    }
}

impl ClusterOptions {
    /// Whether a node of this name is to be one of several: others are named, or it listens for others.
    pub fn is_wanted(&self, own: &NodeName) -> bool {
        let own = own.to_string();
        !self.listeners.is_empty() || self.nodes.values().any(|node| node.name != own)
    }

    /// What a node must not start with: a key, and why not.
    pub fn contradiction(&self) -> Option<(&'static str, String)> {
        if !self.takes_queues && self.listeners.is_empty() && self.nodes.is_empty() {
            let text = "cluster.takes_queues = false: this node is alone, so nobody would take queues; leave it out, or set \
                        cluster.listeners.tcp or cluster_formation.classic_config.nodes";
            return Some(("cluster.takes_queues", text.to_owned()));
        }
        // It would pass for the whole, and should be one of several.
        let backend = self.other_backend.as_ref().filter(|_| self.target_size > 1)?;
        let text = format!(
            "cluster_formation.peer_discovery_backend = {backend}: this version finds other nodes by classic_config alone, and {} nodes are expected; \
             name them in cluster_formation.classic_config.nodes, or leave cluster_formation.* out to run a single node",
            self.target_size
        );
        Some(("cluster_formation.peer_discovery_backend", text))
    }

    /// What is worth a warning.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let is_alone = self.listeners.is_empty() && self.nodes.is_empty();
        if self.target_size > 1 && is_alone {
            warnings.push(format!(
                "cluster_formation.target_cluster_size_hint is {}, but no other node is named: this node is alone, and the check of the cluster's \
                 size fails",
                self.target_size
            ));
        }
        if let Some(backend) = &self.other_backend {
            warnings.push(format!(
                "cluster_formation.peer_discovery_backend = {backend} is not part of this version: this node is alone unless \
                 cluster_formation.classic_config.nodes names others"
            ));
        }
        if is_alone && (self.secret.is_some() || self.tls.certificate.is_some()) {
            let text = "cluster.secret and cluster.tls.* have no effect without cluster.listeners.tcp or cluster_formation.classic_config.nodes";
            warnings.push(text.to_owned());
        }
        warnings
    }
}

/// Reads `rabbit@mq1` and `rabbit@mq1:25672`.
pub fn configured(text: &str) -> Option<ConfiguredNode> {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, digits)) => (name, Some(digits.parse().ok().filter(|port| *port > 0)?)),
        None => (text, None),
    };
    let is_name = |part: &str| {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        !part.is_empty() && part.chars().all(fits)
    };
    let (first, host) = name.split_once('@')?;
    let name = name.to_owned();
    (is_name(first) && is_name(host)).then_some(ConfiguredNode { name, port })
}

pub fn node(config: &mut Config, setting: &Setting) -> Checked {
    let node = configured(&setting.value);
    let node = node.ok_or("the name of a node, such as rabbit@mq1, or with a port, rabbit@mq1:25672")?;
    config.cluster.nodes.insert(setting.key.name().to_owned(), node);
    Ok(())
}

pub fn backend(config: &mut Config, setting: &Setting) -> Checked {
    let is_ours = BACKENDS.contains(&setting.value.as_str());
    config.cluster.other_backend = (!is_ours).then(|| setting.value.clone());
    Ok(())
}

pub fn listener(config: &mut Config, setting: &Setting) -> Checked {
    let listener = Listener::parse(&setting.value);
    let listener = listener.ok_or("a port, or an IP address and a port, such as 127.0.0.1:25672")?;
    let name = setting.key.name().to_owned();
    config.cluster.listeners.insert(name, listener);
    Ok(())
}

pub fn takes_queues(config: &mut Config, setting: &Setting) -> Checked {
    config.cluster.takes_queues = boolean(setting)?;
    Ok(())
}

pub fn secret(config: &mut Config, setting: &Setting) -> Checked {
    if setting.value.is_empty() {
        return Err("some text that all nodes of the cluster know and nobody else, better long and random");
    }
    config.cluster.secret = Some(Secret(setting.value.clone()));
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
