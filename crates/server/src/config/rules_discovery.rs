//! `cluster_formation.*`: how a node finds those that it is to be one cluster with.
//!
//! Whoever does not know all of them must be told how many they are: a node that takes a part for the whole would begin a
//! second cluster. See `docs/decisions/0052`.

use super::rules::{Checked, number};
use super::rules_cluster::configured;
use super::{Config, Setting};
use gateway::cluster::{ConfiguredNode, DEFAULT_PORT, Discovery, Found, SeedName, SystemResolver};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The names of each way, RabbitMQ's own first.
const BACKENDS: [(&[&str], Backend); 6] = [
    (
        &[
            "classic_config",
            "classic",
            "rabbit_peer_discovery_classic_config",
        ],
        Backend::Listed,
    ),
    (&["dns", "rabbit_peer_discovery_dns"], Backend::Dns),
    (
        &["k8s", "kubernetes", "rabbit_peer_discovery_k8s"],
        Backend::Kubernetes,
    ),
    (&["aws", "rabbit_peer_discovery_aws"], Backend::Absent("aws")),
    (
        &["consul", "rabbit_peer_discovery_consul"],
        Backend::Absent("consul"),
    ),
    (&["etcd", "rabbit_peer_discovery_etcd"], Backend::Absent("etcd")),
];

/// The key that says how many nodes there are to be.
const HINT: &str = "cluster_formation.target_cluster_size_hint";

/// The key that chooses the way.
const BACKEND: &str = "cluster_formation.peer_discovery_backend";

/// A way to find other nodes: `cluster_formation.peer_discovery_backend`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// They are named.
    #[default]
    Listed,
    /// A name has the addresses of all.
    Dns,
    /// They are the pods of a stateful set, whose names have numbers.
    Kubernetes,
    /// RabbitMQ has it, and this version does not.
    Absent(&'static str),
}

/// What is said about finding other nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Formation {
    pub backend: Backend,
    /// `cluster_formation.classic_config.nodes.NUMBER`.
    pub nodes: BTreeMap<String, ConfiguredNode>,
    /// `cluster_formation.dns.hostname`.
    pub seed_host: Option<String>,
    /// `cluster_formation.k8s.ordinal_start`: the number of the first pod.
    pub first_ordinal: u32,
    /// `cluster_formation.k8s.seed_node`: which node begins the cluster, if it is not the one with the lowest number.
    pub seed_node: Option<String>,
    /// `cluster_formation.k8s.hostname_suffix`: what stands behind the name of a pod in that of its host.
    pub suffix: Option<String>,
    /// `cluster_formation.k8s.service_name`: the same without the dot before it, if no suffix is said.
    pub service: Option<String>,
    /// `cluster_formation.target_cluster_size_hint`.
    pub size_hint: Option<u32>,
}

/// The parts of a node's name around the number of its pod, such as 2 in `rabbit@mq-2.mq-nodes`.
struct Numbered<'a> {
    before: &'a str,
    ordinal: u32,
    behind: &'a str,
}

impl Backend {
    pub fn name(self) -> &'static str {
        match self {
            Self::Listed => "classic_config",
            Self::Dns => "dns",
            Self::Kubernetes => "k8s",
            Self::Absent(name) => name,
        }
    }
}

impl<'a> Numbered<'a> {
    fn read(name: &'a str) -> Option<Self> {
        let (_, host) = name.split_once('@')?;
        let (stem, digits) = host.split('.').next()?.rsplit_once('-')?;
        let is_number =
            digits == "0" || !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
        if stem.is_empty() || !is_number {
            return None;
        }
        let at = name.len() - host.len() + stem.len() + 1;
        Some(Self {
            before: &name[..at],
            ordinal: digits.parse().ok()?,
            behind: &name[at + digits.len()..],
        })
    }

    fn with(&self, ordinal: u32) -> String {
        format!("{}{ordinal}{}", self.before, self.behind)
    }
}

impl Formation {
    /// How many nodes there are to be.
    pub fn target_size(&self) -> u32 {
        self.size_hint.unwrap_or(1)
    }

    /// Whether nodes are found otherwise than by the names that the configuration has.
    pub fn is_found(&self) -> bool {
        matches!(self.backend, Backend::Dns | Backend::Kubernetes)
    }

    /// Whether nodes are to be found, this one or others.
    pub fn names_some(&self) -> bool {
        match self.backend {
            Backend::Listed | Backend::Absent(_) => !self.nodes.is_empty(),
            Backend::Dns | Backend::Kubernetes => self.target_size() > 1,
        }
    }

