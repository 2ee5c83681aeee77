//! `/api/nodes`.

use crate::access::Right;
use crate::call::Call;
use crate::listing::{List, object};
use crate::memory::Share;
use crate::options::{LinkFigures, Member};
use crate::others::{self, Question};
use crate::overview::{contexts, exchange_types};
use crate::plugins;
use crate::range::Kind;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::samples::NODE_CHURN;
use crate::text::encode;
use crate::usage::{file_limit, process_limit, uses};
use broker::NodeStatus;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub const ROUTES: &[Route] = &[
    Route {
        path: "/nodes",
        verbs: &[("GET", Right::Monitor, list)],
    },
    Route {
        path: "/nodes/:node",
        verbs: &[("GET", Right::Monitor, one)],
    },
    Route {
        path: "/nodes/:node/memory",
        verbs: &[("GET", Right::Monitor, memory)],
    },
    Route {
        path: "/nodes/:node/memory/relative",
        verbs: &[("GET", Right::Monitor, relative_memory)],
    },
    Route {
        path: "/nodes/:node/memory/ets",
        verbs: &[("GET", Right::Monitor, tables)],
    },
    Route {
        path: "/nodes/:node/memory/ets/relative",
        verbs: &[("GET", Right::Monitor, tables)],
    },
    Route {
        path: "/nodes/:node/memory/ets/:filter",
        verbs: &[("GET", Right::Monitor, tables)],
    },
    Route {
        path: "/nodes/:node/memory/ets/:filter/relative",
        verbs: &[("GET", Right::Monitor, tables)],
    },
    Route {
        path: "/leveret/nodes/:node",
        verbs: &[("DELETE", Right::Administrator, forget)],
    },
    Route {
        path: "/reset",
        verbs: &[("DELETE", Right::Administrator, reset)],
    },
    Route {
        path: "/reset/:node",
        verbs: &[("DELETE", Right::Administrator, reset_of_node)],
    },
    Route {
        path: "/leveret/message-sizes",
        verbs: &[("GET", Right::Monitor, message_sizes)],
    },
    Route {
        path: "/auth/attempts/:node",
        verbs: &[
            ("GET", Right::Monitor, attempts),
            ("DELETE", Right::Administrator, forget_attempts),
        ],
    },
    Route {
        path: "/auth/attempts/:node/source",
        verbs: &[
            ("GET", Right::Monitor, attempts_by_source),
            ("DELETE", Right::Administrator, forget_attempts),
        ],
    },
    Route {
        path: "/leveret/login-sources",
        verbs: &[("PUT", Right::Administrator, track_sources)],
    },
];

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.check_samples("bad_request")?;
    let members = call.members();
    let count = members.len();
    let told = told(call, &others::running(call));
    let list = List {
        name: &|member: &Member| member.name.as_str(),
        row: &|member| match member.name == call.api.options.node {
            true => node(call),
            false => other(call, member, told.get(&member.name)),
        },
        member: &|_, _| None,
    };
    list.reply(&call.query, call.cut, members.into_iter(), count)
}

/// What these nodes tell about themselves, as far as they tell anything.
fn told(call: &Call<'_>, nodes: &[String]) -> BTreeMap<String, Value> {
    let about = |node: &String| {
        let question = Question {
            path: format!("/api/nodes/{}", encode(node.as_bytes())),
            ..Question::whole(call)
        };
        (node.clone(), question)
    };
    let answers = others::ask(call, nodes.iter().map(about).collect());
    let told = nodes.iter().cloned().zip(answers);
    told.filter_map(|(node, answer)| Some((node, answer?.found()?)))
        .collect()
}

/// Another node of the cluster: what it tells, or else what this one knows of it.
fn other(call: &Call<'_>, member: &Member, told: Option<&Value>) -> Value {
    told.cloned().unwrap_or_else(|| {
        let mut known = call.view.nodes().map(|(_, known)| known);
        let is_drained = known.any(|known| *known.name == *member.name && known.is_drained && !known.is_forgotten());
        json!({
            "name": member.name, "type": "disc", "running": member.is_running, "being_drained": is_drained, "partitions": [],
            "cluster_links": [], "applications": [], "contexts": [],
        })
    })
}

