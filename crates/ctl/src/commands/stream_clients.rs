//! Who publishes to streams and consumes from them by the stream protocol, and what streams keep for them.

use super::absent::{Answer, table, tell};
use super::streams::{NO_GROUP, NO_OBJECT, named};
use super::text;
use crate::ask::{Ask, encode};
use crate::columns::{self, Column};
use crate::command::{Command, Section::*};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE};
use crate::output::{Form, Output, Rows};
use crate::tool::Tool::{Ctl, Diagnostics, Streams};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The longest name of a consumer, in bytes.
const REFERENCE_BYTES: usize = 255;

pub const COMMANDS: &[Command] = table! {
    [Ctl, Diagnostics, Streams] Queues "list_stream_consumers" 0 32 "[--vhost <vhost>] [<column> ...]";
        "Lists consumers of the stream protocol";
        ["verbose|V"] |ask| list(ask, "consumers", CONSUMERS, "Listing stream consumers ...");
    [Ctl, Diagnostics, Streams] Queues "list_stream_publishers" 0 32 "[--vhost <vhost>] [<column> ...]";
        "Lists publishers of the stream protocol";
        ["verbose|V"] |ask| list(ask, "publishers", PUBLISHERS, "Listing stream publishers ...");
    [Ctl, Diagnostics, Streams] Queues "list_stream_consumer_groups" 0 32 "[--vhost <vhost>] [<column> ...]";
        "Lists groups of stream consumers of which one is active";
        ["verbose|V"] groups;
    [Ctl, Diagnostics, Streams] Queues "list_stream_group_consumers" 0 32
        "--stream <stream> --reference <reference> [--vhost <vhost>] [<column> ...]";
        "Lists the consumers of a group of stream consumers";
        ["verbose|V", "stream=", "reference="] group_consumers;

    // What is tracked in streams.
    [Streams] Queues "list_stream_tracking" 1 1 "<stream> [--all | --offset | --writer] [--vhost <vhost>]";
        "Lists the offsets and the numbers of publishers that a stream keeps";
        ["stream=", "all", "offset", "writer"] tracking;
    [Streams] Queues "reset_offset" 0 0 "--stream <stream> --reference <reference> [--vhost <vhost>]";
        "Resets an offset stored in a stream";
        ["stream=", "reference="] reset_offset;
};

const CONSUMERS: &[Column] = &[
    Column::same("subscription_id"),
    Column::of("stream", "queue.name"),
    Column::of("messages_consumed", "consumed"),
    Column::same("offset"),
    Column::same("offset_lag"),
    Column::same("credits"),
    Column::same("active"),
    Column::same("activity_status"),
    Column::same("properties"),
    CONNECTION,
    NODE,
];
const PUBLISHERS: &[Column] = &[
    Column::same("publisher_id"),
    Column::of("stream", "queue.name"),
    Column::same("reference"),
    Column::of("messages_published", "published"),
    Column::of("messages_confirmed", "confirmed"),
    Column::of("messages_errored", "errored"),
    CONNECTION,
    NODE,
];
const GROUPS: &[Column] = &[
    Column::same("stream"),
    Column::same("reference"),
    Column::same("partition_index"),
    Column::same("consumers"),
];
const GROUP_CONSUMERS: &[Column] = &[
    Column::same("subscription_id"),
    Column::of("connection_name", "connection_details.name"),
    Column::same("state"),
];

/// What close_connection takes.
const CONNECTION: Column = Column::of("connection_pid", "connection_details.name");
const NODE: Column = Column::of("node", "connection_details.node");

/// The columns that are named, all with `--verbose`, or else those that RabbitMQ shows: without the connection and the node.
fn chosen(ask: &Ask<'_>, known: &'static [Column]) -> Result<Vec<Column>, Failure> {
    let usual: Vec<&str> = known
        .iter()
        .filter(|column| ![CONNECTION, NODE].contains(column))
        .map(|column| column.name)
        .collect();
    let chosen = columns::chosen(ask, known, &usual)?;
    Ok(match ask.line.has("verbose") {
        true => known.to_vec(),
        false => chosen,
    })
}

fn pretty(rows: Rows) -> Answer {
    Ok(Output::Rows(Rows {
        form: Form::Pretty,
        ..rows
    }))
}

