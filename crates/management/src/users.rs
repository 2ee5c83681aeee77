//! `/api/users`.

use crate::access::Right;
use crate::arguments::text;
use crate::call::Call;
use crate::limits;
use crate::listing::{List, object};
use crate::refusal::{Refusal, missing_keys};
use crate::reply::Reply;
use crate::route::Route;
use broker::{PasswordHash, PasswordHashing, QuotaOf, UserView, View};
use serde_json::{Map, Value, json};

pub const ROUTES: &[Route] = &[
    Route {
        path: "/users",
        verbs: &[("GET", Right::Administrator, list)],
    },
    Route {
        path: "/users/without-permissions",
        verbs: &[("GET", Right::Administrator, without_permissions)],
    },
    Route {
        path: "/users/bulk-delete",
        verbs: &[("POST", Right::Administrator, delete_many)],
    },
    Route {
        path: "/users/:user",
        verbs: &[
            ("GET", Right::Administrator, one),
            ("PUT", Right::Administrator, put),
            ("DELETE", Right::Administrator, delete),
        ],
    },
    Route {
        path: "/auth/hash_password/:password",
        verbs: &[("GET", Right::Administrator, hash_password)],
    },
];

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    reply(call, call.view.users().collect())
}

fn without_permissions(call: &Call<'_>) -> Result<Reply, Refusal> {
    let view = &call.view;
    let lonely = |user: &&UserView| {
        !view
            .permissions()
            .any(|permission| *permission.user == *user.name)
    };
    reply(call, view.users().filter(lonely).collect())
}

fn reply(call: &Call<'_>, users: Vec<&UserView>) -> Result<Reply, Refusal> {
    let total = users.len();
    let list = List {
        name: &|user: &&UserView| &user.name,
        row: &|user: &&UserView| row(&call.view, user),
        member: &|_, _| None,
    };
    list.reply(&call.query, call.cut, users.into_iter(), total)
}

fn one(call: &Call<'_>) -> Result<Reply, Refusal> {
    let user = call.view.user(call.part("user")).ok_or(Refusal::NotFound)?;
    Ok(object(&call.query, row(&call.view, user)))
}

fn put(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let name = call.part("user");
    let known = call.view.user(name).is_some();
    let tags = tags(
        body.get("tags")
            .ok_or_else(|| Refusal::bad_request("tags_not_present"))?,
    )?;
    refuse_two_passwords(&body)?;
    let password = match (text(&body, "password")?, text(&body, "password_hash")?) {
        (Some(password), _) => Some(call.api.broker.hash_password(password.as_bytes())?),
        (None, None | Some("")) => None,
        (None, Some(hash)) => Some(hash_of(&body, hash)?),
    };
    let of = QuotaOf::User(name.into());
    let limits = match body.get("limits") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Object(members)) => limits::read(&of, members)?,
        Some(_) => return Err(Refusal::bad_request("limits is not an object")),
    };
    call.administrator().put_user(name, password, tags)?;
    // As in RabbitMQ they are set beside those that are there.
    limits::add(&call.administrator(), of, limits)?;
    Ok(Reply::empty(if known { 204 } else { 201 }))
}

/// A user has a password or a hash of one, as in RabbitMQ; `null` is nothing.
///
/// # Errors
/// There are both.
pub fn refuse_two_passwords(body: &Map<String, Value>) -> Result<(), Refusal> {
    match (text(body, "password")?, text(body, "password_hash")?) {
        (Some(_), Some(_)) => Err(Refusal::bad_request(
            "both_password_and_password_hash_are_provided",
        )),
        _ => Ok(()),
    }
}

/// Reads tags in both of RabbitMQ's forms: a list, or text with commas.
///
/// # Errors
/// They have another form.
pub fn tags(value: &Value) -> Result<Vec<String>, Refusal> {
    let named = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let wrong = || Refusal::bad_request("tags are a list of words, or text with commas between them");
    match value {
        Value::String(text) => Ok(text.split(',').filter_map(named).collect()),
        Value::Array(items) => {
            let texts = items.iter().map(|item| item.as_str().ok_or_else(wrong));
            let texts: Vec<&str> = texts.collect::<Result<_, _>>()?;
            Ok(texts.into_iter().filter_map(named).collect())
        }
        _ => Err(wrong()),
    }
}

/// Reads a password's hash in RabbitMQ's form.
///
/// # Errors
/// It is none, or made by an algorithm that is not known.
pub fn hash_of(body: &Map<String, Value>, hash: &str) -> Result<PasswordHash, Refusal> {
    let name = text(body, "hashing_algorithm")?.unwrap_or(PasswordHashing::Sha256.name());
    let Some(algorithm) = PasswordHashing::from_name(name) else {
        return Err(Refusal::bad_request(format!(
            "hashing_algorithm can only be {}, {}, {} or {} in this version",
            PasswordHashing::Sha256.name(),
            PasswordHashing::Sha512.name(),
            PasswordHashing::Md5.name(),
            PasswordHashing::Argon2id.name()
        )));
    };
    PasswordHash::from_text(algorithm, hash).ok_or_else(|| match algorithm {
        PasswordHashing::Argon2id => Refusal::bad_request(
            "password_hash is not an Argon2id hash ($argon2id$v=19$m=…,t=…,p=…$salt$hash), or needs more than 64 \
             MiB, 10 passes or 4 lanes",
        ),
        _ => Refusal::BadRequest(json!(["not_base64", hash])),
    })
}

fn delete(call: &Call<'_>) -> Result<Reply, Refusal> {
    let user = call.view.user(call.part("user")).ok_or(Refusal::NotFound)?;
    call.administrator().delete_user(&user.name)?;
    Ok(Reply::empty(204))
}

fn delete_many(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let users = body.get("users").and_then(Value::as_array);
    let users = users.ok_or_else(|| Refusal::bad_request(missing_keys(&["users"])))?;
    for user in users.iter().filter_map(Value::as_str) {
        call.administrator().delete_user(user)?;
    }
    Ok(Reply::empty(204))
}

fn hash_password(call: &Call<'_>) -> Result<Reply, Refusal> {
    let password = call.part("password").as_bytes();
    let hash = match call.query.get("algorithm") {
        None => call.api.broker.hash_password(password)?,
        Some(name) => {
            let wrong = || Refusal::bad_request(format!("unsupported hashing algorithm: {name}"));
            let algorithm = PasswordHashing::from_short_name(name).ok_or_else(wrong)?;
            call.api.broker.hash_password_by(algorithm, password)?
        }
    };
    Ok(Reply::json(&json!({"ok": hash.to_text()})))
}

/// A user as lists and definitions have it. The hash is shown to administrators alone.
pub fn row(view: &View, user: &UserView) -> Value {
    json!({
        "name": user.name,
        "password_hash": user.password().map(PasswordHash::to_text).unwrap_or_default(),
        "hashing_algorithm": user.password().map_or(PasswordHashing::default(), PasswordHash::algorithm).name(),
        "tags": user.tags,
        "limits": limits::row(&view.user_quota(&user.name)),
    })
}