/// The links with all other nodes. Addresses and counts are named as in RabbitMQ, the rest is ours.
fn cluster_links(call: &Call<'_>) -> Value {
    let links = call
        .members()
        .into_iter()
        .filter_map(|member| Some((member.name, member.is_running, member.links?)));
    let link = |(name, is_running, links): (String, bool, LinkFigures)| {
        let stats = json!({"send_bytes": links.sent_bytes, "recv_bytes": links.received_bytes});
        let is_up = is_running && links.through.is_none();
        json!({
            "name": name, "peer_addr": links.host, "peer_port": links.port, "stats": stats,
            "send_bytes": links.sent_bytes, "recv_bytes": links.received_bytes, "up": is_up,
            "round_trip_us": links.round_trip_us, "backlog_bytes": links.backlog_bytes, "dropped_frames": links.dropped_frames,
            "through": links.through,
        })
    };
    links.map(link).collect()
}

fn one(call: &Call<'_>) -> Result<Reply, Refusal> {
    let members = call.members();
    let named = members.iter().find(|member| member.name == call.part("node"));
    if let Some(member) = named.filter(|member| member.name != call.api.options.node) {
        let told = match member.is_running && !call.for_node {
            true => told(call, std::slice::from_ref(&member.name)),
            false => BTreeMap::new(),
        };
        return Ok(object(&call.query, other(call, member, told.get(&member.name))));
    }
    call.here()?;
    call.check_samples("bad_request")?;
    let mut node = node(call);
    if call.query.flag("memory") {
        node["memory"] = shares(call);
    }
    if call.query.flag("binary") {
        node["binary"] = BINARIES
            .iter()
            .map(|name| ((*name).to_owned(), json!(0)))
            .collect();
    }
    Ok(object(&call.query, node))
}

/// Removes a node from the cluster that does not run, with its queues (RabbitMQ's `forget_cluster_node`).
fn forget(call: &Call<'_>) -> Result<Reply, Refusal> {
    let name = call.part("node");
    let members = call.members();
    let member = members.iter().find(|member| member.name == name);
    match member.filter(|_| call.api.options.members.is_some()) {
        None => Err(Refusal::bad_request("The node selected is not in the cluster.")),
        Some(member) if member.name == call.api.options.node || member.is_running => {
            Err(Refusal::bad_request(format!(
                "RabbitMQ on node {name} must be stopped with 'rabbitmqctl -n {name} stop_app' before it can be removed"
            )))
        }
        Some(_) => {
            call.administrator().forget_node(name)?;
            Ok(Reply::empty(204))
        }
    }
}

/// What the node of the path answers, if that is another member of the cluster.
///
/// # Errors
/// There is no such node, or it says nothing.
fn from_there(call: &Call<'_>) -> Result<Option<Reply>, Refusal> {
    others::of_node(call, call.part("node"), "GET")
}

fn memory(call: &Call<'_>) -> Result<Reply, Refusal> {
    if let Some(told) = from_there(call)? {
        return Ok(told);
    }
    Ok(object(&call.query, json!({"memory": shares(call)})))
}

fn shares(call: &Call<'_>) -> Value {
    let share = Share::of(&call.api.broker, call.api.sampler.samples().bytes());
    let mut shown = share.named();
    shown.insert("strategy".into(), "rss".into());
    let total = json!({"erlang": share.total, "rss": share.total, "allocated": share.total});
    shown.insert("total".into(), total);
    shown.into()
}

/// What RabbitMQ tells the sizes of Erlang's binaries by, of which there are none.
const BINARIES: [&str; 15] = [
    "connection_readers",
    "connection_writers",
    "connection_channels",
    "connection_other",
    "quorum_queue_procs",
    "quorum_queue_dlx_procs",
    "stream_queue_procs",
    "stream_queue_replica_reader_procs",
    "stream_queue_coordinator_procs",
    "queue_procs",
    "metadata_store",
    "plugins",
    "mgmt_db",
    "msg_index",
    "other",
];

