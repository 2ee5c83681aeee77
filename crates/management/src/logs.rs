//! `/api/leveret/logs` and `/api/leveret/audit`: the last lines of the log. The log is for those who watch the node,
//! the trail for administrators.

use crate::access::Right;
use crate::call::Call;
use crate::log_tail::{LogQuery, level};
use crate::others;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;

/// How many lines are told: without a word about it, and at most.
const TOLD: (usize, usize) = (100, 500);

pub const ROUTES: &[Route] = &[
    Route {
        path: "/leveret/logs",
        verbs: &[("GET", Right::Monitor, logs)],
    },
    Route {
        path: "/leveret/audit",
        verbs: &[("GET", Right::Administrator, audit)],
    },
];

fn wanted<'q>(call: &'q Call<'_>) -> Result<LogQuery<'q>, Refusal> {
    let query = &call.query;
    let given = |name: &str| query.get(name).filter(|text| !text.is_empty());
    let (usual, most) = TOLD;
    let count = match given("count") {
        None => usual,
        Some(text) => text
            .parse()
            .ok()
            .filter(|count| (1..=most).contains(count))
            .ok_or_else(|| Refusal::bad_request(format!("count is a number from 1 to {most}")))?,
    };
    Ok(LogQuery {
        level: level(given("level"))?,
        area: given("area"),
        text: given("text").unwrap_or_default().to_lowercase(),
        count,
    })
}

fn logs(call: &Call<'_>) -> Result<Reply, Refusal> {
    if let Some(told) = others::of_named_node(call)? {
        return Ok(told);
    }
    Ok(Reply::json(&call.api.options.log_tail.answer(0, &wanted(call)?)))
}

fn audit(call: &Call<'_>) -> Result<Reply, Refusal> {
    if let Some(told) = others::of_named_node(call)? {
        return Ok(told);
    }
    Ok(Reply::json(&call.api.options.log_tail.answer(1, &wanted(call)?)))
}
