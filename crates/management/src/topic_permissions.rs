//! `/api/topic-permissions`, and the same by user and by virtual host.

use crate::access::Right;
use crate::call::Call;
use crate::exchanges::real_name;
use crate::listing::List;
use crate::refusal::{Refusal, missing_keys};
use crate::reply::Reply;
use crate::routes::Route;
use broker::{Administrator, TopicPermission};
use serde_json::{Map, Value, json};

pub const ROUTES: &[Route] = &[
    Route {
        path: "/topic-permissions",
        verbs: &[("GET", Right::Administrator, list)],
    },
    Route {
        path: "/topic-permissions/:vhost/:user",
        verbs: &[
            ("GET", Right::Administrator, of_both),
            ("PUT", Right::Administrator, put),
            ("DELETE", Right::Administrator, delete),
        ],
    },
    Route {
        path: "/vhosts/:vhost/topic-permissions",
        verbs: &[("GET", Right::Administrator, of_vhost)],
    },
    Route {
        path: "/users/:user/topic-permissions",
        verbs: &[("GET", Right::Administrator, of_user)],
    },
];

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    reply(call, call.view.topic_permissions().collect())
}

fn of_vhost(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhost = call.vhost()?;
    let here = |it: &&TopicPermission| it.vhost == vhost.name;
    reply(call, call.view.topic_permissions().filter(here).collect())
}

fn of_user(call: &Call<'_>) -> Result<Reply, Refusal> {
    let user = call.view.user(call.part("user")).ok_or(Refusal::NotFound)?;
    let theirs = |it: &&TopicPermission| *it.user == *user.name;
    reply(call, call.view.topic_permissions().filter(theirs).collect())
}

fn of_both(call: &Call<'_>) -> Result<Reply, Refusal> {
    reply(call, found(call)?)
}

/// The user's in the virtual host; RabbitMQ has no object if there are none.
fn found<'a>(call: &'a Call<'_>) -> Result<Vec<&'a TopicPermission>, Refusal> {
    let vhost = &call.vhost()?.name;
    let theirs = call.view.topic_permissions_of(call.part("user"), vhost);
    let theirs: Vec<_> = theirs.collect();
    match theirs.is_empty() {
        true => Err(Refusal::NotFound),
        false => Ok(theirs),
    }
}

fn put(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (user, vhost) = (call.part("user"), call.part("vhost"));
    if call.view.user(user).is_none() || call.view.vhost(vhost).is_none() {
        return Err(Refusal::bad_request("vhost_or_user_not_found"));
    }
    let body = call.json()?;
    let known = call.view.topic_permissions_of(user, vhost).next().is_some();
    make(&call.administrator(), user, vhost, &body)?;
    Ok(Reply::empty(if known { 204 } else { 201 }))
}

/// Makes the topic permission that an object of JSON describes.
///
/// # Errors
/// It describes none, in RabbitMQ's words.
pub fn make(
    by: &Administrator<'_>,
    user: &str,
    vhost: &str,
    body: &Map<String, Value>,
) -> Result<(), Refusal> {
    let missing: Vec<&str> = ["exchange", "write", "read"]
        .into_iter()
        .filter(|name| !body.contains_key(*name))
        .collect();
    if !missing.is_empty() {
        return Err(Refusal::bad_request(missing_keys(&missing)));
    }
    let text = |name: &str| {
        let text = body.get(name).and_then(Value::as_str);
        text.ok_or_else(|| Refusal::bad_request(format!("{name} is not text")))
    };
    let exchange = real_name(text("exchange")?);
    if by.broker().view().exchange(vhost, exchange).is_none() {
        return Err(Refusal::BadRequest(json!(["no_such_exchange", exchange])));
    }
    Ok(by.set_topic_permission(user, vhost, exchange, text("write")?, text("read")?)?)
}

fn delete(call: &Call<'_>) -> Result<Reply, Refusal> {
    found(call)?;
    let (user, vhost) = (call.part("user"), call.part("vhost"));
    call.administrator().clear_topic_permissions(user, vhost, None)?;
    Ok(Reply::empty(204))
}

fn reply(call: &Call<'_>, permissions: Vec<&TopicPermission>) -> Result<Reply, Refusal> {
    let total = permissions.len();
    let list = List {
        name: &|it: &&TopicPermission| &it.user,
        row: &|it: &&TopicPermission| row(it),
        member: &|_, _| None,
    };
    list.reply(&call.query, permissions.into_iter(), total)
}

/// A topic permission as lists and definitions have it.
pub fn row(it: &TopicPermission) -> Value {
    json!({
        "user": &*it.user,
        "vhost": &*it.vhost,
        "exchange": &*it.exchange,
        "write": it.write,
        "read": it.read,
    })
}
