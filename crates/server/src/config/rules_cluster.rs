//! What is said about the cluster: its tags, and which nodes it has.

use super::rules::{Checked, boolean};
use super::rules_discovery::Formation;
use super::{Config, Listener, NodeName, Secret, Setting};
use gateway::cluster::ConfiguredNode;
use listener::TlsOptions;
use std::collections::BTreeMap;

/// The cluster that a node should be part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterOptions {
    /// `cluster.listeners.tcp.NAME`: where other nodes dial this one.
    pub listeners: BTreeMap<String, Listener>,
    /// `cluster.secret`: what all nodes know.
    pub secret: Option<Secret>,
    /// `cluster.tls.*`: of links in both directions, if there is a certificate.
    pub tls: TlsOptions,
    /// `cluster_formation.*`: which other nodes there are.
    pub formation: Formation,
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
            formation: Formation::default(),
            takes_queues: true,
            tags: BTreeMap::new(),
            node_tags: BTreeMap::new(),
        }
    }
}

impl ClusterOptions {
    /// Whether a node of this name is to be one of several: others are named, or it listens for others.
    pub fn is_wanted(&self, own: &NodeName) -> bool {
        !self.listeners.is_empty() || self.formation.names_others(&own.to_string())
    }

    /// What a node of this name must not start with: a key, and why not.
    pub fn contradiction(&self, own: &NodeName) -> Option<(&'static str, String)> {
        if !self.takes_queues && self.is_alone() {
            let text = "cluster.takes_queues = false: this node is alone, so nobody would take queues; leave it out, or set \
                        cluster.listeners.tcp or cluster_formation.classic_config.nodes";
            return Some(("cluster.takes_queues", text.to_owned()));
        }
        self.formation.contradiction(&own.to_string())
    }

    /// Nothing is said of other nodes.
    fn is_alone(&self) -> bool {
        self.listeners.is_empty() && !self.formation.names_some()
    }

    /// What is worth a warning.
    pub fn warnings(&self) -> Vec<String> {
        let is_alone = self.is_alone();
        let mut warnings = self.formation.warnings(is_alone);
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
