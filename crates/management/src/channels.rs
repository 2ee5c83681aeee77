//! `/api/channels`.

use crate::access::Right;
use crate::call::Call;
use crate::connections::{self, channel_name, details, held_ms, may_see};
use crate::consumers;
use crate::listing::{List, object};
use crate::message_stats::message_stats;
use crate::others::{self, Question};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::samples::channel_key;
use crate::spread::Spread;
use broker::stats::{Channel, Connection};
use serde_json::{Map, Value, json};
use std::cell::OnceCell;
use std::sync::Arc;

pub const ROUTES: &[Route] = &[
    Route {
        path: "/channels",
        verbs: &[("GET", Right::Management, list)],
    },
    Route {
        path: "/channels/:channel",
        verbs: &[("GET", Right::Management, one)],
    },
    Route {
        path: "/connections/:connection/channels",
        verbs: &[("GET", Right::Management, list)],
    },
    Route {
        path: "/vhosts/:vhost/channels",
        verbs: &[("GET", Right::Vhost, list)],
    },
];

/// A channel with its connection; its name is made when somebody asks for it.
struct ChannelRow<'a> {
    connection: &'a Connection,
    channel: &'a Arc<Channel>,
    name: OnceCell<String>,
}

impl ChannelRow<'_> {
    fn name(&self) -> &str {
        self.name
            .get_or_init(|| channel_name(self.connection, self.channel.number))
    }
}

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    if call.given("vhost").is_some() {
        call.vhost()?;
    }
    call.check_samples("bad_request")?;
    let connections = match call.given("connection").map(|_| connections::find(call)) {
        Some(Err(Refusal::NotFound)) => return others::of_whoever_has_it(call, &Question::again(call)),
        Some(found) => vec![found?],
        None => connections::visible(call),
    };
    let channels = call.snapshot.channels.get_or_init(|| {
        let on = |connection: Arc<Connection>| {
            let channels = connection.channels().into_iter();
            channels.map(move |channel| (connection.clone(), channel))
        };
        connections.into_iter().flat_map(on).collect()
    });
    let found = channels.iter().map(|(connection, channel)| ChannelRow {
        connection,
        channel,
        name: OnceCell::new(),
    });
    let list = List {
        name: &|found: &ChannelRow<'_>| found.name(),
        row: &|found| Value::Object(row(call, found.connection, found.channel)),
        member: &|found, path| member(call, found, path),
    };
    if call.given("connection").is_some() {
        return list.reply(&call.query, call.cut, found, channels.len());
    }
    let id = &|found: &ChannelRow<'_>| [found.connection.id, found.channel.number.into()];
    Spread {
        call,
        list,
        id,
        words: Map::new(),
    }
    .reply(found, channels.len())
}

/// The members that people sort by.
fn member(call: &Call<'_>, found: &ChannelRow, path: &str) -> Option<Value> {
    let ChannelRow {
        connection, channel, ..
    } = found;
    Some(match path {
        "name" => found.name().into(),
        "number" => channel.number.into(),
        "vhost" => (*connection.vhost).into(),
        "user" => (*connection.user).into(),
        "consumer_count" => channel.consumer_count().into(),
        "messages_unacknowledged" => channel.unacked().into(),
        "messages_unconfirmed" => channel.unconfirmed().into(),
        "prefetch_count" => channel.prefetch.get().into(),
        "held_ms" => held_ms(call, connection).into(),
        _ => return None,
    })
}

fn one(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.check_samples("bad_request")?;
    let wanted = call.part("channel");
    let (connection, number) = split(wanted).ok_or(Refusal::NotFound)?;
    let mut connections = call.api.broker.stats().connections().into_iter();
    let found = connections
        .find(|known| known.name == connection)
        .and_then(|known| {
            let channel = known
                .channels()
                .into_iter()
                .find(|channel| channel.number == number)?;
            Some((known, channel))
        });
    let Some((connection, channel)) = found else {
        let question = Question {
            body: consumers::words(call).into(),
            ..Question::again(call)
        };
        return others::of_whoever_has_it(call, &question);
    };
    may_see(call, &connection.user)?;
    let mut map = row(call, &connection, &channel);
    let consumers = channel.consumers();
    let consumers = consumers
        .iter()
        .map(|consumer| consumers::row(call, consumer))
        .collect();
    map.insert("consumer_details".into(), consumers);
    map.insert("publishes".into(), json!([]));
    map.insert("deliveries".into(), json!([]));
    Ok(object(&call.query, Value::Object(map)))
}

/// A channel's name, taken apart.
fn split(name: &str) -> Option<(&str, u16)> {
    let (connection, number) = name.strip_suffix(')')?.rsplit_once(" (")?;
    Some((connection, number.parse().ok()?))
}

fn row(call: &Call<'_>, connection: &Connection, channel: &Arc<Channel>) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| map.insert(name.into(), value);
    put("name", channel_name(connection, channel.number).into());
    put("number", channel.number.into());
    put("node", call.api.options.node.as_str().into());
    put("vhost", (*connection.vhost).into());
    put("user", (*connection.user).into());
    put("user_who_performed_action", (*connection.user).into());
    put("connection_details", details(connection));
    put("state", connection.state().of_channel().into());
    put("held_ms", held_ms(call, connection).into());
    put("confirm", (channel.confirms.get() > 0).into());
    put("transactional", (channel.transactional.get() > 0).into());
    put("consumer_count", channel.consumer_count().into());
    put("prefetch_count", channel.prefetch.get().into());
    put("global_prefetch_count", channel.global_prefetch.get().into());
    put("messages_unacknowledged", channel.unacked().into());
    put("messages_unconfirmed", channel.unconfirmed().into());
    put("messages_uncommitted", channel.uncommitted.get().into());
    put("acks_uncommitted", channel.acks_uncommitted.get().into());
    let samples = call.api.sampler.samples();
    let history = samples.channels.get(&channel_key(connection, channel));
    let rates = call.rates(&samples, history);
    if let Some(stats) = message_stats(&rates, &channel.counts.named(), 0) {
        put("message_stats", stats);
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_channels_are_taken_apart_from_the_right() {
        assert_eq!(split("[::1]:1 -> [::1]:2 (12)"), Some(("[::1]:1 -> [::1]:2", 12)));
        for broken in ["", "a", "a (b)", "a (1", "a (70000)"] {
            assert_eq!(split(broken), None, "{broken}");
        }
    }
}
