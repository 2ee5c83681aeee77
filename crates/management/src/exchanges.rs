//! `/api/exchanges`.

use crate::access::Right;
use crate::api_session::{ApiSession, CHANNEL};
use crate::arguments::{self, boolean, text};
use crate::call::{BAD_RANGE, Call};
use crate::exchange_stats::{self, Wanted};
use crate::json::{destination_type, table};
use crate::listing::{Columns, List, Page, object};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::snapshot::ExchangeStats;
use broker::{Cache, DeclareExchange, Exchange};
use serde_json::{Value, json};

pub const ROUTES: &[Route] = &[
    Route {
        path: "/exchanges",
        verbs: &[("GET", Right::Management, list)],
    },
    Route {
        path: "/exchanges/:vhost",
        verbs: &[("GET", Right::Vhost, list)],
    },
    Route {
        path: "/exchanges/:vhost/:exchange",
        verbs: &[
            ("GET", Right::Vhost, one),
            ("PUT", Right::Vhost, put),
            ("DELETE", Right::Vhost, delete),
        ],
    },
    Route {
        path: "/leveret/exchanges/:vhost/:exchange/ring",
        verbs: &[("GET", Right::Vhost, ring)],
    },
];

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    if call.for_node
        && let Some(told) = exchange_stats::told(call)?
    {
        return Ok(told);
    }
    let vhosts = call.visible_vhosts()?;
    call.check_samples(BAD_RANGE)?;
    let total = vhosts.iter().map(|vhost| vhost.exchange_count()).sum();
    let exchanges = vhosts.iter().flat_map(|vhost| vhost.exchanges());
    let known = &call.snapshot.exchange_stats;
    let list = List {
        name: &|exchange: &&Exchange| &exchange.name,
        row: &|exchange: &&Exchange| row(call, exchange, known.get()),
        member: &|exchange, path| match path {
            "name" => Some(Value::from(&*exchange.name)),
            "vhost" => Some(Value::from(&*exchange.vhost)),
            _ => None,
        },
    };
    if call.is_quiet() {
        return list.reply(&call.query, call.cut, exchanges, total);
    }
    // Others are asked about no more than is shown, unless what they say decides what that is.
    let sort = call.query.get("sort").unwrap_or_default();
    let told = ["message_stats", "cache_info"];
    match Page::of(&call.query)?.filter(|_| !told.iter().any(|it| sort.starts_with(it))) {
        Some(page) => {
            let (filtered, on_page) = list.on_page(&call.query, &page, exchanges, total)?;
            let named = on_page.iter().map(|exchange| exchange_stats::key(exchange));
            let elsewhere = exchange_stats::elsewhere(call, &Wanted::Named(named.collect()));
            let columns = Columns::of(&call.query);
            let rows = on_page
                .iter()
                .map(|exchange| row(call, exchange, Some(&elsewhere)));
            let rows = rows.map(|row| columns.choose(row)).collect();
            Ok(page.reply(rows, filtered, total))
        }
        None => {
            let names = vhosts.iter().map(|vhost| &*vhost.name).collect();
            known.get_or_init(|| exchange_stats::elsewhere(call, &Wanted::In(names)));
            list.reply(&call.query, call.cut, exchanges, total)
        }
    }
}

fn one(call: &Call<'_>) -> Result<Reply, Refusal> {
    let exchange = find(call)?;
    call.check_samples("bad_request")?;
    if call.is_quiet() {
        return Ok(object(&call.query, row(call, exchange, None)));
    }
    let elsewhere = exchange_stats::elsewhere(call, &Wanted::Named(vec![exchange_stats::key(exchange)]));
    let mut row = row(call, exchange, Some(&elsewhere));
    row["incoming"] = json!([]);
    row["outgoing"] = json!([]);
    Ok(object(&call.query, row))
}

/// The buckets of an exchange that hashes consistently. RabbitMQ's plugin shows them by its command line alone.
fn ring(call: &Call<'_>) -> Result<Reply, Refusal> {
    let ring = call.vhost()?.ring(find(call)?).ok_or(Refusal::NotFound)?;
    let mut first = 0;
    let rows = ring.into_iter().map(|(end, destination)| {
        let begin = std::mem::replace(&mut first, end);
        json!({
            "destination": &**destination.name(),
            "destination_type": destination_type(destination),
            "first_bucket": begin,
            "bucket_count": end - begin,
        })
    });
    Ok(Reply::json(&rows.collect()))
}

fn put(call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let name = real_name(call.part("exchange"));
    let session = ApiSession::open(call)?;
    call.refuse_other_node(&body)?;
    let known = call.view.exchange(call.part("vhost"), name).is_some();
    let declare = DeclareExchange {
        name: name.to_owned(),
        kind: text(&body, "type")?.unwrap_or("direct").to_owned(),
        passive: false,
        durable: boolean(&body, "durable")?,
        auto_delete: boolean(&body, "auto_delete")?,
        internal: boolean(&body, "internal")?,
        arguments: arguments::table(&body, "arguments", call.api.broker.limits())?,
        ..DeclareExchange::default()
    };
    let done = session.inner().declare_exchange(CHANNEL, declare)?;
    session.durable(done.durable)?;
    Ok(Reply::empty(if known { 204 } else { 201 }))
}

fn delete(call: &Call<'_>) -> Result<Reply, Refusal> {
    let name = &find(call)?.name;
    let session = ApiSession::open(call)?;
    let if_unused = call.query.flag("if-unused");
    let done = session.inner().delete_exchange(CHANNEL, name, if_unused)?;
    session.durable(done.durable)?;
    Ok(Reply::empty(204))
}

/// The exchange of the path.
///
/// # Errors
/// There is none.
pub fn find<'a>(call: &'a Call<'_>) -> Result<&'a Exchange, Refusal> {
    let exchange = call.vhost()?.exchange(real_name(call.part("exchange")));
    exchange.ok_or(Refusal::NotFound)
}

/// An exchange's name by the one in an address, where the default exchange cannot be empty.
pub fn real_name(name: &str) -> &str {
    match name {
        "amq.default" => "",
        other => other,
    }
}

/// An exchange as an object; `elsewhere` is what other nodes know of it.
fn row(call: &Call<'_>, exchange: &Exchange, elsewhere: Option<&ExchangeStats>) -> Value {
    let mut row = json!({
        "name": &*exchange.name,
        "vhost": &*exchange.vhost,
        "type": exchange.kind.name(),
        "durable": exchange.is_durable(),
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": table(&exchange.arguments),
        "user_who_performed_action": "rmq-internal",
    });
    let none = ExchangeStats::new();
    let elsewhere = elsewhere.unwrap_or(&none);
    if let Some(entries) = exchange_stats::cache_entries(call, exchange, elsewhere) {
        row["cache_info"] =
            json!({"entries": entries, "size": Cache::new(&exchange.arguments).ok().map(|it| it.size)});
    }
    // RabbitMQ shows the user's policy alone, and no member if there is none.
    let vhost = call.view.vhost(&exchange.vhost);
    if let Some(policy) = vhost.and_then(|vhost| vhost.policies().of_exchange(exchange).user) {
        row["policy"] = (&*policy.name).into();
    }
    if call.is_quiet() {
        return row;
    }
    if let Some(stats) = exchange_stats::stats(call, exchange, elsewhere) {
        row["message_stats"] = stats;
    }
    row
}
