//! `/api/leveret/config` and `/api/config/effective`: the configuration in force, with defaults and where each value comes from.

use crate::access::Right;
use crate::call::Call;
use crate::others;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use serde_json::{Value, json};

pub const ROUTES: &[Route] = &[
    Route {
        path: "/leveret/config",
        verbs: &[("GET", Right::Administrator, list)],
    },
    Route {
        path: "/config/effective",
        verbs: &[("GET", Right::Administrator, effective)],
    },
];

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    if let Some(told) = others::of_named_node(call)? {
        return Ok(told);
    }
    let rows = call.api.options.settings.iter().map(|it| {
        json!({
            "key": it.key,
            "value": it.value,
            "default": it.default,
            "source": it.source,
            "without_effect": it.without_effect,
        })
    });
    Ok(Reply::json(&rows.collect::<Value>()))
}

/// The same as text, a key a line, as `rabbitmq.conf` has them; RabbitMQ writes Erlang's terms.
fn effective(call: &Call<'_>) -> Result<Reply, Refusal> {
    let settings = call.api.options.settings.iter();
    let lines = settings.map(|it| format!("{} = {}\n", it.key, it.value));
    Ok(Reply::text(lines.collect()))
}
