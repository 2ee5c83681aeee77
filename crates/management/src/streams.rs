//! `/api/stream`: connections of the stream protocol, who publishes and who consumes on them, as each connection shows it. Nobody
//! waits for a connection or a stream.

use crate::access::Right;
use crate::call::Call;
use crate::connections;
use crate::consumers::{stream_activity, stream_properties};
use crate::listing::List;
use crate::others::{self, Question};
use crate::pieces::Cut;
use crate::queues;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::spread::Spread;
use broker::stats::{Connection, StreamConsumer, StreamPublisher};
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};

pub const ROUTES: &[Route] = &[
    Route {
        path: "/stream/connections",
        verbs: &[("GET", Right::Management, list_connections)],
    },
    Route {
        path: "/stream/connections/:vhost",
        verbs: &[("GET", Right::VhostOrMonitor, list_connections)],
    },
    Route {
        path: "/stream/connections/:vhost/:connection",
        verbs: &[
            ("GET", Right::Management, one),
            ("DELETE", Right::Management, close),
        ],
    },
    Route {
        path: "/stream/connections/:vhost/:connection/consumers",
        verbs: &[("GET", Right::Management, consumers_of_one)],
    },
    Route {
        path: "/stream/connections/:vhost/:connection/publishers",
        verbs: &[("GET", Right::Management, publishers_of_one)],
    },
    Route {
        path: "/stream/consumers",
        verbs: &[("GET", Right::Management, consumers)],
    },
    Route {
        path: "/stream/consumers/:vhost",
        verbs: &[("GET", Right::VhostOrMonitor, consumers)],
    },
    // Ours, as RabbitMQ has it for publishers.
    Route {
        path: "/stream/consumers/:vhost/:name",
        verbs: &[("GET", Right::VhostOrMonitor, consumers)],
    },
    Route {
        path: "/stream/publishers",
        verbs: &[("GET", Right::Management, publishers)],
    },
    Route {
        path: "/stream/publishers/:vhost",
        verbs: &[("GET", Right::VhostOrMonitor, publishers)],
    },
    Route {
        path: "/stream/publishers/:vhost/:name",
        verbs: &[("GET", Right::VhostOrMonitor, publishers)],
    },
];

/// RabbitMQ's name of the protocol.
const PROTOCOL: &str = "stream";

/// The connections of the stream protocol that the asker may see, of the path's virtual host if it names one.
fn visible(call: &Call<'_>) -> Vec<Arc<Connection>> {
    let mut connections = connections::visible(call);
    connections.retain(|connection| connection.protocol.name == PROTOCOL);
    connections
}

fn check_vhost(call: &Call<'_>) -> Result<(), Refusal> {
    match call.given("vhost") {
        Some(_) => call.vhost().map(drop),
        None => Ok(()),
    }
}

fn list_connections(call: &Call<'_>) -> Result<Reply, Refusal> {
    check_vhost(call)?;
    call.check_samples("bad_request")?;
    connections::listed(call, call.snapshot.connections.get_or_init(|| visible(call)))
}

/// The connection of the path.
///
/// # Errors
/// There is none, it is of another virtual host or protocol, or the asker may not see it.
fn find(call: &Call<'_>) -> Result<Arc<Connection>, Refusal> {
    let found = connections::find(call)?;
    let is_meant = found.protocol.name == PROTOCOL && *found.vhost == *call.part("vhost");
    is_meant.then_some(found).ok_or(Refusal::NotFound)
}

