//! What came to exchanges and left them: each node counts what its clients publish, and here it is added up over the cluster.
//! What a deduplicating exchange remembers is told with it, by the one node that does.

use crate::call::Call;
use crate::message_stats::message_stats;
use crate::others::{self, Question, TOLD};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::snapshot::{ExchangeFigures, ExchangeKey, ExchangeStats};
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
    let more = elsewhere.get(&key(exchange));
    match (own, more.and_then(|more| more.stats.as_ref())) {
        (Some(mut sum), Some(more)) => {
            others::add(&mut sum, more);
            Some(sum)
        }
        (own, more) => own.or_else(|| more.cloned()),
    }
}

/// How many deduplication keys an exchange remembers: as this node says, or the other one that keeps them.
pub fn cache_entries(call: &Call<'_>, exchange: &Exchange, elsewhere: &ExchangeStats) -> Option<u64> {
    own_entries(call, exchange).or_else(|| elsewhere.get(&key(exchange))?.cache_entries)
}

fn own_entries(call: &Call<'_>, exchange: &Exchange) -> Option<u64> {
    call.api.broker.cache_entries(exchange.seen()?)
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

/// What other nodes know, added up. Each tells some at a time, and is asked on.
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
            let last = told.last_key_value().map(|(key, _)| key.clone());
            for (key, figures) in told {
                add(sums.entry(key).or_default(), figures);
            }
            // Whoever does not get on is not asked again.
            if is_more && last > after {
                open.push((node, last));
            }
        }
    }
    sums
}

fn add(sum: &mut ExchangeFigures, figures: ExchangeFigures) {
    match (&mut sum.stats, figures.stats) {
        (Some(sum), Some(more)) => others::add(sum, &more),
        (sum, more) => *sum = sum.take().or(more),
    }
    sum.cache_entries = sum.cache_entries.or(figures.cache_entries);
}

/// Some exchanges with what a node knows of them, and whether there are more.
fn read(told: &Value) -> Option<(ExchangeStats, bool)> {
    let mut read = ExchangeStats::new();
    let stats: Vec<(ExchangeKey, Value)> = serde_json::from_value(told.get("stats")?.clone()).ok()?;
    for (key, stats) in stats {
        read.entry(key).or_default().stats = Some(stats);
    }
    // An older node says nothing of these.
    let caches = told.get("caches").cloned().unwrap_or_else(|| json!([]));
    let caches: Vec<(ExchangeKey, u64)> = serde_json::from_value(caches).ok()?;
    for (key, entries) in caches {
        read.entry(key).or_default().cache_entries = Some(entries);
    }
    Some((read, told.get("more")?.as_bool()?))
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
    let (mut stats, mut caches) = (Vec::new(), Vec::new());
    let (mut bytes, mut is_more) = (0, false);
    let found = found(call, named)?.into_iter();
    for (key, counts) in found.filter(|(key, _)| Some(key) > after.as_ref()) {
        if bytes >= TOLD {
            is_more = true;
            break;
        }
        let (vhost, name) = &key;
        let exchange = call.view.exchange(vhost, name);
        let entries = exchange.and_then(|exchange| own_entries(call, exchange));
        let counted = counts.and_then(|counts| own(call, vhost, name, &counts));
        let told = [(&mut stats, counted), (&mut caches, entries.map(Value::from))];
        for (list, figure) in told {
            if let Some(figure) = figure {
                let entry = json!([key, figure]);
                bytes += entry.to_string().len();
                list.push(entry);
            }
        }
    }
    let told = json!({"stats": stats, "caches": caches, "more": is_more});
    Ok(Some(Reply::json(&told)))
}

/// Exchanges of which this node may know something, with what it counted; without names all of them that the asker may see.
fn found(
    call: &Call<'_>,
    named: Option<BTreeSet<ExchangeKey>>,
) -> Result<BTreeMap<ExchangeKey, Option<Arc<ExchangeCounts>>>, Refusal> {
    let counted = call.api.broker.stats().exchanges();
    if let Some(named) = named {
        let counts = |key: ExchangeKey| {
            let counts = counted.get(&key.0, &key.1);
            (key, counts)
        };
        return Ok(named.into_iter().map(counts).collect());
    }
    let vhosts = call.visible_vhosts()?;
    let exchanges = vhosts.iter().flat_map(|vhost| vhost.exchanges());
    let remembering = exchanges.filter(|exchange| own_entries(call, exchange).is_some());
    let mut found: BTreeMap<_, _> = remembering.map(|exchange| (key(exchange), None)).collect();
    let vhosts: BTreeSet<&str> = vhosts.iter().map(|vhost| &*vhost.name).collect();
    let all = counted.all().into_iter();
    let visible = all.filter(|(vhost, ..)| vhosts.contains(&**vhost));
    found.extend(visible.map(|(vhost, name, counts)| ((vhost.to_string(), name.into()), Some(counts))));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_nodes_are_added_up_and_what_is_remembered_is_told_by_one() {
        let key = |name: &str| ("/".to_owned(), name.to_owned());
        let one =
            json!({"stats": [[["/", "a"], {"publish_in": 1}]], "caches": [[["/", "b"], 3]], "more": true});
        let (mut sum, is_more) = read(&one).unwrap();
        assert_eq!((is_more, sum.last_key_value().unwrap().0), (true, &key("b")));
        let older = json!({"stats": [[["/", "a"], {"publish_in": 2}], [["/", "b"], {"publish_in": 4}]], "more": false});
        let (told, is_more) = read(&older).unwrap();
        assert!(!is_more);
        for (key, figures) in told {
            add(sum.entry(key).or_default(), figures);
        }
        let figures = |publish_in: u64, cache_entries| ExchangeFigures {
            stats: Some(json!({"publish_in": publish_in})),
            cache_entries,
        };
        let expected = [(key("a"), figures(3, None)), (key("b"), figures(4, Some(3)))];
        assert_eq!(sum, expected.into());
        assert!(read(&json!({"caches": [], "more": false})).is_none());
    }
}
