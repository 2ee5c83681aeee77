//! Whole configurations as operators of RabbitMQ have them: a node starts with each, and says in a few lines what has no effect.

#![allow(
    clippy::unwrap_used,
    reason = "a test file; clippy sees only the test functions as tests"
)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A node that is running; killed when the test ends.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn files(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/configurations")
        .join(name)
}

/// Starts a node with the files of a folder and returns its warnings about the configuration, without the folder's path.
fn warnings(name: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let scratch = TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_leveret"));
    let ours = |name: &str| name.starts_with("LEVERET_") || name.starts_with("RABBITMQ_");
    for (name, _) in std::env::vars().filter(|(name, _)| ours(name)) {
        command.env_remove(name);
    }
    command.args(["server", "--listen", "127.0.0.1:0", "--config"]);
    command.arg(files(name).join("rabbitmq.conf"));
    for setting in [
        "management.tcp.port=0",
        "prometheus.tcp.port=0",
        "log.dir=.",
        "log.console.formatter=plaintext",
    ] {
        command.args(["-s", setting]);
    }
    let child = command
        .envs(variables.iter().copied())
        .current_dir(scratch.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut node = Node(child);
    let mut out = BufReader::new(node.0.stdout.take().unwrap());
    let mut found = Vec::new();
    let mut line = String::new();
    loop {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "the node ended: {found:?}");
        if let Some((_, warning)) = line.split_once("[warning] config: ") {
            let folder = format!("{}/", files(name).display());
            found.push(warning.trim_end().replace(&folder, ""));
        }
        if line.contains(" is ready") {
            return found;
        }
    }
}

#[test]
fn a_production_node_of_3_8_starts_and_one_line_a_reason_says_what_has_no_effect() {
    let found = warnings("production-3.8", &[]);
    let has = |text: &str| assert!(found.iter().any(|it| it.contains(text)), "{text}: {found:#?}");
    has(
        "key cluster_partition_handling has no effect: the side of a partition that has the majority goes on",
    );
    has(
        "keys cluster_keepalive_interval, net_ticktime have no effect: nodes notice each other's silence within two seconds",
    );
    has("keys mqtt.vhost, mqtt.exchange have no effect: this version doesn't have MQTT");
    has(
        "this version doesn't have these plugins: rabbitmq_mqtt, rabbitmq_shovel, rabbitmq_shovel_management",
    );
    has("advanced.config:6: rabbit, credit_flow_default_credit: the setting has no effect");
    has(
        "advanced.config:14: rabbitmq_shovel, shovels: the setting has no effect: this version doesn't have shovels",
    );
    assert!(found.len() <= 29, "{}: {found:#?}", found.len());
}

#[test]
fn a_production_node_of_4_starts_with_its_defaults_for_virtual_hosts() {
    assert_eq!(
        warnings("production-4", &[]),
        [
            "key deprecated_features.permit.transient_nonexcl_queues has no effect: everything that RabbitMQ 4.2 permits is permitted",
            "key quorum_queue.initial_cluster_size has no effect: three nodes have a queue, or as many as x-quorum-initial-group-size says",
            "key raft.wal_max_size_bytes has no effect: Leveret's own log and groups decide this",
        ]
    );
}

#[test]
fn what_the_cluster_operator_writes_starts_a_node() {
    assert_eq!(
        warnings("operator", &[("RABBITMQ_NODENAME", "rabbit@shop-server-0")]),
        [
            "key queue_master_locator has no effect: queue_leader_locator is what counts, as in RabbitMQ 4",
            "key cluster_partition_handling has no effect: the side of a partition that has the majority goes on, and the other one joins it \
             again by itself",
            "keys cluster_formation.k8s.host, cluster_formation.k8s.address_type have no effect: pods are found by the numbers in their names, as \
             in RabbitMQ 4.1, and nothing else is asked",
        ]
    );
}

#[test]
fn what_the_helm_chart_writes_starts_a_node_with_its_environment() {
    let found = warnings("helm", &[("POD_NAME", "rabbitmq-0")]);
    let has = |text: &str| assert!(found.iter().any(|it| it.contains(text)), "{text}: {found:#?}");
    has(
        "cluster_formation.node_cleanup.only_log_warning have no effect: a node stays a member until forget_cluster_node",
    );
    has("key cluster_partition_handling has no effect");
    has(
        "cluster_formation.peer_discovery_backend = k8s, and cluster_formation.target_cluster_size_hint is not set: this node is alone",
    );
    has("cluster.secret and cluster.tls.* have no effect");
    has("rabbitmq-env.conf:5: +S: no effect");
    assert_eq!(found.len(), 7, "{found:#?}");
}
