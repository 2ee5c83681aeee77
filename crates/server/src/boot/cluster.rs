//! The node as one of several, if the configuration says so: what it forms its cluster with, and goes on in it.

use super::broker_options;
use super::endpoints::Endpoints;
use crate::config::{Config, rules_cluster};
use broker::groups::NodeId;
use broker::groups::membership::{ClusterFile, ClusterStore, Peer, Stage};
use broker::{Broker, OpenError};
use gateway::cluster::{Cluster, ConfiguredNode, DEFAULT_PORT, Discovery, Forming, Found, form};
use gateway::link::{Lane, LinkOptions, PeerStatus, Secret};
use management::{Leads, LinkFigures, Member, Members};
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the others may take to forget a node that is reset. Whoever asks for that waits no longer than 30 s.
const LEAVES_WITHIN: Duration = Duration::from_secs(20);

/// What RabbitMQ keeps its secret in, in the data directory or the user's home.
const COOKIE: &str = ".erlang.cookie";

/// The node's side of its cluster, for which it may wait for other nodes; `None` on a node that is alone. `goes_on` turns false
/// once the process is to end.
///
/// # Errors
/// Something is missing in the configuration, or the node can't be let in; the text says what to do.
pub fn open(
    config: &Config,
    endpoints: &Endpoints,
    goes_on: impl Fn() -> bool + Send + Sync + 'static,
) -> Result<Option<Arc<Cluster>>, Box<dyn Error>> {
    let name = config.node_name.to_string();
    let store = ClusterStore::of(&broker_options(config));
    let known = store.read()?;
    if !config.cluster.is_wanted(&config.node_name) {
        return match known.filter(|file| file.stage != Stage::Asks) {
            Some(file) => Err(format!(
                "the data directory is that of {}, a member of a cluster, and the configuration has nothing of one: set cluster.* and \
                 cluster_formation.* as they were, or cluster.listeners.tcp.default for its only member, or reset the node",
                file.name
            )
            .into()),
            None => Ok(None),
        };
    }
    let secret = secret(config)?;
    let is_certified = secret.is_none();
    let mut options = LinkOptions::new(&name, 1, secret.unwrap_or_else(Secret::none));
    options.is_certified = is_certified;
    options.endpoints = endpoints.of(&[gateway::link::PROTOCOL]);
    options.tls = endpoints.cluster_tls.clone();
    options.sockets = config.tcp.clone();
    let ports = options.endpoints.iter().filter_map(|it| it.address.network());
    let port = ports.map(|address| address.port()).next().unwrap_or(DEFAULT_PORT);
    let formation = &config.cluster.formation;
    let mut file = match known {
        Some(file) => file,
        None => store.begin(&name)?,
    };
    if file.stage == Stage::Asks {
        // Whom an operator has named, or else the configuration.
        let named = file.peers.iter().map(|peer| ConfiguredNode {
            name: peer.name.clone(),
            port: Some(peer.port),
        });
        let named: Vec<_> = named.collect();
        let discovery = match named.is_empty() {
            true => formation.discovery(&name, config.node_name.is_long, port),
            false => Discovery::Known(Found {
                nodes: named,
                ..Found::default()
            }),
        };
        let forming = Forming {
            options: options.clone(),
            store: &store,
            port,
            discovery: &discovery,
            has_data: store.has_log()?,
            goes_on: &goes_on,
        };
        file = form(&forming, file)?;
    }
    store.start(&mut file, &name)?;
    tracing::info!(area = "cluster", "this is {file:?}");
    let nodes = formation.listed().cloned().collect();
    Ok(Some(Cluster::new(options, port, (store, file), nodes, goes_on)))
}

/// The next start is to ask this node, `rabbit@n1` or `rabbit@n1:25672`, to be let into its cluster.
///
/// # Errors
/// It can't be; the text says what to do.
pub fn join(config: &Config, whom: &str) -> Result<(), String> {
    let node = rules_cluster::configured(whom)
        .ok_or("the name of a node is like rabbit@n1, or with a port rabbit@n1:25672")?;
    if !config.cluster.is_wanted(&config.node_name) {
        return Err("this node does not listen for other nodes: set cluster.listeners.tcp.default and cluster.secret first".to_owned());
    }
    let own = config.node_name.to_string();
    if node.name == own {
        return Err("cannot cluster node with itself".to_owned());
    }
    let named = config.cluster.formation.listed().find(|it| it.name == node.name);
    let port = node.port.or(named.and_then(|it| it.port)).unwrap_or(DEFAULT_PORT);
    let name = node.name;
    let whom = Peer {
        node: NodeId(0),
        name,
        port,
    };
    let store = ClusterStore::of(&broker_options(config));
    store.join(&own, whom).map_err(|error| error.to_string())
}

/// Has the other members of the node's cluster forget it, if there are any: it takes part meanwhile, without clients, since the
/// others may be too few to decide that. The node must not run.
///
/// # Errors
/// Nobody decides, or the node can't take part; the text says what to do.
pub fn leave(config: &Config, goes_on: impl Fn() -> bool + Send + Sync + 'static) -> Result<(), String> {
    let left = take_leave(config, goes_on);
    left.map_err(|error| {
        format!(
            "the cluster can't be asked to forget this node: {error}. Start its other nodes and try again; or use force_reset here, and \
             forget_cluster_node {} on one of them",
            config.node_name
        )
    })
}

