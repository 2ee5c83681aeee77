//! `/api/definitions`: everything that was declared as one JSON document, in RabbitMQ's form, both ways.
//!
//! The same objects give the same bytes: members are in the order of their names, objects in the catalog's.

use crate::access::Right;
use crate::bindings::kind;
use crate::call::{Api, Call, NO_VHOST, queues_of};
use crate::grants::Grant;
use crate::import::{Asked, ImportOptions, Unimported, check, import, is_of_the_server};
use crate::import_mark::is_mark;
use crate::json;
use crate::limits;
use crate::multipart;
use crate::parameters;
use crate::policies;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::Route;
use crate::users;
use crate::vhosts;
use broker::{Destination, PolicyKind, Vhost};
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
    Route {
        path: "/leveret/definitions/check",
        verbs: &[("POST", Right::Administrator, check_all)],
    },
    Route {
        path: "/leveret/definitions/check/:vhost",
        verbs: &[("POST", Right::Administrator, check_vhost)],
    },
];

fn head(api: &Api) -> Map<String, Value> {
    let version = api.options.rabbitmq_version.as_str();
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
    let cluster = call.api.broker.cluster_name();
    let mut document = head(call.api);
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
    let mut document = head(call.api);
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
                "durable": exchange.is_durable(),
                "auto_delete": exchange.auto_delete,
                "internal": exchange.internal,
                "arguments": json::table(&exchange.arguments),
            }))
        }));
        let shared = queues_of(vhost).filter(|queue| !queue.is_exclusive());
        queues.extend(shared.map(|queue| {
            placed(json!({
                "name": &*queue.name,
                "type": queue.kind.name(),
                "durable": queue.is_durable(),
                "auto_delete": queue.auto_delete,
                "arguments": json::table(&queue.arguments),
            }))
        }));
        let of_one_connection = |name: &str| vhost.queue(name).is_some_and(|queue| queue.is_exclusive());
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

fn upload(call: &Call<'_>) -> Result<Reply, Refusal> {
    apply(call, of_the_node(call)?)
}

fn upload_vhost(call: &Call<'_>) -> Result<Reply, Refusal> {
    apply(call, of_a_vhost(call)?)
}

/// Says what an import would do, and changes nothing.
fn check_all(call: &Call<'_>) -> Result<Reply, Refusal> {
    report(call, of_the_node(call)?)
}

fn check_vhost(call: &Call<'_>) -> Result<Reply, Refusal> {
    report(call, of_a_vhost(call)?)
}

fn of_the_node<'a>(call: &'a Call<'_>) -> Result<Asked<'a>, Refusal> {
    Ok(Asked {
        vhost: None,
        // Who imports may do everything in the virtual hosts that come; an operator may anyhow, and is no user.
        asker: (!call.operator).then_some(&*call.user.name),
        options: ImportOptions::of(&call.query)?,
    })
}

fn of_a_vhost<'a>(call: &'a Call<'_>) -> Result<Asked<'a>, Refusal> {
    Ok(Asked {
        vhost: Some(&call.target_vhost()?.name),
        asker: None,
        options: ImportOptions::of(&call.query)?,
    })
}

fn apply(call: &Call<'_>, asked: Asked<'_>) -> Result<Reply, Refusal> {
    let document = uploaded(call)?;
    match import(&call.administrator(), &[&document], asked) {
        Ok(_) => Ok(Reply::empty(204)),
        Err(Unimported::Refused(_, report)) => {
            Err(Refusal::Unimported(report.refusals(), Box::new(report.to_json())))
        }
        Err(other) => Err(Refusal::bad_request(other.to_string())),
    }
}

fn report(call: &Call<'_>, asked: Asked<'_>) -> Result<Reply, Refusal> {
    let found = check(&call.administrator(), &uploaded(call)?, asked);
    Ok(Reply::json(&found.map_err(Refusal::bad_request)?.to_json()))
}

/// The document: the body, or the field `file` if the body is a form.
fn uploaded(call: &Call<'_>) -> Result<Bytes, Refusal> {
    multipart::document(call.header("content-type"), call.body, "file")
        .ok_or_else(|| Refusal::bad_request("not_json: the form has no field \"file\""))
}
