//! `/api/permissions`, and the same by user and by virtual host.

use crate::access::Right;
use crate::call::Call;
use crate::grants::{self, Grant, grantee};
use crate::listing::object;
use crate::refusal::{Refusal, needed_texts};
use crate::reply::Reply;
use crate::route::Route;
use broker::{Permission, Permissions, View};
use serde_json::{Value, json};

pub const ROUTES: &[Route] = &[
    Route {
        path: "/permissions",
        verbs: &[("GET", Right::Administrator, grants::list::<Permission>)],
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
        verbs: &[("GET", Right::Administrator, grants::of_vhost::<Permission>)],
    },
    Route {
        path: "/users/:user/permissions",
        verbs: &[("GET", Right::Administrator, grants::of_user::<Permission>)],
    },
];

impl Grant for Permission {
    fn all(view: &View) -> Vec<&Self> {
        view.permissions().collect()
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
            "configure": self.configure.source(),
            "write": self.write.source(),
            "read": self.read.source(),
        })
    }
}

fn one(call: &Call<'_>) -> Result<Reply, Refusal> {
    let vhost = call.vhost()?;
    let permission = call.view.permission(call.part("user"), &vhost.name);
    Ok(object(&call.query, permission.ok_or(Refusal::NotFound)?.row()))
}

fn put(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let [configure, write, read] = needed_texts(&body, ["configure", "write", "read"])?.map(str::to_owned);
    let permissions = Permissions {
        configure,
        write,
        read,
    };
    let (user, vhost) = grantee(call)?;
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