/// What the API says of all of a virtual host: nothing, as in RabbitMQ, if there is no such one.
fn all(ask: &Ask<'_>, kind: &str, members: &str) -> Result<Value, Failure> {
    let path = format!("/stream/{kind}/{}?columns={members}", encode(ask.vhost()));
    Ok(ask.find(&path)?.unwrap_or_else(|| json!([])))
}

fn list(ask: &Ask<'_>, kind: &str, known: &'static [Column], told: &str) -> Answer {
    let chosen = chosen(ask, known)?;
    tell(ask, told)?;
    pretty(columns::rows(
        &chosen,
        &all(ask, kind, &columns::wanted(&chosen))?,
    ))
}

fn groups(ask: &Ask<'_>) -> Answer {
    let chosen = chosen(ask, GROUPS)?;
    tell(ask, "Listing stream consumer groups ...")?;
    let consumers = all(ask, "consumers", "queue.name,group")?;
    pretty(columns::rows(&chosen, &groups_among(&consumers)))
}

/// The groups of these consumers, by stream and name.
fn groups_among(consumers: &Value) -> Value {
    let mut groups: BTreeMap<(&str, &str), (&Value, u64)> = BTreeMap::new();
    for consumer in consumers.as_array().into_iter().flatten() {
        let group = &consumer["group"];
        if let (Some(stream), Some(name)) = (consumer["queue"]["name"].as_str(), group["name"].as_str()) {
            groups
                .entry((stream, name))
                .or_insert((&group["partition_index"], 0))
                .1 += 1;
        }
    }
    let groups = groups.into_iter().map(|((stream, reference), (place, consumers))| {
        json!({"stream": stream, "reference": reference, "partition_index": place, "consumers": consumers})
    });
    groups.collect()
}

fn group_consumers(ask: &Ask<'_>) -> Answer {
    let stream = named(ask)?;
    let reference = ask.line.value("reference").unwrap_or_default();
    let chosen = chosen(ask, GROUP_CONSUMERS)?;
    tell(ask, "Listing group consumers ...")?;
    let members = "queue.name,group,subscription_id,active,connection_details.name";
    let of_group = group_among(all(ask, "consumers", members)?, stream, reference);
    match of_group.as_array().is_some_and(|all| !all.is_empty()) {
        true => pretty(columns::rows(&chosen, &of_group)),
        false => Err(Failure::error(UNAVAILABLE, NO_GROUP)),
    }
}

/// Those of one group, with their state. All are connected: who is not has left the group.
fn group_among(mut consumers: Value, stream: &str, reference: &str) -> Value {
    if let Value::Array(all) = &mut consumers {
        all.retain(|it| it["queue"]["name"] == stream && it["group"]["name"] == reference);
        for consumer in all {
            let state = match consumer["active"] == true {
                true => "active (connected)",
                false => "waiting (connected)",
            };
            consumer["state"] = state.into();
        }
    }
    consumers
}

/// What the node answers about what a stream keeps. `missing` says that there is no such stream, `not_available` that it cannot
/// be asked.
fn tracked(ask: &Ask<'_>, kind: &str, missing: Failure, not_available: &str) -> Result<Value, Failure> {
    let (vhost, stream) = (encode(ask.vhost()), encode(ask.word(0)));
    let answer = ask.call(
        "GET",
        &format!("/stream/{vhost}/{stream}/tracking?type={kind}"),
        None,
    )?;
    match answer.status {
        404 => Err(missing),
        503 => Err(Failure::error(UNAVAILABLE, not_available)),
        _ => ask.accepted(&answer),
    }
}

fn tracking(ask: &Ask<'_>) -> Answer {
    let kinds = ["all", "offset", "writer"];
    let mut given = kinds.into_iter().filter(|kind| ask.line.has(kind));
    let kind = given.next().unwrap_or("all");
    if given.next().is_some() {
        return Err(Failure::usage("Specify only one of --all, --offset, --writer."));
    }
    tell(ask, "Listing tracking information for stream {0} ...")?;
    let missing = Failure::error(UNAVAILABLE, "The stream does not exist.");
    let tracked = tracked(ask, kind, missing, "The stream is not available.")?;
    let rows = numbers(&tracked, "writers", "writer");
    let rows = rows.chain(numbers(&tracked, "offsets", "offset"));
    pretty(Rows {
        columns: ["type", "name", "tracking_value"].map(str::to_owned).into(),
        rows: rows.collect(),
        ..Rows::default()
    })
}

