//! `/api/queues`. What a queue holds is what it published after its last turn: nobody waits for it.

use crate::access::Right;
use crate::api_session::{ApiSession, CHANNEL};
use crate::arguments::{self, boolean};
use crate::call::{BAD_RANGE, Call, queues_of};
use crate::json::table;
use crate::listing::{Filter, List, Page, object};
use crate::message_stats::{add_losses, loss_places, message_stats};
use crate::others::{self, Answer, Question};
use crate::policies;
use crate::range::Kind;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::samples::QUEUE_COUNTS;
use crate::snapshot::{Elsewhere, Id};
use crate::spread::{Place, Spread};
use crate::stream_copies;
use crate::text::encode;
use crate::times;
use crate::{connections, consumers, copies};
use broker::queues::Status;
use broker::{DeclareQueue, Deleting, NodeConnection, QueueKind, QueueView, StreamFigures};
use listener::expiry::moment;
use model::QueueId;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;

pub const ROUTES: &[Route] = &[
    Route {
        path: "/queues",
        verbs: &[("GET", Right::Management, list)],
    },
    Route {
        path: "/queues/detailed",
        verbs: &[("GET", Right::Management, list)],
    },
    Route {
        path: "/queues/:vhost",
        verbs: &[("GET", Right::Vhost, list)],
    },
    Route {
        path: "/queues/:vhost/:name",
        verbs: &[
            ("GET", Right::Vhost, one),
            ("PUT", Right::Vhost, put),
            ("DELETE", Right::Vhost, delete),
        ],
    },
    Route {
        path: "/queues/:vhost/:name/contents",
        verbs: &[("DELETE", Right::Vhost, purge)],
    },
];

/// How much is told about each queue of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Statistics,
    /// `disable_stats`: what was declared.
    Declared,
    /// And `enable_queue_totals`: with the numbers of messages.
    Totals,
}

impl Detail {
    fn wanted(call: &Call<'_>) -> Self {
        let options = &call.api.options;
        let totals = options.enable_queue_totals || call.query.flag("enable_queue_totals");
        match (options.disable_stats || call.is_quiet(), totals) {
            (false, _) => Self::Statistics,
            (true, false) => Self::Declared,
            (true, true) => Self::Totals,
        }
    }
}

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    let detail = Detail::wanted(call);
    let vhosts = call.visible_vhosts()?;
    call.check_samples(BAD_RANGE)?;
    let is_here = |queue: &QueueView| call.api.broker.queues().here(queue.id).is_some();
    let total = vhosts.iter().map(|vhost| queues_of(vhost).count()).sum();
    let queues = || vhosts.iter().flat_map(|vhost| queues_of(vhost));
    let list = List {
        name: &|queue: &&Arc<QueueView>| &queue.name,
        row: &|queue: &&Arc<QueueView>| Value::Object(row(call, queue, detail)),
        member: &|queue, path| member(call, queue, path),
    };
    let id = &|queue: &&Arc<QueueView>| [queue.id.0, 0];
    let spread = Spread {
        call,
        list,
        id,
        words: Map::new(),
    };
    if call.for_node {
        let find = |[id, _]: Id| {
            let queue = call.api.broker.queues().here(QueueId(id))?;
            call.view.queue(&queue.vhost, &queue.name)
        };
        return spread.told_by_id(find, || queues().filter(|queue| is_here(queue)));
    }
    let nodes = match detail {
        // What was declared is the same everywhere.
        Detail::Declared => Vec::new(),
        // The same ones for each piece.
        _ => {
            let nodes = || Elsewhere {
                nodes: others::running(call),
                shares: Vec::new(),
            };
            call.snapshot.elsewhere.get_or_init(nodes).nodes.clone()
        }
    };
    if nodes.is_empty() {
        return spread.list.reply(&call.query, call.cut, queues(), total);
    }
    let page = Page::of(&call.query)?;
    if call.query.get("sort").is_none() {
        let filter = Filter::of(&call.query).filter(|_| page.is_some());
        let passes =
            |queue: &&Arc<QueueView>| filter.as_ref().is_none_or(|filter| filter.matches(&queue.name));
        let filtered = match filter {
            None => total,
            Some(_) => queues().filter(passes).count(),
        };
        let place = |queue| place_of(call, queue, &nodes);
        return spread.placed(&nodes, queues().filter(passes), place, filtered, total);
    }
    let names: Vec<&str> = vhosts.iter().map(|vhost| &*vhost.name).collect();
    let limit = page.as_ref().map(|page| page.first().saturating_add(page.size));
    let told = spread.elsewhere(nodes, limit, &json!(names));
    // Those of nodes that say nothing are shown without figures.
    let is_told = |queue: &&Arc<QueueView>| {
        let node = elsewhere(call, queue, &told.nodes);
        node.is_some_and(|node| told.shares[node].is_some())
    };
    let own: Vec<&Arc<QueueView>> = queues().filter(|queue| !is_told(queue)).collect();
    let known: HashMap<u64, &Arc<QueueView>> = queues()
        .filter(|queue| is_told(queue))
        .map(|queue| (queue.id.0, queue))
        .collect();
    let own_total = own.len();
    spread.merged(own, own_total, &told, |[id, _]| known.get(&id).copied())
}

