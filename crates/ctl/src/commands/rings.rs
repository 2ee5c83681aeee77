//! Which bucket of a consistent-hash exchange leads where.

use super::text;
use crate::ask::{Ask, encode};
use crate::command::{Command, Section::Monitoring};
use crate::failure::{BAD_VALUE, Failure};
use crate::output::Output;
use crate::tool::Tool;
use serde_json::{Map, Value, json};

pub const COMMANDS: &[Command] = &[Command::new(
    Monitoring,
    "consistent_hash_exchange_ring_state",
    (1, 1),
    "[--vhost <vhost>] <exchange>",
    ring_state,
)
.about("Shows which bucket of a consistent-hash exchange leads to which queue")
.of(&[Tool::Diagnostics])];

fn ring_state(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (exchange, vhost) = (ask.word(0), ask.vhost());
    ask.say(format!(
        "Inspecting consistent hashing ring state for exchange {exchange} in virtual host '{vhost}'..."
    ));
    let path = format!("/leveret/exchanges/{}/{}/ring", encode(vhost), encode(exchange));
    let Some(ring) = ask.find(&path)? else {
        let text = "Exchange does not exist or is of a different type";
        return Err(Failure::error(BAD_VALUE, text));
    };
    let buckets: Vec<(u64, &Value)> = ring
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|share| {
            let first = share["first_bucket"].as_u64().unwrap_or(0);
            let count = share["bucket_count"].as_u64().unwrap_or(0);
            (first..first.saturating_add(count)).map(move |bucket| (bucket, share))
        })
        .collect();
    let mut lines: Vec<String> = buckets
        .iter()
        .map(|(bucket, share)| {
            let (kind, name) = (text(share, "destination_type"), text(share, "destination"));
            format!("Ring index: {bucket}, {kind}: '{name}'")
        })
        .collect();
    // RabbitMQ sorts the lines as text.
    lines.sort_unstable();
    let by_bucket: Map<String, Value> = buckets
        .iter()
        .map(|(bucket, share)| (bucket.to_string(), text(share, "destination").into()))
        .collect();
    let document = json!({
        "result": "ok",
        "node": ask.node(),
        "exchange": exchange,
        "message": format!("Consistent hashing ring state for exchange '{exchange}' in vhost '{vhost}'"),
        "buckets": by_bucket,
    });
    Ok(Output::Told(lines.join("\n"), document))
}
