//! `/api/definitions`: everything that was declared as one JSON document, in RabbitMQ's form, both ways.
//!
//! The same objects give the same bytes: members are in the order of their names, objects in the catalog's.

use crate::access::Right;
use crate::arguments::{self, boolean, text};
use crate::bindings::kind;
use crate::call::{Call, Hall, NO_VHOST, queues_of};
use crate::grants::Grant;
use crate::import_mark::is_mark;
use crate::json;
use crate::limits;
use crate::multipart;
use crate::parameters;
use crate::policies;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::Route;
use crate::topic_permissions;
use crate::users::{self, hash_of, tags};
use crate::vhosts;
use broker::{
    Administrator, Broker, DeclareExchange, DeclareQueue, Destination, Permissions, PolicyKind, QuotaOf,
    Vhost, View,
};
use hyper::body::Bytes;
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub const ROUTES: &[Route] = &[
    Route {
        path: "/definitions",
        verbs: &[
            ("GET", Right::Administrator, export),
            ("POST", Right::Administrator, upload),
        ],
    },
    // The name that RabbitMQ 1 had for it; RabbitMQ 4 still answers to it.
    Route {
        path: "/all-configuration",
        verbs: &[
            ("GET", Right::Administrator, export),
            ("POST", Right::Administrator, upload),
        ],
    },
    Route {
        path: "/definitions/:vhost",
        verbs: &[
            ("GET", Right::Administrator, export_vhost),
            ("POST", Right::Administrator, upload_vhost),
        ],
    },
];

/// What a refused import says.
type Outcome<T = ()> = Result<T, String>;

fn head(hall: &Hall) -> Map<String, Value> {
    let version = hall.options.rabbitmq_version.as_str();
    let head = json!({
        "rabbit_version": version,
        "rabbitmq_version": version,
        "product_name": "Leveret",
        "product_version": env!("CARGO_PKG_VERSION"),
    });
    head.as_object().cloned().unwrap_or_default()
}

fn export(call: &Call<'_>) -> Result<Reply, Refusal> {
    let view = &call.view;
    let cluster = call.hall.broker.cluster_name();
    let mut document = head(call.hall);
    let vhosts: Vec<&Arc<Vhost>> = view.vhosts().collect();
    let named = |vhost: &&Arc<Vhost>| json!({"name": &*vhost.name, "limits": limits::row(vhost.quota()), "metadata": vhosts::metadata_row(vhost)});
    let mut globals = parameters::set_globals(view);
    globals.retain(|row| !row["name"].as_str().is_some_and(is_mark));
    for (name, value) in [
        ("rabbitmq_definition_format", "cluster".into()),
        ("original_cluster_name", cluster.as_str().into()),
        (
            "explanation",
            format!("Definitions of cluster '{cluster}'").into(),
        ),
        ("global_parameters", globals.into()),
        (
            "topic_permissions",
            view.topic_permissions().map(Grant::row).collect(),
        ),
        ("users", view.users().map(|user| users::row(view, user)).collect()),
        ("vhosts", vhosts.iter().map(named).collect()),
        ("permissions", view.permissions().map(Grant::row).collect()),
    ] {
        document.insert(name.into(), value);
    }
    put_objects(&mut document, &vhosts, true);
    Ok(reply(call, document))
}

fn export_vhost(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhost = call.vhost().map_err(|_| Refusal::bad_request(NO_VHOST))?;
    let mut document = head(call.hall);
    for (name, value) in [
        ("rabbitmq_definition_format", json!("single_virtual_host")),
        ("original_vhost_name", json!(&*vhost.name)),
        (
            "explanation",
            json!(format!("Definitions of virtual host '{}'", vhost.name)),
        ),
        ("limits", limits::row(vhost.quota())),
        ("metadata", vhosts::metadata_row(vhost)),
    ] {
        document.insert(name.into(), value);
    }
    put_objects(&mut document, &[vhost], false);
    Ok(reply(call, document))
}

fn reply(call: &Call<'_>, document: Map<String, Value>) -> Reply {
    Reply {
        download: call.query.get("download").map(str::to_owned),
        ..Reply::json(&Value::Object(document))
    }
    .unless_known(call.header("if-none-match"))
}

