//! `/api/leveret/application`: whether the broker runs inside its process, and an end of that for a while (RabbitMQ's
//! `stop_app`).

use crate::access::Right;
use crate::call::Call;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use serde_json::{Value, json};

/// Where it is, below `/api`.
pub const PATH: &str = "/leveret/application";

/// The query of a node that is stopped and is to forget everything without asking anybody.
pub const FORCE: &str = "force";

/// Where a node that is stopped is told whose cluster to join, below `/api`.
pub const CLUSTER: &str = "/leveret/application/cluster";

pub const ROUTES: &[Route] = &[Route {
    path: PATH,
    verbs: &[
        ("GET", Right::Administrator, show),
        ("PUT", Right::Administrator, change),
    ],
}];

/// What a node says of itself, running or not.
pub fn state(node: &str, running: bool) -> Value {
    json!({"node": node, "running": running, "os_pid": std::process::id()})
}

fn show(call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::json(&state(&call.api.options.node, true)))
}

fn change(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    match body.get("running") {
        Some(Value::Bool(true)) => return Ok(Reply::empty(204)),
        Some(Value::Bool(false)) => {}
        _ => return Err(Refusal::bad_request("running is true or false")),
    }
    // Only the admin socket is there to start it again.
    let stop = call.api.options.stop_application.as_ref();
    match stop.filter(|_| call.operator) {
        Some(stop) => {
            (stop.0)();
            Ok(Reply::empty(202))
        }
        None => Err(Refusal::bad_request(
            "the broker is stopped by the admin socket of its machine, and nowhere else",
        )),
    }
}
