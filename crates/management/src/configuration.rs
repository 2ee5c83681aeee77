//! `/api/leveret/config` and `/api/config/effective`: the configuration in force, with defaults and where each value comes from.

use crate::access::Right;
use crate::call::Call;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::Route;
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

/// One key of the configuration. Secrets are masked before they come here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingInForce {
    /// As in `rabbitmq.conf`.
    pub key: String,
    /// What is in force; what was written, if it has no effect.
    pub value: String,
    /// What is in force where nobody says anything; `None` if there is no such thing.
    pub default: Option<String>,
    /// `default`, or the file and line, the variable, the option that it comes from.
    pub source: String,
    /// Why it has no effect, if it has none.
    pub without_effect: Option<String>,
}

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
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
