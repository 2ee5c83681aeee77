//! `/api/topic-permissions`, and the same by user and by virtual host.

use crate::access::Right;
use crate::call::Call;
use crate::exchanges::real_name;
use crate::grants::{self, Grant, grantee};
use crate::refusal::{Refusal, needed_texts};
use crate::reply::Reply;
use crate::route::Route;
use broker::{Administrator, TopicPermission, View};
use serde_json::{Map, Value, json};

pub const ROUTES: &[Route] = &[
    Route {
        path: "/topic-permissions",
        verbs: &[("GET", Right::Administrator, grants::list::<TopicPermission>)],
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
        path: "/topic-permissions/:vhost/:user/:exchange",
        verbs: &[("DELETE", Right::Administrator, delete_one)],
    },
    Route {
        path: "/vhosts/:vhost/topic-permissions",
        verbs: &[("GET", Right::Administrator, grants::of_vhost::<TopicPermission>)],
    },
    Route {
        path: "/users/:user/topic-permissions",
        verbs: &[("GET", Right::Administrator, grants::of_user::<TopicPermission>)],
    },
];

impl Grant for TopicPermission {
    fn all(view: &View) -> Vec<&Self> {
        view.topic_permissions().collect()
    }

    fn user(&self) -> &str {
        &self.user
    }

    fn vhost(&self) -> &str {
        &self.vhost
    }

    fn row(&self) -> Value {
        json!({
            "user": &*self.user,
            "vhost": &*self.vhost,
            "exchange": &*self.exchange,
            "write": self.write,
            "read": self.read,
        })
    }
}

fn of_both(call: &Call<'_>) -> Result<Reply, Refusal> {
    grants::reply(call, found(call)?)
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
    let (user, vhost) = grantee(call)?;
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
    let [exchange, write, read] = needed_texts(body, ["exchange", "write", "read"])?;
    let exchange = real_name(exchange);
    if by.view().exchange(vhost, exchange).is_none() {
        return Err(Refusal::BadRequest(json!(["no_such_exchange", exchange])));
    }
    Ok(by.set_topic_permission(user, vhost, exchange, write, read)?)
}

fn delete(call: &Call<'_>) -> Result<Reply, Refusal> {
    found(call)?;
    let (user, vhost) = (call.part("user"), call.part("vhost"));
    call.administrator().clear_topic_permissions(user, vhost, None)?;
    Ok(Reply::empty(204))
}

/// Takes the permission of one exchange. As in RabbitMQ, the user must have one for some exchange, not for this one.
fn delete_one(call: &Call<'_>) -> Result<Reply, Refusal> {
    found(call)?;
    let (user, vhost) = (call.part("user"), call.part("vhost"));
    let exchange = real_name(call.part("exchange"));
    call.administrator()
        .clear_topic_permissions(user, vhost, Some(exchange))?;
    Ok(Reply::empty(204))
}