fn take_leave(
    config: &Config,
    goes_on: impl Fn() -> bool + Send + Sync + 'static,
) -> Result<(), Box<dyn Error>> {
    let known = ClusterStore::of(&broker_options(config)).read()?;
    let others = |file: &ClusterFile| file.peers.iter().any(|peer| peer.node != file.node);
    if !known.is_some_and(|file| file.stage != Stage::Asks && others(&file)) {
        return Ok(());
    }
    let until = Instant::now() + LEAVES_WITHIN;
    let in_time = move || goes_on() && Instant::now() < until;
    let Some(cluster) = open(config, &Endpoints::read(config)?, in_time)? else {
        return Ok(());
    };
    let opened = Broker::open_clustered(broker_options(config), cluster.clustered());
    let left = match &opened {
        Ok(broker) => cluster.leave(broker),
        Err(OpenError::NotAMember(why)) => {
            tracing::info!(area = "cluster", "there is nothing to leave: {why}");
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    };
    cluster.stop();
    if let Ok(broker) = opened {
        broker.close();
    }
    Ok(left?)
}

/// The members of a node's cluster, for operators.
pub fn members(cluster: &Arc<Cluster>, own: &str) -> Members {
    let (asked, leading) = (Arc::clone(cluster), Arc::clone(cluster));
    let (cluster, own) = (Arc::clone(cluster), own.to_owned());
    let list = move || {
        let status = cluster.status();
        let is_linked =
            |peer: &PeerStatus| peer.through.is_some() || peer.lanes.iter().any(|lane| lane.link.is_some());
        let mut members: Vec<Member> = cluster
            .members()
            .into_iter()
            .map(|peer| {
                let linked = status.iter().find(|it| it.name == peer.name);
                Member {
                    is_running: peer.name == own || linked.is_some_and(is_linked),
                    links: linked.map(|status| figures(status, peer.port)),
                    name: peer.name,
                }
            })
            .collect();
        members.sort_by(|one, other| one.name.cmp(&other.name));
        members
    };
    let ask = move |questions: Vec<(String, Vec<u8>)>| {
        let questions = questions
            .into_iter()
            .map(|(node, question)| (node, question.into()));
        asked.ask(questions.collect())
    };
    Members {
        list: Arc::new(list),
        ask: Arc::new(ask),
        leads: Arc::new(move || {
            let (groups, has_heir) = leading.leads();
            Leads { groups, has_heir }
        }),
    }
}

/// The links with another node, added up.
fn figures(peer: &PeerStatus, port: u16) -> LinkFigures {
    let (host, dialled) = peer.address.rsplit_once(':').unwrap_or((&peer.address, ""));
    let lanes = || peer.lanes.iter();
    let work = lanes().find(|lane| lane.lane == Lane::Work);
    LinkFigures {
        host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        port: dialled.parse().unwrap_or(port),
        sent_bytes: lanes().map(|lane| lane.counts.bytes_out).sum(),
        received_bytes: lanes().map(|lane| lane.counts.bytes_in).sum(),
        dropped_frames: lanes().map(|lane| lane.counts.frames_dropped).sum(),
        backlog_bytes: lanes()
            .filter_map(|lane| Some(lane.link?.backlog_bytes as u64))
            .sum(),
        round_trip_us: work.and_then(|lane| lane.link?.round_trip_us),
        through: peer.through.clone(),
    }
}

/// What all nodes of the cluster know; `None` if they know each other by their certificates alone.
///
/// # Errors
/// They can't know each other: there is neither a secret nor a look at the certificates of both ends. The text says what to do.
pub fn secret(config: &Config) -> Result<Option<Secret>, Box<dyn Error>> {
    let said = config.cluster.secret.as_ref().map(|secret| secret.0.clone());
    let said = match said {
        Some(said) => Some(said),
        None => cookie(&config.data_dir)?,
    };
    let secret = said.and_then(|said| Secret::new(said.as_bytes()));
    let tls = &config.cluster.tls;
    let is_certified = tls.certificate.is_some() && tls.verify_peer && tls.fail_if_no_peer_cert;
    if secret.is_none() && !is_certified {
        let why = "a node that is to be one of several needs a secret that all of them know: set cluster.secret, or RABBITMQ_ERLANG_COOKIE, or \
                   put .erlang.cookie into the data directory or the home directory; or certificates that both ends look at: set \
                   cluster.tls.certfile, keyfile and cacertfile, cluster.tls.verify = verify_peer and cluster.tls.fail_if_no_peer_cert = true";
        return Err(why.into());
    }
    Ok(secret)
}

/// The contents of RabbitMQ's file, wherever it is.
fn cookie(data_dir: &Path) -> Result<Option<String>, Box<dyn Error>> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    for dir in [Some(data_dir.to_owned()), home].into_iter().flatten() {
        let path = dir.join(COOKIE);
        match fs::read_to_string(&path) {
            Ok(text) => return Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("{} can't be read: {error}", path.display()).into()),
        }
    }
    Ok(None)
}