/// Erlang's tables: RabbitMQ's word for a node that has none.
fn tables(call: &Call<'_>) -> Result<Reply, Refusal> {
    if let Some(told) = from_there(call)? {
        return Ok(told);
    }
    Ok(object(&call.query, json!({"ets_tables_memory": "no_tables"})))
}

fn reset_of_node(call: &Call<'_>) -> Result<Reply, Refusal> {
    match others::of_node(call, call.part("node"), "DELETE")? {
        Some(told) => Ok(told),
        None => reset(call),
    }
}

fn reset(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.api.sampler.restart();
    Ok(Reply::empty(204))
}

/// In hundredths, each rounded up as RabbitMQ does.
fn relative_memory(call: &Call<'_>) -> Result<Reply, Refusal> {
    if let Some(told) = from_there(call)? {
        return Ok(told);
    }
    let share = Share::of(&call.api.broker, call.api.sampler.samples().bytes());
    let total = share.total.max(1);
    let mut shown = share.named();
    for value in shown.values_mut() {
        *value = (value.as_u64().unwrap_or(0) * 100).div_ceil(total).into();
    }
    shown.insert("total".into(), 100.into());
    Ok(object(&call.query, json!({"memory": shown})))
}

fn attempts(call: &Call<'_>) -> Result<Reply, Refusal> {
    if let Some(told) = from_there(call)? {
        return Ok(told);
    }
    let counts = call.api.broker.stats().login_attempts().by_protocol().into_iter();
    let rows = counts.map(|(protocol, succeeded, failed)| {
        json!({
            "protocol": protocol,
            "auth_attempts": succeeded + failed,
            "auth_attempts_failed": failed,
            "auth_attempts_succeeded": succeeded,
        })
    });
    Ok(Reply::json(&rows.collect()))
}

/// How large published messages were, as RabbitMQ's command line tells it.
fn message_sizes(call: &Call<'_>) -> Result<Reply, Refusal> {
    if let Some(told) = others::of_named_node(call)? {
        return Ok(told);
    }
    let counts = call.api.broker.stats().total().sizes;
    let all = counts.classes.iter().sum::<u64>().max(1);
    let rows = SIZES.iter().zip(counts.classes).map(|(name, count)| {
        let hundredths = (count as f64 / all as f64 * 10_000.0).round() / 100.0;
        json!({"message_size": name, "count": count, "percentage": hundredths})
    });
    Ok(Reply::json(&rows.collect()))
}

/// RabbitMQ's names of the classes of sizes.
const SIZES: [&str; 9] = [
    "below 100B",
    "between 100B and 1KB",
    "between 1KB and 10KB",
    "between 10KB and 100KB",
    "between 100KB and 1MB",
    "between 1MB and 10MB",
    "between 10MB and 50MB",
    "between 50MB and 100MB",
    "above 100MB",
];

/// As in RabbitMQ there are addresses and names only once somebody has asked to have them kept.
fn attempts_by_source(call: &Call<'_>) -> Result<Reply, Refusal> {
    if let Some(told) = from_there(call)? {
        return Ok(told);
    }
    let counts = call.api.broker.stats().login_attempts().by_source().into_iter();
    let rows = counts.map(|(source, succeeded, failed)| {
        json!({
            "remote_address": source.address.to_string(),
            "username": source.user,
            "protocol": source.protocol,
            "auth_attempts": succeeded + failed,
            "auth_attempts_failed": failed,
            "auth_attempts_succeeded": succeeded,
        })
    });
    Ok(Reply::json(&rows.collect()))
}

fn track_sources(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    crate::refusal::need(&body, &["tracked"])?;
    let attempts = call.api.broker.stats().login_attempts();
    attempts.track(crate::arguments::boolean(&body, "tracked")?);
    Ok(Reply::empty(204))
}

