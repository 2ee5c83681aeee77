//! `/api/bindings`, and the bindings of one queue or exchange.

use crate::access::Right;
use crate::api_session::{ApiSession, CHANNEL};
use crate::arguments::{self, text as text_of};
use crate::call::{Call, queues_of};
use crate::exchanges::{self, real_name};
use crate::json::{destination_type, table, text};
use crate::listing::{List, object};
use crate::properties_key;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::text::encode;
use broker::{Binding, BindingView, Destination, QueueView, Vhost};
use model::table::Table;
use serde_json::{Value, json};

pub const ROUTES: &[Route] = &[
    Route {
        path: "/bindings",
        verbs: &[("GET", Right::Management, list)],
    },
    Route {
        path: "/bindings/:vhost",
        verbs: &[("GET", Right::Vhost, list)],
    },
    Route {
        path: "/queues/:vhost/:name/bindings",
        verbs: &[("GET", Right::Vhost, of_queue)],
    },
    Route {
        path: "/exchanges/:vhost/:exchange/bindings/source",
        verbs: &[("GET", Right::Vhost, from_exchange)],
    },
    Route {
        path: "/exchanges/:vhost/:exchange/bindings/destination",
        verbs: &[("GET", Right::Vhost, to_exchange)],
    },
    Route {
        path: "/bindings/:vhost/e/:source/q/:queue",
        verbs: &[("GET", Right::Vhost, between), ("POST", Right::Vhost, bind)],
    },
    Route {
        path: "/bindings/:vhost/e/:source/e/:destination",
        verbs: &[("GET", Right::Vhost, between), ("POST", Right::Vhost, bind)],
    },
    Route {
        path: "/bindings/:vhost/e/:source/q/:queue/:props",
        verbs: &[("GET", Right::Vhost, one), ("DELETE", Right::Vhost, unbind)],
    },
    Route {
        path: "/bindings/:vhost/e/:source/e/:destination/:props",
        verbs: &[("GET", Right::Vhost, one), ("DELETE", Right::Vhost, unbind)],
    },
];

/// A binding, or what the default exchange does for each queue without one.
#[derive(Clone, Copy)]
enum Shown<'a> {
    Bound(&'a Vhost, &'a BindingView),
    ByName { vhost: &'a str, queue: &'a str },
}

impl<'a> Shown<'a> {
    fn by_name(queue: &'a QueueView) -> Self {
        Self::ByName {
            vhost: &queue.vhost,
            queue: &queue.name,
        }
    }

    fn destination(&self) -> &str {
        match self {
            Self::Bound(_, binding) => binding.destination.name(),
            Self::ByName { queue, .. } => queue,
        }
    }

    fn key(&self) -> String {
        match self {
            Self::Bound(_, binding) => properties_key::of_binding(binding),
            Self::ByName { queue, .. } => properties_key::of(queue.as_bytes(), &Table::new()),
        }
    }

    /// The key without an encoding.
    fn decoded_key(&self) -> String {
        match self {
            Self::Bound(_, binding) => properties_key::decoded(&binding.routing_key, &binding.arguments),
            Self::ByName { queue, .. } => (*queue).to_owned(),
        }
    }

    fn row(&self) -> Value {
        let properties_key = self.key();
        match self {
            Self::Bound(vhost, binding) => json!({
                "source": &*binding.source,
                "vhost": &*vhost.name,
                "destination": &**binding.destination.name(),
                "destination_type": destination_type(&binding.destination),
                "routing_key": text(&binding.routing_key),
                "arguments": table(&binding.arguments),
                "properties_key": properties_key,
            }),
            Self::ByName { vhost, queue } => json!({
                "source": "",
                "vhost": vhost,
                "destination": queue,
                "destination_type": "queue",
                "routing_key": queue,
                "arguments": {},
                "properties_key": properties_key,
            }),
        }
    }
}

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhosts = call.visible_vhosts()?;
    let total = vhosts
        .iter()
        .map(|vhost| queues_of(vhost).count() + vhost.binding_count());
    let shown = vhosts.iter().flat_map(|vhost| {
        let by_name = queues_of(vhost).map(|queue| Shown::by_name(queue));
        by_name.chain(vhost.bindings().map(|binding| Shown::Bound(vhost, binding)))
    });
    reply(call, shown, total.sum())
}

/// RabbitMQ looks at bindings alone here: what does not exist has none, and any name is bound to the default exchange
/// where there is a virtual host.
fn of_queue(call: &Call<'_>) -> Result<Reply, Refusal> {
    let name = call.part("name");
    let Some(vhost) = named_vhost(call) else {
        return reply(call, std::iter::empty(), 0);
    };
    let destination = Destination::Queue(name.into());
    let by_name = Shown::ByName {
        vhost: &vhost.name,
        queue: name,
    };
    let bound = vhost.bindings_to(&destination);
    let bound = bound.map(|binding| Shown::Bound(vhost, binding));
    let shown: Vec<_> = std::iter::once(by_name).chain(bound).collect();
    let total = shown.len();
    reply(call, shown.into_iter(), total)
}

fn from_exchange(call: &Call<'_>) -> Result<Reply, Refusal> {
    let named = named_vhost(call).and_then(|vhost| Some((vhost, exchanges::find(call).ok()?)));
    let Some((vhost, exchange)) = named else {
        return reply(call, std::iter::empty(), 0);
    };
    if exchange.is_default() {
        let by_name = queues_of(vhost).map(|queue| Shown::by_name(queue));
        return reply(call, by_name, queues_of(vhost).count());
    }
    let bound = vhost.bindings_from(exchange);
    let bound = bound.map(|binding| Shown::Bound(vhost, binding));
    reply(call, bound, exchange.binding_count())
}