/// Exchanges, queues and bindings that are worth keeping: not those of the server, nor those of one connection.
fn put_objects(document: &mut Map<String, Value>, vhosts: &[&Arc<Vhost>], with_vhost: bool) {
    let (mut exchanges, mut queues, mut bindings) = (Vec::new(), Vec::new(), Vec::new());
    let (mut policies, mut of_components) = (Vec::new(), Vec::new());
    for vhost in vhosts {
        let placed = |mut object: Value| {
            if with_vhost {
                object["vhost"] = (&*vhost.name).into();
            }
            object
        };
        let users = vhost.policies().all(PolicyKind::User).into_iter();
        policies.extend(users.map(|policy| {
            let mut row = policies::row(policy);
            row.retain(|name, _| with_vhost || name != "vhost");
            Value::Object(row)
        }));
        let own = parameters::of_vhost(vhost, None).into_iter();
        of_components.extend(own.map(|mut row| {
            if let Value::Object(members) = &mut row {
                members.retain(|name, _| with_vhost || name != "vhost");
            }
            row
        }));
        let own = vhost.exchanges().filter(|one| !is_of_the_server(&one.name));
        exchanges.extend(own.map(|exchange| {
            placed(json!({
                "name": &*exchange.name,
                "type": exchange.kind.name(),
                "durable": exchange.durable,
                "auto_delete": exchange.auto_delete,
                "internal": exchange.internal,
                "arguments": json::table(&exchange.arguments),
            }))
        }));
        let shared = queues_of(vhost).filter(|queue| queue.owner.is_none());
        queues.extend(shared.map(|queue| {
            placed(json!({
                "name": &*queue.name,
                "type": "classic",
                "durable": queue.durable,
                "auto_delete": queue.auto_delete,
                "arguments": json::table(&queue.arguments),
            }))
        }));
        let of_one_connection = |name: &str| vhost.queue(name).is_some_and(|queue| queue.owner.is_some());
        let kept = vhost.bindings().filter(|binding| match &binding.destination {
            Destination::Queue(name) => !of_one_connection(name),
            Destination::Exchange(_) => true,
        });
        bindings.extend(kept.map(|binding| {
            placed(json!({
                "source": &*binding.source,
                "destination": &**binding.destination.name(),
                "destination_type": kind(&binding.destination),
                "routing_key": json::text(&binding.routing_key),
                "arguments": json::table(&binding.arguments),
            }))
        }));
    }
    document.insert("policies".into(), policies.into());
    document.insert("parameters".into(), of_components.into());
    document.insert("exchanges".into(), exchanges.into());
    document.insert("queues".into(), queues.into());
    document.insert("bindings".into(), bindings.into());
}

fn is_of_the_server(name: &str) -> bool {
    name.is_empty() || name.starts_with("amq.")
}

fn upload(call: &Call<'_>) -> Result<Reply, Refusal> {
    // Who imports may do everything in the virtual hosts that come; an operator may anyhow, and is no user.
    let asker = (!call.operator).then_some(&*call.user.name);
    import(&call.administrator(), &uploaded(call)?, None, asker).map_err(Refusal::bad_request)?;
    Ok(Reply::empty(204))
}

fn upload_vhost(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhost = call.target_vhost()?;
    import(&call.administrator(), &uploaded(call)?, Some(&vhost.name), None).map_err(Refusal::bad_request)?;
    Ok(Reply::empty(204))
}

/// The document: the body, or the field `file` if the body is a form.
fn uploaded(call: &Call<'_>) -> Result<Bytes, Refusal> {
    multipart::document(call.header("content-type"), call.body, "file")
        .ok_or_else(|| Refusal::bad_request("not_json: the form has no field \"file\""))
}

/// Makes what a document of definitions says, in the order in which objects need each other. Exchanges and queues that exist stay as
/// they are, as in RabbitMQ. With `vhost`, only exchanges, queues and bindings are looked at, and made there.
/// An `asker` may do everything in the virtual hosts that are new.
///
/// # Errors
/// The document is no JSON object, asks for what this version does not have (then nothing was changed), or an object is
/// refused (then what stands before it was made). The text names the object.
pub fn import(by: &Administrator<'_>, document: &[u8], vhost: Option<&str>, asker: Option<&str>) -> Outcome {
    let document = match document.is_empty() {
        true => Map::new(),
        false => match serde_json::from_slice(document) {
            Ok(Value::Object(map)) => map,
            Ok(_) => return Err("not_json".into()),
            Err(error) => return Err(format!("not_json: {error}")),
        },
    };
    let broker = by.broker();
    let import = Import {
        broker,
        by: &by.in_bulk(),
        vhost,
        asker,
    };
    let outcome = import.all(&document);
    let durable = broker.make_durable().map_err(|refusal| refusal.to_string());
    outcome.and(durable)
}