fn forget_attempts(call: &Call<'_>) -> Result<Reply, Refusal> {
    if let Some(told) = others::of_node(call, call.part("node"), "DELETE")? {
        return Ok(told);
    }
    call.api.broker.stats().login_attempts().forget();
    Ok(Reply::empty(204))
}

/// Ways to log in, in RabbitMQ's words.
const MECHANISMS: [(&str, &str); 4] = [
    ("ANONYMOUS", "SASL ANONYMOUS authentication mechanism"),
    ("PLAIN", "SASL PLAIN authentication mechanism"),
    ("AMQPLAIN", "QPid AMQPLAIN mechanism"),
    ("EXTERNAL", "SASL EXTERNAL authentication mechanism"),
];

fn node(call: &Call<'_>) -> Value {
    let options = &call.api.options;
    if call.is_quiet() {
        let is_drained = call.api.broker.is_drained();
        return json!({"name": options.node, "type": "disc", "running": true, "being_drained": is_drained});
    }
    let status = call.api.broker.status();
    let descriptors = file_limit();
    let mut node = json!({
        "name": options.node,
        "type": "disc",
        "running": true,
        "being_drained": call.api.broker.is_drained(),
        "os_pid": std::process::id().to_string(),
        "uptime": status.uptime_ms,
        "processors": std::thread::available_parallelism().map_or(1, usize::from),
        "mem_limit": status.memory_limit,
        "mem_alarm": status.memory_alarm,
        "mem_calculation_strategy": "rss",
        "disk_free_limit": status.disk_free_limit,
        "disk_free_alarm": status.disk_alarm,
        "fd_total": descriptors,
        "sockets_total": descriptors,
        "proc_total": process_limit(),
        "run_queue": 0,
        "rates_mode": "basic",
        "net_ticktime": 60,
        "partitions": [],
        "cluster_links": cluster_links(call),
        "enabled_plugins": plugins::enabled(call.api),
        "exchange_types": exchange_types(),
        "contexts": contexts(call.api, false),
        "rabbitmq_version": options.rabbitmq_version,
        "erlang_version": "",
        "erlang_full_version": "",
        "crypto_lib_version": "",
    });
    let is_enabled = |name: &str| options.mechanisms.contains(&name);
    node["auth_mechanisms"] = MECHANISMS
        .iter()
        .map(|(name, description)| json!({"name": name, "description": description, "enabled": is_enabled(name)}))
        .collect();
    node["applications"] = json!([
        {"name": "leveret", "description": "Leveret", "version": env!("CARGO_PKG_VERSION")},
    ]);
    if let Some(standing) = call.api.broker.catalog_standing() {
        // Ours: who leads the group that decides about definitions, and how far each node has come.
        node["catalog"] = json!({
            "leader": standing.leader,
            "leads": standing.leads,
            "term": standing.term,
            "committed": standing.committed,
            "applied": standing.applied,
            "fresh": standing.is_fresh,
        });
    }
    if let Value::Object(members) = &mut node {
        put_changing(call, &status, members);
    }
    node["db_dir"] = options.data_dir.display().to_string().into();
    let set_aside: Vec<String> = call.api.broker.set_aside_journals().collect();
    if !set_aside.is_empty() {
        // Ours.
        node["journals_set_aside"] = set_aside.into();
    }
    node["log_files"] = options.log_files.clone().into();
    node["config_files"] = options
        .config_files
        .iter()
        .map(|file| Value::from(file.display().to_string()))
        .collect();
    node
}

/// What the node uses and what came and went on it, each with how it changed.
fn put_changing(call: &Call<'_>, status: &NodeStatus, node: &mut Map<String, Value>) {
    let samples = call.api.sampler.samples();
    let rates = call.rates(&samples, samples.node.as_ref());
    let churn = call.api.broker.stats().churn().named();
    for (at, (name, value)) in churn.into_iter().chain(uses(status)).enumerate() {
        rates.put(node, Kind::Node, name, value, &[NODE_CHURN + at]);
    }
}
