//! `/api/definitions`: everything that was declared as one JSON document, in RabbitMQ's form, both ways.
//!
//! The same objects give the same bytes: members are in the order of their names, objects in the catalog's.

use crate::access::Right;
use crate::call::{Call, NO_VHOST};
use crate::document::Document;
use crate::grants::Grant;
use crate::import::{ImportRequest, Unimported, check, import};
use crate::import_mark::is_mark;
use crate::import_options::ImportOptions;
use crate::limits;
use crate::multipart;
use crate::parameters;
use crate::pieces::Cut;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::users;
use crate::vhosts;
use broker::Vhost;
use hyper::body::Bytes;
use serde_json::json;
use std::hash::{DefaultHasher, Hasher};
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

fn export(call: &Call<'_>) -> Result<Reply, Refusal> {
    let view = &call.view;
    let cluster = call.api.broker.cluster_name();
    let kind = call.api.broker.default_queue_type();
    let vhosts: Vec<&Arc<Vhost>> = view.vhosts().collect();
    let named = |vhost: &Vhost| json!({"name": &*vhost.name, "limits": limits::row(vhost.quota()), "metadata": vhosts::metadata_row(vhost, kind)});
    let make = |cut| {
        let mut globals = parameters::set_globals(view);
        globals.retain(|row| !row["name"].as_str().is_some_and(is_mark));
        let mut document = Document::of(call.api, "cluster");
        document.put("original_cluster_name", cluster.as_str());
        document.put("explanation", format!("Definitions of cluster '{cluster}'"));
        document.list("global_parameters", globals.into_iter());
        document.list("topic_permissions", view.topic_permissions().map(Grant::row));
        document.list("users", view.users().map(|user| users::row(view, user)));
        document.list("vhosts", vhosts.iter().map(|vhost| named(vhost)));
        document.list("permissions", view.permissions().map(Grant::row));
        document.put_objects(&vhosts);
        document.reply(cut, true)
    };
    Ok(reply(call, make))
}

fn export_vhost(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhost = call.vhost().map_err(|_| Refusal::bad_request(NO_VHOST))?;
    let make = |cut| {
        let mut document = Document::of(call.api, "single_virtual_host");
        document.put("original_vhost_name", &*vhost.name);
        let explanation = format!("Definitions of virtual host '{}'", vhost.name);
        document.put("explanation", explanation);
        document.put("limits", limits::row(vhost.quota()));
        document.put(
            "metadata",
            vhosts::metadata_row(vhost, call.api.broker.default_queue_type()),
        );
        document.put_objects(std::slice::from_ref(&vhost));
        document.reply(cut, false)
    };
    Ok(reply(call, make))
}

/// The piece that is asked for. All are looked at first, so that a document that the asker has is not sent again.
fn reply(call: &Call<'_>, make: impl Fn(Cut) -> Reply) -> Reply {
    let piece = make(call.cut);
    if !call.cut.is_first() {
        return piece;
    }
    let mut hasher = DefaultHasher::new();
    hasher.write(piece.body.as_deref().unwrap_or_default());
    let mut rest = piece.rest;
    while let Some(next) = rest {
        let later = make(Cut::From(next));
        hasher.write(later.body.as_deref().unwrap_or_default());
        rest = later.rest;
    }
    Reply {
        download: call.query.get("download").map(str::to_owned),
        ..piece
    }
    .unless_tag_known(hasher.finish(), call.header("if-none-match"))
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

fn of_the_node<'a>(call: &'a Call<'_>) -> Result<ImportRequest<'a>, Refusal> {
    Ok(ImportRequest {
        vhost: None,
        // Who imports may do everything in the virtual hosts that come; an operator may anyhow, and is no user.
        asker: (!call.operator).then_some(&*call.user.name),
        options: ImportOptions::of(&call.query)?,
    })
}

fn of_a_vhost<'a>(call: &'a Call<'_>) -> Result<ImportRequest<'a>, Refusal> {
    Ok(ImportRequest {
        vhost: Some(&call.target_vhost()?.name),
        asker: None,
        options: ImportOptions::of(&call.query)?,
    })
}

fn apply(call: &Call<'_>, asked: ImportRequest<'_>) -> Result<Reply, Refusal> {
    let document = uploaded(call)?;
    match import(&call.administrator(), &[&document], asked) {
        Ok(_) => Ok(Reply::empty(204)),
        Err(Unimported::Refused(_, report)) => {
            Err(Refusal::Unimported(report.refusals(), Box::new(report.to_json())))
        }
        Err(other) => Err(Refusal::bad_request(other.to_string())),
    }
}

fn report(call: &Call<'_>, asked: ImportRequest<'_>) -> Result<Reply, Refusal> {
    let found = check(&call.administrator(), &uploaded(call)?, asked);
    Ok(Reply::json(&found.map_err(Refusal::bad_request)?.to_json()))
}

/// The document: the body, or the field `file` if the body is a form.
fn uploaded(call: &Call<'_>) -> Result<Bytes, Refusal> {
    multipart::document(call.header("content-type"), call.body, "file")
        .ok_or_else(|| Refusal::bad_request("not_json: the form has no field \"file\""))
}
