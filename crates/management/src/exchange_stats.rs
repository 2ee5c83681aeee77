//! What came to exchanges and left them: each node counts what its clients publish, and here it is added up over the cluster.

use crate::call::Call;
use crate::message_stats::message_stats;
use crate::others::{self, Question, TOLD};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::snapshot::{ExchangeKey, ExchangeStats};
use broker::Exchange;
use broker::stats::ExchangeCounts;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Of which exchanges other nodes are asked.
pub enum Wanted<'a> {
    /// Of these.
    Named(Vec<ExchangeKey>),
    /// Of all in these virtual hosts.
    In(Vec<&'a str>),
}

/// An exchange, as figures are kept of it.
pub fn key(exchange: &Exchange) -> ExchangeKey {
    (exchange.vhost.to_string(), exchange.name.to_string())
}

/// The `message_stats` of an exchange: those of this node, and those that others have told.
pub fn stats(call: &Call<'_>, exchange: &Exchange, elsewhere: &ExchangeStats) -> Option<Value> {
    let counts = call
        .api
        .broker
        .stats()
        .exchanges()
        .get(&exchange.vhost, &exchange.name);
    let own = counts.and_then(|counts| own(call, &exchange.vhost, &exchange.name, &counts));
    match (own, elsewhere.get(&key(exchange))) {
        (Some(mut sum), Some(more)) => {
            others::add(&mut sum, more);
            Some(sum)
        }
        (own, more) => own.or_else(|| more.cloned()),
    }
}

fn own(call: &Call<'_>, vhost: &str, name: &str, counts: &ExchangeCounts) -> Option<Value> {
    let samples = call.api.sampler.samples();
    let rates = call.rates(&samples, samples.exchanges.get(&(vhost.into(), name.into())));
    let counts = [
        ("publish_in", counts.publish_in()),
        ("publish_out", counts.publish_out()),
    ];
    message_stats(&rates, &counts, 0)
}

/// What other nodes have counted, added up. Each tells some at a time, and is asked on.
pub fn elsewhere(call: &Call<'_>, wanted: &Wanted<'_>) -> ExchangeStats {
    let mut open: Vec<(String, Option<ExchangeKey>)> = others::running(call)
        .into_iter()
        .map(|node| (node, None))
        .collect();
    let mut sums = ExchangeStats::new();
    while !open.is_empty() {
        let question = |after: &Option<ExchangeKey>| Question {
            path: "/api/exchanges".to_owned(),
            body: match wanted {
                Wanted::Named(names) => json!({"stats_of": names, "after": after}),
                Wanted::In(vhosts) => json!({"stats_of": null, "vhosts": vhosts, "after": after}),
            },
            ..Question::again(call)
        };
        let questions = open.iter().map(|(node, after)| (node.clone(), question(after)));
        let answers = others::ask(call, questions.collect());
        let asked = std::mem::take(&mut open).into_iter();
        for ((node, after), answer) in asked.zip(answers) {
            let Some((told, is_more)) = answer.and_then(|answer| read(&answer.found()?)) else {
                continue;
            };
            let last = told.last().map(|(key, _)| key.clone());
            for (key, stats) in told {
                match sums.get_mut(&key) {
                    Some(sum) => others::add(sum, &stats),
                    None => drop(sums.insert(key, stats)),
                }
            }
            // Whoever does not get on is not asked again.
            if is_more && last > after {
                open.push((node, last));
            }
        }
    }
    sums
}

/// Some exchanges with what was counted, and whether there are more.
type Told = (Vec<(ExchangeKey, Value)>, bool);

fn read(told: &Value) -> Option<Told> {
    let stats = serde_json::from_value(told.get("stats")?.clone()).ok()?;
    Some((stats, told.get("more")?.as_bool()?))
}

/// What another node is told, if it asks for this.
///
/// # Errors
/// It asks for something that makes no sense.
pub fn told(call: &Call<'_>) -> Result<Option<Reply>, Refusal> {
    let body = call.json()?;
    let Some(named) = body.get("stats_of") else {
        return Ok(None);
    };
    let senseless = |_| Refusal::bad_request("stats_of");
    let named: Option<BTreeSet<ExchangeKey>> = serde_json::from_value(named.clone()).map_err(senseless)?;
    let after = body.get("after").cloned().unwrap_or_default();
    let after: Option<ExchangeKey> = serde_json::from_value(after).map_err(senseless)?;
    let counted = call.api.broker.stats().exchanges();
    let mut found: BTreeMap<ExchangeKey, Arc<ExchangeCounts>> = BTreeMap::new();
    match named {
        Some(named) => {
            for (vhost, name) in named {
                if let Some(counts) = counted.get(&vhost, &name) {
                    found.insert((vhost, name), counts);
                }
            }
        }
        None => {
            let vhosts: BTreeSet<&str> = call.visible_vhosts()?.iter().map(|vhost| &*vhost.name).collect();
            let all = counted.all().into_iter();
            let visible = all.filter(|(vhost, ..)| vhosts.contains(&**vhost));
            found.extend(visible.map(|(vhost, name, counts)| ((vhost.to_string(), name.into()), counts)));
        }
    }
    let (mut stats, mut bytes, mut is_more) = (Vec::new(), 0, false);
    let rest = found.into_iter().filter(|(key, _)| Some(key) > after.as_ref());
    for ((vhost, name), counts) in rest {
        if bytes >= TOLD {
            is_more = true;
            break;
        }
        if let Some(counted) = own(call, &vhost, &name, &counts) {
            let entry = json!([[vhost, name], counted]);
            bytes += entry.to_string().len();
            stats.push(entry);
        }
    }
    Ok(Some(Reply::json(&json!({"stats": stats, "more": is_more}))))
}
