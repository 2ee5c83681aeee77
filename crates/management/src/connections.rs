//! `/api/connections`: who is connected, as each connection shows it. Nobody waits for a connection.

use crate::access::Right;
use crate::call::Call;
use crate::json::table;
use crate::listing::{List, object};
use crate::others::{self, Question};
use crate::range::Kind;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::spread::Spread;
use broker::stats::{Connection, Secured};
use broker::{CloseReason, Reason};
use model::table::Table;
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub const ROUTES: &[Route] = &[
    Route {
        path: "/connections",
        verbs: &[("GET", Right::Management, list)],
    },
    Route {
        path: "/connections/:connection",
        verbs: &[
            ("GET", Right::Management, one),
            ("DELETE", Right::Management, close),
        ],
    },
    Route {
        path: "/connections/:connection/sessions",
        verbs: &[("GET", Right::Management, sessions)],
    },
    Route {
        path: "/connections/username/:user",
        verbs: &[
            ("GET", Right::Management, list_of_user),
            ("DELETE", Right::Management, close_all_of_user),
        ],
    },
    Route {
        path: "/vhosts/:vhost/connections",
        verbs: &[("GET", Right::Vhost, list)],
    },
];

/// What a client is told if nobody gave a reason (RabbitMQ's words).
const NO_REASON: &str = "Closed via management plugin";

/// The connections that the asker may see: all for who watches the node, else its own; those of the path's virtual host or user.
pub fn visible(call: &Call<'_>) -> Vec<Arc<Connection>> {
    let mut connections = call.api.broker.stats().connections();
    let (vhost, user) = (call.given("vhost"), call.given("user"));
    connections.retain(|connection| {
        (call.is_monitor() || connection.user == call.user.name)
            && vhost.is_none_or(|vhost| *connection.vhost == *vhost)
            && user.is_none_or(|user| *connection.user == *user)
    });
    connections
}

/// RabbitMQ's name of a channel.
pub fn channel_name(connection: &Connection, number: u16) -> String {
    format!("{} ({number})", connection.name)
}

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    if call.given("vhost").is_some() {
        call.vhost()?;
    }
    call.check_samples("bad_request")?;
    listed(call, call.snapshot.connections.get_or_init(|| visible(call)))
}

/// These connections, and those of the same list that other nodes have.
///
/// # Errors
/// The page makes no sense, or lies behind the last one.
pub fn listed(call: &Call<'_>, connections: &[Arc<Connection>]) -> Result<Reply, Refusal> {
    let list = List {
        name: &|connection: &&Arc<Connection>| &connection.name,
        row: &|connection| Value::Object(row(call, connection, &Value::Null)),
        member: &|connection, path| member(call, connection, path),
    };
    let id = &|connection: &&Arc<Connection>| [connection.id, 0];
    Spread {
        call,
        list,
        id,
        words: Map::new(),
    }
    .reply(connections.iter(), connections.len())
}

fn list_of_user(call: &Call<'_>) -> Result<Reply, Refusal> {
    may_see(call, call.part("user"))?;
    list(call)
}

/// The members that people sort by.
fn member(call: &Call<'_>, connection: &Connection, path: &str) -> Option<Value> {
    let rate = |place: usize| {
        let samples = call.api.sampler.samples();
        let history = samples.connections.get(&connection.id);
        history.map_or(0.0, |history| history.rate(samples.now, &[place]))
    };
    Some(match path {
        "name" => connection.name.as_str().into(),
        "vhost" => (*connection.vhost).into(),
        "user" => (*connection.user).into(),
        "state" => connection.state().name().into(),
        "channels" => connection.channel_count().into(),
        "recv_oct" => connection.received_bytes.get().into(),
        "send_oct" => connection.sent_bytes.get().into(),
        "recv_oct_details.rate" => rate(0).into(),
        "send_oct_details.rate" => rate(1).into(),
        "held_ms" => held_ms(call, connection).into(),
        "connected_at" => connection.connected_at_ms.into(),
        _ => return None,
    })
}

/// How long it was not read from, for whatever reason.
pub fn held_ms(call: &Call<'_>, connection: &Connection) -> u64 {
    let now_ms = call.api.broker.now_ms();
    let held = Reason::ALL.into_iter();
    held.map(|reason| connection.held().total_ms(reason, now_ms))
        .sum()
}

fn one(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.check_samples("bad_request")?;
    match find(call) {
        Ok(found) => Ok(shown(call, &found)),
        Err(Refusal::NotFound) => others::of_whoever_has_it(call, &Question::again(call)),
        Err(refusal) => Err(refusal),
    }
}

/// A connection by itself.
pub fn shown(call: &Call<'_>, connection: &Connection) -> Reply {
    // RabbitMQ's list has null where its objects have empty text.
    let row = row(call, connection, &Value::from(""));
    object(&call.query, Value::Object(row))
}

/// Sessions are AMQP 1.0's; in RabbitMQ's words.
fn sessions(call: &Call<'_>) -> Result<Reply, Refusal> {
    if let Err(refusal) = find(call) {
        let connection = call.path.trim_end_matches('/').trim_end_matches("/sessions");
        match refusal {
            Refusal::NotFound => others::of_whoever_has_it(call, &Question::get(connection)).map(|_| ())?,
            refusal => return Err(refusal),
        }
    }
    Err(Refusal::bad_request("connection does not use AMQP 1.0"))
}