/// The same as `stream_status --tracking` shows it.
pub(super) fn tracked_for_status(ask: &Ask<'_>) -> Answer {
    let missing = Failure::plain(BAD_VALUE, NO_OBJECT);
    let tracked = tracked(ask, "all", missing, "The stream is not available.")?;
    let rows = numbers(&tracked, "offsets", "offset");
    let rows = rows.chain(numbers(&tracked, "writers", "sequence"));
    pretty(Rows {
        columns: ["type", "reference", "value"].map(str::to_owned).into(),
        rows: rows.collect(),
        ..Rows::default()
    })
}

fn numbers<'a>(
    tracked: &'a Value,
    member: &str,
    kind: &'a str,
) -> impl Iterator<Item = Vec<Value>> + use<'a> {
    let all = tracked.get(member).and_then(Value::as_object);
    let all = all.into_iter().flat_map(Map::iter);
    all.map(move |(reference, number)| vec![kind.into(), reference.as_str().into(), number.clone()])
}

fn reset_offset(ask: &Ask<'_>) -> Answer {
    let stream = named(ask)?;
    let reference = ask.line.value("reference").unwrap_or_default();
    if reference.len() > REFERENCE_BYTES {
        return Err(Failure::usage(":reference_too_long"));
    }
    tell(ask, "Resetting stored offset ...")?;
    let (vhost, stream) = (encode(ask.vhost()), encode(stream));
    let path = format!("/leveret/streams/{vhost}/{stream}/offsets/{}", encode(reference));
    let answer = ask.call("DELETE", &path, None)?;
    let refused = |text: &str| Err(Failure::error(UNAVAILABLE, text));
    match answer.status {
        404 if is_about_the_offset(&answer.body) => {
            refused("There is no stored offset for this reference, no need to reset")
        }
        404 => refused("The stream does not exist"),
        503 => refused("The stream is not available"),
        _ => {
            ask.accepted(&answer)?;
            ask.say("Done");
            Ok(Output::Done)
        }
    }
}

/// The stream is there, and keeps no such offset.
fn is_about_the_offset(answer: &[u8]) -> bool {
    let answer: Option<Value> = serde_json::from_slice(answer).ok();
    answer.is_some_and(|answer| text(&answer, "reason") == "offset_not_found")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn consumers() -> Value {
        let one = |stream: &str, group: Option<(&str, i64)>, id: u8, active: bool| {
            let mut row = json!({"queue": {"name": stream}, "subscription_id": id, "active": active,
                "connection_details": {"name": format!("c{id}")}});
            if let Some((name, place)) = group {
                row["group"] = json!({"name": name, "partition_index": place});
            }
            row
        };
        json!([
            one("s", None, 0, true),
            one("s", Some(("g", -1)), 1, false),
            one("s", Some(("g", -1)), 2, true),
            one("s", Some(("f", -1)), 3, true),
            one("t-1", Some(("g", 1)), 4, true),
        ])
    }

    #[test]
    fn groups_of_stream_consumers_are_counted_by_stream_and_name() {
        let expected = json!([
            {"stream": "s", "reference": "f", "partition_index": -1, "consumers": 1},
            {"stream": "s", "reference": "g", "partition_index": -1, "consumers": 2},
            {"stream": "t-1", "reference": "g", "partition_index": 1, "consumers": 1},
        ]);
        assert_eq!(groups_among(&consumers()), expected);
    }

    #[test]
    fn the_stream_consumers_of_a_group_say_whether_they_are_active() {
        let rows = columns::rows(GROUP_CONSUMERS, &group_among(consumers(), "s", "g")).rows;
        let expected = [
            [json!(1), json!("c1"), json!("waiting (connected)")],
            [json!(2), json!("c2"), json!("active (connected)")],
        ];
        assert_eq!(rows, expected);
        assert_eq!(group_among(consumers(), "s", "zork"), json!([]));
    }

    #[test]
    fn what_a_stream_keeps_is_shown_by_reference() {
        let tracked = json!({"offsets": {"a": 7}, "writers": {"p": 9}});
        let rows: Vec<_> = numbers(&tracked, "writers", "writer").collect();
        assert_eq!(rows, [[json!("writer"), json!("p"), json!(9)]]);
        assert_eq!(numbers(&json!({}), "offsets", "offset").count(), 0);
    }
}