    /// Whether other nodes than the one of this name are to be found.
    pub fn names_others(&self, own: &str) -> bool {
        match self.backend {
            Backend::Listed | Backend::Absent(_) => self.nodes.values().any(|node| node.name != own),
            Backend::Dns | Backend::Kubernetes => self.names_some(),
        }
    }

    /// The nodes that are named, where that counts.
    pub fn listed(&self) -> impl Iterator<Item = &ConfiguredNode> {
        let counts = !self.is_found();
        self.nodes.values().filter(move |_| counts)
    }

    /// How the node of this name, which others dial at this port, finds them.
    pub fn discovery(&self, own: &str, is_long: bool, port: u16) -> Discovery {
        match (self.backend, &self.seed_host) {
            // It is to be alone until others join it.
            _ if self.is_found() && self.target_size() == 1 => Discovery::Known(Found::default()),
            (Backend::Dns, Some(host)) => {
                let (_, own_host) = own.split_once('@').unwrap_or_default();
                let seed = SeedName {
                    host: host.clone(),
                    own: own.to_owned(),
                    is_long: is_long || own_host.contains('.'),
                    port,
                    size: self.target_size() as usize,
                };
                Discovery::Named(seed, Arc::new(SystemResolver))
            }
            (Backend::Kubernetes, _) => Discovery::Known(self.pods(own, port)),
            _ => Discovery::Known(Found {
                nodes: self.listed().cloned().collect(),
                instead: "or take them out of cluster_formation.classic_config.nodes".to_owned(),
                ..Found::default()
            }),
        }
    }

    /// All pods of the set that the node of this name is of.
    fn pods(&self, own: &str, port: u16) -> Found {
        let Some(numbered) = Numbered::read(own) else {
            return Found {
                lacks: Some(format!("{own} has no number of a pod")),
                ..Found::default()
            };
        };
        let node = |ordinal| ConfiguredNode {
            name: numbered.with(ordinal),
            port: Some(port),
        };
        let first = self.first_ordinal;
        let seed = self.seed_node.clone();
        Found {
            nodes: (first..first.saturating_add(self.target_size()))
                .map(node)
                .collect(),
            founder: Some(seed.unwrap_or_else(|| numbered.with(first))),
            lacks: None,
            is_looked_up: false,
            instead: format!("or set {HINT} to how many there are"),
        }
    }

    /// What the node of this name must not start with: a key, and why not.
    pub fn contradiction(&self, own: &str) -> Option<(&'static str, String)> {
        let said = match self.backend {
            Backend::Listed => return None,
            // What is not known to be alone would pass for the whole.
            Backend::Absent(_) if self.size_hint == Some(1) || self.names_others(own) => return None,
            Backend::Absent(name) => (
                BACKEND,
                format!(
                    "{BACKEND} = {name}: this version can't ask there who the other nodes are; use classic_config and name them in \
                     cluster_formation.classic_config.nodes, or dns or k8s; or set {HINT} = 1 to run a single node"
                ),
            ),
            Backend::Dns if self.size_hint == Some(1) => return None,
            Backend::Dns if self.seed_host.is_none() => (
                BACKEND,
                format!(
                    "{BACKEND} = dns needs cluster_formation.dns.hostname, a name that has the addresses of all nodes"
                ),
            ),
            Backend::Dns if self.size_hint.is_none() => (
                BACKEND,
                format!(
                    "{BACKEND} = dns needs {HINT}, the number of all nodes: as long as some of them have no address yet, those that have \
                     one must not take themselves for the whole"
                ),
            ),
            Backend::Dns => return None,
            Backend::Kubernetes => return self.contradiction_of_pods(own),
        };
        Some(said)
    }

    fn contradiction_of_pods(&self, own: &str) -> Option<(&'static str, String)> {
        let numbered = Numbered::read(own);
        let (first, size) = (self.first_ordinal, self.target_size());
        match (numbered, &self.seed_node) {
            (None, _) if size == 1 => None,
            (None, _) => Some((
                BACKEND,
                format!(
                    "{BACKEND} = k8s: this node is {own}, and the first part of its host's name must end with the number of its pod, as in \
                     rabbit@mq-0.mq-nodes; set RABBITMQ_NODENAME to rabbit@$(MY_POD_NAME).$(K8S_SERVICE_NAME)"
                ),
            )),
            (Some(numbered), _) if numbered.ordinal < first => Some((
                "cluster_formation.k8s.ordinal_start",
                format!(
                    "this node is {own}, and cluster_formation.k8s.ordinal_start = {first}, which has to be the lowest number of a pod"
                ),
            )),
            (Some(numbered), _) if numbered.ordinal > first && size == 1 => Some((
                BACKEND,
                format!(
                    "this node is {own}, so there is to be another one with a lower number, and {HINT} is {}: set it to how many nodes there \
                     are, on all of them",
                    self.size_hint
                        .map_or("not set".to_owned(), |hint| hint.to_string())
                ),
            )),
            (Some(numbered), Some(seed)) if size > 1 => {
                let is_one =
                    (first..first.saturating_add(size)).any(|ordinal| numbered.with(ordinal) == *seed);
                (!is_one).then(|| {
                    let text = format!(
                        "cluster_formation.k8s.seed_node = {seed} is none of the {size} nodes from {} on: give its name as the node has it, or \
                         leave it out, and the one with the lowest number begins the cluster",
                        numbered.with(first)
                    );
                    ("cluster_formation.k8s.seed_node", text)
                })
            }
            _ => None,
        }
    }

