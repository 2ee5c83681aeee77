//! The document of definitions as text: written row by row, so that it takes the memory of a piece, however much is declared.

use crate::call::{Api, queues_of};
use crate::import::is_of_the_server;
use crate::import_options::CONVERTED_FROM;
use crate::json;
use crate::parameters;
use crate::pieces::{Cut, Piece};
use crate::policies;
use crate::reply::Reply;
use broker::{BindingView, Destination, Exchange, PolicyKind, QueueView, Vhost};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The members of a document, in the order of their names.
pub struct Document<'a>(BTreeMap<&'static str, Member<'a>>);

/// A member: small, or a list whose rows are made one at a time.
enum Member<'a> {
    Small(Value),
    List(Box<dyn Iterator<Item = Row<'a>> + 'a>),
}

/// Something that was declared.
enum Row<'a> {
    /// As it is to be shown.
    Made(Value),
    /// As it is to be shown where the virtual host is named.
    OfVhost(Value),
    Exchange(&'a Exchange),
    Queue(&'a QueueView),
    Binding(&'a Vhost, &'a BindingView),
}

impl<'a> Document<'a> {
    /// A document of this format, with nothing in it.
    pub fn of(api: &Api, format: &str) -> Self {
        let version = api.options.rabbitmq_version.as_str();
        let mut document = Self(BTreeMap::new());
        for (name, value) in [
            ("rabbit_version", version),
            ("rabbitmq_version", version),
            ("product_name", "Leveret"),
            ("product_version", env!("CARGO_PKG_VERSION")),
            ("rabbitmq_definition_format", format),
        ] {
            document.put(name, value);
        }
        document
    }

    /// Adds a small member.
    pub fn put(&mut self, name: &'static str, value: impl Into<Value>) {
        self.0.insert(name, Member::Small(value.into()));
    }

    /// Adds a list.
    pub fn list(&mut self, name: &'static str, rows: impl Iterator<Item = Value> + 'a) {
        self.rows(name, rows.map(Row::Made));
    }

    fn rows(&mut self, name: &'static str, rows: impl Iterator<Item = Row<'a>> + 'a) {
        self.0.insert(name, Member::List(Box::new(rows)));
    }

    /// Adds what is worth keeping of these virtual hosts: not what is the server's, nor what is one connection's.
    pub fn put_objects(&mut self, vhosts: &'a [&'a Arc<Vhost>]) {
        let vhosts = || vhosts.iter().copied();
        let policies = |vhost: &'a Arc<Vhost>| vhost.policies().all(PolicyKind::User);
        let row = |policy| Row::OfVhost(Value::Object(policies::row(policy)));
        self.rows(
            "policies",
            vhosts().flat_map(policies).map(move |policy| row(policy)),
        );
        let own = vhosts().flat_map(|vhost| parameters::of_vhost(vhost, None));
        self.rows("parameters", own.map(Row::OfVhost));
        let exchanges = vhosts().flat_map(|vhost| vhost.exchanges());
        let kept = exchanges.filter(|one| !is_of_the_server(&one.name));
        self.rows("exchanges", kept.map(Row::Exchange));
        let queues = vhosts().flat_map(|vhost| queues_of(vhost));
        let kept = queues.filter(|queue| !queue.is_exclusive());
        self.rows("queues", kept.map(|queue| Row::Queue(queue)));
        let kept = |vhost: &'a Arc<Vhost>| {
            let bindings = vhost.bindings().filter(|it| !is_of_one_connection(vhost, it));
            bindings.map(|binding| Row::Binding(vhost, binding))
        };
        self.rows("bindings", vhosts().flat_map(kept));
    }

    /// The piece of it that is asked for; rows name their virtual hosts if there may be several.
    pub fn reply(self, cut: Cut, with_vhost: bool) -> Reply {
        let mut piece = Piece::of(cut);
        let written = self.write(&mut piece, with_vhost);
        Reply::piece(piece.end(written))
    }

    fn write(self, piece: &mut Piece, with_vhost: bool) -> ControlFlow<()> {
        let mut before = '{';
        for (name, member) in self.0 {
            match member {
                Member::Small(value) => piece.part(|| format!("{before}\"{name}\":{value}"))?,
                Member::List(rows) => {
                    piece.part(|| format!("{before}\"{name}\":"))?;
                    piece.rows(rows, |row| row.value(with_vhost))?;
                }
            }
            before = ',';
        }
        piece.part(|| "}".to_owned())
    }
}

/// True if the binding goes with the exclusive queue that it leads to.
fn is_of_one_connection(vhost: &Vhost, binding: &BindingView) -> bool {
    match &binding.destination {
        Destination::Queue(name) => vhost.queue(name).is_some_and(|queue| queue.is_exclusive()),
        Destination::Exchange(_) => false,
    }
}

impl Row<'_> {
    fn value(&self, with_vhost: bool) -> Value {
        let (vhost, mut value) = match self {
            Self::Made(value) => return value.clone(),
            Self::OfVhost(value) => {
                let mut value = value.clone();
                if let (false, Value::Object(members)) = (with_vhost, &mut value) {
                    members.remove("vhost");
                }
                return value;
            }
            Self::Exchange(exchange) => (&*exchange.vhost, exchange_row(exchange)),
            Self::Queue(queue) => (&*queue.vhost, queue_row(queue)),
            Self::Binding(vhost, binding) => (&*vhost.name, binding_row(binding)),
        };
        if with_vhost {
            value["vhost"] = vhost.into();
        }
        value
    }
}

fn exchange_row(exchange: &Exchange) -> Value {
    json!({
        "name": &*exchange.name,
        "type": exchange.kind.name(),
        "durable": exchange.is_durable(),
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": json::table(&exchange.arguments),
    })
}

fn queue_row(queue: &QueueView) -> Value {
    let mut row = json!({
        "name": &*queue.name,
        "type": queue.kind.name(),
        "durable": queue.is_durable(),
        "auto_delete": queue.auto_delete,
        "arguments": json::table(&queue.arguments),
    });
    // RabbitMQ reads the members of a queue that it knows, and no others.
    if let Some(before) = &queue.other_arguments {
        row[CONVERTED_FROM] = json!({ "arguments": json::table(before) });
    }
    row
}

fn binding_row(binding: &BindingView) -> Value {
    json!({
        "source": &*binding.source,
        "destination": &**binding.destination.name(),
        "destination_type": json::destination_type(&binding.destination),
        "routing_key": json::text(&binding.routing_key),
        "arguments": json::table(&binding.arguments),
    })
}