/// What is said of the connection of the path, by the node that it is on.
fn said_of_one(
    call: &Call<'_>,
    question: fn(&Call<'_>) -> Question,
    say: impl FnOnce(&Arc<Connection>) -> Result<Reply, Refusal>,
) -> Result<Reply, Refusal> {
    match find(call) {
        Ok(found) => say(&found),
        Err(Refusal::NotFound) => others::of_whoever_has_it(call, &question(call)),
        Err(refusal) => Err(refusal),
    }
}

fn one(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.check_samples("bad_request")?;
    said_of_one(call, Question::again, |found| Ok(connections::shown(call, found)))
}

fn close(call: &Call<'_>) -> Result<Reply, Refusal> {
    said_of_one(call, connections::closing, |found| {
        connections::close_one(call, found)
    })
}

fn consumers_of_one(call: &Call<'_>) -> Result<Reply, Refusal> {
    said_of_one(call, Question::again, |found| CONSUMERS.of_one(call, found))
}

fn publishers_of_one(call: &Call<'_>) -> Result<Reply, Refusal> {
    said_of_one(call, Question::again, |found| PUBLISHERS.of_one(call, found))
}

fn consumers(call: &Call<'_>) -> Result<Reply, Refusal> {
    CONSUMERS.listed(call, &call.snapshot.stream_consumers)
}

fn publishers(call: &Call<'_>) -> Result<Reply, Refusal> {
    PUBLISHERS.listed(call, &call.snapshot.stream_publishers)
}

/// What connections have of one kind, and how that is shown.
struct Kind<T> {
    of: fn(&Connection) -> Vec<Arc<T>>,
    stream: fn(&T) -> &str,
    id: fn(&T) -> u8,
    row: fn(&Call<'_>, &Connection, &T) -> Value,
}

/// Something that a connection has.
type On<T> = (Arc<Connection>, Arc<T>);

const CONSUMERS: Kind<StreamConsumer> = Kind {
    of: Connection::stream_consumers,
    stream: |consumer| &consumer.stream,
    id: |consumer| consumer.id,
    row: consumer_row,
};

const PUBLISHERS: Kind<StreamPublisher> = Kind {
    of: Connection::stream_publishers,
    stream: |publisher| &publisher.stream,
    id: |publisher| publisher.id,
    row: publisher_row,
};

impl<T> Kind<T> {
    fn among(&self, connections: &[Arc<Connection>]) -> Vec<On<T>> {
        let all = connections.iter().flat_map(|connection| {
            let on_it = (self.of)(connection).into_iter();
            on_it.map(|it| (connection.clone(), it))
        });
        all.collect()
    }

    /// Those that the asker may see, of the path's virtual host and stream if it names them. `kept` keeps them for further
    /// pieces of the answer.
    fn listed(&self, call: &Call<'_>, kept: &OnceLock<Vec<On<T>>>) -> Result<Reply, Refusal> {
        check_vhost(call)?;
        let stream = call.given("name");
        if stream.is_some() {
            queues::find(call)?;
        }
        let all = || {
            let mut all = self.among(&visible(call));
            all.retain(|(_, it)| stream.is_none_or(|stream| (self.stream)(it) == stream));
            all
        };
        self.reply(call, kept.get_or_init(all))
    }

    /// What one connection has: 256 at most.
    fn of_one(&self, call: &Call<'_>, connection: &Arc<Connection>) -> Result<Reply, Refusal> {
        let all = self.among(std::slice::from_ref(connection));
        let list = List {
            name: &|(_, it): &&On<T>| (self.stream)(it),
            row: &|(connection, it)| (self.row)(call, connection, it),
            member: &|_, _| None,
        };
        list.reply(&call.query, Cut::Whole, all.iter(), all.len())
    }

    /// These, and those of the same list that other nodes have.
    fn reply(&self, call: &Call<'_>, all: &[On<T>]) -> Result<Reply, Refusal> {
        let list = List {
            name: &|(_, it): &&On<T>| (self.stream)(it),
            row: &|(connection, it)| (self.row)(call, connection, it),
            member: &|_, _| None,
        };
        let spread = Spread {
            call,
            list,
            id: &|(connection, it)| [connection.id, (self.id)(it).into()],
            words: Map::new(),
        };
        spread.reply(all.iter(), all.len())
    }
}

/// RabbitMQ's object. Its `offset` is the first one of the chunk that was sent last, and its `offset_lag` counts from there, so
/// that one that has been sent everything may lag; here both are of the last message that was sent or passed over.
fn consumer_row(call: &Call<'_>, connection: &Connection, consumer: &StreamConsumer) -> Value {
    let consumed = consumer.consumed.get();
    let (offset, lag) = match consumer.next() {
        None => (0, 0),
        Some(next) => {
            let queue = call.view.queue(&connection.vhost, &consumer.stream);
            let queue = queue.and_then(|queue| call.api.broker.queues().copy(queue.id));
            let committed = queue.and_then(|queue| queue.committed());
            (
                next.saturating_sub(u64::from(consumed > 0)),
                committed.unwrap_or_default().saturating_sub(next),
            )
        }
    };
    let mut row = json!({
        "queue": queue_of(connection, &consumer.stream),
        "connection_details": details(call, connection),
        "subscription_id": consumer.id,
        "credits": consumer.credits.get(),
        "consumed": consumed,
        "offset": offset,
        "offset_lag": lag,
        "active": consumer.is_active(),
        "activity_status": stream_activity(consumer),
        "properties": stream_properties(consumer),
    });
    if let Some(group) = &consumer.group {
        // Ours, for the command line, which lists groups: without a super stream the place is −1, as in RabbitMQ's list.
        let place = group.partition.map_or(-1, i64::from);
        row["group"] = json!({"name": group.name, "partition_index": place});
    }
    row
}

fn publisher_row(call: &Call<'_>, connection: &Connection, publisher: &StreamPublisher) -> Value {
    json!({
        "queue": queue_of(connection, &publisher.stream),
        "connection_details": details(call, connection),
        "publisher_id": publisher.id,
        "reference": String::from_utf8_lossy(&publisher.reference),
        "published": publisher.published.get(),
        "confirmed": publisher.confirmed.get(),
        "errored": publisher.errored.get(),
    })
}

fn queue_of(connection: &Connection, stream: &str) -> Value {
    json!({"name": stream, "vhost": &*connection.vhost})
}

fn details(call: &Call<'_>, connection: &Connection) -> Value {
    json!({
        "name": connection.name,
        "user": &*connection.user,
        "node": call.api.options.node,
        "peer_host": connection.peer_host(),
        "peer_port": connection.peer.port(),
    })
}