/// The connection of the path.
///
/// # Errors
/// There is none, or the asker may not see it.
pub fn find(call: &Call<'_>) -> Result<Arc<Connection>, Refusal> {
    let name = call.part("connection");
    let mut connections = call.api.broker.stats().connections().into_iter();
    let connection = connections
        .find(|connection| connection.name == name)
        .ok_or(Refusal::NotFound)?;
    may_see(call, &connection.user)?;
    Ok(connection)
}

/// # Errors
/// What belongs to this user is neither the asker's nor does the asker watch the node.
pub fn may_see(call: &Call<'_>, user: &str) -> Result<(), Refusal> {
    match call.is_monitor() {
        true => Ok(()),
        false => may_touch(call, user),
    }
}

/// # Errors
/// What belongs to this user is neither the asker's nor is the asker an administrator.
fn may_touch(call: &Call<'_>, user: &str) -> Result<(), Refusal> {
    if call.has_tag("administrator") || *call.user.name == *user {
        return Ok(());
    }
    Err(Refusal::not_authorised("User not authorised to access object"))
}

fn close(call: &Call<'_>) -> Result<Reply, Refusal> {
    let connection = match find(call) {
        Err(Refusal::NotFound) => return others::of_whoever_has_it(call, &closing(call)),
        found => found?,
    };
    close_one(call, &connection)
}

/// Closes a connection of this node.
///
/// # Errors
/// It is neither the asker's nor is the asker an administrator.
pub fn close_one(call: &Call<'_>, connection: &Connection) -> Result<Reply, Refusal> {
    may_touch(call, &connection.user)?;
    end(call, connection);
    Ok(Reply::empty(204))
}

fn close_all_of_user(call: &Call<'_>) -> Result<Reply, Refusal> {
    may_touch(call, call.part("user"))?;
    visible(call).iter().for_each(|connection| end(call, connection));
    let nodes = others::running(call);
    let questions = nodes.iter().map(|node| (node.clone(), closing(call)));
    let answers = others::ask(call, questions.collect());
    let mut told = nodes.into_iter().zip(answers);
    match told.find(|(_, answer)| answer.as_ref().is_none_or(|answer| answer.status != 204)) {
        None => Ok(Reply::empty(204)),
        Some((node, _)) => Err(Refusal::Unreachable(node)),
    }
}

/// The request to close something, for another node.
pub fn closing(call: &Call<'_>) -> Question {
    Question {
        verb: "DELETE",
        reason: call.header("x-reason").map(str::to_owned),
        ..Question::again(call)
    }
}

fn end(call: &Call<'_>, connection: &Connection) {
    let reason = call.header("x-reason").unwrap_or(NO_REASON);
    tracing::info!(
        area = "management",
        "user '{}' closes connection {}: {reason}",
        call.user.name,
        connection.name
    );
    connection.close(CloseReason::Operator(reason.to_owned()));
}

fn row(call: &Call<'_>, connection: &Connection, nothing: &Value) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| map.insert(name.into(), value);
    put("name", connection.name.as_str().into());
    put("node", call.api.options.node.as_str().into());
    put("type", "network".into());
    put("protocol", connection.protocol.name.into());
    put("state", connection.state().name().into());
    put("user", (*connection.user).into());
    put("user_who_performed_action", (*connection.user).into());
    put("vhost", (*connection.vhost).into());
    put("auth_mechanism", connection.mechanism.into());
    put("connected_at", connection.connected_at_ms.into());
    put("channels", connection.channel_count().into());
    for (name, value) in &connection.agreed {
        put(name, (*value).into());
    }
    put("host", connection.host().into());
    put("port", connection.local.port().into());
    put("peer_host", connection.peer_host().into());
    put("peer_port", connection.peer.port().into());
    let properties = connection.client_properties();
    if let Some(name) = name_in(&properties) {
        put("user_provided_name", name);
    }
    put("client_properties", table(&properties));
    put("ssl", connection.security.is_some().into());
    let security = connection.security.as_deref();
    for name in Secured::NAMES {
        let known = security.map_or("", |security| security.value(name));
        put(
            name,
            if known.is_empty() {
                nothing.clone()
            } else {
                known.into()
            },
        );
    }
    put("held_ms", held_ms(call, connection).into());
    put("recv_cnt", connection.reads.get().into());
    put("send_cnt", connection.writes.get().into());
    put("send_pend", 0.into());
    let samples = call.api.sampler.samples();
    let rates = call.rates(&samples, samples.connections.get(&connection.id));
    let (received, sent) = (connection.received_bytes.get(), connection.sent_bytes.get());
    rates.put(&mut map, Kind::Bytes, "recv_oct", received, &[0]);
    rates.put(&mut map, Kind::Bytes, "send_oct", sent, &[1]);
    map
}

/// What the application calls its connection.
pub fn given_name(connection: &Connection) -> Option<Value> {
    name_in(&connection.client_properties())
}

fn name_in(properties: &Table) -> Option<Value> {
    let name = properties.get("connection_name")?.as_str()?;
    Some(name.into())
}

/// What other objects show of a connection.
pub fn details(connection: &Connection) -> Value {
    let mut details = json!({
        "name": connection.name,
        "peer_host": connection.peer_host(),
        "peer_port": connection.peer.port(),
    });
    if let Some(name) = given_name(connection) {
        details["user_provided_name"] = name;
    }
    details
}