    /// What is worth a warning, if the node is alone or is not.
    pub fn warnings(&self, is_alone: bool) -> Vec<String> {
        let mut warnings = Vec::new();
        let name = self.backend.name();
        match self.backend {
            Backend::Listed if self.target_size() > 1 && is_alone => warnings.push(format!(
                "{HINT} is {}, but no other node is named: this node is alone, and the check of the cluster's size fails",
                self.target_size()
            )),
            Backend::Kubernetes if self.size_hint.is_none() && is_alone => warnings.push(format!(
                "{BACKEND} = k8s, and {HINT} is not set: this node is alone. Set it to how many nodes there are to be"
            )),
            _ if self.is_found() && !self.nodes.is_empty() => warnings.push(format!(
                "cluster_formation.classic_config.nodes has no effect, since {BACKEND} is {name}"
            )),
            Backend::Absent(_) => warnings.push(format!(
                "{BACKEND} = {name} is not part of this version: this node is alone unless cluster_formation.classic_config.nodes names others"
            )),
            _ => {}
        }
        warnings
    }
}

impl Config {
    /// A node of a stateful set whose name does not say where it is, is called by its pod, as the others can look it up.
    pub fn name_by_pod(&mut self, pod: Option<&str>) {
        let formation = &self.cluster.formation;
        let is_said = self
            .node_name
            .said
            .as_ref()
            .is_some_and(|said| said.contains('@'));
        let service = formation.service.as_ref().map(|service| format!(".{service}"));
        let Some(suffix) = formation.suffix.clone().or(service) else {
            return;
        };
        if formation.backend == Backend::Kubernetes && !is_said {
            let machine = self.node_name.host.split('.').next().unwrap_or_default();
            self.node_name.host = format!("{}{suffix}", pod.unwrap_or(machine));
            self.node_name.is_long = true;
        }
    }
}

pub fn node(config: &mut Config, setting: &Setting) -> Checked {
    let node = configured(&setting.value);
    let node = node.ok_or("the name of a node, such as rabbit@mq1, or with a port, rabbit@mq1:25672")?;
    let nodes = &mut config.cluster.formation.nodes;
    nodes.insert(setting.key.name().to_owned(), node);
    Ok(())
}

pub fn backend(config: &mut Config, setting: &Setting) -> Checked {
    let is_it = |(names, _): &&(&[&str], Backend)| names.contains(&setting.value.as_str());
    let (_, backend) = BACKENDS.iter().find(is_it).ok_or("classic_config, dns or k8s")?;
    config.cluster.formation.backend = *backend;
    Ok(())
}

/// A name of a host, or what stands behind the first part of one.
fn host(setting: &Setting) -> Checked<String> {
    let value = setting.value.trim_end_matches('.');
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    match !value.is_empty() && value.len() <= 253 && value.chars().all(fits) {
        true => Ok(value.to_owned()),
        false => Err("a name of hosts, such as mq.example.com"),
    }
}

pub fn seed_host(config: &mut Config, setting: &Setting) -> Checked {
    config.cluster.formation.seed_host = Some(host(setting)?);
    Ok(())
}

pub fn suffix(config: &mut Config, setting: &Setting) -> Checked {
    // RabbitMQ 4.0 put it behind the name as it is.
    let suffix = host(setting)?;
    config.cluster.formation.suffix = Some(suffix);
    Ok(())
}

pub fn service(config: &mut Config, setting: &Setting) -> Checked {
    config.cluster.formation.service = Some(host(setting)?);
    Ok(())
}

pub fn first_ordinal(config: &mut Config, setting: &Setting) -> Checked {
    let first = number(setting, 0, 1_000_000);
    config.cluster.formation.first_ordinal =
        first.ok_or("the number of the stateful set's first pod, such as 0")?;
    Ok(())
}

pub fn seed_node(config: &mut Config, setting: &Setting) -> Checked {
    let node = configured(&setting.value).filter(|node| node.port.is_none_or(|port| port == DEFAULT_PORT));
    let node = node.ok_or("the name of a node, such as rabbit@mq-0.mq-nodes")?;
    config.cluster.formation.seed_node = Some(node.name);
    Ok(())
}