fn to_exchange(call: &Call<'_>) -> Result<Reply, Refusal> {
    let Some(vhost) = named_vhost(call) else {
        return reply(call, std::iter::empty(), 0);
    };
    let destination = Destination::Exchange(real_name(call.part("exchange")).into());
    let bound = vhost.bindings_to(&destination);
    let shown: Vec<_> = bound.map(|binding| Shown::Bound(vhost, binding)).collect();
    let total = shown.len();
    reply(call, shown.into_iter(), total)
}

fn between(call: &Call<'_>) -> Result<Reply, Refusal> {
    let shown = found(call);
    let total = shown.len();
    reply(call, shown.into_iter(), total)
}

fn one(call: &Call<'_>) -> Result<Reply, Refusal> {
    let shown = existing(call)?;
    let wanted = wanted(call, &shown).ok_or(Refusal::NotFound)?;
    Ok(object(&call.query, wanted.row()))
}

/// The one of the path. RabbitMQ takes the `properties_key` of a list as it is; encoded once more, as clients do that
/// encode every part of an address (and as its own header `location` has it), it works here, too.
fn wanted<'s, 'v>(call: &Call<'_>, shown: &'s [Shown<'v>]) -> Option<&'s Shown<'v>> {
    let key = call.part("props");
    let find = |decoded: &str| shown.iter().find(|shown| shown.decoded_key() == decoded);
    // A list writes a space as a plus.
    find(key)
        .or_else(|| find(&key.replace('+', " ")))
        .or_else(|| shown.iter().find(|shown| shown.key() == key))
}

/// Binds as clients do; the answer says where the binding is.
fn bind(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let routing_key = text_of(&body, "routing_key")?.unwrap_or_default().as_bytes();
    let arguments = arguments::table(&body, "arguments", call.api.broker.limits())?.sorted();
    let key = properties_key::of(routing_key, &arguments);
    change(call, routing_key, arguments, true)?;
    let name = call.given("queue").unwrap_or(call.part("destination"));
    Ok(Reply {
        location: Some(format!("{}/{}", encode(name.as_bytes()), encode(key.as_bytes()))),
        ..Reply::empty(201)
    })
}

fn unbind(call: &Call<'_>) -> Result<Reply, Refusal> {
    let shown = existing(call)?;
    match wanted(call, &shown) {
        Some(Shown::Bound(_, binding)) => {
            change(call, &binding.routing_key, binding.arguments.clone(), false)?;
            Ok(Reply::empty(204))
        }
        Some(Shown::ByName { .. }) => Err(Refusal::not_authorised("Access refused.")),
        None => Err(Refusal::NotFound),
    }
}

fn change(call: &Call<'_>, routing_key: &[u8], arguments: Table, bind: bool) -> Result<(), Refusal> {
    if routing_key.len() > 255 {
        return Err(Refusal::bad_request("routing_key is longer than 255 bytes"));
    }
    let session = ApiSession::open(call)?;
    let destination = destination(call);
    let binding = Binding {
        source: real_name(call.part("source")),
        destination: destination.name(),
        routing_key,
        arguments,
    };
    let broker_session = session.inner();
    let done = match (&destination, bind) {
        (Destination::Queue(_), true) => broker_session.bind_queue(CHANNEL, binding),
        (Destination::Queue(_), false) => broker_session.unbind_queue(CHANNEL, binding),
        (Destination::Exchange(_), true) => broker_session.bind_exchange(CHANNEL, binding),
        (Destination::Exchange(_), false) => broker_session.unbind_exchange(CHANNEL, binding),
    }?;
    session.durable(done.durable)
}

/// The virtual host of the path, if there is one.
fn named_vhost<'a>(call: &'a Call<'_>) -> Option<&'a Vhost> {
    call.view.vhost(call.part("vhost")).map(|vhost| &**vhost)
}

/// The same as [`found`] for one of these bindings, whose destination must exist.
fn existing<'a>(call: &'a Call<'_>) -> Result<Vec<Shown<'a>>, Refusal> {
    let vhost = call.vhost()?;
    let is_there = match destination(call) {
        Destination::Queue(name) => vhost.queue(&name).is_some(),
        Destination::Exchange(name) => vhost.exchange(&name).is_some(),
    };
    match is_there {
        true => Ok(found(call)),
        false => Err(Refusal::NotFound),
    }
}

/// What leads from the path's source to the path's destination.
fn found<'a>(call: &'a Call<'_>) -> Vec<Shown<'a>> {
    let Some(vhost) = named_vhost(call) else {
        return Vec::new();
    };
    let source = real_name(call.part("source"));
    let destination = destination(call);
    let mut shown = Vec::new();
    if source.is_empty()
        && let Some(queue) = call.given("queue")
    {
        shown.push(Shown::ByName {
            vhost: &vhost.name,
            queue,
        });
    }
    let bound = vhost.bindings_to(&destination);
    let bound = bound.filter(|binding| *binding.source == *source);
    shown.extend(bound.map(|binding| Shown::Bound(vhost, binding)));
    shown
}

/// The path's destination.
fn destination(call: &Call<'_>) -> Destination {
    match call.given("queue") {
        Some(queue) => Destination::Queue(queue.into()),
        None => Destination::Exchange(real_name(call.part("destination")).into()),
    }
}

fn reply<'a>(
    call: &Call<'_>,
    shown: impl Iterator<Item = Shown<'a>>,
    total: usize,
) -> Result<Reply, Refusal> {
    let list = List {
        name: &|shown: &Shown<'_>| shown.destination(),
        row: &|shown: &Shown<'_>| shown.row(),
        member: &|_, _| None,
    };
    list.reply(&call.query, call.cut, shown, total)
}
