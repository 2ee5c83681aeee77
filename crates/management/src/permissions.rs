//! `/api/permissions`, and the same by user and by virtual host.

use crate::access::Right;
use crate::call::Call;
use crate::listing::{List, object};
use crate::refusal::{Refusal, missing_keys};
use crate::reply::Reply;
use crate::routes::Route;
use broker::{Permission, Permissions};
use serde_json::{Value, json};

pub const ROUTES: &[Route] = &[
    Route {
        path: "/permissions",
        verbs: &[("GET", Right::Administrator, list)],
    },
    Route {
        path: "/permissions/:vhost/:user",
        verbs: &[
            ("GET", Right::Administrator, one),
            ("PUT", Right::Administrator, put),
            ("DELETE", Right::Administrator, delete),
        ],
    },
    Route {
        path: "/vhosts/:vhost/permissions",
        verbs: &[("GET", Right::Administrator, of_vhost)],
    },
    Route {
        path: "/users/:user/permissions",
        verbs: &[("GET", Right::Administrator, of_user)],
    },
];

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    reply(call, call.view.permissions().collect())
}

fn of_vhost(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhost = call.vhost()?;
    let here = |permission: &&Permission| permission.vhost == vhost.name;
    reply(call, call.view.permissions().filter(here).collect())
}

fn of_user(call: &Call<'_>) -> Result<Reply, Refusal> {
    let user = call.view.user(call.part("user")).ok_or(Refusal::NotFound)?;
    let theirs = |permission: &&Permission| *permission.user == *user.name;
    reply(call, call.view.permissions().filter(theirs).collect())
}

fn one(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhost = call.vhost()?;
    let permission = call.view.permission(call.part("user"), &vhost.name);
    Ok(object(&call.query, row(permission.ok_or(Refusal::NotFound)?)))
}

fn put(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let missing: Vec<&str> = ["configure", "write", "read"]
        .into_iter()
        .filter(|name| !body.contains_key(*name))
        .collect();
    if !missing.is_empty() {
        return Err(Refusal::bad_request(missing_keys(&missing)));
    }
    let text = |name: &str| {
        let text = body.get(name).and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| Refusal::bad_request(format!("{name} is not text")))
    };
    let permissions = Permissions {
        configure: text("configure")?,
        write: text("write")?,
        read: text("read")?,
    };
    let (user, vhost) = (call.part("user"), call.part("vhost"));
    if call.view.user(user).is_none() || call.view.vhost(vhost).is_none() {
        return Err(Refusal::bad_request("vhost_or_user_not_found"));
    }
    let known = call.view.permission(user, vhost).is_some();
    call.administrator().set_permissions(user, vhost, permissions)?;
    Ok(Reply::empty(if known { 204 } else { 201 }))
}

fn delete(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (user, vhost) = (call.part("user"), &call.vhost()?.name);
    call.view.permission(user, vhost).ok_or(Refusal::NotFound)?;
    call.administrator().clear_permissions(user, vhost)?;
    Ok(Reply::empty(204))
}

fn reply(call: &Call<'_>, permissions: Vec<&Permission>) -> Result<Reply, Refusal> {
    let total = permissions.len();
    let list = List {
        name: &|permission: &&Permission| &permission.user,
        row: &|permission: &&Permission| row(permission),
        member: &|_, _| None,
    };
    list.reply(&call.query, permissions.into_iter(), total)
}

/// A permission as lists and definitions have it.
pub fn row(permission: &Permission) -> Value {
    json!({
        "user": &*permission.user,
        "vhost": &*permission.vhost,
        "configure": permission.configure.source(),
        "write": permission.write.source(),
        "read": permission.read.source(),
    })
}