struct Import<'a> {
    broker: &'a Broker,
    by: &'a Administrator<'a>,
    vhost: Option<&'a str>,
    asker: Option<&'a str>,
}

impl Import<'_> {
    fn all(&self, document: &Map<String, Value>) -> Outcome {
        type Step<'a> = fn(&Import<'a>, &View, &Map<String, Value>) -> Result<(), Refusal>;
        let steps: [(&str, &str, Step<'_>); 10] = [
            ("users", "name", Import::user),
            ("vhosts", "name", Import::virtual_host),
            ("permissions", "user", Import::permission),
            ("global_parameters", "name", Import::global),
            ("policies", "name", Import::policy),
            ("parameters", "name", Import::parameter),
            ("exchanges", "name", Import::exchange),
            ("topic_permissions", "user", Import::topic_permission),
            ("queues", "name", Import::queue),
            ("bindings", "source", Import::binding),
        ];
        let of_the_whole = [
            "users",
            "vhosts",
            "permissions",
            "global_parameters",
            "topic_permissions",
        ];
        for (class, name, step) in steps {
            if self.vhost.is_some() && of_the_whole.contains(&class) {
                continue;
            }
            let view = self.broker.view();
            for object in objects(document, class)? {
                let make = || match object {
                    Value::Object(object) => step(self, &view, object),
                    _ => Err(Refusal::bad_request("not an object")),
                };
                make().map_err(|refusal| {
                    let reason = refusal.body().map(|body| body["reason"].clone());
                    let reason = match reason {
                        Some(Value::String(text)) => text,
                        other => other.unwrap_or_default().to_string(),
                    };
                    let name = object.get(name).and_then(Value::as_str).unwrap_or_default();
                    format!("{class}: '{name}': {reason}")
                })?;
            }
        }
        Ok(())
    }

    fn user(&self, view: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let name = needed(object, "name")?;
        users::refuse_two_passwords(object)?;
        let tags = tags(
            object
                .get("tags")
                .ok_or_else(|| Refusal::bad_request("tags_not_present"))?,
        )?;
        let password = match (text(object, "password")?, text(object, "password_hash")?) {
            (_, Some(hash)) if !hash.is_empty() => Some(hash_of(object, hash)?),
            (Some(password), _) => Some(self.broker.hash_password(password.as_bytes())?),
            _ => None,
        };
        let known = view.user(name);
        if !known.is_some_and(|known| known.tags == tags && known.password() == password.as_ref()) {
            self.by.put_user(name, password, tags)?;
        }
        self.limits(QuotaOf::User(name.into()), object)
    }

    fn virtual_host(&self, view: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let name = needed(object, "name")?;
        // RabbitMQ 3.8 had the members of `metadata` beside the name.
        let said = object
            .get("metadata")
            .and_then(Value::as_object)
            .unwrap_or(object);
        vhosts::refuse_what_is_not_kept(said)?;
        let protected = boolean(said, "protected_from_deletion")?;
        let metadata = vhosts::metadata(said, protected)?;
        if view.vhost(name).is_none() {
            self.by.create_vhost(name)?;
            if let Some(asker) = self.asker {
                self.by.set_permissions(asker, name, Permissions::all())?;
            }
        }
        if self
            .broker
            .view()
            .vhost(name)
            .is_some_and(|known| *known.metadata() != metadata)
        {
            self.by.describe_vhost(name, metadata)?;
        }
        self.limits(QuotaOf::Vhost(name.into()), object)
    }

    fn permission(&self, view: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let (user, vhost) = (needed(object, "user")?, needed(object, "vhost")?);
        let permissions = Permissions {
            configure: needed(object, "configure")?.to_owned(),
            write: needed(object, "write")?.to_owned(),
            read: needed(object, "read")?.to_owned(),
        };
        let same = view.permission(user, vhost).is_some_and(|known| {
            let sources = [&known.configure, &known.write, &known.read].map(|pattern| pattern.source());
            sources == [&permissions.configure, &permissions.write, &permissions.read]
        });
        match same {
            true => Ok(()),
            false => Ok(self.by.set_permissions(user, vhost, permissions)?),
        }
    }

    fn policy(&self, _: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let (name, vhost) = (needed(object, "name")?, self.vhost_of(object)?);
        policies::make(self.by, vhost, PolicyKind::User, name, object)
    }

    fn parameter(&self, _: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let (name, vhost) = (needed(object, "name")?, self.vhost_of(object)?);
        let value = object.get("value").unwrap_or(&Value::Null);
        parameters::make(self.by, vhost, needed(object, "component")?, name, value)
    }

    fn global(&self, view: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let value = object.get("value").unwrap_or(&Value::Null);
        match needed(object, "name")? {
            // Who a cluster is is no setting.
            broker::CLUSTER_ID => Ok(()),
            // It tells of an import into another node.
            name if is_mark(name) => Ok(()),
            // The name that the configuration gives needs no parameter.
            "cluster_name" if *value == *self.broker.cluster_name() => Ok(()),
            name if view
                .global(name)
                .is_some_and(|known| json::value(known) == *value) =>
            {
                Ok(())
            }
            name => parameters::make_global(self.by, name, value),
        }
    }

    fn topic_permission(&self, _: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let (user, vhost) = (needed(object, "user")?, needed(object, "vhost")?);
        topic_permissions::make(self.by, user, vhost, object)
    }

    /// The limits that a user or virtual host is to have besides those it has.
    fn limits(&self, of: QuotaOf, object: &Map<String, Value>) -> Result<(), Refusal> {
        let members = object.get("limits").and_then(Value::as_object);
        if let Some(members) = members {
            let limits = limits::read(&of, members)?;
            limits::add(self.by, of, limits)?;
        }
        Ok(())
    }

    fn exchange(&self, view: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let (name, vhost) = (needed(object, "name")?, self.vhost_of(object)?);
        if is_of_the_server(name) || view.exchange(vhost, name).is_some() {
            return Ok(());
        }
        let declare = DeclareExchange {
            name: name.to_owned(),
            kind: needed(object, "type")?.to_owned(),
            passive: false,
            durable: boolean(object, "durable")?,
            auto_delete: boolean(object, "auto_delete")?,
            internal: boolean(object, "internal")?,
            arguments: arguments::table(object, "arguments", self.broker.limits())?,
        };
        Ok(self.by.install_exchange(vhost, declare)?)
    }

    fn queue(&self, view: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let (name, vhost) = (needed(object, "name")?, self.vhost_of(object)?);
        if view.queue(vhost, name).is_some() {
            return Ok(());
        }
        if name.is_empty() {
            return Err(Refusal::bad_request("the name is empty"));
        }
        let mut arguments = arguments::table(object, "arguments", self.broker.limits())?;
        if let Some(kind) = text(object, "type")?
            && kind != "classic"
            && !arguments.contains("x-queue-type")
        {
            arguments.push("x-queue-type", kind);
        }
        let declare = DeclareQueue {
            name: name.to_owned(),
            durable: boolean(object, "durable")?,
            auto_delete: boolean(object, "auto_delete")?,
            arguments,
            ..DeclareQueue::default()
        };
        Ok(self.by.install_queue(vhost, declare)?)
    }

    fn binding(&self, _: &View, object: &Map<String, Value>) -> Result<(), Refusal> {
        let destination = needed(object, "destination")?;
        let destination = match needed(object, "destination_type")? {
            "queue" => Destination::Queue(destination.into()),
            "exchange" => Destination::Exchange(destination.into()),
            other => {
                return Err(Refusal::bad_request(format!(
                    "destination_type can't be '{other}'"
                )));
            }
        };
        let routing_key = text(object, "routing_key")?.unwrap_or_default();
        if routing_key.len() > 255 {
            return Err(Refusal::bad_request("routing_key is longer than 255 bytes"));
        }
        let arguments = arguments::table(object, "arguments", self.broker.limits())?;
        let (source, vhost) = (needed(object, "source")?, self.vhost_of(object)?);
        Ok(self
            .by
            .install_binding(vhost, source, destination, routing_key.as_bytes(), arguments)?)
    }

    fn vhost_of<'a>(&'a self, object: &'a Map<String, Value>) -> Result<&'a str, Refusal> {
        self.vhost.map_or_else(|| needed(object, "vhost"), Ok)
    }
}

fn needed<'a>(object: &'a Map<String, Value>, name: &str) -> Result<&'a str, Refusal> {
    text(object, name)?.ok_or_else(|| Refusal::bad_request(format!("{name} is missing")))
}

fn objects<'a>(document: &'a Map<String, Value>, class: &str) -> Outcome<&'a [Value]> {
    match document.get(class) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("{class} is not a list")),
    }
}