pub fn size_hint(config: &mut Config, setting: &Setting) -> Checked {
    let hint = number(setting, 1, 65_535).ok_or("a number from 1 to 65535")?;
    config.cluster.formation.size_hint = Some(hint);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_pods(size: u32) -> Formation {
        Formation {
            backend: Backend::Kubernetes,
            size_hint: Some(size),
            ..Formation::default()
        }
    }

    fn pods(formation: &Formation, own: &str) -> (Vec<String>, String) {
        let found = formation.discovery(own, false, DEFAULT_PORT).find();
        let names = found.nodes.into_iter().map(|node| node.name).collect();
        (names, found.founder.unwrap())
    }

    #[test]
    fn pods_are_found_by_their_numbers_and_the_lowest_begins() {
        let (names, founder) = pods(&of_pods(3), "rabbit@shop-mq-2.nodes.ns");
        assert_eq!(
            names,
            [
                "rabbit@shop-mq-0.nodes.ns",
                "rabbit@shop-mq-1.nodes.ns",
                "rabbit@shop-mq-2.nodes.ns"
            ]
        );
        assert_eq!(founder, names[0]);
        let from_nine = Formation {
            first_ordinal: 9,
            ..of_pods(2)
        };
        let (names, founder) = pods(&from_nine, "rabbit@mq-10");
        assert_eq!(
            (names[0].as_str(), founder.as_str()),
            ("rabbit@mq-9", "rabbit@mq-9")
        );
        let seed = Formation {
            seed_node: Some("rabbit@mq-1".to_owned()),
            ..of_pods(2)
        };
        assert_eq!(pods(&seed, "rabbit@mq-0").1, "rabbit@mq-1");
        assert_eq!(seed.contradiction("rabbit@mq-0"), None);
        assert_eq!(
            seed.contradiction("rabbit@mq-0.x").unwrap().0,
            "cluster_formation.k8s.seed_node"
        );
    }

    #[test]
    fn a_pod_that_does_not_know_the_others_does_not_pass_for_the_whole() {
        let why = |formation: &Formation, own| formation.contradiction(own).map(|(_, text)| text);
        let unsaid = Formation {
            size_hint: None,
            ..of_pods(1)
        };
        assert_eq!(why(&unsaid, "rabbit@mq-0"), None, "there may be one");
        assert!(!unsaid.names_others("rabbit@mq-0"));
        assert!(
            why(&unsaid, "rabbit@mq-1")
                .unwrap()
                .contains("target_cluster_size_hint is not set")
        );
        assert!(why(&of_pods(1), "rabbit@mq-1").unwrap().contains("hint is 1"));
        assert_eq!(why(&of_pods(3), "rabbit@mq-3.x"), None, "it joins the others");
        for nameless in [
            "rabbit@mq",
            "rabbit@mq-",
            "rabbit@mq-01",
            "rabbit@-1",
            "rabbit@mq-x",
            "rabbit@mq.a-1",
        ] {
            assert!(
                why(&of_pods(3), nameless).unwrap().contains("number of its pod"),
                "{nameless}"
            );
        }
        let from_one = Formation {
            first_ordinal: 1,
            ..of_pods(3)
        };
        assert!(
            why(&from_one, "rabbit@mq-0")
                .unwrap()
                .contains("ordinal_start = 1")
        );
    }

    #[test]
    fn a_look_up_needs_a_name_and_how_many_there_are() {
        let dns = |hint, host: Option<&str>| Formation {
            backend: Backend::Dns,
            size_hint: hint,
            seed_host: host.map(str::to_owned),
            ..Formation::default()
        };
        let why = |formation: Formation| formation.contradiction("rabbit@a").map(|(_, text)| text);
        assert!(why(dns(Some(3), None)).unwrap().contains("dns.hostname"));
        assert!(
            why(dns(None, Some("mq")))
                .unwrap()
                .contains("target_cluster_size_hint")
        );
        assert_eq!(why(dns(Some(3), Some("mq"))), None);
        assert_eq!(why(dns(Some(1), None)), None, "it is alone");
        let Discovery::Named(seed, _) = dns(Some(3), Some("mq")).discovery("hare@a.example", false, 7) else {
            panic!("it is looked up");
        };
        assert_eq!(
            (seed.host.as_str(), seed.is_long, seed.port, seed.size),
            ("mq", true, 7, 3)
        );
        let Discovery::Known(alone) = dns(Some(1), Some("mq")).discovery("hare@a.example", false, 7) else {
            panic!("nobody is looked up for a node that is alone");
        };
        assert!(alone.is_begun_by("hare@a.example"));
    }
}