fn place_of<'q>(call: &Call<'_>, queue: &'q Arc<QueueView>, nodes: &[String]) -> Place<&'q Arc<QueueView>> {
    match elsewhere(call, queue, nodes) {
        None => Place::Own(queue),
        Some(node) => Place::Elsewhere(node, [queue.id.0, 0], Some(queue)),
    }
}

/// Which of these nodes has the queue's messages, if it is not this one.
fn elsewhere(call: &Call<'_>, queue: &QueueView, nodes: &[String]) -> Option<usize> {
    let place = call.view.node_name(call.api.broker.place_of(queue));
    nodes
        .iter()
        .position(|node| node == place)
        .filter(|_| call.api.broker.queues().here(queue.id).is_none())
}

/// The members that people sort by, without the whole object around them.
fn member(call: &Call<'_>, queue: &QueueView, path: &str) -> Option<Value> {
    let status = || status(call, queue);
    Some(match path {
        "name" => Value::from(&*queue.name),
        "vhost" => Value::from(&*queue.vhost),
        "messages" => (status().ready + status().unacked).into(),
        "messages_ready" => status().ready.into(),
        "messages_unacknowledged" => status().unacked.into(),
        "consumers" => status().consumers.into(),
        "memory" => status().memory.into(),
        "state" => state(call, queue).into(),
        "oldest_message_age_ms" => age_ms(call, &status()).into(),
        "head_message_timestamp" => status().head_timestamp.into(),
        other => {
            let sum = sums(&status()).into_iter().find(|(name, _)| *name == other);
            return sum.map_or_else(|| stats_member(call, queue, other), |(_, sum)| Some(sum.into()));
        }
    })
}

