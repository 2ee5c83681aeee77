//! The copies of a stream, as RabbitMQ's `stream_status` tells of them: each by the node that has it.

use crate::call::Call;
use crate::others::{self, Question};
use crate::text::encode;
use broker::QueueView;
use serde_json::{Map, Value, json};

/// The copies whose nodes say something, the leader's first.
pub fn all(call: &Call<'_>, stream: &QueueView) -> Vec<Value> {
    let mut rows: Vec<Value> = own(call, stream).into_iter().collect();
    let mut nodes = others::running(call);
    nodes.retain(|name| stream.places().any(|node| call.view.node_name(node) == name));
    let question = Question::get(format!(
        "/api/leveret/streams/{}/{}/replicas",
        encode(stream.vhost.as_bytes()),
        encode(stream.name.as_bytes())
    ));
    for (_, told) in others::ask_same(call, nodes, &question) {
        rows.extend(told.as_array().into_iter().flatten().cloned());
    }
    rows.sort_by_key(|row| row["role"] != "writer");
    rows
}

/// This node's copy. An offset of nothing is −1, as in RabbitMQ. What is written to a copy's files is committed, so that its last
/// offset is that of the last committed message. Of a stream that one node has nobody else has ever led, and there is no epoch.
fn own(call: &Call<'_>, stream: &QueueView) -> Option<Value> {
    let broker = &call.api.broker;
    let copy = broker.queues().copy(stream.id)?;
    let figures = copy.stream_figures()?;
    let offset = |offset: Option<u64>| offset.map_or(json!(-1), Value::from);
    let last = offset(figures.committed.checked_sub(1));
    let first = Some(figures.first_offset).filter(|first| *first < figures.committed);
    let standing = broker.shared_standing(stream);
    let term = standing.and_then(|standing| Some(standing.own?.term));
    Some(json!({
        "role": if copy.is_led_here() { "writer" } else { "replica" },
        "node": call.api.options.node,
        "epoch": term,
        "offset": last,
        "committed_offset": last,
        "first_offset": offset(first),
        "readers": figures.readers,
        "segments": figures.segments,
    }))
}

/// Says in a stream's row how many read each copy, and how many there are in all: whoever leads knows of its own readers only.
pub fn add_readers(call: &Call<'_>, stream: &QueueView, row: &mut Value) {
    let is_told = row.get("readers").is_some();
    if call.for_node || !is_told || !stream.is_shared() {
        return;
    }
    if let Some(consumers) = row["consumer_details"].as_array().map(Vec::len) {
        row["consumers"] = consumers.into();
    }
    let readers = all(call, stream)
        .into_iter()
        .filter_map(|mut row| Some((row["node"].as_str()?.to_owned(), row["readers"].take())));
    let readers: Map<String, Value> = readers.collect();
    if let Some(known) = row["readers"].as_object_mut() {
        known.extend(readers);
    }
}
