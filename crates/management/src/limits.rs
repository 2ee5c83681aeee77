//! `/api/vhost-limits` and `/api/user-limits`.

use crate::access::Right;
use crate::call::Call;
use crate::refusal::{Refusal, missing_keys};
use crate::reply::Reply;
use crate::route::Route;
use broker::{Administrator, Quota, QuotaOf, term};
use serde_json::{Map, Value, json};

pub const ROUTES: &[Route] = &[
    Route {
        path: "/vhost-limits",
        verbs: &[("GET", Right::Management, of_vhosts)],
    },
    Route {
        path: "/vhost-limits/:vhost",
        verbs: &[("GET", Right::VhostOrMonitor, of_vhosts)],
    },
    Route {
        path: "/vhost-limits/:vhost/:limit",
        verbs: &[
            ("PUT", Right::Administrator, put_of_vhost),
            ("DELETE", Right::Administrator, delete_of_vhost),
        ],
    },
    Route {
        path: "/user-limits",
        verbs: &[("GET", Right::Administrator, of_users)],
    },
    Route {
        path: "/user-limits/:user",
        verbs: &[("GET", Right::Management, of_user)],
    },
    Route {
        path: "/user-limits/:user/:limit",
        verbs: &[
            ("PUT", Right::Administrator, put_of_user),
            ("DELETE", Right::Administrator, delete_of_user),
        ],
    },
];

/// Limits as an object.
pub fn row(quota: &Quota) -> Value {
    let members = quota.iter().map(|(name, value)| (name.to_owned(), value.into()));
    Value::Object(members.collect::<Map<_, _>>())
}

fn of_vhosts(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhosts = call.watched_vhosts()?;
    let limited = vhosts.into_iter().filter(|vhost| !vhost.quota().is_empty());
    let rows = limited.map(|vhost| json!({"vhost": &*vhost.name, "value": row(vhost.quota())}));
    Ok(Reply::json(&rows.collect()))
}

fn of_users(call: &Call<'_>) -> Result<Reply, Refusal> {
    let users = call.view.users().map(|user| user.name.as_str());
    Ok(Reply::json(
        &users.filter_map(|name| limited(call, name)).collect(),
    ))
}

/// Everybody may see their own.
fn of_user(call: &Call<'_>) -> Result<Reply, Refusal> {
    if !call.is_monitor() && *call.user.name != *call.part("user") {
        return Err(Refusal::not_authorised("Not monitor user"));
    }
    let user = call.view.user(call.part("user")).ok_or(Refusal::NotFound)?;
    Ok(Reply::json(&limited(call, &user.name).into_iter().collect()))
}

fn limited(call: &Call<'_>, user: &str) -> Option<Value> {
    let quota = call.view.user_quota(user);
    (!quota.is_empty()).then(|| json!({"user": user, "value": row(&quota)}))
}

fn put_of_vhost(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhost = call.target_vhost()?;
    put(call, QuotaOf::Vhost(vhost.name.clone()))
}

fn put_of_user(call: &Call<'_>) -> Result<Reply, Refusal> {
    let user = call.part("user");
    match call.view.user(user) {
        Some(_) => put(call, QuotaOf::User(user.into())),
        None => Err(Refusal::BadRequest(json!(["no_such_user", user]))),
    }
}

fn put(call: &Call<'_>, of: QuotaOf) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let value = body.get("value");
    let value = value.ok_or_else(|| Refusal::bad_request(missing_keys(&["value"])))?;
    let limit = call.part("limit");
    let value = number(&of, limit, value)?;
    call.administrator().set_limit(of, limit, Some(value))?;
    Ok(Reply::empty(204))
}

/// The value of a limit.
///
/// # Errors
/// The value is not a whole number. The text is the one that RabbitMQ answers.
pub fn number(of: &QuotaOf, limit: &str, value: &Value) -> Result<i64, Refusal> {
    value.as_i64().ok_or_else(|| {
        let shown = term(&crate::arguments::field(value));
        let text = format!("{limit} should be a number, actually was {shown}");
        of.invalid(&text).into()
    })
}

/// Gives a user or a virtual host the limits of this object and no others; if one makes no sense, nothing changes.
///
/// # Errors
/// A limit is unknown or its value is not a whole number. The text is the one that RabbitMQ answers.
pub fn replace(by: &Administrator<'_>, of: QuotaOf, members: &Map<String, Value>) -> Result<(), Refusal> {
    let limits = read(&of, members)?;
    Ok(by.replace_limits(of, limits)?)
}

/// The limits of an object of JSON.
///
/// # Errors
/// A limit is unknown or its value is not a whole number. The text is the one that RabbitMQ answers.
pub fn read(of: &QuotaOf, members: &Map<String, Value>) -> Result<Vec<(String, i64)>, Refusal> {
    let limits = members.iter().map(|(limit, value)| {
        let value = number(of, limit, value)?;
        of.check(limit, value)?;
        Ok((limit.clone(), value))
    });
    limits.collect()
}

/// Sets limits beside those that are there.
///
/// # Errors
/// There is no such user or virtual host, or the log failed.
pub fn add(by: &Administrator<'_>, of: QuotaOf, limits: Vec<(String, i64)>) -> Result<(), Refusal> {
    if limits.is_empty() {
        return Ok(());
    }
    let limits = limits.into_iter().map(|(limit, value)| (limit, Some(value)));
    Ok(by.set_limits(of, limits.collect())?)
}

fn delete_of_vhost(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhost = call.vhost()?;
    delete(call, QuotaOf::Vhost(vhost.name.clone()))
}

fn delete_of_user(call: &Call<'_>) -> Result<Reply, Refusal> {
    let user = call.view.user(call.part("user")).ok_or(Refusal::NotFound)?;
    delete(call, QuotaOf::User(user.name.as_str().into()))
}

fn delete(call: &Call<'_>, of: QuotaOf) -> Result<Reply, Refusal> {
    call.administrator().set_limit(of, call.part("limit"), None)?;
    Ok(Reply::empty(204))
}