/// What else is told of the messages that a queue holds, and of their bodies in bytes. What is on its way to a
/// dead-letter exchange or waits for its next try is part of the persistent ones alone.
fn sums(status: &Status) -> [(&'static str, u64); 10] {
    [
        ("messages_ready_ram", status.ready_in_memory()),
        (
            "messages_unacknowledged_ram",
            status.in_memory().saturating_sub(status.ready_in_memory()),
        ),
        ("messages_ram", status.in_memory()),
        ("messages_persistent", status.persistent),
        ("messages_paged_out", status.paged),
        ("message_bytes", status.bytes()),
        ("message_bytes_ready", status.ready_bytes),
        ("message_bytes_unacknowledged", status.unacked_bytes),
        ("message_bytes_ram", status.bytes_in_memory()),
        ("message_bytes_persistent", status.persistent_bytes),
    ]
}

/// A member of `message_stats`: a count, or the rate of one; or how the length changes.
fn stats_member(call: &Call<'_>, view: &QueueView, path: &str) -> Option<Value> {
    if let Some(path) = path.strip_prefix("latency.") {
        return Some(latency_member(call, view, path).into());
    }
    let (name, is_rate) = match path.strip_suffix("_details.rate") {
        Some(name) => (name, true),
        None => (path, false),
    };
    let queue = call.api.broker.queues().here(view.id)?;
    let losses = name
        .strip_prefix("message_stats.")
        .map(loss_places)
        .unwrap_or_default();
    if !losses.is_empty() {
        let samples = call.api.sampler.samples();
        let rate = || Some(samples.losses.get(&view.id)?.rate(samples.now, &losses));
        let sum = || {
            Some(
                losses
                    .iter()
                    .map(|at| queue.losses().map_or(0, |it| it.numbers()[*at]))
                    .sum::<u64>(),
            )
        };
        return match is_rate {
            true => Some(rate().unwrap_or(0.0).into()),
            false => sum().map(Value::from),
        };
    }
    let counts = queue.counts().named();
    let places: Vec<usize> = match name.strip_prefix("message_stats.") {
        None if is_rate && name == "messages" => vec![0, 1],
        None if is_rate && name == "messages_ready" => vec![0],
        None if is_rate && name == "messages_unacknowledged" => vec![1],
        None => return None,
        Some("deliver_get") => (QUEUE_COUNTS + 1..QUEUE_COUNTS + 5).collect(),
        Some(name) => vec![QUEUE_COUNTS + counts.iter().position(|(known, _)| *known == name)?],
    };
    if !is_rate {
        return Some(
            places
                .iter()
                .map(|at| counts[at - QUEUE_COUNTS].1)
                .sum::<u64>()
                .into(),
        );
    }
    let samples = call.api.sampler.samples();
    let history = samples.queues.get(&view.id);
    Some(
        history
            .map_or(0.0, |history| history.rate(samples.now, &places))
            .into(),
    )
}

/// A percentile of the last minute: `publish_to_deliver.p99_ms`.
fn latency_member(call: &Call<'_>, view: &QueueView, path: &str) -> Option<f32> {
    let (sort, part) = path.split_once('.')?;
    let sort = times::QUEUE_TIMES.iter().position(|known| *known == sort)?;
    let part = times::part(part)?;
    let samples = call.api.sampler.samples();
    let timed = samples.times.queues.get(&view.id)?;
    let since = samples.now.saturating_sub(times::LATEST);
    Some(timed.times.latest(sort, since)?.1[part])
}

fn one(call: &Call<'_>) -> Result<Reply, Refusal> {
    let queue = find(call)?;
    call.check_samples("bad_request")?;
    if call.is_quiet() {
        let mut declared = row(call, queue, Detail::wanted(call));
        // Rows of lists with nothing but totals lack these.
        for name in ["internal", "internal_owner"] {
            declared.insert(name.into(), false.into());
        }
        return Ok(object(&call.query, Value::Object(declared)));
    }
    if let Some((node, answer)) = from_its_node(call, queue) {
        return match answer.found() {
            Some(mut found) => {
                add_consumers(call, &mut found, Some(&node));
                stream_copies::add_readers(call, queue, &mut found);
                Ok(object(&call.query, found))
            }
            None => Ok(answer.into()),
        };
    }
    let mut map = row(call, queue, Detail::Statistics);
    let handle = call.api.broker.queues().here(queue.id);
    let consumers = handle.map(|queue| queue.consumers()).unwrap_or_default();
    let details = consumers.iter().map(|consumer| consumers::row(call, consumer));
    let mut details: Vec<Value> = details.collect();
    if queue.kind == QueueKind::Stream {
        details.extend(consumers::by_stream_protocol(call, &queue.vhost, &queue.name));
    }
    map.insert("consumer_details".into(), details.into());
    for name in ["deliveries", "incoming"] {
        map.insert(name.into(), json!([]));
    }
    if let Some(alone) = queue.exclusive_to().and_then(|alone| owner_details(call, alone)) {
        map.insert("owner_pid_details".into(), alone);
    }
    map.entry("head_message_timestamp").or_insert(Value::Null);
    let mut row = Value::Object(map);
    add_consumers(call, &mut row, None);
    stream_copies::add_readers(call, queue, &mut row);
    Ok(object(&call.query, row))
}

/// What the queue's node answers to the request, if that is another one that answers.
pub fn from_its_node(call: &Call<'_>, queue: &QueueView) -> Option<(String, Answer)> {
    let mut nodes = others::running(call);
    let node = nodes.swap_remove(elsewhere(call, queue, &nodes)?);
    let answer = others::ask_one(call, &node, Question::whole(call))?;
    Some((node, answer))
}

/// Adds consumers of other nodes to what the queue's node tells of it, which is this one unless it has a name here, and says
/// which of all consumers is the only one that may be or is served.
fn add_consumers(call: &Call<'_>, row: &mut Value, home: Option<&str>) {
    let mut words = consumers::words(call);
    words.insert("queue".into(), call.part("name").into());
    let question = Question {
        body: words.into(),
        ..Question::get(format!(
            "/api/consumers/{}",
            encode(call.part("vhost").as_bytes())
        ))
    };
    if let Some(known) = row.get_mut("consumer_details").and_then(Value::as_array_mut) {
        if home.is_some() {
            let (vhost, name) = (call.part("vhost"), call.part("name"));
            known.extend(consumers::of_queue(call, vhost, name));
        }
        let mut nodes = others::running(call);
        nodes.retain(|node| Some(node.as_str()) != home);
        for told in others::ask_same(call, nodes, &question) {
            known.extend(told.1.as_array().into_iter().flatten().cloned());
        }
        for (name, member, value) in [
            ("exclusive_consumer_tag", "exclusive", json!(true)),
            (
                "single_active_consumer_tag",
                "activity_status",
                json!("single_active"),
            ),
        ] {
            let mut details = row["consumer_details"].as_array().into_iter().flatten();
            // Of a stream each group of consumers may have one that is active, and that one is not the queue's.
            let is_on_channel = |consumer: &Value| consumer["channel_details"]["number"] != 0;
            let found = details.find(|consumer| consumer[member] == value && is_on_channel(consumer));
            row[name] = found
                .map(|consumer| consumer["consumer_tag"].clone())
                .unwrap_or_default();
        }
    }
}

/// The connection that alone may use an exclusive queue.
fn owner_details(call: &Call<'_>, alone: NodeConnection) -> Option<Value> {
    let mut connections = call.api.broker.stats().connections().into_iter();
    let is_here = call.view.node_name(alone.incarnation.node) == call.api.options.node;
    let found = connections.find(|connection| is_here && connection.id == alone.connection.0)?;
    Some(connections::details(&found))
}

fn put(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let name = call.part("name");
    let session = ApiSession::open(call)?;
    call.refuse_other_node(&body)?;
    let known = call.view.queue(call.part("vhost"), name).is_some();
    let declare = DeclareQueue {
        name: name.to_owned(),
        durable: boolean(&body, "durable")?,
        auto_delete: boolean(&body, "auto_delete")?,
        arguments: arguments::table(&body, "arguments", call.api.broker.limits())?,
        ..DeclareQueue::default()
    };
    let done = session.inner().declare_queue(CHANNEL, declare)?;
    session.durable(done.durable)?;
    Ok(Reply::empty(if known { 204 } else { 201 }))
}

fn delete(call: &Call<'_>) -> Result<Reply, Refusal> {
    let name = &find(call)?.name;
    let session = ApiSession::open(call)?;
    let (if_unused, if_empty) = (call.query.flag("if-unused"), call.query.flag("if-empty"));
    let mut deleting = session.inner().delete_queue(CHANNEL, name, if_unused, if_empty)?;
    let deleted = loop {
        match deleting {
            Deleting::Done(deleted) => break deleted,
            Deleting::Asked(deletion) => {
                let answer = session.answer(deletion.question())?;
                deleting = session.inner().go_on_deleting(CHANNEL, deletion, answer)?;
            }
        }
    };
    session.durable(deleted.durable)?;
    Ok(Reply::empty(204))
}

fn purge(call: &Call<'_>) -> Result<Reply, Refusal> {
    let name = &find(call)?.name;
    let session = ApiSession::open(call)?;
    let question = session.inner().purge_queue(CHANNEL, name)?;
    session.inner().purged(name, session.answer(question)?)?;
    Ok(Reply::empty(204))
}

/// The queue of the path.
///
/// # Errors
/// There is none.
pub fn find<'a>(call: &'a Call<'_>) -> Result<&'a Arc<QueueView>, Refusal> {
    let queue = call.vhost()?.queue(call.part("name"));
    queue.ok_or(Refusal::NotFound)
}

fn status(call: &Call<'_>, queue: &QueueView) -> Status {
    let queue = call.api.broker.queues().here(queue.id);
    queue.map(|queue| queue.status()).unwrap_or_default()
}

/// As in RabbitMQ a queue is down if the node that has its messages cannot be reached.
fn state(call: &Call<'_>, queue: &QueueView) -> &'static str {
    match call.api.broker.queues().get(queue.id) {
        Some(handle) if handle.is_without_owner() => "down",
        // RabbitMQ's word for a queue of which no majority is there.
        _ if copies::lacks_majority(call, queue) => "minority",
        _ => "running",
    }
}

/// The node that has the queue's messages.
fn node<'a>(call: &'a Call<'_>, queue: &QueueView) -> &'a str {
    match call.api.broker.queues().here(queue.id) {
        Some(_) => &call.api.options.node,
        None => call.view.node_name(call.api.broker.place_of(queue)),
    }
}

fn row(call: &Call<'_>, queue: &QueueView, detail: Detail) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| map.insert(name.into(), value);
    put("name", (&*queue.name).into());
    put("vhost", (&*queue.vhost).into());
    put("type", queue.kind.name().into());
    put("durable", queue.is_durable().into());
    put("auto_delete", queue.auto_delete.into());
    put("exclusive", queue.is_exclusive().into());
    put("arguments", table(&queue.arguments));
    put("node", node(call, queue).into());
    put("state", state(call, queue).into());
    match detail {
        Detail::Totals => {
            // Nobody knows what a queue holds whose node says nothing.
            if let Some(queue) = call.api.broker.queues().here(queue.id) {
                let status = queue.status();
                put("messages", (status.ready + status.unacked).into());
                put("messages_ready", status.ready.into());
                put("messages_unacknowledged", status.unacked.into());
            }
            put("online", Value::Null);
            return map;
        }
        Detail::Declared | Detail::Statistics => {}
    }
    put("internal", false.into());
    put("internal_owner", false.into());
    copies::describe(call, queue, &mut map);
    if let Some(vhost) = call.view.vhost(&queue.vhost) {
        policies::of_queue(&mut map, &vhost.policies().of_queue(queue));
    }
    if detail == Detail::Statistics {
        statistics(call, &mut map, queue);
    }
    map
}

/// Of a stream that this node leads. An offset of nothing is null; RabbitMQ has none of the first two.
fn stream_statistics(map: &mut Map<String, Value>, node: &str, figures: &StreamFigures) {
    let last = figures.committed.checked_sub(1);
    let there = last.filter(|last| *last >= figures.first_offset);
    map.insert("first_offset".into(), there.map(|_| figures.first_offset).into());
    map.insert("last_offset".into(), there.into());
    map.insert("committed_offset".into(), last.into());
    map.insert("segments".into(), figures.segments.into());
    map.insert("readers".into(), json!({ node: figures.readers }));
}

fn statistics(call: &Call<'_>, map: &mut Map<String, Value>, view: &QueueView) {
    let Some(queue) = call.api.broker.queues().here(view.id) else {
        return;
    };
    let status = queue.status();
    let samples = call.api.sampler.samples();
    let rates = call.rates(&samples, samples.queues.get(&view.id));
    let messages = status.ready + status.unacked;
    for (name, value, places) in [
        ("messages", messages, &[0, 1][..]),
        ("messages_ready", status.ready, &[0]),
        ("messages_unacknowledged", status.unacked, &[1]),
    ] {
        rates.put(map, Kind::Lengths, name, value, places);
    }
    let known = [("consumers", status.consumers), ("memory", status.memory as u64)];
    for (name, value) in known.into_iter().chain(sums(&status)) {
        map.insert(name.into(), value.into());
    }
    // What the publisher of the first message wrote, which may be anything. As in RabbitMQ, rows of lists have it only
    // if there is one.
    if let Some(timestamp) = status.head_timestamp {
        map.insert("head_message_timestamp".into(), timestamp.into());
    }
    // When the first ready message came.
    map.insert("oldest_message_age_ms".into(), age_ms(call, &status).into());
    // To five seconds: that often the sampler looks which queues were turned.
    if let Some(ms) = queue.idle_since_ms() {
        let second = moment(ms / 1000);
        let text = format!("{}.{:03}+00:00", second.trim_end_matches('Z'), ms % 1000);
        map.insert("idle_since".into(), text.into());
    }
    // Null while nothing was timed, so that lists have the same fields throughout.
    let timed = samples.times.queues.get(&view.id);
    let latency = timed.map(|timed| timed.times.latest_shown(&times::QUEUE_TIMES, samples.now));
    map.insert("latency".into(), latency.into());
    let capacity = capacity(&status);
    map.insert("consumer_capacity".into(), capacity.into());
    map.insert("consumer_utilisation".into(), capacity.into());
    if view.kind == QueueKind::Classic {
        map.insert("storage_version".into(), 2.into());
    }
    if let Some(figures) = queue.stream_figures() {
        stream_statistics(map, &call.api.options.node, &figures);
    }
    let mut stats = message_stats(&rates, &queue.counts().named(), QUEUE_COUNTS);
    if let Some(losses) = queue.losses() {
        let rates = call.rates(&samples, samples.losses.get(&view.id));
        add_losses(&mut stats, &rates, losses.numbers());
    }
    if let Some(stats) = stats {
        map.insert("message_stats".into(), stats);
    }
}

/// How long the first ready message has been there, if that is known.
pub fn age_ms(call: &Call<'_>, status: &Status) -> Option<u64> {
    (status.oldest_ms > 0).then(|| call.api.broker.now_ms().saturating_sub(status.oldest_ms))
}

/// Which part of the time consumers could take more: a queue with consumers that leaves nothing ready has more of them than it
/// needs.
pub fn capacity(status: &Status) -> f64 {
    f64::from(u8::from(status.consumers > 0 && status.ready == 0))
}
